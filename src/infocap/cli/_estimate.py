"""infocap estimate: from files to capacities, with a summary, a result and pictures."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from ..basis import ProductBasis
from ..errors import ParameterError
from ..estimators import ESTIMATORS
from ..recording import Recording
from ..result import CapacityResult
from ..workflow import analyse
from ._choose_basis import Wanted, choose_basis
from ._options import Source, option, options
from ._outputs import Out
from ._show import summary
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

    def analyse(self, recording: Recording, basis: ProductBasis) -> CapacityResult:
        """Return the capacities and all else that the recording tells; warnings are among the checks."""
        with warnings_in_checks(), cluster(self.scheduler) as executor:
            return analyse(
                recording,
                basis,
                method=self.method,
                constant=not self.no_constant,
                nan=self.nan,
                complex_as=self.complex_as,
                growth=self.in_memory and not self.no_growth,
                memory=self.memory,
                executor=executor,
            )


@click.command()
@options("source", Source)
@options("wanted", Wanted)
@options("how", How)
@options("out", Out)
@click.pass_context
def estimate(context: click.Context, source: Source, wanted: Wanted, how: How, out: Out) -> None:
    """Estimate the capacities of the device recorded in FILES.

    FILES hold inputs and readouts, and several are one recording, in the order given or by their design index; or of
    two FILES the first holds the inputs and the second the readouts.
    """
    out.check()
    if out.growth and (how.no_growth or not how.in_memory):
        raise ParameterError(
            "--growth does not go with --no-growth, --memory or --scheduler; give one of them."
        )
    recording = source.read(in_memory=how.in_memory)
    basis, said = choose_basis(recording, wanted)
    if out.matrix and basis.n_inputs != 2:
        raise ParameterError(f"--matrix needs 2 inputs; {source} has {basis.n_inputs}. Use --bars.")
    if not out.quiet:
        n_inputs, n_readouts, unit = basis.n_inputs, recording.readouts.shape[1], recording.readout_unit
        readouts = f"{n_readouts} readouts" + (f" in {unit}" if unit else "")
        contents = f"{recording.inputs.shape[0]} samples, {counted(n_inputs, 'input')}, {readouts}"
        click.echo(wrapped(f"{source}: {'; '.join([contents, *said])}."))
    result = how.analyse(recording, basis)
    written = out.write(result)
    if not out.quiet:
        say(["", *summary(result)], result.checks, written)
    elif result.warnings:
        click.echo("\n".join(check_lines(result.warnings)))
    if out.strict and result.warnings:
        context.exit(1)


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Give the client of a Dask cluster; None without an address."""
    if address is None:
        yield None
        return
    try:
        import distributed

        client = distributed.Client(address, timeout=CONNECT_S)  # type: ignore[no-untyped-call]
    except ImportError:
        raise ParameterError(
            "--scheduler needs the package distributed: pip install infocap[dask]."
        ) from None
    except (OSError, ValueError) as problem:
        raise ParameterError(
            f"--scheduler {address} cannot be reached ({' '.join(str(problem).split())}); start `dask scheduler` and "
            "give the address that it prints."
        ) from None
    with client:
        yield client
