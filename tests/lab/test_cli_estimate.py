"""infocap estimate, show and compare: what they say, what they write, and what they never write over."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from PIL import Image

import infocap
from infocap.lab import Plan
from infocap.lab.cli import main, run
from infocap.lab.cli._terminal import name_options

PLAN = Plan(
    n_inputs=2,
    max_degree=4,
    n_samples=512,
    seed=1,
    title="bench",
    readout_unit="mW",
    noise_repeats=20,
)
SYSTEM = infocap.systems.RandomFeatures(2, 6, noise=0.05)
X = SYSTEM(PLAN.inputs, seed=1)


def recording(metadata=None, **more):
    return infocap.Recording(PLAN.inputs, X, np.arange(512), "mW", metadata=metadata or {}, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A planned run, a bare one, one with a channel twice, and results of the first and the third."""
    folder = tmp_path_factory.mktemp("runs")
    planned = recording({"plan": PLAN.to_dict(), "operator": "Ada"})
    planned.save(folder / "run.nc")
    recording().save(folder / "bare.nc")
    many = np.tile(PLAN.inputs, 10)
    infocap.Recording(many, X, np.arange(512), channel=tuple("abcdef")).save(folder / "many.nc")
    twice = np.column_stack([X, X[:, 0]])
    infocap.Recording(PLAN.inputs, twice, np.arange(512), metadata={"plan": PLAN.to_dict()}).save(
        folder / "twice.nc"
    )
    infocap.estimate(planned, basis=PLAN.basis).save(folder / "result.nc")
    other = infocap.probe(infocap.systems.RandomFeatures(2, 9, noise=0.05), PLAN.basis, 512, seed=5)
    other.save(folder / "other.nc")
    return folder


@pytest.fixture
def infocap_says(folder, monkeypatch, capsys):
    """Run the command in the folder: exit code, standard output, standard error."""
    monkeypatch.chdir(folder)

    def say(*words):
        monkeypatch.setattr("sys.argv", ["infocap", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            run()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return say


def test_estimate_says_the_total_in_words_and_writes_what_is_asked_for(infocap_says, tmp_path):
    files = [tmp_path / name for name in ("r.nc", "r.csv", "m.png", "m.svg", "m.pdf")]
    code, out, err = infocap_says(
        "estimate", "run.nc", "-o", files[0], "-o", files[1], "--plot", files[2], "--plot", files[3], "--plot", files[4]
    )  # fmt: skip
    result = infocap.load_result(files[0])
    low, high = result.total_interval()
    assert (code, err) == (0, "")
    assert "run.nc: 512 samples, 2 inputs, 6 readouts in mW; the plan's basis is used." in out
    assert (
        f"Total capacity {result.total:.3f} ± {result.total_standard_error:.3f} of at most 7 "
        f"(6 readouts and the constant); {low:.3f} to {high:.3f} (95 %)"
    ) in out
    assert "15 legendre functions of 2 inputs up to degree 4, method control-variate" in out
    assert "strongest functions, " in out
    assert "warning" not in out
    assert f"wrote {', '.join(map(str, files))}" in out
    assert files[2].read_bytes()[:4] == b"\x89PNG"
    assert files[3].read_bytes()[:5] == b"<?xml"
    assert files[4].read_bytes()[:4] == b"%PDF"
    assert infocap.load_result(files[1]).total == result.total
    assert result.metadata["provenance"]["operator"] == "Ada"
    same = infocap.estimate(infocap.read("run.nc"), basis=PLAN.basis)
    assert np.array_equal(result.capacity, same.capacity)


@pytest.mark.parametrize("suffix", ["nc", "csv"])
def test_results_and_pictures_may_be_written_again_but_nothing_else(infocap_says, suffix, tmp_path):
    result = tmp_path / f"r.{suffix}"
    picture = tmp_path / "matrix.png"
    words = ["estimate", "run.nc", "--quiet", "-o", result, "--plot", picture]
    assert infocap_says(*words) == (0, "", "")
    assert infocap_says(*words) == (0, "", "")
    mine = tmp_path / f"mine.{suffix}"
    mine.write_text("my notes")
    assert "is there already and is not an infocap result" in infocap_says(*words, "-o", mine)[2]
    assert mine.read_text() == "my notes"
    code, _, err = infocap_says("estimate", "run.nc", "-o", "run.nc")
    assert (code, err) == (
        2,
        "infocap: run.nc is there already and is not an infocap result; give another name.\n",
    )
    assert len(infocap.read("run.nc").inputs) == 512


def test_warnings_are_shown_once_and_count_under_strict(infocap_says, tmp_path):
    words = ["estimate", "twice.nc", "-o", tmp_path / "r.nc"]
    code, out, err = infocap_says(*words)
    assert (code, err) == (0, "")
    assert out.count("warning: only 7 of 8 readouts are linearly independent") == 1
    code, out, err = infocap_says(*words, "--strict", "--quiet")
    assert (code, err) == (1, "")
    assert out.startswith("warning: only 7 of 8")
    assert infocap.load_result(tmp_path / "r.nc").warnings  # everything was written all the same


def test_options_change_the_plan_one_by_one(infocap_says, tmp_path):
    def basis(*options):
        code, out, _ = infocap_says(
            "estimate",
            "run.nc",
            "-o",
            tmp_path / "r.nc",
            "--method",
            "raw",
            *options,
        )
        assert code == 0
        return infocap.load_result(tmp_path / "r.nc").basis, out

    found, out = basis("--max-degree", "6")
    assert (found.max_degree, found.family_name) == (6, "legendre")
    assert "the plan's basis is used, but for its max_degree" in " ".join(out.split())
    assert len(basis("--max-interactions", "1")[0]) == 9
    assert len(basis("--index-set", "hyperbolic")[0]) < 15
    assert basis("--domain", "-2", "2")[0].families[0].domain == (-2, 2)
    assert dict(basis("--family", "jacobi(1, 1)")[0].families[0].parameters) == {"a": 1, "b": 1}
    mixed = basis("--family", "legendre", "--family", "chebyshev")[0]
    assert [family.name for family in mixed.families] == ["legendre", "chebyshev"]


def test_without_a_plan_what_is_assumed_is_said(infocap_says, tmp_path):
    code, out, _ = infocap_says("estimate", "bare.nc", "--method", "raw", "-o", tmp_path / "r.nc")
    text = " ".join(out.split())
    assert code == 0
    assert (
        "no plan in the file: taken as legendre, uniform inputs on [-1, 1]; for others give --family and --domain, or --input"
        in text
    )
    assert "degree 14 chosen, 120 functions for 512 samples; for another give --max-degree" in text
    _, out, _ = infocap_says(
        "estimate", "bare.nc", "--method", "raw", "--family", "legendre", "--domain", "-1", "1", "--max-degree", "3"
    )  # fmt: skip
    assert out.startswith("bare.nc: 512 samples, 2 inputs, 6 readouts in mW.\n")


@pytest.mark.parametrize(("n_inputs", "n_samples", "options", "functions"), [
    (1, 8192, {}, 21),
    (2, 100, {}, 21),
    (5, 8192, {}, 2002),
    (100, 8192, {}, 101),
    (100, 8192, {"max_interactions": 1}, 2001),
    (2000, 4096, {}, 2001),  # degree 1 is the least
])  # fmt: skip
def test_the_degree_chosen_leaves_four_samples_for_each_function(
    n_inputs, n_samples, options, functions
):
    from infocap.workflow import choose_basis

    assert len(choose_basis((n_samples, n_inputs), **options)[0]) == functions


def test_every_other_option_reaches_the_estimate(infocap_says, tmp_path):
    x = np.where(np.arange(512)[:, None] == 7, np.nan, X[:, :3] + 1j * X[:, 3:])
    infocap.Recording(PLAN.inputs, x, np.arange(512), metadata={"plan": PLAN.to_dict()}).save(
        tmp_path / "c.nc"
    )
    code, out, _ = infocap_says(
        "estimate", tmp_path / "c.nc", "--nan-policy", "omit", "--complex-as", "split",
        "--method", "threshold-richardson", "-o", tmp_path / "r.nc",
    )  # fmt: skip
    result = infocap.load_result(tmp_path / "r.nc")
    assert code == 0
    assert (result.n_samples, result.n_readouts, result.method) == (511, 6, "threshold-richardson")
    assert "Total capacity" in out
    assert "this method gives no error bar" in out
    assert "note: 1 rows with NaN or infinite values were dropped." in out


WRONG = {
    "no such file": (["estimate", "nowhere.nc"], 3, "nowhere.nc does not exist"),
    "a result": (["estimate", "result.nc"], 3, "is not an 'infocap recording 1' file but 'infocap result 1'"),
    "no such folder": (["estimate", "run.nc", "-o", "nowhere/r.nc"], 3, "the folder nowhere does not exist"),
    "output of an unknown kind": (["estimate", "run.nc", "-o", "r.txt"], 2, "'.txt' is not one of '.nc', '.csv'"),
    "picture of an unknown kind": (["estimate", "run.nc", "--plot", "r.gif"], 2, "'.gif' is not one of '.png'"),
    "one name for two things": (["show", "result.nc", "--plot", "a.png", "--bars", "./a.png"], 2, "is named twice"),
    "unknown family": (["estimate", "run.nc", "--family", "legendary"], 2, "--family legendary is not one of"),
    "family without its numbers": (["estimate", "run.nc", "--family", "jacobi(1"], 2, "is not one of"),
    "family with wrong numbers": (["estimate", "run.nc", "--family", "jacobi(1, x)"], 2, "'jacobi(1, x)' cannot be made"),
    "three families": (["estimate", "run.nc", *["--family", "legendre"] * 3], 2, "3 families are given for 2 inputs"),
    "empty domain": (["estimate", "run.nc", "--domain", "1", "1"], 2, "low < high"),
    "unknown method": (["estimate", "run.nc", "--method", "best"], 2, "'best' is not one of"),
    "mistyped command": (["estmate", "run.nc"], 2, "No such command 'estmate'; did you mean 'estimate'?"),
    "mistyped option": (["estimate", "run.nc", "--max-degre", "3"], 2, "--max-degree"),
    "mistyped method": (["estimate", "run.nc", "--method", "surogate"], 2, "; did you mean 'surrogate'?"),
    "mistyped family": (["estimate", "run.nc", "--family", "Legendre"], 2, "; did you mean 'legendre'?"),
    "mistyped index set": (["estimate", "run.nc", "--index-set", "hyperbola"], 2, "; did you mean 'hyperbolic'?"),
    "too large": (["estimate", "many.nc", "--max-degree", "12"], 2, "lower --max-degree, or cut with --max-interactions or --index-set hyperbolic"),
    "pictures of a recording": (["show", "run.nc", "--bars", "b.png"], 2, "`infocap estimate run.nc` makes a result"),
    "compare one": (["compare", "result.nc"], 2, "two results or more"),
    "compare a recording": (["compare", "result.nc", "run.nc"], 3, "`infocap estimate run.nc -o result.nc` makes one"),
    "compare with too few names": (["compare", "result.nc", "other.nc", "--names", "a"], 2, "2 different names"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "code", "message"), WRONG.values(), ids=WRONG.keys())
def test_mistakes_are_told_without_a_traceback(words, code, message, infocap_says):
    found, _, err = infocap_says(*words)
    assert found == code
    assert message in err
    assert err.startswith(("infocap: ", "Usage: "))
    assert "Traceback" not in err


def test_a_plan_that_does_not_fit_is_refused(infocap_says, tmp_path):
    for plan, message in (
        ({"n_inputs": 2, "colour": "blue"}, "the plan in the file cannot be used"),
        ("planless", "the plan in the file cannot be used"),
        (Plan(n_inputs=3).to_dict(), "is for 3 inputs, but 2 were recorded"),
    ):
        recording({"plan": plan}).save(tmp_path / "odd.nc")
        code, _, err = infocap_says("estimate", tmp_path / "odd.nc")
        assert code == 3
        assert message in err
        assert err.count("\n") == 1


def test_show_tells_a_result_without_estimating_again(infocap_says, monkeypatch, tmp_path):
    monkeypatch.setattr("infocap.lab.cli._estimate.estimate_capacities", None)
    code, out, err = infocap_says("show", "result.nc", "--top", "2", "--plot", tmp_path / "g.svg")
    result = infocap.load_result("result.nc")
    assert (code, err) == (0, "")
    assert (
        f"Total capacity {result.total:.3f} ± {result.total_standard_error:.3f} of at most 7" in out
    )
    strong = sum((result.capacity > 0) & (result.basis.degrees > 0))
    assert f"strongest functions, 2 of {strong} that are not zero (95 % interval)" in out
    assert out.count("  (0.") + out.count("  (1.") == 2
    assert (tmp_path / "g.svg").stat().st_size > 1000


def test_show_marks_warnings_and_notes_of_a_saved_result(infocap_says, tmp_path):
    x = np.column_stack([X, X[:, 0], np.zeros(512)])
    odd = infocap.Recording(PLAN.inputs, x, np.arange(512), metadata={"plan": PLAN.to_dict()})
    odd.save(tmp_path / "odd.nc")
    for kind in ("nc", "csv"):
        infocap_says("estimate", tmp_path / "odd.nc", "--quiet", "-o", tmp_path / f"r.{kind}")
        _, out, _ = infocap_says("show", tmp_path / f"r.{kind}")
        text = " ".join(out.split())
        assert "warning: only 7 of 8 readouts are linearly independent" in text
        assert "note: dead channels were dropped (column 7)" in text


def test_show_heeds_strict_for_recordings_as_for_results(infocap_says, tmp_path):
    u = np.linspace(-1, 1, 8)[:, None]
    checks = ("a cable was loose", infocap.errors.Check("a door was open", "note"))
    infocap.Recording(u, u, np.arange(8), checks=checks).save(tmp_path / "told.nc")
    code, out, _ = infocap_says("show", tmp_path / "told.nc", "--strict")
    assert code == 1
    assert out.endswith("warning: a cable was loose\nnote: a door was open\n")
    assert infocap_says("show", tmp_path / "told.nc")[0] == 0


def test_show_tells_what_a_recording_holds(infocap_says, tmp_path):
    code, out, _ = infocap_says("show", "run.nc")
    text = " ".join(out.split())
    assert code == 0
    assert "Recording of 512 samples, 2 inputs, 6 readouts" in out
    assert (
        f"input u1 {PLAN.inputs[:, 0].min():.5g} to {PLAN.inputs[:, 0].max():.5g} input u2 -0.99"
        in text
    )
    assert f"readout x6 {X[:, 5].min():.5g} to {X[:, 5].max():.5g} mW plan" in text
    assert "readout e" in " ".join(infocap_says("show", "many.nc")[1].split())
    assert (
        "plan bench; 512 samples + 32 reference rows, 15 legendre functions up to degree 4" in text
    )
    assert PLAN.fingerprint[:12] in out
    assert "operator Ada" in text
    full = recording(
        {"plan": 7},
        time=np.arange(512)[::-1],
        repeats=np.where(np.arange(512)[:, None] < 10, X, np.nan),
        noise=X[:20],
        reference=X[:9],
        checks=("two rows are damaged.",),
    )
    inputs = np.where(np.arange(512)[:, None] == 3, np.nan, PLAN.inputs)
    replace(full, inputs=inputs).save(tmp_path / "full.nc")
    text = " ".join(infocap_says("show", tmp_path / "full.nc")[1].split())
    for told in (
        "missing NaN or infinite values in 1 sample",
        "acquired in another order",
        "10 samples were measured twice",
        "noise 20 measurements",
        "reference 9",
        "plan cannot be used",
        "warning: two rows are damaged.",
    ):
        assert told in text


def test_compare_shows_a_table_and_writes_it(infocap_says, tmp_path):
    table = tmp_path / "table.csv"
    picture = tmp_path / "c.png"
    words = ["compare", "result.nc", "other.nc", "-o", table, "--plot", picture]
    code, out, err = infocap_says(*words, "--names", "six channels", "--names", "nine")
    assert (code, err) == (0, "")
    assert "minus six channels" in out
    assert "nine - six channels" in out
    assert f"wrote {table}, {picture}" in out
    written = pd.read_csv(table)
    a = infocap.load_result("result.nc")
    b = infocap.load_result("other.nc")
    assert written.difference[1] == pytest.approx(b.total - a.total)
    assert list(written.device[:2]) == ["six channels", "nine"]
    code, out, _ = infocap_says(
        *words, "--force"
    )  # again, over its own table, with the names of the files
    assert code == 0
    assert "other - result" in out
    table.write_text("my notes")
    assert "is there already; give another name, or --force" in infocap_says(*words)[2]
    assert table.read_text() == "my notes"


def test_compare_warns_once_when_degrees_differ(infocap_says, tmp_path):
    infocap_says(
        "estimate",
        "bare.nc",
        "--quiet",
        "--max-degree",
        "3",
        "-o",
        tmp_path / "low.nc",
    )
    code, out, err = infocap_says("compare", "result.nc", tmp_path / "low.nc", "--strict")
    assert (code, err) == (1, "")
    assert " ".join(out.split()).count("10 in common") == 1


def test_inputs_and_readouts_may_lie_in_two_files_under_names_of_their_own(infocap_says, tmp_path):
    np.savetxt(tmp_path / "u.csv", PLAN.inputs, delimiter=",", header="left,right", comments="")
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", header="a,b,c,d,e,f", comments="")
    words = [tmp_path / "u.csv", tmp_path / "x.csv", "--u", "left,right", "--x", "a,b,c"]
    options = ["--method", "raw", "--max-degree", "4", "--quiet"]
    assert infocap_says("estimate", *words, *options, "-o", tmp_path / "r.nc")[0] == 0
    result = infocap.load_result(tmp_path / "r.nc")
    assert_allclose(
        result.capacity, infocap.estimate(PLAN.inputs, X[:, :3], PLAN.basis, method="raw").capacity
    )
    said = " ".join(infocap_says("import", "--preview", *words)[1].split())
    assert "512 samples, 2 inputs, 3 readouts input left" in said
    assert re.search(r"readout c \S+ to \S+ left out d: \S+ to \S+, not asked for left out e", said)


@pytest.mark.parametrize("suffix", ["nc", "csv"])
def test_files_that_hold_both_are_one_recording(infocap_says, suffix, tmp_path):
    names = "u1,u2,x1,x2,x3,x4,x5,x6"
    for number, rows in enumerate((slice(0, 200), slice(200, 512))):
        path = tmp_path / f"{number}.{suffix}"
        if suffix == "nc":
            infocap.Recording(PLAN.inputs[rows], X[rows], np.arange(512)[rows], "mW").save(path)
        else:
            both = np.hstack([PLAN.inputs, X])[rows]
            np.savetxt(path, both, delimiter=",", header=names, comments="", fmt="%.17g")
    words = [tmp_path / f"0.{suffix}", tmp_path / f"1.{suffix}"]
    options = ["--max-degree", "4", "-o", tmp_path / "r.nc"]
    code, out, _ = infocap_says("estimate", *words, *options)
    assert code == 0
    assert "0.nc and 1 more: 512 samples, 2 inputs, 6 readouts".replace("nc", suffix) in " ".join(
        out.split()
    )
    whole = infocap.estimate(PLAN.inputs, X, PLAN.basis)
    assert_allclose(infocap.load_result(tmp_path / "r.nc").capacity, whole.capacity, rtol=1e-10)
    assert infocap_says("import", *words, "-o", tmp_path / "all.nc")[0] == 0
    assert_allclose(infocap.read(tmp_path / "all.nc").readouts, X)
    assert "Recording of 512 samples" in infocap_says("show", *words)[1]


def test_the_terminal_the_file_and_the_page_say_the_same(infocap_says, tmp_path):
    """Repeats bring checks of their own: here the second measurement is another, larger one."""
    again = np.where(
        np.arange(512)[:, None] % 4 == 0, 1.2 * SYSTEM(PLAN.inputs, seed=2) + 0.3, np.nan
    )
    recording({"plan": PLAN.to_dict()}, repeats=again).save(tmp_path / "run.nc")
    words = ["estimate", tmp_path / "run.nc", "-o", tmp_path / "r.nc"]
    code, out, err = infocap_says(*words, "--strict")
    assert (code, err) == (1, "")
    result = infocap.load_result(tmp_path / "r.nc")
    said = [" ".join(part.split()) for part in re.split(r"^warning: ", out, flags=re.MULTILINE)[1:]]
    said[-1] = said[-1].removesuffix(f" wrote {tmp_path / 'r.nc'}")
    assert said[0].startswith("the device drifted between the repeats")
    assert said == [one.replace("`", "") for one in result.checks]
    page = html.unescape(infocap.report.page(result))
    assert all(one[1:] in page for one in result.checks)
    assert [
        " ".join(part.split())
        for part in infocap_says("show", tmp_path / "r.nc")[1].split("warning: ")[1:]
    ] == said


def test_parameters_in_messages_become_options_of_the_command_and_nothing_else_does():
    message = "run=1.nc: `max_degree=-1`, `domain=(0, 1)`, `nan_policy='omit'`, `seed=5`, `domain`, `a b`."
    assert name_options(message, main.commands["estimate"]) == (
        "run=1.nc: --max-degree -1, --domain 0 1, --nan-policy omit, `seed=5`, --domain, `a b`."
    )
    assert name_options(message, main.commands["cite"]) == message
    switched = "say that it is meant: `other_instrument=True`."
    assert name_options(switched, main.commands["acquire"]).endswith(" --other-instrument.")


def test_a_file_of_random_bytes_is_no_result(tmp_path):
    from infocap.result import is_result

    for suffix in ("nc", "csv"):
        path = tmp_path / f"odd.{suffix}"
        path.write_bytes(np.random.default_rng(0).bytes(999))
        assert not is_result(path)
    (tmp_path / "plan.csv").write_text("# " + json.dumps({"format": "another"}))
    assert not is_result(tmp_path / "plan.csv")


@pytest.mark.parametrize(("width", "millimetres"), [("60mm", 60), ("18.3cm", 183), ("3.5in", 88.9)])
def test_pictures_have_the_width_asked_for(infocap_says, width, millimetres, tmp_path):
    files = {"--bars": tmp_path / "bars.png", "--plot": tmp_path / "matrix.png"}
    words = [word for option in files.items() for word in option]
    code, out, _ = infocap_says("show", "result.nc", *words, "--width", width)
    assert code == 0
    assert f"wrote {files['--plot']}, {files['--bars']}" in out
    for file in files.values():
        with Image.open(file) as picture:
            assert picture.size[0] == pytest.approx(millimetres / 25.4 * 300, abs=1)
            assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)


@pytest.mark.parametrize("width", ["wide", "0mm", "89"])
def test_a_width_needs_its_unit(infocap_says, width, tmp_path):
    code, _, err = infocap_says("show", "result.nc", "--bars", tmp_path / "b.png", "--width", width)
    assert code == 2
    assert "89mm, 18.3cm or 3.5in" in err
