"""What noise adds to the capacities of a sequence, from single samples left out of the fit.

Controls phi are fitted to the whitened readouts z by least squares, f is the fit, and e = z - f the
residual. Everything is in the metric G^-1, so W, the weights of the readouts that imitate a control
best, are its white coefficients. With A the sum of phi phi' over all samples, a sample adds
y e' / N to the coefficients, where y = N A^-1 phi, and e f' + f e' + e e' to N times the Gram
matrix. So it changes the sum of capacities by the influence (e·W)(2 rho + e·W) / N to first order,
where rho = y - z·W is what the readouts leave of y, and it makes each capacity too large by
|e rho - f (e·W)|² / N² to second order.

A residual is divided by 1 - h, where h = phi'A^-1phi is the leverage of its sample: this is the
residual in the fit of the other samples (MacKinnon and White's HC3). Dividing by both factors
counts the noise of this fit as well: with residuals of equal variance it adds h / (1 - h) of them,
which is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from .._arrays import array_namespace, to_library_of, to_numpy
from ..kernels import SMALLEST_DIVISOR, AddableSums
from ..samples import Samples
from ..typing import Floats
from ._evidence import Evidence
from ._fit import MIN_SAMPLE_MARGIN, iterate_pieces

# Arrays of the size of the values of all controls that the pass makes at a time.
ARRAYS_OF_CONTROLS = 12


@dataclass(frozen=True, eq=False)
class SampleFit:
    """A fit by least squares, as a pass over single samples needs it."""

    phi_phi_inverse: Any  # A^-1, (controls, controls)
    coefficients: Floats  # of z, (controls, rank)
    whitening: Floats  # G^-1/2, (rank, rank)
    # 1 for each control whose capacity is estimated, and 0 for the constant where it is known.
    is_estimated: Floats  # (controls,)
    is_reported: Floats  # (controls,)


@dataclass(frozen=True, eq=False)
class SampleNoise:
    """What single samples tell about the noise of capacities."""

    bias: Floats  # of each control's capacity, the fit's own noise counted twice, (controls,)
    bias_of_fit: Floats  # this noise of the fit once, if residuals have equal variance, (controls,)
    # The mean estimate of each control's capacity if the true one is zero, (controls,).
    null_capacity: Floats
    # (Σ I²)² / Σ I⁴ of the influences I on the reported total: how many samples its error rests on.
    effective_samples: float
    # The same of |z|², as a fraction of all samples, relative to normal readouts.
    normality: float


@dataclass(frozen=True, eq=False)
class _NoiseSums(AddableSums):
    """Sums over samples, in the notation of this module."""

    bias: Any  # |e rho - f (e·W)|², (controls,)
    leverage_rho2: Any  # h / (1 - h) rho², (controls,)
    phi2_e2: Any  # phi² |e|² with approximate leverages, (controls,)
    phi2: Any  # phi², (controls,)
    influence2: Any
    influence4: Any
    z_power2: Any  # (|z|²)²
    z_power4: Any


def noise_of_samples(
    evidence: Evidence, samples: Samples, fit: SampleFit, residual_power: float
) -> SampleNoise:
    """Make one pass over samples whose basis are the controls.

    `residual_power` is the mean of |e|² in the metric G^-1, without the bias of the fit.
    """
    work = partial(_noise_sums, fit=fit, **evidence.whitener)
    sums: _NoiseSums = evidence.engine.fold(samples, work)
    n = evidence.n_samples
    influence2 = float(sums.influence2)
    influence4 = float(sums.influence4)
    return SampleNoise(
        bias=to_numpy(sums.bias) / n**2,
        bias_of_fit=residual_power * to_numpy(sums.leverage_rho2) / n**2,
        null_capacity=to_numpy(sums.phi2_e2) / to_numpy(sums.phi2) ** 2,
        effective_samples=influence2**2 / max(influence4, SMALLEST_DIVISOR),
        normality=normality_of_power(
            float(sums.z_power2) / n, float(sums.z_power4) / n, evidence.rank
        ),
    )


def normality_of_power(mean_square: float, mean_fourth: float, rank: int) -> float:
    """Return how evenly the power |z|² of readouts is spread over the samples: 1 for normal ones.

    It is below 1 where few samples hold much of the power, and above for bounded readouts.

    Parameters
    ----------
    mean_square, mean_fourth
        Means over samples of the second and of the fourth power of |z|².
    rank
        Number of independent readouts.
    """
    # |z|² of normal readouts has a chi-squared distribution, with these moments.
    normal_square = rank * (rank + 2)
    normal_fourth = normal_square * (rank + 4) * (rank + 6)
    return mean_square**2 / max(mean_fourth, SMALLEST_DIVISOR) * normal_fourth / normal_square**2


def normality_of_leverage(evidence: Evidence) -> float:
    """Return the same of all samples, in a pass of its own over the readouts."""
    power = evidence.leverage
    return normality_of_power(np.mean(power**2), np.mean(power**4), evidence.rank)


def _noise_sums(
    samples: Samples, start: int, stop: int, *, fit: SampleFit, **whitener: Any
) -> _NoiseSums:
    """Return the sums over some rows."""
    total: _NoiseSums | None = None
    pieces = iterate_pieces(
        samples, start, stop, samples.basis, n_arrays=ARRAYS_OF_CONTROLS, **whitener
    )
    for piece in pieces:
        sums = _noise_sums_of_piece(piece.phi, piece.z, fit, samples.n_total)
        total = sums if total is None else total.absorb(sums)
    return cast(_NoiseSums, total)


def _noise_sums_of_piece(phi: Any, z: Any, fit: SampleFit, n_total: int) -> _NoiseSums:
    xp = array_namespace(z)
    whitening = to_library_of(fit.whitening, z)
    coefficients = to_library_of(fit.coefficients, z) @ whitening
    is_estimated = to_library_of(fit.is_estimated, z)[:, None]
    weights = coefficients * is_estimated  # W

    # By how much a residual of 1 at each row would change the coefficients.
    change = to_library_of(fit.phi_phi_inverse, z) @ phi
    leverage = xp.sum(phi * change, axis=0)
    margin = xp.clip(1 - leverage, MIN_SAMPLE_MARGIN, None)
    white_z = z @ whitening
    f = phi.T @ coefficients
    residual = white_z - f
    e = residual / margin[:, None]

    rho = n_total * is_estimated * change - weights @ white_z.T
    e_dot_w = weights @ e.T
    e_power = xp.vecdot(e, e)
    e_dot_f = xp.vecdot(e, f)
    f_power = xp.vecdot(f, f)
    rho2 = rho * rho
    bias = rho2 @ e_power - 2 * ((rho * e_dot_w) @ e_dot_f) + (e_dot_w * e_dot_w) @ f_power

    is_reported = to_library_of(fit.is_reported, z)
    influence2 = (is_reported @ (e_dot_w * (2 * rho + e_dot_w))) ** 2

    # P-values take |phi|² / N in place of the leverage: it is the leverage of functions that are
    # orthonormal on the samples, and does not depend on how they happen to be correlated there.
    z_power2 = xp.vecdot(z, z) ** 2
    phi2 = phi * phi
    rough_margin = xp.clip(1 - xp.sum(phi2, axis=0) / n_total, MIN_SAMPLE_MARGIN, None)
    return _NoiseSums(
        bias=bias,
        leverage_rho2=rho2 @ (xp.clip(leverage, None, 1 - MIN_SAMPLE_MARGIN) / margin),
        phi2_e2=phi2 @ (xp.vecdot(residual, residual) / rough_margin**2),
        phi2=xp.sum(phi2, axis=1),
        influence2=xp.sum(influence2),
        influence4=xp.sum(influence2**2),
        z_power2=xp.sum(z_power2),
        z_power4=xp.sum(z_power2**2),
    )
