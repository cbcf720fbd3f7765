"""`infocap plan`: how many samples a wish takes, from nothing or from a pilot, and the plan that it writes."""

import numpy as np
import pytest

import infocap
from infocap.lab import Plan
from infocap.lab.cli import run
from infocap.theory import forecast, forecast_from

BASIS = infocap.product_basis("legendre", 2, 8)
SIZE = ("--n-inputs", "2", "--max-degree", "8")


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A function that runs `infocap plan` in a folder of its own, and returns the exit code."""
    monkeypatch.chdir(tmp_path)

    def run_plan(*arguments):
        monkeypatch.setattr("sys.argv", ["infocap", "plan", *arguments])
        with pytest.raises(SystemExit) as ended:
            run()
        return ended.value.code or 0

    return run_plan


def test_it_says_the_range_and_writes_the_plan_of_a_pilot(plan, capsys):
    assert plan(*SIZE, "--n-readouts", "20", "--error", "0.1", "-o", "plan.toml") == 0
    first, second, third, _ = capsys.readouterr().out.splitlines()
    low, high = forecast(BASIS, 20).range_needed(0.1)
    assert f"takes {low} to {high} samples, depending on the device." in first
    assert "pilot of 512 first, 8 for each function. Its rows are kept." in second
    assert third == "Then: infocap plan --pilot pilot.nc --error 0.1 -o plan.toml"
    assert Plan.load("plan.toml").n_samples == 512


def test_it_asks_for_no_pilot_where_few_samples_do_for_any_device(plan, capsys):
    assert plan(*SIZE, "--n-readouts", "20", "--error", "2", "-o", "plan.toml") == 0
    first, _, _, _ = capsys.readouterr().out.splitlines()
    n = forecast(BASIS, 20).samples_needed(2)
    assert first == f"Take {n} samples, whatever the device: no pilot is needed."
    assert Plan.load("plan.toml").n_samples == n


def test_the_range_may_be_open_to_above(plan, capsys):
    assert plan(*SIZE, "--n-readouts", "20", "--error", "0.001") == 0
    assert "to more than 16,777,216 samples" in " ".join(capsys.readouterr().out.split())


def test_a_pilot_of_a_sequence_is_long_against_its_delays(plan):
    size = ("--max-delay", "1:30,2:4", "--n-readouts", "20", "--error", "0.05")
    assert plan(*size, "-o", "plan.toml") == 0
    assert Plan.load("plan.toml").n_samples == 4096  # from 96 x 30 on


@pytest.fixture
def pilot(plan):
    """The result of 256 samples of a plan, saved as result.nc; and the plan."""
    pilot_plan = Plan(n_inputs=2, max_degree=8, n_samples=256, seed=1, repeat_every=4)
    system = infocap.theory.random_mixture(BASIS, n_active=25, n_readouts=15, noise=0.5, seed=5)
    recording = infocap.Recording(
        pilot_plan.inputs,
        system(pilot_plan.inputs, seed=1),
        design_index=range(256),
        metadata={"plan": pilot_plan.to_dict()},
    )
    result = infocap.estimate(recording, basis=BASIS)
    result.save("result.nc")
    return result, pilot_plan


def test_it_asks_a_pilot(plan, pilot, capsys):
    result, _ = pilot
    assert plan("--pilot", "result.nc", "--error", "0.1") == 0
    n = forecast_from(result).samples_needed(0.1)
    output = capsys.readouterr().out
    assert f"Take {n} samples" in output
    least = infocap.theory.efficiency_bound(result).samples_needed(0.1)
    assert f"Any method would need about {least} samples" in output
    assert f"total {result.total:.2f} ± {result.total_standard_error:.2f} of" in output
    assert output.count("warning of the pilot") == len(result.warnings)


def test_the_plan_of_a_pilot_is_extended(plan, pilot):
    result, pilot_plan = pilot
    assert plan("--pilot", "result.nc", "--error", "0.1", "-o", "extended.toml") == 0
    extended = Plan.load("extended.toml")
    assert extended.n_samples == forecast_from(result).samples_needed(0.1)
    assert extended.repeat_every == 4
    assert extended.blocks == extended.n_samples // 64
    assert np.array_equal(extended.inputs[:256], pilot_plan.inputs)


def test_it_tells_of_a_plan_with_weights(plan, capsys):
    options = (*SIZE, "--n-samples", "512", "-o", "plan.toml")
    assert plan(*options) == 0
    assert "weights" not in capsys.readouterr().out
    assert plan(*options, "--family", "hermite", "--force") == 0
    assert "few samples would decide" in " ".join(capsys.readouterr().out.split())
    assert Plan.load("plan.toml").weighted


def test_a_pilot_without_a_plan_is_not_extended(plan, capsys):
    basis = infocap.product_basis("legendre", 2, 3, domain=(0, 5))
    infocap.probe(lambda u: np.column_stack([u, u**2]), basis, 64, seed=1).save("result.nc")
    assert plan("--pilot", "result.nc", "--error", "0.1", "-o", "plan.toml") == 2
    printed = capsys.readouterr()
    assert "That is precise enough already" in printed.out
    assert "has no plan that could be extended" in printed.err


NO_PILOT = ("--pilot", "none.nc", "--error", "1")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (SIZE, 2, "give --n-samples, or --error"),
        ([*SIZE, "--n-samples", "64", "--error", "1", "-o", "plan.toml"], 2, "one of the two"),
        ([*SIZE, "--n-samples", "64"], 2, "-o plan.toml"),
        ([*SIZE, "--error", "1"], 2, "--error needs --n-readouts"),
        ([*SIZE, "--error", "0", "--n-readouts", "5"], 2, "--error 0.0 must be a positive number"),
        ([*SIZE, "--error", "1e-7", "--n-readouts", "5"], 2, "more than 16,777,216 samples"),
        ([*SIZE, "--error", "1", "--n-readouts", "0"], 2, "--n-readouts 0 must be"),
        (["--n-inputs", "2", "--error", "1", "--n-readouts", "5"], 2, "--max-degree is missing"),
        (NO_PILOT, 3, "none.nc"),
        (["--pilot", "run.db", "--error", "1"], 3, "`infocap estimate run.db -o result.nc` makes one"),
        ([*NO_PILOT, "--max-degree", "6"], 2, "--max-degree 6 is known from the pilot"),
        ([*NO_PILOT, "--n-readouts", "5"], 2, "--n-readouts 5 is known from the pilot"),
        ([*SIZE, "--n-samples", "64", "--n-readouts", "5", "-o", "plan.toml"], 2, "--n-readouts 5 goes with --error"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_and_an_exit_code(plan, arguments, code, message, capsys):
    assert plan(*arguments) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
