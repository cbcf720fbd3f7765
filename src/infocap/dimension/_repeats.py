"""The total capacity over a complete basis, from repeated measurements at the same inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from .._formatting import join_names, with_error
from .._validation import (
    checks_arguments,
    require_boolean,
    require_numbers,
    require_probability,
    shown,
)
from ..errors import Check, DataError, ParameterError, warn
from ..samples import Table, density_ratios
from ..typing import ArrayLike, Floats, Integers
from ._drift import drift_between_repeats
from ._spectra import readouts
from ._whitening import Whitened, noise_covariance, whiten

# Keeps an inverse finite when a direction exists at one input only.
RELATIVE_FLOOR = 1e-9
# Below this many inputs per independent readout, the theory of small 1/N is out of range.
MIN_INPUTS_PER_READOUT = 5
# Groups of inputs that the jackknife of `capacity_at` leaves out one after the other: enough to
# know its standard error to a tenth.
MAX_GROUPS = 50
# Standard error of a total, in functions, from which on more shots are a guess.
MAX_ERROR_AT_SHOTS = 1.0


@dataclass(frozen=True, eq=False)
class CapacityAtShots:
    """The total capacity against the number of shots that are averaged; `capacity_at` makes one.

    Attributes
    ----------
    shots
        The numbers of shots, (numbers,).
    total, standard_error
        The total capacity of the average of so many shots, and its standard error, (numbers,).

    Examples
    --------
    >>> print(CapacityAtShots(np.array([1.0, 4.0]), np.array([4.2, 4.8]), np.array([0.1, 0.1])))
    1 shots: total 4.20 ± 0.10
    4 shots: total 4.80 ± 0.10
    """

    shots: Floats
    total: Floats
    standard_error: Floats

    def __str__(self) -> str:
        lines = []
        for shots, total, error in zip(self.shots, self.total, self.standard_error, strict=True):
            lines.append(f"{shots:g} shots: total {with_error(total, error)}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class Repeats:
    """The total capacity that repeated measurements tell, and the functions that noise leaves.

    Attributes
    ----------
    total, standard_error
        The total capacity and its standard error. The total may scatter slightly below its lowest
        possible value when there is only noise; its interval does not.
    raw_total
        The total before the correction of its bias.
    eigentasks, mean
        ``(x - mean) @ eigentasks`` gives the values of the eigentasks (Hu et al., Phys. Rev. X 13,
        041020, 2023) for readouts x (samples, readouts): uncorrelated, of variance 1 in single
        shots, the one with the least noise first. The constant is not among them.
    signal_fraction
        The share of that variance which the input explains, hence the capacity of each eigentask,
        as the sample shows it: within [0, 1], without the correction that `total` has.
    rank, maximum
        How many readouts are linearly independent, and the largest possible total; both with the
        constant readout if it was asked for.
    n_readouts
        How many channels change with the input.
    n_repeats, n_repeated, n_inputs
        How often inputs were repeated, how many of them were, and how many inputs there are in all.
    constant
        Whether the constant readout was asked for.
    checks
        Every warning raised and every channel left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> signal = rng.standard_normal((500, 4))
    >>> repeats = from_repeats(*(signal + 0.5 * rng.standard_normal((500, 4)) for _ in range(2)))
    >>> round(float(repeats.total), 1)  # the constant, and four functions: noise leaves 1 / 1.25
    4.2
    >>> repeats.signal_fraction.shape
    (4,)
    """

    total: float
    standard_error: float
    raw_total: float
    eigentasks: Floats  # (readouts, directions)
    mean: Floats  # (readouts,)
    signal_fraction: Floats  # (directions,)
    rank: int
    n_readouts: int
    maximum: int
    n_repeats: int
    n_repeated: int
    n_inputs: int
    constant: bool
    checks: tuple[Check, ...] = ()
    _whitened: Whitened | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        n_once = self.n_inputs - self.n_repeated
        measured_once = f", {n_once} more inputs once" if n_once else ""
        constant = " and the constant" if self.constant else ""
        total = with_error(self.total, self.standard_error)
        lines = [
            f"Repeats: total {total} of {self.n_readouts} readouts{constant}",
            f"  {self.n_repeated} inputs measured {self.n_repeats} times{measured_once}",
            f"  {np.sum(self.signal_fraction > 0.5)} eigentasks with more signal than noise",
        ]
        return "\n".join(lines + [f"  check: {check}" for check in self.checks])

    @checks_arguments
    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of the total, from what the constant gives to the rank.

        Parameters
        ----------
        level
            The probability with which the interval holds.
        """
        from scipy.special import stdtrit

        quantile = stdtrit(self.n_repeated - 1, 0.5 + require_probability("level", level) / 2)
        half_width = quantile * self.standard_error
        low = np.clip(self.total - half_width, self.constant, self.rank)
        high = np.clip(self.total + half_width, self.constant, self.rank)
        return float(low), float(high)

    @checks_arguments
    def capacity_at(self, shots: ArrayLike) -> CapacityAtShots:
        """Return the total capacity of the average of several shots.

        An average of n shots has the covariance V/n of the noise. The total that is left is the
        resolvable expressive capacity (Hu et al., Phys. Rev. X 13, 041020, 2023). It assumes noise
        that is independent between shots. The further n lies above the number of repeats, the more
        the error of V counts, which the standard error says.

        Parameters
        ----------
        shots
            One number of shots or several, 1 or more.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> signal = rng.standard_normal((2000, 4))
        >>> shots = [signal + 0.5 * rng.standard_normal((2000, 4)) for _ in range(2)]
        >>> print(from_repeats(*shots).capacity_at([1, 4]))  # 1 + 4 / 1.25 and 1 + 4 / 1.0625
        1 shots: total 4.211 ± 0.016
        4 shots: total 4.7685 ± 0.0048
        """
        numbers = np.atleast_1d(require_numbers("shots", shots, finite=False))
        if (
            numbers.ndim != 1
            or not len(numbers)
            or not np.all(np.isfinite(numbers) & (numbers >= 1))
        ):
            raise ParameterError(
                f"`shots={shown(shots)}` must be 1 or more, one number or several."
            )
        assert self._whitened is not None
        shares, errors = shares_of_averages(self._whitened, numbers, self.constant)
        # For a single shot the closed form is there, which leaves out every input in turn.
        is_single = numbers == 1
        total = np.where(is_single, self.total, self.rank - shares)
        errors = np.where(is_single, self.standard_error, errors)
        if errors.max() > MAX_ERROR_AT_SHOTS:
            worst = int(errors.argmax())
            warn(
                f"the total of {numbers[worst]:g} shots has a standard error of "
                f"{errors[worst]:.1f}: {self.n_repeated} inputs measured {self.n_repeats} times do "
                "not tell weak signals from noise; repeat more inputs, or more often."
            )
        return CapacityAtShots(numbers, total, errors)


@checks_arguments
def from_repeats(
    x1: ArrayLike,
    x2: ArrayLike,
    *further: ArrayLike,
    measured_once: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    constant: bool = True,
) -> Repeats:
    """Return the total capacity over a complete basis from measurements at the same inputs.

    It is rank - tr(G⁻¹V). V is the covariance of the noise, which repeats show, and G that of
    single shots. No basis and no inputs are needed. The estimate is corrected for its finite-sample
    bias, and its standard error includes the choice of the inputs; both assume independent inputs
    and noise that is independent between repeats.

    Parameters
    ----------
    x1, x2, *further
        Readouts (samples, readouts) of two or more measurements, row by row at the same inputs. The
        capacity is that of a single shot, however many there are.
    measured_once
        Readouts at further inputs that were not repeated. They sharpen G; V comes from the repeats.
    sample_weight
        The weights of inputs that were drawn from another density than the one in question: the
        ratio of the two, as from `draw_weighted`, one number per row of x1 and then one per row of
        `measured_once`.
    constant
        Append the constant readout, which has no noise and adds exactly 1, as `infocap.estimate`
        does.

    Returns
    -------
    Repeats
        The total with its standard error, and the eigentasks.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=6)
    >>> system = infocap.theory.random_mixture(basis, n_active=12, n_readouts=10, noise=0.1, seed=1)
    >>> u = infocap.draw(basis, 1024, design="random", seed=1)
    >>> repeats = infocap.dimension.from_repeats(system(u, seed=2), system(u, seed=3))
    >>> low, high = repeats.interval()
    >>> bool(low < system.exact().sum() < high)
    True
    """
    constant = require_boolean("constant", constant)
    tables = []
    for number, x in enumerate((x1, x2, *further), start=1):
        tables.append(readouts(x, f"x{number}"))
    single_table = None
    if measured_once is not None:
        single_table = readouts(measured_once, "measured_once")
    repeated, single = _shots(tables, single_table)
    n_repeated, n_repeats, _ = repeated.shape
    n_inputs = n_repeated + len(single)
    ratios = None if sample_weight is None else density_ratios(sample_weight, n_inputs)
    whitened = whiten(repeated, single, constant, ratios)
    rank = whitened.repeated.shape[2] + constant
    n_readouts = int(np.sum(whitened.is_live))
    if n_repeated < 2 or n_inputs <= rank:
        raise DataError(
            f"x1 has {n_repeated} repeated inputs of {n_inputs} for {rank} independent readouts: "
            f"with N <= K nothing can be told apart; take at least {MIN_INPUTS_PER_READOUT} K = "
            f"{MIN_INPUTS_PER_READOUT * rank} inputs."
        )

    noise = noise_covariance(whitened.repeated)
    share, error = noise_share(whitened, noise, constant)
    noise_fractions, vectors = np.linalg.eigh(noise)
    with np.errstate(over="ignore"):  # readouts below 1e-300 have no finite weights
        eigentasks = np.ldexp(
            whitened.scaled_readout_weights @ vectors, -whitened.exponent[:, None]
        )

    warnings = list(_weak_data(repeated, whitened, rank, n_readouts + constant))
    drift = drift_between_repeats(whitened.repeated, error)
    if drift is not None:
        warnings.append(drift)
    for message in warnings:
        warn(message)
    notes = dead_channels(tables[0], np.flatnonzero(~whitened.is_live), whitened.mean, constant)
    return Repeats(
        total=rank - share,
        standard_error=error,
        raw_total=rank - float(np.trace(noise)),
        eigentasks=eigentasks,
        mean=whitened.mean,
        signal_fraction=np.clip(1 - noise_fractions, 0.0, 1.0),
        rank=rank,
        n_readouts=n_readouts,
        maximum=n_readouts + constant,
        n_repeats=n_repeats,
        n_repeated=n_repeated,
        n_inputs=n_inputs,
        constant=constant,
        checks=(*warnings, *notes),
        _whitened=whitened,
    )


def _shots(tables: list[Table], single_table: Table | None) -> tuple[Floats, Floats]:
    """Read the repeated shots (inputs, repeats, readouts) and the single shots (inputs, readouts).

    A row that is in both would count twice, and pretend to be independent of itself.
    """
    shape = tables[0].shape
    misfits = [table for table in tables if table.shape != shape]
    if single_table is not None and single_table.shape[1] != shape[1]:
        misfits.append(single_table)
    if misfits:
        raise DataError(
            f"x1 has shape {shape} and {misfits[0].name} has shape {misfits[0].shape}; give the "
            "same readouts at the same inputs (or at others, not repeated, in measured_once=)."
        )
    repeated = np.stack([table.read_finite() for table in tables], axis=1)
    single = np.empty((0, shape[1]))
    if single_table is not None:
        single = single_table.read_finite()
    row_of_values = {values.tobytes(): row for row, values in enumerate(repeated[:, 0])}
    for row, values in enumerate(single):
        repeated_row = row_of_values.get(values.tobytes())
        if repeated_row is not None:
            raise DataError(
                f"row {row} of measured_once is row {repeated_row} of x1; give only the inputs "
                "that were not repeated."
            )
    return repeated, single


def _weak_data(repeated: Floats, whitened: Whitened, rank: int, maximum: int) -> Iterator[Check]:
    """Yield warnings of copied repeats, of few inputs or repeats, and of dependent readouts."""
    for i, j in combinations(range(repeated.shape[1]), 2):
        if np.array_equal(repeated[:, i], repeated[:, j]):
            yield Check(
                f"x{i + 1} and x{j + 1} are equal to the last digit; give two measurements."
            )
            break
    n_inputs = len(whitened.sample_weight)
    n_repeated, n_repeats, _ = whitened.repeated.shape
    min_inputs = MIN_INPUTS_PER_READOUT * rank
    # Weights that differ are worth fewer inputs.
    n_effective = round(whitened.sample_weight.sum() ** 2 / np.sum(whitened.sample_weight**2))
    if n_effective < min_inputs:
        by_weight = ""
        if n_effective < n_inputs:
            by_weight = f" are, by their weights, worth {n_effective}, which"
        yield Check(
            f"{n_inputs} inputs{by_weight} are few for {rank} independent readouts: below "
            f"{MIN_INPUTS_PER_READOUT} K = {min_inputs} the bias is too large to be corrected "
            "well; take more inputs."
        )
    elif n_repeated * (n_repeats - 1) < min_inputs:
        yield Check(
            f"{n_repeated} repeated inputs are few for {rank} independent readouts: the first "
            "entries of `signal_fraction` are too large and the last too small (the total is "
            "right); repeat more inputs."
        )
    if rank < maximum:
        yield Check(
            f"only {rank} of {maximum} readouts are linearly independent, so the total cannot "
            f"exceed {rank}; leave out copies and sums of others."
        )


def dead_channels(table: Table, dead: Integers, values: Floats, constant: bool) -> Iterator[Check]:
    """Yield notes about channels that never change.

    The first of them that is not 0 serves as the constant, and the others are left out.
    """
    names = {number: table.describe_column(number) for number in dead.tolist()}
    nonzero = [number for number in names if values[number] != 0]
    if constant and nonzero:
        name = names.pop(nonzero[0])
        yield Check(
            f"{name} is constant and serves as the constant readout.", "note", channels=[name]
        )
    if names:
        dropped = list(names.values())
        yield Check(
            f"dead channels were dropped ({join_names(dropped)}), which lowers the maximum "
            f"capacity by {len(dropped)}.",
            "note",
            channels=dropped,
        )


def noise_share(whitened: Whitened, noise: Floats, constant: bool) -> tuple[float, float]:
    """Return the noise share tr(G⁻¹V), corrected for its bias, and its standard error.

    Both come from the jackknife over inputs.

    For whitened readouts G_N = 1, so the plain estimate is T = tr V_N. The leave-one-out values
    tell its bias b/N. For Gaussian readouts the bias is a geometric series in 1/N. The corrected
    share sums it::

        T / (1 + bias / T)

    Subtracting the bias, as the jackknife does, would stop after the first term. Dividing also
    keeps the share positive (docs/repeats.md).
    """
    share = float(np.trace(noise))  # not corrected
    if share == 0:
        return 0.0, 0.0
    n_inputs = len(whitened.sample_weight)
    without = leave_one_out(whitened, noise, constant)
    # No trace falls below its share, so equal weights give at least 1 / N by themselves.
    relative_bias = (n_inputs - 1) * (without.mean() - share) / share
    inflation = max(1 + relative_bias, 1 / n_inputs)
    deviations = without - without.mean()
    error = np.sqrt((n_inputs - 1) / n_inputs * np.sum(deviations**2))
    return share / inflation, float(error) / inflation


def shares_of_averages(whitened: Whitened, shots: Floats, constant: bool) -> tuple[Floats, Floats]:
    """Return the noise share of averages of so many shots, corrected for its bias, and its error.

    Averages of n shots have the covariances V/n of the noise and S + V/n of everything. In
    directions in which S = r and V = 1 - r, the capacity is the sum of r / (r + (1 - r)/n). Bias
    and error come from the jackknife over groups of inputs, as in `noise_share`.
    """
    noise = noise_covariance(whitened.repeated)
    n_pooled = _count_indistinct(1 - np.linalg.eigvalsh(noise), whitened)
    shares = _shares_of_averages(noise, shots, n_pooled)
    n_groups = min(len(whitened.repeated), MAX_GROUPS)
    without = np.array(
        [
            _shares_of_averages(noise, shots, n_pooled)
            for noise in _noise_without_groups(whitened, n_groups, constant)
        ]
    )
    if not np.all(shares > 0):
        return np.zeros(len(shots)), np.zeros(len(shots))
    relative_bias = (n_groups - 1) * (without.mean(axis=0) - shares) / shares
    inflation = np.maximum(1 + relative_bias, 1 / n_groups)
    deviations = without - without.mean(axis=0)
    errors = np.sqrt((n_groups - 1) / n_groups * np.sum(deviations**2, axis=0))
    return shares / inflation, errors / inflation


def _count_indistinct(signal_fractions: Floats, whitened: Whitened) -> int:
    """Return how many directions have a signal fraction that pure noise could show.

    In m directions of pure noise, R repeats of N inputs show fractions of either sign: those of a
    random matrix, whose largest lies at 2 (m / (N R (R - 1)))^½, the edge of its semicircle.
    """
    n_inputs, n_repeats, _ = whitened.repeated.shape
    n_indistinct = len(signal_fractions)
    while True:
        edge = 2 * np.sqrt(n_indistinct / (n_inputs * n_repeats * (n_repeats - 1)))
        n_below = int(np.sum(signal_fractions < edge))
        if n_below == n_indistinct:
            return n_below
        n_indistinct = n_below


def _shares_of_averages(noise: Floats, shots: Floats, n_pooled: int) -> Floats:
    """Return the noise shares of averages, (shots,), from V in coordinates where G = 1.

    The `n_pooled` directions with the least signal get their mean signal fraction: the scatter of
    each would, divided by the small noise of an average, pass for signal. A mean below zero counts
    to first order, so that chance does not add up to a signal.
    """
    signal_fractions = 1 - np.linalg.eigvalsh(noise)  # the largest first
    if n_pooled:
        signal_fractions[-n_pooled:] = signal_fractions[-n_pooled:].mean()
    capacities = shots[:, None] * signal_fractions
    capacities /= 1 + (shots[:, None] - 1) * np.maximum(signal_fractions, 0.0)
    return np.sum(1 - capacities, axis=1)


def _noise_without_groups(whitened: Whitened, n_groups: int, constant: bool) -> Iterator[Floats]:
    """Yield V without each group of inputs, in coordinates where G without them is 1."""
    total_weight = whitened.sample_weight.sum()
    n_repeated, n_repeats, n_directions = whitened.repeated.shape
    noise = noise_covariance(whitened.repeated)
    singles = np.array_split(np.arange(len(whitened.single)), n_groups)
    for rows, single_rows in zip(
        np.array_split(np.arange(n_repeated), n_groups), singles, strict=True
    ):
        group = whitened.repeated[rows]
        weight = whitened.sample_weight[rows].sum()
        weight_of_singles = whitened.sample_weight[n_repeated + single_rows].sum()
        shots = group.reshape(-1, n_directions) / np.sqrt(n_repeats)
        single_shots = whitened.single[single_rows, 0]
        gram = total_weight * np.eye(n_directions)
        gram -= shots.T @ shots + single_shots.T @ single_shots
        remaining = total_weight - weight - weight_of_singles
        gram /= remaining
        if constant:
            roots = np.sqrt(whitened.sample_weight)
            sums = roots[rows] @ group.mean(axis=1)
            sums = sums + roots[n_repeated + single_rows] @ single_shots
            # The mean of what remains: that of all is zero.
            gram -= np.outer(sums, sums) / remaining**2
        deviations = (group - group.mean(axis=1, keepdims=True)).reshape(-1, n_directions)
        noise_of_group = deviations.T @ deviations / (n_repeats - 1)
        without = (n_repeated * noise - noise_of_group) / (n_repeated - weight)
        inverse_root = np.linalg.inv(np.linalg.cholesky(gram))
        yield inverse_root @ without @ inverse_root.T


def leave_one_out(whitened: Whitened, noise: Floats, constant: bool) -> Floats:
    """Return tr(G⁻¹V) without each of the inputs, those measured once last.

    With g = a'a / R for the shots a (repeats, directions) of an input and N the sum of all
    weights::

        (N - g)⁻¹ = (1 + a' (N R - a a')⁻¹ a) / N

    Centring is part of G: the constant is one more direction, without noise.
    """
    total_weight = whitened.sample_weight.sum()
    n_repeated = len(whitened.repeated)
    share = np.trace(noise)

    def without_each(shots: Floats, weights: Floats, are_repeated: bool) -> Floats:
        """Return the noise share without each input of the shots (inputs, repeats, directions)."""
        n_repeats = shots.shape[1]
        transposed = shots.transpose(0, 2, 1)
        inner = shots @ transposed + constant * weights[:, None, None]  # a a', with the constant
        floor = total_weight * n_repeats * (1 + RELATIVE_FLOOR) * np.eye(n_repeats)
        gain = np.linalg.inv(floor - inner)
        centring = (np.eye(n_repeats) - 1 / n_repeats) / max(n_repeats - 1, 1)
        of_noise = n_repeated * (shots @ noise) @ transposed - inner @ centring @ inner
        change = np.sum(gain * of_noise - inner * centring, axis=(1, 2))
        return (n_repeated * share + change) / (n_repeated - are_repeated * weights)

    without_repeated = without_each(whitened.repeated, whitened.sample_weight[:n_repeated], True)
    without_single = without_each(whitened.single, whitened.sample_weight[n_repeated:], False)
    without = np.concatenate([without_repeated, without_single])
    return (1 - whitened.sample_weight / total_weight) * without
