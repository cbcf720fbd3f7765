"""Zarr folders: described by their metadata before a chunk is read; only known codecs, and never a pickle."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._atomic import sync
from .._files import Contents, Variable, blame, readable, refuse_too_large
from ..errors import DataError, ParameterError
from ._layout import DIMENSIONS, arrays_of, rebuild, words_of
from ._recording import Recording

DESCRIPTIONS = ("zarr.json", ".zarray", ".zgroup", ".zmetadata")
LARGEST_DESCRIPTION = 100_000_000  # bytes
CHUNK_BYTES = 1 << 22
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
    with blame(path, "zarr"):
        _refuse_strange(path)
        root = zarr.open(str(path), mode="r")
        if isinstance(root, zarr.Array):
            members = [("array", root)]
        else:
            members = [
                (name, one) for name, one in root.members(max_depth=None) if isinstance(one, zarr.Array)
            ]
        variables = {name: _variable(path, name, array) for name, array in members}
        attributes = dict(root.attrs)
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
    def load() -> Any:
        refuse_too_large(path, f"chunks of {name}", array.shards or array.chunks, array.dtype.itemsize)
        refuse_too_large(path, f"chunks of {name}", array.chunks, array.dtype.itemsize)
        return array[...]

    return Variable(tuple(array.shape), array.dtype, load, n_chunks=array.nchunks)


def _refuse_strange(path: Path) -> None:
    """Some codecs unpickle, even while an array is opened: the descriptions are looked at before."""
    for folder, _, files in os.walk(path):
        for name in set(files) & set(DESCRIPTIONS):
            file = Path(folder, name)
            refuse_too_large(file, "metadata", (file.stat().st_size,), 20)
            for codec in _codecs(json.loads(file.read_bytes())):
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
