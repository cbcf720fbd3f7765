"""infocap import: inputs and readouts from files of any program, into one recording."""

from __future__ import annotations

from pathlib import Path

import click

from ..recording import read
from ._outputs import refuse_existing


@click.command("import")
@click.argument("inputs", type=click.Path(path_type=Path))
@click.argument("readouts", type=click.Path(path_type=Path), required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help=".nc (everything) or .csv (a plain table)",
)
@click.option("--u", help="Names of the inputs: a variable, or columns such as 'a,b' or 'u*'.")
@click.option("--x", help="Names of the readouts, likewise.")
@click.option("--force", is_flag=True, help="Replace an output that is there already.")
def import_(
    inputs: Path, readouts: Path | None, output: Path, u: str | None, x: str | None, force: bool
) -> None:
    """Bring INPUTS and READOUTS together into one file; READOUTS may be left out if INPUTS holds both.

    Inputs that infocap draw wrote are sorted into design order, with their repeats and references.
    """
    refuse_existing(output, force)
    recording = read(inputs, readouts, u=u, x=x)
    recording.save(output)
    click.echo(f"{recording}\nwritten to {output}")
