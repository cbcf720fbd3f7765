"""Capacities in pictures: the matrix of two inputs, and bars by degree for any number of inputs."""

import textwrap
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable

from .._formatting import name_and_unit, positive_or_bound
from .._validation import checks_arguments
from ..errors import ParameterError
from ..result import CapacityResult, untold_degrees
from ..typing import Floats
from ._style import (
    COLOURS,
    CONSTANT_COLOUR,
    ERROR_BARS,
    GREY,
    MIN_FONT_SIZE,
    UNRELIABLE_COLOUR,
    axes_in_style,
    degree_axis,
    degree_axis_length,
    draw_errors,
    lay_out,
    require_numbers,
    size_in_points,
    stacked_bars,
    tick_step,
    unreliable_total,
)

KIND_NAMES = {"0": "constant", "1": "one variable", "2": "two variables", ">2": "more than two"}
# Width of a digit in the fonts of the style, over the font's size.
DIGIT_WIDTH = 0.62
# The fraction in the circle: its font size over the usual one, the factor by which matplotlib
# shrinks numerator and denominator, and the padding around it over its font size.
FRACTION_SIZE = 1.9
FRACTION_SHRINKAGE = 0.7
CIRCLE_PADDING = 0.25
# Letters that fit along a matrix of one column's width.
MAX_LABEL_LENGTH = 44
# Colours of the scale beside a matrix: more cannot be told apart, and make large files.
N_SCALE_COLOURS = 64
# From so many inputs on, numbers do not fit into the cells of their matrix.
MAX_INPUTS_WITH_NUMBERS = 8
# Cells above this share of the scale are light, and have black numbers.
LIGHT_SHARE = 0.65
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
# Width of a bar in degrees.
DEGREE_BAR_WIDTH = 0.78
# Space in letters that the swatch of a legend's entry takes.
SWATCH_LETTERS = 6
# A legend may be so much wider than the axes before it is broken into rows of two entries.
MAX_LEGEND_WIDTH = 1.2
# Distance in points from the axes to the reason why a total is unreliable: over nothing, over a
# legend of one row, and over a legend of two rows.
TITLE_PAD = 6.0
TITLE_PAD_OVER_LEGEND = 16.0
TITLE_PAD_OVER_TWO_ROWS = 28.0
# Size of the sums above bars, over the usual font size.
SUM_FONT_SCALE = 0.85
# Share of the distance between two degrees that a sum may take before it is written upright.
MAX_SHARE_OF_PLACE = 0.95
# Height of a line of text over its font size.
LINE_HEIGHT = 1.2
# Distance in points between a bar and its sum, and between the sum and the end of the axes.
GAP_AROUND_SUM = 2.0
# Share of the height of the axes that upright sums may take.
MAX_SHARE_OF_SUMS = 0.4
# Share of the height that bars under the circle with the total have at least.
MIN_FREE_SHARE = 0.1
# The axis of capacities ends here at least, so that it has a length where all are zero.
MIN_AXIS_END = 1e-3
# Share of the height that stays free above bars without sums.
MIN_SHARE_ABOVE_BARS = 0.04


@checks_arguments
def capacity_matrix(
    result: CapacityResult, ax: Axes | None = None, *, colourbar: bool = True, total: bool = True
) -> Axes:
    """Draw capacities by the degree in the first input (x axis) and in the second (y axis).

    Grey cells are not in the basis. For a phase (Fourier) the axis counts functions: 0, cos1, sin1,
    cos2, ...

    Parameters
    ----------
    result
        A result of two inputs.
    ax
        Where to draw; by default on new axes.
    colourbar
        Whether to draw the scale of the colours. Matrices side by side can share one: draw them
        without, and one for all from ``ax.collections[0]``.
    total
        Whether to draw the circle with the total over its maximum.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> ax = infocap.plot.capacity_matrix(result)
    >>> ax.collections[0].get_array().shape
    (4, 4)
    """
    require_numbers(result)
    capacities = result.matrix()
    # The matrix is square, although one input may go to higher degrees than the other.
    n_columns, n_rows = (result.basis.indices.max(axis=0) + 1).tolist()
    capacities = capacities[:n_columns, :n_rows]
    columns = np.arange(n_columns)
    rows = np.arange(n_rows)
    with axes_in_style(ax, aspect=0.8) as ax:
        viridis = mpl.colormaps["viridis"]
        mesh = ax.pcolormesh(
            columns,
            rows,
            np.ma.masked_invalid(capacities.T),
            cmap=viridis,
            vmin=0.0,
            vmax=1.0,
            edgecolors="white",
            linewidth=0.3,
        )
        ax.set_facecolor(GREY)
        ax.grid(visible=False)
        x_label, y_label = index_names(result)
        ax.set(box_aspect=1, xlabel=x_label, ylabel=y_label)
        ax.tick_params(length=2)
        ax.spines[:].set_visible(False)
        if colourbar:
            scale = ScalarMappable(mesh.norm, viridis.resampled(N_SCALE_COLOURS))
            ticks = [0, 0.25, 0.5, 0.75, 1]
            drawn_scale: Any = ax.figure.colorbar(
                scale, ax=ax, label="capacity", ticks=ticks, pad=0.03, fraction=0.046
            )
            drawn_scale.solids.set(rasterized=False, edgecolor="face")
        lay_out(ax)
        ax.set_xticks(columns[:: tick_step(ax, n_columns)])
        ax.set_yticks(rows[:: tick_step(ax, n_rows)])
        if total:
            _draw_total(ax, result, anchor=0.79)
    return ax


@checks_arguments
def input_matrix(result: CapacityResult, ax: Axes | None = None) -> Axes:
    """Draw which inputs interact: capacities of the functions that contain both of two inputs.

    On the diagonal are the functions of one input alone. Grey cells have no function in the basis.

    Parameters
    ----------
    result
        A result of two inputs or more.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=3, max_degree=2)
    >>> result = infocap.probe(lambda u: u[:, :2] * u[:, 1:], basis, 256, seed=1)
    >>> ax = infocap.plot.input_matrix(result)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['u1', 'u2', 'u3']
    """
    require_numbers(result)
    if result.basis.n_inputs < 2:
        raise ParameterError(
            "one input interacts with no other; draw `capacity_bars(result)` instead."
        )
    capacities = result.input_matrix()
    places = np.arange(len(capacities))
    names = [name.replace("$", r"\$") for name in result.basis.names]
    with axes_in_style(ax, aspect=0.8) as ax:
        colours = mpl.colormaps["viridis"].with_extremes(bad=GREY)
        scale_end = max(float(np.nanmax(capacities, initial=0.0)), MIN_AXIS_END)
        image = ax.imshow(capacities, origin="lower", cmap=colours, vmin=0.0, vmax=scale_end)
        ax.set_xticks(places, names)
        ax.set_yticks(places, names)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        if len(places) <= MAX_INPUTS_WITH_NUMBERS:
            for (row, column), value in np.ndenumerate(capacities):
                if np.isfinite(value):
                    colour = "white" if value < LIGHT_SHARE * scale_end else "black"
                    text = positive_or_bound(value, 2) if value else "0"
                    ax.text(column, row, text, ha="center", va="center", color=colour)
        label = "capacity of functions of both inputs"
        ax.figure.colorbar(image, ax=ax, label=label, pad=0.03, fraction=0.046)
    return ax


def index_names(result: CapacityResult) -> list[str]:
    """Return the labels of the axes of the matrix: what is counted, the input, its range."""
    labels = []
    for number, family in enumerate(result.basis.families, start=1):
        name, unit = name_and_unit(family.variable)
        low, high = family.bounds
        if not unit:
            limits = ""
        elif np.isfinite([low, high]).all():
            # A range and its unit stay on one line.
            limits = ", " + f"{low:g} to {high:g} {unit}".replace(" ", "\N{NO-BREAK SPACE}")
        else:
            limits = f" ({unit})"
        # A phase has two functions of each degree, cosine and sine.
        counted = "degree" if family.count(1) == 2 else "number of function"
        input_name = name or f"u{number}".translate(SUBSCRIPTS)
        label = f"{counted} in {input_name}{limits}".replace("$", r"\$")
        filled = textwrap.fill(label, MAX_LABEL_LENGTH)
        labels.append(filled.replace("\N{NO-BREAK SPACE}", " "))
    return labels


@checks_arguments
def capacity_bars(result: CapacityResult, ax: Axes | None = None, *, total: bool = True) -> Axes:
    """Draw capacity by total degree, stacked by number of variables, with the sum above each bar.

    The constant function has a colour of its own. Bars are sums of the capacities shown. Error bars
    of one standard error stand at the estimates of ``by_degree(errors=True)``, which also count
    functions that are shown as 0.

    Parameters
    ----------
    result
        A result of any number of inputs, with or without memory.
    ax
        Where to draw; by default on new axes.
    total
        Whether to draw the circle with the total over its maximum.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> ax = infocap.plot.capacity_bars(result)
    >>> ax.get_xlabel()
    'total degree'
    """
    require_numbers(result)
    table = capacity_by_kind(result).rename(columns=KIND_NAMES)
    estimates = result.by_degree(errors=True)
    untold = untold_degrees(result)
    estimates.loc[untold] = np.nan
    degrees = table.index.to_numpy()
    with axes_in_style(ax) as ax:
        sums = stacked_bars(ax, table, (CONSTANT_COLOUR, *COLOURS), DEGREE_BAR_WIDTH)
        tops = sums
        if result.standard_error is not None:
            centres = estimates["capacity"].to_numpy()
            errors = estimates["standard_error"].to_numpy()
            draw_errors(ax, degrees, centres, errors, ERROR_BARS)
            tops = np.maximum(sums, np.nan_to_num(centres + errors))
        legend_in_one_row = _draw_legend(ax)
        ax.set(xlabel="total degree", ylabel="capacity")
        lay_out(ax)
        degree_axis(ax, degrees)
        texts = [positive_or_bound(value, 2) if value else "0" for value in sums]
        for degree in untold:
            texts[degree] = "?"
        share_above = _write_sums(ax, texts, tops)
        # The axis ends where the highest sum has room above its bar.
        axis_end = tops.max() / (1 - share_above)
        if total:
            pad = TITLE_PAD_OVER_LEGEND if legend_in_one_row else TITLE_PAD_OVER_TWO_ROWS
            diameter = _draw_total(ax, result, title_pad=pad)
            # Bars under the circle end below it.
            axes_width, axes_height = size_in_points(ax)
            n_covered = diameter * degree_axis_length(len(degrees)) / axes_width
            is_covered = degrees > degrees[-1] - n_covered
            free_share = max(1 - share_above - diameter / axes_height, MIN_FREE_SHARE)
            axis_end = max(axis_end, tops[is_covered].max(initial=0.0) / free_share)
        ax.set_ylim(0, max(axis_end, MIN_AXIS_END))
    return ax


def _draw_legend(ax: Axes) -> bool:
    """Draw the legend of the bars above the axes; return whether it has a single row."""
    _, labels = ax.get_legend_handles_labels()
    n_letters = sum(len(label) + SWATCH_LETTERS for label in labels)
    legend_width = DIGIT_WIDTH * mpl.rcParams["font.size"] * n_letters
    axes_width, _ = size_in_points(ax)
    in_one_row = legend_width < MAX_LEGEND_WIDTH * axes_width
    if labels:
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=len(labels) if in_one_row else 2,
            handlelength=1.0,
            handletextpad=0.5,
            borderaxespad=0.2,
        )
    return in_one_row


def _write_sums(ax: Axes, texts: list[str], tops: Floats) -> float:
    """Write each sum above its bar, upright where it would touch the next one.

    Where only letters too small for print would fit, there are no sums. Returns the share of the
    height that they need.
    """
    axes_width, axes_height = size_in_points(ax)
    font_size = SUM_FONT_SCALE * mpl.rcParams["font.size"]
    place_width = axes_width / degree_axis_length(len(texts))
    text_length = DIGIT_WIDTH * max(map(len, texts))  # over the font size
    is_upright = text_length * font_size > MAX_SHARE_OF_PLACE * place_width
    if is_upright:
        font_size = min(font_size, place_width / LINE_HEIGHT)
    if font_size < MIN_FONT_SIZE:
        return MIN_SHARE_ABOVE_BARS
    for degree, text in enumerate(texts):
        ax.annotate(
            text,
            (degree, tops[degree]),
            (0, GAP_AROUND_SUM),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=font_size,
            rotation=90 if is_upright else 0,
        )
    height = font_size * (text_length if is_upright else LINE_HEIGHT)
    return min((height + 2 * GAP_AROUND_SUM) / axes_height, MAX_SHARE_OF_SUMS)


def capacity_by_kind(result: CapacityResult) -> pd.DataFrame:
    """Return capacity by total degree and kind of function, with the constant ("0") apart.

    Degrees whose capacity cannot be told are left empty.
    """
    table = result.by_degree()
    table.loc[untold_degrees(result)] = 0.0
    table.insert(0, "0", 0.0)
    table.loc[0, ["0", "1"]] = [table.loc[0, "1"], 0.0]
    return table


def _draw_total(
    ax: Axes, result: CapacityResult, anchor: float | None = None, title_pad: float = TITLE_PAD
) -> float:
    """Write total over maximum as a fraction in a circle, as the paper does; return its diameter.

    The circle is centred at the share `anchor` of width and height, or touches the upper right
    corner from inside. An unreliable total has a dashed circle, and the reason stands above the
    axes.
    """
    font_size = mpl.rcParams["font.size"]
    total = result.short_total
    if result.unreliable:
        line: Any = {"edgecolor": UNRELIABLE_COLOUR, "linestyle": "--", "linewidth": 1.2}
        reason = unreliable_total(ax, result)
        ax.set_title(reason, color=UNRELIABLE_COLOUR, fontsize=font_size, pad=title_pad)
    else:
        line = {"edgecolor": "black", "linewidth": 0.8}
    fraction_size = FRACTION_SIZE * font_size
    if result.components is None:
        text = rf"$\frac{{{total}}}{{{result.maximum}}}$"
        n_letters = max(len(total), len(str(result.maximum)))
    else:
        text = rf"$\geq$ {total}"
        n_letters = len(total) + len("≥ ")
    text_size = fraction_size
    if result.components is not None:
        text_size *= FRACTION_SHRINKAGE  # as large as a numerator
    half_width = 0.5 * FRACTION_SHRINKAGE * DIGIT_WIDTH * n_letters
    radius = fraction_size * (half_width + CIRCLE_PADDING) + 1
    padding = CIRCLE_PADDING * fraction_size / text_size
    if anchor is None:
        position = (1.0, 1.0)
        offset = (-radius, -radius)
    else:
        position = (anchor, anchor)
        offset = (0.0, 0.0)
    ax.annotate(
        text,
        position,
        offset,
        xycoords="axes fraction",
        textcoords="offset points",
        ha="center",
        va="center",
        zorder=5,
        fontsize=text_size,
        bbox={"boxstyle": f"circle,pad={padding}", "facecolor": "white", **line},
    )
    return 2 * (radius + 1)
