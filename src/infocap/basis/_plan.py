"""How to evaluate all products of a basis with few and large multiplications, on the processor or a device."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from itertools import pairwise
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from .._array import array_namespace, as_like, contiguous, multiplier, on_host, take_rows
from ..typing import Floats, Integers
from ._family import Family
from ._index_sets import sort_rows


class Sizes(NamedTuple):
    """How much to evaluate at a time: numbers, functions and samples per tile."""

    numbers: int
    functions: int
    least_samples: int
    most_samples: int
    call: int  # what one multiplication costs beyond its numbers, in rows of a tile

    def samples(self, functions: int) -> int:
        """How many samples of so many functions make one tile, in multiples of the least number."""
        samples = self.numbers // functions
        return min(max(samples - samples % self.least_samples, self.least_samples), self.most_samples)


# A tile of 6 MB stays in the processor's cache until it is multiplied; 976 functions at 768 samples were among the
# fastest shapes of those timed, for bases of 1287, 3003 and 10626 functions.
HOST = Sizes(numbers=750_000, functions=976, least_samples=64, most_samples=4096, call=2)
# To start a multiplication on a graphics card costs more than thousands of numbers, so tiles take up to 2.3 GB there;
# 8448 functions are a multiple of what the 132 processors of an H200 multiply in one go.
DEVICE = Sizes(numbers=287_500_000, functions=8448, least_samples=64, most_samples=262_144, call=12)
# Numbers of a tile up to which two gathers and one product take less time than one call per run of neighbours.
FEW_NUMBERS = 100_000_000
ROUND = 64  # Matrix products on a graphics card are fastest with a round number of functions.
# Neighbouring products: rows start to stop are one row of a table of factors times neighbouring rows of a table of
# partners: (start, stop, factor, first partner).
Run = tuple[int, int, int, int]


class Chain:
    """Products of a few inputs, sorted like the functions of a basis, each one a parent times one more factor.

    The parent of a function lacks its first input. The children of neighbouring parents are neighbours too, so most
    multiplications run over several functions at once. Parents that were not asked for are computed as well; `place`
    says where each row asked for stands, `numbers[input, function]` which row of the factors a function is.
    """

    def __init__(self, rows: Integers, families: Sequence[Family], numbers: Integers) -> None:
        complete = np.unique(rows, axis=0)
        while len(more := np.unique(np.vstack([complete, _parents(complete)]), axis=0)) > len(complete):
            complete = more
        complete = sort_rows(families, complete)
        position = {row.tobytes(): place for place, row in enumerate(complete)}
        self.place = np.array([position[row.tobytes()] for row in rows])
        self._sent: dict[Any, Any] = {}
        self.factors = [own[column] for own, column in zip(numbers, complete.T, strict=True)]
        first = np.argmax(complete > 0, axis=1)
        parents = np.array([position[row.tobytes()] for row in _parents(complete)])
        self.runs = _runs(np.array(self.factors)[first, np.arange(len(first))], parents)

    def gathered(self, singles: Any) -> Any:
        """The values of all functions, in libraries that cannot write into an array."""
        return reduce(mul, [take_rows(singles, self.sent(k, rows, singles)) for k, rows in enumerate(self.factors)])

    def sent(self, key: Any, rows: Integers, like: Any) -> Any:
        """Row numbers in an array's library and on its device, sent there once: each transfer would be waited for."""
        place = (key, type(like), str(like.device))
        if place not in self._sent:
            self._sent[place] = as_like(rows, like)
        return self._sent[place]


class Plan:
    """A basis as products of functions of the first inputs with functions of the other inputs.

    In the basis's own order neighbouring functions mostly share their function of the first inputs, and their
    functions of the other inputs are neighbours: one multiplication makes them all. Both sides are short chains.
    """

    def __init__(self, families: Sequence[Family], rows: Integers, sizes: Sizes) -> None:
        self.n_terms, self.sizes = len(rows), sizes
        # Inputs of one family are evaluated together: each family, its inputs, and how many functions they need.
        alike: dict[Family, list[int]] = {}
        for k, family in enumerate(families):
            alike.setdefault(family, []).append(k)
        self._alike = [(family, inputs, int(rows[:, inputs].max()) + 1) for family, inputs in alike.items()]
        numbers, start = np.zeros((len(families), int(rows.max()) + 1), dtype=int), 0
        for _, inputs, count in self._alike:
            here = start + np.arange(count * len(inputs))
            numbers[inputs, :count] = here.reshape(count, len(inputs)).T
            start += len(here)
        split = _best_split(rows, sizes.call)
        # With a single input the left side is its constant function alone.
        left = np.ascontiguousarray(rows[:, :split]) if split else np.zeros_like(rows)
        self.left = Chain(left, families[: max(split, 1)], numbers[: max(split, 1)])
        self.right = Chain(np.ascontiguousarray(rows[:, split:]), families[split:], numbers[split:])
        self._batches: dict[int, tuple[int, list[tuple[slice, list[Run]]]]] = {}

    def _singles(self, u: Any) -> Any:
        """The one-dimensional functions of all inputs: (functions, samples)."""
        parts = []
        for family, inputs, count in self._alike:
            some = u.T if len(inputs) == u.shape[1] else take_rows(u.T, as_like(np.array(inputs), u))
            some = np.ascontiguousarray(some) if on_host(some) else contiguous(some)
            values = family.values(family.standard(some), count)
            parts.append(array_namespace(u).reshape(values, (count * len(inputs), -1)))
        return parts[0] if len(parts) == 1 else array_namespace(u).concat(parts, axis=0)

    def tiles(self, u: Any, together: bool = False) -> Iterator[tuple[slice, slice, Any]]:
        """Which functions, which samples, and their values (functions, samples); `together`: always all functions.

        Each tile is overwritten by the next: use it, do not keep it. On a device there may be more rows of values
        than functions; what is in those has no meaning.
        """
        xp, n_samples = array_namespace(u), u.shape[0]
        multiply = np.multiply if xp is np else multiplier(u)
        height = self.n_terms if together else min(self.sizes.functions, self.n_terms)
        most, batches = self._batches.get(height) or self._cut(height)
        at_once = max(min(most, n_samples), 1)
        height = height if on_host(u) else -(-height // ROUND) * ROUND
        edges = np.cumsum([len(self.left.factors[0]), len(self.right.factors[0]), height]).tolist()
        space = _borrow(u, edges[2] * at_once) if multiply else None
        for start in range(0, n_samples, at_once):
            samples = slice(start, min(start + at_once, n_samples))
            n = samples.stop - start
            singles = self._singles(u[samples, :])
            if not on_host(u):  # each call costs as much as thousands of numbers, so few calls
                left, right = self.left.gathered(singles), self.right.gathered(singles)
                for rows, runs in batches:
                    if multiply is None or height * n < FEW_NUMBERS:
                        key = (rows.start, rows.stop)
                        here = self.left.sent(key, self.left.place[rows], u)
                        there = self.right.sent(key, self.right.place[rows], u)
                        yield rows, samples, take_rows(left, here) * take_rows(right, there)
                    else:
                        values = xp.reshape(space[: height * n], (-1, n))  # type: ignore[index]
                        _fill(multiply, runs, left, right, values)
                        yield rows, samples, values
                continue
            table = space[: edges[2] * n].reshape(-1, n)  # type: ignore[index]
            left, right, values = np.split(table, edges[:2])
            for side, out in ((self.left, left), (self.right, right)):
                out[0, :] = 1.0
                _fill(np.multiply, side.runs, singles, out, out)
            for rows, runs in batches:
                _fill(np.multiply, runs, left, right, values)
                yield rows, samples, values[: rows.stop - rows.start]
        if isinstance(space, np.ndarray):
            _SPARE.append(space)

    def _cut(self, most: int) -> tuple[int, list[tuple[slice, list[Run]]]]:
        """How many samples to take, and all functions in batches of neighbours, each with the runs that make it."""
        cuts = [slice(start, min(start + most, self.n_terms)) for start in range(0, self.n_terms, most)]
        batches = [(one, _runs(self.left.place[one], self.right.place[one])) for one in cuts]
        self._batches[most] = self.sizes.samples(most), batches
        return self._batches[most]


def _runs(factor: Integers, partner: Integers) -> list[Run]:
    """Join neighbouring products of one factor with neighbouring partners."""
    new = np.flatnonzero((np.diff(factor) != 0) | (np.diff(partner) != 1)) + 1
    runs = pairwise([0, *new.tolist(), len(factor)])
    return [(start, stop, int(factor[start]), int(partner[start])) for start, stop in runs]


def _fill(multiply: Callable[..., Any], runs: list[Run], factors: Any, partners: Any, out: Any) -> None:
    """Write the products of some runs into out (functions, samples)."""
    for start, stop, factor, partner in runs:
        multiply(partners[partner : partner + stop - start, :], factors[factor, :], out=out[start:stop, :])


def _parents(rows: Integers) -> Integers:
    """Each index without its first input."""
    out = rows.copy()
    np.put_along_axis(out, np.argmax(rows > 0, axis=1)[:, None], 0, axis=1)
    return out


def _best_split(rows: Integers, call: int) -> int:
    """Where to cut the inputs in two: few functions on both sides together, and few runs."""

    def cost(split: int) -> int:
        left, right = rows[:, :split], rows[:, split:]
        runs = np.count_nonzero(np.any(left[1:] != left[:-1], axis=1))
        return len(np.unique(left, axis=0)) + len(np.unique(right, axis=0)) + call * int(runs)

    return min(range(1, rows.shape[1]), key=cost, default=0)


# Fresh memory from the system is slow to touch, so the room for tiles is used again, by up to 16 threads.
_SPARE: deque[Floats] = deque(maxlen=16)


def _borrow(u: Any, size: int) -> Any:
    """Room for so many numbers next to the inputs; in the processor's memory one used before if there is one."""
    if not on_host(u):
        return array_namespace(u).empty((size,), dtype=u.dtype, device=u.device)
    with suppress(IndexError):
        if (space := _SPARE.pop()).size >= size:
            return space
    return np.empty(size)
