"""A device with memory in the lab: a plan of runs, each measured as a whole, and gone on with between runs."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal

import infocap
from infocap.errors import DataError, ParameterError
from infocap.lab import Plan, SimulatedBench, Store, acquire, status
from infocap.lab.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
NETWORK = infocap.systems.EchoState(8, noise=0.01)


def sequence(**more):
    settings = {
        "max_delay": {1: 20, 2: 5},
        "n_samples": 3000,
        "runs": 3,
        "washout": 50,
        "seed": 4,
    }
    return Plan(**settings | more)


def split(recording, steps):
    pairs = (recording.inputs, recording.readouts)
    return ([part[k : k + steps] for k in range(0, len(part), steps)] for part in pairs)


def test_a_plan_of_runs_survives_its_file(tmp_path):
    plan = sequence()
    assert plan.steps == 1050
    assert plan.inputs.shape == (3150, 1)
    assert len(plan.schedule) == 3
    assert plan.basis.memory == 20
    again = Plan.load(plan.save(tmp_path / "plan.toml"))
    assert again == plan
    assert again.fingerprint == plan.fingerprint
    assert Plan(max_delay={1: 20}, n_samples=100).washout == 20
    assert abs(np.corrcoef(plan.inputs[1:, 0], plan.inputs[:-1, 0])[0, 1]) < 0.1


def test_longer_plans_have_more_runs_of_the_same_length():
    plan = sequence()
    longer = plan.extended(4500)
    assert (longer.runs, longer.steps, longer.n_samples) == (5, plan.steps, 5000)
    assert_array_equal(longer.inputs[: len(plan.inputs)], plan.inputs)


class Interrupted:
    """A network whose power is cut in its third run."""

    runs = 0

    def measure(self, u, seed=None):
        Interrupted.runs += 1
        if Interrupted.runs == 3:
            raise KeyboardInterrupt
        return NETWORK(u, seed=seed)


def test_an_acquisition_goes_on_with_the_next_whole_run(tmp_path):
    plan = sequence(repeat_every=3)
    path = tmp_path / "run.db"
    with pytest.raises(KeyboardInterrupt):
        acquire(plan, Interrupted(), path, progress=False)
    with Store(path) as store:
        assert (len(store), len(store.schedule)) == (2, 4)
    recording = acquire(plan, Interrupted(), path, progress=False)
    assert Interrupted.runs == 5
    at_once = acquire(plan, SimulatedBench(NETWORK), tmp_path / "other.db", progress=False)
    for name in ("inputs", "readouts", "repeats", "design_index"):
        assert_array_equal(getattr(recording, name), getattr(at_once, name))
    assert_array_equal(recording.inputs, plan.inputs)
    assert np.isfinite(recording.repeats).all(axis=1).sum() == plan.steps


def test_runs_are_estimated_as_runs_from_store_and_file(tmp_path):
    plan = sequence()
    recording = acquire(plan, SimulatedBench(NETWORK), tmp_path / "run.db", progress=False)
    wanted = infocap.estimate(*split(recording, plan.steps), plan.basis, washout=50)
    recording.save(tmp_path / "run.nc")
    for source in ("run.db", "run.nc"):
        found = infocap.estimate(infocap.read(tmp_path / source), basis=plan.basis)
        assert_allclose(found.unbiased, wanted.unbiased, atol=1e-12)
        assert found.n_samples == 3000
    now = status(tmp_path / "run.db")
    assert (now.complete, now.result.n_samples) == (True, 3000)


def test_readouts_of_another_length_are_refused(tmp_path):
    with Store(tmp_path / "run.db", sequence()) as store:
        with pytest.raises(
            DataError, match=r"run 0 have shape \(8, 1050\); give one row per time step, 1050"
        ):
            store.record(0, np.zeros((8, 1050)))
        store.record(0, np.zeros((1050, 8)))
        with pytest.raises(DataError, match="7 channels; this store has 8"):
            store.record(1, np.zeros((1050, 7)))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"noise_repeats": 5}, "noise_repeats=5.*no meaning for a sequence"),
        ({"max_delay": 5}, "table of degrees and delays"),
        ({"max_delay": None}, "give `max_delay`"),
        ({"max_delay": {1: -1}}, "max_delay=-1"),
    ],
)
def test_what_makes_no_sense_for_a_sequence_is_refused(wrong, said):
    with pytest.raises(ParameterError, match=said):
        sequence(**wrong)


def run(*words):
    result = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_line_plans_and_acquires_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run(
        "plan",
        "--max-delay",
        "1:20,2:5",
        "--n-samples",
        2000,
        "--runs",
        2,
        "--washout",
        60,
        "-o",
        "plan.toml",
    )
    assert "43 functions" in said
    assert "2 measurements of 1060 time steps" in said
    run("acquire", "plan.toml", "-o", "run.db", "--instrument", "simulated")
    assert "memory capacity" in run("estimate", "run.db")
    run("draw", "plan.toml", "-o", "inputs.csv")
    u = np.loadtxt("inputs.csv", delimiter=",", comments="#", skiprows=2)
    assert u.shape == (2120, 2)
    by_run = np.argsort(u[:, 0])  # runs come in random order
    np.savetxt("readouts.csv", NETWORK(u[:, 1].reshape(2, -1, 1)).reshape(2120, -1), delimiter=",")
    run("import", "inputs.csv", "readouts.csv", "-o", "run.nc")
    assert_allclose(infocap.read("run.nc").inputs[:, 0], u[by_run, 1])
    assert "2000 samples" in run("estimate", "run.nc")


def test_a_table_of_a_sequence_keeps_runs_and_washout(tmp_path):
    plan = sequence(repeat_every=3)
    whole = acquire(plan, SimulatedBench(NETWORK), tmp_path / "run.db", progress=False)
    whole.save(tmp_path / "run.nc")
    run("export", tmp_path / "run.db", tmp_path / "run.csv")
    found = [
        infocap.estimate(infocap.read(tmp_path / name), basis=plan.basis)
        for name in ("run.nc", "run.csv")
    ]
    assert found[0].n_samples == found[1].n_samples == 3000
    assert_allclose(
        found[1].memory_capacity.standard_error, found[0].memory_capacity.standard_error, rtol=1e-9
    )
    assert_allclose(found[1].noise_limited_total, found[0].noise_limited_total, rtol=1e-9)


def test_a_run_that_was_cut_short_does_not_go_on_in_the_next(tmp_path):
    plan = sequence()
    plan.write_inputs(tmp_path / "inputs.csv")
    u = np.loadtxt(tmp_path / "inputs.csv", delimiter=",", comments="#", skiprows=2)[:, 1]
    x = np.concatenate([NETWORK(run[:, None], seed=1) for run in u.reshape(3, -1)])
    np.savetxt(
        tmp_path / "readouts.csv", x[:1500], delimiter=","
    )  # the second run ends after 450 steps
    recording = infocap.read(tmp_path / "inputs.csv", tmp_path / "readouts.csv")
    assert sorted(run.stop - run.start for run in recording.runs) == [450, 1050]
    result = infocap.estimate(recording, basis=plan.basis)
    wanted = infocap.estimate(
        [recording.inputs[run] for run in recording.runs],
        [recording.readouts[run] for run in recording.runs],
        plan.basis,
        washout=50,
    )
    assert result.n_samples == wanted.n_samples == 1400
    assert_allclose(result.unbiased, wanted.unbiased, atol=1e-12)


def test_several_files_and_rows_left_out_are_runs_of_their_own(tmp_path):
    u = infocap.draw(sequence().basis, 900, seed=1)
    parts = [
        infocap.Recording(u[k : k + 450], NETWORK(u[k : k + 450], seed=k), np.arange(450))
        for k in (0, 450)
    ]
    names = [one.save(tmp_path / f"{k}.csv") for k, one in enumerate(parts)]
    joined = infocap.read(names)
    assert joined.runs == [slice(0, 450), slice(450, 900)]
    joined.save(tmp_path / "both.csv")
    assert infocap.read(tmp_path / "both.csv").runs == joined.runs
    torn = infocap.Recording(u[:448], NETWORK(u[:448]), np.delete(np.arange(450), [100, 101]))
    assert torn.runs == [slice(0, 100), slice(100, 448)]
    assert infocap.Recording(u[:448], NETWORK(u[:448]), 10 * np.arange(448)).runs == [slice(0, 448)]


def test_a_loop_of_ones_own_gets_whole_runs(tmp_path):
    plan = sequence(repeat_every=3)
    with Store(tmp_path / "run.db", plan) as store:
        for run in store.remaining():
            assert run.u.shape == (1050, 1)
            store.record(run.number, NETWORK(run.u, seed=run.number), run.kind)
        recording = store.recording()
    assert_array_equal(recording.inputs, plan.inputs)
    assert_array_equal(recording.readouts[1050:2100], NETWORK(plan.inputs[1050:2100], seed=1))


def test_the_command_line_explores_a_recorded_sequence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    acquire(sequence(), SimulatedBench(NETWORK), "run.db", progress=False).save("run.csv")
    words = ("--washout", 60, "--max-degree", 3, "--most-tested", 2000)
    said = run("explore", "run.csv", *words, "-o", "found.nc", "--plot", "memory.png")
    recording = infocap.read("run.csv")
    found = infocap.load_result("found.nc")
    wanted = infocap.explore(*split(recording, 1050), washout=60, max_degree=3, most_tested=2000)
    assert_allclose(found.capacity, wanted.result.capacity, atol=1e-12)
    assert found.n_samples == 3 * 990
    assert found.metadata["explored"]["tested"] == wanted.rounds[-1].tested
    assert found.metadata["provenance"]["plan"] == sequence().to_dict()
    for words in (
        f"{np.count_nonzero(found.capacity) - 1} of",
        "memory capacity",
        "round 1:",
        "wrote found.nc, memory.png",
    ):
        assert words in said
    assert "infocap-data" in infocap.report.page(found)


def test_the_plan_of_a_file_tells_the_distribution_to_other_delays(tmp_path):
    plan = sequence(family="hermite")
    acquire(plan, SimulatedBench(NETWORK), tmp_path / "run.db", progress=False)
    assert "a sequence in 3 runs of hermite inputs" in " ".join(
        run("estimate", tmp_path / "run.db", "--max-delay", "1:5").split()
    )


def causes(recording):
    """Return the findings of the diagnosis by their cause."""
    return {check.found.get("cause"): check for check in infocap.diagnose(recording).checks}


def test_the_diagnosis_compares_a_sequence_with_its_plan(tmp_path):
    plan = sequence()
    recording = acquire(plan, SimulatedBench(NETWORK), tmp_path / "run.db", progress=False)
    assert "another design" not in causes(recording)
    other = replace(recording, inputs=sequence(seed=5).inputs)
    check = causes(other)["another design"]
    assert "of 3150 rows have other inputs than the plan" in check
