"""Tests of sequences alone: inputs that depend on each other, readouts that have not settled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import Check
from ._excerpt import Excerpt
from ._finding import finding

# Delays up to which inputs are compared with each other, and rows for each of them.
MAX_DELAY_OF_INPUTS = 100
MIN_ROWS_PER_DELAY = 4
# Standard errors beyond which a correlation is no chance.
MAX_STANDARD_ERRORS = 5.0
# Correlation of inputs from which on capacities of independent inputs cannot be had: a function
# then holds a twenty-fifth of another one. Below it they are weaker than they look.
MAX_CORRELATION = 0.2
# Rows of a block at the beginning whose readouts are compared with later ones, and blocks that are
# needed.
BLOCK_ROWS = 32
MIN_BLOCKS = 16
# Times that the power of the first block has to be that of the largest of the second half.
MIN_RATIO_OF_POWER = 1.5
# Standard deviations by which most channels must be displaced in the first block. States that
# settle slowly displace few channels, or by less.
MIN_DISPLACEMENT = 1.0


def dependent_inputs(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check for each input of a sequence that depends on its earlier values.

    Functions of several delays are then not orthogonal.
    """
    memory = excerpt.samples.basis.memory
    max_delay = min(memory, MAX_DELAY_OF_INPUTS, excerpt.n // MIN_ROWS_PER_DELAY)
    if max_delay < 1:
        return
    families = excerpt.samples.basis.families
    for k, family in enumerate(families):
        y = family.values(family.standard(excerpt.u[:, k]), 2)[1]
        y = (y - y.mean()) / (y.std() or 1.0)  # whatever their distribution is
        delays = range(1, max_delay + 1)
        correlations = np.array([np.mean(y[delay:] * y[:-delay]) for delay in delays])
        delay = int(np.argmax(np.abs(correlations))) + 1
        correlation = float(correlations[delay - 1])
        if abs(correlation) <= MAX_STANDARD_ERRORS / np.sqrt(excerpt.n - delay):
            continue
        name = "u" if len(families) == 1 else f"u{k + 1}"
        pair = f"{name}[t] and {name}[t-{delay}] have the correlation {correlation:.2g}"
        if abs(correlation) > MAX_CORRELATION:
            yield no_independent_inputs(pair, "inputs depend", inputs=[k], delay=delay)
            continue
        yield finding(
            f"inputs are not independent from step to step: {pair}",
            cause="inputs depend",
            next_step="draw independent inputs, pass those before any filter, or use "
            '`law="recorded"`',
            in_short="inputs that depend on each other",
            inputs=[k],
            delay=delay,
        )


def no_independent_inputs(pair: str, cause: str, **values: Any) -> Check:
    """Return the check of inputs that depend so much that no capacity is shown for them.

    Parameters
    ----------
    pair
        Which two inputs have which correlation.
    cause, values
        As for `finding`.
    """
    return finding(
        f"{pair}: capacities of independent inputs cannot be had from this recording",
        cause=cause,
        next_step='`law="recorded"` gives the capacities under these inputs',
        in_short="inputs that depend on each other",
        no_numbers=True,
        **values,
    )


def unsettled_beginning(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where readouts of a run begin far from where they stay."""
    runs = excerpt.samples.runs
    starts = [0] if runs is None else runs
    n_blocks = excerpt.n // BLOCK_ROWS
    if excerpt.places[0] not in starts or n_blocks < MIN_BLOCKS:
        return
    if excerpt.related_inputs is not None:
        return  # Readouts of a sweep begin where its inputs do.
    residuals = excerpt.residuals
    shape = (n_blocks, BLOCK_ROWS, -1)
    whitened = residuals.whitened[: n_blocks * BLOCK_ROWS].reshape(shape)
    power = np.mean(whitened**2, axis=(1, 2))
    usual_power = float(power[n_blocks // 2 :].max())
    if power[0] < MIN_RATIO_OF_POWER * usual_power:
        return
    channels = residuals.channels[: n_blocks * BLOCK_ROWS].reshape(shape).mean(axis=1)
    deviation = np.maximum(residuals.channels.std(axis=0), np.finfo(np.float32).tiny)
    displacement = np.median(
        np.abs(channels[0] - channels[n_blocks // 2 :].mean(axis=0)) / deviation
    )
    if displacement < MIN_DISPLACEMENT:
        return
    n_unsettled = int(np.argmax(power < MIN_RATIO_OF_POWER * usual_power))
    n_steps = (n_unsettled + 1) * BLOCK_ROWS
    # The capacity of the function that tells whether the device has settled.
    n_rows = n_unsettled * BLOCK_ROWS
    means = whitened[:n_unsettled].mean(axis=(0, 1))
    capacity = float(np.sum(means**2)) * n_rows / excerpt.n - whitened.shape[2] / excerpt.n
    yield finding(
        f"readouts of a run begin {displacement:.1f} standard deviations away from where they "
        "stay: the device still remembers its initial state",
        cause="washout",
        next_step=f"pass a `washout` that is {n_steps} steps longer",
        in_short="a washout too short",
        capacity=capacity,
        rows=excerpt.rows[:n_rows],
        steps=n_steps,
    )
