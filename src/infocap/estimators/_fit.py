"""The fit of the readouts that serves as a control variate: one pass over the data, and a choice among ridge fits.

Any fit f(u) of the readouts z by functions of the inputs has known means E[y f] and E[f f']; only the residual
e = z - f has to be averaged over samples. Its mean square for samples left out of the fit is the variance of
everything that is estimated, so the fit with the smallest one is best. Noisy directions of the readouts want no
fit, clean ones the largest: each direction chooses its own. The directions used for one half of the samples are found
with the residuals of the other half, and all residuals choose the fit: a rotation found with the residuals that it is
judged by would find directions of noise that seem to be predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np

from .._arrays import array_namespace, as_like, take_rows, times, to_numpy
from ..basis._product import ProductBasis
from ..kernels._summary import Ridge, Sums, squares
from ..samples._samples import Samples
from ..typing import Floats, Integers
from ._evidence import Evidence
from ._tuning import TUNING

# Values of the dictionary that are made at a time: few enough to stay near the processor, or on a device in its memory.
HOST_NUMBERS, DEVICE_NUMBERS = 2_000_000, 250_000_000
# Least value of 1 minus the weight of a single sample, so that it cannot make a bias diverge or decide a p-value.
LEAST_MARGIN = 0.2
NOBODY = np.empty(0, dtype=int)  # no row judges


@dataclass(frozen=True, eq=False)
class Products(Sums):
    """Sums over samples of products of the controls phi and the whitened readouts z, and the rows that judge fits."""

    controls: Any  # phi phi', (controls, controls)
    cross: Any  # phi z', (controls, rank)
    readouts: Any  # z z', (rank, rank)
    count: int
    judges: list[tuple[Any, Any]] = field(
        default_factory=list
    )  # phi (controls, rows) and z (rows, rank)


@dataclass(frozen=True, eq=False)
class Half:
    """The fit for one half of the samples, in its own directions of the readouts."""

    share: float  # of all samples: one half, unless the number of groups is odd
    onto: dict[
        int, Any
    ]  # by number of fit, -1 for none, the projection on the directions that chose it, (rank, rank)
    coefficients: Any  # of all readouts, (dictionary, rank)


@dataclass(frozen=True, eq=False)
class Candidate:
    """One ridge fit, its mean margin, and what is left of each row that judges by the fit without it, (rows, rank)."""

    fit: Ridge
    margin: float
    left: Any


@dataclass(frozen=True, eq=False)
class Fit:
    """The chosen fits, and first estimates of c = E[y z] and G = E[z z'] from sums alone."""

    dictionary: ProductBasis
    places: Integers  # of the reported functions in the dictionary, -1 for those that are not there
    candidates: list[Candidate]
    halves: list[Half]  # two of them
    b: Any  # coefficients of the fit, their mean over samples, (dictionary, rank)
    c: Any  # of all functions of the dictionary, (dictionary, rank)
    gram: Any  # (rank, rank)
    products: Any  # sums of phi phi'
    left: float  # mean square of what is left, summed over readouts


def fit_readouts(evidence: Evidence, kind: str, edges: Integers) -> Fit:
    """One pass for the sums, then ridge fits; what they find is the prior of further ones (empirical Bayes).

    The first fits use the reported functions, the others also higher degrees. A second round of priors lowers the
    residual by less than 3 %, also with fewer samples than functions. `edges` are the rows where groups begin.
    """
    n, dictionary = evidence.n_samples, controls(evidence)
    judges = np.sort(np.random.default_rng(0).permutation(n)[: TUNING.judges])
    work = partial(products, judges=judges, **evidence.whitener)
    sums: Products = evidence.engine.fold(replace(evidence.samples, basis=dictionary), work)
    xp, middle, constant = (
        array_namespace(sums.cross),
        int(edges[len(edges) // 2]),
        int(evidence.samples.constant),
    )
    values, readouts = zip(*sums.judges, strict=True)
    judged = xp.concat(values, axis=1), xp.concat(readouts), int(np.searchsorted(judges, middle))
    places, weights = evidence.basis.places(dictionary), np.full(len(dictionary), np.inf)
    weights[places[places >= 0]] = 1.0
    contest = _Contest(dictionary, places, sums, constant, (middle / n, 1 - middle / n), *judged)
    penalties = {"none": (), "least-squares": (0.0,), "auto": TUNING.penalties[0]}[kind]
    first = contest.enter(weights, penalties)
    best = contest.winner(first)
    prior = contest.prior(best) if kind == "auto" else None
    if prior is None:
        return best
    return min(
        best,
        contest.winner(first[:1] + contest.enter(prior, TUNING.penalties[1])),
        key=lambda one: one.left,
    )


def products(
    samples: Samples, start: int, stop: int, *, judges: Integers = NOBODY, **frame: Any
) -> Products:
    """The sums over some rows; the controls are the basis of these samples."""
    total: Any = None
    for first, _, phi, z in pieces(samples, start, stop, samples.basis, **frame):
        here = judges - samples.first_row - first
        where = as_like(here[(here >= 0) & (here < z.shape[0])], z)
        judged = take_rows(phi.T, where).T, take_rows(z, where)
        part = Products(phi @ phi.T, times(phi, z), z.T @ z, z.shape[0], [judged])
        total = part if total is None else total.absorb(part)
    return cast(Products, total)


@dataclass(frozen=True, eq=False)
class _Contest:
    """Fits compete for each direction of the readouts by what they leave of rows that were left out, the judges."""

    dictionary: ProductBasis
    places: Integers  # of the reported functions in the dictionary
    sums: Products
    skip: int  # 1 where the first readout is the constant, which is known exactly
    shares: tuple[float, float]  # of all samples, in each half
    phi: Any  # values of the dictionary for the judges, (dictionary, rows)
    z: Any  # their readouts, (rows, rank)
    edge: int  # the first judge of the second half

    def enter(self, weights: Floats, penalties: tuple[float, ...]) -> list[Candidate]:
        """Ridge fits with these weights of the penalty, except where the functions are not independent."""
        out, kept = [], np.flatnonzero(np.isfinite(weights))
        scaled = (self.sums.count * penalty * weights[kept] for penalty in penalties)
        for fit in Ridge.fits(self.sums.controls, self.sums.cross, kept, scaled, TUNING.signs):
            margin = fit.margin(self.phi)
            left = (self.z - self.phi.T @ fit.coefficients) / margin[:, None]
            out.append(Candidate(fit, float(array_namespace(margin).mean(margin)), left))
        return out

    def winner(self, candidates: list[Candidate]) -> Fit:
        """The best fit of each direction, or none at all, and the first estimates that follow."""
        xp, halves, left, margins = array_namespace(self.z), [], 0.0, list[float]()
        left_out, rank = [self.z, *(one.left for one in candidates)], self.sums.cross.shape[1]
        in_halves = (
            (one[: self.edge, self.skip :], one[self.edge :, self.skip :]) for one in left_out
        )
        squares = xp.stack(
            [xp.stack([first.T @ first, second.T @ second]) for first, second in in_halves]
        )
        both = xp.sum(squares, axis=1)  # products of residuals with each other, for each fit
        common = 1 + int(np.argmin(to_numpy(xp.linalg.trace(both))[1:])) if candidates else 0
        for half, share in enumerate(self.shares):
            turn = xp.linalg.eigh(squares[common, 1 - half, :, :])[1]
            along = to_numpy(xp.sum((both @ turn) * turn, axis=1))
            best = np.argmin(along, axis=0)
            best[along.min(axis=0) > TUNING.clearly_better * along[common]] = common
            left += float(np.take_along_axis(along, best[None], axis=0).sum()) / (
                2 * self.z.shape[0]
            )
            rotation, choice = np.eye(rank), np.full(rank, -1)
            rotation[self.skip :, self.skip :], choice[self.skip :] = to_numpy(turn), best - 1
            b = as_like(
                np.eye(len(self.dictionary), rank) * (np.arange(rank) < self.skip), self.sums.cross
            )
            columns, onto = as_like(rotation, b), dict[int, Any]()
            for k in sorted({-1, *choice.tolist()}):
                onto[k] = (columns * as_like((choice == k) * 1.0, b)) @ columns.T
                b = b if k < 0 else b + candidates[k].fit.coefficients @ onto[k]
            margins += [candidates[k].margin for k in choice if k >= 0]
            halves.append(Half(share, onto, b))
        b = halves[0].share * halves[0].coefficients + halves[1].share * halves[1].coefficients
        seen = self.sums.controls @ b
        c = b + (self.sums.cross - seen) / (self.sums.count * float(np.mean(margins or 1.0)))
        gram = as_like(np.eye(rank), b) + b.T @ (b - seen / self.sums.count)
        return Fit(
            self.dictionary, self.places, candidates, halves, b, c, gram, self.sums.controls, left
        )

    def prior(self, found: Fit) -> Floats | None:
        """Weights of the next penalties: one over what each function seems to hold, infinite for nothing."""
        degrees, noise = self.dictionary.degrees, found.left / self.sums.count
        root, _ = inverse_root(found.gram)
        capacity = squares((found.c @ root).T) - noise
        error = np.sqrt(4 * np.maximum(capacity, 0) * noise + noise**2 / 2)
        clear, energy = capacity > TUNING.clear * error, np.empty(len(capacity))
        for degree in np.unique(degrees):  # those that do not stand out share within their degree
            same = degrees == degree
            faint = same & ~clear
            energy[same] = max(capacity[faint].mean(), 0.0) if faint.any() else capacity[same].min()
        energy = np.where(clear, np.maximum(capacity, energy), energy)
        if energy.max() <= 0:
            return None
        kept = energy >= TUNING.far_below * noise
        kept[0] = True
        return np.where(kept, 1 / np.maximum(energy / energy.max(), TUNING.least_prior), np.inf)


def inverse_root(gram: Any) -> tuple[Any, float]:
    """G^-1/2 up to a rotation, no direction blown up, and the smallest eigenvalue of G."""
    xp, least = array_namespace(gram), TUNING.least_eigenvalue
    eigenvalues, vectors = xp.linalg.eigh(gram)
    return vectors / xp.sqrt(xp.clip(eigenvalues, least, 1 / least)), float(eigenvalues[0])


def pieces(
    samples: Samples, start: int, stop: int, basis: ProductBasis, parts: int = 1, **frame: Any
) -> Iterator[tuple[int, Any, Any, Any]]:
    """First row, inputs, values of a basis (functions, rows) and readouts of consecutive pieces of some rows.

    Pieces, or so many `parts` of one, are multiplied at full speed. The values are overwritten by those of the next.
    """
    numbers, space = DEVICE_NUMBERS if samples.x.on_device else HOST_NUMBERS, None
    step = max(numbers // (parts * len(basis)), 64)
    for first in range(start, stop, step):
        last = min(first + step, stop)
        u = samples.inputs(first, last)
        space = basis.values(u, space)
        yield first, u, samples.weighted(space.T, first).T, samples.readouts(first, last, **frame)


def controls(evidence: Evidence) -> ProductBasis:
    """The functions that may serve: the reported ones and higher degrees; if those are too many, the strongest ones."""
    basis, most = evidence.basis, most_controls(evidence.n_samples, len(evidence.basis))
    if len(basis) <= most:
        return _extended(basis, most)
    strongest = np.argsort(-evidence.raw)[:most]
    return basis.subset(np.union1d([0], strongest))


@lru_cache(maxsize=8)
def _extended(basis: ProductBasis, most: int) -> ProductBasis:
    """The basis and functions of higher degree; runs of one device mostly ask for the same ones."""
    return basis.extended(most)


def most_controls(n_samples: int, terms: int) -> int:
    """How many functions may serve as controls.

    >>> most_controls(n_samples=1024, terms=66), most_controls(n_samples=8192, terms=1287)
    (264, 1287)
    """
    wanted = min(TUNING.controls_per_function * terms, max(terms, TUNING.controls))
    return int(min(TUNING.controls_per_sample * n_samples, wanted, TUNING.most_controls))
