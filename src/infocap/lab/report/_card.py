"""The capacity card of a device, as a page or a picture that holds its numbers; and a gallery of many devices."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import shorten, wrap
from typing import Any
from urllib.parse import quote

import numpy as np

from ..._formatting import rounded
from ..._validation import one_of
from ..._version import __version__
from ...errors import DataError
from ...plot import capacity_bars, capacity_by_delay, capacity_matrix
from ...result._capacity_result import CapacityResult
from ...result._files import SUFFIXES, is_result, load_result
from . import _figures, _tables
from ._html import Markup, element, filled, plain, row, together, with_error
from ._page import checks, embedded, framed, headline, sound, total_in_words, write

CARDS = (".svg", ".html")
WHAT, COST = "what", "cost per inference"
# The constant, then degrees 1 to 7, then all higher ones: colours of viridis, which keep their order without hues.
SPECTRUM = [
    "var(--constant)",
    "#471164",
    "#404688",
    "#31688e",
    "#21918c",
    "#2fb47c",
    "#6ece58",
    "#b5de2b",
    "#fde725",
]


def card(
    result: CapacityResult,
    path: str | Path,
    title: str | None = None,
    about: Mapping[str, str] | None = None,
) -> Path:
    """Write the capacity card of a device, ``.html`` or ``.svg``: one page to share, which `load_result` reads back.

    `about` says what only people know, such as ``{"what": "Two diodes", "cost per inference": "3 nJ"}``; without it,
    the table ``device`` in the metadata of the plan does, if there is one.

    >>> import tempfile
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     card = infocap.report.card(result, f"{folder}/card.svg", "Two squares", {"what": "Two diodes"})
    ...     infocap.load_result(card).metadata["provenance"]["device"]
    {'name': 'Two squares', 'what': 'Two diodes'}
    """
    path = Path(path)
    one_of("path suffix", path.suffix, CARDS)
    words = (
        {"name": path.stem}
        | _device(result)
        | {str(name): str(text) for name, text in (about or {}).items()}
    )
    name = words["name"] = title or words["name"]
    told = {"provenance": _tables.told(result) | {"device": words}}
    result = replace(sound(result), metadata=result.metadata | told)
    both = {"title": name, "what": words.get(WHAT, ""), "version": __version__}
    facts = _tables.estimation(result) | {
        key: text for key, text in words.items() if key not in ("name", WHAT)
    }
    if path.suffix == ".svg":
        return write(path, _picture(result, facts, both))
    pictures = [draw(result) for draw in (_figures.matrix, _figures.delays, _figures.bars)]
    pictures += [] if pictures[0] else [_tables.by_degree(result)]
    shown = {"headline": headline(result), "pictures": together(pictures), "checks": checks(result)}
    card = filled(
        "card.html", facts=_tables.group("How it was measured", facts, "wide"), **shown, **both
    )
    return write(path, framed(name, card, embedded(result, name)))


def _device(result: CapacityResult) -> dict[str, str]:
    """What is known about the device in words, from a card or from the plan."""
    plan = _tables.planned(result)
    known: dict[str, Any] = {"name": plan["title"]} if plan.get("title") else {}
    for place in (plan.get("metadata"), _tables.told(result)):
        if isinstance(place, dict) and isinstance(place.get("device"), dict):
            known |= place["device"]
    return {str(name): str(text) for name, text in known.items()}


def _picture(result: CapacityResult, facts: dict[str, Any], words: dict[str, str]) -> str:
    """The card as one picture in light colours, which needs no style sheet: for a talk, a poster or a README."""
    draw = partial(_figures.drawn, shown=result, words="Capacities", height=290)
    if result.basis.memory:
        right = draw(capacity_by_delay)
    elif _figures.matrix(result):
        right = draw(partial(capacity_matrix, total=False))
    else:
        best = [k for k in np.argsort(-result.capacity, kind="stable") if result.basis.degrees[k]][
            :11
        ]
        named = [f"{result.capacity[k]:.3f}   {result.basis.label(k)}" for k in best]
        right = element("text", _lines(["the strongest functions:", *named], 40, 23), font_size=14)
    (total, sure), shares = total_in_words(result), _figures.shares(result)
    said = [
        together([element("tspan", "■", fill=colour), f" {size}  {what.partition('. ')[0]}"])
        for colour, _, size, what in shares
    ]
    some = [
        f"{name}: {facts[name]}" for name in ("inputs", "what noise allows", COST) if name in facts
    ]
    some.append(f"warnings: {len(result.warnings) or 'none'} · infocap {__version__}")
    parts = {"total": total, "maximum": result.maximum, "sure": _lines(wrap(sure, 112), 236, 17)}
    parts |= {"bar": _figures.stacked(shares, result.maximum, ""), "shares": _lines(said, 236, 19)}
    parts |= {
        "left": draw(partial(capacity_bars, total=False)),
        "right": right,
        "circle": _figures.circle(result),
    }
    parts |= {"facts": _lines(wrap(" · ".join(some), 160), 36, 16)}
    parts |= {"data": embedded(result, words["title"], "metadata")}
    words |= {
        name: shorten(words[name], most, placeholder=" …")
        for name, most in (("title", 58), (WHAT, 125))
    }
    text = filled("card.svg", **parts, **words).replace(' href="#', ' xlink:href="#')
    return re.sub(r"var\(--([\w-]+)\)", lambda colour: _figures.LIGHT[colour[1]], text)


def _lines(lines: Iterable[str], x: int, step: int) -> Markup:
    """Lines of a text in a picture, one below the other."""
    return together(element("tspan", line, x=x, dy=step) for line in lines)


def gallery(folder: str | Path, path: str | Path, title: str = "Gallery of devices") -> list[str]:
    """Write a page that compares all devices whose cards or results lie in a folder; return their names.

    Of files that differ in nothing but the suffix one is read, a card rather than a result. Cards are linked.

    >>> import tempfile
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for size in (3, 6):
    ...         result = infocap.probe(infocap.systems.RandomFeatures(2, size, noise=0.01), basis, 256, seed=1)
    ...         _ = infocap.report.card(result, f"{folder}/{size}.html", f"{size} units")
    ...     infocap.report.gallery(folder, f"{folder}/gallery.html")
    ['6 units', '3 units']
    """
    folder, path = Path(folder), Path(path)
    one_of("path suffix", path.suffix, (".html",))
    found = [
        file for suffix in SUFFIXES for file in sorted(folder.glob(f"*{suffix}")) if is_result(file)
    ]
    devices = {load_result(file): file for file in {file.stem: file for file in found}.values()}
    if not devices:
        raise DataError(
            f"{folder} holds no card and no result; make one with `infocap card result.nc -o card.html`."
        )
    names, rows = list[str](), list[Markup]()
    for result in sorted(devices, key=lambda one: -one.total):
        file = devices[result]
        name = _device(result).get("name") or file.stem
        names.append(f"{name} ({file.name})" if name in names else name)
        link = (
            quote(Path(os.path.relpath(file, path.parent)).as_posix())
            if file.suffix in CARDS
            else None
        )
        called = element("a" if link else "span", names[-1], href=link)
        rows.append(_row(called, result, max(one.maximum for one in devices)))
    said = ["constant", *"1234567", "8 and more", "in functions outside the basis"]
    legend = [
        element("span", _figures.swatch(*pair))
        for pair in zip([*SPECTRUM, "var(--outside)"], said, strict=True)
    ]
    lead = f"{len(names)} devices, {sum(one.basis.memory > 0 for one in devices) or 'none'} of them with memory."
    parts = {"lead": lead, "legend": together(legend), "rows": together(rows)}
    write(path, framed(title, filled("gallery.html", title=title, version=__version__, **parts)))
    return names


def _row(called: Markup, result: CapacityResult, longest: float) -> Markup:
    """A device in the table of a gallery; its bar stands for its maximum, as a part of the `longest` one."""
    words, limit, basis = _device(result), result.noise_limited_total, result.basis
    found = np.bincount(np.minimum(basis.degrees, len(SPECTRUM) - 1), result.capacity).tolist()
    parts = [
        (SPECTRUM[k], size, plain(size), f"of degree {k}") for k, size in enumerate(found) if size
    ]
    if limit is not None and limit > result.total:
        rest = limit - result.total
        parts.append(("var(--outside)", rest, plain(rest), "in functions outside the basis"))
    bar = _figures.stacked(parts, result.maximum, "Capacity by degree")
    bar = element("svg", bar, width=f"{100 * result.maximum / longest:.1f}%", height=18)
    degree = plain(float(basis.degrees @ result.capacity) / max(float(result.capacity.sum()), 1e-9))
    memory = plain(float(result.memory_capacity)) if basis.memory else "–"
    error = result.total_standard_error
    total = (
        f"≈{rounded(result.total, error)}" if result.unreliable else with_error(result.total, error)
    )
    known: list[object] = [result.maximum, "–" if limit is None else plain(limit), degree, memory]
    known += [basis.n_inputs, len(result.warnings) or "none", words.get(COST, "–")]
    name = together([called, element("small", words.get(WHAT, ""))])
    return row(name, bar, element("data", total, value=f"{result.total:.9g}"), *known)
