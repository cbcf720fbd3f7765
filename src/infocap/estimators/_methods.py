"""The table of methods; the rest of the package reads this table instead of naming methods."""

from ._control_variate import control_variate, control_variate_bytes, control_variate_work
from ._method import Method
from ._rules import (
    chi2,
    raw,
    richardson_threshold,
    surrogate,
    surrogate_bytes,
    threshold_richardson,
)

_PAPER = (
    "R. Uma Ramachandran and S. Massar, "
    "Information Processing Capacity of Stationary Physical Systems (2026)"
)

# The method of `estimate` where none is named. The signatures of `estimate`, `probe` and `sweep`
# repeat this name, so that it can be read there.
DEFAULT_METHOD = "control-variate"

_ALL_METHODS = (
    Method(
        name="control-variate",
        function=control_variate,
        summary=(
            "readouts regressed on the basis, bias removed, error bars, "
            "at most 5 % false discoveries on average"
        ),
        reference=(
            "The infocap developers, infocap, "
            'page "The default method: control variates" of its documentation'
        ),
        cites=("benjamini1995controlling",),
        extra_bytes=control_variate_bytes,
        extra_work=control_variate_work,
    ),
    Method(
        name="raw",
        function=raw,
        summary="the plain empirical capacity C_N",
        reference=_PAPER,
        corrects_bias=False,
    ),
    Method(
        name="threshold-richardson",
        function=threshold_richardson,
        summary="the paper's Algorithm 1: zero-capacity threshold, then extrapolation",
        reference=f"{_PAPER}, Algorithm 1",
    ),
    Method(
        name="richardson-threshold",
        function=richardson_threshold,
        summary=(
            "the paper's Algorithm 2: extrapolation, then a threshold from the most negative value"
        ),
        reference=f"{_PAPER}, Algorithm 2",
    ),
    Method(
        name="surrogate",
        function=surrogate,
        summary="capacities above the largest of many random pairings of inputs and readouts",
        reference=(
            "T. Kubota, H. Takahashi and K. Nakajima, Physical Review Research 3, 043135 (2021)"
        ),
        cites=("kubota2021unifying",),
        corrects_bias=False,
        takes_weights=False,
        extra_bytes=surrogate_bytes,
    ),
    Method(
        name="chi2",
        function=chi2,
        summary="capacities above twice a quantile of the chi-squared distribution",
        reference=(
            "J. Dambre, D. Verstraeten, B. Schrauwen and S. Massar, "
            "Scientific Reports 2, 514 (2012)"
        ),
        cites=("dambre2012information",),
        corrects_bias=False,
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _ALL_METHODS}
