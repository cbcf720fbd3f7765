"""infocap estimate and explore: capacities of a basis, and a search for functions."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from ..._formatting import counted, duration, memory_size, one_line
from ...basis import Family, ProductBasis, delayed_basis, find_families, inputs
from ...dimension import number_of_components
from ...errors import DataError, ParameterError
from ...estimators import DEFAULT_METHOD, METHODS, forecast_cost
from ...recording import Recording, without_overshoot
from ...workflow import arguments_of, choose_basis, provenance
from ...workflow import estimate as estimate_capacities
from ...workflow import explore as search_functions
from ..experiment import Plan
from ._outputs import EstimateOutput
from ._recorded_inputs import (
    RECORDED,
    InputsCommand,
    RangeEnd,
    fit_usual_range,
    with_recorded_ranges,
)
from ._summary import summary
from ._terminal import (
    COMPONENTS,
    NameChoice,
    NamedInputFiles,
    echo,
    option,
    options,
    warnings_in_checks,
    wrapped,
)

# Seconds to wait for a Dask scheduler: one that is there answers within a second, behind a slow
# tunnel within a few.
SCHEDULER_TIMEOUT_S = 20
# An estimation that may take longer than this is announced with its duration, because somebody
# waits for it.
MIN_SECONDS_ANNOUNCED = 60.0
LAW_HELP = (
    "Of the inputs: declared (independent, with the distribution of the basis), or recorded "
    "(whatever it was).  [default: declared, and recorded where inputs depend on each other]"
)
INPUT_NOISE_HELP = "With the recorded law: standard deviation of the noise in the recorded inputs."
# What the command line says where it goes on under the law of the recorded inputs.
GOES_ON_UNDER_RECORDED_LAW = (
    "inputs depend on each other, so these are capacities under the law of the recorded inputs"
)


@dataclass(frozen=True)
class InputOptions:
    """The distribution of the inputs; an option that is not given is an empty tuple."""

    input: tuple[str, ...] = option(
        "--input",
        multiple=True,
        metavar="NAME:LOW:HIGH:FAMILY",
        help="Once for each: 'Voltage A [V]:0:5' (uniform where no family is named), "
        "'Phase [deg]:0:360:fourier'.",
    )
    family: tuple[str, ...] = option(
        "--family",
        multiple=True,
        help="Family of the inputs: legendre (uniform), hermite (normal), chebyshev, fourier, "
        "laguerre, bernoulli, 'jacobi(1, 1)', 'binomial(8, 0.5)', or recorded, as the values in "
        "the files are distributed; once for all inputs or once for each.  [default: the plan's; "
        "without a plan legendre where inputs fill -1 to 1, else recorded]",
    )
    domain: tuple[tuple[float, float], ...] = option(
        "--domain",
        type=(RangeEnd(), RangeEnd()),
        multiple=True,
        metavar="LOW HIGH",
        help="Range of the inputs, once for all or once for each; auto is that of the values in "
        "the files.",
    )


@dataclass(frozen=True)
class BasisOptions(InputOptions):
    """The basis; an option that is not given is None or an empty tuple."""

    max_degree: int | None = option(
        "--max-degree",
        type=int,
        help="Highest degree.  [default: the plan's, else by the number of samples]",
    )
    index_set: str | None = option(
        "--index-set", help="Which products of functions are in the basis: total or hyperbolic."
    )
    max_interactions: int | None = option(
        "--max-interactions", type=int, help="Largest number of inputs in one function."
    )
    max_delay: str | None = option(
        "--max-delay", help="With memory: the largest delay of each degree, as 1:100,2:40,3:20."
    )


@dataclass(frozen=True)
class MethodOptions:
    """How capacities are estimated."""

    method: str = option(
        "--method",
        type=NameChoice(list(METHODS)),
        default="control-variate",
        help="; ".join(f"{name}: {method.summary}" for name, method in METHODS.items()) + ".",
    )
    nan_policy: str = option(
        "--nan-policy",
        type=NameChoice(["raise", "omit"]),
        default="raise",
        help="Refuse rows with missing values, or leave them out.",
    )
    complex_as: str | None = option(
        "--complex-as",
        type=NameChoice(["abs2", "split"]),
        help="Take powers of complex readouts, or real and imaginary parts.",
    )
    washout: int | None = option(
        "--washout",
        type=int,
        help="With --max-delay: steps that are not used at the start of each run.",
    )
    n_components: int | str | None = option("--n-components", **COMPONENTS)
    memory_limit: str | None = option(
        "--memory-limit", help="Memory to use, such as 1GB; files are then read in blocks."
    )
    law: str | None = option(
        "--law",
        type=NameChoice(["declared", "recorded"]),
        help=LAW_HELP,
    )
    input_noise: float | None = option(
        "--input-noise",
        type=float,
        help=INPUT_NOISE_HELP,
    )
    scheduler: str | None = option(
        "--scheduler", metavar="URL", help="Dask cluster, such as tcp://node1:8786."
    )

    @property
    def in_memory(self) -> bool:
        """Whether files are read whole; otherwise their rows are read when they are needed."""
        return self.memory_limit is None and self.scheduler is None

    def settings(self) -> dict[str, Any]:
        """Return the options as parameters of `estimate`."""
        settings: dict[str, Any] = {
            "method": self.method,
            "nan_policy": self.nan_policy,
            "complex_as": self.complex_as,
            "n_components": self.n_components,
            "memory_limit": self.memory_limit,
        }
        if self.washout is not None:
            settings["washout"] = self.washout
        if self.law is not None:
            settings["law"] = self.law
        if self.input_noise is not None:
            settings["input_noise"] = self.input_noise
            settings["law"] = self.law or "recorded"
        return settings


@dataclass(frozen=True)
class ChosenBasis:
    """A basis, and in words where it comes from."""

    basis: ProductBasis
    reasons: list[str]


@click.command(cls=InputsCommand)
@options("files", NamedInputFiles)
@options("basis_options", BasisOptions)
@options("method_options", MethodOptions)
@options("output", EstimateOutput)
def estimate(
    files: NamedInputFiles,
    basis_options: BasisOptions,
    method_options: MethodOptions,
    output: EstimateOutput,
) -> None:
    """Estimate the capacities of the device recorded in FILES.

    FILES hold inputs and readouts, and several are one recording, in the order given or by their
    design index; or of two FILES the first holds the inputs and the second the readouts.
    """
    output.check()
    recording = files.read(in_memory=method_options.in_memory)
    output.check_data(recording)
    chosen = basis_for(recording, basis_options)
    cost = _cost_of(recording, chosen.basis, method_options)
    if not output.quiet:
        announce(files, recording, replace(chosen, reasons=chosen.reasons + cost))
    with warnings_in_checks(), _cluster(method_options.scheduler) as executor:
        settings = method_options.settings()
        result = estimate_capacities(recording, basis=chosen.basis, executor=executor, **settings)
        remark: list[str] = []
        if result.no_numbers and method_options.law is None:
            settings["law"] = "recorded"
            settings["method"] = DEFAULT_METHOD
            result = estimate_capacities(
                recording, basis=chosen.basis, executor=executor, **settings
            )
            remark = [f"{GOES_ON_UNDER_RECORDED_LAW}."]
    output.finish(result, ["", *remark, *summary(result)])


@click.command(cls=InputsCommand)
@options("files", NamedInputFiles)
@options("input_options", InputOptions)
@click.option(
    "--washout",
    type=int,
    help="Steps that are not used at the start of each run; also the longest delay that is "
    "searched.",
)
@click.option("--max-degree", default=6, help="Highest degree that is looked for.")
@click.option("--n-components", **COMPONENTS)
@click.option("--most-tested", default=30_000, help="Largest number of functions to test.")
@click.option("--law", type=NameChoice(["declared", "recorded"]), help=LAW_HELP)
@click.option("--input-noise", type=float, help=INPUT_NOISE_HELP)
@options("output", EstimateOutput)
def explore(
    files: NamedInputFiles,
    input_options: InputOptions,
    output: EstimateOutput,
    *,
    washout: int | None,
    max_degree: int,
    most_tested: int,
    n_components: int | str | None,
    law: str | None,
    input_noise: float | None,
) -> None:
    """Find out which functions of past inputs a device computes.

    No delays are given: functions are looked for up to --max-degree, as far back as the washout.
    FILES are those of `infocap estimate`, with time steps as rows; several files are several runs.
    The result holds the functions that were found.
    """
    output.check()
    recording = files.read()
    output.check_data(recording)
    # Only the families of this basis are used; the search finds the delays.
    chosen = basis_for(recording, BasisOptions(**vars(input_options), max_delay="1:1"))
    if law != "recorded":
        recording = without_overshoot(recording, chosen.basis.families)
    if not output.quiet:
        announce(files, recording, chosen)
    settings = arguments_of(recording, is_sequence=True)
    settings |= {"max_degree": max_degree, "most_tested": most_tested}
    settings["n_components"] = n_components
    if washout is not None:
        settings["washout"] = washout
    if input_noise is not None:
        settings |= {"law": law or "recorded", "input_noise": input_noise}
    elif law is not None:
        settings["law"] = law
    remark: list[str] = []
    with warnings_in_checks():
        exploration = search_functions(family=chosen.basis.families, **settings)
        if exploration.result.no_numbers and law is None:
            settings["law"] = "recorded"
            exploration = search_functions(family=chosen.basis.families, **settings)
            remark = [f"{GOES_ON_UNDER_RECORDED_LAW}."]
    metadata = exploration.result.metadata | {"provenance": provenance(recording)}
    checks = (*exploration.result.checks, *recording.checks)
    result = replace(exploration.result, metadata=metadata, checks=checks)
    output.finish(result, ["", *remark, *exploration.search_lines(), "", *summary(result)])


def announce(files: NamedInputFiles, recording: Recording, chosen: ChosenBasis) -> None:
    """Print what the files hold, and where the basis comes from."""
    n_samples, n_readouts = recording.readouts.shape
    readouts = f"{n_readouts} readouts"
    if recording.readout_unit:
        readouts += f" in {recording.readout_unit}"
    contents = f"{n_samples} samples, {counted(chosen.basis.n_inputs, 'input')}, {readouts}"
    echo(wrapped(f"{files}: {'; '.join([contents, *chosen.reasons])}."))


def _cost_of(recording: Recording, basis: ProductBasis, options: MethodOptions) -> list[str]:
    """Return how long the estimation may take and how much memory, where it takes long."""
    n_samples, n_readouts = recording.readouts.shape
    if options.n_components is not None:
        n_readouts = min(n_readouts, number_of_components(options.n_components, n_samples))
    with_constant = n_readouts + 1
    cost = forecast_cost(basis, n_samples, with_constant, METHODS[options.method])
    if cost.seconds <= MIN_SECONDS_ANNOUNCED:
        return []
    time = duration(cost.seconds)
    return [f"{len(basis):,} functions: up to {time}, {memory_size(cost.n_bytes)} of memory"]


def _cluster(address: str | None) -> AbstractContextManager[Any]:
    """Return the client of a Dask cluster, to be closed after use; None without an address."""
    if address is None:
        return nullcontext()
    try:
        import distributed

        make_client: Any = distributed.Client
        return make_client(address, timeout=SCHEDULER_TIMEOUT_S)
    except ImportError:
        raise ParameterError("--scheduler needs distributed: pip install infocap[dask].") from None
    except (OSError, ValueError) as problem:
        raise ParameterError(
            f"--scheduler {address} cannot be reached ({one_line(problem)}); "
            "start `dask scheduler` and give the address it prints."
        ) from None


# From options to a basis.


def basis_for(recording: Recording, basis_options: BasisOptions) -> ChosenBasis:
    """Return the basis of the options; what they leave open is the plan's, or by the samples."""
    plan = _plan_of(recording)
    if plan is None:
        families: list[Any] = ["legendre"] * np.shape(recording.inputs)[1]
        is_declared = bool(basis_options.family or basis_options.domain or basis_options.input)
        if not is_declared and not fit_usual_range(recording):
            families = [RECORDED] * len(families)
            basis_options = replace(basis_options, family=(RECORDED,))
    else:
        families = list(plan.basis.families)
    basis_options = with_recorded_ranges(recording, basis_options)
    distribution = family_and_domain(basis_options, families)
    if basis_options.max_delay is not None:
        chosen = _basis_with_delays(recording, basis_options, families, distribution)
    else:
        chosen = _basis_without_memory(recording, basis_options, plan, distribution)
    if recording.input_names:
        return replace(chosen, basis=chosen.basis.named(recording.input_names))
    return chosen


def _plan_of(recording: Recording) -> Plan | None:
    entries = recording.metadata.get("plan")
    if entries is None:
        return None
    try:
        return Plan.from_dict(entries)
    except ValueError as problem:
        raise DataError(f"the plan in the file cannot be used: {problem}") from None


def _basis_with_delays(
    recording: Recording,
    basis_options: BasisOptions,
    families: Sequence[Any],
    distribution: dict[str, Any],
) -> ChosenBasis:
    """Return the basis of delayed inputs that --max-delay asks for."""
    for name in ("max_degree", "index_set", "max_interactions"):
        value = getattr(basis_options, name)
        if value is not None:
            raise ParameterError(
                f"`{name}={value}` goes without --max-delay; leave one of them out."
            )
    settings: dict[str, Any] = {"family": families, "n_inputs": len(families)} | distribution
    largest_delays = read_delays(str(basis_options.max_delay))
    basis = delayed_basis(max_delay=largest_delays, **settings)
    kinds = []
    for family in basis.families:
        low, high = family.domain
        kinds.append(f"{family.name} inputs on [{low:g}, {high:g}]")
        if family.name == RECORDED:
            kinds[-1] = "inputs of the distribution that was recorded"
    different_kinds = dict.fromkeys(kinds)
    n_runs = len(recording.runs)
    runs = f" in {n_runs} runs" if n_runs > 1 else ""
    return ChosenBasis(basis, [f"taken as a sequence{runs} of {' and '.join(different_kinds)}"])


def _basis_without_memory(
    recording: Recording,
    basis_options: BasisOptions,
    plan: Plan | None,
    distribution: dict[str, Any],
) -> ChosenBasis:
    """Return the basis of a device without memory, with what the options leave open chosen."""
    settings = dict(distribution)
    for name in ("max_degree", "index_set", "max_interactions"):
        value = getattr(basis_options, name)
        if value is not None:
            settings[name] = value
    entries = None if plan is None else plan.to_dict()
    basis, reasons = choose_basis(np.shape(recording.inputs), entries, **settings)
    if "inputs" in reasons:
        reasons["inputs"] = (
            f"no plan in the file: taken as {reasons['inputs']}; "
            "for others give --family and --domain, or --input"
        )
    if "degree" in reasons:
        reasons["degree"] += "; for another give --max-degree"
    return ChosenBasis(basis, list(reasons.values()))


def family_and_domain(
    input_options: InputOptions, families: Sequence[str | Family]
) -> dict[str, Any]:
    """Return the family and the domain that options name, as parameters of a basis.

    Options are given once for all inputs or once for each; `families` are those of the inputs where
    no option names another one.
    """
    domains = input_options.domain
    if input_options.input and (input_options.family or domains):
        raise ParameterError(
            "--input has the family and the range already; leave out --family and --domain."
        )
    n_inputs = len(families)
    given_families: Sequence[Any] = input_options.family
    if input_options.input:
        given_families = inputs(*input_options.input)
    n_families = len(given_families)
    _refuse_wrong_number("families", n_families, n_inputs, one_for_all=not input_options.input)
    _refuse_wrong_number("domains", len(domains), n_inputs, one_for_all=True)

    settings: dict[str, Any] = {}
    if given_families:
        is_one_for_all = n_families != n_inputs
        settings["family"] = given_families[0] if is_one_for_all else list(given_families)
    if len(domains) == 1:
        settings["domain"] = domains[0]
    elif domains:
        known_families = find_families(settings.get("family", families), n_inputs)
        pairs = zip(known_families, domains, strict=True)
        settings["family"] = [family.on(domain) for family, domain in pairs]
        settings["domain"] = None
    return settings


def _refuse_wrong_number(what: str, number: int, n_inputs: int, *, one_for_all: bool) -> None:
    """Refuse options that are not given once for each input or, if allowed, once for all."""
    if number in (0, n_inputs) or (one_for_all and number == 1):
        return
    allowed = f"1 or {n_inputs}" if one_for_all else str(n_inputs)
    raise ParameterError(f"{number} {what} are given for {n_inputs} inputs; give {allowed}.")


def read_delays(delays: str) -> dict[int, int]:
    """Return the largest delay of each degree, from ``1:100,2:40``."""
    largest_delays = {}
    for text in delays.split(","):
        pair = re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*", text)
        if pair is None:
            raise ParameterError(
                f"--max-delay {delays} is no list of degrees and delays; "
                "give it as 1:100,2:40,3:20."
            )
        largest_delays[int(pair[1])] = int(pair[2])
    return largest_delays
