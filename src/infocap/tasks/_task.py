"""A learning task: inputs, the label of each, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._check import whole_number
from ..errors import DataError
from ..samples import Table
from ..typing import ArrayLike, Floats, Integers
from ._reduction import fit_reduction


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Inputs (samples, inputs) as a system takes them, and a label (samples,) for each.

    `source` says where the data come from. `features` (samples, features) are what the inputs were made from,
    when they were reduced: `accuracy` with ``leak_free=True`` makes them anew from each training part.

    >>> Task([[0.1, 0.2], [0.3, -0.4]], ["cat", "dog"], name="pets")
    Task 'pets': 2 samples, 2 inputs, 2 classes
      source: given
    """

    inputs: Floats
    labels: np.ndarray
    name: str = "task"
    source: str = "given"
    features: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", finite_table(self.inputs, "inputs"))
        object.__setattr__(self, "labels", _labels(self.labels, len(self.inputs)))
        if self.features is not None:
            object.__setattr__(self, "features", finite_table(self.features, "features"))
            if len(self.features) != len(self.inputs):
                raise DataError(
                    f"features has {len(self.features)} rows for {len(self.inputs)} inputs; give as many."
                )

    def __repr__(self) -> str:
        size = f"{len(self.inputs)} samples, {self.n_inputs} inputs, {len(self.classes)} classes"
        return f"Task {self.name!r}: {size}\n  source: {self.source}"

    @classmethod
    def reduced(
        cls, features: ArrayLike, labels: ArrayLike, n_inputs: int, name: str = "task", source: str = "given"
    ) -> Task:
        """A task of many features, reduced to their first principal components, each scaled to [-1, 1].

        As in the paper, components and scale come from all samples, and no label enters. What that means for
        the accuracy is said in `accuracy`.

        >>> generator = np.random.default_rng(0)
        >>> Task.reduced(generator.normal(size=(50, 20)), generator.integers(0, 3, 50), n_inputs=2)
        Task 'task': 50 samples, 2 inputs, 3 classes
          source: given
        """
        table = finite_table(features, "features")
        n_inputs = whole_number("n_inputs", n_inputs, 1)
        if n_inputs > min(table.shape):
            raise DataError(f"n_inputs={n_inputs} is too many for features of shape {table.shape}.")
        inputs = np.clip(fit_reduction(table, n_inputs)(table), -1.0, 1.0)  # rounding may stick out
        return cls(inputs, labels, name, source, table)

    @property
    def n_inputs(self) -> int:
        """Number of inputs, q."""
        return self.inputs.shape[1]

    @property
    def classes(self) -> np.ndarray:
        """The different labels, sorted."""
        return np.unique(self.labels)

    @property
    def codes(self) -> Integers:
        """The position of each label among `classes`."""
        return np.unique(self.labels, return_inverse=True)[1]


def finite_table(values: ArrayLike, name: str) -> Floats:
    """Numbers in two dimensions, none of them missing."""
    return Table(values, name).finite()


def _labels(labels: ArrayLike, n_samples: int) -> np.ndarray:
    """One label a sample, of a few kinds."""
    labels = np.asarray(labels)
    if labels.shape != (n_samples,):
        raise DataError(f"labels has shape {labels.shape}; give one label for each of {n_samples} inputs.")
    if labels.dtype.kind in "fc" and not np.isfinite(labels).all():
        raise DataError("labels has NaN or infinite values; give every sample a class.")
    try:
        n_classes = len(np.unique(labels))
    except TypeError as problem:
        raise DataError(
            f"labels mixes kinds that have no order ({problem}); give all numbers or all words."
        ) from None
    if n_classes < 2:
        raise DataError(f"labels is {labels[0]!r} for every sample; a task needs two classes or more.")
    if labels.dtype.kind == "f" and n_classes > max(n_samples // 4, 2):
        raise DataError(
            f"labels has {n_classes} different values for {n_samples} samples and looks like a continuous "
            "quantity; give classes, for example np.digitize(labels, edges)."
        )
    return labels
