"""The smallest standard error that any method can reach with N samples.

docs/theory.md has the derivation.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._validation import checks_arguments, require_positive, require_whole_number, shown
from ..basis import ProductBasis
from ..designs import draw
from ..dimension import readouts, whiten
from ..errors import DataError, ParameterError
from ..result import CapacityResult
from ..systems import measure
from ..typing import Floats, System
from ._forecast import forecast_from

# Blocks of inputs: one for the differences, and two for the weights.
N_BLOCKS = 3
# Inputs of each block for what falls as 1/N²: an average over pairs of them, which this many give
# to 7 % or better.
FLOOR_ROWS = 1024


# Squares of smaller errors would need more samples than a number can hold.
MIN_SQUARED_ERROR = 1e-30


@dataclass(frozen=True, eq=False, repr=False)
class Bound:
    """The standard errors that no method can beat with N samples: sqrt(variance / N + floor / N²).

    Attributes
    ----------
    basis, n_samples
        The functions, and the number of samples.
    variance, total_variance
        The efficiency bound proper of every function, (terms,), and of the total, with p the best
        readout for the function y::

            E Var(2 y p - p² | u)

        It is what the noise of the device leaves uncertain once everything about the inputs is
        known, and 0 for a device without noise.
    floor, total_floor
        What the squares in a capacity add, and all there is for a function whose capacity is zero.
    rank
        How many readouts are linearly independent, the constant among them.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=6)
    >>> system = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=20, noise=0.05)
    >>> bound = efficiency_bound(system, basis, n_samples=1024, seed=1)
    >>> round(bound.total_standard_error, 2)
    0.05
    >>> bound.at(4096).total_standard_error < bound.total_standard_error / 2
    True
    >>> result = infocap.probe(system, basis, 1024, seed=1)
    >>> bool(0.7 < np.median(result.standard_error[1:] / bound.standard_error[1:]) < 2)
    True
    """

    basis: ProductBasis
    n_samples: int
    variance: Floats
    floor: Floats
    total_variance: float
    total_floor: float
    rank: int

    def __repr__(self) -> str:
        error = f"{self.total_standard_error:.2g}"
        return (
            f"Bound: with {self.n_samples} samples no method knows the total better than to "
            f"± {error}"
        )

    @property
    def standard_error(self) -> Floats:
        """The smallest standard error of every capacity, (terms,)."""
        return np.sqrt(self.variance / self.n_samples + self.floor / self.n_samples**2)

    @property
    def total_standard_error(self) -> float:
        """The smallest standard error of the total."""
        variance = self.total_variance / self.n_samples + self.total_floor / self.n_samples**2
        return float(np.sqrt(variance))

    @checks_arguments
    def at(self, n_samples: int) -> "Bound":
        """Return the bound for another number of samples.

        Parameters
        ----------
        n_samples
            The number of samples.
        """
        return replace(self, n_samples=require_whole_number("n_samples", n_samples, 1))

    @checks_arguments
    def samples_needed(self, error: float) -> int:
        """Return the least number of samples with which a method can know the total so well.

        Parameters
        ----------
        error
            The standard error of the total.
        """
        squared_error = float(np.square(np.float64(min(require_positive("error", error), 1e100))))
        if not MIN_SQUARED_ERROR < squared_error < 1 / MIN_SQUARED_ERROR:
            raise ParameterError(f"`error={error!r}` is no error that samples can reach.")
        # The positive solution of variance / N + floor / N² = error².
        half = self.total_variance / (2 * squared_error)
        n_samples = half + np.sqrt(half**2 + self.total_floor / squared_error)
        # With no more samples than independent readouts, every function seems to be computed
        # exactly.
        return max(int(np.ceil(n_samples)), self.rank + 1)


@checks_arguments
def efficiency_bound(
    source: System | CapacityResult,
    basis: ProductBasis | None = None,
    *,
    n_samples: int | None = None,
    seed: int | None = None,
    draws: int = 2**12,
) -> Bound:
    """Return the standard errors of every capacity and of the total that no method can beat.

    It holds for inputs of the distribution of the basis, drawn at random or evenly, and for any
    method that knows this distribution and nothing about the device (docs/theory.md). The ratio of
    an error to it says how good a method is.

    Parameters
    ----------
    source
        A system, (samples, inputs) -> (samples, readouts), as for `probe`: it is asked twice at the
        same inputs, and both answers must have noise of their own. Or a result: the bound is then
        what its error bars leave when the price of fitting the readouts is taken off. As far as
        functions outside the basis or few samples made those longer, it is too high.
    basis
        The functions; a result has its own.
    n_samples
        For which the standard errors are given: those of the result by default, or `draws`; see
        `Bound.at`.
    seed
        The same seed gives the same inputs, and the same noise for systems that take a ``seed``.
    draws
        A system is asked twice at 3 x `draws` inputs, a power of two; the default gives the bound
        to a few per cent.

    Returns
    -------
    Bound
        The smallest standard errors, for any number of samples.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=3)
    >>> system = lambda u, seed: u + 0.1 * np.random.default_rng(seed).standard_normal(u.shape)
    >>> round(efficiency_bound(system, basis, seed=1).samples_needed(0.001), -3)
    2000
    """
    if isinstance(source, CapacityResult):
        if basis is not None:
            raise ParameterError("a result has its own basis; leave out `basis`.")
        bound = _bound_of_result(source)
    elif isinstance(basis, ProductBasis) and callable(source):
        bound = _bound_of_system(source, basis, require_whole_number("draws", draws, 64), seed)
    else:
        raise ParameterError(
            f"`source={shown(source)}` must be a result, or a system together with its `basis`."
        )
    return bound if n_samples is None else bound.at(n_samples)


def _bound_of_result(result: CapacityResult) -> Bound:
    """Return what the error bars of a result leave without the price of fitting the readouts.

    The model of the forecast takes the error bars apart: 2 sum(v²) per function falls as 1/N².
    """
    spectrum = forecast_from(result).spectra[0]
    n_samples = result.n_samples
    errors = np.asarray(result.standard_error)
    floor = 2 * spectrum.sum_of_squares * (1 - np.clip(result.capacity, 0.0, 1.0)) ** 2
    return Bound(
        basis=result.basis,
        n_samples=n_samples,
        variance=np.maximum(n_samples * errors**2 - floor / n_samples, 0.0),
        floor=floor,
        total_variance=2 * spectrum.transition,
        total_floor=float(floor.sum()),
        rank=result.rank,
    )


class _BlockBound(NamedTuple):
    """The terms of the bound, as one block of inputs shows them."""

    variance: Floats  # (terms,)
    floor: Floats  # (terms,)
    total_variance: float
    total_floor: float


def _bound_of_system(system: System, basis: ProductBasis, draws: int, seed: int | None) -> Bound:
    """Return the bound from two measurements at the same inputs, compared block by block."""
    if basis.of_sequences:
        raise ParameterError(
            "the bound of a system with memory needs a result; pass that of probe(...)."
        )
    u = draw(basis, N_BLOCKS * draws, seed=seed, blocks=N_BLOCKS)
    z = _whitened_twice(system, u, seed)
    rank = z.shape[2]
    if draws < 2 * rank:
        raise DataError(
            f"`draws={draws}` is few for {rank} independent readouts; give at least {2 * rank}."
        )
    blocks = [slice(start, start + draws) for start in range(0, len(u), draws)]
    weights = [_best_weights(z[rows], basis(u[rows])) for rows in blocks]
    bounds = []
    for number, rows in enumerate(blocks):
        other_blocks = (weights[number - 1], weights[number - 2])
        bounds.append(_bound_of_block(basis(u[rows]), z[rows], other_blocks))
    return Bound(
        basis=basis,
        n_samples=draws,
        variance=np.maximum(np.mean([bound.variance for bound in bounds], axis=0), 0.0),
        floor=np.maximum(np.mean([bound.floor for bound in bounds], axis=0), 0.0),
        total_variance=max(float(np.mean([bound.total_variance for bound in bounds])), 0.0),
        total_floor=max(float(np.mean([bound.total_floor for bound in bounds])), 0.0),
        rank=rank,
    )


def _whitened_twice(system: System, u: Floats, seed: int | None) -> Floats:
    """Return whitened readouts of two measurements at the same inputs: (samples, 2, rank).

    The constant comes first.
    """
    shots = []
    for noise_seed in np.random.SeedSequence(seed).spawn(2):
        shots.append(readouts(measure(system, u, noise_seed), "system(u)").read_finite())
    no_single_shots = np.empty((0, shots[0].shape[1]))
    repeated = whiten(np.stack(shots, axis=1), no_single_shots, constant=True).repeated
    constant = np.ones((len(u), 2, 1))
    return np.concatenate([constant, repeated], axis=2)


def _bound_of_block(y: Floats, z: Floats, weights: tuple[Floats, Floats]) -> _BlockBound:
    """Return the terms of the bound from one block, with readout weights W of both other blocks.

    The variance is a square in W, so the noise of W would add to it. The product of two
    differences, each with the weights of another block, has nothing of that on average.
    """
    differences = _differences(y, z, weights[0])
    differences_again = _differences(y, z, weights[1])
    sums = differences.sum(axis=1)
    sums_again = differences_again.sum(axis=1)
    mean_weights = (weights[0] + weights[1]) / 2
    floor, total_floor = _floors(y[:FLOOR_ROWS], z[:FLOOR_ROWS], mean_weights)
    return _BlockBound(
        variance=np.mean(differences * differences_again, axis=0) / 2,
        floor=floor,
        total_variance=float(np.mean(sums * sums_again)) / 2,
        total_floor=total_floor,
    )


def _best_weights(z: Floats, y: Floats) -> Floats:
    """Return W = G⁻¹c, the weights of the best readout of every function, (rank, terms)."""
    shots = z.reshape(-1, z.shape[2])
    return np.linalg.solve(shots.T @ shots, z.sum(axis=1).T @ y)


def _differences(y: Floats, z: Floats, weights: Floats) -> Floats:
    """Return by how much 2 y p - p² differs between the two measurements, (samples, terms)."""
    p = z[:, 0] @ weights
    p_again = z[:, 1] @ weights
    return (p - p_again) * (2 * y - p - p_again)


def _floors(y: Floats, z: Floats, weights: Floats) -> tuple[Floats, float]:
    """Return 2 tr S² of every function and of their sum.

    S is the covariance of what noise adds to z (y - p). It is half that of the difference D of two
    measurements, and tr S² the mean over pairs of different samples of (D·D')² / 4.
    """
    n_samples = len(y)
    n_pairs = 2.0 * n_samples * (n_samples - 1)
    shots = z.transpose(1, 0, 2).reshape(2 * n_samples, -1)
    # (terms, 2 samples); the second measurement has a minus, so that a sum of both is their
    # difference.
    signed_shots = np.vstack([shots[:n_samples], -shots[n_samples:]])
    residual = np.hstack([y.T, -y.T])
    residual -= weights.T @ signed_shots.T
    floor = np.empty(len(residual))
    for term, residual_of_term in enumerate(residual):
        scaled = shots * residual_of_term[:, None]
        difference = scaled[:n_samples] + scaled[n_samples:]
        squares = np.einsum("ij,ij->i", difference, difference)
        floor[term] = (np.sum((difference.T @ difference) ** 2) - squares @ squares) / n_pairs
    products = (residual.T @ residual) * (shots @ shots.T)
    inner = products.reshape(2, n_samples, 2, n_samples).sum(axis=(0, 2))
    total_floor = np.sum(inner**2) - np.sum(np.diag(inner) ** 2)
    return floor, float(total_floor) / n_pairs
