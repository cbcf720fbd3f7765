"""How commands take options in groups, and how they print: lines, checks, names of options."""

import re
import shutil
import textwrap
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..._formatting import one_line
from ..._validation import did_you_mean
from ...errors import Check, DataWarning, ParameterError, printable
from ...recording import Recording
from ..files import read

# The function behind a command, before click decorates it.
Command = Callable[..., None]

FILE = click.Path(dir_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)  # a file or a folder, because some formats are folders
FORCE = click.option("--force", is_flag=True, help="Replace an output that is there already.")

# What the program ends with; 0 is success.
EXIT_WARNINGS = 1  # only under --strict
EXIT_USAGE = 2
EXIT_BAD_DATA = 3
EXIT_INTERRUPTED = 130  # as shells report Ctrl-C

# Characters in a line of text; longer lines are hard to read, however wide the terminal is.
MAX_LINE_LENGTH = 100

# Numbers that messages write as Python does.
TYPED_NUMBERS = {"2*np.pi": "6.283185307179586", "np.pi": "3.141592653589793"}
# A parameter in a message of the library: `domain`, or with its value, `max_degree=-1`.
PARAMETER = re.compile(r"`(?P<name>[a-z]\w*)(?:=(?P<value>[^`]*))?`")


class NameChoice(click.Choice):
    """A choice among names; the refusal of another name says which one was probably meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value where it is one of the names."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as problem:
            message = problem.message.removesuffix(".") + did_you_mean(value, self.choices)
            raise click.BadParameter(message, ctx, param) from None


def name_options(message: str, command: click.Command | None = None) -> str:
    """Return a message of the library with its parameters written as options of a command.

    Messages have parameters in backticks. Where the command has an option of that name,
    `max_degree=-1` becomes --max-degree -1, with the value as it is typed in a terminal. Everything
    else stays as it is. The command is the one that is running, where none is given.
    """
    if command is None:
        command = click.get_current_context().command
    command_options = {name: option for option in command.params for name in option.opts}

    def written_as_option(match: re.Match[str]) -> str:
        option_name = "--" + match["name"].replace("_", "-")
        if option_name not in command_options:
            return match[0]
        is_flag = getattr(command_options[option_name], "is_flag", False)
        if match["value"] is None or is_flag:
            return option_name
        return f"{option_name} {_as_typed(match['value'])}"

    return PARAMETER.sub(written_as_option, message)


def _as_typed(value: str) -> str:
    """Return a value of Python as it is typed in a terminal: ``(0, 5)`` as ``0 5``."""
    for name, digits in TYPED_NUMBERS.items():
        value = value.replace(name, digits)
    if not value.startswith(("(", "[")):
        return value.replace("'", "")
    return value.strip("()[]").replace(",", "").replace("'", "")


def warnings_in_checks() -> AbstractContextManager[Any]:
    """Return a context without warnings about data, which a result keeps as its checks."""
    return warnings.catch_warnings(action="ignore", category=DataWarning)


def is_warning(check: Check) -> bool:
    """Return whether a check is a warning and not a note."""
    return check.kind == "warning"


def check_lines(checks: Iterable[Check]) -> list[str]:
    """Return each check as a paragraph, warnings first."""
    notes_last = sorted(checks, key=lambda check: not is_warning(check))
    return [wrapped(f"{check.kind}: {name_options(check)}") for check in notes_last]


def say(lines: Iterable[str], checks: Iterable[Check], written: Iterable[object]) -> None:
    """Print what a command found, its checks, and the names of the files that were written."""
    echo("\n".join([*lines, "", *check_lines(checks)]))
    names = ", ".join(map(str, written))
    if names:
        echo(f"wrote {names}")


def echo(text: str, err: bool = False) -> None:
    """Print a text without the control characters that names and titles in files may hold."""
    click.echo(printable(text), err=err)


def wrapped(text: str) -> str:
    """Return a paragraph as lines that fit the terminal; all but the first are indented."""
    width = min(shutil.get_terminal_size().columns, MAX_LINE_LENGTH)
    return textwrap.fill(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def exit_with_warnings() -> None:
    """End the running command as --strict asks for where there are warnings."""
    click.get_current_context().exit(EXIT_WARNINGS)


# Options that several commands share are the fields of a dataclass, and a command gets them as one
# object.


def number_or_auto(
    _: click.Context, parameter: click.Parameter, text: str | None
) -> int | str | None:
    """Return a number of components, or the word that leaves it to the number of samples."""
    if text is None or text == "auto":
        return text
    if text.isdecimal():
        return int(text)
    raise click.BadParameter(f"{text!r} is neither a whole number nor auto.", param=parameter)


# Settings of the option for more channels than samples.
COMPONENTS: Any = {
    "callback": number_or_auto,
    "metavar": "NUMBER|auto",
    "help": "More channels than samples: take so many principal components of them. The channels "
    "hold at least what these hold.",
}


def option(*names: str, **settings: Any) -> Any:
    """Return a field that the command line fills.

    It is an option, or an argument where the name begins without a minus. The settings are those of
    `click.option` and `click.argument`.
    """
    if "default" in settings:
        default = settings["default"]
    elif "multiple" in settings:
        default = ()
    elif "is_flag" in settings:
        default = False
    else:
        default = None
    return field(default=default, metadata={"names": names, "settings": settings})


def options(name: str, group: type) -> Callable[[Command], Command]:
    """Return a decorator that gives a command the options of a dataclass, as parameter `name`."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def command_with_group(*arguments: Any, **values: Any) -> None:
            group_values = {member.name: values.pop(member.name) for member in fields(group)}
            values[name] = group(**group_values)
            command(*arguments, **values)

        decorated: Command = command_with_group
        # The decorator that is applied last belongs to the option that the help shows first.
        for member in reversed(fields(group)):
            names = member.metadata["names"]
            make_parameter = click.option if names[0].startswith("-") else click.argument
            if member.name not in names:  # the parameter that gets the value
                names = (*names, member.name)
            decorated = make_parameter(*names, **member.metadata["settings"])(decorated)
        return decorated

    return decorate


@dataclass(frozen=True)
class InputFiles:
    """The files that hold inputs and readouts: one recording, or several that are one."""

    files: tuple[Path, ...] = option("files", type=PATH, nargs=-1, required=True)

    def __str__(self) -> str:
        text = str(self.files[0])
        if len(self.files) > 1:
            text += f" and {len(self.files) - 1} more"
        return text

    @property
    def reading(self) -> dict[str, Any]:
        """What the options say about the contents of the files, as parameters of `read`."""
        return {}

    def read(self, in_memory: bool = True) -> Recording:
        """Read the files as one recording; of two, the first may hold the inputs alone."""
        source = self.files[0] if len(self.files) == 1 else self.files
        return read(source, **self.reading, in_memory=in_memory)


@dataclass(frozen=True)
class NamedInputFiles(InputFiles):
    """Files of other programs, too: inputs and readouts may have any name there."""

    u: str | None = option(
        "--u",
        help="Inputs in the files: a variable, or columns such as 'a,b' or 'u*'; or "
        "'name:scan_{n}_{u}mT' where they are in the names of files, one per sample.",
    )
    x: str | None = option("--x", help="Readouts in the files, named in the same way.")
    axes: str | None = option(
        "--axes",
        help="Axes of the readouts, such as channels,samples or samples,averages,channels.",
    )
    rows_per_step: int | None = option(
        "--rows-per-step",
        type=int,
        help="Of a trace with virtual nodes: rows for which each input is held.",
    )
    offset: int = option(
        "--offset",
        type=int,
        default=0,
        help="With --rows-per-step: rows before the first step, such as a trigger delay.",
    )
    mask: str | None = option(
        "--mask",
        metavar="FILE",
        help="With --rows-per-step: the factors by which inputs were multiplied within each step, "
        "one line for each row of a step (.csv, .txt or .npy).",
    )
    channels: str | None = option(
        "--channels",
        metavar="COLUMN",
        help="Column that says which channel a row is of, such as the frequency of a spectrum, "
        "where a sample has a row for each channel.",
    )
    sheet: str | None = option(
        "--sheet", help="Sheet of a workbook; several, 'a,b', are put side by side."
    )
    missing: str | None = option(
        "--missing",
        metavar="WORDS",
        help="What stands for missing values, such as 'OVERFLOW,-999'.",
    )

    @property
    def reading(self) -> dict[str, Any]:
        """The names, axes and steps that the options give."""
        names = ("u", "x", "axes", "channels", "sheet", "missing", "rows_per_step", "offset")
        options = {name: getattr(self, name) for name in names}
        return options | {"mask": None if self.mask is None else _read_mask(Path(self.mask))}


def _read_mask(path: Path) -> Any:
    """Return the factors in a file, one line for each row of a step."""
    try:
        if path.suffix == ".npy":
            return np.load(path)
        return np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None)
    except (OSError, ValueError) as problem:
        raise ParameterError(
            f"--mask {path} is no table of numbers ({one_line(problem)}); write one line with the "
            "factor for each row of a step."
        ) from None
