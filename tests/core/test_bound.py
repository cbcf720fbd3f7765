"""The efficiency bound: right where it can be solved, zero without noise, and reached by the default method."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.theory import efficiency_bound, random_mixture

LINE = infocap.product_basis("legendre", 1, 5)
PLANE = infocap.product_basis("legendre", 2, 5)


def one_readout(signal, noise):
    """A multiple of y1 with normal noise, for which everything can be solved."""

    def system(u, seed):
        white = np.random.default_rng(seed).standard_normal((len(u), 1))
        return signal * LINE(u)[:, 1:2] + noise * white

    return system


@pytest.mark.thorough
@pytest.mark.parametrize(("signal", "noise"), [(1.0, 0.1), (1.0, 1.0), (0.3, 1.0)])
def test_one_noisy_readout_has_the_bound_of_the_closed_form(signal, noise):
    system = one_readout(signal, noise)
    bounds = [efficiency_bound(system, LINE, seed=seed) for seed in range(12)]

    c = signal**2 / (signal**2 + noise**2)
    v = 1 - c
    variance = 2 * (v**2 - v**4)
    floor_of_signal = 2 * (c * v) ** 2 + 2 * (v * (v - c) ** 2 + 2 * v**2 * c) ** 2
    floor_of_zero = 2 * v**2
    expected = {
        "variance": [0, variance, 0, 0, 0, 0],
        "floor": [0, floor_of_signal, *[floor_of_zero] * 4],
        "total_variance": variance,
        "total_floor": floor_of_signal + 4 * floor_of_zero,
    }
    for name, exact in expected.items():
        values = np.array([getattr(bound, name) for bound in bounds])
        error = values.mean(axis=0) - exact
        standard_error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert np.all(np.abs(error) < 5 * standard_error + 2e-3 * np.max(exact)), name
        assert np.max(standard_error) < 0.05 * np.max(exact)  # so the line above could fail


@pytest.mark.thorough
def test_noise_that_depends_on_the_input_counts_where_it_is():
    """Noise of the variance 3 u² s²: the closed form with averages over u of what was constant before."""

    def system(u, seed):
        noise = np.sqrt(3) * u * np.random.default_rng(seed).standard_normal((len(u), 1))
        return LINE(u)[:, 1:2] + 0.5 * noise

    c = 1 / 1.25
    # With p = c y + eps and Var(eps | u) = c² y² / 4: V = E[4 (1 - c)² y² Var + 2 Var²], where E[y⁴] = 9 / 5.
    expected = 9 / 5 * (4 * (1 - c) ** 2 * c**2 / 4 + 2 * c**4 / 16)
    variances = [efficiency_bound(system, LINE, seed=seed).variance[1] for seed in range(12)]
    standard_error = np.std(variances, ddof=1) / np.sqrt(12)
    assert np.mean(variances) == pytest.approx(expected, abs=5 * standard_error)


def test_the_noise_of_the_weights_does_not_pass_for_a_bound():
    """Functions that a device does not hold have no first order, however few inputs the weights come from."""
    system = random_mixture(PLANE, n_active=6, n_readouts=5, noise=0.5, seed=1)
    bounds = [efficiency_bound(system, PLANE, seed=seed, draws=256) for seed in range(20)]
    variances = [bound.variance for bound in bounds]
    is_zero = system.exact() == 0
    assert is_zero.sum() > 10
    assert np.mean(variances, axis=0)[is_zero].max() < 0.02 * np.max(variances)


def test_a_device_without_noise_has_no_bound():
    """Whether it takes a seed or not."""
    takes_a_seed = random_mixture(LINE, n_active=4, n_readouts=3, seed=1)
    for system in (takes_a_seed, lambda u: takes_a_seed(u)):
        bound = efficiency_bound(system, LINE, n_samples=64, seed=1)
        assert_allclose(bound.standard_error, 0, atol=1e-9)
        assert bound.total_standard_error == pytest.approx(0, abs=1e-9)
        assert bound.samples_needed(0.1) == 5  # one more than the independent readouts


@pytest.mark.thorough
@pytest.mark.parametrize("design", ["sobol", "random"])
def test_the_default_method_reaches_the_bound_and_does_not_beat_it(design):
    n_data_sets = 60
    n = 512
    system = random_mixture(PLANE, n_active=15, n_readouts=8, noise=0.7, seed=5)
    bound = efficiency_bound(system, PLANE, n_samples=n, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        results = []
        for seed in range(n_data_sets):
            results.append(infocap.probe(system, PLANE, n, seed=seed, design=design))

    # The scatter of capacities and of the total.
    error = np.array([result.unbiased - system.exact() for result in results])
    is_active = bound.standard_error > 1e-6
    scatter = np.sqrt(np.mean(error**2, axis=0))
    ratio = scatter[is_active] / bound.standard_error[is_active]
    assert 0.9 < np.median(ratio) < 1.3
    ratio_of_total = np.std(error.sum(axis=1)) / bound.total_standard_error
    tolerance = 4 / np.sqrt(2 * n_data_sets)
    assert 1 - tolerance < ratio_of_total < 1.3 + tolerance

    # The bounds that follow from the results themselves.
    bounds = [efficiency_bound(result) for result in results]
    assert {each.n_samples for each in bounds} == {n}
    median_of_total = np.median([each.total_standard_error for each in bounds])
    assert median_of_total == pytest.approx(bound.total_standard_error, rel=0.25)
    medians = np.median([each.standard_error for each in bounds], axis=0)
    assert 0.9 < np.median(medians[is_active] / bound.standard_error[is_active]) < 1.3


def test_the_bound_for_another_number_of_samples():
    bound = efficiency_bound(one_readout(1.0, 1.0), LINE, n_samples=100, seed=1)
    many = bound.at(10**8)
    of_first_order = np.sqrt(bound.total_variance / 10**8)
    assert many.total_standard_error == pytest.approx(of_first_order, rel=1e-3)
    variance_of_one = bound.total_variance + bound.total_floor
    assert bound.at(1).total_standard_error ** 2 == pytest.approx(variance_of_one)
    n = bound.samples_needed(0.05)
    assert bound.at(n).total_standard_error <= 0.05 < bound.at(n - 1).total_standard_error
    assert repr(bound).startswith(
        "Bound: with 100 samples no method knows the total better than to ± 0.0"
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: efficiency_bound(one_readout(1, 1)), ParameterError, "a system together with its `basis`"),
        (lambda: efficiency_bound(3, LINE), ParameterError, "source=3` must be a function or a CapacityResult from estimate"),
        (lambda: efficiency_bound(lambda u: u[:5], LINE), DataError, r"\(5, 1\) for 12288 samples"),
        (lambda: efficiency_bound(lambda u: u * 1j, LINE), DataError, r"system\(u\) is complex"),
        (lambda: efficiency_bound(PLANE.__call__, PLANE, draws=32), ParameterError, "draws=32` must be"),
        (lambda: efficiency_bound(infocap.systems.RandomFeatures(2, 40), PLANE, draws=64), DataError, "at least 82"),
        (lambda: efficiency_bound(one_readout(1, 1), LINE, n_samples=0), ParameterError, "n_samples=0` must be"),
        (lambda: efficiency_bound(np.tanh, infocap.delayed_basis(max_delay={1: 2})), ParameterError, "needs a result"),
    ],
)  # fmt: skip
def test_mistakes_get_a_sentence(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_result_has_its_basis_and_must_have_error_bars():
    result = infocap.probe(lambda u: u, LINE, 64, seed=1)
    with pytest.raises(ParameterError, match="a result has its own basis"):
        efficiency_bound(result, LINE)
    raw = infocap.probe(lambda u: u, LINE, 64, seed=1, method="raw")
    with pytest.raises(DataError, match="estimated by 'raw'"):
        efficiency_bound(raw)
