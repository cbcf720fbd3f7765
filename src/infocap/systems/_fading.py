"""Does a system forget the state it started from, and after how many steps?"""

from typing import Any

import numpy as np

from .._array import to_numpy
from .._check import positive, whole_number
from ..errors import DataError
from ..typing import Floats, System
from ._measure import measure

# Runs with different noise are told apart by more than this times the largest distance that noise alone has made.
NOISE = 1.5


def check_fading(
    system: System,
    drive: Any,
    *,
    n_steps: int = 2000,
    runs: int = 4,
    tolerance: float = 1e-3,
    seed: int | None = 0,
) -> int:
    """The washout that a system needs: steps after which its readouts no longer tell from which state it started.

    Capacities of sequences need fading memory: readouts may depend on recent inputs, not on how it all began. Here
    different pasts, `n_steps` inputs in an order of their own, lead a system into different states, and once it starts
    from rest; then the same inputs drive it, and the readouts must become equal. If they do not, a DataError says so.

    Parameters
    ----------
    system
        A callable (steps, inputs) -> (steps, readouts). Its noise must be repeatable: each run gets the same `seed`.
    drive
        A basis, from whose distributions inputs are drawn, or inputs (2 `n_steps`, inputs) of your own.
    runs
        How many different pasts. A system with several states to settle in needs many to show it.
    tolerance
        Readouts that differ by less, in standard deviations of each, count as equal. A transient of 0.001 at the start
        of N samples changes capacities by about 1e-6 / N.

    Examples
    --------
    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=1)
    >>> check_fading(infocap.systems.DelayLine(20), basis)
    19
    """
    n_steps, runs = whole_number("n_steps", n_steps, 2), whole_number("runs", runs, 2)
    generator = np.random.default_rng(seed)
    if families := getattr(drive, "families", None):
        u = np.column_stack([family.quantile(generator.random(2 * n_steps)) for family in families])
    else:
        u = to_numpy(drive).astype(float)
    if len(u) < 2 * n_steps:
        raise DataError(f"drive has {len(u)} steps; give {2 * n_steps}, or `n_steps={len(u) // 2}`.")
    future = u[n_steps : 2 * n_steps]
    driven = [np.concatenate([generator.permutation(u[:n_steps]), future]) for _ in range(runs)]
    first, *others = (to_numpy(measure(system, past, seed))[n_steps:] for past in driven)
    # From rest the noise is another one: two such runs tell how much that alone is.
    rest, again = (to_numpy(measure(system, future, one)) for one in (seed, None if seed is None else seed + 1))
    deviation = first.std(axis=0)

    def distance(x: Floats, y: Floats) -> Floats:
        """Root mean square over the readouts, in standard deviations of each, at every step."""
        return np.sqrt(np.mean(((x - y) / np.where(deviation > 0, deviation, np.inf)) ** 2, axis=1))

    tolerance = positive("tolerance", tolerance)
    alone = max(tolerance, NOISE * distance(rest, again).max())
    apart = np.max([*(distance(first, x) / tolerance for x in others), distance(first, rest) / alone], axis=0)
    late = np.flatnonzero(~(apart < 1))
    if len(late) and late[-1] == n_steps - 1:
        raise DataError(
            f"after {n_steps} steps, runs from different states are {apart[-1]:.2g} times farther apart than noise and "
            f"`tolerance={tolerance:g}` allow: the system is chaotic, has several states to settle in, or noise that "
            "no `seed` repeats; lower its feedback, or give more `n_steps` if it is only slow."
        )
    return int(late[-1]) + 1 if len(late) else 0
