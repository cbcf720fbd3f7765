"""infocap simulate: the photonic experiment, from a design to a file."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from .._version import __version__
from ..basis._product import product_basis
from ..designs import block_count, draw
from ..errors import DataError
from ..recording._read import read
from ..recording._recording import Recording
from ..systems.fibre._system import FibreSystem
from ._outputs import check_place
from ._terminal import FILE

BLOCK = 512  # Samples between two looks at the keyboard: a fraction of a second.


@click.command()
@click.option("--power-dbm", default=6.6, help="Average power after the amplifier.")
@click.option("--length-m", default=5.0, help="Length of the fibre.")
@click.option("--inputs", "n_inputs", default=5, help="Number of inputs; divides 20.")
@click.option("--samples", "n_samples", default=8192, help="Sobol points, a power of 2.")
@click.option("--phase-noise", type=click.Choice(["cell", "bin", "none"]), default="cell")
@click.option("--seed", type=click.IntRange(min=0), default=1, help="Of the design and of the noise.")
@click.option("-o", "--output", type=FILE, required=True, help="File, .nc")
def simulate(n_samples: int, seed: int, output: Path, phase_noise: str, **settings: Any) -> None:
    """Simulate the photonic experiment and write inputs and spectra to a file.

    Ctrl-C keeps what is done; the same command goes on from there.
    """
    check_place(output, (".nc",), ours=True, what="a simulation")
    system = FibreSystem(**settings, phase_noise=None if phase_noise == "none" else phase_noise)
    metadata = {"system": asdict(system), "seed": seed, "n_samples": n_samples, "design": "sobol"}
    basis = product_basis("legendre", system.n_inputs, 1)
    metadata |= {"blocks": block_count(basis, n_samples, "sobol", None), "infocap": __version__}
    u = draw(basis, n_samples, seed=seed)
    earlier = read(output) if output.exists() else None
    if earlier is not None and earlier.metadata != metadata:
        raise DataError(f"{output} holds another simulation; give another name or remove it.")
    blocks = [] if earlier is None else [earlier.readouts]  # whole blocks, or all there is
    done = sum(map(len, blocks))
    if done == n_samples:
        click.echo(f"{output} is complete already: {n_samples} samples.")
        return
    seeds = np.random.SeedSequence(seed).spawn(-(-n_samples // BLOCK))
    with click.progressbar(length=n_samples, label="Simulating", show_pos=True) as bar:
        bar.update(done)
        try:
            for start in range(done, n_samples, BLOCK):
                blocks.append(system(u[start : start + BLOCK], seed=seeds[start // BLOCK]))
                bar.update(len(blocks[-1]))
        except KeyboardInterrupt:
            if not blocks:
                raise click.Abort from None
    x = np.vstack(blocks)
    channel = tuple(f"{wavelength:.2f} nm" for wavelength in system.wavelength_nm)
    recording = Recording(u[: len(x)], x, np.arange(len(x)), "mW/nm", channel, metadata)
    recording.save(output)
    click.echo(f"{recording}\nphi_NL = {system.nonlinear_phase:.3f}, written to {output}")
    if len(x) < n_samples:
        click.echo(f"Interrupted after {len(x)} of {n_samples}; the same command goes on from there.")
        raise SystemExit(130)
