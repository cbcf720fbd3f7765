"""Mistakes with sequences: readouts ahead of their inputs, inputs that depend on each other, a washout too short."""

from collections.abc import Callable, Iterator

import numpy as np

from .._arrays import to_numpy
from ..errors import Check
from ..typing import Floats
from ._answer import MAX_STANDARD_ERRORS as STANDARD_ERRORS
from ._case import Case

# Rows at the beginning of the first run that are looked at.
ROWS = 8192
# Delays up to which inputs are compared with each other.
DELAYS = 100
# Rows of a block whose power is compared with that of later ones, and how many times the largest of the second half of
# them it has to be.
BLOCK, LARGER = 32, 2.0
# Probability below which chance does not explain the clearest function.
CHANCE = 0.02


def _beginning(case: Case) -> tuple[Floats, Floats]:
    """Inputs and whitened readouts, without the constant, of the first rows of the first run."""
    samples = case.evidence.samples
    stop = (
        samples.n_samples
        if samples.runs is None or len(samples.runs) == 1
        else int(samples.runs[1])
    )
    part = samples.slice_rows(0, min(stop, ROWS))
    z = to_numpy(part.readouts(0, part.n_samples, **case.evidence.whitener))[:, samples.constant :]
    u = part.u.read(part.history, part.history + part.n_samples, on_host=True)
    return u[:, : case.evidence.basis.n_inputs], z


def nothing_found(case: Case) -> Iterator[Check]:
    """Readouts that hold no function of the basis, nor all functions together anything."""
    p, error = case.estimate.p_value, case.estimate.total_standard_error or 0.0
    held = case.total - float(case.estimate.capacity[0])
    if (
        p is not None
        and len(p) > 1
        and p[1:].min() * len(p) > CHANCE
        and held < STANDARD_ERRORS * error
    ):
        yield Check(
            "no function is clearly seen in the readouts; check that these are the inputs that were sent (not those "
            "of another seed or run), that the source was connected, and that the delays reach far enough.",
            unreliable="nothing of the inputs is seen", cause="nothing",
        )  # fmt: skip


def inputs_dependent(case: Case) -> Iterator[Check]:
    """Inputs that are not independent from step to step, so that functions of several delays are not orthogonal."""
    u, _ = _beginning(case)
    delays = np.arange(1, min(case.evidence.basis.memory, DELAYS, len(u) // 4) + 1)
    for k, family in enumerate(case.evidence.basis.families if len(delays) else ()):
        y = family.values(family.standard(u[:, k]), 2)[1]
        y = (y - y.mean()) / (y.std() or 1.0)  # whatever their distribution is
        means = np.array([np.mean(y[delay:] * y[:-delay]) for delay in delays.tolist()])
        worst = int(np.argmax(np.abs(means)))
        if abs(means[worst]) > STANDARD_ERRORS / np.sqrt(len(u) - delays[worst]):
            name = "u" if len(case.evidence.basis.families) == 1 else f"u{k + 1}"
            yield Check(
                f"inputs are not independent from step to step: {name}[t] and {name}[t-{delays[worst]}] have the "
                f"correlation {means[worst]:.2g}; draw independent inputs, or pass those before any filter.",
                unreliable="inputs that depend on each other",
                delay=int(delays[worst]),
            )


def washout_short(case: Case) -> Iterator[Check]:
    """Readouts that begin far from where they stay: the device still remembers the state that it started from."""
    if "order of inputs" in case.evidence.data_findings():
        return  # Readouts of a sweep begin where its inputs do.
    _, z = _beginning(case)
    count = len(z) // BLOCK
    if count < 16:
        return
    power = np.mean(z[: count * BLOCK].reshape(count, -1) ** 2, axis=1)
    usual = float(power[count // 2 :].max())
    calm = np.flatnonzero(power <= LARGER * usual)
    if calm[0] > 0:
        steps = int(calm[0] + 1) * BLOCK
        yield Check(
            f"readouts begin with {power[0] / usual:.0f} times the power that they have later: the device still "
            f"remembers its initial state; pass a `washout` that is {steps} steps longer.",
            unreliable="a washout too short",
            steps=steps,
        )


SEQUENCE_CHECKS: dict[str, Callable[[Case], Iterator[Check]]] = {
    "nothing found": nothing_found,
    "inputs dependent": inputs_dependent,
    "washout short": washout_short,
}
