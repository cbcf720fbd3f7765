"""The example scripts run, in their quick form, and say what they promise."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import infocap

pytestmark = pytest.mark.pages

EXAMPLES = Path(infocap.__file__).parents[2] / "examples"
DEVICES = {
    "fibre": ("-9.1 dBm", "6.6 dBm"),
    "random_features": ("gain 0.3", "gain 3"),
    "network": ("layer 1", "layer 3"),
    "qubits": ("30 shots", "3000 shots"),
    "photodiodes": ("mean power 0.001", "mean power 20"),
}
PROMISED = {
    "device_files": (["CapacityResult: total", "Accuracy:", "linear model"], ["task-readouts.csv"]),
    "simulator": (["Sweep: 4 points", "correlation 0."], ["capacity-accuracy.png"]),
    "own_instrument": (["Recording: 512 samples", "that noise allows"], ["run.db"]),
    "lab_sweep": (
        ["4 of 4 settings, 1152 measurements", "Sweep: 4 points", "4 settings, total capacity"],
        ["degrees.png", "sweep.html"],
    ),
    "echo_state": (["the start is forgotten after", "R²: "], ["echo-state.png"]),
    "delay_reservoir": (
        ["ikeda, feedback 0.2: forgets its start", "NRMSE"],
        ["delay-reservoir.png"],
    ),
    "delay_line": (
        ["line of 20 nodes, noise 0: memory 20.00", "simulated and exact differ by 0.0"],
        ["delay-line.png"],
    ),
    "gallery": (
        ["Fibre, −9.1 dBm: ", "Delay line: "],
        ["gallery/index.html", "gallery/qubits-30.html"],
    ),
    "own_task": (["Demand of ring", "of the target is reachable"], ["demand-supply-network.png"]),
}


@pytest.mark.filterwarnings("ignore:1024 samples are few for 72 readouts")  # quick, not good
@pytest.mark.parametrize("name", PROMISED)
def test_the_example_runs_and_writes_its_files(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--quick"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    sentences, files = PROMISED[name]
    assert [sentence for sentence in sentences if sentence not in printed] == []
    assert all((tmp_path / "example-output" / file).stat().st_size > 1000 for file in files)


@pytest.mark.filterwarnings(
    "ignore::infocap.errors.DataWarning"
)  # the quick form is short of samples
@pytest.mark.parametrize("name", DEVICES)
def test_a_device_shows_its_profiles_and_draws_them(name, tmp_path, monkeypatch, capsys):
    picture = tmp_path / f"{name}.png"
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--quick", "--plot", str(picture)])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert [setting for setting in DEVICES[name] if setting not in printed] == []
    assert printed.count("CapacityResult: total") == printed.count("that noise allows") == 3
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


def test_expectation_values_of_the_qubits_are_those_of_many_shots():
    names = runpy.run_path(str(EXAMPLES / "qubits.py"))
    unitary = names["circuit"]()
    angles = np.array([[0.4, 2.0]])
    assert np.allclose(unitary @ unitary.conj().T, np.eye(16))
    state = np.ones(1)
    for angle in (0.4, 2.0, 0.4, 2.0):
        state = np.kron(state, [np.cos(angle / 2), np.sin(angle / 2)])
    exact = np.abs(unitary @ state) ** 2 @ names["OBSERVABLES"]
    found = names["Qubits"](1_000_000)(angles, seed=1)[0]
    assert np.all(np.abs(found - exact) < 5e-3)  # five standard errors of a million shots


def test_every_example_is_run_and_listed():
    here = {path.stem for path in EXAMPLES.glob("*.py")}
    run_with_the_readme = {"demo", "which_device"}
    assert here == {*PROMISED, *DEVICES, *run_with_the_readme}
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in here if f"({name}.py)" not in listed] == []
