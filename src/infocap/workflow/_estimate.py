"""estimate: inputs and readouts go in, a CapacityResult comes out."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._array import on_device, to_numpy
from .._check import one_of, yes_or_no
from .._files import memory as machine_memory
from .._parallel import all_cores
from .._passes import Passes
from .._spread import check_executor, client_in_use
from .._table import Table
from ..basis import ProductBasis
from ..dimension import Repeats, from_repeats
from ..errors import Check, DataError, DataWarning, ParameterError, warn
from ..estimators import ESTIMATORS, Estimate, Estimator
from ..kernels import Evidence, Walk, gather
from ..result import CapacityResult
from ..typing import ArrayLike, Floats, Integers
from ._cost import announce, is_long, slow_rate
from ._diagnose import diagnose, handled, repeats_off
from ._look import EPOCHS, Survey
from ._memory import IN_PASSES, Shapes, byte_count, share_out
from ._survey import survey, tables

ON_DEVICE = IN_PASSES  # what is computed where the arrays are
MOST_DAYS = 2.0
SMALL = 400_000  # values of the basis
WEIGHT_ERRORS = 6.0  # how far the mean of weights may be from 1, in standard errors
SIFTED_SHARE = 16  # of the memory allowed, read at a time to find rows with missing values
KEPT_BYTES = 64_000_000  # of coordinates; larger ones are not kept, and capacity_of says so


def estimate(
    u: ArrayLike,
    x: ArrayLike,
    basis: ProductBasis,
    *,
    method: str | Estimator = "control-variate",
    constant: bool = True,
    nan: str = "raise",
    complex_as: str | None = None,
    index: ArrayLike | None = None,
    acquisition: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    repeats: ArrayLike | None = None,
    memory: str | float | None = None,
    executor: Any = None,
    **options: Any,
) -> CapacityResult:
    """The information processing capacity of a system, from measured inputs and readouts.

    Parameters
    ----------
    u, x
        Inputs (samples, inputs) and readouts (samples, channels): NumPy arrays, or anything with ``.shape``
        and row slices (memmap, h5py, zarr, pandas, xarray, dask), which is read in blocks.
    basis
        The functions whose capacities are wanted, from `product_basis`.
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
    acquisition
        When each row was measured (a rank or a time), if not in the order of the rows; drift and shifts
        are looked for in that order.
    weights
        Of inputs that were not drawn from the distribution of the basis: its density over theirs, as from
        `draw_weighted`.
    repeats
        The readouts measured a second time at the same inputs, in the shape of x, with NaN in the rows that were
        not repeated. They tell the total that noise allows over a complete basis (`dimension.from_repeats`),
        and so how much lies outside this one.
    memory
        How much may be used for the work (what is in memory already is not counted): ``"1GB"``, ``"512MiB"`` or bytes.
        What lies on disk is then read in blocks that fit; a job that cannot fit is refused. With processes or a
        cluster as `executor` it holds for each worker.
    executor
        Who goes through the data: a `concurrent.futures.Executor` or a `dask.distributed.Client`; this process's
        threads by default. Files travel as their names, so all workers must see them. See docs/cluster.md.

    Examples
    --------
    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> u = infocap.draw(basis, 1024, seed=1)
    >>> system = infocap.theory.random_mixture(basis, n_active=6, n_readouts=5, seed=1)
    >>> result = infocap.estimate(u, system(u), basis)
    >>> print(f"{result.total:.1f} of {result.maximum}, exactly {system.exact().sum():.1f}")
    6.0 of 6, exactly 6.0
    """
    estimator, name = chosen_estimator(method, options)
    constant = yes_or_no("constant", constant)
    budget, executor = byte_count(memory), check_executor(executor) or client_in_use(u, x)
    sifting = Passes(executor, None if budget is None else budget // SIFTED_SHARE)
    inputs, readouts, kept = tables(u, x, basis, complex_as, nan, sifting)
    n_given = inputs.source.shape[0]
    if inputs.on_device or readouts.on_device:
        _refuse_on_device(executor, memory if name in ON_DEVICE else None)
    if name not in ON_DEVICE:
        inputs, readouts = inputs.on_host(), readouts.on_host()
    shapes = _shapes(inputs, readouts, basis, constant, (index, acquisition, weights, repeats, kept))
    passes = share_out(budget, shapes, name, options, executor)
    passes = replace(passes, progress=is_long(shapes, passes, name))
    _refuse_disorder(index, n_given)
    times = None if acquisition is None else _one_a_row("acquisition", acquisition, n_given)
    ratio = None if weights is None else _weights(weights, n_given)
    again = None if repeats is None else _repeats(repeats, n_given, readouts.shape[1], complex_as, weights)
    if kept is not None:
        times, ratio, again = (None if part is None else part[kept] for part in (times, ratio, again))
    order = None if times is None else np.argsort(times, kind="stable")
    with all_cores():
        found = survey(inputs, readouts, basis, _epochs(order, readouts.shape[0]), passes)
        walk = replace(prepare(inputs, readouts, basis, found, constant, ratio), passes=passes)
        _refuse_impossible(walk)
        announce(walk, name)
        evidence = gather(walk)
    method_chosen = estimator, name, options
    beyond = None if again is None else partial(_beyond, inputs, readouts, again, basis, constant)
    dropped = 0 if kept is None else n_given - len(kept)
    return conclude(evidence, found, method_chosen, constant, order, beyond, dropped)


def conclude(
    evidence: Evidence,
    found: Survey,
    method: tuple[Estimator, str, dict[str, Any]],
    constant: bool,
    order: Integers | None = None,
    beyond: Callable[[float], tuple[Repeats, list[str]]] | None = None,
    dropped: int = 0,
) -> CapacityResult:
    """Run the estimator (a function, its name, its options), look for what is wrong, and say it all.

    `beyond` tells from the total what repeats allow and what to warn of; `dropped` rows were left out.
    """
    estimator, name, options = method
    _refuse_too_few(evidence)
    # Small matrices are handled faster by one thread than by several that wait for each other.
    small = evidence.n_samples * len(evidence.walk.basis) < SMALL
    with all_cores() if small else nullcontext():
        chosen = _run(estimator, evidence, options)
    total = float(np.sum(chosen.capacity)) if chosen.total is None else chosen.total
    with all_cores():
        messages = [*chosen.checks, *diagnose(evidence, found, chosen, total, order, name, options)]
    notes = handled(evidence, found, constant)
    noise_limit = None
    if beyond is not None:
        noise_limit, said = beyond(total)
        messages += [one for one in said if one not in messages]
    if dropped:
        notes.insert(0, f"{dropped} rows with NaN or infinite values were dropped.")
    for message in messages:
        warn(message)
    checks = [message if isinstance(message, Check) else Check(message) for message in messages]
    checks += [Check(note, "note") for note in notes]
    return CapacityResult(
        capacity=chosen.capacity,
        raw=evidence.raw,
        standard_error=chosen.standard_error,
        p_value=chosen.p_value,
        threshold=chosen.threshold,
        unbiased=chosen.unbiased,
        total=total,
        total_standard_error=chosen.total_standard_error,
        n_samples=evidence.n_samples,
        n_readouts=evidence.walk.x.shape[1],
        maximum=evidence.n_readouts,
        rank=evidence.rank,
        basis=evidence.walk.basis,
        method=name,
        checks=tuple(checks),
        coordinates=_small_enough(evidence),
        noise_limited_total=None if noise_limit is None else noise_limit.total,
        noise_limited_standard_error=None if noise_limit is None else noise_limit.standard_error,
    )


def _beyond(
    inputs: Table, readouts: Table, again: Floats, basis: ProductBasis, constant: bool, total: float
) -> tuple[Repeats, list[str]]:
    """What repeats say about the total over a complete basis, and what speaks against them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # they are checks of the result, which warns of them
        limit, twice = _noise_limit(readouts.read_on_host(0, len(again)), again, constant)
    off = repeats_off(inputs.take(np.flatnonzero(twice)), basis, limit, total)
    return limit, [*(one for one in limit.checks if one.kind == "warning"), *off]


def _shapes(
    inputs: Table, readouts: Table, basis: ProductBasis, constant: bool, held: tuple[Any, ...]
) -> Shapes:
    """What memory= is shared out among; `held` are the arrays with an entry for each sample."""
    index, times, weights, again, kept = (part is not None for part in held)
    n_readouts = readouts.shape[1] + constant
    extra = 24 * index + 32 * times + 24 * weights + 10 * kept + 8 * 6 * n_readouts * again
    on_disk = not (inputs.in_memory and readouts.in_memory)
    row_bytes = inputs.row_bytes + readouts.row_bytes
    return Shapes(readouts.shape[0], n_readouts, basis, row_bytes, on_disk, extra)


def _small_enough(evidence: Evidence) -> tuple[Floats, ...]:
    """The coordinates if they are small enough to travel with the result, else nothing."""
    if 3 * 8 * evidence.rank * len(evidence.raw) > KEPT_BYTES:
        return ()
    return tuple(to_numpy(part) for part in (evidence.coordinates, *evidence.half_coordinates))


def chosen_estimator(method: str | Estimator, options: dict[str, Any]) -> tuple[Estimator, str]:
    """The function behind a name, after its options are checked."""
    if isinstance(method, str):
        one_of("method", method, ESTIMATORS)
        estimator, name = ESTIMATORS[method], method
    elif callable(method):
        estimator, name = method, getattr(method, "__name__", type(method).__name__)
    else:
        raise ParameterError(f"`method={method!r}` must be a name or a function of Evidence.")
    try:
        signature = inspect.signature(estimator)
    except ValueError:  # some built-in functions have none
        return estimator, name
    try:
        signature.bind(None, **options)
    except TypeError as problem:
        known = list(signature.parameters)[1:]
        raise ParameterError(
            f"method {name!r} does not take these options: {problem}; it takes {known or 'none'}."
        ) from None
    return estimator, name


def _run(estimator: Estimator, evidence: Evidence, options: dict[str, Any]) -> Estimate:
    """Call the estimator; a plain array of capacities is as good as an Estimate."""
    found = estimator(evidence, **options)
    chosen = found if isinstance(found, Estimate) else Estimate(np.asarray(found, dtype=float))
    if chosen.capacity.shape != evidence.raw.shape:
        raise ParameterError(
            f"the method gave {chosen.capacity.shape} capacities for {len(evidence.raw)} functions."
        )
    if not np.isfinite(chosen.capacity).all():
        label = evidence.walk.basis.label(int(np.argmin(np.isfinite(chosen.capacity))))
        raise ParameterError(f"the method gave a capacity that is not a finite number, for {label}.")
    return chosen


def prepare(
    inputs: Any,
    readouts: Any,
    basis: ProductBasis,
    found: Survey,
    constant: bool,
    weights: Floats | None = None,
) -> Walk:
    """Choose the channels, and a shift and scale that cost no digits.

    Without the constant readout centring would change the space the readouts span, so only the scale is set.
    """
    live = ~found.dead if constant else (found.low != 0) | (found.high != 0)
    shift = found.typical[live] if constant else np.zeros(np.count_nonzero(live))
    reach = np.maximum(found.high[live] / 2 - shift / 2, shift / 2 - found.low[live] / 2)
    extreme = (reach < 1e-100) | (reach > 1e100)
    power = np.clip(-np.round(np.log2(reach)), -1000, 1000)
    scale = np.where(extreme, np.exp2(power), 1.0)  # a power of two rounds nothing
    root = None if weights is None else np.sqrt(weights)
    walk = Walk(inputs, readouts, basis, np.flatnonzero(live), shift, scale, constant, root)
    return walk if found.sample is None else replace(walk, sample=walk.prepared(found.sample))


def _refuse_on_device(executor: Any, memory: Any) -> None:
    """What has no meaning for arrays that lie on a device."""
    if executor is not None:
        raise ParameterError(
            f"executor={executor!r} cannot work on arrays that lie on a device; leave executor out, or pass "
            "NumPy arrays."
        )
    if memory is not None:
        raise ParameterError(
            f"`memory={memory!r}` is for work in the processor's memory, and these arrays lie on a device, which takes "
            "several GB for a large basis; leave memory out, or pass NumPy arrays."
        )


def _refuse_impossible(walk: Walk) -> None:
    """Nothing to measure, or a job for which no machine has the memory or the days."""
    n, k, terms = walk.n_samples, walk.n_readouts, len(walk.basis)
    if len(walk.channels) == 0:
        raise DataError("x has no channel that changes from sample to sample; check that the device was on.")
    n_bytes = 8 * (4 * k * terms + walk.basis.block_rows * terms)
    days = 2 * n * k * terms / slow_rate(walk) / 86400
    if n_bytes > 0.8 * machine_memory() or days > MOST_DAYS:
        raise ParameterError(
            f"the basis has {terms:,} functions: with {k} readouts and {n:,} samples that takes about "
            f"{n_bytes / 1e9:,.1f} GB of memory and up to {days:,.1f} days; lower the degree, or cut with "
            "`max_interactions` or `index_set='hyperbolic'`."
        )


def _refuse_too_few(evidence: Evidence) -> None:
    n, rank = evidence.n_samples, evidence.rank
    if n <= rank:
        raise DataError(
            f"x has {n} samples for {evidence.n_readouts} readouts: with N <= K every function is fitted exactly "
            f"and every capacity is 1; take at least 4 K = {4 * evidence.n_readouts} samples, or use fewer readouts."
        )


def _refuse_disorder(index: ArrayLike | None, n_rows: int) -> None:
    if index is None:
        return
    index = _one_a_row("index", index, n_rows)
    steps = np.flatnonzero(np.diff(index) <= 0)
    if len(steps):
        row = int(steps[0]) + 1
        if len(np.unique(index)) < n_rows:
            raise DataError(
                f"index has {index[row]} more than once; keep one row for each point of the design."
            )
        raise DataError(
            f"index is {index[row]} at row {row}, after {index[row - 1]}: the halves of a Sobol design are "
            "its first and second part in index order; sort the rows with order = np.argsort(index)."
        )


def _one_a_row(name: str, values: ArrayLike, n_rows: int) -> Any:
    """One number or time for each row."""
    values = to_numpy(values) if on_device(values) else np.asarray(values)
    if values.shape != (n_rows,):
        raise DataError(f"{name} has shape {values.shape}; give one value for each of {n_rows} rows.")
    if values.dtype.kind not in "iufMm" or np.any(np.isnan(values)):
        raise DataError(f"{name} must be numbers or times without gaps; it holds {values.dtype} values.")
    return values


def _weights(weights: ArrayLike, n_rows: int) -> Floats:
    """Ratios of densities: positive, and 1 on average."""
    values = np.asarray(_one_a_row("weights", weights, n_rows), dtype=float)
    if not np.isfinite(values).all() or values.min() < 0:
        bad = int(np.argmax(~(np.isfinite(values) & (values >= 0))))
        raise DataError(f"weights is {values[bad]} at row {bad}; weights are ratios of densities, 0 or more.")
    mean, error = float(values.mean()), float(values.std()) / np.sqrt(n_rows)
    if abs(mean - 1) > WEIGHT_ERRORS * error + 1e-9:
        raise DataError(
            f"weights have the mean {mean:.4g}; the density of the basis over that of the inputs has the mean 1: "
            "normalise both densities, or use draw_weighted."
        )
    return values


def _repeats(
    repeats: ArrayLike, n_rows: int, n_channels: int, complex_as: str | None, weights: ArrayLike | None
) -> Floats:
    """The second measurement, as a table of numbers with NaN where there is none."""
    if weights is not None:
        raise ParameterError(
            "repeats and weights cannot be used together: what noise allows is a statement about the inputs as drawn; "
            "repeat at inputs of the distribution of the basis."
        )
    table = Table(repeats, "repeats", complex_as)
    if table.shape != (n_rows, n_channels):
        raise DataError(
            f"repeats has shape {table.shape} and x has shape {(n_rows, n_channels)}; give a second "
            "measurement of every row, with NaN in the rows that were not repeated."
        )
    return table.read_on_host(0, table.shape[0])


def _noise_limit(x: Floats, again: Floats, constant: bool) -> tuple[Repeats, Floats]:
    """The total over a complete basis, from the rows that were measured twice; and which those are."""
    twice = np.all(np.isfinite(again), axis=1)
    if not twice.any():
        raise DataError("repeats has a NaN or infinite value in every row; at least some must be repeated.")
    once = x[~twice] if not twice.all() else None
    return from_repeats(x[twice], again[twice], measured_once=once, constant=constant), twice


def _epochs(order: Integers | None, n_rows: int) -> Integers | None:
    """The stretch of the acquisition that each row belongs to; None when the rows are in its order."""
    if order is None:
        return None
    out = np.empty(n_rows, np.int8)
    out[order] = np.arange(n_rows) * EPOCHS // n_rows
    return out
