"""The total capacity from repeats: right on systems whose noise is known, and clear about what it cannot do."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import infocap
from infocap.dimension import from_repeats
from infocap.dimension._repeats import leave_one_out, noise_covariance, whiten
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
        full = np.vstack([np.eye(1, len(BASIS)), self.weights])
        covariance = np.diag([0.0] + [noise**2] * n_readouts)
        self.total = noisy_capacities(full, covariance).sum()

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
        self.system, self.share = infocap.systems.RandomFeatures(2, 30, gain=1.5, seed=5), share
        nodes, weights = BASIS.quadrature(64)
        x = self.system(nodes)
        spread = share * np.sqrt(weights @ x**2)
        power = (
            np.linalg.svd(np.sqrt(weights)[:, None] * (x - weights @ x) / spread, compute_uv=False)
            ** 2
        )
        self.total = 1 + np.sum(power / (1 + power))

    def __call__(self, u, generator):
        x = self.system(u)
        return x + self.share * x * generator.standard_normal(x.shape)


SYSTEMS = {"spectrum": Spectrum(), "mixture": Mixture(), "tanh": Tanh()}
systems = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS.keys())


def shots(system, n, seed, repeats=2):
    """Repeated readouts at n random inputs, and the generator for more."""
    generator = np.random.default_rng([n, seed])
    u = generator.uniform(-1, 1, (n, system.n_inputs))
    return [system(u, generator) for _ in range(repeats)], generator


def many(system, n, data_sets, repeats=2, n_once=0):
    """Errors of the total, raw errors, and how often the interval holds."""
    errors, raw, held = [], [], []
    for seed in range(data_sets):
        x, generator = shots(system, n, seed, repeats)
        once = system(generator.uniform(-1, 1, (n_once, 2)), generator) if n_once else None
        found = from_repeats(*x, measured_once=once)
        low, high = found.interval()
        errors.append(found.total - system.total)
        raw.append(found.raw_total - system.total)
        held.append(low <= system.total <= high)
    return np.array(errors), np.array(raw), np.mean(held)


def chance(errors):
    return np.std(errors, ddof=1) / np.sqrt(len(errors))


def messages_of(*args, **options):
    """The result and the warnings raised, which are the first of its checks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = from_repeats(*args, **options)
    raised = [str(one.message) for one in caught]
    assert all(one.filename == __file__ for one in caught)
    assert tuple(raised) == found.checks[: len(raised)]
    return found, raised


@systems
def test_two_repeats_give_the_total_without_bias(system):
    errors, raw, _ = many(system, 512, 40)
    assert abs(errors.mean()) < 4 * chance(errors)
    assert raw.mean() < -4 * chance(errors)  # so the test would see a missing correction


@pytest.mark.slow
@pytest.mark.parametrize("n", [512, 2048])
@systems
def test_over_200_data_sets_the_total_is_unbiased_and_its_intervals_hold(system, n):
    errors, _, held = many(system, n, 200)
    assert abs(errors.mean()) < 3 * chance(errors)
    assert 0.90 <= held <= 0.99


@pytest.mark.parametrize(("repeats", "n_once"), [(3, 0), (2, 512), (4, 256)])
def test_more_repeats_and_inputs_measured_once_give_the_same_total(repeats, n_once):
    errors, raw, _ = many(SYSTEMS["mixture"], 256, 40, repeats, n_once)
    assert abs(errors.mean()) < 4 * chance(errors)
    assert raw.mean() < -4 * chance(errors)


def test_the_standard_error_is_the_scatter():
    x = [shots(SYSTEMS["mixture"], 512, seed)[0] for seed in range(60)]
    found = [from_repeats(*pair) for pair in x]
    scatter = np.std([one.total for one in found], ddof=1)
    relative = 1 / np.sqrt(2 * 59)  # standard error of a standard deviation
    assert np.mean([one.standard_error for one in found]) == pytest.approx(
        scatter, rel=4 * relative
    )


def test_more_of_anything_makes_the_error_smaller():
    system = SYSTEMS["mixture"]
    (x1, x2, x3, x4), generator = shots(system, 512, 0, repeats=4)
    once = system(generator.uniform(-1, 1, (2048, 2)), generator)
    base = from_repeats(x1, x2).standard_error
    assert from_repeats(x1, x2, x3, x4).standard_error < base
    assert from_repeats(x1, x2, measured_once=once).standard_error < base
    assert from_repeats(x1[:256], x2[:256]).standard_error > base


def by_definition(repeated, once, weights, constant):
    """tr(G⁻¹V) with every input counting by its weight, as it stands on paper."""
    x, twice = np.concatenate([repeated.mean(axis=1), once]), weights[: len(repeated)]
    centre = np.average(x, axis=0, weights=weights) * constant
    gram = (
        np.einsum("i,irk,irl->kl", twice, repeated - centre, repeated - centre) / repeated.shape[1]
    )
    gram += np.einsum("i,ik,il->kl", weights[len(repeated) :], once - centre, once - centre)
    rest = repeated - repeated.mean(axis=1, keepdims=True)
    noise = np.einsum("i,irk,irl->kl", twice, rest, rest) / (repeated.shape[1] - 1) / twice.sum()
    return np.trace(np.linalg.solve(gram / weights.sum(), noise))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("repeats", "n_once"), [(2, 0), (2, 7), (3, 0), (4, 5)])
def test_leaving_out_an_input_is_the_same_as_not_having_it(
    repeats, n_once, constant, weighted, rng
):
    repeated = rng.standard_normal((12, 1, 4)) + 0.5 * rng.standard_normal((12, repeats, 4)) + 0.3
    once = rng.standard_normal((n_once, 4))
    weights = rng.uniform(0.2, 2.0, 12 + n_once) if weighted else np.ones(12 + n_once)
    data = whiten(repeated, once, constant, weights if weighted else None)
    noise = noise_covariance(data.repeated)
    assert np.trace(noise) == pytest.approx(
        by_definition(repeated, once, weights, constant), rel=1e-10
    )
    expected = [
        by_definition(np.delete(repeated, i, axis=0), once, np.delete(weights, i), constant)
        for i in range(12)
    ]
    expected += [
        by_definition(repeated, np.delete(once, i, axis=0), np.delete(weights, 12 + i), constant)
        for i in range(n_once)
    ]
    assert_allclose(leave_one_out(data, noise, constant), expected, rtol=1e-6)


def wedge(generator, n):
    """Inputs that crowd at one corner, and their weights: the density is (1 + u1 / 2)(1 + u2 / 2) / 4."""
    u = 2 * np.sqrt(0.25 + 2 * generator.uniform(size=(n, 2))) - 2
    return u, 1 / np.prod(1 + u / 2, axis=1)


@pytest.mark.thorough
@pytest.mark.parametrize("n_once", [0, 1024])
@systems
def test_weights_give_the_total_under_the_density_of_the_basis(system, n_once):
    """Also where the noise depends on the input, as that of the tanh features does."""
    errors, held, ignored = [], [], []
    for seed in range(40):
        generator = np.random.default_rng(seed)
        u, weights = wedge(generator, 1024 + n_once)
        x1, x2 = (system(u[:1024], generator) for _ in range(2))
        once = system(u[1024:], generator) if n_once else None
        found = from_repeats(x1, x2, measured_once=once, weights=weights)
        low, high = found.interval()
        errors.append(found.total - system.total)
        held.append(low <= system.total <= high)
        ignored.append(from_repeats(x1, x2, measured_once=once).total - system.total)
    assert abs(np.mean(errors)) < 4 * chance(errors)
    assert np.mean(held) >= 0.8
    assert abs(np.mean(ignored)) > 4 * chance(
        ignored
    )  # so the test would see weights that are ignored


@settings(max_examples=25)
@given(seed=st.integers(0, 999), decades=st.floats(-12, 12), offset=st.floats(-1e5, 1e5))
def test_no_unit_offset_or_mixing_changes_the_answer(seed, decades, offset):
    (x1, x2), generator = shots(SYSTEMS["mixture"], 200, 1)
    mixing = np.linalg.qr(generator.standard_normal((20, 20)))[0]
    scales = 10 ** np.random.default_rng(seed).uniform(-6, 6, 20)
    plain = from_repeats(x1, x2)
    for change in (
        lambda x: x * 10**decades,
        lambda x: x * scales,
        lambda x: x + offset,
        lambda x: x @ mixing,
        lambda x: (x + offset) * scales,
    ):
        found = from_repeats(change(x1), change(x2))
        assert found.total == pytest.approx(plain.total, abs=1e-7)
        assert found.standard_error == pytest.approx(plain.standard_error, abs=1e-7)
        assert_allclose(found.signal_fraction, plain.signal_fraction, atol=1e-7)


@pytest.mark.parametrize("factor", [1e-310, 1e-200, 1e200, 1e307])
def test_the_whole_range_of_numbers_is_usable(factor):
    (x1, x2), _ = shots(SYSTEMS["tanh"], 256, 1)
    assert from_repeats(x1 * factor, x2 * factor).total == pytest.approx(
        from_repeats(x1, x2).total, abs=1e-6
    )


def test_the_constant_readout_adds_what_a_column_of_ones_would():
    (x1, x2), _ = shots(SYSTEMS["mixture"], 256, 1)
    ones = np.ones((256, 1))
    plain, with_ones = (
        from_repeats(x1, x2),
        from_repeats(np.hstack([ones, x1]), np.hstack([ones, x2])),
    )
    by_hand = from_repeats(np.hstack([ones, x1]), np.hstack([ones, x2]), constant=False)
    for found in (with_ones, by_hand):
        assert found.total == pytest.approx(plain.total, abs=1e-9)
        assert found.standard_error == pytest.approx(plain.standard_error, abs=1e-9)
        assert found.rank == found.maximum == 21
    assert (with_ones.n_readouts, by_hand.n_readouts) == (20, 21)
    assert "column 0 is constant and serves as the constant readout" in with_ones.checks[0]


def test_eigentasks_are_white_and_ordered_and_as_noisy_as_they_say():
    (x1, x2), _ = shots(SYSTEMS["spectrum"], 1024, 1)
    found = from_repeats(x1, x2)
    z1, z2 = (x1 - found.mean) @ found.eigentasks, (x2 - found.mean) @ found.eigentasks
    assert_allclose((z1.T @ z1 + z2.T @ z2) / 2048, np.eye(72), atol=1e-9)
    noise = np.mean((z1 - z2) ** 2, axis=0) / 2
    assert_allclose(found.signal_fraction, np.clip(1 - noise, 0, 1), atol=1e-9)
    assert np.all(np.diff(found.signal_fraction) <= 0)
    assert found.raw_total == pytest.approx(1 + 72 - noise.sum(), abs=1e-9)


def test_the_first_eigentasks_are_functions_of_the_input():
    """Five clean functions among noise: the eigentasks find their span."""
    generator = np.random.default_rng(3)
    u = generator.uniform(-1, 1, (2000, 2))
    signal = np.hstack([BASIS(u)[:, 1:6], np.zeros((2000, 10))]) @ generator.standard_normal(
        (15, 15)
    )
    x1, x2 = (signal + 0.01 * generator.standard_normal(signal.shape) for _ in range(2))
    found = from_repeats(x1, x2)
    assert found.signal_fraction[4] > 0.99
    assert found.signal_fraction[5] < 0.2
    z = (x1 - found.mean) @ found.eigentasks[:, :5]
    y = BASIS(u)[:, :6]
    left = z - y @ np.linalg.lstsq(y, z, rcond=None)[0]
    assert np.mean(left**2) < 0.01


def test_a_basis_that_is_complete_gives_the_same_total_as_the_repeats():
    system = SYSTEMS["mixture"]
    generator = np.random.default_rng(1)
    u = infocap.draw(BASIS, 4096, design="random", seed=1)
    x1, x2 = system(u, generator), system(u, generator)
    named, unnamed = infocap.estimate(u, x1, BASIS), from_repeats(x1, x2)
    assert unnamed.rank == named.rank == unnamed.maximum == unnamed.n_readouts + 1
    assert named.total == pytest.approx(unnamed.total, abs=5 * unnamed.standard_error)


def test_without_noise_the_total_is_the_rank():
    u = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    x = infocap.systems.RandomFeatures(2, 12, seed=1)(u)
    for other in (x, x.copy()):
        found, raised = messages_of(x, other)
        assert found.total == found.rank == 13
        assert found.standard_error == 0
        assert found.interval() == (13, 13)
        assert len(raised) == 1
        assert "equal to the last digit" in raised[0]


def test_a_total_never_exceeds_the_rank_and_an_interval_never_leaves_it():
    generator = np.random.default_rng(5)
    below = 0
    for scale in (0.0, 1e-6, 1.0):  # pure noise, then almost none
        for _ in range(20):
            signal = generator.standard_normal((60, 6)) * bool(scale)
            noise = scale or 1.0
            x1, x2 = (signal + noise * generator.standard_normal((60, 6)) for _ in range(2))
            for constant in (True, False):
                found = from_repeats(x1, x2, constant=constant)
                low, high = found.interval(0.99)
                assert found.total < found.rank
                assert constant <= low <= high <= found.rank
                below += found.total < constant
    assert below > 0  # scatter below the lowest value happens, and the interval does not follow


def test_drift_between_the_repeats_is_seen_and_its_absence_is_not():
    for seed in range(10):
        (x1, x2), _ = shots(SYSTEMS["mixture"], 400, seed)
        assert messages_of(x1, x2)[1] == []
        found, raised = messages_of(x1, x2 + 0.5 * np.std(x1 - x2, axis=0))
        assert len(raised) == 1
        assert "device drifted between the repeats" in raised[0]
        said = float(re.search(r"by up to ([\d.]+)", raised[0])[1])
        lowered = from_repeats(x1, x2).total - found.total
        assert 0 < lowered < 1.2 * said


def test_collinear_readouts_lower_the_rank():
    (x1, x2), _ = shots(SYSTEMS["mixture"], 512, 1)
    found, raised = messages_of(np.hstack([x1, x1[:, :5]]), np.hstack([x2, x2[:, :5]]))
    assert found.rank == 21
    assert (found.n_readouts, found.maximum) == (25, 26)
    assert found.total == pytest.approx(from_repeats(x1, x2).total, abs=1e-8)
    assert raised == [found.checks[0]]
    assert "only 21 of 26 readouts" in raised[0]


def test_dead_channels_are_named_and_count_for_nothing():
    (x1, x2), _ = shots(SYSTEMS["mixture"], 256, 1)
    frames = [
        pd.DataFrame(np.hstack([x, np.zeros((256, 1))])).rename(columns={20: "1550 nm"})
        for x in (x1, x2)
    ]
    found = from_repeats(*frames)
    assert (found.n_readouts, found.maximum) == (20, 21)
    assert "column '1550 nm'" in found.checks[0]
    assert np.all(found.eigentasks[20] == 0)
    assert found.total == pytest.approx(from_repeats(x1, x2).total, abs=1e-9)


def test_few_inputs_get_a_warning():
    (x1, x2), generator = shots(SYSTEMS["mixture"], 80, 1)
    with pytest.warns(
        DataWarning, match="80 inputs are few for 21 independent readouts: below 5 K = 105"
    ):
        from_repeats(x1, x2)
    once = SYSTEMS["mixture"](generator.uniform(-1, 1, (400, 2)), generator)
    with pytest.warns(
        DataWarning, match="80 inputs are, by their weights, worth 74, which are few for 21"
    ):
        from_repeats(x1, x2, weights=np.linspace(0.5, 1.5, 80))
    with pytest.warns(DataWarning, match="80 repeated inputs are few .*the total is right"):
        from_repeats(x1, x2, measured_once=once)


def test_a_spike_at_one_input_does_no_harm():
    (x1, x2), _ = shots(SYSTEMS["mixture"], 256, 1)
    spike = np.zeros((256, 1))
    spike[17] = 1.0
    found = from_repeats(np.hstack([x1, spike]), np.hstack([x2, spike]))
    assert found.total == pytest.approx(1 + from_repeats(x1, x2).total, abs=0.5)


X1, X2 = shots(SYSTEMS["mixture"], 128, 0)[0]
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
    "weights": (lambda: from_repeats(X1, X2, weights=np.ones(5)), r"sample_weight has shape \(5,\); .* each of 128 rows"),
    "constant": (lambda: from_repeats(X1, X2, constant="yes"), "constant='yes'` must be True or False"),
    "level": (lambda: from_repeats(X1, X2).interval(95), "level=95` must lie strictly between 0 and 1"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_get_a_sentence(call, message):
    with pytest.raises((DataError, ParameterError), match=message):
        call()


def test_the_summary_says_what_a_person_wants():
    said = repr(from_repeats(X1, X2)).splitlines()
    assert re.fullmatch(
        r"Repeats: total \d+\.\d+ ± 0\.\d+ of 20 readouts and the constant", said[0]
    )
    assert said[1] == "  128 inputs measured 2 times"
