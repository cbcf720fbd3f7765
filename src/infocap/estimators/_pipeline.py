"""From samples to a result: gather the evidence in one pass, and conclude with one method."""

import inspect
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from .._arrays import to_numpy
from .._files import memory as machine_memory
from .._threads import all_cores
from .._validation import one_of, yes_or_no
from ..basis._product import ProductBasis
from ..diagnostics._checks import Case, mistakes, run_checks
from ..dimension._repeats import Repeats, from_repeats
from ..errors import DataError, DataWarning, ParameterError, warn
from ..result._capacity_result import CapacityResult
from ..samples._engine import Engine, chosen_executor
from ..samples._look import first_look, without_gaps
from ..samples._samples import Samples
from ..typing import ArrayLike, Integers
from ._cost import SLOW_RATE, byte_count, within_memory
from ._evidence import Evidence, gather
from ._method import Estimate, Estimator, Method
from ._methods import METHODS

# Days and share of the machine's memory beyond which a job is refused: nobody means to start it.
MOST_DAYS, MOST_OF_MEMORY = 2.0, 0.8
# Cores from which on some look for mistakes in the data while others go through the rows, and one in how many does:
# checks are small steps, for which more threads wait for Python's lock.
MANY_CORES, ONE_CORE_IN = 4, 8
# Bytes that every machine has, so that there is no need to ask.
LARGE_BYTES = 1e9


# Operations per second that any graphics card for computing can do.
DEVICE_RATE = 5e11


# Values of the basis below which a method's matrices are handled faster by one thread than by several, which wait for
# each other: NumPy and SciPy have a matrix library each, and idle threads of one take the cores from the other. The
# matrices that a device leaves to the processor are always small.
SMALL = 20_000_000


# Bytes of coordinates that travel with a result; larger ones are not kept, and capacity_of says so.
KEPT_BYTES = 64_000_000


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
    memory_limit: str | float | None = None,
    executor: Any = None,
) -> Evidence:
    """What every method sees, from one pass over the data: for several methods on the same samples.

    The arguments are those of `estimate`. `conclude` makes a result of it with one method; `METHODS[name](evidence)` gives the bare capacities.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> u = infocap.draw(basis, 1024, seed=1)
    >>> seen = infocap.estimators.gather_evidence(u, infocap.systems.RandomFeatures(2, 5)(u), basis)
    >>> [round(infocap.estimators.conclude(seen, method).total, 2) for method in ("raw", "threshold-richardson")]
    [5.96, 5.93]
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
    engine = Engine(
        chosen_executor(executor, u, x), None if memory_limit is None else byte_count(memory_limit)
    )
    return evidence_of(samples, engine, constant, nan_policy, None)


def evidence_of(
    samples: Samples, engine: Engine, constant: bool, nan_policy: str, method: Method | None
) -> Evidence:
    """Look at all rows, refuse what cannot be used, prepare the readouts, and go through them once.

    A job for which no machine has the memory or the days is refused before it begins.
    """
    constant = yes_or_no("constant", constant)
    one_of("nan_policy", nan_policy, ("raise", "omit"))
    for name, value in (("executor", engine.executor), ("memory_limit", engine.memory_limit)):
        if value is not None and (samples.x.on_device or samples.u.on_device):
            raise ParameterError(
                f"`{name}={value!r}` is for work in the processor's memory and cannot work on arrays that lie on a "
                f"device; leave {name} out, or pass NumPy arrays."
            )
    if nan_policy == "omit" and samples.basis.of_sequences:
        raise ParameterError(
            "`nan_policy='omit'` would tear a sequence apart; give runs without missing values as a list."
        )
    if nan_policy == "omit":  # a sixteenth of the memory allowed is read at a time
        less = {} if engine.memory_limit is None else {"chunk_bytes": engine.memory_limit // 16}
        samples = without_gaps(samples, replace(engine, **less))
    if engine.memory_limit is not None:
        engine = within_memory(engine, samples, constant, method)
    with (
        all_cores() as cores,
        np.errstate(under="ignore"),
    ):  # readouts of 1e-310 are as good as others
        look = first_look(samples, engine)
        samples = samples.prepared(look, constant)
        n, k, terms = samples.n_samples, samples.n_columns, len(samples.basis)
        n_bytes = 8.0 * 4 * k * terms + 512.0 * terms
        days = 2.0 * n * k * terms / (DEVICE_RATE if samples.x.on_device else SLOW_RATE) / 86400
        too_large = n_bytes > LARGE_BYTES and n_bytes > MOST_OF_MEMORY * machine_memory()
        if too_large or days > MOST_DAYS:
            raise ParameterError(
                f"the basis has {terms:,} functions: with {k} readouts and {n:,} samples that takes about "
                f"{n_bytes / 1e9:,.1f} GB of memory and up to {days:,.1f} days; lower the degree, or cut with "
                "`max_interactions` or `index_set='hyperbolic'`."
            )
        beside = (
            n * k * terms > DEVICE_RATE
            if samples.x.on_device
            else cores >= MANY_CORES and samples.in_memory
        )
        looked_for: Any = cache(partial(mistakes, samples, look, ONE_CORE_IN if beside else 1))
        if beside:  # a card that is at work for long leaves time, many cores leave some
            looked_for = ThreadPoolExecutor(1).submit(looked_for).result
        seen = replace(gather(samples, engine, look), mistakes=looked_for)
    if seen.n_samples <= seen.rank:
        raise DataError(
            f"x has {seen.n_samples} samples for {seen.maximum} readouts: with N <= K every function is fitted exactly "
            f"and every capacity is 1; take at least 4 K = {4 * seen.maximum} samples, or use fewer readouts."
        )
    return seen


def conclude(
    evidence: Evidence,
    method: str | Estimator = "control-variate",
    method_options: Mapping[str, Any] | None = None,
) -> CapacityResult:
    """Run one method on the evidence, look for what is wrong, and put everything into a result.

    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=3)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimators.conclude(infocap.estimators.gather_evidence(u, u**3, basis), "raw").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16])
    """
    if not isinstance(evidence, Evidence):
        raise ParameterError(
            f"`evidence={evidence!r:.60}` must come from infocap.estimators.gather_evidence(...)."
        )
    options = dict(method_options or {})
    chosen = find_method(method, options)
    small = evidence.samples.x.on_device or evidence.n_samples * len(evidence.basis) < SMALL
    with all_cores() if small else nullcontext(), np.errstate(under="ignore"):
        found = chosen.function(evidence, **options)
    found = found if isinstance(found, Estimate) else Estimate(np.asarray(found, dtype=float))
    if found.capacity.shape != evidence.raw.shape:
        raise ParameterError(
            f"the method gave {found.capacity.shape} capacities for {len(evidence.raw)} functions."
        )
    if not np.isfinite(found.capacity).all():
        label = evidence.basis.label(int(np.argmin(np.isfinite(found.capacity))))
        raise ParameterError(
            f"the method gave a capacity that is not a finite number, for {label}."
        )
    total = float(np.sum(found.capacity)) if found.total is None else found.total
    with all_cores(), np.errstate(under="ignore"):
        limit, twice = (
            (None, None) if evidence.samples.repeats is None else _noise_limit(evidence.samples)
        )
        checks = run_checks(Case(evidence, chosen, found, total, limit, twice))
        known: dict[str, Any] = {"total": total, "checks": checks, "coordinates": ()}
        if 3 * 8 * evidence.rank * len(evidence.raw) <= KEPT_BYTES:
            inside = found.coordinates or (evidence.coordinates, *evidence.half_coordinates)
            known |= {
                "coordinates": tuple(map(to_numpy, inside)),
                "weights": evidence.readout_weights,
            }
    if limit is not None:
        known |= {
            "noise_limited_total": limit.total,
            "noise_limited_standard_error": limit.standard_error,
        }
    for check in checks:
        if check.kind == "warning":
            warn(check)
    return CapacityResult(
        **vars(found) | known,
        raw=evidence.raw,
        n_samples=evidence.n_samples,
        n_readouts=evidence.samples.x.shape[1],
        maximum=evidence.samples.n_columns,
        rank=evidence.rank,
        basis=evidence.basis,
        method=chosen.name,
    )


def find_method(method: str | Estimator, options: dict[str, Any]) -> Method:
    """The method behind a name or a function of one's own, after its options are checked."""
    name = method if isinstance(method, str) else getattr(method, "__name__", type(method).__name__)
    if isinstance(method, str):
        one_of("method", method, METHODS)
        method = METHODS[method]
    if not callable(method):
        raise ParameterError(f"`method={method!r}` must be a name or a function of Evidence.")
    if not isinstance(method, Method):
        method = Method(name, method, "a function of one's own")
    if options:
        signature = inspect.signature(method.function)
        try:
            signature.bind(None, **options)
        except TypeError as problem:
            said = f"method {method.name!r} does not take these options: {problem}"
            raise ParameterError(
                f"{said}; it takes {list(signature.parameters)[1:] or 'none'}."
            ) from None
    return method


def _noise_limit(samples: Samples) -> tuple[Repeats, Integers]:
    """The total over a complete basis that noise allows, from the rows measured twice, and which those are."""
    assert samples.repeats is not None
    again = samples.repeats.read(0, samples.n_samples, on_host=True)
    twice = np.all(np.isfinite(again), axis=1)
    if not twice.any():
        raise DataError(
            "repeats has a NaN or infinite value in every row; at least some must be repeated."
        )
    x, weights = (
        samples.x.read(0, samples.n_samples, on_host=True),
        samples.weights(0, samples.n_samples),
    )
    rows: dict[str, Any] = {"measured_once": None if twice.all() else x[~twice]}
    if weights is not None:
        rows["weights"] = np.concatenate([weights[twice], weights[~twice]])
    with (
        warnings.catch_warnings()
    ):  # what it warns of is in its checks, and so in those of the result
        warnings.simplefilter("ignore", DataWarning)
        limit = from_repeats(x[twice], again[twice], constant=samples.constant, **rows)
    return limit, np.flatnonzero(twice)
