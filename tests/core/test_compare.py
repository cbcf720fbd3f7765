"""Results side by side: the differences, how surely they are known, and what cannot be compared."""

import re
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri
from scipy.stats import binom

import infocap
from infocap.errors import DataError, DataWarning, ParameterError

BASIS = infocap.product_basis("legendre", 2, 5)
ONE = infocap.theory.random_mixture(BASIS, n_active=10, n_readouts=6, noise=0.3, seed=1)
OTHER = infocap.theory.random_mixture(BASIS, n_active=14, n_readouts=6, noise=0.6, seed=2)
N_PAIRS = 60


def run(system, seed, basis=BASIS, **options):
    """The result for 512 random inputs."""
    u = infocap.draw(basis, 512, seed=seed, design="random")
    return infocap.estimate(u, system(u, seed=seed + 10_000), basis, **options)


@cache
def pair(number):
    """Independent runs of two devices."""
    return run(ONE, 2 * number), run(OTHER, 2 * number + 1)


def fewest(share, tries):
    """So few hits, or fewer, happen once in a thousand times."""
    return binom.ppf(1e-3, tries, share)


@pytest.mark.thorough
def test_intervals_of_the_differences_cover_the_truth():
    exact = OTHER.exact() - ONE.exact()
    exact_by_degree = np.bincount(BASIS.degrees, exact)
    n_totals_inside = 0
    n_degrees_inside = np.zeros(BASIS.max_degree + 1)
    for number in range(N_PAIRS):
        comparison = infocap.compare(*pair(number), names=["one", "other"])
        of_total = comparison.totals().iloc[1]
        n_totals_inside += of_total.difference_low <= exact.sum() <= of_total.difference_high
        of_degrees = comparison.by_degree().query("device == 'other'")
        error = np.abs(of_degrees.difference.to_numpy() - exact_by_degree)
        reach = (of_degrees.difference_high - of_degrees.difference).to_numpy()
        n_degrees_inside += error <= reach + 1e-9
    assert n_totals_inside >= fewest(0.95, N_PAIRS)
    assert n_degrees_inside.min() >= fewest(0.95, N_PAIRS)


@pytest.mark.thorough
def test_a_device_rarely_differs_from_itself():
    """At a rate of 5 % all pairs together have a few false alarms, whatever the number of functions."""
    n_alarms = 0
    for number in range(0, N_PAIRS, 2):
        first, _ = pair(number)
        second, _ = pair(number + 1)
        n_alarms += infocap.compare(first, second).functions().significant.any()
    assert n_alarms <= binom.ppf(0.999, N_PAIRS // 2, 0.05)


def bars_of_differences(comparison):
    """Standard errors of the differences of total and degrees, of the second device."""
    tables = (comparison.totals(), comparison.by_degree())
    errors = [table[table.device == "device 2"].difference_standard_error for table in tables]
    return np.concatenate(errors)


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_at_shared_inputs_what_both_devices_share_leaves_the_error_of_their_difference():
    """Devices without noise that do more than the basis: both err in the same way."""
    basis = infocap.product_basis("legendre", 2, 4)
    one = infocap.systems.RandomFeatures(2, 8, gain=1.5, seed=1)
    weights = np.eye(8) + 0.05 * np.random.default_rng(2).standard_normal((8, 8))

    def other(u):
        return np.sin(one(u) @ weights)

    differences = []
    bars = []
    longer_bars = []
    for seed in range(24):
        u = infocap.draw(basis, 256, design="random", seed=seed)
        first, second = (infocap.estimate(u, device(u), basis) for device in (one, other))
        differences.append(second.total - first.total)
        bars.append(bars_of_differences(infocap.compare(first, second)))
        unknown = replace(second, inputs_fingerprint=None)
        longer_bars.append(bars_of_differences(infocap.compare(first, unknown)))
    bars = np.array(bars)
    shortening = bars.mean(axis=0) / np.maximum(np.mean(longer_bars, axis=0), 1e-12)
    assert shortening[0] < 0.8  # the total
    # The standard deviation of 24 differences is known to 15 %, of which three are allowed for.
    assert np.std(differences) < 1.45 * bars[:, 0].mean()


def test_at_other_inputs_squares_of_errors_add():
    first, second = pair(0)
    assert first.inputs_fingerprint != second.inputs_fingerprint
    errors = [first.total_standard_error, second.total_standard_error]
    row = infocap.compare(first, second).totals().iloc[1]
    assert row.difference_standard_error == pytest.approx(np.hypot(*errors))


def test_functions_that_differ_are_found():
    exact = OTHER.exact() - ONE.exact()
    functions = infocap.compare(*pair(0)).functions()
    table = functions.query("device == 'device 2'").reset_index()
    assert table.significant[np.abs(exact) > 0.3].all()
    assert list(table.name) == BASIS.labels
    assert table.significant[exact == 0].sum() <= 1


def test_the_numbers_are_those_of_the_results():
    a, b = pair(0)
    comparison = infocap.compare(a, b, names=["a", "b"])
    first, second = comparison.totals().itertuples()
    assert first.capacity == a.total
    assert second.capacity == b.total
    assert (first.low, first.high) == pytest.approx(a.total_interval())
    assert np.isnan(first.difference)
    assert second.difference == pytest.approx(b.total - a.total)
    error = np.hypot(a.total_standard_error, b.total_standard_error)
    assert second.difference_standard_error == pytest.approx(error)
    assert second.difference_high - second.difference == pytest.approx(ndtri(0.975) * error)

    functions = comparison.functions().query("device == 'b'")
    assert_allclose(functions.capacity, b.unbiased)
    assert_allclose(functions.difference, b.unbiased - a.unbiased)
    sums_of_degrees = comparison.by_degree().groupby("device").capacity.sum()
    assert sums_of_degrees["b"] == pytest.approx(b.unbiased.sum())


def test_results_may_come_in_a_list():
    a, b = pair(0)
    of_list = infocap.compare([a, b], names=["a", "b"])
    assert of_list.totals().equals(infocap.compare(a, b, names=["a", "b"]).totals())


def three_results():
    a, b = pair(0)
    c, _ = pair(1)
    return a, b, c


def test_everything_fits_in_one_table():
    table = infocap.compare(*three_results()).to_dataframe()
    assert len(table) == 3 * (1 + 6 + len(BASIS))
    assert list(table.quantity.unique()) == ["total", "degree", "function"]


def test_the_summary_says_what_differs():
    a, b = pair(0)
    text = repr(infocap.compare(a, b, names=["fibre 5 m", "fibre 40 m"]))
    assert text.startswith(
        "Comparison of 2 results over 21 legendre functions of 2 inputs; "
        "± is one standard error, * a difference whose 95 % interval leaves out 0"
    )
    assert f"{b.total - a.total:+.2f}"[:5] in text
    assert " *\n" in text
    assert (
        "functions differ between fibre 5 m and fibre 40 m (at most 5 % of these by chance)" in text
    )
    assert "check" not in text


def test_three_devices_are_all_compared_with_the_first():
    text = repr(infocap.compare(*three_results(), names=["a", "b", "c"]))
    assert "minus a" in text
    assert "b - a" in text
    assert "c - a" in text


def test_totals_stay_totals_where_the_functions_differ():
    larger = run(ONE, 5, infocap.product_basis("legendre", 2, 7))
    _, smaller = pair(0)
    message = r"b has 21 up to degree 5, a has 36 up to degree 7; 21 in common"
    with pytest.warns(DataWarning, match=message):
        comparison = infocap.compare(smaller, larger, names=["b", "a"])
    assert comparison.results == (smaller, larger)
    assert sorted(comparison.basis.labels) == sorted(larger.basis.labels)
    assert comparison.totals().capacity.tolist() == [smaller.total, larger.total]
    errors = [smaller.total_standard_error, larger.total_standard_error]
    assert comparison.totals().standard_error.tolist() == errors
    of_b = comparison.by_degree().query("device == 'b'").capacity.to_numpy()
    assert np.isfinite(of_b[:6]).all()
    assert np.isnan(of_b[6:]).all()
    functions = comparison.functions()
    n_unasked = np.isnan(functions.query("device == 'b'").capacity).sum()
    assert n_unasked == 36 - 21
    assert not functions[np.isnan(functions.difference)].significant.any()
    assert "not asked" in repr(comparison)


class Explored(NamedTuple):
    """Three reservoirs whose functions were searched, not given."""

    results: list
    comparison: Any


@cache
def explored_reservoirs():
    u = np.random.default_rng(3).uniform(-1, 1, 2000)
    results = []
    for radius in (0.5, 0.8, 0.9):
        network = infocap.systems.EchoState(20, radius=radius, input_scale=0.4, noise=0.01, seed=1)
        results.append(infocap.explore(u, network(u, seed=1), washout=200, max_degree=3).result)
    return Explored(results, infocap.compare(results))


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_reservoirs_that_were_explored_keep_their_totals_and_their_ranking():
    explored = explored_reservoirs()
    totals = [result.total for result in explored.results]
    assert explored.comparison.totals().capacity.tolist() == totals
    n_in_common = sum(
        all(label in result.basis.labels for result in explored.results)
        for label in explored.comparison.basis.labels
    )
    assert n_in_common < len(explored.comparison.basis)
    ranking = np.argsort(totals)
    sums_in_common = []
    for result in explored.results:
        common = [
            all(label in other.basis.labels for other in explored.results)
            for label in result.basis.labels
        ]
        sums_in_common.append(result.unbiased[np.array(common)].sum())
    # What they have in common says little: the sums are far below the totals.
    assert sums_in_common[ranking[-1]] < 0.9 * totals[ranking[-1]]
    text = repr(explored.comparison)
    places = [text.index(f"device {number + 1} ") for number in range(3)]
    for total, place in zip(totals, places, strict=True):
        # One is unreliable, and has two digits.
        assert f"{total:.1f}" in text[place : text.index("\n", place)]


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_what_a_search_tested_and_did_not_find_is_zero_with_an_upper_bound():
    results, comparison = explored_reservoirs()
    functions = comparison.functions()
    first = functions.query("device == 'device 1'").set_index("name")
    longest = results[2].basis.labels[np.argmax(results[2].basis.largest_delays)]
    assert longest not in results[0].basis.labels
    row = first.loc[longest]
    assert (row.capacity, row.low) == (0.0, 0.0)
    assert not row.found
    bounds = results[0].metadata["explored"]["upper_bounds"]
    assert row.high == bounds[1]
    assert 0 < row.high < 0.1
    assert np.isnan(row.standard_error)
    of_third = functions.query("device == 'device 3'").set_index("name").loc[longest]
    assert np.isfinite(of_third.difference_standard_error)


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_upper_bounds_of_a_search_survive_the_file(tmp_path):
    results, comparison = explored_reservoirs()
    again = [
        infocap.load_result(result.save(tmp_path / f"{number}.nc"))
        for number, result in enumerate(results)
    ]
    assert infocap.compare(again).functions().equals(comparison.functions())


def test_values_of_a_column_have_the_same_number_of_digits():
    text = repr(infocap.compare(*three_results()))
    lines = text[text.index("degree") :].splitlines()
    (in_table,) = {len(digits) for digits in re.findall(r"\.(\d+)", "".join(lines[1:7]))}
    assert in_table >= 3


@pytest.mark.parametrize(("basis", "named"), [
    (infocap.product_basis("hermite", 2, 5), r"hermite \(normal\) on \[-1, 1\]"),
    (infocap.product_basis("legendre", 2, 5, domain=(0, 1)), r"2 inputs, legendre \(uniform\) on \[0, 1\]"),
    (infocap.product_basis("legendre", 3, 3), r"3 inputs, legendre \(uniform\) on \[-1, 1\]"),
])  # fmt: skip
def test_other_inputs_cannot_be_compared(basis, named):
    result, _ = pair(0)
    other = infocap.probe(lambda u: np.tanh(u), basis, 512, seed=0, method="raw")
    message = rf"a is about 2 inputs, legendre \(uniform\) on \[-1, 1\], b about .*{named}.* estimate both"
    with pytest.raises(DataError, match=message):
        infocap.compare(result, other, names=["a", "b"])


def test_without_error_bars_there_is_a_difference_but_no_interval():
    with_errors, _ = pair(0)
    without_errors = run(OTHER, 3, method="threshold-richardson")
    with pytest.warns(DataWarning) as warned:
        comparison = infocap.compare(with_errors, without_errors)
    messages = [str(warning.message) for warning in warned]
    assert messages == list(comparison.checks)
    words = "no error bars for device 2 (threshold-richardson), so no intervals of the differences"
    assert words in messages[0]
    assert "different methods (control-variate, threshold-richardson)" in messages[1]
    row = comparison.totals().iloc[1]
    assert row.difference == pytest.approx(without_errors.total - with_errors.total)
    assert np.isnan(row.difference_low)
    assert not comparison.functions().significant.any()
    assert "without error bars it is not known which functions differ" in repr(comparison)


@pytest.mark.parametrize(
    ("n_results", "names", "message"),
    [
        (1, None, "two results or more; got 1"),
        (2, ["a"], "must be 2 different names"),
        (2, ["a", "a"], "must be 2 different names"),
        (2, "ab", "must be a list of texts"),
    ],
)
def test_wrong_numbers_of_results_and_names_are_refused(n_results, names, message):
    with pytest.raises(ParameterError, match=message):
        infocap.compare(*pair(0)[:n_results], names=names)


def test_a_file_is_no_result():
    result, _ = pair(0)
    with pytest.raises(
        ParameterError, match=r"'a\.nc'` must be a CapacityResult from .*load_result"
    ):
        infocap.compare("a.nc", result)


def test_bars_of_a_comparison_are_its_degrees():
    a, b = pair(0)
    comparison = infocap.compare(a, b, names=["a", "b"])
    ax = infocap.plot.compare(comparison)
    bars_of_a, bars_of_b = (group for group in ax.containers if hasattr(group, "patches"))
    table = comparison.by_degree()
    for name, bars in (("a", bars_of_a), ("b", bars_of_b)):
        heights = [bar.get_height() for bar in bars]
        assert_allclose(heights, np.maximum(table[table.device == name].capacity, 0))
    first_of_a = bars_of_a[0]
    first_of_b = bars_of_b[0]
    centre_of_a = first_of_a.get_x() + first_of_a.get_width() / 2
    centre_of_b = first_of_b.get_x() + first_of_b.get_width() / 2
    assert centre_of_a == pytest.approx(-centre_of_b)  # a group stands around its degree
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0] == f"a: {a.total:.3f} ± {a.total_standard_error:.3f} of 7"


def test_results_are_drawn_as_their_comparison_is_and_into_given_axes():
    comparison = infocap.compare(*pair(0), names=["a", "b"])
    n_containers = len(infocap.plot.compare(comparison).containers)
    figure, ax = plt.subplots()
    assert infocap.plot.compare(*pair(0), names=["a", "b"], ax=ax) is ax
    assert len(ax.containers) == n_containers
    assert ax.figure is figure


def test_growth_draws_the_totals_against_n():
    u = infocap.draw(BASIS, 512, seed=1)
    recording = infocap.Recording(u, ONE(u, seed=2), np.arange(512), repeats=ONE(u, seed=3))
    result = infocap.estimate(recording, basis=BASIS)
    ax = infocap.plot.growth(result)
    growth = result.growth
    line = next(line for line in ax.lines if line.get_label() == "total capacity")
    assert tuple(line.get_xdata()) == growth.n_samples
    assert_allclose(line.get_ydata(), growth.total)
    band = ax.collections[0].get_paths()[0].vertices
    upper_ends = np.array(growth.total) + ndtri(0.975) * np.array(growth.standard_error)
    assert band[:, 1].max() == pytest.approx(upper_ends.max())
    assert ax.get_xscale() == "log"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [
        "95 % interval",
        "total capacity",
        "maximum, 7",
        f"what noise allows, {result.noise_limited_total:.1f}",
    ]


def test_growth_without_errors_and_repeats_is_two_lines():
    u = infocap.draw(BASIS, 512, seed=1)
    recording = infocap.Recording(u, ONE(u, seed=2), np.arange(512))
    result = infocap.estimate(recording, basis=BASIS)
    without_errors = replace(result, growth=replace(result.growth, standard_error=None))
    ax = infocap.plot.growth(without_errors)
    assert not ax.collections
    assert len(ax.lines) == 2


def test_growth_of_a_result_without_it_says_what_to_do():
    result, _ = pair(0)
    message = r"no growth with the number of samples.*infocap\.estimate"
    with pytest.raises(ParameterError, match=message):
        infocap.plot.growth(result)
