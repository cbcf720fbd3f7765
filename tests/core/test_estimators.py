"""The paper's estimators against a naive reference, the older rules, and users' own functions."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataWarning, ParameterError

pytestmark = pytest.mark.filterwarnings(
    "ignore:the capacities sum to"
)  # raw ones may, and small N makes them

BASIS = infocap.product_basis("legendre", 3, 4)


def data(n, noise=0.1, design="sobol"):
    system = infocap.theory.random_mixture(BASIS, n_active=15, n_readouts=9, noise=noise, seed=1)
    u = infocap.draw(BASIS, n, design=design, seed=2)
    return u, system(u, seed=3), system


@pytest.mark.parametrize("n", [256, 255, 101])
@pytest.mark.parametrize("constant", [True, False])
def test_agree_with_plain_loops(n, constant):
    u, x, _ = data(n, design="random")
    y, full = BASIS(u), reference.with_constant(x) if constant else x
    expected = {
        "raw": reference.raw(full, y),
        "threshold-richardson": reference.algorithm_1(full, y, BASIS.fourth_moments),
        "richardson-threshold": reference.algorithm_2(full, y),
    }
    for method, capacity in expected.items():
        result = infocap.estimate(u, x, BASIS, method=method, constant=constant)
        assert_allclose(result.capacity, capacity, atol=1e-10)
        assert_allclose(result.total, capacity.sum(), atol=1e-9)


def test_agree_with_plain_loops_at_two_inputs_and_degree_14(device):
    basis, u, x = device
    u, x = u[:1024], x[:1024]
    full, y = reference.with_constant(x), basis(u)
    found = infocap.estimate(u, x, basis, method="threshold-richardson")
    assert_allclose(
        found.capacity, reference.algorithm_1(full, y, basis.fourth_moments), atol=1e-10
    )


def test_a_channel_stuck_in_one_half_is_no_readout_there():
    """Algorithm 2 would otherwise see a direction of pure rounding in that half."""
    u, x, _ = data(512, design="random")
    x[256:, 0] = 0.3
    found = infocap.estimate(u, x, BASIS, method="richardson-threshold")
    expected = reference.algorithm_2(reference.with_constant(x), BASIS(u))
    assert_allclose(found.capacity, expected, atol=1e-10)


def test_halves_are_ordered():
    """Shuffling the rows leaves the raw capacities alone and changes the extrapolation."""
    u, x, _ = data(256)
    order = np.random.default_rng(0).permutation(256)
    straight, shuffled = (
        infocap.estimate(u[rows], x[rows], BASIS, method="threshold-richardson")
        for rows in (slice(None), order)
    )
    assert_allclose(straight.raw, shuffled.raw, atol=1e-12)
    assert np.abs(straight.capacity - shuffled.capacity).max() > 1e-3


def test_thresholds_are_reported():
    u, x, _ = data(512)
    first = infocap.estimate(u, x, BASIS, method="threshold-richardson")
    expected = reference.zero_capacity_bound(reference.with_constant(x), BASIS.fourth_moments)
    assert_allclose(first.threshold, expected, rtol=1e-10)
    assert 0 < np.count_nonzero(first.raw <= first.threshold) < len(BASIS)
    assert np.all((first.raw <= first.threshold) <= (first.capacity == 0))
    second = infocap.estimate(u, x, BASIS, method="richardson-threshold")
    assert np.unique(second.threshold).size == 1
    assert np.all(second.capacity[second.capacity > 0] >= second.threshold[0])


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_the_capacity_of_the_constant_is_not_forced():
    u, x, _ = data(256)
    assert infocap.estimate(u, x, BASIS, constant=False).capacity[0] < 0.999


def test_chi2_threshold_is_twice_the_quantile():
    from scipy.stats import chi2

    u, x, _ = data(512)
    result = infocap.estimate(u, x, BASIS, method="chi2")
    assert_allclose(result.threshold, 2 * chi2.isf(1e-4, 10) / 512)
    assert result.capacity.max() <= 1 + 1e-12
    looser = infocap.estimate(u, x, BASIS, method="chi2", method_options={"p": 0.01, "factor": 1.0})
    assert_allclose(looser.threshold, chi2.isf(0.01, 10) / 512)


def test_surrogates_are_shuffles_of_the_samples():
    u, x, _ = data(256)
    result = infocap.estimate(
        u, x, BASIS, method="surrogate", method_options={"n_surrogates": 20, "shuffle_seed": 5}
    )
    q = np.linalg.qr(reference.with_constant(x))[0]
    y, generator = BASIS(u), np.random.default_rng(5)
    largest = np.max(
        [np.sum((q[generator.permutation(256)].T @ y) ** 2, axis=0) for _ in range(20)], axis=0
    )
    power = np.sum(y**2, axis=0)
    assert_allclose(result.threshold, largest / power, rtol=1e-9)
    assert result.capacity[0] == 0  # no shuffle can hide the constant from the constant
    assert np.all(
        (result.capacity > 0) == (result.raw * 256 / power > result.threshold * (1 + 1e-12))
    )


@pytest.mark.parametrize("method", ["surrogate", "chi2"])
def test_older_rules_keep_what_is_there_and_drop_most_of_what_is_not(method):
    u, x, system = data(2048, noise=0.0)
    result = infocap.estimate(u, x, BASIS, method=method)
    exact = system.exact()
    assert np.all(result.capacity[1:][exact[1:] > 0.2] > 0)
    assert np.mean(result.capacity[exact < 1e-9] > 0) < 0.1


class Tie:
    """Evidence with exact ties: C_N equal to its threshold, and an extrapolated value equal to -B."""

    n_samples = 100
    raw = np.array([1.0, 0.5, 0.25, 0.25])
    raw_half = np.array([1.0, 0.5, 0.25, 0.75])  # extrapolated: 1, 0.5, 0.25, -0.25
    extrapolated = 2 * raw - raw_half
    zero_capacity_bound = np.array([0.1, 0.5, 0.1, 0.1])


def test_ties_fall_as_the_paper_prints_them():
    """Algorithm 1 zeroes C_N <= threshold; Algorithm 2 zeroes only what is < -B."""
    first = infocap.estimators.threshold_richardson(Tie())
    assert first.capacity.tolist() == [1.0, 0.0, 0.25, 0.0]
    second = infocap.estimators.richardson_threshold(Tie())
    assert second.capacity.tolist() == [1.0, 0.5, 0.25, 0.0]


def test_older_rules_use_the_empirical_power_of_the_targets():
    u, x, _ = data(200, design="random")
    power = np.mean(BASIS(u) ** 2, axis=0)
    found = infocap.estimate(u, x, BASIS, method="chi2", method_options={"p": 0.5, "factor": 1e-9})
    assert np.abs(power - 1).max() > 0.1
    assert_allclose(found.capacity, found.raw / power, atol=1e-12)


def test_a_function_of_evidence_is_as_good_as_a_name():
    u, x, _ = data(256)

    def doubled(evidence, factor=2.0):
        assert isinstance(evidence, infocap.estimators.Evidence)
        return np.minimum(factor * evidence.raw, 1.0)

    result = infocap.estimate(u, x, BASIS, method=doubled, method_options={"factor": 0.5})
    assert result.method == "doubled"
    assert_allclose(result.capacity, np.minimum(0.5 * result.raw, 1.0))


def test_a_function_may_give_error_bars_and_a_total():
    u, x, _ = data(256)
    result = infocap.estimate(
        u, x, BASIS, method=lambda e: infocap.estimators.Estimate(e.raw, standard_error=0 * e.raw + 0.1, total=5.0,
                                                       total_standard_error=0.5)
    )  # fmt: skip
    assert result.total == 5.0
    assert_allclose(result.total_interval(0.95), (5 - 0.98, 5 + 0.98), atol=1e-3)
    assert result.interval().shape == (len(BASIS), 2)
    assert result.interval().min() >= 0
    assert result.interval().max() <= 1


def test_wrong_methods_and_options_are_refused_by_name():
    u, x, _ = data(256)
    with pytest.raises(
        ParameterError, match="method='algorithm-1'` is not one of 'control-variate', 'raw'"
    ):
        infocap.estimate(u, x, BASIS, method="algorithm-1")
    with pytest.raises(
        ParameterError,
        match=r"'raw' does not take these options: .*'bound'.* it takes \['jackknife'\]",
    ):
        infocap.estimate(u, x, BASIS, method="raw", method_options={"bound": "data"})
    with pytest.raises(ParameterError, match="bound='tight'"):
        infocap.estimate(
            u, x, BASIS, method="threshold-richardson", method_options={"bound": "tight"}
        )
    with pytest.raises(ParameterError, match=r"gave \(3,\) capacities for 35 functions"):
        infocap.estimate(u, x, BASIS, method=lambda evidence: [1, 2, 3])
    with pytest.raises(ParameterError, match="must be a name or a function"):
        infocap.estimate(u, x, BASIS, method=3)


def test_gaussian_inputs_of_high_degree_need_the_bound_from_the_data():
    basis = infocap.product_basis("hermite", 2, 8)
    u = infocap.draw(basis, 1024, design="random", seed=0)
    x = infocap.systems.RandomFeatures(2, 20)(u)
    with pytest.warns(DataWarning, match=r"exceeds 1 for \d+ of 45 functions.*bound='data'"):
        infocap.estimate(u, x, basis, method="threshold-richardson")
    result = infocap.estimate(
        u, x, basis, method_options={"bound": "data"}, method="threshold-richardson"
    )
    full = reference.with_constant(x)
    leverage = 1024 * np.sum(np.linalg.qr(full)[0] ** 2, axis=1)
    assert_allclose(
        result.threshold, np.mean(leverage[:, None] * basis(u) ** 2, axis=0) / 1024, rtol=1e-9
    )


def test_the_refined_threshold_of_algorithm_2_lets_the_total_fluctuate_less():
    """The smallest of many values fluctuates more than the width of their distribution."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=14)
    totals = {False: [], True: []}
    for seed in range(30):
        system = infocap.theory.random_mixture(basis, n_active=10, n_readouts=10, noise=0.3, seed=1)
        u = infocap.draw(basis, 512, design="random", seed=seed)
        evidence = infocap.estimators.gather_evidence(u, system(u, seed=seed), basis)
        for refined, found in totals.items():
            found.append(
                infocap.estimators.conclude(
                    evidence, "richardson-threshold", method_options={"refined": refined}
                ).total
            )
    assert np.std(totals[True]) < np.std(totals[False])
    assert abs(np.mean(totals[True]) - system.exact().sum()) < 0.5
