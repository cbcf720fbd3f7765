"""read: a recording from a file, from one of inputs and one of readouts, or from several; the suffix decides how."""

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..._validation import one_of, yes_or_no
from ...designs import design_fingerprint
from ...errors import Check, DataError, ParameterError
from ...recording._recording import Recording
from ...samples._runs import Joined
from ...samples._table import Table
from ...typing import ArrayLike, Floats
from ..experiment._store_file import MAGIC, read_entries, to_recording
from ._arrange import Rows, arrange, following, table
from ._array_files import OPENERS
from ._others import TEXTS, folder_rows, is_folder, rows_in, rows_of, table_rows
from ._own_file import load_own

STORES = (".db", ".sqlite")
WORDS = ("readout_unit", "input_unit", "channel", "input_names")


def read(
    path: str | Path | Sequence[str | Path],
    readouts: str | Path | None = None,
    *,
    u: str | None = None,
    x: str | None = None,
    axes: str | None = None,
    in_memory: bool = True,
) -> Recording:
    """Read a recording from a file, or from two: the first with the inputs, the second with the readouts.

    Formats: ``.nc`` (what `Recording.save` wrote comes back in full), ``.h5``, ``.hdf5``, ``.mat``, ``.zarr``,
    ``.npz``, ``.npy``, ``.csv``, ``.txt``, ``.tsv``, ``.dat``, ``.lvm``, ``.asc``, and the store of an acquisition,
    ``.db``. Arrays keep their type; text becomes float64. No pickle is ever loaded.

    Parameters
    ----------
    path
        A file, or a list of files that together are one recording: their rows in the order given, or sorted by design
        index where no index comes twice. They must agree in inputs, channels and units.
    readouts
        A second file with the readouts, when the first holds only the inputs; or a folder with one file per sample,
        in the order of the numbers in their names, or as a column of names in the first file says.
    u, x
        Names of the inputs and of the readouts in a file of somebody else's: a variable (``"run1/spectra"``,
        ``"data.u"``), or several, or columns of a table, with commas between or by a pattern (``"u*"``). Without
        them ``u``, ``inputs``, columns ``u1``, ``u2``, ..., and ``x``, ``readouts``, ``outputs`` are looked for.
    axes
        What the axes of the readouts are, where they are not ``"samples,channels"``: ``"channels,samples"``, or
        ``"samples,averages,channels"``, of which the mean over the averages is taken.
    in_memory
        False leaves inputs and readouts in their file, for `estimate` to read in blocks: HDF5, NetCDF4, zarr and NumPy
        files; others, and complex or packed numbers, are read whole all the same.

    Notes
    -----
    A variable or column ``index`` is the number of the row in the design, by which rows are sorted; the second time
    it appears the row is a repeat, -1 marks measurements at a constant input, -2 drift references. ``acquired`` or
    ``time`` tells when the row was measured. ``metadata["read_from"]`` tells what became what, and what was left out.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/lab.npz", volts=np.zeros((4, 2)), spectra=np.ones((4, 3)))
    ...     read(f"{folder}/lab.npz", u="volts", x="spectra")
    Recording: 4 samples, 2 inputs, 3 readouts
    """
    in_memory = yes_or_no("in_memory", in_memory)
    if isinstance(path, str | os.PathLike):
        return _read_one(
            Path(path), None if readouts is None else Path(readouts), u, x, axes, in_memory
        )
    paths = [Path(one) for one in path]
    if readouts is not None:
        said = f"readouts={str(readouts)!r} goes with one file of inputs, not with a list"
        raise ParameterError(f"{said}; give files that hold both, `infocap import` makes them.")
    return _join(paths, [_read_one(one, None, u, x, axes, in_memory) for one in paths])


def _read_one(
    path: Path,
    readouts: Path | None,
    u: str | None,
    x: str | None,
    axes: str | None,
    in_memory: bool,
) -> Recording:
    suffix = path.suffix.lower()
    if readouts is None and (suffix in STORES or _is_store(path)):
        return to_recording(read_entries(path), path)
    one_of("path suffix", suffix, (*OPENERS, *TEXTS, *STORES))
    if readouts is not None:
        return _read_two(path, readouts, u, x, axes, in_memory)
    if suffix == ".npy":
        said = f"path={str(path)!r} holds a single array; give two files"
        raise ParameterError(f"{said}, inputs and readouts: read('inputs.npy', 'readouts.npy').")
    if suffix in TEXTS:
        return arrange(table_rows(path, {"u": u, "x": x}, axes))
    with OPENERS[suffix](path) as contents:
        own = load_own(contents, in_memory) if u is None and x is None else None
        return own or arrange(rows_of(contents, {"u": u, "x": x}, axes, in_memory))


def _is_store(path: Path) -> bool:
    with suppress(OSError, ValueError), path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
    return False


def _read_two(
    path: Path, other: Path, u: str | None, x: str | None, axes: str | None, in_memory: bool
) -> Recording:
    """Read inputs from one file and readouts from another, with what each tells beside them."""
    given = rows_in(path, {"u": u}, None, in_memory)
    measured = (
        folder_rows(other, given.words, x)
        if is_folder(other)
        else rows_in(other, {"x": x}, axes, in_memory)
    )
    inputs = table(path, "u", following(given.u, measured.x, measured.axes))
    readouts = table(other, "x", measured.x)
    n, checks = inputs.shape[0], [*given.told.get("checks", ()), *measured.told.get("checks", ())]
    cut = given.index is not None and readouts.shape[0] < n != readouts.shape[1]
    if not in_memory and (cut or measured.u is not None):
        return _read_two(
            path, other, u, x, axes, True
        )  # rows are left out, or the inputs of both files compared
    if cut:
        cure = "write the index along with the readouts, in case a row was lost in between"
        if measured.index is not None or measured.u is not None:
            cure = "measure the others for the whole design"
        said = f"the acquisition stopped early: {len(readouts)} of {n} measurements are there"
        checks.insert(0, Check(f"{said}, taken for the first in the order of acquisition; {cure}."))
        n = len(readouts)
        inputs = inputs[:n]
    index = None if given.index is None else given.index.ravel()[:n]
    acquired = measured.time if measured.time is not None else given.time
    metadata = given.told.get("metadata", {})
    _refuse_other_design(path, other, metadata, measured.told.get("metadata", {}))
    _refuse_shifted(path, other, "index", index, measured.index)
    _refuse_shifted(path, other, "u", inputs, measured.u)
    told = measured.told | {
        name: given.told[name] for name in ("input_names", "input_unit") if name in given.told
    }
    told["metadata"] = metadata | {
        "read_from": [*metadata["read_from"], *measured.told["metadata"]["read_from"]]
    }
    told["checks"] = tuple(checks)
    plan = metadata.get("plan")
    if isinstance(plan, dict):
        told |= {name: str(plan.get(name, "")) for name in ("input_unit", "readout_unit")}
        planned = plan.get("channel")
        if (
            not told.get("channel")
            and isinstance(planned, list)
            and len(planned) == readouts.shape[1]
        ):
            told["channel"] = tuple(map(str, planned))
    index = measured.index if index is None else index
    acquired = None if acquired is None else acquired.ravel()[:n]
    return arrange(Rows(other, inputs, readouts, index, acquired, told))


def _refuse_shifted(path: Path, other: Path, name: str, ours: ArrayLike, theirs: ArrayLike) -> None:
    """Refuse files that disagree in any row of what both tell: the readouts belong to other inputs."""
    if ours is None or theirs is None:
        return
    theirs = theirs.ravel() if ours.ndim == 1 else theirs
    if theirs.shape != ours.shape:
        raise DataError(f"{name} has shape {ours.shape} in {path} but {theirs.shape} in {other}.")
    close = np.isclose(ours, theirs, rtol=1e-6, atol=1e-9, equal_nan=True)
    differs = ~close.reshape(len(ours), -1).all(axis=1)
    if differs.any():
        row = int(np.argmax(differs))
        raise DataError(
            f"{name} is {ours[row]} in {path} and {theirs[row]} in {other} at row {row + 1}, the first of "
            f"{differs.sum()} that differ: the readouts are shifted or of another run."
        )


def _refuse_other_design(
    path: Path, other: Path, ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    """Refuse inputs and readouts that belong to different designs, where both files tell theirs."""
    plans = [one["plan"] for one in (ours, theirs) if isinstance(one.get("plan"), dict)]
    mine, its = map(design_fingerprint, plans) if len(plans) == 2 else ("", "")
    if mine != its:
        seeds = [f"(seed {plan.get('seed')})" for plan in plans]
        said = f"{path} is of design {mine} {seeds[0]}, and {other} of {its} {seeds[1]}"
        raise DataError(
            f"{said}: inputs and readouts belong to different runs; give the inputs that were sent."
        )


def _join(paths: list[Path], parts: list[Recording]) -> Recording:
    """Make one recording of several that agree in inputs, channels and units."""
    if not paths:
        raise ParameterError("path=[] names no file; give at least one.")
    _refuse_different(paths, parts)
    index = np.concatenate([part.design_index for part in parts])
    order = np.argsort(index, kind="stable")
    checks = [check for part in parts for check in part.checks]
    plans, runs = {part.metadata.get("fingerprint") for part in parts}, dict[str, Any]()
    if (
        len(plans) > 1 or (np.diff(index[order]) == 0).any()
    ):  # of several designs, or only numbers of rows
        index = order = np.arange(len(index))
        first = np.cumsum([0, *(len(part.design_index) for part in parts)])
        runs = {
            "runs": [
                int(start) + run.start
                for start, part in zip(first, parts, strict=False)
                for run in part.runs
            ]
        }
    plans.discard(None)
    if len(plans) > 1:
        said = f"the files are of {len(plans)} plans, and their rows are in the order of the files"
        checks.append(Check(f"{said}; estimate them apart unless they are one experiment."))
    in_order = bool((np.diff(order) == 1).all())
    joined: dict[str, Any] = {
        name: max((getattr(part, name) for part in parts), key=bool) for name in WORDS
    }
    for name in ("inputs", "readouts"):
        sources = [getattr(part, name) for part in parts]
        if all(isinstance(one, np.ndarray) for one in sources):
            rows = np.concatenate(sources)
            joined[name] = rows if in_order else rows[order]
        else:
            joined[name] = Joined(
                [Table(one, name) for one in sources], None if in_order else order
            )
    if any(part.repeats is not None for part in parts):
        again = [(part.repeats, np.full(part.readouts.shape, np.nan)) for part in parts]
        joined["repeats"] = np.concatenate([gap if one is None else one for one, gap in again])[
            order
        ]
    if any(part.extra is not None for part in parts):
        import pandas

        tables = [
            pandas.DataFrame(part.extra, range(len(part.design_index)), list(part.extra_names))
            for part in parts
        ]
        extra = pandas.concat(tables)  # a value that a file does not tell is NaN
        joined |= {"extra": extra.to_numpy(float)[order], "extra_names": tuple(extra.columns)}
    for name in ("noise", "reference"):
        held = [getattr(part, name) for part in parts if getattr(part, name) is not None]
        joined[name] = np.concatenate(held) if held else None
    acquired, joined["reference_acquired"] = _times(parts)
    unknown = in_order and all(part.time is None for part in parts)
    metadata = parts[0].metadata | {"sources": [str(path) for path in paths]} | runs
    if "read_from" in metadata:
        metadata["read_from"] = [
            one for part in parts for one in part.metadata.get("read_from", [])
        ]
    return Recording(
        **joined,
        design_index=index[order],
        time=None if unknown else acquired[order],
        metadata=metadata,
        checks=tuple(dict.fromkeys(checks)),
    )


def _refuse_different(paths: list[Path], parts: list[Recording]) -> None:
    """Refuse files that differ in what they tell of inputs, channels or units, and those that hold a row twice."""
    told: dict[str, list[Any]] = {
        "the number of inputs": [part.inputs.shape[1] for part in parts],
        "the number of readouts": [part.readouts.shape[1] for part in parts],
        "the washout": [part.washout for part in parts],
    }
    told |= {name: [getattr(part, name) for part in parts] for name in WORDS}
    for what, values in told.items():
        known = [pair for pair in zip(paths, values, strict=True) if pair[1]]
        for (path, value), (other, its) in pairwise(known):
            if value != its:
                said = f"{what} is {value!r:.80} in {path} and {its!r:.80} in {other}"
                raise DataError(f"{said}; one recording is of one experiment: estimate them apart.")
    for (path, part), (other, that) in combinations(zip(paths, parts, strict=True), 2):
        if path.resolve() == other.resolve():
            raise ParameterError(f"{other} is given twice; give every file once.")
        plan = part.metadata.get("fingerprint")
        common = np.intersect1d(part.design_index, that.design_index)
        if len(common) and plan is not None and plan == that.metadata.get("fingerprint"):
            said = f"{path} and {other} hold {len(common)} points of the same plan twice"
            raise DataError(
                f"{said}, the first of them index {common[0]}; leave one of the files out."
            )


def _times(parts: list[Recording]) -> tuple[Floats, Floats | None]:
    """When every row and reference was measured: times as they are, else ranks that go on from file to file."""
    told, counted = [], False
    for part in parts:
        rows = np.arange(len(part.design_index)) if part.time is None else part.time
        references = rows[:0] if part.reference_time is None else part.reference_time
        values = np.concatenate([rows, references])
        others = [one for one in (part.repeats, part.noise, part.reference) if one is not None]
        most = len(part.design_index) + sum(map(len, others))
        # What counts measurements, rather than tells seconds, is whole and below the number of measurements.
        whole = (values == np.round(values)) & (values >= 0) & (values < most)
        told.append(values)
        counted |= values.dtype.kind in "iu" or bool(whole.all())
    start = 0
    for k, values in enumerate(told if counted else []):
        ranks = np.unique(values, return_inverse=True)[1]
        told[k] = start + ranks
        start += int(ranks.max(initial=-1)) + 1
    apart = [
        np.split(values, [len(part.design_index)]) for part, values in zip(parts, told, strict=True)
    ]
    acquired, reference_acquired = (np.concatenate(each) for each in zip(*apart, strict=True))
    have = [part for part in parts if part.reference is not None]
    known = have and all(part.reference_time is not None for part in have)
    return acquired, reference_acquired if known else None
