"""Numbers as people read them: durations, sizes, digits worth showing, values with errors, lists cut short."""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

# The standard errors on either side of a value that make a 95 % confidence interval of a normal distribution.
HALF_WIDTH_95 = 1.959963984540054


def duration(seconds: float) -> str:
    """Return a time in the unit that suits its length.

    >>> duration(89), duration(200), duration(9000)
    ('89 s', '3 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def size(n_bytes: float) -> str:
    """Return an amount of memory in MB, or in GB from 1 GB on.

    >>> size(2.1e7), size(1.2e9)
    ('21 MB', '1.2 GB')
    """
    return f"{n_bytes / 1e6:.0f} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:.1f} GB"


def decimals(error: float) -> int:
    """Return how many decimals a number with this standard error deserves: two digits of the error, at most 5.

    >>> decimals(0.13), decimals(0.00039), decimals(12.0)
    (2, 5, 0)
    """
    return 3 if error <= 0 else int(np.clip(np.ceil(-np.log10(error)) + 1, 0, 5))


def with_error(value: float, error: float | None, width: float = 1.0) -> str:
    """Return a value ± so many standard errors, to the digits that the error allows; without one, three decimals.

    An error of exactly zero, as readouts without noise have it, is left out.

    >>> with_error(20.0104, 0.1293), with_error(-1e-9, 0.02), with_error(1.5, None)
    ('20.01 ± 0.13', '0.000 ± 0.020', '1.500')
    >>> with_error(8.92, 0.0), with_error(8.92, 1e-9), with_error(81.27, 12.0)
    ('8.920', '8.92000 ± <0.00001', '81 ± 12')
    """
    if not error or not np.isfinite(error):
        return f"{value:z.3f}"  # no -0.000
    digits = decimals(error)
    return f"{value:z.{digits}f} ± {above_zero(width * error, digits)}"


def above_zero(value: float, digits: int) -> str:
    """Return a positive value with so many decimals, or the smallest that can be written so as its bound.

    >>> above_zero(0.034, 2), above_zero(0.0004, 2)
    ('0.03', '<0.01')
    """
    said = f"{value:.{digits}f}"
    return said if float(said) else f"<{10.0**-digits:.{digits}f}"


def short(value: float, most: float | None = None) -> str:
    """Return a value with one decimal, or with as many as tell it from the `most` that it could be.

    >>> short(12.34), short(16.974, 17), short(16.9999999, 17), short(0.004), short(0.0)
    ('12.3', '16.97', '17', '0.004', '0')
    """
    for digits in (1, 2, 3, 4):
        said = f"{value:.{digits}f}"
        if float(said) not in (0.0, most):
            return said
    return "0" if most is None or float(said) == 0.0 else str(most)


def percent(share: float) -> str:
    """Return a share in per cent, to two digits or to whole per cent.

    >>> percent(1.094), percent(0.0123)
    ('109 %', '1.2 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def rounded(value: float, error: float | None) -> str:
    """Return a value in which little trust is put, to the leading digit of its error and two digits at most.

    >>> rounded(81.27, 0.41), rounded(9.53, 0.08), rounded(81.27, 20.0), rounded(0.0, None)
    ('81', '9.5', '80', '0')
    """
    if value == 0:
        return "0"
    exponent = int(f"{value:.1e}".partition("e")[2])
    place = exponent - 1
    if error is not None and np.isfinite(error) and error > 0:
        place = int(np.clip(np.floor(np.log10(error)), place, exponent))
    return f"{round(value, -place):.{max(-place, 0)}f}"


def name_and_unit(text: str) -> tuple[str, str]:
    """Return a name and the unit in brackets after it, or an empty unit.

    >>> name_and_unit("Voltage A [V]"), name_and_unit("phase (deg)"), name_and_unit("u1")
    (('Voltage A', 'V'), ('phase', 'deg'), ('u1', ''))
    """
    found = re.fullmatch(r"(.+?)(?:\s*\[(.*)\]|\s+\((.*)\))", text.strip())
    return (found[1], found[2] or found[3] or "") if found else (text.strip(), "")


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first few names, and how many more there are.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(number: int, thing: str) -> str:
    """Return a number of things.

    >>> counted(1, "input"), counted(2, "input")
    ('1 input', '2 inputs')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"


def html_for_notebook(shown: Any) -> str | None:
    """Return an object as HTML for a notebook; None where libraries are missing, and a notebook then shows plain text.

    The drawings are those of the laboratory's report, which the core does not import but looks up by name.
    """
    try:
        renderer = import_module("infocap.lab.report._notebook")
    except ImportError:
        return None
    return str(renderer.notebook(shown))
