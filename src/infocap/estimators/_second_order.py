"""The second pass: the residuals of a fit, and what they say about every capacity.

Write z for the whitened readouts, c = E[y z] for the coefficients of a function y, G = E[z z'] and
W = G^-1 c. When c and G are off by dc and dG, the capacity C = c'G^-1c is off by 2 W·dc - W'dG W
to first order, and by |dc - dG W|² in the metric G^-1 to second order; the second is positive and
does not average out.

With the readout split into what a fit predicts and the residual, z = f + e, a sample adds y e to
dc and e f' + f e' + e e' to dG. So the first order is a mean over samples of the influence
(e·W)(2 rho + e·W), where rho = y - z·W is what the readouts leave of the target. The second is the
square of the mean of e rho - f (e·W), whose expectation is 1/N times the mean of its square: the
bias of the capacity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from .._arrays import array_namespace, is_on_device, multiply_tall, to_numpy
from ..basis import ProductBasis
from ..kernels import SMALLEST_DIVISOR, AddableSums, add_groups, rows_at, serial_sums
from ..samples import Samples
from ..typing import Floats, Integers
from ._evidence import Evidence
from ._fit import MIN_SAMPLE_MARGIN, NO_FIT, Fit, HalfFit, Piece, inverse_root, iterate_pieces

# Least margin 1 - leverage, relative to its mean, by which a residual is divided: a few corner
# points of the inputs would dominate every sum otherwise.
MIN_RELATIVE_MARGIN = 0.25
# The same for error bars, which must not be too short: with the margin above, those of nearly
# noise-free devices held in 80 % instead of 95 %.
MIN_RELATIVE_MARGIN_OF_ERRORS = 0.02
# A variance that rests on n samples is widened by the factor 1 + 4 / n, which covers Student's
# factor from n = 3 on.
FEW_SAMPLES_WIDENING = 4.0
# Samples that a variance is taken to rest on at least.
MIN_EFFECTIVE_SAMPLES = 2.0

# Bytes of sums y e' by groups that are kept at a time; with more functions the second pass is made
# several times.
MAX_SUMS_BYTES = 500_000_000
MAX_SUMS_BYTES_ON_DEVICE = 8_000_000_000
# Share of the memory limit, where there is one, that these sums may take.
MEMORY_SHARE_OF_SUMS = 4
# Numbers of one tile of functions and samples. They stay in the cache, and take less than the
# 128 KB above which memory is fetched from the system each time (in Dask's workers that doubled
# the time of the pass).
NUMBERS_PER_TILE = 16_000
# Functions of a tile at least, so that a tile is still multiplied at full speed.
MIN_FUNCTIONS_PER_TILE = 8


@dataclass(frozen=True, eq=False)
class Residuals(AddableSums):
    """Sums over the samples of one group.

    The square of what a sample adds, which makes the bias of a capacity, is a sum of products:
    N² times the bias is `bias` - 2 `cross` + W `inner` W'. Of these only `bias` and `cross` have as
    many numbers as there are functions. In them a = |e|² / (1 - |e|²/N) and b = e·f, in the metric.
    """

    count: int
    controls: Any  # phi e', (dictionary, rank)
    targets: Any  # y e', (terms, rank); empty if all functions are in the dictionary
    mixed: Any  # z e' + e z' - e e', (rank, rank)
    residuals: Any  # e e', (rank, rank)
    fit_powers: Any  # |f|² e e', (rank, rank)
    inner: Any  # z (a z + 2 b e)' + |f|² e e', (rank, rank)
    bias: Any  # a y², (terms,)
    cross: Any  # y (a z + b e)·W, of the functions in the dictionary, (functions,)
    influence: Any  # first, second and fourth powers of the influence on these, (3, functions)
    powers: Any  # |z|⁴, |e|⁴, |e|⁸, and what the least margin takes away of |e|²: (4,)


@dataclass(frozen=True, eq=False)
class Job:
    """What the second pass needs: the fits, some functions with their weights W, and the metric."""

    fit: Fit
    places: Integers  # of the functions that are in the dictionary
    weights: Any  # W of these, (functions, rank); those of others are zero
    # All functions and the constant, which every basis begins with; None if all are controls.
    basis: ProductBasis | None
    root: Any  # G^-1/2, (rank, rank)
    edges: Integers  # the rows where groups begin, half of them in each half of the samples


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some rows of one group: values of functions, readouts and residuals."""

    controls: Any  # phi, (dictionary, rows)
    functions: Any  # those of the job that are in the dictionary, (functions, rows)
    all_functions: Any  # of the job's basis; empty where it has none, (terms, rows)
    z: Any  # (rows, rank)
    e: Any  # in a fit without each row, (rows, rank)
    e_of_errors: Any  # the same with smaller margins, for error bars

    def part(self, start: int, stop: int) -> _Rows:
        """Return some of these rows."""
        return _Rows(
            controls=self.controls[:, start:stop],
            functions=self.functions[:, start:stop],
            all_functions=self.all_functions[:, start:stop],
            z=self.z[start:stop, :],
            e=self.e[start:stop, :],
            e_of_errors=self.e_of_errors[start:stop, :],
        )


def residual_sums(
    samples: Samples, start: int, stop: int, *, job: Job, **whitener: Any
) -> dict[int, Residuals]:
    """Return the sums over some rows, by the number of their group."""
    sums = dict[int, Residuals]()
    edges = job.edges - samples.first_row
    middle = len(job.edges) // 2
    dictionary = job.fit.dictionary
    n_parts = 2 if job.basis is None else max(len(job.basis) // len(dictionary), 2)
    rows_of_halves = pairwise(np.clip(edges[[0, middle, -1]], start, stop).tolist())
    for half, (first, last) in zip(job.fit.halves, rows_of_halves, strict=True):
        for piece in iterate_pieces(samples, first, last, dictionary, n_parts, **whitener):
            rows = _rows_of(piece, samples, half, job)
            for group, begin, end in _groups_of(piece, edges):
                group_sums = _sum_rows(rows.part(begin, end), job, samples.n_total)
                if group in sums:
                    group_sums = sums[group].absorb(group_sums)
                sums[group] = group_sums
    return sums


def _groups_of(piece: Piece, edges: Integers) -> Iterator[tuple[int, int, int]]:
    """Yield the groups that a piece holds rows of, with the first and the last of these rows."""
    cuts = np.clip(edges - piece.first, 0, piece.readouts.shape[0])
    for group in np.flatnonzero(np.diff(cuts)).tolist():
        yield group, int(cuts[group]), int(cuts[group + 1])


def _rows_of(piece: Piece, samples: Samples, half: HalfFit, job: Job) -> _Rows:
    """Make the residuals of a piece, each from a fit without its row."""
    phi = piece.values
    z = piece.readouts
    xp = array_namespace(z)
    plain = z - phi.T @ half.coefficients
    e = plain @ half.projections[NO_FIT]
    e_of_errors = e
    for k in sorted(half.projections.keys() - {NO_FIT}):
        candidate = job.fit.candidates[k]
        along = plain @ half.projections[k]
        margin = candidate.fit.margin(phi)[:, None]
        least = MIN_RELATIVE_MARGIN * candidate.mean_margin
        least_of_errors = MIN_RELATIVE_MARGIN_OF_ERRORS * candidate.mean_margin
        e = e + along / xp.clip(margin, least, None)
        e_of_errors = e_of_errors + along / xp.clip(margin, least_of_errors, None)

    if job.basis is None:
        all_functions = phi[:0, :]
    else:
        all_functions = samples.apply_weights(job.basis.values(piece.inputs).T, piece.first).T
    return _Rows(
        controls=phi,
        functions=rows_at(phi, job.places),
        all_functions=all_functions,
        z=z,
        e=e,
        e_of_errors=e_of_errors,
    )


def _sum_rows(rows: _Rows, job: Job, n_total: int) -> Residuals:
    """Return the sums over a few rows of one group."""
    z, e = rows.z, rows.e
    xp = array_namespace(z)
    white_e = e @ job.root
    white_f = (z - e) @ job.root
    white_e_of_errors = rows.e_of_errors @ job.root
    e_power = xp.vecdot(white_e, white_e)
    e_dot_f = xp.vecdot(white_e, white_f)
    f_power = xp.vecdot(white_f, white_f)
    z_power = xp.vecdot(z, z)
    e_power_of_errors = xp.vecdot(white_e_of_errors, white_e_of_errors)

    a = e_power / xp.clip(1 - e_power / n_total, MIN_SAMPLE_MARGIN, None)
    b_e = e_dot_f[:, None] * e
    a_z_plus_b_e = a[:, None] * z + b_e
    bias, influence = _sums_of_functions(rows, job, a)
    z_e = z.T @ e
    e_e = e.T @ e
    powers = (z_power**2, e_power**2, e_power**4, e_power_of_errors - e_power)
    return Residuals(
        count=z.shape[0],
        controls=multiply_tall(rows.controls, e),
        targets=multiply_tall(rows.all_functions, e),
        mixed=z_e + z_e.T - e_e,
        residuals=e_e,
        fit_powers=(white_e * f_power[:, None]).T @ white_e,
        inner=z.T @ (a_z_plus_b_e + b_e) + (f_power[:, None] * e).T @ e,
        bias=bias,
        cross=xp.vecdot(multiply_tall(rows.functions, a_z_plus_b_e), job.weights),
        influence=influence,
        powers=xp.stack([xp.sum(power) for power in powers]),
    )


def _sums_of_functions(rows: _Rows, job: Job, a: Any) -> tuple[Any, Any]:
    """Return the sums a y², and powers of the influence (e·W)(2 rho + e·W), of every function."""
    xp = array_namespace(rows.z)
    # 2 rho + e·W = 2 (y + (e/2 - z)·W); the 2 goes to the other factor.
    twice_e = 2 * rows.e_of_errors.T
    half_e_minus_z = (rows.e_of_errors / 2 - rows.z).T
    n_functions = rows.functions.shape[0]
    n_all = rows.all_functions.shape[0]
    if is_on_device(rows.z):
        step = n_functions + n_all
    else:
        step = max(NUMBERS_PER_TILE // rows.z.shape[0], MIN_FUNCTIONS_PER_TILE)

    bias, influence = [], []
    for low, high in _tiles(n_functions, step):
        y = rows.functions[low:high, :]
        weights = job.weights[low:high, :]
        if not n_all:
            bias.append((y * y) @ a)
        change = weights @ half_e_minus_z + y
        change *= weights @ twice_e
        square = change * change
        moments = (xp.sum(change, axis=1), xp.sum(square, axis=1), xp.vecdot(square, square))
        influence.append(xp.stack(moments))
    if n_all:
        bias = [rows.all_functions[low:high, :] ** 2 @ a for low, high in _tiles(n_all, step)]
    return xp.concat(bias), xp.concat(influence, axis=1)


def _tiles(n_functions: int, step: int) -> Iterator[tuple[int, int]]:
    """Cut functions into tiles; there is one, an empty one, where there are no functions."""
    return pairwise([*range(0, max(n_functions, 1), step), n_functions])


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """What both passes say about some functions, and about the sum of their capacities."""

    coordinates: Any  # c G^-1/2, (terms, rank), where the data are
    bias: Floats  # of the squares of these coordinates, (terms,)
    variance: Floats  # of the capacities, (terms,)
    group_variance: Floats  # of c between groups, in the metric, (terms,)
    group_covariance: Floats  # of c between groups, summed over functions, (rank, rank)
    jackknife_totals: Floats  # sums of capacities without each group, (groups,)
    half_totals: Floats  # sums of capacities from each half of the samples alone, (2,)
    # Squared change of c between the halves, with the fit as it is and with a re-estimated fit.
    fixed_fit_change: float
    refitted_change: float
    residual_covariance: Floats  # of e in the metric, (rank, rank); its trace is unexplained rank
    leverage_ratio: float  # S_N / (K N): how much single samples weigh
    contributors: float  # how many samples the noise of the total rests on
    capped: float  # mean of |e|², in the metric, that the least margin takes away
    smallest_eigenvalue: float  # of G


def second_order(evidence: Evidence, fit: Fit, edges: Integers) -> SecondOrder:
    """Go through the samples once more with the chosen fits.

    If memory does not allow for all functions at a time, the pass is made for some after others.
    """
    n_terms = len(fit.places)
    step = _functions_per_pass(evidence, n_groups=len(edges))
    if n_terms <= step:
        return _second_order_of(slice(None), evidence, fit, edges)
    parts = [
        _second_order_of(slice(first, first + step), evidence, fit, edges)
        for first in range(0, n_terms, step)
    ]
    return _joined(parts)


def _functions_per_pass(evidence: Evidence, n_groups: int) -> int:
    """Return the number of functions whose sums y e' by groups fit into memory."""
    on_gpu = evidence.samples.x.on_device
    n_bytes = MAX_SUMS_BYTES_ON_DEVICE if on_gpu else MAX_SUMS_BYTES
    if evidence.engine.memory_limit is not None:
        n_bytes = min(n_bytes, evidence.engine.memory_limit // MEMORY_SHARE_OF_SUMS)
    return max(n_bytes // (8 * evidence.rank * n_groups), 1)


@dataclass(frozen=True, eq=False)
class _GroupSums:
    """The sums of the second pass, for some functions."""

    metric: Any  # G^-1/2 of the first estimate, (rank, rank)
    weights: Any  # W of the functions, (terms, rank)
    groups: list[Residuals]  # with N² times the bias of each function in `bias`
    whole: Residuals  # the sum over all groups
    contributions: list[Any]  # sums y e' of each group, (terms, rank)
    influence: Floats  # first, second and fourth powers over all samples, (3, terms)


def _sum_groups(functions: slice, evidence: Evidence, fit: Fit, edges: Integers) -> _GroupSums:
    """Make the second pass for some functions."""
    places = fit.places[functions]
    is_control = places >= 0
    metric, _ = inverse_root(fit.gram)
    weights = rows_at(fit.c, places) @ (metric @ metric.T)
    basis = None
    if not is_control.all():
        numbers = np.arange(len(evidence.basis))[functions]
        basis = evidence.basis.subset(np.union1d([0], numbers))
    job = Job(
        fit=_without_what_is_not_sent(fit),
        places=places[is_control],
        weights=rows_at(weights, np.flatnonzero(is_control)),
        basis=basis,
        root=metric,
        edges=edges,
    )
    sum_residuals = partial(residual_sums, job=job, **evidence.whitener)
    by_group = evidence.engine.fold(evidence.samples, sum_residuals, add_groups)
    groups = [by_group[number] for number in sorted(by_group)]

    # The sums of the job are those of controls only, or begin with a constant that was not asked.
    place_in_job = np.where(is_control, np.cumsum(is_control) - 1, -1)
    n_extra = 0 if basis is None else len(basis) - len(places)
    xp = array_namespace(metric)
    for number, group in enumerate(groups):
        inner = xp.vecdot(weights @ group.inner, weights)
        cross = rows_at(group.cross[:, None], place_in_job)[:, 0]
        bias = group.bias[n_extra:] + (inner - 2 * cross)
        groups[number] = replace(group, bias=bias)
    if basis is None:
        contributions = [rows_at(group.controls, places) for group in groups]
    else:
        contributions = [group.targets[n_extra:, :] for group in groups]
    whole = reduce(add, groups)
    influence = to_numpy(rows_at(whole.influence.T, place_in_job)).T
    return _GroupSums(metric, weights, groups, whole, contributions, influence)


def _without_what_is_not_sent(fit: Fit) -> Fit:
    """Leave out what the second pass does not use, so that it need not travel to workers."""
    first, second = fit.halves
    used = first.projections.keys() | second.projections.keys()
    candidates: Any = [
        candidate if number in used else None for number, candidate in enumerate(fit.candidates)
    ]
    return replace(fit, candidates=candidates, coefficients=None, c=None, control_products=None)


def _second_order_of(
    functions: slice, evidence: Evidence, fit: Fit, edges: Integers
) -> SecondOrder:
    """Make the second pass for some functions, and conclude from its sums."""
    n = evidence.n_samples
    places = fit.places[functions]
    sums = _sum_groups(functions, evidence, fit, edges)
    whole = sums.whole
    middle = len(edges) // 2  # the groups before it are the first half of the samples
    halves = [reduce(add, sums.groups[:middle]), reduce(add, sums.groups[middle:])]
    refit = _refit_changes(fit, [half.controls for half in halves])

    # Coefficients and Gram matrix: the known part of the fit, and the mean of the residuals.
    known_part = rows_at(fit.coefficients - refit.own_half / n, places)
    c = known_part + sum(sums.contributions) / n
    gram = whole.mixed / n + sum(
        half.share * (half.coefficients.T @ half.coefficients) for half in fit.halves
    )
    root, smallest_eigenvalue = inverse_root(gram)
    covariance = to_numpy(root.T @ whole.residuals @ root / n)

    bias = _bias(whole, sums.metric, n)
    variance = _variance(sums.influence, bias, covariance, n)
    if evidence.basis.memory:
        bias, serial_variance = serial_sums(
            sums.weights, sums.metric, whole, sums.groups, sums.contributions
        )
        widening = 1 + FEW_SAMPLES_WIDENING / len(sums.groups)
        variance = np.maximum(variance, widening * serial_variance)

    scatter = _scatter_between(sums.groups, whole, sums.contributions, c, gram, root)
    half_contributions = [
        reduce(add, sums.contributions[:middle]),
        reduce(add, sums.contributions[middle:]),
    ]
    half_scatter = _scatter_between(halves, whole, half_contributions, c, gram, root)
    fixed_fit_change, refitted_change = _changes_between_halves(
        half_contributions, refit, fit, places, n, root
    )
    leverage_power, e_power_2, e_power_4, capped = to_numpy(whole.powers)
    return SecondOrder(
        coordinates=c @ root,
        bias=bias,
        variance=np.maximum(variance, 0.0),
        group_variance=scatter.variance,
        group_covariance=scatter.covariance,
        jackknife_totals=scatter.jackknife_totals,
        half_totals=half_scatter.jackknife_totals[::-1],  # without the second half comes last
        fixed_fit_change=fixed_fit_change,
        refitted_change=refitted_change,
        residual_covariance=covariance,
        leverage_ratio=float(leverage_power) / (gram.shape[0] * n**2),
        contributors=float(e_power_2**2 / max(e_power_4, SMALLEST_DIVISOR)),
        capped=float(capped) / n,
        smallest_eigenvalue=smallest_eigenvalue,
    )


def _bias(whole: Residuals, metric: Any, n: int) -> Floats:
    """Return the bias of every capacity, without what the noise of W adds to its estimate."""
    xp = array_namespace(metric)
    white_covariance = metric.T @ whole.residuals @ metric
    noise_of_weights = float(xp.sum(whole.fit_powers * white_covariance)) / n**2
    return (to_numpy(whole.bias) - noise_of_weights) / n**2


def _variance(influence: Floats, bias: Floats, covariance: Floats, n: int) -> Floats:
    """Return the variance of every capacity, to first and to second order."""
    first, second, fourth = influence
    n_effective = np.maximum(
        second**2 / np.maximum(fourth, SMALLEST_DIVISOR), MIN_EFFECTIVE_SAMPLES
    )
    widening = 1 + FEW_SAMPLES_WIDENING / n_effective
    first_order = widening * (second - first**2 / n) / n**2
    # A sum of squares with mean b and nu degrees of freedom scatters by 2 b² / nu. For functions
    # that are in part computed, b is smaller and so is nu; 2 b b0 / nu, with b0 that of a function
    # that is not, is safe.
    unexplained = max(np.trace(covariance), SMALLEST_DIVISOR)
    second_order = 2 * np.abs(bias) * np.sum(covariance**2) / (unexplained * n)
    return np.asarray(first_order + second_order)


@dataclass(frozen=True, eq=False)
class GroupScatter:
    """How the coefficients c = E[y z] vary between groups of samples (group jackknife)."""

    variance: Floats  # of each function's coefficients between groups, in the metric, (terms,)
    covariance: Floats  # between readout directions, summed over functions, (rank, rank)
    jackknife_totals: Floats  # total capacity without each group, (groups,)


def _scatter_between(
    groups: list[Residuals],
    whole: Residuals,
    contributions: list[Any],
    c: Any,
    gram: Any,
    root: Any,
) -> GroupScatter:
    """Compare groups with each other; `contributions` are what each adds to N c."""
    xp = array_namespace(c)
    n_groups = len(groups)
    sum_of_contributions = sum(contributions)
    variance: Any = 0.0
    covariance: Any = 0.0
    squares_without, grams_without, biases_without = [], [], []
    for group, contribution in zip(groups, contributions, strict=True):
        share = group.count / whole.count
        n_without = whole.count - group.count

        # By how much this group contributes more than its share, in whitened coordinates.
        excess = contribution - share * sum_of_contributions
        scale = (n_groups / (whole.count * group.count)) ** 0.5
        deviation = excess @ (root * scale)
        variance = variance + xp.vecdot(deviation, deviation)
        covariance = covariance + deviation.T @ deviation

        # The same estimate without this group: coefficients, Gram matrix, and the bias of squares.
        # The noise that squares add is the same for all groups to first order, but for their size.
        c_without = c - excess / n_without
        squares_without.append(c_without.T @ c_without)
        grams_without.append(gram - (group.mixed - share * whole.mixed) / n_without)
        biases_without.append(xp.sum(whole.bias - group.bias) / n_without**2)
    projections = xp.linalg.solve(xp.stack(grams_without), xp.stack(squares_without))
    totals = xp.linalg.trace(projections) - xp.stack(biases_without)
    return GroupScatter(
        variance=to_numpy(variance) / (n_groups - 1),
        covariance=to_numpy(covariance),
        jackknife_totals=to_numpy(totals),
    )


@dataclass(frozen=True, eq=False)
class _Refit:
    """By how much samples change the coefficients of a re-estimated fit, (A + P)^-1 phi e'."""

    of_halves: list[Any]  # what each half changes in the mean fit, (dictionary, rank)
    own_half: Any  # what the samples change in the fit of their own half, summed over both


def _refit_changes(fit: Fit, sums_of_halves: list[Any]) -> _Refit:
    """Solve for the changes from the sums phi e' of each half."""
    first, second = fit.halves
    of_halves = [0.0 * sums for sums in sums_of_halves]
    own_half = 0.0 * sums_of_halves[0]
    no_projection = 0.0 * fit.gram
    for k in sorted((first.projections | second.projections).keys() - {NO_FIT}):
        projections = [half.projections.get(k, no_projection) for half in fit.halves]
        mean_projection = first.share * projections[0] + second.share * projections[1]
        for half, sums in enumerate(sums_of_halves):
            change = fit.candidates[k].fit.solve(sums)
            of_halves[half] = of_halves[half] + change @ mean_projection
            own_half = own_half + change @ projections[half]
    return _Refit(of_halves, own_half)


def _changes_between_halves(
    contributions: list[Any], refit: _Refit, fit: Fit, places: Integers, n: int, root: Any
) -> tuple[float, float]:
    """Return the squared difference of c between halves, for a fixed and for a re-estimated fit.

    When a half of the samples changes the fit by db, it changes c by (1 - A/N) db beside the mean
    of y e.
    """
    xp = array_namespace(root)
    with_refit = []
    for contribution, change in zip(contributions, refit.of_halves, strict=True):
        further = n * change - fit.control_products @ change
        with_refit.append(contribution + rows_at(further, places))
    fixed = float(xp.sum(((contributions[0] - contributions[1]) @ root) ** 2))
    refitted = float(xp.sum(((with_refit[0] - with_refit[1]) @ root) ** 2))
    return fixed, refitted


def _joined(parts: list[SecondOrder]) -> SecondOrder:
    """Put together what was found for parts of the functions."""
    first = parts[0]
    xp = array_namespace(first.coordinates)
    return replace(
        first,
        coordinates=xp.concat([part.coordinates for part in parts]),
        bias=np.concatenate([part.bias for part in parts]),
        variance=np.concatenate([part.variance for part in parts]),
        group_variance=np.concatenate([part.group_variance for part in parts]),
        group_covariance=np.sum([part.group_covariance for part in parts], axis=0),
        jackknife_totals=np.sum([part.jackknife_totals for part in parts], axis=0),
        half_totals=np.sum([part.half_totals for part in parts], axis=0),
        fixed_fit_change=sum(part.fixed_fit_change for part in parts),
        refitted_change=sum(part.refitted_change for part in parts),
    )
