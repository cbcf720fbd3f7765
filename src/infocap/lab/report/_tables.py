"""The tables: capacity by degree, the functions, and where the numbers come from."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._formatting import listed, name_and_unit
from ...estimators import METHODS
from ...plot._capacity import KINDS, errors_by_degree, stacks
from ...result._capacity_result import CapacityResult
from ._html import Markup, basis_in_words, element, minus, plain, row, together, with_error

STRONGEST = 20  # functions in the page itself; the script shows more
LONGEST, MOST_ENTRIES = (
    600,
    300,
)  # characters of one entry of the provenance, and entries of one group
LEAST_ERROR = (
    5e-5  # A smaller error, as the constant has it, would take more digits than the column has.
)
MOMENT = r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?(?:Z|\+00:00)"
NAMES = {"estimated": "date", "infocap": "infocap version"}


def by_degree(result: CapacityResult) -> Markup:
    """Capacity by total degree and number of variables."""
    table, errors = stacks(result), errors_by_degree(result)
    kinds = [kind for kind in KINDS if kind != "0" and table[kind].any()]
    split = kinds if len(kinds) > 1 else []
    functions = np.bincount(result.basis.degrees, minlength=len(table))
    held = np.bincount(result.basis.degrees, result.capacity > 0, minlength=len(table)).astype(int)
    rows = []
    for degree in np.flatnonzero(functions):
        values = table.loc[degree]
        total = float(values.sum())
        error = 0.0 if errors is None else float(errors[degree])
        shown = plain(total) if total == 0 or error < LEAST_ERROR else with_error(total, error)
        numbers = [plain(float(values[kind])) for kind in split]
        rows.append(
            row(degree or "constant", f"{held[degree]} of {functions[degree]}", *numbers, shown)
        )
    added = float(result.capacity.sum())
    numbers = [plain(float(table[kind].sum())) for kind in split]
    foot = element(
        "tfoot", row("all", f"{held.sum()} of {len(result.basis)}", *numbers, plain(added))
    )
    names = ["degree", "not zero", *(KINDS[kind] for kind in split), "sum"]
    parts = [_scrolling("Capacity by degree", names, element("tbody", *rows), foot)]
    if abs(added - result.total) >= 5e-3:
        whole = result.qualified_total or plain(result.total)
        said = f"The functions shown add up to {plain(added)}; the total, {whole}, also counts what is too small to show."
        parts.append(element("p", said, class_="note"))
    return element("figure", element("h3", "Table by degree"), *parts)


def functions(result: CapacityResult) -> Markup:
    """The strongest functions; the script adds searching and all the others."""
    order = np.argsort(-result.capacity, kind="stable")
    chosen = [int(one) for one in order[:STRONGEST] if result.capacity[one] > 0]
    held, there = np.sum(result.capacity > 0), len(result.basis)
    said = f"The {len(chosen)} strongest of {held} functions above zero, of {there} in the basis."
    said = said if chosen else "No function has a capacity above zero."
    tested = ["p-value"] if result.p_value is not None else []
    names = ["function", "capacity", "", *tested, "degree", "variables"]
    rows = []
    for one in chosen:
        label, capacity = result.basis.label(one), float(result.capacity[one])
        error = None if result.standard_error is None else float(result.standard_error[one])
        width = f"{100 * min(capacity, 1.0):.1f}%"
        bar = element(
            "svg", element("rect", width=width, height="100%"), class_="share", aria_hidden="true"
        )
        cells = ["constant" if label == "1" else label, with_error(capacity, error), bar]
        if result.p_value is not None:
            p = float(result.p_value[one])
            cells.append("< 0.001" if p < 0.001 else plain(p, 3))
        cells += [result.basis.degrees[one], result.basis.interactions[one]]
        rows.append(element("tr", *(element("td", cell) for cell in cells)))
    body = element("tbody", *rows, id="rows")
    table = _scrolling("Functions by capacity", names, body, class_="functions")
    return together([table, element("p", said, id="shown", class_="note")])


def estimation(result: CapacityResult) -> dict[str, Any]:
    """What was asked, of what data, and how."""
    independent = "all" if result.rank == result.maximum else f"{result.rank} of {result.maximum}"
    # A user's own method may be a bare function, without a summary.
    summary = getattr(METHODS.get(result.method), "summary", None)
    kinds: dict[str, list[str]] = {}
    for name, family in zip(result.basis.names, result.basis.families, strict=True):
        (low, high), unit = (
            (minus(f"{end:g}") for end in family.domain),
            name_and_unit(family.variable)[1],
        )
        kinds.setdefault(
            f"{family.distribution}, domain {low} to {high} {unit}".strip(), []
        ).append(name)
    facts: dict[str, Any] = {
        "method": f"{result.method} ({summary})" if summary else result.method,
        "basis": basis_in_words(result),
        "inputs": "; ".join(f"{listed(names)}: {kind}" for kind, names in kinds.items()),
        "samples": result.n_samples,
        "readouts": f"{result.readouts_in_words}, {independent} linearly independent",
    }
    if result.noise_limited_total is not None:
        facts["what noise allows"] = with_error(
            result.noise_limited_total, result.noise_limited_standard_error
        )
    if result.basis.memory:
        facts["memory capacity"] = f"{result.memory_capacity!r}, the sum over functions of degree 1"
    if result.factors is not None and result.factors.n_factors is not None:
        facts["factors above the noise"] = result.factors.n_factors
    return facts


def told(result: CapacityResult) -> dict[str, Any]:
    """All that the recording brought along, and when and with what it was estimated."""
    known = result.metadata.get("provenance", {})
    return known if isinstance(known, dict) else {"provenance": known}


def planned(result: CapacityResult) -> dict[str, Any]:
    """The plan of the run as plain data; empty where there was none."""
    plan = told(result).get("plan")
    return plan if isinstance(plan, dict) else {}


def provenance(result: CapacityResult) -> Markup:
    """Where the numbers come from: the estimation, then all that the recording brought along."""
    own = estimation(result)
    found = told(result)
    simple = {
        NAMES.get(key, str(key)): value
        for key, value in found.items()
        if not isinstance(value, dict)
    }
    simple = {f"{key} (recording)" if key in own else key: value for key, value in simple.items()}
    groups = [group("estimation", own | simple, "wide")]
    groups += [group(str(key), value) for key, value in found.items() if isinstance(value, dict)]
    if not found:
        said = (
            "Nothing more is known. The plan, seed and date come with results of infocap.estimate."
        )
        groups.append(element("p", said, class_="note"))
    return together(groups)


def group(title: str, entries: dict[Any, Any], class_: str | None = None) -> Markup:
    lines = list(_flat(entries))
    shown = [(name.replace("_", " "), _short(value)) for name, value in lines[:MOST_ENTRIES]]
    parts = [element("div", element("dt", name), element("dd", text)) for name, text in shown]
    more = len(lines) - len(parts)
    rest = (
        element("p", f"and {more} more entries, in the download.", class_="note")
        if more > 0
        else ""
    )
    title = title[:1].upper() + title[1:].replace("_", " ")
    return together([element("h3", title), element("dl", *parts, class_=class_), rest])


def _flat(entries: dict[Any, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Entries of entries, also of those in lists, named by their way, at most nine deep."""
    for key, value in entries.items():
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            value = value[0] if len(value) == 1 else {k + 1: one for k, one in enumerate(value)}
        if isinstance(value, dict) and value and above.count("›") < 8:
            yield from _flat(value, f"{above}{key} › ")
        else:
            yield f"{above}{key}", value


def _short(value: Any) -> str:
    """One entry as text: dates without the T and the seconds, numbers to six digits, long texts cut."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return minus(f"{value:.6g}")
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = re.sub(MOMENT, r"\1 \2 UTC", text)
    if len(text) > LONGEST:
        return f"{text[:LONGEST]} … ({len(text)} characters, all in the download)"
    return text or "–"


def _scrolling(name: str, columns: list[str], *parts: Markup, class_: str | None = None) -> Markup:
    """A table that scrolls by itself where the screen is narrow."""
    head = element(
        "thead", element("tr", *(element("th", column, scope="col") for column in columns))
    )
    table = element("table", element("caption", name), head, *parts, class_=class_)
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=name)
