"""The control-variate estimator: exact where it can be, unbiased, honest about its errors, never silent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError, DataWarning, ParameterError

BASIS = infocap.product_basis("legendre", 2, 8)  # 45 functions
MIXTURE = infocap.theory.random_mixture(BASIS, n_active=20, n_readouts=10, noise=0.3, seed=1)


def measured(n, seed=0, design="sobol", system=MIXTURE, basis=BASIS, **method_options):
    """The result of the default method for one data set of a device."""
    u = infocap.draw(basis, n, design=design, seed=seed)
    x = system(u, seed=1000 + seed)
    return infocap.estimate(u, x, basis, method="control-variate", method_options=method_options)


def many(count, n, design, system=MIXTURE, basis=BASIS, **method_options):
    """The results for data sets that differ in their inputs and in their noise."""
    return [measured(n, seed, design, system, basis, **method_options) for seed in range(count)]


def within(values, expected, errors=4.0):
    """The mean of independent values is as expected, to within its own standard error."""
    values = np.asarray(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.abs(values.mean(axis=0) - expected) <= errors * error


def covered(found, exact):
    """Which 95 % intervals hold the truth: of single capacities (data sets, functions), and of totals."""
    inside = [(one.interval()[:, 0] <= exact) & (exact <= one.interval()[:, 1]) for one in found]
    totals = [low <= exact.sum() <= high for low, high in (one.total_interval() for one in found)]
    return np.array(inside), np.array(totals)


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
    infocap.product_basis(
        [infocap.basis.jacobi(1, 2), infocap.basis.legendre().on((0, 3))], max_degree=4
    ),
    infocap.product_basis("legendre", 3, 6, index_set="hyperbolic"),
]


@pytest.mark.parametrize("basis", FAMILIES, ids=repr)
@pytest.mark.parametrize("fit", ["auto", "least-squares"])
def test_any_basis_will_do(basis, fit):
    system = infocap.theory.random_mixture(basis, n_active=min(6, len(basis)), n_readouts=3, seed=2)
    result = infocap.probe(system, basis, 2048, seed=1, method_options={"fit": fit})
    assert_allclose(result.capacity, system.exact(), atol=1e-12)


@pytest.mark.filterwarnings("ignore:the capacities sum to")  # those of Algorithm 1
@pytest.mark.parametrize("design", ["sobol", "random"])
def test_much_closer_than_algorithm_1(design):
    system = infocap.theory.random_mixture(BASIS, n_active=20, n_readouts=10, noise=0.1, seed=1)
    exact = system.exact()
    rms, total = {}, {}
    for method in ("control-variate", "threshold-richardson"):
        found = [
            infocap.probe(system, BASIS, 512, seed=s, design=design, method=method)
            for s in range(8)
        ]
        rms[method] = np.sqrt(np.mean([(one.capacity - exact) ** 2 for one in found]))
        total[method] = np.sqrt(np.mean([(one.total - exact.sum()) ** 2 for one in found]))
    assert rms["control-variate"] < 0.4 * rms["threshold-richardson"]
    assert total["control-variate"] < 0.25 * total["threshold-richardson"]


# Without a fit the correction assumes independent points and misses that Sobol blocks average better.
@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
@pytest.mark.parametrize(
    "kind", ["sobol auto", "random auto", "sobol least-squares", "random none"]
)
def test_capacities_and_total_are_unbiased(kind):
    design, fit = kind.split()
    found, exact = many(40, 512, design, fit=fit), MIXTURE.exact()
    assert (
        np.mean(within([one.unbiased for one in found], exact)) > 0.95
    )  # 45 functions, 4 standard errors each
    assert within([one.total for one in found], exact.sum())


@pytest.mark.parametrize("design", ["sobol", "random"])
def test_error_bars_cover(design):
    """95 % intervals of the active capacities and of the total, over 40 data sets."""
    exact = MIXTURE.exact()
    inside, totals = covered(many(40, 512, design), exact)
    assert 0.92 < inside[:, exact > 1e-3].mean() < 0.99
    assert totals.mean() > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 40)


@pytest.mark.parametrize("design", ["sobol", "random"])
def test_error_bars_cover_what_no_fit_reaches(design):
    """Comparators with noise of two sizes: the fit leaves steps, which are no polynomials."""
    basis = infocap.product_basis("legendre", 2, 5)
    generator = np.random.default_rng(4)
    turn, offset = generator.standard_normal((2, 12)), generator.uniform(-0.7, 0.7, 12)
    scale = np.where(np.arange(12) % 2, 0.1, 1.0)

    def device(u, seed):
        noise = np.random.default_rng(seed).standard_normal((len(u), 12))
        return np.sign(u @ turn + offset) + scale * noise

    nodes = (np.arange(600) + 0.5) / 300 - 1
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    full = np.column_stack([np.ones(len(grid)), np.sign(grid @ turn + offset)])
    gram, cross = (
        full.T @ full / len(grid) + np.diag([0.0, *scale**2]),
        full.T @ basis(grid) / len(grid),
    )
    exact = np.sum(cross * np.linalg.solve(gram, cross), axis=0)
    inside, totals = covered(many(40, 512, design, device, basis), exact)
    assert inside[:, exact > 1e-3].mean() > 0.92
    assert totals.mean() > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 40)


@pytest.mark.parametrize("design", ["sobol", "random"])
def test_false_discoveries_stay_below_the_stated_rate(design):
    active = MIXTURE.exact() > 1e-9
    rates = []
    for result in many(40, 512, design):
        shown = result.capacity > 0
        rates.append(np.sum(shown & ~active) / max(np.sum(shown), 1))
        assert np.all(shown[MIXTURE.exact() > 0.05])
    assert np.mean(rates) < 0.05 + 3 * np.std(rates) / np.sqrt(len(rates))


def noise_alone(u, seed):
    return np.random.default_rng(seed).standard_normal((len(u), 5))


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
@pytest.mark.parametrize("fit", ["auto", "none"])
@pytest.mark.filterwarnings("ignore:nothing of the inputs")
def test_noise_alone_shows_nothing_at_the_stated_rate(fit):
    """Where all functions but the constant are zero, one data set in five may show some of them."""
    basis = infocap.product_basis("legendre", 2, 4)
    found = many(100, 256, "random", noise_alone, basis, fit=fit, false_discovery_rate=0.2)
    shown = np.mean([np.any(one.capacity[1:] > 0) for one in found])
    assert shown < 0.2 + 3 * np.sqrt(0.2 * 0.8 / 100)
    p = np.concatenate([one.p_value[1:] for one in found])
    for level in (0.05, 0.2, 0.5):
        assert abs(np.mean(p < level) - level) < 4 * np.sqrt(level * (1 - level) / len(p)) + 0.01


def test_p_values_of_zeros_are_uniform():
    zero = MIXTURE.exact() < 1e-9
    p = np.concatenate([one.p_value[zero] for one in many(40, 512, "random")])
    for level in (0.05, 0.2, 0.5):
        assert abs(np.mean(p < level) - level) < 4 * np.sqrt(level * (1 - level) / len(p)) + 0.01


def test_a_lower_rate_shows_fewer():
    strict, loose = (
        measured(512, false_discovery_rate=1e-4),
        measured(512, false_discovery_rate=0.5),
    )
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


@pytest.mark.filterwarnings(
    "ignore:the total's error bar rests on", "ignore:44 samples are few for 11 readouts"
)
def test_fewer_samples_than_functions():
    exact = MIXTURE.exact()
    with pytest.warns(DataWarning, match="44 samples are few for 45 functions") as said:
        result = measured(44, design="random")
    assert not any("the fit is unstable" in str(one.message) for one in said)
    with pytest.warns(DataWarning):
        other = measured(44, design="random", fit="none")
    assert np.mean((result.capacity - exact) ** 2) < np.mean((other.capacity - exact) ** 2)
    assert abs(result.total - exact.sum()) < 3 * result.total_standard_error
    assert result.total == pytest.approx(result.capacity.sum())


U = infocap.draw(BASIS, 512, seed=0)
X = MIXTURE(U, seed=0)
TURNED = np.random.default_rng(0).standard_normal((10, 10))


@pytest.mark.parametrize("fit", ["auto", "least-squares", "none"])
@pytest.mark.parametrize(
    "x",
    [
        X * 1e-9,
        X * 1e9,
        X * np.logspace(-6, 6, 10),
        X @ TURNED,
        X[:, ::-1],
        X + 100 * np.arange(10),
        (X @ TURNED + 7) * np.logspace(-6, 6, 10),
    ],
    ids=["nano", "giga", "12 decades", "mixed", "reversed", "shifted", "mixed, scaled and shifted"],
)
@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_the_answer_does_not_depend_on_how_the_readouts_are_written(x, fit):
    plain = infocap.estimate(U, X, BASIS, method_options={"fit": fit})
    other = infocap.estimate(U, x, BASIS, method_options={"fit": fit})
    assert other.rank == 11
    for name in (
        "capacity",
        "unbiased",
        "standard_error",
        "total",
        "total_standard_error",
        "p_value",
    ):
        assert_allclose(
            getattr(other, name), getattr(plain, name), rtol=0, atol=1e-10, err_msg=name
        )


def test_a_condition_number_of_1e10():
    """Pairs of readouts that differ by 1e-10: what the difference computes is found all the same."""
    basis = infocap.product_basis("legendre", 2, 4)
    system = infocap.theory.random_mixture(basis, n_active=12, n_readouts=8, seed=3)
    u = infocap.draw(basis, 1024, seed=0)
    x = system(u)
    nearly = np.column_stack([x[:, :4], x[:, :4] + 1e-9 * x[:, 4:]])
    assert_allclose(infocap.estimate(u, nearly, basis).capacity, system.exact(), atol=1e-8)


def test_functions_that_are_no_controls_are_reported_all_the_same():
    """More functions than 0.4 per sample: the strongest serve as controls, all have a capacity and an error bar."""
    basis = infocap.product_basis("legendre", 2, 15)
    system = infocap.theory.random_mixture(basis, n_active=20, n_readouts=10, noise=0.3, seed=2)
    exact = system.exact()
    found = many(10, 512, "sobol", system, basis, fit="auto")  # 136 functions, all of them controls
    with pytest.warns(DataWarning, match="256 samples are few for 136 functions"):
        fewer = many(10, 256, "sobol", system, basis)  # 102 controls
    assert all(one.unreliable == "few samples for 136 functions" for one in fewer)
    for one in fewer:
        assert np.all(one.standard_error[1:] > 0)
        assert one.total == pytest.approx(one.capacity.sum())
        assert abs(one.total - exact.sum()) < 3 * one.total_standard_error
    rms = [
        np.sqrt(np.mean([(one.capacity - exact) ** 2 for one in all_])) for all_ in (found, fewer)
    ]
    assert rms[1] < 2.5 * rms[0]
    with pytest.raises(ParameterError, match="fit='ols'` is not one of"):
        measured(512, fit="ols")


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_functions_beyond_the_basis_do_not_lower_the_total():
    """Half of the power lies in degrees 3 and 4, more functions than can be fitted with 512 samples."""
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
    found = many(20, 512, "sobol", lambda u, seed: wide(u) @ weights.T, basis)
    assert abs(np.mean([one.total for one in found]) - exact) < np.mean(
        [one.total_standard_error for one in found]
    )
    hit = [low <= exact <= high for low, high in (one.total_interval() for one in found)]
    assert np.mean(hit) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 20)


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_the_constant_is_known_exactly():
    for n in (256, 512):
        result = measured(n, design="random", fit="none")
        assert result.unbiased[0] == 1
        assert result.standard_error[0] == 0


def test_lists_will_do():
    again = MIXTURE(U, seed=5)
    plain = infocap.estimate(U, X, BASIS, repeats=again)
    listed = infocap.estimate(U.tolist(), X.tolist(), BASIS, repeats=again.tolist())
    assert listed.noise_limited_total == pytest.approx(plain.noise_limited_total)


def test_a_basis_can_be_extended():
    wide = BASIS.extended(60)
    assert len(wide) == 60  # 45, all 10 of degree 9, and 5 of the 11 of degree 10
    assert np.bincount(wide.degrees)[9:].tolist() == [10, 5]
    assert {tuple(row) for row in BASIS.indices.tolist()} <= {
        tuple(row) for row in wide.indices.tolist()
    }
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
        weighted = infocap.estimate(U, X, BASIS, method=method, sample_weight=np.ones(512))
        assert_allclose(weighted.capacity, plain.capacity, atol=1e-12)


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
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
    with pytest.raises(DataError, match="sample_weight has the mean 2"):
        infocap.estimate(U, X, BASIS, sample_weight=np.full(512, 2.0))
    with pytest.raises(DataError, match=r"sample_weight is -1\.0 at row 3"):
        infocap.estimate(U, X, BASIS, sample_weight=np.where(np.arange(512) == 3, -1.0, 1.0))
    with pytest.raises(DataError, match=r"sample_weight has shape \(5,\)"):
        infocap.estimate(U, X, BASIS, sample_weight=np.ones(5))
    with pytest.raises(ParameterError, match="'surrogate' shuffles samples and takes no weights"):
        infocap.estimate(U, X, BASIS, sample_weight=np.ones(512), method="surrogate")


def test_blocks_are_independent_designs():
    u = infocap.draw(BASIS, 1024, seed=3, blocks=4)
    parts = np.split(u, 4)
    assert len({part.tobytes() for part in parts}) == 4
    for part in parts:  # each one has one point in each of 256 intervals
        assert len(np.unique(np.floor((part[:, 0] + 1) * 128))) == 256
    assert np.array_equal(u, infocap.draw(BASIS, 1024, seed=3, blocks=4))
    assert infocap.probe(MIXTURE, BASIS, 1024, seed=3, blocks=4).n_samples == 1024
    with pytest.raises(
        ParameterError, match="n_samples=1000` cannot be shared out evenly among 3 blocks"
    ):
        infocap.draw(BASIS, 1000, blocks=3)


@pytest.mark.filterwarnings("ignore:the capacities sum to")
@pytest.mark.parametrize(
    "method", ["raw", "threshold-richardson", "richardson-threshold", "chi2", "surrogate"]
)
def test_every_method_can_have_error_bars(method):
    """The jackknife's standard errors are as large as the scatter over data sets."""
    options = {"n_surrogates": 5} if method == "surrogate" else {}
    found = [
        infocap.probe(
            MIXTURE,
            BASIS,
            1024,
            design="random",
            seed=s,
            method=method,
            method_options={"jackknife": 16} | options,
        )
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
    result = infocap.estimate(u, x, BASIS, method="raw", method_options={"jackknife": 4})
    without = []
    for block in range(4):
        rows = np.delete(np.arange(256), np.arange(64 * block, 64 * (block + 1)))
        without.append(infocap.estimate(u[rows], x[rows], BASIS, method="raw").raw)
    spread = np.sqrt(3 / 4 * np.sum((np.array(without) - np.mean(without, axis=0)) ** 2, axis=0))
    assert_allclose(result.standard_error, spread, atol=1e-10)
    with pytest.raises(ParameterError, match="`jackknife=5` must be 0, or an even number"):
        infocap.estimate(u, x, BASIS, method="raw", method_options={"jackknife": 5})
    with pytest.raises(
        DataError, match="`jackknife=64` blocks of 256 samples hold fewer than the 11"
    ):
        infocap.estimate(u, x, BASIS, method="raw", method_options={"jackknife": 64})


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
    assert line.split(" of ")[0].strip().startswith(f"found {result.total:.3f} ± ")
    assert line.endswith("that noise allows, of 11")
    saved = infocap.load_result(result.save(tmp_path / "result.nc"))
    assert saved.noise_limited_total == result.noise_limited_total
    assert_allclose(saved.unbiased, result.unbiased)
    again[512:] = np.nan  # only the first 512 inputs were measured twice
    partly = infocap.estimate(u, system(u, seed=1), BASIS, repeats=again)
    assert partly.noise_limited_standard_error > result.noise_limited_standard_error
    assert abs(partly.noise_limited_total - exact) < 4 * partly.noise_limited_standard_error
    with pytest.raises(
        DataError, match=r"repeats has shape \(512, 10\) and x has shape \(2048, 10\)"
    ):
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
        found[name] = infocap.estimate(u, device(u, 4), BASIS, sample_weight=weights, repeats=again)
    errors = [one.noise_limited_standard_error for one in found.values()]
    apart = found["weighted"].noise_limited_total - found["plain"].noise_limited_total
    assert abs(apart) < 3 * np.hypot(*errors)
    assert max(errors) < 0.3
    u, weights = infocap.draw_weighted(BASIS, 3072, design="random", seed=1)
    again = np.where(u[:, :1] > 0, device(u, 3), np.nan)
    with pytest.warns(DataWarning, match="repeated inputs do not follow the declared distribution"):
        infocap.estimate(u, device(u, 4), BASIS, sample_weight=weights, repeats=again)


def test_repeats_follow_rows_that_are_dropped():
    x, again = X.copy(), MIXTURE(U, seed=7)
    x[5] = np.nan
    dropped = infocap.estimate(U, x, BASIS, repeats=again, nan_policy="omit")
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
            system = infocap.theory.random_mixture(
                basis, n_active=200, n_readouts=71, noise=0.3, seed=seed
            )
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
