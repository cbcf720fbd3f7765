"""Functions of the past found by search: what is there is found, what is not there is not, and the search says so."""

import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataWarning, ParameterError

# Functions of degrees 3 and 4, each with its factors (delay, degree).
HIDDEN = {
    "P1(u[t-2])·P2(u[t-7])": [(2, 1), (7, 2)],
    "P1(u[t])·P1(u[t-4])·P1(u[t-9])": [(0, 1), (4, 1), (9, 1)],
    "P2(u[t-1])·P2(u[t-3])": [(1, 2), (3, 2)],
}


def mixture(terms, n_readouts, n_steps, noise, seed, n_inputs=1):
    """Inputs, and readouts that are random combinations of some functions of their past, with white noise."""
    rng = np.random.default_rng(seed)
    basis = infocap.delayed_basis("legendre", n_inputs, terms=terms)
    u = rng.uniform(-1, 1, (n_steps, n_inputs))
    weights = rng.standard_normal((len(terms), n_readouts))
    weights /= np.sqrt(np.sum(weights**2, axis=0))
    x = noise * rng.standard_normal((n_steps, n_readouts))
    x[basis.memory :] += basis(u)[:, 1:] @ weights
    return u, x


def labels_of(exploration):
    """Labels of the functions that hold capacity, without the constant."""
    _, *places = np.flatnonzero(exploration.result.capacity)
    return [exploration.basis.labels[place] for place in places]


@pytest.fixture(scope="module")
def hidden():
    """Readouts that hold three functions of degrees 3 and 4, and nothing of degree 1 or 2."""
    return mixture([*HIDDEN.values()], 6, 2200, 0.3, seed=1)


def test_functions_are_found_where_all_of_lower_degree_hold_nothing(hidden):
    found = infocap.explore(*hidden, washout=200)
    assert sorted(labels_of(found)) == sorted(HIDDEN)
    assert found.windows == {3: 9, 4: 3}
    assert found.rounds[0].tested == 201 + 1953 + 1771 + 1820 + 1287 + 1716
    assert_allclose(found.rounds[0].unexplained, 6, atol=0.1)
    assert found.rounds[-1].found == 0
    assert 3.5 < found.result.total < 4
    assert abs(found.undetected) < 4 * found.undetected_standard_error
    assert "3 of" in repr(found)


def test_given_windows_agree_with_what_the_search_reports(hidden):
    found = infocap.explore(*hidden, washout=200)
    basis = infocap.delayed_basis(max_delay=found.windows)
    with_all = infocap.estimate(*hidden, basis, washout=200)
    places = [basis.labels.index(label) for label in labels_of(found)]
    places_of_found = [found.basis.labels.index(label) for label in labels_of(found)]
    expected = found.result.capacity[places_of_found]
    assert_allclose(with_all.capacity[places], expected, atol=0.02)


def test_noise_alone_has_no_functions():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((1000, 3))
    with pytest.warns(DataWarning, match="nothing of the inputs is seen in the readouts"):
        found = infocap.explore(rng.uniform(-1, 1, 1000), noise, washout=100)
    assert labels_of(found) == []
    assert found.windows == {}
    assert len(found.rounds) == 1
    assert found.result.total == 1.0
    assert abs(found.undetected) < 4 * found.undetected_standard_error


def test_windows_grow_until_all_delays_are_found():
    u = np.random.default_rng(1).uniform(-1, 1, 3000)
    x = infocap.systems.DelayLine(60, noise=0.3)(u, seed=2)
    found = infocap.explore(u, x, washout=150, max_degree=2, most_tested=400)
    assert found.rounds[0].windows[1] == 79
    assert set(labels_of(found)) >= {"P1(u[t])", *(f"P1(u[t-{delay}])" for delay in range(1, 60))}
    assert found.rounds[-1].windows[1] == 119
    assert found.windows[1] == 59


def delay_line(n_delays, noise):
    u = np.random.default_rng(1).uniform(-1, 1, 5000)
    return u, infocap.systems.DelayLine(n_delays, noise=noise)(u, seed=2)


def test_it_says_where_the_tested_delays_were_too_few():
    message = "degree 1 .* the 40 delays tested; record longer runs and raise `washout`"
    with pytest.warns(DataWarning, match=message):
        found = infocap.explore(*delay_line(60, noise=0.3), washout=40, max_degree=1)
    (check,) = [check for check in found.result.checks if "outermost" in check]
    assert check.found["degree"] == 1


def test_it_says_where_the_tested_functions_were_too_few():
    with pytest.warns(DataWarning, match="raise `most_tested`"):
        infocap.explore(*delay_line(80, noise=0.3), washout=150, max_degree=1, most_tested=100)


def test_it_says_nothing_where_the_search_was_long_enough():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        infocap.explore(*delay_line(60, noise=0.3), washout=150, max_degree=1)


@pytest.mark.filterwarnings("ignore:400 samples make 24 stretches")
def test_it_says_when_samples_are_too_few_for_more_functions():
    u = np.random.default_rng(1).uniform(-1, 1, 500)
    network = infocap.systems.EchoState(30, bias=0.3)
    with pytest.warns(DataWarning, match="ended at 49 functions, the most for 400 samples"):
        infocap.explore(u, network(u), washout=100)


def test_functions_of_several_inputs_and_runs_are_found():
    terms = [[(1, 3, 1), (2, 1, 1)], [(2, 2, 1)]]
    u, x = mixture(terms, 2, 2000, 0.1, seed=3, n_inputs=2)
    found = infocap.explore([u[:1000], u[1000:]], [x[:1000], x[1000:]])
    assert set(labels_of(found)) == {"P1(u2[t-2])", "P1(u2[t-1])·P1(u1[t-3])"}
    assert found.result.n_samples == 2 * 900


@pytest.mark.thorough
def test_inputs_may_have_any_distribution_and_domain():
    rng = np.random.default_rng(4)
    normal = rng.standard_normal(1500)
    uniform = rng.uniform(0, 5, 1500)
    x = np.roll(normal, 2) + np.roll(uniform, 3) ** 2 + 0.1 * rng.standard_normal(1500)

    families = ["hermite", infocap.basis.legendre().on((0, 5))]
    u = np.column_stack([normal, uniform])
    found = infocap.explore(u, x[:, None], families, washout=50)
    assert set(labels_of(found)) == {"He1(u1[t-2])", "P1(u2[t-3])", "P2(u2[t-3])"}

    found = infocap.explore(uniform, x[:, None], domain=(0, 5), washout=50)
    assert set(labels_of(found)) == {"P1(u[t-3])", "P2(u[t-3])"}


def test_a_second_play_tells_how_much_noise_allows():
    u, x = mixture([*HIDDEN.values()], 6, 2200, 0.0, seed=1)
    noise = 0.3 * np.random.default_rng(5).standard_normal((2, *x.shape))
    found = infocap.explore(u, x + noise[0], washout=200, repeats=x + noise[1])
    assert_allclose(found.result.noise_limited_total, found.result.total, atol=0.1)
    assert "that noise allows" in repr(found)


@pytest.mark.thorough
def test_other_arrays_and_processes_find_the_same(hidden):
    u, x = hidden
    options = {"washout": 200, "max_degree": 3}
    expected = infocap.explore(u, x, **options)
    arrays = array_api_strict.asarray(u), array_api_strict.asarray(x)
    of_other_arrays = infocap.explore(*arrays, **options)
    assert labels_of(of_other_arrays) == labels_of(expected)
    assert_allclose(of_other_arrays.result.unbiased, expected.result.unbiased, atol=1e-9)
    with ProcessPoolExecutor(2) as pool:
        in_processes = infocap.explore(u, x, executor=pool, **options)
    assert_allclose(in_processes.undetected, expected.undetected, atol=1e-9)


@pytest.mark.parametrize(
    "wrong", [{"washout": 0}, {"max_degree": 0}, {"most_tested": 3}, {"false_discovery_rate": 2}]
)
def test_what_makes_no_sense_is_refused(hidden, wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        infocap.explore(*hidden, **{"washout": 100} | wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "most_false"), [(0, 0.03), (1, 0.03), (2, 0.1)]
)  # the last finds 3 functions a time
def test_few_are_false_and_none_is_missed(place, most_false):
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    from explore import KNOWN, searched

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found, false, missed, *_ = searched(KNOWN[place], sets=8, n=2000, seed=7)
    assert false / found <= most_false
    assert missed < 0.02
