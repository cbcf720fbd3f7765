"""Sequences in pictures: what is remembered how long, and how memory is traded for nonlinearity."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .._validation import checks_arguments, require_whole_number, shown
from ..basis import FUNCTION, INPUT
from ..errors import ParameterError
from ..result import CapacityResult, known_sums_by_degree
from ..typing import Floats
from ..workflow import Sweep
from ._style import (
    COLOURS,
    COMPARISON_COLOUR,
    ERROR_BARS,
    GREY,
    axes_in_style,
    degree_colours,
    draw_errors,
    require_numbers,
    stacked_bars,
)

# Lines of one delayed input; those of higher degrees lie on each other near zero.
MAX_LINES = 4
# Degrees whose legend finds room above low bars; that of more stands beside the axes.
MAX_LABELS_OVER_BARS = 4
# The share of the highest bar that is one pixel high; the axis ends where bars become lower.
MIN_VISIBLE_SHARE = 0.005
# The colour scale of capacities ends here at least: smaller ones deserve no bright colour.
MIN_SCALE_END = 0.02
# With more letters in the names of bars, the names stand upright, or they would overlap.
MAX_LETTERS_OF_NAMES = 30


@checks_arguments
def memory_function(result: CapacityResult, ax: Axes | None = None, *, input: int = 1) -> Axes:  # noqa: A002
    """Draw the capacity of one delayed input by its delay, with bands of one standard error.

    Each degree has a line, cosine and sine of a phase have one each. Points of functions that are
    not significant are empty, and so are those that a search tested and did not find. Under the
    law of the recorded inputs these are capacities of innovations, and a dotted line is R² of each
    delayed input itself.

    Parameters
    ----------
    result
        A result of delayed inputs.
    ax
        Where to draw; by default on new axes.
    input
        The number of the input, from 1 on.

    Examples
    --------
    >>> network = infocap.systems.EchoState(4)
    >>> result = infocap.probe(network, infocap.delayed_basis(max_delay={1: 8, 2: 3}), 600, seed=1)
    >>> infocap.plot.memory_function(result).get_xlabel()
    'delay'
    """
    require_numbers(result)
    basis = result.delayed_basis
    if require_whole_number("input", input, 1) > basis.n_inputs:
        raise ParameterError(f"`input={input}` is above {basis.n_inputs}, the number of inputs.")
    family = basis.families[input - 1]
    input_name = basis.names[input - 1]
    first_factors = basis.factors[:, 0]
    of_this_input = (basis.interactions == 1) & (first_factors[:, INPUT] == input - 1)
    # There is one function for each degree, but two for each degree of a phase, cosine and sine.
    functions = np.unique(first_factors[of_this_input, FUNCTION])
    degrees = family.degrees(int(functions.max(initial=0)) + 1)
    longest_delay = 0
    last_delay = basis.memory
    with axes_in_style(ax) as ax:
        for function, colour in zip(functions[:MAX_LINES].tolist(), COLOURS, strict=False):
            degree = int(degrees[function])
            functions_of_degree = functions[degrees[functions] == degree].tolist()
            n_of_degree = len(functions_of_degree)
            table = result.memory_function(degree, input)
            # At each delay the table has one row for each function of this degree.
            if n_of_degree == 1:
                table = _with_delays_not_found(table, result, degree)
            table = table.iloc[functions_of_degree.index(function) :: n_of_degree]
            capacities = table["capacity"].to_numpy()
            if degree > 1 and not capacities.any():
                continue
            visible = table.index[capacities > MIN_VISIBLE_SHARE]
            longest_delay = max(longest_delay, *visible.tolist(), 0)
            last_delay = max(last_delay, int(table.index.max()))
            label = f"degree {degree}"
            if n_of_degree > 1:
                label = family.label(function, input_name)
            _draw_memory(ax, table, colour, label)
            if degree == 1 and "recall" in table:
                # Under dependent inputs, what can be recalled is more than what is remembered.
                style: Any = {"color": colour, "linestyle": ":", "linewidth": 1.0}
                recall = table["recall"].where(~(table["recall_standard_error"] > 1))
                ax.plot(table.index, recall, label="recall of the input itself", **style)
                _draw_band(ax, recall, table["recall_standard_error"], GREY)
        # Where nothing is remembered any more, there is nothing to be seen.
        end = min(last_delay, 1.5 * longest_delay + 3)
        ax.set(ylabel="capacity", ylim=(0, 1.05), xlim=(-0.5, end + 0.5))
        ax.set_xlabel("delay" if basis.n_inputs == 1 else f"delay of {input_name}")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend()
    return ax


def _with_delays_not_found(
    table: pd.DataFrame, result: CapacityResult, degree: int
) -> pd.DataFrame:
    """Return a memory function with zeros at the delays that a search tested and did not find."""
    searched = result.metadata.get("explored") or {}
    # Files hold the degrees as text.
    windows = {int(key): window for key, window in searched.get("windows", {}).items()}
    if degree not in windows:
        return table
    delays = np.union1d(table.index.to_numpy(), np.arange(windows[degree] + 1))
    filled = table.reindex(pd.Index(delays, name="delay"))
    filled["capacity"] = filled["capacity"].fillna(0.0)
    return filled


def _draw_memory(ax: Axes, table: pd.DataFrame, colour: str, label: str) -> None:
    """Draw capacity over delay, filled where it is significant, with a band if errors are known."""
    delays = table.index.to_numpy()
    capacities = table["capacity"].to_numpy(copy=True)
    if "standard_error" in table:
        # Capacities that cannot be told leave gaps.
        capacities[table["standard_error"] > 1] = np.nan
    significant = capacities > 0
    markers: Any = {"color": colour, "markersize": 2.5, "markeredgewidth": 0.6}
    ax.plot(delays, capacities, "o-", markerfacecolor="white", label=label, **markers)
    ax.plot(delays[significant], capacities[significant], "o", **markers)
    if "standard_error" in table:
        _draw_band(ax, table["capacity"], table["standard_error"], colour)


def _draw_band(ax: Axes, values: pd.Series, errors: pd.Series, colour: str) -> None:
    """Draw a band of one standard error, within the range of single capacities."""
    half_width = errors.where(~(errors > 1)).where(errors.notna(), 0.0)
    low = np.clip(values - half_width, 0, 1)
    high = np.clip(values + half_width, 0, 1)
    ax.fill_between(values.index, low, high, color=colour, alpha=0.25, linewidth=0)


@checks_arguments
def degree_bars(results: Any, ax: Axes | None = None) -> Axes:
    """Draw capacity stacked by degree, one bar per result, and the rank as a line.

    The constant is left out, as is usual for devices with memory.

    Parameters
    ----------
    results
        What `infocap.sweep` returned, a mapping from what was changed, such as the spectral radius,
        to the result, a list of results, or one result.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> network = infocap.systems.EchoState(4)
    >>> result = infocap.probe(network, infocap.delayed_basis(max_delay={1: 8, 2: 3}), 600, seed=1)
    >>> infocap.plot.degree_bars({0.8: result, 0.9: result}).get_ylabel()
    'capacity without the constant'
    """
    names, result_list = _named_results(results)
    for result in result_list:
        require_numbers(result)
    places = np.arange(len(result_list))
    with axes_in_style(ax) as ax:
        # Degrees whose capacity cannot be told stay empty.
        sums_by_degree = [known_sums_by_degree(result) for result in result_list]
        table = pd.DataFrame(sums_by_degree).fillna(0.0).loc[:, 1:]
        highest_degree = max(table.columns[(table != 0).any()], default=1)
        table = table.loc[:, :highest_degree]
        colours = degree_colours(highest_degree)
        table = table.rename(columns="degree {}".format)
        totals = stacked_bars(ax, table, colours, 0.8)
        estimates = [result.total - result.has_constant for result in result_list]
        # An error of None becomes NaN, and no error bar.
        errors = np.array([result.total_standard_error for result in result_list], dtype=float)
        draw_errors(ax, places, np.array(estimates), errors, ERROR_BARS)
        ranks = [_rank_of_readouts(result) for result in result_list]
        ax.hlines(
            ranks,
            places - 0.5,
            places + 0.5,
            color=COMPARISON_COLOUR,
            linestyle="--",
            label="rank of the readouts",
        )
        ax.set_ylabel("capacity without the constant")
        ax.set(xticks=places, xlim=(-0.7, len(result_list) - 0.3))
        settings = getattr(results, "settings", {})
        ax.set_xlabel(", ".join(settings).replace("_", " "))
        ax.set_xticklabels(names if len(names) > 1 else [""])
        if sum(map(len, names)) > MAX_LETTERS_OF_NAMES:
            ax.tick_params(axis="x", rotation=90)
        ax.set_ylim(0, 1.05 * max(*ranks, *totals))
        # The legend has the order of the stack, from top to bottom.
        handles, labels = ax.get_legend_handles_labels()
        handles.reverse()
        labels.reverse()
        ax.legend(handles, labels, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def _named_results(results: Any) -> tuple[list[str], list[CapacityResult]]:
    """Return the names and the results of a sweep, a mapping, a list or a single result."""
    if isinstance(results, CapacityResult):
        results = [results]
    if isinstance(results, Mapping):
        names = [str(name) for name in results]
        return names, _checked_results(list(results.values()))
    if isinstance(results, Sweep):  # which yields pairs of settings and result
        pairs = list(results)
        names = [", ".join(map(str, settings.values())) for settings, _ in pairs]
        return names, [result for _, result in pairs]
    result_list = _checked_results(results)
    return [str(number) for number in range(1, len(result_list) + 1)], result_list


def _checked_results(results: Any) -> list[CapacityResult]:
    """Return a list of results; refuse what is no list of them, or empty."""
    is_list = isinstance(results, list | tuple)
    if not is_list or not all(isinstance(result, CapacityResult) for result in results):
        raise ParameterError(
            f"`results={shown(results)}` must be a result, a list of results, a dictionary of "
            "results by name, or a sweep."
        )
    if not results:
        raise ParameterError("`results` is empty; give one result or more.")
    return list(results)


def _rank_of_readouts(result: CapacityResult) -> int:
    """Return the rank without the constant readout, where one was appended."""
    return result.rank - result.has_constant


@checks_arguments
def delay_matrix(result: CapacityResult, ax: Axes | None = None, *, input: int = 1) -> Axes:  # noqa: A002
    """Draw capacities of degree 2 by both delays; squares of one delay lie on the diagonal.

    Each pair of delays is shown once.

    Parameters
    ----------
    result
        A result of delayed inputs.
    ax
        Where to draw; by default on new axes.
    input
        The number of the input, from 1 on.

    Examples
    --------
    >>> network = infocap.systems.EchoState(4)
    >>> result = infocap.probe(network, infocap.delayed_basis(max_delay={1: 8, 2: 3}), 600, seed=1)
    >>> infocap.plot.delay_matrix(result).get_xlabel()
    'longer delay'
    """
    require_numbers(result)
    capacities = result.delay_matrix(input)
    capacities[np.triu_indices(len(capacities), 1)] = np.nan
    with axes_in_style(ax, aspect=0.8) as ax:
        colours = mpl.colormaps["viridis"].with_extremes(bad="white")
        scale_end = max(float(np.nanmax(capacities)), MIN_SCALE_END)
        image = ax.imshow(capacities.T, origin="lower", cmap=colours, vmin=0.0, vmax=scale_end)
        ax.set(xlabel="longer delay", ylabel="shorter delay")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True))
        ax.figure.colorbar(image, ax=ax, label="capacity", pad=0.03, fraction=0.046)
    return ax


@checks_arguments
def capacity_by_delay(result: CapacityResult, ax: Axes | None = None) -> Axes:
    """Draw capacity by the largest delay of a function, stacked by degree.

    It shows how memory is traded for nonlinearity.

    Parameters
    ----------
    result
        A result of delayed inputs.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> network = infocap.systems.EchoState(4)
    >>> result = infocap.probe(network, infocap.delayed_basis(max_delay={1: 8, 2: 3}), 600, seed=1)
    >>> infocap.plot.capacity_by_delay(result).get_xlabel()
    'largest delay'
    """
    require_numbers(result)
    errors = result.by_delay(errors=True)["standard_error"]
    # Delays whose capacity cannot be told stay empty.
    can_be_told = ~(errors > result.rank)
    table = result.by_delay().where(can_be_told, 0.0).fillna(0.0).clip(lower=0.0)
    degrees = table.columns.to_list()
    table = table.rename(columns="degree {}".format)
    with axes_in_style(ax) as ax:
        # Under the recorded law powers of the present input may have higher degrees than the basis.
        colours = degree_colours(max(degrees, default=1))
        colours_of_columns = [colours[degree - 1] for degree in degrees]
        sums = stacked_bars(ax, table, colours_of_columns, 1.0)
        if result.law == "recorded":
            places = np.arange(len(errors))
            ax.errorbar(places, sums, errors.where(can_be_told), **ERROR_BARS)
        ax.set_xlim(-0.6, _last_visible(sums) + 0.6)
        ax.set(xlabel="largest delay", ylabel="capacity")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        n_labels = len(ax.get_legend_handles_labels()[0])
        if n_labels > MAX_LABELS_OVER_BARS:
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        elif n_labels:
            ax.legend()
        ax.grid(axis="y", color=GREY, linewidth=0.4)
        ax.set_axisbelow(True)
    return ax


def _last_visible(heights: Floats) -> int:
    """Return the position of the last bar that is high enough to be seen."""
    visible = np.flatnonzero(heights > MIN_VISIBLE_SHARE * heights.max())
    return int(visible[-1]) if len(visible) else 0
