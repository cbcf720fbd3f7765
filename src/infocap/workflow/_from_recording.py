"""The way from a recording to a result: its capacities, growth, factors and drift."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from ..basis import ProductBasis
from ..designs import weighted_share, weights_at
from ..diagnostics import References, look_at_references, with_references
from ..dimension import MIN_REFERENCES, indicator, motion_of_reference
from ..errors import Check, DataWarning, InfocapError, warn
from ..estimators import Evidence, conclude
from ..recording import Recording, without_overshoot
from ..result import CapacityResult, Drift, Factors
from ..samples import LabelledRows, Table
from ..typing import ArrayLike, Floats
from ._choose import choose_basis, note_about_choice
from ._from_arrays import EstimateOptions
from ._growth import growth_of_total
from ._provenance import with_provenance

# The spread of the readouts, in whose units changes are told, comes from at most this many rows:
# they give it to 1 %.
MAX_ROWS_FOR_SPREAD = 8192


def estimate_recording(
    recording: Recording, basis: ProductBasis | None, options: EstimateOptions
) -> CapacityResult:
    """Estimate the capacities of a recorded device, and all else that its recording can tell.

    The design index, the times, the repeats and the runs of the recording are used, and the weights
    of its inputs where its plan says so, unless an option says otherwise. Without a basis that of
    the plan is taken, or one as large as the samples allow, and a note says which. Besides the
    capacities the result holds:

    - `growth`: the total as it was when a quarter, a sixteenth, ... of the run had been measured;
    - `factors`: factor analysis, when the recording has noise repeats at a constant input;
    - `drift`: how far the reference moved, when it was measured. Whether the device was steady is
      told among the checks;
    - ``metadata["provenance"]``: the plan and other metadata of the recording, versions and date.

    Growth and factors need all readouts in memory; they are missing for a recording that stays in
    its file (``read(..., in_memory=False)``). A sequence has no growth.
    """
    checks = []
    if basis is None:
        n_samples, n_inputs = np.shape(recording.inputs)
        basis, reasons = choose_basis((n_samples, n_inputs), recording.plan or None)
        checks.append(note_about_choice(reasons))
    if options.law == "declared":
        recording = without_overshoot(recording, basis.families)
    arguments = arguments_of(recording, basis.of_sequences)
    u = arguments.pop("u")
    x = arguments.pop("x")
    if options.law == "declared":
        arguments["sample_weight"] = planned_weights(recording)
    # What the user gave takes the place of what the recording holds.
    given = {name: value for name, value in vars(options).items() if value is not None}
    estimate_options = replace(options, **(arguments | given))

    evidence = estimate_options.gather(u, x, basis)
    references = _references(recording, estimate_options.complex_as)
    if references is not None:
        evidence = _with_findings_of_references(evidence, references)
    method_options = estimate_options.options_of_method
    result = conclude(evidence, estimate_options.method, method_options)

    on_disk = isinstance(recording.readouts, np.memmap)
    in_memory = isinstance(recording.readouts, np.ndarray) and not on_disk
    # A part of a sequence would be another sequence, and a part of recorded inputs another law.
    has_growth = not basis.of_sequences and options.law == "declared" and not result.no_numbers
    if in_memory and has_growth:
        method = estimate_options.chosen_method
        growth = growth_of_total(evidence, method, method_options, result)
        result = replace(result, growth=growth)
    checks += recording.checks
    if in_memory and recording.noise is not None:
        factors, factor_checks = _factors(recording, estimate_options)
        result = replace(result, factors=factors)
        checks += factor_checks
    if references is not None:
        result = replace(result, drift=_drift(references))
    for check in checks:
        if check.kind == "warning":
            warn(check)
    return with_provenance(replace(result, checks=(*result.checks, *checks)), recording)


def arguments_of(recording: Recording, is_sequence: bool) -> dict[str, Any]:
    """Return the arguments of `estimate` that a recording holds.

    Inputs and readouts know the names of their columns.

    Of a sequence they are lists, where the recording has several runs, and the washout of its plan
    is among them.
    """
    arguments: dict[str, Any] = {
        "u": _labelled(recording.inputs, recording.input_names),
        "x": _labelled(recording.readouts, recording.channel),
        "repeats": recording.repeats,
    }
    if not is_sequence:
        arguments["time"] = recording.time
        arguments["design_index"] = np.asarray(recording.design_index)
        return arguments
    runs = recording.runs
    if len(runs) > 1:
        for name, table in arguments.items():
            arguments[name] = None if table is None else [table[run] for run in runs]
    if recording.washout is not None:
        arguments["washout"] = recording.washout
    return arguments


def _labelled(table: ArrayLike, names: tuple[str, ...]) -> Any:
    """Return the table with the names of its columns; the table alone where they have no names."""
    return LabelledRows(table, names) if np.shape(table)[1:] == (len(names),) else table


def planned_weights(recording: Recording) -> Floats | None:
    """Return the weights of the inputs.

    None where these were drawn from the density of the basis.
    """
    plan = recording.plan
    if not plan.get("weighted"):
        return None
    n_inputs = np.shape(recording.inputs)[1]
    planned_basis, _ = choose_basis((len(recording.design_index), n_inputs), plan)
    u = np.asarray(recording.inputs[:], dtype=float)
    return weights_at(planned_basis, u, weighted_share(plan))


def _factors(recording: Recording, options: EstimateOptions) -> tuple[Factors, list[Check]]:
    """Return Malinowski's indicator function with its warnings, or the reason why there is none."""
    assert recording.noise is not None
    noise = _as_real(recording, recording.noise, options.complex_as)
    readouts = _as_real(recording, recording.readouts, options.complex_as)
    if options.nan_policy == "omit":
        noise = noise[np.isfinite(noise).all(axis=1)]
        readouts = readouts[np.isfinite(readouts).all(axis=1)]
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        try:
            analysis = indicator(readouts, repeats=noise)
        except InfocapError as problem:
            reason = Check(f"no factor analysis: {problem}")
            return Factors(len(noise), problem=str(problem)), [reason]
    checks = [
        Check(f"factor analysis: {check}") for check in analysis.checks if check.kind == "warning"
    ]
    return Factors(len(noise), analysis.n_factors, tuple(analysis.values.tolist())), checks


def _references(recording: Recording, complex_as: str | None) -> References | None:
    """Return the references in the order of acquisition; None where there are too few."""
    if recording.reference is None or len(recording.reference) < MIN_REFERENCES:
        return None
    readouts = _as_real(recording, recording.reference, complex_as)
    n_references = len(readouts)
    input_numbers = np.zeros(n_references, dtype=int)
    if recording.reference_inputs is not None:
        inputs = np.asarray(recording.reference_inputs)
        input_numbers = np.unique(inputs, axis=0, return_inverse=True)[1].ravel()
    order = np.arange(n_references)
    time = None
    rows_before = None
    if recording.reference_time is not None:
        order = np.argsort(np.asarray(recording.reference_time), kind="stable")
        time = np.asarray(recording.reference_time)[order]
        if recording.time is not None:
            rows_before = np.searchsorted(np.sort(np.asarray(recording.time)), time)
    labelled = _labelled(recording.readouts, recording.channel)
    table = Table(labelled, "readouts", complex_as)
    equally_spaced = np.linspace(0, table.shape[0] - 1, MAX_ROWS_FOR_SPREAD)
    return References(
        readouts=np.asarray(readouts, dtype=float)[order],
        input_numbers=input_numbers[order],
        rows_before=rows_before,
        time=time,
        channels=[table.describe_column(k) for k in range(table.shape[1])],
        samples=np.asarray(table.read_rows(np.unique(equally_spaced.astype(int))), dtype=float),
    )


def _with_findings_of_references(evidence: Evidence, references: References) -> Evidence:
    """Return the evidence with what the references say among its findings."""
    steadiness = look_at_references(references)
    if steadiness is None:
        return evidence
    findings_of_rows = evidence.data_findings
    return replace(evidence, data_findings=lambda: with_references(findings_of_rows(), steadiness))


def _drift(references: References) -> Drift | None:
    """Return how the references moved, in units of the spread of each readout over the samples."""
    samples = references.samples
    # Differences from the first row lose no digits to an offset.
    differences = samples - np.nan_to_num(samples[0], posinf=0.0, neginf=0.0)
    spread = np.ma.masked_invalid(differences).std(axis=0).filled(0.0)
    motion = motion_of_reference(references.readouts, spread, references.input_numbers)
    if motion is None:
        return None
    times = np.arange(len(references.readouts)) if references.time is None else references.time
    return Drift(
        time=tuple((times - times[0]).tolist()),
        clock="s" if times.dtype.kind == "f" else "order",
        distance=tuple(motion.distance.tolist()),
        size=motion.size,
        noise=motion.noise,
    )


def _as_real(recording: Recording, readouts: ArrayLike, complex_as: str | None) -> Floats:
    """Return all rows of what was read out, made real in the same way as the readouts."""
    values = np.asarray(readouts)
    if np.iscomplexobj(recording.readouts):
        values = values.astype(complex)
    table = Table(values, "readouts", complex_as)
    return np.asarray(table.read(0, table.shape[0]))
