"""A sweep in the laboratory: one plan, measured at every combination of settings of a device.

The folder of a sweep holds the plan, and a store for each setting. A sweep is measured one setting
after the other, each as `acquire` does it, by one instrument, which is told the setting.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any

from ..._files import sync
from ..._formatting import counted, duration
from ..._validation import checks_arguments, require_one_of, require_whole_number
from ...errors import DataError, ParameterError
from ...recording import Recording
from ...systems import is_instrument
from ...workflow import Sweep, estimate, file_of_point, grid_of, point_in_words, points_of
from ._acquire import (
    INTERRUPTED,
    AcquisitionOptions,
    make_instrument,
    measure_into_store,
    stop_event,
)
from ._instrument import Instrument
from ._lock import acquisition_lock, is_locked
from ._plan import Plan
from ._retrying_instrument import close_device
from ._status import Status, status
from ._store import Store
from ._store_file import read_store, recording_of_store

# The file in a sweep's folder that holds the plan.
PLAN_FILE = "sweep.toml"
# This file is there while the device may be switched on: it tells a crash.
UNDERWAY_FILE = ".underway"
STORE_SUFFIX = ".db"


@dataclass(frozen=True, eq=False)
class SweepStatus:
    """How far a sweep is: what is stored at each setting, and the capacities so far.

    Parameters
    ----------
    folder, plan
        The folder of the sweep and its plan.
    statuses
        How each setting stands, in the order of acquisition; None before its first measurement.
    stopped
        Why the acquisition ended before all was measured; empty where it did not.

    Examples
    --------
    >>> import tempfile
    >>> from infocap.lab import Plan
    >>> class Amplifier:
    ...     def set(self, gain):
    ...         self.gain = gain
    ...     def measure(self, u):
    ...         return self.gain * u
    >>> plan = Plan(n_inputs=1, max_degree=2, n_samples=8, seed=1, sweep={"gain": [1, 2, 4]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     now = acquire_sweep(plan, Amplifier(), f"{folder}/night", progress=False)
    >>> now.stored, now.planned, now.complete
    (24, 24, True)
    """

    folder: Path
    plan: Plan
    statuses: tuple[Status | None, ...]
    stopped: str = ""

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Every setting, in the order of acquisition."""
        return self.plan.settings

    @property
    def stored(self) -> int:
        """Measurements on the disk, of all settings."""
        return sum(current.stored for current in self.statuses if current is not None)

    @property
    def planned(self) -> int:
        """Measurements in the plan, of all settings."""
        return sum(self.planned_at(current) for current in self.statuses)

    @checks_arguments
    def planned_at(self, current: Status | None) -> int:
        """Return how many measurements are planned at a setting.

        A store does not know yet that the sweep was extended, and may have been extended by itself.

        Parameters
        ----------
        current
            One of `statuses`.
        """
        if current is None:
            return self._planned_per_setting
        return max(current.planned, self._planned_per_setting)

    @checks_arguments
    def is_complete_at(self, current: Status | None) -> bool:
        """Return whether nothing is left to measure at a setting.

        Parameters
        ----------
        current
            One of `statuses`.
        """
        return current is not None and current.stored >= self.planned_at(current)

    @cached_property
    def _planned_per_setting(self) -> int:
        return len(replace(self.plan, sweep=None).schedule)

    @property
    def n_complete(self) -> int:
        """How many settings are measured completely."""
        return sum(map(self.is_complete_at, self.statuses))

    @property
    def complete(self) -> bool:
        """Whether nothing is left to measure."""
        return self.n_complete == len(self.statuses)

    @property
    def latest(self) -> Status | None:
        """How the setting stands that was measured last; None before any was."""
        begun = [
            current
            for current in self.statuses
            if current is not None and current.last_row_age_s is not None
        ]
        return min(begun, key=lambda current: current.last_row_age_s or 0.0, default=None)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the rate of the latest setting; None without a rate."""
        rate_hz = None if self.latest is None else self.latest.rate_hz
        return (self.planned - self.stored) / rate_hz if rate_hz else None

    @property
    def advice(self) -> str:
        """What to do now, in one sentence."""
        if self.complete:
            return "complete: all settings that were planned are stored."
        if is_locked(self.folder.resolve()):
            left = "" if self.seconds_left is None else f", {duration(self.seconds_left)} left"
            return f"go on: {self.n_complete} of {counted(len(self.statuses), 'setting')}{left}."
        if (self.folder / UNDERWAY_FILE).exists():
            return (
                "the acquisition was killed or has crashed: look at the device, then run the same "
                "command again."
            )
        return (
            "no acquisition is running: the same `infocap acquire` as before measures what is "
            "missing."
        )

    def path_at(self, **setting: Any) -> Path:
        """Return the store of one setting.

        Parameters
        ----------
        **setting
            The value of every entry of the plan's `sweep`.
        """
        return _store_path(self.folder, self.plan.at(**setting))

    @checks_arguments
    def refreshed(self, until: float | None = None, nan_policy: str = "raise") -> "SweepStatus":
        """Return how the sweep stands by now; what is complete is not estimated again.

        Parameters
        ----------
        until, nan_policy
            As for `status`.
        """
        known = {current.path: current for current in self.statuses if current is not None}
        return _look(self.folder, until, nan_policy, known=known)


@checks_arguments
def acquire_sweep(
    plan: Plan,
    instrument: Instrument | Callable[..., Instrument],
    folder: str | Path,
    *,
    retries: int = 3,
    wait_s: float = 1.0,
    timeout_s: float | None = None,
    until: float | None = None,
    nan_policy: str = "raise",
    other_instrument: bool = False,
    progress: bool = True,
) -> SweepStatus:
    """Measure all that a plan with a sweep asks for and that its folder does not hold yet.

    At every setting the instrument's method ``set(**setting)`` is called, and then all of the plan
    is measured into a store of that setting, as `acquire` does it. The same call goes on where an
    earlier one ended, however it ended, also with further values of a setting in the plan.

    Parameters
    ----------
    plan
        A plan with a `sweep`. The last of its entries varies fastest, so the one that takes longest
        to set comes first.
    instrument
        As for `acquire`, with a method ``set``, whose parameters have the names of the settings. It
        is made once, and closed at the end. After a failure, ``set`` is called again behind
        ``recover()``.
    folder
        The folder of the sweep, which is made.
    retries, wait_s, timeout_s, nan_policy, other_instrument, progress
        As for `acquire`.
    until
        Go on to the next setting once the 95 % interval of the total is narrower than this.

    Returns
    -------
    SweepStatus
        What is stored.

    Raises
    ------
    DataError
        If the folder belongs to another plan, is in use, or if the instrument failed too often.
        What was measured before is safe.

    Examples
    --------
    >>> import tempfile
    >>> from infocap.lab import Plan
    >>> class Amplifier:
    ...     def set(self, gain):
    ...         self.gain = gain
    ...     def measure(self, u):
    ...         return self.gain * u + u**2
    >>> plan = Plan(n_inputs=1, max_degree=3, n_samples=64, seed=1, sweep={"gain": [0.1, 2.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     now = acquire_sweep(plan, Amplifier(), f"{folder}/night", progress=False)
    ...     swept = estimate_sweep(f"{folder}/night")
    >>> now.advice, swept.shape
    ('complete: all settings that were planned are stored.', (2,))
    """
    if not plan.sweep:
        raise ParameterError(
            "the plan has no sweep; `lab.acquire` measures it, or give it one: "
            "sweep={'power_dbm': [1.0, 4.5]}."
        )
    options = AcquisitionOptions(
        retries=retries,
        wait_s=wait_s,
        timeout_s=timeout_s,
        until=until,
        nan_policy=nan_policy,
        other_instrument=other_instrument,
        progress=progress,
    )
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; a sweep needs a folder, so give another name.")
    with acquisition_lock(folder.resolve()), stop_event() as stop:
        plan = _plan_of_folder(folder, plan)
        with _Device(folder, instrument, plan) as device:
            stopped = _measure_settings(folder, plan, device, options, stop)
    return replace(sweep_status(folder, capacities=False), stopped=stopped)


def _measure_settings(
    folder: Path, plan: Plan, device: "_Device", options: AcquisitionOptions, stop: Event
) -> str:
    """Measure what remains at each setting; return why it ended early, or an empty text."""
    settings = plan.settings
    for number, setting in enumerate(settings, start=1):
        if stop.is_set():
            return INTERRUPTED
        plan_here = plan.at(**setting)
        in_words = point_in_words(setting)
        path = _store_path(folder, plan_here)
        try:
            with acquisition_lock(path.resolve()), Store(path, plan_here) as store:
                if store.complete and not store.crashed:
                    continue
                title = f"{in_words} ({number} of {len(settings)})"
                retrying = options.instrument_for(store, device.made(), stop)
                reason = measure_into_store(
                    retrying, replace(options, title=title), stays_open=True
                )
        except DataError as problem:
            raise DataError(f"at {in_words}: {problem}") from problem
        if reason == INTERRUPTED:
            return INTERRUPTED
    return ""


class _Device:
    """The device of a sweep: made when it is needed first, and made safe at the end.

    A file in the folder says that the device is in use. If it is there at the beginning, an
    acquisition crashed, and the device is made safe before anything is measured.
    """

    def __init__(self, folder: Path, instrument: Any, plan: Plan) -> None:
        self._mark = folder / UNDERWAY_FILE
        self._has_crashed = self._mark.exists()
        self._instrument = instrument
        self._plan = plan
        self._device: Any = None

    def __enter__(self) -> "_Device":
        if self._has_crashed or is_instrument(self._instrument):
            self.made()
        return self

    def __exit__(self, *_: object) -> None:
        if self._device is not None:
            close_device(self._device)
        self._mark.unlink(missing_ok=True)

    def made(self) -> Any:
        """Return the device."""
        if self._device is None:
            self._mark.touch()
            sync(self._mark.parent)
            if is_instrument(self._instrument):
                self._device = self._instrument
            else:
                self._device = make_instrument(self._instrument, self._plan)
            if self._has_crashed:
                for name in ("safe", "recover"):
                    method = getattr(self._device, name, None)
                    if callable(method):
                        method()
        return self._device


def _plan_of_folder(folder: Path, plan: Plan) -> Plan:
    """Return the plan to measure; make the folder, and refuse one that belongs to another plan.

    The plan may have other settings than before, and more samples; where the folder's plan has more
    samples, these are measured.
    """
    plan_file = folder / PLAN_FILE
    if plan_file.exists():
        former = Plan.load(plan_file)
        here = replace(plan, sweep=None)
        there = replace(former, sweep=None)
        if there.is_extension_of(here):
            plan = plan.extended(there.n_samples)
        elif not here.is_extension_of(there) and here.fingerprint != there.fingerprint:
            raise DataError(
                f"{folder} holds a sweep of another plan ({_differences(there, here)}); give "
                "another folder, or the plan it belongs to."
            )
        if plan == former:
            return plan
    folder.mkdir(exist_ok=True)
    plan.save(plan_file)
    return plan


def _differences(there: Plan, here: Plan) -> str:
    """Return in words in which entries two plans differ."""
    former = there.to_dict()
    differences = []
    for name, value in here.to_dict().items():
        if value != former[name]:
            differences.append(f"{name} {former[name]!r} there and {value!r} here")
    return ", ".join(differences)


@checks_arguments
def extend_sweep(folder: str | Path, n_samples: int) -> Plan:
    """Let a sweep plan more samples at every setting, and return the longer plan.

    What was planned and measured stays as it is; `acquire_sweep` measures what is missing.

    Parameters
    ----------
    folder
        The folder of the sweep.
    n_samples
        The number of samples of each setting in all, rounded up as `Plan.extended` does.

    Examples
    --------
    >>> import tempfile
    >>> from infocap.lab import Plan, SimulatedBench
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1, sweep={"gain": [1, 2]})
    >>> bench = SimulatedBench(make_system=lambda gain: lambda u: gain * u)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = acquire_sweep(plan, bench, f"{folder}/night", progress=False)
    ...     extend_sweep(f"{folder}/night", 128).n_samples
    128
    """
    folder = Path(folder)
    n_samples = require_whole_number("n_samples", n_samples, 1)
    with acquisition_lock(folder.resolve()):
        plan = _read_plan(folder)
        if n_samples < plan.n_samples:
            raise ParameterError(
                f"`n_samples={n_samples}` is less than the {plan.n_samples} that {folder} has "
                "planned; a plan can only grow."
            )
        plan = plan.extended(n_samples)
        plan.save(folder / PLAN_FILE)
    return plan


def is_sweep_folder(path: str | Path) -> bool:
    """Return whether a path is the folder of a sweep that was, or is being, acquired."""
    return (Path(path) / PLAN_FILE).is_file()


@checks_arguments
def sweep_status(
    folder: str | Path,
    *,
    until: float | None = None,
    nan_policy: str = "raise",
    capacities: bool = True,
) -> SweepStatus:
    """Return how far a sweep is; another process may measure meanwhile.

    Parameters
    ----------
    folder
        The folder of the sweep.
    until, nan_policy
        As for `status`.
    capacities
        Estimate the capacities so far; without them a look is faster.

    Examples
    --------
    >>> import tempfile
    >>> from infocap.lab import Plan, SimulatedBench
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1, sweep={"length_m": [5, 40]})
    >>> bench = SimulatedBench(make_system=lambda length_m: lambda u: length_m * u)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = acquire_sweep(plan, bench, f"{folder}/night", progress=False)
    ...     now = sweep_status(f"{folder}/night", capacities=False)
    >>> now.n_complete, now.stored
    (2, 128)
    """
    return _look(Path(folder), until, nan_policy, capacities=capacities)


def _look(
    folder: Path,
    until: float | None,
    nan_policy: str,
    *,
    capacities: bool = True,
    known: Mapping[Path, Status] = MappingProxyType({}),
) -> SweepStatus:
    plan = _read_plan(folder)
    n_planned = len(replace(plan, sweep=None).schedule)
    statuses: list[Status | None] = []
    for setting in plan.settings:
        path = _store_path(folder, plan.at(**setting))
        before = known.get(path)
        if not _has_begun(path):
            statuses.append(None)
        elif before is None:
            statuses.append(status(path, until=until, nan_policy=nan_policy, capacities=capacities))
        elif before.stored >= n_planned:
            statuses.append(before)
        else:
            statuses.append(before.refreshed(until, nan_policy))
    return SweepStatus(folder, plan, tuple(statuses))


@checks_arguments
def estimate_sweep(
    folder: str | Path, settings: Mapping[str, Iterable[Any]] | None = None, **options: Any
) -> Sweep:
    """Return the capacities at every setting of a sweep that was acquired.

    Parameters
    ----------
    folder
        The folder of the sweep.
    settings
        The values to take, ``{"power_dbm": [1.0]}``, for a sweep that is not complete; all by
        default.
    **options
        Options of `infocap.estimate`, such as ``nan_policy="omit"`` or ``method="raw"``.

    Returns
    -------
    Sweep
        The same as `infocap.sweep` returns for simulations.

    Raises
    ------
    DataError
        If the folder holds no sweep, or at a setting nothing is measured yet.

    Examples
    --------
    >>> import tempfile
    >>> from infocap.lab import Plan, SimulatedBench
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1, sweep={"gain": [1, 2]})
    >>> bench = SimulatedBench(make_system=lambda gain: lambda u: gain * u)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = acquire_sweep(plan, bench, f"{folder}/night", progress=False)
    ...     estimate_sweep(f"{folder}/night").totals
    array([3., 3.])
    """
    folder = Path(folder)
    plan = _read_plan(folder)
    assert plan.sweep is not None
    grid = dict(plan.sweep)
    if settings is not None:
        for name, values in grid_of(settings).items():
            require_one_of("setting", name, grid)
            grid[name] = values
    results = []
    for setting, recording in _recordings(folder, plan, points_of(grid)):
        try:
            results.append(estimate(recording, **{"basis": plan.basis} | options))
        except DataError as problem:
            raise DataError(f"at {point_in_words(setting)}: {problem}") from problem
    return Sweep({name: tuple(values) for name, values in grid.items()}, tuple(results))


def _recordings(
    folder: Path, plan: Plan, points: list[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], Recording]]:
    """Yield what is stored at each of these settings; refuse where something is missing."""
    paths = [_store_path(folder, plan.at(**point)) for point in points]
    not_begun = [
        point_in_words(point)
        for point, path in zip(points, paths, strict=True)
        if not _has_begun(path)
    ]
    if not_begun:
        raise DataError(
            f"{folder} has nothing yet at {len(not_begun)} of {counted(len(points), 'setting')}, "
            f"such as {not_begun[0]}; the same `infocap acquire` as before goes on there, or "
            "estimate those that are measured: settings={...} with fewer values."
        )
    for point, path in zip(points, paths, strict=True):
        yield point, recording_of_store(read_store(path), path)


def _has_begun(path: Path) -> bool:
    """Return whether a store holds its plan."""
    with suppress(DataError):
        return not read_store(path).is_empty
    return path.exists()


def _read_plan(folder: Path) -> Plan:
    """Return the plan of a sweep's folder."""
    if not is_sweep_folder(folder):
        raise DataError(
            f"{folder} is not the folder of a sweep: it has no {PLAN_FILE}; `infocap acquire` with "
            "a plan that has a [sweep] makes one."
        )
    return Plan.load(folder / PLAN_FILE)


def _store_path(folder: Path, plan: Plan) -> Path:
    """Return the store of one setting."""
    assert plan.setting is not None
    return folder / file_of_point(plan.setting, STORE_SUFFIX)
