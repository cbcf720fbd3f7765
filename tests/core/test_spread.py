"""Work spread out over threads, processes and Dask workers: the same answer, also when workers are lost."""

import os
import pickle
import signal
import warnings
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError, ParameterError

BASIS = infocap.product_basis("legendre", 3, 4)
N = 5003
K = 10
U = infocap.draw(BASIS, N, design="random", seed=0)
X = infocap.systems.RandomFeatures(3, K, noise=0.01, seed=1)(U)
ALGORITHM_1 = "threshold-richardson"
# Bytes of a task that is sent with the names of its files.
MAX_BYTES_WITHOUT_ROWS = 12_000
METHODS = ("raw", "threshold-richardson", "richardson-threshold", "chi2", "control-variate")


@cache
def plain_result(method):
    return infocap.estimate(U, X, BASIS, method=method)


FORKSERVER = get_context("forkserver")
FORKSERVER.set_forkserver_preload(["infocap"])


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, FORKSERVER) as pool:
        yield pool


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                processes=False,
                dashboard_address=":0",
                worker_dashboard_address=None,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


def on_disk(folder, values, name="x"):
    np.save(folder / f"{name}.npy", values)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def assert_as_in_one_process(result, method):
    expected = plain_result(method)
    assert_allclose(result.capacity, expected.capacity, rtol=1e-10, atol=1e-13)
    assert_allclose(result.raw, expected.raw, rtol=1e-10, atol=1e-13)
    if expected.total_standard_error is not None:
        total_error = expected.total_standard_error
        assert_allclose(result.standard_error, expected.standard_error, atol=1e-12)
        assert result.total_standard_error == pytest.approx(total_error, abs=1e-11)
    assert result.checks == expected.checks


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("workers", [2, 3])
def test_threads_give_the_same_answer(method, workers):
    with ThreadPoolExecutor(workers) as pool:
        result = infocap.estimate(U, X, BASIS, method=method, executor=pool)
    assert_as_in_one_process(result, method)


@pytest.mark.parametrize("method", METHODS)
def test_processes_give_the_same_answer(method, processes, tmp_path):
    x = on_disk(tmp_path, X)
    result = infocap.estimate(U, x, BASIS, method=method, executor=processes)
    assert_as_in_one_process(result, method)


def test_dask_gives_the_same_answer(client, tmp_path):
    x = on_disk(tmp_path, X)
    for method in METHODS:
        result = infocap.estimate(U, x, BASIS, method=method, executor=client)
        assert_as_in_one_process(result, method)


def test_further_arguments_go_along(processes):
    x = X.copy()
    x[77, 3] = np.nan
    rng = np.random.default_rng(0)
    for arguments in (
        {"time": rng.permutation(N), "sample_weight": np.ones(N)},
        {"design_index": np.arange(N), "repeats": x + 0.01 * rng.standard_normal(x.shape)},
        {"constant": False, "method_options": {"jackknife": 4}},
        {"memory_limit": "50MB"},
    ):
        arguments |= {"method": "chi2", "nan_policy": "omit"}
        expected = infocap.estimate(U, x, BASIS, **arguments)
        result = infocap.estimate(U, x, BASIS, executor=processes, **arguments)
        assert_allclose(result.capacity, expected.capacity, rtol=1e-10, atol=1e-13)
        assert result.checks == expected.checks


class InlineExecutor(Executor):
    """Computes a task as soon as it is submitted, and notes its size as a pickle."""

    _max_workers = 4

    def __init__(self):
        self.sizes = []

    def submit(self, function, *arguments, **_):
        self.sizes.append(len(pickle.dumps((function, arguments))))
        future = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as problem:
            future.set_exception(problem)
        return future


def files(folder):
    import dask.array as da
    import h5py
    import xarray as xr
    import zarr

    with h5py.File(folder / "x.h5", "w") as file:
        file["x"] = X
    array = zarr.create_array(str(folder / "x.zarr"), data=X, chunks=(700, K))

    lazy = da.from_zarr(str(folder / "x.zarr"))
    return {
        "memmap": on_disk(folder, X),
        "slice of a memmap": on_disk(folder, np.vstack([X, X]), "twice")[N:],
        "hdf5": h5py.File(folder / "x.h5", "r")["x"],
        "zarr": array,
        "dask": lazy,
        "xarray": xr.DataArray(lazy, dims=("sample", "channel")),
    }


@pytest.mark.thorough
def test_files_travel_as_their_names_and_arrays_as_the_rows_needed(tmp_path):
    inputs = on_disk(tmp_path, U, "u")
    for name, source in files(tmp_path).items():
        executor = InlineExecutor()
        result = infocap.estimate(inputs, source, BASIS, method=ALGORITHM_1, executor=executor)
        assert_as_in_one_process(result, ALGORITHM_1)
        n_passes = 3
        assert max(executor.sizes) < MAX_BYTES_WITHOUT_ROWS, name
        assert len(executor.sizes) == n_passes * executor._max_workers, name
    executor = InlineExecutor()
    result = infocap.estimate(U, X, BASIS, method="raw", executor=executor)
    assert_as_in_one_process(result, "raw")
    bytes_of_share = (U.nbytes + X.nbytes) / executor._max_workers
    assert max(executor.sizes) < bytes_of_share + MAX_BYTES_WITHOUT_ROWS


def test_errors_from_workers_are_those_of_one_process(processes, tmp_path):
    x = X.copy()
    x[4321, 5] = np.nan
    message = "1 NaN or infinite values, the first nan at row 4321, column 5"
    for source in (x, on_disk(tmp_path, x)):
        with pytest.raises(DataError, match=message):
            infocap.estimate(U, source, BASIS, executor=processes)
    u = U.copy()
    u[3333, 1] = 1.5
    with pytest.raises(DataError, match=r"u is 1\.5 at row 3333, column 1"):
        infocap.estimate(u, X, BASIS, executor=processes)


def test_a_file_that_workers_do_not_see_is_named(tmp_path):
    class ExecutorThatMovesFiles(InlineExecutor):
        def submit(self, function, *arguments, **_):
            for file in tmp_path.glob("*.npy"):
                file.rename(tmp_path / "gone")
            return super().submit(function, *arguments)

    with pytest.raises(DataError, match=r"x.npy cannot be read here .* put it on a shared disk"):
        infocap.estimate(U, on_disk(tmp_path, X), BASIS, executor=ExecutorThatMovesFiles())


class DeadlySource:
    """Readouts whose reader kills its process, once, when it comes to the last rows."""

    sent_by_name = True
    shape = X.shape

    def __init__(self, folder, values):
        self.path = Path(folder, "x.npy")
        self.mark = Path(folder, "died")
        np.save(self.path, values)
        self.main_process = os.getpid()

    def __getitem__(self, rows):
        is_worker = os.getpid() != self.main_process
        if is_worker and rows.stop > N - 10 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.load(self.path, mmap_mode="r")[rows]


@pytest.mark.thorough
def test_a_killed_process_is_said_and_a_new_pool_gives_the_answer(tmp_path):
    source = DeadlySource(tmp_path, X)
    with (
        ProcessPoolExecutor(2, FORKSERVER) as pool,
        pytest.raises(BrokenExecutor, match="terminated abruptly") as broken,
    ):
        infocap.estimate(U, source, BASIS, method=ALGORITHM_1, executor=pool)
    assert "A worker ended before its work was done" in broken.value.__notes__[0]
    with ProcessPoolExecutor(2, FORKSERVER) as pool:
        result = infocap.estimate(U, source, BASIS, method=ALGORITHM_1, executor=pool)
    assert_as_in_one_process(result, ALGORITHM_1)
    assert source.mark.exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_killed_dask_worker_changes_nothing(tmp_path):
    distributed = pytest.importorskip("distributed")
    source = DeadlySource(tmp_path, X)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        result = infocap.estimate(U, source, BASIS, method=ALGORITHM_1, executor=client)
    assert_as_in_one_process(result, ALGORITHM_1)
    assert source.mark.exists()


@pytest.mark.thorough
def test_arrays_in_a_cluster_are_reduced_there(client, monkeypatch):
    import dask.array as da
    from distributed.sizeof import sizeof

    here = infocap.draw(BASIS, 16 * 4096, design="random", seed=5)
    measured = infocap.systems.RandomFeatures(3, K, noise=0.01, seed=1)(here)
    expected = infocap.estimate(here, measured, BASIS, method="raw")
    x = client.persist(da.from_array(measured, chunks=(4000, 4)))
    u = client.persist(da.from_array(here, chunks=(10_000, 3)))
    bytes_fetched = []
    gather = type(client)._gather

    async def gather_and_note_size(self, *arguments, **options):
        """What comes from the workers to this process, by whatever call."""
        fetched = await gather(self, *arguments, **options)
        bytes_fetched.append(sizeof(fetched))
        return fetched

    monkeypatch.setattr(type(client), "_gather", gather_and_note_size)
    for inputs, readouts in ((here, x), (u, x), (u, measured)):
        bytes_fetched.clear()
        result = infocap.estimate(inputs, readouts, BASIS, method="raw", executor=client)
        assert_allclose(result.capacity, expected.capacity, rtol=1e-10, atol=1e-13)
        assert 0 < sum(bytes_fetched) < 0.75 * here.nbytes
    x.compute()
    assert sum(bytes_fetched) > measured.nbytes  # A whole array would have been noticed.


def test_rows_keep_their_order_wherever_blocks_lie(client):
    """Blocks lie on workers by turns; what is dropped and weighted must still be the right rows."""
    import dask.array as da

    rng = np.random.default_rng(0)
    x = X.copy()
    x[rng.integers(0, N, 40), 3] = np.nan
    weights = rng.uniform(0.5, 1.5, N)
    weights /= weights.mean()
    arguments = {"method": "chi2", "nan_policy": "omit", "sample_weight": weights}
    plain = infocap.estimate(U, x, BASIS, **arguments)
    there = client.persist(da.from_array(x, chunks=(100, K)))
    result = infocap.estimate(U, there, BASIS, executor=client, **arguments)
    assert_allclose(result.capacity, plain.capacity, rtol=1e-10, atol=1e-13)
    assert result.checks == plain.checks


def test_a_client_in_use_takes_the_work_on_dask_arrays(client, monkeypatch):
    import dask.array as da

    calls = []
    compute = type(client).compute

    def compute_and_note(*arguments, **options):
        calls.append(arguments)
        return compute(*arguments, **options)

    monkeypatch.setattr(type(client), "compute", compute_and_note)
    lazy = da.from_array(X, chunks=(800, K))
    assert_as_in_one_process(infocap.estimate(U, lazy, BASIS, method="raw"), "raw")
    assert calls
    calls.clear()
    assert_as_in_one_process(infocap.estimate(U, X, BASIS, method="raw"), "raw")
    assert not calls


@pytest.mark.filterwarnings("ignore:the capacities sum to")
def test_a_sweep_runs_on_a_cluster(client):
    from functools import partial

    make = partial(infocap.systems.RandomFeatures, 3, noise=0.01)
    settings = {"n_readouts": [2, 4]}
    plain = infocap.sweep(make, settings, BASIS, 256, seed=1, progress=False, method="raw")
    spread = infocap.sweep(
        make, settings, BASIS, 256, seed=1, progress=False, method="raw", executor=client
    )
    assert_allclose(spread.totals, plain.totals, rtol=1e-12)


def test_what_cannot_work_is_refused():
    with pytest.raises(
        ParameterError,
        match=r"must be a concurrent\.futures\.Executor or a dask\.distributed\.Client",
    ):
        infocap.estimate(U, X, BASIS, executor=4)
    strict = pytest.importorskip("array_api_strict")
    with (
        ThreadPoolExecutor(2) as pool,
        pytest.raises(ParameterError, match="cannot work on arrays that lie on a device"),
    ):
        infocap.estimate(U, strict.asarray(X), BASIS, method="raw", executor=pool)


def test_what_cannot_be_pickled_is_refused(tmp_path):
    class Local(infocap.ProductBasis):
        def __reduce__(self):
            raise TypeError("cannot pickle this basis")

    basis = Local(BASIS.families, np.array(BASIS.indices))
    with pytest.raises(
        ParameterError, match=r"cannot be sent to other processes .*cannot pickle this basis"
    ):
        infocap.estimate(U, X, basis, method="raw", executor=InlineExecutor())


def test_a_file_open_for_writing_is_refused(tmp_path):
    import h5py

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = X
        with pytest.raises(ParameterError, match="open for writing"):
            infocap.estimate(U, file["x"], BASIS, executor=InlineExecutor())


def test_an_executor_that_was_shut_down_is_named():
    pool = ThreadPoolExecutor(2)
    pool.shutdown()
    with pytest.raises(infocap.errors.ParameterError, match="the executor was shut down"):
        infocap.estimate(U, X, BASIS, method="raw", executor=pool)
