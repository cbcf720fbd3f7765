"""README: its session runs, and says what it does."""

import re
import runpy
import subprocess
import sys
from math import tanh
from pathlib import Path
from random import Random

import numpy as np
import pytest

import infocap

pytestmark = pytest.mark.pages

ROOT = Path(infocap.__file__).parents[2]


def code_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_session_runs_and_leaves_what_it_promises(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = code_blocks(ROOT / "README.md")
    assert len(blocks) == 2
    for block in blocks:
        assert len([line for line in block.splitlines() if line.strip()]) <= 10
    exec(compile(blocks[0], "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.count("total ") == 1
    assert "CapacityResult: total 23.30 ± 0.44 of at most 72" in printed
    assert "check:" not in printed
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "The total is 23.30 ± 0.44 of at most 72" in text
    assert (tmp_path / "matrix.png").stat().st_size > 10_000
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_session_with_a_reservoir_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code_blocks(ROOT / "README.md")[1], "README.md", "exec"), names)
    assert len(names["basis"]) == 333
    assert names["result"].warnings == ()
    printed = capsys.readouterr().out
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    result = names["result"]
    # One total, and both memory capacities, in print and in the text.
    assert re.findall(r"total (\d+\.\d+ ± \d+\.\d+)", printed) == [result.total_in_words]
    assert f"The total is {result.total_in_words} of at most 51" in text
    assert result.memory_capacity_in_words in text
    assert result.memory_capacity_in_words in printed
    assert printed.splitlines()[-1].startswith("{1: ")
    assert (tmp_path / "memory.png").stat().st_size > 10_000


def rows_of_devices(path):
    """The rows of the table of three reservoirs: total, predicted and trained score."""
    pattern = r"^\| (?:echo state network|delay reservoir).*$"
    return re.findall(pattern, path.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_the_table_of_predicted_scores_is_what_its_example_finds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = runpy.run_path(str(ROOT / "examples" / "which_device.py"))
    readme = rows_of_devices(ROOT / "README.md")
    assert readme == rows_of_devices(ROOT / "docs" / "tasks.md")
    assert len(readme) == len(example["DEVICES"]) == 3
    result = example["measure"]("strong")
    task = infocap.tasks.named_task("narma10", result.basis)
    predicted = infocap.tasks.predict_score(task, result)
    total, score, trained = readme[2].strip("| ").split(" | ")[1:]
    assert total == result.total_in_words
    assert score == predicted.score_in_words
    value, error = map(float, trained.split(" ± "))
    assert abs(value - predicted.score) < 2 * np.hypot(error, predicted.standard_error)


@pytest.mark.slow
def test_every_row_of_the_table_of_predicted_scores(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "which_device.py"), run_name="__main__")
    numbers = re.findall(r"(\d+\.\d+ ± \d+\.\d+)", capsys.readouterr().out)
    in_readme = re.findall(r"(\d+\.\d+ ± \d+\.\d+)", "".join(rows_of_devices(ROOT / "README.md")))
    assert numbers == in_readme


def test_the_night_in_the_lab_runs_in_six_commands_or_fewer(tmp_path):
    (block,) = re.findall(
        r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    commands = block.splitlines()
    assert len(commands) <= 6
    for command in commands:
        name, *arguments = command.split()
        assert name == "infocap"
        call = [sys.executable, "-c", "from infocap.lab.cli import run; run()", *arguments]
        done = subprocess.run(
            call, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (
        infocap.load_result(tmp_path / "result.nc").metadata["provenance"]["plan"]["n_samples"]
        == 2048
    )


def write_table(path, names, low, high):
    """Measured data as a physicist has them: two inputs, 20 nonlinear readouts with noise, made by plain Python."""
    random = Random(1)
    weights = [[random.gauss(0, 1.5) for _ in range(3)] for _ in range(20)]
    lines = [",".join([*names, *(f"x{k + 1}" for k in range(20))])]
    for _ in range(600):
        u = [random.uniform(-1, 1) for _ in range(2)]
        x = [tanh(a * u[0] + b * u[1] + c) + random.gauss(0, 0.01) for a, b, c in weights]
        lines.append(
            ",".join(
                f"{value:.6f}" for value in [*(low + (high - low) * (v + 1) / 2 for v in u), *x]
            )
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("names", "interval", "options"),
    [
        (["u1", "u2"], (-1, 1), []),
        (["Voltage A", "Voltage B"], (0, 5), ["--u", "Voltage A,Voltage B", "--domain", "0", "5"]),
    ],
)
def test_own_data_become_a_report_in_ten_commands_or_fewer(names, interval, options, tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    commands = block.splitlines()
    assert len(commands) <= 10
    write_table(tmp_path / "mine.csv", names, *interval)
    for command in (line for line in commands if line.startswith("infocap ")):
        _, name, *arguments = command.split()
        extra = options if name == "estimate" else []
        call = [
            sys.executable,
            "-c",
            "from infocap.lab.cli import run; run()",
            name,
            *arguments,
            *extra,
        ]
        done = subprocess.run(
            call, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 10 < infocap.load_result(tmp_path / "result.nc").total < 21


def test_the_demo_prints_a_summary_and_says_where_its_files_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(
        compile((ROOT / "examples" / "demo.py").read_text(), "demo.py", "exec"),
        {"__name__": "__main__"},
    )
    printed = capsys.readouterr().out
    assert "CapacityResult: total 23.30 ± 0.44 of at most 72" in printed  # as in README
    for name in (
        "result.nc",
        "report.html",
        "capacity-matrix.png",
        "capacity-bars.png",
        "light.png",
    ):
        assert f"demo-output/{name}" in printed
        assert (tmp_path / "demo-output" / name).exists()
