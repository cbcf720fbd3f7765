"""What people feed it, and what they get: the error or the warning, with its message."""

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError, DataWarning, InfocapError, ParameterError

BASIS = infocap.product_basis("legendre", 2, 4)
U = infocap.draw(BASIS, 512, seed=1)
SYSTEM = infocap.systems.RandomFeatures(2, 8, noise=0.01)
X = SYSTEM(U, seed=2)


def changed(array, where, value):
    out = array.astype(object if isinstance(value, str) else float)
    out[where] = value
    return out


ERRORS = {
    "NaN in x": ((U, changed(X, (17, 3), np.nan)), {}, r"x has 1 NaN or infinite values, the first nan at row 17, column 3; .*nan_policy='omit'"),
    "inf in u": ((changed(U, (5, 1), np.inf), X), {}, r"u has 1 NaN or infinite values, the first inf at row 5, column 1"),
    "all rows NaN": ((U, X * np.nan), {"nan_policy": "omit"}, "nothing left to use"),
    "u outside the domain": ((changed(U, (9, 0), 1.5), X), {}, r"u is 1\.5 at row 9, column 0, outside the domain \[-1, 1\] of the legendre basis; here u runs from"),
    "u in [0, 2 pi]": ((np.pi * (U + 1), X), {}, r"pass `domain=\(0, 2\*np\.pi\)`"),
    "too few samples": ((U[:9], X[:9]), {}, r"x has 9 samples for 9 readouts: with N <= K .* at least 4 K = 36"),
    "unequal lengths": ((U, X[:500]), {}, r"u has shape \(512, 2\) and x has shape \(500, 8\): unequal numbers of samples; give one row"),
    "transposed x": ((U, X.T), {}, r"x has shape \(8, 512\): unequal numbers of samples; the lengths agree with x\.T"),
    "transposed u": ((U.T, X), {}, r"the lengths agree with u\.T"),
    "wrong number of inputs": ((U[:, :1], X), {}, "u has 1 columns, but the basis has 2 inputs"),
    "complex x": ((U, X + 1j), {}, r"x is complex \(complex128\); .*complex_as='abs2'.*complex_as='split'"),
    "one-dimensional x": ((U, X[:, 0]), {}, r"x has shape \(512,\); give two dimensions, .* x\.reshape\(-1, 1\)"),
    "three-dimensional x": ((U, X[None]), {}, r"x has shape \(1, 512, 8\); give two dimensions"),
    "empty x": ((U[:0], X[:0]), {}, r"u is empty: its shape is \(0, 2\)"),
    "a word in x": ((U, changed(X, (3, 2), "n/a")), {}, r"x has 'n/a' at row 3, column 2; give numbers only"),
    "dates in x": ((U, np.full((512, 2), np.datetime64("2026-01-01"))), {}, "x holds datetime64"),
    "nothing changes": ((U, np.ones((512, 3))), {}, "no channel that changes"),
    "rows not in index order": ((U, X), {"design_index": np.roll(np.arange(512), 1)}, r"design_index is 0 at row 1, after 511: .* np\.argsort\(design_index\)"),
    "index of the wrong length": ((U, X), {"design_index": np.arange(5)}, r"design_index has shape \(5,\); give one value for each of 512 rows"),
    "acquisition of the wrong length": ((U, X), {"time": np.arange(5)}, r"time has shape \(5,\)"),
    "unknown nan policy": ((U, X), {"nan_policy": "ignore"}, "`nan_policy='ignore'` is not one of 'raise', 'omit'"),
    "unknown complex policy": ((U, X), {"complex_as": "phase"}, "`complex_as='phase'` is not one of"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "options", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_unusable_data_gets_one_sentence_that_says_what_to_do(data, options, message):
    with pytest.raises(InfocapError, match=message) as caught:
        infocap.estimate(*data, BASIS, **options)
    assert isinstance(caught.value, ValueError)


MISTAKES = {
    "basis by name": (
        {"basis": "legendre"},
        "`basis='legendre'` must be a ProductBasis from product_basis",
    ),
    "constant as a word": ({"constant": "no"}, "`constant='no'` must be True or False"),
    "repeated index": (
        {"design_index": np.repeat(np.arange(256), 2)},
        "design_index has 0 more than once",
    ),
    "index with gaps": (
        {"design_index": changed(np.arange(512), 7, np.nan)},
        "design_index is nan at row 7; give a value for every row",
    ),
    "a date that is missing": (
        {"time": np.array(["2026-01-01"] * 511 + ["NaT"], "datetime64[D]")},
        "time is NaT at row 511; give a value for every row",
    ),
    "times as words": (
        {"time": np.full(512, "noon")},
        "time holds <U4 values; give numbers or times",
    ),
    "method that gives NaN": ({"method": lambda e: e.raw * np.nan}, "not a finite number, for 1"),
    "sparse matrix": ({"x": "sparse"}, r"x\.toarray\(\)"),
    "ragged list": ({"x": [[1.0, 2.0], [3.0]]}, "x is a list that is no table of numbers"),
    "xarray data set": ({"x": "dataset"}, "x=.* must be an array of numbers"),
}


@pytest.mark.parametrize(("change", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_plain_mistakes_get_a_sentence_too(change, message):
    import scipy.sparse
    import xarray as xr

    arguments = {"x": X, "basis": BASIS} | change
    if isinstance(arguments["x"], str):
        sources = {
            "sparse": scipy.sparse.csr_array(X),
            "dataset": xr.DataArray(X, name="x").to_dataset(),
        }
        arguments["x"] = sources[arguments["x"]]
    with pytest.raises(InfocapError, match=message):
        infocap.estimate(U, **arguments)


def test_masked_values_are_missing_values():
    mask = np.arange(X.size).reshape(X.shape) % 977 == 0
    masked = np.ma.masked_array(np.where(mask, 1e20, X), mask=mask)
    with pytest.raises(DataError, match=r"x has \d+ NaN or infinite values"):
        infocap.estimate(U, masked, BASIS)
    kept = ~np.any(mask, axis=1)
    result = infocap.estimate(U, masked, BASIS, nan_policy="omit")
    assert_allclose(result.capacity, infocap.estimate(U[kept], X[kept], BASIS).capacity, atol=1e-12)


def test_missing_cells_of_mixed_columns_can_be_dropped():
    x = X.astype(object)
    x[4, 1] = None
    assert infocap.estimate(U, x, BASIS, nan_policy="omit").n_samples == 511


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_single_precision_inputs_reach_the_ends_of_their_domain():
    for basis in (
        infocap.product_basis("bernoulli", 2, 2, domain=(0, 3.3)),
        infocap.product_basis("legendre", 2, 3, domain=(0, 0.1)),
        infocap.product_basis(infocap.basis.samples(U[:, 0] + 0.1), 2, 3),
    ):
        u = infocap.draw(basis, 512, seed=1)
        u[0] = basis.families[0].bounds[1]
        infocap.estimate(u.astype(np.float32), SYSTEM(u, seed=0), basis)


@pytest.mark.parametrize("factor", [1e-310, 1e-200, 1e200, 1e307])
def test_the_whole_range_of_numbers_is_usable(factor):
    plain = infocap.estimate(U, X, BASIS)
    tolerance = 1e-2 if factor < 1e-300 else 1e-9  # the smallest numbers have few digits
    assert_allclose(infocap.estimate(U, X * factor, BASIS).capacity, plain.capacity, atol=tolerance)


def test_what_counts_is_the_rank_and_not_the_number_of_channels():
    with pytest.warns(DataWarning, match="only 9 of 81 readouts"):
        result = infocap.estimate(
            U[:60], np.hstack([X[:60]] * 10), BASIS, method="threshold-richardson"
        )
    assert result.rank == 9


def test_named_columns_are_named_in_messages():
    frame = pd.DataFrame(X, columns=[f"{wavelength} nm" for wavelength in range(1550, 1558)])
    frame.iloc[4, 6] = np.nan
    with pytest.raises(DataError, match="row 4, column '1556 nm'"):
        infocap.estimate(U, frame, BASIS)


def test_inputs_off_their_levels_are_refused():
    basis = infocap.product_basis("bernoulli", 2, 2, domain=(-1, 1))
    u = infocap.draw(basis, 512, seed=1)
    with pytest.raises(
        DataError, match=r"u is 0\.5 at row 7, column 1, which is not one of the 2 levels"
    ):
        infocap.estimate(changed(u, (7, 1), 0.5), SYSTEM(u), basis)


def test_a_job_beyond_memory_or_days_is_refused_before_it_starts(monkeypatch):
    big = infocap.product_basis("legendre", 10, 8)
    u = infocap.draw(big, 256, seed=1)
    monkeypatch.setattr("os.sysconf", lambda name: 1_000_000 if name == "SC_PHYS_PAGES" else 1)
    monkeypatch.setattr(
        "infocap.estimators._pipeline.BYTES_ON_ANY_MACHINE", 0
    )  # so that the machine is asked
    with pytest.raises(
        ParameterError,
        match=r"43,758 functions: with 9 readouts and 256 samples .* about 35 MB of memory",
    ):
        infocap.estimate(u, infocap.systems.RandomFeatures(10, 8)(u), big)


def messages_of(*args, method="threshold-richardson", **options):
    """The result and the warnings raised, which are the same sentences as its checks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = infocap.estimate(*args, method=method, **options)
    raised = [str(warning.message) for warning in caught]
    for warning in caught:
        assert issubclass(warning.category, DataWarning)
        assert warning.filename == __file__  # The warning points at the user's line.
    assert set(raised) <= set(result.checks)
    return result, raised


def test_clean_data_raise_nothing(device):
    basis, u, x = device
    for method in ("threshold-richardson", "control-variate"):
        assert messages_of(u, x, basis, method=method)[0].checks == ()
    order = np.random.default_rng(0).permutation(len(u))
    assert messages_of(u[order], x[order], basis)[1] == []


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("design", ["sobol", "random"])
def test_sparse_mixtures_of_high_degree_raise_nothing(design, seed):
    """Hard for the check of shifts: little capacity at low degree, and related neighbours in Sobol order."""
    basis = infocap.product_basis("legendre", 3, 6)
    system = infocap.theory.random_mixture(basis, n_active=20, n_readouts=10, noise=0.3, seed=seed)
    u = infocap.draw(basis, 1024, design=design, seed=seed)
    assert messages_of(u, system(u, seed=seed), basis)[1] == []


@pytest.mark.parametrize(
    "family", ["bernoulli", infocap.basis.table([0, 1, 2, 5])], ids=["bernoulli", "table"]
)
def test_inputs_on_levels_raise_nothing(family):
    basis = infocap.product_basis(family, 3, 3)
    for seed in range(10):
        u = infocap.draw(basis, 1024, seed=seed)
        system = infocap.systems.RandomFeatures(3, 4)
        assert messages_of(u, system(u), basis)[1] == []


def test_rounding_beside_a_large_offset_is_no_drift(device):
    basis, u, x = device
    _, raised = messages_of(u, np.column_stack([x, x[:, 0] + 1e6]), basis)
    assert not any("correlated" in message for message in raised)


def test_every_limit_lets_just_under_pass_and_stops_just_over(device):
    basis, u, x = device

    def warns_of(words, *arrays):
        _, raised = messages_of(*arrays, basis)
        return any(words in message for message in raised)

    # Inputs are shifted by d (1 - u²), which fills the domain; the mean of P1 is then sqrt(4/3) d.
    for n_errors, expected in ((4.6, False), (6.1, True)):
        shift = np.array([n_errors / np.sqrt(4 / 3 * len(u)), 0.0])
        shifted = u + shift * (1 - u**2)
        assert warns_of("do not follow", shifted, SYSTEM(shifted, seed=0)) is expected
    # Saturation at 0.6 % and at 2 % of the samples.
    for share, expected in ((0.006, False), (0.02, True)):
        clipped = np.minimum(x, np.quantile(x, 1 - share, axis=0))
        assert warns_of("saturated", u, clipped) is expected
    # The domain: 1e-10 outside passes (see below), 1e-6 does not.
    edge = u.copy()
    edge[0, 0] = 1 + 1e-6
    with pytest.raises(DataError, match="outside the domain"):
        infocap.estimate(edge, x, basis)


def test_inputs_on_0_1_are_told_their_domain(device):
    basis, u, x = device
    _, raised = messages_of((u + 1) / 2, x, basis)
    assert any(
        "do not follow the declared distribution (uniform)" in m and "domain=(0, 1)" in m
        for m in raised
    )


@pytest.mark.parametrize("constant", [True, False])
def test_inputs_of_another_distribution_are_noticed(device, constant):
    basis = device[0]
    u = 2 * np.random.default_rng(0).beta(2, 2, (4096, 2)) - 1
    _, raised = messages_of(u, SYSTEM(u, seed=0), basis, constant=constant)
    assert "inputs do not follow the declared distribution" in raised[0]
    assert "standard errors from 0. Use the `family` of the true distribution" in raised[0]


def test_correlated_inputs_do_not_follow_the_distribution(device):
    basis = device[0]
    column = np.random.default_rng(0).uniform(-1, 1, 4096)
    u = np.column_stack([column, column])
    others = np.random.default_rng(2).permutation(4096)[:2048]
    u[others, 1] = np.random.default_rng(1).uniform(-1, 1, 2048)
    _, raised = messages_of(u, SYSTEM(u, seed=0), basis)
    assert re.search(r"the mean of P(\d)\(u1\)·P\1\(u2\) is 0\.5", raised[0])


@pytest.mark.parametrize("lag", [-3, 1, 2])
def test_shifted_readouts_are_noticed_in_any_order(device, lag):
    basis, u, x = device
    random = np.random.default_rng(0).permutation(len(u))
    for order in (np.arange(len(u)), random):
        _, raised = messages_of(u[order], np.roll(x[order], lag, axis=0), basis)
        assert any(f"readouts look shifted by {lag:+d} samples" in message for message in raised)


def test_shifts_are_found_in_acquisition_order(device):
    basis, u, x = device
    when = np.random.default_rng(0).permutation(len(u))  # row i was measured as number when[i]
    by_time = np.argsort(when)
    late = np.empty_like(x)
    late[by_time] = np.roll(x[by_time], 1, axis=0)
    _, raised = messages_of(u, late, basis, time=when)
    assert any("shifted by +1" in message for message in raised)
    assert messages_of(u, x, basis, time=when)[1] == []


def test_drift_is_found_in_acquisition_order(device):
    basis, u, x = device
    when = np.random.default_rng(0).permutation(len(u))
    drifting = x + 0.01 * np.linspace(-1, 1, len(u))[when, None]
    _, raised = messages_of(u, drifting, basis, time=when)
    assert any("readouts drift along the run" in message for message in raised)


def test_inputs_in_sorted_order_are_noticed(device):
    basis, u, x = device
    order = np.argsort(u[:, 0])
    result, _ = messages_of(u[order], x[order], basis)
    messages = [str(check) for check in result.checks]
    assert any("inputs of neighbouring rows are related" in message for message in messages)


def test_saturated_channels_are_noticed(device):
    basis, u, x = device
    _, raised = messages_of(u, np.minimum(x, 0.9), basis)
    assert any("look saturated or clipped (column" in m and "of 30 channels" in m for m in raised)
    _, raised = messages_of(u, np.round(x * 16) / 16, basis)  # a 5-bit converter
    assert any("hold whole steps, or numbers of few digits" in message for message in raised)


def test_a_rank_below_k_is_noticed():
    with_sum = np.column_stack([X, X[:, 0] + X[:, 1]])
    result, raised = messages_of(U, with_sum, BASIS)
    assert raised == [
        "only 9 of 10 readouts are linearly independent, so the total cannot exceed 9. Leave out copies and sums of "
        "others."
    ]
    assert (result.rank, result.maximum) == (9, 10)


def test_few_samples_are_noticed():
    _, raised = messages_of(U[:32], X[:32], BASIS)
    assert any("32 samples are few for 9 readouts: below 4 K = 36" in message for message in raised)


def test_a_threshold_above_one_is_noticed():
    _, raised = messages_of(
        U[:16], X[:16], infocap.product_basis("legendre", 2, 12), method="threshold-richardson"
    )
    assert any("threshold exceeds 1 for" in message for message in raised)


def test_a_sum_above_the_rank_is_noticed():
    large = infocap.product_basis("legendre", 2, 9)
    _, raised = messages_of(U[:64], X[:64], large, method="raw")
    assert any("above the 9 that the readouts allow" in message for message in raised)


def test_warnings_can_be_made_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataWarning, match="linearly independent"):
            infocap.estimate(U, X[:, [0, 1, 2, 0]], BASIS, method="chi2")


@cache
def plain_result():
    return infocap.estimate(U, X, BASIS)


def test_rows_with_nan_can_be_dropped():
    x = X.copy()
    x[3, 2] = x[100] = np.nan
    u = U.copy()
    u[7, 0] = np.inf
    good = ~np.isin(np.arange(512), [3, 7, 100])
    result = infocap.estimate(u, x, BASIS, nan_policy="omit")
    assert result.n_samples == 509
    assert result.checks[-1] == "3 rows with NaN or infinite values were dropped."
    assert_allclose(result.capacity, infocap.estimate(U[good], X[good], BASIS).capacity, atol=1e-12)


def test_drift_and_shifts_are_found_among_the_rows_that_are_left(device):
    basis, u, x = device
    when = np.random.default_rng(0).permutation(len(u))
    by_time = np.argsort(when)
    late = np.empty_like(x)
    late[by_time] = np.roll(x[by_time], 1, axis=0)
    for readouts, is_shifted in ((late, True), (x, False)):
        with_gaps = readouts.copy()
        with_gaps[::100] = np.nan  # rows from all over the design
        _, raised = messages_of(u, with_gaps, basis, time=when, nan_policy="omit")
        assert any("shifted by +1" in message for message in raised) is is_shifted
    drifting = x + 0.01 * np.linspace(-1, 1, len(u))[when, None]
    drifting[:1000] = np.nan
    _, raised = messages_of(u, drifting, basis, time=when, nan_policy="omit")
    assert any("readouts drift along the run" in message for message in raised)


def test_dead_channels_are_dropped_by_name():
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    frame["off"], frame["stuck"], frame["rounding"] = 0.0, 0.1, 0.3 + 1e-17
    result = infocap.estimate(U, frame, BASIS)
    assert result.maximum == result.rank == 9
    assert result.checks[0] == "column 'stuck' is constant and serves as the constant readout."
    assert "dead channels were dropped (column 'off', column 'rounding')" in result.checks[1]
    assert_allclose(result.capacity, plain_result().capacity, atol=1e-12)


def test_complex_readouts_are_taken_as_powers_or_as_two_channels():
    field = X[:, :4] + 1j * X[:, 4:]
    powers = infocap.estimate(U, field, BASIS, complex_as="abs2")
    assert_allclose(
        powers.capacity, infocap.estimate(U, np.abs(field) ** 2, BASIS).capacity, atol=1e-9
    )
    split = infocap.estimate(U, field, BASIS, complex_as="split")
    assert_allclose(split.capacity, plain_result().capacity, atol=1e-9)


def test_odd_numbers_of_samples_are_fine():
    assert infocap.estimate(U[:511], X[:511], BASIS).n_samples == 511


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_a_tiny_step_outside_the_domain_is_rounding():
    u = U.copy()
    u[0, 0] = 1 + 1e-10
    infocap.estimate(u, X, BASIS)
