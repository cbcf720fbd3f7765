"""The page as a whole: figures, tables and words in their order, with style, script and numbers inside."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import numpy as np

from .._check import one_of
from .._files import replaced
from .._version import __version__
from ..errors import DataError
from ..result import CapacityResult
from . import _tables, _words
from ._bars import bars
from ._budget import budget
from ._circle import circle
from ._data import embedded
from ._drift import drift
from ._factors import factors
from ._growth import growth
from ._html import Markup, element
from ._matrix import matrix
from ._measured import Measured, measured

TITLE = "Information processing capacity"
LARGEST_MATRIX = 20_000  # functions: beyond, cells are smaller than a pixel


def save(result: CapacityResult, path: str | Path, title: str | None = None) -> Path:
    """Write the page of a result to an ``.html`` file.

    >>> import tempfile
    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u, basis, 256, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     infocap.report.save(result, f"{folder}/report.html").name
    'report.html'
    """
    path = Path(path)
    one_of("path suffix", path.suffix, (".html", ".htm"))
    text = page(result, title)
    with replaced(path) as beside:
        beside.write_text(text, encoding="utf-8")
    return path


def page(result: CapacityResult, title: str | None = None) -> str:
    """A result as one HTML page that needs nothing else: no network, no server, no other file.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u, basis, 256, seed=1)
    >>> "The device computes" in infocap.report.page(result, title="Two wires")
    True
    """
    if not (np.isfinite(result.capacity).all() and np.isfinite(result.total)):
        raise DataError("result has capacities that are not finite numbers; estimate it again.")
    if result.total_standard_error is not None and not np.isfinite(result.total_standard_error):
        result = replace(result, total_standard_error=None)
    title = TITLE if title is None else str(title)
    found = measured(result.metadata)
    style, script = _asset("page.css"), _asset("page.js")
    return "<!doctype html>\n" + element(
        "html", _head(title, style, script), "\n", _body(result, found, title, script), lang="en-GB"
    )


def _head(title: str, style: str, script: str) -> Markup:
    """Nothing may be fetched, and only our own script may run, whatever text a file holds."""
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="generator", content=f"infocap {__version__}"),
        element("title", title),
        element("style", Markup(style)),
    )


def _body(result: CapacityResult, found: Measured, title: str, script: str) -> Markup:
    return element(
        "body",
        _headline(result, title),
        "\n",
        element(
            "main",
            _words.checks((*result.warnings, *found.problems), result.notes),
            "\n",
            element(
                "section",
                element("h2", "What it computes, and how surely"),
                element("div", *_figures(result, found), class_="pairs"),
            ),
            "\n",
            _tables.functions(result),
            "\n",
            _tables.provenance(result, found.provenance),
        ),
        "\n",
        _downloads(),
        element("div", id="tip", role="tooltip", hidden="hidden"),
        "\n",
        element("script", Markup(embedded(result, title)), type="application/json", id="infocap-data"),
        "\n",
        element("script", Markup(script)),
    )


def _headline(result: CapacityResult, title: str) -> Markup:
    toggle = element("button", "Dark", type="button", id="theme", class_="needs-script", hidden="hidden")
    return element(
        "header",
        element("div", element("h1", title), toggle, class_="title"),
        element(
            "div",
            circle(result),
            element(
                "div", _words.lead(result), _words.sureness(result), budget(result), class_="found-words"
            ),
            class_="headline",
        ),
    )


def _figures(result: CapacityResult, found: Measured) -> list[Markup]:
    """The matrix of two inputs, the bars of any number, the table, and what else was measured."""
    two = result.basis.n_inputs == 2 and len(result.basis) <= LARGEST_MATRIX
    return [
        *([matrix(result)] if two else []),
        bars(result),
        _tables.by_degree(result),
        *([] if found.growth is None else [growth(found.growth, result)]),
        *([] if found.factors is None else [factors(found.factors)]),
        *([] if found.drift is None else [drift(found.drift)]),
    ]


def _downloads() -> Markup:
    return element(
        "footer",
        element(
            "p",
            element("button", "Download CSV", type="button", id="save-csv"),
            " ",
            element("button", "Download JSON", type="button", id="save-json"),
            class_="needs-script",
            hidden="hidden",
        ),
        element(
            "p",
            "CSV: all functions, one a line; infocap.load_result reads it back. JSON: everything that this page knows.",
            class_="note needs-script",
            hidden="hidden",
        ),
        element(
            "noscript",
            element(
                "p",
                "Searching, tooltips and downloads need JavaScript; everything else is here.",
                class_="note",
            ),
        ),
        element("p", f"Made with infocap {__version__}.", class_="note"),
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """How the page's policy names a piece of itself."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
