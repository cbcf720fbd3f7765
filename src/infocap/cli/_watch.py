"""infocap watch: how a run stands, live in the terminal."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .._words import HALF_WIDTH_95, duration
from ..experiment import Status, status
from ..result import CapacityResult
from ._options import FILE
from ._terminal import as_options, wrapped

BAR = 40  # Bars have so many characters, which leaves room for the numbers on a line of 80.
HOME = "\x1b[H\x1b[J"  # to the top left, and clear what is below


@click.command()
@click.argument("store", type=FILE)
@click.option("--once", is_flag=True, help="Show it once and end; for scripts.")
@click.option("--json", "as_json", is_flag=True, help="With --once: as data.")
@click.option("--every", "every_s", type=click.FloatRange(min=0.1), default=5.0, help="Seconds.")
@click.option("--until", default=0.5, help="Width of the interval that is enough.")
def watch(store: Path, once: bool, as_json: bool, every_s: float, until: float) -> None:
    """Show rows, rate, time left, the total capacity and its interval, drift and warnings of a run.

    Works while the acquisition runs, and changes nothing. Ends when the run is complete, or with Ctrl-C.
    """
    now = status(store, until=until)
    if as_json:
        click.echo(json.dumps(_as_data(now)))
        return
    if once:
        click.echo(_screen(now))
        return
    try:
        while True:
            click.echo((HOME if sys.stdout.isatty() else "") + _screen(now))
            if now.complete:
                return
            time.sleep(every_s)
            now = status(store, until=until, earlier=now)
    except KeyboardInterrupt:
        click.echo("\nThe acquisition goes on without being watched.")


def _as_data(now: Status) -> dict[str, Any]:
    """Return what the screen shows, for programs."""
    result = now.result
    return {
        "stored": now.stored,
        "planned": now.planned,
        "complete": now.complete,
        "rate_hz": now.rate_hz,
        "seconds_left": now.seconds_left,
        "last_row_age_s": now.last_row_age_s,
        "total": None if result is None else result.total,
        "interval_width": now.width,
        "growth": None if result is None or result.growth is None else asdict(result.growth),
        "problem": now.problem,
        "checks": list(now.checks),
        "advice": now.advice,
    }


def _screen(now: Status) -> str:
    """Return one screen of text."""
    title = f" · {now.plan.title}" if now.plan.title else ""
    kinds = [getattr(check, "kind", "warning") for check in now.checks]  # a store's own checks are plain text
    lines = [f"{now.path}{title} · plan {now.plan.fingerprint[:12]}", "", _progress(now), _pace(now), ""]
    lines += [f"  no capacities yet: {now.problem}"] if now.result is None else _capacity(now.result)
    if now.checks:
        said = [f"  {kind}: {as_options(check)}" for kind, check in zip(kinds, now.checks, strict=True)]
        lines += ["", *map(wrapped, said)]
    return "\n".join([*lines, "", f"  {now.advice}"])


def _progress(now: Status) -> str:
    share = now.stored / max(now.planned, 1)
    full = math.floor(BAR * share)
    kinds = ", ".join(f"{have}/{wanted} {kind}s" for kind, (have, wanted) in now.counts.items())
    return f"  {'█' * full}{'░' * (BAR - full)} {share:4.0%}   {kinds}".replace("noises", "noise")


def _pace(now: Status) -> str:
    if now.rate_hz is None:
        return "  no rate yet"
    said = f"  {now.rate_hz:.3g} rows/s"
    if not now.complete and now.seconds_left is not None:
        said += f", {duration(now.seconds_left)} left"
    return said if now.last_row_age_s is None else f"{said}, last row {duration(now.last_row_age_s)} ago"


def _capacity(result: CapacityResult) -> list[str]:
    """Return the total against the number of samples, as a table with a drawing, and the drift."""
    most, growth, lines = result.maximum, result.growth, []
    if growth is not None:
        lines.append(
            f"  {'samples':>8}  {'total':>7}  95 % interval     0 {'':{BAR - len(str(most)) - 3}} {most}"
        )
        errors = growth.standard_error or [None] * len(growth.total)
        for n, total, error in zip(growth.n_samples, growth.total, errors, strict=True):
            half_width = HALF_WIDTH_95 * (error or 0.0)
            low, high = max(total - half_width, 0.0), min(total + half_width, float(result.rank))
            between = "" if error is None else f"{low:.2f} … {high:.2f}"
            lines.append(f"  {n:>8}  {total:>7.2f}  {between:<16} |{_drawn(low, total, high, most)}|")
    if result.drift is not None:
        lines += ["", f"  drift of the reference: {result.drift.size:.2%} of the readouts' spread"]
    return lines


def _drawn(low: float, total: float, high: float, most: int) -> str:
    places = [min(max(round(value / most * (BAR - 1)), 0), BAR - 1) for value in (low, total, high)]
    cells = [" "] * BAR
    cells[places[0] : places[2] + 1] = "─" * (places[2] - places[0] + 1)
    cells[places[1]] = "●"
    return "".join(cells)
