"""README: its session runs, and says what it does."""

import re
from pathlib import Path

import pytest

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


def test_the_demo_prints_a_summary_and_says_where_its_files_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile((ROOT / "examples" / "demo.py").read_text(), "demo.py", "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert "CapacityResult: total" in said
    for name in ("result.nc", "capacity-matrix.png", "capacity-bars.png", "light.png"):
        assert f"demo-output/{name}" in said
        assert (tmp_path / "demo-output" / name).exists()


@pytest.mark.parametrize("page", ["photonics.md", "repeats.md", "tasks.md", "estimators.md"])
def test_the_code_of_the_docs_runs(page):
    names = {}
    for block in code_blocks(ROOT / "docs" / page):
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "docs/architecture.md",
        "docs/theory.md",
        "docs/photonics.md",
        "docs/repeats.md",
        "docs/estimators.md",
        "docs/tasks.md",
        "paper/README.md",
    ],
)
def test_links_to_files_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []
