"""repair: what exact findings allow to put right in a recording, with a record of it.

A finding is exact where nothing but the mistake explains it: rows that are equal to the last digit,
cells with a number that instruments write for no number, readouts that fit the inputs of other rows
and pass all tests there. Rows that only misfit stay: a device may do this, and the user decides.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .._version import __version__
from ..errors import Check
from ..recording import Recording
from ._diagnose import Diagnosis, diagnose
from ._repair_change import Change, Refusal, in_few_words, warnings_of, warnings_with_causes
from ._repair_codes import set_codes_to_missing
from ._repair_copies import keep_one_copy, objection_in_a_sweep, turn_into_repeats
from ._repair_shifts import objection_by_tests_of_order, realign


@dataclass(frozen=True, eq=False)
class Repair:
    """A kind of repair: the causes of the findings it repairs, and the function that does it."""

    causes: tuple[str, ...]
    change: Callable[[Diagnosis], Change | Refusal]
    # Compares the diagnoses before and after the change. It returns why the change is not kept, or
    # None where it is.
    objection: Callable[[Diagnosis, Diagnosis], str | None] = lambda before, after: None


@dataclass(frozen=True, eq=False)
class RepairOutcome:
    """What was repaired, and why the rest was not; `recording` is None where nothing was."""

    recording: Recording | None
    diagnosis: Diagnosis  # of the outcome
    done: tuple[str, ...]
    refusals: tuple[str, ...]

    @property
    def reason(self) -> str:
        """One sentence: why nothing, or nothing more, was changed."""
        if self.refusals:
            return "; ".join(self.refusals)
        findings = warnings_of(self.diagnosis)
        if not findings:
            return "nothing is wrong"
        return (
            f"no finding is exact ({in_few_words(findings)}), so nothing says what the data "
            "should be; look at what is named, and decide"
        )


# What is repaired, in this order: rows are compared as they were written, before codes become
# missing; shifts come last, because codes hide them.
REPAIRS = (
    Repair(("stacked",), keep_one_copy),
    Repair(("repeats",), turn_into_repeats, objection_in_a_sweep),
    Repair(("codes",), set_codes_to_missing),
    Repair(("shift", "slip"), realign, objection_by_tests_of_order),
)


def repair(diagnosis: Diagnosis) -> RepairOutcome:
    """Repair all that is exact, in the order of `REPAIRS`, each on the outcome of the one before.

    The outcome of each repair is diagnosed again, because one mistake may hide another.
    """
    done: list[str] = []
    refusals: list[str] = []
    for kind in REPAIRS:
        if not warnings_with_causes(diagnosis, kind.causes):
            continue
        diagnosis = _in_memory(diagnosis)
        findings = warnings_with_causes(diagnosis, kind.causes)
        if not findings:
            continue
        change = kind.change(diagnosis)
        if isinstance(change, Refusal):
            refusals.append(change.reason)
            continue
        after = diagnose(_with_record(change, findings), basis=diagnosis.basis)
        objection = kind.objection(diagnosis, after)
        if objection is not None:
            refusals.append(objection)
            continue
        done.append(change.done)
        diagnosis = after
    recording = diagnosis.recording if done else None
    return RepairOutcome(recording, diagnosis, tuple(done), tuple(refusals))


def _in_memory(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis of the recording in memory: of files only parts were looked at."""
    recording = diagnosis.recording
    readouts = recording.readouts
    if isinstance(readouts, np.ndarray) and not isinstance(readouts, np.memmap):
        return diagnosis
    loaded = replace(
        recording, inputs=np.array(recording.inputs), readouts=np.array(recording.readouts)
    )
    return diagnose(loaded, basis=diagnosis.basis)


def _with_record(change: Change, findings: list[Check]) -> Recording:
    """Return the changed recording with a record of the change as the last of its repairs."""
    metadata = change.recording.metadata
    record = {
        "findings": [{"cause": check.found["cause"], "text": str(check)} for check in findings],
        "done": change.done,
        "infocap": __version__,
        **change.details,
    }
    repairs = [*metadata.get("repairs", []), record]
    return replace(change.recording, metadata=metadata | {"repairs": repairs})
