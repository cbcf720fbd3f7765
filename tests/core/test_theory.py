"""Every proposition of the paper as a property that the code has."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import with_constant

import infocap
from infocap.errors import DataError, ParameterError
from infocap.kernels import capacities, summarise
from infocap.theory import finite_sample_bias, noisy_capacities, random_mixture, zero_capacity_bound

BASIS = infocap.product_basis("legendre", 2, 4)  # 15 functions
seeds = st.integers(0, 10_000)


def random_weights(seed, readouts=5, terms=15):
    return np.random.default_rng(seed).normal(size=(readouts, terms))


def random_covariance(seed, size=5):
    root = np.random.default_rng(seed + 1).normal(size=(size, size))
    return root @ root.T + 0.1 * np.eye(size)


def sample_capacities(x, y):
    """Capacities of targets y on the samples themselves, with E[y²] replaced by its sample mean."""
    return capacities(summarise(x, y)) / np.mean(y**2, axis=0)


def by_definition(weights, covariance):
    """R' G^-1 R, as the paper writes it."""
    gram = weights @ weights.T + covariance
    return np.array([r @ np.linalg.solve(gram, r) for r in weights.T])


@given(seeds)
def test_a_capacity_lies_between_0_and_1(seed):
    for covariance in (None, random_covariance(seed)):
        exact = noisy_capacities(random_weights(seed), covariance)
        assert exact.min() >= -1e-12
        assert exact.max() <= 1 + 1e-12


@given(seeds)
def test_a_capacity_is_r_g_inverse_r(seed):
    weights = random_weights(seed)
    covariance = random_covariance(seed)
    expected = by_definition(weights, covariance)
    assert_allclose(noisy_capacities(weights, covariance), expected, atol=1e-9)


@given(seeds)
def test_a_capacity_is_the_squared_cosine_of_the_projection(seed):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(60, 4))
    y = generator.normal(size=(60, 6))
    projected = x @ np.linalg.pinv(x) @ y
    lengths = np.linalg.norm(projected, axis=0) * np.linalg.norm(y, axis=0)
    cosine = np.sum(projected * y, axis=0) / lengths
    assert_allclose(sample_capacities(x, y), cosine**2, atol=1e-10)


@given(seeds, st.integers(1, 8), st.integers(0, 3))
def test_capacities_over_a_complete_basis_sum_to_the_dimension(seed, n_independent, n_mixtures):
    weights = random_weights(seed, readouts=n_independent)
    mixing = np.random.default_rng(seed).normal(size=(n_mixtures, n_independent))
    weights = np.vstack([weights, mixing @ weights])
    assert_allclose(noisy_capacities(weights).sum(), n_independent, atol=1e-8)


@given(seeds)
def test_noise_in_one_readout_makes_the_sum_smaller_than_k(seed):
    covariance = np.zeros((5, 5))
    covariance[2, 2] = 0.01
    assert noisy_capacities(random_weights(seed), covariance).sum() < 5 - 1e-6


@given(seeds)
def test_full_rank_noise_lowers_every_nonzero_capacity(seed):
    weights = random_weights(seed)
    weights[:, 7] = 0.0
    clean = noisy_capacities(weights)
    noisy = noisy_capacities(weights, random_covariance(seed))
    is_active = np.arange(15) != 7
    assert np.all(noisy[is_active] < clean[is_active])
    assert clean[7] == pytest.approx(0, abs=1e-12)
    assert noisy[7] == pytest.approx(0, abs=1e-12)


@given(seeds, st.integers(1, 9))
def test_fewer_samples_than_readouts_fit_everything(seed, n):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, 9))
    y = generator.normal(size=(n, 4))
    assert_allclose(sample_capacities(x, y), 1.0, atol=1e-8)


@given(seeds)
def test_finite_sample_capacities_stay_in_0_1_with_the_empirical_power(seed):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(25, 6))
    y = generator.standard_t(3, size=(25, 5))
    sampled = sample_capacities(x, y)
    assert sampled.min() >= 0
    assert sampled.max() <= 1 + 1e-12


def quadrature_bias(system):
    """Delta of a mixture by tensor Gauss quadrature, the constant readout included."""
    nodes, weights = system.basis.quadrature(2 * system.basis.max_degree + 1)
    return finite_sample_bias(with_constant(system(nodes)), system.basis(nodes), weights)


@pytest.mark.thorough
def test_the_bias_is_delta_over_n():
    """E[C_N] - C over many data sets, against Delta / N, within what chance allows."""
    system = random_mixture(BASIS, n_active=8, n_readouts=3, seed=2)
    n = 400
    n_data_sets = 3000
    generator = np.random.default_rng(7)
    raw = np.empty((n_data_sets, len(BASIS)))
    for data_set in range(n_data_sets):
        u = generator.uniform(-1, 1, (n, 2))
        raw[data_set] = capacities(summarise(with_constant(system(u)), BASIS(u)))

    bias = raw.mean(axis=0) - system.exact()
    error = raw.std(axis=0) / np.sqrt(n_data_sets)
    expected = quadrature_bias(system) / n
    # The next order is about Delta K / N² times fourth moments; a tenth of Delta / N covers it at N = 100 K.
    assert np.all(np.abs(bias - expected) < 4.5 * error + 0.1 * expected + 1e-12)
    assert np.max(expected / np.maximum(error, 1e-12)) > 30  # so the test would see a wrong Delta


def test_the_terms_of_the_proof_add_up_to_delta():
    """The coefficients of 1/N in the three terms of the proof of proposition 5.2, each by quadrature."""
    system = random_mixture(BASIS, n_active=8, n_readouts=3, seed=2)
    nodes, weights = BASIS.quadrature(2 * BASIS.max_degree + 1)
    root = np.sqrt(weights)[:, None]
    orthonormal = np.linalg.qr(root * with_constant(system(nodes)))[0] / root  # the X̃ of the proof
    leverage = np.sum(orthonormal**2, axis=1)
    expected = quadrature_bias(system)
    for y, delta in zip(BASIS(nodes).T, expected, strict=True):
        r = weights @ (orthonormal * y[:, None])
        first = weights @ (leverage * y**2) - r @ r
        second = 2 * ((weights * leverage * y) @ orthonormal @ r - r @ r)
        third = (weights * leverage) @ (orthonormal @ r) ** 2 - r @ r
        assert first - second + third == pytest.approx(delta, abs=1e-9)
    assert expected.max() > 1


def test_the_bias_vanishes_where_the_capacity_is_one():
    system = random_mixture(BASIS, n_active=5, n_readouts=5, seed=0)
    delta = quadrature_bias(system)
    is_one = system.exact() > 1 - 1e-9
    assert is_one.sum() >= 5
    assert_allclose(delta[is_one], 0, atol=1e-9)
    assert delta[~is_one].min() > 1


@pytest.mark.parametrize("seed", range(5))
def test_the_zero_capacity_bound_is_above_the_bias_of_every_zero_capacity(seed):
    n = 1000
    system = random_mixture(BASIS, n_active=6, n_readouts=4, seed=seed)
    nodes, weights = BASIS.quadrature(9)
    x = with_constant(system(nodes))
    frame, _ = np.linalg.qr(np.sqrt(weights)[:, None] * x)
    leverage = np.sum(frame**2, axis=1) / weights
    bound = zero_capacity_bound(BASIS.fourth_moments, weights @ leverage**2, n)
    is_zero = system.exact() < 1e-12
    assert is_zero.sum() >= 8
    bias = quadrature_bias(system) / n
    assert np.all(bias[is_zero] <= bound[is_zero])
    assert np.all(bound >= x.shape[1] / n)


def test_the_mixture_is_what_it_says():
    u = infocap.draw(BASIS, 2**15, seed=1)
    clean = random_mixture(BASIS, n_active=6, n_readouts=4, seed=3)(u)
    system = random_mixture(BASIS, n_active=6, n_readouts=4, noise=0.2, seed=3)
    assert_allclose(clean, BASIS(u)[:, system.active] @ system.weights.T, atol=1e-12)
    noise = system(u, seed=0) - clean
    assert_allclose(noise.std(axis=0), 0.2 * np.sqrt(np.mean(clean**2, axis=0)), rtol=0.02)


def test_the_noise_of_a_mixture_is_fresh_without_a_seed():
    system = random_mixture(BASIS, n_active=6, n_readouts=4, noise=0.2, seed=3)
    u = infocap.draw(BASIS, 16, seed=1)
    assert np.array_equal(system(u, seed=0), system(u, seed=0))
    assert not np.array_equal(system(u), system(u))


def test_as_many_readouts_as_active_functions_have_all_of_their_capacity():
    system = random_mixture(BASIS, n_active=6, n_readouts=6, seed=3)
    assert system.exact(constant=False).sum() == pytest.approx(6)


@settings(max_examples=10)
@given(seeds, st.sampled_from([0.0, 0.3]))
def test_exact_capacities_are_those_of_very_many_samples(seed, noise):
    system = random_mixture(BASIS, n_active=9, n_readouts=4, noise=noise, seed=seed)
    u = infocap.draw(BASIS, 2**14, seed=seed)
    raw = capacities(summarise(with_constant(system(u, seed=seed)), BASIS(u)))
    assert_allclose(raw, system.exact(), atol=0.02)


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError, match="n_active=16` is more than the 15 functions"):
        random_mixture(BASIS, n_active=16, n_readouts=4)
    with pytest.raises(ParameterError, match="noise=-1"):
        random_mixture(BASIS, n_active=6, n_readouts=4, noise=-1)
    with pytest.raises(DataError, match="negative eigenvalue, -"):
        noisy_capacities(np.eye(2), -np.eye(2))
    with pytest.raises(DataError, match=r"give \(2, 2\)"):
        noisy_capacities(np.eye(2), np.eye(3))
    with pytest.raises(DataError, match="nodes, readouts"):
        finite_sample_bias(np.zeros(3), np.zeros((3, 1)))


def test_multiplicative_noise_takes_capacity_as_proposition_4_1_says():
    """Noise that is not additive: each readout times 1 + noise; the sum stays below the number of readouts."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    weights = np.random.default_rng(0).standard_normal((4, len(basis)))
    gain = 0.05 * (np.eye(4) + 0.5)
    exact = noisy_capacities(weights, relative_covariance=gain)
    assert exact.sum() < 4 - 0.01
    assert noisy_capacities(weights).sum() == pytest.approx(4)
    u = infocap.draw(basis, 2**16, seed=1)
    noise = np.random.default_rng(1).multivariate_normal(np.zeros(4), gain, len(u))
    x = basis(u) @ weights.T * (1 + noise)
    result = infocap.estimate(u, x, basis, constant=False, method="raw")
    assert_allclose(result.capacity, exact, atol=0.01)
    with pytest.raises(DataError, match="relative_covariance has shape"):
        noisy_capacities(weights, relative_covariance=np.eye(3))


def test_what_proposition_5_2_leaves_falls_at_least_as_the_power_three_halves():
    """E[C_N] - C - Delta/N for P2 and the readouts 1, u: eight times the samples leave less than 8^-1.5 of it."""
    basis = infocap.product_basis("legendre", n_inputs=1, max_degree=3)
    nodes, weights = basis.quadrature(16)
    delta = finite_sample_bias(basis(nodes)[:, :2], basis(nodes), weights)[2]
    generator = np.random.default_rng(0)

    def remainder(n, n_data_sets=60_000):
        """What Delta / N leaves of the mean of C_N, whose limit is 0; and its standard error."""
        u = generator.uniform(-1, 1, (n_data_sets, n))
        x = np.stack([np.ones_like(u), u], axis=2)
        y = np.sqrt(5) * (1.5 * u**2 - 0.5)
        grams = np.einsum("rni,rnj->rij", x, x) / n
        correlations = np.einsum("rni,rn->ri", x, y) / n
        weights = np.linalg.solve(grams, correlations[:, :, None])[:, :, 0]
        raw = np.sum(correlations * weights, axis=1)
        return abs(raw.mean() - delta / n), raw.std() / np.sqrt(n_data_sets)

    of_8, error_of_8 = remainder(8)
    of_64, error_of_64 = remainder(64, n_data_sets=20_000)
    assert of_8 > 5 * error_of_8  # there is something left to see
    assert of_64 < of_8 / 8**1.5 + 3 * error_of_64


@pytest.mark.parametrize(
    "basis", [infocap.product_basis("legendre", 2, 3), infocap.delayed_basis(max_delay={1: 3})]
)
def test_a_mixture_refuses_another_number_of_inputs(basis):
    with pytest.raises(DataError, match=r"u has shape \(9, 3\); the basis needs"):
        random_mixture(basis, n_active=2, n_readouts=2, seed=1)(np.zeros((9, 3)))
