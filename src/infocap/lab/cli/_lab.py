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

from ..._formatting import CANNOT_BE_TOLD, HALF_WIDTH_95, counted, decimals, exceeds
from ...errors import ParameterError
from ...result import CapacityResult, Growth
from ..experiment import (
    DRIVER_MISTAKES,
    INTERRUPTED,
    NAN_POLICIES,
    REFRESH_INTERVAL_S,
    Plan,
    Status,
    Store,
    counts_in_words,
    error_in_one_line,
    extend_sweep,
    pace_in_words,
    simulated_bench,
    status,
)
from ..experiment import acquire as acquire_measurements
from ..experiment import extend as extend_store
from ..files import STORES, read
from ._outputs import refuse_existing, refuse_place
from ._sweep import acquire_sweep, watch_sweep
from ._terminal import (
    EXIT_BAD_DATA,
    EXIT_INTERRUPTED,
    FILE,
    FORCE,
    PATH,
    NameChoice,
    check_lines,
    echo,
    name_options,
    wrapped,
)

# Characters of the bars, which leave room for the numbers on a line of 80.
BAR_LENGTH = 40
# The option of acquire and watch for missing values.
NAN_POLICY = click.option(
    "--nan-policy",
    type=NameChoice(NAN_POLICIES),
    default="raise",
    help="What capacities do with rows in which values are missing: refuse, or leave out.",
)
# Moves the cursor to the top left, and clears what is below.
CLEAR_SCREEN = "\x1b[H\x1b[J"
# Decimals of a total in the table of `infocap watch` are those of this error, where no error is
# known.
ASSUMED_ERROR = 0.1


@click.command()
@click.argument("plan", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="File, .csv")
@FORCE
def draw(plan: Path, output: Path, force: bool) -> None:
    """Write the inputs of a plan, for other programs to measure.

    There is one row per measurement, in the order of acquisition. Send each row of u1, u2, ... to
    the device, write one row of readouts for each, and come back with `infocap import inputs.csv
    readouts.csv -o run.nc`.
    """
    refuse_existing(output, force, (".csv",))
    loaded_plan = Plan.load(plan)
    loaded_plan.write_inputs(output)
    n_rows = len(loaded_plan.schedule)
    echo(f"{n_rows} rows of {loaded_plan.n_inputs} inputs, written to {output}")


@click.command()
@click.argument("source", type=PATH)
@click.argument("output", type=PATH)
@FORCE
def export(source: Path, output: Path, force: bool) -> None:
    """Write any readable file as .nc (everything) or .csv (a table).

    A store can also be written as a new store (.db), which then holds all that can still be read of
    a damaged one. --force does not replace a store.
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
@click.option(
    "-o", "--output", type=PATH, required=True, help="Store, .db; of a plan with a [sweep] a folder"
)
@click.option(
    "--instrument",
    required=True,
    help="package.module:make, a function of yours that gives an object with measure(u); "
    "or 'simulated'.",
)
@click.option("--retries", default=3, help="How often to ask the instrument again after a failure.")
@click.option("--wait-s", default=1.0, help="Seconds to wait before asking again.")
@click.option(
    "--timeout-s", type=float, help="Seconds to wait for an answer; without it, for ever."
)
@click.option(
    "--until", type=float, help="Stop once the 95 % interval of the total is narrower than this."
)
@NAN_POLICY
@click.option(
    "--other-instrument", is_flag=True, help="Allow another instrument than the one before."
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def acquire(plan: Path, output: Path, instrument: str, quiet: bool, **settings: Any) -> None:
    """Measure what a plan asks for and the store does not hold yet.

    Every measurement is on the disk before the next begins. Ctrl-C stops after the measurement
    under way; the same command goes on from there. A plan with a [sweep] is measured at every
    setting, each into a store of its own.
    """
    loaded_plan = Plan.load(plan)
    if loaded_plan.sweep is None:
        refuse_place(output, STORES)
    elif output.suffix in STORES:
        raise ParameterError(
            f"{output}: the plan has a sweep, which needs a folder; give a name without "
            f"{output.suffix}."
        )
    device = _instrument(instrument, loaded_plan, plan.parent)
    settings["progress"] = not quiet
    try:
        if loaded_plan.sweep is not None:
            acquire_sweep(loaded_plan, device, output, **settings)
            return
        recording = acquire_measurements(loaded_plan, device, output, **settings)
    except KeyboardInterrupt:
        echo(f"Interrupted at once; what was measured before is safe in {output}.", err=True)
        raise SystemExit(EXIT_INTERRUPTED) from None
    except DRIVER_MISTAKES:  # in the user's own driver: its author needs the file and the line
        traceback.print_exc()
        raise SystemExit(EXIT_BAD_DATA) from None
    fingerprint = recording.metadata["fingerprint"]
    echo(f"{recording}\nin {output}, plan {fingerprint[:12]}")
    reason = recording.metadata.get("stopped")
    if reason is not None:
        echo(f"Stopped before all was measured ({reason}); the same command goes on from there.")
    if reason == INTERRUPTED:
        raise SystemExit(EXIT_INTERRUPTED)


def _instrument(name: str, plan: Plan, folder: Path) -> Any:
    """Return the simulated bench, or what makes the user's instrument."""
    if name == "simulated":
        return simulated_bench(plan)
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ParameterError(
            f"--instrument {name} must look like package.module:make, or be 'simulated'."
        )
    # The driver lies in the working folder or beside the plan, and may import other modules from
    # there, also later. These folders come last, so that nothing in them takes the place of an
    # installed package.
    sys.path += [str(Path.cwd()), str(folder.resolve())]
    try:
        return getattr(import_module(module), attribute)
    except (Exception, SystemExit) as problem:  # the user's own code may raise anything
        raise ParameterError(
            f"--instrument {name} cannot be loaded: {error_in_one_line(problem)}."
        ) from problem


@click.command()
@click.argument("store", type=PATH)
@click.option(
    "--n-samples",
    type=int,
    required=True,
    help="Number of samples in all, rounded up to whole blocks.",
)
def extend(store: Path, n_samples: int) -> None:
    """Plan more samples for a run, complete or not.

    STORE is what `infocap acquire` wrote, a store or the folder of a sweep.
    """
    if store.is_dir():
        longer_plan = extend_sweep(store, n_samples)
        echo(
            f"{store}: {longer_plan.n_samples} samples at each of "
            f"{counted(len(longer_plan.settings), 'setting')}, plan {longer_plan.fingerprint[:12]}"
        )
        echo("The same `infocap acquire` as before measures what is missing.")
        return
    longer_plan = extend_store(store, n_samples)
    n_measurements = len(longer_plan.schedule)
    echo(
        f"{store}: {longer_plan.n_samples} samples, {n_measurements} measurements, "
        f"plan {longer_plan.fingerprint[:12]}"
    )
    echo("The same `infocap acquire` as before measures what is missing.")


@click.command()
@click.argument("store", type=PATH)
@click.option("--once", "only_once", is_flag=True, help="Show the run once and end; for scripts.")
@click.option(
    "--until",
    type=float,
    help="Say that you may stop when the 95 % interval of the total is narrower than this.",
)
@NAN_POLICY
@click.option(
    "--web",
    is_flag=True,
    help="Show the report live in a browser of this machine, until Ctrl-C.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the page; 0 takes any that is free.",
)
def watch(
    store: Path, only_once: bool, until: float | None, *, nan_policy: str, web: bool, port: int
) -> None:
    """Show how a run stands, and its capacities so far.

    That is measurements, rate, time left, the total capacity and its interval, drift and warnings.
    The command works while the acquisition runs, and changes nothing. It ends when the run is
    complete, or with Ctrl-C. Of the folder of a sweep it shows all settings.
    """
    if store.is_dir():
        if web:
            raise ParameterError(
                f"--web shows one run; give one of the stores in {store}, or leave out --web."
            )
        watch_sweep(store, until, nan_policy, only_once)
    elif web:
        _watch_in_browser(store, until, nan_policy, port)
    else:
        _watch_in_terminal(store, until, nan_policy, only_once)


def _watch_in_browser(store: Path, until: float | None, nan_policy: str, port: int) -> None:
    from ..report import live  # with matplotlib, which is slow to import

    with live(store, until=until, nan_policy=nan_policy, port=port) as address:
        echo(f"The report of {store}, live, for browsers of this machine: {address}")
        echo("Ctrl-C ends it.")
        with suppress(KeyboardInterrupt):
            Event().wait()


def _watch_in_terminal(store: Path, until: float | None, nan_policy: str, only_once: bool) -> None:
    current = status(store, until=until, nan_policy=nan_policy)
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


def _screen(current: Status) -> str:
    """Return all that `infocap watch` shows at a time."""
    title = f" · {current.plan.title}" if current.plan.title else ""
    share = current.stored / current.planned
    n_full = int(BAR_LENGTH * share)
    bar = "█" * n_full + "░" * (BAR_LENGTH - n_full)
    lines = [
        f"{current.path}{title} · plan {current.plan.fingerprint[:12]}",
        "",
        f"  {bar} {share:4.0%}   {counts_in_words(current)}",
        f"  {pace_in_words(current)}",
        "",
    ]
    if current.result is None:
        lines.append(wrapped(f"  no capacities yet: {name_options(current.problem)}"))
    else:
        lines += _capacity_lines(current.result)
    if current.checks:
        lines += ["", *(f"  {line}" for line in check_lines(current.checks))]
    lines += ["", f"  {current.advice}"]
    return "\n".join(lines)


def _capacity_lines(result: CapacityResult) -> list[str]:
    """Return the total against the number of samples, the total, and the drift."""
    if result.nothing_to_show:
        return [f"  no capacities yet: {result.nothing_to_show}"]
    lines = []
    if result.growth is not None:
        lines += _growth_table(result, result.growth)
    if result.qualified_total:
        lines.append(f"  total {result.qualified_total}")
    elif result.growth is None:
        lines.append(f"  total {result.total_in_words} of at most {result.maximum}")
    if result.drift is not None:
        size = f"{result.drift.size:.2%} of the readouts' spread"
        lines += ["", f"  drift of the reference: {size}"]
    return lines


def _growth_table(result: CapacityResult, growth: Growth) -> list[str]:
    """Return the total at each number of samples, with its 95 % interval, also as a drawing."""
    scale = f"0{result.maximum:>{BAR_LENGTH - 1}}"
    lines = [f"  {'samples':>8}  {'total':>7}  95 % interval     {scale}"]
    errors: list[float | None] = [None] * len(growth.total)
    if growth.standard_error is not None and not result.unreliable:
        errors = list(growth.standard_error)
    for n_samples, total, error in zip(growth.n_samples, growth.total, errors, strict=True):
        if error is not None and exceeds(error, result.rank):
            lines.append(f"  {n_samples:>8}  {CANNOT_BE_TOLD}")
            continue
        digits = decimals(error or ASSUMED_ERROR)
        half_width = HALF_WIDTH_95 * (error or 0.0)
        low = max(total - half_width, 0.0)
        high = min(total + half_width, float(result.rank))
        interval = ""
        if error is not None:
            interval = f"{low:.{digits}f} to {high:.{digits}f}"
        drawing = _interval_drawing(low, total, high, result.maximum)
        lines.append(f"  {n_samples:>8}  {total:>7.{digits}f}  {interval:<16} |{drawing}|")
    return lines


def _interval_drawing(low: float, value: float, high: float, maximum: int) -> str:
    """Return a point at the value and a dash over its interval, on a scale up to the maximum."""
    share = np.clip([low, value, high], 0, maximum) / maximum
    first, middle, last = np.rint(share * (BAR_LENGTH - 1)).astype(int)
    drawing = " " * first + "─" * (middle - first) + "●" + "─" * (last - middle)
    return f"{drawing:<{BAR_LENGTH}}"
