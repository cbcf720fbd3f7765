"""Reference inputs: measured at random moments by default, and what they prove about a run."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import infocap
from infocap.diagnostics import References, Steadiness, look_at_references, with_references
from infocap.errors import Check, DataWarning, ParameterError
from infocap.lab import Plan, Store

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
PLAN = Plan(n_inputs=2, max_degree=4, n_samples=2048, seed=1)
DEVICE = infocap.systems.RandomFeatures(2, 12, noise=0.0, seed=3)


def measured(change=lambda x, t: x, plan=PLAN, noise=0.02, sort_by=None):
    """A recording of the plan by a device that changes; `sort_by` an input sweeps the samples."""
    codes = plan.schedule.codes
    inputs = plan.schedule.inputs
    is_sample = codes >= 0
    rows = codes[is_sample]
    if sort_by is not None:
        rows = np.argsort(plan.inputs[:, sort_by])
        inputs = np.array(inputs)
        inputs[is_sample] = plan.inputs[rows]
    moments = np.arange(len(codes))
    x = change(DEVICE(inputs), moments[:, None] / len(codes))
    x = x + noise * np.random.default_rng(5).standard_normal(x.shape)
    order = np.argsort(rows)
    return infocap.Recording(
        plan.inputs,
        x[is_sample][order],
        np.arange(plan.n_samples),
        time=moments[is_sample][order],
        reference=x[~is_sample],
        reference_time=moments[~is_sample],
        reference_inputs=inputs[~is_sample],
        metadata={"plan": plan.to_dict()},
    )


def findings(recording):
    return {check.found["cause"]: check for check in infocap.diagnose(recording).checks}


# --- the plan


@pytest.mark.parametrize(
    ("n_samples", "n_references"), [(64, 0), (256, 32), (512, 32), (8192, 256), (100_000, 1020)]
)
def test_a_plan_gets_a_few_per_cent_of_references_without_being_asked(n_samples, n_references):
    plan = Plan(n_inputs=1, max_degree=2, n_samples=n_samples, design="random")
    assert np.sum(plan.schedule.codes == -2) == n_references
    assert plan.in_words().count(f"{n_samples} samples + {n_references} reference rows") == (
        n_references > 0
    )
    without = Plan(
        n_inputs=1, max_degree=2, n_samples=n_samples, design="random", reference_every=0
    )
    assert_array_equal(plan.schedule.codes[plan.schedule.codes >= 0], without.schedule.codes)


def test_a_sequence_has_no_references():
    assert Plan(max_delay={1: 5}, n_samples=4000).reference_every == 0
    with pytest.raises(ParameterError, match="reference_every=8` has no meaning for a sequence"):
        Plan(max_delay={1: 5}, n_samples=4000, reference_every=8)


def test_references_can_have_inputs_of_ones_own(tmp_path):
    plan = Plan(n_inputs=2, n_samples=256, reference_inputs=[[0.1, 0.2], [0.5, -0.5]])
    is_reference = plan.schedule.codes == -2
    assert {tuple(u) for u in plan.schedule.inputs[is_reference]} == {(0.1, 0.2), (0.5, -0.5)}
    assert Plan.load(plan.save(tmp_path / "plan.toml")) == plan


def test_references_keep_inputs_and_moments_from_the_store_to_every_file(tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=256, seed=1)
    with Store(tmp_path / "run.db", plan) as store:
        for measurement in list(store.remaining())[:100]:
            store.record(measurement.number, measurement.u, measurement.kind)
    with Store(tmp_path / "run.db") as store:  # after a crash it goes on
        for measurement in store.remaining():
            store.record(measurement.number, measurement.u, measurement.kind)
        recording = store.recording()
    assert len(recording.design_index) == 256
    assert_allclose(recording.reference, recording.reference_inputs, rtol=0)
    assert (np.diff(recording.reference_time) > 0).all()
    for name in ("run.nc", "run.csv"):
        copy = infocap.read(recording.save(tmp_path / name))
        assert_allclose(copy.reference_inputs, recording.reference_inputs, rtol=0)
        assert_allclose(copy.reference_time, recording.reference_time, rtol=0)
    joined = infocap.read([tmp_path / "run.nc", _other_night(tmp_path)])
    assert len(joined.reference_inputs) == len(joined.reference) == 64


def _other_night(folder):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=256, seed=2)
    with Store(folder / "other.db", plan) as store:
        for measurement in store.remaining():
            store.record(measurement.number, measurement.u, measurement.kind)
        return store.recording().save(folder / "other.nc")


def test_references_take_no_part_in_the_estimation():
    recording = measured()
    without = infocap.Recording(
        recording.inputs, recording.readouts, recording.design_index, time=recording.time
    )
    expected = infocap.estimate(without, basis=PLAN.basis)
    assert_array_equal(infocap.estimate(recording, basis=PLAN.basis).capacity, expected.capacity)


# --- what they prove


def drift(x, t):
    return x + 0.1 * t


def gain_step(x, t):
    return x * np.where(t > 0.4, 1.1, 1.0)


def flip(x, t):
    return x * np.where(t > 0.5, -1, 1)


def dead_channel(x, t):
    x = x.copy()
    x[t[:, 0] > 0.6, 3] = 0.0
    return x


CHANGES = {
    "drift": (drift, "drift", "the device drifted, whatever its input"),
    "gain": (gain_step, "response", "changed its gain by a factor of 1.1"),
    "flip": (flip, "response", "flipped its polarity between measurements 10"),
    "dead": (
        dead_channel,
        "response",
        "stopped answering its inputs between measurements 1199 and 12",
    ),
}


@pytest.mark.parametrize("sort_by", [None, 0], ids=["random", "swept"])
@pytest.mark.parametrize(("change", "cause", "words"), CHANGES.values(), ids=CHANGES)
def test_unsteady_references_name_what_changed_and_when_in_any_order(change, cause, words, sort_by):
    found = findings(measured(change, sort_by=sort_by))
    assert words in found[cause]
    assert found[cause].kind == "warning"
    assert found[cause].found["p_value"] < 1e-5
    assert "steady" not in found
    assert ("order of inputs" in found) == (sort_by is not None)


def test_the_gain_of_a_jump_is_given_with_the_measurements_it_lies_between():
    check = findings(measured(gain_step))["response"]
    assert_allclose(check.found["gain"], 1.1, atol=0.02)
    before, after = re.search(r"between measurements (\d+) and (\d+)", check).groups()
    # After 0.4 of all measurements, references included.
    assert int(before) <= 0.4 * PLAN.n_samples <= int(after)


def test_the_channel_that_changed_is_named():
    assert findings(measured(dead_channel))["response"].found["channels"] == ["column 3"]


def test_a_steady_device_is_said_to_be_steady_with_the_largest_change_that_was_not_seen():
    diagnosis = infocap.diagnose(measured())
    (note,) = diagnosis.checks
    assert note.found["cause"] == "steady"
    assert "the device was steady: 64 measurements at 4 reference inputs" in note
    assert 0 < note.found["capacity"] < 0.2
    assert "reference inputs that give the same readouts along the run" in diagnosis.passed
    swept = findings(measured(sort_by=0))
    assert set(swept) == {"steady", "order of inputs"}
    assert "The reference inputs were looked at for drift instead" in swept["order of inputs"]


def test_drift_of_the_rows_alone_is_told_as_no_change_of_the_device():
    recording = measured()
    wave = 0.3 * np.sin(2 * np.pi * recording.time / recording.time.max())
    changed = infocap.Recording(
        **{
            **vars(recording),
            "readouts": recording.readouts + wave[:, None],
        }
    )
    check = findings(changed)["drift"]
    assert "readouts drift along the run" in check
    assert "The reference inputs were steady, so the device itself did not" in check


def test_what_the_references_are_too_few_to_see_they_do_not_refute():
    recording = measured(lambda x, t: x + 0.01 * t, noise=0.02)
    n = 20
    few = infocap.Recording(
        **{
            **vars(recording),
            "reference": recording.reference[:n],
            "reference_time": recording.reference_time[:n],
            "reference_inputs": recording.reference_inputs[:n],
        }
    )
    found = findings(few)
    assert "references" not in found["drift"]
    assert "steady" not in found


def test_a_costly_finding_of_the_rows_is_not_replaced_by_a_note_of_the_references():
    note = Check("the gain drifted.", "note", cause="response", capacity=0.01)
    of_rows = Check("the response changes.", cause="response", capacity=0.5)
    (told,) = with_references({"response": [of_rows]}, Steadiness((note,), None))["response"]
    assert told.kind == "warning"
    assert told == "the response changes. The reference inputs show it, too."
    assert with_references({}, Steadiness((note,), None))["response"] == [note]


@pytest.mark.parametrize("noise", ["normal", "t2", "toggling", "common"], ids=lambda noise: noise)
@pytest.mark.parametrize("n_channels", [3, 60])
def test_steady_devices_are_not_accused_whatever_their_noise(noise, n_channels):
    rng = np.random.default_rng(7)
    draws = {
        "normal": lambda shape: rng.standard_normal(shape),
        "t2": lambda shape: rng.standard_t(2, shape),
        "toggling": lambda shape: np.round(0.4 * rng.standard_normal(shape)),
        "common": lambda shape: rng.standard_normal((shape[0], 1)) * np.ones(shape),
    }
    samples = rng.standard_normal((500, n_channels))
    n_alarms = 0
    for n in (32, 32, 32, 96, 96):
        numbers = rng.permutation(np.arange(n) % 4)
        means = rng.standard_normal((4, n_channels))
        references = References(
            readouts=means[numbers] + 0.1 * draws[noise]((n, n_channels)),
            input_numbers=numbers,
            rows_before=None,
            time=None,
            channels=[str(k) for k in range(n_channels)],
            samples=samples + 0.1 * draws[noise](samples.shape),
        )
        n_alarms += look_at_references(references).largest_unseen is None
    assert n_alarms == 0


def test_too_few_references_say_nothing_and_equal_ones_prove_all():
    rng = np.random.default_rng(1)

    def references(n, readouts):
        return References(
            readouts=readouts(n),
            input_numbers=np.zeros(n, dtype=int),
            rows_before=None,
            time=None,
            channels=["a", "b"],
            samples=rng.standard_normal((100, 2)),
        )

    assert look_at_references(references(15, lambda n: rng.standard_normal((n, 2)))) is None
    assert look_at_references(references(32, lambda n: np.ones((n, 2)))).largest_unseen == 0
    drifting = look_at_references(references(32, lambda n: np.arange(2.0 * n).reshape(n, 2)))
    assert drifting.checks[0].found["cause"] == "drift"


def test_noise_that_grows_is_named():
    rng = np.random.default_rng(4)

    def noisier(x, t):
        return x + np.where(t > 0.7, 0.5, 0.0) * rng.standard_normal(x.shape)

    assert "the noise of the device changed" in findings(measured(noisier, sort_by=0))["noise"]


def test_an_estimate_warns_of_unsteady_references_and_keeps_the_steady_note():
    with pytest.warns(DataWarning, match="flipped its polarity"):
        infocap.estimate(measured(flip), basis=PLAN.basis)
    notes = infocap.estimate(measured(), basis=PLAN.basis).notes
    assert any("the device was steady" in note for note in notes)
