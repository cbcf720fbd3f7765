"""In the lab: plans, the store, the acquisition loop, and how a run stands."""

import itertools
import json
import os
import shutil
import signal
import threading
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from instruments import Echo, with_squares
from numpy.testing import assert_allclose

import infocap
from infocap.basis import jacobi
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.lab import Plan, SimulatedBench, Store, acquire, status
from infocap.lab.experiment import simulated_bench

PLAN = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1)


# --- plans

PLANS = {
    "small": PLAN,
    "doubling": Plan(
        family="hermite",
        n_inputs=3,
        max_degree=2,
        n_samples=32,
        seed=9,
        order="doubling",
        blocks=2,
    ),
    "weighted": Plan(family="hermite", n_inputs=2, max_degree=8, n_samples=512, seed=9),
    "jacobi": Plan(
        family=jacobi(1, 2),
        n_inputs=2,
        domain=(0, 5),
        input_unit="V",
        channel=("a", 'b "quoted"', "µW\t"),
    ),
    "two families": Plan(
        family=["legendre", jacobi(0.5, 0.5)],
        n_inputs=2,
        max_interactions=1,
        noise_input=(0.1, -1e-17),
    ),
    "words": Plan(
        title="Beam time, № 7",
        metadata={"operator": "Ada", "settings": {"a b": [1, 2.5, True]}, "x\x7f": "\\"},
    ),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_a_plan_survives_its_file_and_keeps_its_fingerprint(plan, tmp_path):
    loaded = Plan.load(plan.save(tmp_path / "plan.toml"))
    assert loaded == plan
    assert loaded.fingerprint == plan.fingerprint
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


def test_a_plan_that_its_file_cannot_hold_is_refused(tmp_path):
    message = "None, infinity and NaN cannot be kept in a plan's file"
    with pytest.raises(ParameterError, match=message):
        Plan(metadata={"settings": [1, None]}).save(tmp_path / "plan.toml")
    with pytest.raises(ParameterError, match="nan: None, infinity and NaN cannot be kept"):
        Plan(metadata={"temperature_k": np.nan}).save(tmp_path / "plan.toml")
    assert list(tmp_path.iterdir()) == []


def test_what_is_measured_makes_the_fingerprint_and_words_do_not():
    def fingerprint_with(**settings):
        return Plan.from_dict({**PLAN.to_dict(), **settings}).fingerprint

    assert fingerprint_with(title="other", metadata={"a": 1}) == PLAN.fingerprint
    fingerprints = {
        PLAN.fingerprint,
        fingerprint_with(seed=2),
        fingerprint_with(n_samples=128),
        fingerprint_with(order="design"),
        fingerprint_with(repeat_every=2),
        fingerprint_with(domain=(0, 1)),
        fingerprint_with(readout_unit="mW"),
    }
    assert len(fingerprints) == 7


def test_the_design_is_that_of_draw_and_the_order_is_random():
    assert_allclose(PLAN.inputs, infocap.draw(PLAN.basis, 64, seed=1), rtol=0)
    codes = PLAN.schedule.codes
    assert sorted(codes) == list(range(64))
    correlation = np.corrcoef(codes, np.arange(64))[0, 1]
    assert np.abs(correlation) < 4 / np.sqrt(64)
    assert_allclose(PLAN.schedule.inputs, PLAN.inputs[codes], rtol=0)
    in_order = Plan(n_inputs=2, n_samples=64, order="design").schedule.codes
    assert in_order.tolist() == list(range(64))


@pytest.mark.parametrize("stop", [64, 128, 256, 512])
def test_a_doubling_order_completes_1_2_4_blocks_before_it_goes_on(stop):
    plan = Plan(n_inputs=2, n_samples=512, order="doubling", reference_every=0)
    codes = plan.schedule.codes
    assert set(codes[:stop]) == set(range(stop))
    assert codes[:64].tolist() != list(range(64))


def test_the_number_of_blocks_stands_in_the_plans_file(tmp_path):
    plan = Plan(n_inputs=2, n_samples=1024)
    assert "\nblocks = 8  # " in plan.save(tmp_path / "plan.toml").read_text()
    assert Plan(n_inputs=2, n_samples=64).blocks == 1
    of_two_blocks = Plan(n_inputs=2, n_samples=512, blocks=2)
    assert_allclose(of_two_blocks.inputs, infocap.draw(plan.basis, 512, seed=1, blocks=2))
    with pytest.raises(ParameterError, match="cannot be shared out evenly among 3 blocks"):
        Plan(n_inputs=2, n_samples=512, blocks=3)


@pytest.mark.parametrize("design", ["sobol", "random", "halton", "lhs"])
@pytest.mark.parametrize("n_samples", [64, 512, 1536])
def test_a_plan_is_extended_by_blocks_of_the_same_size(design, n_samples):
    plan = Plan(n_inputs=2, n_samples=512, design=design)
    extended = plan.extended(n_samples)
    assert extended.n_samples == n_samples
    n_common = min(n_samples, 512)
    assert_allclose(extended.inputs[:n_common], plan.inputs[:n_common], rtol=0)


# --- plans with weights


@pytest.fixture(scope="module")
def heavy_plan():
    """A plan of functions with large fourth moments, which need weights."""
    return Plan(family="hermite", n_inputs=2, max_degree=6, n_samples=512, seed=1)


@pytest.fixture(scope="module")
def weighted_recording(heavy_plan, tmp_path_factory):
    """What a device without noise gives for the heavy plan."""
    system = infocap.systems.RandomFeatures(2, 10, gain=0.5)
    bench = SimulatedBench(system, batch=64)
    path = tmp_path_factory.mktemp("weighted") / "run.db"
    return acquire(heavy_plan, bench, path, progress=False)


def test_a_plan_of_heavy_functions_has_weights(heavy_plan):
    u, weights = infocap.draw_weighted(heavy_plan.basis, 512, seed=1)
    assert_allclose(heavy_plan.inputs, u, rtol=0)
    assert_allclose(heavy_plan.sample_weight, weights, rtol=0)


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_a_recording_is_analysed_with_the_weights_of_its_plan(heavy_plan, weighted_recording):
    u = weighted_recording.inputs
    x = weighted_recording.readouts
    weights = heavy_plan.sample_weight
    expected = infocap.estimate(u, x, heavy_plan.basis, sample_weight=weights)
    result = infocap.estimate(weighted_recording, basis=heavy_plan.basis)
    assert_allclose(result.capacity, expected.capacity)
    assert result.growth.n_samples[-2:] == (128, 512)
    assert abs(result.growth.total[-2] - result.total) < 0.2
    given = infocap.estimate(weighted_recording, basis=heavy_plan.basis, sample_weight=weights)
    assert_allclose(given.capacity, expected.capacity)


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_the_weights_are_those_of_the_plan_whatever_basis_is_analysed(
    heavy_plan, weighted_recording, tmp_path
):
    basis = infocap.product_basis("hermite", 2, 4)
    recording = infocap.read(weighted_recording.save(tmp_path / "run.nc"), in_memory=False)
    expected = infocap.estimate(
        weighted_recording.inputs,
        weighted_recording.readouts,
        basis,
        sample_weight=heavy_plan.sample_weight,
    )
    assert_allclose(infocap.estimate(recording, basis=basis).total, expected.total)


def test_plans_have_no_weights_where_they_are_not_needed_or_forbidden():
    heavy = {"family": "hermite", "n_inputs": 2, "max_degree": 6, "n_samples": 512}
    assert Plan(**heavy, weighted=False).sample_weight is None
    assert Plan(**heavy, repeat_every=4).weighted
    assert Plan(**heavy).extended(1 << 20).weighted
    assert not Plan(**{**heavy, "n_samples": 1 << 20}).weighted
    assert Plan(n_inputs=2, n_samples=512, weighted=True).sample_weight.std() > 0
    with pytest.raises(ParameterError, match="weighted=1` must be True or False"):
        Plan(n_inputs=2, weighted=1)
    with pytest.raises(ParameterError, match=r"share=1\.5` is a part of a mixture"):
        Plan(n_inputs=2, share=1.5)


def test_a_weighted_plan_without_a_share_is_one_of_before_there_was_a_share(heavy_plan, tmp_path):
    entries = heavy_plan.to_dict()
    assert entries["share"] == 0.3
    assert Plan.from_dict(entries) == heavy_plan
    assert heavy_plan.extended(1024).share == 0.3
    del entries["share"]
    former = Plan.from_dict(entries)
    u, weights = infocap.draw_weighted(heavy_plan.basis, 512, seed=1, share=1.0)
    assert_allclose(former.inputs, u, rtol=0)
    assert_allclose(former.sample_weight, weights, rtol=0)
    assert former.fingerprint != heavy_plan.fingerprint
    assert Plan.load(former.save(tmp_path / "plan.toml")) == former


def test_repeats_noise_and_reference_have_their_places():
    plan = Plan(
        n_inputs=2,
        n_samples=64,
        noise_repeats=5,
        repeat_every=4,
        reference_every=10,
        noise_input=(0.3, 0.4),
    )
    keys = plan.schedule.keys
    assert len(keys) == 5 + 64 + 16 + 8
    assert len(set(keys)) == len(keys)

    assert keys[:5] == [("noise", k) for k in range(5)]
    assert_allclose(plan.schedule.inputs[:5], np.tile([0.3, 0.4], (5, 1)))

    repeated = [number for kind, number in keys if kind == "repeat"]
    assert len(repeated) == 16
    for number in repeated:
        assert keys.index(("repeat", number)) > keys.index(("sample", number))

    places_of_references = [place for place, (kind, _) in enumerate(keys) if kind == "reference"]
    rows_before = np.array(places_of_references) - 5 - np.arange(8)
    assert (rows_before // 10).tolist() == list(range(8))  # one among ten, at a random moment
    assert len(set(rows_before % 10)) > 2
    inputs = plan.schedule.inputs[places_of_references]
    for turn in (inputs[:4], inputs[4:]):
        assert {tuple(u) for u in turn} == {tuple(u) for u in plan.reference_points}


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
    comment, header, *_ = (tmp_path / "inputs.csv").read_text().splitlines()
    description = json.loads(comment.removeprefix("# infocap plan "))
    assert description["fingerprint"] == plan.fingerprint
    assert header == "design_index,u1,u2"
    table = np.loadtxt(tmp_path / "inputs.csv", delimiter=",", skiprows=2)
    assert table[:, 0].tolist() == plan.schedule.codes.tolist()
    assert_allclose(table[:, 1:], plan.schedule.inputs, rtol=0)


# --- the store


def test_a_store_gives_back_what_it_was_given_in_design_order(tmp_path):
    with Store(tmp_path / "run.db", PLAN) as store:
        order = [index for index, u in store.pending()]
        assert order == PLAN.schedule.codes.tolist()
        for index, u in store.pending():
            store.record(index, with_squares(u[None])[0])
        recording = store.recording()
    assert recording.design_index.tolist() == list(range(64))
    assert_allclose(recording.inputs, PLAN.inputs, rtol=0)
    assert_allclose(recording.readouts, with_squares(PLAN.inputs), rtol=0)
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
        (readouts,) = store.recording().readouts
    assert readouts[0] == 1 + 2j
    assert np.isnan(readouts[1])


def test_readers_see_every_acknowledged_row_while_one_writes(tmp_path):
    path = tmp_path / "run.db"
    store = Store(path, PLAN)
    counts = []  # of rows that were acknowledged before a read, and of rows that were read
    stop = threading.Event()

    def read_on():
        while not stop.is_set():
            n_acknowledged = len(store)
            n_read = len(infocap.read(path).design_index)
            counts.append((n_acknowledged, n_read))

    readers = [threading.Thread(target=read_on) for _ in range(3)]
    for reader in readers:
        reader.start()
    for index, u in store.pending():
        store.record(index, u)
    stop.set()
    for reader in readers:
        reader.join()
    store.close()
    assert len(counts) > 3
    assert all(n_read >= n_acknowledged for n_acknowledged, n_read in counts)


def test_stores_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(DataError, match="give a plan to begin with"):
        Store(tmp_path / "none.db")
    with pytest.raises(DataError, match="does not exist; make it first"):
        Store(tmp_path / "nowhere" / "run.db", PLAN)


# --- acquiring


class Flaky(Echo):
    """Fails the first times that it is asked for each input, and can recover."""

    def __init__(self, n_failures, failure):
        super().__init__()
        self.n_failures = n_failures
        self.failure = failure
        self.n_calls_of = Counter()
        self.n_recoveries = 0

    def answer(self, u):
        self.n_calls_of[tuple(u)] += 1
        if self.n_calls_of[tuple(u)] > self.n_failures:
            return u
        if isinstance(self.failure, Exception):
            raise self.failure
        return self.failure

    def recover(self):
        self.n_recoveries += 1


@pytest.mark.parametrize(
    "failure",
    [OSError("no answer"), RuntimeError("bus"), [np.nan, np.nan]],
    ids=["OSError", "RuntimeError", "NaN"],
)
def test_an_instrument_that_fails_is_asked_again(failure, tmp_path):
    flaky = Flaky(2, failure)
    recording = acquire(PLAN, flaky, tmp_path / "run.db", wait_s=0, progress=False)
    assert_allclose(recording.readouts, PLAN.inputs, rtol=0)
    assert flaky.n_recoveries == 128
    assert flaky.is_closed


def test_an_instrument_that_stays_dead_ends_the_run_and_loses_nothing(tmp_path):
    class Dying(Echo):
        def answer(self, u):
            if self.n_calls > 20:
                raise OSError("smoke")
            return u

    path = tmp_path / "run.db"
    message = r"failed 4 times at sample \d+ \(OSError: smoke\); everything before is safe"
    with pytest.raises(DataError, match=message):
        acquire(PLAN, Dying(), path, wait_s=0, progress=False)
    assert len(infocap.read(path).design_index) == 20

    message = r"measured with the instrument 'Dying' so far, and this is 'Echo'.*other_instr"
    with pytest.raises(DataError, match=message):
        acquire(PLAN, Echo(), path, progress=False)
    recording = acquire(PLAN, Echo(), path, other_instrument=True, progress=False)
    assert_allclose(recording.readouts, PLAN.inputs, rtol=0)
    (check,) = recording.checks
    assert check.startswith(
        "the instrument failed 4 times and was asked again (OSError: smoke, 4 times), at sample"
    )
    assert check.kind == "note"
    assert check.found == {"failures": 4, "reasons": {"OSError: smoke": 4}}


def test_an_instrument_that_hangs_is_not_waited_for_for_ever_nor_called_twice_at_once(tmp_path):
    calls_in_progress = []
    n_in_progress = []  # at the beginning of every call
    released = threading.Event()

    class Hanging:
        def measure(self, u):
            calls_in_progress.append(u)
            n_in_progress.append(len(calls_in_progress))
            if len(n_in_progress) == 3:
                time.sleep(0.4)  # comes back during the second attempt
            if len(n_in_progress) == 6:
                released.wait()
            calls_in_progress.pop()
            return u

    path = tmp_path / "run.db"
    with pytest.raises(DataError, match=r"TimeoutError: no answer within 0.25 s"):
        acquire(PLAN, Hanging(), path, timeout_s=0.25, retries=1, wait_s=0, progress=False)
    assert len(calls_in_progress) == 1  # the run has ended, the call has not
    released.set()
    assert max(n_in_progress) == 1
    assert len(infocap.read(path).design_index) == 5


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_ends_after_the_row_and_the_same_call_goes_on(tmp_path):
    class Interrupted(Echo):
        def answer(self, u):
            if self.n_calls == 13:
                press_ctrl_c()
            return u

    path = tmp_path / "run.db"
    assert len(acquire(PLAN, Interrupted(), path, progress=False).design_index) == 13
    recording = acquire(PLAN, Echo(), path, other_instrument=True, progress=False)
    assert len(recording.design_index) == 64


def test_a_second_acquisition_into_the_same_store_is_refused(tmp_path):
    path = tmp_path / "run.db"

    class Greedy(Echo):
        def answer(self, u):
            if self.n_calls == 6:
                with pytest.raises(DataError, match="another process is acquiring"):
                    acquire(PLAN, Echo(), path, progress=False)
            return u

    assert len(acquire(PLAN, Greedy(), path, progress=False).design_index) == 64


def test_a_run_stops_by_itself_when_the_interval_is_narrow_enough(tmp_path):
    plan = Plan(n_inputs=2, max_degree=2, n_samples=1024, seed=1)
    bench = SimulatedBench(with_squares)
    recording = acquire(plan, bench, tmp_path / "run.db", until=0.5, progress=False)
    assert 5 < len(recording.design_index) < 1024


def test_the_simulated_bench_takes_time_fails_and_drifts(tmp_path):
    settings = {
        "power_dbm": 1.0,
        "length_m": 5.0,
        "dropout": 0.1,
        "drift": 1.0,
        "latency_s": 1e-4,
    }
    plan = Plan(
        n_inputs=2,
        max_degree=4,
        n_samples=256,
        seed=3,  # with some seeds the same drift is told from the rows first, and not from references
        reference_every=8,
        metadata={"bench": settings},
    )
    bench = simulated_bench(plan)
    assert bench.system.power_dbm == 1.0
    recording = acquire(plan, bench, tmp_path / "run.db", wait_s=0, progress=False)
    assert len(recording.design_index) == 256
    with pytest.warns(DataWarning) as warned:
        result = infocap.estimate(recording, basis=plan.basis)
    assert any("its gain changed along the run" in str(warning.message) for warning in warned)
    assert any("its gain changed along the run" in check for check in result.checks)
    assert result.drift.size > 0.01


def test_a_bench_that_drops_everything_does_not_answer():
    with pytest.raises(OSError, match="did not answer"):
        SimulatedBench(with_squares, dropout=1.0).measure(np.zeros(2))


def test_a_bench_that_a_plan_cannot_have_is_refused():
    with pytest.raises(ParameterError, match="takes inputs from -1 to 1"):
        simulated_bench(Plan(n_inputs=2, domain=(0, 1)))
    with pytest.raises(ParameterError, match=r"metadata.bench of the plan: .*'colour'"):
        simulated_bench(Plan(n_inputs=2, metadata={"bench": {"colour": "red"}}))


def test_things_that_are_no_instruments_are_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"has no method measure\(u\)"):
        acquire(PLAN, with_squares, tmp_path / "run.db")


# --- how it stands


def test_the_status_of_a_run_tells_rows_rate_capacity_and_what_to_do(tmp_path, monkeypatch):
    path = tmp_path / "run.db"
    generator = np.random.default_rng(0)
    clock = itertools.count(time.time() - 1000)  # a second between two readings

    plan = Plan(n_inputs=2, max_degree=2, n_samples=512, seed=1, reference_every=64)
    n_references = int(np.sum(plan.schedule.codes[:200] == -2))
    with Store(path, plan) as store:
        begun = status(path)
        assert (begun.advice_kind, begun.advice) == ("go on", "go on.")
        measurements = list(store.remaining())

        def record(measurement):
            (signal,) = with_squares(measurement.u[None])
            readouts = signal + 0.1 * generator.standard_normal(4)
            store.record(measurement.number, readouts, measurement.kind)

        for measurement in measurements[:200]:
            with monkeypatch.context() as patch:
                now = float(next(clock))
                patch.setattr(time, "time", lambda now=now: now)
                record(measurement)
        early = status(path)
        assert early.counts["sample"] == (200 - n_references, 512)
        assert early.rate_hz == pytest.approx(1.0)
        assert early.seconds_left == pytest.approx(len(measurements) - 200)
        assert "is the acquisition still running?" in early.advice
        assert early.result.n_samples == 200 - n_references
        assert early.refreshed().result is early.result
        silent = status(path, until=1e-9)
        assert silent.advice_kind == "look"
        assert silent.advice.startswith("no new measurement for")

        for measurement in measurements[200:]:
            record(measurement)
        late = early.refreshed()
        assert late.complete
        assert late.result.n_samples == 512
        assert late.advice_kind == "complete"
        assert late.advice.startswith("complete")


def test_that_one_may_stop_is_said_only_to_those_who_asked_until_when(tmp_path):
    plan = Plan(n_inputs=2, max_degree=2, n_samples=512, seed=1)
    with Store(tmp_path / "run.db", plan) as store:
        for index, u in list(store.pending())[:400]:
            store.record(index, with_squares(u[None])[0])
        current = status(tmp_path / "run.db", until=0.5)
        assert current.advice == "you may stop: the interval is 0.00 wide."
        assert current.advice_kind == "stop"
        current = status(tmp_path / "run.db")
        assert current.advice == "go on: the interval is 0.00 wide."


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_the_advice_tells_at_once_whether_an_acquisition_runs_or_was_stopped(tmp_path):
    path = tmp_path / "run.db"
    plan = Plan(n_inputs=2, max_degree=2, n_samples=512, seed=1)
    advice = []

    class Watched(Echo):
        def answer(self, u):
            if self.n_calls <= 5:
                advice.append(status(path).advice)
            elif self.n_calls == 6:
                press_ctrl_c()
            return u

    acquire(plan, Watched(), path, progress=False)
    assert advice[4] == "go on."
    assert status(path).advice.startswith("no acquisition is running: the same `infocap acquire`")


def test_the_advice_tells_that_an_acquisition_was_killed_and_a_look_changes_nothing(tmp_path):
    path = tmp_path / "run.db"
    with Store(path, PLAN) as store:
        store.record(0, [1.0, 2.0])
        store.note("begun", instrument="Echo")  # and nothing after it
    names = names_in(tmp_path)
    assert status(path).advice.startswith("the acquisition was killed or has crashed")
    assert names_in(tmp_path) == names

    copies = tmp_path / "copies"
    copies.mkdir()
    shutil.copy(path, copies)
    assert status(copies / "run.db").advice.startswith("the acquisition was killed")
    assert names_in(copies) == {"run.db"}


# --- what a tired experimentalist does


def test_the_bench_of_a_plan_is_part_of_what_is_measured_and_other_words_are_kept(tmp_path):
    def plan_with(**metadata):
        return Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, metadata=metadata)

    weak = plan_with(bench={"power_dbm": 1.0})
    strong = plan_with(bench={"power_dbm": 2.0})
    assert weak.fingerprint != strong.fingerprint
    Store(tmp_path / "run.db", plan_with(operator="Ada")).close()
    with pytest.warns(DataWarning, match=r"keeps its metadata \{'operator': 'Ada'\}"):
        Store(tmp_path / "run.db", plan_with(operator="Bob")).close()


@pytest.mark.parametrize(("settings", "message"), [
    ({"noise_input": (50.0, 0.0)}, r"noise_input has 50, outside the domain \[-1, 1\]"),
    ({"reference_inputs": [(0.0, -2.0)]}, "reference_inputs has -2, outside"),
    ({"reference_inputs": [(0.0,)]}, "reference_inputs has 1 values; give one for each of 2"),
    ({"reference_inputs": 0.5}, "reference_inputs=0.5` must be a list of inputs"),
    ({"reference_every": -1}, "reference_every=-1` must be a whole number"),
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
    class Hasty(Echo):
        def answer(self, u):
            if self.n_calls == 7:
                return u[:1]
            return u

    recording = acquire(PLAN, Hasty(), tmp_path / "run.db", wait_s=0, progress=False)
    assert_allclose(recording.readouts, PLAN.inputs, rtol=0)


def test_a_driver_that_cannot_recover_or_close_does_not_end_in_a_traceback(tmp_path):
    class Stubborn(Flaky):
        def recover(self):
            raise RuntimeError("bus\nlocked")

        def close(self):
            raise RuntimeError("no")

    failure = r"failed 3 times at sample \d+ \(RuntimeError: bus locked\)"
    warning = r"`close\(\)` of the instrument failed \(RuntimeError: no\)"
    stubborn = Stubborn(1, OSError("no answer"))
    with pytest.warns(DataWarning, match=warning), pytest.raises(DataError, match=failure):
        acquire(PLAN, stubborn, tmp_path / "run.db", retries=2, wait_s=0, progress=False)


def test_an_instrument_is_made_only_when_the_store_is_in_order(tmp_path):
    made = []

    def make():
        made.append(Echo())
        return made[-1]

    Store(tmp_path / "other.db", Plan(n_inputs=2, n_samples=64, seed=9)).close()
    with pytest.raises(DataError, match="belongs to another plan"):
        acquire(PLAN, make, tmp_path / "other.db", progress=False)
    assert made == []
    assert len(acquire(PLAN, make, tmp_path / "run.db", progress=False).design_index) == 64
    assert made[0].is_closed


def test_a_stop_while_only_repeats_are_left_is_told(tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, repeat_every=1)

    class Late(Echo):
        def answer(self, u):
            if self.n_calls == 127:  # the last but one of 64 samples and as many repeats
                press_ctrl_c()
            return u

    path = tmp_path / "run.db"
    recording = acquire(plan, Late(), path, progress=False)
    assert recording.metadata["stopped"] == "interrupted"
    recording = acquire(plan, Echo(), path, other_instrument=True, progress=False)
    assert "stopped" not in recording.metadata


def test_ctrl_c_does_not_wait_for_the_pause_between_two_attempts(tmp_path):
    """It would go on for an hour if it did."""
    flaky = Flaky(9, OSError("no answer"))
    threading.Timer(0.5, press_ctrl_c).start()
    with pytest.raises(DataError, match="failed 1 time"):
        acquire(PLAN, flaky, tmp_path / "run.db", wait_s=3600, progress=False)


def with_gaps(u):
    return [u[0], u[1], np.nan if u[0] > 0.99 else 1.0]


def complex_readouts(u):
    return [u[0] + 1j * u[1], u[1]]


@pytest.mark.parametrize("readouts", [with_gaps, complex_readouts])
def test_a_run_stops_by_itself_with_gaps_and_with_complex_readouts(readouts, tmp_path):
    class Device(Echo):
        def answer(self, u):
            return readouts(u)

    plan = Plan(n_inputs=2, max_degree=2, n_samples=512, seed=1)
    recording = acquire(plan, Device(), tmp_path / "run.db", until=0.5, progress=False)
    assert "narrower than 0.5" in recording.metadata["stopped"]


def test_a_constant_reference_is_no_drift():
    rng = np.random.default_rng(0)
    x = with_squares(PLAN.inputs) + 0.01 * rng.standard_normal((64, 4))
    recording = infocap.Recording(PLAN.inputs, x, np.arange(64), reference=np.full((64, 4), 0.1))
    result = infocap.estimate(recording, basis=PLAN.basis)
    assert result.drift.size == 0
    assert not any("drifted" in check for check in result.checks)


def test_a_phase_that_turns_is_drift_of_complex_readouts():
    rng = np.random.default_rng(0)
    u = PLAN.inputs
    x = u + 1j * u**2 + 0.01 * complex_noise(rng, (64, 2))
    reference = np.exp(1j * np.linspace(0, 1, 32))[:, None] * np.ones((1, 2))
    noise = np.ones((20, 2)) + 0.1 * complex_noise(rng, (20, 2))
    recording = infocap.Recording(u, x, np.arange(64), reference=reference, noise=noise)
    with pytest.warns(DataWarning, match="the device drifted"):
        result = infocap.estimate(recording, basis=PLAN.basis, complex_as="split")
    assert result.factors is not None


def complex_noise(rng, shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_noise_common_to_all_readouts_is_no_drift():
    rng = np.random.default_rng(1)
    u = PLAN.inputs
    n_alarms = 0
    for _ in range(20):
        reference = np.ones((8, 4)) + 0.1 * rng.standard_normal((8, 1))
        recording = infocap.Recording(u, with_squares(u), np.arange(64), reference=reference)
        result = infocap.estimate(recording, basis=PLAN.basis)
        n_alarms += any("the device drifted" in check for check in result.checks)
    assert n_alarms <= 1


def test_a_row_lost_on_the_way_is_seen_in_what_comes_after_it():
    plan = Plan(n_inputs=2, max_degree=8, n_samples=4096, seed=1)
    x = infocap.systems.RandomFeatures(2, 20, gain=1.5, noise=1e-3)(plan.inputs, seed=1)
    order = plan.schedule.codes[plan.schedule.codes >= 0]
    x_as_measured = x[order]
    # One row is lost and the rest moves up by one, as in a file without an index.
    x_without_a_row = np.delete(x_as_measured, 2500, axis=0)
    slipped = x.copy()
    slipped[order[:-1]] = x_without_a_row
    time_of_row = np.argsort(order)
    message = r"shifted by -1 samples .* in measurements 2[45]\d\d to 4095"
    with pytest.warns(DataWarning, match=message):
        infocap.estimate(plan.inputs, slipped, plan.basis, method="raw", time=time_of_row)


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


def test_no_look_at_a_default_run_warns_of_its_design(tmp_path):
    """Part of a Sobol design in random order is no worse than random points, and nothing is wrong."""
    rng = np.random.default_rng(6)
    n_looks = 0
    for run in range(6):
        plan = Plan(n_inputs=2, max_degree=3, n_samples=512, seed=run)
        weights = rng.standard_normal((2, 4))
        with Store(tmp_path / f"{run}.db", plan) as store:
            measurements = list(store.remaining())
            begin = 0
            for end in np.sort(rng.integers(150, len(measurements), 5)).tolist():
                rows = []
                for measurement in measurements[begin:end]:
                    x = np.tanh(measurement.u @ weights) + 0.05 * rng.standard_normal(4)
                    rows.append(replace(measurement, readouts=x))
                if not rows:
                    continue
                store.record_many(store.checked(rows))
                begin = end
                result = status(store.path).result
                assert [check for check in result.warnings if "design" in check] == []
                assert [check for check in result.warnings if "order" in check] == []
                n_looks += 1
    assert n_looks > 20


def test_a_result_says_when_where_and_from_what_it_comes(tmp_path):
    plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=3)
    recording = acquire(plan, SimulatedBench(lambda u: u), tmp_path / "run.db", progress=False)
    told = infocap.estimate(recording).metadata["provenance"]
    assert told["file"] == "run.db"
    assert told["seed"] == 3
    assert told["design"] == plan.design_fingerprint
    assert told["host"] == told["acquired_on"]
    plain = infocap.estimate(recording.inputs, recording.readouts, plan.basis)
    entries = plain.metadata["provenance"]
    assert set(entries) >= {"estimated", "host", "infocap", "python", "numpy", "scipy"}
