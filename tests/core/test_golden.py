"""Golden numbers: every method, basis and source of data gives what it gave before the code was rearranged.

The numbers lie in golden.npz. `python tests/test_golden.py` computes them anew with the package that Python finds; do
that only where numbers are meant to change, and say in the commit which and why.
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
# Capacities are of the order of 1 and sums of thousands of products keep 12 digits, in whatever order they are added.
TOLERANCE = 1e-10
# A condition number of 1e10 leaves 6 of 16 digits to the weakest direction: 5e-6 was seen with three threads.
TOLERANCE_OF_NEARLY_DEPENDENT = 5e-5

METHODS = {name: {"method": name} for name in infocap.estimators.METHODS} | {
    "surrogate": {"method": "surrogate", "method_options": {"n_surrogates": 30}},
    "least-squares": {"method": "control-variate", "method_options": {"fit": "least-squares"}},
    "no-fit": {"method": "control-variate", "method_options": {"fit": "none"}},
    "jackknife": {"method": "threshold-richardson", "method_options": {"jackknife": 8}},
    "bound-of-the-data": {"method": "threshold-richardson", "method_options": {"bound": "data"}},
}


def features(u, n_readouts, noise, seed):
    """Readouts of a made-up device, (samples, readouts): tanh of random mixtures of the inputs, with noise."""
    rng = np.random.default_rng(seed)
    mixed = u @ rng.normal(size=(u.shape[1], n_readouts)) + rng.normal(size=n_readouts)
    return np.tanh(mixed) + noise * rng.normal(size=mixed.shape)


def on_one_net(draw, basis, n_samples, seed):
    """Draw at the points of one Sobol net in its own order, where the numbers were computed, whatever designs are now."""
    points = qmc.Sobol(basis.n_inputs, scramble=True, rng=seed).random(n_samples)
    with patch("infocap.designs._points", lambda *_: points):
        return draw(basis, n_samples)


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
    u, weights = on_one_net(infocap.draw_weighted, basis, 512, seed=9)
    return u, features(u, 8, 0.05, seed=10), basis, {"sample_weight": weights}


def without_constant():
    u, x, basis, _ = mixed()
    return u, x + 3.0, basis, {"constant": False}


def nearly_dependent():
    """A condition number of about 1e10: sums of products do not do, the readouts themselves are factorised."""
    u, x, basis, _ = legendre()
    extra = x @ np.random.default_rng(11).normal(size=(9, 2)) + 1e-10 * np.column_stack(
        [u[:, 0] ** 3, u[:, 1] ** 4]
    )
    return u, np.column_stack([x, extra]), basis, {}


def ill_conditioned():
    """A condition number of about 1e4: sums of products do, in a frame of the readouts."""
    u, x, basis, _ = legendre()
    return u, np.column_stack([x, x[:, 0] + 1e-4 * u[:, 0] ** 3]), basis, {}


def constant_channel():
    u, x, basis, _ = hermite()
    return u, np.column_stack([x[:, :5], np.full(len(x), 0.7), x[:, 5:]]), basis, {}


def repeated():
    u, x, basis, _ = legendre()
    again = x + 0.02 * np.random.default_rng(12).normal(size=x.shape)
    again[np.random.default_rng(13).permutation(len(x)) % 3 == 0] = np.nan
    return u, x, basis, {"repeats": again}


def rows_missing():
    u, x, basis, _ = hermite()
    x[np.random.default_rng(14).integers(0, len(x), 20), 3] = np.nan
    order = np.random.default_rng(15).permutation(len(x))
    return u, x, basis, {"nan_policy": "omit", "time": order}


def several_blocks():
    """More rows than are worked on at a time."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    u = np.random.default_rng(16).uniform(-1, 1, size=(20_001, 2))
    return u, features(u, 40, 0.1, seed=17), basis, {}


MAKERS = [
    legendre,
    hermite,
    mixed,
    few_samples,
    weighted,
    without_constant,
    nearly_dependent,
    ill_conditioned,
]
MAKERS += [constant_channel, repeated, rows_missing, several_blocks]
CASES = {case.__name__: cache(case) for case in MAKERS}
LEFT_OUT = {("weighted", "surrogate")}  # shuffles take no weights
PAIRS = [(case, method) for case in CASES for method in METHODS if (case, method) not in LEFT_OUT]
# Every way of running shares the passes over the rows, which these two methods make between them; the others read off
# the same sums.
RUN_EVERYWHERE = ("control-variate", "threshold-richardson")
PAIRS_RUN_EVERYWHERE = [(case, method) for case, method in PAIRS if method in RUN_EVERYWHERE]


def estimated(case, method, change=lambda u, x: (u, x), **further):
    u, x, basis, options = CASES[case]()
    return infocap.estimate(*change(u, x), basis, **options, **METHODS[method], **further)


@pytest.fixture(scope="module")
def frozen():
    with np.load(FILE) as file:
        return dict(file)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The file of a case: written at its first use, read in blocks from then on."""
    folder = tmp_path_factory.mktemp("golden")

    @cache
    def opened(case):
        u, x, _, _ = CASES[case]()
        infocap.Recording(u, x, np.arange(len(u))).save(folder / f"{case}.nc")
        np.save(folder / f"{case}.npy", x)
        recording = infocap.read(folder / f"{case}.nc", in_memory=False)
        return recording.inputs, recording.readouts, np.load(folder / f"{case}.npy", mmap_mode="r")

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
    return np.array(
        [np.full(size, np.nan) if v is None else np.ravel(v) for v in values], dtype=float
    )


def same(result, frozen, case, method):
    tolerance = TOLERANCE_OF_NEARLY_DEPENDENT if case == "nearly_dependent" else TOLERANCE
    for names in (PER_TERM, SINGLE):
        expected = frozen[f"{case}/{method}/{names[0]}"]
        for name, found, row in zip(names, numbers(result, names), expected, strict=True):
            assert_allclose(found, row, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(("case", "method"), PAIRS)
def test_numpy_arrays(case, method, frozen):
    same(estimated(case, method), frozen, case, method)


@pytest.mark.parametrize(("case", "method"), PAIRS_RUN_EVERYWHERE)
def test_arrays_of_another_library(case, method, frozen):
    strict = pytest.importorskip("array_api_strict")
    result = estimated(case, method, lambda u, x: (strict.asarray(u), strict.asarray(x)))
    same(result, frozen, case, method)


@pytest.mark.parametrize(("case", "method"), PAIRS_RUN_EVERYWHERE)
def test_files_within_a_memory_budget(case, method, frozen, saved):
    u, _, mapped = saved(case)
    same(
        estimated(case, method, lambda *_: (u, mapped), memory_limit="120MB"), frozen, case, method
    )


@pytest.mark.parametrize("workers", ["threads", "processes"])
@pytest.mark.parametrize(("case", "method"), PAIRS_RUN_EVERYWHERE)
def test_executors(case, method, workers, frozen, executors):
    same(estimated(case, method, executor=executors[workers]), frozen, case, method)


@pytest.mark.parametrize("method", RUN_EVERYWHERE)
def test_threads_of_this_process(method, frozen):
    """As many as the matrix library would use; `make test` gives it one."""
    with threadpool_limits(2, user_api="blas"):
        same(estimated("several_blocks", method), frozen, "several_blocks", method)


def freeze():
    """Write the numbers of NumPy arrays to the file."""
    warnings.simplefilter("ignore")
    found = {}
    for case, method in PAIRS:
        result = estimated(case, method)
        found |= {
            f"{case}/{method}/{names[0]}": numbers(result, names) for names in (PER_TERM, SINGLE)
        }
    np.savez_compressed(FILE, **found)


if __name__ == "__main__":
    freeze()
