"""infocap estimate: from files to capacities, with a summary, a result and pictures."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import click

from ..errors import ParameterError
from ..estimators import ESTIMATORS
from ..workflow._analyse import analyse
from ._choose_basis import Wanted, choose_basis
from ._options import Source, option, options
from ._outputs import Out, summary
from ._terminal import check_lines, counted, say, warnings_in_checks, wrapped

CONNECT_S = 20  # A scheduler that is there answers within a second; one behind a slow tunnel needs a few.


@dataclass(frozen=True)
class How:
    """How capacities are estimated."""

    method: str = option(
        "--method",
        type=click.Choice(list(ESTIMATORS)),
        default="control-variate",
        help="; ".join(f"{name}: {method.summary}" for name, method in ESTIMATORS.items()) + ".",
    )
    no_constant: bool = option("--no-constant", is_flag=True, help="Do not add the constant readout.")
    nan: str = option("--nan", type=click.Choice(["raise", "drop"]), default="raise", help="Missing values.")
    complex_as: str | None = option(
        "--complex-as", type=click.Choice(["abs2", "split"]), help="What complex readouts mean."
    )
    no_growth: bool = option("--no-growth", is_flag=True, help="Do not follow the total as samples come in.")
    memory: str | None = option("--memory", help="Read in blocks, within so much memory, such as 1GB.")
    scheduler: str | None = option(
        "--scheduler", metavar="ADDRESS", help="Of a Dask cluster to do the work, such as tcp://node1:8786."
    )

    @property
    def in_memory(self) -> bool:
        return self.memory is None and self.scheduler is None


@click.command()
@options("source", Source)
@options("wanted", Wanted)
@options("how", How)
@options("out", Out)
def estimate(source: Source, wanted: Wanted, how: How, out: Out) -> None:
    """Estimate the capacities of the device recorded in FILES.

    FILES hold inputs and readouts, and several are one recording, in the order given or by their design index; or of
    two FILES the first holds the inputs and the second the readouts.
    """
    out.check()
    if out.growth and (how.no_growth or not how.in_memory):
        raise ParameterError("--growth goes without --no-growth, --memory, --scheduler; give one of them.")
    recording = source.read(in_memory=how.in_memory)
    basis, said = choose_basis(recording, wanted)
    if out.matrix and basis.n_inputs != 2:
        raise ParameterError(f"--matrix needs 2 inputs; {source} has {basis.n_inputs}. Use --bars.")
    if not out.quiet:
        (n_samples, n_readouts), unit = recording.readouts.shape, recording.readout_unit
        readouts = f"{n_readouts} readouts" + (f" in {unit}" if unit else "")
        contents = f"{n_samples} samples, {counted(basis.n_inputs, 'input')}, {readouts}"
        click.echo(wrapped(f"{source}: {'; '.join([contents, *said])}."))
    settings = {name: getattr(how, name) for name in ("method", "nan", "complex_as", "memory")}
    settings |= {"constant": not how.no_constant, "growth": how.in_memory and not how.no_growth}
    with warnings_in_checks(), nullcontext() if how.scheduler is None else cluster(how.scheduler) as executor:
        result = analyse(recording, basis, executor=executor, **settings)
    written = out.write(result)
    if not out.quiet:
        say(["", *summary(result)], result.checks, written)
    elif result.warnings:
        click.echo("\n".join(check_lines(result.warnings)))
    if out.strict and result.warnings:
        click.get_current_context().exit(1)


def cluster(address: str) -> Any:
    """Return the client of a Dask cluster, to be closed after use."""
    try:
        import distributed

        return distributed.Client(address, timeout=CONNECT_S)  # type: ignore[no-untyped-call]
    except ImportError:
        raise ParameterError("--scheduler needs distributed: pip install infocap[dask].") from None
    except (OSError, ValueError) as problem:
        said = f"--scheduler {address} cannot be reached ({' '.join(str(problem).split())})"
        raise ParameterError(f"{said}; start `dask scheduler` and give the address it prints.") from None
