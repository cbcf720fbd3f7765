"""Capacities under the law of the recorded inputs, against truth by algebra and a naive reference."""

import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from scipy.linalg import solve_triangular

import infocap
from infocap.basis import graded_order, recorded_family
from infocap.estimators._innovations import jackknife
from infocap.estimators._input_course import correlation_time, near_period_of, period_of
from infocap.estimators._recorded_inputs import (
    input_deviations,
    under_law,
    with_powers_of_present,
)
from infocap.estimators._recorded_residuals import _find_loop, _Part
from infocap.estimators._stretch_sums import OrderedSums, StretchSums
from infocap.estimators._told_apart import tell_apart
from infocap.estimators._zero_test import compare_with_zero
from infocap.samples import Samples

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")

BASIS = infocap.delayed_basis("legendre", max_delay={1: 6, 2: 2, 3: 1})


def autoregressive(n, a, seed):
    """Normal inputs of variance 1 whose correlation at lag k is a^k."""
    generator = np.random.default_rng(seed)
    u = generator.standard_normal(n)
    for t in range(1, n):
        u[t] = a * u[t - 1] + np.sqrt(1 - a**2) * u[t]
    return u


def mackey_glass(n, seed, step=3):
    generator = np.random.default_rng(seed)
    series = list(1.2 + 0.1 * generator.standard_normal(18))
    for _ in range(step * n + 500):
        delayed = series[-18]
        series.append(series[-1] + 0.2 * delayed / (1 + delayed**10) - 0.1 * series[-1])
    return np.array(series[-step * n :: step])


def telegraph(n, seed):
    return np.where(np.cumsum(np.random.default_rng(seed).random(n) < 0.1) % 2, -1.0, 1.0)


def echo_state(u, seed, n_readouts=8, noise=0.1):
    generator = np.random.default_rng([seed, 1])
    w = generator.standard_normal((n_readouts, n_readouts))
    w *= 0.8 / np.abs(np.linalg.eigvals(w)).max()
    weights = generator.uniform(-0.5, 0.5, (np.shape(u)[1] if np.ndim(u) > 1 else 1, n_readouts))
    state = np.zeros(n_readouts)
    states = []
    for inputs in np.reshape(u, (len(u), -1)):
        state = np.tanh(w @ state + inputs @ weights + 0.1)
        states.append(state)
    x = np.array(states)
    return x + noise * x.std(axis=0) * generator.standard_normal(x.shape)


def without_memory(u, seed, noise=0.05):
    generator = np.random.default_rng([seed, 2])
    x = np.tanh(1.5 * (np.outer(u - u.mean(), generator.uniform(-1, 1, 8)) / u.std() + 0.3))
    return x + noise * x.std(axis=0) * generator.standard_normal(x.shape)


# The definition, written out with a QR factorisation of the values.


def naive(values, x, edges):
    """Capacities, standard errors and p-values of functions in their order, from all values at once."""
    n, m = values.shape
    n_stretches = len(edges) - 1
    x = np.column_stack([np.ones(n), x])
    z = np.linalg.qr(x)[0] * np.sqrt(n)

    def innovations(rows):
        q, r = np.linalg.qr(values[rows])
        return q * np.sign(np.diag(r)) * np.sqrt(len(q)), r * np.sign(np.diag(r))[:, None]

    def adjusted(rows):
        psi, _ = innovations(rows)
        orthonormal = np.linalg.qr(z[rows])[0]
        raw = np.sum((psi.T @ orthonormal) ** 2, axis=1) / len(psi)
        return raw - (z.shape[1] - raw.sum()) / (len(psi) - m), raw

    all_rows = np.arange(n)
    stretches = [np.arange(a, b) for a, b in pairwise(edges)]
    of_all, raw = adjusted(all_rows)
    without = np.array([adjusted(np.setdiff1d(all_rows, rows))[0] for rows in stretches])
    without[:, 0] = 1
    capacity = of_all + (n_stretches - 1) * (of_all - without.mean(axis=0))
    capacity[0] = 1
    moved = without - without.mean(axis=0)
    correlation = max(np.sum(moved[1:] * moved[:-1]) / np.sum(moved**2) + 1 / n_stretches, 0)
    student = scipy.stats.t.ppf(0.975, n_stretches - 1) / scipy.stats.norm.ppf(0.975)

    def bar(without):
        return (
            student * np.sqrt((n_stretches - 1) * (1 + 2 * correlation)) * np.std(without, axis=0)
        )

    psi, _ = innovations(all_rows)
    c = psi.T @ z / n
    near = np.zeros((m, n_stretches, z.shape[1]))
    far = np.zeros_like(near)
    for g, rows in enumerate(stretches):
        rest = np.setdiff1d(all_rows, rows)
        psi_rest, r_rest = innovations(rest)
        c_rest = psi_rest.T @ z[rest] / len(rest)
        # The innovations of the fit without these rows, at these rows.
        psi_here = np.linalg.solve(r_rest.T / np.sqrt(len(rest)), values[rows].T).T
        for k in range(m):
            left = z[rows] - psi[rows, : k + 1] @ c[: k + 1]
            left_of_rest = z[rows] - psi_here[:, : k + 1] @ c_rest[: k + 1]
            near[k, g] = psi[rows, k] @ left / n
            far[k, g] = psi[rows, k] @ left_of_rest / n
    covariance = np.eye(z.shape[1]) - c.T @ c
    freedom = max(np.trace(covariance) ** 2 / np.sum(covariance**2), 1)
    null = np.zeros(m)
    p_value = np.zeros(m)
    for k in range(1, m):
        null[k] = max(np.sum(near[k] * far[k]), 0.5 * (1 - m / n) * np.sum(far[k] ** 2))
        q = near[k] @ near[k].T
        own = np.diag(q)
        ratio = own.sum() ** 2 / (np.sum(q**2) - np.sum(own**2))
        nu = np.clip((n_stretches - 1) / n_stretches * ratio, 1, freedom)
        unevenness = n_stretches * np.sum(own**2) / own.sum() ** 2 / (1 + 2 / nu)
        nu_2 = max(nu * (n_stretches / max(unevenness, 1) - 1), 1)
        p_value[k] = scipy.stats.f.sf(raw[k] / null[k] / (1 + 2 * correlation), nu, nu_2)
    noise = null * (1 - np.clip(capacity, 0, 1))
    error = np.sqrt(bar(without) ** 2 + 2 * noise**2 / freedom)
    error[0] = 0
    return capacity, error, p_value, float(bar(without.sum(axis=1)))


@pytest.mark.parametrize("drive", ["independent", "autoregressive", "mackey-glass"])
def test_capacities_errors_and_p_values_equal_those_of_the_definition(drive):
    n = 700
    u = {
        "independent": np.random.default_rng(3).uniform(-1, 1, n),
        "autoregressive": autoregressive(n, 0.8, 3),
        "mackey-glass": mackey_glass(n, 3),
    }[drive]
    x = echo_state(u, 4)
    basis = infocap.delayed_basis(max_delay={1: 4, 2: 1})
    result = infocap.estimate(u, x, basis, law="recorded", washout=50)
    assert result.told_apart.all()

    order = graded_order(result.basis)
    history = result.basis.memory
    values = result.basis(u[50 - history :, None])[:, order]
    edges = np.linspace(0, n - 50, len(result.without_stretches) + 1).astype(int)
    capacity, error, p_value, total_error = naive(values, x[50:], edges)
    assert_allclose(result.unbiased[order], capacity, atol=1e-8)
    assert_allclose(result.standard_error[order], error, rtol=1e-6, atol=1e-9)
    assert_allclose(result.p_value[order], p_value, rtol=1e-5, atol=1e-9)
    assert_allclose(result.total, capacity.sum(), atol=1e-8)
    assert_allclose(result.total_standard_error, total_error, rtol=1e-6)


# Truth by algebra.


def linear_network(n, a, seed, n_readouts=6):
    """Inputs, readouts of a linear network, and the exact capacities of degree 1 up to delay 6."""
    generator = np.random.default_rng([seed, 3])
    w = generator.standard_normal((n_readouts, n_readouts))
    w *= 0.8 / np.abs(np.linalg.eigvals(w)).max()
    weights = generator.standard_normal(n_readouts)
    u = autoregressive(n, a, seed)
    state = np.zeros(n_readouts)
    states = []
    for value in u:
        state = w @ state + weights * value
        states.append(state)
    responses = [weights]
    for _ in range(200):
        responses.append(w @ responses[-1])
    h = np.array(responses)  # to u[t-j]
    correlation = scipy.linalg.toeplitz(a ** np.arange(len(h)))
    covariance = h.T @ correlation @ h
    noise = 0.1 * np.sqrt(np.diag(covariance))
    with_inputs = correlation[:7] @ h  # E[u[t-k] x']
    whitened = solve_triangular(np.linalg.cholesky(correlation[:7, :7]), with_inputs, lower=True)
    inverse = np.linalg.inv(covariance + np.diag(noise**2))
    exact = np.einsum("ki,ij,kj->k", whitened, inverse, whitened)
    x = np.array(states) + noise * generator.standard_normal((n, n_readouts))
    return u, x, exact


@pytest.mark.parametrize("a", [0.5, 0.9])
def test_a_linear_network_has_its_exact_capacities(a):
    within = 0
    deviations = []
    for seed in range(12):
        u, x, exact = linear_network(1500, a, seed)
        result = infocap.estimate(u, x, BASIS, law="recorded", washout=100)
        is_linear = result.basis.degrees == 1
        order = np.argsort(result.basis.largest_delays[is_linear])
        measured = result.unbiased[is_linear][order]
        error = result.standard_error[is_linear][order]
        deviations.append((measured - exact) / error)
        memory = result.memory_capacity
        within += abs(memory - exact.sum()) < 1.96 * memory.standard_error
    # Of 12 intervals that hold in 95 % each, 9 and more hold but in one of 400 cases.
    assert within >= 9
    assert 0.5 < np.sqrt(np.mean(np.square(deviations))) < 1.3
    # The mean over data sets has the error of one divided by the root of their number.
    assert np.abs(np.mean(deviations, axis=0)).max() < 4 / np.sqrt(12)


def test_a_device_without_memory_has_nothing_beyond_the_present_input():
    for seed in range(4):
        u = mackey_glass(2500, seed)
        result = infocap.estimate(u, without_memory(u, seed), BASIS, law="recorded", washout=20)
        beyond = result.beyond_present
        assert abs(beyond) < 2 * beyond.standard_error + 0.01


def test_recall_counts_the_memory_of_the_inputs_and_memory_capacity_does_not():
    u = autoregressive(6000, 0.9, 1)
    x = u[:, None] + 1e-3 * np.random.default_rng(1).standard_normal((6000, 1))
    result = infocap.estimate(u, x, BASIS, law="recorded", washout=20)
    assert_allclose(result.recall, 0.81 ** np.arange(7), atol=0.08)
    assert_allclose(result.memory_capacity, 1, atol=0.02)
    assert_allclose(result.beyond_present, 0, atol=0.02)


def test_later_functions_do_not_change_earlier_capacities_but_by_their_noise():
    """The raw capacities of innovations do not change at all, and delays before them neither."""
    u = autoregressive(1000, 0.8, 5)
    x = echo_state(u, 5)
    short = infocap.delayed_basis(max_delay={1: 6})
    long = infocap.delayed_basis(max_delay={1: 6, 2: 3})
    a = infocap.estimate(u, x, short, law="recorded", washout=30)
    b = infocap.estimate(u, x, long, law="recorded", washout=30)
    assert_allclose(b.raw[b.basis.degrees < 2], a.raw, atol=1e-9)


# What does not depend on choices.


def parts_of(u, x, basis):
    """The sums over stretches of functions and powers of present inputs, and those functions."""
    evidence = infocap.estimators.gather_evidence(u, x, basis, law="recorded")
    union = with_powers_of_present(evidence.basis)
    edges = np.linspace(0, evidence.n_samples, 13).astype(int)
    return StretchSums(evidence, union, edges), union


def test_totals_of_both_gradings_are_equal():
    u = mackey_glass(1500, 2)
    sums, union = parts_of(u, echo_state(u, 2), BASIS)
    order = graded_order(union)
    kept = order[: len(order) // 2]
    by_degree = jackknife(OrderedSums(sums, kept), has_constant=True)
    delay_first = graded_order(union, "delay")
    kept_by_delay = delay_first[np.isin(delay_first, kept)]
    by_delay = jackknife(OrderedSums(sums, kept_by_delay), has_constant=True)
    assert_allclose(by_delay.capacity.sum(), by_degree.capacity.sum(), atol=1e-9)
    chosen = np.ones(len(kept), dtype=bool)
    assert_allclose(by_delay.sum_of(chosen)[0], by_degree.sum_of(chosen)[0], atol=1e-9)


def test_independent_inputs_give_the_same_as_the_declared_law():
    for seed in range(3):
        u = np.random.default_rng(seed).uniform(-1, 1, 3000)
        x = echo_state(u, seed)
        declared = infocap.estimate(u, x, BASIS, washout=50)
        recorded = infocap.estimate(u, x, BASIS, law="recorded", washout=50)
        bar = max(declared.total_standard_error, recorded.total_standard_error)
        assert abs(declared.total - recorded.total) < 1.5 * bar
        difference = declared.unbiased - recorded.unbiased
        assert np.sqrt(np.mean(difference**2)) < np.mean(recorded.standard_error)


def test_capacities_do_not_change_under_affine_maps_of_inputs_nor_mixing_of_readouts():
    u = autoregressive(900, 0.7, 1)
    x = echo_state(u, 1)
    mixing = np.random.default_rng(1).standard_normal((8, 8))
    one = infocap.estimate(u, x, BASIS, law="recorded", washout=30)
    for other_u, other_x in ((2 * u + 3, x), (u, x @ mixing + 5.0)):
        other = infocap.estimate(other_u, other_x, BASIS, law="recorded", washout=30)
        assert_allclose(other.unbiased, one.unbiased, atol=1e-7)
        assert_allclose(other.total_standard_error, one.total_standard_error, rtol=1e-5)
        assert_allclose(other.beyond_present, one.beyond_present, atol=1e-6)


def test_sums_by_degree_do_not_depend_on_the_order_of_inputs():
    common = autoregressive(1500, 0.8, 1)
    u = np.column_stack([common, 0.6 * common + autoregressive(1500, 0.5, 2)])
    basis = infocap.delayed_basis("legendre", 2, max_delay={1: 4, 2: 2})
    x = echo_state(u, 3)
    one = infocap.estimate(u, x, basis, law="recorded", washout=30)
    other = infocap.estimate(u[:, ::-1], x, basis, law="recorded", washout=30)
    for table in ("by_degree", "by_delay"):
        of_one = getattr(one, table)(errors=True)
        of_other = getattr(other, table)(errors=True)
        assert_allclose(of_one.capacity, of_other.capacity, atol=1e-8)
        # How much neighbouring stretches share is found from single functions, which do depend.
        assert_allclose(of_one.standard_error, of_other.standard_error, rtol=0.05)
    assert list(one.recall.index.names) == ["input", "delay"]


def test_dependent_inputs_of_a_device_without_memory():
    generator = np.random.default_rng(1)
    u = generator.standard_normal((4000, 3)) @ np.array([[1, 0.8, 0], [0, 0.6, 0.5], [0, 0, 1.0]])
    x = np.tanh(u @ generator.standard_normal((3, 6))) + 0.1 * generator.standard_normal((4000, 6))
    basis = infocap.product_basis("hermite", n_inputs=3, max_degree=2)
    one = infocap.estimate(u, x, basis, law="recorded")
    other = infocap.estimate(u[:, [2, 0, 1]], x, basis, law="recorded")
    assert one.law == "recorded"
    assert_allclose(one.by_degree(errors=True).capacity, other.by_degree(errors=True).capacity)
    # The tanh is nearly linear in part; its linear share by least squares is what degree 1 has.
    fit = np.linalg.lstsq(np.column_stack([np.ones(4000), u]), x, rcond=None)[0]
    linear = np.column_stack([np.ones(4000), u]) @ fit
    white = (x - x.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T, bias=True))).T
    explained = np.linalg.lstsq(np.column_stack([np.ones(4000), u]), white, rcond=None)
    share = 6 - explained[1].sum() / 4000
    assert linear.shape == x.shape
    assert_allclose(one.by_degree(errors=True).capacity[1], share, atol=0.02)


def chunked(array):
    """Rows that are read from elsewhere in slices."""

    class Rows:
        shape = array.shape
        dtype = array.dtype
        sent_by_name = True

        def __getitem__(self, rows):
            return array[rows]

    return Rows()


@pytest.mark.parametrize("way", ["memory limit", "threads", "executor", "two passes"])
def test_the_way_through_the_rows_changes_nothing(way, monkeypatch, tmp_path):
    u = autoregressive(6000, 0.8, 1)[:, None]
    x = echo_state(u[:, 0], 1)
    expected = infocap.estimate(u, x, BASIS, law="recorded", washout=100)
    options = {}
    if way == "memory limit":
        np.save(tmp_path / "x.npy", x)
        np.save(tmp_path / "u.npy", u)
        u = np.load(tmp_path / "u.npy", mmap_mode="r")
        x = np.load(tmp_path / "x.npy", mmap_mode="r")
        options["memory_limit"] = "20MB"
    elif way == "threads":
        monkeypatch.setattr("infocap.samples._engine.MIN_NUMBERS_PER_SHARE", 10_000)
    elif way == "two passes":
        monkeypatch.setattr("infocap.estimators._stretch_sums.MAX_BYTES_OF_STRETCH_SUMS", 0)
    with ThreadPoolExecutor(2) as executor:
        if way == "executor":
            options["executor"] = executor
        result = infocap.estimate(u, x, BASIS, law="recorded", washout=100, **options)
    for name in ("unbiased", "standard_error", "p_value", "pivots"):
        assert_allclose(getattr(result, name), getattr(expected, name), atol=1e-10)
    assert_allclose(result.total_standard_error, expected.total_standard_error, atol=1e-10)
    assert_allclose(result.by_delay(errors=True), expected.by_delay(errors=True), atol=1e-10)


@pytest.mark.thorough
def test_helper_processes_give_the_same():
    u = autoregressive(3000, 0.8, 1)[:, None]
    x = echo_state(u[:, 0], 1)
    expected = infocap.estimate(u, x, BASIS, law="recorded", washout=100)
    with ProcessPoolExecutor(2) as executor:
        result = infocap.estimate(u, x, BASIS, law="recorded", washout=100, executor=executor)
    assert_allclose(result.unbiased, expected.unbiased, atol=1e-10)


def test_stretches_do_not_cross_from_one_run_to_the_next():
    """Runs of other inputs in between change nothing but through their own rows."""
    runs_u = [autoregressive(length, 0.7, seed) for seed, length in enumerate((500, 900, 700))]
    runs_x = [echo_state(u, 7) for u in runs_u]
    result = infocap.estimate(runs_u, runs_x, BASIS, law="recorded", washout=50)
    assert result.n_samples == 2100 - 150
    in_other_order = infocap.estimate(runs_u[::-1], runs_x[::-1], BASIS, law="recorded", washout=50)
    assert_allclose(result.raw, in_other_order.raw, atol=1e-8)
    assert abs(result.total - in_other_order.total) < result.total_standard_error
    # The inputs of the washout belong to the rows behind it.
    values = [result.basis(u[44:, None]) for u in runs_u]
    gram = np.concatenate(values).T @ np.concatenate(values) / result.n_samples
    order = graded_order(result.basis)
    triangle = np.linalg.cholesky(gram[np.ix_(order, order)])
    assert_allclose(result.pivots[order] * np.diag(gram)[order], np.diag(triangle) ** 2, atol=1e-9)


# Zeros.


@pytest.mark.parametrize("noise", ["white", "coloured"])
def test_functions_without_capacity_are_seldom_called_significant(noise):
    p_values = []
    for seed in range(24):
        u = autoregressive(800, 0.9, seed)
        generator = np.random.default_rng([seed, 9])
        x = generator.standard_normal((800, 6))
        if noise == "coloured":
            x = np.column_stack([autoregressive(800, 0.9, 100 * seed + k) for k in range(6)])
        result = infocap.estimate(u, x, BASIS, law="recorded", washout=20)
        p_values.append(result.p_value[1:][result.told_apart[1:]])
    share = np.mean(np.concatenate(p_values) < 0.05)
    # 24 sets of some 15 functions; those of one set are related, so a wide margin.
    assert 0.005 < share < 0.085


# Inputs of all kinds.


@pytest.mark.parametrize(
    "u",
    [
        telegraph(1200, 1),
        np.sin(2 * np.pi * np.arange(1200) / 25),
        np.full(1200, 0.3),
        np.random.default_rng(1).choice([0.0, 1.0], 1200),
        np.repeat(np.random.default_rng(1).uniform(-1, 1, 300), 4),
        np.random.default_rng(1).standard_t(2, 1200),
        np.cumsum(np.random.default_rng(1).standard_normal(1200)),
    ],
    ids=["telegraph", "periodic", "constant", "two values", "held", "heavy tails", "random walk"],
)
def test_inputs_of_all_kinds_give_an_answer(u):
    result = infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", washout=50)
    told = result.told_apart
    assert told[0]
    assert np.isfinite(result.total)
    assert result.total <= min(result.rank, told.sum()) + 1e-9
    assert np.array_equal(np.isnan(result.capacity), ~told)
    assert np.array_equal(np.isnan(result.unbiased), ~told)
    assert "nan" not in repr(result).replace("nano", "")


def test_periodic_inputs_allow_no_more_functions_than_rows_of_a_period():
    u = np.sin(2 * np.pi * np.arange(1200) / 8)
    result = infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", washout=50)
    assert result.told_apart.sum() <= 8
    assert "inputs repeat every 8 rows" in " ".join(result.warnings)


def test_held_inputs_are_dependent_inputs():
    """The method stays right under the recorded law, and the declared one has no numbers."""
    u = np.repeat(np.random.default_rng(1).uniform(-1, 1, 400), 4)
    x = echo_state(u, 1)
    result = infocap.estimate(u, x, BASIS, law="recorded", washout=50)
    assert "the input stays constant for 4 rows" in " ".join(result.notes)
    assert not result.unreliable
    declared = infocap.estimate(u, x, BASIS, washout=50)
    assert "rows_per_step=4" in declared.no_numbers


def test_two_values_have_one_degree():
    u = telegraph(1500, 3)
    result = infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", washout=50)
    assert "P2" not in " ".join(result.basis.labels)
    assert "functions left out" in " ".join(result.notes)


def test_a_period_is_told_beside_a_constant_input():
    periodic = np.tile(np.random.default_rng(1).uniform(-1, 1, 30), 30)
    u = np.column_stack([periodic, np.full(900, 2.0)])
    basis = infocap.delayed_basis("legendre", 2, max_delay={1: 3, 2: 1})
    result = infocap.estimate(u, echo_state(u, 1), basis, law="recorded", washout=50)
    assert "inputs repeat every 30 rows" in " ".join(result.warnings)
    constant = np.full(900, 2.0)
    x = np.random.default_rng(1).standard_normal((900, 3))
    alone = infocap.estimate(constant, x, BASIS, law="recorded", washout=50)
    assert "constant input" in causes(alone)
    assert "periodic inputs" not in causes(alone)


def test_facts_of_the_first_rows_are_called_so(monkeypatch):
    """A long recording is looked at in its first rows, and repeats nowhere else here."""
    monkeypatch.setattr("infocap.estimators._input_course.MAX_ROWS_FOR_TIMES", 600)
    generator = np.random.default_rng(1)
    u = np.concatenate([np.tile(generator.uniform(-1, 1, 30), 24), generator.uniform(-1, 1, 600)])
    result = infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", washout=50)
    assert "inputs repeat every 30 rows in the first 600 rows" in " ".join(result.warnings)
    still = np.concatenate([np.full(720, 0.3), generator.uniform(-1, 1, 600)])
    result = infocap.estimate(still, echo_state(still, 1), BASIS, law="recorded", washout=50)
    assert "u never changes in the first 600 rows" in " ".join(result.warnings)


def test_a_constant_input_is_named():
    u = np.column_stack([autoregressive(900, 0.5, 1), np.full(900, 2.0)])
    basis = infocap.delayed_basis("legendre", 2, max_delay={1: 3, 2: 1})
    result = infocap.estimate(u, echo_state(u, 1), basis, law="recorded", washout=50)
    assert "u2 never changes" in " ".join(result.warnings)
    assert result.told_apart.all()


def test_a_function_that_rests_on_one_event_is_left_out():
    """A single switch of a telegraph signal decides all functions of two delays."""
    u = np.where(np.arange(1200) < 700, -1.0, 1.0)
    result = infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", washout=50)
    assert result.told_apart.sum() == 2
    assert np.isnan(result.capacity[~result.told_apart]).all()


def test_noise_of_the_recorded_inputs_tells_nothing_apart():
    """Of a smooth input, only noise of the record tells distant delays from near ones."""
    smooth = np.sin(np.arange(2000) / 9) + np.sin(np.arange(2000) / 23)
    x = echo_state(smooth, 1)
    noise = 0.01
    recorded = smooth + noise * np.random.default_rng(1).standard_normal(2000)
    basis = infocap.delayed_basis(max_delay={1: 8})
    naive_result = infocap.estimate(recorded, x, basis, law="recorded", washout=50)
    aware = infocap.estimate(recorded, x, basis, law="recorded", washout=50, input_noise=noise)
    assert naive_result.told_apart.all()
    assert 3 <= aware.told_apart.sum() < len(basis)
    rounded = infocap.estimate(np.round(smooth, 2), x, basis, law="recorded", washout=50)
    assert rounded.told_apart.sum() < len(basis)


def test_input_noise_belongs_to_the_recorded_law():
    u = autoregressive(500, 0.5, 1)
    with pytest.raises(infocap.errors.ParameterError, match="law='recorded'"):
        infocap.estimate(u, echo_state(u, 1), BASIS, input_noise=0.1)
    with pytest.raises(infocap.errors.ParameterError, match="standard deviation"):
        infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", input_noise=[0.1, 0.2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"law": "other"}, "law"),
        ({"law": "recorded", "method": "raw"}, "method of its own"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message):
    u = autoregressive(500, 0.5, 1)
    with pytest.raises(infocap.errors.ParameterError, match=message):
        infocap.estimate(u, echo_state(u, 1), BASIS, **options)


def test_fewer_rows_than_functions_are_refused():
    u = autoregressive(32, 0.5, 1)
    with pytest.raises(infocap.errors.DataError, match="too few for"):
        infocap.estimate(u, echo_state(u, 1)[:, :2], BASIS, law="recorded")


def test_fewer_rows_than_readouts_are_refused():
    """Without a stretch, readouts fit every function exactly, so that recall had no error."""
    generator = np.random.default_rng(1)
    x = generator.standard_normal((160, 140))
    basis = infocap.delayed_basis(max_delay={1: 6})
    u = generator.standard_normal(160)
    with pytest.raises(infocap.errors.DataError, match="140 independent readouts"):
        infocap.estimate(u, x, basis, law="recorded", washout=6)


def test_recall_has_an_error_where_rows_are_hardly_more_than_readouts():
    """Readouts without any capacity: recall is zero within errors of a sensible size."""
    deviations = []
    for seed in range(6):
        generator = np.random.default_rng(seed)
        u = generator.standard_normal(170)
        x = generator.standard_normal((170, 136))
        basis = infocap.delayed_basis(max_delay={1: 3})
        law = infocap.estimate(u, x, basis, law="recorded", washout=3).recorded_law
        deviations.append(law.plain[1:] / law.plain_error[1:])
    # Values below zero are shown as zero, so the root mean square is below one.
    assert np.sqrt(np.mean(np.square(deviations))) < 1.2


def test_sums_of_which_nothing_is_told_apart_are_no_zeros():
    """Of a constant input no function can be told apart but the constant."""
    u = np.full(900, 0.3)
    x = np.random.default_rng(1).standard_normal((900, 3))
    result = infocap.estimate(u, x, BASIS, law="recorded", washout=20)
    assert np.isnan(result.beyond_present)
    assert np.isnan(result.beyond_present.standard_error)
    by_degree = result.by_degree(errors=True)
    assert np.isnan(by_degree.standard_error[1:]).all()
    assert np.isnan(result.recorded_law.delay_error[1:]).all()
    assert "beyond the present input that cannot be told" in repr(result)


@pytest.mark.parametrize("suffix", [".nc", ".csv", ".html"])
def test_files_keep_that_nothing_is_told_beyond_the_present(suffix, tmp_path):
    """A single switch tells the present input from the constant, and no earlier one from it."""
    u = np.where(np.arange(1200) < 700, -1.0, 1.0)
    result = infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", washout=50)
    path = tmp_path / f"result{suffix}"
    if suffix == ".html":
        infocap.report.card(result, path, "a device")
    else:
        result.save(path)
    loaded = infocap.load_result(path)
    assert np.isnan(loaded.beyond_present)
    # A page shows the functions that can be told apart, of which none is delayed.
    if suffix != ".html":
        assert "beyond the present input that cannot be told" in repr(loaded)


def test_the_test_against_zero_keeps_its_p_values(monkeypatch):
    """The constant, whose capacity is known, gets its p-value in a copy."""

    def compare(sums, capacities):
        zero_test = compare_with_zero(sums, capacities)
        zero_test.p_value.flags.writeable = False
        return zero_test

    monkeypatch.setattr("infocap.estimators._recorded_law.compare_with_zero", compare)
    u = autoregressive(500, 0.5, 1)
    result = infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", washout=50)
    assert result.p_value[0] == 0


def test_the_declared_domain_need_not_fit():
    u = 5 + 0.1 * autoregressive(800, 0.6, 1)
    result = infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", washout=50)
    assert result.told_apart.all()


# Parts of it.


def test_pivots_come_in_the_graded_order_and_small_ones_are_left_out():
    u = np.sin(2 * np.pi * np.arange(900) / 31)
    sums, union = parts_of(u, echo_state(u, 1), infocap.delayed_basis(max_delay={1: 5}))
    told = tell_apart(sums.whole, sums, None)
    # The constant, and two functions of delay: sine and cosine.
    linear = union.degrees == 1
    assert np.isin(told.functions, np.flatnonzero(linear)).sum() == 2
    assert (told.pivots[linear] < 1e-8).sum() == 4


def test_correlation_times_and_periods():
    assert_allclose(correlation_time(autoregressive(200_000, 0.9, 1)[:, None]), 19, rtol=0.2)
    u = np.random.default_rng(1).uniform(-1, 1, 400)
    assert correlation_time(u[:, None]) < 1.5
    assert period_of(u[:, None]) is None
    assert period_of(np.tile(u[:37], 9)[:, None]) == 37
    assert period_of(np.tile(u[:37], 2)[:, None]) == 37
    assert period_of(u[:37, None]) is None
    thrice = np.tile(u[:37], 3) + 1e-3 * np.random.default_rng(2).standard_normal(111)
    assert near_period_of(thrice[:, None])[0] == 37
    assert near_period_of(thrice[:-1, None]) is None


def test_polynomials_are_orthonormal_on_the_recorded_values():
    for values in (
        autoregressive(700, 0.5, 1),
        np.random.default_rng(1).integers(0, 7, 300).astype(float),
    ):
        family = recorded_family(values)
        count = min(family.largest_degree, 8) + 1
        functions = family.values(family.standard(values), count)
        assert_allclose(functions @ functions.T / len(values), np.eye(count), atol=1e-10)
        assert_allclose(family.fourth_moments(count), np.mean(functions**4, axis=1), rtol=1e-8)


def test_an_unknown_marginal_law_is_taken_from_the_inputs():
    """Independent inputs of a law that nobody declared: the same as with their own family."""
    u = np.random.default_rng(1).beta(2, 5, 4000)
    x = echo_state(u, 1)
    unknown = infocap.delayed_basis("recorded", max_delay={1: 4, 2: 2})
    from_samples = infocap.delayed_basis(infocap.basis.samples(u), max_delay={1: 4, 2: 2})
    a = infocap.estimate(u, x, unknown, washout=50)
    b = infocap.estimate(u, x, from_samples, washout=50)
    assert a.law == "declared"
    assert abs(a.total - b.total) < 0.02
    with pytest.raises(infocap.errors.ParameterError, match="takes its distribution"):
        infocap.draw(unknown, 100)


def test_rounding_is_the_noise_of_inputs_with_many_values():
    u = np.round(autoregressive(2000, 0.5, 1), 2)[:, None]
    samples = under_law(Samples.of(u, u, BASIS), "recorded")
    assert_allclose(input_deviations(samples, None), 0.01 / np.sqrt(12), rtol=1e-6)
    few = under_law(Samples.of(np.sign(u), u, BASIS), "recorded")
    assert input_deviations(few, None) == 0


# What a user sees.


@pytest.fixture(scope="module")
def result():
    u = mackey_glass(1500, 1)
    return infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", washout=50)


def test_a_result_says_under_which_law_it_is(result):
    text = repr(result)
    assert "under the law of the recorded inputs" in text
    assert f"({result.told_apart.sum()} of {len(result.basis)} functions can be told apart)" in text
    assert "(innovations); recall of u[t-1]" in text
    assert "beyond the present input" in text


def test_labels_say_what_a_function_is_told_apart_from(result):
    label_of = {result.basis.label(k): result.innovation_label(k) for k in range(len(result.basis))}
    assert label_of["1"] == "1"
    assert label_of["P1(u[t])"] == "u[t]"
    assert label_of["P1(u[t-3])"] == "u[t-3] beyond u[t], u[t-1], u[t-2]"
    assert label_of["P1(u[t-6])"].startswith("u[t-6] beyond u[t] to u[t-")
    assert label_of["P2(u[t])"] == "P2(u[t]) beyond all of lower degree"


def test_a_saved_result_keeps_its_law(result, tmp_path):
    loaded = infocap.load_result(result.save(tmp_path / "result.nc"))
    assert repr(loaded) == repr(result)
    assert loaded.law == "recorded"
    assert_allclose(loaded.pivots, result.pivots)
    assert_allclose(loaded.recall, result.recall)
    assert loaded.beyond_present == result.beyond_present
    assert_allclose(loaded.by_delay(errors=True), result.by_delay(errors=True))


@pytest.mark.parametrize("suffix", [".nc", ".csv", ".html"])
def test_every_file_keeps_the_errors_of_sums(suffix, tmp_path):
    t = np.arange(1500)
    u = np.round(np.sin(t / 9) + np.sin(t / 23), 2)
    result = infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", washout=50)
    assert not result.told_apart.all()
    path = tmp_path / f"result{suffix}"
    if suffix == ".html":
        infocap.report.card(result, path, "a network")
        # A page shows the functions that can be told apart.
        result = result.only_told_apart()
    else:
        result.save(path)
    loaded = infocap.load_result(path)
    assert np.array_equal(loaded.told_apart, result.told_apart)
    assert_allclose(loaded.unbiased, result.unbiased)
    assert_allclose(loaded.by_degree(errors=True), result.by_degree(errors=True))
    assert_allclose(loaded.by_delay(errors=True), result.by_delay(errors=True))
    assert_allclose(loaded.memory_function(), result.memory_function())
    for name in ("memory_capacity", "beyond_present"):
        of_loaded = getattr(loaded, name)
        of_result = getattr(result, name)
        assert_allclose(of_loaded, of_result)
        assert_allclose(of_loaded.standard_error, of_result.standard_error)


def test_other_targets_are_refused(result):
    with pytest.raises(infocap.errors.ParameterError, match="declared law"):
        result.capacity_of(lambda u: np.roll(u[:, 0], 1))
    with pytest.raises(infocap.errors.ParameterError, match="labels"):
        result.readout_weights(lambda u: np.roll(u[:, 0], 1))
    assert result.readout_weights("P1(u[t-1])").shape == (9,)


def test_pictures_show_recall_and_bars_of_delays(result):
    memory = infocap.plot.memory_function(result)
    labels = [line.get_label() for line in memory.lines]
    assert "recall of the input itself" in labels
    by_delay = infocap.plot.capacity_by_delay(result)
    assert len(by_delay.containers) > 1


def test_short_recordings_are_called_unreliable():
    u = autoregressive(600, 0.99, 1)
    result = infocap.estimate(u, echo_state(u, 1), BASIS, law="recorded", washout=50)
    assert "correlation time" in result.unreliable


def test_rare_excursions_make_the_error_of_sums_longer():
    u = np.random.default_rng(1).uniform(-1, 1, 1500)
    x = echo_state(u, 1)
    x[200] += 20 * x.std(axis=0)
    result = infocap.estimate(u, x, BASIS, law="recorded", washout=50)
    assert "excursions" in result.unreliable
    stretches = result.without_stretches[:, result.told_apart].sum(axis=1)
    assert_allclose(
        result.total_standard_error,
        infocap.kernels.jackknife_error_of_groups(stretches),
        rtol=1e-9,
    )


def causes(result):
    return [check.found.get("cause") for check in result.checks]


def test_an_offset_slower_than_the_recording_is_told():
    """Its law cannot be known from the recording; the same drive seen for longer is no trouble."""
    t = np.arange(4000)
    fast = np.sin(1.3 * t) + 0.7 * np.sin(0.45 * t)
    u = fast + 0.5 * np.sin(2 * np.pi * t / 700)
    x = echo_state(u, 1)
    short = infocap.estimate(u[:350], x[:350], BASIS, law="recorded", washout=20)
    assert "drift more slowly than the recording" in short.unreliable
    long = infocap.estimate(u, x, BASIS, law="recorded", washout=20)
    assert "slow inputs" not in causes(long)


def test_short_recordings_are_seen_although_their_autocorrelations_are_too_small():
    """Of 40 recordings, twice their correlation time long, nearly all are called short."""
    n_short = 0
    for seed in range(40):
        u = autoregressive(400, 0.99, seed)
        n_short += 400 / correlation_time(u[:, None]) < 8
    # Uncorrected autocorrelations call some 29 of 40 short.
    assert n_short >= 31


def test_coloured_noise_needs_more_rows():
    u = np.random.default_rng(1).uniform(-1, 1, 100)
    clean = echo_state(u, 1, noise=0)
    size = 0.1 * clean.std(axis=0)
    coloured = np.column_stack([autoregressive(100, 0.95, k) for k in range(8)])
    white = np.random.default_rng(2).standard_normal((100, 8))
    of_coloured = infocap.estimate(u, clean + size * coloured, BASIS, law="recorded", washout=10)
    of_white = infocap.estimate(u, clean + size * white, BASIS, law="recorded", washout=10)
    assert "few rows" in of_coloured.unreliable
    assert not of_white.unreliable


def test_heavy_noise_makes_the_error_of_sums_longer():
    generator = np.random.default_rng(1)
    u = generator.uniform(-1, 1, 2000)
    clean = echo_state(u, 1, noise=0)
    noise = generator.standard_t(3, clean.shape) / np.sqrt(3)
    x = clean + 0.1 * clean.std(axis=0) * noise
    result = infocap.estimate(u, x, BASIS, law="recorded", washout=50)
    assert "heavy noise" in causes(result)
    assert not result.unreliable
    normal = generator.standard_normal(clean.shape)
    x = clean + 0.1 * clean.std(axis=0) * normal
    assert "heavy noise" not in causes(infocap.estimate(u, x, BASIS, law="recorded", washout=50))
    influence = result.without_stretches[:, result.told_apart].sum(axis=1)
    assert_allclose(
        result.total_standard_error,
        infocap.kernels.jackknife_error_of_groups(influence),
        rtol=1e-9,
    )


@pytest.mark.parametrize("gain", [0.0, 0.5])
def test_a_closed_loop_is_told(gain):
    """The input follows a reference, and the noisy readout before it where the loop is closed."""
    generator = np.random.default_rng(3)
    reference = generator.standard_normal(3000)
    u = np.zeros(3000)
    x = np.zeros((3000, 2))
    for t in range(1, 3000):
        u[t] = 0.7 * u[t - 1] + reference[t] - gain * x[t - 1, 0]
        x[t] = 0.5 * x[t - 1] + np.array([0.8, 0.3]) * u[t] + 0.3 * generator.standard_normal(2)
    result = infocap.estimate(u, x, BASIS, law="recorded", washout=50)
    assert ("closed loop" in causes(result)) == (gain > 0)
    if gain > 0:
        assert "not the device's doing alone" in " ".join(result.notes)


@pytest.mark.parametrize("left", ["nothing", "what the functions hold"])
def test_no_loop_is_looked_for_where_functions_leave_nothing_of_the_residuals(left):
    """What a projection leaves of residuals that lie in it is rounding, which tells of no loop."""
    t = np.arange(2000)
    phi = np.column_stack([np.ones(2000), np.sin(t / 3), np.cos(t / 3)])
    residuals = np.zeros((2000, 2)) if left == "nothing" else phi[:, 1:]
    u = np.random.default_rng(1).standard_normal((2000, 1))
    assert _find_loop([_Part(inputs=u, phi=phi, residuals=residuals)]) is None
    noise = np.random.default_rng(2).standard_normal((2000, 2))
    assert _find_loop([_Part(inputs=u, phi=phi, residuals=residuals + noise)]) is not None


def test_a_period_that_was_recorded_with_noise_is_told():
    u = np.sin(2 * np.pi * np.arange(1200) / 25)
    recorded = u + 0.01 * np.random.default_rng(1).standard_normal(1200)
    result = infocap.estimate(recorded, echo_state(u, 1), BASIS, law="recorded", washout=50)
    assert "inputs nearly repeat every 25 rows" in " ".join(result.warnings)
    # Twice the noise over twice the power of a sine.
    assert_allclose(near_period_of(recorded[:, None])[1], 0.01**2 / 0.5, rtol=0.2)
    assert near_period_of(autoregressive(1200, 0.99, 1)[:, None]) is None
    assert near_period_of(mackey_glass(1200, 1)[:, None]) is None


def test_recall_has_an_error_that_covers_its_scatter():
    deviations = []
    for seed in range(30):
        u = autoregressive(800, 0.5, seed)
        noise = np.random.default_rng([seed, 7]).standard_normal((800, 1))
        result = infocap.estimate(u, u[:, None] + noise, BASIS, law="recorded", washout=20)
        # Of x = u + noise of equal power, R² of u[t-1] is 0.5² / 2.
        table = result.memory_function()
        deviations.append((table.recall[1] - 0.125) / table.recall_standard_error[1])
    size = np.sqrt(np.mean(np.square(deviations)))
    # The error of a root mean square of 30 numbers is an eighth of it.
    assert 0.6 < size < 1.4


# explore, compare, sweep, and the default law.


def test_explore_finds_the_delays_under_dependent_inputs():
    u = autoregressive(3000, 0.9, 1)
    noise = 0.1 * np.random.default_rng(1).standard_normal((3000, 2))
    x = np.column_stack([np.roll(u, 7), np.roll(u, 2) ** 2]) + noise
    found = infocap.explore(u, x, washout=40, law="recorded", max_degree=3)
    assert found.windows == {1: 7, 2: 2}
    assert found.result.law == "recorded"
    assert len(found.rounds) >= 2


def test_compare_refuses_what_differs_by_more_than_the_device():
    basis = infocap.delayed_basis(max_delay={1: 4, 2: 1})

    def measure(a, seed, **options):
        u = autoregressive(2000, a, seed)
        return infocap.estimate(u, echo_state(u, 1), basis, washout=30, **options)

    slow = measure(0.9, 1, law="recorded")
    again = measure(0.9, 2, law="recorded")
    fast = measure(0.3, 3, law="recorded")
    white = np.random.default_rng(1).uniform(-1, 1, 2000)
    declared = infocap.estimate(white, echo_state(white, 1), basis, washout=30)
    table = infocap.compare(slow, again).totals()
    assert abs(table.difference[1]) < 4 * table.difference_standard_error[1]
    with pytest.raises(infocap.errors.DataError, match="correlated differently"):
        infocap.compare(slow, fast)
    assert np.isfinite(infocap.compare(slow, fast, different_drives=True).totals().difference[1])
    with pytest.raises(infocap.errors.DataError, match="under the declared one"):
        infocap.compare(slow, declared)
    nothing = infocap.estimate(
        autoregressive(2000, 0.9, 1).clip(-1, 1), np.random.default_rng(1).random((2000, 2)), basis
    )
    with pytest.raises(infocap.errors.DataError, match="has no capacities"):
        infocap.compare(nothing, declared)


def test_sweep_takes_the_law():
    sweep = infocap.sweep(
        lambda size: infocap.systems.EchoState(size),
        {"size": [3, 5]},
        BASIS,
        500,
        seed=1,
        law="recorded",
        progress=False,
    )
    assert [result.law for _, result in sweep] == ["recorded", "recorded"]


def test_dependent_inputs_have_no_capacities_under_the_declared_law(tmp_path):
    u = autoregressive(2000, 0.9, 1)
    with pytest.warns(infocap.errors.DataWarning, match="cannot be had from this recording"):
        result = infocap.estimate(
            u, echo_state(u, 1), infocap.delayed_basis("hermite", max_delay={1: 3, 2: 1})
        )
    assert np.isnan(result.total)
    assert np.isnan(result.capacity).all()
    text = repr(result)
    assert 'law="recorded"' in text
    assert "total" not in text
    assert "cannot be had" in repr(result.memory_capacity)
    with pytest.raises(infocap.errors.DataError, match="cannot be had"):
        result.total_interval()
    with pytest.raises(infocap.errors.DataError, match="cannot be had"):
        infocap.plot.memory_function(result)
    for suffix in (".nc", ".csv"):
        assert infocap.load_result(result.save(tmp_path / f"result{suffix}")).no_numbers


def test_correlated_inputs_of_a_device_without_memory_have_none_either():
    generator = np.random.default_rng(1)
    u = generator.standard_normal((2000, 2))
    u[:, 1] = 0.6 * u[:, 0] + 0.8 * u[:, 1]
    x = np.column_stack([u, u**2]) + 0.1 * generator.standard_normal((2000, 4))
    basis = infocap.product_basis("hermite", 2, 2)
    assert infocap.estimate(u, x, basis).no_numbers
    assert not infocap.estimate(u, x, basis, law="recorded").no_numbers


def test_rows_in_order_of_independent_inputs_keep_their_numbers():
    """A sweep of one input at random values of another: in order, and still the product law."""
    first = np.linspace(-1, 1, 2000)
    u = np.column_stack([first, np.random.default_rng(1).uniform(-1, 1, 2000)])
    result = infocap.estimate(u, u + u[:, ::-1] ** 2, infocap.product_basis("legendre", 2, 3))
    assert np.isfinite(result.total)


# Recordings of others.

DATA = os.environ.get("INFOCAP_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="needs the recordings of INFOCAP_DATA")


@needs_data
def test_a_nanowire_network_has_the_same_under_both_laws():
    """Independent inputs: today's method and the recorded law agree (RCbench, recording 011)."""
    (file,) = Path(DATA, "nanowire").glob("011*")
    with file.open() as lines:
        names = lines.readline().split()
        table = np.genfromtxt(lines)
    voltages = table[:, [place for place, name in enumerate(names) if name.endswith("_V[V]")]]
    basis = infocap.delayed_basis(max_delay={1: 30, 2: 8, 3: 3, 4: 1})
    u = voltages[:, 0]
    x = voltages[:, 1:15]
    recorded = infocap.estimate(u, x, basis, law="recorded", washout=50)
    domain = (u.min(), u.max())
    declared_basis = infocap.delayed_basis(max_delay={1: 30, 2: 8, 3: 3, 4: 1}, domain=domain)
    declared = infocap.estimate(u, x, declared_basis, washout=50)
    assert recorded.told_apart.all()
    bar = max(recorded.total_standard_error, declared.total_standard_error)
    assert abs(recorded.total - declared.total) < bar
    assert np.sqrt(np.mean((recorded.unbiased - declared.unbiased) ** 2)) < 0.005


@needs_data
def test_the_skyrmion_phase_of_a_magnet_remembers():
    """Ferromagnetic resonance spectra under a Mackey-Glass field (PRCpy): 3.3 ± 0.5 beyond it."""
    inputs = []
    spectra = []
    for number in range(1, 501):
        (file,) = Path(DATA, "magnet_scans", "skyrmion").glob(f"scan_{number}_*mT.txt")
        table = np.loadtxt(file, delimiter=",", skiprows=1)
        inputs.append(table[0, 1])
        spectra.append(table[:, 3])
    u = np.array(inputs)
    x = np.array(spectra)
    x = x - x.mean(axis=0)
    left, size, _ = np.linalg.svd(x, full_matrices=False)
    components = left[:, :16] * size[:16]
    basis = infocap.delayed_basis(max_delay={1: 8, 2: 4})
    result = infocap.estimate(u, components, basis, law="recorded", washout=20)
    assert abs(result.beyond_present - 3.31) < 1.0
    assert result.beyond_present > 4 * result.beyond_present.standard_error
