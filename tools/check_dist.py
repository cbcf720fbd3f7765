"""Check the wheel and the sdist in a folder: `python tools/check_dist.py dist`.

1. Every place that states the version states the same one.
2. The conda recipe has the same dependencies and commands as pyproject.toml.
3. The wheel, in a clean environment, passes the smoke test.
4. The sdist, in another clean environment, passes it, too.
5. pytest collects the tests of the unpacked sdist without an error.
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMOKE_TEST = ROOT / "tools" / "smoke_test.py"
# Conda names of libraries that pip knows by another name. The base package leaves out Qt windows.
CONDA_NAMES = {"matplotlib": "matplotlib-base"}


def run(*command: str | Path, folder: Path, source: Path | None = None) -> str:
    """Run a command in a folder, away from the repository's source, and return what it printed.

    `source` is a folder that Python imports from. A command that fails ends this program, and its
    output is shown.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    answer = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        words = " ".join(map(str, command))
        output = answer.stdout + answer.stderr
        raise SystemExit(f"`{words}` ended with {answer.returncode}:\n{output}")
    return answer.stdout


def clean_environment(folder: Path) -> Path:
    """Make a virtual environment and return its Python."""
    venv.create(folder, with_pip=True)
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    return folder / scripts / "python"


def pip_install(python: Path, *packages: str, folder: Path) -> None:
    """Install packages in the environment of a Python."""
    run(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        *packages,
        folder=folder,
    )


def only_match(pattern: str, path: Path) -> str:
    """Return the group of a pattern that matches one line of a file."""
    matches = re.findall(pattern, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if len(matches) != 1:
        raise SystemExit(f"{path}: {len(matches)} lines match {pattern!r}, expected one.")
    return matches[0]


def check_versions() -> str:
    """Return the version, after a look at every place that states it."""
    version = only_match(r'^__version__ = "(.*)"$', ROOT / "src" / "infocap" / "_version.py")
    patterns = {
        "CITATION.cff": r"^version: (.*)$",
        "conda.recipe/meta.yaml": r'^  version: "(.*)"$',
    }
    for place, pattern in patterns.items():
        stated_version = only_match(pattern, ROOT / place)
        if stated_version != version:
            raise SystemExit(f"{place} has version {stated_version}, the package has {version}.")
    return version


def recipe_list(recipe: str, key: str) -> set[str]:
    """Return the lines of a list in the conda recipe, such as that below `  run:`."""
    section = re.search(rf"^  {key}:\n((?:    - .*\n)+)", recipe, flags=re.MULTILINE)
    if section is None:
        raise SystemExit(f"conda.recipe/meta.yaml has no list `{key}`, indented by two spaces.")
    return {line.removeprefix("    - ") for line in section[1].splitlines()}


def check_recipe() -> None:
    """Compare the dependencies and commands of the conda recipe with those of the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    dependencies = {f"python {project['requires-python']}"}
    for requirement in project["dependencies"]:
        name, lower_bound = requirement.split(">=")
        dependencies.add(f"{CONDA_NAMES.get(name, name)} >={lower_bound}")
    commands = {f"{name} = {function}" for name, function in project["scripts"].items()}

    recipe = (ROOT / "conda.recipe" / "meta.yaml").read_text(encoding="utf-8")
    for key, expected in {"run": dependencies, "entry_points": commands}.items():
        difference = recipe_list(recipe, key) ^ expected
        if difference:
            lines = ", ".join(sorted(difference))
            place = f"the list `{key}` of conda.recipe/meta.yaml"
            raise SystemExit(f"pyproject.toml and {place} differ in: {lines}.")


def check_wheel(wheel: Path, workspace: Path) -> None:
    """Install the wheel alone and run the smoke test."""
    python = clean_environment(workspace / "wheel")
    pip_install(python, str(wheel), folder=workspace)
    print(f"wheel: {run(python, SMOKE_TEST, folder=workspace).strip()}")


def check_sdist(sdist: Path, workspace: Path) -> None:
    """Install the sdist alone, run the smoke test, then collect the tests that lie in it."""
    python = clean_environment(workspace / "sdist")
    pip_install(python, str(sdist), folder=workspace)
    print(f"sdist: {run(python, SMOKE_TEST, folder=workspace).strip()}")

    with tarfile.open(sdist) as archive:
        archive.extractall(workspace / "unpacked", filter="data")
    (unpacked,) = (workspace / "unpacked").iterdir()
    pip_install(python, f"{sdist}[dev]", folder=workspace)
    # The tests look for the documentation and the paper beside the source, so they import infocap
    # from the unpacked archive.
    collect = (python, "-m", "pytest", "--collect-only", "-q")
    collected = run(*collect, folder=unpacked, source=unpacked / "src")
    print(f"tests of the sdist: {collected.strip().splitlines()[-1]}")


def main() -> None:
    """Check the one wheel and the one sdist of a folder."""
    parser = argparse.ArgumentParser(description="Check the wheel and the sdist of a folder.")
    parser.add_argument("folder", type=Path, help="the folder that `python -m build` wrote")
    folder = parser.parse_args().folder.resolve()

    version = check_versions()
    check_recipe()
    with tempfile.TemporaryDirectory(prefix="infocap-dist-") as name:
        workspace = Path(name)
        check_wheel(folder / f"infocap-{version}-py3-none-any.whl", workspace)
        check_sdist(folder / f"infocap-{version}.tar.gz", workspace)


if __name__ == "__main__":
    main()
