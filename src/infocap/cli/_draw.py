"""infocap draw: the inputs of a plan as a table, for devices that other software drives."""

from __future__ import annotations

from pathlib import Path

import click

from ..experiment import Plan
from ._outputs import refuse_existing


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="File, .csv"
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def draw(plan: Path, output: Path, force: bool) -> None:
    """Write the inputs to measure at, one row a measurement, in the order of acquisition.

    Send each row of u1, u2, ... to the device, write one row of readouts for each, and come back with
    `infocap import inputs.csv readouts.csv -o run.nc`.
    """
    refuse_existing(output, force, (".csv",))
    made = Plan.load(plan)
    made.write_inputs(output)
    click.echo(f"{len(made.schedule)} rows of {made.n_inputs} inputs, written to {output}")
