"""Any system as a transformer of scikit-learn."""

import hashlib

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._arrays import to_numpy
from .._validation import require_whole_number, shown
from ..errors import DataError
from ..samples import Table
from ..systems import measure
from ..typing import ArrayLike, Floats, System


class SystemFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The readouts of a system as features: the hidden layer of an extreme learning machine.

    Nothing is learnt; `fit` measures one sample to see how many readouts there are.

    Parameters
    ----------
    system
        A callable (samples, inputs) -> (samples, readouts). A frozen dataclass such as
        `FibreSystem` can be cloned, pickled and sent to other processes.
    seed
        Of the system's noise, where it takes a ``seed``. The same samples then get the same noise,
        other samples other noise, so that training and test parts of a cross-validation stay
        independent. None: fresh noise.
    washout
        For a system with memory, whose rows are a sequence in time: before the rows that are
        transformed, the system is driven by the last `washout` rows that were fitted, so that a
        test part continues its training part. Split with ``TimeSeriesSplit(gap=...)``; splits that
        shuffle rows destroy the sequence.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> task = infocap.tasks.two_spirals(turns=1)
    >>> system = infocap.systems.RandomFeatures(2, 50, gain=3.0)
    >>> model = make_pipeline(SystemFeatures(system), RidgeClassifier(1e-6))
    >>> model.fit(task.inputs, task.labels).score(task.inputs, task.labels) > 0.9
    True
    """

    # scikit-learn asks that wrong parameters are kept here and refused by `fit`.
    def __init__(self, system: System, seed: int | None = None, washout: int = 0) -> None:
        self.system = system
        self.seed = seed
        self.washout = washout

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> "SystemFeatures":
        """Measure one sample, to see how many readouts the system has.

        Parameters
        ----------
        X
            The inputs (samples, inputs).
        y
            Not used; a pipeline passes it.
        """
        X = self._validated(X)
        n_past = min(require_whole_number("washout", self.washout, 0), len(X))
        self.past_ = X[len(X) - n_past :]
        self.n_readouts_ = self._measure(X[:1]).shape[1]
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Return the readouts (samples, readouts).

        Parameters
        ----------
        X
            The inputs (samples, inputs).
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        readouts = self._measure(np.concatenate([self.past_, X]))
        return readouts[len(self.past_) :]

    def _validated(self, X: ArrayLike, reset: bool = True) -> Floats:
        """Return the inputs as scikit-learn wants them; what it refuses is an error of ours."""
        try:
            values: Floats = validate_data(self, X, dtype=float, reset=reset)
        except (ValueError, OverflowError) as problem:
            raise DataError(f"`X={shown(X)}` cannot be used: {problem}") from None
        return values

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names readout0, readout1, ...

        Parameters
        ----------
        input_features
            Not used; the readouts have names of their own.
        """
        check_is_fitted(self)
        return np.array([f"readout{number}" for number in range(self.n_readouts_)], dtype=object)

    def _measure(self, u: Floats) -> Floats:
        seed = None
        if self.seed is not None:
            # The noise depends on the samples, so that other samples get other noise.
            digest = hashlib.sha256(np.ascontiguousarray(u).tobytes()).digest()
            seed = np.random.SeedSequence([self.seed, int.from_bytes(digest[:8], "big")])
        return Table(to_numpy(measure(self.system, u, seed)), "readouts").read_finite()
