"""Kill an acquisition with SIGKILL at random moments, look at what is left, and let it go on. Prints what it found.

    python kill.py FOLDER KILLS SEED

The acquisition runs in a forked process, so that a kill costs milliseconds; it tells through a pipe what was
acknowledged.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
from device import bench, plan

from infocap.experiment import Store, acquire

MOST_DELAY_S = 0.08


def acquisition(path, pipe):
    """acquire, with a line in the pipe for each measurement that `record` has acknowledged."""
    record = Store.record

    def record_and_tell(self, index, readouts, kind="sample", measured=None):
        record(self, index, readouts, kind, measured)
        os.write(pipe, f"{kind} {index} {np.asarray(readouts).tobytes().hex()}\n".encode())

    Store.record = record_and_tell
    acquire(plan("large"), bench(), path, progress=False)


def fork(path):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            acquisition(path, writing)
        except BaseException as problem:
            os.write(2, f"{type(problem).__name__}: {problem}\n".encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    return child, reading


def acknowledged(reading):
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().decode().split("\n")
    return {tuple(line.split()[:2]): line.split()[2] for line in lines if line.count(" ") == 2}


def stored(path):
    """Every measurement in the file, by name, as hexadecimal bytes; and what is amiss."""
    if not path.exists() or path.stat().st_size == 0:
        return {}, ()
    from infocap.recording._store import MEASURED, read_entries, unpack

    found = read_entries(path)
    values = {
        (entry.kind, str(entry.number)): unpack(entry.data)[1].tobytes().hex()
        for entry in found.entries.values()
        if entry.kind in MEASURED
    }
    return values, found.check(path)


def main(folder, kills, seed):
    random.seed(seed)
    path, told, done, amiss, lost, finished = folder / "run.db", {}, 0, [], [], 0
    while done < kills:
        child, reading = fork(path)
        time.sleep(random.uniform(0, MOST_DELAY_S))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        done += os.WIFSIGNALED(status)
        told |= acknowledged(reading)
        values, check = stored(path)
        amiss += check
        lost += [name for name, value in told.items() if values.get(name) != value]
        if os.WIFEXITED(status):
            finished += 1
            if os.WEXITSTATUS(status):
                raise SystemExit("the acquisition failed by itself")
            path = folder / f"run{finished}.db"  # that one was complete: another one, for more kills
            told = {}
    child, reading = fork(path)
    acknowledged(reading)
    os.waitpid(child, 0)
    print(json.dumps({"kills": done, "lost": lost, "amiss": amiss, "path": str(path), "runs": finished + 1}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
