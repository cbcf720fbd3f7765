"""The input of each step of a trace: rows during which an input is held become one row.

Inputs may be recorded with noise and by a converter, so that they are not exactly constant within a
step, or multiplied by a mask. What a step's own value leaves has to be as small as the noise.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from ..errors import DataError, ParameterError
from ..typing import Booleans, Floats
from ._holds import MAX_ROWS_FOR_HOLDS, Hold, find_hold
from ._table import Table
from ._trace_steps import TraceSteps

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
# Steps of double precision by which values of this size may differ.
MAX_STEPS_OF_PRECISION = 4
# Steps by which the offset of a mask is looked for, and how many it needs.
N_STEPS_FOR_MASK = 64
MIN_STEPS_FOR_MASK = 4
# Power that values times the mask leave at the right offset, relative to that at others.
MAX_POWER_LEFT_BY_MASK = 0.05
# Steps of a clock that jitters at least, and by which part of its length a step may then differ.
MIN_STEPS_OF_JITTER = 8
MAX_JITTER = 0.25
# Ratio of a normal variable's standard deviation to the median of its size.
DEVIATION_PER_MEDIAN = 1.4826


@dataclass(frozen=True, eq=False)
class FoldedInputs:
    """One row of inputs for each step."""

    values: Floats
    scatter: float = 0.0  # root mean square within steps, relative to the range of the input
    is_mask_unused: bool = False  # inputs were recorded without the mask


def fold_inputs(
    inputs: Table, n_rows: int, n_steps: int, steps: TraceSteps, run_name: str
) -> FoldedInputs:
    """Return the input of each step; refuse inputs that are not held, nor masked as was said.

    Parameters
    ----------
    inputs
        As many rows as the trace, or one for each step.
    n_rows, n_steps
        Of the trace.
    steps
        How rows are cut into steps.
    run_name
        What messages say of the run, such as " of run 2".
    """
    has_row_per_step = inputs.shape[0] != n_rows
    if has_row_per_step or steps.rows_per_step == 1:
        first = 0 if has_row_per_step else steps.offset
        values = inputs.read(first, first + n_steps, on_host=True)
        return FoldedInputs(np.array(values), is_mask_unused=steps.mask is not None)
    if steps.mask is None:
        return _held_inputs(inputs, n_steps, steps, run_name)
    if steps.mask.shape[1] not in (1, inputs.shape[1]):
        raise ParameterError(
            f"`mask` has {steps.mask.shape[1]} columns for {inputs.shape[1]} inputs; give one "
            "column for all inputs, or one for each."
        )
    try:
        return _held_inputs(inputs, n_steps, steps, run_name)
    except DataError:
        # The inputs may have been recorded in front of the mask.
        without_mask = replace(steps, mask=None)
        with suppress(DataError):
            bare = _held_inputs(inputs, n_steps, without_mask, run_name)
            return replace(bare, is_mask_unused=True)
        raise


def hold_of_rows(inputs: Table) -> Hold | None:
    """Return for how many rows the inputs at the beginning of a table are held."""
    n_rows = min(inputs.shape[0], MAX_ROWS_FOR_HOLDS)
    return find_hold(inputs.read(0, n_rows, on_host=True))


# The value of each step.


@dataclass(frozen=True, eq=False)
class _Steps:
    """Some steps of the inputs: the value of each, and what it leaves of the rows."""

    u: Floats  # (steps, rows per step, inputs)
    values: Floats  # (steps, inputs)
    rest: Floats  # (steps, rows per step, inputs)


def _read_steps(inputs: Table, start: int, stop: int, steps: TraceSteps) -> _Steps:
    """Return the steps `start` to `stop`.

    With a mask the value of a step is that of least squares. Without one it is the mean; where all
    rows are equal it is that number to the last digit.
    """
    n_rows = steps.rows_per_step
    first_row = steps.offset + start * n_rows
    last_row = steps.offset + stop * n_rows
    rows = inputs.read(first_row, last_row, on_host=True)
    u = rows.reshape(stop - start, n_rows, inputs.shape[1])
    if steps.mask is not None:
        mask = np.broadcast_to(steps.mask, u.shape[1:])
        values = np.einsum("srq,rq->sq", u, mask) / np.sum(mask**2, axis=0)
        return _Steps(u, values, u - values[:, None, :] * mask)
    first = u[:, :1]
    values = u[:, 0] + np.mean(u - first, axis=1)
    return _Steps(u, values, u - values[:, None, :])


def _held_inputs(inputs: Table, n_steps: int, steps: TraceSteps, run_name: str) -> FoldedInputs:
    """Return the input of each step, read in blocks of steps; refuse those that are not held."""
    tolerance = _tolerance_of(inputs, n_steps, steps)
    steps_per_read = max(ROWS_PER_READ // steps.rows_per_step, 1)
    values = np.empty((n_steps, inputs.shape[1]))
    sum_of_squares = np.zeros(inputs.shape[1])
    for start in range(0, n_steps, steps_per_read):
        stop = min(start + steps_per_read, n_steps)
        block = _read_steps(inputs, start, stop, steps)
        is_off = np.abs(block.rest) > tolerance.sizes
        if is_off.any():
            raise _not_held(inputs, steps, block, start, is_off, run_name)
        values[start:stop] = block.values
        sum_of_squares += np.nansum(block.rest**2, axis=(0, 1))
    scatter = np.sqrt(sum_of_squares / (n_steps * steps.rows_per_step))
    varies = tolerance.ranges > 0
    relative = np.divide(scatter, tolerance.ranges, out=np.zeros_like(scatter), where=varies)
    return FoldedInputs(values, scatter=float(relative.max()))


# How large noise is.


@dataclass(frozen=True, eq=False)
class _Tolerance:
    """By how much each input may differ within a step, and its range."""

    sizes: Floats  # (inputs,)
    ranges: Floats  # (inputs,)


def _tolerance_of(inputs: Table, n_steps: int, steps: TraceSteps) -> _Tolerance:
    """Return by how much inputs may differ within a step, from parts of the trace.

    That is some standard deviations of their noise, or some steps of the converter, up to a quarter
    of the range, but in any case what rounding makes.
    """
    parts = _parts_of(inputs, n_steps, steps)
    u = np.concatenate([part.u for part in parts])
    rest = np.concatenate([part.rest for part in parts])
    values = np.concatenate([part.values for part in parts])
    with np.errstate(invalid="ignore"):
        low = np.nanmin(values, axis=0, initial=np.inf)
        high = np.nanmax(values, axis=0, initial=-np.inf)
    ranges = np.maximum(high - low, 0.0)
    sizes = []
    for column, size_of_range in enumerate(ranges.tolist()):
        size = MAX_DEVIATIONS_IN_STEP * _noise_of(rest[:, :, column])
        if steps.mask is None:
            size = max(size, _noise_of_converter(u[:, :, column], size_of_range))
        size = min(size, MAX_SHARE_OF_RANGE * size_of_range)
        largest = max(abs(float(low[column])), abs(float(high[column])))
        precision = MAX_STEPS_OF_PRECISION * np.finfo(float).eps * largest
        sizes.append(max(size, ROUNDING * size_of_range, precision))
    return _Tolerance(np.array(sizes), ranges)


def _parts_of(inputs: Table, n_steps: int, steps: TraceSteps) -> list[_Steps]:
    """Return some steps from all over the trace."""
    steps_per_part = max(ROWS_PER_PART_FOR_NOISE // steps.rows_per_step, 1)
    starts = np.linspace(0, max(n_steps - steps_per_part, 0), N_PARTS_FOR_NOISE)
    parts = []
    for start in np.unique(starts.round().astype(int)).tolist():
        stop = min(start + steps_per_part, n_steps)
        parts.append(_read_steps(inputs, start, stop, steps))
    return parts


def _noise_of(rest: Floats) -> float:
    """Return the standard deviation of the noise of an input, (steps, rows per step).

    It is that of differences between neighbouring rows. It is zero for inputs that are held
    exactly, also where steps are cut at the wrong rows.
    """
    with np.errstate(invalid="ignore"):
        differences = np.abs(np.diff(rest, axis=1))
    finite = differences[np.isfinite(differences)]
    if not len(finite):
        return 0.0
    return DEVIATION_PER_MEDIAN / np.sqrt(2) * float(np.median(finite))


def _noise_of_converter(column: Floats, size_of_range: float) -> float:
    """Return a few steps of the converter that recorded an input, if it has many levels."""
    levels = np.unique(column[np.isfinite(column)])
    if len(levels) < 2:
        return 0.0
    step = float(np.diff(levels).min())
    has_many_levels = size_of_range > MIN_LEVELS_OF_CONVERTER * step
    return MAX_CONVERTER_STEPS * step if has_many_levels else 0.0


# Why inputs are refused, and what to do.


def _not_held(
    inputs: Table,
    steps: TraceSteps,
    block: _Steps,
    first_step: int,
    is_off: Booleans,
    run_name: str,
) -> DataError:
    """Return the error about the first step that is not constant, nor masked as said.

    Parameters
    ----------
    inputs, steps
        The inputs, and how they were to be cut.
    block, first_step
        The steps that were read, and the number of the first of them.
    is_off
        Which of their rows are off, (steps, rows per step, inputs).
    run_name
        What the message says of the run.
    """
    step = int(np.argmax(is_off.any(axis=(1, 2))))
    column = int(np.argmax(is_off[step].any(axis=0)))
    first_row = steps.offset + (first_step + step) * steps.rows_per_step
    name = f"u{run_name}"
    if steps.mask is None:
        sentence = _where_it_changes(inputs, steps, block.u[step, :, column], first_row, column)
    else:
        row = int(np.nanargmax(np.abs(block.rest[step, :, column])))
        cell = inputs.describe_cell(first_row + row, column)
        sentence = (
            f"is not one value times `mask` in the step that begins at row {first_row}: it is "
            f"{block.u[step, row, column]:.6g} at {cell}"
        )
        offset = _offset_of_mask(inputs, steps)
        if offset is not None:
            return DataError(
                f"{name} {sentence}; it is so from row {offset} on: give `offset={offset}`."
            )
    return DataError(f"{name} {sentence}; {_remedy(inputs, steps)}.")


def _where_it_changes(
    inputs: Table, steps: TraceSteps, u: Floats, first_row: int, column: int
) -> str:
    """Return in words where an input (rows per step,) changes most within a step."""
    row = int(np.nanargmax(np.abs(np.diff(u)))) + 1
    return (
        f"changes within a step of {steps.rows_per_step} rows: {u[row]:.6g} at "
        f"{inputs.describe_cell(first_row + row, column)}, after {u[row - 1]:.6g}, in the step "
        f"that begins at row {first_row}"
    )


def _remedy(inputs: Table, steps: TraceSteps) -> str:
    """Return what to do with inputs that are not held as was said."""
    hold = hold_of_rows(inputs)
    wanted = (steps.rows_per_step, steps.offset % steps.rows_per_step)
    lengths = _lengths_of_steps(inputs, steps.rows_per_step) if hold is None else None
    if lengths is not None:
        shortest, longest = lengths
        return (
            f"it is held for {shortest} to {longest} rows at a time, so steps have no common "
            f"length: give one row of x for each input, such as the first {shortest} rows of its "
            "step, and u with one row for each step"
        )
    if hold is None or (hold.rows_per_step, hold.offset) == wanted:
        return (
            "give `offset`, the rows before the first step, or `mask`, the factors within each "
            "step, or u as it was sent, with one row for each step"
        )
    and_offset = f", `offset={hold.offset}`" if hold.offset else ""
    return (
        f"it is held for {hold.rows_per_step} rows at a time, {from_row(hold.offset)}: give "
        f"`rows_per_step={hold.rows_per_step}`{and_offset}"
    )


def _lengths_of_steps(inputs: Table, rows_per_step: int) -> tuple[int, int] | None:
    """Return the lengths of the shortest and the longest step of a clock that jitters.

    None where inputs are not held, exactly, for about as many rows as was said.
    """
    u = inputs.read(0, min(inputs.shape[0], MAX_ROWS_FOR_HOLDS), on_host=True)
    changes = np.flatnonzero(np.any(np.diff(u, axis=0) != 0, axis=1))
    if len(changes) < MIN_STEPS_OF_JITTER:
        return None
    lengths = np.diff(changes)
    shortest, longest = int(lengths.min()), int(lengths.max())
    deviation = MAX_JITTER * rows_per_step
    if rows_per_step - shortest > deviation or longest - rows_per_step > deviation:
        return None
    return (shortest, longest) if shortest < longest else None


def from_row(offset: int) -> str:
    """Return in words from which row on steps are taken."""
    return f"from row {offset} on" if offset else "from the first row on"


def _offset_of_mask(inputs: Table, steps: TraceSteps) -> int | None:
    """Return the offset at which inputs are values times the mask; None where there is none."""
    n_rows = steps.rows_per_step
    n_steps = min(N_STEPS_FOR_MASK, inputs.shape[0] // n_rows - 1)
    if n_steps < MIN_STEPS_FOR_MASK:
        return None
    power_left = []
    for offset in range(n_rows):
        block = _read_steps(inputs, 0, n_steps, replace(steps, offset=offset))
        power_left.append(float(np.sum(block.rest**2)))
    best = int(np.argmin(power_left))
    is_clear = power_left[best] < MAX_POWER_LEFT_BY_MASK * float(np.median(power_left))
    return best if is_clear else None
