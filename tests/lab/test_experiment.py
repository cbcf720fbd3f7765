"""In the lab: plans, the store, the acquisition loop, and how a run stands."""

import json
import os
import shutil
import signal
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.basis import jacobi
from infocap.errors import DataError, ParameterError
from infocap.lab import Plan, SimulatedBench, Store, acquire, status
from infocap.lab.experiment import simulated_bench as simulated

PLAN = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1)


def square(u):
    return np.column_stack([u, u**2])


# --- plans


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        Plan(
            family="hermite",
            n_inputs=3,
            max_degree=2,
            n_samples=32,
            seed=9,
            order="doubling",
            blocks=2,
        ),
        Plan(family="hermite", n_inputs=2, max_degree=8, n_samples=512, seed=9),
        Plan(
            family=jacobi(1, 2),
            n_inputs=2,
            domain=(0, 5),
            input_unit="V",
            channel=("a", 'b "quoted"', "µW\t"),
        ),
        Plan(
            family=["legendre", jacobi(0.5, 0.5)],
            n_inputs=2,
            max_interactions=1,
            noise_input=(0.1, -1e-17),
        ),
        Plan(
            title="Beam time, № 7",
            metadata={"operator": "Ada", "settings": {"a b": [1, 2.5, True]}, "x\x7f": "\\"},
        ),
    ],
)
def test_a_plan_survives_its_file_and_keeps_its_fingerprint(plan, tmp_path):
    again = Plan.load(plan.save(tmp_path / "plan.toml"))
    assert again == plan
    assert again.fingerprint == plan.fingerprint
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


def test_a_plan_that_its_file_cannot_hold_is_refused(tmp_path):
    with pytest.raises(
        ParameterError, match="None, infinity and NaN cannot be kept in a plan's file"
    ):
        Plan(metadata={"settings": [1, None]}).save(tmp_path / "plan.toml")
    with pytest.raises(ParameterError, match="nan: None, infinity and NaN cannot be kept"):
        Plan(metadata={"temperature_k": np.nan}).save(tmp_path / "plan.toml")
    assert list(tmp_path.iterdir()) == []


def test_what_is_measured_makes_the_fingerprint_and_words_do_not():
    def changed(**settings):
        return Plan.from_dict({**PLAN.to_dict(), **settings}).fingerprint

    assert changed(title="other", metadata={"a": 1}) == PLAN.fingerprint
    others = [
        changed(seed=2),
        changed(n_samples=128),
        changed(order="design"),
        changed(repeat_every=2),
        changed(domain=(0, 1)),
        changed(readout_unit="mW"),
    ]
    assert len({PLAN.fingerprint, *others}) == 7


def test_the_design_is_that_of_draw_and_the_order_is_random():
    assert_allclose(PLAN.inputs, infocap.draw(PLAN.basis, 64, seed=1), rtol=0)
    codes = PLAN.schedule.codes
    assert sorted(codes) == list(range(64))
    assert np.abs(np.corrcoef(codes, np.arange(64))[0, 1]) < 0.5
    assert_allclose(PLAN.schedule.inputs, PLAN.inputs[codes], rtol=0)
    in_order = Plan(n_inputs=2, n_samples=64, order="design").schedule.codes
    assert in_order.tolist() == list(range(64))


@pytest.mark.parametrize("stop", [64, 128, 256, 512])
def test_a_doubling_order_completes_1_2_4_blocks_before_it_goes_on(stop):
    codes = Plan(n_inputs=2, n_samples=512, order="doubling").schedule.codes
    assert set(codes[:stop]) == set(range(stop))
    assert codes[:64].tolist() != list(range(64))


def test_the_number_of_blocks_stands_in_the_plans_file(tmp_path):
    plan = Plan(n_inputs=2, n_samples=1024)
    assert "\nblocks = 8  # " in plan.save(tmp_path / "plan.toml").read_text()
    assert Plan(n_inputs=2, n_samples=64).blocks == 1
    assert_allclose(
        Plan(n_inputs=2, n_samples=512, blocks=2).inputs,
        infocap.draw(plan.basis, 512, seed=1, blocks=2),
    )
    with pytest.raises(ParameterError, match="cannot be shared out evenly among 3 blocks"):
        Plan(n_inputs=2, n_samples=512, blocks=3)


@pytest.mark.parametrize("design", ["sobol", "random", "halton", "lhs"])
@pytest.mark.parametrize("n_samples", [64, 512, 1536])
def test_a_plan_is_extended_by_blocks_of_the_same_size(design, n_samples):
    plan = Plan(n_inputs=2, n_samples=512, design=design)
    again = plan.extended(n_samples)
    assert again.n_samples == n_samples
    least = min(n_samples, 512)
    assert_allclose(again.inputs[:least], plan.inputs[:least], rtol=0)


# --- plans with weights


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_a_plan_of_heavy_functions_has_weights_that_its_recording_is_analysed_with(tmp_path):
    plan = Plan(family="hermite", n_inputs=2, max_degree=6, n_samples=512, seed=1)
    u, weights = infocap.draw_weighted(plan.basis, 512, seed=1)
    assert_allclose(plan.inputs, u, rtol=0)
    assert_allclose(plan.weights, weights, rtol=0)
    system = infocap.systems.RandomFeatures(2, 10, gain=0.5)
    recording = acquire(plan, SimulatedBench(system), tmp_path / "run.db", progress=False)
    expected = infocap.estimate(u, system(u), plan.basis, sample_weight=weights)
    result = infocap.estimate(recording, basis=plan.basis)
    assert_allclose(result.capacity, expected.capacity)
    assert result.growth.n_samples[-2:] == (128, 512)
    assert abs(result.growth.total[-2] - result.total) < 0.2
    lower = infocap.product_basis(
        "hermite", 2, 4
    )  # the weights are those of the plan, whatever is looked for
    lazy = infocap.read(recording.save(tmp_path / "run.nc"), in_memory=False)
    assert_allclose(
        infocap.estimate(lazy, basis=lower).total,
        infocap.estimate(u, system(u), lower, sample_weight=weights).total,
    )
    given = infocap.estimate(recording, basis=plan.basis, sample_weight=weights)
    assert_allclose(given.capacity, expected.capacity)


def test_plans_have_no_weights_where_they_are_not_needed_or_forbidden():
    heavy = {"family": "hermite", "n_inputs": 2, "max_degree": 6, "n_samples": 512}
    assert Plan(**heavy, weighted=False).weights is None
    assert Plan(**heavy, repeat_every=4).weighted
    assert Plan(**heavy).extended(1 << 20).weighted
    assert not Plan(**{**heavy, "n_samples": 1 << 20}).weighted
    assert Plan(n_inputs=2, n_samples=512, weighted=True).weights.std() > 0
    with pytest.raises(ParameterError, match="weighted=1` must be True or False"):
        Plan(n_inputs=2, weighted=1)


def test_repeats_noise_and_reference_have_their_places():
    plan = Plan(
        n_inputs=2,
        n_samples=64,
        noise_repeats=5,
        repeat_every=4,
        reference_every=10,
        noise_input=(0.3, 0.4),
    )
    names = plan.schedule.names
    assert names[:5] == [("noise", k) for k in range(5)]
    assert_allclose(plan.schedule.inputs[:5], np.tile([0.3, 0.4], (5, 1)))
    assert len(set(names)) == len(names) == 5 + 64 + 16 + 9
    again = [number for kind, number in names if kind == "repeat"]
    assert len(again) == 16
    assert all(names.index(("repeat", k)) > names.index(("sample", k)) for k in again)
    places = [k for k, (kind, _) in enumerate(names) if kind == "reference"]
    assert set(np.diff(places)) == {11}


@pytest.mark.parametrize(("settings", "message"), [
    ({"order": "backwards"}, "order='backwards'` is not one of"),
    ({"n_samples": 0}, "n_samples=0` must be a whole number"),
    ({"domain": (1, 1)}, "is not an interval"),
    ({"noise_input": (1, 2, 3)}, "noise_input has 3 values; give one for each of 2"),
    ({"metadata": {"a": object()}}, "`metadata` must be plain data"),
    ({"family": "legendary"}, "'legendary'` is not one of"),
    ({"family": {"nam": "jacobi"}}, "entry of family='nam'"),
    ({"family": {"name": "jacobi"}}, "needs other parameters"),
])  # fmt: skip
def test_plans_without_meaning_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        Plan(**{"n_inputs": 2, **settings})


@pytest.mark.parametrize(("text", "message"), [
    ("n_inputs = ", "is not a plan in TOML"),
    ("n_input = 2", "entry of the plan='n_input'` is not one of"),
    ("n_inputs = 2\nseed = -1", "seed=-1"),
])  # fmt: skip
def test_plan_files_with_mistakes_name_them(text, message, tmp_path):
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises((DataError, ParameterError), match=message):
        Plan.load(tmp_path / "plan.toml")
    with pytest.raises(DataError, match="cannot be read"):
        Plan.load(tmp_path / "none.toml")


def test_inputs_for_other_software_come_back_exactly(tmp_path):
    plan = Plan(n_inputs=2, n_samples=16, noise_repeats=2, repeat_every=4, reference_every=5)
    plan.write_inputs(tmp_path / "inputs.csv")
    story, header, *rows = (tmp_path / "inputs.csv").read_text().splitlines()
    assert json.loads(story.removeprefix("# infocap plan "))["fingerprint"] == plan.fingerprint
    assert header == "design_index,u1,u2"
    table = np.array([[float(cell) for cell in row.split(",")] for row in rows])
    assert table[:, 0].tolist() == plan.schedule.codes.tolist()
    assert_allclose(table[:, 1:], plan.schedule.inputs, rtol=0)


# --- the store


def test_a_store_gives_back_what_it_was_given_in_design_order(tmp_path):
    with Store(tmp_path / "run.db", PLAN) as store:
        order = [index for index, u in store.pending()]
        assert order == PLAN.schedule.codes.tolist()
        for index, u in store.pending():
            store.record(index, square(u[None])[0])
        recording = store.recording()
    assert recording.design_index.tolist() == list(range(64))
    assert_allclose(recording.inputs, PLAN.inputs, rtol=0)
    assert_allclose(recording.readouts, square(PLAN.inputs), rtol=0)
    assert np.argsort(recording.time).tolist() == order
    assert recording.metadata["fingerprint"] == PLAN.fingerprint
    assert_allclose(infocap.read(tmp_path / "run.db").readouts, recording.readouts, rtol=0)
    assert [path.name for path in tmp_path.iterdir()] == ["run.db"]  # nothing beside it to forget


def test_a_store_goes_on_where_it_ended_and_tells_what_is_pending(tmp_path):
    with Store(tmp_path / "run.db", PLAN) as store:
        for index, u in list(store.pending())[:10]:
            store.record(index, u)
    with Store(tmp_path / "run.db") as store:
        assert len(store) == 10
        assert [index for index, u in store.pending()] == PLAN.schedule.codes.tolist()[10:]
        assert not store.complete


def test_another_plans_store_is_refused_and_both_are_named(tmp_path):
    Store(tmp_path / "run.db", PLAN).close()
    other = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=2)
    with pytest.raises(DataError) as refused:
        Store(tmp_path / "run.db", other)
    assert PLAN.fingerprint[:12] in str(refused.value)
    assert other.fingerprint[:12] in str(refused.value)
    assert "seed 1 there and 2 here" in str(refused.value)


def test_a_measurement_is_never_overwritten_nor_half_accepted(tmp_path):
    with Store(tmp_path / "run.db", PLAN) as store:
        store.record(3, [1.0, 2.0])
        store.record(3, [1.0, 2.0])
        with pytest.raises(DataError, match="sample 3 is stored already with other readouts"):
            store.record(3, [1.0, 3.0])
        with pytest.raises(DataError, match="have 3 channels; this store has 2"):
            store.record(4, [1.0, 2.0, 3.0])
        with pytest.raises(DataError, match="give one vector of numbers"):
            store.record(4, [["a", "b"]])
        with pytest.raises(ParameterError, match="index=64` is no sample of this plan"):
            store.record(64, [1.0, 2.0])
        assert store.recording().readouts.tolist() == [[1.0, 2.0]]
    with pytest.raises(ParameterError, match="is closed"):
        store.record(5, [1.0, 2.0])


def test_complex_readouts_and_missing_values_are_kept(tmp_path):
    with Store(tmp_path / "run.db", PLAN) as store:
        store.record(0, [1 + 2j, np.nan])
        found = store.recording().readouts
    assert found[0, 0] == 1 + 2j
    assert np.isnan(found[0, 1])


def test_readers_see_every_acknowledged_row_while_one_writes(tmp_path):
    path = tmp_path / "run.db"
    store = Store(path, PLAN)
    seen = []
    stop = threading.Event()

    def look():
        while not stop.is_set():
            before = len(store)
            seen.append((before, len(infocap.read(path).design_index)))

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    for index, u in store.pending():
        store.record(index, u)
    stop.set()
    for reader in readers:
        reader.join()
    store.close()
    assert len(seen) > 3
    assert all(found >= before for before, found in seen)


def test_stores_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(DataError, match="give a plan to begin with"):
        Store(tmp_path / "none.db")
    with pytest.raises(DataError, match="does not exist; make it first"):
        Store(tmp_path / "nowhere" / "run.db", PLAN)


# --- acquiring


class Flaky:
    """Fails the first times it is asked for each input."""

    def __init__(self, failures, problem=None):
        self.failures = failures
        self.problem = problem or OSError("no answer")
        self.asked = {}
        self.recovered = 0
        self.closed = False

    def measure(self, u):
        self.asked[tuple(u)] = self.asked.get(tuple(u), 0) + 1
        if self.asked[tuple(u)] <= self.failures:
            if isinstance(self.problem, Exception):
                raise self.problem
            return self.problem
        return u

    def recover(self):
        self.recovered += 1

    def close(self):
        self.closed = True


@pytest.mark.parametrize("problem", [OSError("no answer"), RuntimeError("bus"), [np.nan, np.nan]])
def test_an_instrument_that_fails_is_asked_again(problem, tmp_path):
    flaky = Flaky(2, problem)
    recording = acquire(PLAN, flaky, tmp_path / "run.db", wait_s=0, progress=False)
    assert_allclose(recording.readouts, PLAN.inputs, rtol=0)
    assert flaky.recovered == 128
    assert flaky.closed


def test_an_instrument_that_stays_dead_ends_the_run_and_loses_nothing(tmp_path):
    class Dying(Flaky):
        def measure(self, u):
            if len(self.asked) == 20:
                raise OSError("smoke")
            return super().measure(u)

    with pytest.raises(
        DataError,
        match=r"failed 4 times at sample \d+ \(OSError: smoke\); everything before is safe",
    ):
        acquire(PLAN, Dying(0), tmp_path / "run.db", wait_s=0, progress=False)
    assert len(infocap.read(tmp_path / "run.db").design_index) == 20
    with pytest.raises(
        DataError,
        match=r"measured with the instrument 'Dying' so far, and this is 'Flaky'.*other_instr",
    ):
        acquire(PLAN, Flaky(0), tmp_path / "run.db", progress=False)
    recording = acquire(PLAN, Flaky(0), tmp_path / "run.db", other_instrument=True, progress=False)
    assert_allclose(recording.readouts, PLAN.inputs, rtol=0)
    (check,) = recording.checks
    assert check.startswith(
        "the instrument failed 4 times and was asked again (OSError: smoke, 4 times), at sample"
    )
    assert check.kind == "note"
    assert check.found == {"failures": 4, "reasons": {"OSError: smoke": 4}}


def test_an_instrument_that_hangs_is_not_waited_for_for_ever_nor_called_twice_at_once(tmp_path):
    inside = []
    most = []
    freed = threading.Event()

    class Hanging:
        def measure(self, u):
            inside.append(1)
            most.append(len(inside))
            if len(most) == 3:
                time.sleep(0.4)  # comes back during the second attempt
            if len(most) == 6:
                freed.wait()
            inside.pop()
            return u

    with pytest.raises(DataError, match=r"TimeoutError: no answer within 0.25 s"):
        acquire(
            PLAN,
            Hanging(),
            tmp_path / "run.db",
            timeout_s=0.25,
            retries=1,
            wait_s=0,
            progress=False,
        )
    assert inside == [1]  # the run has ended, the call has not
    freed.set()
    assert max(most) == 1
    assert len(infocap.read(tmp_path / "run.db").design_index) == 5


def test_ctrl_c_ends_after_the_row_and_the_same_call_goes_on(tmp_path):
    class Interrupted(Flaky):
        def measure(self, u):
            if len(self.asked) == 12:
                os.kill(os.getpid(), signal.SIGINT)
            return super().measure(u)

    recording = acquire(PLAN, Interrupted(0), tmp_path / "run.db", progress=False)
    assert len(recording.design_index) == 13
    again = acquire(PLAN, Flaky(0), tmp_path / "run.db", other_instrument=True, progress=False)
    assert len(again.design_index) == 64


def test_a_second_acquisition_into_the_same_store_is_refused(tmp_path):
    class Greedy(Flaky):
        def measure(self, u):
            if len(self.asked) == 5:
                with pytest.raises(DataError, match="another process is acquiring"):
                    acquire(PLAN, Flaky(0), tmp_path / "run.db", progress=False)
            return super().measure(u)

    assert len(acquire(PLAN, Greedy(0), tmp_path / "run.db", progress=False).design_index) == 64


def test_a_run_stops_by_itself_when_the_interval_is_narrow_enough(tmp_path):
    plan = Plan(n_inputs=2, max_degree=2, n_samples=1024, seed=1)
    recording = acquire(
        plan, SimulatedBench(square), tmp_path / "run.db", until=0.5, progress=False
    )
    assert 5 < len(recording.design_index) < 1024


def test_the_simulated_bench_takes_time_fails_and_drifts(tmp_path):
    plan = Plan(
        n_inputs=2,
        max_degree=4,
        n_samples=256,
        reference_every=8,
        metadata={
            "bench": {
                "power_dbm": 1.0,
                "length_m": 5.0,
                "dropout": 0.1,
                "drift": 0.5,
                "latency_s": 1e-4,
            }
        },
    )
    bench = simulated(plan)
    assert bench.system.power_dbm == 1.0
    recording = acquire(plan, bench, tmp_path / "run.db", wait_s=0, progress=False)
    assert len(recording.design_index) == 256
    with pytest.warns(infocap.errors.DataWarning) as caught:
        result = infocap.estimate(recording, basis=plan.basis)
    assert any("the device drifted" in str(one.message) for one in caught)
    assert any("the device drifted" in check for check in result.checks)
    assert result.drift.size > 0.01
    with pytest.raises(OSError, match="did not answer"):
        SimulatedBench(square, dropout=1.0).measure(np.zeros(2))
    with pytest.raises(ParameterError, match="takes inputs from -1 to 1"):
        simulated(Plan(n_inputs=2, domain=(0, 1)))
    with pytest.raises(ParameterError, match=r"metadata.bench of the plan: .*'colour'"):
        simulated(Plan(n_inputs=2, metadata={"bench": {"colour": "red"}}))


def test_things_that_are_no_instruments_are_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"has no method measure\(u\)"):
        acquire(PLAN, square, tmp_path / "run.db")


# --- how it stands


def test_the_status_of_a_run_tells_rows_rate_capacity_and_what_to_do(tmp_path, monkeypatch):
    path = tmp_path / "run.db"
    chance = np.random.default_rng(0)
    now = [time.time() - 1000]

    def noisy(u):
        return square(u[None])[0] + 0.1 * chance.standard_normal(4)

    plan = Plan(n_inputs=2, max_degree=2, n_samples=512, seed=1, reference_every=64)
    with Store(path, plan) as store:
        assert status(path).advice == "go on."
        measurements = list(store.remaining())
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: now[0])
            for measurement in measurements[:200]:
                now[0] += 1.0
                store.record(measurement.number, noisy(measurement.u), measurement.kind)
        early = status(path)
        assert early.counts["sample"] == (196, 512)
        assert early.rate_hz == pytest.approx(1.0)
        assert early.seconds_left == pytest.approx(len(measurements) - 200)
        assert "is the acquisition still running?" in early.advice or "stop now" in early.advice
        assert early.result.n_samples == 196
        assert early.refreshed().result is early.result
        assert status(path, until=1e-9).advice.startswith("no new row for")
        for measurement in measurements[200:]:
            store.record(measurement.number, noisy(measurement.u), measurement.kind)
        late = early.refreshed()
        assert late.complete
        assert late.result.n_samples == 512
        assert late.advice.startswith("complete")


def test_the_advice_is_to_stop_when_the_interval_is_narrow(tmp_path):
    plan = Plan(n_inputs=2, max_degree=2, n_samples=512, seed=1)
    with Store(tmp_path / "run.db", plan) as store:
        for index, u in list(store.pending())[:400]:
            store.record(index, square(u[None])[0])
        assert status(tmp_path / "run.db").advice == "stop now: interval below 0.5."


def test_the_advice_tells_at_once_whether_an_acquisition_runs_was_stopped_or_was_killed(tmp_path):
    path = tmp_path / "run.db"
    said = []
    plan = Plan(n_inputs=2, max_degree=2, n_samples=512, seed=1)

    class Watched:
        def measure(self, u):
            if len(said) < 5:
                said.append(status(path).advice)
            elif len(said) == 5:
                said.append("asked to stop")
                signal.raise_signal(signal.SIGINT)
            return u

    acquire(plan, Watched(), path, progress=False)
    assert said[4] == "go on."
    assert status(path).advice.startswith("no acquisition is running: the same `infocap acquire`")
    with Store(path) as store:
        store.note("begun", instrument="Watched")  # and nothing after it
    assert status(path).advice.startswith("the acquisition was killed or has crashed")
    names = {one.name for one in tmp_path.iterdir()}
    copied = tmp_path / "elsewhere"
    copied.mkdir()
    shutil.copy(path, copied)
    assert status(copied / "run.db").advice.startswith("the acquisition was killed")
    assert [one.name for one in copied.iterdir()] == ["run.db"]  # to look changes nothing
    assert {one.name for one in tmp_path.iterdir()} == {*names, "elsewhere"}


# --- what a tired experimentalist does


def test_the_bench_of_a_plan_is_part_of_what_is_measured_and_other_words_are_kept(tmp_path):
    def plan(**metadata):
        return Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, metadata=metadata)

    assert plan(bench={"power_dbm": 1.0}).fingerprint != plan(bench={"power_dbm": 2.0}).fingerprint
    Store(tmp_path / "run.db", plan(operator="Ada")).close()
    with pytest.warns(
        infocap.errors.DataWarning, match=r"keeps its metadata \{'operator': 'Ada'\}"
    ):
        Store(tmp_path / "run.db", plan(operator="Bob")).close()


@pytest.mark.parametrize(("settings", "message"), [
    ({"noise_input": (50.0, 0.0)}, r"noise_input has 50, outside the domain \[-1, 1\]"),
    ({"reference_input": (0.0, -2.0)}, "reference_input has -2, outside"),
    ({"domain": (1, 2, 3)}, r"domain=\(1.0, 2.0, 3.0\)` is not an interval"),
    ({"domain": "ab"}, "domain='ab'` must be a list of numbers"),
    ({"channel": 5}, "channel=5` must be a list of names"),
    ({"channel": "abc"}, "channel='abc'` must be a list of names"),
    ({"family": {"domain": [0, 1]}}, "has no name"),
])  # fmt: skip
def test_plans_that_would_harm_the_device_or_mean_nothing_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        Plan(**{"n_inputs": 2, **settings})


def test_part_of_a_spectrum_is_asked_for_again(tmp_path):
    class Hasty(Flaky):
        def measure(self, u):
            found = super().measure(u)
            return found[:1] if len(self.asked) == 7 and self.asked[tuple(u)] == 1 else found

    assert (
        len(acquire(PLAN, Hasty(0), tmp_path / "run.db", wait_s=0, progress=False).design_index)
        == 64
    )


def test_a_driver_that_cannot_recover_or_close_does_not_end_in_a_traceback(tmp_path):
    class Stubborn(Flaky):
        def recover(self):
            raise RuntimeError("bus\nlocked")

        def close(self):
            raise RuntimeError("no")

    with (
        pytest.warns(
            infocap.errors.DataWarning,
            match=r"`close\(\)` of the instrument failed \(RuntimeError: no\)",
        ),
        pytest.raises(
            DataError, match=r"failed 3 times at sample \d+ \(RuntimeError: bus locked\)"
        ),
    ):
        acquire(PLAN, Stubborn(1), tmp_path / "run.db", retries=2, wait_s=0, progress=False)


def test_an_instrument_is_made_only_when_the_store_is_in_order(tmp_path):
    made = []

    def make():
        made.append(Flaky(0))
        return made[-1]

    Store(tmp_path / "other.db", Plan(n_inputs=2, n_samples=64, seed=9)).close()
    with pytest.raises(DataError, match="belongs to another plan"):
        acquire(PLAN, make, tmp_path / "other.db", progress=False)
    assert made == []
    assert len(acquire(PLAN, make, tmp_path / "run.db", progress=False).design_index) == 64
    assert made[0].closed


def test_a_stop_while_only_repeats_are_left_is_told(tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, repeat_every=1)

    class Late(Flaky):
        def measure(self, u):
            if sum(self.asked.values()) == 126:
                os.kill(os.getpid(), signal.SIGINT)
            return super().measure(u)

    recording = acquire(plan, Late(0), tmp_path / "run.db", progress=False)
    assert recording.metadata["stopped"] == "interrupted"
    again = acquire(plan, Flaky(0), tmp_path / "run.db", other_instrument=True, progress=False)
    assert "stopped" not in again.metadata


def test_ctrl_c_does_not_wait_for_the_pause_between_two_attempts(tmp_path):
    """It would go on for an hour if it did."""
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(DataError, match="failed 1 times"):
        acquire(PLAN, Flaky(9), tmp_path / "run.db", wait_s=3600, progress=False)


def with_gaps(u):
    return [u[0], u[1], np.nan if u[0] > 0.99 else 1.0]


def complex_readouts(u):
    return [u[0] + 1j * u[1], u[1]]


@pytest.mark.parametrize("readouts", [with_gaps, complex_readouts])
def test_a_run_stops_by_itself_with_gaps_and_with_complex_readouts(readouts, tmp_path):
    class Device:
        def measure(self, u):
            return readouts(u)

    plan = Plan(n_inputs=2, max_degree=2, n_samples=512, seed=1)
    recording = acquire(plan, Device(), tmp_path / "run.db", until=0.5, progress=False)
    assert "narrower than 0.5" in recording.metadata["stopped"]


def test_a_constant_reference_is_no_drift_and_complex_ones_are_seen_whole(tmp_path):
    u = PLAN.inputs
    rng = np.random.default_rng(0)
    x = np.column_stack([u, u**2]) + 0.01 * rng.standard_normal((64, 4))
    still = infocap.Recording(u, x, np.arange(64), reference=np.full((64, 4), 0.1))
    result = infocap.estimate(still, basis=PLAN.basis)
    assert result.drift.size == 0
    assert not any("drifted" in check for check in result.checks)
    turning = np.exp(1j * np.linspace(0, 1, 32))[:, None] * np.ones((1, 2))
    noise = np.ones((20, 2)) + 0.1 * (
        rng.standard_normal((20, 2)) + 1j * rng.standard_normal((20, 2))
    )
    moving = infocap.Recording(
        u, x[:, :2] + 1j * x[:, 2:], np.arange(64), reference=turning, noise=noise
    )
    with pytest.warns(infocap.errors.DataWarning, match="the device drifted"):
        result = infocap.estimate(moving, basis=PLAN.basis, complex_as="split")
    assert result.factors is not None


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_noise_common_to_all_readouts_is_no_drift():
    rng = np.random.default_rng(1)
    u = PLAN.inputs
    alarms = 0
    for _ in range(20):
        reference = np.ones((8, 4)) + 0.1 * rng.standard_normal((8, 1))
        recording = infocap.Recording(
            u, np.column_stack([u, u**2]), np.arange(64), reference=reference
        )
        result = infocap.estimate(recording, basis=PLAN.basis)
        alarms += any("the device drifted" in check for check in result.checks)
    assert alarms <= 1


def test_a_row_lost_on_the_way_is_seen_in_what_comes_after_it():
    plan = Plan(n_inputs=2, max_degree=8, n_samples=4096, seed=1)
    x = infocap.systems.RandomFeatures(2, 20, gain=1.5, noise=1e-3)(plan.inputs, seed=1)
    order = plan.schedule.codes
    measured = np.delete(
        np.arange(4096), 2500
    )  # the rest moves up by one, as in a file without an index
    slipped = x.copy()
    slipped[order[:-1]] = x[order][measured]
    acquired = np.argsort(order)
    with pytest.warns(
        infocap.errors.DataWarning,
        match=r"shifted by -1 samples .* in measurements 2[45]\d\d to 4095",
    ):
        infocap.estimate(plan.inputs, slipped, plan.basis, method="raw", time=acquired)


def test_a_store_is_known_by_its_first_bytes_whatever_its_name(tmp_path):
    with Store(tmp_path / "run.nc", PLAN) as store:
        store.record(0, [1.0, 2.0])
    assert infocap.read(tmp_path / "run.nc").readouts.tolist() == [[1.0, 2.0]]


def test_an_empty_store_is_named_as_such(tmp_path):
    (tmp_path / "run.db").touch()
    with pytest.raises(DataError, match="cannot be watched: it holds nothing yet"):
        status(tmp_path / "run.db")
    with pytest.raises(DataError, match="holds nothing yet"):
        infocap.read(tmp_path / "run.db")
