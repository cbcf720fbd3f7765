"""How many samples to take, in words: the part of `infocap plan` that is asked for an error."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

from .._check import positive
from .._words import duration
from .._words import size as size_of
from ..basis import ProductBasis
from ..errors import DataWarning, ParameterError
from ..recording import read
from ..result import CapacityResult, is_result, load_result
from ..theory import ExpectedError, Forecast, forecast, forecast_from
from ..workflow import analyse, cost
from ._choose_basis import Wanted, choose_basis
from ._terminal import as_options, wrapped

OUTSIDE = "If the rest is functions of higher degree and not noise, errors may be three times the high end."
METHODS = {"control-variate": "control-variate", "threshold-richardson": "Algorithm 1"}


@dataclass(frozen=True)
class Wish:
    """What the user knows of the device, and wants."""

    error: float
    readouts: int | None = None
    capacity: float | None = None
    unexplained: float | None = None
    method: str = "control-variate"
    seconds_per_sample: float | None = None

    def __post_init__(self) -> None:
        if self.seconds_per_sample is not None:
            positive("--seconds-per-sample", self.seconds_per_sample)


def recommend(basis: ProductBasis, wish: Wish, pilot: CapacityResult | None = None) -> tuple[int, list[str]]:
    """The number of samples, and why."""
    expected, assumed = _from_pilot(pilot, wish) if pilot is not None else _from_guess(basis, wish)
    n = expected.samples_needed(wish.error, wish.method)
    q = basis.n_inputs
    lines = [
        f"{len(basis)} functions: {q} input{'s' * (q != 1)}, degree {basis.max_degree}. The total is at most "
        f"{expected.n_readouts}, the constant included.",
        *assumed,
        "",
        *_table(expected, basis, n, wish),
        "",
        *_why(expected, n, wish),
    ]
    first = 1 << (expected.pilot_samples - 1).bit_length()
    if pilot is None and first < n:
        lines += [
            f"It depends on the device. A pilot run is better than a guess: measure {first} samples, and ask again:",
            f"  infocap plan --from pilot.nc --error {wish.error:g}",
        ]
    return n, lines


def read_pilot(path: Path, wanted: Wanted) -> CapacityResult:
    """A result, or that of a recording; its warnings stay with it, to be said in `recommend`."""
    if is_result(path):
        if wanted != Wanted():
            raise ParameterError(
                f"{path} is a result, which has its basis already; leave out --degree, --family and --domain."
            )
        return load_result(path)
    recording = read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return analyse(recording, choose_basis(recording, wanted)[0], growth=False)


def _from_pilot(pilot: CapacityResult, wish: Wish) -> tuple[Forecast, list[str]]:
    expected, n = forecast_from(pilot), pilot.n_samples
    lines = [
        f"The pilot: total {pilot.total:.2f} ± {pilot.total_standard_error:.2f} of {pilot.rank} with {n} "
        "samples; errors below are extrapolated from that."
    ]
    if n >= expected.least_samples and expected.at(n, wish.method).high <= wish.error:
        lines.append(f"That is precise enough already: an error of {wish.error:g} needs no further samples.")
    return expected, lines + [wrapped(f"warning of the pilot: {as_options(one)}") for one in pilot.warnings]


def _from_guess(basis: ProductBasis, wish: Wish) -> tuple[Forecast, list[str]]:
    if wish.readouts is None:
        raise ParameterError("--error needs --readouts, the number of readouts, or --from, a pilot run.")
    most = wish.readouts + 1
    if wish.capacity is not None:
        if wish.unexplained is not None:
            raise ParameterError("--capacity and --unexplained say the same; give one of them.")
        if not 0 <= wish.capacity <= most:
            raise ParameterError(
                f"--capacity {wish.capacity:g} is not between 0 and {most}, the most there can be."
            )
        expected = forecast(basis, wish.readouts, unexplained=1 - wish.capacity / most)
        return expected, [f"Assumed: a total capacity of {wish.capacity:g} (--capacity).", OUTSIDE]
    if wish.unexplained is not None:
        return forecast(basis, wish.readouts, unexplained=wish.unexplained), [
            f"Assumed: {100 * wish.unexplained:g} % of the readouts are noise or functions outside the basis "
            "(--unexplained).",
            OUTSIDE,
        ]
    return forecast(basis, wish.readouts), [
        "Assumed: half of the readouts are noise or functions outside the basis; with more, errors grow "
        "at most in proportion.",
        f"Say what you expect with --capacity, such as --capacity {0.8 * most:.0f}, or with --unexplained.",
    ]


def _table(expected: Forecast, basis: ProductBasis, chosen: int, wish: Wish) -> list[str]:
    """Errors and costs at a few sizes around the one chosen."""
    sizes = [size for size in (chosen // 4, chosen // 2, chosen, 2 * chosen, 4 * chosen) if size]
    measuring = f"  {'measuring':>9}" if wish.seconds_per_sample is not None else ""
    head = [f"  {'':>9}  error of the total, root mean square (range over devices)"]
    head.append(
        f"  {'samples':>9}  {'control-variate':<25}  {'Algorithm 1':<25}{measuring}  computing  memory"
    )
    return head + [_row(expected, basis, size, chosen, wish) for size in sizes]


def _row(expected: Forecast, basis: ProductBasis, size: int, chosen: int, wish: Wish) -> str:
    control = "too few samples"
    if size >= expected.pilot_samples:
        control = _range(expected.at(size))
    paper = _range(expected.at(size, "threshold-richardson"))
    needed = cost(basis, size, expected.n_readouts, wish.method)
    measuring = ""
    if wish.seconds_per_sample is not None:
        measuring = f"  {duration(size * wish.seconds_per_sample):>9}"
    mark = ">" if size == chosen else " "
    computing = f"< {duration(max(needed.seconds, 1))}"
    return f"{mark} {size:9d}  {control:<25}  {paper:<25}{measuring}  {computing:>9}  {size_of(needed.n_bytes):>7}"


def _range(error: ExpectedError) -> str:
    return f"{error.typical:.2g} ({error.low:.2g} to {error.high:.2g})"


def _why(expected: Forecast, n: int, wish: Wish) -> list[str]:
    """Which of the rules decided."""
    method = METHODS[wish.method]
    said = f"Take {n} samples: the smallest power of two (Sobol points are balanced in powers of two)"
    if n // 2 < expected.least_samples:
        least = expected.least_samples
        reason = f" with at least {least}: 4 for each of {expected.terms} functions and {expected.n_readouts} readouts"
        if least > 4 * max(expected.terms, expected.n_readouts):
            reason = (
                f" with at least {least}, as some functions are so large at the edge that few samples decide"
            )
        at = expected.at(n, wish.method)
        return [
            f"{said}{reason}.",
            f"The error is then {_range(at)} with {method}, below the {wish.error:g} wanted.",
        ]
    return [f"{said} with which the error stays below {wish.error:g} with {method}, also at the high end."]
