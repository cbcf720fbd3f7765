"""What notebooks show of results, comparisons, recordings, plans and bases: the page's own drawings, small."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ..._formatting import name_and_unit
from ...basis._product import ProductBasis
from ...plot import compare
from ...recording._recording import Recording
from ...result._capacity_result import CapacityResult
from ...workflow._compare import Comparison
from ..experiment._plan import Plan
from ._figures import bars, delays, drawn, matrix
from ._html import Markup, asset, element, markup, minus

STYLE = f".infocap {{ {asset('page.css').replace(':root', '&')} }}\n{asset('notebook.css')}"
MOST_INPUTS = 12  # Inputs in a table; a notebook is for a glance.


def notebook(shown: Any) -> str:
    """An object as HTML for a notebook: the words of the terminal, with pictures or a table of its inputs below."""
    first, *rest = (
        [f"Plan: {shown.in_words()}"] if isinstance(shown, Plan) else repr(shown).split("\n")
    )
    said = element("strong", first)
    if rest:
        warned = (
            "open" if getattr(shown, "warnings", ()) else None
        )  # what weakens the answer is seen at once
        said = element(
            "details", element("summary", said), element("pre", "\n".join(rest)), open=warned
        )
    if isinstance(shown, CapacityResult):
        below = element("div", *(draw(shown) for draw in (matrix, delays, bars)), class_="pairs")
    elif isinstance(shown, Comparison):
        below = element(
            "div", drawn(compare, shown, "Capacity by degree of each device"), class_="pairs"
        )
    elif isinstance(shown, Recording):
        u = (
            np.asarray(shown.inputs[:])
            if len(shown.design_index)
            else np.full((1, shown.inputs.shape[1]), np.nan)
        )
        names = shown.input_names or tuple(f"u{k + 1}" for k in range(u.shape[1]))
        below = _table(
            (name, "as measured", *ends)
            for name, *ends in zip(names, u.min(0), u.max(0), strict=True)
        )
    else:
        basis: ProductBasis = shown.basis if isinstance(shown, Plan) else shown
        inputs = zip(basis.names, basis.families, strict=True)
        below = _table(
            (family.variable or name, family.distribution, *family.bounds)
            for name, family in inputs
        )
    return element("div", element("style", Markup(STYLE)), said, below, class_="infocap")


def _table(inputs: Iterable[tuple[str, str, float, float]]) -> Markup:
    """One row per input: its name, distribution, lowest and highest value, and unit."""
    rows = []
    for name, distribution, low, high in inputs:
        called, unit = name_and_unit(name)
        rows.append(
            map(markup, (called, distribution, minus(f"{low:g}"), minus(f"{high:g}"), unit))
        )
    table = pd.DataFrame(rows, columns=["input", "distribution", "from", "to", "unit"])
    return Markup(table.to_html(index=False, escape=False, max_rows=MOST_INPUTS, border=0))
