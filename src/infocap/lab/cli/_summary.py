"""What commands print about a result or a recording."""

import re
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._formatting import CANNOT_BE_TOLD, counted, decimals, join_names
from ...errors import DataWarning
from ...recording import Recording
from ...result import Capacity, CapacityResult, untold_degrees
from ..experiment import Plan

# The longest bar of a table, in characters. It leaves room for the numbers on a line of 80.
MAX_BAR_LENGTH = 30
# A table of more degrees does not fit on a screen, and leaves out those without capacity.
MAX_DEGREES_SHOWN_EMPTY = 24
# Inputs or readouts that are shown one by one; the others share a line, so that all fits on a
# screen.
MAX_CHANNELS_SHOWN = 8
# Delays that are shown one by one.
MAX_DELAYS_SHOWN = 8
# Files that are shown one by one.
MAX_FILES_SHOWN = 20
# Things in files that were left out, that are shown one by one.
MAX_LEFT_OUT_SHOWN = 20
# Names of extra values that are shown.
MAX_EXTRA_NAMES = 4
# Characters of an entry of the metadata; longer ones are cut.
MAX_SHOWN_ENTRY_LENGTH = 60
# Width of the column of names, in characters, where all names are short.
MIN_NAME_WIDTH = 9
# Larger times are taken for seconds since 1970, and these for 1973. Smaller ones count seconds of
# the run, or its rows.
MIN_SECONDS_SINCE_1970 = 1e8


def summary(result: CapacityResult, n_strongest: int = 10) -> list[str]:
    """Return lines about a result: its total, capacity by degree, the strongest functions.

    Where no capacity can be had, the check that says why is all there is.
    """
    if result.no_numbers:
        return ["No capacities can be had from these inputs."]
    if result.cannot_be_told:
        return [result.cannot_be_told]
    return [
        *_total(result),
        *_by_degree(result),
        *_by_delay(result),
        *_strongest_functions(result, n_strongest),
    ]


def _total(result: CapacityResult) -> list[str]:
    basis = result.basis
    error = result.total_standard_error
    claim = result.claim(result.total_in_words)
    if error is None:
        claim += "; this method gives no error bar"
    elif not result.unreliable and result.components is None:
        digits = decimals(error)
        low, high = result.total_interval()
        claim += f"; {low:.{digits}f} to {high:.{digits}f} (95 %)"
    lines = [
        f"{claim[:1].upper()}{claim[1:]}".replace("Total ", "Total capacity ", 1),
        f"  {result.n_samples} samples, {len(basis)} {basis.family_name} functions of "
        f"{counted(basis.n_inputs, 'input')} up to degree {basis.max_degree}, "
        f"method {result.method}",
    ]
    lines += [f"  {sentence}" for sentence in (*result.about_law, *result.for_reservoirs)]
    if result.noise_limited_total is not None:
        lines.append(
            f"  noise allows {result.noise_limit_in_words} over all functions, also those outside "
            "the basis"
        )
    if result.factors is not None and result.factors.n_factors is not None:
        lines.append(
            f"  factor analysis finds {result.factors.n_factors} independent factors in the "
            "readouts"
        )
    return lines


def _by_degree(result: CapacityResult) -> list[str]:
    """Return a table of capacity by degree and number of inputs, with bars."""
    # A function of a sequence is a product of functions of delayed inputs, and has one factor per
    # delay.
    factor = "delay" if result.basis.of_sequences else "input"
    table = result.by_degree()
    capacities = table.sum(axis=1).to_numpy()
    estimates = result.degrees_in_words()
    width = max([len("estimate"), *map(len, estimates.values())])
    lines = [
        "",
        f"  {'degree':>6}  {'estimate':>{width}}  {f'1 {factor}':>8}  {f'2 {factor}s':>8}  "
        f"{'more':>8}",
    ]
    known = np.delete(capacities, untold_degrees(result))
    largest = max(float(known.max(initial=0.0)), 1e-12)
    for degree, capacity, row in zip(table.index, capacities, table.to_numpy(), strict=True):
        if capacity <= 0 and len(table) > MAX_DEGREES_SHOWN_EMPTY:
            continue
        if not result.told_apart[result.basis.degrees == degree].any():
            continue  # No function of this degree has a capacity, not even 0.
        estimate = estimates.get(degree, "0")
        line = f"  {degree:6d}  {estimate:>{width}}"
        if estimate != CANNOT_BE_TOLD:
            cells = [f"{value:8.3f}" if value else f"{'.':>8}" for value in row]
            if degree == 0 and row[0]:
                cells[0] = "constant"
            bar = "=" * round(MAX_BAR_LENGTH * max(capacity, 0.0) / largest)
            line += f"  {'  '.join(cells)}  {bar}"
        lines.append(line.rstrip())
    return lines


def _by_delay(result: CapacityResult) -> list[str]:
    """Return what each delay adds to all functions of later inputs, under the recorded law."""
    if result.law != "recorded" or not result.basis.memory:
        return []
    lines = [
        "",
        "  what each delay adds to later ones (with powers of the present up to degree 10)",
    ]
    table = result.by_delay(errors=True)
    for delay, capacity, error in table.head(MAX_DELAYS_SHOWN).itertuples():
        text = "no function can be told apart"
        if not np.isnan(error):
            text = repr(Capacity(capacity, error, maximum=result.rank, lowest=-result.rank))
        lines.append(f"    delay {delay:2d}  {text}")
    if len(table) > MAX_DELAYS_SHOWN:
        lines.append(f"    and {counted(len(table) - MAX_DELAYS_SHOWN, 'longer delay')}")
    return lines


def _strongest_functions(result: CapacityResult, n_strongest: int) -> list[str]:
    """Return the largest capacities of all functions but the constant one."""
    capacity = result.capacity
    is_candidate = (result.basis.degrees > 0) & (capacity > 0)
    in_order = np.argsort(-capacity, kind="stable")
    not_zero = in_order[is_candidate[in_order]]
    strongest = not_zero[:n_strongest]
    if not len(strongest):
        return []
    title = f"  strongest functions, {len(strongest)} of {len(not_zero)} that are not zero"
    labels = [result.innovation_label(k) for k in strongest]
    width = max(map(len, labels))
    lines = []
    for k, label in zip(strongest, labels, strict=True):
        text = f"{capacity[k]:.3f}"
        if not result.capacity_of_term(k).can_be_told:
            text = CANNOT_BE_TOLD
        lines.append(f"    {label:<{width}}  {text}")
    if result.recorded_law is not None:
        title += ", R² of each itself"
        for position, k in enumerate(strongest):
            plain = Capacity(result.recorded_law.plain[k], result.recorded_law.plain_error[k])
            lines[position] += f"  {plain:.3f}" if plain.can_be_told else f"  {CANNOT_BE_TOLD}"
    if result.standard_error is not None:
        title += " (95 % interval)"
        with warnings.catch_warnings():
            # The line of the total says already that it is unreliable.
            warnings.simplefilter("ignore", DataWarning)
            intervals = result.interval()[strongest]
        for position, (low, high) in enumerate(intervals):
            lines[position] += f"  ({low:.3f} to {high:.3f})"
    return ["", title, *lines]


# Recordings.

# How each file was read, as `infocap.read` keeps it in the metadata under "read_from".
FileRecords = Sequence[dict[str, Any]]


class Fact(NamedTuple):
    """A line about a recording."""

    name: str
    text: str


def describe(recording: Recording) -> list[str]:
    """Return what a recording holds and where it comes from, one line per thing."""
    n_samples, n_inputs = np.shape(recording.inputs)
    n_readouts = np.shape(recording.readouts)[1]
    files = recording.metadata.get("read_from", [])
    lines = [f"{file['file']}: {file['as']}" for file in files[:MAX_FILES_SHOWN]]
    n_hidden = len(files) - MAX_FILES_SHOWN
    if n_hidden > 0:
        lines.append(f"and {n_hidden} more files")
    lines.append(
        f"Recording of {n_samples} samples, {counted(n_inputs, 'input')}, "
        f"{counted(n_readouts, 'readout')}"
    )
    return [*lines, *_columns(recording), *_facts(recording, files)]


def _columns(recording: Recording) -> list[str]:
    """Return the range of every input and readout; of many, some alone and the rest together."""
    inputs = np.asarray(recording.inputs)
    readouts = np.asarray(recording.readouts)
    input_names = recording.input_names or [f"u{k + 1}" for k in range(inputs.shape[1])]
    channels = recording.channel or [f"x{k + 1}" for k in range(readouts.shape[1])]
    ranges_of_inputs = _ranges(input_names, inputs)
    ranges_of_readouts = _ranges(channels, readouts)
    width = max(len(fact.name) for fact in (*ranges_of_inputs, *ranges_of_readouts))
    lines = []
    for role, ranges, unit in (
        ("input", ranges_of_inputs, recording.input_unit),
        ("readout", ranges_of_readouts, recording.readout_unit),
    ):
        for fact in ranges:
            lines.append(f"  {role:<9} {fact.name:<{width}}  {fact.text} {unit}".rstrip())
    return lines


def _ranges(names: Sequence[str], values: np.ndarray) -> list[Fact]:
    """Return the range of each column, and of all together that are too many to be shown."""
    ranges = []
    for k, name in enumerate(names[:MAX_CHANNELS_SHOWN]):
        ranges.append(Fact(name, _range_of(values[:, k])))
    n_hidden = len(names) - MAX_CHANNELS_SHOWN
    if n_hidden > 0:
        name = f"... {names[-1]}, {n_hidden} more"
        ranges.append(Fact(name, _range_of(values[:, MAX_CHANNELS_SHOWN:])))
    return ranges


def _facts(recording: Recording, files: FileRecords) -> list[str]:
    """Return what else is known: gaps, times, repeats, what was left out, the metadata."""
    facts = [*_measurements(recording, files), *_left_out(files)]
    for name, value in recording.metadata.items():
        if name != "read_from":
            facts.append(Fact(name.replace("_", " "), _entry(name, value)))
    width = max([MIN_NAME_WIDTH, *(len(fact.name) for fact in facts)])
    return [f"  {fact.name:<{width}} {fact.text}" for fact in facts]


def _measurements(recording: Recording, files: FileRecords) -> list[Fact]:
    """Return what there is beside inputs and readouts: gaps, times, repeats, noise and others."""
    facts = []
    finite_inputs = np.isfinite(np.asarray(recording.inputs)).all(axis=1)
    finite_readouts = np.isfinite(np.asarray(recording.readouts)).all(axis=1)
    n_missing = int((~(finite_inputs & finite_readouts)).sum())
    if n_missing:
        text = f"NaN or infinite values in {counted(n_missing, 'sample')}"
        facts.append(Fact("missing", text))
    if recording.time is not None and len(recording.time):
        times = np.asarray(recording.time)
        in_row_order = np.all(np.diff(times) >= 0)
        order = "the order of the rows" if in_row_order else "another order than that of the rows"
        columns = "".join(f"{name}: " for file in files for name in file.get("time", []))
        facts.append(Fact("time", f"{columns}{_range_of_times(times)}, acquired in {order}"))
    if recording.repeats is not None:
        n_repeated = np.isfinite(recording.repeats).all(axis=1).sum()
        facts.append(Fact("repeats", f"{n_repeated} samples were measured twice"))
    if recording.noise is not None:
        text = f"{len(recording.noise)} measurements of the noise, each at a constant input"
        facts.append(Fact("noise", text))
    if recording.reference is not None:
        text = f"{len(recording.reference)} at inputs that were measured again and again"
        facts.append(Fact("reference", text))
    if recording.extra is not None:
        facts.append(Fact("extra", join_names(recording.extra_names, MAX_EXTRA_NAMES)))
    return facts


def _left_out(files: FileRecords) -> list[Fact]:
    """Return what the files hold that became no part of the recording, and why."""
    texts = []
    for file in files:
        texts += [f"{name}: {reason}" for name, reason in file.get("left out", {}).items()]
    n_hidden = len(texts) - MAX_LEFT_OUT_SHOWN
    if n_hidden > 0:
        texts = [*texts[:MAX_LEFT_OUT_SHOWN], f"{n_hidden} more"]
    return [Fact("left out", text) for text in texts]


def _entry(name: str, value: Any) -> str:
    """Return an entry of the metadata in one short line; of a plan, what it plans."""
    if name == "plan":
        try:
            return Plan.from_dict(value).in_words()
        except ValueError as problem:
            return f"cannot be used: {problem}"
    text = re.sub(r"[][{}']", "", str(value))
    if len(text) > MAX_SHOWN_ENTRY_LENGTH:
        return text[: MAX_SHOWN_ENTRY_LENGTH - 3] + "..."
    return text


def _range_of(values: np.ndarray) -> str:
    """Return the smallest and the largest value."""
    if values.dtype.kind == "c":
        values = np.abs(values)
    if not np.isfinite(values).any():
        return "no numbers"
    smallest = np.nanmin(values)
    largest = np.nanmax(values)
    text = f"{smallest:.5g} to {largest:.5g}"
    is_one_column = values.ndim == 1
    if is_one_column and len(values) > 2 and (np.diff(values) == 1).all():
        text += ", counts the rows"
    return text


def _range_of_times(times: np.ndarray) -> str:
    """Return the first and the last time, as dates where they are seconds since 1970."""
    if np.isfinite(times).any() and np.nanmin(times) > MIN_SECONDS_SINCE_1970:
        return f"{_date(np.nanmin(times))} to {_date(np.nanmax(times))}"
    return _range_of(times)


def _date(seconds_since_1970: float) -> str:
    return str(np.datetime64(int(seconds_since_1970), "s")).replace("T", " ")
