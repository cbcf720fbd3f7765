"""compare: results side by side, and by how much they differ beyond chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from .._formatting import (
    HALF_WIDTH_95,
    counted,
    html_for_notebook,
    join_names,
    rounded,
    with_error,
)
from .._validation import checks_arguments, require_boolean, shown
from ..basis import ProductBasis
from ..errors import Check, DataError, ParameterError, warn
from ..kernels import benjamini_hochberg, jackknife_error_of_groups
from ..result import CANNOT_BE_TOLD, Capacity, CapacityResult, errors_by_degree
from ..typing import Booleans, Floats

if TYPE_CHECKING:
    import pandas as pd

# Degrees of freedom of Student's distribution: single capacities scatter with heavier tails than
# the normal one.
DEGREES_OF_FREEDOM_OF_STUDENT = 10
# A difference below this is rounding.
SMALLEST_DIFFERENCE = 1e-7
# The share of the functions said to differ that may be false on average.
FALSE_DISCOVERY_RATE = 0.05
# Degrees up to which every degree has a row in the terminal; of higher ones only those with
# capacity.
MAX_DEGREE_WITH_ALL_ROWS = 20
# Capacities below this show as zero in the terminal.
SMALLEST_SHOWN = 0.0005
# Difference of correlations of inputs, beyond so many standard errors, from which on two recordings
# have different drives.
MAX_DIFFERENCE_OF_CORRELATIONS = 0.05
MAX_STANDARD_ERRORS = 4.0
# Functions that differ most, shown for each device.
MAX_FUNCTIONS_SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Results of several devices for the same functions; differences are against the first.

    Runs at different inputs are independent, so the squares of their standard errors add. At the
    same inputs, leaving out a group of samples changes both devices alike, and the differences of
    these changes give the errors of totals and degrees. Capacities are the unbiased ones where the
    method gives them, so that single functions and degrees add up to the total. Intervals hold with
    95 %.

    Attributes
    ----------
    names
        The name of each device.
    results
        The result of each device, for the functions that all results have in common.
    checks
        Warnings about differences that have other causes than the devices.
    """

    names: tuple[str, ...]
    results: tuple[CapacityResult, ...]
    checks: tuple[Check, ...] = ()

    @property
    def basis(self) -> ProductBasis:
        """The functions that are compared."""
        return self.results[0].basis

    def totals(self) -> pd.DataFrame:
        """Return one row per device: total and its difference from the first, with intervals."""
        totals = np.array([[result.total] for result in self.results])
        errors = [[result.total_standard_error] for result in self.results]
        ranks = np.array([[result.rank] for result in self.results])
        all_functions = np.ones(len(self.basis), dtype=bool)
        # An error of None becomes NaN.
        return self._table(
            "total",
            ["total"],
            values=totals,
            errors=np.array(errors, dtype=float),
            largest=ranks,
            sums_over=[all_functions],
        )

    def by_degree(self) -> pd.DataFrame:
        """Return one row per degree and device.

        The standard error of a degree comes from the groups of samples, or the stretches of a
        sequence, that were left out in turn, because errors of functions are correlated. For
        methods without groups it is the root of the sum of squares over its functions.
        """
        degrees = self.basis.degrees
        names = [str(degree) for degree in range(self.basis.max_degree + 1)]
        values = np.array([np.bincount(degrees, of_functions) for of_functions in self._values])
        unknown = np.full(len(names), np.nan)
        errors = []
        for result in self.results:
            errors_of_result = errors_by_degree(result)
            errors.append(unknown if errors_of_result is None else errors_of_result)
        sizes = np.bincount(degrees)
        largest = np.array([np.minimum(sizes, result.rank) for result in self.results])
        return self._table(
            "degree",
            names,
            values=values,
            errors=np.array(errors),
            largest=largest,
            sums_over=[degrees == degree for degree in range(len(names))],
        )

    def functions(self) -> pd.DataFrame:
        """Return one row per function and device; `significant` ones differ from the first device.

        Of the functions said to differ at most 5 % are false on average (Benjamini and Hochberg,
        for each device by itself).
        """
        values = np.array(self._values)
        errors = np.array(self._errors)
        table = self._table(
            "function",
            self.basis.labels,
            values=values,
            errors=errors,
            largest=np.ones_like(values),
        )
        differences = np.abs(values - values[0])
        error_of_difference = np.hypot(errors, errors[0])
        shown = np.array([result.capacity > 0 for result in self.results])
        tested = (shown | shown[0]) & (differences > SMALLEST_DIFFERENCE)
        tested &= np.isfinite(error_of_difference)
        # Where both are zero, or no error is known, nothing is tested and p is 1.
        p_values = np.ones_like(values)
        floored = np.maximum(error_of_difference[tested], SMALLEST_DIFFERENCE)
        p_values[tested] = 2 * scipy.special.stdtr(
            DEGREES_OF_FREEDOM_OF_STUDENT, -differences[tested] / floored
        )
        significant = [benjamini_hochberg(p, FALSE_DISCOVERY_RATE) for p in p_values]
        # Rows of the table are in the order of the functions, and of devices for each of them.
        return table.assign(
            p_value=p_values.T.ravel(),
            significant=np.array(significant).T.ravel(),
        )

    def to_dataframe(self) -> pd.DataFrame:
        """Return total, degrees and functions in one table, one row per quantity and device."""
        import pandas as pd

        return pd.concat([self.totals(), self.by_degree(), self.functions()], ignore_index=True)

    def __repr__(self) -> str:
        """Return the table and the checks, as text."""
        checks = [f"  check: {check}" for check in self.checks]
        return "\n".join([*self.table_lines(), *checks])

    def table_lines(self) -> list[str]:
        """Return totals, degrees, and the functions that differ most, one line per row."""
        title = (
            f"Comparison of {len(self.names)} results over {len(self.basis)} "
            f"{self.basis.family_name} functions of {self.basis.n_inputs} inputs; ± reaches over "
            "the 95 % interval, * is a difference beyond it"
        )
        lines = [title, "", *self._lines_of_totals(), "", *self._lines_of_degrees()]
        return lines + self._lines_of_functions()

    def _repr_html_(self) -> str | None:
        return html_for_notebook(self)

    def _lines_of_totals(self) -> list[str]:
        """Return one line per device: total, maximum and difference from the first."""
        first = self.results[0]
        rows = [["", "total", "of", f"minus {self.names[0]}"]]
        for (_, row), result in zip(self.totals().iterrows(), self.results, strict=True):
            difference = _difference(row, result.rank)
            is_known = difference and difference != CANNOT_BE_TOLD
            if is_known and (result.unreliable or first.unreliable):
                difference = f"about {rounded(row.difference, row.difference_standard_error)}"
            total = result.qualified_total
            if not total:
                total = with_error(row.capacity, row.standard_error, HALF_WIDTH_95)
            if result.components is None:
                rows.append([row.device, total, str(result.maximum), difference])
            else:
                rows.append([row.device, f"at least {total}", "", difference])
        return _columns(rows)

    def _lines_of_degrees(self) -> list[str]:
        """Return one line per degree: the capacities of all devices, and their differences."""
        names_of_differences = [f"{name} - {self.names[0]}" for name in self.names[1:]]
        rows = [["degree", *self.names, *names_of_differences]]
        shows_all = self.basis.max_degree <= MAX_DEGREE_WITH_ALL_ROWS
        for degree, devices in self.by_degree().groupby("name", sort=False):
            if shows_all or devices.capacity.max() >= SMALLEST_SHOWN:
                capacities = []
                for result, (_, row) in zip(self.results, devices.iterrows(), strict=True):
                    capacity = Capacity(row.capacity, row.standard_error, result.rank)
                    is_known = capacity.can_be_told
                    capacities.append(f"{row.capacity:z.3f}" if is_known else CANNOT_BE_TOLD)
                rank = self.results[0].rank
                differences = [_difference(row, rank) for _, row in devices.iloc[1:].iterrows()]
                rows.append([str(degree), *capacities, *differences])
        return _columns(rows)

    def _lines_of_functions(self) -> list[str]:
        """Return, for each other device, the functions that differ most from the first device."""
        table = self.functions()
        lines = []
        for name in self.names[1:]:
            of_device = table[table.device == name]
            significant = of_device[of_device.significant]
            if not np.isfinite(of_device.difference_standard_error).any():
                sentence = "  without error bars it is not known which functions differ"
            else:
                counts = f"{len(significant)} of {len(of_device)} functions"
                sentence = f"  {counts} differ between {self.names[0]} and {name}"
            if len(significant):
                sentence += " (at most 5 % of these by chance); the most:"
            by_size = significant.sort_values("difference", key=abs, ascending=False, kind="stable")
            rows = [
                [f"  {row['name']}", _difference(row, largest=1)]
                for _, row in by_size.iloc[:MAX_FUNCTIONS_SHOWN].iterrows()
            ]
            lines += ["", sentence, *_columns(rows)]
        return lines

    @property
    def _values(self) -> list[Floats]:
        values = []
        for result in self.results:
            values.append(result.capacity if result.unbiased is None else result.unbiased)
        return values

    @property
    def _errors(self) -> list[Floats]:
        unknown = np.full(len(self.basis), np.nan)
        errors = []
        for result in self.results:
            errors.append(unknown if result.standard_error is None else result.standard_error)
        return errors

    def _errors_of_differences(self, errors: Floats, sums_over: Sequence[Booleans]) -> Floats:
        """Return the standard errors of differences from the first device, (devices, quantities).

        `sums_over` are the functions that are summed up in each quantity; empty for quantities that
        are no sums.
        """
        first = self.results[0]
        errors_of_differences = np.hypot(errors, errors[0])
        for device, result in enumerate(self.results):
            if not _have_same_groups(result, first):
                continue
            for quantity, chosen in enumerate(sums_over):
                errors_of_differences[device, quantity] = _paired_error(
                    _sum_without_groups(result, chosen),
                    _sum_without_groups(first, chosen),
                    (errors[device, quantity], errors[0, quantity]),
                )
        return errors_of_differences

    def _table(
        self,
        kind: str,
        names: Sequence[str],
        *,
        values: Floats,
        errors: Floats,
        largest: Floats,
        sums_over: Sequence[Booleans] = (),
    ) -> pd.DataFrame:
        """Return values (devices, quantities) and their errors as a table.

        It has a row for each value.
        Intervals do not reach beyond the `largest` values that are possible.
        """
        import pandas as pd

        difference = values - values[0]
        error = self._errors_of_differences(errors, sums_over)
        difference[0] = np.nan
        error[0] = np.nan
        columns = {
            "capacity": values,
            "standard_error": errors,
            "low": np.clip(values - HALF_WIDTH_95 * errors, 0.0, largest),
            "high": np.clip(values + HALF_WIDTH_95 * errors, 0.0, largest),
            "difference": difference,
            "difference_standard_error": error,
            "difference_low": difference - HALF_WIDTH_95 * error,
            "difference_high": difference + HALF_WIDTH_95 * error,
        }
        table: dict[str, Any] = {
            "quantity": kind,
            "name": np.repeat(list(names), len(values)),
            "device": np.tile(self.names, len(names)),
        }
        for name, column in columns.items():
            table[name] = column.T.ravel()
        return pd.DataFrame(table)


def _have_same_groups(result: CapacityResult, other: CapacityResult) -> bool:
    """Whether both come from the same inputs in the same order, and so from the same groups."""
    if result.without_groups is None or other.without_groups is None:
        return False
    if result.inputs_fingerprint is None:
        return False
    return result.inputs_fingerprint == other.inputs_fingerprint


def _sum_without_groups(result: CapacityResult, chosen: Booleans) -> Floats:
    """Return the sum of some capacities without each group of samples, (groups,)."""
    assert result.without_groups is not None
    sums: Floats = result.without_groups[:, chosen].sum(axis=1)
    return sums


def _paired_error(without: Floats, without_of_other: Floats, errors: tuple[float, float]) -> float:
    """Return the standard error of the difference of two sums from the same groups of samples.

    What the errors of both hold beyond their jackknives is not shared, so its squares add.
    """
    variance = jackknife_error_of_groups(without - without_of_other) ** 2
    for error, sums in zip(errors, (without, without_of_other), strict=True):
        variance += max(error**2 - jackknife_error_of_groups(sums) ** 2, 0.0)
    return float(np.sqrt(variance))


@checks_arguments
def compare(
    *results: CapacityResult | Sequence[CapacityResult],
    names: Sequence[str] | None = None,
    different_drives: bool = False,
) -> Comparison:
    """Put results side by side: totals, degrees and functions, and how these differ.

    Parameters
    ----------
    results
        Two results or more, one after the other or as a list. All must be about functions of the
        same family and interval of the inputs; where the degrees differ, the functions in common
        are compared, and a warning says so. Lower bounds must be of equally many components.
    names
        One name per result, by default "device 1", "device 2", ...
    different_drives
        Compare results under the law of recorded inputs although these inputs were different ones.
        What they differ by is then not the devices' doing alone.

    Returns
    -------
    Comparison
        Tables of totals, degrees and functions.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> small = infocap.systems.RandomFeatures(2, 5, noise=0.01)
    >>> large = infocap.systems.RandomFeatures(2, 9, noise=0.01)
    >>> results = [infocap.probe(system, basis, 1024, seed=1) for system in (small, large)]
    >>> comparison = infocap.compare(results)
    >>> row = comparison.totals().iloc[1]
    >>> bool(2.5 < row.difference_low < row.difference_high < 4)
    True
    """
    if len(results) == 1 and isinstance(results[0], Sequence):
        results = tuple(results[0])
    compared = []
    for result in results:
        if not isinstance(result, CapacityResult):
            raise ParameterError(
                f"{result!r} is not a CapacityResult; load_result(path) reads one from a file."
            )
        compared.append(result)
    if len(compared) < 2:
        raise ParameterError(f"compare needs two results or more; got {len(compared)}.")
    device_names = _device_names(names, len(compared))
    first = compared[0].basis
    _refuse_different_laws(device_names, compared)
    if not require_boolean("different_drives", different_drives):
        _refuse_different_drives(device_names, compared)
    for name, result in zip(device_names, compared, strict=True):
        basis = result.basis
        # Under the recorded law every recording has polynomials of its own.
        same_inputs = basis.families == first.families or result.law == "recorded"
        same_inputs = same_inputs and basis.n_inputs == first.n_inputs
        if not same_inputs or basis.of_sequences != first.of_sequences:
            raise DataError(
                f"{device_names[0]} is about {_inputs(first)}, {name} about {_inputs(basis)}: "
                "their capacities are of different functions and cannot be compared; estimate both "
                "with the same family and domain."
            )
    _refuse_unequal_components(device_names, compared)
    positions = np.array([first.positions_in(result.basis) for result in compared])
    in_common = np.all(positions >= 0, axis=0)
    for result, places in zip(compared, positions, strict=True):
        in_common &= result.told_apart[places]
    common = tuple(
        result.of_functions(rows)
        for result, rows in zip(compared, positions[:, in_common], strict=True)
    )
    checks = tuple(_weaknesses(device_names, compared, common))
    for check in checks:
        if check.kind == "warning":
            warn(check)
    return Comparison(device_names, common, checks)


def _refuse_unequal_components(names: Sequence[str], results: Sequence[CapacityResult]) -> None:
    """Refuse lower bounds from different numbers of components, of which more hold more."""
    numbers = set()
    for result in results:
        numbers.add(None if result.components is None else result.components.n_components)
    if len(numbers) == 1:
        return
    descriptions = [
        f"{name} {result.readouts_in_words}" for name, result in zip(names, results, strict=True)
    ]
    raise DataError(
        f"the results are of different numbers of components ({join_names(descriptions)}), and "
        "more components hold more; estimate all with the same `n_components`, a number instead of "
        "'auto'."
    )


def _device_names(names: Sequence[str] | None, n_results: int) -> tuple[str, ...]:
    """Return one different name per result."""
    if names is None:
        return tuple(f"device {number}" for number in range(1, n_results + 1))
    device_names = tuple(map(str, names))
    if isinstance(names, str) or len(names) != n_results or len(set(device_names)) < n_results:
        raise ParameterError(
            f"`names={shown(names)}` must be {n_results} different names, one per result."
        )
    return device_names


def _refuse_different_laws(names: Sequence[str], results: Sequence[CapacityResult]) -> None:
    """Refuse results without numbers, and capacities under different laws of the inputs."""
    for name, result in zip(names, results, strict=True):
        if result.no_numbers:
            raise DataError(f"{name} has no capacities: {result.no_numbers}")
        if result.law != results[0].law:
            raise DataError(
                f"{names[0]} has capacities under the {results[0].law} law of the inputs, and "
                f"{name} under the {result.law} one: they are different quantities; estimate both "
                'with law="recorded", and with the same inputs.'
            )


def _refuse_different_drives(names: Sequence[str], results: Sequence[CapacityResult]) -> None:
    """Refuse capacities under the laws of recorded inputs that are correlated differently."""
    first = results[0]
    for name, result in zip(names, results, strict=True):
        if first.recorded_law is None or result.recorded_law is None:
            continue
        n_delays = min(len(first.recorded_law.correlations), len(result.recorded_law.correlations))
        one = first.recorded_law.correlations[:n_delays]
        other = result.recorded_law.correlations[:n_delays]
        if one.shape != other.shape:
            continue  # Other numbers of inputs are refused elsewhere.
        difference = float(np.max(np.abs(one - other)))
        # Correlations of few correlation times scatter.
        scatter = np.hypot(_scatter_of_correlations(first), _scatter_of_correlations(result))
        if difference > MAX_DIFFERENCE_OF_CORRELATIONS + MAX_STANDARD_ERRORS * scatter:
            raise DataError(
                f"the inputs of {names[0]} and {name} are correlated differently (by "
                f"{difference:.2f}), and capacities under recorded inputs belong to these inputs; "
                "measure both with the same inputs, or pass `different_drives=True`."
            )


def _scatter_of_correlations(result: CapacityResult) -> float:
    assert result.recorded_law is not None
    return float(np.sqrt(result.recorded_law.correlation_time / result.n_samples))


def _weaknesses(
    names: Sequence[str], results: Sequence[CapacityResult], common: Sequence[CapacityResult]
) -> Iterator[Check]:
    """Yield warnings of different functions or methods, and of missing or unreliable errors."""
    if any(result is not restricted for result, restricted in zip(results, common, strict=True)):
        sizes = [
            f"{name} has {len(result.basis)} up to degree {result.basis.max_degree}"
            for name, result in zip(names, results, strict=True)
        ]
        yield Check(
            f"the results have different functions ({join_names(sizes)}): only the "
            f"{len(common[0].basis)} in common are compared and make up the totals; estimate all "
            "with one basis to compare everything."
        )
    without_errors = [
        f"{name} ({result.method})"
        for name, result in zip(names, results, strict=True)
        if result.total_standard_error is None
    ]
    if without_errors:
        yield Check(
            f"there are no error bars for {join_names(without_errors)}, so no intervals of the "
            "differences; use the method 'control-variate', or another with "
            "`method_options=dict(jackknife=16)`."
        )
    unreliable = [name for name, result in zip(names, results, strict=True) if result.unreliable]
    if unreliable:
        yield Check(
            f"the total of {join_names(unreliable)} is unreliable, and so are differences from it; "
            "look at its checks, which say why."
        )
    components = results[0].components
    if components is not None:
        third = max(components.n_components // 3, 1)
        yield Check(
            f"these are lower bounds from {components.in_words} each, and the bound of one device "
            "may be nearer to what its channels hold than that of another; see whether they differ "
            f"in the same way with `n_components={third}`, too.",
            "note",
        )
        kinds = {result.components.kind for result in results if result.components is not None}
        if len(kinds) > 1:
            yield Check(
                "some components were found with the help of repeats and others without, which "
                "explains part of a difference; estimate all with repeats, or none."
            )
    methods = list(dict.fromkeys(result.method for result in results))
    if len(methods) > 1:
        yield Check(
            f"results come from different methods ({join_names(methods)}), which explain part of a "
            "difference; estimate all with one method."
        )


def _inputs(basis: ProductBasis) -> str:
    """Describe the inputs and their distribution."""
    kinds = []
    for family in basis.families:
        low, high = family.domain
        kinds.append(f"{family.name} ({family.distribution}) on [{low:g}, {high:g}]")
    delays = " at several delays" if basis.of_sequences else ""
    different_kinds = list(dict.fromkeys(kinds))
    return f"{counted(basis.n_inputs, 'input')}{delays}, {join_names(different_kinds, 3)}"


def _difference(row: pd.Series, largest: int) -> str:
    """Write a difference, how far its interval reaches, and a star where that leaves out zero.

    It is at most `largest`; where its error is larger, it cannot be told.
    """
    if np.isnan(row.difference):
        return ""
    if row.difference_standard_error > largest:
        return CANNOT_BE_TOLD
    text = with_error(row.difference, row.difference_standard_error, HALF_WIDTH_95)
    sign = "" if text.startswith("-") else "+"
    leaves_out_zero = row.difference_low > 0 or row.difference_high < 0
    is_real = leaves_out_zero and abs(row.difference) > SMALLEST_DIFFERENCE
    star = " *" if is_real else "  "
    return f"{sign}{text}{star}"


def _columns(rows: list[list[str]]) -> list[str]:
    """Write a table: the first column is aligned to the left, the others to the right."""
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        cells[0] = "  " + row[0].ljust(widths[0])
        lines.append("   ".join(cells).rstrip())
    return lines
