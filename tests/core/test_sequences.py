"""Sequences: functions of delayed inputs, capacities of devices with memory, and error bars that hold there."""

import pickle
import re
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import combinations_with_replacement, groupby
from math import comb

import array_api_strict
import matplotlib.pyplot as plt
import numpy as np
import pytest
from click.testing import CliRunner
from numpy.polynomial.legendre import legval
from numpy.testing import assert_allclose
from scipy.linalg import solve_discrete_lyapunov

import infocap
from infocap.basis._delayed import Cuts, count_terms
from infocap.errors import DataError, ParameterError
from infocap.lab.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
LIBRARIES = [np, array_api_strict]


def network(u, n_nodes=8, radius=0.8, seed=0):
    """States (steps, nodes) of a small random tanh network driven by u (steps, inputs)."""
    rng = np.random.default_rng(seed)
    inside, outside = (
        rng.standard_normal((n_nodes, n_nodes)),
        0.5 * rng.standard_normal((n_nodes, u.shape[1])),
    )
    inside *= radius / np.abs(np.linalg.eigvals(inside)).max()
    states, state = np.zeros((len(u), n_nodes)), np.zeros(n_nodes)
    for t, now in enumerate(u):
        state = states[t] = np.tanh(inside @ state + outside @ now)
    return states + 0.02 * rng.standard_normal(states.shape)


def plain_terms(max_delay, n_inputs=1, min_delay=0, max_window=None, max_factors=None):
    """Every function as a list of (input, delay, degree), by brute force."""
    out = []
    for degree, longest in max_delay.items():
        places = [(delay, k) for delay in range(min_delay, longest + 1) for k in range(n_inputs)]
        for chosen in combinations_with_replacement(places, degree):
            term = [(k, delay, len(list(same))) for (delay, k), same in groupby(chosen)]
            window = term[-1][1] - term[0][1]
            if (max_factors is None or len(term) <= max_factors) and (
                max_window is None or window <= max_window
            ):
                out.append(term)
    return out


def plain_values(u, term, times):
    """One function of the sequence u at some times, from NumPy's own Legendre polynomials."""
    out = np.ones(len(times))
    for k, delay, degree in term:
        out *= np.sqrt(2 * degree + 1) * legval(u[times - delay, k], [0] * degree + [1])
    return out


def plain_label(term, n_inputs):
    names = ["u"] if n_inputs == 1 else [f"u{k + 1}" for k in range(n_inputs)]
    return "·".join(
        f"P{degree}({names[k]}[t{f'-{delay}' if delay else ''}])" for k, delay, degree in term
    )


SETS = [
    (1, {1: 40, 2: 12, 3: 5}, {}),
    (2, {1: 12, 2: 6, 3: 3}, {}),
    (1, {1: 10, 2: 6, 3: 8}, {"min_delay": 1, "max_window": 3}),
    (2, {1: 4, 4: 3}, {"max_factors": 2}),
]


@pytest.fixture(scope="module")
def recorded():
    """Inputs and readouts of a small network, and a basis for them."""
    u = np.random.default_rng(1).uniform(-1, 1, (2500, 1))
    return u, network(u), infocap.delayed_basis("legendre", max_delay={1: 30, 2: 10, 3: 4})


def by_loops(u, basis, times):
    """Values (times, functions) in the order of the basis, from the labels of brute force."""
    found = {"1": np.ones(len(times))}
    largest = {
        d: int(basis.largest_delays[basis.degrees == d].max())
        for d in set(basis.degrees.tolist()) - {0}
    }
    for term in plain_terms(largest, basis.n_inputs):
        found[plain_label(term, basis.n_inputs)] = plain_values(u, term, times)
    return np.column_stack([found[label] for label in basis.labels])


@pytest.mark.parametrize("xp", LIBRARIES, ids=lambda xp: xp.__name__)
@pytest.mark.parametrize(("n_inputs", "max_delay", "cuts"), SETS, ids=str)
def test_values_labels_and_counts_are_those_of_a_plain_loop(n_inputs, max_delay, cuts, xp):
    basis = infocap.delayed_basis("legendre", n_inputs, max_delay, **cuts)
    terms = plain_terms(max_delay, n_inputs, **cuts)
    assert len(basis) == len(terms) + 1 == count_terms(basis.families, max_delay, Cuts(**cuts)) + 1
    assert set(basis.labels) == {"1", *(plain_label(term, n_inputs) for term in terms)}
    u = np.random.default_rng(0).uniform(-1, 1, (400, n_inputs))
    y = by_loops(u, basis, np.arange(basis.memory, 400))
    z = np.random.default_rng(1).standard_normal((len(y), 3))
    given, readouts = xp.asarray(u), xp.asarray(z)
    assert_allclose(np.asarray(basis.values(given)), y.T, atol=1e-12)
    assert_allclose(np.asarray(basis.project([(given, readouts)])), y.T @ z, atol=1e-10)
    both = [
        (given[: basis.memory + 150, :], readouts[:150, :]),
        (given[150:, :], readouts[150:, :]),
    ]
    assert_allclose(np.asarray(basis.project(both)), y.T @ z, atol=1e-10)


def test_functions_are_orthonormal_and_white():
    basis = infocap.delayed_basis("hermite", max_delay={1: 5, 2: 3})
    y = basis(np.random.default_rng(0).standard_normal((200_000, 1)))
    assert_allclose(y.T @ y / len(y), np.eye(len(basis)), atol=0.05)
    one = y[:, basis.labels.index("He1(u[t])·He1(u[t-2])")]
    assert abs(np.mean(one[1:] * one[:-1])) < 5 / np.sqrt(len(y))


def test_a_basis_of_too_many_functions_is_refused_before_it_is_made():
    with pytest.raises(ParameterError, match=f"{1 + 401 + comb(405, 5):,} functions.*max_window"):
        infocap.delayed_basis(max_delay={1: 400, 5: 400})
    with pytest.raises(ParameterError, match="more than 1,000,000,000,000 functions"):
        infocap.delayed_basis(max_delay={20: 100})
    with pytest.raises(ParameterError, match="by degree, or as one number"):
        infocap.delayed_basis(max_delay=10)
    with pytest.raises(ParameterError, match="each input and delay once"):
        infocap.delayed_basis(terms=[[(3, 1), (3, 2)]])


def test_explicit_terms_pickles_and_subsets():
    basis = infocap.delayed_basis("legendre", 2, terms=[[(2, 3, 1), (1, 5, 2)], [(1, 0, 1)]])
    assert basis.labels == ["1", "P1(u1[t])", "P1(u2[t-3])·P2(u1[t-5])"]
    assert pickle.loads(pickle.dumps(basis)).labels == basis.labels
    some = basis.subset(np.array([0, 1]))
    assert (some.memory, some.labels) == (5, ["1", "P1(u1[t])"])
    assert some.places(basis).tolist() == [0, 1]


@pytest.mark.parametrize("family", ["fourier", "bernoulli", "chebyshev"])
def test_families_with_several_or_few_functions_per_degree(family):
    basis = infocap.delayed_basis(family, max_delay={1: 3, 2: 2})
    u = infocap.draw(basis, 100_000, seed=1, design="random")
    y = basis(u)
    assert_allclose(y.T @ y / len(y), np.eye(len(basis)), atol=0.05)
    assert count_terms(basis.families, {1: 3, 2: 2}) + 1 == len(basis) == len(set(basis.labels))


@pytest.mark.parametrize("method", infocap.estimators.METHODS)
def test_raw_capacities_are_those_of_a_plain_loop_whatever_the_method(method, recorded):
    u, x, basis = recorded
    result = infocap.estimate(u[:, 0], x, basis, washout=50, method=method)
    y = by_loops(u, basis, np.arange(50, len(u)))
    q, _ = np.linalg.qr(np.column_stack([np.ones(len(y)), x[50:]]))
    assert_allclose(result.raw, np.sum((q.T @ y) ** 2, axis=0) / len(y), atol=1e-12)
    assert result.n_samples == len(u) - 50
    assert 4 < result.total < 9.5


def test_runs_never_cross_a_border(recorded, tmp_path):
    u, x, basis = recorded
    cuts = [(0, 900), (900, 1500), (1500, 2500)]
    result = infocap.estimate(
        [u[a:b] for a, b in cuts], [x[a:b] for a, b in cuts], basis, washout=40, method="raw"
    )
    times = np.concatenate([np.arange(a + 40, b) for a, b in cuts])
    y = by_loops(u, basis, times)
    q, _ = np.linalg.qr(np.column_stack([np.ones(len(y)), x[times]]))
    assert_allclose(result.raw, np.sum((q.T @ y) ** 2, axis=0) / len(y), atol=1e-12)
    for name, table in (("u", u), ("x", x)):
        for number, (a, b) in enumerate(cuts):
            np.save(tmp_path / f"{name}{number}.npy", table[a:b])
    stored = [
        [np.load(tmp_path / f"{name}{k}.npy", mmap_mode="r") for k in range(3)] for name in "ux"
    ]
    with ProcessPoolExecutor(2) as executor:
        again = infocap.estimate(*stored, basis, washout=40, method="raw", executor=executor)
    assert_allclose(again.raw, result.raw, atol=1e-12)


def test_shares_files_executors_and_devices_give_the_same(recorded, tmp_path):
    u, x, basis = recorded
    options = {"washout": 50, "method": "threshold-richardson"}
    whole = infocap.estimate(u, x, basis, **options)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "u.npy", u)
    stored = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "ux")
    others = [infocap.estimate(*stored, basis, memory_limit="40MB", **options)]
    for kind in (ThreadPoolExecutor, ProcessPoolExecutor):
        with kind(2) as executor:
            others.append(infocap.estimate(u, x, basis, executor=executor, **options))
    others.append(
        infocap.estimate(array_api_strict.asarray(u), array_api_strict.asarray(x), basis, **options)
    )
    for other in others:
        assert_allclose(other.raw, whole.raw, atol=1e-12)
        assert_allclose(other.capacity, whole.capacity, atol=1e-10)


def test_results_with_delays_come_back_from_files(recorded, tmp_path):
    u, x, basis = recorded
    result = infocap.estimate(u, x, basis, washout=50)
    for name in ("result.nc", "result.csv"):
        again = infocap.load_result(result.save(tmp_path / name))
        assert again.basis.labels == basis.labels
        assert again.basis.memory == basis.memory
        assert_allclose(again.capacity, result.capacity, rtol=0, atol=0)
    row = result.to_dataframe().loc[basis.labels.index("P1(u[t-1])·P1(u[t-3])")]
    assert (row.factor1_delay, row.factor2_delay, row.factor2_function) == (1, 3, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"washout": 3000}, "none after the first 3000"),
        ({"weights": np.ones(2500)}, "`weights` has no meaning"),
        ({"index": np.arange(2500)}, "`index` has no meaning"),
        ({"nan": "drop"}, "tear a sequence apart"),
        ({"x": np.zeros((2400, 3))}, "equally many rows"),
        ({"u": np.full((2500, 1), 2.0)}, "outside the domain"),
    ],
    ids=str,
)
def test_what_a_sequence_cannot_have_is_refused(changes, message, recorded):
    u, x, basis = recorded
    given = {"u": u, "x": x, "washout": 50} | changes
    with pytest.raises((DataError, ParameterError), match=message):
        infocap.estimate(basis=basis, **given)


def test_missing_inputs_are_named_once(recorded):
    u, x, basis = recorded
    holes = u.copy()
    holes[[60, 700]] = np.nan
    with pytest.raises(DataError, match="u has 2 NaN or infinite values, the first nan at row 60"):
        infocap.estimate(holes, x, basis, washout=50)
    with pytest.raises(ParameterError, match="is for sequences"):
        infocap.estimate(u, x, infocap.product_basis("legendre", 1, 3), washout=5)


def linear_readouts(u, rng, n_nodes=6, noise=0.3, slow=0.9):
    """Readouts of a linear network with slow noise (sets, steps, nodes), and the exact capacities of P1(u[t-k])."""
    fixed = np.random.default_rng(3)
    a, b = fixed.standard_normal((n_nodes, n_nodes)), fixed.standard_normal(n_nodes)
    a *= 0.8 / np.abs(np.linalg.eigvals(a)).max()
    covariance = solve_discrete_lyapunov(a, np.outer(b, b))
    size = noise * np.sqrt(np.diag(covariance))
    x, state, slowly = (
        np.empty((*u.shape, n_nodes)),
        np.zeros((len(u), n_nodes)),
        np.zeros((len(u), n_nodes)),
    )
    for t in range(u.shape[1]):
        state = state @ a.T + np.sqrt(3) * u[:, t, None] * b
        slowly = slow * slowly + np.sqrt(1 - slow**2) * rng.standard_normal(state.shape)
        x[:, t] = state + size * slowly
    reached = np.array([np.linalg.matrix_power(a, k) @ b for k in range(31)])
    return x, np.einsum(
        "ij,ij->i", reached, np.linalg.solve(covariance + np.diag(size**2), reached.T).T
    )


def test_error_bars_hold_with_noise_that_is_slow():
    rng, sets, basis = np.random.default_rng(0), 40, infocap.delayed_basis(max_delay={1: 30, 2: 6})
    u = rng.uniform(-1, 1, (sets, 1600))
    x, linear = linear_readouts(u, rng)
    exact = np.concatenate([[1.0], linear, np.zeros(len(basis) - 32)])
    results = [
        infocap.estimate(one, readouts, basis, washout=100)
        for one, readouts in zip(u, x, strict=True)
    ]
    off = np.array([one.total for one in results]) - exact.sum()
    bars = np.array([one.total_standard_error for one in results])
    assert (
        np.mean(np.abs(off) < 1.96 * bars) > 0.8
    )  # 95 % hold; less than 80 % of 40 has a chance of 2e-4
    assert abs(off.mean()) < 4 * off.std() / np.sqrt(sets)
    assert off.std() / bars.mean() < 1.5
    shown = (exact > 0.002) & (exact < 1)
    inside = [
        np.abs(one.unbiased - exact)[shown] < 1.96 * one.standard_error[shown] for one in results
    ]
    assert 0.91 < np.mean(inside) < 0.99
    p = np.concatenate([one.p_value[exact == 0] for one in results])
    assert_allclose([np.mean(p < 0.05), np.mean(p < 0.01)], [0.05, 0.01], rtol=0.5)


def test_delays_beyond_the_basis_are_noticed_and_enough_delays_are_not():
    rng = np.random.default_rng(1)
    u = rng.uniform(-1, 1, (1, 3100))
    x, _ = linear_readouts(u, rng, noise=0.02)
    short, enough = (infocap.delayed_basis(max_delay={1: delay, 2: 3}) for delay in (5, 60))
    (found,) = infocap.estimate(u[0], x[0], short, washout=150).warnings
    assert "the window is too short" in found
    assert infocap.estimate(u[0], x[0], enough, washout=150).checks == ()
    assert (
        "take at least 2880 samples"
        in infocap.estimate(u[0, :1000], x[0, :1000], enough, washout=150).warnings[0]
    )


def test_few_samples_per_function_fall_back_to_the_search(recorded):
    u, x, basis = recorded
    few = infocap.estimate(u[:700], x[:700], basis, washout=50)
    many = infocap.estimate(u, x, basis, washout=50)
    assert len(basis) * 8 > 650
    assert abs(few.total - many.total) < 4 * np.hypot(
        few.total_standard_error, many.total_standard_error
    )
    assert many.total_standard_error < 0.1


@pytest.mark.parametrize("xp", LIBRARIES[1:], ids=lambda xp: xp.__name__)
def test_error_bars_are_the_same_on_a_device_and_in_two_passes(recorded, xp, monkeypatch):
    u, x, basis = recorded
    whole = infocap.estimate(u, x, basis, washout=50)
    there = infocap.estimate(xp.asarray(u), xp.asarray(x), basis, washout=50)
    monkeypatch.setattr("infocap.estimators._sequence.STRETCH_BYTES", 0)
    twice = infocap.estimate(u, x, basis, washout=50)
    for other in (there, twice):
        assert_allclose(other.unbiased, whole.unbiased, atol=1e-10)
        assert_allclose(other.standard_error, whole.standard_error, atol=1e-10)
        assert_allclose(other.total_standard_error, whole.total_standard_error, rtol=1e-8)


def test_a_delay_line_without_noise_is_exact():
    u, basis = (
        np.random.default_rng(1).uniform(-1, 1, 2000),
        infocap.delayed_basis(max_delay={1: 12, 2: 5}),
    )
    x = np.column_stack([np.roll(u, delay) for delay in range(5)])
    result = infocap.estimate(u, x, basis, washout=20)
    assert_allclose(result.capacity, [1.0] * 6 + [0.0] * (len(basis) - 6), atol=1e-9)
    assert result.total_standard_error < 1e-6
    assert result.checks == ()


def test_probe_drives_a_system_with_a_sequence():
    basis = infocap.delayed_basis(max_delay={1: 20, 2: 6})
    result = infocap.probe(network, basis, 2000, seed=1, washout=60)
    u = infocap.draw(basis, 2000, seed=1)
    assert result.n_samples == 1940
    assert_allclose(
        result.total, infocap.estimate(u, network(u, seed=0), basis, washout=60).total, atol=0.3
    )


def test_functions_with_large_fourth_moments_are_named():
    basis = infocap.delayed_basis("hermite", max_delay={1: 4, 6: 0})
    u = infocap.draw(basis, 1500, seed=1)
    x = np.hstack([u, np.roll(u, 1)]) + 0.1 * np.random.default_rng(0).standard_normal((1500, 2))
    assert "1 of 7 functions have E[y^4] above" in infocap.estimate(u, x, basis).warnings[0]


def test_many_short_runs():
    rng = np.random.default_rng(3)
    u = rng.uniform(-1, 1, (300, 9))
    x = np.stack([u, np.roll(u, 1, axis=1)], axis=2) + 0.1 * rng.standard_normal((300, 9, 2))
    basis = infocap.delayed_basis(max_delay={1: 4, 2: 2})
    result = infocap.estimate(list(u), list(x), basis)
    assert result.n_samples == 300 * 5
    assert_allclose(result.total, 1 + 2 / 1.03, atol=4 * result.total_standard_error)


def test_stretches_end_where_runs_end():
    u, basis = (
        np.random.default_rng(1).uniform(-1, 1, 3000),
        infocap.delayed_basis(max_delay={1: 5}),
    )
    x = np.column_stack([u, np.roll(u, 2)])
    for count in (5, 60):
        cuts = np.array_split(np.arange(3000), count)
        seen = infocap.estimators.gather_evidence([u[c] for c in cuts], [x[c] for c in cuts], basis)
        assert 20 <= len(seen.group_edges) - 1 <= 30
        assert (count > 24) or set(seen.samples.runs.tolist()) <= set(seen.group_edges.tolist())
        assert (count < 24) or set(seen.group_edges.tolist()) <= {
            *seen.samples.runs.tolist(),
            seen.n_samples,
        }


def quiet_network(seed=1, n=3000):
    """A sequence and readouts with nothing wrong, and delays that are enough."""
    u = np.random.default_rng(seed).uniform(-1, 1, (n, 1))
    x = network(u, radius=0.5)
    return u, x, infocap.delayed_basis(max_delay={1: 15, 2: 8, 3: 5})


def early(u, x):
    return u[:-2], x[2:]


def dependent(u, x):
    u = u.copy()
    u[1::7] = u[:-1:7][: len(u[1::7])]
    return u, network(u, radius=0.5)


def transient(u, x):
    return u, x + 5 * np.exp(-np.arange(len(u)) / 40)[:, None] * np.linspace(-1, 1, x.shape[1])


def drifting(u, x):
    return u, x * np.linspace(0.2, 2.0, len(u))[:, None]


@pytest.mark.parametrize("seed", range(3))
def test_checks_stay_silent_where_nothing_is_wrong(seed):
    u, x, basis = quiet_network(seed)
    assert infocap.estimate(u, x, basis, washout=30).checks == ()


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (early, "x is 2 samples early"),
        (dependent, r"u\[t\] and u\[t-1\] have the correlation 0.1"),
        (transient, "pass a `washout` that is"),
        (drifting, "stretches of the sequence disagree"),
    ],
)
def test_mistakes_with_sequences_are_noticed(mistake, said):
    u, x, basis = quiet_network()
    u, x = mistake(u, x)
    result = infocap.estimate(u, x, basis, washout=30)
    assert any(re.search(said, check) for check in result.warnings), result.warnings
    assert result.unreliable


def test_results_tell_what_the_field_asks_for(tmp_path):
    rng = np.random.default_rng(2)
    u = rng.uniform(-1, 1, 4000)
    x = np.column_stack([u, np.roll(u, 2), u * np.roll(u, 3), 1.5 * np.roll(u, 1) ** 2])
    x += 0.1 * rng.standard_normal(x.shape)
    basis = infocap.delayed_basis(max_delay={1: 10, 2: 5})
    result = infocap.estimate(u, x, basis, washout=30)
    result = infocap.load_result(result.save(tmp_path / "result.nc"))
    memory = result.memory_function()
    known = [1 / (1 + 0.03), 0, 1 / (1 + 0.03), *[0] * 8]
    assert memory.index.tolist() == list(range(11))
    assert_allclose(memory.capacity, known, atol=0.02)
    assert np.all(np.abs(memory.capacity - known) < 5 * memory.standard_error + 1e-9)
    assert_allclose(
        result.memory_capacity, sum(known), atol=4 * result.memory_capacity.standard_error
    )
    assert 0 < result.memory_capacity.standard_error < 0.02
    assert_allclose(
        result.memory_capacity + result.nonlinear_capacity + 1, result.total, rtol=1e-12
    )
    pairs = result.delay_matrix()
    assert pairs.shape == (6, 6)
    assert pairs[0, 3] == pairs[3, 0] > 0.8 < pairs[1, 1] > 0.8
    assert_allclose(
        np.nansum(np.triu(pairs)), result.capacity[basis.degrees == 2].sum(), rtol=1e-12
    )
    table = result.by_delay()
    assert table.loc[3, 2] > 0.8 < table.loc[2, 1]
    assert_allclose(table.to_numpy().sum() + 1, result.capacity.sum(), rtol=1e-12)
    assert "without the constant, as usual for reservoirs: 3." in repr(result)
    own = result.capacity_of(lambda u: np.roll(u[:, 0], 2) + 0.5 * u[:, 0] * np.roll(u[:, 0], 3))
    assert own.standard_error is not None
    assert_allclose(own, 0.95, atol=0.03)
    with pytest.raises(ParameterError, match="not about delayed inputs"):
        infocap.probe(lambda u: u, infocap.product_basis("legendre", 1, 3), 64, seed=1).by_delay()


def test_a_de_bruijn_sequence_holds_every_window_once():
    basis = infocap.delayed_basis("bernoulli", max_delay={1: 6, 2: 6, 3: 6})
    u = infocap.draw(basis, 1024 + 300, design="de-bruijn", seed=3)
    windows = np.lib.stride_tricks.sliding_window_view(u[:, 0], 10)[:1024]
    assert len({tuple(row) for row in windows.tolist()}) == 1024
    y = basis(u)[300 - basis.memory :]
    assert_allclose(y.T @ y / len(y), np.eye(len(basis)), atol=1e-12)
    with pytest.raises(ParameterError, match="two equally likely levels"):
        infocap.draw(infocap.delayed_basis(max_delay={1: 3}), 100, design="de-bruijn")
    with pytest.raises(ParameterError, match="sobol"):
        infocap.draw(basis, 100, design="sobol")


@pytest.mark.parametrize("n", [200, 1000])
def test_functions_that_are_the_same_on_the_samples_do_no_harm(n):
    basis = infocap.delayed_basis("bernoulli", max_delay={1: 3, 2: 3, 3: 3})
    u = np.tile(infocap.draw(basis, 10, seed=1, design="random"), (n // 10, 1))
    x = u + 0.01 * np.random.default_rng(0).standard_normal((n, 2))
    assert np.isfinite(infocap.estimate(u, x, basis).total)


def test_slow_time_counts_what_drifts():
    rng = np.random.default_rng(4)
    u, n = rng.uniform(-1, 1, 6000), 6000
    slow = np.sqrt(3) * np.linspace(-1, 1, n)
    x = (1 + 0.8 * slow)[:, None] * np.sqrt(3) * np.roll(u, 1)[:, None] + 0.1 * rng.standard_normal(
        (n, 1)
    )
    basis = infocap.delayed_basis(max_delay={1: 4, 2: 2}, time_degree=2)
    result = infocap.estimate(u, x, basis, washout=50)
    found = dict(zip(basis.labels, result.capacity, strict=True))
    power = 1 + 0.64 + 0.01
    assert_allclose(
        [found["P1(u[t-1])"], found["P1(u[t-1])·P1(time)"]], [1 / power, 0.64 / power], atol=0.02
    )
    assert not any("disagree" in check for check in result.checks)


def test_one_step_of_many_trials_is_a_sample_each():
    rng = np.random.default_rng(5)
    u = rng.uniform(-1, 1, (2000, 9))
    state, x = np.zeros((2000, 3)), np.empty((2000, 9, 3))
    for t in range(9):  # grows: no fading memory
        state = x[:, t] = 1.2 * state + u[:, t, None] * np.array([1.0, 0.5, -1.0]) * (
            t + 1.0
        ) ** np.arange(3)
    basis = infocap.delayed_basis(max_delay={1: 7, 2: 3})
    result = infocap.estimate(u, x, basis, at=8)
    assert result.n_samples == 2000
    assert result.basis is basis
    inputs = np.column_stack([np.ones(2000), u[:, 1:9]])
    residual = x[:, 8] - inputs @ np.linalg.lstsq(inputs, x[:, 8], rcond=None)[0]
    known = 4 - np.trace(np.linalg.solve(np.cov(x[:, 8].T), np.cov(residual.T)))
    assert_allclose(result.total, known, atol=0.05)
    assert_allclose(result.memory_capacity, known - 1, atol=0.05)
    with pytest.raises(ParameterError, match="between the largest delay, 7, and 8"):
        infocap.estimate(u, x, basis, at=3)


def test_pictures_and_page_of_a_sequence(recorded):
    u, x, basis = recorded
    result = infocap.estimate(u, x, basis, washout=50)
    ax = infocap.plot.memory_function(result)
    assert_allclose(ax.lines[0].get_ydata(), result.memory_function().capacity)
    ax = infocap.plot.degree_bars({"a": result, "b": result})
    assert_allclose(sum(one.get_height() for one in ax.patches), 2 * (result.capacity.sum() - 1))
    ax = infocap.plot.delay_matrix(result)
    shown = ax.images[0].get_array()
    assert_allclose(np.ma.masked_invalid(shown).sum(), result.capacity[basis.degrees == 2].sum())
    ax = infocap.plot.capacity_by_delay(result)
    assert_allclose(sum(one.get_height() for one in ax.patches), result.capacity.sum() - 1)
    page = infocap.report.page(result)
    assert "Memory function" in page
    assert "P1(u[t-3])" in page
    plt.close("all")


def test_delays_on_the_command_line(recorded, tmp_path):
    u, x, _ = recorded
    path = tmp_path / "run.csv"
    header = ",".join(["u1", *(f"x{k + 1}" for k in range(x.shape[1]))])
    np.savetxt(path, np.column_stack([u, x]), delimiter=",", header=header, comments="")
    said = ["estimate", str(path), "--max-delay", "1:30,2:10", "--washout", "50"]
    run = CliRunner().invoke(
        main, [*said, "-o", str(tmp_path / "r.nc"), "--plot", str(tmp_path / "memory.png")]
    )
    assert run.exit_code == 0, run.output
    assert "memory capacity" in run.output
    direct = infocap.estimate(u, x, infocap.delayed_basis(max_delay={1: 30, 2: 10}), washout=50)
    assert_allclose(infocap.load_result(tmp_path / "r.nc").total, direct.total, rtol=1e-9)
    run = CliRunner().invoke(
        main, ["plan", "--max-delay", "1:100,2:40", "--n-readouts", "50", "--error", "0.2"]
    )
    assert run.exit_code == 0, run.output
    assert "963 functions" in run.output
    run = CliRunner().invoke(main, ["estimate", str(path), "--max-delay", "1-30"])
    assert "give it as 1:100,2:40,3:20" in str(run.exception)


def test_reservoirs_are_swept_and_compared(tmp_path):
    """Settings side by side for functions of the past, kept in a folder; and results with different delays."""
    basis = infocap.delayed_basis("legendre", max_delay={1: 12, 2: 4})
    swept = infocap.sweep(
        partial(infocap.systems.EchoState, 6),
        {"radius": [0.5, 0.9]},
        basis,
        1500,
        seed=1,
        path=tmp_path,
        progress=False,
    )
    alone = infocap.probe(infocap.systems.EchoState(6, radius=0.9), basis, 1500, seed=1)
    assert_allclose(swept.at(radius=0.9).capacity, alone.capacity, atol=1e-12)
    assert swept.at(radius=0.9).memory_capacity > swept.at(radius=0.5).memory_capacity
    other = infocap.delayed_basis("legendre", max_delay={1: 8, 2: 6})
    compared = infocap.compare(
        alone, infocap.probe(infocap.systems.EchoState(6, radius=0.5), other, 1500, seed=1)
    )
    features, plain = infocap.systems.RandomFeatures(1, 4), infocap.product_basis("legendre", 1, 3)
    with pytest.raises(
        DataError, match=r"1 input at several delays, legendre .* cannot be compared"
    ):
        infocap.compare(alone, infocap.probe(features, plain, 256, seed=1))
    common = infocap.delayed_basis("legendre", max_delay={1: 8, 2: 4})
    assert set(compared.basis.labels) == set(common.labels)
    places = [alone.basis.labels.index(label) for label in compared.basis.labels]
    assert_allclose(compared.results[0].capacity, alone.capacity[places])
    assert_allclose(
        compared.results[0].memory_capacity,
        compared.results[0].memory_function()["capacity"].sum(),
        atol=0.1,
    )
    assert (
        0
        < compared.results[0].memory_capacity.standard_error
        < 2 * alone.memory_capacity.standard_error
    )


def test_a_volterra_series_has_the_capacities_that_it_was_made_with():
    basis = infocap.delayed_basis("legendre", n_inputs=2, max_delay={1: 5, 2: 3})
    system = infocap.theory.random_mixture(basis, n_active=9, n_readouts=6, noise=0.2, seed=3)
    u = infocap.draw(basis, 4000, seed=1)
    x = system(u, seed=2)
    assert x.shape == (4000, 6)
    plain = infocap.theory.random_mixture(basis, n_active=9, n_readouts=6, seed=3)
    assert_allclose(
        plain(u[1000:1040])[basis.memory :], plain(u)[1000 + basis.memory : 1040], atol=1e-12
    )
    result = infocap.estimate(u, x, basis)
    assert abs(result.total - system.exact().sum()) < 4 * result.total_standard_error
    assert_allclose(result.capacity, system.exact(), atol=0.06)


def test_inputs_of_sequences_are_named_without_their_units():
    inputs = infocap.inputs("Bias [V]:0:5", "Phase [deg]:0:360:fourier")
    basis = infocap.delayed_basis(inputs, max_delay={1: 1}, time_degree=1)
    assert basis.labels[1:4] == ["P1(Bias[t])", "P1(Bias[t-1])", "cos1(Phase[t])"]
    assert "P1(Bias[t-1])·P1(time)" in basis.labels


def test_columns_of_a_table_name_the_inputs_of_a_sequence():
    import pandas as pd

    u = pd.DataFrame({"gain [dB]": np.random.default_rng(1).uniform(-1, 1, 500)})
    result = infocap.estimate(u, u.to_numpy() ** 3, infocap.delayed_basis(max_delay={1: 2}))
    assert result.basis.labels == ["1", "P1(gain[t])", "P1(gain[t-1])", "P1(gain[t-2])"]


def test_slow_time_goes_without_delays_and_with_own_functions():
    rng = np.random.default_rng(1)
    u = rng.uniform(-1, 1, 2000)
    x = np.stack([u, u**2], axis=1) + 0.05 * rng.standard_normal((2000, 2))
    result = infocap.estimate(u, x, infocap.delayed_basis(max_delay={1: 0, 2: 0}, time_degree=1))
    assert result.capacity_of(lambda u: u[:, 0]) == pytest.approx(
        result.memory_function().capacity[0], abs=1e-3
    )
    with pytest.warns(
        infocap.errors.DataWarning, match="outside the basis"
    ):  # time is the last column
        assert result.capacity_of(lambda u: u[:, 1] ** 3) < 0.01


def test_high_degrees_of_several_delays_are_listed_at_once():
    assert len(infocap.delayed_basis(max_delay={10: 9})) == 1 + comb(19, 9)


@pytest.mark.parametrize("name", ["weights", "acquired", "repeats"])
def test_what_belongs_to_trials_counts_at_one_step(name):
    rng = np.random.default_rng(1)
    u = rng.uniform(-1, 1, (600, 4))
    x, again = (
        np.roll(u, 1, axis=1)[:, :, None] + 0.3 * rng.standard_normal((600, 4, 2)) for _ in range(2)
    )
    given = {"weights": np.full(600, 2.0), "acquired": np.ones(3), "repeats": again}[name]
    basis = infocap.delayed_basis(max_delay={1: 2})
    if name == "repeats":
        result = infocap.estimate(u, x, basis, at=3, repeats=given)
        assert result.noise_limited_total == pytest.approx(result.total, abs=0.1)
    else:
        with pytest.raises(DataError, match=name):
            infocap.estimate(u, x, basis, at=3, **{name: given})


UNCLEAR = {
    "seed": (lambda u, x, basis: infocap.draw(basis, 8, seed=-1), "seed=-1.*whole number"),
    "no system": (lambda u, x, basis: infocap.probe(3, basis, 8), "system=3.*callable"),
    "washout at a step": (
        lambda u, x, basis: infocap.estimate(u, x, basis, at=3, washout=2),
        "washout=2.*`at`",
    ),
    "weighted draw": (
        lambda u, x, basis: infocap.draw_weighted(basis, 64),
        "a sequence has no weights",
    ),
    "weighted probe": (
        lambda u, x, basis: infocap.probe(np.tanh, basis, 64, weighted=True),
        "no weights",
    ),
    "unknown option": (
        lambda u, x, basis: infocap.explore(u[0], x[0], methods="raw"),
        "option='methods'",
    ),
    "short exploration": (
        lambda u, x, basis: infocap.explore(u[0], x[0]),
        "8 samples for 10 readouts",
    ),
    "runs of repeats": (
        lambda u, x, basis: infocap.estimate([*u], [*x], basis, repeats=x),
        "list of 3 and ndarray of 3",
    ),
    "terms and delays": (
        lambda u, x, basis: infocap.delayed_basis(terms=[[(1, 1)]], time_degree=1),
        "names all functions",
    ),
    "columns": (
        lambda u, x, basis: basis.combine(np.zeros((20, 2)), np.ones(len(basis))),
        r"\(samples, 1\)",
    ),
}


@pytest.mark.parametrize("case", UNCLEAR)
def test_what_makes_no_sense_gets_one_clear_error(case):
    rng, (call, message) = np.random.default_rng(1), UNCLEAR[case]
    with pytest.raises(infocap.errors.InfocapError, match=message):
        call(
            rng.uniform(-1, 1, (3, 9)),
            rng.standard_normal((3, 9, 9)),
            infocap.delayed_basis(max_delay={1: 2}),
        )


def test_runs_may_come_as_arrays_with_one_axis_more():
    basis, network = (
        infocap.delayed_basis(max_delay={1: 5, 2: 2}),
        infocap.systems.EchoState(4, noise=0.01),
    )
    u = np.random.default_rng(1).uniform(-1, 1, (3, 400, 1))
    x = network(u, seed=1)
    wanted = infocap.estimate([*u], [*x], basis, washout=30)
    assert wanted.n_samples == 3 * 370
    for inputs in (u, u[:, :, 0]):
        assert_allclose(
            infocap.estimate(inputs, x, basis, washout=30).unbiased, wanted.unbiased, atol=1e-12
        )


def test_inputs_of_another_interval_are_not_called_dependent_as_well():
    basis, network = (
        infocap.delayed_basis(max_delay={1: 5, 2: 2}),
        infocap.systems.EchoState(4, noise=0.01),
    )
    u = np.random.default_rng(1).uniform(0, 1, 2000)
    with warnings.catch_warnings(action="ignore"):
        said = " ".join(infocap.estimate(u, network(u, seed=1), basis, washout=30).checks)
    assert "pass `domain=(0, 1)` to delayed_basis" in said
    assert "not independent" not in said


def test_few_samples_for_the_largest_delay_make_a_total_unreliable_without_least_squares_too():
    basis = infocap.delayed_basis(max_delay={1: 20, 2: 9})  # 76 functions
    u = np.random.default_rng(1).uniform(-1, 1, 620)
    x = infocap.systems.EchoState(5, noise=0.05)(u, seed=1)
    with warnings.catch_warnings(action="ignore"):
        short = infocap.estimate(u[:440], x[:440], basis, washout=20)
    assert short.unreliable == "few samples for delays up to 20"
    assert short.without_stretches is None


def test_bars_of_noise_that_lasts_are_longer_where_least_squares_is_not_possible():
    basis = infocap.delayed_basis(max_delay={1: 6, 2: 5, 3: 4})  # 64 functions
    rng = np.random.default_rng(1)
    u, noise = rng.uniform(-1, 1, 430), rng.standard_normal((430, 3))
    lasting = np.stack(
        [np.convolve(one, 0.9 ** np.arange(60))[:430] for one in noise.T], axis=1
    ) * np.sqrt(1 - 0.81)
    signal = np.stack([np.roll(u, k) for k in range(3)], axis=1)
    bars = []
    for one in (noise, lasting):
        with warnings.catch_warnings(action="ignore"):
            result = infocap.estimate(u, signal + 0.5 * one, basis, washout=30)
        bars.append(result.standard_error[1:4].mean())
        assert result.without_stretches is None
    assert bars[1] > 1.3 * bars[0]


def test_a_sweep_goes_into_degree_bars_as_it_is():
    basis = infocap.delayed_basis(max_delay={1: 5})
    found = infocap.sweep(
        lambda radius: infocap.systems.EchoState(4, radius=radius, noise=0.01),
        {"radius": (0.3, 0.9)}, basis, 600, seed=1, washout=60, progress=False,
    )  # fmt: skip
    ax = infocap.plot.degree_bars(found)
    assert ax.get_xlabel() == "radius"
    assert [one.get_text() for one in ax.get_xticklabels()] == ["0.3", "0.9"]
    heights = [bar.get_height() for bar in ax.patches[:2]]
    assert_allclose(heights, [one.capacity[1:].sum() for one in found.results])
    plt.close(ax.figure)
