"""A part: what a stretch of rows says, small enough for a file, from which capacities are put together later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._files import Contents, replaced
from .._version import __version__
from ..basis import ProductBasis
from ..errors import DataError
from ..kernels import Summary
from ..recording import open_npz
from ..typing import Floats, Integers
from ._look import Look

PART, FRAME = "infocap part 1", "infocap frame 1"
WORDS = ("start", "stop", "total", "fingerprint", "complex_as", "read_again")
ARRAYS = ("channels", "shift", "scale", "typical", "inputs_at_edges", "readouts_at_edges")
LOOK = ("low", "high", "at_low", "at_high", "input_low", "input_high", "epoch_sizes", "epoch_sums")


class Piece(NamedTuple):
    """The summary of some rows, and the sum of y² of every function over them."""

    start: int
    stop: int
    summary: Summary
    square_sums: Floats


class Second(NamedTuple):
    """What a second look adds: sums of leverage² and of leverage times y², in the frame of all parts."""

    frame: str
    power: float
    squares: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Summaries of the rows start to stop of a data set; `infocap.combine` makes a result of all its parts.

    `total` is the number of rows of the whole data set, where it is known. `read_again` says how `infocap.read` gets
    at the rows once more, and `fingerprint` what they looked like.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 2, 4)
    >>> u = infocap.draw(basis, 512, seed=1)
    >>> run = infocap.Recording(u, infocap.systems.RandomFeatures(2, 5)(u), index=range(512))
    >>> infocap.summarise(run, basis, rows=(0, 256))
    Part: rows 0 to 256 of 512, 5 readouts, 15 functions
    """

    basis: ProductBasis
    constant: bool
    start: int
    stop: int
    total: int | None
    columns: tuple[str, ...]
    channels: Integers  # that change within the part
    shift: Floats
    scale: Floats
    typical: Floats
    look: Look
    pieces: tuple[Piece, ...]
    inputs_at_edges: Floats  # the first rows and the last, for the search for shifted readouts
    readouts_at_edges: Floats
    fingerprint: str
    complex_as: str | None = None
    read_again: dict[str, Any] | None = None
    second: Second | None = None
    name: str = field(default="", compare=False)  # of its file

    def __repr__(self) -> str:
        of = "" if self.total is None else f" of {self.total}"
        second = ", with a second look" if self.second else ""
        size = f"{len(self.columns)} readouts, {len(self.basis)} functions"
        return f"Part: rows {self.start} to {self.stop}{of}, {size}{second}"

    @property
    def identity(self) -> str:
        """A name that tells the rows and what is asked of them from all others, on any machine."""
        told = [self.start, self.stop, self.fingerprint, self.constant, self.columns, self.basis.to_dict()]
        digest = hashlib.sha256(json.dumps(told).encode())
        digest.update(np.asarray(self.basis.indices, dtype=np.int64).tobytes())
        return digest.hexdigest()

    def save(self, path: str | Path) -> Path:
        """Write to a file of arrays, each with a checksum; it is there whole or not at all."""
        words = {
            **{name: getattr(self, name) for name in WORDS},
            "constant": self.constant,
            "columns": self.columns,
            "pieces": [(piece.start, piece.stop) for piece in self.pieces],
            "basis": self.basis.to_dict(),
            "second": None if self.second is None else [self.second.frame, self.second.power],
        }
        arrays = {"indices": self.basis.indices}
        arrays |= {name: getattr(self, name) for name in ARRAYS}
        arrays |= {f"look_{name}": getattr(self.look, name) for name in LOOK}
        for number, piece in enumerate(self.pieces):
            arrays[f"triangle_{number}"] = piece.summary.triangle
            arrays[f"projection_{number}"] = piece.summary.projection
            arrays[f"squares_{number}"] = piece.square_sums
        if self.second is not None:
            arrays["second_squares"] = self.second.squares
        return _write(Path(path), PART, words, arrays)


@dataclass(frozen=True, eq=False)
class Frame:
    """All parts' readouts whitened together: what a second look at each part needs."""

    identity: str
    constant: bool
    channels: Integers
    shift: Floats
    scale: Floats
    mean: Floats
    whitening: Floats
    columns: tuple[str, ...]

    def save(self, path: str | Path) -> Path:
        """Write to a file of arrays, each with a checksum."""
        fields = asdict(self)
        words = {name: fields.pop(name) for name in ("identity", "constant", "columns")}
        return _write(Path(path), FRAME, words, fields)


def load_part(path: str | Path) -> Part:
    """Read what `Part.save` wrote.

    >>> import infocap, tempfile
    >>> basis = infocap.product_basis("legendre", 2, 4)
    >>> u = infocap.draw(basis, 512, seed=1)
    >>> run = infocap.Recording(u, infocap.systems.RandomFeatures(2, 5)(u), index=range(512))
    >>> file = tempfile.mkdtemp() + "/part.sum"
    >>> load_part(infocap.summarise(run, basis, rows=(0, 256)).save(file))
    Part: rows 0 to 256 of 512, 5 readouts, 15 functions
    """
    path = Path(path)
    with _reading(path, PART) as (words, contents):
        basis = ProductBasis.from_dict(words["basis"], contents.numbers("indices"))
        constant = bool(words["constant"])
        pieces = tuple(
            Piece(
                start,
                stop,
                Summary(
                    contents.numbers(f"triangle_{number}"),
                    contents.numbers(f"projection_{number}"),
                    stop - start,
                    constant,
                ),
                contents.numbers(f"squares_{number}"),
            )
            for number, (start, stop) in enumerate(words["pieces"])
        )
        looked: dict[str, Any] = {name: contents.numbers(f"look_{name}") for name in LOOK}
        second: Any = words["second"]
        known: dict[str, Any] = {name: words[name] for name in WORDS}
        known |= {name: contents.numbers(name) for name in ARRAYS}
        return Part(
            basis=basis,
            constant=constant,
            columns=tuple(words["columns"]),
            look=Look(**looked, bad_inputs=(0, ""), bad_readouts=(0, "")),
            pieces=pieces,
            second=None
            if second is None
            else Second(second[0], second[1], contents.numbers("second_squares")),
            name=str(path),
            **known,
        )


def load_frame(path: str | Path) -> Frame:
    """Read what `Frame.save` wrote.

    >>> import infocap, tempfile
    >>> basis = infocap.product_basis("legendre", 2, 4)
    >>> u = infocap.draw(basis, 512, seed=1)
    >>> run = infocap.Recording(u, infocap.systems.RandomFeatures(2, 5)(u), index=range(512))
    >>> file = tempfile.mkdtemp() + "/all.frame"
    >>> load_frame(infocap.common_frame([infocap.summarise(run, basis)]).save(file)).columns
    ('0', '1', '2', '3', '4')
    """
    path = Path(path)
    with _reading(path, FRAME) as (words, contents):
        arrays = {
            name: contents.numbers(name) for name in ("channels", "shift", "scale", "mean", "whitening")
        }
        return Frame(
            str(words["identity"]), bool(words["constant"]), columns=tuple(words["columns"]), **arrays
        )


def _write(path: Path, kind: str, words: dict[str, Any], arrays: dict[str, Any]) -> Path:
    header = json.dumps({"format": kind, "infocap_version": __version__} | words)
    with replaced(path) as beside, beside.open("wb") as file:
        np.savez(file, header=np.frombuffer(header.encode(), np.uint8), **arrays)
    return path


@contextmanager
def _reading(path: Path, kind: str) -> Iterator[tuple[dict[str, Any], Contents]]:
    """A file of ours: its words and its arrays; damage of any kind is one DataError that names it."""
    with open_npz(path) as contents:
        if "header" not in contents:
            raise DataError(f"{path} is no file of infocap summarise or combine; it holds {contents}.")
        header = contents.numbers("header")
        try:
            words = json.loads(header.tobytes())
            if words["format"] == kind:
                yield words, contents
                return
        except DataError:
            raise
        except (ValueError, KeyError, TypeError, IndexError) as problem:
            raise DataError(f"{path} is damaged ({problem}); summarise its rows again.") from problem
        raise DataError(
            f"{path} is not an {kind!r} file but {words['format']!r}, written by infocap "
            f"{words.get('infocap_version')}."
        )


def names(parts: list[Part]) -> Iterator[str]:
    """How to call parts in messages: by file, or by place."""
    return (part.name or f"part {number + 1}" for number, part in enumerate(parts))
