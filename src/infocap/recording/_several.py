"""Several files as one recording: their rows one after the other, or sorted by design index."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, ParameterError
from ..typing import Floats, Integers
from ._recording import Recording

WORDS = ("readout_unit", "input_unit", "channel")


class JoinedRows:
    """The rows of several sources as one, read from their files when asked for; `order` tells which comes where."""

    sent_by_name = True  # sources in files travel to other processes by name

    def __init__(self, sources: Sequence[Any], order: Integers | None = None) -> None:
        self.sources, self.order = list(sources), order
        self.starts = np.cumsum([0, *(one.shape[0] for one in self.sources)]).tolist()
        self.shape = (self.starts[-1], self.sources[0].shape[1])
        self.dtype = np.result_type(*(np.asarray(one[:0]).dtype for one in self.sources))

    def __getitem__(self, rows: slice) -> Floats:
        wanted = np.arange(*rows.indices(self.shape[0]))
        wanted = wanted if self.order is None else self.order[wanted]
        out = np.empty((len(wanted), self.shape[1]), self.dtype)
        for source, (start, stop) in zip(self.sources, pairwise(self.starts), strict=True):
            here = (start <= wanted) & (wanted < stop)
            if here.any():  # neighbours in their file too, for each file is in design order itself
                places = wanted[here] - start
                first = int(places.min())
                out[here] = np.asarray(source[first : int(places.max()) + 1])[places - first]
        return out


def join(paths: list[Path], parts: list[Recording]) -> Recording:
    """Make one recording of several that agree in inputs, channels and units."""
    if not paths:
        raise ParameterError("path=[] names no file; give at least one.")
    _refuse_different(paths, parts)
    index = np.concatenate([part.index for part in parts])
    order = np.argsort(index, kind="stable")
    checks = [check for part in parts for check in part.checks]
    plans = {part.metadata.get("fingerprint") for part in parts}
    if len(plans) > 1 or (np.diff(index[order]) == 0).any():  # of several designs, or only numbers of rows
        index = order = np.arange(len(index))
    plans.discard(None)
    if len(plans) > 1:
        checks.append(f"the files are of {len(plans)} plans; their rows are in the order of the files.")
    in_order = bool((np.diff(order) == 1).all())
    joined: dict[str, Any] = {name: max((getattr(part, name) for part in parts), key=bool) for name in WORDS}
    for name in ("inputs", "readouts"):
        sources = [getattr(part, name) for part in parts]
        if all(isinstance(one, np.ndarray) for one in sources):
            rows = np.concatenate(sources)
            joined[name] = rows if in_order else rows[order]
        else:
            joined[name] = JoinedRows(sources, None if in_order else order)
    if any(part.repeats is not None for part in parts):
        gaps = (np.full(part.readouts.shape, np.nan) for part in parts)
        filled = [
            gap if part.repeats is None else part.repeats for part, gap in zip(parts, gaps, strict=True)
        ]
        joined["repeats"] = np.concatenate(filled)[order]
    for name in ("noise", "reference"):
        held = [getattr(part, name) for part in parts if getattr(part, name) is not None]
        joined[name] = np.concatenate(held) if held else None
    acquired, joined["reference_acquired"] = _times(parts)
    unknown = in_order and all(part.acquired is None for part in parts)
    return Recording(
        **joined,
        index=index[order],
        acquired=None if unknown else acquired[order],
        metadata=parts[0].metadata | {"sources": [str(path) for path in paths]},
        checks=tuple(dict.fromkeys(checks)),
    )


def _refuse_different(paths: list[Path], parts: list[Recording]) -> None:
    """Refuse files that differ in what they tell of inputs, channels or units, and those that hold a row twice."""
    told: dict[str, list[Any]] = {
        "the number of inputs": [part.inputs.shape[1] for part in parts],
        "the number of readouts": [part.readouts.shape[1] for part in parts],
    }
    told |= {name: [getattr(part, name) for part in parts] for name in WORDS}
    for what, values in told.items():
        known = [pair for pair in zip(paths, values, strict=True) if pair[1]]
        for (path, value), (other, its) in pairwise(known):
            if value != its:
                raise DataError(
                    f"{what} is {value!r:.80} in {path} and {its!r:.80} in {other}; only files of one experiment make "
                    "one recording: estimate them apart."
                )
    for (path, part), (other, that) in combinations(zip(paths, parts, strict=True), 2):
        if path.resolve() == other.resolve():
            raise ParameterError(f"{other} is given twice; give every file once.")
        plan = part.metadata.get("fingerprint")
        common = np.intersect1d(part.index, that.index)
        if len(common) and plan is not None and plan == that.metadata.get("fingerprint"):
            raise DataError(
                f"{path} and {other} hold {len(common)} points of the same plan twice, the first of them index "
                f"{common[0]}; a point counts once: leave one of the files out."
            )


def _times(parts: list[Recording]) -> tuple[Floats, Floats | None]:
    """When every row and every reference was measured, in the order of the files.

    Times stay as they are. Numbers of an order go on from file to file, and where only some files tell times their
    ranks do.
    """
    told, counted = [], []
    for part in parts:
        rows = np.arange(len(part.index)) if part.acquired is None else part.acquired
        references = rows[:0] if part.reference_acquired is None else part.reference_acquired
        told.append(np.concatenate([rows, references]))
        counted.append(_is_order(part, told[-1]))
    acquired, reference_acquired, start = [], [], 0
    for part, values, is_order in zip(parts, told, counted, strict=True):
        if any(counted):
            values = start + (values if is_order else np.unique(values, return_inverse=True)[1])
            start = int(values.max(initial=start - 1)) + 1
        acquired.append(values[: len(part.index)])
        reference_acquired.append(values[len(part.index) :])
    have = [part for part in parts if part.reference is not None]
    known = have and all(part.reference_acquired is not None for part in have)
    return np.concatenate(acquired), np.concatenate(reference_acquired) if known else None


def _is_order(part: Recording, values: Floats) -> bool:
    """Whether numbers count measurements, rather than tell seconds: whole, and below the number of measurements."""
    others = [one for one in (part.repeats, part.noise, part.reference) if one is not None]
    most = len(part.index) + sum(map(len, others))
    whole = (values == np.round(values)) & (values >= 0) & (values < most)
    return values.dtype.kind in "iu" or bool(whole.all())
