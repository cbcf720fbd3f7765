"""infocap report: a result as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from ..report import save
from ..result import load_result
from ._outputs import check_page


@click.command()
@click.argument("result", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="File, .html"
)
@click.option("--title", help="Headline of the page.")
def report(result: Path, output: Path, title: str | None) -> None:
    """Show a RESULT (.nc or .csv, as `estimate` writes it) as one HTML page.

    The page needs no network and no server: send it, open it, print it. It holds the numbers too.
    """
    check_page(output)
    click.echo(f"written to {save(load_result(result), output, title)}")
