"""Acquisitions in processes of their own: signals, crashes, drivers with mistakes, and what the device is left in."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import infocap
from infocap import estimate
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.lab import Plan, SimulatedBench, Store, acquire, status

PLAN = Plan(n_inputs=2, max_degree=3, n_samples=64, seed=1)
DRIVER = """
import os, sys, time
import numpy as np

class Device:
    def __init__(self):
        self.count = 0
        self.tell("made")

    def tell(self, word):
        with open("calls", "a") as file:
            file.write(word + "\\n")

    def measure(self, u):
        self.count += 1
        self.tell("measure")
        what = os.environ.get("MISTAKE", "") if self.count == 5 else ""
        if what == "typo":
            return u.summ()
        if what == "exit":
            sys.exit(0)
        if what == "abort":
            os.abort()
        if what == "error":
            raise OSError("the laser is warm")
        time.sleep(float(os.environ.get("LATENCY", 0)))
        return np.append(u, u**2)[: 3 if what == "short" or (self.count == 1 and "FIRST" in os.environ) else 4]

    def recover(self):
        self.tell("recover")

    def safe(self):
        self.tell("safe")

    def close(self):
        self.tell("close")

class Other(Device):
    pass

def exits():
    sys.exit(5)
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A folder with a plan and a driver; the device writes down what is done to it."""
    PLAN.save(tmp_path / "plan.toml")
    (tmp_path / "driver.py").write_text(DRIVER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*options, instrument="driver:Device", **environment):
    words = [
        "acquire",
        "plan.toml",
        "--instrument",
        instrument,
        "-o",
        "run.db",
        "--quiet",
        "--wait-s",
        "0",
        *options,
    ]
    settings = os.environ | {"PYTHONPATH": str(Path(infocap.__file__).parents[1])} | environment
    program = [sys.executable, "-P", "-c", "import infocap.lab.cli; infocap.lab.cli.run()", *words]
    return subprocess.Popen(
        program, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def calls():
    return Path("calls").read_text().split()


def wait_for_rows(count):
    for _ in range(150):
        if Path("calls").exists() and calls().count("measure") >= count:
            return
        time.sleep(0.1)
    raise AssertionError("nothing was measured")


@pytest.mark.parametrize("kind", ["SIGHUP", "SIGTERM", "SIGINT"])
def test_every_signal_that_ends_a_run_leaves_the_device_safe_and_the_rows_stored(lab, kind):
    process = command(LATENCY="0.05")
    wait_for_rows(5)
    process.send_signal(getattr(signal, kind))
    code, out, _ = ended(process)
    assert (code, "interrupted" in out) == (130, True)
    assert calls()[-2:] == ["safe", "close"]
    assert len(infocap.read("run.db").design_index) == calls().count("measure")


def test_a_run_under_nohup_outlives_its_terminal(lab):
    process = command(LATENCY="0.02")
    process.kill()
    ended(process)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        process = command(LATENCY="0.02")
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_for_rows(5)
    process.send_signal(signal.SIGHUP)
    assert ended(process)[0] == 0
    assert len(infocap.read("run.db").design_index) == 64


@pytest.mark.parametrize("way", ["kill", "abort"])
def test_after_a_crash_the_device_is_made_safe_at_the_next_start(lab, way):
    process = command(LATENCY="0.05", MISTAKE="abort" if way == "abort" else "")
    if way == "kill":
        wait_for_rows(5)
        process.kill()
    ended(process)
    assert "safe" not in calls()
    Path("calls").unlink()
    assert ended(command())[0] == 0
    assert calls()[:4] == ["made", "safe", "recover", "measure"]
    Path("calls").unlink()
    assert ended(command())[0] == 0
    assert not Path("calls").exists()  # nothing was left to measure, so no instrument was made


def test_a_mistake_in_the_driver_stops_at_once_with_its_line(lab):
    code, _, err = ended(command(MISTAKE="typo"))
    assert code == 3
    assert "AttributeError" in err
    assert "return u.summ()" in err
    assert "driver.py" in err
    assert "everything before is safe" in err
    assert (calls().count("measure"), calls()[-2:]) == (5, ["safe", "close"])
    assert len(infocap.read("run.db").design_index) == 4


@pytest.mark.parametrize("options", [(), ("--timeout-s", "20")])
def test_sys_exit_in_a_driver_is_an_error(lab, options):
    code, _, err = ended(command(*options, MISTAKE="exit"))
    assert code == 3
    assert "driver ended the program at sample" in err
    assert calls()[-2:] == ["safe", "close"]
    code, _, err = ended(command(*options, instrument="driver:exits"))
    assert (code, "SystemExit: 5" in err) == (3, True)


def test_failures_are_kept_and_shown_by_watch_and_report(lab):
    assert ended(command(MISTAKE="error"))[0] == 0
    recording = infocap.read("run.db")
    (note,) = recording.checks
    assert note.kind == "note"
    assert note.found == {"failures": 1, "reasons": {"OSError: the laser is warm": 1}}
    now = status("run.db")
    assert note in now.checks
    result = infocap.estimate(infocap.read(recording.save("run.nc")), basis=PLAN.basis)
    kept = next(check for check in result.checks if "laser" in check)
    assert (kept, kept.kind) == (note, "note")
    assert "the laser is warm" in infocap.report.page(result)


def test_two_processes_cannot_drive_one_instrument_through_a_link(lab):
    first = command(LATENCY="0.1")
    wait_for_rows(2)
    os.symlink(lab, lab / "link")
    os.symlink("run.db", "other.db")
    for name in ("link/run.db", "other.db"):
        with pytest.raises(DataError, match="another process is acquiring"):
            acquire(PLAN, SimulatedBench(lambda u: u), name, progress=False)
    first.terminate()
    assert ended(first)[0] == 130


def test_a_store_deleted_during_the_run_is_noticed_at_the_next_row(lab):
    process = command(LATENCY="0.1")
    wait_for_rows(8)
    for name in ("run.db", "run.db-wal", "run.db-shm"):
        Path(name).unlink(missing_ok=True)
    code, _, err = ended(process)
    assert code == 3
    assert "was deleted, moved or replaced" in err
    (rescued,) = lab.glob("run-rescued-*.db")
    assert f"measurements that it held are in {rescued.name}: give that file the name" in err
    assert len(infocap.read(rescued).design_index) == calls().count("measure") - 1
    assert calls()[-2:] == ["safe", "close"]


def test_what_cannot_be_rescued_from_a_deleted_store_is_told_as_lost(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with Store(folder / "run.db", PLAN) as store:
        (index, u), (later_index, later_u), *_ = store.pending()
        store.record(index, u)
        shutil.rmtree(folder)
        with pytest.raises(DataError) as refused:
            store.record(later_index, later_u)
    message = str(refused.value)
    assert message.endswith("the 1 measurements that it held are lost; begin a new store.")
    assert "Give that file the name" not in message


def test_another_instrument_is_refused_unless_it_is_meant(lab):
    first = command(LATENCY="0.05")
    wait_for_rows(5)
    first.terminate()
    ended(first)
    code, _, err = ended(command(instrument="driver:Other"))
    assert code == 3
    assert "measured with the instrument 'Device' so far, and this is 'Other'" in err
    assert "--other-instrument" in err
    assert ended(command("--other-instrument", instrument="driver:Other"))[0] == 0


def test_a_short_first_spectrum_does_not_fix_the_number_of_channels(lab):
    assert ended(command(FIRST="1"))[0] == 0
    recording = infocap.read("run.db")
    assert recording.readouts.shape == (64, 4)
    np.testing.assert_allclose(
        recording.readouts, np.column_stack([recording.inputs, recording.inputs**2])
    )


def test_the_plan_may_tell_the_number_of_readouts(tmp_path):
    plan = Plan(n_inputs=2, max_degree=3, n_samples=8, n_readouts=3)
    assert Plan.load(plan.save(tmp_path / "plan.toml")) == plan
    with pytest.raises(DataError, match="have 2 channels; this store has 3"):
        acquire(plan, SimulatedBench(lambda u: u), tmp_path / "run.db", retries=0, progress=False)


def test_a_clock_that_is_set_back_does_not_change_the_order(tmp_path, monkeypatch):
    clock = iter([*range(31), *range(-3569, 1000)])  # set back by an hour after 31 rows
    monkeypatch.setattr(time, "time", lambda: 1e9)
    with Store(tmp_path / "run.db", PLAN) as store:
        monkeypatch.setattr(time, "time", lambda: 1e9 + next(clock))
        order = [index for index, _ in store.pending()]
        for index, u in store.pending():
            store.record(index, u)
        assert status(tmp_path / "run.db").rate_hz == pytest.approx(1.0)
    recording = infocap.read(tmp_path / "run.db")
    assert np.argsort(recording.time).tolist() == order
    assert "the clock jumped back" in recording.checks[0]


def test_a_long_pause_changes_nothing_in_the_rate(tmp_path, monkeypatch):
    times = 1e9 + np.cumsum([0, *[1] * 5, 3600, *[1] * 5])
    clock = iter(times.tolist())
    with Store(tmp_path / "run.db", PLAN) as store:
        for index, u in list(store.pending())[: len(times)]:
            with monkeypatch.context() as patch:
                patch.setattr(time, "time", lambda: next(clock))
                store.record(index, u)
    assert status(tmp_path / "run.db").rate_hz == pytest.approx(1.0)


def test_what_lies_beside_the_plan_does_not_take_the_place_of_what_is_installed(lab):
    (lab / "numpy.py").write_text("raise RuntimeError('not this one')")
    (lab / "sqlite3.py").write_text("raise RuntimeError('not this one')")
    process = command()
    code, _, err = ended(process)
    assert (code, err) == (0, "")


def test_a_device_that_cannot_be_made_safe_is_told(tmp_path):
    class Stuck(SimulatedBench):
        def safe(self):
            raise OSError("the interlock does not answer")

    with pytest.warns(
        DataWarning,
        match=r"safe\(\)` of the instrument failed .*see by hand what is still switched on",
    ):
        acquire(PLAN, Stuck(lambda u: u), tmp_path / "run.db", progress=False)


def test_events_are_plain_data_in_the_store(lab):
    assert ended(command())[0] == 0
    with Store("run.db") as store:
        assert [event["what"] for event in store.events] == ["begun", "ended"]
        assert store.last_instrument == "Device"
        assert json.loads(json.dumps(store.events)) == store.events


# Missing values.


class WithGaps:
    """Four channels with noise; those of `missing` have no number as often as `chance` says."""

    def __init__(self, chance, missing=(2,), keeps_failing=False):
        self.chance = chance
        self.missing = list(missing)
        self.keeps_failing = keeps_failing
        self.random = np.random.default_rng(3)
        self.n_calls = 0
        self.last = None
        self.fails = False

    def measure(self, u):
        self.n_calls += 1
        if not (self.keeps_failing and np.array_equal(u, self.last)):
            self.fails = self.random.random() < self.chance
        self.last = u
        x = np.tanh(u @ np.arange(1.0, 9.0).reshape(2, 4) / 4) + 0.01 * self.random.standard_normal(
            4
        )
        if self.fails:
            x[self.missing] = np.nan
        return x


PLAN_WITH_GAPS = Plan(n_inputs=2, max_degree=3, n_samples=256, seed=1)


def test_a_channel_without_a_number_is_asked_for_again(tmp_path):
    path = tmp_path / "run.db"
    recording = acquire(PLAN_WITH_GAPS, WithGaps(0.1), path, wait_s=0, progress=False)
    assert np.isfinite(recording.readouts).all()
    (check,) = recording.checks
    assert "no finite number in channel 3" in check
    assert estimate(recording).n_samples == 256


def test_a_row_that_stays_without_a_number_is_stored_with_a_finding_under_one_nan_policy(tmp_path):
    path = tmp_path / "run.db"
    bench = WithGaps(0.02, keeps_failing=True)
    recording = acquire(PLAN_WITH_GAPS, bench, path, wait_s=0, progress=False)
    n_missing = int(np.isnan(recording.readouts[:, 2]).sum())
    assert n_missing > 0
    (finding,) = [check for check in recording.checks if "incomplete" in check.found]
    n_found = len(finding.found["incomplete"])
    assert f"{n_found} measurement" in finding
    assert n_found >= n_missing  # references are measurements, too
    assert "(channel 3)" in finding

    now = status(path)  # as estimate and report do
    assert now.result is None
    assert "omit" in now.problem
    with pytest.raises(DataError, match="omit"):
        estimate(recording)
    left = status(path, nan_policy="omit").result
    assert left.n_samples == estimate(recording, nan_policy="omit").n_samples == 256 - n_missing
    with pytest.raises(ParameterError, match="nan_policy"):
        status(path, nan_policy="drop")


def test_a_dead_channel_costs_a_night_no_time(tmp_path):
    bench = WithGaps(1.0)
    recording = acquire(PLAN_WITH_GAPS, bench, tmp_path / "run.db", wait_s=0, progress=False)
    assert np.isnan(recording.readouts[:, 2]).all()
    assert np.isfinite(recording.readouts[:, [0, 1, 3]]).all()
    assert bench.n_calls == len(PLAN_WITH_GAPS.schedule) + 3  # the first row was asked for again


def test_an_answer_without_any_number_ends_the_run_after_the_retries(tmp_path):
    bench = WithGaps(1.0, missing=range(4))
    with pytest.raises(DataError, match="it gave no finite number"):
        acquire(PLAN_WITH_GAPS, bench, tmp_path / "run.db", wait_s=0, progress=False)


def test_until_follows_the_nan_policy_and_asking_again_measures_nothing_more(tmp_path):
    options = {"wait_s": 0, "progress": False, "until": 1.0}
    plan = Plan(n_inputs=2, max_degree=3, n_samples=1024, seed=1)
    path = tmp_path / "run.db"
    recording = acquire(plan, WithGaps(1.0), path, **options)
    assert "stopped" not in recording.metadata  # there were no capacities to look at
    path = tmp_path / "omit.db"
    gaps = WithGaps(0.02, keeps_failing=True)
    first = acquire(plan, gaps, path, nan_policy="omit", **options)
    assert "narrower than 1" in first.metadata["stopped"]
    again = acquire(plan, gaps, path, nan_policy="omit", **options)
    assert len(again.readouts) == len(first.readouts)
