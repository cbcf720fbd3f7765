"""Figures: what is handed to the axes is what the result holds."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import combinations
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

import infocap
from infocap.errors import Check, ParameterError

TWO = infocap.product_basis("legendre", 2, 6)


@cache
def probed():
    return infocap.probe(infocap.systems.RandomFeatures(2, 20, noise=0.01), TWO, 1024, seed=0)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def fraction(ax):
    return [text.get_text() for text in ax.texts if "frac" in text.get_text()]


def test_the_matrix_shows_u1_along_x_and_u2_along_y():
    result = infocap.probe(lambda u: u[:, :1] ** 3, TWO, 512, seed=0)
    ax = infocap.plot.capacity_matrix(result)
    shown = ax.collections[0].get_array()  # rows are y
    assert shown[0, 3] > 0.1
    assert shown[3, 0] == 0
    assert np.array_equal(np.ma.getmaskarray(shown), np.add.outer(np.arange(7), np.arange(7)) > 6)
    assert ax.get_xlabel() == "degree in u₁"
    assert ax.get_ylabel() == "degree in u₂"
    assert ax.collections[0].get_clim() == (0, 1)
    assert ax.get_ylim() == (-0.5, 6.5)  # upwards


def test_the_circle_holds_total_over_maximum():
    for draw in (infocap.plot.capacity_matrix, infocap.plot.capacity_bars):
        assert fraction(draw(probed())) == [rf"$\frac{{{probed().total:.1f}}}{{21}}$"]
        near = replace(probed(), total=20.974)
        assert fraction(draw(near)) == [r"$\frac{20.97}{21}$"]  # never 21.0 of 21 for less


def test_bars_stack_by_interactions_and_say_their_height():
    basis = infocap.product_basis("legendre", 3, 4)
    result = infocap.probe(infocap.systems.RandomFeatures(3, 30, noise=0.01), basis, 1024, seed=0)
    ax, table = infocap.plot.capacity_bars(result), result.by_degree()
    heights = np.array([[bar.get_height() for bar in stack] for stack in ax.containers[:4]])
    bottoms = np.array([[bar.get_y() for bar in stack] for stack in ax.containers[:4]])
    assert_allclose(
        heights[0], [1, 0, 0, 0, 0], atol=1e-9
    )  # the constant is none of the functions of one variable
    assert_allclose(heights[1:, 1:], table.to_numpy().T[:, 1:])
    assert_allclose(bottoms[3], table["1"] + table["2"])
    assert len({stack[0].get_facecolor() for stack in ax.containers[:4]}) == 4
    values = [text.get_text() for text in ax.texts if "frac" not in text.get_text()]
    assert values == [f"{value:.2f}" for value in table.sum(axis=1)]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "constant",
        "one variable",
        "two variables",
        "more than two",
    ]


def test_bars_have_error_bars_when_the_result_has_errors():
    u = infocap.draw(TWO, 512, seed=0)
    x = infocap.systems.RandomFeatures(2, 5)(u)
    result = infocap.estimate(
        u,
        x,
        TWO,
        method=lambda e: infocap.estimators.Estimate(e.raw, standard_error=0 * e.raw + 0.1),
    )
    ax = infocap.plot.capacity_bars(result)
    segments = ax.collections[0].get_segments()
    reach = [(segment[1][1] - segment[0][1]) / 2 for segment in segments]
    assert_allclose(reach, 0.1 * np.sqrt(np.arange(1, 8)))
    bare = infocap.estimate(u, x, TWO, method="threshold-richardson")
    assert not infocap.plot.capacity_bars(bare).collections


def test_a_result_of_nothing_but_zeros_can_be_drawn():
    result = infocap.probe(lambda u: u, TWO, 64, seed=0, method=lambda evidence: 0 * evidence.raw)
    assert infocap.plot.capacity_bars(result).get_legend() is None


def test_the_matrix_of_phases_counts_functions():
    basis = infocap.product_basis("fourier", 2, 2)
    ax = infocap.plot.capacity_matrix(infocap.probe(np.cos, basis, 64, seed=0))
    assert ax.get_xlabel() == "number of function in u₁"


def test_convergence_draws_the_curves_asked_for():
    u = infocap.draw(TWO, 512, seed=0)
    curve = infocap.convergence(u, infocap.systems.RandomFeatures(2, 5, noise=0.1)(u, seed=1), TWO)
    ax = infocap.plot.convergence(curve, ["P1(u1)", 4])
    lines = [line for line in ax.lines if len(line.get_xdata()) > 2]
    for line, term in zip(lines, (TWO.labels.index("P1(u1)"), 4), strict=True):
        assert np.array_equal(line.get_ydata(), curve.raw[:, term])
        assert np.array_equal(line.get_xdata(), curve.n_samples)
    assert ax.get_xscale() == "log"
    assert len(infocap.plot.convergence(curve).get_legend().get_texts()) >= 3
    with pytest.raises(ParameterError, match=r"'P9\(u9\)'"):
        infocap.plot.convergence(curve, ["P9(u9)"])


def test_the_indicator_is_drawn_with_its_minimum():
    found = infocap.result.Factors(n_repeats=30, n_factors=2, values=(1e-2, 1e-3, 4e-3, 0.0))
    ax = infocap.plot.indicator(replace(probed(), factors=found))
    curve, _, lowest = ax.lines
    assert list(curve.get_xdata()) == [1, 2, 3, 4]
    assert_allclose(curve.get_ydata(), [1e-2, 1e-3, 4e-3, np.nan])  # zero has no place on this axis
    assert (lowest.get_xdata(), lowest.get_ydata()) == ([2], [1e-3])
    assert ax.get_yscale() == "log"
    ax.figure.draw_without_rendering()
    assert "10⁻³" in [text.get_text() for text in ax.get_yticklabels()]
    rising = infocap.plot.indicator(replace(found, n_factors=None))
    assert (len(rising.lines), len(rising.texts)) == (1, 0)


def test_the_indicator_takes_what_dimension_gave():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 12)) + 0.1 * rng.standard_normal(
        (200, 12)
    )
    found = infocap.dimension.indicator(x)
    ax = infocap.plot.indicator(found)
    assert_allclose(ax.lines[0].get_ydata(), found.values)
    assert ax.lines[2].get_xdata() == [found.n_factors]


@pytest.mark.parametrize(("last", "label", "shown"), [
    (7200.5, "time (h)", 7200.5 / 3600), (100.0, "time (s)", 100.0), (7199.0, "time (min)", 7199 / 60),
])  # fmt: skip
def test_drift_is_drawn_in_per_cent_over_a_fitting_clock(last, label, shown):
    found = infocap.result.Drift(
        time=(5.0, 5.0 + last), clock="s", distance=(0.0, 0.3), size=0.2, noise=0.01
    )
    ax = infocap.plot.drift(replace(probed(), drift=found))
    curve, noise = ax.lines
    assert_allclose(curve.get_xdata(), [0, shown])
    assert_allclose(curve.get_ydata(), [0, 30])
    assert_allclose(noise.get_ydata(), 100 * np.sqrt(2) * 0.01)
    assert ax.get_xlabel() == label
    assert ax.get_ylim()[1] > 30


def test_growth_has_intervals_where_errors_are_known():
    def drawn(errors):
        curve = SimpleNamespace(
            n_samples=(256, 512, 1024), total=(9.0, 8.0, 7.5), standard_error=errors
        )
        ax = infocap.plot.growth(replace(probed(), growth=curve))
        assert list(ax.lines[0].get_ydata()) == [9.0, 8.0, 7.5]
        return ax

    band = drawn((0.3, 0.2, 0.1)).collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(9.0 + 1.96 * 0.3, abs=1e-3)
    (bars,) = drawn((None, None, 0.1)).collections
    ((low, high),) = bars.get_segments()
    assert_allclose([low[0], high[0]], 1024)
    assert_allclose([low[1], high[1]], [7.5 - 1.96 * 0.1, 7.5 + 1.96 * 0.1], atol=1e-4)
    for unknown in (None, (None, None, None), (np.nan, np.nan, np.nan)):
        assert not drawn(unknown).collections


def test_drift_without_times_counts_measurements():
    found = infocap.result.Drift(
        time=(0, 1, 2), clock="order", distance=(0.0, 0.1, 0.0), size=0.0, noise=0.1
    )
    ax = infocap.plot.drift(replace(probed(), drift=found))
    assert ax.get_xlabel() == "number of measurement"
    assert list(ax.lines[0].get_xdata()) == [0, 1, 2]


@pytest.mark.parametrize(("draw", "message"), [
    (infocap.plot.indicator, "no factor analysis.*`noise`.*measure one input many times"),
    (infocap.plot.drift, "no drift.*`reference`.*8 times or more"),
])  # fmt: skip
def test_what_was_not_measured_cannot_be_drawn(draw, message):
    with pytest.raises(ParameterError, match=message):
        draw(probed())
    with pytest.raises(ParameterError, match=r"no indicator function: too few"):
        infocap.plot.indicator(infocap.result.Factors(n_repeats=2, problem="too few"))


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_figures_have_the_width_of_a_column_and_every_format(tmp_path, suffix):
    ax = infocap.plot.capacity_bars(probed())
    assert ax.figure.get_figwidth() == pytest.approx(89 / 25.4)
    ax.figure.savefig(tmp_path / f"bars.{suffix}")
    assert (tmp_path / f"bars.{suffix}").stat().st_size > 1000


def test_the_light_is_shown_at_each_stage():
    system = infocap.photonics.FibreSystem(length_m=40.0, n_inputs=2, phase_noise=None)
    panels = infocap.photonics.plot.stages(system, [[0.9, -0.5]]).axes
    stages = system.stages(np.array([[0.9, -0.5]]))
    assert len(panels) == 4
    laser, before, after = (line.get_ydata() for line in panels[0].lines)
    assert_allclose(
        np.sort(before), np.sort(np.abs(stages["before"][0]) ** 2 * system.pulse.density_unit * 1e6)
    )
    assert before.sum() < laser.sum()
    assert after.sum() == pytest.approx(before.sum(), rel=1e-3)  # no loss
    powers = panels[1].lines[0].get_ydata()  # the laser in time
    assert powers.max() == pytest.approx(system.peak_power_w, rel=1e-4)


def test_matrices_can_do_without_their_colour_bars():
    figure, (left, right) = plt.subplots(1, 2)
    infocap.plot.capacity_matrix(probed(), left, colourbar=False)
    assert len(figure.axes) == 2
    infocap.plot.capacity_matrix(probed(), right)
    assert len(figure.axes) == 3


def test_the_light_fits_into_a_part_of_a_figure():
    top, bottom = plt.figure(layout="constrained").subfigures(2, 1)
    system = infocap.photonics.FibreSystem(length_m=5.0, n_inputs=2)
    assert infocap.photonics.plot.stages(system, [[0.9, -0.5]], figure=top) is top
    assert [len(top.axes), len(bottom.axes)] == [4, 0]


def test_given_axes_are_used_and_returned():
    figure, (left, right) = plt.subplots(1, 2)
    assert infocap.plot.capacity_matrix(probed(), left) is left
    assert infocap.plot.capacity_bars(probed(), ax=right) is right
    assert plt.get_fignums() == [figure.number]
    assert plt.rcParams["font.size"] == 10  # the package's look stays its own


@pytest.mark.thorough
def test_a_notebook_shows_every_figure_and_not_the_first_alone(tmp_path):
    """Its backend is loaded by the first figure and then switches pictures on; our settings must not undo that."""
    (tmp_path / "notebook.py").write_text(
        "import matplotlib\nfrom matplotlib.backends.backend_agg import *\nmatplotlib.interactive(True)\n"
    )
    code = (
        "import matplotlib, infocap\n"
        "basis = infocap.product_basis('legendre', 2, 2)\n"
        "infocap.plot.capacity_bars(infocap.probe(lambda u: u, basis, 64, seed=0))\n"
        "print(matplotlib.get_backend(), matplotlib.is_interactive())"
    )
    where = os.environ | {
        "MPLBACKEND": "module://notebook",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=where, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["module://notebook", "True"]


def profile(degree, n_inputs=2, peak=0.3):
    """A result with capacity in every degree, as it comes from no estimation, so that any degree can be drawn."""
    basis = infocap.product_basis("legendre", n_inputs, degree)
    shape = np.exp(-(((basis.degrees / degree - peak) / 0.25) ** 2))
    capacity = np.where(basis.degrees == 0, 1.0, shape)
    found = probed()
    return replace(
        found,
        capacity=capacity,
        raw=capacity,
        standard_error=np.full(len(basis), 0.02),
        p_value=None,
        unbiased=capacity,
        basis=basis,
        total=float(capacity.sum()),
        maximum=int(capacity.sum()) + 3,
        coordinates=(),
    )


def boxes(figure):
    """The places of all texts that a reader sees, in pixels; the circle with its frame."""
    figure.canvas.draw()
    found = []
    for ax in figure.axes:
        found += [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
        found += ax.get_legend().get_texts() if ax.get_legend() else []
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            found += [one.label1 for one in axis.get_major_ticks() if low <= one.get_loc() <= high]
            found += [one.label2 for one in axis.get_major_ticks() if low <= one.get_loc() <= high]
    seen = [one for one in found if one.get_text() and one.get_visible()]
    assert len(seen) > 12
    return [(one.get_text(), (one.get_bbox_patch() or one).get_window_extent()) for one in seen]


def touching(figure):
    """Pairs of texts that share more than half a pixel."""
    return [
        (first, second)
        for (first, one), (second, other) in combinations(boxes(figure), 2)
        if min(one.x1, other.x1) - max(one.x0, other.x0) > 0.5
        and min(one.y1, other.y1) - max(one.y0, other.y0) > 0.5
    ]


# The inner loop tries some degrees, `make test` all.
DEGREES = [
    pytest.param(degree, marks=() if degree in (5, 8, 15, 22, 30) else pytest.mark.thorough)
    for degree in range(5, 31)
]


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("draw", [infocap.plot.capacity_bars, infocap.plot.capacity_matrix])
def test_no_two_labels_touch_at_any_degree(draw, degree):
    ax = draw(profile(degree, peak=0.9 if degree % 2 else 0.3))  # high bars under the circle too
    assert touching(ax.figure) == []
    assert ax.figure.get_tightbbox().x1 <= ax.figure.get_figwidth() + 0.01


@pytest.mark.thorough
@pytest.mark.parametrize("degree", [5, 14, 30])
def test_no_two_labels_touch_with_more_kinds_other_widths_and_doubt(degree):
    many = profile(5 if degree == 5 else 8, n_inputs=4)
    doubted = replace(
        profile(degree), checks=(Check("Few samples.", unreliable="few samples for 72 readouts"),)
    )
    compared = [profile(degree), profile(degree, peak=0.6)]
    for width in (60, 89, 183):
        with infocap.plot.width(width):
            drawn = [infocap.plot.capacity_bars(many), infocap.plot.capacity_bars(doubted)]
            drawn.append(infocap.plot.capacity_matrix(doubted))
            if width == 183:
                drawn.append(infocap.plot.compare(*compared, names=["weak", "strong"]))
        for ax in drawn:
            assert ax.figure.get_figwidth() == pytest.approx(width / 25.4)
            assert touching(ax.figure) == []


def test_touching_labels_are_found():
    ax = infocap.plot.capacity_bars(profile(8))
    ax.text(2, 0.5, "over this")
    ax.text(2.2, 0.5, "and that")
    assert ("over this", "and that") in touching(ax.figure)


def test_every_degree_has_its_sum_in_letters_that_can_be_printed():
    ax = infocap.plot.capacity_bars(profile(30))
    sums = [text for text in ax.texts if "frac" not in text.get_text()]
    assert len(sums) == 31
    assert min(text.get_fontsize() for text in sums) >= 5


@pytest.mark.parametrize("draw", [infocap.plot.capacity_bars, infocap.plot.capacity_matrix])
def test_saved_figures_are_vectors_with_text_as_text_and_300_dots_per_inch(draw, tmp_path):
    ax = draw(probed())
    pdf, svg, png = (
        infocap.plot.save(ax, tmp_path / f"figure.{suffix}") for suffix in ("pdf", "svg", "png")
    )
    assert b"/FontFile2" in pdf.read_bytes()  # TrueType
    for inside in (b"/Type3", b"/Subtype /Image"):
        assert inside not in pdf.read_bytes()
    text = svg.read_text(encoding="utf-8")
    assert "<image" not in text
    assert ">capacity</text>" in text
    with Image.open(png) as picture:
        assert picture.size[0] == round(89 / 25.4 * 300)
        assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)
    with pytest.raises(ParameterError, match=r"'\.jpg'` is not one of"):
        infocap.plot.save(ax, tmp_path / "figure.jpg")


def test_axes_of_delays_end_where_nothing_is_remembered_any_more():
    basis = infocap.delayed_basis(max_delay={1: 40})
    u = infocap.draw(basis, 2050, seed=1)
    result = infocap.estimate(
        u, infocap.systems.DelayLine(4, noise=1e-3)(u, seed=1), basis, washout=50
    )
    last = result.memory_function()["capacity"].loc[lambda column: column > 0.5].index.max()
    assert last == 3
    assert infocap.plot.memory_function(result).get_xlim() == (-0.5, 1.5 * last + 3.5)
    assert infocap.plot.capacity_by_delay(result).get_xlim() == (-0.6, last + 0.6)


def test_a_matrix_of_other_than_two_inputs_is_refused_in_words():
    for n_inputs in (1, 3):
        basis = infocap.product_basis("legendre", n_inputs, 2)
        with pytest.raises(
            infocap.errors.ParameterError, match=f"2 inputs; this result has {n_inputs}"
        ):
            infocap.plot.capacity_matrix(infocap.probe(np.tanh, basis, 64, seed=1))


def test_a_memory_function_wants_delayed_inputs_and_one_that_exists():
    with pytest.raises(ParameterError, match="not about delayed inputs"):
        infocap.plot.memory_function(probed())
    basis = infocap.delayed_basis(max_delay={1: 4})
    result = infocap.probe(lambda u: u, basis, 256, seed=1)
    with pytest.raises(ParameterError, match="`input=3` is above 1, the number of inputs"):
        infocap.plot.memory_function(result, input=3)
