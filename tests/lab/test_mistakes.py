"""Mistakes injected into files: `infocap estimate` tells each of them, or refuses the file.

What it tells stands in the terminal, in the result and on the page. A refusal is one line and exit
code 3.
"""

import html
import re
from dataclasses import dataclass

import numpy as np
import pytest

import infocap
from infocap.lab import Plan
from infocap.lab.cli import run

PLAN = Plan(n_inputs=2, max_degree=14, n_samples=4096, seed=3)
RANDOM = np.random.default_rng(0).permutation(PLAN.n_samples)  # when each row was measured
IN_ORDER = np.arange(PLAN.n_samples)
DEVICE = infocap.systems.RandomFeatures(2, 30, noise=1e-3, seed=5)
METHODS = pytest.mark.parametrize(
    "method", ["threshold-richardson", pytest.param("control-variate", marks=pytest.mark.slow)]
)  # the checks are those of the data; the default method takes seconds a run


@pytest.fixture(scope="module")
def readouts():
    """What the device answers to the planned inputs."""
    return DEVICE(PLAN.inputs, seed=7)


def late(x, time):
    """Readouts that come one sample late, in the order of acquisition."""
    in_order = np.argsort(time)
    shifted = np.empty_like(x)
    shifted[in_order] = np.roll(x[in_order], 1, axis=0)
    return shifted


def with_column(x, column, values):
    changed = x.copy()
    changed[:, column] = values
    return changed


def beta_inputs(x):
    u = 2 * np.random.default_rng(0).beta(2, 2, PLAN.inputs.shape) - 1
    return {"inputs": u, "readouts": DEVICE(u, seed=7)}


def drifting_reference(x):
    drift = np.linspace(0, 0.2, 40)[:, None]
    noise = 1e-3 * np.random.default_rng(1).standard_normal((40, 30))
    return {
        "reference": x[:1] + drift + noise,
        "reference_time": np.linspace(0, PLAN.n_samples, 40),
        "time": RANDOM,
    }


# For each mistake, the fields of the recording that it changes, and what is told.
WARNED = {
    "readouts one sample late, Sobol order": (
        lambda x: {"readouts": late(x, IN_ORDER), "time": IN_ORDER},
        "readouts look shifted by +1 samples against the inputs",
    ),
    "readouts one sample late, random order": (
        lambda x: {"readouts": late(x, RANDOM), "time": RANDOM},
        "readouts look shifted by +1 samples against the inputs",
    ),
    "Beta(2, 2), claimed uniform": (
        beta_inputs,
        "inputs do not follow the declared distribution (uniform)",
    ),
    "inputs on [0, 1], claimed [-1, 1]": (
        lambda x: {"inputs": (PLAN.inputs + 1) / 2},
        "inputs do not follow the declared distribution (uniform)",
    ),
    "saturation at 0.9": (
        lambda x: {"readouts": np.minimum(x, 0.9)},
        "channels look saturated or clipped (column '1550 nm'",
    ),
    "5-bit converter": (
        lambda x: {"readouts": np.round(x * 16) / 16},
        "channels hold whole steps, or numbers of few digits",
    ),
    "a channel twice": (
        lambda x: {"readouts": with_column(x, 4, x[:, 9])},
        "only 30 of 31 readouts are linearly independent",
    ),
    "drift of the readouts": (
        lambda x: {
            "readouts": x + 0.01 * np.linspace(-1, 1, len(x))[RANDOM, None],
            "time": RANDOM,
        },
        "readouts drift along the run",
    ),
    "drift of the reference": (drifting_reference, "the device drifted, whatever its input"),
    "what the reader found": (
        lambda x: {"checks": ("3 rows are damaged.",)},
        "3 rows are damaged.",
    ),
}
# The same for what is put right, with options of the command.
NOTED = {
    "a dead channel": (
        lambda x: {"readouts": with_column(x, 3, 0.0)},
        [],
        "dead channels were dropped (column '1553 nm'), which lowers the maximum capacity by 1.",
    ),
    "readouts in picowatts beside a column of ones": (
        lambda x: {"readouts": with_column(1e-12 * x, 3, 1.0)},
        [],
        "column '1553 nm' is constant and serves as the constant readout.",
    ),
    "NaN, dropped": (
        lambda x: {"readouts": with_column(x, 3, np.where(IN_ORDER % 1000 == 7, np.nan, x[:, 3]))},
        ["--nan-policy", "omit"],
        "5 rows with NaN or infinite values were dropped.",
    ),
}
# The same for what is refused: the problem and the remedy.
REFUSED = {
    "degrees": (
        lambda x: {"inputs": 180 * PLAN.inputs},
        "outside the domain [-1, 1]",
        "true interval as --domain",
    ),
    "volts": (
        lambda x: {"inputs": 5 * PLAN.inputs},
        "outside the domain [-1, 1]",
        "true interval as --domain",
    ),
    "radians": (
        lambda x: {"inputs": np.pi * PLAN.inputs},
        "outside the domain",
        "--domain -3.14159",
    ),
    "NaN": (
        lambda x: {"readouts": with_column(x, 3, np.nan)},
        "x has 4096 NaN or infinite values, the first nan at row 0, column '1553 nm'",
        "--nan-policy omit",
    ),
    "nothing changes": (
        lambda x: {"readouts": np.ones_like(x)},
        "no channel that changes",
        "device was on",
    ),
    "complex readouts": (lambda x: {"readouts": x + 1j}, "x is complex", "--complex-as abs2"),
    "rows out of order": (
        lambda x: {"design_index": IN_ORDER[::-1]},
        "design_index is 4094 at row 1, after 4095",
        "sort",
    ),
}


def write(path, x, change):
    """Save a recording of the planned run, with something wrong in it."""
    fields = {
        "inputs": PLAN.inputs,
        "readouts": x,
        "design_index": IN_ORDER,
        "channel": tuple(f"{1550 + channel} nm" for channel in range(x.shape[1])),
        "metadata": {"plan": PLAN.to_dict()},
    }
    infocap.Recording(**(fields | change(x))).save(path)


@dataclass(frozen=True)
class Answer:
    """What `infocap estimate` answers."""

    code: int
    terminal: str  # without line breaks
    errors: str
    result: infocap.CapacityResult | None


@pytest.fixture
def estimate(readouts, tmp_path, monkeypatch, capsys):
    """A function that writes a changed recording, and runs the command with some options."""

    def run_estimate(change, *options):
        recording, result = tmp_path / "run.nc", tmp_path / "result.nc"
        write(recording, readouts, change)
        words = ["infocap", "estimate", str(recording), "-o", str(result), *options]
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as exit_info:
            run()
        printed = capsys.readouterr()
        return Answer(
            code=exit_info.value.code,
            terminal=" ".join(printed.out.split()),
            errors=printed.err,
            result=infocap.load_result(result) if result.exists() else None,
        )

    return run_estimate


def text_of(page):
    """The text of a page that a person reads, without the data it carries along."""
    body = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


def assert_told(sentence, kind, answer):
    """A check is in the terminal, marked, in the result, and on the page."""
    assert f"{kind}: " in answer.terminal
    assert sentence in answer.terminal
    result = answer.result
    checks = result.warnings if kind == "warning" else result.notes
    assert any(sentence in check for check in checks)
    # The page begins a sentence with a capital.
    assert sentence[1:] in text_of(infocap.report.page(result))


@METHODS
@pytest.mark.parametrize(("change", "sentence"), WARNED.values(), ids=WARNED.keys())
def test_a_plausible_but_wrong_answer_comes_with_its_warning(change, sentence, method, estimate):
    answer = estimate(change, "--strict", "--method", method)
    assert answer.code == 1
    assert answer.errors == ""  # no "UserWarning: ..." with a line of source code
    assert_told(sentence, "warning", answer)
    assert answer.terminal.count(sentence) == 1


@METHODS
@pytest.mark.parametrize(("change", "options", "note"), NOTED.values(), ids=NOTED.keys())
def test_what_is_put_right_is_told(change, options, note, method, estimate):
    answer = estimate(change, "--strict", "--method", method, *options)
    assert (answer.code, answer.errors) == (0, "")
    assert_told(note, "note", answer)
    # A channel or a few rows less, and nothing else.
    assert answer.result.total == pytest.approx(22.4, abs=0.6)


@pytest.mark.parametrize(("change", "problem", "remedy"), REFUSED.values(), ids=REFUSED.keys())
def test_unusable_data_are_one_line_and_exit_code_3(change, problem, remedy, estimate):
    answer = estimate(change)
    assert answer.code == 3
    assert answer.errors.startswith("infocap: ")
    assert answer.errors.count("\n") == 1
    assert problem in answer.errors
    assert remedy in answer.errors
    assert answer.result is None


def test_the_run_without_a_mistake_gets_no_warning(estimate):
    answer = estimate(lambda x: {"time": RANDOM}, "--strict")
    assert (answer.code, answer.errors, answer.result.checks) == (0, "", ())
    assert "warning" not in answer.terminal


def test_the_remedy_that_a_message_names_works(estimate):
    def change(x):
        return {"inputs": (PLAN.inputs + 1) / 2}

    options = ["--strict", "--method", "threshold-richardson"]
    answer = estimate(change, *options)
    assert answer.code == 1
    assert "Pass --domain 0 1 to product_basis" in answer.terminal
    answer = estimate(change, *options, "--domain", "0", "1")
    assert (answer.code, answer.result.checks) == (0, ())
