"""The table of checks, and how they are run: on excerpts of the data, and on the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from .._threads import parallel_map
from .._validation import checks_arguments
from ..errors import Check, ParameterError
from ..samples import ColumnStatistics, Samples
from ._alike import alike_rows
from ._answer import left_out, repeats_off, weak
from ._branches import other_branches
from ._case import Case
from ._exact import (
    batches,
    copies_of_inputs,
    equal_readouts,
    filled_cells,
    interpolated_rows,
    principal_components,
)
from ._excerpt import (
    MAX_EXCERPT_BYTES,
    MAX_ROWS,
    Excerpt,
    ExcerptRows,
    choose_excerpts,
    prepare,
)
from ._holds import held_inputs
from ._inputs import counted_twice, inputs_off, without_effect
from ._order import inputs_of_other_rows
from ._outliers import far_values
from ._pictures import picture_of
from ._ranking import one_cause_first
from ._references import CHANGES_CHECK
from ._residuals import fit_readouts
from ._rounding import rounded
from ._rows import misplaced_rows
from ._sequences import dependent_inputs, unsettled_beginning
from ._time import changes_with_time, periods
from ._values import (
    CODES,
    clipped,
    clocks,
    codes,
    frequent_values,
    missing_codes,
    stale,
)

# Capacities of all functions that refute what functions of low degree found: those of one input,
# that it has no effect, and those of all inputs, that nothing of them is seen.
MIN_CAPACITY_OF_ONE_INPUT = 0.1
MIN_CAPACITY_OF_ALL_INPUTS = 1.0

DataCheck = Callable[[Excerpt], Iterator[Check]]

# What is looked for in the data, by `estimate` and by `diagnose`.
DATA: dict[str, DataCheck] = {
    "inputs of the declared range, shape and digits, independent of each other": inputs_off,
    "inputs that are not held for several rows": held_inputs,
    "inputs that have an effect": without_effect,
    "no row counted twice": counted_twice,
    "no readout that repeats the one before": stale,
    "no codes in place of numbers": codes,
    "no value far too often": frequent_values,
    "no codes of a converter that never come": missing_codes,
    "no rows or single values far from their fit": far_values,
    "readouts in one unit, of one sign, not wrapped around": other_branches,
    "readouts not clipped": clipped,
    "readouts resolved finer than their noise": rounded,
    "no interpolated rows": interpolated_rows,
    "no rows filled with the readouts of others": equal_readouts,
    "no rows that are alike whatever their inputs": alike_rows,
    "no values filled in from their neighbours": filled_cells,
    "no readouts normalised in batches": batches,
    "no input among the readouts": copies_of_inputs,
    "no principal components in place of readouts": principal_components,
    "readouts that hold no inputs of other rows": inputs_of_other_rows,
    CHANGES_CHECK: changes_with_time,
    "no hum, no offsets that come and go, no alternate rows that differ": periods,
    "no rows in the place of others": misplaced_rows,
    "no clock or thermometer among the readouts": clocks,
    "inputs of each step independent of those before": dependent_inputs,
    "runs that begin where they stay": unsettled_beginning,
}
# Those that hold for devices with memory, too.
WITH_MEMORY: tuple[DataCheck, ...] = (
    inputs_off,
    held_inputs,
    stale,
    codes,
    frequent_values,
    missing_codes,
    far_values,
    other_branches,
    clipped,
    rounded,
    interpolated_rows,
    equal_readouts,
    alike_rows,
    filled_cells,
    batches,
    inputs_of_other_rows,
    changes_with_time,
    periods,
    misplaced_rows,
    dependent_inputs,
    unsettled_beginning,
)
ONLY_WITH_MEMORY: tuple[DataCheck, ...] = (dependent_inputs, unsettled_beginning)
# Those about single channels, and about relations that hold exactly, which sums of channels would
# round. Where components take the place of many channels, these look at the channels, and all
# others at the components.
OF_CHANNELS: tuple[DataCheck, ...] = (
    counted_twice,
    stale,
    codes,
    frequent_values,
    missing_codes,
    clipped,
    rounded,
    interpolated_rows,
    equal_readouts,
    filled_cells,
    batches,
    copies_of_inputs,
    principal_components,
    clocks,
)
# Those that compare inputs with a declared law, or readouts with inputs of other rows, which any
# input tells of where inputs depend on each other.
OF_DECLARED_LAW: tuple[DataCheck, ...] = (inputs_off, inputs_of_other_rows, dependent_inputs)
# Rows that some of them need in an excerpt.
MIN_ROWS: dict[DataCheck, int] = {
    without_effect: 64,
    clocks: 64,
    inputs_of_other_rows: 128,
    changes_with_time: 192,
    periods: 192,
    alike_rows: 200,
    misplaced_rows: 200,
    frequent_values: 256,
    missing_codes: 512,
    far_values: 128,
    other_branches: 256,
    clipped: 1000,
}
NEEDS = {name: MIN_ROWS[check] for name, check in DATA.items() if check in MIN_ROWS}
# What concerns the whole run (its inputs, converters and ranges, and slow changes) is looked for in
# the overview of a long data set, and only there.
OF_OVERVIEW: tuple[DataCheck, ...] = (
    inputs_off,
    without_effect,
    missing_codes,
    other_branches,
    clipped,
    rounded,
    copies_of_inputs,
    clocks,
    changes_with_time,
)


def data_checks(of_sequences: bool, law: str = "declared") -> dict[str, DataCheck]:
    """Return what is looked for in the data of devices with or without memory.

    Under the law of the recorded inputs these need not follow a declared law.
    """
    if of_sequences:
        chosen = {name: check for name, check in DATA.items() if check in WITH_MEMORY}
    else:
        chosen = {name: check for name, check in DATA.items() if check not in ONLY_WITH_MEMORY}
    if law == "declared":
        return chosen
    return {name: check for name, check in chosen.items() if check not in OF_DECLARED_LAW}


def mistakes(
    samples: Samples, statistics: ColumnStatistics, cores_per_thread: int = 1
) -> dict[str, list[Check]]:
    """Return what is wrong with the data in all excerpts, by its cause.

    Of components those checks are left out that are about the values of single channels.
    `cores_per_thread` is as for `parallel_map`.
    """
    checks = data_checks(samples.basis.of_sequences, samples.law)
    if samples.components is not None:
        checks = {name: check for name, check in checks.items() if check not in OF_CHANNELS}
    return _findings_by_cause(samples, statistics, checks, cores_per_thread)


def mistakes_of_channels(samples: Samples, statistics: ColumnStatistics) -> dict[str, list[Check]]:
    """Return what is wrong with the values of single channels, by its cause, with pictures.

    Of very many channels those with a known code are looked at, and others at equal distances.
    """
    samples = _with_fewer_channels(samples, statistics)
    checks = data_checks(samples.basis.of_sequences, samples.law)
    checks = {name: check for name, check in checks.items() if check in OF_CHANNELS}
    findings = _findings_by_cause(samples, statistics, checks)
    return {
        cause: [_with_picture(check, samples, statistics) for check in same_cause]
        for cause, same_cause in findings.items()
    }


def _with_fewer_channels(samples: Samples, statistics: ColumnStatistics) -> Samples:
    """Return the samples with as many channels in use as an excerpt of many rows can hold."""
    n_channels = len(samples.channels)
    max_channels = max(MAX_EXCERPT_BYTES // (8 * min(samples.n_samples, MAX_ROWS)), 1)
    if n_channels <= max_channels:
        return samples
    ends = np.array([statistics.low, statistics.high])[:, samples.channels]
    with_code = np.flatnonzero(np.isin(ends, CODES).any(axis=0))[:max_channels]
    equally_spaced = np.linspace(0, n_channels - 1, max_channels).round().astype(int)
    chosen = np.union1d(with_code, equally_spaced)
    return replace(
        samples,
        channels=samples.channels[chosen],
        shift=samples.shift[chosen],
        scale=samples.scale[chosen],
    )


def _findings_by_cause(
    samples: Samples,
    statistics: ColumnStatistics,
    checks: dict[str, DataCheck],
    cores_per_thread: int = 1,
) -> dict[str, list[Check]]:
    """Return what some checks find in all excerpts, by its cause."""
    excerpts = choose_excerpts(samples)
    share = 1 / len(excerpts)
    has_overview = excerpts[-1].is_overview
    with np.errstate(under="ignore"):
        fit = None
        if has_overview:
            # Of many rows those of the overview are fitted, and the fit serves for all.
            fit = fit_readouts(prepare(samples, statistics, excerpts[-1], share))

        def look_at(rows: ExcerptRows) -> list[Check]:
            excerpt = prepare(samples, statistics, rows, share, fit)
            return _findings_of_excerpt(excerpt, rows, checks, has_overview)

        if samples.in_memory:
            findings = parallel_map(look_at, excerpts, cores_per_thread)
        else:
            findings = [look_at(excerpt) for excerpt in excerpts]
    by_cause = dict[str, list[Check]]()
    for check in chain.from_iterable(findings):
        if "cause" not in check.found:
            raise ParameterError(
                f"the check of the data {str(check)!r:.60} has no cause; give it one "
                "(`infocap.diagnostics.finding`)."
            )
        by_cause.setdefault(check.found["cause"], []).append(check)
    return by_cause


def _findings_of_excerpt(
    excerpt: Excerpt, rows: ExcerptRows, checks: dict[str, DataCheck], has_overview: bool
) -> list[Check]:
    """Return what is wrong with the data of one excerpt, and the rows that it holds."""
    findings = list[Check]()
    for name, data_check in checks.items():
        if excerpt.n < NEEDS.get(name, 0):
            continue
        is_for_overview = data_check in OF_OVERVIEW
        if has_overview and is_for_overview != excerpt.is_overview:
            continue
        for check in data_check(excerpt):
            check.found["looked_for"] = name
            check.found["excerpt"] = rows
            findings.append(check)
    return findings


def of_data(case: Case) -> Iterator[Check]:
    """Yield what is wrong with the data, each cause once."""
    by_cause = dict(case.evidence.data_findings())
    _drop_refuted(by_cause, case)
    yield from _each_cause_once(by_cause)


def _each_cause_once(by_cause: dict[str, list[Check]]) -> Iterator[Check]:
    """Yield the most important finding of each cause, with the rows of the others."""
    for same_cause in by_cause.values():
        check = max(same_cause, key=_importance)
        text = str(check)
        found = dict(check.found)
        n_places = len({id(check.found.get("excerpt")) for check in same_cause})
        if n_places > 1:
            text += f" The same is seen in {n_places - 1} more places of the data."
            for name in ("rows", "first_rows", "shifts"):
                if name in found:
                    lists = [other.found.get(name, ()) for other in same_cause]
                    found[name] = list(chain.from_iterable(lists))
        yield Check(text, check.kind, **found)


def _importance(check: Check) -> tuple[bool, bool, float]:
    """Return a key by which the most important finding of a cause is the largest."""
    is_warning = check.kind == "warning"
    lasts = not check.found.get("comes_and_goes", False)
    return is_warning, lasts, float(check.found.get("capacity", 0.0))


def _drop_refuted(by_cause: dict[str, list[Check]], case: Case) -> None:
    """Drop findings of low degrees that the capacities of all functions refute."""
    if not case.method.corrects_bias:
        return
    capacity = case.estimate.capacity
    if case.total - capacity[0] > MIN_CAPACITY_OF_ALL_INPUTS:
        by_cause.pop("nothing", None)
    dead_inputs = [k for check in by_cause.get("no effect", ()) for k in check.found["inputs"]]
    indices = case.evidence.basis.indices
    held = [capacity[indices[:, k] > 0].sum() for k in dead_inputs]
    if held and min(held) > MIN_CAPACITY_OF_ONE_INPUT:
        by_cause.pop("no effect")


CHECKS: dict[str, Callable[[Case], Iterator[Check]]] = {
    "data": of_data,
    "weak": weak,
    "repeats off": repeats_off,
    "left out": left_out,
}


@checks_arguments
def run_checks(case: Case) -> tuple[Check, ...]:
    """Return what the method had to say, and what the checks of the table find, one cause first.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 1, 3)
    >>> u = infocap.draw(basis, 64, seed=1)
    >>> evidence = infocap.estimators.gather_evidence(u, u**3, basis)
    >>> method = infocap.estimators.METHODS["raw"]
    >>> run_checks(Case(evidence, method, method(evidence), total=2.0))
    ()
    """
    checks = []
    for check in case.estimate.checks:
        checks.append(check if isinstance(check, Check) else Check(check))
    for find in CHECKS.values():
        checks += find(case)
    told = dict.fromkeys(one_cause_first(checks))
    samples = case.evidence.samples
    statistics = case.evidence.column_statistics
    return tuple(_with_picture(check, samples, statistics) for check in told)


def told_findings(samples: Samples, statistics: ColumnStatistics) -> list[Check]:
    """Return what is wrong with the data alone, one cause first, with pictures."""
    checks = one_cause_first(_each_cause_once(mistakes(samples, statistics)))
    return [_with_picture(check, samples, statistics) for check in checks]


def _with_picture(check: Check, samples: Samples, statistics: ColumnStatistics) -> Check:
    """Return a check with a picture of what it found, made from the excerpt that shows it."""
    found = dict(check.found)
    rows = found.pop("excerpt", None)
    if rows is None or check.kind != "warning":
        return Check(check, check.kind, **found)
    excerpt = prepare(samples, statistics, rows, share=1.0)
    with np.errstate(all="ignore"):
        picture = picture_of(excerpt, found)
    if picture is not None:
        found["picture"] = picture
    return Check(check, check.kind, **found)
