"""What a check of the answer sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..dimension import Repeats
from ..typing import Integers

if TYPE_CHECKING:
    from ..estimators import Estimate, Evidence, Method


@dataclass(frozen=True, eq=False)
class Case:
    """What a check sees: the evidence, the method, what it found, and what repeats say.

    Parameters
    ----------
    evidence, method, estimate
        The sums over the samples, the method, and its capacities.
    total
        The total capacity.
    repeats
        The noise analysis of the rows that were measured twice; None if there are none.
    repeated
        The numbers of these rows.

    Examples
    --------
    >>> import infocap
    >>> def few_functions(case):
    ...     text = f"{len(case.evidence.basis)} functions, total {case.total:.0f}"
    ...     yield infocap.errors.Check(text, "note")
    >>> infocap.diagnostics.CHECKS["mine"] = few_functions
    >>> infocap.probe(lambda u: u, infocap.product_basis("legendre", 1, 3), 64, seed=1).notes[-1]
    '4 functions, total 2'
    >>> del infocap.diagnostics.CHECKS["mine"]
    """

    evidence: Evidence
    method: Method
    estimate: Estimate
    total: float
    repeats: Repeats | None = None
    repeated: Integers | None = None
