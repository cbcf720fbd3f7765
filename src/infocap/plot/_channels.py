"""Channels in a picture: the capacity that the best few of them keep."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .._validation import checks_arguments
from ..workflow import ChannelRanking
from ._style import COLOURS, COMPARISON_COLOUR, axes_in_style

# The share that the picture marks.
MARKED_SHARE = 0.95
# Distance in points from the line to its label.
LABEL_DISTANCE = 4.0


@checks_arguments
def channels(ranking: ChannelRanking, ax: Axes | None = None) -> Axes:
    """Draw the share of the capacity against the number of channels in the best order.

    The band is one standard error. A line marks the fewest channels that keep 95 %.

    Parameters
    ----------
    ranking
        What `infocap.rank_channels` returned.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> u = infocap.draw(basis, 512, seed=1)
    >>> ranking = infocap.rank_channels(u, infocap.systems.RandomFeatures(2, 8)(u), basis)
    >>> infocap.plot.channels(ranking).get_xlabel()
    'number of channels, in the best order'
    """
    numbers = np.arange(1, len(ranking.share) + 1)
    share = 100 * ranking.share
    error = 100 * ranking.share_standard_error
    n_kept = len(ranking.smallest(MARKED_SHARE))
    with axes_in_style(ax) as ax:
        ax.fill_between(
            numbers, share - error, share + error, color=COLOURS[0], alpha=0.25, linewidth=0
        )
        ax.plot(numbers, share, "o-", color=COLOURS[0], markersize=2.5)
        ax.axvline(n_kept, color=COMPARISON_COLOUR, linestyle="--")
        is_on_the_right = n_kept > len(numbers) / 2
        ax.annotate(
            f"{n_kept} channels keep {100 * MARKED_SHARE:.0f} %",
            (n_kept, 0),
            (-LABEL_DISTANCE if is_on_the_right else LABEL_DISTANCE, LABEL_DISTANCE),
            textcoords="offset points",
            ha="right" if is_on_the_right else "left",
            va="bottom",
        )
        ax.set(xlabel="number of channels, in the best order", ylabel="share of the capacity (%)")
        ax.set_ylim(0, max(105.0, float((share + error).max())))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax
