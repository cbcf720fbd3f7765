"""What a run tells beside its capacities: growth with the number of samples, convergence, factors, drift."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatterSciNotation

from .._formatting import HALF_WIDTH_95, short
from ..dimension._spectra import Indicator
from ..errors import ParameterError
from ..recording._recording import Recording
from ..result._capacity_result import CapacityResult, Factors
from ._style import COLOURS, DOUBLE_MM, DOUBT, SOFT, axes, unreliable_total

MOST_MARKERS = 100  # Points of a curve that get a marker; more would merge into a thick line.
MOST_CURVES = 6  # Functions whose convergence is drawn unless the user names some.
ABOVE: Any = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2, "handlelength": 1.6}
CLOCKS = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))


def growth(result: CapacityResult, ax: Axes | None = None) -> Axes:
    """The total that the method gives for the rows measured first, with its 95 % interval, and that of the result.

    Lines show the most that the readouts could reach and, when inputs were repeated, what noise allows. A total that
    is unreliable has open symbols and no interval, and the reason stands above.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> ax = infocap.plot.growth(infocap.estimate(infocap.Recording(u, u**2, range(256)), basis=basis))
    >>> ax.get_xlabel()
    'number of samples N'
    """
    found = result.growth
    if found is None:
        raise ParameterError(
            "no growth with the number of samples; infocap.estimate(recording, basis) follows it."
        )
    n, total = np.array(found.n_samples), np.array(found.total)
    with axes(ax) as ax:
        if found.standard_error is not None and not result.unreliable:
            half_width = HALF_WIDTH_95 * np.array(found.standard_error)
            low, high = np.maximum(total - half_width, 0.0), total + half_width
            ax.fill_between(
                n, low, high, color=COLOURS[0], alpha=0.22, linewidth=0, label="95 % interval"
            )
        fill = "white" if result.unreliable else COLOURS[0]
        label = "total capacity, unreliable" if result.unreliable else "total capacity"
        ax.plot(n, total, "o-", color=COLOURS[0], markersize=3.5, markerfacecolor=fill, label=label)
        ax.axhline(result.maximum, color=SOFT, linestyle="--", label=f"maximum, {result.maximum}")
        if (limit := result.noise_limited_total) is not None:
            label = f"what noise allows, {short(limit, result.maximum)}"
            ax.axhline(limit, color=COLOURS[5], linestyle=":", label=label)
        ax.set_xscale("log", base=2)
        ax.set_xticks(n, [str(one) for one in n])
        ax.minorticks_off()
        ax.set(xlabel="number of samples N", ylabel="total capacity")
        ax.set_ylim(0, 1.08 * max(result.maximum, float(total.max())))
        legend = ax.legend(
            title=unreliable_total(ax, result) if result.unreliable else None, **ABOVE
        )
        legend.get_title().set_color(DOUBT)
    return ax


def indicator(found: CapacityResult | Factors | Indicator, ax: Axes | None = None) -> Axes:
    """Malinowski's indicator function IND on a logarithmic axis, with its minimum: the number of factors.

    Takes a result of `estimate` whose recording has noise repeats, or what `infocap.dimension.indicator` gave.

    >>> rng = np.random.default_rng(0)
    >>> signal = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 10))
    >>> found = infocap.dimension.indicator(signal + 0.1 * rng.standard_normal((500, 10)))
    >>> ax = infocap.plot.indicator(found)
    >>> ax.texts[0].get_text()
    'minimum: 3 factors'
    """
    factors = found.factors if isinstance(found, CapacityResult) else found
    if factors is None:
        raise ParameterError(
            "the result has no factor analysis: its recording had no `noise`; measure one input many times, "
            "and give infocap.estimate the recording with them."
        )
    if isinstance(factors, Factors) and factors.problem is not None:
        raise ParameterError(f"the result has no indicator function: {factors.problem}")
    values = np.asarray(factors.values)
    with axes(ax) as ax:
        marker = "o" if len(values) <= MOST_MARKERS else None
        shown = np.where(values > 0, values, np.nan)  # readouts without noise leave exactly nothing
        ax.semilogy(
            np.arange(1, len(values) + 1), shown, marker=marker, color=COLOURS[0], markersize=2.5
        )
        if (least := factors.n_factors) is not None:
            ax.axvline(least, color=SOFT, linestyle="--", linewidth=0.9)
            ax.plot(least, values[least - 1], "o", color=COLOURS[5], markersize=5)
            above: Any = {"transform": ax.get_xaxis_transform(), "ha": "center", "va": "bottom"}
            ax.text(least, 1.01, f"minimum: {least} factors", **above)
        ax.yaxis.set_major_formatter(_PowersOfTen())
        ax.yaxis.set_minor_formatter(_PowersOfTen(minor_thresholds=(1.6, 0.4)))
        ax.set(
            xlim=(0, len(values) + 1), xlabel="number of factors", ylabel="indicator function IND"
        )
    return ax


class _PowersOfTen(LogFormatterSciNotation):
    """Powers of ten as plain text, 10⁻³, which every font shows alike; matplotlib chooses the ticks that get one."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        text = super().__call__(x, pos).replace(r"$\mathdefault{", "").replace("}$", "")
        small = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
        return re.sub(r"\^\{(.*?)\}", lambda power: power[1].translate(small), text).replace(
            r"\times", "·"
        )


def drift(result: CapacityResult, ax: Axes | None = None) -> Axes:
    """How far the reference was from its first measurement, in per cent of the readouts' standard deviation.

    The dashed line is the distance that noise alone explains. The result must come from `estimate`, and its recording
    must have measured a reference again and again.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> again = 0.01 * np.random.default_rng(1).standard_normal((12, 2))
    >>> recording = infocap.Recording(u, u**2, range(256), reference=again)
    >>> ax = infocap.plot.drift(infocap.estimate(recording, basis=basis))
    >>> ax.get_xlabel()
    'number of measurement'
    """
    found = result.drift
    if found is None:
        raise ParameterError(
            "the result has no drift: its recording had no `reference`; measure one input 8 times or more during "
            "the run, and give infocap.estimate the recording with them."
        )
    time, called = _clock(np.array(found.time), found.clock == "s")
    percent, noise = 100 * np.array(found.moved), 100 * np.sqrt(2) * found.noise
    with axes(ax) as ax:
        marker = "o" if len(time) <= MOST_MARKERS else None
        ax.plot(time, percent, marker=marker, color=COLOURS[0], markersize=2.5, label="reference")
        ax.axhline(noise, color=SOFT, linestyle="--", label="noise alone")
        ax.set(
            ylim=(0, 1.12 * max(*percent, noise, 1e-6)),
            xlabel=called,
            ylabel="moved by (% of spread)",
        )
        ax.legend(**ABOVE)
    return ax


def _clock(time: np.ndarray, in_seconds: bool) -> tuple[np.ndarray, str]:
    """Times since the first and what to call them, in the largest unit of which the run lasts more than two."""
    if not in_seconds:
        return time, "number of measurement"
    since = time - time[0]
    seconds, unit = next((one for one in CLOCKS if since.max() > 2 * one[0]), CLOCKS[-1])
    return since / seconds, f"time ({unit})"


def extra_value(recording: Recording, name: str | None = None, ax: Axes | None = None) -> Axes:
    """An extra value of each row, such as a temperature, in the order of acquisition; the first, or that of a name.

    >>> warm = np.linspace(293, 294, 8)[:, None]
    >>> run = infocap.Recording(np.zeros((8, 1)), np.ones((8, 2)), range(8), extra=warm, extra_names=("Room [K]",))
    >>> infocap.plot.extra_value(run).get_ylabel()
    'Room [K]'
    """
    names = recording.extra_names
    if recording.extra is None or (name or names[0]) not in names:
        raise ParameterError(
            f"`name={name!r}` is no extra value of this recording, which has {list(names)}."
        )
    when = (
        np.arange(len(recording.design_index))
        if recording.time is None
        else np.asarray(recording.time)
    )
    order = np.argsort(when, kind="stable")
    time, called = _clock(when[order], when.dtype.kind == "f")
    with axes(ax) as ax:
        ax.plot(
            time,
            recording.extra[order, names.index(name or names[0])],
            ".",
            color=COLOURS[0],
            markersize=2.5,
        )
        ax.set(xlabel=called, ylabel=name or names[0])
    return ax


def convergence(
    curve: Any, terms: Sequence[int | str] | None = None, ax: Axes | None = None
) -> Axes:
    """C_N of selected functions on a logarithmic axis, starting at 1 for N = K.

    Takes what `infocap.convergence` gave. `terms` are positions in the basis or labels such as ``"P2(u1)"``;
    by default functions of high, middle and vanishing capacity.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> curve = infocap.convergence(u, infocap.systems.RandomFeatures(2, 5)(u), basis)
    >>> ax = infocap.plot.convergence(curve, ["P1(u1)", "P3(u2)"])
    >>> len(ax.get_legend().get_texts())
    2
    """
    labels = curve.basis.labels
    if terms is None:
        last = curve.raw[-1, 1:]
        wanted = np.linspace(
            last.max(initial=0.0), last.min(initial=1.0), min(MOST_CURVES, len(last))
        )
        terms = list(
            dict.fromkeys(1 + int(np.argmin(np.abs(last - value))) for value in wanted)
        ) or [0]
    chosen: list[Any] = [labels.index(term) if term in labels else term for term in terms]
    wrong = [term for term in chosen if term not in range(len(labels))]
    if wrong:
        raise ParameterError(
            f"`terms` has {wrong[0]!r}; functions are 0 to {len(labels) - 1}, such as {labels[-1]!r}."
        )
    with axes(ax, aspect=0.38, width_mm=DOUBLE_MM) as ax:
        ax.axvline(curve.maximum, color="0.6", linewidth=0.8, linestyle="--")
        ax.text(curve.maximum, 0.03, f" N = K = {curve.maximum}", color="0.4")
        for number, term in enumerate(chosen):
            label = "constant" if labels[term] == "1" else labels[term]
            colour, line = COLOURS[number % len(COLOURS)], "-" if number < len(COLOURS) else "--"
            ax.plot(curve.n_samples, curve.raw[:, term], line, color=colour, label=label)
        ax.set(
            xscale="log",
            xlim=(curve.n_samples[0] * 0.75, curve.n_samples[-1] * 1.05),
            ylim=(0, 1.05),
        )
        ax.set(xlabel="number of samples $N$", ylabel="raw capacity $C_N$")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.2)
    return ax
