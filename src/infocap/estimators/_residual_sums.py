"""The second pass over one range of rows: the residuals of the fit, and sums of products with them.

The symbols are those of `_second_pass`: z are whitened readouts, f is what the fit predicts of
them, e = z - f the residual, phi are the controls, y the reported functions, W their weights of z.

z have the sample covariance 1. G, estimated better, is near 1 but not 1. |e|², |f|² and e·f are in
the metric G^-1 (after multiplying by G^-1/2). e·W, f·W and z·W are plain sums: W already contains
G^-1. |z|⁴ needs no metric.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .._arrays import (
    array_namespace,
    is_on_device,
    multiply_function,
    multiply_tall,
    subtract_into,
    take_rows,
    to_library_of,
)
from ..basis import ProductBasis
from ..kernels import AddableSums, rows_at
from ..samples import Samples
from ..typing import Integers
from ._fit import MIN_SAMPLE_MARGIN, NO_FIT, Fit, HalfFit, Metric, Piece, iterate_pieces

# Least margin 1 - leverage, relative to its mean, by which a residual is divided: a few corner
# points of the inputs would dominate every sum otherwise.
MIN_RELATIVE_MARGIN = 0.25
# The same for error bars, which must not be too short: with the margin above, those of nearly
# noise-free devices held in 80 % instead of 95 %.
MIN_RELATIVE_MARGIN_FOR_ERRORS = 0.02
# Numbers in one tile of functions and samples. A tile stays in the cache, and takes less than
# 128 KB; larger arrays are requested from the operating system each time, which doubled the time
# of the pass in Dask's workers.
NUMBERS_PER_TILE = 16_000
# Functions of a tile at least, so that a tile is still multiplied at full speed.
MIN_FUNCTIONS_PER_TILE = 8
# In place of a group's number, for sums over the samples of all groups.
ALL_GROUPS = -1


@dataclass(frozen=True, eq=False)
class ResidualSums(AddableSums):
    """Sums over the samples of one group.

    A sample has the whitened readouts z, of which the fit predicts f; the residual is e = z - f.

    The bias is N² times that of a capacity. Functions that are not controls have W = 0, so they
    need no more than a y², where a stands for |e|² (see `_sum_rows`).
    """

    count: int
    phi_e: Any  # phi e', (controls, rank)
    y_e: Any  # y e', (functions of `SecondPassJob.basis`, rank); empty without that basis
    # Half of the sum of z z' - f f' = z e' + e z' - e e': it and its transpose add up to that sum,
    # (rank, rank).
    half_gram: Any
    bias: Any  # |e rho - f (e·W)|² of the reported controls, (reported controls,)
    bias_without_weights: Any  # a y² of the functions of the job's basis, (terms,)
    influence: Any  # first, second and fourth powers of the influence, (3, reported controls)
    # |z|⁴, |e|⁴, |e|⁸; by how much |e|² and the influence on the sum of all capacities are larger
    # with the margins for error bars; this influence with the usual margins, and its square: (7,)
    powers: Any


@dataclass(frozen=True, eq=False)
class SquareSums(AddableSums):
    """Sums of products of residuals over the samples of all groups, (rank, rank) each."""

    e_e: Any  # e e'
    f2_e_e: Any  # |f|² e e'


@dataclass(frozen=True, eq=False)
class SecondPassJob:
    """The arguments of `residual_sums` apart from the rows.

    They are one object, which other processes can receive.
    """

    fit: Fit
    positions: Integers  # among the controls, of the reported functions that are controls
    weights_of_z: Any  # W of these, (reported controls, rank)
    # Of the controls that are in any pass, which add up to the total: their numbers, their W,
    # (controls in a pass, rank), and a matrix whose product with its transpose is W'W, (rank,
    # columns).
    positions_of_total: Integers
    weights_of_total: Any
    root_of_total_weights: Any
    # The constant, with which every basis begins, and all reported functions. None if all of these
    # are controls, because the values of controls are computed anyway.
    basis: ProductBasis | None
    metric: Metric  # G^-1 of the first estimate
    # Rows where groups begin, half of the groups in each half of the samples. Where the samples
    # have random groups, these are the running totals of their sizes.
    group_edges: Integers


@dataclass(frozen=True, eq=False)
class _Values:
    """Values of functions and readouts at some rows."""

    phi: Any  # all controls, (controls, rows)
    y: Any  # functions of the job's basis, (terms, rows); empty without that basis
    z: Any  # whitened readouts, (rows, rank)

    def slice_rows(self, start: int, stop: int) -> _Values:
        """Return the rows `start` to `stop` of these."""
        return _Values(
            phi=self.phi[:, start:stop], y=self.y[:, start:stop], z=self.z[start:stop, :]
        )

    def take_rows(self, rows: Any) -> _Values:
        """Return some of these rows, given by their numbers."""
        return _Values(
            phi=take_rows(self.phi.T, rows).T,
            y=take_rows(self.y.T, rows).T,
            z=take_rows(self.z, rows),
        )


@dataclass(frozen=True, eq=False)
class _ResidualRows:
    """Some rows of one group: values of functions, readouts and residuals."""

    phi: Any  # all controls, (controls, rows)
    reported_controls: Any  # those that are reported, (reported controls, rows)
    y: Any  # functions of the job's basis, (terms, rows); empty without that basis
    z: Any  # whitened readouts, (rows, rank)
    e: Any  # residuals in a fit without each row, (rows, rank)
    e_for_errors: Any  # the same with smaller margins, for error bars; mostly the same array
    raw: Any  # residuals in the fit of all rows, (rows, rank)

    def slice_rows(self, start: int, stop: int) -> _ResidualRows:
        """Return the rows `start` to `stop` of these."""
        e = self.e[start:stop, :]
        differs = self.e_for_errors is not self.e
        return _ResidualRows(
            phi=self.phi[:, start:stop],
            reported_controls=self.reported_controls[:, start:stop],
            y=self.y[:, start:stop],
            z=self.z[start:stop, :],
            e=e,
            e_for_errors=self.e_for_errors[start:stop, :] if differs else e,
            raw=self.raw[start:stop, :],
        )


def residual_sums(
    samples: Samples, start: int, stop: int, *, job: SecondPassJob, **whitener: Any
) -> dict[int, Any]:
    """Return the `ResidualSums` of some rows, by the number of their group.

    Their `SquareSums` are under the number `ALL_GROUPS`.
    """
    sums = dict[int, Any]()
    edges = job.group_edges - samples.first_row
    middle = len(edges) // 2
    controls = job.fit.controls
    # The values of all controls and of the reported ones are two arrays of the size of phi, and
    # rows in the order of random groups another one. Those of the job's basis may be larger.
    n_arrays = 2 if samples.group_of_row is None else 3
    if job.basis is not None:
        n_arrays = max(n_arrays, len(job.basis) // len(controls))
    for piece in iterate_pieces(samples, start, stop, controls, n_arrays=n_arrays, **whitener):
        values, cuts = _by_group(_values_of(piece, samples, job), piece.first, samples, edges)
        for half, groups in zip(job.fit.halves, (cuts[: middle + 1], cuts[middle:]), strict=True):
            first_row = groups[0]
            last_row = groups[-1]
            if first_row == last_row:
                continue
            rows = _residuals_of(values.slice_rows(first_row, last_row), half, job)
            first_group = 0 if half is job.fit.halves[0] else middle
            for group, (begin, end) in enumerate(pairwise(groups), first_group):
                if begin == end:
                    continue
                rows_of_group = rows.slice_rows(begin - first_row, end - first_row)
                of_group, of_all = _sum_rows(rows_of_group, job, samples.n_total)
                for number, sums_of_rows in ((group, of_group), (ALL_GROUPS, of_all)):
                    if number in sums:
                        sums[number] = sums[number].absorb(sums_of_rows)
                    else:
                        sums[number] = sums_of_rows
    return sums


def _values_of(piece: Piece, samples: Samples, job: SecondPassJob) -> _Values:
    """Return the values of a piece, those of the job's basis included."""
    if job.basis is None:
        y = piece.phi[:0, :]
    else:
        y = samples.apply_weights(job.basis.values(piece.inputs).T, piece.first).T
    return _Values(phi=piece.phi, y=y, z=piece.z)


def _by_group(
    values: _Values, first: int, samples: Samples, edges: Integers
) -> tuple[_Values, list[int]]:
    """Return rows in the order of their groups, and where each group begins and the last ends."""
    n_rows = values.z.shape[0]
    if samples.group_of_row is None:
        return values, np.clip(edges - first, 0, n_rows).tolist()
    group_of_row = samples.group_of_row[first : first + n_rows]
    order = np.argsort(group_of_row, kind="stable")
    cuts = np.searchsorted(group_of_row[order], np.arange(len(edges)))
    return values.take_rows(to_library_of(order, values.z)), cuts.tolist()


def _residuals_of(values: _Values, half: HalfFit, job: SecondPassJob) -> _ResidualRows:
    """Return rows of one half with the residual of each row in a fit without that row."""
    phi = values.phi
    z = values.z
    xp = array_namespace(z)
    residual = subtract_into(z, phi.T @ half.coefficients)
    # By what the part of a residual along the directions of each fit is divided.
    margins = {}
    margins_for_errors = {}
    is_clipped = False
    for number in half.used_numbers:
        if number == NO_FIT:
            margins[number] = margins_for_errors[number] = xp.ones_like(z[:, 0])
            continue
        candidate = job.fit.candidates[number]
        margin = candidate.fit.margin(phi)
        min_margin = MIN_RELATIVE_MARGIN * candidate.mean_margin
        min_margin_for_errors = MIN_RELATIVE_MARGIN_FOR_ERRORS * candidate.mean_margin
        margins[number] = xp.clip(margin, min_margin, None)
        margins_for_errors[number] = xp.clip(margin, min_margin_for_errors, None)
        is_clipped = is_clipped or bool(xp.any(margin < min_margin))
    e = half.scale(residual, {number: 1 / margin for number, margin in margins.items()})
    e_for_errors = e
    if is_clipped:
        e_for_errors = half.scale(
            residual, {number: 1 / margin for number, margin in margins_for_errors.items()}
        )

    return _ResidualRows(
        phi=phi,
        reported_controls=rows_at(phi, job.positions),
        y=values.y,
        z=z,
        e=e,
        e_for_errors=e_for_errors,
        raw=residual,
    )


def _sum_rows(
    rows: _ResidualRows, job: SecondPassJob, n_total: int
) -> tuple[ResidualSums, SquareSums]:
    """Return the sums over a few rows of one group."""
    z = rows.z
    e = rows.e
    f = z - e  # what the fit predicts of z
    xp = array_namespace(z)
    # Components along the directions in which G differs from 1.
    e_along = e @ job.metric.directions
    f_along = z @ job.metric.directions - e_along
    weighted_e_along = e_along * job.metric.weights
    e_power = xp.vecdot(e, e) - xp.vecdot(weighted_e_along, e_along)
    e_dot_f = xp.vecdot(e, f) - xp.vecdot(weighted_e_along, f_along)
    f_power = xp.vecdot(f, f) - xp.vecdot(f_along * job.metric.weights, f_along)
    z_power = xp.vecdot(z, z)
    e_power_for_errors = e_power
    if rows.e_for_errors is not e:
        e_power_for_errors = job.metric.power(rows.e_for_errors)
    self_product = job.metric.product(e, weighted_e_along, rows.raw)
    influence, change_of_influence = _influence_on_total(rows, job, self_product, n_total)
    powers = [
        z_power**2,
        e_power**2,
        e_power**4,
        e_power_for_errors - e_power,
        change_of_influence,
        influence,
        influence**2,
    ]

    # W comes from all samples, this one included, so rho = y - z·W is too small, as a residual of
    # least squares is: with W of the other samples it would be rho / (1 - h), with h = |e|²/N, and
    # the mean of rho² is 1 - h times that of the noise. So |e|² rho² is divided by 1 - h once.
    a = e_power / xp.clip(1 - e_power / n_total, MIN_SAMPLE_MARGIN, None)
    bias, influence = _sum_controls(rows, job.weights_of_z, a, e_dot_f, f_power)
    # The memory of f serves for z - e/2 = (z + f) / 2, and then for |f| e.
    f += z
    f *= 0.5
    half_gram = f.T @ e
    e_times_f_norm = _scaled_into(e, xp.sqrt(f_power)[:, None], f)
    sums = ResidualSums(
        count=z.shape[0],
        phi_e=multiply_tall(rows.phi, e),
        y_e=multiply_tall(rows.y, e),
        half_gram=half_gram,
        bias=bias,
        bias_without_weights=_sum_squares(rows.y, a),
        influence=influence,
        powers=xp.stack([xp.sum(power) for power in powers]),
    )
    return sums, SquareSums(e_e=e.T @ e, f2_e_e=e_times_f_norm.T @ e_times_f_norm)


def _scaled_into(rows: Any, factors: Any, out: Any) -> Any:
    """Return rows times factors, in the memory of `out` where the library can do that."""
    multiply = multiply_function(rows)
    return rows * factors if multiply is None else multiply(rows, factors, out=out)


def _sum_squares(y: Any, a: Any) -> Any:
    """Return the sum of a y² of every function."""
    sums = [y[tile, :] ** 2 @ a for tile in _tiles_of_functions(y)]
    return array_namespace(y).concat(sums)


def _sum_controls(
    rows: _ResidualRows, weights_of_z: Any, a: Any, e_dot_f: Any, f_power: Any
) -> tuple[Any, Any]:
    """Return the bias of the reported controls, and sums of powers of the influence.

    The bias is the sum of |e rho - f (e·W)|², (reported controls,), with a in place of |e|², and
    rho = y - z·W is what the readouts leave of the function y. The influence (e·W)(2 rho + e·W) has
    the shape (3, reported controls).
    """
    xp = array_namespace(rows.z)
    differs = rows.e_for_errors is not rows.e
    biases = []
    influences = []
    for tile in _tiles_of_functions(rows.reported_controls):
        tile_weights = weights_of_z[tile, :]
        rho = rows.reported_controls[tile, :] - tile_weights @ rows.z.T
        e_w = tile_weights @ rows.e.T
        rho_e_w = rho * e_w
        e_w_2 = e_w * e_w
        biases.append((rho * rho) @ a - 2 * (rho_e_w @ e_dot_f) + e_w_2 @ f_power)
        if differs:
            e_w = tile_weights @ rows.e_for_errors.T
            rho_e_w = rho * e_w
            e_w_2 = e_w * e_w
        influence = 2 * rho_e_w + e_w_2
        square = influence * influence
        first = xp.sum(influence, axis=1)
        second = xp.sum(square, axis=1)
        fourth = xp.vecdot(square, square)
        influences.append(xp.stack([first, second, fourth]))
    return xp.concat(biases), xp.concat(influences, axis=1)


def _influence_on_total(
    rows: _ResidualRows, job: SecondPassJob, self_product: Any, n_total: int
) -> tuple[Any, Any]:
    """Return the influence of rows on the sum of all capacities, and its change by smaller margins.

    The sum of (e·W)(2 rho + e·W) over all functions is 2 e·q + e M e', with q = sum of rho W and
    M = W'W. Functions that are not controls have W = 0.

    W comes from all samples, this one included, whose part of it is y e'/N for the residual e in
    the fit of all samples. In one capacity this is little, but it adds up over the functions, to
    |e|² times the sum of rho y / N, and does not average out. So it is subtracted; `self_product`
    is this |e|², the product of both residuals e.
    """
    xp = array_namespace(rows.z)
    y = rows_at(rows.phi, job.positions_of_total)
    y_w = y.T @ job.weights_of_total
    # Products with M are those with its root.
    z_root = rows.z @ job.root_of_total_weights
    rho_y = xp.sum(y * y, axis=0) - xp.vecdot(y_w, rows.z)

    def influence_of(e: Any) -> Any:
        e_root = e @ job.root_of_total_weights
        return 2 * xp.vecdot(y_w, e) + xp.vecdot(e_root - 2 * z_root, e_root)

    with_margin = influence_of(rows.e)
    with_smaller_margin = with_margin
    if rows.e_for_errors is not rows.e:
        with_smaller_margin = influence_of(rows.e_for_errors)
    self_influence = 2 * self_product * rho_y / n_total
    return with_margin - self_influence, with_smaller_margin - with_margin


def _tiles_of_functions(values: Any) -> Iterator[slice]:
    """Cut values (functions, rows) into tiles that stay in cache; a device takes all at once.

    There is one tile, an empty one, where there are no functions.
    """
    n_functions, n_rows = values.shape
    if is_on_device(values):
        step = max(n_functions, 1)
    else:
        step = max(NUMBERS_PER_TILE // n_rows, MIN_FUNCTIONS_PER_TILE)
    for first in range(0, max(n_functions, 1), step):
        yield slice(first, min(first + step, n_functions))
