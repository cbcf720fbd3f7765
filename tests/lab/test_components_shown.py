"""Wherever a result of components is shown, it is a lower bound for all channels and nothing else."""

import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import infocap
from infocap.errors import DataWarning
from infocap.lab.cli import main

BASIS = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
N_CHANNELS = 700


@pytest.fixture(scope="module")
def recording():
    """A device with more channels than samples."""
    rng = np.random.default_rng(1)
    u = rng.uniform(-1, 1, (240, 2))
    mixing = 0.1 * rng.standard_normal((6, N_CHANNELS))
    x = BASIS(u)[:, 1:7] @ mixing + rng.standard_normal((240, N_CHANNELS))
    return infocap.Recording(u, x, np.arange(240))


@pytest.fixture(scope="module")
def result(recording):
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        return infocap.estimate(recording, basis=BASIS, n_components=8)


def refuse_other_claims(text):
    """Components must not be taken for all that there is."""
    for claim in ("of at most", "of 9 ", "of 9<", "not found: lost to noise"):
        assert claim not in text, claim


def test_a_page_says_at_least_and_keeps_the_components(result, tmp_path):
    path = infocap.report.save(result, tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    assert "The 700 channels hold at least <strong>" in text
    assert "8 principal components" in text
    refuse_other_claims(text)
    assert infocap.load_result(path).components == result.components


def test_cards_and_galleries_say_at_least(result, tmp_path):
    page = infocap.report.card(result, tmp_path / "card.html", "Spectrometer")
    picture = infocap.report.card(result, tmp_path / "card.svg", "Spectrometer")
    assert "The 700 channels hold at least <strong>" in page.read_text(encoding="utf-8")
    assert "in 700 channels" in picture.read_text(encoding="utf-8")
    for path in (page, picture):
        refuse_other_claims(path.read_text(encoding="utf-8"))
    infocap.report.gallery(tmp_path, tmp_path / "gallery_of_one.html")
    text = (tmp_path / "gallery_of_one.html").read_text(encoding="utf-8")
    assert "≥ " in text
    assert "8 principal components of 700 channels" in text


def test_plots_say_at_least(result):
    ax = infocap.plot.capacity_bars(result)
    assert any(text.get_text().startswith(r"$\geq$") for text in ax.texts)


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_commands_take_the_option_and_say_at_least(recording, tmp_path):
    path = tmp_path / "run.nc"
    recording.save(path)
    refused = run("estimate", path, "--max-degree", 4)
    assert "pass --n-components auto" in str(refused.exception)
    done = run("estimate", path, "--max-degree", 4, "--n-components", 8, "-o", tmp_path / "r.nc")
    assert done.exit_code == 0, done.output
    assert "The 700 channels hold at least" in done.output
    refuse_other_claims(done.output)
    shown = run("show", tmp_path / "r.nc")
    assert "The 700 channels hold at least" in shown.output
    diagnosed = run("diagnose", path, "--n-components", "auto")
    assert diagnosed.exit_code == 0, diagnosed.output
    wrong = run("estimate", path, "--n-components", "many")
    assert wrong.exit_code == 2
    assert "'many' is neither a whole number nor auto" in wrong.output
