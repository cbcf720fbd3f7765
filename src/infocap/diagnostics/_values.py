"""Values that no device gives: codes, glitches, stale rows, clipping, rounding, mixed units; and inputs off."""

from collections.abc import Iterable, Iterator

import numpy as np

from .._formatting import join_names
from ..basis import DiscreteFamily, lowest_degrees
from ..errors import Check
from ..samples import suggest_domain
from ..typing import Floats, Integers
from ._excerpt import FALSE_ALARM_OF_VALUES, Excerpt, misfit, numbers
from ._order import MAX_LAG as LAGS

# What instruments write in place of a number: SCPI's not-a-number and infinities, full scales of converters, and nines.
CODES: tuple[float, ...] = (
    9.91e37,
    9.9e37,
    -9.9e37,
    -9999.0,
    9999.0,
    99999.0,
    -99999.0,
    -999.0,
    999.0,
)
CODES += (32767.0, -32768.0, 65535.0, 2147483647.0, -2147483648.0, 4294967295.0)
# Widths of a channel's distribution (from 2 to 98 % of the rows) outside it, beyond which a value is no measurement;
# for a known code less is enough.
FAR, NEAR = 20.0, 0.5
# Squared distance of a row from the others, relative to that of nine in ten, from which it is looked at again and
# from which it is a glitch; at most this share of the rows are.
LOOKED_AT, GLITCHED, RARE, SOME_ROWS = 15.0, 40.0, 0.03, 1024
# Standard deviations from which a channel lies outside by itself, and is left out of that distance, unless so many of
# them do; and the share of glitched rows whose neighbours by their inputs are, from which the device responds so there.
ALONE, MANY, NEIGHBOURS = 6.0, 0.2, 0.15
# Readouts that are looked at for glitches without a first sign of any: in so few, ten equal rows can hide each other.
QUICKLY = 200_000
# Rows among which equal inputs are looked for; more take seconds to put in order.
MOST_ROWS = 1 << 20
# Rows and channels that are looked at for values equal to the one before, beside a sum of all channels in every row;
# all of them where some are.
FEW_ROWS, FEW_CHANNELS = 2048, 8
# Rows per readout from which an input without effect is looked for; the capacity that the functions
# of each other input must have; and the largest part of it that the input could have unseen, for a
# note and for a warning.
MIN_ROWS_PER_READOUT_FOR_EFFECTS = 4
MIN_CAPACITY_OF_OTHER_INPUTS = 0.3
MAX_UNSEEN_SHARE_OF_NOTE = 0.25
MAX_UNSEEN_SHARE_OF_WARNING = 0.1
# With fewer rows or readouts there is at most a note: a channel may hardly see an input.
MIN_ROWS_FOR_WARNING = 1000
MIN_RANK_FOR_WARNING = 4
# Such a part of the directions must be explained but for this part of their variance.
MIN_EXPLAINED_DIRECTIONS = 0.1
MAX_UNEXPLAINED_FOR_WARNING = 0.2
# Parts of the rows whose means tell how far the mean of related inputs scatters.
N_PARTS = 16
# Part of the rows from which on rows that repeat the one before are no mistake of a few.
MAX_STALE_SHARE = 0.5
# Standard errors by which the mean of a function of the inputs may differ from zero.
STANDARD_ERRORS = 5.0
# Values that an input takes below which it was written with too few digits: rounding is then 1e-4 of its variance.
FEW_VALUES = 64
# Levels of a channel below which it is a device of a few states rather than one behind a converter.
FEW_LEVELS = 24
# Share of the noise floor that is rounding from which it is worth a note, and from which it limits the answer.
ROUNDED, LIMITED = 0.1, 0.5
# Times that values are denser in a pile at the end of a range than next to it, from which they are clipped; by how much
# they may be denser next to it than farther inside, for a smooth saturation gets denser towards its end; how much wider
# the inner half of a pile may be than the outer, for it does so inside a pile too; the width of a pile relative to the
# range, beyond which noise hides the difference; and the largest gap between the values next to it, relative to all.
PILED, SMOOTH, COMPACT, NARROW, APART = 20.0, 2.5, 4.0, 0.01, 0.15
# Combinations of inputs on levels below which a pile may be one of them: they are equally likely, and a pile is 2 %.
STATES = 256
# Share of a channel's values below a hundredth of its range from which it may hold two units.
SMALL = 0.06
# Functions that show jumps of the full range, channels that are looked at for them, and shares of their values that may
# have wrapped around.
MORE_FUNCTIONS, MOST_ODD = 120, 12
WRAPPED = np.array([0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995])
# Mean square of a channel's steps over twice its variance, below which it does not follow random inputs, and above
# which it does; the share of its variance that low-degree functions of the inputs may then explain; and how many steps
# are looked at.
SLOW, QUICK, FOLLOWED, STEPS = 0.1, 0.8, 0.1, 512
# Times that functions of the inputs leave less of a channel, from which a repair of it is right.
BETTER = {"units": 10, "wrapped": 3}


def inputs_off(s: Excerpt) -> Iterator[Check]:
    """Inputs that do not follow the declared distribution: digits, range, shape, correlations."""
    discrete = {k for k, family in enumerate(s.low.families) if isinstance(family, DiscreteFamily)}
    weighted, indices = s.samples.sqrt_sample_weight is not None, s.low.indices[1:]
    few: dict[int, Floats] = {}
    part: dict[int, tuple[float, float, float]] = {}
    for k in set(range(s.u.shape[1])) - discrete:
        values = np.unique(s.u[s.some, k])
        if len(values) <= FEW_VALUES and s.n >= 4 * FEW_VALUES:
            few[k] = values
        elif not weighted and (found := _part_of_domain(s, k)):
            part[k] = found
    if few:
        k, values = next(iter(few.items()))
        yield Check(
            f"{_named(few)} takes only {len(values)} values, in steps of {np.diff(values).min():.3g}, as if written "
            "with too few digits; keep all digits that were sent, or use basis.table for inputs on a few levels.",
            unreliable="inputs rounded", cause="rounded inputs", inputs=[*few], values=len(values),
        )  # fmt: skip
    if part:
        k, (low, high, share) = next(iter(part.items()))
        family = s.low.families[k]
        (start, stop), advice = family.domain, suggest_domain(low, high, family, s.samples.basis)
        yield Check(
            f"inputs do not follow the declared distribution ({family.distribution}): {_named(part)} runs from "
            f"{low:.4g} to {high:.4g} and fills {share:.0%} of its domain, {start:g} to {stop:g}; {advice}.",
            unreliable="inputs not of the declared distribution", cause="domain", inputs=[*part], share=share,
        )  # fmt: skip
    told = discrete | set(few) | set(part)
    # Of inputs that were spoken of the functions have other means; of a rare large value a mean tells nothing.
    tame = (s.low.fourth_moments[1:] < s.n / 10) & (s.low.degrees[1:] <= 4)
    untold = ~np.any(indices[:, sorted(told)] > 0, axis=1) & tame
    z = np.abs(_means_in_standard_errors(s)) * (untold & ~weighted)
    alone = z * (np.sum(indices > 0, axis=1) == 1)
    worst = int(np.argmax(alone if alone.max(initial=0) > STANDARD_ERRORS else z)) if len(z) else 0
    if not len(z) or z[worst] <= STANDARD_ERRORS:
        return
    joined = np.flatnonzero(indices[worst]).tolist()
    names, label = " and ".join(f"u{k + 1}" for k in joined), s.low.label(worst + 1)
    size = f"the mean of {label} is {s.means[worst] / np.sqrt(s.n):.3g}, {z[worst]:.0f} standard errors from 0"
    kinds = ", ".join(dict.fromkeys(family.distribution for family in s.low.families))
    cause, said = "correlated inputs", f"{names} are correlated: {size}; draw each input by itself"
    if len(joined) == 1:
        advice = "use the `family` of the true distribution, or basis.samples(recorded inputs)"
        cause, said = "shape of inputs", f"{names} has another shape: {size}; {advice}"
    yield Check(
        f"inputs do not follow the declared distribution ({kinds}): {said}.",
        unreliable="inputs not of the declared distribution",
        cause=cause, function=label, standard_errors=float(z[worst]), inputs=joined,
    )  # fmt: skip


def _means_in_standard_errors(s: Excerpt) -> Floats:
    """Return the means of the functions in standard errors.

    Rows whose inputs are related count as less than their number: there the standard errors are
    those of the means of 16 parts, if they are larger.
    """
    if s.related_inputs is None:
        return s.means
    # `y` is centred and scaled, so the means of its parts are the deviations from the mean.
    parts = np.array([part.mean(axis=1) for part in np.array_split(s.y, N_PARTS, axis=1)])
    relative_error = parts.std(axis=0, ddof=1) / np.sqrt(N_PARTS) * np.sqrt(s.n)
    return s.means / np.maximum(2 * relative_error, 1)


def _named(inputs: Iterable[int]) -> str:
    return join_names([f"u{k + 1}" for k in inputs])


def _part_of_domain(s: Excerpt, k: int) -> tuple[float, float, float] | None:
    """The range of an input that leaves an end of its domain empty and is as declared over the rest, and its share."""
    if s.related_inputs is not None:
        return None  # Inputs in an order of their own may keep a distance to the ends.
    family, column = s.low.families[k], s.u[:, k]
    low, high, tail = (
        float(column.min()),
        float(column.max()),
        -np.log(FALSE_ALARM_OF_VALUES * s.share) / s.n,
    )
    start, first, last, stop = family.quantile(
        np.array([0.5 / s.n, tail, 1 - tail, 1 - 0.5 / s.n]).clip(0, 1)
    )
    if tail > 0.2 or (low <= first and last <= high):
        return None
    stretched = family.standard(start + (column - low) * (stop - start) / max(high - low, 1e-300))
    fits = np.abs(family.values(stretched, 3)[1:].sum(axis=1)).max() < STANDARD_ERRORS * np.sqrt(
        s.n
    )
    return (
        (low, high, float((high - low) / (stop - start))) if fits else None
    )  # else it has another shape


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
    in_products = power @ has_input - 3 * rank * np.sum(has_input, axis=0)
    is_dead = (held < least_seen) & (in_products < 0)
    if not is_dead.any() or is_dead.all():
        return
    held_by_others = held[~is_dead].mean()
    largest_unseen = least_seen[is_dead].max()
    if held_by_others < MIN_CAPACITY_OF_OTHER_INPUTS * n:
        return
    if largest_unseen > MAX_UNSEEN_SHARE_OF_NOTE * held_by_others:
        return
    dead = np.flatnonzero(is_dead).tolist()
    # Where much is unexplained, functions of high degree may hide the effect.
    explained = np.mean(excerpt.residuals.scale**2 < MAX_UNEXPLAINED_FOR_WARNING)
    is_clear = (
        n >= MIN_ROWS_FOR_WARNING
        and rank >= MIN_RANK_FOR_WARNING
        and largest_unseen < MAX_UNSEEN_SHARE_OF_WARNING * held_by_others
        and explained >= MIN_EXPLAINED_DIRECTIONS
    )
    yield Check(
        f"{_named(dead)} has no effect on any readout; check that its source is connected, and that "
        "these are the values that were sent.",
        "warning" if is_clear else "note",
        unreliable="an input without effect" if is_clear else "",
        cause="no effect",
        inputs=dead,
    )


def counted_twice(s: Excerpt) -> Iterator[Check]:
    """Rows with the inputs of another row: data stacked twice, or repeats among the rows."""
    if s.first > 0:
        return
    n, u, x = s.n, s.u, s.x
    if s.samples.in_memory and s.samples.n_samples <= MOST_ROWS and s.share < 1:
        n = s.samples.n_samples
        u, x = (one.read(0, n, on_host=True) for one in (s.samples.u, s.samples.x))
    continuous = [
        k for k, family in enumerate(s.low.families) if not isinstance(family, DiscreteFamily)
    ]
    if continuous:
        first = np.sort(u[:, continuous[0]])
        if np.count_nonzero(first[1:] == first[:-1]) < 5:
            return
    once, again = _equal_inputs(u) if continuous else _begun_anew(np.hstack([u, x]))
    if not len(again):
        return
    rows = s.rows if n == s.n else s.samples.x.given_rows(np.arange(n))
    copies = np.array_equal(x[once], x[again])
    said = "with other readouts: they are repeats, which make error bars too short; give them as `repeats` (infocap diagnose --fix)"
    if copies and continuous:
        said = "and its readouts: the data are stacked twice, which makes error bars too short; keep one copy (infocap diagnose --fix)"
    elif copies:
        said = "and its readouts: the data are stacked twice, which makes error bars too short; keep one copy"
    yield Check(
        f"{len(again)} of {n} rows have the inputs of another row, {said}.",
        unreliable="rows counted twice",
        cause="stacked" if copies else "repeats", rows=rows[again].tolist(), first_rows=rows[once].tolist(),
    )  # fmt: skip


def _equal_inputs(u: Floats) -> tuple[Integers, Integers]:
    """Rows whose inputs come again, and the next row with the same; none where chance explains them."""
    n = len(u)
    _, place, count = np.unique(u, axis=0, return_inverse=True, return_counts=True)
    # By chance pairs are as many as the values of each input allow, and some come three times.
    pairs = [
        np.sum(c * (c - 1.0)) / 2 for c in (np.unique(one, return_counts=True)[1] for one in u.T)
    ]
    expected = n**2 / 2 / np.prod([n**2 / (2 * one + 2) for one in pairs])
    thrice = 2 / 3 * np.sum(count == 2) ** 2 / max(np.sum(count == 1), 1)
    regular = thrice > 20 and np.sum(count > 2) < 0.2 * thrice
    surplus = n - len(count)
    if surplus < 5 or (surplus < 5 * expected + 10 and not regular):
        return np.arange(0), np.arange(0)
    order = np.argsort(place.ravel(), kind="stable")
    again = np.flatnonzero(np.diff(place.ravel()[order]) == 0)
    return order[again], order[again + 1]


def _begun_anew(both: Floats) -> tuple[Integers, Integers]:
    """Rows, of inputs on levels and their readouts, from which on all come again in their order; and those again."""
    for start in np.flatnonzero(np.all(both[1:] == both[0], axis=1))[:8] + 1:
        rows = np.arange(start, min(2 * start, len(both)))
        if len(rows) > 4 and np.array_equal(both[rows], both[rows - start]):
            return rows - start, rows
    return np.arange(0), np.arange(0)


def stale(s: Excerpt) -> Iterator[Check]:
    """Measurements that repeat the readout before, to the last digit, though the inputs changed."""
    if s.related_inputs is not None:
        return  # Near inputs may give equal readouts.
    few, whole = s.x[:FEW_ROWS, :: -(-s.x.shape[1] // FEW_CHANNELS)], s.guess[:1]
    if max(np.max(np.sum(few[1:] == few[:-1], axis=0)), np.sum(whole[:, 1:] == whole[:, :-1])) < 4:
        return
    equal = (s.x[1:] == s.x[:-1]) & np.any(s.u[1:] != s.u[:-1], axis=1)[:, None]
    once = np.count_nonzero(equal, axis=0)
    some = np.flatnonzero(once > 3)
    if not len(some):
        return
    # Converters give equal values by chance, as often two and more measurements apart. Rows that
    # repeat the one before in all these channels are left out, or they would count there, too.
    repeats_row = np.concatenate([[False], np.all(equal[:, some], axis=1)])
    if np.mean(repeats_row) > MAX_STALE_SHARE:
        return  # A channel that hardly moves is not stale.
    fresh = s.x[~repeats_row][:, some]
    later = (2, 3, 4, 5, 6, 8)
    by_chance = np.max([np.sum(fresh[k:] == fresh[:-k], axis=0) for k in later], axis=0)
    bad = some[once[some] > by_chance + 8 * np.sqrt(by_chance + 0.25)]
    if s.of_sequence and len(bad) < min(3, s.x.shape[1]):
        return  # A slow readout behind a converter repeats its value.
    rows = np.flatnonzero(np.all(equal[:, bad], axis=1)) + 1 if len(bad) else bad
    fresh = s.x[~repeats_row][:, bad]
    as_many = max(int(np.sum(np.all(fresh[k:] == fresh[:-k], axis=1))) for k in later)
    if len(bad) and len(rows) > as_many + 8 * np.sqrt(as_many + 0.25):
        names = s.names(bad)
        who = "all channels" if len(bad) == s.x.shape[1] else join_names(names)
        yield Check(
            f"{len(rows)} of {s.n} measurements repeat the readout before to the last digit, though the inputs changed "
            f"({who}; rows {numbers(s.rows[rows])}): a stale buffer; leave them out.",
            unreliable="stale readouts",
            cause="stale", rows=s.rows[rows].tolist(), channels=names,
        )  # fmt: skip


def outlying(s: Excerpt) -> Iterator[Check]:
    """Codes in place of numbers, and glitches: rows far outside the others."""
    count = s.sorted.shape[1]
    a, b = s.sorted[:, count // 50], s.sorted[:, -1 - count // 50]
    width, (bottom, top) = b - a, s.ends
    code = (np.isin(bottom, CODES) & (a - bottom > NEAR * width)) | (
        np.isin(top, CODES) & (top - b > NEAR * width)
    )
    odd = np.flatnonzero((code | (np.maximum(top - b, a - bottom) > FAR * width)) & (width > 0))
    outside = np.maximum(s.x[:, odd] - b[odd], a[odd] - s.x[:, odd]) / width[odd]
    coded = np.isin(s.x[:, odd], CODES) & (outside > NEAR)
    cells = coded if coded.any() else outside > FAR
    values, count = np.unique(s.x[:, odd][cells], return_counts=True)
    known, again = (
        coded.any(),
        cells & (s.x[:, odd] == (values[np.argmax(count)] if len(values) else np.nan)),
    )
    coded = (
        coded if known else again & (np.sum(again) > 2)
    )  # no noisy readout takes a value exactly thrice
    rows = np.flatnonzero(coded.any(axis=1))
    if len(rows) and (known or (np.mean(coded, axis=0).max() <= RARE and _anywhere(s, rows))):
        names, value = s.names(odd[coded.any(axis=0)]), float(s.x[:, odd][coded][0])
        said = "it lies far outside the others; leave these rows out"
        if known:
            said = "instruments write it for no number; set these cells to missing (infocap diagnose --fix)"
        yield Check(
            f"{value:.6g} in {np.sum(coded)} cells of {len(rows)} rows (rows {numbers(s.rows[rows])}; "
            f"{join_names(names)}) decides the answer: {said}.",
            unreliable="codes among the readouts",
            cause="codes", rows=s.rows[rows].tolist(), channels=names,
        )  # fmt: skip
        return
    glitches = [*_glitched(s)]
    yield from glitches
    square = (s.x[:, odd] - (a + b)[odd] / 2) ** 2
    decided = cells & (np.sum(square * cells, axis=0) > square.sum(axis=0) / 2)
    decided[:, [not _anywhere(s, np.flatnonzero(one)) for one in decided.T]] = False
    rows = np.flatnonzero(decided.any(axis=1))
    if len(rows) and not glitches:
        names = s.names(odd[decided.any(axis=0)])
        yield Check(
            f"{np.sum(decided)} values far outside the others hold more than half of the variance "
            f"of {join_names(names)} (rows {numbers(s.rows[rows])}): sharp resonances, "
            "which then want more samples, or glitches; look there.",
            "note", cause="outlying", rows=s.rows[rows].tolist(), channels=names,
        )  # fmt: skip


def _anywhere(s: Excerpt, rows: Integers) -> bool:
    """Whether rows are no neighbours by their inputs and lie together at no shift of them, where a device responds."""
    if len(rows) < 3:
        return True
    u = s.u / s.u.std(axis=0)
    apart = np.sum(u**2, axis=1) - 2 * u[rows] @ u.T
    apart[np.arange(len(rows)), rows] = np.inf
    if np.mean(np.isin(np.argmin(apart, axis=1), rows)) > NEIGHBOURS:
        return False
    y = s.y[s.low.degrees[1:] <= 3]
    together = max(
        np.sum(y[:, (rows + lag) % s.n].mean(axis=1) ** 2) for lag in range(-LAGS, LAGS + 1)
    )
    return len(rows) * float(together) < s.limit(len(y), FALSE_ALARM_OF_VALUES / 1e-6)


def _glitched(s: Excerpt) -> Iterator[Check]:
    """Rows far from the others in the coordinates of those others, even without channels that alone are far out."""
    if s.related_inputs is not None:
        return  # Rows of a sweep that are far from the others are neighbours.
    if s.n < max(4 * s.z.shape[1], 128):
        return
    left, few = s.rest, s.clear[: len(s.guess)]
    if s.n > left.shape[1]:  # what the guesses of some functions miss tells, too
        left = s.guess - np.sum(s.own[:, few] ** 2, axis=0)[:, None] * s.y[few]
        left /= np.sqrt(np.mean(left**2, axis=1))[:, None]
    distance, most = np.einsum("ij,ij->j", left, left), [int(s.n * (1 - RARE)), s.n - 3]
    usual, third = np.partition(distance, most)[most]
    if s.n * s.z.shape[1] > QUICKLY and third < LOOKED_AT * usual:
        return
    far = distance > np.quantile(distance, 1 - RARE)
    rank, candidates = s.z.shape[1], np.flatnonzero(far)
    others = np.flatnonzero(~far[: len(s.z)])[: max(SOME_ROWS, 8 * rank)]
    usual = (s.z[others] - s.y[:, others].T @ s.own.T).astype(float)  # given the inputs
    precision = np.linalg.inv(np.cov(usual, rowvar=False).reshape(rank, rank) + 1e-9 * np.eye(rank))
    middle, inverse = (
        usual.mean(axis=0),
        s.back / np.maximum(np.sum(s.back**2, axis=1), 1e-300)[:, None],
    )
    centred = (s.x[candidates] - s.mean) @ s.whitening - s.y[:, candidates].T @ s.own.T - middle
    turned, usual = centred @ precision, usual - middle
    size = max(float(np.quantile(np.sum(usual * (usual @ precision), axis=1), 0.9)), 1e-300)
    alone = np.abs(centred @ s.back) / np.maximum(
        np.std(usual @ s.back, axis=0), 1e-30
    )  # each channel by itself
    alone /= np.clip(alone.max(axis=1), 1e-30, ALONE)[:, None]
    left = np.sum(centred * turned, axis=1) / size
    for k in np.flatnonzero(left > GLITCHED):
        # Leaving out channels takes from the distance: resonances and heavy tails of some are no glitch of the row.
        there = inverse[:, alone[k] >= (1 if np.mean(alone[k] >= 1) < MANY else alone[k].max())]
        metric, along = there.T @ precision @ there, turned[k] @ there
        left[k] -= along @ np.linalg.lstsq(metric, along, rcond=1e-9)[0] / size
    rows = candidates[left > GLITCHED]
    if len(rows) > 4 and _anywhere(s, rows):
        s.glitched.update(rows.tolist())
        yield Check(
            f"{len(rows)} of {s.n} rows lie far outside the others, up to {np.sqrt(left.max()):.0f} times as far as "
            f"nine in ten and whatever their inputs (rows {numbers(s.rows[rows])}): glitched shots; look at them, "
            "and leave out those that are no measurements.",
            unreliable="glitched rows",
            cause="glitches", rows=s.rows[rows].tolist(),
        )  # fmt: skip


def clipped(s: Excerpt) -> Iterator[Check]:
    """Channels whose values pile up at an end of their range, with noise after it or not."""
    if (
        np.prod(
            [
                len(one.levels) if isinstance(one, DiscreteFamily) else np.inf
                for one in s.low.families
            ]
        )
        < STATES
    ):
        return
    ends = s.sorted[:, [0, 1, -2, -1]]
    bad = np.flatnonzero(
        (_piles(s.sorted) > 0) | (ends[:, 0] == ends[:, 1]) | (ends[:, 2] == ends[:, 3])
    )
    share = _piles(np.sort(s.x[:, bad].T, axis=1)) if len(bad) else np.zeros(0)  # all rows tell
    bad, share = bad[share > 0], share[share > 0]
    if len(bad):
        names, ends = s.names(bad), s.sorted[bad[0], [0, -1]]
        yield Check(
            f"{len(bad)} of {s.x.shape[1]} channels look saturated or clipped ({join_names(names)}): up to "
            f"{share.max():.0%} of their values pile up at an end of the range ({ends[0]:.3g} to {ends[1]:.3g}), which "
            "adds functions of the inputs that the device does not compute; lower the gain.",
            cause="clipped", channels=names, share=share.tolist(),
        )  # fmt: skip


def _piles(ordered: Floats) -> Floats:
    """The largest share of each channel's values, in order of size, that pile up at one end with an edge inside."""
    n, shares = ordered.shape[1], np.zeros(len(ordered))
    piles, near, far = np.arange(max(n // 50, 24), n // 2, n // 100), n // 50, n // 20
    for values in (ordered, -ordered[:, ::-1]):
        dense = PILED / piles * (values[:, -1:] - values[:, -1 - piles])
        some = np.flatnonzero(
            np.any(values[:, -1 - piles] - values[:, -1 - piles - near] > near * dense, axis=1)
        )
        if not len(some):
            continue
        values, gaps = values[some], np.diff(values[some], axis=1)
        spread, step = (
            values[:, -1:] - values[:, :1],
            np.where(gaps > 0, gaps, np.inf).min(axis=1)[:, None],
        )
        edge, beside, inside = (values[:, -1 - piles - k] for k in (0, near, near + far))
        core, middle, top = values[:, -1 - piles // 8], values[:, -1 - piles // 2], values[:, -1:]
        found = (edge - beside) / near > PILED * (top - edge + step) / piles
        found &= (beside - inside) / far < SMOOTH * (edge - beside) / near
        found &= middle - edge + step < COMPACT * (core - middle + step)
        found &= (top - edge + step < NARROW * spread) & (
            np.abs(top) > 0.05 * spread
        )  # a dark detector is not clipped
        found &= (
            np.mean(
                np.abs(values - values[:, :1] - spread / 2) < 0.4 * spread, axis=1, keepdims=True
            )
            > 0.2
        )
        for channel, k in np.argwhere(
            found
        ):  # a device of two states has little in between, one of many has gaps
            zone = gaps[channel, n - 1 - piles[k] - near - far : n - 1 - piles[k]]
            found[channel, k] = zone.max() < APART * zone.sum()
        shares[some] = np.maximum(shares[some], np.where(found, piles, 0).max(axis=1) / n)
    return shares


def rounded(s: Excerpt) -> Iterator[Check]:
    """Readouts rounded by a converter whose step is not small against the noise."""
    gaps = np.diff(s.sorted, axis=1)
    steps = np.zeros(len(gaps))
    for k in np.flatnonzero(np.mean(gaps == 0, axis=1) > 0.01):
        positive, spread = gaps[k][gaps[k] > 0], s.sorted[k, -1] - s.sorted[k, 0]
        step = np.median(positive[positive < 1.5 * positive.min()]) if len(positive) else np.inf
        whole = np.abs(positive / step - np.round(positive / step)) < 1e-3 * np.maximum(
            positive / step, 1
        )
        steps[k] = step if FEW_LEVELS < spread / step < 1e9 and whole.all() else 0.0
    on = np.flatnonzero(steps)
    if len(on) < 2 or s.n < 4 * len(on):
        return
    # The least variance of any sum of channels, in steps, is that of noise and rounding: 1/12 is rounding's.
    floor = np.linalg.eigvalsh(np.cov(s.x[:, on] / steps[on], rowvar=False))
    share = float(
        1 / 12 / (floor[floor > 1e-6].min(initial=np.inf) / (1 - np.sqrt(len(on) / s.n)) ** 2)
    )
    if share > ROUNDED:
        names, levels = s.names(on), (s.sorted[on, -1] - s.sorted[on, 0]) / steps[on]
        strong = share > LIMITED
        yield Check(
            f"{len(on)} channels take few distinct values ({join_names(names)}; at least "
            f"{levels.min() + 1:.0f} levels): the converter's rounding is {min(share, 1.0):.0%} of their noise; "
            "use more of its range, or more bits.",
            "warning" if strong else "note",
            cause="rounded readouts", channels=names, share=share, unreliable="coarse converter" * strong,
        )  # fmt: skip


def mixed_units(s: Excerpt) -> Iterator[Check]:
    """Channels in which some values are a thousand times too large, or wrapped around by a converter.

    A repair is right where low-degree functions of the inputs then leave less than a third of what they left before,
    relative to the variance.
    """
    x, size = (
        s.x[s.some],
        np.abs(s.sorted[:, [s.sorted.shape[1] // 50, -1 - s.sorted.shape[1] // 50]]).max(axis=1),
    )
    wide = np.mean(np.abs(x) < 0.01 * size, axis=0) > SMALL
    left = np.abs(misfit(s.y[:, s.some], (x - s.mean).astype(np.float32)))
    left[np.isin(s.some, [*s.glitched])] = 0.0
    jumps = np.sum(left > 0.45 * (s.sorted[:, -1] - s.sorted[:, 0]), axis=0) > 3
    jumps &= np.sum(np.diff(s.sorted, axis=1) > 0, axis=1) > FEW_LEVELS
    jumps[jumps] = np.sum(left[:, jumps] > 12 * np.median(left[:, jumps], axis=0), axis=0) > 3
    odd = np.concatenate(
        [np.flatnonzero(wide)[:MOST_ODD], np.flatnonzero(jumps & ~wide)[:MOST_ODD]]
    )
    if not len(odd):
        return
    rows = np.random.default_rng(0).permutation(s.n)[: 2 * SOME_ROWS]
    rows = rows[~np.isin(rows, [*s.glitched])]
    x, y = s.x[rows][:, odd], lowest_degrees(s.low, MORE_FUNCTIONS).values(s.u[rows])[1:]
    left, ordered = misfit(y, x), np.sort(x.T, axis=1)
    repairs = [(k, "units", _in_one_unit(x[:, k])) for k in np.flatnonzero(wide[odd])]
    for k in np.flatnonzero(~wide[odd]):
        column, span = x[:, k], np.ptp(x[:, k])
        edges = ordered[k, (len(x) * WRAPPED).astype(int)]
        repairs += [
            (k, "wrapped", np.where(column < edge, column + span, column)) for edge in edges
        ]
        repairs.append((k, "wrapped", column - span * np.round(left[:, k] / span)))
    repairs = [
        one for one in repairs if np.ptp(one[2]) > 0 and not np.array_equal(one[2], x[:, one[0]])
    ]
    if not repairs:
        return
    after = misfit(y, np.column_stack([one[2] for one in repairs]))
    found: dict[str, set[int]] = {"units": set(), "wrapped": set()}
    for (k, cause, column), rest in zip(repairs, after.T, strict=True):
        moved = column != x[:, k]
        near = cause == "units" or _continues(y, column, moved, 0.2 * float(np.ptp(x[:, k])))
        better = (
            np.var(rest) * np.var(x[:, k]) < np.var(left[:, k]) * np.var(column) / BETTER[cause]
        )
        if better and near:
            found[cause].add(int(k))
    said = {
        "units": 'values of two kinds, some a thousand times larger (autorange, V and mV, or "1,234" read as 1.234)',
        "wrapped": "jumps of the full range against what their inputs give (a converter that wraps around)",
    }
    for cause, channels in found.items():
        if channels:
            names = s.names(odd[sorted(channels)])
            yield Check(
                f"{len(names)} channels or more hold {said[cause]}: {join_names(names)}; repair them and read again.",
                unreliable="values in mixed units" if cause == "units" else "values that wrap around",
                cause=cause, channels=names,
            )  # fmt: skip


def _continues(y: Floats, column: Floats, moved: np.ndarray, tolerance: float) -> bool:
    """Whether values that were moved lie where functions of the inputs, fitted to the others, lead: no peak does."""
    if not 3 <= np.sum(moved) < len(moved) / 2:
        return False
    y = np.vstack([np.ones(len(column)), y])
    others = y[:, ~moved]
    fit = np.linalg.solve(
        others @ others.T + 1e-3 * len(column) * np.eye(len(y)), others @ column[~moved]
    )
    return bool(np.mean(np.abs(column - fit @ y)[moved] < tolerance) > 0.8)


def _in_one_unit(column: Floats) -> Floats:
    """Divide the upper of two humps of log |x|, with an empty decade between them, by a power of 1000."""
    logs = np.sort(np.log10(np.abs(column[column != 0])))
    below, above = np.arange(1, len(logs) + 1), np.searchsorted(logs, logs + 1.0)
    fewer = np.minimum(below, len(logs) - above)
    valley = np.where(fewer > 0.004 * len(logs), (above - below) / np.maximum(fewer, 1), np.inf)
    place = int(np.argmin(valley))
    if valley[place] > 0.25:
        return column
    ratio = np.median(logs[above[place] :]) - np.median(logs[: place + 1])
    return np.where(
        np.abs(column) > 1.0001 * 10 ** logs[place],
        column / 1000 ** max(round(ratio / 3), 1),
        column,
    )


def clocks(s: Excerpt) -> Iterator[Check]:
    """Counters, time stamps and temperatures among the readouts."""
    if s.related_inputs is not None:
        return  # Readouts of a sweep change as slowly as its inputs.
    if not len(s.y):
        return
    steps, explained = (
        np.diff(s.x[:STEPS], axis=0),
        np.sum((s.back.T @ s.own) ** 2, axis=1) - len(s.y) / s.n,
    )
    rising = np.all(steps >= 0, axis=0) | np.all(steps <= 0, axis=0)
    ratio = np.mean(steps**2, axis=0) / np.maximum(2 * np.var(s.x[:STEPS], axis=0), 1e-300)
    slow = ratio < SLOW
    odd = np.flatnonzero((rising | slow) & (explained < FOLLOWED) & np.any(steps != 0, axis=0))
    if len(odd) and (rising[odd].all() or np.median(ratio) > QUICK):  # else all drift
        names = s.names(odd)
        yield Check(
            f"{join_names(names)} {'only rises or falls' if rising[odd].all() else 'changes slowly'} and does not "
            "follow the inputs, like a counter, a time stamp or a temperature; name the readouts without it, by `x`.",
            unreliable="a column that is no readout",
            cause="clock", channels=names,
        )  # fmt: skip
