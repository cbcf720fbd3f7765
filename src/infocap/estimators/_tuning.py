"""The numbers of the control-variate method in one place, each with what fixed it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Sizes, limits and rules of the search for a fit, of the zeros and of the checks of the control-variate method."""

    # Penalties of the ridge fits, per sample: from no shrinkage that could be seen to all but no fit, in steps of ten,
    # because the residual of a fit changes little within a factor of three of its best penalty.
    penalties: tuple[float, ...] = tuple(10.0**power for power in range(-8, 3))
    # Functions per sample above which a fit without penalty nearly interpolates, and its residuals mean nothing.
    full: float = 0.9
    # Samples per function from which least squares on the reported basis is tried; below, its Gram matrix is singular
    # or close to it.
    enough_samples: float = 1.3
    # Largest noise gain tr (Y'Y)^-1 of a stable least-squares fit (docs/estimators.md).
    stable_gain: float = 0.3

    # The dictionary of functions that may serve as controls: this share of the samples, at most so many, and always
    # some beyond the reported ones, to see whether they hold anything.
    dictionary_share: float = 0.4
    most_dictionary: int = 2100
    least_extra: int = 100
    # Samples from which a large dictionary costs more time than it saves error.
    many_samples: int = 10_000
    # Memory of the dictionary's values, and of readouts and residuals; with more, least squares in passes takes over.
    dictionary_bytes: int = 500_000_000
    search_bytes: int = 1_000_000_000
    # Functions with the largest expected capacity that a fit of a later round keeps: eigenvectors cost their cube.
    most_controls: int = 1000

    # Functions from which a first round without a prior costs more than it brings, if least squares is stable.
    large: int = 600
    # Rounds of empirical Bayes; a further one must lower the residuals by 3 %, and beyond so many operations the last
    # one must have brought them below 30 %. Below `exact` residuals are rounding.
    rounds: int = 6
    enough_better: float = 0.97
    exact: float = 1e-20
    most_work: float = 8e10
    worth: float = 0.3
    # Rows that judge the candidates by their left-out residuals: enough for the mean square to 3 %.
    judges: int = 2048
    # Least margin 1 - leverage, relative to its mean, by which residuals are divided: a few corner points would
    # dominate every sum otherwise. The second is for error bars, which must not be too short.
    least_margin: float = 0.25
    least_margin_plain: float = 0.02
    # Functions up to which two priors compete, one with a common share for each degree; the share that functions
    # which do not stand out get of the mean of their degree.
    both_rules: int = 1000
    degree_share: float = 0.3
    # Standard errors from which a capacity stands out; share of the noise of one capacity below which a control is
    # left out; least prior, relative to the largest.
    clear: float = 2.0
    far_below: float = 0.05
    least_prior: float = 1e-8
    # Values of coefficients that white noise is sent through to calibrate a fit, by 8 to 64 columns of noise.
    probed: int = 20_000

    # Largest bias of a capacity, and largest share of the samples that the fit may take as degrees of freedom, for the
    # second-order expansion to hold.
    largest_bias: float = 0.5
    most_freedom: float = 0.8
    # A capacity below this is rounding.
    smallest: float = 1e-7
    # On low-discrepancy points zeros may scatter less than white noise: seen from the 40 % quantile of at least 30
    # functions, if it is 5 % below.
    enough_for_scale: int = 30
    null_quantile: float = 0.4
    clearly_less: float = 0.95

    # Samples per function below which the total is the sum of the clear capacities alone.
    enough_for_total: int = 2
    # Samples per function of a low-discrepancy design below which capacity beyond the fit, if it is more than a half,
    # passes for other functions.
    enough_balanced: int = 32
    much_beyond: float = 0.5
    # E[y^4] per sample, and at least, above which a few samples decide the mean of y².
    heavy: float = 0.1
    least_heavy: float = 100.0
    # Samples that an error bar should rest on, and error from which that matters.
    few_contributors: int = 12
    noticeable: float = 1e-4


TUNING = Tuning()
