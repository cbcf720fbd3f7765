"""Data that look good and give a wrong answer: what the checks find, what `infocap diagnose` says, and what it repairs."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from faulty_data import BASIS, CAUSES, MISTAKES, SYSTEM, N, U, X, chance, late, recorded
from scipy.signal import lfilter

import infocap
from infocap.diagnostics import DATA, data_checks
from infocap.diagnostics._ranking import RANKING
from infocap.lab import Plan
from infocap.lab.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")


def causes(inspection):
    return [one.found["cause"] for one in inspection.checks]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_noticed_once_with_its_cause(mistake):
    found = infocap.diagnose(recorded(*MISTAKES[mistake]()), basis=BASIS)
    (check,) = (one for one in found.checks if one.kind == "warning")
    assert check.found["cause"] == CAUSES.get(mistake, mistake)
    assert set(causes(found)) <= {check.found["cause"], "order of inputs"}
    assert check.found["next_step"].lower() in check.lower()
    assert check.found["in_short"]
    assert check.found["looked_for"] in DATA
    assert check.found["looked_for"] not in found.passed
    assert json.loads(json.dumps(check.found)) == check.found  # plain data, for files


@pytest.mark.parametrize("n", [256, 2048, 20_000])
@pytest.mark.parametrize("design", ["sobol", "random"])
def test_clean_data_are_fit_in_every_respect(n, design):
    u = infocap.draw(BASIS, n, design=design, seed=n)
    when = np.random.default_rng(0).permutation(n)
    found = infocap.diagnose(recorded(u, SYSTEM(u, seed=1), time=when), basis=BASIS)
    assert found.checks == ()
    assert ("readouts not clipped" in found.skipped) == (n < 1000)
    assert len(found.passed) + len(found.skipped) == len(data_checks(False)) + 2  # without a plan
    assert found.repaired() is None
    assert "passed: no hum" in repr(found)


@pytest.mark.slow
def test_many_channels_are_fit_and_their_mistakes_are_found():
    rng = np.random.default_rng(900)
    n, n_channels = 6000, 900
    u = rng.uniform(-1, 1, (n, 2))
    x = np.tanh(u @ rng.standard_normal((2, n_channels)))
    x += 0.1 * rng.standard_normal(x.shape)
    hum = np.sin(2 * np.pi * np.arange(n) / 20.3)[:, None]
    assert causes(infocap.diagnose(u, x, BASIS)) == []
    assert causes(infocap.diagnose(u, np.roll(x, 1, axis=0), BASIS)) == ["shift"]
    in_all = 0.02 * rng.standard_normal(n_channels)
    assert causes(infocap.diagnose(u, x + hum * in_all, BASIS)) == ["period"]


def test_estimate_tells_the_same_and_qualifies_the_total():
    u, x = MISTAKES["a slip"]()
    result = infocap.estimate(u, x, BASIS, method="threshold-richardson")
    np.testing.assert_allclose(result.warnings[0].found["shifts"], [[700, 1400, 1]], atol=2)
    assert result.unreliable == "readouts shifted against the inputs"
    assert result.warnings[0] == infocap.diagnose(recorded(u, x), basis=BASIS).checks[0]


def test_mistakes_are_found_in_the_order_of_acquisition_and_in_late_stretches():
    n = 20_000
    u = infocap.draw(BASIS, n, design="random", seed=1)
    order = np.random.default_rng(0).permutation(n)
    x = SYSTEM(u, seed=1)
    moved = x.copy()
    moved[order[15_000:15_400]] = x[order[14_999:15_399]]
    when = np.argsort(order)
    (check,) = infocap.diagnose(recorded(u, moved, time=when), basis=BASIS).checks
    ((start, stop, lag),) = check.found["shifts"]
    assert abs(start - 15_000) < 4
    assert abs(stop - 15_400) < 4
    assert lag == 1
    assert set(check.found["rows"]) <= set(order[14_990:15_410].tolist())


@pytest.mark.parametrize("shift", [0, 5])
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 6, 7, 8])
def test_reversed_readouts_are_reversed_and_neither_shifted_nor_in_order(seed, shift):
    basis = infocap.product_basis("legendre", 2, 6)
    u = infocap.draw(basis, 512, design="random", seed=seed)
    x = infocap.systems.RandomFeatures(2, 8, noise=1e-2, seed=seed)(u, seed=2)
    (check,) = infocap.diagnose(u, np.roll(x[::-1], shift, axis=0), basis).checks
    assert (check.found["cause"], check.found["reversed"]) == ("shift", True)
    assert check.found["lag"] == -shift
    assert ("reversed and shifted by +5 samples" in check) == (shift == 5)


def test_memory_is_told_with_its_delays():
    x = SYSTEM(U, seed=7)
    (check,) = infocap.diagnose(recorded(U, x + 0.3 * np.roll(x, 2, axis=0)), basis=BASIS).checks
    assert check.found["delays"] == [2]
    assert check.found["capacity"] > 0.5
    assert "delayed_basis" in check


def test_inputs_in_sobol_order_are_noted():
    qmc = pytest.importorskip("scipy.stats").qmc
    u = 2 * qmc.Sobol(2, rng=1).random(1024) - 1
    (check,) = infocap.diagnose(recorded(u, SYSTEM(u, seed=1)), basis=BASIS).checks
    assert (check.kind, check.found["cause"]) == ("note", "order of inputs")


def test_inputs_that_are_not_those_of_the_plan_are_noticed():
    plan = Plan(n_inputs=2, max_degree=4, n_samples=1024, seed=3)
    u = infocap.draw(plan.basis, 1024, seed=4)
    found = infocap.diagnose(recorded(u, SYSTEM(u, seed=1), metadata={"plan": plan.to_dict()}))
    assert causes(found) == ["another design"]


def diagnose(*arguments):
    """Return the exit code of the command, its output in one line, and what it raised."""
    ran = CliRunner().invoke(main, ["diagnose", *map(str, arguments)])
    return ran.exit_code, " ".join(ran.output.split()), ran.exception


def test_diagnose_prints_what_is_fit_and_writes_a_new_file(tmp_path):
    path = recorded(*MISTAKES["a slip"]()).save(tmp_path / "run.nc")
    before = path.read_bytes()
    new = tmp_path / "new.nc"
    code, said, _ = diagnose(path, "--fix", "-o", new, "--strict")
    assert code == 1
    assert "Looked at and in order: inputs of the declared range" in said
    assert re.search(
        r"shifted by \+1 samples against the inputs in measurements (69|70)\d to 1(39|40)\d", said
    )
    assert "repaired: readouts were realigned by +1 measurements" in said
    assert "no warning is left" in said
    assert path.read_bytes() == before
    assert "realigned" in infocap.read(new).metadata["repairs"][0]["done"]
    code, said, _ = diagnose(new, "--strict")
    assert (code, "Nothing wrong was found." in said) == (0, True)


def test_where_nothing_is_exact_no_file_is_written(tmp_path):
    new = tmp_path / "new.nc"
    clean = recorded(U, X).save(tmp_path / "clean.nc")
    code, said, _ = diagnose(clean, "--fix", "-o", new, "--strict")
    assert (code, new.exists()) == (0, False)
    assert f"nothing was changed, and {new} was not written: nothing is wrong." in said
    glitched = recorded(*MISTAKES["glitches"]()).save(tmp_path / "glitched.nc")
    code, said, _ = diagnose(glitched, "--fix", "-o", new)
    assert (code, new.exists()) == (0, False)
    assert "no finding is exact (glitches)" in said
    assert diagnose(glitched, "--fix", "-o", new, "--strict")[0] == 1


def test_a_repair_replaces_a_file_only_if_told_and_never_the_one_that_was_read(tmp_path):
    path = recorded(*MISTAKES["a slip"]()).save(tmp_path / "run.nc")
    before = path.read_bytes()
    other = recorded(U, X).save(tmp_path / "other.nc")
    _, _, problem = diagnose(path, "--fix", "-o", other)
    assert "there already" in str(problem)
    assert "repairs" not in infocap.read(other).metadata
    _, _, problem = diagnose(path, "--fix", "-o", path, "--force")
    assert "stays as it is" in str(problem)
    assert path.read_bytes() == before
    assert diagnose(path, "--fix", "-o", other, "--force")[0] == 0
    assert "repairs" in infocap.read(other).metadata
    assert isinstance(diagnose(path, "--fix")[2], infocap.errors.ParameterError)
    _, _, problem = diagnose(path, "--fix", "-o", tmp_path / "new.csv")
    assert "'.csv' is not one of '.nc'" in str(problem)


def test_readouts_of_another_design_are_refused(tmp_path):
    plans = [Plan(n_inputs=2, max_degree=4, n_samples=64, seed=seed) for seed in (1, 2)]
    ours, theirs = (plan.write_inputs(tmp_path / f"{plan.seed}.csv") for plan in plans)
    lines = theirs.read_text(encoding="utf-8").splitlines()
    table = [
        lines[0],
        "index,x1,x2",
        *(",".join([line.split(",")[0], "1", "2"]) for line in lines[2:]),
    ]
    theirs.write_text("\n".join(table), encoding="utf-8")
    with pytest.raises(
        infocap.errors.DataError, match=rf"design {plans[0].design_fingerprint} \(seed 1\)"
    ):
        infocap.read(ours, theirs)
    assert plans[0].design_fingerprint in plans[0].save(tmp_path / "plan.toml").read_text(
        encoding="utf-8"
    )


def test_the_page_shows_where_readouts_do_not_fit_and_which_design_it_was(tmp_path):
    plan = Plan(n_inputs=2, max_degree=8, n_samples=N, seed=3)
    x = SYSTEM(plan.inputs, seed=7)
    recording = recorded(
        plan.inputs, late(x, 1, slice(700, 1400)), metadata={"plan": plan.to_dict()}
    )
    result = infocap.estimate(recording, basis=BASIS, method="threshold-richardson")
    page = infocap.report.page(infocap.load_result(result.save(tmp_path / "result.nc")))
    assert "How well readouts agree with inputs, in parts of the run." in page
    assert plan.design_fingerprint in page
    picture = result.warnings[0].found["picture"]
    agreement = {one["name"]: np.array(one["y"]) for one in picture["series"]}
    measurement = np.array(picture["series"][0]["x"])
    is_inside = (measurement > 720) & (measurement < 1380)
    assert agreement["their own inputs"][is_inside].max() < 0.3
    assert agreement["their own inputs"][measurement < 680].min() > 0.5
    assert agreement["those 1 row earlier"][is_inside].min() > 0.5
    clean = infocap.estimate(recorded(plan.inputs, x), basis=BASIS, method="threshold-richardson")
    assert "How well readouts agree" not in infocap.report.page(clean)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_warning_has_a_picture_in_which_something_is_found(mistake):
    (check, *_) = infocap.diagnose(recorded(*MISTAKES[mistake]()), basis=BASIS).checks
    picture = check.found["picture"]
    assert picture["caption"].endswith(".")
    assert len(json.dumps(picture)) < 10_000
    if picture["kind"] == "map":
        assert len(picture["marked"]) > 0
        assert max(map(max, picture["levels"])) == "9"
    else:
        roles = {one["role"] for one in picture["series"]}
        along_the_run = check.found["cause"] in ("response", "drift", "noise", "gap", "nothing")
        assert ("found" in roles) != along_the_run
        assert {len(one["x"]) - len(one["y"]) for one in picture["series"]} == {0}


def test_the_picture_of_shifted_readouts_has_its_bar_at_the_lag():
    (check,) = infocap.diagnose(recorded(U, late(X, 3)), basis=BASIS).checks
    bars = {one["role"]: one for one in check.found["picture"]["series"]}
    assert bars["found"]["x"] == [-3]
    assert bars["found"]["y"][0] == pytest.approx(check.found["capacity"], rel=0.05)
    assert max(bars["usual"]["y"]) < 0.1


def test_the_picture_of_glitches_marks_the_moments_of_their_rows():
    (check,) = infocap.diagnose(recorded(*MISTAKES["glitches"]()), basis=BASIS).checks
    picture = check.found["picture"]
    assert len(picture["marked"]) == len(check.found["rows"]) == 5
    for row, (start, stop) in zip(check.found["rows"], picture["marked"], strict=True):
        assert start <= row < stop <= start + 18
    first, last = picture["extent"]
    columns = [len(picture["levels"][0]) * row // (last - first) for row in check.found["rows"]]
    is_marked = np.isin(np.arange(len(picture["levels"][0])), columns)
    levels = np.array([list(map(int, line)) for line in picture["levels"]])
    assert levels[:, is_marked].mean() > levels[:, ~is_marked].mean() + 5


def test_every_cause_has_one_place_in_the_ranking():
    assert len(RANKING) == len(set(RANKING))
    assert set(RANKING) >= {CAUSES.get(name, name) for name in MISTAKES}


def test_one_cause_is_told_first_and_the_others_beneath_it():
    (check,) = infocap.diagnose(recorded(*MISTAKES["a slip"]()), basis=BASIS).checks
    beneath = [infocap.errors.Check.from_dict(data) for data in check.found["also"]]
    assert {"swapped rows", "response", "noise"} <= {other.found["cause"] for other in beneath}
    assert "Also seen, perhaps for the same reason: rows out of order (up to " in check
    assert not any("picture" in other.found for other in beneath)


def test_a_fact_of_the_values_is_told_beside_a_mistake_of_order():
    x = np.clip(X, -0.5, 0.5) + 1e-4 * chance().standard_normal(X.shape)
    checks = infocap.diagnose(recorded(U, late(x, 1)), basis=BASIS).checks
    assert [check.found["cause"] for check in checks] == ["clipped", "shift"]


WIDE = infocap.product_basis("legendre", 3, 4)
CHANNELS, OFFSETS = (
    np.random.default_rng(1).standard_normal((3, 12)),
    np.random.default_rng(9).uniform(-1, 1, 12),
)


def steps(n, seed=5):
    """Readouts that jump at an edge, which some of them cross rarely."""
    u = infocap.draw(WIDE, n, seed=seed, design="random")
    return u, np.sign(u @ CHANNELS + OFFSETS) + 0.02 * np.random.default_rng(3).standard_normal(
        (n, 12)
    )


def warned(u, x, basis, **options):
    checks = infocap.estimate(u, x, basis, **options).checks
    return {
        check.found["cause"]
        for check in checks
        if check.kind == "warning" and "cause" in check.found
    }


@pytest.mark.parametrize("seed", [77, 78])
def test_rare_steps_are_not_hum(seed):
    assert "period" not in warned(*steps(120_000, seed), WIDE)


@pytest.mark.parametrize("lag", [-1, 1, 3])
def test_shifted_readouts_with_rare_steps_are_shifted_and_not_glitched(lag):
    u, x = steps(4096)
    assert warned(u, np.roll(x, lag, axis=0), WIDE) == {"shift"}


def test_what_a_mistake_explains_is_not_told_again():
    u = infocap.draw(WIDE, 2048, seed=5, design="random")
    x = np.tanh(u @ CHANNELS + 0.3 * CHANNELS[0])
    assert warned(u, x + 0.4 * np.roll(x, 1, axis=0), WIDE) == {"memory"}


LINE = infocap.delayed_basis("legendre", max_delay={1: 6, 2: 3})


def delay_line(seed=1):
    u = infocap.draw(LINE, 4000, seed=seed)
    z = np.stack([np.roll(u[:, 0], delay) for delay in (0, 1, 2, 4)], axis=1)
    return u, np.tanh(z) + 0.1 * np.random.default_rng(3).standard_normal(z.shape)


HUM = 0.2 * np.sin(0.3117 * np.arange(4000))[:, None]
SEQUENCE_MISTAKES = {
    "none": (lambda u, x: (u, x), set()),
    "inputs of another run": (lambda u, x: (delay_line(2)[0], x), {"nothing"}),
    "hum": (lambda u, x: (u, x + HUM), {"period"}),
    "saturated": (lambda u, x: (u, np.clip(x, -0.3, 0.5)), {"clipped"}),
}


@pytest.mark.parametrize("mistake", SEQUENCE_MISTAKES)
def test_a_mistake_with_a_sequence_is_noticed_once_with_its_cause(mistake):
    make, causes = SEQUENCE_MISTAKES[mistake]
    assert warned(*make(*delay_line()), LINE, washout=20) == causes


@pytest.mark.parametrize(("decay", "n"), [(0.98, 8000), (0.995, 1500)])
def test_a_resonant_device_does_not_hum(decay, n):
    basis = infocap.delayed_basis("legendre", max_delay={1: 60})
    generator = chance()
    for seed in range(4):
        u = infocap.draw(basis, n, seed=seed)[:, 0]
        state, x = 0j, np.empty((n, 2))
        for step, value in enumerate(u):
            state = decay * np.exp(0.7j) * state + value
            x[step] = state.real, state.imag
        noise = 0.01 * generator.standard_normal(x.shape)
        assert "period" not in warned(u, x + noise, basis, washout=500)


def test_a_faint_function_is_not_nothing():
    u = infocap.draw(LINE, 4000, seed=1)
    x = 0.15 * np.roll(u, 1, axis=0) + np.random.default_rng(2).standard_normal((4000, 1))
    assert "nothing" not in warned(u, x, LINE, washout=20)


def rings(u, seed, finesse=60.0, k=16):
    """Dips of ring resonators, narrow compared with the range of the inputs."""
    g = np.random.default_rng(seed)
    phase = u @ (2 * g.standard_normal((u.shape[1], k))) + 2 * np.pi * g.random(k)
    return (
        1
        - 1 / (1 + (2 * finesse / np.pi * np.sin(phase / 2)) ** 2)
        + 1e-3 * g.standard_normal(phase.shape)
    )


@pytest.mark.parametrize("n", [512, 4096])
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_resonances_are_no_mistakes_and_glitches_among_them_are(n, seed):
    basis = infocap.product_basis("legendre", 2, 8)
    u = infocap.draw(basis, n, seed=seed, design="random")
    x = rings(u, seed)
    assert warned(u, x, basis, method="threshold-richardson") == set()
    g = np.random.default_rng(seed)
    x[g.choice(n, 12, replace=False)] += 3 * g.standard_normal((12, x.shape[1]))
    assert warned(u, x, basis, method="threshold-richardson") == {"glitches"}


def test_a_tenth_of_the_input_before_is_memory():
    u = infocap.draw(BASIS, 4096, seed=21)
    x = SYSTEM(u + 0.1 * np.roll(u, 1, axis=0), seed=1)
    (check,) = (
        one for one in infocap.diagnose(recorded(u, x), basis=BASIS).checks if one.kind == "warning"
    )
    assert (check.found["cause"], check.found["delays"]) == ("memory", [1])


def test_binary_data_stacked_twice_are_noticed_and_equal_states_are_not():
    basis = infocap.product_basis("bernoulli", 6, 3)
    u = infocap.draw(basis, 600, seed=2, design="random")
    x = infocap.systems.RandomFeatures(6, 12, noise=1e-3, seed=4)(u, seed=1)
    assert warned(u, x, basis, method="threshold-richardson") == set()
    twice = warned(np.vstack([u, u]), np.vstack([x, x]), basis, method="threshold-richardson")
    assert twice == {"stacked"}


def test_an_input_that_acts_by_high_degrees_alone_has_an_effect():
    basis = infocap.product_basis("legendre", 2, 12)
    u = infocap.draw(basis, 4096, seed=3)
    g = np.random.default_rng(1)
    high = np.cos(10 * np.arccos(u[:, 1:]))  # of degree 10
    x = np.tanh(u[:, :1] @ g.standard_normal((1, 8))) + 0.5 * high * g.standard_normal((1, 8))
    x += 1e-3 * g.standard_normal(x.shape)
    causes_of = [one.found.get("cause") for one in infocap.estimate(u, x, basis).checks]
    assert "no effect" not in causes_of
    assert "no effect" in [
        one.found["cause"] for one in infocap.diagnose(recorded(u, x), basis=basis).checks
    ]


@pytest.mark.parametrize(
    "call",
    [
        lambda: infocap.draw(3, 100),
        lambda: infocap.probe(SYSTEM, 3, 100),
        lambda: infocap.estimators.conclude(3),
        lambda: infocap.diagnose(3),
        lambda: infocap.theory.forecast_from(3),
        lambda: infocap.theory.linear_memory([[np.nan]], [[1.0]]),
    ],
)
def test_what_is_something_else_is_one_clear_error(call):
    with pytest.raises(infocap.errors.InfocapError):
        call()


def test_a_noisy_part_of_a_long_run_is_named_by_its_measurements():
    n = 40_000
    u = infocap.draw(BASIS, n, design="random", seed=1)
    x = SYSTEM(u, seed=1)
    x[20_000:30_000] += 0.05 * chance().standard_normal((10_000, 20))
    (check,) = infocap.diagnose(recorded(u, x), basis=BASIS).checks
    ((start, stop),) = check.found["stretches"]
    assert abs(start - 20_000) < 700
    assert abs(stop - 30_000) < 700


def test_a_gain_that_drifts_along_a_file_is_seen_in_the_parts_that_are_read(tmp_path):
    n = 50_000
    u = infocap.draw(BASIS, n, design="random", seed=1)
    gain = 1 + 0.3 * np.linspace(0, 1, n)[:, None]
    for name, x, expected in (
        ("steady", SYSTEM(u, seed=1), []),
        ("drift", gain * SYSTEM(u, seed=1), ["response"]),
    ):
        np.save(tmp_path / f"{name}.npy", x)
        np.save(tmp_path / "u.npy", u)
        on_disk = [np.load(tmp_path / f"{file}.npy", mmap_mode="r") for file in ("u", name)]
        result = infocap.estimate(*on_disk, BASIS, method="raw")
        assert [check.found["cause"] for check in result.warnings] == expected


def test_slow_states_of_a_device_with_memory_are_no_drift():
    memory = infocap.delayed_basis("legendre", max_delay={1: 10})
    generator = np.random.default_rng(3)
    u = generator.uniform(-1, 1, (4000, 1))
    past = np.stack([np.roll(u[:, 0], delay) for delay in range(6)], axis=1)
    fast = past @ generator.standard_normal((6, 8))
    slow = np.cumsum(generator.standard_normal((4000, 8)), axis=0)
    slow *= np.linspace(0.002, 0.004, 8)
    x = fast + slow + 0.01 * generator.standard_normal((4000, 8))
    recording = infocap.Recording(u, x, np.arange(4000))
    assert [check.kind for check in infocap.diagnose(recording, basis=memory).checks] == ["note"]
    moved_together = x + 1.5 * np.linspace(0, 1, 4000)[:, None]
    recording = infocap.Recording(u, moved_together, np.arange(4000))
    (check,) = infocap.diagnose(recording, basis=memory).checks
    assert (check.kind, check.found["cause"]) == ("warning", "drift")


def test_a_polarity_that_flips_is_seen_in_a_device_with_memory():
    memory = infocap.delayed_basis("legendre", max_delay={1: 10, 2: 4})
    device = infocap.systems.EchoState(n_nodes=10, seed=1)
    u = infocap.draw(memory, 3000, seed=1)
    x = device(u)
    flipped = np.where(np.arange(3000)[:, None] < 1500, x, -x)
    recording = infocap.Recording(u, flipped, np.arange(3000))
    first = infocap.diagnose(recording, basis=memory).checks[0]
    assert (first.kind, first.found["cause"]) == ("warning", "response")


@pytest.mark.parametrize("first_row", [0, 5])
def test_batches_are_found_wherever_the_first_one_begins(first_row):
    x = X.copy()
    for start in range(0, N, 32):
        x[start : start + 32] -= x[start : start + 32].mean(axis=0)
    found = infocap.diagnose(recorded(U[first_row:], x[first_row:]), basis=BASIS)
    assert found.checks[0].found["cause"] == "batches"
    assert found.checks[0].found["period"] == 32


def test_more_channels_than_rows_are_looked_at_though_no_capacity_can_be_had():
    u = infocap.draw(BASIS, 512, seed=1)
    x = infocap.systems.RandomFeatures(2, 600, noise=0.01, seed=1)(u, seed=1)
    (refusal,) = infocap.diagnose(recorded(u, x), basis=BASIS).checks
    assert refusal.found["cause"] == "refused"
    drifting = x + np.linspace(0, 3, 512)[:, None] * x.std(axis=0)
    found = infocap.diagnose(recorded(u, drifting), basis=BASIS)
    assert [check.found["cause"] for check in found.checks][:2] == ["refused", "drift"]
    assert found.checks[1].found["picture"]["series"]
    assert "no clock or thermometer among the readouts" in found.passed


@pytest.mark.parametrize("how", ["row before", "interpolated"])
def test_cells_that_were_filled_in_are_noticed_in_a_device_with_memory(how):
    memory = infocap.delayed_basis("legendre", max_delay={1: 10, 2: 4})
    u = infocap.draw(memory, 3000, seed=1)
    x = infocap.systems.EchoState(n_nodes=10, seed=1)(u)
    x = x + 0.01 * chance().standard_normal(x.shape)
    recording = infocap.Recording(u, x, np.arange(3000))
    assert infocap.diagnose(recording, basis=memory).checks == ()
    filled = x.copy()
    rows, channels = np.nonzero(chance().random(x[1:-1].shape) < 0.03)
    before, after = x[rows, channels], x[rows + 2, channels]
    filled[rows + 1, channels] = before if how == "row before" else (before + after) / 2
    recording = infocap.Recording(u, filled, np.arange(3000))
    assert infocap.diagnose(recording, basis=memory).checks[0].found["cause"] == "filled cells"


MEMORY = infocap.delayed_basis("legendre", max_delay={1: 10, 2: 4})


def remembering(u, noise=0.01):
    x = infocap.systems.EchoState(n_nodes=10, seed=1)(u)
    return x + noise * chance().standard_normal(x.shape)


@pytest.mark.parametrize("steps", [0.1, 0.3])
def test_what_rounding_takes_lies_between_the_sizes_that_are_told(steps):
    u = infocap.draw(MEMORY, 4000, seed=1)
    x = remembering(u)
    coarse = np.round(x / steps) * steps
    clean_total = infocap.estimate(u, x, MEMORY, method="raw").total
    lost = clean_total - infocap.estimate(u, coarse, MEMORY, method="raw").total
    assert causes(infocap.diagnose(u, x, MEMORY)) == []
    (check,) = infocap.diagnose(u, coarse, MEMORY).checks
    assert (check.kind, check.found["cause"]) == ("note", "rounded readouts")
    assert check.found["at_least"] < lost < check.found["capacity"]


def test_numbers_of_two_digits_are_rounded_and_no_converter_with_holes():
    u = infocap.draw(MEMORY, 4000, seed=1)
    x = 300 + 200 * remembering(u)
    unit = 10.0 ** (np.floor(np.log10(np.abs(x))) - 1)
    found = infocap.diagnose(u, np.round(x / unit) * unit, MEMORY)
    assert causes(found) == ["rounded readouts"]


@pytest.mark.parametrize("of_sequence", [True, False])
def test_offsets_that_come_and_go_are_noticed(of_sequence):
    basis = MEMORY if of_sequence else BASIS
    u = infocap.draw(basis, 3000, design="random", seed=1)
    x = remembering(u) if of_sequence else SYSTEM(u, seed=1)
    is_on = np.cumsum(chance().random(3000) < 1 / 40)[:, None] % 2
    offset = 0.5 * is_on * x.std(axis=0) * chance().standard_normal(x.shape[1])
    assert causes(infocap.diagnose(u, x, basis)) == []
    (check,) = infocap.diagnose(u, x + offset, basis).checks
    assert (check.kind, check.found["cause"]) == ("warning", "drift")


def test_a_memory_that_is_longer_than_the_basis_is_no_offset():
    u = infocap.draw(MEMORY, 4000, seed=1)
    averages = [lfilter([1 - a], [1, -a], u[:, 0]) for a in np.exp(-1 / np.geomspace(2, 15, 8))]
    x = np.tanh(3 * np.column_stack(averages))
    x += 1e-3 * chance().standard_normal(x.shape)
    assert "drift" not in causes(infocap.diagnose(u, x, MEMORY))


def test_rows_that_saw_a_part_of_the_light_are_glitched_though_no_gap_sets_them_apart():
    u = infocap.draw(BASIS, 4000, design="random", seed=1)
    generator = chance()
    is_late = generator.random((4000, 1)) < 0.07
    seen = np.where(is_late, generator.uniform(0.1, 0.9, (4000, 1)), 1)
    (check,) = infocap.diagnose(u, (SYSTEM(u, seed=1) + 2) * seen, BASIS).checks
    assert check.found["cause"] == "glitches"
    assert np.mean(is_late[check.found["rows"], 0]) > 0.9


def test_readouts_a_row_late_are_shifted_also_with_more_of_them_than_rows():
    u = infocap.draw(BASIS, 256, seed=1)
    x = infocap.systems.RandomFeatures(2, 400, noise=0.01, seed=1)(u, seed=1)
    (check,) = infocap.estimators.find_mistakes(u, np.roll(x, 1, axis=0), BASIS)
    assert (check.found["cause"], check.found["lag"]) == ("shift", -1)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", [1e300, -1.7e308])
def test_a_number_beyond_all_others_is_told_as_it_stands(value):
    x = X.copy()
    x[5, 3] = value
    (check,) = infocap.diagnose(recorded(U, x), basis=BASIS).checks
    assert (check.kind, check.found["cause"], check.found["rows"]) == ("warning", "codes", [5])
    assert f"{value:.6g} stands" in check


def test_a_detector_in_the_dark_has_no_copied_rows():
    u = infocap.draw(BASIS, 2048, seed=1)
    rate = 0.05 * (1 + u @ chance().uniform(-0.4, 0.4, (2, 8)))
    x = chance().poisson(rate).astype(float)
    assert "copied rows" not in causes(infocap.diagnose(recorded(u, x), basis=BASIS))


def checks_of_offsets(offset):
    """What is said of a reservoir with an offset in its readouts."""
    basis = infocap.delayed_basis("legendre", max_delay={1: 10, 2: 5})
    u = infocap.draw(basis, 3000, seed=1)
    x = infocap.systems.EchoState(20, radius=0.7, noise=0.05, seed=1)(u, seed=2)
    checks = infocap.estimate(u, x + x.std(axis=0) * offset, basis, washout=200).checks
    return [check for check in checks if check.found.get("cause") == "drift"]


def test_slow_noise_is_told_in_a_note():
    white = np.random.default_rng(3).standard_normal((3000, 20))
    slow = lfilter([np.sqrt(1 - 0.9**2)], [1, -0.9], white, axis=0)
    (check,) = checks_of_offsets(slow)
    assert check.kind == "note"
    assert check.startswith("the noise of the readouts lasts for more than 10 steps")


def test_pixels_that_blink_are_warned_of():
    generator = np.random.default_rng(4)
    blinks = np.cumsum(generator.random((3000, 20)) < 1 / 25, axis=0) % 2
    blinks[:, 4:] = 0
    (check,) = checks_of_offsets(2.0 * blinks)
    assert check.kind == "warning"
    assert "keep an offset for more than 10 steps" in check


def dark(x, seed=4, share=0.05):
    """Readouts of which a few rows are dark shots, with little noise of the detector."""
    generator = np.random.default_rng(seed)
    level = x.min(axis=0) + 1e-4 * generator.standard_normal(x.shape)
    return np.where(generator.random((len(x), 1)) < share, level, x)


def random_run(seed=5, n=4096):
    u = infocap.draw(BASIS, n, seed=seed, design="random")
    return u, SYSTEM(u, seed=seed)


def test_an_echo_of_a_far_row_is_memory_and_its_lag_is_told():
    u, _ = random_run()
    x = SYSTEM(u + 0.3 * np.roll(u, 23, axis=0), seed=5)
    (check,) = infocap.diagnose(u, x, BASIS).checks
    assert (check.found["cause"], check.found["lag"]) == ("memory", -23)


def test_noise_that_follows_the_step_from_the_row_before_is_memory():
    u, x = random_run()
    step = np.abs(u - np.roll(u, 1, axis=0)).max(axis=1, keepdims=True)
    noisy = x + 0.1 * step * np.random.default_rng(6).standard_normal(x.shape)
    (check,) = infocap.diagnose(u, noisy, BASIS).checks
    assert (check.found["cause"], check.found["lag"]) == ("memory", -1)
    assert check.found["shown_as"] == "noise of rows"


def test_a_gain_that_follows_the_row_before_is_memory():
    u, x = random_run()
    gain = 1 + 0.3 * np.roll(u[:, :1], 1, axis=0)
    middle = x.mean(axis=0)
    (check,) = infocap.diagnose(u, middle + (x - middle) * gain, BASIS).checks
    assert (check.found["cause"], check.found["lag"]) == ("memory", -1)
    assert check.found["shown_as"] == "gain of rows"


def test_light_of_a_far_later_row_is_seen_in_a_device_with_memory():
    u, x = delay_line()
    leak = x + 0.3 * np.roll(x, -12, axis=0)
    (check,) = infocap.diagnose(recorded(u, leak), basis=LINE).checks
    assert (check.found["cause"], check.kind) == ("later inputs", "warning")
    assert check.found["lag"] in range(8, 13)  # the line holds inputs of up to four rows before


@pytest.mark.parametrize(("make", "basis"), [(random_run, BASIS), (delay_line, LINE)])
def test_dark_rows_are_alike_whatever_their_inputs(make, basis):
    u, x = make()
    is_dark = np.any(dark(x) != x, axis=1)
    findings = infocap.diagnose(recorded(u, dark(x)), basis=basis).checks
    told = [check.found for check in findings]
    told += [also["found"] for found in told for also in found.get("also", ())]
    (alike,) = (found for found in told if found.get("shown_as") == "alike rows")
    assert np.mean(is_dark[alike["rows"]]) > 0.95
    assert len(alike["rows"]) > 0.8 * is_dark.sum()


def test_rows_of_a_saturated_device_are_alike_and_not_accused():
    u = infocap.draw(BASIS, 4096, seed=5, design="random")
    weights = np.random.default_rng(5).standard_normal((u.shape[1], 6))
    x = np.tanh(30 * u @ weights) + 1e-3 * np.random.default_rng(6).standard_normal((4096, 6))
    assert "gap" not in causes(infocap.diagnose(u, x, BASIS))


@pytest.mark.parametrize(("value", "cause"), [(1.0, "domain"), (0.0, "shape of inputs")])
def test_inputs_that_take_one_value_too_often_are_told(value, cause):
    u, x = random_run()
    is_filled = np.random.default_rng(7).random(len(u)) < 0.02
    written = np.where(is_filled[:, None], value, u)
    found = infocap.diagnose(written, x, BASIS).checks
    told = [check for check in found if "takes the value" in check]
    assert [check.found["cause"] for check in told] == [cause]
    assert set(told[0].found["rows"]) == set(np.flatnonzero(is_filled))


def test_zero_suppression_is_told_and_a_dead_zone_of_the_device_is_not():
    u, x = random_run()
    signal = x - np.median(x, axis=0)
    suppressed = np.where(np.abs(signal) < 0.5 * x.std(axis=0), 0.0, signal)
    assert "codes" in causes(infocap.diagnose(u, suppressed, BASIS))
    width = 0.3 * x.std(axis=0)
    dead_zone = np.sign(signal) * np.maximum(np.abs(signal) - width, 0.0)
    assert "codes" not in causes(infocap.diagnose(u, dead_zone, BASIS))


def test_a_sweep_of_one_of_many_inputs_is_an_order_and_nothing_else():
    basis = infocap.product_basis("legendre", n_inputs=10, max_degree=2)
    u = infocap.draw(basis, 3000, seed=1, design="random")
    weights = np.random.default_rng(2).standard_normal((10, 12))
    for swept in (0, 9):
        in_order = u[np.argsort(u[:, swept])]
        x = np.tanh(0.5 * in_order @ weights)
        x += 0.02 * np.random.default_rng(3).standard_normal(x.shape)
        (note,) = infocap.diagnose(in_order, x, basis).checks
        assert (note.found["cause"], note.kind) == ("order of inputs", "note")


@pytest.mark.parametrize("course", ["walk", "ramp"])
def test_readouts_that_drift_and_hold_no_input_are_nothing(course):
    u, x = random_run()
    generator = np.random.default_rng(8)
    if course == "walk":
        slow = np.cumsum(generator.standard_normal(x.shape), axis=0) / 20
    else:
        slow = np.linspace(-2, 2, len(u))[:, None]
    found = infocap.diagnose(u, slow + generator.standard_normal(x.shape), BASIS)
    assert "nothing" in causes(found)


def test_light_of_a_row_forty_steps_later_is_seen():
    u, x = delay_line()
    leak = x[:1500] + 0.2 * np.roll(x, -40, axis=0)[:1500]
    told = infocap.diagnose(recorded(u[:1500], leak), basis=LINE).checks
    assert "later inputs" in [check.found["cause"] for check in told]


@pytest.mark.parametrize("seed", range(6))
def test_a_peak_of_the_density_is_no_group_of_alike_rows(seed):
    u = infocap.draw(BASIS, 4096, seed=seed, design="random")
    x = np.prod(u, axis=1, keepdims=True)
    told = infocap.diagnose(u, x, BASIS).checks
    assert "alike rows" not in [check.found.get("shown_as") for check in told]
