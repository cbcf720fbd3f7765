"""Files: ours come back bit for bit, other people's are understood, broken ones are one clear error."""

import io
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import zipfile
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import infocap
from infocap.errors import DataError, ParameterError
from infocap.lab.cli import run

OLD = Path(__file__).parent / "old"  # a recording in each format that earlier versions wrote
WRITTEN = (".nc", ".csv")
READ = (
    *WRITTEN,
    ".h5",
    ".mat",
    ".zarr",
    ".hdf5",
    ".npz",
    ".npy",
    ".txt",
    ".tsv",
    ".dat",
    ".db",
    ".sqlite",
)
ARRAYS = (
    "inputs",
    "readouts",
    "index",
    "acquired",
    "repeats",
    "noise",
    "reference",
    "reference_acquired",
)
U = np.random.default_rng(0).uniform(-1, 1, (12, 2))
X = np.random.default_rng(1).normal(size=(12, 3))


def recording(n=12, q=2, k=3, dtype=float, seed=0, optional=ARRAYS[3:], **words):
    rng = np.random.default_rng(seed)

    def readouts(rows):
        values = 100 * rng.normal(size=(rows, k))
        return (
            values + 1j * rng.normal(size=(rows, k)) if np.dtype(dtype).kind == "c" else values
        ).astype(dtype)

    repeats = 10 ** rng.uniform(-300, 300, (n, k))
    repeats[rng.random(n) < 0.5] = np.nan
    held = {
        "acquired": rng.permutation(n).astype(float),
        "repeats": repeats,
        "noise": readouts(5),
        "reference": readouts(4),
        "reference_acquired": rng.random(4),
    }
    if "reference" not in optional:
        optional = tuple(name for name in optional if name != "reference_acquired")
    index = np.sort(rng.choice(9999, n, replace=False))
    parts = {name: held[name] for name in optional}
    return infocap.Recording(rng.uniform(-1, 1, (n, q)), readouts(n), index, **parts, **words)


def assert_same(one, other):
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert (a.dtype, a.shape) == (b.dtype, b.shape), name
            assert a.tobytes() == b.tobytes(), name
    for name in ("readout_unit", "input_unit", "channel", "metadata", "checks"):
        assert getattr(one, name) == getattr(other, name), name


def saved(folder, suffix, **options):
    return recording(**options).save(Path(folder) / f"run{suffix}")


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


def drawn(data):
    """Any recording."""
    k = data.draw(st.integers(1, 4))
    dtypes = [float, np.float32, np.int16, np.uint8, np.int64, complex, np.complex64]
    return recording(
        data.draw(st.integers(1, 9)),
        data.draw(st.integers(1, 3)),
        k,
        data.draw(st.sampled_from(dtypes)),
        data.draw(st.integers(0, 99)),
        tuple(name for name in ARRAYS[3:] if data.draw(st.booleans())),
        readout_unit=data.draw(WORDS),
        input_unit=data.draw(WORDS),
        channel=data.draw(
            st.just(()) | st.lists(WORDS.filter(str.strip), min_size=k, max_size=k).map(tuple)
        ),
        metadata=data.draw(st.dictionaries(WORDS, PLAIN, max_size=3)),
        checks=tuple(data.draw(st.lists(WORDS, max_size=2))),
    )


@given(data=st.data())
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_netcdf_gives_the_recording_back_bit_for_bit(tmp_path, data):
    given_ = drawn(data)
    path = given_.save(tmp_path / "run.nc")
    assert_same(given_, infocap.read(path))
    assert [one.name for one in tmp_path.iterdir()] == [path.name]  # nothing is left beside it


@given(data=st.data())
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_table_gives_all_numbers_back(tmp_path, data):
    given_ = replace(drawn(data), channel=())
    found = infocap.read(given_.save(tmp_path / "run.csv"))
    for name in ("inputs", "readouts", "index", "repeats", "noise", "reference"):
        ours, theirs = getattr(given_, name), getattr(found, name)
        if name == "repeats" and ours is not None and np.isnan(ours).all():
            ours = None
        assert (ours is None) == (theirs is None), name
        assert ours is None or np.array_equal(ours, theirs, equal_nan=True), name
    if given_.time is not None:
        assert_array_equal(found.time, given_.time)


def test_special_values_come_back(tmp_path):
    x = np.array(
        [[np.nan, np.inf], [-np.inf, -0.0], [5e-324, 1.7976931348623157e308], [0.1, 1 / 3]]
    )
    given_ = infocap.Recording(np.zeros((4, 1)), x, np.arange(4), noise=np.empty((0, 2)))
    assert_same(given_, infocap.read(given_.save(tmp_path / "run.nc")))
    assert infocap.read(given_.save(tmp_path / "run.csv")).readouts.tobytes() == x.tobytes()


def test_large_metadata_fit(tmp_path):
    long = {"table": list(range(40_000))}
    assert infocap.read(saved(tmp_path, ".nc", metadata=long)).metadata == long


@pytest.mark.parametrize("suffix", [".h5", ".mat", ".csv", ".zarr"])
def test_what_earlier_versions_wrote_still_loads(tmp_path, suffix):
    """The same recording in every format of version 0.1; of a table only the type of its numbers is lost."""
    whole = infocap.read(OLD / "run.nc")
    assert (whole.metadata, whole.checks) == (
        {"operator": "Ada", "gain": 2.5},
        ("the lamp flickered",),
    )
    assert (whole.channel, whole.readout_unit, whole.input_unit) == (("a", "b", "c"), "mW", "V")
    assert_array_equal(
        whole.inputs, [[0.274, -0.46], [-0.918, -0.967], [0.627, 0.826], [0.213, 0.459]]
    )
    assert whole.reference_time.tolist() == [0.5, 1.5, 2.5]
    path = OLD / f"run{suffix}"
    if suffix == ".h5":  # the same bytes
        path = shutil.copy(OLD / "run.nc", tmp_path / "run.h5")
    found = infocap.read(path)
    if suffix == ".csv":
        single = {
            name: getattr(found, name).astype("f4") for name in ("readouts", "noise", "reference")
        }
        found = replace(found, **single)
    assert_same(found, whole)


def test_numpy_values_in_metadata_become_plain_ones_and_others_are_refused(tmp_path):
    path = saved(tmp_path, ".nc", metadata={"gain": np.float64(2.5), "steps": np.arange(3)})
    assert infocap.read(path).metadata == {"gain": 2.5, "steps": [0, 1, 2]}
    with pytest.raises(ParameterError, match=r"`metadata` must be plain data.*'set' object"):
        saved(tmp_path, ".nc", metadata={"a": {1}})


def test_files_are_open_to_the_usual_libraries(tmp_path):
    import h5py
    import pandas as pd
    import xarray as xr

    given_ = recording(channel=("a", "b", "c"), readout_unit="mW", optional=())
    for suffix in WRITTEN:
        given_.save(tmp_path / f"run{suffix}")
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as data:
        assert_array_equal(data["readouts"].sel(channel="b"), given_.readouts[:, 1])
        assert data["readouts"].attrs["units"] == "mW"
    with h5py.File(tmp_path / "run.nc") as file:
        assert_array_equal(file["inputs"], given_.inputs)
    table = pd.read_csv(tmp_path / "run.csv")
    assert list(table) == ["index", "u1", "u2", "a", "b", "c"]
    np.testing.assert_allclose(table["b"], given_.readouts[:, 1], rtol=1e-14)


def test_what_a_format_cannot_hold_is_said(tmp_path):
    with pytest.raises(DataError, match="acquired holds datetime64"):
        infocap.Recording(U[:1], X[:1], np.arange(1), time=np.zeros(1, "M8[s]")).save(
            tmp_path / "r.nc"
        )
    for suffix in (".xls", ".mat", ".zarr", ".h5"):
        with pytest.raises(
            ParameterError, match=rf"suffix='\{suffix}'` is not one of '\.nc', '\.csv'"
        ):
            recording().save(tmp_path / f"run{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", WRITTEN)
def test_a_write_that_fails_leaves_the_old_file(tmp_path, suffix, monkeypatch):
    path = saved(tmp_path, suffix)
    before = infocap.read(path)

    def no_space(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", no_space)
        with pytest.raises(OSError, match="No space left"):
            saved(tmp_path, suffix, seed=1)
    assert_same(infocap.read(path), before)
    assert list(tmp_path.iterdir()) == [path]


def test_a_recording_with_parts_of_other_sizes_is_refused():
    for wrong in ({"repeats": X[:3]}, {"noise": U}, {"acquired": np.zeros(3)}, {"reference": X[0]}):
        (name,) = wrong
        with pytest.raises(DataError, match=f"^{name} has shape .*; a recording needs"):
            infocap.Recording(U, X, np.arange(12), **wrong)
    with pytest.raises(DataError, match="channel has 2 names for 3 readouts"):
        infocap.Recording(U, X, np.arange(12), channel=("a", "b"))


# Files of others


def matlab73(path, **variables):
    """What MATLAB's save -v7.3 writes: a block of text, then HDF5 with transposed arrays."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in variables.items():
            if np.iscomplexobj(values):
                stored = np.empty(values.T.shape, [("real", "f8"), ("imag", "f8")])
                stored["real"], stored["imag"] = values.T.real, values.T.imag
            else:
                stored = values.T
            file[name] = stored
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def write_foreign(path, kind, u, x):
    import h5py
    import scipy.io
    import xarray as xr
    import zarr

    if kind == "mat v5":
        scipy.io.savemat(path, {"u": u, "x": x})
    elif kind == "mat v7":
        scipy.io.savemat(
            path,
            {"inputs": u, "Readouts": x, "note": "text", "c": [{"a": 1}, "b"]},
            do_compression=True,
        )
    elif kind == "mat v7.3":
        matlab73(path, U=u, X=x)
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            file["input"], file["outputs"], file["more/spectra"], file["words"] = (
                u,
                x,
                x,
                ["a", "b"],
            )
    elif kind == "npz":
        np.savez_compressed(path, u=u, X=x)
    elif kind == "nc":
        data = {"u": (("n", "q"), u), "x": (("n", "k"), x)}
        xr.Dataset(data, coords={"k": ["a", "b", "c"]}).to_netcdf(path, engine="h5netcdf")
    else:
        group = zarr.create_group(path, zarr_format=int(kind[-1]))
        group.create_array("u", data=u, chunks=(5, 2))
        group.create_array("x", data=x, chunks=(5, 2))


FOREIGN = {
    "mat v5": ".mat", "mat v7": ".mat", "mat v7.3": ".mat", "h5": ".h5", "npz": ".npz", "nc": ".nc", "zarr v2": ".zarr",
    "zarr v3": ".zarr",
}  # fmt: skip


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("dtype", [">f8", "f4", "i2", "u1", "c16"])
def test_files_of_others_are_read_by_obvious_names(tmp_path, kind, dtype):
    if dtype == "c16" and kind == "nc":
        pytest.skip("NetCDF has no complex numbers")
    x = (10 * X).astype(dtype) if dtype != "u1" else np.abs(10 * X).astype(dtype)
    path = tmp_path / f"data{FOREIGN[kind]}"
    write_foreign(path, kind, U, x)
    found = infocap.read(path)
    assert_array_equal(found.inputs, U)
    assert_array_equal(found.readouts, x)
    assert found.readouts.dtype == x.dtype.newbyteorder("=")
    assert_array_equal(found.index, np.arange(12))


def test_variables_are_found_by_the_names_given(tmp_path):
    import h5py
    import scipy.io

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["run1/spectra"], file["run1/voltages"] = X, U
        file["a"], file["b"] = U[:, 0], U[:, 1]
    found = infocap.read(tmp_path / "a.h5", u="run1/voltages", x="run1/spectra")
    assert_array_equal(found.readouts, X)
    assert_array_equal(infocap.read(tmp_path / "a.h5", u="a,b", x="run1/s*").inputs, U)
    scipy.io.savemat(
        tmp_path / "a.mat",
        {"data": {"u": U, "y": X, "deep": {"z": X}}, "u1": U[:, 0], "u2": U[:, 1]},
    )
    assert_array_equal(infocap.read(tmp_path / "a.mat", u="data.u", x="data.deep.z").readouts, X)
    assert_array_equal(infocap.read(tmp_path / "a.mat", x="data/y").inputs, U)
    scipy.io.savemat(tmp_path / "one.mat", {"u": U[:, 0], "x": X}, oned_as="column")
    assert infocap.read(tmp_path / "one.mat").inputs.shape == (12, 1)
    np.savez(
        tmp_path / "one.npz",
        u=U[:, 0],
        x=X,
        index=np.arange(12)[::-1],
        acquired=np.arange(12.0) + 7,
    )
    found = infocap.read(tmp_path / "one.npz")
    assert_array_equal(found.inputs[:, 0], U[::-1, 0])
    assert_array_equal(found.time, np.arange(12.0)[::-1] + 7)


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_missing_variable_lists_those_present(tmp_path, kind):
    path = tmp_path / f"data{FOREIGN[kind]}"
    write_foreign(path, kind, U, X)
    with pytest.raises(
        DataError, match=r"x='spectra' is not in .*; it holds .*\(12, 2\), .*\(12, 3\)"
    ):
        infocap.read(path, x="spectra")


def test_names_that_are_not_obvious_are_asked_for(tmp_path):
    np.savez(tmp_path / "a.npz", voltages=U, spectra=X)
    with pytest.raises(
        DataError,
        match=r"obviously the inputs \(u\); it holds voltages \(12, 2\), spectra \(12, 3\): .*u=.*--u",
    ):
        infocap.read(tmp_path / "a.npz")
    with pytest.raises(DataError, match=r"obviously the readouts \(x\)"):
        infocap.read(tmp_path / "a.npz", u="voltages")


def test_transposed_arrays_are_not_turned_silently(tmp_path):
    for u, x, flip in ((U.T, X, "u"), (U, X.T, "x"), (U[:5], X, None)):
        np.savez(tmp_path / "a.npz", u=u, x=x)
        hint = (
            f"the lengths agree with {flip} transposed" if flip else "give one row for each sample"
        )
        with pytest.raises(DataError, match=f"u has shape .* and x has shape .*unequal.*{hint}"):
            infocap.read(tmp_path / "a.npz")
    for x, message in (
        (X[:, 0], "two dimensions"),
        (X[:, :0], "is empty"),
        (np.array("a"), "plain numbers"),
    ):
        np.savez(tmp_path / "a.npz", u=U, x=x)
        with pytest.raises(DataError, match=message):
            infocap.read(tmp_path / "a.npz")


def test_packed_integers_and_missing_values_of_netcdf_are_unpacked(tmp_path):
    import xarray as xr

    x = X.copy()
    x[3, 1] = np.nan
    data = xr.Dataset({"u": (("n", "q"), U), "x": (("n", "k"), x)})
    packed = {"x": {"dtype": "i2", "scale_factor": 0.001, "add_offset": 1.0, "_FillValue": -9999}}
    data.to_netcdf(tmp_path / "packed.nc", engine="h5netcdf", encoding=packed)
    np.testing.assert_allclose(infocap.read(tmp_path / "packed.nc").readouts, x, atol=6e-4)


def test_other_files_under_these_names_are_told_apart(tmp_path):
    (tmp_path / "classic.nc").write_bytes(b"CDF\x01" + bytes(100))
    with pytest.raises(DataError, match="classic format; convert it with nccopy"):
        infocap.read(tmp_path / "classic.nc")
    (tmp_path / "octave.mat").write_text("# Created by Octave 8.4.0\n" + "# name: u\n" * 20)
    with pytest.raises(DataError, match="save it with -v7"):
        infocap.read(tmp_path / "octave.mat")
    (tmp_path / "a.csv").write_bytes(saved(tmp_path, ".nc").read_bytes())
    with pytest.raises(DataError, match="is binary, not text"):
        infocap.read(tmp_path / "a.csv")


def test_two_files_of_any_mix(tmp_path):
    np.save(tmp_path / "u.npy", U)
    np.save(tmp_path / "x.npy", X.astype("f4"))
    np.savez(tmp_path / "x.npz", spectra=X)
    np.savetxt(tmp_path / "x.txt", X)
    np.savetxt(tmp_path / "u.csv", U, delimiter=",", header="a,b", comments="")
    for u in ("u.npy", "u.csv"):
        for x in ("x.npy", "x.npz", "x.txt"):
            found = infocap.read(tmp_path / u, tmp_path / x)
            np.testing.assert_allclose(found.inputs, U, rtol=1e-15)
            np.testing.assert_allclose(found.readouts, X, rtol=1e-6)
    with pytest.raises(ParameterError, match="holds a single array; give two files"):
        infocap.read(tmp_path / "x.npy")
    np.save(tmp_path / "xt.npy", X.T)
    with pytest.raises(DataError, match="the lengths agree with x transposed"):
        infocap.read(tmp_path / "u.npy", tmp_path / "xt.npy")
    np.save(tmp_path / "short.npy", X[:7])
    with pytest.raises(DataError, match="give one row for each sample"):
        infocap.read(tmp_path / "u.npy", tmp_path / "short.npy")


# Several files as one


def planned(folder, rows, name, seed=1, **more):
    """Some samples of a plan, in a file of their own, as `infocap export` writes it."""
    plan = infocap.lab.Plan(n_inputs=2, max_degree=2, n_samples=16, seed=seed)
    rows = np.asarray(rows)
    times = np.random.default_rng(seed).permutation(16).astype(float)[rows] + 1e9
    given_ = infocap.Recording(
        plan.inputs[rows],
        np.column_stack([plan.inputs[rows], rows]),
        rows,
        time=times,
        metadata={"plan": plan.to_dict(), "fingerprint": plan.fingerprint},
        **more,
    )
    return given_.save(folder / name)


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("rows", [(range(8, 16), range(8)), (range(0, 16, 2), range(1, 16, 2))])
def test_files_of_one_plan_are_sorted_by_design_index(tmp_path, rows, in_memory):
    files = [planned(tmp_path, part, f"{k}.nc") for k, part in enumerate(rows)]
    whole = infocap.read(planned(tmp_path, range(16), "whole.nc"))
    found = infocap.read(files, in_memory=in_memory)
    assert isinstance(found.readouts, np.ndarray) == in_memory
    for name in ("inputs", "readouts", "index", "acquired"):
        assert_array_equal(getattr(found, name)[:], getattr(whole, name), name)
    for start, stop in ((0, 0), (3, 9), (7, 8), (0, 99)):
        assert_array_equal(found.readouts[start:stop], whole.readouts[start:stop])
    assert found.metadata == whole.metadata | {"sources": [str(file) for file in files]}
    for source in (found.inputs, found.readouts):
        assert (source.shape[0], source.dtype) == (16, np.float64)
        assert_array_equal(pickle.loads(pickle.dumps(source))[2:11], source[2:11])


@pytest.mark.filterwarnings("ignore:nothing of the inputs")
@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")  # the same rows twice
def test_joined_rows_travel_by_the_names_of_their_files(tmp_path):
    parts = [recording(n=5000, optional=()).save(tmp_path / name) for name in ("a.nc", "b.nc")]
    found = infocap.read(parts, in_memory=False)
    assert len(pickle.dumps(found.readouts)) < 2000
    basis = infocap.product_basis("legendre", 2, 2)
    whole = infocap.read(parts)
    there, here = (
        infocap.estimate(one, basis=basis, method="raw") for one in (found, whole)
    )
    np.testing.assert_allclose(there.capacity, here.capacity, rtol=1e-12)


def test_files_without_a_design_keep_the_order_given(tmp_path):
    np.savez(tmp_path / "a.npz", u=U[:5], x=X[:5])
    np.savetxt(
        tmp_path / "b.csv",
        np.column_stack([U[5:], X[5:]]),
        delimiter=",",
        header="u1,u2,a,b,c",
        comments="",
    )
    found = infocap.read([tmp_path / "a.npz", str(tmp_path / "b.csv")])
    np.testing.assert_allclose(found.inputs, U, rtol=1e-15)
    np.testing.assert_allclose(found.readouts, X, rtol=1e-15)
    assert_array_equal(found.index, np.arange(12))
    assert found.channel == ("a", "b", "c")
    assert found.time is None
    assert [one["file"] for one in found.metadata["read_from"]] == ["a.npz", "b.csv"]
    told = infocap.read([tmp_path / "a.npz"]).metadata
    assert told["sources"] == [str(tmp_path / "a.npz")]
    assert told["read_from"] == [
        {"file": "a.npz", "as": "npz, from u (5, 2), x (5, 3)", "inputs": ["u"], "readouts": ["x"]}
    ]


def test_other_plans_keep_the_order_given(tmp_path):
    files = [planned(tmp_path, range(8, 16), "a.nc"), planned(tmp_path, range(8), "b.nc", seed=2)]
    found = infocap.read(files)
    assert_array_equal(found.index, np.arange(16))
    assert_array_equal(found.readouts[:, 2], [*range(8, 16), *range(8)])
    assert found.checks == (
        "the files are of 2 plans, and their rows are in the order of the files; estimate them apart unless they are one "
        "experiment.",
    )


def test_the_order_of_acquisition_goes_on_from_file_to_file(tmp_path):
    for name, acquired in (("a.nc", np.array([2, 0, 1])), ("b.nc", np.array([1, 0, 2]))):
        infocap.Recording(U[:3], X[:3], np.arange(3), time=acquired).save(tmp_path / name)
    infocap.Recording(U[:3], X[:3], np.arange(3)).save(tmp_path / "none.nc")
    infocap.Recording(U[:3], X[:3], np.arange(3), time=np.array([9.5, 7.5, 8.5])).save(
        tmp_path / "timed.nc"
    )
    assert infocap.read([tmp_path / "a.nc", tmp_path / "b.nc"]).time.tolist() == [2, 0, 1, 4, 3, 5]
    assert infocap.read([tmp_path / "a.nc", tmp_path / "none.nc"]).time.tolist() == [
        2,
        0,
        1,
        3,
        4,
        5,
    ]
    mixed = infocap.read([tmp_path / "timed.nc", tmp_path / "a.nc"])
    assert mixed.time.tolist() == [2, 0, 1, 5, 3, 4]


def test_repeats_noise_and_references_come_from_all_files_that_have_them(tmp_path):
    some = {
        "repeats": X[:8, :3],
        "noise": X[:2],
        "reference": X[:4],
        "reference_acquired": np.arange(4) + 1e9,
    }
    files = [
        planned(tmp_path, range(8), "a.nc", **some),
        planned(tmp_path, range(8, 12), "b.nc"),
        planned(tmp_path, range(12, 16), "c.nc", noise=X[5:6]),
    ]
    found = infocap.read(files)
    assert_array_equal(found.repeats, np.vstack([X[:8], np.full((8, 3), np.nan)]))
    assert_array_equal(found.noise, X[[0, 1, 5]])
    assert_array_equal(found.reference, X[:4])
    assert_array_equal(found.reference_time, np.arange(4) + 1e9)


def test_stores_are_joined_as_files_are(tmp_path):
    plan = infocap.lab.Plan(n_inputs=2, max_degree=2, n_samples=16, seed=1, reference_every=4)
    for name, part in (("a.db", 0), ("b.db", 1)):
        with infocap.lab.Store(tmp_path / name, plan) as store:
            for one in list(store.remaining()):
                if one.kind == "reference" or one.number % 2 == part:
                    store.record(one.number, [one.u.sum(), one.number], one.kind)
    for in_memory in (True, False):
        found = infocap.read([tmp_path / "b.db", tmp_path / "a.db"], in_memory=in_memory)
        assert_array_equal(found.index, np.arange(16))
        assert_array_equal(found.readouts[:][:, 1], np.arange(16))
        assert len(found.reference) == 2 * len(infocap.read(tmp_path / "a.db").reference)


@pytest.mark.parametrize(("changed", "message"), [
    ({"u": U[:4, :1]}, "the number of inputs is 2 in .*a.nc and 1 in .*b.nc"),
    ({"x": X[:4, :2]}, "the number of readouts is 3 in .*a.nc and 2 in .*b.nc"),
    ({"channel": ("a", "b", "d")}, r"channel is \('a', 'b', 'c'\) in .*a.nc and \('a', 'b', 'd'\) in .*b.nc"),
    ({"readout_unit": "W"}, "readout_unit is 'mW' in .*a.nc and 'W' in .*b.nc"),
    ({"input_unit": "A"}, "input_unit is 'V' in .*a.nc and 'A' in .*b.nc"),
    ({"index": np.arange(3, 7)}, "a.nc and .*b.nc hold 1 points of the same plan twice, the first of them index 3"),
])  # fmt: skip
def test_files_of_another_experiment_are_refused(tmp_path, changed, message):
    words = {
        "channel": ("a", "b", "c"),
        "readout_unit": "mW",
        "input_unit": "V",
        "metadata": {"fingerprint": "f"},
    }
    infocap.Recording(U[:4], X[:4], np.arange(4), **words).save(tmp_path / "a.nc")
    others = {"u": U[:4], "x": X[:4], "index": np.arange(4, 8)} | words | changed
    u, x = others.pop("u"), others.pop("x")
    others["channel"] = others["channel"][: x.shape[1]]
    infocap.Recording(u, x, **others).save(tmp_path / "b.nc")
    for in_memory in (True, False):
        with pytest.raises(DataError, match=message):
            infocap.read([tmp_path / "a.nc", tmp_path / "b.nc"], in_memory=in_memory)


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
def test_tables_of_every_dialect(tmp_path, text):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    found = infocap.read(path)
    assert_array_equal(found.inputs, np.array(ROWS)[:, :2])
    order = [found.channel.index(name) for name in "ab"]
    assert_array_equal(found.readouts[:, order], np.array(ROWS)[:, 2:])


def test_tables_in_other_encodings(tmp_path):
    text = "u1,power (µW)\n0.5,3\n0.25,-4.5\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "latin-1"):
        (tmp_path / "data.csv").write_bytes(text.encode(encoding))
        assert infocap.read(tmp_path / "data.csv").channel == ("power (µW)",)


def test_columns_by_name_and_pattern_and_number(tmp_path):
    import pandas as pd

    names = ["volt a", "volt b", "s1", "s2", "s3", "time"]
    frame = pd.DataFrame(np.column_stack([U, X, np.arange(12) / 8]), columns=names)
    frame.to_csv(tmp_path / "data.csv", index=False)
    found = infocap.read(tmp_path / "data.csv", u="volt b, volt a", x="s?")
    assert_array_equal(found.inputs, U[:, ::-1])
    assert found.channel == ("s1", "s2", "s3")
    assert_array_equal(found.time, np.arange(12) / 8)
    assert_array_equal(infocap.read(tmp_path / "data.csv", u="volt*").readouts, X)
    with pytest.raises(DataError, match=r"no columns named u1, u2, .*volt a, volt b, s1.*--u"):
        infocap.read(tmp_path / "data.csv")
    with pytest.raises(DataError, match=r"u='amp' is not in .*volt a, volt b"):
        infocap.read(tmp_path / "data.csv", u="amp")
    np.savetxt(tmp_path / "bare.dat", np.column_stack([U, X]))
    with pytest.raises(DataError, match="without a header line columns are numbered from 1"):
        infocap.read(tmp_path / "bare.dat")
    np.testing.assert_allclose(infocap.read(tmp_path / "bare.dat", u="1,2").readouts, X)


def test_missing_cells_are_nan_and_times_may_be_dates(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(
        "u1,time,a,b,c\n0.5,2026-01-31T12:00:00,,1+2i,\n0.25,2026-01-31 12:00:02.5Z,NA,3,\n1,2026-01-31 12:00:03,7,,\n"
    )
    found = infocap.read(path)
    assert_array_equal(found.readouts[:, 0], [np.nan, np.nan, 7])
    assert_array_equal(found.readouts[:, 1], [1 + 2j, 3, np.nan])
    assert_array_equal(np.diff(found.time), [2.5, 0.5])
    assert found.checks == ("columns of data.csv were left out: c (empty).",)


@pytest.mark.parametrize(("text", "message"), [
    ("u1,a\n1,2\n3,over\n", "has 'over' in line 3, column 'a'; give numbers only"),
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
    ("# infocap recording 1 {\"n_inputs\": 1}\nindex,acquired,u1,a\n0,,1,2\n", "is cut short after 1 rows"),
    ("# infocap recording 1 {\"checks\": \"7\"}\nindex,acquired,u1,a\n0,,1,2\n# end\n", "checks in .* is 7; it is damaged"),
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


def designed(folder, n=16):
    """inputs.csv as ``infocap draw`` writes it, and the readouts of its rows."""
    plan = infocap.lab.Plan(
        n_inputs=2,
        max_degree=3,
        n_samples=n,
        noise_repeats=3,
        repeat_every=4,
        reference_every=5,
        readout_unit="mW",
        channel=("p", "q", "r"),
    )
    codes, u = plan.schedule.codes, plan.schedule.inputs
    plan.write_inputs(folder / "inputs.csv")
    x = np.column_stack([np.sin(3 * u[:, 0]), u[:, 0] * u[:, 1], np.arange(len(u))])
    return plan, codes, u, x


def write_readouts(path, x, index=None):
    header = ["s1", "s2", "row"]
    if index is not None:
        x, header = np.column_stack([index, x]), ["index", *header]
    np.savetxt(path, x, delimiter=",", header=",".join(header), comments="", fmt="%.17g")


@pytest.mark.parametrize("with_index", [True, False])
def test_a_design_comes_back_in_its_own_order(tmp_path, with_index):
    plan, codes, _, x = designed(tmp_path)
    write_readouts(tmp_path / "readouts.csv", x, codes if with_index else None)
    found = infocap.read(tmp_path / "inputs.csv", tmp_path / "readouts.csv")
    assert_array_equal(found.index, np.arange(16))
    assert_array_equal(found.inputs, plan.inputs)
    rows = [np.flatnonzero(codes == k) for k in range(16)]
    first = np.array([row[0] for row in rows])
    assert_array_equal(found.readouts, x[first])
    assert_array_equal(found.time, first)
    for k, row in enumerate(rows):
        assert_array_equal(found.repeats[k], x[row[1]] if len(row) > 1 else [np.nan] * 3)
    assert_array_equal(found.noise, x[codes == -1])
    assert_array_equal(found.reference, x[codes == -2])
    assert_array_equal(found.reference_time, np.flatnonzero(codes == -2))
    assert found.metadata["fingerprint"] == plan.fingerprint
    assert found.metadata["plan"] == json.loads(json.dumps(plan.to_dict()))
    assert found.channel == ("s1", "s2", "row")
    assert found.checks == ()
    assert found.readout_unit == "mW"
    np.save(tmp_path / "readouts.npy", x)
    bare = infocap.read(tmp_path / "inputs.csv", tmp_path / "readouts.npy")
    assert_array_equal(bare.readouts, found.readouts)
    assert bare.channel == ("p", "q", "r")


def test_readouts_that_are_shifted_against_their_index_are_refused(tmp_path):
    _, codes, u, x = designed(tmp_path)
    write_readouts(tmp_path / "readouts.csv", x, np.roll(codes, 1))
    first = int(np.argmax(np.roll(codes, 1) != codes))
    with pytest.raises(
        DataError,
        match=f"index is {codes[first]} in .*at row {first + 1}, .*shifted or of another run",
    ):
        infocap.read(tmp_path / "inputs.csv", tmp_path / "readouts.csv")
    shifted = np.column_stack([np.roll(u, 1, axis=0), x])
    np.savetxt(tmp_path / "readouts.csv", shifted, delimiter=",", header="u1,u2,a,b,c", comments="")
    with pytest.raises(DataError, match=r"u is \[.* the readouts are shifted or of another run"):
        infocap.read(tmp_path / "inputs.csv", tmp_path / "readouts.csv")


def test_an_acquisition_that_stopped_early_is_used_as_far_as_it_goes(tmp_path):
    _, codes, _, x = designed(tmp_path)
    n = len(x)
    write_readouts(tmp_path / "readouts.csv", x[:12], codes[:12])
    found = infocap.read(tmp_path / "inputs.csv", tmp_path / "readouts.csv")
    assert found.checks == (
        f"the acquisition stopped early: 12 of {n} measurements are there, taken for the first in the order of acquisition; "
        "measure the others for the whole design.",
    )
    write_readouts(tmp_path / "readouts.csv", x[:12])
    unknown = infocap.read(tmp_path / "inputs.csv", tmp_path / "readouts.csv")
    assert (
        "write the index along with the readouts, in case a row was lost in between"
        in unknown.checks[0]
    )
    assert_array_equal(found.index, np.unique(codes[:12][codes[:12] >= 0]))
    assert "check: the acquisition stopped early" in repr(found)
    write_readouts(tmp_path / "readouts.csv", np.vstack([x, x[:1]]))
    with pytest.raises(DataError, match="unequal numbers of samples; give one row for each sample"):
        infocap.read(tmp_path / "inputs.csv", tmp_path / "readouts.csv")
    np.save(tmp_path / "flat.npy", x.T)
    with pytest.raises(DataError, match="the lengths agree with x transposed"):
        infocap.read(tmp_path / "inputs.csv", tmp_path / "flat.npy")


def test_a_point_is_measured_once_or_twice(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("index,u1,a\n1,0.5,1\n0,0.1,2\n1,0.5,3\n")
    found = infocap.read(path)
    assert_array_equal(found.readouts, [[2], [1]])
    assert_array_equal(found.repeats, [[np.nan], [3]])
    assert_array_equal(found.time, [1, 0])
    path.write_text("index,u1,a\n1,0.5,1\n0,0.1,2\n1,0.5,3\n1,0.5,3\n")
    with pytest.raises(
        DataError, match="has 1 3 times; a point of the design is measured once or twice"
    ):
        infocap.read(path)
    path.write_text("index,u1,a\n1,0.5,1\n0,0.1,2\n1,0.6,3\n")
    with pytest.raises(
        DataError, match="differs between the two rows of index 1, the second of them row 3"
    ):
        infocap.read(path)


# Broken files


class Bomb:
    """Unpickling this makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickles_are_refused_and_never_run(tmp_path):
    import zarr

    proof = tmp_path / "executed"
    bombs = np.array([[Bomb(proof)]], dtype=object)
    np.save(tmp_path / "a.npy", bombs, allow_pickle=True)
    np.savez(tmp_path / "a.npz", u=U, x=bombs)
    np.save(tmp_path / "u.npy", U)
    with pytest.raises(DataError, match=r"pickled Python objects, .* never loaded"):
        infocap.read(tmp_path / "u.npy", tmp_path / "a.npy")
    with pytest.raises(
        DataError, match=r"x in .* holds object values; give an array of plain numbers"
    ):
        infocap.read(tmp_path / "a.npz")
    group = zarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    group.create_array("u", data=U)
    folder = tmp_path / "a.zarr" / "x"
    folder.mkdir()
    described = {
        "zarr_format": 2, "shape": [1, 1], "chunks": [1, 1], "dtype": "|O", "order": "C", "compressor": None,
        "fill_value": None, "filters": [{"id": "pickle", "protocol": 5}],
    }  # fmt: skip
    (folder / ".zarray").write_text(json.dumps(described))
    (folder / "0.0").write_bytes(pickle.dumps(bombs))
    with pytest.raises(DataError, match="asks for the codec 'pickle'"):
        infocap.read(tmp_path / "a.zarr")
    assert not proof.exists()
    pickle.loads(pickle.dumps(bombs))  # the bomb does work
    assert proof.exists()


def test_a_flipped_bit_in_our_files_is_found(tmp_path):
    given_ = recording(n=200, seed=3)
    needle = given_.readouts[100:103].tobytes()
    path = given_.save(tmp_path / "run.nc")
    data = bytearray(path.read_bytes())
    data[data.index(needle) + 5] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="its checksum does not agree"):
        infocap.read(path)


def test_a_flipped_bit_in_a_compressed_matlab_file_is_found(tmp_path):
    import scipy.io

    scipy.io.savemat(tmp_path / "a.mat", {"u": U, "x": X}, do_compression=True)
    data = bytearray((tmp_path / "a.mat").read_bytes())
    data[-3] ^= 1  # in the checksum of x, which nothing else would notice
    (tmp_path / "a.mat").write_bytes(data)
    with pytest.raises(DataError, match="cannot be read as MATLAB"):
        infocap.read(tmp_path / "a.mat")


@pytest.mark.parametrize(("program", "message"), [
    ("import os; os.abort()", "its reader crashed"),
    ("import time; time.sleep(60)", "its reader did not answer within 5 s"),
    ("import os; os.write(1, bytes([9, 0, 0, 0, 0, 0, 0, 0]) + b'[')", "its reader crashed"),
])  # fmt: skip
def test_a_reader_that_crashes_or_hangs_is_one_clear_error(tmp_path, monkeypatch, program, message):
    write_foreign(tmp_path / "a.h5", "h5", U, X)
    monkeypatch.setattr("infocap._child.PROGRAM", program)
    monkeypatch.setattr("infocap._child.START_S", 5.0)
    with pytest.raises(DataError, match=message):
        infocap.read(tmp_path / "a.h5")


def test_integers_that_matlab_stores_as_doubles_stay_doubles(tmp_path):
    """MATLAB stores numbers in the smallest type that holds them, and keeps their class beside them."""
    import scipy.io

    scipy.io.savemat(tmp_path / "a.mat", {"u": U, "x": np.arange(36, dtype="u1").reshape(12, 3)})
    data = bytearray((tmp_path / "a.mat").read_bytes())
    data[data.index(b"\6\0\0\0\x08\0\0\0\x09") + 8] = 6  # class 9, uint8, becomes class 6, double
    (tmp_path / "a.mat").write_bytes(data)
    found = infocap.read(tmp_path / "a.mat").readouts
    assert found.dtype == np.float64
    assert_array_equal(found, np.arange(36).reshape(12, 3))


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
    for suffix in (".mat", ".csv"):
        shutil.copy(OLD / f"run{suffix}", folder / f"old{suffix}")
    shutil.copytree(OLD / "run.zarr", folder / "old.zarr")
    for kind in FOREIGN:
        write_foreign(folder / f"foreign {kind}{FOREIGN[kind]}", kind, U, X)
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
    if path.name.startswith("result"):
        return infocap.load_result(path)
    if path.suffix == ".npy":
        return infocap.read(partner, path)
    return infocap.read(path, partner) if path.name.startswith("inputs") else infocap.read(path)


def broken(data, rng):
    """Bytes cut, removed, or overwritten, more often near the start."""
    data, kind = bytearray(data), rng.random()
    if kind < 0.25:
        return bytes(data[: rng.randrange(len(data))])
    if kind < 0.35:
        start, stop = sorted(rng.randrange(len(data)) for _ in range(2))
        return bytes(data[:start] + data[stop:])
    reach = len(data) if kind < 0.7 else min(len(data), 400)
    for _ in range(rng.choice([1, 1, 2, 5, 30])):
        data[rng.randrange(reach)] = rng.choice([0, 255, 127, 128, rng.randrange(256)])
    return bytes(data)


def fuzz(folder, rounds, seed):
    """Every damaged copy is read, or is one DataError."""
    rng, refused = random.Random(seed), []
    np.save(folder / "partner.npy", U)
    for whole in examples(folder / "whole"):
        slow = whole.suffix == ".mat" and "v7.3" not in whole.name  # a process for each
        for _ in range(rounds // 2 if slow else rounds):
            path = folder / whole.name
            if whole.is_dir():
                shutil.rmtree(path, ignore_errors=True)
                shutil.copytree(whole, path)
                target = rng.choice(sorted(one for one in path.rglob("*") if one.is_file()))
                target.write_bytes(broken(target.read_bytes(), rng))
            else:
                path.write_bytes(broken(whole.read_bytes(), rng))
            try:
                read_anything(path, folder / "partner.npy")
            except DataError as problem:
                refused.append(str(problem))
    assert [said for said in refused if "\n" in said] == []
    return len(refused)


def test_damaged_files_are_one_clear_error(tmp_path):
    assert fuzz(tmp_path, 5, seed=1) > 30


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_damaged_files_are_one_clear_error_many_times(tmp_path, seed):
    assert fuzz(tmp_path, 150, seed + 100) > 1000


@pytest.fixture
def without_processes(monkeypatch):
    """Read files in this process, which is quicker; for files that no reader crashes on."""

    def opened(opener, path):
        module, name = opener.split(":")
        return getattr(import_module(module), name)(path)

    monkeypatch.setattr("infocap._hdf5.in_child", opened)
    monkeypatch.setattr("infocap.lab.files._array_files.in_child", opened)
    monkeypatch.setattr("infocap.lab.files._array_files.limit_memory", lambda n_bytes: None)


@pytest.mark.parametrize(
    "name", ["run.nc", "old.mat", "old.csv", "foreign npz.npz", "x.npy", "result.nc", "result.csv"]
)
def test_files_cut_at_any_length_are_refused(tmp_path, name, without_processes):
    examples(tmp_path / "whole")
    whole = (tmp_path / "whole" / name).read_bytes()
    np.save(tmp_path / "partner.npy", U)
    step = max(1, len(whole) // 40)
    for length in {0, 1, 2, 8, 127, 128, 129, *range(0, len(whole) - 2, step), len(whole) - 2}:
        (tmp_path / name).write_bytes(whole[:length])
        with pytest.raises(DataError):
            read_anything(tmp_path / name, tmp_path / "partner.npy")


@given(data=st.binary(max_size=400), start=st.sampled_from([b"", b"\x89HDF\r\n\x1a\n", b"PK\x03\x04", b"\x93NUMPY\x01\x00",
       b"MATLAB 5.0".ljust(124) + b"\x00\x01IM", b"# infocap recording 1 {", b"# {", b"u1,x\n"]))  # fmt: skip
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_bytes_under_any_name_are_refused(tmp_path, data, start):
    np.save(tmp_path / "u.npy", np.zeros((1, 1)))
    for suffix in READ:
        path = tmp_path / f"random{suffix}"
        if suffix == ".zarr":
            path.mkdir(exist_ok=True)
            (path / "zarr.json").write_bytes(start + data)
        else:
            path.write_bytes(start + data)
        try:
            infocap.read(tmp_path / "u.npy", path) if suffix == ".npy" else infocap.read(path)
            assert suffix in (".csv", ".txt", ".tsv", ".dat")
        except DataError:
            pass
    for suffix in (".nc", ".csv"):
        with pytest.raises(DataError):
            infocap.load_result(tmp_path / f"random{suffix}")


def test_our_files_with_parts_missing_or_of_other_shapes_are_refused(tmp_path, without_processes):
    import h5py

    basis = infocap.product_basis("legendre", 2, 3)
    infocap.probe(lambda u: u, basis, 64, seed=0).save(tmp_path / "result.nc")
    saved(tmp_path, ".nc")
    for name, read in (("run.nc", infocap.read), ("result.nc", infocap.load_result)):
        with h5py.File(tmp_path / name) as file:
            variables, attributes = list(file), ["format", "checks", "basis", "total", "n_samples"]
            attributes = [one for one in attributes if one in file.attrs]
        for victim in variables:
            for values in (None, np.zeros((2, 2, 2)), "text"):
                shutil.copy(tmp_path / name, tmp_path / "copy.nc")
                with h5py.File(tmp_path / "copy.nc", "r+") as file:
                    del file.attrs["infocap_checksum"]  # forged, not damaged
                    del file[victim]
                    if values is not None:
                        file[victim] = values
                try:
                    read(tmp_path / "copy.nc")
                except DataError:
                    continue
                assert victim not in ("inputs", "readouts", "capacity", "raw") or values is None
        for victim in attributes:
            for value in (None, 7, "[" * 100_0):
                shutil.copy(tmp_path / name, tmp_path / "copy.nc")
                with h5py.File(tmp_path / "copy.nc", "r+") as file:
                    del file.attrs["infocap_checksum"]
                    del file.attrs[victim]
                    if value is not None:
                        file.attrs[victim] = value
                with suppress(DataError):
                    read(tmp_path / "copy.nc")


HUGE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import infocap
from infocap.errors import DataError
for path in sys.argv[2:]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        infocap.read(sys.argv[1], path) if path.endswith(".npy") else infocap.read(path)
        said = "read"
    except DataError as problem:
        said = str(problem)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(path.split("/")[-1], grown, said, sep="|")
"""


def npy_header(shape, dtype="<f8"):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return head.getvalue()


def huge_files(folder):
    """Files of a few kilobytes that declare terabytes."""
    import h5py
    import scipy.io
    import zarr

    shape = (1 << 20, 1 << 20)
    np.save(folder / "u.npy", U)
    (folder / "huge.npy").write_bytes(npy_header(shape) + bytes(80))
    (folder / "endless.npy").write_bytes(npy_header((1 << 62, 1 << 62)) + bytes(80))
    with zipfile.ZipFile(folder / "huge.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("u.npy", npy_header((12, 2)) + U.tobytes())
        archive.writestr("x.npy", npy_header(shape) + bytes(1000))
    with zipfile.ZipFile(folder / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("u.npy", npy_header((12, 2)) + U.tobytes())
        with archive.open("x.npy", "w", force_zip64=True) as file:
            file.write(npy_header(shape) + bytes(1000))
        archive.infolist()[1].file_size = 1 << 50
    for name in ("huge.h5", "huge.nc", "many.h5"):
        with h5py.File(folder / name, "w") as file:
            file["u"] = U
            chunks = (1, 1) if name == "many.h5" else (1000, 1000)
            size = (1 << 13, 1 << 13) if name == "many.h5" else shape
            file.create_dataset("x", size, "f8", chunks=chunks, compression="gzip")
    with h5py.File(folder / "own.nc", "w") as file:
        file.attrs["format"] = "infocap recording 1"
        for name in ("inputs", "readouts", "index", "channel"):
            kind = h5py.string_dtype() if name == "channel" else "f8"
            file.create_dataset(name, (1 << 40,), kind, chunks=(1000,))
    matlab73(folder / "new.mat", u=U)
    with h5py.File(folder / "new.mat", "r+") as file:
        file.create_dataset("x", shape, "f8", chunks=(1000, 1000)).attrs["MATLAB_class"] = (
            np.bytes_("double")
        )
    scipy.io.savemat(folder / "old.mat", {"u": U, "x": X})
    data = (folder / "old.mat").read_bytes()
    dims = np.array([12, 3], "<i4").tobytes()
    (folder / "old.mat").write_bytes(
        data.replace(dims, np.array([1 << 30, 1 << 30], "<i4").tobytes())
    )
    scipy.io.savemat(
        folder / "packed.mat", {"u": U, "x": np.zeros((1 << 20, 40))}, do_compression=True
    )
    data = zarr.create_group(folder / "huge.zarr")
    data.create_array("u", data=U)
    data.create_array("x", shape=shape, chunks=(1 << 12, 1 << 12), dtype="f8")
    many = zarr.create_group(folder / "many.zarr")
    many.create_array("u", data=U)
    many.create_array("x", shape=(1 << 13, 1 << 13), chunks=(1, 1), dtype="f8")
    return sorted(one for one in folder.iterdir() if one.name != "u.npy")


def test_files_that_declare_terabytes_are_refused_before_memory_is_taken(tmp_path):
    paths = huge_files(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-c", HUGE, tmp_path / "u.npy", *paths],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr == ""
    lines = [line.split("|") for line in ran.stdout.splitlines()]
    assert [line[0] for line in lines] == [path.name for path in paths]
    for name, grown, said in lines:
        words = ("declares", "cut short", "cannot be", "measured numbers never do", "is not whole")
        assert any(word in said for word in words), (name, said)
        assert int(grown) < 400, (name, grown)  # megabytes, libraries included


@pytest.mark.parametrize(
    "name", ["missing.nc", "folder.nc", "empty.csv", "file.zarr", "bare.zarr", "run.xyz", "x\0.csv"]
)
def test_paths_that_cannot_be_read_are_said(tmp_path, name):
    (tmp_path / "folder.nc").mkdir()
    (tmp_path / "bare.zarr").mkdir()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "file.zarr").write_text("text")
    messages = {
        "missing.nc": "does not exist",
        "folder.nc": "is a folder; a file is needed",
        "empty.csv": r"is empty \(0 bytes\)",
        "file.zarr": "is a file; a folder is needed",
        "bare.zarr": "it is no zarr folder",
        "run.xyz": r"suffix='\.xyz'` is not one of '\.nc', '\.h5'.*'\.csv'",
        "x\0.csv": "does not exist|cannot be opened",
    }
    with pytest.raises((DataError, ParameterError), match=messages[name]):
        infocap.read(tmp_path / name)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything"
)
def test_a_file_without_permission_is_said(tmp_path):
    path = saved(tmp_path, ".nc")
    path.chmod(0)
    with pytest.raises(DataError, match=r"cannot be opened .Permission denied"):
        infocap.read(path)


def test_zarr_is_named_when_it_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ParameterError, match=r"pip install infocap\[zarr\]"):
        infocap.read(OLD / "run.zarr")


# The command line


def test_import_and_export_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = designed(tmp_path)[-1]
    write_readouts(tmp_path / "readouts.csv", x[:-1])
    assert run_cli(monkeypatch, "import", "inputs.csv", "readouts.csv", "-o", "run.nc") == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "Recording: 16 samples, 2 inputs, 3 readouts in mW\n  check: the acquisition stopped early"
    )
    assert "written to run.nc" in said
    first = infocap.read("run.nc")
    assert run_cli(monkeypatch, "export", "run.nc", "run.csv") == 0
    for name in ("inputs", "readouts", "index", "acquired", "repeats", "noise", "reference"):
        assert_array_equal(getattr(infocap.read("run.csv"), name), getattr(first, name))
    assert run_cli(monkeypatch, "export", "run.nc", "run.csv") == 2
    assert "run.csv is there already; give another name, or --force" in capsys.readouterr().err
    assert run_cli(monkeypatch, "export", "run.nc", "run.csv", "--force") == 0
    assert run_cli(monkeypatch, "export", "run.nc", "run.xls") == 2
    np.savez("lab.npz", volts=U, spectra=X)
    assert run_cli(monkeypatch, "import", "lab.npz", "-o", "lab.nc") == 3
    assert "--u on the command line" in capsys.readouterr().err
    assert (
        run_cli(monkeypatch, "import", "lab.npz", "--u", "volts", "--x", "spectra", "-o", "lab.nc")
        == 0
    )
    assert_array_equal(infocap.read("lab.nc").readouts, X)
    assert run_cli(monkeypatch, "import", "lab.npz") == 2
    assert run_cli(monkeypatch, "import", "nowhere.csv", "-o", "a.nc") == 3
    assert run_cli(monkeypatch, "import", "lab.nc", "-o", "nowhere/a.nc") == 3


@pytest.mark.parametrize("suffix", READ)
def test_broken_files_on_the_command_line_are_one_line_and_exit_code_3(
    tmp_path, monkeypatch, capsys, suffix
):
    path = tmp_path / f"broken{suffix}"
    if suffix == ".zarr":
        path.mkdir()
        (path / "zarr.json").write_bytes(bytes(range(256)))
    else:
        path.write_bytes(random.Random(0).randbytes(2000))
    np.save(tmp_path / "u.npy", U)
    files = (tmp_path / "u.npy", path) if suffix == ".npy" else (path,)
    assert run_cli(monkeypatch, "import", *files, "-o", tmp_path / "out.nc") == 3
    err = capsys.readouterr().err
    assert err.startswith("infocap: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert not (tmp_path / "out.nc").exists()


FULL = """
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
    recording(n=2000).save(tmp_path / "large.csv")
    ran = subprocess.run(
        [sys.executable, "-c", FULL, "export", tmp_path / "large.csv", old, "--force"],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 3, ran.stderr
    assert ran.stderr.startswith("infocap: ")
    assert ran.stderr.count("\n") == 1
    assert_same(infocap.read(old), before)
    assert {one.name for one in tmp_path.iterdir()} == {old.name, "large.csv"}


def test_a_store_goes_to_every_format(tmp_path, monkeypatch, capsys):
    plan = infocap.lab.Plan(n_inputs=2, max_degree=3, n_samples=16, noise_repeats=3, repeat_every=4)
    with infocap.lab.Store(tmp_path / "run.db", plan) as store:
        for index, u in list(store.pending())[:12]:
            store.record(index, np.append(u, u[0] * u[1]))
    whole = infocap.read(tmp_path / "run.db")
    for suffix in WRITTEN:
        assert run_cli(monkeypatch, "export", tmp_path / "run.db", tmp_path / f"run{suffix}") == 0
    assert_same(infocap.read(tmp_path / "run.nc"), whole)
    assert_array_equal(infocap.read(tmp_path / "run.csv").repeats, whole.repeats)
    assert run_cli(monkeypatch, "export", tmp_path / "run.db", tmp_path / "new.db") == 0
    assert_array_equal(infocap.read(tmp_path / "new.db").readouts, whole.readouts)
    assert run_cli(monkeypatch, "export", tmp_path / "run.db", tmp_path / "new.db") == 3
    assert "is there already; give a new name" in capsys.readouterr().err


def test_a_decimal_comma_may_come_late(tmp_path):
    (tmp_path / "excel.csv").write_text("u1;x1;x2\n1;0;2\n0;0,5;-1,25e-3\n")
    assert infocap.read(tmp_path / "excel.csv").readouts.tolist() == [[0.0, 2.0], [0.5, -1.25e-3]]
