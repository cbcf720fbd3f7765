"""The parts of the control-variate method: ridge fits from sums, independent groups, sums in slabs, and its doubts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataWarning
from infocap.estimators._fit import controls, fit_readouts
from infocap.estimators._second_order import second_order
from infocap.estimators._tuning import TUNING
from infocap.kernels import Ridge
from infocap.kernels._summary import EXACT_ABOVE

BASIS = infocap.product_basis("legendre", 2, 6)  # 28 functions
DEVICE = infocap.systems.RandomFeatures(2, 12, gain=2, noise=0.05, seed=1)


def evidence(u, x=None, basis=BASIS, **options):
    return infocap.estimators.gather_evidence(
        u, DEVICE(u, seed=2) if x is None else x, basis, **options
    )


def tables(n=120, functions=30, readouts=4):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, functions)), rng.standard_normal((n, readouts))


EVERY, SOME = np.arange(30), np.array([0, 3, 4, 11, 29])


@pytest.mark.parametrize("kept", [EVERY, SOME], ids=["all functions", "some"])
@pytest.mark.parametrize("penalty", [0.0, 0.3, 50.0])
def test_ridge_coefficients_are_those_of_augmented_least_squares(kept, penalty):
    y, z = tables()
    penalties = penalty * np.linspace(1, 5, len(kept))
    (fit,) = Ridge.fits(y.T @ y, y.T @ z, kept, [penalties], 8)
    augmented = np.vstack([y[:, kept], np.diag(np.sqrt(penalties))])
    expected = np.linalg.lstsq(augmented, np.vstack([z, np.zeros((len(kept), 4))]), rcond=None)[0]
    assert_allclose(fit.coefficients[kept], expected, atol=1e-12)
    assert not np.delete(fit.coefficients, kept, axis=0).any()
    right = tables(30, 7)[0]
    solved = np.linalg.solve(y[:, kept].T @ y[:, kept] + np.diag(penalties), right[kept])
    assert_allclose(fit.solve(right)[kept], solved, atol=1e-12)
    assert not np.delete(fit.solve(right), kept, axis=0).any()


@pytest.mark.parametrize("kept", [EVERY, SOME], ids=["all functions", "some"])
def test_margins_are_one_minus_the_diagonal_of_the_hat_matrix(kept):
    """Large leverages exactly, small ones to a fifth with 64 vectors of signs."""
    y, z = tables()
    y[:4] *= 20  # a few samples that decide their own fit
    penalties = np.linspace(1, 5, len(kept))
    hat = y[:, kept] @ np.linalg.solve(y[:, kept].T @ y[:, kept] + np.diag(penalties), y[:, kept].T)
    exact, (fit,) = np.diag(hat), Ridge.fits(y.T @ y, y.T @ z, kept, [penalties], 64)
    found = 1 - fit.margin(y.T)
    large = found > EXACT_ABOVE
    assert_allclose(found[large], exact[large], atol=1e-12)
    assert 2 <= large.sum() < 60
    off = found[~large] / exact[~large] - 1
    assert np.sqrt(np.mean(off**2)) < 1.5 * np.sqrt(2 / 64)
    assert abs(found.sum() / exact.sum() - 1) < 0.05


def test_residuals_over_margins_are_those_of_fits_without_the_sample():
    y, z = tables(n=40)
    y[3] *= 20
    (fit,) = Ridge.fits(y.T @ y, y.T @ z, EVERY, [np.linspace(1, 5, 30)], 64)
    left_out = (z - y @ fit.coefficients)[3] / fit.margin(y.T)[3]
    rest = np.delete(np.arange(40), 3)
    b = np.linalg.solve(y[rest].T @ y[rest] + np.diag(np.linspace(1, 5, 30)), y[rest].T @ z[rest])
    assert_allclose(left_out, z[3] - y[3] @ b, atol=1e-10)


def test_functions_that_depend_on_each_other_have_no_fit_without_a_penalty():
    y, z = tables()
    y[:, 7] = y[:, 3] - 2 * y[:, 5]
    a, b = y.T @ y, y.T @ z
    assert not list(Ridge.fits(a, b, EVERY, [np.zeros(30)], 8))
    assert list(Ridge.fits(a, b, np.delete(EVERY, 7), [np.zeros(29)], 8))
    assert len(list(Ridge.fits(a, b, EVERY, [np.zeros(30), np.ones(30)], 8))) == 1
    few = tables(n=20)
    assert not list(Ridge.fits(few[0].T @ few[0], few[0].T @ few[1], EVERY, [np.zeros(30)], 8))


NORMAL = infocap.product_basis("hermite", 2, 4)
ONE = infocap.product_basis("legendre", 1, 10)


@pytest.mark.parametrize("basis", [BASIS, NORMAL, ONE], ids=repr)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_independent_groups_are_told_by_the_inputs_alone(basis, seed):
    def found(u, **options):
        return evidence(u, np.tanh(u) + 0.1 * np.sin(9 * u), basis, **options).n_groups

    assert found(infocap.draw(basis, 1024, design="random", seed=seed)) == 16
    assert found(infocap.draw(basis, 1000, design="random", seed=seed)) == 16
    assert found(infocap.draw(basis, 1024, seed=seed)) == 8
    for design in ("sobol", "halton"):
        assert found(infocap.draw(basis, 1024, design=design, seed=seed, blocks=1)) == 0
    for design in ("sobol", "lhs"):
        for blocks in (4, 8, 16):
            u = infocap.draw(basis, 1024, design=design, seed=seed, blocks=blocks)
            assert found(u) == blocks, (design, blocks)
    assert found(infocap.draw(basis, 1024, seed=seed, blocks=2)) == 0  # too few for an error bar
    for blocks in (1, 4, 8, 16):
        u, weights = infocap.draw_weighted(basis, 1024, seed=seed, blocks=blocks)
        assert found(u, sample_weight=weights) == (blocks if blocks > 1 else 0)
    u, weights = infocap.draw_weighted(basis, 1024, design="random", seed=seed)
    assert found(u, sample_weight=weights) == 16


@pytest.mark.parametrize("blocks", [4, 8, 16])
@pytest.mark.parametrize("seed", range(3))
def test_a_few_missing_rows_do_not_hide_the_blocks(blocks, seed):
    u = infocap.draw(BASIS, 1024, seed=seed, blocks=blocks)
    x = DEVICE(u, seed=2)
    x[np.random.default_rng(seed).choice(1024, 4, replace=False), 3] = np.nan
    assert evidence(u, x, nan_policy="omit").n_groups == blocks


@pytest.mark.parametrize("n", [5, 7, 15, 64, 1000, 4096])
def test_group_edges_share_the_rows_out(n):
    found = evidence(infocap.draw(BASIS, n, design="random", seed=0), x=np.eye(n)[:, :2])
    edges = found.group_edges
    assert edges[0] == 0
    assert edges[-1] == n
    assert len(edges) >= 3
    assert np.ptp(np.diff(edges)) <= 1
    assert n // 3 <= edges[len(edges) // 2] <= (2 * n) // 3


def test_levels_need_no_blocks_to_be_found():
    basis = infocap.product_basis("bernoulli", 8, 2)
    u = infocap.draw(basis, 1024, seed=0)
    assert evidence(u, u @ np.ones((8, 1)), basis).n_groups == 8


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
@pytest.mark.parametrize("n", [48, 512])  # 48: not all functions are controls
@pytest.mark.parametrize("fit", ["auto", "least-squares", "none"])
def test_functions_a_few_at_a_time_change_nothing(n, fit, monkeypatch):
    u = infocap.draw(BASIS, n, design="random", seed=1)
    found = evidence(u)
    edges = found.group_edges
    chosen = fit_readouts(found, fit, edges)
    assert (len(controls(found)) < len(BASIS)) == (n == 48)
    whole = second_order(found, chosen, edges)
    monkeypatch.setattr("infocap.estimators._second_order.SUMS_BYTES", 5 * 8 * found.rank * 16)
    parts = second_order(found, chosen, edges)
    for name in (
        "inside",
        "bias",
        "variance",
        "scatter",
        "totals",
        "of_halves",
        "pooled",
        "response",
        "covariance",
    ):
        assert_allclose(
            getattr(parts, name), getattr(whole, name), rtol=1e-10, atol=1e-12, err_msg=name
        )
    for name in ("crowding", "contributors", "capped", "smallest_eigenvalue"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-10), name


@pytest.mark.parametrize("groups", [8, 5])  # three fifths of the samples are the first half
def test_every_sample_counts_once_however_long_the_halves_are(groups):
    u = infocap.draw(BASIS, 600, design="random", seed=1)
    found, edges = evidence(u), 600 * np.arange(groups + 1) // groups
    fit = fit_readouts(found, "auto", edges)
    z, phi = found.samples.readouts(0, 600, **found.whitener), fit.dictionary(u)
    c, gram = np.zeros_like(fit.b), np.zeros((found.rank, found.rank))
    for half, rows in zip(
        fit.halves, np.split(np.arange(600), [edges[(groups + 1) // 2]]), strict=True
    ):
        assert half.share == len(rows) / 600
        assert_allclose(
            sum(half.onto.values()), np.eye(found.rank), atol=1e-12
        )  # each direction chose one fit
        left = z[rows] - phi[rows] @ half.coefficients
        e = left @ half.onto[-1]
        for k in half.onto.keys() - {-1}:
            one = fit.candidates[k]
            margin = np.maximum(one.fit.margin(phi[rows].T), TUNING.least_margins[0] * one.margin)
            along = left @ half.onto[k] / margin[:, None]
            c -= one.fit.solve(phi[rows].T @ along)  # what the samples take with them when left out
            e = e + along
        c += len(rows) * half.coefficients + phi[rows].T @ e
        gram += (
            len(rows) * half.coefficients.T @ half.coefficients
            + z[rows].T @ e
            + e.T @ z[rows]
            - e.T @ e
        )
    c = c[fit.dictionary.places(BASIS) >= 0] / 600
    expected = np.sum(c @ np.linalg.inv(gram / 600) * c, axis=1)
    assert_allclose(
        np.sum(second_order(found, fit, edges).inside ** 2, axis=1),
        expected,
        rtol=1e-10,
        atol=1e-12,
    )


NOISE = np.random.default_rng(5)
HEAVY_BASIS = infocap.product_basis("hermite", 2, 8)


def saying(text, u, x, basis=BASIS, **options):
    """The result, and what of its checks holds some words."""
    with pytest.warns(DataWarning) as said:
        result = infocap.estimate(u, x, basis, **options)
    found = [str(one.message) for one in said if text in str(one.message)]
    assert len(found) == 1
    assert found[0] in result.checks
    return result


def silent_about(text, u, x, basis=BASIS, **options):
    result = infocap.estimate(u, x, basis, **options)
    assert not any(text in check for check in result.checks)
    return result


def random_points(n, basis=BASIS):
    return infocap.draw(basis, n, design="random", seed=3)


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
class TestDoubts:
    """Every warning of the method: raised where it should be, and not raised next door."""

    def test_few_samples_for_the_functions(self):
        few, enough = random_points(55), random_points(56)  # 28 functions
        text = "55 samples are few for 28 functions: the total is the sum of the capacities that are clearly"
        result = saying(text, few, DEVICE(few, seed=1))
        assert "few samples for 28 functions" in result.unreliable
        assert result.total == pytest.approx(result.capacity.sum())
        silent_about("for 28 functions: the total", enough, DEVICE(enough, seed=1))

    def test_few_samples_for_the_readouts(self):
        u = random_points(256)
        many = infocap.systems.RandomFeatures(2, 60, gain=2, noise=0.3, seed=1)(u, seed=2)
        result = saying("256 samples are few for 61 readouts", u, many)
        assert "few samples for 61 readouts" in result.unreliable
        assert not silent_about("readouts: single samples", u, DEVICE(u, seed=1)).unreliable
        exact = infocap.theory.random_mixture(BASIS, n_active=28, n_readouts=27, seed=1)
        u = random_points(128)  # in the span no noise is left that could add a bias
        silent_about("readouts: single samples", u, exact(u))
        saying("readouts: single samples", u, exact(u) + 0.1 * NOISE.standard_normal((128, 27)))

    def test_heavy_tails(self):
        u = random_points(512)
        heavy = u @ np.ones((2, 4)) + 0.5 * np.random.default_rng(0).standard_t(2.1, (512, 4))
        result = saying("rests on about", u, heavy)
        assert result.unreliable.startswith("it rests on")
        plain = u @ np.ones((2, 4)) + 0.5 * np.random.default_rng(0).standard_normal((512, 4))
        assert not silent_about("rests on about", u, plain).unreliable

    def test_a_device_that_changed_between_the_halves(self):
        u = random_points(1024)
        other = infocap.systems.RandomFeatures(2, DEVICE.n_readouts, gain=0.2, noise=0.05, seed=9)
        x = np.vstack([DEVICE(u[:512], seed=1), other(u[512:], seed=2)])
        result = saying("the first half of the samples gives", u, x)
        assert "the halves of the samples disagree" in result.unreliable
        silent_about("half of the samples", u, DEVICE(u, seed=1))

    def test_an_unstable_fit(self):
        basis = infocap.product_basis("legendre", 2, 8)
        u = infocap.draw(basis, 16, design="random", seed=0)
        x = infocap.systems.RandomFeatures(2, 8, gain=2, seed=0)(u)
        result = saying("the fit is unstable", u, x, basis)
        assert "an unstable fit" in result.unreliable
        silent_about("the fit is unstable", random_points(56), DEVICE(random_points(56), seed=1))

    def test_large_fourth_moments(self):
        u = random_points(1024, HEAVY_BASIS)
        x = np.tanh(u @ np.array([[1.0, 0.3], [0.2, 1.0]])) + 0.1 * NOISE.standard_normal(u.shape)
        result = saying("functions have E[y^4] above 102", u, x, HEAVY_BASIS)
        assert "functions with large fourth moments" in result.unreliable
        low = infocap.product_basis("hermite", 2, 3)
        assert not silent_about("E[y^4]", u, x, low).unreliable
        u, weights = infocap.draw_weighted(HEAVY_BASIS, 1024, seed=0)
        x = np.tanh(u @ np.array([[1.0, 0.3], [0.2, 1.0]])) + 0.1 * NOISE.standard_normal(u.shape)
        silent_about("E[y^4]", u, x, HEAVY_BASIS, sample_weight=weights)
        mixture = infocap.theory.random_mixture(HEAVY_BASIS, n_active=6, n_readouts=3, seed=1)
        u = random_points(1024, HEAVY_BASIS)
        silent_about("E[y^4]", u, mixture(u), HEAVY_BASIS)  # in the span they are exact

    def test_a_single_net(self):
        net = infocap.draw(BASIS, 512, seed=1, blocks=1)
        result = saying("the inputs are a single low-discrepancy design", net, DEVICE(net, seed=1))
        assert not result.unreliable  # a caution: the total is mostly good
        blocks = infocap.draw(BASIS, 512, seed=1)
        silent_about("single low-discrepancy", blocks, DEVICE(blocks, seed=1))
        silent_about(
            "single low-discrepancy", random_points(512), DEVICE(random_points(512), seed=1)
        )
        exact = infocap.theory.random_mixture(BASIS, n_active=10, n_readouts=5, seed=1)
        silent_about("single low-discrepancy", net, exact(net))  # nothing is left to be averaged
