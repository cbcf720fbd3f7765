"""Recorded inputs that exceed their declared range by no more than their own noise explains.

A source is set to values from 0 to 1, and a meter that reads them with noise tells 1.002 now and
then. Where the noise is small, such values are taken for the end of the range.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._formatting import counted
from ..basis import DiscreteFamily, Family
from ..errors import Check
from ._recording import Recording

# Fraction of the range by which a value may lie outside. A function of degree 10 changes by less
# than 1 over so much of its range.
MAX_OVERSHOOT = 0.01
# Fraction of the range by which rounding takes values out of it, which needs no mention.
ROUNDING = 1e-9
# Noise of any size takes fewer values out of the range than remain as close to its ends inside:
# a quarter, where it is normal. Where the range is wrong, there are as many outside as inside.
MAX_OUTSIDE_PER_INSIDE = 0.5
MAX_STANDARD_ERRORS = 3.0


def without_overshoot(recording: Recording, families: Sequence[Family]) -> Recording:
    """Return a recording whose inputs lie in the range of their families, where noise explains it.

    Anything else stays as it is, and is refused where the inputs are used.

    Parameters
    ----------
    recording
        The recording. Inputs that stay in their file are not looked at.
    families
        The family of each input.
    """
    inputs = recording.inputs
    in_memory = isinstance(inputs, np.ndarray) and not isinstance(inputs, np.memmap)
    if not in_memory or inputs.shape[1] != len(families):
        return recording
    checks = []
    moved = None
    for k, family in enumerate(families):
        overshoot = _explained_overshoot(inputs[:, k], family)
        if overshoot is None:
            continue
        moved = np.array(inputs, dtype=float) if moved is None else moved
        low, high = family.bounds
        moved[:, k] = np.clip(moved[:, k], low, high)
        name = recording.input_names[k] if recording.input_names else f"u{k + 1}"
        n_outside = int((moved[:, k] != inputs[:, k]).sum())
        checks.append(
            Check(
                f"{counted(n_outside, 'value')} of {name} lie outside [{low:g}, {high:g}], by at "
                f"most {overshoot:.2g} of this range, as noise of a recorded input does: they were "
                "taken for its ends.",
                "note",
                overshoot=overshoot,
            )
        )
    if moved is None:
        return recording
    return replace(recording, inputs=moved, checks=(*recording.checks, *checks))


def _explained_overshoot(values: Any, family: Family) -> float | None:
    """Return by how much of the range values lie outside; None where noise does not explain it."""
    low, high = family.bounds
    width = high - low
    if isinstance(family, DiscreteFamily) or not np.isfinite(width) or width <= 0:
        return None
    outside = np.maximum(low - values, values - high)
    outside = outside[~np.isnan(outside)]
    farthest = float(np.max(outside, initial=0.0))
    if not ROUNDING * width < farthest <= MAX_OVERSHOOT * width:
        return None
    n_outside = int((outside > 0).sum())
    n_inside = int(((outside <= 0) & (outside >= -farthest)).sum())
    limit = MAX_OUTSIDE_PER_INSIDE * n_inside + MAX_STANDARD_ERRORS * np.sqrt(n_inside + 1)
    return farthest / width if n_outside <= limit else None
