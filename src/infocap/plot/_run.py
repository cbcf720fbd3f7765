"""What a run shows besides capacities: growth with the number of samples, factors and drift."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatterSciNotation

from .._formatting import HALF_WIDTH_95, short
from .._validation import checks_arguments, shown
from ..dimension import Indicator
from ..errors import ParameterError
from ..recording import Recording
from ..result import CapacityResult, Factors
from ..typing import Floats
from ..workflow import Convergence
from ._style import (
    COLOURS,
    COMPARISON_COLOUR,
    DOUBLE_MM,
    UNRELIABLE_COLOUR,
    axes_in_style,
    require_numbers,
    unreliable_total,
)

# Points of a curve that get a marker; more would merge into a thick line.
MAX_MARKERS = 100
# Functions whose convergence is drawn unless the user names some.
N_CONVERGENCE_CURVES = 6
LEGEND_ABOVE: Any = {
    "loc": "lower center",
    "bbox_to_anchor": (0.5, 1.0),
    "ncols": 2,
    "handlelength": 1.6,
}
# Units of time by their length in seconds, the longest first.
TIME_UNITS = {"h": 3600.0, "min": 60.0, "s": 1.0}
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@checks_arguments
def growth(result: CapacityResult, ax: Axes | None = None) -> Axes:
    """Draw the total that the method gives for the rows measured first, with its 95 % interval.

    The number of samples doubles from tick to tick. Lines show the most that the readouts could
    reach and, when inputs were repeated, what noise allows. Points whose error is not known have no
    interval. An unreliable total has open symbols and no interval, and the reason stands above.

    Parameters
    ----------
    result
        A result of ``infocap.estimate(recording)``.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> recording = infocap.Recording(u, u**2, range(256))
    >>> ax = infocap.plot.growth(infocap.estimate(recording, basis=basis))
    >>> ax.get_xlabel()
    'number of samples N'
    """
    require_numbers(result)
    curve = result.growth
    if curve is None:
        raise ParameterError(
            "the result has no growth with the number of samples; infocap.estimate(recording, "
            "basis=basis) follows it for a recording in memory that is no sequence."
        )
    n_samples = np.array(curve.n_samples)
    totals = np.array(curve.total)
    with axes_in_style(ax) as ax:
        if curve.standard_error is not None and not result.unreliable:
            # An error that is None becomes NaN.
            errors = np.array(curve.standard_error, dtype=float)
            # Totals that cannot be told have no point.
            totals = np.where(errors > result.rank, np.nan, totals)
            _draw_interval(ax, n_samples, totals, HALF_WIDTH_95 * errors)
        label = "total capacity"
        fill = COLOURS[0]
        if result.unreliable:
            label = "total capacity, unreliable"
            fill = "white"
        ax.plot(
            n_samples,
            totals,
            "o-",
            label=label,
            color=COLOURS[0],
            markersize=3.5,
            markerfacecolor=fill,
        )
        if result.components is None:
            label = f"maximum, {result.maximum}"
        else:
            label = f"maximum of {result.components.in_words}, {result.maximum}"
        ax.axhline(result.maximum, color=COMPARISON_COLOUR, linestyle="--", label=label)
        limit = result.noise_limited_total
        if limit is not None:
            label = f"what noise allows, {short(limit, result.maximum)}"
            ax.axhline(limit, color=COLOURS[5], linestyle=":", label=label)
        ax.set_xscale("log", base=2)
        ax.set_xticks(n_samples, [str(n) for n in n_samples])
        ax.minorticks_off()
        ax.set(xlabel="number of samples N", ylabel="total capacity")
        ax.set_ylim(0, 1.08 * max(result.maximum, float(np.nanmax(totals))))
        reason = unreliable_total(ax, result) if result.unreliable else None
        legend = ax.legend(title=reason, **LEGEND_ABOVE)
        legend.get_title().set_color(UNRELIABLE_COLOUR)
    return ax


def _draw_interval(ax: Axes, n_samples: Floats, totals: Floats, half_width: Floats) -> None:
    """Draw intervals: a band where every point has one, else bars at the points that have one."""
    has_interval = np.isfinite(half_width)
    label = "95 % interval"
    if has_interval.all():
        low = np.maximum(totals - half_width, 0.0)
        high = totals + half_width
        ax.fill_between(
            n_samples, low, high, label=label, color=COLOURS[0], alpha=0.22, linewidth=0
        )
    elif has_interval.any():
        # Without caps, so that the first line of the axes is the curve.
        ax.errorbar(
            n_samples[has_interval],
            totals[has_interval],
            half_width[has_interval],
            fmt="none",
            ecolor=COLOURS[0],
            label=label,
        )


@checks_arguments
def indicator(source: CapacityResult | Factors | Indicator, ax: Axes | None = None) -> Axes:
    """Draw Malinowski's indicator function, whose minimum is the number of factors.

    Parameters
    ----------
    source
        A result of ``infocap.estimate(recording)`` whose recording has noise repeats, or what
        `infocap.dimension.indicator` returned.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> signal = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 10))
    >>> noise = 0.1 * rng.standard_normal((500, 10))
    >>> ax = infocap.plot.indicator(infocap.dimension.indicator(signal + noise))
    >>> ax.texts[0].get_text()
    'minimum: 3 factors'
    """
    factors = source.factors if isinstance(source, CapacityResult) else source
    if factors is None:
        raise ParameterError(
            "the result has no factor analysis: its recording had no `noise`; measure one input "
            "many times, and give infocap.estimate the recording with them."
        )
    if isinstance(factors, Factors) and factors.problem is not None:
        raise ParameterError(f"the result has no indicator function: {factors.problem}")
    values = np.asarray(factors.values)
    numbers = np.arange(1, len(values) + 1)
    # Readouts without noise leave exactly zero, which has no place on a logarithmic axis.
    positive_values = np.where(values > 0, values, np.nan)
    with axes_in_style(ax) as ax:
        ax.semilogy(
            numbers,
            positive_values,
            color=COLOURS[0],
            marker=_marker(len(values)),
            markersize=2.5,
        )
        n_factors = factors.n_factors
        if n_factors is not None:
            ax.axvline(n_factors, color=COMPARISON_COLOUR, linestyle="--", linewidth=0.9)
            ax.plot(n_factors, values[n_factors - 1], "o", color=COLOURS[5], markersize=5)
            ax.text(
                n_factors,
                1.01,
                f"minimum: {n_factors} factors",
                transform=ax.get_xaxis_transform(),
                ha="center",
                va="bottom",
            )
        ax.yaxis.set_major_formatter(_PowersOfTen())
        ax.yaxis.set_minor_formatter(_PowersOfTen(minor_thresholds=(1.6, 0.4)))
        ax.set_xlim(0, len(values) + 1)
        ax.set(xlabel="number of factors", ylabel="indicator function IND")
    return ax


def _marker(n_points: int) -> str | None:
    """Return the marker of a curve's points; None where they are too many."""
    return "o" if n_points <= MAX_MARKERS else None


class _PowersOfTen(LogFormatterSciNotation):
    """Powers of ten as plain text, such as 10⁻³, which every font shows alike.

    Matplotlib chooses the ticks that get a label.
    """

    def __call__(self, x: float, pos: int | None = None) -> str:
        formula = super().__call__(x, pos)
        formula = formula.removeprefix(r"$\mathdefault{").removesuffix("}$")
        formula = formula.replace(r"\times", "·")
        return re.sub(r"\^\{(.*?)\}", lambda power: power[1].translate(SUPERSCRIPTS), formula)


@checks_arguments
def drift(result: CapacityResult, ax: Axes | None = None) -> Axes:
    """Draw how far the reference was from its first measurement during the run.

    The distance is in per cent of the readouts' standard deviation. The dashed line is the distance
    that noise alone explains.

    Parameters
    ----------
    result
        A result of ``infocap.estimate(recording)`` whose recording measured a reference repeatedly.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> reference = 0.01 * np.random.default_rng(1).standard_normal((12, 2))
    >>> recording = infocap.Recording(u, u**2, range(256), reference=reference)
    >>> ax = infocap.plot.drift(infocap.estimate(recording, basis=basis))
    >>> ax.get_xlabel()
    'number of measurement'
    """
    curve = result.drift
    if curve is None:
        raise ParameterError(
            "the result has no drift: its recording had no `reference`; measure one input 8 times "
            "or more during the run, and give infocap.estimate the recording with them."
        )
    time, time_label = _time_axis(np.array(curve.time), in_seconds=curve.clock == "s")
    distance = 100 * np.array(curve.distance)
    # The difference of two measurements has twice the variance of the noise.
    noise_distance = 100 * np.sqrt(2) * curve.noise
    with axes_in_style(ax) as ax:
        ax.plot(
            time,
            distance,
            label="reference",
            color=COLOURS[0],
            marker=_marker(len(time)),
            markersize=2.5,
        )
        ax.axhline(noise_distance, color=COMPARISON_COLOUR, linestyle="--", label="noise alone")
        ax.set_ylim(0, 1.12 * max(*distance, noise_distance, 1e-6))
        ax.set(xlabel=time_label, ylabel="moved by (% of spread)")
        ax.legend(**LEGEND_ABOVE)
    return ax


def _time_axis(time: np.ndarray, in_seconds: bool) -> tuple[np.ndarray, str]:
    """Return times since the first, in the largest unit of which the run lasts more than two."""
    if not in_seconds:
        return time, "number of measurement"
    elapsed = time - time[0]
    unit = "s"
    for name, seconds in TIME_UNITS.items():
        if elapsed.max() > 2 * seconds:
            unit = name
            break
    return elapsed / TIME_UNITS[unit], f"time ({unit})"


@checks_arguments
def extra_value(recording: Recording, name: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw an extra value of each row, such as a temperature, in the order of acquisition.

    Parameters
    ----------
    recording
        A recording with extra values.
    name
        The name of the value; by default the first.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> temperature = np.linspace(293, 294, 8)[:, None]
    >>> extra = {"extra": temperature, "extra_names": ("Room [K]",)}
    >>> run = infocap.Recording(np.zeros((8, 1)), np.ones((8, 2)), range(8), **extra)
    >>> infocap.plot.extra_value(run).get_ylabel()
    'Room [K]'
    """
    names = recording.extra_names
    if name is None and names:
        name = names[0]
    if recording.extra is None or name not in names:
        raise ParameterError(
            f"`name={shown(name)}` is no extra value of this recording, which has {list(names)}."
        )
    values = recording.extra[:, names.index(name)]
    if recording.time is None:
        moments = np.arange(len(recording.design_index))
    else:
        moments = np.asarray(recording.time)
    order = np.argsort(moments, kind="stable")
    time, time_label = _time_axis(moments[order], in_seconds=moments.dtype.kind == "f")
    with axes_in_style(ax) as ax:
        ax.plot(time, values[order], ".", color=COLOURS[0], markersize=2.5)
        ax.set(xlabel=time_label, ylabel=name)
    return ax


@checks_arguments
def convergence(
    curve: Convergence, terms: Sequence[int | str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the raw capacity C_N of selected functions over the number of samples N.

    The axis is logarithmic. At N = K all raw capacities are 1.

    Parameters
    ----------
    curve
        What `infocap.convergence` returned.
    terms
        Functions, as positions in the basis or labels such as ``"P2(u1)"``; by default functions of
        high, middle and vanishing capacity.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> x = infocap.systems.RandomFeatures(2, 5)(u)
    >>> curve = infocap.convergence(u, x, basis)
    >>> ax = infocap.plot.convergence(curve, ["P1(u1)", "P3(u2)"])
    >>> len(ax.get_legend().get_texts())
    2
    """
    labels = curve.basis.labels
    chosen = _spread_terms(curve.raw[-1]) if terms is None else _term_positions(terms, labels)
    with axes_in_style(ax, aspect=0.38, width_mm=DOUBLE_MM) as ax:
        ax.axvline(curve.maximum, color="0.6", linewidth=0.8, linestyle="--")
        ax.text(curve.maximum, 0.03, f" N = K = {curve.maximum}", color="0.4")
        for number, term in enumerate(chosen):
            ax.plot(
                curve.n_samples,
                curve.raw[:, term],
                color=COLOURS[number % len(COLOURS)],
                linestyle="-" if number < len(COLOURS) else "--",
                label="constant" if labels[term] == "1" else labels[term],
            )
        limits = (curve.n_samples[0] * 0.75, curve.n_samples[-1] * 1.05)
        ax.set(xscale="log", xlim=limits, ylim=(0, 1.05))
        ax.set(xlabel="number of samples $N$", ylabel="raw capacity $C_N$")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2)
    return ax


def _spread_terms(capacities: Floats) -> list[int]:
    """Return functions whose capacities are spread from the highest to the lowest, no constant."""
    varying = capacities[1:]
    highest = varying.max(initial=0.0)
    lowest = varying.min(initial=1.0)
    terms = []
    for value in np.linspace(highest, lowest, min(N_CONVERGENCE_CURVES, len(varying))):
        nearest = 1 + int(np.argmin(np.abs(varying - value)))
        if nearest not in terms:
            terms.append(nearest)
    return terms or [0]


def _term_positions(terms: Sequence[int | str], labels: Sequence[str]) -> list[int]:
    """Return the positions of functions that are named by position or label."""
    positions = []
    for term in terms:
        position = labels.index(term) if term in labels else term
        if position not in range(len(labels)):
            raise ParameterError(
                f"`terms` has {term!r}, which is no function of the basis; give numbers from 0 to "
                f"{len(labels) - 1}, or labels such as {labels[-1]!r}."
            )
        positions.append(int(position))
    return positions
