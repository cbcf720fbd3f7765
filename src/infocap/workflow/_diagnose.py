"""diagnose: which checks of the data a data set passes, and what is wrong with it."""

import warnings
from dataclasses import dataclass

import numpy as np

from .._formatting import counted
from .._validation import checks_arguments, shown
from ..basis import ProductBasis, delayed_basis, lowest_degrees, product_basis
from ..designs import planned_inputs
from ..diagnostics import (
    CHANGES_CHECK,
    DATA,
    N_LOW_FUNCTIONS,
    NEEDS,
    REFERENCES_CHECK,
    STEADY,
    data_checks,
)
from ..errors import Check, DataError, DataWarning, ParameterError
from ..estimators import find_mistakes
from ..kernels import SMALLEST_DIVISOR
from ..recording import Recording, fold_recording, recording_of_trace
from ..samples import TraceSteps, as_array, as_columns, fold
from ..typing import ArrayLike, Floats, Integers
from ._choose import choose_basis
from ._from_arrays import EstimateOptions
from ._from_recording import arguments_of, estimate_recording

# What is looked at besides the checks of data, and the cause that a finding about it has.
OTHER_CHECKS = {
    "no missing values": "missing",
    "inputs within their domain": "refused",
    "inputs of the plan": "another design",
}
# Fraction of an input's spread by which the value that was recorded may differ from the value that
# was planned.
MAX_DEVIATION_FROM_PLAN = 0.02
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
    basis
        What tells how the inputs are distributed; None where they were refused.

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
    basis: ProductBasis | None = None

    def __repr__(self) -> str:
        lines = [str(self.recording)]
        lines += [f"  passed: {name}" for name in self.passed]
        lines += [f"  not looked at: {name}" for name in self.skipped]
        lines += [f"  {check.kind}: {check}" for check in self.checks]
        return "\n".join(lines)

    def repaired(self) -> Recording | None:
        """Return the recording with its exact findings repaired; None where nothing is exact.

        One call repairs, in this order:

        1. rows that are exact copies of others: one is kept;
        2. rows with the inputs of others and readouts of their own: they become `repeats`, unless
           an input was measured three times, because `repeats` hold one second measurement;
        3. cells with an instrument's code: they become missing (NaN), and the rows stay;
        4. a constant shift or slips of memoryless devices, if the realigned rows pass all tests.

        No row is left out because it misfits: glitches, stale or foreign rows are named, and you
        decide. Missing values stay missing. Nothing is moved where the order of the rows tells
        nothing (a sorted file, a sweep). Copies and codes are facts in any order.

        ``metadata["repairs"]`` has an entry for each repair: the findings, what was done, the
        version, and which rows and cells, counted from 0 in the recording before that repair.

        Examples
        --------
        >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
        >>> u = infocap.draw(basis, 1024, seed=1)
        >>> x = infocap.systems.RandomFeatures(2, 5, noise=0.01)(u, seed=1)
        >>> infocap.diagnose(u, x, basis).repaired() is None
        True
        >>> late = infocap.diagnose(u, np.roll(x, 3, axis=0), basis).repaired()
        >>> late.metadata["repairs"][0]["shifts"]
        [[0, 1024, 3]]
        >>> np.array_equal(late.readouts, x[:1021])
        True
        """
        from ._repair import repair

        return repair(self).recording


@checks_arguments
def diagnose(
    u: ArrayLike | Recording,
    x: ArrayLike | None = None,
    basis: ProductBasis | None = None,
    *,
    rows_per_step: int | None = None,
    offset: int = 0,
    mask: ArrayLike | None = None,
    n_components: int | str | None = None,
) -> Diagnosis:
    """Look at a data set before any estimation, by the same checks that `estimate` runs.

    Parameters
    ----------
    u, x
        Inputs and readouts, or a `Recording` in place of both.
    basis
        It tells how the inputs are distributed; by default that of the plan, else uniform over a
        common interval.
    rows_per_step, offset, mask
        How the rows of a time-multiplexed trace are steps, as for `estimate`.
    n_components
        As for `estimate`: then the values of single channels are looked at in the channels, and
        all else in so many components of them.

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
    steps = TraceSteps.wanted(rows_per_step, offset, mask)
    if isinstance(u, Recording):
        recording = u if steps is None else fold_recording(u, steps)
    elif x is not None and steps is not None:
        recording = recording_of_trace(fold(u, x, steps))
    elif x is not None:
        inputs = as_array(as_columns(u, "u"), "u")
        readouts = as_array(as_columns(x, "x"), "x")
        if not readouts.ndim:
            raise DataError(f"`x={shown(x)}` must be readouts, (samples, channels).")
        recording = Recording(inputs, readouts, np.arange(len(readouts)))
    else:
        raise ParameterError(
            "`x=None`: give inputs and readouts, diagnose(u, x, basis), or one Recording."
        )
    inputs = np.asarray(recording.inputs)
    missing = rows_with_missing_values(recording)
    checks: list[Check] = []
    if len(missing):
        checks.append(
            Check(
                f"missing values in {counted(len(missing), 'row')}; leave these rows out in the "
                "estimation (nan_policy='omit', or --nan-policy omit).",
                cause="missing",
                rows=missing.tolist(),
            )
        )
    planned_basis = None
    declared_basis = None
    if recording.plan.get("n_inputs") == inputs.shape[1]:
        planned_basis, _ = choose_basis((inputs.shape[0], inputs.shape[1]), recording.plan)
        checks += _deviations_from_plan(recording, planned_basis)
    try:
        declared_basis = basis or planned_basis or _uniform_basis(inputs)
        checks += _checks_of_data(recording, declared_basis, n_components)
    except DataError as problem:
        checks.append(Check(str(problem), cause="refused"))
        if declared_basis is None or not _has_more_channels_than_rows(recording):
            return Diagnosis(recording, tuple(checks), (), (*DATA, *OTHER_CHECKS), declared_basis)
        checks += _checks_without_estimation(recording, declared_basis)

    n_samples = len(recording.design_index) - len(missing)
    names = list(data_checks(declared_basis.of_sequences))
    skipped = tuple(name for name in names if n_samples < NEEDS.get(name, 0))
    causes = {check.found.get("cause") for check in checks}
    if STEADY in causes:
        names.append(REFERENCES_CHECK)
    not_passed = {check.found.get("looked_for") for check in checks}
    if REFERENCES_CHECK in not_passed:
        not_passed.add(CHANGES_CHECK)
    not_passed |= {name for name, cause in OTHER_CHECKS.items() if cause in causes}
    if planned_basis is None:
        not_passed.add("inputs of the plan")
    left_out = {*not_passed, *skipped}
    passed = tuple(name for name in (*names, *OTHER_CHECKS) if name not in left_out)
    return Diagnosis(recording, tuple(checks), passed, skipped, declared_basis)


def rows_with_missing_values(recording: Recording) -> Integers:
    """Return the rows in which an input or a readout is missing."""
    inputs_finite = np.isfinite(np.asarray(recording.inputs)).all(axis=1)
    readouts_finite = np.isfinite(np.asarray(recording.readouts)).all(axis=1)
    return np.flatnonzero(~(inputs_finite & readouts_finite))


def _checks_of_data(
    recording: Recording, basis: ProductBasis, n_components: int | str | None
) -> list[Check]:
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
        options = EstimateOptions(
            method="raw", nan_policy=nan_policy, complex_as="split", n_components=n_components
        )
        result = estimate_recording(recording, low, options)
    return [
        check
        for check in result.checks
        if "total" not in check.found and "missing" not in check.found
    ]


def _has_more_channels_than_rows(recording: Recording) -> bool:
    n_rows, n_channels = np.shape(recording.readouts)
    return n_rows - len(rows_with_missing_values(recording)) <= n_channels + 1


def _checks_without_estimation(recording: Recording, basis: ProductBasis) -> list[Check]:
    """Return what is found in the data of more channels than rows, which allow no estimation."""
    arguments = arguments_of(recording, basis.of_sequences)
    arguments.pop("repeats")
    if not basis.of_sequences:
        arguments["nan_policy"] = "omit"
    return find_mistakes(basis=basis, complex_as="split", **arguments)


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
            f"file (seed {recording.plan['seed']}), the first of them row {np.argmax(deviating)}: "
            "they may be of another seed or run; read the inputs that were sent.",
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
