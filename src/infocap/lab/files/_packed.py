"""Files in a compressed one: .csv.gz, .csv.bz2, .csv.xz, and a .zip with a single file."""

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path
from typing import Any

from ..._files import (
    MAX_MEMORY_FRACTION,
    MEMORY_BYTES_PER_TEXT_BYTE,
    as_data_error,
    available_memory,
    read_text,
)
from ..._formatting import join_names
from ...errors import DataError

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
PACKED_SUFFIXES = (*OPENERS, ".zip")
# What macOS puts into an archive beside the files.
HIDDEN_MEMBERS = ("__MACOSX", ".")
MAX_MEMBERS_IN_MESSAGE = 4


def unpack(path: Path) -> tuple[str, bytes]:
    """Return the name and the bytes of the file that a path holds, compressed or not."""
    data = read_text(path)
    suffix = path.suffix.lower()
    if suffix not in PACKED_SUFFIXES:
        return path.name, data
    with as_data_error(path, f"a {suffix} file"):
        if suffix == ".zip":
            return _unpack_zip(path, data)
        with OPENERS[suffix](io.BytesIO(data), "rb") as file:
            return path.stem, _read_within_memory(path, file)


def _unpack_zip(path: Path, data: bytes) -> tuple[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = []
        for member in archive.infolist():
            if not member.is_dir() and not member.filename.startswith(HIDDEN_MEMBERS):
                members.append(member)
        if len(members) != 1:
            names = join_names([member.filename for member in members], MAX_MEMBERS_IN_MESSAGE)
            raise DataError(
                f"{path} holds {len(members)} files ({names}); unpack it, and give its files or "
                "its folder."
            )
        with archive.open(members[0]) as file:
            return Path(members[0].filename).name, _read_within_memory(path, file)


def _read_within_memory(path: Path, file: Any) -> bytes:
    """Read all bytes, unless their cells would not fit into memory."""
    n_bytes = int(MAX_MEMORY_FRACTION * available_memory() / MEMORY_BYTES_PER_TEXT_BYTE)
    data: bytes = file.read(n_bytes + 1)
    if len(data) > n_bytes:
        raise DataError(
            f"{path} unpacks to more than {n_bytes:,} bytes, whose cells would not fit into "
            "memory; unpack it and read it in parts."
        )
    return data
