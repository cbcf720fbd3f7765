"""The two steps of an estimation.

`gather_evidence` makes sums over the samples, and `conclude` a result from these.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from .._arrays import to_numpy
from .._files import MAX_MEMORY_FRACTION
from .._files import available_memory as machine_memory
from .._formatting import join_names, memory_size
from .._threads import all_cores, cores_for_matrices
from .._validation import (
    checks_arguments,
    did_you_mean,
    require_boolean,
    require_function_of,
    require_one_of,
    shown,
)
from ..basis import ProductBasis
from ..diagnostics import (
    Case,
    data_checks,
    mistakes,
    mistakes_of_channels,
    run_checks,
    told_findings,
)
from ..dimension import Repeats, find_components, from_repeats, number_of_components
from ..errors import Check, DataError, DataWarning, ParameterError, warn
from ..kernels import condition_margin
from ..result import CapacityResult
from ..samples import (
    ColumnStatistics,
    Engine,
    Samples,
    omit_missing_rows,
    scan_columns,
)
from ..typing import ArrayLike, Floats, Integers
from ._cost import MIN_FLOPS_PER_SECOND, fit_into_memory, make_engine
from ._evidence import Evidence, gather
from ._method import Estimate, Estimator, Method
from ._methods import DEFAULT_METHOD, METHODS
from ._recorded_inputs import under_law
from ._recorded_law import RECORDED_LAW

# Days that an estimation may take on a slow machine. If it would take longer, the basis was
# probably chosen too large by mistake.
MAX_DAYS = 2.0
# Arrays of a number for every readout and function that a job has at a time at least.
N_LARGE_ARRAYS = 4
# Bytes to count for the indices of each function.
INDEX_BYTES_PER_FUNCTION = 512
# Bytes that every machine has. For a smaller job the machine is not asked for its memory.
BYTES_ON_ANY_MACHINE = 1e9
SECONDS_PER_DAY = 86_400.0

# Floating-point operations per second of any graphics card made for computing.
DEVICE_FLOPS_PER_SECOND = 5e11
# Cores from which on the data checks run beside the pass over the rows instead of after it.
MIN_CORES_FOR_CONCURRENT_CHECKS = 4
# The checks then use one core in so many. They are small steps of Python, so that more threads
# would only wait for the interpreter's lock (GIL).
CORES_PER_CHECKING_THREAD = 8
# Readouts from which on the steps are long ones of NumPy, which leave that lock to others, and how
# many cores a thread then stands for.
MIN_READOUTS_FOR_CHECKING_THREADS = 500
CORES_PER_THREAD_OF_MANY_READOUTS = 2

# Values of the basis (samples times functions) below which one thread is faster than several for
# the matrices of a method: NumPy and SciPy have a matrix library each, and the idle threads of one
# take the cores from the other. A device leaves only small matrices to the processor.
MAX_BASIS_VALUES_FOR_ONE_THREAD = 20_000_000
# Largest size of the coordinates in a result, in bytes. Larger ones are left out, and
# `CapacityResult.capacity_of` then raises an error.
MAX_COORDINATE_BYTES = 64_000_000
# Coordinates are kept of all samples and of both halves.
N_COORDINATE_ARRAYS = 3

# Condition number of the rows, as vectors, below which none of them is a combination of others.
MAX_CONDITION_OF_CLEAR_ROWS = 1e6

# A search for missing rows or for components reads this fraction of the memory limit at a time: it
# holds several copies.
MEMORY_FRACTION_FOR_ALL_CHANNELS = 1 / 16


# A function that gives what the data checks found, by cause.
DataFindings = Callable[[], dict[str, list[Check]]]


@checks_arguments
def gather_evidence(
    u: ArrayLike,
    x: ArrayLike,
    basis: ProductBasis,
    *,
    constant: bool = True,
    nan_policy: str = "raise",
    complex_as: str | None = None,
    time: ArrayLike | None = None,
    design_index: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    repeats: ArrayLike | None = None,
    washout: int | None = None,
    n_components: int | str | None = None,
    memory_limit: str | float | None = None,
    executor: Any = None,
    method: str | Estimator | None = None,
    law: str = "declared",
) -> Evidence:
    """Compute from the data the sums that every method needs: one pass to scan, one for the sums.

    Several methods can then be used on the same samples: `conclude` makes a result with one method,
    and ``METHODS[name](evidence)`` returns the capacities alone.

    Parameters
    ----------
    u, x, basis
        Inputs, readouts and functions, as for `estimate`.
    constant, nan_policy, complex_as, time, design_index, sample_weight, repeats, washout
        As for `estimate`.
    n_components
        As for `estimate`.
    memory_limit, executor
        As for `estimate`.
    method
        The method that will be used, if it is known: with a memory limit its own needs count.
    law
        As for `estimate`.

    Returns
    -------
    Evidence
        Sums over the samples, with the samples themselves.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> u = infocap.draw(basis, 1024, seed=1)
    >>> x = infocap.systems.RandomFeatures(2, 5)(u)
    >>> evidence = infocap.estimators.gather_evidence(u, x, basis)
    >>> round(infocap.estimators.conclude(evidence, "raw").total, 2)
    5.96
    >>> round(infocap.estimators.conclude(evidence, "threshold-richardson").total, 2)
    5.93
    """
    samples = Samples.of(
        u,
        x,
        basis,
        complex_as=complex_as,
        design_index=design_index,
        time=time,
        sample_weight=sample_weight,
        repeats=repeats,
        washout=washout,
    )
    samples = under_law(samples, law)
    engine = make_engine(u, x, executor, memory_limit)
    constant = require_boolean("constant", constant)
    require_one_of("nan_policy", nan_policy, ("raise", "omit"))
    _refuse_host_options_for_device_arrays(samples, engine)
    if nan_policy == "omit":
        samples = _without_missing_rows(samples, engine)
    findings_of_channels: DataFindings | None = None
    if n_components is not None:
        samples, findings_of_channels = _with_components(samples, engine, constant, n_components)
    if engine.memory_limit is not None:
        chosen_method = None if method is None else find_method(method, {})
        engine = fit_into_memory(engine, samples, constant, chosen_method)

    with all_cores() as n_cores, np.errstate(under="ignore"):  # readouts near 1e-310 are valid
        statistics = scan_columns(samples, engine)
        samples = samples.choose_preparation(statistics, constant)
        _refuse_impossible_job(samples)
        _refuse_rows_without_dependence(samples)
        findings = _start_data_checks(samples, statistics, n_cores)
        if findings_of_channels is not None:
            findings = _both_findings(findings_of_channels, findings)
        evidence = replace(gather(samples, engine, statistics), data_findings=findings)
    _refuse_too_few_samples(evidence)
    return evidence


def find_mistakes(
    u: ArrayLike,
    x: ArrayLike,
    basis: ProductBasis,
    *,
    nan_policy: str = "raise",
    complex_as: str | None = None,
    time: ArrayLike | None = None,
    design_index: ArrayLike | None = None,
    washout: int | None = None,
) -> list[Check]:
    """Return what the checks of the data find without any estimation, one cause first.

    Unlike an estimation this needs no more samples than readouts: of these the largest components
    are looked at. Parameters are as for `estimate`.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> x = infocap.systems.RandomFeatures(2, 400, noise=0.01)(u, seed=1)
    >>> x[5, 3] = 9.91e37
    >>> [check.found["cause"] for check in find_mistakes(u, x, basis)]
    ['codes']
    """
    samples = Samples.of(
        u,
        x,
        basis,
        complex_as=complex_as,
        design_index=design_index,
        time=time,
        washout=washout,
    )
    engine = make_engine(u, x, None, None)
    if nan_policy == "omit":
        samples = _without_missing_rows(samples, engine)
    statistics = scan_columns(samples, engine)
    samples = samples.choose_preparation(statistics, constant=True)
    return told_findings(samples, statistics)


def _refuse_host_options_for_device_arrays(samples: Samples, engine: Engine) -> None:
    """Refuse an executor or a memory limit where the arrays lie on a device."""
    if not (samples.x.on_device or samples.u.on_device):
        return
    for name in ("executor", "memory_limit"):
        value = getattr(engine, name)
        if value is not None:
            raise ParameterError(
                f"`{name}={value!r}` is for work in the processor's memory and cannot work on "
                f"arrays that lie on a device; leave {name} out, or pass NumPy arrays."
            )


def _without_missing_rows(samples: Samples, engine: Engine) -> Samples:
    """Return the samples without the rows that hold NaN or infinite values."""
    if samples.basis.of_sequences:
        raise ParameterError(
            "`nan_policy='omit'` would tear a sequence apart; give runs without missing values as "
            "a list."
        )
    return omit_missing_rows(samples, _engine_for_channels(samples, engine))


def _engine_for_channels(samples: Samples, engine: Engine) -> Engine:
    """Return the engine that goes through all channels before it is known how many are used.

    It reads a small part of the memory limit at a time. Of more channels than samples it takes few
    rows at a time.
    """
    if engine.memory_limit is not None:
        chunk_bytes = int(engine.memory_limit * MEMORY_FRACTION_FOR_ALL_CHANNELS)
        engine = replace(engine, chunk_bytes=chunk_bytes)
    if samples.x.shape[1] < samples.n_samples:
        return engine
    return engine.for_wide_rows(samples.x.shape[1])


def _with_components(
    samples: Samples, engine: Engine, constant: bool, n_components: int | str
) -> tuple[Samples, DataFindings | None]:
    """Return the samples with components in place of channels, and what checks find in channels.

    This is one step before everything else, so that the estimation sees components alone. Where
    there are no more channels than components were asked for, the channels stay.
    """
    count = number_of_components(n_components, samples.n_samples)
    engine = _engine_for_channels(samples, engine)
    with all_cores(), np.errstate(under="ignore"):
        statistics = scan_columns(samples, engine, with_sample=False)
        channels = samples.choose_preparation(statistics, constant)
        if count >= len(channels.channels):
            return samples, None
        with_components = find_components(channels, engine, statistics, count)
    return with_components, partial(mistakes_of_channels, channels, statistics)


def _both_findings(of_channels: DataFindings, of_components: DataFindings) -> DataFindings:
    """Return a function that gives the findings of channels and of components, computed once."""

    def findings() -> dict[str, list[Check]]:
        together = dict(of_channels())
        for cause, checks in of_components().items():
            together[cause] = together.get(cause, []) + checks
        return together

    return cache(findings)


def _refuse_impossible_job(samples: Samples) -> None:
    """Refuse a job for which no machine has the memory or the days, before it begins."""
    n = samples.n_samples
    k = samples.n_columns
    n_terms = len(samples.basis)
    n_bytes = 8.0 * N_LARGE_ARRAYS * k * n_terms + INDEX_BYTES_PER_FUNCTION * n_terms
    flops_per_second = DEVICE_FLOPS_PER_SECOND if samples.x.on_device else MIN_FLOPS_PER_SECOND
    n_days = 2.0 * n * k * n_terms / flops_per_second / SECONDS_PER_DAY
    too_large = False
    if n_bytes > BYTES_ON_ANY_MACHINE:
        too_large = n_bytes > MAX_MEMORY_FRACTION * machine_memory()
    if too_large or n_days > MAX_DAYS:
        raise ParameterError(
            f"the basis has {n_terms:,} functions: with {k} readouts and {n:,} samples that takes "
            f"about {memory_size(n_bytes)} of memory and up to {n_days:,.1f} days; lower the "
            "degree, or cut with `max_interactions` or `index_set='hyperbolic'`."
        )


def _start_data_checks(
    samples: Samples, statistics: ColumnStatistics, n_cores: int
) -> Callable[[], dict[str, list[Check]]]:
    """Return a function that gives the findings of the data checks, computed once.

    The checks run concurrently with the pass over the rows where cores would be idle: beside a
    device that is busy for a second or more, or on a machine with many cores. Otherwise they run
    when their findings are first asked for.
    """
    if samples.x.on_device:
        n_operations = samples.n_samples * samples.n_columns * len(samples.basis)
        run_concurrently = n_operations > DEVICE_FLOPS_PER_SECOND
    else:
        run_concurrently = n_cores >= MIN_CORES_FOR_CONCURRENT_CHECKS and samples.in_memory
    if not run_concurrently:
        return cache(partial(mistakes, samples, statistics))
    cores_per_thread = CORES_PER_CHECKING_THREAD
    if samples.n_columns >= MIN_READOUTS_FOR_CHECKING_THREADS:
        cores_per_thread = CORES_PER_THREAD_OF_MANY_READOUTS
    check_data = partial(mistakes, samples, statistics, cores_per_thread)
    return ThreadPoolExecutor(max_workers=1).submit(check_data).result


def _refuse_rows_without_dependence(samples: Samples) -> None:
    """Refuse N <= K samples before any other work, if their rows are clearly independent.

    The rank is then N, which a look at N x N products tells long before the readouts are factored.
    """
    n = samples.n_samples
    if n > samples.n_columns or not samples.in_memory:
        return
    x = samples.readouts(0, n)
    with cores_for_matrices(n):
        margin = condition_margin(MAX_CONDITION_OF_CLEAR_ROWS, x @ x.T)
    if float(margin) > 0:
        raise _too_few_samples(samples, samples.n_columns)


def _refuse_too_few_samples(evidence: Evidence) -> None:
    """Refuse N <= K samples, of which readouts can express any function exactly."""
    if evidence.n_samples <= evidence.rank:
        raise _too_few_samples(evidence.samples, evidence.maximum)


def _too_few_samples(samples: Samples, n_columns: int) -> DataError:
    n_samples = samples.n_samples
    if samples.components is not None:
        return DataError(
            f"x has {n_samples} samples for {samples.components.in_words} and the constant: with "
            "N <= K every function is fitted exactly and every capacity is 1; ask for fewer, "
            f"`n_components='auto'` takes {number_of_components('auto', n_samples)}."
        )
    return DataError(
        f"x has {n_samples} samples for {n_columns} readouts: with N <= K every function is fitted "
        f"exactly and every capacity is 1; take at least 4 K = {4 * n_columns} samples, or pass "
        "`n_components='auto'`: what a few components hold, the channels "
        "hold at least."
    )


@checks_arguments
def conclude(
    evidence: Evidence,
    method: str | Estimator = DEFAULT_METHOD,
    method_options: Mapping[str, Any] | None = None,
) -> CapacityResult:
    """Run one method on the evidence, run the checks, and return capacities and checks as a result.

    Parameters
    ----------
    evidence
        From `gather_evidence`.
    method
        A name of `METHODS`, or a function of `Evidence`.
    method_options
        Options of the method by name.

    Returns
    -------
    CapacityResult
        The capacities with their errors and the findings of all checks.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=3)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> evidence = infocap.estimators.gather_evidence(u, u**3, basis)
    >>> infocap.estimators.conclude(evidence, "raw").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16])
    """
    if not isinstance(evidence, Evidence):
        raise ParameterError(
            f"`evidence={evidence!r:.60}` must come from infocap.estimators.gather_evidence(...)."
        )
    options = dict(method_options or {})
    chosen_method = find_method(method, options, evidence.samples.law)
    estimate = _run_method(chosen_method, evidence, options)
    total = estimate.total
    if total is None:
        total = float(np.sum(estimate.capacity))
    with all_cores(), np.errstate(under="ignore"):
        repeats, repeated_rows = _analyse_repeats(evidence.samples)
        case = Case(
            evidence=evidence,
            method=chosen_method,
            estimate=estimate,
            total=total,
            repeats=repeats,
            repeated=repeated_rows,
        )
        checks = run_checks(case)
        coordinates, weights = _coordinates_and_weights(evidence, estimate)
    if any(check.found.get("no_numbers") for check in checks):
        checks = _of_any_law(checks, estimate)
        unknown = np.full(len(evidence.basis), np.nan)
        estimate = Estimate(unknown, raw=unknown)
        return _as_result(evidence, chosen_method, checks, estimate, total=float("nan"))
    return _as_result(
        evidence,
        chosen_method,
        checks,
        estimate,
        total=total,
        noise_limited_total=None if repeats is None else repeats.total,
        noise_limited_standard_error=None if repeats is None else repeats.standard_error,
        coordinates=coordinates,
        weights=weights,
    )


def _as_result(
    evidence: Evidence,
    method: Method,
    checks: tuple[Check, ...],
    estimate: Estimate,
    **further: Any,
) -> CapacityResult:
    """Return the result of an estimate, and raise its warnings.

    `further` are the fields of the result that are not those of the estimate or the evidence.
    """
    for check in checks:
        if check.kind == "warning":
            warn(check)
    return CapacityResult(
        capacity=estimate.capacity,
        raw=evidence.raw if estimate.raw is None else estimate.raw,
        unbiased=estimate.unbiased,
        standard_error=estimate.standard_error,
        p_value=estimate.p_value,
        threshold=estimate.threshold,
        total_standard_error=estimate.total_standard_error,
        n_samples=evidence.n_samples,
        n_readouts=evidence.n_readouts,
        maximum=evidence.maximum,
        rank=evidence.rank,
        basis=evidence.basis,
        method=method.name,
        checks=checks,
        residual_covariance=estimate.residual_covariance,
        influence_variance=estimate.influence_variance,
        leverage_ratio=estimate.leverage_ratio,
        without_stretches=estimate.without_stretches,
        without_groups=estimate.without_groups,
        inputs_fingerprint=estimate.inputs_fingerprint,
        components=evidence.samples.components,
        recorded_law=estimate.recorded_law,
        **further,
    )


def _of_any_law(checks: tuple[Check, ...], estimate: Estimate) -> tuple[Check, ...]:
    """Return the checks that hold whatever the law of the inputs is, and why there are no numbers.

    What the method says is about numbers that are not shown.
    """
    of_any_law = data_checks(of_sequences=True, law="recorded") | data_checks(
        of_sequences=False, law="recorded"
    )
    chosen = []
    for check in checks:
        holds = check not in estimate.checks
        looked_for = check.found.get("looked_for")
        if looked_for is not None and looked_for not in of_any_law:
            holds = bool(check.found.get("no_numbers"))
        if holds:
            chosen.append(check)
    return tuple(chosen)


def find_method(method: str | Estimator, options: dict[str, Any], law: str = "declared") -> Method:
    """Return the method behind a name or a user's function, after its options were checked.

    The law of the recorded inputs has a method of its own in place of the default one.
    """
    if law == "recorded":
        if method not in (DEFAULT_METHOD, RECORDED_LAW):
            raise ParameterError(
                f"`method={shown(method)}` is for the declared law of the inputs, and "
                "law='recorded' has a method of its own; leave out one of them."
            )
        method = RECORDED_LAW
    if isinstance(method, str):
        require_one_of("method", method, METHODS)
        method = METHODS[method]
    if not isinstance(method, Method):
        require_function_of("method", method, "Evidence")
        name = getattr(method, "__name__", type(method).__name__)
        method = Method(name, method, summary="a user's function")
    if options:
        _refuse_unknown_options(method, options)
    return method


def _refuse_unknown_options(method: Method, options: dict[str, Any]) -> None:
    """Refuse options that a method does not have; the answer names its own and the nearest one."""
    signature = inspect.signature(method.function)
    try:
        signature.bind(None, **options)
    except TypeError as problem:
        names = list(signature.parameters)[1:]  # the first parameter is the evidence
        unknown = [name for name in options if name not in names]
        if not unknown:
            raise ParameterError(f"method {method.name!r}: {problem}.") from None
        if not names:
            raise ParameterError(
                f"method {method.name!r} has no option {unknown[0]!r}; it has no options."
            ) from None
        options_in_words = join_names([repr(name) for name in names])
        raise ParameterError(
            f"method {method.name!r} has no option {unknown[0]!r}; its options are "
            f"{options_in_words}{did_you_mean(unknown[0], names)}"
        ) from None


def _run_method(method: Method, evidence: Evidence, options: dict[str, Any]) -> Estimate:
    """Run a method, and refuse capacities that are not one finite number per function."""
    n_values = evidence.n_samples * len(evidence.basis)
    on_one_thread = evidence.samples.x.on_device or n_values < MAX_BASIS_VALUES_FOR_ONE_THREAD
    with all_cores() if on_one_thread else nullcontext(), np.errstate(under="ignore"):
        estimate = method(evidence, **options)
    capacity = estimate.capacity
    if capacity.shape != evidence.raw.shape:
        raise ParameterError(
            f"the method gave capacities of shape {capacity.shape}; it must return one for each of "
            f"the {len(evidence.raw)} functions."
        )
    finite = np.isfinite(capacity)
    if estimate.recorded_law is not None:
        finite |= ~estimate.recorded_law.told_apart
    if not finite.all():
        label = evidence.basis.label(int(np.argmin(finite)))
        raise ParameterError(
            f"the method gave a capacity that is not a finite number, for {label}; it must return "
            "finite numbers."
        )
    return estimate


def _coordinates_and_weights(
    evidence: Evidence, estimate: Estimate
) -> tuple[tuple[Floats, ...], Floats | None]:
    """Return coordinates and readout weights W* of the functions; empty if too large to keep."""
    if estimate.recorded_law is not None:  # targets would have to be known on the recorded inputs
        return (), evidence.readout_weights
    n_bytes = N_COORDINATE_ARRAYS * 8 * evidence.rank * len(evidence.raw)
    if n_bytes > MAX_COORDINATE_BYTES:
        return (), None
    coordinates = estimate.coordinates
    if not coordinates:
        coordinates = (evidence.coordinates, *evidence.half_coordinates)
    return tuple(map(to_numpy, coordinates)), evidence.readout_weights


def _analyse_repeats(samples: Samples) -> tuple[Repeats | None, Integers | None]:
    """Return the noise analysis of the rows that were measured twice, and their numbers.

    Both are None where there are no repeats.
    """
    if samples.repeats is None:
        return None, None
    second = samples.repeats.read(0, samples.n_samples, on_host=True)
    is_repeated = np.all(np.isfinite(second), axis=1)
    if not is_repeated.any():
        raise DataError(
            "repeats has a NaN or infinite value in every row; at least some must be repeated."
        )
    first = samples.x.read(0, samples.n_samples, on_host=True)
    measured_once = None if is_repeated.all() else first[~is_repeated]
    options: dict[str, Any] = {"measured_once": measured_once}
    weights = samples.sample_weight(0, samples.n_samples)
    if weights is not None:
        options["sample_weight"] = np.concatenate([weights[is_repeated], weights[~is_repeated]])
    with warnings.catch_warnings():
        # Its warnings are among its checks, which `run_checks` passes on to the result.
        warnings.simplefilter("ignore", DataWarning)
        repeats = from_repeats(
            first[is_repeated], second[is_repeated], constant=samples.constant, **options
        )
    return repeats, np.flatnonzero(is_repeated)
