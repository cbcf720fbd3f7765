"""Checks of capacities under the law of the recorded inputs: what they rest on, and what not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .._formatting import counted, join_names, percent, with_error
from ..errors import Check
from ..result import RecordedLaw
from ._finding import finding

# Correlation times of the inputs in a recording, below which error bars are too short: with 0.6 and
# 2 of them 95 % intervals of totals held in 76 and 83 %, with 9 in 95 %.
MIN_CORRELATION_TIMES = 8.0
# Rows for each function: with fewer, totals under coloured noise are too high by up to two bars.
MIN_ROWS_PER_FUNCTION = 3
# The same where what functions leave of the readouts is coloured, and from which correlation time
# on it is (rows): 95 % intervals of memory capacities held in 89 % with 3 rows for each function
# and noise of 19 rows, and in 93 to 97 % with 10.
MIN_ROWS_PER_FUNCTION_IN_COLOURED_NOISE = 10
MIN_TIME_OF_COLOURED_NOISE = 3.0
# Part of what earlier inputs leave of an input that readouts tell, from which on there is a loop or
# a drive with a longer memory, and the probability that chance does it. Of 1320 recordings of open
# loops none is above both, but for Mackey-Glass inputs.
MIN_EXPLAINED_BY_LOOP = 0.001
FALSE_ALARM_OF_LOOP = 1e-6
# Part of an input's variance that earlier inputs have to leave. Of an input that is nearly certain,
# as that of a chaotic drive, they leave what the functions lack.
MIN_LEFT_FOR_LOOP = 0.0003
# Part of their variance by which inputs change after a period; smaller ones are not written out.
SMALLEST_WRITTEN_CHANGE = 1e-5
# Part of the error bar of the total that one stretch decides, from which on it is said.
MAX_SHARE_OF_STRETCH = 1 / 3
# Standard errors, and part of the total, from which on the longest delay holds so much that longer
# ones are missed.
MIN_STANDARD_ERRORS_OF_LONGEST = 4.0
MIN_PART_OF_LONGEST = 0.01


@dataclass(frozen=True, eq=False)
class Loop:
    """What readouts tell of the next input beyond what inputs up to then tell."""

    input_number: int
    left: float  # part of the input's variance that inputs up to then leave
    explained: float  # part of what they leave
    p_value: float


@dataclass(frozen=True, eq=False)
class ResidualFacts:
    """What is known of what the functions leave of the readouts."""

    kurtosis: float  # the mean of independent directions of the readouts
    correlation_time: float  # in rows, of all directions of the readouts together
    loop: Loop | None  # of the input of which they tell most; None where it cannot be tested


@dataclass(frozen=True, eq=False)
class RecordedLawFacts:
    """What the checks of capacities under the law of the recorded inputs see."""

    law: RecordedLaw
    n_samples: int
    n_functions: int  # that can be told apart
    constant_inputs: Sequence[int]  # the numbers of inputs that never change
    input_names: Sequence[str]
    of_sequence: bool
    n_absent_functions: int  # for whose degrees inputs take too few values
    kurtosis: float  # the largest of a readout
    has_excursions: bool
    has_heavy_noise: bool  # rare large values in what the functions leave
    residuals: ResidualFacts
    largest_stretch: float  # the part of the total's error bar that one stretch decides
    period: int | None  # the rows after which inputs repeat
    # The rows after which they nearly repeat, and the part of their variance by which they change.
    near_period: tuple[int, float] | None
    slow_part: float  # of the variance of an input that changes more slowly than the recording
    total: float


def checks_of_recorded_law(facts: RecordedLawFacts) -> Iterator[Check]:
    """Yield what a reader of the capacities has to know."""
    yield from _constant_inputs(facts)
    yield from _periodic_inputs(facts)
    yield from _absent_functions(facts)
    yield from _not_told_apart(facts)
    yield from _short_recording(facts)
    yield from _slow_inputs(facts)
    yield from _few_rows(facts)
    yield from _loop(facts)
    yield from _rare_excursions(facts)
    yield from _heavy_noise(facts)
    yield from _one_stretch(facts)
    yield from _longest_delay(facts)


def _constant_inputs(facts: RecordedLawFacts) -> Iterator[Check]:
    if not facts.constant_inputs:
        return
    names = [facts.input_names[number] for number in facts.constant_inputs]
    verb = "changes" if len(names) == 1 else "change"
    yield finding(
        f"{join_names(names)} never {verb}, so nothing can be said of functions of it",
        cause="constant input",
        next_step="leave it out, or check that the right column was taken",
        inputs=list(facts.constant_inputs),
    )


def _periodic_inputs(facts: RecordedLawFacts) -> Iterator[Check]:
    if facts.constant_inputs:
        return
    if facts.period is None and facts.near_period is not None:
        period, change = facts.near_period
        size = percent(change) if change > SMALLEST_WRITTEN_CHANGE else "less than 0.001 %"
        yield finding(
            f"inputs nearly repeat every {period} rows (they change by {size} of their "
            f"variance): more than {period} functions are told apart by this change alone, and "
            "nothing is said of other inputs",
            cause="periodic inputs",
            next_step="if the change is noise of the recorded inputs, pass its standard deviation "
            "as `input_noise`; drive the device with inputs that do not repeat to learn more",
            period=period,
            change=change,
        )
    if facts.period is None:
        return
    yield finding(
        f"inputs repeat every {facts.period} rows: at most {facts.period} functions can be told "
        "apart, and nothing is said of other inputs",
        cause="periodic inputs",
        next_step="drive the device with inputs that do not repeat to learn more about it",
        period=facts.period,
    )


def _absent_functions(facts: RecordedLawFacts) -> Iterator[Check]:
    n_absent = facts.n_absent_functions
    if not n_absent or facts.constant_inputs:
        return
    yield finding(
        f"{counted(n_absent, 'function')} left out: an input that takes v values has v - 1 degrees",
        cause="absent functions",
        next_step="use inputs with more values to learn more of the device",
        is_note=True,
        functions=n_absent,
    )


def _not_told_apart(facts: RecordedLawFacts) -> Iterator[Check]:
    n_functions = len(facts.law.told_apart)
    if facts.n_functions == n_functions:
        return
    yield finding(
        f"{facts.n_functions} of {n_functions} functions can be told apart under these inputs",
        cause="not told apart",
        next_step="the others have no capacity; `told_apart` of the result says which they are",
        is_note=True,
        told_apart=facts.n_functions,
        functions=n_functions,
    )


def _short_recording(facts: RecordedLawFacts) -> Iterator[Check]:
    times = facts.n_samples / facts.law.correlation_time
    if not facts.of_sequence or times >= MIN_CORRELATION_TIMES:
        return
    n_needed = int(np.ceil(MIN_CORRELATION_TIMES * facts.law.correlation_time))
    times_in_words = counted(max(round(times), 1), "correlation time")
    yield finding(
        f"the recording is only {times_in_words} of its inputs long, so error bars may be too "
        "short",
        cause="short recording",
        next_step=f"take at least {n_needed} rows",
        in_short=f"only {times_in_words} of its inputs",
        correlation_times=float(times),
        wanted=n_needed,
    )


def _slow_inputs(facts: RecordedLawFacts) -> Iterator[Check]:
    if facts.slow_part == 0:
        return
    yield finding(
        f"{percent(facts.slow_part)} of the variance of an input changes more slowly than the "
        "recording: its law beyond these rows is not known, and error bars may be too short",
        cause="slow inputs",
        next_step="record for several times as long, or remove the drift from the drive",
        in_short="inputs that drift more slowly than the recording",
        slow_part=facts.slow_part,
    )


def _few_rows(facts: RecordedLawFacts) -> Iterator[Check]:
    n_needed = MIN_ROWS_PER_FUNCTION * facts.n_functions
    noise = ""
    time = facts.residuals.correlation_time
    if facts.of_sequence and time > MIN_TIME_OF_COLOURED_NOISE:
        n_needed = MIN_ROWS_PER_FUNCTION_IN_COLOURED_NOISE * facts.n_functions
        noise = f" and what they leave of the readouts stays correlated for {time:.0f} rows,"
    if facts.n_samples >= n_needed:
        return
    yield finding(
        f"{facts.n_samples} rows are few for {facts.n_functions} functions,{noise} so that the "
        "total may be too high",
        cause="few rows",
        next_step=f"take at least {n_needed} rows, or fewer functions",
        in_short=f"few rows for {facts.n_functions} functions",
        n_samples=facts.n_samples,
        wanted=n_needed,
    )


def _loop(facts: RecordedLawFacts) -> Iterator[Check]:
    loop = facts.residuals.loop
    if loop is None or loop.p_value > FALSE_ALARM_OF_LOOP:
        return
    if loop.explained < MIN_EXPLAINED_BY_LOOP or loop.left < MIN_LEFT_FOR_LOOP:
        return
    name = facts.input_names[loop.input_number]
    yield finding(
        f"{name} follows earlier readouts: they tell {percent(loop.explained)} of what earlier "
        f"inputs leave of {name}[t]. In a closed loop capacities are not the device's doing alone",
        cause="closed loop",
        next_step="open the loop to measure the device itself; a drive whose own memory is longer "
        "than the delays, or of higher degree, looks the same",
        is_note=True,
        p_value=loop.p_value,
        inputs=[loop.input_number],
        explained=loop.explained,
    )


def _rare_excursions(facts: RecordedLawFacts) -> Iterator[Check]:
    if not facts.has_excursions:
        return
    yield finding(
        f"readouts have rare large excursions (kurtosis {facts.kurtosis:.0f}): the total may be "
        "too high, and its error bar was made 1.5 times as long",
        cause="excursions",
        next_step="take a longer recording, or check readouts for outliers",
        in_short="readouts with rare large excursions",
        kurtosis=facts.kurtosis,
    )


def _heavy_noise(facts: RecordedLawFacts) -> Iterator[Check]:
    if facts.has_excursions or not facts.has_heavy_noise:
        return
    yield finding(
        "what the functions leave of the readouts has rare large values (kurtosis "
        f"{facts.residuals.kurtosis:.0f}): error bars of sums were made 1.25 times as long",
        cause="heavy noise",
        next_step="look for outliers, or for functions that the basis lacks, if error bars matter",
        is_note=True,
        kurtosis=facts.residuals.kurtosis,
    )


def _one_stretch(facts: RecordedLawFacts) -> Iterator[Check]:
    if facts.largest_stretch <= MAX_SHARE_OF_STRETCH:
        return
    yield finding(
        f"one stretch of the recording decides {percent(facts.largest_stretch)} of the total's "
        "error bar",
        cause="one stretch",
        next_step="look at what the device did there, if the error bar matters",
        is_note=True,
        share=facts.largest_stretch,
    )


def _longest_delay(facts: RecordedLawFacts) -> Iterator[Check]:
    law = facts.law
    if law.delay_capacity is None or law.delay_error is None or len(law.delay_error) < 2:
        return
    capacity = float(law.delay_capacity[-1].sum())
    error = float(law.delay_error[-1])
    is_clear = capacity > MIN_STANDARD_ERRORS_OF_LONGEST * error  # false where it is NaN
    if not is_clear or capacity <= MIN_PART_OF_LONGEST * facts.total:
        return
    yield finding(
        f"the longest delay, {len(law.delay_error) - 1}, still adds {with_error(capacity, error)}, "
        "so that longer ones may hold capacity, too",
        cause="short window",
        next_step="raise `max_delay` (and the washout with it) to count longer delays",
        added=capacity,
    )
