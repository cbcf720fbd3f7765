"""What one block of rows shows: extremes, saturation, the means of stretches, and values that have no meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from .._array import array_namespace, as_like, to_numpy
from .._passes import Job
from .._table import Table
from ..basis import ProductBasis
from ..kernels import row_blocks
from ..typing import Floats, Integers
from ._refuse import refuse_outside

LOOK_BYTES = 500_000  # of readouts looked at together
DEAD = 32 * np.finfo(float).eps  # relative range below which a channel is rounding around a constant
EPOCHS = 32  # stretches of the acquisition whose means are compared to find drift


@dataclass(frozen=True, eq=False)
class Survey:
    """What one look at all samples found."""

    typical: Floats  # a value each channel really takes, robust to outliers
    low: Floats
    high: Floats
    at_extreme: Floats  # share of the samples at the channel's lowest or highest value
    input_low: Floats
    input_high: Floats
    epoch_sizes: Integers
    epoch_means: Floats  # (epochs, channels), in acquisition order, minus `typical`
    sample: Floats | None  # some rows of the readouts, chosen at random; None where they are on a device

    @property
    def dead(self) -> np.ndarray:
        """Channels that do not change."""
        return self.high / 2 - self.low / 2 <= DEAD * np.maximum(np.abs(self.low), np.abs(self.high))


class Look(NamedTuple):
    """What one block of rows shows."""

    low: Floats
    high: Floats
    at_low: Integers  # rows at the lowest value of the block
    at_high: Integers
    input_low: Floats
    input_high: Floats
    epoch_sizes: Integers
    epoch_sums: Floats
    bad_inputs: tuple[int, str]  # how many are NaN or infinite, and the first of them in words
    bad_readouts: tuple[int, str]
    sample: Floats | None = None  # some rows of the readouts

    def merged(self, other: Look) -> Look:
        """What both show together."""
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Look(
            low,
            high,
            np.where(self.low == low, self.at_low, 0) + np.where(other.low == low, other.at_low, 0),
            np.where(self.high == high, self.at_high, 0) + np.where(other.high == high, other.at_high, 0),
            np.minimum(self.input_low, other.input_low),
            np.maximum(self.input_high, other.input_high),
            self.epoch_sizes + other.epoch_sizes,
            self.epoch_sums + other.epoch_sums,
            (self.bad_inputs[0] + other.bad_inputs[0], self.bad_inputs[1] or other.bad_inputs[1]),
            (self.bad_readouts[0] + other.bad_readouts[0], self.bad_readouts[1] or other.bad_readouts[1]),
            None if self.sample is None or other.sample is None else np.vstack([self.sample, other.sample]),
        )

    def survey(self, typical: Floats, n_rows: int) -> Survey:
        """The same as shares and means, once all rows were looked at."""
        return Survey(
            typical,
            self.low,
            self.high,
            np.maximum(self.at_low, self.at_high) / n_rows,
            self.input_low,
            self.input_high,
            self.epoch_sizes,
            self.epoch_sums / np.maximum(self.epoch_sizes, 1)[:, None],
            self.sample,
        )


@dataclass(frozen=True, eq=False)
class Looking(Job):
    """The look at all rows as a job for a pass; see `_passes.Job`."""

    u: Table
    x: Table
    basis: ProductBasis
    typical: Floats
    epochs: Integers | None
    place: tuple[int, int]  # the first row's number, and how many rows there are in all

    @property
    def tables(self) -> tuple[Table, Table]:
        """Inputs and readouts."""
        return self.u, self.x

    def part(self, start: int, stop: int) -> Self:
        """The job for these rows alone."""
        first, total = self.place
        return replace(
            self,
            u=self.u.part(start, stop),
            x=self.x.part(start, stop),
            epochs=None if self.epochs is None else self.epochs[start:stop],
            place=(first + start, total),
        )

    def held(self) -> Self:
        """The job with its rows in memory."""
        return replace(self, u=self.u.held(), x=self.x.held())

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Blocks of rows."""
        return iter([(start, stop)]) if self.x.on_device else row_blocks(start, stop, self.x.shape[1])

    def run(self, rows: tuple[int, int]) -> Look:
        """Check and describe one block of rows."""
        if self.epochs is not None:
            epochs = self.epochs[slice(*rows)]
        else:
            first, total = self.place
            epochs = np.arange(first + rows[0], first + rows[1]) * EPOCHS // total
        if self.x.on_device:
            return _look_there(self.u, self.x, self.basis, rows, epochs, self.typical)
        return _look(self.u, self.x, self.basis, rows, epochs, self.typical, self.place[1])

    def merge(self, a: Look, b: Look) -> Look:
        """What two blocks show together."""
        return a.merged(b)


def _look(
    u: Table,
    x: Table,
    basis: ProductBasis,
    rows: tuple[int, int],
    epochs: Integers,
    typical: Floats,
    n_rows: int,
) -> Look:
    """Check and describe one block of rows."""
    inputs, readouts = u.read_on_host(*rows), x.read(*rows)
    with np.errstate(over="ignore", invalid="ignore"):  # NaN and infinity are found in the extremes
        input_low, input_high = inputs.min(axis=0), inputs.max(axis=0)
        extremes = _extremes_in_parts(readouts)
        bad_inputs = _bad_values(u, rows, input_low, input_high)
        bad_readouts = _bad_values(x, rows, *extremes[:2])
        sums = _by_epoch(epochs, readouts, typical)
    if not bad_inputs[0]:
        refuse_outside(u, rows, input_low, input_high, basis)
    sample = _some(readouts, rows[0], n_rows)
    return Look(*extremes, input_low, input_high, *sums, bad_inputs, bad_readouts, sample)


def _look_there(
    u: Table, x: Table, basis: ProductBasis, rows: tuple[int, int], epochs: Integers, typical: Floats
) -> Look:
    """The same for readouts on a device: everything is fetched from there at once."""
    k, q = x.shape[1], u.shape[1]
    inputs, readouts = u.read(*rows), x.read(*rows)
    inputs = inputs if u.on_device else as_like(inputs, readouts)
    xp, sizes = array_namespace(readouts), np.bincount(epochs, minlength=EPOCHS)
    epoch = xp.arange(EPOCHS, device=readouts.device)[:, None] == as_like(epochs, readouts)[None, :]
    by_epoch = xp.astype(epoch, xp.float64) @ (readouts - as_like(typical, readouts))
    parts = [
        *_extremes(readouts),
        xp.min(inputs, axis=0),
        xp.max(inputs, axis=0),
        xp.reshape(by_epoch, (-1,)),
    ]
    found = to_numpy(xp.concat(parts))
    low, high, at_low, at_high, input_low, input_high, flat = np.split(
        found, np.cumsum([k, k, k, k, q, q]).tolist()
    )
    bad_inputs, bad_readouts = _bad_values(u, rows, input_low, input_high), _bad_values(x, rows, low, high)
    if not bad_inputs[0]:
        refuse_outside(u, rows, input_low, input_high, basis)
    counts = at_low.astype(int), at_high.astype(int)
    sums = flat.reshape(EPOCHS, k)
    return Look(low, high, *counts, input_low, input_high, sizes, sums, bad_inputs, bad_readouts, None)


def _extremes(block: Any) -> tuple[Any, Any, Any, Any]:
    """The lowest and highest value of each channel, and how many rows sit on them."""
    xp = array_namespace(block)
    low, high = xp.min(block, axis=0), xp.max(block, axis=0)
    at_low, at_high = (_count(xp, block == edge) for edge in (low, high))
    return low, high, at_low, at_high


def _count(xp: Any, true: Any) -> Any:
    """How many rows are true, for each column."""
    if xp is np:
        return np.add.reduce(true.view(np.int8), axis=0, dtype=np.int16 if len(true) < 2**15 else np.int64)
    return xp.sum(xp.astype(true, xp.float64), axis=0)


def _extremes_in_parts(block: Floats) -> tuple[Floats, Floats, Integers, Integers]:
    """The same, a few rows at a time that stay in cache."""
    step = _cached_rows(block)
    parts = [_extremes(block[start : start + step]) for start in range(0, len(block), step)]
    lows, highs, at_lows, at_highs = (list(column) for column in zip(*parts, strict=True))
    low, at_low = _extreme(lows, at_lows, np.min)
    high, at_high = _extreme(highs, at_highs, np.max)
    return low, high, at_low, at_high


def _some(block: Floats, start: int, n_rows: int) -> Floats:
    """Rows of a block chosen at random; of all blocks together, several times as many as there are channels."""
    wanted = max(4 * (block.shape[1] + 1), 256) * len(block) / n_rows
    generator = np.random.default_rng(start)  # every n-th would do, but not on Sobol points
    return block[generator.choice(len(block), min(int(wanted) + 1, len(block)), replace=False)]


def _cached_rows(block: Floats) -> int:
    """How many rows stay in cache while they are looked at in several ways."""
    return max(LOOK_BYTES // (8 * block.shape[1]), 1)


def _extreme(values: list[Floats], counts: list[Integers], choose: Any) -> tuple[Floats, Integers]:
    """The extreme of each channel over all blocks, and how many rows sit on it."""
    extreme = choose(values, axis=0)
    return extreme, np.sum(np.where(np.array(values) == extreme, counts, 0), axis=0)


def _by_epoch(epochs: Integers, block: Floats, typical: Floats) -> tuple[Integers, Floats]:
    """How many rows each epoch has, and the sums of what they differ by from the typical row."""
    sizes = np.bincount(epochs, minlength=EPOCHS)
    if np.any(epochs[1:] < epochs[:-1]):
        order = np.argsort(epochs, kind="stable")
        epochs, block = epochs[order], block[order]
    sums, stops = np.zeros((EPOCHS, block.shape[1])), np.cumsum(sizes)
    step = _cached_rows(block)
    for epoch in np.flatnonzero(sizes):
        for start in range(stops[epoch] - sizes[epoch], stops[epoch], step):
            rows = block[start : min(start + step, stops[epoch])]
            sums[epoch] += np.sum(rows - typical, axis=0)  # the difference first, so that no digits are lost
    return sizes, sums


def _bad_values(table: Table, rows: tuple[int, int], low: Floats, high: Floats) -> tuple[int, str]:
    """How many values of a block are NaN or infinite, which its extremes show, and the first of them in words."""
    if np.isfinite(low).all() and np.isfinite(high).all():
        return 0, ""
    block = table.read_on_host(*rows)
    places = np.argwhere(~np.isfinite(block))
    row, column = (int(number) for number in places[0])
    return len(places), f"{block[row, column]} at {table.place(rows[0] + row, column)}"
