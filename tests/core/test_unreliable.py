"""A total that a warning concerns is "about 5.3 (unreliable: ...)", and never has an error bar."""

import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest

import infocap
from infocap.errors import Check, DataWarning
from support import (
    ABOUT,
    NINE_FEATURES,
    REASON,
    SMALL_BASIS,
    doubt_high_ranks,
    reliable_result,
    unreliable_result,
)

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")


def in_one_line(text):
    """Text of a picture without its line breaks."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (81.27, 4.0, "81"),
        (81.27, 0.001, "81"),
        (81.27, None, "81"),
        (81.27, 30.0, "80"),
        (123.4, 1.0, "120"),
        (9.53, 0.3, "9.5"),
        (9.53, 1.2, "10"),
        (9.97, 0.01, "10"),
        (3.2, 20.0, "3"),
        (0.0, 0.1, "0"),
        (0.0314, 1e-5, "0.031"),
        (-5.24, 0.1, "-5.2"),
        (5.0, float("nan"), "5.0"),
    ],
)
def test_an_unreliable_total_has_two_digits_at_most_and_none_below_its_error(value, error, text):
    result = replace(unreliable_result(REASON), total=value, total_standard_error=error, rank=200)
    assert result.qualified_total == f"about {text} (unreliable: {REASON})"


def test_a_total_whose_error_exceeds_what_is_possible_is_not_shown():
    result = replace(unreliable_result(REASON), total=2.0, total_standard_error=3e11, rank=10)
    assert result.qualified_total == "cannot be told"
    (line,) = repr(result).splitlines()
    assert line.startswith("CapacityResult: no capacities. The total cannot be told: ")
    assert line.endswith(str(result.warnings[0])[1:])


def test_a_result_without_warnings_is_reliable():
    assert reliable_result().unreliable == ""
    assert reliable_result().qualified_total == ""


def test_intervals_of_an_unreliable_result_warn_in_the_words_of_its_total():
    words = f"as the total is unreliable: {REASON}"
    with pytest.warns(DataWarning, match=words):
        unreliable_result(REASON).interval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reliable_result().interval()


def test_every_reason_is_given_once():
    result = unreliable_result("few samples", "readouts shifted", "few samples")
    assert result.unreliable == "few samples; readouts shifted"


def test_notes_and_warnings_of_something_else_leave_the_total_reliable():
    warning = Check("3 channels are saturated.")
    note = Check("put right.", "note", unreliable="never")
    assert replace(reliable_result(), checks=(warning, note)).unreliable == ""


def test_an_unreliable_total_keeps_its_interval():
    expected = reliable_result().total_interval()
    assert unreliable_result(REASON).total_interval() == expected


def test_the_summary_qualifies_the_total():
    first, _, third, *_ = repr(unreliable_result(REASON)).splitlines()
    assert first == f"CapacityResult: total {ABOUT} of at most 10 (9 readouts and the constant)"
    assert "found about 6.5 of about" in third


def test_the_summary_of_a_reliable_total_has_an_error_bar():
    assert "total 6.460 ± 0.050 of" in repr(reliable_result())


@pytest.mark.parametrize("suffix", [".nc", ".csv"])
def test_files_keep_why_a_total_is_unreliable(tmp_path, suffix):
    result = unreliable_result("first reason", "second reason")
    loaded = infocap.load_result(result.save(tmp_path / f"result{suffix}"))
    assert loaded.unreliable == "first reason; second reason"
    assert repr(loaded) == repr(result)


@pytest.mark.parametrize("draw", [infocap.plot.capacity_matrix, infocap.plot.capacity_bars])
def test_pictures_of_capacities_say_why_the_total_is_unreliable(draw):
    ax = draw(unreliable_result("cost of $2 and $3"))
    label = next(text for text in ax.texts if "frac" in text.get_text())
    assert "≈6.5}" in label.get_text()
    assert label.get_bbox_patch().get_linestyle() == "--"
    assert "unreliable: cost of \\$2" in in_one_line(ax.get_title())
    ax.figure.canvas.draw()  # the dollars are no mathematics
    assert draw(reliable_result()).get_title() == ""


def test_growth_of_a_reliable_total_has_closed_symbols_and_an_interval():
    ax = infocap.plot.growth(reliable_result())
    assert len(ax.collections) == 1
    assert ax.lines[0].get_markerfacecolor() != "white"


def test_growth_of_an_unreliable_total_has_open_symbols_and_no_interval():
    ax = infocap.plot.growth(unreliable_result(REASON))
    assert len(ax.collections) == 0
    assert ax.lines[0].get_markerfacecolor() == "white"
    legend = ax.get_legend()
    assert ABOUT in in_one_line(legend.get_title().get_text())
    labels = [text.get_text() for text in legend.get_texts()]
    assert "total capacity, unreliable" in labels
    assert "95 % interval" not in labels


def test_a_comparison_qualifies_totals_and_their_differences():
    results = (reliable_result(), unreliable_result(REASON), reliable_result())
    comparison = infocap.compare(*results, names=["a", "b", "c"])
    lines = repr(comparison).splitlines()
    (line_of_b,) = [line for line in lines if line.startswith("  b ")]
    (line_of_c,) = [line for line in lines if line.startswith("  c ")]
    assert ABOUT in line_of_b
    assert line_of_b.split()[-2:] == ["about", "0"]
    assert "±" not in line_of_b
    assert line_of_c.count("±") == 2
    assert any("the total of b is unreliable" in check for check in comparison.checks)

    legend = infocap.plot.compare(comparison).get_legend()
    labels = [in_one_line(text.get_text()) for text in legend.get_texts()]
    assert " ± " in labels[0]
    assert labels[1] == f"b: {ABOUT} of 10"


def test_a_sweep_says_which_totals_are_unreliable(monkeypatch):
    monkeypatch.setitem(infocap.diagnostics.CHECKS, "doubt", doubt_high_ranks)
    make_device = functools.partial(infocap.systems.RandomFeatures, 2, gain=3.0, noise=0.5)
    values = {"n_readouts": [3, 6]}
    sweep = infocap.sweep(make_device, values, SMALL_BASIS, 1024, seed=1, progress=False)
    small, large = repr(sweep).splitlines()[-2:]
    assert " ± " in small
    assert large.startswith(f"  n_readouts=6: {sweep.results[1].qualified_total} of 7")
    assert sweep.to_dataframe().unreliable.tolist() == ["", REASON]
    assert sweep.to_xarray().unreliable.values.tolist() == ["", REASON]


N_SAMPLES = 1024


def random_inputs(n=N_SAMPLES):
    return np.random.default_rng(0).uniform(-1, 1, (n, 2))


def with_inputs_of_another_interval():
    u = random_inputs()
    return (u + 1) / 2, NINE_FEATURES(u, seed=1)


def with_readouts_one_row_late():
    u = random_inputs()
    return u, np.roll(NINE_FEATURES(u, seed=1), 1, axis=0)


def with_drift():
    u = random_inputs()
    return u, NINE_FEATURES(u, seed=1) + np.linspace(0, 3, N_SAMPLES)[:, None]


def of_rows(n):
    u = random_inputs()
    return u[:n], NINE_FEATURES(u, seed=1)[:n]


def with_clipped_readouts():
    u = random_inputs()
    return u, np.minimum(NINE_FEATURES(u, seed=1), 0.5)


def with_a_dead_and_a_dependent_channel():
    u = random_inputs()
    x = NINE_FEATURES(u, seed=1)
    return u, np.column_stack([x, x[:, 0], 0 * x[:, 0]])


WIDE_BASIS = infocap.product_basis("legendre", 2, 9)


@pytest.mark.parametrize(
    ("make_data", "method", "reason"),
    [
        (
            with_inputs_of_another_interval,
            "threshold-richardson",
            "inputs not of the declared distribution",
        ),
        (
            with_readouts_one_row_late,
            "threshold-richardson",
            "readouts shifted against the inputs",
        ),
        (with_drift, "threshold-richardson", "a response that changes"),
        (lambda: of_rows(24), "threshold-richardson", "few samples for 10 readouts"),
        (lambda: of_rows(64), "raw", "more than the 10 that are possible"),
    ],
    ids=["inputs", "shifted", "drifting", "few samples", "above the rank"],
)
def test_checks_that_concern_the_total_say_why(make_data, method, reason):
    result = infocap.estimate(*make_data(), WIDE_BASIS, method=method)
    assert reason in result.unreliable


@pytest.mark.parametrize("seed", range(3))
def test_totals_of_sequences_with_exponential_inputs_are_unreliable_with_few_samples(seed):
    """Their tails are not sampled, whatever the readouts show: error bars were too short in 20 %."""
    basis = infocap.delayed_basis("laguerre", max_delay={1: 6, 2: 4, 3: 3})
    rng = np.random.default_rng(seed)
    u = rng.exponential(size=620)
    x = np.array([np.exp(-0.5 * u[:-1]), u[1:] * np.exp(-u[:-1])]).T
    x = np.vstack([x[:1], x])
    result = infocap.estimate(u, x + 0.02 * rng.standard_normal(x.shape), basis, washout=20)
    assert "functions with large fourth moments" in result.unreliable


@pytest.mark.parametrize("make_data", [with_clipped_readouts, with_a_dead_and_a_dependent_channel])
def test_a_device_has_the_capacities_that_its_readouts_show(make_data):
    result = infocap.estimate(*make_data(), WIDE_BASIS, method="threshold-richardson")
    assert result.unreliable == ""
    assert result.checks


def test_repeats_that_contradict_the_total_make_it_unreliable():
    u = infocap.draw(SMALL_BASIS, 1024, seed=1)
    noisy_device = infocap.systems.RandomFeatures(2, 9, noise=1.0, seed=5)
    repeats = noisy_device(u, seed=2)
    result = infocap.estimate(u, NINE_FEATURES(u, seed=1), SMALL_BASIS, repeats=repeats)
    assert "more than repeats allow" in result.unreliable
