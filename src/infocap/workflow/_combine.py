"""combine: parts that `summarise` made, somewhere and some time, put together as if one process had seen all rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._check import one_of
from .._table import Table
from ..errors import DataError, InfocapError, ParameterError
from ..kernels import Evidence, Summary, Walk
from ..kernels import combine as combine_summaries
from ..recording import read
from ..result import CapacityResult
from ..typing import Floats
from ._diagnose import LAG_ROWS
from ._estimate import chosen_estimator, conclude, prepare
from ._look import EPOCHS, Look, Survey
from ._memory import IN_PASSES
from ._part import Frame, Part, Piece, load_part, names
from ._summarise import _pieces, fingerprint
from ._survey import tables


def combine(
    parts: Sequence[Part | str | Path], *, method: str = "threshold-richardson", **options: Any
) -> CapacityResult:
    """The capacities of a data set from all its parts, the same as `estimate` gives for all rows at once.

    `parts` are those of `summarise`, or their files, in any order. `method` is ``"raw"``, ``"threshold-richardson"``,
    ``"richardson-threshold"`` or ``"chi2"``; other methods need all rows. Algorithm 1 needs a second look at the rows:
    it is taken from the parts if they have one (`common_frame`), else the rows are read again where they were.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 2, 4)
    >>> u = infocap.draw(basis, 512, seed=1)
    >>> run = infocap.Recording(u, infocap.systems.RandomFeatures(2, 5)(u), index=range(512))
    >>> parts = [infocap.summarise(run, basis, rows=(a, a + 256)) for a in (0, 256)]
    >>> print(f"{infocap.combine(parts, method='richardson-threshold').total:.2f}")
    5.98
    """
    one_of("method", method, IN_PASSES)
    estimator, name = chosen_estimator(method, options)
    whole = _Whole(_loaded(parts))
    evidence = whole.evidence
    result = conclude(evidence, whole.survey, (estimator, name, options), whole.parts[0].constant)
    return replace(result, metadata=result.metadata | {"parts": [*names(list(whole.parts))]})


def common_frame(parts: Sequence[Part | str | Path]) -> Frame:
    """What `summarise(..., second=)` needs for its second look: the readouts of all parts, whitened together.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 2, 4)
    >>> u = infocap.draw(basis, 512, seed=1)
    >>> run = infocap.Recording(u, infocap.systems.RandomFeatures(2, 5)(u), index=range(512))
    >>> parts = [infocap.summarise(run, basis, rows=rows) for rows in ((0, 256), (256, 512))]
    >>> frame = infocap.common_frame(parts)
    >>> again = [infocap.summarise(run, basis, rows=rows, second=frame) for rows in ((0, 256), (256, 512))]
    >>> again[0]
    Part: rows 0 to 256 of 512, 5 readouts, 15 functions, with a second look
    """
    whole = _Whole(_loaded(parts))
    walk, space = whole.walk, whole.evidence.space
    return Frame(
        whole.identity,
        walk.constant,
        walk.channels,
        walk.shift,
        walk.scale,
        space.mean,
        space.whitening * np.sqrt(walk.n_samples),
        tuple(walk.x.columns),
    )


class _Whole:
    """All parts of one data set, in the order of their rows."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = tuple(parts)
        self.first = parts[0].start
        self.n_samples = parts[-1].stop - self.first

    @cached_property
    def identity(self) -> str:
        """A name that changes with any part."""
        return hashlib.sha256("".join(part.identity for part in self.parts).encode()).hexdigest()

    @cached_property
    def survey(self) -> Survey:
        """What one look at all rows would have found; the stretches that show drift are those of the parts."""
        typical = self.parts[0].typical
        look = reduce(Look.merged, (part.look for part in self.parts))
        sizes = np.concatenate([part.look.epoch_sizes for part in self.parts])
        sums = np.vstack(
            [
                part.look.epoch_sums + part.look.epoch_sizes[:, None] * (part.typical - typical)
                for part in self.parts
            ]
        )
        begins = [group[0] for group in np.array_split(np.arange(len(sizes)), EPOCHS)]
        sizes, sums = np.add.reduceat(sizes, begins), np.add.reduceat(sums, begins, axis=0)
        return look._replace(epoch_sizes=sizes, epoch_sums=sums).survey(typical, self.n_samples)

    @cached_property
    def walk(self) -> Walk:
        """The way back to the rows, as far as they are kept or can be read again."""
        part = self.parts[0]
        u, x = (Table(_PartRows(self.parts, role), role) for role in ("u", "x"))
        return prepare(u, x, part.basis, self.survey, part.constant)

    @cached_property
    def evidence(self) -> _PartsEvidence:
        """The summaries of both halves, and of the whole."""
        middle = self.first + self.n_samples // 2
        pieces = [(part, piece) for part in self.parts for piece in self._cut(part, middle)]
        halves = [
            combine_summaries(*(self._rebased(*one) for one in pieces if (one[1].start >= middle) == late))
            for late in (False, True)
        ]
        power = np.sum([piece.square_sums for _, piece in pieces], axis=0) / self.n_samples
        first, second = halves
        return _PartsEvidence(
            self.walk, combine_summaries(first, second), (first, second), self.parts, self.identity, power
        )

    def _cut(self, part: Part, middle: int) -> list[Piece]:
        """The pieces of a part; one that the middle of all rows goes through is made anew from its rows."""
        out: list[Piece] = []
        for piece in part.pieces:
            if not piece.start < middle < piece.stop:
                out.append(piece)
                continue
            why = f"the middle of all rows is row {middle}, within rows {piece.start} to {piece.stop} of one piece"
            advice = f"summarise it again with the number of all rows, total={self.n_samples}"
            u, x = _rows_again(part, why, advice)
            local = piece.start - part.start, middle - part.start, piece.stop - part.start
            walk = Walk(u, x, part.basis, part.channels, part.shift, part.scale, part.constant)
            out += _pieces(walk, list(local), part.start)
        return out

    def _rebased(self, part: Part, piece: Piece) -> Summary:
        """A summary in the shift, scale and channels of the whole.

        New columns are sums of old ones: the old column of the channel, and the constant times how far the shift
        moved; a channel that was still within the part is a multiple of the constant alone.
        """
        walk, skip, summary = self.walk, int(part.constant), piece.summary
        if all(
            np.array_equal(getattr(walk, name), getattr(part, name))
            for name in ("channels", "shift", "scale")
        ):
            return summary
        change = np.zeros((len(part.channels) + skip, len(walk.channels) + skip))
        change[:skip, :skip] = 1.0
        place = {int(channel): number for number, channel in enumerate(part.channels)}
        for number, channel in enumerate(walk.channels.tolist()):
            scale, shift = walk.scale[number], walk.shift[number]
            if channel in place:
                old = place[channel]
                change[skip + old, skip + number] = scale / part.scale[old]
                offset = part.shift[old] - shift
            else:
                offset = part.look.low[channel] - shift
            change[:skip, skip + number] = offset * scale
        q, triangle = np.linalg.qr(summary.triangle @ change)
        return replace(summary, triangle=triangle, projection=q.T @ summary.projection)


@dataclass(frozen=True, eq=False)
class _PartsEvidence(Evidence):
    """Evidence whose second look may have been taken part by part."""

    parts: tuple[Part, ...]
    identity: str
    square_means: Floats

    @cached_property
    def target_power(self) -> Floats:
        """The sample mean of y², which every part carries."""
        return self.square_means

    @cached_property
    def leverage_power(self) -> float:
        """S_N from the parts, else from the rows."""
        if self._looked_twice:
            return sum(part.second.power for part in self.parts if part.second) / self.n_samples
        return Evidence.leverage_power.func(self)  # type: ignore[attr-defined]

    @cached_property
    def leverage_bound(self) -> Floats:
        """mean(leverage y²) / N from the parts, else from the rows."""
        if self._looked_twice:
            return (
                np.sum([part.second.squares for part in self.parts if part.second], axis=0)
                / self.n_samples**2
            )
        return Evidence.leverage_bound.func(self)  # type: ignore[attr-defined]

    @property
    def _looked_twice(self) -> bool:
        return all(part.second is not None and part.second.frame == self.identity for part in self.parts)


class _PartRows:
    """The rows of all parts as one table: those that the parts carry, others from where they were."""

    def __init__(self, parts: tuple[Part, ...], role: str) -> None:
        self._parts, self._number = parts, "ux".index(role)
        self._first = parts[0].start
        carried = parts[0].readouts_at_edges if role == "x" else parts[0].inputs_at_edges
        self.shape = (parts[-1].stop - self._first, carried.shape[1])
        if role == "x":
            self.columns = parts[0].columns
        self._tables: dict[int, Table] = {}

    def __getitem__(self, rows: slice) -> Floats:
        start, stop, _ = rows.indices(self.shape[0])
        found = []
        for part in self._parts:
            a, b = max(start + self._first, part.start), min(stop + self._first, part.stop)
            if a < b:
                found.append(self._within(part, a - part.start, b - part.start))
        return np.vstack(found)

    def _within(self, part: Part, a: int, b: int) -> Floats:
        carried = part.readouts_at_edges if self._number else part.inputs_at_edges
        n = part.stop - part.start
        if b <= LAG_ROWS or len(carried) == n:
            return carried[a:b]
        if a >= n - LAG_ROWS:
            return carried[len(carried) - n + a : len(carried) - n + b]
        if part.start not in self._tables:
            why = "this method takes a second look at all rows"
            advice = (
                "put the file back, or take the second look part by part: `infocap combine *.sum -o all.frame`, then "
                "`infocap summarise ... --second all.frame` for each, then combine again; or use method='raw'"
            )
            self._tables[part.start] = _rows_again(part, why, advice)[self._number]
        return self._tables[part.start].read(a, b)


def _rows_again(part: Part, why: str, advice: str) -> tuple[Table, Table]:
    """The tables of a part's rows, if they are where they were and what they were."""
    name = part.name or repr(part)
    if part.read_again is None:
        raise DataError(f"{why}, and {name} does not know the file of its rows; {advice}.")
    try:
        recording = read(**part.read_again["arguments"], in_memory=False)
        u, x, _ = tables(recording.inputs, recording.readouts, part.basis, part.complex_as, "raise")
        if part.read_again["rows"] is not None:
            u, x = (table.part(*part.read_again["rows"]) for table in (u, x))
        same = fingerprint(u, x) == part.fingerprint
    except (InfocapError, OSError) as problem:
        raise DataError(
            f"{why}, and the rows of {name} cannot be read again ({problem}); {advice}."
        ) from None
    if not same:
        path = part.read_again["arguments"]["path"]
        raise DataError(f"{path} holds other rows than when {name} was made of it; summarise it again.")
    return u, x


def _loaded(parts: Sequence[Part | str | Path]) -> list[Part]:
    """Parts in the order of their rows, after a check that they are all of one data set and all there."""
    if isinstance(parts, str | Path | Part) or not len(parts):
        raise ParameterError(f"parts={parts!r} must be a list of parts or of their files.")
    loaded = sorted(
        (part if isinstance(part, Part) else load_part(part) for part in parts), key=lambda part: part.start
    )
    called = list(names(loaded))
    for part, name in zip(loaded[1:], called[1:], strict=True):
        _refuse_other(loaded[0], called[0], part, name)
    for (a, first), (b, second) in pairwise(zip(loaded, called, strict=True)):
        if b.start < a.stop:
            raise DataError(
                f"{first} has the rows {a.start} to {a.stop} and {second} those from {b.start} to {b.stop}: they "
                "overlap; leave one out, or say where each begins (start=)."
            )
        if b.start > a.stop:
            raise DataError(
                f"the rows {a.stop} to {b.start}, between {first} and {second}, are missing; add their part."
            )
    total = loaded[0].total
    if loaded[0].start > (0 if total is not None else 1):
        raise DataError(f"the rows 0 to {loaded[0].start}, before {called[0]}, are missing; add their part.")
    if total is not None and loaded[-1].stop < total:
        raise DataError(
            f"the rows {loaded[-1].stop} to {total}, after {called[-1]}, are missing; add their part."
        )
    return loaded


def _refuse_other(a: Part, first: str, b: Part, second: str) -> None:
    """Parts of different jobs cannot be put together."""
    kinds = {
        "bases": a.basis.to_dict() == b.basis.to_dict() and np.array_equal(a.basis.indices, b.basis.indices),
        "readouts": a.columns == b.columns,
        "settings of constant=": a.constant == b.constant,
        "settings of complex_as=": a.complex_as == b.complex_as,
        "numbers of all rows": a.total == b.total,
    }
    for what, same in kinds.items():
        if not same:
            raise DataError(f"{first} and {second} have different {what}; they are not parts of one job.")
