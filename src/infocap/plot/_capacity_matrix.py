"""The capacity matrix: two inputs, one cell a function."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from ..result import CapacityResult
from ._style import GREY, axes, fraction_in_circle


def capacity_matrix(result: CapacityResult, ax: Axes | None = None, *, colourbar: bool = True) -> Axes:
    """Capacities by the degree in u1 (x axis) and in u2 (y axis); cells outside the basis are grey.

    For a phase (Fourier) the axis counts functions: 0, cos1, sin1, cos2, ... Matrices side by side can share
    one scale: draw them without a `colourbar`, and one for all from ``ax.images[0]``.

    >>> import infocap
    >>> import matplotlib.pyplot as plt
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(infocap.systems.RandomFeatures(2, 5, noise=0.01), basis, 256, seed=1)
    >>> ax = infocap.plot.capacity_matrix(result)
    >>> ax.images[0].get_array().shape
    (4, 4)
    >>> plt.close(ax.figure)
    """
    values = result.matrix()
    with axes(ax, aspect=0.8) as ax:
        colours = mpl.colormaps["viridis"].with_extremes(bad=GREY)
        image = ax.imshow(values.T, origin="lower", cmap=colours, vmin=0.0, vmax=1.0)
        edges = np.arange(len(values) + 1) - 0.5
        ax.hlines(edges, -0.5, len(values) - 0.5, color="white", linewidth=0.3)
        ax.vlines(edges, -0.5, len(values) - 0.5, color="white", linewidth=0.3)
        step = 1 if len(values) <= 10 else 2
        ax.set_xticks(np.arange(0, len(values), step))
        ax.set_yticks(np.arange(0, len(values), step))
        ax.tick_params(length=2)
        ax.spines[:].set_visible(False)
        names = [
            "degree" if family.count(1) == 2 else "number of function" for family in result.basis.families
        ]
        ax.set_xlabel(f"{names[0]} in $u_1$")
        ax.set_ylabel(f"{names[1]} in $u_2$")
        if colourbar:
            ax.figure.colorbar(
                image, ax=ax, label="capacity", ticks=[0, 0.25, 0.5, 0.75, 1], pad=0.03, fraction=0.046
            )
        fraction_in_circle(ax, result.total, result.maximum, 0.79, 0.79)
    return ax
