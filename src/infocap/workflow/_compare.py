"""compare: results side by side, and by how much they differ beyond chance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from .._formatting import (
    CANNOT_BE_TOLD,
    HALF_WIDTH_95,
    ONE_SIDED_95,
    counted,
    digits_of_column,
    exceeds,
    html_for_notebook,
    join_names,
    rounded,
    with_error,
)
from .._validation import checks_arguments, require_boolean, shown
from ..basis import DelayedBasis, ProductBasis
from ..errors import Check, DataError, ParameterError, warn
from ..kernels import benjamini_hochberg, jackknife_error_of_groups
from ..result import MIN_WRITTEN_ERROR, CapacityResult, untold_degrees
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
    """Results of several devices side by side; differences are against the first.

    Totals and degrees are those of each result. Functions are those of all results together: one
    that a search tested and did not find is zero with an upper bound, and one that a device was not
    asked about is NaN.

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
        The result of each device.
    basis
        The functions of all results, each once.
    checks
        Warnings about differences that have other causes than the devices.
    """

    names: tuple[str, ...]
    results: tuple[CapacityResult, ...]
    basis: ProductBasis
    checks: tuple[Check, ...] = ()

    def totals(self) -> pd.DataFrame:
        """Return one row per device: total and its difference from the first, with intervals."""
        totals = np.array([[result.total] for result in self.results])
        errors = [[result.total_standard_error] for result in self.results]
        ranks = np.array([[result.rank] for result in self.results])
        # An error of None becomes NaN.
        errors_of_totals = np.array(errors, dtype=float)
        differences = self._errors_of_differences(errors_of_totals, [None])
        return self._table(
            "total",
            ["total"],
            values=totals,
            errors=errors_of_totals,
            highest=np.clip(totals + HALF_WIDTH_95 * errors_of_totals, 0.0, ranks),
            errors_of_differences=differences,
        )

    def by_degree(self) -> pd.DataFrame:
        """Return one row per degree and device; NaN where a device has no function of a degree.

        The standard error of a degree comes from the groups of samples, or the stretches of a
        sequence, that were left out in turn, because errors of functions are correlated. For
        methods without groups it is the root of the sum of squares over its functions.
        """
        degrees = range(self.basis.max_degree + 1)
        shape = (len(self.results), len(degrees))
        values = np.full(shape, np.nan)
        errors = np.full(shape, np.nan)
        largest = np.ones(shape)
        for device, result in enumerate(self.results):
            table = result.by_degree(errors=True)
            sizes = np.bincount(result.basis.degrees)
            has_functions = sizes > 0
            n_degrees = len(sizes)
            capacities = np.where(has_functions, table["capacity"], np.nan)
            values[device, :n_degrees] = capacities
            errors[device, :n_degrees] = table["standard_error"]
            largest[device, :n_degrees] = np.minimum(sizes, result.rank)
            for degree in _degrees_searched(result):
                if degree < shape[1] and np.isnan(values[device, degree]):
                    values[device, degree] = 0.0
        return self._table(
            "degree",
            list(map(str, degrees)),
            values=values,
            errors=errors,
            highest=np.clip(values + HALF_WIDTH_95 * errors, 0.0, largest),
            errors_of_differences=self._errors_of_differences(errors, degrees),
        )

    def functions(self) -> pd.DataFrame:
        """Return one row per function and device; `significant` ones differ from the first device.

        Where a search has tested a function and not found it, `found` is False, the capacity is 0,
        and `high` is its upper bound. Of the functions said to differ at most 5 % are false on
        average (Benjamini and Hochberg, for each device by itself).
        """
        values, errors, highest = self._functions_of_devices()
        found = np.isfinite(errors) | (np.nan_to_num(values) != 0.0)
        # An upper bound is one-sided, so it stands for so many standard errors.
        widths = np.where(found, errors, highest / ONE_SIDED_95)
        error_of_difference = np.hypot(widths, widths[0])
        table = self._table(
            "function",
            self.basis.labels,
            values=values,
            errors=errors,
            highest=highest,
            errors_of_differences=error_of_difference,
        )
        differences = np.abs(values - values[0])
        shown = np.array([self._shown(result) for result in self.results])
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
            found=shown.T.ravel(),
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
            f"{self.basis.family_name} functions of {counted(self.basis.n_inputs, 'input')}; "
            "± is one standard error, * a difference whose 95 % interval leaves out 0"
        )
        lines = [title, "", *self._lines_of_totals(), "", *self._lines_of_degrees()]
        return lines + self._lines_of_functions()

    def _repr_html_(self) -> str | None:
        return html_for_notebook(self)

    def _lines_of_totals(self) -> list[str]:
        """Return one line per device: total, maximum and difference from the first."""
        first = self.results[0]
        rows = [["", "total", "of", f"minus {self.names[0]}"]]
        table = self.totals()
        digits = digits_of_column(table.standard_error)
        digits_of_differences = digits_of_column(table.difference_standard_error)
        for (_, row), result in zip(table.iterrows(), self.results, strict=True):
            difference = _difference(row, result.rank, digits_of_differences)
            if difference and (result.nothing_to_show or first.nothing_to_show):
                difference = CANNOT_BE_TOLD
            elif difference not in ("", CANNOT_BE_TOLD) and (result.unreliable or first.unreliable):
                difference = f"about {rounded(row.difference, row.difference_standard_error)}"
            total = result.qualified_total
            if not total:
                total = with_error(row.capacity, row.standard_error, digits=digits)
            if result.components is None or result.nothing_to_show:
                rows.append([row.device, total, str(result.maximum), difference])
            else:
                rows.append([row.device, f"at least {total}", "", difference])
        return _columns(rows)

    def _lines_of_degrees(self) -> list[str]:
        """Return one line per degree: the capacities of all devices, and their differences."""
        names_of_differences = [f"{name} - {self.names[0]}" for name in self.names[1:]]
        rows = [["degree", *self.names, *names_of_differences]]
        shows_all = self.basis.max_degree <= MAX_DEGREE_WITH_ALL_ROWS
        table = self.by_degree()
        digits = digits_of_column(table.standard_error)
        digits_of_differences = digits_of_column(table.difference_standard_error)
        for degree, devices in table.groupby("name", sort=False):
            if shows_all or devices.capacity.max() >= SMALLEST_SHOWN:
                capacities = []
                differences = []
                for result, (_, row) in zip(self.results, devices.iterrows(), strict=True):
                    if result.nothing_to_show or int(degree) in untold_degrees(result):
                        capacities.append(CANNOT_BE_TOLD)
                    elif np.isnan(row.capacity):
                        capacities.append("not asked")
                    else:
                        error = row.standard_error
                        if error < MIN_WRITTEN_ERROR:
                            error = 0.0  # as that of the constant, which is rounding
                        capacities.append(with_error(row.capacity, error, digits=digits))
                for result, (_, row) in zip(
                    self.results[1:], devices.iloc[1:].iterrows(), strict=True
                ):
                    hidden = result.nothing_to_show or self.results[0].nothing_to_show
                    difference = _difference(row, result.rank, digits_of_differences)
                    differences.append("" if hidden else difference)
                rows.append([str(degree), *capacities, *differences])
        return _columns(rows)

    def _lines_of_functions(self) -> list[str]:
        """Return, for each other device, the functions that differ most from the first device."""
        table = self.functions()
        lines = []
        for name, result in zip(self.names[1:], self.results[1:], strict=True):
            if result.nothing_to_show or self.results[0].nothing_to_show:
                continue
            of_device = table[table.device == name]
            compared = of_device[np.isfinite(of_device.difference)]
            significant = of_device[of_device.significant]
            if not np.isfinite(of_device.difference_standard_error).any():
                sentence = "  without error bars it is not known which functions differ"
            else:
                counts = f"{len(significant)} of {len(compared)} functions"
                sentence = f"  {counts} differ between {self.names[0]} and {name}"
            if len(significant):
                sentence += " (at most 5 % of these by chance); the most:"
            by_size = significant.sort_values("difference", key=abs, ascending=False, kind="stable")
            strongest = by_size.iloc[:MAX_FUNCTIONS_SHOWN]
            digits = digits_of_column(strongest.difference_standard_error)
            rows = [
                [f"  {row['name']}", _difference(row, 1, digits)] for _, row in strongest.iterrows()
            ]
            lines += ["", sentence, *_columns(rows)]
        return lines

    def _shown(self, result: CapacityResult) -> Booleans:
        """Return which functions of all a result shows as computed, (terms,)."""
        places = self.basis.positions_in(result.basis)
        return (places >= 0) & (result.capacity[places] > 0)

    def _functions_of_devices(self) -> tuple[Floats, Floats, Floats]:
        """Return capacities, their errors and upper ends of intervals, each (devices, terms)."""
        shape = (len(self.results), len(self.basis))
        values = np.full(shape, np.nan)
        errors = np.full(shape, np.nan)
        highest = np.full(shape, np.nan)
        for device, result in enumerate(self.results):
            bounds = _bounds_of_search(result, self.basis)
            was_tested = bounds >= 0
            values[device, was_tested] = 0.0
            highest[device, was_tested] = bounds[was_tested]
            places = self.basis.positions_in(result.basis)
            has_number = (places >= 0) & result.told_apart[places]
            places = places[has_number]
            capacities = result.capacity if result.unbiased is None else result.unbiased
            values[device, has_number] = capacities[places]
            highest[device, has_number] = np.nan
            if result.standard_error is not None:
                errors[device, has_number] = result.standard_error[places]
                upper_ends = values[device] + HALF_WIDTH_95 * errors[device]
                highest[device, has_number] = np.clip(upper_ends[has_number], 0.0, 1.0)
        return values, errors, highest

    def _errors_of_differences(self, errors: Floats, degrees: Iterable[int | None]) -> Floats:
        """Return the standard errors of differences from the first device, (devices, quantities).

        Each quantity is the sum over the functions of one degree, or over all functions for None.
        """
        first = self.results[0]
        errors_of_differences = np.hypot(errors, errors[0])
        for device, result in enumerate(self.results):
            if not _have_same_groups(result, first):
                continue
            for quantity, degree in enumerate(degrees):
                if not np.isfinite(errors_of_differences[device, quantity]):
                    continue
                errors_of_differences[device, quantity] = _paired_error(
                    _sum_without_groups(result, degree),
                    _sum_without_groups(first, degree),
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
        highest: Floats,
        errors_of_differences: Floats,
    ) -> pd.DataFrame:
        """Return values (devices, quantities) and their errors as a table.

        It has a row for each value. No interval reaches below 0, and none above the `highest`
        value.
        """
        import pandas as pd

        difference = values - values[0]
        error = errors_of_differences.copy()
        difference[0] = np.nan
        error[0] = np.nan
        lowest = np.maximum(values - HALF_WIDTH_95 * errors, 0.0)
        is_bound = np.isnan(errors) & np.isfinite(highest)
        columns = {
            "capacity": values,
            "standard_error": errors,
            "low": np.where(is_bound, 0.0, np.minimum(lowest, highest)),
            "high": highest,
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


def _searched(result: CapacityResult) -> dict[str, Any]:
    """Return how the functions of a result were searched; empty where they were given."""
    explored = result.metadata.get("explored")
    return explored if isinstance(explored, dict) else {}


def _degrees_searched(result: CapacityResult) -> list[int]:
    """Return the degrees of which a search has tested functions."""
    return [int(degree) for degree in _searched(result).get("windows", {})]


def _bounds_of_search(result: CapacityResult, basis: ProductBasis) -> Floats:
    """Return upper bounds of functions that were tested, found or not; -1 where they were not.

    Files hold the degrees as text.
    """
    bounds = np.full(len(basis), -1.0)
    if not isinstance(basis, DelayedBasis):
        return bounds
    search = _searched(result)
    bound_of_degree = {int(key): bound for key, bound in search.get("upper_bounds", {}).items()}
    for key, window in search.get("windows", {}).items():
        degree = int(key)
        was_tested = (basis.degrees == degree) & (basis.largest_delays <= window)
        bounds[was_tested] = bound_of_degree.get(degree, 1.0)
    return bounds


def _have_same_groups(result: CapacityResult, other: CapacityResult) -> bool:
    """Whether both come from the same inputs in the same order, and so from the same groups."""
    if result.without_groups is None or other.without_groups is None:
        return False
    if result.inputs_fingerprint is None:
        return False
    return result.inputs_fingerprint == other.inputs_fingerprint


def _sum_without_groups(result: CapacityResult, degree: int | None) -> Floats:
    """Return the sum of the capacities of a degree without each group of samples, (groups,)."""
    assert result.without_groups is not None
    capacities = result.without_groups
    if degree is not None:
        capacities = capacities[:, result.basis.degrees == degree]
    sums: Floats = capacities.sum(axis=1)
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
        same family and interval of the inputs; where the functions differ, a warning says so.
        Lower bounds must be of equally many components.
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
    basis = first
    for result in compared[1:]:
        basis = basis.joined(result.basis)
    checks = tuple(_weaknesses(device_names, compared))
    for check in checks:
        if check.kind == "warning":
            warn(check)
    return Comparison(device_names, tuple(compared), basis, checks)


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


def _weaknesses(names: Sequence[str], results: Sequence[CapacityResult]) -> Iterator[Check]:
    """Yield warnings of different functions or methods, and of missing or unreliable errors."""
    first = results[0].basis
    searched = [bool(_searched(result)) for result in results]
    differ = any(
        len(result.basis) != len(first) or np.any(result.basis.positions_in(first) < 0)
        for result in results
    )
    if differ and not all(searched):
        sizes = [
            f"{name} has {len(result.basis)} up to degree {result.basis.max_degree}"
            for name, result in zip(names, results, strict=True)
        ]
        n_common = _number_in_common(results)
        yield Check(
            f"the results are over different functions ({join_names(sizes)}; {n_common} in "
            "common), so a total may be larger because more functions were asked about; estimate "
            "all with one basis."
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
    unreliable = [
        name
        for name, result in zip(names, results, strict=True)
        if result.unreliable or result.nothing_to_show
    ]
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


def _number_in_common(results: Sequence[CapacityResult]) -> int:
    """Return how many functions all results have."""
    first = results[0].basis
    in_common = np.ones(len(first), dtype=bool)
    for result in results[1:]:
        in_common &= first.positions_in(result.basis) >= 0
    return int(np.count_nonzero(in_common))


def _inputs(basis: ProductBasis) -> str:
    """Describe the inputs and their distribution."""
    kinds = []
    for family in basis.families:
        low, high = family.domain
        kinds.append(f"{family.name} ({family.distribution}) on [{low:g}, {high:g}]")
    delays = " at several delays" if basis.of_sequences else ""
    different_kinds = list(dict.fromkeys(kinds))
    return f"{counted(basis.n_inputs, 'input')}{delays}, {join_names(different_kinds, 3)}"


def _difference(row: pd.Series, largest: int, digits: int) -> str:
    """Write a difference ± its error, and a star where its 95 % interval leaves out zero.

    It is at most `largest`; where its error is larger, it cannot be told.
    """
    if np.isnan(row.difference):
        return ""
    error = row.difference_standard_error
    if exceeds(error, largest):
        return CANNOT_BE_TOLD
    text = with_error(row.difference, 0.0 if error < MIN_WRITTEN_ERROR else error, digits=digits)
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
