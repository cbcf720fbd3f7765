"""estimate: inputs and readouts go in, a CapacityResult comes out; and its steps, evidence, conclude and probe."""

import inspect
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from .._array import to_numpy
from .._check import made_by, one_of, yes_or_no
from .._files import memory as machine_memory
from .._parallel import all_cores
from ..basis._delayed import at_one_step
from ..basis._family import Family
from ..basis._product import ProductBasis
from ..checks._checks import Case, mistakes, run_checks
from ..designs import draw, draw_weighted, needs_weights
from ..dimension._repeats import Repeats, from_repeats
from ..errors import Check, DataError, DataWarning, ParameterError, renamed, warn
from ..estimators import ESTIMATORS
from ..estimators._evidence import Evidence, gather
from ..estimators._method import Estimate, Estimator, Method
from ..result._capacity_result import CapacityResult
from ..samples._engine import Engine, chosen_executor
from ..samples._look import first_look, without_gaps
from ..samples._samples import Samples
from ..systems._measure import measure
from ..typing import ArrayLike, Integers, System
from ._choose import choose_basis, said_of_choice
from ._cost import SLOW_RATE, byte_count, within_memory

# Days and share of the machine's memory beyond which a job is refused: nobody means to start it.
MOST_DAYS, MOST_OF_MEMORY = 2.0, 0.8
# Bytes that every machine has, so that there is no need to ask.
LARGE_BYTES = 1e9
# Operations per second that any graphics card for computing can do.
DEVICE_RATE = 5e11
# Cores from which on some look for mistakes in the data while others go through the rows, and one in how many does:
# checks are small steps, for which more threads wait for Python's lock.
MANY_CORES, ONE_CORE_IN = 4, 8
# Values of the basis below which a method's matrices are handled faster by one thread than by several, which wait for
# each other: NumPy and SciPy have a matrix library each, and idle threads of one take the cores from the other. The
# matrices that a device leaves to the processor are always small.
SMALL = 20_000_000
# Bytes of coordinates that travel with a result; larger ones are not kept, and capacity_of says so.
KEPT_BYTES = 64_000_000


def estimate(
    u: ArrayLike,
    x: ArrayLike,
    basis: ProductBasis | None = None,
    *,
    family: str | Family | Sequence[str | Family] | None = None,
    method: str | Estimator = "control-variate",
    constant: bool = True,
    nan: str = "raise",
    complex_as: str | None = None,
    index: ArrayLike | None = None,
    acquired: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    repeats: ArrayLike | None = None,
    washout: int | None = None,
    at: int | None = None,
    memory: str | float | None = None,
    executor: Any = None,
    **options: Any,
) -> CapacityResult:
    """The information processing capacity of a system, from measured inputs and readouts.

    Parameters
    ----------
    u, x
        Inputs (samples, inputs) and readouts (samples, channels): NumPy arrays, or anything with ``.shape``
        and row slices (memmap, h5py, zarr, pandas, xarray, dask), which is read in blocks. Of a sequence u may be
        (samples,); several runs of it are a list of inputs and a list of readouts, or arrays (runs, samples, ...).
    basis
        The functions whose capacities are wanted, from `product_basis`, or from `delayed_basis` for a device with
        memory: then rows are time steps, in order.
    family
        Of the inputs, where no basis is given: ``"normal"``, or what `infocap.inputs` gives; uniform on [-1, 1] where
        this is left out too. The degree is then the highest that leaves two samples for each function, and a note
        among the checks says which.
    method
        A name from `infocap.ESTIMATORS`, or your own function of `Evidence` that gives (terms,) capacities
        or an `Estimate`. Further keyword arguments go to it, such as ``bound="data"``.
    constant
        Append the constant readout once (the paper's convention); a constant channel that is already there
        takes its place.
    nan
        ``"raise"``, or ``"drop"`` to leave out rows with missing values.
    complex_as
        ``"abs2"`` or ``"split"`` for complex readouts.
    index
        Design index of each row: rows of a Sobol design must come in its order.
    acquired
        When each row was measured (a rank or a time), if not in the order of the rows; drift and shifts
        are looked for in that order.
    weights
        Of inputs that were not drawn from the distribution of the basis: its density over theirs, as from
        `draw_weighted`.
    repeats
        The readouts measured a second time at the same inputs, in the shape of x, with NaN in the rows that were
        not repeated. They tell the total that noise allows over a complete basis (`dimension.from_repeats`),
        and so how much lies outside this one.
    washout
        Time steps at the beginning of every run of a sequence whose readouts are not used, because the device still
        remembers the state that it started from; the largest delay by default, and never less.
    at
        One time step of many trials, for transients and devices that do not forget: u is then (trials, steps) or
        (trials, steps, inputs) and x (trials, steps, channels), and samples are trials.
    memory
        How much may be used for the work (what is in memory already is not counted): ``"1GB"``, ``"512MiB"`` or bytes.
        What lies on disk is then read in blocks that fit; a job that cannot fit is refused. With processes or a
        cluster as `executor` it holds for each worker.
    executor
        Who goes through the data: a `concurrent.futures.Executor` or a `dask.distributed.Client`; this process's
        threads by default. Files travel as their names, so all workers must see them. See docs/cluster.md.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> u = infocap.draw(basis, 1024, seed=1)
    >>> system = infocap.theory.random_mixture(basis, n_active=6, n_readouts=5, seed=1)
    >>> result = infocap.estimate(u, system(u), basis)
    >>> print(f"{result.total:.1f} of {result.maximum}, exactly {system.exact().sum():.1f}")
    6.0 of 6, exactly 6.0
    """
    if "acquisition" in options:
        acquired = renamed("acquisition", "acquired", options.pop("acquisition"))
    notes: list[Check] = []
    if basis is None:
        if len(shape := np.shape(u)) != 2:
            raise DataError(f"u has shape {shape}; give two dimensions, (samples, inputs).")
        told: dict[str, Any] = {} if family is None else {"family": family}
        basis, taken = choose_basis((shape[0], shape[1]), **told)
        notes = [said_of_choice(taken)]
    elif family is not None:
        raise ParameterError(f"`family={family!r}` goes without a basis, which has its own; leave out one of them.")
    known: dict[str, Any] = {}
    if at is not None:
        if washout is not None:
            raise ParameterError(f"`washout={washout!r}` has no meaning at one time step; leave out `washout` or `at`.")
        repeats = None if repeats is None else at_one_step(u, repeats, basis, at)[1]
        known = {"basis": basis}  # the result tells of delays
        u, x, basis = at_one_step(u, x, basis, at)
    chosen = find_method(method, options)
    rows = {"index": index, "acquired": acquired, "weights": weights, "repeats": repeats, "washout": washout}
    samples = Samples.of(u, x, basis, complex_as=complex_as, **rows)
    engine = Engine(chosen_executor(executor, u, x), None if memory is None else byte_count(memory))
    result = conclude(_gathered(samples, engine, constant, nan, chosen), chosen, **options)
    return replace(result, checks=(*result.checks, *notes), **known)


def evidence(
    u: ArrayLike,
    x: ArrayLike,
    basis: ProductBasis,
    *,
    constant: bool = True,
    nan: str = "raise",
    complex_as: str | None = None,
    memory: str | float | None = None,
    executor: Any = None,
    **rows: Any,
) -> Evidence:
    """What every method sees, from one pass over the data: for several methods on the same samples.

    The arguments are those of `estimate`, such as `index`, `acquired`, `weights`, `repeats` and `washout`. `conclude`
    makes a result of it with one method; `ESTIMATORS[name](evidence)` gives the bare capacities.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> u = infocap.draw(basis, 1024, seed=1)
    >>> seen = infocap.evidence(u, infocap.systems.RandomFeatures(2, 5)(u), basis)
    >>> [round(infocap.conclude(seen, method).total, 2) for method in ("raw", "threshold-richardson")]
    [5.96, 5.93]
    """
    for name in rows:
        one_of("option", name, ("index", "acquired", "weights", "repeats", "washout"))
    samples = Samples.of(u, x, basis, complex_as=complex_as, **rows)
    engine = Engine(chosen_executor(executor, u, x), None if memory is None else byte_count(memory))
    return _gathered(samples, engine, constant, nan, None)


def _gathered(samples: Samples, engine: Engine, constant: bool, nan: str, method: Method | None) -> Evidence:
    """Look at all rows, refuse what cannot be used, prepare the readouts, and go through them once.

    A job for which no machine has the memory or the days is refused before it begins.
    """
    constant = yes_or_no("constant", constant)
    one_of("nan", nan, ("raise", "drop"))
    for name, value in (("executor", engine.executor), ("memory", engine.memory)):
        if value is not None and (samples.x.on_device or samples.u.on_device):
            raise ParameterError(
                f"`{name}={value!r}` is for work in the processor's memory and cannot work on arrays that lie on a "
                f"device; leave {name} out, or pass NumPy arrays."
            )
    if nan == "drop" and samples.basis.of_sequences:
        raise ParameterError("`nan='drop'` would tear a sequence apart; give runs without missing values as a list.")
    if nan == "drop":  # a sixteenth of the memory allowed is read at a time
        less = {} if engine.memory is None else {"chunk_bytes": engine.memory // 16}
        samples = without_gaps(samples, replace(engine, **less))
    if engine.memory is not None:
        engine = within_memory(engine, samples, constant, method)
    with all_cores() as cores, np.errstate(under="ignore"):  # readouts of 1e-310 are as good as others
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
        beside = n * k * terms > DEVICE_RATE if samples.x.on_device else cores >= MANY_CORES and samples.in_memory
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


def conclude(evidence: Evidence, method: str | Estimator = "control-variate", **options: Any) -> CapacityResult:
    """Run one method on the evidence, look for what is wrong, and put everything into a result.

    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=3)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.conclude(infocap.evidence(u, u**3, basis), "raw").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16])
    """
    if not isinstance(evidence, Evidence):
        raise ParameterError(f"`evidence={evidence!r:.60}` must come from infocap.evidence(...).")
    chosen = find_method(method, options)
    small = evidence.samples.x.on_device or evidence.n_samples * len(evidence.basis) < SMALL
    with all_cores() if small else nullcontext(), np.errstate(under="ignore"):
        found = chosen.function(evidence, **options)
    found = found if isinstance(found, Estimate) else Estimate(np.asarray(found, dtype=float))
    if found.capacity.shape != evidence.raw.shape:
        raise ParameterError(f"the method gave {found.capacity.shape} capacities for {len(evidence.raw)} functions.")
    if not np.isfinite(found.capacity).all():
        label = evidence.basis.label(int(np.argmin(np.isfinite(found.capacity))))
        raise ParameterError(f"the method gave a capacity that is not a finite number, for {label}.")
    total = float(np.sum(found.capacity)) if found.total is None else found.total
    with all_cores(), np.errstate(under="ignore"):
        limit, twice = (None, None) if evidence.samples.repeats is None else _noise_limit(evidence.samples)
        checks = run_checks(Case(evidence, chosen, found, total, limit, twice))
        known: dict[str, Any] = {"total": total, "checks": checks, "coordinates": ()}
        if 3 * 8 * evidence.rank * len(evidence.raw) <= KEPT_BYTES:
            inside = found.coordinates or (evidence.coordinates, *evidence.half_coordinates)
            known |= {"coordinates": tuple(map(to_numpy, inside)), "weights": evidence.readout_weights}
    if limit is not None:
        known |= {"noise_limited_total": limit.total, "noise_limited_standard_error": limit.standard_error}
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
        one_of("method", method, ESTIMATORS)
        method = ESTIMATORS[method]
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
            raise ParameterError(f"{said}; it takes {list(signature.parameters)[1:] or 'none'}.") from None
    return method


def _noise_limit(samples: Samples) -> tuple[Repeats, Integers]:
    """The total over a complete basis that noise allows, from the rows measured twice, and which those are."""
    assert samples.repeats is not None
    again = samples.repeats.read(0, samples.n_samples, on_host=True)
    twice = np.all(np.isfinite(again), axis=1)
    if not twice.any():
        raise DataError("repeats has a NaN or infinite value in every row; at least some must be repeated.")
    x, weights = samples.x.read(0, samples.n_samples, on_host=True), samples.weights(0, samples.n_samples)
    rows: dict[str, Any] = {"measured_once": None if twice.all() else x[~twice]}
    if weights is not None:
        rows["weights"] = np.concatenate([weights[twice], weights[~twice]])
    with warnings.catch_warnings():  # what it warns of is in its checks, and so in those of the result
        warnings.simplefilter("ignore", DataWarning)
        limit = from_repeats(x[twice], again[twice], constant=samples.constant, **rows)
    return limit, np.flatnonzero(twice)


def probe(
    system: System,
    basis: ProductBasis,
    n_samples: int,
    *,
    design: str | None = None,
    seed: int | None = None,
    blocks: int | None = None,
    weighted: bool | None = None,
    method: str | Estimator = "control-variate",
    constant: bool = True,
    complex_as: str | None = None,
    **options: Any,
) -> CapacityResult:
    """The capacities of a system that can be called: (samples, inputs) -> (samples, readouts).

    With a basis of delayed inputs the samples are the steps of one sequence, and `washout` goes to `estimate`.
    A system that takes a ``seed`` gets one derived from `seed`, so that its noise is reproducible too. The design is
    that of `draw` with its `blocks`; with `weighted`, that of `draw_weighted`. By default it is weighted where a
    function has E[y^4] above a tenth of the samples, so that few of them would decide; a note then says so.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> infocap.probe(lambda u: u, basis, 256, seed=1)
    CapacityResult: total 3.00000 ± <0.00001 of at most 3 (2 readouts and the constant)
      256 samples, 10 legendre functions of 2 inputs, method 'control-variate'
      degree  0     1.0000
      degree  1     2.0000
    """
    made_by("basis", basis, ProductBasis, "product_basis(...)")
    free = weighted is None and not basis.memory and find_method(method, {}).takes_weights
    by_itself = free and needs_weights(basis, n_samples)
    how: dict[str, Any] = {"seed": seed, "blocks": blocks} | ({} if design is None else {"design": design})
    if by_itself or (weighted is not None and yes_or_no("weighted", weighted)):
        u, options["weights"] = draw_weighted(basis, n_samples, **how)
    else:
        u = draw(basis, n_samples, **how)
    # The noise has random numbers of its own, apart from those of the design.
    x = measure(system, u, None if seed is None else np.random.SeedSequence(seed).spawn(1)[0])
    result = estimate(u, x, basis, method=method, constant=constant, complex_as=complex_as, **options)
    if not by_itself:
        return result
    found = f"a function has E[y^4] = {basis.fourth_moments.max():.3g}, more than a tenth of the {n_samples} samples"
    note = f"{found}: inputs were drawn where functions are large, with weights (`weighted=False`: as distributed)."
    return replace(result, checks=(*result.checks, Check(note, kind="note")))
