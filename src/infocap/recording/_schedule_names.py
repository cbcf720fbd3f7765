"""What the codes of a schedule stand for: samples, their repeats, noise and reference."""

from __future__ import annotations

from ..typing import Integers

NOISE, REFERENCE = -1, -2  # in place of a design index


def names_of(codes: Integers) -> list[tuple[str, int]]:
    """Kind and number of every measurement: a design index that comes a second time is a repeat."""
    seen: set[int] = set()
    counts = {"noise": 0, "reference": 0}
    out = []
    for code in codes.tolist():
        kind = {NOISE: "noise", REFERENCE: "reference"}.get(code)
        if kind is not None:
            out.append((kind, counts[kind]))
            counts[kind] += 1
        else:
            out.append(("repeat" if code in seen else "sample", code))
            seen.add(code)
    return out
