"""The fit of the readouts that serves as a control variate: ridge fits, chosen on held-out rows.

The functions of the inputs that the readouts are fitted by are the *controls*; phi are their
values. Most of them are *reported functions* y, whose capacities the user asks for; others have
higher degrees. Readouts z are whitened: their sample covariance is 1.

Any fit f = b' phi of the readouts has known means E[y f] and E[f f']; only the residual e = z - f
has to be averaged over samples. Its mean square for samples left out of the fit is the variance of
everything that is estimated, so the fit with the smallest mean square is best.

Directions of the readouts that are mostly noise are best not fitted at all, and clean ones with
many controls, so each direction takes its own fit. The choice is cross-fitted: the directions for
one half of the samples are found with the residuals of the other half, and the residuals of both
choose the fit. If the same residuals found the directions and chose their fits, directions of pure
noise would seem predictable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import numpy as np

from .._arrays import (
    array_namespace,
    cholesky,
    invert_triangle,
    is_on_device,
    multiply_by_triangle,
    multiply_tall,
    solve_triangle,
    subtract_into,
    take_rows,
    to_library_of,
    to_numpy,
)
from .._threads import cores_for_matrices, parallel_map
from ..basis import ProductBasis
from ..kernels import AddableSums, Ridge
from ..samples import Samples
from ..typing import Floats, Integers
from ._evidence import Evidence
from ._groups import Groups

# Ridge penalties per sample of the first fits, which have no prior, and of the fits with a prior.
# The residual of a fit changes little within a factor of ten of its best penalty: twice as many
# penalties gave the same errors (docs/estimators.md).
RIDGE_PENALTIES = (0.0, 1e-2, 1.0)
RIDGE_PENALTIES_WITH_PRIOR = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
# Rows that are held out to compare the fits; twice as many gave the same errors.
N_HELDOUT_ROWS = 1024
# Vectors of random signs from which leverages are found, to a quarter of themselves; twice as many
# gave the same errors.
N_SIGNS = 32
# A direction takes another fit than the common one if its residual power falls below this share:
# fewer fits are faster, and less the work of chance.
MAX_RESIDUAL_RATIO = 0.98

# Controls per sample: leverages come near 1 beyond it.
MAX_CONTROLS_PER_SAMPLE = 0.4
# Controls per reported function: degrees beyond these were found to hold nothing.
MAX_CONTROLS_PER_FUNCTION = 4.0
# Controls that cost no time, so that so many are used although fewer functions are reported.
N_CHEAP_CONTROLS = 1000
# Controls whose matrices fit into the memory of every machine.
MAX_CONTROLS = 4000

# Standard errors from which on a capacity stands out and has a prior of its own.
MIN_STANDARD_ERRORS_FOR_OWN_PRIOR = 2.0
# Prior of a control, relative to the noise of one capacity, below which the second fits leave it
# out.
MIN_PRIOR_TO_NOISE = 0.05
# Least prior, relative to the largest: it bounds the penalties.
MIN_RELATIVE_PRIOR = 1e-8
# Power of a principal direction, relative to the largest, below which it is rounding.
MIN_RELATIVE_POWER = 1e-12
# Eigenvalues of G are 1 for whitened readouts and many samples; estimates below this are noise.
MIN_EIGENVALUE = 0.1
# Largest eigenvalue of a fit's own G, in units of sqrt(rank / N) above 1, beyond which least
# squares takes its place. A fit by functions that are large where few samples fall can predict
# readouts between the samples that are far too large.
MAX_EXCESS_OF_EIGENVALUE = 3.0
# E[y^4] of a function, relative to the number of samples, above which few samples decide its mean
# square where they have no weights. The tails of the inputs are then not sampled, and neither least
# squares nor a short error bar is safe.
MAX_FOURTH_MOMENT_PER_SAMPLE = 0.1
# Least 1 - h of a single sample, so that it cannot make a bias diverge or decide a p-value. For a
# bias (`_residual_sums`) h = |e|²/N is what its residual e adds to the covariance of the residuals,
# in units of G. For p-values of sequences (`_sequence`) h = |y|²/N is its leverage in the fit by
# the functions y. Neither is the leverage in the ridge fit.
MIN_SAMPLE_MARGIN = 0.2

# Values of controls that are made at a time, few enough to stay near the processor.
VALUES_PER_PIECE = 2_000_000
# The same on a device, where they take 2 GB.
VALUES_PER_PIECE_ON_DEVICE = 250_000_000
# Rows of a piece at least; fewer would cost more in Python than in the products.
MIN_ROWS_PER_PIECE = 64

# The held-out rows of a pass that compares no fits.
NO_HELDOUT_ROWS = np.empty(0, dtype=int)
# The number of a direction's fit where no fit at all is best.
NO_FIT = -1


class HeldoutRows(NamedTuple):
    """Values of the controls and whitened readouts at held-out rows."""

    phi: Any  # (controls, rows)
    z: Any  # (rows, rank)


@dataclass(frozen=True, eq=False)
class ControlSums(AddableSums):
    """Sums over samples of products of the controls phi and the whitened readouts z."""

    count: int
    phi_phi: Any  # phi phi', (controls, controls)
    phi_z: Any  # phi z', (controls, rank)
    z_z: Any  # z z', (rank, rank)
    heldout: list[HeldoutRows] = field(default_factory=list)  # of each piece of rows

    def without(self, part: ControlSums) -> ControlSums:
        """Return the sums over the samples that are not in a part of them."""
        return ControlSums(
            count=self.count - part.count,
            phi_phi=self.phi_phi - part.phi_phi,
            phi_z=self.phi_z - part.phi_z,
            z_z=self.z_z - part.z_z,
        )


@dataclass(frozen=True, eq=False)
class HalfFit:
    """The fit for one half of the samples, in its own directions of the readouts."""

    fraction: float  # of all samples: one half, unless the number of groups is odd
    rest: int  # number of the candidate that most directions chose
    directions: Any  # those that chose another one, orthonormal, (rank, directions)
    candidate_numbers: Integers  # of the candidates that these chose, (directions,)
    coefficients: Any  # b of all readouts, (controls, rank)

    @property
    def used_numbers(self) -> list[int]:
        """Numbers of the candidates that some direction chose, in order; `NO_FIT` may be one."""
        return sorted({self.rest, *self.candidate_numbers.tolist()})

    def project(self, rows: Any, number: int) -> Any:
        """Return the part of rows (rows, rank) along the directions that chose a candidate."""
        if number == self.rest:
            return rows - (rows @ self.directions) @ self.directions.T
        chosen = np.flatnonzero(self.candidate_numbers == number)
        directions = take_rows(self.directions.T, to_library_of(chosen, self.directions))
        return (rows @ directions.T) @ directions

    def scale(self, rows: Any, factors: dict[int, Any]) -> Any:
        """Return rows whose parts are multiplied by the factors of their candidates.

        `factors` has a number for each row, (rows,), for each of `used_numbers`.
        """
        scaled = rows * factors[self.rest][:, None]
        if not len(self.candidate_numbers):
            return scaled
        xp = array_namespace(rows)
        numbers, place = np.unique(self.candidate_numbers, return_inverse=True)
        excess = xp.stack([factors[number] - factors[self.rest] for number in numbers.tolist()])
        of_directions = take_rows(excess, to_library_of(place, rows)).T
        scaled += ((rows @ self.directions) * of_directions) @ self.directions.T
        return scaled


@dataclass(frozen=True, eq=False)
class Metric:
    """The inverse of G, as 1 - U diag(d) U'.

    G differs from 1 in as many directions U as there are controls at most, which are few where
    there are many readouts.
    """

    directions: Any  # U, orthonormal eigenvectors, (rank, directions)
    weights: Any  # d, (directions,)
    largest_eigenvalue: float  # of G

    def apply(self, rows: Any) -> Any:
        """Return rows (rows, rank) times the inverse of G."""
        return rows - ((rows @ self.directions) * self.weights) @ self.directions.T

    def power(self, rows: Any) -> Any:
        """Return x G^-1 x' of each row x, (rows,)."""
        along = rows @ self.directions
        xp = array_namespace(rows)
        return xp.vecdot(rows, rows) - xp.vecdot(along * self.weights, along)

    def weighted_along(self, rows: Any) -> Any:
        """Return what `product` needs of rows: their components along U, times d."""
        return (rows @ self.directions) * self.weights

    def product(self, rows: Any, weighted_along: Any, others: Any) -> Any:
        """Return x G^-1 y' of each row x and the row y at its place, (rows,).

        `weighted_along` is that of the rows x.
        """
        xp = array_namespace(rows)
        return xp.vecdot(rows, others) - xp.vecdot(weighted_along, others @ self.directions)


@dataclass(frozen=True, eq=False)
class Candidate:
    """One ridge fit, and its residuals at the held-out rows."""

    fit: Ridge
    margin: Any  # 1 - leverage of the held-out rows, (rows,)
    mean_margin: float
    residuals: Any  # in a fit without each row, (rows, rank)


@dataclass(frozen=True, eq=False)
class Fit:
    """The chosen fits, and first estimates of c = E[phi z] and G^-1 from sums alone."""

    controls: ProductBasis
    positions: Integers  # of the reported functions among the controls; -1: is not a control
    candidates: list[Candidate]
    halves: list[HalfFit]  # two of them
    coefficients: Any  # b, the mean over all samples of those of the halves, (controls, rank)
    first_c: Any  # (controls, rank)
    first_metric: Metric
    phi_phi: Any  # sums of phi phi', (controls, controls)
    residual_power: float  # mean square of the held-out residuals, summed over readouts

    @property
    def largest_eigenvalue(self) -> float:
        """The largest eigenvalue of the first estimate of G."""
        return self.first_metric.largest_eigenvalue


class Piece(NamedTuple):
    """Consecutive rows: inputs, values of some functions, and whitened readouts."""

    first: int  # number of the first row
    inputs: Any  # (rows, inputs)
    phi: Any  # (functions, rows)
    z: Any  # (rows, rank)


def fit_readouts(evidence: Evidence, kind: str, groups: Groups) -> Fit:
    """Fit the readouts by controls: one pass for the sums, then a choice among ridge fits.

    The first fits use the reported functions alone. The capacities that they find become the prior
    of further fits (empirical Bayes), which also use higher degrees. A second round of priors would
    lower the residual by less than 3 %, also with fewer samples than functions.

    A fit whose own G is too large gives way to least squares, if the G of that is smaller.

    `kind` is ``"auto"``, ``"least-squares"`` or ``"none"``.
    """
    selection = _prepare_selection(evidence, groups)
    with cores_for_matrices(evidence.rank):
        return _select_fit(selection, kind, evidence)


def _select_fit(selection: _FitSelection, kind: str, evidence: Evidence) -> Fit:
    """Choose among the fits of each kind of penalty."""
    penalties = {"none": (), "least-squares": (0.0,), "auto": RIDGE_PENALTIES}[kind]
    is_reported = np.isin(np.arange(len(selection.controls)), selection.positions)
    equal_penalty_weights = np.where(is_reported, 1.0, np.inf)
    first_candidates = selection.ridge_fits(equal_penalty_weights, penalties)
    first_fit = selection.select(first_candidates)
    if kind != "auto":
        return first_fit

    prior_penalty_weights = selection.penalty_weights_from_prior(first_fit)
    if prior_penalty_weights is None:
        return first_fit
    candidates = first_candidates[:1]
    candidates += selection.ridge_fits(prior_penalty_weights, RIDGE_PENALTIES_WITH_PRIOR)
    second_fit = selection.select(candidates)
    best = second_fit if second_fit.residual_power < first_fit.residual_power else first_fit
    has_least_squares = len(first_candidates) == len(penalties)  # its penalty is the first, 0
    if has_least_squares and _predicts_too_much(best, evidence):
        least_squares = selection.select(first_candidates[:1])
        if least_squares.largest_eigenvalue < best.largest_eigenvalue:
            return least_squares
    return best


def _predicts_too_much(fit: Fit, evidence: Evidence) -> bool:
    """Whether the fit's own G is larger than chance explains, and the samples show its tails."""
    excess = fit.largest_eigenvalue - 1
    limit = MAX_EXCESS_OF_EIGENVALUE * (evidence.rank / evidence.n_samples) ** 0.5
    return excess > limit and not few_samples_decide(evidence)


def few_samples_decide(evidence: Evidence) -> bool:
    """Whether E[y^4] of some function is so large that a few samples decide its mean square."""
    if evidence.samples.sqrt_sample_weight is not None:
        return False
    limit = MAX_FOURTH_MOMENT_PER_SAMPLE * evidence.n_samples
    return float(evidence.fourth_moments.max()) > limit


def largest_eigenvalue(gram: Any, limit: float) -> float:
    """Return the largest eigenvalue of G if it is above a limit, else the limit.

    It is 1 for whitened readouts and many samples.
    """
    if float(_last_pivot(-gram, limit)) > 0:
        return limit
    return max(float(array_namespace(gram).linalg.eigvalsh(gram)[-1]), limit)


def all_eigenvalues_above(gram: Any, limit: float) -> bool:
    """Whether all eigenvalues of G are above a limit."""
    return bool(float(_last_pivot(gram, -limit)) > 0)


def _last_pivot(matrix: Any, shift: float) -> Any:
    """Return a number above 0 if a matrix plus `shift` on its diagonal is positive definite.

    Else it is NaN. The number stays on the device of the matrix.
    """
    xp = array_namespace(matrix)
    return cholesky(matrix, shift * xp.ones_like(matrix[0, :]))[-1, -1]


def _prepare_selection(evidence: Evidence, groups: Groups) -> _FitSelection:
    """Make the pass over the samples that all fits need."""
    n = evidence.n_samples
    controls = choose_controls(evidence)
    permutation = np.random.default_rng(0).permutation(n)
    heldout_rows = np.sort(permutation[:N_HELDOUT_ROWS])
    whitener = evidence.whitener
    # With more readouts than controls the sums take less time to whiten than all rows. That costs
    # no digits where the readouts are nearly uncorrelated.
    whitens_sums = evidence.is_well_conditioned and evidence.rank > len(controls)
    sum_controls = partial(
        control_sums,
        heldout_rows=heldout_rows,
        with_z_z=False,
        **({"mean": whitener["mean"]} if whitens_sums else whitener),
    )
    samples = replace(evidence.samples, basis=controls)
    sums: ControlSums = evidence.engine.fold(samples, sum_controls)

    xp = array_namespace(sums.phi_z)
    phi = xp.concat([piece.phi for piece in sums.heldout], axis=1)
    z = xp.concat([piece.z for piece in sums.heldout])
    if whitens_sums:
        with cores_for_matrices(evidence.rank):
            z = _whitened(z, evidence)
            sums = replace(sums, phi_z=_whitened(sums.phi_z, evidence))
    n_first_groups = len(groups.edges) // 2
    middle = int(groups.edges[n_first_groups])
    if groups.of_row is None:
        in_first_half = heldout_rows < middle
    else:
        in_first_half = groups.of_row[heldout_rows] < n_first_groups
        order = to_library_of(np.argsort(~in_first_half, kind="stable"), z)
        phi = take_rows(phi.T, order).T
        z = take_rows(z, order)
    return _FitSelection(
        controls=controls,
        positions=evidence.basis.positions_in(controls),
        sums=sums,
        n_constant=int(evidence.samples.constant),
        half_fractions=(middle / n, 1 - middle / n),
        phi=phi,
        z=z,
        n_heldout_in_first_half=int(np.count_nonzero(in_first_half)),
    )


def _whitened(rows: Any, evidence: Evidence) -> Any:
    """Return rows of whitened readouts from such of centred ones; the constant goes first."""
    n_constant = int(evidence.samples.constant)
    whitened = multiply_by_triangle(rows[:, n_constant:], evidence.whitener["whitening"])
    return array_namespace(rows).concat([rows[:, :n_constant], whitened], axis=1)


def control_sums(
    samples: Samples,
    start: int,
    stop: int,
    *,
    heldout_rows: Integers = NO_HELDOUT_ROWS,
    with_z_z: bool = True,
    **whitener: Any,
) -> ControlSums:
    """Return the sums over some rows; the controls are the basis of these samples.

    Without `with_z_z` the sum z z' is 0: over all samples it is known.
    """
    total: ControlSums | None = None
    for piece in iterate_pieces(samples, start, stop, samples.basis, **whitener):
        phi = piece.phi
        z = piece.z
        rows = heldout_rows - samples.first_row - piece.first
        rows_in_piece = to_library_of(rows[(rows >= 0) & (rows < z.shape[0])], z)
        heldout = HeldoutRows(take_rows(phi.T, rows_in_piece).T, take_rows(z, rows_in_piece))
        sums = ControlSums(
            count=z.shape[0],
            phi_phi=phi @ phi.T,
            phi_z=multiply_tall(phi, z),
            z_z=z.T @ z if with_z_z else 0.0,
            heldout=[heldout],
        )
        total = sums if total is None else total.absorb(sums)
    return cast(ControlSums, total)


@dataclass(frozen=True, eq=False)
class _FitSelection:
    """The choice among ridge fits for each direction of the readouts, by held-out residuals.

    A residual divided by the margin 1 - leverage is that of the fit without its row. So the rows
    are held out although all fits come from the sums over all samples.
    """

    controls: ProductBasis
    positions: Integers  # of the reported functions among the controls
    sums: ControlSums
    n_constant: int  # 1 where the first readout is the constant, which is known exactly
    half_fractions: tuple[float, float]  # of all samples, in each half
    # Values of the controls at the held-out rows, those of the first half first, (controls, rows).
    phi: Any
    z: Any  # whitened readouts at these rows, (rows, rank)
    n_heldout_in_first_half: int

    def ridge_fits(self, penalty_weights: Floats, penalties: tuple[float, ...]) -> list[Candidate]:
        """Return a fit for each penalty, multiplied by the penalty weight of each control.

        Controls of infinite weight are left out. There is no fit where the controls are not
        independent on the samples.
        """
        used = np.flatnonzero(np.isfinite(penalty_weights))
        penalties_of_controls = (
            self.sums.count * penalty * penalty_weights[used] for penalty in penalties
        )
        fits = Ridge.fits(
            self.sums.phi_phi, self.sums.phi_z, used, penalties_of_controls, n_signs=N_SIGNS
        )
        map_fits = map if is_on_device(self.z) else parallel_map
        return list(map_fits(self._candidate, fits))

    def _candidate(self, fit: Ridge) -> Candidate:
        margin = fit.margin(self.phi)
        residuals = (self.z - self.phi.T @ fit.coefficients) / margin[:, None]
        mean_margin = float(array_namespace(margin).mean(margin))
        return Candidate(fit, margin, mean_margin, residuals)

    def select(self, candidates: list[Candidate]) -> Fit:
        """Return the best fit of each direction, or none at all, and the first estimates."""
        heldout = self._heldout_residuals(candidates)
        halves = list[HalfFit]()
        margins = list[float]()
        residual_power = 0.0
        for half, fraction in enumerate(self.half_fractions):
            choice = self._choose(heldout, other_half=1 - half)
            halves.append(self._half_fit(choice, fraction, candidates))
            residual_power += choice.residual_power / (2 * self.z.shape[0])
            for number, count in choice.counts.items():
                if number != NO_FIT:
                    margins += count * [candidates[number].mean_margin]

        first, second = halves
        b = first.fraction * first.coefficients + second.fraction * second.coefficients
        phi_f = self.sums.phi_phi @ b  # the sum of phi f'
        # The residuals of a fit are too small by the margins of their samples.
        mean_margin = float(np.mean(margins)) if margins else 1.0
        first_c = b + (self.sums.phi_z - phi_f) / (self.sums.count * mean_margin)
        # E[f f'] = b'b is known and replaces its sample mean; that of z z' is 1.
        first_metric = metric_of_change(b, b - phi_f / self.sums.count)
        return Fit(
            controls=self.controls,
            positions=self.positions,
            candidates=candidates,
            halves=halves,
            coefficients=b,
            first_c=first_c,
            first_metric=first_metric,
            phi_phi=self.sums.phi_phi,
            residual_power=residual_power,
        )

    def _heldout_residuals(self, candidates: list[Candidate]) -> _HeldoutResiduals:
        """Return the residuals of no fit at all and of every candidate, and which is smallest.

        The constant readout, which is exact, is left out.
        """
        xp = array_namespace(self.z)
        residuals = [self.z, *(candidate.residuals for candidate in candidates)]
        residuals = [rows[:, self.n_constant :] for rows in residuals]
        powers = xp.stack([xp.sum(xp.vecdot(rows, rows)) for rows in residuals])
        total_power = to_numpy(powers)
        common = 0
        if candidates:
            common = 1 + int(np.argmin(total_power[1:]))
        return _HeldoutResiduals(candidates, residuals, total_power, common)

    def _components_along(self, directions: Any, heldout: _HeldoutResiduals) -> list[Any]:
        """Return the components of all residuals along directions, (rows, directions) each.

        Those of few controls follow faster from the components of readouts and coefficients.
        """
        n_rows, n_readouts = heldout.residuals[0].shape
        n_controls = len(self.controls)
        if n_controls * (n_rows + n_readouts) > n_rows * n_readouts:
            return [rows @ directions for rows in heldout.residuals]
        z_along = heldout.residuals[0] @ directions
        components = [z_along]
        for candidate in heldout.candidates:
            coefficients_along = candidate.fit.coefficients[:, self.n_constant :] @ directions
            residuals_along = subtract_into(z_along, self.phi.T @ coefficients_along)
            components.append(residuals_along / candidate.margin[:, None])
        return components

    def _choose(self, heldout: _HeldoutResiduals, other_half: int) -> _Choice:
        """Let each direction choose its fit; the directions are those of the other half.

        The residuals of both halves are added up for the choice. Those of the other half flatter
        the directions that they found, but those of this half do not, and they are half of the sum.
        The rows that a fit is used for have no part in its directions, only in the choice of one
        among a few candidates, and all held-out rows make that choice less noisy.

        With more readouts than rows, what the directions leave takes one fit as a whole.
        """
        xp = array_namespace(self.z)
        residuals = heldout.residuals
        total_power = heldout.total_power
        common = heldout.common
        middle = self.n_heldout_in_first_half
        of_halves = (residuals[common][:middle, :], residuals[common][middle:, :])
        directions = _principal_directions(of_halves[other_half])
        # Residual power of every fit along every direction, (1 + candidates, directions).
        components = self._components_along(directions, heldout)
        power = to_numpy(xp.stack([xp.sum(rows * rows, axis=0) for rows in components]))
        best = np.argmin(power, axis=0)
        hardly_better = power.min(axis=0) > MAX_RESIDUAL_RATIO * power[common]
        best[hardly_better] = common
        chosen_power = float(np.take_along_axis(power, best[None], axis=0).sum())
        counts = {int(number) - 1: int(np.sum(best == number)) for number in np.unique(best)}

        n_left = residuals[0].shape[1] - len(best)
        if n_left:
            power_left = total_power - power.sum(axis=1)
            rest = int(np.argmin(power_left))
            if power_left[rest] > MAX_RESIDUAL_RATIO * power_left[common]:
                rest = common
            chosen_power += float(power_left[rest])
            counts[rest - 1] = counts.get(rest - 1, 0) + n_left
        else:
            rest = int(np.argmax(np.bincount(best, minlength=1)))
        others = np.flatnonzero(best != rest)
        columns = take_rows(directions.T, to_library_of(others, directions)).T
        return _Choice(
            rest=rest - 1,
            directions=columns,
            candidate_numbers=best[others] - 1,
            counts=counts,
            residual_power=chosen_power,
        )

    def _half_fit(self, choice: _Choice, fraction: float, candidates: list[Candidate]) -> HalfFit:
        """Return the fit of one half: in each direction, the fit which that direction chose."""
        phi_z = self.sums.phi_z
        xp = array_namespace(phi_z)
        n_controls, rank = phi_z.shape
        # The constant readout is a direction of its own, which the first control predicts.
        constant = to_library_of(np.eye(rank, self.n_constant), phi_z)
        above = to_library_of(np.zeros((self.n_constant, choice.directions.shape[1])), phi_z)
        half = HalfFit(
            fraction=fraction,
            rest=choice.rest,
            directions=xp.concat([constant, xp.concat([above, choice.directions], axis=0)], axis=1),
            candidate_numbers=np.concatenate(
                [np.full(self.n_constant, NO_FIT), choice.candidate_numbers]
            ),
            coefficients=None,
        )
        is_constant = np.arange(rank) < self.n_constant
        b = to_library_of(np.eye(n_controls, rank) * is_constant, phi_z)
        for number in half.used_numbers:
            if number != NO_FIT:
                b = b + half.project(candidates[number].fit.coefficients, number)
        return replace(half, coefficients=b)

    def penalty_weights_from_prior(self, fit: Fit) -> Floats | None:
        """Return 1 / (estimated capacity) of each control, relative to the largest capacity.

        A control without estimated capacity has an infinite weight; None if all are without.
        """
        noise = fit.residual_power / self.sums.count
        capacity = to_numpy(fit.first_metric.power(fit.first_c)) - noise
        # For noise d of c, |c + d|² has a variance of 4 C noise if all of d lies along c, and less
        # otherwise. That of |d|² itself is 2 noise² / nu, here for nu = 4 directions.
        error = np.sqrt(4 * np.maximum(capacity, 0) * noise + noise**2 / 2)
        stands_out = capacity > MIN_STANDARD_ERRORS_FOR_OWN_PRIOR * error
        prior = self._prior_by_degree(capacity, stands_out)
        prior = np.where(stands_out, np.maximum(capacity, prior), prior)
        if prior.max() <= 0:
            return None
        is_used = prior >= MIN_PRIOR_TO_NOISE * noise
        is_used[0] = True  # the constant
        penalty_weights = 1 / np.maximum(prior / prior.max(), MIN_RELATIVE_PRIOR)
        return np.where(is_used, penalty_weights, np.inf)

    def _prior_by_degree(self, capacity: Floats, stands_out: Any) -> Floats:
        """Return for each control the mean capacity of the faint controls of its degree.

        Faint are those whose own capacity does not stand out of the noise.
        """
        degrees = self.controls.degrees
        prior = np.empty(len(capacity))
        for degree in np.unique(degrees):
            same_degree = degrees == degree
            faint = same_degree & ~stands_out
            if faint.any():
                prior[same_degree] = max(capacity[faint].mean(), 0.0)
            else:
                prior[same_degree] = capacity[same_degree].min()
        return prior


class _HeldoutResiduals(NamedTuple):
    """Residuals at the held-out rows: the first of no fit at all, the others of the candidates."""

    candidates: list[Candidate]
    residuals: list[Any]  # without the constant readout, (rows, readouts) each
    total_power: Floats  # their sums of squares
    common: int  # place of the candidate with the smallest one; 0 where there is no candidate


@dataclass(frozen=True, eq=False)
class _Choice:
    """Directions of the readouts without the constant, and the candidate that each chose."""

    rest: int  # candidate of all directions that are not listed, NO_FIT where no fit is best
    directions: Any  # in columns, (readouts, directions)
    candidate_numbers: Integers  # of each of these directions
    counts: dict[int, int]  # how many directions chose each candidate
    residual_power: float  # sum over the held-out rows and directions


def _principal_directions(rows: Any) -> Any:
    """Return the principal directions of rows, in columns: all, or as many as there are rows.

    Of the latter those are left out that only rounding tells apart.
    """
    xp = array_namespace(rows)
    n_rows, n_columns = rows.shape
    if n_columns <= n_rows:
        return xp.linalg.eigh(rows.T @ rows)[1]
    power, combinations = xp.linalg.eigh(rows @ rows.T)
    is_clear = to_numpy(power) > MIN_RELATIVE_POWER * float(power[-1])
    clear = to_library_of(np.flatnonzero(is_clear), rows)
    directions = take_rows(combinations.T, clear) @ rows
    directions = directions / xp.sqrt(take_rows(power, clear))[:, None]
    # They are orthogonal up to rounding, which is large where the power is small.
    return solve_triangle(cholesky(directions @ directions.T), directions).T


def metric_of_change(left: Any, right: Any) -> Metric:
    """Return the inverse of G = 1 + left' right, a symmetric matrix, for (controls, rank) arrays.

    Eigenvalues of G that are far from 1 are noise and are limited.
    """
    xp = array_namespace(left)
    n_controls, rank = left.shape
    if rank <= n_controls:
        changes, directions = xp.linalg.eigh(left.T @ right)
    else:
        # What differs from 1 lies in the space that the rows of `left` span.
        space = _principal_directions(left)
        changes, directions = xp.linalg.eigh((left @ space).T @ (right @ space))
        directions = space @ directions
    limited = xp.clip(1 + changes, MIN_EIGENVALUE, 1 / MIN_EIGENVALUE)
    return Metric(
        directions=directions,
        weights=1 - 1 / limited,
        largest_eigenvalue=1 + max(float(changes[-1]), 0.0),
    )


def whitening_from_gram(gram: Any, is_within_limits: bool = False) -> tuple[Any, float]:
    """Return G^-1/2, up to a rotation, and the smallest eigenvalue of G if it is too small.

    A capacity c'G^-1c is the sum of squares of c'G^-1/2. The samples' own covariance of whitened
    readouts is 1, so G, which is a better estimate, is near 1; eigenvalues far from it are noise
    and are limited. In place of an eigenvalue that is not too small, the limit is returned.
    `is_within_limits` says that no eigenvalue has to be limited, if that is known.
    """
    xp = array_namespace(gram)
    with cores_for_matrices(gram.shape[0]):
        if not is_within_limits:
            above = _last_pivot(gram, -MIN_EIGENVALUE)
            below = _last_pivot(-gram, 1 / MIN_EIGENVALUE)
            is_within_limits = bool(np.all(to_numpy(xp.stack([above, below])) > 0))
        if is_within_limits:
            return invert_triangle(cholesky(gram).T), MIN_EIGENVALUE
        eigenvalues, directions = xp.linalg.eigh(gram)
    limited = xp.clip(eigenvalues, MIN_EIGENVALUE, 1 / MIN_EIGENVALUE)
    return directions / xp.sqrt(limited), min(float(eigenvalues[0]), MIN_EIGENVALUE)


def iterate_pieces(
    samples: Samples,
    start: int,
    stop: int,
    basis: ProductBasis,
    n_arrays: int = 1,
    **whitener: Any,
) -> Iterator[Piece]:
    """Yield consecutive pieces of some rows, each as long as products are fast and memory suffices.

    A caller that makes `n_arrays` arrays of the size of `phi` at a time gets pieces shorter by that
    factor. The values phi are overwritten by those of the next piece.
    """
    n_values = VALUES_PER_PIECE_ON_DEVICE if samples.x.on_device else VALUES_PER_PIECE
    step = max(n_values // (n_arrays * len(basis)), MIN_ROWS_PER_PIECE)
    values = None
    for first in range(start, stop, step):
        last = min(first + step, stop)
        u = samples.inputs(first, last)
        values = basis.values(u, values)
        yield Piece(
            first=first,
            inputs=u,
            phi=samples.apply_weights(values.T, first).T,
            z=samples.readouts(first, last, **whitener),
        )


def choose_controls(evidence: Evidence) -> ProductBasis:
    """Return the reported functions and further ones of higher degree.

    If the reported ones are too many, return those with the largest raw capacities.
    """
    basis = evidence.basis
    n_controls = max_controls(evidence.n_samples, len(basis))
    if len(basis) <= n_controls:
        return _extended(basis, n_controls)
    strongest = np.argsort(-evidence.raw)[:n_controls]
    return basis.subset(np.union1d([0], strongest))


@lru_cache(maxsize=8)
def _extended(basis: ProductBasis, n_controls: int) -> ProductBasis:
    """Add functions of higher degree; they are kept, because one basis is often used again."""
    return basis.extended(n_controls)


def max_controls(n_samples: int, n_terms: int) -> int:
    """Return how many controls there may be.

    >>> max_controls(n_samples=1024, n_terms=66), max_controls(n_samples=8192, n_terms=1287)
    (264, 1287)
    """
    useful = min(MAX_CONTROLS_PER_FUNCTION * n_terms, max(n_terms, N_CHEAP_CONTROLS))
    return int(min(MAX_CONTROLS_PER_SAMPLE * n_samples, useful, MAX_CONTROLS))
