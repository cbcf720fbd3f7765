"""Checks: one mistake per function, in one table. What they find is kept in the result and shown wherever it is.

A check is a function of a `Case` that yields `Check` sentences; ``CHECKS["mine"] = function`` adds one.
"""

from collections.abc import Callable, Iterator

from ..errors import Check
from . import _checks
from ._checks import Case

CHECKS: dict[str, Callable[[Case], Iterator[Check]]] = {
    "inputs off": _checks.inputs_off,
    "shifted": _checks.shifted,
    "correlated": _checks.correlated,
    "saturated": _checks.saturated,
    "dependent readouts": _checks.dependent_readouts,
    "few samples": _checks.few_samples,
    "above the rank": _checks.above_the_rank,
    "repeats off": _checks.repeats_off,
    "left out": _checks.left_out,
}


def run_checks(case: Case) -> tuple[Check, ...]:
    """What the method had to say, then everything that the checks of the table find, in its order, each once.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 1, 3)
    >>> u = infocap.draw(basis, 64, seed=1)
    >>> evidence = infocap.evidence(u, u**3, basis)
    >>> method = infocap.ESTIMATORS["raw"]
    >>> run_checks(Case(evidence, method, method(evidence), total=2.0))
    ()
    """
    said = [one if isinstance(one, Check) else Check(one) for one in case.estimate.checks]
    return tuple(dict.fromkeys([*said, *(one for check in CHECKS.values() for one in check(case))]))


__all__ = ["CHECKS", "Case", "Check", "run_checks"]
