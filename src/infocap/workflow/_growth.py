"""Growth: the total that the method would have given at earlier stops of the run.

The method itself is run on the rows that were measured first: a quarter of them, a sixteenth, and
so on. What makes an estimate slow apart from its method is done once, for all rows: the data
checks, the scan of the columns and the preparation of the readouts. The sizes are a quarter of each
other, so that all earlier stops together have a third of the rows. A method goes through its rows
about five times, so the whole curve costs less than two passes over all rows.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .._threads import all_cores
from ..errors import InfocapError
from ..estimators import Estimate, Evidence, Method, gather
from ..result import CapacityResult, Growth
from ..typing import Integers

# Four times as many samples halve an error bar, so that neighbouring points of the curve can be
# told apart.
SIZE_RATIO = 4
# With fewer samples for each readout, the covariance matrix of the readouts is not known well
# enough for any method.
MIN_SAMPLES_PER_READOUT = 2


def growth_of_total(
    evidence: Evidence, method: Method, method_options: Mapping[str, Any], result: CapacityResult
) -> Growth:
    """Return the totals that the rows measured first give by the method of the result.

    The last point is the total of the result. A size for which the method refuses its rows, because
    they are too few, has no point. No data check is run and no warning is given: those of the
    result say what there is to say.
    """
    sizes = []
    totals = []
    errors = []
    for rows in _rows_measured_first(evidence):
        estimate = _estimate_from(evidence, rows, method, method_options)
        if estimate is not None:
            total = estimate.capacity.sum() if estimate.total is None else estimate.total
            sizes.append(len(rows))
            totals.append(float(total))
            errors.append(estimate.total_standard_error)
    sizes.append(result.n_samples)
    totals.append(result.total)
    errors.append(result.total_standard_error)
    known_errors = [error for error in errors if error is not None]
    has_errors = len(known_errors) == len(errors)
    return Growth(tuple(sizes), tuple(totals), tuple(known_errors) if has_errors else None)


def _rows_measured_first(evidence: Evidence) -> Iterator[Integers]:
    """Yield increasing numbers of the rows measured first, from the fewest to a quarter of all."""
    n_samples = evidence.n_samples
    times = evidence.samples.time
    if times is None:
        in_order_of_acquisition = np.arange(n_samples)
    else:
        in_order_of_acquisition = np.argsort(times, kind="stable")
    sizes = []
    size = n_samples // SIZE_RATIO
    while size >= MIN_SAMPLES_PER_READOUT * evidence.maximum:
        sizes.append(size)
        size //= SIZE_RATIO
    for size in reversed(sizes):
        yield np.sort(in_order_of_acquisition[:size])


def _estimate_from(
    evidence: Evidence, rows: Integers, method: Method, method_options: Mapping[str, Any]
) -> Estimate | None:
    """Return what the method gives for these rows alone; None where they are too few for it."""
    samples = evidence.samples.select_rows(rows)
    with all_cores(), np.errstate(under="ignore"):
        try:
            evidence_of_rows = gather(samples, evidence.engine, evidence.column_statistics)
            estimate = method(evidence_of_rows, **method_options)
        except InfocapError:
            return None
    return estimate if np.isfinite(estimate.capacity).all() else None
