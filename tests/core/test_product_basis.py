"""Products of families: index sets, order, labels, values and moments."""

import json
import tracemalloc
from dataclasses import replace
from itertools import product
from math import ceil, comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import infocap
from infocap import basis as families
from infocap import product_basis
from infocap.basis._evaluate import HOST_TILES
from infocap.basis._index_sets import count_indices
from infocap.errors import DataError, ParameterError


def slow_values(basis, u):
    """Every product written out, one function at a time."""
    columns = []
    for row in basis.indices.tolist():
        product_of_factors = np.ones(len(u))
        for family, column, index in zip(basis.families, u.T, row, strict=True):
            functions = family.values(family.standard(column), index + 1)
            product_of_factors = product_of_factors * functions[index]
        columns.append(product_of_factors)
    return np.column_stack(columns)


def as_set(indices):
    return {tuple(row) for row in indices.tolist()}


@pytest.mark.parametrize(
    ("n_inputs", "degree", "size"), [(2, 14, 120), (5, 8, 1287), (1, 50, 51), (3, 0, 1)]
)
def test_total_degree_holds_binomially_many_functions(n_inputs, degree, size):
    basis = product_basis("legendre", n_inputs, degree)
    assert len(basis) == size == comb(n_inputs + degree, degree)


def test_indices_are_sorted_by_degree_then_lexicographically():
    basis = product_basis("legendre", 3, 5)
    rows = [tuple(row) for row in basis.indices.tolist()]
    assert rows == sorted(rows, key=lambda row: (sum(row), row))
    assert set(rows) == {row for row in product(range(6), repeat=3) if sum(row) <= 5}
    assert rows[0] == (0, 0, 0)
    assert basis.degrees.tolist() == [sum(row) for row in rows]
    assert basis.interactions.tolist() == [sum(index > 0 for index in row) for row in rows]


def test_hyperbolic_cross_limits_the_product_of_degrees():
    basis = product_basis("legendre", 3, 7, index_set="hyperbolic")
    expected = set()
    for first, second, third in product(range(8), repeat=3):
        if (first + 1) * (second + 1) * (third + 1) <= 8:
            expected.add((first, second, third))
    assert as_set(basis.indices) == expected


def test_a_sparse_set_is_listed_in_the_memory_of_the_set():
    tracemalloc.start()
    basis = product_basis("legendre", 3, 2000, index_set="hyperbolic")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500 * len(basis)  # bytes; all candidates would take ten times as many


def test_interactions_are_limited():
    basis = product_basis("legendre", 4, 5, max_interactions=2)
    expected = set()
    for row in product(range(6), repeat=4):
        n_interactions = sum(index > 0 for index in row)
        if sum(row) <= 5 and n_interactions <= 2:
            expected.add(row)
    assert as_set(basis.indices) == expected


def test_an_explicit_list_is_sorted_and_completed_by_the_constant():
    basis = product_basis("legendre", 2, indices=[[0, 3], [2, 1], [2, 1]])
    assert basis.indices.tolist() == [[0, 0], [0, 3], [2, 1]]
    u = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    assert_allclose(basis(u), slow_values(basis, u), atol=1e-12)


def test_labels_read_like_formulas():
    basis = product_basis(["legendre", "hermite", "fourier"], max_degree=3)
    assert basis.labels[0] == "1"
    rows = [tuple(row) for row in basis.indices.tolist()]
    label_of = dict(zip(rows, basis.labels, strict=True))
    assert label_of[1, 0, 0] == "P1(u1)"
    assert label_of[1, 2, 0] == "P1(u1)·He2(u2)"
    assert label_of[0, 1, 3] == "He1(u2)·cos2(u3)"
    assert label_of[0, 1, 4] == "He1(u2)·sin2(u3)"
    assert product_basis("legendre", 3, indices=[[1, 0, 2]]).labels[1] == "P1(u1)·P2(u3)"


MIXED = product_basis(
    [
        "legendre",
        families.hermite(),
        families.bernoulli().on((-1, 1)),
        "fourier",
        families.laguerre(2.0),
    ],
    max_degree=4,
)
BASES = {
    "legendre": product_basis("legendre", 3, 6),
    "unit-domain": product_basis("legendre", 2, 9, domain=(0, 1)),
    "mixed": MIXED,
    "hyperbolic": product_basis("chebyshev", 4, 9, index_set="hyperbolic"),
    "one-input": product_basis("laguerre", 1, 12),
    "constant-only": product_basis("legendre", 2, 0),
}


@pytest.mark.parametrize("basis", BASES.values(), ids=BASES.keys())
def test_values_are_the_products_written_out(basis):
    u = infocap.draw(basis, 100, design="random", seed=0)
    assert_allclose(basis(u), slow_values(basis, u), rtol=1e-12, atol=1e-12)


def test_values_do_not_depend_on_the_blocks(monkeypatch):
    u = np.random.default_rng(0).uniform(-1, 1, (5000, 3))
    expected = BASES["legendre"](u)
    monkeypatch.setattr("infocap.basis._product.HOST_TILES", replace(HOST_TILES, max_numbers=1))
    basis = product_basis("legendre", 3, 6)
    assert np.array_equal(basis(u), expected)
    blocks = list(basis.value_blocks(u))
    assert len(blocks) > 50
    assert np.array_equal(np.hstack(blocks).T, expected)


@pytest.mark.parametrize("max_functions", [1, 2, 5, 17, 10_000])
@pytest.mark.parametrize("basis", BASES.values(), ids=BASES.keys())
def test_tiles_of_any_size_give_the_same_values_and_sums(basis, max_functions, monkeypatch, rng):
    u = infocap.draw(basis, 300, design="random", seed=0)
    z = rng.normal(size=(300, 3))
    values = basis(u)
    sizes = replace(HOST_TILES, max_functions=max_functions, max_numbers=64 * max_functions)
    monkeypatch.setattr("infocap.basis._product.HOST_TILES", sizes)
    basis = infocap.ProductBasis(basis.families, basis.indices)  # without a plan as yet
    assert np.array_equal(basis(u), values)
    assert_allclose(basis.project([(u, z)]), values.T @ z, atol=1e-10)
    assert_allclose(basis.sum_over_samples(u, power=2), np.sum(values**2, axis=0), rtol=1e-12)


def test_projections_are_sums_over_all_pieces(rng):
    basis = BASES["mixed"]
    u = infocap.draw(basis, 300, design="random", seed=0)
    z = rng.normal(size=(300, 7))
    edges = [110, 111]
    pieces = zip(np.split(u, edges), np.split(z, edges), strict=True)
    assert_allclose(basis.project(pieces), basis(u).T @ z, atol=1e-11)


def test_several_functions_are_combined_at_once(rng):
    basis = BASES["legendre"]
    u = infocap.draw(basis, 300, design="random", seed=0)
    coefficients = rng.normal(size=(len(basis), 3))
    assert_allclose(basis.combine(u, coefficients), basis(u) @ coefficients, atol=1e-11)
    assert_allclose(basis.combine(u, coefficients[:, 1]), basis(u) @ coefficients[:, 1], atol=1e-11)


@pytest.mark.parametrize(
    "basis", [BASES["legendre"], MIXED, BASES["unit-domain"]], ids=["legendre", "mixed", "unit"]
)
def test_orthonormal_under_its_own_measure(basis):
    nodes, weights = basis.quadrature()
    values = basis(nodes)
    assert_allclose((values * weights[:, None]).T @ values, np.eye(len(basis)), atol=1e-11)


def test_fourth_moments_are_products_and_expectations():
    basis = BASES["legendre"]
    nodes, weights = basis.quadrature(13)  # exact for degree 25: 4 x 6 is needed
    assert_allclose(basis.fourth_moments, weights @ basis(nodes) ** 4, rtol=1e-12)


def test_a_basis_comes_back_from_plain_data():
    of_density = product_basis(families.density(lambda u: 1 + u, (-1, 1), max_degree=6), 2, 3)
    for basis in (MIXED, of_density):
        description = json.loads(json.dumps(basis.to_dict()))
        restored = infocap.ProductBasis.from_dict(description, basis.indices)
        u = infocap.draw(basis, 64, seed=0)
        assert np.array_equal(restored(u), basis(u))
        assert np.array_equal(infocap.draw(restored, 64, seed=0), u)


def test_a_family_of_ones_own_cannot_be_saved_and_says_so():
    own = families.Family(
        name="mine",
        symbol="M",
        recurrence=families.legendre().recurrence,
        canonical_quantile=lambda p: 2 * p - 1,
        distribution="uniform",
    )
    with pytest.raises(ParameterError, match="'mine' is your own and cannot be saved"):
        product_basis(own, 2, 3).to_dict()


def test_high_dimensions_are_quick_to_make():
    n_of_one_input = 50 * 4
    n_of_two_inputs = comb(50, 2) * 6  # six ways to share out up to 4 degrees among two inputs
    basis = product_basis("legendre", 50, 4, max_interactions=2)
    assert len(basis) == 1 + n_of_one_input + n_of_two_inputs
    assert len(product_basis("legendre", 10, 8)) == 43758


def test_a_basis_too_large_is_refused_before_it_is_made():
    with pytest.raises(ParameterError, match="11,058,116,888 functions"):
        product_basis("legendre", 30, 12)
    with pytest.raises(ParameterError, match="more than 1,000,000,000,000 functions"):
        product_basis("fourier", 40, 12)


# Choose k of 3 inputs, cosine or sine of each, and share out up to 2000 degrees among them.
N_FOURIER = sum(comb(3, k) * 2**k * comb(2000, k) for k in range(4))
ABSURD = [
    (("legendre", 3, 4000), {}, f"{comb(4003, 3):,} functions"),
    (("fourier", 3, 2000), {}, f"{N_FOURIER:,} functions"),
    (("legendre", 1000, 4000), {}, "more than 1,000,000,000,000 functions"),
    (("legendre", 100, 4000), {"max_interactions": 3}, "more than"),
    (("legendre", 10, 4000), {"index_set": "hyperbolic"}, "functions"),
    (("legendre", 40, 4000), {"index_set": "hyperbolic", "max_interactions": 2}, "functions"),
    (("bernoulli", 30, 9000), {}, "1,073,741,824 functions"),
    (("bernoulli", 90, 50), {}, "more than 1,000,000,000,000 functions"),
    (("legendre", 1, 10**12), {}, "degree 1000000000000 of one input"),
    (("legendre", 1, 9000), {}, "9,001 legendre functions of it; the limit is 4,096"),
    (("fourier", 1, 9000), {}, "18,001 fourier functions of it"),
    (("bernoulli", 30, 10**9), {"index_set": "hyperbolic"}, "less than 1,000,000"),
]


@pytest.mark.parametrize(("arguments", "options", "message"), ABSURD)
def test_an_absurd_degree_is_refused_before_anything_is_listed(arguments, options, message):
    with pytest.raises(ParameterError, match=message):
        product_basis(*arguments, **options)


def test_indices_that_do_not_fit_are_refused_not_wrapped():
    assert product_basis("legendre", 1, indices=[[4095]]).indices.tolist() == [[0], [4095]]
    with pytest.raises(ParameterError, match="4,097 legendre functions"):
        product_basis("legendre", 1, indices=[[4096]])
    with pytest.raises(ParameterError, match="40,001 fourier functions"):
        product_basis("fourier", 1, 20_000)


KINDS = {  # a family, how many functions it has of each degree, and its highest degree
    "legendre": ("legendre", 1, 99),
    "fourier": ("fourier", 2, 99),
    "bernoulli": ("bernoulli", 1, 1),
    "four levels": (families.table([0, 1, 2, 5]), 1, 3),
}


@given(
    index_set=st.sampled_from(["total", "hyperbolic"]),
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4),
    max_degree=st.integers(0, 6),
    max_interactions=st.none() | st.integers(1, 4),
)
def test_the_set_is_that_of_its_definition_and_is_counted_right(
    index_set, kinds, max_degree, max_interactions
):
    chosen = [KINDS[kind] for kind in kinds]
    basis = product_basis(
        [family for family, _, _ in chosen],
        max_degree=max_degree,
        index_set=index_set,
        max_interactions=max_interactions,
    )
    functions_of_inputs = []  # of each input: (index, degree) of every function
    for _, per_degree, highest in chosen:
        count = per_degree * min(max_degree, highest) + 1
        functions_of_inputs.append([(index, ceil(index / per_degree)) for index in range(count)])
    expected = set()
    for functions in product(*functions_of_inputs):
        degrees = [degree for _, degree in functions]
        n_interactions = sum(degree > 0 for degree in degrees)
        if index_set == "total":
            inside = sum(degrees) <= max_degree
        else:
            inside = prod(degree + 1 for degree in degrees) <= max_degree + 1
        if inside and n_interactions <= (max_interactions or len(kinds)):
            expected.add(tuple(index for index, _ in functions))
    assert as_set(basis.indices) == expected
    assert len(basis) == len(expected)
    count = count_indices(basis.families, max_degree, index_set, max_interactions)
    assert count == len(expected)


def test_bad_arguments_are_refused_by_name():
    with pytest.raises(ParameterError, match="family='legendr'` is not one of 'legendre'"):
        product_basis("legendr", 2, 3)
    with pytest.raises(ParameterError, match=r"family='unifrom'.*'uniform'"):
        product_basis("unifrom", 2, 3)
    with pytest.raises(ParameterError, match=r"infocap\.basis\.jacobi\(\.\.\.\)"):
        product_basis("jacobi", 2, 3)
    with pytest.raises(ParameterError, match=r"max_degree=2\.5"):
        product_basis("legendre", 2, 2.5)
    with pytest.raises(ParameterError, match="max_degree=None"):
        product_basis("legendre", 2)
    with pytest.raises(ParameterError, match="n_inputs=3` but 2 families"):
        product_basis(["legendre", "hermite"], 3, 2)
    with pytest.raises(ParameterError, match="n_inputs=0` must be a whole number"):
        product_basis("legendre", 0, 2)
    with pytest.raises(ParameterError, match=r"such as legendre\(\)"):
        product_basis(families.legendre, 2, 2)
    with pytest.raises(ParameterError, match="max_degree=nan"):
        product_basis("legendre", 2, float("nan"))
    with pytest.raises(ParameterError, match="is not an interval"):
        product_basis("legendre", 2, 2, domain=[(0, 1), (0, 2)])
    with pytest.raises(ParameterError, match="index_set='sparse'"):
        product_basis("legendre", 2, 3, index_set="sparse")
    with pytest.raises(ParameterError, match="degree 3 is above 1"):
        product_basis("bernoulli", 2, indices=[[3, 0]])
    with pytest.raises(ParameterError, match="run from -1 to 0; degrees are between 0 and 32767"):
        product_basis("legendre", 2, indices=[[-1, 0]])
    with pytest.raises(DataError, match=r"shape \(5, 3\)"):
        product_basis("legendre", 2, 3)(np.zeros((5, 3)))


def test_a_measure_on_few_levels_has_few_degrees():
    assert product_basis("bernoulli", 3, 3).max_degree == 3
    assert len(product_basis("bernoulli", 3, 3)) == 8


def test_another_number_of_inputs_is_refused_and_not_cut():
    basis = product_basis("legendre", 2, 3)
    with pytest.raises(DataError, match=r"u has shape \(5, 3\); the basis needs \(samples, 2\)"):
        basis.combine(np.zeros((5, 3)), np.ones(len(basis)))


def test_functions_are_found_in_another_basis_whatever_the_order_of_the_indices_in_memory():
    basis = product_basis("legendre", 3, 4)
    few = basis.subset(np.array([0, 2, 5, 30]))
    column_by_column = infocap.ProductBasis(basis.families, np.asfortranarray(basis.indices))
    for many in (basis, column_by_column):
        assert few.positions_in(many).tolist() == [0, 2, 5, 30]
        assert np.flatnonzero(many.positions_in(few) >= 0).tolist() == [0, 2, 5, 30]
