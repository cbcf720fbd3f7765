"""Files that commands write: none is overwritten unless the user says so."""

from __future__ import annotations

from pathlib import Path

from .._check import one_of
from .._recording import WRITERS
from ..errors import ParameterError


def refuse_existing(output: Path, force: bool) -> None:
    """An error if the output is there already, or of a kind that cannot be written."""
    one_of("output suffix", output.suffix.lower(), WRITERS)
    if output.exists() and not force:
        raise ParameterError(
            f"output={str(output)!r} is there already; give another name, or --force to replace it."
        )
