"""The fit of the readouts that serves as a control variate: one pass over the data, and a choice among ridge fits.

Any fit f(u) of the readouts z by functions of the inputs has known means E[y f] and E[f f']; only the residual
e = z - f has to be averaged over samples. Its mean square for samples left out of the fit is the variance of
everything that is estimated, so the fit with the smallest one is best. Noisy directions of the readouts want no
fit, clean ones the largest: each direction chooses its own. The directions used for one half of the samples are found
with the residuals of the other half, and all residuals choose the fit: a rotation found with the residuals that it is
judged by would find directions of noise that seem to be predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .._array import array_namespace, as_like, take_rows, to_numpy
from ..basis._product import ProductBasis
from ..kernels._regression import Ridge
from ..samples._samples import Samples
from ..typing import Floats, Integers
from ._evidence import Evidence
from ._tuning import TUNING


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over samples of products of the dictionary with itself and with the readouts, and the rows that judge."""

    gram: Any  # (dictionary, dictionary)
    cross: Any  # (dictionary, rank)
    judges: list[tuple[Any, Any]]  # values of the dictionary (dictionary, rows) and readouts (rows, rank)

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.gram + other.gram, self.cross + other.cross, self.judges + other.judges)


@dataclass(frozen=True, eq=False)
class Half:
    """The fit for one half of the samples: directions as columns, the fit of each (0: none), its coefficients."""

    rotation: Floats  # (rank, rank)
    choice: Integers  # (rank,)
    b: Any  # (dictionary, rank), in the rotated frame

    @property
    def coefficients(self) -> Any:
        """In the frame of the readouts."""
        return self.b @ as_like(self.rotation.T, self.b)


@dataclass(frozen=True, eq=False)
class Fit:
    """The chosen fits, and the first estimates that follow: c and G, from sums alone."""

    dictionary: ProductBasis
    fits: list[Ridge]  # number 1 and on in the choices of both halves
    margins: list[float]  # the mean margin of each
    halves: tuple[Half, Half]
    c: Any  # coefficients of all functions of the dictionary, (dictionary, rank)
    gram: Floats  # E[z z'], (rank, rank)
    products: Any  # sums of phi phi', (dictionary, dictionary)
    left: float  # mean square of what is left, summed over readouts


def fit_readouts(evidence: Evidence, kind: str) -> Fit:
    """One pass for the sums, then rounds of fits; what they find is the prior of the next (empirical Bayes)."""
    n, terms = evidence.n_samples, len(evidence.basis)
    dictionary = controls(evidence)
    judges = np.sort(np.random.default_rng(0).permutation(n)[: TUNING.judges])
    sums: Sums = evidence.fold(_sums, dictionary=dictionary, judges=judges)
    contest = Contest(evidence, dictionary, sums, judges)
    places = evidence.basis.places(dictionary)
    reported = np.full(len(dictionary), np.inf)
    reported[places[places >= 0]] = 1.0
    if kind == "none":
        return contest.winner([])
    if kind == "least-squares":
        return contest.winner(contest.pool(reported, (0.0,)))
    every = np.ones(len(dictionary))
    first = contest.pool(reported if n > 2 * terms else every)
    best = contest.winner(first)
    for _ in range(1 if n > 2 * terms else TUNING.rounds):
        weights = contest.prior(best)
        if weights is None:
            break
        found = contest.winner(first[:1] + contest.pool(weights))
        if found.left > TUNING.enough_better * best.left:
            best = min(best, found, key=lambda one: one.left)
            break
        best = found
    return best


def _sums(samples: Samples, start: int, stop: int, *, dictionary: ProductBasis, judges: Integers, **frame: Any) -> Sums:
    """The sums of some rows, in pieces of the dictionary that are large enough to multiply at full speed."""
    step = stop - start if samples.x.on_device else max(TUNING.piece // len(dictionary), 256)
    total, rows = None, []
    for first in range(start, stop, step):
        last = min(first + step, stop)
        phi, z = samples.values(dictionary, first, last), samples.whitened(first, last, **frame)
        here = judges[slice(*np.searchsorted(judges, samples.first_row + np.array([first, last])))]
        if len(here):
            where = as_like(here - samples.first_row - first, z)
            rows.append((take_rows(phi.T, where).T, take_rows(z, where)))
        part = phi @ phi.T, phi @ z
        total = part if total is None else (total[0] + part[0], total[1] + part[1])
    assert total is not None
    return Sums(*total, rows)


class Contest:
    """Fits compete for each direction of the readouts by what they leave of rows that were left out."""

    def __init__(self, evidence: Evidence, dictionary: ProductBasis, sums: Sums, judges: Integers) -> None:
        self.n, self.skip, self.dictionary = evidence.n_samples, int(evidence.samples.constant), dictionary
        xp = array_namespace(sums.gram)
        self.gram, self.cross = sums.gram, sums.cross
        self.phi = xp.concat([phi for phi, _ in sums.judges], axis=1)
        self.z = xp.concat([z for _, z in sums.judges], axis=0)
        self.edge = int(np.searchsorted(judges, evidence.middle))  # the first judge of the second half
        self.signs = TUNING.signs if self.n >= 2.5 * len(dictionary) else len(dictionary)
        self.plain = self.press(self.z)

    def press(self, left: Any) -> Floats:
        """Products of residuals with each other, for both halves: (2, rank, rank), without the constant readout."""
        left = left[:, self.skip :]
        first, second = left[: self.edge, :], left[self.edge :, :]
        return np.array([to_numpy(first.T @ first), to_numpy(second.T @ second)])

    def pool(self, weights: Floats, penalties: tuple[float, ...] = TUNING.penalties) -> list[tuple[Ridge, float, Floats]]:
        """Fits with these weights of the penalty, each with its mean margin and what it leaves of the judges."""
        out = []
        for penalty in penalties:
            if penalty == 0 and np.isfinite(weights).sum() > TUNING.full * self.n:
                continue
            scaled = np.where(np.isfinite(weights), self.n * penalty * np.where(np.isfinite(weights), weights, 0.0), np.inf)
            fit = Ridge.of(self.gram, self.cross, scaled, self.signs)
            if fit is not None:
                margin = fit.margin(self.phi)
                left = (self.z - self.phi.T @ fit.coefficients) / margin[:, None]
                out.append((fit, float(array_namespace(margin).mean(margin)), self.press(left)))
        return out

    def winner(self, pool: list[tuple[Ridge, float, Floats]]) -> Fit:
        """The best fit of each direction, and the estimates that follow."""
        n, xp = self.n, array_namespace(self.gram)
        fits = [one[0] for one in pool]
        press = np.array([self.plain, *(one[2] for one in pool)])
        both = press.sum(axis=1)
        common = 1 + int(np.argmin([np.trace(one) for one in both[1:]])) if pool else 0
        halves, left = [], 0.0
        for half in (0, 1):
            turn = np.linalg.eigh(press[common, 1 - half])[1]
            along = np.einsum("ik,fij,jk->fk", turn, both, turn, optimize=True)
            choice = np.argmin(along, axis=0)
            least = along[choice, np.arange(len(choice))]
            choice[least > TUNING.clearly_better * along[common]] = common
            left += float(along[choice, np.arange(len(choice))].sum()) / (2 * self.z.shape[0])
            halves.append(self.half(turn, choice, fits))
        used = sorted({int(k) for half in halves for k in half.choice if k})
        b = (halves[0].coefficients + halves[1].coefficients) / 2
        mean = float(np.mean([pool[k - 1][1] for k in used])) if used else 1.0
        c = b + (self.cross - self.gram @ b) / (n * mean)
        known = to_numpy(b.T @ b - b.T @ (self.gram @ b) / n)
        return Fit(
            self.dictionary, fits, [one[1] for one in pool], (halves[0], halves[1]), c, known + np.eye(len(known)), self.gram, left
        )

    def half(self, turn: Floats, choice: Integers, fits: list[Ridge]) -> Half:
        """Coefficients in the rotated frame; the constant readout, which comes first, is known exactly."""
        xp, skip = array_namespace(self.gram), self.skip
        rank = len(turn) + skip
        rotation, chosen = np.eye(rank), np.zeros(rank, int)
        rotation[skip:, skip:], chosen[skip:] = turn, choice
        b = as_like(np.eye(len(self.dictionary), rank) * (np.arange(rank) < skip), self.gram)
        for k in np.unique(choice[choice > 0]):
            onto = rotation * (chosen == k)
            b = b + fits[k - 1].coefficients @ as_like(onto, b)
        return Half(rotation, chosen, b)

    def prior(self, found: Fit) -> Floats | None:
        """Weights of the next penalties: one over what each function seems to hold, infinite for nothing."""
        degrees, noise = self.dictionary.degrees, found.left / self.n
        root, _ = inverse_root(found.gram)
        capacity = np.sum((to_numpy(found.c) @ root) ** 2, axis=1) - noise
        error = np.sqrt(4 * np.maximum(capacity, 0) * noise + noise**2 / 2)
        clear, energy = capacity > TUNING.clear * error, np.empty(len(capacity))
        for degree in np.unique(degrees):  # those that do not stand out share within their degree
            same = degrees == degree
            faint = same & ~clear
            energy[same] = max(capacity[faint].mean(), 0.0) if faint.any() else capacity[same].min()
        energy = np.where(clear, np.maximum(capacity, energy), energy)
        if energy.max() <= 0:
            return None
        least = TUNING.far_below * noise
        weights = np.where(energy < least, np.inf, 1 / np.maximum(energy / energy.max(), TUNING.least_prior))
        weights[0] = min(weights[0], 1.0)
        return weights if np.isfinite(weights).sum() > 1 else None


def inverse_root(gram: Floats) -> tuple[Floats, float]:
    """G^-1/2 up to a rotation, no direction blown up, and the smallest eigenvalue of G."""
    eigenvalues, vectors = np.linalg.eigh(gram)
    low, high = TUNING.eigenvalues
    return vectors / np.sqrt(np.clip(eigenvalues, low, high)), float(eigenvalues[0])


def controls(evidence: Evidence) -> ProductBasis:
    """The functions that may serve: the reported ones and higher degrees; where those are too many, the strongest."""
    basis, n = evidence.basis, evidence.n_samples
    if len(basis) <= TUNING.most_controls:
        return _extended(basis, dictionary_size(n, len(basis)))
    strongest = np.argsort(-evidence.raw)[: TUNING.most_controls]
    return ProductBasis(basis.families, basis.indices[np.union1d([0], strongest)])


@lru_cache(maxsize=8)
def _extended(basis: ProductBasis, most: int) -> ProductBasis:
    """The basis and functions of higher degree; runs of one device mostly ask for the same ones."""
    return basis.extended(most)


def dictionary_size(n_samples: int, terms: int) -> int:
    """How many functions to try.

    >>> dictionary_size(n_samples=1024, terms=66), dictionary_size(n_samples=8192, terms=1287)
    (264, 1609)
    """
    most = min(TUNING.dictionary_share * n_samples, 4 * terms, max(1.25 * terms, TUNING.dictionary))
    return int(max(most, terms))
