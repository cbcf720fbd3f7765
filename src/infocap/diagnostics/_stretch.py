"""Stretches of a data set in the order of acquisition, prepared once for all checks of the data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from statistics import NormalDist
from typing import Any

import numpy as np

from .._arrays import take_rows, to_library_of, to_numpy
from .._formatting import join_names
from ..basis import ProductBasis, lowest_degrees
from ..samples import ColumnStatistics, Samples
from ..typing import Floats, Integers

# Measurements that are looked at together, and the most stretches of them (a million measurements); of data in files,
# which are read once more for this, few and short ones; on a device, whose work takes less time than a look, one, and
# of very many channels so many.
LONGEST, MOST, SHORT, FEW, WIDEST = 8192, 128, 1536, 4, 192
# Bytes of readouts in one stretch: wide ones are looked at in fewer rows, within the memory of any machine.
STRETCH_BYTES = 16_000_000
# Functions of lowest degree that show what readouts have to do with inputs; more cost time and see little more.
FUNCTIONS = 21
# Relative variance of a direction of the readouts below which it is rounding; statistics need no double precision.
ROUNDING = 1e-10
# Probability that chance alone raises one check on one data set.
FALSE_ALARM = 1e-6
# Measurements, or eight per readout, whose readouts are whitened and compared with the inputs; all of them where these
# raise a suspicion.
DENSE = 1024
# Random sums of readouts that are looked at in so many measurements, more of them where these are fewer: so many
# numbers. All would cost more and see little more. Their squares are numbers of single precision.
SUMS, SUMMED, NUMBERS, LARGEST = 12, 4096, 98_304, 1e15
# Functions of the inputs that are guessed from the readouts at every measurement.
GUESSED = 4
# Standard deviations beyond which a number counts no more: a single row, of a sharp resonance, decides nothing.
LARGE_Z = 5.0
# Rows chosen at random whose values are put in order: enough for one in a hundred values, few enough to be quick.
SORTED = 512
# Lines and columns of the picture of where readouts do not fit their inputs.
PICTURED, MOMENTS = 32, 120


@dataclass(frozen=True, eq=False)
class Stretch:
    """Consecutive measurements: inputs, readouts, low-degree functions of the inputs, and whitened readouts.

    `y` (functions, n) are centred and have unit variance here. `whitening` (channels, rank) turns readouts minus `mean`
    into uncorrelated coordinates `z` of unit variance, made for the first measurements only, and `back` these into
    standardised channels. `own` (rank, functions) are the correlations of z and y at the same measurement: the sum of
    squares of a column is a function's raw capacity.
    """

    samples: Samples
    n: int  # number of measurements
    places: Integers  # of the samples that are looked at, in the order of acquisition
    first: int  # how many measurements come before
    channels: Integers  # of the data set, that are looked at
    share: float  # one over the number of stretches: of the false alarms that this one may raise
    low: ProductBasis
    u: Floats
    x: Floats  # the channels that change, times the scale of the samples
    ends: Floats  # lowest and highest value of each channel in the whole data set, (2, channels)
    means: Floats  # of the functions, in standard errors
    y: Floats
    mean: Floats
    whitening: Floats
    z: Floats
    back: Floats
    own: Floats
    clear: Integers  # the functions, those that the readouts hold best first
    rest: Floats  # what the functions leave of random sums of readouts, as uncorrelated numbers, (sums, some of n)
    guess: Floats  # the first of the clear functions, as the whitened readouts guess them, (functions, n)
    some: Integers  # measurements chosen at random
    sorted: Floats  # the values of each channel there in order of size, (channels, some)
    aside: set[int] = field(
        default_factory=set
    )  # measurements that a check found glitched, for those after it

    @cached_property
    def rows(self) -> Integers:
        """The measurements' rows in what the user gave, in the order of acquisition."""
        return self.samples.x.given_rows(self.places)

    def turned(self, matrix: Floats) -> Floats:
        """All measurements in other coordinates: columns of sums of whitened readouts, (n, columns)."""
        matrix = self.whitening @ matrix
        return (self.x @ matrix - self.mean @ matrix).clip(-LARGEST, LARGEST).astype(np.float32)

    def names(self, channels: Iterable[Any]) -> list[str]:
        """What channels, numbered among those that are looked at, are called in messages."""
        return [self.samples.x.describe_column(int(self.channels[k])) for k in channels]

    def limit(self, freedom: int, places: float = 1.0) -> float:
        """What a chi-squared number of so many degrees of freedom exceeds in none of so many places by chance.

        That is the approximation of Wilson and Hilferty (PNAS 17, 684, 1931).
        """
        spread = 2 / (9 * max(freedom, 1))
        reach = -NormalDist().inv_cdf(FALSE_ALARM * self.share / places)
        return freedom * float(1 - spread + reach * np.sqrt(spread)) ** 3

    def picture(self, rows: Sequence[int], channels: Sequence[str]) -> dict[str, Any]:
        """Where readouts do not fit their inputs: a digit per channel and moment, each worth a factor of 1.26.

        `rows` of the data set and names of `channels` are those that a check found; they are marked.
        """
        e = misfit(self.y, self.turned(self.back))
        marked = [
            k for k, name in enumerate(self.names(range(e.shape[1]))) if name in set(channels)
        ]
        others = [k for k in range(e.shape[1]) if k not in marked]
        kept = [*marked[:PICTURED], *others[:: -(-len(others) // PICTURED) or 1]][:PICTURED]
        moments = np.arange(self.n) * MOMENTS // self.n
        square, times = e[:, sorted(kept)] ** 2, np.unique(moments)
        size = np.sqrt([np.mean(square[moments == one], axis=0) for one in times])
        usual = np.median(size, axis=0) if rows else np.median(size)  # of each channel, or of all
        levels = np.clip(
            3 * np.log2(np.maximum(size, 1e-30) / np.maximum(usual, 1e-30)), 0, 9
        ).astype(int)
        marked_moments = np.unique(moments[np.isin(self.rows, list(rows))])
        return {
            "first": self.first,
            "last": self.first + self.n - 1,
            "channels": self.names(sorted(kept)),
            "levels": ["".join(map(str, line)) for line in levels.T.tolist()],
            "marked": np.searchsorted(times, marked_moments).tolist(),
        }


def stretches(samples: Samples) -> list[tuple[int, Integers]]:
    """Measurements in the order of acquisition, stretch by stretch, or some stretches of very many.

    Each is how many measurements come before it, and their rows.
    """
    n, width = samples.n_samples, samples.x.shape[1]
    order = np.arange(n) if samples.time is None else np.argsort(samples.time, kind="stable")
    near = samples.in_memory and not samples.x.on_device
    count = -(-n // min(LONGEST if near else SHORT, STRETCH_BYTES // (8 * width) + 1))
    kept = 1 if samples.x.on_device else min(count, MOST if near else FEW)
    evenly = np.linspace(0, count - 1, kept).round().astype(int).tolist()
    return [(n * k // count, order[n * k // count : n * (k + 1) // count]) for k in evenly]


def prepared(
    samples: Samples, look: ColumnStatistics, first: int, rows: Integers, share: float
) -> Stretch:
    """One stretch of a data set, made ready for the checks."""
    few = slice(None, None, -(-len(samples.channels) // WIDEST) if samples.x.on_device else 1)
    channels, scale = (
        samples.channels[few],
        np.broadcast_to(samples.scale, samples.channels.shape)[few],
    )
    low, ends = (
        lowest_degrees(samples.basis, FUNCTIONS),
        np.array([look.low, look.high])[:, channels] * scale,
    )
    if samples.time is None:
        u, x = (one.read(first, first + len(rows)) for one in (samples.u, samples.x))
        if samples.x.on_device and len(channels) < x.shape[1]:  # fewer numbers to fetch
            x = take_rows(x.T, to_library_of(channels, x)).T
        u, x = to_numpy(u), to_numpy(x)
    else:
        u, x = samples.u.read_rows(rows), samples.x.read_rows(rows)
    if samples.basis.of_sequences:  # the inputs have more rows, and perhaps a column of slow time
        runs = 1 if samples.runs is None else np.searchsorted(samples.runs, rows, side="right")
        u = samples.u.read_rows(rows + samples.history * runs)[:, : samples.basis.n_inputs]
    x = x if len(channels) == x.shape[1] else x[:, channels]
    x = x if np.all(scale == 1) else x * scale
    each = zip(low.families, u.T, low.indices.max(axis=0).tolist(), strict=True)
    # Products in single precision, made here for these few functions, take a seventh of the time of low.values.
    single = [one.values(one.standard(v), degree + 1).astype(np.float32) for one, v, degree in each]
    factors = [[single[k][index[k]] for k in np.flatnonzero(index)] for index in low.indices[1:]]
    y = (
        np.stack([reduce(np.multiply, one) for one in factors])
        if factors
        else np.empty((0, len(u)), np.float32)
    )
    means = y.mean(axis=1, dtype=float)
    y -= means[:, None].astype(np.float32)
    y /= np.maximum(np.sqrt(np.einsum("ij,ij->i", y, y) / len(x)), 1e-30)[:, None]
    centred = x[: max(DENSE, 8 * x.shape[1])]
    mean = centred.mean(axis=0)
    centred = centred - mean
    gram = centred.T @ centred / len(centred)
    inverse = 1 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    power, vectors = np.linalg.eigh(gram * inverse * inverse[:, None])
    vectors, power = vectors[:, power > ROUNDING], power[power > ROUNDING]
    whitening = inverse[:, None] * vectors / np.sqrt(power)
    centred = np.multiply(
        centred, inverse, out=np.empty(centred.shape, np.float32), casting="same_kind"
    )
    z = (centred @ (vectors / np.sqrt(power)).astype(np.float32)).clip(-LARGE_Z, LARGE_Z)
    own, generator = (y[:, : len(z)] @ z).T / len(z), np.random.default_rng(0)
    clear, some = np.argsort(-np.sum(own**2, axis=0)), generator.permutation(len(x))[:SORTED]
    sums = generator.standard_normal((len(power), min(len(power), max(SUMS, NUMBERS // len(x)))))
    sums[:, ::2] *= np.sqrt(power)[
        :, None
    ]  # of standardised channels, and of whitened ones, where noise is large
    turn = whitening @ np.hstack([sums, own[:, clear[:GUESSED]]])
    shown = (turn.T @ x.T - (mean @ turn)[:, None]).clip(-LARGEST, LARGEST).astype(np.float32)
    rest, guess = _left(shown[: sums.shape[1], :SUMMED], y[:, :SUMMED]), shown[sums.shape[1] :]
    related = (
        means * np.sqrt(len(x)),
        y,
        mean,
        whitening,
        z,
        (vectors * np.sqrt(power)).T,
        own,
        clear,
    )
    # Sorting 256 numbers is five times quicker than 512, and merging two halves is quick, too.
    ordered = np.sort(x[some].T.reshape(-1, len(some) // 2) if len(some) == SORTED else x[some].T)
    ordered = np.sort(ordered.reshape(-1, len(some)), kind="stable")
    where = (samples, len(x), rows, first, channels, share, low, u, x, ends)
    return Stretch(*where, *related, rest, guess, some, ordered)


def _left(x: Floats, y: Floats) -> Floats:
    """What functions `y` leave of rows `x`, both of mean zero, as uncorrelated rows of mean square 1."""
    n = y.shape[1]
    x = x - np.linalg.solve(y @ y.T + 1e-6 * n * np.eye(len(y), dtype=x.dtype), y @ x.T).T @ y
    covariance = (x @ x.T / n).astype(float)
    inverse = 1 / np.sqrt(np.maximum(np.diag(covariance), 1e-30))
    power, vectors = np.linalg.eigh(covariance * inverse * inverse[:, None])
    kept = power > 1e-5  # others are rounding
    return (((vectors[:, kept] / np.sqrt(power[kept])).T * inverse).astype(np.float32) @ x).clip(
        -LARGE_Z, LARGE_Z
    )


def misfit(y: Floats, x: Floats) -> Floats:
    """What functions `y` (functions, n) and a constant leave of columns `x` (n, columns)."""
    y = np.vstack([np.ones(len(x), y.dtype), y])
    return x - y.T @ np.linalg.solve(y @ y.T + 1e-6 * np.eye(len(y), dtype=y.dtype), y @ x)


def numbers(rows: Iterable[Any]) -> str:
    """Numbers of rows in words, cut short."""
    return join_names([str(int(one)) for one in rows], 4)
