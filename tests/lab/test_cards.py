"""Capacity cards and galleries: what they say, that they carry exact numbers, and that no text becomes markup."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from report_results import HOSTILE, KINDS, Elements, page_of, words

import infocap
from infocap.errors import Check, DataError, ParameterError
from infocap.lab.cli import main
from infocap.report import card, gallery

FULL = KINDS["two inputs, everything measured"]
SVG = "{http://www.w3.org/2000/svg}"
SMALL = [kind for kind in KINDS if kind != "43758 functions"]


def texts(path):
    """What a picture says."""
    return " ".join("".join(one.itertext()) for one in ElementTree.parse(path).iter(f"{SVG}text"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_card_of_every_kind_of_result_loads_back_exactly(kind, tmp_path):
    result = KINDS[kind]()
    path = card(
        result,
        tmp_path / "card.html",
        "Tube 7",
        {"what": "glass", "cost per inference": "3 nJ"},
    )
    back = infocap.load_result(path)
    for name in ("capacity", "raw", "unbiased", "standard_error", "p_value", "threshold"):
        assert np.array_equal(getattr(back, name), getattr(result, name))
    for name in (
        "total",
        "total_standard_error",
        "noise_limited_total",
        "checks",
        "growth",
        "drift",
        "maximum",
        "rank",
    ):
        assert getattr(back, name) == getattr(result, name)
    assert back.basis.labels == result.basis.labels
    told = {"name": "Tube 7", "what": "glass", "cost per inference": "3 nJ"}
    assert back.metadata["provenance"]["device"] == told
    again = card(back, tmp_path / "again.html")  # all that the first said
    assert infocap.load_result(again).metadata["provenance"]["device"] == told


@pytest.mark.parametrize("kind", ["two inputs, everything measured", "a sequence"])
def test_a_report_loads_back_too(kind, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page_of(kind), encoding="utf-8")
    assert np.array_equal(infocap.load_result(path).capacity, KINDS[kind]().capacity)


@pytest.mark.parametrize("kind", SMALL)
def test_a_card_tells_what_the_device_computes_and_how_it_was_measured(kind, tmp_path):
    result = KINDS[kind]()
    path = card(
        result, tmp_path / "card.html", "Tube 7", {"what": "glass", "cost per inference": "3 nJ"}
    )
    page = path.read_text(encoding="utf-8")
    said = words(page)
    found = Elements(page)
    assert found.open == []
    ids = [value for key, value in found.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    assert not {"link", "img", "iframe", "a"} & set(found.tags)
    for one in (
        "Tube 7",
        "glass",
        "3 nJ",
        f"of at most {result.maximum}",
        "Capacity by degree",
        result.method,
    ):
        assert one in said
    assert (result.qualified_total or f"{result.total:.1f}") in said
    assert ("Capacity by delay" in said) == (result.basis.memory > 0) == ("memory capacity" in said)
    assert ("what noise allows" in said) == (result.noise_limited_total is not None)
    assert ("No warnings." in said) == (not result.warnings)
    assert all(check[1:40] in said for check in result.warnings)


@pytest.mark.parametrize("kind", SMALL)
def test_a_card_as_a_picture_stands_alone(kind, tmp_path):
    result = KINDS[kind]()
    path = card(result, tmp_path / "card.svg", "Tube 7", {"what": "glass"})
    drawn = ElementTree.parse(path).getroot()
    text = path.read_text(encoding="utf-8")
    assert (drawn.get("width"), drawn.get("height")) == ("960", "640")
    assert "var(" not in text
    assert not re.findall(r"<(?:style|script|image|foreignObject)", text)
    links = re.findall(r'(?:href="|url\()(.)', text)
    assert links == ["#"] * len(links)
    said = texts(path).replace("\xa0", " ")
    assert "Tube 7" in said
    assert f"of at most {result.maximum}" in said
    assert "found among the functions of this basis" in said
    assert f"warnings: {len(result.warnings) or 'none'}" in said
    wanted = (
        "largest delay"
        if result.basis.memory
        else "degree in u₁"
        if result.basis.n_inputs == 2
        else "strongest"
    )
    assert wanted in said


def test_no_text_on_a_card_or_in_a_gallery_can_become_markup(tmp_path):
    result = replace(
        FULL(), checks=(Check(HOSTILE),), metadata={"provenance": {"device": {HOSTILE: HOSTILE}}}
    )
    about = {"what": HOSTILE, HOSTILE: HOSTILE}
    for suffix in (".html", ".svg"):
        card(result, tmp_path / f"card{suffix}", HOSTILE, about)
    loaded = infocap.load_result(tmp_path / "card.html")
    assert loaded.metadata["provenance"]["device"]["name"] == HOSTILE
    ElementTree.parse(tmp_path / "card.svg")
    gallery(tmp_path, tmp_path / "gallery.html", HOSTILE)
    for name in ("card.html", "gallery.html"):
        found = Elements((tmp_path / name).read_text(encoding="utf-8"))
        assert "img" not in found.tags
        assert found.tags.count("script") == (2 if name == "card.html" else 1)
        assert not [key for key, _ in found.attributes if key.startswith("on")]


def test_a_plan_can_say_what_its_device_is(tmp_path):
    device = {"what": "Two photodiodes", "cost per inference": "3 nJ"}
    plan = infocap.lab.Plan(
        n_inputs=2, max_degree=2, n_samples=64, title="Diodes", metadata={"device": device}, seed=1
    )
    bench = infocap.lab.SimulatedBench(lambda u: u**2)
    recording = infocap.lab.acquire(plan, bench, tmp_path / "run.db", progress=False)
    path = card(infocap.estimate(recording), tmp_path / "card.html")
    assert infocap.load_result(path).metadata["provenance"]["device"] == {
        "name": "Diodes",
        **device,
    }
    for odd in (
        "text",
        ["a"],
        {"plan": "x"},
        {"plan": {"metadata": 3, "title": 5}},
        {"device": "glass"},
    ):
        card(replace(FULL(), metadata={"provenance": odd}), tmp_path / "odd.html")


def test_a_gallery_compares_all_that_lies_in_a_folder(tmp_path):
    kinds = {
        "one input": "a b.html",
        "raw": "raw.html",
        "ten inputs": "ten.nc",
        "a sequence": "seq.csv",
        "a slip": "s.html",
    }
    for kind, name in kinds.items():
        path = tmp_path / name
        result = KINDS[kind]()
        if path.suffix == ".html":
            card(result, path, kind, {"what": f"what {kind}"})
        else:
            result.save(path)
    card(KINDS["raw"](), tmp_path / "picture.svg")  # holds no numbers, so it is no device
    KINDS["one input"]().save(tmp_path / "a b.nc")  # the same device again
    (tmp_path / "notes.html").write_text("<p>no result")
    (tmp_path / "readouts.csv").write_text("1,2\n")
    out = tmp_path / "pages"
    out.mkdir()
    names = gallery(tmp_path, out / "gallery.html", "Ours")
    page = (out / "gallery.html").read_text(encoding="utf-8")
    order = sorted(kinds, key=lambda kind: -KINDS[kind]().total)
    named = {"ten inputs": "ten", "a sequence": "seq"}
    assert names == [named.get(kind, kind) for kind in order]
    assert re.findall(r'<th scope="row"><a href="(.*?)"', page) == [
        f"../{kinds[kind].replace(' ', '%20')}"
        for kind in order
        if Path(kinds[kind]).suffix == ".html"
    ]
    assert "5 devices, 1 of them with memory." in words(page)
    rows = re.search(r"<tbody>(.*?)</tbody>", page, re.DOTALL).group(1).split("</tr>")[:-1]
    longest = max(KINDS[kind]().maximum for kind in kinds)
    for row, kind in zip(rows, order, strict=True):
        result = KINDS[kind]()
        assert f"<td>{result.maximum}</td>" in row
        width = float(re.search(r'<td><svg width="([\d.]+)%"', row).group(1))
        assert width == pytest.approx(100 * result.maximum / longest, abs=0.06)
        parts = re.findall(
            r'width="([\d.]+)%" height="100%" fill="[^"]*" class="mark" data-tip="\S+\nof (?:degree|the constant)',
            row,
        )
        assert sum(map(float, parts)) == pytest.approx(
            100 * result.capacity.sum() / result.maximum, abs=0.1
        )
    found = Elements(page)
    ids = [value for key, value in found.attributes if key == "id"]
    assert len(ids) == len(set(ids))


def test_an_empty_folder_and_senseless_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="holds no card and no result; make one with `infocap card"):
        gallery(tmp_path, tmp_path / "gallery.html")
    with pytest.raises(ParameterError, match=r"'.png'` is not one of"):
        card(FULL(), tmp_path / "card.png")
    with pytest.raises(DataError, match="not finite numbers"):
        card(replace(FULL(), capacity=np.full(len(FULL().basis), np.nan)), tmp_path / "card.svg")
    (tmp_path / "notes.html").write_text("<p>no result")
    with pytest.raises(
        DataError, match=r"notes.html carries no numbers of infocap; give a report or a card"
    ):
        infocap.load_result(tmp_path / "notes.html")
    path = card(FULL(), tmp_path / "card.html")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"capacity":[', '"capacity":[0.5,', 1), encoding="utf-8")
    with pytest.raises(DataError, match=r"card.html is damaged"):
        infocap.load_result(path)


def run(*words_):
    return CliRunner().invoke(main, [str(word) for word in words_])


def test_the_commands_make_cards_and_a_gallery_that_others_read(tmp_path):
    result = FULL().save(tmp_path / "result.nc")
    about = ["--about", "what", "glass = silica", "--about", "cost per inference", "3 nJ"]
    done = run("card", result, "-o", tmp_path / "card.html", "--title", "Tube 7", *about)
    assert done.exit_code == 0, done.output
    assert run("card", result, "-o", tmp_path / "other.svg").exit_code == 0
    shown = run("show", tmp_path / "card.html")
    assert "Total capacity" in shown.output
    compared = run("compare", tmp_path / "card.html", result)
    assert "0 of 28 functions differ" in compared.output
    refused = run("show", tmp_path / "other.svg")  # a picture holds no numbers
    assert isinstance(refused.exception, ParameterError)
    done = run("gallery", tmp_path, "-o", tmp_path / "gallery.html")
    assert "1 device: Tube 7" in done.output  # which is there as a result and as a card
    assert "Tube 7" in (tmp_path / "gallery.html").read_text(encoding="utf-8")
    assert (
        run("gallery", tmp_path, "-o", tmp_path / "gallery.html").exit_code == 0
    )  # our own page is replaced
    infocap.report.save(infocap.load_result(result), tmp_path / "report.html")
    assert "1 device: Tube 7" in run("gallery", tmp_path, "-o", tmp_path / "gallery.html").output
    assert run("card", result, "-o", tmp_path / "other.svg").exit_code == 0
    assert json.dumps("glass = silica") in (tmp_path / "card.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["card", "result.nc", "-o", "card.pdf"], "'.pdf' is not one of '.html', '.svg'"),
        (
            ["card", "result.nc", "-o", "own.svg"],
            "own.svg is there already and is not a page of infocap",
        ),
        (["gallery", ".", "-o", "result.nc"], "'.nc' is not one of '.html'"),
        (
            ["gallery", ".", "-o", "own.html"],
            "own.html is there already and is not a page of infocap",
        ),
    ],
)
def test_mistakes_in_the_commands_are_said_in_one_sentence(command, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    KINDS["raw"]().save("result.nc")
    Path("own.svg").write_text("<svg/>")
    Path("own.html").write_text("<p>mine")
    done = run(*command)
    assert isinstance(done.exception, ParameterError)
    assert said in str(done.exception)
    assert (Path("own.svg").read_text(), Path("own.html").read_text()) == ("<svg/>", "<p>mine")
