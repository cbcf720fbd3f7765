"""The feed-forward network: layers written out, cuts of one network, and what it refuses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from infocap.errors import DataError, ParameterError
from infocap.systems import FeedForward

U = np.random.default_rng(0).uniform(-1, 1, (50, 3))


def test_a_layer_acts_on_the_outputs_of_the_one_before():
    """The second layer of a network is affine in the outputs of the first, before its activation."""
    first_layer = FeedForward(3, [8])(U)
    both_layers = FeedForward(3, [8, 5])(U)
    terms = np.column_stack([first_layer, np.ones(len(U))])
    before_activation = np.arctanh(both_layers)
    fit = terms @ np.linalg.lstsq(terms, before_activation, rcond=None)[0]
    assert_allclose(fit, before_activation, atol=1e-9)
    linear = FeedForward(3, [8, 5], activation="linear", bias=0.0)
    assert_allclose(linear(2 * U), 2 * linear(U))


def test_what_enters_a_unit_has_the_size_of_the_gain():
    big = FeedForward(3, [20_000], gain=2.0, bias=0.0, activation="square")
    mean_square = np.mean(big(np.ones((1, 3))))  # E[(gain w·u/√3)²] = gain² for |u|² = 3
    assert mean_square == pytest.approx(4.0, rel=4 * np.sqrt(2 / 20_000))


def test_noise_has_its_size_and_its_seed():
    quiet = FeedForward(3, [30])
    noisy = FeedForward(3, [30], noise=0.1)
    difference = noisy(U, seed=1) - quiet(U)
    assert difference.std() == pytest.approx(0.1, rel=4 / np.sqrt(2 * difference.size))
    assert_array_equal(noisy(U, seed=1), noisy(U, seed=1))
    assert not np.array_equal(noisy(U, seed=1), noisy(U, seed=2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"widths": []}, r"widths=\[\]` must be a list of layer sizes"),
        ({"widths": 40}, "widths=40` must be a list of whole numbers"),
        ({"widths": [40, 0]}, "widths=0` must be a whole number"),
        ({"n_inputs": 0}, "n_inputs=0"),
        ({"activation": "step"}, "activation='step'` is not one of"),
        ({"gain": 0}, "gain=0` must be a positive number"),
        ({"noise": -1}, "noise=-1` must be a finite number, 0 or more"),
    ],
)
def test_settings_without_meaning_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        FeedForward(**{"n_inputs": 3, **options})


def test_inputs_of_another_shape_are_refused():
    with pytest.raises(DataError, match=r"u has shape \(50, 2\); this system needs \(samples, 3\)"):
        FeedForward(3)(U[:, :2])
