"""HTML and SVG elements: whatever is not an element already is escaped, so no text can become markup."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files

VOID = {"input", "meta"}
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
    given = {key.rstrip("_").replace("_", "-"): one for key, one in attributes.items() if one is not None}
    inside = "".join(f' {key}="{markup(value)}"' for key, value in given.items())
    return Markup(f"<{name}{inside}>" if name in VOID else f"<{name}{inside}>{together(children)}</{name}>")


def together(parts: Iterable[object]) -> Markup:
    """Elements and texts, one after the other."""
    return Markup("".join(map(markup, parts)))


def figure(title: str, picture: Markup, *caption: object) -> Markup:
    """A picture under its title, with words below."""
    return element("figure", element("h3", title), picture, element("figcaption", *caption))


def drawing(name: str, *children: object, height: float = 300) -> Markup:
    """An SVG that fills its column, with what it shows in words for those who cannot see it."""
    box = f"0 0 440 {height:g}"
    return element("svg", *children, viewBox=box, role="img", aria_label=name, class_="drawing")


def asset(name: str) -> str:
    """A file that lies beside this one: the page's skeleton, its style sheet or its script."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def markup(value: object) -> Markup:
    """Leave elements as they are, shorten coordinates to two decimals, and escape anything else as text."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return Markup(f"{value:.2f}".rstrip("0").rstrip("."))
    text = str(value).encode("utf-8", "replace").decode("utf-8")  # half of a surrogate pair cannot be written
    return Markup(escape(CONTROL.sub("\ufffd", text)))
