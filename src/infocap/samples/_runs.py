"""Runs of a sequence as two tables: readouts after the washout, and inputs with their history.

A device with memory answers inputs of the past as well, so that the first samples of every run are
left out (the washout), while their inputs are kept as history in front of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .._arrays import array_namespace
from .._validation import require_whole_number
from ..errors import DataError
from ..typing import ArrayLike, Floats, Integers
from ._table import RowNumbering, Table


class JoinedRows:
    """Rows of several tables as one source, read where they are when they are asked for.

    Parameters
    ----------
    tables
        Tables of equally many columns.
    order
        Which of all rows, numbered from the first table on, comes where; None: as they are. Rows of
        the same table must stay in their order.
    """

    sent_by_name = True  # Tables in files are sent as the files' names.
    dtype = np.dtype(float)

    def __init__(self, tables: Sequence[Table], order: Integers | None = None) -> None:
        self.tables = tables
        self.order = order
        lengths = [table.shape[0] for table in tables]
        self.edges = np.cumsum([0, *lengths]).tolist()
        self.shape = (self.edges[-1], tables[0].shape[1])

    def __getitem__(self, rows: slice) -> Floats:
        numbers = np.arange(*rows.indices(self.shape[0]))
        if self.order is not None:
            numbers = self.order[numbers]
        out = np.empty((len(numbers), self.shape[1]))
        for table, (start, stop) in zip(self.tables, pairwise(self.edges), strict=True):
            positions = np.flatnonzero((start <= numbers) & (numbers < stop))
            if not len(positions):
                continue
            # These rows are neighbours in their table, too, because its order is kept.
            numbers_in_table = numbers[positions] - start
            first = int(numbers_in_table.min())
            last = int(numbers_in_table.max())
            block = table.read(first, last + 1, on_host=True)
            out[positions] = block[numbers_in_table - first]
        return out


def is_of_several_runs(x: Any) -> bool:
    """Return whether readouts are of several runs.

    That is a list of tables, or an array (runs, steps, channels).
    """
    if isinstance(x, list | tuple) and x:
        return np.ndim(x[0]) == 2
    return len(np.shape(x)) == 3


@dataclass(frozen=True, eq=False)
class RunTables:
    """All runs of a sequence, one after the other, without the washout."""

    u: Table  # with `history` more rows than `x` in front of every run
    x: Table
    repeats: Table | None
    history: int
    runs: Integers | None  # the first row of `x` of each run, where there are several


@dataclass(frozen=True, eq=False)
class _Run:
    """The tables of one run, with the washout or without."""

    u: Table
    x: Table
    repeats: Table | None

    @property
    def tables(self) -> list[Table]:
        """Its tables, without repeats where there are none."""
        tables = [self.u, self.x]
        if self.repeats is not None:
            tables.append(self.repeats)
        return tables

    def without_washout(self, n_left_out: int, history: int) -> _Run:
        """Return the run without its first readouts; the inputs keep their history."""
        repeats = self.repeats
        if repeats is not None:
            repeats = repeats.slice_rows(n_left_out, repeats.shape[0])
        return _Run(
            u=self.u.slice_rows(n_left_out - history, self.u.shape[0]),
            x=self.x.slice_rows(n_left_out, self.x.shape[0]),
            repeats=repeats,
        )


def cut_runs(
    u: Any, x: Any, basis: Any, *, washout: int | None, complex_as: str | None, repeats: Any
) -> RunTables:
    """Return the samples from max(washout, memory) on of each run.

    What comes before is history of the inputs. It reaches back twice the memory where the washout
    allows it, for control functions that reach further back than the functions reported. Rows keep
    the numbers that they have in what was passed, where all rows of all runs are numbered through.
    """
    if washout is None:
        washout = basis.memory
    n_left_out = max(require_whole_number("washout", washout, 0), basis.memory)
    history = min(n_left_out, 2 * basis.memory)

    several = is_of_several_runs(x)
    if several:
        _refuse_unequal_runs([u, x] if repeats is None else [u, x, repeats], n_runs=len(x))
        repeats_of_runs = [None] * len(x) if repeats is None else repeats
        sources_of_runs = zip(u, x, repeats_of_runs, strict=True)
    else:
        sources_of_runs = zip([u], [x], [repeats], strict=True)

    runs = []
    given_lengths = []
    for number, (inputs, readouts, second_readouts) in enumerate(sources_of_runs, start=1):
        run = _Run(
            u=Table(_as_column(inputs), "u"),
            x=Table(readouts, "x", complex_as),
            repeats=_optional_table(second_readouts, complex_as),
        )
        run_name = f" of run {number}" if several else ""
        _refuse_short_run(run, run_name, n_left_out, basis)
        given_lengths.append(run.x.shape[0])
        runs.append(run.without_washout(n_left_out, history))

    all_u = _joined([run.u for run in runs], given_lengths)
    all_x = _joined([run.x for run in runs], given_lengths)
    all_repeats = [run.repeats for run in runs if run.repeats is not None]
    starts = np.cumsum([0, *(run.x.shape[0] for run in runs)])
    if basis.slow_time:
        all_u = _with_time(all_u, _slow_time(starts, history))
    if basis.period is not None:
        all_u = _with_time(all_u, _phase(basis.period, starts, history, n_left_out))
    return RunTables(
        u=all_u,
        x=all_x,
        repeats=_joined(all_repeats, given_lengths) if all_repeats else None,
        history=history,
        runs=starts[:-1] if several else None,
    )


def _refuse_unequal_runs(sources: list[Any], n_runs: int) -> None:
    """Refuse inputs, readouts and perhaps repeats of different kinds or numbers of runs."""
    x_is_list = isinstance(sources[1], list | tuple)
    for source in sources:
        if len(source) != n_runs or isinstance(source, list | tuple) != x_is_list:
            kinds = [f"{type(source).__name__} of {len(source)}" for source in sources]
            raise DataError(
                f"x has {n_runs} runs, but inputs and readouts are {' and '.join(kinds)}; give "
                "lists of equal length."
            )


def _optional_table(repeats: Any, complex_as: str | None) -> Table | None:
    return None if repeats is None else Table(repeats, "repeats", complex_as)


def _as_column(u: ArrayLike) -> Any:
    """Return a single input sequence (steps,) as a table of one column."""
    u = u if hasattr(u, "shape") else np.asarray(u)
    if len(u.shape) != 1:
        return u
    is_array = hasattr(u, "device")  # of any library; its numbers stay where they are
    if is_array:
        return u[:, None]
    # Other sources, such as a series of pandas, cannot be indexed by a new axis.
    return np.asarray(u)[:, None]


def _refuse_short_run(run: _Run, run_name: str, n_left_out: int, basis: Any) -> None:
    """Refuse a run whose tables do not agree, or of which the washout leaves nothing."""
    n_rows = run.x.shape[0]
    lengths = {table.shape[0] for table in run.tables}
    if len(lengths) > 1 or run.u.shape[1] != basis.n_inputs:
        shapes = [f"{table.name}{run_name} {table.shape}" for table in run.tables]
        hint = ""
        if n_rows >= 2 * run.u.shape[0]:
            n_nodes = n_rows // run.u.shape[0]
            hint = f" Of a trace of virtual nodes, give `rows_per_step={n_nodes}`."
        raise DataError(
            f"the shapes are {', '.join(shapes)}; give equally many rows, and {basis.n_inputs} "
            f"columns of u.{hint}"
        )
    if n_rows <= n_left_out:
        raise DataError(
            f"x{run_name} has {n_rows} rows, none after the first {n_left_out} (the longer of "
            f"`washout` and the largest delay, {basis.memory}); record a longer sequence, or lower "
            "`max_delay` or `washout`."
        )


def _joined(tables: Sequence[Table], given_lengths: Sequence[int]) -> Table:
    """Return the tables of several runs as one.

    `given_lengths` are the numbers of rows that the runs had before any were left out.
    """
    name = tables[0].name
    widths = [table.shape[1] for table in tables]
    if len(set(widths)) > 1:
        raise DataError(
            f"{name} has {widths} columns in its runs; give the same channels in every run."
        )
    if len(tables) == 1:
        return tables[0]
    if all(table.in_memory for table in tables):
        blocks = [table.read(0, table.shape[0]) for table in tables]
        joined = Table(array_namespace(*blocks).concat(blocks), name)
    else:
        joined = Table(JoinedRows(tables), name)
    first_rows = _starts([table.shape[0] for table in tables])
    first_rows_in_runs = [table.given_rows(np.array([0]))[0] for table in tables]
    return joined.numbered(RowNumbering(first_rows, _starts(given_lengths) + first_rows_in_runs))


def _starts(lengths: Sequence[int]) -> Integers:
    """Return where each of several parts begins, of these lengths and one after the other."""
    return np.cumsum([0, *lengths[:-1]])


def _slow_time(starts: Integers, history: int) -> Floats:
    """Return time from -1 to 1 over all samples.

    In the history in front of a run it is that of the run's first sample.
    """
    n_samples = starts[-1]
    time = (2 * np.arange(n_samples) + 1) / n_samples - 1
    columns = []
    for start, stop in pairwise(starts.tolist()):
        columns.append(np.full(history, time[start]))
        columns.append(time[start:stop])
    return np.concatenate(columns)


def _phase(period: float, starts: Integers, history: int, n_left_out: int) -> Floats:
    """Return the phase of every step in [0, 2 pi), which is zero at the first step of every run."""
    columns = []
    for start, stop in pairwise(starts.tolist()):
        steps = n_left_out - history + np.arange(history + stop - start)
        columns.append(2 * np.pi * ((steps / period) % 1.0))
    return np.concatenate(columns)


def _with_time(u: Table, time: Floats) -> Table:
    """Return the inputs with one more column, a time of every row."""
    values = u.read(0, u.shape[0], on_host=True)
    with_time = Table(np.column_stack([values, time]), "u")
    rows = np.arange(u.shape[0])
    return with_time.numbered(RowNumbering(rows, u.given_rows(rows)))
