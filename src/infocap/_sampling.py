"""Designs: where to measure. Low-discrepancy or random points, through the quantile of the input measure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._check import one_of, whole_number
from .basis import ProductBasis
from .errors import warn
from .typing import Floats

EDGE = 2.0**-32  # points keep this distance from 0 and 1, where the quantile of a normal input is infinite


def draw(basis: ProductBasis, n_samples: int, *, method: str = "sobol", seed: int | None = None) -> Floats:
    """Inputs to measure at: (samples, inputs), distributed as the basis assumes.

    Parameters
    ----------
    method
        ``"sobol"`` (scrambled, balanced in powers of two), ``"random"``, ``"halton"`` or ``"lhs"`` (Latin
        hypercube). The first N points of all but the Latin hypercube stay the same when more are drawn.
    seed
        The same seed gives the same points; None gives fresh ones.

    >>> from infocap import product_basis
    >>> draw(product_basis("legendre", 2, 3), 1024, seed=1).shape
    (1024, 2)
    """
    n_samples = whole_number("n_samples", n_samples, 1)
    one_of("method", method, DESIGNS)
    points = DESIGNS[method](basis.n_inputs, n_samples, seed)
    points = np.clip(points, EDGE, 1 - EDGE)
    return np.column_stack(
        [family.quantile(column) for family, column in zip(basis.families, points.T, strict=True)]
    )


def _sobol(n_inputs: int, n_samples: int, seed: int | None) -> Floats:
    from scipy.stats import qmc

    if n_samples & (n_samples - 1):
        low = 2 ** (n_samples.bit_length() - 1)
        warn(
            "Sobol points are balanced only in powers of two; "
            f"n_samples={n_samples} can be {low} or {2 * low}."
        )
    sampler = qmc.Sobol(n_inputs, scramble=True, rng=seed)
    first = sampler.random(1)  # SciPy's own warning looks only at the first call
    return np.vstack([first, sampler.random(n_samples - 1)]) if n_samples > 1 else first


def _random(n_inputs: int, n_samples: int, seed: int | None) -> Floats:
    return np.random.default_rng(seed).random((n_samples, n_inputs))


def _halton(n_inputs: int, n_samples: int, seed: int | None) -> Floats:
    from scipy.stats import qmc

    return qmc.Halton(n_inputs, scramble=True, rng=seed).random(n_samples)


def _latin_hypercube(n_inputs: int, n_samples: int, seed: int | None) -> Floats:
    from scipy.stats import qmc

    return qmc.LatinHypercube(n_inputs, rng=seed).random(n_samples)


DESIGNS: dict[str, Callable[[int, int, int | None], Floats]] = {
    "sobol": _sobol,
    "random": _random,
    "halton": _halton,
    "lhs": _latin_hypercube,
}
