"""Factor analysis: how many factors stand out of the noise, by Malinowski's indicator function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._table import Table
from .._words import listed
from ..errors import DataError, ParameterError, warn
from ..typing import ArrayLike, Floats
from ._read import readouts

CORRELATED = 5.0  # standard deviations of the sum of squared correlations
NOT_NOISE = 2.0  # how far the real error may be from the noise, as a factor


@dataclass(frozen=True, eq=False, repr=False)
class Indicator:
    """Malinowski's indicator function and its minimum.

    `values` are IND(kappa) for kappa = 1 ... K - 1, `eigenvalues` those of Z'Z, largest first, where Z are the
    readouts in units of their noise. `n_factors` is where IND has its minimum: the last one, should there be
    several, for nothing beyond it stands out. It is None when IND only rises (IND(0) counts as its start) or
    falls to the end.

    >>> rng = np.random.default_rng(0)
    >>> signal = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 10))  # three factors
    >>> found = indicator(signal + 0.01 * rng.standard_normal((500, 10)), noise_scale=np.full(10, 0.01))
    >>> found.n_factors
    3
    """

    values: Floats
    eigenvalues: Floats
    n_factors: int | None
    n_samples: int
    checks: tuple[str, ...] = ()

    @property
    def n_readouts(self) -> int:
        """K."""
        return len(self.eigenvalues)

    @property
    def real_error(self) -> Floats:
        """Root mean square of what kappa = 1 ... K - 1 factors leave; the noise, once they are all taken."""
        return self.values * np.arange(self.n_readouts - 1, 0, -1) ** 2

    def __repr__(self) -> str:
        found = (
            "no minimum, so no number of factors," if self.n_factors is None else f"{self.n_factors} factors"
        )
        lines = [f"Indicator: {found} in {self.n_readouts} readouts, {self.n_samples} samples"]
        return "\n".join(lines + [f"  check: {check}" for check in self.checks])


def noise_scale(repeats: ArrayLike) -> Floats:
    """The standard deviation of each readout over repeats (repeats, readouts) at one and the same input.

    >>> noise_scale([[1.0, 0.0], [3.0, 0.2], [2.0, 0.1]])
    array([1. , 0.1])
    """
    values, table = readouts(repeats, "repeats")
    if len(values) < 2:
        raise DataError(f"repeats has shape {values.shape}; give 2 rows or more, all at the same input.")
    size = np.abs(values).max(axis=0)
    unit = np.where(size > 0, size, 1.0)
    scaled = values / unit - values[0] / unit  # a constant channel becomes exactly zero
    scale = scaled.std(axis=0, ddof=1) * unit
    silent = [table.column(int(number)) for number in np.flatnonzero(scale == 0)]
    if silent:
        raise DataError(
            f"{listed(silent)} of repeats never changes, so it has no noise to be measured by; "
            "leave it out, or record it with a finer resolution."
        )
    return scale


def indicator(
    x: ArrayLike, noise_scale: ArrayLike | None = None, *, repeats: ArrayLike | None = None
) -> Indicator:
    """How many factors the readouts have, by the minimum of Malinowski's indicator function.

    IND(kappa) = RE / (K - kappa)², RE² = sum of the K - kappa smallest eigenvalues of Z'Z / (N (K - kappa)): the
    paper's formula, which is Malinowski's own (Anal. Chem. 49, 612, 1977) for N > K. He divides by the
    smaller side of the matrix, so fewer samples than readouts are refused here. Like theirs, Z is not centred:
    the mean of the readouts is a factor, as the constant function is a capacity.

    The noise must have the same strength in all readouts, and be independent between them. The last of the
    factors counts when its eigenvalue exceeds (m + 1)⁵/m⁴ - m times that of the noise, m = K - kappa: about 6, noise
    included, and 8 when only four readouts are left over. What is weaker is taken for noise.

    Parameters
    ----------
    x
        Readouts (samples, readouts).
    noise_scale
        Standard deviation of each readout's noise, by which it is divided; without it x is taken as it is.
    repeats
        In its place, readouts (repeats, readouts) at one input: they give the scale, and show whether the noise is
        correlated between readouts.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> signal = generator.standard_normal((500, 3)) @ generator.standard_normal((3, 20))
    >>> indicator(signal + 0.1 * generator.standard_normal((500, 20)))
    Indicator: 3 factors in 20 readouts, 500 samples
    """
    values, table = readouts(x, "x")
    n, k = values.shape
    if k < 3 or n <= k:
        raise DataError(
            f"x has shape {values.shape}; the indicator needs 3 readouts or more, and more samples than readouts."
        )
    scale, notes = _scale(noise_scale, repeats, table)
    z = values if scale is None else values / scale
    eigenvalues = np.linalg.svd(z, compute_uv=False) ** 2
    left = np.arange(k, 0, -1)  # readouts beyond the factors, kappa = 0 ... K - 1
    error = np.sqrt(np.cumsum(eigenvalues[::-1])[::-1] / (n * left))
    ind = error / left.astype(float) ** 2
    step = np.diff(ind)
    minima = 1 + np.flatnonzero((step[:-1] < 0) & (step[1:] > 0))
    n_factors = int(minima[-1]) if len(minima) else None
    messages = [*notes, *_not_noise(n_factors, error, scale is not None)]
    for message in messages:
        warn(message)
    if n_factors is None:
        way = "rises from the start" if step[-1] > 0 else "falls to the end"
        messages.append(f"IND {way}: it has no minimum between 1 and K - 2 = {k - 2}.")
    return Indicator(ind[1:], eigenvalues, n_factors, n, tuple(messages))


def _scale(
    scale: ArrayLike | None, repeats: ArrayLike | None, table: Table
) -> tuple[Floats | None, list[str]]:
    """The noise of each readout, if it is known, and what is wrong with it."""
    k = table.shape[1]
    if repeats is not None:
        if scale is not None:
            raise ParameterError("noise_scale and repeats were both given; repeats alone tell the scale too.")
        shots, _ = readouts(repeats, "repeats")
        if shots.shape[1] != k:
            raise DataError(
                f"x has {k} readouts and repeats has shape {shots.shape}; give the same readouts in both."
            )
        found = noise_scale(repeats)
        return found, list(_correlated((shots - shots[0]) / found))
    if scale is None:
        return None, []
    given = np.asarray(scale, dtype=float)
    if given.shape != (k,):
        raise DataError(f"noise_scale has shape {given.shape}; give one value for each of {k} readouts.")
    bad = np.flatnonzero(~(np.isfinite(given) & (given > 0)))
    if len(bad):
        raise DataError(
            f"noise_scale is {given[bad[0]]} for {table.column(int(bad[0]))}; give positive numbers, or leave the "
            "channel out."
        )
    return given, []


def _correlated(noise: Floats) -> Iterator[str]:
    """Schott's test (2005): the sum of squared correlations, right for fewer repeats than readouts too."""
    repeats, k = noise.shape
    freedom = repeats - 1
    if freedom < 3:
        return
    pairs = np.corrcoef(noise, rowvar=False)[np.triu_indices(k, 1)]
    excess = float(np.sum(pairs**2)) - len(pairs) / freedom
    spread = np.sqrt(2 * len(pairs) * (freedom - 1) / (freedom**2 * (freedom + 2)))
    if excess > CORRELATED * spread:
        yield (
            f"the noise is correlated between readouts (root mean square {np.sqrt(excess / len(pairs)):.2g} beyond "
            "chance): the indicator assumes independent noise and counts what is common as factors; "
            "from_repeats does not assume it."
        )


def _not_noise(n_factors: int | None, error: Floats, known: bool) -> Iterator[str]:
    """With the noise known, what is left at the minimum should be as large as the noise."""
    if n_factors is None or not known:
        return
    left = float(error[n_factors])
    if not 1 / NOT_NOISE < left < NOT_NOISE:
        yield (
            f"what {n_factors} factors leave is {left:.2g} times the noise, not the noise itself: the minimum of IND "
            "is not where the noise begins; check the noise scale."
        )
