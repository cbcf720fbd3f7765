"""HTML and SVG elements: whatever is not an element already is escaped, so no text can become markup."""

from __future__ import annotations

import re
from html import escape as escape_html

VOID = {"input", "meta"}
CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)  # and turners of direction


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def markup(value: object) -> Markup:
    """Elements as they are; anything else as text, escaped."""
    if isinstance(value, Markup):
        return value
    text = str(value).encode("utf-8", "replace").decode("utf-8")  # half of a surrogate pair cannot be written
    return Markup(escape_html(CONTROL.sub("\ufffd", text)))


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """``<name attributes>children</name>``; ``class_`` is class, ``text_anchor`` is text-anchor, None is left out.

    >>> element("td", "a < b", class_="number", colspan=2)
    '<td class="number" colspan="2">a &lt; b</td>'
    """
    inside = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{markup(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Markup(f"<{name}{inside}>")
    return Markup(f"<{name}{inside}>{together(children)}</{name}>")


def together(parts: object) -> Markup:
    """Elements and texts, one after the other."""
    return Markup("".join(map(markup, parts)))  # type: ignore[call-overload]


def _value(value: object) -> object:
    """Coordinates need no more than two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
