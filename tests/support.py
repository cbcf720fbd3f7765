"""What several test files use: what to do where something is missing, and a result whose total is unreliable."""

import functools
import os
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

import infocap
from infocap.errors import Check, InfocapError

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")


def absent(what):
    """Leave a test out for want of something; a continuous integration installs it and so must have it."""
    if IN_CI:
        pytest.fail(
            f"{what} is not installed, and CI=true promises that no test is left out", pytrace=False
        )
    pytest.skip(f"{what} is not installed")


@contextmanager
def one_line_of_error_at_most(kind=InfocapError):
    """What is done here succeeds or raises an error of this kind, in one line; nothing else is raised."""
    message = ""
    try:
        yield
    except kind as error:
        message = str(error)
    assert "\n" not in message


SMALL_BASIS = infocap.product_basis("legendre", 2, 4)
NINE_FEATURES = infocap.systems.RandomFeatures(2, 9, noise=0.05, seed=5)
REASON = "half of the rows are doubtful"
ABOUT = f"about 6.5 (unreliable: {REASON})"  # the total of `unreliable_result(REASON)`


@functools.cache
def reliable_result():
    """A result that no warning concerns, with growth and repeats; its total is 6.460 ± 0.050."""
    u = infocap.draw(SMALL_BASIS, 512, seed=1)
    x = NINE_FEATURES(u, seed=1)
    repeats = NINE_FEATURES(u, seed=2)
    recording = infocap.Recording(u, x, np.arange(512), repeats=repeats)
    return infocap.estimate(recording, basis=SMALL_BASIS)


def unreliable_result(*reasons):
    """The same result with warnings that concern its total."""
    checks = [Check(f"{reason}; measure again.", unreliable=reason) for reason in reasons]
    return replace(reliable_result(), checks=tuple(checks))


def doubt_high_ranks(case):
    """A check that concerns the totals of devices with more than five independent readouts."""
    if case.evidence.rank > 5:
        yield Check("Doubtful.", unreliable=REASON)
