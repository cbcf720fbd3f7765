"""A total that a warning concerns is "about 5.3 (unreliable: ...)" wherever it is said, and never has an error bar."""

import functools
import html
import re
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
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
WHY = "half of the rows are doubtful"


@functools.cache
def sound():
    """A result that no warning concerns, with growth and repeats."""
    u = infocap.draw(BASIS, 512, seed=1)
    recording = infocap.Recording(u, DEVICE(u, seed=1), np.arange(512), repeats=DEVICE(u, seed=2))
    return infocap.estimate(recording, basis=BASIS)


def doubted(*why):
    """The same result with warnings that concern its total."""
    checks = tuple(Check(f"{one}; measure again.", unreliable=one) for one in why or [WHY])
    return replace(sound(), checks=checks)


def headline(result, *why):
    return f"about {rounded(result.total, result.total_standard_error)} (unreliable: {'; '.join(why or [WHY])})"


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def doubting(monkeypatch):
    """Every estimate of the test finds its total unreliable."""
    monkeypatch.setitem(
        infocap.diagnostics.CHECKS, "doubt", lambda case: [Check("Doubtful.", unreliable=WHY)]
    )


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (81.27, 4.0, "81"),
        (81.27, 0.001, "81"),
        (81.27, None, "81"),
        (81.27, 30.0, "80"),
        (123.4, 1.0, "120"),
        (9.53, 0.3, "9.5"),
        (9.53, 1.2, "10"),
        (9.97, 0.01, "10"),
        (3.2, 20.0, "3"),
        (0.0, 0.1, "0"),
        (0.0314, 1e-5, "0.031"),
        (-5.24, 0.1, "-5.2"),
        (5.0, float("nan"), "5.0"),
    ],
)
def test_an_unreliable_number_has_two_digits_at_most_and_none_below_its_error(value, error, said):
    assert rounded(value, error) == said


def test_the_phrases_of_all_warnings_make_a_total_unreliable():
    assert sound().unreliable == sound().qualified_total == ""
    assert (
        doubted("few samples", "readouts shifted", "few samples").unreliable
        == "few samples; readouts shifted"
    )
    unconcerned = (
        Check("3 channels are saturated."),
        Check("put right.", "note", unreliable="never"),
    )
    assert replace(sound(), checks=unconcerned).unreliable == ""
    assert doubted().total_interval() == sound().total_interval()  # still there for who wants it


def test_the_summary_qualifies_the_total():
    lines = repr(doubted()).splitlines()
    assert (
        lines[0]
        == f"CapacityResult: total {headline(sound())} of at most 10 (9 readouts and the constant)"
    )
    assert f"found about {rounded(sound().total, None)} of about" in lines[2]
    assert f"total {sound().total:.3f} ± " in repr(sound())


@pytest.mark.parametrize("suffix", [".nc", ".csv"])
def test_files_keep_why_a_total_is_unreliable(tmp_path, suffix):
    again = infocap.load_result(doubted("one", "two").save(tmp_path / f"result{suffix}"))
    assert again.unreliable == "one; two"
    assert repr(again) == repr(doubted("one", "two"))


@pytest.mark.parametrize("suffix", ["nc", "csv"])
def test_old_files_without_such_words_have_reliable_totals(suffix):
    old = infocap.load_result(Path(__file__).parent / "old" / f"result.{suffix}")
    assert old.unreliable == ""


def test_the_terminal_qualifies_the_total(tmp_path):
    for result, said in ((sound(), "with 95 % confidence between"), (doubted(), headline(sound()))):
        path = result.save(tmp_path / "result.nc")
        shown = " ".join(CliRunner().invoke(main, ["show", str(path)]).output.split())
        assert said in shown
        assert ("confidence between" in shown) == (result.unreliable == "")
    planned = CliRunner().invoke(main, ["plan", "--pilot", str(path), "--error", "0.1"]).output
    assert f"The pilot: total {headline(sound())} of" in " ".join(planned.split())


def test_the_page_qualifies_the_total_and_gives_no_interval():
    pages = [infocap.report.page(one) for one in (sound(), doubted(WHY, "a < b"))]
    read = [re.sub(r"<(style|script).*?</\1>", "", one, flags=re.DOTALL) for one in pages]
    fine, said = (html.unescape(re.sub("<[^>]+>", "", one)).replace("\xa0", " ") for one in read)
    whole, about = f"{sound().total:.3f} ± ", f"about {rounded(sound().total, None)}"
    assert f"The device computes {whole}" in fine
    assert 'stroke="var(--warn-edge)"' not in read[0]
    assert f"The device computes {headline(sound(), WHY, 'a < b')} of at most 10" in said
    assert "a < b" not in pages[1]  # only as text
    assert f"≈{rounded(sound().total, None)}" in said
    assert 'stroke="var(--warn-edge)"' in read[1]  # the ring
    assert f"{about}found among the functions of this basis" in said
    for words in (whole, "95 % interval", "no more than chance"):
        assert words not in said
    assert "No interval is given: the warnings below say why" in said
    tips = [re.findall(r"samples\ntotal ([^\"]+)", one) for one in read]  # of the growth
    assert [["±" in tip for tip in page] for page in tips] == [
        [True] * len(tips[0]),
        [False] * len(tips[0]),
    ]


def test_pictures_of_capacities_say_why_the_total_is_unreliable():
    for draw in (infocap.plot.capacity_matrix, infocap.plot.capacity_bars):
        ax = draw(doubted("cost of $2 and $3"))
        fraction = next(one for one in ax.texts if "frac" in one.get_text())
        assert rf"≈{rounded(sound().total, None)}}}" in fraction.get_text()
        assert fraction.get_bbox_patch().get_linestyle() == "--"
        assert "unreliable: cost of \\$2" in " ".join(ax.get_title().split())
        ax.figure.canvas.draw()
        assert draw(sound()).get_title() == ""


def test_growth_of_an_unreliable_total_has_open_symbols_and_no_interval():
    fine, ax = infocap.plot.growth(sound()), infocap.plot.growth(doubted())
    assert len(fine.collections) == 1
    assert len(ax.collections) == 0
    assert [one.lines[0].get_markerfacecolor() == "white" for one in (fine, ax)] == [False, True]
    assert headline(sound()) in " ".join(ax.get_legend().get_title().get_text().split())
    labels = [one.get_text() for one in ax.get_legend().get_texts()]
    assert "total capacity, unreliable" in labels
    assert "95 % interval" not in labels


def test_a_comparison_qualifies_totals_and_their_differences():
    comparison = infocap.compare(sound(), doubted(), sound(), names=["a", "b", "c"])
    rows = {
        line.split()[0]: line
        for line in repr(comparison).splitlines()
        if line.startswith(("  a ", "  b ", "  c "))
    }
    assert headline(sound()) in rows["b"]
    assert rows["b"].split()[-2:] == ["about", "0"]
    assert "±" not in rows["b"]
    assert rows["c"].count("±") == 2
    assert any("the total of b is unreliable" in check for check in comparison.checks)
    labels = [one.get_text() for one in infocap.plot.compare(comparison).get_legend().get_texts()]
    assert " ".join(labels[1].split()) == f"b: {headline(sound())} of 10"
    assert " ± " in labels[0]


def test_a_sweep_says_which_totals_are_unreliable(monkeypatch):
    def doubt(case):
        if case.evidence.rank > 5:
            yield Check("Doubtful.", unreliable=WHY)

    monkeypatch.setitem(infocap.diagnostics.CHECKS, "doubt", doubt)
    make = functools.partial(infocap.systems.RandomFeatures, 2, gain=3.0, noise=0.5)
    found = infocap.sweep(make, {"n_readouts": [3, 6]}, BASIS, 1024, seed=1, progress=False)
    first, second = repr(found).splitlines()[-2:]
    assert " ± " in first
    assert second.startswith(f"  n_readouts=6: {headline(found.results[1])} of 7")
    assert (
        found.to_dataframe().unreliable.tolist()
        == found.to_xarray().unreliable.values.tolist()
        == ["", WHY]
    )

    task = infocap.tasks.two_spirals(200)
    scores = [infocap.tasks.accuracy(make(**point), task) for point in found.points]
    relation = infocap.tasks.capacity_accuracy(found, scores)
    assert "1 of the totals are unreliable" in repr(relation)
    assert relation.to_xarray().unreliable.values.tolist() == ["", WHY]
    for against in (None, "n_readouts"):
        ax = infocap.tasks.plot.capacity_accuracy(relation, against=against)
        rings = [
            line
            for one in ax.figure.axes
            for line in one.lines
            if line.get_markersize() == 9 and len(line.get_xdata())
        ]
        assert [line.get_xdata().tolist() for line in rings] == [
            [relation.total[1]] if against is None else [6]
        ]
        bars = [one for one in ax.figure.axes[-1].containers if one.has_xerr or against is not None]
        lengths = [
            np.ptp(bar, axis=0).max() for bar in bars[0].lines[2][0].get_segments() if len(bar)
        ]
        assert np.isfinite(lengths).tolist() in (
            [True],
            [True, False],
        )  # the second has no error bar of the total
        assert "unreliable total" in [one.get_text() for one in ax.get_legend().get_texts()]


def test_a_run_goes_on_while_its_total_is_unreliable(tmp_path, doubting):
    plan = Plan(n_inputs=2, max_degree=2, n_samples=256, seed=1)
    with Store(tmp_path / "part.db", plan) as store:
        for one in list(store.remaining())[:100]:
            store.record(one.number, np.hstack([one.u, one.u**2]), one.kind)
    assert status(tmp_path / "part.db").advice == f"the total is unreliable: {WHY}."
    bench = SimulatedBench(lambda u: np.hstack([u, u**2]))
    assert len(acquire(plan, bench, tmp_path / "run.db", until=0.5, progress=False).index) == 256
    watched = CliRunner().invoke(main, ["watch", str(tmp_path / "run.db"), "--once"]).output
    assert f"total about 5.0 (unreliable: {WHY})" in watched
    assert "…" not in watched  # no intervals
    assert status(tmp_path / "run.db").result.unreliable == WHY


def late(u, x):
    return u, np.roll(x, 1, axis=0)


@pytest.mark.parametrize(
    ("change", "options", "why"),
    [
        (lambda u, x: ((u + 1) / 2, x), {}, "inputs not of the declared distribution"),
        (late, {}, "readouts shifted against the inputs"),
        (
            lambda u, x: (u, x + np.linspace(0, 3, len(u))[:, None]),
            {},
            "samples correlated in acquisition order",
        ),
        (lambda u, x: (u[:24], x[:24]), {}, "few samples for 10 readouts"),
        (lambda u, x: (u[:64], x[:64]), {"method": "raw"}, "more than the 10 that are possible"),
        (
            lambda u, x: (u, np.minimum(x, 0.5)),
            {},
            "",
        ),  # a clipped device has the capacities it shows
        (lambda u, x: (u, np.column_stack([x, x[:, 0], 0 * x[:, 0]])), {}, ""),
    ],
    ids=["inputs", "shifted", "correlated", "few", "above", "saturated", "dead and dependent"],
)
def test_checks_that_concern_the_total_say_why(change, options, why):
    u = np.random.default_rng(0).uniform(-1, 1, (1024, 2))
    u, x = change(u, DEVICE(u, seed=1))
    wide = infocap.product_basis("legendre", 2, 9)
    result = infocap.estimate(u, x, wide, **{"method": "threshold-richardson"} | options)
    assert why in result.unreliable
    assert (why == "") == (result.unreliable == "")


def test_repeats_that_contradict_the_total_make_it_unreliable():
    u = infocap.draw(BASIS, 1024, seed=1)
    other = infocap.systems.RandomFeatures(2, 9, noise=1.0, seed=5)
    result = infocap.estimate(u, DEVICE(u, seed=1), BASIS, repeats=other(u, seed=2))
    assert "more than repeats allow" in result.unreliable
