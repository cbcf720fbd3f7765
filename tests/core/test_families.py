"""One-dimensional families: orthonormal, with the right measure, moments and samples."""

import json
import pickle
from dataclasses import replace
from fractions import Fraction
from math import factorial

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap import basis as families
from infocap.basis import Family, describe, jacobi, legendre, table
from infocap.errors import DataError, ParameterError

FAMILIES = {
    "legendre": families.legendre(),
    "hermite": families.hermite(),
    "jacobi": families.jacobi(2.0, 3.5),
    "jacobi-arcsine": families.jacobi(0.5, 0.5),
    "laguerre": families.laguerre(),
    "laguerre-gamma": families.laguerre(2.5),
    "chebyshev": families.chebyshev(),
    "fourier": families.fourier(),
    "binomial": families.binomial(60, 0.3),
    "bernoulli": families.bernoulli(0.2),
    "density": families.density(lambda u: np.exp(u) * (1 - u**2), (-1, 1)),
    "kinked-density": families.density(lambda u: 1 - np.abs(u), (-1, 1), breakpoints=[0]),
    "unbounded-density": families.density(lambda u: 1 / np.cosh(u), (-np.inf, np.inf)),
    "half-line-density": families.density(lambda u: u * np.exp(-u), (0, np.inf)),
    "table": families.table(np.linspace(-1, 1, 101)),
    "samples": families.samples(np.random.default_rng(0).normal(size=500)),
}
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())


def gram_by_quadrature(family, degree):
    limit = degree if family.largest_degree is None else min(degree, family.largest_degree)
    nodes, weights = family.quadrature(limit + 1)
    values = family.values(nodes, family.count(limit))
    return (values * weights) @ values.T


@every_family
def test_orthonormal_up_to_degree_50(family):
    gram = gram_by_quadrature(family, 50)
    assert_allclose(gram, np.eye(len(gram)), atol=1e-10)


@every_family
def test_moved_domain_changes_the_inputs_and_not_the_functions(family):
    moved = family.on((3.0, 7.0))
    p = np.linspace(0.05, 0.95, 7)
    assert_allclose(
        moved.standard(moved.quantile(p)), family.standard(family.quantile(p)), atol=1e-12
    )
    assert_allclose(moved.natural(moved.standard(np.array([3.5]))), [3.5], rtol=1e-14)


@every_family
def test_samples_follow_the_measure(family):
    """Means of the first functions over a fine grid of probabilities vanish, as orthonormality wants."""
    p = (np.arange(200_000) + 0.5) / 200_000
    count = family.count(min(3, family.largest_degree or 3))
    values = family.values(family.standard(family.quantile(p)), count)
    tolerance = 2e-3 if np.isinf(family.support).any() else 1e-3
    assert_allclose(values.mean(axis=1), np.eye(1, count)[0], atol=tolerance)
    assert_allclose((values**2).mean(axis=1), 1.0, atol=30 * tolerance)


@every_family
def test_pickles_and_files_bring_the_same_family_back(family):
    for variant in (family, family.on((2.0, 5.0))):
        basis = families.product_basis(variant, 2, min(2, variant.largest_degree or 2))
        u = variant.quantile(np.linspace(0.1, 0.9, 9)).repeat(2).reshape(9, 2)
        unpickled = pickle.loads(pickle.dumps(basis))
        description = json.loads(json.dumps(basis.to_dict()))
        restored = families.ProductBasis.from_dict(description, basis.indices)
        for copy in (unpickled, restored):
            assert copy.families == basis.families
            assert np.array_equal(copy(u), basis(u))
            assert np.array_equal(copy.fourth_moments, basis.fourth_moments)


@every_family
def test_quantiles_are_inside_the_bounds(family):
    u = family.quantile(np.random.default_rng(4).random(100))
    low, high = family.bounds
    assert u.min() >= low
    assert u.max() <= high


def wigner_3j_squared(degree, twice):
    """(l l 2L; 0 0 0)² as a fraction, from its closed form."""
    j = twice // 2
    total = degree + j  # half the sum of the three angular momenta
    ratio = Fraction(
        factorial(2 * total - 2 * degree) ** 2 * factorial(2 * total - 2 * twice),
        factorial(2 * total + 1),
    )
    root = Fraction(factorial(total), factorial(total - degree) ** 2 * factorial(total - twice))
    return ratio * root**2


def test_fourth_moments_of_legendre_are_the_papers_wigner_formula():
    moments = families.legendre().fourth_moments(51)
    for degree in (0, 1, 2, 7, 14, 30, 50):
        terms = [(4 * j + 1) * wigner_3j_squared(degree, 2 * j) ** 2 for j in range(degree + 1)]
        exact = (2 * degree + 1) ** 2 * sum(terms)
        assert_allclose(moments[degree], float(exact), rtol=1e-12)


def test_fourth_moments_known_in_closed_form():
    assert_allclose(families.hermite().fourth_moments(3), [1, 3, 15])
    assert_allclose(families.laguerre().fourth_moments(3), [1, 9, 297])
    assert_allclose(families.fourier().fourth_moments(9), [1.0] + 8 * [1.5])
    p = 0.2
    variance = p * (1 - p)
    assert_allclose(families.bernoulli(p).fourth_moments(2)[1], (1 - 3 * variance) / variance)


@pytest.mark.parametrize("degree", [1, 7, 20, 50])
@pytest.mark.parametrize("x", [-0.9999, -0.31, 0.0, 0.77, 1.0])
def test_values_agree_with_high_precision(degree, x):
    with mpmath.workdps(60):
        exact = {
            "legendre": mpmath.sqrt(2 * degree + 1) * mpmath.legendre(degree, x),
            "hermite": mpmath.hermite(degree, 6 * x / mpmath.sqrt(2))
            / mpmath.sqrt(mpmath.mpf(2) ** degree * mpmath.factorial(degree)),
            "chebyshev": mpmath.sqrt(2) * mpmath.chebyt(degree, x),
            "laguerre": (-1) ** degree * mpmath.laguerre(degree, 0, 20 * (1 + x)),
        }
    points = {"legendre": x, "hermite": 6 * x, "chebyshev": x, "laguerre": 20 * (1 + x)}
    for name, value in exact.items():
        found = FAMILIES[name].values(np.array([points[name]]), degree + 1)[degree, 0]
        assert_allclose(found, float(value), rtol=1e-10, atol=1e-10 * max(1, degree))


def test_jacobi_agrees_with_high_precision():
    a, b, degree, x = 2.0, 3.5, 50, 0.37
    alpha, beta = b - 1, a - 1
    with mpmath.workdps(60):
        n = mpmath.mpf(degree)
        norm = (
            mpmath.gamma(n + alpha + 1)
            * mpmath.gamma(n + beta + 1)
            / (2 * n + alpha + beta + 1)
            / mpmath.gamma(n + 1)
            / mpmath.gamma(n + alpha + beta + 1)
            / mpmath.beta(alpha + 1, beta + 1)
        )
        exact = float(mpmath.jacobi(degree, alpha, beta, x) / mpmath.sqrt(norm))
    assert_allclose(
        families.jacobi(a, b).values(np.array([x]), degree + 1)[degree, 0], exact, rtol=1e-11
    )


def test_a_density_finds_the_classical_recurrences():
    for function, support, classical in [
        (np.ones_like, (-1, 1), families.legendre()),
        (lambda u: np.exp(-(u**2) / 2), (-np.inf, np.inf), families.hermite()),
        (lambda u: np.exp(-u), (0, np.inf), families.laguerre()),
        (lambda u: (1 - u) ** 2.5 * (1 + u), (-1, 1), families.jacobi(2.0, 3.5)),
    ]:
        a, b = families.density(function, support).recurrence(101)
        exact_a, exact_b = classical.recurrence(101)
        assert_allclose(a, exact_a, atol=1e-11 * np.max(exact_b))
        assert_allclose(b, exact_b, rtol=1e-11)


def test_a_table_of_all_levels_has_the_krawtchouk_polynomials():
    binomial = families.binomial(4, 0.5)  # its variance, n p (1 - p), is 1
    levels = np.arange(5.0)
    assert_allclose(binomial.values(levels, 2)[1], levels - 2, atol=1e-14)
    same_levels = families.table(levels, [1, 4, 6, 4, 1])
    assert_allclose(same_levels.values(levels, 5), binomial.values(levels, 5), atol=1e-12)


def test_the_quantile_of_a_table_steps_at_the_cumulative_mass():
    family = families.table([0.0, 1.0, 2.0], [1, 2, 1])
    probabilities = np.array([0.0, 0.2499, 0.25, 0.7499, 0.75, 1.0])
    assert family.quantile(probabilities).tolist() == [0, 0, 1, 1, 2, 2]


def test_an_unbounded_density_is_moved_by_mean_and_deviation():
    normal = families.density(lambda u: np.exp(-(u**2) / 2), (-np.inf, np.inf)).on((4.0, 6.0))
    drawn = normal.quantile(np.random.default_rng(0).random(20_000))
    assert drawn.mean() == pytest.approx(5, abs=0.03)
    assert drawn.std() == pytest.approx(1, abs=0.03)


def test_bad_parameters_are_refused_by_name():
    with pytest.raises(ParameterError, match="a=-1"):
        families.jacobi(-1, 2)
    with pytest.raises(ParameterError, match=r"p=1\.5"):
        families.bernoulli(1.5)
    with pytest.raises(
        ParameterError, match=r"domain=\(1, 0\)` is not an interval; give low < high"
    ):
        families.legendre().on((1, 0))
    with pytest.raises(ParameterError, match="increasing"):
        families.density(np.ones_like, (1, -1))
    with pytest.raises(DataError, match="none negative"):
        families.density(lambda u: u, (-1, 1))
    with pytest.raises(DataError, match="breakpoints"):
        families.density(lambda u: 1.0 + (u > 0.123), (-1, 1))
    with pytest.raises(DataError, match="NaN"):
        families.samples([0.0, np.nan])
    with pytest.raises(DataError, match="weights positive"):
        families.table([0, 1], [1, 0])


def mine(shift):
    """A user's own family: Legendre's polynomials of an input that is uniform on another interval."""
    plain = legendre()

    def recurrence(count):
        a, b = plain.recurrence(count)
        return a + shift, b

    return Family(
        name="mine",
        symbol="M",
        recurrence=recurrence,
        canonical_quantile=lambda p: 2 * p - 1 + shift,
        distribution="uniform",
    )


def test_families_of_ones_own_with_the_same_name_keep_their_own_functions():
    first, second = mine(0.0), mine(0.25)
    assert first != second
    basis = infocap.product_basis([first, second], max_degree=2)
    u = np.array([[0.5, 0.5]])
    expected = [legendre().values(np.array([x]), 3)[:, 0] for x in (0.5, 0.25)]
    assert_allclose(basis(u)[0, basis.labels.index("M2(u1)")], expected[0][2])
    assert_allclose(basis(u)[0, basis.labels.index("M2(u2)")], expected[1][2])


def test_families_are_alike_when_they_have_the_same_functions():
    own = mine(0.0)
    assert legendre() == legendre() == legendre().on((-1, 1)) != legendre().on((0, 1))
    assert jacobi(2, 3) == jacobi(2.0, 3.0) != jacobi(2, 2)
    assert table([1, 2]) == table([2, 1]) != table([1, 3])
    assert own == own.on((-1, 1)) != own.on((0, 1))
    assert replace(legendre(), recurrence=own.recurrence) != legendre()
    assert pickle.loads(pickle.dumps(legendre())) == legendre()
    assert len({legendre(), legendre(), own, mine(0.0)}) == 3


def test_a_family_of_ones_own_travels_with_its_functions():
    own = replace(legendre(), name="mine", recurrence=halves, canonical_quantile=halves)
    assert pickle.loads(pickle.dumps(own)) == own
    with pytest.raises(ParameterError, match="'legendre' is your own"):
        describe(replace(legendre(), recurrence=halves))


def halves(count):
    """A function that pickle finds by its name."""
    return np.zeros(count), np.full(count, 0.5)
