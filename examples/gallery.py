"""A gallery of simulated devices, from photodiodes and qubits to networks and reservoirs, each with its capacity card.

Every device is measured as one would in the lab: inputs from a design, readouts with the noise of the device, and all
of it twice, so that noise can be told from functions outside the basis. Cards, and the page that compares them, lie in
``example-output/gallery``; put your own card beside them and give ``infocap gallery`` the folder again. The gallery of
the documentation is made by this script.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import infocap

sys.path.insert(0, str(Path(__file__).parent))  # where the devices of the other examples are
from photodiodes import PHOTONS, Photodiodes
from qubits import Qubits

OUTPUT = Path("example-output/gallery")


class Device(NamedTuple):
    """A device, what it is, which functions are asked for, and the steps in which it forgets its start."""

    file: str
    name: str
    what: str
    system: Callable[..., np.ndarray]
    basis: infocap.ProductBasis
    washout: int = 0
    cost: str = ""


def devices(small: bool = False) -> Iterator[Device]:
    """All devices of the gallery, asked for few functions if `small`."""
    two, three = (
        infocap.product_basis("legendre", 2, 4 if small else 10),
        infocap.product_basis("legendre", 3, 6),
    )
    for power in (-9.1, 1.0, 6.6):
        system = infocap.photonics.FibreSystem(
            power_dbm=power, length_m=40.0, n_inputs=2, tolerance=1e-3
        )
        what = "Picosecond pulse in 40 m of fibre, 71 spectral channels"
        cost = f"{10 ** (power / 10) / system.pulse.repetition_mhz:.2g} nJ of light"
        yield Device(
            f"fibre{power:+g}dBm",
            f"Fibre, {power:g} dBm".replace("-", "−"),
            what,
            system,
            two,
            cost=cost,
        )
    for gain in (0.3, 3.0):
        features = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=50, gain=gain, noise=0.01)
        yield Device(
            f"features-{gain:g}", f"Random features, gain {gain:g}", "50 tanh units", features, two
        )
    for depth in (1, 3):
        network = infocap.systems.FeedForward(3, [40] * depth, gain=1.5, bias=0.5, noise=0.01)
        name = f"Network of {depth} layer{'s' if depth > 1 else ''}"
        yield Device(
            f"network-{depth}", name, "40 tanh units per layer, random weights", network, three
        )
    for shots in (30, 3000):
        what, cost = "Two angles, random circuit, ten expectation values", f"{shots} shots"
        turns = infocap.product_basis("fourier", 2, 4)
        yield Device(
            f"qubits-{shots}", f"Four qubits, {shots} shots", what, Qubits(shots), turns, cost=cost
        )
    for light, power in (("weak", 0.001), ("strong", 0.5)):
        name, what = f"Photodiodes, {light} light", "Three beams, scattering plate, 32 detectors"
        cost = f"{32 * PHOTONS * power / 1e6:.2g} million photons"
        yield Device(f"photodiodes-{light}", name, what, Photodiodes(power), three, cost=cost)
    past = infocap.delayed_basis(max_delay={1: 10, 2: 4} if small else {1: 60, 2: 20, 3: 8, 4: 4})
    for scale in (0.1, 1.0):
        echo = infocap.systems.EchoState(50, radius=0.9, input_scale=scale, bias=0.2, noise=1e-3)
        name, what = f"Echo state network, drive {scale:g}", "50 tanh nodes, spectral radius 0.9"
        yield Device(f"echo-state-{scale:g}", name, what, echo, past, 300)
    for kind in ("mackey-glass", "ikeda"):
        delay = infocap.systems.DelayReservoir(50, kind, feedback=0.9, input_scale=0.3, noise=1e-4)
        name, what = (
            f"Delay reservoir, {kind.title()}",
            "One nonlinear node with feedback, 50 virtual nodes",
        )
        yield Device(f"delay-{kind}", name, what, delay, past, 300)
    line = infocap.systems.DelayLine(20, noise=1e-3)
    yield Device("delay-line", "Delay line", "20 taps, all linear", line, past, 300)


def measure(device: Device, n_samples: int) -> infocap.CapacityResult:
    """Measure the same inputs twice, and find all that the readouts tell."""
    u = infocap.draw(device.basis, n_samples + device.washout, seed=1)
    options: dict[str, Any] = {"washout": device.washout} if device.basis.memory else {}
    with warnings.catch_warnings(
        action="ignore", category=infocap.errors.DataWarning
    ):  # they stand on the card
        repeats = device.system(u, seed=2)
        return infocap.estimate(
            u, device.system(u, seed=1), device.basis, repeats=repeats, **options
        )


def main(folder: Path = OUTPUT, quick: bool = False) -> None:
    """Measure all devices, and write their cards and the gallery."""
    folder.mkdir(parents=True, exist_ok=True)
    for device in devices(small=quick):
        result = measure(device, 512 if quick else 4096)
        print(f"{device.name}: {result.total:.2f} of {result.maximum}", flush=True)
        about = (
            {"what": device.what, "cost per inference": device.cost}
            if device.cost
            else {"what": device.what}
        )
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
    chosen = parser.parse_args()
    main(chosen.output, chosen.quick)
