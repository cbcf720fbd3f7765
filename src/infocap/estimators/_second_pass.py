"""The last pass over the rows: capacities, bias and errors, from the residuals of a fit.

The pass before it, that of the controls, is `_fit.control_sums`.

Write y for a reported function, z for the whitened readouts, c = E[y z] for the coefficients of y,
G = E[z z'] and W = G^-1 c. When c and G are off by dc and dG, the capacity C = c'G^-1c is off by
2 W·dc - W'dG W to first order, and by |dc - dG W|² to second order; the second is positive and does
not average out.

z have the sample covariance 1. G, estimated better, is near 1 but not 1. So |e|², |f|², e·f and
|dc - dG W|² are in the metric G^-1 (after multiplying by G^-1/2). e·W, f·W and z·W are plain sums:
W already contains G^-1. |z|⁴ needs no metric.

With the readout split into what a fit predicts and the residual, z = f + e, a sample adds y e to
dc and e f' + f e' + e e' to dG. So the first order is a mean over samples of the influence
(e·W)(2 rho + e·W), where rho = y - z·W is what the readouts leave of y. The second is the square
of the mean of e rho - f (e·W), whose expectation is 1/N times the mean of its square: the bias of
the capacity.

For each group of samples, the pass adds up products with e (`residual_sums`). The sums of all
groups give the estimates and their bias; differences between groups and between halves give error
bars.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import matmul
from typing import Any

import numpy as np

from .._arrays import (
    array_namespace,
    cholesky,
    is_on_device,
    multiply_by_triangle,
    plus_transpose,
    solve_triangle,
    to_library_of,
    to_numpy,
)
from .._threads import cores_for_matrices, parallel_map
from ..basis import ProductBasis
from ..kernels import SMALLEST_DIVISOR, AddableSums, absorb_groups, add_groups, rows_at
from ..typing import Floats, Integers
from ._evidence import Evidence
from ._fit import (
    MIN_EIGENVALUE,
    NO_FIT,
    Fit,
    Metric,
    all_eigenvalues_above,
    largest_eigenvalue,
    whitening_from_gram,
)
from ._groups import Groups
from ._residual_sums import (
    ALL_GROUPS,
    ResidualSums,
    SecondPassJob,
    SquareSums,
    residual_sums,
)

# A variance that rests on n samples is widened by the factor 1 + 4 / n, which covers Student's
# factor from n = 3 on.
FEW_SAMPLES_WIDENING = 4.0
# Samples that a variance is taken to rest on at least.
MIN_EFFECTIVE_SAMPLES = 2.0
# Largest eigenvalue of G that needs no second look.
MIN_LARGE_EIGENVALUE = 1.5
# Smallest eigenvalue of G from which on none comes near zero when a group is left out. Below it,
# one such eigenvalue could make the error bar a hundred times too long.
MIN_SAFE_EIGENVALUE = 0.5
# Bytes of sums y e' by groups that are kept at a time; with more functions the second pass is made
# several times.
MAX_SUMS_BYTES = 500_000_000
MAX_SUMS_BYTES_ON_DEVICE = 8_000_000_000
# Fraction of the memory limit, where there is one, that these sums may take.
MEMORY_FRACTION_OF_SUMS = 1 / 4


@dataclass(frozen=True, eq=False)
class PassResults:
    """Estimates, bias and scatter of the capacities of some functions, and of the sum of these.

    White coefficients are c'G^-1/2: the coefficients of a function on readouts that are
    uncorrelated and have unit variance.
    """

    white_coefficients: Any  # (terms, rank); squares of a row add up to the capacity C
    bias: Floats  # of the capacities, (terms,)
    variance: Floats  # of the capacities, (terms,)
    group_variance: Floats  # of the white coefficients between groups, (terms,)
    group_covariance: Floats  # of the same, summed over functions, (rank, rank)
    capacities_without: Floats  # capacities without each group, (groups, terms)
    half_totals: Floats  # sums of capacities from each half of the samples alone, (2,)
    # Squared change of c between the halves, with the fit as it is and with a re-estimated fit.
    fixed_fit_change: float
    refitted_change: float
    residual_covariance: Floats  # of e G^-1/2, (rank, rank); its trace is the unexplained rank
    leverage_ratio: float  # S_N / (K N), K being the rank: how much single samples weigh
    effective_samples: float  # (Σ|e|⁴)² / Σ|e|⁸: how many samples the noise of the total rests on
    # By how much the mean of |e|², and the sum of the capacities, are larger with the margins for
    # error bars.
    clipped_power: float
    change_by_margins: float
    # Variance of the sum of the capacities that the influences of single samples have, to first
    # order.
    variance_of_total: float
    smallest_eigenvalue: float  # of G
    largest_eigenvalue: float

    @property
    def jackknife_totals(self) -> Floats:
        """Sums of capacities without each group, (groups,)."""
        totals: Floats = self.capacities_without.sum(axis=1)
        return totals


def run_second_pass(evidence: Evidence, fit: Fit, groups: Groups) -> PassResults:
    """Go through the samples once more with the chosen fits.

    If memory does not allow for all functions at a time, the pass is made for some after others.
    """
    n_terms = len(fit.positions)
    step = _functions_per_pass(evidence, n_groups=len(groups.edges) - 1)
    results = []
    for first in range(0, n_terms, step):
        functions = slice(first, min(first + step, n_terms))
        results.append(_pass_for_functions(functions, evidence, fit, groups))
    return results[0] if len(results) == 1 else _join_functions(results)


def _functions_per_pass(evidence: Evidence, n_groups: int) -> int:
    """Return the number of functions whose sums y e' by groups fit into memory."""
    on_device = evidence.samples.x.on_device
    max_bytes = MAX_SUMS_BYTES_ON_DEVICE if on_device else MAX_SUMS_BYTES
    memory_limit = evidence.engine.memory_limit
    if memory_limit is not None:
        max_bytes = min(max_bytes, int(memory_limit * MEMORY_FRACTION_OF_SUMS))
    return max(max_bytes // (8 * evidence.rank * n_groups), 1)


def _pass_for_functions(
    functions: slice, evidence: Evidence, fit: Fit, row_groups: Groups
) -> PassResults:
    """Make the second pass for some functions, and conclude from its sums."""
    reported = _reported_functions(functions, evidence, fit)
    job = reported.job(fit, row_groups.edges)
    sum_residuals = partial(residual_sums, job=job, **evidence.whitener)
    samples = row_groups.label(evidence.samples)
    merge = absorb_groups if evidence.engine.merges_here else add_groups
    by_group = evidence.engine.fold(samples, sum_residuals, merge)
    with cores_for_matrices(evidence.rank):
        return _conclude(by_group, reported, evidence, fit, len(row_groups.edges) // 2)


def _conclude(
    by_group: dict[int, Any],
    reported: _ReportedFunctions,
    evidence: Evidence,
    fit: Fit,
    middle: int,
) -> PassResults:
    """Return estimates and errors from the sums by groups.

    The groups before the one with the number `middle` are the first half of the samples.
    """
    n = evidence.n_samples
    squares: SquareSums = by_group.pop(ALL_GROUPS)
    map_groups = map if evidence.samples.x.on_device else parallel_map
    groups = list(map_groups(reported.sums_of, [by_group.pop(n) for n in sorted(by_group)]))
    sums_of_halves = [_sum_groups(groups[:middle]), _sum_groups(groups[middle:])]
    whole = sums_of_halves[0] + sums_of_halves[1]

    # Coefficients and Gram matrix are E[y f] and E[f f'], which are known, plus means over samples
    # of the terms with residuals. E[y f] is averaged over the fits without one sample each, so the
    # mean change by which these differ from the fit of all samples is subtracted.
    refit = _solve_refit(fit, [half.phi_e for half in sums_of_halves])
    known_c = rows_at(fit.coefficients - refit.of_own_half / n, reported.positions)
    known_gram = sum(
        half.fraction * (half.coefficients.T @ half.coefficients) for half in fit.halves
    )
    c = known_c + whole.y_e / n
    gram = known_gram + whole.gram / n
    final_metric = _final_metric(gram)
    whitening = final_metric.whitening
    residual_covariance = final_metric.whiten(squares.e_e) / n

    bias = _bias(whole, squares, reported.first_metric, n)
    variance = _variance(to_numpy(whole.influence), bias, residual_covariance, n)
    if evidence.basis.of_sequences:
        bias, serial_variance = _serial_bias_and_variance(groups, whole, reported)
        widening = 1 + FEW_SAMPLES_WIDENING / len(groups)
        variance = np.maximum(variance, widening * serial_variance)

    is_safe = final_metric.is_safe
    estimate = {"c": c, "gram": gram, "whitening": whitening, "is_safe": is_safe}
    scatter = _scatter_between(groups, whole, **estimate)
    half_scatter = _scatter_between(sums_of_halves, whole, **estimate)
    z_power_2, e_power_2, e_power_4, clipped_power, change_by_margins, *influences = to_numpy(
        whole.powers
    )
    sum_of_influences, sum_of_squared_influences = influences
    return PassResults(
        white_coefficients=c @ whitening,
        bias=bias,
        variance=np.maximum(variance, 0.0),
        group_variance=scatter.variance,
        group_covariance=scatter.covariance,
        capacities_without=scatter.capacities_without,
        # The first of these totals leaves out the first half, so it is that of the second.
        half_totals=half_scatter.capacities_without.sum(axis=1)[::-1],
        fixed_fit_change=_squared_difference([half.y_e for half in sums_of_halves], whitening),
        refitted_change=_squared_difference(
            _refitted_y_e(sums_of_halves, refit, fit, reported.positions, n), whitening
        ),
        residual_covariance=residual_covariance,
        leverage_ratio=float(z_power_2) / (gram.shape[0] * n**2),
        effective_samples=float(e_power_2**2 / max(e_power_4, SMALLEST_DIVISOR)),
        clipped_power=float(clipped_power) / n,
        change_by_margins=float(change_by_margins) / n,
        variance_of_total=float(sum_of_squared_influences - sum_of_influences**2 / n) / n**2,
        smallest_eigenvalue=final_metric.smallest_eigenvalue,
        largest_eigenvalue=final_metric.largest_eigenvalue,
    )


@dataclass(frozen=True, eq=False)
class _FinalMetric:
    """G^-1 of the final estimate, and how far the eigenvalues of G are from 1."""

    whitening: Any  # G^-1/2, (rank, rank)
    is_triangle: bool  # whether it is known to be an upper triangle
    is_safe: bool  # no eigenvalue of G comes near zero when a group is left out
    smallest_eigenvalue: float  # of G
    largest_eigenvalue: float

    def whiten(self, symmetric: Any) -> Floats:
        """Return W' E W for the whitening W and a symmetric matrix E."""
        times = multiply_by_triangle if self.is_triangle else matmul
        half_whitened = times(symmetric, self.whitening)
        whitened: Floats = to_numpy(times(half_whitened.T, self.whitening))
        return whitened


def _final_metric(gram: Any) -> _FinalMetric:
    """Return the metric of G; each factorisation whose answer follows from others is left out."""
    largest = largest_eigenvalue(gram, MIN_LARGE_EIGENVALUE)
    is_safe = all_eigenvalues_above(gram, MIN_SAFE_EIGENVALUE)
    is_within_limits = is_safe and largest < 1 / MIN_EIGENVALUE
    whitening, smallest = whitening_from_gram(gram, is_within_limits)
    return _FinalMetric(
        whitening=whitening,
        is_triangle=is_within_limits,
        is_safe=is_safe,
        smallest_eigenvalue=smallest,
        largest_eigenvalue=largest,
    )


@dataclass(frozen=True, eq=False)
class _GroupSums(AddableSums):
    """Sums over the samples of one group, in the order of the reported functions.

    As in `ResidualSums`, z are whitened readouts, f what the fit predicts of them, and e = z - f.
    """

    count: int
    phi_e: Any  # phi e', (controls, rank)
    y_e: Any  # y e', (terms, rank)
    gram: Any  # z z' - f f', (rank, rank)
    bias: Any  # N² times the bias, (terms,)
    influence: Any  # first, second and fourth powers, (3, terms)
    powers: Any  # as in `ResidualSums`


def _sum_groups(groups: list[_GroupSums]) -> _GroupSums:
    """Return the sums over the samples of some groups."""
    if len(groups) == 1:
        return groups[0]
    return reduce(_GroupSums.absorb, groups[2:], groups[0] + groups[1])


@dataclass(frozen=True, eq=False)
class _ReportedFunctions:
    """The functions of one pass: which of them are controls, and their weights of z."""

    positions: Integers  # among the controls, (terms,); -1: is not a control
    weights_of_z: Any  # W, zero for functions that are not controls, (terms, rank)
    positions_of_total: Integers  # as in `SecondPassJob`
    weights_of_total: Any  # as in `SecondPassJob`
    first_metric: Metric  # G^-1 of the first estimate
    basis: ProductBasis | None  # as in `SecondPassJob`

    def job(self, fit: Fit, group_edges: Integers) -> SecondPassJob:
        """Return what the work on a range of rows needs."""
        is_control = self.positions >= 0
        return SecondPassJob(
            fit=_without_unused_arrays(fit),
            positions=self.positions[is_control],
            weights_of_z=rows_at(self.weights_of_z, np.flatnonzero(is_control)),
            positions_of_total=self.positions_of_total,
            weights_of_total=self.weights_of_total,
            root_of_total_weights=_root_of_gram(self.weights_of_total),
            basis=self.basis,
            metric=self.first_metric,
            group_edges=group_edges,
        )

    def sums_of(self, group: ResidualSums) -> _GroupSums:
        """Return the sums of a group in the order of these functions."""
        is_control = self.positions >= 0
        position_in_sums = np.where(is_control, np.cumsum(is_control) - 1, -1)
        bias = rows_at(group.bias[:, None], position_in_sums)[:, 0]
        if self.basis is None:
            y_e = rows_at(group.phi_e, self.positions)
        else:
            # The job's basis begins with the constant, even if that is not one of these functions.
            n_extra = len(self.basis) - len(self.positions)
            y_e = group.y_e[n_extra:, :]
            is_no_control = to_library_of(1.0 * ~is_control, bias)
            bias = bias + is_no_control * group.bias_without_weights[n_extra:]
        return _GroupSums(
            count=group.count,
            phi_e=group.phi_e,
            y_e=y_e,
            gram=plus_transpose(group.half_gram),
            bias=bias,
            influence=rows_at(group.influence.T, position_in_sums).T,
            powers=group.powers,
        )


def _reported_functions(functions: slice, evidence: Evidence, fit: Fit) -> _ReportedFunctions:
    """Find some of the reported functions among the controls, and their weights of z."""
    positions = fit.positions[functions]
    basis = None
    if np.any(positions < 0):
        numbers = np.arange(len(evidence.basis))[functions]
        basis = evidence.basis.subset(np.union1d([0], numbers))
    positions_of_total = np.unique(fit.positions[fit.positions >= 0])
    return _ReportedFunctions(
        positions=positions,
        weights_of_z=fit.first_metric.apply(rows_at(fit.first_c, positions)),
        positions_of_total=positions_of_total,
        weights_of_total=fit.first_metric.apply(rows_at(fit.first_c, positions_of_total)),
        first_metric=fit.first_metric,
        basis=basis,
    )


def _without_unused_arrays(fit: Fit) -> Fit:
    """Return the fit without the arrays that the second pass does not use.

    They are then not sent to the workers of a cluster.
    """
    first, second = fit.halves
    used = {*first.used_numbers, *second.used_numbers}
    candidates: list[Any] = [None] * len(fit.candidates)
    for number in used - {NO_FIT}:
        candidates[number] = fit.candidates[number]
    return replace(fit, candidates=candidates, coefficients=None, first_c=None, phi_phi=None)


def _bias(whole: _GroupSums, squares: SquareSums, metric: Metric, n: int) -> Floats:
    """Return the bias of every capacity.

    The weights W are themselves noisy, which makes the sums too large; this is subtracted.
    """
    xp = array_namespace(squares.e_e)
    # The trace of the product of both matrices, with the metric in between.
    products = metric.apply(squares.f2_e_e) * metric.apply(squares.e_e).T
    noise_of_weights = float(xp.sum(products)) / n**2
    return (to_numpy(whole.bias) - noise_of_weights) / n**2


def _variance(influence: Floats, bias: Floats, covariance: Floats, n: int) -> Floats:
    """Return the variance of every capacity, to first and to second order."""
    first, second, fourth = influence  # sums of its powers
    n_effective = np.maximum(
        second**2 / np.maximum(fourth, SMALLEST_DIVISOR), MIN_EFFECTIVE_SAMPLES
    )
    widening = 1 + FEW_SAMPLES_WIDENING / n_effective
    first_order = widening * (second - first**2 / n) / n**2
    # A sum of squares with mean beta, the bias, and nu degrees of freedom has the variance
    # 2 beta² / nu. Functions with some capacity have a smaller beta and a smaller nu.
    # 2 beta beta0 / nu, with beta0 and nu of a function without capacity, is large enough for these
    # as well.
    unexplained = max(np.trace(covariance), SMALLEST_DIVISOR)
    second_order = 2 * np.abs(bias) * np.sum(covariance**2) / (unexplained * n)
    return np.asarray(first_order + second_order)


def _serial_bias_and_variance(
    stretches: list[_GroupSums], whole: _GroupSums, reported: _ReportedFunctions
) -> tuple[Floats, Floats]:
    """Return bias and variance of capacities of a sequence, from how its stretches differ.

    Neighbouring samples of a sequence are not independent, so the scatter of single samples says
    too little; sums over stretches that are long against the memory are nearly independent.
    """
    weights_of_z = reported.weights_of_z
    xp = array_namespace(weights_of_z)
    bias: Any = 0.0
    variance: Any = 0.0
    for stretch in stretches:
        fraction = stretch.count / whole.count
        # The contribution of the stretch to N dc, and to N dG W, less its share by length.
        excess_of_c = stretch.y_e - fraction * whole.y_e
        excess_of_gram = weights_of_z @ (stretch.gram - fraction * whole.gram)
        second_order = reported.first_metric.power(excess_of_c - excess_of_gram)
        first_order = xp.sum((2 * excess_of_c - excess_of_gram) * weights_of_z, axis=1)
        bias = bias + second_order
        variance = variance + first_order**2
    scale = len(stretches) / (len(stretches) - 1) / whole.count**2
    return scale * to_numpy(bias), scale * to_numpy(variance)


@dataclass(frozen=True, eq=False)
class _GroupScatter:
    """How the coefficients c = E[y z] vary between groups of samples (group jackknife)."""

    variance: Floats  # of each function's white coefficients between groups, (terms,)
    covariance: Floats  # between readout directions, summed over functions, (rank, rank)
    capacities_without: Floats  # capacities without each group, (groups, terms)


def _scatter_between(
    groups: list[_GroupSums],
    whole: _GroupSums,
    *,
    c: Any,
    gram: Any,
    whitening: Any,
    is_safe: bool,
) -> _GroupScatter:
    """Compare groups with each other, and leave out each in turn.

    `is_safe` says that no eigenvalue of G comes near zero when a group is left out.
    """
    xp = array_namespace(c)
    n_groups = len(groups)
    scaled_excesses = []
    for group in groups:
        # The contribution of this group less its share by size.
        excess = group.y_e - group.count / whole.count * whole.y_e
        scaled_excesses.append(excess * (n_groups / (whole.count * group.count)) ** 0.5)
    deviations = xp.concat(scaled_excesses) @ whitening
    variance = xp.sum(xp.reshape(xp.vecdot(deviations, deviations), (n_groups, -1)), axis=0)

    def capacities_without(group: _GroupSums) -> Any:
        """Return the capacities: coefficients, Gram matrix, and the bias of squares."""
        fraction = group.count / whole.count
        n_without = whole.count - group.count
        c_without = c - (group.y_e - fraction * whole.y_e) / n_without
        # In one array: gram - (group.gram - fraction * whole.gram) / n_without.
        gram_without = fraction * whole.gram
        gram_without -= group.gram
        gram_without /= n_without
        gram_without += gram
        # To first order, the noise in the squares differs between groups only by the groups' sizes.
        bias_without = (whole.bias - group.bias) / n_without**2
        return _capacities(c_without, gram_without, is_safe) - bias_without

    map_groups = map if is_on_device(c) else parallel_map
    return _GroupScatter(
        variance=to_numpy(variance) / (n_groups - 1),
        covariance=to_numpy(deviations.T @ deviations),
        capacities_without=to_numpy(xp.stack(list(map_groups(capacities_without, groups)))),
    )


def _capacities(c: Any, gram: Any, is_safe: bool) -> Any:
    """Return c'G^-1c of each function, for c (terms, rank).

    Eigenvalues of G are limited as those of the whitening where G is not safe.
    """
    xp = array_namespace(c)
    if is_safe:
        if not is_on_device(c):  # A device would have to be asked whether there is a factor.
            lower = cholesky(gram)
            if np.isfinite(lower[-1, -1]):
                return xp.sum(solve_triangle(lower, c.T) ** 2, axis=0)
        # Half of the samples may give a G with negative eigenvalues, which has no such factor, or
        # one that is singular.
        with suppress(np.linalg.LinAlgError):
            return xp.vecdot(xp.linalg.solve(gram, c.T).T, c)
    whitening, _ = whitening_from_gram(gram)
    return xp.sum((c @ whitening) ** 2, axis=1)


def _root_of_gram(rows: Any) -> Any:
    """Return a matrix whose product with its transpose is rows'rows, of few columns."""
    n_rows, n_columns = rows.shape
    if n_rows <= n_columns:
        return rows.T
    xp = array_namespace(rows)
    power, directions = xp.linalg.eigh(rows.T @ rows)
    return directions * xp.sqrt(xp.clip(power, 0, None))


@dataclass(frozen=True, eq=False)
class _Refit:
    """Changes of the coefficients when the fit is estimated again, (A + P)^-1 phi e'.

    A is the sum of phi phi' over all samples, and P the diagonal matrix of ridge penalties.
    """

    of_mean_fit: list[Any]  # by each half, in the mean of both fits, (controls, rank)
    of_own_half: Any  # by each half in its own fit, summed over both halves, (controls, rank)


def _solve_refit(fit: Fit, phi_e_of_halves: list[Any]) -> _Refit:
    """Return the changes that follow from the sums of phi e' over each half."""
    first, second = fit.halves
    of_mean_fit = [0.0 * phi_e for phi_e in phi_e_of_halves]
    of_own_half = 0.0 * phi_e_of_halves[0]
    for number in sorted({*first.used_numbers, *second.used_numbers} - {NO_FIT}):
        ridge = fit.candidates[number].fit
        for place, phi_e in enumerate(phi_e_of_halves):  # 0 is the first half
            change = ridge.solve(phi_e)
            for number_of_half, half in enumerate(fit.halves):
                if number not in half.used_numbers:
                    continue
                projected = half.project(change, number)
                of_mean_fit[place] = of_mean_fit[place] + half.fraction * projected
                if number_of_half == place:
                    of_own_half = of_own_half + projected
    return _Refit(of_mean_fit, of_own_half)


def _refitted_y_e(
    sums_of_halves: list[_GroupSums], refit: _Refit, fit: Fit, positions: Integers, n: int
) -> list[Any]:
    """Return the sums of y e over each half, as if the fit were estimated again from that half.

    A half of the samples that changes the fit by db changes N c by (N - A) db in addition to y e,
    where A is the sum of phi phi' over all samples.
    """
    refitted = []
    for half, change in zip(sums_of_halves, refit.of_mean_fit, strict=True):
        change_of_c = rows_at(n * change - fit.phi_phi @ change, positions)
        refitted.append(half.y_e + change_of_c)
    return refitted


def _squared_difference(arrays: list[Any], whitening: Any) -> float:
    """Return the sum of squares of the difference of two arrays (terms, rank), after whitening."""
    first, second = arrays
    difference = (first - second) @ whitening
    return float(array_namespace(whitening).sum(difference**2))


def _join_functions(results: list[PassResults]) -> PassResults:
    """Put together the results of passes for some functions each."""
    first = results[0]
    xp = array_namespace(first.white_coefficients)
    return replace(
        first,
        white_coefficients=xp.concat([result.white_coefficients for result in results]),
        bias=np.concatenate([result.bias for result in results]),
        variance=np.concatenate([result.variance for result in results]),
        group_variance=np.concatenate([result.group_variance for result in results]),
        group_covariance=np.sum([result.group_covariance for result in results], axis=0),
        capacities_without=np.hstack([result.capacities_without for result in results]),
        half_totals=np.sum([result.half_totals for result in results], axis=0),
        fixed_fit_change=sum(result.fixed_fit_change for result in results),
        refitted_change=sum(result.refitted_change for result in results),
    )
