"""Held inputs: traces that were not folded, and inputs measured several times in a row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy

from ..errors import Check
from ..samples import MAX_ROWS_FOR_HOLDS, Hold, find_hold
from ..typing import Floats
from ._excerpt import Excerpt
from ._finding import finding

# Powers of the input that the readouts at one place within a step may follow.
N_POWERS = 2
# Variance between the places within a step, relative to that of chance, from which on readouts
# follow a course there, and the probability that chance does this. Traces have hundreds; noise that
# wanders slowly has more than 1.
MIN_RATIO_OF_VARIANCE = 2.0
FALSE_ALARM_OF_COURSE = 1e-6
# Steps that are needed to tell.
MIN_STEPS = 8


def hold_of_inputs(excerpt: Excerpt) -> Hold | None:
    """Return for how many rows the inputs of the data set are held; None where they are not.

    The first run is looked at, in the order of acquisition. Its rows are those of the samples, for
    sequences with the history in front.
    """
    samples = excerpt.samples
    n_rows = samples.n_samples if samples.runs is None else int(samples.runs[1])
    n_rows = min(n_rows + samples.history, MAX_ROWS_FOR_HOLDS)
    if samples.time is not None and np.any(np.diff(samples.time[:n_rows]) < 0):
        return None
    u = samples.u.read(0, n_rows, on_host=True)[:, : samples.basis.n_inputs]
    return find_hold(u)


def held_inputs(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where inputs are held while the readouts go on: a trace of virtual nodes.

    Where readouts without memory only repeat themselves, the inputs were measured several times
    (`counted_twice`).
    """
    if excerpt.first > 0:
        return  # The first excerpt looks at all rows.
    hold = hold_of_inputs(excerpt)
    if hold is None:
        return
    if not excerpt.of_sequence and not follows_a_course(excerpt, hold):
        return
    n_rows = hold.rows_per_step
    fold = f"pass `rows_per_step={n_rows}`"
    first_row = int(excerpt.samples.u.given_rows(np.array([hold.offset]))[0])
    offset = first_row % n_rows
    if offset:
        fold += f" and `offset={offset}`"
    yield finding(
        f"the input stays constant for {n_rows} rows, while the readouts change",
        cause="held inputs",
        next_step=f"{fold}, which makes {n_rows} virtual nodes of each channel, or give one row "
        "for each input",
        in_short="inputs held for several rows",
        # Under the law of the recorded inputs these are dependent inputs like others.
        is_note=excerpt.samples.law == "recorded",
        p_value=hold.p_value,
        rows_per_step=n_rows,
        offset=offset,
    )


def follows_a_course(excerpt: Excerpt, hold: Hold) -> bool:
    """Return whether readouts within a step depend on their place in it.

    Readouts of one input that was measured several times are exchangeable: neither their means nor
    their regression on the input differ from one place to another.
    """
    n_rows = hold.rows_per_step
    n_steps = (excerpt.n - hold.offset) // n_rows
    if n_steps < MIN_STEPS:
        return True
    whole_steps = slice(hold.offset, hold.offset + n_steps * n_rows)
    u = excerpt.u[whole_steps].reshape(n_steps, n_rows, -1)[:, 0]
    x = excerpt.x[whole_steps].reshape(n_steps, n_rows, -1)
    within = x - x.mean(axis=1, keepdims=True)
    functions = _orthonormal_powers(u)
    # What each function explains at each place: (functions, rows per step, channels).
    coefficients = np.einsum("sf,src->frc", functions, within)
    explained = np.sum(coefficients**2, axis=(0, 1))
    left = np.maximum(np.sum(within**2, axis=(0, 1)) - explained, 0.0)
    n_explained = functions.shape[1] * (n_rows - 1)
    n_left = (n_steps - functions.shape[1]) * (n_rows - 1)
    explained_variance = explained / n_explained
    # Of readouts without noise what is left is rounding; where nothing is left, nothing was there.
    rounding = np.finfo(float).eps * np.mean(x**2, axis=(0, 1))
    variance = np.maximum(left / n_left, rounding)
    ratio = np.divide(explained_variance, variance, out=np.zeros_like(variance), where=variance > 0)
    p_values = scipy.special.fdtrc(n_explained, n_left, ratio) * len(ratio)
    return bool(np.any((p_values < FALSE_ALARM_OF_COURSE) & (ratio > MIN_RATIO_OF_VARIANCE)))


def _orthonormal_powers(u: Floats) -> Floats:
    """Return orthonormal functions that span the first powers of the inputs and the constant."""
    centred = u - u.mean(axis=0)
    columns = [np.ones((len(u), 1))]
    columns += [centred**power for power in range(1, N_POWERS + 1)]
    together = np.hstack(columns)
    together = together / np.maximum(np.abs(together).max(axis=0), np.finfo(float).tiny)
    vectors, sizes, _ = np.linalg.svd(together, full_matrices=False)
    return vectors[:, sizes > np.finfo(np.float32).eps * sizes[0]]
