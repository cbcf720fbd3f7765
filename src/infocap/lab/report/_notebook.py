"""What notebooks show of results, comparisons, recordings, plans and bases."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..._formatting import name_and_unit
from ...basis import ProductBasis
from ...plot import compare
from ...recording import Recording
from ...result import CapacityResult
from ...workflow import Comparison
from ..experiment import Plan
from ._figures import bars, delays, drawing, matrix
from ._html import Markup, element, markup, read_asset, with_minus

STYLE_SHEET = (
    f".infocap {{ {read_asset('page.css').replace(':root', '&')} }}\n{read_asset('notebook.css')}"
)
# Rows of the table of inputs; a notebook is for a glance.
MAX_INPUT_ROWS = 12


class InputRow(NamedTuple):
    """What the table of inputs shows of an input; the variable may end in a unit in brackets."""

    variable: str
    distribution: str
    low: float
    high: float


def notebook(subject: Any) -> str:
    """Return an object as HTML: its text as a terminal shows it, and drawings or a table of inputs.

    Parameters
    ----------
    subject
        A result, a comparison, a recording, a plan or a basis.
    """
    words = _words(subject)
    if isinstance(subject, CapacityResult) and subject.nothing_to_show:
        details = Markup("")
    elif isinstance(subject, CapacityResult):
        drawings = [draw(subject) for draw in (matrix, delays, bars)]
        details = element("div", *drawings, class_="pairs")
    elif isinstance(subject, Comparison):
        picture = drawing(compare, subject, "Capacity by degree of each device")
        details = element("div", picture, class_="pairs")
    elif isinstance(subject, Recording):
        details = _measured_inputs(subject)
    else:
        basis: ProductBasis = subject.basis if isinstance(subject, Plan) else subject
        rows = []
        for name, family in zip(basis.names, basis.families, strict=True):
            low, high = family.bounds
            rows.append(InputRow(family.variable or name, family.distribution, low, high))
        details = _input_table(rows)
    style = element("style", Markup(STYLE_SHEET))
    return element("div", style, words, details, class_="infocap")


def _words(subject: Any) -> Markup:
    """Return the text of the terminal: its first line, and the others on a click."""
    text = f"Plan: {subject.in_words()}" if isinstance(subject, Plan) else repr(subject)
    first_line, *details = text.split("\n")
    headline = element("strong", first_line)
    if not details:
        return headline
    # Warnings weaken the answer, so they are visible at once.
    is_open = "open" if getattr(subject, "warnings", ()) else None
    summary = element("summary", headline)
    return element("details", summary, element("pre", "\n".join(details)), open=is_open)


def _measured_inputs(recording: Recording) -> Markup:
    n_inputs = recording.inputs.shape[1]
    if len(recording.design_index):
        inputs = np.asarray(recording.inputs[:])
    else:
        inputs = np.full((1, n_inputs), np.nan)
    names = recording.input_names or tuple(f"u{k + 1}" for k in range(n_inputs))
    lows = inputs.min(axis=0)
    highs = inputs.max(axis=0)
    rows = []
    for name, low, high in zip(names, lows, highs, strict=True):
        rows.append(InputRow(name, "as measured", low, high))
    return _input_table(rows)


def _input_table(inputs: Iterable[InputRow]) -> Markup:
    """Return a table with one row per input: name, distribution, lowest and highest value, unit."""
    rows = []
    for row in inputs:
        name, unit = name_and_unit(row.variable)
        low = with_minus(f"{row.low:g}")
        high = with_minus(f"{row.high:g}")
        rows.append([markup(cell) for cell in (name, row.distribution, low, high, unit)])
    table = pd.DataFrame(rows, columns=["input", "distribution", "from", "to", "unit"])
    return Markup(table.to_html(index=False, escape=False, max_rows=MAX_INPUT_ROWS, border=0))
