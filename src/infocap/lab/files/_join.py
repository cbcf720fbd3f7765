"""Several recordings of one experiment, joined into one."""

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import Check, DataError, ParameterError
from ...recording._recording import Recording
from ...samples._runs import Joined
from ...samples._table import Table
from ...typing import ArrayLike, Floats, Integers

# What all files must agree in, where they tell it.
DESCRIPTIONS = ("readout_unit", "input_unit", "channel", "input_names")


def join(paths: list[Path], parts: list[Recording]) -> Recording:
    """Make one recording of several that agree in inputs, channels and units."""
    if not paths:
        raise ParameterError("path=[] names no file; give at least one.")
    _refuse_different(paths, parts)
    _refuse_common_points(paths, parts)

    design_index = np.concatenate([part.design_index for part in parts])
    order = np.argsort(design_index, kind="stable")
    fingerprints = {part.metadata.get("fingerprint") for part in parts}
    counts_points = len(fingerprints) == 1 and (np.diff(design_index[order]) > 0).all()
    runs: dict[str, Any] = {}
    if not counts_points:  # of several designs, or only numbers of rows
        design_index = np.arange(len(design_index))
        order = design_index
        runs = {"runs": _first_rows_of_runs(parts)}
    is_in_order = bool((np.diff(order) == 1).all())

    time, reference_time = _join_times(parts)
    has_time = any(part.time is not None for part in parts)
    extra, extra_names = _join_extra(parts, order)
    described = {
        name: max((getattr(part, name) for part in parts), key=bool) for name in DESCRIPTIONS
    }
    return Recording(
        inputs=_join_rows(parts, "inputs", None if is_in_order else order),
        readouts=_join_rows(parts, "readouts", None if is_in_order else order),
        design_index=design_index[order],
        time=time[order] if has_time or not is_in_order else None,
        repeats=_join_repeats(parts, order),
        noise=_join_all(parts, "noise"),
        reference=_join_all(parts, "reference"),
        reference_time=reference_time,
        extra=extra,
        extra_names=extra_names,
        metadata=_join_metadata(paths, parts) | runs,
        checks=_join_checks(parts, fingerprints - {None}),
        **described,
    )


# What makes files belong together


def _refuse_different(paths: list[Path], parts: list[Recording]) -> None:
    """Refuse files that differ in what they tell of inputs, channels or units."""
    described: dict[str, list[Any]] = {
        "the number of inputs": [part.inputs.shape[1] for part in parts],
        "the number of readouts": [part.readouts.shape[1] for part in parts],
        "the washout": [part.washout for part in parts],
    }
    for name in DESCRIPTIONS:
        described[name] = [getattr(part, name) for part in parts]
    for what, values in described.items():
        told = [(path, value) for path, value in zip(paths, values, strict=True) if value]
        for (path, value), (other, other_value) in pairwise(told):
            if value != other_value:
                raise DataError(
                    f"{what} is {value!r:.80} in {path} and {other_value!r:.80} in {other}; "
                    "one recording is of one experiment: estimate them apart."
                )


def _refuse_common_points(paths: list[Path], parts: list[Recording]) -> None:
    """Refuse a file that is given twice, and two files that hold the same points of one plan."""
    for (path, part), (other, other_part) in combinations(zip(paths, parts, strict=True), 2):
        if path.resolve() == other.resolve():
            raise ParameterError(f"{other} is given twice; give every file once.")
        fingerprint = part.metadata.get("fingerprint")
        is_same_plan = fingerprint is not None and fingerprint == other_part.metadata.get(
            "fingerprint"
        )
        common = np.intersect1d(part.design_index, other_part.design_index)
        if is_same_plan and len(common):
            raise DataError(
                f"{path} and {other} hold {len(common)} points of the same plan twice, the first "
                f"of them index {common[0]}; leave one of the files out."
            )


# What the parts become


def _first_rows_of_runs(parts: list[Recording]) -> list[int]:
    """Return the index of the first row of every run."""
    first_rows = []
    n_before = 0
    for part in parts:
        first_rows += [n_before + run.start for run in part.runs]
        n_before += len(part.design_index)
    return first_rows


def _join_rows(parts: list[Recording], name: str, order: Integers | None) -> ArrayLike:
    """Join inputs or readouts, which stay in their files where they are there."""
    sources = [getattr(part, name) for part in parts]
    in_memory = all(isinstance(source, np.ndarray) for source in sources)
    if not in_memory:
        return Joined([Table(source, name) for source in sources], order)
    rows = np.concatenate(sources)
    return rows if order is None else rows[order]


def _join_repeats(parts: list[Recording], order: Integers) -> Floats | None:
    """Join the repeats; NaN in the rows of files without them."""
    if all(part.repeats is None for part in parts):
        return None
    repeats = []
    for part in parts:
        missing = np.full(part.readouts.shape, np.nan)
        repeats.append(missing if part.repeats is None else part.repeats)
    return np.concatenate(repeats)[order]


def _join_extra(parts: list[Recording], order: Integers) -> tuple[Floats | None, tuple[str, ...]]:
    """Join the extra values of each row; one that a file does not tell is NaN."""
    if all(part.extra is None for part in parts):
        return None, ()
    import pandas as pd

    tables = []
    for part in parts:
        rows = range(len(part.design_index))
        tables.append(pd.DataFrame(part.extra, rows, list(part.extra_names)))
    joined = pd.concat(tables)
    return joined.to_numpy(float)[order], tuple(joined.columns)


def _join_all(parts: list[Recording], name: str) -> Floats | None:
    """Put all measurements of the noise, or of the reference, one after the other."""
    measured = [getattr(part, name) for part in parts if getattr(part, name) is not None]
    return np.concatenate(measured) if measured else None


def _join_metadata(paths: list[Path], parts: list[Recording]) -> dict[str, Any]:
    """Keep the metadata of the first file, and how each file was read."""
    metadata = parts[0].metadata | {"sources": [str(path) for path in paths]}
    if "read_from" in metadata:
        choices = []
        for part in parts:
            choices += part.metadata.get("read_from", [])
        metadata["read_from"] = choices
    return metadata


def _join_checks(parts: list[Recording], plans: set[Any]) -> tuple[Any, ...]:
    """Keep all checks once, and say where the files are of several plans."""
    checks = [check for part in parts for check in part.checks]
    if len(plans) > 1:
        checks.append(
            Check(
                f"the files are of {len(plans)} plans, and their rows are in the order of the "
                "files; estimate them apart unless they are one experiment."
            )
        )
    return tuple(dict.fromkeys(checks))


# Times


def _join_times(parts: list[Recording]) -> tuple[Floats, Floats | None]:
    """Return times of rows and references, or ranks that go on from file to file."""
    times = [_times_of(part) for part in parts]
    if any(_is_rank(part, values) for part, values in zip(parts, times, strict=True)):
        times = _ranks_of(times)

    row_times = []
    reference_times = []
    for part, values in zip(parts, times, strict=True):
        n_rows = len(part.design_index)
        row_times.append(values[:n_rows])
        reference_times.append(values[n_rows:])
    referenced = [part for part in parts if part.reference is not None]
    all_timed = bool(referenced) and all(part.reference_time is not None for part in referenced)
    return np.concatenate(row_times), np.concatenate(reference_times) if all_timed else None


def _times_of(part: Recording) -> Floats:
    """Return the times of all rows, or their numbers, then the times of the references."""
    rows = np.arange(len(part.design_index)) if part.time is None else part.time
    references = rows[:0] if part.reference_time is None else part.reference_time
    return np.concatenate([rows, references])


def _is_rank(part: Recording, times: Floats) -> bool:
    """Whether times count measurements rather than tell seconds."""
    n_measurements = len(part.design_index)
    for others in (part.repeats, part.noise, part.reference):
        n_measurements += 0 if others is None else len(others)
    is_count = (times == np.round(times)) & (times >= 0) & (times < n_measurements)
    return times.dtype.kind in "iu" or bool(is_count.all())


def _ranks_of(times: list[Floats]) -> list[Floats]:
    """Return the rank of each time, each file after the one before."""
    ranked = []
    start = 0
    for values in times:
        ranks = np.unique(values, return_inverse=True)[1]
        ranked.append(start + ranks)
        start += int(ranks.max(initial=-1)) + 1
    return ranked
