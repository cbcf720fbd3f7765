"""Every picture of the documentation is made by a script, and looks as that script draws it today."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import infocap

ROOT = Path(infocap.__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
# The script of every picture, and what it calls it; benchmarks/pictures.py writes into docs/images itself.
EXAMPLES = {
    "capacity-matrix.png": ("examples/demo.py", "demo-output/capacity-matrix.png"),
    "light.png": ("examples/demo.py", "demo-output/light.png"),
    "capacity-accuracy.png": ("examples/simulator.py", "example-output/capacity-accuracy.png"),
    "echo-state.png": ("examples/echo_state.py", "example-output/echo-state.png"),
}
PICTURES = {
    "estimators-error.png": "error",
    "estimators-calibration.png": "calibration",
    "estimators-zeros.png": "zeros",
    "report.png": "report",
    "demand-supply.png": "demand",
}
# Pictures of tests of the data, which are drawn all at once.
TESTS_OF_DATA = ("batches", "cells", "codes", "copies", "drift", "inputs", "lags", "late-input")
TESTS_OF_DATA += (
    "misfit",
    "response",
    "rows",
    "slip",
    "spectrum",
    "gain-lags",
    "noise-lags",
    "alike",
)
PRINCIPLE = {f"principle-{name}.png" for name in TESTS_OF_DATA}
DRAWN = {"architecture.svg"}  # by hand: boxes and arrows, no numbers
APART = 0.02  # mean difference of grey levels, from 0 to 1: fonts may differ between machines, data may not


def test_every_picture_has_a_script():
    names = {*EXAMPLES, *PICTURES, *PRINCIPLE, *DRAWN}
    assert {path.name for path in IMAGES.iterdir()} == names
    for script, made in EXAMPLES.values():
        assert Path(made).name in (ROOT / script).read_text(encoding="utf-8")
    code = (ROOT / "benchmarks" / "pictures.py").read_text(encoding="utf-8")
    assert [name for name in PICTURES if name not in code] == []
    assert [name for name in TESTS_OF_DATA if f'"{name}"' not in code] == []


def grey(path, shape=(200, 300)):
    """A picture as grey levels on a coarse raster, whatever its resolution."""
    picture = matplotlib.image.imread(path)[..., :3].mean(axis=-1)
    rows, columns = (
        np.linspace(0, size - 1e-9, count + 1).astype(int)
        for size, count in zip(picture.shape, shape, strict=True)
    )
    return np.add.reduceat(np.add.reduceat(picture, rows[:-1], 0), columns[:-1], 1) / np.outer(
        np.diff(rows), np.diff(columns)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_picture_of_an_example_is_what_the_example_draws(name, tmp_path, monkeypatch):
    script, made = EXAMPLES[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script])
    runpy.run_path(str(ROOT / script), run_name="__main__")
    assert np.abs(grey(tmp_path / made) - grey(IMAGES / name)).mean() < APART


def draw_pictures(which, folder):
    """Run the script of the pictures in a folder, and return where it puts them."""
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks")
    images = folder / "docs" / "images"
    images.mkdir(parents=True)
    command = [sys.executable, str(folder / "benchmarks" / "pictures.py"), "--only", which]
    subprocess.run(command, check=True, cwd=folder)
    return images


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_of_a_benchmark_is_what_the_script_draws(name, tmp_path, request):
    if name == "report.png":
        request.getfixturevalue("browser_program")  # it photographs the report
    images = draw_pictures(PICTURES[name], tmp_path)
    assert np.abs(grey(images / name) - grey(IMAGES / name)).mean() < APART


@pytest.mark.slow
def test_pictures_of_tests_of_the_data_are_what_the_script_draws(tmp_path):
    images = draw_pictures("principle", tmp_path)
    assert {path.name for path in images.iterdir()} == PRINCIPLE
    for name in PRINCIPLE:
        assert np.abs(grey(images / name) - grey(IMAGES / name)).mean() < APART
