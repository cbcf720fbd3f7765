"""Malinowski's indicator function: how many factors the readouts have above their noise."""

from dataclasses import dataclass

import numpy as np

from .._formatting import join_names
from .._validation import checks_arguments, require_numbers
from ..errors import Check, DataError, ParameterError, warn
from ..samples import Table
from ..typing import ArrayLike, Floats

# Standard deviations beyond chance from which correlations of the noise are worth a warning.
MIN_STANDARD_DEVIATIONS_OF_CORRELATION = 5.0
# The real error at the minimum may differ from the known noise by this factor.
MAX_NOISE_RATIO = 2.0
# The test of correlations has no power with fewer degrees of freedom, repeats less one.
MIN_DEGREES_OF_FREEDOM_FOR_CORRELATIONS = 3


@dataclass(frozen=True, eq=False, repr=False)
class Indicator:
    """Malinowski's indicator function and its minimum.

    Attributes
    ----------
    values
        IND(kappa) for kappa = 1 ... K - 1.
    eigenvalues
        Those of Z'Z, largest first, where Z are the readouts in units of their noise.
    n_factors
        Where IND has its lowest minimum, as in the paper. It is None when IND only rises (IND(0)
        counts as its start) or falls to the end.
    n_samples
        The number of samples.
    checks
        Every warning raised and every note.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> signal = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 10))  # three factors
    >>> noise = 0.01 * rng.standard_normal((500, 10))
    >>> indicator(signal + noise, noise_scale=np.full(10, 0.01)).n_factors
    3
    """

    values: Floats
    eigenvalues: Floats
    n_factors: int | None
    n_samples: int
    checks: tuple[Check, ...] = ()

    def __repr__(self) -> str:
        n_readouts = len(self.eigenvalues)
        factors = "no minimum, so no number of" if self.n_factors is None else self.n_factors
        lines = [f"Indicator: {factors} factors in {n_readouts} readouts, {self.n_samples} samples"]
        lines += [f"  check: {check}" for check in self.checks]
        return "\n".join(lines)


@checks_arguments
def noise_scale(repeats: ArrayLike) -> Floats:
    """Return the standard deviation of each readout over repeats at one and the same input.

    Parameters
    ----------
    repeats
        Readouts (repeats, readouts), two rows or more.

    Returns
    -------
    Floats
        Standard deviations (readouts,).

    Examples
    --------
    >>> noise_scale([[1.0, 0.0], [3.0, 0.2], [2.0, 0.1]])
    array([1. , 0.1])
    """
    table = readouts(repeats, "repeats")
    values = table.read_finite()
    if len(values) < 2:
        raise DataError(
            f"repeats has shape {values.shape}; give 2 rows or more, all at the same input."
        )
    # Differences from the first row make a constant channel exactly zero.
    differences = values - values[0]
    largest = np.abs(differences).max(axis=0)
    silent = [table.describe_column(int(number)) for number in np.flatnonzero(largest == 0)]
    if silent:
        raise DataError(
            f"{join_names(silent)} of repeats never changes, so it has no noise to be measured by; "
            "leave it out, or record it with a finer resolution."
        )
    return largest * (differences / largest).std(axis=0, ddof=1)


@checks_arguments
def indicator(
    x: ArrayLike,
    noise_scale: ArrayLike | None = None,
    *,
    repeats: ArrayLike | None = None,
) -> Indicator:
    """Return how many factors the readouts have, by Malinowski's indicator function.

    The number of factors is where the function has its lowest minimum.

    The function is the paper's, which is Malinowski's own (Anal. Chem. 49, 612, 1977) for N > K::

        IND(kappa) = RE / (K - kappa)²
        RE² = sum of the K - kappa smallest eigenvalues of Z'Z / (N (K - kappa))

    Like theirs, Z is not centred: the mean of the readouts is a factor, as the constant function is
    a capacity.

    The noise must have the same strength in all readouts, and be independent between them. The last
    of the factors counts when its eigenvalue exceeds that of the noise by this factor, for m = K -
    kappa::

        (m + 1)⁵ / m⁴ - m

    This is about 6, noise included, and 8 when only four readouts are left over. What is weaker is
    taken for noise.

    Parameters
    ----------
    x
        Readouts (samples, readouts).
    noise_scale
        Standard deviation of each readout's noise, by which it is divided; without it x is taken as
        it is.
    repeats
        In its place, readouts (repeats, readouts) at one input: they give the scale, and show
        whether the noise is correlated between readouts.

    Returns
    -------
    Indicator
        The function, the eigenvalues and the number of factors.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> signal = generator.standard_normal((500, 3)) @ generator.standard_normal((3, 20))
    >>> indicator(signal + 0.1 * generator.standard_normal((500, 20)))
    Indicator: 3 factors in 20 readouts, 500 samples
    """
    table = readouts(x, "x")
    values = table.read_finite()
    n_samples, n_readouts = table.shape
    if n_readouts < 3 or n_samples <= n_readouts:
        raise DataError(
            f"x has shape {values.shape}; give 3 readouts or more, and more samples than readouts."
        )
    scale = _scale(noise_scale, repeats, table)
    warnings = []
    if repeats is not None and scale is not None:
        warnings += _correlated_noise(readouts(repeats, "repeats").read_finite(), scale)

    in_units_of_noise = values if scale is None else values / scale
    eigenvalues = np.linalg.svd(in_units_of_noise, compute_uv=False) ** 2
    remaining = np.arange(n_readouts, 0, -1)  # K - kappa, for kappa = 0 ... K - 1
    sums_of_smallest = np.cumsum(eigenvalues[::-1])[::-1]
    real_error = np.sqrt(sums_of_smallest / (n_samples * remaining))
    indicator_function = real_error / remaining.astype(float) ** 2
    n_factors = _lowest_minimum(indicator_function)

    # The real error at the minimum should be the noise, which is 1 in these units.
    if n_factors is not None and scale is not None:
        noise_ratio = float(real_error[n_factors])
        if not 1 / MAX_NOISE_RATIO < noise_ratio < MAX_NOISE_RATIO:
            message = Check(
                f"{n_factors} factors leave {noise_ratio:.2g} times the noise, not the noise "
                "itself, so that the minimum of IND is not where the noise begins; check the noise "
                "scale."
            )
            warnings.append(message)
    for message in warnings:
        warn(message)
    notes = []
    if n_factors is None:
        rises = indicator_function[-1] > indicator_function[-2]
        way = "rises from the start" if rises else "falls to the end"
        note = f"IND {way}: it has no minimum between 1 and K - 2 = {n_readouts - 2}."
        notes.append(Check(note, "note"))
    return Indicator(
        values=indicator_function[1:],
        eigenvalues=eigenvalues,
        n_factors=n_factors,
        n_samples=n_samples,
        checks=(*warnings, *notes),
    )


def _lowest_minimum(values: Floats) -> int | None:
    """Return the place of the lowest minimum inside a sequence; None where there is none."""
    steps = np.diff(values)
    is_minimum = (steps[:-1] < 0) & (steps[1:] > 0)
    minima = 1 + np.flatnonzero(is_minimum)
    if not len(minima):
        return None
    return int(minima[np.argmin(values[minima])])


def _scale(scale: ArrayLike | None, repeats: ArrayLike | None, table: Table) -> Floats | None:
    """Return the noise scale (readouts,), checked; None where there is none."""
    if repeats is None and scale is None:
        return None
    if repeats is not None and scale is not None:
        raise ParameterError(
            "`noise_scale` and `repeats` were both given; repeats alone tell the scale, too."
        )
    name = "noise_scale" if repeats is None else "repeats"
    if repeats is None:
        checked = require_numbers("noise_scale", scale, finite=False)
    else:
        checked = noise_scale(repeats)
    if checked.shape != table.shape[1:]:
        shape = checked.shape if repeats is None else np.shape(repeats)
        raise DataError(
            f"x has {table.shape[1]} readouts and {name} has shape {shape}; give the same."
        )
    is_positive = np.isfinite(checked) & (checked > 0)
    if not is_positive.all():
        number = int(np.argmin(is_positive))
        channel = table.describe_column(number)
        raise DataError(
            f"noise_scale is {checked[number]} for {channel}; give positive numbers, or leave the "
            "channel out."
        )
    return checked


def _correlated_noise(shots: Floats, scale: Floats) -> list[Check]:
    """Return a warning where the noise is correlated between readouts.

    The test is Schott's (2005): the sum of squared correlations, which is right for fewer repeats
    than readouts, too.
    """
    degrees_of_freedom = len(shots) - 1
    if degrees_of_freedom < MIN_DEGREES_OF_FREEDOM_FOR_CORRELATIONS:
        return []
    correlations = np.corrcoef((shots - shots[0]) / scale, rowvar=False)
    pairs = correlations[np.triu_indices(shots.shape[1], 1)]
    excess = float(np.sum(pairs**2)) - len(pairs) / degrees_of_freedom
    variance_of_a_pair = (
        2 * (degrees_of_freedom - 1) / (degrees_of_freedom**2 * (degrees_of_freedom + 2))
    )
    deviation_by_chance = np.sqrt(len(pairs) * variance_of_a_pair)
    if excess <= MIN_STANDARD_DEVIATIONS_OF_CORRELATION * deviation_by_chance:
        return []
    size = np.sqrt(excess / len(pairs))
    message = Check(
        f"the noise is correlated between readouts (root mean square {size:.2g} beyond chance): "
        "the indicator assumes independent noise and counts what is common as factors; use "
        "from_repeats, which does not assume it."
    )
    return [message]


def readouts(source: ArrayLike, name: str) -> Table:
    """Return readouts (samples, readouts) as a table; complex ones are refused."""
    if getattr(getattr(source, "dtype", None), "kind", "") == "c":
        raise DataError(f"{name} is complex; give what is measured, such as abs({name})**2.")
    return Table(source, name)
