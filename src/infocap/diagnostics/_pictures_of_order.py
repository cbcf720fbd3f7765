"""Pictures of findings about order: which inputs the readouts of a row hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import chdtri

from .._formatting import counted
from ..typing import Floats
from ._excerpt import Excerpt
from ._lags import MAX_LAG, lagged_capacity, lagged_correlations, lagged_power, scanned_functions
from ._picture import (
    MAX_POINTS,
    Picture,
    by_role,
    channel_names,
    input_names,
    means_of_parts,
    middles_of_parts,
    series,
)

# Probability with which chance alone exceeds the dashed line at any lag.
P_VALUE_OF_LINE = 1e-3
# Agreement along the run is relative to this quantile of it, which belongs to parts in order.
QUANTILE_OF_USUAL_AGREEMENT = 0.8


def lag_scan(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the capacity of the inputs of other rows, by lag."""
    residuals = excerpt.residuals
    h = residuals.h[:, scanned_functions(excerpt)]
    if found.get("reversed"):
        h = h[::-1]
    centre = int(found.get("lag", 0))
    # Only for a shift does the picture include lag 0, whose bar is otherwise far above all others.
    is_shift = found["cause"] in ("shift", "nothing")
    if abs(centre) <= MAX_LAG:
        centre = 0
    lags = [centre + lag for lag in range(-MAX_LAG, MAX_LAG + 1)]
    if not is_shift:
        lags = [lag for lag in lags if lag > 0 or (lag < 0 and not excerpt.of_sequence)]
    capacities = np.array([lagged_capacity(residuals.whitened, h, lag) for lag in lags])
    degrees_of_freedom = residuals.whitened.shape[1] * h.shape[1]
    power_by_chance = chdtri(degrees_of_freedom, P_VALUE_OF_LINE / len(lags)) - degrees_of_freedom
    chance = power_by_chance / excerpt.n
    is_found = capacities > chance
    return Picture(
        kind="histogram",
        x_label="inputs of how many rows later",
        y_label="capacity",
        caption="What readouts hold of inputs of other rows; chance stays below the dashed line.",
        series=[
            *by_role(np.array(lags), np.maximum(capacities, 0.0), is_found),
            series("expected", [lags[0] - 0.5, lags[-1] + 0.5], [chance, chance], "chance"),
        ],
    )


def lags_of_scores(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return how strongly gain or noise of a row follow the inputs of its neighbours, by lag."""
    residuals = excerpt.residuals
    is_gain = found["shown_as"] == "gain of rows"
    scores = residuals.gain_scores if is_gain else residuals.size_score
    h = residuals.h[:, scanned_functions(excerpt)]
    lags = [lag for lag in range(-MAX_LAG, MAX_LAG + 1) if lag > 0 or not excerpt.of_sequence]
    lags = [lag for lag in lags if lag != 0]
    power = np.array([lagged_power(scores, h, lag) for lag in lags]) / excerpt.n
    degrees_of_freedom = scores.shape[1] * h.shape[1]
    chance = chdtri(degrees_of_freedom, P_VALUE_OF_LINE / len(lags)) / excerpt.n
    what = "gain" if is_gain else "noise"
    return Picture(
        kind="histogram",
        x_label="inputs of how many rows later",
        y_label="sum of squared correlations",
        caption=f"How the {what} of a row follows other inputs; chance stays below the line.",
        series=[
            *by_role(np.array(lags), power, power > chance),
            series("expected", [lags[0] - 0.5, lags[-1] + 0.5], [chance, chance], "chance"),
        ],
    )


def lags_of_inputs(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the capacity of each input alone, by lag."""
    has_input = excerpt.low.indices[1:][scanned_functions(excerpt)] > 0
    is_of_one_input = np.sum(has_input, axis=1) == 1
    h = excerpt.residuals.h[:, scanned_functions(excerpt)]
    whitened = excerpt.residuals.whitened
    lags = np.arange(-MAX_LAG, MAX_LAG + 1)
    curves = []
    for k in range(has_input.shape[1]):
        alone = has_input[:, k] & is_of_one_input
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
    """Return how much of late channels, and of the others, inputs of other rows explain, by lag."""
    h = excerpt.residuals.h[:, scanned_functions(excerpt)]
    scale = np.maximum(excerpt.residuals.channels.std(axis=0), np.finfo(np.float32).tiny)
    standardised = excerpt.residuals.channels / scale
    lags = np.arange(-MAX_LAG, MAX_LAG + 1)
    correlations = [lagged_correlations(standardised, h, int(lag)) for lag in lags]
    explained = np.sum(np.square(correlations), axis=2)  # (lags, channels)
    is_late = np.isin(channel_names(excerpt), found["channels"])
    return Picture(
        kind="curve",
        x_label="inputs of how many rows later",
        y_label="share of variance",
        caption="What low functions of the inputs explain of these channels and of the others.",
        series=[
            series("usual", lags, explained[:, ~is_late].mean(axis=1), "other channels"),
            series("found", lags, explained[:, is_late].mean(axis=1), "late channels"),
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
        series=by_role(delays, np.maximum(capacities, 0.0), is_found),
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
        caption=f"What readouts hold of each input alone; nothing of {input_names(found)}.",
        series=by_role(np.arange(1, n_inputs + 1), np.maximum(capacities, 0.0), is_found),
    )


def agreement_along_the_run(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return how well readouts agree with their own inputs, and with those at the lag found."""
    residuals = excerpt.residuals
    h = residuals.h[:, scanned_functions(excerpt)]
    lags = range(-MAX_LAG, 1 if excerpt.of_sequence else MAX_LAG + 1)
    usual = max(lags, key=lambda lag: lagged_power(residuals.projections, h, lag))
    own = usual if excerpt.of_sequence else 0
    # The readouts' linear prediction of each function. Its product with the function is large
    # where readouts belong to these inputs.
    guess = residuals.projections @ lagged_correlations(residuals.projections, h, usual)

    def agreement(lag: int) -> Floats:
        return means_of_parts(excerpt, np.sum(guess * np.roll(h, -lag, axis=0), axis=1))

    x = middles_of_parts(excerpt)
    with_own = agreement(own)
    size = max(float(np.quantile(with_own, QUANTILE_OF_USUAL_AGREEMENT)), np.finfo(np.float32).tiny)
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


def own_against_other(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the misfit of rows with their own inputs, against the least with other inputs."""
    residuals = excerpt.residuals
    is_bad = np.isin(excerpt.rows, found["rows"])
    others = np.random.default_rng(0).permutation(np.flatnonzero(~is_bad))
    rows = np.concatenate([np.flatnonzero(is_bad)[:MAX_POINTS], others[:MAX_POINTS]])
    a = residuals.projections / residuals.scale
    fitted = residuals.fitted / residuals.scale
    own = np.mean((a[rows] - fitted[rows]) ** 2, axis=1)
    squares = np.sum(a[rows] ** 2, axis=1)[:, None] + np.sum(fitted**2, axis=1)
    distances = squares - 2 * a[rows] @ fitted.T
    distances[np.arange(len(rows)), rows] = np.inf
    other = np.maximum(distances.min(axis=1), 0) / a.shape[1]
    low = float(np.min([own, other]))
    high = float(np.max([own, other]))
    ends = np.sqrt([max(low, 1e-6), high])
    return Picture(
        kind="points",
        x_label="misfit with their own inputs",
        y_label="with another row's",
        caption="Each point is a row. Below the line it fits the inputs of another row better.",
        series=[
            *by_role(np.sqrt(own), np.sqrt(other), is_bad[rows], ("other rows", "rows told")),
            series("expected", ends, ends),
        ],
        log="xy",
    )
