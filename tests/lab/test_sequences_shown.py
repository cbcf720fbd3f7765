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
