"""Summaries: independent of the split, of units, offsets, order and mixing, and of where the data live."""

from itertools import pairwise

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import estimate_with

import infocap
from infocap import draw, estimate, product_basis
from infocap._arrays import cholesky, invert_triangle, plus_transpose, solve_triangle
from infocap.estimators import _evidence as evidence_module
from infocap.estimators import gather_evidence
from infocap.kernels import (
    MAX_CONDITION_OF_PRODUCTS as GOOD_CONDITION,
)
from infocap.kernels import (
    Moments,
    benjamini_hochberg,
    capacities,
    combine,
    condition_margin,
    coordinates,
    span,
    squared_mean_from_stretches,
    summarise,
)
from infocap.samples import Engine
from infocap.systems import RandomFeatures

BASIS = infocap.product_basis("legendre", 2, 6)


def normal_tables(n, readouts, terms, seed):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, readouts)) * np.logspace(-3, 3, readouts)
    return x, generator.normal(size=(n, terms))


def split_rows(x, y, sizes):
    edges = np.cumsum([0, *sizes])
    return [(x[a:b], y[a:b]) for a, b in pairwise(edges)]


@given(sizes=st.lists(st.integers(1, 60), min_size=2, max_size=5), seed=st.integers(0, 999))
def test_capacities_do_not_depend_on_the_split(sizes, seed):
    sizes = [*sizes, 20]
    x, y = normal_tables(sum(sizes), readouts=7, terms=11, seed=seed)
    parts = [summarise(x_part, y_part) for x_part, y_part in split_rows(x, y, sizes)]
    assert_allclose(capacities(combine(*parts)), capacities(summarise(x, y)), rtol=1e-10)


def test_combining_does_not_depend_on_the_order():
    x, y = normal_tables(90, 5, 8, 0)
    parts = [summarise(x_part, y_part) for x_part, y_part in split_rows(x, y, [30, 30, 30])]
    first, second, third = parts
    in_order = combine(combine(first, second), third)
    in_other_order = combine(third, first, second)
    assert_allclose(capacities(in_other_order), capacities(in_order), rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 7, 40, 150])
def test_condition_numbers_below_a_limit_are_told_from_others(size, rng):
    for spread in (0.0, 0.1, 2.0):
        columns = rng.normal(size=(2 * size, size)) * np.exp(spread * rng.normal(size=size))
        gram = columns.T @ columns
        condition = np.linalg.cond(columns / np.linalg.norm(columns, axis=0))
        assert np.isnan(condition_margin(condition * (1 - 1e-9), gram))
        assert condition_margin(size**0.25 * condition * (1 + 1e-9), gram) > 0


def test_a_moderate_offset_of_the_readouts_costs_no_digits(rng):
    centred = rng.normal(size=(500, 20))
    centred -= centred.mean(axis=0)
    condition = np.linalg.cond(centred / np.linalg.norm(centred, axis=0))
    for offset in (0.0, 1.0, 30.0):
        x = np.column_stack([np.ones(500), centred + offset])
        factor = np.sqrt(1 + offset**2 / centred.var(axis=0).min())
        limit = 20**0.25 * condition * factor
        assert condition_margin(limit * (1 + 1e-9), x.T @ x, constant=True) > 0
        assert np.isnan(condition_margin(condition * factor / 1.01, x.T @ x, constant=True))


@pytest.mark.parametrize("size", [1, 5, 64, 65, 150])
def test_triangles_are_factored_solved_and_inverted_block_by_block(size, rng):
    columns = rng.normal(size=(2 * size, size)) * np.exp(rng.normal(size=size))
    matrix = columns.T @ columns
    penalty = rng.uniform(size=size)
    lower = cholesky(matrix, penalty)
    assert_allclose(lower @ lower.T, matrix + np.diag(penalty), rtol=1e-10, atol=1e-10)
    assert_allclose(lower, np.tril(lower))
    right = rng.normal(size=(size, 3))
    assert_allclose(lower @ solve_triangle(lower, right), right, atol=1e-9)
    assert_allclose(lower.T @ solve_triangle(lower, right, transposed=True), right, atol=1e-9)
    assert_allclose(lower.T @ invert_triangle(lower.T), np.eye(size), atol=1e-9)
    matrix[-1, -1] = -1.0
    assert np.isnan(cholesky(matrix)).all()


@pytest.mark.parametrize("size", [1, 127, 300])
def test_a_matrix_is_added_to_its_transpose_in_blocks(size):
    matrix = np.random.default_rng(0).standard_normal((size, size))
    expected = matrix + matrix.T
    read_only = matrix.copy()
    read_only.flags.writeable = False  # as arrays may be that come from another process
    assert np.array_equal(plus_transpose(read_only), expected)
    assert np.array_equal(plus_transpose(matrix), expected)


def test_large_sums_are_added_in_parts_and_in_place():
    """They are larger than the least that several threads share, and no multiple of the parts."""
    rng = np.random.default_rng(0)
    gram = rng.standard_normal((1101, 1000))
    first = Moments(gram.copy(), np.ones((3, 1000)), 5)
    second = Moments(rng.standard_normal(gram.shape), np.ones((3, 1000)), 7)
    own_memory = first.gram
    total = first.absorb(second)
    assert total.gram is own_memory
    assert np.array_equal(total.gram, gram + second.gram)
    assert total.n_samples == 12


@pytest.mark.parametrize("size", [5, 121])
def test_solving_with_a_failed_factorisation_gives_nan_and_no_error(size):
    assert np.isnan(solve_triangle(np.full((size, size), np.nan), np.ones((size, 2)))).all()


P_VALUES = {
    "uniform": np.random.default_rng(0).uniform(size=200),
    "some small": np.random.default_rng(1).uniform(size=200) ** 6,
    "all alike": np.full(20, 0.03),
    "ties": np.repeat([1e-4, 0.004, 0.02, 0.9], 5),
    "ends": np.array([0.0, 1.0, 0.0, 1.0]),
    "a single one": np.array([0.04]),
}


@pytest.mark.parametrize("p", P_VALUES.values(), ids=P_VALUES.keys())
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
def test_false_discoveries_are_controlled_as_in_scipy(p, rate):
    from scipy.stats import false_discovery_control

    expected = false_discovery_control(p) <= rate
    assert np.array_equal(benjamini_hochberg(p, rate), expected)


MOMENTS = product_basis("legendre", 2, 5)


def device(kind, n=3000, k=12):
    """Readouts of random features with some defect."""
    u = draw(MOMENTS, n, design="random", seed=3)
    x = RandomFeatures(2, k, gain=1.5, noise=1e-3)(u, seed=3)
    rng = np.random.default_rng(0)
    if kind == "mixed":  # condition number 1e5 and more, offsets and units
        rotation = np.linalg.qr(rng.normal(size=(k, k)))[0]
        x = x @ (rotation * np.logspace(0, -5, k)) * 1e-9 + 1e-3
    elif kind == "outlier":  # which the random sample of rows misses
        x[1234] += 1e7
    elif kind == "asleep":  # most rows show almost nothing
        x[: n - 200] *= 1e-6
    elif kind == "dependent":
        x[:, 3] = x[:, 4] + x[:, 5]
    elif kind == "nearly":
        x[:, 3] = x[:, 4] * (1 + 1e-9 * rng.normal(size=n))
    return u, x


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
@pytest.mark.parametrize("kind", ["plain", "mixed", "outlier", "asleep", "dependent", "nearly"])
@pytest.mark.parametrize("method", ["raw", "threshold-richardson"])
def test_sums_of_products_give_what_factoring_every_block_gives(kind, method, monkeypatch):
    u, x = device(kind)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(u))
    weights /= weights.mean()
    all_options = [{}, {"constant": False}, {"sample_weight": weights}]
    by_products = [estimate(u, x, MOMENTS, method=method, **options) for options in all_options]
    monkeypatch.setattr(
        "infocap.estimators._evidence.choose_preconditioner", lambda samples, look: None
    )
    by_factoring = [estimate(u, x, MOMENTS, method=method, **options) for options in all_options]
    for result, expected in zip(by_products, by_factoring, strict=True):
        assert result.rank == expected.rank
        assert_allclose(result.raw, expected.raw, rtol=1e-10, atol=1e-10)
        assert_allclose(result.capacity, expected.capacity, rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
@pytest.mark.parametrize(
    ("kind", "by_products"),
    [("plain", True), ("mixed", True), ("outlier", False), ("dependent", False), ("nearly", False)],
)
def test_readouts_too_nearly_dependent_for_sums_of_products_are_noticed(
    kind, by_products, monkeypatch
):
    bounds = []
    margin = Moments.margin

    def margin_that_is_noted(self, constant):
        bound = margin(self, constant)
        bounds.append(bound)
        return bound

    monkeypatch.setattr(Moments, "margin", margin_that_is_noted)
    estimate(*device(kind), MOMENTS, method="raw")
    was_good = len(bounds) == 3 and all(bound < GOOD_CONDITION for bound in bounds)
    assert was_good == by_products


@pytest.mark.parametrize(
    ("share_of_noise", "n_tries"),
    [(1.0, 1), (3e-3, 2), (1e-12, 1)],
    ids=["uncorrelated", "correlated", "nearly dependent"],
)
def test_many_channels_need_no_random_sample_of_rows(share_of_noise, n_tries, rng, monkeypatch):
    """All rows say whether the readouts must be made less correlated, or factored."""
    u = rng.uniform(-1, 1, (2100, 2))
    x = np.tanh(u @ rng.normal(size=(2, 500)))
    x += share_of_noise * rng.normal(size=x.shape)
    passes = []
    fold = Engine.fold

    def fold_that_is_counted(self, samples, work, *arguments):
        if getattr(work, "func", None) is evidence_module._moments:
            passes.append(work)
        return fold(self, samples, work, *arguments)

    monkeypatch.setattr(Engine, "fold", fold_that_is_counted)
    evidence = gather_evidence(u, x, MOMENTS)
    assert evidence.column_statistics.sample is None
    assert len(passes) == n_tries
    monkeypatch.setattr(evidence_module, "choose_preconditioner", lambda samples, look: None)
    assert_allclose(evidence.raw, gather_evidence(u, x, MOMENTS).raw, rtol=1e-10, atol=1e-10)


def test_coordinates_are_those_of_the_projection(rng):
    x = rng.normal(size=(100, 4))
    y = rng.normal(size=(100, 3))
    summary = summarise(x, y)
    fit = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    inside = coordinates(summary, span(summary))
    assert_allclose(inside.T @ inside, fit.T @ fit / 100, atol=1e-12)


def system(u):
    generator = np.random.default_rng(1)
    return (
        np.tanh(u @ generator.normal(size=(2, 12)) + generator.normal(size=12))
        + 0.01 * u[:, :1] ** 3
    )


U = infocap.draw(BASIS, 1024, seed=2)
X = system(U) + 1e-3 * np.random.default_rng(3).normal(size=(1024, 12))


@pytest.fixture(scope="module")
def whole():
    """The answer of arrays in memory, all at once."""
    return infocap.estimate(U, X, BASIS, method="threshold-richardson")


MIX = np.random.default_rng(4).normal(size=(12, 12))

CHANGED = {
    "times 1e-12": X * 1e-12,
    "times 1e+12": X * 1e12,
    "times 1e-200": X * 1e-200,
    "offset 1e6": X + 1e6,
    "12 decades of scales": X * np.logspace(-6, 6, 12),
    "offset and scales": (X + 1e3 * np.arange(12)) * np.logspace(6, -6, 12),
    "reversed order": X[:, ::-1],
    "mixed": X @ MIX,
    "mixed, scaled, shifted": (X @ MIX) * 1e-9 + 1e-7,
    "constant column already there": np.column_stack([X, np.full(1024, 3.3)]),
}


@pytest.mark.parametrize("x", CHANGED.values(), ids=CHANGED.keys())
def test_the_answer_does_not_depend_on_how_the_readouts_are_written(x, whole):
    result = infocap.estimate(U, x, BASIS, method="threshold-richardson")
    assert_allclose(result.raw, whole.raw, atol=1e-8)
    assert_allclose(result.capacity, whole.capacity, atol=1e-8)
    assert result.maximum == result.rank == 13


def test_a_duplicated_channel_adds_nothing(whole):
    with pytest.warns(infocap.errors.DataWarning, match="only 13 of 14 readouts"):
        result = infocap.estimate(
            U, np.column_stack([X, -2 * X[:, 3]]), BASIS, method="threshold-richardson"
        )
    assert_allclose(result.capacity, whole.capacity, atol=1e-10)


def test_without_the_constant_scales_do_not_matter_either(whole):
    plain = infocap.estimate(U, X, BASIS, constant=False)
    assert plain.n_readouts == 12
    scaled = infocap.estimate(U, X * np.logspace(-6, 6, 12), BASIS, constant=False)
    assert_allclose(scaled.raw, plain.raw, atol=1e-10)
    with_ones = np.column_stack([np.ones(1024), X])
    result = infocap.estimate(U, with_ones, BASIS, constant=False)
    assert_allclose(result.raw, whole.raw, atol=1e-10)


def test_small_shares_give_the_same_answer(whole):
    result = estimate_with(Engine(share_rows=37), U, X, BASIS)
    assert_allclose(result.raw, whole.raw, rtol=1e-10)
    assert_allclose(result.capacity, whole.capacity, rtol=1e-10)
    assert_allclose(result.threshold, whole.threshold, rtol=1e-10)


def sources(folder):
    """The same readouts in every container people use."""
    import dask.array
    import zarr

    np.save(folder / "x.npy", X)
    with h5py.File(folder / "x.h5", "w") as file:
        file["x"] = X
    stored = zarr.create_array(str(folder / "x.zarr"), data=X, chunks=(100, 12))
    return {
        "list": X.tolist(),
        "memmap": np.load(folder / "x.npy", mmap_mode="r"),
        "h5py": h5py.File(folder / "x.h5")["x"],
        "zarr": stored,
        "dask": dask.array.from_array(X, chunks=(100, 5)),
        "pandas": pd.DataFrame(X, columns=[f"ch{i}" for i in range(12)]),
        "xarray": xr.DataArray(X, dims=("sample", "channel")),
        "fortran order": np.asfortranarray(X),
        "a view": np.repeat(X, 2, axis=0)[::2],
    }


def test_any_container_is_read_in_chunks(tmp_path, whole):
    for name, source in sources(tmp_path).items():
        result = estimate_with(Engine(chunk_bytes=12_000, share_rows=50), U, source, BASIS)
        assert_allclose(result.capacity, whole.capacity, rtol=1e-10, err_msg=name)


def test_nothing_larger_than_a_chunk_is_read(monkeypatch):
    lengths = []

    class SourceThatNotesWhatIsRead:
        shape = X.shape

        def __getitem__(self, rows):
            block = X[rows]
            lengths.append(len(block))
            return block

    monkeypatch.setattr("infocap.diagnostics._excerpt.MAX_ROWS_FROM_FILES", 100)
    engine = Engine(chunk_bytes=1, share_rows=64)
    estimate_with(engine, U, SourceThatNotesWhatIsRead(), BASIS)
    assert 0 < max(lengths) <= 100


def noise_free(n=2048):
    """Smooth features whose scaled triangle has a condition number of about 1e9: the last directions matter."""
    u = infocap.draw(BASIS, n, seed=0)
    generator = np.random.default_rng(0)
    gain = 0.2 * generator.normal(size=(2, 25))
    bias = generator.normal(size=25)
    return u, np.tanh(u @ gain + bias)


def test_nearly_dependent_readouts_keep_all_their_directions():
    u, x = noise_free()
    result = infocap.estimate(u, x, BASIS)
    with_constant = np.column_stack([np.ones(len(x)), x])
    left, singular, _ = np.linalg.svd(with_constant, full_matrices=False)
    assert singular[-1] < 1e-8 * singular[0]
    exact = np.sum((left.T @ BASIS(u)) ** 2, axis=0) / len(x)
    assert result.rank == 26
    assert_allclose(result.raw, exact, atol=1e-6)


def test_a_large_offset_costs_no_more_digits_than_it_must():
    """Readouts rounded at offset 1e6 keep 1e-10; an unshifted factorisation would lose the small directions."""
    u, x = noise_free()
    x = np.round(x * 2**20) / 2**20  # so that adding and subtracting 2^20 is exact
    plain = infocap.estimate(u, x, BASIS)
    with_offset = infocap.estimate(u, x + 2**20, BASIS)
    assert_allclose(with_offset.raw, plain.raw, atol=1e-9)
    assert with_offset.rank == plain.rank


@pytest.mark.parametrize(("noise", "rank"), [(1e-13, 14), (1e-17, 13)])
def test_the_rank_is_decided_near_rounding(noise, rank, recwarn):
    copy = X[:, 0] + noise * np.random.default_rng(0).normal(size=len(X))
    assert infocap.estimate(U, np.column_stack([X, copy]), BASIS).rank == rank


def test_several_threads_at_once_give_the_same_answer_and_leave_the_library_alone():
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    with ThreadPoolExecutor(6) as pool:
        results = list(
            pool.map(
                lambda _: infocap.estimate(U, X, BASIS, method="threshold-richardson"), range(30)
            )
        )
    for result in results:
        assert np.array_equal(result.raw, results[0].raw)
    assert threads() == before


FORKED = """
import multiprocessing, numpy as np, infocap
basis = infocap.product_basis("legendre", 2, 4)
u = infocap.draw(basis, 4096, seed=0)
x = infocap.systems.RandomFeatures(2, 20)(u)
def total(_):
    return infocap.estimate(u, x, basis, method="threshold-richardson").total
here = total(0)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(total, range(2)) == [here, here]
"""


@pytest.mark.thorough
def test_a_forked_process_can_estimate_too():
    import subprocess
    import sys

    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True, timeout=60)


def test_a_source_that_is_no_array_is_read_by_one_thread_at_a_time(whole):
    import time

    class SourceOfOneReader:
        shape = X.shape
        is_busy = False

        def __getitem__(self, rows):
            assert not self.is_busy
            self.is_busy = True
            time.sleep(1e-3)
            self.is_busy = False
            return X[rows]

    result = estimate_with(Engine(chunk_bytes=1, share_rows=64), U, SourceOfOneReader(), BASIS)
    assert_allclose(result.raw, whole.raw, rtol=1e-10)


def test_narrow_types_are_computed_in_double():
    single = X.astype(np.float32)
    levels = np.round(X * 1000).astype(np.int16)
    for narrow in (single, levels):
        result = infocap.estimate(U, narrow, BASIS)
        expected = infocap.estimate(U, narrow.astype(float), BASIS)
        assert_allclose(result.raw, expected.raw, rtol=1e-12)


def test_squared_means_from_stretches_hold_no_noise_and_their_error_is_right():
    generator = np.random.default_rng(5)
    n_sets, n_stretches, n_functions = 2000, 24, 30
    for mean in (0.0, 0.3):
        sums = generator.standard_normal((n_sets, n_stretches, n_functions)) + mean
        estimates = []
        variances = []
        for vectors in sums / n_stretches:
            products = vectors @ vectors.T
            estimate, error = squared_mean_from_stretches(products, np.full(24, 1 / 24))
            estimates.append(estimate)
            variances.append(error**2)
        scatter = np.std(estimates)
        exact = n_functions * mean**2
        assert abs(np.mean(estimates) - exact) < 4 * scatter / np.sqrt(n_sets)
        # The larger of two estimates of the variance is too large by a little.
        assert 0.95 < np.sqrt(np.mean(variances)) / scatter < 1.3


def test_stretches_of_different_lengths_count_by_their_lengths():
    fractions = np.array([0.1, 0.2, 0.3, 0.4])
    vectors = fractions[:, None] * np.array([3.0, 4.0])
    square, error = squared_mean_from_stretches(vectors @ vectors.T, fractions)
    assert_allclose(square, 25.0)
    second_order = np.sqrt(2 * np.sum((vectors @ vectors.T) ** 2 * (1 - np.eye(4)))) / 0.7
    assert_allclose(error, second_order)
