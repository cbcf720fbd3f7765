"""The package as a whole: its public names, its layers, and what importing it costs."""

import ast
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import infocap

HOME = Path(infocap.__file__).parent
ROOT = HOME.parents[1]
HEAVY = ("matplotlib", "xarray", "pandas", "sklearn", "scipy.stats", "h5py", "torch", "dask")


def loaded_after(statement):
    """Which of the heavy modules a fresh interpreter has loaded after one statement."""
    code = f"import sys; {statement}; print([m for m in {HEAVY!r} if m in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


def public_packages():
    """Names of the packages without an underscore; `infocap.lab.cli` is a program and not for import."""
    folders = (file.parent.relative_to(HOME.parent) for file in sorted(HOME.rglob("__init__.py")))
    names = (".".join(folder.parts) for folder in folders)
    return [name for name in names if "._" not in name and name != "infocap.lab.cli"]


def bound_names(package):
    """Public names that the package's own file defines or takes from other modules of infocap.

    `from .module import name as name` takes a name for other rooms of infocap, not for users.
    """
    names = set()
    for node in ast.parse(Path(package.__file__).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            # `import name as name` serves other rooms of infocap and is no part of what a package offers.
            names |= {
                alias.asname or alias.name for alias in node.names if alias.asname != alias.name
            }
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def test_the_public_names_are_these():
    assert set(infocap.__all__) == {
        "CapacityResult", "DelayedBasis", "ProductBasis", "Recording", "__version__", "basis", "calibrate", "cite", "compare",
        "convergence", "delayed_basis", "diagnose", "diagnostics", "dimension", "draw", "draw_weighted", "errors",
        "estimate", "estimators", "explore", "find_steps", "fold_trace", "inputs", "lab", "load_result", "photonics", "plot", "probe",
        "product_basis", "rank_channels", "read", "report", "Sweep", "load_sweep", "sweep", "systems", "tasks", "theory",
    }  # fmt: skip
    assert set(infocap.estimators.METHODS) >= {
        "raw", "threshold-richardson", "richardson-threshold", "control-variate", "surrogate", "chi2",
    }  # fmt: skip


@pytest.mark.parametrize("name", public_packages())
def test_a_package_lists_what_it_offers_and_offers_what_it_lists(name):
    package = import_module(name)
    listed = package.__all__
    assert len(listed) == len(set(listed))
    assert bound_names(package) - set(listed) == set()
    assert [name for name in listed if not hasattr(package, name)] == []


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("theory", "zero_capacity_bound finite_sample_bias noisy_capacities linear_memory efficiency_bound"),
        ("theory", "random_mixture"),
        ("plot", "capacity_matrix capacity_bars degree_bars memory_function delay_matrix convergence compare save"),
        ("dimension", "indicator from_repeats noise_scale"),
        ("systems", "RandomFeatures EchoState DelayLine DelayReservoir"),
        ("photonics", "FibreSystem Fibre Encoder Detector Pulse"),
        ("tasks", "two_spirals digits narma accuracy demand"),
        ("lab", "Plan Store acquire extend status Recording"),
        ("report", "save live card gallery"),
        ("estimators", "gather_evidence conclude Method Evidence Estimate"),
    ],
)  # fmt: skip
def test_every_module_offers_its_functions_and_classes(module, names):
    for name in names.split():
        assert callable(getattr(getattr(infocap, module), name))


def test_every_public_name_is_found_and_completed():
    for name in infocap.__all__:
        assert getattr(infocap, name) is not None
    assert set(infocap.__all__) <= set(dir(infocap))


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'plots'"):
        _ = infocap.plots


def test_importing_infocap_loads_nothing_heavy():
    assert loaded_after("import infocap").strip() == "[]"


def test_tasks_load_scikit_learn_only_for_its_classes():
    assert (
        loaded_after("import infocap.tasks as t; t.accuracy(lambda u: u, t.two_spirals())").strip()
        == "[]"
    )
    assert "sklearn" in loaded_after("import infocap; infocap.tasks.SystemFeatures")


def test_the_check_for_heavy_modules_can_fail():
    assert "matplotlib" in loaded_after("import infocap; infocap.plot")


def test_layers_import_only_downwards():
    linter = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_core_dependencies_stay_light():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    heavy = ("torch", "cupy", "jax", "dask", "zarr", "scikit-learn", "mlxtend", "sphinx")
    assert not [one for one in project["dependencies"] if one.startswith(heavy)]
    assert set(project["optional-dependencies"]) >= {"ml", "gpu", "dask", "zarr", "docs", "dev"}
