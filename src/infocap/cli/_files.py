"""infocap import and doctor: what files hold and what is wrong with it, before anything is estimated."""

from pathlib import Path

import click

from .._words import counted, listed
from ..errors import DataError, ParameterError
from ..experiment._doctor import inspect
from ._estimate import Wanted, wanted_basis
from ._outputs import describe, refuse_existing
from ._terminal import FILE, FORCE, PATH, Source, check_lines, echo, options, say, warnings_in_checks, wrapped

# Mistakes that hide each other are found one after the other; data with more of them are not repaired safely.
MOST_REPAIRS = 6


@click.command("import")
@options("source", Source)
@click.option("--preview", is_flag=True, help="Only show what would become input and readout, and what would not.")
@click.option("-o", "--output", type=PATH, help="File, .nc or .csv")
@FORCE
def import_(source: Source, preview: bool, output: Path | None, force: bool) -> None:
    """Bring inputs and readouts of any FILES into one file.

    The first of the FILES has the inputs and the second the readouts, or each has both. The second may be a folder with
    one file per sample. Inputs that infocap draw wrote are sorted into design order, with their repeats and references.
    What was taken for what is kept in the file.
    """
    if preview == (output is not None):
        raise ParameterError("give the file to write, -o run.nc, or --preview to look first: one of the two.")
    if output is not None:
        refuse_existing(output, force)
    try:
        recording = source.read()
    except DataError as problem:
        for note in getattr(problem, "__notes__", []) if preview else []:
            echo(note)
        raise
    if output is None:
        told = [one for one in recording.checks if "left_out" not in getattr(one, "found", {})]  # shown line by line
        say(describe(recording), told, [])
        echo("Nothing was written; the same command with -o run.nc in place of --preview writes it.")
    else:
        recording.save(output)
        echo(f"{recording}\nwritten to {output}")


@click.command()
@options("source", Source)
@options("wanted", Wanted)
@click.option("--fix", is_flag=True, help="Repair what can be repaired safely, into the new file of --output.")
@click.option("-o", "--output", type=FILE, help="New file for the repaired recording, .nc or .csv")
@click.option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
def doctor(source: Source, wanted: Wanted, fix: bool, output: Path | None, strict: bool) -> None:
    """Look for mistakes in the data of FILES before any estimation."""
    if fix != (output is not None):
        raise ParameterError("--fix and --output go together: what is repaired is written to a new file.")
    if output is not None:
        refuse_existing(output, force=False)
    with warnings_in_checks():
        recording = source.read()
        basis, _ = wanted_basis(recording, wanted)
        told = recording.metadata.get("plan") or wanted.input or wanted.family or wanted.domain or wanted.delays
        asked = basis if told else None
        found = inspect(recording, asked)
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
            found = inspect(better, asked)
    if output is not None:
        found.recording.save(output)
        left = [one for one in found.checks if one.kind == "warning"]
        click.echo(f"wrote {output}" + (f"; {counted(len(left), 'warning')} left" if left else "; no warning is left"))
    if strict and warned:
        click.get_current_context().exit(1)
