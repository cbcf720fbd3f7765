"""infocap acquire: run a plan on an instrument, into a store that loses nothing."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from .._check import one_of
from ..errors import DataError, InfocapError, ParameterError
from ..experiment import INTERRUPTED, Plan, simulated
from ..experiment import acquire as acquire_plan

SIMULATED = "simulated"


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Store, .db"
)
@click.option(
    "--instrument",
    required=True,
    help="package.module:make, a function of yours that gives an object with measure(u); or 'simulated'.",
)
@click.option("--retries", type=int, default=3, show_default=True, help="How often to ask again.")
@click.option(
    "--wait", "wait_s", type=float, default=1.0, show_default=True, help="Seconds before asking again."
)
@click.option("--timeout", "timeout_s", type=float, default=None, help="Seconds to wait for an answer.")
@click.option(
    "--until", type=float, default=None, help="Stop once the 95 % interval of the total is narrower."
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def acquire(plan: Path, output: Path, instrument: str, quiet: bool, **options: Any) -> None:
    """Measure what the plan asks for and the store does not hold yet.

    Every row is on the disk before the next is measured. Ctrl-C stops after the row; the same command goes on.
    """
    one_of("output suffix", output.suffix, (".db", ".sqlite"))
    made = Plan.load(plan)
    make = _maker(instrument, made, plan.parent)
    try:
        recording = acquire_plan(made, make, output, progress=not quiet, **options)
    except KeyboardInterrupt:
        click.echo(f"Interrupted at once; what was measured before is safe in {output}.", err=True)
        raise SystemExit(130) from None
    click.echo(f"{recording}\nin {output}, plan {made.fingerprint[:12]}")
    why = recording.metadata.get("stopped")
    if why is not None:
        click.echo(f"Stopped before all was measured ({why}); the same command goes on from there.")
    if why == INTERRUPTED:
        raise SystemExit(130)


def _maker(name: str, plan: Plan, folder: Path) -> Callable[[], Any]:
    """What makes the user's instrument, once the store is open; it gets the plan if it takes an argument."""
    if name == SIMULATED:
        bench = simulated(plan)
        return lambda: bench
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ParameterError(f"instrument={name!r} must look like package.module:make, or be {SIMULATED!r}.")
    for place in (
        folder,
        Path.cwd(),
    ):  # a driver beside the plan, or here; it may import more of its kind later
        if str(place.resolve()) not in sys.path:
            sys.path.insert(0, str(place.resolve()))
    try:
        make = getattr(import_module(module), attribute)
        n_arguments = len(inspect.signature(make).parameters)
    except Exception as problem:  # the user's own code may raise anything
        raise ParameterError(f"instrument={name!r} cannot be loaded: {_said(problem)}.") from problem

    def made() -> Any:
        try:
            return make(plan) if n_arguments else make()
        except InfocapError:
            raise
        except Exception as problem:  # as above
            raise DataError(f"instrument={name!r} could not be made ({_said(problem)}).") from problem

    return made


def _said(problem: Exception) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"
