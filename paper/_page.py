"""The page of verdicts: which statement of which figure holds in simulation, and why some do not."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping, Sequence

from ._common import Line

HEAD = """\
# The paper's figures, computed

Every figure of R. Uma Ramachandran and S. Massar, *Information Processing Capacity of Stationary Physical
Systems* (2026), that can be computed, from one command:

```
infocap reproduce all            # all figures, a quarter to half an hour on two cores
infocap reproduce all --quick    # fewer samples, powers and repeats: about two minutes
infocap reproduce fig4           # one of them
```

Each figure is a script in this folder with `PARAMETERS`, `compute()`, `draw(data)` and `check(data)`. A run
writes the picture (`figN.png`), its data (`figN.nc`, with parameters, version and every warning among the
attributes) and the verdicts (`figN.json`). What is stopped, by Ctrl-C or worse, goes on with the same command
and ends with the same numbers. Digits need `pip install infocap[ml]`. This page is written by
`infocap reproduce all -o paper/figures --page paper/README.md`.

**agrees** and **differs** compare a statement of the paper with the simulation, by the criterion in the column
"expected"; where the paper says "about", "significant" or "overlap" it is our reading of the word. The criteria
were set before the full run and kept, except that the spread of errors (fig2) was split afterwards into its two
readings, which do not agree throughout. **reported** is a number without a statement. The paper's data come from
an experiment. Here the same experiment is simulated with the paper's parameters; nothing is fitted except
where the text says so. Totals are those of the paper's Algorithm 1, except in the extras.

"""
TAIL = """\
## Why some statements differ

- **Phase noise.** The paper's text adds phase noise to each encoding bin, its authors' program to each 1 GHz
  cell; the figures here use cells. For two inputs the two differ by several units of total capacity (fig1),
  and the experiment lies between them.
- **The nonlinear phase does not decide alone.** Over 40 m dispersion has eight times the length to reshape the
  light while the nonlinearity acts on it, and the curves of fig6 overlap only roughly. Without dispersion they
  fall onto each other exactly (a test in `tests/test_reproduce.py` shows it).
- **Degrees at low power.** At -9.1 dBm and 40 m the simulation already has some capacity in degrees 6 and above.
  It hardly changes up to -1.9 dBm, and grows from 1 dBm on, as the paper says.
- **Digits against power.** With phase noise alone the signal-to-noise ratio does not change with power, so low
  powers do better than in the experiment, and accuracy rises less clearly. A detector with a fixed noise floor
  (1e-5 of the peak at -1.9 dBm; our assumption) restores the rise: panels (c) and (d) of fig7.
- **The spiral.** The paper does not say how its two spirals lie in the plane. Ours was placed so that the level
  of accuracy comes close to the paper's ([docs/tasks.md](../docs/tasks.md)), so that the level agrees is no
  confirmation. The trends with power and length are.
- **Factors.** The indicator assumes noise that is independent between readouts, which the noise of a phase cell
  is not; a warning in `fig8.nc` says so. It counts fewer factors than there is capacity at high power.
- **Powers.** The text names some of the powers, not all: -9.1, -1.9, 1.0, 4.5 and 7.1 dBm stand for the sweep,
  and fig6 has -5.5 dBm as well.
- **Algorithm 1 and ours.** Algorithm 1 sets small capacities to zero, and with many small ones much of the total
  is lost. The control-variate estimator finds it, and says how surely (extras). The synthetic systems of fig2
  have no noise and lie within the basis, so there it is exact, which says little about noisy data; for those
  see [benchmarks/RESULTS.md](../benchmarks/RESULTS.md).
- **Algorithm 2.** Its total fluctuates more than that of Algorithm 1 with random points, as the paper says, and less
  with Sobol points.
- **Sign of the dispersion.** The paper prints the other sign ([docs/photonics.md](../docs/photonics.md)).
- **Not computed.** Panel (d) of the paper's Figure 3 and all measured points: they are the experiment's own.
- **Two readings of Figure 2(b).** It can be a histogram of single errors or of each function's mean error over
  the data sets; both are drawn and checked. Averaging over 1000 data sets removes what Sobol points reduce, and
  leaves what is systematic.
"""


def page(verdicts: Mapping[str, Sequence[Line]], folder: str) -> str:
    """The page as Markdown, with pictures from `folder`."""
    lines = [HEAD + "| figure | what it shows | command | verdicts |\n|---|---|---|---|"]
    for name, found in verdicts.items():
        lines.append(f"| [{name}](#{name}) | {_title(name)} | `infocap reproduce {name}` | {_counts(found)} |")
    for name, found in verdicts.items():
        lines.append(f"\n## {name}\n\n{_title(name)}. `infocap reproduce {name}`\n")
        lines.append(f"![{_title(name)}]({folder}/{name}.png)\n")
        lines.append("| statement | expected | found | verdict |\n|---|---|---|---|")
        lines += ["| " + " | ".join(map(_cell, one.values())) + " |" for one in found]
    return "\n".join(lines) + "\n\n" + TAIL


def _title(name: str) -> str:
    return importlib.import_module(f"{__package__}.{name}").TITLE


def _counts(found: Sequence[Line]) -> str:
    counts = Counter(one["verdict"] for one in found)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("agrees", "differs") if counts[verdict])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
