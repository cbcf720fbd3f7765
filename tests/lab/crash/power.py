"""The states in which a loss of power may leave a disk, made again from the log that disk.c wrote.

What was written before a file's last sync is there. Of what came later, each block of 512 bytes is there or not, by
chance; a file that was never synced may be missing, and one that was removed may be back.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512


@dataclass(frozen=True)
class Step:
    what: str  # write, cut, sync, unlink
    path: str
    offset: int
    data: bytes = b""


def read_log(path):
    """The steps in the order in which they were taken."""
    log = Path(path).read_bytes()
    steps = []
    place = 0
    while place < len(log):
        end = log.index(b"\n", place)
        what, name, offset, length = log[place:end].decode().split("\t")
        place = end + 1
        size = int(length) if what == "write" else 0
        steps.append(Step(what, name, int(offset), log[place : place + size]))
        place += size
    return steps


@dataclass
class File:
    safe: bytearray | None = None  # None: not on the disk for sure
    later: list[Step] = field(default_factory=list)


def disk_after(steps, seed, folder):
    """Contents of every file, had the power failed after these steps; None for a file that is not there."""
    chance = random.Random(seed)
    files = {}
    for step in steps:
        if step.what == "sync" and step.path == folder:
            # The names are safe, so what was removed stays removed.
            for file in files.values():
                gone = [k for k, later in enumerate(file.later) if later.what == "unlink"]
                if gone:
                    file.safe, file.later = None, file.later[gone[-1] + 1 :]
            continue
        file = files.setdefault(step.path, File())
        if step.what == "sync":
            file.safe = _apply(file.safe, file.later)
            file.later = []
        else:
            file.later.append(step)
    return {name: _apply_some(file, chance) for name, file in files.items()}


def _apply(content, steps):
    for step in steps:
        if step.what == "unlink":
            content = None
            continue
        content = bytearray() if content is None else content
        if step.what == "cut":
            del content[step.offset :]
            content.extend(bytes(step.offset - len(content)))
        else:
            content.extend(bytes(max(step.offset + len(step.data) - len(content), 0)))
            content[step.offset : step.offset + len(step.data)] = step.data
    return content


def _apply_some(file, chance):
    """Return what is safe with any of the later sectors.

    A removal happens or not, and then so does all that follows.
    """
    taken = []
    share = chance.choice((0.0, 0.5, 1.0))
    for step in file.later:
        if step.what != "write":
            if chance.random() < share:
                taken.append(step)
            continue
        for start in range(0, len(step.data), SECTOR):
            if chance.random() < share:
                taken.append(
                    Step("write", step.path, step.offset + start, step.data[start : start + SECTOR])
                )
    return _apply(None if file.safe is None else bytearray(file.safe), taken)
