"""Measurements marked by design index, sorted into a recording.

They become samples, repeats, noise and references; dark levels are subtracted from all of these.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Check, DataError
from ..typing import ArrayLike, Floats, Integers
from ._recording import DARK_CODE, NOISE_CODE, REFERENCE_CODE, Recording

# The largest whole number up to which a float holds every whole number.
MAX_EXACT_FLOAT = 2**53


@dataclass
class Measurements:
    """Many measurements in any order, one per row; what a file does not tell is None or empty.

    The fields of the same names in `Recording` say what they hold.

    Parameters
    ----------
    path
        Where the rows come from, for messages.
    u, x
        Inputs (rows, inputs) and readouts (rows, channels).
    index
        The design index of each row, or the code of its kind.
    time
        When each row was measured.
    """

    path: Path
    u: ArrayLike = None
    x: ArrayLike = None
    index: Integers | None = None
    time: Floats | None = None
    extra: Floats | None = None
    extra_names: tuple[str, ...] = ()
    input_names: tuple[str, ...] = ()
    channel: tuple[str, ...] = ()
    input_unit: str = ""
    readout_unit: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)

    def as_recording(self, **arrays: Any) -> Recording:
        """Return a recording of these arrays, with the names, units and checks of the rows."""
        return Recording(
            **arrays,
            extra_names=self.extra_names,
            input_names=self.input_names,
            channel=self.channel,
            input_unit=self.input_unit,
            readout_unit=self.readout_unit,
            metadata=self.metadata,
            checks=tuple(self.checks),
        )


def assemble_recording(rows: Measurements) -> Recording:
    """Sort rows into a recording in design order: samples, their repeats, noise and references.

    From each row the latest row with the source off is subtracted, or the first of them where none
    came before. The rows are in memory, and all have an index and a time.
    """
    assert rows.index is not None
    assert rows.time is not None
    index = rows.index
    time = rows.time
    _refuse_unknown_codes(rows.path, index)
    x = _without_dark_level(rows.x, index, time)
    order = np.argsort(index, kind="stable")
    order = order[index[order] >= 0]
    points, starts, counts = np.unique(index[order], return_index=True, return_counts=True)
    if counts.max(initial=0) > 2:
        point = int(np.argmax(counts > 2))
        raise DataError(
            f"index in {rows.path} has {points[point]} {counts[point]} times; a point of the "
            "design is measured once or twice: keep two of its rows."
        )
    first = order[starts]
    is_repeated = counts == 2
    repeats = None
    if is_repeated.any():
        second = order[starts[is_repeated] + 1]
        _refuse_moved_inputs(rows, first[is_repeated], second)
        # Floats that hold NaN, and no more bytes than needed.
        dtype = np.result_type(x.dtype, np.float32)
        repeats = np.full((len(points), x.shape[1]), np.nan, dtype=dtype)
        repeats[is_repeated] = x[second]
    is_noise = index == NOISE_CODE
    is_reference = index == REFERENCE_CODE
    has_reference_times = is_reference.any() and not np.isnan(time[is_reference]).any()
    return rows.as_recording(
        inputs=rows.u[first],
        readouts=x[first],
        design_index=index[first],
        time=time[first],
        repeats=repeats,
        noise=_chosen(x, is_noise),
        reference=_chosen(x, is_reference),
        reference_time=time[is_reference] if has_reference_times else None,
        reference_inputs=_inputs_of_references(rows.u, is_reference),
        extra=None if rows.extra is None else rows.extra[first],
    )


def _chosen(x: Floats, mask: np.ndarray) -> Floats | None:
    """Return the rows of a mask; None where there are none."""
    return x[mask] if mask.any() else None


def _inputs_of_references(u: Floats, is_reference: np.ndarray) -> Floats | None:
    """Return the inputs of the references; None without any, or where a file leaves them open."""
    if not is_reference.any() or np.isnan(u[is_reference]).any():
        return None
    return u[is_reference]


def _refuse_unknown_codes(path: Path, index: Integers) -> None:
    """Refuse an index below those that stand for noise, references and the source off."""
    if index.min(initial=0) < DARK_CODE:
        row = int(np.argmax(index < DARK_CODE))
        raise DataError(
            f"index in {path} is {index[row]} in row {row + 1}; give the number of a point of the "
            f"design, {NOISE_CODE} for noise repeats, {REFERENCE_CODE} for references or "
            f"{DARK_CODE} for the source off."
        )


def _without_dark_level(x: Floats, index: Integers, time: Floats) -> Floats:
    """Return the readouts minus the latest readout with the source off, where there are any."""
    is_dark = index == DARK_CODE
    if not is_dark.any():
        return x
    by_time = np.argsort(time[is_dark], kind="stable")
    latest = np.searchsorted(time[is_dark][by_time], time, side="right") - 1
    dark_levels = x[is_dark][by_time[np.maximum(latest, 0)]]
    # Counts of a converter without a sign must not wrap around below the dark level.
    return np.subtract(x, dark_levels, dtype=np.result_type(x, np.float32))


def _refuse_moved_inputs(rows: Measurements, first: Integers, second: Integers) -> None:
    """Refuse two rows of one point of the design at different inputs.

    A repeat may leave its inputs open.
    """
    u = rows.u
    differs = (u[first] != u[second]) & ~np.isnan(u[second])
    if differs.any():
        assert rows.index is not None
        row = int(second[np.argmax(differs.any(axis=1))])
        raise DataError(
            f"u in {rows.path} differs between the two rows of index {rows.index[row]}, the second "
            f"of them row {row + 1}; a repeat is measured at the same input."
        )


def integer_index(path: Path, index: np.ndarray) -> np.ndarray:
    """Return a design index as integers; refuse other numbers."""
    if index.dtype.kind in "iu":
        return index
    is_whole = False
    if index.dtype.kind == "f":
        is_exact = np.abs(index) <= MAX_EXACT_FLOAT
        is_whole = bool(is_exact.all()) and not (index % 1 != 0).any()
    if not is_whole:
        raise DataError(
            f"index in {path} holds {index.dtype} values that are no whole numbers below 2^53."
        )
    return index.astype(np.int64)
