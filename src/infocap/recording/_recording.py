"""A measured or simulated data set: inputs, readouts, and all that must not be separated from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..typing import Floats, Integers

SHAPES = {
    "inputs": ("samples", "inputs"),
    "readouts": ("samples", "channels"),
    "index": ("samples",),
    "acquired": ("samples",),
    "repeats": ("samples", "channels"),
    "noise": ("noise repeats", "channels"),
    "reference": ("references", "channels"),
    "reference_acquired": ("references",),
}


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """Inputs (samples, inputs) and readouts (samples, channels), in design order, with their story.

    Parameters
    ----------
    index
        Design index of each row.
    readout_unit, input_unit, channel
        What the numbers are, and the names of the columns of the readouts.
    metadata
        Any plain data: the plan of the acquisition, parameters, seed, operator.
    acquired
        When each row was measured: seconds (floats) or a rank (integers); None when in the order of the rows.
    repeats
        The readouts measured a second time (samples, channels), NaN in the rows that were not repeated.
    noise
        Readouts (any number, channels), all at one constant input: what factor analysis takes the noise from.
    reference, reference_acquired
        Readouts (any number, channels) at another constant input, and when: what shows drift.
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

    def __post_init__(self) -> None:
        lengths = [(*np.shape(one), 0)[0] for one in (self.inputs, self.readouts, self.index)]
        if len(set(lengths)) > 1:
            raise DataError(
                "a recording needs as many inputs as readouts and indices; got {}, {} and {}.".format(
                    *lengths
                )
            )
        shapes = {name: np.shape(getattr(self, name)) for name in SHAPES if getattr(self, name) is not None}
        sizes = {"samples": lengths[0]}
        for name, shape in shapes.items():
            wanted = SHAPES[name]
            if len(shape) != len(wanted) or any(
                sizes.setdefault(axis, size) != size for axis, size in zip(wanted, shape, strict=True)
            ):
                said = ", ".join(f"{sizes[axis]} {axis}" if axis in sizes else axis for axis in wanted)
                raise DataError(f"{name} has shape {shape}; a recording needs ({said}).")
        if self.channel and len(self.channel) != sizes["channels"]:
            raise DataError(
                f"channel has {len(self.channel)} names for {sizes['channels']} readouts; give one each."
            )

    def __repr__(self) -> str:
        unit = f" in {self.readout_unit}" if self.readout_unit else ""
        lines = [
            f"Recording: {len(self.inputs)} samples, {self.inputs.shape[1]} inputs, "
            f"{self.readouts.shape[1]} readouts{unit}"
        ]
        return "\n".join(lines + [f"  check: {check}" for check in self.checks])

    def save(self, path: str | Path) -> Path:
        """Write to a file: ``.nc`` (NetCDF4) keeps everything, ``.csv`` is a plain table of the numbers."""
        from ._own_file import write

        return write(self, Path(path))
