"""The schedule of a plan: every measurement, in the order of acquisition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..._validation import checks_arguments
from ...typing import Floats, Integers
from ._measurement import KIND_OF_CODE, Kind, Measurement

if TYPE_CHECKING:
    from ._plan import Plan

# The probability of the inputs at which noise is measured, where a plan names none: the upper
# quartile, because many devices are dark in the middle of their range.
DEFAULT_CONSTANT_QUANTILE = 0.75
# The last number of the seeds of the moments of the references, and of their order.
REFERENCE_MOMENTS_KEY = 2
REFERENCE_ORDER_KEY = 3


@dataclass(frozen=True, eq=False)
class Schedule:
    """Measurements in the order of acquisition.

    Parameters
    ----------
    codes
        The design index of every measurement, (measurements,); an index that comes a second time is
        a repeat. In place of an index, -1 marks noise, -2 a reference and -3 the source off.
    inputs
        What to send, (measurements, inputs); of a sequence all time steps of a run in one row.

    Examples
    --------
    >>> from infocap.lab import Plan
    >>> plan = Plan(n_inputs=1, max_degree=2, n_samples=8, seed=1, noise_repeats=2, repeat_every=4)
    >>> len(plan.schedule), plan.schedule.keys[:2]
    (12, [('noise', 0), ('noise', 1)])
    """

    codes: Integers
    inputs: Floats

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def keys(self) -> list[tuple[Kind, int]]:
        """Kind and number of every measurement, which together identify it."""
        n_seen: Counter[int] = Counter()
        keys = []
        for code in self.codes.tolist():
            if code in KIND_OF_CODE:
                keys.append((KIND_OF_CODE[code], n_seen[code]))
            elif n_seen[code] == 0:
                keys.append((Kind.SAMPLE, code))
            else:
                keys.append((Kind.REPEAT, code))
            n_seen[code] += 1
        return keys

    @checks_arguments
    def count(self, kind: Kind) -> int:
        """Return how many measurements of a kind there are.

        Parameters
        ----------
        kind
            Noise, references or the source off.
        """
        return int(np.sum(self.codes == kind.code))

    def __iter__(self) -> Iterator[Measurement]:
        for (kind, number), u in zip(self.keys, self.inputs, strict=True):
            yield Measurement(kind, number, u)


def join_schedules(schedules: Sequence[Schedule]) -> Schedule:
    """Return one schedule of several that follow each other."""
    codes = np.concatenate([schedule.codes for schedule in schedules])
    inputs = np.concatenate([schedule.inputs for schedule in schedules])
    return Schedule(codes, inputs)


def make_schedule(plan: Plan) -> Schedule:
    """Return every measurement of a plan.

    Noise comes first, then samples and their repeats, with references and dark measurements in
    between. The schedule of an extended plan begins with that of the plan it extends.
    """
    if plan.extends:
        first = plan.extended(plan.extends).schedule
        return join_schedules([first, _schedule_after(first, plan)])
    indices = _first_indices(plan)
    schedule = _with_constants_between(plan, indices, n_rows_before=0)
    if not plan.noise_repeats:
        return schedule
    codes = np.full(plan.noise_repeats, Kind.NOISE.code)
    inputs = np.tile(_constant_input(plan, plan.noise_input), (plan.noise_repeats, 1))
    return join_schedules([Schedule(codes, inputs), schedule])


def _schedule_after(first: Schedule, plan: Plan) -> Schedule:
    """Return what an extended plan adds to the schedule of the plan it extends."""
    is_row_of_design = first.codes >= 0
    indices = _further_indices(plan, start=int(first.codes.max()) + 1)
    return _with_constants_between(plan, indices, n_rows_before=int(is_row_of_design.sum()))


def _n_points(plan: Plan) -> int:
    """Return the number of points of the design: samples, or the runs of a sequence."""
    return plan.runs or plan.n_samples


def _first_indices(plan: Plan) -> Integers:
    """Return design indices, with those that are repeated twice, in the order of acquisition.

    The inputs to repeat are chosen at random. Each is repeated at a random moment, because noise
    that lasts longer than one measurement would otherwise look too small.
    """
    n_points = _n_points(plan)
    rng = np.random.default_rng([plan.seed, n_points])
    repeated = np.arange(0)
    if plan.repeat_every:
        n_repeats = -(-n_points // plan.repeat_every)  # rounded up
        repeated = np.sort(rng.permutation(n_points)[:n_repeats])
    indices = np.concatenate([np.arange(n_points), repeated])
    moments = rng.random(len(indices))
    if plan.order == "design":
        is_repeat = np.arange(len(indices)) >= n_points
        moments = indices + 0.5 * is_repeat
    elif plan.order == "doubling":
        # Block 0 comes first, then block 1, then blocks 2 and 3, then blocks 4 to 7, and so on.
        block = indices // (n_points // plan.n_blocks)
        moments += np.ceil(np.log2(block + 1))
    return indices[np.argsort(moments, kind="stable")]


def _further_indices(plan: Plan, start: int) -> Integers:
    """Return the design indices from `start` on, in the order of acquisition.

    Those of a longer plan begin in the same way: block comes after block, each in random order, and
    after every `repeat_every` rows one of these rows is repeated.
    """
    indices = np.arange(start, _n_points(plan))
    block_size = plan.block_size
    if block_size and plan.order != "design":
        rng = np.random.default_rng([plan.seed, start])
        blocks = indices.reshape(-1, block_size)
        indices = np.concatenate([rng.permutation(block) for block in blocks])
    if plan.repeat_every:
        rng = np.random.default_rng([plan.seed, start, 1])
        ends = np.arange(plan.repeat_every, len(indices) + 1, plan.repeat_every)
        rows_back = (plan.repeat_every * rng.random(len(ends))).astype(int)
        indices = np.insert(indices, ends, indices[ends - 1 - rows_back])
    return indices


def _with_constants_between(plan: Plan, indices: Integers, n_rows_before: int) -> Schedule:
    """Return rows of the design with dark measurements and references put between them.

    Rows are counted from the beginning of the whole schedule: `n_rows_before` come before these.
    """
    inputs = plan.inputs.reshape(_n_points(plan), -1)[indices]
    # The place before the first of further rows belongs to the schedule that they follow.
    first_place = 0 if n_rows_before == 0 else 1
    places = np.arange(first_place, len(indices) + 1)

    inserted_places = []
    inserted_codes = []
    inserted_inputs = []
    if plan.dark_every:
        due = places[(n_rows_before + places) % plan.dark_every == 0]
        inserted_places.append(due)
        inserted_codes.append(np.full(len(due), Kind.DARK.code))
        inserted_inputs.append(np.full((len(due), plan.n_inputs), np.nan))
    if plan.reference_every:
        rows, points = _references_until(plan, n_rows_before + len(indices))
        due = rows - n_rows_before
        is_here = due >= first_place
        inserted_places.append(due[is_here])
        inserted_codes.append(np.full(is_here.sum(), Kind.REFERENCE.code))
        inserted_inputs.append(points[is_here])
    if not inserted_places:
        return Schedule(indices, inputs)
    before = np.concatenate(inserted_places)
    codes = np.insert(indices, before, np.concatenate(inserted_codes))
    inputs = np.insert(inputs, before, np.concatenate(inserted_inputs), axis=0)
    return Schedule(codes, inputs)


def _references_until(plan: Plan, n_rows: int) -> tuple[Integers, Floats]:
    """Return before which rows of the design references come, and their inputs.

    One comes at a random moment among every `reference_every` rows. The inputs take turns: each
    comes once, in random order, before any comes again. Those of a longer schedule begin in the
    same way.
    """
    assert plan.reference_every
    n_references = n_rows // plan.reference_every + 1
    points = plan.reference_points
    rng = np.random.default_rng([plan.seed, REFERENCE_MOMENTS_KEY])
    moments = np.arange(n_references) + rng.random(n_references)
    places = (plan.reference_every * moments).astype(int)
    rng = np.random.default_rng([plan.seed, REFERENCE_ORDER_KEY])
    n_turns = n_references // len(points) + 1
    order = np.argsort(rng.random((n_turns, len(points))), axis=1).ravel()[:n_references]
    is_inside = places <= n_rows
    return places[is_inside], points[order[is_inside]]


def _constant_input(plan: Plan, values: Sequence[float] | None) -> Floats:
    """Return the input at which noise is measured: the plan's, or a quantile."""
    if values:
        return np.array(values)
    probability = np.array([DEFAULT_CONSTANT_QUANTILE])
    return np.array([float(family.quantile(probability)[0]) for family in plan.basis.families])
