"""What is measured in which order: measurements, their kinds and the schedule of an acquisition."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...recording._recording import DARK, NOISE, REFERENCE
from ...typing import Floats, Integers

CONSTANT = {NOISE: "noise", REFERENCE: "reference", DARK: "dark"}


class Measurement(NamedTuple):
    """One thing to measure; `kind` and `number` name it for ever.

    >>> from infocap.lab import Plan
    >>> first = next(iter(Plan(n_inputs=1, max_degree=2, n_samples=4, seed=1, order="design").schedule))
    >>> first.kind, first.number, first.u.shape
    ('sample', 0, (1,))
    """

    kind: str  # "sample", "repeat", "noise", "reference" or "dark"
    number: int  # the design index of a sample and of its repeat, else a running number
    u: Floats


@dataclass(frozen=True, eq=False)
class Schedule:
    """Measurements in the order of acquisition.

    `codes` are design indices, the second time for a repeat, -1 for noise, -2 for the reference and -3 for a
    measurement with the source off; `inputs` what to send (measurements, inputs).

    >>> from infocap.lab import Plan
    >>> schedule = Plan(n_inputs=1, max_degree=2, n_samples=8, seed=1, noise_repeats=2, repeat_every=4).schedule
    >>> len(schedule), [kind for kind, _ in schedule.names][:2]
    (12, ['noise', 'noise'])
    """

    codes: Integers
    inputs: Floats

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def names(self) -> list[tuple[str, int]]:
        """Kind and number of every measurement: a design index that comes a second time is a repeat."""
        seen: Counter[int] = Counter()
        out = []
        for code in self.codes.tolist():
            kind = CONSTANT.get(code, "repeat" if seen[code] else "sample")
            out.append((kind, seen[code] if code < 0 else code))
            seen[code] += 1
        return out

    def __iter__(self) -> Iterator[Measurement]:
        for name, u in zip(self.names, self.inputs, strict=True):
            yield Measurement(*name, u)


def joined(parts: Sequence[Schedule]) -> Schedule:
    """Schedules one after the other as one."""
    return Schedule(
        np.concatenate([one.codes for one in parts]), np.concatenate([one.inputs for one in parts])
    )
