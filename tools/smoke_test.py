"""Check that an installed infocap works: estimate, save, load, and start the command line.

Run it with the Python of the environment to be checked, outside a folder with infocap's source:

    python smoke_test.py
"""

import importlib.metadata
import platform
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import infocap

N_SAMPLES = 1024


def check_estimate_and_file(folder: Path) -> float:
    """Estimate the capacities of a small network, save them, load them, and return their total."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    system = infocap.systems.RandomFeatures(2, 10, noise=0.01, seed=1)
    u = infocap.draw(basis, N_SAMPLES, seed=1)
    x = system(u, seed=2)
    result = infocap.estimate(u, x, basis)
    # Ten readouts and the constant can express at most eleven functions.
    if not 5 < result.total <= 11:
        raise SystemExit(f"The total capacity is {result.total:.3g}, expected 5 to 11.")

    path = folder / "result.nc"
    result.save(path)
    loaded = infocap.load_result(path)
    if loaded.total != result.total:
        raise SystemExit(f"Saved a total of {result.total!r}, loaded {loaded.total!r}.")
    return loaded.total


def check_command_line() -> None:
    """Run `infocap --help` as a user would."""
    command = Path(sysconfig.get_path("scripts"), "infocap")
    answer = subprocess.run([command, "--help"], capture_output=True, text=True, check=False)
    if answer.returncode != 0 or "Usage:" not in answer.stdout:
        output = answer.stdout + answer.stderr
        raise SystemExit(f"`{command} --help` ended with {answer.returncode}:\n{output}")


def check_package_data() -> None:
    """Find the files that are not Python code but must be installed with it."""
    home = Path(infocap.__file__).parent
    if not (home / "py.typed").is_file():
        raise SystemExit(f"{home} has no py.typed: type checkers would ignore the annotations.")


def main() -> None:
    """Run all checks and print one line."""
    check_package_data()
    check_command_line()
    with tempfile.TemporaryDirectory() as folder:
        total = check_estimate_and_file(Path(folder))
    version = importlib.metadata.version("infocap")
    python = platform.python_version()
    print(f"infocap {version} works with Python {python}: total capacity {total:.2f}")


if __name__ == "__main__":
    main()
