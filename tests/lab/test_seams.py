"""Where pieces meet: names and units in sequences, sequences in the lab and on pages, plans in messages."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import infocap
from infocap.lab import Plan, SimulatedBench, Store, acquire, status
from infocap.lab.cli import main

TWO = ("Bias [V]:0:5", "Phase [deg]:0:360:fourier")
PLAN = Plan(
    family=TWO,
    n_inputs=2,
    max_delay={1: 8, 2: 3},
    n_samples=1200,
    runs=3,
    repeat_every=3,
    title="My loop",
)


def loop(u):
    """A device with memory of two inputs of different units."""
    bias = u[:, 0] / 2.5 - 1
    phase = np.radians(u[:, 1])
    late = np.zeros((len(u), 3))
    for t, now in enumerate(np.column_stack([bias, np.cos(phase), np.sin(phase)])):
        late[t] = np.tanh(now + 0.5 * late[t - 1]) if t else now
    return np.hstack([late, late[:, :1] * late[:, 1:], late**2])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.db"
    chance = np.random.default_rng(1)
    noisy = SimulatedBench(lambda u: loop(u) + 0.01 * chance.standard_normal((len(u), 8)))
    acquire(PLAN, noisy, path, progress=False)
    return path


def command(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_functions_of_delayed_inputs_bear_their_names_without_units():
    assert {"P1(Bias[t])", "cos1(Phase[t-8])", "P1(Bias[t])·sin1(Phase[t-3])"} <= set(
        PLAN.basis.labels
    )
    assert not any("[V]" in one or "[deg]" in one for one in PLAN.basis.labels)


def test_a_plan_of_sequences_takes_inputs_one_by_one(tmp_path):
    sequence = ["--max-delay", "1:8,2:3", "--n-samples", 1200, "--runs", 3]
    inputs = ["--input", TWO[0], "--input", TWO[1]]
    said = command("plan", *sequence, *inputs, "-o", tmp_path / "plan.toml")
    assert "3 measurements of 408 time steps" in said
    assert Plan.load(tmp_path / "plan.toml").basis.names == ["Bias", "Phase"]


def test_a_plan_of_sequences_tells_delays_runs_and_washout(run):
    said = PLAN.in_words()
    assert "with delays up to 8 of degree 1, 3 of degree 2, 3 runs of 408 steps, washout 8" in said
    assert "design" not in said
    assert said.split(", ")[1] in " ".join(command("show", run).split())


def test_watch_tells_runs_and_their_total(tmp_path):
    with Store(tmp_path / "run.db", PLAN) as store:
        for one in list(store.remaining())[:2]:
            store.record(one.number, loop(one.u.reshape(-1, 2)), one.kind)
    said = command("watch", tmp_path / "run.db", "--once")
    assert "2/3 runs, 0/1 repeated runs" in said
    assert "row" not in said.split("\n")[3]
    total = status(tmp_path / "run.db").result.total
    assert f"total {total:.1f}" in said


def bare_table(run, path):
    """The run as a table without the line that tells its plan."""
    command("export", run, path)
    line, table = path.read_text().split("\n", 1)
    assert line.startswith("# infocap plan")
    path.write_text(table)


def test_diagnose_knows_that_a_sequence_has_memory_and_claims_no_plan_without_one(run, tmp_path):
    said = command("diagnose", run)
    assert "Nothing wrong was found." in said
    assert "inputs of the plan" in said
    assert "no hum" in said
    bare_table(run, tmp_path / "run.csv")
    inputs = ("--input", TWO[0], "--input", TWO[1])
    assert "the device has memory" in " ".join(
        command("diagnose", tmp_path / "run.csv", *inputs).split()
    )
    told = " ".join(
        command("diagnose", tmp_path / "run.csv", *inputs, "--max-delay", "1:8").split()
    )
    assert "the device has memory" not in told
    assert "inputs of the plan" not in told


def test_delays_and_names_of_columns_go_together(run, tmp_path):
    bare_table(run, tmp_path / "run.csv")
    said = command(
        "estimate", tmp_path / "run.csv", "--max-delay", "1:3", "--domain", 0, 5, "--domain", 0, 360
    )
    assert "P1(Phase[t])" in said
    assert "a sequence of legendre inputs on [0, 5] and legendre inputs on [0, 360]" in " ".join(
        said.split()
    )


def test_every_input_has_its_memory_function_on_the_page(run):
    result = infocap.estimate(infocap.read(run), basis=PLAN.basis)
    page = infocap.report.page(result)
    for k, name in enumerate(("Bias", "Phase")):
        own = result.memory_function(input=k + 1)["capacity"].sum()
        assert f"Memory function of {name}" in page
        assert f"Capacity {own:.2f} of " in page
    ax = infocap.plot.memory_function(result, input=2)
    assert [one.get_text() for one in ax.get_legend().get_texts()][:2] == [
        "cos1(Phase)",
        "sin1(Phase)",
    ]
    assert ax.get_xlabel() == "delay of Phase"
    assert all(
        len(set(line.get_xdata())) == len(line.get_xdata()) for line in ax.lines
    )  # no line goes back
    assert "<h1>My loop</h1>" in page
    assert "12 checks" not in page  # not all of them are for sequences


def test_where_a_file_was_read_from_is_told_without_brackets(tmp_path):
    u = infocap.draw(infocap.product_basis("legendre", 1, 3), 64, seed=1)
    rows = [f"{a},{a * a},word" for a in u[:, 0]]
    (tmp_path / "mine.csv").write_text("\n".join(["u1,x1,note", *rows]))
    result = infocap.estimate(
        infocap.read(tmp_path / "mine.csv"), basis=infocap.product_basis("legendre", 1, 3)
    )
    page = infocap.report.page(result)
    for words in ("read from › file", "read from › inputs", "read from › left out › note"):
        assert words in page
    assert "[{" not in page.split("Where the numbers come from")[1].split("infocap-data")[0]


def test_a_store_is_no_result_and_it_is_said_how_to_make_one(run):
    done = CliRunner().invoke(main, ["card", str(run), "-o", "card.html"])
    assert "is no result" in str(done.exception)
    assert f"`infocap estimate {run} -o result.nc`" in str(done.exception)


def test_accuracy_that_is_the_same_in_all_folds_has_no_error():
    perfect = infocap.tasks.Accuracy(
        np.ones(5),
        np.array([0.5, 0.6, 0.55, 0.5, 0.6]),
        "spirals",
        "drawn",
        200,
        "least-squares",
        False,
    )
    assert "Accuracy: 100.0% on spirals" in repr(perfect)
    assert "linear model 55.0% ± 4.8%" in repr(perfect)


def test_options_have_one_default_and_a_word_of_help():
    for name, one in main.commands.items():
        for option in one.params:
            assert option.param_type_name == "argument" or option.help, f"{name} {option.name}"
        said = " ".join(command(name, "--help").split())
        assert "] [default" not in said
    assert "..." not in command("--help").split("Commands:")[1]  # no sentence is cut


def test_devices_of_one_title_are_told_apart_in_a_gallery(run, tmp_path):
    result = infocap.estimate(infocap.read(run), basis=PLAN.basis)
    infocap.report.card(result, tmp_path / "a.html")
    of_another = replace(result, total=result.total / 2)
    infocap.report.card(of_another, tmp_path / "b.html")
    names = infocap.report.gallery(tmp_path, tmp_path / "index.html")
    assert names[0] == "My loop"
    assert names[1] in ("My loop (a.html)", "My loop (b.html)")
