"""Small pictures of findings, as numbers: `infocap.plot.finding` draws them.

Each is made from the excerpt in which a finding was seen, and only for warnings that are reported.
`PICTURES` says which picture shows which cause, or what a finding says it is `shown_as`. Other
findings are shown by the map of misfit, if they name rows or channels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._excerpt import Excerpt
from ._picture import Picture
from ._pictures_in_time import (
    batch_sums,
    channel_along_the_run,
    course_within_steps,
    drift_along_the_run,
    misfit_along_the_run,
    readouts_around,
    response_along_the_run,
    spectrum,
)
from ._pictures_of_order import (
    agreement_along_the_run,
    capacity_of_inputs,
    delays_seen,
    lag_scan,
    lags_of_channels,
    lags_of_inputs,
    lags_of_scores,
    own_against_other,
)
from ._pictures_of_values import (
    codes_in_histogram,
    correlations_of_channels,
    equal_pairs,
    histogram_of_channel,
    histogram_of_input,
    histogram_of_logarithm,
    input_against_input,
    map_of_misfit,
    piles_in_histogram,
    readout_against_fit,
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
    "gain of rows": lags_of_scores,
    "noise of rows": lags_of_scores,
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
    "alike rows": map_of_misfit,
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


def picture_of(excerpt: Excerpt, found: dict[str, Any]) -> dict[str, Any] | None:
    """Return the picture of a finding as plain data; None where there is nothing to show."""
    draw = PICTURES.get(found.get("shown_as", found.get("cause", "")))
    if draw is not None:
        return draw(excerpt, found).to_dict()
    if len(found.get("rows", ())) or len(found.get("channels", ())):
        return map_of_misfit(excerpt, found).to_dict()
    return None
