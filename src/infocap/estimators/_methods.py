"""The table of methods: each is a function of the evidence, and everything else reads this table."""

from . import _control_variate
from ._control_variate import control_variate
from ._method import Method
from ._rules import chi2, raw, richardson_threshold, surrogate, threshold_richardson

_PAPER = "R. Uma Ramachandran and S. Massar, Information Processing Capacity of Stationary Physical Systems"

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "control-variate",
            control_variate,
            "readouts regressed on the basis, bias removed, error bars, at most 5 % of what is shown false",
            "docs/estimators.md",
            forecast="residual",
            extra_bytes=_control_variate.control_variate_bytes,
            extra_work=_control_variate.control_variate_work,
        ),
        Method(
            "raw", raw, "the plain empirical capacity C_N", f"{_PAPER} (2026)", corrects_bias=False
        ),
        Method(
            "threshold-richardson",
            threshold_richardson,
            "the paper's Algorithm 1: zero-capacity threshold, then extrapolation",
            f"{_PAPER} (2026), Algorithm 1",
            forecast="threshold",
        ),
        Method(
            "richardson-threshold",
            richardson_threshold,
            "the paper's Algorithm 2: extrapolation, then a threshold from the most negative value",
            f"{_PAPER} (2026), Algorithm 2",
        ),
        Method(
            "surrogate",
            surrogate,
            "capacities above the largest of many random pairings of inputs and readouts",
            "T. Kubota, H. Takahashi and K. Nakajima, Physical Review Research 3, 043135 (2021)",
            corrects_bias=False,
            takes_weights=False,
            extra_bytes=lambda n_samples, *_: (
                8.0 * n_samples * 17
            ),  # eight inputs before and after, and an order
        ),
        Method(
            "chi2",
            chi2,
            "capacities above twice a quantile of the chi-squared distribution",
            "J. Dambre, D. Verstraeten, B. Schrauwen and S. Massar, Scientific Reports 2, 514 (2012)",
            corrects_bias=False,
        ),
    )
}
