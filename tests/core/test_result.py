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
from infocap.kernels import student_widening
from infocap.result import errors_by_degree, sum_over
from infocap.result._target import Capacity, bias_corrected

BASIS = infocap.product_basis("legendre", 2, 5)
SYSTEM = infocap.theory.random_mixture(BASIS, n_active=9, n_readouts=6, seed=3)
MIXED_BASIS = infocap.product_basis(
    [
        infocap.basis.jacobi(2, 3).on((-1, 1)),
        infocap.basis.density(lambda u: 1 + u, (-1, 1), max_degree=5),
    ],
    max_degree=3,
)


@cache
def probed():
    """The result for a device whose capacities are known."""
    return infocap.probe(SYSTEM, BASIS, 1024, seed=0)


def result_with_every_field(basis=BASIS):
    """The result of a method that gives error bars, p-values, thresholds and a total."""
    u = infocap.draw(basis, 256, seed=0)
    x = np.column_stack([np.sin(3 * u[:, 0]), u[:, 0] * u[:, 1], np.zeros(256)])

    def method(evidence):
        capacity = evidence.raw / 3
        return infocap.estimators.Estimate(
            capacity,
            standard_error=capacity / 7,
            p_value=capacity / 11,
            threshold=capacity / 13,
            total=1.1,
            total_standard_error=0.1,
        )

    return infocap.estimate(u, x, basis, method=method)


def test_its_repr_is_the_summary_a_person_wants():
    lines = repr(probed()).splitlines()
    assert lines[0].startswith("CapacityResult: total ")
    assert lines[0].endswith(" of at most 7 (6 readouts and the constant)")
    assert "1024 samples, 21 legendre functions of 2 inputs" in lines[1]
    assert lines[2].split() == ["degree", "0", "1.00000"]
    summary = repr(result_with_every_field())
    assert "total 1.10 ± 0.10 of" in summary
    assert "check: dead channels were dropped (column 2)" in summary


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_by_degree_sorts_by_degree_and_interactions():
    basis = infocap.product_basis("legendre", 3, 4)
    result = infocap.probe(infocap.systems.RandomFeatures(3, 20), basis, 1024, seed=0)
    table = result.by_degree()
    assert list(table.columns) == ["1", "2", ">2"]
    assert list(table.index) == [0, 1, 2, 3, 4]
    interactions_of_column = {"1": (0, 1), "2": (2,), ">2": (3,)}
    for degree in range(5):
        for column, interactions in interactions_of_column.items():
            is_inside = (basis.degrees == degree) & np.isin(basis.interactions, interactions)
            expected = result.capacity[is_inside].sum()
            assert table.loc[degree, column] == pytest.approx(expected)
    assert table.to_numpy().sum() == pytest.approx(result.capacity.sum())


def test_sums_of_capacities_have_the_larger_of_two_errors():
    """The jackknife over groups, which sees correlations, and that of independent functions."""
    result = replace(probed(), total_standard_error=0.0)  # nothing beyond the jackknife
    groups = np.zeros((16, len(result.basis)))
    groups[:8, 1:] = 0.01  # all functions together
    together = replace(result, without_groups=groups)
    alone = np.linalg.norm(result.standard_error)
    jackknife = student_widening(16) * np.sqrt(15) * 0.005 * (len(result.basis) - 1)
    every_function = np.arange(len(result.basis))
    assert sum_over(together, every_function).standard_error == pytest.approx(jackknife)
    without_scatter = replace(result, without_groups=0 * groups)
    assert sum_over(without_scatter, every_function).standard_error == pytest.approx(alone)
    degrees = errors_by_degree(together)
    counts = np.bincount(result.basis.degrees)
    in_degree_2 = max(
        jackknife * counts[2] / (len(result.basis) - 1),
        np.linalg.norm(result.standard_error[result.basis.degrees == 2]),
    )
    assert degrees[2] == pytest.approx(in_degree_2)


def test_sums_share_what_the_error_of_the_total_holds_beyond_its_jackknife():
    result = replace(probed(), without_groups=np.zeros((16, len(BASIS))), total_standard_error=0.3)
    some = np.arange(5)
    alone = np.linalg.norm(result.standard_error[some])
    share = 0.3 * alone / np.linalg.norm(result.standard_error)
    assert sum_over(result, some).standard_error == pytest.approx(np.hypot(alone, share))


def test_the_matrix_has_the_degree_of_u1_first():
    result = infocap.probe(lambda u: u[:, :1] ** 3, BASIS, 512, seed=0)
    matrix = result.matrix()
    assert matrix.shape == (6, 6)
    assert matrix[3, 0] > 0.1
    assert matrix[0, 3] == 0
    assert np.isnan(matrix[3, 3])


def test_a_result_of_one_input_has_no_matrix():
    basis = infocap.product_basis("legendre", 1, 3)
    result = infocap.probe(lambda u: u, basis, 64, seed=0)
    with pytest.raises(ParameterError, match="needs 2 inputs; this result has 1"):
        result.matrix()


def test_intervals_need_error_bars():
    without_errors = infocap.probe(SYSTEM, BASIS, 1024, seed=0, method="threshold-richardson")
    with pytest.raises(ParameterError, match="'threshold-richardson' gives no standard errors"):
        without_errors.interval()
    with pytest.raises(ParameterError, match="gives no standard error"):
        without_errors.total_interval()
    with pytest.raises(ParameterError, match="level=95"):
        result_with_every_field().interval(95)


@pytest.mark.parametrize("suffix", [".nc", ".csv"])
@pytest.mark.parametrize(
    "result",
    [
        pytest.param(lambda: result_with_every_field(), id="every field"),
        pytest.param(lambda: result_with_every_field(MIXED_BASIS), id="mixed families"),
        pytest.param(probed, id="probed"),
    ],
)
def test_files_come_back_exactly(tmp_path, suffix, result):
    result = result()
    loaded = infocap.load_result(result.save(tmp_path / f"result{suffix}"))

    for name in ("capacity", "raw", "standard_error", "p_value", "threshold"):
        values = getattr(result, name)
        if values is None:
            assert getattr(loaded, name) is None, name
        else:
            assert np.array_equal(getattr(loaded, name), values), name

    numbers = ("total", "total_standard_error", "n_samples", "n_readouts", "rank")
    for name in (*numbers, "method", "checks"):
        assert getattr(loaded, name) == getattr(result, name), name

    assert loaded.inputs_fingerprint == result.inputs_fingerprint
    if suffix == ".nc" and result.without_groups is not None:
        assert np.array_equal(loaded.without_groups, result.without_groups)

    assert np.array_equal(loaded.basis.indices, result.basis.indices)
    assert loaded.basis.families == result.basis.families
    assert loaded.basis.labels == result.basis.labels
    assert repr(loaded) == repr(result)


def test_files_that_are_cut_short_are_refused(tmp_path):
    csv = probed().save(tmp_path / "result.csv")
    text = csv.read_text(encoding="utf-8")
    for length in (len(text) - 300, text.rindex(",")):
        csv.write_text(text[:length], encoding="utf-8")
        with pytest.raises(DataError, match="is cut short"):
            infocap.load_result(csv)

    netcdf = probed().save(tmp_path / "result.nc")
    netcdf.write_bytes(netcdf.read_bytes()[:-2000])
    with pytest.raises(DataError, match="cannot be read as NetCDF"):
        infocap.load_result(netcdf)


def test_results_can_be_pickled():
    unpickled = pickle.loads(pickle.dumps(probed()))
    assert np.array_equal(unpickled.capacity, probed().capacity)
    assert repr(unpickled) == repr(probed())


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
    frame = probed().to_dataframe()
    assert list(frame["label"]) == BASIS.labels
    assert np.array_equal(frame["capacity"], probed().capacity)
    assert np.array_equal(frame[["index_u1", "index_u2"]], BASIS.indices)
    dataset = probed().to_xarray()
    assert dataset["capacity"].sel(term=4).item() == probed().capacity[4]
    assert dataset.attrs["n_samples"] == 1024


@pytest.mark.thorough
def test_capacity_of_a_basis_function_is_its_extrapolated_capacity():
    options = {"method": "richardson-threshold"}
    extrapolated = infocap.probe(SYSTEM, BASIS, 1024, seed=0, **options)
    # Every fourth will do, because each takes a fit over many points.
    for term in np.flatnonzero(extrapolated.capacity)[::4]:

        def target(u, term=term):
            return 5 * BASIS(u)[:, term]

        capacity = extrapolated.capacity_of(target)
        assert capacity == pytest.approx(extrapolated.capacity[term], abs=1e-9)
        assert capacity.standard_error is None
        capacity = probed().capacity_of(target)
        assert capacity == pytest.approx(probed().unbiased[term], abs=1e-9)
        assert capacity.standard_error < 1e-9


def test_capacity_of_what_the_readouts_hold_is_one():
    coefficients = np.zeros(len(BASIS))
    coefficients[SYSTEM.active] = SYSTEM.weights[2]
    # On eight nets instead of one, mean squares are known to 1e-2 alone.
    result = infocap.probe(SYSTEM, BASIS, 1024, seed=0, blocks=1)
    capacity = result.capacity_of(lambda u: BASIS(u) @ coefficients + 3.0)
    assert capacity == pytest.approx(1, abs=2e-3)


def weights_with_constant():
    """Coefficients of the constant and of the readouts without noise, (readouts + 1, functions)."""
    weights = np.zeros((7, len(BASIS)))
    weights[0, 0] = 1
    weights[1:, SYSTEM.active] = SYSTEM.weights
    return weights


def test_capacity_of_a_mixture_follows_from_the_weights():
    """A target half inside and half outside the readouts' space, against the exact value."""
    target = np.random.default_rng(1).normal(size=len(BASIS))
    weights = weights_with_constant()
    inside = weights.T @ np.linalg.pinv(weights.T) @ target
    exact = inside @ inside / (target @ target)
    capacity = probed().capacity_of(lambda u: BASIS(u) @ target)
    assert capacity == pytest.approx(exact, abs=0.02)


def test_capacity_of_warns_about_what_lies_outside_the_basis():
    with pytest.warns(DataWarning, match=r"\d+\.\d% of the target's power lies outside the basis"):
        assert probed().capacity_of(lambda u: np.sign(np.sin(9 * u[:, 0]))) < 0.5


def test_capacity_of_works_after_loading(tmp_path):
    def target(u):
        return np.sin(2 * u[:, 0]) + u[:, 1]

    from_netcdf = infocap.load_result(probed().save(tmp_path / "result.nc"))
    expected = probed().capacity_of(target)
    assert from_netcdf.capacity_of(target) == pytest.approx(expected, rel=1e-12)
    from_csv = infocap.load_result(probed().save(tmp_path / "result.csv"))
    with pytest.raises(ParameterError, match="save to NetCDF"):
        from_csv.capacity_of(target)


def test_capacity_of_a_peaked_target_in_many_inputs():
    """Its power sits in a corner that few points see; the exact value is a product of integrals."""
    basis = infocap.product_basis("legendre", 6, 4)
    system = infocap.systems.RandomFeatures(6, 20)
    result = infocap.probe(system, basis, 8192, seed=0, method="threshold-richardson")

    # Coefficients and mean square of exp(2 u1) · … · exp(2 u6).
    nodes, weights = basis.families[0].quadrature(40)
    coefficients_of_factor = (basis.families[0].values(nodes, 5) * np.exp(2 * nodes)) @ weights
    coefficients = np.prod(coefficients_of_factor[basis.indices], axis=1)
    power = (weights @ np.exp(4 * nodes)) ** 6
    # Raw capacities with all samples and with each half of them, and what Richardson makes of them.
    raw, raw_of_first_half, raw_of_second_half = (
        np.sum((frame @ coefficients) ** 2) / power for frame in result.coordinates
    )
    expected = 2 * raw - (raw_of_first_half + raw_of_second_half) / 2

    message = r"(2[6-9]|3[0-7])\.\d% of the target's power lies outside"  # exactly 31.6 %
    with pytest.warns(DataWarning, match=message):
        capacity = result.capacity_of(lambda u: np.exp(2 * u.sum(axis=1)))
    # The standard error is 0.006, from six seeds of the points that average the target.
    assert capacity == pytest.approx(expected, abs=0.02)


def test_capacity_of_a_large_basis_uses_averages(monkeypatch):
    def target(u):
        return u[:, 0] ** 2

    fitted = probed().capacity_of(target)
    monkeypatch.setattr("infocap.result._target.MAX_FUNCTIONS_FOR_FIT", 5)
    assert probed().capacity_of(target) == pytest.approx(fitted, abs=1e-3)


NOISE = 4.0  # standard deviation of what is added to the readouts


def measured_by_loops(n_samples, seed, is_uneven):
    """Noisy readouts fitted by least squares, for `bias_corrected`, which needs four things of them.

    Coordinates, residual covariance, unbiased values and standard errors. Bias and influence are
    sums over samples of the second-order expansion (docs/estimators.md), function by function.
    """
    u = infocap.draw(BASIS, n_samples, design="random", seed=seed)
    noise = NOISE * np.random.default_rng(seed).standard_normal((n_samples, 6))
    if is_uneven:
        noise *= np.sqrt(3) * np.abs(u[:, :1])  # of the same mean square
    x = np.column_stack([np.ones(n_samples), SYSTEM(u) + noise])
    y = BASIS(u)

    least_squares = np.linalg.solve(y.T @ y, y.T)
    leverage = np.sum(y.T * least_squares, axis=0)
    coefficients = least_squares @ x
    residual = x - y @ coefficients
    n_left = n_samples - len(BASIS)
    covariance = residual.T @ residual / n_left

    # The frame in which the readouts have the Gram matrix 1.
    gram = coefficients.T @ coefficients + covariance * (1 - len(BASIS) / n_left)
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    to_frame = eigenvectors / np.sqrt(eigenvalues)
    x = x @ to_frame
    coefficients = coefficients @ to_frame
    covariance = to_frame.T @ covariance @ to_frame
    # Residuals of the fit without the sample itself, and the values that this fit gives.
    residual = residual @ to_frame / (1 - leverage)[:, None]
    fitted = x - residual

    not_explained = y - x @ coefficients.T
    along = residual @ coefficients.T
    residual_squared = np.sum(residual * residual, axis=1)
    residual_by_fitted = np.sum(residual * fitted, axis=1)
    fitted_squared = np.sum(fitted * fitted, axis=1)
    bias = residual_squared @ not_explained**2
    bias -= 2 * residual_by_fitted @ (not_explained * along)
    bias += fitted_squared @ along**2
    bias /= n_samples**2

    variance = np.var(along * (2 * not_explained + along), axis=0) / n_samples
    size_of_noise = np.sum(covariance**2) / np.trace(covariance)
    variance += 2 * np.abs(bias) * size_of_noise / n_samples
    unbiased = np.sum(coefficients**2, axis=1) - bias
    return coefficients.T, covariance, unbiased, np.sqrt(variance)


def noisy_targets():
    """Coefficients of three targets (targets, functions), and their exact capacities with noise."""
    weights = weights_with_constant()
    generator = np.random.default_rng(0)
    targets = generator.normal(size=(3, len(BASIS)))
    targets[0] += weights[1] - weights[5]
    targets[1] = weights[2] + 0.2 * targets[1]  # mostly one of the readouts
    targets[2] = np.linalg.svd(weights)[2][-1]  # what no readout holds
    targets /= np.linalg.norm(targets, axis=1)[:, None]

    gram = weights @ weights.T + np.diag([0.0] + [NOISE**2] * 6)
    covariance = weights @ targets.T  # of readouts and targets
    exact = np.sum(covariance * np.linalg.solve(gram, covariance), axis=0)
    return targets, exact


@pytest.mark.parametrize("is_uneven", [False, True], ids=["even noise", "uneven noise"])
def test_the_capacity_of_a_target_is_unbiased_and_its_error_bar_holds(is_uneven):
    n_data_sets = 120
    n_samples = 512
    targets, exact = noisy_targets()
    capacities = []
    raw = []
    for seed in range(n_data_sets):
        measured = measured_by_loops(n_samples, seed, is_uneven)
        names = ("coordinates", "noise", "unbiased", "standard_error")
        measurement = dict(zip(names, measured, strict=True))
        row = [bias_corrected(target, **measurement, n_samples=n_samples) for target in targets]
        capacities.append(row)
        coordinates = measured[0]
        raw.append(np.sum((coordinates @ targets.T) ** 2, axis=0))

    error = np.array(capacities, dtype=float) - exact
    error_bar = np.array([[one.standard_error for one in row] for row in capacities])
    error_of_mean = error.std(axis=0) / np.sqrt(n_data_sets)
    # The third target's capacity is zero, and no estimate falls below it.
    assert np.all(np.abs(error.mean(axis=0)[:2]) < 4 * error_of_mean[:2])
    assert error.mean(axis=0)[2] < 0.5 * np.mean(raw, axis=0)[2]
    # If 95 % hold, three standard errors below it are 89 %.
    coverage = np.mean(np.abs(error) < 1.96 * error_bar, axis=0)
    assert np.all(coverage > 0.95 - 3 * np.sqrt(0.95 * 0.05 / n_data_sets))
    assert np.all(error.std(axis=0)[:2] > 0.75 * error_bar.mean(axis=0)[:2])


def test_the_capacity_of_a_single_function_is_that_of_the_table(tmp_path):
    coordinates, covariance, unbiased, standard_error = measured_by_loops(512, 1, is_uneven=True)
    result = replace(
        probed(),
        coordinates=(coordinates,),
        residual_covariance=covariance,
        unbiased=unbiased,
        standard_error=standard_error,
        n_samples=512,
    )
    loaded = infocap.load_result(result.save(tmp_path / "result.nc"))
    term = int(SYSTEM.active[2])
    for variant in (result, loaded):
        capacity = variant.capacity_of(lambda u: -3 * BASIS(u)[:, term])
        assert capacity == pytest.approx(unbiased[term], rel=1e-6)
        assert capacity.standard_error == pytest.approx(standard_error[term], rel=1e-6)


def test_a_capacity_is_a_number_with_an_error():
    capacity = Capacity(0.91234, 0.0123)
    unpickled = pickle.loads(pickle.dumps(capacity))
    for variant in (capacity, unpickled):
        assert variant == 0.91234
        assert variant.standard_error == 0.0123
        assert str(variant) == "0.912 ± 0.012"
    assert f"{capacity:.2f}" == "0.91"


def test_a_capacity_lies_between_zero_and_one():
    assert Capacity(-0.1) == 0
    assert Capacity(1.2) == 1


def test_capacity_of_refuses_what_is_no_target():
    with pytest.raises(DataError, match=r"gave float64 \(4096, 2\)"):
        probed().capacity_of(lambda u: u)
    with pytest.raises(DataError, match=r"mean square is 0\.0"):
        probed().capacity_of(lambda u: 0 * u[:, 0])


TARGETS_THAT_ARE_NONE = {
    "a label": ("P1(u1)", "'P1.u1.' is no function"),
    "complex values": (lambda u: np.exp(1j * u[:, 0]), "complex128"),
    "several values": (lambda u: u, "real numbers"),
}


@pytest.mark.parametrize(
    ("target", "message"), TARGETS_THAT_ARE_NONE.values(), ids=TARGETS_THAT_ARE_NONE.keys()
)
def test_a_target_must_be_a_function_with_real_values(target, message):
    result = infocap.probe(np.tanh, infocap.product_basis("legendre", 1, 3), 64, seed=1)
    with pytest.raises(DataError, match=message):
        result.capacity_of(target)


WEIGHTS_BASIS = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
WEIGHTS_LABEL = WEIGHTS_BASIS.labels[4]


def channels_in_microvolts():
    """Inputs and readouts of six channels of about 1e-6, with a dead one between them."""
    u = infocap.draw(WEIGHTS_BASIS, 1024, seed=1)
    x = 1e-6 * (infocap.systems.RandomFeatures(2, 6)(u, seed=1) + 3)
    return u, np.insert(x, 2, 0.0, axis=1)


@pytest.mark.parametrize("method", ["control-variate", "threshold-richardson"])
@pytest.mark.parametrize("constant", [True, False])
def test_readout_weights_are_the_least_squares_weights_of_the_paper(method, constant, tmp_path):
    """W* = G⁻¹R and y* = W*ᵀX, in the units of the channels, also of a dead one, and after saving."""
    u, x = channels_in_microvolts()
    result = infocap.estimate(u, x, WEIGHTS_BASIS, method=method, constant=constant)
    result = infocap.load_result(result.save(tmp_path / "result.nc"))
    y = WEIGHTS_BASIS(u)[:, 4]

    # Without a constant its column is zero, and so is its weight.
    first_column = np.full(len(u), float(constant))
    readouts = np.column_stack([first_column, 1e6 * x])
    weights, *_ = np.linalg.lstsq(readouts, y, rcond=None)
    expected = weights.copy()
    expected[1:] *= 1e6
    tolerance = 1e-6 * np.abs(expected).max()
    assert_allclose(result.readout_weights(WEIGHTS_LABEL), expected, rtol=1e-6, atol=tolerance)

    fitted = result.reconstruct(x, WEIGHTS_LABEL)
    assert_allclose(fitted, readouts @ weights, atol=1e-6)
    power = np.mean(y**2)
    share_explained = 1 - np.mean((fitted - y) ** 2) / power
    assert share_explained == pytest.approx(result.raw[4] / power, abs=1e-9)


def test_twice_the_target_is_reconstructed_as_twice_the_values():
    u, x = channels_in_microvolts()
    result = infocap.estimate(u, x, WEIGHTS_BASIS)
    values = result.reconstruct(x, lambda u: 2 * u[:, 0] + u[:, 1] ** 2)
    twice = result.reconstruct(x, lambda u: 4 * u[:, 0] + 2 * u[:, 1] ** 2)
    assert_allclose(twice, 2 * values, rtol=1e-9, atol=1e-9)


def test_unknown_functions_and_too_few_channels_have_no_reconstruction():
    u, x = channels_in_microvolts()
    result = infocap.estimate(u, x, WEIGHTS_BASIS)
    with pytest.raises(ParameterError, match="P9"):
        result.readout_weights("P9(u9)")
    with pytest.raises(DataError, match="7\\) readouts"):
        result.reconstruct(x[:, :3], WEIGHTS_LABEL)


def test_of_two_programs_that_save_to_one_name_the_later_leaves_a_whole_file(tmp_path):
    path = tmp_path / "result.nc"
    with write_whole(path) as earlier:
        earlier.write_text("begun first, complete last")
        with write_whole(path) as later:
            later.write_text("begun last, complete first")
    assert path.read_text() == "begun first, complete last"
    assert list(tmp_path.iterdir()) == [path]
