"""Recordings that stay in their file while they are read in blocks: the same answer as from memory."""

import warnings

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError
from infocap.lab.cli import main

BASIS = infocap.product_basis("legendre", 3, 2)
N_SAMPLES = 2001
N_CHANNELS = 6
CHANNELS = tuple("abcdef")
U = infocap.draw(BASIS, N_SAMPLES, design="random", seed=0)
X = infocap.systems.RandomFeatures(3, N_CHANNELS, noise=0.01, seed=1)(U)


def make_recording(readouts=X, **fields):
    return infocap.Recording(U, readouts, np.arange(N_SAMPLES), **fields)


def write_own_file(folder):
    fields = {"channel": CHANNELS, "readout_unit": "mW", "input_unit": "V"}
    make_recording(**fields, metadata={"operator": "Ada"}).save(folder / "run.nc")
    return [folder / "run.nc"], {}


def write_zarr(folder):
    import zarr

    group = zarr.create_group(folder / "run.zarr")
    group.create_array("u", data=U, chunks=(500, 3))
    group.create_array("x", data=X, chunks=(500, N_CHANNELS))
    return [folder / "run.zarr"], {}


def write_numpy(folder):
    np.save(folder / "u.npy", U)
    np.save(folder / "x.npy", X)
    return [folder / "u.npy", folder / "x.npy"], {}


def write_hdf5_of_others(folder):
    with h5py.File(folder / "others.h5", "w") as file:
        file["lab/u"] = U
        file["lab/x"] = X
        file["index"] = np.arange(N_SAMPLES)
    return [folder / "others.h5"], {"u": "lab/u", "x": "lab/x"}


WRITERS = [write_own_file, write_zarr, write_numpy, write_hdf5_of_others]


@pytest.mark.parametrize("write", WRITERS)
def test_a_recording_can_stay_in_its_file(write, tmp_path):
    paths, names = write(tmp_path)
    in_memory = infocap.read(*paths, **names)
    lazy = infocap.read(*paths, **names, in_memory=False)
    assert not isinstance(lazy.readouts, np.ndarray) or isinstance(lazy.readouts, np.memmap)
    for name in ("channel", "readout_unit", "input_unit", "metadata", "checks"):
        assert getattr(lazy, name) == getattr(in_memory, name)
    for name in ("design_index", "time", "reference", "noise"):
        expected = getattr(in_memory, name)
        if expected is None:
            assert getattr(lazy, name) is None
        else:
            assert np.array_equal(getattr(lazy, name), expected)
    for name in ("inputs", "readouts"):
        lazy_table = getattr(lazy, name)
        table = getattr(in_memory, name)
        assert lazy_table.shape == table.shape
        assert np.array_equal(np.asarray(lazy_table[7:50]), table[7:50])


@pytest.mark.parametrize("write", WRITERS)
def test_a_recording_in_its_file_gives_the_same_result(write, tmp_path):
    paths, names = write(tmp_path)
    in_memory = infocap.read(*paths, **names)
    lazy = infocap.read(*paths, **names, in_memory=False)
    expected = infocap.estimate(in_memory, basis=BASIS, method="raw")
    result = infocap.estimate(lazy, basis=BASIS, method="raw")
    assert_allclose(result.capacity, expected.capacity, rtol=1e-10, atol=1e-13)
    assert result.checks == expected.checks
    plan = expected.metadata["provenance"].get("plan")
    assert result.metadata["provenance"].get("plan") == plan


def test_channels_keep_their_names_in_the_file(tmp_path):
    x = X.copy()
    x[:, 3] = 0.5
    make_recording(x, channel=CHANNELS).save(tmp_path / "run.nc")
    lazy = infocap.read(tmp_path / "run.nc", in_memory=False)
    result = infocap.estimate(lazy, basis=BASIS, method="raw")
    assert "column 'd'" in " ".join(result.notes)


def test_what_cannot_stay_in_its_file_is_read_whole(tmp_path):
    make_recording(X + 1j).save(tmp_path / "run.nc")
    make_recording().save(tmp_path / "run.csv")
    for name in ("run.nc", "run.csv"):
        assert isinstance(infocap.read(tmp_path / name, in_memory=False).readouts, np.ndarray)


def write_csv(path, inputs, readouts):
    names = ["u1", "u2", "u3", *CHANNELS]
    table = np.hstack([inputs, readouts])
    np.savetxt(path, table, delimiter=",", header=",".join(names), comments="")


def test_inputs_that_are_in_both_files_are_compared(tmp_path):
    inputs_path = tmp_path / "u.h5"
    readouts_path = tmp_path / "x.csv"
    with h5py.File(inputs_path, "w") as file:
        file["u"] = U[:50]
    write_csv(readouts_path, U[:50], X[:50])
    recording = infocap.read(inputs_path, readouts_path, in_memory=False)
    assert_allclose(recording.readouts, X[:50], rtol=1e-14)
    write_csv(readouts_path, U[1:51], X[:50])
    with pytest.raises(DataError, match="shifted or of another run"):
        infocap.read(inputs_path, readouts_path, in_memory=False)


@pytest.fixture(scope="module")
def expected_raw():
    return infocap.estimate(U, X, BASIS, method="raw")


@pytest.fixture
def estimate_command(tmp_path):
    """The words of a command that estimates a recording and writes `result.nc`."""
    make_recording().save(tmp_path / "run.nc")
    options = ["--max-degree", "2", "--method", "raw", "-o", str(tmp_path / "result.nc")]
    return ["estimate", str(tmp_path / "run.nc"), *options]


def test_the_command_takes_a_memory_limit(estimate_command, tmp_path, expected_raw):
    answer = CliRunner().invoke(main, [*estimate_command, "--memory-limit", "50MB"])
    assert answer.exit_code == 0, answer.output
    result = infocap.load_result(tmp_path / "result.nc")
    assert_allclose(result.capacity, expected_raw.capacity, rtol=1e-10, atol=1e-13)
    refused = CliRunner().invoke(main, [*estimate_command, "--memory-limit", "lots"])
    assert "--memory-limit lots is no amount of memory" in str(refused.exception)


def test_the_command_takes_a_cluster(estimate_command, tmp_path, expected_raw):
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "dashboard_address": ":0", "worker_dashboard_address": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster:
            address = cluster.scheduler_address
            answer = CliRunner().invoke(main, [*estimate_command, "--scheduler", address])
    assert answer.exit_code == 0, answer.output + str(answer.exception)
    result = infocap.load_result(tmp_path / "result.nc")
    assert_allclose(result.capacity, expected_raw.capacity, rtol=1e-10, atol=1e-13)


def test_a_cluster_that_cannot_be_reached_is_named(estimate_command, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("infocap.lab.cli._estimate.SCHEDULER_TIMEOUT_S", 0.5)
    address = "tcp://127.0.0.1:1"
    answer = CliRunner().invoke(main, [*estimate_command, "--scheduler", address])
    assert f"--scheduler {address} cannot be reached" in str(answer.exception)
