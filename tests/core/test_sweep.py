"""sweep: each setting as probe alone would give it, from any executor, and again from disk."""

import functools
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError, ParameterError

BASIS = infocap.product_basis("legendre", 2, 5)
SETTINGS = {"gain": [0.5, 2.0], "n_readouts": [6, 10, 12]}
make = functools.partial(infocap.systems.RandomFeatures, 2, n_readouts=10, noise=0.05)
pytestmark = pytest.mark.filterwarnings("ignore:the total's error bar rests on")


def same(one, other):
    return all(
        np.allclose(a.capacity, b.capacity, rtol=0, atol=1e-12)
        and abs(a.total - b.total) < 1e-11
        and a.checks == b.checks
        for a, b in zip(one.results, other.results, strict=True)
    )


@pytest.mark.parametrize("method", infocap.estimators.METHODS)
@pytest.mark.filterwarnings("ignore:the capacities sum to")
def test_every_result_is_what_probe_gives_alone(method):
    swept = infocap.sweep(make, SETTINGS, BASIS, 256, seed=3, method=method, progress=False)
    for point, result in swept:
        alone = infocap.probe(make(**point), BASIS, 256, seed=3, method=method)
        assert_allclose(result.capacity, alone.capacity, atol=1e-12)
        assert_allclose(result.total, alone.total, atol=1e-11)
        assert result.checks == alone.checks
        assert type(result.basis) is type(BASIS)


def test_options_of_probe_pass_through():
    swept = infocap.sweep(
        make,
        {"gain": [1.0]},
        BASIS,
        256,
        seed=3,
        design="halton",
        constant=False,
        method_options={"fit": "least-squares"},
        progress=False,
    )
    alone = infocap.probe(
        make(gain=1.0),
        BASIS,
        256,
        seed=3,
        design="halton",
        constant=False,
        method_options={"fit": "least-squares"},
    )
    assert_allclose(swept.at(gain=1.0).capacity, alone.capacity, atol=1e-12)


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_any_executor_gives_the_same(pool):
    with pool(2) as executor:
        swept = infocap.sweep(make, SETTINGS, BASIS, 256, seed=3, executor=executor, progress=False)
    assert same(swept, infocap.sweep(make, SETTINGS, BASIS, 256, seed=3, progress=False))


def test_the_table_holds_totals_capacities_and_degrees():
    swept = infocap.sweep(
        make, SETTINGS, BASIS, 256, seed=3, progress=False, method="threshold-richardson"
    )
    table = swept.to_xarray()
    assert table["capacity"].dims == ("gain", "n_readouts", "term")
    one = swept.at(gain=2.0, n_readouts=10)
    here = table.sel(gain=2.0, n_readouts=10)
    assert float(here["total"]) == one.total
    assert_allclose(here["capacity"], one.capacity)
    assert_allclose(here["by_degree"], one.by_degree().sum(axis=1))
    assert swept.totals.shape == (2, 3)
    assert "total_standard_error" not in table
    assert_allclose(swept.to_dataframe()["total"], swept.totals.ravel())
    assert "gain=2.0, n_readouts=10" in repr(swept)


def test_settings_may_be_anything_and_the_table_still_can_be_saved(tmp_path):
    kinds = {"phase_noise": ["cell", None], "size": [(1, 2), (3, 4)]}

    def any_kind(phase_noise, size):
        return make(n_readouts=sum(size), noise=0.1 if phase_noise else 0.0)

    swept = infocap.sweep(any_kind, kinds, BASIS, 256, seed=0, progress=False)
    assert swept.at(phase_noise=None, size=(3, 4)).maximum == 8
    assert swept.to_xarray().sel(phase_noise="None", size="(3, 4)")["total"] == swept.totals[1, 1]
    swept.to_xarray().to_netcdf(tmp_path / "table.nc", engine="h5netcdf")
    table = swept.to_dataframe()
    assert list(table.columns[:3]) == ["phase_noise", "size", "total"]
    assert table["phase_noise"].isna().tolist() == [False, False, True, True]
    assert table["size"].tolist() == [(1, 2), (3, 4)] * 2


def test_the_table_has_errors_when_the_method_gives_them():
    def method(evidence):
        errors = np.full_like(evidence.raw, 0.01)
        return infocap.estimators.Estimate(
            np.minimum(evidence.raw, 1), standard_error=errors, total_standard_error=0.1
        )

    swept = infocap.sweep(make, {"gain": [1.0]}, BASIS, 1024, seed=0, method=method, progress=False)
    table = swept.to_xarray()
    assert table["total_standard_error"].values.tolist() == [0.1]
    assert table["standard_error"].shape == (1, len(BASIS))


@pytest.mark.thorough
def test_a_stopped_sweep_goes_on_where_it_was(tmp_path):
    calls = []

    def counted(gain, n_readouts):
        if len(calls) == 4:
            raise KeyboardInterrupt
        calls.append(gain)
        return make(gain=gain, n_readouts=n_readouts)

    arguments = counted, SETTINGS, BASIS, 256
    with pytest.raises(KeyboardInterrupt):
        infocap.sweep(*arguments, seed=3, path=tmp_path / "run", progress=False)
    calls.clear()
    resumed = infocap.sweep(*arguments, seed=3, path=tmp_path / "run", progress=False)
    assert len(calls) == 2
    assert same(resumed, infocap.sweep(make, SETTINGS, BASIS, 256, seed=3, progress=False))
    calls.clear()
    wider = SETTINGS | {"gain": [0.5, 2.0, 3.0]}
    infocap.sweep(counted, wider, BASIS, 256, seed=3, path=tmp_path / "run", progress=False)
    assert len(calls) == 3


KILLED = """
import sys, time, functools, infocap
def slow(**point):
    time.sleep(0.2)
    return infocap.systems.RandomFeatures(2, noise=0.05, **point)
basis = infocap.product_basis("legendre", 2, 5)
infocap.sweep(slow, {"gain": [0.5, 2.0], "n_readouts": [6, 10, 12]}, basis, 256, seed=3, path=sys.argv[1])
"""


@pytest.mark.thorough
def test_a_killed_sweep_leaves_only_whole_files_and_can_be_finished(tmp_path):
    path = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(path.glob("gain*.nc"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 2 <= len(list(path.glob("gain*.nc"))) < 6

    def slow(**point):
        return make(**point)

    slow.__module__, slow.__qualname__ = "__main__", "slow"  # as the killed process named it
    finished = infocap.sweep(slow, SETTINGS, BASIS, 256, seed=3, path=path, progress=False)
    whole = infocap.sweep(make, SETTINGS, BASIS, 256, seed=3, progress=False)
    assert same(finished, whole)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"method": "raw"},
        {"design": "halton"},
        {"method_options": {"false_discovery_rate": 0.1}},
        {"basis": 4},
        {"n_samples": 512},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_folder_of_another_sweep_is_refused_with_what_differs(tmp_path, change):
    call = {"seed": 3, "n_samples": 256, "basis": BASIS, "path": tmp_path, "progress": False}
    infocap.sweep(make, {"gain": [1.0]}, **call)
    (name,) = change
    if name == "basis":
        change = {"basis": infocap.product_basis("legendre", 2, 4)}
    named = {"basis": "n_terms 21", "method_options": "method_options {}"}.get(name, f"{name} .*")
    with pytest.raises(DataError, match=rf"holds another sweep \(.*{named} there and .* here"):
        infocap.sweep(make, {"gain": [1.0]}, **(call | change))
    other = functools.partial(infocap.systems.RandomFeatures, 2, noise=0.1)
    with pytest.raises(DataError, match=r"system .* there and .*noise=0\.1"):
        infocap.sweep(other, {"gain": [1.0]}, **call)


def test_an_error_says_at_which_setting_it_happened():
    def broken(gain):
        return (lambda u: u[:3]) if gain == 2.0 else make(gain=gain)

    with pytest.raises(DataError, match=r"gave \(3, 2\)") as caught:
        infocap.sweep(broken, {"gain": [1.0, 2.0]}, BASIS, 256, seed=1, progress=False)
    assert caught.value.__notes__ == ["This happened in a sweep, at gain=2.0."]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "must name parameters"),
        ([1, 2], "must be a dictionary of lists by name"),
        ({"gain": 2.0}, "'gain': 2.0.* must be a dictionary of lists"),
        ({"activation": "tanh"}, "activation='tanh'; give a list"),
        ({"gain": []}, "at least one value"),
        ({"gain": [1.0, 1]}, "none twice"),
        ({"degree": [1, 2]}, "'degree', the name of a column"),
    ],
)
def test_settings_that_make_no_grid_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        infocap.sweep(make, settings, BASIS, 256)


def test_what_cannot_be_swept_or_kept_or_found_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="`make_system=5` must be a function"):
        infocap.sweep(5, {"gain": [1.0]}, BASIS, 256)
    with pytest.raises(
        ParameterError, match="`basis='legendre'` must be a ProductBasis from product_basis"
    ):
        infocap.sweep(make, {"gain": [1.0]}, "legendre", 256)
    with pytest.raises(ParameterError, match="method='typo'"):
        infocap.sweep(
            make, {"gain": [1.0]}, BASIS, 256, seed=1, method="typo", path=tmp_path / "new"
        )
    assert not (
        tmp_path / "new"
    ).exists()  # a call that never ran leaves nothing to refuse the next one
    with pytest.raises(ParameterError, match="needs a seed"):
        infocap.sweep(make, {"gain": [1.0]}, BASIS, 256, path=tmp_path)
    swept = infocap.sweep(make, {"gain": np.array([1.0, 2.0])}, BASIS, 256, seed=0, progress=False)
    assert swept.points == [{"gain": 1.0}, {"gain": 2.0}]
    with pytest.raises(
        ParameterError, match=r"no result at gain=3.0; the sweep has gain in \[1.0, 2.0\]"
    ):
        swept.at(gain=3.0)
    (tmp_path / "sweep.json").write_text("nonsense")
    with pytest.raises(DataError, match="does not describe a sweep"):
        infocap.sweep(make, {"gain": [1.0]}, BASIS, 256, seed=1, path=tmp_path)


def test_the_folder_of_a_sweep_in_another_format_is_refused(tmp_path):
    call = {"seed": 3, "path": tmp_path, "progress": False}
    infocap.sweep(make, {"gain": [1.0]}, BASIS, 256, **call)
    file = tmp_path / "sweep.json"
    file.write_text(file.read_text().replace("infocap sweep 1", "infocap sweep 2"))
    message = "is not an 'infocap sweep 1' file but 'infocap sweep 2'; give another path"
    with pytest.raises(DataError, match=message):
        infocap.sweep(make, {"gain": [1.0]}, BASIS, 256, **call)


def test_progress_is_shown_unless_it_is_not_wanted(capsys):
    infocap.sweep(make, {"gain": [1.0, 2.0]}, BASIS, 256, seed=0)
    assert "2/2" in capsys.readouterr().err
    infocap.sweep(make, {"gain": [1.0, 2.0]}, BASIS, 256, seed=0, progress=False)
    assert capsys.readouterr().err == ""
