"""infocap reproduce: every figure in its quick form, what it says, and that nothing is lost when it is killed."""

import ast
import functools
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from numpy.testing import assert_allclose

import infocap
from infocap.lab.cli import main, run
from infocap.lab.cli._reproduce import FIGURES, SCRIPTS_PACKAGE, load_scripts
from infocap.photonics import Fibre, FibreSystem

pytestmark = pytest.mark.pages

ROOT = Path(infocap.__file__).parents[2]
PAPER = ROOT / "paper"
KEYS = ["statement", "paper", "expected", "found", "verdict", "twin", "twin_verdict"]
VERDICTS = {"agrees", "differs", "open", "identity", "calibrated", "reported", "not judged"}
COMMITTED = {
    name: json.loads((PAPER / "figures" / f"{name}.json").read_text(encoding="utf-8"))
    for name in FIGURES
}

load_scripts()
_common, _measured, page, _work, fig1, fig4, fig5, fig6, fig8 = (
    importlib.import_module(f"{SCRIPTS_PACKAGE}.{name}")
    for name in ("_common", "_measured", "page", "_work", "fig1", "fig4", "fig5", "fig6", "fig8")
)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder that ``infocap reproduce all --quick`` leaves, and what it printed."""
    folder = tmp_path_factory.mktemp("quick")
    words = ["reproduce", "all", "--quick", "-o", str(folder), "--workers", "2"]
    outcome = CliRunner().invoke(main, words, catch_exceptions=False)
    assert outcome.exit_code == 0
    return folder, outcome.output


def opened(folder, name):
    with xr.open_dataset(folder / f"{name}.nc", engine="h5netcdf") as data:
        return data.load()


def script(name):
    return importlib.import_module(f"{SCRIPTS_PACKAGE}.{name}")


@pytest.mark.parametrize("name", FIGURES)
def test_each_figure_leaves_picture_data_and_verdicts(quick, name):
    folder, said = quick
    assert (folder / f"{name}.png").stat().st_size > 10_000
    lines = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert [list(line) for line in lines] == [KEYS] * len(lines)
    assert {line["verdict"] for line in lines} <= VERDICTS
    assert {line["twin_verdict"] for line in lines} <= {"", *VERDICTS}
    assert all(line["paper"] for line in lines)
    data = opened(folder, name)
    assert script(name).check(data) == lines
    assert json.loads(data.attrs["parameters"])
    assert f"{name}: {script(name).TITLE}" in said
    assert all(line["statement"] in said for line in lines)


@pytest.mark.parametrize("name", FIGURES)
def test_the_quick_run_judges_as_the_full_run_or_not_at_all(quick, name):
    lines = json.loads((quick[0] / f"{name}.json").read_text(encoding="utf-8"))
    for short, full in zip(lines, COMMITTED[name], strict=True):
        assert short["statement"] == full["statement"]
        for key in ("verdict", "twin_verdict"):
            assert short[key] in (full[key], "not judged"), short["statement"]


def test_a_statement_that_holds_is_called_by_its_kind_and_one_that_fails_differs():
    said = ("The sky is blue", "blue", "blue")
    assert _common.line(*said, "blue", True, kind="identity")["verdict"] == "identity"
    assert _common.line(*said, "red", False, kind="identity")["verdict"] == "differs"
    assert _common.line(*said, "red", False, kind="calibrated")["verdict"] == "differs"
    assert _common.line(*said, "blue", None)["verdict"] == "reported"
    for quick, verdict in ((True, "not judged"), (False, "agrees")):
        data = xr.Dataset(attrs={"parameters": json.dumps({"quick": quick})})
        assert (
            _common.finished(data, [_common.line(*said, "blue", True, full=True)])[0]["verdict"]
            == verdict
        )


def test_the_twin_comes_closer_to_the_measured_matrix_than_the_plain_model():
    """The numbers of the authors' example, with half the paper's samples; all twins come closer."""
    basis = infocap.product_basis("legendre", 2, 14)
    measured = _measured.matrix_values(basis.indices)
    assert measured.sum() == pytest.approx(18.345)
    apart = {}
    for name in ("plain", *_common.TWINS):
        make = _common.made(name, power_dbm=-1.9, length_m=40.0, n_inputs=2, tolerance=1e-3)
        result = infocap.probe(make(), basis, 2048, seed=1, blocks=2, method="threshold-richardson")
        apart[name] = np.sqrt(np.mean((result.capacity - measured) ** 2))
    assert max(apart[name] for name in _common.TWINS) < 0.045 < apart["plain"]


def test_the_causes_on_the_page_have_no_results_of_their_own():
    """Numbers of results stand in the lines of the tables, which are data; prose would grow old."""
    causes, _ = page.TAIL.split("## What the paper does not say")
    assert re.findall(r"\d+\.\d+|\d+ ?%", causes) == []


def test_twins_that_disagree_leave_a_statement_open():
    """And a statement that holds for all of them has the twins' own kind of verdict."""
    said = ("The sky is blue", "blue", "blue")
    agrees = _common.line(*said, "blue", True)
    calibrated = _common.line(*said, "blue", True, twin_kind="calibrated")
    differs = _common.line(*said, "red", False)
    names = ["twin", "twin 2"]
    assert _common.joint(names, [agrees, agrees]) == {"twin": "blue", "twin_verdict": "agrees"}
    assert _common.joint(names, [calibrated, calibrated])["twin_verdict"] == "calibrated"
    found = _common.joint(names, [agrees, differs])
    assert found == {"twin": "twin: blue; twin 2: red", "twin_verdict": "open"}


def test_accuracies_whose_errors_are_larger_than_their_steps_are_not_judged():
    fig7 = script("fig7")
    errors = np.full((3, 1), 0.01)
    assert fig7.is_decided(np.array([[0.5], [0.6], [0.7]]), errors)  # rises
    assert fig7.is_decided(np.array([[0.5], [0.501], [0.4]]), errors)  # falls for sure
    assert not fig7.is_decided(np.array([[0.5], [0.6], [0.602]]), errors)
    undecided = _common.line("The sky is blue", "blue", "blue", "grey", True, decided=False)
    assert undecided["verdict"] == "not judged"


def test_a_measurement_of_the_users_own_stands_beside_the_paper(tmp_path, monkeypatch):
    monkeypatch.setattr(_measured, "OWN", [])
    monkeypatch.setattr(fig1, "OWN", _measured.OWN)
    path = tmp_path / "run.nc"
    main(
        ["simulate", "--n-inputs", "2", "--n-samples", "512", "--power-dbm", "1", "-o", str(path)],
        standalone_mode=False,
    )
    assert "for 2 inputs at 1 dBm, 5 m" in _measured.add(path)
    changes = {
        "n_samples": {2: 512, 5: 512},
        "max_degree": {2: 14, 5: 3},
        "tolerance": 1e-2,
        "seeds": [1],
    }
    titles = [ax.get_title(loc="left") for ax in fig1.draw(fig1.compute(**changes)).axes]
    assert "(a) two inputs, your data" in titles


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fig1", "fig4", "fig5"])
def test_the_committed_full_run_is_what_a_fresh_one_gives(name):
    """Other seeds, the same verdicts; where the verdict is a comparison of means, the means are within their errors."""
    fresh = script(name).check(script(name).compute(seeds=[11, 12]))
    for new, old in zip(fresh, COMMITTED[name], strict=True):
        assert (new["verdict"], new["twin_verdict"]) == (old["verdict"], old["twin_verdict"]), new[
            "statement"
        ]
        for key in ("found", "twin"):
            if " ± " in old[key] and ";" not in old[key]:
                (mean, error), (again, _) = (
                    [float(one) for one in text[key].split(" ± ")] for text in (old, new)
                )
                assert abs(again - mean) < 5 * max(error, 0.1 if mean > 1 else 0.003), new[
                    "statement"
                ]


def test_the_validation_reproduces_the_claims_of_the_paper(quick):
    data = opened(quick[0], "fig2")
    total = data["total_error"] / 72
    for design in ("sobol", "random"):
        raw, after, ours = (
            total.sel(estimator=name, design=design).dropna("repeat")
            for name in ("raw", "threshold-richardson", "control-variate")
        )
        assert float(raw.min()) > 0.2
        assert float(abs(after.mean())) < 0.02
        assert float(abs(ours).max()) < 1e-6
    spread = data["spread"]
    assert float(spread.sel(estimator="threshold-richardson", design="sobol")) < float(
        spread.sel(estimator="raw", design="sobol")
    )
    assert set(data["estimator"].values) == set(infocap.estimators.METHODS)
    assert_allclose(data["functions_per_bin"].sum("bin"), 1287)


def test_warnings_are_kept_with_the_data(quick):
    words = "noise is correlated between readouts"
    assert words in opened(quick[0], "fig8").attrs["warnings"]


def test_the_axes_get_the_data(quick):
    folder = quick[0]
    data = opened(folder, "fig4")
    *panels, measured = (ax for ax in fig4.draw(data).axes if ax.collections and ax.texts)
    assert "measured" in measured.get_title()
    shown = data["total_q2"].mean("seed").sel(model=["plain", "twin"])
    totals = shown.transpose("model", "length_m", "power_dbm").values.ravel()
    for ax, total in zip(panels, totals, strict=True):
        assert rf"$\frac{{{total:.1f}}}{{72}}$" in [text.get_text() for text in ax.texts]
    data = opened(folder, "fig5")
    first = fig5.draw(data).axes[0]
    plain = data["by_degree_q5"].sel(model="plain").isel(power_dbm=0, length_m=0, seed=0)
    heights = np.sum([[bar.get_height() for bar in bars] for bars in first.containers], axis=0)
    assert_allclose(heights, plain)
    data = opened(folder, "fig6")
    near, far = (fig6.draw(data).axes[0].containers[k].lines[0] for k in (0, 1))
    assert_allclose(far.get_xdata(), data["nonlinear_phase"].sel(length_m=40.0))
    assert_allclose(
        near.get_ydata(), data["total_q5"].sel(length_m=5.0, model="plain").isel(seed=0)
    )
    data = opened(folder, "fig8")
    left, *_, twin = fig8.draw(data).axes
    shown = data["indicator_q5"].sel(power_dbm=4.5, length_m=40.0, model="plain").isel(seed=0)
    assert_allclose(left.lines[0].get_ydata(), shown)
    assert_allclose(
        twin.containers[4].lines[0].get_ydata(),
        data["n_factors_q2"].sel(length_m=40.0, model="twin").isel(seed=0),
    )
    measured, *_ = fig1.draw(opened(folder, "fig1")).axes
    assert_allclose(float(measured.collections[0].get_array()[4, 0]), 0.655)


def test_a_second_run_reads_the_cache(quick, monkeypatch):
    folder, _ = quick
    before = opened(folder, "fig6")
    monkeypatch.setattr(fig6, "compute", None)
    outcome = CliRunner().invoke(
        main, ["reproduce", "fig6", "--quick", "-o", str(folder)], catch_exceptions=False
    )
    assert outcome.exit_code == 0
    assert "fig5" not in outcome.output
    xr.testing.assert_identical(opened(folder, "fig6"), before)


def test_interrupted_and_killed_it_goes_on_and_ends_with_the_same_numbers(quick, tmp_path):
    command = [
        sys.executable, "-c", "from infocap.lab.cli import run; run()",
        "reproduce", "fig6", "--quick", "-o", str(tmp_path), "--workers", "2",
    ]  # fmt: skip
    cache = tmp_path / ".cache"

    def stopped_at(n_files, stop):
        """Start, stop when so many settings are kept, and see that no worker stays behind."""
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.SIG_DFL
            ),  # ignored in the background
        )
        deadline = time.monotonic() + 120
        while len(list(cache.glob("q*.nc"))) < n_files:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        children = children_of(process.pid)
        stop(process.pid)
        _, said = process.communicate(timeout=60)
        while any(alive(child) for child in children):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert not (tmp_path / "fig6.json").exists()
        return process.returncode, said

    code, said = stopped_at(2, lambda pid: os.killpg(pid, signal.SIGINT))  # as Ctrl-C does
    assert code == 130
    assert said.splitlines() == ["Interrupted; the same command goes on from here."]
    code, _ = stopped_at(5, lambda pid: os.kill(pid, signal.SIGKILL))
    assert code == -signal.SIGKILL
    kept = {path.name: path.stat().st_mtime_ns for path in cache.glob("q*.nc")}
    broken = sorted(kept)[0]
    (cache / broken).write_bytes((cache / broken).read_bytes()[:-100])
    subprocess.run(command, check=True, capture_output=True)
    for (
        name,
        changed,
    ) in kept.items():  # what was whole was used, what was broken was computed again
        assert ((cache / name).stat().st_mtime_ns == changed) == (name != broken)
    xr.testing.assert_identical(opened(tmp_path, "fig6"), opened(quick[0], "fig6"))
    assert (tmp_path / "fig6.json").read_bytes() == (quick[0] / "fig6.json").read_bytes()


def children_of(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def alive(pid):
    """Whether a process is there and not merely waiting to be forgotten."""
    path = Path(f"/proc/{pid}/stat")
    try:
        return path.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def squares(count):
    """A small job."""
    return xr.Dataset({"square": ("number", np.arange(count) ** 2.0)})


def test_a_job_is_done_once_and_a_broken_file_is_not_trusted(tmp_path, monkeypatch):
    jobs = {"squares": functools.partial(squares, 5)}
    first = _work.Work(folder=tmp_path).do(jobs)["squares"]
    (file,) = tmp_path.glob("*.nc")
    stamp = file.stat().st_mtime_ns
    xr.testing.assert_identical(_work.Work(folder=tmp_path).do(jobs)["squares"], first)
    assert file.stat().st_mtime_ns == stamp
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    xr.testing.assert_identical(_work.Work(folder=tmp_path).do(jobs)["squares"], first)
    assert (
        _work.Work(folder=tmp_path)
        .do({"squares": functools.partial(squares, 6)})["squares"]
        .sizes["number"]
        == 6
    )
    assert len(list(tmp_path.glob("*.nc"))) == 2
    monkeypatch.setattr(infocap, "__version__", "another")
    _work.Work(folder=tmp_path).do(jobs)
    assert len(list(tmp_path.glob("*.nc"))) == 3


def named(name):
    """A job with a text."""
    return xr.Dataset({"value": ("name", [1.0])}, coords={"name": [name]})


def test_kept_parts_can_be_joined_and_kept_again(tmp_path):
    jobs = {name: functools.partial(named, name) for name in ("sobol", "random")}
    work = _work.Work(folder=tmp_path)
    for _ in range(2):  # computed, then from disk
        parts = [part.drop_attrs() for part in work.do(jobs).values()]
        work.save("whole", "key", xr.merge(parts, join="outer", compat="no_conflicts"))
        assert work.load("whole", "key")["name"].values.tolist() == ["random", "sobol"]
        next(tmp_path.glob("whole-*.nc")).unlink()


def test_parameters_are_plain_and_the_quick_form_changes_only_those():
    for name in FIGURES:
        one = script(name)
        assert json.loads(json.dumps(one.PARAMETERS)) is not None
        assert set(one.QUICK) <= set(one.PARAMETERS)
        assert {key: one.PARAMETERS[key] for key in one.QUICK} != one.QUICK


def test_compute_needs_no_machinery():
    data = fig5.compute(
        n_samples={5: 256}, max_degree={5: 3}, powers_dbm=[-9.1, 1.0], tolerance=1e-2, seeds=[1]
    )
    assert data["total_q5"].shape == (len(_common.SWEEP["models"]), 1, 2, 2)
    assert len(fig5.check(data)) == 4


def test_a_sweep_has_the_numbers_that_probe_gives():
    data = fig4.compute(
        n_samples={2: 512},
        max_degree={2: 6},
        powers_dbm=[1.0],
        lengths_m=[5.0],
        tolerance=1e-3,
        seeds=[1],
    )
    system = FibreSystem(power_dbm=1.0, length_m=5.0, n_inputs=2, tolerance=1e-3)
    basis = infocap.product_basis("legendre", 2, 6)
    result = infocap.probe(system, basis, 512, seed=1, blocks=2, method="threshold-richardson")
    again = _common.result_at(data, 2, model="plain", power_dbm=1.0, length_m=5.0)
    assert_allclose(again.capacity, result.capacity)
    assert again.total == pytest.approx(result.total)


def test_without_dispersion_the_nonlinear_phase_alone_decides():
    """What the page says about figure 6: eight times the length is an eighth of the power."""
    u = infocap.draw(infocap.product_basis("legendre", 5, 1), 64, seed=0)
    fibre = Fibre(beta2_ps2_per_km=0.0)
    near = FibreSystem(power_dbm=7.1, length_m=5.0, fibre=fibre)(u, seed=1)
    far = FibreSystem(power_dbm=7.1 - 10 * np.log10(8), length_m=40.0, fibre=fibre)(u, seed=1)
    assert_allclose(8 * far, near, atol=1e-5 * near.max())
    curved = FibreSystem(power_dbm=7.1 - 10 * np.log10(8), length_m=40.0)(u, seed=1)
    assert np.abs(8 * curved - near).max() > 1e-3 * near.max()


@pytest.mark.parametrize(("arguments", "message"), [
    (["fig9"], "'fig9' is not one of 'all', 'fig1', 'fig2'"),
    (["all", "figure 1"], "'figure 1' is not one of"),
    (["fig1", "--workers", "0"], "0 is not in the range"),
])  # fmt: skip
def test_mistakes_are_one_line_and_exit_code_2(arguments, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["infocap", "reproduce", *arguments])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_told_before_anything_is_computed(monkeypatch, tmp_path):
    monkeypatch.setattr(script("fig7"), "NEEDS", ("a_package_that_nobody_has",))
    outcome = CliRunner().invoke(main, ["reproduce", "all", "-o", str(tmp_path / "out")])
    assert isinstance(outcome.exception, infocap.errors.ParameterError)
    assert "fig7 needs a_package_that_nobody_has" in str(outcome.exception)
    assert not (tmp_path / "out").exists()


def test_the_scripts_import_only_public_names():
    for path in PAPER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "infocap":
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [part for alias in node.names for part in alias.name.split(".")]
            assert not [name for name in names if name.startswith("_")], path.name


def test_the_wheel_carries_every_script_that_reproduce_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    needed = {path.name for path in PAPER.glob("*.py")} - {"page.py"}
    assert included == {f"paper/{name}": f"infocap/_paper/{name}" for name in needed}


def test_the_page_is_that_of_the_committed_verdicts(tmp_path, monkeypatch):
    committed = (PAPER / "README.md").read_text(encoding="utf-8")
    assert page.page(COMMITTED, "figures") == committed
    assert "## Why some statements differ" in committed
    assert all((PAPER / "figures" / f"{name}.png").stat().st_size < 400_000 for name in FIGURES)
    (tmp_path / "figures").mkdir()
    for name in FIGURES:
        verdicts = json.dumps(COMMITTED[name])
        (tmp_path / "figures" / f"{name}.json").write_text(verdicts, encoding="utf-8")
    monkeypatch.setattr(page, "PAPER", tmp_path)
    page.main()
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == committed
