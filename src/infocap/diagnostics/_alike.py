"""Rows that are alike whatever their inputs: dark shots, a closed shutter, a detector that hung.

Such rows lie much nearer to each other than the readouts of a device do, and at any inputs. The
readouts of a saturated device are alike, too, but there they belong to some inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import Check
from ..typing import Floats
from ._chance import level, poisson_tail
from ._excerpt import Excerpt, numbers
from ._finding import finding
from ._outliers import belong_to_inputs
from ._rows import capacity_of_rows, follow_inputs

# The distance of a row to the others is that to its fourth nearest row, so that a few rows that are
# alike by chance form no group.
N_NEAREST = 4
# Rows are alike where this distance is less than this part of the median. So many form a group,
# both among the rows that are compared and among all.
MAX_RATIO_OF_DISTANCES = 0.1
MIN_ALIKE_ROWS = 8
# More than this part of the rows are a state of the device.
MAX_SHARE_OF_ALIKE_ROWS = 0.4


def alike_rows(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where rows at any inputs have nearly the same readouts."""
    if excerpt.related_inputs is not None:
        return  # Neighbours of a sweep are alike.
    points = excerpt.residuals.projections.astype(float)
    some = points[excerpt.some]
    nearest = _squared_distances_to_nearest(some)
    radius = MAX_RATIO_OF_DISTANCES**2 * float(np.median(nearest))
    n_alike = np.count_nonzero(nearest < radius)
    if not MIN_ALIKE_ROWS <= n_alike <= MAX_SHARE_OF_ALIKE_ROWS * len(some):
        return
    # The rows around the one whose neighbours are nearest: several states would be several groups.
    middle = some[np.argmin(nearest)]
    distances = np.sum((points - middle) ** 2, axis=1)
    rows = np.flatnonzero(distances < radius)
    if not MIN_ALIKE_ROWS <= len(rows) <= MAX_SHARE_OF_ALIKE_ROWS * excerpt.n:
        return
    if np.median(distances[rows]) == 0:
        return  # Exactly equal rows are counted in another test: few counts may be equal by chance.
    # A group that stands apart has few rows around it, and a peak of the density has many.
    n_around = np.count_nonzero(distances < 4 * radius) - len(rows)
    expected = n_around / (2 ** points.shape[1] - 1)
    if poisson_tail(len(rows), expected + 0.5) * len(some) > level(excerpt):
        return
    if belong_to_inputs(excerpt, rows):
        return
    if excerpt.of_sequence and follow_inputs(excerpt.residuals, rows):
        return
    yield finding(
        f"{len(rows)} of {excerpt.n} rows have nearly the same readouts, whatever their inputs "
        f"(rows {numbers(excerpt.rows[rows])}): dark shots, a closed shutter, or a detector that "
        "hung",
        cause="gap",
        next_step="leave them out",
        in_short="rows that show nothing of their inputs",
        shown_as="alike rows",
        capacity=capacity_of_rows(excerpt.residuals, len(rows)),
        rows=excerpt.rows[rows],
    )


def _squared_distances_to_nearest(points: Floats) -> Floats:
    """Return the squared distance of each point to the last of its nearest ones."""
    squares = np.einsum("ij,ij->i", points, points)
    distances = squares[:, None] + squares - 2 * points @ points.T
    nearest: Floats = np.partition(distances, N_NEAREST, axis=1)[:, N_NEAREST]
    return nearest
