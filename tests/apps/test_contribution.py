"""A first contribution, made in a copy of the package as docs/architecture.md says: all tests concerned still pass.

The family and the method are those of docs/extending.md, moved from the script of that page into the package. What a script adds from outside is tested in core/test_house.py, core/test_plugins.py and lab/test_files.py.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import infocap

ROOT = Path(infocap.__file__).parents[2]
PACKAGE = Path("src", "infocap")
# What the tests read; `.git`, environments and benchmarks are left behind.
COPIED = ("src", "tests", "docs", "paper", "examples", "pyproject.toml", "conftest.py", "README.md", "CONTRIBUTING.md")  # fmt: skip

# It finds nothing in data of other tests, as a check should.
CHECK = '''def over_range(case):
    """Instruments write 9.9e37 where a value lies beyond their range."""
    highest = case.evidence.column_statistics.high
    if (highest > 9e37).any():
        worst = int(highest.argmax())
        yield Check(
            f"channel {worst} has values of {highest[worst]:.3g}, which stand for an overflow; "
            "choose a wider range of the instrument, or mark them as missing.",
            channels=[worst],
        )'''

SYSTEM = '''"""Interferometers, which show intensities at their outputs."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Interferometer:
    """Intensities at the outputs of random interferometers, for two phases.

    >>> import numpy as np
    >>> Interferometer(n_readouts=3)(np.zeros((5, 2))).shape
    (5, 3)
    """

    n_readouts: int = 12
    noise: float = 1e-3

    def __call__(self, u, seed=None):
        """Return the intensities, with noise."""
        device = np.random.default_rng(7)
        slopes = device.integers(-2, 3, (2, self.n_readouts)) * np.pi
        offsets = device.uniform(0, 2 * np.pi, self.n_readouts)
        intensity = np.cos(u @ slopes + offsets) ** 2
        noise = np.random.default_rng(seed).standard_normal(intensity.shape)
        return intensity + self.noise * noise
'''

FORMAT = '''"""Lines of JSON, each with a number or a list of numbers for every array."""

import json
from contextlib import contextmanager

import numpy as np

from ..._files import ArrayFile, StoredArray, as_data_error, read_text, readable_path


@contextmanager
def open_jsonl(path):
    """Open lines such as {"u": [0.1, 0.2], "x": [1.0, 2.0, 3.0]}."""
    with as_data_error(readable_path(path), "lines of JSON"):
        rows = [json.loads(line) for line in read_text(path).splitlines()]
        arrays = {}
        for name in rows[0]:
            values = np.array([row[name] for row in rows], dtype=float)
            arrays[name] = StoredArray(values.shape, values.dtype, values.copy)
    yield ArrayFile(path, "lines of JSON", arrays)
'''

PLOT = '''"""Capacities beside their standard errors."""

from ._style import COLOURS, axes_in_style


def capacity_by_error(result, ax=None):
    """Draw every capacity against its standard error.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> capacity_by_error(result).get_xlabel()
    'capacity'
    """
    with axes_in_style(ax) as axes:
        axes.loglog(result.capacity, result.standard_error, ".", color=COLOURS[0])
        axes.set(xlabel="capacity", ylabel="standard error")
    return axes
'''

METHOD_ENTRY = """    Method(
        name="thresholded",
        function=thresholded_only,
        summary="capacities above the zero-capacity threshold, not extrapolated",
        corrects_bias=False,
    ),"""

# A user's script, who knows nothing of the files above.
USE = """
import json
from pathlib import Path

import matplotlib
import numpy as np

import infocap

matplotlib.use("Agg")

# The family, by its name, also in a file.
basis = infocap.product_basis("wigner", n_inputs=2, max_degree=4)
nodes, weights = basis.quadrature(8)
assert np.allclose(basis(nodes).T * weights @ basis(nodes), np.eye(len(basis)))
u = infocap.draw(basis, 512, seed=1)
result = infocap.estimate(u, np.column_stack([u[:, 0], u[:, 1] ** 2 + 1]), basis)
capacity = dict(zip(basis.labels, result.capacity))
assert abs(capacity["U1(u1)"] - 1) < 1e-6
result.save("result.nc")
assert infocap.load_result("result.nc").basis.labels == basis.labels

# The system, by its name, and the method, by its name, beside the raw capacities.
system = infocap.systems.find("Interferometer")()
assert system == infocap.systems.Interferometer()
fourier = infocap.product_basis("fourier", n_inputs=2, max_degree=4, domain=(-1, 1))
result = infocap.probe(system, fourier, 1024, seed=1, method="thresholded")
above = result.raw > result.raw[result.capacity > 0].min() * (1 - 1e-12)
assert result.method == "thresholded"
assert np.array_equal(result.capacity, np.where(above, result.raw, 0.0))
assert 0 < np.count_nonzero(result.capacity) < len(fourier)

# The check, which every estimate makes.
overflow = np.where(np.arange(512) == 7, 9.9e37, u[:, 1])
result = infocap.estimate(u, np.column_stack([u[:, 0], overflow]), basis)
assert any("channel 1 has values of 9.9e+37" in check for check in result.checks), result.checks

# The format, by its suffix, and its damaged file.
lines = [json.dumps({"u": list(row), "x": [row[0], row[1] ** 2]}) for row in u]
Path("run.jsonl").write_text("\\n".join(lines), encoding="utf-8")
assert np.array_equal(infocap.read("run.jsonl").inputs, u)
Path("cut.jsonl").write_text(lines[0][:-3], encoding="utf-8")
try:
    infocap.read("cut.jsonl")
except infocap.errors.DataError as error:
    assert "cut.jsonl" in str(error)
else:
    raise AssertionError("the damaged file was read")

# The plot.
measured = infocap.probe(system, fourier, 1024, seed=1)
axes = infocap.plot.capacity_by_error(measured)
assert np.array_equal(axes.lines[0].get_xdata(), measured.capacity)
print(infocap.__file__)
"""

# Tests that go through a table or a folder, or say what belongs there; and those of the new family and method.
ENUMERATING_TESTS = (
    "tests/core/test_house.py",
    "tests/core/test_families.py",
    "tests/core/test_families.py::test_orthonormal_up_to_degree_50[wigner]",
    "tests/core/test_plugins.py",
    "tests/core/test_sweep.py::test_every_result_is_what_probe_gives_alone[thresholded]",
    "tests/core/test_growth.py::test_growth_costs_at_most_two_passes_over_the_rows[thresholded]",
    "tests/core/test_sequences.py::test_raw_capacities_are_those_of_a_plain_loop_whatever_the_method[thresholded]",
    "tests/core/test_golden.py::test_numpy_arrays_give_the_golden_numbers",
    "tests/lab/test_catalogue.py::test_every_warning_says_what_to_do",
    "tests/lab/test_catalogue.py::test_the_committed_page_is_that_of_the_code",
    "tests/lab/test_catalogue.py::test_every_message_is_one_sentence_with_words_around_its_gaps",
    "tests/lab/test_catalogue.py::test_every_message_has_a_place_in_the_catalogue",
    "tests/lab/test_catalogue.py::test_what_estimate_says_is_in_the_catalogue",
    "tests/lab/test_files.py::test_a_script_adds_a_reader_by_one_line",
    "tests/apps/test_docs.py::test_every_public_name_has_an_example",
    "tests/apps/test_docs.py::test_every_path_of_the_architecture_page_exists",
    "tests/apps/test_docs.py::test_every_function_and_table_of_the_architecture_page_exists",
    "tests/apps/test_package.py::test_the_public_names_are_these",
    "tests/apps/test_package.py::test_a_package_lists_what_it_offers_and_offers_what_it_lists",
    "tests/apps/test_package.py::test_every_public_name_is_found_and_completed",
    "tests/apps/test_package.py::test_importing_infocap_loads_nothing_heavy",
    "tests/apps/test_package.py::test_layers_import_only_downwards",
)


# The pages


def places():
    """The table of docs/architecture.md: for each new thing the cells "write", "list it in" and "test".

    Its last row, of several things, only refers to another page.
    """
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## Where to add")[2]
    rows = re.findall(
        r"^\| \[([\w ]+)\]\(.*?\).*? \| (.*) \| (.*) \| (.*) \|$", section, re.MULTILINE
    )
    return {name: cells for name, *cells in rows}


def code_of_the_page(name):
    """The function of that name in docs/extending.md."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        for statement in ast.parse(block).body:
            if isinstance(statement, ast.FunctionDef) and statement.name == name:
                return ast.get_source_segment(block, statement)
    raise LookupError(f"docs/extending.md has no function {name}.")


# The edits


def add_line(file, before, text):
    """Put text before the line of a file that has this number, counted from 1."""
    lines = file.read_text(encoding="utf-8").splitlines()
    lines.insert(before - 1, text)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table_in(file, table):
    """The statement that fills a table, and its dictionary, list or tuple of several lines."""
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        nodes = list(ast.walk(statement))
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        if not any(isinstance(node, ast.Name) and node.id == table for node in nodes):
            continue
        for node in nodes:
            if isinstance(node, ast.Dict | ast.List | ast.Tuple) and node.end_lineno > node.lineno:
                return statement, node
    raise LookupError(f"{file} has no table {table}.")


def add_entry(file, table, entry):
    """Put an entry at the end of a table."""
    _, entries = table_in(file, table)
    add_line(file, entries.end_lineno, entry)


def add_function(file, table, code):
    """Put a function above the table that names it."""
    statement, _ = table_in(file, table)
    add_line(file, statement.lineno, f"{code}\n\n")


def add_import(file, line):
    """Put an import after the other imports, as far as they stand together."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    first = next(node for node in body if isinstance(node, ast.ImportFrom) and node.level)
    add_line(file, first.lineno, line)


def contribute_family(root):
    file = root / PACKAGE / "basis/_classical.py"
    add_import(file, "from scipy.special import betaincinv\n")
    # Another name, because a test of the core calls a family of its own like that of the page.
    code = code_of_the_page("semicircle").replace("semicircle", "wigner")
    add_function(file, "FAMILIES", f"@built_in\n{code}")
    add_entry(file, "FAMILIES", '        "wigner": wigner,')
    exports = root / PACKAGE / "basis/__init__.py"
    add_import(exports, "from ._classical import wigner")
    add_entry(exports, "__all__", '    "wigner",')
    tested = root / "tests/core/test_families.py"
    add_entry(tested, "FAMILIES", '    "wigner": families.wigner(),')


def contribute_method(root):
    folder = root / PACKAGE / "estimators"
    code = code_of_the_page("thresholded_only")
    module = f'"""The first half of Algorithm 1."""\n\nimport numpy as np\n\n\n{code}\n'
    (folder / "_thresholded.py").write_text(module, encoding="utf-8")
    add_import(folder / "_methods.py", "from ._thresholded import thresholded_only")
    add_entry(folder / "_methods.py", "_ALL_METHODS", METHOD_ENTRY)


def contribute_check(root):
    file = root / PACKAGE / "diagnostics/_checks.py"
    add_function(file, "CHECKS", CHECK)
    add_entry(file, "CHECKS", '    "over range": over_range,')
    python(root, "docs/catalogue.py", "--write", cwd=root)


def contribute_system(root):
    folder = root / PACKAGE / "systems"
    (folder / "_interferometer.py").write_text(SYSTEM, encoding="utf-8")
    for name in ("__init__.py", "_find.py"):
        add_import(folder / name, "from ._interferometer import Interferometer")
    add_entry(folder / "__init__.py", "__all__", '    "Interferometer",')
    add_entry(folder / "_find.py", "SYSTEMS", '    "Interferometer": Interferometer,')


def contribute_format(root):
    folder = root / PACKAGE / "lab/files"
    (folder / "_json_lines.py").write_text(FORMAT, encoding="utf-8")
    add_import(folder / "_array_files.py", "from ._json_lines import open_jsonl")
    add_entry(folder / "_array_files.py", "ARRAY_FORMATS", '    ".jsonl": open_jsonl,')


def contribute_plot(root):
    folder = root / PACKAGE / "plot"
    (folder / "_errors.py").write_text(PLOT, encoding="utf-8")
    add_import(folder / "__init__.py", "from ._errors import capacity_by_error")
    add_entry(folder / "__init__.py", "__all__", '    "capacity_by_error",')


CONTRIBUTIONS = {
    "family": contribute_family,
    "method": contribute_method,
    "check": contribute_check,
    "system": contribute_system,
    "file format": contribute_format,
    "plot": contribute_plot,
}


def texts(root):
    """The text of every file of the package and of its tests, by its path."""
    return {
        file.relative_to(root).as_posix(): file.read_text(encoding="utf-8")
        for folder in (PACKAGE, "tests")
        for file in (root / folder).rglob("*.py")
    }


def copy_to(folder):
    """Copy what the tests need, without what Python has compiled."""
    ignored = shutil.ignore_patterns("__pycache__", "generated", "*.egg-info")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def python(root, *words, cwd):
    """Run Python with the package of the copy."""
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the package with all six additions, and the files that each addition has touched."""
    root = copy_to(tmp_path_factory.mktemp("contribution"))
    touched = {}
    before = texts(root)
    for name, contribute in CONTRIBUTIONS.items():
        contribute(root)
        after = texts(root)
        touched[name] = {path for path, text in after.items() if text != before.get(path)}
        before = after
    return root, touched


def test_every_addition_of_the_page_is_made_here():
    assert set(CONTRIBUTIONS) == set(places())


@pytest.mark.parametrize("name", CONTRIBUTIONS)
def test_an_addition_touches_the_files_that_the_page_names_and_no_others(name, extended):
    _, touched = extended
    write, listed, tested = places()[name]
    named = re.findall(r"`([^`]+)`", f"{write} {listed}")
    files = {f"src/infocap/{path}" for path in named if path.endswith(".py")}
    folders = {f"src/infocap/{path}" for path in named if (ROOT / PACKAGE / path).is_dir()}
    test_files = set(re.findall(r"`([^`]+)`", tested))

    assert test_files
    assert [path for path in test_files if not (ROOT / path).is_file()] == []
    new = {path for path in touched[name] if not (ROOT / path).exists()}
    assert {str(Path(path).parent) for path in new} <= folders
    assert touched[name] - new <= files | test_files
    assert len(new) <= 1


def test_all_additions_are_used_like_what_was_there(extended, tmp_path):
    root, _ = extended
    run = python(root, "-W", "ignore", "-c", USE, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert Path(run.stdout.strip()).is_relative_to(root)


@pytest.mark.parametrize("folder", ["tests/core", "tests/lab", "tests/apps"])
def test_no_test_forbids_an_addition(folder, extended):
    root, _ = extended
    tests = [test for test in ENUMERATING_TESTS if test.startswith(f"{folder}/")]
    run = python(root, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, cwd=root)
    assert run.returncode == 0, run.stdout[-8000:]
