"""Which functions to look for: as the options say, else as the recording was planned, else said aloud."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from math import comb, log2
from typing import Any

import click
import numpy as np

from ..basis import FAMILIES, Family, ProductBasis, product_basis
from ..errors import DataError, ParameterError
from ..experiment import Plan
from ..recording import Recording
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
    max_degree: int | None = option(
        "--degree", type=click.IntRange(min=0), help="Highest degree.  [default: the plan's, else by N]"
    )
    domain: tuple[float, float] | None = option(
        "--domain", type=float, nargs=2, metavar="LOW HIGH", help="Interval of every input."
    )
    index_set: str | None = option(
        "--index-set", type=click.Choice(["total", "hyperbolic"]), help="Which products of functions."
    )
    max_interactions: int | None = option(
        "--max-interactions", type=click.IntRange(min=1), help="Inputs that a function may join."
    )

    def given(self, n_inputs: int) -> dict[str, Any]:
        """Return what was asked for, as arguments of `product_basis`."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.family:
            values["family"] = _families(self.family, n_inputs)
        return {name: value for name, value in values.items() if value not in (None, ())}


def choose_basis(recording: Recording, wanted: Wanted) -> tuple[ProductBasis, list[str]]:
    """Return the basis, and in words where it comes from."""
    n_samples, n_inputs = np.shape(recording.inputs)
    given, plan = wanted.given(n_inputs), _plan(recording)
    if plan is not None:
        but = f", but for its {', '.join(given)}" if given else ""
        return Plan.from_dict(plan.to_dict() | given).basis, [f"the basis is that of its plan{but}"]
    said = []
    settings = {"family": ["legendre"] * n_inputs, "n_inputs": n_inputs} | given
    if not wanted.family or wanted.domain is None:
        low, high = product_basis(**settings | {"max_degree": 0}).families[0].domain
        name = "legendre, uniform inputs" if not wanted.family else " ".join(wanted.family)
        said.append(
            f"no plan in the file: taken as {name} on [{low:g}, {high:g}]; --family and --domain say otherwise"
        )
    if wanted.max_degree is not None:
        return product_basis(**settings), said
    degree = _highest_degree(settings, n_samples)
    basis = product_basis(**settings, max_degree=degree)
    said.append(
        f"degree {degree} chosen, {len(basis)} functions for {n_samples} samples; --degree says otherwise"
    )
    return basis, said


def _plan(recording: Recording) -> Plan | None:
    """Return the plan that rides in the recording."""
    data = recording.metadata.get("plan")
    if data is None:
        return None
    try:
        plan = Plan.from_dict(data)
    except (ParameterError, TypeError, ValueError, AttributeError) as problem:
        raise DataError(f"the plan in the file cannot be used: {problem}") from None
    if plan.n_inputs != recording.inputs.shape[1]:
        raise DataError(
            f"the plan in the file is for {plan.n_inputs} inputs, but {recording.inputs.shape[1]} were recorded."
        )
    return plan


def _families(given: tuple[str, ...], n_inputs: int) -> list[str | Family]:
    """Return one family per input, from one for all or one for each."""
    made = [_family(text) for text in given]
    if len(made) not in (1, n_inputs):
        raise ParameterError(
            f"{len(made)} families are given for {n_inputs} inputs; give one for all, or one for each."
        )
    return made * n_inputs if len(made) == 1 else made


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
    """Return the highest degree with few enough functions for the samples."""
    limit = min(n_samples // SAMPLES_PER_FUNCTION, MOST_FUNCTIONS)
    n_inputs, hyperbolic = settings["n_inputs"], settings.get("index_set") == "hyperbolic"
    most_joined = min(settings.get("max_interactions", n_inputs), n_inputs)
    degree = 1
    for higher in range(2, HIGHEST_DEGREE + 1):
        joined = int(log2(higher + 1)) if hyperbolic else higher
        if comb(n_inputs, min(joined, most_joined)) > limit:  # a lower bound, to list nothing too long
            break
        try:
            n_functions = len(product_basis(**settings, max_degree=higher))
        except ParameterError:  # a family may know its functions up to some degree only
            break
        if n_functions > limit:
            break
        degree = higher
    return degree
