"""infocap show: what a file of infocap holds, a result or a recording."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from .._words import listed
from ..errors import InfocapError, ParameterError
from ..experiment import Plan
from ..recording import Recording
from ..result import is_result, load_result
from ._estimate import read_recording
from ._outputs import check_distinct, check_pictures, draw, plot_options
from ._summary import summary
from ._terminal import in_options, say_checks, warnings_kept, wrapped


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("readouts", type=click.Path(path_type=Path), required=False)
@click.option("--u", help="Name of the inputs in a recording.")
@click.option("--x", help="Name of the readouts in a recording.")
@click.option("--top", type=click.IntRange(min=0), default=20, show_default=True, help="Functions shown.")
@click.option("--degree", type=click.IntRange(min=0), help="Show functions of this degree only.")
@plot_options
def show(
    file: Path,
    readouts: Path | None,
    u: str | None,
    x: str | None,
    top: int,
    degree: int | None,
    plot: tuple[Path, ...],
    matrix: tuple[Path, ...],
    bars: tuple[Path, ...],
    growth: tuple[Path, ...],
) -> None:
    """Show the result, or the recording, that FILE holds."""
    pictures = [*plot, *matrix, *bars, *growth]
    check_pictures(pictures)
    check_distinct(*pictures)
    with in_options(), warnings_kept() as warned:
        if not is_result(file):
            recording = read_recording(file, readouts, u, x)
            if pictures:
                raise ParameterError(f"{file} is a recording; `infocap estimate` draws what it finds in it.")
            lines, notes = describe(recording), []
            warned += recording.checks
        else:
            result = load_result(file)
            lines, notes = summary(result, top, degree), list(result.notes)
            warned += result.warnings
            draw(result, plot, matrix, bars, growth)
    click.echo("\n".join([*(wrapped(line) if len(line) > 100 else line for line in lines), ""]))
    say_checks(warned, notes)
    if pictures:
        click.echo(f"wrote {', '.join(map(str, pictures))}")


def describe(recording: Recording) -> list[str]:
    """What a recording holds, a line each."""
    u, x = recording.inputs, recording.readouts
    units = [f" in {unit}" if unit else "" for unit in (recording.input_unit, recording.readout_unit)]
    span = ""
    if u.size:
        low, high = np.fmin.reduce(u, axis=None), np.fmax.reduce(u, axis=None)  # NaN aside
        span = f", from {low:g} to {high:g}"
    named = recording.channel and recording.channel != tuple(map(str, range(x.shape[1])))
    lines = [
        f"Recording of {len(u)} samples",
        f"  inputs    {u.shape[1]}{units[0]}{span}",
        f"  readouts  {x.shape[1]}{units[1]}" + (f": {listed(list(recording.channel), 4)}" if named else ""),
    ]
    bad = int(np.sum(~(np.isfinite(np.asarray(u)).all(axis=1) & np.isfinite(np.asarray(x)).all(axis=1))))
    if bad:
        lines.append(f"  missing   {bad} samples have NaN or infinite values")
    if recording.acquired is not None:
        lines.append(f"  order     {_order(recording)}")
    if recording.repeats is not None:
        twice = int(np.isfinite(recording.repeats).all(axis=1).sum())
        lines.append(f"  repeats   {twice} samples were measured twice")
    for name, text in (("noise", "measurements of the noise"), ("reference", "of the drift reference")):
        values = getattr(recording, name)
        if values is not None:
            lines.append(f"  {name:<9} {len(values)} {text}, each at a constant input")
    return lines + _story(recording)


def _order(recording: Recording) -> str:
    when = np.asarray(recording.acquired)
    as_designed = bool(np.all(np.diff(when) > 0))
    return (
        "acquired in the order of the design"
        if as_designed
        else "acquired in another order than the design's"
    )


def _story(recording: Recording) -> list[str]:
    """The plan, if it can be read, and what else is known."""
    lines = []
    data = recording.metadata.get("plan")
    if data is not None:
        try:
            plan = Plan.from_dict(data)
        except (InfocapError, TypeError, ValueError, AttributeError) as problem:
            lines.append(f"  plan      cannot be used: {problem}")
        else:
            title = f"{plan.title}; " if plan.title else ""
            lines.append(
                f"  plan      {title}{plan.n_samples} samples, {len(plan.basis)} {plan.basis.family_name} functions "
                f"up to degree {plan.max_degree}, {plan.design} design, {plan.order} order, seed {plan.seed}, "
                f"fingerprint {plan.fingerprint[:12]}"
            )
    for name, value in recording.metadata.items():
        if name != "plan":
            text = str(value)
            lines.append(f"  {name:<9} {text if len(text) <= 60 else text[:57] + '...'}")
    return lines
