"""Growth: the total that earlier stops of the run would have given, at less than two passes over the rows."""

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.samples import Engine

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")

BASIS = infocap.product_basis("legendre", n_inputs=2, max_degree=5)
N_SAMPLES = 2048
INPUTS = infocap.draw(BASIS, N_SAMPLES, seed=1)
READOUTS = infocap.systems.RandomFeatures(2, 10, noise=0.05)(INPUTS, seed=1)
WHEN = np.random.default_rng(0).permutation(N_SAMPLES)


def recording(**more):
    return infocap.Recording(INPUTS, READOUTS, np.arange(N_SAMPLES), time=WHEN, **more)


@pytest.mark.parametrize("method", ["control-variate", "raw", "threshold-richardson"])
def test_each_point_is_what_the_method_gives_for_the_rows_measured_first(method):
    growth = infocap.estimate(recording(), basis=BASIS, method=method).growth
    assert growth.n_samples == (32, 128, 512, 2048)
    for point, n_samples in enumerate(growth.n_samples):
        first = np.argsort(WHEN)[:n_samples]
        first.sort()
        alone = infocap.estimate(
            INPUTS[first],
            READOUTS[first],
            BASIS,
            method=method,
            time=WHEN[first],
            design_index=first,
        )
        assert growth.total[point] == pytest.approx(alone.total, rel=1e-9)
        if growth.standard_error is not None:
            assert_allclose(growth.standard_error[point], alone.total_standard_error, rtol=1e-6)
    assert (growth.standard_error is None) == (method != "control-variate")


@pytest.mark.parametrize("method", infocap.estimators.METHODS)
def test_growth_costs_at_most_two_passes_over_the_rows(monkeypatch, method):
    # Each shuffle is a pass over the rows, and a third of a pass for growth.
    options = {"n_surrogates": 3} if method == "surrogate" else {}
    rows = Counter()
    whole_passes = Counter()
    fold = Engine.fold

    def counted_fold(engine, samples, *arguments, **keywords):
        rows[way] += samples.n_samples
        whole_passes[way] += samples.n_samples == N_SAMPLES
        return fold(engine, samples, *arguments, **keywords)

    monkeypatch.setattr(Engine, "fold", counted_fold)
    way = "arrays"
    infocap.estimate(
        INPUTS,
        READOUTS,
        BASIS,
        method=method,
        method_options=options,
        time=WHEN,
        design_index=range(N_SAMPLES),
    )
    way = "recording"
    infocap.estimate(recording(), basis=BASIS, method=method, method_options=options)
    assert 0 < rows["recording"] - rows["arrays"] <= 2 * N_SAMPLES
    assert whole_passes["recording"] == whole_passes["arrays"]


def test_rows_without_values_count_neither_as_measured_nor_as_a_stop():
    readouts = READOUTS.copy()
    readouts[::4] = np.nan
    gaps = infocap.Recording(INPUTS, readouts, np.arange(N_SAMPLES), time=WHEN)
    growth = infocap.estimate(gaps, basis=BASIS, nan_policy="omit").growth
    assert growth.n_samples == (24, 96, 384, 1536)


def test_a_size_that_the_method_refuses_has_no_point():
    """Sixteen blocks need more samples than readouts in each of them."""
    growth = infocap.estimate(
        recording(), basis=BASIS, method="raw", method_options={"jackknife": 16}
    ).growth
    assert growth.n_samples == (512, 2048)
    assert growth.standard_error is not None


def test_a_sequence_and_a_file_that_is_read_in_blocks_have_no_growth(tmp_path):
    basis = infocap.delayed_basis(max_delay={1: 2})
    u = np.random.default_rng(1).uniform(-1, 1, (400, 1))
    sequence = infocap.Recording(u, u, np.arange(400))
    assert infocap.estimate(sequence, basis=basis).growth is None
    on_disk = np.memmap(tmp_path / "readouts", dtype=float, mode="w+", shape=READOUTS.shape)
    on_disk[:] = READOUTS
    stored = infocap.Recording(INPUTS, on_disk, np.arange(N_SAMPLES))
    assert infocap.estimate(stored, basis=BASIS).growth is None
