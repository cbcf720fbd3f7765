"""Two versions of the package side by side: python benchmarks/before_after.py OLD 2 1 gpu.

OLD is a checkout of the earlier version; the other arguments are those of limits.py. Each version
runs its own `benchmarks/limits.py`, in processes of its own. The two versions take turns, because
machines are shared and noisy, and the least time of each job counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

NEW = Path(__file__).resolve().parents[1]
ROUNDS = 3


def measure(checkout: Path, place: str) -> dict[str, float]:
    """Return the seconds of every job of limits.py at one place, with the code of a checkout."""
    paths = [str(checkout / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    if place != "gpu":
        environment |= {"OMP_NUM_THREADS": place, "OPENBLAS_NUM_THREADS": place}
    command = [sys.executable, str(checkout / "benchmarks" / "limits.py"), "--measure", place]
    output = subprocess.run(
        command, check=True, env=environment, stdout=subprocess.PIPE, text=True
    ).stdout
    rows = [json.loads(line) for line in output.splitlines()]
    return {job: seconds for job, seconds, _ in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="checkout of the earlier version")
    parser.add_argument("places", nargs="+", help="numbers of threads, or gpu")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()

    versions = {"before": options.old.resolve(), "after": NEW}
    print("| threads | job | before | after | ratio |\n|---|---|---|---|---|", flush=True)
    for place in options.places:
        least: dict[str, dict[str, float]] = {"before": {}, "after": {}}
        for _ in range(options.rounds):
            for version, checkout in versions.items():
                for job, seconds in measure(checkout, place).items():
                    least[version][job] = min(seconds, least[version].get(job, float("inf")))
        for job, after in least["after"].items():
            before = least["before"][job]
            print(
                f"| {place} | {job} | {before * 1e3:.1f} ms | {after * 1e3:.1f} ms "
                f"| {after / before:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
