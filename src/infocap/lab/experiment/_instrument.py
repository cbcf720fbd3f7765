"""What an instrument is, and a simulated one to try an acquisition on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..._formatting import one_line
from ..._validation import (
    Checked,
    Count,
    Finite,
    NotNegative,
    checks_arguments,
    require_numbers,
    shown,
)
from ...errors import ParameterError
from ...photonics import FibreSystem
from ...systems import EchoState, measure
from ...typing import ArrayLike, Floats
from ._plan import BENCH, Plan

# Mistakes in a driver's own code, which asking again does not mend.
DRIVER_MISTAKES = (
    TypeError,
    AttributeError,
    NameError,
    ImportError,
    SyntaxError,
    NotImplementedError,
)
# Settings of [metadata.bench] that are of the bench; all others are of the simulated system.
BENCH_SETTINGS = ("latency_s", "dropout", "drift", "batch")
# After this many measurements all readouts of a bench have changed by the share `drift`.
MEASUREMENTS_PER_DRIFT = 1000


@runtime_checkable
class Instrument(Protocol):
    """Anything that can be sent inputs and read out: a driver of your own, of any library.

    No base class is needed: an object with the method `measure` is an instrument.

    Notes
    -----
    **What measure takes and returns.** It gets the inputs, (inputs,), and returns the readouts,
    (channels,); of a device with memory, those of a whole run: (steps, inputs) and
    (steps, channels). It may return a pair in place of the readouts: these, and a dictionary of
    extra values of that moment, such as ``{"Temperature [K]": 293.1}``. They are kept with the row.

    **Methods that are called where they are there.** ``measure_many(u)``, for a generator that
    plays a sequence or a scope that takes frames, gets (rows, inputs) and returns (rows, channels).
    It gets as many rows at once as the attribute ``batch`` says, else 64. ``dark()`` reads with the
    source off, for plans with `dark_every`. ``recover()`` comes before a failed measurement is
    tried again. ``safe()``, which should switch off what may do harm, and then ``close()`` come at
    the end of an acquisition, however it ends. After a crash, which calls nothing, the next
    acquisition begins with ``safe()`` and ``recover()``. A text ``identity``, such as a serial
    number, tells one instrument from another; without it the name of the class does.

    **Parameters that are passed where a method has them.** ``settle_s`` and ``averages`` of the
    plan, to wait after setting the inputs and to average by itself; without ``averages`` it is
    asked that many times, and the mean is stored. ``seed`` belongs to the measurement (for
    `measure_many` it is a list of seeds): simulated noise is then the same after a restart.

    Examples
    --------
    >>> class Wire:
    ...     def measure(self, u):
    ...         return 2 * u
    >>> isinstance(Wire(), Instrument)
    True
    """

    def measure(self, u: Floats) -> ArrayLike:
        """Return the readouts, (channels,), at the inputs.

        Parameters
        ----------
        u
            The inputs, (inputs,).
        """


@dataclass(eq=False)
class SimulatedBench(Checked):
    """Any system as an instrument that takes its time, sometimes fails to answer, and drifts.

    Parameters
    ----------
    system
        A callable (samples, inputs) -> (samples, readouts); the photonic experiment by default.
    latency_s
        How long every measurement takes, in seconds.
    dropout
        The probability that a measurement fails with an OSError.
    drift
        The share by which all readouts change over 1000 measurements.
    batch
        Rows that are taken at once; above 1, as a generator with a memory does.
    seed
        The seed of the failures.
    make_system
        Makes the system for the settings of a sweep, which come as keyword arguments.

    Examples
    --------
    >>> bench = SimulatedBench(lambda u: u**2)
    >>> bench.measure(np.array([1.0, 2.0]))
    array([1., 4.])
    """

    system: Any = None
    _: KW_ONLY
    latency_s: NotNegative = 0.0
    dropout: NotNegative = 0.0
    drift: Finite = 0.0
    batch: Count = 1
    seed: int = 0
    make_system: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.system is None and self.make_system is None:
            self.system = FibreSystem()
        self._random = np.random.default_rng(self.seed)
        self._count = 0

    def set(self, **setting: Any) -> None:
        """Take the system of a setting of a sweep.

        Parameters
        ----------
        **setting
            What `make_system` gets.
        """
        if self.make_system is None:
            raise ParameterError(
                "this bench has one system for all settings; give it one for each: "
                "SimulatedBench(make_system=...)."
            )
        self.system = self.make_system(**setting)

    @checks_arguments
    def measure(self, u: Floats, seed: Any = None) -> Floats:
        """Return the readouts at one vector of inputs, or at every step of a sequence of them.

        Parameters
        ----------
        u
            The inputs, (inputs,) or (steps, inputs).
        seed
            Of the simulated noise.
        """
        time.sleep(self.latency_s)
        if self._random.random() < self.dropout:
            raise OSError("the simulated instrument did not answer")
        self._count += 1
        gain = 1 + self.drift * self._count / MEASUREMENTS_PER_DRIFT
        u = require_numbers("u", u)
        readouts = gain * np.asarray(measure(self.system, np.atleast_2d(u), seed))
        return readouts if u.ndim == 2 else readouts[0]

    @checks_arguments
    def measure_many(self, u: Floats, seed: Sequence[Any]) -> list[Floats]:
        """Return the readouts at several vectors of inputs, or of several sequences.

        Parameters
        ----------
        u
            The inputs, (rows, inputs) or (rows, steps, inputs).
        seed
            Of the simulated noise, one for each row.
        """
        if np.ndim(u) < 2 or len(u) != len(seed):
            raise ParameterError(
                f"`u={shown(u)}` and {len(seed)} seeds; give as many rows of inputs as seeds."
            )
        return [self.measure(row, row_seed) for row, row_seed in zip(u, seed, strict=True)]


def simulated_bench(plan: Plan) -> SimulatedBench:
    """Return the photonic experiment for a plan, or an echo-state network for a sequence.

    Parameters
    ----------
    plan
        ``[metadata.bench]`` of the plan may set the system and the faults of the bench:
        ``bench = { power_dbm = 4.5, length_m = 40.0, latency_s = 0.01, dropout = 0.01 }``.

    Examples
    --------
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, metadata={"bench": {"length_m": 40.0}})
    >>> simulated_bench(plan).system.length_m
    40.0
    """
    settings = plan.metadata.get(BENCH, {})
    if not isinstance(settings, dict):
        raise ParameterError(
            f"metadata.bench of the plan is {settings!r}; give a table of settings."
        )
    of_bench = {name: settings[name] for name in settings if name in BENCH_SETTINGS}
    of_system = {name: settings[name] for name in settings if name not in BENCH_SETTINGS}
    low, high = plan.basis.families[0].bounds
    if (low, high) != (-1.0, 1.0):
        raise ParameterError(
            f"the simulated bench takes inputs from -1 to 1, not from {low:g} to {high:g}."
        )
    kind = EchoState if plan.runs else FibreSystem
    make_system = partial(kind, n_inputs=plan.n_inputs, **of_system)
    try:
        systems = [make_system(**setting) for setting in plan.settings or [plan.setting or {}]]
    except TypeError as problem:
        place = "sweep or metadata.bench" if plan.sweep else "metadata.bench"
        raise ParameterError(f"{place} of the plan: {problem}.") from None
    return SimulatedBench(systems[0], make_system=make_system, **of_bench)


def error_in_one_line(problem: BaseException) -> str:
    """Return the type and the text of an error in one line.

    Examples
    --------
    >>> error_in_one_line(OSError("bus\\nlocked"))
    'OSError: bus locked'
    """
    return f"{type(problem).__name__}: {one_line(problem)}"
