"""The paper's algorithms written out naively: a least-squares call for each function, plain loops, no tricks."""

import numpy as np

from infocap.estimators import conclude, gather
from infocap.samples import Samples, scan_columns


def capacity(x, y):
    """C_N of one target: the squared length of its least-squares fit, with E[y²] = 1."""
    fit = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return float(fit @ fit) / len(y)


def raw(x, targets):
    return np.array([capacity(x, y) for y in targets.T])


def extrapolated(x, targets):
    half = len(x) // 2
    first = raw(x[:half], targets[:half])
    second = raw(x[half:], targets[half:])
    return 2 * raw(x, targets) - (first + second) / 2


def zero_capacity_bound(x, fourth_moments):
    """Below this a capacity may be chance: sqrt(S_N E[y^4]) / N, with S_N the mean square of the leverage."""
    n = len(x)
    gram = np.linalg.inv(x.T @ x / n)
    s_n = np.mean([(row @ gram @ row) ** 2 for row in x])
    return np.sqrt(s_n * np.asarray(fourth_moments)) / n


def algorithm_1(x, targets, fourth_moments):
    capacities = []
    for c_n, better, bound in zip(
        raw(x, targets),
        extrapolated(x, targets),
        zero_capacity_bound(x, fourth_moments),
        strict=True,
    ):
        if c_n <= bound:
            capacities.append(0.0)
        else:
            capacities.append(max(better, 0.0))
    return np.array(capacities)


def algorithm_2(x, targets):
    capacities = extrapolated(x, targets)
    capacities[capacities < -capacities.min()] = 0.0
    return capacities


def with_constant(x):
    return np.column_stack([np.ones(len(x)), x])


def root_mean_square(values):
    return np.sqrt(np.mean(np.square(values)))


def estimate_with(engine, u, x, basis, method="threshold-richardson", constant=True, **rows):
    """`infocap.estimate`, with the engine that goes through the rows in the hands of the test."""
    samples = Samples.of(u, x, basis, **rows)
    statistics = scan_columns(samples, engine)
    evidence = gather(samples.choose_preparation(statistics, constant), engine, statistics)
    return conclude(evidence, method)
