"""Real targets and sequences: the field's tasks, held-out errors, demand, and scikit-learn in the order of time."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.interpolate import CubicSpline

import infocap
from infocap.errors import DataError, ParameterError
from infocap.systems import DelayLine, EchoState, RandomFeatures
from infocap.tasks import (
    SystemFeatures,
    Task,
    accuracy,
    capacity_accuracy,
    channel_equalisation,
    demand,
    mackey_glass,
    narma,
    parity,
)  # fmt: skip

TASKS = {
    "narma": narma(10, 1000),
    "parity": parity(3, 1, 1000),
    "channel": channel_equalisation(1000),
    "mackey-glass": mackey_glass(n_steps=1500),
}


def delayed(u, memory):
    """Rows u[t], u[t-1], ..., u[t-memory], from t = memory on."""
    return np.column_stack([u[memory - delay : len(u) - delay] for delay in range(memory + 1)])


def test_narma_obeys_its_recursion():
    task = narma(10, 300)
    # y[t] belongs to u[t], because it is the next value of the series.
    u = task.inputs[:, 0]
    y = task.labels
    assert 0 <= u.min() < 0.01 < 0.49 < u.max() <= 0.5
    for t in range(10, 300):
        known = 0.3 * y[t - 1] + 0.05 * y[t - 1] * y[t - 10 : t].sum() + 1.5 * u[t - 9] * u[t] + 0.1
        assert y[t] == pytest.approx(known)
    scaled = narma(10, 300, domain=(-1, 1))
    assert_allclose(scaled.inputs, 4 * task.inputs - 1)
    assert_allclose(scaled.labels, y)


def test_a_sequence_for_which_narma_diverges_is_drawn_anew(monkeypatch):
    from infocap.tasks._sequences import N_WARM_UP_STEPS, _narma_series

    u = np.random.default_rng(4).uniform(0, 0.5, N_WARM_UP_STEPS + 10_000)
    assert np.isnan(_narma_series(u, 10)[-1])
    task = narma(10, 10_000, seed=4)
    assert task.labels.max() < 2
    assert np.any(task.inputs[:, 0] != u[N_WARM_UP_STEPS:])
    monkeypatch.setattr(
        "infocap.tasks._sequences._narma_series", lambda u, order: np.full(len(u) + 1, np.nan)
    )
    with pytest.raises(ParameterError, match="NARMA10 diverged in 50 sequences of `n_steps=20`"):
        narma(10, 20)


def test_narma_of_high_order_stays_bounded():
    task = narma(20, 2000)
    u = task.inputs[:, 0]
    y = task.labels
    inside = 0.3 * y[299] + 0.05 * y[299] * y[280:300].sum() + 1.5 * u[281] * u[300] + 0.01
    assert y[300] == pytest.approx(np.tanh(inside) + 0.2)
    assert y.max() < 1.2


def test_parity_is_the_product_of_past_signs():
    task = parity(3, delay=2, n_steps=500)
    u = task.inputs[:, 0]
    assert_allclose(task.labels[4:], u[2:-2] * u[1:-3] * u[:-4])
    assert set(u) == set(task.labels) == {-1.0, 1.0}


def test_the_channel_is_that_of_the_literature():
    task = channel_equalisation(2000, snr_db=300)
    d = task.labels  # d[t-2]; the symbol now is two rows later
    weights = [0.08, -0.12, 1.0, 0.18, -0.1, 0.091, -0.05, 0.04, 0.03, 0.01]
    t = np.arange(10, 1990)
    q = sum(weight * d[t + 2 + 2 - lag] for lag, weight in enumerate(weights))
    assert_allclose(task.inputs[t, 0], q + 0.036 * q**2 - 0.011 * q**3, atol=1e-9)
    noisy = channel_equalisation(2000, snr_db=10)
    noise = np.std(noisy.inputs - task.inputs) / np.std(task.inputs)
    assert 20 * np.log10(noise) == pytest.approx(-10, abs=0.3)


def test_the_mackey_glass_series_obeys_its_equation():
    task = mackey_glass(horizon=5, n_steps=300)
    x = np.arctanh(task.inputs[:, 0]) + 1
    spline = CubicSpline(np.arange(300), x)
    t = np.arange(30, 290)
    late = x[t - 17]
    assert_allclose(spline(t, 1), 0.2 * late / (1 + late**10) - 0.1 * x[t], atol=5e-4)
    assert_allclose(task.labels[:-5], task.inputs[5:, 0])
    assert 0.15 < np.std(np.arctanh(task.labels)) < 0.3


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_tasks_are_the_same_for_the_same_seed_and_say_so(task):
    assert task.regression
    assert task.memory > 0
    assert "seed=0" in task.source
    assert "a real target, a sequence with a memory of" in repr(task)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: narma(0), "order=0` must be a whole number"),
        (lambda: narma(domain=(1, 0)), r"domain=\(1, 0\)` must be \(low, high\)"),
        (lambda: parity(2, -1), "delay=-1` must be a whole number"),
        (lambda: mackey_glass(delay=0), "delay=0` must be a positive number"),
        (lambda: channel_equalisation(snr_db=np.nan), "snr_db=nan` must be a finite number"),
        (
            lambda: Task(np.zeros((3, 1)), [1.0, 1.0, 1.0], regression=True),
            "for every sample; a task needs two values",
        ),
        (lambda: Task(np.zeros((2, 1)), [1.0, np.nan], regression=True), "labels has 1 NaN"),
        (
            lambda: Task(np.zeros((2, 1)), [1.0, 2.0], regression=1),
            "regression=1` must be True or False",
        ),
        (
            lambda: accuracy(DelayLine(2), TASKS["narma"], folds=40),
            "folds=40` cuts 900 rows into stretches no longer",
        ),
        (
            lambda: accuracy(DelayLine(2), TASKS["narma"], washout=5000),
            "washout=5000` leaves none of 1000 rows",
        ),
        (lambda: narma(domain=5), "domain=5` must be"),
        (lambda: accuracy(DelayLine(2), step_task()), "target of step is 0 in a whole fold"),
        (
            lambda: accuracy(RandomFeatures(1, 3), flat()[0], folds=501),
            "folds=501` is more than the 500 samples",
        ),
        (
            lambda: accuracy(lambda u: u, infocap.tasks.two_spirals(100)).nrmse,
            "two spirals has classes",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises((ParameterError, DataError), match=message):
        make()


def step_task():
    """A sequence whose target changes only once, near its end."""
    return Task(
        np.random.default_rng(0).normal(size=(300, 1)),
        np.arange(300) > 250,
        "step",
        regression=True,
        memory=1,
    )


def flat(noise=0.0):
    """A memoryless task with the target u1 + u2² of inputs uniform on [-1, 1]."""
    generator = np.random.default_rng(0)
    u = generator.uniform(-1, 1, (500, 2))
    return [
        Task(
            u, u[:, 0] + u[:, 1] ** 2 + noise * generator.normal(size=500), "curve", regression=True
        )
    ]


def test_a_real_target_without_memory_is_scored_as_scikit_learn_does():
    from sklearn.linear_model import LinearRegression, Ridge
    from sklearn.model_selection import PredefinedSplit, cross_val_score

    (task,), system = flat(0.1), RandomFeatures(2, 12, gain=0.7)
    fold_of = np.argmax([test for _, test in task.splits(5, seed=0)], axis=0)
    assert np.bincount(fold_of).tolist() == [100] * 5
    found = accuracy(system, task)
    for readout, score in (
        (LinearRegression(), found),
        (Ridge(1.0), accuracy(system, task, readout=Ridge(1.0))),
    ):
        theirs = cross_val_score(
            readout, system(task.inputs), task.labels, cv=PredefinedSplit(fold_of), scoring="r2"
        )
        assert_allclose(score.per_fold, theirs, atol=1e-9)
    assert found.mean == pytest.approx(1 - 0.01 / np.var(task.labels), abs=0.02)
    assert found.nrmse == pytest.approx(np.mean(np.sqrt(1 - found.per_fold)))
    assert "R²: " in repr(found)
    assert f"NRMSE {found.nrmse:.3f}" in repr(found)


def test_folds_of_a_sequence_are_stretches_that_share_no_input_with_those_that_train():
    task = Task(np.zeros((200, 1)), np.arange(200.0), regression=True, memory=7)
    tested = np.zeros(200, dtype=int)
    for train, test in task.splits(4, washout=20):
        rows = np.flatnonzero(test)
        others = np.flatnonzero(train)
        assert np.array_equal(rows, np.arange(rows[0], rows[-1] + 1))
        reach = set(range(rows[0] - 7, rows[-1] + 1))
        assert not any(reach & set(range(row - 7, row + 1)) for row in others)
        assert others.min(initial=200) >= 20
        assert len(others) + len(rows) >= 180 - 14
        tested += test
    assert tested.tolist() == [0] * 20 + [1] * 180


def test_a_target_that_noise_alone_would_give_is_not_predicted():
    """Fitting 30 readouts to noise costs a little, and gains nothing."""
    generator = np.random.default_rng(1)
    task = Task(
        generator.normal(size=(3000, 1)), generator.normal(size=3000), regression=True, memory=5
    )
    found = accuracy(EchoState(30, bias=0.3), task)
    assert abs(found.mean + 30 / 2400) < 4 * found.standard_error


def test_a_delay_line_is_the_linear_model_and_solves_narma_as_the_field_knows():
    task = narma(10, 4000, domain=(-1, 1))
    line = accuracy(DelayLine(31), task)
    assert_allclose(line.per_fold, line.linear_per_fold, atol=1e-9)
    assert 0.35 < line.nrmse < 0.45  # the well-known 0.4 of a linear shift register
    network = accuracy(EchoState(150, 0.95, 0.2, bias=0.3), task)
    assert network.nrmse < 0.8 * line.nrmse


def test_parity_needs_a_nonlinear_memory():
    task = parity(3, n_steps=2000)
    assert accuracy(EchoState(100, 0.9, 1.0), task).mean > 0.8
    assert accuracy(DelayLine(10), task).mean < 0.01
    classes = dataclasses.replace(task, regression=False)
    assert accuracy(EchoState(100, 0.9, 1.0), classes).mean > 0.97
    assert accuracy(DelayLine(10), classes).mean == pytest.approx(0.5, abs=0.05)


def test_capacity_against_r_squared_names_its_measure():
    (task,) = flat()
    basis = infocap.product_basis("legendre", 2, 4)
    devices = [RandomFeatures(2, size, gain=0.7, noise=0.02) for size in (2, 4, 6)]
    results = [infocap.probe(device, basis, 256, seed=0) for device in devices]
    relation = capacity_accuracy(results, [accuracy(device, task) for device in devices])
    assert relation.measure == relation.to_xarray().attrs["measure"] == "R²"
    assert infocap.tasks.plot.capacity_accuracy(relation).get_ylabel() == "R²"


def test_the_demand_of_a_real_target_is_its_expansion():
    """u1 + u2² on uniform inputs: variances 1/3 and 4/45, in degrees 1 and 2."""
    basis = infocap.product_basis("legendre", 2, 3)
    found = demand(flat()[0], basis)
    assert_allclose(found.share[1:3], np.array([1 / 3, 4 / 45]) / (1 / 3 + 4 / 45), atol=0.05)
    assert found.unexplained < 1e-6
    able = infocap.probe(lambda u: u**2 + u, basis, 512, seed=1)
    assert able.capacity_of(found.target()) == pytest.approx(found.reachable(able))
    linear = infocap.probe(lambda u: u, basis, 512, seed=1)
    assert found.reachable(linear) == pytest.approx(found.share[1], abs=0.05)


def test_narma10_demands_mostly_linear_memory():
    """85 % of degree 1 and 14 % of degree 2, as the expansion in delayed inputs has it."""
    task = narma(10, 8000, domain=(-1, 1))
    lags = delayed(
        task.inputs, 20
    )  # a memoryless task with all delays as inputs, kept in the order of time
    wide = Task(lags, task.labels[20:], "NARMA10", regression=True, memory=30)
    found = demand(wide, infocap.product_basis("legendre", n_inputs=21, max_degree=2))
    assert_allclose(found.share[1:], [0.85, 0.14], atol=0.03)


def test_what_a_device_with_memory_reaches_of_a_task():
    """A delay line has the linear part of NARMA10, and a line with all products of its delays the rest, too."""
    task = narma(10, 6000, domain=(-1, 1))
    basis = infocap.delayed_basis(max_delay={1: 20, 2: 11})
    found = demand(task, basis)
    line = DelayLine(21)(task.inputs)
    able = infocap.delayed_basis(max_delay={1: 20, 2: 12})
    linear = infocap.estimate(task.inputs, line, able, washout=100)
    assert found.reachable(linear) == pytest.approx(found.share[1] / found.share.sum(), abs=0.03)
    both = np.column_stack([line[20:], basis(task.inputs)[:, 22:]])
    wide = infocap.estimate(task.inputs[20:], both, able, washout=100)
    assert found.reachable(wide) == pytest.approx(1, abs=0.01)


def test_the_transformer_goes_on_where_the_training_part_ended():
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import TimeSeriesSplit, cross_val_score
    from sklearn.pipeline import make_pipeline

    task = narma(5, 2000, domain=(-1, 1))
    system = EchoState(40, bias=0.3)
    features = SystemFeatures(system, washout=300).fit(task.inputs[:1000])
    whole = system(task.inputs)
    assert_allclose(features.transform(task.inputs[1000:1100]), whole[1000:1100], atol=1e-6)
    fresh = SystemFeatures(system).fit(task.inputs[:1000]).transform(task.inputs[1000:1100])
    assert np.abs(fresh - whole[1000:1100]).max() > 0.1
    model = make_pipeline(SystemFeatures(system, washout=300), LinearRegression())
    theirs = cross_val_score(model, task.inputs, task.labels, cv=TimeSeriesSplit(3, gap=15))
    assert np.mean(theirs) == pytest.approx(accuracy(system, task).mean, abs=0.05)
