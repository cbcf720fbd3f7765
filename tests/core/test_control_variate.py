"""The control-variate method: exact where it can be, unbiased, honest about its errors, never silent."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import root_mean_square

import infocap
from infocap.errors import DataError, DataWarning, ParameterError

BASIS = infocap.product_basis("legendre", 2, 8)  # 45 functions
MIXTURE = infocap.theory.random_mixture(BASIS, n_active=20, n_readouts=10, noise=0.3, seed=1)
EXACT = MIXTURE.exact()
DESIGNS = pytest.mark.parametrize("design", ["sobol", "random"])
# The smallest share of 40 intervals of 95 % that hold, three standard errors below 95 %.
LEAST_COVERAGE_OF_40 = 0.95 - 3 * np.sqrt(0.95 * 0.05 / 40)


def measured(n, seed=0, design="sobol", system=MIXTURE, basis=BASIS, **method_options):
    """The result of the default method for one data set of a device."""
    u = infocap.draw(basis, n, design=design, seed=seed)
    x = system(u, seed=1000 + seed)
    return infocap.estimate(u, x, basis, method="control-variate", method_options=method_options)


def many(count, n, design, system=MIXTURE, basis=BASIS, **method_options):
    """The results for data sets that differ in their inputs and in their noise."""
    return [measured(n, seed, design, system, basis, **method_options) for seed in range(count)]


@cache
def forty_data_sets(design):
    """The results for 40 data sets of 512 samples of the mixture."""
    return many(40, 512, design)


def is_mean(values, expected, n_errors=4.0):
    """Whether the mean of independent values is as expected, to within its own standard error."""
    values = np.asarray(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.abs(values.mean(axis=0) - expected) <= n_errors * error


def is_share(values, expected, n_errors=4.0):
    """Whether the share of true values is as expected, to within its standard error and 1 %."""
    error = np.sqrt(expected * (1 - expected) / np.size(values))
    return abs(np.mean(values) - expected) < n_errors * error + 0.01


def capacities_in_interval(results, exact):
    """Which 95 % intervals of capacities hold the truth, (data sets, functions)."""
    intervals = np.array([result.interval() for result in results])
    return (intervals[:, :, 0] <= exact) & (exact <= intervals[:, :, 1])


def totals_in_interval(results, exact):
    """Which 95 % intervals of totals hold the truth, (data sets,)."""
    intervals = np.array([result.total_interval() for result in results])
    return (intervals[:, 0] <= exact.sum()) & (exact.sum() <= intervals[:, 1])


def test_readouts_in_the_span_are_found_to_rounding():
    basis = infocap.product_basis("legendre", 5, 6)  # 462 functions
    system = infocap.theory.random_mixture(basis, n_active=100, n_readouts=40, seed=0)
    result = infocap.probe(system, basis, 4096, seed=1)
    assert result.method == "control-variate"
    assert root_mean_square(result.capacity - system.exact()) < 1e-12
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
def test_capacities_in_the_span_of_any_basis_are_exact(basis, fit):
    n_active = min(6, len(basis))
    system = infocap.theory.random_mixture(basis, n_active=n_active, n_readouts=3, seed=2)
    result = infocap.probe(system, basis, 2048, seed=1, method_options={"fit": fit})
    assert_allclose(result.capacity, system.exact(), atol=1e-12)


@pytest.mark.filterwarnings("ignore:the capacities sum to")  # those of Algorithm 1
@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
@DESIGNS
def test_capacities_and_total_are_much_closer_than_those_of_algorithm_1(design):
    system = infocap.theory.random_mixture(BASIS, n_active=20, n_readouts=10, noise=0.1, seed=1)
    exact = system.exact()

    def errors(method):
        """Root mean square errors of capacities and of totals over eight data sets."""
        results = [
            infocap.probe(system, BASIS, 512, seed=seed, design=design, method=method)
            for seed in range(8)
        ]
        error = root_mean_square([result.capacity - exact for result in results])
        return error, root_mean_square([result.total - exact.sum() for result in results])

    error, error_of_total = errors("control-variate")
    reference_error, reference_error_of_total = errors("threshold-richardson")
    assert error < 0.4 * reference_error
    assert error_of_total < 0.25 * reference_error_of_total


# Without a fit the correction assumes independent points and misses that Sobol blocks average better.
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
@pytest.mark.parametrize(
    ("design", "fit"),
    [("sobol", "auto"), ("random", "auto"), ("sobol", "least-squares"), ("random", "none")],
)
def test_capacities_and_total_are_unbiased(design, fit):
    results = forty_data_sets(design) if fit == "auto" else many(40, 512, design, fit=fit)
    # 45 functions, 4 standard errors each
    assert np.mean(is_mean([result.unbiased for result in results], EXACT)) > 0.95
    assert is_mean([result.total for result in results], EXACT.sum())


@pytest.mark.thorough
@DESIGNS
def test_error_bars_hold_as_often_as_they_say(design):
    """95 % intervals of the active capacities and of the total, over 40 data sets."""
    results = forty_data_sets(design)
    is_inside = capacities_in_interval(results, EXACT)
    assert 0.92 < is_inside[:, EXACT > 1e-3].mean() < 0.99
    assert totals_in_interval(results, EXACT).mean() > LEAST_COVERAGE_OF_40


class Comparators:
    """Signs of mixtures of two inputs with noise of two sizes, and their exact capacities."""

    n_readouts = 12

    def __init__(self):
        generator = np.random.default_rng(4)
        self.directions = generator.standard_normal((2, self.n_readouts))
        self.offsets = generator.uniform(-0.7, 0.7, self.n_readouts)
        self.noise = np.where(np.arange(self.n_readouts) % 2, 0.1, 1.0)

    def signs(self, u):
        return np.sign(u @ self.directions + self.offsets)

    def __call__(self, u, seed):
        noise = np.random.default_rng(seed).standard_normal((len(u), self.n_readouts))
        return self.signs(u) + self.noise * noise

    def exact(self, basis):
        """Capacities by the midpoint rule on a fine grid."""
        nodes = (np.arange(600) + 0.5) / 300 - 1
        grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
        readouts = np.column_stack([np.ones(len(grid)), self.signs(grid)])
        gram = readouts.T @ readouts / len(grid) + np.diag([0.0, *self.noise**2])
        cross = readouts.T @ basis(grid) / len(grid)
        return np.sum(cross * np.linalg.solve(gram, cross), axis=0)


@pytest.mark.thorough
@DESIGNS
def test_error_bars_hold_for_what_no_fit_reaches(design):
    """The fit leaves steps, which are no polynomials."""
    basis = infocap.product_basis("legendre", 2, 5)
    system = Comparators()
    exact = system.exact(basis)
    results = many(40, 512, design, system, basis)
    assert capacities_in_interval(results, exact)[:, exact > 1e-3].mean() > 0.92
    assert totals_in_interval(results, exact).mean() > LEAST_COVERAGE_OF_40


@pytest.mark.thorough
@DESIGNS
def test_false_discoveries_stay_below_the_stated_rate(design):
    is_active = EXACT > 1e-9
    rates = []
    for result in forty_data_sets(design):
        is_shown = result.capacity > 0
        rates.append(np.sum(is_shown & ~is_active) / max(np.sum(is_shown), 1))
        assert np.all(is_shown[EXACT > 0.05])
    assert np.mean(rates) < 0.05 + 3 * np.std(rates) / np.sqrt(len(rates))


def noise_alone(u, seed):
    return np.random.default_rng(seed).standard_normal((len(u), 5))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
@pytest.mark.filterwarnings("ignore:nothing of the inputs")
@pytest.mark.parametrize("fit", ["auto", "none"])
def test_noise_alone_shows_nothing_at_the_stated_rate(fit):
    """Where all functions but the constant are zero, one data set in five may show some of them."""
    basis = infocap.product_basis("legendre", 2, 4)
    rate = 0.2
    results = many(100, 256, "random", noise_alone, basis, fit=fit, false_discovery_rate=rate)
    shows_some = [np.any(result.capacity[1:] > 0) for result in results]
    assert np.mean(shows_some) < rate + 3 * np.sqrt(rate * (1 - rate) / 100)
    p = np.concatenate([result.p_value[1:] for result in results])
    for level in (0.05, 0.2, 0.5):
        assert is_share(p < level, level)


@pytest.mark.thorough
def test_p_values_of_zeros_are_uniform():
    is_zero = EXACT < 1e-9
    p = np.concatenate([result.p_value[is_zero] for result in forty_data_sets("random")])
    for level in (0.05, 0.2, 0.5):
        assert is_share(p < level, level)


def test_a_lower_rate_shows_fewer():
    strict = measured(512, false_discovery_rate=1e-4).capacity > 0
    loose = measured(512, false_discovery_rate=0.5).capacity > 0
    assert np.all(strict <= loose)
    assert np.sum(strict) < np.sum(loose)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"false_discovery_rate": 5}, "false_discovery_rate=5"),
        ({"fit": "ols"}, "fit='ols'` is not one of"),
    ],
)
def test_options_without_meaning_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        measured(512, **options)


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(24, 300),
    n_readouts=st.integers(1, 12),
    noise=st.sampled_from([0.0, 0.1, 3.0]),
    seed=st.integers(0, 99),
)
@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_answers_stay_inside_what_is_possible(n, n_readouts, noise, seed):
    system = infocap.systems.RandomFeatures(2, n_readouts, noise=noise, seed=seed)
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
def test_fewer_samples_than_functions_are_better_fitted_than_not():
    with pytest.warns(DataWarning, match="44 samples are few for 45 functions") as warned:
        result = measured(44, design="random")
    assert not any("the fit is unstable" in str(warning.message) for warning in warned)
    with pytest.warns(DataWarning):
        without_fit = measured(44, design="random", fit="none")
    error = root_mean_square(result.capacity - EXACT)
    assert error < root_mean_square(without_fit.capacity - EXACT)
    assert abs(result.total - EXACT.sum()) < 3 * result.total_standard_error
    assert result.total == pytest.approx(result.capacity.sum())


U = infocap.draw(BASIS, 512, seed=0)
X = MIXTURE(U, seed=0)
MIXING = np.random.default_rng(0).standard_normal((10, 10))
REWRITTEN = {
    "nano": X * 1e-9,
    "giga": X * 1e9,
    "12 decades": X * np.logspace(-6, 6, 10),
    "mixed": X @ MIXING,
    "reversed": X[:, ::-1],
    "shifted": X + 100 * np.arange(10),
    "mixed, scaled and shifted": (X @ MIXING + 7) * np.logspace(-6, 6, 10),
}


@cache
def estimated(fit):
    return infocap.estimate(U, X, BASIS, method_options={"fit": fit})


@pytest.mark.parametrize("fit", ["auto", "least-squares", "none"])
@pytest.mark.parametrize("x", REWRITTEN.values(), ids=REWRITTEN.keys())
@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_the_answer_does_not_depend_on_how_the_readouts_are_written(x, fit):
    expected = estimated(fit)
    result = infocap.estimate(U, x, BASIS, method_options={"fit": fit})
    assert result.rank == 11
    assert_allclose(result.capacity, expected.capacity, rtol=0, atol=1e-10)
    assert_allclose(result.unbiased, expected.unbiased, rtol=0, atol=1e-10)
    assert_allclose(result.standard_error, expected.standard_error, rtol=0, atol=1e-10)
    assert_allclose(result.p_value, expected.p_value, rtol=0, atol=1e-10)
    assert result.total == pytest.approx(expected.total, abs=1e-10)
    assert result.total_standard_error == pytest.approx(expected.total_standard_error, abs=1e-10)


def test_a_condition_number_of_1e10_does_no_harm():
    """Pairs of readouts that differ by 1e-10: what the difference computes is found all the same."""
    basis = infocap.product_basis("legendre", 2, 4)
    system = infocap.theory.random_mixture(basis, n_active=12, n_readouts=8, seed=3)
    u = infocap.draw(basis, 1024, seed=0)
    x = system(u)
    nearly_dependent = np.column_stack([x[:, :4], x[:, :4] + 1e-9 * x[:, 4:]])
    result = infocap.estimate(u, nearly_dependent, basis)
    assert_allclose(result.capacity, system.exact(), atol=1e-8)


def test_functions_that_are_no_controls_are_reported_all_the_same():
    """With more functions than 0.4 per sample the strongest are controls; all have error bars."""
    basis = infocap.product_basis("legendre", 2, 15)  # 136 functions
    system = infocap.theory.random_mixture(basis, n_active=20, n_readouts=10, noise=0.3, seed=2)
    exact = system.exact()
    all_are_controls = many(10, 512, "sobol", system, basis)
    with pytest.warns(DataWarning, match="256 samples are few for 136 functions"):
        some_are_controls = many(10, 256, "sobol", system, basis)  # 102 controls
    for result in some_are_controls:
        assert result.unreliable == "few samples for 136 functions"
        assert np.all(result.standard_error[1:] > 0)
        assert result.total == pytest.approx(result.capacity.sum())
        assert abs(result.total - exact.sum()) < 3 * result.total_standard_error
    error_with_all = root_mean_square([result.capacity - exact for result in all_are_controls])
    error_with_some = root_mean_square([result.capacity - exact for result in some_are_controls])
    assert error_with_some < 2.5 * error_with_all


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_functions_beyond_the_basis_do_not_lower_the_total():
    """Half of the power lies in degrees 3 and 4, more functions than can be fitted with 512 samples."""
    basis = infocap.product_basis("legendre", 8, 2)
    wide = infocap.product_basis("legendre", 8, 4)
    generator = np.random.default_rng(3)
    weights = np.zeros((8, len(wide)))
    inside = generator.choice(len(basis), 20, replace=False)
    outside = generator.choice(np.arange(len(basis), len(wide)), 20, replace=False)
    weights_inside, weights_outside = generator.standard_normal((2, 8, 20))
    weights[:, inside] = weights_inside
    weights[:, outside] = weights_outside
    # The functions are orthonormal, so the readouts' space is that of the weights and the constant.
    constant = np.eye(1, len(wide))
    frame, _ = np.linalg.qr(np.vstack([constant, weights]).T)
    exact = np.sum(frame[: len(basis)] ** 2, axis=1)

    results = many(20, 512, "sobol", lambda u, seed: wide(u) @ weights.T, basis)
    error_bar = np.mean([result.total_standard_error for result in results])
    assert abs(np.mean([result.total for result in results]) - exact.sum()) < error_bar
    coverage = totals_in_interval(results, exact).mean()
    assert coverage > 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(results))


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
@pytest.mark.parametrize("n", [256, 512])
def test_the_constant_is_known_exactly(n):
    result = measured(n, design="random", fit="none")
    assert result.unbiased[0] == 1
    assert result.standard_error[0] == 0


def test_lists_do_as_well_as_arrays():
    repeats = MIXTURE(U, seed=5)
    from_arrays = infocap.estimate(U, X, BASIS, repeats=repeats)
    from_lists = infocap.estimate(U.tolist(), X.tolist(), BASIS, repeats=repeats.tolist())
    assert from_lists.noise_limited_total == pytest.approx(from_arrays.noise_limited_total)


def test_a_basis_can_be_extended():
    wide = BASIS.extended(60)
    assert len(wide) == 60  # 45, all 10 of degree 9, and 5 of the 11 of degree 10
    assert np.bincount(wide.degrees)[9:].tolist() == [10, 5]
    indices = {tuple(row) for row in BASIS.indices.tolist()}
    assert indices <= {tuple(row) for row in wide.indices.tolist()}
    assert BASIS.extended(45) is BASIS


def test_a_basis_is_not_extended_beyond_what_its_family_has():
    binary = infocap.product_basis("bernoulli", 3, 3)  # all 8 functions that there are
    assert len(binary.extended(100)) == len(binary) == 8
    density = infocap.basis.density(lambda u: 1 + u, (-1, 1), max_degree=5)
    assert len(infocap.product_basis([density], max_degree=4).extended(100)) == 6


def test_a_basis_begins_with_the_constant_and_is_sorted_by_degree():
    with pytest.raises(ParameterError, match="must begin with the constant function"):
        infocap.ProductBasis(BASIS.families, BASIS.indices[3:6])
    with pytest.raises(ParameterError, match="sorted by degree"):
        infocap.ProductBasis(BASIS.families, BASIS.indices[[0, 5, 1]])


@pytest.mark.parametrize("method", ["control-variate", "raw", "threshold-richardson", "chi2"])
def test_weights_of_one_change_nothing(method):
    plain = infocap.estimate(U, X, BASIS, method=method)
    weighted = infocap.estimate(U, X, BASIS, method=method, sample_weight=np.ones(512))
    assert_allclose(weighted.capacity, plain.capacity, atol=1e-12)


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_normal_inputs_of_high_degree_need_weights():
    basis = infocap.product_basis("hermite", 2, 8)
    system = infocap.systems.RandomFeatures(2, 15, gain=0.5, noise=0.01)
    nodes, mass = basis.quadrature(60)
    noise_free = infocap.systems.RandomFeatures(2, 15, gain=0.5, noise=0.0)
    readouts = np.column_stack([np.ones(len(nodes)), noise_free(nodes)])
    weighted = readouts * mass[:, None]
    gram = weighted.T @ readouts + np.diag([0.0] + [0.01**2] * 15)
    cross = weighted.T @ basis(nodes)
    exact = np.sum(cross * np.linalg.solve(gram, cross), axis=0)

    result = infocap.probe(system, basis, 1024, seed=0, weighted=True)
    error = np.abs(result.unbiased - exact)
    assert error.max() < 0.1
    assert abs(result.total - exact.sum()) < 3 * result.total_standard_error + 0.05
    assert np.mean(error < 1.96 * result.standard_error + 1e-4) > 0.85
    with pytest.warns(DataWarning, match=r"functions have E\[y\^4\] above 51"):
        unweighted = infocap.probe(system, basis, 1024, seed=0, weighted=False)
    assert np.abs(unweighted.unbiased - exact).max() > 2 * error.max()


@pytest.mark.parametrize("basis", FAMILIES, ids=repr)
def test_weighted_designs_integrate_under_the_density_of_the_basis(basis):
    u, weights = infocap.draw_weighted(basis, 4096, seed=0)
    assert u.shape == (4096, basis.n_inputs)
    weighted_squares = weights[:, None] * basis(u) ** 2
    error = np.sqrt(np.mean(weighted_squares**2, axis=0) / 4096)
    assert np.all(np.abs(np.mean(weighted_squares, axis=0) - 1) < 6 * error + 1e-9)


@pytest.mark.parametrize(("share", "density_at_edge"), [(0.0, 1.0), (0.3, 1.8), (1.0, 4.0)])
def test_weighted_designs_are_dense_at_the_edge_and_have_bounded_weights(share, density_at_edge):
    u, weights = infocap.draw_weighted(BASIS, 4096, seed=0, share=share)
    assert np.mean(np.abs(u) > 0.95) > 0.99 * density_at_edge * 0.05
    if share < 1:
        assert weights.max() <= (1 - share) ** -2 + 1e-12


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(512, 2.0), "sample_weight has the mean 2"),
        (np.where(np.arange(512) == 3, -1.0, 1.0), r"sample_weight is -1\.0 at row 3"),
        (np.ones(5), r"sample_weight has shape \(5,\)"),
    ],
    ids=["mean", "negative", "shape"],
)
def test_weights_that_cannot_be_are_refused(weights, message):
    with pytest.raises(DataError, match=message):
        infocap.estimate(U, X, BASIS, sample_weight=weights)


def test_shuffles_take_no_weights():
    with pytest.raises(ParameterError, match="'surrogate' shuffles samples and takes no weights"):
        infocap.estimate(U, X, BASIS, sample_weight=np.ones(512), method="surrogate")


def test_blocks_are_independent_designs():
    u = infocap.draw(BASIS, 1024, seed=3, blocks=4)
    blocks = np.split(u, 4)
    assert len({block.tobytes() for block in blocks}) == 4
    for block in blocks:  # each one has one point in each of 256 intervals
        assert len(np.unique(np.floor((block[:, 0] + 1) * 128))) == 256
    assert np.array_equal(u, infocap.draw(BASIS, 1024, seed=3, blocks=4))
    assert infocap.probe(MIXTURE, BASIS, 1024, seed=3, blocks=4).n_samples == 1024
    with pytest.raises(ParameterError, match="n_samples=1000` cannot be shared out evenly"):
        infocap.draw(BASIS, 1000, blocks=3)


WIDE = infocap.product_basis("legendre", 2, 10)
WIDE_MIXTURE = infocap.theory.random_mixture(WIDE, n_active=40, n_readouts=10, noise=0.3, seed=2)


@cache
def repeated_measurement():
    """Inputs, and readouts of two measurements, that need functions beyond those of BASIS."""
    u = infocap.draw(BASIS, 2048, design="random", seed=0)
    return u, WIDE_MIXTURE(u, seed=1), WIDE_MIXTURE(u, seed=2)


@cache
def with_repeats():
    u, x, again = repeated_measurement()
    return infocap.estimate(u, x, BASIS, repeats=again)


def test_repeats_tell_noise_from_functions_outside_the_basis():
    exact = WIDE_MIXTURE.exact()
    result = with_repeats()
    error = result.total - exact[: len(BASIS)].sum()
    assert abs(error) < 4 * result.total_standard_error
    error_of_limit = result.noise_limited_total - exact.sum()
    assert abs(error_of_limit) < 4 * result.noise_limited_standard_error


def test_what_noise_allows_is_shown_and_saved(tmp_path):
    result = with_repeats()
    line = next(line for line in repr(result).splitlines() if "that noise allows" in line)
    assert line.strip().startswith(f"found {result.total:.3f} ± ")
    assert line.endswith("that noise allows, of 11")
    loaded = infocap.load_result(result.save(tmp_path / "result.nc"))
    assert loaded.noise_limited_total == result.noise_limited_total
    assert_allclose(loaded.unbiased, result.unbiased)


def test_some_rows_may_be_repeated():
    u, x, again = repeated_measurement()
    is_repeated = np.arange(2048)[:, None] < 512
    result = infocap.estimate(u, x, BASIS, repeats=np.where(is_repeated, again, np.nan))
    error = result.noise_limited_standard_error
    assert error > with_repeats().noise_limited_standard_error
    assert abs(result.noise_limited_total - WIDE_MIXTURE.exact().sum()) < 4 * error


def test_repeats_that_cannot_be_are_refused():
    u, x, again = repeated_measurement()
    with pytest.raises(DataError, match=r"repeats has shape \(512, 10\) and x has shape"):
        infocap.estimate(u, x, BASIS, repeats=again[:512])
    with pytest.raises(DataError, match="NaN or infinite value in every row"):
        infocap.estimate(u, x, BASIS, repeats=np.full_like(again, np.nan))


def noisier_outside(u, seed):
    """Noise that grows with the input, so that two densities of inputs differ in their totals."""
    noise = np.random.default_rng(seed).standard_normal((len(u), 6))
    return BASIS(u)[:, 1:7] + (0.2 + 2 * u[:, :1] ** 2) * noise


def test_repeats_of_a_weighted_design_tell_what_noise_allows():
    every_third = np.arange(3072)[:, None] % 3 == 0

    def noise_limit(u, weights):
        again = np.where(every_third, noisier_outside(u, 3), np.nan)
        x = noisier_outside(u, 4)
        return infocap.estimate(u, x, BASIS, sample_weight=weights, repeats=again)

    weighted = noise_limit(*infocap.draw_weighted(BASIS, 3072, design="random", seed=1))
    plain = noise_limit(infocap.draw(BASIS, 3072, design="random", seed=2), None)
    errors = [result.noise_limited_standard_error for result in (weighted, plain)]
    assert max(errors) < 0.3
    difference = weighted.noise_limited_total - plain.noise_limited_total
    assert abs(difference) < 3 * np.hypot(*errors)


def test_repeats_in_one_half_of_the_inputs_are_noticed():
    u, weights = infocap.draw_weighted(BASIS, 3072, design="random", seed=1)
    again = np.where(u[:, :1] > 0, noisier_outside(u, 3), np.nan)
    with pytest.warns(DataWarning, match="repeated inputs do not follow the declared distribution"):
        infocap.estimate(u, noisier_outside(u, 4), BASIS, sample_weight=weights, repeats=again)


def test_repeats_follow_rows_that_are_dropped():
    x = X.copy()
    x[5] = np.nan
    again = MIXTURE(U, seed=7)
    result = infocap.estimate(U, x, BASIS, repeats=again, nan_policy="omit")
    rows = np.delete(np.arange(512), 5)
    expected = infocap.dimension.from_repeats(X[rows], again[rows])
    assert result.noise_limited_total == pytest.approx(expected.total)


@pytest.mark.slow
@DESIGNS
def test_the_papers_validation_with_noise(design):
    """30 % noise, 8192 samples: errors relative to those of Algorithm 1, over 8 data sets."""
    basis = infocap.product_basis("legendre", 5, 8)

    def errors(method):
        """Root mean square errors of capacities and of totals."""
        of_capacities = []
        of_totals = []
        for seed in range(8):
            system = infocap.theory.random_mixture(
                basis, n_active=200, n_readouts=71, noise=0.3, seed=seed
            )
            result = infocap.probe(system, basis, 8192, seed=seed, design=design, method=method)
            of_capacities.append(result.capacity - system.exact())
            of_totals.append(result.total - system.exact().sum())
        return root_mean_square(of_capacities), root_mean_square(of_totals)

    error, error_of_total = errors("control-variate")
    reference_error, reference_error_of_total = errors("threshold-richardson")
    assert error <= 0.35 * reference_error
    assert error_of_total <= 0.15 * reference_error_of_total


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_few_samples_do_not_let_rounding_choose():
    u = infocap.draw(BASIS, 64, seed=1)
    x = infocap.systems.RandomFeatures(2, 10, noise=0.01)(u, seed=1)
    expected = infocap.estimate(u, x, BASIS).total
    for rounded_otherwise in (3.7 * x + 2, x * (1 + 1e-15)):
        total = infocap.estimate(u, rounded_otherwise, BASIS).total
        assert total == pytest.approx(expected, rel=1e-9)
