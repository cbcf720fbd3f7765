"""What no crash may do: lose an acknowledged measurement, or give back another one than was measured."""

import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import infocap
from infocap.errors import DataError
from infocap.lab import Store, acquire
from infocap.lab.experiment import read_store

CRASH = Path(__file__).parent / "crash"
sys.path.insert(0, str(CRASH))

from device import acknowledged, bench, plan, stored  # noqa: E402
from power import disk_after, read_log  # noqa: E402

ARRAYS = ("inputs", "readouts", "design_index", "repeats", "noise", "reference")
PAGE_BYTES = 4096
# A row of the small plan holds 5 bytes of header, 2 inputs and 20 readouts of 8 bytes.
MAX_ROWS_PER_PAGE = PAGE_BYTES // (5 + 8 * 22)


def python(script, *arguments, **options):
    """Run a script of the crash tests as a process of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(infocap.__file__).parents[1]),
        **options.pop("env", {}),
    }
    return subprocess.run(
        [sys.executable, CRASH / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=580,
        **options,
    )


def told_before(steps):
    """Return what was acknowledged in these steps of a log of the disk."""
    lines = b"".join(step.data for step in steps if step.path.endswith("/told"))
    return acknowledged(lines.decode())


def same_bytes(recording, other):
    return all(
        getattr(recording, name).tobytes() == getattr(other, name).tobytes() for name in ARRAYS
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The acquisitions that nothing interrupts."""
    recordings = {}
    for size in ("small", "large"):
        path = tmp_path_factory.mktemp("whole") / "run.db"
        recordings[size] = acquire(plan(size), bench(), path, progress=False)
    return recordings


@pytest.mark.parametrize("kills", [40, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("batch", [1, 32])
def test_kills_at_random_moments_lose_nothing_and_change_nothing(kills, batch, whole, tmp_path):
    """While rows are measured one by one or many at once, and while the run is extended."""
    done = python("kill.py", tmp_path, kills, 7, batch)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] == kills
    assert found["underway"] > kills / 2  # rows were being stored then
    assert found["lost"] == []
    assert found["torn"] == []  # of a batch all rows are there, or none
    assert found["amiss"] == []
    assert same_bytes(infocap.read(found["path"]), whole["large"])


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip(
            "a loss of power is replayed with a small C library, which needs Linux and a C compiler"
        )
    library = tmp_path_factory.mktemp("shim") / "disk.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, CRASH / "disk.c", "-ldl"], check=True
    )
    return str(library)


@pytest.mark.parametrize(
    ("cuts", "batch"), [(60, 1), (40, 32), pytest.param(2000, 1, marks=pytest.mark.slow)]
)
def test_a_loss_of_power_loses_nothing_that_was_acknowledged(cuts, batch, shim, whole, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    log = tmp_path / "log"
    environment = {"LD_PRELOAD": shim, "DISK_FOLDER": str(disk), "DISK_LOG": str(log)}
    done = python("acquire_and_tell.py", disk, "large", batch, env=environment)
    assert done.returncode == 0, done.stderr
    steps = read_log(log)
    assert sum(step.what == "sync" for step in steps) > len(plan("large").schedule) / batch
    assert {Path(step.path).name for step in steps if step.what == "sync"} >= {
        "run.db",
        "run.db-wal",
    }
    chance = random.Random(3)
    for cut in range(cuts):
        at = chance.randrange(len(steps))
        again = tmp_path / f"cut{cut}"
        again.mkdir()
        for name, content in disk_after(steps[:at], cut, str(disk)).items():
            if content is not None and not name.endswith("/told"):
                (again / Path(name).name).write_bytes(content)
        promised = told_before(steps[:at])
        if promised:
            values = stored(again / "run.db")
            assert read_store(again / "run.db").is_sound
            assert promised.items() <= values.items()
            n_planned = len(plan("large").schedule)
            assert len(values) % batch == 0 or len(values) == n_planned  # no part of a batch
        if cut % (cuts // 4) == 0:  # and the run goes on from there, to the same end
            assert same_bytes(
                acquire(plan("large"), bench(), again / "run.db", progress=False), whole["large"]
            )
        shutil.rmtree(again)


def test_the_replay_would_notice_a_store_that_does_not_wait_for_the_disk(shim, tmp_path):
    """The same with synchronous=OFF, which acknowledges what is not on the disk yet."""
    disk = tmp_path / "disk"
    disk.mkdir()
    log = tmp_path / "log"
    script = tmp_path / "careless.py"
    script.write_text(
        "import sqlite3, sys\n"
        "connect = sqlite3.connect\n"
        "class Careless(sqlite3.Connection):\n"
        "    def execute(self, text, *more):\n"
        "        return super().execute(text.replace('synchronous = FULL', 'synchronous = OFF'), *more)\n"
        "sqlite3.connect = lambda *a, **k: connect(*a, factory=Careless, **k)\n"
        f"sys.path.insert(0, {str(CRASH)!r})\n"
        f"sys.argv = ['x', {str(disk)!r}, 'small']\n"
        f"exec(open({str(CRASH / 'acquire_and_tell.py')!r}).read())\n"
    )
    done = python(script, env={"LD_PRELOAD": shim, "DISK_FOLDER": str(disk), "DISK_LOG": str(log)})
    assert done.returncode == 0, done.stderr
    steps = read_log(log)
    at = max(k for k, step in enumerate(steps) if step.path.endswith("/told"))
    promised = told_before(steps[:at])
    left = disk_after(steps[:at], 0, str(disk))
    (tmp_path / "run.db").write_bytes(left.get(f"{disk}/run.db") or b"")
    try:
        values = stored(tmp_path / "run.db")
    except DataError:
        values = {}
    assert len(promised) > 100
    assert not promised.items() <= values.items()


@pytest.mark.parametrize("room", [10_000, 60_000, 300_000, 700_000])
def test_a_full_disk_loses_nothing_and_says_what_to_do(room, shim, whole, tmp_path):
    done = python(
        "acquire_and_tell.py",
        tmp_path,
        "small",
        env={"LD_PRELOAD": shim, "DISK_FOLDER": str(tmp_path), "DISK_BYTES": str(room)},
    )
    assert done.returncode == 3, (done.stdout, done.stderr)
    assert "full" in done.stdout
    assert "safe" in done.stdout or "nothing was measured yet" in done.stdout
    promised = acknowledged((tmp_path / "told").read_text())
    if promised:
        assert promised.items() <= stored(tmp_path / "run.db").items()
        assert infocap.read(tmp_path / "run.db").checks == ()
    assert same_bytes(acquire(plan(), bench(), tmp_path / "run.db", progress=False), whole["small"])


def test_a_file_that_may_not_grow_loses_nothing_either(whole, tmp_path):
    """The same without a compiler: the system refuses to let any file grow beyond a size."""

    def limit():
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    done = python("acquire_and_tell.py", tmp_path, "small", preexec_fn=limit)
    assert done.returncode == 3, done.stderr
    assert "Make room, then run the same command again" in done.stdout
    promised = acknowledged((tmp_path / "told").read_text())
    assert len(promised) > 10
    assert promised.items() <= stored(tmp_path / "run.db").items()
    assert same_bytes(acquire(plan(), bench(), tmp_path / "run.db", progress=False), whole["small"])


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a store that is whole, and its readouts by name."""
    path = tmp_path_factory.mktemp("sound") / "run.db"
    acquire(plan(), bench(), path, progress=False)
    return path.read_bytes(), stored(path)


def page_of(data, value):
    """Return the number of the page on which readouts stand, given as hexadecimal text."""
    return data.index(bytes.fromhex(value)) // PAGE_BYTES


def stored_or_refusal(path):
    """Return the readouts in a store by name, or None and the error that refuses the file."""
    try:
        return stored(path), ""
    except DataError as problem:
        return None, str(problem)


@pytest.mark.parametrize("seed", range(60))
def test_flipped_bytes_are_found_and_nothing_false_is_believed(seed, sound, tmp_path):
    data = bytearray(sound[0])
    values = sound[1]
    chance = random.Random(seed)
    pages = {chance.randrange(len(data)) // PAGE_BYTES for _ in range(chance.choice((1, 2, 5)))}
    for page in pages:
        for _ in range(chance.choice((1, 3, 50))):
            place = page * PAGE_BYTES + chance.randrange(PAGE_BYTES)
            data[min(place, len(data) - 1)] ^= chance.randrange(1, 256)
    path = tmp_path / "run.db"
    path.write_bytes(data)
    found, refusal = stored_or_refusal(path)
    if found is None:
        assert "nothing of it can be read" in refusal
        assert "\n" not in refusal
    else:
        assert found.items() <= values.items()
        if found != values:
            (check, *_) = infocap.read(path).checks
            assert "run.db is damaged" in check
            assert f"{len(found)} measurements are whole" in check
            with pytest.raises(DataError, match=r"is damaged.*infocap export"):
                Store(path, plan())
    assert path.read_bytes() == data  # a damaged store is left as it is


@pytest.mark.parametrize("number", [3, 100, 200])
def test_a_page_that_is_lost_costs_only_the_rows_on_it(number, sound, tmp_path):
    data = bytearray(sound[0])
    values = sound[1]
    start = page_of(data, values[f"sample {number}"]) * PAGE_BYTES
    data[start : start + PAGE_BYTES] = b"\xff" * PAGE_BYTES
    path = tmp_path / "run.db"
    path.write_bytes(data)
    found = stored(path)
    assert found.items() <= values.items()
    assert 0 < len(values) - len(found) <= MAX_ROWS_PER_PAGE
    (check,) = infocap.read(path).checks
    assert "run.db is damaged (" in check
    assert f"{len(values) - len(found)} rows are left out (row " in check
    assert "rows after the last one that can be read are lost" in check


def test_damaged_rows_are_named(sound, tmp_path):
    data = bytearray(sound[0])
    place = data.index(bytes.fromhex(sound[1]["sample 17"]))
    data[place + 40] ^= 1
    (tmp_path / "run.db").write_bytes(data)
    recording = infocap.read(tmp_path / "run.db")
    assert "1 rows are left out (sample 17)" in recording.checks[0]
    assert 17 not in recording.design_index
    assert len(recording.design_index) == 255


def test_a_repeat_whose_sample_is_damaged_is_left_out_with_it(sound, tmp_path):
    data = bytearray(sound[0])
    values = sound[1]
    number = next(name.split()[1] for name in values if name.startswith("repeat"))
    data[data.index(bytes.fromhex(values[f"sample {number}"]))] ^= 1
    (tmp_path / "run.db").write_bytes(data)
    recording = infocap.read(tmp_path / "run.db")
    assert int(number) not in recording.design_index


@pytest.mark.parametrize("share", [0.4, 0.7, 0.97])
def test_a_truncated_store_gives_back_what_is_left(share, sound, tmp_path):
    path = tmp_path / "run.db"
    path.write_bytes(sound[0][: int(share * len(sound[0]))])
    found = stored(path)
    assert found.items() <= sound[1].items()
    assert len(found) >= (share - 0.35) * len(sound[1])
    assert "is damaged" in infocap.read(path).checks[0]


def test_a_rescued_store_goes_on_to_the_same_end(sound, whole, tmp_path):
    data = bytearray(sound[0])
    values = sound[1]
    start = page_of(data, values["sample 100"]) * PAGE_BYTES
    data[start : start + PAGE_BYTES] = b"\xff" * PAGE_BYTES
    (tmp_path / "run.db").write_bytes(data)
    with Store.rescue(tmp_path / "run.db", tmp_path / "new.db") as store:
        assert 0 < len(store) < len(store.schedule)
        assert [event["what"] for event in store.events] == ["begun", "ended"]
    recording = acquire(plan(), bench(), tmp_path / "new.db", progress=False)
    assert recording.checks == ()
    assert same_bytes(recording, whole["small"])


def test_a_store_of_another_kind_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE thing (x)")
    connection.commit()
    connection.close()
    with pytest.raises(DataError, match="not an acquisition store"):
        Store(tmp_path / "other.db", plan())
    (tmp_path / "noise.db").write_bytes(np.random.default_rng(0).bytes(20_000))
    with pytest.raises(DataError, match="not an acquisition store"):
        infocap.read(tmp_path / "noise.db")


def test_a_log_without_its_store_is_not_thrown_away(tmp_path):
    store = Store(tmp_path / "run.db", plan())
    for measurement in list(store.remaining())[:20]:
        store.record(measurement.number, np.arange(20.0), measurement.kind)
    for suffix in ("", "-wal"):  # what a crash leaves, half of it moved away
        shutil.copy(tmp_path / f"run.db{suffix}", tmp_path / f"left.db{suffix}")
    store.close()
    (tmp_path / "left.db").rename(tmp_path / "night1.db")
    log = (tmp_path / "left.db-wal").read_bytes()
    with pytest.raises(
        DataError, match=r"left.db-wal is part of a store that was moved or renamed"
    ):
        Store(tmp_path / "left.db", plan())
    assert (tmp_path / "left.db-wal").read_bytes() == log
    (tmp_path / "left.db-wal").rename(tmp_path / "night1.db-wal")
    with Store(tmp_path / "night1.db", plan()) as store:
        assert len(store) == 20


def test_a_damaged_head_or_definition_is_one_clear_error_or_costs_nothing(sound, tmp_path):
    data, values = sound
    path = tmp_path / "run.db"
    definition = data.index(b"CREATE TABLE entry")
    n_refused = 0
    for place in [*range(0, 100, 3), *range(definition - 40, definition + 460, 20)]:
        changed = bytearray(data)
        changed[place] ^= 0x41
        path.write_bytes(changed)
        found, refusal = stored_or_refusal(path)
        if found is None:
            n_refused += 1
            assert "nothing of it can be read" in refusal
        else:
            assert found == values, place
    assert n_refused > 0
