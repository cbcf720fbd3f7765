"""One look for all figures: sizes for print, colours that colour-blind readers can tell apart."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from ..result._capacity_result import CapacityResult
from ..typing import Integers

SINGLE_MM, DOUBLE_MM = 89.0, 183.0  # widths of one and of two columns of a journal
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")  # Okabe and Ito
DOUBT = COLOURS[5]  # what cannot be trusted
GREY, SOFT = "#d0d0d0", "#565f69"  # cells outside a basis; lines that others are compared with

STYLE: Any = {
    "font.size": 7.5,
    **dict.fromkeys(["axes.labelsize", "axes.titlesize"], 8),
    **dict.fromkeys(["xtick.labelsize", "ytick.labelsize", "legend.fontsize"], 7),
    **dict.fromkeys(["axes.linewidth", "xtick.major.width", "ytick.major.width"], 0.6),
    **dict.fromkeys(["axes.spines.top", "axes.spines.right", "legend.frameon"], False),
    "lines.linewidth": 1.2,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "savefig.bbox": "tight",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


@contextmanager
def own_look() -> Iterator[None]:
    """The settings of this package, for figures made within."""
    with mpl.rc_context(STYLE):
        yield
        interactive = mpl.is_interactive()
    # A notebook's backend is loaded by the first figure and then switches pictures on. Leaving the settings undoes
    # that, and the notebook would show the first figure and no other.
    mpl.interactive(interactive)


@contextmanager
def axes(ax: Axes | None, aspect: float = 0.72, width_mm: float = SINGLE_MM) -> Iterator[Axes]:
    """The axes given, as they are; or new ones, one column wide, in the look of this package."""
    if ax is not None:
        yield ax
        return
    with own_look():
        width = width_mm / 25.4
        _, new = plt.subplots(figsize=(width, aspect * width), layout="constrained")
        yield new


def unreliable_total(ax: Axes, result: CapacityResult) -> str:
    """Return what to say above the axes of a total that cannot be trusted, in lines as long as they are wide."""
    letter = 0.55 * mpl.rcParams["font.size"] / 72  # a usual width, in inches
    inches = ax.get_window_extent().width / ax.figure.dpi
    said = f"total {result.qualified_total}".replace("$", r"\$")
    return textwrap.fill(said, max(int(inches / letter), 20))


def degree_axis(ax: Axes, degrees: Integers) -> None:
    """Name the total degrees under groups of bars."""
    ax.set(xticks=degrees, xlim=(degrees[0] - 0.6, degrees[-1] + 0.6), xlabel="total degree")
    ax.tick_params(axis="x", length=0)
