"""infocap doctor: everything that data were looked at for, what is wrong with them, and what can be repaired."""

from pathlib import Path

import click

from .._words import counted, listed
from ..errors import ParameterError
from ..experiment._doctor import inspect
from ._estimate import Wanted, wanted_basis
from ._outputs import refuse_existing
from ._terminal import FILE, Source, check_lines, options, warnings_in_checks, wrapped

# Mistakes that hide each other are found one after the other; data with more of them are not repaired safely.
MOST_REPAIRS = 6


@click.command()
@options("source", Source)
@options("wanted", Wanted)
@click.option("--fix", is_flag=True, help="Repair what can be repaired safely, into the new file of --output.")
@click.option("-o", "--output", type=FILE, help="New file for the repaired recording, .nc or .csv")
@click.option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
def doctor(source: Source, wanted: Wanted, fix: bool, output: Path | None, strict: bool) -> None:
    """Look at the data in FILES before any estimation, and say what is fit and what is not."""
    if fix != (output is not None):
        raise ParameterError("--fix and --output go together: what is repaired is written to a new file.")
    if output is not None:
        refuse_existing(output, force=False)
    with warnings_in_checks():
        recording = source.read()
        basis, _ = wanted_basis(recording, wanted)
        found = inspect(recording, basis if recording.metadata.get("plan") or wanted.family or wanted.domain else None)
    u, x = recording.inputs, recording.readouts
    named = f" ({listed(recording.channel, 6)})" if recording.channel else ""
    contents = f"{counted(u.shape[1], 'input')}, {counted(x.shape[1], 'readout')}{named}"
    click.echo(wrapped(f"{source}: {len(u)} samples, {contents}."))
    for title, names in (("Looked at and in order", found.fit), ("Too few rows to look at", found.skipped)):
        click.echo("\n".join([f"\n{title}:", *(wrapped(f"  {one}") for one in names)]) if names else "", nl=bool(names))
    warned = [one for one in found.checks if one.kind == "warning"]
    click.echo("\n" + ("\n".join(check_lines(found.checks)) if found.checks else "Nothing wrong was found."))
    for _ in range(MOST_REPAIRS if fix else 0):
        better = found.repaired()
        if better is None:
            break
        click.echo(wrapped(f"repaired: {better.metadata['repairs'][-1]:.300}"))
        with warnings_in_checks():
            found = inspect(better, basis if recording.metadata.get("plan") else None)
    if output is not None:
        found.recording.save(output)
        left = [one for one in found.checks if one.kind == "warning"]
        click.echo(f"wrote {output}" + (f"; {counted(len(left), 'warning')} left" if left else "; nothing is left"))
    if strict and warned:
        click.get_current_context().exit(1)
