"""What a measurement may be: one of many at once, a mean, taken after a while, less the dark level, with extra values."""

import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from instruments import Echo, with_squares
from numpy.testing import assert_allclose, assert_array_equal

import infocap
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.lab import Plan, SimulatedBench, Store, acquire
from infocap.lab.experiment import read_store

PLAN = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1)
NETWORK = infocap.systems.EchoState(8, noise=0.01)


def noisy(u, seed=None):
    return with_squares(u) + np.random.default_rng(seed).normal(size=(len(u), 4))


class Generator:
    """Plays all rows of its memory, and the scope gives as many frames."""

    batch = 10

    def __init__(self, failing=()):
        self.sizes = []
        self.failing = set(failing)

    def measure_many(self, u):
        self.sizes.append(len(u))
        if len(self.sizes) in self.failing:
            raise OSError("no trigger")
        return with_squares(u)


def test_many_rows_are_measured_at_once_and_stored_as_one_step(tmp_path):
    device = Generator()
    recording = acquire(PLAN, device, tmp_path / "run.db", progress=False)
    assert device.sizes == [10] * 6 + [4]
    assert_array_equal(recording.readouts, with_squares(PLAN.inputs))
    # The order within a batch counts, too.
    assert_array_equal(np.argsort(recording.time), PLAN.schedule.codes)


def test_rows_are_the_same_bytes_in_batches_of_any_size(tmp_path):
    plan = Plan(
        n_inputs=2,
        max_degree=3,
        n_samples=64,
        seed=1,
        noise_repeats=3,
        repeat_every=3,
        reference_every=9,
    )

    def acquire_in_batches(size):
        bench = SimulatedBench(noisy, batch=size)
        return acquire(plan, bench, tmp_path / f"{size}.db", progress=False)

    expected = acquire_in_batches(1)
    for size in (7, 500):
        recording = acquire_in_batches(size)
        for name in ("inputs", "readouts", "repeats", "noise", "reference"):
            assert getattr(recording, name).tobytes() == getattr(expected, name).tobytes()


def test_a_batch_that_fails_is_asked_for_again_and_the_failure_names_its_rows(tmp_path):
    recording = acquire(PLAN, Generator({2, 3}), tmp_path / "run.db", wait_s=0, progress=False)
    assert_array_equal(recording.inputs, PLAN.inputs)
    first, last = PLAN.schedule.codes[[10, 19]]
    words = f"(OSError: no trigger, 2 times), at sample {first} to sample {last}"
    assert words in recording.checks[0]


def test_a_batch_that_fails_for_good_ends_the_run_after_the_batches_before_it(tmp_path):
    message = r"failed 1 time at sample \d+ to sample \d+ \(OSError: no trigger\)"
    with pytest.raises(DataError, match=message):
        acquire(PLAN, Generator({3}), tmp_path / "other.db", retries=0, progress=False)
    assert len(infocap.read(tmp_path / "other.db").design_index) == 20


WRONG_BATCHES = {
    "too few rows": (lambda u: u[:-1], "measure_many gave 9 rows for 10 inputs"),
    "a short row": (lambda u: [*u[:-1], [1.0]], r"have 1 channels; this store has 2"),
    "a row of NaN": (
        lambda u: np.where(np.arange(len(u))[:, None] == 3, np.nan, u),
        "it gave no finite number",
    ),
    "too few extra values": (lambda u: (u, {"T": [1.0, 2.0]}), "ValueError"),
}


@pytest.mark.parametrize(("answer", "message"), WRONG_BATCHES.values(), ids=WRONG_BATCHES.keys())
def test_a_batch_with_a_row_that_is_wrong_is_a_failure_and_nothing_of_it_is_stored(
    answer, message, tmp_path
):
    class Device:
        batch = 10

        def measure_many(self, u):
            return answer(u)

    with pytest.raises(DataError, match=message):
        acquire(PLAN, Device(), tmp_path / "run.db", retries=0, progress=False)
    assert read_store(tmp_path / "run.db").measurements == []


def test_a_device_with_memory_gets_several_runs_at_once(tmp_path):
    plan = Plan(max_delay={1: 5}, n_samples=80, runs=4, repeat_every=2, seed=1)
    single = acquire(plan, SimulatedBench(NETWORK), tmp_path / "1.db", progress=False)
    batched = acquire(plan, SimulatedBench(NETWORK, batch=4), tmp_path / "4.db", progress=False)
    assert single.readouts.tobytes() == batched.readouts.tobytes()
    assert single.repeats.tobytes() == batched.repeats.tobytes()


def test_ctrl_c_ends_after_the_batch(tmp_path):
    class Interrupted(Generator):
        def measure_many(self, u):
            if len(self.sizes) == 2:
                os.kill(os.getpid(), signal.SIGINT)
            return super().measure_many(u)

    recording = acquire(PLAN, Interrupted(), tmp_path / "run.db", progress=False)
    assert len(recording.design_index) == 30


def test_a_batch_of_no_rows_is_refused(tmp_path):
    class Wrong(Generator):
        batch = 0

    with pytest.raises(ParameterError, match="batch=0` must be a whole number, 1 or more"):
        acquire(PLAN, Wrong, tmp_path / "run.db", progress=False)


def with_readouts(measurements, readouts):
    pairs = zip(measurements, readouts, strict=True)
    return [replace(measurement, readouts=row) for measurement, row in pairs]


def test_rows_stored_together_are_all_there_or_none(tmp_path):
    with Store(tmp_path / "run.db", PLAN) as store:
        measurements = list(store.remaining())[:5]
        number = measurements[3].number
        store.record(number, [1.0, 2.0])
        message = f"sample {number} is stored already with other readouts"
        with pytest.raises(DataError, match=message):
            store.record_many(store.checked(with_readouts(measurements, np.zeros((5, 2)))))
        assert len(store) == 1

        readouts = np.zeros((5, 2))
        readouts[3] = [1.0, 2.0]  # the same twice is no harm
        store.record_many(store.checked(with_readouts(measurements, readouts)))
        assert len(store) == 5
    stored = infocap.read(tmp_path / "run.db").design_index
    assert sorted(stored) == sorted(measurement.number for measurement in measurements)


# --- means, settling


@pytest.mark.parametrize("batch", [1, 9])
def test_a_measurement_is_the_mean_of_as_many_readings_as_the_plan_says(batch, tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, averages=100)
    bench = SimulatedBench(noisy, batch=batch)
    recording = acquire(plan, bench, tmp_path / "run.db", progress=False)
    error = recording.readouts - with_squares(plan.inputs)
    # The standard deviation of 256 errors of a tenth, within four of its standard errors.
    assert error.std() == pytest.approx(0.1, rel=4 / np.sqrt(2 * error.size))
    assert Plan.load(plan.save(tmp_path / "plan.toml")) == plan
    assert plan.fingerprint != PLAN.fingerprint


class ShortAtFirst(Echo):
    """Gives one channel at the first call, and two at all others."""

    def answer(self, u):
        if self.n_calls == 1:
            return u[:1]
        return u


AVERAGED_PLAN = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, averages=2)


def test_readings_of_different_length_have_no_mean(tmp_path):
    message = r"failed 1 time at sample 5 .*sample 5 have 2 channels; .*n_readouts"
    with pytest.raises(DataError, match=message):
        acquire(AVERAGED_PLAN, ShortAtFirst(), tmp_path / "run.db", retries=0, progress=False)


@pytest.mark.parametrize("settings", [{}, {"n_readouts": 2}], ids=["found out", "in the plan"])
def test_readings_of_different_length_are_asked_for_again(settings, tmp_path):
    plan = Plan.from_dict(AVERAGED_PLAN.to_dict() | settings)
    recording = acquire(plan, ShortAtFirst(), tmp_path / "run.db", wait_s=0, progress=False)
    assert_array_equal(recording.readouts, plan.inputs)
    assert "the instrument failed 1 time and was asked again" in recording.checks[0]


def test_a_reading_that_fails_is_asked_for_again_without_the_others_of_its_mean(tmp_path):
    class Shaky(Echo):
        def answer(self, u):
            if self.n_calls % 10 == 0:
                raise OSError("no answer")
            return u

    plan = Plan(n_inputs=2, max_degree=3, n_samples=16, seed=1, averages=100)
    device = Shaky()
    recording = acquire(plan, device, tmp_path / "run.db", wait_s=0, progress=False)
    assert_allclose(recording.readouts, plan.inputs, rtol=1e-12)
    assert device.n_calls < 1800  # a tenth of all failed


def test_an_instrument_that_never_gives_the_same_number_of_channels_is_given_up(tmp_path):
    class Flickering(Echo):
        def answer(self, u):
            return u[: 1 + self.n_calls % 2]

    plan = Plan(n_inputs=2, max_degree=3, n_samples=16, seed=1, averages=4)
    with pytest.raises(DataError, match="failed 4 times at sample"):
        acquire(plan, Flickering(), tmp_path / "run.db", wait_s=0, progress=False)


def test_a_driver_may_average_and_wait_by_itself(tmp_path):
    asked = []

    class Scope:
        def measure(self, u, settle_s, averages):
            asked.append((settle_s, averages))
            return u

    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, averages=16, settle_s=0.25)
    acquire(plan, Scope(), tmp_path / "run.db", progress=False)
    assert asked == [(0.25, 16)] * 64


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"settle_s": 0.1},
            r"`settle_s=0.1` needs a parameter of that name in measure\(\) of the instrument 'Device'",
        ),
        ({"dark_every": 8}, r"`dark_every=8` needs a method dark\(\) of the instrument 'Device'"),
    ],
    ids=["settle_s", "dark_every"],
)
def test_a_plan_that_the_instrument_cannot_follow_is_refused_before_anything_is_measured(
    settings, message, tmp_path
):
    calls = []

    class Device:
        def measure(self, u):
            calls.append("measure")

        def safe(self):
            calls.append("safe")

    plan = Plan(n_inputs=2, n_samples=64, **settings)
    with pytest.raises(ParameterError, match=message):
        acquire(plan, Device(), tmp_path / "run.db", progress=False)
    assert calls == ["safe"]


@pytest.mark.parametrize(
    "settings",
    [{"averages": 0}, {"settle_s": -1}, {"dark_every": 2, "max_delay": {1: 3}}],
    ids=["averages", "settle_s", "dark_every"],
)
def test_means_and_times_without_meaning_are_refused(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        Plan(n_inputs=2, n_samples=64, **settings)


# --- the dark level


class Detector:
    """A detector whose dark level rises with every reading."""

    batch = 1

    def __init__(self):
        self.level = 5.0

    def measure(self, u):
        self.level += 0.01
        return np.append(u, u**2) + self.level

    def measure_many(self, u):
        return [self.measure(row) for row in u]

    def dark(self):
        return np.full(4, self.level)


# Four readings after a dark level, the level has risen by so much.
MAX_RISE = 0.04 + 1e-12


@pytest.mark.parametrize("batch", [1, 6])
def test_the_latest_dark_level_is_subtracted_and_the_store_keeps_what_was_measured(batch, tmp_path):
    plan = Plan(
        n_inputs=2,
        max_degree=3,
        n_samples=64,
        seed=1,
        dark_every=4,
        repeat_every=4,
        noise_repeats=2,
    )
    assert plan.schedule.keys[2] == ("dark", 0)
    detector = Detector()
    detector.batch = batch
    recording = acquire(plan, detector, tmp_path / "run.db", progress=False)
    signal = with_squares(plan.inputs)
    assert np.abs(recording.readouts - signal).max() <= MAX_RISE
    is_repeated = np.isfinite(recording.repeats[:, 0])
    assert is_repeated.sum() == 16
    assert np.abs(recording.repeats - signal)[is_repeated].max() <= MAX_RISE
    assert recording.checks[0] == (
        "21 dark measurements (source off): from every other measurement the latest dark one "
        "was subtracted."
    )
    assert recording.checks[0].found == {"dark": 21}

    measurements = read_store(tmp_path / "run.db").measurements
    stored = [measurement.readouts for measurement in measurements if measurement.kind == "sample"]
    assert np.min(stored) > 4
    loaded = infocap.read(recording.save(tmp_path / "run.nc"))
    assert_array_equal(loaded.readouts, recording.readouts)
    assert loaded.checks[0].found == {"dark": 21}


def test_dark_levels_measured_with_other_software_are_subtracted(tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, dark_every=4)
    plan.write_inputs(tmp_path / "inputs.csv")
    rows = [line.split(",") for line in (tmp_path / "inputs.csv").read_text().splitlines()[2:]]
    assert rows[0] == ["-3", "", ""]  # a dark level has no inputs
    detector = Detector()
    x = []
    for index, *inputs in rows:
        if index == "-3":
            x.append(detector.dark())
        else:
            x.append(detector.measure(np.array(inputs, dtype=float)))
    np.savetxt(tmp_path / "readouts.csv", x, delimiter=",")
    recording = infocap.read(tmp_path / "inputs.csv", tmp_path / "readouts.csv")
    assert_allclose(recording.inputs, plan.inputs)
    assert np.abs(recording.readouts - with_squares(plan.inputs)).max() <= MAX_RISE


# --- extra values


class Warm(Echo):
    """Tells its temperature, and at every other call a power."""

    def answer(self, u):
        extra = {"Room [K]": 293 + 0.01 * self.n_calls}
        if self.n_calls % 2:
            extra["Power [mW]"] = u[0]
        return np.append(u, u**2), extra


def extra_of(recording, name):
    """One extra value of all rows."""
    return recording.extra[:, recording.extra_names.index(name)]


@pytest.mark.parametrize("is_loaded", [False, True], ids=["acquired", "loaded"])
def test_extra_values_are_kept_in_store_recording_and_file(is_loaded, tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, repeat_every=4)
    recording = acquire(plan, Warm(), tmp_path / "run.db", progress=False)
    if is_loaded:
        recording = infocap.read(recording.save(tmp_path / "run.nc"))
    assert sorted(recording.extra_names) == ["Power [mW]", "Room [K]"]

    kinds = [kind for kind, _ in plan.schedule.keys]
    places_of_samples = np.array([place for place, kind in enumerate(kinds) if kind == "sample"])
    rows = plan.schedule.codes[places_of_samples]
    number_of_call = places_of_samples + 1
    assert_allclose(extra_of(recording, "Room [K]")[rows], 293 + 0.01 * number_of_call)
    power = extra_of(recording, "Power [mW]")
    is_known = np.isfinite(power)
    assert 20 < is_known.sum() < 44
    assert_array_equal(power[is_known], recording.inputs[is_known, 0])


def test_extra_values_are_drawn_against_time(tmp_path):
    recording = acquire(PLAN, Warm(), tmp_path / "run.db", progress=False)
    ax = infocap.plot.extra_value(recording, "Room [K]")
    assert_allclose(ax.lines[0].get_ydata(), np.sort(extra_of(recording, "Room [K]")))
    assert ax.get_xlabel() == "time (s)"
    assert ax.get_ylabel() == "Room [K]"
    message = r"`name='Rom'` is no extra value of this recording, which has \['"
    with pytest.raises(ParameterError, match=message):
        infocap.plot.extra_value(recording, "Rom")


def test_a_recording_without_extra_values_has_none_to_draw():
    recording = infocap.Recording(np.zeros((3, 1)), np.zeros((3, 1)), range(3))
    with pytest.raises(ParameterError, match=r"which has \[\]"):
        infocap.plot.extra_value(recording)


def test_extra_values_of_a_mean_are_those_of_its_last_reading(tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=8, seed=1, averages=3, n_readouts=4)
    recording = acquire(plan, Warm(), tmp_path / "run.db", progress=False)
    last_calls = 3 * np.arange(1, 9)
    assert_allclose(np.sort(extra_of(recording, "Room [K]")), 293 + 0.01 * last_calls)


def test_extra_values_of_dark_levels_alone_are_none_of_the_samples(tmp_path):
    class Cold(Detector):
        def dark(self):
            return super().dark(), {"Shutter [K]": 4.0}

    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, dark_every=8)
    assert acquire(plan, Cold(), tmp_path / "run.db", progress=False).extra_names == ()


def test_several_nights_are_one_source_with_error_bars_and_their_extra_values(tmp_path):
    device = infocap.systems.RandomFeatures(2, 8, noise=0.05, seed=2)
    basis = infocap.product_basis("legendre", 2, 4)

    class Night(SimulatedBench):
        def measure_many(self, u, seed):
            return super().measure_many(u, seed), {"Room [K]": np.full(len(u), 293.0)}

    nights = []
    benches = (Night(device, batch=64), SimulatedBench(device, batch=64))
    for seed, bench in enumerate(benches, start=1):
        plan = Plan(n_inputs=2, max_degree=4, n_samples=512, seed=seed)
        nights.append(tmp_path / f"night{seed}.db")
        acquire(plan, bench, nights[-1], progress=False)
    recording = infocap.read(nights)
    assert recording.extra_names == ("Room [K]",)
    assert np.isfinite(recording.extra).sum() == 512

    with pytest.warns(DataWarning, match="the files are of 2 plans"):
        result = infocap.estimate(recording, basis=basis)
    of_one_night = infocap.estimate(infocap.read(nights[0]), basis=basis)
    assert result.n_samples == 1024
    expected_error = of_one_night.total_standard_error / np.sqrt(2)
    assert result.total_standard_error == pytest.approx(expected_error, rel=0.35)
    exact = infocap.probe(device, basis, 1 << 16, seed=9).total
    assert abs(result.total - exact) < 4 * result.total_standard_error


# --- what is finished


@pytest.fixture
def made_and_safe():
    """A device, and a list of when one was made and when it was asked to be safe."""
    calls = []

    class Device(Echo):
        def __init__(self):
            super().__init__()
            calls.append("made")

        def safe(self):
            calls.append("safe")

    return Device, calls


def test_a_finished_plan_opens_no_instrument(made_and_safe, tmp_path):
    device, calls = made_and_safe
    path = tmp_path / "run.db"
    expected = acquire(PLAN, device, path, progress=False)
    events = read_store(path).events
    recording = acquire(PLAN, device, path, progress=False)
    assert calls == ["made", "safe"]
    assert read_store(path).events == events
    assert_array_equal(recording.readouts, expected.readouts)


def test_a_finished_plan_opens_the_instrument_after_a_crash_to_make_it_safe(
    made_and_safe, tmp_path
):
    device, calls = made_and_safe
    path = tmp_path / "run.db"
    acquire(PLAN, device, path, progress=False)
    with Store(path) as store:
        # As if the process had been killed after its last row.
        store.note("begun", instrument="Device")
    acquire(PLAN, device, path, progress=False)
    assert calls == ["made", "safe", "made", "safe", "safe"]


def test_settling_costs_its_time_once_per_measurement(tmp_path):
    levels = []
    device = infocap.lab.adapters.SetAndRead([levels.append, levels.append], [lambda: levels[-2:]])
    plan = Plan(n_inputs=2, max_degree=1, n_samples=8, seed=1, averages=50, settle_s=0.02)
    start = time.monotonic()
    recording = acquire(plan, device, tmp_path / "run.db", progress=False)
    assert 8 * 0.02 <= time.monotonic() - start < 8 * 50 * 0.02
    assert_allclose(recording.readouts, plan.inputs)
