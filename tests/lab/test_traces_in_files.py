"""Time-multiplexed traces in files and on the command line: --rows-per-step and --offset."""

import h5py
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal

import infocap
from infocap.errors import DataError, ParameterError
from infocap.lab.cli import main

N = 600
N_NODES = 8
OFFSET = 3
BASIS = infocap.delayed_basis("legendre", max_delay={1: 4, 2: 1})
U = infocap.draw(BASIS, N, seed=1)
X = infocap.systems.DelayReservoir(N_NODES, noise=0.01, input_scale=0.5)(U, seed=1)
HELD = np.repeat(U[:, 0], N_NODES)
TRACE = X.ravel()
BEFORE = np.full(OFFSET, 0.2)
AFTER = np.full(5, -0.3)


@pytest.fixture(scope="module")
def folded():
    """The result of arrays that were folded by hand."""
    return infocap.estimate(U, X, BASIS, washout=20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The trace with some rows before and behind it, in files of many kinds."""
    folder = tmp_path_factory.mktemp("traces")
    u = np.concatenate([BEFORE, HELD, AFTER])
    x = np.concatenate([BEFORE, TRACE, AFTER])
    table = np.column_stack([u, x])
    np.savetxt(folder / "run.csv", table, "%.17g", ",", header="u,Photodiode [V]", comments="")
    np.savez(folder / "run.npz", u=u, x=x)
    np.savez(folder / "steps.npz", u=U, x=x)
    np.save(folder / "u.npy", U[:, 0])
    np.save(folder / "x.npy", x)
    with h5py.File(folder / "run.h5", "w") as file:
        file.create_dataset("u", data=u, chunks=(500,))
        file.create_dataset("x", data=x, chunks=(500,))
        file["time"] = 0.25 * np.arange(len(u))
    infocap.Recording(u[:, None], x[:, None], np.arange(len(u))).save(folder / "saved.nc")
    return folder


SOURCES = {
    "csv": ("run.csv",),
    "npz": ("run.npz",),
    "one input for each step": ("steps.npz",),
    "two files": ("u.npy", "x.npy"),
    "HDF5": ("run.h5",),
    "a saved recording": ("saved.nc",),
}


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("names", SOURCES.values(), ids=SOURCES)
def test_a_trace_in_a_file_gives_the_result_of_the_folded_arrays(folder, names, in_memory, folded):
    paths = [folder / name for name in names]
    recording = infocap.read(*paths, rows_per_step=N_NODES, offset=OFFSET, in_memory=in_memory)
    assert_array_equal(np.asarray(recording.readouts), X)
    assert_array_equal(recording.inputs, U)
    assert "5 rows at the end, no whole step, were left out" in recording.checks[-1]
    result = infocap.estimate(recording, basis=BASIS, washout=20)
    assert_allclose(result.capacity, folded.capacity, rtol=0, atol=1e-12)
    assert_allclose(result.total, folded.total, rtol=0, atol=1e-12)


def test_long_traces_stay_in_their_file(folder, folded, monkeypatch):
    monkeypatch.setattr("infocap.estimators._cost.MAX_CHUNK_BYTES", 10_000)
    recording = infocap.read(
        folder / "run.h5", rows_per_step=N_NODES, offset=OFFSET, in_memory=False
    )
    assert type(recording.readouts) is not np.ndarray
    assert recording.time[1] == 0.25 * (OFFSET + N_NODES)
    result = infocap.estimate(recording, basis=BASIS, washout=20, memory_limit="20MB")
    assert_allclose(result.capacity, folded.capacity, rtol=0, atol=1e-12)


def test_nodes_have_names_and_are_kept_in_the_file(folder, tmp_path):
    recording = infocap.read(folder / "run.csv", rows_per_step=N_NODES, offset=OFFSET)
    assert recording.channel[5] == "Photodiode [V] at node 5"
    back = infocap.read(recording.save(tmp_path / "folded.nc"))
    assert back.channel == recording.channel
    assert back.metadata["trace"] == {"rows_per_step": N_NODES, "offset": OFFSET}
    assert back.checks == recording.checks
    table = infocap.read(recording.save(tmp_path / "folded.csv"))
    assert_array_equal(table.readouts, X)


def test_every_file_is_a_trace_of_its_own(folder, tmp_path):
    half = N // 2
    for name, rows in (("a.npz", slice(0, half)), ("b.npz", slice(half, N))):
        np.savez(tmp_path / name, u=np.repeat(U[rows, 0], N_NODES), x=X[rows].reshape(-1, 1))
    files = [tmp_path / "a.npz", tmp_path / "b.npz"]
    recording = infocap.read(files, rows_per_step=N_NODES)
    assert recording.runs == [slice(0, half), slice(half, N)]
    assert_array_equal(recording.readouts, X)
    in_file = infocap.read(files, rows_per_step=N_NODES, in_memory=False)
    assert_array_equal(np.asarray(in_file.readouts[:]), X)


def test_masked_inputs_in_a_file(tmp_path):
    mask = np.random.default_rng(0).choice([-1.0, 1.0], N_NODES)
    np.savez(tmp_path / "run.npz", u=(U * mask).ravel(), x=TRACE)
    recording = infocap.read(tmp_path / "run.npz", rows_per_step=N_NODES, mask=mask)
    assert_array_equal(recording.inputs, U)


def test_the_design_index_of_each_step_sorts_them(tmp_path):
    order = np.random.default_rng(0).permutation(N)
    index = np.repeat(order, N_NODES)
    np.savez(
        tmp_path / "run.npz", u=np.repeat(U[order, 0], N_NODES), x=X[order].ravel(), index=index
    )
    recording = infocap.read(tmp_path / "run.npz", rows_per_step=N_NODES)
    assert_array_equal(recording.inputs, U)
    assert_array_equal(recording.readouts, X)
    assert_array_equal(recording.design_index, np.arange(N))


@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_a_trace_goes_with_the_inputs_of_its_plan(tmp_path, suffix):
    plan = infocap.lab.Plan(n_inputs=1, n_samples=400, seed=1, max_delay={1: 4}, runs=2, washout=10)
    plan.save(tmp_path / "plan.toml")
    inputs = tmp_path / "inputs.csv"
    assert run("draw", tmp_path / "plan.toml", "-o", inputs)[0].exit_code == 0
    x = np.random.default_rng(0).standard_normal((420, N_NODES))
    trace = np.concatenate([BEFORE, x.ravel()])
    path = tmp_path / f"trace{suffix}"
    if suffix == ".npy":
        np.save(path, trace)
    else:
        np.savetxt(path, trace, "%.17g", header="Photodiode [V]", comments="")
    recording = infocap.read(inputs, path, rows_per_step=N_NODES, offset=OFFSET)
    in_design_order = np.argsort(pd.read_csv(inputs, comment="#")["design_index"])
    assert_array_equal(recording.readouts, x[in_design_order])
    assert recording.runs == [slice(0, 210), slice(210, 420)]
    assert recording.washout == 10
    with pytest.raises(DataError, match="of a trace of virtual nodes, `rows_per_step"):
        infocap.read(inputs, path)


def run(*arguments):
    ran = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return ran, " ".join(ran.output.split())


def test_commands_fold_traces(folder, tmp_path, folded):
    steps = ("--rows-per-step", N_NODES, "--offset", OFFSET)
    path = tmp_path / "result.nc"
    basis = ("--max-delay", "1:4,2:1", "--washout", "20")
    ran, said = run("estimate", folder / "run.csv", *basis, *steps, "-o", path)
    assert ran.exit_code == 0, said
    assert "600 samples, 1 input, 8 readouts" in said
    assert "note: the trace was folded into steps of 8 rows, from row 3 on" in said
    assert_allclose(infocap.load_result(path).capacity, folded.capacity, rtol=0, atol=1e-12)

    ran, said = run("explore", folder / "run.h5", *steps, "--washout", "20", "--most-tested", "200")
    assert ran.exit_code == 0, said
    assert "8 virtual nodes of 1 channel" in said

    ran, said = run("diagnose", folder / "u.npy", folder / "x.npy", "--max-delay", "1:4", *steps)
    assert ran.exit_code == 0, said
    assert "600 samples, 1 input, 8 readouts" in said
    assert "warning" not in said

    ran, said = run("import", folder / "steps.npz", *steps, "-o", tmp_path / "folded.nc")
    assert ran.exit_code == 0, said
    assert_array_equal(infocap.read(tmp_path / "folded.nc").readouts, X)
    ran, said = run("import", folder / "run.csv", *steps, "--preview")
    assert "8 virtual nodes of 1 channel" in said


def test_commands_take_the_mask_from_a_file(folder, tmp_path, folded):
    mask = np.random.default_rng(5).choice([-1.0, 1.0], N_NODES)
    path = tmp_path / "masked.npz"
    held = np.repeat(U, N_NODES) * np.tile(mask, len(U))
    np.savez(path, u=held, x=np.ravel(X))
    basis = ("--max-delay", "1:4,2:1", "--washout", "20", "--rows-per-step", N_NODES)
    np.savetxt(tmp_path / "mask.txt", mask)
    np.save(tmp_path / "mask.npy", mask)
    for name in ("mask.txt", "mask.npy"):
        result = tmp_path / "result.nc"
        options = ("--mask", tmp_path / name, "-o", result, "--force")
        ran, said = run("estimate", path, *basis, *options[:-1])
        assert ran.exit_code == 0, said
        assert_allclose(infocap.load_result(result).total, folded.total, atol=1e-9)
        result.unlink()
    (tmp_path / "words.txt").write_text("a b c", encoding="utf-8")
    ran, _ = run("estimate", path, *basis, "--mask", tmp_path / "words.txt")
    assert "is no table of numbers" in str(ran.exception)


def test_one_readout_in_one_dimension_is_a_trace_that_was_not_folded(tmp_path):
    path = tmp_path / "flat.npz"
    np.savez(path, u=np.repeat(U, N_NODES), x=np.ravel(X))
    ran, said = run("diagnose", path, "--max-delay", "1:4")
    assert ran.exit_code == 0
    assert f"Pass --rows-per-step {N_NODES}" in said


def test_commands_say_that_a_trace_was_not_folded_by_their_own_options(folder):
    ran, said = run("diagnose", folder / "run.csv", "--max-delay", "1:4", "--strict")
    assert ran.exit_code == 1
    assert "the input stays constant for 8 rows" in said
    assert "Pass --rows-per-step 8 and --offset 3, which makes 8 virtual nodes" in said
    ran, said = run("estimate", folder / "run.csv", "--max-delay", "1:4", "--rows-per-step", 8)
    assert isinstance(ran.exception, DataError)
    assert "u changes within a step of 8 rows" in str(ran.exception)
    assert str(ran.exception).endswith("give --rows-per-step 8, --offset 3.")
    ran, said = run("estimate", folder / "run.csv", "--offset", 3)
    assert isinstance(ran.exception, ParameterError)
    assert str(ran.exception) == "--offset is for traces; give --rows-per-step, too."


def test_a_trace_of_another_length_than_its_inputs_is_refused(folder):
    with pytest.raises(DataError, match="u has 600 rows, and x has 4808, which are 480 steps"):
        infocap.read(folder / "steps.npz", rows_per_step=10)
    with pytest.raises(DataError, match=r"unequal numbers of samples; .* nodes, `rows_per_step=8`"):
        infocap.read(folder / "steps.npz")
    with pytest.raises(DataError, match="of a trace of virtual nodes, `rows_per_step=8`"):
        infocap.estimate(U, TRACE[:, None], infocap.product_basis("legendre", 1, 2))
    with pytest.raises(DataError, match="Of a trace of virtual nodes, give `rows_per_step=8`"):
        infocap.estimate(U, TRACE[:, None], BASIS)


def test_the_preview_asks_whether_rows_of_one_input_are_virtual_nodes(folder):
    _, said = run("import", "--preview", folder / "run.csv")
    assert "The input stays constant for 8 rows. Were these 8 virtual nodes?" in said
    assert "--rows-per-step 8 --offset 3" in said
    _, said = run("import", "--preview", folder / "run.csv", "--rows-per-step", 8, "--offset", 3)
    assert "virtual nodes?" not in said


def test_a_mask_comes_from_a_file(folder, tmp_path):
    mask = np.random.default_rng(4).choice([-1.0, 0.5, 1.0], 8)
    held = (U.reshape(-1, 1) * mask).ravel()
    trace = np.ravel(X)
    np.savez(tmp_path / "masked.npz", u=held[:, None], x=trace[:, None])
    (tmp_path / "mask.txt").write_text("\n".join(map(str, mask)))
    words = (tmp_path / "masked.npz", "--rows-per-step", 8, "--mask", tmp_path / "mask.txt")
    ran, said = run("import", *words, "-o", tmp_path / "folded.nc")
    assert ran.exit_code == 0, said
    np.testing.assert_allclose(infocap.read(tmp_path / "folded.nc").inputs.ravel(), np.ravel(U))
    (tmp_path / "mask.txt").write_text("one two")
    ran, said = run("import", *words, "--preview")
    assert "is no table of numbers" in str(ran.exception)


def test_a_table_of_one_column_may_have_a_name(tmp_path):
    (tmp_path / "u.csv").write_text("V_in\n0.1\n0.2\n0.4\n")
    (tmp_path / "x.csv").write_text("PD\n1\n2\n3.5\n")
    recording = infocap.read(tmp_path / "u.csv", tmp_path / "x.csv", u="V_in", x="PD")
    assert recording.input_names == ("V_in",)
    assert recording.channel == ("PD",)
