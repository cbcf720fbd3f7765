"""Several recordings of one experiment, joined into one."""

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import Check, DataError, ParameterError
from ...recording import Recording
from ...samples import JoinedRows, Table
from ...typing import ArrayLike, Floats, Integers

# What all files must agree in, where they tell it.
DESCRIPTIONS = ("readout_unit", "input_unit", "channel", "input_names")


def join(paths: list[Path], recordings: list[Recording]) -> Recording:
    """Make one recording of several that agree in inputs, channels and units."""
    if not paths:
        raise ParameterError("path=[] names no file; give at least one.")
    _refuse_different(paths, recordings)
    _refuse_common_points(paths, recordings)

    design_index = np.concatenate([recording.design_index for recording in recordings])
    order = np.argsort(design_index, kind="stable")
    fingerprints = {recording.metadata.get("fingerprint") for recording in recordings}
    is_one_plan = len(fingerprints) == 1 and (np.diff(design_index[order]) > 0).all()
    runs: dict[str, Any] = {}
    # Several plans, or indices that only count rows: keep the order of the files.
    if not is_one_plan:
        design_index = np.arange(len(design_index))
        order = design_index
        runs = {"runs": _first_rows_of_runs(recordings)}
    is_in_order = bool((np.diff(order) == 1).all())

    time, reference_time = _join_times(recordings)
    has_time = any(recording.time is not None for recording in recordings)
    extra, extra_names = _join_extra(recordings, order)
    described = {name: _first_told(recordings, name) for name in DESCRIPTIONS}
    return Recording(
        inputs=_join_rows(recordings, "inputs", None if is_in_order else order),
        readouts=_join_rows(recordings, "readouts", None if is_in_order else order),
        design_index=design_index[order],
        time=time[order] if has_time or not is_in_order else None,
        repeats=_join_repeats(recordings, order),
        noise=_join_all(recordings, "noise"),
        reference=_join_all(recordings, "reference"),
        reference_time=reference_time,
        reference_inputs=_join_reference_inputs(recordings),
        extra=extra,
        extra_names=extra_names,
        metadata=_join_metadata(paths, recordings) | runs,
        checks=_join_checks(recordings, fingerprints - {None}),
        **described,
    )


# What makes files belong together


def _refuse_different(paths: list[Path], recordings: list[Recording]) -> None:
    """Refuse files that differ in what they tell of inputs, channels or units."""
    described: dict[str, list[Any]] = {
        "the number of inputs": [recording.inputs.shape[1] for recording in recordings],
        "the number of readouts": [recording.readouts.shape[1] for recording in recordings],
        "the washout": [recording.washout for recording in recordings],
    }
    for name in DESCRIPTIONS:
        described[name] = [getattr(recording, name) for recording in recordings]
    for what, values in described.items():
        described_by = [(path, value) for path, value in zip(paths, values, strict=True) if value]
        for (path, value), (other, other_value) in pairwise(described_by):
            if value != other_value:
                raise DataError(
                    f"{what} is {value!r:.80} in {path} and {other_value!r:.80} in {other}; "
                    "one recording is of one experiment: estimate them apart."
                )


def _refuse_common_points(paths: list[Path], recordings: list[Recording]) -> None:
    """Refuse a file that is given twice, and two files that hold the same points of one plan."""
    for (path, recording), (other, other_recording) in combinations(
        zip(paths, recordings, strict=True), 2
    ):
        if path.resolve() == other.resolve():
            raise ParameterError(f"{other} is given twice; give every file once.")
        fingerprint = recording.metadata.get("fingerprint")
        other_fingerprint = other_recording.metadata.get("fingerprint")
        is_same_plan = fingerprint is not None and fingerprint == other_fingerprint
        common = np.intersect1d(recording.design_index, other_recording.design_index)
        if is_same_plan and len(common):
            raise DataError(
                f"{path} and {other} hold {len(common)} points of the same plan twice, the first "
                f"of them index {common[0]}; leave one of the files out."
            )


# What the parts become


def _first_told(recordings: list[Recording], name: str) -> Any:
    """Return a description from the first file that tells it; an empty one where none does."""
    values = [getattr(recording, name) for recording in recordings]
    return next(filter(None, values), values[0])


def _first_rows_of_runs(recordings: list[Recording]) -> list[int]:
    """Return the index of the first row of every run."""
    first_rows = []
    n_before = 0
    for recording in recordings:
        first_rows += [n_before + run.start for run in recording.runs]
        n_before += len(recording.design_index)
    return first_rows


def _join_rows(recordings: list[Recording], name: str, order: Integers | None) -> ArrayLike:
    """Join inputs or readouts, which stay in their files where they are there."""
    sources = [getattr(recording, name) for recording in recordings]
    in_memory = all(isinstance(source, np.ndarray) for source in sources)
    if not in_memory:
        return JoinedRows([Table(source, name) for source in sources], order)
    rows = np.concatenate(sources)
    return rows if order is None else rows[order]


def _join_repeats(recordings: list[Recording], order: Integers) -> Floats | None:
    """Join the repeats; NaN in the rows of files without them."""
    if all(recording.repeats is None for recording in recordings):
        return None
    repeats = []
    for recording in recordings:
        missing = np.full(recording.readouts.shape, np.nan)
        repeats.append(missing if recording.repeats is None else recording.repeats)
    return np.concatenate(repeats)[order]


def _join_extra(
    recordings: list[Recording], order: Integers
) -> tuple[Floats | None, tuple[str, ...]]:
    """Join the extra values of each row; one that a file does not tell is NaN."""
    if all(recording.extra is None for recording in recordings):
        return None, ()
    import pandas as pd

    tables = []
    for recording in recordings:
        rows = range(len(recording.design_index))
        tables.append(pd.DataFrame(recording.extra, rows, list(recording.extra_names)))
    joined = pd.concat(tables)
    return joined.to_numpy(float)[order], tuple(joined.columns)


def _join_all(recordings: list[Recording], name: str) -> Floats | None:
    """Put all measurements of the noise, or of the reference, one after the other."""
    measured = [
        getattr(recording, name) for recording in recordings if getattr(recording, name) is not None
    ]
    return np.concatenate(measured) if measured else None


def _join_reference_inputs(recordings: list[Recording]) -> Floats | None:
    """Join the inputs of the references; None where a file with references does not tell them."""
    inputs = [
        recording.reference_inputs for recording in recordings if recording.reference is not None
    ]
    told = [values for values in inputs if values is not None]
    return np.concatenate(told) if told and len(told) == len(inputs) else None


def _join_metadata(paths: list[Path], recordings: list[Recording]) -> dict[str, Any]:
    """Keep the metadata of the first file, and how each file was read."""
    metadata = recordings[0].metadata | {"sources": [str(path) for path in paths]}
    metadata.pop("file", None)  # that of the first alone
    if "read_from" in metadata:
        choices = []
        for recording in recordings:
            choices += recording.metadata.get("read_from", [])
        metadata["read_from"] = choices
    return metadata


def _join_checks(recordings: list[Recording], plans: set[Any]) -> tuple[Any, ...]:
    """Keep all checks once, and say where the files are of several plans."""
    checks = [check for recording in recordings for check in recording.checks]
    if len(plans) > 1:
        checks.append(
            Check(
                f"the files are of {len(plans)} plans, and their rows are in the order of the "
                "files; estimate them apart unless they are one experiment."
            )
        )
    return tuple(dict.fromkeys(checks))


# Times


def _join_times(recordings: list[Recording]) -> tuple[Floats, Floats | None]:
    """Return times of rows and references, or ranks that go on from file to file."""
    times = [_times_of(recording) for recording in recordings]
    if any(
        _is_rank(recording, values) for recording, values in zip(recordings, times, strict=True)
    ):
        times = _ranks_of(times)

    row_times = []
    reference_times = []
    for recording, values in zip(recordings, times, strict=True):
        n_rows = len(recording.design_index)
        row_times.append(values[:n_rows])
        reference_times.append(values[n_rows:])
    referenced = [recording for recording in recordings if recording.reference is not None]
    all_timed = bool(referenced) and all(
        recording.reference_time is not None for recording in referenced
    )
    return np.concatenate(row_times), np.concatenate(reference_times) if all_timed else None


def _times_of(recording: Recording) -> Floats:
    """Return the times of all rows, or their numbers, then the times of the references."""
    rows = np.arange(len(recording.design_index)) if recording.time is None else recording.time
    references = rows[:0] if recording.reference_time is None else recording.reference_time
    return np.concatenate([rows, references])


def _is_rank(recording: Recording, times: Floats) -> bool:
    """Return whether times count measurements rather than tell seconds."""
    n_measurements = len(recording.design_index)
    for measured_again in (recording.repeats, recording.noise, recording.reference):
        if measured_again is not None:
            n_measurements += len(measured_again)
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
