"""Files that commands write: none is overwritten unless the user says so."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .._check import one_of
from .._recording import WRITERS
from ..errors import ParameterError


def refuse_existing(output: Path, force: bool, suffixes: Iterable[str] = WRITERS) -> None:
    """An error if the output is there already, or of a kind that cannot be written."""
    one_of("output suffix", output.suffix.lower(), suffixes)
    if output.exists() and not force:
        raise ParameterError(
            f"output={str(output)!r} is there already; give another name, or --force to replace it."
        )
