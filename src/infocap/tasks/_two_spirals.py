"""Two spirals: which of two interleaving arms does a point lie on? (Lang and Witbrock 1988)."""

from __future__ import annotations

import numpy as np

from .._check import number, positive, whole_number
from ..errors import ParameterError
from ._task import Task

INNERMOST = 1 / 13  # radius where the arms begin, as Lang and Witbrock had it
START = 0.3 * np.pi  # angle of the arm if it went on to the origin; the paper does not say, its accuracies do


def two_spirals(n_points: int = 2000, turns: float = 2, noise: float = 0.0, seed: int | None = 0) -> Task:
    """The two-spirals task in [-1, 1] x [-1, 1]; the second arm is minus the first.

    Along each arm the angle grows evenly with the radius, from 1/13 to 1; the radii are spread evenly too, each
    at random within its own small interval. The defaults are the spiral on which the photonic system reaches
    the paper's accuracies. One turn is easily solved, three are not learnt. How the spiral lies in the plane
    moves the accuracy by several points: a device does not treat all directions alike.

    Parameters
    ----------
    turns
        Revolutions from the origin to the edge.
    noise
        Standard deviation of what is added to both coordinates; points that leave the square are put on its edge.

    Examples
    --------
    >>> two_spirals()
    Task 'two spirals': 2000 samples, 2 inputs, 2 classes
      source: drawn with n_points=2000, turns=2, noise=0, seed=0
    """
    n_points = whole_number("n_points", n_points, 4)
    if n_points % 2:
        raise ParameterError(f"n_points={n_points} must be even: both arms have as many points.")
    turns, noise = positive("turns", turns), number("noise", noise, least=0.0)
    generator = np.random.default_rng(seed)
    place = (np.arange(n_points // 2) + generator.random(n_points // 2)) / (n_points // 2)
    radius = INNERMOST + (1 - INNERMOST) * place
    angle = START + 2 * np.pi * turns * radius
    arm = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    inputs = np.vstack([arm, -arm]) + noise * generator.standard_normal((n_points, 2))
    order = generator.permutation(n_points)
    return Task(
        np.clip(inputs, -1.0, 1.0)[order],
        np.repeat([0, 1], n_points // 2)[order],
        name="two spirals",
        source=f"drawn with n_points={n_points}, turns={turns:g}, noise={noise:g}, seed={seed}",
    )
