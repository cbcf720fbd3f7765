"""The families with a name: each is its recurrence coefficients and the quantile of its measure."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy

from .._validation import one_of, positive, probability, whole_number
from ..errors import ParameterError
from ..typing import Floats
from ._family import FAMILIES, Family, FourierFamily, built_in, discrete, no_recurrence, restore


def _beta_recurrence(a: float, b: float, count: int) -> tuple[Floats, Floats]:
    """The recurrence coefficients of polynomials for Beta(a, b), stretched to [-1, 1]."""
    alpha, beta = b - 1, a - 1  # weight (1 - x)^alpha (1 + x)^beta
    k = np.arange(count, dtype=float)
    total = 2 * k + alpha + beta
    with np.errstate(divide="ignore", invalid="ignore"):
        diagonal = (beta**2 - alpha**2) / (total * (total + 2))
    diagonal[0] = (beta - alpha) / (
        alpha + beta + 2
    )  # the general form is 0 / 0 at alpha + beta = 0
    k = k + 1
    total = 2 * k + alpha + beta
    square = 4 * k * (k + alpha) * (k + beta) / total**2 / (total + 1)
    # (k + alpha + beta) / (total - 1) is 0 / 0 at k = 1 when alpha + beta = -1; its value there is 1.
    ratio = np.ones(count)
    ratio[1:] = (k[1:] + alpha + beta) / (total[1:] - 1)
    return diagonal, np.sqrt(square * ratio)


@built_in
def legendre() -> Family:
    """Legendre polynomials: an input that is uniform on [-1, 1].

    >>> legendre().quantile(np.array([0.0, 0.5, 1.0]))
    array([-1.,  0.,  1.])
    """
    return Family(
        "legendre", "P", partial(_beta_recurrence, 1.0, 1.0), lambda p: 2 * p - 1, "uniform"
    )


@built_in
def hermite() -> Family:
    """Hermite polynomials: a normal input, mean 0 and standard deviation 1; `domain` = mean ± one sd.

    >>> hermite().on((1, 3)).quantile(np.array([0.5]))  # mean 2, standard deviation 1
    array([2.])
    """

    def recurrence(count: int) -> tuple[Floats, Floats]:
        return np.zeros(count), np.sqrt(np.arange(1.0, count + 1))

    return Family(
        "hermite",
        "He",
        recurrence,
        lambda p: scipy.special.ndtri(p),
        "normal",
        support=(-np.inf, np.inf),
    )


@built_in
def jacobi(a: float, b: float) -> Family:
    """Jacobi polynomials: a Beta(a, b) input, stretched to [-1, 1] (or to `domain`).

    >>> jacobi(2, 2).on((0, 1)).quantile(np.array([0.5]))
    array([0.5])
    """
    a, b = positive("a", a), positive("b", b)
    recurrence, unit = partial(_beta_recurrence, a, b), partial(scipy.special.betaincinv, a, b)
    parameters = (("a", a), ("b", b))
    return Family(
        "jacobi", "J", recurrence, lambda p: 2 * unit(p) - 1, f"Beta({a:g}, {b:g})", parameters
    )


@built_in
def laguerre(shape: float = 1.0) -> Family:
    """Laguerre polynomials: a Gamma(shape) or exponential input; `domain` = (origin, origin + scale).

    >>> laguerre().quantile(np.array([0.5])).round(4)  # the median of an exponential input, ln 2
    array([0.6931])
    """
    shape = positive("shape", shape)

    def recurrence(count: int) -> tuple[Floats, Floats]:
        k = np.arange(1.0, count + 1)
        return 2 * k - 2 + shape, np.sqrt(k * (k + shape - 1))

    quantile, unit = partial(scipy.special.gammaincinv, shape), (0.0, 1.0)
    distribution = "exponential" if shape == 1 else f"Gamma({shape:g})"
    given = (("shape", shape),)
    return Family(
        "laguerre", "La", recurrence, quantile, distribution, given, unit, (0.0, np.inf), unit
    )


@built_in
def chebyshev() -> Family:
    """Chebyshev polynomials: an arcsine input on [-1, 1], such as the sine of a uniform phase.

    >>> chebyshev().quantile(np.array([0.25])).round(4)
    array([-0.7071])
    """
    recurrence = partial(_beta_recurrence, 0.5, 0.5)
    return Family("chebyshev", "T", recurrence, lambda p: np.sin(np.pi * (p - 0.5)), "arcsine")


@built_in
def fourier() -> Family:
    """Cosines and sines: a phase that is uniform on [0, 2 pi] (or on `domain`, one period long).

    >>> [fourier().label(k, "u1") for k in range(1, 4)]
    ['cos1(u1)', 'sin1(u1)', 'cos2(u1)']
    """
    period = (0.0, 2 * np.pi)
    quantile = partial(np.multiply, 2 * np.pi)
    return FourierFamily(
        "fourier", "", no_recurrence, quantile, "uniform phase", (), period, period, period
    )


@built_in
def binomial(n: int, p: float = 0.5) -> Family:
    """Krawtchouk polynomials: an input that counts 0, 1, ..., n successes (or n + 1 steps over `domain`).

    >>> binomial(4).quantile(np.array([0.01, 0.5, 0.99]))
    array([0., 2., 4.])
    """
    n, p = whole_number("n", n, 1), probability("p", p)
    mass = scipy.stats.binom.pmf(np.arange(n + 1), n, p)
    levels = np.flatnonzero(mass)  # tails that underflow never occur
    parameters = {"p": p} if n == 1 else {"n": n, "p": p}
    names = (
        ("bernoulli", "B", f"Bernoulli({p:g})")
        if n == 1
        else ("binomial", "K", f"Binomial({n}, {p:g})")
    )
    return discrete(names, levels.astype(float), mass[levels], (0.0, float(n)), parameters)


@built_in
def bernoulli(p: float = 0.5) -> Family:
    """A binary input, 0 or 1 with probability `p` of 1; ``domain=(-1, 1)`` makes it a spin.

    >>> bernoulli().on((-1, 1)).quantile(np.array([0.2, 0.8]))
    array([-1.,  1.])
    """
    return binomial(1, p)


named = (legendre, hermite, jacobi, laguerre, chebyshev, fourier, binomial, bernoulli)
FAMILIES.update((make.__name__, make) for make in named)


# Each input takes an index of every function: with more, even degree 1 would take 20 GB.
MOST_INPUTS = 100_000
# Distributions by their own names, for those who do not know which functions belong to them.
DISTRIBUTIONS = {
    "uniform": "legendre",
    "normal": "hermite",
    "exponential": "laguerre",
    "arcsine": "chebyshev",
}


def inputs(*described: str) -> list[Family]:
    """Inputs with their names, units, ranges and distributions, for `product_basis`, `Plan` and `estimate`.

    Each is a text ``name [unit]:low:high:family``; the unit, the range and the family may be left out. A family has a
    name as for `product_basis`, or that of its distribution, such as ``normal``; without one, inputs are uniform.

    >>> ours = infocap.inputs("Voltage A [V]:0:5", "Phase [deg]:0:360:fourier")
    >>> infocap.product_basis(ours, max_degree=1).labels
    ['1', 'cos1(Phase)', 'sin1(Phase)', 'P1(Voltage A)']
    """
    if not all(isinstance(one, str) for one in described):
        raise ParameterError(
            f"`inputs={described!r}` must be texts such as 'Voltage [V]:0:5', one per input."
        )
    return find_families([one if ":" in one else f"{one}:uniform" for one in described], None)


def find_families(
    family: Any, n_inputs: int | None, domain: tuple[float, float] | None = None
) -> list[Family]:
    """One family per input, from a family, its name or its description, or from a list with one for each input.

    Where a `domain` is given, it is that of every input.
    """
    if n_inputs is not None:
        n_inputs = whole_number("n_inputs", n_inputs, 1)
        if n_inputs > MOST_INPUTS:
            raise ParameterError(
                f"`n_inputs={n_inputs:,}` is more than {MOST_INPUTS:,}, as no device has; give fewer."
            )
    several = isinstance(family, Sequence) and not isinstance(family, str)
    given = list(family) if several else [family] * (n_inputs or 1)
    if not given or n_inputs not in (None, len(given)):
        raise ParameterError(
            f"`n_inputs={n_inputs!r}` but {len(given)} families are given, one for each."
        )
    for place, one in enumerate(given):
        if isinstance(one, str):
            given[place] = _from_text(one)
        elif isinstance(one, dict):
            given[place] = restore(**one)
        elif not isinstance(one, Family):
            raise ParameterError(
                f"`family={one!r}` must be a name, or a Family such as legendre() of infocap.basis."
            )
    names = [one.variable for one in given if one.variable]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError(f"two inputs are called {twice!r}; give each a name of its own.")
    return given if domain is None else [one.on(domain) for one in given]


def _from_text(text: str) -> Family:
    """The family of a name such as ``hermite`` or ``jacobi(1, 1)``, or of an input such as ``Bias [V]:0:5:normal``."""
    *words, name = (part.strip() for part in text.split(":"))
    if len(words) == 2:  # no family after the range
        words, name = [*words, name], "uniform"
    name = DISTRIBUTIONS.get(name, name)
    called = re.fullmatch(r"(\w+)\s*\(([^()]*)\)", name)
    one_of("family", called[1] if called else name, FAMILIES)
    try:
        numbers = [float(part) for part in called[2].split(",")] if called else []
        whole = [int(one) if one.is_integer() else one for one in numbers]
        family = FAMILIES[called[1]](*whole) if called else restore(name)
        ends = [float(end) for end in words[1:]]
    except (TypeError, ValueError) as problem:
        raise ParameterError(f"family {text!r} cannot be made: {problem}") from None
    if len(words) not in (0, 1, 3) or words[:1] == [""]:
        raise ParameterError(
            f"the input {text!r} must look like 'Bias [V]:0:5' or 'Phase [deg]:0:360:fourier'."
        )
    family = family.on((ends[0], ends[1])) if ends else family
    return family.named(words[0]) if words else family
