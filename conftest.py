"""For the examples in docstrings, which take `infocap` as imported."""

import pytest

import infocap


@pytest.fixture(scope="session", autouse=True)
def names_in_examples(doctest_namespace):
    """Give every example the names that it takes as imported."""
    doctest_namespace["infocap"] = infocap
