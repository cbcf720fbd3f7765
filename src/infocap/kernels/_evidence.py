"""What the data say about the capacities, before any estimator has its say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._array import array_namespace, as_like, on_host, to_numpy
from ..typing import Floats
from ._bounds import zero_capacity_bound
from ._summary import Span, Summary, coordinates, span, squares
from ._walk import Walk, WalkJob, in_order

SHUFFLE_BYTES = 64_000_000  # of shuffled readouts that share one evaluation of the basis
LEVERAGE_ROWS = 512  # whitened at a time, so that they stay in cache


@dataclass(frozen=True, eq=False)
class Evidence:
    """Summaries of the whole and of its two ordered halves, and the way back to the data.

    Estimators are functions of this. What needs another pass over the data is computed when first asked for.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=2)
    >>> def mine(evidence):
    ...     print(evidence.n_samples, evidence.n_readouts, evidence.rank, evidence.raw.shape)
    ...     return evidence.extrapolated.clip(0, 1)
    >>> infocap.probe(lambda u: u, basis, 64, seed=1, method=mine).capacity.round(2)
    64 2 2 (3,)
    array([1., 1., 0.])
    """

    walk: Walk
    whole: Summary
    halves: tuple[Summary, Summary]

    @property
    def n_samples(self) -> int:
        """Number of samples, N."""
        return self.whole.n_samples

    @property
    def n_readouts(self) -> int:
        """Number of readouts with the constant, K, which is the maximum capacity."""
        return self.walk.n_readouts

    @property
    def rank(self) -> int:
        """Number of linearly independent readouts, the constant included."""
        return self.space.rank

    @property
    def fourth_moments(self) -> Floats:
        """E[y^4] of every target, exactly."""
        return self.walk.basis.fourth_moments

    @cached_property
    def space(self) -> Span:
        """The space the readouts span."""
        return span(self.whole)

    @cached_property
    def coordinates(self) -> Any:
        """The targets in an orthonormal frame of that space, (rank, terms)."""
        return coordinates(self.whole, self.space)

    @cached_property
    def half_coordinates(self) -> tuple[Any, Any]:
        """The same from the first half of the samples alone, and from the second."""
        first, second = (
            coordinates(half, space) for half, space in zip(self.halves, self.half_spaces, strict=True)
        )
        return first, second

    @cached_property
    def half_spaces(self) -> tuple[Span, Span]:
        """The spaces that the readouts span in the first half and in the second."""
        return span(self.halves[0]), span(self.halves[1])

    @cached_property
    def raw(self) -> Floats:
        """C_N of every target, with the exact E[y²] = 1."""
        return squares(self.coordinates)

    @cached_property
    def raw_half(self) -> Floats:
        """The mean of C_{N/2} over the two ordered halves."""
        first, second = (squares(part) for part in self.half_coordinates)
        return (first + second) / 2

    @property
    def extrapolated(self) -> Floats:
        """Richardson's 2 C_N - C_{N/2}; the part of the bias that falls as 1/N is gone."""
        return 2 * self.raw - self.raw_half

    def whitened(self, start: int, stop: int, walk: Walk | None = None) -> Floats:
        """Readouts X~ of the rows start to stop, with sample covariance 1, without the constant.

        `walk` is another one over some of the samples, such as `Walk.slabs` gives, whose rows are then meant.
        """
        walk = walk or self.walk
        z = self.whiten(walk.x.read_on_host(start, stop))
        return z if walk.root_weights is None else z * walk.root_weights[start:stop, None]

    def whiten(self, block: Any) -> Any:
        """Rows of the table of readouts, turned into X~: (samples, rank), without the constant."""
        whitening = self._whitening if on_host(block) else self._whitening_there
        return _whitened(self.walk, block, self.space.mean, whitening)

    def framed(self, start: int, stop: int, walk: Walk | None = None) -> Floats:
        """The same with the constant readout first, where there is one: (samples, rank)."""
        z = self.whitened(start, stop, walk)
        if not self.walk.constant:
            return z
        root = (walk or self.walk).root_weights
        return np.column_stack([np.ones(len(z)) if root is None else root[start:stop], z])

    def all_framed(self) -> Floats:
        """Those of all samples, in memory."""
        blocks = [
            self.framed(*piece, part)
            for part in self.walk.slabs()
            for piece in part.pieces(0, part.n_samples)
        ]
        return np.vstack(blocks)

    @cached_property
    def _whitening(self) -> Floats:
        return self.space.whitening * np.sqrt(self.n_samples)

    @cached_property
    def _whitening_there(self) -> Any:
        """The same on the device of the readouts, which are read as double precision."""
        return as_like(self._whitening, self.walk.x.read(0, 1))

    @cached_property
    def leverage(self) -> Floats:
        """sum_i X~_i² of every sample, the constant included; its mean is the rank."""
        return in_order(self._sum(Leverages))

    @cached_property
    def leverage_power(self) -> float:
        """S_N, the mean of leverage² (paper, eq. SN)."""
        return float(self._sum(LeveragePower)) / self.n_samples

    def _sum(self, job: type[LeverageJob]) -> Any:
        """What a job on whitened readouts adds up over all samples."""
        whitening = self._whitening_there if self.walk.x.on_device else self._whitening
        whole = job(self.walk, self.space.mean, whitening)
        middle = self.n_samples // 2
        first, second = self.walk.passes.fold(whole, (0, middle, self.n_samples))
        return whole.merge(first, second)

    @cached_property
    def zero_capacity_bound(self) -> Floats:
        """sqrt(S_N E[y^4]) / N of every target (paper, Prop. 5.3)."""
        return zero_capacity_bound(self.fourth_moments, self.leverage_power, self.n_samples)

    @cached_property
    def leverage_bound(self) -> Floats:
        """mean(leverage y²) / N, the expected C_N of a target whose capacity is zero, read off the data."""
        return self._sum(LeverageSquares) / self.n_samples**2

    @cached_property
    def target_power(self) -> Floats:
        """The sample mean of y² of every target; 1 in expectation."""
        (total,) = self.walk.square_sums(0, self.n_samples)
        return total / self.n_samples

    def shuffled(self, count: int, seed: int | None) -> Iterator[Floats]:
        """C_N of every target after the samples of the readouts are put in random order, `count` times."""
        generator = np.random.default_rng(seed)
        rows = self.all_framed()
        at_once = min(max(SHUFFLE_BYTES // rows.nbytes, 1), 8)
        for begin in range(0, count, at_once):
            orders = [generator.permutation(self.n_samples) for _ in range(min(at_once, count - begin))]
            mixed = np.hstack([rows[order] for order in orders])
            projection = np.zeros((mixed.shape[1], len(self.walk.basis)))
            for y, among in self.walk.all_targets():
                projection += mixed[among].T @ y.T
            squares = (projection[:, self.walk.basis.row_of] / self.n_samples) ** 2
            yield from squares.reshape(len(orders), rows.shape[1], -1).sum(axis=1)


def _whitened(walk: Walk, block: Any, mean: Floats, whitening: Any) -> Any:
    return walk.shifted(block, less=mean) @ whitening


@dataclass(frozen=True, eq=False)
class LeverageJob(WalkJob):
    """Something to add up that needs the leverage of every sample."""

    mean: Floats
    whitening: Any

    def leverage(self, rows: tuple[int, int]) -> Floats:
        """sum_i X~_i² of some samples, the constant included."""
        leverage = self._leverage(self.walk.x.read(*rows)) + self.walk.constant
        weights = self.walk.weights(*rows)
        return leverage if weights is None else leverage * weights

    def _leverage(self, block: Any) -> Floats:
        if not on_host(block):
            z = _whitened(self.walk, block, self.mean, self.whitening)
            return to_numpy(array_namespace(block).sum(z**2, axis=1))
        parts = []
        for start in range(0, len(block), LEVERAGE_ROWS):
            z = _whitened(self.walk, block[start : start + LEVERAGE_ROWS], self.mean, self.whitening)
            parts.append(np.einsum("ij,ij->i", z, z))
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Leverages(LeverageJob):
    """The leverages themselves, in a list of first rows and arrays."""

    first: int = 0

    def part(self, start: int, stop: int) -> Leverages:
        """The job for these rows alone; it remembers where they are."""
        return replace(super().part(start, stop), first=self.first + start)

    def run(self, rows: tuple[int, int]) -> list[tuple[int, Floats]]:
        """Those of one block."""
        return [(self.first + rows[0], self.leverage(rows))]


class LeveragePower(LeverageJob):
    """The sum of leverage²."""

    def run(self, rows: tuple[int, int]) -> float:
        """That of one block."""
        return float(np.sum(self.leverage(rows) ** 2))


class LeverageSquares(LeverageJob):
    """The sum of leverage times y² of every target, (terms,)."""

    def run(self, rows: tuple[int, int]) -> Floats:
        """That of one block."""
        leverage, weights = self.leverage(rows), self.walk.weights(*rows)
        leverage = leverage if weights is None else leverage * weights
        return self.walk.basis.sum_over(self.walk.u.read(*rows), leverage, power=2)


def gather(walk: Walk) -> Evidence:
    """One pass over the data: both ordered halves, and the whole from them."""
    middle = walk.n_samples // 2
    first, second, whole = walk.summaries_and_whole(0, middle, walk.n_samples)
    evidence = Evidence(walk, whole, (first, second))
    if walk.x.on_device:  # while it computes, the processor does what it will have to do anyway
        _ = evidence.space, evidence.half_spaces
    return evidence
