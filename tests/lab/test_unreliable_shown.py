"""A total that a warning concerns has no error bar in the terminal, on the page and during a run."""

import html
import re

import numpy as np
import pytest
from click.testing import CliRunner

import infocap
from infocap.errors import Check
from infocap.lab import Plan, SimulatedBench, Store, acquire, status
from infocap.lab.cli import main
from support import ABOUT, REASON, reliable_result, unreliable_result

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")


@pytest.fixture
def every_total_is_unreliable(monkeypatch):
    checks = infocap.diagnostics.CHECKS
    monkeypatch.setitem(checks, "doubt", lambda case: [Check("Doubtful.", unreliable=REASON)])


def shown_in_the_terminal(result, folder):
    """What the command `show` prints of a result, in one line."""
    path = result.save(folder / "result.nc")
    return " ".join(CliRunner().invoke(main, ["show", str(path)]).output.split())


def test_the_terminal_gives_an_unreliable_total_no_interval(tmp_path):
    output = shown_in_the_terminal(unreliable_result(REASON), tmp_path)
    assert ABOUT in output
    assert "(95 %)" not in output.partition("strongest")[0]


def test_the_terminal_gives_a_reliable_total_an_interval(tmp_path):
    output = shown_in_the_terminal(reliable_result(), tmp_path)
    assert "unreliable" not in output
    assert "(95 %)" in output


def test_a_plan_from_a_pilot_qualifies_the_pilots_total(tmp_path):
    path = unreliable_result(REASON).save(tmp_path / "result.nc")
    planned = CliRunner().invoke(main, ["plan", "--pilot", str(path), "--error", "0.1"]).output
    assert f"The pilot: total {ABOUT} of" in " ".join(planned.split())


def body_of(page):
    """The page without its style and its programs."""
    return re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)


def text_of(page):
    """The text of a page that a person reads."""
    without_tags = re.sub("<[^>]+>", "", body_of(page))
    return html.unescape(without_tags).replace("\xa0", " ")


RING_OF_AN_UNRELIABLE_TOTAL = 'stroke="var(--warn-edge)"'


def test_the_page_gives_a_reliable_total_with_its_error_bar():
    page = infocap.report.page(reliable_result())
    assert "The device computes 6.460 ± " in text_of(page)
    assert RING_OF_AN_UNRELIABLE_TOTAL not in body_of(page)


def test_the_page_qualifies_the_total_and_gives_no_interval():
    page = infocap.report.page(unreliable_result(REASON, "a < b"))
    text = text_of(page)
    assert f"The device computes about 6.5 (unreliable: {REASON}; a < b) of at most 10" in text
    assert "a < b" not in page  # only as escaped text
    assert "≈6.5" in text
    assert RING_OF_AN_UNRELIABLE_TOTAL in body_of(page)
    assert "about 6.5found among the functions of this basis" in text
    assert "No interval is given: the warnings below say why" in text
    for words in ("6.460 ± ", "(95 %)", "no more than chance"):
        assert words not in text


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
