"""compare: results side by side, and by how much they differ beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from .._formatting import HALF_WIDTH_95, counted, listed, rounded, with_error
from .._validation import probability
from ..basis._product import ProductBasis
from ..errors import Check, DataError, ParameterError, warn
from ..kernels._summary import benjamini_hochberg, stretch_error
from ..result._capacity_result import CapacityResult, per_term
from ..typing import Floats

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95
# Degrees of freedom of Student's distribution: single capacities scatter with heavier tails than the normal one.
FREEDOM = 10
# A difference below this is rounding.
SMALLEST = 1e-7


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
        """One row per device: total and its difference from the first, with intervals."""
        known = [(one.total, one.total_standard_error, one.rank) for one in self.results]
        total, error, most = np.array(known, dtype=float).T[
            :, :, None
        ]  # an error of None becomes NaN
        return self._table("total", ["total"], total, error, most, level)

    def by_degree(self, level: float = LEVEL) -> pd.DataFrame:
        """One row per degree and device.

        The standard error of a degree is the root of the sum of squares over its functions: in simulated runs the
        sums scatter by 0.7 to 1.2 times that (docs/compare.md).
        """
        degrees, names = (
            self.basis.degrees,
            [str(degree) for degree in range(self.basis.max_degree + 1)],
        )
        values = np.array([np.bincount(degrees, values) for values in self._values])
        errors = np.sqrt(
            [
                np.bincount(degrees, one**2, minlength=self.basis.max_degree + 1)
                for one in self._errors
            ]
        )
        most = np.array([np.minimum(np.bincount(degrees), one.rank) for one in self.results])
        return self._table("degree", names, values, errors, most, level)

    def functions(self, level: float = LEVEL, false_discovery_rate: float = 0.05) -> pd.DataFrame:
        """One row per function and device; `significant` where it differs from the first device.

        Of the functions said to differ at most `false_discovery_rate` are false on average (Benjamini and
        Hochberg, for each device by itself).
        """
        values, errors = np.array(self._values), np.array(self._errors)
        table = self._table(
            "function", self.basis.labels, values, errors, np.ones_like(values), level
        )
        rate = probability("false_discovery_rate", false_discovery_rate)
        step, error = np.abs(values - values[0]), np.hypot(errors, errors[0])
        alive = np.array([one.capacity > 0 for one in self.results])
        tested = (alive | alive[0]) & (step > SMALLEST) & np.isfinite(error)
        p = np.ones_like(values)  # where both are nothing, or nothing is known
        p[tested] = 2 * scipy.special.stdtr(
            FREEDOM, -step[tested] / np.maximum(error[tested], SMALLEST)
        )
        clear = np.array([benjamini_hochberg(one, rate) for one in p])
        return table.assign(p_value=p.T.ravel(), significant=clear.T.ravel())

    def to_dataframe(self) -> pd.DataFrame:
        """Everything in one table: total, degrees and functions, one row per quantity and device."""
        import pandas as pd

        return pd.concat([self.totals(), self.by_degree(), self.functions()], ignore_index=True)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: HTML from the report, which is loaded by name."""
        return str(import_module("infocap.lab.report").notebook(self))

    def __repr__(self) -> str:
        """Totals, degrees, and the functions that differ most, as a person wants to read them."""
        basis, names = self.basis, self.names
        totals = [["", "total", "of", f"minus {names[0]}"]]
        for (_, row), result in zip(self.totals().iterrows(), self.results, strict=True):
            step = _difference(row)
            if step and (result.unreliable or self.results[0].unreliable):
                step = f"about {rounded(row.difference, row.difference_standard_error)}"
            total = result.qualified_total or with_error(
                row.capacity, row.standard_error, HALF_WIDTH_95
            )
            totals.append([row.device, total, str(result.maximum), step])
        degrees = [["degree", *names, *(f"{name} - {names[0]}" for name in names[1:])]]
        for degree, part in self.by_degree().groupby("name", sort=False):
            if basis.max_degree <= 20 or part.capacity.max() >= 0.0005:
                rows = [row for _, row in part.iterrows()]
                values = [f"{row.capacity:z.3f}" for row in rows]
                degrees.append([str(degree), *values, *(_difference(row) for row in rows[1:])])
        lines = [
            f"Comparison of {len(names)} results over {len(basis)} {basis.family_name} functions of "
            f"{basis.n_inputs} inputs; ± reaches over the 95 % interval, * is a difference beyond it",
            *("", *_columns(totals), "", *_columns(degrees)),
        ]
        table = self.functions()
        for name in names[1:]:
            ours = table[table.device == name]
            clear = ours[ours.significant]
            said = f"  {len(clear)} of {len(ours)} functions differ between {names[0]} and {name}"
            if not np.isfinite(ours.difference_standard_error).any():
                said = "  without error bars nobody can say which functions differ"
            lines += [
                "",
                f"{said} (at most 5 % of these by chance); the most:" if len(clear) else said,
            ]
            largest = clear.sort_values("difference", key=abs, ascending=False, kind="stable")[:5]
            lines += _columns(
                [[f"  {row['name']}", _difference(row)] for _, row in largest.iterrows()]
            )
        return "\n".join([*lines, *(f"  check: {check}" for check in self.checks)])

    @property
    def _values(self) -> list[Floats]:
        return [one.capacity if one.unbiased is None else one.unbiased for one in self.results]

    @property
    def _errors(self) -> list[Floats]:
        unknown = np.full(len(self.basis), np.nan)
        return [
            unknown if one.standard_error is None else one.standard_error for one in self.results
        ]

    def _table(
        self,
        kind: str,
        names: Sequence[str],
        values: Floats,
        errors: Floats,
        most: Floats,
        level: float,
    ) -> pd.DataFrame:
        """Values (devices, quantities) and their errors, as a table of one row per quantity and device."""
        import pandas as pd

        half_width = float(scipy.special.ndtri(0.5 + probability("level", level) / 2))
        step, error = values - values[0], np.hypot(errors, errors[0])
        step[0] = error[0] = np.nan
        columns = {
            "capacity": values,
            "standard_error": errors,
            "low": np.clip(values - half_width * errors, 0.0, most),
            "high": np.clip(values + half_width * errors, 0.0, most),
            "difference": step,
            "difference_standard_error": error,
            "difference_low": step - half_width * error,
            "difference_high": step + half_width * error,
        }
        rows = {
            "name": np.repeat(list(names), len(values)),
            "device": np.tile(self.names, len(names)),
        }
        numbers = {name: column.T.ravel() for name, column in columns.items()}
        return pd.DataFrame({"quantity": kind, **rows, **numbers})


def compare(*results: CapacityResult, names: Sequence[str] | None = None) -> Comparison:
    """Put results side by side: totals, degrees and functions, and their differences from the first.

    All must be about functions of the same family and interval of the inputs; where the degrees differ, the functions
    in common are compared, and a warning says so.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> a, b = (infocap.systems.RandomFeatures(2, size, noise=0.01) for size in (5, 9))
    >>> comparison = infocap.compare(*(infocap.probe(one, basis, 1024, seed=1) for one in (a, b)))
    >>> row = comparison.totals().iloc[1]
    >>> bool(2.5 < row.difference_low < row.difference_high < 4)
    True
    """
    if len(results) < 2:
        raise ParameterError(f"compare needs two results or more; got {len(results)}.")
    for one in results:
        if not isinstance(one, CapacityResult):
            raise ParameterError(
                f"{one!r} is not a CapacityResult; load_result(path) reads one from a file."
            )
    numbered = [f"device {k + 1}" for k in range(len(results))]
    called = tuple(map(str, numbered if names is None else names))
    if isinstance(names, str) or len(called) != len(results) or len(set(called)) < len(results):
        raise ParameterError(
            f"`names={names!r}` must be {len(results)} different names, one per result."
        )
    first = results[0].basis
    for name, one in zip(called, results, strict=True):
        if one.basis.families != first.families or one.basis.of_sequences != first.of_sequences:
            raise DataError(
                f"{called[0]} is about {_inputs(first)}, {name} about {_inputs(one.basis)}: their capacities are of "
                "different functions and cannot be compared; estimate both with the same family and domain."
            )
    places = np.array([first.places(one.basis) for one in results])
    places = places[:, np.all(places >= 0, axis=0)]  # (devices, functions in common)
    common = tuple(map(_restricted, results, places))
    checks, named = list[Check](), list(zip(called, results, strict=True))
    if common != results:
        sizes = [
            f"{name} has {len(one.basis)} up to degree {one.basis.max_degree}"
            for name, one in named
        ]
        said = f"the results have different functions ({listed(sizes)}): only the {places.shape[1]} in common are"
        checks.append(
            Check(
                f"{said} compared and make up the totals; estimate all with one basis to compare everything."
            )
        )
    if bare := [
        f"{name} ({one.method})" for name, one in named if one.total_standard_error is None
    ]:
        said = f"there are no error bars for {listed(bare)}, so no intervals of the differences"
        checks.append(
            Check(f"{said}; use the method 'control-variate', or another with `jackknife=16`.")
        )
    if doubtful := [name for name, one in named if one.unreliable]:
        said = f"the total of {listed(doubtful)} is unreliable, and so are differences from it"
        checks.append(Check(f"{said}; look at its checks, which say why."))
    if len(methods := list(dict.fromkeys(one.method for one in results))) > 1:
        said = f"results come from different methods ({listed(methods)}), which explain part of a difference"
        checks.append(Check(f"{said}; estimate all with one method."))
    for check in checks:
        warn(check)
    return Comparison(called, common, tuple(checks))


def _inputs(basis: ProductBasis) -> str:
    """The inputs and their distribution."""
    on = ((one.name, one.distribution, one.domain) for one in basis.families)
    kinds = [
        f"{name} ({distribution}) on [{low:g}, {high:g}]" for name, distribution, (low, high) in on
    ]
    delays = " at several delays" * basis.of_sequences
    return f"{counted(basis.n_inputs, 'input')}{delays}, {listed(list(dict.fromkeys(kinds)), 3)}"


def _restricted(result: CapacityResult, rows: Any) -> CapacityResult:
    """The result for some of its functions, by their places; the result itself where those are all."""
    if len(rows) == len(result.basis):
        return result
    known = {name: column[rows] for name, column in per_term(result).items()}
    error = (
        None
        if result.standard_error is None
        else float(np.linalg.norm(result.standard_error[rows]))
    )
    stretches = None if result.without_stretches is None else result.without_stretches[:, rows]
    return replace(
        result,
        **known,
        basis=result.basis.subset(rows),
        total=float(known.get("unbiased", known["capacity"]).sum()),
        total_standard_error=error if stretches is None else stretch_error(stretches.sum(axis=1)),
        without_stretches=stretches,
        coordinates=tuple(part[:, rows] for part in result.coordinates),
    )


def _difference(row: pd.Series) -> str:
    """A difference, how far its interval reaches, and a star where that leaves out zero."""
    if np.isnan(row.difference):
        return ""
    said = with_error(row.difference, row.difference_standard_error, HALF_WIDTH_95)
    beyond = (row.difference_low > 0 or row.difference_high < 0) and abs(row.difference) > SMALLEST
    return f"{'' if said.startswith('-') else '+'}{said}{' *' if beyond else '  '}"


def _columns(rows: list[list[str]]) -> list[str]:
    """A table: the first column to the left, the others to the right."""
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)] or [0]
    form = "   ".join([f"  {{:<{first}}}", *(f"{{:>{width}}}" for width in others)])
    return [form.format(*row).rstrip() for row in rows]
