"""What a recording tells besides capacities: growth, factors above the noise, and drift."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..errors import ParameterError

# Larger numbers are no measurements; squares of them would overflow in a plot or a sum.
LARGEST_NUMBER = 1e99


@dataclass(frozen=True)
class Growth:
    """The total that the method gives for the rows measured first, and last the total of all rows.

    Attributes
    ----------
    n_samples
        How many rows each total comes from, ascending.
    total, standard_error
        The totals and their standard errors, which are None where the method gives none.
    """

    n_samples: tuple[int, ...]
    total: tuple[float, ...]
    standard_error: tuple[float, ...] | None

    def __post_init__(self) -> None:
        columns = [self.n_samples, self.total]
        if self.standard_error is not None:
            columns.append(self.standard_error)
        is_valid = _are_equally_long_numbers(*columns) and min(self.n_samples) > 0
        _refuse_invalid(is_valid, self)


@dataclass(frozen=True)
class Factors:
    """Malinowski's indicator function of the readouts, or the reason why there is none.

    Attributes
    ----------
    n_repeats
        The number of measurements at one constant input, which tell the noise.
    n_factors
        Where the indicator function has its minimum; None where it has none.
    values
        The indicator function for 1, 2, ... factors.
    problem
        Why there is no indicator function, or None.
    """

    n_repeats: int
    n_factors: int | None = None
    values: tuple[float, ...] = ()
    problem: str | None = None

    def __post_init__(self) -> None:
        if self.problem is not None:
            return
        possible = range(1, len(self.values) + 1)
        is_valid = _are_equally_long_numbers(self.values) and min(self.values) >= 0
        _refuse_invalid(is_valid and (self.n_factors is None or self.n_factors in possible), self)


@dataclass(frozen=True)
class Drift:
    """How far the reference measurement moved, in units of the standard deviation of the readouts.

    Attributes
    ----------
    time, clock
        When each measurement was made, from the first on: seconds where `clock` is ``"s"``, or only
        the order of the measurements where it is ``"order"``.
    distance
        How far each measurement is from the first.
    size
        The root mean square motion that is more than noise.
    noise
        The standard deviation of the noise of single measurements.
    """

    time: tuple[float, ...]
    clock: str
    distance: tuple[float, ...]
    size: float
    noise: float

    def __post_init__(self) -> None:
        is_valid = _are_equally_long_numbers(self.time, self.distance)
        _refuse_invalid(is_valid and _are_equally_long_numbers((self.size, self.noise)), self)


def _are_equally_long_numbers(*columns: Any) -> bool:
    """Return whether all columns are equally long, not empty, and hold finite numbers alone."""
    for column in columns:
        for value in column:
            if not isinstance(value, Real) or not abs(float(value)) < LARGEST_NUMBER:
                return False
    lengths = {len(column) for column in columns}
    return len(lengths) == 1 and 0 not in lengths


def _refuse_invalid(is_valid: bool, analysis: object) -> None:
    """Refuse an analysis whose numbers cannot be what they claim to be."""
    if not is_valid:
        kind = type(analysis).__name__.lower()
        raise ParameterError(
            f"{kind} makes no sense: {str(analysis)[:120]}; give columns of equal length that hold "
            "finite numbers."
        )
