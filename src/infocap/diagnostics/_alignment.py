"""Which inputs the readouts belong to: shifts, late channels, memory; and what else they follow: hum, clocks."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from .._formatting import join_names
from ..errors import Check
from ..typing import Floats, Integers
from ._stretch import FALSE_ALARM, GUESSED, LARGE_Z, Stretch

# Measurements by which readouts may be shifted in either direction, or for which earlier inputs may last.
LAGS = 8
# Functions that are compared at every lag.
SCANNED = 6
# In place of a lag, for measurements that agree with the inputs at none of them.
NOWHERE = LAGS + 1
# Parts of a stretch in which the size of the readouts is compared, a relative change of it that is worth a word, and
# the capacity of the functions that tell: those held less are fitted to the noise of the first measurements, too.
EPOCHS, UNSTEADY, WELL_HELD = 4, 0.02, 0.9
# Capacity taken by hum, or held at delays, that is worth a word: a total is rarely known better.
WORTH = 0.02
# A line stands out from so many frequencies beside it, by this factor; so many rows per delay tell it from a resonance.
BESIDE, NARROW, RESOLVED = 16, 5.0, 32
# Mean square of a channel's steps over twice its variance, below which it does not follow random inputs, and above
# which it does; the share of its variance that low-degree functions of the inputs may then explain; and how many steps
# are looked at.
SLOW, QUICK, FOLLOWED, STEPS = 0.1, 0.8, 0.1, 512


def alignment(s: Stretch) -> Iterator[Check]:
    """Readouts that belong to the inputs of another row, or to earlier inputs as well."""
    (n, rank), strength = s.z.shape, np.sum(s.own**2, axis=0)
    if n < 2 * rank or not len(s.y):
        return
    seen = n * strength.sum() > s.limit(rank * len(s.y)) or n * strength.max() > s.limit(
        rank, len(s.y)
    )
    chosen = s.clear[:SCANNED] if seen else np.arange(min(SCANNED, len(s.y)))
    found, power, among, memory = _at_lags(s, chosen)
    limit = s.limit(rank * len(chosen), 2 * LAGS)
    if not seen and not np.any(power > limit):
        yield from _nothing_found(s)
        return
    related = bool(np.any(np.delete(among, LAGS) > s.limit(len(chosen) ** 2, 2 * LAGS)))
    usual = int(np.argmax(power))
    parts = _slips(s, found[usual], usual, chosen[:GUESSED])
    if related:  # in a sweep the first rows do not tell the others
        parts = [one for one in parts if one[2] != NOWHERE]
    if parts or (usual != LAGS and power[LAGS] < (0.8 * power[usual] if related else limit)):
        yield from _shifted(s, usual - LAGS, parts)
    elif related:
        said = "inputs of neighbouring measurements are related (a low-discrepancy design in its own order, or a sweep)"
        advice = "draw points with infocap.draw, which shuffles them, or measure in random order"
        yield Check(
            f"{said}: memory cannot be told from computation here; {advice}.",
            "note",
            cause="order of inputs",
        )
    elif memory.any() or usual != LAGS:
        by_channel = n * np.sum((found @ s.back) ** 2, axis=1)  # (lags, channels)
        best, most = np.argmax(by_channel, axis=0), by_channel.max(axis=0)
        few = s.limit(len(chosen), by_channel.size)
        late = np.flatnonzero(
            (best != LAGS) & (most > few) & (by_channel[LAGS] < np.maximum(few, 0.05 * most))
        )
        others = np.delete(by_channel, late, axis=1)
        if (
            len(late)
            and len(set(best[late].tolist())) == 1
            and not np.any(others[best[late[0]]] > few)
        ):
            names, lag = s.names(late), int(best[late[0]]) - LAGS
            yield Check(
                f"{len(late)} of {s.x.shape[1]} channels ({join_names(names)}) are shifted by {lag:+d} "
                "samples against the inputs and the other channels, as on a card with its own trigger; realign them.",
                unreliable="channels shifted against each other",
                cause="late channels", channels=names, lag=lag,
            )  # fmt: skip
        else:
            yield from _memory(s, np.flatnonzero(memory[LAGS + 1 :]) + 1)


def _at_lags(s: Stretch, chosen: Integers) -> tuple[Floats, Floats, Floats, np.ndarray]:
    """Functions of the inputs so many measurements before, and after: their correlations with the readouts (lags,
    functions, rank), and the sums of squares of these, and of those with the functions themselves, in standard errors;
    and whether what the functions of a measurement leave of its readouts holds those of another.
    """
    m, long, lags = len(s.z) - 2 * LAGS, s.rest.shape[1] - 2 * LAGS, range(2 * LAGS, -1, -1)
    moved = np.vstack([s.y[chosen, lag : lag + m] for lag in lags])
    found, among = (moved @ one[LAGS : LAGS + m] / m for one in (s.z, s.y[chosen].T))
    power, related = (m * np.sum(one.reshape(len(lags), -1) ** 2, axis=1) for one in (found, among))
    left = [s.rest[:, LAGS : LAGS + long] @ s.y[chosen, lag : lag + long].T for lag in lags]
    memory = np.sum(np.square(left), axis=(1, 2)) / long > s.limit(left[0].size, 2 * LAGS)
    memory[LAGS] = False
    return found.reshape(len(lags), len(chosen), -1), power, related, memory


def _memory(s: Stretch, delays: Integers) -> Iterator[Check]:
    """How much the readouts hold of earlier inputs: low-degree functions of them, alone and times one of the inputs."""
    n, linear = len(s.z), np.flatnonzero(s.low.degrees[1:] == 1)
    left = s.z - s.y[:, :n].T @ s.own.T
    size, held, chance = np.sum(left**2, axis=1), 0.0, 0.0
    for lag in delays:
        before, now, after = s.y[:, : n - lag], s.y[:, lag:n], left[lag:]
        for functions in (before, *(now * before[k] for k in linear)):
            by_chance = functions**2 @ size[lag:] / n**2
            held += float(np.sum((functions @ after) ** 2) / n**2 - by_chance.sum())
            chance += float(np.sum(by_chance**2))
    if held > WORTH + np.sqrt(chance):
        said = f"delay {delays[0]}" if len(delays) == 1 else f"delays {delays[0]} to {delays[-1]}"
        yield Check(
            f"readouts also hold earlier inputs (capacity {held:.2g} at {said}): the device has memory, or "
            "a detector is slow, and the total misses this; use delayed_basis, or wait longer between measurements.",
            unreliable="a device with memory",
            cause="memory", delays=delays.tolist(), capacity=held,
        )  # fmt: skip


def _slips(s: Stretch, found: Floats, usual: int, chosen: Integers) -> list[tuple[int, int, int]]:
    """Parts of a stretch that agree with the inputs at another lag than usual: first, end and lag of each.

    The readouts' linear guess of each function is compared with the function at every lag. What another lag gains over
    the usual one, added up, is a random walk downwards, whose largest rise is exponentially distributed.
    """
    m, y = s.n - 2 * LAGS, s.y[chosen]
    known = usual == LAGS and np.array_equal(chosen, s.clear[: len(chosen)])
    guess = np.clip(
        (s.guess if known else s.turned(found[: len(chosen)].T).T)[:, LAGS : LAGS + m], -3, 3
    )
    own = np.einsum("ij,ij->j", guess, y[:, 2 * LAGS - usual :][:, :m])
    drift, parts = float(np.mean(own)), []
    chance = 0.75 * np.log(s.n * (2 * LAGS + 2) / (FALSE_ALARM * s.share)) / drift
    for lag in (NOWHERE, *range(-LAGS, LAGS + 1)):
        nowhere = lag == NOWHERE  # as a choice, no inputs at all: a slip is seen there too
        other = drift / 2 if nowhere else np.einsum("ij,ij->j", guess, y[:, LAGS - lag :][:, :m])
        walk = np.concatenate([[0.0], np.cumsum(other - own, dtype=float)])
        rise, least = walk - np.minimum.accumulate(walk), chance * float(np.var(other - own))
        stop = int(np.argmax(rise))
        start = int(np.argmin(walk[: stop + 1]))
        if nowhere and rise[stop] < least / 2:  # most data have no slip
            return []
        here = float(np.mean(own[start:stop])) if rise[stop] > least else drift
        if here < 0.25 * drift and rise[stop] > (0.45 * drift - here) * (stop - start):
            parts.append((float(rise[stop]), start + LAGS, stop + LAGS, lag))
    kept: list[tuple[int, int, int]] = []
    for _, start, stop, lag in sorted(parts, reverse=True):
        if all(stop <= a or b <= start for a, b, _ in kept):
            kept.append((start, stop, lag))
    return kept


def _shifted(s: Stretch, usual: int, parts: list[tuple[int, int, int]]) -> Iterator[Check]:
    shift = np.full(s.n, usual)
    for start, stop, lag in parts:
        if lag == NOWHERE:
            rows = s.rows[start:stop].tolist()
            yield Check(
                f"measurements {s.first + start} to {s.first + stop - 1} show nothing of their inputs, though others "
                "do: the source was off, or the trigger slipped far; leave them out (infocap diagnose --fix).",
                unreliable="readouts without their inputs", cause="gap", rows=rows,
            )  # fmt: skip
            continue
        shift[start if start > 2 * LAGS else 0 : stop if stop < s.n - 2 * LAGS else s.n] = lag
    if not shift.any():
        return
    edges = [0, *(np.flatnonzero(np.diff(shift)) + 1).tolist(), s.n]
    runs = [[s.first + a, s.first + b, int(shift[a])] for a, b in pairwise(edges) if shift[a]]
    where = (
        " throughout"
        if np.all(shift == shift[0])
        else f" in measurements {runs[0][0]} to {runs[0][1] - 1}"
    )
    where += "".join(f", by {lag:+d} in {a} to {b - 1}" for a, b, lag in runs[1:4])
    yield Check(
        f"readouts look shifted by {runs[0][2]:+d} samples against the inputs{where}: inputs of another measurement "
        "fit there, and their own do not; check the trigger, then realign the rows (infocap diagnose --fix).",
        unreliable="readouts shifted against the inputs",
        cause="shift", shifts=runs, rows=s.rows[shift != 0].tolist(),
    )  # fmt: skip


def _nothing_found(s: Stretch) -> Iterator[Check]:
    """Readouts without any low-degree function of their inputs: a large shift, a reversed order, or other inputs."""
    n, rank, y = s.n, s.z.shape[1], s.y[:SCANNED]
    z, lags = (
        s.turned(np.eye(rank)).clip(-LARGE_Z, LARGE_Z),
        np.concatenate([np.arange(n), np.arange(-n, 0)]),
    )
    z = np.fft.rfft(z - z.mean(axis=0), 2 * n, axis=0)
    common, best = n - np.abs(lags), (0.0, 0, False)
    for turned in (False, True):
        spectra = np.fft.rfft(y[:, ::-1] if turned else y, 2 * n)
        power = sum(
            np.sum(np.fft.irfft(z * np.conj(one)[:, None], axis=0) ** 2, axis=1) for one in spectra
        )
        power = np.where(common >= max(64, 2 * rank, n // 8), power / np.maximum(common, 1), 0.0)
        best = max(best, (float(power.max()), int(lags[np.argmax(power)]), turned))
    power, lag, turned = best
    if lag == 0 and not turned and power > s.limit(rank * len(y), 4 * n):
        return  # seen in all measurements, if not in the first
    if power > s.limit(rank * len(y), 4 * n):
        how = "reversed" if turned else f"shifted by {lag:+d} samples"
        yield Check(
            f"readouts look {how} against the inputs throughout: nothing of the inputs is seen in their own rows; "
            "check the trigger and the order of both tables, then realign the rows (infocap diagnose --fix).",
            unreliable="readouts shifted against the inputs",
            cause="shift", reversed=turned, shifts=[[s.first, s.first + n, lag]], rows=[],
        )  # fmt: skip
        return
    yield Check(
        "nothing of the inputs is seen in the readouts, at any shift and in either order; check that these are the "
        "inputs that were sent (not those of another seed or run), and that the source was connected.",
        unreliable="nothing of the inputs is seen", cause="nothing",
    )  # fmt: skip


def hum(s: Stretch) -> Iterator[Check]:
    """A line in the spectrum of the readouts, such as hum of the mains."""
    d, n = s.rest.shape
    if (
        n < RESOLVED * s.samples.basis.memory
    ):  # a resonance is a line, too, as narrow as one over its memory
        return
    power = np.sum(np.abs(np.fft.rfft(s.rest)) ** 2, axis=0) / n
    around = np.convolve(power, np.repeat([1, 0, 1], [BESIDE, 5, BESIDE]) / (2 * BESIDE), "same")
    middle = slice(2 * BESIDE, -2 * BESIDE)  # lower frequencies are drift
    place = 2 * BESIDE + int(np.argmax(np.where(power > NARROW * around, power, 0.0)[middle]))
    # Readouts with memory have a spectrum, which may be that of one direction alone: exponentially distributed.
    least = (
        s.limit(2 * d, n)
        if not s.samples.history
        else max(s.limit(2 * d, n), around[place] * s.limit(2, n))
    )
    if power[place] < least / 2:
        return
    rank, waves = (
        s.z.shape[1],
        np.exp(-2j * np.pi / n * np.outer(np.arange(place - 3, place + 4), np.arange(n))),
    )
    inputs = np.sum(np.abs(s.y[:, :n] @ waves[3]) ** 2) / n
    if inputs > s.limit(2 * len(s.y)) / 2:  # the inputs have that line themselves
        return
    held = 2 / n**2 * float(np.sum(np.abs(waves @ s.turned(np.eye(rank))[:n]) ** 2)) - 14 * rank / n
    if held > WORTH:
        yield Check(
            f"the readouts oscillate with a period of {n / place:.4g} measurements (hum of the mains, or a beat of "
            f"two clocks), which takes {min(held, 2.0):.2g} of their capacity; find its source, or subtract it.",
            unreliable="hum in the readouts",
            cause="hum", period=n / place, capacity=held,
        )  # fmt: skip


def unsteady(s: Stretch) -> Iterator[Check]:
    """Readouts that grow or shrink during the run, all or some of them, as when a gain or the power changes."""
    epoch, few = s.n // EPOCHS, s.clear[: len(s.guess)]
    held = np.sum(s.own[:, few] ** 2, axis=0)[:, None]
    clear = np.flatnonzero(held > WELL_HELD)
    if not len(clear):
        return
    y, held = s.y[few[clear], : epoch * EPOCHS], held[clear]
    gain = y * (
        np.clip(s.guess[clear, : epoch * EPOCHS], -3, 3) / held - y
    )  # relative to that of the first ones
    means = (gain - gain.mean(axis=1, keepdims=True)).reshape(len(gain), EPOCHS, epoch).mean(axis=2)
    z = epoch * float(
        np.sum(means * np.linalg.solve(np.cov(gain).reshape(2 * gain.shape[:1]), means))
    )
    change = float(np.sqrt(np.mean(means**2)))
    if z > s.limit((EPOCHS - 1) * len(gain)) and change > UNSTEADY:
        yield Check(
            f"readouts grow or shrink during the run, by {change:.1%} (root mean square over {EPOCHS} parts of "
            f"measurements {s.first} to {s.first + s.n - 1}), as when a gain or the power changes; keep both steady.",
            unreliable="readouts that change their size",
            cause="unsteady", change=change,
        )  # fmt: skip


def clocks(s: Stretch) -> Iterator[Check]:
    """Counters, time stamps and temperatures among the readouts."""
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
            cause="no readout", channels=names,
        )  # fmt: skip
