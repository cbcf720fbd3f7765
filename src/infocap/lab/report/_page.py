"""The page as a whole: page.html filled with drawings, tables and words, and with the numbers."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..._files import write_whole
from ..._formatting import counted, decimals, short
from ..._validation import checks_arguments, require_one_of
from ..._version import __version__
from ...errors import DataError, ParameterError
from ...result import CapacityResult, per_term, saved_attributes, saved_metadata
from ...typing import Integers
from ...workflow import Sweep
from . import _figures, _tables
from ._html import (
    Markup,
    describe_basis,
    element,
    fill_template,
    join,
    markup,
    read_asset,
    with_error,
    with_minus,
)

DEFAULT_TITLE = "Information processing capacity"
# Entries within entries of the metadata that are written; more are an accident or an attack.
MAX_METADATA_DEPTH = 60
# Larger whole numbers are written as text, because browsers would round them.
MAX_EXACT_INTEGER = 2**53
# What the page shows of a result whose basis cannot be saved.
BASIC_ATTRIBUTES = (
    "method", "total", "total_standard_error", "n_samples", "n_readouts", "maximum", "rank",
)  # fmt: skip


@checks_arguments
def save(result: CapacityResult | Sweep, path: str | Path, title: str | None = None) -> Path:
    """Write the page of a result, or of a sweep, to a file.

    Parameters
    ----------
    result
        What `infocap.estimate` returned, or a sweep.
    path
        The file, whose name ends in ``.html``. `infocap.load_result` reads that of a result back.
    title
        The heading; by default the title of the plan, if there is one.

    Returns
    -------
    Path
        The path of the file.

    Examples
    --------
    >>> import tempfile
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u, basis, 256, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     infocap.report.save(result, f"{folder}/report.html").name
    'report.html'
    """
    path = Path(path)
    require_one_of("path suffix", path.suffix, (".html",))
    return write_text(path, page(result, title))


def write_text(path: Path, text: str) -> Path:
    """Write a text to a file, which is replaced as a whole or not at all."""
    with write_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


@checks_arguments
def page(result: CapacityResult | Sweep, title: str | None = None) -> str:
    """Return the page of a result as HTML that needs no network, no server and no other file.

    Parameters
    ----------
    result
        What `infocap.estimate` returned, or a sweep.
    title
        The heading; by default the title of the plan, if there is one.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u, basis, 256, seed=1)
    >>> "The device computes" in infocap.report.page(result, title="Two wires")
    True
    """
    if isinstance(result, Sweep):
        from ._sweep_page import sweep_page  # which is built of the parts of this page

        return sweep_page(result, title)
    title = str(title or _tables.recorded_plan(result).get("title") or DEFAULT_TITLE)
    result = checked_result(result)
    return whole_page(title, page_body(result, title), embedded_numbers(result, title))


def checked_result(result: CapacityResult) -> CapacityResult:
    """Return the result as pages show it; refuse capacities that are NaN or cannot be told.

    Functions that cannot be told apart are left out.
    """
    if result.nothing_to_show:
        raise DataError(result.nothing_to_show)
    result = result.only_told_apart()
    totals = [result.total, result.noise_limited_total or 0.0]
    if not np.isfinite([*result.capacity, *totals]).all():
        raise DataError("result has capacities that are not finite numbers; estimate it again.")
    return result


def whole_page(title: str, body: Markup, numbers: str = "", *, live: bool = False) -> str:
    """Return a body with everything around it: style, script and a content security policy.

    By the policy nothing is fetched, and only the page's own script runs. A `live` page may ask
    again where it came from.
    """
    style = Markup(read_asset("page.css"))
    script = Markup(read_asset("page.js"))
    return fill_template(
        "frame.html",
        title=title,
        version=__version__,
        body=body,
        data=numbers,
        policy="; connect-src 'self'" if live else "",
        style=style,
        style_digest=_digest(style),
        script=script,
        script_digest=_digest(script),
    )


def _digest(text: str) -> str:
    """Return the SHA-256 digest by which a security policy recognises a style or a script."""
    return b64encode(sha256(text.encode()).digest()).decode()


def page_body(result: CapacityResult, title: str) -> Markup:
    """Return all that a page shows of a result."""
    drawings = [
        _figures.findings(result),
        _figures.matrix(result),
        _figures.delays(result),
        _figures.bars(result),
        _tables.by_degree(result),
        _figures.growth(result),
        _figures.factors(result),
        _figures.drift(result),
    ]
    return fill_template(
        "page.html",
        title=title,
        version=__version__,
        headline=headline(result),
        checks=check_list(result),
        pictures=join(drawings),
        example=result.basis.label(min(2, len(result.basis) - 1)),
        degrees=_options(result.basis.degrees),
        variables=_options(result.basis.interactions),
        functions=_tables.functions(result),
        provenance=_tables.provenance(result),
    )


def _options(values: Integers) -> Markup:
    """Return the choices of a list: the different values, sorted."""
    return join(element("option", value, value=value) for value in np.unique(values))


def headline(result: CapacityResult) -> Markup:
    """Return the total in its circle, in words, and as a part of the maximum."""
    words = total_in_words(result)
    basis = result.basis
    inputs = "its input" if basis.n_inputs == 1 else f"its {basis.n_inputs} inputs"
    if basis.memory:
        delays_with_capacity = np.flatnonzero(result.by_delay().fillna(0.0).any(axis=1))
        longest = max(delays_with_capacity, default=0)
        inputs += f", now and up to {longest} steps ago"
    total = element("strong", words.total)
    if result.components is None:
        claim = join(
            [
                "The device computes ",
                total,
                f" of at most {result.largest_total} linearly independent ",
            ]
        )
    else:
        n_channels = result.components.n_channels
        components = result.components.in_words
        claim = join(
            [
                f"The {n_channels} channels hold at least ",
                total,
                f" ({components}) linearly independent ",
            ]
        )
    return fill_template(
        "headline.html",
        circle=_figures.circle(result),
        budget=_figures.budget(result),
        explanation=words.explanation,
        claim=join([claim, f"functions of {inputs}."]),
    )


class TotalInWords(NamedTuple):
    """The total with its error, and sentences on how sure it is and where it comes from."""

    total: str
    explanation: str


def total_in_words(result: CapacityResult) -> TotalInWords:
    """Return the total of a result in words."""
    error = result.total_standard_error
    if result.qualified_total:
        total = result.qualified_total
        certainty = "No interval is given: the warnings below say why it would not hold. "
    elif error is None:
        total = with_minus(short(result.total, result.largest_total))
        certainty = f"The method {result.method!r} gives no error bars. "
    else:
        total = with_error(result.total, error)
        digits = decimals(error)
        low, high = (with_minus(f"{end:.{digits}f}") for end in result.total_interval(0.95))
        bound = " of this lower bound" if result.components is not None else ""
        certainty = f"± is one standard error{bound}; {low} to {high} (95 %). "
    origin = (
        f"From {result.n_samples} samples of {result.readouts_in_words}, "
        f"among {describe_basis(result)}."
    )
    sentences = [
        f" {_capitalised(sentence)}." for sentence in (*result.about_law, *result.for_reservoirs)
    ]
    return TotalInWords(total, certainty + origin + "".join(sentences))


def check_list(result: CapacityResult) -> Markup:
    """Return every warning, or that there was none, and the notes on what was put right."""
    parts = []
    if not result.warnings:
        reassurance = (
            "The checks of the data and of the result found nothing that weakens the result."
        )
        parts.append(element("p", element("strong", "No warnings. "), reassurance))
    warnings_title = counted(len(result.warnings), "warning")
    for title, checks in ((warnings_title, result.warnings), ("Noted", result.notes)):
        if checks:
            lines = [element("li", _with_code(_capitalised(check))) for check in checks]
            parts.append(element("div", element("h2", title), element("ul", *lines)))
    class_ = "checks" if result.warnings else "checks fine"
    return element("section", *parts, class_=class_, id="checks", aria_label="Checks")


def _capitalised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _with_code(text: str) -> Markup:
    """Return a text in which names in backticks are set as code."""
    return Markup(re.sub("`(.*?)`", r"<code>\1</code>", markup(text)))


def embedded_numbers(result: CapacityResult, title: str) -> Markup:
    """Return an element that holds the result as JSON, which `load_result` reads back."""
    basis = result.basis
    try:
        attributes = saved_attributes(result)
    except ParameterError:
        # A user's own family cannot be saved, but its numbers can be shown.
        attributes = {name: getattr(result, name) for name in BASIC_ATTRIBUTES}
    functions = {
        "label": basis.labels,
        "degree": basis.degrees,
        "variables": basis.interactions,
        "index": basis.indices.T,
        **per_term(result),
    }
    numbers = {
        "title": title,
        "attributes": attributes,
        "checks": [check.to_dict() for check in result.checks],
        "columns": list(basis.index_columns),
        "functions": functions,
        "metadata": saved_metadata(result),
    }
    text = json.dumps(_json_value(numbers), separators=(",", ":"), allow_nan=False)
    # With these three characters escaped, no text in the JSON can become markup.
    for character in "&<>":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return element("script", Markup(text), type_="application/json", id="infocap-data")


def _json_value(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON knows it: NaN and infinity become null, objects become their text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict | list | tuple) and depth > MAX_METADATA_DEPTH:
        return "nested too deeply"
    if isinstance(value, dict):
        return {str(key): _json_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item, depth + 1) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, int):  # True and False are such numbers, too.
        return value if abs(value) <= MAX_EXACT_INTEGER else str(value)
    if value is None or isinstance(value, str):
        return value
    return str(value)
