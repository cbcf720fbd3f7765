"""What N samples will tell: the formula against simulations, its bounds, and what the command says."""

import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import infocap
from infocap._formatting import with_error
from infocap.errors import DataError, ParameterError
from infocap.lab import Plan
from infocap.lab.cli import run
from infocap.theory import forecast, forecast_from
from infocap.theory._forecast import _largest_transition, scatter

BASIS = infocap.product_basis("legendre", 2, 8)
SMALL = infocap.product_basis("legendre", 2, 5)


def unexplained_shares(system):
    """v of every direction of a mixture: noise over noise plus signal, the constant readout aside."""
    signal = system.weights[:, system.active > 0]
    noise = np.diag(system.noise_scale**2)
    root = np.linalg.inv(np.linalg.cholesky(signal @ signal.T + noise))
    return np.linalg.eigvalsh(root @ noise @ root.T)


def errors_of_the_total(system, n_samples, count, **options):
    exact = system.exact().sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", infocap.errors.DataWarning)
        found = [
            infocap.probe(system, system.basis, n_samples, seed=seed, **options)
            for seed in range(count)
        ]
    return np.array([one.total - exact for one in found]), found


def agrees(measured, expected, count, factor):
    """A scatter from `count` data sets is known to 1/sqrt(2 count); 4 times that is allowed for chance."""
    chance = 1 + 4 / np.sqrt(2 * count)
    return expected / (factor * chance) < measured < expected * factor * chance


@pytest.mark.thorough
@pytest.mark.parametrize(("noise", "n"), [(0.3, 256), (1.0, 256), (3.0, 84)])
def test_the_scatter_of_the_total_is_that_of_the_formula(noise, n):
    """With 12 samples a function the first term is the larger one, with 4 the second."""
    count = 40
    system = infocap.theory.random_mixture(SMALL, n_active=15, n_readouts=8, noise=noise, seed=3)
    v = unexplained_shares(system)
    assert v.sum() == pytest.approx(9 - system.exact().sum())
    expected = scatter(n, len(SMALL), np.sum(v**2), np.sum(v**2 - v**4))
    errors, _ = errors_of_the_total(system, n, count, design="random")
    assert agrees(errors.std(ddof=1), expected, count, factor=1.2)


@pytest.mark.thorough
@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_the_error_lies_in_the_range_foreseen_from_the_total_alone(noise):
    count = 30
    system = infocap.theory.random_mixture(SMALL, n_active=15, n_readouts=8, noise=noise, seed=4)
    expected = forecast(SMALL, 8, unexplained=1 - system.exact().sum() / 9).at(256)
    errors, _ = errors_of_the_total(system, 256, count)
    chance = 1 + 4 / np.sqrt(2 * count)
    assert expected.low / chance < np.sqrt(np.mean(errors**2)) < expected.high * chance


@pytest.mark.thorough
def test_a_pilot_foretells_the_error_of_a_longer_run_within_a_factor_of_two():
    count = 20
    system = infocap.theory.random_mixture(SMALL, n_active=15, n_readouts=8, noise=0.5, seed=5)
    _, pilots = errors_of_the_total(system, 128, 5)
    expected = np.median([forecast_from(pilot).at(1024).typical for pilot in pilots])
    errors, _ = errors_of_the_total(system, 1024, count)
    assert agrees(np.sqrt(np.mean(errors**2)), expected, count, factor=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [512, 2048, 8192])
@pytest.mark.parametrize("design", ["sobol", "random"])
def test_the_error_of_other_devices_lies_below_the_high_end(n_samples, design):
    """Random features with noise: their residuals are not normal, their spectrum decays."""
    count = 30
    basis = infocap.product_basis("legendre", 2, 10)
    system = infocap.systems.RandomFeatures(2, 40, gain=2.0, noise=0.02, seed=6)
    nodes, weights = basis.quadrature(60)
    root = np.sqrt(weights)[:, None]
    x = np.vstack(
        [
            root * np.column_stack([np.ones(len(nodes)), system_without_noise(system)(nodes)]),
            np.eye(41),
        ]
    )
    x[len(nodes) :] *= np.concatenate([[0.0], np.full(40, system.noise)])
    frame = np.linalg.qr(x)[0][: len(nodes)]
    exact = np.sum((frame.T @ (root * basis(nodes))) ** 2)
    expected = forecast(basis, 40, unexplained=1 - exact / 41).at(n_samples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", infocap.errors.DataWarning)
        errors = np.array([
            infocap.probe(system, basis, n_samples, seed=seed, design=design).total - exact for seed in range(count)
        ])  # fmt: skip
    chance = 1 + 4 / np.sqrt(2 * count)
    assert expected.low / (2 * chance) < np.sqrt(np.mean(errors**2)) < expected.high * chance


def system_without_noise(system):
    return replace(system, noise=0.0)


@given(
    v=st.lists(st.floats(0, 1), min_size=3, max_size=40),
    n=st.sampled_from([512, 4096]),
)
def test_no_spectrum_of_noise_scatters_more_than_the_bound(v, n):
    v = np.array([0.0, *v])
    expected = forecast(BASIS, len(v) - 1, unexplained=float(v.mean())).at(n)
    assert scatter(n, len(BASIS), np.sum(v**2), np.sum(v**2 - v**4)) <= expected.high + 1e-12


@given(error=st.floats(0.02, 5), readouts=st.integers(1, 60), unexplained=st.floats(0, 1))
def test_the_recommended_number_is_the_smallest_power_of_two_that_does(
    error, readouts, unexplained
):
    expected = forecast(BASIS, readouts, unexplained=unexplained)
    n = expected.samples_needed(error)
    assert n & (n - 1) == 0
    assert expected.at(n).high <= error
    assert n // 2 < expected.least_samples or expected.at(n // 2).high > error


@pytest.mark.parametrize("s", [0.1, 0.5, 0.577, 0.58, 0.8, 1.0])
def test_the_bound_on_the_first_term_is_reached_by_the_worst_distribution_and_by_none_exceeded(s):
    """The largest mean of v² - v⁴ over all distributions of v on [0, 1] with the mean s, by linear programming."""
    v = np.linspace(0, 1, 4001)
    worst = linprog(-(v**2 - v**4), A_eq=[np.ones_like(v), v], b_eq=[1.0, s], method="highs")
    assert worst.success
    assert s * _largest_transition(s) == pytest.approx(-worst.fun, abs=1e-7)


def test_without_noise_the_fewest_samples_do():
    expected = forecast(BASIS, 10, unexplained=0.0)
    assert expected.samples_needed(1e-9) == 256
    assert expected.at(256).high == 0


def test_the_default_is_at_most_half_of_what_the_worst_device_has():
    for n in (256, 1024, 8192):
        assert forecast(BASIS, 30, unexplained=1.0).at(n).high <= 2 * forecast(BASIS, 30).at(n).high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: forecast(BASIS, 10).samples_needed(0), "error=0` must be a positive number"),
        (
            lambda: forecast(BASIS, 10).samples_needed(1e-7),
            "would take more than 16,777,216 samples",
        ),
        (lambda: forecast(BASIS, 10, unexplained=1.2), "is a share of the readouts; give 0 to 1"),
        (lambda: forecast(BASIS, 0), "n_readouts=0` must be a whole number, 1 or more"),
        (
            lambda: forecast(BASIS, 10).at(64),
            "fewer than 90, 2 for each of 45 functions and 4 for each of 10 readouts and the constant",
        ),
        (
            lambda: forecast(infocap.product_basis("hermite", 2, 8), 10).samples_needed(1.0),
            "Lower the degree, or use draw_weighted",
        ),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_a_pilot_that_says_nothing_is_refused():
    few = infocap.product_basis("legendre", 2, 3)
    result = infocap.probe(lambda u: u, few, 64, seed=1)
    with pytest.raises(DataError, match="64 samples for 45 functions"):
        forecast_from(replace(result, basis=BASIS))
    with pytest.raises(DataError, match="estimated by 'raw'"):
        forecast_from(replace(result, method="raw", total_standard_error=None))


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["infocap", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        run()
    return ended.value.code or 0


SIZE = ["plan", "--n-inputs", "2", "--max-degree", "8"]


def test_the_command_says_how_many_samples_and_writes_the_plan(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    wish = [*SIZE, "--n-readouts", "20", "--error", "0.2"]
    assert call(monkeypatch, *wish, "-o", "plan.toml") == 0
    said = capsys.readouterr().out
    n = forecast(BASIS, 20).samples_needed(0.2)
    assert f"Take {n} samples" in said
    assert "Assumed: half of the readouts" in said
    assert Plan.load("plan.toml").n_samples == n


def test_the_command_asks_a_pilot(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plan = Plan(n_inputs=2, max_degree=8, n_samples=256, seed=1, repeat_every=4)
    system = infocap.theory.random_mixture(BASIS, n_active=25, n_readouts=15, noise=0.5, seed=5)
    recording = infocap.Recording(
        plan.inputs,
        system(plan.inputs, seed=1),
        design_index=range(256),
        metadata={"plan": plan.to_dict()},
    )
    result = infocap.estimate(recording, basis=BASIS)
    result.save("result.nc")
    n = forecast_from(result).samples_needed(0.1)
    assert (
        call(monkeypatch, "plan", "--pilot", "result.nc", "--error", "0.1", "-o", "again.toml") == 0
    )
    said = capsys.readouterr().out
    assert f"Take {n} samples" in said
    least = infocap.theory.efficiency_bound(result).samples_needed(0.1)
    assert f"any method would need is about {least}, by" in " ".join(said.split())
    assert f"total {with_error(result.total, result.total_standard_error)} of" in said
    assert said.count("warning of the pilot") == len(result.warnings)
    again = Plan.load("again.toml")
    assert (again.n_samples, again.repeat_every, again.blocks) == (n, 4, n // 64)
    assert np.array_equal(again.inputs[:256], plan.inputs)


def test_the_command_tells_of_a_plan_with_weights(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    asked = [
        "plan",
        "--n-inputs",
        "2",
        "--max-degree",
        "8",
        "--n-samples",
        "512",
        "-o",
        "plan.toml",
    ]
    assert call(monkeypatch, *asked) == 0
    assert "weights" not in capsys.readouterr().out
    assert call(monkeypatch, *asked, "--family", "hermite", "--force") == 0
    assert "few samples would decide" in " ".join(capsys.readouterr().out.split())
    assert Plan.load("plan.toml").weighted


def test_a_pilot_without_a_plan_is_not_extended(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    basis = infocap.product_basis("legendre", 2, 3, domain=(0, 5))
    infocap.probe(lambda u: np.column_stack([u, u**2]), basis, 64, seed=1).save("result.nc")
    assert (
        call(monkeypatch, "plan", "--pilot", "result.nc", "--error", "0.1", "-o", "plan.toml") == 2
    )
    said = capsys.readouterr()
    assert "10 functions: 2 inputs, degree 3" in said.out
    assert "has no plan that could be extended" in said.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (SIZE, 2, "give --n-samples, or --error"),
        ([*SIZE, "--n-samples", "64", "--error", "1", "-o", "plan.toml"], 2, "one of the two"),
        ([*SIZE, "--n-samples", "64"], 2, "-o plan.toml"),
        ([*SIZE, "--error", "1"], 2, "--error needs --n-readouts"),
        ([*SIZE, "--error", "0", "--n-readouts", "5"], 2, "--error 0.0 must be a positive number"),
        ([*SIZE, "--error", "1e-7", "--n-readouts", "5"], 2, "more than 16,777,216 samples"),
        ([*SIZE, "--error", "1", "--n-readouts", "0"], 2, "--n-readouts 0 must be"),
        (["plan", "--n-inputs", "2", "--error", "1", "--n-readouts", "5"], 2, "--max-degree is missing"),
        (["plan", "--pilot", "none.nc", "--error", "1"], 3, "none.nc"),
        (["plan", "--pilot", "run.db", "--error", "1"], 3, "`infocap estimate run.db -o result.nc` makes one"),
        (["plan", "--pilot", "none.nc", "--error", "1", "--max-degree", "6"], 2, "--max-degree 6 is known from the pilot"),
        (["plan", "--pilot", "none.nc", "--error", "1", "--n-readouts", "5"], 2, "--n-readouts 5 is known from the pilot"),
        ([*SIZE, "--n-samples", "64", "--n-readouts", "5", "-o", "plan.toml"], 2, "--n-readouts 5 goes with --error"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_and_an_exit_code(
    arguments, code, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, *arguments) == code
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
