"""What commands print about a result or a recording."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._formatting import counted, decimals, join_names, with_error
from ...recording import Recording
from ...result import CapacityResult
from ..experiment import Plan

# The longest bar of a table, in characters. It leaves room for the numbers on a line of 80.
MAX_BAR_LENGTH = 30
# A table of more degrees does not fit on a screen, and leaves out those without capacity.
MAX_DEGREES_SHOWN_EMPTY = 24
# Inputs or readouts that are shown one by one; the others share a line, so that all fits on a screen.
MAX_CHANNELS_SHOWN = 8
# Files, and things in them that were left out, that are shown one by one.
MAX_LEFT_OUT_SHOWN = 20
# Names of extra values that are shown.
MAX_EXTRA_NAMES = 4
# Characters of an entry of the metadata; longer ones are cut.
MAX_ENTRY_LENGTH = 60
# Width of the column of names, in characters, where all names are short.
MIN_NAME_WIDTH = 9
# Larger times are taken for seconds since 1970, and these for 1973. Smaller ones count seconds of the run, or its rows.
MIN_SECONDS_SINCE_1970 = 1e8


def summary(result: CapacityResult, n_strongest: int = 10) -> list[str]:
    """Return lines about a result: the total in words, capacity by degree, the strongest functions."""
    return [
        *_total(result),
        *_by_degree(result),
        *_strongest_functions(result, n_strongest),
    ]


def _total(result: CapacityResult) -> list[str]:
    basis = result.basis
    error = result.total_standard_error
    total = result.qualified_total
    interval = ""
    if not result.unreliable and error is None:
        interval = " (no error bar from this method)"
    elif not result.unreliable and error is not None:
        digits = decimals(error)
        low, high = result.total_interval()
        interval = f"; with 95 % confidence between {low:.{digits}f} and {high:.{digits}f}"
    if not total:
        digits = 3 if error is None else decimals(error)
        total = f"{result.total:.{digits}f}"
    lines = [
        f"Total capacity {total} of at most {result.maximum} ({result.readouts_in_words}){interval}",
        f"  {result.n_samples} samples, {len(basis)} {basis.family_name} functions of "
        f"{counted(basis.n_inputs, 'input')} up to degree {basis.max_degree}, method {result.method}",
    ]
    lines += [f"  {sentence}" for sentence in result.for_reservoirs]
    if result.noise_limited_total is not None:
        limit = with_error(result.noise_limited_total, result.noise_limited_standard_error)
        lines.append(
            f"  noise allows about {limit} over all functions, also those outside the basis"
        )
    if result.factors is not None and result.factors.n_factors is not None:
        lines.append(
            f"  factor analysis finds {result.factors.n_factors} independent factors in the readouts"
        )
    return lines


def _by_degree(result: CapacityResult) -> list[str]:
    """Return a table of capacity by degree and number of inputs, with bars."""
    # A function of a sequence is a product of functions of delayed inputs, and has one factor per delay.
    factor = "delay" if result.basis.of_sequences else "input"
    lines = [
        "",
        f"  {'degree':>6}  {'capacity':>8}  {f'1 {factor}':>8}  {f'2 {factor}s':>8}  {'more':>8}",
    ]
    table = result.by_degree()
    capacities = table.sum(axis=1).to_numpy()
    largest = max(float(capacities.max()), 1e-12)
    for degree, capacity, parts in zip(table.index, capacities, table.to_numpy(), strict=True):
        if capacity <= 0 and len(table) > MAX_DEGREES_SHOWN_EMPTY:
            continue
        cells = [f"{part:8.3f}" if part else f"{'.':>8}" for part in parts]
        if degree == 0 and parts[0]:
            cells[0] = "constant"
        bar = "=" * round(MAX_BAR_LENGTH * capacity / largest)
        lines.append(f"  {degree:6d}  {capacity:8.3f}  {'  '.join(cells)}  {bar}".rstrip())
    return lines


def _strongest_functions(result: CapacityResult, n_strongest: int) -> list[str]:
    """Return the largest capacities of all functions but the constant one."""
    capacity = result.capacity
    is_candidate = (result.basis.degrees > 0) & (capacity > 0)
    in_order = np.argsort(-capacity, kind="stable")
    not_zero = in_order[is_candidate[in_order]]
    shown = not_zero[:n_strongest]
    if not len(shown):
        return []
    title = f"  strongest functions, {len(shown)} of {len(not_zero)} that are not zero"
    labels = [result.basis.labels[k] for k in shown]
    width = max(map(len, labels))
    lines = [
        f"    {label:<{width}}  {capacity[k]:.3f}" for label, k in zip(labels, shown, strict=True)
    ]
    if result.standard_error is not None:
        title += " (95 % interval)"
        for position, (low, high) in enumerate(result.interval()[shown]):
            lines[position] += f"  ({low:.3f} to {high:.3f})"
    return ["", title, *lines]


# Recordings.


def describe(recording: Recording) -> list[str]:
    """Return what a recording holds and where it comes from, one line per thing: its role, its name, its range."""
    n_samples, n_inputs = np.shape(recording.inputs)
    n_readouts = np.shape(recording.readouts)[1]
    files = recording.metadata.get("read_from", [])
    lines = [f"{file['file']}: {file['as']}" for file in files[:MAX_LEFT_OUT_SHOWN]]
    lines.append(
        f"Recording of {n_samples} samples, {counted(n_inputs, 'input')}, {counted(n_readouts, 'readout')}"
    )
    return [*lines, *_columns(recording), *_facts(recording, files)]


def _columns(recording: Recording) -> list[str]:
    """Return the range of every input and readout; of many readouts, of the first and of the rest together."""
    inputs = np.asarray(recording.inputs)
    readouts = np.asarray(recording.readouts)
    input_names = recording.input_names or [f"u{k + 1}" for k in range(inputs.shape[1])]
    channels = recording.channel or [f"x{k + 1}" for k in range(readouts.shape[1])]
    rows = [
        *_ranges("input", input_names, inputs, recording.input_unit),
        *_ranges("readout", channels, readouts, recording.readout_unit),
    ]
    width = max(len(name) for _, name, _ in rows)
    return [f"  {role:<9} {name:<{width}}  {text}".rstrip() for role, name, text in rows]


def _ranges(
    role: str, names: Sequence[str], values: np.ndarray, unit: str
) -> list[tuple[str, str, str]]:
    """Return role, name and range of each column, and of all columns that are too many to be shown."""
    rows = []
    for k, name in enumerate(names[:MAX_CHANNELS_SHOWN]):
        rows.append((role, name, f"{_range_of(values[:, k])} {unit}"))
    n_others = len(names) - MAX_CHANNELS_SHOWN
    if n_others > 0:
        others = f"... {names[-1]}, {n_others} more"
        rows.append((role, others, f"{_range_of(values[:, MAX_CHANNELS_SHOWN:])} {unit}"))
    return rows


def _facts(recording: Recording, files: Sequence[dict[str, Any]]) -> list[str]:
    """Return what else is known of a recording: gaps, times, repeats, what was left out, its metadata."""
    facts = [*_measurements(recording, files), *_left_out(files)]
    for name, value in recording.metadata.items():
        if name != "read_from":
            facts.append((name.replace("_", " "), _entry(name, value)))
    width = max([MIN_NAME_WIDTH, *(len(name) for name, _ in facts)])
    return [f"  {name:<{width}} {text}" for name, text in facts]


def _measurements(recording: Recording, files: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return names and texts about the rows that a recording has, or lacks, beside inputs and readouts."""
    facts = []
    finite_inputs = np.isfinite(np.asarray(recording.inputs)).all(axis=1)
    finite_readouts = np.isfinite(np.asarray(recording.readouts)).all(axis=1)
    n_missing = int((~(finite_inputs & finite_readouts)).sum())
    if n_missing:
        text = f"NaN or infinite values in {counted(n_missing, 'sample')}"
        facts.append(("missing", text))
    if recording.time is not None and len(recording.time):
        times = np.asarray(recording.time)
        in_row_order = np.all(np.diff(times) >= 0)
        order = "the order of the rows" if in_row_order else "another order than that of the rows"
        columns = "".join(f"{name}: " for file in files for name in file.get("time", []))
        facts.append(("time", f"{columns}{_range_of(times)}, acquired in {order}"))
    if recording.repeats is not None:
        n_repeated = np.isfinite(recording.repeats).all(axis=1).sum()
        facts.append(("repeats", f"{n_repeated} samples were measured twice"))
    if recording.noise is not None:
        text = f"{len(recording.noise)} measurements of the noise, each at a constant input"
        facts.append(("noise", text))
    if recording.reference is not None:
        text = f"{len(recording.reference)} of the drift reference, each at a constant input"
        facts.append(("reference", text))
    if recording.extra is not None:
        facts.append(("extra", join_names(recording.extra_names, MAX_EXTRA_NAMES)))
    return facts


def _left_out(files: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what the files hold that became no part of the recording, and why."""
    texts = []
    for file in files:
        texts += [f"{name}: {reason}" for name, reason in file.get("left out", {}).items()]
    n_others = len(texts) - MAX_LEFT_OUT_SHOWN
    if n_others > 0:
        texts = [*texts[:MAX_LEFT_OUT_SHOWN], f"{n_others} more"]
    return [("left out", text) for text in texts]


def _entry(name: str, value: Any) -> str:
    """Return an entry of the metadata in one short line; of a plan, what it plans."""
    if name == "plan":
        try:
            return Plan.from_dict(value).in_words()
        except ValueError as problem:
            return f"cannot be used: {problem}"
    text = re.sub(r"[][{}']", "", str(value))
    if len(text) > MAX_ENTRY_LENGTH:
        return text[: MAX_ENTRY_LENGTH - 3] + "..."
    return text


def _range_of(values: np.ndarray) -> str:
    """Return the smallest and the largest value, as dates where they are such times, and whether they count rows."""
    if values.dtype.kind == "c":
        values = np.abs(values)
    if not np.isfinite(values).any():
        return "no numbers"
    smallest = np.nanmin(values)
    largest = np.nanmax(values)
    is_one_column = values.ndim == 1
    if smallest > MIN_SECONDS_SINCE_1970 and is_one_column:
        return f"{_date(smallest)} to {_date(largest)}"
    text = f"{smallest:.5g} to {largest:.5g}"
    if is_one_column and len(values) > 2 and (np.diff(values) == 1).all():
        text += ", counts the rows"
    return text


def _date(seconds_since_1970: float) -> str:
    return str(np.datetime64(int(seconds_since_1970), "s")).replace("T", " ")
