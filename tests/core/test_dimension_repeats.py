"""The total capacity from repeats: right on systems whose noise is known, and clear about what it cannot do."""

import re
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import infocap
from infocap.dimension import from_repeats
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.theory import noisy_capacities, random_mixture

BASIS = infocap.product_basis("legendre", 2, 10)  # 66 functions


class Spectrum:
    """Readouts like those of a smooth spectrum: each function ten times weaker than one three degrees lower."""

    n_inputs = 2

    def __init__(self, n_readouts=72, noise=1e-2):
        self.noise = noise
        weights = np.random.default_rng(0).standard_normal((n_readouts, len(BASIS)))
        self.weights = weights * 10 ** (-BASIS.degrees / 3)
        constant = np.eye(1, len(BASIS))
        covariance = np.diag([0.0] + [noise**2] * n_readouts)
        self.total = noisy_capacities(np.vstack([constant, self.weights]), covariance).sum()

    def __call__(self, u, generator):
        x = BASIS(u) @ self.weights.T
        return x + self.noise * generator.standard_normal(x.shape)


class Mixture:
    """A sparse mixture of the paper, with noise of the size of the signal."""

    n_inputs = 2

    def __init__(self, noise=0.5, n_readouts=20):
        self.system = random_mixture(BASIS, n_active=30, n_readouts=n_readouts, noise=noise, seed=4)
        self.total = self.system.exact().sum()

    def __call__(self, u, generator):
        return self.system(u, seed=generator)


class Tanh:
    """Random features whose noise is a share of their value; the total comes from quadrature."""

    n_inputs = 2

    def __init__(self, share=0.02):
        self.system = infocap.systems.RandomFeatures(2, 30, gain=1.5, seed=5)
        self.share = share
        nodes, weights = BASIS.quadrature(64)
        x = self.system(nodes)
        noise = share * np.sqrt(weights @ x**2)
        signal = np.sqrt(weights)[:, None] * (x - weights @ x)
        signal_to_noise = np.linalg.svd(signal / noise, compute_uv=False) ** 2
        self.total = 1 + np.sum(signal_to_noise / (1 + signal_to_noise))

    def __call__(self, u, generator):
        x = self.system(u)
        return x + self.share * x * generator.standard_normal(x.shape)


SYSTEMS = {"spectrum": Spectrum(), "mixture": Mixture(), "tanh": Tanh()}
systems = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS.keys())


def measured(system, n, seed, repeats=2):
    """Repeated readouts at n random inputs."""
    generator = np.random.default_rng([n, seed])
    u = generator.uniform(-1, 1, (n, system.n_inputs))
    return [system(u, generator) for _ in range(repeats)]


def measured_once(system, n, seed=0):
    """Readouts at n other random inputs."""
    generator = np.random.default_rng([n, seed, 1])
    return system(generator.uniform(-1, 1, (n, system.n_inputs)), generator)


@dataclass
class Trials:
    """What many data sets of a system gave."""

    error: np.ndarray  # of the total
    raw_error: np.ndarray  # of the total without the correction for noise
    is_inside: np.ndarray  # whether the interval holds the truth


def many(system, n, n_data_sets, repeats=2, n_once=0):
    error = []
    raw_error = []
    is_inside = []
    for seed in range(n_data_sets):
        once = measured_once(system, n_once, seed) if n_once else None
        result = from_repeats(*measured(system, n, seed, repeats), measured_once=once)
        low, high = result.interval()
        error.append(result.total - system.total)
        raw_error.append(result.raw_total - system.total)
        is_inside.append(low <= system.total <= high)
    return Trials(np.array(error), np.array(raw_error), np.array(is_inside))


def standard_error(values):
    return np.std(values, ddof=1) / np.sqrt(len(values))


def result_and_messages(*args, **options):
    """The result and the warnings raised, which are the first of its checks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = from_repeats(*args, **options)
    messages = [str(warning.message) for warning in caught]
    assert all(warning.filename == __file__ for warning in caught)
    assert tuple(messages) == result.checks[: len(messages)]
    return result, messages


def assert_unbiased_and_raw_too_low(trials):
    assert abs(trials.error.mean()) < 4 * standard_error(trials.error)
    # So the test would see a missing correction.
    assert trials.raw_error.mean() < -4 * standard_error(trials.error)


@systems
def test_two_repeats_give_the_total_without_bias(system):
    assert_unbiased_and_raw_too_low(many(system, 512, 40))


@pytest.mark.slow
@pytest.mark.parametrize("n", [512, 2048])
@systems
def test_over_200_data_sets_the_total_is_unbiased_and_its_intervals_hold(system, n):
    trials = many(system, n, 200)
    assert abs(trials.error.mean()) < 3 * standard_error(trials.error)
    assert 0.90 <= trials.is_inside.mean() <= 0.99


@pytest.mark.parametrize(("repeats", "n_once"), [(3, 0), (2, 512), (4, 256)])
def test_more_repeats_and_inputs_measured_once_give_the_same_total(repeats, n_once):
    assert_unbiased_and_raw_too_low(many(SYSTEMS["mixture"], 256, 40, repeats, n_once))


def test_the_standard_error_is_the_scatter():
    n_data_sets = 60
    results = []
    for seed in range(n_data_sets):
        results.append(from_repeats(*measured(SYSTEMS["mixture"], 512, seed)))
    scatter = np.std([result.total for result in results], ddof=1)
    mean_error_bar = np.mean([result.standard_error for result in results])
    relative = 1 / np.sqrt(2 * (n_data_sets - 1))  # standard error of a standard deviation
    assert mean_error_bar == pytest.approx(scatter, rel=4 * relative)


def test_more_of_anything_makes_the_error_smaller():
    system = SYSTEMS["mixture"]
    x1, x2, x3, x4 = measured(system, 512, 0, repeats=4)
    once = measured_once(system, 2048)
    error = from_repeats(x1, x2).standard_error
    assert from_repeats(x1, x2, x3, x4).standard_error < error
    assert from_repeats(x1, x2, measured_once=once).standard_error < error
    assert from_repeats(x1[:256], x2[:256]).standard_error > error


def weighted_squares(weights, rows):
    """Sum of the outer products of rows (inputs, repeats, readouts), weighted by input."""
    return np.einsum("i,irk,irl->kl", weights, rows, rows)


def by_definition(repeated, once, weights, constant):
    """tr(G⁻¹V) with every input counting by its weight, as it stands on paper."""
    n_repeated, n_repeats, _ = repeated.shape
    weights_of_repeated, weights_of_once = np.split(weights, [n_repeated])
    means = repeated.mean(axis=1, keepdims=True)
    centre = 0.0
    if constant:
        centre = np.average(np.concatenate([means[:, 0], once]), axis=0, weights=weights)
    gram = weighted_squares(weights_of_repeated, repeated - centre) / n_repeats
    gram += weighted_squares(weights_of_once, once[:, None] - centre)
    noise = weighted_squares(weights_of_repeated, repeated - means) / (n_repeats - 1)
    noise /= weights_of_repeated.sum()
    return np.trace(np.linalg.solve(gram / weights.sum(), noise))


@pytest.mark.parametrize("is_weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("n_repeats", "n_once"), [(2, 0), (2, 7), (3, 0), (4, 5)])
@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_the_total_and_its_error_are_those_of_a_jackknife_that_computes_everything_again(
    n_repeats, n_once, constant, is_weighted, rng
):
    signal = rng.standard_normal((12, 1, 4)) + 0.3
    repeated = signal + 0.5 * rng.standard_normal((12, n_repeats, 4))
    once = rng.standard_normal((n_once, 4))
    weights = np.ones(12 + n_once)
    if is_weighted:
        weights = rng.uniform(0.2, 2.0, 12 + n_once)
    repeats = from_repeats(
        *np.moveaxis(repeated, 1, 0),
        measured_once=once if n_once else None,
        sample_weight=weights if is_weighted else None,
        constant=constant,
    )
    share = by_definition(repeated, once, weights, constant)
    assert repeats.rank - repeats.raw_total == pytest.approx(share, rel=1e-10)

    without_each = []
    for i in range(12):
        others = np.delete(repeated, i, axis=0)
        without_each.append(by_definition(others, once, np.delete(weights, i), constant))
    for i in range(n_once):
        others = np.delete(once, i, axis=0)
        without_each.append(by_definition(repeated, others, np.delete(weights, 12 + i), constant))
    n = 12 + n_once
    bias = (n - 1) * (np.mean(without_each) - share)
    error = np.sqrt((n - 1) * np.var(without_each))
    # The bias is taken off by a division, not by a subtraction (docs/repeats.md).
    assert repeats.total == pytest.approx(repeats.rank - share / (1 + bias / share), rel=1e-8)
    assert repeats.standard_error == pytest.approx(error / (1 + bias / share), rel=1e-5)


def wedge(generator, n):
    """Inputs that crowd at one corner, and their weights: the density is (1 + u1 / 2)(1 + u2 / 2) / 4."""
    u = 2 * np.sqrt(0.25 + 2 * generator.uniform(size=(n, 2))) - 2
    return u, 1 / np.prod(1 + u / 2, axis=1)


@pytest.mark.thorough
@pytest.mark.parametrize("n_once", [0, 1024])
@systems
def test_weights_give_the_total_under_the_density_of_the_basis(system, n_once):
    """Also where the noise depends on the input, as that of the tanh features does."""
    errors = []
    errors_without_weights = []
    is_inside = []
    for seed in range(40):
        generator = np.random.default_rng(seed)
        u, weights = wedge(generator, 1024 + n_once)
        x1 = system(u[:1024], generator)
        x2 = system(u[:1024], generator)
        once = system(u[1024:], generator) if n_once else None
        result = from_repeats(x1, x2, measured_once=once, sample_weight=weights)
        low, high = result.interval()
        errors.append(result.total - system.total)
        is_inside.append(low <= system.total <= high)
        without_weights = from_repeats(x1, x2, measured_once=once)
        errors_without_weights.append(without_weights.total - system.total)
    assert abs(np.mean(errors)) < 4 * standard_error(errors)
    assert np.mean(is_inside) >= 0.8
    # So the test would see weights that are ignored.
    bias_without_weights = np.mean(errors_without_weights)
    assert abs(bias_without_weights) > 4 * standard_error(errors_without_weights)


@settings(max_examples=25)
@given(seed=st.integers(0, 999), decades=st.floats(-12, 12), offset=st.floats(-1e5, 1e5))
def test_no_unit_offset_or_mixing_changes_the_answer(seed, decades, offset):
    x1, x2 = measured(SYSTEMS["mixture"], 200, 1)
    generator = np.random.default_rng(seed)
    mixing, _ = np.linalg.qr(generator.standard_normal((20, 20)))
    scales = 10 ** generator.uniform(-6, 6, 20)
    expected = from_repeats(x1, x2)
    for change in (
        lambda x: x * 10**decades,
        lambda x: x * scales,
        lambda x: x + offset,
        lambda x: x @ mixing,
        lambda x: (x + offset) * scales,
    ):
        result = from_repeats(change(x1), change(x2))
        assert result.total == pytest.approx(expected.total, abs=1e-7)
        assert result.standard_error == pytest.approx(expected.standard_error, abs=1e-7)
        assert_allclose(result.signal_fraction, expected.signal_fraction, atol=1e-7)


@pytest.mark.parametrize("factor", [1e-310, 1e-200, 1e200, 1e307])
def test_the_whole_range_of_numbers_is_usable(factor):
    x1, x2 = measured(SYSTEMS["tanh"], 256, 1)
    expected = from_repeats(x1, x2).total
    assert from_repeats(x1 * factor, x2 * factor).total == pytest.approx(expected, abs=1e-6)


def test_the_constant_readout_adds_what_a_column_of_ones_would():
    x1, x2 = measured(SYSTEMS["mixture"], 256, 1)
    ones = np.ones((256, 1))
    x1_with_ones = np.hstack([ones, x1])
    x2_with_ones = np.hstack([ones, x2])
    expected = from_repeats(x1, x2)
    recognised = from_repeats(x1_with_ones, x2_with_ones)
    by_hand = from_repeats(x1_with_ones, x2_with_ones, constant=False)
    for result in (recognised, by_hand):
        assert result.total == pytest.approx(expected.total, abs=1e-9)
        assert result.standard_error == pytest.approx(expected.standard_error, abs=1e-9)
        assert result.rank == 21
        assert result.maximum == 21
    assert recognised.n_readouts == 20
    assert by_hand.n_readouts == 21
    assert "column 0 is constant and serves as the constant readout" in recognised.checks[0]


def test_eigentasks_are_white_and_ordered_and_as_noisy_as_they_say():
    x1, x2 = measured(SYSTEMS["spectrum"], 1024, 1)
    result = from_repeats(x1, x2)
    z1 = (x1 - result.mean) @ result.eigentasks
    z2 = (x2 - result.mean) @ result.eigentasks
    assert_allclose((z1.T @ z1 + z2.T @ z2) / 2048, np.eye(72), atol=1e-9)
    noise = np.mean((z1 - z2) ** 2, axis=0) / 2
    assert_allclose(result.signal_fraction, np.clip(1 - noise, 0, 1), atol=1e-9)
    assert np.all(np.diff(result.signal_fraction) <= 0)
    assert result.raw_total == pytest.approx(1 + 72 - noise.sum(), abs=1e-9)


def test_the_first_eigentasks_are_functions_of_the_input():
    """Five clean functions among noise: the eigentasks find their span."""
    generator = np.random.default_rng(3)
    u = generator.uniform(-1, 1, (2000, 2))
    five_functions = BASIS(u)[:, 1:6]
    signal = np.hstack([five_functions, np.zeros((2000, 10))])
    signal = signal @ generator.standard_normal((15, 15))
    x1 = signal + 0.01 * generator.standard_normal(signal.shape)
    x2 = signal + 0.01 * generator.standard_normal(signal.shape)
    result = from_repeats(x1, x2)
    assert result.signal_fraction[4] > 0.99
    assert result.signal_fraction[5] < 0.2
    z = (x1 - result.mean) @ result.eigentasks[:, :5]
    y = BASIS(u)[:, :6]
    residual = z - y @ np.linalg.lstsq(y, z, rcond=None)[0]
    assert np.mean(residual**2) < 0.01


def test_a_basis_that_is_complete_gives_the_same_total_as_the_repeats():
    system = SYSTEMS["mixture"]
    generator = np.random.default_rng(1)
    u = infocap.draw(BASIS, 4096, design="random", seed=1)
    x1 = system(u, generator)
    x2 = system(u, generator)
    by_functions = infocap.estimate(u, x1, BASIS)
    by_repeats = from_repeats(x1, x2)
    assert by_functions.rank == by_repeats.n_readouts + 1
    assert by_repeats.rank == by_repeats.n_readouts + 1
    assert by_repeats.maximum == by_repeats.n_readouts + 1
    assert by_functions.total == pytest.approx(by_repeats.total, abs=5 * by_repeats.standard_error)


def test_without_noise_the_total_is_the_rank():
    u = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    x = infocap.systems.RandomFeatures(2, 12, seed=1)(u)
    for repeat in (x, x.copy()):
        result, messages = result_and_messages(x, repeat)
        assert result.rank == 13
        assert result.total == 13
        assert result.standard_error == 0
        assert result.interval() == (13, 13)
        (message,) = messages
        assert "equal to the last digit" in message


@pytest.mark.parametrize("constant", [True, False])
def test_a_total_never_exceeds_the_rank_and_an_interval_never_leaves_it(constant):
    generator = np.random.default_rng(5)
    n_below = 0
    # Pure noise, then almost none, then as much as signal.
    for signal_size, noise_size in ((0.0, 1.0), (1.0, 1e-6), (1.0, 1.0)):
        for _ in range(20):
            signal = signal_size * generator.standard_normal((60, 6))
            x1 = signal + noise_size * generator.standard_normal((60, 6))
            x2 = signal + noise_size * generator.standard_normal((60, 6))
            result = from_repeats(x1, x2, constant=constant)
            low, high = result.interval(0.99)
            assert result.total < result.rank
            assert constant <= low <= high <= result.rank
            n_below += result.total < constant
    # Scatter below the lowest value happens, and the interval does not follow.
    assert n_below > 0


@pytest.mark.parametrize("seed", range(10))
def test_drift_between_the_repeats_is_seen_and_its_absence_is_not(seed):
    x1, x2 = measured(SYSTEMS["mixture"], 400, seed)
    expected, messages = result_and_messages(x1, x2)
    assert messages == []
    drifted = x2 + 0.5 * np.std(x1 - x2, axis=0)
    result, (message,) = result_and_messages(x1, drifted)
    assert "device drifted between the repeats" in message
    limit = float(re.search(r"by up to ([\d.]+)", message)[1])
    assert 0 < expected.total - result.total < 1.2 * limit


def test_collinear_readouts_lower_the_rank():
    x1, x2 = measured(SYSTEMS["mixture"], 512, 1)
    expected = from_repeats(x1, x2)
    result, messages = result_and_messages(np.hstack([x1, x1[:, :5]]), np.hstack([x2, x2[:, :5]]))
    assert result.rank == 21
    assert result.n_readouts == 25
    assert result.maximum == 26
    assert result.total == pytest.approx(expected.total, abs=1e-8)
    assert messages == [result.checks[0]]
    assert "only 21 of 26 readouts" in messages[0]


def test_dead_channels_are_named_and_count_for_nothing():
    x1, x2 = measured(SYSTEMS["mixture"], 256, 1)

    def with_dead_channel(x):
        return pd.DataFrame(x).assign(**{"1550 nm": 0.0})

    result = from_repeats(with_dead_channel(x1), with_dead_channel(x2))
    assert result.n_readouts == 20
    assert result.maximum == 21
    assert "column '1550 nm'" in result.checks[0]
    assert np.all(result.eigentasks[20] == 0)
    assert result.total == pytest.approx(from_repeats(x1, x2).total, abs=1e-9)


def test_few_inputs_get_a_warning():
    x1, x2 = measured(SYSTEMS["mixture"], 80, 1)
    message = "80 inputs are few for 21 independent readouts: below 5 K = 105"
    with pytest.warns(DataWarning, match=message):
        from_repeats(x1, x2)
    message = "80 inputs are, by their weights, worth 74, which are few for 21"
    with pytest.warns(DataWarning, match=message):
        from_repeats(x1, x2, sample_weight=np.linspace(0.5, 1.5, 80))
    once = measured_once(SYSTEMS["mixture"], 400)
    with pytest.warns(DataWarning, match="80 repeated inputs are few .*the total is right"):
        from_repeats(x1, x2, measured_once=once)


def test_a_spike_at_one_input_does_no_harm():
    x1, x2 = measured(SYSTEMS["mixture"], 256, 1)
    expected = from_repeats(x1, x2)
    spike = np.zeros((256, 1))
    spike[17] = 1.0
    result = from_repeats(np.hstack([x1, spike]), np.hstack([x2, spike]))
    assert result.total == pytest.approx(1 + expected.total, abs=0.5)


X1, X2 = measured(SYSTEMS["mixture"], 128, 0)
BROKEN = X2.copy()
BROKEN[7, 3] = np.nan
MISTAKES = {
    "other length": (lambda: from_repeats(X1, X2[:100]), r"\(128, 20\) and x2 has shape \(100, 20\)"),
    "other third": (lambda: from_repeats(X1, X2, X1[:, :9]), r"\(128, 20\) and x3 has shape \(128, 9\)"),
    "missing value": (lambda: from_repeats(X1, BROKEN), "x2 has 1 NaN .* nan at row 7, column 3"),
    "one dimension": (lambda: from_repeats(X1[:, 0], X2[:, 0]), r"x1\.reshape\(-1, 1\)"),
    "three dimensions": (lambda: from_repeats(np.stack([X1, X2]), X2), r"x1 has shape \(2, 128, 20\)"),
    "complex": (lambda: from_repeats(X1 * 1j, X2), "x1 is complex"),
    "too few": (lambda: from_repeats(X1[:15], X2[:15]), "x1 has 15 repeated inputs of 15 for 21"),
    "device off": (lambda: from_repeats(X1 * 0 + 3, X2 * 0 + 3), "no channel that changes"),
    "overlap": (lambda: from_repeats(X1[:64], X2[:64], measured_once=X1[60:]), "row 0 of measured_once is row 60"),
    "other readouts": (lambda: from_repeats(X1, X2, measured_once=X1[:, :3]), r"measured_once has shape \(128, 3\)"),
    "weights": (lambda: from_repeats(X1, X2, sample_weight=np.ones(5)), r"sample_weight has shape \(5,\); .* each of 128 rows"),
    "constant": (lambda: from_repeats(X1, X2, constant="yes"), "constant='yes'` must be True or False"),
    "level": (lambda: from_repeats(X1, X2).interval(95), "level=95` must lie strictly between 0 and 1"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_get_a_sentence(call, message):
    with pytest.raises((DataError, ParameterError), match=message):
        call()


def test_the_summary_says_what_a_person_wants():
    first, second, *_ = repr(from_repeats(X1, X2)).splitlines()
    headline = r"Repeats: total \d+\.\d+ ± 0\.\d+ of 20 readouts and the constant"
    assert re.fullmatch(headline, first)
    assert second == "  128 inputs measured 2 times"


def mixture(noise, n_readouts, shots=1):
    """Fourteen functions in some readouts; the noise of an average of so many shots."""
    return infocap.theory.random_mixture(
        infocap.product_basis("legendre", 2, 6),
        n_active=14,
        n_readouts=n_readouts,
        noise=noise / np.sqrt(shots),
        seed=1,
    )


# In the second there are more readouts than functions: six directions show nothing but noise.
@pytest.mark.parametrize(("noise", "n_readouts"), [(0.5, 12), (0.3, 20)])
def test_the_capacity_at_more_shots_is_that_of_a_system_with_less_noise(noise, n_readouts):
    """An average of n shots is a system whose noise is smaller by the root of n, with known capacities."""
    system = mixture(noise, n_readouts)
    u = infocap.draw(system.basis, 2048, design="random", seed=1)
    repeats = from_repeats(system(u, seed=2), system(u, seed=3))
    found = repeats.capacity_at([1, 4, 8])
    assert (found.total[0], found.standard_error[0]) == (repeats.total, repeats.standard_error)
    for shots, total, error in zip((4, 8), found.total[1:], found.standard_error[1:], strict=True):
        truth = mixture(noise, n_readouts, shots).exact().sum()
        assert abs(total - truth) < 4 * error
        assert error < 1
        assert total - repeats.total > 2 * error  # more shots do matter


def test_the_capacity_at_more_shots_is_the_same_from_averages():
    """With eight repeats, four shots can be averaged and repeated; both ways agree within their errors."""
    system = mixture(0.5, 12)
    u = infocap.draw(system.basis, 1024, design="random", seed=1)
    shots = [system(u, seed=seed) for seed in range(8)]
    expected = from_repeats(np.mean(shots[:4], axis=0), np.mean(shots[4:], axis=0))
    found = from_repeats(*shots).capacity_at(4)
    error = np.hypot(expected.standard_error, found.standard_error[0])
    assert abs(found.total[0] - expected.total) < 4 * error


def test_a_number_of_shots_that_the_repeats_cannot_tell_is_said():
    system = mixture(0.3, 20)
    u = infocap.draw(system.basis, 512, design="random", seed=1)
    repeats = from_repeats(system(u, seed=2), system(u, seed=3))
    with pytest.warns(
        DataWarning, match="the total of 256 shots has a standard error of .* repeat"
    ):
        repeats.capacity_at([1, 256])
    with pytest.raises(ParameterError, match=r"`shots=0` must be 1 or more, one number or several"):
        repeats.capacity_at(0)
