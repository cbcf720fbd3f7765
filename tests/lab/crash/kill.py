"""Kill an acquisition with SIGKILL at random moments, look at what is left, and let it go on.

    python kill.py FOLDER KILLS SEED BATCH

The acquisition runs in a forked process, so that a kill costs milliseconds; it tells through a pipe
what was acknowledged. The run is extended twice on the way: its plan begins with half of the
samples. With a BATCH above 1 the instrument measures so many rows at once. What was found is
printed as JSON.
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
from device import acknowledged, acknowledgements, bench, plan, stored

from infocap.lab import Store, acquire, extend
from infocap.lab.experiment import read_store

MAX_DELAY_S = 0.05
# Kills that wait for the first measurement; the others come at any moment, for example while a
# store is opened.
SHARE_WHILE_MEASURING = 0.8
WHOLE_PLAN = plan("large")
HALF_PLAN = plan("half")
LENGTHS = (768, 1024)


def acquisition(path, pipe, batch):
    """Acquire, extend and acquire again; write to the pipe what the store has acknowledged."""
    record_many = Store.record_many

    def record_and_tell(self, measurements):
        record_many(self, measurements)
        os.write(pipe, acknowledgements(measurements).encode())

    Store.record_many = record_and_tell
    acquire(HALF_PLAN, bench(batch), path, progress=False)
    for n_extensions, n_samples in enumerate(LENGTHS):
        if len(read_store(path).plans) == n_extensions + 1:
            extend(path, n_samples)
        acquire(HALF_PLAN, bench(batch), path, progress=False)


def fork(path, batch):
    """Start an acquisition; return its process and the pipe to read from."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            acquisition(path, writing, batch)
        except BaseException as problem:
            os.write(2, f"{type(problem).__name__}: {problem}\n".encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    return child, reading


def read_pipe(reading):
    with os.fdopen(reading, "rb") as pipe:
        return acknowledged(pipe.read().decode())


def look(path):
    """Return what is stored, and what is amiss."""
    if not path.exists() or path.stat().st_size == 0:
        return {}, ()
    return stored(path), read_store(path).checks(path)


def is_in_steps(values, batch):
    """Return whether the first rows of the schedule are stored, in whole batches as measured."""
    names = [measurement.name for measurement in WHOLE_PLAN.schedule]
    # Where a run ended and was extended, the last batch may be shorter.
    ends = [len(HALF_PLAN.extended(n_samples).schedule) for n_samples in (512, *LENGTHS)]
    allowed = set(ends)
    start = 0
    for end in ends:
        allowed |= set(range(start, end, batch))
        start = end
    return set(values) == set(names[: len(values)]) and len(values) in allowed


def main(folder, n_kills, seed, batch):
    random.seed(seed)
    path = folder / "run.db"
    told = {}
    killed = 0
    underway = 0
    finished = 0
    lost = []
    torn = []
    amiss = []
    while killed < n_kills:
        child, reading = fork(path, batch)
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
        values, checks = look(path)
        amiss += checks
        lost += [name for name, value in told.items() if values.get(name) != value]
        if not is_in_steps(values, batch):
            torn.append(len(values))
        if os.WIFEXITED(status):
            if os.WEXITSTATUS(status):
                raise SystemExit("the acquisition failed by itself")
            # This run was complete; the other kills are for another one.
            finished += 1
            path = folder / f"run{finished}.db"
            told = {}
    child, reading = fork(path, batch)
    read_pipe(reading)
    os.waitpid(child, 0)
    print(
        json.dumps(
            {
                "kills": killed,
                "underway": underway,
                "lost": lost,
                "torn": torn,
                "amiss": amiss,
                "path": str(path),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
