"""Devices with memory on the command line and on the page."""

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import infocap
from infocap.lab.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")


@pytest.fixture(scope="module")
def sequence():
    """Inputs and readouts of a small network."""
    u = np.random.default_rng(1).uniform(-1, 1, (2500, 1))
    return u, infocap.systems.EchoState(8, radius=0.8, noise=0.02, seed=0)(u, seed=1)


@pytest.fixture
def table(sequence, tmp_path):
    """The sequence as a file of comma-separated values."""
    u, x = sequence
    names = ["u1", *(f"x{channel + 1}" for channel in range(x.shape[1]))]
    path = tmp_path / "run.csv"
    np.savetxt(path, np.column_stack([u, x]), delimiter=",", header=",".join(names), comments="")
    return path


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_estimate_takes_delays(sequence, table, tmp_path):
    result = tmp_path / "r.nc"
    picture = tmp_path / "memory.png"
    delays = ("--max-delay", "1:30,2:10", "--washout", 50)
    finished = run("estimate", table, *delays, "-o", result, "--plot", picture)
    assert finished.exit_code == 0, finished.output
    assert "memory capacity" in finished.output
    assert picture.exists()
    basis = infocap.delayed_basis(max_delay={1: 30, 2: 10})
    direct = infocap.estimate(*sequence, basis, washout=50)
    assert_allclose(infocap.load_result(result).total, direct.total, rtol=1e-9)


@pytest.fixture
def dependent(tmp_path):
    """A file of inputs that depend on each other, and of a network's readouts."""
    u = np.random.default_rng(1).standard_normal((1500, 1))
    for t in range(1, len(u)):
        u[t] = 0.9 * u[t - 1] + 0.4 * u[t]
    x = infocap.systems.EchoState(5, radius=0.8, noise=0.02, seed=0)(np.tanh(u), seed=1)
    path = tmp_path / "dependent.csv"
    table = np.column_stack([np.tanh(u), x])
    np.savetxt(path, table, delimiter=",", header="u1,x1,x2,x3,x4,x5", comments="")
    return path


def test_estimate_goes_on_with_the_recorded_law_and_says_so(dependent, tmp_path):
    files = [tmp_path / name for name in ("r.nc", "r.png", "page.html")]
    finished = run(
        "estimate", dependent, "--max-delay", "1:8,2:3", "-o", files[0], "--plot", files[1]
    )
    assert finished.exit_code == 0, finished.output
    assert "so these are capacities under the law of the recorded inputs" in " ".join(
        finished.output.split()
    )
    assert "functions can be told apart" in finished.output
    assert "u[t-2] beyond u[t], u[t-1]" in finished.output
    assert infocap.load_result(files[0]).law == "recorded"
    shown = run("show", files[0])
    assert "beyond the present input" in shown.output
    reported = run("report", files[0], "-o", files[2])
    assert reported.exit_code == 0, reported.output
    assert "Under the law of the recorded inputs" in files[2].read_text(encoding="utf-8")
    assert infocap.load_result(files[2]).law == "recorded"


def test_estimate_gives_no_numbers_where_the_declared_law_is_asked_for(dependent):
    finished = run("estimate", dependent, "--max-delay", "1:8,2:3", "--law", "declared")
    assert "No capacities can be had from these inputs." in finished.output
    assert "--law" in finished.output
    assert "Total" not in finished.output
    strict = run("estimate", dependent, "--max-delay", "1:8", "--law", "declared", "--strict")
    assert strict.exit_code == 1


def test_explore_and_input_noise_under_the_recorded_law(dependent):
    explored = run("explore", dependent, "--washout", 20, "--max-degree", 2)
    assert explored.exit_code == 0, explored.output
    assert "so these are capacities under the law" in " ".join(explored.output.split())
    noisy = run("estimate", dependent, "--max-delay", "1:8,2:3", "--input-noise", 0.5)
    assert "of 20 functions can be told apart" in noisy.output
    assert "20 of 20" not in noisy.output


def test_plan_takes_delays():
    finished = run("plan", "--max-delay", "1:100,2:40", "--n-readouts", 50, "--error", 0.2)
    assert finished.exit_code == 0, finished.output
    assert "fewer than 3852 samples" in finished.output  # four for each of 963 functions


def test_a_misspelt_delay_is_answered_with_the_right_form(table):
    finished = run("estimate", table, "--max-delay", "1-30")
    assert "give it as 1:100,2:40,3:20" in str(finished.exception)


def test_the_page_of_a_sequence_shows_its_memory_function(sequence):
    basis = infocap.delayed_basis("legendre", max_delay={1: 30, 2: 10, 3: 4})
    page = infocap.report.page(infocap.estimate(*sequence, basis, washout=50))
    assert "Memory function" in page
    assert "P1(u[t-3])" in page
