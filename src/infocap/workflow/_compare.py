"""compare: results side by side, and by how much they differ beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import probability
from .._words import listed
from ..basis import ProductBasis
from ..errors import DataError, ParameterError, warn
from ..estimators import benjamini_hochberg
from ..result import CapacityResult
from ..typing import Floats

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95
RATE = 0.05  # of false ones among the functions said to differ
FREEDOM = 10  # of Student's distribution: single capacities scatter with heavier tails than the normal one
SMALLEST = 1e-7  # a difference below is rounding


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Results of several devices for the same functions; differences are against the first.

    The runs are taken as independent, so the squares of their standard errors add. Capacities are the unbiased
    ones where the method gives them, so that single functions and degrees add up to the total.
    """

    names: tuple[str, ...]
    results: tuple[CapacityResult, ...]  # over the functions in common
    checks: tuple[str, ...] = ()

    @property
    def basis(self) -> ProductBasis:
        """The functions that are compared."""
        return self.results[0].basis

    def totals(self, level: float = LEVEL) -> pd.DataFrame:
        """One row a device: total and its difference from the first, with intervals."""
        return self._table(
            "total",
            ["total"],
            np.array([[one.total] for one in self.results]),
            np.array([[_maybe(one.total_standard_error)] for one in self.results]),
            np.array([[float(one.rank)] for one in self.results]),
            level,
        )

    def by_degree(self, level: float = LEVEL) -> pd.DataFrame:
        """One row a degree and device.

        The standard error of a degree is the root of the sum of squares over its functions: in simulated runs the
        sums scatter by 0.7 to 1.2 times that (docs/compare.md).
        """
        degrees, count = self.basis.degrees, self.basis.max_degree + 1
        squares = [np.bincount(degrees, error**2, minlength=count) for error in self._errors]
        return self._table(
            "degree",
            [str(degree) for degree in range(count)],
            np.array([np.bincount(degrees, values, minlength=count) for values in self._values]),
            np.sqrt(squares),
            np.array([np.minimum(np.bincount(degrees, minlength=count), one.rank) for one in self.results]),
            level,
        )

    def functions(self, level: float = LEVEL, false_discovery_rate: float = RATE) -> pd.DataFrame:
        """One row a function and device; `significant` where it differs from the first device.

        Of the functions said to differ at most `false_discovery_rate` are false on average (Benjamini and
        Hochberg, for each device by itself).
        """
        values, errors = np.array(self._values), np.array(self._errors)
        table = self._table("function", self.basis.labels, values, errors, np.ones_like(values), level)
        rate = probability("false_discovery_rate", false_discovery_rate)
        p = np.array([self._p_values(device) for device in range(len(values))])
        clear = np.array([benjamini_hochberg(one, rate) for one in p])
        return table.assign(p_value=p.T.ravel(), significant=clear.T.ravel())

    def to_dataframe(self) -> pd.DataFrame:
        """Everything in one table: total, degrees and functions, one row a quantity and device."""
        import pandas as pd

        return pd.concat([self.totals(), self.by_degree(), self.functions()], ignore_index=True)

    def __repr__(self) -> str:
        from ._compare_text import as_text

        return as_text(self)

    @property
    def _values(self) -> list[Floats]:
        return [one.capacity if one.unbiased is None else one.unbiased for one in self.results]

    @property
    def _errors(self) -> list[Floats]:
        return [
            np.full(len(self.basis), np.nan) if one.standard_error is None else one.standard_error
            for one in self.results
        ]

    def _p_values(self, device: int) -> Floats:
        """Two-sided, of the differences from the first device; 1 where both are nothing, or nothing is known."""
        from scipy.special import stdtr

        step = self._values[device] - self._values[0]
        error = np.hypot(self._errors[device], self._errors[0])
        alive = (self.results[device].capacity > 0) | (self.results[0].capacity > 0)
        tested = alive & (np.abs(step) > SMALLEST) & np.isfinite(error)
        p = np.ones(len(step))
        p[tested] = 2 * stdtr(FREEDOM, -np.abs(step[tested]) / np.maximum(error[tested], SMALLEST))
        return p

    def _table(
        self, kind: str, names: Sequence[str], values: Floats, errors: Floats, most: Floats, level: float
    ) -> pd.DataFrame:
        """Values (devices, quantities) and their errors, as a table of one row a quantity and device."""
        import pandas as pd
        from scipy.special import ndtri

        reach = float(ndtri(0.5 + probability("level", level) / 2))
        step, spread = values - values[0], np.hypot(errors, errors[0])
        step[0] = spread[0] = np.nan
        columns = {
            "capacity": values,
            "standard_error": errors,
            "low": np.clip(values - reach * errors, 0.0, most),
            "high": np.clip(values + reach * errors, 0.0, most),
            "difference": step,
            "difference_standard_error": spread,
            "difference_low": step - reach * spread,
            "difference_high": step + reach * spread,
        }
        return pd.DataFrame(
            {
                "quantity": kind,
                "name": np.repeat(list(names), len(values)),
                "device": np.tile(self.names, len(names)),
                **{name: column.T.ravel() for name, column in columns.items()},
            }
        )


def compare(*results: CapacityResult, names: Sequence[str] | None = None) -> Comparison:
    """Put results side by side: totals, degrees and functions, and their differences from the first.

    All must be about functions of the same family and interval of the inputs; where the degrees differ, the functions
    in common are compared, and a warning says so.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> a, b = (infocap.systems.RandomFeatures(2, size, noise=0.01) for size in (5, 9))
    >>> comparison = infocap.compare(infocap.probe(a, basis, 512, seed=1), infocap.probe(b, basis, 512, seed=2))
    >>> row = comparison.totals().iloc[1]
    >>> bool(3 < row.difference_low < row.difference_high < 5)
    True
    """
    if len(results) < 2:
        raise ParameterError(f"compare needs two results or more; got {len(results)}.")
    for one in results:
        if not isinstance(one, CapacityResult):
            raise ParameterError(f"{one!r} is not a CapacityResult; load_result(path) reads one from a file.")
    called = _names(names, len(results))
    _refuse_other_bases(called, results)
    common, checks = _in_common(called, results)
    checks += _weaknesses(called, results)
    for check in checks:
        warn(check)
    return Comparison(called, common, tuple(checks))


def _names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"device {number + 1}" for number in range(count))
    called = tuple(str(name) for name in names)
    if isinstance(names, str) or len(called) != count or len(set(called)) < count:
        raise ParameterError(f"`names={names!r}` must be {count} different names, one for each result.")
    return called


def _refuse_other_bases(names: Sequence[str], results: Sequence[CapacityResult]) -> None:
    first = results[0].basis
    for name, one in zip(names, results, strict=True):
        if one.basis.families != first.families:
            raise DataError(
                f"{names[0]} is about {_inputs(first)}, {name} about {_inputs(one.basis)}: their capacities are of "
                "different functions and cannot be compared; estimate both with the same family and domain."
            )


def _inputs(basis: ProductBasis) -> str:
    """The inputs and their distribution."""
    kinds = [
        f"{family.name} ({family.distribution}) on [{family.domain[0]:g}, {family.domain[1]:g}]"
        for family in basis.families
    ]
    return (
        f"{basis.n_inputs} input{'s' if basis.n_inputs > 1 else ''}, {listed(list(dict.fromkeys(kinds)), 3)}"
    )


def _in_common(
    names: Sequence[str], results: Sequence[CapacityResult]
) -> tuple[tuple[CapacityResult, ...], list[str]]:
    """The results over the functions that all of them have."""
    places = [{row: k for k, row in enumerate(map(tuple, one.basis.indices.tolist()))} for one in results]
    shared = [row for row in places[0] if all(row in place for place in places)]
    if all(len(shared) == len(place) for place in places):
        return tuple(results), []
    sizes = [
        f"{name} has {len(one.basis)} up to degree {one.basis.max_degree}"
        for name, one in zip(names, results, strict=True)
    ]
    common = [
        _restricted(one, np.array([place[row] for row in shared]))
        for one, place in zip(results, places, strict=True)
    ]
    return tuple(common), [
        f"the results have different functions ({listed(sizes)}): compared are the {len(shared)} in common, and the "
        "totals are of those."
    ]


def _restricted(result: CapacityResult, rows: Any) -> CapacityResult:
    """The same result for some of its functions."""
    if len(rows) == len(result.basis):
        return result
    known = {
        name: getattr(result, name)[rows]
        for name in ("capacity", "raw", "standard_error", "p_value", "threshold", "unbiased")
        if getattr(result, name) is not None
    }
    error = known.get("standard_error")
    return replace(
        result,
        **known,
        basis=ProductBasis(result.basis.families, result.basis.indices[rows]),
        total=float(known.get("unbiased", known["capacity"]).sum()),
        total_standard_error=None if error is None else float(np.sqrt(np.sum(error**2))),
        coordinates=tuple(part[:, rows] for part in result.coordinates),
    )


def _weaknesses(names: Sequence[str], results: Sequence[CapacityResult]) -> list[str]:
    """What makes the comparison weaker than it looks."""
    checks = []
    bare = [
        f"{name} ({one.method})"
        for name, one in zip(names, results, strict=True)
        if one.total_standard_error is None
    ]
    if bare:
        checks.append(
            f"no error bars for {listed(bare)}, so no interval of the differences; estimate with method "
            "'control-variate', or another with jackknife=16."
        )
    methods = list(dict.fromkeys(one.method for one in results))
    if len(methods) > 1:
        checks.append(
            f"the results come from different methods ({listed(methods)}); part of a difference may be theirs."
        )
    return checks


def _maybe(value: float | None) -> float:
    return np.nan if value is None else value
