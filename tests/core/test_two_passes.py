"""The parts of the control-variate method: ridge fits from sums, groups, two passes, and warnings."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataWarning
from infocap.estimators._fit import NO_FIT, choose_controls, fit_readouts
from infocap.estimators._groups import Groups, find_input_order
from infocap.estimators._residual_sums import MIN_RELATIVE_MARGIN
from infocap.estimators._second_pass import run_second_pass
from infocap.kernels import MIN_EXACT_LEVERAGE, Ridge
from infocap.samples import Engine, Samples, Table

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


# Groups of samples that are left out one at a time.

GROUPED = [BASIS, infocap.product_basis("hermite", 2, 4), infocap.product_basis("legendre", 1, 10)]


def order_and_groups(basis, u, **options):
    """The order of the inputs that was found, and the groups that follow."""
    evidence = evidence_of(u, np.tanh(u) + 0.1 * np.sin(9 * u), basis, **options)
    return evidence.input_order, evidence.groups


@pytest.mark.parametrize("basis", GROUPED, ids=repr)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
class TestOrderOfInputs:
    """Rows make sixteen stretches, or random groups where they are sorted by the inputs."""

    def assert_stretches(self, basis, u, is_single_net=False, **options):
        order, groups = order_and_groups(basis, u, **options)
        assert not order.is_sorted
        assert order.is_single_net == is_single_net
        assert groups.of_row is None
        assert len(groups.edges) == 17

    def test_random_points_make_stretches(self, basis, seed):
        for n in (1024, 1000, 256):
            u = infocap.draw(basis, n, design="random", seed=seed)
            self.assert_stretches(basis, u)

    @pytest.mark.parametrize("design", ["sobol", "lhs"])
    @pytest.mark.parametrize("blocks", [2, 4, 8, 16])
    def test_blocks_make_stretches(self, basis, seed, design, blocks):
        u = infocap.draw(basis, 1024, design=design, seed=seed, blocks=blocks)
        self.assert_stretches(basis, u)

    def test_blocks_that_end_between_groups_are_blocks_all_the_same(self, basis, seed):
        u = infocap.draw(basis, 960, seed=seed, blocks=5, design="lhs")
        self.assert_stretches(basis, u)

    def test_a_part_of_a_design_makes_stretches(self, basis, seed):
        u = infocap.draw(basis, 1024, seed=seed)[:700]
        self.assert_stretches(basis, u)

    def test_weighted_blocks_make_stretches(self, basis, seed):
        u, weights = infocap.draw_weighted(basis, 1024, seed=seed)
        self.assert_stretches(basis, u, sample_weight=weights)

    @pytest.mark.parametrize("n", [256, 1000])
    def test_sorted_rows_make_random_groups_of_equal_size(self, basis, seed, n):
        u = infocap.draw(basis, n, design="random", seed=seed)
        order, groups = order_and_groups(basis, u[np.argsort(u[:, 0])])
        assert order.is_sorted
        assert not order.is_single_net
        assert np.bincount(groups.of_row).tolist() == np.diff(groups.edges).tolist()
        # Neighbours are in different groups as often as by chance.
        assert abs(np.mean(np.diff(groups.of_row) == 0) - 1 / 16) < 5 * np.sqrt(1 / 16 / n)


@pytest.mark.parametrize("design", ["sobol", "lhs"])
@pytest.mark.parametrize("seed", range(5))
def test_single_nets_are_known_in_any_order(design, seed):
    net = infocap.draw(BASIS, 64, design=design, seed=seed, blocks=1)
    for u in (net, net[np.argsort(net[:, 0])]):
        order = find_input_order(Samples.of(u, np.tanh(u), BASIS), Engine())
        assert order.is_single_net
    blocks = infocap.draw(BASIS, 64, design=design, seed=seed, blocks=2)
    for u in (blocks, infocap.draw(BASIS, 64, design="random", seed=seed)):
        order = find_input_order(Samples.of(u, np.tanh(u), BASIS), Engine())
        assert not order.is_single_net


def test_equal_inputs_have_equal_fingerprints_however_rows_are_shared_out():
    u = infocap.draw(BASIS, 20_000, design="random", seed=1)
    other = u.copy()
    other[0, 1] += 1e-15
    fingerprints = []
    for inputs, share_rows in ((u, None), (u.copy(), 777), (other, None), (u[::-1], None)):
        samples = Samples.of(inputs, np.tanh(inputs), BASIS)
        engine = Engine(share_rows=share_rows)
        fingerprints.append(find_input_order(samples, engine).fingerprint)
    assert fingerprints[0] == fingerprints[1]
    assert len(set(fingerprints)) == 3


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
@pytest.mark.parametrize("n", [64, 512])  # with 64 samples not all functions are controls
def test_random_groups_are_those_of_rows_in_another_order(n):
    """The same answer as for stretches of rows that were put in the order of their groups."""
    u = infocap.draw(BASIS, n, design="random", seed=1)
    u = u[np.argsort(u[:, 0])]
    x = DEVICE(u, seed=2)
    weights = np.random.default_rng(3).uniform(0.9, 1.1, n)
    weights /= weights.mean()
    evidence = evidence_of(u, x, sample_weight=weights)
    assert evidence.input_order.is_sorted
    groups = evidence.groups
    fit = fit_readouts(evidence, "least-squares", groups)
    found = run_second_pass(evidence, fit, groups)

    order = np.argsort(groups.of_row, kind="stable")
    # The same preparation of the readouts, and the same fit.
    samples = replace(
        evidence.samples,
        u=Table(u[order], "u"),
        x=Table(x[order], "x"),
        sqrt_sample_weight=np.sqrt(weights[order]),
    )
    reordered = replace(evidence, samples=samples)
    expected = run_second_pass(reordered, fit, Groups(groups.edges))
    for name, value in vars(found).items():
        assert_allclose(value, getattr(expected, name), rtol=1e-9, atol=1e-11, err_msg=name)


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_sorted_rows_do_not_change_error_bars():
    """Stretches of a sorted file would be different devices."""
    u = infocap.draw(BASIS, 1024, design="random", seed=1)
    x = DEVICE(u, seed=2)
    order = np.argsort(u[:, 0])
    as_drawn = infocap.estimate(u, x, BASIS)
    in_order = infocap.estimate(u[order], x[order], BASIS)
    assert in_order.total == pytest.approx(as_drawn.total, abs=as_drawn.total_standard_error)
    # Each of two jackknives of 16 groups scatters by a fifth.
    ratio = in_order.total_standard_error / as_drawn.total_standard_error
    assert 0.5 < ratio < 2


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


# The two passes.


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
@pytest.mark.parametrize("n", [48, 512])  # with 48 samples not all functions are controls
@pytest.mark.parametrize("fit", ["auto", "least-squares", "none"])
def test_functions_a_few_at_a_time_change_nothing(n, fit, monkeypatch):
    evidence = evidence_of(infocap.draw(BASIS, n, design="random", seed=1))
    assert (len(choose_controls(evidence)) < len(BASIS)) == (n == 48)
    groups = evidence.groups
    chosen_fit = fit_readouts(evidence, fit, groups)
    all_at_once = run_second_pass(evidence, chosen_fit, groups)
    bytes_of_five_functions = 5 * 8 * evidence.rank * len(groups.edges)
    monkeypatch.setattr("infocap.estimators._second_pass.MAX_SUMS_BYTES", bytes_of_five_functions)
    a_few_at_a_time = run_second_pass(evidence, chosen_fit, groups)
    for name, expected in vars(all_at_once).items():
        value = getattr(a_few_at_a_time, name)
        assert_allclose(value, expected, rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("n_groups", [8, 5])  # of five groups, three are the first half
def test_every_sample_counts_once_however_long_the_halves_are(n_groups):
    """The coefficients and the Gram matrix, written out sample by sample."""
    u = infocap.draw(BASIS, 600, design="random", seed=1)
    evidence = evidence_of(u)
    edges = 600 * np.arange(n_groups + 1) // n_groups
    groups = Groups(edges)
    fit = fit_readouts(evidence, "auto", groups)
    z = evidence.samples.readouts(0, 600, **evidence.whitener)
    phi = fit.controls(u)

    c = np.zeros_like(fit.coefficients)
    gram = np.zeros((evidence.rank, evidence.rank))
    halves = np.split(np.arange(600), [edges[(n_groups + 1) // 2]])
    for half, rows in zip(fit.halves, halves, strict=True):
        assert half.fraction == len(rows) / 600
        # Each direction chose one fit.
        parts = [half.project(np.eye(evidence.rank), number) for number in half.used_numbers]
        assert_allclose(sum(parts), np.eye(evidence.rank), atol=1e-12)
        plain = z[rows] - phi[rows] @ half.coefficients
        e = np.zeros_like(plain)
        for number, part in zip(half.used_numbers, parts, strict=True):
            if number == NO_FIT:
                e = e + plain @ part
                continue
            candidate = fit.candidates[number]
            least = MIN_RELATIVE_MARGIN * candidate.mean_margin
            margin = np.maximum(candidate.fit.margin(phi[rows].T), least)
            along = plain @ part / margin[:, None]
            c -= candidate.fit.solve(phi[rows].T @ along)  # the fit without each sample
            e = e + along
        c += len(rows) * half.coefficients + phi[rows].T @ e
        gram += len(rows) * half.coefficients.T @ half.coefficients
        gram += z[rows].T @ e + e.T @ z[rows] - e.T @ e
    c = c[fit.controls.positions_in(BASIS) >= 0] / 600
    expected = np.sum(c @ np.linalg.inv(gram / 600) * c, axis=1)
    capacity = np.sum(run_second_pass(evidence, fit, groups).white_coefficients ** 2, axis=1)
    assert_allclose(capacity, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
@pytest.mark.parametrize("n_readouts", [4, 40])  # the weights of 40 hold much noise
def test_influences_of_samples_scatter_as_their_groups_do(n_readouts):
    """Both give the variance of the total to first order, when samples are independent."""
    device = infocap.systems.RandomFeatures(2, n_readouts, gain=2, noise=0.3, seed=1)
    of_samples = []
    of_groups = []
    for seed in range(12):
        u = infocap.draw(BASIS, 512, design="random", seed=seed)
        evidence = evidence_of(u, device(u, seed=seed))
        passes = run_second_pass(
            evidence, fit_readouts(evidence, "auto", evidence.groups), evidence.groups
        )
        of_samples.append(passes.variance_of_total)
        of_groups.append(15 * np.var(passes.jackknife_totals))
    # A variance of 15 degrees of freedom is known to sqrt(2 / 15), the mean of twelve to 11 %.
    assert np.mean(of_samples) / np.mean(of_groups) == pytest.approx(1, abs=0.35)


@pytest.mark.parametrize("fit", ["auto", "least-squares"])
def test_the_influence_on_the_total_is_the_sum_over_functions(fit):
    """It is written out sample by sample, with the weights and residuals of the pass."""
    u = infocap.draw(BASIS, 600, design="random", seed=1)
    evidence = evidence_of(u)
    groups = evidence.groups
    chosen_fit = fit_readouts(evidence, fit, groups)
    z = evidence.samples.readouts(0, 600, **evidence.whitener)
    phi = chosen_fit.controls(u)
    raw = np.zeros_like(z)
    e = np.zeros_like(z)
    rows_of_halves = np.split(np.arange(600), [groups.edges[len(groups.edges) // 2]])
    for half, rows in zip(chosen_fit.halves, rows_of_halves, strict=True):
        raw[rows] = z[rows] - phi[rows] @ half.coefficients
        for number in half.used_numbers:
            margin = np.ones(len(rows))
            if number != NO_FIT:
                candidate = chosen_fit.candidates[number]
                least = MIN_RELATIVE_MARGIN * candidate.mean_margin
                margin = np.maximum(candidate.fit.margin(phi[rows].T), least)
            e[rows] += half.project(raw[rows], number) / margin[:, None]
    metric = chosen_fit.first_metric.apply(np.eye(z.shape[1]))
    weights = chosen_fit.first_c[chosen_fit.positions] @ metric
    own_leverage = np.einsum("ij,jk,ik->i", e, metric, raw) / 600
    influence = np.zeros(600)
    for y, w in zip(BASIS(u).T, weights, strict=True):
        rho = y - z @ w
        influence += (e @ w) * (2 * rho + e @ w) - 2 * y * own_leverage * rho
    passes = run_second_pass(evidence, chosen_fit, groups)
    assert 600 * passes.variance_of_total == pytest.approx(np.var(influence), rel=1e-10)


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
        result = assert_warns("functions have E[y^4] above 51", u, saturating(u), HERMITE)
        assert "functions with large fourth moments" in result.unreliable

    def test_large_fourth_moments_that_do_no_harm_raise_nothing(self):
        u = random_points(1024, HERMITE)
        low_degrees = infocap.product_basis("hermite", 2, 2)
        assert not assert_silent("E[y^4]", u, saturating(u), low_degrees).unreliable
        in_the_span = infocap.theory.random_mixture(HERMITE, n_active=6, n_readouts=3, seed=1)
        assert_silent("E[y^4]", u, in_the_span(u), HERMITE)  # these are exact
        u, weights = infocap.draw_weighted(HERMITE, 1024, seed=0)
        assert_silent("E[y^4]", u, saturating(u), HERMITE, sample_weight=weights)

    def test_a_single_net_gets_a_note(self):
        net = infocap.draw(BASIS, 128, seed=1, blocks=1)
        words = "a single low-discrepancy design"
        result = infocap.estimate(net, DEVICE(net, seed=1), BASIS)
        assert [words in check for check in result.notes] == [True]
        longer = infocap.draw(BASIS, 512, seed=1, blocks=1)  # many samples per function
        for u in (infocap.draw(BASIS, 128, seed=1), random_points(128), longer):
            assert_silent(words, u, DEVICE(u, seed=1))
        in_the_span = infocap.theory.random_mixture(BASIS, n_active=10, n_readouts=5, seed=1)
        assert_silent(words, net, in_the_span(net))  # nothing is left to be averaged
