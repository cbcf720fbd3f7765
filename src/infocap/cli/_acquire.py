"""infocap acquire: run a plan on an instrument, into a store that loses nothing."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import click

from ..errors import InfocapError, ParameterError
from ..experiment import Plan, simulated
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
    made = Plan.load(plan)
    recording = acquire_plan(made, _instrument(instrument, made), output, progress=not quiet, **options)
    click.echo(f"{recording}\nin {output}, plan {made.fingerprint[:12]}")
    if len(recording.index) < made.n_samples:
        click.echo(
            f"Stopped after {len(recording.index)} of {made.n_samples} samples; the same command goes on from there."
        )
        if options["until"] is None:
            raise SystemExit(130)


def _instrument(name: str, plan: Plan) -> Any:
    """What the user's function makes; it gets the plan if it takes an argument."""
    if name == SIMULATED:
        return simulated(plan)
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ParameterError(f"instrument={name!r} must look like package.module:make, or be {SIMULATED!r}.")
    sys.path.insert(0, str(Path.cwd()))  # a driver beside the plan, as `python -m` would find it
    try:
        make = getattr(importlib.import_module(module), attribute)
        return make(plan) if inspect.signature(make).parameters else make()
    except InfocapError:
        raise
    except (ImportError, AttributeError) as problem:
        raise ParameterError(f"instrument={name!r} cannot be loaded: {problem}.") from None
    finally:
        sys.path.pop(0)
