"""Data larger than memory: read in blocks that fit a budget, with the same answer."""

import _thread
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import infocap
from infocap.errors import ParameterError
from infocap.estimators._cost import byte_count
from infocap.lab.cli import main
from infocap.samples import Engine, FileRows, Samples, Table
from infocap.samples._look import without_gaps

BASIS = infocap.product_basis("legendre", 3, 4)
N, K = 6001, 12
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
    monkeypatch.setattr("infocap.estimators._cost.LARGEST_CHUNK", 60_000)
    monkeypatch.setattr("infocap.samples._samples.SHARE_BYTES", 1)


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

    array = zarr.create_array(
        str(folder / "x.zarr"), shape=values.shape, chunks=(700, 12), dtype=values.dtype
    )
    array[...] = values
    return array


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
    for arguments in (
        {"nan": "drop", "acquired": rng.permutation(N)},
        {"nan": "drop", "weights": np.ones(N), "index": np.arange(N)},
        {"nan": "drop", "repeats": x + 0.01 * rng.standard_normal(x.shape)},
        {"nan": "drop", "constant": False},
        {"nan": "drop", "jackknife": 4},
    ):
        plain = infocap.estimate(U, x, BASIS, method="chi2", **arguments)
        result = infocap.estimate(
            U, memmap(tmp_path, x), BASIS, method="chi2", memory_limit="50MB", **arguments
        )
        assert_allclose(result.capacity, plain.capacity, rtol=1e-10, atol=1e-13)
        assert result.checks == plain.checks
        if "repeats" in arguments:
            assert result.noise_limited_total == pytest.approx(plain.noise_limited_total, rel=1e-10)


def test_bad_values_are_named_by_their_row_in_the_file(tmp_path, small_chunks):
    x = X.copy()
    x[4321, 5], x[5000, 1] = np.nan, np.inf
    with pytest.raises(
        infocap.errors.DataError,
        match="2 NaN or infinite values, the first nan at row 4321, column 5",
    ):
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
        assert isinstance(table.source, FileRows)
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
    read = []

    class Watched:
        shape, chunks = X.shape, (700, K)

        def __getitem__(self, rows):
            read.append((rows.start, rows.stop))
            return X[rows]

    samples = Samples.of(U, Watched(), BASIS)
    read.clear()
    without_gaps(samples, Engine(chunk_bytes=8 * (K + 3) * 1500))
    edges = {edge for rows in read for edge in rows} - {0, N}
    assert edges
    assert all(edge % 700 == 0 for edge in edges)
    assert sum(stop - start for start, stop in read) == N


@pytest.mark.parametrize(
    ("given", "n_bytes"),
    [("1GB", 10**9), ("512 MB", 512 * 10**6), ("2GiB", 2**31), (1.5e9, 1500000000), (2**30, 2**30)],
)
def test_memory_is_understood(given, n_bytes):
    assert byte_count(given) == n_bytes


@pytest.mark.parametrize("given", ["much", "-1GB", "1GX", True, 0, "10", -5, float("nan")])
def test_memory_that_means_nothing_is_refused(given):
    with pytest.raises(ParameterError, match="memory="):
        infocap.estimate(U, X, BASIS, memory_limit=given)


def test_what_cannot_fit_is_refused_with_what_would():
    large = infocap.product_basis("legendre", 5, 14)
    u, x = np.zeros((200, 5)), np.zeros((200, 60))
    with pytest.raises(
        ParameterError,
        match=r"11,628 functions, which take \d+ MB; the first [\d,]+ functions would fit",
    ):
        infocap.estimate(u, x, large, method="raw", memory_limit="60MB")
    with pytest.raises(
        ParameterError, match=r"35 functions, which take \d+ MB; the first \d+ functions would fit"
    ):
        infocap.estimate(*data(20_000), BASIS, memory_limit="30MB")


def test_the_functions_said_to_fit_do_fit():
    _, x = data(300)
    u5 = np.random.default_rng(0).uniform(-1, 1, (300, 5))
    with pytest.raises(ParameterError, match="would fit") as found:
        infocap.estimate(
            u5, x, infocap.product_basis("legendre", 5, 14), method="raw", memory_limit="20MB"
        )
    room = int(str(found.value).split("the first ")[1].split(" functions")[0].replace(",", ""))
    smaller = infocap.product_basis(
        "legendre", 5, indices=infocap.product_basis("legendre", 5, 14).indices[:room]
    )
    assert 100 < len(smaller) == room
    with pytest.warns(infocap.errors.DataWarning):
        infocap.estimate(u5, x, smaller, method="raw", memory_limit="20MB")


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


def recorded(channel=()):
    return infocap.Recording(
        U,
        X,
        np.arange(N),
        channel=channel,
        metadata={"operator": "Ada"},
        readout_unit="mW",
        input_unit="V",
    )


@pytest.mark.parametrize("suffix", [".nc", ".zarr", ".npy", "others.h5"])
def test_a_recording_can_stay_in_its_file(suffix, tmp_path):
    files = [tmp_path / f"run{suffix}"]
    if suffix == ".npy":
        files = [tmp_path / "u.npy", tmp_path / "x.npy"]
        np.save(files[0], U)
        np.save(files[1], X)
    elif suffix == ".zarr":
        import zarr

        group = zarr.create_group(files[0])
        group.create_array("u", data=U, chunks=(500, 3))
        group.create_array("x", data=X, chunks=(500, 12))
    elif suffix == "others.h5":
        import h5py

        with h5py.File(files[0], "w") as file:
            file["lab/u"], file["lab/x"], file["index"] = U, X, np.arange(N)
    else:
        recorded(tuple("abcdefghijkl")).save(files[0])
    names = {"u": "lab/u", "x": "lab/x"} if suffix == "others.h5" else {}
    whole, there = infocap.read(*files, **names), infocap.read(*files, **names, in_memory=False)
    assert not isinstance(there.readouts, np.ndarray) or isinstance(there.readouts, np.memmap)
    for name in ("channel", "readout_unit", "input_unit", "metadata", "checks"):
        assert getattr(there, name) == getattr(whole, name)
    for name in ("index", "acquired", "reference", "noise"):
        ours, theirs = getattr(there, name), getattr(whole, name)
        assert (ours is None) == (theirs is None)
        assert ours is None or np.array_equal(ours, theirs)
    for ours, theirs in ((there.inputs, whole.inputs), (there.readouts, whole.readouts)):
        assert ours.shape == theirs.shape
        assert np.array_equal(np.asarray(ours[7:50]), theirs[7:50])
    basis = infocap.product_basis("legendre", 3, 2)
    plain, result = (
        infocap.estimate(one, basis=basis, method="raw") for one in (whole, there)
    )
    assert_allclose(result.capacity, plain.capacity, rtol=1e-10, atol=1e-13)
    assert result.checks == plain.checks
    assert result.metadata["provenance"].get("plan") == plain.metadata["provenance"].get("plan")


def test_channels_keep_their_names_in_the_file(tmp_path):
    x = X.copy()
    x[:, 3] = 0.5
    infocap.Recording(U, x, np.arange(N), channel=tuple("abcdefghijkl")).save(tmp_path / "run.nc")
    result = infocap.estimate(
        infocap.read(tmp_path / "run.nc", in_memory=False), basis=BASIS, method="raw"
    )
    assert "column 'd'" in " ".join(result.notes)


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


def test_what_cannot_stay_in_its_file_is_read_whole(tmp_path):
    infocap.Recording(U, X + 1j, np.arange(N)).save(tmp_path / "run.nc")
    recorded().save(tmp_path / "run.csv")
    for name in ("run.nc", "run.csv"):
        assert isinstance(infocap.read(tmp_path / name, in_memory=False).readouts, np.ndarray)


def test_inputs_that_both_files_tell_are_compared_wherever_they_lie(tmp_path):
    import h5py

    with h5py.File(tmp_path / "u.h5", "w") as file:
        file["u"] = U[:50]
    header = ",".join(["u1", "u2", "u3", *"abcdefghijkl"])
    np.savetxt(
        tmp_path / "x.csv", np.hstack([U, X])[:50], delimiter=",", header=header, comments=""
    )
    found = infocap.read(tmp_path / "u.h5", tmp_path / "x.csv", in_memory=False)
    assert_allclose(found.readouts, X[:50], rtol=1e-14)
    np.savetxt(
        tmp_path / "x.csv", np.hstack([U[1:51], X[:50]]), delimiter=",", header=header, comments=""
    )
    with pytest.raises(infocap.errors.DataError, match="shifted or of another run"):
        infocap.read(tmp_path / "u.h5", tmp_path / "x.csv", in_memory=False)


def test_what_an_earlier_version_wrote_as_zarr_can_stay_there():
    path = Path(__file__).parents[1] / "lab" / "old" / "run.zarr"
    whole, there = infocap.read(path), infocap.read(path, in_memory=False)
    assert not isinstance(there.readouts, np.ndarray)
    assert np.array_equal(there.readouts[1:3], whole.readouts[1:3])
    assert there.metadata == whole.metadata


class Zeros:
    """Many rows that take no memory."""

    def __init__(self, n_rows, columns):
        self.shape, self.reads, self.stop_at = (n_rows, columns), 0, ()

    def __getitem__(self, rows):
        self.reads += 1
        if self.reads in self.stop_at:
            _thread.interrupt_main()
        return np.zeros((len(range(*rows.indices(self.shape[0]))), self.shape[1]))


def test_a_pass_can_be_interrupted():
    """Ctrl-C ends it soon, though most is still to come, and nobody goes on reading."""
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored where tests run in the background
    try:
        _interrupt_a_pass()
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt_a_pass():
    x = Zeros(10**8, K)
    x.stop_at = (20,)
    with pytest.raises(KeyboardInterrupt):
        infocap.estimate(Zeros(10**8, 3), x, BASIS, method="raw", memory_limit="60MB")
    time.sleep(0.3)
    reads = x.reads
    time.sleep(0.3)
    assert x.reads == reads < 100


def test_passes_count_their_rows(monkeypatch):
    counted = []

    @contextmanager
    def bar(rows):
        yield counted.append

    monkeypatch.setattr("infocap.samples._engine._bar", bar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    infocap.estimate(U, X, BASIS, method="threshold-richardson")
    assert sum(counted) == 3 * N  # a look, the sums of products, the leverages
    counted.clear()
    with ProcessPoolExecutor(1) as pool:  # what a worker counts stays there
        infocap.estimate(U, X, BASIS, method="raw", executor=pool)
    assert sum(counted) == 2 * N


def test_the_command_takes_a_budget(tmp_path, in_memory):
    recorded().save(tmp_path / "run.nc")
    arguments = [
        "estimate",
        str(tmp_path / "run.nc"),
        "--max-degree",
        "4",
        "--method",
        "threshold-richardson",
    ]
    found = CliRunner().invoke(
        main, [*arguments, "--memory-limit", "50MB", "-o", str(tmp_path / "result.nc")]
    )
    assert found.exit_code == 0, found.output
    result = infocap.load_result(tmp_path / "result.nc")
    assert_allclose(
        result.capacity, in_memory["threshold-richardson"].capacity, rtol=1e-10, atol=1e-13
    )
    refused = CliRunner().invoke(main, [*arguments, "--memory-limit", "lots"])
    assert "--memory-limit lots is no amount of memory" in str(refused.exception)


CHILD = """
import sys, warnings
import numpy as np
import infocap
warnings.simplefilter("ignore")
u = np.memmap(sys.argv[1] + "/u.bin", float, "r").reshape(-1, 3)
x = np.memmap(sys.argv[1] + "/x.bin", float, "r").reshape(-1, 40)
basis = infocap.product_basis("legendre", 3, 4)
infocap.estimate(u[:10_000], x[:10_000], basis, method="threshold-richardson", memory=sys.argv[2])
before = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
infocap.estimate(u, x, basis, method="threshold-richardson", memory=sys.argv[2])
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
