"""Statistics of every column from one pass over all rows, before anything is estimated.

They are what the readouts are prepared with (`Samples.choose_preparation`), and what checks of the
data start from. Rows that no estimation can use, because a value is missing or outside the domain
of the basis, are refused here, with the first of them named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from .._arrays import array_namespace, is_on_host, take_rows, to_library_of, to_numpy
from ..errors import DataError
from ..typing import Floats, Integers
from ._domain import check_domain
from ._engine import Engine
from ._rows import cut_into_blocks
from ._samples import Samples
from ._table import MissingValues, Table
from ._values_per_row import N_EPOCHS

# Rows whose median is the typical value of a channel. An odd number, so that the median of a
# constant is exactly that constant.
MAX_ROWS_FOR_MEDIAN = 63
# Rows of the random sample: so many for each readout with the constant, and at least so many.
SAMPLED_ROWS_PER_READOUT = 4
MIN_SAMPLED_ROWS = 256
# There is no random sample where it would have to be this share of all rows, and of so many
# channels that it counts: the sums over all rows then take hardly longer than over the sample.
MAX_SAMPLED_SHARE = 1 / 4
MIN_CHANNELS_WITHOUT_SAMPLE = 500


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Statistics of each channel and input over some rows, and sums of readouts over epochs."""

    typical: Floats  # a value that each channel really takes, robust to outliers
    low: Floats  # the smallest value of each channel
    high: Floats
    input_low: Floats  # the smallest value of each input
    input_high: Floats
    epoch_sizes: Integers  # rows in each epoch of the acquisition, (epochs,)
    epoch_sums: Floats  # sums of readouts minus `typical` over each epoch, (epochs, channels)
    # Some rows of the readouts, chosen at random, where the readouts are; of each block of rows.
    sampled: tuple[Any, ...]

    @property
    def sample(self) -> Any | None:
        """Rows of the readouts that were chosen at random; None where all rows serve as well."""
        n_rows = sum(part.shape[0] for part in self.sampled)
        if n_rows == 0:
            return None
        return array_namespace(*self.sampled).concat(self.sampled)


def scan_columns(samples: Samples, engine: Engine, with_sample: bool = True) -> ColumnStatistics:
    """Return statistics of all rows; values that no estimation can use are refused.

    Without the random sample of rows, statistics of very many channels take little memory.
    """
    n_rows = min(MAX_ROWS_FOR_MEDIAN, _largest_odd_number(samples.n_samples))
    typical = np.median(samples.x.read(0, n_rows, on_host=True), axis=0)
    n_sampled = _rows_to_sample(samples) if with_sample else 0
    scan_share = partial(_scan_share, typical=typical, n_sampled=n_sampled)
    statistics: ColumnStatistics = engine.fold(samples, scan_share, _merge)
    if not _all_finite(statistics.input_low, statistics.input_high):
        raise _missing_values_error("u", samples, engine)
    if not _all_finite(statistics.low, statistics.high):
        raise _missing_values_error("x", samples, engine)
    return statistics


def _all_finite(low: Floats, high: Floats) -> bool:
    """Return whether the extremes of all columns are finite: then no value is missing."""
    return bool(np.isfinite(low).all() and np.isfinite(high).all())


def _largest_odd_number(limit: int) -> int:
    return limit - (limit + 1) % 2


def _missing_values_error(name: str, samples: Samples, engine: Engine) -> DataError:
    """Return an error that counts the missing values of `u` or `x` and names the first."""
    table: Table = getattr(samples, name)
    if samples.history and name == "u":
        # Shares of a sequence overlap in their history, which would be counted several times.
        missing = _missing_in(table, 0, table.shape[0])
    else:
        missing = engine.fold(samples, partial(_find_missing, name=name))
    count = sum(values.count for values in missing)
    remedy = "repair the data"
    if not samples.history:
        remedy += ", or pass `nan_policy='omit'` to leave such rows out"
    return DataError(
        f"{name} has {count} NaN or infinite values, the first {missing[0].first}; {remedy}."
    )


def _find_missing(samples: Samples, start: int, stop: int, *, name: str) -> list[MissingValues]:
    return _missing_in(getattr(samples, name), start, stop)


def _missing_in(table: Table, start: int, stop: int) -> list[MissingValues]:
    missing = table.find_missing(table.read(start, stop, on_host=True), start)
    return [] if missing is None else [missing]


def omit_missing_rows(samples: Samples, engine: Engine) -> Samples:
    """Return the samples without the rows that have a NaN or infinite value."""
    is_complete = np.concatenate(engine.fold(samples, _complete_rows))
    rows = np.flatnonzero(is_complete)
    if not len(rows):
        raise DataError(
            "every row of u and x has a NaN or infinite value; there is nothing left to use."
        )
    return samples.select_rows(rows)


def _complete_rows(samples: Samples, start: int, stop: int) -> list[Any]:
    """Return whether each of some rows is finite throughout, as a list of one array."""
    u = samples.u.read(start, stop, on_host=True)
    x = samples.x.read(start, stop, on_host=True)
    has_inputs = np.isfinite(u).all(axis=1)
    has_readouts = np.isfinite(x).all(axis=1)
    return [has_inputs & has_readouts]


def _rows_to_sample(samples: Samples) -> int:
    """Return how many of all rows are chosen at random; 0 where all rows serve as well."""
    n_channels = samples.x.shape[1]
    n_sampled = max(SAMPLED_ROWS_PER_READOUT * (n_channels + 1), MIN_SAMPLED_ROWS)
    has_many_channels = n_channels >= MIN_CHANNELS_WITHOUT_SAMPLE and samples.in_memory
    if has_many_channels and n_sampled > MAX_SAMPLED_SHARE * samples.n_total:
        return 0
    return n_sampled


def _scan_share(
    samples: Samples, start: int, stop: int, *, typical: Floats, n_sampled: int
) -> ColumnStatistics:
    """Return the statistics of a share of the rows, block by block; on a device all at once.

    `n_sampled` is how many of the rows of the whole data set are chosen at random.
    """
    sampled_rows = _choose_rows(samples, start, stop, n_sampled)
    blocks: Iterator[tuple[int, int]]
    if samples.x.on_device:
        blocks = iter([(start, stop)])
    else:
        blocks = cut_into_blocks(start, stop, samples.x.shape[1])
    statistics = []
    for first, last in blocks:
        in_block = slice(*np.searchsorted(sampled_rows, (first, last)))
        rows = sampled_rows[in_block] - first
        statistics.append(_scan_block(samples, first, last, typical, rows))
    return reduce(_merge, statistics)


def _choose_rows(samples: Samples, start: int, stop: int, n_sampled: int) -> Integers:
    """Choose rows of a share at random, so that all shares together have enough of them.

    Every n-th row would not do, because on Sobol points such rows are a design of their own.
    """
    if n_sampled == 0:
        return np.arange(0)
    n_rows = stop - start
    n_chosen = int(n_sampled * n_rows / samples.n_total) + 1
    generator = np.random.default_rng(samples.first_row + start)
    rows = generator.choice(n_rows, min(n_chosen, n_rows), replace=False)
    return start + np.sort(rows)


def _scan_block(
    samples: Samples, start: int, stop: int, typical: Floats, sampled_rows: Integers
) -> ColumnStatistics:
    """Return the statistics of some rows, all at once."""
    inputs = samples.inputs(start, stop, samples.history)
    readouts = samples.x.read(start, stop)
    order, edges = _epochs_in_block(samples, start, stop)
    in_time = readouts
    if order is not None:
        in_time = take_rows(readouts, to_library_of(order, readouts))
    xp = array_namespace(readouts)
    # NaN and infinity are found in the extremes, and reported for all rows together.
    with np.errstate(over="ignore", invalid="ignore"):
        low = xp.min(readouts, axis=0)
        high = xp.max(readouts, axis=0)
        input_low = xp.min(inputs, axis=0)
        input_high = xp.max(inputs, axis=0)
        sums = _sums_of_epochs(in_time, edges, typical)
    if is_on_host(readouts):
        sample = readouts[sampled_rows]
    else:
        sample = take_rows(readouts, to_library_of(sampled_rows, readouts))
        arrays = [low, high, input_low, input_high, sums]
        low, high, input_low, input_high, sums = _fetch_together(arrays)

    if _all_finite(input_low, input_high):
        rows = samples.input_rows(start, stop, samples.history)
        check_domain(samples.u, rows, input_low, input_high, samples.basis)
    return ColumnStatistics(
        typical=typical,
        low=low,
        high=high,
        input_low=input_low,
        input_high=input_high,
        epoch_sizes=np.diff(edges),
        epoch_sums=sums,
        sampled=(sample,),
    )


def _epochs_in_block(samples: Samples, start: int, stop: int) -> tuple[Integers | None, Integers]:
    """Return the order of a block's rows in time, and where in it each epoch begins and ends.

    The order is None where rows are in the order of time.
    """
    if samples.epoch_of_row is None:
        numbers = np.arange(N_EPOCHS + 1)
        first_rows = -(-numbers * samples.n_total // N_EPOCHS)  # rounded up
        return None, np.clip(first_rows - samples.first_row - start, 0, stop - start)
    epochs = samples.epoch_of_row[start:stop]
    order = np.argsort(epochs, kind="stable")
    return order, np.searchsorted(epochs[order], np.arange(N_EPOCHS + 1))


def _sums_of_epochs(in_time: Any, edges: Integers, typical: Floats) -> Any:
    """Return the sums of readouts minus `typical` between the edges, (epochs, channels)."""
    if is_on_host(in_time):
        epochs = pairwise(edges.tolist())
        sums = [np.sum(in_time[first:last] - typical, axis=0) for first, last in epochs]
        return np.array(sums)
    # On a device a single product is faster than many small sums.
    xp = array_namespace(in_time)
    row = xp.arange(in_time.shape[0], device=in_time.device)
    bounds = to_library_of(edges, in_time)[:, None]
    is_member = (row >= bounds[:-1, :]) & (row < bounds[1:, :])
    return xp.astype(is_member, xp.float64) @ (in_time - to_library_of(typical, in_time))


def _fetch_together(arrays: list[Any]) -> list[Any]:
    """Return arrays of a device as NumPy arrays, with one transfer."""
    xp = array_namespace(*arrays)
    flat = to_numpy(xp.concat([xp.reshape(array, (-1,)) for array in arrays]))
    fetched = []
    start = 0
    for array in arrays:
        stop = start + int(np.prod(array.shape))
        fetched.append(flat[start:stop].reshape(array.shape))
        start = stop
    return fetched


def _merge(first: ColumnStatistics, second: ColumnStatistics) -> ColumnStatistics:
    """Return the statistics of the rows of both, the first in front of the second."""
    return ColumnStatistics(
        typical=first.typical,
        low=np.minimum(first.low, second.low),
        high=np.maximum(first.high, second.high),
        input_low=np.minimum(first.input_low, second.input_low),
        input_high=np.maximum(first.input_high, second.input_high),
        epoch_sizes=first.epoch_sizes + second.epoch_sizes,
        epoch_sums=first.epoch_sums + second.epoch_sums,
        sampled=first.sampled + second.sampled,
    )
