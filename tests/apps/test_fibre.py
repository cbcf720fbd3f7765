"""The photonic experiment against closed forms, a brute-force solver, its own grid, and the paper's facts."""

from dataclasses import replace
from math import erf
from pathlib import Path
from threading import Thread

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

import infocap
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.photonics import Detector, Encoder, Fibre, FibreSystem, Grid, Pulse
from infocap.photonics._fibre import extrapolated_step, linear_half_steps

QUIET = {"phase_noise": None}
SMOOTH = Encoder(filter="gaussian")  # no faint tails: all of the light is in the window
GHZ_PER_NM = 299792.458 / 1550**2 * 1e3


def some_inputs(n_inputs, n=12, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, n_inputs))


def mask(encoder, u, noise=None):
    """The complex transmission (samples, points) of the encoder."""
    return encoder.filtered(encoder.cells(u, noise), Grid(), 0.0)[0]


def spectrum(system, u, seed=None):
    """Power densities in mW / nm (samples, points) before the detector."""
    window_ps = system.grid.window_ps
    light = system.stages(u, seed)["after"]
    return np.abs(light) ** 2 * system.pulse.density_unit * window_ps**2


def relative_error(found, exact):
    """The largest error of each sample, relative to its largest readout."""
    return np.max(np.abs(found - exact), axis=1) / np.max(exact, axis=1)


# ---- pulse -------------------------------------------------------------------------------------------------


def test_the_pulse_has_the_papers_figures():
    assert Pulse().duration_ps == pytest.approx(4.2, abs=0.02)
    assert Pulse(power_dbm=-9.1).peak_power_w == pytest.approx(2.58, abs=0.01)
    assert Pulse(power_dbm=7.1).peak_power_w == pytest.approx(107.4, abs=0.1)
    phases = [
        FibreSystem(power_dbm=p, length_m=40).nonlinear_phase for p in (-9.1, -1.9, 1.0, 4.5, 7.1)
    ]
    assert_allclose(phases, [0.124, 0.649, 1.27, 2.83, 5.16], rtol=5e-3)


def test_the_spectrum_holds_the_average_power():
    open_filter = Encoder(filter=None)
    system = FibreSystem(power_dbm=3.0, length_m=0, n_inputs=1, encoder=open_filter, **QUIET)
    density = spectrum(system, np.ones((1, 1)))[0]
    wavelength_nm = 1550.0 - system.grid.frequency_thz * 1e3 / GHZ_PER_NM
    order = np.argsort(wavelength_nm)
    power = np.trapezoid(density[order], wavelength_nm[order])
    assert power == pytest.approx(10**0.3, rel=1e-8)
    half = density > density.max() / 2
    assert half.sum() / GHZ_PER_NM == pytest.approx(
        0.6, abs=0.01
    )  # 0.6 nm at half maximum, in cells of 1 GHz


# ---- encoder -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_inputs", [1, 2, 4, 5, 10, 20])
def test_input_k_is_in_every_bin_of_its_turn(n_inputs):
    encoder = Encoder(n_inputs=n_inputs, filter=None, phase_noise=None)
    u = some_inputs(n_inputs, 3)
    shown = mask(encoder, u)
    offset_nm = -np.fft.fftfreq(1024, 1 / 1024) / GHZ_PER_NM
    for row, values in zip(u, shown, strict=True):
        for b in range(20):
            inside = np.abs(offset_nm - (-1.25 + 0.125 * (b + 0.5))) < 0.06
            amount = row[b % n_inputs]
            assert_allclose(values[inside], np.sign(amount) * np.sqrt(abs(amount)), atol=1e-12)
        assert_allclose(values[np.abs(offset_nm) > 1.26], 1.0)


@pytest.mark.parametrize("name", ["flat-top", "gaussian", "smooth"])
def test_filters_keep_a_constant_and_have_their_width(name):
    encoder = Encoder(n_inputs=1, filter=name, phase_noise=None)
    assert_allclose(mask(encoder, np.ones((1, 1))), 1.0, atol=1e-12)
    from infocap.photonics._stages import integrated_response

    x = np.linspace(-40, 40, 8001)
    response = np.gradient(integrated_response(name, x, 12.0), x)
    above = x[response > response.max() / 2]
    assert above[-1] - above[0] == pytest.approx(12.0, abs=0.2)
    assert np.trapezoid(response, x) == pytest.approx(1.0, abs=1e-6)


def test_the_flat_top_is_a_moving_average():
    u = some_inputs(2, 2)
    sharp = mask(Encoder(n_inputs=2, filter=None, phase_noise=None), u)
    smooth = mask(Encoder(n_inputs=2, phase_noise=None), u)
    weights = np.array([0.5, *[1.0] * 11, 0.5]) / 12
    for k in (0, 17, 100, -60):
        cells = sharp[:, np.arange(k - 6, k + 7)]
        assert_allclose(smooth[:, k], cells @ weights, atol=1e-12)


@pytest.mark.parametrize("kind", ["cell", "bin"])
def test_phase_noise_has_its_size_and_is_seeded(kind):
    encoder = Encoder(n_inputs=1, filter=None, phase_noise=kind)
    noise = np.random.default_rng(0).standard_normal((500, encoder.n_noises))
    phase = np.angle(mask(encoder, np.ones((500, 1)), noise))
    assert phase[:, 10].std() == pytest.approx(0.0015 * 2 * np.pi, rel=0.1)
    together = np.corrcoef(phase[:, 10], phase[:, 12])[0, 1]  # two cells of one bin
    assert together == pytest.approx(1.0 if kind == "bin" else 0.0, abs=0.15)
    system = FibreSystem(n_inputs=2, phase_noise=kind)
    u = some_inputs(2, 5)
    assert np.array_equal(system(u, seed=3), system(u, seed=3))
    assert not np.array_equal(system(u), system(u))


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("kind", ["cell", "bin"])
def test_noise_does_not_depend_on_how_many_samples_come_along(kind, library):
    xp = pytest.importorskip(library)
    system = FibreSystem(
        n_inputs=2, phase_noise=kind, detector=Detector(relative=0.01), tolerance=1e-7
    )
    u = xp.asarray(some_inputs(2, 1100))
    together = system(u, seed=1)
    for n in (1, 7, 300, 512, 513, 1025):
        assert_allclose(together[:n], system(u[:n], seed=1), rtol=1e-9)
    assert_allclose(together, system(np.asarray(u), seed=1), rtol=1e-7)


def test_each_stage_and_each_length_has_noise_of_its_own():
    u = some_inputs(2, 40)
    quiet = FibreSystem(n_inputs=2, tolerance=1e-7)
    noisy = replace(quiet, detector=Detector(relative=0.01))
    alone, near, far = noisy(u, seed=1), *noisy.readouts(u, [5.0, 40.0], seed=1)
    assert_allclose(near, alone, rtol=1e-3)  # as far as steps of the solver are shared
    clean = quiet.readouts(u, [5.0, 40.0], seed=1)
    first = near / clean[0] - 1
    second = far / clean[1] - 1
    assert first.std() == pytest.approx(0.01, rel=0.1)
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 4 / np.sqrt(first.size)


def test_powers_that_travel_together_give_the_numbers_of_each_alone():
    # More samples than one random stream is for.
    u = some_inputs(2, 520)
    powers = (-3.0, 4.5, 1.0)
    lengths = [5.0, 40.0]
    system = FibreSystem(n_inputs=2, tolerance=1e-7, detector=Detector(additive_mw_per_nm=1e-3))
    together = system.readouts(u, lengths, seed=1, powers_dbm=powers)
    for power, pair in zip(powers, together, strict=True):
        alone = replace(system, pulse=replace(system.pulse, power_dbm=power), power_dbm=power)
        for one, other in zip(pair, alone.readouts(u, lengths, seed=1), strict=True):
            assert relative_error(one, other).max() < 1e-6
    with pytest.raises(ParameterError, match="power_dbm"):
        system.readouts(u, lengths, powers_dbm=[50.0])


# ---- closed forms ------------------------------------------------------------------------------------------


def test_a_fundamental_soliton_keeps_its_shape():
    """One soliton period; P = |beta2| / (gamma tau²) makes the pulse a fundamental soliton."""
    tau = Pulse().time_constant_ps
    power_w = 23e-3 / (1.2e-3 * tau**2)
    period_m = np.pi / 2 * tau**2 / 23e-3
    assert period_m == pytest.approx(389, abs=1)
    dbm = Pulse(power_dbm=0).peak_power_w
    system = FibreSystem(
        power_dbm=10 * np.log10(power_w / dbm), length_m=period_m, n_inputs=1, tolerance=1e-8,
        encoder=Encoder(filter=None), **QUIET,
    )  # fmt: skip
    before = replace(system, length_m=0.0)(np.ones((1, 1)))
    assert relative_error(system(np.ones((1, 1))), before)[0] < 1e-6
    stages = system.stages(np.ones((1, 1)))
    turned = stages["after"] / stages["before"]
    assert_allclose(turned[0, :50], np.exp(1j * np.pi / 4), atol=1e-6)  # the soliton's own phase


def test_a_step_and_its_halves_differ_by_the_third_power_of_its_length():
    """The soliton: single steps of Strang's splitting, extrapolated, are off by the fifth power."""
    tau = Pulse().time_constant_ps
    fibre = Fibre(tolerance=1e-11)
    grid = Grid(band_thz=4.096)
    field = (np.sqrt(23e-3 / (1.2e-3 * tau**2)) * np.pi * tau * grid.spacing_thz
             / np.cosh(np.pi**2 * tau * grid.frequency_thz))[None] + 0j  # fmt: skip
    period = np.pi / 2 * tau**2 / 23e-3
    errors = []
    differences = []
    for level in (3, 4, 5):
        table = linear_half_steps(fibre, grid.n_points, grid.spacing_thz, period)
        best, apart = extrapolated_step(
            field, np.array([level]), table, 1.2e-3 * period * 0.5 ** np.arange(7)[:, None]
        )
        exact = field * np.exp(1j * np.pi / 4 * 0.5**level)
        errors.append(np.linalg.norm(best - exact))
        differences.append(np.linalg.norm(apart))
    assert_allclose(np.divide(differences[:-1], differences[1:]), 8, rtol=0.1)
    assert_allclose(np.divide(errors[:-1], errors[1:]), 32, rtol=0.2)


def test_without_dispersion_only_the_phase_turns():
    """Self-phase modulation: A(t) exp(i gamma |A|² L), on the full window."""
    system = FibreSystem(
        power_dbm=4.5, length_m=40, n_inputs=2, tolerance=1e-9, encoder=SMOOTH,
        fibre=Fibre(beta2_ps2_per_km=0), grid=Grid(band_thz=8.192), **QUIET,
    )  # fmt: skip
    stages = system.stages(some_inputs(2, 6))
    shape = np.fft.fft(stages["before"])
    exact = np.fft.ifft(shape * np.exp(1j * 1.2e-3 * 40 * np.abs(shape) ** 2))
    assert np.max(np.abs(stages["after"] - exact)) < 1e-8 * np.max(np.abs(exact))


def test_without_nonlinearity_the_spectrum_stays():
    u = some_inputs(5)
    linear = FibreSystem(length_m=40, fibre=Fibre(gamma_per_w_km=0), **QUIET)
    assert_allclose(linear(u), replace(linear, length_m=0.0)(u), rtol=1e-10)


def test_energy_is_conserved_without_loss_and_lost_with_it():
    u = some_inputs(5)
    for loss, factor in ((0.0, 1.0), (30.0, 10 ** (-30 * 0.04 / 10))):
        fibre = Fibre(loss_db_per_km=loss)
        wide = Grid(band_thz=8.192)  # all of the light, not only what the detector could see
        system = FibreSystem(
            power_dbm=4.5,
            length_m=40,
            tolerance=1e-8,
            encoder=SMOOTH,
            fibre=fibre,
            grid=wide,
            **QUIET,
        )
        stages = system.stages(u)
        ratio = np.sum(np.abs(stages["after"]) ** 2, axis=1) / np.sum(
            np.abs(stages["before"]) ** 2, axis=1
        )
        assert_allclose(ratio, factor, rtol=1e-6)


@pytest.mark.parametrize(
    ("n_inputs", "degree", "n", "dimension"), [(2, 14, 4096, 6), (5, 8, 8192, 13)]
)
def test_before_propagation_the_capacities_are_known(n_inputs, degree, n, dimension):
    """Readouts span 1, |u_i|, and products of neighbouring square roots; 20 channels see only light that passes."""
    basis = infocap.product_basis("legendre", n_inputs, degree)
    system = FibreSystem(length_m=0, n_inputs=n_inputs, **QUIET)
    with pytest.warns(DataWarning, match=f"only {dimension} of 52 readouts"):
        result = infocap.probe(system, basis, n, seed=0)
    capacity = dict(zip(basis.labels, result.capacity, strict=True))
    for k in range(1, n_inputs + 1):
        assert capacity[f"P2(u{k})"] == pytest.approx(15 / 16, abs=0.01)
    for k in (1, n_inputs):  # at the edge of the span, next to the light that passes
        assert capacity[f"P1(u{k})"] == pytest.approx(0.96, abs=0.01)
    for k in range(1, n_inputs):
        assert capacity[f"P1(u{k})·P1(u{k + 1})"] == pytest.approx(0.9216, abs=0.01)
    assert result.total == pytest.approx({2: 5.90, 5: 12.92}[n_inputs], abs=0.25)


# ---- brute force -------------------------------------------------------------------------------------------


def brute_force(system, u, steps, n_points):
    """One sample at a time on a fine grid over the whole window, plain Strang steps, extrapolated.

    With the Gaussian filter, whose light ends well inside the window; the flat top is tested by its grids.
    """
    assert system.encoder.filter == "gaussian"
    out = []
    frequency = np.fft.fftfreq(n_points, 1 / n_points) * 1e-3
    omega = 2 * np.pi * frequency
    beta2 = -23e-3
    gamma = 1.2e-3
    cells = np.arange(-512, 512)
    deviation = 12 / 2.3548200450309493
    edges = np.array([erf(x / deviation / np.sqrt(2)) / 2 for x in np.arange(-40.5, 41)])
    for row in u:
        s = np.sign(row) * np.sqrt(np.abs(row))
        written = [
            s[int((o / 2.5 + 0.5) * 20) % len(s)] if abs(o) < 1.25 else 1.0
            for o in -cells / GHZ_PER_NM
        ]
        mask = np.convolve(np.pad(written, 40, constant_values=1.0), np.diff(edges), mode="valid")
        fine = np.ones(n_points)
        fine[:512], fine[-512:] = mask[512:], mask[:512]
        start = fine * system.pulse.amplitude(frequency) * 1e-3
        ends = []
        for n in (steps, 2 * steps):
            half = np.exp(0.25j * beta2 * omega**2 * system.length_m / n)
            field = start.astype(complex)
            for _ in range(n):
                shape = np.fft.fft(field * half)
                shape = shape * np.exp(1j * gamma * system.length_m / n * np.abs(shape) ** 2)
                field = np.fft.ifft(shape) * half
            ends.append(field)
        field = (4 * ends[1] - ends[0]) / 3 * 1e3
        density = (
            np.abs(np.concatenate([field[:512], field[-512:]])) ** 2 * system.pulse.density_unit
        )
        out.append(system.detector.read(density[None])[0])
    return np.array(out)


EASY = [(-9.1, 5.0, 8, 2**11), (-9.1, 40.0, 20, 2**11), (7.1, 5.0, 40, 2**12)]
HARD = (7.1, 40.0, 600, 2**14)
CORNERS = [(*corner, n_inputs) for corner in EASY for n_inputs in (2, 5)]


@pytest.mark.parametrize(
    ("power_dbm", "length_m", "steps", "n_points", "n_inputs"),
    [*CORNERS, (*HARD, 5), pytest.param(*HARD, 2, marks=pytest.mark.slow)],
)
def test_default_accuracy_at_every_corner_of_the_papers_range(
    power_dbm, length_m, steps, n_points, n_inputs
):
    system = FibreSystem(
        power_dbm=power_dbm, length_m=length_m, n_inputs=n_inputs, encoder=SMOOTH, **QUIET
    )
    hard = system.nonlinear_phase > 1
    u = some_inputs(n_inputs, 7 if hard else 16)
    u[0] = 0.4  # all bins alike: a pulse that is compressed at the last corner
    error = relative_error(system(u), brute_force(system, u, steps, n_points))
    assert np.median(error) <= 1e-5
    assert error.max() <= (1e-3 if hard else 1e-4)


def test_the_tolerance_is_kept():
    """A tighter tolerance gives a smaller error, down to rounding."""
    u = some_inputs(5, 8)
    system = FibreSystem(power_dbm=1.0, length_m=40, encoder=SMOOTH, **QUIET)
    exact = brute_force(system, u, 200, 2**12)
    for tolerance in (1e-3, 1e-5, 1e-8):
        error = relative_error(replace(system, tolerance=tolerance)(u), exact)
        assert np.median(error) <= tolerance
        assert error.max() <= 30 * tolerance
    single, double = (replace(system, tolerance=tolerance)(u) for tolerance in (5e-6, 4.999e-6))
    assert 0 < relative_error(single, double).max() < 5e-6


@pytest.mark.parametrize("noise", ["cell", "bin", None])
@pytest.mark.parametrize(
    "grid",
    [Grid(window_ps=2000.0), Grid(window_ps=7000.0), Grid(band_thz=2.048)],
    ids=["window", "long-window", "points"],
)
def test_the_answer_does_not_depend_on_the_grid(grid, noise):
    system = FibreSystem(power_dbm=4.5, length_m=40, n_inputs=2, phase_noise=noise)
    u = some_inputs(2, 20)
    error = relative_error(replace(system, grid=grid)(u, seed=1), system(u, seed=1))
    assert np.median(error) <= 1e-5
    assert error.max() <= 1e-4


def test_several_lengths_from_one_propagation():
    system = FibreSystem(power_dbm=4.5, n_inputs=5, tolerance=1e-6)
    u = some_inputs(5, 20)
    for length, found in zip(
        (5.0, 12.0, 40.0), system.readouts(u, [5.0, 12.0, 40.0], seed=2), strict=True
    ):
        assert relative_error(found, replace(system, length_m=length)(u, seed=2)).max() < 3e-5


def test_the_amplifier_adds_length_and_prechirp_adds_dispersion():
    u = some_inputs(5, 4)
    longer = FibreSystem(length_m=5.5, tolerance=1e-8, **QUIET)
    amplified = FibreSystem(
        length_m=5.0, tolerance=1e-8, fibre=Fibre(amplifier_length_m=0.5), **QUIET
    )
    assert_allclose(amplified(u), longer(u), rtol=1e-10)
    chirped = FibreSystem(tolerance=1e-8, fibre=Fibre(prechirp_length_m=100.0), **QUIET)
    plain = FibreSystem(tolerance=1e-8, **QUIET)
    assert_allclose(replace(chirped, length_m=0.0)(u), replace(plain, length_m=0.0)(u), rtol=1e-10)
    assert relative_error(chirped(u), plain(u)).max() > 1e-2


# ---- detector ----------------------------------------------------------------------------------------------


def test_the_detector_reads_71_wavelengths():
    system = FibreSystem()
    assert len(system.wavelength_nm) == 71
    assert_allclose(system.wavelength_nm[[0, 35, 70]], [1548.25, 1550.0, 1551.75])
    assert_allclose(np.diff(system.wavelength_nm), 0.05)
    ramp = np.arange(1024.0)[None]  # on the raster in the order of frequencies 0, 1, ..., -1 GHz
    read = Detector().read(ramp)
    assert read[0, 35] == 0.0
    assert read[0, 34] == pytest.approx(0.05 * GHZ_PER_NM)


def test_detector_noise_has_its_size():
    u = np.ones((4000, 1))
    base = FibreSystem(n_inputs=1, length_m=0, **QUIET)
    clean = base(u[:1])[0]
    noisy = replace(base, detector=Detector(additive_mw_per_nm=1e-2))(u, seed=0)
    assert_allclose((noisy - clean).std(axis=0), 1e-2, rtol=0.1)
    noisy = replace(base, detector=Detector(relative=1e-2))(u, seed=0)
    assert_allclose((noisy / clean - 1).std(axis=0), 1e-2, rtol=0.1)


# ---- bad parameters ----------------------------------------------------------------------------------------


def test_bad_parameters_get_one_clear_error():
    for arguments, message in [
        ({"length_m": -1.0}, "length_m=-1"),
        ({"power_dbm": 61.0}, "61 is more than 10 W; give dBm"),
        ({"encoder": Encoder(), "n_inputs": 7}, "n_inputs=7` does not divide"),
        (
            {"n_inputs": 3},
            r"n_inputs=3` does not divide 20 bins; it can be one of \[1, 2, 4, 5, 10, 20\]",
        ),
        ({"phase_noise": "pixel"}, "phase_noise='pixel'` is not one of 'bin', 'cell', None"),
        ({"tolerance": 0.0}, "tolerance=0"),
        ({"encoder": Encoder(span_nm=9.0)}, "encoder's span_nm=9 is wider than the raster"),
        ({"detector": Detector(span_nm=8.2)}, "detector's span_nm=8.2 is wider than the raster"),
        ({"pulse": Pulse(width_nm=4.0)}, r"too wide for a band of 1\.024 THz"),
    ]:
        with pytest.raises(ParameterError, match=message):
            FibreSystem(**arguments)
    with pytest.raises(ParameterError, match="can be 1000, 2000"):
        Grid(window_ps=1500.0)
    with pytest.raises(ParameterError, match="phase_noise_rad=-1"):
        Encoder(phase_noise_rad=-1)
    with pytest.raises(ParameterError, match="filter='square'"):
        Encoder(filter="square")
    with pytest.raises(ParameterError, match="must be one length or more, increasing"):
        FibreSystem().readouts(some_inputs(5), [40.0, 5.0])
    with pytest.raises(ParameterError, match=r"lengths_m=\[\]` must be one length or more"):
        FibreSystem().readouts(some_inputs(5), [])
    with pytest.warns(DataWarning, match="far above the paper's range"):
        Pulse(power_dbm=25.0)


def test_bad_inputs_get_one_clear_error():
    system = FibreSystem(n_inputs=2)
    with pytest.raises(DataError, match=r"u has shape \(4, 3\); this system needs \(samples, 2\)"):
        system(np.zeros((4, 3)))
    with pytest.raises(
        DataError, match=r"u reaches 1\.5; the encoder takes inputs between -1 and 1"
    ):
        system(np.full((4, 2), 1.5))
    with pytest.raises(DataError, match=r"u has shape \(0, 2\)"):
        system(np.zeros((0, 2)))
    with pytest.raises(DataError, match="u holds complex128; give real numbers"):
        system(np.zeros((3, 2)) + 1j)
    with pytest.raises(DataError, match="u reaches nan"):
        system(np.full((4, 2), np.nan))


def test_values_come_from_the_stage_unless_given():
    system = FibreSystem(
        pulse=Pulse(power_dbm=1.0),
        fibre=Fibre(length_m=40.0, tolerance=1e-7),
        encoder=Encoder(n_inputs=2, phase_noise="bin"),
    )
    assert (system.power_dbm, system.length_m, system.tolerance) == (1.0, 40.0, 1e-7)
    assert (system.n_inputs, system.phase_noise) == (2, "bin")
    assert FibreSystem(power_dbm=-1.9, pulse=Pulse(power_dbm=1.0)).pulse.power_dbm == -1.9
    assert replace(system, power_dbm=6.6, phase_noise=None).encoder.phase_noise is None
    assert FibreSystem() == FibreSystem(power_dbm=6.6, length_m=5.0, n_inputs=5, phase_noise="bin")


def test_the_stages_are_those_of_the_measurement():
    system = FibreSystem(n_inputs=2)
    u = some_inputs(2, 3)
    readings = system.detector.read(spectrum(system, u, seed=4))
    assert_allclose(readings, system(u, seed=4), rtol=1e-9)


def test_loss_and_long_fibres_keep_the_tolerance():
    u = some_inputs(5, 8)
    lossy = FibreSystem(power_dbm=7.1, length_m=40, fibre=Fibre(loss_db_per_km=1000.0), **QUIET)
    assert relative_error(lossy(u), replace(lossy, tolerance=1e-9)(u)).max() < 3e-4
    long = FibreSystem(power_dbm=-15.0, length_m=5000.0, **QUIET)
    assert relative_error(long(u), replace(long, grid=Grid(window_ps=4000.0))(u)).max() < 1e-3


def test_light_that_cannot_be_resolved_is_reported(monkeypatch):
    system = FibreSystem(power_dbm=7.1, length_m=40, **QUIET)
    for limit, value in (("MAX_HALVINGS", 1), ("MAX_BAND_FACTOR", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(f"infocap.photonics._fibre.{limit}", value)
            with pytest.warns(DataWarning, match="did not reach tolerance"):
                system(np.full((1, 5), 0.9))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("power_dbm", "expected"),
    [
        (-9.1, (9.2, 12.6, 21.8, 36.0)),
        (-1.9, (10.9, 14.1, 25.7, 40.9)),
        (1.0, (11.3, 15.9, 28.6, 45.2)),
        (4.5, (12.0, 19.3, 33.2, 51.0)),
        (7.1, (13.0, 22.5, 37.8, 54.1)),
    ],
)
def test_totals_are_those_of_an_independent_program(power_dbm, expected):
    """Algorithm 1, phase noise per cell, six seeds: totals found independently with another program."""
    found = []
    for n_inputs, degree, n in ((2, 14, 4096), (5, 8, 8192)):
        basis = infocap.product_basis("legendre", n_inputs, degree)
        system = FibreSystem(
            power_dbm=power_dbm, n_inputs=n_inputs, phase_noise="cell", tolerance=1e-4
        )
        totals = []
        for seed in range(6):
            net = qmc.Sobol(n_inputs, scramble=True, rng=seed).random(n)
            u = 2 * net - 1  # one Sobol net in its own order, as that program had
            totals.append(
                [
                    infocap.estimate(u, x, basis, method="threshold-richardson").total
                    for x in system.readouts(u, [5, 40], seed=seed)
                ]
            )
        found.extend(np.mean(totals, axis=0))
    assert_allclose(found[:2], expected[:2], atol=0.4)
    assert_allclose(found[2:], expected[2:], atol=0.8)


# What the authors' program Phot_sys.m (github.com/rumaram/infoprocap, commit 848affc, MIT) gives under
# Octave 7.3 without phase noise, by number of inputs, power and length. Its two nested functions were
# written out and its string comparisons replaced, which Octave lacks; nothing else was changed.
STORED = np.load(Path(__file__).with_name("phot_sys.npz"))
AUTHORS_SETTINGS = [(2, -1.9, 0.0), (2, 7.1, 5.0), (2, -1.9, 40.0), (5, 7.1, 5.0), (5, -1.9, 40.0)]


def largest_difference(system, n_inputs, power_dbm, length_m):
    """Between readouts of a system and the stored ones, over the largest readout; their units differ."""
    u = STORED[f"u{n_inputs}"]
    expected = STORED[f"{n_inputs} inputs, {power_dbm:g} dBm, {length_m:g} m"]
    found = system(u[:, ::-1])  # that program numbers the inputs from the other end
    unit = np.sum(found * expected) / np.sum(expected**2)
    return np.abs(found - unit * expected).max() / found.max()


@pytest.mark.parametrize("setting", AUTHORS_SETTINGS)
def test_readouts_are_those_of_the_authors_program(setting):
    n_inputs, power_dbm, length_m = setting
    settings = {"power_dbm": power_dbm, "length_m": length_m, "n_inputs": n_inputs, **QUIET}
    authors = FibreSystem.authors_program(**settings)
    assert largest_difference(authors, *setting) < 2e-3
    # Each of the differences from the text shows.
    for stage in (
        {"encoder": replace(authors.encoder, filter_ghz=12.0)},
        {"encoder": replace(authors.encoder, whole_cells=False)},
        {"detector": Detector()},
    ):
        assert largest_difference(replace(authors, **stage), *setting) > 1e-2


@pytest.mark.slow
def test_noise_takes_as_much_capacity_as_in_the_authors_program():
    """At 6.6 dBm and 5 m, with random noise of its own: total by Algorithm 1, at these inputs."""
    found_by_their_program = 12.11
    u = 2 * qmc.Sobol(2, rng=1).random(4096) - 1
    basis = infocap.product_basis("legendre", 2, 14)
    totals = []
    for seed in range(4):
        x = FibreSystem.authors_program(n_inputs=2)(u, seed=seed)
        totals.append(infocap.estimate(u, x, basis, method="threshold-richardson").total)
    scatter = np.std(totals, ddof=1)
    assert np.mean(totals) == pytest.approx(found_by_their_program, abs=4 * scatter)
    smoothed_everywhere = FibreSystem.authors_program(n_inputs=2)
    encoder = replace(smoothed_everywhere.encoder, filter_margin_nm=None)
    x = replace(smoothed_everywhere, encoder=encoder)(u, seed=0)
    result = infocap.estimate(u, x, basis, method="threshold-richardson")
    assert result.total > np.mean(totals) + 4 * scatter


@pytest.mark.parametrize("member", range(FibreSystem.n_published))
def test_single_precision_does_not_change_totals_of_the_twins(member):
    """A tolerance of 5e-6 allows single precision for the nonlinear part, a smaller one does not."""
    basis = infocap.product_basis("legendre", 2, 8)
    u = infocap.draw(basis, 512, seed=1)
    totals = []
    for tolerance in (5.0e-6, 4.9e-6):
        twin = FibreSystem.published(
            member=member, power_dbm=7.1, length_m=40.0, n_inputs=2, tolerance=tolerance
        )
        x = twin(u, seed=2)
        totals.append(infocap.estimate(u, x, basis, method="threshold-richardson").total)
        assert twin.uses_single_precision == (tolerance == 5.0e-6)
    assert totals[0] == pytest.approx(totals[1], abs=1e-3)
    assert totals[0] != totals[1]


def test_beyond_its_margin_the_filter_leaves_the_mask_as_it_is():
    noise = np.random.default_rng(1).standard_normal((3, 1024))
    u = some_inputs(2, n=3)
    everywhere = Encoder(n_inputs=2, phase_noise="cell")
    near = replace(everywhere, filter_margin_nm=0.25)
    offset_nm = np.abs(np.fft.fftfreq(1024, 1 / 1024)) / GHZ_PER_NM
    beyond = offset_nm > 1.25 + 0.25 + 0.005
    within = offset_nm < 1.25 + 0.25 - 0.005
    unfiltered = near.cells(u, noise)
    assert_allclose(mask(near, u, noise)[:, beyond], unfiltered[:, beyond])
    assert_allclose(mask(near, u, noise)[:, within], mask(everywhere, u, noise)[:, within])
    with pytest.raises(ParameterError, match=r"`filter_margin_nm=-1` must be"):
        Encoder(filter_margin_nm=-1)


def test_bins_of_whole_cells_are_nearly_those_of_the_text():
    equal = Encoder().bin_of_cell()
    whole = Encoder(whole_cells=True).bin_of_cell()
    width = np.bincount(whole, minlength=21)[:20]
    assert width.sum() == 313  # from -156 to 156 GHz
    assert set(width) == {15, 16, 17}
    assert np.mean(whole != equal) < 0.04
    assert np.abs(whole.astype(int) - equal)[(whole < 20) & (equal < 20)].max() == 1


@pytest.mark.slow
def test_totals_grow_with_power_and_length():
    basis = infocap.product_basis("legendre", 2, 14)
    u = infocap.draw(basis, 4096, seed=0)
    totals = np.array(
        [
            [
                infocap.estimate(u, x, basis).total
                for x in FibreSystem(power_dbm=power, n_inputs=2, tolerance=1e-4).readouts(
                    u, [5, 40], seed=0
                )
            ]
            for power in (-9.1, -1.9, 1.0, 4.5, 7.1)
        ]
    )
    assert np.all(np.diff(totals, axis=0) > 0)
    assert np.all(totals[:, 1] > totals[:, 0])


def test_bins_that_differ_stay_the_same_device_and_change_what_it_computes():
    u = infocap.draw(infocap.product_basis("legendre", 2, 1), 64, seed=0)
    settings = {"n_inputs": 2, "phase_noise": None}
    plain, one, again, other = (
        FibreSystem(encoder=Encoder(**settings, **more))(u)
        for more in (
            {},
            {"exponent_spread": 0.02, "phase_spread_rad": 0.02},
            {"exponent_spread": 0.02, "phase_spread_rad": 0.02},
            {"exponent_spread": 0.02, "phase_spread_rad": 0.02, "calibration_seed": 1},
        )
    )
    assert_allclose(one, again)
    assert np.abs(one - plain).max() > 1e-3 * plain.max()
    assert np.abs(one - other).max() > 1e-3 * plain.max()


@pytest.mark.filterwarnings("ignore:only .* readouts are linearly independent")
def test_rounding_does_not_pass_for_capacity_where_noise_leaves_readouts_without_it():
    """Before the fibre there are 13 functions. Phases of bins disturb few directions of 71 readouts, none the rest."""
    basis = infocap.product_basis("legendre", 5, 4)
    system = FibreSystem(length_m=0.0, n_inputs=5, phase_noise="bin")
    assert not system.uses_single_precision
    result = infocap.probe(system, basis, 2048, seed=1)
    assert result.rank < 40
    assert 12.4 < result.total < 13.0


def test_the_published_twin_takes_any_setting_and_has_no_phase_noise():
    for member in range(FibreSystem.n_published):
        system = FibreSystem.published(member=member, power_dbm=1.0, length_m=5.0, n_inputs=2)
        assert (system.power_dbm, system.length_m, system.phase_noise) == (1.0, 5.0, None)
        assert system.detector.noisy


def test_the_published_twins_are_several_and_the_best_is_the_default():
    lengths = [FibreSystem.published(member=k).fibre.prechirp_length_m for k in range(3)]
    assert lengths == [210.0, 244.0, 138.0]
    assert FibreSystem.published() == FibreSystem.published(member=0)
    with pytest.raises(ParameterError, match="`member=3` is not one of the 3 published fits; give"):
        FibreSystem.published(member=3)


def test_many_samples_are_propagated_on_two_threads_as_on_one():
    """Threads that draw the noise of several streams must not wait for each other."""
    system = FibreSystem(power_dbm=-1.9, length_m=5.0)
    u = some_inputs(5, 2100)
    found = {}

    def measured():
        for threads in (1, 2):
            with threadpool_limits(threads, "blas"):
                found[threads] = system(u, seed=1)

    worker = Thread(target=measured, daemon=True)
    worker.start()
    worker.join(timeout=120)
    assert_allclose(found[2], found[1], rtol=1e-5)


# ---- pictures ----------------------------------------------------------------------------------------------


def test_the_light_is_shown_at_each_stage():
    system = FibreSystem(length_m=40.0, n_inputs=2, **QUIET)
    u = np.array([[0.9, -0.5]])
    panels = infocap.photonics.plot.stages(system, u).axes
    assert len(panels) == 4
    laser, before, after = (line.get_ydata() for line in panels[0].lines)
    density = np.abs(system.stages(u)["before"][0]) ** 2 * system.pulse.density_unit * 1e6
    assert_allclose(np.sort(before), np.sort(density))
    assert before.sum() < laser.sum()
    assert after.sum() == pytest.approx(before.sum(), rel=1e-3)  # no loss
    laser_in_time = panels[1].lines[0].get_ydata()
    assert laser_in_time.max() == pytest.approx(system.peak_power_w, rel=1e-4)


def test_the_light_fits_into_a_part_of_a_figure():
    top, bottom = plt.figure(layout="constrained").subfigures(2, 1)
    system = FibreSystem(length_m=5.0, n_inputs=2)
    assert infocap.photonics.plot.stages(system, [[0.9, -0.5]], figure=top) is top
    assert len(top.axes) == 4
    assert len(bottom.axes) == 0
