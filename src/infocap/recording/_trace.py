"""fold_trace and find_steps: recordings whose inputs are held while a trace goes on."""

from typing import Any

import numpy as np
import scipy

from .._validation import answers_unknown_parameters, require_whole_number
from ..errors import DataError, ParameterError
from ..samples import (
    FoldedTrace,
    JoinedRows,
    LabelledRows,
    Table,
    TraceSteps,
    as_columns,
    fold,
    hold_of_rows,
    is_of_several_runs,
)
from ..typing import ArrayLike, Floats
from ._recording import Recording

# Rows of a trace from which its offset is found: thousands of steps tell it.
MAX_ROWS_FOR_OFFSET = 1 << 20
# Steps of the trace among which its first one is looked for: nobody waits longer for a trigger.
MAX_OFFSET_IN_STEPS = 4
# Powers of the inputs by which the values at one row of each step are fitted, and how many earlier
# inputs are fitted first.
MAX_POWER = 3
N_EARLIER_INPUTS = 3
# Steps that such a fit needs for each of its functions.
MIN_STEPS_PER_FUNCTION = 5
# Probability that chance finds an offset.
FALSE_ALARM_OF_OFFSET = 1e-6
# Share of its variance below which what a fit leaves of a channel is rounding.
SMALLEST_SHARE_LEFT = 1e-12


@answers_unknown_parameters
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
        checks=(*fields.pop("checks", ()), folded.note),
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


@answers_unknown_parameters
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
    if is_of_several_runs(u if x is None else x):
        u = u[0]
        x = None if x is None else x[0]
    inputs = Table(as_columns(u), "u")
    n_inputs = inputs.shape[0]
    n_rows = n_inputs if x is None else len(x)
    if n_rows != n_inputs:
        if rows_per_step is None:
            rows_per_step = n_rows // n_inputs
        rows_per_step = require_whole_number("rows_per_step", rows_per_step, 2)
        return TraceSteps(rows_per_step, _offset_of_trace(inputs, x, rows_per_step))
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


def _offset_of_trace(inputs: Table, x: ArrayLike, rows_per_step: int) -> int:
    """Return the first row of the trace that depends on the input of the first step.

    A device cannot know an input before it comes. So the first row of every step at which the trace
    depends on its input, beyond what earlier inputs tell, is the row in which steps begin.
    """
    trace = Table(as_columns(x), "x", complex_as="split")
    n_rows = min(trace.shape[0], MAX_ROWS_FOR_OFFSET)
    values = trace.read(0, n_rows, on_host=True)
    # All steps but the last are complete, whatever the offset is.
    max_offset = trace.shape[0] - (inputs.shape[0] - 1) * rows_per_step
    max_offset = min(max_offset, MAX_OFFSET_IN_STEPS * rows_per_step)
    n_steps = min(inputs.shape[0], (n_rows - max(max_offset, 0)) // rows_per_step)
    n_functions = MAX_POWER * inputs.shape[1]
    n_nuisance = 1 + N_EARLIER_INPUTS * n_functions
    if max_offset < 0 or n_steps < MIN_STEPS_PER_FUNCTION * (n_nuisance + n_functions):
        raise DataError(
            f"u has {inputs.shape[0]} rows and x has {trace.shape[0]}: too few steps of "
            f"{rows_per_step} rows to find the offset; give `offset`."
        )
    powers = _powers(inputs.read(0, n_steps, on_host=True))
    earlier = [
        powers[N_EARLIER_INPUTS - lag : n_steps - lag] for lag in range(1, 1 + N_EARLIER_INPUTS)
    ]
    functions = powers[N_EARLIER_INPUTS:]
    design = np.hstack([np.ones((len(functions), 1)), *earlier, functions])
    orthonormal = np.linalg.qr(design)[0]
    degrees_of_freedom = len(functions) - design.shape[1]
    n_tests = (max_offset + 1) * trace.shape[1]
    for offset in range(max_offset + 1):
        rows = offset + rows_per_step * np.arange(N_EARLIER_INPUTS, n_steps)
        at_offset = values[rows] - values[rows].mean(axis=0)
        coefficients = orthonormal.T @ at_offset
        explained = np.sum(coefficients[-n_functions:] ** 2, axis=0) / n_functions
        left = np.sum(at_offset**2, axis=0) - np.sum(coefficients**2, axis=0)
        variance = np.maximum(left, SMALLEST_SHARE_LEFT * np.sum(at_offset**2, axis=0))
        ratio = degrees_of_freedom * explained / np.where(variance > 0, variance, np.inf)
        p_values = scipy.special.fdtrc(n_functions, degrees_of_freedom, ratio)
        if np.min(p_values) * n_tests < FALSE_ALARM_OF_OFFSET:
            return offset
    raise DataError(
        f"x follows u from none of its first {max_offset + 1} rows on; check that inputs and trace "
        "belong together, and give `offset`."
    )


def _powers(u: Floats) -> Floats:
    """Return the first powers of inputs, scaled to a range of 1: (steps, powers times inputs)."""
    scaled = u - u.mean(axis=0)
    scaled = scaled / np.maximum(np.abs(scaled).max(axis=0), np.finfo(float).tiny)
    return np.hstack([scaled**power for power in range(1, MAX_POWER + 1)])
