"""Designs: reproducible, extensible, balanced, and distributed as the basis assumes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap import draw, product_basis
from infocap.errors import DataWarning, ParameterError

BASIS = product_basis("legendre", 3, 4)
DESIGNS = ("sobol", "random", "halton", "lhs")


@pytest.mark.parametrize("design", DESIGNS)
def test_the_seed_decides_the_points(design):
    first = draw(BASIS, 64, design=design, seed=1)
    assert np.array_equal(first, draw(BASIS, 64, design=design, seed=1))
    assert not np.array_equal(first, draw(BASIS, 64, design=design, seed=2))
    assert first.shape == (64, 3)
    assert np.abs(first).max() <= 1


@pytest.mark.parametrize("design", ["sobol", "random", "halton"])
def test_the_first_points_stay_when_more_are_drawn(design):
    assert np.array_equal(
        draw(BASIS, 64, design=design, seed=1), draw(BASIS, 256, design=design, seed=1)[:64]
    )


def test_sobol_is_balanced_in_every_half_of_every_axis():
    u = draw(BASIS, 256, seed=5)
    for half in (u, u[:128], u[128:]):
        assert np.array_equal((half > 0).sum(axis=0), 3 * [len(half) // 2])


def test_sobol_warns_when_not_a_power_of_two():
    with pytest.warns(DataWarning, match="n_samples=1000` can be 512 or 1024"):
        u = draw(BASIS, 1000, seed=1)
    assert np.array_equal(u, draw(BASIS, 1024, seed=1)[:1000])


def test_points_pass_through_the_quantile_of_each_input():
    mixed = product_basis(["hermite", "laguerre", infocap.basis.bernoulli()], max_degree=2)
    u = draw(mixed, 4096, seed=0)
    assert np.isfinite(u).all()
    assert_allclose(u[:, 0].std(), 1, atol=0.01)
    assert_allclose(u[:, 1].mean(), 1, atol=0.01)
    assert set(np.unique(u[:, 2])) == {0.0, 1.0}


def test_low_discrepancy_integrates_better_than_chance():
    error = {
        design: np.sqrt(
            np.mean([draw(BASIS, 1024, design=design, seed=s).mean(axis=0) ** 2 for s in range(10)])
        )
        for design in DESIGNS
    }
    assert max(error["sobol"], error["halton"], error["lhs"]) < 0.2 * error["random"]


def test_no_point_sits_on_the_edge(monkeypatch):
    """0 and 1 would be infinite for a normal input."""
    monkeypatch.setitem(infocap.designs.DESIGNS, "random", lambda q, n, seed: np.array([[0.0], [1.0]]))
    assert np.isfinite(draw(product_basis("hermite", 1, 2), 2, design="random")).all()


def test_bad_arguments_are_refused_by_name():
    with pytest.raises(ParameterError, match="design='sobl'"):
        draw(BASIS, 64, design="sobl")
    with pytest.raises(ParameterError, match="n_samples=0"):
        draw(BASIS, 0)


@pytest.mark.parametrize("function", [draw, infocap.draw_weighted])
def test_the_former_name_of_a_design_still_works_and_says_so(function):
    with pytest.warns(DeprecationWarning, match="`method` is now called `design`") as caught:
        found = function(BASIS, 64, method="halton", seed=1)
    assert caught[0].filename == __file__
    expected = function(BASIS, 64, design="halton", seed=1)
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])
