"""The second pass: the residuals of a fit, and what they say about every capacity: its value, bias and error.

Write z for the whitened readouts, c = E[y z] for the coefficients of a function y, G = E[z z'] and W = G^-1 c.
When c and G are off by dc and dG, the capacity C = c'G^-1c is off by 2 W·dc - W'dG W to first order, and by
|dc - dG W|² in the metric G^-1 to second order; the second is positive and does not average out. With the
readout split into what a fit predicts and the rest, z = f + e, a sample adds y e to dc and
e f' + f e' + e e' to dG. So the first order is a mean over samples of (e·W)(2 rho + e·W), where
rho = y - z·W is what the readouts leave of the target, and the second is the square of the mean of
e rho - f (e·W), whose expectation is 1/N times the mean of its square.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from .._arrays import array_namespace, on_device, times, to_numpy
from ..basis._product import ProductBasis
from ..kernels._summary import TINY, Sums, add_groups, rows_at, serial_sums
from ..samples._samples import Samples
from ..typing import Floats, Integers
from ._evidence import Evidence
from ._fit import LEAST_MARGIN, Fit, inverse_root, pieces
from ._tuning import TUNING

# A variance that rests on n samples is widened by the factor 1 + 4 / n, which covers Student's factor from n = 3 on.
FEW_SAMPLES = 4.0
# Bytes of sums y e' by groups that are held at a time; with more functions the second pass is made several times.
SUMS_BYTES, DEVICE_SUMS_BYTES = 500_000_000, 8_000_000_000
# Numbers that are made at a time of some functions and samples: in cache, and less than the 128 KB above which memory
# is fetched from the system each time (Dask's workers, for which that doubled the time of the pass).
CACHED_NUMBERS = 16_000


@dataclass(frozen=True, eq=False)
class Residuals(Sums):
    """Sums over the samples of one group, for a part of the functions."""

    count: int
    fitted: Any  # phi e', (dictionary, rank)
    targets: Any  # y e', (terms, rank); empty if those functions are in the dictionary
    mixed: Any  # z e' + e z' - e e', (rank, rank)
    square: Any  # e e'
    slope: Any  # |f|² e e', in the metric
    inner: Any  # z (a z + 2 b e)' + |f|² e e', (rank, rank); see `_residuals`
    bias: Any  # a y², (terms,): N² times what the squares add to a capacity is bias - 2 `cross` + W `inner` W'
    cross: Any  # y (a z + b e)·W, of the functions that are in the dictionary
    influence: (
        Any  # of single samples on these: sums of first, second and fourth powers, (3, functions)
    )
    weight: Any  # sums of |z|⁴, |e|⁴, |e|⁸, and of what is capped of |e|²: (4,)


@dataclass(frozen=True, eq=False)
class Job:
    """What the second pass needs: the fits, some functions with their weights W, and the metric G^-1/2."""

    fit: Fit
    own: Integers  # places of the functions that are in the dictionary
    weights: Any  # of these, (functions, rank); those of others are zero
    basis: (
        ProductBasis | None
    )  # the constant, which every basis begins with, and all functions, if some are not there
    root: Any  # (rank, rank)
    edges: Integers  # the rows where groups begin, half of them in each half of the samples


def residual_sums(
    samples: Samples, start: int, stop: int, *, job: Job, **frame: Any
) -> dict[int, Residuals]:
    """The sums over some rows, by the number of their group."""
    out, edges, middle = dict[int, Residuals](), job.edges - samples.first_row, len(job.edges) // 2
    parts = 2 if job.basis is None else max(len(job.basis) // len(job.fit.dictionary), 2)
    of_halves = pairwise(np.clip(edges[[0, middle, -1]], start, stop).tolist())
    for half, (begin, end) in zip(job.fit.halves, of_halves, strict=True):
        for first, u, phi, z in pieces(samples, begin, end, job.fit.dictionary, parts, **frame):
            xp, left = array_namespace(z), z - phi.T @ half.coefficients
            e = longer = left @ half.onto[-1]
            for k in sorted(half.onto.keys() - {-1}):
                candidate, along = job.fit.candidates[k], left @ half.onto[k]
                margin = candidate.fit.margin(phi)[:, None]
                by, less = (
                    xp.clip(margin, least * candidate.margin, None)
                    for least in TUNING.least_margins
                )
                e, longer = e + along / by, longer + along / less
            y = (
                phi[:0, :]
                if job.basis is None
                else samples.weighted(job.basis.values(u).T, first).T
            )
            values = phi, rows_at(phi, job.own), y
            cuts = np.clip(edges - first, 0, z.shape[0])
            for group in np.flatnonzero(np.diff(cuts)).tolist():
                a, b = cuts[group : group + 2].tolist()
                of_values, of_rows = (
                    [one[:, a:b] for one in values],
                    [one[a:b, :] for one in (z, e, longer)],
                )
                part = _residuals(of_values, of_rows, job, samples.n_total)
                out[group] = out[group].absorb(part) if group in out else part
    return out


def _residuals(values: list[Any], rows: list[Any], job: Job, n: int) -> Residuals:
    """The sums over a few rows of one group, from values of controls and functions, readouts and their residuals.

    With weights a = |e|² / (1 - |e|²/N) and b = e·f of the samples, the bias is the sum of a rho² - 2 b rho (e·W) +
    |f|² (e·W)². Since rho = y - z·W, sums of products give it, of which only those with y are many numbers.
    """
    (phi, y, every), (z, e, longer), xp = values, rows, array_namespace(rows[0])
    er, fr, lr = e @ job.root, (z - e) @ job.root, longer @ job.root
    ee, ef, ff, zz, ll = (
        xp.vecdot(a, b) for a, b in ((er, er), (er, fr), (fr, fr), (z, z), (lr, lr))
    )
    a, be = ee / xp.clip(1 - ee / n, LEAST_MARGIN, None), ef[:, None] * e
    mean, twice, rest = a[:, None] * z + be, 2 * longer.T, (longer / 2 - z).T
    squares, influence, own, more = [], [], y.shape[0], every.shape[0]
    step = (
        own + more if on_device(z) else max(CACHED_NUMBERS // z.shape[0], 8)
    )  # what is made of them stays in cache
    for low, high in pairwise([*range(0, max(own, 1), step), own]):
        some, weights = y[low:high, :], job.weights[low:high, :]
        squares.append((some * some) @ a)
        changed = weights @ rest + some
        changed *= weights @ twice  # (e·W)(2 rho + e·W)
        power = changed * changed
        influence.append(
            xp.stack([xp.sum(changed, axis=1), xp.sum(power, axis=1), xp.vecdot(power, power)])
        )
    mixed, square = z.T @ e, e.T @ e
    if more:
        squares = [
            every[low:high, :] ** 2 @ a for low, high in pairwise([*range(0, more, step), more])
        ]
    return Residuals(
        count=z.shape[0],
        fitted=times(phi, e),
        targets=times(every, e),
        mixed=mixed + mixed.T - square,
        square=square,
        slope=(er * ff[:, None]).T @ er,
        inner=z.T @ (mean + be) + (ff[:, None] * e).T @ e,
        bias=xp.concat(squares),
        cross=xp.vecdot(times(y, mean), job.weights),
        influence=xp.concat(influence, axis=1),
        weight=xp.stack([xp.sum(one) for one in (zz**2, ee**2, ee**4, ll - ee)]),
    )


@dataclass(frozen=True, eq=False)
class Found:
    """What the two passes say about some functions and about the sum of their capacities; parts can be added."""

    inside: Any  # c G^-1/2, (terms, rank), where the data are
    bias: Floats  # of |inside|²
    variance: Floats
    scatter: Floats  # variance of c from group to group, in the metric, (terms,)
    response: Floats  # power of c's change from half to half, with a fit that stays and one that moves with the samples
    totals: Floats  # sums of capacities, each without one group of samples
    of_halves: Floats  # sums of capacities from each half of the samples alone
    pooled: Floats  # covariance of c from group to group, summed over functions, (rank, rank)
    covariance: Floats  # of e in the metric, (rank, rank); its trace is the part of the rank that is not explained
    crowding: float  # S_N / (K N): how much single samples weigh
    contributors: float  # how many samples the noise of the total rests on
    capped: float  # mean of |e|², in the metric, that the least margin takes away
    smallest_eigenvalue: float  # of G


def second_order(evidence: Evidence, fit: Fit, edges: Integers, some: slice = slice(None)) -> Found:
    """Go through the samples once more with the chosen fits, for as many functions at a time as memory allows."""
    n, places, basis = evidence.n_samples, fit.places[some], evidence.basis
    known = places >= 0  # whether functions are in the dictionary
    allowed = DEVICE_SUMS_BYTES if evidence.samples.x.on_device else SUMS_BYTES
    if evidence.engine.memory_limit is not None:
        allowed = min(allowed, evidence.engine.memory_limit // 4)
    step = max(allowed // (8 * evidence.rank * len(edges)), 1)
    if len(places) > step:
        return _joined(
            [
                second_order(evidence, fit, edges, slice(k, k + step))
                for k in range(0, len(basis), step)
            ]
        )
    metric, _ = inverse_root(fit.gram)
    weights = rows_at(fit.c, places) @ (metric @ metric.T)
    kept: Any = [
        one if k in fit.halves[0].onto | fit.halves[1].onto else None
        for k, one in enumerate(fit.candidates)
    ]
    sent = replace(
        fit, candidates=kept, b=None, c=None, products=None
    )  # what is not used need not travel
    more = None if known.all() else basis.subset(np.union1d([0], np.arange(len(basis))[some]))
    job = Job(sent, places[known], rows_at(weights, np.flatnonzero(known)), more, metric, edges)
    found = evidence.engine.fold(
        evidence.samples, partial(residual_sums, job=job, **evidence.whitener), add_groups
    )
    xp, groups = array_namespace(metric), [found[group] for group in sorted(found)]
    there, extra = (
        np.where(known, np.cumsum(known) - 1, -1),
        0 if more is None else len(more) - len(places),
    )
    for k, one in enumerate(groups):
        squares = (
            xp.vecdot(weights @ one.inner, weights) - 2 * rows_at(one.cross[:, None], there)[:, 0]
        )
        groups[k] = replace(one, bias=one.bias[extra:] + squares)
    every = reduce(add, groups)
    parts = [
        rows_at(one.fitted, places) if more is None else one.targets[extra:, :] for one in groups
    ]  # sums y e'
    first_half = len(edges) // 2
    halves = [reduce(add, groups[:first_half]), reduce(add, groups[first_half:])]
    moved, own = _moved(fit, [one.fitted for one in halves])
    c = rows_at(fit.b - own / n, places) + sum(parts) / n
    gram = every.mixed / n + sum(
        half.share * (half.coefficients.T @ half.coefficients) for half in fit.halves
    )
    final, smallest = inverse_root(gram)
    covariance = to_numpy(final.T @ every.square @ final / n)
    # W's own noise would count as bias.
    noise_of_weights = float(xp.sum(every.slope * (metric.T @ every.square @ metric))) / n**2
    bias = (to_numpy(every.bias) - noise_of_weights) / n**2
    first, second, fourth = to_numpy(rows_at(every.influence.T, there)).T
    widened = 1 + FEW_SAMPLES / np.maximum(second**2 / np.maximum(fourth, TINY), 2.0)
    # A sum of squares with mean b and nu degrees of freedom scatters by 2 b² / nu. For functions that are in
    # part computed, b is smaller and so is nu; 2 b b0 / nu, with b0 that of a function that is not, is safe.
    variance = widened * (second - first**2 / n) / n**2
    variance += 2 * np.abs(bias) * np.sum(covariance**2) / (max(np.trace(covariance), TINY) * n)
    if evidence.basis.memory:
        bias, serial = serial_sums(weights, metric, every, groups, parts)
        variance = np.maximum(variance, (1 + FEW_SAMPLES / len(groups)) * serial)
    scatter, pooled, totals = _left_out(c, gram, final, every, groups, parts)
    # What a half of the samples changes of c when it moves the fit as well: (1 - A/N) db beside the mean of y e.
    fixed = [reduce(add, parts[:first_half]), reduce(add, parts[first_half:])]
    changing = [
        part + rows_at(n * db - fit.products @ db, places)
        for part, db in zip(fixed, moved, strict=True)
    ]
    between = [float(xp.sum(((one - two) @ final) ** 2)) for one, two in (fixed, changing)]
    _, _, of_halves = _left_out(c, gram, final, every, halves, fixed)
    weight = to_numpy(every.weight)
    return Found(
        inside=c @ final,
        bias=bias,
        variance=np.maximum(variance, 0.0),
        scatter=scatter,
        response=np.array(between),
        totals=totals,
        of_halves=of_halves[::-1],
        pooled=pooled,
        covariance=covariance,
        crowding=float(weight[0]) / (gram.shape[0] * n**2),
        contributors=float(weight[1] ** 2 / max(weight[2], TINY)),
        capped=float(weight[3]) / n,
        smallest_eigenvalue=smallest,
    )


def _left_out(
    c: Any, gram: Any, root: Any, every: Residuals, groups: list[Residuals], parts: list[Any]
) -> tuple[Floats, Floats, Floats]:
    """How c scatters from group to group (terms,), its covariance, and totals without each group (groups,).

    `parts` are what each group adds to N c. The noise that squares add to a total is the same for all groups to first
    order, but for their size and their residuals.
    """
    count, n, xp, all_c = len(groups), every.count, array_namespace(c), sum(parts)
    scatter, pooled, squares, grams, bias = 0.0, 0.0, [], [], []
    for part, one in zip(parts, groups, strict=True):
        share, m = one.count / n, n - one.count
        more = part - share * all_c
        off, left = more @ (root * (count / (n * one.count)) ** 0.5), c - more / m
        scatter, pooled = scatter + xp.vecdot(off, off), pooled + off.T @ off
        squares.append(left.T @ left)
        grams.append(gram - (one.mixed - share * every.mixed) / m)
        bias.append(xp.sum(every.bias - one.bias) / m**2)
    totals = xp.linalg.trace(xp.linalg.solve(xp.stack(grams), xp.stack(squares))) - xp.stack(bias)
    return to_numpy(scatter) / (count - 1), to_numpy(pooled), to_numpy(totals)


def _joined(parts: list[Found]) -> Found:
    """What was found for parts of the functions, as one."""
    every = {name: [getattr(one, name) for one in parts] for name in vars(parts[0])}
    of_each, of_all = (
        ("inside", "bias", "variance", "scatter"),
        ("totals", "of_halves", "pooled", "response"),
    )
    changed = {name: array_namespace(*every[name]).concat(every[name]) for name in of_each}
    changed |= {name: np.sum(every[name], axis=0) for name in of_all}
    return replace(parts[0], **changed)


def _moved(fit: Fit, fitted: list[Any]) -> tuple[list[Any], Any]:
    """By how much the samples of each half move the coefficients of the fit, (A + P)^-1 phi e'.

    The second is what they move in the fit of their own half, which leaves each of them out, summed over both.
    """
    moved, own, (one, two) = [0.0 * sums for sums in fitted], 0.0 * fitted[0], fit.halves
    for k in sorted((one.onto | two.onto).keys() - {-1}):
        onto = [half.onto.get(k, 0.0 * fit.gram) for half in fit.halves]
        for half, sums in enumerate(fitted):
            solved = fit.candidates[k].fit.solve(sums)
            moved[half] = moved[half] + solved @ (one.share * onto[0] + two.share * onto[1])
            own = own + solved @ onto[half]
    return moved, own
