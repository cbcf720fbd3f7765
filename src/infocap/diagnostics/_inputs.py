"""Tests of the inputs: are they as declared, has each an effect, and does any come twice?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._formatting import join_names
from ..basis import DiscreteFamily
from ..errors import Check
from ..samples import Hold, suggest_domain
from ..typing import Floats, Integers
from ._chance import normal_scores, poisson_tail
from ._exact import equal_rows
from ._excerpt import FALSE_ALARM_OF_VALUES, Excerpt
from ._finding import finding
from ._holds import follows_a_course, hold_of_inputs
from ._residuals import MAX_RESIDUAL
from ._rows import nearest_rows
from ._sequences import MAX_CORRELATION, no_independent_inputs
from ._values import FREQUENCY_RATIO, MIN_EQUAL_IN_SAMPLE, MIN_VALUES, largest_count_beside

# Values that an input takes below which it was written with too few digits: rounding is then 1e-4
# of its variance. As many rows for each value show that there are no more.
MAX_VALUES_OF_COARSE_INPUT = 64
MIN_ROWS_PER_VALUE = 4
# Standard errors by which the mean of a function of the inputs may differ from zero.
MAX_STANDARD_ERRORS = 5.0
# Functions whose means are looked at: a rare large value decides the mean of others.
MAX_DEGREE = 4
MAX_FOURTH_MOMENT_PER_ROW = 0.1
# Functions of one input that tell whether it is as declared over the part that it fills.
N_FUNCTIONS_OF_ONE_INPUT = 2
# Parts of the rows whose means tell how far the mean of related inputs scatters.
N_PARTS = 16
# Largest part of the domain at one end that chance may leave empty; with fewer rows nothing is
# said.
MAX_EMPTY_END = 0.2
# Rows per readout from which an input without effect is looked for; the capacity that the functions
# of each other input must have; and the largest part of it that the input could have unseen, for a
# note and for a warning.
MIN_ROWS_PER_READOUT_FOR_EFFECTS = 4
MIN_CAPACITY_OF_OTHER_INPUTS = 0.3
MAX_UNSEEN_SHARE_OF_NOTE = 0.25
MAX_UNSEEN_SHARE_OF_WARNING = 0.1
# Times the power by chance from which functions with an input show that products hold it.
TIMES_OF_CHANCE = 3
# With fewer rows or readouts there is at most a note: a channel may hardly see an input.
MIN_ROWS_FOR_WARNING = 1000
MIN_RANK_FOR_WARNING = 4
# Such a part of the directions must be explained but for this part of their variance.
MIN_EXPLAINED_DIRECTIONS = 0.1
MAX_UNEXPLAINED_FOR_WARNING = 0.2
# Standard deviations beyond which rows that differ in one input differ in their residuals.
MIN_DEVIATIONS_OF_EFFECT = 3.0
# Rows among which equal inputs are looked for; more take seconds to put in order.
MAX_ROWS_FOR_EQUAL_INPUTS = 1 << 20
# Rows with equal inputs that a finding needs, and how many times those that chance allows.
MIN_EQUAL_INPUTS = 5
MIN_RATIO_TO_CHANCE = 5.0
# Expected number of triples from which their absence shows that rows come in pairs, and the largest
# part of it that may be there.
MIN_EXPECTED_TRIPLES = 20.0
MAX_SHARE_OF_TRIPLES = 0.2
# Rows equal to the first that may be the beginning of a second copy.
MAX_BEGINNINGS = 8
# What stands in place of the error bar where inputs are not as declared.
OTHER_DISTRIBUTION = "inputs not of the declared distribution"


@dataclass(frozen=True)
class FilledPart:
    """The part of its domain that an input fills."""

    low: float
    high: float
    share: float


def inputs_off(excerpt: Excerpt) -> Iterator[Check]:
    """Yield checks of inputs with other digits, range, shape or correlations than declared."""
    families = excerpt.low.families
    discrete = {k for k, family in enumerate(families) if isinstance(family, DiscreteFamily)}
    continuous = [k for k in range(len(families)) if k not in discrete]
    coarse = _coarse_inputs(excerpt, continuous)
    if coarse:
        yield _check_of_digits(coarse)
    frequent = _frequent_inputs(excerpt, [k for k in continuous if k not in coarse])
    for k, value in frequent.items():
        yield _check_of_frequent_input(excerpt, k, value)
    partly_filled = {}
    if excerpt.samples.sqrt_sample_weight is None:
        others = [k for k in continuous if k not in coarse]
        partly_filled = _partly_filled_inputs(excerpt, others)
    if partly_filled:
        yield _check_of_range(excerpt, partly_filled)
    if excerpt.samples.sqrt_sample_weight is None:
        yield from _check_of_moments(excerpt, discrete | set(coarse) | set(partly_filled))


def named(inputs: Iterable[int]) -> str:
    """Return the names of inputs."""
    return join_names([f"u{k + 1}" for k in inputs])


def _coarse_inputs(excerpt: Excerpt, inputs: Iterable[int]) -> dict[int, Floats]:
    """Return the values of inputs that take few of them."""
    if excerpt.n < MIN_ROWS_PER_VALUE * MAX_VALUES_OF_COARSE_INPUT:
        return {}
    values = {k: np.unique(excerpt.u[excerpt.some, k]) for k in inputs}
    return {k: v for k, v in values.items() if 1 < len(v) <= MAX_VALUES_OF_COARSE_INPUT}


def _check_of_digits(coarse: dict[int, Floats]) -> Check:
    values = next(iter(coarse.values()))
    return finding(
        f"{named(coarse)} takes only {len(values)} values, in steps of "
        f"{np.diff(values).min():.3g}, as if written with too few digits",
        cause="rounded inputs",
        next_step="keep all digits that were sent, or use basis.table for inputs on a few levels",
        in_short="inputs rounded",
        inputs=[*coarse],
        values=len(values),
    )


def _frequent_inputs(excerpt: Excerpt, inputs: list[int]) -> dict[int, float]:
    """Return the value of each input, if any, that comes far more often than those beside it.

    Where an input keeps a value for several rows, only the first of them counts.
    """
    apart = MIN_EQUAL_IN_SAMPLE - 1
    some = np.sort(excerpt.u[excerpt.some][:, inputs], axis=0)
    has_equal = np.any(some[apart:] == some[:-apart], axis=0)
    frequent = {}
    for k in [k for k, is_equal in zip(inputs, has_equal, strict=True) if is_equal]:
        column = excerpt.u[:, k]
        is_new = np.append(True, np.diff(column) != 0)
        values, counts = np.unique(column[is_new], return_counts=True)
        if len(values) < MIN_VALUES:
            continue
        beside = largest_count_beside(counts)
        top = int(np.argmax(counts - FREQUENCY_RATIO * beside))
        chance = poisson_tail(counts[top], 2 * beside[top] + 0.5) * len(values) * len(inputs)
        is_often = counts[top] > FREQUENCY_RATIO * beside[top]
        if is_often and chance < FALSE_ALARM_OF_VALUES * excerpt.share:
            frequent[k] = float(values[top])
    return frequent


def _check_of_frequent_input(excerpt: Excerpt, k: int, value: float) -> Check:
    column = excerpt.u[:, k]
    is_at_end = value in (column.min(), column.max())
    return finding(
        f"{named([k])} takes the value {value:.6g} in {np.mean(column == value):.1%} of the "
        "rows, far more often than the values beside it: a source or a meter at the end of its "
        "range, or values that were filled in",
        cause="domain" if is_at_end else "shape of inputs",
        next_step="give the values that were sent, and leave out rows that were filled in",
        in_short=OTHER_DISTRIBUTION,
        rows=excerpt.rows[column == value],
        inputs=[k],
    )


def _partly_filled_inputs(excerpt: Excerpt, inputs: Iterable[int]) -> dict[int, FilledPart]:
    """Return the parts of their domains that inputs fill which leave an end of it empty."""
    if excerpt.related_inputs is not None:
        return {}  # Inputs in an order of their own may keep a distance to the ends.
    parts = {k: _filled_part(excerpt, k) for k in inputs}
    return {k: part for k, part in parts.items() if part is not None}


def _filled_part(excerpt: Excerpt, k: int) -> FilledPart | None:
    """Return the range of an input that is as declared but for an empty end; else None."""
    family = excerpt.low.families[k]
    column = excerpt.u[:, k]
    low = float(column.min())
    high = float(column.max())

    def reaches_both_ends(n: int) -> bool:
        """Return whether so many inputs would leave ends of this size empty by chance."""
        empty_end = -np.log(FALSE_ALARM_OF_VALUES * excerpt.share) / n
        if empty_end > MAX_EMPTY_END:
            return True
        first, last = family.quantile(np.array([empty_end, 1 - empty_end]))
        return bool(low <= first and last <= high)

    if reaches_both_ends(excerpt.n):
        return None
    n = _number_of_inputs(excerpt)  # is smaller where inputs were measured several times
    if reaches_both_ends(n):
        return None
    start, stop = family.quantile(np.array([0.5 / n, 1 - 0.5 / n]))
    stretched = start + (column - low) * (stop - start) / max(high - low, np.finfo(float).tiny)
    values = family.values(family.standard(stretched), 1 + N_FUNCTIONS_OF_ONE_INPUT)[1:]
    if np.abs(values.sum(axis=1)).max() >= MAX_STANDARD_ERRORS * np.sqrt(n):
        return None  # It has another shape.
    return FilledPart(low, high, float((high - low) / (stop - start)))


def _check_of_range(excerpt: Excerpt, parts: dict[int, FilledPart]) -> Check:
    k, part = next(iter(parts.items()))
    family = excerpt.low.families[k]
    start, stop = family.domain
    return finding(
        f"inputs do not follow the declared distribution ({family.distribution}): {named(parts)} "
        f"runs from {part.low:.4g} to {part.high:.4g} and fills {part.share:.0%} of its domain, "
        f"{start:g} to {stop:g}",
        cause="domain",
        next_step=suggest_domain(part.low, part.high, family, excerpt.samples.basis),
        in_short=OTHER_DISTRIBUTION,
        inputs=[*parts],
        share=part.share,
    )


def _check_of_moments(excerpt: Excerpt, already_told: set[int]) -> Iterator[Check]:
    """Yield a check where the mean of a function of the inputs is not zero."""
    has_input = excerpt.low.indices[1:] > 0  # (functions, inputs)
    is_known = np.any(has_input[:, sorted(already_told)], axis=1)
    max_moment = MAX_FOURTH_MOMENT_PER_ROW * excerpt.n
    is_tame = excerpt.low.fourth_moments[1:] < max_moment
    is_tame &= excerpt.low.degrees[1:] <= MAX_DEGREE
    z = np.abs(_means_in_standard_errors(excerpt)) * (is_tame & ~is_known)
    if z.max(initial=0.0) <= MAX_STANDARD_ERRORS:
        return
    # A function of one input tells more than one of several.
    of_one_input = z * (np.sum(has_input, axis=1) == 1)
    if of_one_input.max() > MAX_STANDARD_ERRORS:
        z = of_one_input
    worst = int(np.argmax(z))
    inputs = np.flatnonzero(has_input[worst]).tolist()
    names = " and ".join(f"u{k + 1}" for k in inputs)
    label = excerpt.low.label(worst + 1)
    mean = excerpt.means[worst] / np.sqrt(excerpt.n)
    size = f"the mean of {label} is {mean:.3g}, {z[worst]:.0f} standard errors from 0"
    families = ", ".join(dict.fromkeys(family.distribution for family in excerpt.low.families))
    other = f"inputs do not follow the declared distribution ({families})"
    values: dict[str, Any] = {
        "function": label,
        "standard_errors": float(z[worst]),
        "inputs": inputs,
    }
    is_of_pair = len(inputs) == 2 and excerpt.low.degrees[worst + 1] == 2
    if is_of_pair and abs(mean) > MAX_CORRELATION:
        yield no_independent_inputs(
            f"{names} have the correlation {mean:.2g}", "correlated inputs", **values
        )
    elif len(inputs) == 1:
        yield finding(
            f"{other}: {names} has another shape: {size}",
            cause="shape of inputs",
            next_step="use the `family` of the true distribution, or basis.samples(recorded "
            "inputs)",
            in_short=OTHER_DISTRIBUTION,
            **values,
        )
    else:
        yield finding(
            f"{other}: {names} are correlated: {size}",
            cause="correlated inputs",
            next_step='draw each input by itself, or use `law="recorded"`',
            in_short=OTHER_DISTRIBUTION,
            **values,
        )


def _means_in_standard_errors(excerpt: Excerpt) -> Floats:
    """Return the means of the functions in standard errors.

    Rows whose inputs are related count as less than their number: there the standard errors are
    those of the means of 16 parts, if they are larger.
    """
    if excerpt.related_inputs is None:
        if np.abs(excerpt.means).max(initial=0.0) <= MAX_STANDARD_ERRORS:
            return excerpt.means
        # Inputs that were measured several times count once.
        return excerpt.means * np.sqrt(_number_of_inputs(excerpt) / excerpt.n)
    # `y` is centred and scaled, so the means of its parts are the deviations from the mean.
    parts = np.array([part.mean(axis=1) for part in np.array_split(excerpt.y, N_PARTS, axis=1)])
    relative_error = parts.std(axis=0, ddof=1) / np.sqrt(N_PARTS) * np.sqrt(excerpt.n)
    return excerpt.means / np.maximum(2 * relative_error, 1)


def _number_of_inputs(excerpt: Excerpt) -> int:
    """Return the number of rows whose inputs differ from those of all others but for repeats."""
    repeated, _ = equal_rows(excerpt.u)
    return excerpt.n - len(repeated)


def without_effect(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where no readout depends on an input."""
    n = excerpt.n
    rank = excerpt.residuals.rank
    if n < MIN_ROWS_PER_READOUT_FOR_EFFECTS * rank:
        return
    has_input = excerpt.low.indices[1:] > 0  # (functions, inputs)
    is_single = np.sum(has_input, axis=1) == 1
    power = excerpt.residuals.power_of_functions
    # By chance each function has the power `rank`.
    n_single = np.sum(has_input[is_single], axis=0)
    held = power[is_single] @ has_input[is_single] - rank * n_single
    least_seen = (
        np.array([excerpt.limit(int(rank * count)) for count in n_single]) - rank * n_single
    )
    in_products = power @ has_input - TIMES_OF_CHANCE * rank * np.sum(has_input, axis=0)
    is_dead = (held < least_seen) & (in_products < 0)
    if not is_dead.any() or is_dead.all():
        return
    held_by_others = held[~is_dead].mean()
    largest_unseen = least_seen[is_dead].max()
    if held_by_others < MIN_CAPACITY_OF_OTHER_INPUTS * n:
        return
    if largest_unseen > MAX_UNSEEN_SHARE_OF_NOTE * held_by_others:
        return
    dead = [k for k in np.flatnonzero(is_dead).tolist() if not _acts_on_residuals(excerpt, k)]
    if not dead:
        return
    # Where much is unexplained, functions of high degree may hide the effect.
    explained = np.mean(excerpt.residuals.scale**2 < MAX_UNEXPLAINED_FOR_WARNING)
    is_clear = (
        n >= MIN_ROWS_FOR_WARNING
        and rank >= MIN_RANK_FOR_WARNING
        and largest_unseen < MAX_UNSEEN_SHARE_OF_WARNING * held_by_others
        and explained >= MIN_EXPLAINED_DIRECTIONS
    )
    yield finding(
        f"{named(dead)} has no effect on any readout",
        cause="no effect",
        next_step="check that its source is connected, and that these are the values that were "
        "sent",
        in_short="an input without effect",
        is_note=not is_clear,
        inputs=dead,
    )


def _acts_on_residuals(excerpt: Excerpt, k: int) -> bool:
    """Return whether what the fit leaves depends on an input, as where only high degrees see it.

    Rows that are nearest to each other by the other inputs differ the more, the more they differ in
    this one. Without effect their difference in it is independent of all else.
    """
    others = np.delete(excerpt.scaled_inputs, k, axis=1)
    rows = excerpt.some
    nearest = nearest_rows(others, rows)
    distance = np.abs(excerpt.scaled_inputs[rows, k] - excerpt.scaled_inputs[nearest, k])
    standardised = excerpt.residuals.standardised.clip(-MAX_RESIDUAL, MAX_RESIDUAL)
    difference = np.sum((standardised[rows] - standardised[nearest]) ** 2, axis=1)
    scores = normal_scores(np.stack([distance, difference], axis=1))
    correlation = np.corrcoef(scores, rowvar=False)[0, 1]
    return bool(correlation * np.sqrt(len(rows)) > MIN_DEVIATIONS_OF_EFFECT)


def counted_twice(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where rows have the inputs of another row: stacked data, or repeats."""
    if excerpt.first > 0:
        return  # The first excerpt looks at all rows.
    u, x, rows = _whole_data(excerpt)
    families = excerpt.low.families
    continuous = [k for k, f in enumerate(families) if not isinstance(f, DiscreteFamily)]
    hold = hold_of_inputs(excerpt)
    if hold is not None:
        if follows_a_course(excerpt, hold):
            return  # The rows are virtual nodes, of which `held_inputs` tells.
        first, second = _measured_in_a_row(hold, len(u))
    elif not continuous:
        first, second = _second_copy(np.hstack([u, x]))
    elif _n_equal(u[:, continuous[0]]) < MIN_EQUAL_INPUTS:
        return
    else:
        first, second = _equal_inputs(u)
    if not len(second):
        return
    values: dict[str, Any] = {"rows": rows[second], "first_rows": rows[first].tolist()}
    if hold is not None:
        values["times"] = hold.rows_per_step
        equal_inputs = f"each input was measured {hold.rows_per_step} times in a row"
    else:
        equal_inputs = f"{len(second)} of {len(u)} rows have the inputs of another row"
    if not np.array_equal(x[first], x[second]):
        next_step = "give them as `repeats` (infocap diagnose --fix)"
        if hold is not None and hold.rows_per_step > 2:
            next_step = "average them, or keep two of each input, the second ones as `repeats`"
        yield finding(
            f"{equal_inputs} with other readouts: they are repeats, which make error bars too "
            "short",
            cause="repeats",
            next_step=next_step,
            in_short="rows counted twice",
            **values,
        )
        return
    next_step = "keep one copy of them"
    if continuous:  # rows of inputs on a few levels may be equal by law
        next_step = "keep one copy of them (infocap diagnose --fix)"
    yield finding(
        f"{equal_inputs}, and their readouts are equal: the data are stacked, which makes error "
        "bars too short",
        cause="stacked",
        next_step=next_step,
        in_short="rows counted twice",
        **values,
    )


def _whole_data(excerpt: Excerpt) -> tuple[Floats, Floats, Integers]:
    """Return inputs, readouts and row numbers of the whole data set where it is in memory."""
    samples = excerpt.samples
    n = samples.n_samples
    if excerpt.share == 1 or not samples.in_memory or n > MAX_ROWS_FOR_EQUAL_INPUTS:
        return excerpt.u, excerpt.x, excerpt.rows
    u = samples.u.read(0, n, on_host=True)
    x = samples.x.read(0, n, on_host=True)
    return u, x, samples.x.given_rows(np.arange(n))


def _measured_in_a_row(hold: Hold, n_rows: int) -> tuple[Integers, Integers]:
    """Return the first row of each step, once for each of its other rows, and these."""
    rows = np.arange(hold.offset, n_rows)
    place = (rows - hold.offset) % hold.rows_per_step
    is_again = place > 0
    return (rows - place)[is_again], rows[is_again]


def _n_equal(column: Floats) -> int:
    """Return how many values of a column have come before."""
    in_order = np.sort(column)
    return int(np.count_nonzero(in_order[1:] == in_order[:-1]))


def _equal_inputs(u: Floats) -> tuple[Integers, Integers]:
    """Return rows whose inputs come again, and the next such row; none where it is chance."""
    _, place, count = np.unique(u, axis=0, return_inverse=True, return_counts=True)
    n_again = len(u) - len(count)
    by_chance = _n_pairs_by_chance(u)
    # By chance, and from a small table of inputs, some come three times.
    expected_triples = 2 / 3 * np.sum(count == 2) ** 2 / max(np.sum(count == 1), 1)
    few_triples = np.sum(count > 2) < MAX_SHARE_OF_TRIPLES * expected_triples
    in_pairs = expected_triples > MIN_EXPECTED_TRIPLES and few_triples
    are_many = n_again >= MIN_RATIO_TO_CHANCE * by_chance + 2 * MIN_EQUAL_INPUTS
    if n_again < MIN_EQUAL_INPUTS or not (are_many or in_pairs):
        return np.arange(0), np.arange(0)
    order = np.argsort(place.ravel(), kind="stable")
    again = np.flatnonzero(np.diff(place.ravel()[order]) == 0)
    return order[again], order[again + 1]


def _n_pairs_by_chance(u: Floats) -> float:
    """Return how many pairs of equal rows the values of independent inputs allow."""
    n_pairs = len(u) ** 2 / 2
    chance = 1.0
    for column in u.T:
        counts = np.unique(column, return_counts=True)[1]
        chance *= (np.sum(counts * (counts - 1.0)) / 2 + 1) / n_pairs
    return float(n_pairs * chance)


def _second_copy(rows: Floats) -> tuple[Integers, Integers]:
    """Return rows from which on all come again in their order, and those again; none if none do."""
    like_the_first = np.flatnonzero(np.all(rows[1:] == rows[0], axis=1)) + 1
    for start in like_the_first[:MAX_BEGINNINGS]:
        again = np.arange(start, min(2 * start, len(rows)))
        if len(again) >= MIN_EQUAL_INPUTS and np.array_equal(rows[again], rows[again - start]):
            return again - start, again
    return np.arange(0), np.arange(0)
