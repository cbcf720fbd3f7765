"""Tables with a row for each sample and channel, made wide: a row per sample.

A table is long where the user names the column that says which channel a row is of
(``channels=``), or where it has a usual name, beside a column that numbers the samples. The files
of a folder, one per sample, are one long table, too, in which a sample is a file.

Columns that are the same throughout each sample may be inputs, but are no readouts.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._formatting import join_names
from ..._validation import MAX_NAMES_IN_MESSAGE
from ...errors import DataError
from ...typing import Integers
from ._cells import Column
from ._names import (
    SAMPLE_NAMES_OF_LONG_TABLES,
    NotInFileError,
    find_requested,
    find_usual,
    is_name_of_time,
    plain_name,
    unit_of,
)
from ._options import ReadOptions
from ._sheet import Sheet

# Names of the column that says which channel a row is of.
CHANNEL_NAMES = ("channel", "channels", "ch", "detector", "sensor", "pixel", "signal", "variable")


@dataclass(frozen=True)
class Grid:
    """Which sample and which channel each row of a long table is of.

    Parameters
    ----------
    sample, channel
        The number of each, counted from 0: of channels in the order in which they appear, of
        samples in the order of their numbers.
    n_samples, n_channels
        How many there are.
    channel_names
        What the channels are called.
    dropped
        The column that says which channel a row is of.
    """

    sample: Integers
    channel: Integers
    n_samples: int
    n_channels: int
    channel_names: list[str]
    dropped: tuple[int, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every sample has every channel once."""
        cells = self.sample * self.n_channels + self.channel
        n_cells = self.n_samples * self.n_channels
        return len(cells) == n_cells and len(np.unique(cells)) == n_cells


def wide_where_long(sheet: Sheet, options: ReadOptions) -> tuple[Sheet, ReadOptions]:
    """Return a long table as a wide one, with options that fit it; any other table as it is."""
    if options.channels is None:
        grid = _obvious_grid(sheet)
        if grid is None:
            return sheet, options
    else:
        position = channel_column(sheet, options.channels)
        grid = _grid_of(sheet, position, _column_of_samples(sheet, position))
        _refuse_incomplete(sheet, grid)
    sheet, options = widened(sheet, grid, options)
    return replace(sheet, layout=f"{sheet.layout}, one row per sample and channel"), options


def channel_column(sheet: Sheet, name: str) -> int:
    """Return the column that the user names by ``channels=``."""
    positions = find_requested(sheet.path, sheet.labels, name, role="channels")
    if len(positions) != 1:
        names = join_names([sheet.labels[k] for k in positions], MAX_NAMES_IN_MESSAGE)
        raise DataError(f"channels={name!r} fits {names} in {sheet.path}; name one column.")
    return positions[0]


def _obvious_grid(sheet: Sheet) -> Grid | None:
    """Return the grid of a table that is long by its names; None for other tables."""
    for position in find_usual(sheet.labels, CHANNEL_NAMES):
        sample_column = _column_of_samples(sheet, position)
        if sample_column is not None:
            grid = _grid_of(sheet, position, sample_column)
            if grid.is_complete and grid.n_channels > 1:
                return grid
    return None


def _column_of_samples(sheet: Sheet, channel_position: int) -> int | None:
    """Return the column that numbers the samples, by its name."""
    names = [plain_name(label) for label in sheet.labels]
    for name in SAMPLE_NAMES_OF_LONG_TABLES:
        if name in names and names.index(name) != channel_position:
            return names.index(name)
    return None


def _grid_of(sheet: Sheet, position: int, sample_position: int | None) -> Grid:
    """Number the samples and the channels of all rows.

    Without a column that numbers the samples, one begins where the first channel comes again.
    """
    column = sheet.columns[position]
    channel, channels = _factorised(column)
    if sample_position is None:
        sample = np.cumsum(channel == channel[0]) - 1
    else:
        sample = _numbered(sheet.columns[sample_position])
    return Grid(
        sample=sample,
        channel=channel,
        n_samples=int(sample.max(initial=-1)) + 1,
        n_channels=len(channels),
        channel_names=names_of_channels(column, channels),
        dropped=(position,),
    )


def _numbered(column: Column) -> Integers:
    """Return the place of each sample: by its number, or as words in the order of the rows."""
    if column.cells.dtype.kind == "f":
        return np.unique(column.cells, return_inverse=True)[1]
    return _factorised(column)[0]


def _factorised(column: Column) -> tuple[Integers, Any]:
    """Return the number of each value, in the order in which they appear, and the values."""
    import pandas as pd

    return pd.factorize(column.cells, use_na_sentinel=False)


def names_of_channels(column: Column, values: Sequence[Any]) -> list[str]:
    """Return the names of channels: words, or numbers with the unit of their column."""
    unit = unit_of(column.label)
    names = []
    for value in values:
        name = str(value) if isinstance(value, str) else f"{value:.10g}"
        names.append(f"{name} {unit}".strip())
    return names


def _refuse_incomplete(sheet: Sheet, grid: Grid) -> None:
    """Refuse a long table in which a sample has not each channel once."""
    if grid.is_complete:
        return
    n_rows = np.bincount(grid.sample, minlength=grid.n_samples)
    different = np.flatnonzero(n_rows != grid.n_channels)
    sample = int(different[0]) if len(different) else 0
    row = int(np.argmax(grid.sample == sample))
    raise DataError(
        f"{sheet.path} has {len(grid.sample)} rows, {grid.n_samples} samples and "
        f"{grid.n_channels} channels ({join_names(grid.channel_names, MAX_NAMES_IN_MESSAGE)}); the "
        f"sample that begins in line {sheet.lines[row]} has {n_rows[sample]} rows: give every "
        "channel once in each sample."
    )


def widened(sheet: Sheet, grid: Grid, options: ReadOptions) -> tuple[Sheet, ReadOptions]:
    """Return a row for each sample, with the columns that vary inside samples side by side."""
    order = np.lexsort((grid.channel, grid.sample))
    shape = (grid.n_samples, grid.n_channels)
    named: list[int] = []
    if options.x is not None:
        # Otherwise these are names of channels, which are found when the table is wide.
        with suppress(NotInFileError):
            named = find_requested(sheet.path, sheet.labels, options.x, role="x")
            options = replace(options, x=None)
    constant: list[Column] = []
    varying: list[tuple[Column, np.ndarray]] = []
    for k, column in enumerate(sheet.columns):
        if k in grid.dropped:
            continue
        cells = column.cells[order].reshape(shape)
        first_cells = Column(column.label, cells[:, 0], _words_in_rows(column, order[:: shape[1]]))
        first_cells.may_be_readout = False
        if k in named or not (_is_constant(cells) or is_name_of_time(column.label)):
            varying.append((column, cells))
        else:
            constant.append(first_cells)
    if named:
        varying = [(column, cells) for column, cells in varying if column in _chosen(sheet, named)]
    varying = [(column, cells) for column, cells in varying if not column.is_text]

    columns = constant
    for column, cells in varying:
        for number, name in enumerate(grid.channel_names):
            label = name if len(varying) == 1 else f"{column.label} {name}"
            words = _words_in_rows(column, order[number :: shape[1]])
            columns.append(Column(label, cells[:, number], words, unit=unit_of(column.label)))
    lines = sheet.lines[order[:: shape[1]]]
    options = replace(options, channels=None)
    return replace(sheet, columns=columns, lines=lines, has_names=True), options


def _chosen(sheet: Sheet, positions: Sequence[int]) -> list[Column]:
    return [sheet.columns[k] for k in positions]


def _is_constant(cells: np.ndarray) -> bool:
    """Return whether all cells of each sample are the same."""
    first = cells[:, :1]
    is_same = cells == first
    if cells.dtype.kind in "fc":
        is_same |= np.isnan(cells) & np.isnan(first)
    return bool(np.all(is_same))


def _words_in_rows(column: Column, rows: Integers) -> Integers:
    """Return which of some rows hold words."""
    return np.flatnonzero(np.isin(rows, column.words))
