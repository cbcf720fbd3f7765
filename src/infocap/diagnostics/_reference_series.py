"""The readouts at reference inputs, as deviations from their usual value at the same input.

Reference inputs are measured again and again, so no fit by functions of the inputs is needed. The
tests in `_reference_changes` look for changes of these deviations with time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..typing import Floats, Integers

# Measurements at an input; those at an input measured less often are left out.
MIN_PER_INPUT = 4
# Channels that are looked at, equally spaced among more.
MAX_CHANNELS = 512
# Deviations from the usual readout at an input are cut here, in standard deviations of the channel
# over the samples: a single wild value (a glitch) is no change of the device.
MAX_DEVIATION_IN_SAMPLE_UNITS = 5.0
# A noise (scatter at one input) below this, in standard deviations over the samples, is rounding.
MIN_NOISE = 1e-9
# The noise is estimated from this quantile of the absolute deviations, which of a normal
# distribution is 1.645 standard deviations. Fewer outliers do not change it.
NOISE_QUANTILE = 0.9
NORMAL_QUANTILE = 1.645
# Deviations in units of the noise are cut here.
MAX_DEVIATION_IN_NOISE_UNITS = 3.0
# Principal components of the deviations: a change of many channels is seen there that is lost in
# the noise of each.
N_COMPONENTS = 4
# Relative variance of a direction of the readouts below which it is rounding, and samples for each
# direction that capacities are computed in.
MIN_RELATIVE_VARIANCE = 1e-10
MIN_SAMPLES_PER_DIRECTION = 4
# Deviations beyond this, in units of the noise, count as this in the logarithm of the misfit, and
# a mean square as no less than that.
MAX_MISFIT_DEVIATION = 30.0
MIN_MEAN_SQUARE = 1e-3


@dataclass(frozen=True, eq=False)
class References:
    """Readouts at a few inputs that were measured again and again, in the order of acquisition.

    Parameters
    ----------
    readouts
        What came back, (measurements, channels).
    input_numbers
        Which of the reference inputs it was, (measurements,).
    rows_before
        How many samples had been measured before, (measurements,); None where it is not known.
    time
        When, in seconds, (measurements,); None where it is not known.
    channels
        The names of the channels.
    samples
        Readouts of some samples, (rows, channels): the unit in which changes are told.
    """

    readouts: Floats
    input_numbers: Integers
    rows_before: Integers | None
    time: Floats | None
    channels: list[str]
    samples: Floats


@dataclass(frozen=True, eq=False)
class ReferenceSeries:
    """The reference measurements in the order of acquisition, in two units.

    The sample unit is a channel's standard deviation over the samples. The noise unit is its
    scatter at one and the same input. Deviations have mean zero at each input.
    """

    rows_of_inputs: list[Integers]  # for each input, the numbers of its measurements
    deviations: Floats  # in noise units, extremes cut, (measurements, channels)
    components: Floats  # principal components of these, (measurements, components)
    log_misfit: Floats  # log of each measurement's mean squared deviation, (measurements, 1)
    whitened: Floats  # deviations in whitened readouts, (measurements, directions)
    readouts: Floats  # in sample units, extremes cut, (measurements, channels)
    noise: Floats  # of each channel in sample units, (channels,)
    samples: Floats  # in sample units, mean 0, (rows, channels)
    channels: Integers  # numbers of the channels that are noisy; the others are left out

    @property
    def n(self) -> int:
        """Number of measurements."""
        return len(self.readouts)

    @property
    def n_free(self) -> int:
        """Degrees of freedom: the number of measurements less one for each input."""
        return self.n - len(self.rows_of_inputs)


def usable_references(references: References) -> References:
    """Return the references without missing values and inputs that were measured too seldom."""
    is_usable = np.isfinite(references.readouts).all(axis=1)
    numbers = references.input_numbers
    for number in np.unique(numbers):
        is_at_input = numbers == number
        if np.sum(is_usable & is_at_input) < MIN_PER_INPUT:
            is_usable &= ~is_at_input
    rows_before = references.rows_before
    step = -(-len(references.channels) // MAX_CHANNELS)
    samples = references.samples[:, ::step]
    return References(
        readouts=references.readouts[is_usable, ::step],
        input_numbers=numbers[is_usable],
        rows_before=None if rows_before is None else rows_before[is_usable],
        time=None if references.time is None else references.time[is_usable],
        channels=references.channels[::step],
        samples=samples[np.isfinite(samples).all(axis=1)],
    )


def prepare_references(references: References) -> ReferenceSeries:
    """Return the deviations of each measurement from the others at its input."""
    mean = references.samples.mean(axis=0)
    unit = references.samples.std(axis=0)
    is_live = unit > 0
    samples = (references.samples - mean)[:, is_live] / unit[is_live]
    readouts = (references.readouts - mean)[:, is_live] / unit[is_live]

    numbers = references.input_numbers
    rows_of_inputs = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    usual = np.empty_like(readouts)
    for rows in rows_of_inputs:
        usual[rows] = np.median(readouts[rows], axis=0)
    limit = MAX_DEVIATION_IN_SAMPLE_UNITS
    deviation = (readouts - usual).clip(-limit, limit)

    # A rounded readout may have been any number in its step, so noise of that size is added.
    generator = np.random.default_rng(0)
    step = _smallest_steps(deviation, rows_of_inputs)
    dithered = deviation + step * generator.uniform(-0.5, 0.5, deviation.shape)
    noise = np.quantile(np.abs(dithered), NOISE_QUANTILE, axis=0) / NORMAL_QUANTILE
    is_noisy = noise > MIN_NOISE
    in_noise_units = dithered[:, is_noisy] / noise[is_noisy]

    limit = MAX_DEVIATION_IN_NOISE_UNITS
    deviations = centred(in_noise_units.clip(-limit, limit), rows_of_inputs)
    misfit = in_noise_units.clip(-MAX_MISFIT_DEVIATION, MAX_MISFIT_DEVIATION)
    mean_square = np.sum(misfit**2, axis=1, keepdims=True) / max(misfit.shape[1], 1)
    return ReferenceSeries(
        rows_of_inputs=rows_of_inputs,
        deviations=deviations,
        components=principal_components(deviations),
        log_misfit=centred(np.log(mean_square + MIN_MEAN_SQUARE), rows_of_inputs),
        whitened=centred(deviation @ _whitening(samples), rows_of_inputs),
        readouts=(usual + deviation)[:, is_noisy],
        noise=noise[is_noisy],
        samples=samples[:, is_noisy],
        channels=np.flatnonzero(is_live)[is_noisy],
    )


def _smallest_steps(deviation: Floats, rows_of_inputs: list[Integers]) -> Floats:
    """Return the smallest difference between unequal readouts at an input, of each channel."""
    smallest = np.full(deviation.shape[1], np.inf)
    for rows in rows_of_inputs:
        gaps = np.diff(np.sort(deviation[rows], axis=0), axis=0)
        gaps = np.where(gaps > MIN_NOISE, gaps, np.inf)
        smallest = np.minimum(smallest, gaps.min(axis=0))
    return np.where(np.isfinite(smallest), smallest, 0.0)


def centred(values: Floats, rows_of_inputs: list[Integers]) -> Floats:
    """Return values minus their mean at each input."""
    deviations = np.array(values)
    for rows in rows_of_inputs:
        deviations[rows] -= deviations[rows].mean(axis=0)
    return deviations


def principal_components(values: Floats) -> Floats:
    """Return the first principal components of columns, (measurements, components).

    They are the same combinations of columns in any order of the measurements. So they may be
    chosen before these are permuted.
    """
    if not values.size:
        return values
    left, sizes, _ = np.linalg.svd(values, full_matrices=False)
    return (left * sizes)[:, :N_COMPONENTS]


def _whitening(samples: Floats) -> Floats:
    """Return the matrix that makes channels uncorrelated, of variance 1, (channels, directions)."""
    covariance = samples.T @ samples / len(samples)
    variance, vectors = np.linalg.eigh(covariance)
    n_kept = max(len(samples) // MIN_SAMPLES_PER_DIRECTION, 1)
    is_kept = variance > MIN_RELATIVE_VARIANCE * variance.max(initial=0.0)
    is_kept[:-n_kept] = False
    return vectors[:, is_kept] / np.sqrt(variance[is_kept])
