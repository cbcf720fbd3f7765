"""The scikit-learn side of the tasks: estimators that behave as scikit-learn expects."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import infocap
from infocap.errors import ParameterError
from infocap.photonics import FibreSystem
from infocap.systems import RandomFeatures
from infocap.tasks import SystemFeatures, two_spirals

TASK = two_spirals(600, turns=1)
SYSTEM = RandomFeatures(2, 40, gain=3.0)


def any_width(u):
    """A noise-free system that takes any number of inputs, as the checks have it."""
    weights = np.random.default_rng(0).normal(size=(u.shape[1], 7))
    return np.tanh(u @ weights)


# The checks skip themselves where an optional feature is not there; none fails, and we exclude none.
SKIPS_ITSELF = {
    "check_array_api_input"
}  # runs only with SCIPY_ARRAY_API=1; other arrays become NumPy's


@pytest.mark.filterwarnings("ignore")  # scikit-learn warns in its own checks
def test_the_transformer_passes_the_checks_of_scikit_learn():
    found = check_estimator(SystemFeatures(any_width), on_fail=None, on_skip=None)
    assert len(found) > 30
    assert [
        check["check_name"] for check in found if check["status"] not in ("passed", "skipped")
    ] == []
    assert {check["check_name"] for check in found if check["status"] == "skipped"} <= SKIPS_ITSELF


def test_a_pipeline_scores_what_accuracy_scores():
    model = make_pipeline(SystemFeatures(SYSTEM), RidgeClassifier(1e-6))
    score = cross_val_score(model, TASK.inputs, TASK.labels, cv=5).mean()
    assert score == pytest.approx(infocap.tasks.accuracy(SYSTEM, TASK).mean, abs=0.03)
    assert score > 0.9


def test_a_grid_search_tunes_system_and_readout():
    model = make_pipeline(SystemFeatures(SYSTEM), RidgeClassifier(1e-6))
    grid = {
        "systemfeatures__system": [RandomFeatures(2, 3), SYSTEM],
        "ridgeclassifier__alpha": [1e-6, 1e6],
    }
    search = GridSearchCV(model, grid, cv=3).fit(TASK.inputs, TASK.labels)
    assert search.best_params_ == {"systemfeatures__system": SYSTEM, "ridgeclassifier__alpha": 1e-6}


def test_clones_and_pickles_give_the_same_answers():
    system = FibreSystem(4.5, 5.0, 2, tolerance=1e-3)
    model = make_pipeline(SystemFeatures(system, seed=3), RidgeClassifier(1e-6)).fit(
        TASK.inputs, TASK.labels
    )
    again = clone(model).fit(TASK.inputs, TASK.labels)
    back = pickle.loads(pickle.dumps(model))
    for other in (again, back):
        assert np.array_equal(model.predict(TASK.inputs), other.predict(TASK.inputs))


def test_the_same_samples_get_the_same_noise_and_others_other_noise():
    noisy = SystemFeatures(RandomFeatures(2, 5, noise=1.0), seed=1).fit(TASK.inputs)
    first = noisy.transform(TASK.inputs[:100])
    assert np.array_equal(first, noisy.transform(TASK.inputs[:100]))
    still = SystemFeatures(RandomFeatures(2, 5)).fit(TASK.inputs)
    noise = first - still.transform(TASK.inputs[:100])
    other = noisy.transform(TASK.inputs[100:200]) - still.transform(TASK.inputs[100:200])
    assert abs(np.corrcoef(noise.ravel(), other.ravel())[0, 1]) < 4 / np.sqrt(500)
    fresh = SystemFeatures(RandomFeatures(2, 5, noise=1.0)).fit(TASK.inputs)
    assert np.any(fresh.transform(TASK.inputs) != fresh.transform(TASK.inputs))


def test_features_have_names_for_tables():
    features = SystemFeatures(SYSTEM).set_output(transform="pandas").fit(TASK.inputs)
    table = features.transform(TASK.inputs[:3])
    assert list(table.columns[:2]) == ["readout0", "readout1"]
    assert table.shape == (3, 40)


def test_wrong_parameters_are_refused_when_fitting():
    with pytest.raises(ParameterError, match="system=None` must be a function"):
        SystemFeatures(None).fit(TASK.inputs, TASK.labels)


def test_complex_readouts_are_refused_with_what_to_do_here():
    task = infocap.tasks.two_spirals(n_points=40)
    for call in (
        lambda system: infocap.tasks.SystemFeatures(system).fit(task.inputs),
        lambda system: infocap.tasks.accuracy(system, task),
    ):
        with pytest.raises(
            infocap.errors.DataError, match=r"readouts is complex.*np\.abs\(readouts\) \*\* 2"
        ) as found:
            call(lambda u: u * 1j)
        assert "complex_as" not in str(found.value)
