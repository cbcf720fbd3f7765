"""Which functions to look for: as the options say, else as the recording was planned, else said aloud."""

import re
from dataclasses import dataclass
from math import comb, log2
from typing import Any

import numpy as np

from ..basis._family import FAMILIES, Family
from ..basis._product import ProductBasis, product_basis
from ..errors import DataError, ParameterError
from ..experiment._plan import Plan
from ..recording._recording import Recording
from ._options import option

# Where nothing tells the degree, the highest is taken that needs no more functions than this, or than half the samples:
# more could hardly be told apart, and would take minutes.
MOST_FUNCTIONS = 3000
SAMPLES_PER_FUNCTION = 2
HIGHEST_DEGREE = 20


@dataclass(frozen=True)
class Wanted:
    """The basis as options give it; None and () leave it open."""

    family: tuple[str, ...] = option(
        "--family",
        multiple=True,
        help="Of the inputs' distribution: legendre (uniform), hermite (normal), chebyshev, fourier, laguerre, "
        "bernoulli, 'jacobi(1, 1)', 'binomial(8, 0.5)'; once for all inputs or once for each.  [default: the plan's, "
        "else legendre]",
    )
    max_degree: int | None = option("--degree", type=int, help="Highest.  [default: the plan's, else by N]")
    domain: tuple[float, float] | None = option("--domain", type=(float, float), help="Of every input.")
    index_set: str | None = option("--index-set", help="Which products of functions: total or hyperbolic.")
    max_interactions: int | None = option("--max-interactions", type=int, help="Inputs a function may join.")


def choose_basis(recording: Recording, wanted: Wanted) -> tuple[ProductBasis, list[str]]:
    """Return the basis, and in words where it comes from."""
    n_samples, n_inputs = np.shape(recording.inputs)
    given = {name: value for name, value in vars(wanted).items() if value not in (None, ())}
    families = [_family(text) for text in wanted.family]
    if len(families) not in (0, 1, n_inputs):
        raise ParameterError(
            f"{len(families)} families are given for {n_inputs} inputs; give 1 or {n_inputs}."
        )
    if families:
        given["family"] = families * n_inputs if len(families) == 1 else families
    planned = recording.metadata.get("plan")
    if planned is not None:
        try:
            plan = Plan.from_dict(planned)
        except ValueError as problem:
            raise DataError(f"the plan in the file cannot be used: {problem}") from None
        if plan.n_inputs != n_inputs:
            n = plan.n_inputs
            raise DataError(f"the plan in the file is for {n} inputs, but {n_inputs} were recorded.")
        but = f", but for its {', '.join(given)}" if given else ""
        return Plan.from_dict(plan.to_dict() | given).basis, [f"the basis is that of its plan{but}"]
    said = []
    settings = {"family": ["legendre"] * n_inputs, "n_inputs": n_inputs} | given
    low, high = product_basis(**settings | {"max_degree": 0}).families[0].domain  # refuses wrong settings
    if not wanted.family or wanted.domain is None:
        name = " ".join(wanted.family) or "legendre, uniform inputs"
        taken = f"no plan in the file: taken as {name} on [{low:g}, {high:g}]"
        said.append(f"{taken}; --family and --domain say otherwise")
    if wanted.max_degree is not None:
        return product_basis(**settings), said
    basis = product_basis(**settings, max_degree=_highest_degree(settings, n_samples))
    chosen = f"degree {basis.max_degree} chosen, {len(basis)} functions for {n_samples} samples"
    return basis, [*said, f"{chosen}; --degree says otherwise"]


def _family(text: str) -> str | Family:
    """Return a name such as ``hermite``, or the family that ``jacobi(1, 1)`` describes."""
    found = re.fullmatch(r"\s*(\w+)\s*\(([^()]*)\)\s*", text)
    if found is None or found[1] not in FAMILIES:
        return text
    try:
        numbers = [float(part) for part in found[2].split(",")]
        return FAMILIES[found[1]](*(int(one) if one.is_integer() else one for one in numbers))
    except (TypeError, ValueError) as problem:
        raise ParameterError(f"family {text!r} cannot be made: {problem}") from None


def _highest_degree(settings: dict[str, Any], n_samples: int) -> int:
    limit = min(n_samples // SAMPLES_PER_FUNCTION, MOST_FUNCTIONS)
    n_inputs, hyperbolic = settings["n_inputs"], settings.get("index_set") == "hyperbolic"
    most_joined = min(settings.get("max_interactions", n_inputs), n_inputs)
    for degree in range(2, HIGHEST_DEGREE + 1):
        joined = int(log2(degree + 1)) if hyperbolic else degree
        at_least = comb(n_inputs, min(joined, most_joined))  # a lower bound, to list nothing too long
        try:
            if at_least > limit or len(product_basis(**settings, max_degree=degree)) > limit:
                return degree - 1
        except ParameterError:  # a family may know its functions up to some degree only
            return degree - 1
    return HIGHEST_DEGREE
