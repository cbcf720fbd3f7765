"""Two spirals: which of two interleaving arms does a point lie on? (Lang and Witbrock 1988)."""

from __future__ import annotations

import numpy as np

from .._check import number, positive, whole_number
from ..errors import ParameterError
from ._task import Task

INNERMOST = 0.03  # radius where the arms begin; at the origin itself they would meet


def two_spirals(n_points: int = 2000, turns: float = 2, noise: float = 0.0, seed: int | None = 0) -> Task:
    """The two-spirals task in [-1, 1] x [-1, 1]; the second arm is minus the first.

    Along each arm the radius r grows evenly with the angle; points are uniform in r. The defaults are the
    spiral on which the photonic system reaches the paper's accuracies; one turn is easily solved, three are not
    learnt. The level depends on how the spiral lies in the plane, by several points: inputs are not alike to a
    device.

    Parameters
    ----------
    turns
        Revolutions from the centre to the edge.
    noise
        Standard deviation of what is added to both coordinates; points that leave the square are put on its edge.

    >>> two_spirals()
    Task 'two spirals': 2000 samples, 2 inputs, 2 classes
      source: drawn with n_points=2000, turns=2, noise=0, seed=0
    """
    n_points = whole_number("n_points", n_points, 4)
    if n_points % 2:
        raise ParameterError(f"n_points={n_points} must be even: both arms have as many points.")
    turns, noise = positive("turns", turns), number("noise", noise, least=0.0)
    generator = np.random.default_rng(seed)
    radius = generator.uniform(INNERMOST, 1.0, n_points // 2)
    angle = -2 * np.pi * turns * radius
    arm = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    inputs = np.vstack([arm, -arm]) + noise * generator.standard_normal((n_points, 2))
    return Task(
        np.clip(inputs, -1.0, 1.0),
        np.repeat([0, 1], n_points // 2),
        name="two spirals",
        source=f"drawn with n_points={n_points}, turns={turns:g}, noise={noise:g}, seed={seed}",
    )
