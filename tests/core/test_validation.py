"""The paper's validation in small: q=5, degree 8, 200 of 1287 functions active, K=71, N=8192, 8 repeats."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap

pytestmark = pytest.mark.filterwarnings(
    "ignore:the capacities sum to"
)  # the raw ones do: that is the point


def errors(design):
    """Errors of the total and of single capacities: {method: (repeats, ...)}."""
    basis = infocap.product_basis("legendre", 5, 8)
    totals, single = {"raw": [], "algorithm 1": []}, {"raw": [], "algorithm 1": []}
    for repeat in range(8):
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
    return {name: (np.array(totals[name]), np.array(single[name])) for name in totals}


def test_algorithm_1_is_ten_times_nearer_the_true_total_than_raw_and_sobol_points_are_better():
    """One test, so that the data sets are computed once wherever it runs."""
    sobol, random = errors("sobol"), errors("random")
    for found in (sobol, random):
        raw, corrected = found["raw"][0], found["algorithm 1"][0]
        assert np.all(raw > 15)
        assert np.abs(corrected).mean() < np.abs(raw).mean() / 10
    for name in ("raw", "algorithm 1"):
        assert sobol[name][1].mean() < random[name][1].mean()
    rms = [np.sqrt(np.mean(found["algorithm 1"][0] ** 2)) for found in (sobol, random)]
    assert rms[0] < rms[1]
