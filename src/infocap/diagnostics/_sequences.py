"""Mistakes with sequences: nothing found, inputs that depend on each other, a washout too short."""

from collections.abc import Callable, Iterator

import numpy as np

from .._arrays import to_numpy
from ..errors import Check
from ..typing import Floats
from ._answer import MAX_STANDARD_ERRORS
from ._case import Case

# Rows at the beginning of the first run that are looked at.
MAX_ROWS = 8192
# Delays up to which inputs are compared with each other, and rows for each of them.
MAX_DELAY_OF_INPUTS = 100
MIN_ROWS_PER_DELAY = 4
# Rows of a block whose power is compared with that of later ones, and blocks that are needed.
BLOCK_ROWS = 32
MIN_BLOCKS = 16
# Times that its power has to be that of the largest of the second half of the blocks.
MIN_RATIO_OF_POWER = 2.0
# Probability below which chance does not explain the clearest function.
MAX_CHANCE = 0.02


def _beginning(case: Case) -> tuple[Floats, Floats]:
    """Return inputs and whitened readouts of the first rows of the first run."""
    samples = case.evidence.samples
    if samples.runs is None or len(samples.runs) == 1:
        n_rows = samples.n_samples
    else:
        n_rows = int(samples.runs[1])
    part = samples.slice_rows(0, min(n_rows, MAX_ROWS))
    z = to_numpy(part.readouts(0, part.n_samples, **case.evidence.whitener))
    u = part.u.read(part.history, part.history + part.n_samples, on_host=True)
    return u[:, : case.evidence.basis.n_inputs], z[:, samples.constant :]


def nothing_found(case: Case) -> Iterator[Check]:
    """Yield a check where readouts hold none of the functions, nor all of them together."""
    p_value = case.estimate.p_value
    if p_value is None or len(p_value) < 2:
        return
    error = case.estimate.total_standard_error or 0.0
    held = case.total - float(case.estimate.capacity[0])
    is_seen = p_value[1:].min() * len(p_value) <= MAX_CHANCE
    if is_seen or held >= MAX_STANDARD_ERRORS * error:
        return
    yield Check(
        "no function is clearly seen in the readouts; check that these are the inputs that were "
        "sent (not those of another seed or run), that the source was connected, and that the "
        "delays reach far enough.",
        unreliable="nothing of the inputs is seen",
        cause="nothing",
    )


def inputs_dependent(case: Case) -> Iterator[Check]:
    """Yield a check for each input that depends on its earlier values.

    Functions of several delays are then not orthogonal.
    """
    basis = case.evidence.basis
    u, _ = _beginning(case)
    max_delay = min(basis.memory, MAX_DELAY_OF_INPUTS, len(u) // MIN_ROWS_PER_DELAY)
    if max_delay < 1:
        return
    for k, family in enumerate(basis.families):
        y = family.values(family.standard(u[:, k]), 2)[1]
        y = (y - y.mean()) / (y.std() or 1.0)  # whatever their distribution is
        delays = np.arange(1, max_delay + 1)
        correlations = np.array([np.mean(y[delay:] * y[:-delay]) for delay in delays])
        worst = int(np.argmax(np.abs(correlations)))
        delay = int(delays[worst])
        if abs(correlations[worst]) <= MAX_STANDARD_ERRORS / np.sqrt(len(u) - delay):
            continue
        name = "u" if len(basis.families) == 1 else f"u{k + 1}"
        yield Check(
            f"inputs are not independent from step to step: {name}[t] and {name}[t-{delay}] have "
            f"the correlation {correlations[worst]:.2g}; draw independent inputs, or pass those "
            "before any filter.",
            unreliable="inputs that depend on each other",
            delay=delay,
        )


def washout_short(case: Case) -> Iterator[Check]:
    """Yield a check where readouts begin far from where they stay."""
    if "order of inputs" in case.evidence.data_findings():
        return  # Readouts of a sweep begin where its inputs do.
    _, z = _beginning(case)
    n_blocks = len(z) // BLOCK_ROWS
    if n_blocks < MIN_BLOCKS:
        return
    blocks = z[: n_blocks * BLOCK_ROWS].reshape(n_blocks, -1)
    power = np.mean(blocks**2, axis=1)
    usual = float(power[n_blocks // 2 :].max())
    first_calm = int(np.argmax(power <= MIN_RATIO_OF_POWER * usual))
    if first_calm == 0:
        return
    n_steps = (first_calm + 1) * BLOCK_ROWS
    yield Check(
        f"readouts begin with {power[0] / usual:.0f} times the power that they have later: the "
        f"device still remembers its initial state; pass a `washout` that is {n_steps} steps "
        "longer.",
        unreliable="a washout too short",
        steps=n_steps,
    )


SEQUENCE_CHECKS: dict[str, Callable[[Case], Iterator[Check]]] = {
    "nothing found": nothing_found,
    "inputs dependent": inputs_dependent,
    "washout short": washout_short,
}
