"""What several test files use: what to do where something is missing, and a result whose total is unreliable."""

import functools
import os
from dataclasses import replace

import numpy as np
import pytest

import infocap
from infocap.errors import Check

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")


def absent(what):
    """Leave a test out for want of something; a continuous integration installs it and so must have it."""
    if IN_CI:
        pytest.fail(
            f"{what} is not installed, and CI=true promises that no test is left out", pytrace=False
        )
    pytest.skip(f"{what} is not installed")


SMALL_BASIS = infocap.product_basis("legendre", 2, 4)
NINE_FEATURES = infocap.systems.RandomFeatures(2, 9, noise=0.05, seed=5)
REASON = "half of the rows are doubtful"


@functools.cache
def reliable_result():
    """A result that no warning concerns, with growth and repeats; its total is 6.478 ± 0.061."""
    u = infocap.draw(SMALL_BASIS, 512, seed=1)
    x = NINE_FEATURES(u, seed=1)
    repeats = NINE_FEATURES(u, seed=2)
    recording = infocap.Recording(u, x, np.arange(512), repeats=repeats)
    return infocap.estimate(recording, basis=SMALL_BASIS)


def unreliable_result(*reasons):
    """The same result with warnings that concern its total."""
    checks = [Check(f"{reason}; measure again.", unreliable=reason) for reason in reasons]
    return replace(reliable_result(), checks=tuple(checks))
