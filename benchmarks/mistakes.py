"""Mistakes that laboratories make, on many devices: which are noticed, and whether the right cause is named.

``python benchmarks/mistakes.py --write`` takes some 25 minutes on two cores.

A mistake is made on data of a device that is simulated (`_mistakes_devices`). It counts where the answer of the
default method differs from that on clean data of the same device. Then a warning should be given, with a cause that
describes the mistake truly (`_mistakes_kinds` has the words).

Since 19 November 2026 the kinds of `_mistakes_second_part` and the devices of `_mistakes_devices_second_part` are held
out; somebody wrote them who has not read the checks. Who develops checks reads neither module, runs ``--part
developed`` only, and ``--part held-out`` once, when the checks are finished: it makes these kinds on all devices and
all kinds on these devices, and tells how well checks do on what nobody has seen. The kinds and devices of the modules
``_mistakes_*third_part*``, by somebody else who has not read the checks either, are held out in the same way; ``--part
third`` makes these kinds on all devices, and all kinds on these devices. The same holds for the modules
``_mistakes_*fourth_part*`` and ``--part fourth``. All other kinds and devices count as
developed. The third of them that was held out before was run and looked at.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path

from _common import run_tables
from _mistakes_devices import DEVELOPED, DEVICES, FOURTH, HELD_OUT, THIRD, Device
from _mistakes_kinds import KINDS, Kind
from _mistakes_verdict import (
    CRASHED,
    NAMED,
    ONLY_GENERIC,
    OTHER_CAUSE,
    OUTCOMES,
    REFUSED,
    SILENT,
    Case,
    judge,
)

# Each of these modules puts its kinds or devices into the table KINDS or DEVICES when it is imported.
MODULES_OF_TABLES = (
    "_mistakes_of_rows",
    "_mistakes_in_time",
    "_mistakes_of_values",
    "_mistakes_of_inputs",
    "_mistakes_of_sequences",
    "_mistakes_second_part",
    "_mistakes_devices_second_part",
    "_mistakes_third_part_of_rows",
    "_mistakes_third_part_of_values",
    "_mistakes_third_part_in_time",
    "_mistakes_devices_third_part",
    "_mistakes_devices_with_memory_third_part",
    "_mistakes_fourth_part_of_rows",
    "_mistakes_fourth_part_in_time",
    "_mistakes_fourth_part_of_values",
    "_mistakes_fourth_part_of_inputs",
    "_mistakes_devices_fourth_part",
    "_mistakes_devices_with_memory_fourth_part",
)
for module in MODULES_OF_TABLES:
    import_module(module)

# Kinds that one process works on before it reports.
KINDS_PER_JOB = 12
# A pair of a kind and a device belongs to the later one of their parts.
PARTS = (DEVELOPED, HELD_OUT, THIRD, FOURTH)
ALL_PARTS = "all"
# Cells of each part: which of kind and device belong to it; the other one belongs to an earlier part.
CELLS_OF_PART = {
    DEVELOPED: {"both": "developed"},
    HELD_OUT: {
        "kind": "kind held out",
        "device": "device held out",
        "both": "both held out",
    },
    THIRD: {
        "kind": "kind of the third part",
        "device": "device of the third part",
        "both": "both of the third part",
    },
    FOURTH: {
        "kind": "kind of the fourth part",
        "device": "device of the fourth part",
        "both": "both of the fourth part",
    },
}
MARKS = {
    SILENT: "**silent**",
    ONLY_GENERIC: "generic",
    OTHER_CAUSE: "other",
    NAMED: "named",
    REFUSED: "refused",
    CRASHED: "**crashed**",
}


def later_part(device_part: str, kind_part: str) -> str:
    """Return the part to which a pair of a device and a kind belongs."""
    return max(device_part, kind_part, key=PARTS.index)


def part_of(case: Case) -> str:
    """Return the part to which a case belongs."""
    return later_part(case.device_part, case.kind_part)


def cell_of(case: Case) -> str:
    """Return which of kind and device are held out, and in which part."""
    cells = CELLS_OF_PART[part_of(case)]
    if case.device_part == case.kind_part:
        return cells["both"]
    return cells["kind" if case.kind_part == part_of(case) else "device"]


def chosen_pairs(options: argparse.Namespace) -> dict[Device, list[Kind]]:
    """Return the kinds that are made on every device."""
    pairs: dict[Device, list[Kind]] = {}
    for device in DEVICES.values():
        if options.devices and device.name not in options.devices:
            continue
        n_channels = device.run(0).n_channels
        for kind in KINDS.values():
            if options.kinds and kind.name not in options.kinds:
                continue
            is_in_part = options.part in (ALL_PARTS, later_part(device.part, kind.part))
            if is_in_part and kind.is_possible_on(device, n_channels):
                pairs.setdefault(device, []).append(kind)
    return pairs


def judge_kinds(device_name: str, kind_names: Sequence[str]) -> list[Case]:
    """Return what became of some kinds of mistakes on one device."""
    device = DEVICES[device_name]
    return [judge(device, KINDS[name]) for name in kind_names]


def use_one_thread() -> None:
    """Limit the matrix library of this process, whose neighbour needs the other core."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1)


def all_cases(pairs: dict[Device, list[Kind]], n_processes: int) -> list[Case]:
    """Return what became of every pair of a device and a kind, in the order of the tables."""
    jobs = []
    for device, kinds in pairs.items():
        names = [kind.name for kind in kinds]
        for start in range(0, len(names), KINDS_PER_JOB):
            jobs.append((device.name, names[start : start + KINDS_PER_JOB]))
    cases: list[Case] = []
    with ProcessPoolExecutor(n_processes, initializer=use_one_thread) as pool:
        for part in pool.map(judge_kinds, *zip(*jobs, strict=True)):
            cases += part
            print(f"\r{len(cases)} cases", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return cases


def row(cells: Iterable[object]) -> str:
    """Return one row of a table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def score(title: str, cases: Sequence[Case]) -> str:
    """Return the row of a table that counts what became of wrong cases."""
    wrong = [case for case in cases if case.wrong]
    counts = Counter(case.outcome for case in wrong)
    first = sum(case.first_named for case in wrong)
    elsewhere = sum(case.named_elsewhere for case in wrong)
    plain = [case for case in wrong if not (case.debatable or case.traceless)]
    silent = sum(case.outcome == SILENT for case in plain)
    harmless = [case for case in cases if not case.wrong]
    warned = sum(case.outcome != SILENT for case in harmless)
    return row(
        [
            title,
            len(wrong),
            *(counts[outcome] for outcome in OUTCOMES),
            first,
            elsewhere,
            f"{silent} of {len(plain)}",
            f"{warned} of {len(harmless)}",
        ]
    )


def scores(cases: Sequence[Case], has_memory: bool) -> list[str]:
    """Return how many wrong cases are noticed in each cell."""
    lines = [
        row(
            [
                "cell",
                "wrong",
                *OUTCOMES,
                "first named",
                "named only in a note or by estimate",
                "silent, neither debatable nor without trace",
                "not wrong, warned",
            ]
        ),
        "|---" * (len(OUTCOMES) + 6) + "|",
    ]
    of_sort = [case for case in cases if case.has_memory == has_memory]
    for part, cells in CELLS_OF_PART.items():
        of_part = [case for case in of_sort if part_of(case) == part]
        if not of_part:
            continue
        for cell in cells.values():
            lines.append(score(cell, [case for case in of_part if cell_of(case) == cell]))
        if len(cells) > 1:
            lines.append(score(f"**all of the part {part}**", of_part))
    lines.append(score("**all**", of_sort))
    return lines


def cases_with(cases: Sequence[Case], outcomes: Sequence[str]) -> list[str]:
    """Return a list of the wrong cases that had one of these outcomes, by kind."""
    lines = []
    for kind in KINDS.values():
        told = []
        for case in cases:
            if case.kind == kind.name and case.wrong and case.outcome in outcomes:
                said = ", ".join(case.causes) or case.message
                told.append(f"{case.device} ({said})" if said else case.device)
        if told:
            marks = " (debatable)" * kind.debatable + " (no trace)" * kind.traceless
            marks += " (no trace with memory)" * kind.traceless_with_memory
            lines.append(f"- {kind.name}{marks}: {'; '.join(told)}")
    return lines or ["None."]


def kinds_by_devices(cases: Sequence[Case], has_memory: bool) -> list[str]:
    """Return what became of every kind on every device."""
    of_sort = {(case.kind, case.device): case for case in cases if case.has_memory == has_memory}
    devices = [name for name in DEVICES if any(name == device for _, device in of_sort)]
    kinds = [name for name in KINDS if any(name == kind for kind, _ in of_sort)]
    lines = [row(["mistake", *devices]), "|---" * (1 + len(devices)) + "|"]
    for kind in kinds:
        part = KINDS[kind].part
        cells = [kind if part == DEVELOPED else f"{kind} ({part})"]
        for device in devices:
            case = of_sort.get((kind, device))
            if case is None:
                cells.append("–")
            elif case.wrong:
                cells.append(MARKS[case.outcome])
            else:
                cells.append("·" if case.outcome == SILENT else f"({case.outcome})")
        lines.append(row(cells))
    lines += ["", "A dot: the answer is not wrong, and nothing is said. In brackets: not wrong."]
    return lines


def tables_of(cases: Sequence[Case]) -> dict[str, Callable[[], list[str]]]:
    """Return the tables by their titles."""
    tables: dict[str, Callable[[], list[str]]] = {}
    for has_memory, sort in ((False, "without memory"), (True, "with memory")):
        if any(case.has_memory == has_memory for case in cases):
            tables[f"Devices {sort}"] = partial(scores, cases, has_memory)
    tables["Wrong and silent"] = partial(cases_with, cases, [SILENT])
    tables["Wrong, and the right cause is not named"] = partial(
        cases_with, cases, [ONLY_GENERIC, OTHER_CAUSE]
    )
    if any(case.outcome == CRASHED for case in cases):
        tables["Crashed"] = partial(cases_with, cases, [CRASHED])
    for has_memory, sort in ((False, "without memory"), (True, "with memory")):
        if any(case.has_memory == has_memory for case in cases):
            tables[f"Every kind, devices {sort}"] = partial(kinds_by_devices, cases, has_memory)
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument("--part", choices=(ALL_PARTS, *PARTS), default=ALL_PARTS)
    parser.add_argument("--json", type=Path, help="a file for every case")
    parser.add_argument("--kinds", nargs="+", metavar="NAME", choices=KINDS)
    parser.add_argument("--devices", nargs="+", metavar="NAME", choices=DEVICES)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()

    start = time.time()
    pairs = chosen_pairs(options)
    if not pairs:
        parser.error("none of these kinds can be made on these devices, in this part.")
    cases = all_cases(pairs, options.processes)
    print(f"{len(cases)} cases in {time.time() - start:.0f} s", file=sys.stderr)
    if options.json:
        listed = [asdict(case) | {"cell": cell_of(case)} for case in cases]
        options.json.write_text(json.dumps(listed, indent=1), encoding="utf-8")
    command = "python benchmarks/mistakes.py"
    run_tables("Mistakes that are noticed", command, tables_of(cases), options.write)


if __name__ == "__main__":
    main()
