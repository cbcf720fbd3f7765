"""All that a recording can tell, as one result: capacities, growth with N, factors, drift, provenance."""

import platform
import warnings
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from .._formatting import percent
from .._version import __version__
from ..basis._product import ProductBasis, product_basis
from ..designs import design_fingerprint, weights_at
from ..dimension._spectra import indicator
from ..errors import Check, DataWarning, InfocapError, ParameterError, warn
from ..recording._recording import Recording
from ..result._capacity_result import CapacityResult, Drift, Factors, Growth
from ..samples._sources import Labelled
from ..samples._table import Table
from ..typing import Floats
from ._choose import choose_basis, said_of_choice
from ._from_arrays import estimate_arrays

# Sizes of the run at which the total is looked at, each half of the next, and samples per readout in the smallest.
STEPS, LEAST = 6, 2
# Variance of the reference, relative to what neighbouring measurements say is noise, from which the device drifted;
# over the root of the number of references, by how much that ratio scatters by chance; and fewest references that tell.
DRIFTING, CHANCE, REFERENCES = 2.0, 6.0, 8
# Standard deviations of readouts come from at most this many rows, which know them to one per cent.
ROWS = 8192


def estimate_recording(
    recording: Recording,
    basis: ProductBasis | None = None,
    *,
    family: Any = None,
    complex_as: str | None = None,
    nan_policy: str = "raise",
    growth: bool = True,
    **settings: Any,
) -> CapacityResult:
    """Estimate the capacities of a recorded device, with everything else that its recording can tell.

    The design index, the times, the repeats and the runs of the recording are used, and the weights of its inputs
    where its plan says so. Without a basis that of the plan is taken, or one as large as the samples allow, and a note
    says which. Beside the capacities the result holds:

    - `growth`: the total as it was when a half, a quarter, ... of the run had been measured;
    - `factors`: factor analysis, when the recording has noise repeats at a constant input;
    - `drift`: how far the reference moved, when it was measured;
    - ``metadata["provenance"]``: the plan and other metadata of the recording, versions and date.

    Growth and factors need all readouts in memory; they are left out for a recording that stays in its file
    (``read(..., in_memory=False)``).
    """
    plan = recording.metadata.get("plan")
    if not isinstance(plan, dict):
        plan = {}
    notes: list[Check] = []
    if basis is None:
        chosen_family = {} if family is None else {"family": family}
        shape = np.shape(recording.inputs)
        basis, reasons = choose_basis((shape[0], shape[1]), plan or None, **chosen_family)
        notes.append(said_of_choice(reasons))
    elif family is not None:
        raise ParameterError(
            f"`family={family!r}` goes without a basis, which has its own; leave out one of them."
        )
    settings |= {"complex_as": complex_as, "nan_policy": nan_policy}
    if "sample_weight" not in settings and plan.get("weighted"):
        names = ("max_degree", "index_set", "max_interactions")
        planned_basis = product_basis(basis.families, **{name: plan[name] for name in names})
        settings["sample_weight"] = weights_at(
            planned_basis, np.asarray(recording.inputs[:], dtype=float)
        )
    arguments = rows_of(recording, basis.of_sequences) | settings
    result = estimate_arrays(arguments.pop("u"), arguments.pop("x"), basis, **arguments)
    checks = [check if isinstance(check, Check) else Check(check) for check in recording.checks]
    found: dict[str, Any] = {"metadata": result.metadata | {"provenance": provenance(recording)}}
    in_memory = isinstance(recording.readouts, np.ndarray) and not isinstance(
        recording.readouts, np.memmap
    )
    if growth and in_memory and not basis.of_sequences:  # a part of a sequence would be another one
        found["growth"] = _growth(recording, basis, result, settings)
    if recording.noise is not None and in_memory:
        found["factors"], factor_checks = _factors(recording, nan_policy, complex_as)
        checks += factor_checks
    if recording.reference is not None and len(recording.reference) >= REFERENCES:
        found["drift"], drift_checks = _drift(recording, complex_as)
        checks += drift_checks
    for check in checks:
        if check.kind == "warning":
            warn(check)
    return replace(result, checks=(*result.checks, *notes, *checks), **found)


def rows_of(recording: Recording, sequence: bool) -> dict[str, Any]:
    """What `estimate` takes from a recording; of a sequence in lists where it has several runs, with its washout."""
    named = ((recording.inputs, recording.input_names), (recording.readouts, recording.channel))
    u, x = (
        Labelled(one, names) if np.shape(one)[1:] == (len(names),) else one for one, names in named
    )
    rows: dict[str, Any] = {"u": u, "x": x, "repeats": recording.repeats}
    if not sequence:
        return rows | {"time": recording.time, "design_index": np.asarray(recording.design_index)}
    if len(runs := recording.runs) > 1:
        rows = {
            name: None if one is None else [one[run] for run in runs] for name, one in rows.items()
        }
    return rows | ({} if recording.washout is None else {"washout": recording.washout})


def _numbers(recording: Recording, name: str, complex_as: str | None) -> Floats:
    """All rows of something that was read out, as real as the readouts become for the estimate."""
    part = np.asarray(getattr(recording, name))
    table = Table(
        part.astype(complex) if np.iscomplexobj(recording.readouts) else part, name, complex_as
    )
    return np.asarray(table.read(0, table.shape[0]))


def provenance(recording: Recording) -> dict[str, Any]:
    """Where a result comes from: the plan and other metadata of the recording, versions and date."""
    known = {"estimated": datetime.now(UTC).isoformat(timespec="seconds"), "infocap": __version__}
    known |= {"python": platform.python_version()} | {
        name: version(name) for name in ("numpy", "scipy")
    }
    known |= {"readout_unit": recording.readout_unit} if recording.readout_unit else {}
    plan = recording.metadata.get("plan")
    known |= {"design": design_fingerprint(plan)} if isinstance(plan, dict) and plan else {}
    return known | recording.metadata


def _growth(
    recording: Recording, basis: ProductBasis, result: CapacityResult, settings: dict[str, Any]
) -> Growth:
    """The total from the rows measured first: what an earlier stop would have given."""
    n, when = len(recording.design_index), recording.time
    order = np.arange(n) if when is None else np.argsort(when, kind="stable")
    sizes = [n >> halvings for halvings in range(STEPS - 1, 0, -1)]
    known, weights = [], settings.get("sample_weight")
    for size in (one for one in sizes if one >= LEAST * result.maximum):
        rows = np.sort(order[:size])
        own = settings | {"sample_weight": None if weights is None else np.asarray(weights)[rows]}
        with (
            warnings.catch_warnings(),
            suppress(InfocapError),
        ):  # rows that are too few tell nothing
            warnings.simplefilter("ignore", DataWarning)  # the whole says what there is to say
            known.append(
                estimate_arrays(recording.inputs[rows], recording.readouts[rows], basis, **own)
            )
    known.append(result)
    errors = tuple(
        one.total_standard_error for one in known if one.total_standard_error is not None
    )
    return Growth(
        tuple(one.n_samples for one in known),
        tuple(one.total for one in known),
        errors if len(errors) == len(known) else None,
    )


def _factors(
    recording: Recording, nan_policy: str, complex_as: str | None
) -> tuple[Factors, list[Check]]:
    """Malinowski's indicator function, or why there is none."""
    noise, readouts = (_numbers(recording, name, complex_as) for name in ("noise", "readouts"))
    if nan_policy == "omit":
        noise, readouts = (part[np.isfinite(part).all(axis=1)] for part in (noise, readouts))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        try:
            found = indicator(readouts, repeats=noise)
        except InfocapError as problem:
            return Factors(len(noise), problem=str(problem)), [
                Check(f"no factor analysis: {problem}")
            ]
    said = [
        Check(f"factor analysis: {one.message}")
        for one in caught
        if issubclass(one.category, DataWarning)
    ]
    return Factors(len(noise), found.n_factors, tuple(found.values.tolist())), said


def _drift(recording: Recording, complex_as: str | None = None) -> tuple[Drift | None, list[Check]]:
    """How the reference moved, in units of the spread of each readout over the samples.

    Neighbouring measurements of the reference differ by noise; if the whole run scatters much more than they do,
    the device moved slowly (von Neumann's ratio).
    """
    reference = _numbers(recording, "reference", complex_as)
    table = Table(recording.readouts, "readouts", complex_as)
    values = table.take(np.unique(np.linspace(0, table.shape[0] - 1, ROWS).astype(int)))
    # Differences from the first row lose no digits to an offset.
    values = np.ma.masked_invalid(values - np.nan_to_num(values[0], posinf=0.0, neginf=0.0))
    deviation = values.std(axis=0).filled(0.0)
    live = (deviation > 0) & np.isfinite(reference).all(axis=0)
    if not live.any():
        return None, []
    moved: Floats = (reference - reference[0])[:, live] / deviation[
        live
    ]  # a constant stays exactly zero
    moved = moved - moved.mean(axis=0)
    variance = float(np.mean(moved**2)) * len(moved) / (len(moved) - 1)
    noise = float(np.mean(np.diff(moved, axis=0) ** 2)) / 2
    excess = variance / noise if noise > 0 else np.inf if variance > 0 else 1.0
    times = np.arange(len(moved)) if recording.reference_time is None else recording.reference_time
    size = float(np.sqrt(max(variance - noise, 0.0)))
    found = Drift(
        time=tuple((times - times[0]).tolist()),
        clock="s" if np.asarray(times).dtype.kind == "f" else "order",
        moved=tuple(np.sqrt(np.mean((moved - moved[0]) ** 2, axis=1)).tolist()),
        size=size,
        noise=float(np.sqrt(noise)),
    )
    if excess <= max(DRIFTING, 1 + CHANCE / np.sqrt(len(moved))):
        return found, []
    return found, [
        Check(
            f"the device drifted: its reference moved by {percent(size)} of the readouts' spread (root mean square), "
            f"and scatters {excess:.1f} times more over the run than from one measurement to the next; "
            "keep its temperature and power steady, or measure faster."
        )
    ]
