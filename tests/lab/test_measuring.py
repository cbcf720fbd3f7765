"""What a measurement may be: one of many at once, a mean, taken after a while, less the dark level, with extra values."""

import os
import signal
import time
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import infocap
from infocap.errors import DataError, ParameterError
from infocap.lab import Plan, SimulatedBench, Store, acquire
from infocap.lab.experiment import read_store as read_entries

PLAN = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1)
NETWORK = infocap.systems.EchoState(8, noise=0.01)


def noisy(u, seed=None):
    noise = np.random.default_rng(seed).normal(size=(len(u), 4))
    return np.column_stack([u, u**2]) + noise


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
        return np.column_stack([u, u**2])


def test_many_rows_are_measured_at_once_and_stored_as_one_step(tmp_path):
    device = Generator()
    recording = acquire(PLAN, device, tmp_path / "run.db", progress=False)
    assert device.sizes == [10] * 6 + [4]
    assert_array_equal(recording.readouts, np.column_stack([PLAN.inputs, PLAN.inputs**2]))
    assert_array_equal(
        np.argsort(recording.time), PLAN.schedule.codes
    )  # the order within a batch, too


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
    found = [
        acquire(plan, SimulatedBench(noisy, batch=b), tmp_path / f"{b}.db", progress=False)
        for b in (1, 7, 500)
    ]
    for other in found[1:]:
        for name in ("inputs", "readouts", "repeats", "noise", "reference"):
            assert getattr(other, name).tobytes() == getattr(found[0], name).tobytes()


def test_a_batch_that_fails_is_asked_for_again_and_the_failure_names_its_rows(tmp_path):
    recording = acquire(PLAN, Generator({2, 3}), tmp_path / "run.db", wait_s=0, progress=False)
    assert_array_equal(recording.inputs, PLAN.inputs)
    first, last = PLAN.schedule.codes[[10, 19]]
    assert (
        f"(OSError: no trigger, 2 times), at sample {first} to sample {last}" in recording.checks[0]
    )
    with pytest.raises(
        DataError, match=r"failed 1 times at sample \d+ to sample \d+ \(OSError: no trigger\)"
    ):
        acquire(PLAN, Generator({3}), tmp_path / "other.db", retries=0, progress=False)
    assert len(infocap.read(tmp_path / "other.db").design_index) == 20


@pytest.mark.parametrize(("gives", "said"), [
    (lambda u: u[:-1], "measure_many gave 9 rows for 10 inputs"),
    (lambda u: [*u[:-1], [1.0]], r"have 1 channels; this store has 2"),
    (lambda u: np.where(np.arange(len(u))[:, None] == 3, np.nan, u), "it gave no finite number"),
    (lambda u: (u, {"T": [1.0, 2.0]}), "ValueError"),
])  # fmt: skip
def test_a_batch_with_a_row_that_is_wrong_is_a_failure_and_nothing_of_it_is_stored(
    gives, said, tmp_path
):
    class Device:
        batch = 10

        def measure_many(self, u):
            return gives(u)

    with pytest.raises(DataError, match=said):
        acquire(PLAN, Device(), tmp_path / "run.db", retries=0, progress=False)
    assert read_entries(tmp_path / "run.db").measurements == []


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

    assert len(acquire(PLAN, Interrupted(), tmp_path / "run.db", progress=False).design_index) == 30
    with pytest.raises(ParameterError, match="batch=0` must be a whole number, 1 or more"):
        acquire(
            PLAN, type("Wrong", (Generator,), {"batch": 0}), tmp_path / "run.db", progress=False
        )


def with_readouts(measurements, readouts):
    pairs = zip(measurements, readouts, strict=True)
    return [replace(measurement, readouts=row) for measurement, row in pairs]


def test_rows_stored_together_are_all_there_or_none(tmp_path):
    with Store(tmp_path / "run.db", PLAN) as store:
        some = list(store.remaining())[:5]
        store.record(some[3].number, [1.0, 2.0])
        with pytest.raises(
            DataError, match=f"sample {some[3].number} is stored already with other readouts"
        ):
            store.record_many(store.checked(with_readouts(some, np.zeros((5, 2)))))
        assert len(store) == 1
        readouts = [[0.0, 0.0]] * 3 + [[1.0, 2.0]] + [[0.0, 0.0]]
        store.record_many(store.checked(with_readouts(some, readouts)))  # the same twice is no harm
        assert len(store) == 5
    assert sorted(infocap.read(tmp_path / "run.db").design_index) == sorted(
        one.number for one in some
    )


# --- means, settling


@pytest.mark.parametrize("batch", [1, 9])
def test_a_measurement_is_the_mean_of_as_many_readings_as_the_plan_says(batch, tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, averages=100)
    recording = acquire(
        plan, SimulatedBench(noisy, batch=batch), tmp_path / "run.db", progress=False
    )
    error = recording.readouts - np.column_stack([plan.inputs, plan.inputs**2])
    assert error.std() == pytest.approx(0.1, rel=0.2)  # 256 errors of a tenth
    assert Plan.load(plan.save(tmp_path / "plan.toml")) == plan
    assert plan.fingerprint != PLAN.fingerprint


def test_readings_of_different_length_have_no_mean(tmp_path):
    class Hasty:
        count = 0

        def measure(self, u):
            self.count += 1
            return u[: 1 if self.count == 1 else 2]

    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, averages=2)
    with pytest.raises(
        DataError, match=r"failed 1 times at sample 5 .*sample 5 have 2 channels; .*n_readouts"
    ):
        acquire(plan, Hasty(), tmp_path / "run.db", retries=0, progress=False)
    for name, given in {
        "found": plan,
        "told": Plan.from_dict(plan.to_dict() | {"n_readouts": 2}),
    }.items():
        recording = acquire(given, Hasty(), tmp_path / f"{name}.db", wait_s=0, progress=False)
        assert_array_equal(recording.readouts, plan.inputs)
        assert "the instrument failed 1 times and was asked again" in recording.checks[0]


def test_a_reading_that_fails_is_asked_for_again_without_the_others_of_its_mean(tmp_path):
    class Shaky:
        count = 0

        def measure(self, u):
            self.count += 1
            if self.count % 10 == 0:
                raise OSError("no answer")
            return u

    plan = Plan(n_inputs=2, max_degree=3, n_samples=16, seed=1, averages=100)
    device = Shaky()
    recording = acquire(plan, device, tmp_path / "run.db", wait_s=0, progress=False)
    assert_allclose(recording.readouts, plan.inputs, rtol=1e-12)
    assert device.count < 1800  # a tenth of all failed


def test_an_instrument_that_never_gives_the_same_number_of_channels_is_given_up(tmp_path):
    class Flickering:
        count = 0

        def measure(self, u):
            self.count += 1
            return u[: 1 + self.count % 2]

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


def test_a_plan_that_the_instrument_cannot_follow_is_refused_before_anything_is_measured(tmp_path):
    calls = []

    class Device:
        def measure(self, u):
            calls.append("measure")

        def safe(self):
            calls.append("safe")

    for number, (settings, said) in enumerate([
        ({"settle_s": 0.1}, r"`settle_s=0.1` needs a parameter of that name in measure\(\) of the instrument 'Device'"),
        ({"dark_every": 8}, r"`dark_every=8` needs a method dark\(\) of the instrument 'Device'"),
    ]):  # fmt: skip
        with pytest.raises(ParameterError, match=said):
            acquire(
                Plan(n_inputs=2, n_samples=64, **settings),
                Device(),
                tmp_path / f"{number}.db",
                progress=False,
            )
    assert calls == ["safe", "safe"]
    for wrong in ({"averages": 0}, {"settle_s": -1}, {"dark_every": 2, "max_delay": {1: 3}}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            Plan(n_inputs=2, n_samples=64, **wrong)


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
        return [self.measure(one) for one in u]

    def dark(self):
        return np.full(4, self.level)


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
    assert plan.schedule.names[2] == ("dark", 0)
    detector = Detector()
    detector.batch = batch
    recording = acquire(plan, detector, tmp_path / "run.db", progress=False)
    true = np.column_stack([plan.inputs, plan.inputs**2])
    assert np.abs(recording.readouts - true).max() <= 0.04 + 1e-12  # four readings after a dark one
    twice = np.isfinite(recording.repeats[:, 0])
    assert twice.sum() == 16
    assert np.abs(recording.repeats - true)[twice].max() <= 0.04 + 1e-12
    assert (
        recording.checks[0]
        == "21 measurements with the source off: from each other one, the latest before it was subtracted."
    )
    assert recording.checks[0].found == {"dark": 21}
    measurements = read_entries(tmp_path / "run.db").measurements
    raw = [measured.readouts for measured in measurements if measured.kind == "sample"]
    assert np.min(raw) > 4
    kept = infocap.read(recording.save(tmp_path / "run.nc"))
    assert_array_equal(kept.readouts, recording.readouts)
    assert kept.checks[0].found == {"dark": 21}


def test_dark_levels_measured_with_other_software_are_subtracted(tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, dark_every=4)
    plan.write_inputs(tmp_path / "inputs.csv")
    rows = [line.split(",") for line in (tmp_path / "inputs.csv").read_text().splitlines()[2:]]
    assert rows[0] == ["-3", "", ""]
    detector = Detector()
    x = [
        detector.dark() if row[0] == "-3" else detector.measure(np.array(row[1:], dtype=float))
        for row in rows
    ]
    np.savetxt(tmp_path / "readouts.csv", x, delimiter=",")
    recording = infocap.read(tmp_path / "inputs.csv", tmp_path / "readouts.csv")
    true = np.column_stack([plan.inputs, plan.inputs**2])
    assert_allclose(recording.inputs, plan.inputs)
    assert np.abs(recording.readouts - true).max() <= 0.04 + 1e-12


# --- extra values


class Warm:
    """Tells its temperature, and sometimes a power."""

    def __init__(self):
        self.count = 0

    def measure(self, u):
        self.count += 1
        more = {"Power [mW]": u[0]} if self.count % 2 else {}
        return np.append(u, u**2), {"Room [K]": 293 + 0.01 * self.count} | more


def test_extra_values_are_kept_in_store_recording_and_file_and_are_drawn(tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, repeat_every=4)
    recording = acquire(plan, Warm(), tmp_path / "run.db", progress=False)
    place = [k for k, (kind, _) in enumerate(plan.schedule.names) if kind == "sample"]
    row = plan.schedule.codes[place]
    for found in (recording, infocap.read(recording.save(tmp_path / "run.nc"))):
        assert found.extra_names == ("Room [K]", "Power [mW]") or found.extra_names == (
            "Power [mW]",
            "Room [K]",
        )
        room, power = (
            found.extra[:, found.extra_names.index(name)] for name in ("Room [K]", "Power [mW]")
        )
        assert_allclose(room[row], 293 + 0.01 * (np.array(place) + 1))
        told = np.isfinite(power)
        assert 20 < told.sum() < 44
        assert_array_equal(power[told], found.inputs[told, 0])
        ax = infocap.plot.extra_value(found, "Room [K]")
        assert_allclose(ax.lines[0].get_ydata(), np.sort(room))
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (s)", "Room [K]")
        plt.close("all")
        with pytest.raises(
            ParameterError, match=r"`name='Rom'` is no extra value of this recording, which has \['"
        ):
            infocap.plot.extra_value(found, "Rom")
    with pytest.raises(ParameterError, match=r"which has \[\]"):
        infocap.plot.extra_value(infocap.Recording(np.zeros((3, 1)), np.zeros((3, 1)), range(3)))


def test_extra_values_of_a_mean_are_those_of_its_last_reading(tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=8, seed=1, averages=3, n_readouts=4)
    recording = acquire(plan, Warm(), tmp_path / "run.db", progress=False)
    room = recording.extra[:, recording.extra_names.index("Room [K]")]
    assert_allclose(np.sort(room), 293 + 0.01 * 3 * np.arange(1, 9))


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
        def measure(self, u, seed=None):
            return super().measure(u, seed), {"Room [K]": 293.0}

    nights = []
    for seed, bench in ((1, Night(device)), (2, SimulatedBench(device))):
        plan = Plan(n_inputs=2, max_degree=4, n_samples=512, seed=seed)
        acquire(plan, bench, tmp_path / f"night{seed}.db", progress=False)
        nights.append(tmp_path / f"night{seed}.db")
    together = infocap.read(nights)
    assert together.extra_names == ("Room [K]",)
    assert np.isfinite(together.extra).sum() == 512
    with pytest.warns(infocap.errors.DataWarning, match="the files are of 2 plans"):
        both = infocap.estimate(together, basis=basis)
    one = infocap.estimate(infocap.read(nights[0]), basis=basis)
    exact = infocap.probe(device, basis, 1 << 16, seed=9).total
    assert both.n_samples == 1024
    assert both.total_standard_error == pytest.approx(
        one.total_standard_error / np.sqrt(2), rel=0.35
    )
    assert abs(both.total - exact) < 4 * both.total_standard_error


# --- what is finished


def test_a_finished_plan_opens_no_instrument_unless_the_last_run_crashed(tmp_path):
    made = []

    class Device:
        def __init__(self):
            made.append("made")

        def measure(self, u):
            return u

        def safe(self):
            made.append("safe")

    path = tmp_path / "run.db"
    first = acquire(PLAN, Device, path, progress=False)
    assert made == ["made", "safe"]
    events = read_entries(path).events
    again = acquire(PLAN, Device, path, progress=False)
    assert made == ["made", "safe"]
    assert read_entries(path).events == events
    assert_array_equal(again.readouts, first.readouts)
    with Store(path) as store:
        store.note(
            "begun", instrument="Device"
        )  # as if the process had been killed after its last row
    acquire(PLAN, Device, path, progress=False)
    assert made == ["made", "safe", "made", "safe", "safe"]


def test_settling_costs_its_time_once_per_measurement(tmp_path):
    level = []
    device = infocap.lab.adapters.SetAndRead([level.append, level.append], [lambda: level[-2:]])
    plan = Plan(n_inputs=2, max_degree=1, n_samples=8, seed=1, averages=50, settle_s=0.02)
    start = time.monotonic()
    recording = acquire(plan, device, tmp_path / "run.db", progress=False)
    assert 8 * 0.02 <= time.monotonic() - start < 8 * 50 * 0.02
    assert_allclose(recording.readouts, plan.inputs)
