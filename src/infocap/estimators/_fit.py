"""The fit of the readouts that serves as a control variate: ridge fits, chosen on held-out rows.

Any fit f(u) of the readouts z by functions of the inputs has known means E[y f] and E[f f']; only
the residual e = z - f has to be averaged over samples. Its mean square for samples left out of the
fit is the variance of everything that is estimated, so the fit with the smallest one is best.

Noisy directions of the readouts want no fit, clean ones the largest: each direction chooses its
own. The choice is cross-fitted: the directions for one half of the samples are found with the
residuals of the other half, and the residuals of both choose the fit. A rotation found with the
very residuals that then judge it would find directions of noise that seem to be predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import numpy as np

from .._arrays import array_namespace, multiply_tall, take_rows, to_library_of, to_numpy
from ..basis import ProductBasis
from ..kernels import AddableSums, Ridge, squares
from ..samples import Samples
from ..typing import Floats, Integers
from ._evidence import Evidence

# Ridge penalties per sample of the first fits, which have no prior, and of the fits with a prior.
# The residual of a fit changes little within a factor of ten of its best penalty: twice as many
# penalties gave the same errors (docs/estimators.md).
PENALTIES = (0.0, 1e-2, 1.0)
PENALTIES_WITH_PRIOR = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
# Rows that are held out to compare the fits; twice as many gave the same errors.
N_HELDOUT_ROWS = 1024
# Vectors of random signs from which leverages are found, to a quarter of themselves; twice as many
# gave the same errors.
N_SIGNS = 32
# A direction takes another fit than the common one if its residual power falls below this share:
# fewer fits are faster, and less the work of chance.
MAX_RESIDUAL_RATIO = 0.98

# Controls (functions in the fit) per sample: leverages come near 1 beyond it.
MAX_CONTROLS_PER_SAMPLE = 0.4
# Controls per reported function: degrees beyond these were found to hold nothing.
MAX_CONTROLS_PER_FUNCTION = 4.0
# Controls that cost no time, so that so many are used although fewer functions are reported.
N_CHEAP_CONTROLS = 1000
# Controls whose matrices fit into the memory of every machine.
MAX_CONTROLS = 4000

# Standard errors from which on a capacity stands out and has a prior of its own.
MIN_STANDARD_ERRORS_FOR_OWN_PRIOR = 2.0
# Share of the noise of one capacity below which a control is left out of the second fits.
MIN_PRIOR_TO_NOISE = 0.05
# Least prior, relative to the largest: it bounds the penalties.
MIN_RELATIVE_PRIOR = 1e-8
# Eigenvalues of G are 1 for whitened readouts and many samples; estimates below this are noise.
MIN_EIGENVALUE = 0.1
# Least margin 1 - h of a single sample of leverage h, so that it cannot make a bias diverge or
# decide a p-value.
MIN_SAMPLE_MARGIN = 0.2

# Values of controls that are made at a time, few enough to stay near the processor.
VALUES_PER_PIECE = 2_000_000
# The same on a device, where they take 2 GB.
VALUES_PER_PIECE_ON_DEVICE = 250_000_000
# Rows of a piece at least; fewer would cost more in Python than in the products.
MIN_ROWS_PER_PIECE = 64

NO_HELDOUT_ROWS = np.empty(0, dtype=int)
# The number of a direction's fit where no fit at all is best.
NO_FIT = -1


@dataclass(frozen=True, eq=False)
class Products(AddableSums):
    """Sums over samples of products of the controls phi and the whitened readouts z."""

    controls: Any  # phi phi', (controls, controls)
    cross: Any  # phi z', (controls, rank)
    readouts: Any  # z z', (rank, rank)
    count: int
    # Of the held-out rows, phi (controls, rows) and z (rows, rank) of each piece.
    heldout: list[tuple[Any, Any]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class HalfFit:
    """The fit for one half of the samples, in its own directions of the readouts."""

    share: float  # of all samples: one half, unless the number of groups is odd
    projections: dict[int, Any]  # on the directions that chose each candidate, (rank, rank)
    coefficients: Any  # of all readouts, (dictionary, rank)


@dataclass(frozen=True, eq=False)
class Candidate:
    """One ridge fit, and its residuals at the held-out rows."""

    fit: Ridge
    mean_margin: float  # mean of 1 - leverage over the held-out rows
    residuals: Any  # in a fit without each row, (rows, rank)


@dataclass(frozen=True, eq=False)
class Fit:
    """The chosen fits, and first estimates of c = E[y z] and G = E[z z'] from sums alone."""

    dictionary: ProductBasis  # the controls
    places: Integers  # of the reported functions in the dictionary, -1 for those not in it
    candidates: list[Candidate]
    halves: list[HalfFit]  # two of them
    coefficients: Any  # mean over samples, (dictionary, rank)
    c: Any  # first estimate for the functions of the dictionary, (dictionary, rank)
    gram: Any  # first estimate, (rank, rank)
    control_products: Any  # sums of phi phi'
    residual_power: float  # mean square of the residuals, summed over readouts


class Piece(NamedTuple):
    """Consecutive rows with what is needed of them at a time."""

    first: int  # the first row
    inputs: Any  # (rows, inputs)
    values: Any  # of a basis, (functions, rows)
    readouts: Any  # (rows, rank)


def fit_readouts(evidence: Evidence, kind: str, edges: Integers) -> Fit:
    """Fit the readouts by controls: one pass for the sums, then a choice among ridge fits.

    What the first fits find is the prior of further ones (empirical Bayes). The first fits use the
    reported functions, the others also higher degrees. A second round of priors would lower the
    residual by less than 3 %, also with fewer samples than functions.

    `kind` is ``"auto"``, ``"least-squares"`` or ``"none"``; `edges` are the rows where groups
    begin.
    """
    selection = _prepare_selection(evidence, edges)
    penalties = {"none": (), "least-squares": (0.0,), "auto": PENALTIES}[kind]
    is_reported = np.isin(np.arange(len(selection.dictionary)), selection.places)
    first_weights = np.where(is_reported, 1.0, np.inf)
    first_candidates = selection.candidates(first_weights, penalties)
    first_fit = selection.select(first_candidates)
    if kind != "auto":
        return first_fit

    prior_weights = selection.prior_weights(first_fit)
    if prior_weights is None:
        return first_fit
    candidates = first_candidates[:1]
    candidates += selection.candidates(prior_weights, PENALTIES_WITH_PRIOR)
    second_fit = selection.select(candidates)
    return second_fit if second_fit.residual_power < first_fit.residual_power else first_fit


def _prepare_selection(evidence: Evidence, edges: Integers) -> _FitSelection:
    """Make the pass over the samples that all fits need."""
    n = evidence.n_samples
    dictionary = controls(evidence)
    permutation = np.random.default_rng(0).permutation(n)
    heldout_rows = np.sort(permutation[:N_HELDOUT_ROWS])
    sum_products = partial(products, heldout_rows=heldout_rows, **evidence.whitener)
    samples = replace(evidence.samples, basis=dictionary)
    sums: Products = evidence.engine.fold(samples, sum_products)

    xp = array_namespace(sums.cross)
    middle = int(edges[len(edges) // 2])
    values, readouts = zip(*sums.heldout, strict=True)
    return _FitSelection(
        dictionary=dictionary,
        places=evidence.basis.positions_in(dictionary),
        sums=sums,
        n_constant=int(evidence.samples.constant),
        half_shares=(middle / n, 1 - middle / n),
        phi=xp.concat(values, axis=1),
        z=xp.concat(readouts),
        n_heldout_in_first_half=int(np.searchsorted(heldout_rows, middle)),
    )


def products(
    samples: Samples,
    start: int,
    stop: int,
    *,
    heldout_rows: Integers = NO_HELDOUT_ROWS,
    **whitener: Any,
) -> Products:
    """Return the sums over some rows; the controls are the basis of these samples."""
    total: Products | None = None
    for piece in iterate_pieces(samples, start, stop, samples.basis, **whitener):
        phi = piece.values
        z = piece.readouts
        rows = heldout_rows - samples.first_row - piece.first
        rows_here = to_library_of(rows[(rows >= 0) & (rows < z.shape[0])], z)
        heldout = (take_rows(phi.T, rows_here).T, take_rows(z, rows_here))
        sums = Products(phi @ phi.T, multiply_tall(phi, z), z.T @ z, z.shape[0], [heldout])
        total = sums if total is None else total.absorb(sums)
    return cast(Products, total)


@dataclass(frozen=True, eq=False)
class _FitSelection:
    """The choice among ridge fits for each direction of the readouts, by held-out residuals.

    A residual divided by the margin 1 - leverage is that of the fit without its row. So the rows
    are held out although all fits come from the sums over all samples.
    """

    dictionary: ProductBasis
    places: Integers  # of the reported functions in the dictionary
    sums: Products
    n_constant: int  # 1 where the first readout is the constant, which is known exactly
    half_shares: tuple[float, float]  # of all samples, in each half
    phi: Any  # values of the dictionary at the held-out rows, (dictionary, rows)
    z: Any  # readouts at these rows, (rows, rank)
    n_heldout_in_first_half: int

    def candidates(self, weights: Floats, penalties: tuple[float, ...]) -> list[Candidate]:
        """Return ridge fits with these weights of the penalty; infinite ones leave controls out.

        There is no fit where the controls are not independent on the samples.
        """
        kept = np.flatnonzero(np.isfinite(weights))
        scaled_penalties = (self.sums.count * penalty * weights[kept] for penalty in penalties)
        fits = Ridge.fits(self.sums.controls, self.sums.cross, kept, scaled_penalties, N_SIGNS)
        return [self._candidate(fit) for fit in fits]

    def _candidate(self, fit: Ridge) -> Candidate:
        margin = fit.margin(self.phi)
        residuals = (self.z - self.phi.T @ fit.coefficients) / margin[:, None]
        mean_margin = float(array_namespace(margin).mean(margin))
        return Candidate(fit, mean_margin, residuals)

    def select(self, candidates: list[Candidate]) -> Fit:
        """Return the best fit of each direction, or none at all, and the first estimates."""
        products_of_halves = self._residual_products(candidates)
        rank = self.sums.cross.shape[1]
        halves = list[HalfFit]()
        margins = list[float]()
        residual_power = 0.0
        for half, share in enumerate(self.half_shares):
            choice = self._choose(products_of_halves, other_half=1 - half)
            halves.append(self._half_fit(choice, share, candidates))
            residual_power += choice.residual_power / (2 * self.z.shape[0])
            margins += [candidates[k].mean_margin for k in choice.fits if k != NO_FIT]

        first, second = halves
        b = first.share * first.coefficients + second.share * second.coefficients
        fitted_sums = self.sums.controls @ b
        # The residuals of a fit are too small by the margins of their samples.
        mean_margin = float(np.mean(margins or 1.0))
        c = b + (self.sums.cross - fitted_sums) / (self.sums.count * mean_margin)
        gram = to_library_of(np.eye(rank), b) + b.T @ (b - fitted_sums / self.sums.count)
        return Fit(
            dictionary=self.dictionary,
            places=self.places,
            candidates=candidates,
            halves=halves,
            coefficients=b,
            c=c,
            gram=gram,
            control_products=self.sums.controls,
            residual_power=residual_power,
        )

    def _residual_products(self, candidates: list[Candidate]) -> Any:
        """Return products e'e of held-out residuals: (1 + candidates, halves, readouts, readouts).

        The first are those of no fit at all. The constant readout, which is exact, is left out.
        """
        xp = array_namespace(self.z)
        middle = self.n_heldout_in_first_half
        products_of_fits = []
        for residuals in (self.z, *(candidate.residuals for candidate in candidates)):
            first = residuals[:middle, self.n_constant :]
            second = residuals[middle:, self.n_constant :]
            products_of_fits.append(xp.stack([first.T @ first, second.T @ second]))
        return xp.stack(products_of_fits)

    def _choose(self, products_of_halves: Any, other_half: int) -> _Choice:
        """Let each direction choose its fit; the directions are those of the other half."""
        xp = array_namespace(products_of_halves)
        products_of_all = xp.sum(products_of_halves, axis=1)
        n_fits = products_of_all.shape[0] - 1
        power_of_fits = to_numpy(xp.linalg.trace(products_of_all))[1:]
        common = 1 + int(np.argmin(power_of_fits)) if n_fits else 0

        directions = xp.linalg.eigh(products_of_halves[common, other_half, :, :])[1]
        # Residual power of every fit along every direction, (1 + fits, directions).
        power = to_numpy(xp.sum((products_of_all @ directions) * directions, axis=1))
        best = np.argmin(power, axis=0)
        hardly_better = power.min(axis=0) > MAX_RESIDUAL_RATIO * power[common]
        best[hardly_better] = common
        chosen_power = np.take_along_axis(power, best[None], axis=0)

        rank = self.sums.cross.shape[1]
        rotation = np.eye(rank)
        rotation[self.n_constant :, self.n_constant :] = to_numpy(directions)
        fits = np.full(rank, NO_FIT)
        fits[self.n_constant :] = best - 1
        return _Choice(rotation, fits, float(chosen_power.sum()))

    def _half_fit(self, choice: _Choice, share: float, candidates: list[Candidate]) -> HalfFit:
        """Put the fit of one half together from the fits that its directions chose."""
        rank = len(choice.fits)
        is_constant = np.arange(rank) < self.n_constant  # which the first control predicts
        b = to_library_of(np.eye(len(self.dictionary), rank) * is_constant, self.sums.cross)
        rotation = to_library_of(choice.rotation, b)
        projections = dict[int, Any]()
        for k in sorted({NO_FIT, *choice.fits.tolist()}):
            is_chosen = to_library_of((choice.fits == k) * 1.0, b)
            projections[k] = (rotation * is_chosen) @ rotation.T
            if k != NO_FIT:
                b = b + candidates[k].fit.coefficients @ projections[k]
        return HalfFit(share, projections, b)

    def prior_weights(self, fit: Fit) -> Floats | None:
        """Return weights of the next penalties: 1 / what each function seems to hold.

        They are infinite where that is nothing; None where no function holds anything.
        """
        noise = fit.residual_power / self.sums.count
        root, _ = inverse_root(fit.gram)
        capacity = squares((fit.c @ root).T) - noise
        error = np.sqrt(4 * np.maximum(capacity, 0) * noise + noise**2 / 2)
        stands_out = capacity > MIN_STANDARD_ERRORS_FOR_OWN_PRIOR * error
        prior = self._prior_by_degree(capacity, stands_out)
        prior = np.where(stands_out, np.maximum(capacity, prior), prior)
        if prior.max() <= 0:
            return None
        kept = prior >= MIN_PRIOR_TO_NOISE * noise
        kept[0] = True
        weights = 1 / np.maximum(prior / prior.max(), MIN_RELATIVE_PRIOR)
        return np.where(kept, weights, np.inf)

    def _prior_by_degree(self, capacity: Floats, stands_out: Any) -> Floats:
        """Return the mean capacity of the functions of each degree that do not stand out."""
        degrees = self.dictionary.degrees
        prior = np.empty(len(capacity))
        for degree in np.unique(degrees):
            same_degree = degrees == degree
            faint = same_degree & ~stands_out
            if faint.any():
                prior[same_degree] = max(capacity[faint].mean(), 0.0)
            else:
                prior[same_degree] = capacity[same_degree].min()
        return prior


@dataclass(frozen=True, eq=False)
class _Choice:
    """Directions of the readouts, and the fit that each of them chose."""

    rotation: Floats  # directions in columns, (rank, rank)
    fits: Integers  # number of the candidate, NO_FIT for none, (rank,)
    residual_power: float  # sum over the held-out rows and directions


def inverse_root(gram: Any) -> tuple[Any, float]:
    """Return G^-1/2 up to a rotation, no direction blown up, and the smallest eigenvalue of G."""
    xp = array_namespace(gram)
    eigenvalues, vectors = xp.linalg.eigh(gram)
    limited = xp.clip(eigenvalues, MIN_EIGENVALUE, 1 / MIN_EIGENVALUE)
    return vectors / xp.sqrt(limited), float(eigenvalues[0])


def iterate_pieces(
    samples: Samples,
    start: int,
    stop: int,
    basis: ProductBasis,
    parts: int = 1,
    **whitener: Any,
) -> Iterator[Piece]:
    """Yield consecutive pieces of some rows, of a size that is multiplied at full speed.

    With `parts`, so many times smaller ones. The values are overwritten by those of the next piece.
    """
    n_values = VALUES_PER_PIECE_ON_DEVICE if samples.x.on_device else VALUES_PER_PIECE
    step = max(n_values // (parts * len(basis)), MIN_ROWS_PER_PIECE)
    memory = None
    for first in range(start, stop, step):
        last = min(first + step, stop)
        u = samples.inputs(first, last)
        memory = basis.values(u, memory)
        values = samples.apply_weights(memory.T, first).T
        yield Piece(first, u, values, samples.readouts(first, last, **whitener))


def controls(evidence: Evidence) -> ProductBasis:
    """Return the functions that may serve: the reported ones and higher degrees.

    If the reported ones are too many, the strongest of them serve.
    """
    basis = evidence.basis
    n_controls = most_controls(evidence.n_samples, len(basis))
    if len(basis) <= n_controls:
        return _extended(basis, n_controls)
    strongest = np.argsort(-evidence.raw)[:n_controls]
    return basis.subset(np.union1d([0], strongest))


@lru_cache(maxsize=8)
def _extended(basis: ProductBasis, n_controls: int) -> ProductBasis:
    """Add functions of higher degree; runs of one device mostly ask for the same ones."""
    return basis.extended(n_controls)


def most_controls(n_samples: int, n_terms: int) -> int:
    """Return how many functions may serve as controls.

    >>> most_controls(n_samples=1024, n_terms=66), most_controls(n_samples=8192, n_terms=1287)
    (264, 1287)
    """
    useful = min(MAX_CONTROLS_PER_FUNCTION * n_terms, max(n_terms, N_CHEAP_CONTROLS))
    return int(min(MAX_CONTROLS_PER_SAMPLE * n_samples, useful, MAX_CONTROLS))
