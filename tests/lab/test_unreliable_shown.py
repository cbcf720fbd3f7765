"""A total that a warning concerns has no error bar in the terminal, on the page and during a run."""

import functools
import html
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import infocap
from infocap._formatting import rounded
from infocap.errors import Check
from infocap.lab import Plan, SimulatedBench, Store, acquire, status
from infocap.lab.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
BASIS = infocap.product_basis("legendre", 2, 4)
DEVICE = infocap.systems.RandomFeatures(2, 9, noise=0.05, seed=5)
REASON = "half of the rows are doubtful"


@functools.cache
def reliable_result():
    """A result that no warning concerns, with growth and repeats."""
    u = infocap.draw(BASIS, 512, seed=1)
    recording = infocap.Recording(u, DEVICE(u, seed=1), np.arange(512), repeats=DEVICE(u, seed=2))
    return infocap.estimate(recording, basis=BASIS)


def unreliable_result(*reasons):
    """The same result with warnings that concern its total."""
    checks = [Check(f"{reason}; measure again.", unreliable=reason) for reason in reasons]
    return replace(reliable_result(), checks=tuple(checks))


def qualified_total(result, *reasons):
    """The words that stand in place of an error bar."""
    return f"about {rounded(result.total, result.total_standard_error)} (unreliable: {'; '.join(reasons)})"


@pytest.fixture
def every_total_is_unreliable(monkeypatch):
    checks = infocap.diagnostics.CHECKS
    monkeypatch.setitem(checks, "doubt", lambda case: [Check("Doubtful.", unreliable=REASON)])


@pytest.mark.parametrize("reasons", [(), (REASON,)], ids=["reliable", "unreliable"])
def test_the_terminal_qualifies_an_unreliable_total(reasons, tmp_path):
    result = unreliable_result(*reasons)
    path = result.save(tmp_path / "result.nc")
    shown = " ".join(CliRunner().invoke(main, ["show", str(path)]).output.split())
    assert (qualified_total(result, *reasons) in shown) == bool(reasons)
    assert ("with 95 % confidence between" in shown) == (not reasons)


def test_a_plan_from_a_pilot_qualifies_the_pilots_total(tmp_path):
    path = unreliable_result(REASON).save(tmp_path / "result.nc")
    planned = CliRunner().invoke(main, ["plan", "--pilot", str(path), "--error", "0.1"]).output
    words = f"The pilot: total {qualified_total(reliable_result(), REASON)} of"
    assert words in " ".join(planned.split())


def body_of(page):
    """The page without its style and its programs."""
    return re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)


def text_of(page):
    """The text of a page that a person reads."""
    without_tags = re.sub("<[^>]+>", "", body_of(page))
    return html.unescape(without_tags).replace("\xa0", " ")


def test_the_page_qualifies_the_total_and_gives_no_interval():
    reasons = (REASON, "a < b")
    pages = [
        infocap.report.page(result) for result in (reliable_result(), unreliable_result(*reasons))
    ]
    bodies = [re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL) for page in pages]
    reliable_text, unreliable_text = map(text_of, bodies)
    total = reliable_result().total
    with_error_bar = f"{total:.3f} ± "
    rounded_total = rounded(total, None)

    assert f"The device computes {with_error_bar}" in reliable_text
    assert 'stroke="var(--warn-edge)"' not in body_of(pages[0])

    headline = qualified_total(reliable_result(), *reasons)
    assert f"The device computes {headline} of at most 10" in unreliable_text
    assert "a < b" not in pages[1]  # only as escaped text
    assert f"≈{rounded_total}" in unreliable_text
    assert 'stroke="var(--warn-edge)"' in body_of(pages[1])  # the ring
    assert f"about {rounded_total}found among the functions of this basis" in unreliable_text
    assert "No interval is given: the warnings below say why" in unreliable_text
    for words in (with_error_bar, "95 % interval", "no more than chance"):
        assert words not in unreliable_text


def test_a_run_goes_on_while_its_total_is_unreliable(tmp_path, every_total_is_unreliable):
    plan = Plan(n_inputs=2, max_degree=2, n_samples=256, seed=1)
    with Store(tmp_path / "part.db", plan) as store:
        for measurement in list(store.remaining())[:100]:
            readouts = np.hstack([measurement.u, measurement.u**2])
            store.record(measurement.number, readouts, measurement.kind)
    assert status(tmp_path / "part.db").advice == f"the total is unreliable: {REASON}."

    bench = SimulatedBench(lambda u: np.hstack([u, u**2]))
    recording = acquire(plan, bench, tmp_path / "run.db", until=0.5, progress=False)
    assert len(recording.design_index) == 256
    watched = CliRunner().invoke(main, ["watch", str(tmp_path / "run.db"), "--once"]).output
    assert f"total about 5.0 (unreliable: {REASON})" in watched
    assert "…" not in watched  # no intervals
    assert status(tmp_path / "run.db").result.unreliable == REASON
