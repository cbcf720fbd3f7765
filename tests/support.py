"""What several test files use: whether a continuous integration runs, and what to do where something is missing."""

import os

import pytest

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")


def absent(what):
    """Leave a test out for want of something; a continuous integration installs it and so must have it."""
    if IN_CI:
        pytest.fail(
            f"{what} is not installed, and CI=true promises that no test is left out", pytrace=False
        )
    pytest.skip(f"{what} is not installed")
