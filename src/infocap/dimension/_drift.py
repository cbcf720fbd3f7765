"""Drift: whether the device changed, as a reference input and repeated inputs show it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._formatting import percent
from ..errors import Check
from ..typing import Floats
from ._whitening import noise_covariance

# Variance of the reference over the whole run, relative to the noise that neighbouring measurements
# show, from which the device drifted.
MIN_VARIANCE_RATIO = 2.0
# With few references that ratio exceeds 1 by chance: by this over the root of their number at most.
MAX_CHANCE_EXCESS = 6.0
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
    """How measurements at one reference input moved.

    Distances are in units of the spread of the readouts over the samples.
    """

    distance: Floats  # of each measurement from the first, root mean square over the channels
    size: float  # root mean square motion that exceeds the noise
    noise: float  # standard deviation of the noise of single measurements
    variance_ratio: float  # variance over the run, relative to that of the noise

    @property
    def check(self) -> Check | None:
        """A warning where the device drifted."""
        limit = max(MIN_VARIANCE_RATIO, 1 + MAX_CHANCE_EXCESS / np.sqrt(len(self.distance)))
        if self.variance_ratio <= limit:
            return None
        return Check(
            f"the device drifted: its reference moved by {percent(self.size)} of the readouts' "
            f"spread (root mean square), and scatters {self.variance_ratio:.1f} times more over "
            "the run than from one measurement to the next; keep its temperature and power steady, "
            "or measure faster."
        )


def motion_of_reference(reference: Floats, spread: Floats) -> ReferenceMotion | None:
    """Return the motion of a reference (measurements, channels).

    `spread` is the standard deviation of each channel over the samples.

    Neighbouring measurements differ by noise. If the whole run scatters much more than they do, the
    device moved slowly (von Neumann's ratio). None where no channel changes over the samples.
    """
    usable = (spread > 0) & np.isfinite(reference).all(axis=0)
    if not usable.any():
        return None
    # The difference from the first measurement keeps a constant channel at exactly zero.
    scaled: Floats = (reference - reference[0])[:, usable] / spread[usable]
    scaled = scaled - scaled.mean(axis=0)
    n_measurements = len(scaled)
    variance = float(np.mean(scaled**2)) * n_measurements / (n_measurements - 1)
    noise_variance = float(np.mean(np.diff(scaled, axis=0) ** 2)) / 2
    if noise_variance > 0:
        variance_ratio = variance / noise_variance
    else:
        variance_ratio = np.inf if variance > 0 else 1.0
    return ReferenceMotion(
        distance=np.sqrt(np.mean((scaled - scaled[0]) ** 2, axis=1)),
        size=float(np.sqrt(max(variance - noise_variance, 0.0))),
        noise=float(np.sqrt(noise_variance)),
        variance_ratio=variance_ratio,
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
