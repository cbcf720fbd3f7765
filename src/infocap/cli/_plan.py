"""infocap plan: how many samples to take, and a plan as a file, to be read, changed and run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from ..basis import product_basis
from ..errors import ParameterError
from ..experiment import Plan
from ..result import CapacityResult
from ._choose_basis import Wanted
from ._outputs import FILE, refuse_existing
from ._recommend import METHODS, Wish, read_pilot, recommend
from ._terminal import in_options, wrapped

COUNTED = "n_samples"


@click.command()
@click.option("--inputs", "n_inputs", type=int, help="Number of inputs.")
@click.option("--degree", "max_degree", type=int, help="Highest degree of the functions.")
@click.option("--samples", COUNTED, type=int, help="Sobol points, a power of two; or --error.")
@click.option(
    "--error", type=float, help="Wanted error of the total capacity: says how many samples to take."
)
@click.option("--readouts", type=int, help="Readouts of the device, for --error; the constant is added.")
@click.option("--capacity", type=float, help="Total capacity that you expect, for --error.")
@click.option(
    "--unexplained", type=float, help="Or the share of noise and functions outside the basis, 0 to 1."
)
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    default="control-variate",
    show_default=True,
    help="For --error.",
)
@click.option("--seconds-per-sample", type=float, help="To say how long measuring takes.")
@click.option(
    "--from", "pilot", type=click.Path(path_type=Path), help="A pilot's result or recording, for --error."
)
@click.option(
    "--family", help="legendre: uniform inputs, hermite: normal, ...  [default: the pilot's, else legendre]"
)
@click.option("--domain", type=(float, float), default=None, help="Interval of every input, such as 0 5.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option(
    "--order", type=click.Choice(["random", "doubling", "design"]), default="random", show_default=True
)
@click.option(
    "--noise-repeats", type=int, default=0, show_default=True, help="Measurements at a constant input."
)
@click.option("--repeat-every", type=int, default=0, show_default=True, help="Measure one input in n twice.")
@click.option(
    "--reference-every", type=int, default=0, show_default=True, help="A drift reference every n rows."
)
@click.option("--input-unit", default="")
@click.option("--readout-unit", default="")
@click.option("--title", default="", help="For people.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("-o", "--output", type=FILE, help="File, .toml; with --error it may be left out.")
def plan(
    output: Path | None,
    force: bool,
    error: float | None,
    readouts: int | None,
    capacity: float | None,
    unexplained: float | None,
    method: str,
    seconds_per_sample: float | None,
    pilot: Path | None,
    **settings: Any,
) -> None:
    """Write a plan of an acquisition: what to measure, where, in which order.

    With --error in place of --samples, say first how many samples that takes, and why. The file is for people too:
    open it, read its comments, change it.
    """
    if (settings[COUNTED] is None) == (error is None):
        raise ParameterError(
            "give --samples, or --error to be told how many samples to take: one of the two."
        )
    if output is None and error is None:
        raise ParameterError("give the file to write the plan to: -o plan.toml.")
    if output is not None:
        refuse_existing(output, force, (".toml",))
    guesses = {"--readouts": readouts, "--capacity": capacity, "--unexplained": unexplained}
    if error is None:
        _refuse(guesses | {"--from": pilot, "--seconds-per-sample": seconds_per_sample}, "goes with --error")
    if pilot is not None:
        _refuse(guesses | {"--inputs": settings["n_inputs"]}, "is known from the pilot")
    settings["family"] = settings["family"] or "legendre" if pilot is None else settings["family"]
    with in_options(absent=", or cut with --max-interactions or --index-set hyperbolic"):
        if error is not None:
            wish = Wish(error, readouts, capacity, unexplained, method, seconds_per_sample)
            found = None if pilot is None else read_pilot(pilot, _wanted(settings))
            settings = settings | {COUNTED: _say_samples(settings, wish, found)}
            if found is not None and output is not None:
                settings = _settings_of(found, settings)
        if output is not None:
            _write(settings, output)


def _wanted(settings: dict[str, Any]) -> Wanted:
    """The basis asked for, as far as it was."""
    family = settings["family"]
    return Wanted(() if family is None else (family,), settings["max_degree"], settings["domain"])


def _refuse(options: dict[str, Any], why: str) -> None:
    """An error for an option that would be ignored."""
    for name, value in options.items():
        if value is not None:
            raise ParameterError(f"{name} {value} {why}; leave it out.")


def _say_samples(settings: dict[str, Any], wish: Wish, pilot: CapacityResult | None) -> int:
    """The recommended number of samples, said aloud."""
    basis = pilot.basis if pilot is not None else Plan(**_given(settings | {COUNTED: 1})).basis
    n, lines = recommend(basis, wish, pilot)
    click.echo("\n".join(line if line.startswith((" ", ">")) else wrapped(line) for line in lines))
    return n


def _settings_of(pilot: CapacityResult, settings: dict[str, Any]) -> dict[str, Any]:
    """The pilot's own plan, if it had one: what is to be measured is the same device, once more."""
    planned = pilot.metadata.get("provenance", {}).get("plan")
    if planned is not None:
        return dict(planned) | {COUNTED: settings[COUNTED]}
    basis = pilot.basis
    same: dict[str, Any] = {"n_inputs": basis.n_inputs, "max_degree": basis.max_degree}
    if not np.array_equal(product_basis(basis.families, **same).indices, basis.indices):
        raise ParameterError(
            "the pilot's functions are not all up to a total degree; give it a plan of its own."
        )
    return settings | same | {"family": list(basis.families), "domain": None}


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, complete; one that is missing is an error."""
    for name, option in (("n_inputs", "--inputs"), ("max_degree", "--degree")):
        if settings[name] is None:
            raise ParameterError(
                f"{option} is missing; a plan needs the number of inputs and the highest degree."
            )
    return settings


def _write(settings: dict[str, Any], output: Path) -> None:
    made = Plan(**_given(settings))
    made.save(output)
    click.echo(
        f"{len(made.basis)} functions, {len(made.schedule)} measurements, plan {made.fingerprint[:12]}, "
        f"written to {output}"
    )
