"""For a paper: tables with errors, LaTeX, sums by input, citations, fonts and colours."""

import re
import subprocess
import sys
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pytest

import infocap
from infocap.errors import DataError, ParameterError

# Small sets of data, of which most checks have something to say.
pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")


@cache
def of_three_inputs():
    basis = infocap.product_basis(
        infocap.inputs("Voltage_A [V]:0:5", "Power [mW]:0:20", "T [K]:280:300"), max_degree=3
    )
    low = np.array([0, 0, 280])
    width = np.array([5, 20, 20])
    features = infocap.systems.RandomFeatures(3, 14, noise=0.02, seed=2)

    def device(u, seed=None):
        return features(2 * (u - low) / width - 1, seed=seed)

    return infocap.probe(device, basis, 1024, seed=1)


@cache
def of_a_sequence():
    basis = infocap.delayed_basis(max_delay={1: 8, 2: 4})
    network = infocap.systems.EchoState(12, bias=0.3, noise=0.02, seed=1)
    u = infocap.draw(basis, 3000, seed=1)
    return infocap.estimate(u, network(u, seed=1), basis, washout=100)


def test_the_table_has_every_function_above_zero_the_largest_first():
    result = of_three_inputs()
    table = result.table(errors=True)
    assert len(table) == np.count_nonzero(result.capacity > 0)
    assert table.capacity.is_monotonic_decreasing
    place = result.basis.labels.index(table.index[3])
    assert table.capacity.iloc[3] == result.capacity[place]
    assert table.standard_error.iloc[3] == result.standard_error[place]
    assert list(result.table().columns) == ["degree", "capacity"]


def test_latex_needs_no_further_package_and_escapes_names():
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "import infocap\n"
        "b = infocap.product_basis(infocap.inputs('Voltage_A [V]:0:5'), max_degree=2)\n"
        "r = infocap.probe(lambda u: u, b, 64, seed=1)\n"
        "print(r.to_latex('function'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert r"$P_{1}(\text{Voltage\_A})$" in done.stdout, done.stderr
    by_degree = of_three_inputs().to_latex()
    assert by_degree.count(r"\begin{tabular}") == by_degree.count(r"\end{tabular}") == 1
    assert all(line.endswith(r"\\") for line in by_degree.splitlines() if "&" in line)
    assert r"\pm" in by_degree
    assert r"\pm" not in of_three_inputs().to_latex(errors=False)
    with pytest.raises(ParameterError, match="'degree', 'function'"):
        of_three_inputs().to_latex("input")


def test_sums_by_input_count_each_function_that_contains_it():
    result = of_three_inputs()
    table = result.by_input()
    assert list(table.index) == ["Voltage_A", "Power", "T"]
    for column, name in enumerate(table.index):
        contains = result.basis.indices[:, column] > 0
        alone = contains & (result.basis.interactions == 1)
        assert table.capacity[name] == pytest.approx(result.unbiased[contains].sum())
        assert table.alone[name] == pytest.approx(result.unbiased[alone].sum())
        assert table.functions[name] == contains.sum()
        assert 0 < table.standard_error[name] <= 1.5 * result.total_standard_error


def test_sums_by_input_hold_the_truth():
    """Over 40 data sets, the exact sums lie within two standard errors in 95 % of all cases."""
    basis = infocap.product_basis("legendre", 3, 3)
    system = infocap.theory.random_mixture(basis, n_active=9, n_readouts=6, noise=0.3, seed=1)
    exact = np.array([system.exact()[basis.indices[:, k] > 0].sum() for k in range(3)])
    n_inside = 0
    for seed in range(40):
        table = infocap.probe(system, basis, 512, seed=seed).by_input()
        n_inside += np.sum(np.abs(table.capacity - exact) < 2 * table.standard_error)
    # Three sums of one data set are not independent: as if there were only 40 cases, four standard
    # errors of their share are 14 %.
    assert n_inside / 120 > 0.95 - 0.14


def test_the_matrix_of_inputs_shows_which_of_them_interact():
    basis = infocap.product_basis("legendre", 3, 2)
    result = infocap.probe(
        lambda u: np.column_stack([u[:, 0] * u[:, 1], u[:, 2]]), basis, 256, seed=1
    )
    expected = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert result.input_matrix() == pytest.approx(np.array(expected), abs=0.02)
    ax = infocap.plot.input_matrix(result)
    assert np.array_equal(np.asarray(ax.images[0].get_array()), result.input_matrix())
    numbers = [text.get_text() for text in ax.texts]
    assert numbers.count("1.00") == 3
    plt.close("all")


def test_inputs_of_a_sequence_are_summed_over_all_delays():
    result = of_a_sequence()
    (capacity,) = result.by_input().capacity
    assert capacity == pytest.approx(result.total - 1, abs=1e-9)
    memory = result.memory_capacity_of_past
    of_past = (result.basis.degrees == 1) & (result.basis.largest_delays > 0)
    assert memory == pytest.approx(result.unbiased[of_past].sum())


def test_a_citation_holds_the_numbers_of_the_result_and_all_that_it_refers_to():
    for result in (of_three_inputs(), of_a_sequence()):
        citation = infocap.cite(result)
        assert result.total_in_words in citation.methods
        assert f"{len(result.basis)} legendre functions" in citation.methods
        assert str(result.n_samples) in citation.methods
        referred = set(re.findall(r"\[([a-z0-9, ]+)\]", citation.methods))
        keys = {key for group in referred for key in group.split(", ")}
        assert keys == set(citation.keys)
        assert re.findall(r"^@\w+\{(\w+),", citation.bibtex, re.MULTILINE) == list(citation.keys)
    assert "jaeger2002short" in infocap.cite(of_a_sequence()).keys


def test_every_method_cites_a_reference_with_journal_year_and_number():
    everything = infocap.cite()
    entries = dict(zip(everything.keys, everything.bibtex.split("\n\n"), strict=True))
    for method in infocap.estimators.METHODS.values():
        for key in method.cites:
            assert key in entries
    for key, entry in entries.items():
        assert re.search(r"year\s+= \{\d{4}\}", entry)
        assert entry.count("{") == entry.count("}")
        if entry.startswith("@article"):
            assert re.search(r"journal\s+= ", entry), key
            assert re.search(r"doi\s+= \{10\.\d{4,}/\S+\},", entry), key
    for method in ("raw", "threshold-richardson", "surrogate", "chi2"):
        basis = infocap.product_basis("legendre", 1, 2)
        result = infocap.probe(lambda u: u, basis, 64, seed=1, method=method)
        cited = infocap.cite(result).keys
        assert set(infocap.estimators.METHODS[method].cites) <= set(cited)
        assert "ramachandran2026ipc" in cited


def test_figures_have_no_fonts_of_type_3_in_a_fresh_process(tmp_path):
    code = (
        "import matplotlib; matplotlib.use('Agg')\n"
        "import infocap\n"
        "b = infocap.product_basis('legendre', 1, 2)\n"
        "r = infocap.probe(lambda u: u, b, 64, seed=1)\n"
        f"infocap.plot.capacity_bars(r).figure.savefig({str(tmp_path / 'own.pdf')!r})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    pdf = (tmp_path / "own.pdf").read_bytes()
    assert b"/Type3" not in pdf
    assert b"/Type0" in pdf or b"/TrueType" in pdf


def test_what_the_user_has_set_stays():
    result = of_three_inputs()
    with plt.rc_context({"axes.spines.top": True}):
        ax = infocap.plot.capacity_bars(result)
        assert ax.xaxis.label.get_fontsize() == 7  # that of the package
    with plt.rc_context({"axes.labelsize": 13}):
        assert infocap.plot.capacity_bars(result).xaxis.label.get_fontsize() == 13
    plt.close("all")


def test_degrees_have_colours_from_dark_to_light():
    result = of_a_sequence()
    ax = infocap.plot.capacity_by_delay(result)
    colours = [container.patches[0].get_facecolor() for container in ax.containers]
    brightness = [0.3 * red + 0.6 * green + 0.1 * blue for red, green, blue, _ in colours]
    assert np.all(np.diff(brightness) > 0.1)
    plt.close("all")


def test_a_memory_function_falls_to_zero_over_the_delays_that_a_search_tested():
    u = np.random.default_rng(3).uniform(-1, 1, 2000)
    network = infocap.systems.EchoState(20, radius=0.5, noise=0.01, seed=1)
    result = infocap.explore(u, network(u, seed=1), washout=200, max_degree=2).result
    is_found = (result.basis.degrees == 1) & (result.capacity > 0)
    longest = result.basis.largest_delays[is_found].max()
    ax = infocap.plot.memory_function(result)
    line = ax.lines[0]
    assert line.get_xdata().max() == result.metadata["explored"]["windows"][1] > longest
    assert np.all(line.get_ydata()[line.get_xdata() > longest] == 0)
    assert ax.get_xlim()[1] > longest + 1
    plt.close("all")


def test_the_legend_of_a_comparison_is_below_in_one_column_of_a_journal():
    result = of_three_inputs()
    with infocap.plot.width(89):
        ax = infocap.plot.compare(result, result, names=["one", "other"])
    ax.figure.draw_without_rendering()
    legend = ax.get_legend().get_window_extent()
    assert legend.y1 < ax.get_window_extent().y0
    assert ax.get_window_extent().width > 0.7 * ax.figure.get_window_extent().width
    plt.close("all")


# Which readouts matter.


def test_a_copy_loses_nothing_and_what_no_other_channel_knows_loses_all():
    basis = infocap.product_basis("legendre", 2, 3)
    u = infocap.draw(basis, 1024, seed=1)
    x = np.column_stack([u[:, 0], 3 * u[:, 0] + 1, u[:, 1], u[:, 0] * u[:, 1]])
    ranking = infocap.rank_channels(u, x, basis, names=["a", "copy", "b", "product"])
    loss_error = 4 * ranking.loss_standard_error + 1e-9
    assert np.all(np.abs(ranking.loss - [0, 0, 1, 1]) < loss_error)
    share_error = 4 * ranking.share_standard_error + 1e-9
    assert np.all(np.abs(ranking.share - [1 / 3, 2 / 3, 1, 1]) < share_error)
    assert set(ranking.smallest()) in ({"a", "b", "product"}, {"copy", "b", "product"})
    assert ranking.smallest(0.5)[0] in ("a", "copy", "b", "product")
    assert "3 of 4 keep 95 %" in repr(ranking)


def test_shares_and_losses_are_those_of_an_estimate_of_the_same_channels():
    """On other samples, within four standard errors of both."""
    basis = infocap.product_basis("legendre", 2, 6)
    device = infocap.systems.RandomFeatures(2, 14, noise=0.03, seed=4)
    u = infocap.draw(basis, 2048, seed=1)
    ranking = infocap.rank_channels(u, device(u, seed=1), basis)
    others = infocap.draw(basis, 4096, seed=7)
    x = device(others, seed=8)
    full = infocap.estimate(others, x, basis)
    for n_channels in (3, 7, 11):
        part = infocap.estimate(others, x[:, ranking.order[:n_channels]], basis)
        share = (part.total - 1) / (full.total - 1)
        error = np.hypot(
            ranking.share_standard_error[n_channels - 1],
            np.hypot(part.total_standard_error, full.total_standard_error) / full.total,
        )
        assert abs(ranking.share[n_channels - 1] - share) < 4 * error
    channel = int(np.argmax(ranking.loss))
    without = infocap.estimate(others, np.delete(x, channel, axis=1), basis)
    error = np.hypot(ranking.loss_standard_error[channel], full.total_standard_error)
    assert abs(ranking.loss[channel] - (full.total - without.total)) < 4 * error


def test_channels_of_a_recording_and_of_a_sequence_are_ranked(tmp_path):
    basis = infocap.delayed_basis(max_delay={1: 6, 2: 3})
    u = infocap.draw(basis, 2000, seed=1)
    x = infocap.systems.EchoState(8, noise=0.02, seed=1)(u, seed=1)
    names = tuple(f"node {k}" for k in range(8))
    recording = infocap.Recording(u, x, np.arange(2000), channel=names)
    ranking = infocap.rank_channels(recording, basis=basis, washout=50)
    assert ranking.names == names
    again = infocap.rank_channels(u, x, basis, washout=50, names=names)
    assert ranking.share == pytest.approx(again.share)
    table = ranking.to_dataframe()
    assert sorted(table.number) == list(range(8))
    assert table.share.iloc[-1] == 1
    ax = infocap.plot.channels(ranking)
    assert ax.lines[0].get_ydata() == pytest.approx(100 * ranking.share)
    plt.close("all")


def test_channels_without_any_function_are_not_ranked():
    basis = infocap.product_basis("legendre", 1, 3)
    u = infocap.draw(basis, 256, seed=1, design="random")
    noise = np.random.default_rng(0).standard_normal((256, 3))
    with pytest.raises(DataError, match="no function"):
        infocap.rank_channels(u, noise, basis)
    with pytest.raises(ParameterError, match="3 names, one per channel"):
        infocap.rank_channels(u, np.hstack([u, u**2, u**3]), basis, names=["a"])
