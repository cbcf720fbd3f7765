"""How to evaluate functions of delayed inputs: a few patterns, each read earlier and earlier, by copies or by FFT."""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import mul
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.lib.stride_tricks import sliding_window_view

from .._arrays import array_namespace, as_like, on_host, take_rows, transforms
from ..typing import Integers
from ._family import Family
from ._plan import Places, Sizes

# Functions per pattern from which one transform of all its shifts takes less time than a product for each of them.
MANY_SHIFTS = 8
# Numbers that a transform of some patterns with all readouts makes at a time: in the processor's cache, or on a device
# few and large steps.
HOST_NUMBERS, DEVICE_NUMBERS = 1_000_000, 250_000_000
# The shortest transform: shorter ones are calls more than arithmetic.
SHORTEST = 256
# Rows whose readouts are transformed together; fewer would be transformed back more often than they are multiplied.
ROWS = 16_384


class Shell(NamedTuple):
    """All functions of one degree, each a pattern (its delays counted from the smallest) and a shift.

    `patterns` (patterns, factors) holds for each factor its input, delay and function, as one number that
    ``np.unravel_index(number, shape)`` takes apart. Functions stand in the order of patterns and then of shifts.
    """

    first: int  # the place of the first function in the basis
    reach: int  # the largest delay
    shape: tuple[int, ...]
    patterns: Integers
    pattern: Integers  # of each function
    shift: Integers

    @property
    def transformed(self) -> bool:
        """Whether so many functions share a pattern that transforms are faster than products."""
        return len(self.shift) >= MANY_SHIFTS * len(self.patterns)

    def pattern_values(self, singles: list[Any], n: int, part: slice) -> Any:
        """Values of some patterns at the last n times of the one-dimensional functions `singles` and `reach` before.

        The first times, which would need inputs before the beginning, are not used by any function.
        """
        used, places = np.unique(self.patterns[part], return_inverse=True)
        factors = np.transpose(np.unravel_index(used, self.shape)).tolist()
        rows = [singles[j][k, singles[j].shape[1] - n - self.reach :] for j, _, k in factors]
        xp = array_namespace(rows[0])
        table = xp.stack(
            [xp.roll(row, delay) for row, (_, delay, _) in zip(rows, factors, strict=True)]
        )
        columns = places.reshape(-1, self.patterns.shape[1]).T
        return reduce(mul, (take_rows(table, as_like(column, table)) for column in columns))

    def values(self, singles: list[Any], n: int, some: slice) -> Any:
        """Values of some functions at the last n times of the one-dimensional functions: (functions, n)."""
        first, last = self.pattern[some][[0, -1]].tolist()
        pattern, begin = self.pattern[some] - first, self.reach - self.shift[some]
        values = self.pattern_values(singles, n, slice(first, last + 1))
        if on_host(values):
            return sliding_window_view(values, n, axis=1)[pattern, begin]
        xp = array_namespace(values)
        begin = as_like(pattern * values.shape[1] + begin, values)
        place = begin[:, None] + xp.arange(n, device=values.device)[None, :]
        return xp.reshape(xp.take(xp.reshape(values, (-1,)), xp.reshape(place, (-1,))), place.shape)


def shells(factors: Integers, degrees: Integers) -> Iterator[Shell]:
    """The functions (terms, factors, 3), which are sorted by degree, window, pattern and shift, degree by degree."""
    shape = tuple((factors.reshape(-1, 3).max(axis=0) + 1).tolist())
    for first, stop in pairwise(
        [0, *(np.flatnonzero(np.diff(degrees)) + 1).tolist(), len(degrees)]
    ):
        rows, shift = as_patterns(factors[first:stop])
        new = np.append(True, np.any(rows[1:] != rows[:-1], axis=(1, 2)))
        width = max(int(np.count_nonzero(rows[:, :, 2], axis=1).max()), 1)
        patterns = np.ravel_multi_index(tuple(rows[new, :width].transpose(2, 0, 1)), shape)
        yield Shell(
            first, int(factors[first:stop, :, 1].max()), shape, patterns, np.cumsum(new) - 1, shift
        )


def as_patterns(rows: Integers) -> tuple[Integers, Integers]:
    """Functions (terms, factors, 3) moved so that their smallest delay is 0, and by how much; 0 for the constant."""
    present = rows[:, :, 2] > 0
    far = np.where(present, rows[:, :, 1].astype(int), np.iinfo(np.int32).max).min(axis=1)
    shift = np.where(present.any(axis=1), far, 0)
    return rows - shift[:, None, None] * present[:, :, None] * np.array([0, 1, 0]), shift


class ShiftPlan:
    """Values of functions of delayed inputs, from inputs with `memory` rows of history in front.

    It offers the tiles of `Plan`; beside that products with readouts, by transforms where many functions share a
    pattern.
    """

    def __init__(
        self,
        families: Sequence[Family],
        factors: Integers,
        degrees: Integers,
        memory: int,
        sizes: Sizes,
    ) -> None:
        self.families, self.n_terms, self.memory, self.sizes = families, len(factors), memory, sizes
        self.order = np.arange(len(factors))  # tiles come in the order of the basis
        self.row_of = Places(self.order)
        of_input = (factors[:, :, 0] == k for k in range(len(families)))
        self.counts = [int(np.max(factors[:, :, 2], where=own, initial=0)) + 1 for own in of_input]
        self.shells = list(shells(factors, degrees))

    def _singles(self, u: Any) -> list[Any]:
        """The one-dimensional functions of each input at all times: (functions, times)."""
        pairs = enumerate(zip(self.families, self.counts, strict=True))
        return [family.values(family.standard(u[:, k]), count) for k, (family, count) in pairs]

    def tiles(
        self, u: Any, only: Sequence[Shell] | None = None
    ) -> Iterator[tuple[slice, slice, Any]]:
        """Which functions, which samples, and their values (functions, samples); with `only`, of these shells."""
        n, height = u.shape[0] - self.memory, min(self.sizes.functions, self.n_terms)
        at_once = max(min(self.sizes.samples(height), n), 1)
        for start, stop in pairwise([*range(0, n, at_once), n]):
            singles = self._singles(u[start : stop + self.memory, :])
            for shell in self.shells if only is None else only:
                for low, high in pairwise([*range(0, len(shell.shift), height), len(shell.shift)]):
                    values = shell.values(singles, stop - start, slice(low, high))
                    yield slice(shell.first + low, shell.first + high), slice(start, stop), values

    def products(self, u: Any, z: Any) -> Iterator[tuple[int, Any]]:
        """The sums over samples of y_l z_k of some neighbouring functions, and the place of the first of them."""
        few = [shell for shell in self.shells if not shell.transformed]
        for rows, samples, y in self.tiles(u, few):
            yield rows.start, y @ z[samples, :]
        singles = self._singles(u)
        for shell in self.shells:
            if shell.transformed:
                yield shell.first, correlations(shell, singles, z)


def correlations(shell: Shell, singles: list[Any], z: Any) -> Any:
    """The sums over samples of z(t) times each function of a shell, all shifts of a pattern at once: (functions, K).

    Overlapping stretches of both are transformed; for every frequency the stretches are added up by one product,
    (patterns, stretches) x (stretches, readouts), and transformed back once. That takes about 4 (1 + D / B) N K P
    multiplications for P patterns, delays up to D and stretches of B samples, whatever the number of shifts.
    """
    xp, fourier, (n, width) = array_namespace(z), transforms(z), z.shape
    longest = int(shell.shift.max())
    # Two and a half times the longest shift is fastest: longer stretches take longer to transform back, and shorter
    # ones hold more history than samples (benchmarks/sequences.py). Even lengths are faster on a device.
    wanted = max(min(5 * longest // 2, n + longest), longest + 2, SHORTEST)
    size = 8 * scipy.fft.next_fast_len(-(-wanted // 8), real=True)
    step = size - longest
    count = -(-n // step)  # of stretches, each `longest` samples longer for the patterns

    def blank(*shape: int) -> Any:
        return xp.zeros(shape, dtype=z.dtype, device=z.device)

    stretches = xp.reshape(xp.concat([z, blank(count * step - n, width)]), (count, step, width))
    stretches = xp.concat([blank(longest, count, width), xp.permute_dims(stretches, (1, 0, 2))])
    zf = xp.conj(fourier.rfft(stretches, axis=0))  # (frequencies, stretches, K)
    at_once = max((HOST_NUMBERS if on_host(z) else DEVICE_NUMBERS) // (size * max(width, count)), 1)
    parts = []
    for first in range(0, len(shell.patterns), at_once):
        some = slice(first, min(first + at_once, len(shell.patterns)))
        values = shell.pattern_values(singles, n, some)[:, shell.reach - longest :]
        values = xp.concat([values, blank(values.shape[0], count * step - n)], axis=1)
        windows = xp.stack(
            [values[:, begin : begin + size] for begin in range(0, count * step, step)], axis=1
        )
        pf = fourier.rfft(
            xp.permute_dims(windows, (2, 0, 1)), axis=0
        )  # (frequencies, patterns, stretches)
        back = fourier.irfft(
            xp.matmul(pf, zf), n=size, axis=0
        )  # sums for minus each shift, (shifts, patterns, K)
        here = slice(*np.searchsorted(shell.pattern, [some.start, some.stop]).tolist())
        place = -shell.shift[here] % size * back.shape[1] + shell.pattern[here] - first
        parts.append(take_rows(xp.reshape(back, (-1, width)), as_like(place, back)))
    return xp.concat(parts)
