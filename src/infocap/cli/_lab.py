"""infocap draw, acquire, import and export: the ways of inputs and readouts between plans, devices and files."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ..errors import DataError, InfocapError, ParameterError
from ..experiment import INTERRUPTED, Plan, Store, simulated
from ..experiment import acquire as acquire_plan
from ..recording import read
from ._options import FILE, PATH, Source, options
from ._outputs import check_suffix, refuse_existing

SIMULATED = "simulated"
STORES = (".db", ".sqlite")
FORCE = click.option("--force", is_flag=True, help="Replace an output that is there already.")


@click.command()
@click.argument("plan", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="File, .csv")
@FORCE
def draw(plan: Path, output: Path, force: bool) -> None:
    """Write the inputs to measure at, one row per measurement, in the order of acquisition.

    Send each row of u1, u2, ... to the device, write one row of readouts for each, and come back with
    `infocap import inputs.csv readouts.csv -o run.nc`.
    """
    refuse_existing(output, force, (".csv",))
    made = Plan.load(plan)
    made.write_inputs(output)
    click.echo(f"{len(made.schedule)} rows of {made.n_inputs} inputs, written to {output}")


@click.command("import")
@options("source", Source)
@click.option("-o", "--output", type=PATH, required=True, help=".nc .h5 .mat .csv or .zarr")
@FORCE
def import_(source: Source, output: Path, force: bool) -> None:
    """Bring FILES together into one: the first has the inputs and the second the readouts, or each has both.

    Inputs that infocap draw wrote are sorted into design order, with their repeats and references.
    """
    refuse_existing(output, force)
    recording = source.read()
    recording.save(output)
    click.echo(f"{recording}\nwritten to {output}")


@click.command()
@click.argument("source", type=PATH)
@click.argument("output", type=PATH)
@click.option("--u", help="Names of the inputs, for a file that infocap did not write.")
@click.option("--x", help="Names of the readouts, likewise.")
@FORCE
def export(source: Path, output: Path, u: str | None, x: str | None, force: bool) -> None:
    """Write SOURCE, any readable file, to OUTPUT: .nc, .h5, .mat, .csv or .zarr.

    A store (.db) can also go to a new store, with all that is whole in a damaged one.
    """
    if output.suffix in STORES:
        with Store.rescue(source, output) as store:
            recording = store.recording()
    else:
        refuse_existing(output, force)
        recording = read(source, u=u, x=x)
        recording.save(output)
    click.echo(f"{recording}\nwritten to {output}")


@click.command()
@click.argument("plan", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="Store, .db")
@click.option(
    "--instrument",
    required=True,
    help="package.module:make, a function of yours that gives an object with measure(u); or 'simulated'.",
)
@click.option("--retries", default=3, help="How often to ask again.")
@click.option("--wait", "wait_s", default=1.0, help="Seconds before asking again.")
@click.option("--timeout", "timeout_s", help="Seconds to wait for an answer.")
@click.option("--until", help="Stop once the 95 % interval of the total is narrower.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def acquire(plan: Path, output: Path, instrument: str, quiet: bool, **settings: Any) -> None:
    """Measure what the plan asks for and the store does not hold yet.

    Every row is on the disk before the next is measured. Ctrl-C stops after the row; the same command goes on.
    """
    check_suffix(output, STORES)
    made = Plan.load(plan)
    make = _maker(instrument, made, plan.parent)
    try:
        recording = acquire_plan(made, make, output, progress=not quiet, **settings)
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
    """Return what makes the user's instrument, once the store is open; it gets the plan if it takes an argument."""
    if name == SIMULATED:
        bench = simulated(plan)
        return lambda: bench
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ParameterError(f"--instrument {name} must look like package.module:make, or be {SIMULATED!r}.")
    # The driver lies beside the plan, or here; it may import more of its kind later.
    for place in (str(folder.resolve()), str(Path.cwd())):
        if place not in sys.path:
            sys.path.insert(0, place)
    try:
        make = getattr(import_module(module), attribute)
        takes_plan = bool(inspect.signature(make).parameters)
    except Exception as problem:  # the user's own code may raise anything
        raise ParameterError(f"--instrument {name} cannot be loaded: {_said(problem)}.") from problem

    def made() -> Any:
        try:
            return make(plan) if takes_plan else make()
        except InfocapError:
            raise
        except Exception as problem:  # the user's own code may raise anything
            raise DataError(f"--instrument {name} could not be made ({_said(problem)}).") from problem

    return made


def _said(problem: Exception) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"
