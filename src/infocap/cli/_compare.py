"""infocap compare: results side by side."""

from __future__ import annotations

from pathlib import Path

import click

from .._files import replaced
from ..errors import ParameterError
from ..result import load_result
from ..workflow import compare as compare_results
from ._outputs import FILE, check_distinct, check_pictures, check_table, figures, save_figure
from ._terminal import in_options, say_checks, warnings_kept

BEGINNING = "quantity,name,device,capacity"  # of the tables written here


class Command(click.Command):
    """A command whose option --names takes all words up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give each name its own option, which click understands."""
        spelled, taking = [], False
        known = {option for one in self.params for option in one.opts if option.startswith("-")} | {
            "-h",
            "--help",
        }
        for word in args:
            if word.split("=")[0] in known:  # a name may begin with a minus: -3 dBm
                taking = word == "--names"
                spelled += [] if taking else [word]
            else:
                spelled += ["--names", word] if taking else [word]
        return super().parse_args(ctx, spelled)


@click.command(cls=Command)
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--names",
    multiple=True,
    metavar="NAME...",
    help="Of the devices, in order.  [default: those of the files]",
)
@click.option("-o", "--output", type=FILE, help="Table of everything compared, .csv")
@click.option("--plot", type=FILE, multiple=True, metavar="FILE", help="Picture, .png, .pdf or .svg")
@click.option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
@click.pass_context
def compare(
    context: click.Context,
    files: tuple[Path, ...],
    names: tuple[str, ...],
    output: Path | None,
    plot: tuple[Path, ...],
    strict: bool,
) -> None:
    """Put the results in FILES side by side, with intervals of their differences from the first."""
    if len(files) < 2:
        raise ParameterError("compare needs two results or more, such as `infocap compare a.nc b.nc`.")
    check_pictures(plot)
    if output is not None:
        check_table(output, BEGINNING)
    check_distinct(*plot, *([] if output is None else [output]))
    with in_options(), warnings_kept() as warned:
        results = [load_result(file) for file in files]
        comparison = compare_results(*results, names=names or _names(files))
        if output is not None:
            with replaced(output) as beside:
                comparison.to_dataframe().to_csv(beside, index=False)
        for path in plot:
            save_figure(figures().compare(comparison), path)
    click.echo(repr(comparison).split("\n  check: ")[0] + "\n")  # the checks come below, wrapped
    say_checks(warned, [])
    written = [*([] if output is None else [output]), *plot]
    if written:
        click.echo(f"wrote {', '.join(map(str, written))}")
    if strict and warned:
        context.exit(1)


def _names(files: tuple[Path, ...]) -> list[str]:
    """The names of the files, with folders where they are needed to tell them apart."""
    stems = [file.stem for file in files]
    return stems if len(set(stems)) == len(stems) else [str(file) for file in files]
