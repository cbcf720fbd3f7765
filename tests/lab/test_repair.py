"""What `diagnose(...).repaired()` puts right, and that it leaves everything else as it was measured."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from faulty_data import BASIS as WIDE_BASIS
from faulty_data import MISTAKES
from faulty_data import U as RIGHT_INPUTS
from faulty_data import X as RIGHT_READOUTS
from numpy.testing import assert_array_equal

import infocap
from infocap.workflow import repair

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")

BASIS = infocap.product_basis("legendre", 2, 6)
N = 1024
# Causes of mistakes in tests/lab/faulty_data.py that are exact, and repaired.
REPAIRED = {
    *("a slip", "a slip backwards to the end", "reversed", "SCPI's code", "-9999"),
    *("stacked", "repeats"),
}


def tanh_units(u, seed):
    device = infocap.systems.RandomFeatures(u.shape[1], 12, noise=1e-2, seed=5)
    return device(u, seed=seed)


def rings(u, seed):
    generator = np.random.default_rng(3)
    phase = u @ (2 * generator.standard_normal((u.shape[1], 10)))
    phase = phase + 2 * np.pi * generator.random(10)
    noise = 2e-3 * np.random.default_rng(seed).standard_normal(phase.shape)
    return 1 - 1 / (1 + (20 * np.sin(phase / 2)) ** 2) + noise


def steps(u, seed):
    generator = np.random.default_rng(4)
    position = u @ generator.standard_normal((u.shape[1], 8)) + generator.uniform(-1, 1, 8)
    return np.sign(position) + 0.02 * np.random.default_rng(seed).standard_normal(position.shape)


def converter(u, seed):
    response = 40 * np.tanh(u @ np.random.default_rng(6).standard_normal((u.shape[1], 6)))
    noise = np.random.default_rng(seed).standard_normal(response.shape)
    return np.round(response + noise).astype(np.int16)


def photon_counts(u, seed):
    rate = np.exp(3 + 1.5 * (u @ np.random.default_rng(8).uniform(-1, 1, (u.shape[1], 6))))
    return np.random.default_rng(seed).poisson(rate)


DEVICES = (tanh_units, rings, steps, converter, photon_counts)


def autocorrelated(n, seed):
    """Return uniform inputs behind a filter."""
    generator = np.random.default_rng(seed)
    z = generator.standard_normal((n, 2))
    for row in range(1, n):
        z[row] = 0.95 * z[row - 1] + np.sqrt(1 - 0.95**2) * z[row]
    ranks = np.argsort(np.argsort(z, axis=0), axis=0)
    return 2 * (ranks + 0.5) / n - 1


def there_and_back(n):
    """Return inputs of a sweep that comes to every point twice."""
    way = infocap.draw(BASIS, n // 2, seed=4, design="random")
    way = way[np.argsort(way[:, 0])]
    return np.vstack([way, way[::-1]])


def inputs_in_orders(seed):
    u = infocap.draw(BASIS, N, seed=seed, design="random")
    grid = np.linspace(-1, 1, 32)
    return {
        "random": u,
        "sobol": infocap.draw(BASIS, N, seed=seed),
        "sorted": u[np.argsort(u[:, 0])],
        "permuted": u[np.argsort(u[:, 0])][np.random.default_rng(seed).permutation(N)],
        "sorted halfway": np.vstack([u[: N // 2], u[N // 2 :][np.argsort(u[N // 2 :, 0])]]),
        "autocorrelated": autocorrelated(N, seed),
        "swept": np.column_stack([np.linspace(-1, 1, N), u[:, 1]]),
        "raster": np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2),
        "held": np.repeat(u[: N // 8], 8, axis=0),
        "periodic": np.tile(u[: N // 4], (4, 1)),
        "there and back": there_and_back(N),
    }


def recorded(u, x, **more):
    return infocap.Recording(u, x, np.arange(len(u)), **more)


def outcome(recording, basis=BASIS):
    return repair(infocap.diagnose(recording, basis=basis))


def measured(seed=1, device=tanh_units, n=N):
    u = infocap.draw(BASIS, n, seed=seed)
    return u, device(u, seed + 10)


def part_moved(x, shift, start, stop):
    moved = x.copy()
    moved[start:stop] = np.roll(x, shift, axis=0)[start:stop]
    return moved


def plain(recording):
    """Return the recording's record of repairs, which must be plain data."""
    repairs = recording.metadata["repairs"]
    assert json.loads(json.dumps(repairs)) == repairs
    return repairs


# Correct data are left alone.


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", inputs_in_orders(1))
def test_correct_data_stay_as_they_are_in_any_order(device, order):
    u = inputs_in_orders(1)[order]
    assert infocap.diagnose(u, device(u, 11), BASIS).repaired() is None


@pytest.mark.parametrize("family", ["bernoulli", "fourier", "hermite"])
def test_correct_data_of_other_inputs_stay_as_they_are(family):
    basis = infocap.product_basis(family, 3, 3)
    u = infocap.draw(basis, N, seed=2, design="random")
    assert infocap.diagnose(u, tanh_units(u, 3), basis).repaired() is None


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.95])
def test_correct_sequences_stay_as_they_are(decay):
    basis = infocap.delayed_basis("legendre", max_delay={1: 8, 2: 3})
    u = infocap.draw(basis, 2000, seed=1)
    weights = np.random.default_rng(1).standard_normal((2, 6))
    state = np.zeros((2000, 6))
    for step in range(1, 2000):
        state[step] = np.tanh(decay * state[step - 1] + u[step] * weights[0] + weights[1])
    x = state + 1e-3 * np.random.default_rng(2).standard_normal(state.shape)
    assert infocap.diagnose(u, x, basis).repaired() is None


def real_recordings():
    path = Path(__file__).parents[2] / "benchmarks" / "_real_recordings.py"
    if not path.exists():
        return None, ()
    spec = importlib.util.spec_from_file_location("_real_recordings", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by its name
    spec.loader.exec_module(module)
    return module.data_folder(None), module.RECORDINGS


FOLDER, REAL_RECORDINGS = real_recordings()


@pytest.mark.parametrize("real", REAL_RECORDINGS, ids=lambda real: real.name)
@pytest.mark.parametrize("is_declared", [True, False])
def test_correct_recordings_of_others_stay_as_they_are(real, is_declared):
    if not (FOLDER / real.folder).is_dir():
        pytest.skip("the recordings of others are not here")
    recording = real.read(FOLDER)
    basis = real.declare(recording) if is_declared else None
    assert infocap.diagnose(recording, basis=basis).repaired() is None


@pytest.mark.parametrize("mistake", sorted(set(MISTAKES) - REPAIRED))
def test_what_is_not_exact_is_left_to_the_user(mistake):
    found = outcome(recorded(*MISTAKES[mistake]()), WIDE_BASIS)
    assert found.recording is None
    assert len(found.reason) > 40


@pytest.mark.parametrize("mistake", sorted(REPAIRED))
def test_what_is_exact_is_repaired_and_gives_the_right_total(mistake, tmp_path):
    found = outcome(recorded(*MISTAKES[mistake]()), WIDE_BASIS)
    left = [check.found.get("cause") for check in found.diagnosis.checks if check.kind == "warning"]
    assert left in ([], ["missing"])
    assert len(plain(found.recording)) == 1
    again = infocap.read(found.recording.save(tmp_path / "repaired.nc"))
    assert again.metadata["repairs"] == found.recording.metadata["repairs"]
    result = infocap.estimate(again, basis=WIDE_BASIS, nan_policy="omit", method="raw")
    right = infocap.estimate(RIGHT_INPUTS, RIGHT_READOUTS, WIDE_BASIS, method="raw")
    assert result.total == pytest.approx(right.total, abs=0.15)


# Shifts and slips.


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shift", [-7, -3, -1, 1, 3, 7])
def test_a_shift_is_undone_exactly(device, shift):
    u, x = measured(device=device)
    repaired = infocap.diagnose(u, np.roll(x, shift, axis=0), BASIS).repaired()
    kept = repaired.design_index
    assert_array_equal(kept, np.arange(N)[max(-shift, 0) : N - max(shift, 0)])
    assert_array_equal(repaired.inputs, u[kept])
    assert_array_equal(repaired.readouts, x[kept])
    assert repaired.readouts.dtype == x.dtype
    (record,) = plain(repaired)
    assert record["shifts"] == [[0, N, shift]]
    assert record["findings"][0]["cause"] == "shift"
    assert record["infocap"] == infocap.__version__


@pytest.mark.parametrize("device", [tanh_units, converter, photon_counts])
@pytest.mark.parametrize("shift", [-3, -1, 1, 2])
@pytest.mark.parametrize("stop", [2 * N // 3, N])
def test_a_slip_is_undone_to_the_row(device, shift, stop):
    # With photon noise the row at an end of the slip may fit as well without it, as with seed 1.
    u, x = measured(seed=2, device=device)
    repaired = infocap.diagnose(u, part_moved(x, shift, N // 3, stop), BASIS).repaired()
    kept = repaired.design_index
    assert len(kept) == N - abs(shift)
    assert_array_equal(repaired.inputs, u[kept])
    assert_array_equal(repaired.readouts, x[kept])


def test_a_shift_in_the_order_of_acquisition_is_undone_and_the_times_stay_with_the_inputs():
    u, x = measured()
    order = np.random.default_rng(2).permutation(N)  # of the rows, as they were measured
    time = np.argsort(order)
    late = np.empty_like(x)
    late[order] = np.roll(x[order], 1, axis=0)
    extra = np.arange(2.0 * N).reshape(N, 2)
    repaired = outcome(recorded(u, late, time=time, extra=extra)).recording
    kept = repaired.design_index
    assert_array_equal(np.setdiff1d(np.arange(N), kept), order[-1:])
    assert_array_equal(repaired.readouts, x[kept])
    assert_array_equal(repaired.time, time[kept])
    assert_array_equal(repaired.extra, extra[kept])


@pytest.mark.slow
def test_a_slip_through_several_parts_of_a_long_run_is_undone():
    u, x = measured(n=20_000)
    repaired = outcome(recorded(u, part_moved(x, 1, 7000, 19_000))).recording
    kept = repaired.design_index
    assert_array_equal(repaired.readouts, x[kept])
    assert plain(repaired)[0]["shifts"] == [[7000, 19_000, 1]]


def test_slips_that_add_up_are_undone():
    u, x = measured(n=2048)
    kept = np.delete(np.arange(2048), [500, 1000, 1500])  # triggers that were lost
    late = x[[*kept, 0, 1, 2]]  # and three readouts of a later run
    repaired = outcome(recorded(u, late)).recording
    assert_array_equal(repaired.design_index, kept)
    assert_array_equal(repaired.readouts, x[kept])


def test_of_two_readouts_of_one_input_the_second_is_kept_in_the_record():
    u, x = measured()
    late = part_moved(x, 1, 500, 800)
    late[500] = tanh_units(u, 99)[499]  # measured again, and not copied
    repaired = infocap.diagnose(u, late, BASIS).repaired()
    assert_array_equal(repaired.readouts, x[repaired.design_index])
    second = plain(repaired)[0]["second_readouts"]
    assert (second["rows"], second["rows_of_inputs"]) == ([500], [499])
    assert_array_equal(second["values"], late[[500]])


def test_rows_stay_where_they_would_not_pass_all_tests():
    u, x = measured()
    both = np.roll(x, 1, axis=0)
    both[300:600] += 0.5 * np.roll(x, 4, axis=0)[300:600]
    found = outcome(recorded(u, both))
    assert [check.found["cause"] for check in found.diagnosis.checks][:1] == ["shift"]
    assert found.recording is None
    assert "would not pass all tests" in found.reason


def test_rows_stay_where_too_many_have_no_partner():
    u, x = measured()
    found = outcome(recorded(u, np.roll(x, N // 4, axis=0)))
    assert found.recording is None
    assert f"{N // 4} of {N} rows would be left without a partner" in found.reason


def test_rows_stay_where_the_place_of_a_slip_is_not_clear():
    u = infocap.draw(BASIS, 2048, seed=1)
    noise = 2 * np.random.default_rng(1).standard_normal((2048, 3))
    x = u @ np.random.default_rng(6).standard_normal((2, 3)) + noise
    found = outcome(recorded(u, part_moved(x, -3, 700, 2048)))
    assert found.recording is None
    assert "are not clear" in found.reason


def test_rows_stay_where_the_inputs_are_in_doubt():
    u, x = measured()
    found = outcome(recorded(0.8 * u, np.roll(x, 3, axis=0)))
    assert found.recording is None


def test_rows_with_repeats_stay():
    u, x = measured()
    found = outcome(
        recorded(u, np.roll(x, 1, axis=0), repeats=np.roll(tanh_units(u, 5), 1, axis=0))
    )
    assert found.recording is None
    assert "their repeats" in found.reason


def test_a_slip_of_a_sequence_is_left_to_the_user():
    basis = infocap.delayed_basis("legendre", max_delay={1: 4})
    u = infocap.draw(basis, 3000, seed=1)
    past = np.hstack([u, np.roll(u, 1, axis=0), np.roll(u, 2, axis=0)])
    x = past @ np.random.default_rng(1).standard_normal((3, 5))
    x += 0.01 * np.random.default_rng(2).standard_normal(x.shape)
    found = outcome(recorded(u, part_moved(x, 5, 1000, 2000)), basis)
    assert [check.found.get("cause") for check in found.diagnosis.checks] == ["slip"]
    assert "--fix" not in found.diagnosis.checks[0]
    assert found.recording is None
    assert "sequence" in found.reason


# Codes.


CODES = [9.91e37, -9.9e37, -9999.0, 99999.0, 32767.0, 4294967295.0]


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # of 9.91e37 in mV
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("device", [tanh_units, rings])
def test_cells_with_codes_become_missing_and_every_other_cell_stays(code, device):
    u, x = measured(device=device)
    generator = np.random.default_rng(3)
    is_code = np.zeros(x.shape, dtype=bool)
    is_code[generator.integers(0, N, 9), generator.integers(0, x.shape[1], 9)] = True
    repaired = infocap.diagnose(u, np.where(is_code, code, x), BASIS).repaired()
    assert_array_equal(repaired.readouts, np.where(is_code, np.nan, x))
    assert_array_equal(repaired.inputs, u)
    (record,) = plain(repaired)
    cells = record["cells"]
    assert set(zip(cells["rows"], cells["channels"], strict=True)) == {
        (int(row), int(channel)) for row, channel in np.argwhere(is_code)
    }
    assert set(cells["values"]) == {code}


def test_codes_are_known_in_single_precision_and_in_complex_readouts():
    u, x = measured()
    single = x.astype(np.float32)
    single[[5, 60, 70, 200], 3] = 9.91e37
    repaired = infocap.diagnose(u, single, BASIS).repaired()
    assert repaired.readouts.dtype == np.float32
    assert np.isnan(repaired.readouts).sum() == 4
    complex_readouts = x + 1j * tanh_units(u[:, ::-1], 4)
    complex_readouts[[5, 60, 70, 200], 3] = -9999 - 9999j
    repaired = infocap.diagnose(u, complex_readouts, BASIS).repaired()
    assert np.isnan(repaired.readouts).sum() == 4
    assert plain(repaired)[0]["cells"]["values"][0] == [-9999, -9999]


def test_whole_numbers_keep_all_their_digits():
    u, x = measured(device=photon_counts)
    offset = 2**40 + 1
    large = x + offset
    large[[5, 60, 70, 200], 3] = 32767
    repaired = infocap.diagnose(u, large, BASIS).repaired()
    kept = np.isfinite(repaired.readouts)
    assert_array_equal(repaired.readouts[kept].astype(np.int64), large[kept])
    larger = x + 2**60
    larger[[5, 60, 70, 200], 3] = 32767
    assert infocap.diagnose(u, larger, BASIS).repaired() is None


def test_a_number_that_a_channel_may_measure_is_no_code():
    """Counts in a tail reach 999, and a converter its full scale."""
    u, _ = measured()
    rate = np.exp(5 + 2.2 * u @ np.random.default_rng(2).uniform(-1, 1, (2, 6)))
    x = np.minimum(np.random.default_rng(3).poisson(rate), 999)
    assert infocap.diagnose(u, x, BASIS).repaired() is None


def test_a_value_that_only_comes_often_is_no_code():
    u, x = measured()
    x[np.random.default_rng(3).choice(N, 40, replace=False), 2] = x[:, 2].mean()
    found = outcome(recorded(u, x))
    assert [check.found["cause"] for check in found.diagnosis.checks] == ["codes"]
    assert found.recording is None
    assert "--fix" not in found.diagnosis.checks[0]


# Rows that are there twice.


def test_of_exact_copies_one_is_kept():
    u, x = measured()
    u3 = np.vstack([u, u, u[:100]])
    x3 = np.vstack([x, x, x[:100]])
    repaired = outcome(recorded(u3, x3, time=np.arange(len(u3)))).recording
    assert_array_equal(repaired.inputs, u)
    assert_array_equal(repaired.readouts, x)
    (record,) = plain(repaired)
    assert record["left_out"]["rows"] == list(range(N, len(u3)))
    assert record["first_rows"] == [*range(N), *range(100)]
    assert record["left_out"]["time"] == record["left_out"]["rows"]


def test_second_measurements_become_repeats_and_keep_their_times_in_the_record():
    u, x = measured()
    again = tanh_units(u[:300], 99)
    time = np.random.default_rng(1).permutation(N + 300)
    recording = recorded(np.vstack([u, u[:300]]), np.vstack([x, again]), time=time)
    repaired = outcome(recording).recording
    assert_array_equal(repaired.readouts, x)
    assert_array_equal(repaired.repeats[:300], again)
    assert np.isnan(repaired.repeats[300:]).all()
    assert plain(repaired)[0]["repeats"]["time"] == time[N:].tolist()


def test_a_third_measurement_is_not_lost():
    u, x = measured()
    u3 = np.vstack([u, u[:300], u[:300]])
    x3 = np.vstack([x, tanh_units(u[:300], 98), tanh_units(u[:300], 99)])
    found = outcome(recorded(u3, x3))
    assert found.recording is None
    assert "measured three times" in found.reason
    with_repeats = recorded(np.vstack([u, u]), np.vstack([x, tanh_units(u, 98)]))
    more = replace(with_repeats, repeats=np.vstack([tanh_units(u, 97), np.full(x.shape, np.nan)]))
    assert "measured three times" in outcome(more).reason


def test_copies_with_changes_are_not_taken_for_repeats():
    u, x = measured()
    changed = x.copy()
    changed[:50] += 0.1
    found = outcome(recorded(np.vstack([u, u]), np.vstack([x, changed])))
    assert found.recording is None
    assert "copies in part" in found.reason


def test_inputs_that_were_written_down_twice_are_not_taken_for_repeats():
    u, x = measured()
    wrong = u.copy()
    wrong[20::20] = u[19:-1:20]  # the row before was written once more
    found = outcome(recorded(wrong, x))
    assert [check.found["cause"] for check in found.diagnosis.checks][:1] == ["repeats"]
    assert found.recording is None
    assert "nothing in common" in found.reason


def test_discrete_inputs_are_equal_by_law():
    basis = infocap.product_basis("bernoulli", 6, 3)
    u = infocap.draw(basis, 600, seed=2, design="random")
    x = infocap.systems.RandomFeatures(6, 12, noise=1e-3, seed=4)(u, seed=1)
    found = outcome(recorded(np.vstack([u, u]), np.vstack([x, x])), basis)
    assert found.diagnosis.checks[0].found["cause"] == "stacked"
    assert "--fix" not in found.diagnosis.checks[0]
    assert found.recording is None
    assert "by law" in found.reason


# Several mistakes at once: nothing that was measured is lost.


@pytest.mark.parametrize("shift", [-3, 1, 7])
def test_a_shift_under_codes_is_undone(shift):
    # With some seeds other cells look like codes, too, and the shift is left as it is.
    u, x = measured(seed=2)
    damaged = np.roll(x, shift, axis=0)
    generator = np.random.default_rng(5)
    cells = generator.integers(0, N, 15), generator.integers(0, x.shape[1], 15)
    damaged[cells] = -9999.0
    is_code = np.roll(damaged == -9999.0, -shift, axis=0)
    found = outcome(recorded(u, damaged))
    kept = found.recording.design_index
    assert len(kept) == N - abs(shift)
    assert_array_equal(found.recording.readouts, np.where(is_code, np.nan, x)[kept])
    causes = [record["findings"][0]["cause"] for record in plain(found.recording)]
    assert causes == ["codes", "shift"]


@pytest.mark.parametrize("seed", range(6))
def test_every_measured_cell_is_found_in_the_outcome(seed):
    """Whatever mistakes are combined: numbers of the file are in the outcome, or codes or copies."""
    generator = np.random.default_rng(seed)
    u, x = measured(seed=seed)
    if seed % 2:
        x = part_moved(x, int(generator.choice([-2, -1, 1, 2])), 300, 700)
    if seed % 3 == 0:
        again = tanh_units(u[:200], 50 + seed)
        u = np.vstack([u, u[:200]])
        x = np.vstack([x, again])
    if seed % 3 == 1:
        u = np.vstack([u, u[:200]])
        x = np.vstack([x, x[:200]])
    x[generator.integers(0, len(x), 8), generator.integers(0, x.shape[1], 8)] = 9.91e37
    x[generator.integers(0, len(x), 8), generator.integers(0, x.shape[1], 8)] = np.nan
    repaired = outcome(recorded(u, x)).recording
    assert not np.any(repaired.readouts == 9.91e37)
    values = repaired.readouts.ravel()
    if repaired.repeats is not None:
        values = np.concatenate([values, repaired.repeats.ravel()])
    without_partner = 0
    for record in plain(repaired):
        without_partner += len(record.get("rows_of_readouts_without_inputs", ()))
        values = np.concatenate(
            [values, np.ravel(record.get("second_readouts", {}).get("values", []))]
        )
    expected = np.unique(x[np.isfinite(x) & (x != 9.91e37)])
    lost = np.setdiff1d(expected, values)
    assert len(lost) <= without_partner * x.shape[1]
    assert without_partner <= 2


def test_missing_values_stay_missing():
    u, x = measured()
    x[[3, 500, 900], 2] = np.nan
    found = outcome(recorded(u, x))
    assert found.recording is None
    assert "omit" in found.diagnosis.checks[0]
    repaired = infocap.diagnose(u, np.roll(x, 1, axis=0), BASIS).repaired()
    assert_array_equal(repaired.readouts, x[:-1])


@pytest.mark.slow
def test_a_recording_in_a_file_is_repaired_as_a_whole(tmp_path):
    u, x = measured(n=20_000)
    np.save(tmp_path / "x.npy", np.roll(x, 3, axis=0))
    in_file = np.load(tmp_path / "x.npy", mmap_mode="r")
    repaired = outcome(recorded(u, in_file)).recording
    assert_array_equal(repaired.readouts, x[:-3])


@pytest.mark.parametrize("hole", [np.nan, np.inf])
def test_a_slip_of_complex_readouts_with_holes_is_undone(hole):
    u, x = measured()
    x = x + 1j * tanh_units(u[:, ::-1], 4)
    x[[100, 399, 400, 900], 3] = hole
    repaired = infocap.diagnose(u, part_moved(x, 1, 400, N), BASIS).repaired()
    assert_array_equal(repaired.readouts, x[:-1])


def test_a_second_repair_finds_nothing_and_the_record_stays():
    u, x = measured()
    repaired = infocap.diagnose(u, np.roll(x, 1, axis=0), BASIS).repaired()
    assert infocap.diagnose(repaired, basis=BASIS).repaired() is None
    late = replace(repaired, readouts=np.roll(repaired.readouts, 1, axis=0))
    assert len(infocap.diagnose(late, basis=BASIS).repaired().metadata["repairs"]) == 2
