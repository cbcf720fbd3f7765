"""Small pictures of findings, as numbers: `infocap.plot.finding` draws them.

Each is made from the excerpt in which a finding was seen, and only for warnings that are told.
`PICTURES` says which picture shows which cause. A finding that has none there, but rows or
channels, is shown by the map of misfit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.fft
from scipy.special import chdtri

from .._formatting import counted, join_names
from ..typing import Floats, Integers
from ._exact import equal_rows
from ._excerpt import Excerpt
from ._order import MAX_LAG, lagged_capacity, lagged_correlations, lagged_power, scanned_functions

# Parts of the run, bins and points of a picture: more cannot be told apart in a small one.
N_PARTS = 48
N_BINS = 60
MAX_POINTS = 300
MAX_LINES = 256
# Rows shown around the first row of a finding, and equal rows that are joined.
N_ROWS_AROUND = 30
N_BATCHES = 6
N_STEPS_SHOWN = 5
# Probability of the line that shows what chance reaches.
CHANCE = 1e-3
# Functions whose changes along the run are compared, and the slow waves that tell them.
N_FUNCTIONS = 8
N_SLOW_WAVES = 4
# Parts of the run that agree with their own inputs are as good as the part at this quantile.
USUAL_AGREEMENT = 0.8
# Lines and columns of a map, and how many of its levels are a factor of two.
N_MAP_CHANNELS = 32
N_MAP_MOMENTS = 120
LEVELS_PER_OCTAVE = 3
# Significant digits of the numbers.
N_DIGITS = 4


@dataclass(frozen=True)
class Series:
    """Points of a picture: the usual, those found wrong, or what is expected (a law, a fit)."""

    role: str
    x: list[float]
    y: list[float]
    name: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture as numbers: a curve, points, a histogram (bars), or a map of misfit."""

    kind: str
    x_label: str
    y_label: str
    caption: str
    series: Sequence[Series] = ()
    marked: Sequence[tuple[float, float]] = ()  # stretches of x that the finding is about
    log: str = ""  # the axes that are logarithmic
    levels: Sequence[str] = ()  # of a map: a digit for each moment, a text for each channel
    channels: Sequence[str] = ()  # of a map
    extent: Sequence[float] = ()  # of a map: the first measurement, and the one after the last

    def to_dict(self) -> dict[str, Any]:
        """Return the picture as plain data, without what is empty."""
        data = {name: value for name, value in asdict(self).items() if len(value)}
        return data | {"marked": [list(stretch) for stretch in self.marked]}


def series(role: str, x: Any, y: Any, name: str = "") -> Series:
    """Return points of a picture with few digits, without those that are not finite."""
    points = np.column_stack([np.asarray(x, float), np.asarray(y, float)])
    points = points[np.isfinite(points).all(axis=1)]
    digits = [[float(f"{value:.{N_DIGITS}g}") for value in column] for column in points.T]
    return Series(role, digits[0], digits[1], name)


def picture_of(excerpt: Excerpt, found: dict[str, Any]) -> dict[str, Any] | None:
    """Return the picture of a finding as plain data; None where there is nothing to show."""
    draw = PICTURES.get(found.get("cause", ""))
    if draw is not None:
        return draw(excerpt, found).to_dict()
    if len(found.get("rows", ())) or len(found.get("channels", ())):
        return map_of_misfit(excerpt, found).to_dict()
    return None


# Inputs of other rows.


def lag_scan(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the capacity of the inputs of other rows, row by row."""
    residuals = excerpt.residuals
    h = residuals.h[:, scanned_functions(excerpt)]
    if found.get("reversed"):
        h = h[::-1]
    centre = int(found.get("lag", 0))
    # A shift is seen beside the rows' own inputs, which hold far more than any others otherwise.
    is_shift = found["cause"] in ("shift", "nothing")
    if not is_shift or abs(centre) <= MAX_LAG:
        centre = 0
    lags = [centre + lag for lag in range(-MAX_LAG, MAX_LAG + 1)]
    if not is_shift:
        lags = [lag for lag in lags if lag > 0 or (lag < 0 and not excerpt.of_sequence)]
    capacities = np.array([lagged_capacity(residuals.whitened, h, lag) for lag in lags])
    degrees_of_freedom = residuals.whitened.shape[1] * h.shape[1]
    chance = chdtri(degrees_of_freedom, CHANCE / len(lags)) - degrees_of_freedom
    chance /= excerpt.n
    is_found = capacities > chance
    return Picture(
        kind="histogram",
        x_label="inputs of how many rows later",
        y_label="capacity",
        caption="What readouts hold of inputs of other rows; chance stays below the dashed line.",
        series=[
            *_by_role(np.array(lags), np.maximum(capacities, 0.0), is_found),
            series("expected", [lags[0] - 0.5, lags[-1] + 0.5], [chance, chance], "chance"),
        ],
    )


def lags_of_inputs(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the capacity of each input in the readouts of other rows."""
    indices = excerpt.low.indices[1:][scanned_functions(excerpt)]
    h = excerpt.residuals.h[:, scanned_functions(excerpt)]
    lags = np.arange(-MAX_LAG, MAX_LAG + 1)
    curves = []
    for k in range(indices.shape[1]):
        alone = (indices[:, k] > 0) & (np.sum(indices > 0, axis=1) == 1)
        whitened = excerpt.residuals.whitened
        capacities = [lagged_capacity(whitened, h[:, alone], int(lag)) for lag in lags]
        role = "found" if k in found.get("inputs", ()) else "usual"
        curves.append(series(role, lags, capacities, f"u{k + 1}"))
    return Picture(
        kind="curve",
        x_label="inputs of how many rows later",
        y_label="capacity",
        caption="What readouts hold of each input: all should be those of their own row, 0.",
        series=curves,
    )


def lags_of_channels(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return how well channels that are late, and the others, hold the inputs of other rows."""
    h = excerpt.residuals.h[:, scanned_functions(excerpt)]
    scale = np.maximum(excerpt.residuals.channels.std(axis=0), np.finfo(np.float32).tiny)
    standardised = excerpt.residuals.channels / scale
    lags = np.arange(-MAX_LAG, MAX_LAG + 1)
    squares = [np.sum(lagged_correlations(standardised, h, int(lag)) ** 2, axis=1) for lag in lags]
    is_late = np.isin(_channel_names(excerpt), found["channels"])
    means = np.array(squares)
    return Picture(
        kind="curve",
        x_label="inputs of how many rows later",
        y_label="share of variance",
        caption="What low functions of the inputs explain of these channels and of the others.",
        series=[
            series("usual", lags, means[:, ~is_late].mean(axis=1), "other channels"),
            series("found", lags, means[:, is_late].mean(axis=1), "late channels"),
        ],
    )


def delays_seen(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the capacity of the inputs at each delay, for a device with memory."""
    h = excerpt.residuals.h[:, scanned_functions(excerpt)]
    delays = np.arange(0, 3 * MAX_LAG + 1)
    whitened = excerpt.residuals.whitened
    capacities = np.array([lagged_capacity(whitened, h, -int(delay)) for delay in delays])
    is_found = np.isin(delays, found.get("delays", [0]))
    return Picture(
        kind="histogram",
        x_label="delay",
        y_label="capacity",
        caption="What readouts hold of earlier inputs; a device with memory forgets slowly.",
        series=_by_role(delays, np.maximum(capacities, 0.0), is_found),
    )


def agreement_along_the_run(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return how well readouts agree with their own inputs, and with others, along the run."""
    residuals = excerpt.residuals
    h = residuals.h[:, scanned_functions(excerpt)]
    lags = range(-MAX_LAG, 1 if excerpt.of_sequence else MAX_LAG + 1)
    usual = max(lags, key=lambda lag: lagged_power(residuals.a, h, lag))
    own = usual if excerpt.of_sequence else 0
    # What the readouts guess of each function, and how this agrees with the function itself.
    guess = residuals.a @ lagged_correlations(residuals.a, h, usual)

    def agreement(lag: int) -> Floats:
        return _means_of_parts(excerpt, np.sum(guess * np.roll(h, -lag, axis=0), axis=1))

    x = _middles_of_parts(excerpt)
    with_own = agreement(own)
    size = max(float(np.quantile(with_own, USUAL_AGREEMENT)), np.finfo(np.float32).tiny)
    curves = [series("usual", x, with_own / size, "their own inputs")]
    if "lag" in found:
        lag = int(found["lag"])
        name = f"those {counted(abs(lag), 'row')} {'later' if lag > 0 else 'earlier'}"
        curves.append(series("found", x, agreement(own + lag) / size, name))
    return Picture(
        kind="curve",
        x_label="measurement",
        y_label="agreement, 1 is usual",
        caption="How well readouts agree with inputs, in parts of the run.",
        series=curves,
        marked=[(start, stop) for start, stop, *_ in found.get("shifts", ())],
    )


# Time.


def response_along_the_run(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the gain of a channel, or what it holds of a function, where it changes most."""
    residuals = excerpt.residuals
    left = _left_of_channels(excerpt)
    fitted_channels = residuals.channels - left
    factors = [residuals.h[:, [k]] for k in range(N_FUNCTIONS)]
    power = np.array([_slow_power(excerpt, left * factor) for factor in factors])
    power_of_gains = _slow_power(excerpt, left * fitted_channels)
    if power_of_gains.max() > power.max():
        channel = int(np.argmax(power_of_gains))
        fitted = fitted_channels[:, channel]
        changes = _means_of_parts(excerpt, left[:, channel] * fitted)
        values = 1 + changes / _means_of_parts(excerpt, fitted**2)
        what = "gain"
    else:
        function, channel = map(int, np.unravel_index(np.argmax(power), power.shape))
        factor = factors[function][:, 0]
        deviation = max(float(residuals.channels[:, channel].std()), np.finfo(np.float32).tiny)
        changes = _means_of_parts(excerpt, left[:, channel] * factor)
        values = (np.mean(residuals.channels[:, channel] * factor) + changes) / deviation
        what = f"coefficient of {excerpt.low.label(function + 1)}"
    return Picture(
        kind="curve",
        x_label="measurement",
        y_label=what,
        caption=f"The {what} in {_name_of(excerpt, channel)}, in parts of the run.",
        series=_beside_steady(excerpt, values),
        marked=_stretches(found),
    )


def drift_along_the_run(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return what the fit leaves of the channel that drifts most, along the run."""
    left = excerpt.residuals.channel_residuals()
    channel = int(np.argmax(_slow_power(excerpt, left)))
    return Picture(
        kind="curve",
        x_label="measurement",
        y_label="readout less its fit (sd)",
        caption=f"What the inputs do not explain of {_name_of(excerpt, channel)} along the run.",
        series=_beside_steady(excerpt, _means_of_parts(excerpt, left[:, channel])),
        marked=_stretches(found),
    )


def misfit_along_the_run(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return how badly rows fit their inputs along the run."""
    sizes = np.exp(0.5 * _means_of_parts(excerpt, excerpt.residuals.log_misfit))
    return Picture(
        kind="curve",
        x_label="measurement",
        y_label="1 is usual",
        caption="How far readouts are from the fit by their own inputs, in parts of the run.",
        series=[series("usual", _middles_of_parts(excerpt), sizes / np.median(sizes))],
        marked=_stretches(found),
    )


def spectrum(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the power of what the fit leaves, of gains, or of by frequency."""
    residuals = excerpt.residuals
    candidates = {
        "readouts": residuals.e,
        "gains": residuals.gain[:, None],
        "misfit": residuals.log_misfit[:, None],
        "responses": np.concatenate(
            [residuals.e * residuals.h[:, [k]] for k in range(N_FUNCTIONS)], axis=1
        ),
    }
    frequency = 1.0 / float(found["period"])
    powers = {name: _relative_power(values) for name, values in candidates.items()}
    place = round(frequency * excerpt.n)
    what = max(powers, key=lambda name: powers[name][max(place - 1, 1) : place + 2].max())
    lines, top = _highest_of_bins(powers[what])
    is_found = np.abs(lines - frequency * excerpt.n) <= excerpt.n / (2 * MAX_LINES)
    found_top = np.where(is_found, top, np.nan)
    return Picture(
        kind="curve",
        x_label="frequency (cycles per measurement)",
        y_label="power, 1 is usual",
        caption=f"Power of the {what} without what their inputs explain.",
        series=[
            series("usual", lines / excerpt.n, top),
            series("found", lines / excerpt.n, found_top, f"period {found['period']:.4g}"),
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
    return Picture(
        kind="points",
        x_label="measurement",
        y_label="sum so far (sd)",
        caption=f"Sum of {_name_of(excerpt, 0)} from the first row on: zero after every batch.",
        series=[
            series("expected", x, sums),
            series("found", x[ends], sums[ends], "ends of batches"),
        ],
    )


# Rows.


def own_against_other(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the misfit of rows with their own inputs, against that with the best others."""
    residuals = excerpt.residuals
    is_bad = np.isin(excerpt.rows, found["rows"])
    others = np.random.default_rng(0).permutation(np.flatnonzero(~is_bad))
    rows = np.concatenate([np.flatnonzero(is_bad)[:MAX_POINTS], others[:MAX_POINTS]])
    a = residuals.a / residuals.scale
    fitted = residuals.fitted / residuals.scale
    own = np.mean((a[rows] - fitted[rows]) ** 2, axis=1)
    squares = np.sum(a[rows] ** 2, axis=1)[:, None] + np.sum(fitted**2, axis=1)
    distances = squares - 2 * a[rows] @ fitted.T
    distances[np.arange(len(rows)), rows] = np.inf
    other = np.maximum(distances.min(axis=1), 0) / a.shape[1]
    low, high = float(np.min([own, other])), float(np.max([own, other]))
    ends = np.sqrt([max(low, 1e-6), high])
    return Picture(
        kind="points",
        x_label="misfit with their own inputs",
        y_label="with another row's",
        caption="Each point is a row. Below the line it fits the inputs of another row better.",
        series=[
            *_by_role(np.sqrt(own), np.sqrt(other), is_bad[rows], ("other rows", "rows told")),
            series("expected", ends, ends),
        ],
        log="xy",
    )


def equal_pairs(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return which row equals which."""
    if "first_rows" in found:
        first, second = np.array(found["first_rows"]), np.array(found["rows"])
    else:
        first, second = (excerpt.rows[rows] for rows in equal_rows(excerpt.x))
    chosen = _some(len(first), MAX_POINTS)
    last = float(max(excerpt.rows.max(), second.max(initial=0)))
    return Picture(
        kind="points",
        x_label="row",
        y_label="row that it equals",
        caption="Each point is a row and the row that it equals; on the line both are neighbours.",
        series=[
            series("found", second[chosen], first[chosen]),
            series("expected", [0.0, last], [0.0, last]),
        ],
    )


def readouts_around(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return a channel around the first row of a finding."""
    is_found = np.isin(excerpt.rows, found.get("rows", ()))
    channel = _channel(excerpt, found)
    middle = int(np.argmax(is_found)) if is_found.any() else _longest_run(excerpt.x[:, channel])
    start = max(0, min(middle - N_ROWS_AROUND // 2, excerpt.n - N_ROWS_AROUND))
    rows = np.arange(start, min(start + N_ROWS_AROUND, excerpt.n))
    values = excerpt.x[rows, channel]
    repeats = np.concatenate([[False], values[1:] == values[:-1]])
    is_told = is_found[rows] if is_found.any() else repeats
    x = excerpt.positions[rows]
    return Picture(
        kind="points",
        x_label="measurement",
        y_label=_name_of(excerpt, channel),
        caption="Readouts around the first row that the finding is about; such rows are red.",
        series=[series("expected", x, values), *_by_role(x, values, is_told)],
    )


def course_within_steps(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return an input that is held, and what a channel does in the meantime."""
    n_rows = min(N_STEPS_SHOWN * found["rows_per_step"], MAX_POINTS, excerpt.n)
    rows = (excerpt.n - n_rows) // 2 + np.arange(n_rows)  # after any transient at the beginning
    x = excerpt.positions[rows]
    channel = int(np.argmax(np.std(excerpt.x[rows], axis=0)))
    return Picture(
        kind="curve",
        x_label="measurement",
        y_label="standard deviations",
        caption="While the input is held, the channel goes on; each row is another virtual node.",
        series=[
            series("expected", x, _standardised(excerpt.u[:, 0])[rows], "input"),
            series(
                "found", x, _standardised(excerpt.x[:, channel])[rows], _name_of(excerpt, channel)
            ),
        ],
    )


def _standardised(values: Floats) -> Floats:
    return (values - values.mean()) / (values.std() or 1.0)


# Values.


def histogram_of_channel(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the distribution of a channel's values."""
    channel = _channel(excerpt, found)
    values = excerpt.x[:, channel]
    return _histogram(
        values,
        np.ones(len(values), dtype=bool),
        x_label=_name_of(excerpt, channel),
        caption="How often the channel takes which value.",
        n_bins=4 * N_BINS,
    )


def codes_in_histogram(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the distribution of a channel's values, with the one that comes too often apart."""
    channel = _channel(excerpt, found)
    values = excerpt.x[:, channel]
    told, counts = np.unique(values[np.isin(excerpt.rows, found["rows"])], return_counts=True)
    is_code = np.zeros(len(values), dtype=bool)
    if len(told):
        farthest = np.abs(told - np.median(values))
        code = told[np.lexsort([farthest, counts])[-1]]
        is_code = values == code
    return _histogram(
        values,
        is_code,
        x_label=_name_of(excerpt, channel),
        caption="How often the channel takes which value; red is the code.",
        log="y",
    )


def piles_in_histogram(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the distribution of a channel's values, with those at the ends of its range apart."""
    channel = _channel(excerpt, found)
    values = excerpt.x[:, channel]
    place = (values - values.min()) / max(float(np.ptp(values)), np.finfo(float).tiny)
    return _histogram(
        values,
        (place < 1 / N_BINS) | (place > 1 - 1 / N_BINS),
        x_label=_name_of(excerpt, channel),
        caption="How often the channel takes which value; red are the ends of its range.",
    )


def histogram_of_logarithm(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the distribution of the size of a channel's values, by decades."""
    channel = _channel(excerpt, found)
    sizes = np.abs(excerpt.x[:, channel])
    logarithm = np.log10(sizes[sizes > 0])
    return _histogram(
        logarithm,
        np.ones(len(logarithm), dtype=bool),
        x_label=f"log10 of the size of {_name_of(excerpt, channel)}",
        caption="How often the channel takes values of which size: two humps are two units.",
    )


def readout_against_fit(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return a channel against its fit by the inputs."""
    channel = _channel(excerpt, found)
    residuals = excerpt.residuals
    values = residuals.channels[:, channel]
    fitted = values - _left_of_channels(excerpt)[:, channel]
    is_found = np.isin(excerpt.rows, found.get("rows", ()))
    told = np.flatnonzero(is_found)
    others = np.flatnonzero(~is_found)
    n_points = MAX_POINTS // 2
    rows = np.concatenate([told[_some(len(told), n_points)], others[_some(len(others), n_points)]])
    ends = np.array([fitted.min(), fitted.max()])
    return Picture(
        kind="points",
        x_label="fit by the inputs",
        y_label=_name_of(excerpt, channel),
        caption="Each point is a row, in widths of the channel's usual range; extremes are cut.",
        series=[
            *_by_role(fitted[rows], values[rows], is_found[rows]),
            series("expected", ends, ends),
        ],
    )


def channel_along_the_run(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return a channel along the run."""
    channel = _channel(excerpt, found)
    rows = _some(excerpt.n)
    return Picture(
        kind="points",
        x_label="measurement",
        y_label=_name_of(excerpt, channel),
        caption="The channel along the run.",
        series=[series("found", excerpt.positions[rows], excerpt.x[rows, channel])],
    )


def correlations_of_channels(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the sizes of the correlations between channels."""
    correlation = np.abs(np.corrcoef(excerpt.x, rowvar=False))
    sizes = correlation[np.triu_indices(len(correlation), 1)]
    logarithm = np.log10(np.maximum(sizes, 1e-17))
    chance = -0.5 * np.log10(excerpt.n)
    picture = _histogram(
        logarithm,
        np.ones(len(logarithm), dtype=bool),
        x_label="log10 of the correlation of two channels",
        caption="Correlations of all pairs of channels; the dashed line is chance.",
        n_bins=20,
    )
    top = max(max(one.y) for one in picture.series)
    line = series("expected", [chance, chance], [0.0, top], "chance")
    return replace(picture, y_label="pairs", series=[*picture.series, line])


# Inputs.


def histogram_of_input(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the distribution of an input and the law that was declared."""
    k = int(found["inputs"][0])
    family = excerpt.low.families[k]
    values = excerpt.u[:, k]
    ends = family.quantile(np.array([1 / excerpt.n, 1 - 1 / excerpt.n]))
    edges = np.linspace(min(values.min(), ends[0]), max(values.max(), ends[1]), N_BINS + 1)
    counts, _ = np.histogram(values, edges)
    shares = np.linspace(1e-6, 1 - 1e-6, 4001)
    expected = np.diff(np.interp(edges, family.quantile(shares), shares, left=0, right=1))
    middles = (edges[1:] + edges[:-1]) / 2
    return Picture(
        kind="histogram",
        x_label=f"u{k + 1}",
        y_label="rows",
        caption="How often the input takes which value, and how often it should (dashed).",
        series=[
            series("found", middles, counts, "as recorded"),
            series("expected", middles, expected * excerpt.n, f"declared, {family.distribution}"),
        ],
    )


def input_against_input(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return one input against another."""
    first, second = found["inputs"][:2]
    rows = _some(excerpt.n)
    return Picture(
        kind="points",
        x_label=f"u{first + 1}",
        y_label=f"u{second + 1}",
        caption="Each point is a row; independent inputs fill the plane evenly.",
        series=[series("found", excerpt.u[rows, first], excerpt.u[rows, second])],
    )


def capacity_of_inputs(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the capacity of the functions of each input alone."""
    has_input = excerpt.low.indices[1:] > 0
    alone = has_input & (has_input.sum(axis=1) == 1)[:, None]
    n_inputs = has_input.shape[1]
    capacities = [
        lagged_capacity(excerpt.residuals.whitened, excerpt.residuals.h[:, alone[:, k]], 0)
        for k in range(n_inputs)
    ]
    is_found = np.isin(np.arange(n_inputs), found["inputs"])
    return Picture(
        kind="histogram",
        x_label="input",
        y_label="capacity",
        caption=f"What readouts hold of each input alone; nothing of {_input_names(found)}.",
        series=_by_role(np.arange(1, n_inputs + 1), np.maximum(capacities, 0.0), is_found),
    )


def map_of_misfit(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return where readouts do not fit their inputs, by channel and moment.

    A level is a digit: three more are a factor of two of the usual misfit.
    """
    misfits = excerpt.residuals.channel_residuals()
    names = np.array(_channel_names(excerpt))
    is_named = np.isin(names, found.get("channels", ()))
    named, others = np.flatnonzero(is_named), np.flatnonzero(~is_named)
    step = max(-(-len(others) // N_MAP_CHANNELS), 1)
    shown = np.sort(np.concatenate([named, others[::step]])[:N_MAP_CHANNELS])

    moments = np.linspace(0, excerpt.n, min(N_MAP_MOMENTS, excerpt.n) + 1).astype(int)
    lengths = np.diff(moments)[:, None]
    sizes = np.sqrt(np.add.reduceat(misfits[:, shown] ** 2, moments[:-1], axis=0) / lengths)
    is_told = np.isin(excerpt.rows, found.get("rows", ()))
    # Where rows were found, each channel is compared with itself at other moments.
    usual = np.median(sizes, axis=0) if is_told.any() else np.median(sizes)
    ratio = np.maximum(sizes, 1e-30) / np.maximum(usual, 1e-30)
    levels = np.clip(LEVELS_PER_OCTAVE * np.log2(ratio), 0, 9).astype(int)
    marked = np.flatnonzero(np.add.reduceat(is_told, moments[:-1]))
    starts = excerpt.positions[moments[:-1]]
    stops = excerpt.positions[moments[1:] - 1] + 1
    return Picture(
        kind="map",
        x_label="measurement",
        y_label="channel",
        caption="How far readouts are from what their inputs predict, the usual distance being 1.",
        marked=[(int(starts[k]), int(stops[k])) for k in marked],
        extent=[int(starts[0]), int(stops[-1])],
        levels=["".join(map(str, line)) for line in levels.T.tolist()],
        channels=names[shown].tolist(),
    )


PICTURES: dict[str, Callable[[Excerpt, dict[str, Any]], Picture]] = {
    "shift": lag_scan,
    "memory": lag_scan,
    "later inputs": lag_scan,
    "neighbours": lag_scan,
    "nothing": lag_scan,
    "late input": lags_of_inputs,
    "late channels": lags_of_channels,
    "shuffled": delays_seen,
    "interleaved": delays_seen,
    "slip": agreement_along_the_run,
    "gap": agreement_along_the_run,
    "response": response_along_the_run,
    "drift": drift_along_the_run,
    "noise": misfit_along_the_run,
    "period": spectrum,
    "batches": batch_sums,
    "swapped rows": own_against_other,
    "foreign rows": own_against_other,
    "held inputs": course_within_steps,
    "stacked": equal_pairs,
    "repeats": equal_pairs,
    "copied rows": equal_pairs,
    "interpolated": readouts_around,
    "stale": readouts_around,
    "filled cells": readouts_around,
    "frozen": readouts_around,
    "clock": channel_along_the_run,
    "codes": codes_in_histogram,
    "clipped": piles_in_histogram,
    "rounded readouts": histogram_of_channel,
    "missing codes": histogram_of_channel,
    "units": histogram_of_logarithm,
    "gain steps": readout_against_fit,
    "wrapped": readout_against_fit,
    "washout": drift_along_the_run,
    "outlying": readout_against_fit,
    "glitches": map_of_misfit,
    "uncorrelated": correlations_of_channels,
    "rounded inputs": histogram_of_input,
    "domain": histogram_of_input,
    "shape of inputs": histogram_of_input,
    "correlated inputs": input_against_input,
    "no effect": capacity_of_inputs,
}


# What pictures have in common.


def _by_role(
    x: Floats, y: Floats, is_found: Floats, names: tuple[str, str] = ("", "")
) -> list[Series]:
    """Return points as two series: the usual ones, and those that were found."""
    parts = [
        series("usual", x[~is_found], y[~is_found], names[0]),
        series("found", x[is_found], y[is_found], names[1]),
    ]
    return [part for part in parts if part.x]


def _left_of_channels(excerpt: Excerpt) -> Floats:
    """Return what the fit leaves of each channel, in widths of its range, (rows, channels)."""
    residuals = excerpt.residuals
    return residuals.channel_residuals() * residuals.fit.channel_scale


def _some(n: int, n_chosen: int = MAX_POINTS) -> Integers:
    """Return places spread evenly over so many."""
    return np.unique(np.linspace(0, n - 1, min(n, n_chosen)).round().astype(int))


def _middles_of_parts(excerpt: Excerpt) -> Floats:
    edges = _edges_of_parts(excerpt)
    return (excerpt.positions[edges[:-1]] + excerpt.positions[edges[1:] - 1]) / 2


def _edges_of_parts(excerpt: Excerpt) -> Integers:
    return np.linspace(0, excerpt.n, min(N_PARTS, excerpt.n) + 1).astype(int)


def _means_of_parts(excerpt: Excerpt, values: Floats) -> Floats:
    """Return the means of values, (rows, ...), over consecutive parts."""
    edges = _edges_of_parts(excerpt)
    lengths = np.diff(edges).reshape(-1, *[1] * (values.ndim - 1))
    return np.add.reduceat(values, edges[:-1], axis=0) / lengths


def _slow_power(excerpt: Excerpt, values: Floats) -> Floats:
    """Return the power of each column at few cycles per run, relative to its power in parts."""
    means = _means_of_parts(excerpt, values)
    means = means - means.mean(axis=0)
    waves = scipy.fft.rfft(means, axis=0)[1 : N_SLOW_WAVES + 1]
    power = np.sum(np.abs(waves) ** 2, axis=0)
    return power / np.maximum(values.var(axis=0), np.finfo(np.float32).tiny)


def _beside_steady(excerpt: Excerpt, values: Floats) -> list[Series]:
    """Return values of parts of the run, and the mean that they would have in a steady run."""
    x = _middles_of_parts(excerpt)
    ends = [excerpt.positions[0], excerpt.positions[-1]]
    mean = float(values.mean())
    return [series("usual", x, values), series("expected", ends, [mean, mean], "steady")]


def _stretches(found: dict[str, Any]) -> list[tuple[float, float]]:
    return [(start, stop) for start, stop in found.get("stretches", ())]


def _relative_power(values: Floats) -> Floats:
    """Return the power of all columns at each frequency, 1 at the usual one."""
    transformed = scipy.fft.rfft(values - values.mean(axis=0), axis=0)
    power = np.sum(np.abs(transformed) ** 2, axis=1)
    power[0] = 0.0
    return power / max(float(np.median(power[1:])), np.finfo(float).tiny)


def _highest_of_bins(power: Floats) -> tuple[Floats, Floats]:
    """Return the highest line in each of few bins of frequency, and its frequency."""
    bins = np.array_split(np.arange(1, len(power)), min(MAX_LINES, len(power) - 1))
    places = np.array([one[np.argmax(power[one])] for one in bins])
    return places, power[places]


def _histogram(
    values: Floats,
    is_found: Floats,
    x_label: str,
    caption: str,
    n_bins: int = N_BINS,
    log: str = "",
) -> Picture:
    """Return how often values come, those that were found apart."""
    edges = np.linspace(values.min(), values.max(), n_bins + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    parts = []
    for role, chosen in (("usual", ~is_found), ("found", is_found)):
        counts, _ = np.histogram(values[chosen], edges)
        parts.append(series(role, middles, counts))
    return Picture(
        kind="histogram",
        x_label=x_label,
        y_label="rows",
        caption=caption,
        series=[part for part in parts if any(part.y)],
        log=log,
    )


def _channel_names(excerpt: Excerpt) -> list[str]:
    return excerpt.names(range(excerpt.x.shape[1]))


def _name_of(excerpt: Excerpt, channel: int) -> str:
    return excerpt.names([channel])[0]


def _input_names(found: dict[str, Any]) -> str:
    return join_names([f"u{k + 1}" for k in found["inputs"]])


def _channel(excerpt: Excerpt, found: dict[str, Any]) -> int:
    """Return the channel that shows a finding: the first named, or where rows lie farthest."""
    names = _channel_names(excerpt)
    rows = np.isin(excerpt.rows, found.get("rows", ()))
    candidates: Iterable[int] = range(len(names))
    if found.get("channels"):
        candidates = [names.index(name) for name in found["channels"] if name in names] or [0]
    if not rows.any():
        return next(iter(candidates))
    left = np.abs(excerpt.residuals.channel_residuals(np.flatnonzero(rows))).mean(axis=0)
    return max(candidates, key=lambda k: float(left[k]))


def _longest_run(column: Floats) -> int:
    """Return where the longest run of equal values begins."""
    edges = np.flatnonzero(np.concatenate([[True], np.diff(column) != 0, [True]]))
    return int(edges[np.argmax(np.diff(edges))])
