"""Kill a sweep with SIGKILL at random moments, look at what is left, and let it go on.

    python kill_sweep.py FOLDER KILLS SEED

The sweep runs in a forked process, so that a kill costs milliseconds; it tells through a pipe what
was acknowledged. It is extended on the way, by samples and by a setting. What was found is printed
as JSON.
"""

import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

import tqdm.auto  # noqa: F401  # before the fork: the kills are meant for the measurements
from device import acknowledgements, hexadecimal, sweep_bench, sweep_plan

from infocap.lab import Store, acquire_sweep, extend_sweep
from infocap.lab.experiment import Plan, read_store

MAX_DELAY_S = 0.05
# Kills that wait for the first measurement; the others come at any moment.
SHARE_WHILE_MEASURING = 0.8


def acquisition(folder, pipe):
    """Acquire three settings, then a fourth, then more samples of all; tell what is acknowledged."""
    record_many = Store.record_many

    def record_and_tell(self, measurements):
        record_many(self, measurements)
        lines = acknowledgements(measurements).splitlines()
        os.write(pipe, "".join(f"{self.path.name} {line}\n" for line in lines).encode())

    Store.record_many = record_and_tell
    has_fourth = (folder / "sweep.toml").exists() and len(plan_in(folder).settings) == 4
    if not has_fourth:
        acquire_sweep(sweep_plan(3), sweep_bench(), folder, progress=False)
    acquire_sweep(sweep_plan(4), sweep_bench(), folder, progress=False)
    extend_sweep(folder, 96)
    acquire_sweep(sweep_plan(4), sweep_bench(), folder, progress=False)


def plan_in(folder):
    return Plan.load(folder / "sweep.toml")


def fork(folder):
    """Start a sweep; return its process and the pipe to read from."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            acquisition(folder, writing)
        except BaseException as problem:
            os.write(2, f"{type(problem).__name__}: {problem}\n".encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    return child, reading


def read_pipe(reading):
    """Return readouts by store and measurement; the last line may have been cut by the kill."""
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().decode().split("\n")[:-1]
    return {tuple(line.split(" ")[:3]): line.split(" ")[3] for line in lines}


def look(folder):
    """Return what is stored of all settings, and what is amiss."""
    values = {}
    amiss = []
    for path in sorted(folder.glob("*.db")):
        contents = read_store(path)
        amiss += contents.checks(path)
        for measurement in contents.measurements:
            name = (path.name, str(measurement.kind), str(measurement.number))
            values[name] = hexadecimal(measurement)
    return values, amiss


def main(folder, n_kills, seed):
    random.seed(seed)
    current = folder / "night"
    told = {}
    killed = 0
    underway = 0
    finished = 0
    lost = []
    amiss = []
    while killed < n_kills:
        child, reading = fork(current)
        if random.random() < SHARE_WHILE_MEASURING:
            select.select([reading], [], [], 10)
        time.sleep(random.uniform(0, MAX_DELAY_S))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        was_killed = os.WIFSIGNALED(status)
        new = read_pipe(reading)
        told |= new
        killed += was_killed
        underway += was_killed and bool(new)
        values, checks = look(current)
        amiss += checks
        lost += [" ".join(name) for name, value in told.items() if values.get(name) != value]
        if os.WIFEXITED(status):
            if os.WEXITSTATUS(status):
                raise SystemExit("the sweep failed by itself")
            finished += 1  # this sweep was complete; the other kills are for another one
            current = folder / f"night{finished}"
            told = {}
    child, reading = fork(current)
    read_pipe(reading)
    os.waitpid(child, 0)
    found = {"kills": killed, "underway": underway, "lost": lost, "amiss": amiss}
    print(json.dumps(found | {"finished": finished, "folder": str(current)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
