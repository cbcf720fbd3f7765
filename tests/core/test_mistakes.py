"""Mistakes injected into files: each is told in the terminal and kept in the result, or refused with exit code 3."""

import html
import re

import numpy as np
import pytest

import infocap
from infocap.lab import Plan
from infocap.lab.cli import run

PLAN = Plan(n_inputs=2, max_degree=14, n_samples=4096, seed=3)
RANDOM = np.random.default_rng(0).permutation(
    PLAN.n_samples
)  # row i was measured as number RANDOM[i]
TIME = np.arange(PLAN.n_samples)
METHODS = pytest.mark.parametrize(
    "method", ["threshold-richardson", pytest.param("control-variate", marks=pytest.mark.slow)]
)  # the checks are those of the data; the default method takes seconds a run


@pytest.fixture(scope="module")
def readouts():
    """The synthetic device of the table of mistakes, at the planned inputs: 30 tanh readouts, noise 1e-3."""
    return infocap.systems.RandomFeatures(2, 30, noise=1e-3, seed=5)(PLAN.inputs, seed=7)


def measured(u):
    return infocap.systems.RandomFeatures(2, 30, noise=1e-3, seed=5)(u, seed=7)


def late(x, when):
    """Readouts that come one sample late, in the order of acquisition."""
    by_time, out = np.argsort(when), np.empty_like(x)
    out[by_time] = np.roll(x[by_time], 1, axis=0)
    return out


def with_column(x, column, values):
    out = x.copy()
    out[:, column] = values
    return out


def beta_inputs(x):
    u = 2 * np.random.default_rng(0).beta(2, 2, PLAN.inputs.shape) - 1
    return {"inputs": u, "readouts": measured(u)}


def drifting_reference(x):
    steps = np.linspace(0, 0.2, 40)[:, None]
    return {
        "reference": x[:1] + steps + 1e-3 * np.random.default_rng(1).standard_normal((40, 30)),
        "reference_acquired": np.linspace(0, 4096, 40),
        "acquired": RANDOM,
    }


WARNED = {
    "readouts one sample late, Sobol order": (
        lambda x: {"readouts": late(x, TIME), "acquired": TIME},
        "readouts look shifted by +1 samples against the inputs",
    ),
    "readouts one sample late, random order": (
        lambda x: {"readouts": late(x, RANDOM), "acquired": RANDOM},
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
        "channels take few distinct values",
    ),
    "a channel twice": (
        lambda x: {"readouts": with_column(x, 4, x[:, 9])},
        "only 30 of 31 readouts are linearly independent",
    ),
    "drift of the readouts": (
        lambda x: {
            "readouts": x + 0.01 * np.linspace(-1, 1, len(x))[RANDOM, None],
            "acquired": RANDOM,
        },
        "samples are correlated in acquisition order",
    ),
    "drift of the reference": (drifting_reference, "the device drifted: its reference moved by"),
    "what the reader found": (
        lambda x: {"checks": ("3 rows are damaged.",)},
        "3 rows are damaged.",
    ),
}
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
        lambda x: {"readouts": with_column(x, 3, np.where(TIME % 1000 == 7, np.nan, x[:, 3]))},
        ["--nan-policy", "omit"],
        "5 rows with NaN or infinite values were dropped.",
    ),
}
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
        lambda x: {"index": TIME[::-1]},
        "index is 4094 at row 1, after 4095",
        "sort",
    ),
}


def write(path, x, change):
    """A file of the planned run, with something wrong in it."""
    entries = {
        "inputs": PLAN.inputs,
        "readouts": x,
        "index": TIME,
        "channel": tuple(f"{1550 + k} nm" for k in range(x.shape[1])),
        "metadata": {"plan": PLAN.to_dict()},
    }
    infocap.Recording(**(entries | change(x))).save(path)


def estimate(path, monkeypatch, capsys, *options):
    """What `infocap estimate` answers: exit code, terminal without line breaks, errors, result."""
    result = path.with_name("result.nc")
    words = ["infocap", "estimate", str(path), "-o", str(result), *options]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as ended:
        run()
    said = capsys.readouterr()
    found = infocap.load_result(result) if result.exists() else None
    return ended.value.code, " ".join(said.out.split()), said.err, found


def shown(page):
    """The text of a page that a person sees, without the data it carries along."""
    body = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


def is_told(sentence, mark, terminal, result):
    """Whether a check is in the terminal, marked, in the result, and on the page."""
    return all(
        (
            f"{mark}: " in terminal,
            sentence in terminal,
            any(
                sentence in check
                for check in (result.warnings if mark == "warning" else result.notes)
            ),
            any(sentence in check for check in result.checks),
            sentence[1:]
            in shown(infocap.report.page(result)),  # the page begins a sentence with a capital
        )
    )


@METHODS
@pytest.mark.parametrize(("change", "sentence"), WARNED.values(), ids=WARNED.keys())
def test_a_plausible_but_wrong_answer_comes_with_its_warning(
    change, sentence, method, readouts, tmp_path, monkeypatch, capsys
):
    write(tmp_path / "run.nc", readouts, change)
    options = ["--strict", "--method", method]
    code, terminal, errors, result = estimate(tmp_path / "run.nc", monkeypatch, capsys, *options)
    assert code == 1
    assert errors == ""  # no "UserWarning: ..." with a line of source code
    assert is_told(sentence, "warning", terminal, result)
    assert terminal.count(sentence) == 1


@METHODS
@pytest.mark.parametrize(("change", "options", "note"), NOTED.values(), ids=NOTED.keys())
def test_what_is_put_right_is_said(
    change, options, note, method, readouts, tmp_path, monkeypatch, capsys
):
    write(tmp_path / "run.nc", readouts, change)
    options = ["--strict", "--method", method, *options]
    code, terminal, errors, result = estimate(tmp_path / "run.nc", monkeypatch, capsys, *options)
    assert (code, errors) == (0, "")
    assert is_told(note, "note", terminal, result)
    assert result.total == pytest.approx(
        22.4, abs=0.6
    )  # a channel or a few rows less, and nothing else


@pytest.mark.parametrize(("change", "problem", "remedy"), REFUSED.values(), ids=REFUSED.keys())
def test_unusable_data_are_one_line_and_exit_code_3(
    change, problem, remedy, readouts, tmp_path, monkeypatch, capsys
):
    write(tmp_path / "run.nc", readouts, change)
    code, _, errors, result = estimate(tmp_path / "run.nc", monkeypatch, capsys)
    assert code == 3
    assert errors.startswith("infocap: ")
    assert errors.count("\n") == 1
    assert problem in errors
    assert remedy in errors
    assert result is None


def test_the_run_without_a_mistake_gets_no_warning(readouts, tmp_path, monkeypatch, capsys):
    write(tmp_path / "run.nc", readouts, lambda x: {"acquired": RANDOM})
    code, terminal, errors, result = estimate(tmp_path / "run.nc", monkeypatch, capsys, "--strict")
    assert (code, errors, result.checks) == (0, "", ())
    assert "warning" not in terminal


def test_the_remedy_that_a_message_names_works(readouts, tmp_path, monkeypatch, capsys):
    write(tmp_path / "run.nc", readouts, lambda x: {"inputs": (PLAN.inputs + 1) / 2})
    options = ["--strict", "--method", "threshold-richardson"]
    code, terminal, _, _ = estimate(tmp_path / "run.nc", monkeypatch, capsys, *options)
    assert code == 1
    assert "pass --domain 0 1 to product_basis" in terminal
    options += ["--domain", "0", "1"]
    code, _, _, result = estimate(tmp_path / "run.nc", monkeypatch, capsys, *options)
    assert (code, result.checks) == (0, ())
