"""What notebooks show of results, comparisons, recordings, plans and bases: the page's own drawings, small."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._words import name_and_unit
from ..basis._product import ProductBasis
from ..experiment._plan import Plan
from ..recording._recording import Recording
from ..result._capacity_result import CapacityResult
from ..workflow._compare import Comparison
from ._html import Markup, asset, element, minus, together

STYLE = f".infocap {{ {asset('page.css').replace(':root', '&')} }}\n{asset('notebook.css')}"
MOST_INPUTS = 12  # Inputs in a table; a notebook is for a glance.


def notebook(shown: Any) -> str:
    """An object as HTML for a notebook: the words of the terminal, with pictures or a table of its inputs below."""
    first, *rest = [f"Plan: {shown.in_words()}"] if isinstance(shown, Plan) else repr(shown).split("\n")
    said = element("strong", first)
    if rest:
        warned = "open" if getattr(shown, "warnings", ()) else None  # what weakens the answer is seen at once
        said = element("details", element("summary", said), element("pre", "\n".join(rest)), open=warned)
    if isinstance(shown, CapacityResult | Comparison):
        below = element("div", *_pictures(shown), class_="pairs")
    elif isinstance(shown, Recording):
        u = np.asarray(shown.inputs[:]) if len(shown.index) else np.full((1, shown.inputs.shape[1]), np.nan)
        names = shown.input_names or tuple(f"u{k + 1}" for k in range(u.shape[1]))
        below = _table((name, "as measured", *ends) for name, *ends in zip(names, u.min(0), u.max(0), strict=True))
    else:
        basis: ProductBasis = shown.basis if isinstance(shown, Plan) else shown
        inputs = zip(basis.names, basis.families, strict=True)
        below = _table((family.variable or name, family.distribution, *family.bounds) for name, family in inputs)
    return element("div", element("style", Markup(STYLE)), said, below, class_="infocap")


def _pictures(shown: CapacityResult | Comparison) -> list[Markup]:
    from ..plot._tasks import compare
    from ._figures import bars, delays, drawn, matrix

    if isinstance(shown, Comparison):
        return [drawn(compare, shown, "Capacity by degree of each device", lambda _: ())]
    return [draw(shown) for draw in (matrix, delays, bars)]


def _table(inputs: Iterable[tuple[str, str, float, float]]) -> Markup:
    """One row per input: its name, distribution, lowest and highest value, and unit."""
    rows = []
    for name, distribution, low, high in inputs:
        called, unit = name_and_unit(name)
        cells = [distribution, minus(f"{low:g}"), minus(f"{high:g}"), unit]
        rows.append(element("tr", element("th", called, scope="row"), *(element("td", cell) for cell in cells)))
    head = element("tr", *(element("th", name) for name in ("input", "distribution", "from", "to", "unit")))
    more = f"and {len(rows) - MOST_INPUTS} more" if len(rows) > MOST_INPUTS else ""
    return together([element("table", element("thead", head), element("tbody", *rows[:MOST_INPUTS])), more])
