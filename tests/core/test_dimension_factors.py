"""Factor analysis finds the rank that was put in, and says so when there is none."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from infocap.dimension import indicator, noise_scale
from infocap.errors import DataError, DataWarning, ParameterError


def factors(rank, strength, seed, n=600, k=24):
    """Orthogonal factors, each `strength` times as strong as the noise of standard deviation 1."""
    generator = np.random.default_rng([rank, seed])
    frame, _ = np.linalg.qr(generator.standard_normal((k, max(rank, 1))))
    loadings = frame[:, :rank].T
    signal = strength * generator.standard_normal((n, rank)) @ loadings
    return signal + generator.standard_normal((n, k))


@pytest.mark.parametrize(
    ("strength", "ranks"), [(3, (1, 2, 7, 12)), (10, (1, 7, 20)), (1000, (20,))]
)
def test_the_indicator_finds_the_rank(strength, ranks):
    for rank in ranks:
        for seed in range(20):
            assert indicator(factors(rank, strength, seed)).n_factors == rank


def test_a_factor_counts_when_it_is_five_times_as_large_as_the_noise():
    """In mean square: 4 is not enough for any seed, 6.5 is for all."""
    for seed in range(10):
        assert indicator(factors(5, 2.0, seed, n=20_000)).n_factors is None
        assert indicator(factors(5, 6.5**0.5, seed, n=20_000)).n_factors == 5


def test_the_values_are_the_formula_of_the_paper():
    x = factors(4, 5.0, seed=0, n=50, k=6)
    result = indicator(x)
    eigenvalues = np.sort(np.linalg.eigvalsh(x.T @ x))[::-1]
    assert_allclose(result.eigenvalues, eigenvalues, rtol=1e-10)
    for kappa in range(1, 6):
        error = np.sqrt(eigenvalues[kappa:].sum() / (50 * (6 - kappa)))
        assert result.values[kappa - 1] == pytest.approx(error / (6 - kappa) ** 2, rel=1e-10)


@pytest.mark.parametrize("strength", [0.0, 30.0])
def test_noise_alone_and_full_rank_have_no_minimum(strength):
    for seed in range(20):
        result = indicator(factors(24, strength, seed))
        assert result.n_factors is None
        assert "no minimum, so no number of factors" in repr(result)
        assert "no minimum between 1 and K - 2 = 22" in result.checks[0]


def test_a_spectrum_that_falls_to_the_last_readout_has_no_minimum():
    x = factors(0, 0.0, seed=0, k=6) * 10.0 ** -np.arange(0, 12, 2)
    result = indicator(x)
    assert result.n_factors is None
    assert "falls to the end" in result.checks[0]


def test_once_in_units_of_the_noise_the_scale_of_a_readout_does_not_matter():
    generator = np.random.default_rng(0)
    scales = 10 ** generator.uniform(-12, 3, 24)
    repeats = generator.standard_normal((100, 24))
    x = factors(6, 4.0, seed=1)
    plain = indicator(x, repeats=repeats)
    for scale in (scales, scales[0]):
        by_repeats = indicator(x * scale, repeats=repeats * scale)
        by_scale = indicator(x * scale, noise_scale(repeats * scale))
        assert_allclose(by_repeats.values, plain.values, rtol=1e-9)
        assert_allclose(by_scale.values, plain.values, rtol=1e-9)
    assert plain.n_factors == 6
    assert indicator(x * scales).n_factors != 6  # so the normalisation is needed


def test_the_mean_of_the_readouts_is_a_factor():
    for seed in range(5):
        assert indicator(factors(3, 5.0, seed) + 20).n_factors == 4


def test_the_lowest_minimum_counts_where_a_strong_factor_stands_before_many_equal_ones():
    """The paper's minimum is after the first factor here, although what is left there is far from noise."""
    for seed in range(5):
        result = indicator(factors(16, 10.0, seed) + 100)
        assert result.n_factors == 1
        assert np.argmin(result.values) == 0


def test_the_noise_scale_is_the_standard_deviation():
    values = 5 + 1e-9 * np.random.default_rng(0).standard_normal((100, 3))
    assert_allclose(noise_scale(values), values.std(axis=0, ddof=1), rtol=1e-6)


@pytest.mark.parametrize("n_repeats", [4, 10, 100])
def test_correlated_noise_is_told_from_independent_noise(n_repeats):
    x = factors(5, 10.0, seed=0)
    for seed in range(30):
        noise = np.random.default_rng(seed).standard_normal((n_repeats, 24))
        assert not any("correlated" in check for check in quiet(x, noise).checks)
    common = noise + 1.5 * np.random.default_rng(1).standard_normal((n_repeats, 1))
    with pytest.warns(DataWarning, match="noise is correlated between readouts"):
        indicator(x * noise_scale(common), repeats=common)


def quiet(x, noise):
    """With few repeats the scale itself is poor; that is another matter here."""
    return indicator(x * noise_scale(noise), repeats=noise)


def test_what_is_left_should_be_the_noise():
    x = factors(5, 10.0, seed=0)
    with pytest.warns(DataWarning, match="5 factors leave 10 times the noise"):
        indicator(x, np.full(24, 0.1))


X = factors(3, 10.0, seed=0, n=60, k=8)
HOLE = np.ones(8)
HOLE[5] = 0
MISTAKES = {
    "both": (lambda: indicator(X, np.ones(8), repeats=X), "`noise_scale` and `repeats` were both given"),
    "scale of another length": (lambda: indicator(X, np.ones(7)), r"8 readouts and noise_scale has shape \(7,\)"),
    "scale of zero": (lambda: indicator(X, HOLE), r"noise_scale is 0\.0 for column 5"),
    "repeats of other readouts": (lambda: indicator(X, repeats=X[:, :3]), r"repeats has shape \(60, 3\)"),
    "fewer samples than readouts": (lambda: indicator(X[:8]), "more samples than readouts"),
    "two readouts": (lambda: indicator(X[:, :2]), "3 readouts or more"),
    "missing value": (lambda: indicator(np.where(X[4, 2] == X, np.nan, X)), "nan at row 4, column 2"),
    "one repeat": (lambda: noise_scale(X[:1]), "give 2 rows or more"),
    "silent channel": (lambda: noise_scale(X * HOLE + 0.1), "column 5 of repeats never changes"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_get_a_sentence(call, message):
    with pytest.raises((DataError, ParameterError), match=message):
        call()
