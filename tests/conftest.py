"""Shared by all tests: no screen, and one thread where order of summation matters."""

import matplotlib
import numpy as np
import pytest

import infocap

matplotlib.use("Agg")

collect_ignore = ["crash"]  # scripts that the crash tests run as processes of their own


@pytest.fixture
def rng():
    return np.random.default_rng(20261115)


@pytest.fixture(scope="session")
def device():
    """The synthetic device of the table of mistakes: q=2, degree 14, 30 tanh readouts, N=4096, noise 1e-3."""
    basis = infocap.product_basis("legendre", 2, 14)
    u = infocap.draw(basis, 4096, seed=3)
    system = infocap.systems.RandomFeatures(2, 30, noise=1e-3, seed=5)
    return basis, u, system(u, seed=7)
