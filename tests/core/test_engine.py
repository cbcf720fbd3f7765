"""`Engine.fold` alone: every row once and in order, whoever computes and wherever the rows are."""

import operator
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import infocap
from infocap.samples import Engine, Samples

BASIS = infocap.product_basis("legendre", 1, 2)
N_SAMPLES = 1003
U = np.linspace(-1, 1, N_SAMPLES)[:, None]
X = np.column_stack([np.arange(N_SAMPLES), np.arange(N_SAMPLES) ** 2]).astype(float)
ALL_ROWS = list(range(N_SAMPLES))


class RowsInAFile:
    """Rows that must be read, and that come in chunks of 100."""

    shape = X.shape
    chunks = (100, 2)
    sent_by_name = True

    def __getitem__(self, rows):
        return X[rows]


def rows_of(samples, start, stop):
    """The numbers of the rows in a range, as a list: its sum is a concatenation."""
    return samples.x.read(start, stop)[:, 0].astype(int).tolist()


def ranges_of(samples, start, stop):
    """The range itself, in rows of the whole data set."""
    return [(samples.first_row + start, samples.first_row + stop)]


class InlineExecutor(Executor):
    """Computes a task as soon as it is submitted."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


@pytest.fixture(scope="module")
def cluster_client():
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "dashboard_address": ":0", "worker_dashboard_address": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(n_workers=3, threads_per_worker=1, **options) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def process_pool():
    with ProcessPoolExecutor(2, get_context("forkserver")) as pool:
        yield pool


@pytest.fixture(scope="module")
def thread_pool():
    with ThreadPoolExecutor(2) as pool:
        yield pool


ENGINES = ["one thread", "three threads", "thread pool", "process pool", "inline", "cluster"]


@pytest.fixture(params=ENGINES)
def engine(request):
    small = {"share_rows": 37, "chunk_bytes": 3000}
    if request.param == "one thread":
        return Engine(threads=1, **small)
    if request.param == "three threads":
        return Engine(threads=3, **small)
    if request.param == "thread pool":
        return Engine(request.getfixturevalue("thread_pool"), **small)
    if request.param == "process pool":
        return Engine(request.getfixturevalue("process_pool"), **small)
    if request.param == "inline":
        return Engine(InlineExecutor(), **small)
    return Engine(request.getfixturevalue("cluster_client"), **small)


@pytest.mark.parametrize("x", [X, RowsInAFile()], ids=["array", "file"])
def test_every_row_is_visited_once_and_in_order(engine, x):
    samples = Samples.of(U, x, BASIS)
    assert engine.fold(samples, rows_of) == ALL_ROWS


@pytest.mark.parametrize("x", [X, RowsInAFile()], ids=["array", "file"])
def test_edges_give_one_outcome_for_each_interval(engine, x):
    samples = Samples.of(U, x, BASIS)
    outcomes = engine.fold(samples, rows_of, operator.add, edges=[10, 11, 500, 990])
    assert outcomes == [[10], ALL_ROWS[11:500], ALL_ROWS[500:990]]


@pytest.mark.parametrize("x", [X, RowsInAFile()], ids=["array", "file"])
def test_intervals_are_read_in_one_pass(x):
    edges = [0, 250, 500, 750, N_SAMPLES]
    ranges = Engine(share_rows=64).fold(Samples.of(U, x, BASIS), ranges_of, edges=edges)
    for (first, last), interval in zip(pairwise(edges), ranges, strict=True):
        assert interval[0][0] == first
        assert interval[-1][1] == last
        assert all(0 < stop - start <= 64 for start, stop in interval)


def test_no_share_crosses_from_one_run_to_the_next():
    basis = infocap.delayed_basis("legendre", max_delay={1: 3})
    lengths = (200, 50, 753)
    generator = np.random.default_rng(0)
    u = [generator.uniform(-1, 1, n) for n in lengths]
    x = [generator.normal(size=(n, 2)) for n in lengths]
    samples = Samples.of(u, x, basis)
    run_starts = [0, 197, 244]
    assert samples.runs.tolist() == run_starts
    for edges in (None, [0, 300, samples.n_samples]):
        outcome = Engine(share_rows=60).fold(samples, ranges_of, edges=edges)
        ranges = outcome if edges is None else outcome[0] + outcome[1]
        ends = [stop for _, stop in ranges]
        assert [start for start, _ in ranges] == [0, *ends[:-1]]
        assert set(run_starts[1:]) <= set(ends)
        if edges is not None:
            assert 300 in ends


def test_inputs_of_a_share_have_the_history_of_their_run():
    """Functions of the past are the same, however the rows are cut."""
    basis = infocap.delayed_basis("legendre", max_delay={1: 3, 2: 2})
    generator = np.random.default_rng(0)
    u = [generator.uniform(-1, 1, n) for n in (200, 80)]
    x = [generator.normal(size=(n, 2)) for n in (200, 80)]
    samples = Samples.of(u, x, basis)
    expected = np.concatenate([basis(run) for run in u])

    def values(samples, start, stop):
        return [np.hstack(list(samples.function_values(start, stop))).T]

    shares = Engine(share_rows=7).fold(samples, values)
    np.testing.assert_allclose(np.concatenate(shares), expected, rtol=1e-12, atol=1e-12)


def test_an_error_in_the_work_leaves_the_matrix_library_as_it_was():
    def fail(samples, start, stop):
        raise ZeroDivisionError

    def n_matrix_threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = n_matrix_threads()
    with pytest.raises(ZeroDivisionError) as caught:
        Engine(share_rows=100).fold(Samples.of(U, X, BASIS), fail)
    assert caught.traceback  # so that the frames of the pass still exist
    assert n_matrix_threads() == before
