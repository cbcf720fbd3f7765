"""The same numbers as the authors' own program, on inputs that both were given.

`infoprocap.npz` holds inputs, readouts and what infoprocap (github.com/rumaram/infoprocap, commit 848affc, MIT) made of
them under Octave 7.3: `calcCap`, `estCap` with both algorithms, and the thresholds. Octave lacks `arguments` blocks and
string arrays, so default arguments were set by `nargin` and the names of the functions left out; nothing else was changed.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap

STORED = np.load(Path(__file__).with_name("infoprocap.npz"))
METHODS = {"raw": "raw", "one": "threshold-richardson", "two": "richardson-threshold"}


@pytest.mark.parametrize("case", [0, 1, 2], ids=["two inputs", "three inputs, odd N", "one input"])
@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_capacities_and_thresholds_are_those_of_the_authors_program(case):
    """All but the constant: infoprocap sets its capacity to 1, where infocap finds it."""
    u, x, degrees = (STORED[f"{name}{case}"] for name in ("u", "x", "degrees"))
    basis = infocap.product_basis("legendre", u.shape[1], int(degrees.sum(axis=1).max()))
    place = {
        tuple(row): number for number, row in enumerate(degrees.reshape(-1, u.shape[1]).tolist())
    }
    order = [place[tuple(row)] for row in basis.indices.tolist()]
    evidence = infocap.estimators.gather_evidence(u, x, basis)
    for name, method in METHODS.items():
        result = infocap.estimators.conclude(evidence, method)
        theirs = STORED[f"{name}{case}"][order]
        # Theirs sets negative values to zero in both algorithms; the paper's Algorithm 2 leaves the smallest, -B, as it is.
        assert_allclose(np.maximum(result.capacity, 0)[1:], theirs[1:], atol=1e-9, err_msg=method)
        assert np.sum(theirs > 0) > 3
        if name == "one":
            assert_allclose(result.threshold, STORED[f"threshold{case}"][order], rtol=1e-9)
