"""infocap draw, acquire, extend, watch and export: between plans, devices and files."""

import sys
import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Any

import click
import numpy as np

from ..._formatting import HALF_WIDTH_95, decimals, with_error
from ...errors import ParameterError
from ...result._capacity_result import CapacityResult
from ..experiment import _acquire
from ..experiment._instrument import MISTAKES, in_one_line, simulated
from ..experiment._plan import Plan
from ..experiment._status import Status, counts, pace, status
from ..experiment._store import Store
from ..files._read import STORES, read
from ._outputs import check_place, refuse_existing
from ._terminal import FILE, FORCE, PATH, check_lines, echo

BAR = 40  # Bars have so many characters, which leaves room for the numbers on a line of 80.
HOME = "\x1b[H\x1b[J"  # to the top left, and clear what is below


@click.command()
@click.argument("plan", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="File, .csv")
@FORCE
def draw(plan: Path, output: Path, force: bool) -> None:
    """Write the inputs of a plan, for other programs to measure.

    There is one row per measurement, in the order of acquisition. Send each row of u1, u2, ... to the device, write one
    row of readouts for each, and come back with `infocap import inputs.csv readouts.csv -o run.nc`.
    """
    refuse_existing(output, force, (".csv",))
    made = Plan.load(plan)
    made.write_inputs(output)
    echo(f"{len(made.schedule)} rows of {made.n_inputs} inputs, written to {output}")


@click.command()
@click.argument("source", type=PATH)
@click.argument("output", type=PATH)
@FORCE
def export(source: Path, output: Path, force: bool) -> None:
    """Write any readable file as .nc (everything) or .csv (a table).

    A store (.db) can also go to a new store, with all that is whole in a damaged one.
    """
    if output.suffix in STORES:
        with Store.rescue(source, output) as store:
            recording = store.recording()
    else:
        refuse_existing(output, force)
        recording = read(source)
        recording.save(output)
    echo(f"{recording}\nwritten to {output}")


@click.command()
@click.argument("plan", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="Store, .db")
@click.option(
    "--instrument",
    required=True,
    help="package.module:make, a function of yours that gives an object with measure(u); or 'simulated'.",
)
@click.option("--retries", default=3, help="How often to ask the instrument again after a failure.")
@click.option("--wait", "wait_s", default=1.0, help="Seconds to wait before asking again.")
@click.option("--timeout", "timeout_s", type=float, help="Seconds to wait for one measurement.")
@click.option(
    "--until", type=float, help="Stop once the 95 % interval of the total is narrower than this."
)
@click.option("--other-instrument", is_flag=True, help="Go on with another instrument than before.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def acquire(plan: Path, output: Path, instrument: str, quiet: bool, **settings: Any) -> None:
    """Measure what a plan asks for and the store does not hold yet.

    Every row is on the disk before the next is measured. Ctrl-C stops after the row; the same command goes on.
    """
    check_place(output, STORES)
    made = Plan.load(plan)
    device = _instrument(instrument, made, plan.parent)
    try:
        recording = _acquire.acquire(made, device, output, progress=not quiet, **settings)
    except KeyboardInterrupt:
        echo(f"Interrupted at once; what was measured before is safe in {output}.", err=True)
        raise SystemExit(130) from None
    except MISTAKES:  # in the user's own driver: they need the file and the line
        traceback.print_exc()
        raise SystemExit(3) from None
    echo(f"{recording}\nin {output}, plan {recording.metadata['fingerprint'][:12]}")
    why = recording.metadata.get("stopped")
    if why is not None:
        echo(f"Stopped before all was measured ({why}); the same command goes on from there.")
    if why == _acquire.INTERRUPTED:
        raise SystemExit(130)


@click.command()
@click.argument("store", type=FILE)
@click.option(
    "--n-samples",
    "n_samples",
    type=int,
    required=True,
    help="In all; a few more where blocks must be whole.",
)
def extend(store: Path, n_samples: int) -> None:
    """Plan more samples for a run, complete or not."""
    longer = _acquire.extend(store, n_samples)
    echo(
        f"{store}: {longer.n_samples} samples, {len(longer.schedule)} measurements, plan {longer.fingerprint[:12]}"
    )
    echo("The same `infocap acquire` as before measures what is missing.")


def _instrument(name: str, plan: Plan, folder: Path) -> Any:
    """Return the simulated bench, or what makes the user's instrument."""
    if name == "simulated":
        return simulated(plan)
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ParameterError(
            f"--instrument {name} must look like package.module:make, or be 'simulated'."
        )
    # The driver lies beside the plan, or here; it may import more of its kind later. What lies there must not take the
    # place of what is installed.
    sys.path += [str(Path.cwd()), str(folder.resolve())]
    try:
        return getattr(import_module(module), attribute)
    except (Exception, SystemExit) as problem:  # the user's own code may raise anything
        raise ParameterError(
            f"--instrument {name} cannot be loaded: {in_one_line(problem)}."
        ) from problem


@click.command()
@click.argument("store", type=FILE)
@click.option("--once", is_flag=True, help="Show it once and end; for scripts.")
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(min=0.1),
    default=5.0,
    help="Seconds between updates.",
)
@click.option(
    "--until", default=0.5, help="Advise to stop when the 95 % interval of the total is narrower."
)
@click.option(
    "--web",
    is_flag=True,
    help="Show the report live in a browser of this machine. Ends with Ctrl-C.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the page; 0 takes any that is free.",
)
def watch(store: Path, once: bool, every_s: float, until: float, web: bool, port: int) -> None:
    """Show how a run stands, and its capacities so far.

    That is rows, rate, time left, the total capacity and its interval, drift and warnings. Works while the acquisition
    runs, and changes nothing. Ends when the run is complete, or with Ctrl-C.
    """
    if web:
        from ..report._live import live  # with matplotlib, which is heavy

        with (
            live(store, until=until, port=port) as address,
            suppress(KeyboardInterrupt),
        ):
            echo(
                f"The report of {store}, live, for browsers of this machine: {address}\nCtrl-C ends it."
            )
            Event().wait()
        return
    now = status(store, until=until)
    try:
        while True:
            click.echo(HOME if sys.stdout.isatty() and not once else "", nl=False)
            echo(_screen(now))
            if once or now.complete:
                return
            time.sleep(every_s)
            now = status(store, until=until, earlier=now)
    except KeyboardInterrupt:
        echo("\nThe acquisition goes on without being watched.")


def _screen(now: Status) -> str:
    title = f" · {now.plan.title}" if now.plan.title else ""
    share = now.stored / now.planned
    full = int(BAR * share)
    bar = f"  {'█' * full}{'░' * (BAR - full)} {share:4.0%}   {counts(now)}"
    lines = [f"{now.path}{title} · plan {now.plan.fingerprint[:12]}", "", bar, f"  {pace(now)}", ""]
    lines += (
        [f"  no capacities yet: {now.problem}"] if now.result is None else _capacity(now.result)
    )
    if now.checks:
        lines += ["", *(f"  {line}" for line in check_lines(now.checks))]
    return "\n".join([*lines, "", f"  {now.advice}"])


def _capacity(result: CapacityResult) -> list[str]:
    """Return the total against the number of samples, as a table with a drawing, and the drift."""
    most, growth, lines = result.maximum, result.growth, []
    if growth is not None:
        scale = f"0{most:>{BAR - 1}}"
        lines.append(f"  {'samples':>8}  {'total':>7}  95 % interval     {scale}")
        errors = (not result.unreliable and growth.standard_error) or [None] * len(growth.total)
        for n, total, error in zip(growth.n_samples, growth.total, errors, strict=True):
            half_width = HALF_WIDTH_95 * (error or 0.0)
            low, high = max(total - half_width, 0.0), min(total + half_width, float(result.rank))
            digits = decimals(error or 0.1)
            between = "" if error is None else f"{low:.{digits}f} … {high:.{digits}f}"
            first, middle, last = np.rint(
                np.clip([low, total, high], 0, most) / most * (BAR - 1)
            ).astype(int)
            drawn = f"{'':{first}}{'─' * (middle - first)}●{'─' * (last - middle)}"
            lines.append(f"  {n:>8}  {total:>7.{digits}f}  {between:<16} |{drawn:<{BAR}}|")
    if result.unreliable or growth is None:
        stands = result.qualified_total or with_error(
            result.total, result.total_standard_error, HALF_WIDTH_95
        )
        lines.append(
            f"  total {stands}{'' if result.unreliable else f' (95 % interval) of at most {most}'}"
        )
    if result.drift is not None:
        lines += ["", f"  drift of the reference: {result.drift.size:.2%} of the readouts' spread"]
    return lines
