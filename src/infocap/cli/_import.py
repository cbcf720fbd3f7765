"""infocap import: files of any make to one recording, after a look at what would become what."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from ..errors import DataError, ParameterError
from ..recording._recording import Recording
from ._outputs import refuse_existing
from ._terminal import FORCE, PATH, Source, check_lines, echo, options

MOST_SHOWN = 8  # Readouts shown one by one; the others are summed up in one line, so that all fits on a screen.


@click.command("import")
@options("source", Source)
@click.option("--preview", is_flag=True, help="Only show what would become input and readout, and what would not.")
@click.option("-o", "--output", type=PATH, help="File, .nc or .csv")
@FORCE
def import_(source: Source, preview: bool, output: Path | None, force: bool) -> None:
    """Bring FILES together into one: the first has the inputs and the second the readouts, or each has both.

    The second may be a folder with one file per sample. Inputs that infocap draw wrote are sorted into design order,
    with their repeats and references. What was taken for what is kept in the file.
    """
    if preview == (output is not None):
        raise ParameterError("give the file to write, -o run.nc, or --preview to look first: one of the two.")
    if output is not None:
        refuse_existing(output, force)
    try:
        recording = source.read()
    except DataError as problem:
        if preview:
            echo("\n".join(getattr(problem, "__notes__", [])))
        raise
    if output is None:
        echo("\n".join([*_taken(recording), str(recording).split("\n")[0], *check_lines(recording.checks)]))
        echo("Nothing was written; the same command with -o run.nc in place of --preview writes it.")
    else:
        recording.save(output)
        echo(f"{recording}\nwritten to {output}")


def _taken(recording: Recording) -> list[str]:
    """Return a line per input, readout and whatever else the files hold: its role, its name, its range."""
    lines, choices = [], recording.metadata.get("read_from", [])
    lines += [f"{one['file']}: {one['as']}" for one in choices]
    for role, names, values, unit in (
        ("input", recording.input_names, recording.inputs, recording.input_unit),
        ("readout", recording.channel, recording.readouts, recording.readout_unit),
    ):
        letter = "u" if role == "input" else "x"
        shown = list(names) or [f"{letter}{k + 1}" for k in range(values.shape[1])]
        ranges = [_range(column) + (f" {unit}" if unit else "") for column in np.asarray(values).T]
        named = list(zip(shown, ranges, strict=True))
        lines += [_line(role, *one) for one in named[:MOST_SHOWN]]
        if len(named) > MOST_SHOWN:
            more = f"... {shown[-1]} ({len(named) - MOST_SHOWN} more)"
            lines.append(_line(role, more, _range(np.asarray(values)[:, MOST_SHOWN:]) + (f" {unit}" if unit else "")))
    if recording.acquired is not None:
        lines.append(_line("time", _of(choices, "time"), _times(recording.acquired)))
    lines += [_line("index", name, _range(recording.index)) for name in [_of(choices, "index")] if name]
    left_out = {name: why for one in choices for name, why in one.get("left out", {}).items()}
    return lines + [_line("left out", name, why) for name, why in left_out.items()]


def _line(role: str, name: str, said: str) -> str:
    return f"  {role:<8}  {name:<28}  {said}"


def _of(choices: list[dict[str, Any]], role: str) -> str:
    return ", ".join(name for one in choices for name in one.get(role, []))


def _range(values: np.ndarray) -> str:
    """Return the smallest and the largest value, how many are missing, and whether they only count."""
    size = np.abs(values) if values.dtype.kind == "c" else values
    bad = int((~np.isfinite(size)).sum())
    if bad == size.size:
        return "no numbers"
    said = f"{np.nanmin(size):.5g} to {np.nanmax(size):.5g}" + (" (absolute)" if values.dtype.kind == "c" else "")
    said += f", {bad} missing" if bad else ""
    return said + (", counts the rows" if size.ndim == 1 and len(size) > 2 and (np.diff(size) == 1).all() else "")


def _times(acquired: np.ndarray) -> str:
    """Return the first and the last time, dates where seconds since 1970 are meant."""
    first, last = np.nanmin(acquired), np.nanmax(acquired)
    if first < 1e8:  # Seconds since 1970 that are fewer would be of 1973: these are seconds of the run, or an order.
        return f"{first:g} to {last:g}"
    return " to ".join(str(np.datetime64(int(one), "s")).replace("T", " ") for one in (first, last))
