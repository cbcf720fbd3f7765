"""Many features reduced to the few inputs a system takes: principal components, scaled to [-1, 1]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import ParameterError
from ..typing import Floats


@dataclass(frozen=True, eq=False)
class Reduction:
    """Principal axes (features, inputs) around a mean, and the range (inputs,) that becomes [-1, 1]."""

    mean: Floats
    axes: Floats
    low: Floats
    high: Floats

    def __call__(self, features: Floats) -> Floats:
        """Inputs (samples, inputs); samples beyond those it was fitted on may leave [-1, 1]."""
        middle, half = (self.high + self.low) / 2, (self.high - self.low) / 2
        return ((features - self.mean) @ self.axes - middle) / half


def fit_reduction(features: Floats, n_inputs: int) -> Reduction:
    """The first principal components of the features, each scaled so that it fills [-1, 1]."""
    mean = features.mean(axis=0)
    centred = features - mean
    variances, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :n_inputs]
    if variances[-n_inputs] <= 1e-12 * variances[-1]:
        raise ParameterError(
            f"n_inputs={n_inputs} is more than the features have independent directions; give fewer."
        )
    largest = np.take_along_axis(axes, np.argmax(np.abs(axes), axis=0)[None], axis=0)
    axes = axes * np.sign(largest)  # the sign of a principal axis is a matter of taste: fix it
    components = centred @ axes
    return Reduction(mean, axes, components.min(axis=0), components.max(axis=0))
