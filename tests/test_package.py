"""The package as a whole: its public names, its layers, and what importing it costs."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import infocap

ROOT = Path(infocap.__file__).parents[2]
HEAVY = ("matplotlib", "xarray", "pandas", "sklearn", "scipy.stats", "h5py", "torch", "dask")


def loaded_after(statement):
    """Which of the heavy modules a fresh interpreter has loaded after one statement."""
    code = f"import sys; {statement}; print([m for m in {HEAVY!r} if m in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_public_names_of_the_design_are_there():
    assert set(infocap.__all__) >= {
        "product_basis", "draw", "estimate", "probe", "load_result", "CapacityResult", "Evidence", "ESTIMATORS",
        "plot", "theory", "systems", "basis", "errors", "sweep", "tasks",
    }  # fmt: skip
    assert all(hasattr(infocap, name) for name in infocap.__all__)
    assert set(infocap.ESTIMATORS) >= {
        "raw", "threshold-richardson", "richardson-threshold", "surrogate", "chi2",
    }  # fmt: skip
    for name in ("zero_capacity_bound", "finite_sample_bias", "noisy_capacities", "random_mixture"):
        assert callable(getattr(infocap.theory, name))
    for name in ("capacity_matrix", "capacity_bars", "convergence", "capacity_accuracy", "demand_supply"):
        assert callable(getattr(infocap.plot, name))


def test_every_name_in_every_all_exists():
    for package in (
        infocap.basis,
        infocap.dimension,
        infocap.estimators,
        infocap.kernels,
        infocap.plot,
        infocap.report,
        infocap.theory,
        infocap.systems,
        infocap.tasks,
    ):
        assert [name for name in package.__all__ if not hasattr(package, name)] == []


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'plots'"):
        _ = infocap.plots


def test_importing_infocap_loads_nothing_heavy():
    assert loaded_after("import infocap").strip() == "[]"


def test_tasks_load_scikit_learn_only_for_its_classes():
    assert loaded_after("import infocap.tasks as t; t.accuracy(lambda u: u, t.two_spirals())").strip() == "[]"
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
