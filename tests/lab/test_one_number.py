"""One result has one total and one meaning of ± in every place where it can appear."""

import html
import re
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import infocap
from infocap.errors import Check, DataError, DataWarning
from infocap.lab.cli import run
from infocap.lab.cli._lab import _capacity_lines as watch_lines
from infocap.report import card, gallery, page

pytestmark = pytest.mark.pages

NUMBER_WITH_ERROR = re.compile(r"(-?\d+\.\d+)\s*(?:±|\\pm)\s*(\d+\.\d+)")
PLOTS = ("capacity_matrix", "capacity_bars", "growth")


@dataclass(frozen=True)
class Device:
    """A device that was measured, and everything that says something about it."""

    result: infocap.CapacityResult
    folder: Path
    printed: str  # by `infocap estimate`
    watched: str  # by `infocap watch --once`


def quiet():
    """A context in which warnings about the data, which no test here is about, are not shown."""
    return warnings.catch_warnings(action="ignore", category=DataWarning)


def command(*words):
    """Run `infocap` with these words, and return what it prints."""
    monkeypatch = pytest.MonkeyPatch()
    capture = Path(words[-1]).parent / "printed.txt"
    with monkeypatch.context() as patch, capture.open("w", encoding="utf-8") as file:
        patch.setattr(sys, "argv", ["infocap", *map(str, words)])
        patch.setattr(sys, "stdout", file)
        with pytest.raises(SystemExit):
            run()
    return capture.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A device without memory, from the acquisition on."""
    folder = tmp_path_factory.mktemp("bench")
    plan = infocap.lab.Plan(n_inputs=2, max_degree=5, n_samples=512, seed=1, reference_every=0)
    system = infocap.systems.RandomFeatures(2, 9, noise=0.02, seed=3)
    bench = infocap.lab.SimulatedBench(lambda u: system(u, seed=5))
    infocap.lab.acquire(plan, bench, folder / "run.db", progress=False)
    printed = command("estimate", "-o", folder / "result.nc", folder / "run.db")
    watched = command("watch", "--once", folder / "run.db")
    return Device(infocap.load_result(folder / "result.nc"), folder, printed, watched)


@pytest.fixture(scope="module")
def reservoir(tmp_path_factory):
    """A device with memory."""
    folder = tmp_path_factory.mktemp("reservoir")
    network = infocap.systems.EchoState(12, input_scale=0.4, bias=0.3, noise=0.02, seed=1)
    basis = infocap.delayed_basis("legendre", max_delay={1: 12, 2: 6})
    u = infocap.draw(basis, 3000, seed=1)
    with quiet():
        result = infocap.estimate(u, network(u, seed=1), basis, washout=100)
    result.save(folder / "result.nc")
    return Device(result, folder, repr(result), repr(result))


def plain(markup):
    """The text of a page, without its scripts and styles."""
    without_code = re.sub(r"<(script|style)\b.*?</\1>", " ", markup, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", without_code)).replace("\u2212", "-")


def texts_of(device):
    """Everything in words that says something about a device, by the place where it appears."""
    result = device.result
    folder = device.folder
    cards = folder / "cards"
    cards.mkdir(exist_ok=True)
    card(result, cards / "device.html")
    card(result, folder / "device.svg")
    gallery(cards, folder / "gallery.html")
    with quiet():
        comparison = infocap.compare(result, result, names=["one", "the same"])
    legend = infocap.plot.compare(comparison).get_legend()
    return {
        "print": repr(result),
        "notebook": plain(result._repr_html_()),
        "page": plain(page(result)),
        "card": plain((cards / "device.html").read_text(encoding="utf-8")),
        "picture": plain((folder / "device.svg").read_text(encoding="utf-8")),
        "gallery": plain((folder / "gallery.html").read_text(encoding="utf-8")),
        "comparison": repr(comparison),
        "comparison in a notebook": plain(comparison._repr_html_()),
        "legend": " ".join(text.get_text() for text in legend.get_texts()),
        "latex": result.to_latex(),
        "show": command("show", folder / "result.nc"),
        "cite": command("cite", folder / "result.nc"),
        "estimate": device.printed,
        "watch": device.watched,
        "from a table": repr(infocap.load_result(result.save(folder / "again.csv"))),
        "from a page": repr(infocap.load_result(cards / "device.html")),
    }


def totals_in(text, result):
    """The pairs of a number and what follows ±, of those that can be the total."""
    pairs = []
    for value, error in NUMBER_WITH_ERROR.findall(text):
        rounding = 0.51 * 10.0 ** -len(value.partition(".")[2])
        if abs(float(value) - result.total) <= rounding:
            pairs.append((value, error))
    return pairs


@pytest.mark.parametrize("kind", ["bench", "reservoir"])
def test_every_place_gives_the_same_total_with_its_standard_error(kind, request):
    device = request.getfixturevalue(kind)
    result = device.result
    places = texts_of(device)
    if kind == "bench":
        # The growth of the total with N is in intervals, and the last one is the total's.
        assert f"{result.total:.2f}" in places.pop("watch")
    for place, text in places.items():
        pairs = totals_in(text, result)
        assert pairs, place
        for _, error in pairs:
            rounding = 0.51 * 10.0 ** -len(error.partition(".")[2])
            assert abs(float(error) - result.total_standard_error) <= rounding, place
        # Where an interval is given, it is said to be one.
        assert "± reaches" not in text, place


@pytest.mark.parametrize("kind", ["bench", "reservoir"])
def test_tables_add_up_to_the_total(kind, request):
    result = request.getfixturevalue(kind).result
    data = result.to_dataframe()
    assert data.unbiased.sum() == pytest.approx(result.total)
    assert result.by_degree(errors=True).capacity.sum() == pytest.approx(result.total)
    attributes = result.to_xarray().attrs
    assert attributes["total"] == result.total
    assert attributes["total_standard_error"] == result.total_standard_error
    strongest = result.table(errors=True)
    of_label = data.set_index("label")
    for column in ("capacity", "standard_error", "p_value"):
        expected = of_label[column].loc[strongest.index]
        assert strongest[column].to_numpy() == pytest.approx(expected.to_numpy())
    with quiet():
        totals = infocap.compare(result, result).totals()
    assert totals.capacity.tolist() == [result.total] * 2
    assert totals.standard_error.tolist() == [result.total_standard_error] * 2


def degrees_in(text):
    """The estimate of each degree and its error, of a line that begins with the degree."""
    pattern = r"(?:degree\s+)?(\d+)\s+(?:&\s*\$)?(-?\d+\.\d+)\s*(?:±|\\pm)\s*(\d+\.\d+)"
    found = {}
    for line in text.splitlines():
        match = re.match(rf"\s*{pattern}", line)
        if match:
            found[int(match[1])] = (float(match[2]), float(match[3]))
    return found


def test_every_place_gives_the_same_degrees(bench):
    result = bench.result
    exact = result.by_degree(errors=True)
    page_rows = re.search(r"<caption>Capacity by degree.*?</table>", page(result), re.DOTALL)[0]
    of_page = {}
    for row in re.findall(r'<tr><th scope="row">(\d+</th>.*?)</tr>', page_rows):
        pair = NUMBER_WITH_ERROR.search(html.unescape(row))
        if pair:
            of_page[int(row.partition("<")[0])] = (float(pair[1]), float(pair[2]))
    with quiet():
        comparison = infocap.compare(result, result)
    places = {
        "print": degrees_in(repr(result)),
        "show": degrees_in(command("show", bench.folder / "result.nc")),
        "latex": degrees_in(result.to_latex()),
        "page": of_page,
        "comparison": degrees_in(repr(comparison)),
    }
    for place, found in places.items():
        assert len(found) >= 4, place
        for degree, (value, error) in found.items():
            assert value == pytest.approx(exact.capacity[degree], abs=1e-3), place
            assert error == pytest.approx(exact.standard_error[degree], abs=1e-3), place


def test_bars_end_at_the_sums_and_their_errors_are_standard_errors(bench):
    result = bench.result
    exact = result.by_degree(errors=True)
    ax = infocap.plot.capacity_bars(result)
    ends = np.array(ax.collections[0].get_segments())
    of_degree = ends[:, 0, 0].round().astype(int)
    upper = exact.capacity[of_degree] + exact.standard_error[of_degree]
    assert ends[:, 1, 1] == pytest.approx(upper.to_numpy())
    circle = next(text.get_text() for text in ax.texts if "frac" in text.get_text())
    assert f"{{{result.short_total}}}" in circle
    ax = infocap.plot.compare(result, replace(result), names=["one", "same"])
    ends = np.array(ax.collections[0].get_segments())
    of_degree = ends[:, 0, 0].round().astype(int)
    upper = exact.capacity[of_degree] + exact.standard_error[of_degree]
    assert ends[:, 1, 1] == pytest.approx(upper.to_numpy())
    plt.close("all")


def test_every_place_gives_both_memory_capacities(reservoir):
    result = reservoir.result
    both = (
        f"{result.memory_capacity!r} with delay 0, "
        f"{result.memory_capacity_of_past!r} for delays from 1 on"
    )
    assert result.memory_capacity - result.memory_capacity_of_past == pytest.approx(
        result.memory_function().capacity[0], abs=0.01
    )
    texts = texts_of(reservoir)
    for place in ("print", "notebook", "page", "card", "show", "cite"):
        assert both in " ".join(texts[place].split()), place
    assert f"{result.memory_capacity!r}" in " ".join(texts["gallery"].split())


# A result whose error is larger than its range.

CAUSE = "few samples for ten readouts; take 4000."


@pytest.fixture(scope="module")
def untold(bench, tmp_path_factory):
    """The same device, if its error were larger than all its readouts."""
    folder = tmp_path_factory.mktemp("untold")
    check = Check(CAUSE)
    result = replace(bench.result, total_standard_error=1e6, checks=(check,))
    result.save(folder / "result.nc")
    return Device(result, folder, "", "")


def has_a_number_of(text, result):
    """Whether a text holds the total or the sum of a degree."""
    numbers = {f"{result.total:.{digits}f}" for digits in (1, 2, 3, 4)}
    numbers |= {f"{value:.3f}" for value in result.by_degree(errors=True).capacity}
    return any(re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", text) for number in numbers)


def test_where_nothing_can_be_told_the_first_cause_is_all_there_is(untold, bench):
    result = untold.result
    sentence = "The total cannot be told: its standard error is above 10, the rank. Few samples"
    places = {
        "print": repr(result),
        "notebook": plain(result._repr_html_()),
        "show": command("show", untold.folder / "result.nc"),
        "cite": command("cite", untold.folder / "result.nc").partition("@")[0],
        "watch": "\n".join(watch_lines(result)),
    }
    for place, text in places.items():
        in_one_line = " ".join(text.split())
        assert sentence in in_one_line, place
        assert "±" not in in_one_line.replace("± is one standard error", ""), place
        assert not has_a_number_of(in_one_line, bench.result), place


def test_where_nothing_can_be_told_pages_tables_and_plots_are_refused(untold, tmp_path):
    result = untold.result
    refused = [
        lambda: page(result),
        lambda: card(result, tmp_path / "card.html"),
        lambda: card(result, tmp_path / "card.svg"),
        result.to_latex,
        lambda: infocap.plot.compare(result, result, names=["a", "b"]),
    ]
    refused += [lambda name=name: getattr(infocap.plot, name)(result) for name in PLOTS]
    for call in refused:
        with pytest.raises(DataError, match=r"cannot be told.*Few samples"), quiet():
            call()
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_told_galleries_and_comparisons_say_so(untold, bench, tmp_path):
    result = untold.result
    gallery(untold.folder, tmp_path / "gallery.html")
    with quiet():
        comparison = infocap.compare(bench.result, result, names=["good", "untold"])
    (line,) = [line for line in repr(comparison).splitlines() if line.startswith("  untold ")]
    for text in (plain((tmp_path / "gallery.html").read_text(encoding="utf-8")), line):
        assert "cannot be told" in text
        assert not has_a_number_of(text, bench.result)
    assert "untold is unreliable" in repr(comparison)


def test_sums_whose_error_exceeds_their_range_are_not_written(reservoir):
    errors = np.full(len(reservoir.result.basis), 1e3)
    result = replace(
        reservoir.result,
        standard_error=errors,
        without_stretches=reservoir.result.without_stretches * 1e3,
    )
    assert f"{result.memory_capacity!r}" == "cannot be told"
    for line in repr(result).splitlines():
        if line.strip().startswith("degree") and "degree  0" not in line:
            assert line.endswith("cannot be told")
    ends = re.findall(r"<tr><td>P.*?</td><td>(.*?)</td>", page(result))
    assert ends
    assert {text.replace("\N{NO-BREAK SPACE}", " ") for text in ends} == {"cannot be told"}
