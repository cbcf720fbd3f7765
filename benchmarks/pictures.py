"""The pictures of docs/estimators.md (error against N, calibration, false and missed functions), of docs/howto/share.md
and of docs/explained/principle.md (one for each test of the data).

``python benchmarks/pictures.py`` takes some ten minutes on one core and writes docs/images/estimators-*.png, report.png,
demand-supply.png and principle-*.png; ``--only principle`` takes some seconds.
"""

from __future__ import annotations

import argparse
import shutil
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import infocap
from _truth import Known, features, mixture, spectral

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
IMAGES = Path(__file__).parents[1] / "docs" / "images"
METHODS = {
    "raw": ("raw", "#999999"),
    "Algorithm 1": ("threshold-richardson", "#D55E00"),
    "Algorithm 2": ("richardson-threshold", "#E69F00"),
    "control variate": ("control-variate", "#0072B2"),
}
STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.markersize": 3.5,
}
SIZES = 2 ** np.arange(8, 15)
PRINCIPLE_WIDTH_MM = 80


def systems() -> list[Known]:
    """A sparse noisy one, a smooth one without noise, and one like a spectrometer."""
    return [
        mixture(
            "mixture, 30 % noise", infocap.product_basis("legendre", 3, 6), 30, 15, 0.3, 0.0, 41
        ),
        features("tanh network, no noise", 3, 6, 30, 1.0, 0.0, 30, 42),
        spectral("spectrum, noise 1e-3", 10, 40, 1e-3, 60, 43),
    ]


def run(
    system: Known, n: int, design: str, method: str, count: int
) -> list[infocap.CapacityResult]:
    out = []
    for seed in range(count):
        u = infocap.draw(system.basis, n, design=design, seed=900 + seed)
        out.append(infocap.estimate(u, system(u, seed=[n, seed]), system.basis, method=method))
    return out


def error_against_n(count: int) -> None:
    figure, axes = plt.subplots(2, 3, figsize=(7.2, 4.6), sharex=True, layout="constrained")
    for column, system in enumerate(systems()):
        exact = system.capacity
        for label, (method, colour) in METHODS.items():
            for design, line in (("sobol", "-"), ("random", ":")):
                rms, total = [], []
                for n in SIZES.tolist():
                    found = run(system, n, design, method, count)
                    rms.append(np.sqrt(np.mean([(one.capacity - exact) ** 2 for one in found])))
                    total.append(
                        np.sqrt(np.mean([(one.total - exact.sum()) ** 2 for one in found]))
                    )
                name = label if design == "sobol" else None
                axes[0, column].loglog(SIZES, rms, line, marker="o", color=colour, label=name)
                axes[1, column].loglog(SIZES, total, line, marker="o", color=colour)
        if np.any(system.bound.variance > 0):
            bounds = [system.bound.at(n) for n in SIZES.tolist()]
            label = "no method can do better"
            axes[0, column].loglog(
                SIZES, [np.sqrt(np.mean(each**2)) for each, _ in bounds], "k--", lw=1, label=label
            )
            axes[1, column].loglog(SIZES, [total for _, total in bounds], "k--", lw=1)
        axes[0, column].set_title(
            f"{system.name}\n{len(exact)} functions, total {exact.sum():.1f}", fontsize=8
        )
        axes[1, column].set_xlabel("number of samples N")
    axes[0, 0].set_ylabel("rms error of a capacity")
    axes[1, 0].set_ylabel("rms error of the total")
    axes[0, 0].legend(fontsize=7)
    axes[0, 2].text(
        0.97,
        0.93,
        "solid: Sobol blocks\ndotted: random",
        transform=axes[0, 2].transAxes,
        fontsize=7,
        ha="right",
        va="top",
    )
    figure.savefig(IMAGES / "estimators-error.png", dpi=200)


def calibration(count: int) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.6), sharey=True, layout="constrained")
    levels = np.array([0.5, 0.68, 0.8, 0.9, 0.95, 0.99])
    colours = ("#0072B2", "#009E73", "#CC79A7")
    for system, colour in zip(systems(), colours, strict=True):
        exact = system.capacity
        active = exact > 1e-3
        for design, line in (("sobol", "-"), ("random", ":")):
            found = run(system, 1024, design, "control-variate", count)
            single, total = [], []
            for level in levels.tolist():
                bounds = np.array([one.interval(level)[active] for one in found])
                single.append(
                    np.mean((bounds[..., 0] <= exact[active]) & (exact[active] <= bounds[..., 1]))
                )
                ends = np.array([one.total_interval(level) for one in found])
                total.append(np.mean((ends[:, 0] <= exact.sum()) & (exact.sum() <= ends[:, 1])))
            name = f"{system.name}, {'Sobol blocks' if design == 'sobol' else 'random'}"
            axes[0].plot(levels, single, line, marker="o", color=colour, label=name)
            axes[1].plot(levels, total, line, marker="o", color=colour)
    for ax, title in zip(axes, ("capacities above 0.001", "the total"), strict=True):
        ax.plot([0.45, 1], [0.45, 1], color="black", linewidth=0.8)
        ax.set(xlabel="level of the interval", title=title, xlim=(0.45, 1), ylim=(0.45, 1.01))
    axes[0].set_ylabel(f"share that holds the truth\n({count} data sets of 1024 samples)")
    figure.legend(fontsize=7, loc="outside lower center", ncol=3)
    figure.savefig(IMAGES / "estimators-calibration.png", dpi=200)


def zeros(count: int) -> None:
    system = mixture("", infocap.product_basis("legendre", 3, 7), 40, 20, 2.0, 0.0, 44)
    exact = system.capacity
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.0), sharex=True, layout="constrained")
    sizes = 2 ** np.arange(8, 14)
    for label, (method, colour) in METHODS.items():
        if method == "raw":
            continue
        for design, line in (("sobol", "-"), ("random", ":")):
            false, missed = [], []
            for n in sizes.tolist():
                shown = np.array(
                    [one.capacity > 0 for one in run(system, n, design, method, count)]
                )
                false.append(
                    np.mean(
                        np.sum(shown & (exact < 1e-9), axis=1) / np.maximum(shown.sum(axis=1), 1)
                    )
                )
                missed.append(
                    np.mean(np.sum(~shown & (exact > 0.01), axis=1) / np.sum(exact > 0.01))
                )
            axes[0].semilogx(
                sizes,
                false,
                line,
                marker="o",
                color=colour,
                label=label if design == "sobol" else None,
            )
            axes[1].semilogx(sizes, missed, line, marker="o", color=colour)
    for ax in axes:
        ax.set_xticks(sizes, [str(n) for n in sizes.tolist()])
        ax.minorticks_off()
    axes[0].axhline(0.05, color="black", linewidth=0.8)
    axes[0].set(xlabel="number of samples N", ylabel="false among those shown", ylim=(0, None))
    axes[1].set(
        xlabel="number of samples N", ylabel="missed among those above 0.01", ylim=(0, None)
    )
    axes[0].legend(fontsize=7)
    axes[1].text(
        0.97,
        0.9,
        "solid: Sobol blocks, dotted: random",
        transform=axes[1].transAxes,
        fontsize=7,
        ha="right",
    )
    figure.savefig(IMAGES / "estimators-zeros.png", dpi=200)


def report(count: int) -> None:
    """Photograph the top of the report on a pulse in 40 m of fibre; `count` halves the samples when it is small."""
    from playwright.sync_api import sync_playwright

    n = 4096 if count > 1 else 1024
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=14)
    device = infocap.photonics.FibreSystem(power_dbm=4.5, length_m=40.0, n_inputs=2)
    u = infocap.draw(basis, n, seed=1)
    recording = infocap.Recording(u, device(u, seed=1), range(n), repeats=device(u, seed=2))
    text = infocap.report.page(
        infocap.estimate(recording, basis=basis), title="Fibre, 40 m at 4.5 dBm"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, BROWSERS)), None),
            args=["--no-sandbox"],
        )
        page = browser.new_page(viewport={"width": 1200, "height": 1030})
        page.set_content(text)
        page.screenshot(path=IMAGES / "report.png")
        browser.close()


def demand(count: int) -> None:
    """What Two Spirals need beside what 40 m of fibre at 7.1 dBm give (docs/tasks.md); fewer samples for a small `count`."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=14)
    device = infocap.photonics.FibreSystem(power_dbm=7.1, length_m=40.0, n_inputs=2, tolerance=1e-3)
    needed = infocap.tasks.demand(infocap.tasks.two_spirals(), basis)
    with plt.rc_context(infocap.plot.STYLE):
        ax = infocap.tasks.plot.demand_supply(
            needed, infocap.probe(device, basis, 4096 if count > 1 else 1024, seed=1)
        )
        ax.figure.savefig(IMAGES / "demand-supply.png", dpi=200)


def mistakes() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return inputs and readouts of a device with one mistake each, by the test that finds it."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=8)
    device = infocap.systems.RandomFeatures(2, 20, noise=1e-2, seed=5)
    n = 2048
    u = infocap.draw(basis, n, seed=3, design="random")
    x = device(u, seed=7)
    generator = np.random.default_rng(1)
    row = np.arange(n)
    before = np.roll(x, 1, axis=0)
    in_part = (row >= 700) & (row < 1400)
    first = np.arange(20, n - 1, 20)
    swapped = x.copy()
    swapped[[first, first + 1]] = x[[first + 1, first]]
    copied = x.copy()
    gaps = generator.choice(n, 60, replace=False)
    copied[gaps[:30]] = x[gaps[30:]]
    batches = x.reshape(-1, 32, x.shape[1])
    noise = np.where(in_part, 0.05, 0.0)[:, None] * generator.standard_normal(x.shape)
    is_gap = generator.random(x.shape) < 0.01
    is_spike = generator.random(x.shape) < 0.002
    spikes = np.where(is_spike, generator.uniform(-2, 2, x.shape), 0.0)
    late_input = np.column_stack([np.roll(u[:, 0], 1), u[:, 1]])
    gain = np.where(row < 900, 1.0, 1.1)[:, None]
    # An amplifier in front of the device bends what was drawn.
    bent = np.sin(np.pi / 2 * u)
    is_dark = generator.random(n) < 0.03
    dark = x.min(axis=0) + 1e-4 * generator.standard_normal(x.shape)
    input_before = np.roll(u[:, :1], 1, axis=0)
    unsettled_gain = 1 + 0.3 * input_before
    unsettled_noise = 0.1 * np.abs(u[:, :1] - input_before) * generator.standard_normal(x.shape)
    mean = x.mean(axis=0)
    return {
        "lags": (u, 0.8 * x + 0.2 * before),
        "late-input": (u, device(late_input, seed=7)),
        "gain-lags": (u, mean + (x - mean) * unsettled_gain),
        "noise-lags": (u, x + unsettled_noise),
        "alike": (u, np.where(is_dark[:, None], dark, x)),
        "slip": (u, np.where(in_part[:, None], before, x)),
        "response": (u, x * gain),
        "drift": (u, x + 0.1 * np.linspace(-1, 1, n)[:, None] ** 3),
        "misfit": (u, x + noise),
        "spectrum": (u, x + 0.02 * np.sin(0.3117 * row)[:, None]),
        "rows": (u, swapped),
        "copies": (u, copied),
        "batches": (u, (batches - batches.mean(axis=1, keepdims=True)).reshape(x.shape)),
        "codes": (u, np.where(is_gap, x.mean(axis=0), x)),
        "cells": (u, x + spikes),
        "inputs": (bent, device(bent, seed=7)),
    }


def principle(count: int) -> None:
    """Draw what every test of the data finds in a mistake; `count` changes nothing."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=8)
    for name, (u, x) in mistakes().items():
        check = infocap.diagnose(u, x, basis).checks[0]
        with infocap.plot.width(PRINCIPLE_WIDTH_MM):
            ax = infocap.plot.finding(check)
        ax.figure.savefig(IMAGES / f"principle-{name}.png", dpi=150)
        plt.close(ax.figure)
        print(f"{name}: {check}")


PICTURES = {
    "principle": (principle, 1, 1),
    "demand": (demand, 1, 2),
    "zeros": (zeros, 2, 20),
    "calibration": (calibration, 2, 100),
    "error": (error_against_n, 1, 5),
    "report": (report, 1, 2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer data sets of each")
    parser.add_argument("--only", choices=list(PICTURES), help="one of them")
    options = parser.parse_args()
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    plt.rcParams.update(STYLE)
    for name, (draw, few, many) in PICTURES.items():
        if options.only in (None, name):
            draw(few if options.quick else many)


if __name__ == "__main__":
    main()
