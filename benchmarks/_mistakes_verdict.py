"""What became of a mistake: is the answer wrong, and what do the checks of the data say?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from zlib import crc32

import numpy as np

import infocap
from _mistakes_devices import DEVICES, Device
from _mistakes_kinds import Kind

# An answer is wrong if its total, or one of its capacities, differs by more than each of these limits from that of
# clean data: an amount that matters, standard errors of the difference, and a share of the total. They were fixed
# before any check was judged by them.
MAX_TOTAL_DIFFERENCE = 0.1
MAX_TOTAL_STANDARD_ERRORS = 4.0
MAX_TOTAL_SHARE = 0.02
MAX_CAPACITY_DIFFERENCE = 0.05
MAX_CAPACITY_STANDARD_ERRORS = 5.0

# Causes that infocap had other words for when this benchmark was written, so that it can be scored, too. The last
# three are words of warnings that had no cause.
OLD_WORDS = {
    "hum": "period",
    "unsteady": "response",
    "no readout": "clock",
    "readouts ahead of the inputs": "later inputs",
    "inputs that depend on each other": "inputs depend",
    "a washout too short": "washout",
}
# Causes that are told with their size whether they are a mistake or not, because they may be part of the device:
# one behind a converter of few bits is a device, too. A note that gives a size that matters names them.
TOLD_AS_SIZES = frozenset({"rounded readouts"})
MIN_SIZE = 0.02
# Clean runs of a device; a warning without a cause that one of them gets is not counted.
N_CLEAN_RUNS = 4
# Stands in place of the cause of a warning that names none.
GENERIC = "generic"

# What may become of a case: nothing is said, only something without a cause, another cause, the right cause; no
# answer; an error that is none of infocap's own.
SILENT = "silent"
ONLY_GENERIC = "generic"
OTHER_CAUSE = "other cause"
NAMED = "named"
REFUSED = "refused"
CRASHED = "crashed"
OUTCOMES = (SILENT, ONLY_GENERIC, OTHER_CAUSE, NAMED, REFUSED, CRASHED)


@dataclass(frozen=True)
class Case:
    """One kind of mistake on one device.

    Attributes
    ----------
    wrong
        Whether the answer differs from that of clean data, or is refused.
    causes
        Causes of the warnings of `diagnose`, the first one first, those told beneath another last, and a right
        cause whose size a note tells.
    told_elsewhere
        Causes in its notes and in the warnings of `estimate`, which do not decide the outcome.
    difference
        By how much the total differs, None where there is no answer.
    message
        The error, where there is one.
    """

    device: str
    kind: str
    has_memory: bool
    device_part: str
    kind_part: str
    debatable: bool
    traceless: bool
    wrong: bool
    outcome: str
    first_named: bool
    causes: tuple[str, ...]
    told_elsewhere: tuple[str, ...]
    named_elsewhere: bool
    difference: float | None
    message: str = ""


def number_of(name: str) -> int:
    """Return a number that stands for a name in a seed."""
    return crc32(name.encode())


@dataclass(frozen=True)
class CleanAnswers:
    """The answer on fresh clean data of the same size, and what is usually said of this device."""

    first: infocap.CapacityResult
    usual_warnings: frozenset[str]


@cache
def clean_answers(device_name: str) -> CleanAnswers:
    """Estimate on a few clean data sets of a device, the first of which is compared with."""
    device = DEVICES[device_name]
    answers = []
    for number in range(N_CLEAN_RUNS):
        run = device.run([number_of(device_name), number])
        answers.append(infocap.estimate(run.u, run.x, device.basis))
    warned = [beginning_of(check) for answer in answers for check in answer.warnings]
    return CleanAnswers(answers[0], frozenset(warned))


def joint_error(first: object, second: object) -> object:
    """Return the standard error of a difference; errors that a method does not give count as zero."""
    return np.hypot(0.0 if first is None else first, 0.0 if second is None else second)


def is_wrong(answer: infocap.CapacityResult, clean: infocap.CapacityResult) -> bool:
    """Return whether an answer differs from that of clean data by more than chance and more than a little."""
    error = joint_error(answer.total_standard_error, clean.total_standard_error)
    limit = max(
        MAX_TOTAL_DIFFERENCE,
        MAX_TOTAL_STANDARD_ERRORS * float(error),
        MAX_TOTAL_SHARE * clean.total,
    )
    errors = joint_error(answer.standard_error, clean.standard_error)
    limits = np.maximum(MAX_CAPACITY_DIFFERENCE, MAX_CAPACITY_STANDARD_ERRORS * errors)
    total_agrees = abs(answer.total - clean.total) <= limit
    capacities_agree = np.all(np.abs(answer.capacity - clean.capacity) <= limits)
    return not (total_agrees and capacities_agree)


def cause_of(check: infocap.errors.Check) -> str:
    """Return the cause that a check names, in the words of the table."""
    cause = check.found.get("cause")
    if cause is None:
        return OLD_WORDS.get(str(check.found.get("unreliable")), GENERIC)
    return OLD_WORDS.get(str(cause), str(cause))


def is_told_as_size(check: infocap.errors.Check) -> bool:
    """Return whether a check tells the size of what may be part of the device."""
    return cause_of(check) in TOLD_AS_SIZES and check.found.get("capacity", 0.0) >= MIN_SIZE


def told_beneath(checks: Sequence[infocap.errors.Check]) -> tuple[infocap.errors.Check, ...]:
    """Return the findings that are told beneath the first one of a sort."""
    beneath = [data for check in checks for data in check.found.get("also", ())]
    return tuple(infocap.errors.Check.from_dict(data) for data in beneath)


def beginning_of(check: infocap.errors.Check) -> str:
    """Return what is the same in all warnings of one sort: the first words without numbers."""
    words = [word for word in str(check).split() if not any(letter.isdigit() for letter in word)]
    return " ".join(words[:5])


def outcome_of(causes: Sequence[str], accepted: frozenset[str]) -> str:
    """Return what became of a case whose estimation was not refused."""
    if not causes:
        return SILENT
    if accepted.intersection(causes):
        return NAMED
    return ONLY_GENERIC if set(causes) == {GENERIC} else OTHER_CAUSE


def judge(device: Device, kind: Kind) -> Case:
    """Make the mistake, estimate with the default method, and let `diagnose` look at the data."""
    run = device.run([number_of(device.name), number_of(kind.name)])
    accepted = kind.accepted(device)
    causes: list[str] = []
    elsewhere: list[str] = []
    difference: float | None = None
    message = ""
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        clean = clean_answers(device.name)
        u, x = kind.make(run)
        try:
            answer = infocap.estimate(u, x, device.basis)
            difference = float(answer.total - clean.first.total)
            wrong = is_wrong(answer, clean.first)
            recording = infocap.Recording(u, x, np.arange(len(u)))
            checks = infocap.diagnose(recording, basis=device.basis).checks
            told = checks + told_beneath(checks)
            causes = [cause_of(check) for check in told if check.kind == "warning"]
            sizes = [cause_of(check) for check in told if is_told_as_size(check)]
            causes += [cause for cause in sizes if cause in accepted]
            elsewhere = [cause_of(check) for check in told if check.kind != "warning"]
            elsewhere += [cause_of(check) for check in answer.warnings]
            beginnings = {beginning_of(check) for check in answer.warnings}
            if not causes and beginnings - clean.usual_warnings:
                causes = [GENERIC]
            outcome = outcome_of(causes, accepted)
        except infocap.errors.InfocapError as error:
            wrong, outcome, message = True, REFUSED, str(error)
        except Exception as error:
            wrong, outcome, message = True, CRASHED, f"{type(error).__name__}: {error}"
    return Case(
        device=device.name,
        kind=kind.name,
        has_memory=device.has_memory,
        device_part=device.part,
        kind_part=kind.part,
        debatable=kind.debatable,
        traceless=kind.leaves_no_trace(device),
        wrong=wrong,
        outcome=outcome,
        first_named=outcome == NAMED and causes[0] in accepted,
        causes=tuple(dict.fromkeys(causes)),
        told_elsewhere=tuple(dict.fromkeys(elsewhere)),
        named_elsewhere=outcome != NAMED and not accepted.isdisjoint(elsewhere),
        difference=difference,
        message=message[:200],
    )
