"""infocap plan: how many samples to take, and a plan as a file, to be read, changed and run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..._formatting import counted, duration, size, with_error
from ..._validation import positive, whole_number
from ...basis._product import ProductBasis
from ...errors import ParameterError
from ...estimators import METHODS
from ...estimators._cost import cost
from ...result._capacity_result import CapacityResult
from ...result._files import load_result
from ...theory._bound import efficiency_bound
from ...theory._forecast import METHOD, Forecast, forecast, forecast_from
from ..experiment._plan import Plan
from ._estimate import Drawn, distribution, read_delays
from ._outputs import refuse_existing
from ._terminal import FILE, FORCE, PATH, as_options, echo, option, options, wrapped

WEIGHTED = (
    "few samples would decide, so inputs are drawn where functions are large, with weights that `infocap estimate` "
    "finds by itself (`weighted = false` in the file: as distributed)."
)
BASIS = ("input", "n_inputs", "max_degree", "family", "domain", "max_delay")
OUTSIDE = "If the rest is functions of higher degree and not noise, errors may be three times the high end."


@dataclass(frozen=True)
class Wish:
    """What the user knows of the device, and wants."""

    error: float | None = option("--error", type=float, help="Standard error wanted of the total.")
    n_readouts: int | None = option("--readouts", type=int, help="Number of readouts, for --error.")
    capacity: float | None = option(
        "--capacity", type=float, help="Total capacity expected, for --error."
    )
    pilot: Path | None = option("--from", type=PATH, help="Result of a pilot run, for --error.")


@click.command()
@options("drawn", Drawn)
@click.option("--n-inputs", type=int, help="Number of inputs, where all are alike.")
@click.option("--max-degree", type=int, help="Highest degree of the functions.")
@click.option("--max-delay", help="With memory: largest delay of each degree, as 1:100,2:40,3:20.")
@click.option(
    "--runs",
    default=0,
    show_default="1",
    help="Number of runs of a sequence; they share the samples.",
)
@click.option(
    "--washout",
    default=0,
    show_default="the largest delay",
    help="Steps unused at the start of each run.",
)
@click.option(
    "--n-samples", type=int, help="Number of Sobol points, a power of two; or give --error."
)
@options("wish", Wish)
@click.option(
    "--seed", default=1, help="Seed of all that is random; the same one gives the same plan."
)
@click.option(
    "--order",
    type=click.Choice(["random", "doubling", "design"]),
    default="random",
    help="Of acquisition.",
)
@click.option(
    "--noise-repeats",
    default=0,
    help="Number of measurements at one constant input, for factor analysis.",
)
@click.option(
    "--repeat-every", default=0, help="Measure one in this many inputs twice, to know the noise."
)
@click.option(
    "--reference-every", default=0, help="Measure one input again after so many rows, to see drift."
)
@click.option("--dark-every", default=0, help="Measure with the source off after so many rows.")
@click.option("--averages", default=1, help="Readings per measurement, which are averaged.")
@click.option(
    "--settle", "settle_s", default=0.0, help="Seconds to wait between setting and reading."
)
@click.option("--input-unit", default="", show_default=False, help="Unit of all inputs, such as V.")
@click.option(
    "--readout-unit", default="", show_default=False, help="Unit of all readouts, such as mV."
)
@click.option("--title", default="", show_default=False, help="A title of the experiment.")
@FORCE
@click.option("-o", "--output", type=FILE, help="File, .toml; with --error it may be left out.")
def plan(
    output: Path | None,
    force: bool,
    wish: Wish,
    drawn: Drawn,
    max_delay: str | None,
    **settings: Any,
) -> None:
    """Plan an acquisition: what to measure, and in which order.

    With --error in place of --n-samples, say first how many samples that takes, and why. The file is for people too:
    open it, read its comments, change it.
    """
    if max_delay is not None:
        windows = settings["max_delay"] = read_delays(max_delay)
        settings["max_degree"] = settings["max_degree"] or max(windows)
        settings["n_inputs"] = settings["n_inputs"] or (None if drawn.input else 1)
    if (settings["n_samples"] is None) == (wish.error is None):
        raise ParameterError(
            "give --n-samples, or --error to be told how many to take: one of the two."
        )
    if output is not None:
        refuse_existing(output, force, (".toml",))
    elif wish.error is None:
        raise ParameterError("give the file to write the plan to: -o plan.toml.")
    _refuse_ignored(vars(wish) | vars(drawn) | settings)
    settings["n_inputs"] = len(drawn.input) or settings["n_inputs"]
    pilot = None if wish.pilot is None else load_result(wish.pilot)
    if pilot is None:
        usual = ["legendre"] * whole_number("n_inputs", settings["n_inputs"], 1)
        settings |= {"family": list(drawn.input)} if drawn.input else distribution(drawn, usual)
    if wish.error is not None:
        basis = Plan(**settings | {"n_samples": 1}).basis if pilot is None else pilot.basis
        settings["n_samples"], lines = _recommend(basis, wish, pilot)
        echo("\n".join(line if line.startswith((" ", ">")) else wrapped(line) for line in lines))
    if output is not None:
        made = Plan(**settings) if pilot is None else _extended(pilot, settings["n_samples"])
        made.save(output)
        if made.weighted:
            echo(
                wrapped(f"E[y^4] = {made.basis.fourth_moments.max():.3g} of a function: {WEIGHTED}")
            )
        sizes = f"{len(made.basis)} functions, {len(made.schedule)} measurements"
        sizes += f" of {made.steps} time steps" if made.runs else ""
        echo(f"{sizes}, plan {made.fingerprint[:12]}, written to {output}")


def _refuse_ignored(given: dict[str, Any]) -> None:
    """Refuse options that would be ignored, and a plan without the two that it needs."""
    guesses, pilot = ["n_readouts", "capacity"], given["pilot"] is not None
    for applies, ignored, why in (
        (
            given["input"],
            ["n_inputs", "family", "domain", "input_unit"],
            "is told by --input already",
        ),
        (given["error"] is None, [*guesses, "pilot"], "goes with --error"),
        (pilot, [*guesses, *BASIS], "is known from the pilot"),
    ):
        for name in ignored:
            if applies and given.get(name) not in (None, (), ""):
                raise ParameterError(f"`{name}={given[name]}` {why}; leave it out.")
    for name in ("n_inputs", "max_degree"):
        if not pilot and given[name] is None and not (given["input"] and name == "n_inputs"):
            raise ParameterError(f"`{name}` is missing; a plan needs it.")


def _extended(pilot: CapacityResult, n_samples: int) -> Plan:
    """Return the pilot's own plan with further blocks of samples."""
    planned = pilot.metadata.get("provenance", {}).get("plan")
    if planned is None:
        said = "the pilot has no plan that could be extended"
        raise ParameterError(
            f"{said}; make one with --n-inputs, --max-degree and --n-samples {n_samples}."
        )
    return Plan.from_dict(planned).extended(n_samples)


def _recommend(
    basis: ProductBasis, wish: Wish, pilot: CapacityResult | None
) -> tuple[int, list[str]]:
    """Return the number of samples that gives the wanted error of the total, and lines that say why."""
    error = positive("error", wish.error)
    expected, assumed = _guessed(basis, wish) if pilot is None else _measured(pilot, error)
    n = expected.samples_needed(error)
    known = f"{len(basis)} functions: {counted(basis.n_inputs, 'input')}, degree {basis.max_degree}"
    lines = [f"{known}. The total is at most {expected.maximum}, the constant included.", *assumed]
    balanced = "" if basis.memory else " (Sobol points are balanced in powers of two)"
    least = expected.least_samples
    reason = f"4 for each of {len(expected.basis)} functions and {expected.maximum} readouts"
    if least > 4 * max(len(expected.basis), expected.maximum):
        reason = "some functions are so large at the edge that few samples decide"
    lines += ["", *_table(expected, basis, n), ""]
    lines.append(
        f"Take {n} samples: the smallest power of two{balanced} from {least} on ({reason}) with which the error stays "
        f"below {error:g} with {METHOD}, also at the high end. It is then {_error_at(expected, n)}."
    )
    first = 1 << (expected.pilot_samples - 1).bit_length()
    if pilot is not None:
        least = min(efficiency_bound(pilot).samples_needed(error), n)
        lines.append(
            f"The least number of samples that any method would need is about {least}, by the pilot's errors."
        )
    elif first < n:
        lines += [
            f"It depends on the device. A pilot run is better than a guess: measure {first} samples, and ask again:",
            "  infocap estimate pilot.db -o pilot.nc",
            f"  infocap plan --from pilot.nc --error {error:g}",
        ]
    return n, lines


def _measured(pilot: CapacityResult, error: float) -> tuple[Forecast, list[str]]:
    """Return what to expect after a pilot run, and what it found."""
    expected, n = forecast_from(pilot), pilot.n_samples
    total = pilot.qualified_total or with_error(pilot.total, pilot.total_standard_error)
    lines = [
        f"The pilot: total {total} of {pilot.rank} with {n} samples; errors are extrapolated from that."
    ]
    if n >= expected.least_samples and expected.at(n).high <= error:
        lines.append(
            f"That is precise enough already: an error of {error:g} needs no further samples."
        )
    return expected, lines + [
        wrapped(f"warning of the pilot: {as_options(one)}") for one in pilot.warnings
    ]


def _guessed(basis: ProductBasis, wish: Wish) -> tuple[Forecast, list[str]]:
    """Return what to expect of a device that nobody has measured, and what is assumed of it."""
    if wish.n_readouts is None:
        raise ParameterError(
            "--error needs --readouts, the number of readouts, or --from, a pilot run."
        )
    most = wish.n_readouts + 1
    if wish.capacity is None:
        half = "half of the readouts are noise or functions outside the basis"
        said = [f"Assumed: {half}; say what you expect with --capacity."]
        return forecast(basis, wish.n_readouts, unexplained=0.5), said
    if not 0 <= wish.capacity <= most:
        raise ParameterError(f"--capacity {wish.capacity:g} is not between 0 and {most}.")
    said = [f"Assumed: a total capacity of {wish.capacity:g} (--capacity).", OUTSIDE]
    return forecast(basis, wish.n_readouts, unexplained=1 - wish.capacity / most), said


def _table(expected: Forecast, basis: ProductBasis, chosen: int) -> list[str]:
    """Return errors and costs at a few sizes around the one chosen, one line per size."""
    lines = [f"  {'':>9}  error of the total, root mean square (range over devices)"]
    lines.append(f"  {'samples':>9}  {METHOD:<25}  computing  memory")
    for n in (chosen // 4, chosen // 2, chosen, 2 * chosen, 4 * chosen):
        if n:
            computed, n_bytes = cost(basis, n, expected.maximum, METHODS[METHOD])
            computing = f"< {duration(max(computed, 1))}"
            mark = ">" if n == chosen else " "
            lines.append(
                f"{mark} {n:9d}  {_error_at(expected, n):<25}  {computing:>9}  {size(n_bytes):>7}"
            )
    return lines


def _error_at(expected: Forecast, n: int) -> str:
    try:
        error = expected.at(n)
    except ParameterError:
        return "too few samples"
    return f"{error.typical:.2g} ({error.low:.2g} to {error.high:.2g})"
