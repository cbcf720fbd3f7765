"""How the command line speaks: parameters named as options, sentences wrapped, warnings shown once."""

import ast
import re
import shlex
import shutil
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import click

from ..errors import Check, DataWarning

WIDEST = 100  # Lines of more characters are hard to read, however wide the terminal is.
PARAMETER = re.compile(r"`([a-z]\w*)(?:=([^`]*))?`")  # in messages of the library: `nan='drop'`, `domain`
NUMBERS = {"2*np.pi": "6.283185307179586", "np.pi": "3.141592653589793"}


def as_options(message: str, command: click.Command | None = None) -> str:
    """Return a message of the library with its `parameters` named as options of the command, now running or given.

    Parameters stand in backticks in messages; one that the command has no option for just loses them.
    """
    command = command or click.get_current_context().command
    options = {one.name: max(one.opts, key=len) for one in command.params if isinstance(one, click.Option)}

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


@contextmanager
def warnings_in_checks() -> Iterator[None]:
    """Print no warnings about data meanwhile: the result that is being made keeps them as its checks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def check_lines(checks: Iterable[str]) -> list[str]:
    """Return each check as a paragraph, warnings first; a plain text, as recordings have, counts as one."""
    said = [one if isinstance(one, Check) else Check(one) for one in checks]
    said.sort(key=lambda one: one.kind != "warning")
    return [wrapped(f"{one.kind}: {as_options(one)}") for one in said]


def say(lines: Iterable[str], checks: Iterable[str], written: Iterable[object]) -> None:
    """Print what was found, the checks on it, and the names of the files that were written."""
    click.echo("\n".join([*lines, "", *check_lines(checks)]))
    names = ", ".join(map(str, written))
    if names:
        click.echo(f"wrote {names}")


def counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def wrapped(text: str) -> str:
    width = min(shutil.get_terminal_size().columns, WIDEST)
    return textwrap.fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
