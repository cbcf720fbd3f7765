"""Raw capacities against the number of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ..errors import ParameterError
from ..typing import Integers
from ..workflow import Convergence
from ._style import COLOURS, DOUBLE_MM, axes


def convergence(curve: Convergence, terms: Sequence[int | str] | None = None, ax: Axes | None = None) -> Axes:
    """C_N of selected functions on a logarithmic axis, starting at 1 for N = K.

    `terms` are positions in the basis or labels such as ``"P2(u1)"``; by default a function of high, middle
    and vanishing capacity from the degrees present.

    >>> import infocap
    >>> import matplotlib.pyplot as plt
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> curve = infocap.convergence(u, infocap.systems.RandomFeatures(2, 5)(u), basis)
    >>> ax = infocap.plot.convergence(curve, ["P1(u1)", "P3(u2)"])
    >>> len(ax.get_legend().get_texts())
    2
    >>> plt.close(ax.figure)
    """
    chosen = _typical(curve) if terms is None else np.array([_position(curve, term) for term in terms])
    with axes(ax, aspect=0.38, width_mm=DOUBLE_MM) as ax:
        ax.axvline(curve.maximum, color="0.6", linewidth=0.8, linestyle="--")
        ax.annotate(
            f"N = K = {curve.maximum}",
            (curve.maximum, 0.03),
            (3, 0),
            textcoords="offset points",
            color="0.4",
        )
        for number, term in enumerate(chosen):
            label = curve.basis.label(term)
            ax.plot(
                curve.n_samples,
                curve.raw[:, term],
                color=COLOURS[number % len(COLOURS)],
                linestyle="-" if number < len(COLOURS) else "--",
                label="constant" if label == "1" else label,
            )
        ax.set_xscale("log")
        ax.set_xlim(curve.n_samples[0] * 0.75, curve.n_samples[-1] * 1.05)
        ax.set_ylim(0, 1.05)
        ax.set_xlabel("number of samples $N$")
        ax.set_ylabel("raw capacity $C_N$")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2)
    return ax


def _position(curve: Convergence, term: int | str) -> int:
    if isinstance(term, str):
        if term not in curve.basis.labels:
            raise ParameterError(f"terms has {term!r}, which is not a function of this basis.")
        return curve.basis.labels.index(term)
    if not 0 <= term < len(curve.basis):
        raise ParameterError(f"terms has {term}; the basis has functions 0 to {len(curve.basis) - 1}.")
    return int(term)


def _typical(curve: Convergence, most: int = 6) -> Integers:
    """The constant aside, functions spread evenly between the largest and the smallest final capacity."""
    if len(curve.basis) == 1:
        return np.zeros(1, int)
    order = np.argsort(-curve.raw[-1, 1:], kind="stable") + 1
    last = curve.raw[-1, order]
    wanted = np.linspace(last[0], last[-1], min(most, len(order)))
    return np.array(list(dict.fromkeys(order[np.argmin(np.abs(last - value))] for value in wanted)))
