"""infocap simulate: the photonic experiment, from a design to a file."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from .._version import __version__
from ..basis._product import product_basis
from ..designs import block_count, draw
from ..recording._recording import Recording
from ..systems.fibre._system import FibreSystem
from ._outputs import refuse_existing
from ._terminal import FILE, FORCE

BLOCK = 512  # Samples between two steps of the progress bar: a tenth of a second.


@click.command()
@click.option("--power-dbm", default=6.6, help="Average power after the amplifier.")
@click.option("--length-m", default=5.0, help="Length of the fibre.")
@click.option("--inputs", "n_inputs", default=5, help="Number of inputs; divides 20.")
@click.option("--samples", "n_samples", default=8192, help="Sobol points, a power of 2.")
@click.option("--phase-noise", type=click.Choice(["cell", "bin", "none"]), default="cell")
@click.option("--seed", type=click.IntRange(min=0), default=1, help="Of the design and of the noise.")
@click.option("-o", "--output", type=FILE, required=True, help="File, .nc")
@FORCE
def simulate(n_samples: int, seed: int, output: Path, force: bool, phase_noise: str, **settings: Any) -> None:
    """Simulate the photonic experiment and write inputs and spectra to a file."""
    refuse_existing(output, force, (".nc",))
    system = FibreSystem(**settings, phase_noise=None if phase_noise == "none" else phase_noise)
    metadata = {"system": asdict(system), "seed": seed, "n_samples": n_samples, "design": "sobol"}
    basis = product_basis("legendre", system.n_inputs, 1)
    metadata |= {"blocks": block_count(basis, n_samples, "sobol", None), "infocap": __version__}
    u = draw(basis, n_samples, seed=seed)
    starts = range(0, n_samples, BLOCK)
    seeds = np.random.SeedSequence(seed).spawn(len(starts))
    with click.progressbar(list(zip(starts, seeds, strict=True)), label="Simulating") as bar:
        x = np.vstack([system(u[start : start + BLOCK], seed=own) for start, own in bar])
    channel = tuple(f"{wavelength:.2f} nm" for wavelength in system.wavelength_nm)
    recording = Recording(u, x, np.arange(n_samples), "mW/nm", channel, metadata)
    recording.save(output)
    click.echo(f"{recording}\nphi_NL = {system.nonlinear_phase:.3f}, written to {output}")
