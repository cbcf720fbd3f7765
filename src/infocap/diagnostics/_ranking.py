"""Which finding comes first, and which ones are kept beneath it.

One mistake shows in several tests: rows that slipped hold the inputs of other rows, fit their own
badly, and look like glitches. So of the findings that rest on the fit of the readouts to their
inputs one is reported, and the others are named in it and kept with it as data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._formatting import join_names
from ..errors import Check
from ._finding import MIN_CAPACITY_OF_WARNING, cost_in_words

# What is wrong with the inputs, or is a fact of the values alone. Each is reported by itself.
FACTS = (
    "held inputs",
    "rounded inputs",
    "domain",
    "shape of inputs",
    "correlated inputs",
    "stacked",
    "repeats",
    "inputs depend",
    "constant input",
    "periodic inputs",
    "short recording",
    "few rows",
    "slow inputs",
    "closed loop",
    "heavy noise",
    "excursions",
    "short window",
    "absent functions",
    "not told apart",
    "one stretch",
    "order of inputs",
    "monitor",
    "uncorrelated",
    "clipped",
    "rounded readouts",
)
# Facts of values and rows that also spoil the fit. They are reported by themselves, too, and what
# rests on the fit is kept beneath the first of them.
FACTS_THAT_SPOIL_THE_FIT = (
    "units",
    "codes",
    "interpolated",
    "copied rows",
    "filled cells",
    "batches",
    "frozen",
)
# What rests on the fit: order, rows, time, values; and stale readouts, which a slip leaves, too.
# The first of these is reported, the others are kept beneath it.
RESTS_ON_THE_FIT = (
    "shuffled",
    "interleaved",
    "shift",
    "slip",
    "gap",
    "stale",
    "late input",
    "late channels",
    "nothing",
    "no effect",
    "memory",
    "swapped rows",
    "later inputs",
    "neighbours",
    "foreign rows",
    "clock",
    "washout",
    "response",
    "drift",
    "noise",
    "period",
    "gain steps",
    "wrapped",
    "missing codes",
    "glitches",
    "outlying",
)
# What says the same in other words, and is kept beneath it as data without a word.
FOLLOWS_FROM = {"held inputs": ("inputs depend", "order of inputs")}
RANKING = (*FACTS, *FACTS_THAT_SPOIL_THE_FIT, *RESTS_ON_THE_FIT)
_RANK = {cause: rank for rank, cause in enumerate(RANKING)}

# What is left out where a finding is kept beneath another one: it is about that one alone.
LEFT_OUT_BENEATH = ("excerpt", "looked_for", "unreliable")


def cause_of(check: Check) -> str:
    """Return the cause that a check names, or an empty text."""
    return str(check.found.get("cause", ""))


def _key(check: Check) -> tuple[bool, int]:
    """Return a key that puts warnings first, and among them causes in the order of the ranking."""
    return check.kind != "warning", _RANK.get(cause_of(check), len(RANKING))


def one_cause_first(checks: Iterable[Check]) -> list[Check]:
    """Return the checks in their order, with all that rest on the fit joined into one.

    >>> drift = Check("readouts drift.", cause="drift", in_short="drift", capacity=0.3)
    >>> slip = Check("readouts slipped.", cause="slip")
    >>> clipped = Check("two channels are clipped.", cause="clipped")
    >>> for check in one_cause_first([drift, slip, clipped]):
    ...     print(check)
    two channels are clipped.
    readouts slipped. Also seen, perhaps for the same reason: drift (up to 0.3).
    """
    ordered = _without_what_follows(sorted(checks, key=_key))
    spoiling = [check for check in ordered if cause_of(check) in FACTS_THAT_SPOIL_THE_FIT]
    by_fit = [check for check in ordered if cause_of(check) in RESTS_ON_THE_FIT]
    chain = sorted([*spoiling[:1], *by_fit], key=_key)
    if len(chain) < 2:
        return ordered
    first, *others = chain
    reported = [check for check in ordered if check not in others]
    reported[reported.index(first)] = with_others(first, others)
    return reported


def _without_what_follows(checks: list[Check]) -> list[Check]:
    """Return the checks without those that say the same as another one in other words."""
    told = list(checks)
    for check in checks:
        following = FOLLOWS_FROM.get(cause_of(check), ())
        same = [other for other in told if cause_of(other) in following]
        if same:
            told = [other for other in told if other not in same]
            found = check.found | {"also": [_as_data(other) for other in same]}
            if any(other.found.get("no_numbers") for other in same):
                found["no_numbers"] = True
            told[told.index(check)] = Check(check, check.kind, **found)
    return told


def with_others(first: Check, others: list[Check]) -> Check:
    """Return a check that names others in one more sentence and holds them as data."""
    costly = [
        other for other in others if other.found.get("capacity", np.inf) >= MIN_CAPACITY_OF_WARNING
    ]
    text = str(first)
    if costly:
        names = list(dict.fromkeys(_name(other) for other in costly))
        text += f" Also seen, perhaps for the same reason: {join_names(names)}."
    return Check(text, first.kind, **first.found, also=[_as_data(other) for other in others])


def _name(check: Check) -> str:
    """Return a finding in a few words, with what it costs."""
    name = str(check.found.get("in_short") or check.found.get("unreliable") or cause_of(check))
    if "capacity" not in check.found:
        return name
    return f"{name} ({cost_in_words(check.found['capacity'])})"


def _as_data(check: Check) -> dict[str, Any]:
    """Return a check as plain data."""
    data = check.to_dict()
    found = {name: value for name, value in data["found"].items() if name not in LEFT_OUT_BENEATH}
    return data | {"found": found}
