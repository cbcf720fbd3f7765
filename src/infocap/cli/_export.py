"""infocap export: a recording or the store of an acquisition, into a file of another format."""

from __future__ import annotations

from pathlib import Path

import click

from ..experiment import Store
from ..recording import read
from ._outputs import refuse_existing

STORES = (".db", ".sqlite")


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--u", help="Names of the inputs, for a file that infocap did not write.")
@click.option("--x", help="Names of the readouts, likewise.")
@click.option("--force", is_flag=True, help="Replace an output that is there already.")
def export(source: Path, output: Path, u: str | None, x: str | None, force: bool) -> None:
    """Write SOURCE, any readable file, to OUTPUT: .nc (everything) or .csv (a plain table).

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
