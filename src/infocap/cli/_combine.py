"""infocap combine: the summaries of all parts of a data set to capacities, or to the frame of a second round."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import ParameterError
from ..workflow import combine as combine_parts
from ..workflow import common_frame
from ..workflow._memory import IN_PASSES
from ._outputs import FILE, check_distinct, check_frame, check_pictures, check_results, draw, plot_options
from ._summary import show_found
from ._terminal import in_options, warnings_kept

FRAME = ".frame"


@click.command()
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--method", type=click.Choice(IN_PASSES), default="threshold-richardson", show_default=True)
@click.option(
    "-o",
    "--output",
    type=FILE,
    multiple=True,
    help="Result, .nc or .csv, may be given again; or .frame, for a second round of summarise.",
)
@plot_options
@click.option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
@click.option("--quiet", is_flag=True, help="Show warnings only.")
@click.pass_context
def combine(
    context: click.Context,
    files: tuple[Path, ...],
    method: str,
    output: tuple[Path, ...],
    plot: tuple[Path, ...],
    matrix: tuple[Path, ...],
    bars: tuple[Path, ...],
    growth: tuple[Path, ...],
    strict: bool,
    quiet: bool,
) -> None:
    """Put the summaries FILES of all parts of a data set together.

    Where Algorithm 1 needs a second look at the rows, they are read again from where they were; when that is not
    possible, write a .frame and give it to each `infocap summarise --second`.
    """
    if growth:
        raise ParameterError("--growth needs all rows; use infocap estimate.")
    if any(path.suffix == FRAME for path in output):
        _write_frame(files, output, quiet)
        return
    check_results(output)
    check_pictures([*plot, *matrix, *bars])
    check_distinct(*files, *output, *plot, *matrix, *bars)
    with in_options(), warnings_kept() as warned:
        result = combine_parts(files, method=method)
        if matrix and result.basis.n_inputs != 2:
            raise ParameterError(f"--matrix needs 2 inputs; there are {result.basis.n_inputs}. Use --bars.")
        written = [result.save(path) for path in output]
        written += draw(result, plot, matrix, bars)
    show_found(result, written, warned, quiet)
    if strict and warned:
        context.exit(1)


def _write_frame(files: tuple[Path, ...], output: tuple[Path, ...], quiet: bool) -> None:
    """The frame alone: a result would need the second look that it is for."""
    if len(output) > 1:
        raise ParameterError(
            f"-o {output[0]} and {output[1]}: a .frame comes before a result; give it alone."
        )
    check_frame(output[0])
    with in_options():
        common_frame(files).save(output[0])
    if not quiet:
        click.echo(f"wrote {output[0]}; give it to each infocap summarise as --second {output[0]}")
