"""A look inside the photonic experiment: the pulse and its spectrum at each stage."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure, SubFigure

from ..systems.fibre import FibreSystem, ghz_per_nm
from ..typing import ArrayLike
from ._style import COLOURS, DOUBLE_MM, own_look

SHOWN_NM, SHOWN_PS = 1.9, 40.0
FINER = 8  # times as many points in time, for smooth curves


def fibre_stages(
    system: FibreSystem, u: ArrayLike, seed: Any = None, figure: Figure | SubFigure | None = None
) -> Any:
    """Laser, mask and output for one input vector: spectra (left) and powers in time (right).

    They fill the `figure` given, which can be a part of a larger one.

    >>> import infocap
    >>> import matplotlib.pyplot as plt
    >>> system = infocap.systems.FibreSystem(n_inputs=2, tolerance=1e-3)
    >>> figure = infocap.plot.fibre_stages(system, [[0.9, 0.5]], seed=1)
    >>> len(figure.axes)
    4
    >>> plt.close(figure)
    """
    stages = system.stages(np.atleast_2d(np.asarray(u, dtype=float))[:1], seed)
    grid = system.grid
    order = np.argsort(grid.frequency_thz)
    wavelength = system.pulse.wavelength_nm - grid.frequency_thz[order] * 1e3 / ghz_per_nm(
        system.pulse.wavelength_nm
    )
    pulse = system.pulse.amplitude(grid.frequency_thz) * grid.spacing_thz + 0j
    fields = {
        "laser": (pulse, COLOURS[6]),
        "after the encoder": (stages["before"][0], COLOURS[4]),
        f"after {system.length_m:g} m of fibre": (stages["after"][0], COLOURS[5]),
    }
    density = system.pulse.density_unit * grid.window_ps**2
    time = np.fft.fftshift(np.fft.fftfreq(FINER * grid.n_points)) * grid.window_ps
    with own_look():
        if figure is None:
            size = (DOUBLE_MM / 25.4, 0.62 * DOUBLE_MM / 25.4)
            figure = plt.figure(figsize=size, layout="constrained")
        panels = figure.subplots(2, 2)
        spectrum, mask, shape, log = panels[0, 0], panels[1, 0], panels[0, 1], panels[1, 1]
        for name, (field, colour) in fields.items():
            half = grid.n_points // 2
            finer = np.concatenate([field[:half], np.zeros((FINER - 1) * grid.n_points), field[half:]])
            power = np.abs(np.fft.fftshift(np.fft.fft(finer))) ** 2
            style: dict[str, Any] = {
                "color": colour,
                "linewidth": 2.0 if name == "after the encoder" else 0.9,
            }
            spectrum.plot(wavelength, np.abs(field[order]) ** 2 * density, label=name, **style)
            shape.plot(time, power, **style)
            log.semilogy(time, np.maximum(power, 1e-12), **style)
        transmission = stages["mask"][0][order]
        mask.plot(wavelength, np.real(transmission), color=COLOURS[2])
        mask.axhline(0, color="0.7", linewidth=0.5)
        spectrum.set(ylabel="power density (mW/nm)")
        spectrum.legend(loc="upper right")
        mask.set(ylabel="field transmission", xlabel="wavelength (nm)", ylim=(-1.1, 1.1))
        shape.set(ylabel="power (W)")
        log.set(
            ylabel="power (W)", xlabel="time (ps)", ylim=(1e-6 * system.peak_power_w, 3 * system.peak_power_w)
        )
        for panel in (spectrum, mask):
            panel.set_xlim(system.pulse.wavelength_nm - SHOWN_NM, system.pulse.wavelength_nm + SHOWN_NM)
        shape.set_xlim(-SHOWN_PS / 2, SHOWN_PS / 2)
        log.set_xlim(-5 * SHOWN_PS, 5 * SHOWN_PS)
    return figure
