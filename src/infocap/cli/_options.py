"""Options that belong together arrive together: a command gets one frozen dataclass for each group of them."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ..errors import InfocapError
from ..recording._read import read
from ..recording._recording import Recording
from ._terminal import warnings_in_checks

FILE = click.Path(dir_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)  # some formats are folders


def option(*names: str, **settings: Any) -> Any:
    """Return a field that the command line fills, as `click.option` would; without a minus it is an argument."""
    usual = () if "multiple" in settings else False if "is_flag" in settings else None
    return field(default=settings.get("default", usual), metadata={"names": names, "settings": settings})


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
    u: str | None = option("--u", help="Inputs in the files: a variable, or columns such as 'a,b' or 'u*'.")
    x: str | None = option("--x", help="Readouts in the files, likewise.")

    def read(self, in_memory: bool = True) -> Recording:
        """Read the files as one recording; of two that do not hold both, the first holds the inputs."""
        if len(self.files) == 2:
            try:
                with warnings_in_checks():
                    read(self.files[0], u=self.u, x=self.x, in_memory=False)
            except InfocapError:  # reading both files says what is wrong, if anything is
                return read(*self.files, u=self.u, x=self.x, in_memory=in_memory)
        source = self.files[0] if len(self.files) == 1 else self.files
        return read(source, u=self.u, x=self.x, in_memory=in_memory)

    def __str__(self) -> str:
        return str(self.files[0]) + (f" and {len(self.files) - 1} more" if len(self.files) > 1 else "")
