"""scikit-learn estimators: any system as a transformer, and the linear readout as a classifier."""

from __future__ import annotations

import hashlib

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._array import to_numpy
from ..errors import ParameterError
from ..samples import Table
from ..systems._measure import measure
from ..typing import ArrayLike, Floats, System
from ._readout import check_readout, fit


class SystemFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The readouts of a system as features: the hidden layer of an extreme learning machine.

    Nothing is learnt; `fit` measures one sample to see how many readouts there are.

    Parameters
    ----------
    system
        A callable (samples, inputs) -> (samples, readouts); a frozen dataclass such as `FibreSystem` can be
        cloned, pickled and sent to other processes.
    seed
        Of the system's noise, where it takes a ``seed``. The same samples then get the same noise, other samples
        other noise, so that training and test parts of a cross-validation stay independent. None: fresh noise.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> import infocap
    >>> task = infocap.tasks.two_spirals(turns=1)
    >>> system = infocap.systems.RandomFeatures(2, 50, gain=3.0)
    >>> model = make_pipeline(SystemFeatures(system), LinearReadout()).fit(task.inputs, task.labels)
    >>> model.score(task.inputs, task.labels) > 0.9
    True
    """

    def __init__(self, system: System, seed: int | None = None) -> None:
        self.system = system
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> SystemFeatures:
        """See how many readouts the system has."""
        if not callable(self.system):
            raise ParameterError(f"system={self.system!r} must be a callable (samples, inputs) -> readouts.")
        X = validate_data(self, X, dtype=float)
        self.n_readouts_ = self._measure(X[:1]).shape[1]
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Readouts (samples, readouts) at the inputs X."""
        check_is_fitted(self)
        return self._measure(validate_data(self, X, dtype=float, reset=False))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """readout0, readout1, ..."""
        check_is_fitted(self)
        return np.array([f"readout{number}" for number in range(self.n_readouts_)], dtype=object)

    def _measure(self, u: Floats) -> Floats:
        seed = None
        if self.seed is not None:
            told_apart = hashlib.sha256(np.ascontiguousarray(u).tobytes()).digest()
            seed = np.random.SeedSequence([self.seed, int.from_bytes(told_apart[:8], "big")])
        table = Table(to_numpy(measure(self.system, u, seed)), "readouts")
        return table.read(0, len(u))


class LinearReadout(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier: least squares on an indicator of each class, ridge, or logistic regression.

    Readouts are scaled to unit variance first, so their units do not matter. `penalty` is per sample: ridge adds
    ``penalty |w|²`` to the mean square error, logistic ``penalty |w|² / 2`` to the mean log-loss; 1e-6 unless given.

    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> LinearReadout().fit(x, ["low", "low", "high", "high"]).predict([[0.2], [2.7]]).tolist()
    ['low', 'high']
    """

    def __init__(self, readout: str = "least-squares", penalty: float | None = None) -> None:
        self.readout = readout
        self.penalty = penalty

    def fit(self, X: ArrayLike, y: ArrayLike) -> LinearReadout:
        """Train on readouts X (samples, readouts) and labels y."""
        penalty = check_readout(self.readout, self.penalty)
        X, y = validate_data(self, X, y, dtype=float)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ParameterError(f"y has one class only, {self.classes_[0]!r}; give samples of two or more.")
        self.weights_ = fit(X, codes, len(self.classes_), self.readout, penalty)
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Scores (samples, classes); for two classes the second's lead over the first, (samples,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class with the highest score."""
        winner = np.argmax(self._scores(X), axis=1)
        return self.classes_[winner]

    def _scores(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        return self.weights_.scores(validate_data(self, X, dtype=float, reset=False))
