"""Time-multiplexed traces: rows during which an input is held become virtual nodes, and are noticed otherwise."""

import pickle
import re
import tracemalloc
from concurrent.futures import ProcessPoolExecutor

import array_api_strict
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import infocap
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.samples import find_hold

N = 900
N_NODES = 12
DEVICE = infocap.systems.DelayReservoir(N_NODES, noise=0.003, input_scale=0.5)
LOUD_DEVICE = infocap.systems.DelayReservoir(N_NODES, noise=0.0003, input_scale=0.5)
BASIS = infocap.delayed_basis("legendre", max_delay={1: 6, 2: 2})
U = infocap.draw(BASIS, N, seed=1)
X = DEVICE(U, seed=1)
HELD = np.repeat(U, N_NODES, axis=0)
TRACE = X.reshape(-1, 1)
WASHOUT = 20
STEPS = {"rows_per_step": N_NODES}
MASK = np.random.default_rng(3).uniform(0.2, 1, N_NODES) * np.resize([1, -1, -1], N_NODES)


@pytest.fixture(scope="module")
def folded():
    """The result of arrays that were folded by hand."""
    return infocap.estimate(U, X, BASIS, washout=WASHOUT)


def assert_same(result, folded):
    assert_allclose(result.capacity, folded.capacity, rtol=0, atol=1e-12)
    assert_allclose(result.standard_error, folded.standard_error, rtol=0, atol=1e-12)
    assert_allclose(result.total, folded.total, rtol=0, atol=1e-12)


def with_rows_around(values, n_before, n_after):
    """Rows of a trace with other values before and behind them."""
    before = np.full((n_before, values.shape[1]), values.mean())
    after = np.full((n_after, values.shape[1]), values.min())
    return np.vstack([before, values, after])


def refusal(function, *arguments, **options):
    with pytest.raises((DataError, ParameterError)) as caught:
        function(*arguments, **options)
    return str(caught.value)


# Folding.


@pytest.mark.parametrize(
    "u", [HELD, HELD[:, 0], U, U[:, 0]], ids=["rows", "1d", "steps", "1d steps"]
)
@pytest.mark.parametrize("x", [TRACE, TRACE[:, 0]], ids=["table", "1d"])
def test_a_trace_gives_the_result_of_the_folded_arrays(u, x, folded):
    result = infocap.estimate(u, x, BASIS, washout=WASHOUT, **STEPS)
    assert_same(result, folded)
    assert result.warnings == ()
    (note,) = result.notes
    assert note.startswith(f"the trace was folded into steps of {N_NODES} rows, from the first row")
    assert note.found["steps"] == N


def test_several_channels_have_all_their_nodes():
    x = X.reshape(N, 4, 3).reshape(-1, 3)  # four nodes of three channels
    recording = infocap.fold_trace(np.repeat(U, 4, axis=0), x, rows_per_step=4)
    assert_array_equal(recording.readouts, X)
    assert recording.channel[:4] == (
        "x[0] at node 0",
        "x[1] at node 0",
        "x[2] at node 0",
        "x[0] at node 1",
    )
    named = infocap.fold_trace(U, pd.DataFrame(x, columns=["a", "b", "c"]), rows_per_step=4)
    assert named.channel[-1] == "c at node 3"
    assert_array_equal(named.readouts, X)


def test_nothing_is_copied_in_memory():
    recording = infocap.fold_trace(HELD, TRACE, N_NODES)
    assert np.shares_memory(recording.readouts, TRACE)


def test_rows_before_and_after_the_steps_are_left_out_and_told(folded):
    u = with_rows_around(HELD, 5, 7)
    x = with_rows_around(TRACE, 5, 7)
    result = infocap.estimate(u, x, BASIS, washout=WASHOUT, offset=5, **STEPS)
    assert_same(result, folded)
    assert "from row 5 on" in result.notes[0]
    assert "7 rows at the end, no whole step, were left out" in result.notes[0]
    assert result.notes[0].found["left_out_rows"] == 7
    bare = infocap.estimate(U, x, BASIS, washout=WASHOUT, offset=5, **STEPS)
    assert_same(bare, folded)


def test_inputs_of_a_trace_that_was_cut_short_are_used_as_far_as_it_goes():
    recording = infocap.fold_trace(U, TRACE[:-3], N_NODES)
    assert_array_equal(recording.inputs, U[:-1])
    assert recording.checks[0].found["left_out_rows"] == N_NODES - 3


@pytest.mark.parametrize("given_mask", [MASK, MASK[:, None], MASK.tolist()])
def test_masked_inputs_are_divided_by_their_mask(given_mask, folded):
    masked = (U * MASK).reshape(-1, 1)
    result = infocap.estimate(masked, TRACE, BASIS, washout=WASHOUT, mask=given_mask, **STEPS)
    assert_same(result, folded)
    assert "mask" not in result.notes[0]


def test_a_mask_is_not_needed_for_inputs_without_it(folded):
    for u in (HELD, U):
        result = infocap.estimate(u, TRACE, BASIS, washout=WASHOUT, mask=MASK, **STEPS)
        assert_same(result, folded)
        assert "recorded without the mask" in result.notes[0]


def test_every_input_may_have_a_mask_of_its_own():
    generator = np.random.default_rng(0)
    u = generator.uniform(-1, 1, (50, 2))
    mask = generator.uniform(0.5, 1, (6, 2))
    masked = (u[:, None] * mask).reshape(-1, 2)
    recording = infocap.fold_trace(masked, generator.random(300), 6, mask=mask)
    assert_allclose(recording.inputs, u, atol=1e-14)


def test_recorded_inputs_are_averaged_and_their_scatter_is_told():
    noise = 0.01 * np.random.default_rng(0).standard_normal(HELD.shape)
    recording = infocap.fold_trace(HELD + noise, TRACE, N_NODES)
    error = recording.inputs - U
    assert np.std(error) == pytest.approx(0.01 / np.sqrt(N_NODES), rel=0.1)
    assert recording.checks[0].found["scatter"] == pytest.approx(0.005, rel=0.1)
    assert (
        "Inputs are means over their steps, in which they scatter by 0.48 %" in recording.checks[0]
    )


def test_inputs_that_are_held_exactly_keep_every_digit():
    u = np.full((40, 1), 0.1 + 0.2)
    recording = infocap.fold_trace(np.repeat(u, 7, axis=0), np.arange(280.0), 7)
    assert_array_equal(recording.inputs, u)


def test_runs_are_folded_one_by_one(folded):
    parts = [slice(0, 400), slice(400, N)]
    by_hand = infocap.estimate([U[p] for p in parts], [X[p] for p in parts], BASIS, washout=WASHOUT)
    u = [np.repeat(U[p], N_NODES, axis=0) for p in parts]
    x = [X[p].reshape(-1) for p in parts]
    assert_same(infocap.estimate(u, x, BASIS, washout=WASHOUT, **STEPS), by_hand)
    recording = infocap.fold_trace(u, x, N_NODES)
    assert recording.runs == [slice(0, 400), slice(400, N)]
    assert_same(infocap.estimate(recording, basis=BASIS, washout=WASHOUT), by_hand)
    # Runs of equal length may be an array (runs, rows, channels).
    stacked = infocap.fold_trace(HELD.reshape(2, -1, 1), TRACE.reshape(2, -1, 1), N_NODES)
    assert_array_equal(stacked.readouts, X)


def test_a_second_trace_of_the_same_inputs_is_folded_too():
    second = DEVICE(U, seed=2)
    by_hand = infocap.estimate(U, X, BASIS, washout=WASHOUT, repeats=second)
    repeats = second.reshape(-1, 1)
    result = infocap.estimate(HELD, TRACE, BASIS, washout=WASHOUT, repeats=repeats, **STEPS)
    assert_same(result, by_hand)
    assert result.checks[:-1] == by_hand.checks
    assert "second trace" in refusal(
        infocap.estimate, HELD, TRACE, BASIS, repeats=repeats[:-1], **STEPS
    )


def test_values_of_rows_are_those_of_the_first_row_of_each_step():
    basis = infocap.product_basis("legendre", 1, 3)
    x = infocap.systems.RandomFeatures(1, 6, noise=0.1)(U, seed=1)
    when = np.random.default_rng(1).permutation(N)
    weight = np.full(N, 1.0)
    options = {"sample_weight": weight}
    by_hand = infocap.estimate(U, x, basis, time=when, **options)
    u = np.repeat(U, 6, axis=0)
    times = 6 * np.repeat(when, 6) + np.tile(np.arange(6), N)
    result = infocap.estimate(u, x.reshape(-1), basis, rows_per_step=6, time=times, **options)
    assert_same(result, by_hand)
    assert "time has shape (7,)" in refusal(
        infocap.estimate, u, x.reshape(-1), basis, rows_per_step=6, time=np.arange(7)
    )


def test_a_recording_is_folded_with_its_times_names_and_runs(folded):
    rows = np.arange(2 * len(HELD))
    recording = infocap.Recording(
        np.tile(HELD, (2, 1)),
        np.tile(TRACE, (2, 1)),
        rows,
        channel=("Photodiode [V]",),
        input_names=("Drive [V]",),
        readout_unit="V",
        time=0.5 * rows,
        metadata={"runs": [0, len(HELD)], "operator": "Ada"},
        noise=np.ones((5, 1)),
    )
    result = infocap.fold_trace(recording, rows_per_step=N_NODES)
    assert result.channel[7] == "Photodiode [V] at node 7"
    assert (result.input_names, result.readout_unit) == (("Drive [V]",), "V")
    assert_array_equal(result.time, 0.5 * N_NODES * np.arange(2 * N))
    assert result.runs == [slice(0, N), slice(N, 2 * N)]
    assert result.metadata["operator"] == "Ada"
    assert result.metadata["trace"] == {"rows_per_step": N_NODES, "offset": 0}
    assert result.noise is None
    assert_array_equal(
        infocap.estimate(recording, basis=BASIS, method="raw", **STEPS).capacity,
        infocap.estimate(result, basis=BASIS, method="raw").capacity,
    )


def test_explore_and_diagnose_fold_as_well():
    options = {"washout": WASHOUT, "most_tested": 500}
    by_hand = infocap.explore(U, X, **options)
    found = infocap.explore(HELD, TRACE, **options, **STEPS)
    assert found.basis.labels == by_hand.basis.labels
    assert_same(found.result, by_hand.result)
    assert found.result.notes[-1].found["cause"] == "trace"
    for arguments in ((HELD, TRACE), (infocap.Recording(HELD, TRACE, np.arange(len(HELD))),)):
        diagnosis = infocap.diagnose(*arguments, basis=BASIS, **STEPS)
        assert [check.found["cause"] for check in diagnosis.checks] == ["trace"]
        assert diagnosis.recording.readouts.shape == (N, N_NODES)


def test_arrays_of_other_libraries_are_folded_where_they_are(folded):
    trace = array_api_strict.asarray(TRACE)
    result = infocap.estimate(HELD, trace, BASIS, washout=WASHOUT, **STEPS)
    assert_allclose(result.capacity, folded.capacity, rtol=0, atol=1e-10)


# Traces in files.


def in_files(folder):
    """The trace as sources that are read where they are."""
    import h5py

    TRACE.tofile(folder / "x.bin")
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", data=TRACE[:, 0], chunks=(1000,))
        file.create_dataset("u", data=HELD[:, 0], chunks=(1000,))
    file = h5py.File(folder / "x.h5", "r")
    return {
        "memmap": (HELD, np.memmap(folder / "x.bin", dtype=float, mode="r", shape=TRACE.shape)),
        "1d memmap": (HELD, np.memmap(folder / "x.bin", dtype=float, mode="r")),
        "h5py": (file["u"], file["x"]),
    }


@pytest.mark.parametrize("source", ["memmap", "1d memmap", "h5py"])
def test_traces_stay_in_their_files(tmp_path, source, folded, monkeypatch):
    u, x = in_files(tmp_path)[source]
    monkeypatch.setattr("infocap.samples._trace_inputs.ROWS_PER_READ", 500)
    monkeypatch.setattr("infocap.estimators._cost.MAX_CHUNK_BYTES", 30_000)
    recording = infocap.fold_trace(u, x, N_NODES)
    assert type(recording.readouts) is not np.ndarray
    assert_array_equal(np.asarray(recording.readouts), X)
    result = infocap.estimate(u, x, BASIS, washout=WASHOUT, memory_limit="20MB", **STEPS)
    assert_allclose(result.capacity, folded.capacity, rtol=0, atol=1e-12)


@pytest.mark.thorough
def test_a_file_larger_than_the_memory_limit_is_never_loaded(tmp_path, monkeypatch):
    import h5py

    monkeypatch.setattr("infocap.samples._rows.BLOCK_BYTES", 1)
    n_steps = 250_000
    u = np.random.default_rng(0).uniform(-1, 1, n_steps)
    x = np.cumsum(np.outer(u, MASK), axis=1) + 0.1 * np.roll(u, 1)[:, None] ** 2
    x += 0.1 * np.random.default_rng(1).standard_normal(x.shape)
    with h5py.File(tmp_path / "long.h5", "w") as file:
        file["u"] = np.repeat(u, N_NODES).astype(np.float32)
        file["x"] = x.ravel()
    limit = 20_000_000
    assert x.nbytes > limit
    by_hand = infocap.estimate(u.astype(np.float32), x, BASIS, method="raw")
    with h5py.File(tmp_path / "long.h5", "r") as file:
        tracemalloc.start()
        result = infocap.estimate(
            file["u"], file["x"], BASIS, method="raw", memory_limit=limit, **STEPS
        )
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert_allclose(result.capacity, by_hand.capacity, rtol=0, atol=1e-12)
    assert peak < limit


def test_no_more_rows_than_asked_for_are_read_from_a_file():
    class Source:
        shape = (1200, 3)
        rows_read = 0

        def __getitem__(self, rows):
            start, stop, _ = rows.indices(1200)
            self.rows_read += stop - start
            return np.arange(3 * start, 3 * stop, dtype=float).reshape(-1, 3)

    source = Source()
    recording = infocap.fold_trace(np.arange(100.0), source, 12)
    source.rows_read = 0
    expected = np.arange(3600.0).reshape(100, 36)
    assert_array_equal(recording.readouts[20:23], expected[20:23])
    assert source.rows_read == 36


def test_other_processes_read_the_file_themselves(tmp_path, folded):
    u, x = in_files(tmp_path)["h5py"]
    with ProcessPoolExecutor(1) as executor:
        result = infocap.estimate(u, x, BASIS, washout=WASHOUT, executor=executor, **STEPS)
    assert_allclose(result.capacity, folded.capacity, rtol=0, atol=1e-12)
    table = infocap.samples.Table(infocap.fold_trace(U, x, N_NODES).readouts, "x")
    assert len(pickle.dumps(table)) < 5000
    assert_array_equal(pickle.loads(pickle.dumps(table)).read(3, 9), X[3:9])


# Errors.


def test_inputs_that_change_within_a_step_are_refused_with_the_row_and_the_remedy():
    message = refusal(infocap.estimate, HELD, TRACE, BASIS, rows_per_step=N_NODES - 1)
    assert f"u changes within a step of {N_NODES - 1} rows" in message
    assert f"at row {N_NODES}, column 0" in message
    assert f"give `rows_per_step={N_NODES}`." in message
    late = refusal(infocap.fold_trace, HELD[3:], TRACE[3:], N_NODES)
    assert f"at row {N_NODES - 3}" in late
    assert late.endswith(f"give `rows_per_step={N_NODES}`, `offset={N_NODES - 3}`.")
    noise = 0.01 * np.random.default_rng(0).standard_normal(HELD.shape)
    noisy = refusal(infocap.fold_trace, (HELD + noise)[3:], TRACE[3:], N_NODES)
    assert noisy.endswith(f"`offset={N_NODES - 3}`.")
    never_held = np.random.default_rng(0).uniform(-1, 1, HELD.shape)
    assert refusal(infocap.fold_trace, never_held, TRACE, N_NODES).endswith(
        "or u as it was sent, with one row for each step."
    )


def test_steps_of_a_clock_that_jitters_are_named():
    generator = np.random.default_rng(1)
    lengths = generator.choice([11, 12, 13], 300)
    u = np.repeat(generator.uniform(-1, 1, 300), lengths)
    x = generator.standard_normal(len(u))
    with pytest.raises(infocap.errors.DataError, match="held for 11 to 13 rows at a time"):
        infocap.fold_trace(u, x, 12)


def test_slow_inputs_at_the_wrong_rows_are_no_noise():
    """A row of the next step differs little where inputs are slow, but more than rows of one step."""
    slow = np.cumsum(np.random.default_rng(0).standard_normal(N))[:, None]
    held = np.repeat(slow, N_NODES, axis=0)
    noisy = held + 0.005 * np.ptp(held) * np.random.default_rng(1).standard_normal(held.shape)
    infocap.fold_trace(noisy, TRACE, N_NODES)
    for u in (held, noisy):
        assert "changes within a step" in refusal(infocap.fold_trace, u, TRACE, 2 * N_NODES)
        assert "changes within a step" in refusal(infocap.fold_trace, u[6:], TRACE[6:], N_NODES)


def test_other_inputs_than_value_times_mask_are_refused():
    masked = (U * MASK).reshape(-1, 1)
    assert "`mask`" in refusal(infocap.fold_trace, masked, TRACE, N_NODES)
    late = refusal(infocap.fold_trace, masked[5:], TRACE[5:], N_NODES, mask=MASK)
    assert "u is not one value times `mask` in the step that begins at row 0" in late
    assert late.endswith(f"give `offset={N_NODES - 5}`.")
    # A single wrong row, with the right mask and offset: another offset is no remedy.
    wrong = masked[5:].copy()
    wrong[7 + 20 * N_NODES + 3] += 2.0
    glitch = refusal(infocap.fold_trace, wrong, TRACE[5:], N_NODES, mask=MASK, offset=N_NODES - 5)
    assert f"in the step that begins at row {7 + 20 * N_NODES}" in glitch
    assert glitch.endswith("other steps are, so check this one.")
    other = refusal(infocap.fold_trace, masked, TRACE, N_NODES, mask=MASK[::-1])
    assert "one value times `mask`" in other


WRONG = {
    "rows_per_step": ({"rows_per_step": 0}, "`rows_per_step=0` must be a whole number, 1 or more"),
    "text": ({"rows_per_step": "24"}, "must be a whole number"),
    "offset": ({"rows_per_step": 12, "offset": -1}, "`offset=-1` must be a whole number"),
    "only offset": ({"offset": 3}, "`offset` is for traces; give `rows_per_step`, too"),
    "only mask": ({"mask": MASK}, "`mask` is for traces"),
    "short mask": ({"rows_per_step": 12, "mask": [1, 2]}, r"`mask` has shape \(2,\)"),
    "zero mask": ({"rows_per_step": 12, "mask": np.zeros(12)}, "other than zero"),
    "words": ({"rows_per_step": 12, "mask": ["a"] * 12}, "must be numbers"),
    "two masks": ({"rows_per_step": 12, "mask": np.ones((12, 2))}, "2 columns for 1 inputs"),
    "no step": ({"rows_per_step": 12, "offset": 12 * N - 3}, "no whole step of 12 rows"),
}


@pytest.mark.parametrize(("options", "pattern"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_answered(options, pattern):
    assert re.search(pattern, refusal(infocap.estimate, HELD, TRACE, BASIS, **options))


def test_other_numbers_of_inputs_than_steps_are_refused():
    assert f"with {N} inputs, `rows_per_step={N_NODES}` fits" in refusal(
        infocap.fold_trace, U, TRACE, 10
    )
    assert "give inputs with as many rows as the trace" in refusal(
        infocap.fold_trace, U[:-5], TRACE, N_NODES
    )
    assert "run 2" in refusal(infocap.fold_trace, [U, U[:-5]], [TRACE, TRACE], N_NODES)
    assert "give inputs and a trace for each run" in refusal(
        infocap.fold_trace, [U], [TRACE, TRACE], N_NODES
    )
    assert "`rows_per_step=None`" in refusal(infocap.fold_trace, U, TRACE)
    assert "`x=None`" in refusal(infocap.fold_trace, U, None, N_NODES)


# Finding the steps.


@pytest.mark.parametrize("n_before", [0, 1, 7, N_NODES + 2])
def test_steps_are_found_from_the_changes_of_the_inputs(n_before):
    late = with_rows_around(HELD, n_before, 3)
    steps = infocap.find_steps(late)
    assert (steps.rows_per_step, steps.offset) == (N_NODES, n_before % N_NODES)
    assert infocap.find_steps(late, with_rows_around(TRACE, n_before, 3)).offset == steps.offset


@pytest.mark.parametrize("n_before", [0, 1, 7, N_NODES + 2])
@pytest.mark.parametrize("kind", ["uniform", "binary", "related"])
def test_the_offset_is_found_from_the_trace(n_before, kind):
    u = U.copy()
    if kind == "binary":
        u = np.sign(u)
    elif kind == "related":
        for t in range(1, N):
            u[t] = 0.8 * u[t - 1] + 0.2 * u[t]
    trace = with_rows_around(LOUD_DEVICE(u, seed=1).reshape(-1, 1), n_before, 2)
    steps = infocap.find_steps(u, trace, N_NODES)
    assert (steps.rows_per_step, steps.offset) == (N_NODES, n_before)


def test_there_are_no_steps_where_nothing_is_held_and_nothing_follows():
    noise = np.random.default_rng(0).standard_normal(len(TRACE))
    assert "u is not held" in refusal(infocap.find_steps, noise)
    assert "follows u from none" in refusal(infocap.find_steps, U, noise)
    assert "u is held for 12 rows" in refusal(infocap.find_steps, HELD, None, 5)
    assert "too few to find the offset" in refusal(infocap.find_steps, U[:30], TRACE[:360])


@pytest.mark.filterwarnings(
    "ignore:readouts also hold inputs that come later:infocap.errors.DataWarning"
)
def test_steps_that_begin_before_their_inputs_are_told():
    early = TRACE[6:]
    with pytest.warns(DataWarning, match="the trace follows the inputs from row 6 on"):
        result = infocap.estimate(U[1:], early, BASIS, washout=WASHOUT, offset=8, **STEPS)
    assert result.unreliable.endswith("steps that begin in another row")
    late = infocap.fold_trace(U, with_rows_around(TRACE, 5, 0), N_NODES)
    assert [check.kind for check in late.checks] == ["note", "note"]
    assert late.checks[1].endswith("give `offset=5` if steps begin there.")


# Held inputs that were not folded.


GENERATOR = np.random.default_rng(0)
RANDOM_SIGNS = GENERATOR.choice([-1.0, 1.0], 6000)
CLEAN = {
    "uniform": GENERATOR.uniform(-1, 1, 6000),
    "heavy tails": GENERATOR.standard_cauchy(6000),
    "bits": RANDOM_SIGNS,
    "telegraph": np.cumprod(np.where(GENERATOR.random(6000) < 0.02, -1, 1)),
    "rare telegraph": np.cumprod(np.where(GENERATOR.random(6000) < 0.001, -1, 1)),
    "levels": GENERATOR.integers(0, 8, 6000),
    "counts": GENERATOR.poisson(2, 6000),
    "sweep": np.linspace(-1, 1, 6000),
    "sweep with few digits": np.round(np.linspace(-1, 1, 6000), 2),
    "stairs": np.repeat(np.linspace(-1, 1, 100), 60),
    "there and back": np.round(np.abs(np.arange(6000) % 2000 - 1000) / 1000, 2),
    "sawtooth": np.arange(6000) % 500 / 500,
    "sine": np.sin(np.arange(6000) / 80),
    "sine of 8 bits": np.round(127 * np.sin(np.arange(6000) / 80)),
    "random walk": np.cumsum(GENERATOR.standard_normal(6000)),
    "sorted levels": np.repeat(np.arange(8), 750),
    "constant": np.ones(6000),
    "square wave": np.resize(np.repeat([-1.0, 1.0], 10), 6000),
    "bits of a Sobol sequence": np.resize([0.0, 1.0, 1.0, 0.0], 6000),
    "few rows": GENERATOR.uniform(-1, 1, 3),
}


@pytest.mark.parametrize("u", CLEAN.values(), ids=CLEAN)
def test_inputs_that_are_not_held_are_not_accused(u):
    assert find_hold(np.asarray(u, dtype=float)[:, None]) is None


def test_changes_at_random_rows_are_seldom_taken_for_holds():
    generator = np.random.default_rng(5)
    n_found = 0
    for _ in range(300):
        rate = 10 ** generator.uniform(-3, 0)
        signs = np.cumprod(np.where(generator.random(2000) < rate, -1.0, 1.0))
        n_found += find_hold(signs[:, None]) is not None
    assert n_found == 0  # the probability of a false alarm is 1e-6 each


HELD_INPUTS = {
    "uniform": lambda n: np.repeat(CLEAN["uniform"], n),
    "bits": lambda n: np.repeat(RANDOM_SIGNS, n),
    "levels": lambda n: np.repeat(CLEAN["levels"], n).astype(float),
    "noise": lambda n: (
        np.repeat(CLEAN["uniform"], n) + 0.01 * np.random.default_rng(1).standard_normal(6000 * n)
    ),
    "8 bits": lambda n: np.round(127 * np.repeat(CLEAN["uniform"], n)),
    "a slip": lambda n: np.delete(np.repeat(CLEAN["uniform"], n), 2000),
}


@pytest.mark.parametrize("n_rows", [2, 5, 24])
@pytest.mark.parametrize("kind", HELD_INPUTS)
def test_holds_are_found(kind, n_rows):
    u = HELD_INPUTS[kind](n_rows)[:40_000]
    hold = find_hold(u[1:, None])
    assert (hold.rows_per_step, hold.offset) == (n_rows, n_rows - 1)
    assert hold.p_value < 1e-6


def test_one_input_may_be_held_while_another_changes():
    fast = np.random.default_rng(2).uniform(-1, 1, len(HELD))
    assert find_hold(np.column_stack([HELD[:, 0], fast])) is None


@pytest.mark.parametrize("basis", [BASIS, None])
def test_diagnose_says_once_that_a_trace_was_not_folded(basis):
    diagnosis = infocap.diagnose(HELD[2:], TRACE[2:], basis)
    (check,) = (check for check in diagnosis.checks if check.kind == "warning")
    causes = {check.found["cause"] for check in diagnosis.checks}
    assert not {"inputs depend", "order of inputs", "repeats"} & causes
    assert check.found["cause"] == "held inputs"
    assert check.startswith(f"the input stays constant for {N_NODES} rows")
    assert f"`rows_per_step={N_NODES}` and `offset={N_NODES - 2}`" in check
    assert f"makes {N_NODES} virtual nodes of each channel" in check
    infocap.plot.finding(check)


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_estimate_says_it_in_place_of_what_follows_from_it():
    result = infocap.estimate(HELD, TRACE, BASIS, washout=100)
    causes = [check.found.get("cause") for check in result.checks]
    assert causes.count("held inputs") == 1
    assert not {"inputs depend", "order of inputs"} & set(causes)
    assert "inputs held for several rows" in result.unreliable


def test_explore_says_it_in_place_of_equal_functions():
    with pytest.warns(infocap.errors.DataWarning, match=f"stays constant for {N_NODES} rows"):
        found = infocap.explore(HELD, TRACE, washout=300, most_tested=2000)
    message = found.result.no_numbers
    assert message.startswith(f"the input stays constant for {N_NODES} rows")
    assert f"`rows_per_step={N_NODES}`" in message


@pytest.mark.parametrize("noise", ["white", "slow"])
@pytest.mark.parametrize("times", [2, 6])
def test_inputs_that_were_measured_again_are_repeats_and_no_virtual_nodes(times, noise):
    system = infocap.systems.RandomFeatures(1, 5, noise=0.01)
    u = np.repeat(U[:400], times, axis=0)
    x = system(u, seed=1)
    if noise == "slow":
        x = x + 0.003 * np.cumsum(np.random.default_rng(0).standard_normal(x.shape), axis=0)
    checks = infocap.diagnose(u, x, infocap.product_basis("legendre", 1, 4)).checks
    (check,) = (check for check in checks if check.found["cause"] in ("held inputs", "repeats"))
    assert check.found["cause"] == "repeats"
    assert f"each input was measured {times} times in a row" in check
    assert ("average them" in check.lower()) == (times > 2)


def test_virtual_nodes_without_memory_are_no_repeats():
    system = infocap.systems.RandomFeatures(1, 12, noise=0.01)
    basis = infocap.product_basis("legendre", 1, 4)
    x = system(U, seed=1).reshape(-1, 2)
    (check,) = infocap.diagnose(np.repeat(U, 6, axis=0), x, basis).checks
    assert check.found["cause"] == "held inputs"
    folded = infocap.diagnose(np.repeat(U, 6, axis=0), x, basis, rows_per_step=6)
    assert [check.found["cause"] for check in folded.checks] == ["trace"]
