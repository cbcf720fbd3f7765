"""Whether a file holds a result, told from its first words."""

from __future__ import annotations

from pathlib import Path

from .._files import refuse_broken_heaps
from ._files import FORMAT


def is_result(path: str | Path) -> bool:
    """Whether a file says that it holds a result."""
    import h5py

    path = Path(path)
    if not path.is_file():
        return False
    try:
        if path.suffix == ".csv":
            with path.open("rb") as file:
                return file.read(64).startswith(f'# {{"format": "{FORMAT}"'.encode())
        refuse_broken_heaps(path, "a result")
        with h5py.File(path, "r") as file:
            return str(file.attrs.get("format")) == FORMAT
    except (OSError, RuntimeError, TypeError, ValueError, UnicodeError):
        return False  # broken, or of another format
