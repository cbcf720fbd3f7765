"""infocap simulate and reproduce: the paper's experiment and its figures."""

import importlib
import importlib.util
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np

from ..._files import save_dataset, write_whole
from ..._version import __version__
from ...basis import product_basis
from ...designs import block_count, draw
from ...errors import DataError, ParameterError
from ...photonics import FibreSystem
from ...recording import Recording
from ._outputs import refuse_existing
from ._terminal import EXIT_INTERRUPTED, FILE, FORCE, NameChoice, echo

FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "twin", "extras")
# The name of the package that the figures' scripts form when they are loaded.
SCRIPTS_PACKAGE = "infocap_paper"
# Where the scripts lie in an installed infocap, and in a clone of the repository.
INSTALLED_SCRIPTS = Path(__file__).parents[2] / "_paper"
SCRIPTS_IN_CLONE = Path(__file__).parents[4] / "paper"

N_CORES = os.cpu_count() or 1
# More processes than this need much memory, and wait for the longest job in the end.
MAX_DEFAULT_WORKERS = 8
# Samples that are simulated between two steps of the progress bar; they take a tenth of a second.
SAMPLES_PER_STEP = 512


@click.command()
@click.option("--power-dbm", default=6.6, help="Average power after the amplifier.")
@click.option("--length-m", default=5.0, help="Length of the fibre.")
@click.option("--n-inputs", default=5, help="Number of inputs: 1, 2, 4, 5, 10 or 20.")
@click.option("--n-samples", default=8192, help="Number of Sobol points, a power of 2.")
@click.option(
    "--phase-noise",
    type=NameChoice(["bin", "cell", "none"]),
    default="bin",
    help="Draw random phases for each bin, for each cell of 1 GHz, or none.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, help="Seed of the design and of the noise."
)
@click.option("-o", "--output", type=FILE, required=True, help="File, .nc")
@FORCE
def simulate(
    n_samples: int, seed: int, output: Path, *, force: bool, phase_noise: str, **settings: Any
) -> None:
    """Simulate the photonic experiment, and write what it measures."""
    refuse_existing(output, force, (".nc",))
    system = FibreSystem(**settings, phase_noise=None if phase_noise == "none" else phase_noise)
    basis = product_basis("legendre", system.n_inputs, 1)
    inputs = draw(basis, n_samples, seed=seed)
    recording = Recording(
        inputs,
        _readouts_in_steps(system, inputs, seed),
        np.arange(n_samples),
        readout_unit="mW/nm",
        channel=tuple(f"{wavelength:.2f} nm" for wavelength in system.wavelength_nm),
        metadata={
            "system": asdict(system),
            "seed": seed,
            "n_samples": n_samples,
            "design": "sobol",
            "blocks": block_count(basis, n_samples, "sobol", None),
            "infocap": __version__,
        },
    )
    recording.save(output)
    echo(f"{recording}\nphi_NL = {system.nonlinear_phase:.3f}, written to {output}")


def _readouts_in_steps(system: FibreSystem, inputs: np.ndarray, seed: int) -> np.ndarray:
    """Simulate a few samples at a time, with a progress bar; every step has a seed of its own."""
    starts = range(0, len(inputs), SAMPLES_PER_STEP)
    seeds = np.random.SeedSequence(seed).spawn(len(starts))
    readouts = []
    with click.progressbar(list(zip(starts, seeds, strict=True)), label="Simulating") as steps:
        for start, step_seed in steps:
            readouts.append(system(inputs[start : start + SAMPLES_PER_STEP], seed=step_seed))
    return np.vstack(readouts)


@click.command()
@click.argument(
    "figures",
    nargs=-1,
    type=NameChoice(["all", *FIGURES]),
    metavar="[all|fig1|...|twin|extras]...",
)
@click.option(
    "--quick", is_flag=True, help="Fewer samples, powers and repeats: minutes, not half an hour."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduced"),
    help="Folder for figN.png, .nc and .json.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=min(N_CORES, MAX_DEFAULT_WORKERS),
    help="Number of processes.",
)
@click.option(
    "--data",
    type=FILE,
    help="A recording of your own to show beside the simulation in fig1, fig5, fig6.",
)
def reproduce(
    figures: tuple[str, ...], quick: bool, output: Path, *, workers: int, data: Path | None
) -> None:
    """Compute, draw and check the paper's figures.

    What was stopped goes on with the same command, and gives the same numbers.
    """
    load_scripts()
    if not figures or "all" in figures:
        figures = FIGURES
    scripts = {name: _script(name) for name in FIGURES if name in figures}
    _refuse_missing_packages(scripts)
    if data is not None:
        echo(_script("_measured").add(data))
    output.mkdir(parents=True, exist_ok=True)
    executor = ProcessPoolExecutor(
        workers,
        multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(max(1, N_CORES // workers),),
    )
    try:
        for name, script in scripts.items():
            _reproduce_figure(name, script, output, quick=quick, executor=executor)
    except KeyboardInterrupt:
        for worker in multiprocessing.active_children():
            worker.terminate()
        # Python would print a traceback about the file whose writing was interrupted; that file is
        # not kept.
        sys.unraisablehook = lambda _: None
        echo("Interrupted; the same command goes on from here.", err=True)
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenProcessPool:
        raise DataError(
            "a worker was killed, perhaps for its memory; the same command goes on, best with "
            "fewer --workers."
        ) from None
    finally:
        executor.shutdown(cancel_futures=True)


def _refuse_missing_packages(scripts: Mapping[str, Any]) -> None:
    """Refuse figures that need packages that are not installed, before half an hour of work."""
    for name, script in scripts.items():
        for package in getattr(script, "NEEDS", ()):
            if importlib.util.find_spec(package) is None:
                raise ParameterError(
                    f"{name} needs {package}: pip install infocap[ml], or ask for others."
                )


def _reproduce_figure(
    name: str, script: Any, output: Path, *, quick: bool, executor: Executor
) -> None:
    """Compute, draw and check one figure; each of its files is there whole or not at all."""
    echo(f"{name}: {script.TITLE}")
    started = time.perf_counter()
    show_progress = sys.stderr.isatty()
    work = _script("_work").Work(executor, output / ".cache", progress=show_progress)
    data = work.figure(name, script, quick)
    verdicts = script.check(data)
    with write_whole(output / f"{name}.png") as new_file:
        script.draw(data).savefig(new_file, dpi=150, format="png")
    save_dataset(data, output / f"{name}.nc")
    with write_whole(output / f"{name}.json") as new_file:
        text = json.dumps(verdicts, indent=1, ensure_ascii=False)
        new_file.write_text(text + "\n", encoding="utf-8")

    for line in verdicts:
        sentence = f"  {line['verdict']:<10} {line['statement']}: {line['found']}"
        if line["twin_verdict"]:
            sentence += f"; twin ({line['twin_verdict']}): {line['twin']}"
        echo(sentence)
    files = f"  {output / name}.png, {time.perf_counter() - started:.0f} s"
    n_warnings = len(json.loads(data.attrs["warnings"]))
    if n_warnings:
        files += f", {n_warnings} warnings (in {name}.nc)"
    echo(f"{files}\n")


def load_scripts() -> None:
    """Make a package of the figures' scripts, those of the installed infocap or of the clone."""
    for folder in (INSTALLED_SCRIPTS, SCRIPTS_IN_CLONE):
        if (folder / "fig1.py").exists():
            package = sys.modules.setdefault(SCRIPTS_PACKAGE, ModuleType(SCRIPTS_PACKAGE))
            package.__path__ = [str(folder)]
            return
    raise DataError(
        f"the figures' scripts are neither in {INSTALLED_SCRIPTS} nor in {SCRIPTS_IN_CLONE}; "
        "reinstall infocap."
    )


def _script(name: str) -> Any:
    return importlib.import_module(f"{SCRIPTS_PACKAGE}.{name}")


def _start_worker(n_threads: int) -> None:
    """Load the scripts in a new process, and let them prepare it.

    A process finds this function by its name, so it stands here, in a module that every process can
    import.
    """
    load_scripts()
    _script("_work").start_worker(n_threads)
