"""The same numbers as the authors' own program, on inputs that both were given.

`infoprocap.npz` holds inputs, readouts and what infoprocap (github.com/rumaram/infoprocap, commit
848affc, MIT) made of them under Octave 7.3: `calcCap`, `estCap` with both algorithms, and the
thresholds. Octave lacks `arguments` blocks and string arrays, so default arguments were set by
`nargin` and the names of the functions left out; nothing else was changed.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap

STORED = np.load(Path(__file__).with_name("infoprocap.npz"))
# Names of the arrays in the file, and the methods that give the same numbers.
METHODS = {"raw": "raw", "one": "threshold-richardson", "two": "richardson-threshold"}
CASES = ["two inputs", "three inputs, odd N", "one input"]


@pytest.mark.parametrize("case", range(len(CASES)), ids=CASES)
@pytest.mark.parametrize(("name", "method"), METHODS.items())
@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_capacities_are_those_of_the_authors_program(case, name, method):
    """All but the constant: infoprocap sets its capacity to 1, where infocap finds it."""
    u, x, degrees = (STORED[f"{array}{case}"] for array in ("u", "x", "degrees"))
    degrees = degrees.reshape(len(degrees), -1)
    basis = infocap.product_basis("legendre", u.shape[1], int(degrees.sum(axis=1).max()))
    place_of = {tuple(row): place for place, row in enumerate(degrees.tolist())}
    order = [place_of[tuple(row)] for row in basis.indices.tolist()]

    result = infocap.estimate(u, x, basis, method=method)
    expected = STORED[f"{name}{case}"][order]
    assert np.sum(expected > 0) > 3
    # infoprocap sets negative values to zero in both algorithms; the paper's Algorithm 2 leaves the
    # smallest as it is.
    assert_allclose(np.maximum(result.capacity, 0)[1:], expected[1:], atol=1e-9)
    if method == "threshold-richardson":
        assert_allclose(result.threshold, STORED[f"threshold{case}"][order], rtol=1e-9)
