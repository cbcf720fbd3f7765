"""infocap sweep, and how acquire, extend and watch treat a sweep."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..._files import write_whole
from ..._formatting import counted, duration
from ...errors import Check, ParameterError
from ...workflow import Sweep, point_in_words
from ..experiment import (
    INTERRUPTED,
    REFRESH_INTERVAL_S,
    Plan,
    Status,
    SweepStatus,
    estimate_sweep,
    pace_in_words,
    sweep_status,
)
from ..experiment import acquire_sweep as acquire_settings
from ._estimate import MethodOptions
from ._outputs import PICTURE, refuse_existing, refuse_pictures, save_picture
from ._terminal import (
    EXIT_INTERRUPTED,
    FILE,
    FORCE,
    PATH,
    check_lines,
    echo,
    exit_with_warnings,
    is_warning,
    name_options,
    options,
    warnings_in_checks,
)

# Characters of the bar of a setting, which leaves room for its name and total.
SETTING_BAR_LENGTH = 12
# Settings that are shown one by one; of a larger sweep those around the one that is measured.
MAX_SETTINGS_SHOWN = 20
# Moves the cursor to the top left, and clears what is below.
CLEAR_SCREEN = "\x1b[H\x1b[J"


@click.command()
@click.argument("folder", type=PATH)
@click.option(
    "-o", "--output", type=PATH, help="Folder for the results, one .nc file for each setting."
)
@click.option("--table", type=FILE, help="Table of totals and capacity by degree, .csv")
@click.option("--plot", **PICTURE, help="Picture of capacity by degree at each setting.")
@click.option("--max-degree", type=int, help="Highest degree.  [default: the plan's]")
@options("method_options", MethodOptions)
@FORCE
@click.option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
def sweep(
    folder: Path,
    output: Path | None,
    *,
    table: Path | None,
    plot: tuple[Path, ...],
    max_degree: int | None,
    method_options: MethodOptions,
    force: bool,
    strict: bool,
) -> None:
    """Estimate the capacities at every setting of a sweep.

    FOLDER is what `infocap acquire` made with a plan that has a [sweep]. Go on with `infocap report
    RESULTS`, or with `infocap compare RESULTS/*.nc`.
    """
    if method_options.scheduler is not None:
        raise ParameterError("a sweep is estimated here, without --scheduler; leave it out.")
    if table is not None:
        refuse_existing(table, force, (".csv",))
    refuse_pictures(plot, [*plot, *([] if table is None else [table])])
    settings = method_options.settings()
    if max_degree is not None:
        plan = sweep_status(folder, capacities=False).plan
        settings["basis"] = replace(plan, sweep=None, max_degree=max_degree).basis
    with warnings_in_checks():
        swept = estimate_sweep(folder, **settings)
    written: list[Path] = [*plot]
    if output is not None:
        swept.save(output)
        written.append(output)
    if table is not None:
        with write_whole(table) as new_file:
            swept.to_dataframe().to_csv(new_file, index=False)
        written.append(table)
    for path in plot:
        save_picture("degree_bars", swept, path)
    echo(str(swept))
    warned = _warnings_by_setting(swept)
    for in_words, checks in warned.items():
        echo(f"\nat {in_words}:\n" + "\n".join(check_lines(checks)))
    if written:
        echo(f"\nwrote {', '.join(map(str, written))}")
    if strict and warned:
        exit_with_warnings()


def _warnings_by_setting(swept: Sweep) -> dict[str, list[Check]]:
    """Return the warnings at each setting that has any."""
    warned = {}
    for point, result in swept:
        checks = [check for check in result.checks if is_warning(check)]
        if checks:
            warned[point_in_words(point)] = checks
    return warned


def acquire_sweep(plan: Plan, device: Any, folder: Path, **settings: Any) -> None:
    """Measure a plan with a sweep, and say what is stored."""
    outcome = acquire_settings(plan, device, folder, **settings)
    echo(
        f"Sweep: {outcome.n_complete} of {counted(len(outcome.settings), 'setting')} complete, "
        f"{outcome.stored} of {outcome.planned} measurements\n"
        f"in {folder}, plan {outcome.plan.fingerprint[:12]}"
    )
    if not outcome.complete:
        reason = outcome.stopped or "intervals were narrow enough"
        echo(f"Stopped before all was measured ({reason}); the same command goes on from there.")
    if outcome.stopped == INTERRUPTED:
        raise SystemExit(EXIT_INTERRUPTED)


def watch_sweep(folder: Path, until: float | None, nan_policy: str, only_once: bool) -> None:
    """Show how a sweep stands, until it is complete or Ctrl-C."""
    current = sweep_status(folder, until=until, nan_policy=nan_policy)
    try:
        while True:
            if sys.stdout.isatty() and not only_once:
                click.echo(CLEAR_SCREEN, nl=False)
            echo(_screen(current))
            if only_once or current.complete:
                return
            time.sleep(REFRESH_INTERVAL_S)
            current = current.refreshed(until, nan_policy)
    except KeyboardInterrupt:
        echo("\nThe acquisition goes on without being watched.")


def _screen(current: SweepStatus) -> str:
    """Return all that `infocap watch` shows of a sweep at a time."""
    title = f" · {current.plan.title}" if current.plan.title else ""
    left = ""
    if not current.complete and current.seconds_left is not None:
        left = f", {duration(current.seconds_left)} left"
    lines = [
        f"{current.folder}{title} · plan {current.plan.fingerprint[:12]}",
        "",
        f"  {current.n_complete} of {counted(len(current.settings), 'setting')} complete, "
        f"{current.stored} of {current.planned} measurements{left}",
        "",
    ]
    names = [point_in_words(setting) for setting in current.settings]
    width = max(map(len, names))
    rows = list(zip(names, current.statuses, strict=True))
    first = _first_shown(current)
    if first > 0:
        lines.append(f"  {counted(first, 'setting')} before these")
    for name, at_setting in rows[first : first + MAX_SETTINGS_SHOWN]:
        lines.append(f"  {name:<{width}}  {_line_of(current, at_setting)}".rstrip())
    n_behind = len(rows) - first - MAX_SETTINGS_SHOWN
    if n_behind > 0:
        lines.append(f"  {counted(n_behind, 'setting')} behind these")
    if current.latest is not None and not current.complete:
        lines += ["", f"  {pace_in_words(current.latest)}"]
    for name, at_setting in rows:
        if at_setting is not None:
            warned = [check for check in at_setting.checks if is_warning(check)]
            lines += [f"  at {name}: {line}" for line in check_lines(warned)]
    lines += ["", f"  {current.advice}"]
    return "\n".join(lines)


def _first_shown(current: SweepStatus) -> int:
    """Return which setting is shown first, so that the one being measured is in the middle."""
    n_settings = len(current.statuses)
    n_begun = sum(at_setting is not None for at_setting in current.statuses)
    middle = n_begun - MAX_SETTINGS_SHOWN // 2
    return max(min(middle, n_settings - MAX_SETTINGS_SHOWN), 0)


def _line_of(current: SweepStatus, at_setting: Status | None) -> str:
    """Return how much of a setting is measured, and its total so far."""
    if at_setting is None:
        return f"{'░' * SETTING_BAR_LENGTH}   0%"
    share = at_setting.stored / current.planned_at(at_setting)
    n_full = int(SETTING_BAR_LENGTH * share)
    bar = "█" * n_full + "░" * (SETTING_BAR_LENGTH - n_full)
    result = at_setting.result
    if result is None:
        total = f"no capacities yet: {name_options(at_setting.problem)}"
    else:
        total = result.short_claim(result.total_in_words)
    return f"{bar} {share:4.0%}  {total}"
