"""The page of a sweep: totals and degrees over the settings, and a picture for each setting."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from ..._formatting import counted
from ..._version import __version__
from ...plot import capacity_bars, capacity_matrix, degree_bars, memory_function
from ...result import CapacityResult, untold_degrees
from ...workflow import Sweep, point_in_words
from . import _figures, _tables
from ._html import NO_VALUE, Markup, describe_basis, element, fill_template, fixed, join, table_row
from ._page import checked_result, total_in_words, whole_page

# Degrees that have a column of the table; higher ones share the last.
MAX_DEGREE_COLUMNS = 6


def sweep_page(swept: Sweep, title: str | None = None) -> str:
    """Return the page of a sweep as HTML that needs no network, no server and no other file.

    Parameters
    ----------
    swept
        What `infocap.sweep`, `infocap.load_sweep` or `lab.estimate_sweep` returned.
    title
        The heading; by default the title of the plan, or the names of the settings.
    """
    results = tuple(checked_result(result) for result in swept.results)
    swept = Sweep(swept.settings, results)
    names = _and(swept.settings)
    title = str(title or _tables.recorded_plan(results[0]).get("title") or f"Sweep of {names}")
    body = fill_template(
        "sweep.html",
        title=title,
        lead=_lead(swept),
        note=_note(results[0]),
        checks=_warnings(swept),
        overview=_bars_of_degrees(swept),
        table=_table(swept),
        settings=join(_pictures(swept)),
        provenance=_tables.provenance(results[0]),
        version=__version__,
    )
    return whole_page(title, body)


def _lead(swept: Sweep) -> Markup:
    """Return the range of the totals in a sentence."""
    totals = swept.totals.ravel()
    lowest = swept.results[int(np.argmin(totals))]
    highest = swept.results[int(np.argmax(totals))]
    return join(
        [
            f"At {counted(len(swept), 'setting')} of {_and(swept.settings)} the total capacity is ",
            element("strong", total_in_words(lowest).total),
            " to ",
            element("strong", total_in_words(highest).total),
            ".",
        ]
    )


def _note(result: CapacityResult) -> str:
    return (
        f"{result.n_samples} samples of {result.readouts_in_words} at each, among "
        f"{describe_basis(result)}; ± is one standard error."
    )


def _warnings(swept: Sweep) -> Markup:
    """Return the warnings at each setting, or that there was none."""
    lines = []
    for point, result in swept:
        for check in result.warnings:
            lines.append(element("li", element("strong", point_in_words(point)), f": {check}"))
    if not lines:
        words = "The checks found nothing that weakens the results."
        paragraph = element("p", element("strong", "No warnings. "), words)
        return element("section", paragraph, class_="checks fine", aria_label="Checks")
    heading = element("h2", counted(len(lines), "warning"))
    return element("section", heading, element("ul", *lines), class_="checks", aria_label="Checks")


def _bars_of_degrees(swept: Sweep) -> Markup:
    """Return capacity by degree at each setting."""
    caption = (
        "Capacity without the constant, stacked by degree; error bars are standard errors of the "
        "total."
    )
    picture = _figures.drawing(degree_bars, swept, caption)
    heading = element("h3", "Capacity by degree")
    return element("figure", heading, picture, element("figcaption", caption))


def _table(swept: Sweep) -> Markup:
    """Return one row for each setting: its values, the total, capacity by degree."""
    n_degrees = len(swept.results[0].sums_by_degree())
    shared = n_degrees > MAX_DEGREE_COLUMNS + 1
    columns = [str(degree) for degree in range(min(n_degrees, MAX_DEGREE_COLUMNS + 1))]
    if shared:
        columns[-1] += " and more"
    rows = []
    for number, (point, result) in enumerate(swept):
        sums = result.sums_by_degree()
        sums[untold_degrees(result)] = np.nan
        shown = [*sums[: len(columns) - 1], sums[len(columns) - 1 :].sum()]
        sums_in_words = [NO_VALUE if np.isnan(value) else fixed(float(value)) for value in shown]
        values = [_value(value) for value in point.values()]
        link = element("a", values[0], href=f"#{_anchor(number)}")
        cells = [*values[1:], total_in_words(result).total, result.largest_total]
        rows.append(table_row(link, *cells, *sums_in_words))
    names = [name.replace("_", " ") for name in swept.settings]
    degrees = [f"degree {columns[0]}", *columns[1:]]
    headings = [element("th", name) for name in [*names, "total", "of at most", *degrees]]
    head = element("thead", element("tr", *headings))
    body = element("tbody", *rows)
    table = element("table", element("caption", "Totals of all settings"), head, body)
    return element("div", table, class_="scroll", tabindex="0")


def _and(names: Iterable[str]) -> str:
    """Return names as a list in a sentence: ``a, b and c``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _value(value: Any) -> str:
    """Return the value of a setting as it was given."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _pictures(swept: Sweep) -> list[Markup]:
    """Return a picture for each setting, which shows most of its result."""
    figures = []
    for number, (point, result) in enumerate(swept):
        draw = _fitting_plot(result)
        in_words = point_in_words(point)
        total = total_in_words(result).total
        caption = join(["Total ", total, f" of at most {result.largest_total}."])
        picture = _figures.drawing(
            draw, result, f"Capacities at {in_words}", name=f"setting{number}"
        )
        heading = element("h3", in_words, id=_anchor(number))
        figures.append(element("figure", heading, picture, element("figcaption", caption)))
    return figures


def _fitting_plot(result: CapacityResult) -> Callable[..., Any]:
    """Return the plot that shows most of a result."""
    if result.basis.memory:
        return memory_function
    if result.basis.n_inputs == 2 and len(result.basis) <= _figures.MAX_MATRIX_CELLS:
        return partial(capacity_matrix, total=False)
    return partial(capacity_bars, total=False)


def _anchor(number: int) -> str:
    return f"setting-{number}"
