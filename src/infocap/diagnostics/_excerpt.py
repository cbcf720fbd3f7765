"""Excerpts of a data set in the order of acquisition, prepared once for all checks of the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np

from .._arrays import take_rows, to_library_of, to_numpy
from .._formatting import join_names
from ..basis import ProductBasis, lowest_degrees
from ..samples import ColumnStatistics, Samples, Table
from ..typing import Floats, Integers
from ._residuals import (
    Fit,
    Residuals,
    fit_readouts,
    functions_of_fit,
    products_of_values,
)

# Rows of an excerpt, and the most excerpts: together a million rows.
MAX_ROWS = 8192
MAX_EXCERPTS = 128
# The same for data in files, which are read once more for the checks.
MAX_ROWS_FROM_FILES = 1536
MAX_EXCERPTS_FROM_FILES = 4
# Stretches of consecutive rows that are read one by one; more are read together.
MAX_STRETCHES = 8
# Bytes of readouts in one excerpt: of very many channels fewer rows are looked at.
MAX_EXCERPT_BYTES = 32_000_000
# Channels that are fetched from a device, which takes longer than what is done with them.
MAX_CHANNELS_FROM_DEVICE = 192
# Parts of the overview of a long data set, spread evenly over all its rows.
N_OVERVIEW_PARTS = 128
# Functions of lowest degree, with the constant, that show what readouts have to do with inputs.
N_LOW_FUNCTIONS = 21
# The same where there are many inputs: of these, so many are looked at.
MAX_LOW_FUNCTIONS = 65
# Probability that chance alone raises one check of values on one data set.
FALSE_ALARM_OF_VALUES = 1e-6
# Rows, chosen at random, whose values are put in order: enough to see one value in a hundred.
N_SORTED_ROWS = 512


@dataclass(frozen=True, eq=False)
class ExcerptRows:
    """Which rows an excerpt holds, in the order of acquisition."""

    positions: Integers  # how many rows of the data set were measured before each of them
    places: Integers  # of the rows among the samples
    is_overview: bool = False  # parts from all over the data set, not one after the other
    data: tuple[Floats, Floats] | None = None  # inputs and readouts, where they have been read


@dataclass(frozen=True, eq=False)
class Excerpt:
    """Rows in the order of acquisition: inputs, readouts, and low functions of the inputs."""

    samples: Samples
    places: Integers  # of the rows among the samples, in the order of acquisition
    positions: Integers  # how many rows of the data set were measured before each of them
    is_overview: bool
    share: float  # one over the number of excerpts: of the false alarms that this one may raise
    channels: Integers  # of the data set, that are looked at
    low: ProductBasis  # the functions of lowest degree, the constant first
    u: Floats  # inputs, (rows, inputs)
    x: Floats  # these channels, times the scale of the samples, (rows, channels)
    scale: Floats  # what each of them was multiplied by, 1 but for extreme values, (channels,)
    ends: Floats  # lowest and highest value of each channel in the whole data set, (2, channels)
    means: Floats  # of the functions but for the constant, in standard errors, (functions,)
    y: Floats  # values of these functions, mean 0 and variance 1, (functions, rows)
    some: Integers  # rows of the excerpt that were chosen at random
    sorted: Floats  # the values of each channel there in order of size, (channels, some)
    given_fit: Fit | None = None  # that of the whole data set; without it the excerpt has its own

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.places)

    @property
    def first(self) -> int:
        """How many rows were measured before the first."""
        return int(self.positions[0])

    @property
    def of_sequence(self) -> bool:
        """Whether the rows are time steps of a device with memory."""
        return self.samples.basis.of_sequences

    @cached_property
    def rows(self) -> Integers:
        """Numbers of the rows in what the user gave."""
        return self.samples.x.given_rows(self.places)

    @cached_property
    def scaled_inputs(self) -> Floats:
        """Inputs of mean 0 and variance 1 in single precision, whose distances tell neighbours."""
        some = self.u[self.some]
        deviation = np.maximum(some.std(axis=0), np.finfo(np.float32).tiny)
        return ((self.u - some.mean(axis=0)) / deviation).astype(np.float32)

    @cached_property
    def fit_functions(self) -> ProductBasis:
        """The functions of the row's own inputs, or own past, by which the readouts are fitted."""
        if self.given_fit is not None:
            return self.given_fit.functions
        return functions_of_fit(self.samples.basis, self.n)

    @cached_property
    def function_values(self) -> Floats:
        """Values of these functions, with the constant, (functions, rows)."""
        functions = self.fit_functions
        if functions.of_sequences:
            values = functions.values(self.past_inputs(functions.memory))
            return np.asarray(values).astype(np.float32)
        return products_of_values(functions, self.u)

    @cached_property
    def residuals(self) -> Residuals:
        """What functions of its own inputs leave of each row's readouts."""
        return Residuals(self, self.given_fit or fit_readouts(self))

    @cached_property
    def related_inputs(self) -> tuple[int, float] | None:
        """Lag and size of the relation between inputs of neighbouring rows; None if none."""
        from ._lags import find_related_inputs

        return find_related_inputs(self)

    def past_inputs(self, memory: int) -> Floats:
        """Return the inputs of a sequence with earlier ones in front, (memory + n, inputs)."""
        first = int(self.places[0])
        runs = self.samples.runs
        n_runs_begun = 1
        if runs is not None:
            n_runs_begun = int(np.searchsorted(runs, first, side="right"))
        start = first + n_runs_begun * self.samples.history - memory
        u = self.samples.u.read(start, start + memory + self.n, on_host=True)
        return u[:, : self.samples.basis.n_inputs]

    def names(self, channels: Iterable[Any]) -> list[str]:
        """Return what channels, numbered among those that are looked at, are called in messages."""
        return [self.samples.x.describe_column(int(self.channels[k])) for k in channels]

    def limit(self, degrees_of_freedom: int) -> float:
        """Return what a chi-squared number does not exceed by chance.

        That is the approximation of Wilson and Hilferty (PNAS 17, 684, 1931).
        """
        spread = 2 / (9 * max(degrees_of_freedom, 1))
        reach = -NormalDist().inv_cdf(FALSE_ALARM_OF_VALUES * self.share)
        return degrees_of_freedom * float(1 - spread + reach * np.sqrt(spread)) ** 3


def choose_excerpts(samples: Samples) -> list[ExcerptRows]:
    """Return consecutive excerpts, or some of very many, and an overview of a long data set."""
    n_rows = samples.n_samples
    if samples.time is None:
        order = np.arange(n_rows)
    else:
        order = np.argsort(samples.time, kind="stable")
    on_host = samples.in_memory and not samples.x.on_device
    longest = MAX_ROWS if on_host else MAX_ROWS_FROM_FILES
    longest = min(longest, MAX_EXCERPT_BYTES // (8 * len(samples.channels)) + 1)
    edges = [0, n_rows] if samples.runs is None else [*map(int, samples.runs), n_rows]
    excerpts = []
    for start, stop in pairwise(edges):
        n_excerpts = -(-(stop - start) // longest)  # rounded up
        bounds = [start + (stop - start) * k // n_excerpts for k in range(n_excerpts + 1)]
        for first, last in pairwise(bounds):
            positions = np.arange(first, last)
            excerpts.append(ExcerptRows(positions, order[positions]))
    max_excerpts = MAX_EXCERPTS if on_host else MAX_EXCERPTS_FROM_FILES
    if samples.x.on_device:
        max_excerpts = 1
    if len(excerpts) > max_excerpts:
        chosen = np.linspace(0, len(excerpts) - 1, max_excerpts).round().astype(int)
        excerpts = [excerpts[k] for k in chosen]
    is_one_run = samples.runs is None and not samples.history
    if n_rows > longest and is_one_run and not samples.x.on_device:
        if on_host:
            positions = _positions_of_overview(n_rows, longest)
        else:
            # Rows far apart take long to read from a file, so those of the excerpts serve.
            positions = np.concatenate([excerpt.positions for excerpt in excerpts])
        excerpts.append(ExcerptRows(positions, order[positions], is_overview=True))
        if not on_host:
            excerpts = _with_data(samples, excerpts)
    return excerpts


def _with_data(samples: Samples, excerpts: list[ExcerptRows]) -> list[ExcerptRows]:
    """Return the excerpts with their data, which are read once for them and for the overview."""
    *parts, overview = excerpts
    u, x = _read(samples, overview.places, samples.channels)
    stops = np.cumsum([len(part.places) for part in parts]).tolist()
    with_data = []
    for part, start, stop in zip(parts, [0, *stops], stops, strict=False):
        with_data.append(replace(part, data=(u[start:stop], x[start:stop])))
    return [*with_data, replace(overview, data=(u, x))]


def _positions_of_overview(n_rows: int, n_chosen: int) -> Integers:
    """Return the positions of parts of equal length that are spread evenly over all rows."""
    length = max(n_chosen // N_OVERVIEW_PARTS, 1)
    starts = np.linspace(0, n_rows - length, N_OVERVIEW_PARTS).round().astype(int)
    return (starts[:, None] + np.arange(length)).ravel()


def prepare(
    samples: Samples,
    statistics: ColumnStatistics,
    chosen: ExcerptRows,
    share: float,
    fit: Fit | None = None,
) -> Excerpt:
    """Return an excerpt of a data set, made ready for the checks."""
    step = 1
    if samples.x.on_device:
        step = -(-len(samples.channels) // MAX_CHANNELS_FROM_DEVICE)
    channels = samples.channels[::step]
    scale = np.broadcast_to(samples.scale, samples.channels.shape)[::step]
    u, x = chosen.data or _read(samples, chosen.places, channels)
    if np.any(scale != 1):
        x = x * scale
    n_low = min(max(N_LOW_FUNCTIONS, samples.basis.n_inputs + 1), MAX_LOW_FUNCTIONS)
    low = lowest_degrees(samples.basis, n_low)
    y = products_of_values(low, u)[1:]
    means = y.mean(axis=1, dtype=float)
    y -= means[:, None].astype(np.float32)
    deviation = np.sqrt(np.einsum("ij,ij->i", y, y) / len(x))
    y /= np.maximum(deviation, 1e-30)[:, None]

    some = np.random.default_rng(0).permutation(len(x))[:N_SORTED_ROWS]
    return Excerpt(
        samples=samples,
        places=chosen.places,
        positions=chosen.positions,
        is_overview=chosen.is_overview,
        share=share,
        channels=channels,
        low=low,
        u=u,
        x=x,
        scale=scale,
        ends=np.array([statistics.low, statistics.high])[:, channels] * scale,
        means=means * np.sqrt(len(x)),
        y=y,
        some=some,
        sorted=_sorted_columns(x[some]),
        given_fit=fit,
    )


def _read(samples: Samples, places: Integers, channels: Integers) -> tuple[Floats, Floats]:
    """Return inputs and readouts of rows at some places; only channels that are looked at."""
    stretches = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
    x = _rows_of(samples.x, stretches, channels)
    if not samples.basis.of_sequences:
        return _rows_of(samples.u, stretches, np.arange(samples.u.shape[1])), x
    # The inputs have more rows than the readouts, and perhaps a column of slow time.
    n_runs_begun = np.ones(len(places), dtype=int)
    if samples.runs is not None:
        n_runs_begun = np.searchsorted(samples.runs, places, side="right")
    u = samples.u.read_rows(places + samples.history * n_runs_begun)
    return u[:, : samples.basis.n_inputs], x


def _rows_of(table: Table, stretches: list[Integers], columns: Integers) -> Floats:
    """Return some columns of rows, which are given in stretches of consecutive ones."""
    if len(stretches) > MAX_STRETCHES:
        return table.read_rows(np.concatenate(stretches), columns)
    if len(stretches) > 1:
        return np.concatenate([_slice_of(table, rows, columns) for rows in stretches])
    return _slice_of(table, stretches[0], columns)


def _slice_of(table: Table, rows: Integers, columns: Integers) -> Floats:
    """Return some columns of consecutive rows.

    Rows of very many columns are read in parts. Of a table on a device only the columns are
    fetched, which are fewer numbers.
    """
    start = int(rows[0])
    stop = int(rows[-1]) + 1
    if len(columns) == table.shape[1]:
        return to_numpy(table.read(start, stop))
    if table.on_device:
        values = table.read(start, stop)
        return to_numpy(take_rows(values.T, to_library_of(columns, values)).T)
    n_rows = max(MAX_EXCERPT_BYTES // (8 * table.shape[1]), 1)
    parts = []
    for first in range(start, stop, n_rows):
        parts.append(table.read(first, min(first + n_rows, stop))[:, columns])
    return np.concatenate(parts)


def _sorted_columns(x: Floats) -> Floats:
    """Return the values of each column in order of size, (columns, values).

    Sorting halves and merging them takes half the time of sorting the whole.
    """
    columns = np.ascontiguousarray(x.T)
    if columns.shape[1] % 2 == 0:
        halves = np.sort(columns.reshape(-1, columns.shape[1] // 2))
        columns = halves.reshape(len(columns), -1)
    return np.sort(columns, kind="stable")


def numbers(rows: Iterable[Any]) -> str:
    """Return numbers of rows in words, cut short."""
    return join_names([str(int(row)) for row in rows], 4)
