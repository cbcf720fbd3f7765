"""The search for the best fit of the readouts, to serve as a control variate.

Any fit f(u) of a readout z by basis functions has known means E[y f] and E[f²]; only the residual e = z - f has
to be averaged over the samples. The mean square of e for samples left out of the fit (PRESS) is therefore the
variance of everything that is estimated, and the fit with the smallest one is the best. Noisy directions of
the readouts want no fit, clean ones the largest; so each direction chooses its own.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..basis._product import ProductBasis
from ..kernels._regression import Regression
from ..typing import Floats, Integers
from ._evidence import Evidence
from ._second_order import inverse_root
from ._tuning import TUNING


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Readouts, rotated to the directions that were fitted, and their residuals when left out.

    The last four say what becomes of white noise in these fits, for each direction: the variance of the
    coefficients over what `e` and `e_plain` make of it, the noise over e_plain², and N times the mean square
    of coefficients by degree over the noise.
    """

    z: Floats  # (samples, rank)
    e: Floats  # divided by a margin 1 - leverage that is not too small
    e_plain: Floats  # by the margin as it is
    lift: Floats  # c - mean(y e): coefficients less their own mean error, (reported + extra functions, rank)
    gram: Floats  # E[z z'], (rank, rank)
    freedom: Floats  # (rank,)
    gain: Floats
    gain_plain: Floats
    level: Floats
    null: Floats  # (degrees, rank)
    beyond: float = 0.0  # capacity of the highest degree tried: as much or more lies beyond


def uncontrolled(evidence: Evidence, z: Floats) -> CrossFit:
    """No fit but that of the constant readout, which is known."""
    skip = int(evidence.samples.constant)
    e, b = z.copy(), np.zeros((len(evidence.basis), z.shape[1]))
    e[:, :skip], b[0, :skip] = 0.0, 1.0
    one = np.ones(z.shape[1])
    return CrossFit(z, e, e, b, _gram(z, e, b), 0 * one, one, one, one, one[None])


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One fit with one penalty, and its left-out residuals on the rows that judge."""

    fit: Regression
    penalty: float
    residuals: Floats


class Search:
    """Fits compete; what they find is the prior of the fits of the next round (empirical Bayes)."""

    def __init__(self, evidence: Evidence, z: Floats) -> None:
        self._z, (self._n, self._rank) = z, z.shape
        self._skip = int(evidence.samples.constant)  # the constant readout comes first and is known exactly
        self._terms = len(evidence.basis)
        basis = _controls(evidence)
        self._degrees, self._share = basis.degrees, basis.share_of_last_degree
        self._dictionary = np.asfortranarray(evidence.values(basis))
        # Where each function of the dictionary goes: the reported ones in their order, then the others.
        known = {row: number for number, row in enumerate(map(tuple, evidence.basis.indices.tolist()))}
        self._place = np.array([known.get(row, -1) for row in map(tuple, basis.indices.tolist())])
        others = self._place < 0
        self._place[others] = self._terms + np.arange(others.sum())
        self._own = np.argsort(self._place)[: int(np.sum(~others))]  # columns of the reported functions
        self._direct: Regression | None = None
        if len(self._own) == self._terms and self._n > TUNING.enough_samples * self._terms:
            try:
                self._direct = Regression.least_squares(self._dictionary, self._own)
            except np.linalg.LinAlgError:  # the functions are not independent on these points
                self._direct = None
        n_probes = min(max(TUNING.probed // len(self._place), 8), 64)
        self._noise = np.random.default_rng(1).standard_normal((self._n, n_probes))
        reported = self._dictionary[:, self._own]
        self._power = np.einsum("ij,ij->i", reported, reported)
        some = np.sort(np.random.default_rng(0).permutation(self._n)[: TUNING.judges])
        self._judges: Integers | slice = slice(None) if self._n <= TUNING.judges else some

    def best(self) -> CrossFit:
        """The cross-fit whose residuals are smallest."""
        # No prior at first: all functions alike, or the reported ones alone where there are samples enough; with many
        # functions and a stable fit by least squares that alone will do.
        weights = np.ones(len(self._place))
        if self._n > 2 * self._terms:
            weights[self._place >= self._terms] = np.inf
        stable = self._direct is not None and self._direct.noise_gain < TUNING.stable_gain
        priors = [] if self._terms > TUNING.large and stable else [weights]
        work, last, score, best = 0.0, np.inf, np.inf, None
        for number in range(TUNING.rounds):
            for weights in priors:  # operations of a ridge fit; those of the eigenvectors are slower
                columns = int(np.isfinite(weights).sum())
                size = min(columns, self._n)
                work += 2.0 * self._n * columns * size + 30.0 * size**3
            if number > 1 and work > TUNING.most_work and score > TUNING.worth * last:
                break
            winners, rotation, press = self._round(priors)
            if best is not None and press >= score:
                break
            last, score, best = score, press, self._cross_fit(winners, rotation)
            if score > TUNING.enough_better * last or score < TUNING.exact:
                break
            priors = self._priors(best)
            if not priors:
                break
        assert best is not None
        capacity, error, _ = self._capacities(best)
        highest = (self._degrees == self._degrees[-1]) & (self._place >= self._terms)
        clear = capacity[highest & (capacity > TUNING.clear * error)]
        return replace(best, beyond=float(clear.sum()) / self._share)

    def _round(self, priors: list[Floats]) -> tuple[list[_Candidate], Floats, float]:
        """Judge all candidates for each direction, rotate to the directions of what is left, judge again.

        The first directions are those of what the best single fit leaves: so nothing depends on how the
        readouts are mixed. Gives the winner of each direction, the directions as columns, and the sum of what is left.
        """
        z = self._z[:, self._skip :]
        fits: list[tuple[Regression, Floats]] = [(Regression.none(self._n), np.zeros(1))]
        if self._direct is not None:
            fits.append((self._direct, np.zeros(1)))
        for weights in priors:
            fit = Regression.ridge(self._dictionary, np.flatnonzero(np.isfinite(weights)), weights)
            least = 0.0 if len(fit.columns) < TUNING.full * self._n else 1e-12
            fits.append((fit, self._n * np.array([least, *TUNING.penalties])))
        pool = [
            _Candidate(fit, float(penalty), residuals)
            for fit, penalties in fits
            for penalty, residuals in zip(penalties, fit.left_out(z, penalties, self._judges), strict=True)
        ]
        # What no fit at all leaves is the whitened readouts, whose directions are all alike: rounding would choose.
        fitted = [candidate for candidate in pool if len(candidate.fit.columns)] or pool
        best = min(fitted, key=lambda candidate: float(np.sum(candidate.residuals**2))).residuals
        rotation = np.linalg.eigh(best.T @ best)[1]
        choice, _ = _judge(pool, rotation)
        left = np.column_stack([pool[number].residuals @ rotation[:, k] for k, number in enumerate(choice)])
        rotation = rotation @ np.linalg.eigh(left.T @ left)[1]
        choice, press = _judge(pool, rotation)
        return [pool[number] for number in choice], rotation, float(press.sum())

    def _cross_fit(self, winners: list[_Candidate], rotation: Floats) -> CrossFit:
        """c = b + mean(y e), with b the fit's coefficients less what the samples left out take with them."""
        z = self._z.copy()
        z[:, self._skip :] = self._z[:, self._skip :] @ rotation
        e, e_plain = np.zeros((2, *z.shape))
        b, less = np.zeros((2, int(self._place.max()) + 1, self._rank))
        b[0, : self._skip] = 1.0
        freedom = np.zeros(self._rank)
        gain, gain_plain, level = np.ones((3, self._rank))
        null = np.ones((self._degrees[-1] + 1, self._rank))
        for candidate in dict.fromkeys(winners):  # each with all of its directions
            k = np.array([number + self._skip for number, one in enumerate(winners) if one is candidate])
            e[:, k], e_plain[:, k], b[:, k], less[:, k], freedom[k] = self._apply(candidate, z[:, k])
            if len(candidate.fit.columns):
                gain[k], gain_plain[k], level[k], by_degree = self._calibrate(candidate)
                null[:, k] = by_degree[:, None]
        return CrossFit(z, e, e_plain, b - less, _gram(z, e, b), freedom, gain, gain_plain, level, null)

    def _apply(self, candidate: _Candidate, z: Floats) -> tuple[Floats, Floats, Floats, Floats, float]:
        """Residuals of left-out samples (capped, plain), coefficients, their mean change, and degrees of freedom."""
        fit, penalty = candidate.fit, candidate.penalty
        left, margin = fit.residuals(z, penalty), fit.margin(np.array([penalty]))
        e, e_plain = (
            left / np.maximum(margin, least * margin.mean())
            for least in (TUNING.least_margin, TUNING.least_margin_plain)
        )
        b, less = np.zeros((2, int(self._place.max()) + 1, z.shape[1]))
        b[self._place[fit.columns]] = fit.coefficients(z, penalty)
        less[self._place[fit.columns]] = fit.coefficients(e, penalty) / self._n
        return e, e_plain, b, less, float(np.sum(1 - margin))

    def _calibrate(self, candidate: _Candidate) -> tuple[float, float, float, Floats]:
        """Send white noise through a fit, and see what the formulas make of it.

        Leaving a sample out of independent points tells the truth. In a low-discrepancy design the sample
        left out sits in a hole, its residual is too large, and coefficients scatter differently.
        """
        e, e_plain, b, less, _ = self._apply(candidate, self._noise)
        c = (b - less)[self._place] + self._dictionary.T @ e / self._n
        square = self._n * np.mean(c**2, axis=1) / np.mean(self._noise**2)
        null = np.bincount(self._degrees, square) / np.maximum(np.bincount(self._degrees), 1)
        scatter = self._n**2 * np.sum(c[self._own] ** 2)
        gain, gain_plain = (float(scatter / np.sum(self._power @ part**2)) for part in (e, e_plain))
        return gain, gain_plain, float(np.mean(self._noise**2) / np.mean(e_plain**2)), null

    def _capacities(self, found: CrossFit) -> tuple[Floats, Floats, float]:
        """Capacities of the dictionary's functions, their rough errors, and the mean noise of one."""
        n = self._n
        c = found.lift[self._place] + self._dictionary.T @ found.e / n
        root, _ = inverse_root(found.gram)
        inside, covariance = c @ root, root.T @ (found.e.T @ found.e / n) @ root
        noise = found.null @ (found.level * np.mean(found.e_plain**2, axis=0)) / n  # of a capacity, by degree
        noise = noise[self._degrees]
        capacity = np.sum(inside**2, axis=1) - noise
        chance = 2 * noise**2 * np.sum(covariance**2) / max(np.trace(covariance), 1e-300) ** 2
        error = np.sqrt(4 * np.sum((inside @ covariance) * inside, axis=1).clip(0.0) / n + chance)
        return capacity, error, float(np.mean(noise))

    def _priors(self, found: CrossFit) -> list[Floats]:
        """Weights of the next penalties: one over what each function seems to hold, infinite for nothing."""
        capacity, error, noise = self._capacities(found)
        count, clear = len(capacity), capacity > TUNING.clear * error
        floor = TUNING.far_below * noise * min(1.0, self._n / count)
        out = []
        for by_degree in (False, True) if count <= TUNING.both_rules else (False,):
            energy = np.empty(count)  # those that do not stand out share within their degree
            for degree in np.unique(self._degrees):
                same = self._degrees == degree
                faint = same & ~clear
                if by_degree:
                    energy[same] = TUNING.degree_share * max(capacity[same].mean(), 0.0)
                else:
                    energy[same] = max(capacity[faint].mean(), 0.0) if faint.any() else capacity[same].min()
            energy = np.where(clear, np.maximum(capacity, energy), energy)
            if energy.max() <= 0:
                continue
            least = floor
            if min(self._n, count) > TUNING.most_controls:
                least = max(floor, float(np.sort(energy)[-TUNING.most_controls]))
            weights = np.where(
                energy < least, np.inf, 1 / np.maximum(energy / energy.max(), TUNING.least_prior)
            )
            weights[0] = min(weights[0], 1.0)
            if np.isfinite(weights).sum() > 1:
                out.append(weights)
        return out


def _controls(evidence: Evidence) -> ProductBasis:
    """The functions that may serve: the reported ones and higher degrees, as far as samples and memory allow.

    Where already the reported ones are too many, those with the largest raw capacities.
    """
    basis, n = evidence.basis, evidence.n_samples
    most = TUNING.dictionary_bytes // (8 * n)
    if n > TUNING.most_dictionary:
        most = min(most, TUNING.most_dictionary)
    if len(basis) <= most:
        return _extended(basis, n, most)
    strongest = np.argsort(-evidence.raw)[:most]
    return ProductBasis(basis.families, basis.indices[np.union1d([0], strongest)])


@lru_cache(maxsize=8)
def _extended(basis: ProductBasis, n_samples: int, most: int) -> ProductBasis:
    """The basis and functions of higher degree; runs of one device mostly ask for the same ones."""
    return basis.extended(min(most, dictionary_size(n_samples, len(basis))))


def dictionary_size(n_samples: int, terms: int) -> int:
    """How many functions to try: some beyond the reported ones always, to see whether they hold anything.

    >>> dictionary_size(n_samples=1024, terms=66), dictionary_size(n_samples=8192, terms=1287)
    (409, 2100)
    """
    large = TUNING.most_dictionary * TUNING.many_samples / n_samples
    most = min(TUNING.dictionary_share * n_samples, TUNING.most_dictionary, large)
    return int(max(most, terms + TUNING.least_extra))


def search_bytes(n_samples: int, n_columns: int, terms: int) -> float:
    """Memory that the search takes: readouts and residuals, the dictionary and what it is factored into."""
    dictionary = min(dictionary_size(n_samples, terms), TUNING.dictionary_bytes // (8 * n_samples))
    return 8.0 * n_samples * (6 * n_columns + 4 * dictionary)


def _gram(z: Floats, e: Floats, b: Floats) -> Floats:
    """E[z z'] = E[f f'] + E[z e' + e z' - e e'], the first known from the coefficients of f."""
    mixed = z.T @ e
    return b.T @ b + (mixed + mixed.T - e.T @ e) / len(z)


def _judge(pool: list[_Candidate], rotation: Floats) -> tuple[Integers, Floats]:
    """The best candidate of each direction (a column of `rotation`) and its mean square."""
    press = np.array([np.mean((candidate.residuals @ rotation) ** 2, axis=0) for candidate in pool])
    choice = np.argmin(press, axis=0)
    return choice, press[choice, np.arange(len(choice))]
