"""A recording from two files: inputs in the first, readouts in the second or in a folder."""

from pathlib import Path
from typing import Any

import numpy as np

from ..._files import ArrayFile
from ..._validation import require_one_of
from ...designs import design_fingerprint
from ...errors import Check, DataError
from ...recording import Recording
from ...typing import ArrayLike
from ._arrange import RowsOfFile, as_table, oriented_as_readouts, to_recording
from ._folder import is_folder, rows_of_folder
from ._options import ReadOptions
from ._others import FORMATS, open_file, rows_of
from ._tables import Sheet

# Differences between numbers that both files hold which are due to the digits that were written.
RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = 1e-9


def pair(file: ArrayFile | Sheet, other: Path, options: ReadOptions) -> Recording:
    """Read inputs from an open file and readouts from another, with what each tells beside them."""
    path = file.path
    given = rows_of(file, {"u": options.u}, None, options.in_memory)
    measured = _read_readouts(other, given, options)
    given.u = as_table(path, "u", oriented_as_readouts(given.u, measured.x, measured.axes))
    measured.x = as_table(other, "x", measured.x)
    _cut_to_measured_rows(given, measured)
    _refuse_other_design(given, measured)
    _refuse_shifted(given, measured, "design_index", given.index, measured.index)
    _refuse_shifted(given, measured, "u", given.u, measured.u)
    return to_recording(_combine(given, measured))


def _read_readouts(other: Path, given: RowsOfFile, options: ReadOptions) -> RowsOfFile:
    """Read the readouts from a file or from a folder of files."""

    def read_file(path: Path, axes: str | None, in_memory: bool) -> RowsOfFile:
        require_one_of("readouts suffix", path.suffix.lower(), FORMATS)
        with open_file(path) as file:
            return rows_of(file, {"x": options.x}, axes, in_memory)

    if is_folder(other):
        return rows_of_folder(
            other, given.columns_of_text, lambda path: read_file(path, None, True)
        )
    return read_file(other, options.axes, options.in_memory)


def _cut_to_measured_rows(given: RowsOfFile, measured: RowsOfFile) -> None:
    """Leave out the last rows of a design that was not measured to its end.

    Without a design index nothing is left out: a file of another length is then of another
    experiment.
    """
    if given.index is None:
        return
    n_rows = given.u.shape[0]
    n_measured, n_channels = measured.x.shape
    is_transposed = n_channels == n_rows
    if n_measured >= n_rows or is_transposed:
        return
    cure = "write the index along with the readouts, in case a row was lost in between"
    if measured.index is not None or measured.u is not None:
        cure = "measure the others for the whole design"
    stopped_early = Check(
        f"the acquisition stopped early: {n_measured} of {n_rows} measurements are there, "
        f"taken for the first in the order of acquisition; {cure}."
    )
    given.checks.insert(0, stopped_early)
    # The rows are sorted by their index, for which they have to be in memory.
    measured.x = np.asarray(measured.x[:])
    given.u = np.asarray(given.u[:n_measured])
    given.index = given.index.ravel()[:n_measured]
    if given.time is not None:
        given.time = given.time.ravel()[:n_measured]


def _refuse_other_design(given: RowsOfFile, measured: RowsOfFile) -> None:
    """Refuse inputs and readouts that belong to different designs, where both files tell theirs."""
    our_plan = given.metadata.get("plan")
    their_plan = measured.metadata.get("plan")
    if not isinstance(our_plan, dict) or not isinstance(their_plan, dict):
        return
    ours = design_fingerprint(our_plan)
    theirs = design_fingerprint(their_plan)
    if ours != theirs:
        raise DataError(
            f"{given.path} is of design {ours} (seed {our_plan.get('seed')}), and {measured.path} "
            f"of {theirs} (seed {their_plan.get('seed')}): inputs and readouts "
            "belong to different runs; give the inputs that were sent."
        )


def _refuse_shifted(
    given: RowsOfFile, measured: RowsOfFile, name: str, ours: ArrayLike, theirs: ArrayLike
) -> None:
    """Refuse files that disagree in any row: the readouts belong to other inputs."""
    if ours is None or theirs is None:
        return
    ours = np.asarray(ours[:])
    theirs = np.asarray(theirs[:])
    if name == "design_index":
        ours = ours.ravel()
        theirs = theirs.ravel()
    if theirs.shape != ours.shape:
        raise DataError(
            f"{name} has shape {ours.shape} in {given.path} but {theirs.shape} in {measured.path}."
        )
    close = np.isclose(
        ours, theirs, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE, equal_nan=True
    )
    differs = ~close.reshape(len(ours), -1).all(axis=1)
    if differs.any():
        row = int(np.argmax(differs))
        raise DataError(
            f"{name} is {ours[row]} in {given.path} and {theirs[row]} in {measured.path} at row "
            f"{row + 1}, the first of {differs.sum()} that differ: the readouts are shifted or of "
            "another run."
        )


def _combine(given: RowsOfFile, measured: RowsOfFile) -> RowsOfFile:
    """Take what concerns the inputs from the first file, and the rest from the second."""
    rows = RowsOfFile(measured.path, given.u, measured.x)
    rows.index = measured.index if given.index is None else given.index
    rows.time = given.time if measured.time is None else measured.time
    rows.input_names = given.input_names or measured.input_names
    rows.input_unit = given.input_unit or measured.input_unit
    rows.channel = measured.channel
    rows.readout_unit = measured.readout_unit
    rows.metadata = given.metadata
    rows.read_from = given.read_from + measured.read_from
    rows.checks = given.checks + measured.checks
    plan = given.metadata.get("plan")
    if isinstance(plan, dict):
        _name_by_plan(rows, plan)
    return rows


def _name_by_plan(rows: RowsOfFile, plan: dict[str, Any]) -> None:
    """Take units from the plan, and the names of channels where the file of readouts has none."""
    rows.input_unit = str(plan.get("input_unit", ""))
    rows.readout_unit = str(plan.get("readout_unit", ""))
    channel = plan.get("channel")
    if rows.channel or not isinstance(channel, list):
        return
    if len(channel) == rows.x.shape[1]:
        rows.channel = tuple(str(name) for name in channel)
