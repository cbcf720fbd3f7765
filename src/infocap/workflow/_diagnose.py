"""diagnose: which checks of the data a data set passes, what is wrong with it, and its repair."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._formatting import counted
from .._validation import answers_unknown_parameters
from ..basis import ProductBasis, delayed_basis, lowest_degrees, product_basis
from ..designs import planned_inputs
from ..diagnostics import DATA, N_LOW_FUNCTIONS, NEEDS, WITH_MEMORY
from ..errors import Check, DataError, DataWarning, ParameterError
from ..kernels import SMALLEST_DIVISOR
from ..recording import Recording
from ..typing import ArrayLike, Floats, Integers
from ._choose import choose_basis
from ._from_arrays import EstimateOptions
from ._from_recording import estimate_recording

# What is looked at besides the checks of data, and the cause that a finding about it has.
OTHER_CHECKS = {
    "no missing values": "missing",
    "inputs within their domain": "refused",
    "inputs of the plan": "another design",
}
# Fraction of an input's spread by which the value that was recorded may differ from the value that
# was planned.
MAX_DEVIATION_FROM_PLAN = 0.02
# Causes whose rows are left out to repair them.
LEFT_OUT_CAUSES = ("missing", "codes", "glitches", "stale", "stacked", "gap")
# Intervals that inputs are often scaled to; others are taken as the range that they fill.
COMMON_INTERVALS = ((-1.0, 1.0), (0.0, 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What a recording was looked at for, and what was found; `diagnose` makes one.

    Attributes
    ----------
    recording
        The data set.
    checks
        What was found.
    passed
        The checks that found nothing.
    skipped
        The checks for which there are too few rows.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> u = infocap.draw(basis, 1024, seed=1)
    >>> x = infocap.systems.RandomFeatures(2, 5, noise=0.01)(u, seed=1)
    >>> infocap.diagnose(infocap.Recording(u, x, np.arange(1024))).passed[0]
    'inputs of the declared range, shape and digits, independent of each other'
    """

    recording: Recording
    checks: tuple[Check, ...]
    passed: tuple[str, ...]
    skipped: tuple[str, ...]

    def __repr__(self) -> str:
        lines = [str(self.recording)]
        lines += [f"  passed: {name}" for name in self.passed]
        lines += [f"  not looked at: {name}" for name in self.skipped]
        lines += [f"  {check.kind}: {check}" for check in self.checks]
        return "\n".join(lines)

    def repaired(self) -> Recording | None:
        """Return the recording after one repair; None where there is nothing to repair.

        Readouts are realigned; where that is not needed, second measurements become repeats;
        otherwise rows with missing values, codes, glitches or stale readouts are left out. Missing
        values go first. ``metadata["repairs"]`` tells what was done. Diagnose the outcome again:
        one mistake may hide another.
        """
        check_of = {str(check.found.get("cause")): check for check in self.checks}
        recording = self.recording
        shift = check_of.get("shift", check_of.get("slip"))
        if shift is not None and "missing" not in check_of:
            repaired, sentence = _realigned(recording, shift)
        elif "repeats" in check_of and "missing" not in check_of:
            repaired, sentence = _with_repeats(recording, check_of["repeats"])
        else:
            causes = [cause for cause in LEFT_OUT_CAUSES if cause in check_of]
            rows_of_causes = [check_of[cause].found["rows"] for cause in causes]
            rows = sorted(set().union(*rows_of_causes))
            if not rows:
                return None
            kept_rows = np.delete(np.arange(len(recording.design_index)), rows)
            repaired = _select_rows(recording, kept_rows)
            numbers = ", ".join(map(str, rows))
            sentence = f"{counted(len(rows), 'row')} left out ({', '.join(causes)}): {numbers}"
        repairs = [*recording.metadata.get("repairs", []), sentence]
        return replace(repaired, metadata=recording.metadata | {"repairs": repairs})


@answers_unknown_parameters
def diagnose(
    u: ArrayLike | Recording, x: ArrayLike | None = None, basis: ProductBasis | None = None
) -> Diagnosis:
    """Look at a data set before any estimation, by the same checks that `estimate` runs.

    Parameters
    ----------
    u, x
        Inputs and readouts, or a `Recording` in place of both.
    basis
        It tells how the inputs are distributed; by default that of the plan, else uniform over a
        common interval.

    Returns
    -------
    Diagnosis
        What was looked at, what was found, and the repair.

    Examples
    --------
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
        recording = Recording(np.asarray(u), np.asarray(x), np.arange(len(x)))
    else:
        raise ParameterError(
            "`x=None`: give inputs and readouts, diagnose(u, x, basis), or one Recording."
        )
    inputs = np.asarray(recording.inputs)
    missing = _rows_with_missing_values(recording)
    checks: list[Check] = []
    if len(missing):
        checks.append(
            Check(
                f"missing values in {counted(len(missing), 'row')}; leave them out (infocap "
                "diagnose --fix).",
                cause="missing",
                rows=missing.tolist(),
            )
        )
    planned_basis = None
    if recording.plan.get("n_inputs") == inputs.shape[1]:
        planned_basis, _ = choose_basis((inputs.shape[0], inputs.shape[1]), recording.plan)
        checks += _deviations_from_plan(recording, planned_basis)
    try:
        declared_basis = basis or planned_basis or _uniform_basis(inputs)
        checks += _checks_of_data(recording, declared_basis)
    except DataError as problem:
        refusal = Check(str(problem), cause="refused")
        return Diagnosis(recording, (*checks, refusal), (), (*DATA, *OTHER_CHECKS))

    n_samples = len(recording.design_index) - len(missing)
    is_sequence = declared_basis.of_sequences
    names = [name for name, check in DATA.items() if not is_sequence or check in WITH_MEMORY]
    skipped = tuple(name for name in names if n_samples < NEEDS.get(name, 0))
    causes = {check.found.get("cause") for check in checks}
    not_passed = {check.found.get("looked_for") for check in checks}
    not_passed |= {name for name, cause in OTHER_CHECKS.items() if cause in causes}
    if planned_basis is None:
        not_passed.add("inputs of the plan")
    left_out = {*not_passed, *skipped}
    passed = tuple(name for name in (*names, *OTHER_CHECKS) if name not in left_out)
    return Diagnosis(recording, tuple(checks), passed, skipped)


def _rows_with_missing_values(recording: Recording) -> Integers:
    inputs_finite = np.isfinite(np.asarray(recording.inputs)).all(axis=1)
    readouts_finite = np.isfinite(np.asarray(recording.readouts)).all(axis=1)
    return np.flatnonzero(~(inputs_finite & readouts_finite))


def _checks_of_data(recording: Recording, basis: ProductBasis) -> list[Check]:
    """Return what `estimate` finds in the data with a few functions of low degree.

    Findings about the total are left out.
    """
    low: ProductBasis
    if basis.of_sequences:
        low = delayed_basis(basis.families, max_delay={1: max(basis.memory, 1)})
        nan_policy = "raise"  # leaving rows out would tear the sequence apart
    else:
        low = lowest_degrees(basis, N_LOW_FUNCTIONS)
        nan_policy = "omit"
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        options = EstimateOptions(method="raw", nan_policy=nan_policy, complex_as="split")
        result = estimate_recording(recording, low, options)
    return [
        check
        for check in result.checks
        if "total" not in check.found and "missing" not in check.found
    ]


def _deviations_from_plan(recording: Recording, planned_basis: ProductBasis) -> list[Check]:
    """Return a warning where inputs are not those of the plan in the file."""
    planned = planned_inputs(planned_basis, recording.plan)
    if recording.design_index.max() >= len(planned):
        return []
    inputs = np.asarray(recording.inputs)
    tolerance = MAX_DEVIATION_FROM_PLAN * np.maximum(planned.std(axis=0), SMALLEST_DIVISOR)
    deviation = np.abs(inputs - planned[recording.design_index])
    deviating = np.any(deviation > tolerance, axis=1)
    if not deviating.any():
        return []
    return [
        Check(
            f"{np.sum(deviating)} of {len(inputs)} rows have other inputs than the plan in the "
            f"file (seed {recording.plan['seed']}), the first row {np.argmax(deviating)}, as if "
            "they were of another seed or run; read the inputs that were sent.",
            unreliable="inputs not of the plan",
            cause="another design",
            rows=np.flatnonzero(deviating).tolist(),
        )
    ]


def _uniform_basis(u: Floats) -> ProductBasis:
    """Return the constant function of uniform inputs.

    They lie on [-1, 1], on [0, 1], or in the range that each of them fills.
    """
    lowest_values = np.nanmin(u, axis=0)
    highest_values = np.nanmax(u, axis=0)
    intervals = list(zip(lowest_values.tolist(), highest_values.tolist(), strict=True))
    for low, high in COMMON_INTERVALS:
        if np.all(lowest_values >= low) and np.all(highest_values <= high):
            intervals = [(low, high)] * len(intervals)
            break
    families = [
        product_basis("legendre", 1, 0, domain=interval).families[0] for interval in intervals
    ]
    return product_basis(families, max_degree=0)


def _select_rows(recording: Recording, rows: Integers) -> Recording:
    """Return the recording with these rows alone."""
    values_of_rows: dict[str, Any] = {}
    for name in ("inputs", "readouts", "design_index", "time", "repeats", "extra"):
        values = getattr(recording, name)
        values_of_rows[name] = None if values is None else np.asarray(values)[rows]
    return replace(recording, **values_of_rows)


def _realigned(recording: Recording, check: Check) -> tuple[Recording, str]:
    """Return the recording with each readout at its input, and a sentence that says so.

    Inputs that get no readout are left out.
    """
    n_rows = len(recording.design_index)
    readouts = np.asarray(recording.readouts)
    if recording.time is None:
        order = np.arange(n_rows)
    else:
        order = np.argsort(np.asarray(recording.time), kind="stable")

    # By how many measurements each readout came late, and the measurement that it belongs to.
    shifts = check.found["shifts"]
    delay = np.zeros(n_rows, dtype=int)
    for start, stop, shift in shifts:
        delay[start:stop] = shift
    target = np.arange(n_rows) - delay
    if check.found.get("reversed"):
        target = n_rows - 1 - target
    inside = (target >= 0) & (target < n_rows)

    # Two readouts may belong to one measurement. The one that was not moved is kept, because it is
    # written last.
    realigned = readouts.copy()
    has_readout = np.zeros(n_rows, dtype=bool)
    for written in (inside & (delay != 0), inside & (delay == 0)):
        realigned[order[target[written]]] = readouts[order[written]]
        has_readout[target[written]] = True
    rows = np.sort(order[has_readout])
    sentence = (
        f"readouts were realigned by {', '.join(f'{shift:+d}' for _, _, shift in shifts)}; "
        f"left out without a readout of its own: {counted(n_rows - len(rows), 'row')}"
    )
    return _select_rows(replace(recording, readouts=realigned, repeats=None), rows), sentence


def _with_repeats(recording: Recording, check: Check) -> tuple[Recording, str]:
    """Return the recording with second measurements as repeats, and a sentence that says so.

    Of three measurements at an input, the third is left out.
    """
    first_rows = np.array(check.found["first_rows"])
    rows = np.array(check.found["rows"])
    readouts = np.asarray(recording.readouts)
    dtype = np.result_type(readouts, np.float64)  # which can be complex, and holds NaN
    if recording.repeats is None:
        repeats = np.full(readouts.shape, np.nan, dtype=dtype)
    else:
        repeats = np.array(recording.repeats, dtype=dtype)
    # The first row of each row is the one before it with the same inputs. For a third measurement
    # this is the second one, which is itself among the rows.
    is_second = ~np.isin(first_rows, rows)
    repeats[first_rows[is_second]] = readouts[rows[is_second]]
    other_rows = np.delete(np.arange(len(readouts)), rows)
    sentence = (
        f"{is_second.sum()} rows became repeats of the row with their inputs, "
        f"{np.sum(~is_second)} were left out"
    )
    return _select_rows(replace(recording, repeats=repeats), other_rows), sentence
