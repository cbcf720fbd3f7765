"""The example scripts run, in their quick form, and say what they promise."""

import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import infocap

EXAMPLES = Path(infocap.__file__).parents[2] / "examples"
PROMISED = {
    "device_files": (["CapacityResult: total", "Accuracy:", "linear model"], ["task-readouts.csv"]),
    "simulator": (["Sweep: 4 settings", "correlation 0."], ["capacity-accuracy.png"]),
    "own_instrument": (["Recording: 512 samples", "that noise allows"], ["run.db"]),
    "own_task": (["Demand of ring", "of the target is reachable"], ["demand-supply-network.png"]),
}


@pytest.mark.parametrize("name", PROMISED)
def test_the_example_runs_and_writes_its_files(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--quick"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    plt.close("all")
    said = capsys.readouterr().out
    sentences, files = PROMISED[name]
    assert [sentence for sentence in sentences if sentence not in said] == []
    assert all((tmp_path / "example-output" / file).stat().st_size > 1000 for file in files)


def test_every_example_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*PROMISED, "demo"}
