"""The parts of the control-variate method: ridge fits from sums, groups, two passes, and warnings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataWarning
from infocap.estimators._fit import NO_FIT, choose_controls, fit_readouts
from infocap.estimators._residual_sums import (
    MIN_RELATIVE_MARGIN,
    MIN_RELATIVE_MARGIN_FOR_ERRORS,
)
from infocap.estimators._second_pass import run_second_pass
from infocap.kernels import MIN_EXACT_LEVERAGE, Ridge

BASIS = infocap.product_basis("legendre", 2, 6)  # 28 functions
DEVICE = infocap.systems.RandomFeatures(2, 12, gain=2, noise=0.05, seed=1)


def evidence_of(u, x=None, basis=BASIS, **options):
    """The evidence at some inputs, of the usual device if no readouts are given."""
    if x is None:
        x = DEVICE(u, seed=2)
    return infocap.estimators.gather_evidence(u, x, basis, **options)


# Ridge regression from sums of products.

N_FUNCTIONS = 30
ALL = np.arange(N_FUNCTIONS)
KEPT = pytest.mark.parametrize(
    "kept", [ALL, np.array([0, 3, 4, 11, 29])], ids=["all functions", "some functions"]
)


def values_and_readouts(n=120):
    """Values of functions (n, functions), and readouts (n, 4)."""
    generator = np.random.default_rng(0)
    return generator.standard_normal((n, N_FUNCTIONS)), generator.standard_normal((n, 4))


def ridge_fits(y, z, penalties, kept=ALL, n_signs=8):
    return list(Ridge.fits(y.T @ y, y.T @ z, kept, penalties, n_signs))


@KEPT
@pytest.mark.parametrize("penalty", [0.0, 0.3, 50.0])
def test_ridge_coefficients_are_those_of_augmented_least_squares(kept, penalty):
    y, z = values_and_readouts()
    penalties = penalty * np.linspace(1, 5, len(kept))
    (fit,) = ridge_fits(y, z, [penalties], kept)
    augmented_values = np.vstack([y[:, kept], np.diag(np.sqrt(penalties))])
    augmented_readouts = np.vstack([z, np.zeros((len(kept), 4))])
    expected = np.linalg.lstsq(augmented_values, augmented_readouts, rcond=None)[0]
    assert_allclose(fit.coefficients[kept], expected, atol=1e-12)
    assert not np.delete(fit.coefficients, kept, axis=0).any()


@KEPT
def test_a_ridge_fit_solves_for_other_right_hand_sides(kept):
    y, z = values_and_readouts()
    penalties = np.linspace(1, 5, len(kept))
    (fit,) = ridge_fits(y, z, [penalties], kept)
    right = np.random.default_rng(1).standard_normal((N_FUNCTIONS, 7))
    matrix = y[:, kept].T @ y[:, kept] + np.diag(penalties)
    assert_allclose(fit.solve(right)[kept], np.linalg.solve(matrix, right[kept]), atol=1e-12)
    assert not np.delete(fit.solve(right), kept, axis=0).any()


@KEPT
def test_margins_are_one_minus_the_diagonal_of_the_hat_matrix(kept):
    """Large leverages exactly, small ones to a fifth with 64 vectors of signs."""
    y, z = values_and_readouts()
    y[:4] *= 20  # a few samples that decide their own fit
    penalties = np.linspace(1, 5, len(kept))
    (fit,) = ridge_fits(y, z, [penalties], kept, n_signs=64)
    used = y[:, kept]
    exact = np.diag(used @ np.linalg.solve(used.T @ used + np.diag(penalties), used.T))
    leverage = 1 - fit.margin(y.T)
    is_large = leverage > MIN_EXACT_LEVERAGE
    assert 2 <= is_large.sum() < 60
    assert_allclose(leverage[is_large], exact[is_large], atol=1e-12)
    relative_error = leverage[~is_large] / exact[~is_large] - 1
    assert np.sqrt(np.mean(relative_error**2)) < 1.5 * np.sqrt(2 / 64)
    assert abs(leverage.sum() / exact.sum() - 1) < 0.05


def test_residuals_over_margins_are_those_of_fits_without_the_sample():
    y, z = values_and_readouts(n=40)
    y[3] *= 20
    penalties = np.linspace(1, 5, N_FUNCTIONS)
    (fit,) = ridge_fits(y, z, [penalties], n_signs=64)
    residual = (z - y @ fit.coefficients)[3] / fit.margin(y.T)[3]
    rest = np.delete(np.arange(40), 3)
    matrix = y[rest].T @ y[rest] + np.diag(penalties)
    coefficients = np.linalg.solve(matrix, y[rest].T @ z[rest])
    assert_allclose(residual, z[3] - y[3] @ coefficients, atol=1e-10)


def test_functions_that_depend_on_each_other_have_no_fit_without_a_penalty():
    y, z = values_and_readouts()
    y[:, 7] = y[:, 3] - 2 * y[:, 5]
    no_penalty = np.zeros(N_FUNCTIONS)
    without_one = np.delete(ALL, 7)
    assert len(ridge_fits(y, z, [no_penalty])) == 0
    assert len(ridge_fits(y, z, [no_penalty[without_one]], without_one)) == 1
    assert len(ridge_fits(y, z, [no_penalty, np.ones(N_FUNCTIONS)])) == 1


def test_fewer_samples_than_functions_have_no_fit_without_a_penalty():
    y, z = values_and_readouts(n=20)
    assert len(ridge_fits(y, z, [np.zeros(N_FUNCTIONS)])) == 0


# Groups of samples that are independent of each other.

GROUPED = [BASIS, infocap.product_basis("hermite", 2, 4), infocap.product_basis("legendre", 1, 10)]


def count_groups(basis, u, **options):
    x = np.tanh(u) + 0.1 * np.sin(9 * u)
    return evidence_of(u, x, basis, **options).n_groups


@pytest.mark.parametrize("basis", GROUPED, ids=repr)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
class TestIndependentGroups:
    """Random points have 16 groups, designs as many as blocks; the inputs alone tell which."""

    def test_random_points_have_16_groups(self, basis, seed):
        for n in (1024, 1000):
            u = infocap.draw(basis, n, design="random", seed=seed)
            assert count_groups(basis, u) == 16

    def test_the_default_design_has_8_groups(self, basis, seed):
        assert count_groups(basis, infocap.draw(basis, 1024, seed=seed)) == 8

    @pytest.mark.parametrize("design", ["sobol", "lhs"])
    @pytest.mark.parametrize("blocks", [4, 8, 16])
    def test_blocks_are_the_groups(self, basis, seed, design, blocks):
        u = infocap.draw(basis, 1024, design=design, seed=seed, blocks=blocks)
        assert count_groups(basis, u) == blocks

    @pytest.mark.parametrize("design", ["sobol", "halton"])
    def test_a_single_net_has_no_groups(self, basis, seed, design):
        u = infocap.draw(basis, 1024, design=design, seed=seed, blocks=1)
        assert count_groups(basis, u) == 0

    def test_two_blocks_are_too_few_for_groups(self, basis, seed):
        assert count_groups(basis, infocap.draw(basis, 1024, seed=seed, blocks=2)) == 0

    @pytest.mark.parametrize(("blocks", "expected"), [(1, 0), (4, 4), (8, 8), (16, 16)])
    def test_weighted_blocks_are_the_groups_and_a_single_one_has_none(
        self, basis, seed, blocks, expected
    ):
        u, weights = infocap.draw_weighted(basis, 1024, seed=seed, blocks=blocks)
        assert count_groups(basis, u, sample_weight=weights) == expected

    def test_weighted_random_points_have_16_groups(self, basis, seed):
        u, weights = infocap.draw_weighted(basis, 1024, design="random", seed=seed)
        assert count_groups(basis, u, sample_weight=weights) == 16


@pytest.mark.parametrize("blocks", [4, 8, 16])
@pytest.mark.parametrize("seed", range(3))
def test_a_few_missing_rows_do_not_hide_the_blocks(blocks, seed):
    u = infocap.draw(BASIS, 1024, seed=seed, blocks=blocks)
    x = DEVICE(u, seed=2)
    missing = np.random.default_rng(seed).choice(1024, 4, replace=False)
    x[missing, 3] = np.nan
    assert evidence_of(u, x, nan_policy="omit").n_groups == blocks


@pytest.mark.parametrize("n", [5, 7, 15, 64, 1000, 4096])
def test_group_edges_share_the_rows_out(n):
    u = infocap.draw(BASIS, n, design="random", seed=0)
    edges = evidence_of(u, x=np.eye(n)[:, :2]).group_edges
    assert edges[0] == 0
    assert edges[-1] == n
    assert len(edges) >= 3
    assert np.ptp(np.diff(edges)) <= 1
    middle = edges[len(edges) // 2]
    assert n // 3 <= middle <= (2 * n) // 3


def test_inputs_of_few_levels_have_eight_groups():
    basis = infocap.product_basis("bernoulli", 8, 2)
    u = infocap.draw(basis, 1024, seed=0)
    assert evidence_of(u, u @ np.ones((8, 1)), basis).n_groups == 8


# The two passes.


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
@pytest.mark.parametrize("n", [48, 512])  # with 48 samples not all functions are controls
@pytest.mark.parametrize("fit", ["auto", "least-squares", "none"])
def test_functions_a_few_at_a_time_change_nothing(n, fit, monkeypatch):
    evidence = evidence_of(infocap.draw(BASIS, n, design="random", seed=1))
    assert (len(choose_controls(evidence)) < len(BASIS)) == (n == 48)
    edges = evidence.group_edges
    chosen_fit = fit_readouts(evidence, fit, edges)
    all_at_once = run_second_pass(evidence, chosen_fit, edges)
    bytes_of_five_functions = 5 * 8 * evidence.rank * len(edges)
    monkeypatch.setattr("infocap.estimators._second_pass.MAX_SUMS_BYTES", bytes_of_five_functions)
    a_few_at_a_time = run_second_pass(evidence, chosen_fit, edges)
    for name, expected in vars(all_at_once).items():
        value = getattr(a_few_at_a_time, name)
        assert_allclose(value, expected, rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("n_groups", [8, 5])  # of five groups, three are the first half
def test_every_sample_counts_once_however_long_the_halves_are(n_groups):
    """The coefficients and the Gram matrix, written out sample by sample."""
    u = infocap.draw(BASIS, 600, design="random", seed=1)
    evidence = evidence_of(u)
    edges = 600 * np.arange(n_groups + 1) // n_groups
    fit = fit_readouts(evidence, "auto", edges)
    z = evidence.samples.readouts(0, 600, **evidence.whitener)
    phi = fit.controls(u)

    c = np.zeros_like(fit.coefficients)
    gram = np.zeros((evidence.rank, evidence.rank))
    halves = np.split(np.arange(600), [edges[(n_groups + 1) // 2]])
    for half, rows in zip(fit.halves, halves, strict=True):
        assert half.fraction == len(rows) / 600
        # Each direction chose one fit.
        assert_allclose(sum(half.projections.values()), np.eye(evidence.rank), atol=1e-12)
        plain = z[rows] - phi[rows] @ half.coefficients
        e = plain @ half.projections[NO_FIT]
        for k in half.projections.keys() - {NO_FIT}:
            candidate = fit.candidates[k]
            least = MIN_RELATIVE_MARGIN * candidate.mean_margin
            margin = np.maximum(candidate.fit.margin(phi[rows].T), least)
            along = plain @ half.projections[k] / margin[:, None]
            c -= candidate.fit.solve(phi[rows].T @ along)  # the fit without each sample
            e = e + along
        c += len(rows) * half.coefficients + phi[rows].T @ e
        gram += len(rows) * half.coefficients.T @ half.coefficients
        gram += z[rows].T @ e + e.T @ z[rows] - e.T @ e
    c = c[fit.controls.positions_in(BASIS) >= 0] / 600
    expected = np.sum(c @ np.linalg.inv(gram / 600) * c, axis=1)
    capacity = np.sum(run_second_pass(evidence, fit, edges).white_coefficients ** 2, axis=1)
    assert_allclose(capacity, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fit", ["auto", "least-squares"])
def test_the_influence_on_the_total_is_the_sum_over_functions(fit):
    """It is written out sample by sample, with the weights and residuals of the pass."""
    u = infocap.draw(BASIS, 600, design="random", seed=1)
    evidence = evidence_of(u)
    edges = evidence.group_edges
    chosen_fit = fit_readouts(evidence, fit, edges)
    z = evidence.samples.readouts(0, 600, **evidence.whitener)
    phi = chosen_fit.controls(u)
    e = np.zeros_like(z)
    rows_of_halves = np.split(np.arange(600), [edges[len(edges) // 2]])
    for half, rows in zip(chosen_fit.halves, rows_of_halves, strict=True):
        residual = z[rows] - phi[rows] @ half.coefficients
        e[rows] = residual @ half.projections[NO_FIT]
        for number in half.projections.keys() - {NO_FIT}:
            candidate = chosen_fit.candidates[number]
            least = MIN_RELATIVE_MARGIN_FOR_ERRORS * candidate.mean_margin
            margin = np.maximum(candidate.fit.margin(phi[rows].T), least)
            e[rows] += residual @ half.projections[number] / margin[:, None]
    weights = chosen_fit.first_c[chosen_fit.positions] @ np.linalg.inv(chosen_fit.first_gram)
    metric = np.linalg.inv(chosen_fit.first_gram)
    own_leverage = np.einsum("ij,jk,ik->i", e, metric, e) / 600
    influence = np.zeros(600)
    for y, w in zip(BASIS(u).T, weights, strict=True):
        without_itself = e @ w - y * own_leverage
        influence += without_itself * (2 * (y - z @ w) + e @ w)
    passes = run_second_pass(evidence, chosen_fit, edges)
    assert passes.influence_variance == pytest.approx(np.var(influence), rel=1e-10)


# Warnings about the answer.

HERMITE = infocap.product_basis("hermite", 2, 8)


def assert_warns(words, u, x, basis=BASIS, **options):
    """Return the result, after a look at its only check that holds some words."""
    with pytest.warns(DataWarning) as warned:
        result = infocap.estimate(u, x, basis, **options)
    messages = [str(warning.message) for warning in warned if words in str(warning.message)]
    assert len(messages) == 1
    assert messages[0] in result.checks
    return result


def assert_silent(words, u, x, basis=BASIS, **options):
    """Return the result, after a look at its checks, none of which holds some words."""
    result = infocap.estimate(u, x, basis, **options)
    assert not any(words in check for check in result.checks)
    return result


def random_points(n, basis=BASIS):
    return infocap.draw(basis, n, design="random", seed=3)


def sums_with_noise(u, noise):
    """Four readouts that all are the sum of the inputs."""
    return u @ np.ones((2, 4)) + 0.5 * noise


def saturating(u):
    """Two readouts with a little noise."""
    noise = np.random.default_rng(5).standard_normal(u.shape)
    return np.tanh(u @ np.array([[1.0, 0.3], [0.2, 1.0]])) + 0.1 * noise


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
class TestWarnings:
    """Every warning of the method: raised where it should be, and not raised next door."""

    def test_few_samples_for_the_functions_are_noticed(self):
        # 28 functions
        few = random_points(55)
        enough = random_points(56)
        words = "55 samples are few for 28 functions: the total is the sum of the capacities that"
        result = assert_warns(words, few, DEVICE(few, seed=1))
        assert "few samples for 28 functions" in result.unreliable
        assert result.total == pytest.approx(result.capacity.sum())
        assert_silent("for 28 functions: the total", enough, DEVICE(enough, seed=1))

    def test_few_samples_for_the_readouts_are_noticed(self):
        u = random_points(256)
        many_readouts = infocap.systems.RandomFeatures(2, 60, gain=2, noise=0.3, seed=1)
        result = assert_warns("256 samples are few for 61 readouts", u, many_readouts(u, seed=2))
        assert "few samples for 61 readouts" in result.unreliable
        assert not assert_silent("readouts: single samples", u, DEVICE(u, seed=1)).unreliable

    def test_few_samples_without_noise_add_no_bias(self):
        in_the_span = infocap.theory.random_mixture(BASIS, n_active=28, n_readouts=27, seed=1)
        u = random_points(128)
        x = in_the_span(u)
        assert_silent("readouts: single samples", u, x)
        noise = np.random.default_rng(5).standard_normal(x.shape)
        assert_warns("readouts: single samples", u, x + 0.1 * noise)

    def test_heavy_tails_are_noticed(self):
        u = random_points(512)
        generator = np.random.default_rng(0)
        heavy = sums_with_noise(u, generator.standard_t(2.1, (512, 4)))
        assert assert_warns("rests on about", u, heavy).unreliable.startswith("it rests on")
        normal = sums_with_noise(u, generator.standard_normal((512, 4)))
        assert not assert_silent("rests on about", u, normal).unreliable

    def test_a_device_that_changed_between_the_halves_is_noticed(self):
        u = random_points(1024)
        other = infocap.systems.RandomFeatures(2, DEVICE.n_readouts, gain=0.2, noise=0.05, seed=9)
        x = np.vstack([DEVICE(u[:512], seed=1), other(u[512:], seed=2)])
        result = assert_warns("the first half of the samples gives", u, x)
        assert "the halves of the samples disagree" in result.unreliable
        assert_silent("half of the samples", u, DEVICE(u, seed=1))

    def test_an_unstable_fit_is_noticed(self):
        basis = infocap.product_basis("legendre", 2, 8)
        u = infocap.draw(basis, 16, design="random", seed=0)
        x = infocap.systems.RandomFeatures(2, 8, gain=2, seed=0)(u)
        result = assert_warns("the fit is unstable", u, x, basis)
        assert "an unstable fit" in result.unreliable
        u = random_points(56)
        assert_silent("the fit is unstable", u, DEVICE(u, seed=1))

    def test_large_fourth_moments_are_noticed(self):
        u = random_points(1024, HERMITE)
        result = assert_warns("functions have E[y^4] above 102", u, saturating(u), HERMITE)
        assert "functions with large fourth moments" in result.unreliable

    def test_large_fourth_moments_that_do_no_harm_raise_nothing(self):
        u = random_points(1024, HERMITE)
        low_degrees = infocap.product_basis("hermite", 2, 3)
        assert not assert_silent("E[y^4]", u, saturating(u), low_degrees).unreliable
        in_the_span = infocap.theory.random_mixture(HERMITE, n_active=6, n_readouts=3, seed=1)
        assert_silent("E[y^4]", u, in_the_span(u), HERMITE)  # these are exact
        u, weights = infocap.draw_weighted(HERMITE, 1024, seed=0)
        assert_silent("E[y^4]", u, saturating(u), HERMITE, sample_weight=weights)

    def test_a_single_net_is_noticed(self):
        net = infocap.draw(BASIS, 512, seed=1, blocks=1)
        words = "the inputs are a single low-discrepancy design"
        # A caution: the total is mostly good.
        assert not assert_warns(words, net, DEVICE(net, seed=1)).unreliable
        for u in (infocap.draw(BASIS, 512, seed=1), random_points(512)):
            assert_silent(words, u, DEVICE(u, seed=1))
        in_the_span = infocap.theory.random_mixture(BASIS, n_active=10, n_readouts=5, seed=1)
        assert_silent(words, net, in_the_span(net))  # nothing is left to be averaged
