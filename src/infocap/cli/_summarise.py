"""infocap summarise: one stretch of rows to a small file, for array jobs; infocap combine puts them together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import ParameterError
from ..recording import read
from ..workflow import load_frame
from ..workflow import summarise as summarise_rows
from ._choose_basis import Wanted, choose_basis
from ._outputs import FILE, check_part
from ._terminal import in_options, wrapped


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("readouts", type=click.Path(path_type=Path), required=False)
@click.option("-o", "--output", type=FILE, required=True, help="Summary to write, such as part-3.sum.")
@click.option("--part", metavar="I/M", help="Part I of M equal parts of FILE, counted from 1.")
@click.option("--rows", metavar="A:B", help="Rows A to before B of FILE, counted from 0.")
@click.option("--start", type=click.IntRange(min=0), help="Number of FILE's first row.  [default: its index]")
@click.option("--total", type=click.IntRange(min=1), help="Rows of all parts.  [default: the plan's]")
@click.option("--second", type=FILE, help="Take the second look, in the frame that combine wrote.")
@click.option("--u", help="Name of the inputs in the file.")
@click.option("--x", help="Name of the readouts in the file.")
@click.option("--family", multiple=True, help="Of the inputs' distribution, as for estimate.")
@click.option(
    "--degree", type=click.IntRange(min=0), help="Highest degree.  [default: the plan's, else by N]"
)
@click.option("--domain", type=float, nargs=2, metavar="LOW HIGH", help="Interval of every input.")
@click.option("--index-set", type=click.Choice(["total", "hyperbolic"]), help="Which products of functions.")
@click.option("--max-interactions", type=click.IntRange(min=1), help="Inputs that a function may join.")
@click.option("--no-constant", is_flag=True, help="Do not add the constant readout.")
@click.option("--complex-as", type=click.Choice(["abs2", "split"]), help="What complex readouts mean.")
@click.option("--memory", help="How much memory to use, such as 1GB.")
@click.option("--quiet", is_flag=True, help="Say nothing.")
def summarise(
    file: Path,
    readouts: Path | None,
    output: Path,
    part: str | None,
    rows: str | None,
    start: int | None,
    total: int | None,
    second: Path | None,
    u: str | None,
    x: str | None,
    family: tuple[str, ...],
    degree: int | None,
    domain: tuple[float, float] | None,
    index_set: str | None,
    max_interactions: int | None,
    no_constant: bool,
    complex_as: str | None,
    memory: str | None,
    quiet: bool,
) -> None:
    """Reduce rows of FILE to a summary that `infocap combine` puts together with others.

    The rows are a part of FILE (--part or --rows), or all of it when FILE itself is one of several.
    """
    if part is not None and rows is not None:
        raise ParameterError("--part and --rows both say which rows; give one of them.")
    check_part(output)
    frame = None if second is None else load_frame(second)
    with in_options(absent=", or pass --nan drop to leave such rows out"):
        named: dict[str, Any] = {name: value for name, value in (("u", u), ("x", x)) if value is not None}
        files = {"path": str(file.resolve())}
        if readouts is not None:
            files["readouts"] = str(readouts.resolve())
        recording = read(**files, **named, in_memory=False)
        basis, said = choose_basis(recording, Wanted(family, degree, domain, index_set, max_interactions))
        found = summarise_rows(
            recording,
            basis,
            rows=_stretch(part, rows, recording.inputs.shape[0]),
            start=start,
            total=total,
            constant=not no_constant,
            complex_as=complex_as,
            memory=memory,
            second=frame,
            read_again=files | named,
        )
        found.save(output)
    if not quiet:
        click.echo(wrapped(f"{file}: {'; '.join([repr(found), *said])}."))
        click.echo(f"wrote {output}")


def _stretch(part: str | None, rows: str | None, n_rows: int) -> tuple[int, int] | None:
    """The rows that --part or --rows mean."""
    try:
        if part is not None:
            number, count = (int(one) for one in part.split("/"))
            if not 1 <= number <= count <= n_rows:
                raise ValueError
            return n_rows * (number - 1) // count, n_rows * number // count
        if rows is not None:
            begin, end = rows.split(":")
            return int(begin or 0), int(end or n_rows)
    except ValueError:
        given = (
            f"--part {part} is not I/M with I from 1 to M"
            if part is not None
            else f"--rows {rows} is not A:B"
        )
        raise ParameterError(f"{given}, for {n_rows} rows.") from None
    return None
