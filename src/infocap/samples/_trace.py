"""Time-multiplexed traces: rows during which one input is held become one row of virtual nodes.

A delay reservoir gives one trace. While an input is held, every row of the trace is another virtual
node; folded, one input is one row, whose channels are all nodes of all channels of the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import array_namespace, is_on_device
from .._formatting import counted
from .._validation import require_numbers, require_whole_number
from ..errors import Check, DataError, ParameterError
from ..typing import ArrayLike, Floats, Integers
from ._first_response import find_first_response
from ._holds import MAX_ROWS_FOR_HOLDS, Hold, find_hold
from ._runs import is_of_several_runs
from ._sources import FoldedRows, LabelledRows, is_of_pandas
from ._table import Table, as_array, labels_of_columns

# Rows of inputs that are read at a time.
ROWS_PER_READ = 1 << 18
# Parts of a trace, spread evenly over it, that tell the noise and the range of its inputs, and rows
# of each.
N_PARTS_FOR_NOISE = 32
ROWS_PER_PART_FOR_NOISE = 4096
# Standard deviations of the noise of recorded inputs by which they may differ within a step.
MAX_DEVIATIONS_IN_STEP = 8.0
# The same in steps of a converter, and how many levels the range must have for one to be noise.
MAX_CONVERTER_STEPS = 2.5
MIN_LEVELS_OF_CONVERTER = 100
# Part of the range of an input by which it may differ within a step, however large its noise is.
MAX_SHARE_OF_RANGE = 0.25
# Relative rounding of inputs that were written with seven digits.
ROUNDING = 1e-6
# Steps by which the offset of a mask is looked for, and how many it needs.
N_STEPS_FOR_MASK = 64
MIN_STEPS_FOR_MASK = 4
# Power that values times the mask leave at the right offset, relative to that at others.
MAX_POWER_LEFT_BY_MASK = 0.05
# Ratio of a normal variable's standard deviation to the median of its size.
DEVIATION_PER_MEDIAN = 1.4826


@dataclass(frozen=True, eq=False)
class TraceSteps:
    """How the rows of a trace are cut into steps of one input each.

    Parameters
    ----------
    rows_per_step
        Rows for which each input is held, n: the number of virtual nodes of each channel.
    offset
        Rows before the first step, such as a trigger delay.
    mask
        The factors by which the input is multiplied within each step, (n,), or (n, inputs) where
        every input has its own; None where there is no mask, or the recorded inputs are without it.

    Examples
    --------
    >>> infocap.find_steps(np.repeat([0.1, 0.7, -0.4, 0.2, 0.9, -0.8, 0.3, 0.5], 24))
    TraceSteps(rows_per_step=24, offset=0)
    """

    rows_per_step: int
    offset: int = 0
    mask: Floats | None = None

    def __post_init__(self) -> None:
        n_rows = require_whole_number("rows_per_step", self.rows_per_step, 1)
        object.__setattr__(self, "rows_per_step", n_rows)
        object.__setattr__(self, "offset", require_whole_number("offset", self.offset, 0))
        if self.mask is not None:
            object.__setattr__(self, "mask", _as_mask(self.mask, n_rows))

    def __repr__(self) -> str:
        mask = "" if self.mask is None else ", mask=..."
        return f"TraceSteps(rows_per_step={self.rows_per_step}, offset={self.offset}{mask})"

    @classmethod
    def wanted(
        cls, rows_per_step: int | None, offset: int = 0, mask: ArrayLike | None = None
    ) -> TraceSteps | None:
        """Return the steps that keyword arguments ask for; None where rows are steps already."""
        if rows_per_step is not None:
            return cls(rows_per_step, offset, mask)
        for name, is_given in (("offset", offset != 0), ("mask", mask is not None)):
            if is_given:
                raise ParameterError(f"`{name}` is for traces; give `rows_per_step`, too.")
        return None

    def as_dict(self) -> dict[str, int]:
        """Return the steps as plain data, for the metadata of a recording."""
        return {"rows_per_step": self.rows_per_step, "offset": self.offset}

    def first_rows(self, n_steps: int) -> Integers:
        """Return the row of the trace in which each step begins."""
        return self.offset + self.rows_per_step * np.arange(n_steps)


def _as_mask(mask: ArrayLike, rows_per_step: int) -> Floats:
    """Return a mask as (rows per step, 1 or inputs); refuse other lengths, and zeros throughout."""
    try:
        values = require_numbers("mask", mask, finite=False)
    except (TypeError, ValueError):
        raise ParameterError(f"`mask={mask!r:.60}` must be numbers.") from None
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or len(values) != rows_per_step:
        raise ParameterError(
            f"`mask` has shape {np.shape(mask)}; give one factor for each of the {rows_per_step} "
            "rows of a step."
        )
    if not np.isfinite(values).all() or not np.any(values != 0, axis=0).all():
        raise ParameterError(
            "`mask` must be finite, and other than zero somewhere in each column; give the factors "
            "that were sent."
        )
    return values


@dataclass(frozen=True, eq=False)
class FoldedTrace:
    """A trace with one row per input: `u` (steps, inputs) and `x` (steps, nodes times channels).

    Of several runs both are lists. Readouts that lie in a file stay there.
    """

    u: Any
    x: Any
    repeats: Any
    steps: TraceSteps
    n_steps: list[int]  # of each run
    n_rows: list[int]  # of the trace of each run
    node_names: list[str]  # of the channels of `x`
    checks: tuple[Check, ...]  # a note that says what was done, perhaps with a warning

    @property
    def labelled_x(self) -> Any:
        """The readouts with the names of their channels, where they are of one run on the host."""
        if isinstance(self.x, list) or is_on_device(self.x):
            return self.x
        return LabelledRows(self.x, self.node_names)

    def one_per_step(self, name: str, values: ArrayLike | None) -> ArrayLike | None:
        """Return the values that belong to the steps of a single run.

        Of one value for each row of the trace that is the value of the first row of each step; one
        value for each step is right already.
        """
        if values is None:
            return None
        values = np.asarray(values)
        n_steps = self.n_steps[0]
        if values.shape[:1] == (n_steps,):
            return values
        if values.shape[:1] == (self.n_rows[0],):
            return values[self.steps.first_rows(n_steps)]
        raise DataError(
            f"{name} has shape {values.shape}; give one value for each of {n_steps} steps, or for "
            f"each of {self.n_rows[0]} rows of the trace."
        )


def fold(
    u: ArrayLike,
    x: ArrayLike,
    steps: TraceSteps,
    *,
    repeats: ArrayLike | None = None,
    channel: Sequence[str] = (),
) -> FoldedTrace:
    """Fold a trace, or the traces of several runs, into one row per input.

    Parameters
    ----------
    u
        Inputs with as many rows as the trace, or one row for each step; of a single input they may
        be in one dimension, as the trace may be.
    x
        The trace (rows, channels); lists of inputs and traces are several runs.
    steps
        How rows are cut into steps.
    repeats
        The trace of a second run with the same inputs, in the shape of x.
    channel
        Names of the channels of the trace, where x has none.
    """
    if not is_of_several_traces(x):
        folded = _fold_run(u, x, steps, repeats, channel, "")
        return _joined([folded], steps)
    sources = [u, x] if repeats is None else [u, x, repeats]
    lengths = {len(source) for source in sources}
    if len(lengths) > 1:
        raise DataError(
            f"x has {len(x)} runs and u has {len(u)}; give inputs and a trace for each run."
        )
    repeats_of_runs = [None] * len(x) if repeats is None else repeats
    runs = []
    for number, (inputs, trace, second) in enumerate(zip(u, x, repeats_of_runs, strict=True), 1):
        runs.append(_fold_run(inputs, trace, steps, second, channel, f" of run {number}"))
    whole = _joined(runs, steps)
    return replace(
        whole,
        u=[run.u for run in runs],
        x=[run.x for run in runs],
        repeats=None if repeats is None else [run.repeats for run in runs],
    )


@dataclass(frozen=True, eq=False)
class _FoldedRun:
    """One run, folded, and what has to be said about it."""

    u: Any
    x: Any
    repeats: Any
    n_rows: int  # of the trace
    n_steps: int
    n_left_out: int  # rows of an incomplete step at the end
    scatter: float  # root mean square within steps, relative to the range of the input
    is_mask_unused: bool
    node_names: list[str]
    first_response: int | None = None  # row of the trace, where inputs had one row for each step


def _fold_run(
    u: ArrayLike,
    x: ArrayLike,
    steps: TraceSteps,
    repeats: ArrayLike | None,
    channel: Sequence[str],
    run_name: str,
) -> _FoldedRun:
    inputs = Table(as_columns(u, "u"), "u")
    trace = _Trace.of(x, "x", channel)
    n_steps = _count_steps(inputs.shape[0], trace.n_rows, steps, run_name)
    folded_inputs = _fold_inputs(inputs, trace.n_rows, n_steps, steps, run_name)
    second = None
    if repeats is not None:
        second_trace = _Trace.of(repeats, "repeats", channel)
        if second_trace.n_rows != trace.n_rows or second_trace.n_channels != trace.n_channels:
            raise DataError(
                f"repeats{run_name} has {second_trace.n_rows} rows and {second_trace.n_channels} "
                f"channels, and x has {trace.n_rows} and {trace.n_channels}; give a second trace "
                "of the same inputs."
            )
        second = second_trace.folded(steps, n_steps)
    first_response = None
    if inputs.shape[0] != trace.n_rows:
        slack = trace.n_rows - n_steps * steps.rows_per_step
        table = Table(as_columns(trace.source, "x"), "x", complex_as="split")
        response = find_first_response(folded_inputs.values, table, steps.rows_per_step, slack)
        first_response = response.row
    values: Any = folded_inputs.values
    are_named = inputs.column_names != [str(k) for k in range(inputs.shape[1])]
    if are_named:
        values = LabelledRows(values, inputs.column_names)
    last_row = steps.offset + n_steps * steps.rows_per_step
    return _FoldedRun(
        u=values,
        x=trace.folded(steps, n_steps),
        repeats=second,
        n_rows=trace.n_rows,
        n_steps=n_steps,
        n_left_out=trace.n_rows - last_row,
        scatter=folded_inputs.scatter,
        is_mask_unused=folded_inputs.is_mask_unused,
        node_names=trace.node_names(steps.rows_per_step),
        first_response=first_response,
    )


def is_of_several_traces(x: Any) -> bool:
    """Return whether traces are of several runs; each may be an array in one dimension."""
    if isinstance(x, list | tuple) and x and hasattr(x[0], "shape"):
        return len(x[0].shape) in (1, 2)
    return is_of_several_runs(x)


def as_columns(values: ArrayLike, name: str) -> Any:
    """Return a sequence in one dimension as one column; what is in a file stays there."""
    if not hasattr(values, "shape"):
        values = as_array(values, name)
    if len(values.shape) != 1:
        return values
    if is_of_pandas(values):
        values = values.to_numpy()
    if isinstance(values, np.ndarray) or is_on_device(values):
        return values[:, None]
    return FoldedRows(values, rows_per_step=1, offset=0, n_steps=values.shape[0])


# The trace.


@dataclass(frozen=True, eq=False)
class _Trace:
    """The rows of a trace, which are read when they are needed."""

    source: Any
    n_rows: int
    n_channels: int
    names: list[str]  # empty where channels have no names

    @classmethod
    def of(cls, x: ArrayLike, name: str, channel: Sequence[str]) -> _Trace:
        if not hasattr(x, "shape"):
            x = as_array(x, name)
        names = list(channel)
        if not names and len(x.shape) == 2:
            labels = labels_of_columns(x)
            are_numbers = labels == [str(k) for k in range(x.shape[1])]
            names = [] if are_numbers else labels
        source = x.source if isinstance(x, LabelledRows) else x
        if is_of_pandas(source):
            source = source.to_numpy()
        if len(source.shape) not in (1, 2) or 0 in source.shape:
            raise DataError(
                f"{name} has shape {tuple(source.shape)}; give a trace, (rows,) or "
                "(rows, channels)."
            )
        n_channels = int(source.shape[1]) if len(source.shape) == 2 else 1
        return cls(source, int(source.shape[0]), n_channels, names)

    def folded(self, steps: TraceSteps, n_steps: int) -> Any:
        """Return the rows of all steps, one row each.

        Arrays are reshaped, which copies nothing where their rows lie one after the other; what
        lies in a file stays there.
        """
        rows_per_step = steps.rows_per_step
        if isinstance(self.source, np.ndarray) or is_on_device(self.source):
            stop = steps.offset + n_steps * rows_per_step
            shape = (n_steps, rows_per_step * self.n_channels)
            rows = self.source[steps.offset : stop, ...]
            return array_namespace(rows).reshape(rows, shape)
        return FoldedRows(self.source, rows_per_step, steps.offset, n_steps)

    def node_names(self, rows_per_step: int) -> list[str]:
        """Return names such as "x[3] at node 7", all channels of a node one after the other."""
        names = self.names or [f"x[{k}]" for k in range(self.n_channels)]
        if not self.names and self.n_channels == 1:
            return [f"node {node}" for node in range(rows_per_step)]
        return [f"{name} at node {node}" for node in range(rows_per_step) for name in names]


def _count_steps(n_inputs: int, n_rows: int, steps: TraceSteps, run_name: str) -> int:
    """Return how many steps a trace has; refuse inputs that belong to another number of them."""
    n_complete = (n_rows - steps.offset) // steps.rows_per_step
    if n_complete < 1:
        raise DataError(
            f"x{run_name} has {n_rows} rows, no whole step of {steps.rows_per_step} rows from row "
            f"{steps.offset} on; lower `rows_per_step` or `offset`, or give the trace, one row "
            "after the other."
        )
    if n_inputs == n_rows:
        return n_complete
    # The inputs have one row for each step. The last step may be cut short.
    if n_inputs in (n_complete, n_complete + 1):
        return n_complete
    fitting = n_rows // n_inputs
    remedy = "give inputs with as many rows as the trace, or one row for each step"
    if fitting > 1 and fitting != steps.rows_per_step:
        remedy = f"with {n_inputs} inputs, `rows_per_step={fitting}` fits; or {remedy}"
    raise DataError(
        f"u{run_name} has {n_inputs} rows, and x{run_name} has {n_rows}, which are {n_complete} "
        f"steps of {steps.rows_per_step} rows from row {steps.offset} on; {remedy}."
    )


# The inputs.


@dataclass(frozen=True, eq=False)
class _FoldedInputs:
    """One row of inputs for each step."""

    values: Floats
    scatter: float = 0.0
    is_mask_unused: bool = False


@dataclass(frozen=True, eq=False)
class _Tolerance:
    """By how much each input may differ within a step, and its range."""

    sizes: Floats  # (inputs,)
    ranges: Floats  # (inputs,)


def _fold_inputs(
    inputs: Table, n_rows: int, n_steps: int, steps: TraceSteps, run_name: str
) -> _FoldedInputs:
    """Return the input of each step; refuse inputs that are not held, nor masked as was said."""
    if inputs.shape[0] != n_rows or steps.rows_per_step == 1:
        first = 0 if inputs.shape[0] != n_rows else steps.offset
        values = inputs.read(first, first + n_steps, on_host=True)
        return _FoldedInputs(np.array(values), is_mask_unused=steps.mask is not None)
    if steps.mask is not None and steps.mask.shape[1] not in (1, inputs.shape[1]):
        raise ParameterError(
            f"`mask` has {steps.mask.shape[1]} columns for {inputs.shape[1]} inputs; give one "
            "column for all inputs, or one for each."
        )
    try:
        return _held_values(inputs, n_steps, steps, run_name)
    except DataError:
        if steps.mask is None:
            raise
        with suppress(DataError):
            bare = _held_values(inputs, n_steps, replace(steps, mask=None), run_name)
            return replace(bare, is_mask_unused=True)
        raise


def _values_of_steps(u: Floats, mask: Floats | None) -> tuple[Floats, Floats]:
    """Return the value of each step, (steps, inputs), and what it leaves, (steps, rows, inputs).

    With a mask the value is that of least squares. Without one it is the mean; where all rows are
    equal it is that number to the last digit.
    """
    if mask is not None:
        values = np.einsum("srq,rq->sq", u, np.broadcast_to(mask, u.shape[1:]))
        values = values / np.sum(mask**2, axis=0)
        return values, u - values[:, None, :] * mask
    first = u[:, :1]
    values = u[:, 0] + np.mean(u - first, axis=1)
    return values, u - values[:, None, :]


def _read_steps(inputs: Table, start: int, stop: int, steps: TraceSteps) -> Floats:
    """Return the inputs of the steps `start` to `stop`: (steps, rows per step, inputs)."""
    first = steps.offset + start * steps.rows_per_step
    last = steps.offset + stop * steps.rows_per_step
    rows = inputs.read(first, last, on_host=True)
    return rows.reshape(stop - start, steps.rows_per_step, inputs.shape[1])


def _tolerance_of(inputs: Table, n_steps: int, steps: TraceSteps) -> _Tolerance:
    """Return by how much inputs may differ within a step, from parts of the trace.

    The noise is that of differences between neighbouring rows. It is zero for inputs that are held
    exactly, also where steps are cut at the wrong rows.
    """
    steps_per_part = max(ROWS_PER_PART_FOR_NOISE // steps.rows_per_step, 1)
    starts = np.linspace(0, max(n_steps - steps_per_part, 0), N_PARTS_FOR_NOISE)
    parts = []
    for start in np.unique(starts.round().astype(int)).tolist():
        stop = min(start + steps_per_part, n_steps)
        parts.append(_read_steps(inputs, start, stop, steps))
    u = np.concatenate(parts)
    values, rest = _values_of_steps(u, steps.mask)
    with np.errstate(invalid="ignore"):
        differences = np.abs(np.diff(rest, axis=1)).reshape(-1, inputs.shape[1])
        low = np.nanmin(values, axis=0, initial=np.inf)
        high = np.nanmax(values, axis=0, initial=-np.inf)
    ranges = np.maximum(high - low, 0.0)
    sizes = []
    for column, size_of_range in enumerate(ranges.tolist()):
        finite = differences[np.isfinite(differences[:, column]), column]
        median = float(np.median(finite)) if len(finite) else 0.0
        noise = DEVIATION_PER_MEDIAN / np.sqrt(2) * median
        size = MAX_DEVIATIONS_IN_STEP * noise
        if steps.mask is None:
            size = max(size, _noise_of_converter(u[:, :, column], size_of_range))
        size = min(size, MAX_SHARE_OF_RANGE * size_of_range)
        largest = max(abs(float(low[column])), abs(float(high[column])))
        sizes.append(max(size, ROUNDING * size_of_range, 4 * np.finfo(float).eps * largest))
    return _Tolerance(np.array(sizes), ranges)


def _noise_of_converter(column: Floats, size_of_range: float) -> float:
    """Return a few steps of the converter that recorded an input, if it has many levels."""
    levels = np.unique(column[np.isfinite(column)])
    if len(levels) < 2:
        return 0.0
    step = float(np.diff(levels).min())
    has_many_levels = size_of_range > MIN_LEVELS_OF_CONVERTER * step
    return MAX_CONVERTER_STEPS * step if has_many_levels else 0.0


def _held_values(inputs: Table, n_steps: int, steps: TraceSteps, run_name: str) -> _FoldedInputs:
    """Return the input of each step, read in blocks of steps; refuse those that are not held."""
    tolerance = _tolerance_of(inputs, n_steps, steps)
    steps_per_read = max(ROWS_PER_READ // steps.rows_per_step, 1)
    values = np.empty((n_steps, inputs.shape[1]))
    sum_of_squares = np.zeros(inputs.shape[1])
    for start in range(0, n_steps, steps_per_read):
        stop = min(start + steps_per_read, n_steps)
        u = _read_steps(inputs, start, stop, steps)
        values[start:stop], rest = _values_of_steps(u, steps.mask)
        is_off = np.abs(rest) > tolerance.sizes
        if is_off.any():
            step = int(np.argmax(is_off.any(axis=(1, 2))))
            column = int(np.argmax(is_off[step].any(axis=0)))
            raise _not_held(inputs, steps, u[step], start + step, column, run_name)
        sum_of_squares += np.nansum(rest**2, axis=(0, 1))
    scatter = np.sqrt(sum_of_squares / (n_steps * steps.rows_per_step))
    relative = np.divide(
        scatter, tolerance.ranges, out=np.zeros_like(scatter), where=tolerance.ranges > 0
    )
    return _FoldedInputs(values, scatter=float(relative.max()))


def _not_held(
    inputs: Table, steps: TraceSteps, u: Floats, step: int, column: int, run_name: str
) -> DataError:
    """Return the error about the first step whose inputs are not constant, nor masked as said."""
    n_rows = steps.rows_per_step
    first = steps.offset + step * n_rows
    name = f"u{run_name}"
    if steps.mask is None:
        row_in_step = int(np.nanargmax(np.abs(np.diff(u[:, column])))) + 1
        row = first + row_in_step
        found = (
            f"{name} changes within a step of {n_rows} rows: {u[row_in_step, column]:.6g} at "
            f"{inputs.describe_cell(row, column)}, after {u[row_in_step - 1, column]:.6g}, in the "
            f"step that begins at row {first}"
        )
    else:
        _, rest = _values_of_steps(u[None], steps.mask)
        row = first + int(np.nanargmax(np.abs(rest[0, :, column])))
        found = (
            f"{name} is not one value times `mask` in the step that begins at row {first}: it is "
            f"{u[row - first, column]:.6g} at {inputs.describe_cell(row, column)}"
        )
    if steps.mask is not None:
        offset = _offset_of_mask(inputs, steps)
        if offset is not None:
            return DataError(f"{found}; it is so from row {offset} on: give `offset={offset}`.")
    hold = hold_of_rows(inputs)
    is_other = hold is not None and (hold.rows_per_step, hold.offset) != (
        n_rows,
        steps.offset % n_rows,
    )
    if hold is not None and is_other:
        and_offset = f", `offset={hold.offset}`" if hold.offset else ""
        return DataError(
            f"{found}; it is held for {hold.rows_per_step} rows at a time, "
            f"{_from_row(hold.offset)}: give `rows_per_step={hold.rows_per_step}`{and_offset}."
        )
    return DataError(
        f"{found}; give `offset`, the rows before the first step, or `mask`, the factors within "
        "each step, or u as it was sent, with one row for each step."
    )


def _offset_of_mask(inputs: Table, steps: TraceSteps) -> int | None:
    """Return the offset at which inputs are values times the mask; None where there is none."""
    n_rows = steps.rows_per_step
    n_steps = min(N_STEPS_FOR_MASK, inputs.shape[0] // n_rows - 1)
    if n_steps < MIN_STEPS_FOR_MASK:
        return None
    power_left = []
    for offset in range(n_rows):
        u = _read_steps(inputs, 0, n_steps, replace(steps, offset=offset))
        rest = _values_of_steps(u, steps.mask)[1]
        power_left.append(float(np.sum(rest**2)))
    best = int(np.argmin(power_left))
    is_clear = power_left[best] < MAX_POWER_LEFT_BY_MASK * float(np.median(power_left))
    return best if is_clear else None


def _from_row(offset: int) -> str:
    return f"from row {offset} on" if offset else "from the first row on"


def hold_of_rows(inputs: Table) -> Hold | None:
    """Return for how many rows the inputs at the beginning of a table are held."""
    n_rows = min(inputs.shape[0], MAX_ROWS_FOR_HOLDS)
    return find_hold(inputs.read(0, n_rows, on_host=True))


# What was done, in words.


def _joined(runs: list[_FoldedRun], steps: TraceSteps) -> FoldedTrace:
    """Return a folded trace of its runs, with checks that say what was done."""
    first = runs[0]
    node_names = {tuple(run.node_names) for run in runs}
    if len(node_names) > 1:
        widths = [len(run.node_names) // steps.rows_per_step for run in runs]
        raise DataError(f"x has {widths} channels in its runs; give the same in every run.")
    return FoldedTrace(
        u=first.u,
        x=first.x,
        repeats=first.repeats,
        steps=steps,
        n_steps=[run.n_steps for run in runs],
        n_rows=[run.n_rows for run in runs],
        node_names=first.node_names,
        checks=(_note(runs, steps), *_other_offset(runs, steps)),
    )


def _note(runs: list[_FoldedRun], steps: TraceSteps) -> Check:
    """Return what was made of the trace, and which rows were left out."""
    n_steps = sum(run.n_steps for run in runs)
    channels = counted(len(runs[0].node_names) // steps.rows_per_step, "channel")
    return Check(
        f"the trace was folded into steps of {counted(steps.rows_per_step, 'row')}, "
        f"{_from_row(steps.offset)}: {counted(n_steps, 'step')} with "
        f"{counted(steps.rows_per_step, 'virtual node')} of {channels}{_particulars(runs)}.",
        kind="note",
        cause="trace",
        rows_per_step=steps.rows_per_step,
        offset=steps.offset,
        steps=n_steps,
        left_out_rows=sum(run.n_left_out for run in runs),
        scatter=max(run.scatter for run in runs),
    )


def _particulars(runs: list[_FoldedRun]) -> str:
    """Return what was left out, averaged or not used, each after a full stop."""
    text = ""
    n_left_out = sum(run.n_left_out for run in runs)
    if n_left_out:
        text += f". {counted(n_left_out, 'row')} at the end, no whole step, were left out"
    scatter = max(run.scatter for run in runs)
    if scatter > ROUNDING:
        text += (
            ". Inputs are means over their steps, in which they scatter by "
            f"{100 * scatter:.2g} % of their range"
        )
    if any(run.is_mask_unused for run in runs):
        text += ". Inputs were recorded without the mask, which was not used"
    return text


def _other_offset(runs: list[_FoldedRun], steps: TraceSteps) -> Iterator[Check]:
    """Yield a check where the trace shows that its steps begin in another row than was said.

    Where it depends on inputs before these begin, that is certain. Where it does so later only, the
    first nodes may not respond, so that this is a note.
    """
    for run in runs:
        row = run.first_response
        if row is None or row == steps.offset:
            continue
        found = (
            f"the trace follows the inputs from row {row} on, and its steps were taken "
            f"{_from_row(steps.offset)}"
        )
        if row < steps.offset:
            yield Check(
                f"{found}; give `offset={row}`.",
                unreliable="steps that begin in another row",
                cause="offset of the trace",
                first_response=row,
            )
        else:
            yield Check(
                f"{found}; give `offset={row}` if steps begin there.",
                kind="note",
                cause="offset of the trace",
                first_response=row,
            )
        return
