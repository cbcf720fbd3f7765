"""sweep: the capacities of a system at all points of a grid of parameter values."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import axis_values
from .._processes import HelperError, Helpers, helpers_for
from .._validation import (
    checks_arguments,
    require_boolean,
    require_type,
    require_whole_number,
    shown,
)
from .._version import __version__
from ..basis import ProductBasis
from ..designs import block_count
from ..errors import DataError, ParameterError
from ..estimators import Estimator
from ..result import CapacityResult, load_result
from ..samples import choose_executor, plain_executor
from ..systems import is_instrument
from ..typing import Floats, System
from ._estimate import MeasuredSystem, measure_at_drawn_inputs
from ._grid import COLUMNS_PER_FUNCTION, COLUMNS_PER_POINT, grid_of, point_in_words, points_of
from ._sweep_folder import SweepFolder, describe_sweep, file_of_point, read_sweep_file

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# Points of a simulation from which on helper processes share them; each of fewer points is computed
# on all cores.
MIN_POINTS_FOR_HELPERS = 8
# Points for each helper from which on these are equally busy with a whole point each.
MIN_POINTS_PER_HELPER = 4


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """A `CapacityResult` for every point of a grid of parameter values; `sweep` makes one.

    Attributes
    ----------
    settings
        The values of each parameter.
    results
        One result for every point; the last parameter varies fastest.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", 1, 2)
    >>> make = functools.partial(infocap.systems.RandomFeatures, 1, noise=0.01)
    >>> swept = sweep(make, {"n_readouts": [1, 2]}, basis, 256, seed=1, progress=False)
    >>> swept.points, swept.at(n_readouts=2).n_readouts
    ([{'n_readouts': 1}, {'n_readouts': 2}], 2)
    """

    settings: dict[str, tuple[Any, ...]]
    results: tuple[CapacityResult, ...]

    def __repr__(self) -> str:
        first = self.results[0]
        sizes = ", ".join(f"{len(values)} {name}" for name, values in self.settings.items())
        lines = [
            f"Sweep: {len(self)} points ({sizes}), {self._totals_in_words}",
            f"  {first.n_samples} samples, {len(first.basis)} {first.basis.family_name} functions "
            f"of {first.basis.n_inputs} inputs, method {first.method!r}",
        ]
        for point, result in self:
            checks = f"   ({len(result.checks)} checks)" if result.checks else ""
            total = result.short_claim(result.total_in_words)
            lines.append(f"  {point_in_words(point)}: {total}{checks}")
        return "\n".join(lines)

    @property
    def _totals_in_words(self) -> str:
        """The range of the totals; points whose inputs allow none are left out."""
        can_be_told = np.array([not result.nothing_to_show for result in self.results])
        known = self.totals[np.isfinite(self.totals) & can_be_told.reshape(self.totals.shape)]
        if not len(known):
            return "no totals"
        return f"total {known.min():.3f} to {known.max():.3f}"

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[tuple[dict[str, Any], CapacityResult]]:
        """Yield points and their results, one after the other."""
        return zip(self.points, self.results, strict=True)

    @property
    def points(self) -> list[dict[str, Any]]:
        """The parameter values of each result, as keyword arguments."""
        return points_of(self.settings)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each parameter has."""
        return tuple(len(values) for values in self.settings.values())

    @property
    def totals(self) -> Floats:
        """Total capacities, with one dimension for each parameter."""
        return np.array([result.total for result in self.results]).reshape(self.shape)

    @checks_arguments
    def at(self, **point: Any) -> CapacityResult:
        """Return the result at one point: ``sweep.at(power_dbm=4.5, length_m=40)``.

        Parameters
        ----------
        **point
            The value of every parameter.
        """
        for candidate, result in self:
            if candidate == point:
                return result
        known = "; ".join(f"{name} in {list(values)}" for name, values in self.settings.items())
        raise ParameterError(
            f"there is no result at {point_in_words(point) or 'no point'}; the sweep has {known}."
        )

    def to_xarray(self) -> xr.Dataset:
        """Return totals, capacities of all functions and by degree, and errors, in one table."""
        import xarray as xr

        first = self.results[0]
        basis = first.basis
        names = tuple(self.settings)
        columns: dict[str, tuple[tuple[str, ...], Any]] = {}
        for name in (*COLUMNS_PER_POINT, "n_readouts", "maximum", "rank", *COLUMNS_PER_FUNCTION):
            values = [getattr(result, name) for result in self.results]
            if name in names or any(value is None for value in values):
                continue
            if name in COLUMNS_PER_FUNCTION:
                columns[name] = (*names, "term"), np.array(values).reshape(*self.shape, -1)
            else:
                columns[name] = names, np.array(values).reshape(self.shape)
        by_degree = [result.sums_by_degree() for result in self.results]
        columns["by_degree"] = (*names, "degree"), np.array(by_degree).reshape(*self.shape, -1)
        coordinates: dict[str, Any] = {
            name: axis_values(values) for name, values in self.settings.items()
        }
        coordinates["label"] = ("term", np.array(basis.labels, dtype=object))
        coordinates["term_degree"] = ("term", basis.degrees)
        coordinates["degree"] = np.arange(basis.max_degree + 1)
        attributes = {
            "method": first.method,
            "n_samples": first.n_samples,
            "basis": json.dumps(basis.to_dict()),
            "infocap_version": __version__,
        }
        return xr.Dataset(columns, coordinates, attributes)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per point: its values, the total with its error, capacity by degree."""
        table = self.to_xarray()
        names = [name for name in (*COLUMNS_PER_POINT, "maximum") if name in table]
        totals = table[names].to_dataframe()
        by_degree = table["by_degree"].to_series().unstack("degree").add_prefix("degree_")
        # The parameter values keep the types that they were given in.
        columns = {}
        for name in self.settings:
            columns[name] = [point[name] for point in self.points]
        return totals.join(by_degree).reset_index().assign(**columns)

    @checks_arguments
    def save(self, folder: str | Path) -> Path:
        """Write each result to a file of its own in a folder, and return the folder.

        `infocap.load_sweep` reads the folder, and `infocap.load_result` any of its files.

        Parameters
        ----------
        folder
            The folder, which is made; one with another sweep is refused.

        Examples
        --------
        >>> import tempfile
        >>> basis = infocap.product_basis("legendre", 1, 2)
        >>> make = functools.partial(infocap.systems.RandomFeatures, 1, noise=0.01)
        >>> swept = sweep(make, {"n_readouts": [1, 2]}, basis, 256, seed=1, progress=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     load_sweep(swept.save(f"{folder}/swept")).settings
        {'n_readouts': (1, 2)}
        """
        folder = Path(folder)
        first = self.results[0]
        description = {"basis": first.basis.to_dict(), "method": first.method}
        sweep_folder = SweepFolder(folder, description, self.settings)
        for point, result in self:
            sweep_folder.keep(point, result)
        return folder


@checks_arguments
def load_sweep(folder: str | Path) -> Sweep:
    """Return the sweep in a folder that `sweep` with ``path=`` or `Sweep.save` wrote.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    DataError
        If the folder holds no sweep, or if points are missing.

    Examples
    --------
    >>> import tempfile
    >>> basis = infocap.product_basis("legendre", 1, 2)
    >>> make = functools.partial(infocap.systems.RandomFeatures, 1, noise=0.01)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = sweep(make, {"n_readouts": [1, 2]}, basis, 256, seed=1, path=folder, progress=False)
    ...     load_sweep(folder).shape
    (2,)
    """
    folder = Path(folder)
    entries = read_sweep_file(folder)
    settings = entries.get("settings")
    if not isinstance(settings, dict):
        raise DataError(
            f"{folder} has settings that are no plain numbers or texts; call infocap.sweep again "
            "with this path, which measures nothing twice."
        )
    grid = grid_of(settings)
    points = points_of(grid)
    files = [folder / file_of_point(point, ".nc") for point in points]
    missing = [
        point_in_words(point)
        for point, file in zip(points, files, strict=True)
        if not file.exists()
    ]
    if missing:
        raise DataError(
            f"{folder} lacks {len(missing)} of {len(points)} points, such as {missing[0]}; give "
            "the command that made it once more, which goes on from there."
        )
    return Sweep(grid, tuple(load_result(file) for file in files))


@checks_arguments
def sweep(
    make_system: Any,  # a function, or an instrument
    settings: Mapping[str, Iterable[Any]],
    basis: ProductBasis,
    n_samples: int,
    *,
    seed: int | None = None,
    executor: Any = None,
    path: str | Path | None = None,
    progress: bool = True,
    design: str | None = None,
    blocks: int | None = None,
    weighted: bool | None = None,
    method: str | Estimator = "control-variate",
    method_options: Mapping[str, Any] | None = None,
    constant: bool = True,
    complex_as: str | None = None,
    washout: int | None = None,
    n_components: int | str | None = None,
    law: str = "declared",
    input_noise: float | Sequence[float] | None = None,
) -> Sweep:
    """Probe a system at all points of a grid of parameter values.

    Each result is what `probe` gives for its point alone. The system is measured at the same inputs
    at all points; a basis from `delayed_basis` takes a random sequence of them.

    Parameters
    ----------
    make_system
        Makes the system for one point: called with the names of `settings` as keyword arguments,
        for example `FibreSystem` itself, ``functools.partial(FibreSystem, n_inputs=2)``, or a
        function that returns an instrument, an object with ``measure(u)``. Or one instrument with
        the method ``set(**point)``, too, which tunes it. For nights in the laboratory there is
        `lab.acquire_sweep`, which stores every measurement.
    settings
        Values of each parameter: ``{"power_dbm": [1.0, 4.5], "length_m": [5, 40]}``.
    basis, n_samples, seed, design, blocks, weighted
        The functions and the inputs, as for `probe`.
    executor
        Any `concurrent.futures.Executor`, or a `dask.distributed.Client`; processes need a
        `make_system` that can be pickled. Without one, points are measured one after the other;
        those of a class with ``is_simulation = True``, such as `FibreSystem`, several at a time
        where that pays.
    path
        A folder that keeps each result as soon as it is there. The same call goes on where it was
        stopped, and takes further parameter values; another basis, design, seed or method is
        refused.
    progress
        Show a progress bar.
    method, method_options, constant, complex_as, washout, n_components, law, input_noise
        How capacities are estimated, as for `estimate`.

    Returns
    -------
    Sweep
        The results, and tables of them.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", 2, 4)
    >>> make = functools.partial(infocap.systems.RandomFeatures, 2, noise=0.01)
    >>> sweep(make, {"n_readouts": [2, 5]}, basis, 1024, seed=1, progress=False)
    Sweep: 2 points (2 n_readouts), total 2.957 to 5.295
      1024 samples, 15 legendre functions of 2 inputs, method 'control-variate'
      n_readouts=2: 2.9567 ± 0.0020 of 3
      n_readouts=5: 5.295 ± 0.033 of 6
    """
    from tqdm.auto import tqdm

    make_system = _maker_of(make_system, executor)
    require_type("basis", basis, ProductBasis, "product_basis(...)")
    n_samples = require_whole_number("n_samples", n_samples, 1)
    shows_progress = require_boolean("progress", progress)
    grid = grid_of(settings)
    points = points_of(grid)
    if not basis.of_sequences:  # a sequence has no blocks
        design = design or "sobol"
        blocks = block_count(basis, n_samples, design, blocks)
    input_options: dict[str, Any] = {
        "n_samples": n_samples,
        "design": design,
        "blocks": blocks,
        "weighted": weighted,
        "seed": seed,
        "method": method,
        "law": law,
    }
    estimate_options: dict[str, Any] = {
        "method": method,
        "method_options": method_options,
        "constant": constant,
        "complex_as": complex_as,
        "washout": washout,
        "n_components": n_components,
        "law": law,
        "input_noise": input_noise,
    }
    folder = None
    if path is not None:
        if seed is None:
            raise ParameterError(
                "path= keeps a sweep that can be continued, which needs a seed: seed=1."
            )
        description = describe_sweep(make_system, basis, method, method_options)
        folder = SweepFolder(Path(path), input_options | estimate_options | description, grid)
    results = {} if folder is None else folder.kept_results(points)
    missing = {number: point for number, point in enumerate(points) if number not in results}
    measure_point = _PointMeasurement(make_system, basis, input_options, estimate_options)
    with tqdm(
        total=len(points), initial=len(results), desc="Sweep", disable=not shows_progress
    ) as bar:
        for number, result in _run(measure_point, missing, choose_executor(executor)):
            if folder is not None:
                folder.keep(points[number], result)
            results[number] = result
            bar.update()
    return Sweep(grid, tuple(results[number] for number in range(len(points))))


def _maker_of(make_system: Any, executor: Any) -> Callable[..., Any]:
    """Return what makes the system of a point; of an instrument, what tunes it."""
    tune = getattr(make_system, "set", None)
    if is_instrument(make_system) and callable(tune):
        if executor is not None:
            raise ParameterError(
                "one instrument cannot be at several points at a time; leave out `executor`."
            )
        return _TunedInstrument(make_system)
    if callable(make_system):
        return make_system
    if is_instrument(make_system):
        raise ParameterError(
            f"`make_system={shown(make_system)}` is an instrument without a method set(**point), "
            "which tunes it; write it, or give a function that makes a system."
        )
    raise ParameterError(
        f"`make_system={shown(make_system)}` must be a function that makes a system."
    )


class _TunedInstrument:
    """Makes the system of a point from one instrument, which it tunes."""

    def __init__(self, instrument: Any) -> None:
        self.instrument = instrument
        self.__qualname__ = type(instrument).__qualname__
        self.__module__ = type(instrument).__module__

    def __call__(self, **point: Any) -> Any:
        self.instrument.set(**point)
        return self.instrument


@dataclass(frozen=True, eq=False)
class _PointMeasurement:
    """How one point of a sweep is measured and estimated."""

    make_system: Callable[..., System]
    basis: ProductBasis
    input_options: dict[str, Any]  # of `measure_at_drawn_inputs`
    estimate_options: dict[str, Any]  # of `estimate`

    def __call__(self, point: dict[str, Any]) -> CapacityResult:
        """Return the result at one point: what `probe` gives. An error says which point."""
        with self._error_names(point):
            measured = self._measure(point)
            return measured.estimate(self.basis, **self.estimate_options)

    def estimate_on(self, helpers: Helpers, point: dict[str, Any]) -> CapacityResult:
        """Do the same, where the system shares its work among helpers, and one of them estimates.

        This waits for helpers, so that a thread that calls it leaves its core to them.
        """
        with self._error_names(point):
            measured = self._measure(point)
            estimate = functools.partial(measured.estimate, self.basis, **self.estimate_options)
            try:
                return helpers.submit(estimate).result()
            except HelperError:
                return estimate()

    def _measure(self, point: dict[str, Any]) -> MeasuredSystem:
        system = self.make_system(**point)
        return measure_at_drawn_inputs(system, self.basis, **self.input_options)

    @contextmanager
    def _error_names(self, point: dict[str, Any]) -> Iterator[None]:
        try:
            yield
        except Exception as problem:
            problem.add_note(f"This happened in a sweep, at {point_in_words(point)}.")
            raise

    def system_says(self, attribute: str) -> bool:
        """Return whether an attribute of the system's class is true."""
        make_system = self.make_system
        while isinstance(make_system, functools.partial):
            make_system = make_system.func
        kind = getattr(make_system, "__self__", make_system)  # of a class method its class
        return bool(getattr(kind, attribute, False))


def _run(
    measure_point: _PointMeasurement, missing: dict[int, Any], executor: Any
) -> Iterator[tuple[int, CapacityResult]]:
    """Yield the results of the missing points with their numbers, as they come.

    Many points of a simulation are computed by helper processes, if these are there already, or if
    the first point shows that all of them take some seconds.
    """
    if executor is not None:
        submit = functools.partial(plain_executor(executor).submit, measure_point)
        yield from _run_side_by_side(submit, measure_point, missing)
        return
    waiting = dict(missing)
    may_use_helpers = measure_point.system_says("is_simulation")
    seconds = 0.0
    while waiting:
        if may_use_helpers and len(waiting) >= MIN_POINTS_FOR_HELPERS:
            helpers = helpers_for(measure_point, seconds * len(waiting))
            if helpers is not None:
                yield from _run_on_helpers(helpers, measure_point, waiting)
                return
        start = time.perf_counter()
        number = next(iter(waiting))
        yield number, measure_point(waiting.pop(number))
        seconds = time.perf_counter() - start


def _run_on_helpers(
    helpers: Helpers, measure_point: _PointMeasurement, points: dict[int, Any]
) -> Iterator[tuple[int, CapacityResult]]:
    """Yield the results of points that helpers compute.

    Of many points each is computed by one helper. Of few the longest would keep a single helper
    busy while others are idle: there a system that can do so shares its work among all of them.
    """
    shares_points = len(points) < MIN_POINTS_PER_HELPER * helpers.count
    if not (shares_points and measure_point.system_says("shares_its_work")):
        submit = functools.partial(helpers.submit, measure_point)
        yield from _run_side_by_side(submit, measure_point, points)
        return
    # These threads wait for helpers.
    with ThreadPoolExecutor(helpers.count, thread_name_prefix="sweep") as threads:
        estimate_on_helpers = functools.partial(measure_point.estimate_on, helpers)

        def submit_here(point: dict[str, Any]) -> Future[CapacityResult]:
            return threads.submit(estimate_on_helpers, point)

        yield from _run_side_by_side(submit_here, measure_point, points)


def _run_side_by_side(
    submit: Callable[[dict[str, Any]], Future[CapacityResult]],
    measure_point: _PointMeasurement,
    points: dict[int, Any],
) -> Iterator[tuple[int, CapacityResult]]:
    """Submit all points, and yield their results as they come."""
    # Parameters mostly increase and make the work longer; the longest should not come last.
    futures = {submit(point): number for number, point in reversed(points.items())}
    try:
        for future in as_completed(futures):
            number = futures[future]
            try:
                result = future.result()
            except HelperError:
                result = measure_point(points[number])
            yield number, result
    finally:
        for future in futures:
            future.cancel()
