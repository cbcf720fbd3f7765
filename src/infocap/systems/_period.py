"""The period of a device that oscillates by itself, from its readouts."""

import numpy as np
import scipy

from .._validation import checks_arguments, require_numbers, require_whole_number
from ..errors import DataError
from ..typing import ArrayLike, Floats

# How often readouts without a period seem to have one, where the spectrum is flat around it.
FALSE_ALARM_RATE = 1e-3
# Zeros after the readouts make the frequencies of the transform so many times denser, so that one
# of them lies on the slope of every peak.
PADDING = 4
# The spectrum around a frequency is the mean over so many independent frequencies on either side,
# without those next to it, into which a wave leaks.
N_NEIGHBOURS = 40
N_LEAKED_INTO = 4
# Fewer oscillations than these are a drift.
MIN_OSCILLATIONS = 4
MIN_STEPS = 4 * N_NEIGHBOURS
# The strongest wave may be this harmonic of the fundamental at most.
MAX_HARMONIC = 8


@checks_arguments
def find_period(x: ArrayLike, washout: int = 0) -> float:
    """Return the period, in steps, of the strongest oscillation of the readouts.

    A device with a limit cycle, or one that is driven by a clock, answers with functions of time,
    too. With the period, `delayed_basis(..., period=..., time_degree=1)` counts them. Found is the
    frequency of the largest sum of squared Fourier amplitudes over the readouts, each in units of
    its standard deviation, refined between the frequencies of the transform. Where a wave of two,
    three, ... up to eight times the period stands out as well, the longest such period is meant.

    Parameters
    ----------
    x
        Readouts (steps, readouts) of one run.
    washout
        How many steps at the start are left out.

    Returns
    -------
    float
        The period in steps, which need not be whole.

    Raises
    ------
    DataError
        When no frequency stands out of its neighbours.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> wave = np.cos(2 * np.pi * np.arange(2000) / 23.7)
    >>> x = wave[:, None] + generator.standard_normal((2000, 3))
    >>> round(find_period(x), 1)
    23.7
    """
    readouts = require_numbers("x", x, finite=False)
    if readouts.ndim != 2 or not np.isfinite(readouts).all():
        raise DataError(f"x has shape {readouts.shape}; give finite readouts (steps, readouts).")
    readouts = readouts[require_whole_number("washout", washout, minimum=0) :]
    n_steps = len(readouts)
    if n_steps < MIN_STEPS:
        raise DataError(
            f"x has {n_steps} steps after the washout; a period needs {MIN_STEPS} or more."
        )
    deviation = readouts.std(axis=0)
    is_live = deviation > 0
    if not is_live.any():
        raise DataError("x has no readout that changes; check that the device was on.")
    series = (readouts[:, is_live] - readouts[:, is_live].mean(axis=0)) / deviation[is_live]

    power = _power(series, PADDING * n_steps)
    first = PADDING * MIN_OSCILLATIONS
    peak = first + int(np.argmax(power[first:]))
    ratio = power[peak] / _mean_around(power, peak)
    threshold = np.log(n_steps / 2) - np.log(FALSE_ALARM_RATE)
    if ratio < threshold:
        raise DataError(
            f"no period stands out: the strongest wave, of {PADDING * n_steps / peak:.4g} steps, "
            f"has {ratio:.1f} times the power of its neighbours and would need {threshold:.1f}; "
            "record more steps, or give the period if you know it."
        )

    steps = np.arange(n_steps)

    def minus_power(frequency: float) -> float:
        wave = np.exp(-2j * np.pi * frequency * steps)
        return -float(np.sum(np.abs(wave @ series) ** 2))

    spacing = 1 / (PADDING * n_steps)
    best = scipy.optimize.minimize_scalar(
        minus_power,
        bounds=((peak - 1) * spacing, (peak + 1) * spacing),
        method="bounded",
        options={"xatol": 1e-4 * spacing},
    )
    return float(_harmonic(power, peak, threshold) / best.x)


def _harmonic(power: Floats, peak: int, threshold: float) -> int:
    """Return which harmonic the strongest wave is of the longest period that stands out."""
    for harmonic in range(MAX_HARMONIC, 1, -1):
        place = round(peak / harmonic)
        if place < PADDING * MIN_OSCILLATIONS:
            continue
        highest = power[place - PADDING : place + PADDING + 1].max()
        if highest > threshold * _mean_around(power, place):
            return harmonic
    return 1


def _power(series: Floats, n_points: int) -> Floats:
    """Return the sum over readouts of the squared Fourier amplitudes, (frequencies,)."""
    amplitudes = np.fft.rfft(series, n_points, axis=0)
    return np.sum(np.abs(amplitudes) ** 2, axis=1)


def _mean_around(power: Floats, peak: int) -> float:
    """Return the mean power of the independent frequencies around a peak."""
    offsets = PADDING * np.arange(N_LEAKED_INTO, N_LEAKED_INTO + N_NEIGHBOURS)
    places = np.concatenate([peak - offsets, peak + offsets])
    places = places[(places > 0) & (places < len(power))]
    return float(power[places].mean())
