"""The search for the best fit of the readouts, to serve as a control variate.

Any fit f(u) of a readout z by basis functions has known means E[y f] and E[f²]; only the rest e = z - f has
to be averaged over the samples. The mean square of e for samples left out of the fit (PRESS) is therefore the
variance of everything that is estimated, and the fit with the smallest one is the best. Noisy directions of
the readouts want no fit, clean ones the largest; so each direction chooses its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..basis import ProductBasis
from ..kernels import Evidence, LeastSquares, NoFit, Regression, Ridge
from ..typing import Floats, Integers
from ._second_order import inverse_root

PENALTIES = 10.0 ** np.arange(-8, 3)  # for each sample
FULL = 0.9  # functions for each sample, above which a fit without penalty means nothing
ENOUGH_SAMPLES = 1.3  # for each function, to try least squares
STABLE_GAIN = 0.3
DICTIONARY_SHARE, MOST_DICTIONARY, MOST_CONTROLS = 0.4, 2100, 1000
LEAST_EXTRA = 100
MANY_SAMPLES = 10_000  # from which a large dictionary costs more than it brings
DICTIONARY_BYTES = 500_000_000
LARGE = 600  # functions, from which a round without prior costs more than it brings
ROUNDS, ENOUGH_BETTER, EXACT = 6, 0.97, 1e-20
MOST_WORK, WORTH = 8e10, 0.3  # operations, beyond which a round must have brought this much for another
PRESS_ROWS = 2048  # judge the candidates
LEAST_ROOM, LEAST_ROOM_PLAIN = 0.25, 0.02  # of the mean: a few corner points would dominate every sum
BOTH_RULES = 1000  # functions up to which two priors compete
CLEAR = 2.0  # standard errors
DEGREE_SHARE = 0.3
FAR_BELOW = 0.05  # of the noise of one capacity: a control this weak is left out
LEAST_PRIOR = 1e-8
PROBED = 20_000  # values of coefficients, by 8 to 64 columns of noise


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Readouts, turned to the directions that were fitted, and their residuals when left out.

    The last four say what becomes of white noise in these fits, for each direction: the variance of the
    coefficients over what `e` and `e_plain` make of it, the noise over e_plain², and N times the mean square
    of coefficients by degree over the noise.
    """

    z: Floats  # (samples, rank)
    e: Floats  # divided by a room that is not too small
    e_plain: Floats  # by the room as it is
    lift: Floats  # c - mean(y e): coefficients less their own mean error, (reported + extra functions, rank)
    gram: Floats  # E[z z'], (rank, rank)
    press: Floats  # (rank,)
    freedom: Floats  # (rank,)
    gain: Floats
    gain_plain: Floats
    level: Floats
    null: Floats  # (degrees, rank)
    beyond: float = 0.0  # capacity of the highest degree tried: as much or more lies beyond


def uncontrolled(evidence: Evidence, z: Floats) -> CrossFit:
    """No fit but that of the constant readout, which is known."""
    skip = int(evidence.walk.constant)
    e, b = z.copy(), np.zeros((len(evidence.walk.basis), z.shape[1]))
    e[:, :skip], b[0, :skip] = 0.0, 1.0
    one = np.ones(z.shape[1])
    press = np.mean(e[:, skip:] ** 2, axis=0)
    return CrossFit(z, e, e, b, _gram(z, e, b), press, 0 * one, one, one, one, one[None])


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One fit with one penalty, and its left-out residuals on the rows that judge."""

    fit: Regression
    penalty: float
    residuals: Floats


@dataclass(frozen=True, eq=False)
class _Round:
    """Who won: the fit of each direction, the directions (columns of `turn`), and what is left."""

    winners: list[_Candidate]
    turn: Floats
    press: Floats

    @property
    def score(self) -> float:
        return float(self.press.sum())


class Search:
    """Fits compete; what they find is the prior of the fits of the next round (empirical Bayes)."""

    def __init__(self, evidence: Evidence, z: Floats) -> None:
        self._z, (self._n, self._rank) = z, z.shape
        self._skip = int(evidence.walk.constant)  # the constant readout comes first and is known exactly
        self._terms = len(evidence.walk.basis)
        basis = controls(evidence)
        self._place, self._size = _places(basis, evidence.walk.basis)
        self._degrees, self._share = basis.degrees, basis.share_of_last_degree()
        self._dictionary = np.asfortranarray(evidence.walk.values(basis))
        self._own = np.argsort(self._place)[: int(np.sum(self._place < self._terms))]  # reported columns
        self._direct = self._least_squares() if len(self._own) == self._terms else None
        n_probes = min(max(PROBED // len(self._place), 8), 64)
        self._noise = np.random.default_rng(1).standard_normal((self._n, n_probes))
        reported = self._dictionary[:, self._own]
        self._power = np.einsum("ij,ij->i", reported, reported)
        some = np.sort(np.random.default_rng(0).permutation(self._n)[:PRESS_ROWS])
        self._judges: Integers | slice = slice(None) if self._n <= PRESS_ROWS else some

    def best(self) -> CrossFit:
        """The cross-fit whose residuals are smallest."""
        priors, work, last = self._first(), 0.0, np.inf
        best: tuple[_Round, CrossFit] | None = None
        for number in range(ROUNDS):
            work += sum(self._work(prior) for prior in priors)
            if number > 1 and work > MOST_WORK and best is not None and best[0].score > WORTH * last:
                break
            now = self._round(priors)
            if best is None or now.score < best[0].score:
                last = np.inf if best is None else best[0].score
                best = now, self._cross_fit(now)
            if now is not best[0] or now.score > ENOUGH_BETTER * last or now.score < EXACT:
                break
            priors = self._priors(best[1])
            if not priors:
                break
        assert best is not None
        capacity, error, _ = self._capacities(best[1])
        highest = (self._degrees == self._degrees[-1]) & (self._place >= self._terms)
        clear = capacity[highest & (capacity > CLEAR * error)]
        return replace(best[1], beyond=float(clear.sum()) / self._share)

    def _least_squares(self) -> LeastSquares | None:
        if self._n <= ENOUGH_SAMPLES * self._terms:
            return None
        try:
            return LeastSquares(self._dictionary, self._own)
        except np.linalg.LinAlgError:  # the functions are not independent on these points
            return None

    def _first(self) -> list[Floats]:
        """No prior: all functions alike, or the reported ones alone where there are samples enough."""
        if self._terms > LARGE and self._direct is not None and self._direct.noise_gain < STABLE_GAIN:
            return []  # least squares alone will do
        weights = np.ones(len(self._place))
        if self._n > 2 * self._terms:
            weights[self._place >= self._terms] = np.inf
        return [weights]

    def _work(self, weights: Floats) -> float:
        """Floating-point operations of one ridge fit; those of the eigenvectors are slower."""
        columns = int(np.isfinite(weights).sum())
        size = min(columns, self._n)
        return 2.0 * self._n * columns * size + 30.0 * size**3

    def _round(self, priors: list[Floats]) -> _Round:
        """Judge all candidates for each direction, turn to the directions of what is left, judge again.

        The first directions are those of what the best single fit leaves: so nothing depends on how the
        readouts are mixed.
        """
        z = self._z[:, self._skip :]
        fits: list[tuple[Regression, Floats]] = [(NoFit(self._n), np.zeros(1))]
        if self._direct is not None:
            fits.append((self._direct, np.zeros(1)))
        for weights in priors:
            fit = Ridge(self._dictionary, np.flatnonzero(np.isfinite(weights)), weights)
            least = 0.0 if len(fit.columns) < FULL * self._n else 1e-12
            fits.append((fit, self._n * np.concatenate([[least], PENALTIES])))
        pool = [
            _Candidate(fit, float(penalty), residuals)
            for fit, penalties in fits
            for penalty, residuals in zip(penalties, fit.left_out(z, penalties, self._judges), strict=True)
        ]
        # What no fit at all leaves is the whitened readouts, whose directions are all alike: rounding would choose.
        fitted = [candidate for candidate in pool if len(candidate.fit.columns)] or pool
        best = min(fitted, key=lambda candidate: float(np.sum(candidate.residuals**2))).residuals
        turn = np.linalg.eigh(best.T @ best)[1]
        choice, _ = _judge(pool, turn)
        rest = np.column_stack([pool[number].residuals @ turn[:, k] for k, number in enumerate(choice)])
        turn = turn @ np.linalg.eigh(rest.T @ rest)[1]
        choice, press = _judge(pool, turn)
        return _Round([pool[number] for number in choice], turn, press)

    def _cross_fit(self, won: _Round) -> CrossFit:
        """c = b + mean(y e), with b the fit's coefficients less what the samples left out take with them."""
        z = self._z.copy()
        z[:, self._skip :] = self._z[:, self._skip :] @ won.turn
        e, e_plain = np.zeros((2, *z.shape))
        b, less = np.zeros((2, self._size, self._rank))
        b[0, : self._skip] = 1.0
        freedom = np.zeros(self._rank)
        gain, gain_plain, level = np.ones((3, self._rank))
        null = np.ones((self._degrees[-1] + 1, self._rank))
        for candidate, k in self._groups(won):
            e[:, k], e_plain[:, k], b[:, k], less[:, k] = self._apply(candidate, z[:, k])
            freedom[k] = candidate.fit.freedom(candidate.penalty)
            if len(candidate.fit.columns):
                gain[k], gain_plain[k], level[k], by_degree = self._calibrate(candidate)
                null[:, k] = by_degree[:, None]
        gram = _gram(z, e, b)
        return CrossFit(z, e, e_plain, b - less, gram, won.press, freedom, gain, gain_plain, level, null)

    def _groups(self, won: _Round) -> list[tuple[_Candidate, Integers]]:
        """Each winner with its directions."""
        together: dict[int, list[int]] = {}
        for k, candidate in enumerate(won.winners):
            together.setdefault(id(candidate), []).append(k + self._skip)
        return [(won.winners[k[0] - self._skip], np.array(k)) for k in together.values()]

    def _apply(self, candidate: _Candidate, z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Residuals of left-out samples (capped, plain), coefficients, and their mean change."""
        fit, penalty = candidate.fit, candidate.penalty
        (rest, coefficients), room = fit.fit(z, penalty), fit.room(penalty)
        e, e_plain = (
            rest / np.maximum(room, least * room.mean())[:, None] for least in (LEAST_ROOM, LEAST_ROOM_PLAIN)
        )
        b, less = np.zeros((2, self._size, z.shape[1]))
        b[self._place[fit.columns]] = coefficients
        less[self._place[fit.columns]] = fit.coefficients(e, penalty) / self._n
        return e, e_plain, b, less

    def _calibrate(self, candidate: _Candidate) -> tuple[float, float, float, Floats]:
        """Send white noise through a fit, and see what the formulas make of it.

        Leaving a sample out of independent points tells the truth. In a low-discrepancy design the sample
        left out sits in a hole, its residual is too large, and coefficients scatter differently.
        """
        e, e_plain, b, less = self._apply(candidate, self._noise)
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
        inside, spread = c @ root, root.T @ (found.e.T @ found.e / n) @ root
        noise = found.null @ (found.level * np.mean(found.e_plain**2, axis=0)) / n  # of a capacity, by degree
        noise = noise[self._degrees]
        capacity = np.sum(inside**2, axis=1) - noise
        chance = 2 * noise**2 * np.sum(spread**2) / max(np.trace(spread), 1e-300) ** 2
        error = np.sqrt(4 * np.sum((inside @ spread) * inside, axis=1).clip(0.0) / n + chance)
        return capacity, error, float(np.mean(noise))

    def _priors(self, found: CrossFit) -> list[Floats]:
        """Weights of the next penalties: one over what each function seems to hold, infinite for nothing."""
        capacity, error, noise = self._capacities(found)
        count = len(capacity)
        floor = FAR_BELOW * noise * min(1.0, self._n / count)
        out = []
        for by_degree in (False, True) if count <= BOTH_RULES else (False,):
            energy = _energy(capacity, capacity > CLEAR * error, self._degrees, by_degree)
            if energy.max() <= 0:
                continue
            least = floor
            if min(self._n, count) > MOST_CONTROLS:
                least = max(floor, float(np.sort(energy)[-MOST_CONTROLS]))
            weights = np.where(energy < least, np.inf, 1 / np.maximum(energy / energy.max(), LEAST_PRIOR))
            weights[0] = min(weights[0], 1.0)
            if np.isfinite(weights).sum() > 1:
                out.append(weights)
        return out


def controls(evidence: Evidence) -> ProductBasis:
    """The functions that may serve: the reported ones and higher degrees, as far as samples and memory allow.

    Where already the reported ones are too many, those with the largest raw capacities.
    """
    basis, n = evidence.walk.basis, evidence.n_samples
    most = DICTIONARY_BYTES // (8 * n)
    if n > MOST_DICTIONARY:
        most = min(most, MOST_DICTIONARY)
    if len(basis) <= most:
        return basis.extended(min(most, dictionary_size(n, len(basis))))
    strongest = np.argsort(-evidence.raw)[:most]
    return ProductBasis(basis.families, basis.indices[np.union1d([0], strongest)])


def dictionary_size(n_samples: int, terms: int) -> int:
    """How many functions to try: some beyond the reported ones always, to see whether they hold anything.

    >>> dictionary_size(n_samples=1024, terms=66), dictionary_size(n_samples=8192, terms=1287)
    (409, 2100)
    """
    most = min(DICTIONARY_SHARE * n_samples, MOST_DICTIONARY, MOST_DICTIONARY * MANY_SAMPLES / n_samples)
    return int(max(most, terms + LEAST_EXTRA))


def search_bytes(n_samples: int, n_readouts: int, terms: int) -> float:
    """Memory that the search takes: readouts and residuals, the dictionary and what it is factored into."""
    dictionary = min(dictionary_size(n_samples, terms), DICTIONARY_BYTES // (8 * n_samples))
    return 8.0 * n_samples * (6 * n_readouts + 4 * dictionary)


def _gram(z: Floats, e: Floats, b: Floats) -> Floats:
    """E[z z'] = E[f f'] + E[z e' + e z' - e e'], the first known from the coefficients of f."""
    mixed = z.T @ e
    return b.T @ b + (mixed + mixed.T - e.T @ e) / len(z)


def _places(wide: ProductBasis, reported: ProductBasis) -> tuple[Integers, int]:
    """Where each function of the dictionary goes: the reported ones in their order, then the others."""
    known = {row: number for number, row in enumerate(map(tuple, reported.indices.tolist()))}
    place = np.array([known.get(row, -1) for row in map(tuple, wide.indices.tolist())])
    others = place < 0
    place[others] = len(reported) + np.arange(others.sum())
    return place, len(reported) + int(others.sum())


def _judge(pool: list[_Candidate], turn: Floats) -> tuple[Integers, Floats]:
    """The best candidate of each direction (a column of `turn`) and its mean square."""
    press = np.array([np.mean((candidate.residuals @ turn) ** 2, axis=0) for candidate in pool])
    choice = np.argmin(press, axis=0)
    return choice, press[choice, np.arange(len(choice))]


def _energy(capacity: Floats, clear: Floats, degrees: Integers, by_degree: bool) -> Floats:
    """How much each function is expected to hold; those that do not stand out share within their degree."""
    energy = np.empty(len(capacity))
    for degree in np.unique(degrees):
        same = degrees == degree
        faint = same & ~clear
        if by_degree:
            energy[same] = DEGREE_SHARE * max(capacity[same].mean(), 0.0)
        else:
            energy[same] = max(capacity[faint].mean(), 0.0) if faint.any() else capacity[same].min()
    return np.where(clear, np.maximum(capacity, energy), energy)
