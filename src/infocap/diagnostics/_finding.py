"""A finding: what is wrong in one sentence, what it costs, what to do, and all of it as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._formatting import short
from .._validation import checks_arguments, require_numbers
from ..errors import Check
from ..typing import Integers

# Capacity below which a finding is a note: a total is seldom known better.
MIN_CAPACITY_OF_WARNING = 0.02
# Capacity below which the number tells nothing more.
MIN_CAPACITY_IN_WORDS = 0.001


def costs_enough(capacity: float) -> bool:
    """Return whether a mistake costs enough capacity for a warning; with less it is a note."""
    return capacity >= MIN_CAPACITY_OF_WARNING


# The largest number of a row that a finding names.
MAX_ROW = 2**53


def cost_in_words(capacity: float) -> str:
    """Return what a mistake may cost.

    >>> cost_in_words(3.14159), cost_in_words(0.0321), cost_in_words(-1e-5)
    ('up to 3.1', 'up to 0.03', 'less than 0.001')
    """
    if capacity < MIN_CAPACITY_IN_WORDS:
        return f"less than {MIN_CAPACITY_IN_WORDS}"
    return f"up to {short(capacity)}"


@checks_arguments
def finding(
    sentence: str,
    *,
    cause: str,
    next_step: str,
    in_short: str = "",
    capacity: float | None = None,
    is_note: bool = False,
    p_value: float | None = None,
    rows: Integers | Sequence[int] | None = None,
    channels: Sequence[str] | None = None,
    lag: int | None = None,
    **values: Any,
) -> Check:
    """Return what a test found, in words and as data.

    Parameters
    ----------
    sentence
        What is wrong and what may be behind it, without a full stop.
    cause
        One word or two by which programs know the mistake.
    next_step
        What to do, as a sentence without a full stop.
    in_short
        The finding in a few words, which stand in place of the total's error bar if it is a
        warning.
    capacity
        What the mistake may cost. Below 0.02 the finding is a note.
    is_note
        Whether it is a note whatever it costs.
    p_value, rows, channels, lag
        The probability that chance alone does this; rows as the user numbers them, names of
        channels, and the lag in rows. What is None is left out.
    **values
        What else a program may use, as plain numbers, texts and lists.

    Examples
    --------
    >>> check = finding(
    ...     "readouts drift",
    ...     cause="drift",
    ...     next_step="keep the device steady",
    ...     in_short="readouts that drift",
    ...     capacity=0.3,
    ... )
    >>> print(check.kind, check, sep=": ")
    warning: readouts drift. This costs up to 0.3 of the total. Keep the device steady.
    >>> check.found["cause"], check.found["unreliable"]
    ('drift', 'readouts that drift')
    """
    text = f"{sentence}."
    found: dict[str, Any] = {"cause": cause, "next_step": next_step, "in_short": in_short or cause}
    if capacity is not None:
        text += f" This costs {cost_in_words(capacity)} of the total."
        found["capacity"] = float(capacity)
        is_note = is_note or not costs_enough(capacity)
    text += f" {next_step[0].upper()}{next_step[1:]}."
    if in_short and not is_note:
        found["unreliable"] = in_short
    optional_values = {"p_value": p_value, "channels": channels, "lag": lag}
    found |= {name: value for name, value in optional_values.items() if value is not None}
    if rows is not None:
        numbers = require_numbers("rows", rows)
        found["rows"] = numbers.clip(-MAX_ROW, MAX_ROW).astype(int).tolist()
    return Check(text, "note" if is_note else "warning", **found, **values)
