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

BASIS = infocap.product_basis("legendre", 2, 6)


@cache
def probed():
    return infocap.probe(infocap.systems.RandomFeatures(2, 20, noise=0.01), BASIS, 1024, seed=0)


def fraction(ax):
    return [text.get_text() for text in ax.texts if "frac" in text.get_text()]


def test_the_matrix_shows_u1_along_x_and_u2_along_y():
    result = infocap.probe(lambda u: u[:, :1] ** 3, BASIS, 512, seed=0)
    ax = infocap.plot.capacity_matrix(result)
    matrix = ax.collections[0].get_array()  # rows are y
    assert matrix[0, 3] > 0.1
    assert matrix[3, 0] == 0
    total_degree = np.add.outer(np.arange(7), np.arange(7))
    assert np.array_equal(np.ma.getmaskarray(matrix), total_degree > 6)
    assert ax.get_xlabel() == "degree in u₁"
    assert ax.get_ylabel() == "degree in u₂"
    assert ax.collections[0].get_clim() == (0, 1)
    assert ax.get_ylim() == (-0.5, 6.5)  # upwards


@pytest.mark.parametrize("draw", [infocap.plot.capacity_matrix, infocap.plot.capacity_bars])
def test_the_circle_holds_total_over_maximum(draw):
    assert fraction(draw(probed())) == [rf"$\frac{{{probed().total:.1f}}}{{21}}$"]
    nearly_all = replace(probed(), total=20.974)
    assert fraction(draw(nearly_all)) == [r"$\frac{20.97}{21}$"]  # never 21.0 of 21 for less


def test_bars_stack_by_interactions_and_say_their_height():
    basis = infocap.product_basis("legendre", 3, 4)
    result = infocap.probe(infocap.systems.RandomFeatures(3, 30, noise=0.01), basis, 1024, seed=0)
    ax = infocap.plot.capacity_bars(result)
    table = result.by_degree()
    constant, one, two, more = ax.containers[:4]
    # The constant is none of the functions of one variable.
    assert_allclose(heights_of(constant), [1, 0, 0, 0, 0], atol=1e-9)
    assert_allclose(heights_of(one)[1:], table["1"][1:])
    assert_allclose(heights_of(two)[1:], table["2"][1:])
    assert_allclose(heights_of(more)[1:], table[">2"][1:])
    assert_allclose([bar.get_y() for bar in more], table["1"] + table["2"])
    assert len({stack[0].get_facecolor() for stack in (constant, one, two, more)}) == 4

    sums = [text.get_text() for text in ax.texts if "frac" not in text.get_text()]
    assert sums == [f"{value:.2f}" for value in table.sum(axis=1)]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["constant", "one variable", "two variables", "more than two"]


def heights_of(bars):
    return [bar.get_height() for bar in bars]


def test_bars_have_error_bars_when_the_result_has_errors():
    u = infocap.draw(BASIS, 512, seed=0)
    x = infocap.systems.RandomFeatures(2, 5)(u)

    def errors_of_a_tenth(evidence):
        errors = np.full(len(BASIS), 0.1)
        return infocap.estimators.Estimate(evidence.raw, standard_error=errors)

    result = infocap.estimate(u, x, BASIS, method=errors_of_a_tenth)
    ax = infocap.plot.capacity_bars(result)
    estimates = result.by_degree(errors=True)["capacity"]
    errors = 0.1 * np.sqrt(np.arange(1, 8))
    ends = np.array(ax.collections[0].get_segments())[:, :, 1]
    assert_allclose(ends[:, 1], estimates + errors)
    assert_allclose(ends[:, 0], np.maximum(estimates - errors, 0))  # no bar reaches below 0

    without_errors = infocap.estimate(u, x, BASIS, method="threshold-richardson")
    assert not infocap.plot.capacity_bars(without_errors).collections


def test_a_result_of_nothing_but_zeros_can_be_drawn():
    result = infocap.probe(lambda u: u, BASIS, 64, seed=0, method=lambda evidence: 0 * evidence.raw)
    assert infocap.plot.capacity_bars(result).get_legend() is None


def test_the_matrix_of_phases_counts_functions():
    basis = infocap.product_basis("fourier", 2, 2)
    ax = infocap.plot.capacity_matrix(infocap.probe(np.cos, basis, 64, seed=0))
    assert ax.get_xlabel() == "number of function in u₁"


def test_convergence_draws_the_curves_asked_for():
    u = infocap.draw(BASIS, 512, seed=0)
    x = infocap.systems.RandomFeatures(2, 5, noise=0.1)(u, seed=1)
    curve = infocap.convergence(u, x, BASIS)
    ax = infocap.plot.convergence(curve, ["P1(u1)", 4])
    lines = [line for line in ax.lines if len(line.get_xdata()) > 2]
    for line, term in zip(lines, (BASIS.labels.index("P1(u1)"), 4), strict=True):
        assert np.array_equal(line.get_ydata(), curve.raw[:, term])
        assert np.array_equal(line.get_xdata(), curve.n_samples)
    assert ax.get_xscale() == "log"
    assert len(infocap.plot.convergence(curve).get_legend().get_texts()) >= 3
    with pytest.raises(ParameterError, match=r"'P9\(u9\)'"):
        infocap.plot.convergence(curve, ["P9(u9)"])


def test_the_indicator_is_drawn_with_its_minimum():
    factors = infocap.result.Factors(n_repeats=30, n_factors=2, values=(1e-2, 1e-3, 4e-3, 0.0))
    ax = infocap.plot.indicator(replace(probed(), factors=factors))
    curve, _, minimum = ax.lines
    assert list(curve.get_xdata()) == [1, 2, 3, 4]
    assert_allclose(curve.get_ydata(), [1e-2, 1e-3, 4e-3, np.nan])  # zero has no place on this axis
    assert minimum.get_xdata() == [2]
    assert minimum.get_ydata() == [1e-3]
    assert ax.get_yscale() == "log"
    ax.figure.draw_without_rendering()
    assert "10⁻³" in [text.get_text() for text in ax.get_yticklabels()]
    without_minimum = infocap.plot.indicator(replace(factors, n_factors=None))
    assert len(without_minimum.lines) == 1
    assert len(without_minimum.texts) == 0


def test_the_indicator_takes_what_dimension_gave():
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 12))
    x = signal + 0.1 * rng.standard_normal((200, 12))
    indicator = infocap.dimension.indicator(x)
    ax = infocap.plot.indicator(indicator)
    assert_allclose(ax.lines[0].get_ydata(), indicator.values)
    assert ax.lines[2].get_xdata() == [indicator.n_factors]


@pytest.mark.parametrize(
    ("seconds", "label", "last"),
    [
        (100.0, "time (s)", 100.0),
        (7199.0, "time (min)", 7199 / 60),
        (7200.5, "time (h)", 7200.5 / 3600),
    ],
)
def test_drift_is_drawn_in_per_cent_over_a_fitting_clock(seconds, label, last):
    drift = infocap.result.Drift(
        time=(5.0, 5.0 + seconds), clock="s", distance=(0.0, 0.3), size=0.2, noise=0.01
    )
    ax = infocap.plot.drift(replace(probed(), drift=drift))
    curve, noise = ax.lines
    assert_allclose(curve.get_xdata(), [0, last])
    assert_allclose(curve.get_ydata(), [0, 30])
    assert_allclose(noise.get_ydata(), 100 * np.sqrt(2) * 0.01)
    assert ax.get_xlabel() == label
    assert ax.get_ylim()[1] > 30


def draw_growth(standard_error):
    """A curve of three totals; errors are known for all, for some, or for none."""
    growth = SimpleNamespace(
        n_samples=(256, 512, 1024), total=(9.0, 8.0, 7.5), standard_error=standard_error
    )
    ax = infocap.plot.growth(replace(probed(), growth=growth))
    assert list(ax.lines[0].get_ydata()) == [9.0, 8.0, 7.5]
    return ax


def test_growth_has_a_band_where_all_errors_are_known():
    ax = draw_growth((0.3, 0.2, 0.1))
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(9.0 + 1.96 * 0.3, abs=1e-3)


def test_growth_has_a_bar_where_one_error_is_known():
    (bars,) = draw_growth((None, None, 0.1)).collections
    ((low, high),) = bars.get_segments()
    assert_allclose(low, [1024, 7.5 - 1.96 * 0.1], atol=1e-4)
    assert_allclose(high, [1024, 7.5 + 1.96 * 0.1], atol=1e-4)


@pytest.mark.parametrize("unknown", [None, (None, None, None), (np.nan, np.nan, np.nan)])
def test_growth_is_a_line_where_no_errors_are_known(unknown):
    assert not draw_growth(unknown).collections


def test_drift_without_times_counts_measurements():
    drift = infocap.result.Drift(
        time=(0, 1, 2), clock="order", distance=(0.0, 0.1, 0.0), size=0.0, noise=0.1
    )
    ax = infocap.plot.drift(replace(probed(), drift=drift))
    assert ax.get_xlabel() == "number of measurement"
    assert list(ax.lines[0].get_xdata()) == [0, 1, 2]


@pytest.mark.parametrize(("draw", "message"), [
    (infocap.plot.indicator, "no factor analysis.*`noise`.*measure one input many times"),
    (infocap.plot.drift, "no drift.*`reference`.*8 times or more"),
])  # fmt: skip
def test_what_was_not_measured_cannot_be_drawn(draw, message):
    with pytest.raises(ParameterError, match=message):
        draw(probed())


def test_an_analysis_that_was_not_possible_cannot_be_drawn():
    with pytest.raises(ParameterError, match=r"no indicator function: too few"):
        infocap.plot.indicator(infocap.result.Factors(n_repeats=2, problem="too few"))


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_figures_have_the_width_of_a_column_and_every_format(tmp_path, suffix):
    ax = infocap.plot.capacity_bars(probed())
    assert ax.figure.get_figwidth() == pytest.approx(89 / 25.4)
    ax.figure.savefig(tmp_path / f"bars.{suffix}")
    assert (tmp_path / f"bars.{suffix}").stat().st_size > 1000


def test_matrices_can_do_without_their_colour_bars():
    figure, (left, right) = plt.subplots(1, 2)
    infocap.plot.capacity_matrix(probed(), left, colourbar=False)
    assert len(figure.axes) == 2
    infocap.plot.capacity_matrix(probed(), right)
    assert len(figure.axes) == 3


def test_given_axes_are_used_and_returned():
    figure, (left, right) = plt.subplots(1, 2)
    assert infocap.plot.capacity_matrix(probed(), left) is left
    assert infocap.plot.capacity_bars(probed(), ax=right) is right
    assert plt.get_fignums() == [figure.number]
    assert plt.rcParams["font.size"] == 10  # the package's look stays its own


DRAW_AND_TELL_THE_BACKEND = """
import matplotlib, infocap
basis = infocap.product_basis("legendre", 2, 2)
infocap.plot.capacity_bars(infocap.probe(lambda u: u, basis, 64, seed=0))
print(matplotlib.get_backend(), matplotlib.is_interactive())
"""


@pytest.mark.thorough
def test_a_notebook_shows_every_figure_and_not_the_first_alone(tmp_path):
    """Its backend is loaded by the first figure and then switches pictures on; our settings must not undo that."""
    backend = [
        "import matplotlib",
        "from matplotlib.backends.backend_agg import *",
        "matplotlib.interactive(True)",
    ]
    (tmp_path / "notebook.py").write_text("\n".join(backend))
    environment = os.environ | {
        "MPLBACKEND": "module://notebook",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    process = subprocess.run(
        [sys.executable, "-c", DRAW_AND_TELL_THE_BACKEND],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert process.stdout.split() == ["module://notebook", "True"]


def profile(degree, n_inputs=2, peak=0.3):
    """A result with capacity in every degree, as it comes from no estimation, so that any degree can be drawn."""
    basis = infocap.product_basis("legendre", n_inputs, degree)
    shape = np.exp(-(((basis.degrees / degree - peak) / 0.25) ** 2))
    capacity = np.where(basis.degrees == 0, 1.0, shape)
    return replace(
        probed(),
        capacity=capacity,
        raw=capacity,
        standard_error=np.full(len(basis), 0.02),
        p_value=None,
        unbiased=capacity,
        basis=basis,
        total=float(capacity.sum()),
        maximum=int(capacity.sum()) + 3,
        coordinates=(),
        without_groups=None,
    )


def texts_of(ax):
    """All texts of the axes, of their ticks inside the limits and of their legend."""
    texts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
    if ax.get_legend():
        texts += ax.get_legend().get_texts()
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if low <= tick.get_loc() <= high:
                texts += [tick.label1, tick.label2]
    return texts


def visible_texts(figure):
    """Each text that a reader sees, and its place in pixels; that of the circle with its frame."""
    figure.canvas.draw()
    words_and_places = []
    for ax in figure.axes:
        for text in texts_of(ax):
            if text.get_text() and text.get_visible():
                shape = text.get_bbox_patch() or text
                words_and_places.append((text.get_text(), shape.get_window_extent()))
    assert len(words_and_places) > 12
    return words_and_places


def overlap(low, high, other_low, other_high):
    """How many pixels two intervals share; negative where they are apart."""
    return min(high, other_high) - max(low, other_low)


def touching(figure):
    """Pairs of texts that share more than half a pixel in both directions."""
    pairs = []
    for (words, place), (other_words, other_place) in combinations(visible_texts(figure), 2):
        along_x = overlap(place.x0, place.x1, other_place.x0, other_place.x1)
        along_y = overlap(place.y0, place.y1, other_place.y0, other_place.y1)
        if min(along_x, along_y) > 0.5:
            pairs.append((words, other_words))
    return pairs


# The inner loop tries some degrees, `make test` all.
DEGREES = [
    pytest.param(degree, marks=() if degree in (5, 8, 15, 22, 30) else pytest.mark.thorough)
    for degree in range(5, 31)
]


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("draw", [infocap.plot.capacity_bars, infocap.plot.capacity_matrix])
def test_no_two_labels_touch_at_any_degree(draw, degree):
    peak = 0.9 if degree % 2 else 0.3  # high bars under the circle, too
    ax = draw(profile(degree, peak=peak))
    assert touching(ax.figure) == []
    assert ax.figure.get_tightbbox().x1 <= ax.figure.get_figwidth() + 0.01


@pytest.mark.thorough
@pytest.mark.parametrize("degree", [5, 14, 30])
def test_no_two_labels_touch_with_more_kinds_other_widths_and_doubt(degree):
    many_kinds = profile(min(degree, 8), n_inputs=4)
    check = Check("Few samples.", unreliable="few samples for 72 readouts")
    doubtful = replace(profile(degree), checks=(check,))
    compared = [profile(degree), profile(degree, peak=0.6)]
    for width in (60, 89, 183):
        with infocap.plot.width(width):
            pictures = [
                infocap.plot.capacity_bars(many_kinds),
                infocap.plot.capacity_bars(doubtful),
                infocap.plot.capacity_matrix(doubtful),
            ]
            if width == 183:
                pictures.append(infocap.plot.compare(*compared, names=["weak", "strong"]))
        for ax in pictures:
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
    pdf = infocap.plot.save(ax, tmp_path / "figure.pdf").read_bytes()
    assert b"/FontFile2" in pdf  # TrueType
    assert b"/Type3" not in pdf
    assert b"/Subtype /Image" not in pdf
    svg = infocap.plot.save(ax, tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "<image" not in svg
    assert ">capacity</text>" in svg
    with Image.open(infocap.plot.save(ax, tmp_path / "figure.png")) as picture:
        assert picture.size[0] == round(89 / 25.4 * 300)
        assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)
    with pytest.raises(ParameterError, match=r"'\.jpg'` is not one of"):
        infocap.plot.save(ax, tmp_path / "figure.jpg")


def test_axes_of_delays_end_where_nothing_is_remembered_any_more():
    basis = infocap.delayed_basis(max_delay={1: 40})
    u = infocap.draw(basis, 2050, seed=1)
    x = infocap.systems.DelayLine(4, noise=1e-3)(u, seed=1)
    result = infocap.estimate(u, x, basis, washout=50)
    memory = result.memory_function()
    last = memory.index[memory.capacity > 0.5].max()
    assert last == 3
    assert infocap.plot.memory_function(result).get_xlim() == (-0.5, 1.5 * last + 3.5)
    assert infocap.plot.capacity_by_delay(result).get_xlim() == (-0.6, last + 0.6)


@pytest.mark.parametrize("n_inputs", [1, 3])
def test_a_matrix_of_other_than_two_inputs_is_refused_in_words(n_inputs):
    basis = infocap.product_basis("legendre", n_inputs, 2)
    result = infocap.probe(np.tanh, basis, 64, seed=1)
    with pytest.raises(ParameterError, match=f"2 inputs; this result has {n_inputs}"):
        infocap.plot.capacity_matrix(result)


def test_a_memory_function_wants_delayed_inputs_and_one_that_exists():
    with pytest.raises(ParameterError, match="not about delayed inputs"):
        infocap.plot.memory_function(probed())
    basis = infocap.delayed_basis(max_delay={1: 4})
    result = infocap.probe(lambda u: u, basis, 256, seed=1)
    with pytest.raises(ParameterError, match="`input=3` is above 1, the number of inputs"):
        infocap.plot.memory_function(result, input=3)


def test_a_finding_is_drawn_from_its_numbers():
    u = infocap.draw(BASIS, 1024, seed=1, design="random")
    x = infocap.systems.RandomFeatures(2, 12, noise=0.01)(u, seed=1)
    (check,) = infocap.diagnose(u, x + 0.3 * np.roll(x, 2, axis=0), BASIS).checks
    ax = infocap.plot.finding(check)
    series = {one["role"]: one for one in check.found["picture"]["series"]}
    heights = {round(bar.get_center()[0]): bar.get_height() for bar in ax.patches}
    assert heights[-2] == series["found"]["y"][0] == max(heights.values())
    assert ax.get_ylabel() == "capacity"
    with pytest.raises(ParameterError, match="has no picture; only warnings about the data"):
        infocap.plot.finding(Check("few samples."))
