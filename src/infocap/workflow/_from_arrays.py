"""`estimate` for arrays: gather the evidence, run the method, and add the provenance."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..basis import ProductBasis
from ..errors import DataError, ParameterError, warn
from ..estimators import (
    DEFAULT_METHOD,
    Estimator,
    Evidence,
    Method,
    conclude,
    find_method,
    gather_evidence,
)
from ..result import CapacityResult
from ..samples import TraceSteps, fold
from ..typing import ArrayLike
from ._choose import choose_basis, note_about_choice
from ._provenance import with_provenance

# Options with one value for each row.
VALUES_PER_ROW = ("time", "design_index", "sample_weight")


@dataclass(frozen=True, eq=False)
class EstimateOptions:
    """The keyword arguments of `estimate`, with the same defaults; its docstring explains them."""

    method: str | Estimator = DEFAULT_METHOD
    method_options: Mapping[str, Any] | None = None
    constant: bool = True
    nan_policy: str = "raise"
    complex_as: str | None = None
    time: ArrayLike | None = None
    design_index: ArrayLike | None = None
    sample_weight: ArrayLike | None = None
    repeats: ArrayLike | None = None
    washout: int | None = None
    n_components: int | str | None = None
    memory_limit: str | float | None = None
    executor: Any = None
    law: str = "declared"
    input_noise: Any = None

    @property
    def chosen_method(self) -> Method:
        """The method behind the name, or around the user's function.

        Options that the method does not have are refused.
        """
        return find_method(self.method, self.options_of_method, self.law)

    @property
    def options_of_method(self) -> dict[str, Any]:
        """The options of the method, with those that belong to the law of the inputs."""
        options = dict(self.method_options or {})
        if self.input_noise is None:
            return options
        if self.law != "recorded":
            raise ParameterError(
                f"`input_noise={self.input_noise!r}` is for law='recorded'; leave it out."
            )
        return options | {"input_noise": self.input_noise}

    def gather(self, u: ArrayLike, x: ArrayLike, basis: ProductBasis) -> Evidence:
        """Check the arrays, and return the evidence from which the method computes capacities."""
        options = dict(vars(self))
        del options["method_options"], options["input_noise"]
        return gather_evidence(u, x, basis, **options | {"method": self.chosen_method})


def estimate_arrays(
    u: ArrayLike, x: ArrayLike, basis: ProductBasis | None, options: EstimateOptions
) -> CapacityResult:
    """Estimate the capacities from inputs and readouts.

    Without a basis one is chosen that is as large as the samples allow.
    """
    notes = []
    if basis is None:
        shape = np.shape(u)
        if len(shape) != 2:
            raise DataError(f"u has shape {shape}; give two dimensions, (samples, inputs).")
        n_samples, n_inputs = shape
        basis, reasons = choose_basis((n_samples, n_inputs))
        notes.append(note_about_choice(reasons))
    evidence = options.gather(u, x, basis)
    result = conclude(evidence, options.method, options.options_of_method)
    return with_provenance(replace(result, checks=(*result.checks, *notes)))


def estimate_trace(
    u: ArrayLike,
    x: ArrayLike,
    basis: ProductBasis | None,
    options: EstimateOptions,
    steps: TraceSteps,
) -> CapacityResult:
    """Estimate the capacities from inputs and a time-multiplexed trace."""
    folded = fold(u, x, steps, repeats=options.repeats)
    values_per_step: dict[str, Any] = {
        name: folded.one_per_step(name, getattr(options, name)) for name in VALUES_PER_ROW
    }
    options = replace(options, repeats=folded.repeats, **values_per_step)
    result = estimate_arrays(folded.u, folded.labelled_x, basis, options)
    for check in folded.checks:
        if check.kind == "warning":
            warn(check)
    return replace(result, checks=(*result.checks, *folded.checks))
