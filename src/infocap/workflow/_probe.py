"""probe: draw a design, measure a system there, estimate its capacities."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._check import yes_or_no
from ..basis import ProductBasis
from ..designs import draw, draw_weighted
from ..estimators import Estimator
from ..result import CapacityResult
from ..systems._measure import measure
from ..typing import System
from ._estimate import estimate


def probe(
    system: System,
    basis: ProductBasis,
    n_samples: int,
    *,
    design: str = "sobol",
    seed: int | None = None,
    blocks: int = 1,
    weighted: bool = False,
    method: str | Estimator = "control-variate",
    constant: bool = True,
    complex_as: str | None = None,
    **options: Any,
) -> CapacityResult:
    """The capacities of a system that can be called: (samples, inputs) -> (samples, readouts).

    A system that takes a ``seed`` gets one derived from `seed`, so that its noise is reproducible too. The
    design is that of `draw` with its `blocks`; with `weighted`, that of `draw_weighted`.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> infocap.probe(lambda u: u, basis, 256, seed=1)
    CapacityResult: total 3.000 ± 0.000 of at most 3 (2 readouts and the constant)
      256 samples, 10 legendre functions of 2 inputs, method 'control-variate'
      degree  0     1.0000
      degree  1     2.0000
    """
    weights = None
    if yes_or_no("weighted", weighted):
        u, weights = draw_weighted(basis, n_samples, design=design, seed=seed, blocks=blocks)
    else:
        u = draw(basis, n_samples, design=design, seed=seed, blocks=blocks)
    x = measure(system, u, noise_seed(seed))
    return estimate(
        u, x, basis, method=method, constant=constant, complex_as=complex_as, weights=weights, **options
    )


def noise_seed(seed: int | None) -> np.random.SeedSequence | None:
    """The seed of a system's noise, apart from that of the design."""
    return None if seed is None else np.random.SeedSequence(seed).spawn(1)[0]
