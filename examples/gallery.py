"""A gallery of simulated devices, each with its capacity card: from photodiodes to reservoirs.

Every device is measured as one would in the lab: inputs from a design, readouts with the noise of
the device, and all of it twice, so that noise can be told from functions outside the basis. The
cards, and the page that compares them, are written to ``example-output/gallery``. Put your own card
beside them and give ``infocap gallery`` the folder again. The gallery of the documentation is made
by this script.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import infocap

sys.path.insert(0, str(Path(__file__).parent))  # where the devices of the other examples are
from photodiodes import N_DETECTORS, PHOTONS, Photodiodes
from qubits import Qubits

OUTPUT = Path("example-output/gallery")
# Steps in which the reservoirs forget their initial state.
WASHOUT = 300


@dataclass(frozen=True)
class Device:
    """A device, and which functions of its inputs are asked for."""

    file: str  # name of the card's file, without suffix
    name: str
    description: str
    system: Callable[..., np.ndarray]
    basis: infocap.ProductBasis
    cost: str = ""  # per inference


def fibres(basis: infocap.ProductBasis) -> Iterator[Device]:
    """Yield a fibre at three powers, from linear to strongly nonlinear."""
    for power_dbm in (-9.1, 1.0, 6.6):
        system = infocap.photonics.FibreSystem(
            power_dbm=power_dbm, length_m=40.0, n_inputs=2, tolerance=1e-3
        )
        energy_nj = 10 ** (power_dbm / 10) / system.pulse.repetition_mhz
        yield Device(
            file=f"fibre{power_dbm:+g}dBm",
            name=f"Fibre, {power_dbm:g} dBm".replace("-", "−"),
            description="Picosecond pulse in 40 m of fibre, 71 spectral channels",
            system=system,
            basis=basis,
            cost=f"{energy_nj:.2g} nJ of light",
        )


def random_features(basis: infocap.ProductBasis) -> Iterator[Device]:
    """Yield random features that are nearly linear, and strongly nonlinear ones."""
    for gain in (0.3, 3.0):
        yield Device(
            file=f"features-{gain:g}",
            name=f"Random features, gain {gain:g}",
            description="50 tanh units",
            system=infocap.systems.RandomFeatures(n_inputs=2, n_readouts=50, gain=gain, noise=0.01),
            basis=basis,
        )


def networks(basis: infocap.ProductBasis) -> Iterator[Device]:
    """Yield a shallow and a deep network with random weights."""
    for name, n_layers in (("Network of 1 layer", 1), ("Network of 3 layers", 3)):
        yield Device(
            file=f"network-{n_layers}",
            name=name,
            description="40 tanh units per layer, random weights",
            system=infocap.systems.FeedForward(3, [40] * n_layers, gain=1.5, bias=0.5, noise=0.01),
            basis=basis,
        )


def qubits() -> Iterator[Device]:
    """Yield qubits that are measured with few shots, and with many."""
    for shots in (30, 3000):
        yield Device(
            file=f"qubits-{shots}",
            name=f"Four qubits, {shots} shots",
            description="Two angles, random circuit, ten expectation values",
            system=Qubits(shots),
            basis=infocap.product_basis("fourier", 2, 4),
            cost=f"{shots} shots",
        )


def photodiodes(basis: infocap.ProductBasis) -> Iterator[Device]:
    """Yield photodiodes in weak light, and in light that half saturates them."""
    for light, power in (("weak", 0.001), ("strong", 0.5)):
        millions_of_photons = N_DETECTORS * PHOTONS * power / 1e6
        yield Device(
            file=f"photodiodes-{light}",
            name=f"Photodiodes, {light} light",
            description="Three beams, scattering plate, 32 detectors",
            system=Photodiodes(power),
            basis=basis,
            cost=f"{millions_of_photons:.2g} million photons",
        )


def reservoirs(basis: infocap.ProductBasis) -> Iterator[Device]:
    """Yield devices with memory: echo state networks, delay reservoirs, a delay line."""
    for scale in (0.1, 1.0):
        yield Device(
            file=f"echo-state-{scale:g}",
            name=f"Echo state network, drive {scale:g}",
            description="50 tanh nodes, spectral radius 0.9",
            system=infocap.systems.EchoState(
                50, radius=0.9, input_scale=scale, bias=0.2, noise=1e-3
            ),
            basis=basis,
        )
    for kind in ("mackey-glass", "ikeda"):
        yield Device(
            file=f"delay-{kind}",
            name=f"Delay reservoir, {kind.title()}",
            description="One nonlinear node with feedback, 50 virtual nodes",
            system=infocap.systems.DelayReservoir(
                50, kind, feedback=0.9, input_scale=0.3, noise=1e-4
            ),
            basis=basis,
        )
    yield Device(
        file="delay-line",
        name="Delay line",
        description="20 taps, all linear",
        system=infocap.systems.DelayLine(20, noise=1e-3),
        basis=basis,
    )


def all_devices(quick: bool = False) -> Iterator[Device]:
    """Yield all devices of the gallery; `quick` asks for fewer functions."""
    of_two_inputs = infocap.product_basis("legendre", 2, max_degree=4 if quick else 10)
    of_three_inputs = infocap.product_basis("legendre", 3, max_degree=6)
    max_delay = {1: 10, 2: 4} if quick else {1: 60, 2: 20, 3: 8, 4: 4}
    of_the_past = infocap.delayed_basis(max_delay=max_delay)
    yield from fibres(of_two_inputs)
    yield from random_features(of_two_inputs)
    yield from networks(of_three_inputs)
    yield from qubits()
    yield from photodiodes(of_three_inputs)
    yield from reservoirs(of_the_past)


def measure(device: Device, n_samples: int) -> infocap.CapacityResult:
    """Measure a device twice at the same inputs, and estimate its capacities."""
    options: dict[str, Any] = {}
    if device.basis.memory:
        n_samples += WASHOUT
        options["washout"] = WASHOUT
    u = infocap.draw(device.basis, n_samples, seed=1)
    # The card shows the warnings.
    with warnings.catch_warnings(action="ignore", category=infocap.errors.DataWarning):
        x = device.system(u, seed=1)
        repeats = device.system(u, seed=2)
        return infocap.estimate(u, x, device.basis, repeats=repeats, **options)


def main(folder: Path = OUTPUT, quick: bool = False) -> None:
    """Measure all devices, and write their cards and the gallery."""
    folder.mkdir(parents=True, exist_ok=True)
    for device in all_devices(quick):
        result = measure(device, n_samples=512 if quick else 4096)
        print(f"{device.name}: {result.total:.2f} of {result.maximum}", flush=True)
        about = {"what": device.description}
        if device.cost:
            about["cost per inference"] = device.cost
        infocap.report.card(result, folder / f"{device.file}.html", device.name, about)
    infocap.report.gallery(folder, folder / "index.html")
    print(f"Written: {folder / 'index.html'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples and functions")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER", default=OUTPUT, help="where the pages go"
    )
    arguments = parser.parse_args()
    main(arguments.output, arguments.quick)
