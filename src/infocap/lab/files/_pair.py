"""A recording from two files: inputs in the first, readouts in the second or in a folder."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import ArrayFile
from ..._validation import require_one_of
from ...designs import design_fingerprint
from ...errors import Check, DataError
from ...recording import Recording
from ._arrange import RowsOfFile, as_table, oriented_as_readouts, to_recording
from ._folder import is_folder, rows_of_folder
from ._options import ReadOptions
from ._others import FORMATS, open_file, rows_of
from ._tables import Sheet

# Differences between numbers that both files hold which are due to the digits that were written.
RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = 1e-9


def pair(file: ArrayFile | Sheet, readouts: Path, options: ReadOptions) -> Recording:
    """Read inputs from an open file and readouts from another, with what each tells beside them."""
    path = file.path
    sent = rows_of(file, replace(options, axes=None, wants_readouts=False))
    measured = _read_readouts(readouts, sent, options)
    sent.u = as_table(path, "u", oriented_as_readouts(sent.u, measured.x, measured.axes))
    measured.x = as_table(readouts, "x", measured.x)
    _cut_to_measured_rows(sent, measured)
    _refuse_other_design(sent, measured)
    _refuse_shifted(sent, measured, "index")
    _refuse_shifted(sent, measured, "u")
    return to_recording(_combine(sent, measured))


def _read_readouts(path: Path, sent: RowsOfFile, options: ReadOptions) -> RowsOfFile:
    """Read the readouts from a file or from a folder of files."""
    options = replace(options, wants_inputs=False)
    if not is_folder(path):
        return _read_file_of_readouts(path, options)
    options_of_file = replace(options, axes=None, in_memory=True)
    read_file = partial(_read_file_of_readouts, options=options_of_file)
    return rows_of_folder(path, sent.columns_of_text, read_file)


def _read_file_of_readouts(path: Path, options: ReadOptions) -> RowsOfFile:
    require_one_of("readouts suffix", path.suffix.lower(), FORMATS)
    with open_file(path) as file:
        return rows_of(file, options)


def _cut_to_measured_rows(sent: RowsOfFile, measured: RowsOfFile) -> None:
    """Leave out the last rows of a design that was not measured to its end.

    Without a design index nothing is left out: a file of another length is then of another
    experiment.
    """
    if sent.index is None:
        return
    n_rows = sent.u.shape[0]
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
    sent.checks.insert(0, stopped_early)
    # The rows are sorted by their index, for which they have to be in memory.
    measured.x = np.asarray(measured.x[:])
    sent.u = np.asarray(sent.u[:n_measured])
    sent.index = sent.index.ravel()[:n_measured]
    if sent.time is not None:
        sent.time = sent.time.ravel()[:n_measured]


def _refuse_other_design(sent: RowsOfFile, measured: RowsOfFile) -> None:
    """Refuse inputs and readouts that belong to different designs, where both files tell theirs."""
    our_plan = sent.metadata.get("plan")
    their_plan = measured.metadata.get("plan")
    if not isinstance(our_plan, dict) or not isinstance(their_plan, dict):
        return
    ours = design_fingerprint(our_plan)
    theirs = design_fingerprint(their_plan)
    if ours != theirs:
        raise DataError(
            f"{sent.path} is of design {ours} (seed {our_plan.get('seed')}), and {measured.path} "
            f"of {theirs} (seed {their_plan.get('seed')}): inputs and readouts "
            "belong to different runs; give the inputs that were sent."
        )


def _refuse_shifted(sent: RowsOfFile, measured: RowsOfFile, field: str) -> None:
    """Refuse files that disagree in any row of a field: the readouts belong to other inputs."""
    ours = getattr(sent, field)
    theirs = getattr(measured, field)
    if ours is None or theirs is None:
        return
    name = field
    ours = np.asarray(ours[:])
    theirs = np.asarray(theirs[:])
    if field == "index":
        name = "design_index"
        ours = ours.ravel()
        theirs = theirs.ravel()
    if theirs.shape != ours.shape:
        raise DataError(
            f"{name} has shape {ours.shape} in {sent.path} but {theirs.shape} in {measured.path}."
        )
    close = np.isclose(
        ours, theirs, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE, equal_nan=True
    )
    differs = ~close.reshape(len(ours), -1).all(axis=1)
    if differs.any():
        row = int(np.argmax(differs))
        raise DataError(
            f"{name} is {ours[row]} in {sent.path} and {theirs[row]} in {measured.path} at row "
            f"{row + 1}, the first of {differs.sum()} that differ: the readouts are shifted or of "
            "another run."
        )


def _combine(sent: RowsOfFile, measured: RowsOfFile) -> RowsOfFile:
    """Take what concerns the inputs from the first file, and the rest from the second."""
    rows = RowsOfFile(measured.path, sent.u, measured.x)
    rows.index = measured.index if sent.index is None else sent.index
    rows.time = sent.time if measured.time is None else measured.time
    rows.input_names = sent.input_names or measured.input_names
    rows.input_unit = sent.input_unit or measured.input_unit
    rows.channel = measured.channel
    rows.readout_unit = measured.readout_unit
    rows.metadata = sent.metadata
    rows.read_from = sent.read_from + measured.read_from
    rows.checks = sent.checks + measured.checks
    plan = sent.metadata.get("plan")
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
