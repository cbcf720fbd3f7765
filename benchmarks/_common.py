"""What the benchmarks share: timing side by side, and the file of results."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import infocap

RESULTS = Path(__file__).with_name("RESULTS.md")


def seconds(function: Callable[[], object]) -> float:
    """One timed call, right after an untimed one; the pause lets the matrix library's threads fall asleep."""
    time.sleep(0.05)
    function()
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def side_by_side(jobs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median time of each job, the jobs taking turns so that the machine's moods hit all alike."""
    times = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            times[name].append(seconds(job))
    return {name: float(np.median(found)) for name, found in times.items()}


def is_about_data(check: infocap.errors.Check) -> bool:
    """Whether a warning is a finding about the data or their order, and not about the estimate."""
    cause = check.found.get("cause")
    return cause is not None and cause not in ("few samples", "dependent", "large fourth moments")


def machine() -> str:
    """What this ran on."""
    return (
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, infocap {infocap.__version__}."
    )


def write_section(name: str, text: str) -> None:
    """Replace one section of RESULTS.md and leave the others."""
    head, *sections = (
        RESULTS.read_text(encoding="utf-8").split("\n## ") if RESULTS.exists() else ["# Results\n"]
    )
    kept = [section for section in sections if not section.startswith(f"{name} (`")]
    body = [head.rstrip("\n"), *(f"## {section.strip()}" for section in kept), text.strip()]
    RESULTS.write_text("\n\n".join(body) + "\n", encoding="utf-8")


def run_tables(
    name: str, command: str, tables: dict[str, Callable[[], list[str]]], write: bool
) -> None:
    """Make and print each table; with `write`, keep them as one section of RESULTS.md."""
    text = [f"## {name} (`{command}`)\n\n{machine()}\n"]
    for title, make in tables.items():
        print(f"\n{title}", flush=True)
        lines = make()
        print("\n".join(lines), flush=True)
        text.append("\n".join([f"### {title}", "", *lines, ""]))
    if write:
        write_section(name, "\n".join(text))
