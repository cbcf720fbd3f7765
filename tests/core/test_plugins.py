"""Families and systems that another installed package offers through entry points."""

import pickle
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.basis import FAMILIES
from infocap.errors import ParameterError

MODULE = '''
import numpy as np
from infocap.basis import Family, legendre


def widened(width=1.0):
    """Legendre polynomials of an input that is uniform on [-width, width]."""
    plain = legendre()

    def recurrence(count):
        a, b = plain.recurrence(count)
        return width * a, width * b

    return Family(
        name="widened",
        symbol="W",
        recurrence=recurrence,
        canonical_quantile=lambda p: width * (2 * p - 1),
        distribution="uniform",
        parameters=(("width", width),),
        canonical=(-width, width),
        support=(-width, width),
        domain=(-width, width),
    )


class Squares:
    """A device that shows the squares of its inputs."""

    def __call__(self, u):
        return np.asarray(u) ** 2
'''

ENTRY_POINTS = """
[infocap.families]
widened = made_up_package:widened
broken = made_up_package:missing

[infocap.systems]
Squares = made_up_package:Squares
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package: a module, and the folder in which its entry points are written down."""
    (tmp_path / "made_up_package.py").write_text(MODULE)
    metadata = tmp_path / "made_up_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up-package\nVersion: 1.0")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    FAMILIES.pop("widened", None)  # infocap remembers what it has looked up
    sys.modules.pop("made_up_package", None)


def test_a_family_of_another_package_is_found_by_its_name(package):
    basis = infocap.product_basis("widened", n_inputs=2, max_degree=3)
    plain = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    u = infocap.draw(basis, 64, seed=1)
    assert basis.labels[1] == "W1(u2)"
    assert_allclose(basis(u), plain(u), atol=1e-12)


def test_a_family_of_another_package_takes_numbers_in_brackets(package):
    basis = infocap.product_basis("widened(3)", n_inputs=1, max_degree=2)
    assert basis.families[0].bounds == (-3.0, 3.0)


def test_a_family_of_another_package_is_saved_and_pickled_by_its_name(package):
    basis = infocap.product_basis("widened", n_inputs=2, max_degree=3)
    description = basis.to_dict()
    assert description["families"][0]["name"] == "widened"
    FAMILIES.pop("widened")  # as in another process, which has not looked it up yet
    restored = infocap.ProductBasis.from_dict(description, basis.indices)
    FAMILIES.pop("widened")
    unpickled = pickle.loads(pickle.dumps(basis))
    assert restored.families == unpickled.families == basis.families
    u = infocap.draw(basis, 16, seed=1)
    assert np.array_equal(restored(u), basis(u))


def test_a_system_of_another_package_is_found_by_its_name(package):
    system = infocap.systems.find("Squares")()
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=2)
    result = infocap.probe(system, basis, 256, seed=1)
    capacity = dict(zip(basis.labels, result.capacity, strict=True))
    assert_allclose([capacity["P2(u1)"], capacity["P2(u2)"]], 1, atol=1e-9)


def test_names_of_infocap_are_found_without_asking_other_packages(monkeypatch):
    def refuse(**_):
        raise AssertionError("packages were asked")

    monkeypatch.setattr("importlib.metadata.entry_points", refuse)
    assert infocap.product_basis("uniform", 1, 2).family_name == "legendre"
    assert infocap.systems.find("EchoState") is infocap.systems.EchoState
    with pytest.raises(AssertionError, match="packages were asked"):
        infocap.systems.find("Squares")


def test_a_name_that_nobody_offers_is_answered_with_those_that_there_are(package):
    with pytest.raises(ParameterError, match=r"family='widend'.*'legendre'.*'widened'"):
        infocap.product_basis("widend", 2, 3)
    with pytest.raises(ParameterError, match=r"system='EchoStat'.*'EchoState'.*'Squares'"):
        infocap.systems.find("EchoStat")


def test_a_package_that_cannot_be_imported_is_named(package):
    with pytest.raises(ParameterError, match=r"'made_up_package:missing' of another package"):
        infocap.product_basis("broken", 2, 3)
