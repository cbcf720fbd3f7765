"""Data larger than memory: read in blocks that fit a budget, with the same answer."""

import _thread
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import ParameterError
from infocap.estimators._cost import parse_memory_limit
from infocap.samples import Engine, Samples, Table, omit_missing_rows

BASIS = infocap.product_basis("legendre", 3, 4)
N = 6001
K = 12
METHODS = ("raw", "threshold-richardson", "richardson-threshold", "chi2")


def data(n=N, seed=0):
    u = infocap.draw(BASIS, n, design="random", seed=seed)
    return u, infocap.systems.RandomFeatures(3, K, noise=0.01, seed=1)(u)


U, X = data()


@pytest.fixture(scope="module")
def in_memory():
    """The answers for arrays in memory."""
    return {method: infocap.estimate(U, X, BASIS, method=method) for method in METHODS}


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks and shares of a few hundred rows, so that small data make many of them."""
    monkeypatch.setattr("infocap.estimators._cost.MAX_CHUNK_BYTES", 60_000)
    monkeypatch.setattr("infocap.samples._rows.BLOCK_BYTES", 1)


def memmap(folder, values, name="x.bin", offset=0):
    path = folder / name
    with path.open("wb") as file:
        file.write(b"\0" * offset)
        values.tofile(file)
    return np.memmap(path, dtype=values.dtype, mode="r", offset=offset, shape=values.shape)


def in_hdf5(folder, values):
    import h5py

    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("a/x", data=values, chunks=(500, 5))
    return h5py.File(folder / "x.h5", "r")["a/x"]


def in_zarr(folder, values):
    import zarr

    return zarr.create_array(str(folder / "x.zarr"), data=values, chunks=(700, 12))


def in_dask(folder, values):
    import dask.array as da

    return da.from_array(in_zarr(folder, values), chunks=(900, 12))


def in_xarray(folder, values):
    import xarray as xr

    xr.Dataset({"x": (("sample", "channel"), values)}).to_netcdf(folder / "x.nc", engine="h5netcdf")
    return xr.open_dataset(folder / "x.nc", engine="h5netcdf")["x"]


KINDS = {"memmap": memmap, "hdf5": in_hdf5, "zarr": in_zarr, "dask": in_dask, "xarray": in_xarray}


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_that_of_arrays_in_memory(kind, tmp_path, small_chunks, in_memory):
    source = KINDS[kind](tmp_path, X)
    for method in ("threshold-richardson", "chi2"):
        result = infocap.estimate(U, source, BASIS, method=method, memory_limit="20MB")
        assert_allclose(result.capacity, in_memory[method].capacity, rtol=1e-10, atol=1e-13)
        assert result.checks == in_memory[method].checks


@pytest.mark.parametrize("method", METHODS)
def test_every_method_that_fits_reads_in_blocks(method, tmp_path, small_chunks, in_memory):
    result = infocap.estimate(U, memmap(tmp_path, X), BASIS, method=method, memory_limit="1GB")
    assert_allclose(result.capacity, in_memory[method].capacity, rtol=1e-9, atol=1e-12)


def test_further_arguments_go_on_working(tmp_path, small_chunks):
    x = X.copy()
    x[77, 3] = np.nan
    rng = np.random.default_rng(0)
    in_file = memmap(tmp_path, x)
    common = {"method": "chi2", "nan_policy": "omit"}
    for arguments in (
        {"time": rng.permutation(N)},
        {"sample_weight": np.ones(N), "design_index": np.arange(N)},
        {"repeats": x + 0.01 * rng.standard_normal(x.shape)},
        {"constant": False},
        {"method_options": {"jackknife": 4}},
    ):
        expected = infocap.estimate(U, x, BASIS, **common, **arguments)
        result = infocap.estimate(U, in_file, BASIS, memory_limit="50MB", **common, **arguments)
        assert_allclose(result.capacity, expected.capacity, rtol=1e-10, atol=1e-13)
        assert result.checks == expected.checks
        if "repeats" in arguments:
            noise_limit = expected.noise_limited_total
            assert result.noise_limited_total == pytest.approx(noise_limit, rel=1e-10)


def test_bad_values_are_named_by_their_row_in_the_file(tmp_path, small_chunks):
    x = X.copy()
    x[4321, 5] = np.nan
    x[5000, 1] = np.inf
    message = "2 NaN or infinite values, the first nan at row 4321, column 5"
    with pytest.raises(infocap.errors.DataError, match=message):
        infocap.estimate(U, memmap(tmp_path, x), BASIS)
    u = U.copy()
    u[3333, 1] = 1.5
    with pytest.raises(infocap.errors.DataError, match=r"u is 1\.5 at row 3333, column 1"):
        infocap.estimate(memmap(tmp_path, u), X, BASIS)


@pytest.mark.parametrize("offset", [0, 24, 5000])
def test_a_memory_map_is_read_from_its_file(offset, tmp_path):
    whole = memmap(tmp_path, X, offset=offset)
    for view in (whole, whole[100:3000]):
        table = Table(view, "x")
        assert not isinstance(table.source, np.ndarray)
        assert_allclose(table.read(10, 20), view[10:20], rtol=0)
    private = np.memmap(tmp_path / "x.bin", float, "c", offset, X.shape)
    private[5] = 7.0  # in memory only
    turned = whole[:, ::2]
    for view in (private, turned):
        assert_allclose(Table(view, "x").read(0, 9), view[:9], rtol=0)


def test_a_memory_map_that_was_written_to_is_read_as_it_is_now(tmp_path):
    array = np.memmap(tmp_path / "new.bin", float, "w+", shape=(100, 4))
    array[...] = 3.0
    assert_allclose(Table(array, "x").read(0, 100), 3.0, rtol=0)


def test_each_chunk_of_a_file_is_read_once_a_pass():
    ranges_read = []

    class SourceInChunks:
        shape = X.shape
        chunks = (700, K)

        def __getitem__(self, rows):
            ranges_read.append((rows.start, rows.stop))
            return X[rows]

    samples = Samples.of(U, SourceInChunks(), BASIS)
    ranges_read.clear()
    bytes_per_row = 8 * (K + 3)
    omit_missing_rows(samples, Engine(chunk_bytes=1500 * bytes_per_row, share_rows=300))
    starts = [start for start, _ in ranges_read]
    assert starts == list(range(0, N, 1400))  # as many whole chunks as fit into 1500 rows
    assert sum(stop - start for start, stop in ranges_read) == N


MEMORY_LIMITS = [
    ("1GB", 1_000_000_000),
    ("512 MB", 512_000_000),
    ("2GiB", 2**31),
    (1.5e9, 1_500_000_000),
    (2**30, 2**30),
]


@pytest.mark.parametrize(("memory_limit", "n_bytes"), MEMORY_LIMITS)
def test_a_memory_limit_is_understood(memory_limit, n_bytes):
    assert parse_memory_limit(memory_limit) == n_bytes


NO_MEMORY_LIMITS = ["much", "-1GB", "1GX", True, 0, "10", -5, float("nan")]


@pytest.mark.parametrize("memory_limit", NO_MEMORY_LIMITS)
def test_a_memory_limit_that_means_nothing_is_refused(memory_limit):
    with pytest.raises(ParameterError, match="memory_limit="):
        infocap.estimate(U, X, BASIS, memory_limit=memory_limit)


def test_what_cannot_fit_is_refused_with_what_would():
    large = infocap.product_basis("legendre", 5, 14)
    u = np.zeros((200, 5))
    x = np.zeros((200, 60))
    with pytest.raises(
        ParameterError,
        match=r"11,628 functions, which take \d+ MB; the first [\d,]+ functions would fit",
    ):
        infocap.estimate(u, x, large, method="raw", memory_limit="60MB")
    with pytest.raises(
        ParameterError, match=r"35 functions, which take \d+ MB; the first \d+ functions would fit"
    ):
        infocap.estimate(*data(20_000), BASIS, memory_limit="30MB")


def test_as_many_functions_as_the_message_says_fit():
    _, x = data(300)
    u = np.random.default_rng(0).uniform(-1, 1, (300, 5))
    large = infocap.product_basis("legendre", 5, 14)
    with pytest.raises(ParameterError, match="would fit") as refused:
        infocap.estimate(u, x, large, method="raw", memory_limit="20MB")
    number = re.search(r"the first ([\d,]+) functions would fit", str(refused.value))[1]
    n_that_fit = int(number.replace(",", ""))
    assert n_that_fit > 100
    smaller = infocap.product_basis("legendre", 5, indices=large.indices[:n_that_fit])
    with pytest.warns(infocap.errors.DataWarning):
        infocap.estimate(u, x, smaller, method="raw", memory_limit="20MB")


@pytest.mark.parametrize("fit", ["auto", "least-squares", "none"])
def test_the_default_method_goes_through_a_file_in_blocks(fit, tmp_path):
    u, x = data(20_000)
    result = infocap.estimate(
        u, memmap(tmp_path, x), BASIS, method_options={"fit": fit}, memory_limit="150MB"
    )
    whole = infocap.estimate(u, np.asarray(x), BASIS, method_options={"fit": fit})
    for name in ("unbiased", "standard_error", "total", "total_standard_error", "p_value"):
        assert_allclose(
            getattr(result, name), getattr(whole, name), rtol=0, atol=1e-10, err_msg=name
        )


def test_repeats_that_do_not_fit_are_refused_before_they_are_read():
    with pytest.raises(ParameterError, match="is too little"):
        infocap.estimate(
            Zeros(10**8, 3),
            Zeros(10**8, K),
            BASIS,
            method="raw",
            repeats=Zeros(10**8, K),
            memory_limit="1GB",
        )


class Zeros:
    """Many rows that take no memory; reading them can interrupt the main thread, as Ctrl-C does."""

    def __init__(self, n_rows, n_columns, interrupting_read=None):
        self.shape = (n_rows, n_columns)
        self.interrupting_read = interrupting_read
        self.n_reads = 0
        self.longest_read = 0

    def __getitem__(self, rows):
        self.n_reads += 1
        if self.n_reads == self.interrupting_read:
            _thread.interrupt_main()
        start, stop, _ = rows.indices(self.shape[0])
        self.longest_read = max(self.longest_read, stop - start)
        return np.zeros((stop - start, self.shape[1]))


def test_chunks_are_so_short_that_several_fit_into_the_memory_limit():
    u = Zeros(10**6, 3)
    x = Zeros(10**6, K)
    with pytest.raises(infocap.errors.DataError, match="no channel that changes"):
        infocap.estimate(u, x, BASIS, method="raw", memory_limit="60MB")
    bytes_per_row = 8 * (3 + K)
    n_chunks = 5  # being read, read, worked on, converted, and not freed yet
    assert n_chunks * bytes_per_row * x.longest_read < 60e6


@pytest.fixture
def signals_interrupt():
    """The usual answer to Ctrl-C, which is switched off where tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("signals_interrupt")
def test_a_pass_can_be_interrupted():
    """Ctrl-C ends it soon, though most rows are still to come, and no thread goes on reading."""
    x = Zeros(10**8, K, interrupting_read=20)
    with pytest.raises(KeyboardInterrupt):
        infocap.estimate(Zeros(10**8, 3), x, BASIS, method="raw", memory_limit="60MB")
    time.sleep(0.3)
    n_reads = x.n_reads
    time.sleep(0.3)
    assert x.n_reads == n_reads < 100


class CountingBar:
    """In place of the progress bar of tqdm."""

    rows = []  # noqa: RUF012 -- shared by all bars on purpose

    def __init__(self, **options):
        self.total = options["total"]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def update(self, n_rows):
        self.rows.append(n_rows)


def test_a_progress_bar_counts_the_rows_of_each_pass(monkeypatch):
    monkeypatch.setattr("tqdm.auto.tqdm", CountingBar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    CountingBar.rows.clear()
    infocap.estimate(U, X, BASIS, method="threshold-richardson")
    assert sum(CountingBar.rows) == 3 * N  # the scan, the sums of products, the leverages
    CountingBar.rows.clear()
    with ProcessPoolExecutor(1) as pool:  # A worker shows no bar of its own.
        infocap.estimate(U, X, BASIS, method="raw", executor=pool)
    assert sum(CountingBar.rows) == 2 * N


CHILD = """
import sys, warnings
import numpy as np
import infocap
warnings.simplefilter("ignore")
u = np.memmap(sys.argv[1] + "/u.bin", float, "r").reshape(-1, 3)
x = np.memmap(sys.argv[1] + "/x.bin", float, "r").reshape(-1, 40)
basis = infocap.product_basis("legendre", 3, 4)
infocap.estimate(u[:10_000], x[:10_000], basis, method="threshold-richardson", memory_limit=sys.argv[2])
before = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
infocap.estimate(u, x, basis, method="threshold-richardson", memory_limit=sys.argv[2])
print(before, int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells VmHWM")
def test_resident_memory_stays_within_the_budget(tmp_path):
    """960 MB of readouts under 100 MB: VmHWM, which counts mapped pages too, grows by less than the budget."""
    rng = np.random.default_rng(0)
    with (tmp_path / "u.bin").open("wb") as inputs, (tmp_path / "x.bin").open("wb") as readouts:
        for _ in range(30):
            rng.uniform(-1, 1, (100_000, 3)).tofile(inputs)
            rng.standard_normal((100_000, 40)).tofile(readouts)
    command = [sys.executable, "-c", CHILD, str(tmp_path), "100MB"]
    before, after = map(
        int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    )
    assert (after - before) * 1024 < 100e6
    assert after * 1024 < 400e6
