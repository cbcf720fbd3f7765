"""Pictures of findings about time: what changes along the run, and with which period."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft

from ..typing import Floats
from ._excerpt import Excerpt
from ._picture import (
    MAX_POINTS,
    Picture,
    Series,
    by_role,
    channel_to_show,
    evenly_spaced,
    means_of_parts,
    middles_of_parts,
    name_of_channel,
    residuals_in_widths,
    series,
)

# Functions of the inputs of whose coefficients the one that changes most is shown.
N_FUNCTIONS = 8
# Frequencies, in cycles per run, up to which a change counts as slow.
N_SLOW_WAVES = 4
# Frequencies that a spectrum shows: of each bin the one with the largest power.
MAX_FREQUENCIES = 256
# Batches that are shown.
N_BATCHES = 6
# Steps of a held input that are shown.
N_STEPS_SHOWN = 5
# Rows that are shown around the first row of a finding.
N_ROWS_AROUND = 30


def response_along_the_run(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the gain, or the coefficient of a function, that changes most along the run."""
    channels = excerpt.residuals.channels
    residuals = residuals_in_widths(excerpt)
    fitted_channels = channels - residuals
    h = excerpt.residuals.h[:, :N_FUNCTIONS]
    functions = [h[:, [k]] for k in range(h.shape[1])]
    power = np.array([_slow_power(excerpt, residuals * function) for function in functions])
    power_of_gains = _slow_power(excerpt, residuals * fitted_channels)
    if power_of_gains.max() > power.max():
        channel = int(np.argmax(power_of_gains))
        fitted = fitted_channels[:, channel]
        changes = means_of_parts(excerpt, residuals[:, channel] * fitted)
        values = 1 + changes / means_of_parts(excerpt, fitted**2)
        what = "gain"
    else:
        k, channel = map(int, np.unravel_index(np.argmax(power), power.shape))
        function = functions[k][:, 0]
        deviation = max(float(channels[:, channel].std()), np.finfo(np.float32).tiny)
        mean = np.mean(channels[:, channel] * function)
        changes = means_of_parts(excerpt, residuals[:, channel] * function)
        values = (mean + changes) / deviation
        what = f"coefficient of {excerpt.low.label(k + 1)}"
    return Picture(
        kind="curve",
        x_label="measurement",
        y_label=what,
        caption=f"The {what} in {name_of_channel(excerpt, channel)}, in parts of the run.",
        series=_beside_steady(excerpt, values),
        marked=_stretches(found),
    )


def drift_along_the_run(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the residuals of the channel that drifts most, along the run."""
    residuals = excerpt.residuals.channel_residuals()
    channel = int(np.argmax(_slow_power(excerpt, residuals)))
    name = name_of_channel(excerpt, channel)
    return Picture(
        kind="curve",
        x_label="measurement",
        y_label="readout less its fit (sd)",
        caption=f"What the inputs do not explain of {name} along the run.",
        series=_beside_steady(excerpt, means_of_parts(excerpt, residuals[:, channel])),
        marked=_stretches(found),
    )


def misfit_along_the_run(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the size of the residuals along the run, relative to the usual one."""
    sizes = np.exp(0.5 * means_of_parts(excerpt, excerpt.residuals.log_misfit))
    return Picture(
        kind="curve",
        x_label="measurement",
        y_label="1 is usual",
        caption="How far readouts are from the fit by their own inputs, in parts of the run.",
        series=[series("usual", middles_of_parts(excerpt), sizes / np.median(sizes))],
        marked=_stretches(found),
    )


def channel_along_the_run(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return a channel along the run."""
    channel = channel_to_show(excerpt, found)
    rows = evenly_spaced(excerpt.n)
    return Picture(
        kind="points",
        x_label="measurement",
        y_label=name_of_channel(excerpt, channel),
        caption="The channel along the run.",
        series=[series("found", excerpt.positions[rows], excerpt.x[rows, channel])],
    )


def readouts_around(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return a channel around the first row of a finding, or around its longest run of equals."""
    is_found = np.isin(excerpt.rows, found.get("rows", ()))
    channel = channel_to_show(excerpt, found)
    middle = int(np.argmax(is_found)) if is_found.any() else _longest_run(excerpt.x[:, channel])
    start = max(0, min(middle - N_ROWS_AROUND // 2, excerpt.n - N_ROWS_AROUND))
    rows = np.arange(start, min(start + N_ROWS_AROUND, excerpt.n))
    values = excerpt.x[rows, channel]
    repeats = np.concatenate([[False], values[1:] == values[:-1]])
    is_marked = is_found[rows] if is_found.any() else repeats
    x = excerpt.positions[rows]
    return Picture(
        kind="points",
        x_label="measurement",
        y_label=name_of_channel(excerpt, channel),
        caption="Readouts around the first row that the finding is about; such rows are red.",
        series=[series("expected", x, values), *by_role(x, values, is_marked)],
    )


def course_within_steps(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return an input that is held, and what a channel does in the meantime."""
    n_rows = min(N_STEPS_SHOWN * found["rows_per_step"], MAX_POINTS, excerpt.n)
    rows = (excerpt.n - n_rows) // 2 + np.arange(n_rows)  # after any transient at the beginning
    x = excerpt.positions[rows]
    channel = int(np.argmax(np.std(excerpt.x[rows], axis=0)))
    name = name_of_channel(excerpt, channel)
    return Picture(
        kind="curve",
        x_label="measurement",
        y_label="standard deviations",
        caption="While the input is held, the channel goes on; each row is another virtual node.",
        series=[
            series("expected", x, _standardised(excerpt.u[:, 0])[rows], "input"),
            series("found", x, _standardised(excerpt.x[:, channel])[rows], name),
        ],
    )


def _standardised(values: Floats) -> Floats:
    """Return values of mean 0 and standard deviation 1."""
    return (values - values.mean()) / (values.std() or 1.0)


def _slow_power(excerpt: Excerpt, values: Floats) -> Floats:
    """Return the power of each column at slow frequencies, relative to its variance."""
    means = means_of_parts(excerpt, values)
    means = means - means.mean(axis=0)
    waves = scipy.fft.rfft(means, axis=0)[1 : N_SLOW_WAVES + 1]
    power = np.sum(np.abs(waves) ** 2, axis=0)
    return power / np.maximum(values.var(axis=0), np.finfo(np.float32).tiny)


def _beside_steady(excerpt: Excerpt, values: Floats) -> list[Series]:
    """Return values of parts of the run, and the constant that a steady run would give."""
    x = middles_of_parts(excerpt)
    ends = [excerpt.positions[0], excerpt.positions[-1]]
    mean = float(values.mean())
    return [series("usual", x, values), series("expected", ends, [mean, mean], "steady")]


def _stretches(found: dict[str, Any]) -> list[tuple[float, float]]:
    """Return start and stop of the parts of the run that a finding is about."""
    return [(start, stop) for start, stop in found.get("stretches", ())]


def _longest_run(column: Floats) -> int:
    """Return where the longest run of equal values begins."""
    edges = np.flatnonzero(np.concatenate([[True], np.diff(column) != 0, [True]]))
    return int(edges[np.argmax(np.diff(edges))])


# Periods.


def spectrum(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the spectrum of the residuals, of gains, of misfit or of responses.

    Which of them it is, is decided by the power at the period that was found.
    """
    residuals = excerpt.residuals
    h = residuals.h[:, :N_FUNCTIONS]
    candidates = {
        "readouts": residuals.e,
        "gains": residuals.gain[:, None],
        "misfit": residuals.log_misfit[:, None],
        "responses": np.concatenate([residuals.e * h[:, [k]] for k in range(h.shape[1])], axis=1),
    }
    frequency = 1.0 / float(found["period"])
    powers = {name: _relative_power(values) for name, values in candidates.items()}
    place = round(frequency * excerpt.n)
    what = max(powers, key=lambda name: powers[name][max(place - 1, 1) : place + 2].max())
    cycles, largest = _largest_of_bins(powers[what])
    is_found = np.abs(cycles - frequency * excerpt.n) <= excerpt.n / (2 * MAX_FREQUENCIES)
    largest_found = np.where(is_found, largest, np.nan)
    return Picture(
        kind="curve",
        x_label="frequency (cycles per measurement)",
        y_label="power, 1 is usual",
        caption=f"Power of the {what} without what their inputs explain.",
        series=[
            series("usual", cycles / excerpt.n, largest),
            series("found", cycles / excerpt.n, largest_found, f"period {found['period']:.4g}"),
        ],
        log="y",
    )


def batch_sums(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return sums of a channel from the first row on, which return to zero after every batch."""
    length = int(found["period"])
    column = excerpt.x[:, 0] - excerpt.x[:, 0].mean()
    sums = np.cumsum(column)[: N_BATCHES * length] / max(float(column.std()), 1e-300)
    x = excerpt.first + np.arange(1, len(sums) + 1)
    ends = np.arange(length - 1, len(sums), length)
    name = name_of_channel(excerpt, 0)
    return Picture(
        kind="points",
        x_label="measurement",
        y_label="sum so far (sd)",
        caption=f"Sum of {name} from the first row on: zero after every batch.",
        series=[
            series("expected", x, sums),
            series("found", x[ends], sums[ends], "ends of batches"),
        ],
    )


def _relative_power(values: Floats) -> Floats:
    """Return the power of all columns at each frequency, relative to the median frequency's."""
    transformed = scipy.fft.rfft(values - values.mean(axis=0), axis=0)
    power = np.sum(np.abs(transformed) ** 2, axis=1)
    power[0] = 0.0
    return power / max(float(np.median(power[1:])), np.finfo(float).tiny)


def _largest_of_bins(power: Floats) -> tuple[Floats, Floats]:
    """Return the largest power in each bin of frequencies, and before it the frequency it is at."""
    bins = np.array_split(np.arange(1, len(power)), min(MAX_FREQUENCIES, len(power) - 1))
    frequencies = np.array([members[np.argmax(power[members])] for members in bins])
    return frequencies, power[frequencies]
