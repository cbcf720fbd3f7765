"""The paper's validation in small: q=5, degree 8, 200 of 1287 functions active, K=71, N=8192, 20 repeats."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap

pytestmark = pytest.mark.filterwarnings("ignore:the capacities sum to")  # the raw ones do: that is the point


@pytest.fixture(scope="module")
def errors():
    """Errors of the total and of single capacities: {design: {method: (repeats, ...)}}."""
    basis = infocap.product_basis("legendre", 5, 8)
    out = {}
    for design in ("sobol", "random"):
        totals, single = {"raw": [], "algorithm 1": []}, {"raw": [], "algorithm 1": []}
        for repeat in range(20):
            system = infocap.theory.random_mixture(basis, n_active=200, n_readouts=71, seed=repeat)
            u = infocap.draw(basis, 8192, design=design, seed=1000 + repeat)
            result, exact = (
                infocap.estimate(u, system(u), basis, method="threshold-richardson"),
                system.exact(),
            )
            assert_allclose(exact.sum(), 72)
            for name, values in (("raw", result.raw), ("algorithm 1", result.capacity)):
                totals[name].append(values.sum() - exact.sum())
                single[name].append(np.sqrt(np.mean((values - exact) ** 2)))
        out[design] = {name: (np.array(totals[name]), np.array(single[name])) for name in totals}
    return out


@pytest.mark.parametrize("design", ["sobol", "random"])
def test_algorithm_1_is_ten_times_nearer_the_true_total_than_raw(errors, design):
    raw, corrected = errors[design]["raw"][0], errors[design]["algorithm 1"][0]
    assert np.all(raw > 15)
    assert np.abs(corrected).mean() < np.abs(raw).mean() / 10


def test_sobol_points_have_smaller_errors_than_random_ones(errors):
    for name in ("raw", "algorithm 1"):
        assert errors["sobol"][name][1].mean() < errors["random"][name][1].mean()
    rms = {design: np.sqrt(np.mean(errors[design]["algorithm 1"][0] ** 2)) for design in errors}
    assert rms["sobol"] < rms["random"]
