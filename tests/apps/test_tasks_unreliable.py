"""Capacity against accuracy where totals are unreliable."""

import functools

import matplotlib.pyplot as plt
import numpy as np
import pytest

import infocap
from support import REASON, doubt_high_ranks

pytestmark = pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")


@pytest.fixture(scope="module")
def relation():
    """Capacities and accuracies of two devices, of which the larger has an unreliable total."""
    basis = infocap.product_basis("legendre", 2, 4)
    make_device = functools.partial(infocap.systems.RandomFeatures, 2, gain=3.0, noise=0.5)
    values = {"n_readouts": [3, 6]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(infocap.diagnostics.CHECKS, "doubt", doubt_high_ranks)
        sweep = infocap.sweep(make_device, values, basis, 1024, seed=1, progress=False)
    task = infocap.tasks.two_spirals(200)
    scores = [infocap.tasks.accuracy(make_device(**point), task) for point in sweep.points]
    return infocap.tasks.capacity_accuracy(sweep, scores)


def test_the_relation_says_which_totals_are_unreliable(relation):
    assert "1 of the totals are unreliable" in repr(relation)
    assert relation.to_xarray().unreliable.values.tolist() == ["", REASON]


def rings_of(ax):
    """The places of the rings around unreliable totals."""
    lines = [line for axes in ax.figure.axes for line in axes.lines]
    rings = [line for line in lines if line.get_markersize() == 9 and len(line.get_xdata())]
    return [line.get_xdata().tolist() for line in rings]


@pytest.mark.parametrize("against", [None, "n_readouts"])
def test_the_picture_marks_unreliable_totals(relation, against):
    ax = infocap.tasks.plot.capacity_accuracy(relation, against=against)
    place = relation.total[1] if against is None else 6
    assert rings_of(ax) == [[place]]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "unreliable total" in labels
    plt.close(ax.figure)


@pytest.mark.parametrize("against", [None, "n_readouts"])
def test_an_unreliable_total_has_no_error_bar(relation, against):
    ax = infocap.tasks.plot.capacity_accuracy(relation, against=against)
    containers = ax.figure.axes[-1].containers
    bars = next(bar for bar in containers if bar.has_xerr or against is not None)
    segments = [segment for segment in bars.lines[2][0].get_segments() if len(segment)]
    lengths = [np.ptp(segment, axis=0).max() for segment in segments]
    assert np.isfinite(lengths[0])
    assert not np.isfinite(lengths[1:]).any()
    plt.close(ax.figure)
