"""infocap import and doctor: what files hold and what is wrong with it, before anything is estimated."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from .._words import counted, listed
from ..errors import DataError, ParameterError
from ..experiment._doctor import inspect
from ..experiment._plan import Plan
from ..recording._recording import Recording
from ._estimate import Wanted, wanted_basis
from ._outputs import refuse_existing
from ._terminal import FILE, FORCE, PATH, Source, check_lines, echo, options, say, warnings_in_checks, wrapped

# Readouts, and files and things left out, that are shown one by one, so that all fits on a screen.
MOST_SHOWN, MOST_LEFT = 8, 20
# Seconds since 1970 that are fewer would be of 1973: smaller numbers are seconds of the run, or count its rows.
EARLIEST_S = 1e8
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


def describe(recording: Recording) -> list[str]:
    """Return what a recording holds and where it comes from, one line per thing: its role, its name, its range."""
    u, x = np.asarray(recording.inputs), np.asarray(recording.readouts)
    metadata = dict(recording.metadata)
    choices = metadata.pop("read_from", [])
    lines = [f"{one['file']}: {one['as']}" for one in choices[:MOST_LEFT]]
    lines.append(f"Recording of {len(u)} samples, {counted(u.shape[1], 'input')}, {counted(x.shape[1], 'readout')}")
    inputs = _columns("input", recording.input_names or [f"u{k + 1}" for k in range(u.shape[1])], u)
    readouts = _columns("readout", recording.channel or [f"x{k + 1}" for k in range(x.shape[1])], x)
    width = max(len(name) for _, name, _ in [*inputs, *readouts])
    for columns, unit in ((inputs, recording.input_unit), (readouts, recording.readout_unit)):
        lines += [f"  {role:<9} {name:<{width}}  {span} {unit}".rstrip() for role, name, span in columns]
    facts: list[tuple[str, str]] = []
    bad = int((~(np.isfinite(u).all(axis=1) & np.isfinite(x).all(axis=1))).sum())
    if bad:
        facts.append(("missing", f"NaN or infinite values in {counted(bad, 'sample')}"))
    if recording.acquired is not None and len(u):
        as_designed = np.all(np.diff(np.asarray(recording.acquired)) >= 0)
        order = "the order of the rows" if as_designed else "another order than that of the rows"
        name = "".join(f"{name}: " for one in choices for name in one.get("time", []))
        facts.append(("time", f"{name}{_span(np.asarray(recording.acquired))}, acquired in {order}"))
    if recording.repeats is not None:
        twice = np.isfinite(recording.repeats).all(axis=1).sum()
        facts.append(("repeats", f"{twice} samples were measured twice"))
    if recording.noise is not None:
        facts.append(("noise", f"{len(recording.noise)} measurements of the noise, each at a constant input"))
    if recording.reference is not None:
        facts.append(("reference", f"{len(recording.reference)} of the drift reference, each at a constant input"))
    if recording.extra is not None:
        facts.append(("extra", listed(recording.extra_names, 4)))
    left = [f"{name}: {why}" for one in choices for name, why in one.get("left out", {}).items()]
    left[MOST_LEFT:] = [f"{len(left) - MOST_LEFT} more"] if len(left) > MOST_LEFT else []
    facts += [("left out", one) for one in left]
    for name, value in metadata.items():
        text = _planned(value) if name == "plan" else re.sub(r"[][{}']", "", str(value))
        facts.append((name.replace("_", " "), text if len(text) <= 60 or name == "plan" else text[:57] + "..."))
    width = max([9, *(len(name) for name, _ in facts)])
    return lines + [f"  {name:<{width}} {text}" for name, text in facts]


def _columns(role: str, names: Sequence[str], values: np.ndarray) -> list[tuple[str, str, str]]:
    """Return role, name and range of each column; where there are many, one range for all after the first few."""
    shown = [(role, name, _span(values[:, k])) for k, name in enumerate(names[:MOST_SHOWN])]
    if len(names) > MOST_SHOWN:
        rest = f"... {names[-1]}, {len(names) - MOST_SHOWN} more"
        shown.append((role, rest, _span(values[:, MOST_SHOWN:])))
    return shown


def _span(values: np.ndarray) -> str:
    """Return the smallest and the largest value, as dates where they are such times, and whether they count rows."""
    sizes = np.abs(values) if values.dtype.kind == "c" else values
    if not np.isfinite(sizes).any():
        return "no numbers"
    ends = [np.nanmin(sizes), np.nanmax(sizes)]
    if ends[0] > EARLIEST_S and values.ndim == 1:
        return " to ".join(str(np.datetime64(int(one), "s")).replace("T", " ") for one in ends)
    counts = values.ndim == 1 and len(values) > 2 and (np.diff(sizes) == 1).all()
    return f"{ends[0]:.5g} to {ends[1]:.5g}{', counts the rows' if counts else ''}"


def _planned(data: Any) -> str:
    try:
        return Plan.from_dict(data).in_words()
    except ValueError as problem:
        return f"cannot be used: {problem}"


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
