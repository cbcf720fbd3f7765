"""What N samples will tell: the formula against simulations, and its bounds."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import infocap
from infocap.errors import DataError, ParameterError
from infocap.theory import forecast, forecast_from
from infocap.theory._forecast import RareNoise, Spectrum, _largest_transition, scatter

BASIS = infocap.product_basis("legendre", 2, 8)
SMALL = infocap.product_basis("legendre", 2, 5)


def unexplained_shares(system):
    """v of every direction of a mixture: noise over noise plus signal, the constant readout aside."""
    signal = system.weights[:, system.active > 0]
    noise = np.diag(system.noise_scale**2)
    root = np.linalg.inv(np.linalg.cholesky(signal @ signal.T + noise))
    return np.linalg.eigvalsh(root @ noise @ root.T)


def errors_of_the_total(system, n_samples, count, **options):
    exact = system.exact().sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", infocap.errors.DataWarning)
        results = [
            infocap.probe(system, system.basis, n_samples, seed=seed, **options)
            for seed in range(count)
        ]
    return np.array([result.total - exact for result in results]), results


def agrees(measured, expected, count, factor):
    """A scatter from `count` data sets is known to 1/sqrt(2 count); 4 times that is allowed for chance."""
    chance = 1 + 4 / np.sqrt(2 * count)
    return expected / (factor * chance) < measured < expected * factor * chance


@pytest.mark.thorough
@pytest.mark.parametrize(("noise", "n"), [(0.3, 256), (1.0, 256), (3.0, 84)])
def test_the_scatter_of_the_total_is_that_of_the_formula(noise, n):
    """With 12 samples a function the first term is the larger one, with 4 the second."""
    count = 40
    system = infocap.theory.random_mixture(SMALL, n_active=15, n_readouts=8, noise=noise, seed=3)
    v = unexplained_shares(system)
    assert v.sum() == pytest.approx(9 - system.exact().sum())
    expected = scatter(n, len(SMALL), Spectrum(np.sum(v**2), np.sum(v**2 - v**4)))
    errors, _ = errors_of_the_total(system, n, count, design="random")
    assert agrees(errors.std(ddof=1), expected, count, factor=1.2)


@pytest.mark.thorough
@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_the_error_lies_in_the_range_foreseen_from_the_total_alone(noise):
    count = 30
    system = infocap.theory.random_mixture(SMALL, n_active=15, n_readouts=8, noise=noise, seed=4)
    expected = forecast(SMALL, 8, unexplained=1 - system.exact().sum() / 9).at(256)
    errors, _ = errors_of_the_total(system, 256, count)
    chance = 1 + 4 / np.sqrt(2 * count)
    assert expected.low / chance < np.sqrt(np.mean(errors**2)) < expected.high * chance


@pytest.mark.thorough
def test_a_pilot_foretells_the_error_of_a_longer_run_within_a_factor_of_two():
    count = 20
    system = infocap.theory.random_mixture(SMALL, n_active=15, n_readouts=8, noise=0.5, seed=5)
    _, pilots = errors_of_the_total(system, 128, 5)
    expected = np.median([forecast_from(pilot).at(1024).typical for pilot in pilots])
    errors, _ = errors_of_the_total(system, 1024, count)
    assert agrees(np.sqrt(np.mean(errors**2)), expected, count, factor=2.0)


@pytest.mark.thorough
def test_the_influence_of_single_samples_has_the_variance_of_the_total():
    """With 24 samples a function most of the scatter is of first order, and normal noise has the sum over v."""
    count = 60
    n = 512
    system = infocap.theory.random_mixture(SMALL, n_active=15, n_readouts=8, noise=0.5, seed=3)
    errors, results = errors_of_the_total(system, n, count, design="random", weighted=False)
    influence = np.median([result.influence_variance for result in results])
    assert agrees(errors.std(ddof=1), np.sqrt(influence / n), count, factor=1.2)
    v = unexplained_shares(system)
    assert agrees(influence, 2 * np.sum(v**2 - v**4), count, factor=1.3)


def pilot_of(noise, **options):
    """The result of 256 samples of a mixture."""
    system = infocap.theory.random_mixture(SMALL, n_active=15, n_readouts=8, noise=noise, seed=5)
    return infocap.probe(system, SMALL, 256, seed=1, **options)


def test_a_pilot_knows_the_share_that_the_functions_leave():
    noise = 0.5
    system = infocap.theory.random_mixture(SMALL, n_active=15, n_readouts=8, noise=noise, seed=5)
    v = unexplained_shares(system)
    expected = forecast_from(pilot_of(noise))
    assert expected.unexplained == pytest.approx(v.sum(), rel=0.1)
    assert expected.spectra[0].sum_of_squares == pytest.approx(np.sum(v**2), rel=0.2)
    assert expected.spectra[0].transition == pytest.approx(np.sum(v**2 - v**4), rel=0.4)


def test_a_pilot_whose_samples_of_noise_are_too_few_is_foreseen_by_its_error_bar():
    """So few carry the noise, even at 1024 samples, that its directions cannot be told apart."""
    expected = forecast_from(pilot_with_rare_noise(n_carriers=1.0, error=2.0))
    assert expected.at(1024).typical == pytest.approx(2.0 * (256 / 1024) ** 0.5, rel=0.01)
    assert expected.at(2**20).typical < 0.6 * 2.0 * (256 / 2**20) ** 0.5


def test_with_many_samples_rare_noise_scatters_as_often_as_it_is_rare():
    """Products of residuals are as large as these are rare; the rest is that of normal noise."""
    pilot = pilot_with_rare_noise(n_carriers=20.0, error=100.0)
    expected = forecast_from(pilot)
    v = np.linalg.eigvalsh(pilot.residual_covariance).clip(0, 1)
    rarity = expected.rare_noise.samples_per_carrier
    assert rarity == pytest.approx(256 / 20, rel=0.3)  # up to the noise of the directions' number
    n_samples = 2**22
    least = np.sqrt(2 * np.sum(v**2 - v**4) / n_samples)
    assert least < expected.at(n_samples).typical < 1.3 * least * rarity**0.5


def pilot_with_rare_noise(n_carriers, error):
    pilot = pilot_of(0.5)
    warning = infocap.errors.Check("it rests on few samples.", effective_samples=n_carriers)
    return replace(pilot, checks=(*pilot.checks, warning), total_standard_error=error)


def test_the_scatter_of_covariances_with_few_carriers_is_that_of_their_inverse():
    """1 / W of a Wishart distribution with n degrees of freedom in ν dimensions: its variance."""
    n, n_directions = 30, 4
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((4000, n, n_directions))
    inverse = np.linalg.inv(np.einsum("sni,snj->sij", normal, normal) / n)
    relative_variance = inverse[:, 0, 0].var()
    noise = RareNoise(samples_per_carrier=1.0, n_directions=n_directions, most=np.inf)
    expected = noise.first_order(n, asymptotic=2.0)
    # The variance of 4000 numbers with heavier tails than normal ones is known to 5 %; the exact
    # one has n - ν - 1 and n - ν - 3 in place of n - ν.
    assert relative_variance == pytest.approx(expected, rel=0.35)
    assert relative_variance > 1.3 * 2.0 / n


def test_pilots_with_garbage_among_their_shots_foretell_the_scatter_of_more():
    basis = infocap.product_basis("legendre", 2, 4)
    system = infocap.systems.RandomFeatures(2, 8, noise=0.02, seed=3)

    def result_of(n_samples, seed):
        rng = np.random.default_rng(seed)
        u = infocap.draw(basis, n_samples, seed=seed)
        x = system(u, seed=seed)
        is_garbage = rng.random(n_samples) < 0.02
        x[is_garbage] = 2 * rng.standard_normal((is_garbage.sum(), 8))
        return infocap.estimate(u, x, basis)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        foreseen = [forecast_from(result_of(256, seed)).at(1024).typical for seed in range(8)]
        totals = [result_of(1024, 100 + seed).total for seed in range(16)]
    # A standard deviation of 16 totals is known to 18 %, two of these are allowed.
    ratio = np.std(totals, ddof=1) / np.median(foreseen)
    assert 0.5 * (1 - 2 * 0.18) < ratio < 1.5 * (1 + 2 * 0.18)


def test_a_pilot_with_a_longer_error_bar_than_its_residuals_say_foresees_the_geometric_mean():
    pilot = pilot_of(0.5)
    by_formulas = replace(forecast_from(pilot), factor=1.0).at(256).typical
    long_bar = replace(pilot, total_standard_error=9 * by_formulas)
    assert forecast_from(long_bar).at(256).typical == pytest.approx(3 * by_formulas)
    assert forecast_from(long_bar).at(4096).typical == pytest.approx(
        3 * replace(forecast_from(pilot), factor=1.0).at(4096).typical
    )
    short_bar = replace(pilot, total_standard_error=by_formulas / 9)
    assert forecast_from(short_bar).at(256).typical == pytest.approx(by_formulas)


def test_the_range_about_a_pilot_is_half_to_one_and_a_half(tmp_path):
    pilot = pilot_of(0.5)
    expected = forecast_from(pilot).at(1024)
    assert expected.low == pytest.approx(0.5 * expected.typical)
    assert expected.high == pytest.approx(1.5 * expected.typical)
    again = infocap.load_result(pilot.save(tmp_path / "pilot.nc"))
    assert forecast_from(again).at(1024) == expected
    # A table has no residuals, and its error bar is taken apart.
    table = infocap.load_result(pilot.save(tmp_path / "pilot.csv"))
    assert forecast_from(table).at(256).typical == pytest.approx(pilot.total_standard_error)


@pytest.mark.parametrize(
    ("basis", "n_readouts", "n_samples", "reason"),
    [
        (SMALL, 8, 256, "8 for each function"),
        (SMALL, 99, 512, "4 for each readout"),
        (
            infocap.delayed_basis("legendre", max_delay={1: 40}),
            8,
            4096,
            "96 for each step of the delay",
        ),
    ],
)
def test_a_pilot_is_long_enough_for_what_it_has_to_tell(basis, n_readouts, n_samples, reason):
    expected = forecast(basis, n_readouts)
    assert expected.pilot_samples == n_samples
    assert expected.reason_for_pilot_samples == reason


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [512, 2048, 8192])
@pytest.mark.parametrize("design", ["sobol", "random"])
def test_the_error_of_other_devices_lies_below_the_high_end(n_samples, design):
    """Random features with noise: their residuals are not normal, their spectrum decays."""
    count = 30
    basis = infocap.product_basis("legendre", 2, 10)
    system = infocap.systems.RandomFeatures(2, 40, gain=2.0, noise=0.02, seed=6)
    exact = exact_total(system, basis)
    expected = forecast(basis, 40, unexplained=1 - exact / 41).at(n_samples)
    errors = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", infocap.errors.DataWarning)
        for seed in range(count):
            result = infocap.probe(system, basis, n_samples, seed=seed, design=design)
            errors.append(result.total - exact)
    chance = 1 + 4 / np.sqrt(2 * count)
    root_mean_square = np.sqrt(np.mean(np.square(errors)))
    assert expected.low / (2 * chance) < root_mean_square < expected.high * chance


def exact_total(system, basis):
    """The total of random features with noise, by quadrature."""
    nodes, weights = basis.quadrature(60)
    without_noise = replace(system, noise=0.0)
    x = np.column_stack([np.ones(len(nodes)), without_noise(nodes)])
    weighted = np.sqrt(weights)[:, None] * x
    noise = system.noise * np.eye(41)
    noise[0, 0] = 0.0  # the constant has none
    frame, _ = np.linalg.qr(np.vstack([weighted, noise]))
    projection = frame[: len(nodes)].T @ (np.sqrt(weights)[:, None] * basis(nodes))
    return np.sum(projection**2)


@given(
    v=st.lists(st.floats(0, 1), min_size=3, max_size=40),
    n=st.sampled_from([512, 4096]),
)
def test_no_spectrum_of_noise_scatters_more_than_the_bound(v, n):
    v = np.array([0.0, *v])
    expected = forecast(BASIS, len(v) - 1, unexplained=float(v.mean())).at(n)
    assert (
        scatter(n, len(BASIS), Spectrum(np.sum(v**2), np.sum(v**2 - v**4))) <= expected.high + 1e-12
    )


@given(error=st.floats(0.02, 5), readouts=st.integers(1, 60), unexplained=st.floats(0, 1))
def test_the_recommended_number_is_the_smallest_power_of_two_that_does(
    error, readouts, unexplained
):
    expected = forecast(BASIS, readouts, unexplained=unexplained)
    n = expected.samples_needed(error)
    assert n & (n - 1) == 0
    assert expected.at(n).high <= error
    assert n // 2 < expected.least_samples or expected.at(n // 2).high > error


@pytest.mark.parametrize("s", [0.1, 0.5, 0.577, 0.58, 0.8, 1.0])
def test_the_bound_on_the_first_term_is_reached_by_the_worst_distribution_and_by_none_exceeded(s):
    """The largest mean of v² - v⁴ over all distributions of v on [0, 1] with the mean s, by linear programming."""
    v = np.linspace(0, 1, 4001)
    worst = linprog(-(v**2 - v**4), A_eq=[np.ones_like(v), v], b_eq=[1.0, s], method="highs")
    assert worst.success
    assert s * _largest_transition(s) == pytest.approx(-worst.fun, abs=1e-7)


def test_without_noise_the_fewest_samples_do():
    expected = forecast(BASIS, 10, unexplained=0.0)
    assert expected.samples_needed(1e-9) == 256
    assert expected.at(256).high == 0


def test_the_default_is_at_most_half_of_what_the_worst_device_has():
    for n in (256, 1024, 8192):
        assert forecast(BASIS, 30, unexplained=1.0).at(n).high <= 2 * forecast(BASIS, 30).at(n).high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: forecast(BASIS, 10).samples_needed(0), "error=0` must be a positive number"),
        (
            lambda: forecast(BASIS, 10).samples_needed(1e-7),
            "would take more than 16,777,216 samples",
        ),
        (lambda: forecast(BASIS, 10, unexplained=1.2), "is a share of the readouts; give 0 to 1"),
        (
            lambda: forecast(BASIS, 10).range_needed(1e-9),
            "would take more than 16,777,216 samples",
        ),
        (lambda: forecast(BASIS, 0), "n_readouts=0` must be a whole number, 1 or more"),
        (
            lambda: forecast(BASIS, 10).at(64),
            "fewer than 90, 2 for each of 45 functions and 4 for each of 10 readouts and the constant",
        ),
        (
            lambda: forecast(infocap.product_basis("hermite", 2, 8), 10).samples_needed(1.0),
            "Lower the degree, or use draw_weighted",
        ),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_a_pilot_that_says_nothing_is_refused():
    few = infocap.product_basis("legendre", 2, 3)
    result = infocap.probe(lambda u: u, few, 64, seed=1)
    with pytest.raises(DataError, match="64 samples for 45 functions"):
        forecast_from(replace(result, basis=BASIS))
    with pytest.raises(DataError, match="estimated by 'raw'"):
        forecast_from(replace(result, method="raw", total_standard_error=None))
