"""The page as a whole: page.html filled with figures, tables and words, with style, script and numbers inside."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import replaced
from ..._formatting import counted, decimals, short
from ..._validation import one_of
from ..._version import __version__
from ...errors import DataError, ParameterError
from ...result._capacity_result import CapacityResult, per_term
from ...result._files import attributes, extras
from ...typing import Integers
from . import _figures, _tables
from ._html import (
    Markup,
    asset,
    basis_in_words,
    element,
    filled,
    markup,
    minus,
    together,
    with_error,
)

TITLE = "Information processing capacity"
DEEPEST = 60  # Entries within entries of metadata; more are an accident or an attack.
EXACT = 2**53  # Whole numbers beyond it are written as text: browsers would round them.


def save(result: CapacityResult, path: str | Path, title: str | None = None) -> Path:
    """Write the page of a result to an ``.html`` file.

    >>> import tempfile
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u, basis, 256, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     infocap.report.save(result, f"{folder}/report.html").name
    'report.html'
    """
    path = Path(path)
    one_of("path suffix", path.suffix, (".html", ".htm"))
    return write(path, page(result, title))


def write(path: Path, text: str) -> Path:
    """Put a text in place of a file at once."""
    with replaced(path) as beside:
        beside.write_text(text, encoding="utf-8")
    return path


def page(result: CapacityResult, title: str | None = None) -> str:
    """A result as one HTML page that needs nothing else: no network, no server, no other file.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u, basis, 256, seed=1)
    >>> "The device computes" in infocap.report.page(result, title="Two wires")
    True
    """
    title = str(title or _tables.planned(result).get("title") or TITLE)
    result = sound(result)
    return framed(title, body(result, title), embedded(result, title))


def sound(result: CapacityResult) -> CapacityResult:
    """The result, refused where capacities are no numbers, and without an error of the total that is none."""
    if not np.isfinite([*result.capacity, result.total, result.noise_limited_total or 0.0]).all():
        raise DataError("result has capacities that are not finite numbers; estimate it again.")
    if result.total_standard_error is not None and not np.isfinite(result.total_standard_error):
        return replace(result, total_standard_error=None)
    return result


def framed(title: str, inside: Markup, data: str = "", *, live: bool = False) -> str:
    """A whole page around its body: style, script, and a policy by which nothing is fetched and nothing else runs.

    A `live` page may ask again where it came from.
    """
    parts = {"title": title, "version": __version__, "body": inside, "data": data}
    parts["policy"] = "; connect-src 'self'" if live else ""
    for name, file in (("style", "page.css"), ("script", "page.js")):
        parts[name] = Markup(asset(file))
        parts[f"{name}_digest"] = b64encode(sha256(parts[name].encode()).digest()).decode()
    return filled("frame.html", **parts)


def body(result: CapacityResult, title: str) -> Markup:
    """All that a page shows of a result."""
    first = [_figures.matrix, _figures.misfit, _figures.delays, _figures.bars, _tables.by_degree]
    return filled(
        "page.html",
        title=title,
        version=__version__,
        headline=headline(result),
        checks=checks(result),
        pictures=together(
            draw(result) for draw in (*first, _figures.growth, _figures.factors, _figures.drift)
        ),
        example=result.basis.label(min(2, len(result.basis) - 1)),
        degrees=_options(result.basis.degrees),
        variables=_options(result.basis.interactions),
        functions=_tables.functions(result),
        provenance=_tables.provenance(result),
    )


def headline(result: CapacityResult) -> Markup:
    """The total in its circle, in words, and as a part of the maximum."""
    total, sure = total_in_words(result)
    inputs = "its input" if result.basis.n_inputs == 1 else f"its {result.basis.n_inputs} inputs"
    if result.basis.memory:
        inputs += f", now and up to {max(np.flatnonzero(result.by_delay().any(axis=1)), default=0)} steps ago"
    words = {"total": total, "sure": sure, "maximum": result.maximum, "inputs": inputs}
    return filled(
        "headline.html", circle=_figures.circle(result), budget=_figures.budget(result), **words
    )


def _options(values: Integers) -> Markup:
    return together(element("option", one, value=one) for one in np.unique(values))


def total_in_words(result: CapacityResult) -> tuple[str, str]:
    """The total, and how sure it is."""
    error = result.total_standard_error
    if result.unreliable:
        total = result.qualified_total
        sure = "No interval is given: the warnings below say why it would not hold. "
    elif error is None:
        total, sure = (
            minus(short(result.total, result.maximum)),
            f"The method {result.method!r} gives no error bars. ",
        )
    else:
        total, digits = with_error(result.total, error), decimals(error)
        low, high = (minus(f"{end:.{digits}f}") for end in result.total_interval(0.95))
        sure = f"95 % interval {low} to {high}; ± is the standard error. "
    sure += f"From {result.n_samples} samples of {result.readouts_in_words}, among {basis_in_words(result)}."
    sure += "".join(f" {one[0].upper()}{one[1:]}." for one in result.for_reservoirs)
    return total, sure


def checks(result: CapacityResult) -> Markup:
    """Every warning, or that there was none; and what was put right without harm."""
    parts, warned = [], counted(len(result.warnings), "warning")
    if not result.warnings:
        said = "Data and answer were looked at, and nothing was found that weakens the answer."
        parts.append(element("p", element("strong", "No warnings. "), said))
    for title, found in ((warned, result.warnings), ("Noted", result.notes)):
        if found:
            texts = (
                re.sub("`(.*?)`", r"<code>\1</code>", markup(one[:1].upper() + one[1:]))
                for one in found
            )
            lines = [element("li", Markup(text)) for text in texts]
            parts.append(element("div", element("h2", title), element("ul", *lines)))
    class_ = "checks" if result.warnings else "checks fine"
    return element("section", *parts, class_=class_, id="checks", aria_label="Checks")


def embedded(result: CapacityResult, title: str, name: str = "script") -> Markup:
    """An element with the result as JSON, which `load_result` reads back.

    ``<``, ``>`` and ``&`` are written as escapes, so no text in it can become markup.
    """
    basis = result.basis
    try:
        saved = attributes(result)
    except ParameterError:  # a user's own family cannot be saved, but its numbers can be shown
        names = (
            "method",
            "total",
            "total_standard_error",
            "n_samples",
            "n_readouts",
            "maximum",
            "rank",
        )
        saved = {name: getattr(result, name) for name in names}
    functions = {"label": basis.labels, "degree": basis.degrees, "variables": basis.interactions}
    data = {
        "title": title,
        "attributes": saved,
        "checks": [check.to_dict() for check in result.checks],
        "columns": list(basis.index_columns),
        "functions": functions | {"index": basis.indices.T} | per_term(result),
        "metadata": extras(result),
    }
    text = json.dumps(_plain(data), separators=(",", ":"), allow_nan=False)
    text = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return element(name, Markup(text), type_="application/json", id="infocap-data")


def _plain(value: Any, depth: int = 0) -> Any:
    """Only what JSON knows: numbers that are none become null, objects become their text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict | list | tuple) and depth > DEEPEST:
        return "nested too deeply"
    if isinstance(value, dict):
        return {str(key): _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, depth + 1) for one in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    exact = isinstance(value, int) and abs(value) <= EXACT
    return value if exact or value is None or isinstance(value, str) else str(value)
