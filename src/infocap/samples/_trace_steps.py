"""How the rows of a time-multiplexed trace are cut into steps of one input each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._validation import require_numbers, require_whole_number
from ..errors import ParameterError
from ..typing import ArrayLike, Floats, Integers


@dataclass(frozen=True, eq=False)
class TraceSteps:
    """How the rows of a trace are cut into steps of one input each.

    Parameters
    ----------
    rows_per_step
        Rows for which each input is held, n: the number of virtual nodes of each channel.
    offset
        Rows before the first step, such as a trigger delay.
    mask
        The factors by which the input is multiplied within each step, (n,), or (n, inputs) where
        every input has its own; None where there is no mask, or the recorded inputs are without it.

    Examples
    --------
    >>> infocap.find_steps(np.repeat([0.1, 0.7, -0.4, 0.2, 0.9, -0.8, 0.3, 0.5], 24))
    TraceSteps(rows_per_step=24, offset=0)
    """

    rows_per_step: int
    offset: int = 0
    mask: Floats | None = None

    def __post_init__(self) -> None:
        n_rows = require_whole_number("rows_per_step", self.rows_per_step, 1)
        object.__setattr__(self, "rows_per_step", n_rows)
        object.__setattr__(self, "offset", require_whole_number("offset", self.offset, 0))
        if self.mask is not None:
            object.__setattr__(self, "mask", _as_mask(self.mask, n_rows))

    def __repr__(self) -> str:
        mask = "" if self.mask is None else ", mask=..."
        return f"TraceSteps(rows_per_step={self.rows_per_step}, offset={self.offset}{mask})"

    @classmethod
    def wanted(
        cls, rows_per_step: int | None, offset: int = 0, mask: ArrayLike | None = None
    ) -> TraceSteps | None:
        """Return the steps that keyword arguments ask for; None where rows are steps already."""
        if rows_per_step is not None:
            return cls(rows_per_step, offset, mask)
        for name, is_given in (("offset", offset != 0), ("mask", mask is not None)):
            if is_given:
                raise ParameterError(f"`{name}` is for traces; give `rows_per_step`, too.")
        return None

    def as_dict(self) -> dict[str, int]:
        """Return the steps as plain data, for the metadata of a recording."""
        return {"rows_per_step": self.rows_per_step, "offset": self.offset}

    def first_rows(self, n_steps: int) -> Integers:
        """Return the row of the trace in which each step begins."""
        return self.offset + self.rows_per_step * np.arange(n_steps)


def _as_mask(mask: ArrayLike, rows_per_step: int) -> Floats:
    """Return a mask as (rows per step, 1 or inputs); refuse other lengths, and zeros throughout."""
    try:
        values = require_numbers("mask", mask, finite=False)
    except (TypeError, ValueError):
        raise ParameterError(f"`mask={mask!r:.60}` must be numbers.") from None
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or len(values) != rows_per_step:
        raise ParameterError(
            f"`mask` has shape {np.shape(mask)}; give one factor for each of the {rows_per_step} "
            "rows of a step."
        )
    if not np.isfinite(values).all() or not np.any(values != 0, axis=0).all():
        raise ParameterError(
            "`mask` must be finite, and other than zero somewhere in each column; give the factors "
            "that were sent."
        )
    return values
