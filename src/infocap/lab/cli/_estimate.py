"""infocap estimate and explore: from files to capacities of a basis that is given, or of functions that are found."""

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from ..._formatting import counted, duration, size
from ...basis._classical import find_families, inputs
from ...basis._delayed import delayed_basis
from ...basis._family import Family
from ...basis._product import ProductBasis
from ...errors import DataError, ParameterError
from ...estimators import METHODS
from ...estimators._cost import cost
from ...recording._recording import Recording
from ...workflow._choose import choose_basis
from ...workflow._explore import explore as search_past
from ...workflow._from_recording import estimate_recording, provenance, rows_of
from ..experiment._plan import Plan
from ._outputs import Out, summary
from ._terminal import Source, echo, option, options, warnings_in_checks, wrapped

CONNECT_S = (
    20  # A scheduler that is there answers within a second; one behind a slow tunnel needs a few.
)
LONG_S = 60.0  # Seconds that an estimation may take before it is said how long: whoever waits likes to know.


@dataclass(frozen=True)
class Drawn:
    """The distribution of the inputs as options give it; () leaves it open."""

    input: tuple[str, ...] = option(
        "--input",
        multiple=True,
        metavar="NAME:LOW:HIGH:FAMILY",
        help="Once for each: 'Voltage A [V]:0:5' (uniform where no family is named), 'Phase [deg]:0:360:fourier'.",
    )
    family: tuple[str, ...] = option(
        "--family",
        multiple=True,
        help="Family of the inputs: legendre (uniform), hermite (normal), chebyshev, fourier, laguerre, "
        "bernoulli, 'jacobi(1, 1)', 'binomial(8, 0.5)'; once for all inputs or once for each.  [default: that of a "
        "plan in FILES, else legendre]",
    )
    domain: tuple[tuple[float, float], ...] = option(
        "--domain",
        type=(float, float),
        multiple=True,
        help="Range of the inputs, once for all or once for each.",
    )


@dataclass(frozen=True)
class Wanted(Drawn):
    """The basis as options give it; None and () leave it open."""

    max_degree: int | None = option(
        "--max-degree", type=int, help="Highest degree.  [default: the plan's, else by N]"
    )
    index_set: str | None = option(
        "--index-set", help="Products of functions in the basis: total or hyperbolic."
    )
    max_interactions: int | None = option(
        "--max-interactions", type=int, help="Most inputs in one function."
    )
    max_delay: str | None = option(
        "--max-delay", help="With memory: the largest delay of each degree, as 1:100,2:40,3:20."
    )


@dataclass(frozen=True)
class How:
    """How capacities are estimated."""

    method: str = option(
        "--method",
        type=click.Choice(list(METHODS)),
        default="control-variate",
        help="; ".join(f"{name}: {method.summary}" for name, method in METHODS.items()) + ".",
    )
    no_constant: bool = option(
        "--no-constant", is_flag=True, help="Do not add the constant readout."
    )
    nan_policy: str = option(
        "--nan-policy",
        type=click.Choice(["raise", "omit"]),
        default="raise",
        help="Rows with gaps.",
    )
    complex_as: str | None = option(
        "--complex-as", type=click.Choice(["abs2", "split"]), help="Powers, or two parts."
    )
    washout: int | None = option(
        "--washout", type=int, help="Steps unused at the start of each run, with --max-delay."
    )
    memory_limit: str | None = option(
        "--memory-limit", help="Memory to use, such as 1GB; files are then read in blocks."
    )
    scheduler: str | None = option(
        "--scheduler", metavar="URL", help="Dask cluster, such as tcp://node1:8786."
    )


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
    in_memory = how.memory_limit is None and how.scheduler is None
    recording = source.read(in_memory=in_memory)
    basis, said = wanted_basis(recording, wanted)
    seconds, n_bytes = cost(
        basis, recording.readouts.shape[0], recording.readouts.shape[1] + 1, METHODS[how.method]
    )
    if seconds > LONG_S:
        said.append(
            f"{len(basis):,} functions: up to {duration(seconds)}, {size(n_bytes)} of memory"
        )
    announce(source, recording, basis, said, out)
    settings = {
        name: getattr(how, name) for name in ("method", "nan_policy", "complex_as", "memory_limit")
    }
    settings |= {} if how.washout is None else {"washout": how.washout}
    settings |= {"constant": not how.no_constant}
    with (
        warnings_in_checks(),
        nullcontext() if how.scheduler is None else cluster(how.scheduler) as executor,
    ):
        result = estimate_recording(recording, basis=basis, executor=executor, **settings)
    out.finish(result, ["", *summary(result)])


@click.command()
@options("source", Source)
@options("drawn", Drawn)
@click.option(
    "--washout", type=int, help="Steps unused at the start of each run; the longest delay, too."
)
@click.option("--max-degree", "max_degree", default=6, help="Highest degree that is looked for.")
@click.option("--most-tested", default=30_000, help="Most functions that are tested.")
@options("out", Out)
def explore(source: Source, drawn: Drawn, out: Out, washout: int | None, **search: int) -> None:
    """Find out which functions of past inputs a device computes.

    No delays are given: functions are looked for up to --max-degree, as far back as the washout. FILES are those of
    `infocap estimate`, with time steps as rows; several files are several runs. What is written holds what was found.
    """
    out.check()
    recording = source.read()
    basis, said = wanted_basis(
        recording, Wanted(**vars(drawn), max_delay="1:1")
    )  # whatever delays will be found
    announce(source, recording, basis, said, out)
    given = (
        rows_of(recording, sequence=True)
        | search
        | ({} if washout is None else {"washout": washout})
    )
    with warnings_in_checks():
        found = search_past(family=basis.families, **given)
    result = replace(
        found.result, metadata=found.result.metadata | {"provenance": provenance(recording)}
    )
    lines = repr(found).partition("\nCapacityResult")[0].split("\n")  # how the search went
    out.finish(result, ["", *lines, "", *summary(result)])


def announce(
    source: Source, recording: Recording, basis: ProductBasis, said: Sequence[str], out: Out
) -> None:
    """Say what the files hold and how it is taken."""
    if not out.quiet:
        (n_samples, n_readouts), unit = recording.readouts.shape, recording.readout_unit
        readouts = f"{n_readouts} readouts" + (f" in {unit}" if unit else "")
        contents = f"{n_samples} samples, {counted(basis.n_inputs, 'input')}, {readouts}"
        echo(wrapped(f"{source}: {'; '.join([contents, *said])}."))


def cluster(address: str) -> Any:
    """Return the client of a Dask cluster, to be closed after use."""
    try:
        import distributed

        return distributed.Client(address, timeout=CONNECT_S)  # type: ignore[no-untyped-call]
    except ImportError:
        raise ParameterError("--scheduler needs distributed: pip install infocap[dask].") from None
    except (OSError, ValueError) as problem:
        said = f"--scheduler {address} cannot be reached ({' '.join(str(problem).split())})"
        raise ParameterError(
            f"{said}; start `dask scheduler` and give the address it prints."
        ) from None


def wanted_basis(recording: Recording, wanted: Wanted) -> tuple[ProductBasis, list[str]]:
    """Return the basis, and in words where it comes from."""
    given = {name: value for name, value in vars(wanted).items() if value not in (None, ())}
    usual: list[Any] = ["legendre"] * np.shape(recording.inputs)[1]
    plan = recording.metadata.get("plan")
    if plan is not None:
        try:
            known = Plan.from_dict(plan)
        except ValueError as problem:
            raise DataError(f"the plan in the file cannot be used: {problem}") from None
        plan, usual = known.to_dict(), list(known.basis.families)
    if wanted.max_delay is not None:
        for name in {"max_degree", "index_set", "max_interactions"} & given.keys():
            raise ParameterError(
                f"`{name}={given[name]}` goes without --max-delay; leave one of them out."
            )
        chosen: dict[str, Any] = {"family": usual, "n_inputs": len(usual)} | distribution(
            wanted, usual
        )
        basis: ProductBasis = delayed_basis(max_delay=read_delays(wanted.max_delay), **chosen)
        kinds = (
            f"{one.name} inputs on [{one.domain[0]:g}, {one.domain[1]:g}]" for one in basis.families
        )
        runs = f" in {n} runs" if (n := len(recording.runs)) > 1 else ""
        said = {"sequence": f"taken as a sequence{runs} of {' and '.join(dict.fromkeys(kinds))}"}
    else:
        given.pop("input", None)
        basis, said = choose_basis(
            np.shape(recording.inputs), plan, **given | distribution(wanted, usual)
        )
    if "inputs" in said:
        taken = f"no plan in the file: taken as {said['inputs']}"
        said["inputs"] = f"{taken}; --family and --domain, or --input, say otherwise"
    if "degree" in said:
        said["degree"] += "; --max-degree says otherwise"
    return basis.named(recording.input_names) if recording.input_names else basis, list(
        said.values()
    )


def distribution(wanted: Drawn, usual: Sequence[str | Family]) -> dict[str, Any]:
    """Return the family and the domain that options name, for all inputs or one per input, instead of the usual."""
    if wanted.input and (wanted.family or wanted.domain):
        raise ParameterError(
            "--input has the family and the range already; leave out --family and --domain."
        )
    n_inputs, given = len(usual), dict[str, Any]()
    names: Sequence[Any] = inputs(*wanted.input) if wanted.input else wanted.family
    for what, values in (("families", names), ("domains", wanted.domain)):
        if len(values) not in (0, n_inputs) and (len(values) > 1 or wanted.input):
            alike = "" if wanted.input else "1 or "
            raise ParameterError(
                f"{len(values)} {what} are given for {n_inputs} inputs; give {alike}{n_inputs}."
            )
    if names:
        given["family"] = names[0] if len(names) < n_inputs else list(names)
    if len(wanted.domain) == 1:
        given["domain"] = wanted.domain[0]
    elif wanted.domain:
        known = find_families(given.get("family", usual), n_inputs)
        given |= {
            "family": [one.on(own) for one, own in zip(known, wanted.domain, strict=True)],
            "domain": None,
        }
    return given


def read_delays(delays: str) -> dict[int, int]:
    """Return the largest delay of each degree, from ``1:100,2:40``."""
    pairs = [re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*", part) for part in delays.split(",")]
    if None in pairs:
        raise ParameterError(
            f"--max-delay {delays} is no list of degrees and delays; give it as 1:100,2:40,3:20."
        )
    return {int(pair[1]): int(pair[2]) for pair in pairs if pair is not None}
