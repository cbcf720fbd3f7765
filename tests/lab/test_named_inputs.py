"""Inputs with names, units, ranges and families of their own: from the plan to every label, axis, table and page."""

import html
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError
from infocap.lab import Plan
from infocap.lab.cli import run

INPUTS = ("Voltage A [V]:0:5", "Phase [deg]:0:360:fourier")
OPTIONS = ["--input", INPUTS[0], "--input", INPUTS[1]]
DRIVER = """
import numpy as np

class Bench:
    def measure(self, u):
        volts, phase = u[0] / 2.5 - 1, np.deg2rad(u[1])
        noise = 0.01 * np.random.default_rng(int(1e6 * u[0])).standard_normal(4)
        return np.array([volts, np.cos(phase), volts * np.sin(phase), volts**3]) + noise

def make():
    return Bench()
"""


@pytest.fixture
def says(tmp_path, monkeypatch, capsys):
    """A function that runs a command in an empty folder with a driver in it.

    It returns the exit code and all that the command says, in one line.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_bench.py").write_text(DRIVER)

    def say(*words):
        monkeypatch.setattr("sys.argv", ["infocap", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            run()
        printed = capsys.readouterr()
        return ended.value.code or 0, " ".join((printed.out + printed.err).split())

    return say


def texts(page):
    bare = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]+>", " ", bare)).replace("\xa0", " "))


def test_names_go_from_the_plan_through_acquisition_and_estimation_to_every_output(says, tmp_path):
    code, output = says("plan", *OPTIONS, "--max-degree", 3, "--n-samples", 256, "-o", "plan.toml")
    assert code == 0, output
    plan = Plan.load("plan.toml")
    assert [family.domain for family in plan.basis.families] == [(0, 5), (0, 360)]
    assert [family.name for family in plan.basis.families] == ["legendre", "fourier"]
    assert_allclose(plan.inputs.max(axis=0), (5, 360), rtol=0.02)

    assert says("draw", "plan.toml", "-o", "inputs.csv")[0] == 0
    comment, heading, *_ = (tmp_path / "inputs.csv").read_text().splitlines()
    assert comment.startswith("#")
    assert heading == "design_index,u1: Voltage A [V],u2: Phase [deg]"

    for name in ("first", "second"):
        code, output = says(
            "acquire", "plan.toml", "-o", f"{name}.db", "--instrument", "own_bench:make", "--quiet"
        )
        assert code == 0, output
    code, output = says("show", "first.db")
    assert re.search(r"input Voltage A \[V\] 0\.\d+ to [45][\d.]* input Phase \[deg\] ", output)

    outputs = ["-o", "first.nc", "-o", "first.csv", "--plot", "matrix.svg"]
    code, output = says("estimate", "first.db", *outputs)
    assert code == 0, output
    assert "P1(Voltage A)" in output
    assert "P1(Voltage A)·sin1(Phase)" in output
    svg = (tmp_path / "matrix.svg").read_text(encoding="utf-8")
    assert ">degree in Voltage A, 0 to 5 V<" in svg
    assert ">number of function in Phase, 0 to 360 deg<" in svg
    table = pd.read_csv("first.csv", comment="#")
    assert table.label[table.capacity > 0.5].tolist()[1:] == [
        "cos1(Phase)", "P1(Voltage A)", "P1(Voltage A)·sin1(Phase)", "P3(Voltage A)"
    ]  # fmt: skip

    assert says("estimate", "second.db", "-o", "second.nc")[0] == 0
    code, output = says("report", "first.nc", "-o", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for words in (
        "Each cell is one product of a function of Voltage A and one of Phase",
        "degree in Voltage A, 0 to 5 V",
        "number of function in Phase, 0 to 360 deg",
        "Voltage A: uniform, domain 0 to 5 V; Phase: uniform phase, domain 0 to 360 deg",
        "P1(Voltage A)·sin1(Phase)",
    ):
        assert words in texts(page)
    data = json.loads(re.search(r'id="infocap-data">(.*?)</script>', page, re.DOTALL).group(1))
    assert {"P1(Voltage A)", "cos1(Phase)"} < set(data["functions"]["label"])

    code, output = says("compare", "first.nc", "second.nc", "-o", "both.csv", "--plot", "both.svg")
    assert code == 0, output
    assert "P1(Voltage A)" in pd.read_csv("both.csv").name.tolist()


def test_files_without_a_plan_take_names_and_ranges_from_the_command(says):
    plan = Plan(family=list(INPUTS), max_degree=3, n_samples=256)
    u = plan.inputs
    x = np.column_stack([u[:, 0], u[:, 0] ** 2, np.cos(np.deg2rad(u[:, 1]))])
    table = pd.DataFrame(np.hstack([u, x]), columns=["a", "b", "x1", "x2", "x3"])
    table.to_csv("bare.csv", index=False)
    code, output = says(
        "estimate", "bare.csv", "--u", "a,b", *OPTIONS, "--max-degree", 3, "-o", "r.nc"
    )
    assert code == 0, output
    assert infocap.load_result("r.nc").basis.names == ["Voltage A", "Phase"]
    code, output = says(
        "estimate", "bare.csv", "--u", "a,b", "--input", "a", "--input", "b:0:360:fourier"
    )
    assert code == 3
    assert "outside the domain [-1, 1] of the legendre basis" in output
    for words, message in (
        (["--input", INPUTS[0]], "1 families are given for 2 inputs"),
        ([*OPTIONS, "--domain", 0, 1], "--input has the family and the range already"),
        (["--input", "a:0:5:blue", "--input", "b"], "blue is not one of"),
        (["--input", "a:0", "--input", "b"], "0 is not one of"),
        (["--input", "a:zero:5", "--input", "b"], "could not convert string to float"),
        (["--input", "a", "--input", "a"], "two inputs are called 'a'"),
    ):
        code, output = says("estimate", "bare.csv", "--u", "a,b", *words)
        assert code == 2, output
        assert message in output
    code, output = says(
        "plan", *OPTIONS, "--n-inputs", 2, "--max-degree", 3, "--n-samples", 64, "-o", "p.toml"
    )
    assert code == 2
    assert "--n-inputs 2 is told by --input already" in output


def test_the_axes_of_figures_have_names_ranges_and_units():
    basis = infocap.product_basis(
        infocap.inputs("Cost $a$ [k$]:0:5", "noise [mV]:normal"), max_degree=3
    )
    result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    ax = infocap.plot.capacity_matrix(result)
    ax.figure.canvas.draw()  # dollar signs are no mathematics
    assert ax.get_xlabel() == r"degree in Cost \$a\$, 0 to 5 k\$"
    assert ax.get_ylabel() == "degree in noise (mV)"  # a normal input has no ends
    other = infocap.product_basis(infocap.inputs("b:0:5", "c:fourier"), max_degree=3)
    ax = infocap.plot.capacity_matrix(infocap.probe(np.cos, other, 256, seed=1))
    n_functions_of_c = 7  # upwards
    n_degrees_in_b = 4  # to the right
    assert ax.collections[0].get_array().shape == (n_functions_of_c, n_degrees_in_b)


@pytest.mark.parametrize("source", ["pandas", "xarray"])
def test_names_of_columns_are_kept(source):
    names = ["Voltage A [V]", "Phase (deg)"]
    basis = infocap.product_basis("legendre", 2, 2)
    u = infocap.draw(basis, 256, seed=1)
    labelled = pd.DataFrame(u, columns=names)
    if source == "xarray":
        labelled = xr.DataArray(u, dims=("sample", "input"), coords={"input": names})
    result = infocap.estimate(labelled, u**2, basis)
    assert result.basis.labels[1:3] == ["P1(Phase)", "P1(Voltage A)"]
    assert_allclose(result.capacity, infocap.estimate(u, u**2, basis).capacity)
    # Names in the basis come before names of columns.
    named = infocap.product_basis(infocap.inputs("first", "second"), max_degree=2)
    assert infocap.estimate(labelled, u**2, named).basis.names == ["first", "second"]


@pytest.mark.parametrize("suffix", [".nc", ".csv"])
def test_a_recording_keeps_the_names_of_its_inputs(suffix, tmp_path):
    basis = infocap.product_basis("legendre", 2, 2)
    u = infocap.draw(basis, 64, seed=1)
    recording = infocap.Recording(u, u**2, np.arange(64), input_names=("Voltage A [V]", "u2"))
    loaded = infocap.read(recording.save(tmp_path / f"run{suffix}"))
    assert loaded.input_names == recording.input_names
    assert infocap.estimate(loaded, basis=basis).basis.names == ["Voltage A", "u2"]
    without_names = infocap.Recording(u, u**2, np.arange(64))
    assert infocap.read(without_names.save(tmp_path / f"bare{suffix}")).input_names == ()


def test_a_recording_has_a_name_for_each_input():
    u = np.zeros((64, 2))
    with pytest.raises(DataError, match="input_names has 1 names for 2 inputs"):
        infocap.Recording(u, u, np.arange(64), input_names=("one",))


def test_names_change_no_function_and_inputs_without_names_store_none():
    named = infocap.product_basis(infocap.inputs("a:-1:1", "b"), max_degree=2)
    bare = infocap.product_basis("legendre", 2, 2)
    assert named.families == bare.families
    with_names = infocap.probe(np.square, named, 256, seed=1)
    without_names = infocap.probe(np.square, bare, 256, seed=1)
    assert infocap.compare(with_names, without_names).totals().difference[1] == 0
    assert "variable" not in json.dumps(bare.to_dict())


def test_a_plan_counts_its_named_inputs():
    assert Plan(family=infocap.inputs("a", "b")).n_inputs == 2
    assert Plan(family=["a:uniform", "b:normal"]).n_inputs == 2


@pytest.mark.parametrize(
    ("distribution", "family"),
    [
        ("uniform", "legendre"),
        ("normal", "hermite"),
        ("exponential", "laguerre"),
        ("arcsine", "chebyshev"),
    ],
)
def test_distributions_are_families_by_another_name(distribution, family):
    basis = infocap.product_basis(distribution, 2, 2)
    assert basis.families == infocap.product_basis(family, 2, 2).families


def test_an_input_may_have_a_family_with_parameters():
    (binomial,) = infocap.inputs("k:binomial(8, 0.5)")
    assert dict(binomial.parameters) == {"n": 8, "p": 0.5}


def test_without_a_basis_one_is_chosen_and_said():
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, (100, 2))
    x = np.column_stack([u[:, 0], u[:, 0] * u[:, 1]])
    result = infocap.estimate(u, x)
    assert len(result.basis) == 21
    assert result.basis.max_degree == 5
    (note,) = [note for note in result.notes if "no basis" in note]
    words = "legendre, uniform inputs on [-1, 1]; degree 5 chosen, 21 functions for 100 samples"
    assert words in note
    with pytest.raises(DataError, match=r"\(100,\)"):
        infocap.estimate(u[:, 0], x)


def test_a_recording_is_analysed_with_the_basis_of_its_plan():
    plan = Plan(family=list(INPUTS), max_degree=2, n_samples=64)
    recording = infocap.Recording(
        plan.inputs, plan.inputs, np.arange(64), metadata={"plan": plan.to_dict()}
    )
    assert recording.input_names == ("Voltage A [V]", "Phase [deg]")
    result = infocap.estimate(recording, method="raw")
    assert result.basis.labels == plan.basis.labels
    assert any("the plan's basis is used" in note for note in result.notes)


def test_notebooks_show_every_kind_of_object_without_anything_from_elsewhere():
    plan = Plan(
        family=["<b>bold</b> [V]:0:5", INPUTS[1]], max_degree=3, n_samples=64, title="<i>bench</i>"
    )
    recording = infocap.Recording(
        plan.inputs, plan.inputs, np.arange(64), metadata={"plan": plan.to_dict()}
    )
    result = infocap.estimate(recording, basis=plan.basis, method="raw")
    first = infocap.probe(np.sin, plan.basis, 256, seed=1)
    second = infocap.probe(np.sin, plan.basis, 256, seed=2)
    comparison = infocap.compare(first, second, names=["a", "<u>b</u>"])

    html_of = {}
    for thing in (result, comparison, plan.basis, plan, recording):
        html_of[type(thing).__name__] = thing._repr_html_()
    for name, text in html_of.items():
        assert text.startswith('<div class="infocap"><style>')
        assert name in texts(text)
        assert not re.search(r"<[biu]>|<script|src=|https?://(?!www\.w3\.org)", text)
    for name in ("ProductBasis", "Plan", "Recording"):
        words = texts(html_of[name])
        assert "<b>bold</b>" in words
        assert re.search(r"Phase (uniform phase 0 360|as measured [\d.]+ [\d.]+) deg", words)
    assert html_of["CapacityResult"].count("<svg") == 2  # the matrix and the bars of the page
    assert infocap.lab.report._figures.bars(result) in html_of["CapacityResult"]
    assert html_of["Comparison"].count("<svg") == 1


def test_importing_infocap_loads_nothing_for_notebooks():
    code = "import sys, infocap; print(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    loaded = set(process.stdout.split())
    assert "infocap" in loaded
    assert not loaded & {"matplotlib", "pandas", "tqdm"}
