"""HTML and SVG elements, and numbers as a person wants to read them.

Whatever is not an element already is escaped, so no text can become markup.
"""

import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template

from ... import _formatting as _words
from ...basis._family import FAMILIES
from ...result._capacity_result import CapacityResult

# Control characters, and those that turn the direction of writing: they could make a text look like another.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """``<name attributes>children</name>``; ``class_`` is class, ``text_anchor`` is text-anchor, None is left out.

    >>> element("td", "a < b", class_="number", colspan=2)
    '<td class="number" colspan="2">a &lt; b</td>'
    """
    given = {
        key.rstrip("_").replace("_", "-"): one for key, one in attributes.items() if one is not None
    }
    inside = "".join(f' {key}="{markup(value)}"' for key, value in given.items())
    return Markup(f"<{name}{inside}>{together(children)}</{name}>")


def together(parts: Iterable[object]) -> Markup:
    """Elements and texts, one after the other."""
    return Markup("".join(map(markup, parts)))


def row(name: object, *cells: object) -> Markup:
    """A row of a table that begins with its name."""
    return element("tr", element("th", name, scope="row"), *(element("td", one) for one in cells))


def asset(name: str) -> str:
    """A file that lies beside this one: the page's skeleton, its style sheet or its script."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def filled(template: str, **parts: object) -> Markup:
    """A file that lies beside this one, with every ``$name`` in it replaced by that part, as markup or escaped."""
    return Markup(
        Template(asset(template)).substitute({name: markup(part) for name, part in parts.items()})
    )


def markup(value: object) -> Markup:
    """Leave elements as they are, shorten coordinates to two decimals, and escape anything else as text."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return Markup(f"{value:.2f}".rstrip("0").rstrip("."))
    text = (
        str(value).encode("utf-8", "replace").decode("utf-8")
    )  # half of a surrogate pair cannot be written
    return Markup(escape(CONTROL.sub("\ufffd", text)))


def plain(value: float, decimals: int = 2) -> str:
    """A fixed number of decimals; zero is just 0."""
    return "0" if value == 0 else minus(f"{value:.{decimals}f}")


def with_error(value: float, error: float | None) -> str:
    """Value ± error to the digits that the error allows, kept on one line.

    >>> with_error(20.0104, 0.1293), with_error(1.0, 0.0)
    ('20.01\\xa0±\\xa00.13', '1.000')
    """
    return minus(_words.with_error(value, error)).replace(" ", "\N{NO-BREAK SPACE}")


def minus(text: str) -> str:
    """The text with a proper minus sign."""
    return text.replace("-", "\N{MINUS SIGN}")


def basis_in_words(result: CapacityResult) -> str:
    """Which functions were asked for, such as "28 Legendre functions of degree up to 6"."""
    name = result.basis.family_name
    said = _words.counted(
        len(result.basis), f"{name.capitalize() if name in FAMILIES else name} function"
    )
    return f"{said} of degree up to {result.basis.max_degree}"
