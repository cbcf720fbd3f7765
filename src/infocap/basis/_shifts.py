"""How to evaluate functions of delayed inputs: a few patterns, each read earlier and earlier, by copies or by FFT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .._array import array_namespace, as_like, irfft, on_host, rfft, take_rows
from ..typing import Floats, Integers
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

    `steps` are the factors of all patterns, rows (input, delay, function), the first of them the constant; `patterns`
    (patterns, factors) says which steps are multiplied. Functions stand in the order of patterns and then of shifts.
    """

    first: int  # the place of the first function in the basis
    reach: int  # the largest delay
    steps: Integers
    patterns: Integers
    pattern: Integers  # of each function
    shift: Integers

    @property
    def transformed(self) -> bool:
        """Whether so many functions share a pattern that transforms are faster than products."""
        return len(self.shift) >= MANY_SHIFTS * len(self.patterns)

    def values(self, singles: list[Any], part: slice) -> Any:
        """Values of some patterns at all times of the one-dimensional functions `singles`: (patterns, times).

        The first times, which would need inputs before the beginning, are not used by any function.
        """
        patterns = self.patterns[part]
        used, places = np.unique(patterns, return_inverse=True)
        rows = [singles[j][k, :] for j, _, k in self.steps[used].tolist()]
        xp, delays = array_namespace(rows[0]), self.steps[used, 1].tolist()
        table = xp.stack([xp.roll(row, delay) if delay else row for row, delay in zip(rows, delays, strict=True)])
        out: Any = None
        for column in places.reshape(patterns.shape).T:
            factor = take_rows(table, as_like(column, table))
            out = factor if out is None else out * factor
        return out


def shells(factors: Integers, degrees: Integers) -> list[Shell]:
    """The functions (terms, factors, 3), which are sorted by degree, window, pattern and shift, degree by degree."""
    out = []
    edges = [0, *(np.flatnonzero(np.diff(degrees)) + 1).tolist(), len(degrees)]
    for first, stop in pairwise(edges):
        rows = factors[first:stop]
        patterns, shift = as_patterns(rows)
        new = np.append(True, np.any(patterns[1:] != patterns[:-1], axis=(1, 2)))
        kept = patterns[new]
        width = max(int(np.count_nonzero(kept[:, :, 2], axis=1).max()), 1)
        table = np.vstack([np.zeros((1, 3), int), kept[:, :width].reshape(-1, 3)])
        steps, places = np.unique(table, axis=0, return_inverse=True)
        assert not steps[0].any()
        where = places.reshape(-1)[1:].reshape(-1, width)
        reach = int(rows[:, :, 1].max())
        out.append(Shell(first, reach, steps, where, np.cumsum(new) - 1, shift))
    return out


def as_patterns(rows: Integers) -> tuple[Integers, Integers]:
    """Functions (terms, factors, 3) moved so that their smallest delay is 0, and by how much; 0 for the constant."""
    present = rows[:, :, 2] > 0
    far = np.where(present, rows[:, :, 1].astype(int), np.iinfo(np.int32).max).min(axis=1)
    shift = np.where(present.any(axis=1), far, 0)
    return rows - shift[:, None, None] * present[:, :, None] * np.array([0, 1, 0]), shift


class ShiftPlan:
    """Values of functions of delayed inputs, from inputs with `memory` rows of history in front.

    It offers the tiles of `Plan`; beside that it projects, by transforms where many functions share a pattern.
    """

    def __init__(
        self, families: Sequence[Family], factors: Integers, degrees: Integers, memory: int, sizes: Sizes
    ) -> None:
        self.families, self.n_terms, self.memory, self.sizes = families, len(factors), memory, sizes
        self.order = np.arange(len(factors))  # tiles come in the order of the basis
        self.row_of = Places(self.order)
        self.counts = [
            int(np.max(factors[:, :, 2], where=factors[:, :, 0] == k, initial=0)) + 1 for k in range(len(families))
        ]
        self.shells = shells(factors, degrees)

    def _singles(self, u: Any) -> list[Any]:
        """The one-dimensional functions of each input at all times: (functions, times)."""
        columns = [u[:, k] for k in range(len(self.families))]
        ready = [family.standard(column) for family, column in zip(self.families, columns, strict=True)]
        return [family.values(x, count) for family, x, count in zip(self.families, ready, self.counts, strict=True)]

    def tiles(
        self, u: Any, together: bool = False, only: Sequence[Shell] | None = None
    ) -> Iterator[tuple[slice, slice, Any]]:
        """Which functions, which samples, and their values (functions, samples); `together`: always all functions.

        Each tile may be overwritten by the next: use it, do not keep it. With `only`, functions of these shells.
        """
        n, height = u.shape[0] - self.memory, self.n_terms if together else min(self.sizes.functions, self.n_terms)
        at_once = max(min(self.sizes.samples(height), n), 1)
        space = np.empty(height * at_once if on_host(u) else 0)
        for start in range(0, n, at_once):
            samples = slice(start, min(start + at_once, n))
            singles = self._singles(u[start : samples.stop + self.memory, :])
            room = space[: height * (samples.stop - start)].reshape(height, -1) if on_host(u) else None
            parts = []
            for shell in self.shells if only is None else only:
                recent = [one[:, self.memory - shell.reach :] for one in singles]
                for low in range(0, len(shell.shift), height):
                    some = slice(low, min(low + height, len(shell.shift)))
                    rows = slice(shell.first + low, shell.first + some.stop)
                    out = None if room is None else room[rows] if together else room[: some.stop - low]
                    parts.append(_filled(shell, some, recent, out))
                    if not together:
                        yield rows, samples, parts.pop()
            if together:
                yield slice(0, self.n_terms), samples, array_namespace(u).concat(parts) if room is None else room

    def project(self, pieces: Iterable[tuple[Any, Any]]) -> Any:
        """The sums over all samples of y_l z_k: (terms, columns), from pieces of inputs and of columns z."""
        parts: dict[int, Any] = {}
        many = [shell for shell in self.shells if shell.transformed]
        few = [shell for shell in self.shells if not shell.transformed]
        for u, z in pieces:
            found = ((rows.start, y @ z[samples, :]) for rows, samples, y in self.tiles(u, only=few))
            singles = self._singles(u)
            near = ((one, [values[:, self.memory - one.reach :] for values in singles]) for one in many)
            for first, one in chain(found, ((shell.first, correlations(shell, own, z)) for shell, own in near)):
                parts[first] = parts[first] + one if first in parts else one
        return array_namespace(*parts.values()).concat([parts[first] for first in sorted(parts)])


def _filled(shell: Shell, some: slice, singles: list[Any], out: Floats | None) -> Any:
    """Values of some functions of a shell at the times after its reach; in the processor's memory written to `out`."""
    pattern, shift = shell.pattern[some], shell.shift[some]
    first = int(pattern[0])
    values = shell.values(singles, slice(first, int(pattern[-1]) + 1))
    n = values.shape[1] - shell.reach
    if out is None:
        xp = array_namespace(values)
        begin = as_like((pattern - first) * values.shape[1] + shell.reach - shift, values)
        place = begin[:, None] + xp.arange(n, device=values.device)[None, :]
        return xp.reshape(xp.take(xp.reshape(values, (-1,)), xp.reshape(place, (-1,))), place.shape)
    new = np.flatnonzero((np.diff(pattern) != 0) | (np.diff(shift) != 1)) + 1
    for begin, end in pairwise([0, *new.tolist(), len(pattern)]):
        latest = values[int(pattern[begin]) - first, shell.reach - int(shift[begin]) :]
        out[begin:end] = as_strided(latest, (end - begin, n), (-latest.strides[0], latest.strides[0]))
    return out


def correlations(shell: Shell, singles: list[Any], z: Any) -> Any:
    """The sums over samples of z(t) times each function of a shell, all shifts of a pattern at once: (functions, K).

    Overlapping stretches of both are transformed; for every frequency the stretches are added up by one product,
    (patterns, stretches) x (stretches, readouts), and transformed back once. That takes about 4 (1 + D / B) N K P
    multiplications for P patterns, delays up to D and stretches of B samples, whatever the number of shifts.
    """
    xp, (n, width) = array_namespace(z), z.shape
    longest = int(shell.shift.max())
    size = transform_length(longest, n)
    step = size - longest
    count = -(-n // step)  # of stretches, each `longest` samples longer for the patterns

    def blank(*shape: int) -> Any:
        return xp.zeros(shape, dtype=z.dtype, device=z.device)

    stretches = xp.reshape(xp.concat([z, blank(count * step - n, width)]), (count, step, width))
    stretches = xp.concat([blank(longest, count, width), xp.permute_dims(stretches, (1, 0, 2))])
    zf = xp.conj(rfft(stretches))  # (frequencies, stretches, K)
    at_once = max((HOST_NUMBERS if on_host(z) else DEVICE_NUMBERS) // (size * max(width, count)), 1)
    parts = []
    for first in range(0, len(shell.patterns), at_once):
        some = slice(first, min(first + at_once, len(shell.patterns)))
        values = shell.values(singles, some)[:, shell.reach - longest :]
        p = values.shape[0]
        values = xp.concat([values, blank(p, max(count * step + size, 2 * size) - values.shape[1])], axis=1)
        if count == 1:
            windows = values[:, None, :size]
        else:  # stretches are longer than shifts: what follows a stretch begins the next
            one, following = (values[:, begin : begin + count * step] for begin in (0, step))
            following = xp.reshape(following, (p, count, step))[:, :, :longest]
            windows = xp.concat([xp.reshape(one, (p, count, step)), following], axis=2)
        pf = rfft(xp.permute_dims(windows, (2, 0, 1)))  # (frequencies, patterns, stretches)
        back = irfft(xp.matmul(pf, zf), size)  # sums for minus each shift, (shifts, patterns, K)
        here = slice(*np.searchsorted(shell.pattern, [some.start, some.stop]).tolist())
        place = -shell.shift[here] % size * back.shape[1] + shell.pattern[here] - first
        parts.append(take_rows(xp.reshape(back, (-1, width)), as_like(place, back)))
    return xp.concat(parts)


def transform_length(longest: int, n: int) -> int:
    """How long transforms of stretches with shifts up to `longest` should be, for n samples: a product of 2, 3, 5.

    Two and a half times the longest shift is fastest: longer ones take longer to transform back, and shorter ones hold
    more history than samples (benchmarks/sequences.py).
    """
    wanted = max(min(5 * longest // 2, n + longest), longest + 2, SHORTEST)
    return min(m << max((-(-wanted // m) - 1).bit_length(), 1) for m in (8, 9, 10, 12, 15))
