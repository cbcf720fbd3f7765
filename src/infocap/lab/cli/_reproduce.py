"""infocap simulate, reproduce and cite: the paper's experiment, its figures and statements checked, what to cite."""

import importlib
import importlib.util
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from string import Template
from types import ModuleType
from typing import Any

import click
import numpy as np

from ..._files import replaced, save_dataset
from ..._version import __version__
from ...basis._product import product_basis
from ...designs import block_count, draw
from ...errors import DataError, ParameterError
from ...estimators import METHODS
from ...photonics._system import FibreSystem
from ...recording._recording import Recording
from ._outputs import refuse_existing
from ._terminal import FILE, FORCE, echo

PACKAGE = "infocap_paper"  # the scripts' name among the loaded modules
PLACES = (
    Path(__file__).parents[2] / "_paper",
    Path(__file__).parents[4] / "paper",
)  # installed; in a clone
FOLDER = click.Path(file_okay=False, path_type=Path)
CORES = os.cpu_count() or 1
FIGURES = (*(f"fig{number}" for number in range(1, 9)), "twin", "extras")
BLOCK = 512  # Samples between two steps of the progress bar: a tenth of a second.


@click.command()
@click.option("--power-dbm", default=6.6, help="Average power after the amplifier.")
@click.option("--length-m", default=5.0, help="Length of the fibre.")
@click.option("--n-inputs", "n_inputs", default=5, help="Number of inputs: 1, 2, 4, 5, 10 or 20.")
@click.option(
    "--n-samples", "n_samples", default=8192, help="Number of Sobol points, a power of 2."
)
@click.option(
    "--phase-noise",
    type=click.Choice(["cell", "bin", "none"]),
    default="cell",
    help="Where it is drawn.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, help="Seed of the design and of the noise."
)
@click.option("-o", "--output", type=FILE, required=True, help="File, .nc")
@FORCE
def simulate(
    n_samples: int, seed: int, output: Path, force: bool, phase_noise: str, **settings: Any
) -> None:
    """Simulate the photonic experiment, and write what it measures."""
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
    echo(f"{recording}\nphi_NL = {system.nonlinear_phase:.3f}, written to {output}")


@click.command()
@click.argument(
    "figures",
    nargs=-1,
    type=click.Choice(["all", *FIGURES]),
    metavar="[all|fig1|...|twin|extras]...",
)
@click.option(
    "--quick", is_flag=True, help="Fewer samples, powers and repeats: minutes, not half an hour."
)
@click.option(
    "-o",
    "--output",
    type=FOLDER,
    default=Path("reproduced"),
    help="Folder for figN.png, .nc and .json.",
)
@click.option(
    "--workers", type=click.IntRange(min=1), default=min(CORES, 8), help="Number of processes."
)
@click.option("--page", type=FILE, help="Also write a page with all verdicts, .md")
@click.option(
    "--data",
    type=FILE,
    help="A recording of your own to show beside the simulation in fig1, fig5, fig6.",
)
def reproduce(
    figures: tuple[str, ...],
    quick: bool,
    output: Path,
    workers: int,
    page: Path | None,
    data: Path | None,
) -> None:
    """Compute, draw and check the paper's figures.

    What was stopped goes on with the same command, and gives the same numbers.
    """
    load_scripts()
    names = [name for name in FIGURES if not figures or "all" in figures or name in figures]
    scripts = {name: importlib.import_module(f"{PACKAGE}.{name}") for name in names}
    for name, script in scripts.items():
        for needed in getattr(script, "NEEDS", ()):
            if importlib.util.find_spec(needed) is None:  # told before half an hour of work
                raise ParameterError(
                    f"{name} needs {needed}: pip install infocap[ml], or ask for others."
                )
    if data is not None:
        click.echo(importlib.import_module(f"{PACKAGE}._measured").add(data))
    output.mkdir(parents=True, exist_ok=True)
    context, threads = multiprocessing.get_context("spawn"), max(1, CORES // workers)
    executor = ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(threads,))
    try:
        verdicts = {
            name: _one(name, script, quick, output, executor) for name, script in scripts.items()
        }
    except KeyboardInterrupt:
        for worker in multiprocessing.active_children():
            worker.terminate()
        # It would tell of a file whose writing was interrupted, and that is not kept.
        sys.unraisablehook = lambda _: None
        echo("Interrupted; the same command goes on from here.", err=True)
        raise SystemExit(130) from None
    except BrokenProcessPool:
        problem = "a worker was killed, perhaps for its memory"
        raise DataError(
            f"{problem}; the same command goes on, best with fewer --workers."
        ) from None
    finally:
        executor.shutdown(cancel_futures=True)
    if page is not None:
        make = importlib.import_module(f"{PACKAGE}._page").page
        page.write_text(make(verdicts, os.path.relpath(output, page.parent)), encoding="utf-8")
        if len(verdicts) == len(FIGURES):
            text = importlib.import_module(f"{PACKAGE}._software").software(verdicts)
            page.with_name("software.md").write_text(text, encoding="utf-8")


@click.command()
def cite() -> None:
    """Print what to cite, in BibTeX: paper, software and methods."""
    bibtex = Path(__file__).with_name("citation.bib").read_text(encoding="utf-8")
    echo(Template(bibtex.strip()).substitute(version=__version__))
    for name, method in METHODS.items():
        echo(f"% {name}: {method.reference}")


def load_scripts() -> None:
    """Make the scripts of the paper's figures a package, from the installed infocap or from the clone."""
    for place in PLACES:
        if (place / "fig1.py").exists():
            package = sys.modules.setdefault(PACKAGE, ModuleType(PACKAGE))
            package.__path__ = [str(place)]
            return
    raise DataError(
        f"the figures' scripts are neither in {PLACES[0]} nor in {PLACES[1]}; reinstall infocap."
    )


def _one(
    name: str, script: Any, quick: bool, output: Path, executor: Executor
) -> list[dict[str, str]]:
    echo(f"{name}: {script.TITLE}")
    started, work = time.perf_counter(), importlib.import_module(f"{PACKAGE}._work")
    data = work.Work(executor, output / ".cache", progress=sys.stderr.isatty()).figure(
        name, script, quick
    )
    lines = script.check(data)
    with replaced(output / f"{name}.png") as beside:  # each file is there whole or not at all
        script.draw(data).savefig(beside, dpi=150, format="png")
    save_dataset(data, output / f"{name}.nc")
    with replaced(output / f"{name}.json") as beside:
        beside.write_text(json.dumps(lines, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for line in lines:
        twin = f"; twin ({line['twin_verdict']}): {line['twin']}" if line["twin_verdict"] else ""
        echo(f"  {line['verdict']:<10} {line['statement']}: {line['found']}{twin}")
    said = json.loads(data.attrs["warnings"])
    warned = f", {len(said)} warnings (in {name}.nc)" if said else ""
    echo(f"  {output / name}.png, {time.perf_counter() - started:.0f} s{warned}\n")
    return lines


def _start_worker(threads: int) -> None:
    """Load the scripts in a process of its own, and let them prepare it; it must be found here to be sent there."""
    load_scripts()
    importlib.import_module(f"{PACKAGE}._work").start_worker(threads)
