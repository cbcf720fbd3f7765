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


def senseless(result, total):
    """The result with values and errors far beyond what they can be, those of its total or not."""
    # The constant, which comes first, is known.
    scale = np.where(result.basis.degrees > 0, VALUE, 1.0)
    changes = {
        "capacity": result.capacity * scale,
        "unbiased": result.unbiased * scale,
        "standard_error": np.where(result.basis.degrees > 0, ERROR, 0.0),
        "without_stretches": result.without_stretches * (ERROR / VALUE * scale),
        "metadata": {},
    }
    if total:
        changes |= {"total": VALUE, "total_standard_error": ERROR}
    law = result.recorded_law
    if law is not None:
        changes["recorded_law"] = replace(
            law,
            plain=law.plain * scale,
            plain_error=np.where(result.basis.degrees > 0, ERROR, 0.0),
            delay_capacity=law.delay_capacity * VALUE,
            delay_error=np.full_like(law.delay_error, ERROR),
            beyond_present=VALUE,
            beyond_present_error=ERROR,
        )
    return replace(result, **changes)


@pytest.fixture(params=["declared", "recorded"], scope="module")
def law(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["total", "parts"], scope="module")
def result(law, request):
    """A result whose total cannot be told, or whose sums and functions cannot although it can."""
    return senseless(measured(law, 1), total=request.param)


@pytest.fixture(scope="module")
def parts(law):
    """A result whose total can be told, but none of its sums and functions."""
    return senseless(measured(law, 1), total=False)


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


def test_sums_of_a_known_total_cannot_be_told_one_by_one(parts, law):
    text = repr(parts)
    assert f"total {parts.total_in_words} of at most" in text
    assert re.search(r"degree  1 +cannot be told", text)
    assert re.search(r"memory capacity cannot be told", text)
    in_words = "\n".join(summary(parts))
    assert re.search(r"^ +1 +cannot be told$", in_words, re.MULTILINE)
    if law == "recorded":
        assert "beyond the present input cannot be told" in text
        assert re.search(r"recall of u\[t-1\] cannot be told", text)
        assert re.search(r"delay  1  cannot be told", in_words)
    latex = parts.to_latex() + parts.to_latex("function")
    assert "cannot be told" in latex
    assert_no_senseless_number(latex)


def test_errors_of_sums_come_back_from_every_file(parts, tmp_path):
    """A table has no stretches, and knows the errors of whole degrees all the same."""
    known = parts.by_degree(errors=True).standard_error.to_numpy()
    assert np.all(known[1:] > parts.rank)
    for suffix in (".nc", ".csv"):
        loaded = infocap.load_result(parts.save(tmp_path / f"parts{suffix}"))
        errors = loaded.by_degree(errors=True).standard_error.to_numpy()
        assert errors[1:] == pytest.approx(known[1:]), suffix
        assert re.search(r"degree  1 +cannot be told", repr(loaded)), suffix


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


def shown_in(result, show, folder):
    """What a reader sees of a page, a card, a picture or a gallery of a result."""
    path = folder / "shown.html"
    if show == "save":
        infocap.report.save(result, path)
    elif show == "card":
        infocap.report.card(result, path, "a device")
    elif show == "picture":
        path = path.with_suffix(".svg")
        infocap.report.card(result, path, "a device")
    else:
        result.save(folder / "device.nc")
        infocap.report.gallery(folder, path)
    plt.close("all")
    return visible(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("show", ["save", "card", "picture", "gallery"])
def test_pages(parts, show, tmp_path):
    assert_no_senseless_number(shown_in(parts, show, tmp_path))


def test_a_gallery_says_of_a_total_that_it_cannot_be_told(law, tmp_path):
    text = shown_in(senseless(measured(law, 1), total=True), "gallery", tmp_path)
    assert "cannot be told" in text
    assert_no_senseless_number(text)


def test_comparisons(result, law):
    other = measured(law, 2)
    for pair in ((result, other), (other, result)):
        comparison = infocap.compare(*pair)
        assert "cannot be told" in repr(comparison)
        assert_no_senseless_number(repr(comparison))


def test_pictures_of_comparisons(parts, law):
    comparison = infocap.compare(measured(law, 2), parts)
    assert_no_senseless_number(words_of(infocap.plot.compare(comparison)))


def words_of(ax):
    """All texts of a drawing, the labels of its axes among them."""
    ax.figure.canvas.draw()
    texts = " ".join(text.get_text() for text in ax.figure.findobj(plt.Text))
    plt.close(ax.figure)
    return texts


@pytest.mark.parametrize("name", ["capacity_bars", "memory_function", "capacity_by_delay"])
def test_pictures(parts, name):
    assert_no_senseless_number(words_of(getattr(infocap.plot, name)(parts)))


@pytest.mark.parametrize("kind", ["total", "parts"])
def test_components_of_channels_hold_at_least_nothing_that_cannot_be_told(kind, law):
    result = senseless(measured(law, 1), total=kind == "total")
    components = infocap.samples.Components(n_channels=100, n_components=4)
    result = replace(result, components=components)
    other = replace(measured(law, 2), components=components)
    comparison = repr(infocap.compare(other, result))
    assert "at least cannot be told" not in repr(result) + result.short_claim(result.total_in_words)
    assert "at least cannot be told" not in comparison
    assert_no_senseless_number(comparison)


def test_lines_of_capacities_that_cannot_be_told_have_gaps(parts):
    ax = infocap.plot.memory_function(parts)
    drawn = np.concatenate([np.ravel(line.get_ydata()) for line in ax.lines])
    assert not np.any(np.nan_to_num(np.abs(drawn.astype(float))) > 1)
    assert np.isnan(drawn.astype(float)).any()
    plt.close(ax.figure)


def test_bars_of_degrees_that_cannot_be_told_stay_empty(parts):
    assert parts.sums_by_degree().max() > 1e5
    for ax in (infocap.plot.capacity_bars(parts), infocap.plot.degree_bars({"a": parts})):
        heights = [bar.get_height() for bar in ax.patches]
        assert max(heights) <= 1.0
        plt.close(ax.figure)


def test_sweeps(result):
    sweep = infocap.workflow.Sweep({"power": (1.0, 2.0)}, (result, result))
    assert_no_senseless_number(repr(sweep))


def test_the_page_of_a_sweep(parts):
    sweep = infocap.workflow.Sweep({"power": (1.0, 2.0)}, (parts, parts))
    assert_no_senseless_number(visible(infocap.report.page(sweep)))
