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

from .._arrays import array_namespace, is_on_device, multiply_tall
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
    influence_on_total: Any  # first and second powers of its sum over all functions, (2,)
    # |z|⁴, |e|⁴, |e|⁸, and by how much |e|² is larger with the margins for error bars: (4,)
    powers: Any


@dataclass(frozen=True, eq=False)
class SecondPassJob:
    """The arguments of `residual_sums` apart from the rows.

    They are one object, which other processes can receive.
    """

    fit: Fit
    positions: Integers  # among the controls, of the reported functions that are controls
    weights_of_z: Any  # W of these, (reported controls, rank)
    # The constant, with which every basis begins, and all reported functions. None if all of these
    # are controls, because the values of controls are computed anyway.
    basis: ProductBasis | None
    whitening: Any  # G^-1/2 of the first estimate, (rank, rank)
    group_edges: Integers  # rows where groups begin, half of them in each half of the samples
    # Positions and W of the reported controls of later passes, in the first pass of several; empty
    # otherwise.
    later_positions: Integers
    later_weights_of_z: Any


@dataclass(frozen=True, eq=False)
class _ResidualRows:
    """Some rows of one group: values of functions, readouts and residuals."""

    phi: Any  # all controls, (controls, rows)
    reported_controls: Any  # those that are reported, (reported controls, rows)
    y: Any  # functions of the job's basis, (terms, rows); empty without that basis
    z: Any  # whitened readouts, (rows, rank)
    e: Any  # residuals in a fit without each row, (rows, rank)
    e_for_errors: Any  # the same with smaller margins, for error bars

    def slice_rows(self, start: int, stop: int) -> _ResidualRows:
        """Return the rows `start` to `stop` of these."""
        return _ResidualRows(
            phi=self.phi[:, start:stop],
            reported_controls=self.reported_controls[:, start:stop],
            y=self.y[:, start:stop],
            z=self.z[start:stop, :],
            e=self.e[start:stop, :],
            e_for_errors=self.e_for_errors[start:stop, :],
        )


def residual_sums(
    samples: Samples, start: int, stop: int, *, job: SecondPassJob, **whitener: Any
) -> dict[int, ResidualSums]:
    """Return the sums over some rows, by the number of their group."""
    sums = dict[int, ResidualSums]()
    edges = job.group_edges - samples.first_row
    middle = len(edges) // 2
    controls = job.fit.controls
    # The values of all controls and of the reported ones are two arrays of the size of phi. Those
    # of the job's basis may be larger.
    n_arrays = 2
    if job.basis is not None:
        n_arrays = max(n_arrays, len(job.basis) // len(controls))
    rows_of_halves = pairwise(np.clip(edges[[0, middle, -1]], start, stop).tolist())
    for half, (first, last) in zip(job.fit.halves, rows_of_halves, strict=True):
        for piece in iterate_pieces(samples, first, last, controls, n_arrays=n_arrays, **whitener):
            rows = _rows_of(piece, samples, half, job)
            for group, begin, end in _groups_of(piece, edges):
                sums_of_rows = _sum_rows(rows.slice_rows(begin, end), job, samples.n_total)
                if group in sums:
                    sums_of_rows = sums[group].absorb(sums_of_rows)
                sums[group] = sums_of_rows
    return sums


def _groups_of(piece: Piece, edges: Integers) -> Iterator[tuple[int, int, int]]:
    """Yield the groups that a piece holds rows of, with the first and the last of these rows."""
    cuts = np.clip(edges - piece.first, 0, piece.z.shape[0])
    for group in np.flatnonzero(np.diff(cuts)).tolist():
        yield group, int(cuts[group]), int(cuts[group + 1])


def _rows_of(piece: Piece, samples: Samples, half: HalfFit, job: SecondPassJob) -> _ResidualRows:
    """Return the values of a piece, and the residual of each row in a fit without that row."""
    phi = piece.phi
    z = piece.z
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

    if job.basis is None:
        y = phi[:0, :]
    else:
        y = samples.apply_weights(job.basis.values(piece.inputs).T, piece.first).T
    return _ResidualRows(
        phi=phi,
        reported_controls=rows_at(phi, job.positions),
        y=y,
        z=z,
        e=e,
        e_for_errors=e_for_errors,
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
    powers = [z_power**2, e_power**2, e_power**4, e_power_for_errors - e_power]

    # W comes from all samples, this one included, so rho = y - z·W is too small, as a residual of
    # least squares is: with W of the other samples it would be rho / (1 - h), with h = |e|²/N, and
    # the mean of rho² is 1 - h times that of the noise. So |e|² rho² is divided by 1 - h once.
    a = e_power / xp.clip(1 - e_power / n_total, MIN_SAMPLE_MARGIN, None)
    e_times_e_dot_f = e_dot_f[:, None] * e
    # The vector a z + (e·f) e of each row: its product with y and W gives `bias_linear`.
    linear_vector = a[:, None] * z + e_times_e_dot_f
    z_e = z.T @ e
    e_e = e.T @ e
    own_leverage = e_power_for_errors / n_total
    influence, influence_on_total = _sum_influence(
        rows.reported_controls, job.weights_of_z, rows, own_leverage
    )
    if len(job.later_positions):
        later_controls = rows_at(rows.phi, job.later_positions)
        _, further_influence = _sum_influence(
            later_controls, job.later_weights_of_z, rows, own_leverage
        )
        influence_on_total = influence_on_total + further_influence
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
        influence=influence,
        influence_on_total=xp.stack([xp.sum(influence_on_total), xp.sum(influence_on_total**2)]),
        powers=xp.stack([xp.sum(power) for power in powers]),
    )


def _sum_bias_constant(rows: _ResidualRows, a: Any) -> Any:
    """Return the sum of a y² of every function of the job's basis, or of the reported controls."""
    y = rows.y if rows.y.shape[0] else rows.reported_controls
    sums = [y[tile, :] ** 2 @ a for tile in _tiles_of_functions(y)]
    return array_namespace(y).concat(sums)


def _sum_influence(
    y: Any, weights_of_z: Any, rows: _ResidualRows, own_leverage: Any
) -> tuple[Any, Any]:
    """Return sums of the influence (e·W)(2 rho + e·W) of each row on the capacity of each function.

    Here rho = y - z·W is what the readouts leave of the function y. The first are sums over rows of
    its first, second and fourth powers, (3, functions), and the second are sums over functions,
    (rows,). To W a sample itself contributes y e' / N, and so y |e|² / N to e·W. This adds up over
    functions, and is left out of the second.

    Parameters
    ----------
    y, weights_of_z
        Values of functions (functions, rows), and their W.
    rows
        The rows.
    own_leverage
        |e|² / N of each row.
    """
    xp = array_namespace(rows.z)
    # 2 rho + e·W = 2 (y + (e/2 - z)·W); the 2 goes to the other factor.
    twice_e = 2 * rows.e_for_errors.T
    half_e_minus_z = (rows.e_for_errors / 2 - rows.z).T
    sums = []
    sum_over_functions: Any = 0.0
    own_part: Any = 0.0
    for tile in _tiles_of_functions(y):
        tile_weights = weights_of_z[tile, :]
        influence = tile_weights @ half_e_minus_z + y[tile, :]
        own_part = own_part + xp.sum(y[tile, :] * influence, axis=0)
        influence *= tile_weights @ twice_e
        sum_over_functions = sum_over_functions + xp.sum(influence, axis=0)
        square = influence * influence
        first = xp.sum(influence, axis=1)
        second = xp.sum(square, axis=1)
        fourth = xp.vecdot(square, square)
        sums.append(xp.stack([first, second, fourth]))
    return xp.concat(sums, axis=1), sum_over_functions - 2 * own_leverage * own_part


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
