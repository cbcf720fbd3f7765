"""The paper's estimators against a naive reference, the older rules, and users' own functions."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose
from scipy.stats import chi2 as chi2_distribution

import infocap
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.estimators import METHODS, Estimate, Evidence

# Raw capacities may sum to more than the rank, and few samples make them.
pytestmark = pytest.mark.filterwarnings("ignore:the capacities sum to")

BASIS = infocap.product_basis("legendre", 3, 4)
RULES = ["raw", "threshold-richardson", "richardson-threshold", "chi2", "surrogate"]


def mixture(noise=0.1):
    return infocap.theory.random_mixture(BASIS, n_active=15, n_readouts=9, noise=noise, seed=1)


def data(n, noise=0.1, design="sobol"):
    """Inputs and readouts of a random mixture of functions."""
    u = infocap.draw(BASIS, n, design=design, seed=2)
    return u, mixture(noise)(u, seed=3)


@pytest.mark.parametrize("n", [256, 255, 101])
@pytest.mark.parametrize("constant", [True, False])
def test_estimators_agree_with_plain_loops(n, constant):
    u, x = data(n, design="random")
    targets = BASIS(u)
    readouts = reference.with_constant(x) if constant else x
    expected = {
        "raw": reference.raw(readouts, targets),
        "threshold-richardson": reference.algorithm_1(readouts, targets, BASIS.fourth_moments),
        "richardson-threshold": reference.algorithm_2(readouts, targets),
    }
    for method, capacity in expected.items():
        result = infocap.estimate(u, x, BASIS, method=method, constant=constant)
        assert_allclose(result.capacity, capacity, atol=1e-10)
        assert_allclose(result.total, capacity.sum(), atol=1e-9)


def test_algorithm_1_agrees_with_plain_loops_at_two_inputs_and_degree_14(device):
    basis, u, x = device
    u, x = u[:1024], x[:1024]
    result = infocap.estimate(u, x, basis, method="threshold-richardson")
    readouts = reference.with_constant(x)
    expected = reference.algorithm_1(readouts, basis(u), basis.fourth_moments)
    assert_allclose(result.capacity, expected, atol=1e-10)


def test_a_channel_stuck_in_one_half_is_no_readout_there():
    """Algorithm 2 would otherwise see a direction of pure rounding in that half."""
    u, x = data(512, design="random")
    x[256:, 0] = 0.3
    with pytest.warns(infocap.errors.DataWarning, match="stay at one value for a while"):
        result = infocap.estimate(u, x, BASIS, method="richardson-threshold")
    expected = reference.algorithm_2(reference.with_constant(x), BASIS(u))
    assert_allclose(result.capacity, expected, atol=1e-10)


def test_halves_are_ordered():
    """Shuffling the rows leaves the raw capacities alone and changes the extrapolation."""
    u, x = data(256)
    order = np.random.default_rng(0).permutation(256)
    in_order = infocap.estimate(u, x, BASIS, method="threshold-richardson")
    shuffled = infocap.estimate(u[order], x[order], BASIS, method="threshold-richardson")
    assert_allclose(in_order.raw, shuffled.raw, atol=1e-12)
    assert np.abs(in_order.capacity - shuffled.capacity).max() > 1e-3


def test_thresholds_are_reported():
    u, x = data(512)
    first = infocap.estimate(u, x, BASIS, method="threshold-richardson")
    readouts = reference.with_constant(x)
    expected = reference.zero_capacity_bound(readouts, BASIS.fourth_moments)
    assert_allclose(first.threshold, expected, rtol=1e-10)
    is_below = first.raw <= first.threshold
    assert 0 < np.count_nonzero(is_below) < len(BASIS)
    assert np.all(first.capacity[is_below] == 0)

    second = infocap.estimate(u, x, BASIS, method="richardson-threshold")
    assert np.unique(second.threshold).size == 1
    assert np.all(second.capacity[second.capacity > 0] >= second.threshold[0])


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_the_capacity_of_the_constant_is_not_forced():
    u, x = data(256)
    assert infocap.estimate(u, x, BASIS, constant=False).capacity[0] < 0.999


@pytest.mark.parametrize("level", [1e-4, 0.01])
def test_the_threshold_of_chi2_is_twice_the_quantile(level):
    u, x = data(512)
    result = infocap.estimate(u, x, BASIS, method="chi2", method_options={"p": level})
    assert_allclose(result.threshold, 2 * chi2_distribution.isf(level, 10) / 512)
    assert result.capacity.max() <= 1 + 1e-12


def test_surrogates_are_shuffles_of_the_samples():
    u, x = data(256)
    options = {"n_surrogates": 20, "seed": 5}
    result = infocap.estimate(u, x, BASIS, method="surrogate", method_options=options)

    targets = BASIS(u)
    frame = np.linalg.qr(reference.with_constant(x))[0]
    generator = np.random.default_rng(5)
    shuffled = [frame[generator.permutation(256)] for _ in range(20)]
    capacities = [np.sum((rows.T @ targets) ** 2, axis=0) for rows in shuffled]
    power = np.sum(targets**2, axis=0)
    assert_allclose(result.threshold, np.max(capacities, axis=0) / power, rtol=1e-9)
    assert result.capacity[0] == 0  # no shuffle can hide the constant from the constant
    is_above = result.raw * 256 / power > result.threshold * (1 + 1e-12)
    assert np.array_equal(result.capacity > 0, is_above)


@pytest.mark.parametrize("method", ["surrogate", "chi2"])
def test_older_rules_keep_what_is_there_and_drop_most_of_what_is_not(method):
    u, x = data(2048, noise=0.0)
    exact = mixture(noise=0.0).exact()
    result = infocap.estimate(u, x, BASIS, method=method)
    assert np.all(result.capacity[1:][exact[1:] > 0.2] > 0)
    assert np.mean(result.capacity[exact < 1e-9] > 0) < 0.1


class EvidenceWithTies:
    """C_N equal to its threshold, and an extrapolated value equal to minus the smallest."""

    n_samples = 100
    raw = np.array([1.0, 0.5, 0.25, 0.25])
    raw_half = np.array([1.0, 0.5, 0.25, 0.75])
    extrapolated = 2 * raw - raw_half  # 1, 0.5, 0.25, -0.25
    zero_capacity_bound = np.array([0.1, 0.5, 0.1, 0.1])


def test_algorithm_1_sets_a_capacity_at_its_threshold_to_zero():
    estimate = METHODS["threshold-richardson"](EvidenceWithTies())
    assert estimate.capacity.tolist() == [1.0, 0.0, 0.25, 0.0]


def test_algorithm_2_keeps_a_capacity_at_its_threshold():
    estimate = METHODS["richardson-threshold"](EvidenceWithTies())
    assert estimate.capacity.tolist() == [1.0, 0.5, 0.25, 0.0]


def test_older_rules_use_the_empirical_power_of_the_targets():
    u, x = data(200, design="random")
    power = np.mean(BASIS(u) ** 2, axis=0)
    assert np.abs(power - 1).max() > 0.1
    # At this level the threshold is so low that hardly a capacity is set to zero.
    result = infocap.estimate(u, x, BASIS, method="chi2", method_options={"p": 0.9999})
    is_shown = result.capacity > 0
    assert is_shown.mean() > 0.9
    assert_allclose(result.capacity[is_shown], (result.raw / power)[is_shown], atol=1e-12)


def test_a_function_of_evidence_is_as_good_as_a_name():
    u, x = data(256)

    def doubled(evidence, factor=2.0):
        assert isinstance(evidence, Evidence)
        return np.minimum(factor * evidence.raw, 1.0)

    result = infocap.estimate(u, x, BASIS, method=doubled, method_options={"factor": 0.5})
    assert result.method == "doubled"
    assert_allclose(result.capacity, np.minimum(0.5 * result.raw, 1.0))


def test_a_function_may_give_error_bars_and_a_total():
    u, x = data(256)

    def with_errors(evidence):
        errors = np.full(len(evidence.raw), 0.1)
        return Estimate(evidence.raw, standard_error=errors, total=5.0, total_standard_error=0.5)

    result = infocap.estimate(u, x, BASIS, method=with_errors)
    assert result.total == 5.0
    assert_allclose(result.total_interval(0.95), (5 - 0.98, 5 + 0.98), atol=1e-3)
    assert result.interval().shape == (len(BASIS), 2)
    assert result.interval().min() >= 0
    assert result.interval().max() <= 1


MISUSED = {
    "unknown name": (
        {"method": "algorithm-1"},
        "method='algorithm-1'` is not one of 'control-variate', 'raw'",
    ),
    "no function": ({"method": 3}, "must be a text or a function"),
    "option of another method": (
        {"method": "raw", "method_options": {"bound": "data"}},
        "method 'raw' has no option 'bound'; its options are 'jackknife'",
    ),
    "misspelt option": (
        {"method": "threshold-richardson", "method_options": {"bond": "data"}},
        "has no option 'bond'; its options are 'bound', 'jackknife'; did you mean 'bound'",
    ),
    "function without options": (
        {"method": lambda evidence: evidence.raw, "method_options": {"factor": 2}},
        "has no option 'factor'; it has no options",
    ),
    "function with an option that is missing": (
        {"method": lambda evidence, a, b=1: evidence.raw, "method_options": {"b": 2}},
        "missing a required argument: 'a'",
    ),
    "unknown value": (
        {"method": "threshold-richardson", "method_options": {"bound": "tight"}},
        "bound='tight'",
    ),
    "too few capacities": (
        {"method": lambda evidence: [1, 2, 3]},
        r"gave capacities of shape \(3,\); it must return one for each of the 35 functions",
    ),
    "capacities that are no numbers": (
        {"method": lambda evidence: np.where(np.arange(35) == 1, np.nan, evidence.raw)},
        r"not a finite number, for P1\(u3\)",
    ),
}


@pytest.mark.parametrize(("options", "message"), MISUSED.values(), ids=MISUSED.keys())
def test_wrong_methods_and_options_are_refused_by_name(options, message):
    u, x = data(256)
    with pytest.raises(ParameterError, match=message):
        infocap.estimate(u, x, BASIS, **options)


def test_conclude_refuses_what_is_no_evidence():
    with pytest.raises(ParameterError, match="must be an Evidence from gather_evidence"):
        infocap.estimators.conclude(3)


def test_gaussian_inputs_of_high_degree_need_the_bound_from_the_data():
    basis = infocap.product_basis("hermite", 2, 8)
    u = infocap.draw(basis, 1024, design="random", seed=0)
    x = infocap.systems.RandomFeatures(2, 20)(u)
    with pytest.warns(DataWarning, match=r"exceeds 1 for \d+ of 45 functions.*bound='data'"):
        infocap.estimate(u, x, basis, method="threshold-richardson")

    options = {"bound": "data"}
    result = infocap.estimate(u, x, basis, method="threshold-richardson", method_options=options)
    frame = np.linalg.qr(reference.with_constant(x))[0]
    leverage = 1024 * np.sum(frame**2, axis=1)
    expected = np.mean(leverage[:, None] * basis(u) ** 2, axis=0) / 1024
    assert_allclose(result.threshold, expected, rtol=1e-9)


def test_the_refined_threshold_of_algorithm_2_lets_the_total_fluctuate_less():
    """The smallest of many values fluctuates more than the width of their distribution."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=14)
    system = infocap.theory.random_mixture(basis, n_active=10, n_readouts=10, noise=0.3, seed=1)
    totals = {False: [], True: []}
    for seed in range(30):
        u = infocap.draw(basis, 512, design="random", seed=seed)
        evidence = infocap.estimators.gather_evidence(u, system(u, seed=seed), basis)
        for refined in totals:
            options = {"refined": refined}
            result = infocap.estimators.conclude(evidence, "richardson-threshold", options)
            totals[refined].append(result.total)
    assert np.std(totals[True]) < np.std(totals[False])
    assert abs(np.mean(totals[True]) - system.exact().sum()) < 0.5


@pytest.mark.thorough
@pytest.mark.parametrize("method", RULES)
def test_jackknife_errors_are_as_large_as_the_scatter_over_data_sets(method):
    basis = infocap.product_basis("legendre", 2, 8)
    system = infocap.theory.random_mixture(basis, n_active=20, n_readouts=10, noise=0.3, seed=1)
    options = {"jackknife": 16}
    if method == "surrogate":
        options["n_surrogates"] = 5
    results = []
    for seed in range(30):
        u = infocap.draw(basis, 1024, design="random", seed=seed)
        x = system(u, seed=1000 + seed)
        result = infocap.estimate(u, x, basis, method=method, method_options=options)
        results.append(result)

    # Squares of coefficients that are zero scatter less than a jackknife says.
    is_active = system.exact() > 0.05
    is_active[0] = False
    scatter = np.std([result.unbiased[is_active] for result in results], axis=0, ddof=1)
    variances = [result.standard_error[is_active] ** 2 for result in results]
    claimed = np.sqrt(np.mean(variances, axis=0))
    assert 0.8 < np.median(claimed / scatter) < 1.3

    scatter_of_total = np.std([result.total for result in results], ddof=1)
    claimed_of_total = np.mean([result.total_standard_error for result in results])
    assert 0.5 < claimed_of_total / scatter_of_total < 2


@pytest.mark.parametrize("method", ["threshold-richardson", "richardson-threshold"])
def test_the_total_lies_in_its_interval_where_the_bias_is_corrected(method):
    u, x = data(1024, design="random")
    result = infocap.estimate(u, x, BASIS, method=method, method_options={"jackknife": 16})
    low, high = result.total_interval()
    assert low < result.total < high


@pytest.mark.parametrize("method", ["raw", "chi2"])
def test_the_jackknife_is_that_of_estimates_without_each_block(method):
    u, x = data(256, design="random")
    result = infocap.estimate(u, x, BASIS, method=method, method_options={"jackknife": 4})
    without_block = []
    for block in range(4):
        rows = np.delete(np.arange(256), np.arange(64 * block, 64 * (block + 1)))
        raw = infocap.estimate(u[rows], x[rows], BASIS, method="raw").raw
        power = 1.0 if method == "raw" else np.mean(BASIS(u[rows]) ** 2, axis=0)
        without_block.append(raw / power)
    deviations = without_block - np.mean(without_block, axis=0)
    expected = np.sqrt(3 / 4 * np.sum(deviations**2, axis=0))
    assert_allclose(result.standard_error, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("n_blocks", "kind", "message"),
    [
        (5, ParameterError, "`jackknife=5` must be 0, or an even number"),
        (2, ParameterError, "`jackknife=2` must be 0, or an even number of blocks from 4 on"),
        (64, DataError, "`jackknife=64` blocks of 256 samples hold fewer than the 10"),
    ],
)
def test_a_jackknife_that_cannot_be_is_refused(n_blocks, kind, message):
    u, x = data(256)
    with pytest.raises(kind, match=message):
        infocap.estimate(u, x, BASIS, method="raw", method_options={"jackknife": n_blocks})


def test_as_many_readouts_as_samples_are_refused_before_any_sum(monkeypatch, rng):
    def gather(*arguments):
        raise AssertionError("sums were made")

    monkeypatch.setattr("infocap.estimators._pipeline.gather", gather)
    basis = infocap.product_basis("legendre", 2, 2)
    u = rng.uniform(-1, 1, (40, 2))
    with pytest.raises(infocap.errors.DataError, match="40 samples for 101 readouts"):
        infocap.estimate(u, rng.normal(size=(40, 100)), basis)
    with pytest.raises(AssertionError, match="sums were made"):
        infocap.estimate(u, rng.normal(size=(40, 30)), basis)


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_more_channels_than_samples_are_accepted_if_they_are_few_readouts(rng):
    basis = infocap.product_basis("legendre", 2, 2)
    u = rng.uniform(-1, 1, (40, 2))
    assert infocap.estimate(u, u @ rng.normal(size=(2, 100)), basis, method="raw").rank == 3
