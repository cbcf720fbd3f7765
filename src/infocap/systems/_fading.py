"""Does a system forget the state it started from, and after how many steps?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._array import to_numpy
from .._check import positive, whole_number
from ..errors import DataError
from ..typing import Floats, System
from ._measure import measure

# Runs closer than this, in standard deviations of a readout, count as one: a transient of this size at the start of N
# samples changes capacities by about 1e-6 / N.
TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Fading:
    """How runs from different states approach each other while the same inputs drive them.

    `distance` (steps,) is the largest root mean square difference between the first run and another, each readout in
    units of its own standard deviation. `washout` is the number of steps after which it stays below `tolerance`, or
    None if it does not.

    >>> Fading(np.array([0.5, 1e-2, 1e-4]), 1e-3)
    Fading: the start is forgotten after 2 steps; use `washout=2` or more.
    """

    distance: Floats
    tolerance: float

    @property
    def washout(self) -> int | None:
        """Steps after which all runs are one within the tolerance; None if that does not happen."""
        apart = np.flatnonzero(~(self.distance < self.tolerance))
        needed = int(apart[-1]) + 1 if len(apart) else 0
        return needed if needed < len(self.distance) else None

    def __repr__(self) -> str:
        if self.washout is not None:
            return f"Fading: the start is forgotten after {self.washout} steps; use `washout={self.washout}` or more."
        return (
            f"Fading: runs from different states still differ by {self.distance[-1]:.2g} standard deviations after "
            f"{len(self.distance)} steps: the system is chaotic, has several states to settle in, or noise that no "
            "`seed` repeats; lower its feedback, or give more `n_steps` if it is only slow."
        )


def check_fading(
    system: System,
    drive: Any,
    *,
    n_steps: int = 2000,
    runs: int = 4,
    tolerance: float = TOLERANCE,
    seed: int | None = 0,
) -> Fading:
    """Drive a system into different states, then by the same inputs, and see when its readouts become equal.

    Capacities of sequences need fading memory: the readouts may depend on recent inputs, not on how it all began. The
    states are reached by playing different pasts, `n_steps` inputs in an order of their own, so that any callable
    system can be checked. Noise must be repeatable: the system gets the same `seed` in each run.

    Parameters
    ----------
    system
        A callable (steps, inputs) -> (steps, readouts).
    drive
        A basis, from whose distributions inputs are drawn, or inputs (2 `n_steps`, inputs) of your own.
    runs
        How many different pasts. A system with several states to settle in needs many to show it.

    Examples
    --------
    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=1)
    >>> check_fading(infocap.systems.DelayLine(20), basis)
    Fading: the start is forgotten after 19 steps; use `washout=19` or more.
    >>> check_fading(infocap.systems.EchoState(50, radius=3.0), basis).washout is None
    True
    """
    n_steps, runs = whole_number("n_steps", n_steps, 2), whole_number("runs", runs, 2)
    generator = np.random.default_rng(seed)
    if families := getattr(drive, "families", None):
        u = np.column_stack([family.quantile(generator.random(2 * n_steps)) for family in families])
    else:
        u = to_numpy(drive).astype(float)
        if len(u) < 2 * n_steps:
            raise DataError(f"drive has {len(u)} steps; give {2 * n_steps}, or `n_steps={len(u) // 2}`.")
    past, future = u[:n_steps], u[n_steps : 2 * n_steps]
    first, scale, distance = None, np.ones(1), np.zeros(n_steps)
    for _ in range(runs):
        x = to_numpy(measure(system, np.concatenate([generator.permutation(past), future]), seed))[n_steps:]
        if first is None:
            first, deviation = x, x.std(axis=0)
            scale = np.where(deviation > 0, deviation, np.inf)
        distance = np.maximum(distance, np.sqrt(np.mean(((x - first) / scale) ** 2, axis=1)))
    return Fading(distance, positive("tolerance", tolerance))
