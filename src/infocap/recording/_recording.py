"""A measured or simulated data set: inputs, readouts, and all that must not be separated; made of sorted rows."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise, starmap
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import one_of
from ..basis._classical import find_families
from ..errors import DataError, printable
from ..typing import Floats, Integers

NOISE, REFERENCE, DARK = -1, -2, -3  # in place of a design index
DIMENSIONS = {
    "inputs": ("sample", "input"),
    "readouts": ("sample", "channel"),
    "design_index": ("sample",),
    "time": ("sample",),
    "repeats": ("sample", "channel"),
    "noise": ("noise_repeat", "channel"),
    "reference": ("reference_repeat", "channel"),
    "reference_time": ("reference_repeat",),
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
    design_index
        The number in the design of each row.
    readout_unit, input_unit, channel, input_names
        What the numbers are, and the names of the columns of readouts and inputs, such as ``Voltage A [V]``; those of
        the inputs are by default the names that the plan in the metadata gives them.
    metadata
        Any plain data: the plan of the acquisition, parameters, seed, operator; of a sequence without a plan also
        ``"runs"``, the index of the first row of every run.
    time
        When each row was measured: seconds (floats) or a rank (integers); None when in the order of the rows.
    repeats
        The readouts measured a second time (samples, channels), NaN in the rows that were not repeated.
    noise
        Readouts (any number, channels), all at one constant input: what factor analysis takes the noise from.
    reference, reference_time
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
    design_index: Integers
    readout_unit: str = ""
    channel: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    input_unit: str = ""
    time: Floats | None = None
    repeats: Floats | None = None
    noise: Floats | None = None
    reference: Floats | None = None
    reference_time: Floats | None = None
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
                said = ", ".join(
                    f"{sizes[axis]} {axis}s" if axis in sizes else axis for axis in wanted
                )
                raise DataError(f"{name} has shape {shape}; a recording needs ({said}).")
        if not self.input_names:
            object.__setattr__(
                self, "input_names", _planned_names(self.metadata.get("plan"), sizes["input"])
            )
        for name, axis, what in NAMES:
            given, n = len(getattr(self, name)), sizes.get(axis, 0)
            if given not in (0, n):
                raise DataError(f"{name} has {given} names for {n} {what}.")

    def _repr_html_(self) -> str:
        """Return what a notebook shows: HTML from the report, which is loaded by name."""
        return str(import_module("infocap.lab.report").notebook(self))

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
        index, plan, apart = (
            np.asarray(self.design_index),
            self.metadata.get("plan", {}),
            np.diff(self.design_index),
        )
        begins = apart != apart.min(initial=len(index))
        if "runs" in self.metadata:
            begins |= np.isin(index[1:], self.metadata["runs"])
        elif self.washout is not None:  # all of one length
            begins |= index[1:] % (self.washout + -(-plan["n_samples"] // plan["runs"])) == 0
        return list(
            starmap(slice, pairwise([0, *(np.flatnonzero(begins) + 1).tolist(), len(index)]))
        )

    def save(self, path: str | Path) -> Path:
        """Write to a file: ``.nc`` (NetCDF4) keeps everything, ``.csv`` is a table of the numbers (and their runs)."""
        from ._save import WRITERS

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
    return [
        f"u{k}: {' '.join(name.split())}" if name else f"u{k}" for k, name in enumerate(names, 1)
    ]
