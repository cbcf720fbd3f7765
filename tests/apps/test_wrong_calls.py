"""Wrong calls of all public functions, made from their signatures, get an answer and take no time."""

import pytest

from wrong_calls import all_calls, make_calls, public_functions, some_calls

# Calls that continuous integration makes, and those of the slow test: the same random ones each time.
N_CALLS_IN_CI = 1500
N_CALLS = 20_000
# Of all calls so many may end in an error that is not infocap's own.
MAX_SHARE_OF_RAW_ERRORS = 0.01
# In these none may.
ALWAYS_ANSWERED = (
    "infocap.estimate", "infocap.read", "infocap.load_result", "infocap.explore",
    "infocap.compare", "infocap.plot.", "infocap.report.", "infocap.lab.read",
)  # fmt: skip


def answers_to(calls):
    """Return what became of calls that were not refused and did not succeed, in words."""
    hangs = []
    raw = []
    for outcome in make_calls(calls):
        sentence = (
            f"{outcome.function}({outcome.parameter}={outcome.value}): {outcome.error} "
            f"({outcome.place}, {outcome.seconds:.1f} s)"
        )
        if outcome.kind in ("hang", "slow"):
            hangs.append(sentence)
        elif outcome.kind in ("raw", "unreadable"):
            raw.append(sentence)
    return hangs, raw


def assert_answered(calls):
    hangs, raw = answers_to(calls)
    assert not hangs
    assert not [sentence for sentence in raw if sentence.startswith(ALWAYS_ANSWERED)]
    assert len(raw) <= MAX_SHARE_OF_RAW_ERRORS * len(calls), "\n".join(raw)


@pytest.mark.thorough
def test_right_calls_succeed_so_that_wrong_ones_are_wrong_in_one_argument():
    calls = [(name, "", None) for name in sorted(public_functions())]
    refused = {outcome.function for outcome in make_calls(calls) if outcome.kind != "fine"}
    assert refused == {"infocap.DelayedBasis.quadrature"}  # which is there to refuse


@pytest.mark.thorough
def test_wrong_calls_are_refused_in_one_sentence():
    assert_answered(some_calls(N_CALLS_IN_CI))


@pytest.mark.slow
def test_many_wrong_calls_are_refused_in_one_sentence():
    assert len(all_calls()) > N_CALLS
    assert_answered(some_calls(N_CALLS, seed=1))
