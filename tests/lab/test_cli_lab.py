"""The commands of the lab: what they write, what they refuse, and how they end."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import infocap
from infocap.lab import Plan, Store, status
from infocap.lab.cli import run

DRIVER = """
import os, signal
import numpy as np
import helper_of_driver

class Device:
    def __init__(self):
        self.count = 0

    def measure(self, u):
        import helper_of_driver as again
        self.count += 1
        if self.count == int(os.environ.get("STOP_AT", 0)):
            os.kill(os.getpid(), signal.SIGINT)
        return np.concatenate([u, u**2])

def make():
    return Device()

def make_with(plan):
    assert plan.n_inputs == 2
    return Device()

def broken():
    raise RuntimeError("the laser\\nis off")

not_callable = 5
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A folder with a plan and a driver of the user's own, and the command line in it."""
    Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1, repeat_every=4).save(
        tmp_path / "plan.toml"
    )
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "helper_of_driver.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def infocap_command(*arguments, **environment):
    """The command in a process of its own."""
    source = str(Path(infocap.__file__).parents[1])
    program = [sys.executable, "-P", "-m", "infocap"]
    return subprocess.run(
        [*program, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source, **environment},
        check=False,
        timeout=120,
    )


def call(monkeypatch, *arguments):
    """The command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["infocap", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        run()
    return ended.value.code or 0


def test_a_plan_goes_to_other_software_and_comes_back(lab, monkeypatch, capsys):
    assert call(monkeypatch, "draw", "plan.toml", "-o", "inputs.csv") == 0
    table = np.loadtxt("inputs.csv", delimiter=",", skiprows=2)
    np.savetxt("readouts.csv", np.column_stack([table[:, 1:], table[:, 1:] ** 2]), delimiter=",")
    assert call(monkeypatch, "import", "inputs.csv", "readouts.csv", "-o", "run.nc") == 0
    assert call(monkeypatch, "estimate", "run.nc", "-o", "result.nc", "--quiet") == 0
    result = infocap.load_result("result.nc")
    assert result.total == pytest.approx(5.0, abs=0.05)
    assert result.metadata["provenance"]["fingerprint"] == Plan.load("plan.toml").fingerprint


def test_how_rows_are_read_stands_in_the_plan(lab, monkeypatch):
    basis = ["--n-inputs", 2, "--max-degree", 3, "--n-samples", 64]
    rows = ["--averages", 8, "--settle-s", 0.05, "--dark-every", 16]
    assert call(monkeypatch, "plan", *basis, *rows, "-o", "other.toml") == 0
    plan = Plan.load("other.toml")
    assert (plan.averages, plan.settle_s, plan.dark_every) == (8, 0.05, 16)
    assert [kind for kind, _ in plan.schedule.keys].count("dark") == 5


def test_a_driver_beside_the_plan_is_run_stopped_and_gone_on_with(lab, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    order = ["acquire", "../plan.toml", "--instrument", "driver:make", "-o", "run.db"]
    stopped = infocap_command(*order, STOP_AT="30")
    assert stopped.returncode == 130, stopped.stderr
    assert "Stopped before all was measured (interrupted)" in stopped.stdout
    assert status("run.db").stored == 30
    done = infocap_command(*[*order[:3], "driver:make_with", *order[4:]])
    assert done.returncode == 0, done.stderr
    assert "Stopped" not in done.stdout
    shown = infocap_command("watch", "run.db", "--once")
    assert "64/64 samples, 16/16 repeats" in shown.stdout
    assert "complete: all that was planned is stored." in shown.stdout


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (["acquire", "plan.toml", "--instrument", "driver:broken", "-o", "run.db"], 3, "RuntimeError: the laser is off"),
    (["acquire", "plan.toml", "--instrument", "driver:nothing", "-o", "run.db"], 2, "AttributeError: module 'driver'"),
    (["acquire", "plan.toml", "--instrument", "driver:not_callable", "-o", "run.db"], 2, "--instrument 5 has no method measure(u)"),
    (["acquire", "plan.toml", "--instrument", "no_such:make", "-o", "run.db"], 2, "No module named 'no_such'"),
    (["acquire", "plan.toml", "--instrument", "driver", "-o", "run.db"], 2, "must look like package.module:make"),
    (["acquire", "plan.toml", "--instrument", "driver:make", "-o", "run.nc"], 2, "'.nc' is not one of '.db'"),
    (["acquire", "plan.toml", "--instrument", "driver:make", "-o", "no/run.db"], 3, "the folder no does not exist"),
    (["acquire", "none.toml", "--instrument", "driver:make", "-o", "run.db"], 3, "none.toml cannot be read"),
    (["draw", "plan.toml", "-o", "plan.toml"], 2, "'.toml' is not one of '.csv'"),
    (["draw", "plan.toml", "-o", "important.csv"], 2, "is there already; give another name, or --force"),
    (["plan", "--n-inputs", "2", "--max-degree", "3", "--n-samples", "64", "-o", "plan.toml"], 2, "is there already"),
    (["watch", "plan.toml"], 3, "is not an acquisition store"),
    (["watch", "empty.db", "--once"], 3, "it holds nothing yet"),
    (["watch", "none.db"], 3, "does not exist"),
    (["export", "empty.db", "run.nc"], 3, "holds nothing yet"),
    (["extend", "none.db", "--n-samples", "128"], 3, "none.db does not exist or holds nothing"),
    (["extend", "begun.db", "--n-samples", "32"], 2, "--n-samples 32 is less than the 64 that begun.db has planned"),
    (["extend", "begun.db", "--n-samples", "0"], 2, "--n-samples 0 must be a whole number, 1 or more"),
])  # fmt: skip
def test_mistakes_in_the_lab_are_one_line_and_an_exit_code(
    lab, arguments, code, message, monkeypatch, capsys
):
    Path("important.csv").write_text("a night\n")
    Path("empty.db").touch()
    Store("begun.db", Plan.load("plan.toml")).close()
    assert call(monkeypatch, *arguments) == code
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert Path("important.csv").read_text() == "a night\n"


def test_a_report_replaces_a_report_and_nothing_else(lab, monkeypatch, capsys):
    basis = infocap.product_basis("legendre", 2, 2)
    infocap.probe(lambda u: u, basis, 64, seed=0).save("result.nc")
    assert call(monkeypatch, "report", "result.nc", "-o", "page.html") == 0
    assert call(monkeypatch, "report", "result.nc", "-o", "page.html") == 0
    Path("other.html").write_text("<html>my thesis</html>")
    assert call(monkeypatch, "report", "result.nc", "-o", "other.html") == 2
    assert Path("other.html").read_text() == "<html>my thesis</html>"


def test_a_warning_is_a_sentence_without_a_line_of_code(lab):
    done = infocap_command(
        "plan", "--n-inputs", "2", "--max-degree", "3", "--n-samples", "100", "-o", "odd.toml"
    )
    assert done.returncode == 0
    assert done.stderr.startswith(
        "infocap: warning: Sobol points are balanced only in powers of two"
    )
    assert done.stderr.count("\n") == 1


def test_names_of_devices_may_begin_with_a_minus(lab, monkeypatch, capsys):
    basis = infocap.product_basis("legendre", 2, 2)
    for name in "ab":
        infocap.probe(lambda u: u, basis, 64, seed=0).save(f"{name}.nc")
    assert (
        call(monkeypatch, "compare", "a.nc", "b.nc", "--names", "-3 dBm", "--names", "0 dBm") == 0
    )
    assert "-3 dBm" in capsys.readouterr().out


def test_a_store_with_few_rows_can_be_shown_and_is_told_to_be_too_short(lab, monkeypatch, capsys):
    with Store("run.db", Plan.load("plan.toml")) as store:
        assert call(monkeypatch, "show", "run.db") == 0
        assert "Recording of 0 samples" in capsys.readouterr().out
        assert call(monkeypatch, "estimate", "run.db") == 3
        store.record(0, [1.0, 2.0])
    assert call(monkeypatch, "show", "run.db") == 0
    assert call(monkeypatch, "estimate", "run.db") == 3
    assert call(monkeypatch, "watch", "run.db", "--once") == 0
    assert "1 samples are stored; 6 are the least that tell something" in capsys.readouterr().out


def test_a_damaged_store_is_exported_to_a_new_one(lab, monkeypatch, capsys):
    with Store("run.db", Plan.load("plan.toml")) as store:
        for one in store.remaining():
            store.record(one.number, np.concatenate([one.u, one.u**2]), one.kind)
    data = bytearray(Path("run.db").read_bytes())
    u = Plan.load("plan.toml").inputs[17]
    place = data.index(np.concatenate([u, u, u**2]).tobytes())
    data[place : place + 8] = bytes(8)
    Path("run.db").write_bytes(data)
    assert call(monkeypatch, "export", "run.db", "new.db") == 0
    # A store is never replaced.
    assert call(monkeypatch, "export", "run.db", "new.db", "--force") == 3
    with Store("new.db", Plan.load("plan.toml")) as store:
        assert [index for index, _ in store.pending()] == [17]
