"""A measured or simulated data set: inputs, readouts, and all that must not be separated; made of sorted rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._check import one_of
from ..basis._classical import find_families
from ..errors import DataError, ParameterError, printable
from ..typing import ArrayLike, Floats, Integers

NOISE, REFERENCE, DARK = -1, -2, -3  # in place of a design index
CONSTANT = {NOISE: "noise", REFERENCE: "reference", DARK: "dark"}
DIMENSIONS = {
    "inputs": ("sample", "input"),
    "readouts": ("sample", "channel"),
    "index": ("sample",),
    "acquired": ("sample",),
    "repeats": ("sample", "channel"),
    "noise": ("noise_repeat", "channel"),
    "reference": ("reference_repeat", "channel"),
    "reference_acquired": ("reference_repeat",),
    "extra": ("sample", "extra_value"),
}

# Fields that name the columns along a dimension, that dimension, and what it counts.
NAMES = (
    ("channel", "channel", "readouts"),
    ("input_names", "input", "inputs"),
    ("extra_names", "extra_value", "extra values"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """Inputs (samples, inputs) and readouts (samples, channels), in design order, with their story.

    Parameters
    ----------
    index
        Design index of each row.
    readout_unit, input_unit, channel, input_names
        What the numbers are, and the names of the columns of readouts and inputs, such as ``Voltage A [V]``; those of
        the inputs are by default the names that the plan in the metadata gives them.
    metadata
        Any plain data: the plan of the acquisition, parameters, seed, operator; of a sequence without a plan also
        ``"runs"``, the index of the first row of every run.
    acquired
        When each row was measured: seconds (floats) or a rank (integers); None when in the order of the rows.
    repeats
        The readouts measured a second time (samples, channels), NaN in the rows that were not repeated.
    noise
        Readouts (any number, channels), all at one constant input: what factor analysis takes the noise from.
    reference, reference_acquired
        Readouts (any number, channels) at another constant input, and when: what shows drift.
    extra, extra_names
        Other values of each row (samples, extra values), such as a temperature, and their names: ``Temperature [K]``.
    checks
        What the file was found to lack, in plain words; passed on to the result.

    Examples
    --------
    >>> import numpy as np
    >>> Recording(np.zeros((3, 1)), np.ones((3, 2)), np.arange(3), readout_unit="V")
    Recording: 3 samples, 1 inputs, 2 readouts in V
    """

    inputs: Floats
    readouts: Floats
    index: Integers
    readout_unit: str = ""
    channel: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    input_unit: str = ""
    acquired: Floats | None = None
    repeats: Floats | None = None
    noise: Floats | None = None
    reference: Floats | None = None
    reference_acquired: Floats | None = None
    checks: tuple[str, ...] = ()
    input_names: tuple[str, ...] = ()
    extra: Floats | None = None
    extra_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes: dict[str, int] = {}
        for name, wanted in DIMENSIONS.items():
            values = getattr(self, name)
            shape = np.shape(values)
            if values is not None and (
                len(shape) != len(wanted)
                or any(sizes.setdefault(*one) != one[1] for one in zip(wanted, shape, strict=True))
            ):
                said = ", ".join(f"{sizes[axis]} {axis}s" if axis in sizes else axis for axis in wanted)
                raise DataError(f"{name} has shape {shape}; a recording needs ({said}).")
        if not self.input_names:
            object.__setattr__(self, "input_names", _planned_names(self.metadata.get("plan"), sizes["input"]))
        for name, axis, what in NAMES:
            given, n = len(getattr(self, name)), sizes.get(axis, 0)
            if given not in (0, n):
                raise DataError(f"{name} has {given} names for {n} {what}.")

    def __repr__(self) -> str:
        unit = f" in {self.readout_unit}" if self.readout_unit else ""
        (n, n_inputs), n_readouts = self.inputs.shape, self.readouts.shape[1]
        first = f"Recording: {n} samples, {n_inputs} inputs, {n_readouts} readouts{unit}"
        return printable("\n".join([first, *(f"  check: {check}" for check in self.checks)]))

    @property
    def washout(self) -> int | None:
        """The washout of a sequence that was planned; None for other recordings."""
        plan = self.metadata.get("plan")
        return plan["washout"] if isinstance(plan, dict) and plan.get("runs") else None

    @property
    def runs(self) -> list[slice]:
        """The rows of every run of a sequence: one begins where its plan or file does, and after a gap in the index."""
        index, plan, apart = np.asarray(self.index), self.metadata.get("plan", {}), np.diff(self.index)
        begins = apart != apart.min(initial=len(index))
        if "runs" in self.metadata:
            begins |= np.isin(index[1:], self.metadata["runs"])
        elif self.washout is not None:  # all of one length
            begins |= index[1:] % (self.washout + -(-plan["n_samples"] // plan["runs"])) == 0
        return list(starmap(slice, pairwise([0, *(np.flatnonzero(begins) + 1).tolist(), len(index)])))

    def save(self, path: str | Path) -> Path:
        """Write to a file: ``.nc`` (NetCDF4) keeps everything, ``.csv`` is a table of the numbers (and their runs)."""
        from ._own_file import WRITERS

        path = Path(path)
        one_of("path suffix", path.suffix.lower(), WRITERS)
        WRITERS[path.suffix.lower()](self, path)
        return path


def _planned_names(plan: Any, n_inputs: int) -> tuple[str, ...]:
    """The names that a plan gives its inputs; none where it names no input, or cannot be used."""
    with suppress(KeyError, TypeError, ValueError):
        names = [family.variable for family in find_families(plan["family"], n_inputs)]
        return tuple(name or f"u{k + 1}" for k, name in enumerate(names)) if any(names) else ()
    return ()


def input_columns(names: Sequence[str]) -> list[str]:
    """The headings of inputs in a table: ``u1``, ``u2``, and after a colon what each is called, if anything."""
    return [f"u{k}: {' '.join(name.split())}" if name else f"u{k}" for k, name in enumerate(names, 1)]


@dataclass
class Rows:
    """What a file of others holds, one row per measurement; what it does not hold is None."""

    path: Path
    u: ArrayLike | None = None
    x: ArrayLike | None = None
    index: Integers | None = None
    acquired: Floats | None = None
    told: dict[str, Any] = field(default_factory=dict)  # channel, metadata, checks and units of a recording
    words: list[list[str]] = field(default_factory=list)  # columns of text that are nothing else
    axes: str | None = None  # what the axes of x are, if the user said

    def keep_choice(self, kind: str, chosen: dict[str, list[str]], left_out: dict[str, str]) -> None:
        """Write down in the metadata how the file was read: which names became what, which did not and why."""
        kind = kind if self.axes is None else f"{kind}, readouts as {self.axes}"
        choice = {"file": self.path.name, "as": kind} | chosen | ({"left out": left_out} if left_out else {})
        self.told["metadata"] = self.told.get("metadata", {}) | {"read_from": [choice]}


def arrange(rows: Rows) -> Recording:
    """Sort rows into a recording in design order; without an index, in the order of the rows."""
    path = rows.path
    u, x = table(path, "u", following(rows.u, rows.x, rows.axes)), table(path, "x", rows.x)
    n = u.shape[0]
    if n != x.shape[0]:
        said = f"u has shape {u.shape} and x has shape {x.shape} in {path}: unequal numbers of samples"
        for flip, agree in (("x", x.shape[1] == n), ("u", u.shape[1] == len(x)), ("both", u.shape[1] == x.shape[1])):
            if agree:
                axes = "samples,channels" if flip == "u" else "channels,samples"
                said = f"{said}; the lengths agree with {flip} transposed"
                raise DataError(f"{said}: tell what the axes of x are, `axes={axes!r}`.")
        raise DataError(f"{said}; give one row for each sample.")
    for name, values in (("acquired", rows.acquired), ("index", rows.index)):
        if values is not None and (values.size != n or n not in values.shape):
            raise DataError(f"{name} in {path} has shape {values.shape}; give one for each of {n} rows.")
    acquired = None if rows.acquired is None else rows.acquired.ravel()
    if acquired is not None and np.isnan(acquired).all():
        acquired = None  # a column left empty
    if rows.index is None:
        return Recording(u, x, np.arange(n), acquired=acquired, **rows.told)
    index = whole_numbers(path, rows.index.ravel())
    when = np.arange(n, dtype=float) if acquired is None else acquired
    if not (isinstance(u, np.ndarray) and isinstance(x, np.ndarray)):
        if (np.diff(index) <= 0).any():
            row = int(np.argmax(np.diff(index) <= 0)) + 1
            said = f"index in {path} is {index[row]} at row {row}, after {index[row - 1]}"
            raise DataError(f"{said}; what is read in blocks must be sorted: read it whole, or write it so.")
        return Recording(u, x, index, acquired=when, **rows.told)
    found = by_index(path, u, x, index, when, **rows.told)
    if not len(found.index):
        raise DataError(f"{path} has no row of the design, only noise repeats and references.")
    return found


def by_index(
    path: Path, u: Floats, x: Floats, index: Integers, when: Floats, extra: Floats | None = None, **told: Any
) -> Recording:
    """Sort measurements into a recording in design order: samples, their repeats, noise and references.

    From each one the latest with the source off is subtracted, or the first where none came before.
    """
    if index.min(initial=0) < DARK:
        row = int(np.argmax(index < DARK))
        said = f"index in {path} is {index[row]} in row {row + 1}; give the number of a point of the design"
        raise DataError(f"{said}, {NOISE} for noise repeats, {REFERENCE} for references or {DARK} for the source off.")
    if (dark := index == DARK).any():
        order = np.argsort(when[dark], kind="stable")
        latest = np.searchsorted(when[dark][order], when, side="right") - 1
        # Counts of a converter without a sign must not wrap around below the dark level.
        x = np.subtract(x, x[dark][order[np.maximum(latest, 0)]], dtype=np.result_type(x, np.float32))
    order = np.argsort(index, kind="stable")
    order = order[index[order] >= 0]
    points, start, count = np.unique(index[order], return_index=True, return_counts=True)
    if count.max(initial=0) > 2:
        many = int(np.argmax(count > 2))
        said = f"index in {path} has {points[many]} {count[many]} times"
        raise DataError(f"{said}; a point of the design is measured once or twice: keep two of its rows.")
    first, twice, repeats = order[start], count == 2, None
    if twice.any():
        second = order[start[twice] + 1]
        moved = (u[first[twice]] != u[second]) & ~np.isnan(u[second])
        if moved.any():
            row = int(second[np.argmax(moved.any(axis=1))])
            said = f"u in {path} differs between the two rows of index {index[row]}"
            raise DataError(f"{said}, the second of them row {row + 1}; a repeat is measured at the same input.")
        repeats = np.full((len(points), x.shape[1]), np.nan, dtype=np.result_type(x.dtype, np.float32))
        repeats[twice] = x[second]
    noise, reference = index == NOISE, index == REFERENCE
    timed = reference.any() and not np.isnan(when[reference]).any()
    return Recording(
        u[first],
        x[first],
        index[first],
        acquired=when[first],
        repeats=repeats,
        noise=x[noise] if noise.any() else None,
        reference=x[reference] if reference.any() else None,
        reference_acquired=when[reference] if timed else None,
        extra=None if extra is None else extra[first],
        **told,
    )


class Measurement(NamedTuple):
    """One thing to measure; `kind` and `number` name it for ever.

    >>> from infocap.experiment import Plan
    >>> first = next(iter(Plan(n_inputs=1, max_degree=2, n_samples=4, seed=1, order="design").schedule))
    >>> first.kind, first.number, first.u.shape
    ('sample', 0, (1,))
    """

    kind: str  # "sample", "repeat", "noise", "reference" or "dark"
    number: int  # the design index of a sample and of its repeat, else a running number
    u: Floats


@dataclass(frozen=True, eq=False)
class Schedule:
    """Measurements in the order of acquisition.

    `codes` are design indices, the second time for a repeat, -1 for noise, -2 for the reference and -3 for a
    measurement with the source off; `inputs` what to send (measurements, inputs).

    >>> from infocap.experiment import Plan
    >>> schedule = Plan(n_inputs=1, max_degree=2, n_samples=8, seed=1, noise_repeats=2, repeat_every=4).schedule
    >>> len(schedule), [kind for kind, _ in schedule.names][:2]
    (12, ['noise', 'noise'])
    """

    codes: Integers
    inputs: Floats

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def names(self) -> list[tuple[str, int]]:
        """Kind and number of every measurement: a design index that comes a second time is a repeat."""
        seen: Counter[int] = Counter()
        out = []
        for code in self.codes.tolist():
            kind = CONSTANT.get(code, "repeat" if seen[code] else "sample")
            out.append((kind, seen[code] if code < 0 else code))
            seen[code] += 1
        return out

    def __iter__(self) -> Iterator[Measurement]:
        for name, u in zip(self.names, self.inputs, strict=True):
            yield Measurement(*name, u)


def joined(parts: Sequence[Schedule]) -> Schedule:
    """Schedules one after the other as one."""
    return Schedule(np.concatenate([one.codes for one in parts]), np.concatenate([one.inputs for one in parts]))


def whole_numbers(path: Path, index: np.ndarray) -> np.ndarray:
    """Convert a design index to integers."""
    if index.dtype.kind in "iu":
        return index
    if index.dtype.kind != "f" or not (np.abs(index) <= 2**53).all() or (index != np.round(index)).any():
        raise DataError(f"index in {path} holds {index.dtype} values that are no whole numbers below 2^53.")
    return index.astype(np.int64)


def table(path: Path, name: str, values: ArrayLike) -> ArrayLike:
    """Require two dimensions, (samples, columns); inputs in one dimension are a single input."""
    if name == "u" and len(values.shape) == 1:
        values = values[:].reshape(-1, 1)
    if 0 in values.shape:
        raise DataError(f"{name} in {path} is empty: its shape is {values.shape}.")
    if len(values.shape) != 2:
        said = f"{name} in {path} has shape {values.shape}; give two dimensions, (samples, channels)"
        raise DataError(f"{said}, or say what the axes of x are, such as `axes='samples,averages,channels'`.")
    return values


def following(u: ArrayLike, x: ArrayLike, axes: str | None) -> ArrayLike:
    """The inputs, transposed where the axes of the readouts are told and only so the lengths agree."""
    turned = axes is not None and len(u.shape) == 2 and u.shape[0] != x.shape[0] == u.shape[1]
    return np.ascontiguousarray(u[:].T) if turned else u


def along(path: Path, x: ArrayLike, axes: str) -> np.ndarray:
    """Bring readouts into the order (samples, channels): means over averages, several axes of channels as one."""
    words = [word.strip() for word in axes.split(",")]
    if words.count("samples") != 1 or {*words} - {"samples", "averages", "channels"}:
        raise ParameterError(f"`axes={axes!r}` needs samples once, and otherwise channels and averages.")
    if len(words) != len(x.shape):
        raise DataError(f"x in {path} has shape {x.shape}, and `axes={axes!r}` names {len(words)} axes; name each.")
    values = np.asarray(x[:])
    if over := tuple(k for k, word in enumerate(words) if word == "averages"):
        values = values.mean(axis=over, dtype=np.result_type(values, np.float64), keepdims=True)
    values = np.moveaxis(values, words.index("samples"), 0)
    return np.ascontiguousarray(values.reshape(len(values), -1))
