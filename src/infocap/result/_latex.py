"""Tables for a paper: the strongest functions as numbers, and LaTeX."""

import re
from typing import TYPE_CHECKING

import numpy as np

from .._formatting import CANNOT_BE_TOLD, digits_of_column, with_error
from .._validation import require_one_of
from ._target import untold_degrees

if TYPE_CHECKING:
    import pandas as pd

    from ._capacity_result import CapacityResult

# What the rows of a table in LaTeX can be.
ROWS_OF_TABLE = ("degree", "function")
# Functions in a table in LaTeX; more do not fit into a column of a journal.
N_FUNCTIONS_IN_LATEX = 20
# A smaller standard error, such as that of the constant, is not written.
MIN_WRITTEN_ERROR = 5e-5
# Characters with a meaning in LaTeX, and what stands for them in text.
LATEX_TEXT = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
# A factor of a label: a name of a polynomial or "cos" and "sin", its number, and its argument.
FACTOR = re.compile(r"(?P<name>[A-Za-z]+)(?P<number>\d+)\((?P<argument>.+)\)")
# The argument of a factor: u1, u[t-3] or u2[t].
VARIABLE = re.compile(r"(?P<letter>[A-Za-z])(?P<number>\d*)(?:\[(?P<time>t(?:-\d+)?)\])?")


def table(result: "CapacityResult", errors: bool) -> "pd.DataFrame":
    """Return the functions above zero with their capacities, the largest first."""
    import pandas as pd

    is_shown = np.nan_to_num(result.capacity) > 0
    in_order = np.argsort(-np.where(is_shown, result.capacity, -1.0), kind="stable")
    rows = in_order[: np.count_nonzero(is_shown)]
    columns = {"degree": result.basis.degrees[rows], "capacity": result.capacity[rows]}
    if errors:
        for name in ("standard_error", "p_value"):
            values = getattr(result, name)
            columns[name] = np.full(len(rows), np.nan) if values is None else values[rows]
    labels = [result.innovation_label(term) for term in rows.tolist()]
    return pd.DataFrame(columns, pd.Index(labels, name="function"))


def to_latex(result: "CapacityResult", rows: str, errors: bool) -> str:
    """Return a table as LaTeX: by degree with the total, or of the strongest functions."""
    require_one_of("rows", rows, ROWS_OF_TABLE)
    if rows == "degree":
        names, values, deviations = _by_degree(result)
        is_untold = [int(name) in untold_degrees(result) for name in names]
        heading = "Degree"
    else:
        names, values, deviations = _by_function(result)
        is_untold = [error is not None and error > 1 for error in deviations]
        heading = "Function"
    if not errors:
        deviations = [None] * len(values)
    digits = digits_of_column(deviations)
    lines = [
        "% needs \\usepackage{booktabs}; errors are one standard error",
        r"\begin{tabular}{lr}",
        r"\toprule",
        rf"{heading} & Capacity \\",
        r"\midrule",
    ]
    for name, value, deviation, hidden in zip(names, values, deviations, is_untold, strict=True):
        if hidden:
            lines.append(rf"{name} & {CANNOT_BE_TOLD} \\")
            continue
        if deviation is not None and deviation < MIN_WRITTEN_ERROR:
            deviation = None
        lines.append(rf"{name} & {_number(value, deviation, digits)} \\")
    total_error = result.total_standard_error if errors and not result.unreliable else None
    total = _number(result.total, total_error)
    lines += [
        r"\midrule",
        rf"Total (of at most {result.largest_total}) & {total} \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if result.unreliable:
        lines.insert(1, f"% the total is unreliable: {_in_text(result.unreliable)}")
    return "\n".join(lines) + "\n"


def _by_degree(
    result: "CapacityResult",
) -> tuple[list[str], list[float], list[float | None]]:
    """Return the degrees, their estimates and errors."""
    estimates = result.by_degree(errors=True).dropna(subset="capacity")
    names = [str(degree) for degree in estimates.index]
    values = estimates["capacity"].tolist()
    errors: list[float | None] = estimates["standard_error"].tolist()
    return names, values, errors


def _by_function(
    result: "CapacityResult",
) -> tuple[list[str], list[float], list[float | None]]:
    """Return the strongest functions, their capacities and errors."""
    strongest = table(result, errors=True).head(N_FUNCTIONS_IN_LATEX)
    names = [label_in_latex(str(label)) for label in strongest.index]
    values = strongest["capacity"].tolist()
    errors: list[float | None] = strongest["standard_error"].tolist()
    return names, values, errors


def _number(value: float, error: float | None, digits: int | None = None) -> str:
    """Return a value ± its error in the mathematics of LaTeX."""
    text = with_error(value, error, digits=digits)
    for character, command in (("±", r"\pm"), ("<", r"{<}")):
        text = text.replace(character, command)
    return f"${text}$"


def label_in_latex(label: str) -> str:
    r"""Return the label of a function as LaTeX.

    >>> print(label_in_latex("P1(u1)·P2(u2)"))
    $P_{1}(u_{1})\,P_{2}(u_{2})$
    >>> print(label_in_latex("P1(u[t-3])"), label_in_latex("P1(Bias_A)"), label_in_latex("1"))
    $P_{1}(u_{t-3})$ $P_{1}(\text{Bias\_A})$ constant
    """
    if label == "1":
        return "constant"
    factors = []
    for factor in label.split("·"):
        match = FACTOR.fullmatch(factor)
        if match is None:
            return _in_text(label)
        name = match["name"]
        if name in ("cos", "sin"):
            name = f"\\{name}"
        factors.append(f"{name}_{{{match['number']}}}({_argument(match['argument'])})")
    product = r"\,".join(factors)
    return f"${product}$"


def _argument(argument: str) -> str:
    """Return the argument of a factor as LaTeX."""
    match = VARIABLE.fullmatch(argument)
    if match is None:
        return rf"\text{{{_in_text(argument)}}}"
    subscripts = [part for part in (match["number"], match["time"]) if part]
    if not subscripts:
        return match["letter"]
    return f"{match['letter']}_{{{','.join(subscripts)}}}"


def _in_text(text: str) -> str:
    """Return a text with the characters that LaTeX would take for commands escaped."""
    return "".join(LATEX_TEXT.get(character, character) for character in text)
