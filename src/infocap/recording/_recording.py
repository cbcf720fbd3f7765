"""A measured or simulated data set: inputs, readouts, and all that must not be separated."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._formatting import html_for_notebook, one_line
from .._kinds import NUMBER_KINDS
from .._validation import check_fields, checks_arguments, require_numbers, require_one_of, shown
from ..basis import find_families
from ..designs import steps_per_run
from ..errors import Check, DataError, ParameterError, printable
from ..typing import Floats, Integers

# What stands in place of a design index where an input is not of the design: the constant input of
# noise repeats, the reference inputs, and the source switched off.
NOISE_CODE = -1
REFERENCE_CODE = -2
DARK_CODE = -3
# The dimensions of every array; arrays that share a dimension have as many rows or columns.
ARRAY_DIMENSIONS = {
    "inputs": ("sample", "input"),
    "readouts": ("sample", "channel"),
    "design_index": ("sample",),
    "time": ("sample",),
    "repeats": ("sample", "channel"),
    "noise": ("noise_repeat", "channel"),
    "reference": ("reference_repeat", "channel"),
    "reference_time": ("reference_repeat",),
    "reference_inputs": ("reference_repeat", "input"),
    "extra": ("sample", "extra_value"),
}


# Arrays that may be complex, as a field is that was measured with its phase.
COMPLEX_ARRAYS = ("readouts", "repeats", "noise", "reference")


class NamedColumns(NamedTuple):
    """Columns that have names: the field that holds these, the dimension, and what it counts."""

    field: str
    dimension: str
    things: str


NAMED_COLUMNS = (
    NamedColumns("channel", "channel", "readouts"),
    NamedColumns("input_names", "input", "inputs"),
    NamedColumns("extra_names", "extra_value", "extra values"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """Inputs and readouts in design order, and what belongs to them.

    Parameters
    ----------
    inputs, readouts
        What was sent, (samples, inputs), and what came back, (samples, channels).
    design_index
        The number in the design of each row.
    readout_unit, input_unit, channel, input_names
        What the numbers are, and the names of the columns of readouts and inputs, such as ``Voltage
        A [V]``. By default inputs have the names that the plan in the metadata gives them.
    metadata
        Any plain data: the plan of the acquisition, parameters, seed, operator; of a sequence
        without a plan also ``"runs"``, the index of the first row of every run.
    time
        When each row was measured: seconds (floats) or a rank (integers); None when in the order of
        the rows.
    repeats
        The readouts measured a second time (samples, channels), NaN in the rows that were not
        repeated.
    noise
        Readouts (any number, channels), all at one constant input: what factor analysis takes the
        noise from.
    reference, reference_time, reference_inputs
        Readouts (any number, channels) at a few inputs that were measured again and again, when,
        and which inputs (any number, inputs); without them all are at one input, and without times
        they are in the order of acquisition. They show whether the device was steady, and take no
        part in the estimation.
    extra, extra_names
        Other values of each row (samples, extra values), such as a temperature, and their names,
        such as ``Temperature [K]``.
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
    checks: tuple[Check, ...] = ()
    input_names: tuple[str, ...] = ()
    extra: Floats | None = None
    extra_names: tuple[str, ...] = ()
    reference_inputs: Floats | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.checks, list | tuple):
            raise ParameterError(f"`checks={shown(self.checks)}` must be a list of sentences.")
        checks = [Check(check) if type(check) is str else check for check in self.checks]
        object.__setattr__(self, "checks", tuple(checks))
        for name in ARRAY_DIMENSIONS:
            _refuse_other_numbers(name, getattr(self, name))
        check_fields(self)
        sizes = self._sizes_of_dimensions()
        if not self.input_names:
            names = _planned_names(self.plan, sizes["input"])
            object.__setattr__(self, "input_names", names)
        for columns in NAMED_COLUMNS:
            n_names = len(getattr(self, columns.field))
            size = sizes.get(columns.dimension, 0)
            if n_names not in (0, size):
                raise DataError(
                    f"{columns.field} has {n_names} names for {size} {columns.things}; give one "
                    "name for each, or none."
                )

    def _sizes_of_dimensions(self) -> dict[str, int]:
        """Return the length of every dimension; arrays that disagree are refused."""
        sizes: dict[str, int] = {}
        for name, dimensions in ARRAY_DIMENSIONS.items():
            values = getattr(self, name)
            if values is None:
                continue
            shape = np.shape(values)
            agrees = len(shape) == len(dimensions)
            if agrees:
                for dimension, size in zip(dimensions, shape, strict=True):
                    agrees = agrees and sizes.setdefault(dimension, size) == size
            if not agrees:
                needed = []
                for dimension in dimensions:
                    is_known = dimension in sizes
                    needed.append(f"{sizes[dimension]} {dimension}s" if is_known else dimension)
                raise DataError(
                    f"{name} has shape {shape}; a recording needs ({', '.join(needed)})."
                )
        return sizes

    def __repr__(self) -> str:
        unit = f" in {self.readout_unit}" if self.readout_unit else ""
        n_samples, n_inputs = self.inputs.shape
        n_readouts = self.readouts.shape[1]
        lines = [f"Recording: {n_samples} samples, {n_inputs} inputs, {n_readouts} readouts{unit}"]
        lines += [f"  check: {check}" for check in self.checks]
        return printable("\n".join(lines))

    def _repr_html_(self) -> str | None:
        return html_for_notebook(self)

    @property
    def plan(self) -> dict[str, Any]:
        """The plan of the acquisition as plain data; empty where there is none."""
        plan = self.metadata.get("plan")
        return plan if isinstance(plan, dict) else {}

    @property
    def washout(self) -> int | None:
        """The washout of a sequence that was planned; None for other recordings."""
        return self.plan["washout"] if self.plan.get("runs") else None

    @property
    def runs(self) -> list[slice]:
        """The rows of every run of a sequence.

        A run begins where the plan or the file says so, and after a gap.
        """
        index = np.asarray(self.design_index)
        steps = np.diff(index)
        # Inside a run the index rises by the same number from row to row, which is 1 unless rows
        # were left out regularly; a gap is larger.
        usual_step = steps.min(initial=len(index))
        begins = steps != usual_step
        if "runs" in self.metadata:
            begins |= np.isin(index[1:], self.metadata["runs"])
        elif self.washout is not None:
            n_steps = steps_per_run(self.plan["n_samples"], self.plan["runs"], self.washout)
            begins |= index[1:] % n_steps == 0
        edges = [0, *(np.flatnonzero(begins) + 1).tolist(), len(index)]
        return [slice(start, stop) for start, stop in pairwise(edges)]

    @checks_arguments
    def save(self, path: str | Path) -> Path:
        """Write to a file, and return its path.

        Parameters
        ----------
        path
            A file that ends in ``.nc`` (NetCDF4), which keeps everything, or in ``.csv``, which is
            a table of the numbers and their runs.
        """
        from ._save import WRITERS

        path = Path(path)
        suffix = path.suffix.lower()
        require_one_of("path suffix", suffix, WRITERS)
        WRITERS[suffix](self, path)
        return path


def _refuse_other_numbers(name: str, values: Any) -> None:
    """Refuse text, dates and the like, and complex numbers where they have no meaning."""
    if values is None:
        return
    dtype = getattr(values, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if kind is None and hasattr(values, "shape"):
        return  # rows that stay in a file, which was looked at when it was opened
    if kind is None:
        kind = require_numbers(name, values, finite=False).dtype.kind
    if kind not in NUMBER_KINDS:
        raise DataError(
            f"{name} holds {dtype or type(values).__name__}; give plain numbers, times in seconds."
        )
    if kind == "c" and name not in COMPLEX_ARRAYS:
        raise DataError(f"{name} is complex; give real numbers, such as np.abs({name}).")


def _planned_names(plan: dict[str, Any], n_inputs: int) -> tuple[str, ...]:
    """Return the names that a plan gives its inputs; none where it names none or cannot be used."""
    with suppress(KeyError, TypeError, ValueError):
        families = find_families(plan["family"], n_inputs)
        if any(family.variable for family in families):
            names = [family.variable or f"u{number}" for number, family in enumerate(families, 1)]
            return tuple(names)
    return ()


def input_columns(names: Sequence[str]) -> list[str]:
    """Return the headings of inputs in a table: ``u1``, or ``u1: Voltage A [V]`` with a name."""
    headings = []
    for number, name in enumerate(names, 1):
        headings.append(f"u{number}: {one_line(name)}" if name else f"u{number}")
    return headings
