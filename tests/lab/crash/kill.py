"""Kill an acquisition with SIGKILL at random moments, look at what is left, and let it go on. Prints what it found.

    python kill.py FOLDER KILLS SEED BATCH

The acquisition runs in a forked process, so that a kill costs milliseconds; it tells through a pipe what was
acknowledged. The run is extended twice on the way: its plan begins with half of the samples. With a BATCH above 1 the
instrument measures so many rows at once.
"""

import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

import numpy as np
import tqdm.auto  # noqa: F401  # before the fork: the kills are meant for the measurements
from device import bench, plan

from infocap.lab import Store, acquire, extend
from infocap.lab.experiment._store_file import MEASURED, read_entries, unpack

MOST_DELAY_S = 0.05
WHOLE, HALF = plan("large"), plan("half")
LENGTHS = (768, 1024)


def acquisition(path, pipe, batch):
    """acquire, with a line in the pipe for each measurement that the store has acknowledged; then extend, and go on."""
    record = Store.record_many

    def record_and_tell(self, measurements, readouts, extra=None, measured=None):
        record(self, measurements, readouts, extra, measured)
        rows = zip(measurements, readouts, strict=True)
        lines = [f"{one.kind} {one.number} {np.asarray(x).tobytes().hex()}\n" for one, x in rows]
        os.write(pipe, "".join(lines).encode())

    Store.record_many = record_and_tell
    acquire(HALF, bench(batch), path, progress=False)
    for n_samples in LENGTHS:
        if len(read_entries(path).contents("plan")) <= LENGTHS.index(n_samples) + 1:
            extend(path, n_samples)
        acquire(HALF, bench(batch), path, progress=False)


def fork(path, batch):
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


def acknowledged(reading):
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().decode().split("\n")[:-1]  # the last one was cut by the kill
    return {tuple(line.split()[:2]): line.split()[2] for line in lines}


def stored(path):
    """Every measurement in the file, by name, as hexadecimal bytes; and what is amiss."""
    if not path.exists() or path.stat().st_size == 0:
        return {}, ()
    found = read_entries(path)
    values = {
        (entry.kind, str(entry.number)): unpack(entry.data)[1].tobytes().hex()
        for entry in found.entries.values()
        if entry.kind in MEASURED
    }
    return values, found.checks(path)


def in_steps(values, batch):
    """Whether what is stored are the first rows of the schedule, in whole batches as they were measured."""
    names = [(kind, str(number)) for kind, number in WHOLE.schedule.names]
    ends = [len(HALF.extended(n).schedule) for n in (512, *LENGTHS)]  # where a batch may be shorter
    starts = [0, *ends[:-1]]
    allowed = {*ends, *(n for a, b in zip(starts, ends, strict=True) for n in range(a, b, batch))}
    return set(values) == set(names[: len(values)]) and len(values) in allowed


def main(folder, kills, seed, batch):
    random.seed(seed)
    path, told, done, amiss, lost, torn, underway, finished = (
        folder / "run.db",
        {},
        0,
        [],
        [],
        [],
        0,
        0,
    )
    while done < kills:
        child, reading = fork(path, batch)
        if random.random() < 0.8:  # else at any moment, while a store is opened, for example
            select.select([reading], [], [], 10)
        time.sleep(random.uniform(0, MOST_DELAY_S))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        done += os.WIFSIGNALED(status)
        new = acknowledged(reading)
        underway += os.WIFSIGNALED(status) and bool(new)
        told |= new
        values, check = stored(path)
        amiss += check
        lost += [name for name, value in told.items() if values.get(name) != value]
        torn += [] if in_steps(values, batch) else [len(values)]
        if os.WIFEXITED(status):
            finished += 1
            if os.WEXITSTATUS(status):
                raise SystemExit("the acquisition failed by itself")
            path = (
                folder / f"run{finished}.db"
            )  # that one was complete: another one, for more kills
            told = {}
    child, reading = fork(path, batch)
    acknowledged(reading)
    os.waitpid(child, 0)
    found = {
        "kills": done,
        "underway": underway,
        "lost": lost,
        "torn": torn,
        "amiss": amiss,
        "path": str(path),
    }
    print(json.dumps(found | {"runs": finished + 1}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
