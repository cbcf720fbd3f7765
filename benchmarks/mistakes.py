"""Mistakes that labs make, each on several devices: which are noticed, and whether the right cause is named.

``python benchmarks/mistakes.py --write`` takes two minutes.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import infocap
from _common import run_tables
from infocap.systems import FeedForward, RandomFeatures

Array = np.ndarray
Data = tuple[Array, Array]


class Device:
    """A device with noise: inputs in their order of acquisition, readouts, and what a mistake needs to measure anew."""

    def __init__(
        self,
        name: str,
        basis: infocap.ProductBasis,
        system: Callable,
        n: int,
        noise: float,
        seed: int,
    ) -> None:
        self.name, self.basis, self.system, self.noise, self.n = name, basis, system, noise, n
        self.generator = np.random.default_rng(seed)
        self.u = infocap.draw(basis, n, seed=seed)
        self.x = self.measure(self.u)

    def measure(self, u: Array) -> Array:
        """Readouts at these inputs, with fresh noise."""
        clean = self.system(u)
        return clean + self.noise * self.generator.standard_normal(clean.shape)


def legendre(q: int, degree: int, **options: object) -> infocap.ProductBasis:
    return infocap.product_basis("legendre", q, degree, **options)


def interferometers(u: Array) -> Array:
    g = np.random.default_rng(3)
    return 1 + np.cos(2.2 * u @ g.standard_normal((3, 40)) + 2 * np.pi * g.random(40))


def devices() -> list[Device]:
    volts = RandomFeatures(1, 16, gain=0.6, seed=8)
    return [
        Device("tanh units", legendre(2, 14), RandomFeatures(2, 30, seed=5), 4096, 1e-3, 3),
        Device("interferometers", legendre(3, 7), interferometers, 8192, 1e-2, 4),
        Device("two layers", legendre(4, 5), FeedForward(4, (20, 24), seed=62), 2048, 3e-3, 5),
        Device("volts", legendre(1, 12, domain=(0, 5)), lambda u: volts(u) * 3 + 4, 1024, 2e-3, 6),
    ]


def previous(a: Array, lag: int = 1) -> Array:
    return np.roll(a, lag, axis=0)


def some(d: Device, shape: object, share: float) -> Array:
    return d.generator.random(shape) < share


def slip(d: Device, start: float, stop: float, lag: int) -> Data:
    x, rows = d.x.copy(), slice(int(start * d.n), int(stop * d.n))
    x[rows] = previous(d.x, lag)[rows]
    return d.u, x


def network(d: Device) -> Data:
    """An echo-state network driven by the inputs."""
    g = np.random.default_rng(1)
    w = g.standard_normal((30, 30)) * 0.9 / np.sqrt(30)
    v, state, out = g.standard_normal((d.u.shape[1], 30)), np.zeros(30), np.empty((d.n, 30))
    middle, scale = d.u.mean(axis=0), d.u.std(axis=0)
    for t, u in enumerate((d.u - middle) / scale):
        state = np.tanh(state @ w + 0.5 * u @ v)
        out[t] = state
    return d.u, out + d.noise * g.standard_normal(out.shape)


def cells(d: Device, value: float, share: float) -> Data:
    return d.u, np.where(some(d, d.x.shape, share), value, d.x)


def glitched(d: Device, how: Callable[[Array], Array]) -> Data:
    x, rows = d.x.copy(), d.generator.choice(d.n, 10, replace=False)
    x[rows] = how(x[rows])
    return d.u, x


def stale(d: Device, share: float) -> Data:
    x = d.x.copy()
    for row in np.flatnonzero(some(d, d.n, share))[1:]:
        x[row] = x[row - 1]
    return d.u, x


def clipped(d: Device) -> Data:
    low, high = np.quantile(d.x, [0.1, 0.85])
    return d.u, np.clip(d.x, low, high) + 1e-4 * d.generator.standard_normal(d.x.shape)


def wrapped(d: Device) -> Data:
    high = np.quantile(d.x, 0.985, axis=0)
    span = high - d.x.min(axis=0)
    return d.u, np.where(d.x > high, d.x - span, d.x)


def coarse(d: Device, bits: int) -> Data:
    step = np.ptp(d.x) / 2**bits
    return d.u, np.round(d.x / step) * step


def linear(d: Device) -> Data:
    """A nearly linear device behind a converter of 8 bits."""
    g = np.random.default_rng(2)
    w = g.standard_normal((d.u.shape[1], 12))
    x = d.u @ w + 0.01 * np.tanh(d.u @ w * 2) + 1e-5 * g.standard_normal((d.n, 12))
    step = np.ptp(x) / 256
    return d.u, np.round(x / step) * step


def gain(d: Device, factor: float) -> Data:
    low, high = d.basis.families[0].domain
    middle = (low + high) / 2
    return middle + factor * (d.u - middle), d.x


def hum(d: Device, size: float) -> Data:
    phase = 2 * np.pi * d.generator.random(d.x.shape[1])
    return d.u, d.x + size * d.x.std() * np.sin(
        2 * np.pi * np.arange(d.n)[:, None] * 0.0517 + phase
    )


def squeezed(d: Device) -> Data:
    """Inputs of a Beta distribution over the right range."""
    low, high = d.basis.families[0].domain
    u = low + (high - low) * d.generator.beta(1.6, 1.6, d.u.shape)
    return u, d.measure(u)


def together(d: Device) -> Data:
    """Two inputs that are correlated."""
    u = d.u.copy()
    copied = some(d, d.n, 0.3)
    u[copied, -1] = u[copied, 0]
    return u, d.measure(u)


def unshuffled(d: Device) -> Data:
    """Sobol points in their own order, sent to a device with memory."""
    from scipy.stats import qmc

    low, high = d.basis.families[0].domain
    u = low + (high - low) * qmc.Sobol(d.u.shape[1], rng=1).random(d.n)
    return u, d.measure(u) * 0.7 + 0.3 * previous(d.measure(u))


def thousands(d: Device) -> Data:
    """Counts written as "1,234" beside "987", in a table with semicolons, read with a decimal comma."""
    scaled = (d.x - d.x.min()) / np.ptp(d.x)
    counts = np.round(300 + 2500 * scaled).astype(int)
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.csv")
        names = [f"u{k + 1}" for k in range(d.u.shape[1])] + [
            f"x{k + 1}" for k in range(counts.shape[1])
        ]
        rows = [
            ";".join([*(f"{v:.9f}".replace(".", ",") for v in u), *(f"{v:,}" for v in x)])
            for u, x in zip(d.u, counts, strict=True)
        ]
        path.write_text("\n".join([";".join(names), *rows]), encoding="utf-8")
        recording = infocap.read(path)
    return recording.inputs, recording.readouts


def with_column(d: Device, column: Array) -> Data:
    return d.u, np.column_stack([d.x, column])


def another(d: Device) -> Data:
    return infocap.draw(d.basis, d.n, seed=99), d.x


def shuffled_input(d: Device) -> Data:
    return np.column_stack([d.generator.permutation(d.u[:, 0]), d.u[:, 1:]]), d.x


def disconnected(d: Device) -> Data:
    u = d.u.copy()
    u[:, -1] = u[:, -1].mean()
    return d.u, d.measure(u)


# The number of the kind of mistake, what is done, the causes that name it, and the fewest inputs that it needs.
MISTAKES: list[tuple[int, str, Callable[[Device], Data], set[str], int]] = [
    (1, "memory: u + 0.1 u before", lambda d: (d.u, d.measure(d.u + 0.1 * (previous(d.u) - d.u.mean()))), {"memory"}, 1),
    (1, "memory: u + 0.3 u before", lambda d: (d.u, d.measure(d.u + 0.3 * (previous(d.u) - d.u.mean()))), {"memory"}, 1),
    (1, "echo-state network", network, {"memory"}, 1),
    (1, "30 % of the shot before", lambda d: (d.u, 0.7 * d.x + 0.3 * previous(d.x)), {"memory"}, 1),
    (2, "slow lock-in", lambda d: (d.u, 0.8 * d.x + 0.2 * previous(d.x)), {"memory"}, 1),
    (3, "Sobol order and memory", unshuffled, {"order of inputs", "memory"}, 1),
    (4, "slip in half of the run", lambda d: slip(d, 0.27, 0.73, 1), {"shift"}, 1),
    (4, "slip in a tenth of the run", lambda d: slip(d, 0.37, 0.47, 1), {"shift"}, 1),
    (4, "slip of two", lambda d: slip(d, 0.27, 0.73, 2), {"shift"}, 1),
    (5, "slip of 7 throughout", lambda d: slip(d, 0, 1, 7), {"shift"}, 1),
    (5, "rows reversed", lambda d: (d.u, d.x[::-1]), {"shift"}, 1),
    (6, "half the channels late", lambda d: (d.u, np.hstack([d.x[:, ::2], previous(d.x[:, 1::2])])), {"late channels"}, 1),
    (7, "inputs of another seed", another, {"nothing"}, 1),
    (8, "a cell of 9.91E37", lambda d: (d.u, _cell(d, 9.91e37)), {"codes"}, 1),
    (8, "-9999 in 0.1 % of the cells", lambda d: cells(d, -9999.0, 1e-3), {"codes"}, 1),
    (8, "65535 in 0.1 % of the cells", lambda d: cells(d, 65535.0, 1e-3), {"codes"}, 1),
    (8, "-777 in 0.1 % of the cells", lambda d: cells(d, -777.0, 1e-3), {"codes", "glitches"}, 1),
    (9, "ten glitched shots", lambda d: glitched(d, lambda x: x + x.std() * d.generator.standard_normal(x.shape)), {"glitches"}, 1),
    (9, "ten dark shots", lambda d: glitched(d, lambda x: 0 * x - x.std()), {"glitches"}, 1),
    (10, "stale buffer, 5 %", lambda d: stale(d, 0.05), {"stale"}, 1),
    (10, "stale buffer, 0.5 %", lambda d: stale(d, 0.01), {"stale"}, 1),
    (11, "clipped, then noise", clipped, {"clipped"}, 1),
    (12, "converter wraps around", wrapped, {"wrapped"}, 1),
    (12, "mV for V", lambda d: (d.u, np.where(some(d, d.x.shape, 0.2), 1000 * d.x, d.x)), {"units"}, 1),
    (13, "converter of 6 bits", lambda d: coarse(d, 6), {"rounded readouts"}, 1),
    (13, "8 bits, nearly linear", linear, {"rounded readouts"}, 1),
    (14, "inputs with one decimal", lambda d: (np.round(d.u, 1), d.x), {"rounded inputs"}, 1),
    (14, "inputs with a gain of 0.92", lambda d: gain(d, 0.92), {"domain"}, 1),
    (15, "an input shuffled", shuffled_input, {"no effect"}, 2),
    (15, "a source not connected", disconnected, {"no effect"}, 2),
    (16, "data stacked twice", lambda d: (np.vstack([d.u, d.u]), np.vstack([d.x, d.x])), {"stacked"}, 1),
    (16, "repeats as rows", lambda d: (np.vstack([d.u, d.u]), np.vstack([d.x, d.measure(d.u)])), {"repeats"}, 1),
    (17, "hum of 1 %", lambda d: hum(d, 0.01), {"hum"}, 1),
    (18, "half of the domain", lambda d: gain(d, 0.5), {"domain"}, 1),
    (18, "Beta inputs", squeezed, {"shape of inputs"}, 1),
    (18, "correlated inputs", together, {"correlated inputs"}, 2),
    (19, "a counter", lambda d: with_column(d, np.arange(d.n)), {"no readout"}, 1),
    (19, "a temperature", lambda d: with_column(d, 20 + 0.01 * np.cumsum(d.generator.standard_normal(d.n))), {"no readout"}, 1),
    (20, "thousands separators", thousands, {"units"}, 1),
    (21, "source off for a while", lambda d: (d.u, _off(d)), {"gap"}, 1),
    (21, "gain changes by 5 % in the middle", lambda d: (d.u, d.x * np.where(np.arange(d.n) < d.n // 2, 1, 1.05)[:, None]), {"unsteady", "drift"}, 1),
]  # fmt: skip


def _off(d: Device) -> Array:
    u = d.u.copy()
    u[int(0.4 * d.n) : int(0.5 * d.n)] = d.u.mean(axis=0)
    return d.measure(u)


def _cell(d: Device, value: float) -> Array:
    x = d.x.copy()
    x[d.n // 3, 2] = value
    return x


def noticed() -> list[str]:
    """Every mistake on every device: its causes by the checks."""
    measured = devices()
    names = [one.name for one in measured]
    lines = [f"| kind | mistake | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    kinds: dict[int, list[bool]] = {}
    silent = 0
    for kind, name, make, right, least in MISTAKES:
        cells = []
        for device in measured:
            if device.u.shape[1] < least:
                cells.append("–")
                continue
            u, x = make(device)
            found = infocap.diagnose(
                infocap.Recording(u, x, np.arange(len(u))), basis=device.basis
            ).checks
            causes = [str(one.found.get("cause", one))[:40] for one in found]
            named = bool(right & set(causes))
            silent += not causes
            kinds.setdefault(kind, []).append(named)
            others = sorted(set(causes) - right)
            cells.append(
                ("yes" if named else "**NO**") + (f" (and {', '.join(others)})" if others else "")
            )
        lines.append(f"| {kind} | {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    whole, tried = sum(all(one) for one in kinds.values()), sum(len(one) for one in kinds.values())
    found = sum(sum(one) for one in kinds.values())
    right = (
        f"{found} of {tried} mistakes were noticed with the right cause named, {silent} were silent"
    )
    return [
        *lines,
        "",
        f"{right}; {whole} of {len(kinds)} kinds on every device.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    tables = {"Noticed, with the right cause": partial(noticed)}
    run_tables("Mistakes that are noticed", "python benchmarks/mistakes.py", tables, options.write)


if __name__ == "__main__":
    main()
