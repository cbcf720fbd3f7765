"""Sequences: do error bars hold, how far off are totals, and how fast is it against ipc-module.

``python benchmarks/sequences.py --write`` takes about half an hour on one busy core and keeps the tables in RESULTS.md;
without ``--write`` it prints them; ``--quick`` takes few data sets. ``--excursions`` asks instead whether totals hold, or
are flagged, where readouts make rare large excursions (``--processes 16``: three minutes). The tables against ipc-module need it installed
(``pip install ipc-module``), and are left out otherwise.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.linalg import solve_discrete_lyapunov
from scipy.signal import lfilter

import infocap
from _common import is_about_data, run_tables
from _excursions import WITH_EXCURSIONS, WITHOUT_EXCURSIONS, Device

N, WASHOUT = 2000, 200
Windows = tuple[tuple[int, int], ...]


def coloured(rng: np.random.Generator, shape: tuple[int, ...], slow: float) -> np.ndarray:
    """Normal noise of variance 1 with autocorrelation slow^k along axis 1."""
    white = rng.standard_normal((shape[0], shape[1] + 300, *shape[2:])) * np.sqrt(1 - slow**2)
    return lfilter([1.0], [1.0, -slow], white, axis=1)[:, 300:]


@dataclass(frozen=True)
class Linear:
    """x[t] = a x[t-1] + b u[t], with noise on the readouts or in the state; its capacities are known exactly."""

    name: str
    n_nodes: int = 10
    radius: float = 0.9
    noise: float = 0.2
    slow: float = 0.0
    in_state: bool = False
    max_delay: tuple[tuple[int, int], ...] = ((1, 40), (2, 8))

    @cached_property
    def basis(self) -> infocap.DelayedBasis:
        """The functions whose capacities are asked for."""
        return infocap.delayed_basis("legendre", max_delay=dict(self.max_delay))

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """a, b and the covariance of the readouts without noise."""
        rng = np.random.default_rng(0)
        a = rng.standard_normal((self.n_nodes,) * 2) if self.n_nodes > 1 else np.ones((1, 1))
        a, b = (
            a * self.radius / np.abs(np.linalg.eigvals(a)).max(),
            rng.standard_normal(self.n_nodes),
        )
        return a, b, solve_discrete_lyapunov(a, np.outer(b, b))

    def __call__(self, u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Readouts (sets, steps, nodes) for sequences u (sets, steps)."""
        a, b, g = self.weights
        x, state = np.empty((*u.shape, len(b))), np.zeros((len(u), len(b)))
        size = self.noise * np.sqrt(np.diag(g))
        for t in range(u.shape[1]):
            state = state @ a.T + np.sqrt(3) * u[:, t, None] * b
            if self.in_state:
                state = state + size * rng.standard_normal(state.shape)
            x[:, t] = state
        return x if self.in_state else x + size * coloured(rng, x.shape, self.slow)

    @cached_property
    def exact(self) -> np.ndarray:
        """Capacities of all functions of the basis."""
        a, b, g = self.weights
        noise = np.diag(self.noise**2 * np.diag(g))
        g = g + (solve_discrete_lyapunov(a, noise) if self.in_state else noise)
        out = np.zeros(len(self.basis))
        out[0] = 1.0
        for place in np.flatnonzero(self.basis.degrees == 1).tolist():
            out[place] = b @ np.linalg.solve(g, b)
            b = a @ b
        return out


@dataclass(frozen=True)
class Polynomial(Linear):
    """Readouts that mix thirty random functions of delays up to 8, degrees 1 to 3."""

    max_delay: tuple[tuple[int, int], ...] = ((1, 20), (2, 8), (3, 4))
    active: int = 30

    @cached_property
    def mixing(self) -> np.ndarray:
        """Coefficients (functions, readouts)."""
        rng, basis = np.random.default_rng(1), self.basis
        near = np.flatnonzero((basis.degrees > 0) & (basis.largest_delays <= 8))
        out = np.zeros((len(basis), self.n_nodes))
        out[rng.choice(near, self.active, replace=False)] = rng.standard_normal(
            (self.active, self.n_nodes)
        )
        return out / np.sqrt(np.sum(out**2, axis=0))

    def __call__(self, u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Readouts (sets, steps, nodes) for sequences u (sets, steps)."""
        x = np.zeros((*u.shape, self.n_nodes))
        for one, inputs in zip(x, u, strict=True):
            one[self.basis.memory :] = self.basis(inputs[:, None]) @ self.mixing
        return x + self.noise * coloured(rng, x.shape, self.slow)

    @cached_property
    def exact(self) -> np.ndarray:
        """Capacities of all functions of the basis."""
        c = self.mixing
        g = c.T @ c + self.noise**2 * np.eye(self.n_nodes)
        out = np.einsum("ij,ij->i", c, np.linalg.solve(g, c.T).T)
        out[0] = 1.0
        return out


@dataclass(frozen=True)
class Network(Linear):
    """An echo-state network of tanh nodes; its capacities come from 400 long runs."""

    n_nodes: int = 20
    noise: float = 0.01
    scale: float = 0.5

    def __call__(self, u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Readouts (sets, steps, nodes) for sequences u (sets, steps)."""
        a, b, _ = self.weights
        x, state = np.empty((*u.shape, len(b))), np.zeros((len(u), len(b)))
        for t in range(u.shape[1]):
            state = x[:, t] = np.tanh(state @ a.T + self.scale * u[:, t, None] * b)
        return x + self.noise * rng.standard_normal(x.shape)

    @cached_property
    def exact(self) -> np.ndarray:
        """Capacities of all functions of the basis."""
        rng = np.random.default_rng(99)
        u = rng.uniform(-1, 1, (100, WASHOUT + 4000))
        result = infocap.estimate(
            list(u[:, :, None]), list(self(u, rng)), self.basis, washout=WASHOUT
        )
        return result.unbiased


NINE = [
    Linear("linear K = 10, white noise 20 %"),
    Linear("same, AR(.95) noise", slow=0.95),
    Linear("same, noise in the state", in_state=True),
    Linear("same, delays up to 10 only", max_delay=((1, 10), (2, 9))),
    Linear(
        "slow K = 1, a = .97, white 30 %",
        n_nodes=1,
        radius=0.97,
        noise=0.3,
        max_delay=((1, 60), (2, 8)),
    ),
    Linear(
        "same, AR(.97) noise",
        n_nodes=1,
        radius=0.97,
        noise=0.3,
        slow=0.97,
        max_delay=((1, 60), (2, 8)),
    ),
    Polynomial("polynomial K = 10, white 100 %", noise=1.0),
    Polynomial("same, AR(.95) noise", noise=1.0, slow=0.95),
    Network("echo-state network K = 20", max_delay=((1, 25), (2, 8), (3, 4))),
]


# With fewer than eight samples per function least squares is not possible: the fall-back, from 48 times the memory on.
WIDE, LONG = ((1, 20), (2, 12), (3, 8)), ((1, 60), (2, 20), (3, 8))
FEW = [
    (Linear("linear K = 10, white noise 20 %", max_delay=WIDE), (1000, 2000)),
    (Linear("same, AR(.95) noise", slow=0.95, max_delay=WIDE), (1000, 2000)),
    (Linear("same, noise in the state", in_state=True, max_delay=WIDE), (1000, 2000)),
    (
        Linear("slow K = 1, a = .97, AR(.97) noise 30 %", 1, 0.97, 0.3, 0.97, max_delay=LONG),
        (3000,),
    ),
    (Polynomial("polynomial K = 10, white 100 %", noise=1.0, max_delay=WIDE), (1000, 2000)),
    (Polynomial("same, AR(.95) noise", noise=1.0, slow=0.95, max_delay=WIDE), (1000, 2000)),
    (Network("echo-state network K = 20", max_delay=WIDE), (1000, 2000)),
]


def data_sets(system: Linear, n: int, sets: int, seed: int) -> list[infocap.CapacityResult]:
    """Results of so many independent sequences of n samples after the washout."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, (sets, WASHOUT + n))
    pairs = zip(u, system(u, rng), strict=True)
    return [infocap.estimate(inputs, x, system.basis, washout=WASHOUT) for inputs, x in pairs]


def error_bars(sets: int, jobs: list[tuple[Linear, int]]) -> list[str]:
    """How often 95 % intervals hold."""
    lines = [
        f"{sets} data sets. Share of 95 % intervals that hold, of single capacities above .002 and of the total; "
        "bias of the total in mean error bars; false positives of functions without capacity at 1 %, relative to 1 %.",
        "",
        "| system | N | functions | total | singles | total | bias / bar | bar | false at 1 % | at 5 % |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for place, (system, n) in enumerate(jobs):
        found, truth = data_sets(system, n, sets, place), system.exact
        shown, null = (
            np.flatnonzero(truth > 0.002)[1:],
            truth < (2e-4 if isinstance(system, Network) else 1e-12),
        )
        inside = [
            np.abs(one.unbiased - truth)[shown] < 1.96 * one.standard_error[shown] for one in found
        ]
        totals = np.array([one.total for one in found]) - truth.sum()
        bars = np.array([one.total_standard_error for one in found])
        rates = [
            np.mean([np.mean(one.p_value[null] < p) for one in found]) / p for p in (0.01, 0.05)
        ]
        rates = ["-" if not null.any() else f"{rate:.2f}" for rate in rates]
        cells = [
            system.name,
            str(n),
            str(len(truth)),
            f"{truth.sum():.3f}",
            f"{np.mean(inside):.3f}",
        ]
        cells += [
            f"{np.mean(np.abs(totals) < 1.96 * bars):.2f}",
            f"{totals.mean() / bars.mean():+.2f}",
        ]
        lines.append("| " + " | ".join([*cells, f"{bars.mean():.3f}", *rates]) + " |")
        print(lines[-1], flush=True)
    return lines


# What the table of excursions has to show; set before it was first run.
LEAST_HELD_OR_FLAGGED, MOST_SILENT, MOST_FALSE_FLAGS = 0.90, 0.03, 0.10
# A basis of so many functions that N = 1000 and 2000 make fewer than eight samples per function.
WIDE_WINDOWS = ((1, 20), (2, 12), (3, 8))


def one_data_set(device: Device, n: int, seed: int) -> tuple[float, ...]:
    """Error and bar of a total, whether it is flagged, and how singles and p-values do.

    A total is flagged if the result calls it unreliable. A finding about the data counts only against devices without
    excursions: there it is a false alarm, and elsewhere the right warning for a wrong reason.
    """
    rng = np.random.default_rng([seed, n])
    washout = device.basis.memory + 20
    u = device.draw(rng, 1, washout + n)
    x = device(u, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = infocap.estimate(u[0], x[0], device.basis, washout=washout)
    truth = device.exact
    shown = (truth > 0.002) & (truth < 0.999)
    held = np.abs(found.unbiased - truth)[shown] < 1.96 * found.standard_error[shown]
    null = truth < 1e-12
    false = np.mean(found.p_value[null] < 0.01) / 0.01 if null.any() else np.nan
    reasons = [check for check in found.warnings if check.found.get("unreliable")]
    if device.name not in _names(WITHOUT_EXCURSIONS):
        reasons = [check for check in reasons if not is_about_data(check)]
    flagged = bool(reasons)
    error = found.total - truth.sum()
    return error, found.total_standard_error, flagged, np.mean(held), false


def excursions(sets: int, sizes: tuple[int, ...], windows: Windows, processes: int) -> list[str]:
    """How often totals hold, are flagged, or miss in silence."""
    lines = [
        f"{sets} sequences. Hold: 95 % intervals of totals; held or flagged: that, or called unreliable by the result; silent: neither; "
        "rms error and mean error bar of the total; share of 95 % intervals of single capacities that hold; false "
        "positives at 1 %, relative to 1 %. Devices below the first line make no rare large excursions.",
        "",
        "| device | N | hold | held or flagged | silent | flagged | bias | rms | bar | singles | false at 1 % |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    silent_of_rare, held_of_rare, false_flags = [], [], []
    with ProcessPoolExecutor(processes) as pool:
        for device in [*WITH_EXCURSIONS, None, *WITHOUT_EXCURSIONS]:
            if device is None:
                lines.append("| |" + " |" * 10)
                continue
            if windows:
                device = replace(device, max_delay=windows)
            for n in sizes:
                job = partial(one_data_set, device, n)
                rows = np.array(list(pool.map(job, range(sets), chunksize=4)), dtype=float)
                error, bar, flagged, singles, false = rows.T
                held = np.abs(error) < 1.96 * bar
                silent = np.mean(~held & (flagged == 0))
                if device.name in _names(WITHOUT_EXCURSIONS):
                    false_flags.append(flagged.mean())
                else:
                    silent_of_rare.append(silent)
                    held_of_rare.append(np.mean(held | (flagged == 1)))
                cells = [device.name, str(n), f"{held.mean():.2f}"]
                cells += [f"{1 - silent:.2f}", f"{silent:.2f}", f"{flagged.mean():.2f}"]
                cells += [f"{error.mean():+.3f}", f"{np.sqrt(np.mean(error**2)):.3f}"]
                cells += [f"{bar.mean():.3f}", f"{singles.mean():.3f}", f"{np.mean(false):.2f}"]
                lines.append("| " + " | ".join(cells) + " |")
                print(lines[-1], flush=True)
    lines += [
        "",
        f"With excursions: held or flagged in at least {min(held_of_rare):.2f} (asked {LEAST_HELD_OR_FLAGGED}), silent in "
        f"{np.mean(silent_of_rare):.3f} on average and at most {max(silent_of_rare):.2f} (asked {MOST_SILENT}). Without: "
        f"flagged in {np.mean(false_flags):.3f} on average and at most {max(false_flags):.2f} (asked {MOST_FALSE_FLAGS}).",
    ]
    return lines


def _names(devices: list[Device]) -> set[str]:
    return {device.name for device in devices}


def accuracy(sets: int) -> list[str]:
    """Errors at equal N of what other programs report, and of ours."""
    lines = [
        f"Root mean square error over all functions; error of the total, mean (root mean square); {sets} data sets. "
        "Surrogate: the field's rule, capacities above the largest of 200 shuffles, and the constant.",
        "",
        "| system | N | raw | chi2 | surrogate | Algorithm 1 | control variates | bar of the total | it holds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    methods = ("raw", "chi2", "surrogate", "threshold-richardson", "control-variate")
    for system, sizes in COMPARED:
        for n in sizes:
            rng = np.random.default_rng(n)
            u = rng.uniform(-1, 1, (sets, WASHOUT + n))
            found: dict[str, list[infocap.CapacityResult]] = {name: [] for name in methods}
            for inputs, x in zip(u, system(u, rng), strict=True):
                seen = infocap.estimators.gather_evidence(inputs, x, system.basis, washout=WASHOUT)
                for name in methods:
                    found[name].append(infocap.estimators.conclude(seen, name))
            cells = [
                f"{system.name}, {len(system.basis)} functions, {system.exact.sum():.2f}",
                str(n),
            ]
            for results in found.values():
                values = np.array([one.capacity for one in results])
                off = (
                    np.array([one.total + 1 - one.capacity[0] for one in results])
                    - system.exact.sum()
                )
                error = np.sqrt(np.mean((values[:, 1:] - system.exact[1:]) ** 2))
                cells.append(f"{error:.4f}, {off.mean():+.2f} ({np.sqrt(np.mean(off**2)):.2f})")
            bars = np.array([one.total_standard_error for one in results])
            cells += [f"{bars.mean():.3f}", f"{np.mean(np.abs(off) < 1.96 * bars):.2f}"]
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    return lines


def like_ipc_module(
    u: np.ndarray, x: np.ndarray, basis: infocap.DelayedBasis, washout: int
) -> np.ndarray:
    """Our raw capacities as ipc-module defines them: without the constant, over the sample's own mean of y²."""
    result = infocap.estimate(u, x, basis, washout=washout, method="raw")
    y = basis(u[washout - basis.memory :, None])
    return (result.raw - y.mean(axis=0) ** 2) / np.mean(y**2, axis=0)


def of_ipc_module(
    u: np.ndarray, x: np.ndarray, windows: dict[int, int], washout: int, **options: int
) -> dict:
    """Capacities of ipc-module by their labels."""
    from ipc_module.profiler import UnivariateProfiler

    profiler = UnivariateProfiler(u[:, None], x, poly_name="Legendre", offset=washout, **options)
    profiler.calc(list(windows), [delay + 1 for delay in windows.values()])
    found = {}
    for degrees, (delays, base, _) in profiler.items():
        for delay, value in zip(delays, np.ravel(base), strict=True):
            factors = sorted(zip(delay, degrees, strict=True))
            label = "·".join(
                f"P{degree}(u[t-{one}])" if one else f"P{degree}(u[t])" for one, degree in factors
            )
            found[label] = float(value)
    return found


def agreement() -> list[str]:
    """The largest difference of raw capacities from those of ipc-module."""
    lines = ["| system | functions | largest difference |", "|---|---|---|"]
    windows, washout, n = {1: 20, 2: 8, 3: 5}, 50, 3000
    basis = infocap.delayed_basis(max_delay=windows)
    for system in (NINE[0], NINE[7], NINE[8]):
        rng = np.random.default_rng(1)
        u = rng.uniform(-1, 1, (1, n))
        x = system(u, rng)[0]
        theirs, ours = (
            of_ipc_module(u[0], x, windows, washout, surrogate_num=1),
            like_ipc_module(u[0], x, basis, washout),
        )
        worst = max(abs(ours[basis.labels.index(label)] - value) for label, value in theirs.items())
        assert len(theirs) == len(basis) - 1
        assert worst < 1e-10
        lines.append(f"| {system.name} | {len(theirs)} | {worst:.1e} |")
    return lines


def speed() -> list[str]:
    """Processor time on one thread, side by side."""
    lines = [
        "Seconds of processor time on one thread; product: the bare matrix product of all functions, given, with all "
        "readouts, from a tenth of the functions. ipc-module with its default of 1000 surrogates, with 1 in brackets.",
        "",
        "| job | functions | plan | raw capacities | product | ratio | ipc-module | ratio | control variates |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rng = np.random.default_rng(0)
    for n, k, windows, others in (
        (50_000, 100, {1: 200, 2: 100}, True),
        (30_000, 100, {1: 300, 2: 300}, False),
    ):
        start = time.process_time()
        basis = infocap.delayed_basis(max_delay=windows)
        plan, washout = time.process_time() - start, basis.memory
        u, x = rng.uniform(-1, 1, n + washout), rng.standard_normal((n + washout, k))
        ours = used(infocap.estimate, u, x, basis, method="raw")
        y = rng.standard_normal((len(basis) // 10, n))
        bare = 10 * used(np.matmul, y, x[:n])
        cells = [
            f"N = {n}, K = {k}, {windows}",
            str(len(basis)),
            f"{plan:.2f}",
            f"{ours:.2f}",
            f"{bare:.2f}",
        ]
        cells.append(f"{bare / ours:.1f}")
        if others:
            most, least = (
                used(of_ipc_module, u, x, windows, washout, surrogate_num=count)
                for count in (1000, 1)
            )
            cells += [f"{most:.1f} ({least:.1f})", f"{most / ours:.0f} ({least / ours:.0f})"]
        else:
            cells += ["", ""]
        small = infocap.delayed_basis(max_delay={1: 100, 2: 30})
        cells.append(f"{used(infocap.estimate, u, x, small):.1f} ({len(small)} functions)")
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def used(job: Callable[..., object], *given: object, **options: object) -> float:
    """Processor time of the faster of two calls."""
    times = []
    for _ in range(2):
        start = time.process_time()
        job(*given, **options)
        times.append(time.process_time() - start)
    return min(times)


COMPARED = [
    (
        Linear("linear K = 20, 3 % noise", 20, noise=0.03, max_delay=((1, 60), (2, 18), (3, 1))),
        (1000, 4000),
    ),
    (
        Polynomial(
            "polynomial K = 20, 30 % noise",
            20,
            noise=0.3,
            max_delay=((1, 40), (2, 15), (3, 5)),
            active=60,
        ),
        (300, 1000, 4000),
    ),
    (
        Network(
            "echo-state network K = 50",
            50,
            noise=0.01,
            max_delay=((1, 60), (2, 15), (3, 6), (4, 4)),
        ),
        (400, 1000, 4000, 16000),
    ),
]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--few", action="store_true", help="with 2 to 7 samples per function instead"
    )
    parser.add_argument("--excursions", action="store_true", help="rare large readouts instead")
    parser.add_argument("--sets", type=int, help="number of sequences for --excursions")
    parser.add_argument("--processes", type=int, default=1, help="for --excursions")
    given = parser.parse_args()
    sets = 12 if given.quick else 120
    tables: dict[str, Callable[[], list[str]]] = {
        "Error bars": partial(error_bars, sets, [(one, N) for one in NINE])
    }
    if importlib.util.find_spec("ipc_module"):
        tables |= {"Against ipc-module": agreement, "Speed": speed}
    tables["Accuracy"] = partial(accuracy, 3 if given.quick else 12)
    title, command = "Sequences", "python benchmarks/sequences.py"
    if given.few:
        title, command = "Sequences with few samples per function", f"{command} --few"
        tables = {
            "Error bars": partial(
                error_bars, sets // 2, [(one, n) for one, sizes in FEW for n in sizes]
            )
        }
    if given.excursions:
        title, command = "Sequences with rare excursions", f"{command} --excursions"
        n_sets = given.sets or (20 if given.quick else 100)
        tables = {
            "Many samples per function": partial(
                excursions, n_sets, (1000, 2000, 4000, 8000), (), given.processes
            ),
            "Fewer than eight samples per function": partial(
                excursions, n_sets, (1000, 2000), WIDE_WINDOWS, given.processes
            ),
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", infocap.errors.DataWarning)
        run_tables(title, command, tables, given.write)


if __name__ == "__main__":
    main()
