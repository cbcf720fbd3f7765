"""The sentences of the page."""

from __future__ import annotations

from ..result import CapacityResult
from ._html import Markup, element
from ._numbers import count, decimals_for, minus, plain, with_error

METHODS = {
    "control-variate": "control variates: bias removed, zeros decided by tests, error bars",
    "threshold-richardson": "Algorithm 1 of the paper: threshold, then extrapolation to infinitely many samples",
    "richardson-threshold": "Algorithm 2 of the paper: extrapolation to infinitely many samples, then threshold",
    "raw": "plain empirical capacities, too large by about the number of readouts divided by that of samples",
    "surrogate": "threshold from shuffled surrogates",
    "chi2": "threshold from the chi-squared distribution",
}


def lead(result: CapacityResult) -> Markup:
    """What the device does, in one sentence."""
    q = result.basis.n_inputs
    inputs = "its input" if q == 1 else f"its {q} inputs"
    return element(
        "p",
        "The device computes ",
        element("strong", total(result)),
        f" of at most {result.maximum} linearly independent functions of {inputs}.",
        class_="lead",
    )


def total(result: CapacityResult) -> str:
    """The total with its standard error."""
    if result.total_standard_error is None:
        return plain(result.total, 1)
    return with_error(result.total, result.total_standard_error, 3)


def sureness(result: CapacityResult) -> Markup:
    """The interval, and what it rests on."""
    basis = result.basis
    if result.total_standard_error is None:
        sure = f"The method {result.method!r} gives no error bars. "
    else:
        low, high = result.total_interval(0.95)
        decimals = min(decimals_for(result.total_standard_error), 3)
        sure = (
            f"95 % interval {minus(f'{low:.{decimals}f}')} to {minus(f'{high:.{decimals}f}')}; "
            "± is the standard error. "
        )
    functions = count(len(basis), f"{_name(result)} function")
    return element(
        "p",
        sure,
        f"From {result.n_samples} samples, among {functions} of degree up to {basis.max_degree}.",
        class_="sure",
    )


def checks(warnings: tuple[str, ...], notes: tuple[str, ...]) -> Markup:
    """Every warning, or that there was none; and what was put right without harm."""
    parts = [_listed(count(len(warnings), "warning"), warnings)] if warnings else []
    if not warnings:
        fine = element("strong", "No warnings. ")
        parts.append(element("p", fine, "No check found anything that weakens the answer."))
    if notes:
        parts.append(_listed("Put right, without harm", notes))
    kind = "checks" if warnings else "checks fine"
    return element("section", *parts, class_=kind, id="checks", aria_label="Checks")


def _listed(title: str, sentences: tuple[str, ...]) -> Markup:
    lines = [element("li", one[:1].upper() + one[1:]) for one in map(str, sentences)]
    return element("div", element("h2", title), element("ul", *lines))


def basis(result: CapacityResult) -> str:
    """The basis in one line."""
    families = result.basis.families
    alike = len({(family.name, family.domain, family.parameters) for family in families}) == 1
    said = f"{count(len(result.basis), 'product')} of {_name(result)} functions, degree up to {result.basis.max_degree}"
    if not alike:
        return said
    low, high = families[0].domain
    return f"{said}; inputs {families[0].distribution}, domain {minus(f'{low:g}')} to {minus(f'{high:g}')}"


def shown_and_total(result: CapacityResult) -> Markup | str:
    """Why the sum of the table is not the total, when it is not."""
    shown = float(result.capacity.sum())
    if abs(shown - result.total) < 5e-3:
        return ""
    return element(
        "p",
        f"The functions shown add up to {plain(shown, 2)}; the total, {plain(result.total, 2)}, also counts "
        "what is too small to be shown function by function.",
        class_="note",
    )


def method(result: CapacityResult) -> str:
    """The method in words."""
    return f"{result.method} ({METHODS[result.method]})" if result.method in METHODS else result.method


def _name(result: CapacityResult) -> str:
    name = result.basis.family_name
    return name.capitalize() if name in ("legendre", "hermite", "laguerre", "chebyshev", "fourier") else name
