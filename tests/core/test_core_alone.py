"""The core works by itself: without the laboratory, the applications, and the libraries that only they need."""

import subprocess
import sys

import pytest

PARTS = ["lab", "report", "photonics", "tasks", "plot"]

USE_THE_CORE_ALONE = '''
import sys

UNAVAILABLE = (
    "infocap.lab", "infocap.report", "infocap.photonics", "infocap.tasks",
    "h5py", "h5netcdf", "click", "matplotlib", "pandas", "xarray",
)


class Unavailable:
    """An import hook that behaves as if these packages were not installed."""

    def find_spec(self, name, path=None, target=None):
        if name in UNAVAILABLE or name.startswith(tuple(f"{package}." for package in UNAVAILABLE)):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


sys.meta_path.insert(0, Unavailable())

import numpy as np

import infocap

basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
system = infocap.systems.RandomFeatures(2, 5, noise=0.01, seed=1)
u = infocap.draw(basis, 512, seed=1)
x = system(u, seed=2)

result = infocap.estimate(u, x, basis)
assert 4 < result.total < result.maximum == 6
assert "CapacityResult" in repr(result)
for method in infocap.estimators.METHODS:
    assert infocap.estimate(u, x, basis, method=method).total > 3

recorded = infocap.estimate(infocap.Recording(u, x, np.arange(512)), basis=basis)
assert abs(recorded.total - result.total) < 1e-9
assert infocap.probe(system, basis, 512, seed=1).total > 4
assert infocap.diagnose(u, x, basis).checks == ()
assert infocap.convergence(u, x, basis).raw.shape[1] == len(basis)

inputs = np.random.default_rng(1).uniform(-1, 1, 2000)
echo = np.roll(inputs, 3)[:, None] + 0.1 * np.random.default_rng(2).normal(size=(2000, 1))
assert "P1(u[t-3])" in infocap.explore(inputs, echo, washout=50).basis.labels

loaded = [name for name in sys.modules if name.split(".")[0] in UNAVAILABLE or name in UNAVAILABLE]
assert loaded == [], loaded
print("the core worked alone")
'''


@pytest.mark.thorough
def test_the_core_estimates_without_the_laboratory_and_its_libraries():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", USE_THE_CORE_ALONE], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "the core worked alone"


def test_importing_infocap_does_not_import_the_parts_around_the_core():
    code = "import sys, infocap; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "infocap" in loaded
    for part in PARTS:
        assert f"infocap.{part}" not in loaded


@pytest.mark.thorough
@pytest.mark.parametrize("part", PARTS)
def test_the_parts_around_the_core_are_imported_when_they_are_first_used(part):
    code = f"import sys, infocap; infocap.{part}; print('infocap.{part}' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "True"


def test_an_estimation_does_not_load_the_distributions_of_scipy():
    """To load them takes longer than a usual estimation, in each process of a sweep."""
    code = (
        "import sys, numpy as np, infocap\n"
        "u = np.random.default_rng(0).uniform(-1, 1, (512, 2))\n"
        "basis = infocap.product_basis('legendre', 2, 4)\n"
        "infocap.estimate(u, infocap.systems.RandomFeatures(2, 5, noise=0.01)(u), basis)\n"
        "print('scipy.stats' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
