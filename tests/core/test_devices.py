"""Arrays of other libraries: the same numbers, computed where the arrays are. The strict library allows nothing else."""

from dataclasses import replace
from threading import current_thread, main_thread

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap._arrays import to_numpy
from infocap.basis._evaluate import DEVICE_TILES
from infocap.errors import DataError
from infocap.samples import Table

BASIS = infocap.product_basis("legendre", n_inputs=3, max_degree=6)
U = infocap.draw(BASIS, 2048, seed=1)
X = infocap.systems.RandomFeatures(3, 25, gain=1.5, noise=1e-2)(U, seed=1)
METHODS = ("raw", "threshold-richardson", "richardson-threshold", "chi2", "control-variate")


@pytest.fixture(params=["strict", "torch"])
def to_device(request):
    """A function that moves an array to another library; torch works on the processor here."""
    return (
        array_api_strict.asarray
        if request.param == "strict"
        else request.getfixturevalue("torch").asarray
    )


@pytest.mark.parametrize("basis", [
    BASIS,
    infocap.product_basis(["legendre", "hermite", "fourier", "bernoulli"], None, 4),
    infocap.product_basis("chebyshev", 1, 5),
    infocap.product_basis("laguerre", 4, 6, index_set="hyperbolic"),
    infocap.product_basis("legendre", 4, 6, max_interactions=2),
], ids=repr)  # fmt: skip
def test_the_basis_has_the_same_values_in_another_library(basis, monkeypatch, to_device):
    u = infocap.draw(basis, 256, seed=1)
    small_tiles = replace(DEVICE_TILES, max_numbers=30 * len(basis), max_functions=7, min_samples=1)
    monkeypatch.setattr("infocap.basis._product.DEVICE_TILES", small_tiles)
    basis = infocap.ProductBasis(basis.families, basis.indices)  # one that has no plan yet
    blocks = []
    for block in basis.value_blocks(to_device(u)):
        assert isinstance(block, type(to_device(np.ones(1))))
        blocks.append(np.array(to_numpy(block)))
    assert len(blocks) > 5
    assert_allclose(np.hstack(blocks).T, basis(u), rtol=1e-12, atol=1e-12)
    sums = basis.sum_over_samples(to_device(u), power=2)
    assert_allclose(sums, basis.sum_over_samples(u, power=2), rtol=1e-12)
    pieces = []
    for rows in (slice(0, 100), slice(100, 256)):
        pieces.append((to_device(u[rows].copy()), to_device(X[rows].copy())))
    projection = basis.project(iter(pieces))
    assert isinstance(projection, type(to_device(np.ones(1))))
    assert_allclose(to_numpy(projection), basis(u).T @ X[:256], rtol=1e-11, atol=1e-11)


def data_of(checks):
    """The sentence of each check with its data."""
    return [(str(check), check.found) for check in checks]


def test_mistakes_are_found_while_the_device_works(to_device, monkeypatch):
    """What a large job looks for beside the device's work is what a small one looks for after it."""
    x = X.copy()
    x[5::97, 3] = -9999.0  # which instruments write for no number
    monkeypatch.setattr("infocap.diagnostics._excerpt.MAX_ROWS_FROM_FILES", len(X))
    with pytest.warns(infocap.errors.DataWarning, match="-9999"):
        after = infocap.estimate(to_device(U), to_device(x), BASIS, method="raw")
    monkeypatch.setattr("infocap.estimators._pipeline.DEVICE_FLOPS_PER_SECOND", 1e6)
    with pytest.warns(infocap.errors.DataWarning, match="-9999"):
        beside = infocap.estimate(to_device(U), to_device(x), BASIS, method="raw")
    assert data_of(beside.checks) == data_of(after.checks)


def test_of_very_many_channels_on_a_device_some_are_looked_at_under_their_own_names(
    to_device, monkeypatch
):
    x = X.copy()
    x[5::97, 10] = -9999.0
    monkeypatch.setattr(
        "infocap.diagnostics._excerpt.MAX_CHANNELS_FROM_DEVICE", 5
    )  # of 25: 0, 5, 10, 15, 20
    with pytest.warns(infocap.errors.DataWarning, match="-9999"):
        (warning,) = infocap.estimate(to_device(U), to_device(x), BASIS, method="raw").warnings
    assert warning.found["channels"] == ["column 10"]


def test_mistakes_are_found_while_many_cores_work(monkeypatch):
    """What some cores look for beside the others' work is what all look for after it."""
    threads = []
    check_stretch = infocap.diagnostics._checks._findings_of_excerpt

    def check_and_note_thread(*arguments):
        threads.append(current_thread())
        return check_stretch(*arguments)

    monkeypatch.setattr("infocap.diagnostics._checks._findings_of_excerpt", check_and_note_thread)
    monkeypatch.setattr("infocap.diagnostics._excerpt.MAX_ROWS", 512)
    x = X.copy()
    x[5::97, 3] = -9999.0
    findings = []
    for min_cores in (1000, 1):
        monkeypatch.setattr(
            "infocap.estimators._pipeline.MIN_CORES_FOR_CONCURRENT_CHECKS", min_cores
        )
        with pytest.warns(infocap.errors.DataWarning, match="-9999"):
            checks = infocap.estimate(U, x, BASIS, method="raw").checks
        findings.append(data_of(checks))
    after, beside = findings
    assert beside == after
    assert len(threads) == 10  # twice four excerpts and the overview
    assert main_thread() not in threads[5:]


def test_data_are_looked_at_once_for_several_methods(monkeypatch):
    calls = []
    check_stretch = infocap.diagnostics._checks._findings_of_excerpt

    def check_and_note(*arguments):
        calls.append(arguments)
        return check_stretch(*arguments)

    monkeypatch.setattr("infocap.diagnostics._checks._findings_of_excerpt", check_and_note)
    evidence = infocap.estimators.gather_evidence(U, X, BASIS)
    for method in ("raw", "control-variate"):
        assert infocap.estimators.conclude(evidence, method).checks == ()
    assert len(calls) == 1


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_estimates_agree_with_those_of_numpy(method, constant, to_device):
    expected = infocap.estimate(U, X, BASIS, method=method, constant=constant)
    for inputs in (to_device(U), U):
        result = infocap.estimate(inputs, to_device(X), BASIS, method=method, constant=constant)
        if method == "control-variate":
            total_error = expected.total_standard_error
            assert_allclose(result.standard_error, expected.standard_error, rtol=0, atol=1e-10)
            assert result.total_standard_error == pytest.approx(total_error, abs=1e-10)
        assert_allclose(result.capacity, expected.capacity, rtol=1e-10, atol=1e-12)
        assert isinstance(result.capacity, np.ndarray)
        assert result.rank == expected.rank


@pytest.mark.parametrize("method", ["threshold-richardson", "control-variate"])
def test_capacities_of_targets_agree_with_those_of_numpy(method, to_device):
    expected = infocap.estimate(U, X, BASIS, method=method)
    result = infocap.estimate(to_device(U), to_device(X), BASIS, method=method)

    def first_input(u):
        return u[:, 0]

    expected_capacity = expected.capacity_of(first_input)
    assert result.capacity_of(first_input) == pytest.approx(expected_capacity, abs=1e-9)


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
@pytest.mark.parametrize("change", [
    lambda x: np.column_stack([x, x[:, :2], np.full(len(x), 7.0)]),  # duplicate and constant channels
    lambda x: x * 1e-12 + 1e-6,
    lambda x: x.astype(np.float32),
    lambda x: (1000 * x).astype(np.int32),
    lambda x: np.where(np.arange(len(x))[:, None] == 5, np.nan, x),
])  # fmt: skip
def test_awkward_readouts_are_handled_alike(change, to_device):
    x = change(X)
    options = {"method": "threshold-richardson", "nan_policy": "omit"}
    expected = infocap.estimate(U, x, BASIS, **options)
    result = infocap.estimate(to_device(U), to_device(x), BASIS, **options)
    assert_allclose(result.capacity, expected.capacity, rtol=1e-8, atol=1e-10)
    assert result.checks == expected.checks


@pytest.mark.filterwarnings("ignore:the capacities sum to")
def test_weights_and_complex_readouts_work_there_too(to_device):
    u, weights = infocap.draw_weighted(BASIS, 1024, seed=1)
    x = np.column_stack([u + 1j * u**2, np.sin(u) + 0j])
    for as_real in ("abs2", "split"):
        options = {"method": "raw", "sample_weight": weights, "complex_as": as_real}
        result = infocap.estimate(to_device(u), to_device(x), BASIS, **options)
        expected = infocap.estimate(u, x, BASIS, **options)
        assert_allclose(result.raw, expected.raw, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("few", [0, 256])
@pytest.mark.parametrize("rows", [50, 2000])
def test_no_cut_into_tiles_changes_the_answer(rows, few, to_device, monkeypatch):
    plain = infocap.estimate(U, X, BASIS, method="raw")
    sizes = replace(DEVICE_TILES, max_functions=rows, max_samples=300)
    monkeypatch.setattr("infocap.basis._product.DEVICE_TILES", sizes)
    monkeypatch.setattr("infocap.estimators._evidence.MIN_READOUTS_FOR_DEVICE_MATRICES", few)
    basis = infocap.ProductBasis(BASIS.families, BASIS.indices)  # one that has no plan yet
    found = infocap.estimate(to_device(U), to_device(X), basis, method="raw")
    assert_allclose(found.raw, plain.raw, rtol=1e-12, atol=1e-14)


def test_the_arrays_stay_where_they_are(to_device):
    table = Table(to_device(X), "x")
    assert table.on_device
    assert type(table.read(0, 5)) is type(to_device(X))
    assert not Table(X, "x").on_device


@pytest.mark.parametrize(("x", "message"), [
    (np.where(X > 1e9, X, np.nan), "NaN or infinite values, the first nan at row 0, column 0"),
    (X[:5], "unequal numbers of samples"),
    (X[:, 0], "give two dimensions"),
    (X + 1j, "x is complex"),
])  # fmt: skip
def test_bad_arrays_are_refused_in_the_same_words(x, message, to_device):
    with pytest.raises(DataError, match=message):
        infocap.estimate(to_device(U), to_device(x), BASIS, method="raw")


def test_inputs_and_readouts_may_come_from_different_places(to_device):
    plain = infocap.estimate(U, X, BASIS, method="raw").raw
    other = array_api_strict.asarray if to_device is not array_api_strict.asarray else np.asarray
    mixed = infocap.estimate(other(U), to_device(X), BASIS, method="raw").raw
    assert_allclose(mixed, plain, rtol=1e-10, atol=1e-12)
    single = X.astype(np.float32)
    on_host = infocap.estimate(U, single, BASIS, method="raw").raw
    on_device = infocap.estimate(U, to_device(single), BASIS, method="raw").raw
    assert_allclose(on_device, on_host, rtol=1e-10, atol=1e-12)


def test_a_model_that_could_still_be_trained_is_measured(torch):
    x = torch.asarray(X).requires_grad_()
    result = infocap.estimate(torch.asarray(U), x, BASIS, method="raw")
    expected = infocap.estimate(U, X, BASIS, method="raw")
    assert_allclose(result.raw, expected.raw, rtol=1e-10, atol=1e-12)


def test_a_budget_does_not_hold_on_a_device_and_is_refused(to_device):
    with pytest.raises(
        infocap.errors.ParameterError, match="is for work in the processor's memory"
    ):
        infocap.estimate(to_device(U), to_device(X), BASIS, method="raw", memory_limit="1GB")
