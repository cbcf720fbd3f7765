"""Files that commands write: none is overwritten unless the user says so."""

from __future__ import annotations

from pathlib import Path

from ..errors import ParameterError


def refuse_existing(output: Path, force: bool) -> None:
    """An error if the output is there already."""
    if output.exists() and not force:
        raise ParameterError(f"output={str(output)!r} is there already; give another name, or --force to replace it.")
