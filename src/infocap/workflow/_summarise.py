"""summarise: one stretch of the rows of a data set, reduced to a part that `combine` puts together with the others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .._check import whole_number, yes_or_no
from .._parallel import all_cores
from .._spread import check_executor, client_in_use
from .._table import Table
from ..basis import ProductBasis
from ..errors import DataError, ParameterError
from ..kernels import LeveragePower, LeverageSquares, Summaries, Walk, combine
from ..kernels import summarise as summarise_block
from ..recording import Recording
from ..typing import Floats
from ._diagnose import LAG_ROWS
from ._estimate import prepare
from ._memory import Shapes, byte_count, share_out
from ._part import Frame, Part, Piece, Second
from ._survey import looks, tables

EDGE_ROWS = 64  # at both ends, for the fingerprint


def summarise(
    recording: Recording,
    basis: ProductBasis,
    *,
    rows: tuple[int, int] | None = None,
    start: int | None = None,
    total: int | None = None,
    constant: bool = True,
    complex_as: str | None = None,
    memory: str | float | None = None,
    executor: Any = None,
    second: Frame | None = None,
    read_again: dict[str, Any] | None = None,
) -> Part:
    """Reduce a stretch of consecutive rows to a `Part`, for jobs that share nothing but files.

    Parameters
    ----------
    rows
        Which rows of the recording, from the first to before the second; the recording is then the whole data set.
        Without them all its rows are the part.
    start, total
        The number of the part's first row in the data set, and how many rows that has. By default the recording's
        design index and plan tell. Without a total the part is cut in two at its own middle, which will do when
        all parts are equally long.
    second
        The frame of all parts, as `combine` gives it: a second look is taken, which Algorithm 1 needs.
    read_again
        Arguments with which `infocap.read` gets the same recording: then `combine` may take the second look itself.

    The others are those of `estimate`. Rows with missing values are refused: they would move the halves.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 2, 4)
    >>> u = infocap.draw(basis, 1024, seed=1)
    >>> run = infocap.Recording(u, infocap.systems.RandomFeatures(2, 5)(u), index=range(1024))
    >>> parts = [infocap.summarise(run, basis, rows=(a, a + 256)) for a in range(0, 1024, 256)]
    >>> whole = infocap.estimate(u, run.readouts, basis, method="raw")
    >>> bool(abs(infocap.combine(parts, method="raw").total - whole.total) < 1e-10)
    True
    """
    constant = yes_or_no("constant", constant)
    executor = check_executor(executor) or client_in_use(recording.inputs, recording.readouts)
    u, x, _ = tables(recording.inputs, recording.readouts, basis, complex_as, "raise")
    u, x = u.on_host(), x.on_host()
    start, total, u, x = _placed(recording, u, x, rows, start, total)
    n = x.shape[0]
    shapes = Shapes(n, x.shape[1] + constant, basis, u.row_bytes + x.row_bytes, not x.in_memory)
    passes = share_out(byte_count(memory), shapes, "raw", {}, executor)
    with all_cores():
        typical, look = looks(u, x, basis, None, passes)
        walk = prepare(u, x, basis, look.survey(typical, n), constant)
        walk = replace(walk, passes=passes)
        edges = [0, _middle(start, n, total), n]
        pieces = _pieces(walk, edges, start)
        part = Part(
            basis=basis,
            constant=constant,
            start=start,
            stop=start + n,
            total=total,
            columns=tuple(x.columns),
            channels=walk.channels,
            shift=walk.shift,
            scale=walk.scale,
            typical=typical,
            look=look,
            pieces=pieces,
            inputs_at_edges=_edges(u),
            readouts_at_edges=_edges(x),
            fingerprint=fingerprint(u, x),
            complex_as=complex_as,
            read_again=None if read_again is None else {"arguments": read_again, "rows": rows},
        )
        return part if second is None else replace(part, second=_second(walk, second))


class _PartSummaries(Summaries):
    """Summaries along with the sum of y² of every function."""

    def run(self, rows: tuple[int, int]) -> Any:
        """Those of one block."""
        walk, sums = self.walk, np.zeros(len(self.walk.basis))

        def counted() -> Iterator[Floats]:
            for y in walk.targets(*rows):
                np.add(sums, np.einsum("ij,ij->i", y, y), out=sums)
                yield y

        summary = summarise_block(walk.readouts(*rows), counted(), walk.constant, walk.basis.row_of)
        return summary, sums[walk.basis.row_of]

    def merge(self, a: Any, b: Any) -> Any:
        """Those of both together."""
        return combine(a[0], b[0]), a[1] + b[1]


def _pieces(walk: Walk, edges: list[int], start: int) -> tuple[Piece, ...]:
    """The summaries between the edges; one of no rows is left out."""
    edges = sorted(set(edges))
    found = walk.passes.fold(_PartSummaries(walk), edges)
    return tuple(
        Piece(start + a, start + b, summary, sums)
        for a, b, (summary, sums) in zip(edges[:-1], edges[1:], found, strict=True)
    )


def _middle(start: int, n: int, total: int | None) -> int:
    """Where to cut: at the middle of all rows, if that is known and within, else at the part's own."""
    if total is None:
        return n // 2
    return min(max(total // 2 - start, 0), n)


def _placed(
    recording: Recording, u: Table, x: Table, rows: Any, start: int | None, total: int | None
) -> tuple[int, int | None, Table, Table]:
    """The part's first row in the data set, the number of all rows, and the tables of the part."""
    n = x.shape[0]
    if rows is not None:
        if start is not None or total is not None:
            raise ParameterError("rows= says where the part is; leave start= and total= out.")
        a, b = (whole_number("rows", edge, 0) for edge in rows)
        if not a < b <= n:
            raise ParameterError(f"rows={(a, b)} is no stretch of the {n} rows of the recording.")
        return a, n, u.part(a, b), x.part(a, b)
    index = np.asarray(recording.index)
    if start is None:
        jumps = np.flatnonzero(np.diff(index) != 1)
        if len(jumps):
            row = int(jumps[0])
            raise DataError(
                f"index goes from {index[row]} to {index[row + 1]} at row {row + 1}: a part is a stretch without gaps; "
                "say where it begins with start=, or leave out the index."
            )
        start = int(index[0])
    plan = recording.metadata.get("plan")
    if total is None and isinstance(plan, dict):
        total = plan.get("n_samples")
    start, total = whole_number("start", start, 0), None if total is None else whole_number("total", total, 1)
    if total is not None and start + n > total:
        raise ParameterError(f"rows {start} to {start + n} do not lie within total={total} rows.")
    return start, total, u, x


def _edges(table: Table) -> Floats:
    """The first rows and the last; all of a short table."""
    n = table.shape[0]
    if n <= 2 * LAG_ROWS:
        return table.read(0, n)
    return np.vstack([table.read(0, LAG_ROWS), table.read(n - LAG_ROWS, n)])


def fingerprint(u: Table, x: Table) -> str:
    """What tells these rows from others without reading them all."""
    n = x.shape[0]
    digest = hashlib.sha256(repr((u.shape, x.shape)).encode())
    for table in (u, x):
        for a, b in ((0, min(EDGE_ROWS, n)), (max(n - EDGE_ROWS, 0), n)):
            digest.update(np.ascontiguousarray(table.read(a, b)).tobytes())
    return digest.hexdigest()


def _second(walk: Walk, frame: Frame) -> Second:
    """The sums that need the frame of all parts."""
    if tuple(walk.x.columns) != frame.columns or walk.constant != frame.constant:
        raise DataError(
            f"the frame is of {len(frame.columns)} readouts and the rows have {len(walk.x.columns)}; it belongs to "
            "another data set, or constant= differs."
        )
    walk = replace(walk, channels=frame.channels, shift=frame.shift, scale=frame.scale)
    edges = (0, walk.n_samples)
    (power,) = walk.passes.fold(LeveragePower(walk, frame.mean, frame.whitening), edges)
    (squares,) = walk.passes.fold(LeverageSquares(walk, frame.mean, frame.whitening), edges)
    return Second(frame.identity, float(power), squares)
