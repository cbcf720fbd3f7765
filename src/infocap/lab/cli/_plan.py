"""infocap plan: how many samples to take, and a plan as a file, to be read, changed and run."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..._formatting import counted
from ..._validation import require_positive, require_whole_number
from ...basis import ProductBasis
from ...errors import ParameterError
from ...result import CapacityResult, load_result
from ...theory import MAX_SAMPLES, Forecast, efficiency_bound, forecast, forecast_from
from ..experiment import ORDERS, Kind, Plan
from ._estimate import InputOptions, family_and_domain, read_delays
from ._outputs import refuse_existing
from ._terminal import (
    FILE,
    FORCE,
    PATH,
    NameChoice,
    echo,
    name_options,
    option,
    options,
    wrapped,
)

# Options that a pilot run makes superfluous, because its result holds its basis.
BASIS_OPTIONS = ("input", "n_inputs", "max_degree", "family", "domain", "max_delay")
# Where nothing is known of a device, this share of its readouts is taken for noise or for functions
# outside the basis.
ASSUMED_UNEXPLAINED = 0.5


@dataclass(frozen=True)
class PrecisionGoal:
    """How precise the total is to be, and what is known of the device."""

    error: float | None = option(
        "--error", type=float, help="Standard error that the total may have."
    )
    n_readouts: int | None = option(
        "--n-readouts", type=int, help="Number of readouts, for --error."
    )
    pilot: Path | None = option("--pilot", type=PATH, help="Result of a pilot run, for --error.")


@click.command()
@options("input_options", InputOptions)
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
    help="Steps that are not used at the start of each run.",
)
@click.option(
    "--n-samples",
    type=int,
    help="Number of samples, a power of two for Sobol points; or give --error.",
)
@options("goal", PrecisionGoal)
@click.option(
    "--seed", default=1, help="Seed of all that is random; the same one gives the same plan."
)
@click.option(
    "--order",
    type=NameChoice(ORDERS),
    default="random",
    help="Order of acquisition.",
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
    "--reference-every",
    type=int,
    show_default="32, fewer in a short run",
    help="Among this many measurements, make one at a reference input, at a random moment, to "
    "prove that the device was steady; 0 for none.",
)
@click.option("--dark-every", default=0, help="Measure with the source off after this many others.")
@click.option("--averages", default=1, help="Readings per measurement, which are averaged.")
@click.option("--settle-s", default=0.0, help="Seconds to wait between setting and reading.")
@click.option(
    "--sweep",
    multiple=True,
    metavar="NAME=VALUES",
    help="A setting of the device and its values, such as power_dbm=1,4.5; once for each. All is "
    "measured at every combination.",
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
    goal: PrecisionGoal,
    input_options: InputOptions,
    max_delay: str | None,
    *,
    sweep: tuple[str, ...],
    force: bool,
    **settings: Any,
) -> None:
    """Plan an acquisition: what to measure, and in which order.

    With --error in place of --n-samples, say how many samples that takes. It depends on the device,
    so the first plan is mostly one of a pilot, and the plan made with its result (--pilot) keeps
    its rows. The file is for people too: open it, read its comments, change it.
    """
    if sweep:
        settings["sweep"] = _grid_of(sweep)
    if max_delay is not None:
        settings |= _settings_of_delays(max_delay, settings, input_options)
    _refuse_incomplete(settings["n_samples"], goal.error, output)
    if output is not None:
        refuse_existing(output, force, (".toml",))
    _refuse_ignored(vars(goal) | vars(input_options) | settings)
    if goal.pilot is not None:
        new_plan = _plan_from_pilot(load_result(goal.pilot), goal, output)
    else:
        new_plan = _plan_from_options(settings, input_options, goal, output)
    if new_plan is not None and output is not None:
        new_plan.save(output)
        _announce(new_plan, output)


def _grid_of(sweep: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values of each setting, numbers where they look like some."""
    grid: dict[str, list[Any]] = {}
    for text in sweep:
        name, _, values = text.partition("=")
        if not values or name in grid:
            raise ParameterError(
                f"--sweep {text} must be a name and its values, once for each name: "
                "power_dbm=1,4.5."
            )
        grid[name.strip()] = [_number_or_text(value.strip()) for value in values.split(",")]
    return grid


def _number_or_text(text: str) -> int | float | str:
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


def _settings_of_delays(
    max_delay: str, settings: dict[str, Any], input_options: InputOptions
) -> dict[str, Any]:
    """Return the entries of a plan that follow from the largest delays."""
    largest_delays = read_delays(max_delay)
    n_inputs = settings["n_inputs"]
    if n_inputs is None and not input_options.input:
        n_inputs = 1
    return {
        "max_delay": largest_delays,
        "max_degree": settings["max_degree"] or max(largest_delays),
        "n_inputs": n_inputs,
    }


def _refuse_incomplete(n_samples: int | None, error: float | None, output: Path | None) -> None:
    if (n_samples is None) == (error is None):
        raise ParameterError(
            "give --n-samples, or --error to be told how many to take: one of the two."
        )
    if output is None and error is None:
        raise ParameterError("give the file to write the plan to: -o plan.toml.")


def _refuse_ignored(values: dict[str, Any]) -> None:
    """Refuse options that would be ignored, and a plan without the two that it needs."""
    has_pilot = values["pilot"] is not None
    if values["input"]:
        names = ("n_inputs", "family", "domain", "input_unit")
        _refuse_given(values, names, "is told by --input already")
    if values["error"] is None:
        _refuse_given(values, ("n_readouts", "pilot"), "goes with --error")
    if has_pilot:
        _refuse_given(values, ("n_readouts", *BASIS_OPTIONS), "is known from the pilot")
        return
    for name in ("n_inputs", "max_degree"):
        is_told_by_input = name == "n_inputs" and values["input"]
        if values[name] is None and not is_told_by_input:
            raise ParameterError(f"`{name}` is missing; a plan needs it.")


def _refuse_given(values: dict[str, Any], names: tuple[str, ...], reason: str) -> None:
    for name in names:
        if values.get(name) not in (None, (), ""):
            raise ParameterError(f"`{name}={values[name]}` {reason}; leave it out.")


def _plan_from_options(
    settings: dict[str, Any],
    input_options: InputOptions,
    goal: PrecisionGoal,
    output: Path | None,
) -> Plan | None:
    """Return the plan that options describe; None where only its size was asked for."""
    if input_options.input:
        settings["n_inputs"] = len(input_options.input)
        settings["family"] = list(input_options.input)
    else:
        n_inputs = require_whole_number("n_inputs", settings["n_inputs"], 1)
        settings |= family_and_domain(input_options, ["legendre"] * n_inputs)
    if goal.error is not None:
        basis = Plan(**settings | {"n_samples": 1}).basis
        settings["n_samples"] = _recommend_for_unknown_device(basis, goal)
    return None if output is None else Plan(**settings)


def _plan_from_pilot(
    pilot: CapacityResult, goal: PrecisionGoal, output: Path | None
) -> Plan | None:
    """Return the pilot's plan with more samples; None where only their number was asked for."""
    n_samples = _recommend_after_pilot(pilot, goal)
    if output is None:
        return None
    entries = pilot.metadata.get("provenance", {}).get("plan")
    if entries is None:
        raise ParameterError(
            "the pilot has no plan that could be extended; "
            f"make one with --n-inputs, --max-degree and --n-samples {n_samples}."
        )
    return Plan.from_dict(entries).extended(n_samples)


def _announce(new_plan: Plan, output: Path) -> None:
    """Print what a plan measures, and where it was written."""
    if new_plan.weighted:
        largest = new_plan.basis.fourth_moments.max()
        echo(
            wrapped(
                f"E[y^4] = {largest:.3g} of a function: few samples would decide, so inputs are "
                "drawn where functions are large, with weights that `infocap estimate` finds by "
                "itself (`weighted = false` in the file: as distributed)."
            )
        )
    measurements = f"{len(new_plan.schedule)} measurements"
    n_references = new_plan.schedule.count(Kind.REFERENCE)
    if n_references:
        measurements = (
            f"{new_plan.n_samples} samples + {counted(n_references, 'reference row')} "
            f"({measurements} in all)"
        )
    if new_plan.runs:
        measurements += f" of {new_plan.steps} time steps"
    if new_plan.sweep:
        measurements += f" at each of {counted(len(new_plan.settings), 'setting')}"
    echo(
        f"{len(new_plan.basis)} functions, {measurements}, plan {new_plan.fingerprint[:12]}, "
        f"written to {output}"
    )


# How many samples a precision takes.


def _recommend_for_unknown_device(basis: ProductBasis, goal: PrecisionGoal) -> int:
    """Print the range over devices, and return how many samples to measure first.

    That is a pilot, unless so few samples are enough for any device.
    """
    if goal.n_readouts is None:
        raise ParameterError(
            "--error needs --n-readouts, the number of readouts, or --pilot, a pilot run."
        )
    error = require_positive("error", goal.error)
    expected = forecast(basis, goal.n_readouts, unexplained=ASSUMED_UNEXPLAINED)
    fewest, most = expected.range_needed(error)
    pilot_samples = expected.pilot_samples
    if most is not None and most <= pilot_samples:
        lines = [
            f"Take {most} samples, whatever the device: no pilot is needed.",
            f"The error of the total is then {_error_at(expected, most)}.",
            f"With fewer than {expected.least_samples} samples, error bars do not hold.",
        ]
    else:
        up_to = f"more than {MAX_SAMPLES:,}" if most is None else str(most)
        lines = [
            f"An error of {error:g} takes {fewest} to {up_to} samples, depending on the device.",
            f"Measure a pilot of {pilot_samples} first, {expected.reason_for_pilot_samples}. "
            "Its rows are kept.",
            f"Then: infocap plan --pilot pilot.nc --error {error:g} -o plan.toml",
        ]
    _print_paragraphs(lines)
    return pilot_samples if most is None else min(most, pilot_samples)


def _recommend_after_pilot(pilot: CapacityResult, goal: PrecisionGoal) -> int:
    """Print and return how many samples it takes to know the total of the pilot's device."""
    error = require_positive("error", goal.error)
    expected = forecast_from(pilot)
    n_samples = expected.samples_needed(error)
    if n_samples <= pilot.n_samples:
        advice = f"That is precise enough already for an error of {error:g}."
    else:
        n_further = n_samples - pilot.n_samples
        expected_error = _error_at(expected, n_samples)
        advice = f"Take {n_samples} samples, {n_further} more: the error is then {expected_error}."
    n_needed = min(efficiency_bound(pilot).samples_needed(error), n_samples)
    lines = [
        f"The pilot: total {pilot.total_in_words} of {pilot.rank} with {pilot.n_samples} samples.",
        advice,
        f"Any method would need about {n_needed} samples, by the pilot's errors.",
    ]
    lines += [f"warning of the pilot: {name_options(warning)}" for warning in pilot.warnings]
    _print_paragraphs(lines)
    return max(n_samples, pilot.n_samples)


def _print_paragraphs(lines: list[str]) -> None:
    for line in lines:
        echo(wrapped(line))


def _error_at(expected: Forecast, n_samples: int) -> str:
    error = expected.at(n_samples)
    return f"{error.typical:.2g} ({error.low:.2g} to {error.high:.2g})"
