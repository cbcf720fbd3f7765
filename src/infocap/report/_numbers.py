"""Numbers as a person wants to read them."""

from __future__ import annotations

from math import floor, isfinite, log10

NARROW = "\N{NO-BREAK SPACE}"


def plain(value: float, decimals: int = 2) -> str:
    """A fixed number of decimals; zero is just 0."""
    if not isfinite(value):
        return "–"
    return "0" if value == 0 else minus(f"{value:.{decimals}f}")


def with_error(value: float, error: float | None, most: int = 5) -> str:
    """Value ± error, both to the digit that the error allows: two when it begins with 1, else one; `most` decimals.

    >>> with_error(20.0104, 0.1293), with_error(0.97301, 0.00039)
    ('20.01\\xa0±\\xa00.13', '0.9730\\xa0±\\xa00.0004')
    """
    if error is None or not isfinite(error):
        return plain(value, 3)
    if error == 0:
        return minus(f"{value:.{min(most, 4)}f}")
    decimals = min(decimals_for(error), most)
    small = error < 0.5 * 10.0**-decimals
    shown = f"<{10.0**-decimals:.{decimals}f}" if small else f"{error:.{decimals}f}"
    return f"{minus(f'{value:.{decimals}f}')}{NARROW}±{NARROW}{shown}"


def decimals_for(error: float) -> int:
    """How many decimals an error of this size leaves meaning to."""
    if not isfinite(error) or error <= 0:
        return 5
    power = floor(log10(error))
    first = round(error / 10.0**power, 6)
    return max(-power + (1 if first < 1.95 else 0), 0)


def p_value(value: float) -> str:
    """Three decimals, or that it is less."""
    if not isfinite(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def count(number: int, one: str, many: str | None = None) -> str:
    """``1 input``, ``2 inputs``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def power_of_ten(exponent: int) -> str:
    """10⁻³ and the like."""
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def minus(text: str) -> str:
    """With a proper minus sign."""
    return text.replace("-", "\N{MINUS SIGN}")
