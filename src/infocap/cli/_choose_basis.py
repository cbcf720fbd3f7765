"""Which functions to look for: as the options say, else as the recording was planned, else said aloud."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import comb, log2
from typing import Any

import numpy as np

from ..basis import FAMILIES, Family, ProductBasis, product_basis
from ..errors import DataError, ParameterError
from ..experiment import Plan
from ..recording import Recording

MOST_FUNCTIONS = 3000
SAMPLES_A_FUNCTION = 2
HIGHEST_DEGREE = 20


@dataclass(frozen=True)
class Wanted:
    """The basis as options give it; None and () leave it open."""

    family: tuple[str, ...] = ()
    degree: int | None = None
    domain: tuple[float, float] | None = None
    index_set: str | None = None
    max_interactions: int | None = None


def choose_basis(recording: Recording, wanted: Wanted) -> tuple[ProductBasis, list[str]]:
    """The basis, and in words where it comes from."""
    n_samples, n_inputs = np.shape(recording.inputs)
    plan = _plan(recording)
    if plan is not None:
        changes = _entries(wanted, n_inputs)
        but = f", but for its {', '.join(changes)}" if changes else ""
        return Plan.from_dict(plan.to_dict() | changes).basis, [f"the basis is that of its plan{but}"]
    said = []
    families = _families(wanted.family, n_inputs) or ["legendre"] * n_inputs
    options: dict[str, Any] = {
        "domain": wanted.domain,
        "index_set": wanted.index_set or "total",
        "max_interactions": wanted.max_interactions,
    }
    if not wanted.family or wanted.domain is None:
        low, high = product_basis(families, n_inputs, 0, domain=wanted.domain).families[0].domain
        name = "legendre, uniform inputs" if not wanted.family else " ".join(wanted.family)
        said.append(
            f"no plan in the file: taken as {name} on [{low:g}, {high:g}]; --family and --domain say otherwise"
        )
    degree = wanted.degree
    if degree is None:
        degree = _highest_degree(families, n_samples, n_inputs, options)
        basis = product_basis(families, n_inputs, degree, **options)
        said.append(
            f"degree {degree} chosen, {len(basis)} functions for {n_samples} samples; --degree says otherwise"
        )
        return basis, said
    return product_basis(families, n_inputs, degree, **options), said


def _plan(recording: Recording) -> Plan | None:
    """The plan that rides in the recording."""
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


def _entries(wanted: Wanted, n_inputs: int) -> dict[str, Any]:
    """What the options change in a plan."""
    changes = {
        "family": _families(wanted.family, n_inputs) or None,
        "max_degree": wanted.degree,
        "domain": wanted.domain,
        "index_set": wanted.index_set,
        "max_interactions": wanted.max_interactions,
    }
    return {name: value for name, value in changes.items() if value is not None}


def _families(given: tuple[str, ...], n_inputs: int) -> list[str | Family]:
    """One family an input, from one for all or one for each."""
    if not given:
        return []
    made = [_family(text) for text in given]
    if len(made) not in (1, n_inputs):
        raise ParameterError(
            f"{len(made)} families are given for {n_inputs} inputs; give one for all, or one for each."
        )
    return made * n_inputs if len(made) == 1 else made


def _family(text: str) -> str | Family:
    """A name such as ``hermite``, or one with parameters such as ``jacobi(1, 1)``."""
    found = re.fullmatch(r"\s*(\w+)\s*\(([^()]*)\)\s*", text)
    if found is None or found[1] not in FAMILIES:
        return text
    try:
        return FAMILIES[found[1]](*(_number(part) for part in found[2].split(",")))
    except (TypeError, ValueError) as problem:
        raise ParameterError(f"family {text!r} cannot be made: {problem}") from None


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _highest_degree(families: list, n_samples: int, n_inputs: int, options: dict[str, Any]) -> int:
    """The highest degree with few enough functions for the samples."""
    limit = min(n_samples // SAMPLES_A_FUNCTION, MOST_FUNCTIONS)
    joined = options["max_interactions"] or n_inputs
    degree = 1
    for higher in range(2, HIGHEST_DEGREE + 1):
        together = higher if options["index_set"] == "total" else int(log2(higher + 1))
        if comb(n_inputs, min(together, joined, n_inputs)) > limit:  # a lower bound, to list nothing too long
            break
        try:
            size = len(product_basis(families, n_inputs, higher, **options))
        except ParameterError:  # a family may know its functions up to some degree only
            break
        if size > limit:
            break
        degree = higher
    return degree
