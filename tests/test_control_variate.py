"""The control-variate estimator: exact where it can be, unbiased, honest about its errors, never silent."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.estimators import control_variate
from infocap.estimators._tuning import TUNING
from infocap.kernels import Regression
from infocap.samples import Engine
from reference import estimate_with

BASIS = infocap.product_basis("legendre", 2, 8)  # 45 functions
MIXTURE = infocap.theory.random_mixture(BASIS, n_active=20, n_readouts=10, noise=0.3, seed=1)


def measured(n, seed=0, design="sobol", system=MIXTURE, basis=BASIS, **options):
    u = infocap.draw(basis, n, design=design, seed=seed)
    return infocap.estimate(u, system(u, seed=1000 + seed), basis, method="control-variate", **options)


def many(count, n, design, system=MIXTURE, basis=BASIS, **options):
    return [measured(n, seed, design, system, basis, **options) for seed in range(count)]


def within(values, expected, errors=4.0):
    """The mean of independent values is as expected, to within its own standard error."""
    values = np.asarray(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.abs(values.mean(axis=0) - expected) <= errors * error


def test_readouts_in_the_span_are_found_to_rounding():
    basis = infocap.product_basis("legendre", 5, 8)
    system = infocap.theory.random_mixture(basis, n_active=200, n_readouts=71, seed=0)
    result = infocap.probe(system, basis, 8192, seed=1)
    assert result.method == "control-variate"
    assert np.sqrt(np.mean((result.capacity - system.exact()) ** 2)) < 1e-12
    assert abs(result.total - system.exact().sum()) < 1e-10


FAMILIES = [
    infocap.product_basis("hermite", 2, 3),
    infocap.product_basis("fourier", 2, 3),
    infocap.product_basis("chebyshev", 2, 4),
    infocap.product_basis("bernoulli", 6, 3),
    infocap.product_basis("laguerre", 1, 3),
    infocap.product_basis([infocap.basis.jacobi(1, 2), infocap.basis.legendre().on((0, 3))], max_degree=4),
    infocap.product_basis("legendre", 3, 6, index_set="hyperbolic"),
]


@pytest.mark.parametrize("basis", FAMILIES, ids=repr)
@pytest.mark.parametrize("fit", ["auto", "least-squares"])
def test_any_basis_will_do(basis, fit):
    system = infocap.theory.random_mixture(basis, n_active=min(6, len(basis)), n_readouts=3, seed=2)
    result = infocap.probe(system, basis, 2048, seed=1, fit=fit)
    assert_allclose(result.capacity, system.exact(), atol=1e-9)


@pytest.mark.filterwarnings("ignore:the capacities sum to")  # those of Algorithm 1
@pytest.mark.parametrize("design", ["sobol", "random"])
def test_much_closer_than_algorithm_1(design):
    system = infocap.theory.random_mixture(BASIS, n_active=20, n_readouts=10, noise=0.1, seed=1)
    exact = system.exact()
    rms, total = {}, {}
    for method in ("control-variate", "threshold-richardson"):
        found = [infocap.probe(system, BASIS, 512, seed=s, design=design, method=method) for s in range(8)]
        rms[method] = np.sqrt(np.mean([(one.capacity - exact) ** 2 for one in found]))
        total[method] = np.sqrt(np.mean([(one.total - exact.sum()) ** 2 for one in found]))
    assert rms["control-variate"] < 0.4 * rms["threshold-richardson"]
    assert total["control-variate"] < 0.25 * total["threshold-richardson"]


@pytest.mark.filterwarnings("ignore:error bars of single capacities rest on")
@pytest.mark.parametrize(
    ("design", "fit"),
    [
        ("sobol", "auto"),
        ("random", "auto"),
        ("sobol", "least-squares"),
        ("random", "least-squares"),
        ("random", "none"),  # without controls the correction assumes independent points
    ],
)
def test_capacities_and_total_are_unbiased(design, fit):
    found = many(40, 512, design, fit=fit)
    exact = MIXTURE.exact()
    unbiased = np.array([one.unbiased for one in found])
    assert np.mean(within(unbiased, exact)) > 0.95  # 45 functions, 4 standard errors each
    size = np.mean([one.total_standard_error for one in found])
    assert (
        within([one.total for one in found], exact.sum())
        or abs(np.mean([one.total for one in found]) - exact.sum()) < 0.5 * size
    )


@pytest.mark.parametrize("design", ["sobol", "random"])
def test_error_bars_cover(design):
    """95 % intervals of the active capacities and of the total, over 40 data sets."""
    found, exact = many(40, 512, design), MIXTURE.exact()
    active = exact > 1e-3
    inside = np.array([(one.interval()[:, 0] <= exact) & (exact <= one.interval()[:, 1]) for one in found])
    assert 0.90 < inside[:, active].mean() < 0.99
    hit = [low <= exact.sum() <= high for low, high in (one.total_interval() for one in found)]
    assert np.mean(hit) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 40)


@pytest.mark.parametrize("design", ["sobol", "random"])
def test_false_discoveries_stay_below_the_stated_rate(design):
    active = MIXTURE.exact() > 1e-9
    rates = []
    for result in many(40, 512, design):
        shown = result.capacity > 0
        rates.append(np.sum(shown & ~active) / max(np.sum(shown), 1))
        assert np.all(shown[MIXTURE.exact() > 0.05])
    assert np.mean(rates) < 0.05 + 3 * np.std(rates) / np.sqrt(len(rates))


def test_p_values_of_zeros_are_uniform():
    zero = MIXTURE.exact() < 1e-9
    p = np.concatenate([one.p_value[zero] for one in many(40, 512, "random")])
    for level in (0.05, 0.2, 0.5):
        assert abs(np.mean(p < level) - level) < 4 * np.sqrt(level * (1 - level) / len(p)) + 0.01


def test_a_lower_rate_shows_fewer():
    strict, loose = measured(512, false_discovery_rate=1e-4), measured(512, false_discovery_rate=0.5)
    assert np.all((strict.capacity > 0) <= (loose.capacity > 0))
    assert np.sum(loose.capacity > 0) > np.sum(strict.capacity > 0)
    with pytest.raises(ParameterError, match="false_discovery_rate=5"):
        measured(512, false_discovery_rate=5)


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(24, 300),
    k=st.integers(1, 12),
    noise=st.sampled_from([0.0, 0.1, 3.0]),
    seed=st.integers(0, 99),
)
@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_never_outside_what_is_possible(n, k, noise, seed):
    system = infocap.systems.RandomFeatures(2, k, noise=noise, seed=seed)
    u = infocap.draw(BASIS, n, design="random", seed=seed)
    result = infocap.estimate(u, system(u, seed=seed), BASIS)
    assert result.capacity.min() >= 0
    assert result.capacity.max() <= 1
    assert 0 <= result.total <= result.rank
    assert np.all(np.isfinite(result.standard_error))
    assert np.all((result.p_value >= 0) & (result.p_value <= 1))
    low, high = result.total_interval()
    assert 0 <= low <= high <= result.rank


@pytest.mark.filterwarnings("ignore:error bars of single capacities rest on")
def test_fewer_samples_than_functions():
    exact = MIXTURE.exact()
    with pytest.warns(DataWarning, match="44 samples are few for 45 functions"):
        result = measured(44, design="random")
    settings = {"design": "random", "seed": 0, "weighted": False, "method": "threshold-richardson"}
    with pytest.warns(DataWarning):
        other = infocap.probe(MIXTURE, BASIS, 44, **settings)
    assert np.mean((result.capacity - exact) ** 2) < np.mean((other.capacity - exact) ** 2)
    assert abs(result.total - exact.sum()) < 3 * result.total_standard_error


U = infocap.draw(BASIS, 512, seed=0)
X = MIXTURE(U, seed=0)
TURNED = np.random.default_rng(0).standard_normal((10, 10))


@pytest.mark.parametrize(
    "x",
    [
        X * 1e-12,
        X * np.logspace(-6, 6, 10),
        X @ TURNED,
        X[:, ::-1] + 100,
        X @ np.vander(np.linspace(0, 2, 10)),
    ],
    ids=["picowatts", "12 decades", "mixed", "reversed and shifted", "ill-conditioned"],
)
def test_the_answer_does_not_depend_on_how_the_readouts_are_written(x):
    plain = infocap.estimate(U, X, BASIS)
    other = infocap.estimate(U, x, BASIS)
    assert other.rank == 11
    assert_allclose(other.capacity, plain.capacity, atol=1e-8)
    assert_allclose(other.standard_error, plain.standard_error, atol=1e-8)
    assert_allclose(other.total, plain.total, atol=1e-8)


def test_a_condition_number_of_1e10():
    """Pairs of readouts that differ by 1e-10: what the difference computes is found all the same."""
    basis = infocap.product_basis("legendre", 2, 4)
    system = infocap.theory.random_mixture(basis, n_active=12, n_readouts=8, seed=3)
    u = infocap.draw(basis, 1024, seed=0)
    x = system(u)
    nearly = np.column_stack([x[:, :4], x[:, :4] + 1e-9 * x[:, 4:]])
    assert_allclose(infocap.estimate(u, nearly, basis).capacity, system.exact(), atol=1e-8)


@pytest.mark.parametrize("n", [40, 200])
@pytest.mark.parametrize("penalty", [0.03, 3.0])
def test_left_out_residuals_are_those_of_fits_without_the_sample(n, penalty):
    generator = np.random.default_rng(0)
    y, z, weights = (
        generator.standard_normal((n, 60)),
        generator.standard_normal((n, 2)),
        np.linspace(1, 5, 60),
    )
    columns = np.arange(0, 60)
    (found,) = Regression.ridge(y, columns, weights).left_out(z, np.array([penalty]), slice(None))
    for row in (0, 7):
        rest = np.delete(np.arange(n), row)
        b = np.linalg.solve(y[rest].T @ y[rest] + penalty * np.diag(weights), y[rest].T @ z[rest])
        assert_allclose(found[row], z[row] - y[row] @ b, atol=1e-9)


def test_all_regressions_answer_the_same_questions():
    generator = np.random.default_rng(0)
    y, z = generator.standard_normal((100, 30)), generator.standard_normal((100, 3))
    columns = np.array([2, 5, 7, 20])
    direct, ridge = Regression.least_squares(y, columns), Regression.ridge(y, columns, np.ones(30))
    none = Regression.none(100)
    b = np.linalg.lstsq(y[:, columns], z, rcond=None)[0]
    for fit in (direct, ridge):
        assert_allclose(fit.coefficients(z, 0.0), b, atol=1e-12)
        assert_allclose(fit.residuals(z, 0.0), z - y[:, columns] @ b, atol=1e-12)
        margin = 1 - np.sum(np.linalg.qr(y[:, columns])[0] ** 2, axis=1)
        assert_allclose(fit.margin(np.zeros(1))[:, 0], margin, atol=1e-12)
        assert np.sum(1 - fit.margin(np.zeros(1))) == pytest.approx(4)
    assert_allclose(*[fit.left_out(z, np.zeros(1), slice(5, 9))[0] for fit in (direct, ridge)], atol=1e-12)
    assert_allclose(none.left_out(z, np.zeros(1), slice(None))[0], z)
    assert_allclose(none.margin(np.zeros(1)), 1)
    with pytest.raises(np.linalg.LinAlgError):
        Regression.least_squares(np.ones((100, 30)), columns)


def test_the_fast_path_agrees_and_reads_the_data_in_chunks(tmp_path):
    fast = measured(1024, fit="least-squares")
    assert_allclose(fast.unbiased, measured(1024).unbiased, atol=4 * fast.standard_error.max())
    u = infocap.draw(BASIS, 1024, seed=0)
    np.save(tmp_path / "x.npy", MIXTURE(u, seed=1000))
    on_disk = np.load(tmp_path / "x.npy", mmap_mode="r")
    engine = Engine(chunk_bytes=1, share_rows=100)
    again = estimate_with(engine, u, on_disk, BASIS, partial(control_variate, fit="least-squares"))
    assert_allclose(again.unbiased, fast.unbiased, atol=1e-11)
    assert_allclose(again.standard_error, fast.standard_error, atol=1e-11)
    assert again.total == pytest.approx(fast.total, abs=1e-10)


def test_more_samples_than_fit_in_memory_take_the_fast_path(monkeypatch):
    fast = measured(1024, fit="least-squares")
    monkeypatch.setattr("infocap.estimators._control_variate.TUNING", replace(TUNING, search_bytes=1000))
    assert_allclose(measured(1024).capacity, fast.capacity, atol=1e-12)


@pytest.mark.filterwarnings("ignore:52 samples are few", "ignore:error bars of single")
def test_least_squares_without_samples_enough_says_so():
    with pytest.warns(DataWarning, match=r"least squares is not stable here \(52 samples for 45 functions\)"):
        result = measured(52, design="random", fit="least-squares")
    assert_allclose(result.capacity, measured(52, design="random").capacity)
    with pytest.raises(ParameterError, match="fit='ols'` is not one of"):
        measured(512, fit="ols")


def test_an_unstable_fit_is_replaced_and_said(monkeypatch):
    plain = measured(512, fit="none")
    monkeypatch.setattr("infocap.estimators._control_variate.TUNING", replace(TUNING, largest_bias=-1.0))
    with pytest.warns(
        DataWarning, match="not to be trusted .* raw ones with their second-order bias removed"
    ):
        result = measured(512)
    assert_allclose(result.capacity, plain.capacity)
    assert any("not to be trusted" in check for check in result.checks)


def test_too_many_functions_are_screened(monkeypatch):
    """The strongest ones serve as controls; all are reported."""
    fewer = replace(TUNING, dictionary_bytes=8 * 512 * 25)
    monkeypatch.setattr("infocap.estimators._search.TUNING", fewer)
    result, exact = measured(512), MIXTURE.exact()
    assert np.sqrt(np.mean((result.capacity - exact) ** 2)) < 0.02
    assert abs(result.total - exact.sum()) < 4 * result.total_standard_error


@pytest.mark.filterwarnings("ignore:functions of higher degree than can be fitted")
def test_functions_beyond_the_basis_do_not_lower_the_total_on_sobol_points():
    """Half of the power lies in degrees 3 and 4, more functions than can be fitted; even points average them."""
    basis = infocap.product_basis("legendre", 8, 2)
    wide = infocap.product_basis("legendre", 8, 4)
    generator = np.random.default_rng(3)
    weights = np.zeros((8, len(wide)))
    inside, outside = (
        generator.choice(45, 20, replace=False),
        generator.choice(np.arange(45, 495), 20, replace=False),
    )
    weights[:, inside], weights[:, outside] = generator.standard_normal((2, 8, 20))
    exact = np.sum(np.linalg.qr(np.vstack([np.eye(1, len(wide)), weights]).T)[0][:45] ** 2)
    totals = []
    for seed in range(10):
        u = infocap.draw(basis, 256, seed=seed)
        totals.append(infocap.estimate(u, wide(u) @ weights.T, basis))
    assert all(any("pass for others" in check for check in one.checks) for one in totals)
    mean = np.mean([one.total for one in totals])
    assert abs(mean - exact) < 1.96 * np.mean([one.total_standard_error for one in totals])


@pytest.mark.filterwarnings("ignore:error bars of single")
def test_the_constant_is_known_exactly():
    for n in (128, 256):
        result = measured(n, design="random", fit="none")
        assert result.unbiased[0] == 1
        assert result.standard_error[0] == 0


@pytest.mark.filterwarnings("ignore:error bars of single")
def test_lists_will_do():
    again = MIXTURE(U, seed=5)
    plain = infocap.estimate(U, X, BASIS, repeats=again)
    listed = infocap.estimate(U.tolist(), X.tolist(), BASIS, repeats=again.tolist())
    assert listed.noise_limited_total == pytest.approx(plain.noise_limited_total)


def test_a_basis_can_be_extended():
    wide = BASIS.extended(60)
    assert len(wide) == 60  # 45, all 10 of degree 9, and 5 of the 11 of degree 10
    assert np.bincount(wide.degrees)[9:].tolist() == [10, 5]
    assert wide.share_of_last_degree == pytest.approx(5 / 11)
    assert {tuple(row) for row in BASIS.indices.tolist()} <= {tuple(row) for row in wide.indices.tolist()}
    assert BASIS.extended(45) is BASIS
    few = infocap.product_basis("bernoulli", 3, 3)  # all 8 functions that there are
    assert len(few.extended(100)) == len(few) == 8
    known = infocap.basis.density(lambda u: 1 + u, (-1, 1), max_degree=5)
    assert len(infocap.product_basis([known], max_degree=4).extended(100)) == 6
    with pytest.raises(ParameterError, match="must begin with the constant function"):
        infocap.ProductBasis(BASIS.families, BASIS.indices[3:6])
    with pytest.raises(ParameterError, match="sorted by degree"):
        infocap.ProductBasis(BASIS.families, BASIS.indices[[0, 5, 1]])


def test_weights_of_one_change_nothing():
    for method in ("control-variate", "raw", "threshold-richardson", "chi2"):
        plain = infocap.estimate(U, X, BASIS, method=method)
        weighted = infocap.estimate(U, X, BASIS, method=method, weights=np.ones(512))
        assert_allclose(weighted.capacity, plain.capacity, atol=1e-12)


def test_normal_inputs_of_high_degree_need_weights():
    basis = infocap.product_basis("hermite", 2, 8)
    system = infocap.systems.RandomFeatures(2, 15, gain=0.5, noise=0.01)
    nodes, probability = basis.quadrature(60)
    full = np.column_stack(
        [np.ones(len(nodes)), np.tanh(nodes @ system._layers[0][0] + system._layers[0][1])]
    )
    gram = (full * probability[:, None]).T @ full + np.diag([0.0] + [1e-4] * 15)
    cross = (full * probability[:, None]).T @ basis(nodes)
    exact = np.sum(cross * np.linalg.solve(gram, cross), axis=0)
    result = infocap.probe(system, basis, 1024, seed=0, weighted=True)
    assert np.abs(result.unbiased - exact).max() < 0.1
    assert abs(result.total - exact.sum()) < 3 * result.total_standard_error + 0.05
    assert np.mean(np.abs(result.unbiased - exact) < 1.96 * result.standard_error + 1e-4) > 0.85
    with pytest.warns(DataWarning, match=r"functions have E\[y\^4\] above 102"):
        plain = infocap.probe(system, basis, 1024, seed=0, weighted=False)
    assert np.abs(plain.unbiased - exact).max() > 2 * np.abs(result.unbiased - exact).max()


def test_weighted_designs_integrate_under_the_density_of_the_basis():
    for basis in FAMILIES:
        u, weights = infocap.draw_weighted(basis, 4096, seed=0)
        assert u.shape == (4096, basis.n_inputs)
        y = basis(u)
        scatter = np.sqrt(np.mean((weights[:, None] * y**2) ** 2, axis=0) / 4096)
        assert np.all(np.abs(np.mean(weights[:, None] * y**2, axis=0) - 1) < 6 * scatter + 1e-9)
    u, weights = infocap.draw_weighted(BASIS, 4096, seed=0)
    assert np.mean(np.abs(u) > 0.95) > 2 * 0.05
    assert weights.max() < 4


def test_weights_that_cannot_be_are_refused():
    with pytest.raises(DataError, match="weights have the mean 2"):
        infocap.estimate(U, X, BASIS, weights=np.full(512, 2.0))
    with pytest.raises(DataError, match=r"weights is -1\.0 at row 3"):
        infocap.estimate(U, X, BASIS, weights=np.where(np.arange(512) == 3, -1.0, 1.0))
    with pytest.raises(DataError, match=r"weights has shape \(5,\)"):
        infocap.estimate(U, X, BASIS, weights=np.ones(5))
    with pytest.raises(ParameterError, match="'surrogate' shuffles samples and takes no weights"):
        infocap.estimate(U, X, BASIS, weights=np.ones(512), method="surrogate")


def test_blocks_are_independent_designs():
    u = infocap.draw(BASIS, 1024, seed=3, blocks=4)
    parts = np.split(u, 4)
    assert len({part.tobytes() for part in parts}) == 4
    for part in parts:  # each one has one point in each of 256 intervals
        assert len(np.unique(np.floor((part[:, 0] + 1) * 128))) == 256
    assert np.array_equal(u, infocap.draw(BASIS, 1024, seed=3, blocks=4))
    assert infocap.probe(MIXTURE, BASIS, 1024, seed=3, blocks=4).n_samples == 1024
    with pytest.raises(ParameterError, match="n_samples=1000` cannot be shared out evenly among 3 blocks"):
        infocap.draw(BASIS, 1000, blocks=3)


@pytest.mark.filterwarnings("ignore:the capacities sum to")
@pytest.mark.parametrize(
    "method", ["raw", "threshold-richardson", "richardson-threshold", "chi2", "surrogate"]
)
def test_every_method_can_have_error_bars(method):
    """The jackknife's standard errors are as large as the scatter over data sets."""
    options = {"n_surrogates": 5} if method == "surrogate" else {}
    found = [
        infocap.probe(MIXTURE, BASIS, 1024, design="random", seed=s, method=method, jackknife=16, **options)
        for s in range(30)
    ]
    active = (
        MIXTURE.exact() > 0.05
    )  # squares of coefficients that are zero scatter less than a jackknife says
    active[0] = False
    scatter = np.std([one.unbiased[active] for one in found], axis=0, ddof=1)
    claimed = np.sqrt(np.mean([one.standard_error[active] ** 2 for one in found], axis=0))
    assert 0.8 < np.median(claimed / scatter) < 1.3
    totals = np.std([one.total for one in found], ddof=1)
    assert 0.5 < np.mean([one.total_standard_error for one in found]) / totals < 2
    low, high = found[0].total_interval()
    assert low < found[0].total < high or method in ("raw", "chi2", "surrogate")


@pytest.mark.filterwarnings("ignore:the capacities sum to")
def test_the_jackknife_is_that_of_estimates_without_each_block():
    u = infocap.draw(BASIS, 256, design="random", seed=0)
    x = MIXTURE(u, seed=0)
    result = infocap.estimate(u, x, BASIS, method="raw", jackknife=4)
    without = []
    for block in range(4):
        rows = np.delete(np.arange(256), np.arange(64 * block, 64 * (block + 1)))
        without.append(infocap.estimate(u[rows], x[rows], BASIS, method="raw").raw)
    spread = np.sqrt(3 / 4 * np.sum((np.array(without) - np.mean(without, axis=0)) ** 2, axis=0))
    assert_allclose(result.standard_error, spread, atol=1e-10)
    with pytest.raises(ParameterError, match="`jackknife=5` must be 0, or an even number"):
        infocap.estimate(u, x, BASIS, method="raw", jackknife=5)
    with pytest.raises(DataError, match="`jackknife=64` blocks of 256 samples hold fewer than the 11"):
        infocap.estimate(u, x, BASIS, method="raw", jackknife=64)


def test_repeats_tell_noise_from_functions_outside_the_basis(tmp_path):
    wide = infocap.product_basis("legendre", 2, 10)
    system = infocap.theory.random_mixture(wide, n_active=40, n_readouts=10, noise=0.3, seed=2)
    exact, inside = system.exact().sum(), system.exact()[: len(BASIS)].sum()
    u = infocap.draw(BASIS, 2048, design="random", seed=0)
    again = system(u, seed=2)
    result = infocap.estimate(u, system(u, seed=1), BASIS, repeats=again)
    assert abs(result.total - inside) < 4 * result.total_standard_error
    assert abs(result.noise_limited_total - exact) < 4 * result.noise_limited_standard_error
    line = next(line for line in repr(result).splitlines() if "that noise allows" in line)
    assert line.split(" of ")[0].strip().startswith(f"found {result.total:.1f} ± ")
    assert line.endswith("that noise allows, of 11")
    saved = infocap.load_result(result.save(tmp_path / "result.nc"))
    assert saved.noise_limited_total == result.noise_limited_total
    assert_allclose(saved.unbiased, result.unbiased)
    again[512:] = np.nan  # only the first 512 inputs were measured twice
    partly = infocap.estimate(u, system(u, seed=1), BASIS, repeats=again)
    assert partly.noise_limited_standard_error > result.noise_limited_standard_error
    assert abs(partly.noise_limited_total - exact) < 4 * partly.noise_limited_standard_error
    with pytest.raises(DataError, match=r"repeats has shape \(512, 10\) and x has shape \(2048, 10\)"):
        infocap.estimate(u, system(u, seed=1), BASIS, repeats=again[:512])
    with pytest.raises(DataError, match="NaN or infinite value in every row"):
        infocap.estimate(u, system(u, seed=1), BASIS, repeats=np.full_like(again, np.nan))


def test_repeats_of_a_weighted_design_tell_what_noise_allows():
    """Every third row repeated; noise that grows with the input, so that the two densities differ in their totals."""

    def device(u, seed):
        noise = np.random.default_rng(seed).standard_normal((len(u), 6))
        return BASIS(u)[:, 1:7] + (0.2 + 2 * u[:, :1] ** 2) * noise

    found = {}
    for name, (u, weights) in {
        "weighted": infocap.draw_weighted(BASIS, 3072, design="random", seed=1),
        "plain": (infocap.draw(BASIS, 3072, design="random", seed=2), None),
    }.items():
        again = np.where(np.arange(3072)[:, None] % 3 == 0, device(u, 3), np.nan)
        found[name] = infocap.estimate(u, device(u, 4), BASIS, weights=weights, repeats=again)
    errors = [one.noise_limited_standard_error for one in found.values()]
    apart = found["weighted"].noise_limited_total - found["plain"].noise_limited_total
    assert abs(apart) < 3 * np.hypot(*errors)
    assert max(errors) < 0.3
    u, weights = infocap.draw_weighted(BASIS, 3072, design="random", seed=1)
    again = np.where(u[:, :1] > 0, device(u, 3), np.nan)
    with pytest.warns(DataWarning, match="repeated inputs do not follow the declared distribution"):
        infocap.estimate(u, device(u, 4), BASIS, weights=weights, repeats=again)


def test_repeats_follow_rows_that_are_dropped():
    x, again = X.copy(), MIXTURE(U, seed=7)
    x[5] = np.nan
    dropped = infocap.estimate(U, x, BASIS, repeats=again, nan="drop")
    rows = np.delete(np.arange(512), 5)
    expected = infocap.dimension.from_repeats(X[rows], again[rows])
    assert dropped.noise_limited_total == pytest.approx(expected.total)


@pytest.mark.slow
@pytest.mark.parametrize("design", ["sobol", "random"])
def test_the_papers_validation_with_noise(design):
    """30 % noise, 8192 samples: errors relative to those of Algorithm 1, over 8 data sets."""
    basis = infocap.product_basis("legendre", 5, 8)
    rms, total = {}, {}
    for method in ("control-variate", "threshold-richardson"):
        squares, totals = [], []
        for seed in range(8):
            system = infocap.theory.random_mixture(basis, n_active=200, n_readouts=71, noise=0.3, seed=seed)
            result = infocap.probe(system, basis, 8192, seed=seed, design=design, method=method)
            squares.append(np.mean((result.capacity - system.exact()) ** 2))
            totals.append((result.total - system.exact().sum()) ** 2)
        rms[method], total[method] = np.sqrt(np.mean(squares)), np.sqrt(np.mean(totals))
    assert rms["control-variate"] <= 0.35 * rms["threshold-richardson"]
    assert total["control-variate"] <= 0.15 * total["threshold-richardson"]


def test_few_samples_do_not_let_rounding_choose():
    basis = infocap.product_basis("legendre", 2, 8)
    u = infocap.draw(basis, 64, seed=1)
    x = infocap.systems.RandomFeatures(2, 10, noise=0.01)(u, seed=1)
    with pytest.warns(infocap.errors.DataWarning):
        totals = [infocap.estimate(u, y, basis).total for y in (x, 3.7 * x + 2, x * (1 + 1e-15))]
    assert_allclose(totals, totals[0], rtol=1e-9)
