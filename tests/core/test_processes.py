"""Threads and helper processes: the same numbers, and started only where they may be."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import infocap
from infocap import _processes
from infocap._processes import Helpers, can_be_sent, helpers_for, stop_helpers
from infocap._threads import all_cores, cores_for_matrices, parallel_map

# Numbers of threads of the matrix libraries, as users set them.


def threads_of_matrix_libraries():
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


def test_large_matrices_may_use_all_cores_and_parallel_steps_take_them_back():
    before = threads_of_matrix_libraries()
    with all_cores():
        assert threads_of_matrix_libraries() == {1}
        with cores_for_matrices(10):
            assert threads_of_matrix_libraries() == {1}
        with cores_for_matrices(5000):
            assert threads_of_matrix_libraries() == {max(before)}
            inside = parallel_map(lambda _: threads_of_matrix_libraries(), range(2))
            if max(before) > 1:
                assert inside == [{1}, {1}]
            assert threads_of_matrix_libraries() == {max(before)}
        assert threads_of_matrix_libraries() == {1}
    assert threads_of_matrix_libraries() == before


@pytest.fixture
def eager_helpers(monkeypatch):
    """Helpers that start for any work, on any machine."""
    monkeypatch.setattr(_processes, "MIN_CORES_FOR_HELPERS", 1)
    monkeypatch.setattr(_processes, "MIN_SECONDS_FOR_HELPERS", 0.0)
    yield
    stop_helpers()


@pytest.fixture
def two_helpers():
    helpers = Helpers(2)
    yield helpers
    helpers.stop()


def test_helpers_pass_results_errors_and_warnings_on(two_helpers):
    assert two_helpers.submit(divmod, 7, 2).result() == (3, 1)
    with pytest.raises(ZeroDivisionError):
        two_helpers.submit(divmod, 7, 0).result()
    with pytest.warns(infocap.errors.DataWarning, match="a lamp was off"):
        two_helpers.submit(infocap.errors.warn, "a lamp was off").result()
    assert two_helpers.submit(os.getpid).result() != os.getpid()
    # What is printed does not get among the answers.
    assert two_helpers.submit(print, "words").result() is None


def test_a_helper_that_ends_is_an_error_that_says_so(two_helpers):
    with pytest.raises(_processes.HelperError):
        two_helpers.submit(os._exit, 1).result()


def test_work_of_the_script_itself_is_not_sent():
    assert can_be_sent(divmod)
    assert not can_be_sent(lambda: 1)


@pytest.mark.usefixtures("eager_helpers")
def test_little_work_starts_no_helpers(monkeypatch):
    monkeypatch.setattr(_processes, "MIN_SECONDS_FOR_HELPERS", 10.0)
    assert helpers_for(divmod, 4.0) is None
    assert helpers_for(divmod, 4.0) is None
    assert helpers_for(divmod, 4.0) is not None  # 12 seconds of work by now


@pytest.mark.usefixtures("eager_helpers")
def test_helpers_have_no_helpers():
    helpers = helpers_for(divmod, 1.0)
    assert helpers.submit(_processes.helpers_can_pay).result() is False


SCRIPT = """
    import numpy as np
    import infocap
    from infocap import _processes
    from infocap.photonics import FibreSystem

    print("started")  # no guard: a helper that imported this script would print it again
    system = FibreSystem(power_dbm=1.0, length_m=5.0, n_inputs=2)
    u = np.random.default_rng(0).uniform(-1, 1, (2048, 2))
    alone = system.readouts(u, [5.0, 10.0], seed=1, powers_dbm=[1.0, 4.5])
    _processes.MIN_CORES_FOR_HELPERS = 1
    _processes.MIN_SECONDS_FOR_HELPERS = 0.0
    shared = system.readouts(u, [5.0, 10.0], seed=1, powers_dbm=[1.0, 4.5])
    assert _processes._State.helpers is not None
    for of_power, of_power_shared in zip(alone, shared, strict=True):
        np.testing.assert_allclose(of_power_shared, of_power, rtol=1e-10)
"""


@pytest.mark.slow
def test_a_script_without_a_guard_gets_the_same_spectra_from_helpers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    folder = Path(infocap.__file__).parents[1]
    answer = subprocess.run(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == ["started"]


class Doubling:
    """A simulated device that says so."""

    is_simulation = True

    def __init__(self, gain):
        self.gain = gain

    def __call__(self, u):
        return np.tanh(self.gain * u)


@pytest.mark.slow
@pytest.mark.usefixtures("eager_helpers")
@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
@pytest.mark.parametrize("shares_its_work", [False, True])
def test_a_sweep_on_helpers_gives_the_same_results(shares_its_work, monkeypatch):
    monkeypatch.setattr(Doubling, "shares_its_work", shares_its_work, raising=False)
    basis = infocap.product_basis("legendre", 1, 3)
    settings = {"gain": np.linspace(0.5, 2, 10)}
    shared = infocap.sweep(Doubling, settings, basis, 256, seed=1, progress=False)
    assert _processes._State.helpers is not None
    monkeypatch.setattr(Doubling, "is_simulation", False)
    alone = infocap.sweep(Doubling, settings, basis, 256, seed=1, progress=False)
    np.testing.assert_allclose(shared.totals, alone.totals, rtol=1e-10)
