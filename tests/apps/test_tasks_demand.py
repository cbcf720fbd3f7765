"""Demand and supply: which functions a task needs, next to those a device computes."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.tasks import Task, accuracy, capacity_accuracy, demand, two_spirals

BASIS = infocap.product_basis("legendre", 2, 6)


def uniform_task(function, n=2000, seed=0):
    u = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return Task(u, function(u), name="made up")


@pytest.mark.parametrize(
    ("degree", "function"),
    [
        (1, lambda u: u[:, 0] > 0),
        (2, lambda u: u[:, 0] * u[:, 1] > 0),
        (2, lambda u: np.hypot(*u.T) > 0.8),
        (3, lambda u: u[:, 0] ** 3 - 0.6 * u[:, 0] > 0),
    ],
    ids=["half-plane", "exclusive or", "disc", "stripes"],
)
def test_the_demand_peaks_at_the_degree_the_task_needs(degree, function):
    found = demand(uniform_task(function), BASIS)
    assert np.argmax(found.share) == degree
    assert found.share[:degree].sum() < 0.35
    assert found.share.sum() + found.unexplained == pytest.approx(1)


def test_on_uniform_inputs_the_demand_is_the_expansion_of_the_indicator():
    """sign(u1) has P1, P3, P5 coefficients squared of 3/4, 7/64 and 11/256: their shares, within chance."""
    found = demand(uniform_task(lambda u: u[:, 0] > 0, n=8000), BASIS)
    assert_allclose(found.share[[1, 3, 5]], [3 / 4, 7 / 64, 11 / 256], atol=0.012)
    assert_allclose(found.share[[0, 2, 4, 6]], 0, atol=0.003)
    assert_allclose(found.condition, 1, atol=0.3)
    term = BASIS.labels.index("P1(u1)")
    assert abs(found.coefficients[term, 1]) == pytest.approx(np.sqrt(3) / 4, rel=0.05)


def test_labels_by_chance_demand_nothing():
    generator = np.random.default_rng(3)
    found = demand(uniform_task(lambda u: generator.integers(0, 3, len(u))), BASIS)
    assert found.share.sum() < 0.01
    assert found.unexplained > 0.99


def test_a_device_that_computes_the_demand_can_reach_it_and_one_that_does_not_cannot():
    found = demand(uniform_task(lambda u: u[:, 0] * u[:, 1] > 0), BASIS)
    able = infocap.probe(lambda u: np.column_stack([u, u[:, :1] * u[:, 1:]]), BASIS, 1024, seed=0)
    unable = infocap.probe(lambda u: np.column_stack([u, u**2]), BASIS, 1024, seed=0)
    assert found.reachable(able) > 0.6  # the rest is in P3(u1)·P1(u2) and beyond
    assert found.reachable(unable) < 0.05
    assert able.capacity_of(found.target(True)) == pytest.approx(found.reachable(able), abs=1e-6)
    with pytest.raises(ParameterError, match=r"label='cat'` is not one of \[False, True\]"):
        found.target("cat")


def test_inputs_that_hardly_tell_functions_apart_are_said_to():
    u = np.random.default_rng(0).uniform(-1, 1, (500, 1))
    line = Task(np.column_stack([u, u + 1e-7 * u**2]).clip(-1, 1), u[:, 0] > 0.3, name="line")
    with pytest.warns(
        DataWarning, match="inputs of line hardly tell functions of degree 1 and more apart"
    ):
        found = demand(line, BASIS)
    assert "hardly tell" in repr(found)
    assert np.isfinite(found.cumulative).all()
    with pytest.warns(DataWarning, match="60 samples are few for the 21 functions up to degree 5"):
        demand(uniform_task(lambda u: u[:, 0] > 0, n=60), BASIS)


@pytest.mark.filterwarnings("ignore:the inputs of two spirals:infocap.errors.DataWarning")
def test_two_spirals_need_odd_and_high_degrees():
    """The second arm is minus the first, so the target is odd; and it turns often."""
    found = demand(two_spirals(), infocap.product_basis("legendre", 2, 12))
    assert found.share[::2].sum() < 0.02
    assert found.share[:4].sum() < 0.25
    assert found.share[5:].sum() > 0.6


@pytest.mark.parametrize(
    ("task", "basis", "message"),
    [
        ("spirals", BASIS, "must be a Task from"),
        (two_spirals(100), "legendre", "must be a ProductBasis"),
        (two_spirals(100), infocap.product_basis("legendre", 3, 2), "has 2 inputs, the basis 3"),
        (
            two_spirals(100),
            infocap.product_basis("legendre", 2, 80),
            "3321 functions, more than 3000",
        ),
        (
            two_spirals(100),
            infocap.product_basis("legendre", 2, 2, domain=(0, 1)),
            r"outside the domain \[0, 1\]",
        ),
    ],
)
def test_demand_refuses_what_does_not_fit(task, basis, message):
    with pytest.raises((ParameterError, DataError), match=message):
        demand(task, basis)


@cache
def probed():
    return infocap.probe(infocap.systems.RandomFeatures(2, 20, noise=0.01), BASIS, 1024, seed=0)


def test_the_plot_shows_demand_next_to_supply():
    found = demand(uniform_task(lambda u: u[:, 0] * u[:, 1] > 0), BASIS)
    ax = infocap.tasks.plot.demand_supply(found, probed())
    supply, wanted = ([bar.get_height() for bar in stack] for stack in ax.containers)
    assert_allclose(supply, (probed().by_degree().sum(axis=1) / np.arange(1, 8))[1:])
    assert_allclose(wanted, found.share[1:])
    assert f"explain {1 - found.unexplained:.0%} of the target" in ax.texts[0].get_text()
    low = infocap.probe(lambda u: u, infocap.product_basis("legendre", 2, 3), 256, seed=0)
    assert [len(stack) for stack in infocap.tasks.plot.demand_supply(found, low).containers] == [
        3,
        6,
    ]
    other = infocap.probe(lambda u: u, infocap.product_basis("legendre", 3, 2), 256, seed=0)
    with pytest.raises(ParameterError, match="has 2 inputs and the device 3"):
        infocap.tasks.plot.demand_supply(found, other)


@cache
def relation(errors=False):
    def method(evidence):
        return infocap.estimators.Estimate(np.clip(evidence.raw, 0, 1), total_standard_error=0.1)

    options = {"method": method} if errors else {}

    def make(length_m, n_readouts):
        return infocap.systems.RandomFeatures(2, n_readouts, gain=length_m, noise=0.01)

    swept = infocap.sweep(
        make,
        {"length_m": [1, 4], "n_readouts": [4, 8, 16]},
        BASIS,
        1024,
        seed=0,
        progress=False,
        **options,
    )
    task = two_spirals(400, turns=1)
    return capacity_accuracy(swept, [accuracy(make(**point), task) for point in swept.points])


def test_capacity_is_drawn_against_accuracy_with_error_bars():
    shown = relation(errors=True)
    ax = infocap.tasks.plot.capacity_accuracy(shown)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1 m", "4 m"]
    for curve, rows in zip(ax.containers, (slice(0, 3), slice(3, 6)), strict=True):
        points, _, (across, upright) = curve
        assert_allclose(points.get_xdata(), shown.total[rows])
        assert_allclose(points.get_ydata(), shown.accuracy[rows])
        reach = [np.ptp(segment[:, 1]) / 2 for segment in upright.get_segments()]
        assert_allclose(reach, shown.accuracy_standard_error[rows])
        assert_allclose([np.ptp(segment[:, 0]) / 2 for segment in across.get_segments()], 0.1)
    assert shown.linear in ax.lines[-1].get_ydata()
    assert f"r = {shown.correlation:.2f}" in ax.get_title(loc="left")


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_against_a_setting_both_curves_are_drawn_as_in_the_paper():
    shown = relation()
    ax = infocap.tasks.plot.capacity_accuracy(shown, against="n_readouts")
    (second,) = [other for other in ax.figure.axes if other is not ax]
    assert_allclose(ax.containers[1][0].get_ydata(), shown.accuracy[3:])
    assert_allclose(second.containers[1][0].get_ydata(), shown.total[3:])
    assert_allclose(second.containers[1][0].get_xdata(), [4, 8, 16])
    assert ax.get_xlabel() == "n readouts"
    ax = infocap.tasks.plot.capacity_accuracy(shown, against="length_m")
    assert ax.get_xlabel() == "length (m)"
    with pytest.raises(
        ParameterError, match="against='power'` is not one of 'length_m', 'n_readouts'"
    ):
        infocap.tasks.plot.capacity_accuracy(shown, against="power")
    _, mine = plt.subplots()
    assert infocap.tasks.plot.capacity_accuracy(shown, ax=mine) is mine
