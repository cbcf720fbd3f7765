"""infocap estimate: from a file to capacities, with a summary, a result and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ..errors import ParameterError
from ..estimators import ESTIMATORS
from ..recording import Recording, read
from ..workflow import analyse
from ._choose_basis import Wanted, choose_basis
from ._outputs import FILE, check_distinct, check_pictures, check_results, draw, plot_options
from ._summary import show_found
from ._terminal import in_options, warnings_kept, wrapped

CONNECT_S = 20


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("readouts", type=click.Path(path_type=Path), required=False)
@click.option("--u", help="Name of the inputs in the file.")
@click.option("--x", help="Name of the readouts in the file.")
@click.option(
    "--family",
    multiple=True,
    help="Of the inputs' distribution: legendre (uniform), hermite (normal), chebyshev, fourier, laguerre, "
    "bernoulli, 'jacobi(1, 1)', 'binomial(8, 0.5)'; once for all inputs or once for each.  [default: the plan's, "
    "else legendre]",
)
@click.option(
    "--degree", type=click.IntRange(min=0), help="Highest degree.  [default: the plan's, else by N]"
)
@click.option("--domain", type=float, nargs=2, metavar="LOW HIGH", help="Interval of every input.")
@click.option("--index-set", type=click.Choice(["total", "hyperbolic"]), help="Which products of functions.")
@click.option("--max-interactions", type=click.IntRange(min=1), help="Inputs that a function may join.")
@click.option("--method", type=click.Choice(list(ESTIMATORS)), default="control-variate", show_default=True)
@click.option("--no-constant", is_flag=True, help="Do not add the constant readout.")
@click.option(
    "--nan", type=click.Choice(["raise", "drop"]), default="raise", show_default=True, help="Missing values."
)
@click.option("--complex-as", type=click.Choice(["abs2", "split"]), help="What complex readouts mean.")
@click.option("--no-growth", is_flag=True, help="Do not follow the total with the number of samples.")
@click.option("--memory", help="Read the file in blocks, and use no more memory than this, such as 1GB.")
@click.option(
    "--scheduler", metavar="ADDRESS", help="Of a Dask cluster that does the work, such as tcp://node1:8786."
)
@click.option("-o", "--output", type=FILE, multiple=True, help="Result, .nc or .csv; may be given again.")
@plot_options
@click.option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
@click.option("--quiet", is_flag=True, help="Show warnings only.")
@click.pass_context
def estimate(
    context: click.Context,
    file: Path,
    readouts: Path | None,
    u: str | None,
    x: str | None,
    family: tuple[str, ...],
    degree: int | None,
    domain: tuple[float, float] | None,
    index_set: str | None,
    max_interactions: int | None,
    method: str,
    no_constant: bool,
    nan: str,
    complex_as: str | None,
    no_growth: bool,
    memory: str | None,
    scheduler: str | None,
    output: tuple[Path, ...],
    plot: tuple[Path, ...],
    matrix: tuple[Path, ...],
    bars: tuple[Path, ...],
    growth: tuple[Path, ...],
    strict: bool,
    quiet: bool,
) -> None:
    """Estimate the capacities of the device recorded in FILE.

    FILE holds inputs and readouts; or FILE holds the inputs and READOUTS the readouts.
    """
    if growth and no_growth:
        raise ParameterError("--growth draws what --no-growth leaves out; give one of them.")
    check_results(output)
    check_pictures([*plot, *matrix, *bars, *growth])
    check_distinct(*output, *plot, *matrix, *bars, *growth)
    with in_options(), warnings_kept() as warned:
        large = memory is not None or scheduler is not None
        if large and growth:
            raise ParameterError("--growth needs all rows in memory; leave --memory and --scheduler out.")
        recording = read_recording(file, readouts, u, x, in_memory=not large)
        basis, said = choose_basis(recording, Wanted(family, degree, domain, index_set, max_interactions))
        if matrix and basis.n_inputs != 2:
            raise ParameterError(f"--matrix needs 2 inputs; {file} has {basis.n_inputs}. Use --bars.")
        if not quiet:
            click.echo(wrapped(f"{file}: {'; '.join([_contents(recording), *said])}."))
        with cluster(scheduler) as executor:
            result = analyse(
                recording,
                basis,
                method=method,
                constant=not no_constant,
                nan=nan,
                complex_as=complex_as,
                growth=not (no_growth or large),
                memory=memory,
                executor=executor,
            )
        written = [result.save(path) for path in output]
        written += draw(result, plot, matrix, bars, growth)
    show_found(result, written, warned, quiet)
    if strict and warned:
        context.exit(1)


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """The client of a Dask cluster; None without an address."""
    if address is None:
        yield None
        return
    try:
        import distributed
    except ImportError:
        raise ParameterError(
            "--scheduler needs the package distributed: pip install infocap[dask]."
        ) from None
    try:
        client = distributed.Client(address, timeout=CONNECT_S)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as problem:
        raise ParameterError(
            f"--scheduler {address} cannot be reached ({' '.join(str(problem).split())}); start `dask scheduler` and "
            "give the address that it prints."
        ) from None
    with client:
        yield client


def read_recording(
    file: Path, readouts: Path | None, u: str | None, x: str | None, in_memory: bool = True
) -> Recording:
    """A recording from one file, or from one with inputs and one with readouts."""
    named: dict[str, Any] = {name: value for name, value in (("u", u), ("x", x)) if value is not None}
    if not in_memory:
        named["in_memory"] = False
    files: Any = (file,) if readouts is None else (file, readouts)
    return read(*files, **named)


def _contents(recording: Recording) -> str:
    n, q = recording.inputs.shape[0], recording.inputs.shape[1]
    unit = f" in {recording.readout_unit}" if recording.readout_unit else ""
    return f"{n} samples, {q} input{'s' * (q != 1)}, {recording.readouts.shape[1]} readouts{unit}"
