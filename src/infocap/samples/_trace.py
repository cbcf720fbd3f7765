"""Time-multiplexed traces: rows during which one input is held become one row of virtual nodes.

A delay reservoir gives one trace. While an input is held, every row of the trace is another virtual
node; folded, one input is one row, whose channels are all nodes of all channels of the trace.
How rows are cut is in `_trace_steps`, and the input of each step in `_trace_inputs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import array_namespace, is_on_device
from .._formatting import counted
from ..errors import Check, DataError
from ..typing import ArrayLike
from ._first_response import find_first_response
from ._runs import is_of_several_runs
from ._sources import FoldedRows, LabelledRows, is_of_pandas
from ._table import Table, as_array, labels_of_columns
from ._trace_inputs import ROUNDING, FoldedInputs, fold_inputs, from_row
from ._trace_steps import TraceSteps


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


# One run.


@dataclass(frozen=True, eq=False)
class _FoldedRun:
    """One run, folded, and what has to be said about it."""

    u: Any
    x: Any
    repeats: Any
    inputs: FoldedInputs
    n_rows: int  # of the trace
    n_steps: int
    n_left_out: int  # rows of an incomplete step at the end
    node_names: list[str]
    first_response: int | None  # row of the trace, where inputs had one row for each step


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
    folded_inputs = fold_inputs(inputs, trace.n_rows, n_steps, steps, run_name)
    end_of_steps = steps.offset + n_steps * steps.rows_per_step
    return _FoldedRun(
        u=_with_names_of(inputs, folded_inputs),
        x=trace.folded(steps, n_steps),
        repeats=_fold_repeats(repeats, trace, steps, n_steps, channel, run_name),
        inputs=folded_inputs,
        n_rows=trace.n_rows,
        n_steps=n_steps,
        n_left_out=trace.n_rows - end_of_steps,
        node_names=trace.node_names(steps.rows_per_step),
        first_response=_first_response(inputs, trace, steps, folded_inputs),
    )


def _with_names_of(inputs: Table, folded: FoldedInputs) -> Any:
    """Return the inputs of the steps with the names of their columns, if these have names."""
    numbers = [str(k) for k in range(inputs.shape[1])]
    if inputs.column_names == numbers:
        return folded.values
    return LabelledRows(folded.values, inputs.column_names)


def _fold_repeats(
    repeats: ArrayLike | None,
    trace: _Trace,
    steps: TraceSteps,
    n_steps: int,
    channel: Sequence[str],
    run_name: str,
) -> Any:
    """Return the second trace of the same inputs, folded like the first; None without one."""
    if repeats is None:
        return None
    second = _Trace.of(repeats, "repeats", channel)
    if (second.n_rows, second.n_channels) != (trace.n_rows, trace.n_channels):
        raise DataError(
            f"repeats{run_name} has {second.n_rows} rows and {second.n_channels} channels, and x "
            f"has {trace.n_rows} and {trace.n_channels}; give a second trace of the same inputs."
        )
    return second.folded(steps, n_steps)


def _first_response(
    inputs: Table, trace: _Trace, steps: TraceSteps, folded: FoldedInputs
) -> int | None:
    """Return the row in which the trace first depends on its inputs.

    Inputs with as many rows as the trace show themselves where steps begin, so it is None then.
    """
    if inputs.shape[0] == trace.n_rows:
        return None
    table = Table(as_columns(trace.source, "x"), "x", complex_as="split")
    n_rows_of_steps = len(folded.values) * steps.rows_per_step
    slack = trace.n_rows - n_rows_of_steps
    return find_first_response(folded.values, table, steps.rows_per_step, slack).row


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
        f"{from_row(steps.offset)}: {counted(n_steps, 'step')} with "
        f"{counted(steps.rows_per_step, 'virtual node')} of {channels}{_particulars(runs)}.",
        kind="note",
        cause="trace",
        rows_per_step=steps.rows_per_step,
        offset=steps.offset,
        steps=n_steps,
        left_out_rows=sum(run.n_left_out for run in runs),
        scatter=max(run.inputs.scatter for run in runs),
    )


def _particulars(runs: list[_FoldedRun]) -> str:
    """Return what was left out, averaged or not used, each after a full stop."""
    text = ""
    n_left_out = sum(run.n_left_out for run in runs)
    if n_left_out:
        text += f". {counted(n_left_out, 'row')} at the end, no whole step, were left out"
    scatter = max(run.inputs.scatter for run in runs)
    if scatter > ROUNDING:
        text += (
            ". Inputs are means over their steps, in which they scatter by "
            f"{100 * scatter:.2g} % of their range"
        )
    if any(run.inputs.is_mask_unused for run in runs):
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
            f"{from_row(steps.offset)}"
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
