"""False alarms: how often the checks of the data accuse recordings without a fault, and what they cost.

Clean recordings of many kinds of device (_clean_devices.py) are measured in many orders
(_clean_designs.py) and judged by `infocap.diagnose`. A warning counts as a false alarm unless its
cause is a right word: true of every device of the kind, of the design, or of the very data, which
is then computed here (`FACTS`). Seeds are far from those of tests.

Since 19 November 2026 the kinds of `_clean_second_part` and the designs that are marked in
`_clean_designs` are held out; somebody wrote them who has not read the checks. ``--part held-out``
measures these kinds in all designs and all kinds in these designs; it is run when checks are
finished, and reported by totals only; ``--reveal`` lists its runs, too. ``--part third`` does the
same for the kinds of `_clean_third_part`, by somebody else who has not read the checks either, in
all designs, and ``--part fourth`` for the kinds and the designs of `_clean_fourth_part`. All other
kinds and designs count as developed. The third of the kinds that was held out before was run and
looked at.

    python benchmarks/alarms.py --write   # everything
    python benchmarks/alarms.py --only alarms --part developed --runs 10
    python benchmarks/alarms.py --show "delay line" held 500 697330000  # one run in words
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import infocap
from _clean_designs import (
    DESIGNS,
    DEVELOPED,
    FOURTH,
    HELD_OUT,
    THIRD,
    WORDS_ABOUT_INPUTS,
    as_file,
    design_names,
)
from _clean_devices import Kind, developed_kinds, readouts
from _clean_fourth_part import fourth_kinds
from _clean_second_part import held_out_kinds
from _clean_third_part import third_kinds
from _common import run_tables
from _cost_of_checks import cost_of_checks
from _real_recordings import cause_of, data_folder, in_cell, real_recordings, repair_in_words

# A run belongs to the later one of the parts of its kind and of its design.
PARTS = (DEVELOPED, HELD_OUT, THIRD, FOURTH)
TABLES = {
    "alarms": "Clean runs",
    "real": "Correct recordings of others",
    "cost": "Cost of the checks",
}
# Runs per kind in which all designs meet all numbers of samples: 17 designs, up to three sizes.
ALL_COMBINATIONS = 51
# The same for the seven designs that are held out.
HELD_OUT_COMBINATIONS = 21
# The same for the five designs of the fourth part.
FOURTH_COMBINATIONS = 15
# Runs in designs that are held out have seeds that begin so many after the first of their kind.
FIRST_HELD_OUT_RUN = 5000
FIRST_FOURTH_RUN = 7500
# Kinds begin at different combinations, so that few runs per kind visit all designs, too.
COMBINATIONS_BETWEEN_KINDS = 5
# Seeds begin here, far from those of tests; every kind has this many of its own.
FIRST_SEED = 52_000_000
SEEDS_PER_KIND = 10_000
# A mean this many standard errors of independent samples away from zero: the inputs of this very
# recording are not distributed as declared, by chance or by their order.
DEPARTURE_STANDARD_ERRORS = 4.0
# Share of the largest singular value below which a direction of the readouts is none.
NO_DIRECTION = 1e-7
# Samples per readout below which samples really are few.
FEW_SAMPLES_PER_READOUT = 4
CONFIDENCE = 0.95
# Right words after which `repaired` may change a clean recording: an input was measured repeatedly.
REASONS_TO_REPAIR = {"repeats", "stacked", "copies"}


@dataclass
class Run:
    """One clean recording and what was said about it.

    Parameters
    ----------
    kind, design, n, seed
        These make the recording again, with ``--show``.
    n_rows
        Its rows, which a raster scan may have fewer of than n.
    warnings, notes
        Causes of false alarms.
    right_warnings, right_notes
        Causes that are right words.
    sentences
        The false alarms among the warnings, in full.
    repair
        What `repaired` would change in the recording, in words.
    seconds
        Processor time of `diagnose`.
    """

    kind: str
    design: str
    n: int
    seed: int
    n_rows: int = 0
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    right_warnings: list[str] = field(default_factory=list)
    right_notes: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    repair: str = ""
    seconds: float = 0.0


# ---------------------------------------------------------------------------------------------
# What may be said rightly
# ---------------------------------------------------------------------------------------------


def inputs_depart(recording: infocap.Recording, basis: infocap.ProductBasis) -> bool:
    """Return whether low functions of these inputs have means that chance does not explain."""
    low = infocap.product_basis(basis.families, max_degree=4, max_interactions=2)
    values = low(recording.inputs)[:, 1:]
    means = np.abs(values.mean(axis=0))
    return bool(means.max() * np.sqrt(len(values)) > DEPARTURE_STANDARD_ERRORS)


def rank_is_lower(recording: infocap.Recording, basis: infocap.ProductBasis) -> bool:
    """Return whether a readout is a sum of others and of a constant."""
    x = recording.readouts - recording.readouts.mean(axis=0)
    spread = x.std(axis=0)
    live = spread > 0
    singular_values = np.linalg.svd(x[:, live] / spread[live], compute_uv=False)
    return bool(singular_values[-1] < NO_DIRECTION * singular_values[0])


def samples_are_few(recording: infocap.Recording, basis: infocap.ProductBasis) -> bool:
    n, k = recording.readouts.shape
    return n < FEW_SAMPLES_PER_READOUT * (k + 1)


def rows_are_copies(recording: infocap.Recording, basis: infocap.ProductBasis) -> bool:
    """Return whether two rows agree in all inputs and all readouts."""
    rows = np.hstack([recording.inputs, recording.readouts])
    return len(np.unique(rows, axis=0)) < len(rows)


# Causes that may be true of a recording, and how to find out without the check that names them.
Fact = Callable[[infocap.Recording, infocap.ProductBasis], bool]
FACTS: dict[str, Fact] = {
    "dependent": rank_is_lower,
    "few samples": samples_are_few,
    "stacked": rows_are_copies,
    "copies": rows_are_copies,
}
# The same for inputs whose rows depend on each other, and which therefore may be far from their
# distribution. Of independent inputs such a word is a false alarm, even where chance made it true.
FACTS_OF_DEPENDENT_INPUTS: dict[str, Fact] = {
    "domain": inputs_depart,
    "shape of inputs": inputs_depart,
    "correlated inputs": inputs_depart,
}


def is_right(cause: str, kind: Kind, design_name: str, recording: infocap.Recording) -> bool:
    """Return whether a cause may be named: of this kind, in this design, or of this recording."""
    design = DESIGNS[design_name]
    if cause in kind.right_words or cause in design.right_words:
        return True
    facts = FACTS
    if not design.is_random:
        facts = FACTS | FACTS_OF_DEPENDENT_INPUTS
        if kind.basis.memory and cause in WORDS_ABOUT_INPUTS:
            return True
    fact = facts.get(cause)
    return fact is not None and fact(recording, kind.basis)


# ---------------------------------------------------------------------------------------------
# Runs
# ---------------------------------------------------------------------------------------------


def first_seed_of(kind_name: str) -> int:
    """Return the first seed of a kind, which does not depend on the other kinds."""
    return FIRST_SEED + SEEDS_PER_KIND * (zlib.crc32(kind_name.encode()) % 100_000)


@cache
def kinds() -> dict[str, Kind]:
    """Return all kinds by their names, those that are held out behind the others."""
    return {**developed_kinds(), **held_out_kinds(), **third_kinds(), **fourth_kinds()}


def part_of(run: Run) -> str:
    """Return the later one of the parts of the kind and of the design."""
    parts_of_kinds = {HELD_OUT: held_out_kinds(), THIRD: third_kinds(), FOURTH: fourth_kinds()}
    parts = [part for part, table in parts_of_kinds.items() if run.kind in table]
    return max(*parts, DEVELOPED, DESIGNS[run.design].part, key=PARTS.index)


def runs_in(kind_name: str, designs: tuple[str, ...], n_runs: int, first_run: int) -> list[Run]:
    """Return the runs of a kind; designs and sizes take turns, so that all combinations occur."""
    table = kinds()
    sizes = table[kind_name].sizes
    offset = COMBINATIONS_BETWEEN_KINDS * list(table).index(kind_name)
    first_seed = first_seed_of(kind_name) + first_run
    runs = []
    for number in range(n_runs):
        combination = number + offset
        design = designs[combination % len(designs)]
        n = sizes[combination % len(sizes)]
        runs.append(Run(kind_name, design, n, first_seed + number))
    return runs


def planned_runs(kind_name: str, n_runs: int, part: str) -> list[Run]:
    """Return the runs of a kind in the designs that are developed and in those that are held out."""
    basis = kinds()[kind_name].basis
    n_held_out = -(-n_runs * HELD_OUT_COMBINATIONS // ALL_COMBINATIONS)
    n_fourth = -(-n_runs * FOURTH_COMBINATIONS // ALL_COMBINATIONS)
    runs = runs_in(kind_name, design_names(basis, DEVELOPED), n_runs, 0)
    runs += runs_in(kind_name, design_names(basis, HELD_OUT), n_held_out, FIRST_HELD_OUT_RUN)
    runs += runs_in(kind_name, design_names(basis, FOURTH), n_fourth, FIRST_FOURTH_RUN)
    return [run for run in runs if part in ("all", part_of(run))]


def clean_recording(run: Run) -> infocap.Recording:
    """Return the recording of a run."""
    kind = kinds()[run.kind]
    design = DESIGNS[run.design]
    u = design.draw(kind.basis, run.n, run.seed)
    x = readouts(kind, u, run.seed)
    return as_file(design, u, x, run.seed)


def judge(run: Run) -> Run:
    """Diagnose the recording of a run, and sort what is said into right words and false alarms."""
    kind = kinds()[run.kind]
    recording = clean_recording(run)
    start = time.process_time()
    diagnosis = infocap.diagnose(recording, basis=kind.basis)
    run.seconds = round(time.process_time() - start, 4)
    run.n_rows = len(recording.readouts)
    for check in diagnosis.checks:
        cause = cause_of(check)
        right = is_right(cause, kind, run.design, recording)
        if check.kind == "warning":
            causes = run.right_warnings if right else run.warnings
        else:
            causes = run.right_notes if right else run.notes
        if cause not in causes:
            causes.append(cause)
        if check.kind == "warning" and not right:
            run.sentences.append(str(check))
    run.repair = repair_in_words(diagnosis)
    return run


def judge_all(runs: list[Run]) -> list[Run]:
    """Judge the runs of one kind in a worker process."""
    return [judge(run) for run in runs]


def prepare_worker() -> None:
    """Give each worker process one thread, and keep warnings out of the way."""
    threadpool_limits(1)
    warnings.simplefilter("ignore", infocap.errors.DataWarning)


# ---------------------------------------------------------------------------------------------
# Tables
# ---------------------------------------------------------------------------------------------


def in_words(counter: Counter[str]) -> str:
    parts = [f"{cause} {number}" for cause, number in counter.most_common()]
    return ", ".join(parts) or "none"


def counted(runs: Iterable[Run], attribute: str) -> Counter[str]:
    """Return in how many runs each cause was named."""
    counter: Counter[str] = Counter()
    for run in runs:
        counter.update(getattr(run, attribute))
    return counter


def interval_in_words(n_alarms: int, n_runs: int) -> str:
    """Return a rate with its Clopper-Pearson interval in percent."""
    interval = binomtest(n_alarms, n_runs).proportion_ci(CONFIDENCE, method="exact")
    rate = 100 * n_alarms / n_runs
    return f"{rate:.2f} % ({100 * interval.low:.2f} to {100 * interval.high:.2f} %)"


def line_of_runs(name: str, runs: list[Run]) -> str:
    """Return one line of a table that groups runs."""
    n_alarms = sum(bool(run.warnings) for run in runs)
    accused = in_words(counted(runs, "warnings"))
    noted = in_words(counted(runs, "notes"))
    return f"| {name} | {len(runs)} | {n_alarms} | {accused} | {noted} |"


HEADING_OF_GROUPS = "| runs | with a warning | warnings | notes |\n|---|---|---|---|---|"


def table_by(runs: list[Run], attribute: str, names: Iterable[str]) -> list[str]:
    """Return a table with one line per device or per design."""
    lines = ["", f"| {attribute} {HEADING_OF_GROUPS}"]
    for name in names:
        group = [run for run in runs if getattr(run, attribute) == name]
        if group:
            lines.append(line_of_runs(name, group))
    return lines


def table_of_alarms(runs: list[Run]) -> list[str]:
    """Return the runs with false alarms, with what makes each of them again."""
    accused = [run for run in runs if run.warnings]
    if not accused:
        return []
    lines = ["", "| kind | design | N | seed | what is said |", "|---|---|---|---|---|"]
    for run in accused:
        sentences = in_cell(" / ".join(sentence[:120] for sentence in run.sentences))
        lines.append(f"| {run.kind} | {run.design} | {run.n} | {run.seed} | {sentences} |")
    return lines


def totals(runs: list[Run]) -> list[str]:
    """Return the totals of a part, and the rates in and out of random order."""
    orders = {
        "all": runs,
        "in random order": [run for run in runs if DESIGNS[run.design].looks_random],
        "in another order": [run for run in runs if not DESIGNS[run.design].looks_random],
        "without memory": [run for run in runs if not kinds()[run.kind].basis.memory],
        "with memory": [run for run in runs if kinds()[run.kind].basis.memory],
    }
    lines = [
        "",
        "| runs | number | with a false warning | rate (95 % interval) | warnings | notes |",
        "|---|---|---|---|---|---|",
    ]
    for name, group in orders.items():
        if not group:
            continue
        n_alarms = sum(bool(run.warnings) for run in group)
        lines.append(
            f"| {name} | {len(group)} | {n_alarms} | {interval_in_words(n_alarms, len(group))} "
            f"| {in_words(counted(group, 'warnings'))} | {in_words(counted(group, 'notes'))} |"
        )
    repaired = [run for run in runs if run.repair != "nothing"]
    n_wrong_repairs = sum(not REASONS_TO_REPAIR & set(run.right_warnings) for run in repaired)
    n_seconds = sum(run.seconds for run in runs)
    lines += [
        "",
        f"Right words, not counted above: {in_words(counted(runs, 'right_warnings'))} as warnings, "
        f"{in_words(counted(runs, 'right_notes'))} as notes. `repaired` would change "
        f"{len(repaired)} of {len(runs)} recordings, {n_wrong_repairs} of them without a reason. The median of `diagnose` is "
        f"{np.median([run.seconds for run in runs]):.3f} s of processor time, all together "
        f"{n_seconds:.0f} s.",
    ]
    return lines


def clean_runs(options: argparse.Namespace) -> list[str]:
    """Judge every kind of device, and return the tables of each part."""
    plans = {name: planned_runs(name, options.runs, options.part) for name in kinds()}
    names = [name for name, runs in plans.items() if runs]
    runs_of_kind: dict[str, list[Run]] = {}
    with ProcessPoolExecutor(options.processes, initializer=prepare_worker) as executor:
        jobs = {executor.submit(judge_all, plans[name]): name for name in names}
        for job in as_completed(jobs):
            name = jobs[job]
            runs_of_kind[name] = job.result()
            told = [
                run for run in runs_of_kind[name] if options.reveal or part_of(run) == "developed"
            ]
            if told:
                print(line_of_runs(name, told), flush=True)

    all_runs = [run for name in names for run in runs_of_kind[name]]
    if options.json:
        dump(all_runs, options.json)
    lines = []
    for part in PARTS:
        runs = [run for run in all_runs if part_of(run) == part]
        if not runs:
            continue
        n_kinds = len({run.kind for run in runs})
        n_designs = len({run.design for run in runs})
        lines += [
            "",
            f"**{part.capitalize()}**: {len(runs)} clean runs of {n_kinds} kinds in {n_designs} designs.",
        ]
        lines += totals(runs)
        if part == "developed" or options.reveal:
            lines += table_by(runs, "kind", names)
            lines += table_by(runs, "design", DESIGNS)
            lines += table_of_alarms(runs)
    return lines


def dump(runs: list[Run], path: Path) -> None:
    """Write every run to a JSON file."""
    entries = [asdict(run) | {"part": part_of(run)} for run in runs]
    path.write_text(json.dumps(entries, indent=1), encoding="utf-8")


def show(kind: str, design: str, n: str, seed: str) -> None:
    """Print what is said about one run, and which of it is right."""
    run = Run(kind, design, int(n), int(seed))
    print(infocap.diagnose(clean_recording(run), basis=kinds()[kind].basis))
    judge(run)
    print(f"false warnings: {run.warnings}, false notes: {run.notes}")
    print(f"right warnings: {run.right_warnings}, right notes: {run.right_notes}")
    print(f"repair: {run.repair}")


def pin_to_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument(
        "--runs",
        type=int,
        default=ALL_COMBINATIONS,
        help="of each kind of device in developed designs (default: 51)",
    )
    parser.add_argument("--only", choices=TABLES, help="one of the tables")
    parser.add_argument(
        "--part", choices=(*PARTS, "all"), default="all", help="of kinds and designs"
    )
    parser.add_argument("--reveal", action="store_true", help="list held-out runs one by one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run to this file")
    parser.add_argument("--data", metavar="DIR", help="the recordings of others (or INFOCAP_DATA)")
    parser.add_argument("--processes", type=int, default=2, help="that judge runs (default: 2)")
    parser.add_argument(
        "--rounds", type=float, default=1.0, help="factor on the rounds of the cost table"
    )
    parser.add_argument(
        "--show", nargs=4, metavar=("KIND", "DESIGN", "N", "SEED"), help="one run in words"
    )
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    if options.show:
        show(*options.show)
        return
    if options.only == "cost":
        pin_to_one_core()
    make_table = {
        "alarms": partial(clean_runs, options),
        "real": partial(real_recordings, data_folder(options.data)),
        "cost": partial(cost_of_checks, options.rounds),
    }
    tables = {}
    for name, title in TABLES.items():
        if options.only in (None, name):
            tables[title] = make_table[name]
    run_tables(
        "False alarms and cost of the checks", "python benchmarks/alarms.py", tables, options.write
    )


if __name__ == "__main__":
    main()
