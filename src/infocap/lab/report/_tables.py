"""The tables of the page: capacity by degree, the functions, and the provenance of the numbers."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._formatting import digits_of_column, join_names, name_and_unit
from ...basis import RecordedFamily
from ...estimators import METHODS
from ...plot import KIND_NAMES, capacity_by_kind
from ...result import MIN_WRITTEN_ERROR, CapacityResult, sums_over_degrees
from ._html import (
    NO_VALUE,
    Markup,
    describe_basis,
    element,
    fixed,
    join,
    table_row,
    with_error,
    with_minus,
)

# Functions in the page itself; the script shows the others.
N_STRONGEST_FUNCTIONS = 20
# Characters of one entry of the provenance; longer texts are cut.
MAX_WRITTEN_ENTRY_LENGTH = 600
# Entries of one group of the provenance; the download holds the others.
MAX_ENTRIES_PER_GROUP = 300
# Dictionaries within dictionaries that the provenance unfolds.
MAX_UNFOLDED_LEVELS = 8
# A p-value below this is written "< 0.001".
MIN_WRITTEN_P_VALUE = 0.001
# Sums that differ by less look the same with two decimals.
ROUNDING_OF_SUMS = 5e-3
# Kinds of functions whose columns fit into half of the page.
MAX_KINDS_BESIDE_A_PICTURE = 2
TIMESTAMP = r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?(?:Z|\+00:00)"
PROVENANCE_NAMES = {"estimated": "date", "infocap": "infocap version"}


def by_degree(result: CapacityResult) -> Markup:
    """Return the table of capacity by total degree and number of variables."""
    table = capacity_by_kind(result)
    estimates = sums_over_degrees(result)
    kinds = [kind for kind in KIND_NAMES if kind != "0" and table[kind].any()]
    if len(kinds) == 1:
        kinds = []  # The column would repeat the sum.
    degrees = result.basis.degrees
    n_functions = np.bincount(degrees, minlength=len(table))
    n_nonzero = np.bincount(degrees, result.capacity > 0, minlength=len(table)).astype(int)

    digits = digits_of_column([one.standard_error for one in estimates])
    rows = []
    n_told_apart = np.bincount(degrees, result.told_apart, len(table))
    for degree in np.flatnonzero(n_told_apart):
        capacities = table.loc[degree]
        one = estimates[degree]
        error = one.standard_error or 0.0
        if error < MIN_WRITTEN_ERROR:
            estimate = fixed(float(one))
        else:
            estimate = with_error(float(one), error, one.maximum, digits)
        counts = f"{n_nonzero[degree]} of {n_functions[degree]}"
        cells = [fixed(float(capacities[kind])) for kind in kinds]
        sum_shown = fixed(float(capacities.sum()))
        if not one.can_be_told:
            cells = [NO_VALUE] * len(kinds)
            sum_shown = NO_VALUE
        rows.append(table_row(degree or "constant", counts, *cells, sum_shown, estimate))

    sum_of_capacities = float(table.to_numpy().sum())
    counts = f"{n_nonzero.sum()} of {len(result.basis)}"
    cells = [fixed(float(table[kind].sum())) for kind in kinds]
    sum_text = fixed(sum_of_capacities)
    total_text = result.total_in_words
    if not result.qualified_total:
        total_text = with_error(result.total, result.total_standard_error)
    footer = element("tfoot", table_row("all", counts, *cells, sum_text, total_text))
    columns = ["degree", "not zero", *(KIND_NAMES[kind] for kind in kinds), "shown", "estimate"]
    parts = [_scrolling_table("Capacity by degree", columns, element("tbody", *rows), footer)]
    if abs(sum_of_capacities - result.total) >= ROUNDING_OF_SUMS:
        note = (
            "Functions that are not significantly above zero are shown as 0. Their small "
            "estimates, some of them negative, still enter the estimates and the total."
        )
        parts.append(element("p", note, class_="note"))
    # A table of many kinds does not fit beside a picture.
    class_ = "wide" if len(kinds) > MAX_KINDS_BESIDE_A_PICTURE else None
    return element("figure", element("h3", "Table by degree"), *parts, class_=class_)


def functions(result: CapacityResult) -> Markup:
    """Return the table of the strongest functions; the script adds searching and all the others."""
    order = np.argsort(-result.capacity, kind="stable")
    strongest = [int(k) for k in order[:N_STRONGEST_FUNCTIONS] if result.capacity[k] > 0]
    n_nonzero = np.sum(result.capacity > 0)
    if strongest:
        note = (
            f"The {len(strongest)} strongest of {n_nonzero} functions above zero, "
            f"of {len(result.basis)} in the basis."
        )
    else:
        note = "No function has a capacity above zero."
    columns = ["function", "capacity", ""]
    if result.p_value is not None:
        columns.append("p-value")
    columns += ["degree", "variables"]
    rows = [_function_row(result, k) for k in strongest]
    body = element("tbody", *rows, id="rows")
    table = _scrolling_table("Functions by capacity", columns, body, class_="functions")
    return join([table, element("p", note, id="shown", class_="note")])


def _function_row(result: CapacityResult, k: int) -> Markup:
    label = result.innovation_label(k)
    capacity = float(result.capacity[k])
    error = None if result.standard_error is None else float(result.standard_error[k])
    width = f"{100 * min(capacity, 1.0):.1f}%"
    rectangle = element("rect", width=width, height="100%")
    bar = element("svg", rectangle, class_="share", aria_hidden="true")
    in_words = with_error(capacity, error, largest=1.0)
    cells: list[object] = ["constant" if label == "1" else label, in_words, bar]
    if result.p_value is not None:
        p_value = float(result.p_value[k])
        if p_value < MIN_WRITTEN_P_VALUE:
            cells.append(f"< {MIN_WRITTEN_P_VALUE:g}")
        else:
            cells.append(fixed(p_value, 3))
    cells += [result.basis.degrees[k], result.basis.interactions[k]]
    return element("tr", *(element("td", cell) for cell in cells))


def estimation(result: CapacityResult) -> dict[str, Any]:
    """Return the facts of an estimation by name: method, basis, inputs, samples and readouts."""
    independent = "all"
    if result.rank != result.maximum:
        independent = f"{result.rank} of {result.maximum}"
    # A user's own method may be a bare function, without a summary.
    summary = getattr(METHODS.get(result.method), "summary", None)
    facts: dict[str, Any] = {
        "method": f"{result.method} ({summary})" if summary else result.method,
        "basis": describe_basis(result),
        "inputs": _describe_inputs(result),
        "samples": result.n_samples,
        "readouts": f"{result.readouts_in_words}, {independent} linearly independent",
    }
    if result.components is not None:
        facts["claim"] = result.claim(result.total_in_words)
    if result.noise_limited_total is not None:
        facts["what noise allows"] = result.noise_limit_in_words
    if result.basis.memory:
        facts["memory capacity"] = (
            f"{result.memory_capacity_in_words}, the sum over functions of degree 1"
        )
    if result.factors is not None and result.factors.n_factors is not None:
        facts["factors above the noise"] = result.factors.n_factors
    return facts


def _describe_inputs(result: CapacityResult) -> str:
    """Return the distribution of the inputs; inputs with the same distribution stand together."""
    names_by_distribution: dict[str, list[str]] = {}
    for name, family in zip(result.basis.names, result.basis.families, strict=True):
        low, high = (with_minus(f"{end:g}") for end in family.domain)
        _, unit = name_and_unit(family.variable)
        description = f"{family.distribution}, domain {low} to {high} {unit}".strip()
        if isinstance(family, RecordedFamily):  # Its domain only scales the polynomials.
            description = family.distribution
        names_by_distribution.setdefault(description, []).append(name)
    return "; ".join(
        f"{join_names(names)}: {description}"
        for description, names in names_by_distribution.items()
    )


def recorded_provenance(result: CapacityResult) -> dict[str, Any]:
    """Return what the recording brought along, with the date and version of the estimation."""
    provenance = result.metadata.get("provenance", {})
    if isinstance(provenance, dict):
        return provenance
    return {"provenance": provenance}


def recorded_plan(result: CapacityResult) -> dict[str, Any]:
    """Return the plan of the run as plain data; it is empty where there was none."""
    plan = recorded_provenance(result).get("plan")
    return plan if isinstance(plan, dict) else {}


def provenance(result: CapacityResult) -> Markup:
    """Return where the numbers come from: the estimation, then all that the recording brought."""
    facts = estimation(result)
    recorded = recorded_provenance(result)
    simple_entries = {}
    for key, value in recorded.items():
        if not isinstance(value, dict):
            name = PROVENANCE_NAMES.get(key, str(key))
            simple_entries[f"{name} (recording)" if name in facts else name] = value
    groups = [entry_group("estimation", facts | simple_entries, "wide")]
    for key, value in recorded.items():
        if isinstance(value, dict):
            groups.append(entry_group(str(key), value))
    if "plan" not in recorded:
        note = "The data had no record of their plan or seed; infocap.estimate(recording) keeps it."
        groups.append(element("p", note, class_="note"))
    return join(groups)


def entry_group(title: str, entries: dict[Any, Any], class_: str | None = None) -> Markup:
    """Return a heading and a list of named entries; entries of entries are unfolded."""
    flat_entries = list(_unfold(entries))
    lines = []
    for name, value in flat_entries[:MAX_ENTRIES_PER_GROUP]:
        term = element("dt", name.replace("_", " "))
        lines.append(element("div", term, element("dd", _entry_text(value))))
    n_hidden = len(flat_entries) - len(lines)
    note: object = ""
    if n_hidden > 0:
        note = element("p", f"and {n_hidden} more entries, in the download.", class_="note")
    heading = title[:1].upper() + title[1:].replace("_", " ")
    return join([element("h3", heading), element("dl", *lines, class_=class_), note])


def _unfold(entries: dict[Any, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield entries of entries, also of those in lists, named by their path."""
    for key, value in entries.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            if len(value) == 1:
                value = value[0]
            else:
                value = dict(enumerate(value, start=1))
        if isinstance(value, dict) and value and path.count("›") < MAX_UNFOLDED_LEVELS:
            yield from _unfold(value, f"{path}{key} › ")
        else:
            yield f"{path}{key}", value


def _entry_text(value: Any) -> str:
    """Return an entry as text: dates without seconds, numbers to six digits, long texts cut."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return with_minus(f"{value:.6g}")
    if isinstance(value, list | tuple):
        text = ", ".join(map(str, value))
    else:
        text = str(value)
    text = re.sub(TIMESTAMP, r"\1 \2 UTC", text)
    if len(text) > MAX_WRITTEN_ENTRY_LENGTH:
        return f"{text[:MAX_WRITTEN_ENTRY_LENGTH]} … ({len(text)} characters, all in the download)"
    return text or "–"


def _scrolling_table(
    caption: str, columns: list[str], *parts: Markup, class_: str | None = None
) -> Markup:
    """Return a table that scrolls by itself where the screen is narrow."""
    headings = [element("th", column, scope="col") for column in columns]
    head = element("thead", element("tr", *headings))
    table = element("table", element("caption", caption), head, *parts, class_=class_)
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)
