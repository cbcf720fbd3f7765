"""The command line: a command parses, calls public functions, and shows what they returned."""

import sys
import warnings

import click

from .._version import __version__
from ..errors import DataError, DataWarning, ParameterError
from ._acquire import acquire
from ._cite import cite
from ._compare import compare
from ._draw import draw
from ._estimate import estimate
from ._export import export
from ._import import import_
from ._plan import plan
from ._report import report
from ._reproduce import reproduce
from ._show import show
from ._simulate import simulate
from ._watch import watch


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="infocap")
def main() -> None:
    """What does a device compute, and how sure are we?"""


LAB = (plan, draw, acquire, watch, import_, export)
ANSWERS = (estimate, show, compare, report)
PAPER = (simulate, reproduce, cite)
for command in (*LAB, *ANSWERS, *PAPER):
    main.add_command(command)


def run() -> None:
    """The console script: errors become one line and an exit code, 2 for usage and 3 for bad data."""
    warnings.formatwarning = _plainly
    try:
        main()
    except ParameterError as problem:
        click.echo(f"infocap: {problem}", err=True)
        sys.exit(2)
    except DataError as problem:
        click.echo(f"infocap: {problem}", err=True)
        sys.exit(3)
    except OSError as problem:  # no permission, disk full; files are there whole or not at all
        click.echo(f"infocap: {' '.join(str(problem).split())}", err=True)
        sys.exit(3)
    except MemoryError as problem:
        click.echo(f"infocap: there is not enough memory for this ({problem}).", err=True)
        sys.exit(3)


def _plainly(message: Warning | str, category: type[Warning], *_: object, **__: object) -> str:
    """A warning as a sentence, without the line of code it came from."""
    return f"infocap: {'warning' if issubclass(category, DataWarning) else category.__name__}: {message}\n"
