"""Numbers and facts as a person wants to read them."""

from __future__ import annotations

from math import isfinite

from .. import _words
from ..basis import FAMILIES
from ..result import CapacityResult


def plain(value: float, decimals: int = 2) -> str:
    """A fixed number of decimals; zero is just 0."""
    if not isfinite(value):
        return "–"
    return "0" if value == 0 else minus(f"{value:.{decimals}f}")


def with_error(value: float, error: float | None) -> str:
    """Value ± error to the digits that the error allows, kept on one line; an error of zero is left out.

    >>> with_error(20.0104, 0.1293), with_error(1.0, 0.0), with_error(0.5, 1e-9)
    ('20.01\\xa0±\\xa00.13', '1.000', '0.50000\\xa0±\\xa0<0.00001')
    """
    said = _words.with_error(value, error or None).replace("± 0.00000", "± <0.00001")
    return minus(said).replace(" ", "\N{NO-BREAK SPACE}")


def count(number: int, one: str) -> str:
    """``1 input``, ``2 inputs``."""
    return f"{number} {one if number == 1 else one + 's'}"


def minus(text: str) -> str:
    """The text with a proper minus sign."""
    return text.replace("-", "\N{MINUS SIGN}")


def functions(result: CapacityResult) -> str:
    """Which functions were asked for, such as "28 Legendre functions of degree up to 6"."""
    name = result.basis.family_name
    said = count(len(result.basis), f"{name.capitalize() if name in FAMILIES else name} function")
    return f"{said} of degree up to {result.basis.max_degree}"
