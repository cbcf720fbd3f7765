"""What a result's metadata hold that can be drawn. Files can hold anything, so everything is looked at first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LARGEST = 1e99  # number that is taken for a measured one


@dataclass(frozen=True)
class Growth:
    """The total after so many samples."""

    n_samples: list[float]
    total: list[float]
    standard_error: list[float] | None


@dataclass(frozen=True)
class Factors:
    """The indicator function for 1, 2, ... factors, and where its minimum is; or why there is none."""

    values: list[float]
    n_factors: int | None
    n_repeats: int | None
    problem: str | None = None


@dataclass(frozen=True)
class Drift:
    """How far the reference was from its first measurement, in units of the readouts' spread."""

    time: list[float]
    seconds: bool  # whether the times are seconds, and not just an order
    moved: list[float]
    size: float
    noise: float


@dataclass(frozen=True)
class Measured:
    """All that was measured besides the capacities; None for what was not."""

    growth: Growth | None
    factors: Factors | None
    drift: Drift | None
    provenance: dict[str, Any]
    problems: tuple[str, ...]


def measured(metadata: dict[str, Any]) -> Measured:
    """The metadata of a result, as far as they can be understood."""
    problems: list[str] = []

    def read(name: str, reader: Callable[[dict[str, Any]], Any]) -> Any:
        try:
            found = metadata.get(name)
            return reader(found) if found else None
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            problems.append(f"the result's {name!r} cannot be read and is not shown; the download holds it.")
            return None

    return Measured(
        growth=read("growth", _growth),
        factors=read("factors", _factors),
        drift=read("drift", _drift),
        provenance=read("provenance", dict) or {},
        problems=tuple(problems),
    )


def _growth(found: dict[str, Any]) -> Growth | None:
    n, total = _numbers(found["n_samples"]), _numbers(found["total"])
    given = found.get("standard_error")
    error = None if given is None else _numbers(given)
    if len(n) != len(total) or len(n) != len(error or n) or min(n) <= 0 or min(error or [0]) < 0:
        raise ValueError
    return Growth(n, total, error) if len(n) > 1 else None


def _factors(found: dict[str, Any]) -> Factors:
    repeats = found.get("n_repeats")
    n_repeats = None if repeats is None else int(repeats)
    if "problem" in found:
        return Factors([], None, n_repeats, str(found["problem"]))
    values, n_factors = _numbers(found["values"]), found["n_factors"]
    if min(values) <= 0 or not 1 <= int(n_factors or 1) <= len(values):
        raise ValueError
    return Factors(values, None if n_factors is None else int(n_factors), n_repeats)


def _drift(found: dict[str, Any]) -> Drift:
    time, moved = _numbers(found["time"]), _numbers(found["moved"])
    if len(time) != len(moved) or min(moved) < 0:
        raise ValueError
    size, noise = _numbers([found["size"], found["noise"]])
    return Drift(time, found.get("clock") == "s", moved, size, noise)


def _numbers(values: Any) -> list[float]:
    """A list of numbers that can be drawn, one at least."""
    numbers = [float(value) for value in values]
    if not numbers or isinstance(values, str) or not all(abs(number) < LARGEST for number in numbers):
        raise ValueError
    return [number if abs(number) > 1 / LARGEST else 0.0 for number in numbers]
