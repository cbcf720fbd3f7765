"""fold_trace and find_steps: recordings whose inputs are held while a trace goes on."""

from typing import Any

import numpy as np

from .._validation import checks_arguments, require_whole_number
from ..errors import DataError, ParameterError
from ..samples import (
    FoldedTrace,
    JoinedRows,
    LabelledRows,
    Table,
    TraceSteps,
    as_columns,
    find_first_response,
    fold,
    hold_of_rows,
    is_of_several_traces,
)
from ..typing import ArrayLike
from ._recording import Recording


@checks_arguments
def fold_trace(
    u: ArrayLike | Recording,
    x: ArrayLike | None = None,
    rows_per_step: int | None = None,
    offset: int = 0,
    mask: ArrayLike | None = None,
) -> Recording:
    """Fold a time-multiplexed trace: one row for each input, all its virtual nodes as channels.

    A delay reservoir gives one trace. Each input is held for `rows_per_step` rows, and each of
    these rows is a virtual node, so that K channels become `rows_per_step` times K. `estimate`,
    `explore`, `diagnose` and `read` do the same with their parameter ``rows_per_step``. Nothing is
    copied where rows lie one after the other in memory or in a file.

    Parameters
    ----------
    u
        Inputs, (rows, inputs) or (rows,) with one row for each row of the trace, or one row for
        each step. Inputs that were recorded with noise are averaged over their steps. A `Recording`
        in place of u and x is folded as a whole; its noise repeats and references are left out.
    x
        The trace, (rows, channels) or (rows,). Lists of inputs and traces are several runs.
    rows_per_step
        Rows for which each input is held; `find_steps` proposes it.
    offset
        Rows before the first step, such as a trigger delay.
    mask
        The factors by which the input is multiplied within each step, (rows_per_step,), or one
        column for each input. It is needed only where the recorded inputs are masked.

    Returns
    -------
    Recording
        One row for each step. Its ``checks`` say what was left out or averaged.

    Raises
    ------
    DataError
        Where inputs change within a step: the message names the first row.

    Examples
    --------
    >>> u = np.random.default_rng(1).uniform(-1, 1, 500)
    >>> device = infocap.systems.DelayReservoir(24)
    >>> trace = device(u).reshape(-1)  # what an oscilloscope records: 12,000 values
    >>> infocap.fold_trace(np.repeat(u, 24), trace, rows_per_step=24).readouts.shape
    (500, 24)
    >>> infocap.fold_trace(np.repeat(u, 24), trace, rows_per_step=23)
    Traceback (most recent call last):
    infocap.errors.DataError: u changes within a step of 23 rows: 0.900927 at row 24, column 0, \
after 0.0236432, in the step that begins at row 23; it is held for 24 rows at a time, from the \
first row on: give `rows_per_step=24`.
    """
    if rows_per_step is None:
        raise ParameterError(
            "`rows_per_step=None`: give the number of rows for which each input is held; "
            "infocap.find_steps(u, x) proposes it."
        )
    steps = TraceSteps(rows_per_step, offset, mask)
    if isinstance(u, Recording):
        if x is not None:
            raise ParameterError("a Recording holds its trace; leave x out.")
        return fold_recording(u, steps)
    if x is None:
        raise ParameterError("`x=None`: give inputs and a trace, or one Recording.")
    return recording_of_trace(fold(u, x, steps))


def recording_of_trace(folded: FoldedTrace, **fields: Any) -> Recording:
    """Return a folded trace as a recording, with further fields of it."""
    several_runs = isinstance(folded.x, list)
    inputs = folded.u if several_runs else [folded.u]
    names: tuple[str, ...] = ()
    if isinstance(inputs[0], LabelledRows):
        names = tuple(inputs[0].columns)
        inputs = [one.source for one in inputs]
    metadata: dict[str, Any] = fields.pop("metadata", {}) | {"trace": folded.steps.as_dict()}
    if several_runs:
        metadata["runs"] = [0, *np.cumsum(folded.n_steps)[:-1].tolist()]
    repeats = None
    if folded.repeats is not None:
        repeats = _one_after_the_other(folded.repeats, "repeats")
    return Recording(
        inputs=np.concatenate(inputs),
        readouts=_one_after_the_other(folded.x, "x"),
        repeats=repeats,
        design_index=np.arange(sum(folded.n_steps)),
        channel=tuple(folded.node_names),
        input_names=fields.pop("input_names", ()) or names,
        checks=(*fields.pop("checks", ()), *folded.checks),
        metadata=metadata,
        **fields,
    )


def _one_after_the_other(runs: Any, name: str) -> Any:
    """Return the readouts of all runs as one table, which stays in its file where it lies there."""
    if not isinstance(runs, list):
        return runs
    if len(runs) == 1:
        return runs[0]
    if all(isinstance(run, np.ndarray) for run in runs):
        return np.concatenate(runs)
    return JoinedRows([Table(run, name) for run in runs])


def fold_recording(recording: Recording, steps: TraceSteps) -> Recording:
    """Return a recording of a trace with one row for each step, run by run.

    Times and extra values are those of the first row of each step. Noise repeats and references are
    left out, because they are rows of the trace, too, and nothing says where their steps begin.
    """
    runs = recording.runs
    inputs: Any = recording.inputs
    readouts: Any = recording.readouts
    repeats: Any = recording.repeats
    if len(runs) > 1:
        inputs = [inputs[run] for run in runs]
        readouts = [readouts[run] for run in runs]
        repeats = None if repeats is None else [repeats[run] for run in runs]
    folded = fold(inputs, readouts, steps, repeats=repeats, channel=recording.channel)
    first_rows = np.concatenate(
        [run.start + steps.first_rows(n) for run, n in zip(runs, folded.n_steps, strict=True)]
    )
    return recording_of_trace(
        folded,
        time=_rows_of(recording.time, first_rows),
        extra=_rows_of(recording.extra, first_rows),
        extra_names=recording.extra_names,
        readout_unit=recording.readout_unit,
        input_unit=recording.input_unit,
        input_names=recording.input_names,
        metadata=recording.metadata,
        checks=recording.checks,
    )


def _rows_of(values: ArrayLike | None, rows: Any) -> Any:
    return None if values is None else np.asarray(values)[rows]


@checks_arguments
def find_steps(
    u: ArrayLike, x: ArrayLike | None = None, rows_per_step: int | None = None
) -> TraceSteps:
    """Find for how many rows each input of a trace is held, and where the first step begins.

    Parameters
    ----------
    u
        Inputs with one row for each row of the trace: their changes tell both. Or one row for each
        step: then x is needed.
    x
        The trace. No device knows an input before it comes: the first row of the steps in which the
        trace depends on their inputs, beyond what earlier inputs tell, is where they begin.
    rows_per_step
        Rows for which each input is held, if that is known.

    Returns
    -------
    TraceSteps
        Its ``rows_per_step`` and ``offset`` are for `fold_trace`, `estimate` and the others.

    Raises
    ------
    DataError
        Where the inputs are not held, or the trace does not follow them.

    Examples
    --------
    >>> u = np.random.default_rng(1).uniform(-1, 1, 500)
    >>> trace = infocap.systems.DelayReservoir(24, input_scale=1.0)(u).reshape(-1)
    >>> late = np.concatenate([np.full(7, trace.mean()), trace])  # the trigger came 7 rows early
    >>> infocap.find_steps(u, late)
    TraceSteps(rows_per_step=24, offset=7)
    """
    if is_of_several_traces(u if x is None else x):
        u = u[0]
        x = None if x is None else x[0]
    inputs = Table(as_columns(u, "u"), "u")
    n_inputs = inputs.shape[0]
    trace = None if x is None else Table(as_columns(x, "x"), "x", complex_as="split")
    if trace is not None and trace.shape[0] != n_inputs:
        if rows_per_step is None:
            rows_per_step = max(trace.shape[0] // n_inputs, 1)
        rows_per_step = require_whole_number("rows_per_step", rows_per_step, 1)
        return TraceSteps(rows_per_step, _offset_of_trace(inputs, trace, rows_per_step))
    hold = hold_of_rows(inputs)
    if hold is None:
        raise DataError(
            "u is not held: its changes are not a whole number of rows apart; give "
            "`rows_per_step`, and u as it was sent, with one row for each step."
        )
    if rows_per_step not in (None, hold.rows_per_step):
        raise DataError(
            f"`rows_per_step={rows_per_step}`, but u is held for {hold.rows_per_step} rows at a "
            "time; leave `rows_per_step` out to use that."
        )
    return TraceSteps(hold.rows_per_step, hold.offset)


def _offset_of_trace(inputs: Table, trace: Table, rows_per_step: int) -> int:
    """Return the row of the trace in which the first input begins, as the trace shows it."""
    n_inputs = inputs.shape[0]
    n_rows = trace.shape[0]
    # All steps but the last must be complete.
    max_offset = n_rows - (n_inputs - 1) * rows_per_step
    if max_offset < 0:
        raise DataError(
            f"u has {n_inputs} rows and x has {n_rows}: too few for steps of {rows_per_step} rows; "
            "lower `rows_per_step`, or give the inputs of this trace alone."
        )
    u = inputs.read(0, n_inputs, on_host=True)
    response = find_first_response(u, trace, rows_per_step, max_offset)
    if not response.is_possible:
        raise DataError(
            f"u has {n_inputs} rows, too few to find the offset of steps of {rows_per_step} rows; "
            "give `offset`."
        )
    if response.row is None:
        raise DataError(
            f"x follows u from none of its first {max_offset + 1} rows on; check that inputs and "
            "trace belong together, and give `offset`."
        )
    return response.row
