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


def highest_degree(family, degree):
    """The degree, or the highest that a family on few levels has."""
    if family.largest_degree is None:
        return degree
    return min(degree, family.largest_degree)


@every_family
def test_orthonormal_up_to_degree_50(family):
    degree = highest_degree(family, 50)
    nodes, weights = family.quadrature(degree + 1)
    values = family.values(nodes, family.count(degree))
    gram = (values * weights) @ values.T
    assert_allclose(gram, np.eye(len(gram)), atol=1e-10)


@every_family
def test_moved_domain_changes_the_inputs_and_not_the_functions(family):
    moved = family.on((3.0, 7.0))
    probabilities = np.linspace(0.05, 0.95, 7)
    expected = family.standard(family.quantile(probabilities))
    assert_allclose(moved.standard(moved.quantile(probabilities)), expected, atol=1e-12)
    u = np.array([3.5])
    assert_allclose(moved.natural(moved.standard(u)), u, rtol=1e-14)


@every_family
def test_samples_follow_the_measure(family):
    """Means of the first functions over a fine grid of probabilities vanish, as orthonormality wants."""
    probabilities = (np.arange(200_000) + 0.5) / 200_000
    u = family.quantile(probabilities)
    n_functions = family.count(highest_degree(family, 3))
    values = family.values(family.standard(u), n_functions)
    tolerance = 1e-3
    if np.isinf(family.support).any():
        tolerance = 2e-3  # the grid ends before the tails
    mean_of_first_is_one = np.eye(n_functions)[0]
    assert_allclose(values.mean(axis=1), mean_of_first_is_one, atol=tolerance)
    assert_allclose((values**2).mean(axis=1), 1.0, atol=30 * tolerance)


@every_family
def test_pickles_and_files_bring_the_same_family_back(family):
    for variant in (family, family.on((2.0, 5.0))):
        basis = families.product_basis(variant, 2, highest_degree(variant, 2))
        values = variant.quantile(np.linspace(0.1, 0.9, 9))
        u = np.column_stack([values, values])
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


def wigner_3j_squared(degree, j):
    """(l l 2j; 0 0 0)² with l the degree, as a fraction, from its closed form."""
    g = degree + j  # half the sum of the three angular momenta
    ratio = Fraction(
        factorial(2 * g - 2 * degree) ** 2 * factorial(2 * g - 4 * j),
        factorial(2 * g + 1),
    )
    root = Fraction(factorial(g), factorial(g - degree) ** 2 * factorial(g - 2 * j))
    return ratio * root**2


@pytest.mark.parametrize("degree", [0, 1, 2, 7, 14, 30, 50])
def test_fourth_moments_of_legendre_are_the_papers_wigner_formula(degree):
    total = Fraction(0)
    for j in range(degree + 1):
        total += (4 * j + 1) * wigner_3j_squared(degree, j) ** 2
    exact = (2 * degree + 1) ** 2 * total
    moments = families.legendre().fourth_moments(degree + 1)
    assert_allclose(moments[degree], float(exact), rtol=1e-12)


def test_fourth_moments_known_in_closed_form():
    assert_allclose(families.hermite().fourth_moments(3), [1, 3, 15])
    assert_allclose(families.laguerre().fourth_moments(3), [1, 9, 297])
    assert_allclose(families.fourier().fourth_moments(9), [1.0] + 8 * [1.5])
    p = 0.2
    variance = p * (1 - p)
    of_first_degree = families.bernoulli(p).fourth_moments(2)[1]
    assert_allclose(of_first_degree, (1 - 3 * variance) / variance)


# Orthonormal functions in as many digits as mpmath works with.
def precise_legendre(degree, x):
    return mpmath.sqrt(2 * degree + 1) * mpmath.legendre(degree, x)


def precise_hermite(degree, x):
    norm_squared = mpmath.mpf(2) ** degree * mpmath.factorial(degree)
    return mpmath.hermite(degree, x / mpmath.sqrt(2)) / mpmath.sqrt(norm_squared)


def precise_chebyshev(degree, x):
    return mpmath.sqrt(2) * mpmath.chebyt(degree, x)


def precise_laguerre(degree, x):
    return (-1) ** degree * mpmath.laguerre(degree, 0, x)


def precise_jacobi(degree, x, a, b):
    alpha = b - 1
    beta = a - 1
    n = mpmath.mpf(degree)
    norm_squared = mpmath.gamma(n + alpha + 1) * mpmath.gamma(n + beta + 1)
    norm_squared /= (2 * n + alpha + beta + 1) * mpmath.gamma(n + 1)
    norm_squared /= mpmath.gamma(n + alpha + beta + 1) * mpmath.beta(alpha + 1, beta + 1)
    return mpmath.jacobi(degree, alpha, beta, x) / mpmath.sqrt(norm_squared)


@pytest.mark.parametrize("degree", [1, 7, 20, 50])
@pytest.mark.parametrize(
    ("name", "precise", "points"),
    [
        ("legendre", precise_legendre, [-0.9999, -0.31, 0.0, 0.77, 1.0]),
        ("hermite", precise_hermite, [-5.9994, -1.86, 0.0, 4.62, 6.0]),
        ("chebyshev", precise_chebyshev, [-0.9999, -0.31, 0.0, 0.77, 1.0]),
        ("laguerre", precise_laguerre, [0.002, 13.8, 20.0, 35.4, 40.0]),
    ],
    ids=["legendre", "hermite", "chebyshev", "laguerre"],
)
def test_values_agree_with_high_precision(name, precise, points, degree):
    values = FAMILIES[name].values(np.array(points), degree + 1)[degree]
    with mpmath.workdps(60):
        exact = [float(precise(degree, x)) for x in points]
    assert_allclose(values, exact, rtol=1e-10, atol=1e-10 * degree)


def test_jacobi_agrees_with_high_precision():
    degree = 50
    x = 0.37
    values = families.jacobi(2.0, 3.5).values(np.array([x]), degree + 1)
    with mpmath.workdps(60):
        exact = float(precise_jacobi(degree, x, a=2.0, b=3.5))
    assert_allclose(values[degree, 0], exact, rtol=1e-11)


CLASSICAL_DENSITIES = {
    "legendre": (np.ones_like, (-1, 1)),
    "hermite": (lambda u: np.exp(-(u**2) / 2), (-np.inf, np.inf)),
    "laguerre": (lambda u: np.exp(-u), (0, np.inf)),
    "jacobi": (lambda u: (1 - u) ** 2.5 * (1 + u), (-1, 1)),
}


@pytest.mark.parametrize("name", CLASSICAL_DENSITIES)
def test_a_density_finds_the_classical_recurrences(name):
    density, support = CLASSICAL_DENSITIES[name]
    a, b = families.density(density, support).recurrence(101)
    exact_a, exact_b = FAMILIES[name].recurrence(101)
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
    standard_normal = families.density(lambda u: np.exp(-(u**2) / 2), (-np.inf, np.inf))
    normal = standard_normal.on((4.0, 6.0))  # mean 5, standard deviation 1
    n = 20_000
    u = normal.quantile(np.random.default_rng(0).random(n))
    assert abs(u.mean() - 5) < 4 / np.sqrt(n)
    assert abs(u.std() - 1) < 4 / np.sqrt(2 * n)


def test_bad_parameters_are_refused_by_name():
    with pytest.raises(ParameterError, match="a=-1"):
        families.jacobi(-1, 2)
    with pytest.raises(ParameterError, match=r"p=1\.5"):
        families.bernoulli(1.5)
    message = r"domain=\(1, 0\)` is not an interval; give low < high"
    with pytest.raises(ParameterError, match=message):
        families.legendre().on((1, 0))
    with pytest.raises(ParameterError, match="low below high"):
        families.density(np.ones_like, (1, -1))
    with pytest.raises(DataError, match="none negative"):
        families.density(lambda u: u, (-1, 1))
    with pytest.raises(DataError, match="breakpoints"):
        families.density(lambda u: 1.0 + (u > 0.123), (-1, 1))
    with pytest.raises(DataError, match="NaN"):
        families.samples([0.0, np.nan])
    with pytest.raises(DataError, match="weights positive"):
        families.table([0, 1], [1, 0])


def shifted_legendre(shift):
    """A user's own family: Legendre's polynomials of an input that is uniform on another interval."""

    def recurrence(count):
        a, b = legendre().recurrence(count)
        return a + shift, b

    return Family(
        name="mine",
        symbol="M",
        recurrence=recurrence,
        canonical_quantile=lambda p: 2 * p - 1 + shift,
        distribution="uniform",
        support=(shift - 1, shift + 1),
    )


def test_families_of_ones_own_with_the_same_name_keep_their_own_functions():
    first = shifted_legendre(0.0)
    second = shifted_legendre(0.25)
    assert first != second
    basis = infocap.product_basis([first, second], max_degree=2)
    values = basis(np.array([[0.5, 0.5]]))[0]
    expected = legendre().values(np.array([0.5, 0.25]), 3)[2]
    assert_allclose(values[basis.labels.index("M2(u1)")], expected[0])
    assert_allclose(values[basis.labels.index("M2(u2)")], expected[1])


def test_families_are_alike_when_they_have_the_same_functions():
    own = shifted_legendre(0.0)
    assert legendre() == legendre()
    assert legendre() == legendre().on((-1, 1))
    assert legendre() != legendre().on((0, 1))
    assert jacobi(2, 3) == jacobi(2.0, 3.0)
    assert jacobi(2, 3) != jacobi(2, 2)
    assert table([1, 2]) == table([2, 1])
    assert table([1, 2]) != table([1, 3])
    assert own == own.on((-1, 1))
    assert own != own.on((0, 1))
    assert replace(legendre(), recurrence=own.recurrence) != legendre()
    assert pickle.loads(pickle.dumps(legendre())) == legendre()
    assert len({legendre(), legendre(), own, shifted_legendre(0.0)}) == 3


@pytest.mark.parametrize("support", [(-1, 1), (-np.inf, 0), (-4, 4)])
def test_a_support_that_the_quantiles_leave_is_refused(support):
    message = (
        r"`support=.*` of the family 'hermite' does not hold its quantiles, .*-4\.75.* to 4\.75"
    )
    with pytest.raises(ParameterError, match=message):
        replace(families.hermite(), support=support)


def halves(count):
    """A function that pickle finds by its name."""
    return np.zeros(count), np.full(count, 0.5)


def uniform(p):
    """Another one."""
    return 2 * p - 1


def test_a_family_of_ones_own_travels_with_its_functions():
    own = replace(legendre(), name="mine", recurrence=halves, canonical_quantile=uniform)
    assert pickle.loads(pickle.dumps(own)) == own
    with pytest.raises(ParameterError, match="'legendre' is your own"):
        describe(replace(legendre(), recurrence=halves))
