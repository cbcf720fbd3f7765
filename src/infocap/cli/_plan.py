"""infocap plan: a plan as a file, to be read, changed and run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..experiment import Plan
from ._outputs import refuse_existing


@click.command()
@click.option("--inputs", "n_inputs", type=int, required=True, help="Number of inputs.")
@click.option("--degree", "max_degree", type=int, required=True, help="Highest degree of the functions.")
@click.option("--samples", "n_samples", type=int, required=True, help="Sobol points, a power of two.")
@click.option(
    "--family", default="legendre", show_default=True, help="legendre: uniform inputs, hermite: normal, ..."
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
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="File, .toml"
)
def plan(output: Path, force: bool, **settings: Any) -> None:
    """Write a plan of an acquisition: what to measure, where, in which order.

    The file is for people too: open it, read its comments, change it.
    """
    refuse_existing(output, force, (".toml",))
    made = Plan(**settings)
    made.save(output)
    click.echo(
        f"{len(made.basis)} functions, {len(made.schedule)} measurements, plan {made.fingerprint[:12]}, "
        f"written to {output}"
    )
