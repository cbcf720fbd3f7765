"""Measurements marked by design index, sorted into a recording: samples, repeats, noise, references and dark levels."""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..typing import Floats, Integers
from ._recording import DARK_CODE, NOISE_CODE, REFERENCE_CODE, Recording

# The largest whole number up to which a float holds every whole number.
MAX_EXACT_FLOAT = 2**53


def assemble_recording(
    path: Path,
    u: Floats,
    x: Floats,
    index: Integers,
    when: Floats,
    extra: Floats | None = None,
    **fields: Any,
) -> Recording:
    """Sort measurements into a recording in design order: samples, their repeats, noise and references.

    From each measurement the latest with the source off is subtracted, or the first where none came before. The other
    fields of the recording are passed on.
    """
    if index.min(initial=0) < DARK_CODE:
        row = int(np.argmax(index < DARK_CODE))
        raise DataError(
            f"index in {path} is {index[row]} in row {row + 1}; give the number of a point of the design, "
            f"{NOISE_CODE} for noise repeats, {REFERENCE_CODE} for references or {DARK_CODE} for the source off."
        )
    x = _without_dark_level(x, index, when)
    order = np.argsort(index, kind="stable")
    order = order[index[order] >= 0]
    points, starts, counts = np.unique(index[order], return_index=True, return_counts=True)
    if counts.max(initial=0) > 2:
        crowded = int(np.argmax(counts > 2))
        raise DataError(
            f"index in {path} has {points[crowded]} {counts[crowded]} times; a point of the design is measured once or "
            "twice: keep two of its rows."
        )
    first = order[starts]
    is_repeated = counts == 2
    repeats = None
    if is_repeated.any():
        second = order[starts[is_repeated] + 1]
        _refuse_moved_inputs(path, u, index, first[is_repeated], second)
        # Floats that hold NaN, and no more bytes than needed.
        dtype = np.result_type(x.dtype, np.float32)
        repeats = np.full((len(points), x.shape[1]), np.nan, dtype=dtype)
        repeats[is_repeated] = x[second]
    is_noise = index == NOISE_CODE
    is_reference = index == REFERENCE_CODE
    has_reference_times = is_reference.any() and not np.isnan(when[is_reference]).any()
    return Recording(
        u[first],
        x[first],
        index[first],
        time=when[first],
        repeats=repeats,
        noise=x[is_noise] if is_noise.any() else None,
        reference=x[is_reference] if is_reference.any() else None,
        reference_time=when[is_reference] if has_reference_times else None,
        extra=None if extra is None else extra[first],
        **fields,
    )


def _without_dark_level(x: Floats, index: Integers, when: Floats) -> Floats:
    """The readouts minus the latest readout with the source off, where there are any."""
    is_dark = index == DARK_CODE
    if not is_dark.any():
        return x
    by_time = np.argsort(when[is_dark], kind="stable")
    latest = np.searchsorted(when[is_dark][by_time], when, side="right") - 1
    dark_levels = x[is_dark][by_time[np.maximum(latest, 0)]]
    # Counts of a converter without a sign must not wrap around below the dark level.
    return np.subtract(x, dark_levels, dtype=np.result_type(x, np.float32))


def _refuse_moved_inputs(
    path: Path, u: Floats, index: Integers, first: Integers, second: Integers
) -> None:
    """Refuse two measurements of one point of the design at different inputs; a repeat may leave its inputs open."""
    moved = (u[first] != u[second]) & ~np.isnan(u[second])
    if moved.any():
        row = int(second[np.argmax(moved.any(axis=1))])
        raise DataError(
            f"u in {path} differs between the two rows of index {index[row]}, the second of them row {row + 1}; a "
            "repeat is measured at the same input."
        )


def integer_index(path: Path, index: np.ndarray) -> np.ndarray:
    """Convert a design index to integers."""
    if index.dtype.kind in "iu":
        return index
    is_float = index.dtype.kind == "f"
    if not is_float or not (np.abs(index) <= MAX_EXACT_FLOAT).all() or (index % 1 != 0).any():
        raise DataError(
            f"index in {path} holds {index.dtype} values that are no whole numbers below 2^53."
        )
    return index.astype(np.int64)
