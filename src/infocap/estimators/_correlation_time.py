"""How many rows a series stays correlated: 1 + 2 sum of its autocorrelations."""

from __future__ import annotations

import numpy as np
import scipy

from ..typing import Floats

# Autocorrelation below which the sum that makes up the correlation time ends.
END_OF_CORRELATION = 0.05
# Part of the rows that is the longest lag of an autocorrelation.
MAX_LAG_OF_ROWS = 0.25


def lagged_products(series: Floats, n_lags: int) -> Floats:
    """Return the sums of products of rows with later ones, of all columns together, (lags,).

    Parameters
    ----------
    series
        The series, (rows, columns).
    n_lags
        How many lags there are, from 0 on.
    """
    n_padded = scipy.fft.next_fast_len(len(series) + n_lags, real=True)
    spectrum = np.abs(scipy.fft.rfft(series, n_padded, axis=0)) ** 2
    products: Floats = scipy.fft.irfft(spectrum.sum(axis=1), n_padded)[:n_lags]
    return products


def time_of_correlations(correlations: Floats) -> float:
    """Return 1 + 2 sum of autocorrelations from lag 1 to the first one below 0.05."""
    is_small = correlations < END_OF_CORRELATION
    end = int(np.argmax(is_small)) if is_small.any() else len(correlations)
    return 1 + 2 * float(correlations[1:end].sum())
