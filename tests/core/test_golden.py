"""Golden numbers: every method, basis and source of data gives the numbers that were written down.

The numbers lie in golden.npz. `python tests/core/test_golden.py` computes them anew with the
package that Python finds; do that only where numbers are meant to change, and say in the commit
which and why.

All methods run on arrays in memory. The ways of running (files, executors, other array libraries,
threads) share the passes over the rows, so two methods that make all of these passes are enough
for them.
"""

import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

import infocap

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")

FILE = Path(__file__).with_name("golden.npz")
PER_TERM = ("capacity", "raw", "standard_error", "p_value", "threshold")
SINGLE = ("total", "total_standard_error", "rank", "n_samples", "noise_limited_total")
# Capacities are of the order of 1, and sums of thousands of products keep 12 digits in any order.
TOLERANCE = 1e-10
# A condition number of 1e10 leaves 6 of 16 digits to the weakest direction: 5e-6 was seen with three
# threads.
TOLERANCE_OF_NEARLY_DEPENDENT = 5e-5

# A new method joins when its numbers are frozen.
FROZEN_METHODS = ("raw", "threshold-richardson", "richardson-threshold", "control-variate", "chi2")
METHODS = {name: {"method": name} for name in FROZEN_METHODS} | {
    "surrogate": {"method": "surrogate", "method_options": {"n_surrogates": 30}},
    "least-squares": {"method": "control-variate", "method_options": {"fit": "least-squares"}},
    "no-fit": {"method": "control-variate", "method_options": {"fit": "none"}},
    "jackknife": {"method": "threshold-richardson", "method_options": {"jackknife": 8}},
    "bound-of-the-data": {"method": "threshold-richardson", "method_options": {"bound": "data"}},
}


def features(u, n_readouts, noise, seed):
    """Return readouts (samples, readouts): tanh of random mixtures of the inputs, with noise."""
    generator = np.random.default_rng(seed)
    weights = generator.normal(size=(u.shape[1], n_readouts))
    offsets = generator.normal(size=n_readouts)
    mixtures = u @ weights + offsets
    return np.tanh(mixtures) + noise * generator.normal(size=mixtures.shape)


def on_one_net(draw, basis, n_samples, seed, **options):
    """Draw at the points of one Sobol net in its own order, whatever the designs are now."""
    points = qmc.Sobol(basis.n_inputs, scramble=True, rng=seed).random(n_samples)
    with patch("infocap.designs._points", lambda *_, **__: points):
        return draw(basis, n_samples, **options)


def legendre():
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=6)
    u = on_one_net(infocap.draw, basis, 512, seed=1)
    return u, features(u, 9, 0.02, seed=2), basis, {}


def hermite():
    basis = infocap.product_basis("hermite", n_inputs=3, max_degree=4)
    u = np.random.default_rng(3).normal(size=(701, 3))
    return u, features(u, 12, 0.1, seed=4), basis, {}


def mixed():
    families = ["fourier", infocap.basis.table([0.0, 1.0, 3.0, 4.5], [1, 2, 2, 1]), "legendre"]
    basis = infocap.product_basis(families, max_degree=4)
    u = on_one_net(infocap.draw, basis, 1024, seed=5)
    return u, features(np.column_stack([np.sin(u[:, 0]), u]), 7, 0.05, seed=6), basis, {}


def few_samples():
    """Two samples per function."""
    basis = infocap.product_basis("legendre", n_inputs=5, max_degree=4)
    u = np.random.default_rng(7).uniform(-1, 1, size=(256, 5))
    return u, features(u, 20, 0.01, seed=8), basis, {}


def weighted():
    basis = infocap.product_basis("hermite", n_inputs=2, max_degree=6)
    u, weights = on_one_net(infocap.draw_weighted, basis, 512, seed=9, share=1.0)
    return u, features(u, 8, 0.05, seed=10), basis, {"sample_weight": weights}


def without_constant():
    u, x, basis, _ = mixed()
    return u, x + 3.0, basis, {"constant": False}


def nearly_dependent():
    """A condition number of about 1e10, for which the readouts themselves are factored."""
    u, x, basis, _ = legendre()
    mixtures = x @ np.random.default_rng(11).normal(size=(9, 2))
    deviations = np.column_stack([u[:, 0] ** 3, u[:, 1] ** 4])
    return u, np.column_stack([x, mixtures + 1e-10 * deviations]), basis, {}


def ill_conditioned():
    """A condition number of about 1e4, for which sums of products do, in a frame of the readouts."""
    u, x, basis, _ = legendre()
    nearly_the_first = x[:, 0] + 1e-4 * u[:, 0] ** 3
    return u, np.column_stack([x, nearly_the_first]), basis, {}


def constant_channel():
    u, x, basis, _ = hermite()
    return u, np.column_stack([x[:, :5], np.full(len(x), 0.7), x[:, 5:]]), basis, {}


def repeated():
    u, x, basis, _ = legendre()
    repeats = x + 0.02 * np.random.default_rng(12).normal(size=x.shape)
    not_repeated = np.random.default_rng(13).permutation(len(x)) % 3 == 0
    repeats[not_repeated] = np.nan
    return u, x, basis, {"repeats": repeats}


def rows_missing():
    u, x, basis, _ = hermite()
    missing = np.random.default_rng(14).integers(0, len(x), 20)
    x[missing, 3] = np.nan
    time = np.random.default_rng(15).permutation(len(x))
    return u, x, basis, {"nan_policy": "omit", "time": time}


def several_blocks():
    """More rows than are worked on at a time."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    u = np.random.default_rng(16).uniform(-1, 1, size=(20_001, 2))
    return u, features(u, 40, 0.1, seed=17), basis, {}


def sorted_rows():
    """Rows sorted by an input, so that the groups of the default method are random."""
    u, x, basis, _ = several_blocks()
    order = np.argsort(u[:5000, 1])
    weights = np.random.default_rng(18).uniform(0.8, 1.2, 5000)
    return u[order], x[order], basis, {"sample_weight": weights / weights.mean()}


CASES = {
    make_case.__name__: cache(make_case)
    for make_case in (
        legendre,
        hermite,
        mixed,
        few_samples,
        weighted,
        without_constant,
        nearly_dependent,
        ill_conditioned,
        constant_channel,
        repeated,
        rows_missing,
        several_blocks,
        sorted_rows,
    )
}
IMPOSSIBLE = {("weighted", "surrogate"), ("sorted_rows", "surrogate")}  # these take no weights
PAIRS = [(case, method) for case in CASES for method in METHODS if (case, method) not in IMPOSSIBLE]
# Between them these two methods make all passes over the rows.
RUN_EVERYWHERE = ("control-variate", "threshold-richardson")
PAIRS_RUN_EVERYWHERE = [(case, method) for case, method in PAIRS if method in RUN_EVERYWHERE]


def estimated(case, method, u=None, x=None, **ways):
    """The result for a case, with its inputs and readouts in another form if these are given."""
    case_u, case_x, basis, options = CASES[case]()
    u = case_u if u is None else u
    x = case_x if x is None else x
    return infocap.estimate(u, x, basis, **options, **METHODS[method], **ways)


@pytest.fixture(scope="module")
def frozen():
    with np.load(FILE) as file:
        return dict(file)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Inputs and readouts of a case in NumPy files that are read in blocks."""
    folder = tmp_path_factory.mktemp("golden")

    @cache
    def opened(case):
        u, x, _, _ = CASES[case]()
        np.save(folder / f"{case}-u.npy", u)
        np.save(folder / f"{case}-x.npy", x)
        return [np.load(folder / f"{case}-{name}.npy", mmap_mode="r") for name in ("u", "x")]

    return opened


@pytest.fixture(scope="module")
def executors():
    with ExitStack() as stack:
        forkserver = get_context("forkserver")
        forkserver.set_forkserver_preload(["infocap"])
        yield {
            "threads": stack.enter_context(ThreadPoolExecutor(3)),
            "processes": stack.enter_context(ProcessPoolExecutor(2, forkserver)),
        }


def numbers(result, names):
    """What a result says under these names, one row per name; NaN where it says nothing."""
    values = [getattr(result, name) for name in names]
    size = max(np.size(value) for value in values if value is not None)
    rows = np.full((len(names), size), np.nan)
    for row, value in zip(rows, values, strict=True):
        if value is not None:
            row[:] = np.ravel(value)
    return rows


def assert_golden(result, frozen, case, method):
    is_nearly_dependent = case == "nearly_dependent"
    tolerance = TOLERANCE_OF_NEARLY_DEPENDENT if is_nearly_dependent else TOLERANCE
    for names in (PER_TERM, SINGLE):
        expected_rows = frozen[f"{case}/{method}/{names[0]}"]
        rows = numbers(result, names)
        for name, row, expected in zip(names, rows, expected_rows, strict=True):
            assert_allclose(row, expected, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(("case", "method"), PAIRS)
def test_numpy_arrays_give_the_golden_numbers(case, method, frozen):
    assert_golden(estimated(case, method), frozen, case, method)


@pytest.mark.parametrize(("case", "method"), PAIRS_RUN_EVERYWHERE)
def test_arrays_of_another_library_give_the_golden_numbers(case, method, frozen):
    strict = pytest.importorskip("array_api_strict")
    u, x, _, _ = CASES[case]()
    result = estimated(case, method, strict.asarray(u), strict.asarray(x))
    assert_golden(result, frozen, case, method)


@pytest.mark.parametrize(("case", "method"), PAIRS_RUN_EVERYWHERE)
def test_files_within_a_memory_limit_give_the_golden_numbers(case, method, frozen, saved):
    result = estimated(case, method, *saved(case), memory_limit="120MB")
    assert_golden(result, frozen, case, method)


@pytest.mark.parametrize("workers", ["threads", "processes"])
@pytest.mark.parametrize(("case", "method"), PAIRS_RUN_EVERYWHERE)
def test_executors_give_the_golden_numbers(case, method, workers, frozen, executors):
    result = estimated(case, method, executor=executors[workers])
    assert_golden(result, frozen, case, method)


@pytest.mark.parametrize("method", RUN_EVERYWHERE)
def test_threads_of_this_process_give_the_golden_numbers(method, frozen):
    """As many as the matrix library would use; `make test` gives it one."""
    with threadpool_limits(2, user_api="blas"):
        assert_golden(estimated("several_blocks", method), frozen, "several_blocks", method)


def freeze():
    """Write the numbers of NumPy arrays to the file."""
    warnings.simplefilter("ignore")
    arrays = {}
    for case, method in PAIRS:
        result = estimated(case, method)
        for names in (PER_TERM, SINGLE):
            arrays[f"{case}/{method}/{names[0]}"] = numbers(result, names)
    np.savez_compressed(FILE, **arrays)


if __name__ == "__main__":
    freeze()
