"""What the authors show of their experiment, read from a picture in their repository.

The picture is images/visualisations.jpg of the repository rumaram/infoprocap (commit 848affc). Its README calls it an
example, and names neither power nor length. That it is the paper's Figure 1, hence at -1.9 dBm and 40 m, is our
inference: the paper's caption describes the same two panels.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import infocap

POWER_DBM, LENGTH_M = -1.9, 40.0  # of Figure 1
SOURCE = "the authors' example, taken for Fig. 1"
TOTAL = {2: 18.5, 5: 39.1}
# Five inputs: the sum of the capacities of each total degree, 0 to 8.
BY_DEGREE = np.array([1, 4.47, 12.76, 7.38, 12.58, 0.12, 0.61, 0, 0.19])
# Two inputs: row i and column j is P_i(u1) P_j(u2), up to degree 14 in all. Read from the colours of the published
# matrix, to about 0.01; the sum is 18.35.
_MATRIX = """
0.996 0.996 0.996 0.675 0.655 0.082 0.184 0.043 0.082 0.000 0.043 0.000 0.082 0.000 0.043
0.996 0.996 0.922 0.898 0.169 0.306 0.043 0.129 0.043 0.043 0.000 0.059 0.000 0.059
0.996 0.922 0.878 0.345 0.267 0.043 0.043 0.000 0.000 0.000 0.000 0.000 0.000
0.675 0.898 0.345 0.329 0.043 0.102 0.000 0.000 0.000 0.000 0.000 0.000
0.718 0.169 0.306 0.043 0.020 0.000 0.000 0.000 0.000 0.000 0.000
0.129 0.345 0.043 0.102 0.000 0.000 0.000 0.000 0.000 0.000
0.145 0.043 0.059 0.000 0.000 0.000 0.000 0.000 0.000
0.043 0.145 0.000 0.059 0.000 0.000 0.000 0.000
0.059 0.020 0.043 0.000 0.000 0.000 0.000
0.020 0.082 0.000 0.000 0.000 0.000
0.020 0.000 0.043 0.000 0.000
0.000 0.102 0.000 0.000
0.059 0.000 0.000
0.000 0.082
0.020
"""
MATRIX = np.full((15, 15), np.nan)
for _row, _text in enumerate(_MATRIX.split("\n")[1:-1]):
    _numbers = [float(one) for one in _text.split()]
    MATRIX[_row, : len(_numbers)] = _numbers


def matrix_values(indices: np.ndarray) -> np.ndarray:
    """The measured capacities of two inputs in the order of a basis, from its `indices` (terms, 2)."""
    return MATRIX[tuple(indices.T)]


# Measurements of the user's own, (result, power in dBm or NaN, length in m or NaN), which `add` puts here.
OWN: list[tuple[infocap.CapacityResult, float, float]] = []
DEGREES = {2: 14, 5: 8}


def add(path: Path) -> str:
    """Read a recording of two or five inputs, estimate it as the paper does, and say what was found.

    Power and length are those in the metadata of the recording, as `infocap simulate` or a plan's notes leave them.
    """
    run = infocap.read(path)
    n_inputs = run.inputs.shape[1]
    if n_inputs not in DEGREES:
        raise infocap.errors.DataError(
            f"{path} has {n_inputs} inputs; the paper's figures show 2 or 5."
        )
    basis = infocap.product_basis("legendre", n_inputs, DEGREES[n_inputs])
    result = infocap.estimate(run.inputs, run.readouts, basis, method="threshold-richardson")
    known = {**run.metadata, **run.metadata.get("system", {})}
    power, length = (float(known.get(name, np.nan)) for name in ("power_dbm", "length_m"))
    OWN.append((result, power, length))
    where = (
        f" at {power:g} dBm, {length:g} m"
        if np.isfinite(power + length)
        else " (its metadata name no power_dbm, length_m)"
    )
    return f"{path}: total {result.total:.1f} of {result.maximum} for {n_inputs} inputs{where}"
