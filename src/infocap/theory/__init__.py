"""Theory as code: bounds, finite-sample bias, noise, forecasts, and systems known exactly."""

from ..kernels import zero_capacity_bound
from ._bound import Bound, efficiency_bound
from ._exact import (
    RandomMixture,
    finite_sample_bias,
    noisy_capacities,
    random_mixture,
)
from ._forecast import ExpectedError, Forecast, forecast, forecast_from
from ._linear_memory import linear_memory

# isort: split
# For other rooms of infocap, no part of the public interface.
from ._forecast import MAX_SAMPLES as MAX_SAMPLES

__all__ = [
    "Bound", "ExpectedError", "Forecast", "RandomMixture", "efficiency_bound", "finite_sample_bias",
    "forecast", "forecast_from", "linear_memory", "noisy_capacities", "random_mixture",
    "zero_capacity_bound",
]  # fmt: skip
