"""Files that are made to do harm, or are damaged where nobody looks: one clear error each, soon and without memory."""

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import zarr
from test_files import (
    ARRAYS,
    MAY_CRASH_SCIPY,
    U,
    X,
    damaged_copy,
    examples,
    make_recording,
    read_anything,
    run_cli,
    write_hdf5,
)

import infocap
from infocap.errors import DataError, InfocapError, ParameterError
from infocap.lab import Plan, Store, status
from infocap.lab.experiment import Kind, Measurement
from infocap.lab.experiment._store_row import SCHEMA, StoreRow
from support import one_line_of_error_at_most

PLAN = Plan(n_inputs=2, max_degree=3, n_samples=16, seed=1)


def zarr_folder(path, **settings):
    group = zarr.create_group(path, zarr_format=2)
    group.create_array("u", data=U)
    group.create_array("x", data=X, chunks=(4, 3), **settings)
    return path / "x" / "1.0"  # one of its chunks


def fifo(path):
    chunk = zarr_folder(path)
    chunk.unlink()
    os.mkfifo(chunk)


def endless(path):
    chunk = zarr_folder(path)
    chunk.unlink()
    chunk.symlink_to("/dev/zero")


def outside(path):
    chunk = zarr_folder(path)
    chunk.rename(path.parent / "elsewhere")
    chunk.symlink_to(path.parent / "elsewhere")


def linked_folder(path):
    zarr_folder(path)
    (path / "x").rename(path.parent / "elsewhere")
    (path / "x").symlink_to(path.parent / "elsewhere")


def lost_chunk(path):
    zarr_folder(path).unlink()


def half_written(path):
    with h5py.File(path, "w") as file:
        file["u"] = U
        file.create_dataset("x", (12, 3), float, chunks=(4, 3))[:4] = X[:4]


def never_written(path):
    with h5py.File(path, "w") as file:
        file["u"] = U
        file.create_dataset("x", (12, 3), float)


def virtual(path):
    write_hdf5(path.parent / "other.h5", U, X)
    layout = h5py.VirtualLayout((12, 3), float)
    layout[:] = h5py.VirtualSource("other.h5", "outputs", (12, 3))
    with h5py.File(path, "w", libver="latest") as file:
        file["u"] = U
        file.create_virtual_dataset("x", layout)


def external(path):
    (path.parent / "x.bin").write_bytes(X.tobytes())
    with h5py.File(path, "w") as file:
        file["u"] = U
        file.create_dataset("x", X.shape, X.dtype, external=[("x.bin", 0, X.nbytes)])


def view(path):
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE VIEW entry AS WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) "
        "SELECT k AS id, 'sample' AS kind, k AS number, 0.0 AS time, x'00' AS data, 0 AS crc FROM n"
    )
    connection.commit()
    connection.close()


CRAFTED = {
    "fifo.zarr": (fifo, "is no regular file"),
    "endless.zarr": (endless, "is no regular file"),
    "outside.zarr": (outside, "out of the folder"),
    "lost.zarr": (lost_chunk, "2 of its 3 chunks are there, and the others would be read as zeros"),
    "half.h5": (half_written, "1 of its 3 chunks are there"),
    "never.h5": (never_written, "nothing of it was written"),
    "source.h5": (virtual, "its values lie in other files; copy them into this one"),
    "external.h5": (external, "its values lie in other files; copy them into this one"),
    "linked.zarr": (linked_folder, "out of the folder"),
    "view.db": (view, "its table is not that of a store"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_files_are_one_clear_error(tmp_path, name):
    make, message = CRAFTED[name]
    make(tmp_path / name)
    for in_memory in (True, False):
        with pytest.raises(DataError, match=message):
            infocap.read(tmp_path / name, in_memory=in_memory)


def test_two_thousand_fields_of_a_structure_are_read_soon(tmp_path):
    fields = {f"f{k}": np.full((100, 5), k) for k in range(2000)}
    scipy.io.savemat(tmp_path / "fields.mat", {"u": U, "x": X, "data": fields}, do_compression=True)
    assert infocap.read(tmp_path / "fields.mat").readouts.tobytes() == X.tobytes()


# Our own files: checksums


@pytest.mark.parametrize("suffix", [".nc", ".csv"])
def test_every_flipped_byte_of_a_result_is_found(tmp_path, suffix):
    basis = infocap.product_basis("legendre", 2, 2)
    path = infocap.probe(lambda u: np.column_stack([u, u**2]), basis, 64, seed=0).save(
        tmp_path / f"result{suffix}"
    )
    data = path.read_bytes()
    for place in range(0, len(data), max(1, len(data) // (300 if suffix == ".nc" else 3000))):
        changed = bytearray(data)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(DataError):
            infocap.load_result(path)
    path.write_bytes(data)
    assert infocap.load_result(path).total > 4


def test_a_zeroed_index_of_chunks_neither_crashes_nor_reads_zeros(tmp_path):
    path = make_recording(n=2000, n_readouts=300, optional=()).save(tmp_path / "run.nc")
    data = path.read_bytes()
    place = data.index(b"TREE")
    for start in (place, place + 24):
        path.write_bytes(data[:start] + bytes(64) + data[start + 64 :])
        with pytest.raises(DataError, match="its checksum does not agree"):
            infocap.read(path)
        path.write_bytes(data[:start] + bytes(64) + data[start + 64 : -25])  # without the last line
        with pytest.raises(DataError, match="its checksum does not agree"):
            infocap.read(path)


def test_a_file_changed_by_another_program_is_refused_until_the_user_says_that_it_is_meant(
    tmp_path,
):
    path = make_recording(optional=()).save(tmp_path / "run.nc")
    with h5py.File(path, "r+") as file:
        file["readouts"][0, 0] = 7.0
    with pytest.raises(DataError, match="delete its attribute 'infocap_checksum'"):
        infocap.read(path)
    with h5py.File(path, "r+") as file:
        del file.attrs["infocap_checksum"]
    assert infocap.read(path).readouts[0, 0] == 7.0


# Forged stores, results and plans


def store_of(path, entries):
    connection = sqlite3.connect(path)
    connection.execute(SCHEMA)
    for entry in entries:
        query = "INSERT INTO entry (kind, number, time, data, crc) VALUES (?, ?, ?, ?, ?)"
        connection.execute(query, entry.columns)
    connection.commit()
    connection.close()


STORY = {"plan": PLAN.to_dict(), "fingerprint": PLAN.fingerprint}


def pack(u, x):
    measurement = Measurement(Kind.SAMPLE, 0, u, readouts=x)
    return StoreRow.of_measurement(measurement, 0.0).data


def plan_entry(**changes):
    return StoreRow("plan", 0, 1e9, json.dumps(STORY | changes).encode())


ROW = StoreRow("sample", 3, 1e9, pack(np.zeros(2), np.ones(4)))
FORGED = {
    "no plan": [ROW],
    "plan is a list": [StoreRow("plan", 0, 1e9, b"[]"), ROW],
    "plan is nested": [StoreRow("plan", 0, 1e9, b"[" * 100_000), ROW],
    "plan is a number": [plan_entry(plan=7), ROW],
    "plan of words": [plan_entry(plan={"n_inputs": "two"}), ROW],
    "huge plan": [plan_entry(plan=PLAN.to_dict() | {"n_samples": 1 << 50}), ROW],
    "many inputs": [plan_entry(plan=PLAN.to_dict() | {"n_inputs": 1 << 40}), ROW],
    "channel is a number": [plan_entry(plan=PLAN.to_dict() | {"channel": 5}), ROW],
    "schedule of nothing": [plan_entry(), StoreRow("schedule", 0, 1e9, b""), ROW],
    "schedule of too many": [plan_entry(), StoreRow("schedule", 0, 1e9, b"\xff" * 20), ROW],
    "row of nothing": [plan_entry(), StoreRow("sample", 4, 1e9, b""), ROW],
    "row of odd bytes": [plan_entry(), StoreRow("sample", 4, 1e9, ROW.data + b"x"), ROW],
    "row of many inputs": [
        plan_entry(),
        StoreRow("sample", 4, 1e9, b"f\xff\xff\xff\x7f" + bytes(40)),
        ROW,
    ],
    "rows of unequal lengths": [
        plan_entry(),
        StoreRow("sample", 4, 1e9, pack(np.zeros(2), np.ones(5))),
        ROW,
    ],
    "rows of unequal inputs": [
        plan_entry(),
        StoreRow("sample", 4, 1e9, pack(np.zeros(3), np.ones(4))),
        ROW,
    ],
    "time is infinite": [plan_entry(), StoreRow("sample", 4, float("inf"), ROW.data), ROW],
    "time in milliseconds": [plan_entry(), StoreRow("sample", 4, 1.8e12, ROW.data), ROW],
    "time before 1970": [plan_entry(), StoreRow("sample", 4, -1e300, ROW.data), ROW],
    "negative index": [plan_entry(), StoreRow("sample", -7, 1e9, ROW.data), ROW],
    "event is a list": [plan_entry(), StoreRow("event", 0, 1e9, b"[1]"), ROW],
    "event of nothing": [plan_entry(), StoreRow("event", 0, 1e9, b"{}"), ROW],
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_stores_are_read_or_one_clear_error(tmp_path, name):
    store_of(tmp_path / "run.db", FORGED[name])
    for use in (infocap.read, status, Store):
        with one_line_of_error_at_most():
            found = use(tmp_path / "run.db")
            if use is Store:
                found.close()


def test_times_in_milliseconds_are_not_believed(tmp_path):
    store_of(tmp_path / "old.db", FORGED["time in milliseconds"])
    found = infocap.read(tmp_path / "old.db")
    assert found.time.tolist() == [1, 0]
    assert "rows are in the order stored" in found.checks[0]


@pytest.mark.parametrize(
    "text", ["", "# What infocap is to measure; x\n", "n_inputs = 2", "seed = 1\nn_samples = 8"]
)
def test_a_plan_that_is_not_complete_is_refused(tmp_path, text):
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(DataError, match="is not complete: it has no"):
        Plan.load(tmp_path / "plan.toml")


def test_a_plan_cut_anywhere_is_refused(tmp_path):
    plan = Plan(
        n_inputs=2, max_degree=3, n_samples=64, domain=(0, 5), title="night 7", metadata={"a": 1}
    )
    text = plan.save(tmp_path / "plan.toml").read_text()
    assert f'fingerprint = "{plan.fingerprint}"' in text
    for length in range(text.index("title = ") + 1):
        (tmp_path / "plan.toml").write_text(text[:length])
        with pytest.raises(InfocapError):
            Plan.load(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_text(text.replace("5.0]", "5.5]"))
    with pytest.warns(infocap.errors.DataWarning, match="was changed since infocap wrote it"):
        Plan.load(tmp_path / "plan.toml")


def test_control_characters_never_reach_the_terminal(tmp_path):
    evil = "a\x1b]0;gone\x07\x1b[2J\x9b31m\u202e"
    found = make_recording(
        optional=(),
        channel=(evil, "b", "c"),
        readout_unit=evil,
        metadata={evil: evil},
        checks=(evil,),
    )
    found.save(tmp_path / "run.nc")
    np.savez(tmp_path / f"{evil}.npz", **{evil: U})
    said = [repr(found)]
    with pytest.raises(DataError) as problem:
        infocap.read(tmp_path / f"{evil}.npz")
    said.append(str(problem.value))
    source = str(Path(infocap.__file__).parents[1])
    for words in (
        ["show", "run.nc"],
        ["show", f"{evil}.npz"],
        ["estimate", "run.nc"],
        ["import", "run.nc", "-o", "b.nc"],
    ):
        command = [sys.executable, "-c", "from infocap.lab.cli import run; run()", *words]
        environment = os.environ | {"PYTHONPATH": source, "COLUMNS": "200"}
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
        said += [ran.stdout, ran.stderr]
    assert "gone" in "".join(said)
    assert not set("\x1b\x07\x9b\u202e") & set("".join(said))


# Names that are no plain files


def test_pipes_and_devices_are_refused_at_once(tmp_path):
    for suffix in (".csv", ".nc", ".db", ".toml", ".html"):
        os.mkfifo(tmp_path / f"pipe{suffix}")
    readers = {
        ".csv": infocap.read, ".nc": infocap.load_result, ".db": infocap.lab.Store,
        ".toml": infocap.lab.Plan.load, ".html": infocap.load_result,
    }  # fmt: skip
    for suffix, read in readers.items():
        with pytest.raises(DataError, match=rf"pipe\{suffix} is no regular file"):
            read(tmp_path / f"pipe{suffix}")
    with pytest.raises(DataError, match="no regular file"):
        infocap.read("/dev/zero")
    with pytest.raises(DataError, match="holds no card and no result"):
        infocap.report.gallery(tmp_path, tmp_path / "gallery.html")


def test_a_store_with_a_second_name_is_refused(tmp_path):
    plan = infocap.lab.Plan(n_inputs=1, max_degree=2, n_samples=8, seed=1)
    infocap.lab.Store(tmp_path / "run.db", plan).close()
    os.link(tmp_path / "run.db", tmp_path / "again.db")
    bench = infocap.lab.SimulatedBench(lambda u: u)
    for name in ("run.db", "again.db"):
        with pytest.raises(DataError, match="has another name, too"):
            infocap.lab.Store(tmp_path / name)
        with pytest.raises(DataError, match="has another name, too"):
            infocap.lab.acquire(plan, bench, tmp_path / name, progress=False)
    (tmp_path / "again.db").unlink()
    infocap.lab.Store(tmp_path / "run.db").close()


def test_a_plan_that_is_nested_deeply_is_one_clear_error(tmp_path):
    (tmp_path / "plan.toml").write_text("a = " + "[" * 100_000 + "]" * 100_000)
    with pytest.raises(DataError, match="nested too deeply"):
        infocap.lab.Plan.load(tmp_path / "plan.toml")


# Sizes


@pytest.mark.parametrize(("inputs", "degree"), [(2, 5000), (10_001, 1), (100_000, 3), (10, 20)])
def test_a_basis_that_is_too_large_is_refused_before_it_is_made(inputs, degree):
    with pytest.raises(
        ParameterError, match=r"functions of|as no device has|functions \(the limit is 5,000,000\)"
    ):
        infocap.product_basis("legendre", inputs, degree)


def test_many_inputs_of_degree_one_are_listed_in_order():
    basis = infocap.product_basis("legendre", 2000, 1)
    assert (basis.indices[1:] == np.eye(2000, dtype=int)[::-1]).all()
    assert not basis.indices[0].any()


@pytest.mark.filterwarnings("ignore")
def test_denormal_readouts_are_estimated_also_where_underflow_is_an_error():
    basis = infocap.product_basis("legendre", 2, 4)
    u = infocap.draw(basis, 512, seed=1)
    x = infocap.systems.RandomFeatures(2, 5, noise=0.01, seed=1)(u)
    small = 1e-310 * x
    with np.errstate(all="raise"):
        found = infocap.estimate(u, small, basis)
    assert found.total == pytest.approx(infocap.estimate(u, x, basis).total, abs=0.05)


FORK = """
import os, sys, threading, time, warnings
import numpy as np
import infocap
from infocap.result import CapacityResult
warnings.simplefilter("ignore")
basis = infocap.product_basis("legendre", 2, 4)
u = infocap.draw(basis, 512, seed=1)
x = infocap.systems.RandomFeatures(2, 5, noise=0.01, seed=1)(u)
held = type(basis).__dict__["degrees"]
if hasattr(held, "lock"):  # until Python 3.11: what a thread holds while it computes a cached property
    threading.Thread(target=lambda: (held.lock.acquire(), time.sleep(60)), daemon=True).start()
    time.sleep(0.2)
if os.fork() == 0:
    basis = infocap.product_basis("legendre", 2, 4)
    infocap.estimate(u, x, basis)
    print("done", flush=True)
    os._exit(0)
os.wait()
os._exit(0)
"""


def test_a_process_forked_during_an_estimate_does_not_wait_for_locks_of_its_parent():
    environment = os.environ | {"PYTHONPATH": str(Path(infocap.__file__).parents[1])}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK],
        capture_output=True,
        text=True,
        timeout=40,
        env=environment,
    )
    assert ran.stdout == "done\n", ran.stderr


def test_paused_dask_workers_are_an_error_and_not_waited_for(monkeypatch):
    monkeypatch.setattr("infocap.samples._dask.MAX_SILENCE_S", 2.0)
    distributed = pytest.importorskip("distributed")
    basis = infocap.product_basis("legendre", 2, 2)
    u = infocap.draw(basis, 64, seed=1)

    def pause(dask_worker):
        from distributed import Status

        dask_worker.status = Status.paused

    settings = {"n_workers": 1, "processes": False, "dashboard_address": ":0", "memory_limit": 0}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        client.run(pause)
        time.sleep(0.5)
        with pytest.raises(ParameterError, match=r"do nothing: .* \(paused\)"):
            infocap.estimate(u, u**2, basis, executor=client)


def test_domains_and_families_are_given_once_or_once_for_each_input(tmp_path, monkeypatch):

    monkeypatch.chdir(tmp_path)
    plan = [
        "plan",
        "--n-inputs",
        "2",
        "--max-degree",
        "3",
        "--n-samples",
        "64",
        "-o",
        "plan.toml",
        "--force",
    ]
    assert run_cli(monkeypatch, *plan, "--domain", 0, 5, "--domain", 0, 6.283) == 0
    domains = [family.bounds for family in Plan.load("plan.toml").basis.families]
    assert domains == [(0.0, 5.0), (0.0, 6.283)]
    assert run_cli(monkeypatch, *plan, *3 * ["--domain", 0, 5]) == 2
    assert run_cli(monkeypatch, *plan, *3 * ["--family", "legendre"]) == 2
    assert run_cli(monkeypatch, *plan, "--family", "legendre", "--family", "hermite") == 0
    assert [family.name for family in Plan.load("plan.toml").basis.families] == [
        "legendre",
        "hermite",
    ]


# Damage at random

MUTATED = """
import resource, sys, time, warnings
warnings.simplefilter("ignore")
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/.."]
import test_hostile
test_hostile.mutate(test_hostile.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
"""


def has_same_numbers(read, expected):
    """Whether a result or a recording has the numbers that were saved."""
    if not isinstance(expected, infocap.Recording):
        is_same = read.capacity.tobytes() == expected.capacity.tobytes()
        return is_same and read.total == expected.total
    for name in ARRAYS:
        array = getattr(read, name)
        expected_array = getattr(expected, name)
        if (array is None) != (expected_array is None):
            return False
        if array is not None and array.tobytes() != expected_array.tobytes():
            return False
    return True


def mutate(folder, count, seed):
    """Damage files of all kinds at random; print what is worse than one clear error."""
    import resource

    rng = random.Random(seed)
    partner = folder / "partner.npy"
    np.save(partner, U)
    originals = [file for file in examples(folder / "whole") if file.name != MAY_CRASH_SCIPY]
    database = folder / "whole" / "run.db"
    with Store(database, PLAN) as store:
        for measurement in store.remaining():
            u = measurement.u
            store.record(measurement.number, np.append(u, u**2), measurement.kind)
    originals.append(database)
    expected = {}
    for path in originals:
        if path.name in ("run.nc", "result.nc", "result.csv"):
            expected[path] = read_anything(path, None)

    n_refused = 0
    for number in range(count):
        original = originals[number % len(originals)]
        path = damaged_copy(original, folder, rng)
        started = time.monotonic()
        try:
            read = read_anything(path, partner)
            if original in expected and not has_same_numbers(read, expected[original]):
                print("wrong numbers", original.name, number)
            if original == database and read.checks == () and len(read.inputs) == PLAN.n_samples:
                squares = np.column_stack([read.inputs, read.inputs**2])
                if squares.tobytes() != read.readouts.tobytes():
                    print("wrong numbers", original.name, number)
        except InfocapError as error:
            n_refused += 1
            if "\n" in str(error):
                print("more than a line", original.name, number, repr(error))
        except Exception as error:
            print("traceback", original.name, number, repr(error))
        if time.monotonic() - started > 20:  # once more: a busy machine is slow, too
            started = time.monotonic()
            with suppress(InfocapError):
                read_anything(path, partner)
            if time.monotonic() - started > 20:
                print("hang", original.name, number, time.monotonic() - started)
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        if resource.getrusage(who).ru_maxrss > 1_000_000:
            print("memory", resource.getrusage(who).ru_maxrss)
    print("refused", n_refused, "of", count)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_damaged_files_of_all_kinds(tmp_path, seed):
    command = [sys.executable, "-c", MUTATED, Path(__file__).parent, tmp_path, "1000", str(seed)]
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr  # nothing crashed
    *worse, last = ran.stdout.strip().split("\n")
    assert worse == []
    assert int(last.split()[1]) > 500
