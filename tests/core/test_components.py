"""More channels than samples: components found without the inputs, and what they let one claim."""

import re
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.samples import Components

BASIS = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
N_FUNCTIONS = 9
FORKSERVER = get_context("forkserver")
FORKSERVER.set_forkserver_preload(["infocap"])


def estimate(u, x, basis=BASIS, **options):
    """Estimate without warnings, which are looked at in tests of their own."""
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        return infocap.estimate(u, x, basis, **options)


@dataclass(frozen=True)
class WideDevice:
    """A mixture of nine functions in many channels, with independent noise and strong noise modes."""

    n_channels: int
    n_samples: int
    seed: int = 0
    strength: float = 0.08
    n_noise_modes: int = 0

    @property
    def patterns(self):
        """Mixing matrix and noise modes, (functions or modes, channels)."""
        rng = np.random.default_rng([self.seed, 1])
        mixing = self.strength * rng.standard_normal((N_FUNCTIONS, self.n_channels))
        modes = 5 * self.strength * rng.standard_normal((self.n_noise_modes, self.n_channels))
        return mixing, modes

    @property
    def inputs(self):
        return np.random.default_rng([self.seed, 2]).uniform(-1, 1, (self.n_samples, 2))

    def measure(self, shot=0):
        """One measurement of all channels at the inputs."""
        rng = np.random.default_rng([self.seed, 3, shot])
        mixing, modes = self.patterns
        noise = rng.standard_normal((self.n_samples, self.n_channels))
        noise += rng.standard_normal((self.n_samples, self.n_noise_modes)) @ modes
        return BASIS(self.inputs)[:, 1 : 1 + N_FUNCTIONS] @ mixing + noise

    def exact(self):
        """The total of all channels, by the covariance of readouts of whole of K channels."""
        mixing, modes = self.patterns
        covariance = mixing.T @ mixing + modes.T @ modes + np.eye(self.n_channels)
        return 1 + float(np.trace(mixing @ np.linalg.solve(covariance, mixing.T)))

    def estimate(self, **options):
        return estimate(self.inputs, self.measure(), **options)


DEVICE = WideDevice(n_channels=400, n_samples=200)


@cache
def plain_result():
    return DEVICE.estimate(n_components=12)


def scores_by_svd(x, n_components):
    """Principal components of centred readouts, by a singular value decomposition."""
    vectors, sizes, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    return vectors[:, :n_components] * sizes[:n_components]


# What they are.


@pytest.mark.parametrize("n_channels", [150, 199, 201, 400])
def test_components_are_those_of_a_singular_value_decomposition(n_channels):
    device = WideDevice(n_channels, 200)
    x = device.measure()
    from_scores = estimate(device.inputs, scores_by_svd(x, 12), BASIS)
    result = device.estimate(n_components=12)
    assert_allclose(result.capacity, from_scores.capacity, atol=1e-10)
    assert_allclose(result.total_standard_error, from_scores.total_standard_error, atol=1e-10)
    assert result.components == Components(n_channels, 12, "principal")
    assert (result.n_readouts, result.maximum) == (12, 13)


def test_offsets_of_channels_do_not_matter():
    offsets = 1e5 * np.random.default_rng(0).standard_normal(400)
    x = DEVICE.measure() + offsets
    result = estimate(DEVICE.inputs, x, BASIS, n_components=12)
    assert_allclose(result.capacity, plain_result().capacity, atol=1e-8)


def test_without_the_constant_channels_are_not_centred():
    x = DEVICE.measure() + 0.5
    vectors, sizes, _ = np.linalg.svd(x, full_matrices=False)
    scores = vectors[:, :12] * sizes[:12]
    options = {"constant": False, "method": "raw"}
    expected = estimate(DEVICE.inputs, scores, BASIS, **options)
    result = estimate(DEVICE.inputs, x, BASIS, n_components=12, **options)
    assert_allclose(result.capacity, expected.capacity, atol=1e-10)
    assert result.maximum == 12


def test_auto_takes_one_component_for_thirty_samples_and_at_least_five():
    assert DEVICE.estimate(n_components="auto").components.n_components == 6
    few = WideDevice(400, 100).estimate(n_components="auto")
    assert few.components.n_components == 5


def test_no_more_components_than_independent_channels_are_used():
    noiseless = BASIS(DEVICE.inputs)[:, 1:5] @ np.random.default_rng(0).standard_normal((4, 300))
    result = estimate(DEVICE.inputs, noiseless, BASIS, n_components=12)
    assert result.components.n_components == 4
    assert_allclose(result.total, 5, atol=1e-6)


def test_few_channels_stay_as_they_are():
    x = DEVICE.measure()[:, :8]
    result = estimate(DEVICE.inputs, x, BASIS, n_components=8)
    plain = estimate(DEVICE.inputs, x, BASIS)
    assert result.components is None
    assert_allclose(result.capacity, plain.capacity, atol=1e-14)


# What they claim.


@pytest.mark.parametrize("n_noise_modes", [0, 3])
@pytest.mark.parametrize("strength", [0.05, 0.2])
def test_components_never_claim_more_than_all_channels_hold(n_noise_modes, strength):
    for seed in range(3):
        device = WideDevice(500, 240, seed, strength, n_noise_modes)
        exact = device.exact()
        for options in ({}, {"repeats": device.measure(shot=1)}):
            for n_components in ("auto", 30):
                result = device.estimate(n_components=n_components, **options)
                assert result.total < exact + 2 * result.total_standard_error


def test_channels_of_pure_noise_hold_nothing():
    for seed in range(3):
        device = WideDevice(1500, 200, seed, strength=0.0)
        for options in ({}, {"repeats": device.measure(shot=1)}):
            result = device.estimate(n_components="auto", **options)
            assert abs(result.total - 1) < 3 * result.total_standard_error
            assert np.count_nonzero(result.capacity) <= 2  # the constant, and one by chance


def test_thousands_of_channels_take_a_second():
    device = WideDevice(5000, 300)
    u = device.inputs
    x = device.measure()
    start = time.perf_counter()
    result = estimate(u, x, BASIS, n_components="auto")
    assert time.perf_counter() - start < 5
    assert 8 < result.total < 1 + N_FUNCTIONS


# The same from anywhere.


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, FORKSERVER) as pool:
        yield pool


@pytest.mark.parametrize("n_channels", [150, 400])
@pytest.mark.parametrize("with_repeats", [False, True])
def test_memory_files_and_workers_give_the_same(n_channels, with_repeats, tmp_path, processes):
    device = WideDevice(n_channels, 200)
    repeats = device.measure(shot=1) if with_repeats else None
    expected = device.estimate(n_components=12, repeats=repeats)
    np.save(tmp_path / "x.npy", device.measure())
    in_file = np.load(tmp_path / "x.npy", mmap_mode="r")
    options = {"n_components": 12, "repeats": repeats}
    with ThreadPoolExecutor(3) as threads:
        results = [
            estimate(device.inputs, in_file, BASIS, **options),
            estimate(device.inputs, in_file, BASIS, memory_limit="40MB", **options),
            device.estimate(executor=threads, **options),
            device.estimate(executor=processes, **options),
            estimate(device.inputs, in_file, BASIS, executor=processes, **options),
        ]
    for result in results:
        assert_allclose(result.capacity, expected.capacity, atol=1e-10)
        assert_allclose(result.weights, expected.weights, atol=1e-9)  # signs, too
        assert result.components == expected.components


def test_short_shares_and_panels_give_the_same(monkeypatch):
    from infocap.dimension import _components
    from infocap.samples import _engine

    monkeypatch.setattr(_components, "PANEL_BYTES", 8 * 400 * 7)
    monkeypatch.setattr(_engine, "MAX_BYTES_PER_WIDE_SHARE", 8 * 400 * 3)
    result = DEVICE.estimate(n_components=12)
    assert_allclose(result.capacity, plain_result().capacity, atol=1e-10)


def test_a_memory_limit_that_is_too_small_is_refused():
    device = WideDevice(700, 600)
    with pytest.raises(ParameterError, match=r"`n_components` of 700 channels and 600 samples"):
        device.estimate(n_components=5, memory_limit="2MB")


# Repeats.


def test_repeats_find_the_signal_beneath_strong_noise_modes():
    device = WideDevice(800, 300, strength=0.15, n_noise_modes=9)
    exact = device.exact()
    principal = device.estimate(n_components=9)
    assert principal.total < 1.5  # nine components, nine modes of noise
    result = device.estimate(n_components=9, repeats=device.measure(shot=1))
    assert result.components == Components(800, 9, "signal over noise")
    assert exact - 1 < result.total < exact + 2 * result.total_standard_error


def test_a_part_of_the_samples_may_be_repeated():
    device = WideDevice(800, 300, strength=0.15, n_noise_modes=9)
    repeats = device.measure(shot=1)
    repeats[np.arange(300) % 2 == 1] = np.nan
    result = device.estimate(n_components=9, repeats=repeats)
    assert device.exact() - 2 < result.total < device.exact()


def test_repeats_of_channels_fewer_than_samples_do_the_same():
    device = WideDevice(250, 600, strength=0.25, n_noise_modes=9)
    result = device.estimate(n_components=9, repeats=device.measure(shot=1))
    assert device.estimate(n_components=9).total < 2
    assert device.exact() - 1 < result.total < device.exact() + 2 * result.total_standard_error


def test_equal_repeats_give_principal_components():
    result = DEVICE.estimate(n_components=12, repeats=DEVICE.measure())
    assert_allclose(result.capacity, plain_result().capacity, atol=1e-10)


def test_repeats_that_chose_the_directions_do_not_tell_what_noise_allows():
    result = DEVICE.estimate(n_components=12, repeats=DEVICE.measure(shot=1))
    assert result.noise_limited_total is None


def test_repeats_without_a_complete_row_are_refused():
    repeats = np.full((200, 400), np.nan)
    with pytest.raises(DataError, match="repeats has a NaN or infinite value in every row"):
        DEVICE.estimate(n_components=12, repeats=repeats)


# Messages.


def test_more_channels_than_samples_are_refused_with_the_option():
    with pytest.raises(DataError, match="pass `n_components='auto'`"):
        DEVICE.estimate()


def test_more_channels_than_a_fourth_of_the_samples_are_warned_of_with_the_option():
    device = WideDevice(80, 200)
    message = "few for 81 readouts.*n_components='auto'"
    for method in ("control-variate", "threshold-richardson"):
        assert any(re.search(message, text) for text in device.estimate(method=method).warnings)
    with pytest.warns(DataWarning, match=message):
        infocap.estimate(device.inputs, device.measure(), BASIS, method="raw")


def test_more_components_than_samples_allow_are_named():
    warned = DEVICE.estimate(n_components=60).warnings
    assert any("or fewer components" in text for text in warned)
    with pytest.raises(DataError, match="200 samples for 199 principal components"):
        DEVICE.estimate(n_components=199)


@pytest.mark.parametrize("n_components", [0, -3, 2.5, "all", True])
def test_other_numbers_of_components_are_refused(n_components):
    with pytest.raises(ParameterError, match="n_components"):
        DEVICE.estimate(n_components=n_components)


def test_a_result_prints_a_lower_bound():
    text = repr(plain_result())
    total = infocap._formatting.with_error(
        plain_result().total, plain_result().total_standard_error
    )
    assert f"the 400 channels hold at least {total} (12 principal components)" in text
    assert "of at most" not in text


@pytest.mark.parametrize("suffix", [".nc", ".csv"])
def test_components_are_saved_and_loaded(suffix, tmp_path):
    path = plain_result().save(tmp_path / f"result{suffix}")
    loaded = infocap.load_result(path)
    assert loaded.components == plain_result().components
    assert repr(loaded) == repr(plain_result())


def test_different_numbers_of_components_are_not_compared():
    other = DEVICE.estimate(n_components=8)
    narrow = estimate(DEVICE.inputs, DEVICE.measure()[:, :8], BASIS)
    for result in (other, narrow):
        with pytest.raises(DataError, match="different numbers of components"):
            infocap.compare(plain_result(), result)


def test_equal_numbers_of_components_are_compared_as_lower_bounds():
    other = WideDevice(400, 200, seed=1).estimate(n_components=12)
    comparison = infocap.compare(plain_result(), other)
    assert "at least" in repr(comparison)
    assert any("n_components=4" in check for check in comparison.checks)


# Rows and single channels.


def test_missing_values_are_refused_or_their_rows_left_out():
    x = DEVICE.measure()
    x[[3, 70], [399, 5]] = np.nan
    with pytest.raises(DataError, match=r"x has 2 NaN or infinite values.*row 3, column 399"):
        estimate(DEVICE.inputs, x, BASIS, n_components=12)
    kept = np.delete(np.arange(200), [3, 70])
    result = estimate(DEVICE.inputs, x, BASIS, n_components=12, nan_policy="omit")
    expected = estimate(DEVICE.inputs[kept], x[kept], BASIS, n_components=12)
    assert_allclose(result.capacity, expected.capacity, atol=1e-10)
    assert result.n_samples == 198
    assert any("2 rows" in note for note in result.notes)


def findings(x, n_channels=3000, n_samples=300):
    device = WideDevice(n_channels, n_samples)
    result = estimate(device.inputs, x, BASIS, n_components="auto")
    return {check.found["cause"]: check for check in result.checks if "cause" in check.found}


def test_a_clean_wide_data_set_has_no_findings():
    assert not findings(WideDevice(3000, 300).measure())


def test_a_code_in_one_of_many_channels_is_found():
    x = WideDevice(3000, 300).measure()
    x[17, 1234] = 9.91e37
    code = findings(x)["codes"]
    assert "column 1234" in code
    assert code.found["rows"] == [17]


def test_a_clock_among_many_channels_is_found():
    x = WideDevice(300, 256).measure()
    x[:, 123] = 50 + np.arange(256) * 0.3
    assert "column 123" in findings(x, 300, 256)["clock"]


def test_readouts_of_other_rows_are_found_in_the_components():
    device = WideDevice(3000, 300, strength=0.2)
    shifted = np.roll(device.measure(), 1, axis=0)
    result = estimate(device.inputs, shifted, BASIS, n_components="auto")
    assert "shifted" in " ".join(result.warnings)


def test_rows_keep_their_numbers():
    x = WideDevice(600, 400, strength=0.2).measure()
    device = WideDevice(600, 400, strength=0.2)
    x[5, 0] = np.nan
    x[300:306] = x[40:46]
    result = estimate(device.inputs, x, n_components="auto", nan_policy="omit")
    copies = {row for check in result.warnings for row in check.found.get("rows", [])}
    assert copies >= set(range(300, 306))


# Everywhere.


def test_sequences_runs_and_weights_take_components():
    basis = infocap.delayed_basis("legendre", max_delay={1: 3})
    rng = np.random.default_rng(0)
    u = [rng.uniform(-1, 1, 180) for _ in range(2)]
    x = []
    for run in u:
        delayed = np.column_stack([run, np.roll(run, 1), np.roll(run, 2)])
        x.append(delayed @ rng.standard_normal((3, 500)) + rng.standard_normal((180, 500)))
    result = estimate(u, x, basis, n_components=8)
    assert 3.9 < result.total < 4.1
    assert "at least" in result.for_reservoirs[0]

    u, weights = infocap.draw_weighted(BASIS, 256, seed=1)
    mixed = BASIS(u)[:, 1:4] @ rng.standard_normal((3, 500)) + rng.standard_normal((256, 500))
    result = estimate(u, mixed, BASIS, sample_weight=weights, n_components=8)
    assert 3.8 < result.total < 4.1


def test_probe_sweep_explore_and_recordings_take_components():
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=2)
    system = infocap.systems.RandomFeatures(2, 300, noise=0.01)
    result = infocap.probe(system, basis, 128, seed=1, n_components=6)
    assert result.components == Components(300, 6)

    sweep = infocap.sweep(
        lambda noise: infocap.systems.RandomFeatures(2, 300, noise=noise),
        {"noise": [0.01, 0.1]},
        basis,
        128,
        seed=1,
        n_components=6,
        progress=False,
    )
    assert "noise=0.1: at least" in repr(sweep)

    u = np.random.default_rng(1).uniform(-1, 1, 400)
    x = np.roll(u, 1)[:, None] + np.random.default_rng(2).standard_normal((400, 500))
    exploration = infocap.explore(u, x, washout=20, n_components=5, max_degree=2)
    assert exploration.result.components == Components(500, 5)
    assert "P1(u[t-1])" in exploration.basis.labels

    recording = infocap.Recording(DEVICE.inputs, DEVICE.measure(), np.arange(200))
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        result = infocap.estimate(recording, basis=BASIS, n_components=12)
    assert_allclose(result.capacity, plain_result().capacity, atol=1e-10)
    diagnosis = infocap.diagnose(recording, n_components="auto")
    assert not [check for check in diagnosis.checks if check.kind == "warning"]
