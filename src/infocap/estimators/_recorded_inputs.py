"""What the recorded inputs are like: their polynomials and their noise.

Here the dictionary is made whose capacities are estimated under the law of the recorded inputs
(`_recorded_law`). Inputs are few numbers per row, so these functions read them in this process.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from .._arrays import to_numpy
from .._validation import require_one_of, shown
from ..basis import (
    DelayedBasis,
    ProductBasis,
    RecordedFamily,
    join_terms,
    recorded_family,
    sort_terms,
    with_families,
)
from ..errors import ParameterError
from ..samples import Samples
from ..typing import Floats, Integers

# The laws of inputs under which capacities can be estimated.
LAWS = ("declared", "recorded")
# Rows, chosen at random, from which polynomials are made where there are more. They only keep
# numbers of size 1; what is estimated does not depend on them.
MAX_ROWS_FOR_POLYNOMIALS = 65_536
# Rows from all over the recording that tell what noise of the inputs does to the functions: the
# variance of each innovation is then known to 2 %.
MAX_ROWS_FOR_INPUT_NOISE = 16_384
# An input with at most so many values is taken as sent, and others as rounded to their smallest
# step.
MAX_VALUES_AS_SENT = 32
# Values of an input that has polynomials of every degree that is used.
MAX_VALUES_OF_POLYNOMIALS = 100
# Steps below this part of the range are rounding of the computer.
SMALLEST_RELATIVE_STEP = 1e-12
# Powers of each present input that are set aside before anything is called memory. Past inputs tell
# of the present one, so what a device does with u[t] beyond these is taken for memory: 0.65 under
# Mackey-Glass inputs with degree 3, less than 0.01 with degree 10.
PRESENT_DEGREE = 10


def under_law(samples: Samples, law: str) -> Samples:
    """Return the samples with functions that belong to the recorded values of their inputs.

    Under the declared law these are only those of the family "recorded".
    """
    require_one_of("law", law, LAWS)
    families = samples.basis.families
    is_recorded = [
        isinstance(family, RecordedFamily) and not family.is_known for family in families
    ]
    if law == "declared" and not any(is_recorded):
        return samples
    if law == "recorded":
        _refuse_options_of_declared_law(samples)
        is_recorded = [True] * len(families)
    rows = np.arange(samples.u.shape[0])
    if len(rows) > MAX_ROWS_FOR_POLYNOMIALS:
        generator = np.random.default_rng(0)
        rows = np.sort(generator.choice(rows, MAX_ROWS_FOR_POLYNOMIALS, replace=False))
    u = samples.u.read_rows(rows)
    new_families = []
    for number, family in enumerate(families):
        new_families.append(recorded_family(u[:, number]) if is_recorded[number] else family)
    if law == "declared":
        names = [family.variable for family in families]
        named = [new.named(name) for new, name in zip(new_families, names, strict=True)]
        return replace(samples, basis=with_families(samples.basis, named))
    basis = with_families(samples.basis, new_families)
    n_absent = max(_count_by_degree(samples.basis) - len(basis), 0)
    return replace(samples, basis=basis, law=law, n_absent_functions=n_absent)


def _count_by_degree(basis: ProductBasis) -> int:
    """Return the number of functions, cosine and sine of a phase counted as one."""
    polynomials = [recorded_family(np.arange(MAX_VALUES_OF_POLYNOMIALS))] * basis.n_inputs
    return len(with_families(basis, polynomials))


def _refuse_options_of_declared_law(samples: Samples) -> None:
    """Refuse what has a meaning under the declared law alone."""
    if samples.sqrt_sample_weight is not None:
        raise ParameterError(
            "`sample_weight` turns the law of the inputs into the declared one, so it has no "
            "meaning with law='recorded'; leave one of them out."
        )
    if isinstance(samples.basis, DelayedBasis) and samples.basis.slow_time:
        raise ParameterError(
            "functions of slow time are for the declared law; leave out `time_degree` with "
            "law='recorded'."
        )


def with_powers_of_present(basis: ProductBasis) -> ProductBasis:
    """Return a basis of sequences with further powers of each present input."""
    if not isinstance(basis, DelayedBasis):
        return basis
    rows = [basis.factors]
    for number, family in enumerate(basis.families):
        highest_degree = PRESENT_DEGREE
        if family.largest_degree is not None:
            highest_degree = min(highest_degree, family.largest_degree)
        for degree in range(1, highest_degree + 1):
            rows.append(np.array([[[number, 0, degree]]], dtype=np.int16))
    indices = sort_terms(basis.families, join_terms(*rows))
    return DelayedBasis(basis.families, indices, memory=basis.memory)


def input_deviations(samples: Samples, input_noise: Any) -> Floats:
    """Return the standard deviation of the noise in each recorded input, (inputs,).

    That is `input_noise`, one number for all inputs or one for each, or what rounding to the
    smallest step leaves.
    """
    n_inputs = samples.basis.n_inputs
    if input_noise is None:
        u = samples.u.read(0, min(samples.u.shape[0], MAX_ROWS_FOR_POLYNOMIALS), on_host=True)
        return np.array([_rounding(column) for column in np.asarray(u)[:, :n_inputs].T])
    deviations = np.asarray(input_noise, dtype=float)
    is_valid = deviations.shape in ((), (n_inputs,)) and np.isfinite(deviations).all()
    if not is_valid or (deviations < 0).any():
        raise ParameterError(
            f"`input_noise={shown(input_noise)}` must be the standard deviation of the noise in "
            f"the recorded inputs: one number, 0 or more, or one for each of {n_inputs} inputs."
        )
    return np.broadcast_to(deviations, (n_inputs,))


def _rounding(column: Floats) -> float:
    """Return the standard deviation of rounding to the smallest step between values."""
    values = np.unique(column)
    if len(values) <= MAX_VALUES_AS_SENT:
        return 0.0
    steps = np.diff(values)
    steps = steps[steps > SMALLEST_RELATIVE_STEP * (values[-1] - values[0])]
    return float(steps.min()) / np.sqrt(12) if len(steps) else 0.0


def gram_of_input_noise(samples: Samples, edges: Integers, deviations: Floats) -> Floats | None:
    """Return the mean products of what noise of the inputs adds to functions, (terms, terms).

    None where the inputs have no noise.
    """
    if not deviations.any():
        return None
    basis = samples.basis
    generator = np.random.default_rng(0)
    gram = np.zeros((len(basis), len(basis)))
    n_rows = 0
    rows_per_stretch = -(-MAX_ROWS_FOR_INPUT_NOISE // (len(edges) - 1))
    for start, stop in pairwise(edges.tolist()):
        stop = min(stop, start + rows_per_stretch, _end_of_run(samples, start))
        u = np.asarray(to_numpy(samples.inputs(start, stop)), dtype=float)
        noisy = u + generator.standard_normal(u.shape) * deviations
        change = basis.values(noisy) - basis.values(u)
        gram += change @ change.T
        n_rows += stop - start
    return gram / n_rows


def _end_of_run(samples: Samples, row: int) -> int:
    """Return the row behind the last one of the run that a row is in."""
    if samples.runs is None:
        return samples.n_samples
    later_starts = samples.runs[samples.runs > row]
    return int(later_starts[0]) if len(later_starts) else samples.n_samples
