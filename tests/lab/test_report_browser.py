"""The report in a browser: offline, without errors, with tooltips, downloads, dark and printed."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from report_results import HOSTILE, KINDS, page_of

import infocap

FULL = KINDS["two inputs, everything measured"]
FIVE = KINDS["five inputs, everything measured"]


@pytest.fixture
def open_page(browser, tmp_path):
    """Show a result in a fresh window without a network; any error or request makes the test fail."""
    problems = []
    contexts = []

    def show(result, title=None, width=1200, **options):
        path = tmp_path / "report.html"
        if isinstance(result, Path):
            path = result
        elif isinstance(result, str):
            path.write_text(page_of(result), encoding="utf-8")
        else:
            infocap.report.save(result, path, title)
        context = browser.new_context(
            viewport={"width": width, "height": 800}, offline=True, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "blob:")) else problems.append(request.url)
            ),
        )
        page.goto(path.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert problems == []


def words(locator):
    return locator.inner_text().replace("\xa0", " ")


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_opens_offline_without_an_error_and_fits_a_telephone(kind, open_page):
    page = open_page(kind, width=360)
    assert page.locator(".lead").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.querySelectorAll('*').length") < 3000


@pytest.mark.filterwarnings("ignore:intervals of capacities may be too short")
def test_pointing_at_a_cell_shows_the_capacity_of_its_function(open_page):
    result = FULL()
    page = open_page(result)
    number = result.basis.labels.index("P1(u1)·P2(u2)")
    page.hover(f'[data-function="{number}"]')
    said = words(page.locator("#tip"))
    assert "P1(u1)·P2(u2)" in said
    shown = infocap.lab.report._html.with_error(
        result.capacity[number], result.standard_error[number]
    )
    assert shown.replace("\xa0", " ") in said
    interval = [float(one) for one in re.search(r"([\d.]+) to ([\d.]+)", said).groups()]
    assert interval == pytest.approx(result.interval()[number], abs=0.005)
    page.mouse.move(5, 5)
    assert page.locator("#tip").is_hidden()


def test_pointing_at_a_bar_lists_its_largest_functions(open_page):
    result = FIVE()
    page = open_page(result)
    page.hover('[data-degree="2"][data-kind="2"]')
    chosen = np.flatnonzero((result.basis.degrees == 2) & (result.basis.interactions == 2))
    best = chosen[np.argsort(-result.capacity[chosen], kind="stable")][0]
    said = words(page.locator("#tip"))
    assert f"Degree 2, two variables: {result.capacity[chosen].sum():.2f}" in said
    assert result.basis.labels[best] in said
    assert f"{result.capacity[best]:.3f}" in said


def test_points_of_the_curves_tell_their_values(open_page):
    result = FULL()
    page = open_page(result)
    page.hover('[data-tip^="number of samples N: 512"]')
    assert f"total capacity: {result.total:.3g}" in words(page.locator("#tip"))


def test_tooltips_can_be_reached_with_the_keyboard(open_page):
    page = open_page(FULL())
    page.focus('[data-function="0"]')
    assert "constant" in words(page.locator("#tip"))
    page.keyboard.press("ArrowRight")
    assert "P1(u1)" in words(page.locator("#tip"))
    page.keyboard.press("ArrowUp")
    assert "P1(u1)·P1(u2)" in words(page.locator("#tip"))
    assert "P1(u1)·P1(u2); capacity" in page.evaluate(
        "document.activeElement.getAttribute('aria-label')"
    )
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def download(page, button, tmp_path):
    with page.expect_download() as waiting:
        page.click(button)
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


@pytest.mark.parametrize(
    "kind",
    ["two inputs, everything measured", "five inputs, everything measured", "raw", "a sequence"],
)
def test_the_downloaded_csv_is_the_result(kind, open_page, tmp_path):
    result = KINDS[kind]()
    path = download(open_page(result, title="Tube 7: 40 m"), "#save-csv", tmp_path)
    assert path.name == "tube-7-40-m.csv"
    back = infocap.load_result(path)
    for name in ("capacity", "raw", "unbiased", "standard_error", "p_value"):
        assert np.array_equal(getattr(back, name), getattr(result, name))
    assert (back.total, back.checks, back.basis.labels) == (
        result.total,
        result.checks,
        result.basis.labels,
    )


def test_the_downloaded_json_holds_everything(open_page, tmp_path):
    result = FULL()
    found = json.loads(
        download(open_page(result), "#save-json", tmp_path).read_text(encoding="utf-8")
    )
    assert found["functions"]["capacity"] == result.capacity.tolist()
    assert found["functions"]["label"] == result.basis.labels
    assert found["metadata"]["growth"]["total"] == list(result.growth.total)
    assert found["metadata"]["provenance"]["plan"] == result.metadata["provenance"]["plan"]
    assert found["metadata"]["provenance"]["seed"] == str(2**70)


def test_all_functions_can_be_searched(open_page):
    page = open_page("43758 functions")
    rows = page.locator("#rows tr")
    strongest = rows.all_inner_texts()
    assert len(strongest) == 20
    page.fill("#search", "P")
    assert rows.all_inner_texts()[:20] == strongest  # the script writes numbers as the page does
    assert rows.count() == 200
    page.click("#more")
    assert rows.count() == 400
    page.fill("#search", "p3(u10) P1(u2)")
    page.check("#zeros")
    page.select_option("#by-degree", "4")
    assert words(page.locator("#shown")) == "1 of 1 functions that fit, of 43758 in the basis."
    assert "P1(u2)·P3(u10)" in words(rows.first)
    page.fill("#search", "no such function")
    assert words(page.locator("#shown")) == "No function fits."


def test_dark_follows_the_system_and_the_button(open_page):
    colour = "getComputedStyle(document.body).backgroundColor"
    page = open_page(FULL(), color_scheme="dark")
    assert page.evaluate(colour) == "rgb(20, 23, 27)"
    page.click("text=Light")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    page.click("text=Dark")
    assert page.evaluate(colour) == "rgb(20, 23, 27)"
    page.emulate_media(media="print")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert page.locator("#theme").is_hidden()


def test_the_page_can_be_printed(open_page):
    printed = open_page(FULL()).pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert (
        2
        <= printed.count(b"/Type /Page\n")
        + printed.count(b"/Type /Page ")
        + printed.count(b"/Type /Page/")
        <= 6
    )


def test_without_javascript_the_essentials_are_there(open_page):
    page = open_page(FULL(), java_script_enabled=False)
    assert page.locator(".circle").is_visible()
    assert page.locator("#rows tr").count() > 5
    assert page.locator("noscript").is_visible()
    assert page.locator("#save-csv").is_hidden()


def test_hostile_text_stays_text(open_page):
    result = FULL()
    provenance = {"plan": {HOSTILE: HOSTILE}, HOSTILE: {HOSTILE: HOSTILE}}
    result = replace(
        result,
        checks=(infocap.errors.Check(HOSTILE),),
        metadata={**result.metadata, "provenance": provenance},
    )
    page = open_page(result, title=HOSTILE)
    assert page.title().startswith("</script><script>alert(1)</script >")
    assert page.locator("img").count() == 0
    page.hover('[data-function="3"]')
    assert page.locator("#tip").is_visible()


def test_every_figure_can_be_saved_as_svg_and_png_in_light_colours_with_text_as_text(
    open_page, tmp_path
):
    page = open_page(FULL(), title="My device", color_scheme="dark")
    figures = page.locator("figure:has(> .drawing)")
    assert figures.count() == 5  # matrix, bars, growth, factors, drift
    svg = download(page, "figure:has(> .drawing) >> nth=0 >> text=SVG", tmp_path)
    assert svg.name == "my-device-capacity-of-each-function.svg"
    drawn = ElementTree.parse(svg).getroot()
    ns = "{http://www.w3.org/2000/svg}"
    texts = ["".join(one.itertext()).strip() for one in drawn.iter(f"{ns}text")]
    assert "degree in u₁" in texts
    assert "var(" not in svg.read_text(encoding="utf-8")
    assert {one.get("fill") for one in drawn.iter(f"{ns}text")} == {
        "rgb(27, 31, 36)"
    }  # ink on paper
    inside = [rect for clip in drawn.iter(f"{ns}clipPath") for rect in clip]
    assert [
        one for one in drawn.iter(f"{ns}rect") if one not in inside
    ] == []  # what was pointed at on the page
    png = download(page, "figure:has(> .drawing) >> nth=1 >> text=PNG", tmp_path)
    assert png.name == "my-device-capacity-by-degree.png"
    picture = np.asarray(Image.open(png).convert("RGB"))
    assert picture.shape == (1200, 1760, 3)
    assert (picture[0, 0] == 255).all()
    for colour in ((0x8E, 0x97, 0x9F), (0x00, 0x72, 0xB2)):  # the constant, one variable
        assert (picture == colour).all(axis=2).sum() > 5000
    assert (
        page.evaluate("document.documentElement.dataset.theme") is None
    )  # the page is dark as before


def test_a_saved_finding_has_its_colours(open_page, tmp_path):
    svg = download(open_page("a slip"), 'figure:has-text("shifted") >> text=SVG', tmp_path)
    paths = ElementTree.parse(svg).getroot().iter("{http://www.w3.org/2000/svg}path")
    colours = {one.get(name) for one in paths for name in ("stroke", "fill")}
    assert {"rgb(0, 114, 178)", "rgb(213, 94, 0)"} <= colours  # the usual, and what was found


def test_a_card_fits_a_telephone_and_a_sheet_and_tells_what_is_pointed_at(open_page, tmp_path):
    card = infocap.report.card(
        FULL(), tmp_path / "card.html", "Tube 7", {"what": "A long glass tube. " * 6}
    )
    page = open_page(card, width=390, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.hover('[data-degree="1"][data-kind="1"]')
    assert "Degree 1, one variable: 1.98" in words(page.locator("#tip"))
    assert page.pdf(format="A4").count(b"/Type /Page\n") <= 1


def test_a_gallery_fits_a_telephone_sorts_and_leads_to_its_cards(open_page, tmp_path):
    kinds = ("one input", "raw", "a sequence", "a slip")
    for kind in kinds:
        infocap.report.card(
            KINDS[kind](), tmp_path / f"{kind}.html", kind, {"what": "A device that was tested"}
        )
    infocap.report.gallery(tmp_path, tmp_path / "gallery.html")
    narrow = open_page(tmp_path / "gallery.html", width=390)
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 390
    page = open_page(tmp_path / "gallery.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200
    names = lambda: [words(one) for one in page.locator("tbody th a").all()]  # noqa: E731
    assert names() == sorted(kinds, key=lambda kind: -KINDS[kind]().total)
    page.click("button:has-text('inputs')")
    assert set(names()[:2]) == {"raw", "a slip"}  # two inputs each
    page.click("button:has-text('total')")
    page.click("button:has-text('total')")
    assert names() == sorted(kinds, key=lambda kind: KINDS[kind]().total)
    page.hover("tbody tr:first-child rect.mark >> nth=1")
    assert "of degree" in words(page.locator("#tip"))
    page.click("tbody th a >> text=raw")
    assert page.title() == "raw"
