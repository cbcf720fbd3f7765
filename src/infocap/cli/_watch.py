"""infocap watch: how a run stands, live in the terminal."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import click

from ..experiment import Status, status
from ._terminal import wrapped

BAR = 40  # characters
HOME = "\x1b[H\x1b[J"  # to the top left, and clear what is below


@click.command()
@click.argument("store", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--once", is_flag=True, help="Show it once and end; for scripts.")
@click.option("--json", "as_json", is_flag=True, help="With --once: as data.")
@click.option(
    "--every", "every_s", type=click.FloatRange(min=0.1), default=5.0, show_default=True, help="Seconds."
)
@click.option(
    "--until", type=float, default=0.5, show_default=True, help="Width of the interval that is enough."
)
def watch(store: Path, once: bool, as_json: bool, every_s: float, until: float) -> None:
    """Show rows, rate, time left, the total capacity and its interval, drift and warnings of a run.

    Works while the acquisition runs, and changes nothing. Ends when the run is complete, or with Ctrl-C.
    """
    now = status(store, until=until)
    if as_json:
        click.echo(json.dumps(as_data(now)))
        return
    if once:
        click.echo(show(now))
        return
    try:
        while True:
            click.echo((HOME if sys.stdout.isatty() else "") + show(now))
            if now.complete:
                return
            time.sleep(every_s)
            now = status(store, until=until, earlier=now)
    except KeyboardInterrupt:
        click.echo("\nThe acquisition goes on without being watched.")


def as_data(now: Status) -> dict[str, Any]:
    """The same for programs."""
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
        "growth": None if result is None else result.metadata.get("growth"),
        "problem": now.problem,
        "checks": list(now.checks),
        "advice": now.advice,
    }


def show(now: Status) -> str:
    """One screen of text."""
    title = f" · {now.plan.title}" if now.plan.title else ""
    lines = [f"{now.path}{title} · plan {now.plan.fingerprint[:12]}", "", _progress(now), _pace(now), ""]
    lines += _capacity(now)
    if now.checks:
        lines += ["", *(wrapped(f"  warning: {check}") for check in now.checks)]
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


def _capacity(now: Status) -> list[str]:
    """The total against the number of samples: a table with a drawing, and the drift."""
    if now.result is None:
        return [f"  no capacities yet: {now.problem}"]
    growth, most = now.result.metadata["growth"], now.result.maximum
    errors = growth["standard_error"] or [None] * len(growth["total"])
    lines = [f"  {'samples':>8}  {'total':>7}  95 % interval     0 {'':{BAR - len(str(most)) - 3}} {most}"]
    for n, total, error in zip(growth["n_samples"], growth["total"], errors, strict=True):
        reach = 0.0 if error is None else 1.96 * error
        low, high = max(total - reach, 0.0), min(total + reach, float(now.result.rank))
        between = "" if error is None else f"{low:.2f} … {high:.2f}"
        lines.append(f"  {n:>8}  {total:>7.2f}  {between:<16} |{_drawn(low, total, high, most)}|")
    drift = now.result.metadata.get("drift")
    if drift:
        lines += ["", f"  drift of the reference: {drift['size']:.2%} of the readouts' spread"]
    return lines


def _drawn(low: float, total: float, high: float, most: int) -> str:
    places = [min(max(round(value / most * (BAR - 1)), 0), BAR - 1) for value in (low, total, high)]
    cells = [" "] * BAR
    cells[places[0] : places[2] + 1] = "─" * (places[2] - places[0] + 1)
    cells[places[1]] = "●"
    return "".join(cells)


def duration(seconds: float) -> str:
    """A time as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def size(n_bytes: float) -> str:
    """An amount of memory for people."""
    return f"{n_bytes / 1e6:.0f} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:.1f} GB"
