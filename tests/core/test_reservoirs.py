"""Systems with memory: what they compute, how fast they forget, and how much a linear one remembers."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.linalg import solve_discrete_lyapunov

import infocap
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.systems import DelayLine, DelayReservoir, EchoState, check_fading
from infocap.theory import linear_memory

UNIFORM = infocap.product_basis("legendre", n_inputs=1, max_degree=1)
RESERVOIRS = [
    EchoState(7, leak=0.4, bias=0.3, n_inputs=2),
    DelayReservoir(7, n_inputs=2),
    DelayReservoir(7, nonlinearity="ikeda", n_inputs=2),
]


def sequence(steps, inputs=1, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, inputs))


def lag_capacities(u, x, max_delay):
    """Capacities of the delayed inputs (delays, inputs) from a large sample, without their bias of rank / N."""
    x = x[max_delay:] - x[max_delay:].mean(axis=0)
    directions, _ = np.linalg.qr(x)
    n_samples, rank = directions.shape
    lags = np.stack([u[max_delay - delay : len(u) - delay] for delay in range(max_delay + 1)])
    unit_lags = lags / np.sqrt(u.var() * n_samples)
    raw = np.sum(np.einsum("dnj,nk->djk", unit_lags, directions) ** 2, axis=2)
    return raw - (1 - raw) * rank / n_samples


def test_an_echo_state_network_is_its_equation():
    settings = {"radius": 0.8, "input_scale": 0.7, "bias": 0.3, "n_inputs": 2, "seed": 3}
    system = EchoState(6, leak=0.4, **settings)
    u = sequence(50, 2)
    w = system.recurrent_weights
    entering = system.input_weights
    assert np.abs(np.linalg.eigvals(w)).max() == pytest.approx(0.8)
    assert 0.4 < np.abs(entering).max() <= 0.7
    # From rest and without input, the first state is tanh(bias).
    first_state = EchoState(6, leak=1.0, **settings)(np.zeros((1, 2)))[0]
    bias = np.arctanh(first_state)
    x = system(u)
    state = np.zeros(6)
    for step in range(50):
        state = 0.6 * state + 0.4 * np.tanh(w @ state + entering @ u[step] + bias)
        assert_allclose(x[step], state, atol=1e-12)


@pytest.mark.parametrize("nonlinearity", ["mackey-glass", "ikeda"])
def test_a_delay_reservoir_solves_its_equation_between_virtual_nodes(nonlinearity):
    """x' = -x + f with the delayed value of each virtual node held: an ordinary integrator finds the same."""
    system = DelayReservoir(
        5, nonlinearity, feedback=0.9, input_scale=0.8, bias=0.3, separation=0.4, exponent=3.0
    )
    feedback = {
        "mackey-glass": lambda s: 0.9 * s / (1 + abs(s) ** 3),
        "ikeda": lambda s: 0.9 * np.sin(s) ** 2,
    }[nonlinearity]
    u = sequence(6)
    mask = system.input_weights[:, 0]
    delayed_values = np.zeros(5)
    value = 0.0
    for step, x in enumerate(system(u)):
        for node in range(5):
            f = feedback(delayed_values[node] + mask[node] * u[step, 0] + 0.3)
            solution = solve_ivp(lambda _, y, f=f: f - y, (0, 0.4), [value], rtol=1e-10, atol=1e-12)
            value = solution.y[0, -1]
            assert x[node] == pytest.approx(value, abs=1e-8)
        delayed_values = x


@pytest.mark.parametrize("system", RESERVOIRS, ids=lambda s: getattr(s, "nonlinearity", "echo"))
def test_runs_together_are_the_runs_alone(system):
    u = sequence(90, 2).reshape(3, 30, 2)
    assert_allclose(system(u), [system(run) for run in u], atol=1e-12)
    assert infocap.systems.DelayLine(4)(u[..., :1]).shape == (3, 30, 4)


def test_one_input_may_be_a_plain_sequence():
    u = sequence(20)
    assert np.array_equal(EchoState(5)(u[:, 0]), EchoState(5)(u))


def test_noise_is_seeded_and_that_of_the_state_stays_in_the_loop():
    u = np.zeros(20_000)
    outside = EchoState(3, noise=0.1)
    inside = EchoState(1, 0.9, activation="linear", state_noise=0.1)
    assert np.array_equal(outside(u, seed=1), outside(u, seed=1))
    assert outside(u, seed=1).std() == pytest.approx(0.1, rel=0.02)
    assert inside(u, seed=1).std() == pytest.approx(0.1 / np.sqrt(1 - 0.81), rel=0.05)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EchoState(0), "n_nodes=0` must be a whole number"),
        (lambda: EchoState(leak=0), "leak=0` must lie above 0"),
        (lambda: EchoState(radius=-1), "radius=-1` must be a finite number, 0 or more"),
        (
            lambda: DelayReservoir(nonlinearity="laser"),
            "nonlinearity='laser'` is not one of 'mackey-glass', 'ikeda'",
        ),
        (lambda: DelayReservoir(separation=0), "separation=0` must be a positive number"),
        (lambda: DelayLine(2, noise=-1), "noise=-1` must be"),
        (
            lambda: EchoState(5)(np.zeros((4, 2))),
            r"shape \(4, 2\); this system needs a sequence \(steps, 1\)",
        ),
        (lambda: linear_memory(np.zeros((2, 3)), [1, 1]), r"a has shape \(2, 3\)"),
        (lambda: linear_memory([[1.0]], [1.0]), "spectral radius 1: its memory does not fade"),
        (lambda: linear_memory([[0.5]], [1.0], noise=[1, 2]), "one for each of 1 nodes"),
        (
            lambda: check_fading(DelayLine(2), np.zeros((30, 1))),
            "drive has 30 steps; give 4000, or `n_steps=15`",
        ),
    ],
)
def test_impossible_reservoirs_are_refused(make, message):
    with pytest.raises((ParameterError, DataError), match=message):
        make()


def test_a_delay_line_is_forgotten_after_its_length_and_a_linear_network_by_its_radius():
    assert check_fading(DelayLine(20), UNIFORM) == 19
    slow = check_fading(EchoState(30, 0.95, activation="linear"), UNIFORM)
    fast = check_fading(EchoState(30, 0.8, activation="linear"), UNIFORM)
    assert slow / fast == pytest.approx(np.log(0.8) / np.log(0.95), rel=0.15)
    assert check_fading(DelayLine(20), sequence(400), n_steps=200) == 19
    assert check_fading(lambda u: u**2, UNIFORM) == 0


def test_repeatable_noise_does_not_hide_that_the_start_is_forgotten():
    noisy = EchoState(30, 0.8, noise=0.1, state_noise=0.1)
    assert check_fading(noisy, UNIFORM) < 100
    with pytest.raises(DataError, match="or noise that no `seed` repeats"):
        check_fading(lambda u: noisy(u), UNIFORM, n_steps=200)


def test_a_start_from_rest_that_pasts_never_show_counts_too():
    def slow_start(u, seed=None):
        """At first twice as sensitive, fading over 300 steps; with a little noise where a seed is given."""
        noise = 0.0 if seed is None else 0.01 * np.random.default_rng(seed).normal(size=u.shape)
        return u * (1 + np.exp(-np.arange(len(u)) / 43.4))[:, None] + noise

    without_noise = check_fading(lambda u: slow_start(u), UNIFORM)
    assert without_noise == pytest.approx(300, abs=50)  # exp(-300 / 43.4) = 0.001
    assert 50 < check_fading(slow_start, UNIFORM) < 250  # hidden by the noise sooner


def test_chaos_and_a_choice_of_two_states_are_seen():
    with pytest.raises(DataError, match=r"after 2000 steps, .* the system is chaotic"):
        check_fading(EchoState(50, radius=3.0), UNIFORM)

    def latch(u):
        """Remembers for ever whether the very first input was positive."""
        return np.column_stack([u, np.broadcast_to(np.sign(u[:1]), u.shape) + 1e-3 * u])

    with pytest.raises(DataError, match="has several states to settle in"):
        check_fading(latch, UNIFORM, n_steps=100)


@pytest.mark.parametrize(("noise", "variance"), [(0.0, 1.0), (0.4, 1 / 3)])
def test_the_memory_of_a_delay_line_and_of_a_leaky_integrator_is_known(noise, variance):
    shift = np.eye(8, k=-1)
    options = {"variance": variance, "max_delay": 10}
    line = linear_memory(shift, np.eye(8)[0], noise=noise, **options)[:, 0]
    remembered = np.arange(11) < 8
    assert_allclose(line, remembered * variance / (variance + noise**2), atol=1e-12)

    a = 0.9
    options = {"variance": variance, "max_delay": 30}
    signal = variance * a ** (2 * np.arange(31))
    power = variance / (1 - a**2)
    outside = linear_memory([[a]], [1.0], noise=noise, **options)[:, 0]
    assert_allclose(outside, signal / (power + noise**2), atol=1e-12)
    inside = linear_memory([[a]], [1.0], state_noise=noise, **options)[:, 0]
    assert_allclose(inside, signal / (power + noise**2 / (1 - a**2)), atol=1e-12)


def network(nodes, inputs, radius=0.9, seed=0):
    generator = np.random.default_rng(seed)
    a = generator.normal(size=(nodes, nodes))
    return a * radius / np.abs(np.linalg.eigvals(a)).max(), generator.normal(size=(nodes, inputs))


@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize(("nodes", "radius"), [(20, 0.9), (40, 0.5), (100, 0.5), (200, 0.9)])
def test_without_noise_a_linear_network_remembers_as_much_as_it_has_nodes(nodes, radius, inputs):
    a, b = network(nodes, inputs, radius)
    memory = linear_memory(a, b, max_delay=3000)
    assert memory.shape == (3001, inputs)
    assert memory.sum() == pytest.approx(nodes, abs=1e-9)
    assert memory.max() < 1 + 1e-9


def solve_exactly(matrix, vector):
    """The solution of a linear system of fractions, by Gauss and Jordan."""
    n = len(vector)
    rows = [[*row, value] for row, value in zip(matrix, vector, strict=True)]
    for i in range(n):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in set(range(n)) - {i}:
            factor = rows[j][i]
            rows[j] = [left - factor * right for left, right in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize(("inputs", "unit"), [(1, 2**-8), (3, 2**-17)])
def test_directions_far_below_rounding_count_as_in_arithmetic_without_rounding(inputs, unit):
    nodes = 9
    generator = np.random.default_rng(1)
    a = unit * generator.integers(-6, 7, (nodes, nodes))
    b = 1.0 * generator.integers(-6, 7, (nodes, inputs))
    memory = linear_memory(a, b, max_delay=8)

    exact_a = np.vectorize(Fraction, otypes=[object])(a)
    response = np.vectorize(Fraction, otypes=[object])(b)
    responses = []
    for _ in range(25):  # Later ones are below 1e-40.
        responses.append(response)
        response = exact_a @ response
    covariance = sum(response @ response.T for response in responses)
    weakest, *_, strongest = np.linalg.eigvalsh(covariance.astype(float))
    assert abs(weakest) < 1e-15 * strongest  # so that rounding hides it
    for delay in range(9):
        for j in range(inputs):
            c = responses[delay][:, j]
            expected = float(c @ np.array(solve_exactly(covariance, c), dtype=object))
            assert memory[delay, j] == pytest.approx(expected, abs=1e-12)


def test_nodes_that_no_input_reaches_do_not_remember():
    with pytest.warns(DataWarning, match="reach 1 of 2 independent directions"):
        memory = linear_memory(np.diag([0.5, 0.5]), [1.0, 1.0], max_delay=100)
    assert_allclose(memory[:, 0], 0.75 * 0.25 ** np.arange(101), atol=1e-12)


def test_repeated_eigenvalues_are_no_difficulty():
    leaky_chain = 0.5 * np.eye(40) + 0.4 * np.eye(40, k=-1)
    assert linear_memory(leaky_chain, np.eye(40)[0], max_delay=2000).sum() == pytest.approx(40)
    two_lines = np.kron(np.eye(2), np.eye(20, k=-1))
    memory = linear_memory(two_lines, np.eye(40)[[0, 20]].T, max_delay=30)
    assert_allclose(memory, np.repeat(np.arange(31) < 20, 2).reshape(31, 2), atol=1e-12)


def test_noise_that_rounding_hides_is_told():
    a, b = network(60, 1, 0.5)
    with pytest.warns(DataWarning, match="noise=1e-25` is so small that directions"):
        linear_memory(a, b, noise=1e-25)


def test_with_noise_the_memory_is_that_of_the_lyapunov_equation():
    a, b = network(12, 3)
    noise = np.linspace(0.1, 1, 12)
    of_state = solve_discrete_lyapunov(a, 0.5 * b @ b.T + 0.2**2 * np.eye(12))
    covariance = of_state + np.diag(noise**2)
    expected = []
    for delay in range(21):
        c = np.sqrt(0.5) * np.linalg.matrix_power(a, delay) @ b  # E[x z] of the delayed inputs
        expected.append(np.einsum("ij,ij->j", c, np.linalg.solve(covariance, c)))
    memory = linear_memory(a, b, noise=noise, state_noise=0.2, variance=0.5, max_delay=20)
    assert_allclose(memory, expected, atol=1e-12)


def test_a_simulated_linear_network_remembers_what_theory_says():
    system = EchoState(
        10, 0.9, 0.6, leak=0.7, n_inputs=2, activation="linear", noise=0.3, state_noise=0.1, seed=2
    )
    u = sequence(40_000, 2)
    measured = lag_capacities(u, system(u, seed=1), max_delay=40)
    a = 0.3 * np.eye(10) + 0.7 * system.recurrent_weights
    options = {"noise": 0.3, "state_noise": 0.1, "variance": 1 / 3, "max_delay": 40}
    exact = linear_memory(a, 0.7 * system.input_weights, **options)
    assert exact.max() > 0.3
    standard_error = 2 / np.sqrt(len(u))  # |y|² and |z|² scatter by about 1 / sqrt(N)
    assert_allclose(measured, exact, atol=4 * standard_error)
    assert measured.sum() == pytest.approx(exact.sum(), abs=0.03)
