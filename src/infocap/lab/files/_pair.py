"""A recording from two files: inputs in the first, readouts in the second or in a folder."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import ArrayFile
from ...designs import design_fingerprint
from ...errors import Check, DataError
from ...recording import Recording
from ._arrange import RowsOfFile, as_table, oriented_as_readouts, to_recording
from ._folder import is_folder, rows_of_readout_files
from ._foreign_file import FORMATS, open_file, read_table_or_arrays, require_format, rows_of
from ._options import ReadOptions
from ._sheet import Sheet

# Differences between numbers that both files hold which are due to the digits that were written.
RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = 1e-9


def pair(file: ArrayFile | Sheet, readouts: Path, options: ReadOptions) -> Recording:
    """Read inputs from an open file and readouts from another, with what each tells beside them."""
    path = file.path
    input_rows = rows_of(file, replace(options, axes=None, channels=None, wants_readouts=False))
    readout_rows = _read_readouts(readouts, input_rows, options)
    u = oriented_as_readouts(input_rows.u, readout_rows.x, readout_rows.axes)
    is_trace = options.steps is not None
    input_rows.u = as_table(path, "u", u, is_trace)
    readout_rows.x = as_table(readouts, "x", readout_rows.x, is_trace)
    if not is_trace:
        _match_sample_numbers(input_rows, readout_rows)
        _cut_to_measured_rows(input_rows, readout_rows)
    _refuse_other_design(input_rows, readout_rows)
    _refuse_shifted(input_rows, readout_rows, "index")
    _refuse_shifted(input_rows, readout_rows, "u")
    return to_recording(_combine(input_rows, readout_rows), options.steps)


def _read_readouts(path: Path, input_rows: RowsOfFile, options: ReadOptions) -> RowsOfFile:
    """Read the readouts from a file or from a folder of files."""
    options = replace(options, wants_inputs=False)
    if is_folder(path):
        texts = input_rows.columns_of_text
        return rows_of_readout_files(path, texts, options, read_table_or_arrays)
    require_format(path, FORMATS)
    with open_file(path, options) as file:
        return rows_of(file, options)


def _match_sample_numbers(input_rows: RowsOfFile, readout_rows: RowsOfFile) -> None:
    """Bring readouts into the order of the inputs where both files number their samples."""
    for name, sent in input_rows.sample_numbers.items():
        measured = readout_rows.sample_numbers.get(name)
        if measured is None or np.array_equal(sent, measured):
            continue
        different = np.setxor1d(sent, measured)
        if len(different):
            raise DataError(
                f"{name} {different[0]:g} is in only one of {input_rows.path} and "
                f"{readout_rows.path}, and {len(different) - 1} more; give the inputs and the "
                "readouts of the same samples."
            )
        place = np.argsort(measured)[np.searchsorted(np.sort(measured), sent)]
        readout_rows.x = np.asarray(readout_rows.x[:])[place]
        if readout_rows.time is not None:
            readout_rows.time = readout_rows.time[place]
        if readout_rows.index is not None:
            readout_rows.index = readout_rows.index[place]
        return


def _cut_to_measured_rows(input_rows: RowsOfFile, readout_rows: RowsOfFile) -> None:
    """Leave out the last rows of a design that was not measured to its end.

    Without a design index nothing is left out: a file of another length is then of another
    experiment.
    """
    if input_rows.index is None:
        return
    n_rows = input_rows.u.shape[0]
    n_measured, n_channels = readout_rows.x.shape
    is_transposed = n_channels == n_rows
    if n_measured >= n_rows or is_transposed:
        return
    cure = "write the index along with the readouts, in case a row was lost in between"
    if readout_rows.index is not None or readout_rows.u is not None:
        cure = "measure the others for the whole design"
    stopped_early = Check(
        f"the acquisition stopped early: {n_measured} of {n_rows} measurements are there, "
        f"taken for the first in the order of acquisition; {cure}."
    )
    input_rows.checks.insert(0, stopped_early)
    # The rows are sorted by their index, for which they have to be in memory.
    readout_rows.x = np.asarray(readout_rows.x[:])
    input_rows.u = np.asarray(input_rows.u[:n_measured])
    input_rows.index = input_rows.index.ravel()[:n_measured]
    if input_rows.time is not None:
        input_rows.time = input_rows.time.ravel()[:n_measured]


def _refuse_other_design(input_rows: RowsOfFile, readout_rows: RowsOfFile) -> None:
    """Refuse inputs and readouts that belong to different designs, where both files tell theirs."""
    plan_of_inputs = input_rows.metadata.get("plan")
    plan_of_readouts = readout_rows.metadata.get("plan")
    if not isinstance(plan_of_inputs, dict) or not isinstance(plan_of_readouts, dict):
        return
    design_of_inputs = design_fingerprint(plan_of_inputs)
    design_of_readouts = design_fingerprint(plan_of_readouts)
    if design_of_inputs != design_of_readouts:
        raise DataError(
            f"{input_rows.path} is of design {design_of_inputs} "
            f"(seed {plan_of_inputs.get('seed')}), and {readout_rows.path} of {design_of_readouts} "
            f"(seed {plan_of_readouts.get('seed')}): inputs and readouts belong to different runs; "
            "give the inputs that were sent."
        )


def _refuse_shifted(input_rows: RowsOfFile, readout_rows: RowsOfFile, field: str) -> None:
    """Refuse files that disagree in any row of a field: the readouts belong to other inputs."""
    sent = getattr(input_rows, field)
    copied = getattr(readout_rows, field)  # into the file of readouts, along with them
    if sent is None or copied is None:
        return
    name = field
    sent = np.asarray(sent[:])
    copied = np.asarray(copied[:])
    if field == "index":
        name = "design_index"
        sent = sent.ravel()
        copied = copied.ravel()
    if copied.shape != sent.shape:
        raise DataError(
            f"{name} has shape {sent.shape} in {input_rows.path} but {copied.shape} in "
            f"{readout_rows.path}."
        )
    close = np.isclose(
        sent, copied, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE, equal_nan=True
    )
    differs = ~close.reshape(len(sent), -1).all(axis=1)
    if differs.any():
        row = int(np.argmax(differs))
        raise DataError(
            f"{name} is {sent[row]} in {input_rows.path} and {copied[row]} in {readout_rows.path} "
            f"at row {row + 1}, the first of {differs.sum()} that differ: the readouts are shifted "
            "or of another run."
        )


def _combine(input_rows: RowsOfFile, readout_rows: RowsOfFile) -> RowsOfFile:
    """Take what concerns the inputs from the first file, and the rest from the second."""
    rows = RowsOfFile(readout_rows.path, input_rows.u, readout_rows.x)
    rows.index = readout_rows.index if input_rows.index is None else input_rows.index
    rows.time = input_rows.time if readout_rows.time is None else readout_rows.time
    rows.input_names = input_rows.input_names or readout_rows.input_names
    rows.input_unit = input_rows.input_unit or readout_rows.input_unit
    rows.channel = readout_rows.channel
    rows.readout_unit = readout_rows.readout_unit
    rows.metadata = input_rows.metadata
    rows.read_from = input_rows.read_from + readout_rows.read_from
    rows.checks = input_rows.checks + readout_rows.checks
    plan = input_rows.metadata.get("plan")
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
