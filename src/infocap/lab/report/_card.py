"""The capacity card of a device, as a page that holds its numbers or a picture; galleries."""

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

from ..._files import readable_path
from ..._formatting import CANNOT_BE_TOLD
from ..._validation import checks_arguments, require_one_of
from ..._version import __version__
from ...errors import DataError
from ...plot import capacity_bars, capacity_by_delay, capacity_matrix
from ...result import (
    READABLE_SUFFIXES,
    CapacityResult,
    is_result,
    known_sums_by_degree,
    load_result,
    untold_degrees,
)
from . import _figures, _tables
from ._html import NO_VALUE, Markup, element, fill_template, fixed, join, table_row, with_error
from ._page import (
    check_list,
    checked_result,
    embedded_numbers,
    headline,
    total_in_words,
    whole_page,
    write_text,
)

# A page, which holds its numbers, and a picture, which does not.
PAGE_SUFFIX = ".html"
PICTURE_SUFFIX = ".svg"
# Facts about a device that have a place of their own on the card.
DESCRIPTION = "what"
COST = "cost per inference"
# Colours of the constant, of degrees 1 to 7, and of all higher degrees. Those of the degrees are
# from viridis, which keeps its order without hues.
DEGREE_COLOURS = (
    "var(--constant)",
    "#471164",
    "#404688",
    "#31688e",
    "#21918c",
    "#2fb47c",
    "#6ece58",
    "#b5de2b",
    "#fde725",
)
DEGREE_NAMES = ("constant", "1", "2", "3", "4", "5", "6", "7", "8 and more")
OUTSIDE_COLOUR = "var(--outside)"
OUTSIDE_MEANING = "in functions outside the basis"
# Strongest functions that a picture lists where neither a matrix nor delays can be drawn.
N_LISTED_FUNCTIONS = 11
# Letters that fit on one line of a picture: the title, the description, the certainty, the facts.
MAX_TITLE_LENGTH = 58
MAX_DESCRIPTION_LENGTH = 125
CERTAINTY_LINE_LENGTH = 112
FACTS_LINE_LENGTH = 160
# Where the claim and the explanation of a picture stand, in pixels from the top, and how many lines
# of the explanation have room above the bar.
HEIGHT_OF_CLAIM = 126
HEIGHT_OF_EXPLANATION = 131
LINE_HEIGHT_OF_EXPLANATION = 17
N_LINES_ABOVE_BAR = 3
# Height in pixels of both drawings of a picture.
PICTURE_DRAWING_HEIGHT = 290


@checks_arguments
def card(
    result: CapacityResult,
    path: str | Path,
    title: str | None = None,
    about: Mapping[str, str] | None = None,
) -> Path:
    """Write the capacity card of a device: what it computes, how surely, and how it was measured.

    Parameters
    ----------
    result
        What `infocap.estimate` returned.
    path
        An ``.html`` file, which `infocap.load_result` reads back, or an ``.svg`` picture for a
        talk or a poster.
    title
        The name of the device; by default that of the plan, or that of the file.
    about
        What only people know of the device, such as
        ``{"what": "Two diodes", "cost per inference": "3 nJ"}``. It is added to the table
        ``device`` in the metadata of the plan, if there is one.

    Returns
    -------
    Path
        The path of the card.

    Examples
    --------
    >>> import tempfile
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     about = {"what": "Two diodes"}
    ...     path = infocap.report.card(result, f"{folder}/card.html", "Two squares", about)
    ...     infocap.load_result(path).metadata["provenance"]["device"]
    {'name': 'Two squares', 'what': 'Two diodes'}
    """
    path = Path(path)
    require_one_of("path suffix", path.suffix, (PAGE_SUFFIX, PICTURE_SUFFIX))
    device = {"name": path.stem} | _device_facts(result)
    device |= {str(key): str(text) for key, text in (about or {}).items()}
    if title:
        device["name"] = title
    provenance = _tables.recorded_provenance(result) | {"device": device}
    result = checked_result(result)
    result = replace(result, metadata=result.metadata | {"provenance": provenance})
    facts = _tables.estimation(result)
    facts |= {key: text for key, text in device.items() if key not in ("name", DESCRIPTION)}
    write_card = _write_picture if path.suffix == PICTURE_SUFFIX else _write_page
    return write_card(result, path, device, facts)


def _device_facts(result: CapacityResult) -> dict[str, str]:
    """Return what is known about the device in words, from the plan or from an earlier card."""
    plan = _tables.recorded_plan(result)
    facts: dict[str, Any] = {"name": plan["title"]} if plan.get("title") else {}
    for place in (plan.get("metadata"), _tables.recorded_provenance(result)):
        if isinstance(place, dict) and isinstance(place.get("device"), dict):
            facts |= place["device"]
    return {str(key): str(text) for key, text in facts.items()}


def _write_page(
    result: CapacityResult, path: Path, device: dict[str, str], facts: dict[str, Any]
) -> Path:
    """Write the card as a page that holds its numbers."""
    matrix = _figures.matrix(result)
    drawings = [matrix, _figures.delays(result), _figures.bars(result)]
    if not matrix:
        drawings.append(_tables.by_degree(result))
    content = fill_template(
        "card.html",
        title=device["name"],
        what=device.get(DESCRIPTION, ""),
        version=__version__,
        headline=headline(result),
        pictures=join(drawings),
        checks=check_list(result),
        facts=_tables.entry_group("How it was measured", facts, "wide"),
    )
    numbers = embedded_numbers(result, device["name"])
    return write_text(path, whole_page(device["name"], content, numbers))


def _write_picture(
    result: CapacityResult, path: Path, device: dict[str, str], facts: dict[str, Any]
) -> Path:
    """Write the card as one picture in light colours that needs no style sheet."""
    words = total_in_words(result)
    parts = _figures.parts_of_maximum(result)
    legend = []
    for part in parts:
        first_sentence, _, _ = part.meaning.partition(". ")
        square = element("tspan", "■", fill=part.colour)
        legend.append(join([square, f" {part.size_text}  {first_sentence}"]))
    shown_facts = ("inputs", "what noise allows", COST)
    notes = [f"{name}: {facts[name]}" for name in shown_facts if name in facts]
    notes.append(f"warnings: {len(result.warnings) or 'none'} · infocap {__version__}")
    description = shorten(device.get(DESCRIPTION, ""), MAX_DESCRIPTION_LENGTH, placeholder=" …")
    explanation = wrap(words.explanation, CERTAINTY_LINE_LENGTH)
    # Lines that do not fit above the bar move the claim up.
    raised = LINE_HEIGHT_OF_EXPLANATION * max(len(explanation) - N_LINES_ABOVE_BAR, 0)
    picture = fill_template(
        "card.svg",
        height_of_claim=HEIGHT_OF_CLAIM - raised,
        height_of_explanation=HEIGHT_OF_EXPLANATION - raised,
        title=shorten(device["name"], MAX_TITLE_LENGTH, placeholder=" …"),
        what=description,
        version=__version__,
        claim=_picture_claim(result, words.total),
        explanation=_text_lines(explanation, x=236, line_height=LINE_HEIGHT_OF_EXPLANATION),
        bar=_figures.stacked_bar(parts, result.maximum, ""),
        shares=_text_lines(legend, x=236, line_height=19),
        left=_picture_drawing(partial(capacity_bars, total=False), result),
        right=_second_drawing(result),
        circle=_figures.circle(result),
        facts=_text_lines(wrap(" · ".join(notes), FACTS_LINE_LENGTH), x=36, line_height=16),
    )
    text = picture.replace(' href="#', ' xlink:href="#')
    text = re.sub(r"var\(--([\w-]+)\)", lambda name: _figures.LIGHT_COLOURS[name[1]], text)
    return write_text(path, text)


def _picture_claim(result: CapacityResult, total: str) -> str:
    """Return the total with its maximum, or with the channels whose lower bound it is."""
    if result.components is None:
        return f"{total} of at most {result.maximum}"
    return f"at least {total} in {result.components.n_channels} channels"


def _picture_drawing(draw: Any, result: CapacityResult) -> Markup:
    return _figures.drawing(draw, result, "Capacities", height=PICTURE_DRAWING_HEIGHT)


def _second_drawing(result: CapacityResult) -> Markup:
    """Return capacities by delay or by both degrees; otherwise the strongest functions."""
    if result.basis.memory:
        return _picture_drawing(capacity_by_delay, result)
    if _figures.matrix(result):
        return _picture_drawing(partial(capacity_matrix, total=False), result)
    order = np.argsort(-result.capacity, kind="stable")
    strongest = [k for k in order if result.basis.degrees[k] > 0][:N_LISTED_FUNCTIONS]
    lines = ["the strongest functions:"]
    for k in strongest:
        number = f"{result.capacity[k]:.3f}"
        if not result.capacity_of_term(k).can_be_told:
            number = CANNOT_BE_TOLD
        lines.append(f"{number}   {result.basis.label(k)}")
    return element("text", _text_lines(lines, x=40, line_height=23), font_size=14)


def _text_lines(lines: Iterable[str], x: int, line_height: int) -> Markup:
    """Return the lines of a text in a picture, one below the other."""
    return join(element("tspan", line, x=x, dy=line_height) for line in lines)


@checks_arguments
def gallery(folder: str | Path, path: str | Path, title: str = "Gallery of devices") -> list[str]:
    """Write a page that compares all devices whose cards or results lie in a folder.

    Of files whose names differ only in the suffix one is read, a card rather than a table. Cards
    are linked.

    Parameters
    ----------
    folder
        Where the cards (``.html``) and results (``.nc``, ``.csv``) lie.
    path
        The ``.html`` file to write.
    title
        The heading of the page.

    Returns
    -------
    list of str
        The names of the devices, from the largest total capacity to the smallest.

    Examples
    --------
    >>> import tempfile
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for size in (3, 6):
    ...         device = infocap.systems.RandomFeatures(2, size, noise=0.01)
    ...         result = infocap.probe(device, basis, 256, seed=1)
    ...         _ = infocap.report.card(result, f"{folder}/{size}.html", f"{size} units")
    ...     infocap.report.gallery(folder, f"{folder}/gallery.html")
    ['6 units', '3 units']
    """
    folder = Path(folder)
    path = Path(path)
    require_one_of("path suffix", path.suffix, (PAGE_SUFFIX,))
    readable_path(folder, folder=True)
    devices = _each_once([(load_result(file), file) for file in _result_files(folder)])
    if not devices:
        raise DataError(
            f"{folder} holds no card and no result; "
            "make one with `infocap card result.nc -o card.html`."
        )
    # Devices whose total cannot be told are last.
    devices.sort(key=lambda device: -np.inf if device[0].nothing_to_show else device[0].total)
    devices.reverse()
    largest_maximum = max(result.maximum for result, _ in devices)
    names: list[str] = []
    rows = []
    for result, file in devices:
        name = _device_facts(result).get("name") or file.stem
        if name in names:
            name = f"{name} ({file.name})"
        names.append(name)
        rows.append(_gallery_row(_link(name, file, path), result, largest_maximum))
    n_with_memory = sum(result.basis.memory > 0 for result, _ in devices)
    content = fill_template(
        "gallery.html",
        title=title,
        version=__version__,
        lead=f"{len(names)} devices, {n_with_memory or 'none'} of them with memory.",
        legend=_gallery_legend(),
        rows=join(rows),
    )
    write_text(path, whole_page(title, content))
    return names


def _result_files(folder: Path) -> list[Path]:
    """Return the files of a folder that hold a result, one for each name without suffix."""
    files: dict[str, Path] = {}
    for suffix in READABLE_SUFFIXES:  # The last suffixes are those of cards.
        for file in sorted(folder.glob(f"*{suffix}")):
            if is_result(file):
                files[file.stem] = file
    return list(files.values())


def _each_once(devices: list[tuple[CapacityResult, Path]]) -> list[tuple[CapacityResult, Path]]:
    """Return devices without those that are there again, as a result, a report and a card may be.

    Of files with the same numbers the card stays, which alone tells the name of the device.
    """
    kept: dict[Any, tuple[CapacityResult, Path]] = {}
    for result, file in devices:
        numbers = (result.n_samples, result.n_readouts, result.total, result.capacity.tobytes())
        if numbers not in kept or "name" in _device_facts(result):
            kept[numbers] = (result, file)
    return list(kept.values())


def _link(name: str, file: Path, gallery_path: Path) -> Markup:
    """Return the name of a device, as a link to its card if it has one."""
    if file.suffix != PAGE_SUFFIX:
        return element("span", name)
    address = Path(os.path.relpath(file, gallery_path.parent)).as_posix()
    return element("a", name, href=quote(address))


def _gallery_legend() -> Markup:
    colours = [*DEGREE_COLOURS, OUTSIDE_COLOUR]
    names = [*DEGREE_NAMES, OUTSIDE_MEANING]
    entries = []
    for colour, name in zip(colours, names, strict=True):
        entries.append(element("span", _figures.swatch(colour, name)))
    return join(entries)


def _gallery_row(name: Markup, result: CapacityResult, largest_maximum: float) -> Markup:
    """Return the row of a device; its bar has the length of its maximum over the largest one."""
    device = _device_facts(result)
    basis = result.basis
    bar = _figures.stacked_bar(_parts_by_degree(result), result.maximum, "Capacity by degree")
    width = f"{100 * result.maximum / largest_maximum:.1f}%"
    sums = known_sums_by_degree(result)
    sorted_by = 0.0 if result.nothing_to_show else result.total
    hides_degrees = bool(result.nothing_to_show or untold_degrees(result))
    mean_degree = float(np.arange(len(sums)) @ sums) / max(float(sums.sum()), 1e-9)
    if result.nothing_to_show:
        total = CANNOT_BE_TOLD
    elif result.unreliable:
        total = result.short_total
    else:
        total = with_error(result.total, result.total_standard_error)
    maximum = str(result.maximum)
    if result.components is not None:
        if not result.nothing_to_show:
            total = f"≥ {total}"
        maximum = f"{result.components.in_words} of {result.components.n_channels} channels"
    return table_row(
        join([name, element("small", device.get(DESCRIPTION, ""))]),
        element("svg", bar, width=width, height=18),
        element("data", total, value=f"{sorted_by:.9g}"),
        maximum,
        _noise_limit(result),
        NO_VALUE if hides_degrees else fixed(mean_degree),
        _memory_capacity(result),
        basis.n_inputs,
        len(result.warnings) or "none",
        device.get(COST, NO_VALUE),
    )


def _noise_limit(result: CapacityResult) -> str:
    """Return what noise allows ± its standard error, or a dash where nobody measured it."""
    if result.noise_limited_total is None or result.nothing_to_show:
        return NO_VALUE
    return with_error(
        result.noise_limited_total, result.noise_limited_standard_error, result.maximum
    )


def _memory_capacity(result: CapacityResult) -> str:
    """Return the memory capacity ± its standard error, or a dash for a device without memory."""
    if not result.basis.memory or result.nothing_to_show:
        return NO_VALUE
    capacity = result.memory_capacity
    return with_error(float(capacity), capacity.standard_error, capacity.maximum)


def _parts_by_degree(result: CapacityResult) -> list[_figures.Part]:
    """Return the capacity of each degree, and what noise allows in functions outside the basis."""
    highest = len(DEGREE_COLOURS) - 1  # stands for all higher degrees, too
    parts: list[_figures.Part] = []
    if result.nothing_to_show:
        return parts
    sums = known_sums_by_degree(result)
    shown = np.bincount(np.minimum(np.arange(len(sums)), highest), sums)
    for degree, capacity in enumerate(shown.tolist()):
        if capacity > 0:
            colour = DEGREE_COLOURS[degree]
            meaning = f"of degree {DEGREE_NAMES[degree]}" if degree else "of the constant"
            parts.append(_figures.Part(colour, capacity, fixed(capacity), meaning))
    limit = result.noise_limited_total
    if limit is not None and limit > result.total:
        outside = limit - result.total
        parts.append(_figures.Part(OUTSIDE_COLOUR, outside, fixed(outside), OUTSIDE_MEANING))
    return parts
