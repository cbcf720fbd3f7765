"""The command line.

A command parses its words, calls one public function, and shows what that returned.

Exit codes: 0 fine, 1 warnings under --strict, 2 wrong usage, 3 bad data, 130 interrupted.
"""

import sys
import warnings
from typing import Any

import click

from ..._formatting import one_line
from ..._validation import did_you_mean
from ..._version import __version__
from ...errors import DataWarning, InfocapError, ParameterError, printable
from ._estimate import estimate, explore
from ._files import card, cite, compare, diagnose, gallery, import_, report, show
from ._lab import acquire, draw, export, extend, watch
from ._plan import plan
from ._questions import channels, task
from ._reproduce import reproduce, simulate
from ._sweep import sweep
from ._terminal import EXIT_BAD_DATA, EXIT_USAGE, echo, name_options


class InfocapCommands(click.Group):
    """The group of all commands. Its errors name options in place of Python's parameters."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name; the refusal of another says which was probably meant."""
        command = super().get_command(ctx, cmd_name)
        is_option = cmd_name.startswith("-")
        if command is None and not is_option and not ctx.resilient_parsing:
            ctx.fail(f"No such command {cmd_name!r}{did_you_mean(cmd_name, self.commands)}")
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except InfocapError as problem:
            command = self.commands[str(ctx.invoked_subcommand)]
            raise type(problem)(name_options(str(problem), command)) from None


@click.group(
    cls=InfocapCommands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="infocap")
def main() -> None:
    """What does a device compute, and how sure are we?"""


COMMANDS = (
    plan,
    draw,
    acquire,
    extend,
    watch,
    import_,
    export,
    diagnose,
    estimate,
    explore,
    sweep,
    show,
    compare,
    channels,
    task,
    report,
    card,
    gallery,
    simulate,
    reproduce,
    cite,
)
for command in COMMANDS:
    main.add_command(command)


def run() -> None:
    """Run the console script: errors become one line and an exit code."""
    warnings.formatwarning = _warning_line
    try:
        main()
    except (InfocapError, OSError, MemoryError) as problem:  # OSError: a full disk, for example
        message = one_line(problem)
        if isinstance(problem, MemoryError):
            message = f"there is not enough memory for this ({message})."
        echo(f"infocap: {message}", err=True)
        sys.exit(EXIT_USAGE if isinstance(problem, ParameterError) else EXIT_BAD_DATA)


def _warning_line(message: Warning | str, category: type[Warning], *_: object, **__: object) -> str:
    """Return a warning as a sentence, without the line of code that it came from."""
    text = printable(str(message))
    if not issubclass(category, DataWarning):
        return f"infocap: {category.__name__}: {text}\n"
    if click.get_current_context(silent=True) is not None:  # a command is running
        text = name_options(text)
    return f"infocap: warning: {text}\n"
