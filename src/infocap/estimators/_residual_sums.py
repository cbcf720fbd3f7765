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
    multiply_tall,
    take_rows,
    to_library_of,
)
from ..basis import ProductBasis
from ..kernels import AddableSums, rows_at
from ..samples import Samples
from ..typing import Integers
from ._fit import MIN_SAMPLE_MARGIN, NO_FIT, Fit, HalfFit, Piece, iterate_pieces

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


@dataclass(frozen=True, eq=False)
class ResidualSums(AddableSums):
    """Sums over the samples of one group.

    A sample has the whitened readouts z, of which the fit predicts f; the residual is e = z - f.

    N² times the bias of a capacity is a polynomial in W: `bias_constant` - 2 `bias_linear` +
    W `bias_quadratic` W'. In its coefficients a = |e|² / (1 - h) with h = |e|²/N stands for |e|²
    (see `_sum_rows`). Functions that are not controls have W = 0, so they need only the first of
    these coefficients.
    """

    count: int
    phi_e: Any  # phi e', (controls, rank)
    y_e: Any  # y e', (functions of `SecondPassJob.basis`, rank); empty without that basis
    gram: Any  # z z' - f f' = z e' + e z' - e e', (rank, rank)
    e_e: Any  # e e', (rank, rank)
    # |f|² w w' with w = G^-1/2 e, (rank, rank). All others are not whitened.
    f2_white_e_e: Any
    bias_constant: Any  # a y², of the same functions as `y_e`; without, of the reported controls
    bias_linear: Any  # y (a z + (e·f) e)·W, (reported controls,)
    bias_quadratic: Any  # z (a z + 2 (e·f) e)' + |f|² e e', (rank, rank)
    influence: Any  # first, second and fourth powers of the influence, (3, reported controls)
    # |z|⁴, |e|⁴, |e|⁸; by how much |e|² and the influence on the sum of all capacities are larger
    # with the margins for error bars; this influence with the usual margins, and its square: (7,)
    powers: Any


@dataclass(frozen=True, eq=False)
class SecondPassJob:
    """The arguments of `residual_sums` apart from the rows.

    They are one object, which other processes can receive.
    """

    fit: Fit
    positions: Integers  # among the controls, of the reported functions that are controls
    weights_of_z: Any  # W of these, (reported controls, rank)
    # W of all controls, zero for those that are in no pass, (controls, rank), and W'W.
    total_weights: Any
    is_reported: Any  # 1 for the controls that are in a pass, 0 for others, (controls,)
    total_weights_gram: Any
    # The constant, with which every basis begins, and all reported functions. None if all of these
    # are controls, because the values of controls are computed anyway.
    basis: ProductBasis | None
    whitening: Any  # G^-1/2 of the first estimate, (rank, rank)
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
    e_for_errors: Any  # the same with smaller margins, for error bars
    raw: Any  # residuals in the fit of all rows, (rows, rank)

    def slice_rows(self, start: int, stop: int) -> _ResidualRows:
        """Return the rows `start` to `stop` of these."""
        return _ResidualRows(
            phi=self.phi[:, start:stop],
            reported_controls=self.reported_controls[:, start:stop],
            y=self.y[:, start:stop],
            z=self.z[start:stop, :],
            e=self.e[start:stop, :],
            e_for_errors=self.e_for_errors[start:stop, :],
            raw=self.raw[start:stop, :],
        )


def residual_sums(
    samples: Samples, start: int, stop: int, *, job: SecondPassJob, **whitener: Any
) -> dict[int, ResidualSums]:
    """Return the sums over some rows, by the number of their group."""
    sums = dict[int, ResidualSums]()
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
                sums_of_rows = _sum_rows(rows_of_group, job, samples.n_total)
                if group in sums:
                    sums_of_rows = sums[group].absorb(sums_of_rows)
                sums[group] = sums_of_rows
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
    residual = z - phi.T @ half.coefficients
    e = residual @ half.projections[NO_FIT]
    e_for_errors = e
    for number in sorted(half.projections.keys() - {NO_FIT}):
        candidate = job.fit.candidates[number]
        residual_of_candidate = residual @ half.projections[number]
        margin = candidate.fit.margin(phi)[:, None]
        min_margin = MIN_RELATIVE_MARGIN * candidate.mean_margin
        min_margin_for_errors = MIN_RELATIVE_MARGIN_FOR_ERRORS * candidate.mean_margin
        e = e + residual_of_candidate / xp.clip(margin, min_margin, None)
        e_for_errors = e_for_errors + residual_of_candidate / xp.clip(
            margin, min_margin_for_errors, None
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


def _sum_rows(rows: _ResidualRows, job: SecondPassJob, n_total: int) -> ResidualSums:
    """Return the sums over a few rows of one group."""
    z = rows.z
    e = rows.e
    f = z - e  # what the fit predicts of z
    xp = array_namespace(z)
    white_e = e @ job.whitening
    white_f = f @ job.whitening
    white_e_for_errors = rows.e_for_errors @ job.whitening
    e_power = xp.vecdot(white_e, white_e)
    e_dot_f = xp.vecdot(white_e, white_f)
    f_power = xp.vecdot(white_f, white_f)
    z_power = xp.vecdot(z, z)
    e_power_for_errors = xp.vecdot(white_e_for_errors, white_e_for_errors)
    influence, change_of_influence = _influence_on_total(rows, job, n_total)
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
    e_times_e_dot_f = e_dot_f[:, None] * e
    # The vector a z + (e·f) e of each row: its product with y and W gives `bias_linear`.
    linear_vector = a[:, None] * z + e_times_e_dot_f
    z_e = z.T @ e
    e_e = e.T @ e
    return ResidualSums(
        count=z.shape[0],
        phi_e=multiply_tall(rows.phi, e),
        y_e=multiply_tall(rows.y, e),
        gram=z_e + z_e.T - e_e,
        e_e=e_e,
        f2_white_e_e=(white_e * f_power[:, None]).T @ white_e,
        bias_constant=_sum_bias_constant(rows, a),
        bias_linear=xp.vecdot(
            multiply_tall(rows.reported_controls, linear_vector), job.weights_of_z
        ),
        bias_quadratic=z.T @ (linear_vector + e_times_e_dot_f) + (f_power[:, None] * e).T @ e,
        influence=_sum_influence(rows, job.weights_of_z),
        powers=xp.stack([xp.sum(power) for power in powers]),
    )


def _sum_bias_constant(rows: _ResidualRows, a: Any) -> Any:
    """Return the sum of a y² of every function of the job's basis, or of the reported controls."""
    y = rows.y if rows.y.shape[0] else rows.reported_controls
    sums = [y[tile, :] ** 2 @ a for tile in _tiles_of_functions(y)]
    return array_namespace(y).concat(sums)


def _sum_influence(rows: _ResidualRows, weights_of_z: Any) -> Any:
    """Return the sums of powers of the influence (e·W)(2 rho + e·W): (3, reported controls).

    Here rho = y - z·W is what the readouts leave of the function y.
    """
    xp = array_namespace(rows.z)
    # 2 rho + e·W = 2 (y + (e/2 - z)·W); the 2 goes to the other factor.
    twice_e = 2 * rows.e_for_errors.T
    half_e_minus_z = (rows.e_for_errors / 2 - rows.z).T
    sums = []
    for tile in _tiles_of_functions(rows.reported_controls):
        tile_weights = weights_of_z[tile, :]
        influence = tile_weights @ half_e_minus_z + rows.reported_controls[tile, :]
        influence *= tile_weights @ twice_e
        square = influence * influence
        first = xp.sum(influence, axis=1)
        second = xp.sum(square, axis=1)
        fourth = xp.vecdot(square, square)
        sums.append(xp.stack([first, second, fourth]))
    return xp.concat(sums, axis=1)


def _influence_on_total(rows: _ResidualRows, job: SecondPassJob, n_total: int) -> tuple[Any, Any]:
    """Return the influence of rows on the sum of all capacities, and its change by smaller margins.

    The sum of (e·W)(2 rho + e·W) over all functions is 2 e·q + e M e', with q = sum of rho W and
    M = W'W. Functions that are not controls have W = 0.

    W comes from all samples, this one included, whose part of it is y e'/N for the residual e in
    the fit of all samples. In one capacity this is little, but it adds up over the functions, to
    |e|² times the sum of rho y / N, and does not average out. So it is subtracted.
    """
    xp = array_namespace(rows.z)
    y_w = rows.phi.T @ job.total_weights
    q = y_w - rows.z @ job.total_weights_gram
    rho_y = job.is_reported @ rows.phi**2 - xp.vecdot(y_w, rows.z)
    influences = []
    for e in (rows.e, rows.e_for_errors):
        influences.append(xp.vecdot(2 * q + e @ job.total_weights_gram, e))
    with_margin, with_smaller_margin = influences
    e_power = xp.vecdot(rows.e @ job.whitening, rows.raw @ job.whitening)
    self_influence = 2 * e_power * rho_y / n_total
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
