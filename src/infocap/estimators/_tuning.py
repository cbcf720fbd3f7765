"""The numbers of the control-variate method in one place, each with what fixed it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Sizes and rules of the control-variate method; docs/estimators.md shows the measurements behind them."""

    # Penalties of the ridge fits, per sample: first without a prior, then with one. The residual of a fit changes
    # little within a factor of ten of its best penalty: twice as many penalties gave the same errors.
    penalties: tuple[tuple[float, ...], ...] = ((0.0, 1e-2, 1.0), (1e-6, 1e-4, 1e-3, 1e-2, 1e-1))
    # Functions that serve as controls: per sample, because leverages come near 1 beyond; per reported function, because
    # higher degrees than that were found to hold nothing; a number that costs no time; and one that fits everywhere.
    controls_per_sample: float = 0.4
    controls_per_function: float = 4.0
    controls: int = 1000
    most_controls: int = 4000
    # Rows that judge the fits by their left-out residuals, and vectors of random signs by which leverages are found, to
    # a quarter of themselves: twice as many of both gave the same errors.
    judges: int = 1024
    signs: int = 32
    # A direction takes another fit than the common one if that leaves 2 % less: fewer fits are faster and less lucky.
    clearly_better: float = 0.98
    # Least margin 1 - leverage, relative to its mean, by which residuals are divided: a few corner points would
    # dominate every sum otherwise. The second is for error bars, which must not be too short: with the first, those
    # of nearly noise-free devices held in 80 %.
    least_margins: tuple[float, float] = (0.25, 0.02)
    # Share of what the first of them takes away that the error bar of the total allows for: dividing by smaller margins
    # would change the total by about as much, and so do the errors of nearly noise-free devices.
    capped: float = 2.0
    # Standard errors from which a capacity stands out and keeps its own prior; share of the noise of one capacity below
    # which a control is left out; least prior, relative to the largest.
    clear: float = 2.0
    far_below: float = 0.05
    least_prior: float = 1e-8
    # Eigenvalues of G, which are 1 for whitened readouts and many samples; estimates below this are noise.
    least_eigenvalue: float = 0.1
    # Share of the bias removed that the error bars allow for what is left of it: S_N / (K N) is the next term of the
    # series, and a half of it covers 95 % of the totals of benchmarks/accuracy.py.
    third_order: float = 0.5


TUNING = Tuning()
