"""README: its session runs, and says what it does."""

import re
import subprocess
import sys
from pathlib import Path

import infocap

ROOT = Path(infocap.__file__).parents[2]


def code_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_session_runs_and_leaves_what_it_promises(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = code_blocks(ROOT / "README.md")
    assert len(blocks) == 1
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 10
    exec(compile(blocks[0], "README.md", "exec"), {})
    assert "CapacityResult: total" in capsys.readouterr().out
    assert infocap.load_result("result.nc").n_readouts == 72
    assert (tmp_path / "matrix.png").stat().st_size > 10_000


def test_the_night_in_the_lab_runs_in_six_commands_or_fewer(tmp_path):
    (block,) = re.findall(
        r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    commands = block.splitlines()
    assert len(commands) <= 6
    for command in commands:
        name, *arguments = command.split()
        assert name == "infocap"
        call = [sys.executable, "-c", "from infocap.cli import run; run()", *arguments]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert infocap.load_result(tmp_path / "result.nc").metadata["provenance"]["plan"]["n_samples"] == 1024


def test_the_demo_prints_a_summary_and_says_where_its_files_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile((ROOT / "examples" / "demo.py").read_text(), "demo.py", "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert "CapacityResult: total" in said
    for name in ("result.nc", "report.html", "capacity-matrix.png", "capacity-bars.png", "light.png"):
        assert f"demo-output/{name}" in said
        assert (tmp_path / "demo-output" / name).exists()
