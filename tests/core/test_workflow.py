"""What users call beside `estimate`: probe, convergence and calibrate."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import qmc

import infocap
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.workflow import choose_basis

BASIS = infocap.product_basis("legendre", 2, 5)


def test_probe_is_draw_measure_estimate():
    system = infocap.systems.RandomFeatures(2, 10)
    options = {"method": "richardson-threshold"}
    u = infocap.draw(BASIS, 512, design="halton", seed=4)
    expected = infocap.estimate(u, system(u), BASIS, **options)
    result = infocap.probe(system, BASIS, 512, design="halton", seed=4, **options)
    assert_allclose(result.capacity, expected.capacity)


def test_the_seed_of_probe_decides_the_noise_too():
    system = infocap.systems.RandomFeatures(2, 10, noise=0.1)
    result = infocap.probe(system, BASIS, 512, seed=4)
    assert_allclose(infocap.probe(system, BASIS, 512, seed=4).capacity, result.capacity)
    assert np.any(infocap.probe(system, BASIS, 512, seed=5).capacity != result.capacity)


def test_probe_refuses_a_system_of_the_wrong_shape():
    with pytest.raises(DataError, match=r"gave \(3, 2\) for 64 samples"):
        infocap.probe(lambda u: u[:3], BASIS, 64)
    with pytest.raises(DataError, match="gave list for 64 samples"):
        infocap.probe(lambda u: [1, 2], BASIS, 64)


def test_a_perfect_system_has_capacity_one_for_what_it_computes():
    def product(u):
        return np.column_stack([u[:, 0], u[:, 0] * u[:, 1]])

    result = infocap.probe(product, BASIS, 1024, seed=0)
    places = np.flatnonzero(result.capacity > 0.01)
    assert {BASIS.labels[place] for place in places} == {"1", "P1(u1)", "P1(u1)·P1(u2)"}
    assert_allclose(result.total, 3, atol=0.01)


def test_convergence_starts_at_one_and_falls_to_the_capacity():
    system = infocap.theory.random_mixture(BASIS, n_active=8, n_readouts=6, noise=0.2, seed=0)
    u = infocap.draw(BASIS, 4096, seed=0)
    curve = infocap.convergence(u, system(u, seed=1), BASIS)
    assert curve.maximum == 7
    assert curve.n_samples[0] == 7
    assert curve.n_samples[-1] == 4096
    assert_allclose(curve.raw[0], 1, atol=1e-9)
    assert_allclose(curve.raw[-1], system.exact(), atol=0.03)
    assert np.all(curve.raw[4, 1:] > curve.raw[-1, 1:])


@pytest.mark.filterwarnings("ignore:the capacities sum to")
def test_convergence_is_what_the_first_rows_alone_give():
    u = infocap.draw(BASIS, 256, seed=0)
    x = infocap.systems.RandomFeatures(2, 5)(u)
    curve = infocap.convergence(u, x, BASIS, [50, 100, 256])
    of_first_rows = infocap.estimate(u[:100], x[:100], BASIS, method="raw")
    power = np.mean(BASIS(u[:100]) ** 2, axis=0)
    assert_allclose(curve.raw[1], of_first_rows.raw / power, atol=1e-10)


def test_convergence_over_impossible_sizes_is_refused():
    u = infocap.draw(BASIS, 256, seed=0)
    x = infocap.systems.RandomFeatures(2, 5)(u)
    message = r"sizes=\[0, 300\]. must be numbers of samples from 1 to 256"
    with pytest.raises(DataError, match=message):
        infocap.convergence(u, x, BASIS, [0, 300])


def features_of(u, **options):
    return infocap.systems.RandomFeatures(2, 7, **options)(u)


@pytest.fixture(scope="module")
def features():
    """Inputs, a plane of them, and the weights that random features have there."""
    u = infocap.draw(BASIS, 16, seed=0)
    plane = np.column_stack([np.ones(16), u])
    weights, squares, *_ = np.linalg.lstsq(plane, np.arctanh(features_of(u)), rcond=None)
    assert weights.shape == (3, 7)
    assert np.all(squares < 1e-20)  # linear in the inputs
    return u, plane, weights


ACTIVATIONS = {
    "relu": lambda arguments: np.maximum(arguments, 0),
    "sin": np.sin,
    "square": np.square,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_random_features_of_one_seed_have_the_same_weights_in_every_activation(
    features, activation
):
    u, plane, weights = features
    expected = ACTIVATIONS[activation](plane @ weights)
    assert_allclose(features_of(u, activation=activation), expected, atol=1e-12)


def test_the_gain_of_random_features_leaves_the_bias_as_it_is(features):
    u, plane, weights = features
    gain = np.array([[1.0], [0.5], [0.5]])
    assert_allclose(np.arctanh(features_of(u, gain=0.5)), plane @ (gain * weights), atol=1e-12)


def test_the_noise_of_random_features_has_the_size_that_was_given(features):
    u, *_ = features
    n = 500
    system = infocap.systems.RandomFeatures(2, 7, noise=0.1)
    x = system(np.repeat(u, n, axis=0), seed=1).reshape(16, n, 7)
    assert_allclose(x.std(axis=1), 0.1, rtol=6 / np.sqrt(2 * n))  # 6 standard errors


def test_random_features_refuse_other_activations_and_other_inputs(features):
    u, *_ = features
    with pytest.raises(ParameterError, match="activation='softmax'"):
        infocap.systems.RandomFeatures(2, activation="softmax")
    with pytest.raises(DataError, match=r"needs \(samples, 3\)"):
        infocap.systems.RandomFeatures(3)(u)


def test_repeats_at_every_fourth_sobol_point_are_no_fair_sample_and_get_a_warning():
    basis = infocap.product_basis("legendre", 2, 6)
    system = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=20, gain=2.0, noise=0.01)
    net = qmc.Sobol(2, scramble=True, rng=1).random(1024)  # in its own order, not shuffled
    u = 2 * net - 1
    x = system(u, seed=1)
    again = system(u, seed=2)
    every_fourth = np.arange(1024)[:, None] % 4 == 0
    a_random_fourth = np.random.default_rng(0).permutation(every_fourth)

    result = infocap.estimate(u, x, basis, repeats=np.where(a_random_fourth, again, np.nan))
    assert not any("repeated inputs" in check for check in result.checks)
    message = "the repeated inputs do not follow the declared distribution: the mean of P"
    with pytest.warns(DataWarning, match=message):
        infocap.estimate(u, x, basis, repeats=np.where(every_fourth, again, np.nan))


@pytest.mark.thorough
def test_calibrate_finds_two_parameters_and_says_how_surely():
    """The estimates over fresh measurements scatter as the standard errors say; a value without an error is left out."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)

    def capacities(noise, gain, seed=1):
        features = infocap.systems.RandomFeatures(2, 8, noise=noise, seed=3)
        return infocap.probe(lambda u, seed: features(gain * u, seed=seed), basis, 1024, seed=seed)

    def predict(**parameters):
        return capacities(**parameters).unbiased

    true_parameters = {"noise": 0.05, "gain": 0.8}
    start = {"noise": 0.08, "gain": 0.6}
    pulls = []  # errors in units of their standard errors
    for seed in range(2, 6):
        measured = capacities(**true_parameters, seed=seed)
        errors = np.sqrt(2) * measured.standard_error
        calibration = infocap.calibrate(predict, start, measured.unbiased, errors, n_starts=2)
        for name, true_value in true_parameters.items():
            error = calibration.parameters[name] - true_value
            pulls.append(error / calibration.standard_error[name])
        assert calibration.degrees_of_freedom == np.sum(errors > 0) - 2
    assert np.abs(pulls).max() < 4


def two_valleys(a):
    """Predict two values that agree with 1 and 0 at a = e, and nearly at a = 1 / e."""
    logarithm = np.log(a)
    return [logarithm**2, 0.1 * (logarithm - 1)]


def test_calibrate_keeps_every_minimum_that_is_about_as_good_as_the_best():
    """The second minimum misses the second value, 0, by 0.2: two standard errors, or chi² = 4."""
    with pytest.warns(DataWarning, match="2 minima are about equally good: chi² .* at a = 2.72"):
        found = infocap.calibrate(two_valleys, {"a": 2.0}, [1.0, 0.0], [0.1, 0.1], within=8.0)
    best, other = found.minima
    assert_allclose(best.parameters["a"], np.e, rtol=1e-3)
    assert_allclose(other.parameters["a"], np.exp(-1), rtol=0.02)
    assert (round(best.chi2), round(other.chi2)) == (0, 4)
    assert found.parameters == best.parameters
    assert len(found.chi2_of_starts) == 8
    assert_allclose(found.chi2_of_starts[[0, -1]], [best.chi2, other.chi2], atol=0.1)
    assert "2 of the minima found from 8 starts" in str(found)


def test_calibrate_leaves_out_a_minimum_that_the_values_exclude():
    """With half the errors chi² of the second minimum is 16, more than 6 above the best."""
    start = {"a": 0.5}
    found = infocap.calibrate(two_valleys, start, [1.0, 0.0], [0.1, 0.05], within=8.0)
    (best,) = found.minima
    assert_allclose(best.parameters["a"], np.e, rtol=1e-3)
    assert round(found.chi2_of_starts[-1]) == 16


def test_one_start_finds_the_minimum_that_is_nearest_to_it():
    found = infocap.calibrate(two_valleys, {"a": 0.5}, [1.0, 0.0], [0.1, 0.1], n_starts=1)
    assert_allclose(found.parameters["a"], np.exp(-1), rtol=0.02)
    assert_allclose(found.chi2_of_starts, [found.chi2])


def test_calibrate_refuses_no_start_and_starts_within_less_than_nothing():
    arguments = (two_valleys, {"a": 0.5}, [1.0, 0.0], [0.1, 0.1])
    with pytest.raises(ParameterError, match=r"`n_starts=0` must be a whole number, 1 or more"):
        infocap.calibrate(*arguments, n_starts=0)
    with pytest.raises(ParameterError, match=r"`within=0.5` must be a finite number, 1 or more"):
        infocap.calibrate(*arguments, within=0.5)


def test_one_value_cannot_tell_a_parameter():
    with pytest.raises(DataError, match="1 value with an error cannot determine 1 parameter; give"):
        infocap.calibrate(lambda noise: [noise], {"noise": 1.0}, [1.0], [0.1])


def test_measured_values_and_errors_of_different_shapes_are_refused():
    message = r"measured has shape \(3,\) and errors \(2,\); give one error for each value"
    with pytest.raises(DataError, match=message):
        infocap.calibrate(lambda noise: [noise], {"noise": 1.0}, [1.0, 2.0, 3.0], [0.1, 0.1])


def test_calibrate_and_convergence_answer_unknown_parameters():
    with pytest.raises(ParameterError, match="`error` is not a parameter of calibrate; did you"):
        infocap.calibrate(np.sin, {"noise": 1.0}, [1.0], error=[0.1])
    with pytest.raises(ParameterError, match="`size` is not a parameter of convergence; did you"):
        infocap.convergence(np.zeros((9, 1)), np.zeros((9, 1)), BASIS, size=[2])


def test_raw_capacities_start_at_one_where_there_are_as_many_samples_as_readouts():
    u = infocap.draw(BASIS, 256, seed=0)
    x = infocap.systems.RandomFeatures(BASIS.n_inputs, 5)(u, seed=1)
    curve = infocap.convergence(u, x, BASIS, [6, 256])
    assert_allclose(curve.raw[0], 1.0)


CALIBRATED = {
    "no parameters": (lambda: [1.0, 2.0], {}, [1.0, 2.0], "0 parameters"),
    "one value for all": (
        lambda a: [a],
        {"a": 1.0},
        [1.0, 2.0],
        r"gave shape \(1,\).*measured has \(2,\)",
    ),
    "not a number": (lambda a: [a, np.nan], {"a": 1.0}, [1.0, 2.0], "finite ones"),
    "no effect": (
        lambda a, b: [a, a**2, a],
        {"a": 1.0, "b": 1.0},
        [2.0, 4.0, 2.0],
        r"do not tell \['a', 'b'\] apart",
    ),
    "only a product": (
        lambda a, b: [a * b, (a * b) ** 2, 1],
        {"a": 1.0, "b": 1.0},
        [2.0, 4.0, 1.0],
        "do not tell",
    ),
}


@pytest.mark.parametrize("case", CALIBRATED)
def test_what_cannot_be_calibrated_is_said(case):
    predict, start, measured, message = CALIBRATED[case]
    with pytest.raises(DataError, match=message):
        infocap.calibrate(predict, start, measured, np.full(len(measured), 0.1))


SEQUENCE_PLAN = {"family": "legendre", "n_inputs": 1, "max_delay": {"1": 4, "2": 2}}


@pytest.mark.parametrize(
    ("name", "value"), [("max_degree", 5), ("index_set", "total"), ("max_interactions", 1)]
)
def test_a_setting_that_the_delays_of_a_plan_would_hide_is_refused(name, value):
    message = f"`{name}={value!r}` cannot be used with the delays of the plan; give `max_delay`"
    with pytest.raises(ParameterError, match=re.escape(message)):
        choose_basis((100, 1), SEQUENCE_PLAN, **{name: value})


def test_other_settings_take_the_place_of_those_of_a_plan_with_delays():
    basis, reasons = choose_basis((100, 1), SEQUENCE_PLAN, domain=(0, 1))
    assert len(basis) == len(infocap.delayed_basis(max_delay={1: 4, 2: 2}))
    assert basis.families[0].domain == (0, 1)
    assert reasons == {"plan": "the plan's basis is used, but for its domain"}


def test_second_measurements_of_complex_readouts_stay_complex():
    u = infocap.draw(BASIS, 512, seed=1)
    generator = np.random.default_rng(2)

    def measured():
        noise = generator.standard_normal((2, 512, 3))
        return np.exp(1j * u @ [[1, 2, 0], [0, 1, 2]]) + 0.1 * (noise[0] + 1j * noise[1])

    first, second = measured(), measured()
    stacked = infocap.Recording(np.vstack([u, u]), np.vstack([first, second]), np.arange(1024))
    repaired = infocap.diagnose(stacked).repaired()
    assert_array_equal(repaired.readouts, first)
    assert_array_equal(repaired.repeats, second)


def test_recordings_of_sequences_keep_the_names_of_inputs_and_need_no_delays():
    u = np.random.default_rng(1).uniform(-1, 1, (600, 1))
    recording = infocap.Recording(
        u, np.hstack([u, u**2]), design_index=range(600), input_names=("Bias [V]",)
    )
    result = infocap.estimate(recording, basis=infocap.delayed_basis(max_delay={1: 0, 2: 0}))
    assert result.basis.labels == ["1", "P1(Bias[t])", "P2(Bias[t])"]
    assert result.total == pytest.approx(3)
    with pytest.raises(ParameterError, match="give inputs and readouts"):
        infocap.estimate(u)
