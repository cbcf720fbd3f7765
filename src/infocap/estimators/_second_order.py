"""The second-order expansion of a capacity: its bias, its error bar, and how it scatters when it is zero.

Write z for the whitened readouts, c = E[y z] for the coefficients of a function y, G = E[z z'] and W = G^-1 c.
When c and G are off by dc and dG, the capacity C = c'G^-1c is off by 2 W·dc - W'dG W to first order, and by
|dc - dG W|² in the metric G^-1 to second order; the second is positive and does not average out. With the
readout split into what a fit predicts and the rest, z = f + e, a sample adds y e to dc and
e f' + f e' + e e' to dG. So the first order is a mean over samples of (e·W)(2 rho + e·W), where
rho = y - z·W is what the readouts leave of the target, and the second is the square of the mean of
e rho - f (e·W), whose expectation is 1/N times the mean of its square.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..typing import Floats

# Eigenvalues of G, which are 1 for whitened readouts and N large; estimates beyond these limits are noise, and a
# direction that was blown up by them would decide every capacity.
LEAST_EIGENVALUE, MOST_EIGENVALUE = 0.1, 10.0
# Least value of 1 - leverage in the bias, so that a single sample of high leverage cannot make it diverge.
LEAST_MARGIN = 0.2
# A variance that rests on n samples is widened by the factor 1 + 4 / n, which covers Student's factor from n = 3 on.
FEW_SAMPLES = 4.0
TINY = 1e-300
# Functions from which the scatter of those with capacity zero can be seen from the functions themselves; by how much
# two of their quantiles may disagree; and how much wider than expected they may scatter, beyond which it is capacity.
ENOUGH_FUNCTIONS, AGREEMENT, MOST_WIDER = 100, 0.1, 1.5


@dataclass(frozen=True, eq=False)
class Block:
    """Some samples: targets (terms, samples) and readouts (samples, rank).

    `e` are residuals as the mean of y e sees them. `e_capacity` and `e_total` are those from which the error
    bars of single capacities and of the total are made.
    """

    y: Floats
    z: Floats
    e: Floats
    e_capacity: Floats
    e_total: Floats


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """What the expansion says about every function (terms,) and about the sum."""

    plain: Floats  # c'G^-1c, before the bias is removed
    bias: Floats
    null_mean: Floats  # of `plain` for a function whose capacity is zero
    variance: Floats
    contributors: Floats  # how many samples the variance rests on
    total_variance: float
    covariance: Floats  # of e in the metric G^-1, (rank, rank)
    unexplained: float  # its trace: the part of the rank that is noise or outside the fit
    null_freedom: float  # degrees of freedom of a capacity that is zero (Satterthwaite)
    smallest_eigenvalue: float  # of G

    @property
    def unbiased(self) -> Floats:
        """The capacities without their second-order bias."""
        return self.plain - self.bias


def second_order(
    c: Floats,
    gram: Floats,
    noise: Floats,
    blocks: Iterable[Block],
    *,
    n_samples: int,
    independent: bool,
) -> SecondOrder:
    """Go through the samples once; `c` is (terms, rank), `noise` the covariance of e.

    `independent` says that the points are independent draws: then the noise of W takes its part of the bias.
    """
    n, terms = n_samples, len(c)
    root, smallest = inverse_root(gram)
    inside = c @ root
    weights, clean = inside @ root.T, _signal(inside, root.T @ noise @ root, n) @ root.T
    together = clean.T @ clean
    bias, null_mean, first, square, fourth = np.zeros((5, terms))
    covariance, slope, total_covariance = np.zeros((3, *gram.shape))
    rows = []
    work_space = np.empty((3, 0, 0))
    for block in blocks:
        y, z = block.y, block.z
        e, f = block.e @ root, (z - block.e) @ root
        ee, ef, ff = (np.einsum("ij,ij->i", a, b) for a, b in ((e, e), (e, f), (f, f)))
        if work_space.shape[1:] != y.shape:  # written over and over: fresh memory is slow to touch
            work_space = np.empty((3, *y.shape))
        rho, along, work = work_space
        np.subtract(y, np.matmul(weights, z.T, out=rho), out=rho)
        np.matmul(weights, block.e.T, out=along)
        bias -= 2 * np.multiply(rho, along, out=work) @ ef
        bias += np.multiply(rho, rho, out=work) @ (ee / np.maximum(1 - ee / n, LEAST_MARGIN))
        bias += np.multiply(along, along, out=work) @ ff
        null_mean += np.multiply(y, y, out=work) @ ee
        covariance += e.T @ e
        slope += (e * ff[:, None]).T @ e
        influence = np.subtract(y, np.matmul(clean, z.T, out=rho), out=rho)
        np.matmul(clean, block.e_capacity.T, out=along)
        influence *= 2
        influence += along
        influence *= along
        first += influence.sum(axis=1)
        influence *= influence
        square += influence.sum(axis=1)
        fourth += np.einsum("ij,ij->i", influence, influence)
        e = block.e_total
        rows.append(np.einsum("ij,ij->i", e, 2 * y.T @ clean + (e - 2 * z) @ together))
        total_covariance += (e @ root).T @ (e @ root)
    covariance, total_covariance = covariance / n, total_covariance / n
    if independent:
        bias -= np.sum(slope * covariance) / n
    bias /= n**2
    # A sum of squares with mean b and nu degrees of freedom scatters by 2 b² / nu. For functions that are in
    # part computed, b is smaller and so is nu; 2 b b0 / nu, with b0 that of a function that is not, is safe.
    unexplained = float(np.trace(covariance))
    degenerate = 2 * np.abs(bias) * float(np.sum(covariance**2)) / (max(unexplained, TINY) * n)
    variance = (square - first**2 / n) / n**2 * _widened(square**2, fourth) + degenerate
    every = np.concatenate(rows)
    every -= every.mean()
    total_variance = np.mean(every**2) / n * _widened(np.sum(every**2) ** 2, np.sum(every**4))
    total_variance += 2 * terms * np.sum(total_covariance**2) / n**2
    return SecondOrder(
        plain=np.sum(inside**2, axis=1),
        bias=bias,
        null_mean=null_mean / n**2,
        variance=np.maximum(variance, 0.0),
        contributors=square**2 / np.maximum(fourth, TINY),
        total_variance=float(total_variance),
        covariance=covariance,
        unexplained=unexplained,
        null_freedom=unexplained**2 / max(float(np.sum(covariance**2)), TINY),
        smallest_eigenvalue=smallest,
    )


def inverse_root(gram: Floats) -> tuple[Floats, float]:
    """G^-1/2 up to a rotation, no direction blown up, and the smallest eigenvalue of G."""
    eigenvalues, vectors = np.linalg.eigh(gram)
    root = vectors / np.sqrt(np.clip(eigenvalues, LEAST_EIGENVALUE, MOST_EIGENVALUE))
    return root, float(eigenvalues[0])


def _widened(square: Floats, fourth: Floats) -> Floats:
    """By how much to widen a variance that rests on square / fourth samples."""
    return 1 + FEW_SAMPLES / np.maximum(square / np.maximum(fourth, TINY), 2.0)


def _signal(inside: Floats, covariance: Floats, n_samples: int) -> Floats:
    """Coefficients with their noise shrunk away; in squares it would be taken for signal.

    The expected square of a coefficient is what its function holds times the share of its direction, both
    after their noise is subtracted; the factor is that of Wiener, square over square plus noise.
    """
    v, rotation = np.linalg.eigh(covariance)
    v = np.maximum(v, 0.0) / n_samples
    rotated = inside @ rotation
    function = np.maximum(np.sum(rotated**2, axis=1) - v.sum(), 0.0)
    direction = np.maximum(np.sum(rotated**2, axis=0) - len(inside) * v, 0.0)
    expected = np.outer(function, direction) / max(direction.sum(), TINY)
    return (rotated * np.sqrt(expected / (expected + v + TINY))) @ rotation.T


def p_values(found: SecondOrder) -> Floats:
    """The probability that a function of zero capacity comes out as large as it did.

    N C is then a sum of squares of normal variables with the eigenvalues of `covariance` as weights, close to a
    chi-squared variable with nu = tr² / tr(covariance²) degrees of freedom (Satterthwaite).
    """
    from scipy.special import chdtrc

    power = found.unexplained
    if power <= 0 or not np.any(found.null_mean > 0):
        return (found.plain <= 1e-14).astype(float)
    nu, ratio = found.null_freedom, found.plain / np.maximum(found.null_mean, TINY)
    if len(ratio) >= ENOUGH_FUNCTIONS:
        # Where zeros scatter more than they should, the lower part of all functions shows by how much, if its
        # shape is that of zeros.
        low, middle = null_scale(found, 0.1), null_scale(found, 0.4)
        if 1 < middle < MOST_WIDER and abs(low / middle - 1) < AGREEMENT:
            ratio = ratio / middle
    return chdtrc(nu, nu * ratio)


def null_scale(found: SecondOrder, p: float) -> float:
    """The p-quantile of all functions, relative to where it would be if all were zeros; capacity only raises it."""
    from scipy.special import chdtri

    nu, ratio = found.null_freedom, found.plain / np.maximum(found.null_mean, TINY)
    return float(np.quantile(ratio, p)) * nu / float(chdtri(nu, 1 - p))


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
