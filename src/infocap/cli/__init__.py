"""The command line: a command parses, calls public functions, and shows what they returned."""

import sys

import click

from .._version import __version__
from ..errors import DataError, ParameterError
from ._reproduce import reproduce
from ._simulate import simulate


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="infocap")
def main() -> None:
    """What does a device compute, and how sure are we?"""


main.add_command(reproduce)
main.add_command(simulate)


def run() -> None:
    """The console script: errors become one line and an exit code, 2 for usage and 3 for bad data."""
    try:
        main()
    except ParameterError as problem:
        click.echo(f"infocap: {problem}", err=True)
        sys.exit(2)
    except DataError as problem:
        click.echo(f"infocap: {problem}", err=True)
        sys.exit(3)
