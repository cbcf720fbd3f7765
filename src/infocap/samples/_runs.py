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
from ._table import Table


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
            places = np.flatnonzero((start <= numbers) & (numbers < stop))
            if not len(places):
                continue
            # These rows are neighbours in their table, too, because its order is kept.
            numbers_in_table = numbers[places] - start
            first = int(numbers_in_table.min())
            last = int(numbers_in_table.max())
            block = table.read(first, last + 1, on_host=True)
            out[places] = block[numbers_in_table - first]
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


def cut_runs(
    u: Any, x: Any, basis: Any, washout: int | None, complex_as: str | None, repeats: Any
) -> RunTables:
    """Return the samples from max(washout, memory) on of each run.

    What comes before is history of the inputs. It reaches back twice the memory where the washout
    allows it, for control functions that reach further back than the functions reported.
    """
    if washout is None:
        washout = basis.memory
    n_left_out = max(require_whole_number("washout", washout, 0), basis.memory)
    history = min(n_left_out, 2 * basis.memory)

    runs = []
    several = is_of_several_runs(x)
    for number, sources in enumerate(_sources_of_runs(u, x, repeats, several)):
        run_name = f" of run {number + 1}" if several else ""
        tables = _tables_of_run(sources, complex_as)
        _refuse_short_run(tables, run_name, n_left_out, basis)
        runs.append(_without_washout(tables, n_left_out, history))

    all_u, all_x, *all_repeats = (_joined(tables) for tables in zip(*runs, strict=True))
    lengths = [run[1].shape[0] for run in runs]
    starts = np.cumsum([0, *lengths])
    if basis.slow_time:
        all_u = _with_slow_time(all_u, starts, history)
    return RunTables(
        u=all_u,
        x=all_x,
        repeats=all_repeats[0] if all_repeats else None,
        history=history,
        runs=starts[:-1] if several else None,
    )


def _sources_of_runs(u: Any, x: Any, repeats: Any, several: bool) -> list[tuple[Any, ...]]:
    """Return inputs, readouts and, if there are any, repeats of each run."""
    sources = [u, x] if repeats is None else [u, x, repeats]
    if not several:
        return [tuple(sources)]
    x_is_list = isinstance(x, list | tuple)
    for source in sources:
        if len(source) != len(x) or isinstance(source, list | tuple) != x_is_list:
            kinds = [f"{type(source).__name__} of {len(source)}" for source in sources]
            raise DataError(
                f"x has {len(x)} runs, but inputs and readouts are {' and '.join(kinds)}; give "
                "lists of equal length."
            )
    return list(zip(*sources, strict=True))


def _tables_of_run(sources: tuple[Any, ...], complex_as: str | None) -> list[Table]:
    """Return a run's inputs, readouts and perhaps repeats as tables."""
    inputs, *readouts = sources
    tables = [Table(_as_column(inputs), "u")]
    for name, source in zip(("x", "repeats"), readouts, strict=False):
        tables.append(Table(source, name, complex_as))
    return tables


def _as_column(u: ArrayLike) -> Any:
    """Return a single input sequence (steps,) as a table of one column."""
    u = u if hasattr(u, "shape") else np.asarray(u)
    if len(u.shape) != 1:
        return u
    return u[:, None] if hasattr(u, "device") else np.asarray(u)[:, None]


def _refuse_short_run(tables: list[Table], run_name: str, n_left_out: int, basis: Any) -> None:
    """Refuse a run whose tables do not agree, or of which the washout leaves nothing."""
    inputs = tables[0]
    n_rows = tables[1].shape[0]
    if inputs.shape != (n_rows, basis.n_inputs) or tables[-1].shape[0] != n_rows:
        shapes = [f"{table.name}{run_name} {table.shape}" for table in tables]
        raise DataError(
            f"the shapes are {', '.join(shapes)}; give equally many rows, and {basis.n_inputs} "
            "columns of u."
        )
    if n_rows <= n_left_out:
        raise DataError(
            f"x{run_name} has {n_rows} rows, none after the first {n_left_out} (the longer of "
            f"`washout` and the largest delay, {basis.memory}); record a longer sequence, or lower "
            "`max_delay` or `washout`."
        )


def _without_washout(tables: list[Table], n_left_out: int, history: int) -> list[Table]:
    """Return a run's tables without the washout; the inputs keep their history."""
    inputs, *readouts = tables
    cut = [inputs.slice_rows(n_left_out - history, inputs.shape[0])]
    for table in readouts:
        cut.append(table.slice_rows(n_left_out, table.shape[0]))
    return cut


def _joined(tables: Sequence[Table]) -> Table:
    """Return the tables of several runs as one."""
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
        return Table(array_namespace(*blocks).concat(blocks), name)
    return Table(JoinedRows(tables), name)


def _with_slow_time(u: Table, starts: Integers, history: int) -> Table:
    """Return the inputs with one more column: time, from -1 to 1 over all samples.

    In the history in front of a run it is that of the run's first sample.
    """
    n_samples = starts[-1]
    time = (2 * np.arange(n_samples) + 1) / n_samples - 1
    columns = []
    for start, stop in pairwise(starts.tolist()):
        columns.append(np.full(history, time[start]))
        columns.append(time[start:stop])
    values = u.read(0, u.shape[0], on_host=True)
    return Table(np.column_stack([values, np.concatenate(columns)]), "u")
