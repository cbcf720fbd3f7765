"""diagnose: what a recording was looked at for before any estimation, what is wrong with it, and its repair."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._formatting import counted
from ..basis._delayed import delayed_basis
from ..basis._product import ProductBasis, lowest, product_basis
from ..designs import planned_inputs
from ..diagnostics._checks import DATA, NEEDS, WITH_MEMORY
from ..diagnostics._stretch import FUNCTIONS
from ..errors import Check, DataError, DataWarning, ParameterError
from ..recording._recording import Recording
from ..typing import ArrayLike, Floats, Integers
from ._choose import choose_basis
from ._from_recording import estimate_recording

# What is looked at beside the checks of data, and the findings that say otherwise.
BESIDE = {
    "no missing values": "missing",
    "inputs within their domain": "refused",
    "inputs of the plan": "another design",
    "no drift in the order of acquisition": "drift",
}
# Share of an input's spread by which the value that was recorded may differ from the one that was planned.
AS_PLANNED = 0.02
# Findings whose rows are left out to repair them.
DROPPED = ("missing", "codes", "glitches", "stale", "stacked", "gap")


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What a recording was looked at for, and what was found; `diagnose` makes one.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> u = infocap.draw(basis, 1024, seed=1)
    >>> x = infocap.systems.RandomFeatures(2, 5, noise=0.01)(u, seed=1)
    >>> infocap.diagnose(infocap.Recording(u, x, np.arange(1024))).fit[0]
    'inputs of the declared range, shape and digits, independent of each other'
    """

    recording: Recording
    checks: tuple[Check, ...]
    fit: tuple[str, ...]  # what was looked at and is as it should be
    skipped: tuple[str, ...]  # what too few measurements cannot tell

    def __repr__(self) -> str:
        lines = [
            *(f"  fit: {one}" for one in self.fit),
            *(f"  not looked at: {one}" for one in self.skipped),
        ]
        return "\n".join(
            [str(self.recording), *lines, *(f"  {one.kind}: {one}" for one in self.checks)]
        )

    def repaired(self) -> Recording | None:
        """Return the recording with all repaired that can be repaired safely; None where there is nothing to repair.

        Rows with codes, glitches and stale readouts are left out, readouts realigned, rows that were counted twice made
        repeats. ``metadata["repairs"]`` tells what was done. Inspect the outcome again: one mistake may hide another.
        """
        found = {str(one.found.get("cause")): one for one in self.checks}
        recording = self.recording
        if "shift" in found and "missing" not in found:
            recording, said = _realigned(recording, found["shift"])
        elif "repeats" in found and "missing" not in found:
            recording, said = _with_repeats(recording, found["repeats"])
        else:
            causes = [cause for cause in DROPPED if cause in found]
            rows = sorted({row for cause in causes for row in found[cause].found["rows"]})
            if not rows:
                return None
            recording = _only(recording, np.delete(np.arange(len(recording.design_index)), rows))
            said = f"{counted(len(rows), 'row')} left out ({', '.join(causes)}): {', '.join(map(str, rows))}"
        repairs = [*recording.metadata.get("repairs", []), said]
        return replace(recording, metadata=recording.metadata | {"repairs": repairs})


def diagnose(
    u: ArrayLike | Recording, x: ArrayLike | None = None, basis: ProductBasis | None = None
) -> Diagnosis:
    """Look at a data set before any estimation, by the same checks that `estimate` runs.

    Takes inputs and readouts, or a `Recording` in place of both. `basis` tells how the inputs are distributed; by
    default that of the plan, else uniform over a common interval.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> u = infocap.draw(basis, 1024, seed=1)
    >>> x = infocap.systems.RandomFeatures(2, 5, noise=0.01)(u, seed=1)
    >>> late = infocap.Recording(u, np.roll(x, 1, axis=0), np.arange(1024))
    >>> found = infocap.diagnose(late)
    >>> found.checks[0].found["shifts"]
    [[0, 1024, 1]]
    >>> infocap.diagnose(found.repaired()).checks
    ()
    """
    if isinstance(u, Recording):
        recording = u
    elif x is not None:
        readouts = np.asarray(x)
        recording = Recording(np.asarray(u), readouts, np.arange(len(readouts)))
    else:
        raise ParameterError(
            "`x=None`: give inputs and readouts, diagnose(u, x, basis), or one Recording."
        )
    inputs, readouts = np.asarray(recording.inputs), np.asarray(recording.readouts)
    plan = recording.metadata.get("plan")
    planned = None
    if isinstance(plan, dict) and plan.get("n_inputs") == inputs.shape[1]:
        planned = choose_basis((inputs.shape[0], inputs.shape[1]), plan)[0]
    checks: list[Check] = []
    missing = np.flatnonzero(~(np.isfinite(inputs).all(axis=1) & np.isfinite(readouts).all(axis=1)))
    if len(missing):
        said = f"missing values in {counted(len(missing), 'row')}; leave them out (infocap diagnose --fix)."
        checks.append(Check(said, cause="missing", rows=missing.tolist()))
    if planned is not None:
        checks += _off_plan(planned_inputs(planned, plan), plan["seed"], recording, inputs)
    try:
        low = basis or (planned or _uniform(inputs))
        memory = low.memory  # of a sequence, whose rows depend on those before them
        low = (
            delayed_basis(low.families, max_delay={1: memory}) if memory else lowest(low, FUNCTIONS)
        )
        nan = "raise" if memory else "omit"  # which would tear a sequence apart
        with warnings.catch_warnings(action="ignore", category=DataWarning):
            result = estimate_recording(
                recording, low, method="raw", nan_policy=nan, complex_as="split"
            )
        checks += [
            one for one in result.checks if "total" not in one.found and "missing" not in one.found
        ]
    except DataError as problem:
        checks.append(Check(str(problem), cause="refused"))
        return Diagnosis(recording, tuple(checks), (), (*DATA, *BESIDE))
    n, causes = (
        len(recording.design_index) - len(missing),
        {one.found.get("cause") for one in checks},
    )
    looked = [name for name, check in DATA.items() if not memory or check in WITH_MEMORY]
    skipped = tuple(name for name in looked if n < NEEDS.get(name, 0))
    wrong = {one.found.get("looked_for") for one in checks} | {
        name for name, one in BESIDE.items() if one in causes
    }
    wrong |= set() if planned is not None else {"inputs of the plan"}
    fit = [name for name in (*looked, *BESIDE) if name not in wrong and name not in skipped]
    return Diagnosis(recording, tuple(checks), tuple(fit), skipped)


def _off_plan(planned: Floats, seed: Any, recording: Recording, u: Floats) -> list[Check]:
    """Inputs that are not those of the plan beside them: of another seed, or of another stretch of the design."""
    if recording.design_index.max() >= len(planned):
        return []
    off = np.any(
        np.abs(u - planned[recording.design_index])
        > AS_PLANNED * np.maximum(planned.std(axis=0), 1e-300),
        axis=1,
    )
    if not off.any():
        return []
    said = f"{np.sum(off)} of {len(u)} rows have other inputs than the plan in the file (seed {seed}), the first "
    said += f"row {np.argmax(off)}, as if they were of another seed or run; read the inputs that were sent."
    return [
        Check(
            said,
            unreliable="inputs not of the plan",
            cause="another design",
            rows=np.flatnonzero(off).tolist(),
        )
    ]


def _uniform(u: Floats) -> ProductBasis:
    """Uniform inputs on [-1, 1], on [0, 1], or over the range that each of them fills."""
    low, high = np.nanmin(u, axis=0), np.nanmax(u, axis=0)
    common = next(
        (d for d in ((-1.0, 1.0), (0.0, 1.0)) if np.all(low >= d[0]) and np.all(high <= d[1])), None
    )
    spans = [common or (float(a), float(b)) for a, b in zip(low, high, strict=True)]
    families = [product_basis("legendre", 1, 0, domain=span).families[0] for span in spans]
    return product_basis(families, max_degree=0)


def _only(recording: Recording, rows: Integers) -> Recording:
    """The recording with these rows alone."""
    names = ("inputs", "readouts", "design_index", "time", "repeats", "extra")
    parts: dict[str, Any] = {name: getattr(recording, name) for name in names}
    parts = {name: None if one is None else np.asarray(one)[rows] for name, one in parts.items()}
    return replace(recording, **parts)


def _realigned(recording: Recording, check: Check) -> tuple[Recording, str]:
    """Give readouts to the inputs that they belong to; rows that are left without any are left out."""
    n, x, when, shifts = (
        len(recording.design_index),
        np.asarray(recording.readouts),
        recording.time,
        check.found["shifts"],
    )
    order = np.arange(n) if when is None else np.argsort(np.asarray(when), kind="stable")
    lag, filled, moved = np.zeros(n, dtype=int), np.zeros(n, dtype=bool), x.copy()
    for start, stop, shift in shifts:
        lag[start:stop] = shift
    place = np.arange(n) - lag
    place = n - 1 - place if check.found.get("reversed") else place
    there = (place >= 0) & (place < n)
    for now in (
        there & (lag != 0),
        there & (lag == 0),
    ):  # where two claim a place, what was not moved has it
        moved[order[place[now]]] = x[order[now]]
        filled[place[now]] = True
    kept = np.sort(order[filled])
    said = f"readouts were realigned by {', '.join(f'{shift:+d}' for _, _, shift in shifts)}"
    recording = _only(replace(recording, readouts=moved, repeats=None), kept)
    return (
        recording,
        f"{said}; left out without a readout of its own: {counted(n - len(kept), 'row')}",
    )


def _with_repeats(recording: Recording, check: Check) -> tuple[Recording, str]:
    """Make the second measurement at an input its repeat; a third is left out."""
    first, again = np.array(check.found["first_rows"]), np.array(check.found["rows"])
    x = np.asarray(recording.readouts)
    repeats = (
        np.full(x.shape, np.nan)
        if recording.repeats is None
        else np.array(recording.repeats, dtype=float)
    )
    own = ~np.isin(first, again)  # of three, the second is the first of the third
    repeats[first[own]] = x[again[own]]
    kept = np.delete(np.arange(len(x)), again)
    said = f"{own.sum()} rows became repeats of the row with their inputs, {np.sum(~own)} were left out"
    return _only(replace(recording, repeats=repeats), kept), said
