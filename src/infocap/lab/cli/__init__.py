"""The command line: a command parses, calls public functions, and shows what they returned."""

import sys
import warnings
from collections import Counter
from typing import Any

import click

from ..._version import __version__
from ...errors import DataWarning, InfocapError, ParameterError, printable
from ._estimate import estimate, explore
from ._files import card, compare, diagnose, gallery, import_, report, show
from ._lab import acquire, draw, export, extend, watch
from ._plan import plan
from ._reproduce import cite, reproduce, simulate
from ._terminal import as_options, echo


class Commands(click.Group):
    """Commands that refuse options given twice, and whose errors name options in place of Python's parameters."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command that was asked for; an option that would keep only its last value may come once."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            quiet = click.Context(command, parent=ctx, info_name=name, resilient_parsing=True)
            _, _, given = command.make_parser(quiet).parse_args(list(rest))
            for option, times in Counter(given).items():
                if (
                    times > 1
                    and isinstance(option, click.Option)
                    and not (option.multiple or option.is_flag)
                ):
                    said = f"{max(option.opts, key=len)} is given {times} times"
                    raise click.UsageError(
                        f"{said}, and only one value can be used; give it once.", quiet
                    )
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except InfocapError as problem:
            command = self.commands[str(ctx.invoked_subcommand)]
            raise type(problem)(as_options(str(problem), command)) from None


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(__version__, prog_name="infocap")
def main() -> None:
    """What does a device compute, and how sure are we?"""


LAB = (plan, draw, acquire, extend, watch, import_, export)
for command in (
    *LAB,
    diagnose,
    estimate,
    explore,
    show,
    compare,
    report,
    card,
    gallery,
    simulate,
    reproduce,
    cite,
):
    main.add_command(command)


def run() -> None:
    """Run the console script: errors become one line and an exit code, 2 for usage and 3 for bad data."""
    warnings.formatwarning = _plainly
    try:
        main()
    except (
        InfocapError,
        OSError,
        MemoryError,
    ) as problem:  # an OSError: no permission, or the disk is full
        said = " ".join(str(problem).split())
        if isinstance(problem, MemoryError):
            said = f"there is not enough memory for this ({said})."
        echo(f"infocap: {said}", err=True)
        sys.exit(2 if isinstance(problem, ParameterError) else 3)


def _plainly(message: Warning | str, category: type[Warning], *_: object, **__: object) -> str:
    """Return a warning as a sentence, without the line of code it came from."""
    if not issubclass(category, DataWarning):
        return f"infocap: {category.__name__}: {printable(str(message))}\n"
    running = click.get_current_context(silent=True)
    return f"infocap: warning: {message if running is None else as_options(str(message))}\n"
