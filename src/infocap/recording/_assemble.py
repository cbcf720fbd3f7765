"""Measurements marked by design index, sorted into a recording: samples, repeats, noise, references and dark levels."""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..typing import Floats, Integers
from ._recording import DARK, NOISE, REFERENCE, Recording


def by_index(
    path: Path,
    u: Floats,
    x: Floats,
    index: Integers,
    when: Floats,
    extra: Floats | None = None,
    **told: Any,
) -> Recording:
    """Sort measurements into a recording in design order: samples, their repeats, noise and references.

    From each one the latest with the source off is subtracted, or the first where none came before.
    """
    if index.min(initial=0) < DARK:
        row = int(np.argmax(index < DARK))
        said = f"index in {path} is {index[row]} in row {row + 1}; give the number of a point of the design"
        raise DataError(
            f"{said}, {NOISE} for noise repeats, {REFERENCE} for references or {DARK} for the source off."
        )
    if (dark := index == DARK).any():
        order = np.argsort(when[dark], kind="stable")
        latest = np.searchsorted(when[dark][order], when, side="right") - 1
        # Counts of a converter without a sign must not wrap around below the dark level.
        x = np.subtract(
            x, x[dark][order[np.maximum(latest, 0)]], dtype=np.result_type(x, np.float32)
        )
    order = np.argsort(index, kind="stable")
    order = order[index[order] >= 0]
    points, start, count = np.unique(index[order], return_index=True, return_counts=True)
    if count.max(initial=0) > 2:
        many = int(np.argmax(count > 2))
        said = f"index in {path} has {points[many]} {count[many]} times"
        raise DataError(
            f"{said}; a point of the design is measured once or twice: keep two of its rows."
        )
    first, twice, repeats = order[start], count == 2, None
    if twice.any():
        second = order[start[twice] + 1]
        moved = (u[first[twice]] != u[second]) & ~np.isnan(u[second])
        if moved.any():
            row = int(second[np.argmax(moved.any(axis=1))])
            said = f"u in {path} differs between the two rows of index {index[row]}"
            raise DataError(
                f"{said}, the second of them row {row + 1}; a repeat is measured at the same input."
            )
        repeats = np.full(
            (len(points), x.shape[1]), np.nan, dtype=np.result_type(x.dtype, np.float32)
        )
        repeats[twice] = x[second]
    noise, reference = index == NOISE, index == REFERENCE
    timed = reference.any() and not np.isnan(when[reference]).any()
    return Recording(
        u[first],
        x[first],
        index[first],
        time=when[first],
        repeats=repeats,
        noise=x[noise] if noise.any() else None,
        reference=x[reference] if reference.any() else None,
        reference_time=when[reference] if timed else None,
        extra=None if extra is None else extra[first],
        **told,
    )


def whole_numbers(path: Path, index: np.ndarray) -> np.ndarray:
    """Convert a design index to integers."""
    if index.dtype.kind in "iu":
        return index
    if (
        index.dtype.kind != "f"
        or not (np.abs(index) <= 2**53).all()
        or (index != np.round(index)).any()
    ):
        raise DataError(
            f"index in {path} holds {index.dtype} values that are no whole numbers below 2^53."
        )
    return index.astype(np.int64)
