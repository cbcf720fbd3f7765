"""A run that is extended: the same rows as one run of that length, whatever happened on the way."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import infocap
from infocap.errors import DataError, ParameterError
from infocap.lab import Plan, SimulatedBench, Store, acquire, extend, status
from infocap.lab.experiment import read_store

EVERY_KIND = {"noise_repeats": 3, "repeat_every": 4, "reference_every": 7}
ARRAYS = ("inputs", "readouts", "design_index", "repeats", "noise", "reference")
PLANS = {
    "blocks": Plan(n_inputs=2, max_degree=3, n_samples=64, blocks=4, **EVERY_KIND),
    "one block": Plan(n_inputs=2, n_samples=32, dark_every=5, **EVERY_KIND),
    "doubling": Plan(n_inputs=2, n_samples=64, blocks=4, order="doubling", **EVERY_KIND),
    "design": Plan(n_inputs=2, n_samples=64, blocks=4, order="design", **EVERY_KIND),
    "random": Plan(n_inputs=2, n_samples=50, design="random", **EVERY_KIND),
    "weighted": Plan(
        family="hermite", n_inputs=2, max_degree=6, n_samples=64, blocks=4, **EVERY_KIND
    ),
    "sequence": Plan(max_delay={1: 5}, n_samples=60, runs=3, repeat_every=2),
}


def noisy(u, seed=None):
    noise = 0.01 * np.random.default_rng(seed).normal(size=(len(u), 6))
    return np.tanh(u @ np.linspace(-1, 1, 12).reshape(2, 6)) + noise


def same(recording, other):
    return all(
        np.array_equal(getattr(recording, name), getattr(other, name), equal_nan=True)
        for name in ARRAYS
    )


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@settings(max_examples=12)
@given(between=st.integers(1, 300), more=st.integers(1, 300))
def test_an_extended_plan_begins_with_the_shorter_one_and_forgets_the_lengths_in_between(
    plan, between, more
):
    middle = plan.extended(plan.n_samples + between)
    long = middle.extended(middle.n_samples + more)
    assert long == plan.extended(middle.n_samples + more)
    assert long.n_samples >= middle.n_samples + more > plan.n_samples
    for short in (plan, middle):
        n = len(short.schedule)
        assert_array_equal(long.schedule.codes[:n], short.schedule.codes)
        assert_array_equal(long.schedule.inputs[:n], short.schedule.inputs)
        assert long.schedule.keys[:n] == short.schedule.keys
        assert long.is_extension_of(short)
        assert not short.is_extension_of(long)
    samples = [number for kind, number in long.schedule.keys if kind == "sample"]
    assert sorted(samples) == list(range(long.runs or long.n_samples))
    repeated = [number for kind, number in long.schedule.keys if kind == "repeat"]
    if plan.repeat_every:
        assert len(repeated) >= len(samples) // plan.repeat_every
    else:
        assert repeated == []


def test_an_extended_plan_survives_its_file_and_a_plan_that_was_not_keeps_its_fingerprint(tmp_path):
    long = PLANS["blocks"].extended(200)
    assert (long.extends, long.n_samples, long.blocks) == (64, 208, 13)
    assert Plan.load(long.save(tmp_path / "plan.toml")) == long
    assert long.extended(64) == PLANS["blocks"]
    with pytest.raises(ParameterError, match="`extends=64` must be below `n_samples=64`"):
        Plan(n_inputs=2, n_samples=64, extends=64)


def stopped_after(count, batch=1):
    """A bench at which somebody presses Ctrl-C."""

    class Stopped(SimulatedBench):
        identity = "SimulatedBench"

        def measure(self, u, seed=None):
            if self._count == count:
                os.kill(os.getpid(), signal.SIGINT)
            return super().measure(u, seed)

    return Stopped(noisy, batch=batch)


@pytest.mark.parametrize("batch", [1, 10])
def test_extend_interrupt_and_extend_again_gives_the_bytes_of_one_run_of_that_length(
    batch, tmp_path
):
    plan = PLANS["blocks"]
    path = tmp_path / "run.db"
    first = acquire(plan, stopped_after(40, batch), path, progress=False)
    assert first.metadata["stopped"] == "interrupted"
    assert extend(path, 100).n_samples == 112
    assert (
        len(acquire(plan, stopped_after(70, batch), path, progress=False).design_index) < 112
    )  # the plan of the beginning will do
    assert extend(path, 200).n_samples == 208
    recording = acquire(plan, SimulatedBench(noisy, batch=batch), path, progress=False)
    at_once = acquire(
        plan.extended(200), SimulatedBench(noisy), tmp_path / "other.db", progress=False
    )
    assert same(recording, at_once)
    assert_array_equal(np.argsort(recording.time), np.argsort(at_once.time))
    assert recording.metadata["plan"] == at_once.metadata["plan"]
    assert [extension["n_samples"] for extension in recording.metadata["extended"]] == [112, 208]
    assert status(path).complete


def test_a_longer_plan_extends_the_store_of_the_shorter_one_and_others_do_not(tmp_path):
    plan = PLANS["blocks"]
    path = tmp_path / "run.db"
    acquire(plan, SimulatedBench(noisy), path, progress=False)
    known = Plan.from_dict(infocap.read(path).metadata["plan"])
    recording = acquire(known.extended(128), SimulatedBench(noisy), path, progress=False)
    assert len(recording.design_index) == 128
    with pytest.raises(DataError, match=r"belongs to another plan.*seed 1 there and 2 here"):
        Store(path, Plan(n_inputs=2, max_degree=3, n_samples=64, blocks=4, seed=2, **EVERY_KIND))
    with pytest.raises(
        ParameterError, match=r"n_samples=100` is less than the 128 .* can only grow"
    ):
        extend(path, 100)
    n_plans = len(read_store(path).plans)
    assert extend(path, 128).n_samples == 128
    assert len(read_store(path).plans) == n_plans


def test_nothing_is_extended_while_an_acquisition_runs_or_where_there_is_none(tmp_path):
    class Greedy(SimulatedBench):
        def measure(self, u, seed=None):
            if self._count == 5:
                with pytest.raises(DataError, match="another process is acquiring"):
                    extend(tmp_path / "run.db", 128)
            return super().measure(u, seed)

    assert (
        len(
            acquire(
                PLANS["blocks"], Greedy(noisy), tmp_path / "run.db", progress=False
            ).design_index
        )
        == 64
    )
    with pytest.raises(DataError, match="does not exist"):
        extend(tmp_path / "none.db", 128)
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("lost", ["plan", "schedule"])
def test_an_extension_that_is_damaged_is_rescued_with_all_rows(lost, tmp_path):
    plan = PLANS["blocks"]
    path = tmp_path / "run.db"
    acquire(plan, SimulatedBench(noisy), path, progress=False)
    extend(path, 128)
    whole = acquire(plan, SimulatedBench(noisy), path, progress=False)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entry SET crc = crc + 1 WHERE kind = ? AND number = 1", (lost,))
    connection.close()
    with pytest.raises(DataError, match=rf"rows are left out \({lost} 1\).*infocap export"):
        Store(path)
    assert len(infocap.read(path).design_index) == 128
    with Store.rescue(path, tmp_path / "new.db") as store:
        assert store.complete
    extend(tmp_path / "new.db", 128)
    assert same(acquire(plan, SimulatedBench(noisy), tmp_path / "new.db", progress=False), whole)


DRIVER = """
import time
import numpy as np

class Device:
    batch = 16

    def measure_many(self, u):
        time.sleep(0.002 * len(u))
        return np.column_stack([np.cos(u), u**2]), {"Temperature [K]": 293 + u[:, 0]}
"""


def test_the_commands_extend_a_run_that_is_killed_between(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = Plan(n_inputs=2, max_degree=3, n_samples=64, blocks=4, seed=1, repeat_every=4)
    plan.save("plan.toml")
    Path("driver.py").write_text(DRIVER)
    environment = os.environ | {"PYTHONPATH": str(Path(infocap.__file__).parents[1])}

    def command(*words):
        program = [
            sys.executable,
            "-P",
            "-c",
            "import infocap.lab.cli; infocap.lab.cli.run()",
            *words,
        ]
        return subprocess.Popen(
            program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def done(*words):
        out, err = command(*words).communicate(timeout=120)
        assert err == ""
        return out

    order = ("acquire", "plan.toml", "--instrument", "driver:Device", "-o", "run.db", "--quiet")
    for n_samples in (64, 96, 160):
        killed = command(*order)
        while killed.poll() is None and n_stored() <= n_samples - 50:
            time.sleep(0.01)
        killed.kill()
        killed.communicate()
        assert n_stored() < len(plan.extended(n_samples).schedule)
        if n_samples < 160:
            longer = {64: 96, 96: 160}[n_samples]
            said = done("extend", "run.db", "--n-samples", str(longer))
            assert (
                f"run.db: {longer} samples, {len(plan.extended(longer).schedule)} measurements"
                in said
            )
    assert "160 samples" in done(*order)
    recording = infocap.read("run.db")
    u = plan.extended(160).inputs
    assert recording.readouts.tobytes() == np.column_stack([np.cos(u), u**2]).tobytes()
    assert np.isfinite(recording.repeats).all(axis=1).sum() == 16 + 24
    assert recording.extra_names == ("Temperature [K]",)
    assert_array_equal(recording.extra[:, 0], 293 + u[:, 0])
    assert "complete: all that was planned is stored" in done("watch", "run.db", "--once")


def n_stored():
    try:
        return len(read_store(Path("run.db")).measurements)
    except DataError:  # the process has only just begun it
        return 0
