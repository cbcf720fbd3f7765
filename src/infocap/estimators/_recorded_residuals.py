"""What functions leave of the readouts under the recorded law: its tails, its memory, and a loop.

Some thousand rows tell it. They are read in this process, in long parts of neighbouring rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy

from .._arrays import to_numpy
from ..basis import ProductBasis
from ..diagnostics import Loop, ResidualFacts
from ..kernels import SMALLEST_DIVISOR
from ..samples import Samples
from ..typing import Floats, Integers
from ._evidence import Evidence
from ._innovations import Innovations

# Rows that are looked at, and numbers of values of functions, which make it fewer rows where
# functions are many.
MAX_ROWS = 16_384
MAX_VALUES = 4_000_000
# Parts of a long recording, spread evenly over it.
N_PARTS = 8
# Autocorrelation of residuals below which the sum that makes up their correlation time ends, and
# the part of a stretch of rows that is the longest lag.
END_OF_CORRELATION = 0.05
MAX_LAG_OF_PART = 0.25
# Earlier rows whose residuals may tell of an input: those one and two steps before it.
N_ROWS_OF_LOOP = 2
# Rows that each regressor of the test for a loop needs.
MIN_ROWS_PER_REGRESSOR = 4


@dataclass(frozen=True, eq=False)
class _Part:
    """Neighbouring rows of one run."""

    inputs: Floats  # (rows, inputs)
    phi: Floats  # values of functions, (rows, functions)
    residuals: Floats  # of whitened readouts, (rows, rank)


def look_at_residuals(
    evidence: Evidence, basis: ProductBasis, functions: Integers, innovations: Innovations
) -> ResidualFacts:
    """Return what the functions of a basis, given by number and in this order, leave of readouts.

    Parameters
    ----------
    evidence
        The samples and how readouts are whitened.
    basis, functions
        The functions of the fit and their order.
    innovations
        The fit, with functions in that order.
    """
    # z = sum of psi_l c_l = phi' L^-T c, so L^-T c are the slopes of the functions.
    slopes = scipy.linalg.solve_triangular(
        innovations.triangle, innovations.coefficients, lower=True, trans=1
    )
    samples = replace(evidence.samples, basis=basis)
    parts = []
    for start, stop in _rows_of_parts(samples, len(functions)):
        parts.append(_read_part(evidence, samples, start, stop, functions, slopes))
    return ResidualFacts(
        kurtosis=_kurtosis(parts),
        correlation_time=_correlation_time(parts),
        loop=_find_loop(parts) if basis.of_sequences else None,
    )


def _rows_of_parts(samples: Samples, n_functions: int) -> list[tuple[int, int]]:
    """Return the first row and the end of each part; no part crosses from one run to the next."""
    n = samples.n_samples
    starts_of_runs = [0] if samples.runs is None else samples.runs.tolist()
    runs = list(pairwise([*starts_of_runs, n]))
    max_rows = min(MAX_ROWS, max(MAX_VALUES // n_functions, N_PARTS * n_functions))
    if n <= max_rows:
        return runs
    n_rows = max_rows // N_PARTS
    parts = []
    for start in np.linspace(0, n - n_rows, N_PARTS).astype(int).tolist():
        end_of_run = next(stop for first, stop in runs if first <= start < stop)
        parts.append((start, min(start + n_rows, end_of_run)))
    return parts


def _read_part(
    evidence: Evidence,
    samples: Samples,
    start: int,
    stop: int,
    functions: Integers,
    slopes: Floats,
) -> _Part:
    inputs = np.asarray(to_numpy(samples.inputs(start, stop)), dtype=float)
    phi = samples.basis.values(inputs)[functions].T
    z = to_numpy(samples.readouts(start, stop, **evidence.whitener))
    return _Part(
        inputs=inputs[samples.basis.memory :],
        phi=phi,
        residuals=z - phi @ slopes,
    )


def _kurtosis(parts: list[_Part]) -> float:
    """Return the kurtosis of residuals, the mean of those of independent directions.

    With whitened residuals y of r directions it is E[|y|^4] / r - (r - 1), which no invertible
    mixing of readouts changes: 3 for normal residuals, and that of each where all have the same.
    """
    rows = np.concatenate([part.residuals for part in parts])
    rows = rows - rows.mean(axis=0)
    whitened = np.sqrt(len(rows)) * _orthonormal(rows)
    n_directions = whitened.shape[1]
    if not n_directions:
        return 0.0
    squared_lengths = np.sum(whitened**2, axis=1)
    return float(np.mean(squared_lengths**2)) / n_directions - (n_directions - 1)


def _correlation_time(parts: list[_Part]) -> float:
    """Return 1 + 2 sum of the autocorrelations of residuals, of all directions together."""
    longest = max(len(part.residuals) for part in parts)
    n_lags = max(int(MAX_LAG_OF_PART * longest), 1)
    products = np.zeros(n_lags)
    for part in parts:
        n_padded = scipy.fft.next_fast_len(len(part.residuals) + n_lags, real=True)
        spectrum = np.abs(scipy.fft.rfft(part.residuals, n_padded, axis=0)) ** 2
        products += scipy.fft.irfft(spectrum.sum(axis=1), n_padded)[:n_lags]
    correlations = products / max(float(products[0]), SMALLEST_DIVISOR)
    is_small = correlations < END_OF_CORRELATION
    end = int(np.argmax(is_small)) if is_small.any() else n_lags
    return 1 + 2 * float(correlations[1:end].sum())


def _find_loop(parts: list[_Part]) -> Loop | None:
    """Return how much residuals of readouts tell of the next input, by an F test of two fits.

    The next input is fitted by the functions of the inputs up to now, and by these and the
    residuals of the last rows.
    """
    rows = [_rows_for_loop(part) for part in parts if len(part.inputs) > N_ROWS_OF_LOOP]
    if not rows:
        return None
    next_inputs = np.concatenate([of_part[0] for of_part in rows])
    functions = np.concatenate([of_part[1] for of_part in rows])
    residuals = np.concatenate([of_part[2] for of_part in rows])
    n_rows, n_inputs = next_inputs.shape
    if n_rows < MIN_ROWS_PER_REGRESSOR * (functions.shape[1] + residuals.shape[1]):
        return None

    known = _orthonormal(functions)
    power = np.sum((next_inputs - next_inputs.mean(axis=0)) ** 2, axis=0)
    left = next_inputs - known @ (known.T @ next_inputs)
    further = _orthonormal(residuals - known @ (known.T @ residuals))
    power_left = np.sum(left**2, axis=0)
    power_explained = np.sum((further.T @ left) ** 2, axis=0)
    power_left_by_both = np.maximum(power_left - power_explained, SMALLEST_DIVISOR)

    n_further = further.shape[1]
    freedom = n_rows - known.shape[1] - n_further
    ratio = (power_explained / n_further) / (power_left_by_both / freedom)
    p_values = scipy.special.fdtrc(n_further, freedom, ratio)
    best = int(np.argmin(p_values))
    # Variances, so that what as many regressors explain by chance does not count.
    variance_left = power_left[best] / (freedom + n_further)
    explained = 1 - power_left_by_both[best] / freedom / max(variance_left, SMALLEST_DIVISOR)
    return Loop(
        input_number=best,
        left=float(power_left[best] / max(power[best], SMALLEST_DIVISOR)),
        explained=float(max(explained, 0.0)),
        p_value=float(min(p_values[best] * n_inputs, 1.0)),
    )


def _rows_for_loop(part: _Part) -> tuple[Floats, Floats, Floats]:
    """Return next inputs, functions of inputs before them, and residuals of the last rows.

    Only rows in which inputs change are taken. Readouts of held inputs tell when the next change
    comes, which is no loop.
    """
    n_rows = len(part.inputs)
    residuals = []
    for lag in range(1, N_ROWS_OF_LOOP + 1):
        residuals.append(part.residuals[N_ROWS_OF_LOOP - lag : n_rows - lag])
    next_inputs = part.inputs[N_ROWS_OF_LOOP:]
    changes = np.any(next_inputs != part.inputs[N_ROWS_OF_LOOP - 1 : -1], axis=1)
    functions = part.phi[N_ROWS_OF_LOOP - 1 : -1]
    return next_inputs[changes], functions[changes], np.hstack(residuals)[changes]


def _orthonormal(columns: Floats) -> Floats:
    """Return orthonormal columns that span the same, without directions that are rounding."""
    vectors, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    smallest = np.finfo(np.float32).eps * max(float(sizes[0]), SMALLEST_DIVISOR)
    spanned: Floats = vectors[:, sizes > smallest]
    return spanned
