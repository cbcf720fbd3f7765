"""The result: its summary, its tables, its files, and the capacity for any target."""

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap._files import write_whole
from infocap.errors import DataError, DataWarning, ParameterError
from infocap.result._target import Capacity, bias_corrected

BASIS = infocap.product_basis("legendre", 2, 5)
SYSTEM = infocap.theory.random_mixture(BASIS, n_active=9, n_readouts=6, seed=3)


@cache
def probed():
    return infocap.probe(SYSTEM, BASIS, 1024, seed=0)


def rich_result(basis=BASIS):
    """A result with every field filled."""
    u = infocap.draw(basis, 256, seed=0)
    x = np.column_stack([np.sin(3 * u[:, 0]), u[:, 0] * u[:, 1], np.zeros(256)])

    def method(evidence):
        c = evidence.raw / 3
        return infocap.estimators.Estimate(
            c, c / 7, c / 11, c / 13, total=1.1, total_standard_error=0.1
        )

    return infocap.estimate(u, x, basis, method=method)


def test_its_repr_is_the_summary_a_person_wants():
    lines = repr(probed()).splitlines()
    assert lines[0].startswith("CapacityResult: total ")
    assert lines[0].endswith(" of at most 7 (6 readouts and the constant)")
    assert "1024 samples, 21 legendre functions of 2 inputs" in lines[1]
    assert lines[2].split() == ["degree", "0", "1.0000"]
    assert "total 1.10 ± 0.10 of" in repr(rich_result())
    assert "check: dead channels were dropped (column 2)" in repr(rich_result())


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_by_degree_sorts_by_degree_and_interactions():
    basis = infocap.product_basis("legendre", 3, 4)
    result = infocap.probe(infocap.systems.RandomFeatures(3, 20), basis, 1024, seed=0)
    table = result.by_degree()
    assert list(table.columns) == ["1", "2", ">2"]
    assert list(table.index) == [0, 1, 2, 3, 4]
    for degree in range(5):
        for column, joined in (("1", (0, 1)), ("2", (2,)), (">2", (3,))):
            mask = (basis.degrees == degree) & np.isin(basis.interactions, joined)
            assert table.loc[degree, column] == pytest.approx(result.capacity[mask].sum())
    assert table.to_numpy().sum() == pytest.approx(result.capacity.sum())


def test_the_matrix_has_the_degree_of_u1_first():
    result = infocap.probe(lambda u: u[:, :1] ** 3, BASIS, 512, seed=0)
    matrix = result.matrix()
    assert matrix.shape == (6, 6)
    assert matrix[3, 0] > 0.1
    assert matrix[0, 3] == 0
    assert np.isnan(matrix[3, 3])
    with pytest.raises(ParameterError, match="needs 2 inputs; this result has 1"):
        infocap.probe(lambda u: u, infocap.product_basis("legendre", 1, 3), 64, seed=0).matrix()


def test_intervals_need_error_bars():
    bare = infocap.probe(SYSTEM, BASIS, 1024, seed=0, method="threshold-richardson")
    with pytest.raises(ParameterError, match="'threshold-richardson' gives no standard errors"):
        bare.interval()
    with pytest.raises(ParameterError, match="gives no standard error"):
        bare.total_interval()
    with pytest.raises(ParameterError, match="level=95"):
        rich_result().interval(95)


MIXED = infocap.product_basis(
    [
        infocap.basis.jacobi(2, 3).on((-1, 1)),
        infocap.basis.density(lambda u: 1 + u, (-1, 1), max_degree=5),
    ],
    max_degree=3,
)


@pytest.mark.parametrize("suffix", [".nc", ".csv"])
@pytest.mark.parametrize("basis", [BASIS, MIXED], ids=["legendre", "mixed"])
def test_files_come_back_exactly(tmp_path, suffix, basis):
    for number, result in enumerate(
        [rich_result(basis), infocap.probe(SYSTEM, BASIS, 1024, seed=0)]
    ):
        path = result.save(tmp_path / f"result{number}{suffix}")
        again = infocap.load_result(path)
        for name in ("capacity", "raw", "standard_error", "p_value", "threshold"):
            one, other = getattr(result, name), getattr(again, name)
            assert (one is None and other is None) or np.array_equal(one, other), name
        for name in (
            "total",
            "total_standard_error",
            "n_samples",
            "n_readouts",
            "rank",
            "method",
            "checks",
        ):
            assert getattr(result, name) == getattr(again, name), name
        assert np.array_equal(again.basis.indices, result.basis.indices)
        assert again.basis.families == result.basis.families
        assert again.basis.labels == result.basis.labels
        assert repr(again) == repr(result)


def test_files_that_are_cut_short_are_refused(tmp_path):
    csv, netcdf = probed().save(tmp_path / "result.csv"), probed().save(tmp_path / "result.nc")
    text = csv.read_text(encoding="utf-8")
    for length in (len(text) - 300, text.rindex(",")):
        csv.write_text(text[:length], encoding="utf-8")
        with pytest.raises(DataError, match="is cut short"):
            infocap.load_result(csv)
    netcdf.write_bytes(netcdf.read_bytes()[:-2000])
    with pytest.raises(DataError, match="cannot be read as NetCDF"):
        infocap.load_result(netcdf)


def test_results_can_be_pickled():
    import pickle

    again = pickle.loads(pickle.dumps(probed()))
    assert np.array_equal(again.capacity, probed().capacity)
    assert repr(again) == repr(probed())


def test_wrong_files_are_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"path suffix='\.txt'` is not one of '\.nc', '\.csv'"):
        probed().save(tmp_path / "result.txt")
    with pytest.raises(DataError, match="does not exist"):
        infocap.load_result(tmp_path / "nowhere.nc")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="without the header of an infocap result"):
        infocap.load_result(tmp_path / "other.csv")
    dataset = probed().to_xarray().assign_attrs(format="something else")
    dataset.to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(DataError, match="'something else'"):
        infocap.load_result(tmp_path / "other.nc")


def test_tables_hold_every_function():
    frame, dataset = probed().to_dataframe(), probed().to_xarray()
    assert list(frame["label"]) == BASIS.labels
    assert np.array_equal(frame["capacity"], probed().capacity)
    assert np.array_equal(frame[["index_u1", "index_u2"]], BASIS.indices)
    assert dataset["capacity"].sel(term=4).item() == probed().capacity[4]
    assert dataset.attrs["n_samples"] == 1024


@pytest.mark.thorough
def test_capacity_of_a_basis_function_is_its_extrapolated_capacity():
    better = infocap.probe(SYSTEM, BASIS, 1024, seed=0, method="richardson-threshold")
    for term in np.flatnonzero(better.capacity):
        found = better.capacity_of(lambda u, term=term: 5 * BASIS(u)[:, term])
        assert found == pytest.approx(better.capacity[term], abs=1e-9)
        assert found.standard_error is None
        found = probed().capacity_of(lambda u, term=term: 5 * BASIS(u)[:, term])
        assert found == pytest.approx(probed().unbiased[term], abs=1e-9)
        assert found.standard_error < 1e-9


def test_capacity_of_what_the_readouts_hold_is_one():
    row = np.zeros(len(BASIS))
    row[SYSTEM.active] = SYSTEM.weights[2]
    one_net = infocap.probe(
        SYSTEM, BASIS, 1024, seed=0, blocks=1
    )  # on eight, mean squares are known to 1e-2
    assert one_net.capacity_of(lambda u: BASIS(u) @ row + 3.0) == pytest.approx(1, abs=2e-3)


def test_capacity_of_a_mixture_follows_from_the_weights():
    """A target half inside and half outside the readouts' space, against the exact value."""
    generator = np.random.default_rng(1)
    target = generator.normal(size=len(BASIS))
    full = np.zeros((7, len(BASIS)))
    full[0, 0] = 1
    full[1:, SYSTEM.active] = SYSTEM.weights
    inside = full.T @ np.linalg.pinv(full.T) @ target
    exact = inside @ inside / (target @ target)
    assert probed().capacity_of(lambda u: BASIS(u) @ target) == pytest.approx(exact, abs=0.02)


def test_capacity_of_warns_about_what_lies_outside_the_basis():
    with pytest.warns(DataWarning, match=r"\d+\.\d% of the target's power lies outside the basis"):
        assert probed().capacity_of(lambda u: np.sign(np.sin(9 * u[:, 0]))) < 0.5


def test_capacity_of_works_after_loading(tmp_path):
    def target(u):
        return np.sin(2 * u[:, 0]) + u[:, 1]

    again = infocap.load_result(probed().save(tmp_path / "result.nc"))
    assert again.capacity_of(target) == pytest.approx(probed().capacity_of(target), rel=1e-12)
    csv = infocap.load_result(probed().save(tmp_path / "result.csv"))
    with pytest.raises(ParameterError, match="save to NetCDF"):
        csv.capacity_of(target)


def test_capacity_of_a_peaked_target_in_many_inputs():
    """Its power sits in a corner that few points see; the exact value comes from products of integrals."""
    basis = infocap.product_basis("legendre", 6, 4)
    system = infocap.systems.RandomFeatures(6, 20)
    result = infocap.probe(system, basis, 8192, seed=0, method="threshold-richardson")
    nodes, weights = basis.families[0].quadrature(40)
    one = (basis.families[0].values(nodes, 5) * np.exp(2 * nodes)) @ weights
    exact = np.prod(one[basis.indices], axis=1)
    power = (weights @ np.exp(4 * nodes)) ** 6
    whole, first, second = (np.sum((part @ exact) ** 2) / power for part in result.coordinates)
    # Exactly 31.6 %.
    with pytest.warns(
        DataWarning, match=r"(2[6-9]|3[0-7])\.\d% of the target's power lies outside"
    ):
        found = result.capacity_of(lambda u: np.exp(2 * u.sum(axis=1)))
    # Over six seeds of the points that average the target, the root mean square of the difference is 0.006.
    assert found == pytest.approx(2 * whole - (first + second) / 2, abs=0.02)


def test_capacity_of_a_large_basis_uses_averages(monkeypatch):
    def target(u):
        return u[:, 0] ** 2

    fitted = probed().capacity_of(target)
    monkeypatch.setattr("infocap.result._target.MAX_FUNCTIONS_FOR_FIT", 5)
    assert probed().capacity_of(target) == pytest.approx(fitted, abs=1e-3)


def measured(n, seed, uneven):
    """Noisy readouts fitted by least squares: coordinates, residual covariance, unbiased values and standard errors.

    Bias and influence are sums over samples of the second-order expansion (docs/estimators.md), function by function.
    """
    u = infocap.draw(BASIS, n, design="random", seed=seed)
    size = np.sqrt(3) * np.abs(u[:, :1]) if uneven else 1.0
    x = SYSTEM(u) + 4 * size * np.random.default_rng(seed).standard_normal((n, 6))
    y, z = BASIS(u), np.column_stack([np.ones(n), x])
    fit, left = np.linalg.solve(y.T @ y, y.T), n - len(BASIS)
    c = fit @ z
    e = z - y @ c
    noise = e.T @ e / left
    values, vectors = np.linalg.eigh(c.T @ c + noise * (1 - len(BASIS) / left))
    root = vectors / np.sqrt(values)
    z, e, c, noise = (
        z @ root,
        e @ root / (1 - np.sum(y.T * fit, axis=0))[:, None],
        c @ root,
        root.T @ noise @ root,
    )
    f, rho, along = z - e, y - z @ c.T, e @ c.T
    ee, ef, ff = (np.sum(a * b, axis=1) for a, b in ((e, e), (e, f), (f, f)))
    bias = (ee @ rho**2 - 2 * ef @ (rho * along) + ff @ along**2) / n**2
    variance = np.var(along * (2 * rho + along), axis=0) / n
    variance += 2 * np.abs(bias) * np.sum(noise**2) / np.trace(noise) / n
    return c.T, noise, np.sum(c**2, axis=1) - bias, np.sqrt(variance)


def noisy_targets():
    """Targets of several kinds, and their exact capacities with noise of variance 16."""
    weights = np.vstack([np.eye(1, len(BASIS)), np.zeros((6, len(BASIS)))])
    weights[1:, SYSTEM.active] = SYSTEM.weights
    gram = weights @ weights.T + np.diag([0.0] + [16.0] * 6)
    kinds = np.random.default_rng(0).normal(size=(3, len(BASIS)))
    kinds[0] += weights[1] - weights[5]
    kinds[1] = weights[2] + 0.2 * kinds[1]  # mostly one of the readouts
    kinds[2] = np.linalg.svd(weights)[2][-1]  # what no readout holds
    kinds /= np.linalg.norm(kinds, axis=1)[:, None]
    held = kinds @ weights.T
    return kinds, np.sum(held.T * np.linalg.solve(gram, held.T), axis=0)


@pytest.mark.parametrize("uneven", [False, True])
def test_the_capacity_of_a_target_is_unbiased_and_its_error_bar_holds(uneven):
    count, n = 120, 512
    targets, exact = noisy_targets()
    found, plain = [], []
    for seed in range(count):
        inside, noise, unbiased, error = measured(n, seed, uneven)
        measurement = {"inside": inside, "noise": noise, "unbiased": unbiased}
        measurement |= {"standard_error": error, "n_samples": n}
        found.append([bias_corrected(target, **measurement) for target in targets])
        plain.append(np.sum((inside @ targets.T) ** 2, axis=0))
    errors = np.array(found, dtype=float) - exact
    bars = np.array([[one.standard_error for one in row] for row in found])
    chance = errors.std(axis=0) / np.sqrt(count)
    assert np.all(
        (np.abs(errors.mean(axis=0)) < 4 * chance)[:2]
    )  # the third cannot fall below zero
    assert errors.mean(axis=0)[2] < 0.5 * np.mean(plain, axis=0)[2]
    assert np.all(np.mean(np.abs(errors) < 1.96 * bars, axis=0) > 0.89)
    assert np.all(errors.std(axis=0)[:2] > 0.75 * bars.mean(axis=0)[:2])


def test_the_capacity_of_a_single_function_is_that_of_the_table(tmp_path):
    inside, noise, unbiased, error = measured(512, 1, uneven=True)
    result = replace(
        probed(),
        coordinates=(inside,),
        residual_covariance=noise,
        unbiased=unbiased,
        standard_error=error,
        n_samples=512,
    )
    term = int(SYSTEM.active[2])
    for one in (result, infocap.load_result(result.save(tmp_path / "result.nc"))):
        found = one.capacity_of(lambda u: -3 * BASIS(u)[:, term])
        assert found == pytest.approx(unbiased[term], rel=1e-6)
        assert found.standard_error == pytest.approx(error[term], rel=1e-6)


def test_a_capacity_is_a_number_with_an_error():
    for one in (Capacity(0.91234, 0.0123), pickle.loads(pickle.dumps(Capacity(0.91234, 0.0123)))):
        assert (one, one.standard_error, str(one)) == (0.91234, 0.0123, "0.912 ± 0.012")
    assert (Capacity(-0.1), Capacity(1.2)) == (0, 1)
    assert f"{Capacity(0.91234, 0.0123):.2f}" == "0.91"


def test_capacity_of_refuses_what_is_no_target():
    with pytest.raises(DataError, match=r"gave float64 \(4096, 2\)"):
        probed().capacity_of(lambda u: u)
    with pytest.raises(DataError, match=r"mean square is 0\.0"):
        probed().capacity_of(lambda u: 0 * u[:, 0])


@pytest.mark.parametrize("method", ["control-variate", "threshold-richardson"])
@pytest.mark.parametrize("constant", [True, False])
def test_readout_weights_are_the_least_squares_weights_of_the_paper(method, constant, tmp_path):
    """W* = G⁻¹R and y* = W*ᵀX, in the units of the channels, also of a dead one, and after saving."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    u = infocap.draw(basis, 1024, seed=1)
    x = 1e-6 * (infocap.systems.RandomFeatures(2, 6)(u, seed=1) + 3)
    x = np.column_stack([x[:, :2], np.zeros(len(u)), x[:, 2:]])
    result = infocap.estimate(u, x, basis, method=method, constant=constant)
    result = infocap.load_result(result.save(tmp_path / "result.nc"))
    label = basis.labels[4]
    columns = np.column_stack([np.ones(len(u)) * constant, x * 1e6])
    expected = np.linalg.lstsq(columns, basis(u)[:, 4], rcond=None)[0] * np.array([1, *[1e6] * 7])
    assert_allclose(
        result.readout_weights(label), expected, rtol=1e-6, atol=1e-6 * abs(expected).max()
    )
    best = result.reconstruct(x, label)
    assert_allclose(best, columns @ (expected / np.array([1, *[1e6] * 7])), atol=1e-6)
    assert 1 - np.mean((best - basis(u)[:, 4]) ** 2) / np.mean(
        basis(u)[:, 4] ** 2
    ) == pytest.approx(result.raw[4] / np.mean(basis(u)[:, 4] ** 2), abs=1e-9)
    mixed = result.reconstruct(x, lambda u: 2 * u[:, 0] + u[:, 1] ** 2)
    assert_allclose(
        result.reconstruct(x, lambda u: 4 * u[:, 0] + 2 * u[:, 1] ** 2),
        2 * mixed,
        rtol=1e-9,
        atol=1e-9,
    )
    with pytest.raises(infocap.errors.ParameterError, match="P9"):
        result.readout_weights("P9(u9)")
    with pytest.raises(infocap.errors.DataError, match="7\\) readouts"):
        result.reconstruct(x[:, :3], label)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("P1(u1)", "'P1.u1.' is no function"),
        (lambda u: np.exp(1j * u[:, 0]), "complex128"),
        (lambda u: u, "real numbers"),
    ],
)
def test_a_target_must_be_a_function_with_real_values(target, message):
    result = infocap.probe(np.tanh, infocap.product_basis("legendre", 1, 3), 64, seed=1)
    with pytest.raises(infocap.errors.DataError, match=message):
        result.capacity_of(target)


def test_of_two_programs_that_save_to_one_name_the_later_leaves_a_whole_file(tmp_path):
    path = tmp_path / "result.nc"
    with write_whole(path) as earlier:
        earlier.write_text("begun first, complete last")
        with write_whole(path) as later:
            later.write_text("begun last, complete first")
    assert path.read_text() == "begun first, complete last"
    assert list(tmp_path.iterdir()) == [path]
