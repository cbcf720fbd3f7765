"""What a recording tells beside its capacities: growth with the number of samples, factors, drift."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Growth:
    """The total capacity as it was when a part of the run had been measured, and at its end."""

    n_samples: tuple[int, ...]
    total: tuple[float, ...]
    standard_error: tuple[float, ...] | None  # None where the method gives no error bars


@dataclass(frozen=True)
class Factors:
    """Malinowski's indicator function of the readouts, or the reason why there is none."""

    n_repeats: int  # measurements at one constant input, which tell the noise
    n_factors: int | None = None  # None where the indicator has no minimum
    values: tuple[float, ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class Drift:
    """How far the reference measurement moved, in units of the standard deviation of the readouts."""

    time: tuple[float, ...]
    clock: str  # "s" where times were recorded, "order" where only the order of measurements is known
    moved: tuple[float, ...]
    size: float  # root mean square of what is more than noise
    noise: float  # root mean square difference between neighbouring measurements, divided by the root of 2
