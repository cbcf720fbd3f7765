"""Numbers as people read them, in the terminal, on pages and in plots.

The rules, which hold everywhere:

- ± is one standard error: ``20.01 ± 0.13``. An interval is written with its level:
  ``19.76 to 20.27 (95 %)``.
- The error has two digits, and the value has as many decimals as its error, at most five.
- A value without an error has three decimals. Readouts without noise have an error of zero, which
  is not written.
- An error too small for five decimals is written as its bound, ``<0.00001``, and not as zero.
- A value whose error is larger than its possible range is not written: it "cannot be told".
- A value whose error bar is not trusted is rounded to the leading digit of that error, and has no
  ±.
- Times and amounts of memory are written in the unit that suits their size.
- A long list is cut short and says how many names it leaves out.
"""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

# The standard errors on either side of a value that make a 95 % confidence interval of a normal
# distribution.
HALF_WIDTH_95 = 1.959963984540054

# The standard errors above a value that a normal distribution exceeds with 5 %.
ONE_SIDED_95 = 1.6448536269514722

# More decimals than this are hard to read, and no capacity is known so well.
MAX_DECIMALS = 5
# What is written in place of a number whose error is larger than its possible range.
CANNOT_BE_TOLD = "cannot be told"
# Decimals of a value of which no error is known.
DECIMALS_WITHOUT_ERROR = 3

# From these durations on, minutes and hours are easier to read than seconds: two minutes, and two
# hours.
MIN_SECONDS_IN_MINUTES = 120
MIN_SECONDS_IN_HOURS = 7200


def one_line(text: object) -> str:
    """Return a text without line breaks, and with single spaces.

    >>> one_line("bus\\n  locked")
    'bus locked'
    """
    return " ".join(str(text).split())


def duration(seconds: float) -> str:
    """Return a time in the unit that suits its length.

    >>> duration(89), duration(200), duration(9000)
    ('89 s', '3 min', '2.5 h')
    """
    if seconds < MIN_SECONDS_IN_MINUTES:
        return f"{seconds:.0f} s"
    if seconds < MIN_SECONDS_IN_HOURS:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def memory_size(n_bytes: float) -> str:
    """Return an amount of memory in MB, or in GB from 1 GB on.

    >>> memory_size(2.1e7), memory_size(1.2e9)
    ('21 MB', '1.2 GB')
    """
    if n_bytes < 1e9:
        return f"{n_bytes / 1e6:.0f} MB"
    return f"{n_bytes / 1e9:.1f} GB"


def decimals(error: float) -> int:
    """Return how many decimals a number with this standard error deserves: two digits of the error.

    >>> decimals(0.13), decimals(0.00039), decimals(12.0)
    (2, 5, 0)
    """
    if error <= 0:
        return DECIMALS_WITHOUT_ERROR
    place_of_second_digit = np.ceil(-np.log10(error)) + 1
    return int(np.clip(place_of_second_digit, 0, MAX_DECIMALS))


def with_error(
    value: float,
    error: float | None,
    largest: float = np.inf,
    digits: int | None = None,
) -> str:
    """Return a value ± its standard error, to the digits that the error allows.

    Without an error, or with one of exactly zero, as readouts without noise have it, the value
    stands alone. A value whose error is above the `largest` value that is possible is not written.
    In a column of a table all values may have the same number of `digits` behind the point.

    >>> with_error(20.0104, 0.1293), with_error(-1e-9, 0.02), with_error(1.5, None)
    ('20.01 ± 0.13', '0.000 ± 0.020', '1.500')
    >>> with_error(8.92, 0.0), with_error(8.92, 1e-9), with_error(81.27, 12.0)
    ('8.920', '8.92000 ± <0.00001', '81 ± 12')
    >>> with_error(0.4, 30.0, largest=1.0), with_error(0.4, 0.03, largest=1.0, digits=3)
    ('cannot be told', '0.400 ± 0.030')
    """
    if error is not None and exceeds(error, largest):
        return CANNOT_BE_TOLD
    # The letter z in the formats below writes a value that is rounded to zero as 0.000 and not as
    # -0.000.
    if not error or not np.isfinite(error):
        return f"{value:z.{DECIMALS_WITHOUT_ERROR if digits is None else digits}f}"
    if digits is None:
        digits = decimals(error)
    return f"{value:z.{digits}f} ± {positive_or_bound(error, digits)}"


def exceeds(error: float, largest: float) -> bool:
    """Return whether an error is larger than the largest value that is possible."""
    return bool(error > largest) or bool(np.isinf(error) and np.isfinite(largest))


def digits_of_column(errors: Any) -> int:
    """Return the decimals that all values of a column have, those with the largest error.

    There are at least three, because a column may hold values with small errors, too.

    >>> digits_of_column([0.013, 0.2]), digits_of_column([2e-4, None]), digits_of_column([])
    (3, 5, 3)
    """
    known = np.array(errors, dtype=float)
    known = known[np.isfinite(known) & (known > 0)]
    if not len(known):
        return DECIMALS_WITHOUT_ERROR
    return max(decimals(float(known.max())), DECIMALS_WITHOUT_ERROR)


def positive_or_bound(value: float, digits: int) -> str:
    """Return a positive value with this many decimals, or a bound where it would be zero.

    >>> positive_or_bound(0.034, 2), positive_or_bound(0.0004, 2)
    ('0.03', '<0.01')
    """
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        return f"<{10.0**-digits:.{digits}f}"
    return text


def short(value: float, maximum: float | None = None) -> str:
    """Return a value with one decimal, or with as many as tell it from zero and from its maximum.

    >>> short(12.34), short(16.974, 17), short(16.9999999, 17), short(0.004), short(0.0)
    ('12.3', '16.97', '17', '0.004', '0')
    """
    for digits in (1, 2, 3, 4):
        text = f"{value:.{digits}f}"
        if float(text) not in (0.0, maximum):
            return text
    if maximum is None or float(text) == 0.0:
        return "0"
    return str(maximum)


def percent(share: float) -> str:
    """Return a share in per cent: whole per cent, or two digits of a share below one tenth.

    >>> percent(1.094), percent(0.0123)
    ('109 %', '1.2 %')
    """
    if share >= 0.1:
        return f"{100 * share:.0f} %"
    return f"{100 * share:.2g} %"


def rounded(value: float, error: float | None) -> str:
    """Return a value whose error bar is not trusted.

    It is rounded to the leading digit of its error, and to two digits at most.

    >>> rounded(81.27, 0.41), rounded(9.53, 0.08), rounded(81.27, 20.0), rounded(0.0, None)
    ('81', '9.5', '80', '0')
    """
    if value == 0:
        return "0"
    # The exponent of 10 at the value's leading digit, after rounding to two digits: 9.96 is 10.
    leading_exponent = int(f"{value:.1e}".partition("e")[2])
    last_exponent = leading_exponent - 1
    if error is not None and np.isfinite(error) and error > 0:
        exponent_of_error = np.floor(np.log10(error))
        last_exponent = int(np.clip(exponent_of_error, last_exponent, leading_exponent))
    n_decimals = max(-last_exponent, 0)
    return f"{round(value, -last_exponent):.{n_decimals}f}"


def name_and_unit(label: str) -> tuple[str, str]:
    """Return a name and the unit in brackets after it, or an empty unit.

    >>> name_and_unit("Voltage A [V]"), name_and_unit("phase (deg)"), name_and_unit("u1")
    (('Voltage A', 'V'), ('phase', 'deg'), ('u1', ''))
    """
    match = re.fullmatch(r"(.+?)(?:\s*\[(.*)\]|\s+\((.*)\))", label.strip())
    if match is None:
        return label.strip(), ""
    return match[1], match[2] or match[3] or ""


def join_names(names: Sequence[str], max_names: int = 5) -> str:
    """Return the first few names, and how many more there are.

    >>> join_names(["a", "b", "c"], max_names=2)
    'a, b and 1 more'
    """
    sentence = ", ".join(names[:max_names])
    if len(names) > max_names:
        sentence += f" and {len(names) - max_names} more"
    return sentence


def counted(number: int, thing: str) -> str:
    """Return a number of things, with the plural where it is not one.

    >>> counted(1, "input"), counted(2, "input")
    ('1 input', '2 inputs')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def html_for_notebook(shown: Any) -> str | None:
    """Return an object as HTML for a notebook, or None where libraries are missing.

    A notebook then shows plain text.

    The drawings are those of the laboratory's report, which the core does not import but looks up
    by name.
    """
    try:
        renderer = import_module("infocap.lab.report")
    except ImportError:
        return None
    return str(renderer.notebook(shown))
