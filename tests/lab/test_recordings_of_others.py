"""Public recordings of physical devices, from their files as they are, each in two commands."""

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import infocap
from infocap.lab.cli import main

DATA = os.environ.get("INFOCAP_DATA")

pytestmark = [
    pytest.mark.skipif(DATA is None, reason="INFOCAP_DATA names no folder of real recordings"),
    pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning"),
]
IN_VOLTS = ("--u", "8_V[V]", "--x", "*_V[V]")


def run(*arguments):
    ran = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert ran.exit_code == 0, ran.output + str(ran.exception)
    return " ".join(ran.output.split())


def nanowire(number):
    (file,) = Path(DATA, "nanowire").glob(f"{number}*")
    return file


def test_a_nanowire_network_agrees_with_another_program(tmp_path):
    """Raw capacities of independent voltages, as ipc-module 1.0.1 gives them for the same rows."""
    run("import", nanowire("011"), *IN_VOLTS, "-o", tmp_path / "run.nc")
    output = tmp_path / "result.nc"
    options = ("--max-delay", "1:10", "--washout", 50, "--method", "raw", "-o", output)
    run("estimate", tmp_path / "run.nc", *options)
    raw = infocap.load_result(output).memory_function().capacity
    other_program = [0.998393, 0.996968, 0.735609, 0.244043, 0.135919]
    # The other program takes mean and spread of the inputs from the rows it uses, we from all.
    assert_allclose(raw[:5], other_program, atol=0.0015)


def test_a_nanowire_network_has_the_same_under_both_laws(tmp_path):
    run("import", nanowire("011"), *IN_VOLTS, "-o", tmp_path / "run.nc")
    totals = []
    for law in ("declared", "recorded"):
        output = tmp_path / f"{law}.nc"
        options = ("--max-delay", "1:30,2:8,3:3", "--law", law, "-o", output)
        run("estimate", tmp_path / "run.nc", *options)
        totals.append(infocap.load_result(output))
    declared, recorded = totals
    bar = max(declared.total_standard_error, recorded.total_standard_error)
    assert abs(declared.total - recorded.total) < bar


def test_a_sine_on_a_nanowire_network_says_nothing_of_other_inputs(tmp_path):
    run("import", nanowire("837"), *IN_VOLTS, "-o", tmp_path / "run.nc")
    said = run("explore", tmp_path / "run.nc")
    assert "inputs nearly repeat every 50 rows" in said
    assert "functions can be told apart" in said


def test_a_motor_in_a_closed_loop(tmp_path):
    file = Path(DATA, "motor_drive", "faster.csv")
    run("import", file, "--u", "u", "--x", "y", "-o", tmp_path / "run.nc")
    output = tmp_path / "result.nc"
    said = run("estimate", tmp_path / "run.nc", "--max-delay", "1:20,2:3", "-o", output)
    assert "In a closed loop capacities are not the device's doing alone" in said
    result = infocap.load_result(output)
    assert result.beyond_present > 5 * result.beyond_present.standard_error


def test_a_magnet_remembers(tmp_path):
    folder = Path(DATA, "magnet_scans", "skyrmion")
    run("import", folder, "--u", "Field", "-o", tmp_path / "run.nc")
    output = tmp_path / "result.nc"
    options = ("--max-delay", "1:8,2:4", "--n-components", 16, "-o", output)
    said = run("estimate", tmp_path / "run.nc", *options)
    assert "The 1601 channels hold at least" in said
    assert "closed loop" not in said
    result = infocap.load_result(output)
    assert result.beyond_present > 3 * result.beyond_present.standard_error
    assert np.isfinite(result.total)
