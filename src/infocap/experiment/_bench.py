"""A simulated bench, with the faults of a real one, to try an acquisition before the beam time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .._check import number
from ..errors import ParameterError
from ..systems._measure import measure
from ..systems.fibre import FibreSystem
from ..typing import Floats, System
from ._plan import BENCH, Plan

FAULTS = ("latency_s", "dropout", "drift")


class SimulatedBench:
    """Any system as an instrument that takes its time, sometimes fails to answer, and drifts.

    Parameters
    ----------
    system
        A callable (samples, inputs) -> (samples, readouts); the photonic system by default.
    latency_s
        Time that every measurement takes.
    dropout
        Probability that a measurement fails with an OSError.
    drift
        Relative change of all readouts over 1000 measurements.
    seed
        Of the failures.

    Examples
    --------
    >>> bench = SimulatedBench(lambda u: u**2)
    >>> bench.measure(np.array([1.0, 2.0]))
    array([1., 4.])
    """

    def __init__(
        self,
        system: System | None = None,
        *,
        latency_s: float = 0.0,
        dropout: float = 0.0,
        drift: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.system = FibreSystem() if system is None else system
        self.latency_s = number("latency_s", latency_s, 0.0)
        self.dropout = number("dropout", dropout, 0.0)
        self.drift = number("drift", drift)
        self._random = np.random.default_rng(seed)
        self._count = 0

    def measure(self, u: Floats, seed: Any = None) -> Floats:
        """Readouts at one vector of inputs."""
        if self.latency_s:
            time.sleep(self.latency_s)
        if self._random.random() < self.dropout:
            raise OSError("the simulated instrument did not answer")
        self._count += 1
        gain = 1 + self.drift * self._count / 1000
        return gain * np.asarray(measure(self.system, np.asarray(u, dtype=float)[None, :], seed)[0])


def simulated(plan: Plan) -> SimulatedBench:
    """The photonic experiment for a plan; ``[metadata.bench]`` of the plan may set it, and the faults.

    For example ``bench = { power_dbm = 4.5, length_m = 40.0, latency_s = 0.01, dropout = 0.01, drift = 0.02 }``.

    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1, metadata={"bench": {"length_m": 40.0}})
    >>> simulated(plan).system.length_m
    40.0
    """
    if not isinstance(plan.metadata.get(BENCH, {}), dict):
        raise ParameterError(
            f"metadata.bench of the plan is {plan.metadata[BENCH]!r}; give a table of settings."
        )
    settings = dict(plan.metadata.get(BENCH, {}))
    faults = {name: settings.pop(name) for name in FAULTS if name in settings}
    low, high = plan.basis.families[0].bounds
    if (low, high) != (-1.0, 1.0):
        raise ParameterError(
            f"the simulated bench takes inputs from -1 to 1; the plan's run from {low:g} to {high:g}."
        )
    try:
        system = FibreSystem(n_inputs=plan.n_inputs, **settings)
    except TypeError as problem:
        raise ParameterError(f"metadata.bench of the plan: {problem}.") from None
    return SimulatedBench(system, **faults)
