"""How to evaluate functions of delayed inputs: a few patterns, each read earlier and earlier.

A function such as p1(u[t-7]) p2(u[t-9]) is the pattern p1(u[t]) p2(u[t-2]), whose smallest delay is
0, read 7 steps earlier. A basis of thousands of functions has only some dozens of patterns, so
values are made per pattern, (patterns, samples + longest shift), and a function is a row of them
from a later or earlier start.

Sums over all samples of functions times readouts z are correlations of the patterns with the
readouts, one per shift:

    sum_t pattern(t - shift) z(t)        (functions, readouts)

Where a pattern has few shifts, each is a product of matrices. Where it has many, all shifts
together are computed by fast Fourier transforms of overlapping segments of the sequence
(overlap-save).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import ceil
from operator import mul
from typing import Any

import numpy as np
import scipy
from numpy.lib.stride_tricks import sliding_window_view

from .._arrays import array_namespace, fourier_module, is_on_host, take_rows, to_library_of
from ..typing import Floats, Integers
from ._evaluate import RowNumbers, Tile, TileSizes, slices
from ._family import Family

# Functions per pattern from which one transform of all its shifts takes less time than a product
# for each of them.
MIN_SHIFTS_FOR_FFT = 8
# Numbers that a transform of some patterns with all readouts makes at a time: on the processor so
# many as stay in cache, on a device few and large steps.
HOST_FFT_NUMBERS = 1_000_000
DEVICE_FFT_NUMBERS = 250_000_000
# Samples of the shortest transform: the time of shorter ones goes into calls rather than
# arithmetic.
MIN_FFT_SIZE = 256
# Rows whose readouts are transformed together. With fewer, transforming back would take longer than
# multiplying.
ROWS_PER_PIECE = 16_384


# The numbers of a factor, along the last axis of functions (terms, factors, 3).
INPUT = 0  # the number of the input, from 0 on
DELAY = 1
FUNCTION = 2  # the number of the function of that input; 0 stands for no factor


@dataclass(frozen=True, eq=False)
class ShiftedPatterns:
    """All functions of one degree, each a pattern and a shift.

    They stand in the order of patterns and then of shifts.

    A factor of a pattern is an input, a delay counted from the smallest of the pattern, and the
    number of a function. These three are kept as one number, which ``np.unravel_index(number,
    factor_shape)`` takes apart.
    """

    place: int  # of the first function in the basis
    max_delay: int
    factor_shape: tuple[int, ...]  # numbers of inputs, delays, and functions of an input
    patterns: Integers  # the factors of each pattern as numbers, (patterns, factors)
    pattern_of: Integers  # of each function
    shift_of: Integers  # of each function

    def __len__(self) -> int:
        return len(self.shift_of)

    @property
    def has_many_shifts(self) -> bool:
        """Whether so many functions share a pattern that transforms are faster than products."""
        return len(self) >= MIN_SHIFTS_FOR_FFT * len(self.patterns)

    def pattern_values(self, one_dimensional: list[Any], n_samples: int, chosen: slice) -> Any:
        """Return the values of the chosen patterns, (patterns, max_delay + n_samples).

        They are taken at the last `n_samples` times of the one-dimensional functions of each input,
        and at `max_delay` times before. The first times, which would need inputs before the
        beginning, are wrong, and no function uses them.
        """
        distinct, place = np.unique(self.patterns[chosen], return_inverse=True)
        inputs, delays, functions = np.unravel_index(distinct, self.factor_shape)
        rows = []
        for number, delay, function in zip(
            inputs.tolist(), delays.tolist(), functions.tolist(), strict=True
        ):
            values = one_dimensional[number]
            start = values.shape[1] - n_samples - self.max_delay
            row = values[function, start:]
            rows.append(array_namespace(row).roll(row, delay))
        table = array_namespace(*rows).stack(rows)
        factor_columns = place.reshape(-1, self.patterns.shape[1]).T
        factors = (take_rows(table, to_library_of(column, table)) for column in factor_columns)
        return reduce(mul, factors)

    def values(self, one_dimensional: list[Any], n_samples: int, chosen: slice) -> Any:
        """Return the values of the chosen functions at the last `n_samples` times.

        They have the shape (functions, samples).
        """
        pattern_of = self.pattern_of[chosen]
        first_pattern = int(pattern_of[0])
        last_pattern = int(pattern_of[-1])
        patterns = slice(first_pattern, last_pattern + 1)
        values = self.pattern_values(one_dimensional, n_samples, patterns)
        row = pattern_of - first_pattern
        start = self.max_delay - self.shift_of[chosen]
        if is_on_host(values):
            return sliding_window_view(values, n_samples, axis=1)[row, start]
        xp = array_namespace(values)
        # In the flattened values, each function is a range of places.
        first_place = to_library_of(row * values.shape[1] + start, values)
        places = first_place[:, None] + xp.arange(n_samples, device=values.device)[None, :]
        flat_values = xp.reshape(values, (-1,))
        flat_places = xp.reshape(places, (-1,))
        return xp.reshape(xp.take(flat_values, flat_places), places.shape)


def group_by_degree(factors: Integers, degrees: Integers) -> Iterator[ShiftedPatterns]:
    """Yield the functions (terms, factors, 3) of each degree.

    They must be sorted by degree, window, pattern and shift.
    """
    largest = factors.reshape(-1, 3).max(axis=0)  # input, delay and function
    factor_shape = tuple((largest + 1).tolist())
    degree_starts = np.flatnonzero(np.diff(degrees)) + 1
    for first, stop in pairwise([0, *degree_starts.tolist(), len(degrees)]):
        of_degree = factors[first:stop]
        rows, shifts = as_patterns(of_degree)
        differs_from_previous = np.any(rows[1:] != rows[:-1], axis=(1, 2))
        is_new = np.append(True, differs_from_previous)
        factor_counts = np.count_nonzero(rows[:, :, FUNCTION], axis=1)
        n_factors = max(int(factor_counts.max()), 1)
        inputs, delays, functions = rows[is_new, :n_factors].transpose(2, 0, 1)
        yield ShiftedPatterns(
            place=first,
            max_delay=int(of_degree[:, :, DELAY].max()),
            factor_shape=factor_shape,
            patterns=np.ravel_multi_index((inputs, delays, functions), factor_shape),
            pattern_of=np.cumsum(is_new) - 1,
            shift_of=shifts,
        )


def as_patterns(rows: Integers) -> tuple[Integers, Integers]:
    """Return functions (terms, factors, 3) with smallest delay 0, and how far each was moved."""
    present = rows[:, :, FUNCTION] > 0
    delays = rows[:, :, DELAY].astype(int)
    smallest_delay = np.where(present, delays, np.iinfo(np.int32).max).min(axis=1)
    shifts = np.where(present.any(axis=1), smallest_delay, 0)  # the constant has no factors
    patterns = rows.astype(int)
    patterns[:, :, DELAY] -= shifts[:, None] * present
    return patterns, shifts


class ShiftEvaluator:
    """Values of functions of delayed inputs, from inputs with `memory` rows of history in front.

    It offers the tiles of `ProductEvaluator`, and products with readouts besides.
    """

    def __init__(
        self,
        families: Sequence[Family],
        factors: Integers,
        *,
        degrees: Integers,
        memory: int,
        sizes: TileSizes,
    ) -> None:
        self.families = families
        self.n_terms = len(factors)
        self.memory = memory
        self.sizes = sizes
        self.order = np.arange(len(factors))  # tiles come in the order of the basis
        self.row_of = RowNumbers(self.order)
        self._counts = []  # how many functions of each input are needed
        for number in range(len(families)):
            of_input = factors[:, :, INPUT] == number
            highest_index = np.max(factors[:, :, FUNCTION], where=of_input, initial=0)
            self._counts.append(int(highest_index) + 1)
        self._patterns_by_degree = list(group_by_degree(factors, degrees))

    def tiles(self, u: Any) -> Iterator[Tile]:
        """Yield the values of all functions, tile by tile."""
        yield from self._tiles_of(u, self._patterns_by_degree)

    def _tiles_of(self, u: Any, groups: Sequence[ShiftedPatterns]) -> Iterator[Tile]:
        """Yield the tiles of some degrees."""
        n_samples = u.shape[0] - self.memory
        height = min(self.sizes.max_functions, self.n_terms)
        chunk = max(min(self.sizes.samples(height), n_samples), 1)
        for samples in slices(n_samples, chunk):
            with_history = slice(samples.start, samples.stop + self.memory)
            one_dimensional = self._one_dimensional(u[with_history, :])
            n_samples_of_chunk = samples.stop - samples.start
            for group in groups:
                for chosen in slices(len(group), height):
                    values = group.values(one_dimensional, n_samples_of_chunk, chosen)
                    functions = slice(group.place + chosen.start, group.place + chosen.stop)
                    yield Tile(functions, samples, values)

    def products(self, u: Any, z: Any) -> Iterator[tuple[int, Any]]:
        """Yield the sums over samples of y_l z_k: the first function's place, (functions, columns).

        Some functions come several times, because their sums are those of a part of the samples.
        """
        few_shifts = [group for group in self._patterns_by_degree if not group.has_many_shifts]
        for tile in self._tiles_of(u, few_shifts):
            yield tile.functions.start, tile.values @ z[tile.samples, :]
        one_dimensional = self._one_dimensional(u)
        for group in self._patterns_by_degree:
            if group.has_many_shifts:
                yield group.place, correlations(group, one_dimensional, z)

    def _one_dimensional(self, u: Any) -> list[Any]:
        """Return the one-dimensional functions of each input at all times: (functions, times)."""
        tables = []
        for number, (family, count) in enumerate(zip(self.families, self._counts, strict=True)):
            tables.append(family.values(family.standard(u[:, number]), count))
        return tables


def correlations(group: ShiftedPatterns, one_dimensional: list[Any], z: Any) -> Any:
    """Return the sums over samples of each function of a degree times z: (functions, readouts).

    The sequence is cut into segments of B samples. Each segment of a pattern has the samples of
    the longest shift D in front of it, each segment of the readouts zeros. For every frequency the
    segments are added up by one product, (patterns, segments) x (segments, readouts), and
    transformed back once, which gives all shifts. That takes about 4 (1 + D / B) N K P
    multiplications for N samples, K readouts and P patterns, whatever the number of shifts.
    """
    xp = array_namespace(z)
    fourier = fourier_module(z)
    n_samples, n_readouts = z.shape
    longest_shift = int(group.shift_of.max())
    size = _fft_size(n_samples, longest_shift)
    step = size - longest_shift  # B
    n_segments = ceil(n_samples / step)

    z_frequencies = xp.conj(fourier.rfft(_readout_segments(z, longest_shift, step), axis=0))
    max_numbers = HOST_FFT_NUMBERS if is_on_host(z) else DEVICE_FFT_NUMBERS
    n_patterns = max(max_numbers // (size * max(n_readouts, n_segments)), 1)
    sums = []
    for patterns in slices(len(group.patterns), n_patterns):
        values = group.pattern_values(one_dimensional, n_samples, patterns)
        values = values[:, group.max_delay - longest_shift :]
        segments = _pattern_segments(values, n_segments, step, size)
        frequencies = fourier.rfft(segments, axis=0)
        products = xp.matmul(frequencies, z_frequencies)  # (frequencies, patterns, readouts)
        by_shift = fourier.irfft(products, n=size, axis=0)  # (minus the shift, patterns, readouts)

        first, stop = np.searchsorted(group.pattern_of, [patterns.start, patterns.stop]).tolist()
        minus_shift = -group.shift_of[first:stop] % size
        pattern = group.pattern_of[first:stop] - patterns.start
        place = minus_shift * by_shift.shape[1] + pattern
        by_place = xp.reshape(by_shift, (-1, n_readouts))
        sums.append(take_rows(by_place, to_library_of(place, by_place)))
    return xp.concat(sums)


def _fft_size(n_samples: int, longest_shift: int) -> int:
    """Return the length of the transforms.

    Two and a half times the longest shift is fastest: longer segments take longer to transform
    back, and shorter ones hold more history than samples (benchmarks/sequences.py). Multiples of 8
    are faster on a device.
    """
    fastest_size = min(5 * longest_shift // 2, n_samples + longest_shift)
    min_size = max(fastest_size, longest_shift + 2, MIN_FFT_SIZE)
    return int(8 * scipy.fft.next_fast_len(ceil(min_size / 8), real=True))


def _readout_segments(z: Any, longest_shift: int, step: int) -> Any:
    """Return the readouts in segments, each behind zeros.

    The shape is (longest_shift + step, segments, readouts).
    """
    xp = array_namespace(z)
    n_samples, n_readouts = z.shape
    n_segments = ceil(n_samples / step)
    filled = xp.concat([z, _zeros(z, n_segments * step - n_samples, n_readouts)])
    segments = xp.reshape(filled, (n_segments, step, n_readouts))
    segments = xp.permute_dims(segments, (1, 0, 2))
    return xp.concat([_zeros(z, longest_shift, n_segments, n_readouts), segments])


def _pattern_segments(values: Any, n_segments: int, step: int, size: int) -> Any:
    """Return values (patterns, samples) in overlapping segments: (size, patterns, segments)."""
    xp = array_namespace(values)
    n_needed = (n_segments - 1) * step + size
    filled = xp.concat(
        [values, _zeros(values, values.shape[0], n_needed - values.shape[1])], axis=1
    )
    segments = []
    for number in range(n_segments):
        start = number * step
        segments.append(filled[:, start : start + size])
    return xp.permute_dims(xp.stack(segments, axis=1), (2, 0, 1))


def _zeros(like: Any, *shape: int) -> Floats:
    """Return zeros in the library, on the device and in the precision of an array."""
    return array_namespace(like).zeros(shape, dtype=like.dtype, device=like.device)
