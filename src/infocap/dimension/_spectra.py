"""What the spectrum of the readouts tells: Malinowski's indicator function, and effective dimensions for comparison."""

from dataclasses import dataclass

import numpy as np

from .._formatting import listed
from .._validation import one_of
from ..errors import Check, DataError, ParameterError, warn
from ..samples._table import Table
from ..typing import ArrayLike, Floats

CORRELATED = 5.0  # Standard deviations beyond chance at which correlations of the noise are told.
NOT_NOISE = 2.0  # The real error at the minimum may differ from the known noise by this factor.


@dataclass(frozen=True, eq=False, repr=False)
class Indicator:
    """Malinowski's indicator function and its minimum.

    `values` are IND(kappa) for kappa = 1 ... K - 1, `eigenvalues` those of Z'Z, largest first, where Z are the
    readouts in units of their noise. `n_factors` is where IND has its minimum: the lowest, as in the paper, or the
    last, whichever `indicator` was asked for. It is None when IND only rises (IND(0) counts as its start) or falls to
    the end.

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

    def __repr__(self) -> str:
        found = "no minimum, so no number of" if self.n_factors is None else self.n_factors
        first = f"Indicator: {found} factors in {len(self.eigenvalues)} readouts, {self.n_samples} samples"
        return "\n  check: ".join([first, *self.checks])


def noise_scale(repeats: ArrayLike) -> Floats:
    """The standard deviation of each readout over repeats (repeats, readouts) at one and the same input.

    >>> noise_scale([[1.0, 0.0], [3.0, 0.2], [2.0, 0.1]])
    array([1. , 0.1])
    """
    table = readouts(repeats, "repeats")
    values = table.finite()
    if len(values) < 2:
        raise DataError(
            f"repeats has shape {values.shape}; give 2 rows or more, all at the same input."
        )
    moved = values - values[0]  # a constant channel becomes exactly zero
    size = np.abs(moved).max(axis=0)
    silent = [table.column(int(number)) for number in np.flatnonzero(size == 0)]
    if silent:
        said = f"{listed(silent)} of repeats never changes, so it has no noise to be measured by"
        raise DataError(f"{said}; leave it out, or record it with a finer resolution.")
    return size * (moved / size).std(axis=0, ddof=1)


def indicator(
    x: ArrayLike,
    noise_scale: ArrayLike | None = None,
    *,
    repeats: ArrayLike | None = None,
    minimum: str = "lowest",
) -> Indicator:
    """How many factors the readouts have, by the minimum of Malinowski's indicator function.

    IND(kappa) = RE / (K - kappa)², RE² = sum of the K - kappa smallest eigenvalues of Z'Z / (N (K - kappa)): the
    paper's formula, which is Malinowski's own (Anal. Chem. 49, 612, 1977) for N > K. Like theirs, Z is not centred:
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
    minimum
        IND often has several minima between 1 and K - 2. ``"lowest"`` takes the paper's; one strong factor before many
        equal ones, such as the mean of all readouts, can make that the first, and ``"last"`` then finds the others.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> signal = generator.standard_normal((500, 3)) @ generator.standard_normal((3, 20))
    >>> indicator(signal + 0.1 * generator.standard_normal((500, 20)))
    Indicator: 3 factors in 20 readouts, 500 samples
    """
    table = readouts(x, "x")
    values, (n, k) = table.finite(), table.shape
    if k < 3 or n <= k:
        said = "give 3 readouts or more, and more samples than readouts"
        raise DataError(f"x has shape {values.shape}; {said}.")
    one_of("minimum", minimum, ("lowest", "last"))
    scale = _scale(noise_scale, repeats, table)
    messages = [] if repeats is None else _correlated(readouts(repeats, "repeats").finite(), scale)
    eigenvalues = np.linalg.svd(values if scale is None else values / scale, compute_uv=False) ** 2
    left = np.arange(k, 0, -1)  # readouts beyond the factors, kappa = 0 ... K - 1
    error = np.sqrt(np.cumsum(eigenvalues[::-1])[::-1] / (n * left))
    ind = error / left.astype(float) ** 2
    step = np.diff(ind)
    minima = 1 + np.flatnonzero((step[:-1] < 0) & (step[1:] > 0))
    place = np.argmin(ind[minima]) if minimum == "lowest" and len(minima) else -1
    n_factors = int(minima[place]) if len(minima) else None
    if n_factors is not None and scale is not None:
        rest = float(error[n_factors])  # should be as large as the noise, which is 1 in these units
        if not 1 / NOT_NOISE < rest < NOT_NOISE:
            said = f"{n_factors} factors leave {rest:.2g} times the noise, not the noise itself, so that the minimum of"
            messages.append(
                Check(f"{said} IND is not where the noise begins; check the noise scale.")
            )
    for message in messages:
        warn(message)
    if n_factors is None:
        way = "rises from the start" if step[-1] > 0 else "falls to the end"
        messages.append(
            Check(f"IND {way}: it has no minimum between 1 and K - 2 = {k - 2}.", "note")
        )
    return Indicator(ind[1:], eigenvalues, n_factors, n, tuple(messages))


def _scale(scale: ArrayLike | None, repeats: ArrayLike | None, table: Table) -> Floats | None:
    if repeats is None and scale is None:
        return None
    if repeats is not None and scale is not None:
        raise ParameterError(
            "`noise_scale` and `repeats` were both given; repeats alone tell the scale too."
        )
    given = np.asarray(scale, dtype=float) if repeats is None else noise_scale(repeats)
    if given.shape != table.shape[1:]:
        name, shape = (
            ("noise_scale", given.shape) if repeats is None else ("repeats", np.shape(repeats))
        )
        raise DataError(
            f"x has {table.shape[1]} readouts and {name} has shape {shape}; give the same."
        )
    bad = np.flatnonzero(~(np.isfinite(given) & (given > 0)))
    if len(bad):
        said = f"noise_scale is {given[bad[0]]} for {table.column(int(bad[0]))}"
        raise DataError(f"{said}; give positive numbers, or leave the channel out.")
    return given


def _correlated(shots: Floats, scale: Floats | None) -> list[str]:
    """Schott's test (2005): the sum of squared correlations, right for fewer repeats than readouts too."""
    freedom = len(shots) - 1
    if freedom < 3:
        return []
    pairs = np.corrcoef((shots - shots[0]) / scale, rowvar=False)[
        np.triu_indices(shots.shape[1], 1)
    ]
    excess = float(np.sum(pairs**2)) - len(pairs) / freedom
    if excess <= CORRELATED * np.sqrt(
        2 * len(pairs) * (freedom - 1) / (freedom**2 * (freedom + 2))
    ):
        return []
    said = f"the noise is correlated between readouts (root mean square {np.sqrt(excess / len(pairs)):.2g} beyond chance)"
    why = "the indicator assumes independent noise and counts what is common as factors"
    return [Check(f"{said}: {why}; use from_repeats, which does not assume it.")]


def readouts(source: ArrayLike, name: str) -> Table:
    """The readouts (samples, readouts) as a table that knows their names; complex ones are refused."""
    if getattr(getattr(source, "dtype", None), "kind", "") == "c":
        raise DataError(f"{name} is complex; give what is measured, such as abs({name})**2.")
    return Table(source, name)


def participation_ratio(x: ArrayLike) -> float:
    """(sum of the eigenvalues)² / sum of their squares, of the covariance of the readouts (samples, readouts).

    It knows no noise, and changes with the units of the readouts, as capacities do not.

    >>> x = np.random.default_rng(0).standard_normal((10_000, 4))
    >>> round(participation_ratio(x * [1, 1, 1, 0.01]), 1)
    3.0
    """
    variances = _singular_values(x) ** 2
    return float(variances.sum() ** 2 / np.sum(variances**2))


def effective_rank(x: ArrayLike) -> float:
    """exp of the entropy of the singular values of the centred readouts, scaled to sum 1 (Roy, Vetterli 2007).

    It knows no noise, and changes with the units of the readouts, as capacities do not.

    >>> x = np.random.default_rng(0).standard_normal((10_000, 4))
    >>> round(effective_rank(x), 1)
    4.0
    """
    values = _singular_values(x)
    share = values[values > 0] / values.sum()
    return float(np.exp(-np.sum(share * np.log(share))))


def _singular_values(x: ArrayLike) -> Floats:
    """Singular values of the centred readouts, relative to the largest; uncentred, an offset would count alone."""
    values = readouts(x, "x").finite()
    values = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
    values = values - values[0]
    singular = np.linalg.svd(values - values.mean(axis=0), compute_uv=False)
    if singular.max() == 0:
        raise DataError(
            "x has no channel that changes from sample to sample; there is no spectrum."
        )
    return singular / singular[0]
