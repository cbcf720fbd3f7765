"""A few components in place of many channels, found from the readouts alone.

A spectrum or an image has more channels than there are samples. Any function of the inputs could
then be fitted exactly, so that capacities of all channels cannot be told. Components are
combinations of the channels. They are chosen without a look at the inputs, so that they cannot fit
any function of these, and what they hold the channels hold, too: an estimate from n components is
a lower bound of what all channels hold.

The **principal components** are the directions w of largest variance w'X'Xw, for centred readouts
X (samples, channels). They come from the eigenvectors of the smaller of two matrices: X'X
(channels, channels), or XX' (samples, samples), whose eigenvectors a give w = X'a.

With **repeats**, the difference of two measurements at the same inputs holds noise alone, and tells
its covariance V. The best directions have the largest ratio of signal to noise,

    w' S w / w' V w,    where S is the covariance of what repeats have in common.

They are the principal components of the readouts after these were multiplied by V^(-1/2), because
V^(-1/2) (S + V) V^(-1/2) has the eigenvectors of V^(-1/2) S V^(-1/2). Of K channels and R < K
differences, V is known in the few modes in which noise is strong, where these stand out from what
as many channels of equal noise would show. In all other directions it is taken to be the same.
So V^(-1/2) reduces the strong modes to the level of the others, and leaves the others alone. The
directions are looked for in the means of both measurements, and their capacities are those of the
first measurement, a single shot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy

from .._arrays import to_library_of, to_numpy
from .._files import MAX_MEMORY_FRACTION
from .._files import available_memory as machine_memory
from .._formatting import memory_size
from .._threads import cores_for_matrices
from .._validation import require_whole_number, shown
from ..errors import DataError, ParameterError
from ..samples import (
    PRINCIPAL,
    SIGNAL_OVER_NOISE,
    ColumnStatistics,
    Components,
    Engine,
    Samples,
    Table,
)
from ..typing import Floats

# The number of components that is chosen by itself: one for so many samples, and at least so many.
# More of them describe the noise of these very samples (benchmarks/wide.py).
AUTOMATIC = "auto"
SAMPLES_PER_COMPONENT = 30
MIN_COMPONENTS = 5
# Rows of all channels that are multiplied with all later rows in one pass, in bytes. More of them
# save passes over files.
PANEL_BYTES = 256_000_000
# A panel's part of the memory that a user allows.
MEMORY_FRACTION_OF_PANEL = 1 / 4
# Square matrices that are in memory at a time: the products, and two for their eigenvectors.
N_SQUARE_MATRICES = 3
# Variance relative to the largest below which products of rows have too few digits left.
MIN_RELATIVE_VARIANCE = 1e-10
# Repeated samples for each mode of the noise that may be reduced. With more modes the noise of
# these very samples would be removed, and not that of the device.
REPEATS_PER_NOISE_MODE = 10
# Variance of a mode, relative to the largest that equal independent noise would show by chance,
# from which the mode is strong.
MIN_RATIO_OF_STRONG_MODE = 2.0


def number_of_components(n_components: int | str, n_samples: int) -> int:
    """Return how many components are asked for, or how many suit the number of samples.

    >>> number_of_components(16, 480), number_of_components("auto", 480)
    (16, 16)
    """
    if n_components == AUTOMATIC:
        return max(MIN_COMPONENTS, n_samples // SAMPLES_PER_COMPONENT)
    if isinstance(n_components, str | bool):
        raise ParameterError(
            f"`n_components={shown(n_components)}` must be a whole number, or 'auto' for one "
            f"component for each {SAMPLES_PER_COMPONENT} samples."
        )
    return require_whole_number("n_components", n_components, 1)


def find_components(
    samples: Samples, engine: Engine, statistics: ColumnStatistics, n_components: int
) -> Samples:
    """Return the samples with components in place of the channels.

    With repeats these are the directions of signal over noise, otherwise the principal components.
    There are fewer of them where fewer channels are independent.

    Parameters
    ----------
    samples
        The samples, prepared (`Samples.choose_preparation`). Channels keep their units, because
        those of a spectrum or an image have the same one, and a channel that hardly moves holds
        noise alone.
    engine
        Goes through the rows.
    statistics
        Of all channels, from `scan_columns`.
    n_components
        The number of components.
    """
    _refuse_large_matrices(samples, engine)
    preparation = _Preparation(_mean_of_prepared(samples, statistics))
    kind = PRINCIPAL
    looked_at = samples
    if samples.repeats is not None:
        kind = SIGNAL_OVER_NOISE
        preparation = replace(preparation, noise_modes=_strong_noise_modes(samples, engine))
        looked_at = replace(samples, x=_table_of(_Means(samples.x, samples.repeats)))
    directions = _leading_directions(looked_at, engine, preparation, n_components).directions
    project = partial(_project_share, preparation=preparation, directions=directions)
    scores = np.concatenate(engine.fold(samples, project))
    components = Components(samples.x.shape[1], scores.shape[1], kind)
    return samples.with_components(scores, components)


def _refuse_large_matrices(samples: Samples, engine: Engine) -> None:
    """Refuse square matrices of the smaller of both numbers that do not fit into memory."""
    size = min(samples.n_samples, len(samples.channels))
    n_bytes = 8.0 * N_SQUARE_MATRICES * size**2
    if engine.memory_limit is None:
        limit = MAX_MEMORY_FRACTION * machine_memory()
    else:
        limit = float(engine.memory_limit)
    if n_bytes > limit:
        raise ParameterError(
            f"`n_components` of {len(samples.channels)} channels and {samples.n_samples} samples "
            f"takes {memory_size(n_bytes)} of memory, and {memory_size(limit)} are allowed; "
            "average neighbouring channels first, or allow that much memory."
        )


def _mean_of_prepared(samples: Samples, statistics: ColumnStatistics) -> Floats:
    """Return the means of prepared readouts, (channels,); zero without the constant readout.

    Without it, centring would change the space that the readouts span.
    """
    if not samples.constant:
        return np.zeros(len(samples.channels))
    mean_deviation = statistics.epoch_sums.sum(axis=0) / samples.n_samples
    means: Floats = samples.scale * mean_deviation[samples.channels]
    return means


@dataclass(frozen=True, eq=False)
class _NoiseModes:
    """Orthonormal modes in which the noise is strong, and what is taken off each of them."""

    modes: Floats  # (channels, modes)
    removed_share: Floats  # of the amplitude along each mode, (modes,)

    def reduced(self, rows: Any) -> Any:
        """Return rows of readouts with the modes at the level of all other noise."""
        modes = to_library_of(self.modes, rows)
        removed = (rows @ modes) * to_library_of(self.removed_share, rows)
        return rows - removed @ modes.T


@dataclass(frozen=True, eq=False)
class _Preparation:
    """What is done to rows of prepared readouts before their products are taken."""

    mean: Floats | float  # (channels,)
    noise_modes: _NoiseModes | None = None

    def read(self, samples: Samples, start: int, stop: int) -> Any:
        """Return the rows `start` to `stop`, (rows, channels)."""
        rows = samples.prepare(samples.x.read(start, stop), self.mean)
        if self.noise_modes is None:
            return rows
        return self.noise_modes.reduced(rows)


@dataclass(frozen=True, eq=False)
class _Leading:
    """The directions of largest variance, orthonormal, and the variances."""

    directions: Floats  # (channels, directions)
    sums_of_squares: Floats  # of the rows along each of them, the largest first, (directions,)
    total: float  # sum of squares of all rows in all directions


def _leading_directions(
    samples: Samples, engine: Engine, preparation: _Preparation, n_directions: int
) -> _Leading:
    """Return the directions in which the rows have the largest sums of squares.

    The largest entry of each is positive, so that signs do not depend on how rows were read.
    """
    if len(samples.channels) < samples.n_samples:
        products = engine.fold(samples, partial(_products_of_channels, preparation=preparation))
        sums_of_squares, directions = _leading_eigenvectors(products, n_directions)
    else:
        products = _products_of_rows(samples, engine, preparation)
        sums_of_squares, combinations = _leading_eigenvectors(products, n_directions)
        combinations = combinations / np.sqrt(sums_of_squares)
        combine = partial(_combine_rows, preparation=preparation, combinations=combinations)
        directions = engine.fold(samples, combine)
    largest = np.argmax(np.abs(directions), axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    return _Leading(directions * signs, sums_of_squares, float(np.trace(products)))


def _leading_eigenvectors(products: Floats, n_vectors: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues, the largest first, and their eigenvectors in columns.

    There are fewer where the others are rounding.
    """
    size = len(products)
    first = max(size - n_vectors, 0)
    with cores_for_matrices(size):
        values, vectors = scipy.linalg.eigh(products, subset_by_index=[first, size - 1])
    values = values[::-1]
    vectors = vectors[:, ::-1]
    is_kept = values > MIN_RELATIVE_VARIANCE * values[0]
    return values[is_kept], vectors[:, is_kept]


def _products_of_rows(samples: Samples, engine: Engine, preparation: _Preparation) -> Floats:
    """Return the products of all rows with each other, (samples, samples).

    A panel of rows is kept in memory and multiplied with all later rows, then the next panel.
    """
    n_samples = samples.n_samples
    panel_bytes = PANEL_BYTES
    if engine.memory_limit is not None:
        panel_bytes = min(panel_bytes, int(MEMORY_FRACTION_OF_PANEL * engine.memory_limit))
    panel_rows = max(panel_bytes // (8 * len(samples.channels)), 1)
    products = np.empty((n_samples, n_samples))
    for start in range(0, n_samples, panel_rows):
        stop = min(start + panel_rows, n_samples)
        panel = _read_panel(samples, start, stop, engine=engine, preparation=preparation)
        multiply = partial(_multiply_share, panel=panel, preparation=preparation)
        (blocks,) = engine.fold(samples, multiply, edges=[start, n_samples])
        of_panel = np.concatenate(blocks, axis=1)
        products[start:stop, start:] = of_panel
        products[start:, start:stop] = of_panel.T
    return products


def _read_panel(
    samples: Samples, start: int, stop: int, *, engine: Engine, preparation: _Preparation
) -> Any:
    """Return prepared rows, which are read a share at a time to take no more memory than theirs."""
    if samples.x.on_device:
        return preparation.read(samples, start, stop)
    panel = np.empty((stop - start, len(samples.channels)))
    n_rows = engine.share_rows or stop - start
    for first in range(start, stop, n_rows):
        last = min(first + n_rows, stop)
        panel[first - start : last - start] = preparation.read(samples, first, last)
    return panel


def _multiply_share(
    samples: Samples, start: int, stop: int, *, panel: Any, preparation: _Preparation
) -> list[Floats]:
    """Return the products of a panel with some rows, as a list of one array."""
    return [to_numpy(panel @ preparation.read(samples, start, stop).T)]


def _products_of_channels(
    samples: Samples, start: int, stop: int, *, preparation: _Preparation
) -> Floats:
    """Return the products of all channels with each other over some rows."""
    rows = preparation.read(samples, start, stop)
    return to_numpy(rows.T @ rows)


def _combine_rows(
    samples: Samples, start: int, stop: int, *, preparation: _Preparation, combinations: Floats
) -> Floats:
    """Return some rows times their part in each combination, (channels, combinations)."""
    rows = preparation.read(samples, start, stop)
    of_rows = combinations[samples.first_row + start : samples.first_row + stop]
    return to_numpy(rows.T @ to_library_of(of_rows, rows))


def _project_share(
    samples: Samples, start: int, stop: int, *, preparation: _Preparation, directions: Floats
) -> list[Floats]:
    """Return some rows along the directions, as a list of one array."""
    rows = preparation.read(samples, start, stop)
    return [to_numpy(rows @ to_library_of(directions, rows))]


# What repeats tell.


def _strong_noise_modes(samples: Samples, engine: Engine) -> _NoiseModes | None:
    """Return the modes in which differences of repeats are strong; None where there are none."""
    assert samples.repeats is not None
    n_repeated = engine.fold(replace(samples, x=samples.repeats), _count_complete_rows)
    if not n_repeated:
        raise DataError(
            "repeats has a NaN or infinite value in every row; at least some must be repeated."
        )
    n_channels = len(samples.channels)
    max_modes = min(n_repeated // REPEATS_PER_NOISE_MODE, n_channels - 1)
    if not max_modes:
        return None
    differences = replace(
        samples,
        x=_table_of(_HalfDifferences(samples.x, samples.repeats)),
        shift=np.zeros(n_channels),
    )
    if engine.fold(differences, _is_zero, min):
        return None  # two measurements without noise
    leading = _leading_directions(differences, engine, _Preparation(0.0), max_modes)
    variances = leading.sums_of_squares / n_repeated

    # What the modes leave of the noise is spread over all other directions, of which it shows only
    # as many as there are repeated samples (Marchenko and Pastur, Math. USSR Sb. 1, 457, 1967).
    left = np.maximum(leading.total / n_repeated - np.cumsum(variances), 0.0)
    level = left / (n_channels - 1 - np.arange(len(variances)))
    largest_by_chance = level * (1 + np.sqrt(n_channels / n_repeated)) ** 2
    is_strong = variances > MIN_RATIO_OF_STRONG_MODE * largest_by_chance
    if not is_strong.any():
        return None
    n_strong = int(np.flatnonzero(is_strong)[-1]) + 1
    amplitude_left = np.sqrt(level[n_strong - 1] / variances[:n_strong])
    return _NoiseModes(leading.directions[:, :n_strong], 1 - amplitude_left)


def _count_complete_rows(samples: Samples, start: int, stop: int) -> int:
    """Return how many of some rows have no missing value."""
    rows = samples.x.read(start, stop, on_host=True)
    return int(np.isfinite(rows).all(axis=1).sum())


def _is_zero(samples: Samples, start: int, stop: int) -> bool:
    """Return whether some rows hold nothing but zeros."""
    return not samples.x.read(start, stop, on_host=True).any()


class _PairedRows:
    """Rows made of two measurements at the same inputs, read when they are needed."""

    def __init__(self, first: Table, second: Table) -> None:
        self.first = first
        self.second = second
        self.shape = first.shape

    def read(self, rows: slice) -> tuple[Floats, Floats]:
        """Return the first measurement, and half its difference from the second.

        The difference is zero where there is no second measurement.
        """
        start, stop, _ = rows.indices(self.shape[0])
        first = self.first.read(start, stop, on_host=True)
        second = self.second.read(start, stop, on_host=True)
        is_repeated = np.isfinite(second).all(axis=1, keepdims=True)
        difference = np.where(is_repeated, first - np.where(is_repeated, second, 0.0), 0.0)
        return first, difference / 2


class _HalfDifferences(_PairedRows):
    """Half the difference of both measurements: as much noise as their mean has."""

    def __getitem__(self, rows: slice) -> Floats:
        return self.read(rows)[1]


class _Means(_PairedRows):
    """The mean of both measurements."""

    def __getitem__(self, rows: slice) -> Floats:
        first, half_difference = self.read(rows)
        return first - half_difference


def _table_of(rows: _PairedRows) -> Table:
    return Table(rows, rows.first.name)
