"""infocap plan: how many samples to take, and a plan as a file, to be read, changed and run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..basis import product_basis
from ..errors import ParameterError
from ..experiment import Plan
from ..result import CapacityResult
from ._choose_basis import Wanted
from ._options import FILE, options
from ._outputs import refuse_existing
from ._recommend import Wish, read_pilot, recommend
from ._terminal import wrapped


@click.command()
@click.option("--inputs", "n_inputs", type=int, help="Number of inputs.")
@click.option("--degree", "max_degree", type=int, help="Highest degree of the functions.")
@click.option("--samples", "n_samples", type=int, help="Sobol points, a power of two; or --error.")
@options("wish", Wish)
@click.option(
    "--family", help="legendre: uniform inputs, hermite: normal, ...  [default: the pilot's, else legendre]"
)
@click.option("--domain", type=(float, float), help="Interval of every input, such as 0 5.")
@click.option("--seed", default=1)
@click.option("--order", type=click.Choice(["random", "doubling", "design"]), default="random")
@click.option("--noise-repeats", default=0, help="Measurements at a constant input.")
@click.option("--repeat-every", default=0, help="Measure one input in n twice.")
@click.option("--reference-every", default=0, help="A drift reference every n rows.")
@click.option("--input-unit", default="")
@click.option("--readout-unit", default="")
@click.option("--title", default="", help="For people.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("-o", "--output", type=FILE, help="File, .toml; with --error it may be left out.")
def plan(output: Path | None, force: bool, wish: Wish, **settings: Any) -> None:
    """Write a plan of an acquisition: what to measure, where, in which order.

    With --error in place of --samples, say first how many samples that takes, and why. The file is for people too:
    open it, read its comments, change it.
    """
    if (settings["n_samples"] is None) == (wish.error is None):
        raise ParameterError(
            "give --samples, or --error to be told how many samples to take: one of the two."
        )
    if output is not None:
        refuse_existing(output, force, (".toml",))
    elif wish.error is None:
        raise ParameterError("give the file to write the plan to: -o plan.toml.")
    _refuse_ignored(wish, settings["n_inputs"])
    pilot = None
    if wish.pilot is not None:
        family = () if settings["family"] is None else (settings["family"],)
        pilot = read_pilot(wish.pilot, Wanted(family, settings["max_degree"], settings["domain"]))
    else:
        settings["family"] = settings["family"] or "legendre"
    if wish.error is not None:
        basis = _made(settings | {"n_samples": 1}).basis if pilot is None else pilot.basis
        settings["n_samples"], lines = recommend(basis, wish.error, wish, pilot)
        click.echo("\n".join(line if line.startswith((" ", ">")) else wrapped(line) for line in lines))
    if output is not None:
        made = _made(settings if pilot is None else _settings_of(pilot, settings))
        made.save(output)
        click.echo(
            f"{len(made.basis)} functions, {len(made.schedule)} measurements, plan {made.fingerprint[:12]}, "
            f"written to {output}"
        )


def _refuse_ignored(wish: Wish, n_inputs: int | None) -> None:
    """Refuse options that would be ignored."""
    given = {name: value for name, value in asdict(wish).items() if value is not None and name != "method"}
    if wish.error is None:
        why = "goes with --error"
    elif wish.pilot is not None:
        why = "is known from the pilot"
        given = {
            name: value for name, value in given.items() if name in ("n_readouts", "capacity", "unexplained")
        }
        given |= {} if n_inputs is None else {"n_inputs": n_inputs}
    else:
        return
    for name, value in given.items():
        raise ParameterError(f"`{name}={value}` {why}; leave it out.")


def _made(settings: dict[str, Any]) -> Plan:
    """Return the plan; a setting that is missing is an error."""
    for name in ("n_inputs", "max_degree"):
        if settings[name] is None:
            raise ParameterError(
                f"`{name}` is missing; a plan needs the number of inputs and the highest degree."
            )
    return Plan(**settings)


def _settings_of(pilot: CapacityResult, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the pilot's own plan, if it had one, with the new number of samples; else one with its basis."""
    planned = pilot.metadata.get("provenance", {}).get("plan")
    if planned is not None:
        return dict(planned) | {"n_samples": settings["n_samples"]}
    basis = pilot.basis
    same: dict[str, Any] = {"n_inputs": basis.n_inputs, "max_degree": basis.max_degree}
    if not np.array_equal(product_basis(basis.families, **same).indices, basis.indices):
        raise ParameterError(
            "the pilot's functions are not all up to a total degree; give it a plan of its own."
        )
    return settings | same | {"family": list(basis.families), "domain": None}
