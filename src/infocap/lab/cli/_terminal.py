"""How the command line listens and speaks: options in groups, parameters named as options, warnings shown once."""

import ast
import re
import shlex
import shutil
import textwrap
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from ...errors import Check, DataWarning, printable
from ...recording._recording import Recording
from ..files._read import read

FILE = click.Path(dir_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)  # some formats are folders
FORCE = click.option("--force", is_flag=True, help="Replace an output that is there already.")
WIDEST = 100  # Lines of more characters are hard to read, however wide the terminal is.
PARAMETER = re.compile(
    r"`([a-z]\w*)(?:=([^`]*))?`"
)  # in messages of the library: `nan_policy='omit'`, `domain`
# Print no warnings about data meanwhile: the result that is being made keeps them as its checks.
warnings_in_checks = partial(warnings.catch_warnings, action="ignore", category=DataWarning)
NUMBERS = {"2*np.pi": "6.283185307179586", "np.pi": "3.141592653589793"}


def as_options(message: str, command: click.Command | None = None) -> str:
    """Return a message of the library with its `parameters` named as options of the command, now running or given.

    Parameters stand in backticks in messages; one that the command has no option for just loses them.
    """
    command = command or click.get_current_context().command
    options = {
        one.name: max(one.opts, key=len) for one in command.params if isinstance(one, click.Option)
    }

    def typed(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in options:
            return found[0].strip("`")
        return options[name] if value is None else f"{options[name]} {_typed(value)}"

    return PARAMETER.sub(typed, message)


def _typed(value: str) -> str:
    """Return a value as it is typed in a terminal: ``(0, 5)`` as ``0 5``, ``'drop'`` as ``drop``."""
    for name, digits in NUMBERS.items():
        value = value.replace(name, digits)
    try:
        given = ast.literal_eval(value)
    except (ValueError, SyntaxError):  # words that stand for a value, such as (low, high)
        return value.strip("()").replace(",", "")
    parts = given if isinstance(given, list | tuple) else [given]
    return " ".join(shlex.quote(one) if isinstance(one, str) else str(one) for one in parts)


def check_lines(checks: Iterable[str]) -> list[str]:
    """Return each check as a paragraph, warnings first; a plain text, as recordings have, counts as one."""
    said = [one if isinstance(one, Check) else Check(one) for one in checks]
    said.sort(key=lambda one: one.kind != "warning")
    return [wrapped(f"{one.kind}: {as_options(one)}") for one in said]


def say(lines: Iterable[str], checks: Iterable[str], written: Iterable[object]) -> None:
    """Print what was found, the checks on it, and the names of the files that were written."""
    echo("\n".join([*lines, "", *check_lines(checks)]))
    names = ", ".join(map(str, written))
    if names:
        echo(f"wrote {names}")


def echo(text: str, err: bool = False) -> None:
    """Print a line; what names and titles in files would make a terminal do is taken out."""
    click.echo(printable(text), err=err)


def wrapped(text: str) -> str:
    width = min(shutil.get_terminal_size().columns, WIDEST)
    return textwrap.fill(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def option(*names: str, **settings: Any) -> Any:
    """Return a field that the command line fills, as `click.option` would; without a minus it is an argument."""
    usual = () if "multiple" in settings else False if "is_flag" in settings else None
    return field(
        default=settings.get("default", usual), metadata={"names": names, "settings": settings}
    )


def options(name: str, group: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command all options of a dataclass, and hands them over in one object."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def gathered(*positional: Any, **given: Any) -> None:
            own = group(**{one.name: given.pop(one.name) for one in fields(group)})
            command(*positional, **given, **{name: own})

        for one in reversed(fields(group)):
            names, settings = one.metadata["names"], one.metadata["settings"]
            made = click.option if names[0].startswith("-") else click.argument
            gathered = made(*dict.fromkeys((*names, one.name)), **settings)(gathered)
        return gathered

    return decorate


@dataclass(frozen=True)
class Source:
    """Where inputs and readouts are: one file or several, and the names they have there."""

    files: tuple[Path, ...] = option("files", type=PATH, nargs=-1, required=True)
    u: str | None = option(
        "--u", help="Inputs in the files: a variable, or columns such as 'a,b' or 'u*'."
    )
    x: str | None = option("--x", help="Readouts in the files, likewise.")
    axes: str | None = option(
        "--axes", help="Of the readouts, such as channels,samples or samples,averages,channels."
    )

    def read(self, in_memory: bool = True) -> Recording:
        """Read the files as one recording; of two that do not hold both, the first holds the inputs."""
        source = self.files[0] if len(self.files) == 1 else self.files
        return read(source, u=self.u, x=self.x, axes=self.axes, in_memory=in_memory)

    def __str__(self) -> str:
        return str(self.files[0]) + (
            f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        )
