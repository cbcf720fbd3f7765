"""What a recording tells beside its capacities: growth with the number of samples, factors, drift."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..errors import ParameterError

LARGEST = 1e99  # Larger numbers are no measurements; squares of them would overflow in a plot or a sum.


@dataclass(frozen=True)
class Growth:
    """The total capacity as it was when a part of the run had been measured, and at its end."""

    n_samples: tuple[int, ...]
    total: tuple[float, ...]
    standard_error: tuple[float, ...] | None  # None where the method gives no error bars

    def __post_init__(self) -> None:
        errors = self.total if self.standard_error is None else self.standard_error
        _refuse_unless(_columns(self.n_samples, self.total, errors) and min(self.n_samples) > 0, self)


@dataclass(frozen=True)
class Factors:
    """Malinowski's indicator function of the readouts, or the reason why there is none."""

    n_repeats: int  # measurements at one constant input, which tell the noise
    n_factors: int | None = None  # None where the indicator has no minimum
    values: tuple[float, ...] = ()
    problem: str | None = None

    def __post_init__(self) -> None:
        known = _columns(self.values) and min(self.values) >= 0
        inside = self.n_factors is None or self.n_factors in range(1, len(self.values) + 1)
        _refuse_unless(self.problem is not None or (known and inside), self)


@dataclass(frozen=True)
class Drift:
    """How far the reference measurement moved, in units of the standard deviation of the readouts."""

    time: tuple[float, ...]
    clock: str  # "s" where times were recorded, "order" where only the order of measurements is known
    moved: tuple[float, ...]
    size: float  # root mean square of what is more than noise
    noise: float  # root mean square difference between neighbouring measurements, divided by the root of 2

    def __post_init__(self) -> None:
        _refuse_unless(_columns(self.time, self.moved) and _columns((self.size, self.noise)), self)


def _columns(*columns: Any) -> bool:
    """Whether all are equally long, hold something, and hold nothing but finite numbers."""
    numbers = all(isinstance(one, Real) and abs(float(one)) < LARGEST for column in columns for one in column)
    return numbers and len({len(column) for column in columns}) == 1 and len(columns[0]) > 0


def _refuse_unless(sound: bool, found: object) -> None:
    if not sound:
        said = f"{type(found).__name__.lower()} makes no sense: {str(found)[:120]}"
        raise ParameterError(f"{said}; give columns of as many finite numbers.")
