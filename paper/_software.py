"""The software paper, paper/software.md: prose with every number taken from the verdicts of the full run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ._common import Line

TEXT = """\
# infocap: the information processing capacity of physical systems, with error bars

*A short software paper. Written by `infocap reproduce all --page paper/README.md`: its numbers are those of the
committed verdicts.*

## Statement of need

Physical systems compute: a laser pulse in a fibre, a network of oscillators or an analogue chip turns inputs into
readouts, and a linear layer learns from them. What such a device can compute, and how well, is told by its
information processing capacity (Dambre et al. 2012; Uma Ramachandran and Massar 2026): for every function of an
orthonormal basis, the share of it that a linear readout of the device can give. In the laboratory samples are few and
noise is large, the naive estimate is biased upwards, and a number without an error bar decides nothing. infocap is
the tool for that situation: it plans a measurement, acquires it so that no power cut loses a row, estimates
capacities with standard errors, says what is wrong with the data, and writes a page that a colleague understands.

## State of the field

| | infocap | infoprocap (the paper's, MATLAB) | kubota0130/ipc | ipc-module | RCbench | SNN_capacity | reservoirpy |
|---|---|---|---|---|---|---|---|
| stationary systems, several inputs | yes | yes | – | – | – | – | – |
| input distributions | any | uniform | 8 and arbitrary | 5 and arbitrary | uniform | uniform | – |
| bias correction | second order | Richardson | – | – | – | – | – |
| zeros | false discovery rate | Cauchy–Schwarz, −min | 200 shuffles | 1000 shuffles | none | chi² | none |
| error bars | yes | – | – | – | – | – | – |
| data larger than memory, clusters, graphics cards | yes | – | CuPy | torch, CuPy | – | – | – |
| acquisition, resume, command line | yes | – | – | – | – | script | – |
| tests against exact capacities | yes | 0 | 0 | 0 | 0 | 5 | 1 |

The peers' columns were read from their sources in 2026; reservoir toolboxes treat sequences of one input, for which
they have functions that infocap's stationary part has not.

## What is new

- An estimator that regresses the readouts on the basis, removes the bias to second order and gives error bars
  ([docs/estimators.md](../docs/estimators.md)); and the bound that no method can beat.
- Checks for what goes wrong in laboratories, each with a sentence that says what was found and what to do.
- A simulator of the paper's photonic experiment, and a **digital twin** of it: five parameters fitted to the
  published capacities ([twin](README.md#twin)).
- Every definition and result of the paper as a function with a test ([docs/paper_lines.md](../docs/paper_lines.md)).

## Validation

Against exact capacities: {sobol}. Against the authors' program, run under Octave on three data sets: both algorithms
and the thresholds agree to 1e-9 (`tests/test_infoprocap.py`). Against the paper: its sentences, {plain}, with the
paper's own parameters; of those that can be asked of the twin, {twin}.

The twin against the measurement it was fitted to: {fit}. Its parameters: {parameters}.

## Cost

[benchmarks/RESULTS.md](../benchmarks/RESULTS.md) has every time, measured side by side and with its script; `infocap
reproduce all` prints that of each figure.

## Availability

MIT licence, Python 3.11 or newer, `pip install infocap`. Cite with [CITATION.cff](../CITATION.cff) or `infocap cite`;
questions and reports: [CONTRIBUTING.md](../CONTRIBUTING.md), [CODE_OF_CONDUCT.md](../CODE_OF_CONDUCT.md),
[SECURITY.md](../SECURITY.md). What changed: [CHANGELOG.md](../CHANGELOG.md).
"""


def software(verdicts: Mapping[str, Sequence[Line]]) -> str:
    """The software paper as Markdown."""
    lines = [one for found in verdicts.values() for one in found]
    fit = [one for one in verdicts["twin"] if one["verdict"] == "calibrated"]
    fitted = [one for one in verdicts["twin"] if one["statement"].startswith("Fitted: ")]
    (sobol,) = (
        one
        for one in verdicts["fig2"]
        if one["statement"].startswith("Error of the total, control-variate")
    )
    (raw,) = (
        one for one in verdicts["fig2"] if one["statement"].startswith("Error of the total, raw")
    )
    told = [
        f"`{one['statement'].removeprefix('Fitted: ')}` {one['found'].split(';')[0]}"
        for one in fitted
    ]
    return TEXT.format(
        sobol=f"71 noise-free mixtures of 200 functions have a total of 72, and the error is {sobol['found']}, where "
        f"the plain estimate is off by {raw['found']}",
        plain=_counted(lines, "verdict"),
        twin=_counted(lines, "twin_verdict"),
        fit="; ".join(f"{one['statement']} {one['found']} ({one['expected']})" for one in fit),
        parameters="; ".join(told),
    )


def _counted(lines: Sequence[Line], key: str) -> str:
    counts = Counter(one[key] for one in lines)
    words = {
        "agrees": "hold",
        "differs": "do not",
        "calibrated": "hold after calibration",
        "identity": "could not fail",
    }
    return ", ".join(
        f"{counts[verdict]} {word}" for verdict, word in words.items() if counts[verdict]
    )
