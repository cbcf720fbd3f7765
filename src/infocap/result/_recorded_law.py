"""What a result holds besides capacities where they are those under the law of recorded inputs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from ..typing import Booleans, Floats, Integers


@dataclass(frozen=True, eq=False)
class RecordedLaw:
    """What belongs to capacities under the law that the inputs really had.

    Attributes
    ----------
    n_functions
        How many functions were asked for.
    told_apart
        Which functions can be told apart from those before them, (terms,).
    pivots
        The part of each function that those before it do not explain under this law, (terms,).
    plain, plain_error
        R² of each function itself, which does not depend on their order, and its standard error,
        (terms,).
    delay_capacity, delay_error
        For a sequence, capacities by delay and degree, (delays, degrees), and the standard error of
        each delay, (delays,): what each delay adds to all functions of later inputs; NaN where no
        function of a delay can be told apart. Powers of the
        present inputs up to degree 10 are among those of delay 0.
    beyond_present, beyond_present_error
        The sum over all delays but 0, and its standard error; NaN where no function of these delays
        can be told apart, and None for rows that are no sequence.
    correlation_time
        How many rows the inputs stay correlated.
    correlations
        Correlations of the inputs with each other, and of a sequence with earlier inputs,
        (delays, inputs, inputs), by which the drives of two results are compared.
    """

    n_functions: int
    told_apart: Booleans
    pivots: Floats
    plain: Floats
    plain_error: Floats
    delay_capacity: Floats | None
    delay_error: Floats | None
    beyond_present: float | None
    beyond_present_error: float | None
    correlation_time: float
    correlations: Floats

    def of_functions(self, rows: Integers) -> RecordedLaw:
        """Return the same for some of the functions, given by their numbers."""
        return replace(
            self,
            told_apart=self.told_apart[rows],
            pivots=self.pivots[rows],
            plain=self.plain[rows],
            plain_error=self.plain_error[rows],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, for files."""
        values = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            values[entry.name] = value.tolist() if isinstance(value, np.ndarray) else value
        return values

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return what `to_dict` gave; None where pages write it for NaN is NaN again."""
        values = dict(data)
        for name, value in data.items():
            if isinstance(value, list):
                values[name] = np.array(value, dtype=bool if name == "told_apart" else float)
        if values["delay_capacity"] is not None and values["beyond_present"] is None:
            values["beyond_present"] = np.nan
            values["beyond_present_error"] = np.nan
        return cls(**values)
