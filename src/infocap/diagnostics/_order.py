"""Tests of order: readouts that know inputs of other rows.

Each statistic is a sum of squares of correlations between residuals and functions that they must
not know. Its first probability is that of a chi-squared number. Residuals have heavy tails in small
data sets, so a probability that is worth a word is computed once more from random orders of the
same rows (with memory: from inputs of far rows), and only that one counts.

The size of a finding is the capacity that the forbidden functions hold in the whitened readouts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.fft

from .._formatting import counted, join_names
from ..errors import Check
from ..typing import Floats, Integers
from ._chance import chi_squared_tail, gamma_tail
from ._excerpt import Excerpt
from ._finding import MIN_CAPACITY_OF_WARNING, finding
from ._residuals import Residuals, powers_of_correlations, uncorrelated

# Probability that chance alone raises a warning on a whole data set, and among how many tests it is
# shared: each test compares its p-value with the ratio.
FALSE_ALARM_PER_DATA_SET = 1e-3
N_TESTS = 25
# A first p-value below this is computed again from random orders. Heavy tails make first p-values
# too small, never a hundred times too large.
P_VALUE_TO_LOOK_AGAIN = 1e-3
# Random orders, or far rows, from which a p-value is computed. A gamma distribution with their mean
# and variance gives its tail.
N_RANDOM_ORDERS = 200
# Rows up to which inputs of neighbours are looked at, in either direction.
MAX_LAG = 8
# Functions of low degree whose values in other rows are looked for.
N_SCANNED_FUNCTIONS = 12
MAX_SCANNED_DEGREE = 3
# Values of functions, and guesses of them, end at so many standard deviations.
MAX_GUESS = 3.0
# Rows below which nothing is said about their order.
MIN_ROWS_OF_ORDER = 128
# Rows up to which inputs are compared with each other.
MAX_LAG_OF_INPUTS = 32
# Functions of neighbouring inputs that are compared, and the sum of their squared correlations from
# which on the order of the rows has a meaning of its own.
N_RELATED_FUNCTIONS = 8
MIN_RELATION_OF_INPUTS = 0.005
# Parts of the run whose mean inputs may differ.
N_PARTS_OF_INPUTS = 16
# Below the first p-value the rows of the fit show that readouts hold functions of their inputs, and
# below the second one random orders of all rows do; only others are said to hold nothing.
CLEAR_P_VALUE = 1e-12
MAX_P_VALUE_OF_OWN = 0.01
N_RANDOM_ORDERS_OF_ALL = 50
# Sum of squared correlations of functions of neighbouring inputs from which these are sorted.
MIN_RELATION_OF_SORTED_INPUTS = 0.3
# Functions that are looked for at all shifts, and rows that must overlap.
N_FUNCTIONS_OF_FAR_SHIFTS = 6
MIN_COMMON_ROWS = 64
# Delays and functions that tell whether the rows of a sequence are in order.
MAX_PROFILE_DELAY = 24
MIN_PROFILE_DELAY = 3
N_PROFILE_FUNCTIONS = 4
MIN_SEEN_DELAYS = 3
# A step's own inputs are all that is seen where no earlier ones hold this part of their capacity.
MAX_SHARE_OF_EARLIER_INPUTS = 0.02
# A shift: the inputs of another row fit so much better than a row's own.
SHIFT_RATIO = 5.0
# An input belongs to another row where its own holds less than this part of that one's capacity.
MAX_OWN_SHARE_OF_LATE_INPUT = 0.1
# A channel is late where its own row holds less than this part of the other row's power, beside so
# many times what chance gives.
MAX_OWN_SHARE_OF_LATE_CHANNEL = 0.1
TIMES_OF_CHANCE = 3


@dataclass(frozen=True)
class Lags:
    """How well inputs `lag` rows later (negative: earlier) are seen in the residuals."""

    lags: Integers
    power: Floats  # n times the sum of squared correlations, (lags,)
    p_value: Floats  # of each lag, for all lags together


def level(excerpt: Excerpt) -> float:
    """Return the p-value below which a test of this excerpt speaks.

    One probability of a false alarm is shared among all tests and all excerpts of a data set.

    Parameters
    ----------
    excerpt
        What a test of the data is given.

    Examples
    --------
    >>> found = []
    >>> def my_test(excerpt):
    ...     found.append(infocap.diagnostics.level(excerpt))
    ...     yield from ()
    >>> infocap.diagnostics.DATA["nothing in particular"] = my_test
    >>> u = infocap.draw(infocap.product_basis("legendre", 1, 3), 64, seed=1)
    >>> found_in_data = infocap.diagnose(u, u**2)
    >>> del infocap.diagnostics.DATA["nothing in particular"]
    >>> 0 < found[0] < 1e-3
    True
    """
    return FALSE_ALARM_PER_DATA_SET / N_TESTS * excerpt.share


# Inputs of other rows.


def lagged_correlations(a: Floats, h: Floats, lag: int) -> Floats:
    """Return the means of a(t) h(t + lag), (columns of a, columns of h)."""
    n = len(a) - abs(lag)
    if lag >= 0:
        return a[:n].T @ h[lag:] / n
    return a[-lag:].T @ h[:n] / n


def lagged_power(a: Floats, h: Floats, lag: int) -> float:
    """Return the number of rows times the sum of squared correlations at a lag."""
    return (len(a) - abs(lag)) * float(np.sum(lagged_correlations(a, h, lag) ** 2))


def lagged_capacity(a: Floats, h: Floats, lag: int) -> float:
    """Return the capacity that functions of inputs `lag` rows later hold, without its bias."""
    n = len(a) - abs(lag)
    bias = a.shape[1] * h.shape[1] / n
    return float(np.sum(lagged_correlations(a, h, lag) ** 2)) - bias


def scanned_functions(excerpt: Excerpt) -> Integers:
    """Return which of the low functions are looked for in other rows."""
    degrees = excerpt.low.degrees[1:]
    return np.flatnonzero(degrees <= MAX_SCANNED_DEGREE)[:N_SCANNED_FUNCTIONS]


def scan_lags(excerpt: Excerpt, residuals: Residuals) -> Lags:
    """Look for inputs of neighbouring rows in the residuals; of a sequence, for later ones only."""
    h = residuals.h[:, scanned_functions(excerpt)]
    e = residuals.e
    lags = np.arange(1, MAX_LAG + 1)
    if not excerpt.of_sequence:
        lags = np.concatenate([-lags[::-1], lags])
    power = np.array([lagged_power(e, h, int(lag)) for lag in lags])
    p_value = chi_squared_tail(power, e.shape[1] * h.shape[1]) * len(lags)
    if p_value.min() < P_VALUE_TO_LOOK_AGAIN:
        # Where the law of the inputs and the readouts both change along the run, they are related
        # at every lag.
        h = h - _means_of_parts(h)
        power = np.array([lagged_power(e, h, int(lag)) for lag in lags])
        draws = _power_without_relation(e, h, _far_shifts(excerpt))
        p_value = np.array([gamma_tail(value, draws) for value in power]) * len(lags)
    return Lags(lags, power, p_value)


def _far_shifts(excerpt: Excerpt) -> tuple[int, int] | None:
    """Return the shifts at which inputs of a sequence are independent of residuals; else None."""
    if not excerpt.of_sequence:
        return None
    first = excerpt.samples.basis.memory + MAX_LAG
    return first, max(excerpt.n - first, first + 1)


def _power_without_relation(
    e: Floats, h: Floats, far_shifts: tuple[int, int] | None = None
) -> Floats:
    """Return the power at a lag where rows of `e` and `h` have nothing to do with each other.

    Rows are put in random orders. Those of a sequence stay in theirs, and far rows are taken.
    """
    generator = np.random.default_rng(0)
    draws = []
    for _ in range(N_RANDOM_ORDERS):
        if far_shifts is None:
            other = h[generator.permutation(len(h))]
        else:
            other = np.roll(h, int(generator.integers(*far_shifts)), axis=0)
        draws.append(lagged_power(e, other, 0))
    return np.array(draws)


def inputs_in_order(excerpt: Excerpt) -> tuple[int, float] | None:
    """Return lag and size of the relation between inputs of neighbouring rows; None if unrelated.

    The size is the sum of squared correlations of functions of low degree.

    Rows of a sorted file, a sweep or a filtered source are not in random order, so tests of order
    say nothing there.
    """
    if excerpt.n < MIN_ROWS_OF_ORDER or not len(excerpt.y):
        return None
    h = excerpt.y[:N_RELATED_FUNCTIONS].T.clip(-MAX_GUESS, MAX_GUESS)
    if lagged_power(h, h, 1) < MIN_RELATION_OF_SORTED_INPUTS * excerpt.n:
        # Inputs whose law changes along the run are in random order all the same, so the mean of
        # each part is taken off. Inputs of few levels that are sorted would vanish with it.
        h = h - _means_of_parts(h)
    h = uncorrelated(h - h.mean(axis=0))
    lags = np.arange(1, MAX_LAG_OF_INPUTS + 1)
    power = np.array([lagged_power(h, h, int(lag)) for lag in lags])
    lag = int(lags[np.argmax(power)])
    relation = float(power.max() / (len(h) - lag))
    p_value = float(chi_squared_tail(power.max(), h.shape[1] ** 2)) * len(lags)
    if p_value < P_VALUE_TO_LOOK_AGAIN:
        p_value = gamma_tail(power.max(), _power_without_relation(h, h)) * len(lags)
    if p_value < level(excerpt) and relation > MIN_RELATION_OF_INPUTS:
        return lag, relation
    return None


def _means_of_parts(values: Floats) -> Floats:
    """Return in each row the mean of its part of the rows."""
    edges = np.linspace(0, len(values), N_PARTS_OF_INPUTS + 1).astype(int)
    n_rows = np.diff(edges)
    means = np.add.reduceat(values, edges[:-1], axis=0) / n_rows[:, None]
    return np.repeat(means, n_rows, axis=0).astype(values.dtype)


def inputs_of_other_rows(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where readouts hold inputs of other rows than their own."""
    residuals = excerpt.residuals
    if not _holds_own_inputs(excerpt, residuals):
        yield from _nothing_checks(excerpt, residuals)
        return
    if excerpt.related_inputs is not None:
        yield _note_about_order(*excerpt.related_inputs)
        return
    if excerpt.of_sequence:
        disorder = list(_disorder_of_sequence(excerpt, residuals))
        if disorder:
            yield from disorder
            return
    alignment = align(excerpt, residuals)
    if alignment.gaps or alignment.shift.any():
        yield from _alignment_checks(excerpt, alignment)
        return
    scan = scan_lags(excerpt, residuals)
    found = scan.lags[scan.p_value < level(excerpt)]
    if len(found):
        yield from _lag_checks(excerpt, residuals, scan, found)


def _disorder_of_sequence(excerpt: Excerpt, residuals: Residuals) -> Iterator[Check]:
    """Yield a check where the delays that are seen are not those of a device with memory."""
    memory = min(excerpt.samples.basis.memory, MAX_PROFILE_DELAY)
    if memory < MIN_PROFILE_DELAY:
        return
    h = residuals.h[:, :N_PROFILE_FUNCTIONS]
    draws = _power_without_relation(residuals.a, h, _far_shifts(excerpt))
    powers = [lagged_power(residuals.a, h, -delay) for delay in range(memory + 1)]
    p_values = [gamma_tail(power, draws) * len(powers) for power in powers]
    seen = [delay for delay, p_value in enumerate(p_values) if p_value < level(excerpt)]
    by_chance = float(draws.mean())
    earlier = max(powers[1:]) - by_chance
    if seen == [0] and earlier < MAX_SHARE_OF_EARLIER_INPUTS * (powers[0] - by_chance):
        yield finding(
            "readouts hold the inputs of their own step and of no earlier one: the rows were "
            "shuffled, or the device has no memory",
            cause="shuffled",
            next_step="bring the rows into their order, or use product_basis",
            in_short="rows out of order",
            p_value=p_values[0],
        )
        return
    period = int(np.gcd.reduce(seen)) if seen else 1
    if period > 1 and len(seen) >= MIN_SEEN_DELAYS:
        yield finding(
            f"readouts hold inputs at delays {join_names([str(delay) for delay in seen], 4)} "
            f"only: {period} runs are interleaved",
            cause="interleaved",
            next_step="give each as a run of its own",
            in_short="interleaved runs",
            p_value=max(p_values[delay] for delay in seen),
            period=period,
            delays=seen,
        )


def _holds_own_inputs(excerpt: Excerpt, residuals: Residuals) -> bool:
    """Return whether readouts hold functions of the inputs of their own row, or of one nearby."""
    if (
        residuals.fit.p_value < CLEAR_P_VALUE
        or _p_value_of_own_inputs(excerpt) < MAX_P_VALUE_OF_OWN
    ):
        return True
    h = residuals.h[:, scanned_functions(excerpt)]
    lags = [lag for lag in range(-MAX_LAG, MAX_LAG + 1) if lag]
    power = [lagged_power(residuals.a, h, lag) for lag in lags]
    nearby = chi_squared_tail(max(power), residuals.a.shape[1] * h.shape[1]) * len(lags)
    return bool(nearby < level(excerpt))


def _p_value_of_own_inputs(excerpt: Excerpt) -> float:
    """Return the p-value of readouts without functions of their own inputs, in random orders."""
    orthonormal = excerpt.residuals.orthonormal
    whitened = excerpt.residuals.whitened
    far_shifts = _far_shifts(excerpt)
    generator = np.random.default_rng(0)
    draws = []
    for _ in range(N_RANDOM_ORDERS_OF_ALL):
        if far_shifts is None:
            other = whitened[generator.permutation(excerpt.n)]
        else:
            other = np.roll(whitened, int(generator.integers(*far_shifts)), axis=0)
        draws.append(powers_of_correlations(orthonormal, other))
    observed = powers_of_correlations(orthonormal, whitened)
    p_values = [
        gamma_tail(power, np.array(powers))
        for power, powers in zip(observed, zip(*draws, strict=True), strict=True)
    ]
    return 2 * min(p_values)


def _nothing_checks(excerpt: Excerpt, residuals: Residuals) -> Iterator[Check]:
    """Yield a check of readouts without their inputs: shifted far, reversed, or of another run."""
    functions = scanned_functions(excerpt)[:N_FUNCTIONS_OF_FAR_SHIFTS]
    h = residuals.h[:, functions]
    degrees_of_freedom = residuals.a.shape[1] * len(functions)
    for is_reversed in (False, True):
        lags, power = _power_at_all_lags(residuals.a, h[::-1] if is_reversed else h)
        if not is_reversed:
            # The directions were chosen by what they hold of their own inputs, be it by chance.
            memory = excerpt.samples.basis.memory if excerpt.of_sequence else 0
            power[(lags <= 0) & (lags >= -memory)] = 0.0
        best = int(np.argmax(power))
        p_value = float(chi_squared_tail(power[best], degrees_of_freedom)) * 2 * len(lags)
        if p_value >= level(excerpt):
            continue
        shift = -int(lags[best])
        if excerpt.related_inputs is not None:
            return  # Readouts may be smooth as the inputs are.
        how = "reversed" if is_reversed else f"shifted by {shift:+d} samples"
        yield finding(
            f"readouts look {how} against the inputs throughout: nothing of the inputs is seen in "
            "their own rows",
            cause="shift",
            next_step="check the trigger and the order of both tables, then realign the rows "
            "(infocap diagnose --fix)",
            in_short="readouts shifted against the inputs",
            p_value=p_value,
            rows=[],
            lag=-shift,
            reversed=is_reversed,
            shifts=[[excerpt.first, excerpt.first + excerpt.n, shift]],
        )
        return
    yield finding(
        "nothing of the inputs is seen in the readouts, at any shift and in either order",
        cause="nothing",
        next_step="check that these are the inputs that were sent (not those of another seed or "
        "run), and that the source was connected",
        in_short="nothing of the inputs is seen",
    )


def _power_at_all_lags(a: Floats, h: Floats) -> tuple[Integers, Floats]:
    """Return all lags at which enough rows overlap, and the power at each of them.

    The rows that overlap may vary more or less than all of them, as in a sorted file.
    """
    n = len(a)
    spectrum = np.conj(scipy.fft.rfft(a, 2 * n, axis=0))
    total = np.zeros((2 * n, a.shape[1]))
    for k in range(h.shape[1]):
        correlations = scipy.fft.irfft(spectrum * scipy.fft.rfft(h[:, [k]], 2 * n, axis=0), axis=0)
        total += correlations**2
    lags = np.concatenate([np.arange(n), np.arange(-n, 0)])
    n_common = n - np.abs(lags)
    enough = n_common >= max(MIN_COMMON_ROWS, n // 8)
    # The first rows overlap at positive lags, the last ones at negative lags.
    squares = np.zeros((n + 1, a.shape[1]))
    np.cumsum(a**2, axis=0, out=squares[1:])
    stops = np.where(lags >= 0, n_common, n)
    starts = np.where(lags >= 0, 0, n - n_common)
    energy = np.maximum(squares[stops] - squares[starts], np.finfo(float).tiny)
    return lags[enough], np.sum(total / energy, axis=1)[enough]


def _note_about_order(lag: int, correlation: float) -> Check:
    """Return the note that the order of the rows tells nothing."""
    return finding(
        f"inputs of neighbouring rows are related (at lag {lag}, squared correlations of low "
        f"functions sum to {correlation:.2g}): a sweep, a sorted file, a low-discrepancy design "
        "in its own order, or a filtered source. The order of the rows then tells nothing, so "
        "shifts, memory, drift and periods were not looked for",
        cause="order of inputs",
        next_step="measure in random order, or give the times of the rows",
        is_note=True,
        lag=lag,
    )


def _lag_checks(
    excerpt: Excerpt, residuals: Residuals, scan: Lags, found: Integers
) -> Iterator[Check]:
    """Yield a check that names what the lags that were found mean."""
    h = residuals.h[:, scanned_functions(excerpt)]
    capacities = {int(lag): lagged_capacity(residuals.whitened, h, int(lag)) for lag in found}
    lag = max(capacities, key=lambda k: capacities[k])
    values = {
        "lag": lag,
        "p_value": float(scan.p_value[scan.lags == lag][0]),
        "capacity": capacities[lag],
    }
    if excerpt.of_sequence:
        yield _early_check(values)
        return
    late_inputs = _inputs_of_another_row(excerpt, residuals, lag)
    if late_inputs:
        yield _late_input_check(late_inputs, values)
        return
    late_channels = _channels_of_another_row(excerpt, residuals, lag)
    if len(late_channels):
        yield _late_channels_check(excerpt, late_channels, values)
        return
    yield _neighbour_check(found, values)


def _early_check(values: dict[str, Any]) -> Check:
    """Return the check of a sequence whose readouts hold later inputs."""
    lag = values["lag"]
    return finding(
        f"readouts hold inputs that come later, u[t+{lag}]: x is {counted(lag, 'sample')} early, "
        "or was filtered forwards and backwards",
        cause="later inputs",
        next_step=f"leave out the last {counted(lag, 'row')} of x and the first {lag} of u",
        in_short="readouts ahead of the inputs",
        **values,
    )


def _late_input_check(inputs: list[int], values: dict[str, Any]) -> Check:
    """Return the check of an input whose column is not in step with the others."""
    lag = values["lag"]
    names = join_names([f"u{k + 1}" for k in inputs])
    direction = "before" if lag < 0 else "after"
    return finding(
        f"{names} of a row belongs to other readouts: those of its row hold the value {abs(lag)} "
        f"rows {direction}, and not its own, so this source is not in step with the others",
        cause="late input",
        next_step="realign its column",
        in_short="an input out of step",
        inputs=inputs,
        **values,
    )


def _late_channels_check(excerpt: Excerpt, channels: Integers, values: dict[str, Any]) -> Check:
    """Return the check of channels that come later than the others."""
    lag = values["lag"]
    names = excerpt.names(channels)
    return finding(
        f"{len(names)} of {excerpt.x.shape[1]} channels ({join_names(names)}) are shifted by "
        f"{-lag:+d} samples against the inputs and the other channels, as on a card with its own "
        "trigger",
        cause="late channels",
        next_step="realign them",
        in_short="channels shifted against each other",
        channels=names,
        **values,
    )


def _neighbour_check(found: Integers, values: dict[str, Any]) -> Check:
    """Return the check of readouts that also hold inputs of neighbouring rows."""
    lag = values["lag"]
    if np.any(found > 0) and np.any(found < 0):
        return finding(
            f"readouts also hold the inputs of rows before and after, most at lag {lag:+d}: rows "
            "were averaged, interpolated, swapped, or normalised in batches",
            cause="neighbours",
            next_step="use the rows as they were measured",
            in_short="rows that are mixed with their neighbours",
            **values,
        )
    if np.any(found > 0):
        return finding(
            f"readouts also hold inputs of later rows, most at lag {lag:+d}: they are early, or "
            "were interpolated between rows",
            cause="later inputs",
            next_step="check the trigger",
            in_short="readouts that hold later inputs",
            **values,
        )
    delays = sorted((-found).tolist())
    span = f"delay {delays[0]}" if len(delays) == 1 else f"delays {delays[0]} to {delays[-1]}"
    return finding(
        f"readouts also hold earlier inputs, at {span}: the device has memory, or a detector is "
        "slow",
        cause="memory",
        next_step="use delayed_basis, or wait longer between measurements",
        in_short="a device with memory",
        delays=delays,
        **values,
    )


def _inputs_of_another_row(excerpt: Excerpt, residuals: Residuals, lag: int) -> list[int]:
    """Return the inputs, but not all, that readouts hold at a lag and hardly at their own row."""
    indices = excerpt.low.indices[1:][scanned_functions(excerpt)]
    h = residuals.h[:, scanned_functions(excerpt)]
    n_inputs = indices.shape[1]
    late = []
    for k in range(n_inputs):
        alone = (indices[:, k] > 0) & (np.sum(indices > 0, axis=1) == 1)
        there = lagged_capacity(residuals.whitened, h[:, alone], lag)
        own = lagged_capacity(residuals.whitened, h[:, alone], 0)
        if there > MIN_CAPACITY_OF_WARNING and own < MAX_OWN_SHARE_OF_LATE_INPUT * there:
            late.append(k)
    return late if len(late) < n_inputs else []


def _channels_of_another_row(excerpt: Excerpt, residuals: Residuals, lag: int) -> Integers:
    """Return the channels that fit at a lag and not at their own row, if the others do not."""
    h = residuals.h[:, scanned_functions(excerpt)]
    scale = np.maximum(residuals.channels.std(axis=0), np.finfo(np.float32).tiny)
    standardised = residuals.channels / scale
    n = excerpt.n - abs(lag)
    at_lag = n * np.sum(lagged_correlations(standardised, h, lag) ** 2, axis=1)
    at_own = n * np.sum(lagged_correlations(standardised, h, 0) ** 2, axis=1)
    p_value = chi_squared_tail(at_lag, h.shape[1]) * len(at_lag)
    fits_there = p_value < level(excerpt)
    by_chance = TIMES_OF_CHANCE * h.shape[1]
    is_late = fits_there & (at_own < MAX_OWN_SHARE_OF_LATE_CHANNEL * at_lag + by_chance)
    if np.any(fits_there & ~is_late) or is_late.all():
        return np.arange(0)
    return np.flatnonzero(is_late)


# Rows lost or read twice.

# The part of an excerpt that agrees with no inputs at all, as where the source was off.
NOWHERE = MAX_LAG + 1
# Functions that the readouts hold best, whose agreement is followed from row to row.
N_FOLLOWED_FUNCTIONS = 4
# The largest rise of a random walk with drift -m and variance v per step exceeds r with probability
# exp(-2 m r / v). Rises must be half as large again, because steps are not normal.
SAFETY_OF_RISES = 1.5
# A part is told where its rows agree with their own inputs less than this part of the usual, and
# with the other ones at least so much.
MAX_AGREEMENT_WITH_OWN = 0.25
MIN_AGREEMENT_WITH_OTHER = 0.45


@dataclass(frozen=True)
class Alignment:
    """Which inputs the readouts of each row agree with."""

    shift: Integers  # by how many rows the readouts come later than their inputs, (rows,)
    gaps: list[tuple[int, int]]  # start and stop of parts that agree with no inputs nearby


def align(excerpt: Excerpt, residuals: Residuals) -> Alignment:
    """Find the rows whose readouts agree with inputs at another lag than the usual one.

    The readouts' linear guess of each function is compared with the function at every lag. What
    another lag gains over the usual one, added up from row to row, is a random walk that falls
    where the rows are in order, and rises where they slipped.
    """
    functions = scanned_functions(excerpt)
    usual = _usual_lag(excerpt, residuals.a, residuals.h[:, functions])
    if usual is None:
        return Alignment(np.zeros(excerpt.n, dtype=int), [])
    correlations = lagged_correlations(residuals.a, residuals.h[:, functions], usual)
    best = np.argsort(-np.sum(correlations**2, axis=0))[:N_FOLLOWED_FUNCTIONS]
    h = residuals.h[:, functions[best]]
    guess = (residuals.a @ correlations[:, best]).clip(-MAX_GUESS, MAX_GUESS)
    parts = _slipped_parts(excerpt, guess, h, usual)

    # The usual delay of a device with memory is no shift.
    expected = usual if excerpt.of_sequence else 0
    shift = np.full(excerpt.n, expected - usual)
    gaps = []
    for start, stop, lag in parts:
        if lag == NOWHERE:
            gaps.append((start, stop))
        else:
            # A part that begins or ends within the lags of an end of the excerpt reaches it.
            first = start if start > 2 * MAX_LAG else 0
            last = stop if stop < excerpt.n - 2 * MAX_LAG else excerpt.n
            shift[first:last] = expected - lag
    return Alignment(shift, gaps)


def _usual_lag(excerpt: Excerpt, a: Floats, h: Floats) -> int | None:
    """Return the lag at which most readouts agree with their inputs; None if they agree at none.

    A device may have some memory, so another lag has to be clearly better than the row's own. That
    of a sequence is the delay that is seen best.
    """
    own = lagged_power(a, h, 0)
    if not excerpt.of_sequence and own > excerpt.n * h.shape[1] / SHIFT_RATIO:
        return 0  # No other lag can be clearly better.
    lags = range(-MAX_LAG, 1 if excerpt.of_sequence else MAX_LAG + 1)
    powers = [lagged_power(a, h, lag) for lag in lags]
    if chi_squared_tail(max(powers), a.shape[1] * h.shape[1]) * len(lags) > level(excerpt):
        return None
    if not excerpt.of_sequence and own > max(powers) / SHIFT_RATIO:
        return 0
    return lags[int(np.argmax(powers))]


def _agreement(guess: Floats, h: Floats, lag: int) -> Floats:
    """Return how well guesses agree with the functions `lag` rows later, (inner rows,)."""
    stop = len(guess) - MAX_LAG
    return np.einsum("ij,ij->i", guess[MAX_LAG:stop], h[MAX_LAG + lag : stop + lag])


def _slipped_parts(
    excerpt: Excerpt, guess: Floats, h: Floats, usual: int
) -> list[tuple[int, int, int]]:
    """Return start, stop and lag of the parts that agree with the inputs at another lag."""
    own = _agreement(guess, h, usual)
    mean_agreement = float(np.mean(own))
    log_chance = np.log(excerpt.n * (2 * MAX_LAG + 2) / level(excerpt))
    parts = []
    for lag in (NOWHERE, *range(-MAX_LAG, MAX_LAG + 1)):
        if lag == usual:
            continue
        other = mean_agreement / 2 if lag == NOWHERE else _agreement(guess, h, lag)
        gain = other - own
        walk = np.concatenate([[0.0], np.cumsum(gain, dtype=float)])
        rise = walk - np.minimum.accumulate(walk)
        stop = int(np.argmax(rise))
        start = int(np.argmin(walk[: stop + 1]))
        least_rise = SAFETY_OF_RISES * log_chance * float(np.var(gain)) / (2 * mean_agreement)
        if lag == NOWHERE and rise[stop] < least_rise / 2:
            return []  # Wherever rows slipped, they agree with their own inputs no longer.
        if rise[stop] < least_rise:
            continue
        agreement = float(np.mean(own[start:stop]))
        gain_per_row = rise[stop] / (stop - start)
        if (
            agreement < MAX_AGREEMENT_WITH_OWN * mean_agreement
            and gain_per_row > MIN_AGREEMENT_WITH_OTHER * mean_agreement - agreement
        ):
            parts.append((float(rise[stop]), start + MAX_LAG, stop + MAX_LAG, lag))
    return _without_overlap(parts)


def _without_overlap(parts: list[tuple[float, int, int, int]]) -> list[tuple[int, int, int]]:
    """Return start, stop and lag of parts, of overlapping ones that with the largest rise."""
    kept: list[tuple[int, int, int]] = []
    for _, start, stop, lag in sorted(parts, reverse=True):
        if all(stop <= other_start or other_stop <= start for other_start, other_stop, _ in kept):
            kept.append((start, stop, lag))
    return sorted(kept)


def _alignment_checks(excerpt: Excerpt, alignment: Alignment) -> Iterator[Check]:
    """Yield the checks of parts without their inputs, and of parts that slipped."""
    residuals = excerpt.residuals
    held = lagged_capacity(residuals.whitened, residuals.h[:, scanned_functions(excerpt)], 0)
    for start, stop in alignment.gaps:
        yield finding(
            f"measurements {excerpt.first + start} to {excerpt.first + stop - 1} show nothing of "
            "their inputs, though others do: the source was off, or the trigger slipped far",
            cause="gap",
            next_step="leave them out",
            in_short="readouts without their inputs",
            capacity=held * (stop - start) / excerpt.n,
            rows=excerpt.rows[start:stop],
        )
    shift = alignment.shift
    if not shift.any():
        return
    edges = [0, *(np.flatnonzero(np.diff(shift)) + 1).tolist(), excerpt.n]
    shifts = []
    for start, stop in pairwise(edges):
        if shift[start]:
            shifts.append([excerpt.first + start, excerpt.first + stop, int(shift[start])])
    throughout = bool(np.all(shift == shift[0]))
    next_step = "check the trigger, then realign the rows (infocap diagnose --fix)"
    if excerpt.of_sequence:
        next_step = "check the trigger, then give the rows before and after as runs of their own"
    first_start, first_stop, first_lag = shifts[0]
    where = "throughout" if throughout else f"in measurements {first_start} to {first_stop - 1}"
    for start, stop, lag in shifts[1:4]:
        where += f", by {lag:+d} in {start} to {stop - 1}"
    yield finding(
        f"readouts look shifted by {first_lag:+d} samples against the inputs {where}: inputs of "
        "another measurement fit there, and their own do not",
        cause="shift" if throughout else "slip",
        next_step=next_step,
        in_short="readouts shifted against the inputs",
        capacity=_capacity_of_shift(excerpt, shift),
        rows=excerpt.rows[shift != 0],
        lag=-first_lag,
        shifts=shifts,
    )


def _capacity_of_shift(excerpt: Excerpt, shift: Integers) -> float:
    """Return the capacity that functions of the inputs hold more where each row has its own.

    Readouts with memory show it at the delay that they hold best.
    """
    residuals = excerpt.residuals
    h = residuals.h[:, scanned_functions(excerpt)]
    realigned = h[np.clip(np.arange(excerpt.n) - shift, 0, excerpt.n - 1)]
    lags = range(-MAX_LAG, 1) if excerpt.of_sequence else [0]
    gains = []
    for lag in lags:
        before = lagged_capacity(residuals.whitened, h, lag)
        gains.append(lagged_capacity(residuals.whitened, realigned, lag) - before)
    return max(gains)
