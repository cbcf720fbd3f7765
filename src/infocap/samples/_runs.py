"""Runs of a sequence as two tables: readouts after the washout, and inputs with history in front of every run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._arrays import array_namespace
from .._validation import whole_number
from ..errors import DataError
from ..typing import ArrayLike, Floats, Integers
from ._table import Table


class Joined:
    """Rows of several tables as one, read where they are when asked for; `order` tells which comes where."""

    sent_by_name = True  # tables in files travel as their names
    dtype = np.dtype(float)

    def __init__(self, tables: Sequence[Table], order: Integers | None = None) -> None:
        self.tables, self.order = tables, order
        self.edges = np.cumsum([0, *(one.shape[0] for one in tables)]).tolist()
        self.shape = (self.edges[-1], tables[0].shape[1])

    def __getitem__(self, rows: slice) -> Floats:
        wanted = np.arange(*rows.indices(self.shape[0]))
        wanted = wanted if self.order is None else self.order[wanted]
        out = np.empty((len(wanted), self.shape[1]))
        for table, (start, stop) in zip(self.tables, pairwise(self.edges), strict=True):
            places = np.flatnonzero((start <= wanted) & (wanted < stop))
            if len(places):  # neighbours in their file too, for each file is in order itself
                first, last = int(wanted[places].min()), int(wanted[places].max())
                block = table.read(first - start, last + 1 - start, on_host=True)
                out[places] = block[wanted[places] - first]
        return out


def has_runs(x: Any) -> bool:
    """Whether readouts are of several runs: a list of tables, or an array (runs, steps, channels)."""
    return np.ndim(x[0]) == 2 if isinstance(x, list | tuple) and x else len(np.shape(x)) == 3


def cut_runs(
    u: Any, x: Any, basis: Any, washout: int | None, complex_as: str | None, repeats: Any
) -> dict[str, Any]:
    """The samples from max(washout, memory) on of each run, as fields of `Samples`.

    What comes before is history of the inputs alone. It reaches back twice the memory where the washout allows it, for
    controls beyond the functions reported.
    """
    first = max(
        whole_number("washout", basis.memory if washout is None else washout, 0), basis.memory
    )
    history = min(first, 2 * basis.memory)
    several, kind = has_runs(x), isinstance(x, list | tuple)
    lists = [one if several else [one] for one in (u, x, repeats) if one is not None]
    if several and any(
        len(one) != len(x) or isinstance(one, list | tuple) != kind for one in lists
    ):
        found = " and ".join(f"{type(one).__name__} of {len(one)}" for one in lists)
        raise DataError(
            f"x has {len(x)} runs, but inputs and readouts are {found}; give lists of equal length."
        )
    parts = []
    for number, (inputs, *readouts) in enumerate(zip(*lists, strict=True)):
        run, names = f" of run {number + 1}" * several, ("x", "repeats")
        tables = [Table(one, name, complex_as) for name, one in zip(names, readouts, strict=False)]
        tables.insert(0, Table(_column(inputs), "u"))
        n = tables[1].shape[0]
        if tables[0].shape != (n, basis.n_inputs) or tables[-1].shape[0] != n:
            shapes = ", ".join(f"{one.name}{run} {one.shape}" for one in tables)
            raise DataError(
                f"the shapes are {shapes}; give equally many rows, and {basis.n_inputs} columns of u."
            )
        if n <= first:
            raise DataError(
                f"x{run} has {n} rows, none after the first {first} (the longer of `washout` and the largest delay, "
                f"{basis.memory}); record a longer sequence, or lower `max_delay` or `washout`."
            )
        parts.append([one.part(first - (history if one.name == "u" else 0), n) for one in tables])
    all_u, all_x, *second = (_joined(one) for one in zip(*parts, strict=True))
    starts = np.cumsum([0, *(part[1].shape[0] for part in parts)])
    if basis.slow_time:  # from -1 to 1 over all samples, as one more column
        time = (2 * np.arange(starts[-1]) + 1) / starts[-1] - 1
        clock = [
            np.append(np.full(history, time[a]), time[a:b]) for a, b in pairwise(starts.tolist())
        ]
        values = all_u.read(0, all_u.shape[0], on_host=True)
        all_u = Table(np.column_stack([values, np.concatenate(clock)]), "u")
    repeated, runs = second[0] if second else None, starts[:-1] if several else None
    return {"u": all_u, "x": all_x, "repeats": repeated, "runs": runs, "history": history}


def _column(u: ArrayLike) -> Any:
    """One input sequence as a table of one column."""
    u = u if hasattr(u, "shape") else np.asarray(u)
    if len(u.shape) != 1:
        return u
    return u[:, None] if hasattr(u, "device") else np.asarray(u)[:, None]


def _joined(tables: Sequence[Table]) -> Table:
    """Tables of several runs as one."""
    widths = [one.shape[1] for one in tables]
    if len(set(widths)) > 1:
        raise DataError(
            f"{tables[0].name} has {widths} columns in its runs; give the same channels in every run."
        )
    if len(tables) == 1:
        return tables[0]
    if all(one.in_memory for one in tables):
        blocks = [one.read(0, one.shape[0]) for one in tables]
        return Table(array_namespace(*blocks).concat(blocks), tables[0].name)
    return Table(Joined(tables), tables[0].name)
