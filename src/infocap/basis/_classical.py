"""The families that have a name: the recurrence of the polynomials and the quantile of each."""

from functools import partial

import numpy as np
import scipy

from .._validation import (
    checks_arguments,
    require_positive,
    require_probability,
    require_whole_number,
)
from ..typing import Floats
from ._family import Family, FourierFamily, discrete_family, no_recurrence
from ._registry import FAMILIES, built_in


def _beta_recurrence(a: float, b: float, count: int) -> tuple[Floats, Floats]:
    """Return the recurrence coefficients of the polynomials for Beta(a, b), stretched to [-1, 1].

    These are the Jacobi polynomials for the weight (1 - x)^alpha (1 + x)^beta.
    """
    alpha = b - 1
    beta = a - 1
    k = np.arange(count, dtype=float)
    total = 2 * k + alpha + beta
    with np.errstate(divide="ignore", invalid="ignore"):
        diagonal = (beta**2 - alpha**2) / (total * (total + 2))
    # The general form is 0 / 0 at k = 0 when alpha + beta = 0.
    diagonal[0] = (beta - alpha) / (alpha + beta + 2)

    k = k + 1
    total = 2 * k + alpha + beta
    square = 4 * k * (k + alpha) * (k + beta) / total**2 / (total + 1)
    # (k + alpha + beta) / (total - 1) is 0 / 0 at k = 1 when alpha + beta = -1; its value there is
    # 1.
    ratio = np.ones(count)
    ratio[1:] = (k[1:] + alpha + beta) / (total[1:] - 1)
    return diagonal, np.sqrt(square * ratio)


@built_in
def legendre() -> Family:
    """Return the Legendre polynomials, for an input that is uniform on [-1, 1].

    >>> legendre().quantile(np.array([0.0, 0.5, 1.0]))
    array([-1.,  0.,  1.])
    """
    return Family(
        name="legendre",
        symbol="P",
        recurrence=partial(_beta_recurrence, 1.0, 1.0),
        canonical_quantile=lambda p: 2 * p - 1,
        distribution="uniform",
    )


@built_in
def hermite() -> Family:
    """Return the Hermite polynomials, for a normal input with mean 0 and standard deviation 1.

    `domain` stands for the mean ± one standard deviation.

    >>> hermite().on((1, 3)).quantile(np.array([0.5]))  # mean 2, standard deviation 1
    array([2.])
    """

    def recurrence(count: int) -> tuple[Floats, Floats]:
        return np.zeros(count), np.sqrt(np.arange(1.0, count + 1))

    return Family(
        name="hermite",
        symbol="He",
        recurrence=recurrence,
        canonical_quantile=lambda p: scipy.special.ndtri(p),
        distribution="normal",
        support=(-np.inf, np.inf),
    )


@built_in
@checks_arguments
def jacobi(a: float, b: float) -> Family:
    """Return the Jacobi polynomials, for a Beta(a, b) input stretched to [-1, 1] (or to `domain`).

    Parameters
    ----------
    a, b
        The exponents of the density, which is proportional to (1 + x)^(a - 1) (1 - x)^(b - 1).

    Examples
    --------
    >>> jacobi(2, 2).on((0, 1)).quantile(np.array([0.5]))
    array([0.5])
    """
    a = require_positive("a", a)
    b = require_positive("b", b)
    return Family(
        name="jacobi",
        symbol="J",
        recurrence=partial(_beta_recurrence, a, b),
        canonical_quantile=lambda p: 2 * scipy.special.betaincinv(a, b, p) - 1,
        distribution=f"Beta({a:g}, {b:g})",
        parameters=(("a", a), ("b", b)),
    )


@built_in
@checks_arguments
def laguerre(shape: float = 1.0) -> Family:
    """Return the Laguerre polynomials, for an exponential or Gamma(shape) input.

    `domain` stands for the origin and the origin plus the scale.

    Parameters
    ----------
    shape
        The shape of the Gamma distribution; 1 is the exponential one.

    Examples
    --------
    >>> laguerre().quantile(np.array([0.5])).round(4)  # the median of an exponential input, ln 2
    array([0.6931])
    """
    shape = require_positive("shape", shape)

    def recurrence(count: int) -> tuple[Floats, Floats]:
        k = np.arange(1.0, count + 1)
        return 2 * k - 2 + shape, np.sqrt(k * (k + shape - 1))

    return Family(
        name="laguerre",
        symbol="La",
        recurrence=recurrence,
        canonical_quantile=partial(scipy.special.gammaincinv, shape),
        distribution="exponential" if shape == 1 else f"Gamma({shape:g})",
        parameters=(("shape", shape),),
        canonical=(0.0, 1.0),
        support=(0.0, np.inf),
        domain=(0.0, 1.0),
    )


@built_in
def chebyshev() -> Family:
    """Return the Chebyshev polynomials, for an arcsine input on [-1, 1].

    The sine of a uniform phase is such an input.

    >>> chebyshev().quantile(np.array([0.25])).round(4)
    array([-0.7071])
    """
    return Family(
        name="chebyshev",
        symbol="T",
        recurrence=partial(_beta_recurrence, 0.5, 0.5),
        canonical_quantile=lambda p: np.sin(np.pi * (p - 0.5)),
        distribution="arcsine",
    )


@built_in
def fourier() -> Family:
    """Return cosines and sines, for a phase that is uniform on [0, 2 pi].

    A `domain` must be one period long.

    >>> [fourier().label(k, "u1") for k in range(1, 4)]
    ['cos1(u1)', 'sin1(u1)', 'cos2(u1)']
    """
    period = (0.0, 2 * np.pi)
    return FourierFamily(
        name="fourier",
        symbol="",
        recurrence=no_recurrence,
        canonical_quantile=partial(np.multiply, 2 * np.pi),
        distribution="uniform phase",
        canonical=period,
        support=period,
        domain=period,
    )


@built_in
@checks_arguments
def binomial(n: int, p: float = 0.5) -> Family:
    """Return the Krawtchouk polynomials, for an input that counts 0, 1, ..., n successes.

    With a `domain` these are n + 1 equal steps from its low to its high end.

    Parameters
    ----------
    n
        The number of trials.
    p
        The probability of success in each.

    Examples
    --------
    >>> binomial(4).quantile(np.array([0.01, 0.5, 0.99]))
    array([0., 2., 4.])
    """
    n = require_whole_number("n", n, 1)
    p = require_probability("p", p)
    mass = scipy.stats.binom.pmf(np.arange(n + 1), n, p)
    levels = np.flatnonzero(mass)  # without the tails, where the probability is zero in 64 bits
    return discrete_family(
        levels.astype(float),
        mass[levels],
        canonical=(0.0, float(n)),
        name="binomial",
        symbol="K",
        distribution=f"Binomial({n}, {p:g})",
        parameters=(("n", n), ("p", p)),
    )


@built_in
@checks_arguments
def bernoulli(p: float = 0.5) -> Family:
    """Return the two functions of a binary input, which is 1 with probability `p` and else 0.

    With ``domain=(-1, 1)`` it is a spin.

    Parameters
    ----------
    p
        The probability of 1.

    Examples
    --------
    >>> bernoulli().on((-1, 1)).quantile(np.array([0.2, 0.8]))
    array([-1.,  1.])
    """
    p = require_probability("p", p)
    return discrete_family(
        np.array([0.0, 1.0]),
        np.array([1 - p, p]),
        canonical=(0.0, 1.0),
        name="bernoulli",
        symbol="B",
        distribution=f"Bernoulli({p:g})",
        parameters=(("p", p),),
    )


# The families that a user may name, in the order in which messages list them.
FAMILIES.update(
    {
        "legendre": legendre,
        "hermite": hermite,
        "jacobi": jacobi,
        "laguerre": laguerre,
        "chebyshev": chebyshev,
        "fourier": fourier,
        "binomial": binomial,
        "bernoulli": bernoulli,
    }
)
