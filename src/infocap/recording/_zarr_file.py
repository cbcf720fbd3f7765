"""Zarr folders: described by their metadata before a chunk is read; only known codecs, and never a pickle."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from .._atomic import sync
from .._files import Contents, Variable, blame, readable, refuse_too_large
from ..errors import DataError, ParameterError
from ._layout import DIMENSIONS, arrays_of, rebuild, words_of
from ._recording import Recording

DESCRIPTIONS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
TEXT_EXPANSION = 40  # bytes of memory for each byte of JSON
CHUNK_BYTES = 1 << 22
MOST_EMPTY = 1000  # chunks for each file: those that are not there hold the same number everywhere
CODECS = {
    "bytes", "endian", "transpose", "sharding_indexed", "gzip", "zstd", "blosc", "crc32c", "adler32", "fletcher32",
    "zlib", "bz2", "lzma", "lz4", "shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "packbits", "astype",
    "cast_value", "scale_offset", "default", "vlen-utf8", "vlen-bytes", "crc32", "jenkins_lookup3",
}  # fmt: skip


@contextmanager
def open_zarr(path: Path) -> Iterator[Contents]:
    """The arrays of all groups by path."""
    zarr = _zarr()
    readable(path, folder=True)
    variables: dict[str, Variable] = {}
    attributes: dict[str, Any] = {}
    with blame(path, "zarr"):
        # Not by zarr's own list of members: on damaged ones it prints tracebacks of its tasks.
        for file in _descriptions(path):
            described = _described(file)
            _refuse_strange(file, described)
            folder = file.parent
            if file.name == ".zarray" or described.get("node_type") == "array":
                name = "array" if folder == path else folder.relative_to(path).as_posix()
                version = 2 if file.name == ".zarray" else 3
                variables[name] = _variable(
                    path, name, zarr.open_array(str(folder), mode="r", zarr_format=version)
                )
            if folder == path and file.name in ("zarr.json", ".zattrs"):
                attributes = described.get("attributes", {}) if file.name == "zarr.json" else described
    if not isinstance(attributes, dict):
        raise DataError(f"{path} has attributes that are no such thing ({attributes!r:.60}); it is damaged.")
    yield Contents(path, "zarr", variables, attributes)


def save_zarr(recording: Recording, path: Path) -> None:
    """Write everything, with checksums; the folder is there whole or not at all."""
    zarr = _zarr()
    if not path.parent.exists():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")
    if path.exists() and not any((path / name).exists() for name in DESCRIPTIONS):
        raise DataError(f"{path} is there and is no zarr folder; give another name.")
    beside = path.with_name(f".{path.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        root = zarr.create_group(str(beside), zarr_format=3, attributes=words_of(recording))
        for name, values in arrays_of(recording).items():
            rows = max(1, min(len(values), CHUNK_BYTES * len(values) // max(values.nbytes, 1)))
            array = root.create_array(
                name,
                shape=values.shape,
                dtype=values.dtype,
                chunks=(rows, *(max(n, 1) for n in values.shape[1:])),
                compressors=zarr.codecs.ZstdCodec(checksum=True),
                dimension_names=DIMENSIONS[name],
            )
            array[...] = values
        _replace(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def load_own_zarr(contents: Contents) -> Recording:
    """A recording from a folder of ours."""
    held = {name: contents.numbers(name) for name in DIMENSIONS if name in contents}
    return rebuild(contents.path, held, contents.attributes)


def _zarr() -> Any:
    try:
        import zarr
    except ImportError:
        raise ParameterError("zarr folders need the package zarr: pip install infocap[zarr].") from None
    return zarr


def _variable(path: Path, name: str, array: Any) -> Variable:
    n_chunks = math.prod(-(-n // c) for n, c in zip(array.shape, array.chunks, strict=True))
    n_files = sum(len(files) for _, _, files in os.walk(path if name == "array" else path / name))
    if n_chunks > MOST_EMPTY * n_files:
        raise DataError(
            f"{path} declares {name} of shape {array.shape} in {n_chunks:,} chunks, of which at most {n_files} are "
            "there; it is damaged."
        )
    return Variable(tuple(array.shape), array.dtype, partial(_load, path, name, array), n_chunks=n_chunks)


def _load(path: Path, name: str, array: Any) -> Any:
    """The values, one chunk at a time: of several that fail at once zarr prints tracebacks later."""
    for chunks in (array.chunks, array.shards or ()):
        refuse_too_large(path, f"chunks of {name}", chunks, array.dtype.itemsize)
    out = np.empty(array.shape, array.dtype)
    for corner in product(*(range(0, n, c) for n, c in zip(array.shape, array.chunks, strict=True))):
        here = tuple(slice(start, start + c) for start, c in zip(corner, array.chunks, strict=True))
        out[here] = array[here]
    return out


def _descriptions(path: Path) -> list[Path]:
    """All files that tell about arrays and groups; an error if there are none."""
    found = [
        Path(folder, name) for folder, _, files in os.walk(path) for name in files if name in DESCRIPTIONS
    ]
    if not found:
        raise DataError(f"{path} is a folder without zarr.json, .zgroup or .zarray; it is no zarr folder.")
    return sorted(found)


def _described(file: Path) -> dict[str, Any]:
    refuse_too_large(file, "metadata", (file.stat().st_size,), TEXT_EXPANSION)
    found = json.loads(file.read_bytes())
    if not isinstance(found, dict):
        raise DataError(f"{file} holds {found!r:.60} and describes nothing; it is damaged.")
    return found


def _refuse_strange(file: Path, described: dict[str, Any]) -> None:
    """Some codecs unpickle, even while an array is opened: they are looked at before."""
    for codec in _codecs(described):
        if codec.removeprefix("numcodecs.") not in CODECS:
            raise DataError(
                f"{file} asks for the codec {codec!r}, which is not one of those that only unpack numbers "
                f"({', '.join(sorted(CODECS))}); write the array with one of them."
            )


def _codecs(described: Any) -> Iterator[str]:
    """The names of all codecs in a description of version 2 or 3, however nested."""
    stack = [described]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack += one
        elif isinstance(one, dict):
            stack += one.values()
            for key in ("filters", "compressor", "codecs", "index_codecs"):
                named = one.get(key) or []
                for codec in named if isinstance(named, list) else [named]:
                    yield str(codec.get("id", codec.get("name")) if isinstance(codec, dict) else codec)


def _replace(beside: Path, path: Path) -> None:
    """Put a folder, once it is on the disk, in the place of another; that one steps aside until then."""
    for folder, _, files in os.walk(beside):
        for name in [*files, "."]:
            sync(Path(folder, name))
    aside = path.with_name(f".{path.name}.old")
    shutil.rmtree(aside, ignore_errors=True)
    if path.exists():
        path.rename(aside)
    beside.rename(path)
    sync(path.parent)
    shutil.rmtree(aside, ignore_errors=True)
