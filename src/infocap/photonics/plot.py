"""A look inside the photonic experiment: the pulse and its spectrum at each stage."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure, SubFigure

from .._validation import checks_arguments, require_numbers
from ..plot import COLOURS, DOUBLE_MM, MM_PER_INCH, package_style
from ..typing import ArrayLike, Floats
from ._stages import ghz_per_nm
from ._system import FibreSystem

# Height of the figure over its width.
FIGURE_ASPECT = 0.62
# Ranges shown: of wavelengths, and of time on a linear and a logarithmic scale of power.
SHOWN_NM = 3.8
SHOWN_PS = 40.0
SHOWN_PS_LOGARITHMIC = 400.0
# Points in time per point of the simulation: enough for smooth curves.
INTERPOLATION = 8
# Powers below this, in W, are not drawn on the logarithmic scale.
MIN_POWER_W = 1e-12


@checks_arguments
def stages(
    system: FibreSystem, u: ArrayLike, seed: Any = None, figure: Figure | SubFigure | None = None
) -> Figure | SubFigure:
    """Draw laser, mask and output for one input vector: spectra (left) and powers in time (right).

    Parameters
    ----------
    system
        The experiment.
    u
        One input vector; of several rows the first is taken.
    seed
        Of the phase noise.
    figure
        Where to draw, which can be a part of a larger figure; by default a new figure.

    Returns
    -------
    Figure
        The figure.

    Examples
    --------
    >>> system = infocap.photonics.FibreSystem(n_inputs=2, tolerance=1e-3)
    >>> figure = infocap.photonics.plot.stages(system, [[0.9, 0.5]], seed=1)
    >>> len(figure.axes)
    4
    """
    light = system.stages(np.atleast_2d(require_numbers("u", u))[:1], seed)
    grid = system.grid
    centre = system.pulse.wavelength_nm
    order = np.argsort(grid.frequency_thz)
    wavelength = centre - grid.frequency_thz[order] * 1e3 / ghz_per_nm(centre)
    density_unit = system.pulse.density_unit * grid.window_ps**2
    laser = system.pulse.amplitude(grid.frequency_thz) * grid.spacing_thz + 0j
    output_name = f"after {system.length_m:g} m of fibre"
    with package_style():
        if figure is None:
            width = DOUBLE_MM / MM_PER_INCH
            figure = plt.figure(figsize=(width, FIGURE_ASPECT * width), layout="constrained")
        (spectra, pulses), (mask, pulses_logarithmic) = figure.subplots(2, 2)
        for name, field, colour, linewidth in (
            ("laser", laser, COLOURS[6], 0.9),
            ("after the encoder", light["before"][0], COLOURS[4], 2.0),
            (output_name, light["after"][0], COLOURS[5], 0.9),
        ):
            style: Any = {"color": colour, "linewidth": linewidth}
            density = np.abs(field[order]) ** 2 * density_unit
            spectra.plot(wavelength, density, label=name, **style)
            time, power = _power_in_time(field, grid.window_ps)
            pulses.plot(time, power, **style)
            pulses_logarithmic.semilogy(time, np.maximum(power, MIN_POWER_W), **style)
        mask.plot(wavelength, np.real(light["mask"][0][order]), color=COLOURS[2])
        mask.axhline(0, color="0.7", linewidth=0.5)
        wavelength_limits = (centre - SHOWN_NM / 2, centre + SHOWN_NM / 2)
        spectra.set(ylabel="power density (mW/nm)", xlim=wavelength_limits)
        spectra.legend(loc="upper right")
        mask.set(ylabel="field transmission", xlabel="wavelength (nm)")
        mask.set(xlim=wavelength_limits, ylim=(-1.1, 1.1))
        pulses.set(ylabel="power (W)", xlim=(-SHOWN_PS / 2, SHOWN_PS / 2))
        pulses_logarithmic.set(ylabel="power (W)", xlabel="time (ps)")
        pulses_logarithmic.set_xlim(-SHOWN_PS_LOGARITHMIC / 2, SHOWN_PS_LOGARITHMIC / 2)
        pulses_logarithmic.set_ylim(1e-6 * system.peak_power_w, 3 * system.peak_power_w)
    return figure


def _power_in_time(field: Any, window_ps: float) -> tuple[Floats, Floats]:
    """Return times in ps and the power in W, interpolated by zeros far from the carrier."""
    n_points = len(field)
    zeros = np.zeros((INTERPOLATION - 1) * n_points)
    interpolated = np.insert(field, n_points // 2, zeros)
    time = np.fft.fftshift(np.fft.fftfreq(INTERPOLATION * n_points)) * window_ps
    power = np.abs(np.fft.fftshift(np.fft.fft(interpolated))) ** 2
    return time, power
