"""Two programs that save to one name at the same time: one of the files stays, and it is whole."""

import hashlib
import multiprocessing
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

import infocap
from infocap.errors import DataError, ParameterError

# Seconds that a save may take before the test fails.
MAX_WAIT_S = 120
BASIS = infocap.product_basis("legendre", 2, 3)


def measured(number):
    """The recording of the saver with this number; the second is larger."""
    n_samples = 128 * (1 + 3 * number)
    u = infocap.draw(BASIS, n_samples, seed=number)
    x = infocap.systems.RandomFeatures(2, 4, noise=0.05, seed=number)(u, seed=1)
    return infocap.Recording(u, x, np.arange(n_samples), metadata={"saver": number})


def save_by_command(number, path):
    """``infocap estimate`` of the saver's own file."""
    from infocap.lab.cli import main

    own = path.with_name(f"own{number}.nc")
    if not own.exists():
        measured(number).save(own)
    main(["estimate", str(own), "-o", str(path), "--force", "--quiet"], standalone_mode=False)


def saver_of(kind, number):
    """A function that saves something of this saver to a path."""
    if kind in ("recording.nc", "recording.csv"):
        return measured(number).save
    if kind == "command.nc":
        return lambda path: save_by_command(number, path)
    if kind == "plan.toml":
        return infocap.lab.Plan(n_inputs=2, n_samples=64 * (1 + number), seed=number).save
    result = infocap.estimate(measured(number), basis=BASIS)
    if kind in ("result.nc", "result.csv"):
        return result.save
    if kind == "report.html":
        return lambda path: infocap.report.save(result, path)
    if kind == "card.html":
        return lambda path: infocap.report.card(result, path)
    ax = infocap.plot.capacity_bars(result)
    return lambda path: infocap.plot.save(ax, path)


# What is written, and what reads it; what is not read is compared byte by byte with a save alone.
READERS = {
    "result.nc": infocap.load_result,
    "result.csv": infocap.load_result,
    "recording.nc": infocap.read,
    "recording.csv": infocap.read,
    "report.html": infocap.load_result,
    "card.html": infocap.load_result,
    "plot.png": None,
    "plan.toml": infocap.lab.Plan.load,
    "command.nc": infocap.load_result,
}


def save_again_and_again(kind, number, path, n_rounds, barrier, errors):
    """What each of the two processes does."""
    import matplotlib

    matplotlib.use("Agg")
    save = saver_of(kind, number)
    for _ in range(n_rounds):
        barrier.wait(MAX_WAIT_S)
        try:
            save(path)
        except Exception as problem:
            errors.put(f"{type(problem).__name__}: {problem}")
        barrier.wait(MAX_WAIT_S)
        barrier.wait(MAX_WAIT_S)  # the test looks at the file meanwhile


def what_is_there(kind, path):
    """A text that tells which of the two savers wrote the file; reading it must succeed."""
    read = READERS[kind]
    if read is None:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    held = read(path)
    if kind == "plan.toml":
        return held.n_samples
    return len(held.inputs) if kind.startswith("recording") else held.n_samples


def assert_whole_after_pairs(kind, n_pairs, folder):
    path = folder / kind
    expected = set()
    for number in range(2):
        alone = folder / f"alone{number}-{kind}"
        saver_of(kind, number)(alone)
        expected.add(what_is_there(kind, alone))
    assert len(expected) == 2

    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    errors = context.Queue()
    arguments = (path, n_pairs, barrier, errors)
    savers = [
        context.Process(target=save_again_and_again, args=(kind, number, *arguments))
        for number in range(2)
    ]
    for saver in savers:
        saver.start()
    try:
        for _ in range(n_pairs):
            barrier.wait(MAX_WAIT_S)
            barrier.wait(MAX_WAIT_S)
            assert what_is_there(kind, path) in expected
            assert not list(folder.glob(".*.part"))
            barrier.wait(MAX_WAIT_S)
    finally:
        barrier.abort() if sys.exc_info()[0] else None
        for saver in savers:
            saver.join(MAX_WAIT_S)
            saver.kill()
    assert errors.empty(), errors.get()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["result.nc", "recording.csv"])
def test_two_savers_leave_one_whole_file(tmp_path, kind):
    assert_whole_after_pairs(kind, 5, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
def test_two_hundred_pairs_of_savers_leave_whole_files(tmp_path, kind):
    assert_whole_after_pairs(kind, 23, tmp_path)  # 207 pairs in all


def test_a_file_of_another_program_with_a_likely_name_is_left_alone(tmp_path):
    bystanders = [tmp_path / ".plan.toml.part", tmp_path / ".plan.toml.0.part"]
    for bystander in bystanders:
        bystander.write_text("not ours")
    infocap.lab.Plan(n_inputs=1, n_samples=64).save(tmp_path / "plan.toml")
    assert [bystander.read_text() for bystander in bystanders] == ["not ours", "not ours"]


def test_a_new_file_is_readable_as_others_are(tmp_path):
    ours = infocap.lab.Plan(n_inputs=1, n_samples=64).save(tmp_path / "plan.toml")
    (tmp_path / "plain").write_text("")
    assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_a_result_is_never_written_over_a_folder_or_a_pipe(tmp_path):
    import os

    result = infocap.estimate(measured(0), basis=BASIS)
    (tmp_path / "folder.nc").mkdir()
    os.mkfifo(tmp_path / "pipe.nc")
    for name, kind in (("folder.nc", "a folder"), ("pipe.nc", "no regular file")):
        with pytest.raises(DataError, match=f"{name} is {kind}; give the name of a file"):
            result.save(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.nc", "pipe.nc"]


def test_estimate_does_not_replace_a_result_of_other_data(tmp_path, monkeypatch):
    from infocap.lab.cli import main

    def table(number):
        data = measured(number)
        rows = np.hstack([data.inputs, data.readouts])
        np.savetxt(tmp_path / f"device{number}.csv", rows, delimiter=",", header="u1,u2,a,b,c,d",
                   comments="")  # fmt: skip

    def estimate(number, *words):
        main(["estimate", f"device{number}.csv", "--u", "u1,u2", "-o", "result.nc", *words],
             standalone_mode=False)  # fmt: skip

    monkeypatch.chdir(tmp_path)
    table(0)
    table(1)
    estimate(0)
    estimate(0)  # the same data may be estimated again
    with pytest.raises(ParameterError, match=r"result of other data, of device0\.csv; .*--force"):
        estimate(1)
    assert infocap.load_result("result.nc").n_samples == 128
    estimate(1, "--force")
    assert infocap.load_result("result.nc").n_samples == 512
    assert Path("result.nc").exists()
