"""The report: what it says for every kind of result, that it carries exact numbers, and that no text becomes markup."""

import html
import json
import re
import subprocess
import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from click.testing import CliRunner
from report_results import HOSTILE, KINDS, Elements, page_of, words

import infocap
from infocap._files import append_checksum
from infocap.errors import Check, DataError, ParameterError
from infocap.lab.cli import main
from infocap.lab.report._html import with_error
from infocap.plot._style import CONSTANT_COLOUR, GREY
from infocap.result import Drift, Factors, Growth

FULL = KINDS["two inputs, everything measured"]


def embedded(page):
    """The numbers that a page carries."""
    return json.loads(re.search(r'id="infocap-data">(.*?)</script>', page, re.DOTALL).group(1))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_result_makes_a_well_formed_page(kind):
    result = KINDS[kind]()
    page = page_of(kind)
    found = Elements(page)
    assert found.open == []
    ids = [value for key, value in found.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    assert not [
        pair
        for pair in found.attributes
        if "nan" in str(pair[1]).split() or "inf" in str(pair[1]).split()
    ]
    said = words(page)
    assert f"of at most {result.maximum} linearly independent functions" in said
    assert (result.qualified_total or f"{result.total:.1f}") in said
    assert ("Capacity of each function" in said) == (result.basis.n_inputs == 2)
    assert ("Memory function" in said) == (result.basis.memory > 0) == ("steps ago" in said)
    assert ("How well readouts agree with inputs" in said) == (kind == "a slip")
    assert "Capacity by degree" in said
    assert ("gives no error bars" in said) == (result.total_standard_error is None)
    assert ("(95 %)" in said) == (result.total_standard_error is not None and not result.unreliable)
    assert ("p-value" in said) == (result.p_value is not None)
    assert "Where the numbers come from" in said
    assert result.method in said
    assert len(page) < 7.5e6


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_needs_nothing_from_elsewhere(kind):
    page = page_of(kind)
    assert "https:" not in page
    assert set(re.findall(r"http:[^\"' ]*", page)) <= {"http://www.w3.org/2000/svg"}
    assert all(link.startswith("#") for link in re.findall(r'(?:href="|url\()(.)', page))
    found = Elements(page)
    assert not {"link", "img", "iframe", "object", "embed", "base", "a"} & set(found.tags)
    assert not [
        key for key, _ in found.attributes if key in ("src", "style") or key.startswith("on")
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_carries_exactly_the_numbers_of_the_result(kind):
    result = KINDS[kind]()
    found = embedded(page_of(kind))
    for name in ("capacity", "raw", "unbiased", "standard_error", "p_value", "threshold"):
        column = getattr(result, name)
        if column is None:
            assert name not in found["functions"]
        else:
            assert found["functions"][name] == column.tolist()
    assert found["functions"]["index"] == result.basis.indices.T.tolist()
    assert found["attributes"]["total"] == result.total
    assert found["functions"]["label"] == result.basis.labels


def test_everything_measured_is_shown():
    result = replace(FULL(), checks=())  # its reference drifted, so its total has no error bar
    said = words(infocap.report.page(result, title="Tube 7"))
    low, high = result.total_interval(0.95)
    assert "Tube 7" in said
    assert f"The device computes {result.total_in_words} of at most 13" in said
    assert f"± is one standard error; {low:.2f} to {high:.2f} (95 %)" in said
    assert "From 512 samples of 12 readouts and the constant, among 28 Legendre functions" in said
    assert "in functions of the inputs outside this basis" in said
    assert "lost to noise, as repeated measurements show" in said
    assert "Growth with the number of samples" in said
    assert "so many independent signals stand clearly out of the noise" in said
    assert f"The reference moved by {100 * result.drift.size:.0f} % of the readouts' spread" in said
    assert "time (h)" in said
    assert "9f2c41d0" in said
    assert str(2**70) in said
    assert infocap.__version__ in said
    assert re.search(r"date \d{4}-\d\d-\d\d \d\d:\d\d UTC", said)


def test_every_check_is_shown_and_none_is_said_to_be_none():
    result = FULL()
    assert any("drifted" in check for check in result.checks)
    said = words(infocap.report.page(result))
    assert all(check[1:] in said for check in result.checks)
    assert "No warnings." not in said
    assert "No warnings." in words(page_of("raw"))
    assert embedded(infocap.report.page(result))["checks"] == [
        check.to_dict() for check in result.checks
    ]
    noted = replace(
        result, checks=tuple(Check(str(check), "note", channels=[3]) for check in result.checks)
    )
    assert embedded(infocap.report.page(noted))["checks"][0]["found"] == {"channels": [3]}
    said = words(infocap.report.page(noted))
    assert "No warnings." in said
    assert "Noted" in said
    assert all(check[1:] in said for check in result.checks)


def test_a_method_and_a_check_from_outside_are_shown(monkeypatch):
    def unbiased(evidence):
        """Subtract the bias of functions without capacity, K / N."""
        return np.maximum(evidence.raw - evidence.rank / evidence.n_samples, 0)

    def negative_powers(case):
        yield Check("channel 0 has negative values.")

    method = infocap.estimators.Method(name="unbiased", function=unbiased, summary="raw - K / N")
    monkeypatch.setitem(infocap.estimators.METHODS, "unbiased", method)
    monkeypatch.setitem(infocap.diagnostics.CHECKS, "negative powers", negative_powers)
    basis = infocap.product_basis("legendre", 1, 3)
    with pytest.warns(infocap.errors.DataWarning, match="negative values"):
        result = infocap.probe(np.square, basis, 256, seed=1, method="unbiased")
    said = words(infocap.report.page(result))
    assert "method unbiased" in said
    assert "hannel 0 has negative values." in said


def test_what_was_not_measured_is_not_mentioned():
    said = words(page_of("raw"))
    for name in ("Growth with", "Factor analysis", "Drift of", "repeated measurements show"):
        assert name not in said
    assert "Measuring some inputs twice tells which" in said
    assert "no record of their plan or seed" in said


def test_metadata_cannot_pass_for_the_estimation():
    metadata = {"provenance": {"method": "guesswork", "samples": 7}}
    said = words(infocap.report.page(replace(KINDS["raw"](), metadata=metadata)))
    assert "method raw" in said
    assert "method (recording) guesswork" in said


def test_a_finding_is_drawn_where_the_rows_slipped():
    page = page_of("a slip")
    drawing = re.search(
        r'<svg[^>]*aria-label="Readouts shifted against the inputs.*?</svg>', page, re.DOTALL
    ).group(0)
    # The stretch of rows is a shape of its own, with the colour of what was found.
    stretch = re.search(r'<path d="([^"]*)"[^>]*fill="var\(--limit\)"[^>]*opacity="0.13"', drawing)
    corners = [float(x) for x in re.findall(r"[ML] ([\d.]+) ", stretch[1])]
    ticks = {
        text: float(x)
        for x, text in re.findall(r'<text [^>]*x="([\d.]+)"[^>]*>(\d+)</text>', drawing)
    }
    per_row = (ticks["600"] - ticks["400"]) / 200
    first, last = [400 + (x - ticks["400"]) / per_row for x in (min(corners), max(corners))]
    slip = KINDS["a slip"]().warnings[0].found["shifts"][0]
    assert (first, last) == pytest.approx(slip[:2], abs=3)
    assert "their own inputs" in drawing


def test_what_stands_in_backticks_is_set_as_code():
    result = replace(KINDS["raw"](), checks=(Check("raise `max_delay` & wait."),))
    assert "<li>Raise <code>max_delay</code> &amp; wait.</li>" in infocap.report.page(result)


@pytest.mark.filterwarnings("ignore:the window is too short")
def test_notebooks_show_sequences():
    basis = infocap.delayed_basis("legendre", n_inputs=2, max_delay={1: 6, 2: 2})
    network = infocap.systems.EchoState(8, n_inputs=2, noise=1e-2)
    u = infocap.draw(basis, 800, seed=1)
    result = infocap.estimate(u, network(u, seed=1), basis, washout=100)
    shown = words(result._repr_html_())
    for title in ("Memory function of u1", "Capacity by delay", "Capacity by degree"):
        assert title in shown
    assert "Capacity of each function" not in shown  # there are two inputs, but many delays of each
    assert "u2 uniform −1 1" in words(basis._repr_html_())


def test_each_cell_of_the_matrix_has_the_colour_of_its_capacity():
    result = FULL()
    page = infocap.report.page(result)
    size = int(result.basis.indices.max()) + 1
    mesh = re.search(r'id="capacity_matrix-QuadMesh_1">(.*?)</g>', page, re.DOTALL).group(1)
    cells = re.findall(r'd="M ([\d.]+) ([\d.]+)[^"]*" [^>]*fill="(#\w+)"', mesh, re.DOTALL)
    colours = {(round(float(x)), round(float(y))): colour for x, y, colour in cells}
    marks = re.findall(
        r'<rect x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)" class="mark" data-function="(\d+)"',
        page,
    )
    assert [int(one[-1]) for one in marks] == list(range(len(result.basis)))
    for x, y, _, height, number in marks:
        corner = round(float(x)), round(float(y) + float(height))
        known = [
            colour
            for (a, b), colour in colours.items()
            if abs(a - corner[0]) + abs(b - corner[1]) <= 2
        ]
        assert known == [mpl.colors.to_hex(mpl.colormaps["viridis"](result.capacity[int(number)]))]
    assert len({x for x, *_ in marks}) == size


def test_colours_agree_with_those_of_the_plots():
    page = page_of("raw")
    names = ("constant", "one", "two", "more", "no-cell")
    for name, colour in zip(names, (CONSTANT_COLOUR, *infocap.plot.COLOURS[:3], GREY), strict=True):
        assert f"--{name}: light-dark({colour.lower()}," in page


def test_the_table_by_degree_adds_up():
    result = KINDS["five inputs, everything measured"]()
    page = infocap.report.page(result)
    table = re.search(r"<caption>Capacity by degree.*?</table>", page, re.DOTALL).group(0)
    last = re.findall(r"<td[^>]*>(.*?)</td>", table.split("<tfoot>")[1])
    sums = result.by_degree()[1:].sum()  # the constant is in no column of variables
    assert [float(cell) for cell in last[1:-1]] == [
        round(float(value), 2) for value in (*sums, result.capacity.sum())
    ]
    assert last[-1] == result.qualified_total
    assert last[0] == f"{np.sum(result.capacity > 0)} of {len(result.basis)}"


def test_the_strongest_functions_come_first():
    result = FULL()
    page = infocap.report.page(result)
    rows = re.search(r'<tbody id="rows">(.*?)</tbody>', page, re.DOTALL).group(1)
    shown = [html.unescape(name) for name in re.findall(r"<tr><td>(.*?)</td>", rows)]
    order = np.argsort(-result.capacity, kind="stable")[: len(shown)]
    assert shown == [
        result.basis.labels[one].replace("1", "constant") if one == 0 else result.basis.labels[one]
        for one in order
    ]


def test_no_text_can_become_markup():
    metadata = {
        "plan": {HOSTILE: HOSTILE},
        HOSTILE: {HOSTILE: [HOSTILE, {HOSTILE: 1}]},
        "seed": HOSTILE,
    }
    result = replace(
        FULL(),
        checks=(Check(HOSTILE, **{HOSTILE: HOSTILE}), Check(HOSTILE, "note")),
        method=HOSTILE,
        metadata={"provenance": metadata},
        factors=Factors(n_repeats=2, problem=HOSTILE),
    )
    page = infocap.report.page(result, title=HOSTILE)
    plain = infocap.report.page(replace(FULL(), checks=(Check("x"),)), title="x")
    found = Elements(page)
    assert found.tags.count("script") == Elements(plain).tags.count("script") == 2
    assert "img" not in found.tags
    assert not [key for key, _ in found.attributes if key.startswith("on")]
    assert page.count("alert(1)</script") == 0
    assert embedded(page)["metadata"]["provenance"]["plan"] == {HOSTILE: HOSTILE}
    assert embedded(page)["title"] == HOSTILE
    page.encode("utf-8")


def test_only_our_own_script_may_run():
    page = page_of("raw")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="(.*?)"', page).group(1)
    assert html.unescape(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "kind", ["two inputs, everything measured", "five inputs, everything measured"]
)
def test_curves_are_those_of_the_plots_in_the_colours_of_the_page(kind):
    page = page_of(kind)
    curves = {
        name: re.search(rf'<svg[^>]*aria-label="{name}.*?</svg>', page, re.DOTALL).group(0)
        for name in ("Growth with", "Factor analysis", "Drift of the reference")
    }
    assert [curve.count('class="mark spot"') for curve in curves.values()] == [
        len(KINDS[kind]().growth.n_samples),
        11,
        32,
    ]
    for curve in curves.values():
        assert "var(--one)" in curve
        assert not re.findall(r'"#[0-9a-f]{6}"', curve)  # every colour follows light and dark
        assert "font" not in curve
    assert "what noise allows" in curves["Growth with"]


def test_a_spot_lies_on_the_point_that_it_tells_about():
    page = page_of("two inputs, everything measured")
    drift = re.search(r'<svg[^>]*aria-label="Drift.*?</svg>', page, re.DOTALL).group(0)
    spots = np.array(re.findall(r'<circle cx="(.*?)" cy="(.*?)" r="6"', drift), dtype=float)
    markers = np.array(
        re.findall(r'<use href="#drift-m\w+" x="(.*?)" y="(.*?)" fill="var\(--one', drift),
        dtype=float,
    )
    assert len(spots) == 32
    assert np.abs(spots - markers[:32]).max() < 0.02


def test_commands_that_draw_nothing_load_no_matplotlib():
    code = "import sys, infocap.lab.cli._lab, infocap.lab.cli._files, infocap.lab.cli._plan; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_the_same_result_gives_the_same_page():
    assert infocap.report.page(FULL()) == page_of("two inputs, everything measured")


def test_a_long_drift_keeps_the_page_small():
    time = tuple(float(k) for k in range(5000))
    long = Drift(time=time, clock="s", distance=tuple(abs(np.sin(time))), size=0.7, noise=0.1)
    page = infocap.report.page(replace(KINDS["raw"](), drift=long))
    assert 100 < page.count('class="mark spot"') <= 201
    assert len(page) < 4e5


def test_factors_without_noise_and_a_growth_of_one_size_are_no_trouble():
    silent = Factors(n_repeats=9, n_factors=None, values=(0.0, 0.0, 0.0))
    result = replace(KINDS["raw"](), factors=silent, growth=Growth((64,), (1.0,), None))
    page = infocap.report.page(result)
    assert 'class="mark spot"' not in page  # zero has no place on a logarithmic axis
    said = words(page)
    assert "no minimum, so it names no number of factors" in said
    assert "Growth with" not in said


NONSENSE = [
    (Growth, {"n_samples": (8, 16), "total": (1.0,), "standard_error": None}),
    (Growth, {"n_samples": (8, 16), "total": (1.0, float("nan")), "standard_error": None}),
    (Growth, {"n_samples": (0, 16), "total": (1.0, 2.0), "standard_error": (1.0, 1.0)}),
    (Growth, {"n_samples": (), "total": (), "standard_error": None}),
    (Factors, {"n_repeats": 9, "n_factors": 3, "values": (1.0, 2.0)}),
    (Factors, {"n_repeats": 9, "n_factors": None, "values": (1.0, -2.0)}),
    (Drift, {"time": (0.0,), "clock": "s", "distance": (0.0, 1.0), "size": 0.1, "noise": 0.1}),
    (
        Drift,
        {"time": (0.0, 1.0), "clock": "s", "distance": (0.0, "far"), "size": 0.1, "noise": 0.1},
    ),
    (
        Drift,
        {"time": (0.0, 1.0), "clock": "s", "distance": (0.0, 1.0), "size": 1e300, "noise": 0.1},
    ),
]


@pytest.mark.parametrize(("kind", "found"), NONSENSE)
def test_findings_that_make_no_sense_are_refused(kind, found, tmp_path):
    name = kind.__name__.lower()
    with pytest.raises(ParameterError, match=f"{name} makes no sense: {kind.__name__}"):
        kind(**found)
    path = KINDS["raw"]().save(tmp_path / "result.csv")
    text = path.read_text().replace(
        '"metadata": {', f'"metadata": {{"{name}": {json.dumps(found)}, ', 1
    )
    path.write_text(
        "".join(text.splitlines(keepends=True)[:-1])
    )  # without the checksum, which is made anew
    append_checksum(path)
    with pytest.raises(DataError, match=f"result.csv is damaged: it {name} makes no sense"):
        infocap.load_result(path)


def test_capacities_that_are_no_numbers_are_refused():
    result = KINDS["raw"]()
    with pytest.raises(DataError, match="not finite numbers"):
        infocap.report.page(replace(result, capacity=np.full(len(result.basis), np.nan)))


def test_numbers_have_the_digits_that_their_error_allows():
    pairs = (
        (20.0104, 0.1293),
        (20.96, 0.3),
        (0.97301, 0.00039),
        (1.0, 0.0),
        (81.27, 12.0),
        (-0.02, 0.1),
        (0.25, None),
        (0.5, 1e-9),
    )
    said = [with_error(*pair).replace("\xa0", " ") for pair in pairs]
    assert said == [
        "20.01 ± 0.13",
        "20.96 ± 0.30",
        "0.97301 ± 0.00039",
        "1.000",
        "81 ± 12",
        "−0.02 ± 0.10",
        "0.250",
        "0.50000 ± <0.00001",
    ]


def test_the_page_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "report.html"
    assert infocap.report.save(KINDS["raw"](), path) == path
    before = path.read_text(encoding="utf-8")
    assert before == page_of("raw")
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(DataError, match=r"the folder .*missing does not exist; make it first"):
        infocap.report.save(KINDS["raw"](), tmp_path / "missing" / "report.html")
    with pytest.raises(ParameterError, match=r"'.pdf'` is not one of '.html'"):
        infocap.report.save(KINDS["raw"](), tmp_path / "report.pdf")


@pytest.mark.parametrize("suffix", [".nc", ".csv"])
def test_the_command_writes_the_page_of_a_saved_result(tmp_path, suffix):
    FULL().save(tmp_path / f"result{suffix}")
    output = tmp_path / "report.html"
    arguments = [
        "report",
        str(tmp_path / f"result{suffix}"),
        "-o",
        str(output),
        "--title",
        "Tube 7",
    ]
    outcome = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert outcome.exit_code == 0
    assert "report.html" in outcome.output
    assert (
        embedded(output.read_text(encoding="utf-8"))["functions"]["capacity"]
        == FULL().capacity.tolist()
    )
    with pytest.raises(DataError, match="does not exist"):
        CliRunner().invoke(
            main, ["report", "nowhere.nc", "-o", str(output)], catch_exceptions=False
        )
