"""Acquire into FOLDER/run.db, and write to FOLDER/told what was acknowledged, through the same disk.

python acquire_and_tell.py FOLDER SIZE [BATCH]
"""

import os
import sys

from device import acknowledgements, bench, plan

from infocap.errors import InfocapError
from infocap.lab import Store, acquire

folder = sys.argv[1]
size = sys.argv[2]
batch = int(sys.argv[3]) if len(sys.argv) > 3 else 1
told = os.open(f"{folder}/told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
record_many = Store.record_many


def record_and_tell(self, measurements):
    record_many(self, measurements)
    os.write(told, acknowledgements(measurements).encode())


Store.record_many = record_and_tell
try:
    acquire(plan(size), bench(batch), f"{folder}/run.db", progress=False)
except InfocapError as problem:
    print(problem)
    sys.exit(3)
