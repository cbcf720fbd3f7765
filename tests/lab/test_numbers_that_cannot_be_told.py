"""No number is shown whose error is larger than its range (rule 2), wherever results are shown."""

import re
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

import infocap
from infocap.lab.cli._summary import summary

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")

# What a senseless number and its error look like: of the order of these factors.
VALUE = 7e6
ERROR = 9e7
# Numbers with this many digits before the point, or an exponent, are shown nowhere else.
SENSELESS = re.compile(r"(?<![\w.#])\d{6,}(?![\w])|\d\.\d+e\+\d\d")


def measured(law, seed):
    generator = np.random.default_rng(seed)
    u = generator.uniform(-1, 1, 900)
    x = np.column_stack([u, np.roll(u, 1) * u, np.roll(u, 2), np.roll(u, 3)])
    x = x + 0.1 * generator.standard_normal(x.shape)
    basis = infocap.delayed_basis("legendre", max_delay={1: 5, 2: 2})
    return infocap.estimate(u, x, basis, law=law, washout=20)


def senseless(result):
    """The result with values and errors far beyond what they can be."""
    # The constant, which comes first, is known.
    scale = np.where(result.basis.degrees > 0, VALUE, 1.0)
    changes = {
        "total": VALUE,
        "total_standard_error": ERROR,
        "capacity": result.capacity * scale,
        "unbiased": result.unbiased * scale,
        "standard_error": np.where(result.basis.degrees > 0, ERROR, 0.0),
        "without_stretches": result.without_stretches * (ERROR / VALUE * scale),
        "metadata": {},
    }
    law = result.recorded_law
    if law is not None:
        changes["recorded_law"] = replace(
            law,
            plain=law.plain * scale,
            plain_error=np.where(result.basis.degrees > 0, ERROR, 0.0),
            degree_error=np.array([0.0, ERROR, ERROR]),
            delay_capacity=law.delay_capacity * VALUE,
            delay_error=np.full_like(law.delay_error, ERROR),
            beyond_present=VALUE,
            beyond_present_error=ERROR,
        )
    return replace(result, **changes)


@pytest.fixture(params=["declared", "recorded"], scope="module")
def law(request):
    return request.param


@pytest.fixture(scope="module")
def result(law):
    return senseless(measured(law, 1))


def assert_no_senseless_number(text):
    text = re.sub(r"\s+", " ", text)
    found = SENSELESS.search(text)
    assert found is None, text[max(found.start() - 100, 0) : found.end() + 50]


def visible(page):
    """What a reader sees of a page: its text and the words of its tooltips, not its numbers."""
    page = re.sub(r"(?s)<(script|style).*?</\1>", " ", page)
    tips = " ".join(re.findall(r'(?:data-tip|aria-label)="([^"]*)"', page))
    return re.sub("<[^>]*>", " ", page) + tips


def test_a_sensible_result_shows_its_numbers(law):
    """The words are absent where all can be told."""
    result = measured(law, 1)
    assert "cannot be told" not in repr(result) + "\n".join(summary(result))


def test_terminal(result):
    for text in (repr(result), "\n".join(summary(result))):
        assert "cannot be told" in text
        assert_no_senseless_number(text)


def test_explorations(result):
    rounds = (infocap.workflow.Round({1: 5, 2: 2}, 20, 5, VALUE),)
    exploration = infocap.workflow.Exploration(
        basis=result.basis,
        result=result,
        rounds=rounds,
        undetected=VALUE,
        undetected_standard_error=ERROR,
    )
    assert_no_senseless_number(repr(exploration))


@pytest.mark.parametrize("show", ["save", "card", "picture", "gallery"])
def test_pages(result, show, tmp_path):
    path = tmp_path / "shown.html"
    if show == "save":
        infocap.report.save(result, path)
    elif show == "card":
        infocap.report.card(result, path, "a device")
    elif show == "picture":
        path = path.with_suffix(".svg")
        infocap.report.card(result, path, "a device")
    else:
        result.save(tmp_path / "device.nc")
        infocap.report.gallery(tmp_path, path)
    plt.close("all")
    assert_no_senseless_number(visible(path.read_text(encoding="utf-8")))


def test_comparisons(result, law):
    other = measured(law, 2)
    for pair in ((result, other), (other, result)):
        comparison = infocap.compare(*pair)
        assert_no_senseless_number(repr(comparison))
        assert_no_senseless_number(words_of(infocap.plot.compare(comparison)))


def words_of(ax):
    """All texts of a drawing, the labels of its axes among them."""
    ax.figure.canvas.draw()
    texts = " ".join(text.get_text() for text in ax.figure.findobj(plt.Text))
    plt.close(ax.figure)
    return texts


@pytest.mark.parametrize("name", ["capacity_bars", "memory_function", "capacity_by_delay"])
def test_pictures(result, name):
    assert_no_senseless_number(words_of(getattr(infocap.plot, name)(result)))


def test_sweeps(result):
    sweep = infocap.workflow.Sweep({"power": (1.0, 2.0)}, (result, result))
    assert_no_senseless_number(repr(sweep))
