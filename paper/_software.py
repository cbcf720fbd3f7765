"""Where the software paper is: `infocap reproduce all --page` writes this note beside its page.

The paper itself is paper/paper.md. Its numbers come from the committed verdicts and benchmarks by
tools/fill_paper.py, and no run of `infocap reproduce` changes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ._common import Line

NOTE = """\
The paper about the software is `paper/paper.md`. `make paper` writes its numbers,
from the verdicts in `paper/figures` and from `benchmarks/RESULTS.md`.
"""


def software(verdicts: Mapping[str, Sequence[Line]]) -> str:
    """Return the note; it does not depend on the verdicts."""
    return NOTE
