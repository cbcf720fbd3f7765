"""The total against the number of samples: has the run been long enough?"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from ..errors import ParameterError
from ..result import CapacityResult
from ._style import COLOURS, axes


def growth(result: CapacityResult, ax: Axes | None = None) -> Axes:
    """The total as it was after a part of the run, with its 95 % interval, on an axis that doubles.

    Lines show the most that the readouts could reach and, when inputs were repeated, what noise allows.

    >>> import infocap
    >>> import matplotlib.pyplot as plt
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> x = infocap.systems.RandomFeatures(2, 5, noise=0.01)(u, seed=1)
    >>> ax = infocap.plot.growth(infocap.analyse(infocap.Recording(u, x, range(256)), basis))
    >>> ax.get_xlabel()
    'number of samples $N$'
    >>> plt.close(ax.figure)
    """
    known = result.metadata.get("growth")
    if not known or not known.get("n_samples"):
        raise ParameterError(
            "the result has no growth with the number of samples: it comes from `estimate`, or from growth=False; "
            "infocap.analyse(recording, basis) and `infocap estimate` follow it."
        )
    n, total = np.array(known["n_samples"]), np.array(known["total"], dtype=float)
    errors = known.get("standard_error")
    with axes(ax) as ax:
        if errors is not None:
            reach = 1.96 * np.array(errors, dtype=float)
            ax.fill_between(
                n,
                np.maximum(total - reach, 0.0),
                total + reach,
                color=COLOURS[0],
                alpha=0.22,
                linewidth=0,
                label="95 % interval",
            )
        ax.plot(n, total, "o-", color=COLOURS[0], markersize=3.5, label="total capacity")
        ax.axhline(
            result.maximum,
            color="0.45",
            linestyle="--",
            linewidth=0.9,
            label=f"maximum, {result.maximum}",
        )
        if result.noise_limited_total is not None:
            limit = result.noise_limited_total
            ax.axhline(limit, color=COLOURS[5], linestyle=":", label=f"what noise allows, {limit:.1f}")
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_locator(FixedLocator(n.tolist()))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
        ax.set_ylim(0, 1.08 * max(result.maximum, float(total.max())))
        ax.set_xlabel("number of samples $N$")
        ax.set_ylabel("total capacity")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, handlelength=1.6)
    return ax
