"""Shared by all tests: no screen, what a machine may lack, and which tests were left out for want of it."""

import shutil
import sys
from collections import Counter
from itertools import count as counting

import matplotlib
import numpy as np
import pytest
from hypothesis import settings

import infocap
from support import IN_CI, absent

matplotlib.use("Agg")
# A busy machine is no reason to fail, and the same commit passes or fails every time where a change is judged.
settings.register_profile("patient", deadline=None, derandomize=IN_CI)
settings.load_profile("patient")

collect_ignore = ["lab/crash"]  # scripts that the crash tests run as processes of their own

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pytest_terminal_summary(terminalreporter):
    """Say how many tests were skipped, one line for each cause."""
    reports = terminalreporter.stats.get("skipped", [])
    causes = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    for cause, count in causes.most_common():
        terminalreporter.write_line(f"{count} {'test' if count == 1 else 'tests'} skipped: {cause}")


@pytest.fixture(autouse=True)
def same_noise_in_every_run(monkeypatch):
    """Noise that a test draws without a seed is fresh at each call, but the same whenever the test is run."""
    generator = np.random.default_rng
    seeds = counting(1_000_000_007)
    monkeypatch.setattr(
        np.random, "default_rng", lambda seed=None: generator(next(seeds) if seed is None else seed)
    )


@pytest.fixture(autouse=True)
def closed_figures():
    """No figure outlives the test that drew it."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def torch():
    try:
        import torch
    except ImportError:
        absent("torch")
    return torch


@pytest.fixture(scope="session")
def browser_program():
    """The path of a browser."""
    return next(filter(None, map(shutil.which, BROWSERS)), None) or absent("a browser (chromium)")


@pytest.fixture(scope="module")
def browser(browser_program):
    """A browser without a window, for the tests of one file."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def rng():
    return np.random.default_rng(20261115)


@pytest.fixture(scope="session")
def device():
    """A synthetic device, as basis, inputs and readouts: q=2, degree 14, 30 tanh readouts, N=4096, noise 1e-3."""
    basis = infocap.product_basis("legendre", 2, 14)
    u = infocap.draw(basis, 4096, seed=3)
    system = infocap.systems.RandomFeatures(2, 30, noise=1e-3, seed=5)
    return basis, u, system(u, seed=7)
