"""Drift: how far the device moved, as reference inputs and repeated inputs show it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import Check
from ..typing import Floats, Integers
from ._whitening import noise_covariance

# Fewer references than this tell no drift from noise.
MIN_REFERENCES = 8
# The chance of a warning about drift between repeats when there is none.
FALSE_ALARM_RATE = 1e-6
# Drift between repeats matters when it lowers the total by more than this many standard errors.
HARMLESS_ERRORS = 0.1
# The noise that rounding makes, relative to the variance of a readout.
ROUNDING_VARIANCE = 1e-18


@dataclass(frozen=True, eq=False)
class ReferenceMotion:
    """How measurements at reference inputs moved.

    Distances are in units of the spread of the readouts over the samples.
    """

    distance: Floats  # of each from the first at its input, root mean square over the channels
    size: float  # root mean square motion that exceeds the noise
    noise: float  # standard deviation of the noise of single measurements


def motion_of_reference(
    reference: Floats, spread: Floats, input_numbers: Integers
) -> ReferenceMotion | None:
    """Return the motion of a reference (measurements, channels).

    `spread` is the standard deviation of each channel over the samples, and `input_numbers` tell
    which of the reference inputs each measurement was made at.

    Neighbouring measurements differ by noise. What the whole run scatters more than they do is slow
    motion (von Neumann's ratio). None where no channel changes over the samples.
    """
    usable = (spread > 0) & np.isfinite(reference).all(axis=0)
    if not usable.any():
        return None
    from_first = np.empty((len(reference), int(usable.sum())))
    from_mean = np.empty_like(from_first)
    for number in np.unique(input_numbers):
        rows = np.flatnonzero(input_numbers == number)
        # The difference from the first measurement keeps a constant channel at exactly zero.
        difference = (reference[rows] - reference[rows[0]])[:, usable] / spread[usable]
        from_first[rows] = difference
        from_mean[rows] = difference - difference.mean(axis=0)
    n_free = len(reference) - len(np.unique(input_numbers))
    variance = float(np.mean(from_mean**2)) * len(reference) / max(n_free, 1)
    noise_variance = float(np.mean(np.diff(from_mean, axis=0) ** 2)) / 2
    return ReferenceMotion(
        distance=np.sqrt(np.mean(from_first**2, axis=1)),
        size=float(np.sqrt(max(variance - noise_variance, 0.0))),
        noise=float(np.sqrt(noise_variance)),
    )


def drift_between_repeats(repeated: Floats, standard_error: float) -> Check | None:
    """Return a warning where the means of the repeats differ by more than the noise allows.

    `repeated` are whitened readouts (inputs, repeats, directions), and `standard_error` is that of
    the total. The test is Hotelling's T², as an F statistic.
    """
    from scipy.special import fdtrc

    n_inputs, n_repeats, n_directions = repeated.shape
    degrees_of_freedom = (n_inputs - 1) * (n_repeats - 1)
    if degrees_of_freedom < 2 * n_directions:
        return None
    means = repeated.mean(axis=0) - repeated.mean(axis=(0, 1))  # (repeats, directions)
    noise = noise_covariance(repeated - means) * n_inputs / (n_inputs - 1)
    variances, vectors = np.linalg.eigh(noise)
    floored = np.maximum(variances, 0.0) + ROUNDING_VARIANCE
    distance = n_inputs * np.sum((means @ vectors) ** 2 / floored)

    # T² in units of its mean, which follows an F distribution.
    degrees_of_freedom_of_means = n_directions * (n_repeats - 1)
    degrees_of_freedom_of_noise = degrees_of_freedom - n_directions + 1
    statistic = (
        distance * degrees_of_freedom_of_noise / (degrees_of_freedom * degrees_of_freedom_of_means)
    )
    chance = fdtrc(degrees_of_freedom_of_means, degrees_of_freedom_of_noise, statistic)

    lost_capacity = np.sum(means**2) / (n_repeats - 1) - np.trace(noise) / n_inputs
    if chance >= FALSE_ALARM_RATE or lost_capacity <= HARMLESS_ERRORS * standard_error:
        return None
    return Check(
        "the device drifted between the repeats: their means differ by more than the noise allows, "
        f"which counts as noise and lowers the total by up to {lost_capacity:.2g}; interleave the "
        "repeats."
    )
