"""The total capacity over a complete basis, from repeated measurements at the same inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .._formatting import listed, with_error
from .._validation import probability, yes_or_no
from ..errors import Check, DataError, warn
from ..kernels._summary import span, summarise
from ..samples._samples import DEAD, density_ratios
from ..samples._table import Table
from ..typing import ArrayLike, Floats, Integers
from ._spectra import readouts

ALONE = 1e-9  # Keeps an inverse finite when a direction exists at one input only.
ENOUGH = (
    5  # Below this many inputs per independent readout the theory of small 1/N is out of range.
)
DRIFT_CHANCE = 1e-6  # The chance of a warning about drift when there is none.
DRIFT_MATTERS = (
    0.1  # Drift is told when it lowers the total by more than this many standard errors.
)
DRIFT_FLOOR = 1e-18  # The noise that rounding makes, relative to the variance of a readout.


@dataclass(frozen=True, eq=False, repr=False)
class Repeats:
    """What repeated measurements tell: the total capacity, and the functions that survive the noise.

    `total` may scatter slightly below its lowest possible value when there is only noise; its interval does not.
    ``(x - mean) @ eigentasks`` gives the values of the eigentasks (Hu et al., Phys. Rev. X 13, 041020, 2023) for
    readouts x (samples, readouts): uncorrelated, of variance 1 in single shots, the one with the least noise first.
    `signal_fraction` is the share of that variance which the input explains, hence the capacity of each eigentask, as
    the sample shows it: within [0, 1], without the correction that `total` has. The constant is not among them.

    `n_readouts` is how many channels change with the input. `maximum` is the largest possible total and `rank` how
    many readouts are linearly independent, both with the constant readout if it was asked for.

    >>> rng = np.random.default_rng(0)
    >>> signal = rng.standard_normal((500, 4))
    >>> found = from_repeats(*(signal + 0.5 * rng.standard_normal((500, 4)) for _ in range(2)))
    >>> print(f"{found.total:.1f}: the constant, and four functions of which noise leaves 1 / (1 + 0.25)")
    4.2: the constant, and four functions of which noise leaves 1 / (1 + 0.25)
    >>> found.signal_fraction.shape
    (4,)
    """

    total: float
    standard_error: float
    raw_total: float  # before the correction of the bias
    eigentasks: Floats  # (readouts, directions)
    mean: Floats  # (readouts,)
    signal_fraction: Floats  # (directions,)
    rank: int
    n_readouts: int
    maximum: int
    n_repeats: int
    n_repeated: int  # inputs measured n_repeats times
    n_inputs: int  # inputs in all
    constant: bool
    checks: tuple[Check, ...] = ()

    def __repr__(self) -> str:
        once = self.n_inputs - self.n_repeated
        more = f", {once} more inputs once" if once else ""
        channels = f"{self.n_readouts} readouts{' and the constant' if self.constant else ''}"
        lines = [
            f"Repeats: total {with_error(self.total, self.standard_error)} of {channels}",
            f"  {self.n_repeated} inputs measured {self.n_repeats} times{more}",
            f"  {np.sum(self.signal_fraction > 0.5)} eigentasks with more signal than noise",
        ]
        return "\n".join(lines + [f"  check: {check}" for check in self.checks])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the total, between what the constant alone gives and the rank."""
        from scipy.special import stdtrit

        half_width = (
            stdtrit(self.n_repeated - 1, 0.5 + probability("level", level) / 2)
            * self.standard_error
        )
        ends = np.clip([self.total - half_width, self.total + half_width], self.constant, self.rank)
        return float(ends[0]), float(ends[1])


def from_repeats(
    x1: ArrayLike,
    x2: ArrayLike,
    *more: ArrayLike,
    measured_once: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    constant: bool = True,
) -> Repeats:
    """The total capacity over a complete basis, rank - tr(G⁻¹V), from measurements at the same inputs.

    V is the covariance of the noise, which repeats show, and G that of single shots. No basis and no inputs are needed.
    The estimate is corrected for its finite-sample bias, and its standard error includes the choice of the inputs;
    both assume independent inputs and noise that is independent between repeats.

    Parameters
    ----------
    x1, x2, more
        Readouts (samples, readouts) of two or more measurements, row by row at the same inputs. The capacity
        is that of a single shot, however many there are.
    measured_once
        Readouts at further inputs that were not repeated. They sharpen G; V comes from the repeats.
    weights
        Of inputs that were drawn from another density than the one in question: the ratio of the two, as from
        `draw_weighted`, one number per row of x1 and then one per row of `measured_once`.
    constant
        Append the constant readout, which has no noise and adds exactly 1, as `infocap.estimate` does.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=6)
    >>> system = infocap.theory.random_mixture(basis, n_active=12, n_readouts=10, noise=0.1, seed=1)
    >>> u = infocap.draw(basis, 1024, design="random", seed=1)
    >>> found = infocap.dimension.from_repeats(system(u, seed=2), system(u, seed=3))
    >>> low, high = found.interval()
    >>> bool(low < system.exact().sum() < high)
    True
    """
    constant = yes_or_no("constant", constant)
    tables = [readouts(x, f"x{number}") for number, x in enumerate((x1, x2, *more), start=1)]
    once = None if measured_once is None else readouts(measured_once, "measured_once")
    repeated, single = _shots(tables, once)
    ratios = None if weights is None else density_ratios(weights, len(repeated) + len(single))
    data = whiten(repeated, single, constant, ratios)
    rank, n_readouts, n_inputs = (
        data.repeated.shape[2] + constant,
        int(np.sum(data.live)),
        len(data.weights),
    )
    if len(repeated) < 2 or n_inputs <= rank:
        raise DataError(
            f"x1 has {len(repeated)} repeated inputs of {n_inputs} for {rank} independent readouts: "
            f"with N <= K nothing can be told apart; take at least {ENOUGH} K = {ENOUGH * rank} inputs."
        )
    noise = noise_covariance(data.repeated)
    share, error = noise_share(data, noise, constant)
    fractions, vectors = np.linalg.eigh(noise)
    with np.errstate(over="ignore"):  # readouts below 1e-300 have no finite weights
        eigentasks = np.ldexp(data.scaled_weights @ vectors, -data.exponent[:, None])
    messages = [*_weak(repeated, data, rank, n_readouts + constant), *_drift(data.repeated, error)]
    for message in messages:
        warn(message)
    return Repeats(
        total=rank - share,
        standard_error=error,
        raw_total=rank - float(np.trace(noise)),
        eigentasks=eigentasks,
        mean=data.mean,
        signal_fraction=np.clip(1 - fractions, 0.0, 1.0),
        rank=rank,
        n_readouts=n_readouts,
        maximum=n_readouts + constant,
        n_repeats=repeated.shape[1],
        n_repeated=len(repeated),
        n_inputs=n_inputs,
        constant=constant,
        checks=(
            *messages,
            *dead_channels(tables[0], np.flatnonzero(~data.live), data.mean, constant),
        ),
    )


def _shots(tables: list[Table], once: Table | None) -> tuple[Floats, Floats]:
    """Read the repeated shots (inputs, repeats, readouts) and the single ones (inputs, readouts), of equal readouts.

    A row that is in both would count twice, and pretend to be independent of itself.
    """
    first = tables[0].shape
    wrong = [table for table in tables if table.shape != first]
    wrong += [once] if once is not None and once.shape[1] != first[1] else []
    if wrong:
        said = f"x1 has shape {first} and {wrong[0].name} has shape {wrong[0].shape}; give the same readouts"
        raise DataError(
            f"{said} at the same inputs (or at others, not repeated, in measured_once=)."
        )
    repeated = np.stack([table.finite() for table in tables], axis=1)
    single = np.empty((0, first[1])) if once is None else once.finite()
    known = {row.tobytes(): number for number, row in enumerate(repeated[:, 0])}
    for number, row in enumerate(single):
        if (there := known.get(row.tobytes())) is not None:
            said = f"row {number} of measured_once is row {there} of x1"
            raise DataError(f"{said}; give only the inputs that were not repeated.")
    return repeated, single


def _weak(repeated: Floats, data: Whitened, rank: int, maximum: int) -> Iterator[Check]:
    """Repeats that are one measurement, too few inputs, too few of them repeated, or dependent readouts."""
    pairs = combinations(range(repeated.shape[1]), 2)
    same = [(a, b) for a, b in pairs if np.array_equal(repeated[:, a], repeated[:, b])]
    if same:
        yield Check(
            f"x{same[0][0] + 1} and x{same[0][1] + 1} are equal to the last digit; give two measurements."
        )
    worth = round(
        data.weights.sum() ** 2 / np.sum(data.weights**2)
    )  # weights that differ leave fewer
    if worth < ENOUGH * rank:
        as_many = (
            f" are, by their weights, worth {worth}, which" if worth < len(data.weights) else ""
        )
        yield Check(
            f"{len(data.weights)} inputs{as_many} are few for {rank} independent readouts: below {ENOUGH} K = "
            f"{ENOUGH * rank} the bias is too large to be corrected well; take more inputs."
        )
    elif len(data.repeated) * (data.repeated.shape[1] - 1) < ENOUGH * rank:
        yield Check(
            f"{len(data.repeated)} repeated inputs are few for {rank} independent readouts: the first entries of "
            "`signal_fraction` are too large and the last too small (the total is right); repeat more inputs."
        )
    if rank < maximum:
        said = f"only {rank} of {maximum} readouts are linearly independent, so the total cannot exceed {rank}"
        yield Check(f"{said}; leave out copies and sums of others.")


def _drift(z: Floats, error: float) -> Iterator[Check]:
    """Means of the repeats that differ by more than the noise allows (Hotelling's T², as an F statistic)."""
    from scipy.special import fdtrc

    n, repeats, k = z.shape
    freedom = (n - 1) * (repeats - 1)
    if freedom < 2 * k:
        return
    means = z.mean(axis=0) - z.mean(axis=(0, 1))  # (repeats, directions)
    noise = noise_covariance(z - means) * n / (n - 1)
    variances, vectors = np.linalg.eigh(noise)
    distance = n * np.sum((means @ vectors) ** 2 / (np.maximum(variances, 0.0) + DRIFT_FLOOR))
    statistic = distance * (freedom - k + 1) / (freedom * k * (repeats - 1))
    raised = np.sum(means**2) / (repeats - 1) - np.trace(noise) / n
    if (
        fdtrc(k * (repeats - 1), freedom - k + 1, statistic) < DRIFT_CHANCE
        and raised > DRIFT_MATTERS * error
    ):
        yield Check(
            f"the device drifted between the repeats: their means differ by more than the noise allows, which "
            f"counts as noise and lowers the total by up to {raised:.2g}; interleave the repeats."
        )


def dead_channels(table: Table, dead: Integers, values: Floats, constant: bool) -> Iterator[Check]:
    """Notes about channels that never change and were left out; the first that is not 0 serves as the constant."""
    names = {number: table.column(number) for number in dead.tolist()}
    carrier = next((number for number in names if constant and values[number] != 0), None)
    if carrier is not None:
        name = names.pop(carrier)
        yield Check(
            f"{name} is constant and serves as the constant readout.", "note", channels=[name]
        )
    if names:
        rest = list(names.values())
        said = f"dead channels were dropped ({listed(rest)}), which lowers the maximum capacity by {len(rest)}."
        yield Check(said, "note", channels=rest)


@dataclass(frozen=True, eq=False)
class Whitened:
    """Coordinates z of every shot, times the root of its input's weight, so that means of products are weighted means.

    The mean of z z' over the shots of an input, then over the inputs, is 1.
    """

    repeated: Floats  # (inputs, repeats, directions)
    once: Floats  # (inputs, 1, directions)
    weights: Floats  # (inputs,), those measured once last; the mean over the repeated ones is 1
    scaled_weights: Floats  # (readouts, directions), zero for dead channels
    exponent: Integers  # (readouts,): powers of two by which the readouts were divided
    mean: Floats  # (readouts,)
    live: np.ndarray  # which channels change


def whiten(
    repeated: Floats, once: Floats, constant: bool, weights: Floats | None = None
) -> Whitened:
    """Centre, then scale, then decide the rank: repeated (inputs, repeats, readouts), once (inputs, readouts).

    Without the constant readout centring would change the space the readouts span, so only scales are removed.
    """
    n_repeats, n_readouts = repeated.shape[1:]
    cut = len(repeated) * n_repeats
    weights = (
        np.ones(len(repeated) + len(once))
        if weights is None
        else weights / weights[: len(repeated)].mean()
    )
    shots = np.vstack([repeated.reshape(cut, n_readouts), once])
    exponent = np.frexp(np.abs(shots).max(axis=0))[1]
    shots = np.ldexp(shots, -exponent)  # exact, and squares stay in range
    shift = shots[0] * constant
    shots -= shift
    live = np.abs(shots).max(axis=0) > (DEAD if constant else 0.0)
    if not live.any():
        raise DataError(
            "x1 has no channel that changes from input to input; check that the device was on."
        )
    # Every input counts by its weight, however often it was measured.
    own, others = np.split(weights, [len(repeated)])
    share = np.concatenate([np.repeat(own / n_repeats, n_repeats), others])
    columns = np.column_stack([np.ones(len(shots)), shots[:, live]]) if constant else shots[:, live]
    columns = columns * np.sqrt(share)[:, None]
    space = span(summarise(columns, np.empty((len(shots), 0)), constant))
    # Nearly dependent readouts lose digits on the way; the second round, well conditioned, gets them back.
    z = (shots[:, live] - space.mean) @ space.whitening
    finish = np.linalg.inv(np.linalg.cholesky((z.T * share) @ z / weights.sum())).T
    z, whitening = z @ finish, np.zeros((n_readouts, len(finish)))
    whitening[live], shift[live] = space.whitening @ finish, shift[live] + space.mean
    root = np.sqrt(weights)[:, None, None]
    inputs = root[: len(repeated)] * z[:cut].reshape(len(repeated), n_repeats, -1)
    single, mean = root[len(repeated) :] * z[cut:, None], np.ldexp(shift, exponent)
    return Whitened(inputs, single, weights, whitening, exponent, mean, live)


def noise_covariance(z: Floats) -> Floats:
    """Covariance of single shots (inputs, repeats, directions) around the mean of their input, unbiased."""
    rest = (z - z.mean(axis=1, keepdims=True)).reshape(-1, z.shape[2])
    return rest.T @ rest / (len(z) * (z.shape[1] - 1))


def noise_share(data: Whitened, noise: Floats, constant: bool) -> tuple[float, float]:
    """tr(G⁻¹V), the noise share, corrected for its bias, and its standard error, by leaving out each input in turn.

    In whitened coordinates G_N = 1, so the plain estimate is tr V_N. The leave-one-out values tell its bias b/N. For
    Gaussian readouts bias is a geometric series in 1/N, which dividing by 1 + bias/T sums where subtracting, as
    the jackknife does, stops after the first term; it also keeps the share positive (docs/repeats.md).
    """
    plain = float(np.trace(noise))
    if plain == 0:
        return 0.0, 0.0
    n, without = len(data.weights), leave_one_out(data, noise, constant)
    # No trace falls below its share, so equal weights give at least 1 / n by themselves.
    inflation = max(1 + (n - 1) * (without.mean() - plain) / plain, 1 / n)
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    return plain / inflation, float(error) / inflation


def leave_one_out(data: Whitened, noise: Floats, constant: bool) -> Floats:
    """tr(G⁻¹V) without each of the inputs, those measured once last.

    With g = a'a / R for the shots a (repeats, directions) of an input and N the sum of all weights, the inverse of
    N - g is (1 + a'(N R - a a')⁻¹ a) / N. Centring is part of G: the constant is one more direction, without noise.
    """
    total, n_repeated, plain = data.weights.sum(), len(data.repeated), np.trace(noise)
    groups = [
        (data.repeated, data.weights[:n_repeated], 1),
        (data.once, data.weights[n_repeated:], 0),
    ]
    without = []
    for z, weights, tells_noise in groups:
        repeats, turned = z.shape[1], z.transpose(0, 2, 1)
        inner = z @ turned + constant * weights[:, None, None]
        gain = np.linalg.inv(total * repeats * (1 + ALONE) * np.eye(repeats) - inner)
        centring = (np.eye(repeats) - 1 / repeats) / max(repeats - 1, 1)
        seen = n_repeated * (z @ noise) @ turned - inner @ centring @ inner
        changed = np.sum(gain * seen - inner * centring, axis=(1, 2))
        without.append((n_repeated * plain + changed) / (n_repeated - tells_noise * weights))
    return (1 - data.weights / total) * np.concatenate(without)
