"""probe and convergence."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import qmc

import infocap
from infocap.errors import DataError, DataWarning

BASIS = infocap.product_basis("legendre", 2, 5)


def test_probe_is_draw_measure_estimate():
    system = infocap.systems.RandomFeatures(2, 10, noise=0.1)
    result = infocap.probe(system, BASIS, 512, seed=4)
    assert_allclose(
        result.capacity, infocap.probe(system, BASIS, 512, seed=4).capacity
    )  # noise included
    assert np.any(result.capacity != infocap.probe(system, BASIS, 512, seed=5).capacity)
    quiet = infocap.systems.RandomFeatures(2, 10)
    u = infocap.draw(BASIS, 512, design="halton", seed=4)
    by_hand = infocap.estimate(u, quiet(u), BASIS, method="richardson-threshold")
    found = infocap.probe(quiet, BASIS, 512, design="halton", seed=4, method="richardson-threshold")
    assert_allclose(found.capacity, by_hand.capacity)


def test_probe_refuses_a_system_of_the_wrong_shape():
    with pytest.raises(DataError, match=r"gave \(3, 2\) for 64 samples"):
        infocap.probe(lambda u: u[:3], BASIS, 64)
    with pytest.raises(DataError, match="gave list for 64 samples"):
        infocap.probe(lambda u: [1, 2], BASIS, 64)


def test_a_perfect_system_has_capacity_one_for_what_it_computes():
    result = infocap.probe(
        lambda u: np.column_stack([u[:, 0], u[:, 0] * u[:, 1]]), BASIS, 1024, seed=0
    )
    wanted = {"1", "P1(u1)", "P1(u1)·P1(u2)"}
    assert {
        label for label, c in zip(BASIS.labels, result.capacity, strict=True) if c > 0.01
    } == wanted
    assert_allclose(result.total, 3, atol=0.01)


def test_convergence_starts_at_one_and_falls_to_the_capacity():
    system = infocap.theory.random_mixture(BASIS, n_active=8, n_readouts=6, noise=0.2, seed=0)
    u = infocap.draw(BASIS, 4096, seed=0)
    curve = infocap.convergence(u, system(u, seed=1), BASIS)
    assert curve.maximum == curve.n_samples[0] == 7
    assert curve.n_samples[-1] == 4096
    assert_allclose(curve.raw[0], 1, atol=1e-9)
    assert_allclose(curve.raw[-1], system.exact(), atol=0.03)
    assert np.all(curve.raw[4, 1:] > curve.raw[-1, 1:])


@pytest.mark.filterwarnings("ignore:the capacities sum to")
def test_convergence_is_what_the_first_rows_alone_give():
    u = infocap.draw(BASIS, 256, seed=0)
    x = infocap.systems.RandomFeatures(2, 5)(u)
    curve = infocap.convergence(u, x, BASIS, [50, 100, 256])
    alone = infocap.estimate(u[:100], x[:100], BASIS, method="raw")
    assert_allclose(curve.raw[1], alone.raw / np.mean(BASIS(u[:100]) ** 2, axis=0), atol=1e-10)
    with pytest.raises(
        DataError, match=r"sizes=\[0, 300\]. must be numbers of samples from 1 to 256"
    ):
        infocap.convergence(u, x, BASIS, [0, 300])


def test_random_features_are_what_they_say():
    """One seed gives one set of weights: the arguments of tanh are those of every other activation."""
    u = infocap.draw(BASIS, 16, seed=0)
    arguments = np.arctanh(infocap.systems.RandomFeatures(2, 7)(u))
    plane = np.column_stack([np.ones(16), u])
    weights, left, *_ = np.linalg.lstsq(plane, arguments, rcond=None)
    assert weights.shape == (3, 7)
    assert np.all(left < 1e-20)  # linear in the inputs
    by_hand = {
        "relu": arguments * (arguments > 0),
        "sin": np.sin(arguments),
        "square": arguments**2,
    }
    for activation, expected in by_hand.items():
        found = infocap.systems.RandomFeatures(2, 7, activation=activation)(u)
        assert_allclose(found, expected, atol=1e-12)
    stronger = np.arctanh(infocap.systems.RandomFeatures(2, 7, gain=0.5)(u))
    assert_allclose(
        stronger, plane @ (weights * [[1.0], [0.5], [0.5]]), atol=1e-12
    )  # the bias stays
    noisy = infocap.systems.RandomFeatures(2, 7, noise=0.1)(np.repeat(u, 500, axis=0), seed=1)
    assert_allclose(noisy.reshape(16, 500, 7).std(axis=1), 0.1, atol=0.02)  # 6 standard errors
    with pytest.raises(infocap.errors.ParameterError, match="activation='softmax'"):
        infocap.systems.RandomFeatures(2, activation="softmax")
    with pytest.raises(DataError, match=r"wants \(samples, 3\)"):
        infocap.systems.RandomFeatures(3)(u)


@pytest.mark.filterwarnings("ignore:the inputs are a single low-discrepancy design")
def test_repeats_at_every_fourth_sobol_point_are_no_fair_sample_and_get_a_warning():
    basis = infocap.product_basis("legendre", 2, 6)
    system = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=20, gain=2.0, noise=0.01)
    net = qmc.Sobol(2, scramble=True, rng=1).random(1024)  # in its own order, not shuffled
    u = 2 * net - 1
    x, again = system(u, seed=1), system(u, seed=2)
    chosen = np.random.default_rng(0).permutation(1024) % 4 == 0
    fair = infocap.estimate(u, x, basis, repeats=np.where(chosen[:, None], again, np.nan))
    assert not any("repeated inputs" in check for check in fair.checks)
    striped = np.arange(1024) % 4 == 0
    with pytest.warns(
        DataWarning,
        match=r"the repeated inputs do not follow the declared distribution: the mean of P",
    ):
        infocap.estimate(u, x, basis, repeats=np.where(striped[:, None], again, np.nan))


@pytest.mark.thorough
def test_calibrate_finds_two_parameters_and_says_how_surely():
    """The estimates over fresh measurements scatter as the standard errors say; a value without an error is left out."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)

    def capacities(noise, gain, seed=1):
        features = infocap.systems.RandomFeatures(2, 8, noise=noise, seed=3)
        return infocap.probe(lambda u, seed: features(gain * u, seed=seed), basis, 1024, seed=seed)

    truth, pulls = {"noise": 0.05, "gain": 0.8}, []
    for seed in range(2, 6):
        measured = capacities(**truth, seed=seed)
        errors = np.sqrt(2) * measured.standard_error
        found = infocap.calibrate(
            lambda **given: capacities(**given).unbiased,
            {"noise": 0.08, "gain": 0.6},
            measured.unbiased,
            errors,
        )
        pulls.append(
            [(found.parameters[name] - truth[name]) / found.standard_error[name] for name in truth]
        )
        assert found.degrees_of_freedom == np.sum(errors > 0) - 2
    assert np.abs(pulls).max() < 4
    with pytest.raises(DataError, match="cannot tell 1 parameters"):
        infocap.calibrate(lambda noise: [noise], {"noise": 1.0}, [1.0], [0.1])


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


def test_recordings_of_sequences_keep_the_names_of_inputs_and_need_no_delays():
    u = np.random.default_rng(1).uniform(-1, 1, (600, 1))
    recording = infocap.Recording(
        u, np.hstack([u, u**2]), design_index=range(600), input_names=("Bias [V]",)
    )
    result = infocap.estimate(recording, basis=infocap.delayed_basis(max_delay={1: 0, 2: 0}))
    assert result.basis.labels == ["1", "P1(Bias[t])", "P2(Bias[t])"]
    assert result.total == pytest.approx(3)
    with pytest.raises(infocap.errors.ParameterError, match="give inputs and readouts"):
        infocap.estimate(u)
