"""The second pass: residuals of a fit, and what they say about every capacity: its value, its bias and its error.

Write z for the whitened readouts, c = E[y z] for the coefficients of a function y, G = E[z z'] and W = G^-1 c.
When c and G are off by dc and dG, the capacity C = c'G^-1c is off by 2 W·dc - W'dG W to first order, and by
|dc - dG W|² in the metric G^-1 to second order; the second is positive and does not average out. With the
readout split into what a fit predicts and the rest, z = f + e, a sample adds y e to dc and
e f' + f e' + e e' to dG. So the first order is a mean over samples of (e·W)(2 rho + e·W), where
rho = y - z·W is what the readouts leave of the target, and the second is the square of the mean of
e rho - f (e·W), whose expectation is 1/N times the mean of its square.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._array import array_namespace, as_like, take_rows, to_numpy
from ..basis._product import ProductBasis
from ..samples._samples import Samples
from ..typing import Floats, Integers
from ._evidence import Evidence
from ._fit import Fit, inverse_root
from ._tuning import TUNING

# Least value of 1 - |e|²/N in the bias, so that a single sample cannot make it diverge.
LEAST_MARGIN = 0.2
TINY = 1e-300
RESPONSE = True
DIAG = {}


@dataclass(frozen=True, eq=False)
class Residuals:
    """Sums over the samples of one group. Those with `l` are (terms,)."""

    count: int
    fitted: Any  # phi e', (dictionary, rank), in the rotated frame of the group's half
    targets: Any  # y e', (terms, rank)
    mixed: Any  # z e' + e z' - e e', (rank, rank)
    square: Any  # e e'
    slope: Any  # |f|² e e', in the metric
    bias: Any  # l: what the squares add to the capacity, times N²
    first: Any  # l: influences, their squares and fourth powers
    second: Any
    fourth: Any
    leverage: Any  # |z|⁴, and the second and fourth power of |e|²: (3,)

    def __add__(self, other: Residuals) -> Residuals:
        return Residuals(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


Groups = dict[int, Residuals]


@dataclass(frozen=True, eq=False)
class Pass:
    """What the second pass needs: the fits, the functions, the weights W of each, and the metric of G^-1."""

    fit: Fit
    basis: ProductBasis
    own: Integers | None  # places of the functions in the dictionary; None: not all are there
    weights: Any  # (terms, rank)
    root: Any  # (rank, rank)
    edges: Integers  # of the groups
    middle: int  # the first row of the second half


def residual_sums(samples: Samples, start: int, stop: int, *, job: Pass, **frame: Any) -> Groups:
    """Sums over some rows, group by group, in pieces that stay in cache."""
    out: Groups = {}
    step = stop - start if samples.x.on_device else max(TUNING.piece // 4 // len(job.fit.dictionary), 64)
    edges = np.clip(job.edges - samples.first_row, start, stop)
    for group, (begin, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        half = int(job.edges[group] >= job.middle)
        for first in range(begin, end, step):
            part = _piece(samples, first, min(first + step, end), job, half, frame)
            out[group] = out[group] + part if group in out else part
    return out


def merged(one: Groups, other: Groups) -> Groups:
    """The sums of both."""
    both = one.keys() & other.keys()
    return one | other | {group: one[group] + other[group] for group in both}


def _piece(samples: Samples, start: int, stop: int, job: Pass, half: int, frame: Any) -> Residuals:
    """The sums of one piece of rows."""
    phi, z = samples.values(job.fit.dictionary, start, stop), samples.whitened(start, stop, **frame)
    xp, n = array_namespace(z), samples.n_total
    chosen = job.fit.halves[half]
    rotation = as_like(chosen.rotation, z)
    rest = z @ rotation - phi.T @ chosen.b
    e = e_plain = rest
    for k in np.unique(chosen.choice[chosen.choice > 0]).tolist():
        margin, mean = job.fit.fits[k - 1].margin(phi), job.fit.margins[k - 1]
        here = as_like((chosen.choice == k).astype(float), z)
        capped, plain = (xp.clip(margin, least * mean, None)[:, None] for least in (TUNING.least_margin, 0.02))
        e, e_plain = e * (1 + here * (1 / capped - 1)), e_plain * (1 + here * (1 / plain - 1))
    fitted = phi @ e
    e, e_plain = e @ rotation.T, e_plain @ rotation.T
    if job.own is None:
        y = samples.values(job.basis, start, stop)
        targets = y @ e
    else:
        y = phi[: len(job.basis), :] if job.own[-1] == len(job.own) - 1 else take_rows(phi, as_like(job.own, phi))
        targets = fitted[:0, :]
    er, fr = e @ job.root, (z - e) @ job.root
    ee, ef, ff = xp.sum(er * er, axis=1), xp.sum(er * fr, axis=1), xp.sum(fr * fr, axis=1)
    rho, along = y - job.weights @ z.T, job.weights @ e.T
    bias = (rho * rho) @ (ee / xp.clip(1 - ee / n, LEAST_MARGIN, None)) - 2 * ((rho * along) @ ef) + (along * along) @ ff
    along = job.weights @ e_plain.T
    influence = along * (2 * rho + along)
    power = influence * influence
    mixed, square = z.T @ e, e.T @ e
    leverage = xp.sum(z * z, axis=1)
    return Residuals(
        count=stop - start,
        fitted=fitted,
        targets=targets,
        mixed=mixed + mixed.T - square,
        square=square,
        slope=(er * ff[:, None]).T @ er,
        bias=bias,
        first=xp.sum(influence, axis=1),
        second=xp.sum(power, axis=1),
        fourth=xp.sum(power * power, axis=1),
        leverage=xp.stack([xp.sum(leverage**2), xp.sum(ee**2), xp.sum(ee**4), xp.sum(ee*leverage), xp.sum(ee), xp.sum(ee*xp.sum(fr*fr,axis=1)), xp.sum(ee*ee*ff)]),
    )


@dataclass(frozen=True, eq=False)
class Found:
    """What the two passes say about every function (terms,) and about the sum."""

    plain: Floats  # c'G^-1c, before the bias is removed
    bias: Floats
    variance: Floats
    p_value: Floats
    total: float
    jackknife: float  # standard error of the total, from groups left out
    crowding: float  # S_N / (K N): how much single samples weigh
    contributors: float  # samples that the total's noise rests on
    smallest_eigenvalue: float  # of G
    widened: float  # variance of the coefficients relative to that with a fit that does not change
    unexplained: float  # trace of the covariance of e in the metric G^-1


def second_order(evidence: Evidence, fit: Fit) -> Found:
    """Go through the samples once more with the chosen fits, and take stock."""
    from scipy.special import fdtrc

    n, basis, dictionary = evidence.n_samples, evidence.basis, fit.dictionary
    own = basis.places(dictionary)
    inside = bool(np.all(own >= 0))
    root0, _ = inverse_root(fit.gram)
    c0 = take_rows(fit.c, as_like(own, fit.c)) if inside else evidence.coordinates.T / np.sqrt(n)
    root = as_like(root0, fit.c)
    job = Pass(
        fit, basis, own if inside else None, c0 @ (root @ root.T), root, evidence.group_edges, evidence.middle
    )
    groups: Groups = evidence.fold(residual_sums, merge=merged, job=job)
    sums = list(groups.values())
    every = sums[0]
    for one in sums[1:]:
        every = every + one
    edges, middle = job.edges, job.middle
    xp = array_namespace(fit.c)
    rotations = [as_like(half.rotation.T, fit.c) for half in fit.halves]
    fitted = [one.fitted @ rotations[int(edges[group] >= middle)] for group, one in groups.items()]
    shares = [sum(one.count for group, one in groups.items() if int(edges[group] >= middle) == h) / n for h in (0, 1)]
    b = sum(share * half.coefficients for share, half in zip(shares, fit.halves, strict=True))
    known = sum(share * half.rotation @ to_numpy(half.b.T @ half.b) @ half.rotation.T for share, half in zip(shares, fit.halves, strict=True))
    moved = _moved(fit, xp.concat(fitted, axis=1), shares)  # by how much each group moves the coefficients
    k_ = len(root0)
    moved = [moved[:, g * k_ : (g + 1) * k_] for g in range(len(fitted))]
    lift = b - sum(moved) / n
    ye = [take_rows(one, as_like(own, lift)) for one in fitted] if inside else [one.targets for one in sums]
    lift_l = take_rows(lift, as_like(own, lift)) if inside else _scattered(lift, own, basis)
    total_ye = sum(ye)
    dg = []
    if RESPONSE and inside:
        more = [n * one - fit.products @ one for one in moved]
        ye2 = [part + take_rows(one, as_like(own, lift)) for part, one in zip(ye, more, strict=True)]
        for one in more:
            g_ = to_numpy(one.T @ b)
            dg.append(g_ + g_.T)
    else:
        ye2 = ye
        dg = [0.0 for _ in ye]
    sum2 = sum(ye2)
    sumdg = sum(dg)
    c, gram = lift_l + total_ye / n, known + to_numpy(every.mixed) / n
    root1, smallest = inverse_root(gram)
    DIAG.update(c=c, G=gram)
    r1 = as_like(root1, c)
    square = to_numpy(every.square)
    spread = root1.T @ square @ root1 / n
    within = c @ r1
    plain = to_numpy(array_namespace(c).sum(within**2, axis=1))
    of_w = float(np.sum(to_numpy(every.slope) * (root0.T @ square @ root0))) / n**2
    bias = (to_numpy(every.bias) - of_w) / n**2
    capacity = plain - bias
    first, second, fourth = (to_numpy(one) for one in (every.first, every.second, every.fourth))
    widened = 1 + TUNING.few_samples / np.maximum(second**2 / np.maximum(fourth, TINY), 2.0)
    unexplained = float(np.trace(spread))
    variance = widened * (second - first**2 / n) / n**2
    variance += 2 * np.abs(bias) * np.sum(spread**2) / (max(unexplained, TINY) * n)
    # A function without capacity scatters about zero from group to group as much as its mean says.
    count, scatter, scatter0, together, totals = len(sums), 0.0, 0.0, 0.0, []
    for one, part0, part, dg1 in zip(sums, ye, ye2, dg, strict=True):
        off = (part / one.count - sum2 / n) @ r1 * np.sqrt(one.count * count / n)
        off0 = (part0 / one.count - total_ye / n) @ r1 * np.sqrt(one.count * count / n)
        scatter, together = scatter + array_namespace(off).sum(off**2, axis=1), together + to_numpy(off.T @ off)
        scatter0 = scatter0 + array_namespace(off).sum(off0**2, axis=1)
        m = n - one.count
        r, _ = inverse_root(gram + (to_numpy(every.mixed) + sumdg - to_numpy(one.mixed) - dg1) / m - (to_numpy(every.mixed) + sumdg) / n)
        left = (c + (sum2 - part) / m - sum2 / n) @ as_like(r, c)
        noise = np.trace(r.T @ (square - to_numpy(one.square)) @ r) / m**2
        totals.append((float(array_namespace(left).sum(left**2)), len(basis) * noise))
    widen = max(float(np.sum(scatter) / max(np.sum(scatter0), TINY)), 1.0)
    variance = variance * widen
    DIAG.update(widen=widen)
    nu = np.trace(together) ** 2 / max(np.sum(together**2), TINY)
    s2 = to_numpy(scatter) / (count - 1)
    p = fdtrc(nu, nu * (count - 1), count * plain / np.maximum(s2, TINY)) if unexplained > 0 else np.where(plain > TUNING.smallest, 0.0, 1.0)
    values = np.array([one - other for one, other in totals])
    lever, ee2, ee4, el, e1, eff, eef = to_numpy(every.leverage).tolist()
    DIAG.update(ke=el/e1/n, kf=eff/e1/n, k2=ee2/e1/n, keef=eef/ee2/n)
    return Found(
        plain, bias, np.maximum(variance, 0.0), p, float(capacity.sum()),
        float(np.sqrt((count - 1) / count * np.sum((values - values.mean()) ** 2))),
        lever / n / (len(gram) * n), ee2**2 / max(ee4, TINY), smallest, widen, unexplained,
    )


def _moved(fit: Fit, fitted: Any, shares: list[float]) -> Any:
    """(A + P)^-1 phi e' of the fits of all directions: by how much samples move the coefficients of the fit."""
    out, rank = 0.0 * fitted, len(fit.gram)
    for k in sorted({int(k) for half in fit.halves for k in half.choice if k}):
        onto = sum(share * (half.rotation * (half.choice == k)) @ half.rotation.T for share, half in zip(shares, fit.halves, strict=True))
        solved = fit.fits[k - 1].solve(fitted)
        parts = [solved[:, g : g + rank] @ as_like(onto, solved) for g in range(0, solved.shape[1], rank)]
        out = out + array_namespace(solved).concat(parts, axis=1)
    return out


def _scattered(lift: Any, own: Integers, basis: ProductBasis) -> Any:
    """Rows for all functions, zero for those that are not in the dictionary."""
    rows = to_numpy(lift)
    out = np.zeros((len(basis), rows.shape[1]))
    out[own >= 0] = rows[own[own >= 0]]
    return as_like(out, lift)


def benjamini_hochberg(p: Floats, rate: float) -> Floats:
    """True where a function is declared not zero, with at most this share of false declarations on average.

    >>> benjamini_hochberg(np.array([0.001, 0.03, 0.9, 0.02]), rate=0.05).tolist()
    [True, True, False, True]
    """
    order = np.argsort(p)
    passed = np.flatnonzero(p[order] <= rate * np.arange(1, len(p) + 1) / len(p))
    out = np.zeros(len(p), dtype=bool)
    if len(passed):
        out[order[: passed[-1] + 1]] = True
    return out
