"""In which order to measure: samples, repeats, noise and reference, each with a number that never changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..recording import NOISE, REFERENCE, names_of
from ..typing import Floats, Integers

ORDERS = ("random", "doubling", "design")


class Measurement(NamedTuple):
    """One thing to measure; `kind` and `number` name it for ever.

    >>> from infocap.experiment import Plan
    >>> first = next(iter(Plan(n_inputs=1, max_degree=2, n_samples=4, seed=1, order="design").schedule))
    >>> first.kind, first.number, first.u.shape
    ('sample', 0, (1,))
    """

    kind: str  # "sample", "repeat", "noise" or "reference"
    number: int  # the design index of a sample and of its repeat, else a running number
    u: Floats


@dataclass(frozen=True, eq=False)
class Schedule:
    """Measurements in the order of acquisition.

    `codes` are design indices, the second time for a repeat, -1 for noise and -2 for the reference; `inputs` what
    to send (measurements, inputs).

    >>> from infocap.experiment import Plan
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
        """Kind and number of every measurement."""
        return names_of(self.codes)

    def __iter__(self) -> Iterator[Measurement]:
        for (kind, number), u in zip(self.names, self.inputs, strict=True):
            yield Measurement(kind, number, u)


def make_schedule(
    design: Floats,
    *,
    order: str,
    seed: int,
    repeat_every: int,
    noise: Floats,
    noise_repeats: int,
    reference: Floats,
    reference_every: int,
) -> Schedule:
    """The noise first, then samples and their repeats in the order wanted, with the reference in between.

    A repeat comes at a moment of its own, not right after its sample: noise that lasts longer than one
    measurement would otherwise look smaller than it is. The inputs to repeat are chosen at random: every fourth
    point of a Sobol design lies in the same quarter of an input's range.
    """
    n = len(design)
    rng = np.random.default_rng([seed, n])
    chosen = rng.permutation(n)[: -(-n // repeat_every)] if repeat_every else np.arange(0)
    codes = np.concatenate([np.arange(n), np.sort(chosen)])
    moments = rng.random(len(codes))
    if order == "design":
        moments = codes + 0.5 * (np.arange(len(codes)) >= n)
    if order == "doubling":  # a number below 2^k comes before all numbers from 2^k on
        moments += np.ceil(np.log2(np.maximum(codes + 1, n / 16)))
    codes = codes[np.argsort(moments, kind="stable")]
    inputs = design[codes]
    if reference_every:
        places = np.arange(0, len(codes) + 1, reference_every)
        codes = np.insert(codes, places, REFERENCE)
        inputs = np.insert(inputs, places, reference, axis=0)
    codes = np.concatenate([np.full(noise_repeats, NOISE), codes])
    return Schedule(codes, np.vstack([np.tile(noise, (noise_repeats, 1)), inputs]))
