"""Acquire into FOLDER/run.db, and write to FOLDER/told what was acknowledged, through the same disk."""

import os
import sys

import numpy as np
from device import bench, plan

from infocap.errors import InfocapError
from infocap.lab import Store, acquire

folder, size = sys.argv[1], sys.argv[2]
told = os.open(f"{folder}/told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
batch = int(sys.argv[3]) if len(sys.argv) > 3 else 1
record = Store.record_many


def record_and_tell(self, measurements, readouts, extra=None, measured=None):
    record(self, measurements, readouts, extra, measured)
    rows = zip(measurements, readouts, strict=True)
    lines = [f"{one.kind} {one.number} {np.asarray(x).tobytes().hex()}\n" for one, x in rows]
    os.write(told, "".join(lines).encode())


Store.record_many = record_and_tell
try:
    acquire(plan(size), bench(batch), f"{folder}/run.db", progress=False)
except InfocapError as problem:
    print(problem)
    sys.exit(3)
