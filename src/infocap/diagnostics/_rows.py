"""Tests of single rows: readouts that fit the inputs of another row and not their own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._formatting import counted
from ..errors import Check
from ..typing import Floats, Integers
from ._chance import binomial_tail, level, poisson_tail
from ._excerpt import Excerpt, numbers
from ._finding import finding
from ._lags import MAX_LAG
from ._residuals import Residuals

# A direction tells rows apart where the fit leaves less than this part of its variance.
MAX_UNEXPLAINED_VARIANCE = 0.5
# A squared standardised residual counts up to this, so that no direction alone decides.
MAX_SQUARE = 36.0
# A row is bad where its misfit is so many times that of the median row, or so much above it.
BAD_RATIO = 4.0
BAD_DEVIATIONS = 12.0
# Another row's inputs fit where they leave less than this part of the row's own misfit, and less
# than so many times that of the median row.
FITTING_SHARE = 0.3
FITTING_RATIO = 2.5
# Rows away up to which neighbours are compared, and the far rows that tell what happens by chance.
MAX_NEIGHBOUR = 4
N_FAR_LAGS = 24
# Part of the bad rows that must fit a neighbour: where rows were averaged, few of them do.
MIN_SHARE_OF_BAD_ROWS = 0.5
# Rows that a finding needs, and rows in which it can be looked for.
MIN_MISPLACED_ROWS = 5
MIN_ROWS = 200
# Bad rows that are compared with all others; more of them take seconds.
MAX_COMPARED_ROWS = 150
# Bad rows whose nearest neighbours are looked for.
MAX_ROWS_FOR_NEIGHBOURS = 64
# Inputs are distant where their squared distance is this part of the typical one.
DISTANT_INPUTS = 0.15
# Chance that bad rows belong to some inputs, below which they are misfit and no mistake.
MIN_CHANCE_OF_NEIGHBOURS = 0.01
# Mean of a function over bad rows of a sequence, in its standard deviations, above which they
# belong to some inputs. Of rows from elsewhere it is up to 0.4, of saturated ones 0.7; chance adds
# some standard errors where rows are few.
MAX_MEAN_OF_FUNCTION = 0.5
MAX_STANDARD_ERRORS_OF_MEAN = 3.3
# Smallest deviation that is told from zero.
SMALLEST_DEVIATION = np.finfo(np.float32).tiny


def misplaced_rows(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where rows fit the inputs of another row and not their own."""
    residuals = excerpt.residuals
    explains = residuals.scale**2 < MAX_UNEXPLAINED_VARIANCE
    if not explains.any() or excerpt.n < MIN_ROWS:
        return
    own = _misfit(residuals.standardised[:, explains])
    usual = float(np.median(own))
    is_bad = own > max(BAD_RATIO * usual, usual + BAD_DEVIATIONS * np.sqrt(explains.sum()))
    if np.count_nonzero(is_bad) < MIN_MISPLACED_ROWS:
        return
    a = residuals.projections[:, explains] / residuals.scale[explains]
    fitted = residuals.fitted[:, explains] / residuals.scale[explains]
    if excerpt.related_inputs is None:
        found = list(_rows_of_neighbours(excerpt, a, fitted, own, usual, is_bad))
        if found:
            yield from found
            return
    yield from _foreign_rows(excerpt, a, fitted, usual, np.flatnonzero(is_bad))


def _misfit(differences: Floats) -> Floats:
    """Return the sum of squares of each row, none above the limit."""
    squares = np.square(differences)
    np.minimum(squares, MAX_SQUARE, out=squares)
    return squares @ np.ones(squares.shape[1], squares.dtype)


def _rows_of_neighbours(
    excerpt: Excerpt, a: Floats, fitted: Floats, own: Floats, usual: float, is_bad: Floats
) -> Iterator[Check]:
    """Yield a check where bad rows fit the inputs of a neighbouring row."""
    bad = np.flatnonzero(is_bad)

    def fits(lag: int) -> Floats:
        """Return whether each bad row fits the inputs `lag` rows later."""
        other = _misfit(a[bad] - fitted[(bad + lag) % len(a)])
        return other < np.minimum(FITTING_SHARE * own[bad], FITTING_RATIO * usual)

    lags = [lag for lag in range(-MAX_NEIGHBOUR, MAX_NEIGHBOUR + 1) if lag]
    fitting = {lag: fits(lag) for lag in lags}
    counts = {lag: int(fitting[lag].sum()) for lag in lags}
    lag = max(lags, key=lambda k: counts[k])
    n_fitting = int(np.count_nonzero(np.any(list(fitting.values()), axis=0)))
    if counts[lag] < MIN_MISPLACED_ROWS or n_fitting < MIN_SHARE_OF_BAD_ROWS * len(bad):
        return
    generator = np.random.default_rng(0)
    first_far = MAX_LAG + 40
    far_lags = generator.integers(first_far, excerpt.n - first_far, N_FAR_LAGS)
    by_chance = (sum(fits(int(far)).sum() for far in far_lags) + 1) / N_FAR_LAGS
    p_value = float(poisson_tail(counts[lag], by_chance)) * len(lags)
    if p_value >= level(excerpt):
        return
    rows = bad[np.any(list(fitting.values()), axis=0)]
    capacity = capacity_of_rows(excerpt.residuals, len(rows))
    is_swapped = min(counts[1], counts[-1]) > FITTING_SHARE * max(counts.values())
    direction = "before" if lag < 0 else "after"
    how = f"hold those of {counted(abs(lag), 'row')} {direction}"
    if is_swapped:
        how = "have changed places with a neighbour"
    yield finding(
        f"{len(rows)} of {excerpt.n} rows fit the inputs of a neighbouring row and not their own "
        f"(rows {numbers(excerpt.rows[rows])}): they {how}, as when packets arrive out of order "
        "or a trigger slips",
        cause="swapped rows",
        next_step="put them in order, or leave them out",
        in_short="rows out of order",
        capacity=capacity,
        p_value=p_value,
        rows=excerpt.rows[rows],
        lag=lag,
    )


def _foreign_rows(
    excerpt: Excerpt, a: Floats, fitted: Floats, usual: float, bad: Integers
) -> Iterator[Check]:
    """Yield a check where bad rows fit the inputs of some other row, more often than by chance."""
    residuals = excerpt.residuals
    inputs = excerpt.scaled_inputs
    generator = np.random.default_rng(0)
    is_sequence = excerpt.of_sequence
    if not is_sequence and _are_neighbours(inputs, bad, generator):
        return
    if is_sequence and follow_inputs(residuals, bad):
        return
    if _are_neighbours(fitted, bad, generator):
        return
    compared = bad
    if len(bad) > MAX_COMPARED_ROWS:
        compared = generator.choice(bad, MAX_COMPARED_ROWS, replace=False)
    shuffled = inputs[generator.permutation(len(inputs))]
    typical_distance = float(np.median(np.sum((shuffled - inputs) ** 2, axis=1)))

    def fits_elsewhere(rows: Floats) -> int:
        """Return how many rows of readouts fit the inputs of a distant row."""
        count = 0
        for values, row in zip(rows, compared, strict=True):
            misfit = _misfit(values - fitted)
            nearest = int(np.argmin(misfit))
            distance = float(np.sum((inputs[nearest] - inputs[row]) ** 2))
            is_distant = is_sequence or distance > DISTANT_INPUTS * typical_distance
            count += misfit[nearest] < 2 * usual and is_distant and nearest != row
        return count

    found = fits_elsewhere(a[compared])
    # Without a mistake, the residuals of one bad row could as well be those of another one.
    exchanged = generator.permutation(len(compared))
    left = a[compared] - fitted[compared]
    by_chance = fits_elsewhere(fitted[compared] + left[exchanged])
    chance = (by_chance + 1) / (len(compared) + 2)
    p_value = binomial_tail(found, len(compared), chance)
    if p_value >= level(excerpt) or found < MIN_MISPLACED_ROWS:
        return
    n_foreign = len(bad) * found / len(compared)
    capacity = capacity_of_rows(residuals, n_foreign)
    yield finding(
        f"about {n_foreign:.0f} of {excerpt.n} rows fit the inputs of some other row and not "
        f"their own (among rows {numbers(excerpt.rows[bad])}): they belong to another place in the "
        "table, or to another table",
        cause="foreign rows",
        next_step="find out where they come from",
        in_short="rows of another place",
        capacity=capacity,
        p_value=p_value,
        rows=excerpt.rows[bad],
    )


def capacity_of_rows(residuals: Residuals, n_rows: float) -> float:
    """Return the capacity that is lost where so many rows do not hold their inputs."""
    return residuals.held_capacity * n_rows / residuals.n_rows


def _are_neighbours(points: Floats, rows: Integers, generator: np.random.Generator) -> bool:
    """Return whether rows are nearest neighbours of each other more often than by chance."""
    compared = rows
    if len(rows) > MAX_ROWS_FOR_NEIGHBOURS:
        compared = generator.choice(rows, MAX_ROWS_FOR_NEIGHBOURS, replace=False)
    hits = int(np.isin(nearest_rows(points, compared), rows).sum())
    p_value = binomial_tail(hits, len(compared), len(rows) / len(points))
    return p_value < MIN_CHANCE_OF_NEIGHBOURS


def follow_inputs(residuals: Residuals, rows: Integers) -> bool:
    """Return whether rows of a sequence come after some inputs far more than after others.

    Rows from elsewhere come after any inputs. Only those stand out, however, whose own inputs give
    other readouts, so a small difference tells nothing.
    """
    is_low = (residuals.fit.functions.degrees > 0) & (residuals.fit.functions.degrees <= 2)
    values = residuals.values[is_low]
    values = values - values.mean(axis=1, keepdims=True)
    means = values[:, rows].mean(axis=1) / np.maximum(values.std(axis=1), SMALLEST_DEVIATION)
    by_chance = MAX_STANDARD_ERRORS_OF_MEAN / np.sqrt(len(rows))
    return bool(np.abs(means).max(initial=0.0) > max(MAX_MEAN_OF_FUNCTION, by_chance))


def nearest_rows(points: Floats, rows: Integers, among: int | None = None) -> Integers:
    """Return for each of some rows the nearest other row, of all or of the first ones."""
    others = points[:among]
    # One product gives |q|² - 2 p·q, which is the squared distance but for |p|².
    squares = np.sum(others**2, axis=1, keepdims=True)
    with_squares = np.concatenate([others, squares], axis=1)
    factors = np.concatenate([-2 * points[rows], np.ones((len(rows), 1), points.dtype)], axis=1)
    distances = factors @ with_squares.T
    if among is None:
        distances[np.arange(len(rows)), rows] = np.inf
    return np.argmin(distances, axis=1)
