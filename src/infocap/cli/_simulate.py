"""infocap simulate: the photonic experiment, from a design to a file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from .._check import one_of
from .._version import __version__
from ..basis import product_basis
from ..designs import draw
from ..errors import DataError
from ..recording import Recording, read
from ..systems.fibre import FibreSystem

BLOCK = 512  # samples between two looks at the keyboard


@click.command()
@click.option(
    "--power-dbm", type=float, default=6.6, show_default=True, help="Average power after the amplifier."
)
@click.option("--length-m", type=float, default=5.0, show_default=True, help="Length of the fibre.")
@click.option(
    "--inputs", "n_inputs", type=int, default=5, show_default=True, help="Number of inputs; divides 20."
)
@click.option(
    "--samples", "n_samples", type=int, default=8192, show_default=True, help="Sobol points, a power of 2."
)
@click.option("--phase-noise", type=click.Choice(["cell", "bin", "none"]), default="cell", show_default=True)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the design and of the noise."
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="File, .nc"
)
def simulate(
    power_dbm: float,
    length_m: float,
    n_inputs: int,
    n_samples: int,
    phase_noise: str,
    seed: int,
    output: Path,
) -> None:
    """Simulate the photonic experiment and write inputs and spectra to a file.

    Ctrl-C keeps what is done; the same command goes on from there.
    """
    one_of("output suffix", output.suffix, (".nc",))
    if not output.parent.exists():
        raise DataError(f"the folder {output.parent} does not exist; make it first.")
    system = FibreSystem(
        power_dbm=power_dbm,
        length_m=length_m,
        n_inputs=n_inputs,
        phase_noise=None if phase_noise == "none" else phase_noise,
    )
    metadata: dict[str, Any] = {
        "system": asdict(system),
        "seed": seed,
        "n_samples": n_samples,
        "design": "sobol",
        "infocap": __version__,
    }
    u = draw(product_basis("legendre", n_inputs, 1), n_samples, seed=seed)
    parts = _done_before(output, metadata)
    seeds = np.random.SeedSequence(seed).spawn(-(-n_samples // BLOCK))
    done = sum(len(part) for part in parts)
    if done == n_samples:
        click.echo(f"{output} is complete already: {n_samples} samples.")
        return
    interrupted = False
    with click.progressbar(length=n_samples, label="Simulating", show_pos=True) as bar:
        bar.update(done)
        try:
            for start in range(done, n_samples, BLOCK):
                parts.append(system(u[start : start + BLOCK], seed=seeds[start // BLOCK]))
                bar.update(len(parts[-1]))
        except KeyboardInterrupt:
            interrupted = True
    if not parts:
        raise click.Abort
    readouts = np.vstack(parts)
    recording = Recording(
        u[: len(readouts)],
        readouts,
        np.arange(len(readouts)),
        "mW/nm",
        tuple(f"{wavelength:.2f} nm" for wavelength in system.wavelength_nm),
        metadata,
    )
    recording.save(output)
    click.echo(f"{recording}\nphi_NL = {system.nonlinear_phase:.3f}, written to {output}")
    if interrupted:
        click.echo(f"Interrupted after {len(readouts)} of {n_samples}; the same command goes on from there.")
        raise SystemExit(130)


def _done_before(output: Path, metadata: dict[str, Any]) -> list[Any]:
    """Spectra that an interrupted run of the same command left."""
    if not output.exists():
        return []
    earlier = read(output)
    if earlier.metadata != metadata:
        raise DataError(f"{output} holds another simulation; give another name or remove it.")
    return [earlier.readouts]  # whole blocks, or all there is
