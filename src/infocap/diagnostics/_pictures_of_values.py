"""Pictures of findings about values: histograms, maps, and one quantity against another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._exact import equal_rows
from ._excerpt import Excerpt
from ._picture import (
    MAX_POINTS,
    N_BINS,
    Picture,
    by_role,
    channel_names,
    channel_to_show,
    evenly_spaced,
    histogram,
    name_of_channel,
    residuals_in_widths,
    series,
)

# The most channels (lines) and parts of the run (columns) of a map.
N_MAP_CHANNELS = 32
N_MAP_PARTS = 120
# Levels of a map, 0 to 9, that make a factor of two.
LEVELS_PER_OCTAVE = 3


# Readouts.


def histogram_of_channel(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the histogram of a channel."""
    channel = channel_to_show(excerpt, found)
    values = excerpt.x[:, channel]
    return histogram(
        values,
        np.ones(len(values), dtype=bool),
        x_label=name_of_channel(excerpt, channel),
        caption="How often the channel takes which value.",
        n_bins=4 * N_BINS,
    )


def codes_in_histogram(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the histogram of a channel, with the value that comes too often in red."""
    channel = channel_to_show(excerpt, found)
    values = excerpt.x[:, channel]
    values_found = values[np.isin(excerpt.rows, found["rows"])]
    candidates, counts = np.unique(values_found, return_counts=True)
    is_code = np.zeros(len(values), dtype=bool)
    if len(candidates):
        # The most frequent value, and of several such the farthest from the median.
        distance = np.abs(candidates - np.median(values))
        code = candidates[np.lexsort([distance, counts])[-1]]
        is_code = values == code
    return histogram(
        values,
        is_code,
        x_label=name_of_channel(excerpt, channel),
        caption="How often the channel takes which value; red is the code.",
        log="y",
    )


def piles_in_histogram(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the histogram of a channel, with the ends of its range in red."""
    channel = channel_to_show(excerpt, found)
    values = excerpt.x[:, channel]
    place = (values - values.min()) / max(float(np.ptp(values)), np.finfo(float).tiny)
    return histogram(
        values,
        (place < 1 / N_BINS) | (place > 1 - 1 / N_BINS),
        x_label=name_of_channel(excerpt, channel),
        caption="How often the channel takes which value; red are the ends of its range.",
    )


def histogram_of_logarithm(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the histogram of the logarithm of a channel's absolute values."""
    channel = channel_to_show(excerpt, found)
    sizes = np.abs(excerpt.x[:, channel])
    logarithm = np.log10(sizes[sizes > 0])
    return histogram(
        logarithm,
        np.ones(len(logarithm), dtype=bool),
        x_label=f"log10 of the size of {name_of_channel(excerpt, channel)}",
        caption="How often the channel takes values of which size: two humps are two units.",
    )


def readout_against_fit(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return a channel against its fit by the inputs."""
    channel = channel_to_show(excerpt, found)
    residuals = excerpt.residuals
    values = residuals.channels[:, channel]
    fitted = values - residuals_in_widths(excerpt)[:, channel]
    is_found = np.isin(excerpt.rows, found.get("rows", ()))
    rows_found = np.flatnonzero(is_found)
    other_rows = np.flatnonzero(~is_found)
    n_points = MAX_POINTS // 2
    shown_found = rows_found[evenly_spaced(len(rows_found), n_points)]
    shown_others = other_rows[evenly_spaced(len(other_rows), n_points)]
    rows = np.concatenate([shown_found, shown_others])
    ends = np.array([fitted.min(), fitted.max()])
    return Picture(
        kind="points",
        x_label="fit by the inputs",
        y_label=name_of_channel(excerpt, channel),
        caption="Each point is a row, in widths of the channel's usual range; extremes are cut.",
        series=[
            *by_role(fitted[rows], values[rows], is_found[rows]),
            series("expected", ends, ends),
        ],
    )


def correlations_of_channels(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the histogram of the absolute correlations of all pairs of channels."""
    correlation = np.abs(np.corrcoef(excerpt.x, rowvar=False))
    sizes = correlation[np.triu_indices(len(correlation), 1)]
    logarithm = np.log10(np.maximum(sizes, 1e-17))
    chance = -0.5 * np.log10(excerpt.n)
    picture = histogram(
        logarithm,
        np.ones(len(logarithm), dtype=bool),
        x_label="log10 of the correlation of two channels",
        caption="Correlations of all pairs of channels; the dashed line is chance.",
        n_bins=20,
    )
    top = max(max(part.y) for part in picture.series)
    line = series("expected", [chance, chance], [0.0, top], "chance")
    return replace(picture, y_label="pairs", series=[*picture.series, line])


def equal_pairs(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return which row equals which."""
    if "first_rows" in found:
        first = np.array(found["first_rows"])
        second = np.array(found["rows"])
    else:
        first, second = (excerpt.rows[rows] for rows in equal_rows(excerpt.x))
    chosen = evenly_spaced(len(first), MAX_POINTS)
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


def map_of_misfit(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the size of the residuals, by channel and part of the run.

    It is given in levels of one digit: 0 is the usual size or less, and three levels more are twice
    the size.
    """
    misfits = excerpt.residuals.channel_residuals()
    names = np.array(channel_names(excerpt))
    is_named = np.isin(names, found.get("channels", ()))
    named = np.flatnonzero(is_named)
    others = np.flatnonzero(~is_named)
    step = max(-(-len(others) // N_MAP_CHANNELS), 1)
    shown = np.sort(np.concatenate([named, others[::step]])[:N_MAP_CHANNELS])

    edges = np.linspace(0, excerpt.n, min(N_MAP_PARTS, excerpt.n) + 1).astype(int)
    lengths = np.diff(edges)[:, None]
    sizes = np.sqrt(np.add.reduceat(misfits[:, shown] ** 2, edges[:-1], axis=0) / lengths)
    is_found = np.isin(excerpt.rows, found.get("rows", ()))
    # Where rows were found, each channel is compared with other parts of itself.
    usual = np.median(sizes, axis=0) if is_found.any() else np.median(sizes)
    ratio = np.maximum(sizes, 1e-30) / np.maximum(usual, 1e-30)
    levels = np.clip(LEVELS_PER_OCTAVE * np.log2(ratio), 0, 9).astype(int)
    marked = np.flatnonzero(np.add.reduceat(is_found, edges[:-1]))
    starts = excerpt.positions[edges[:-1]]
    stops = excerpt.positions[edges[1:] - 1] + 1
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


# Inputs.


def histogram_of_input(excerpt: Excerpt, found: dict[str, Any]) -> Picture:
    """Return the histogram of an input beside the distribution that was declared."""
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
    rows = evenly_spaced(excerpt.n)
    return Picture(
        kind="points",
        x_label=f"u{first + 1}",
        y_label=f"u{second + 1}",
        caption="Each point is a row; independent inputs fill the plane evenly.",
        series=[series("found", excerpt.u[rows, first], excerpt.u[rows, second])],
    )
