"""The documentation: its code runs, its links lead somewhere, it is spelled, and it says what the code says."""

import ast
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from types import ModuleType

import kinds_of_files
import matplotlib.pyplot as plt
import messy_files
import numpy as np
import pytest

import infocap
from support import absent

pytestmark = pytest.mark.pages

ROOT = Path(infocap.__file__).parents[2]
DOCS = ROOT / "docs"
BIN = Path(sys.executable).parent
PAGES = sorted(page for page in DOCS.rglob("*.md") if "generated" not in page.parts)
MODULES = [
    "infocap",
    *(
        f"infocap.{name}"
        for name in infocap.__all__
        if isinstance(getattr(infocap, name), ModuleType)
    ),
    "infocap.lab.adapters",
]
RUN_AT_BUILD = "{code-cell}"
RUN_HERE = ("python", "console")
NOT_CODE = (
    "text",
    "toml",
    "matlab",
    "julia",
    "r",
    "{toctree}",
    "{glossary}",
    "{eval-rst}",
    "{include}",
)
SLOW = ("photonics.md",)  # its commands take many seconds
# Libraries of instruments, each with what its example in howto/instruments.md needs.
LIBRARIES = {"pyvisa": "pyvisa_sim", "pymeasure": "pymeasure", "qcodes": "qcodes"}
NEEDED = {  # by the commands and the code of a page, beyond what they make themselves
    "cluster.md": ("run.nc",),
    "compare.md": ("result.nc", "other.nc"),
    "files.md": ("messy", "lab.npz", "monday.nc", "tuesday.nc"),
    "howto/channels.md": ("run.nc",),
    "howto/share.md": ("result.nc",),
    "tasks.md": ("weak.nc", "delay.nc", "strong.nc"),
    "howto/traces.md": ("trace.csv",),
    "howto/mistakes.md": ("slipped.nc",),
}
MEASURE = """import numpy as np
with open("inputs.csv") as file:
    rows = [line.split(",") for line in file if not line.startswith("#")][1:]
table = np.array(rows, dtype=float)
x = np.tanh(table[:, 1:] @ np.random.default_rng(0).standard_normal((2, 12)))
np.savetxt("readouts.csv", np.column_stack([table[:, 0], x]), delimiter=",", comments="",
           header=",".join(["index", *(f"x{k}" for k in range(12))]))
"""


def name_of(page):
    return page.relative_to(DOCS).as_posix()


def fenced(page):
    """Language and text of every block between back ticks."""
    return re.findall(
        r"^```(\S*)[^\n]*\n(.*?)^```",
        page.read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )


def blocks(page, language):
    return [text for found, text in fenced(page) if found == language]


def pages_with(language, slow=()):
    return [
        pytest.param(name_of(page), marks=[pytest.mark.slow] if name_of(page) in slow else [])
        for page in PAGES
        if blocks(page, language)
    ]


def console(commands, folder):
    """Run commands as a reader would, with a stand-in for the measurement that a comment asks for."""
    Path(folder, "measure.py").write_text(MEASURE, encoding="utf-8")
    script = re.sub(
        r"^# measure: .*$", f"{sys.executable} measure.py", commands, flags=re.MULTILINE
    )
    where = os.environ | {
        "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]),
        "MPLBACKEND": "Agg",
    }
    call = ["bash", "-ec", script]
    return subprocess.run(
        call, cwd=folder, env=where, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory):
    """The files that the pages take for granted, small ones."""
    folder = tmp_path_factory.mktemp("laboratory")
    plan = infocap.lab.Plan(n_inputs=2, max_degree=4, n_samples=256, seed=1)
    device = infocap.systems.RandomFeatures(2, 12, noise=0.01)
    bench = infocap.lab.SimulatedBench(device)
    recording = infocap.lab.acquire(plan, bench, folder / "run.db", progress=False)
    recording.save(folder / "run.nc")
    slipped = np.roll(recording.readouts, 1, axis=0)
    infocap.Recording(recording.inputs, slipped, recording.design_index).save(folder / "slipped.nc")
    other = infocap.probe(
        infocap.systems.RandomFeatures(2, 9, noise=0.01), plan.basis, 1024, seed=2
    )
    other.save(folder / "other.nc")
    infocap.estimate(recording, basis=plan.basis).save(folder / "result.nc")
    plan.save(folder / "plan.toml")
    u, x = recording.inputs, recording.readouts
    for name, day in (("monday.nc", slice(0, 100)), ("tuesday.nc", slice(100, 256))):
        infocap.Recording(u[day], x[day], recording.design_index[day]).save(folder / name)
    np.savez(folder / "lab.npz", v1=u[:, 0], v2=u[:, 1], spectrum1=x[:, :6], spectrum2=x[:, 6:])
    drive = np.random.default_rng(1).uniform(-1, 1, (1500, 1))
    of_the_past = infocap.delayed_basis(max_delay={1: 12, 2: 4})
    for name, scale in (("weak", 0.1), ("delay", 0.3), ("strong", 1.0)):
        network = infocap.systems.EchoState(12, input_scale=scale, noise=0.01, seed=1)
        with warnings.catch_warnings(action="ignore", category=infocap.errors.DataWarning):
            measured = infocap.estimate(drive, network(drive, seed=1), of_the_past, washout=100)
        measured.save(folder / f"{name}.nc")
    nodes = infocap.systems.DelayReservoir(24, input_scale=0.5, noise=0.002)(drive, seed=1)
    rows = np.column_stack([np.repeat(drive, 24), nodes.ravel()])
    rows = np.vstack([np.zeros((7, 2)), rows])
    np.savetxt(folder / "trace.csv", rows, "%.9g", ",", header="u,photodiode", comments="")
    (folder / "messy").mkdir()
    for write in (
        messy_files.write_european,
        messy_files.write_matlab,
        messy_files.write_hdf5,
        messy_files.write_spectra,
        kinds_of_files.write_scans_of_the_page,
        kinds_of_files.write_workbook_of_the_page,
    ):
        write(folder / "messy")
    assert console("infocap draw plan.toml -o inputs.csv\n# measure: now\n", folder).returncode == 0
    return folder


@pytest.fixture
def desk(laboratory, tmp_path, monkeypatch):
    """An empty folder to work in, and a way to have a page's files in it."""
    monkeypatch.chdir(tmp_path)

    def prepared(page):
        for file in NEEDED.get(page, ()):
            if file == "messy":
                shutil.copytree(laboratory / file, tmp_path, dirs_exist_ok=True)
            else:
                shutil.copy(laboratory / file, tmp_path)
        return tmp_path

    yield prepared
    plt.close("all")


def library_of(block):
    """The library of instruments that an example imports, if any; such an example stands alone."""
    for library in LIBRARIES:
        if re.search(rf"^(import|from) {library}\b", block, flags=re.MULTILINE):
            return library
    return None


@pytest.mark.parametrize("page", pages_with("python"))
def test_the_python_of_a_page_runs(page, desk, request):
    desk(page)
    names = {}
    for block in blocks(DOCS / page, "python"):
        if library_of(block):
            continue
        if "import torch" in block:
            request.getfixturevalue("torch")
        exec(compile(block, page, "exec"), names)


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:qcodes", "ignore::DeprecationWarning:pymeasure"
)
@pytest.mark.parametrize(
    "library",  # QCoDeS is large: make test-slow has it
    ["pyvisa", "pymeasure", pytest.param("qcodes", marks=pytest.mark.slow)],
)
def test_the_example_of_a_library_of_instruments_runs(library, desk):
    if importlib.util.find_spec(LIBRARIES[library]) is None:
        absent(LIBRARIES[library])
    page = "howto/instruments.md"
    desk(page)
    (example,) = [block for block in blocks(DOCS / page, "python") if library_of(block) == library]
    exec(compile(example, page, "exec"), {})


@pytest.mark.parametrize("page", pages_with("console", SLOW))
def test_the_commands_of_a_page_run(page, desk):
    folder = desk(page)
    for block in blocks(DOCS / page, "console"):
        done = console(block, folder)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", [name_of(page) for page in PAGES])
def test_every_block_is_run_or_is_no_code(page):
    languages = {language for language, _ in fenced(DOCS / page)}
    assert languages <= {*RUN_HERE, RUN_AT_BUILD, *NOT_CODE}
    text = re.sub(
        r"^```.*?^```",
        "",
        (DOCS / page).read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )
    assert not re.search(r"^    (infocap|import|from|%%)\b", text, flags=re.MULTILINE), (
        "code that nobody runs"
    )
    for block in blocks(DOCS / page, "text"):
        assert "infocap " not in block.replace("pip install", ""), "a command that nobody runs"


def test_pages_that_are_run_at_build_say_so():
    for page in PAGES:
        begins = page.read_text(encoding="utf-8").startswith("---\nfile_format: mystnb\n")
        assert begins == bool(blocks(page, RUN_AT_BUILD)), name_of(page)


def slugs(page):
    """What a link may name after the #: headings, as the site and code hosts spell them."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "paper/README.md",
        *(f"docs/{name_of(p)}" for p in PAGES),
    ],
)
def test_links_lead_somewhere(page):
    here = ROOT / page
    text = here.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link or "generated/" in link:
            continue
        path, _, place = link.partition("#")
        target = here if not path else (here.parent / path)
        assert target.exists(), f"{page} leads to {link}, which is not there"
        if place and target.suffix == ".md":
            assert place in slugs(target), (
                f"{page} leads to {link}; {target.name} has no such heading"
            )


def test_every_word_is_spelled():
    done = subprocess.run(
        [BIN / "codespell"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_layers_of_the_architecture_page_are_those_that_are_enforced():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rows = [
        re.findall(r"`(\w+)`", row)
        for row in re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE)
    ]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    enforced = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert [sorted(row) for row in rows] == [sorted(layer.split(" | ")) for layer in enforced]


def in_backticks(page):
    text = re.sub(
        r"^```.*?^```",
        "",
        (DOCS / page).read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )
    return set(re.findall(r"`([^`\n]+)`", text))


def test_every_path_of_the_architecture_page_exists():
    paths = {
        name for name in in_backticks("architecture.md") if name.endswith(".py") or "/" in name
    }
    assert len(paths) > 15
    assert [
        name
        for name in paths
        if not (ROOT / name).exists() and not (ROOT / "src" / "infocap" / name).exists()
    ] == []


def test_every_function_and_table_of_the_architecture_page_exists():
    code = "\n".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "src" / "infocap").rglob("*.py")
    )
    defined = set(re.findall(r"^\s*(?:def|class) (\w+)", code, flags=re.MULTILINE))
    defined |= set(re.findall(r"^(\w+)(?:: .*)? = ", code, flags=re.MULTILINE))
    package = ROOT / "src" / "infocap"
    rooms = {file.stem for folder in (package, package / "lab") for file in folder.iterdir()}
    names = {name for name in in_backticks("architecture.md") if re.fullmatch(r"[A-Za-z_.]+", name)}
    names -= {name for name in names if name.endswith((".py", ".toml"))}
    assert len(names) > 30
    assert [name for name in names if set(name.split(".")) - defined - rooms] == []
    for name in names:
        owner, _, method = name.rpartition(".")
        if owner[:1].isupper():
            (body,) = re.findall(
                rf"^class {owner}\b.*\n((?:    .*\n|\n)*)", code, flags=re.MULTILINE
            )
            assert re.search(rf"^    def {method}\b", body, flags=re.MULTILINE), name


def test_the_architecture_is_one_page():
    """So many words a newcomer reads in ten minutes, at 100 a minute."""
    assert len((DOCS / "architecture.md").read_text(encoding="utf-8").split()) < 1000


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_which_of_two_questions_is_asked_stands_at_the_beginning(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert re.search(r"\*\*Memoryless\*\*.*\n(.*\n)?- \*\*With memory\*\*", text[:1200])


def test_other_languages_find_what_their_page_names(laboratory):
    import h5py

    text = (DOCS / "howto" / "other-languages.md").read_text(encoding="utf-8")
    with (
        h5py.File(laboratory / "result.nc") as result,
        h5py.File(laboratory / "run.nc") as recording,
    ):
        table = text[text.index("| variable |") : text.index("and these attributes")]
        variables = set(
            re.findall(r"`(\w+)`", table.replace("factor_", "").replace("P1(u1)·P2(u2)", ""))
        )
        assert variables - {"input", "delay", "function"} <= set(result)
        attributes = set(
            re.findall(
                r"`(\w+)`",
                text[text.index("and these attributes") :].partition("A **recording**")[0],
            )
        )
        assert attributes - {"noise_limited_total", "noise_limited_standard_error"} <= set(
            result.attrs
        )
        assert {"inputs", "readouts", "design_index", "metadata"} <= set(recording)
        assert recording["readouts"].shape == (256, 12)
        assert result["weights"].shape == (13, len(result["capacity"]))
        assert result["index"].shape == (len(result["capacity"]), 2)
        for language in ("matlab", "julia", "r"):
            *_, block = blocks(
                DOCS / "howto" / "other-languages.md", language
            )  # the one that reads
            named = set(re.findall(r'"/?(\w+)"', block)) - {"CommentStyle", "standard_error"}
            assert named <= {*result, *recording, *result.attrs}, language
            assert "comment" in block.lower()


def test_a_table_of_capacities_is_read_by_any_program_that_skips_comments(laboratory, tmp_path):
    import pandas as pd

    result = infocap.load_result(laboratory / "result.nc")
    result.save(tmp_path / "result.csv")
    table = pd.read_csv(tmp_path / "result.csv", comment="#")
    np.testing.assert_allclose(table.capacity, result.capacity)
    assert {"label", "capacity", "standard_error"} <= set(table)


def test_tutorials_are_downloadable_as_notebooks_that_jupyter_understands():
    for page in [*DOCS.glob("tutorials/*.md"), DOCS / "start.md"]:
        offered = f"{{nb-download}}`executed notebook <{page.stem}.ipynb>`" in page.read_text(
            encoding="utf-8"
        )
        assert offered == bool(blocks(page, RUN_AT_BUILD)), page
    sys.path.insert(0, str(DOCS / "_extensions"))
    from notebooks import plain

    cells = [
        {
            "cell_type": "markdown",
            "source": "# Lab\n\nDownload this page as an {nb-download}`x <lab.ipynb>`.\n",
        },
        {
            "cell_type": "markdown",
            "source": ["See [files](../files.md#two), ", "[SciPy](https://scipy.org)."],
        },
        {"cell_type": "code", "source": ["%%console\n", "infocap cite\n"]},
        {"cell_type": "code", "source": "print('%%console')"},
    ]
    texts = [cell["source"] for cell in plain({"cells": cells})["cells"]]
    wanted = [
        "# Lab\n\n",
        "See files, [SciPy](https://scipy.org).",
        "%%bash\ninfocap cite\n",
        "print('%%console')",
    ]
    assert texts == wanted


def public():
    """Every public name: module, name and what it is."""
    for module in MODULES:
        found = importlib.import_module(module)
        own = (
            name
            for name in vars(found)
            if not name.startswith("_") and name not in ("sys", "warnings")
        )
        for name in getattr(found, "__all__", own):
            thing = getattr(found, name)
            if not isinstance(thing, ModuleType):
                yield module, name, thing


def is_code(thing):
    return inspect.isfunction(thing) or inspect.isclass(thing)


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, n, thing in public() if is_code(thing)])
def test_every_public_name_has_an_example(module, name):
    thing = getattr(importlib.import_module(module), name)
    assert ">>>" in (inspect.getdoc(thing) or ""), (
        f"{module}.{name} has no example that runs as a doctest"
    )


def test_every_public_constant_is_in_the_reference():
    text = (DOCS / "reference" / "constants.md").read_text(encoding="utf-8")
    described = set(re.findall(r"py:data:: (\S+)", text))
    assert described == {
        f"{module}.{name}" for module, name, thing in public() if not is_code(thing)
    }


def test_every_public_module_is_in_the_reference():
    text = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   (infocap[.\w]*)$", text, flags=re.MULTILINE)
    assert sorted(listed) == sorted(MODULES)


def test_the_site_is_told_of_every_public_module():
    tree = ast.parse((DOCS / "conf.py").read_text(encoding="utf-8"))
    (names,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PUBLIC"
    ]
    assert sorted(["infocap", *(f"infocap.{name}" for name in names)]) == sorted(MODULES)


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("myst_nb")
    pytest.importorskip("pydata_sphinx_theme")
    call = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-j",
        "auto",
        "-b",
        "html",
        DOCS,
        tmp_path,
    ]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    links = [sys.executable, DOCS / "check_links.py", tmp_path]
    assert subprocess.run(links, check=False).returncode == 0
