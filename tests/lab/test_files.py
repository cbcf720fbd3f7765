"""Files: ours come back bit for bit, other people's are understood, broken ones are one clear error."""

import io
import json
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import infocap
from infocap.errors import DataError, ParameterError
from infocap.lab.cli import run
from support import one_line_of_error_at_most

WRITTEN = (".nc", ".csv")
READ_ONLY = (
    ".h5",
    ".hdf5",
    ".mat",
    ".zarr",
    ".npz",
    ".npy",
    ".txt",
    ".tsv",
    ".dat",
    ".db",
    ".sqlite",
)
READ = (*WRITTEN, *READ_ONLY)
NEEDED_ARRAYS = ("inputs", "readouts", "design_index")
OPTIONAL_ARRAYS = ("time", "repeats", "noise", "reference", "reference_time")
ARRAYS = NEEDED_ARRAYS + OPTIONAL_ARRAYS
U = np.random.default_rng(0).uniform(-1, 1, (12, 2))
X = np.random.default_rng(1).normal(size=(12, 3))


def make_recording(
    n=12, n_inputs=2, n_readouts=3, dtype=float, seed=0, optional=OPTIONAL_ARRAYS, **words
):
    """A recording of random numbers, with some of the optional arrays."""
    rng = np.random.default_rng(seed)

    def readouts(n_rows):
        values = 100 * rng.normal(size=(n_rows, n_readouts))
        if np.dtype(dtype).kind == "c":
            values = values + 1j * rng.normal(size=values.shape)
        return values.astype(dtype)

    repeats = 10 ** rng.uniform(-300, 300, (n, n_readouts))
    repeats[rng.random(n) < 0.5] = np.nan
    arrays = {
        "time": rng.permutation(n).astype(float),
        "repeats": repeats,
        "noise": readouts(5),
        "reference": readouts(4),
        "reference_time": rng.random(4),
    }
    chosen = {name: arrays[name] for name in optional}
    if "reference" not in chosen:
        chosen.pop("reference_time", None)
    inputs = rng.uniform(-1, 1, (n, n_inputs))
    design_index = np.sort(rng.choice(9999, n, replace=False))
    return infocap.Recording(inputs, readouts(n), design_index, **chosen, **words)


def assert_same(recording, expected):
    """Both have the same arrays, bit for bit, and the same words."""
    for name in ARRAYS:
        array = getattr(recording, name)
        expected_array = getattr(expected, name)
        if expected_array is None:
            assert array is None, name
        else:
            assert array.dtype == expected_array.dtype, name
            assert array.shape == expected_array.shape, name
            assert array.tobytes() == expected_array.tobytes(), name
    for name in ("readout_unit", "input_unit", "channel", "metadata", "checks"):
        assert getattr(recording, name) == getattr(expected, name), name


def saved(folder, suffix, **options):
    """The path of a recording's file."""
    return make_recording(**options).save(Path(folder) / f"run{suffix}")


def run_cli(monkeypatch, *arguments):
    """The exit code of the console script."""
    monkeypatch.setattr("sys.argv", ["infocap", *map(str, arguments)])
    try:
        run()
    except SystemExit as ended:
        return ended.code or 0
    return 0


# Round trips

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
DTYPES = [float, np.float32, np.int16, np.uint8, np.int64, complex, np.complex64]
some_examples = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def recordings(draw):
    """Any recording."""
    n_readouts = draw(st.integers(1, 4))
    names = st.lists(WORDS.filter(str.strip), min_size=n_readouts, max_size=n_readouts)
    return make_recording(
        n=draw(st.integers(1, 9)),
        n_inputs=draw(st.integers(1, 3)),
        n_readouts=n_readouts,
        dtype=draw(st.sampled_from(DTYPES)),
        seed=draw(st.integers(0, 99)),
        optional=draw(st.sets(st.sampled_from(OPTIONAL_ARRAYS))),
        readout_unit=draw(WORDS),
        input_unit=draw(WORDS),
        channel=draw(st.just(()) | names.map(tuple)),
        metadata=draw(st.dictionaries(WORDS, PLAIN, max_size=3)),
        checks=tuple(draw(st.lists(WORDS, max_size=2))),
    )


@some_examples
@given(original=recordings())
def test_netcdf_gives_the_recording_back_bit_for_bit(tmp_path, original):
    path = original.save(tmp_path / "run.nc")
    assert_same(infocap.read(path), original)
    assert list(tmp_path.iterdir()) == [path]  # nothing is left beside it


@some_examples
@given(original=recordings())
def test_a_table_gives_all_numbers_back(tmp_path, original):
    original = replace(original, channel=())
    recording = infocap.read(original.save(tmp_path / "run.csv"))
    for name in ("inputs", "readouts", "design_index", "repeats", "noise", "reference"):
        array = getattr(recording, name)
        expected = getattr(original, name)
        if name == "repeats" and expected is not None and np.isnan(expected).all():
            expected = None
        if expected is None:
            assert array is None, name
        else:
            assert np.array_equal(array, expected, equal_nan=True), name
    if original.time is not None:
        assert_array_equal(recording.time, original.time)


def test_special_values_come_back(tmp_path):
    smallest = 5e-324
    largest = 1.7976931348623157e308
    x = np.array([[np.nan, np.inf], [-np.inf, -0.0], [smallest, largest], [0.1, 1 / 3]])
    original = infocap.Recording(np.zeros((4, 1)), x, np.arange(4), noise=np.empty((0, 2)))
    assert_same(infocap.read(original.save(tmp_path / "run.nc")), original)
    from_table = infocap.read(original.save(tmp_path / "run.csv"))
    assert from_table.readouts.tobytes() == x.tobytes()


def test_large_metadata_fit(tmp_path):
    metadata = {"table": list(range(40_000))}
    assert infocap.read(saved(tmp_path, ".nc", metadata=metadata)).metadata == metadata


def test_numpy_values_in_metadata_become_plain_ones_and_others_are_refused(tmp_path):
    path = saved(tmp_path, ".nc", metadata={"gain": np.float64(2.5), "steps": np.arange(3)})
    assert infocap.read(path).metadata == {"gain": 2.5, "steps": [0, 1, 2]}
    with pytest.raises(ParameterError, match=r"`metadata` must be plain data.*'set' object"):
        saved(tmp_path, ".nc", metadata={"a": {1}})


def test_files_are_open_to_the_usual_libraries(tmp_path):
    import h5py
    import pandas as pd
    import xarray as xr

    original = make_recording(channel=("a", "b", "c"), readout_unit="mW", optional=())
    for suffix in WRITTEN:
        original.save(tmp_path / f"run{suffix}")
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as data:
        assert_array_equal(data["readouts"].sel(channel="b"), original.readouts[:, 1])
        assert data["readouts"].attrs["units"] == "mW"
    with h5py.File(tmp_path / "run.nc") as file:
        assert_array_equal(file["inputs"], original.inputs)
    table = pd.read_csv(tmp_path / "run.csv")
    assert list(table) == ["design_index", "u1", "u2", "a", "b", "c"]
    assert_allclose(table["b"], original.readouts[:, 1], rtol=1e-14)


REFUSED_IN_RECORDINGS = {
    "dates": ({"time": np.zeros(2, "M8[s]")}, "time holds datetime64.*times in seconds"),
    "texts": ({"readouts": np.array([["a", "b"], ["c", "d"]])}, "readouts holds <U1"),
    "objects": ({"inputs": np.array([[None, 1], [2, 3]])}, "inputs holds object"),
    "a ragged list": ({"noise": [[1.0, 2.0], [3.0]]}, "noise=.*no array of numbers"),
    "complex inputs": ({"inputs": np.full((2, 2), 1j)}, "inputs is complex"),
    "complex times": ({"time": np.full(2, 1j)}, "time is complex"),
    "names that are numbers": ({"channel": (1, 2)}, "channel=.* must be a list of texts"),
    "a name for all": ({"input_names": "ab"}, "input_names='ab'` must be a list of texts"),
    "a unit that is a number": ({"readout_unit": 3}, "readout_unit=3` must be a text"),
    "metadata that are no table": ({"metadata": [1]}, r"metadata=\[1\]` must be a dictionary"),
    "metadata of no names": ({"metadata": {1: 2}}, "metadata=.* must be a dictionary"),
    "checks that are one text": ({"checks": "drift"}, "checks='drift'` must be a list"),
}


@pytest.mark.parametrize("case", REFUSED_IN_RECORDINGS)
def test_a_recording_refuses_what_no_file_keeps(case):
    fields, message = REFUSED_IN_RECORDINGS[case]
    given = {"inputs": U[:2], "readouts": X[:2, :2], "design_index": np.arange(2)} | fields
    with pytest.raises((DataError, ParameterError), match=message):
        infocap.Recording(**given)


def test_a_recording_keeps_complex_readouts(tmp_path):
    recording = infocap.Recording(U[:2], X[:2] + 1j, np.arange(2))
    assert_array_equal(infocap.read(recording.save(tmp_path / "run.nc")).readouts[:], X[:2] + 1j)


@pytest.mark.parametrize("suffix", [".xls", ".mat", ".zarr", ".h5"])
def test_formats_that_are_not_written_are_named(tmp_path, suffix):
    message = rf"suffix='\{suffix}'` is not one of '\.nc', '\.csv'"
    with pytest.raises(ParameterError, match=message):
        make_recording().save(tmp_path / f"run{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", WRITTEN)
def test_a_write_that_fails_leaves_the_old_file(tmp_path, suffix, monkeypatch):
    path = saved(tmp_path, suffix)
    before = infocap.read(path)

    def no_space(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", no_space)
        message = rf"{path} cannot be written \(No space left on device\); make room"
        with pytest.raises(DataError, match=message):
            saved(tmp_path, suffix, seed=1)
    assert_same(infocap.read(path), before)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "array"),
    [("repeats", X[:3]), ("noise", U), ("time", np.zeros(3)), ("reference", X[0])],
    ids=["repeats", "noise", "time", "reference"],
)
def test_a_recording_with_parts_of_other_sizes_is_refused(name, array):
    with pytest.raises(DataError, match=f"^{name} has shape .*; a recording needs"):
        infocap.Recording(U, X, np.arange(12), **{name: array})


def test_a_recording_with_too_few_names_is_refused():
    with pytest.raises(DataError, match="channel has 2 names for 3 readouts"):
        infocap.Recording(U, X, np.arange(12), channel=("a", "b"))


# Files of others


def complex_as_matlab_stores_it(values):
    stored = np.empty(values.shape, [("real", "f8"), ("imag", "f8")])
    stored["real"] = values.real
    stored["imag"] = values.imag
    return stored


def write_matlab73(path, **variables):
    """What MATLAB's save -v7.3 writes: a block of text, then HDF5 with transposed arrays."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in variables.items():
            if np.iscomplexobj(values):
                values = complex_as_matlab_stores_it(values)
            file[name] = values.T
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def write_matlab5(path, u, x):
    import scipy.io

    scipy.io.savemat(path, {"u": u, "x": x})


def write_matlab7(path, u, x):
    import scipy.io

    other_variables = {"note": "text", "c": [{"a": 1}, "b"]}
    variables = {"inputs": u, "Readouts": x, **other_variables}
    scipy.io.savemat(path, variables, do_compression=True)


def write_hdf5(path, u, x):
    import h5py

    with h5py.File(path, "w") as file:
        file["input"] = u
        file["outputs"] = x
        file["more/spectra"] = x
        file["words"] = ["a", "b"]


def write_netcdf(path, u, x):
    import xarray as xr

    variables = {"u": (("n", "q"), u), "x": (("n", "k"), x)}
    dataset = xr.Dataset(variables, coords={"k": ["a", "b", "c"]})
    dataset.to_netcdf(path, engine="h5netcdf")


def write_zarr(path, u, x, zarr_format):
    import zarr

    group = zarr.create_group(path, zarr_format=zarr_format)
    group.create_array("u", data=u, chunks=(5, 2))
    group.create_array("x", data=x, chunks=(5, 2))


# The suffix of each kind of file, and the function that writes inputs and readouts to it.
FOREIGN = {
    "mat v5": (".mat", write_matlab5),
    "mat v7": (".mat", write_matlab7),
    "mat v7.3": (".mat", lambda path, u, x: write_matlab73(path, U=u, X=x)),
    "h5": (".h5", write_hdf5),
    "npz": (".npz", lambda path, u, x: np.savez_compressed(path, u=u, X=x)),
    "nc": (".nc", write_netcdf),
    "zarr v2": (".zarr", partial(write_zarr, zarr_format=2)),
    "zarr v3": (".zarr", partial(write_zarr, zarr_format=3)),
}


def foreign_file(folder, kind, u=U, x=X, name="data"):
    """The path of a file as other software writes it."""
    suffix, write = FOREIGN[kind]
    path = folder / f"{name}{suffix}"
    write(path, u, x)
    return path


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("dtype", [">f8", "f4", "i2", "u1", "c16"])
def test_files_of_others_are_read_by_obvious_names(tmp_path, kind, dtype):
    if dtype == "c16" and kind == "nc":
        pytest.skip("NetCDF has no complex numbers")
    x = 10 * X
    if dtype == "u1":
        x = np.abs(x)  # no sign
    x = x.astype(dtype)
    path = foreign_file(tmp_path, kind, x=x)
    recording = infocap.read(path)
    assert_array_equal(recording.inputs, U)
    assert_array_equal(recording.readouts, x)
    assert recording.readouts.dtype == x.dtype.newbyteorder("=")
    assert_array_equal(recording.design_index, np.arange(12))


def test_variables_of_hdf5_are_found_by_the_names_given(tmp_path):
    import h5py

    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["run1/spectra"] = X
        file["run1/voltages"] = U
        file["a"] = U[:, 0]
        file["b"] = U[:, 1]
    assert_array_equal(infocap.read(path, u="run1/voltages", x="run1/spectra").readouts, X)
    assert_array_equal(infocap.read(path, u="a,b", x="run1/s*").inputs, U)


def test_fields_of_matlab_structures_are_found_by_the_names_given(tmp_path):
    import scipy.io

    path = tmp_path / "a.mat"
    structure = {"u": U, "y": X, "deep": {"z": X}}
    scipy.io.savemat(path, {"data": structure, "u1": U[:, 0], "u2": U[:, 1]})
    assert_array_equal(infocap.read(path, u="data.u", x="data.deep.z").readouts, X)
    assert_array_equal(infocap.read(path, x="data/y").inputs, U)


def test_a_single_input_or_readout_may_be_a_vector(tmp_path):
    import scipy.io

    scipy.io.savemat(tmp_path / "one.mat", {"u": U[:, 0], "x": X}, oned_as="column")
    assert infocap.read(tmp_path / "one.mat").inputs.shape == (12, 1)
    np.savez(tmp_path / "one.npz", u=U[:, 0], x=X)
    assert_array_equal(infocap.read(tmp_path / "one.npz").inputs, U[:, :1])
    np.savez(tmp_path / "both.npz", u=U[:, 0], x=X[:, 0])
    assert_array_equal(infocap.read(tmp_path / "both.npz").readouts, X[:, :1])


def test_rows_are_sorted_by_a_design_index_beside_them(tmp_path):
    last_first = np.arange(12)[::-1]
    np.savez(tmp_path / "a.npz", u=U, x=X, index=last_first, time=np.arange(12.0) + 7)
    recording = infocap.read(tmp_path / "a.npz")
    assert_array_equal(recording.inputs, U[::-1])
    assert_array_equal(recording.time, last_first + 7)


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_missing_variable_lists_those_present(tmp_path, kind):
    path = foreign_file(tmp_path, kind)
    message = r"x='intensity' is not in .*; it holds .*\(12, 2\), .*\(12, 3\)"
    with pytest.raises(DataError, match=message):
        infocap.read(path, x="intensity")


def test_names_that_are_not_obvious_are_asked_for(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, voltages=U, spectra=X)
    contents = r"voltages \(12, 2\), spectra \(12, 3\)"
    message = rf"obviously the inputs \(u\); it holds {contents}: .*u=.*--u"
    with pytest.raises(DataError, match=message):
        infocap.read(path)
    with pytest.raises(DataError, match=r"obviously the readouts \(x\)"):
        infocap.read(path, u="voltages")


@pytest.mark.parametrize(
    ("u", "x", "hint"),
    [
        (U.T, X, "the lengths agree with u transposed"),
        (U, X.T, "the lengths agree with x transposed"),
        (U[:5], X, "give one row for each sample"),
    ],
    ids=["u transposed", "x transposed", "too short"],
)
def test_transposed_arrays_are_not_turned_silently(tmp_path, u, x, hint):
    np.savez(tmp_path / "a.npz", u=u, x=x)
    with pytest.raises(DataError, match=f"u has shape .* and x has shape .*unequal.*{hint}"):
        infocap.read(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X[:, :, None] + np.zeros(2), "two dimensions"),
        (X[:, :0], "is empty"),
        (np.array("a"), "plain numbers"),
    ],
    ids=["cube", "empty", "text"],
)
def test_readouts_must_be_a_table_of_numbers(tmp_path, x, message):
    np.savez(tmp_path / "a.npz", u=U, x=x)
    with pytest.raises(DataError, match=message):
        infocap.read(tmp_path / "a.npz")


def test_packed_integers_and_missing_values_of_netcdf_are_unpacked(tmp_path):
    import xarray as xr

    x = X.copy()
    x[3, 1] = np.nan
    dataset = xr.Dataset({"u": (("n", "q"), U), "x": (("n", "k"), x)})
    packed = {"dtype": "i2", "scale_factor": 0.001, "add_offset": 1.0, "_FillValue": -9999}
    path = tmp_path / "packed.nc"
    dataset.to_netcdf(path, engine="h5netcdf", encoding={"x": packed})
    half_a_step = 0.0005
    assert_allclose(infocap.read(path).readouts, x, rtol=0, atol=1.01 * half_a_step)


def test_other_files_under_these_names_are_told_apart(tmp_path):
    (tmp_path / "classic.nc").write_bytes(b"CDF\x05" + bytes(100))
    with pytest.raises(DataError, match="classic format; convert it with nccopy"):
        infocap.read(tmp_path / "classic.nc")
    (tmp_path / "octave.mat").write_text("# Created by Octave 8.4.0\n" + "# name: u\n" * 20)
    with pytest.raises(DataError, match="save it with -v7"):
        infocap.read(tmp_path / "octave.mat")
    (tmp_path / "a.csv").write_bytes(saved(tmp_path, ".nc").read_bytes())
    with pytest.raises(DataError, match="is binary, not text"):
        infocap.read(tmp_path / "a.csv")


@pytest.mark.parametrize("inputs_name", ["u.npy", "u.csv"])
@pytest.mark.parametrize("readouts_name", ["x.npy", "x.npz", "x.txt"])
def test_two_files_of_any_mix_are_inputs_and_readouts(tmp_path, inputs_name, readouts_name):
    np.save(tmp_path / "u.npy", U)
    np.savetxt(tmp_path / "u.csv", U, delimiter=",", header="a,b", comments="")
    np.save(tmp_path / "x.npy", X.astype("f4"))
    np.savez(tmp_path / "x.npz", spectra=X)
    np.savetxt(tmp_path / "x.txt", X)
    recording = infocap.read(tmp_path / inputs_name, tmp_path / readouts_name)
    assert_allclose(recording.inputs, U, rtol=1e-15)
    assert_allclose(recording.readouts, X, rtol=1e-6)


def test_two_files_that_do_not_fit_are_refused(tmp_path):
    np.save(tmp_path / "u.npy", U)
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ParameterError, match="holds a single array; give two files"):
        infocap.read(tmp_path / "x.npy")
    np.save(tmp_path / "transposed.npy", X.T)
    with pytest.raises(DataError, match="the lengths agree with x transposed"):
        infocap.read(tmp_path / "u.npy", tmp_path / "transposed.npy")
    np.save(tmp_path / "short.npy", X[:7])
    with pytest.raises(DataError, match="give one row for each sample"):
        infocap.read(tmp_path / "u.npy", tmp_path / "short.npy")


@pytest.mark.parametrize("name", ["design_index", "index"])
@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_a_design_index_may_be_called_index(tmp_path, name, suffix):
    last_first = np.arange(12)[::-1]
    path = tmp_path / f"a{suffix}"
    if suffix == ".npz":
        np.savez(path, **{"u": U, "x": X, name: last_first})
    else:
        rows = np.column_stack([U, X, last_first])
        np.savetxt(path, rows, delimiter=",", header=f"u1,u2,a,b,c,{name}", comments="")
    recording = infocap.read(path)
    assert_array_equal(recording.design_index, np.arange(12))
    assert_allclose(recording.readouts, X[::-1], rtol=1e-15)


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_an_unknown_name_is_answered_with_what_is_there_and_the_nearest_name(tmp_path, suffix):
    path = tmp_path / f"lab{suffix}"
    if suffix == ".npz":
        np.savez(path, volts=U, spectra=X)
    else:
        path.write_text("volts,spectra [mV]\n0.5,1\n0.25,2\n")
    with pytest.raises(DataError, match=r"x='spektra' .*holds volts.*nearest name is 'spectra"):
        infocap.read(path, u="volts", x="spektra")
    with pytest.raises(DataError, match=r"u='qqq' is not in .*; it holds volts") as problem:
        infocap.read(path, u="qqq", x="spectra*")
    assert "nearest" not in str(problem.value)


@pytest.mark.parametrize(
    "names", [{"u": "nope"}, {"x": "nope"}, {"axes": "channels,samples"}], ids=["u", "x", "axes"]
)
def test_names_are_refused_for_a_store_which_says_itself_what_is_what(tmp_path, names):
    path = tmp_path / "run.db"
    plan = infocap.lab.Plan(n_inputs=2, max_degree=2, n_samples=16, seed=1)
    with infocap.lab.Store(path, plan) as store:
        store.record(0, [1.0, 2.0, 3.0])
    (name,) = names
    message = f"{name}=.*run.db, which holds 2 inputs and 3 readouts"
    with pytest.raises(DataError, match=message):
        infocap.read(path, **names)


# Opened once


@pytest.fixture
def openings(monkeypatch):
    """The names of files that h5py opens, in order."""
    import h5py

    names = []

    class RecordedFile(h5py.File):
        def __init__(self, name, *arguments, **options):
            names.append(Path(name).name)
            super().__init__(name, *arguments, **options)

    monkeypatch.setattr("h5py.File", RecordedFile)
    return names


@pytest.mark.parametrize("in_memory", [True, False])
def test_each_of_two_files_is_opened_once(tmp_path, openings, in_memory):
    import h5py

    for name, values in (("in.h5", U), ("out.h5", X)):
        with h5py.File(tmp_path / name, "w") as file:
            file["values"] = values
    openings.clear()
    recording = infocap.read([tmp_path / "in.h5", tmp_path / "out.h5"], in_memory=in_memory)
    assert openings == ["in.h5", "out.h5"]  # the rows of files that stay are read when asked for
    assert_array_equal(recording.inputs[:], U)
    assert_array_equal(recording.readouts[:], X)


def test_a_recording_is_opened_once(tmp_path, openings):
    path = saved(tmp_path, ".nc")
    openings.clear()
    infocap.read(path)
    assert openings == ["run.nc"]


def test_two_files_that_both_hold_inputs_and_readouts_are_joined(tmp_path):
    np.savez(tmp_path / "a.npz", u=U, x=X)
    np.savez(tmp_path / "b.npz", u=U, x=2 * X)
    joined = infocap.read([tmp_path / "a.npz", tmp_path / "b.npz"])
    assert_array_equal(joined.readouts, np.vstack([X, 2 * X]))


def test_two_files_of_which_one_holds_the_inputs_are_inputs_and_readouts(tmp_path):
    np.savez(tmp_path / "u.npz", u=U)
    np.savez(tmp_path / "x.npz", spectra=X)
    assert_array_equal(infocap.read([tmp_path / "u.npz", tmp_path / "x.npz"]).readouts, X)


def test_a_list_may_hold_one_file(tmp_path):
    np.savez(tmp_path / "a.npz", u=U, x=X)
    assert len(infocap.read([tmp_path / "a.npz"]).inputs) == 12


def test_a_file_of_a_list_that_does_not_fit_together_is_named(tmp_path):
    np.savez(tmp_path / "damaged.npz", u=U[:5], x=X)
    np.savez(tmp_path / "x.npz", spectra=X)
    with pytest.raises(DataError, match=r"in .*damaged.npz: unequal numbers of samples"):
        infocap.read([tmp_path / "damaged.npz", tmp_path / "x.npz"])


# Readers of other formats


def read_pairs(path):
    """A format of somebody else's: one row per line, inputs and readouts apart by a bar."""
    inputs = []
    readouts = []
    for line in path.read_text().splitlines():
        before, after = line.split("|")
        inputs.append(before.split())
        readouts.append(after.split())
    return infocap.Recording(
        np.array(inputs, dtype=float), np.array(readouts, dtype=float), np.arange(len(inputs))
    )


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "bench.pairs"
    path.write_text("0.5|1 2\n0.25|3 4\n")
    return path


def test_a_script_adds_a_reader_by_one_line(pairs, monkeypatch):
    with pytest.raises(ParameterError, match=r"suffix='\.pairs'` is not one of '\.nc'"):
        infocap.read(pairs)
    monkeypatch.setitem(infocap.lab.READERS, ".pairs", read_pairs)
    assert infocap.read(pairs).readouts.tolist() == [[1, 2], [3, 4]]
    netcdf = saved(pairs.parent, ".nc", n_inputs=1, n_readouts=2)
    assert len(infocap.read([pairs, netcdf]).readouts) == 2 + 12
    with pytest.raises(DataError, match=r"u='a' cannot be chosen in .*bench\.pairs, which holds 1"):
        infocap.read(pairs, u="a")
    with pytest.raises(ParameterError, match=r"'\.sqlite', '\.pairs'"):
        infocap.read(pairs.parent / "run.xyz")


def test_a_reader_that_fails_or_gives_something_else_is_one_clear_error(pairs, monkeypatch):
    monkeypatch.setitem(infocap.lab.READERS, ".pairs", lambda path: [1, 2])
    with pytest.raises(DataError, match=r"the reader of '\.pairs' files gave list for .*bench"):
        infocap.read(pairs)
    monkeypatch.setitem(infocap.lab.READERS, ".pairs", lambda path: 1 / 0)
    with pytest.raises(DataError, match=r"bench.pairs cannot be read as a \.pairs file \(division"):
        infocap.read(pairs)


def test_a_reader_of_a_script_goes_before_ours(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("0.5|1 2\n0.25|3 4\n")
    monkeypatch.setitem(infocap.lab.READERS, ".txt", read_pairs)
    assert infocap.read(tmp_path / "a.txt").inputs.tolist() == [[0.5], [0.25]]


PACKAGE = """
import numpy as np
import infocap

def read_pairs(path):
    rows = np.loadtxt(path, delimiter=",", ndmin=2)
    return infocap.Recording(rows[:, :1], rows[:, 1:], np.arange(len(rows)))
"""
ENTRY_POINTS = """[infocap.readers]
.pairs = pair_files:read_pairs
.csv = pair_files:never_asked
.gone = pair_files:gone
"""


def test_an_installed_package_adds_a_reader(tmp_path):
    """As pip installs it: a module, and beside it the description of the package with its entry points."""
    site = tmp_path / "site"
    description = site / "pair_files-1.0.dist-info"
    description.mkdir(parents=True)
    (site / "pair_files.py").write_text(PACKAGE)
    metadata = "Metadata-Version: 2.1\nName: pair-files\nVersion: 1.0\n"
    (description / "METADATA").write_text(metadata)
    (description / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "bench.PAIRS").write_text("0.5,1,2\n0.25,3,4\n")
    (tmp_path / "plain.csv").write_text("u1,x1\n0.5,1\n0.25,3\n")
    (tmp_path / "a.gone").write_text("1")
    program = "import sys; from infocap.lab.cli import run; sys.argv[0] = 'infocap'; run()"
    home = Path(infocap.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(home), str(site)])}

    def preview(name):
        command = [sys.executable, "-c", program, "import", "--preview", name]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    assert "Recording of 2 samples, 1 input, 2 readouts" in preview("bench.PAIRS").stdout
    assert "Recording of 2 samples, 1 input, 1 readout" in preview("plain.csv").stdout
    gone = preview("a.gone")
    assert gone.returncode == 2
    assert "the reader of '.gone' files, pair_files:gone, cannot be loaded" in gone.stderr


# Several files as one


def planned(folder, rows, name, seed=1, **arrays):
    """Some samples of a plan, in a file of their own, as `infocap export` writes it."""
    plan = infocap.lab.Plan(n_inputs=2, max_degree=2, n_samples=16, seed=seed)
    rows = np.asarray(rows)
    u = plan.inputs[rows]
    order_of_acquisition = np.random.default_rng(seed).permutation(16)
    recording = infocap.Recording(
        u,
        np.column_stack([u, rows]),
        rows,
        time=order_of_acquisition[rows] + 1e9,
        metadata={"plan": plan.to_dict(), "fingerprint": plan.fingerprint},
        **arrays,
    )
    return recording.save(folder / name)


HALVES = (range(8, 16), range(8))
EVEN_AND_ODD = (range(0, 16, 2), range(1, 16, 2))


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("rows", [HALVES, EVEN_AND_ODD], ids=["halves", "even and odd"])
def test_files_of_one_plan_are_sorted_by_design_index(tmp_path, rows, in_memory):
    first = planned(tmp_path, rows[0], "0.nc")
    second = planned(tmp_path, rows[1], "1.nc")
    expected = infocap.read(planned(tmp_path, range(16), "whole.nc"))
    recording = infocap.read([first, second], in_memory=in_memory)
    assert isinstance(recording.readouts, np.ndarray) == in_memory
    for name in ("inputs", "readouts", "design_index", "time"):
        assert_array_equal(getattr(recording, name)[:], getattr(expected, name), name)
    assert recording.metadata == expected.metadata | {"sources": [str(first), str(second)]}


@pytest.mark.parametrize("rows", [HALVES, EVEN_AND_ODD], ids=["halves", "even and odd"])
def test_joined_rows_are_read_in_any_slices_and_can_be_pickled(tmp_path, rows):
    files = [planned(tmp_path, rows[0], "0.nc"), planned(tmp_path, rows[1], "1.nc")]
    expected = infocap.read(files)
    recording = infocap.read(files, in_memory=False)
    for start, stop in ((0, 0), (3, 9), (7, 8), (0, 99)):
        assert_array_equal(recording.readouts[start:stop], expected.readouts[start:stop])
    for source in (recording.inputs, recording.readouts):
        assert source.shape[0] == 16
        assert source.dtype == np.float64
        assert_array_equal(pickle.loads(pickle.dumps(source))[2:11], source[2:11])


@pytest.mark.filterwarnings("ignore:nothing of the inputs")
@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")  # the same rows twice
def test_joined_rows_travel_by_the_names_of_their_files(tmp_path):
    files = [
        make_recording(n=5000, optional=()).save(tmp_path / "a.nc"),
        make_recording(n=5000, optional=()).save(tmp_path / "b.nc"),
    ]
    lazy = infocap.read(files, in_memory=False)
    assert len(pickle.dumps(lazy.readouts)) < 2000  # of 240,000 bytes
    basis = infocap.product_basis("legendre", 2, 2)
    result = infocap.estimate(lazy, basis=basis, method="raw")
    expected = infocap.estimate(infocap.read(files), basis=basis, method="raw")
    assert_allclose(result.capacity, expected.capacity, rtol=1e-12)


def test_files_without_a_design_keep_the_order_given(tmp_path):
    np.savez(tmp_path / "a.npz", u=U[:5], x=X[:5])
    rows = np.column_stack([U[5:], X[5:]])
    np.savetxt(tmp_path / "b.csv", rows, delimiter=",", header="u1,u2,a,b,c", comments="")
    recording = infocap.read([tmp_path / "a.npz", str(tmp_path / "b.csv")])
    assert_allclose(recording.inputs, U, rtol=1e-15)
    assert_allclose(recording.readouts, X, rtol=1e-15)
    assert_array_equal(recording.design_index, np.arange(12))
    assert recording.channel == ("a", "b", "c")
    assert recording.time is None
    names = [file["file"] for file in recording.metadata["read_from"]]
    assert names == ["a.npz", "b.csv"]


def test_a_recording_tells_how_its_file_was_read(tmp_path):
    np.savez(tmp_path / "a.npz", u=U[:5], x=X[:5])
    metadata = infocap.read([tmp_path / "a.npz"]).metadata
    assert metadata["sources"] == [str(tmp_path / "a.npz")]
    layout = "npz, from u (5, 2), x (5, 3)"
    assert metadata["read_from"] == [
        {"file": "a.npz", "as": layout, "inputs": ["u"], "readouts": ["x"]}
    ]


def test_other_plans_keep_the_order_given(tmp_path):
    files = [planned(tmp_path, range(8, 16), "a.nc"), planned(tmp_path, range(8), "b.nc", seed=2)]
    recording = infocap.read(files)
    assert_array_equal(recording.design_index, np.arange(16))
    assert_array_equal(recording.readouts[:, 2], [*range(8, 16), *range(8)])
    assert recording.checks == (
        "the files are of 2 plans, and their rows are in the order of the files; estimate them apart unless they are one "
        "experiment.",
    )


def test_the_order_of_acquisition_goes_on_from_file_to_file(tmp_path):
    def save(name, time):
        """Three rows that were measured in some order, at some times, or nobody knows when."""
        recording = infocap.Recording(U[:3], X[:3], np.arange(3), time=time)
        return recording.save(tmp_path / name)

    a = save("a.nc", np.array([2, 0, 1]))
    b = save("b.nc", np.array([1, 0, 2]))
    without_order = save("without.nc", None)
    with_times = save("times.nc", np.array([9.5, 7.5, 8.5]))
    assert infocap.read([a, b]).time.tolist() == [2, 0, 1, 4, 3, 5]
    assert infocap.read([a, without_order]).time.tolist() == [2, 0, 1, 3, 4, 5]
    assert infocap.read([with_times, a]).time.tolist() == [2, 0, 1, 5, 3, 4]


def test_repeats_noise_and_references_come_from_all_files_that_have_them(tmp_path):
    arrays = {
        "repeats": X[:8, :3],
        "noise": X[:2],
        "reference": X[:4],
        "reference_time": np.arange(4) + 1e9,
    }
    files = [
        planned(tmp_path, range(8), "a.nc", **arrays),
        planned(tmp_path, range(8, 12), "b.nc"),
        planned(tmp_path, range(12, 16), "c.nc", noise=X[5:6]),
    ]
    recording = infocap.read(files)
    assert_array_equal(recording.repeats, np.vstack([X[:8], np.full((8, 3), np.nan)]))
    assert_array_equal(recording.noise, X[[0, 1, 5]])
    assert_array_equal(recording.reference, X[:4])
    assert_array_equal(recording.reference_time, np.arange(4) + 1e9)


def test_stores_are_joined_as_files_are(tmp_path):
    plan = infocap.lab.Plan(n_inputs=2, max_degree=2, n_samples=16, seed=1, reference_every=4)
    for name, parity in (("a.db", 0), ("b.db", 1)):
        with infocap.lab.Store(tmp_path / name, plan) as store:
            for measurement in list(store.remaining()):
                number = measurement.number
                if measurement.kind == "reference" or number % 2 == parity:
                    store.record(number, [measurement.u.sum(), number], measurement.kind)
    for in_memory in (True, False):
        recording = infocap.read([tmp_path / "b.db", tmp_path / "a.db"], in_memory=in_memory)
        assert_array_equal(recording.design_index, np.arange(16))
        assert_array_equal(recording.readouts[:][:, 1], np.arange(16))
        assert len(recording.reference) == 2 * len(infocap.read(tmp_path / "a.db").reference)


ANOTHER_EXPERIMENT = {
    "inputs": ({"inputs": U[:4, :1]}, "the number of inputs is 2 in .*a.nc and 1 in .*b.nc"),
    "readouts": (
        {"readouts": X[:4, :2], "channel": ("a", "b")},
        "the number of readouts is 3 in .*a.nc and 2 in .*b.nc",
    ),
    "names": (
        {"channel": ("a", "b", "d")},
        r"channel is \('a', 'b', 'c'\) in .*a.nc and \('a', 'b', 'd'\) in .*b.nc",
    ),
    "unit of the readouts": (
        {"readout_unit": "W"},
        "readout_unit is 'mW' in .*a.nc and 'W' in .*b.nc",
    ),
    "unit of the inputs": ({"input_unit": "A"}, "input_unit is 'V' in .*a.nc and 'A' in .*b.nc"),
    "points measured twice": (
        {"design_index": np.arange(3, 7)},
        "a.nc and .*b.nc hold 1 points of the same plan twice, the first of them index 3",
    ),
}


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("difference", ANOTHER_EXPERIMENT)
def test_files_of_another_experiment_are_refused(tmp_path, difference, in_memory):
    changes, message = ANOTHER_EXPERIMENT[difference]
    experiment = {
        "inputs": U[:4],
        "readouts": X[:4],
        "channel": ("a", "b", "c"),
        "readout_unit": "mW",
        "input_unit": "V",
        "metadata": {"fingerprint": "f"},
    }
    first = infocap.Recording(**experiment, design_index=np.arange(4))
    second = infocap.Recording(**experiment | {"design_index": np.arange(4, 8)} | changes)
    files = [first.save(tmp_path / "a.nc"), second.save(tmp_path / "b.nc")]
    with pytest.raises(DataError, match=message):
        infocap.read(files, in_memory=in_memory)


def test_lists_that_make_no_recording_are_refused(tmp_path):
    path = saved(tmp_path, ".nc")
    with pytest.raises(ParameterError, match="is given twice"):
        infocap.read([path, tmp_path / "." / path.name])
    with pytest.raises(ParameterError, match="names no file"):
        infocap.read([])
    with pytest.raises(ParameterError, match="goes with one file of inputs, not with a list"):
        infocap.read([path], path)


# Text tables

ROWS = [[0.5, -1.25, 3.0, 1e-7], [0.25, 1.0, -4.5, 2e300]]


@pytest.mark.parametrize("text", [
    "u1,u2,a,b\n0.5,-1.25,3,1e-7\n0.25,1,-4.5,2e300\n",
    "\ufeffu_1;u_2;a;b\r\n0.5;-1.25;3;1e-7\r\n0.25;1;-4.5;2e300\r\n",
    "u[0]\tu[1]\ta\tb\n0.5\t-1.25\t3\t1e-7\n0.25\t1\t-4.5\t2e300",
    "# made by hand\nu1 u2 a b\n\n  0.5 -1.25   3 1e-7\n0.25 1 -4.5 2e300\n",
    'sep=;\n"input 1";"input 2";a;b\n"0,5";"-1,25";"3";"1e-7"\n0,25;1;-4,5;2e300\n',
    "u1;u2;a;b\n0,5;-1,25;3,0;1,0e-7\n0,25;1,0;-4,5;2e300\n",
    "u1\tu2\ta\tb\n0,5\t-1,25\t3\t1e-7\n0,25\t1\t-4,5\t2e300\n",
    "b,a,u2,u1\n1e-7,3,-1.25,0.5\n2e300,-4.5,1,0.25\n",
    "u1, u2, a, b,\n0.5, -1.25, 3, 1e-7,\n0.25, 1, -4.5, 2e300,\n",
    "\"u1\",\"u2\",\"a\",\"b\"\n% a comment of MATLAB\n0.5,-1.25,3,1e-7\n0.25,1,-4.5,2e300\n",
])  # fmt: skip
def test_tables_of_every_dialect_are_read(tmp_path, text):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    recording = infocap.read(path)
    assert_array_equal(recording.inputs, np.array(ROWS)[:, :2])
    order = [recording.channel.index(name) for name in "ab"]
    assert_array_equal(recording.readouts[:, order], np.array(ROWS)[:, 2:])


def test_tables_in_other_encodings_are_read(tmp_path):
    text = "u1,power (µW)\n0.5,3\n0.25,-4.5\n"
    path = tmp_path / "data.csv"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "latin-1"):
        path.write_bytes(text.encode(encoding))
        assert infocap.read(path).channel == ("power (µW)",)


@pytest.fixture
def named_columns(tmp_path):
    """A table whose names are not obvious."""
    import pandas as pd

    names = ["volt a", "volt b", "s1", "s2", "s3", "time"]
    rows = np.column_stack([U, X, np.arange(12) / 8])
    path = tmp_path / "data.csv"
    pd.DataFrame(rows, columns=names).to_csv(path, index=False)
    return path


def test_columns_are_chosen_by_name_and_pattern(named_columns):
    recording = infocap.read(named_columns, u="volt b, volt a", x="s?")
    assert_array_equal(recording.inputs, U[:, ::-1])
    assert recording.channel == ("s1", "s2", "s3")
    assert_array_equal(recording.time, np.arange(12) / 8)
    assert_array_equal(infocap.read(named_columns, u="volt*").readouts, X)


def test_names_of_columns_that_are_not_obvious_are_asked_for(named_columns):
    with pytest.raises(DataError, match=r"no columns named u1, u2, .*volt a, volt b, s1.*--u"):
        infocap.read(named_columns)
    with pytest.raises(DataError, match=r"u='amp' is not in .*volt a, volt b"):
        infocap.read(named_columns, u="amp")


def test_columns_without_names_are_chosen_by_number(tmp_path):
    path = tmp_path / "bare.dat"
    np.savetxt(path, np.column_stack([U, X]))
    with pytest.raises(DataError, match="without a header line columns are numbered from 1"):
        infocap.read(path)
    assert_allclose(infocap.read(path, u="1,2").readouts, X)


def test_missing_cells_are_nan_and_times_may_be_dates(tmp_path):
    path = tmp_path / "data.csv"
    rows = [
        "u1,time,a,b,c",
        "0.5,2026-01-31T12:00:00,,1+2i,",
        "0.25,2026-01-31 12:00:02.5Z,NA,3,",
        "1,2026-01-31 12:00:03,7,,",
    ]
    path.write_text("\n".join(rows))
    recording = infocap.read(path)
    assert_array_equal(recording.readouts[:, 0], [np.nan, np.nan, 7])
    assert_array_equal(recording.readouts[:, 1], [1 + 2j, 3, np.nan])
    assert_array_equal(np.diff(recording.time), [2.5, 0.5])
    assert recording.checks == ("columns of data.csv were left out: c (empty).",)


@pytest.mark.parametrize(("text", "message"), [
    ("u1,a\n1,2\n3,open\n", "has 'open' in line 3, column 'a'; give numbers only"),
    ("# x\nu1,a,b\n1,2,0\n3,4o,0\n", "has '4o' in line 4, column 'a'"),
    ("# x\n1,2\n3,4o\n", "columns are numbered from 1"),
    ("u1,a\n1,2\n\n3\n", "has 1 cells in line 4 and 2 in line 2"),
    ("u1,a\n1,2,3\n", "has 3 cells in line 2 and 2"),
    ("u1,a\n", "holds no rows of numbers, only the names of 2 columns"),
    ("# nothing\n", "holds no rows of numbers"),
    ("u1;a\n1.23,5;2\n3,1;2\n", "has '1.23,5' in line 2, column 'u1'"),
    ("u1;a\n0.5;2\n0,5;2\n", "has '0,5' in line 3, column 'u1'"),
    ("u1,u2\n1,2\n", "has no column of readouts"),
    ("index,u1,a\n0.5,1,2\n", "no whole numbers"),
    ("index,u1,a\n,1,2\n", "no whole numbers"),
    ("index,u1,a\n-4,1,2\n", "index in .* is -4 in row 1"),
    ("index,u1,a\n-1,1,2\n", "no row of the design"),
    ("u1,a\n1+2j,2\n", "complex numbers among its inputs"),
    ("# infocap plan {\nindex,u1,a\n0,1,2\n", "something damaged"),
    ("u1,a\n1,2\n3,\"4\n5,6\n", "quotes that do not match in line 3"),
    ("u1,a\n1,True\n", r"no column of readouts; .* left out: a \(text such as 'True' in line 2\)"),
    ("u1,a\n1,0x10\n", r"no column of readouts; .* left out: a \(text such as '0x10' in line 2\)"),
    ("u1,a\n1,2\n1,0x10\n", "has '0x10' in line 3, column 'a'"),
])  # fmt: skip
def test_what_is_wrong_with_a_table_is_named(tmp_path, text, message):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        infocap.read(tmp_path / "data.csv")


# Designs: out as inputs.csv, back as readouts.csv


def designed(folder):
    """A plan whose inputs.csv was written, as ``infocap draw`` does, and readouts of its rows."""
    plan = infocap.lab.Plan(
        n_inputs=2,
        max_degree=3,
        n_samples=16,
        noise_repeats=3,
        repeat_every=4,
        reference_every=5,
        readout_unit="mW",
        channel=("p", "q", "r"),
    )
    plan.write_inputs(folder / "inputs.csv")
    u1, u2 = plan.schedule.inputs.T
    x = np.column_stack([np.sin(3 * u1), u1 * u2, np.arange(len(u1))])
    return plan, x


def write_readouts(path, x, index=None):
    header = "s1,s2,row"
    if index is not None:
        x = np.column_stack([index, x])
        header = f"index,{header}"
    np.savetxt(path, x, delimiter=",", header=header, comments="", fmt="%.17g")


def read_designed(folder, name="readouts.csv"):
    return infocap.read(folder / "inputs.csv", folder / name)


@pytest.mark.parametrize("with_index", [True, False])
def test_a_design_comes_back_in_its_own_order(tmp_path, with_index):
    plan, x = designed(tmp_path)
    codes = plan.schedule.codes  # -1 is noise, -2 the reference
    write_readouts(tmp_path / "readouts.csv", x, codes if with_index else None)
    recording = read_designed(tmp_path)

    assert_array_equal(recording.design_index, np.arange(16))
    assert_array_equal(recording.inputs, plan.inputs)
    for index in range(16):
        first, *again = np.flatnonzero(codes == index)
        assert_array_equal(recording.readouts[index], x[first])
        assert recording.time[index] == first
        repeat = x[again[0]] if again else [np.nan] * 3
        assert_array_equal(recording.repeats[index], repeat)
    assert_array_equal(recording.noise, x[codes == -1])
    assert_array_equal(recording.reference, x[codes == -2])
    assert_array_equal(recording.reference_time, np.flatnonzero(codes == -2))

    assert recording.metadata["fingerprint"] == plan.fingerprint
    assert recording.metadata["plan"] == json.loads(json.dumps(plan.to_dict()))
    assert recording.channel == ("s1", "s2", "row")
    assert recording.readout_unit == "mW"
    assert recording.checks == ()


def test_readouts_without_names_have_those_of_the_plan(tmp_path):
    plan, x = designed(tmp_path)
    write_readouts(tmp_path / "readouts.csv", x, plan.schedule.codes)
    np.save(tmp_path / "readouts.npy", x)
    recording = read_designed(tmp_path, "readouts.npy")
    assert_array_equal(recording.readouts, read_designed(tmp_path).readouts)
    assert recording.channel == ("p", "q", "r")


def test_readouts_that_are_shifted_against_their_index_are_refused(tmp_path):
    plan, x = designed(tmp_path)
    codes = plan.schedule.codes
    shifted_codes = np.roll(codes, 1)
    write_readouts(tmp_path / "readouts.csv", x, shifted_codes)
    first = int(np.argmax(shifted_codes != codes))
    message = f"index is {codes[first]} in .*at row {first + 1}, .*shifted or of another run"
    with pytest.raises(DataError, match=message):
        read_designed(tmp_path)


def test_readouts_that_are_shifted_against_inputs_beside_them_are_refused(tmp_path):
    plan, x = designed(tmp_path)
    rows = np.column_stack([np.roll(plan.schedule.inputs, 1, axis=0), x])
    np.savetxt(tmp_path / "readouts.csv", rows, delimiter=",", header="u1,u2,a,b,c", comments="")
    with pytest.raises(DataError, match=r"u is \[.* the readouts are shifted or of another run"):
        read_designed(tmp_path)


def test_an_acquisition_that_stopped_early_is_used_as_far_as_it_goes(tmp_path):
    plan, x = designed(tmp_path)
    codes = plan.schedule.codes[:12]
    write_readouts(tmp_path / "readouts.csv", x[:12], codes)
    recording = read_designed(tmp_path)
    assert recording.checks == (
        f"the acquisition stopped early: 12 of {len(x)} measurements are there, taken for the "
        "first in the order of acquisition; measure the others for the whole design.",
    )
    assert_array_equal(recording.design_index, np.unique(codes[codes >= 0]))
    assert "check: the acquisition stopped early" in repr(recording)

    write_readouts(tmp_path / "readouts.csv", x[:12])
    (check,) = read_designed(tmp_path).checks
    assert "write the index along with the readouts, in case a row was lost in between" in check


def test_more_readouts_than_a_design_has_rows_are_refused(tmp_path):
    _, x = designed(tmp_path)
    write_readouts(tmp_path / "readouts.csv", np.vstack([x, x[:1]]))
    message = "unequal numbers of samples; give one row for each sample"
    with pytest.raises(DataError, match=message):
        read_designed(tmp_path)
    np.save(tmp_path / "flat.npy", x.T)
    with pytest.raises(DataError, match="the lengths agree with x transposed"):
        read_designed(tmp_path, "flat.npy")


def test_a_point_is_measured_once_or_twice(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("index,u1,a\n1,0.5,1\n0,0.1,2\n1,0.5,3\n")
    recording = infocap.read(path)
    assert_array_equal(recording.readouts, [[2], [1]])
    assert_array_equal(recording.repeats, [[np.nan], [3]])
    assert_array_equal(recording.time, [1, 0])


def test_a_point_is_not_measured_three_times_nor_at_two_inputs(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("index,u1,a\n1,0.5,1\n0,0.1,2\n1,0.5,3\n1,0.5,3\n")
    message = "has 1 3 times; a point of the design is measured once or twice"
    with pytest.raises(DataError, match=message):
        infocap.read(path)
    path.write_text("index,u1,a\n1,0.5,1\n0,0.1,2\n1,0.6,3\n")
    message = "differs between the two rows of index 1, the second of them row 3"
    with pytest.raises(DataError, match=message):
        infocap.read(path)


# Broken files


class Bomb:
    """Unpickling this makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


OBJECTS_IN_ZARR = {
    "zarr_format": 2,
    "shape": [1, 1],
    "chunks": [1, 1],
    "dtype": "|O",
    "order": "C",
    "compressor": None,
    "fill_value": None,
    "filters": [{"id": "pickle", "protocol": 5}],
}


def test_pickles_are_refused_and_never_run(tmp_path):
    import zarr

    proof = tmp_path / "executed"
    bombs = np.array([[Bomb(proof)]], dtype=object)
    np.save(tmp_path / "u.npy", U)
    np.save(tmp_path / "a.npy", bombs, allow_pickle=True)
    with pytest.raises(DataError, match=r"pickled Python objects, .* never loaded"):
        infocap.read(tmp_path / "u.npy", tmp_path / "a.npy")

    np.savez(tmp_path / "a.npz", u=U, x=bombs)
    message = r"x in .* holds object values; give an array of plain numbers"
    with pytest.raises(DataError, match=message):
        infocap.read(tmp_path / "a.npz")

    group = zarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    group.create_array("u", data=U)
    folder = tmp_path / "a.zarr" / "x"
    folder.mkdir()
    (folder / ".zarray").write_text(json.dumps(OBJECTS_IN_ZARR))
    (folder / "0.0").write_bytes(pickle.dumps(bombs))
    with pytest.raises(DataError, match="asks for the codec 'pickle'"):
        infocap.read(tmp_path / "a.zarr")

    assert not proof.exists()
    pickle.loads(pickle.dumps(bombs))  # the bomb does work
    assert proof.exists()


def test_a_flipped_bit_in_our_files_is_found(tmp_path):
    original = make_recording(n=200, seed=3)
    needle = original.readouts[100:103].tobytes()
    path = original.save(tmp_path / "run.nc")
    data = bytearray(path.read_bytes())
    data[data.index(needle) + 5] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="its checksum does not agree"):
        infocap.read(path)


def test_an_element_of_a_matlab_file_of_no_known_type_is_refused(tmp_path):
    """SciPy would look the type up outside of its table, which ends the process."""
    import scipy.io

    scipy.io.savemat(tmp_path / "a.mat", {"u": U, "x": X})
    data = bytearray((tmp_path / "a.mat").read_bytes())
    n_bytes = U.nbytes
    place = data.index(b"\x09\0\0\0" + n_bytes.to_bytes(4, "little"))  # 9 is double
    data[place] = 128
    (tmp_path / "a.mat").write_bytes(data)
    with pytest.raises(DataError, match=f"an element of type 128 at byte {place}"):
        infocap.read(tmp_path / "a.mat")


def test_integers_that_matlab_stores_as_doubles_stay_doubles(tmp_path):
    """MATLAB stores numbers in the smallest type that holds them, and keeps their class beside them."""
    import scipy.io

    scipy.io.savemat(tmp_path / "a.mat", {"u": U, "x": np.arange(36, dtype="u1").reshape(12, 3)})
    data = bytearray((tmp_path / "a.mat").read_bytes())
    data[data.index(b"\6\0\0\0\x08\0\0\0\x09") + 8] = 6  # class 9, uint8, becomes class 6, double
    (tmp_path / "a.mat").write_bytes(data)
    recording = infocap.read(tmp_path / "a.mat").readouts
    assert recording.dtype == np.float64
    assert_array_equal(recording, np.arange(36).reshape(12, 3))


def test_numbers_that_look_like_a_heap_of_hdf5_are_read(tmp_path):
    x = np.frombuffer(b"GCOL\x01\0\0\0" * 36).reshape(12, 3)
    path = infocap.Recording(U, x, np.arange(12)).save(tmp_path / "run.nc")
    assert_array_equal(infocap.read(path).readouts, x)


def examples(folder):
    """Small valid files of every kind, by name; and how each is read."""
    import h5py

    folder.mkdir()
    for suffix in (".nc", ".csv"):
        saved(folder, suffix, channel=("a", "b", "c"), metadata={"a": [1, {"b": 2}]})
    for kind in FOREIGN:
        foreign_file(folder, kind, name=f"foreign {kind}")
    with h5py.File(folder / "latest.h5", "w", libver="latest") as file:
        file["u"] = U
        file.create_dataset("x", data=X, chunks=(5, 3), compression="gzip", shuffle=True)
    np.save(folder / "x.npy", X)
    designed(folder)
    basis = infocap.product_basis("legendre", 2, 3)
    result = infocap.probe(lambda u: np.column_stack([u, u**2]), basis, 64, seed=0)
    for suffix in (".nc", ".csv"):
        result.save(folder / f"result{suffix}")
    return sorted(path for path in folder.iterdir())


def read_anything(path, partner):
    """Read a file as its name wants, where `partner` holds inputs for a file of readouts alone."""
    if path.name.startswith("result"):
        return infocap.load_result(path)
    if path.suffix == ".npy":
        return infocap.read(partner, path)
    if path.name.startswith("inputs"):
        return infocap.read(path, partner)
    return infocap.read(path)


def damaged(data, rng):
    """Bytes cut short, removed, or overwritten, half the time near the start."""
    n = len(data)
    kind = rng.random()
    if kind < 0.25:
        return data[: rng.randrange(n)]
    if kind < 0.35:
        start, stop = sorted([rng.randrange(n), rng.randrange(n)])
        return data[:start] + data[stop:]
    n_exposed = n if kind < 0.7 else min(n, 400)
    overwritten = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5, 30])):
        byte = rng.choice([0, 255, 127, 128, rng.randrange(256)])
        overwritten[rng.randrange(n_exposed)] = byte
    return bytes(overwritten)


# Of 1200 such files with damage at random three ended the process in SciPy, which looks beyond the end of an array.
MAY_CRASH_SCIPY = "foreign mat v5.mat"


def count_refusals(folder, rounds, seed):
    """Damage copies of every kind of file; each is read, or is one DataError of one line."""
    rng = random.Random(seed)
    partner = folder / "partner.npy"
    np.save(partner, U)
    messages = []
    for original in examples(folder / "whole"):
        if original.name == MAY_CRASH_SCIPY:
            continue
        for _ in range(rounds):
            path = damaged_copy(original, folder, rng)
            try:
                read_anything(path, partner)
            except DataError as error:
                messages.append(str(error))
    assert [message for message in messages if "\n" in message] == []
    return len(messages)


def damaged_copy(original, folder, rng):
    """A copy of a file with damage, or of a folder with damage in one of its files."""
    path = folder / original.name
    if original.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(original, path)
        victim = rng.choice(sorted(file for file in path.rglob("*") if file.is_file()))
        victim.write_bytes(damaged(victim.read_bytes(), rng))
    else:
        path.write_bytes(damaged(original.read_bytes(), rng))
    return path


def test_damaged_files_are_one_clear_error(tmp_path):
    assert count_refusals(tmp_path, 5, seed=1) > 30


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_damaged_files_are_one_clear_error_many_times(tmp_path, seed):
    assert count_refusals(tmp_path, 150, seed + 100) > 1000


@pytest.mark.parametrize(
    "name", ["run.nc", "foreign mat v5.mat", "foreign npz.npz", "x.npy", "result.nc", "result.csv"]
)
def test_files_cut_at_any_length_are_refused(tmp_path, name):
    examples(tmp_path / "whole")
    data = (tmp_path / "whole" / name).read_bytes()
    partner = tmp_path / "partner.npy"
    np.save(partner, U)
    every_40th = range(0, len(data) - 2, max(1, len(data) // 40))
    for length in {0, 1, 2, 8, 127, 128, 129, *every_40th, len(data) - 2}:
        (tmp_path / name).write_bytes(data[:length])
        with pytest.raises(DataError):
            read_anything(tmp_path / name, partner)


FIRST_BYTES = {
    "nothing": b"",
    "HDF5": b"\x89HDF\r\n\x1a\n",
    "zip": b"PK\x03\x04",
    "npy": b"\x93NUMPY\x01\x00",
    "MATLAB": b"MATLAB 5.0".ljust(124) + b"\x00\x01IM",
    "our table": b"# {",
    "table": b"u1,x\n",
}


@given(data=st.binary(max_size=400), first_bytes=st.sampled_from(sorted(FIRST_BYTES.values())))
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_bytes_under_any_name_are_refused(tmp_path, data, first_bytes):
    partner = tmp_path / "u.npy"
    np.save(partner, np.zeros((1, 1)))
    for suffix in READ:
        path = tmp_path / f"random{suffix}"
        if suffix == ".zarr":
            path.mkdir(exist_ok=True)
            (path / "zarr.json").write_bytes(first_bytes + data)
        else:
            path.write_bytes(first_bytes + data)
        try:
            read_anything(path, partner)
            assert suffix in (".csv", ".txt", ".tsv", ".dat")
        except DataError:
            pass
    for suffix in WRITTEN:
        with pytest.raises(DataError):
            infocap.load_result(tmp_path / f"random{suffix}")


@pytest.fixture(params=["run.nc", "result.nc"])
def own_file(request, tmp_path):
    """A file of ours, and the function that reads it."""
    if request.param == "run.nc":
        return saved(tmp_path, ".nc"), infocap.read
    basis = infocap.product_basis("legendre", 2, 3)
    result = infocap.probe(lambda u: u, basis, 64, seed=0)
    return result.save(tmp_path / "result.nc"), infocap.load_result


def forge(path, part, name, value):
    """Replace a variable or an attribute in a file, and remove its checksum; None leaves it out."""
    import h5py

    copy = path.with_name("copy.nc")
    shutil.copy(path, copy)
    with h5py.File(copy, "r+") as file:
        del file.attrs["infocap_checksum"]  # which would tell
        group = file.attrs if part == "attribute" else file
        del group[name]
        if value is not None:
            group[name] = value
    return copy


NEEDED_VARIABLES = ("inputs", "readouts", "capacity", "raw")


def test_our_files_with_variables_missing_or_of_other_shapes_are_refused(own_file):
    import h5py

    path, read = own_file
    with h5py.File(path) as file:
        names = list(file)
    for name in names:
        for values in (None, np.zeros((2, 2, 2)), "text"):
            copy = forge(path, "variable", name, values)
            if values is not None and name in NEEDED_VARIABLES:
                with pytest.raises(DataError):
                    read(copy)
            else:
                with one_line_of_error_at_most(DataError):
                    read(copy)


def test_our_files_with_other_attributes_raise_one_clear_error_if_any(own_file):
    import h5py

    path, read = own_file
    with h5py.File(path) as file:
        names = {"format", "checks", "basis", "total", "n_samples"} & set(file.attrs)
    assert names
    for name in names:
        for value in (None, 7, "[" * 1000):
            with one_line_of_error_at_most(DataError):
                read(forge(path, "attribute", name, value))


READ_WITH_LITTLE_MEMORY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import infocap
from infocap.errors import DataError

inputs, *paths = sys.argv[1:]
for path in paths:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        infocap.read(inputs, path) if path.endswith(".npy") else infocap.read(path)
        message = "read"
    except DataError as error:
        message = str(error)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(path.split("/")[-1], (after - before) // 1024, message, sep="|")
"""
TERABYTES = (1 << 20, 1 << 20)  # the shape of an array that fills eight


def npy_header(shape, dtype="<f8"):
    header = io.BytesIO()
    description = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, description)
    return header.getvalue()


def write_huge_npy(folder):
    (folder / "huge.npy").write_bytes(npy_header(TERABYTES) + bytes(80))
    (folder / "endless.npy").write_bytes(npy_header((1 << 62, 1 << 62)) + bytes(80))


def write_huge_npz(folder):
    """One archive whose array declares a shape, and one whose directory declares a size as well."""
    inputs = npy_header((12, 2)) + U.tobytes()
    readouts = npy_header(TERABYTES) + bytes(1000)
    with zipfile.ZipFile(folder / "huge.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("u.npy", inputs)
        archive.writestr("x.npy", readouts)
    with zipfile.ZipFile(folder / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("u.npy", inputs)
        with archive.open("x.npy", "w", force_zip64=True) as file:
            file.write(readouts)
        archive.infolist()[1].file_size = 1 << 50


def write_huge_hdf5(folder):
    import h5py

    for name in ("huge.h5", "huge.nc"):
        with h5py.File(folder / name, "w") as file:
            file["u"] = U
            file.create_dataset("x", TERABYTES, "f8", chunks=(1000, 1000), compression="gzip")
    with h5py.File(folder / "many.h5", "w") as file:
        file["u"] = U
        size = (1 << 13, 1 << 13)  # in chunks of one number each
        file.create_dataset("x", size, "f8", chunks=(1, 1), compression="gzip")
    with h5py.File(folder / "own.nc", "w") as file:
        file.attrs["format"] = "infocap recording 1"
        for name in ("inputs", "readouts", "design_index"):
            file.create_dataset(name, (1 << 40,), "f8", chunks=(1000,))
        file.create_dataset("channel", (1 << 40,), h5py.string_dtype(), chunks=(1000,))


def write_huge_matlab(folder):
    import h5py
    import scipy.io

    write_matlab73(folder / "new.mat", u=U)
    with h5py.File(folder / "new.mat", "r+") as file:
        readouts = file.create_dataset("x", TERABYTES, "f8", chunks=(1000, 1000))
        readouts.attrs["MATLAB_class"] = np.bytes_("double")

    path = folder / "old.mat"
    scipy.io.savemat(path, {"u": U, "x": X})
    shape = np.array(X.shape, "<i4").tobytes()
    huge_shape = np.array([1 << 30, 1 << 30], "<i4").tobytes()
    path.write_bytes(path.read_bytes().replace(shape, huge_shape))


def write_huge_zarr(folder):
    import zarr

    huge = zarr.create_group(folder / "huge.zarr")
    huge.create_array("u", data=U)
    huge.create_array("x", shape=TERABYTES, chunks=(1 << 12, 1 << 12), dtype="f8")
    many = zarr.create_group(folder / "many.zarr")
    many.create_array("u", data=U)
    # Zarr goes through the names of all chunks, a million a second.
    many.create_array("x", shape=(1 << 10, 1 << 10), chunks=(1, 1), dtype="f8")


def test_files_that_declare_terabytes_are_refused_before_memory_is_taken(tmp_path):
    write_huge_npy(tmp_path)
    write_huge_npz(tmp_path)
    write_huge_hdf5(tmp_path)
    write_huge_matlab(tmp_path)
    write_huge_zarr(tmp_path)
    paths = sorted(tmp_path.iterdir())
    inputs = tmp_path / "u.npy"
    np.save(inputs, U)
    process = subprocess.run(
        [sys.executable, "-c", READ_WITH_LITTLE_MEMORY, inputs, *paths],
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stderr == ""
    lines = [line.split("|") for line in process.stdout.splitlines()]
    assert [name for name, _, _ in lines] == [path.name for path in paths]
    for name, megabytes, message in lines:
        assert re.search("declares|cut short|cannot be|is not whole", message), (name, message)
        assert int(megabytes) < 400, (name, megabytes)  # libraries included


UNREADABLE_PATHS = {
    "missing.nc": "does not exist",
    "folder.nc": "is a folder; a file is needed",
    "empty.csv": r"is empty \(0 bytes\)",
    "file.zarr": "is a file; a folder is needed",
    "bare.zarr": "it is no zarr folder",
    "run.xyz": r"suffix='\.xyz'` is not one of '\.nc', '\.h5'.*'\.csv'",
    "x\0.csv": "path=.* must be the path of a file",
}


@pytest.mark.parametrize("name", UNREADABLE_PATHS)
def test_paths_that_cannot_be_read_are_told_apart(tmp_path, name):
    (tmp_path / "folder.nc").mkdir()
    (tmp_path / "bare.zarr").mkdir()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "file.zarr").write_text("text")
    with pytest.raises((DataError, ParameterError), match=UNREADABLE_PATHS[name]):
        infocap.read(tmp_path / name)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything"
)
def test_a_file_without_permission_is_named(tmp_path):
    path = saved(tmp_path, ".nc")
    path.chmod(0)
    with pytest.raises(DataError, match=r"cannot be opened .Permission denied"):
        infocap.read(path)


def test_zarr_is_named_when_it_is_not_installed(tmp_path, monkeypatch):
    path = foreign_file(tmp_path, "zarr v3")
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ParameterError, match=r"pip install infocap\[zarr\]"):
        infocap.read(path)


# The command line


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """A function that runs a command in a folder of its own, and returns the exit code."""
    monkeypatch.chdir(tmp_path)
    return partial(run_cli, monkeypatch)


def test_import_says_what_became_of_the_files(tmp_path, cli, capsys):
    _, x = designed(tmp_path)
    write_readouts(tmp_path / "readouts.csv", x[:-1])
    assert cli("import", "inputs.csv", "readouts.csv", "-o", "run.nc") == 0
    output = capsys.readouterr().out
    assert output.startswith(
        "Recording: 15 samples, 2 inputs, 3 readouts in mW\n  check: the acquisition stopped early"
    )
    assert "written to run.nc" in output


def test_export_keeps_the_arrays_and_replaces_a_file_only_by_force(tmp_path, cli, capsys):
    expected = infocap.read(saved(tmp_path, ".nc"))
    assert cli("export", "run.nc", "run.csv") == 0
    recording = infocap.read("run.csv")
    for name in ("inputs", "readouts", "design_index", "time", "repeats", "noise", "reference"):
        assert_array_equal(getattr(recording, name), getattr(expected, name))
    assert cli("export", "run.nc", "run.csv") == 2
    assert "run.csv is there already; give another name, or --force" in capsys.readouterr().err
    assert cli("export", "run.nc", "run.csv", "--force") == 0
    assert cli("export", "run.nc", "run.xls") == 2


def test_import_takes_the_names_of_inputs_and_readouts(cli, capsys):
    np.savez("lab.npz", volts=U, spectra=X)
    assert cli("import", "lab.npz", "-o", "lab.nc") == 3
    assert "--u on the command line" in capsys.readouterr().err
    assert cli("import", "lab.npz", "--u", "volts", "--x", "spectra", "-o", "lab.nc") == 0
    assert_array_equal(infocap.read("lab.nc").readouts, X)


def test_exit_codes_of_import_tell_wrong_usage_from_bad_data(cli):
    np.savez("lab.npz", u=U, x=X)
    assert cli("import", "lab.npz") == 2
    assert cli("import", "nowhere.csv", "-o", "a.nc") == 3
    assert cli("import", "lab.npz", "-o", "nowhere/a.nc") == 3


@pytest.mark.parametrize("suffix", READ)
def test_broken_files_on_the_command_line_are_one_line_and_exit_code_3(
    tmp_path, cli, capsys, suffix
):
    path = tmp_path / f"broken{suffix}"
    if suffix == ".zarr":
        path.mkdir()
        (path / "zarr.json").write_bytes(bytes(range(256)))
    else:
        path.write_bytes(random.Random(0).randbytes(2000))
    files = [path]
    if suffix == ".npy":
        np.save("u.npy", U)
        files = ["u.npy", path]
    assert cli("import", *files, "-o", "out.nc") == 3
    message = capsys.readouterr().err
    assert message.startswith("infocap: ")
    assert message.count("\n") == 1
    assert "Traceback" not in message
    assert not Path("out.nc").exists()


RUN_ON_A_FULL_DISK = """
import resource, signal, sys
import infocap.lab.cli
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # as if the disk were full
infocap.lab.cli.run()
"""


@pytest.mark.parametrize("suffix", WRITTEN)
def test_a_full_disk_is_one_line_and_the_old_file_stays(tmp_path, suffix):
    old = saved(tmp_path, suffix)
    before = infocap.read(old)
    make_recording(n=2000).save(tmp_path / "large.csv")
    command = ["export", tmp_path / "large.csv", old, "--force"]
    process = subprocess.run(
        [sys.executable, "-c", RUN_ON_A_FULL_DISK, *command], capture_output=True, text=True
    )
    assert process.returncode == 3, process.stderr
    assert process.stderr.startswith("infocap: ")
    assert process.stderr.count("\n") == 1
    assert_same(infocap.read(old), before)
    assert {path.name for path in tmp_path.iterdir()} == {old.name, "large.csv"}


def test_a_store_is_exported_to_every_format(cli, capsys):
    plan = infocap.lab.Plan(n_inputs=2, max_degree=3, n_samples=16, noise_repeats=3, repeat_every=4)
    with infocap.lab.Store("run.db", plan) as store:
        for index, u in list(store.pending())[:12]:
            store.record(index, np.append(u, u[0] * u[1]))
    expected = infocap.read("run.db")
    for name in ("run.nc", "run.csv", "new.db"):
        assert cli("export", "run.db", name) == 0
    assert_same(infocap.read("run.nc"), expected)
    assert_array_equal(infocap.read("run.csv").repeats, expected.repeats)
    assert_array_equal(infocap.read("new.db").readouts, expected.readouts)
    assert cli("export", "run.db", "new.db") == 3
    assert "is there already; give a new name" in capsys.readouterr().err


def test_a_decimal_comma_may_come_late(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_text("u1;x1;x2\n1;0;2\n0;0,5;-1,25e-3\n")
    assert infocap.read(path).readouts.tolist() == [[0.0, 2.0], [0.5, -1.25e-3]]
