"""Results side by side: the differences, how surely they are known, and what cannot be compared."""

from dataclasses import replace

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
PAIRS = 60


def run(system, seed, basis=BASIS, **options):
    u = infocap.draw(basis, 512, seed=seed, design="random")
    return infocap.estimate(u, system(u, seed=seed + 10_000), basis, **options)


@pytest.fixture(scope="module")
def pairs():
    """Independent runs of two devices."""
    return [(run(ONE, 2 * seed), run(OTHER, 2 * seed + 1)) for seed in range(PAIRS)]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def fewest(share, tries):
    """So few hits, or fewer, happen once in a thousand times."""
    return binom.ppf(1e-3, tries, share)


@pytest.mark.thorough
def test_intervals_of_the_differences_cover_the_truth(pairs):
    truth = OTHER.exact() - ONE.exact()
    by_degree = np.bincount(BASIS.degrees, truth)
    total, degrees = 0, np.zeros(BASIS.max_degree + 1)
    for pair in pairs:
        comparison = infocap.compare(*pair, names=["one", "other"])
        row = comparison.totals().iloc[1]
        total += row.difference_low <= truth.sum() <= row.difference_high
        table = comparison.by_degree().query("device == 'other'")
        reach = table.difference_high.to_numpy() - table.difference
        degrees += np.abs(table.difference.to_numpy() - by_degree) <= reach.to_numpy() + 1e-9
    assert total >= fewest(0.95, PAIRS)
    assert degrees.min() >= fewest(0.95, PAIRS)


def test_a_device_rarely_differs_from_itself(pairs):
    """At a rate of 5 % all pairs together have a few false alarms, whatever the number of functions."""
    runs = [pair[0] for pair in pairs]
    alarms = sum(
        infocap.compare(a, b).functions().significant.any()
        for a, b in zip(runs[::2], runs[1::2], strict=True)
    )
    assert alarms <= binom.ppf(0.999, len(runs) // 2, 0.05)


def test_functions_that_differ_are_found(pairs):
    truth = OTHER.exact() - ONE.exact()
    table = infocap.compare(*pairs[0]).functions().query("device == 'device 2'").reset_index()
    assert table.significant[np.abs(truth) > 0.3].all()
    assert list(table.name) == BASIS.labels
    assert table.significant[truth == 0].sum() <= 1


def test_the_numbers_are_those_of_the_results(pairs):
    a, b = pairs[0]
    comparison = infocap.compare(a, b, names=["a", "b"])
    first, second = comparison.totals().itertuples()
    assert (first.capacity, second.capacity) == (a.total, b.total)
    assert (first.low, first.high) == pytest.approx(a.total_interval())
    assert np.isnan(first.difference)
    assert second.difference == pytest.approx(b.total - a.total)
    error = np.hypot(a.total_standard_error, b.total_standard_error)
    assert second.difference_standard_error == pytest.approx(error)
    assert second.difference_high - second.difference == pytest.approx(ndtri(0.975) * error)
    functions = comparison.functions().query("device == 'b'")
    assert_allclose(functions.capacity, b.unbiased)
    assert_allclose(functions.difference, b.unbiased - a.unbiased)
    assert comparison.by_degree().groupby("device").capacity.sum()["b"] == pytest.approx(
        b.unbiased.sum()
    )
    of_list = infocap.compare([a, b], names=["a", "b"])
    assert of_list.totals().equals(comparison.totals())


def test_everything_fits_in_one_table(pairs):
    table = infocap.compare(*pairs[0], pairs[1][0]).to_dataframe()
    assert len(table) == 3 * (1 + 6 + len(BASIS))
    assert list(table.quantity.unique()) == ["total", "degree", "function"]


def test_the_summary_says_what_differs(pairs):
    text = repr(infocap.compare(*pairs[0], names=["fibre 5 m", "fibre 40 m"]))
    difference = pairs[0][1].total - pairs[0][0].total
    assert text.startswith(
        "Comparison of 2 results over 21 legendre functions of 2 inputs; ± reaches over the 95 % interval"
    )
    assert f"{difference:+.2f}"[:5] in text
    assert " *\n" in text
    assert (
        "functions differ between fibre 5 m and fibre 40 m (at most 5 % of these by chance)" in text
    )
    assert "check" not in text


def test_three_devices_are_all_compared_with_the_first(pairs):
    text = repr(infocap.compare(*pairs[0], pairs[1][0], names=["a", "b", "c"]))
    assert "minus a" in text
    assert "b - a" in text
    assert "c - a" in text


def test_other_degrees_are_cut_to_what_they_share(pairs):
    larger = run(ONE, 5, infocap.product_basis("legendre", 2, 7))
    with pytest.warns(
        DataWarning, match=r"a has 36 up to degree 7, b has 21 up to degree 5.*the 21 in common"
    ):
        comparison = infocap.compare(larger, pairs[0][1], names=["a", "b"])
    assert [len(one.basis) for one in comparison.results] == [21, 21]
    assert comparison.basis.labels == BASIS.labels
    cut = larger.unbiased[[larger.basis.labels.index(label) for label in BASIS.labels]]
    assert comparison.totals().capacity[0] == pytest.approx(cut.sum())
    assert comparison.results[1] is pairs[0][1]
    assert "only the 21 in common are compared" in repr(comparison)


@pytest.mark.parametrize(("basis", "named"), [
    (infocap.product_basis("hermite", 2, 5), r"hermite \(normal\) on \[-1, 1\]"),
    (infocap.product_basis("legendre", 2, 5, domain=(0, 1)), r"2 inputs, legendre \(uniform\) on \[0, 1\]"),
    (infocap.product_basis("legendre", 3, 3), r"3 inputs, legendre \(uniform\) on \[-1, 1\]"),
])  # fmt: skip
def test_other_inputs_cannot_be_compared(basis, named, pairs):
    other = infocap.probe(lambda u: np.tanh(u), basis, 512, seed=0, method="raw")
    message = rf"a is about 2 inputs, legendre \(uniform\) on \[-1, 1\], b about .*{named}.* estimate both"
    with pytest.raises(DataError, match=message):
        infocap.compare(pairs[0][0], other, names=["a", "b"])


def test_without_error_bars_there_is_a_difference_but_no_interval(pairs):
    bare = run(OTHER, 3, method="threshold-richardson")
    with pytest.warns(DataWarning) as caught:
        comparison = infocap.compare(pairs[0][0], bare)
    said = [str(one.message) for one in caught]
    assert said == list(comparison.checks)
    assert (
        "no error bars for device 2 (threshold-richardson), so no intervals of the differences"
        in said[0]
    )
    assert "different methods (control-variate, threshold-richardson)" in said[1]
    row = comparison.totals().iloc[1]
    assert row.difference == pytest.approx(bare.total - pairs[0][0].total)
    assert np.isnan(row.difference_low)
    assert not comparison.functions().significant.any()
    assert "without error bars nobody can say which functions differ" in repr(comparison)


@pytest.mark.parametrize(("given", "names", "message"), [
    (1, None, "two results or more; got 1"),
    (2, ["a"], "must be 2 different names"),
    (2, ["a", "a"], "must be 2 different names"),
    (2, "ab", "must be 2 different names"),
])  # fmt: skip
def test_plain_mistakes_of_the_call(given, names, message, pairs):
    with pytest.raises(ParameterError, match=message):
        infocap.compare(*pairs[0][:given], names=names)
    with pytest.raises(ParameterError, match=r"'a\.nc' is not a CapacityResult; load_result"):
        infocap.compare("a.nc", pairs[0][0])


def test_bars_of_a_comparison_are_its_degrees(pairs):
    comparison = infocap.compare(*pairs[0], names=["a", "b"])
    ax = infocap.plot.compare(comparison)
    bars = [one for one in ax.containers if hasattr(one, "patches")]
    table = comparison.by_degree()
    for name, drawn in zip("ab", bars, strict=True):
        assert_allclose(
            [bar.get_height() for bar in drawn], np.maximum(table[table.device == name].capacity, 0)
        )
    left, right = (bars[k][0].get_x() + bars[k][0].get_width() / 2 for k in (0, 1))
    assert left == pytest.approx(-right)  # a group stands around its degree
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert (
        labels[0]
        == f"a: {pairs[0][0].total:.3f} ± {1.96 * pairs[0][0].total_standard_error:.3f} of 7"
    )
    figure, given = plt.subplots()
    assert infocap.plot.compare(*pairs[0], names=["a", "b"], ax=given) is given
    assert len(given.containers) == len(ax.containers)
    assert given.figure is figure


def test_growth_draws_the_totals_against_n():
    u = infocap.draw(BASIS, 512, seed=1)
    recording = infocap.Recording(u, ONE(u, seed=2), np.arange(512), repeats=ONE(u, seed=3))
    result = infocap.estimate(recording, basis=BASIS)
    ax = infocap.plot.growth(result)
    known = result.growth
    line = next(one for one in ax.lines if one.get_label() == "total capacity")
    assert tuple(line.get_xdata()) == known.n_samples
    assert_allclose(line.get_ydata(), known.total)
    band = ax.collections[0].get_paths()[0].vertices
    highest = np.max(np.array(known.total) + ndtri(0.975) * np.array(known.standard_error))
    assert band[:, 1].max() == pytest.approx(highest)
    assert ax.get_xscale() == "log"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [
        "95 % interval",
        "total capacity",
        "maximum, 7",
        f"what noise allows, {result.noise_limited_total:.1f}",
    ]
    bare = replace(result, noise_limited_total=None, growth=replace(known, standard_error=None))
    plain = infocap.plot.growth(bare)
    assert not plain.collections
    assert len(plain.lines) == 2


def test_growth_of_a_result_without_it_says_what_to_do(pairs):
    with pytest.raises(
        ParameterError, match=r"no growth with the number of samples.*infocap\.estimate"
    ):
        infocap.plot.growth(pairs[0][0])
