"""A look inside the photonic experiment: the pulse and its spectrum at each stage."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure, SubFigure

from ..plot._style import COLOURS, DOUBLE_MM, own_look
from ..typing import ArrayLike
from ._stages import ghz_per_nm
from ._system import FibreSystem

SHOWN_NM, SHOWN_PS = 1.9, 40.0
FINER = 8  # Points in time per point of the simulation: enough for smooth curves.


def stages(
    system: FibreSystem, u: ArrayLike, seed: Any = None, figure: Figure | SubFigure | None = None
) -> Any:
    """Laser, mask and output for one input vector: spectra (left) and powers in time (right).

    They fill the `figure` given, which can be a part of a larger one.

    >>> system = infocap.photonics.FibreSystem(n_inputs=2, tolerance=1e-3)
    >>> figure = infocap.photonics.plot.stages(system, [[0.9, 0.5]], seed=1)
    >>> len(figure.axes)
    4
    """
    fields = system.stages(np.atleast_2d(np.asarray(u, dtype=float))[:1], seed)
    grid, centre = system.grid, system.pulse.wavelength_nm
    order = np.argsort(grid.frequency_thz)
    wavelength = centre - grid.frequency_thz[order] * 1e3 / ghz_per_nm(centre)
    time = np.fft.fftshift(np.fft.fftfreq(FINER * grid.n_points)) * grid.window_ps
    density = system.pulse.density_unit * grid.window_ps**2
    pulse = system.pulse.amplitude(grid.frequency_thz) * grid.spacing_thz + 0j
    with own_look():
        if figure is None:
            figure = plt.figure(
                figsize=(DOUBLE_MM / 25.4, 0.62 * DOUBLE_MM / 25.4), layout="constrained"
            )
        (spectrum, shape), (mask, log) = figure.subplots(2, 2)
        for name, field, colour, linewidth in (
            ("laser", pulse, COLOURS[6], 0.9),
            ("after the encoder", fields["before"][0], COLOURS[4], 2.0),
            (f"after {system.length_m:g} m of fibre", fields["after"][0], COLOURS[5], 0.9),
        ):
            look: Any = {"color": colour, "linewidth": linewidth}
            finer = np.insert(field, len(field) // 2, np.zeros((FINER - 1) * len(field)))
            power = np.abs(np.fft.fftshift(np.fft.fft(finer))) ** 2
            spectrum.plot(wavelength, np.abs(field[order]) ** 2 * density, label=name, **look)
            shape.plot(time, power, **look)
            log.semilogy(time, np.maximum(power, 1e-12), **look)
        mask.plot(wavelength, np.real(fields["mask"][0][order]), color=COLOURS[2])
        mask.axhline(0, color="0.7", linewidth=0.5)
        near = (centre - SHOWN_NM, centre + SHOWN_NM)
        spectrum.set(ylabel="power density (mW/nm)", xlim=near)
        spectrum.legend(loc="upper right")
        mask.set(ylabel="field transmission", xlabel="wavelength (nm)", xlim=near, ylim=(-1.1, 1.1))
        shape.set(ylabel="power (W)", xlim=(-SHOWN_PS / 2, SHOWN_PS / 2))
        log.set(ylabel="power (W)", xlabel="time (ps)", xlim=(-5 * SHOWN_PS, 5 * SHOWN_PS))
        log.set_ylim(1e-6 * system.peak_power_w, 3 * system.peak_power_w)
    return figure
