"""HTML and SVG elements, templates, and numbers in the form in which people read them.

Everything that is not `Markup` is escaped, so no text of a user can become markup. A template
engine would replace about thirty lines of this module and add a dependency: most elements are
computed rectangles of a drawing, not text with gaps. So there are only functions that make
elements, and `string.Template` for the skeletons of the pages.
"""

import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template

from ... import _formatting
from ...basis import FAMILIES
from ...result import CapacityResult

# Control characters, and characters that reverse the direction of writing. The latter could make
# one text look like another.
UNSAFE_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
REPLACEMENT_CHARACTER = "\ufffd"
# What a table shows where there is no number.
NO_VALUE = "–"


class Markup(str):
    """Text that is HTML already and must not be escaped again."""

    __slots__ = ()


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return the element ``<name attributes>children</name>``.

    Underscores in attribute names become hyphens, and a trailing one is dropped: ``class_`` is
    class, ``text_anchor`` is text-anchor. Attributes that are None are left out.

    >>> element("td", "a < b", class_="number", colspan=2)
    '<td class="number" colspan="2">a &lt; b</td>'
    """
    texts = []
    for key, value in attributes.items():
        if value is not None:
            html_name = key.rstrip("_").replace("_", "-")
            texts.append(f' {html_name}="{markup(value)}"')
    return Markup(f"<{name}{''.join(texts)}>{join(children)}</{name}>")


def join(parts: Iterable[object]) -> Markup:
    """Return elements and texts, one after the other."""
    return Markup("".join(map(markup, parts)))


def table_row(heading: object, *cells: object) -> Markup:
    """Return a row of a table, whose first cell is its heading."""
    columns = [element("td", cell) for cell in cells]
    return element("tr", element("th", heading, scope="row"), *columns)


def read_asset(name: str) -> str:
    """Return the text of a file in this folder: a template, a style sheet or a script."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def fill_template(name: str, **values: object) -> Markup:
    """Return a file of this folder with its value in place of every ``$name``, escaped."""
    safe_values = {key: markup(value) for key, value in values.items()}
    return Markup(Template(read_asset(name)).substitute(safe_values))


def markup(value: object) -> Markup:
    """Return a value as markup: elements as they are, floats with two decimals, text escaped."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return Markup(f"{value:.2f}".rstrip("0").rstrip("."))
    # Half of a surrogate pair cannot be written as UTF-8.
    text = str(value).encode("utf-8", "replace").decode("utf-8")
    return Markup(escape(UNSAFE_CHARACTERS.sub(REPLACEMENT_CHARACTER, text)))


def fixed(value: float, decimals: int = 2) -> str:
    """Return a number with a fixed number of decimals; zero is written 0."""
    if value == 0:
        return "0"
    return with_minus(f"{value:.{decimals}f}")


def with_error(
    value: float,
    error: float | None,
    largest: float = float("inf"),
    digits: int | None = None,
) -> str:
    """Return value ± standard error, to the digits that the error allows, without line breaks.

    >>> with_error(20.0104, 0.1293), with_error(1.0, 0.0)
    ('20.01\\xa0±\\xa00.13', '1.000')
    """
    text = _formatting.with_error(value, error, largest, digits)
    return with_minus(text).replace(" ", "\N{NO-BREAK SPACE}")


def with_minus(text: str) -> str:
    """Return the text with minus signs in place of hyphens."""
    return text.replace("-", "\N{MINUS SIGN}")


def describe_basis(result: CapacityResult) -> str:
    """Return which functions were asked for, such as "28 Legendre functions of degree up to 6"."""
    family = result.basis.family_name
    if family in FAMILIES:
        family = family.capitalize()
    functions = _formatting.counted(len(result.basis), f"{family} function")
    return f"{functions} of degree up to {result.basis.max_degree}"
