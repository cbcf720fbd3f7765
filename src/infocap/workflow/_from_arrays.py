"""The way from arrays to a result: choose a basis, take the samples, gather the evidence, conclude."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..basis._family import Family
from ..basis._product import ProductBasis
from ..errors import Check, DataError, ParameterError
from ..estimators._cost import byte_count
from ..estimators._method import Estimator
from ..estimators._pipeline import conclude, evidence_of, find_method
from ..result._capacity_result import CapacityResult
from ..samples._engine import Engine, chosen_executor
from ..samples._samples import Samples
from ..typing import ArrayLike
from ._choose import choose_basis, said_of_choice


def estimate_arrays(
    u: ArrayLike,
    x: ArrayLike,
    basis: ProductBasis | None,
    *,
    family: str | Family | Sequence[str | Family] | None = None,
    method: str | Estimator = "control-variate",
    method_options: Mapping[str, Any] | None = None,
    constant: bool = True,
    nan_policy: str = "raise",
    complex_as: str | None = None,
    time: ArrayLike | None = None,
    design_index: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    repeats: ArrayLike | None = None,
    washout: int | None = None,
    memory_limit: str | float | None = None,
    executor: Any = None,
) -> CapacityResult:
    """Estimate the capacities from inputs and readouts; the parameters are those of `estimate`."""
    notes: list[Check] = []
    if basis is None:
        shape = np.shape(u)
        if len(shape) != 2:
            raise DataError(f"u has shape {shape}; give two dimensions, (samples, inputs).")
        chosen_family = {} if family is None else {"family": family}
        basis, reasons = choose_basis((shape[0], shape[1]), **chosen_family)
        notes.append(said_of_choice(reasons))
    elif family is not None:
        raise ParameterError(
            f"`family={family!r}` goes without a basis, which has its own; leave out one of them."
        )
    options = dict(method_options or {})
    chosen_method = find_method(method, options)
    samples = Samples.of(
        u,
        x,
        basis,
        complex_as=complex_as,
        design_index=design_index,
        time=time,
        sample_weight=sample_weight,
        repeats=repeats,
        washout=washout,
    )
    engine = Engine(
        chosen_executor(executor, u, x), None if memory_limit is None else byte_count(memory_limit)
    )
    evidence = evidence_of(samples, engine, constant, nan_policy, chosen_method)
    result = conclude(evidence, chosen_method, options)
    return replace(result, checks=(*result.checks, *notes))
