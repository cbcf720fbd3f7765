"""Instruments of other libraries as one instrument of infocap; none of them is imported here."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._validation import (
    check_fields,
    checks_arguments,
    require_number,
    require_numbers,
    require_whole_number,
    shown,
)
from ..errors import ParameterError
from ..typing import Floats

__all__ = ["SetAndRead", "pymeasure", "qcodes"]


@dataclass(eq=False)
class SetAndRead:
    """An instrument made of functions: one per input that sets it, and functions that read.

    Parameters
    ----------
    inputs
        A function for each input, which takes its value and sets it.
    readouts
        Functions that return numbers or arrays; together these are the row.
    extra
        Functions that read further values, by name: ``{"Temperature [K]": read_temperature}``.
    rest
        The values to which the inputs are set at the end of an acquisition, however it ends.
    shutdown
        Functions that are called after that.
    identity
        Tells one instrument from another, such as a serial number.

    Raises
    ------
    ParameterError
        If there is not one value of `rest` for each input.

    Examples
    --------
    >>> voltage = []
    >>> device = SetAndRead(
    ...     inputs=[voltage.append],
    ...     readouts=[lambda: voltage[-1] ** 2],
    ...     extra={"T [K]": lambda: 293.0},
    ... )
    >>> device.measure([0.5])
    (array([0.25]), {'T [K]': 293.0})
    """

    inputs: Sequence[Callable[[float], Any]]
    readouts: Sequence[Callable[[], Any]]
    _: KW_ONLY
    extra: Mapping[str, Callable[[], Any]] | None = None
    rest: Sequence[float] | None = None
    shutdown: Sequence[Callable[[], Any]] = ()
    identity: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rest is not None and len(self.rest) != len(self.inputs):
            raise ParameterError(
                f"`rest={self.rest!r}` must have a value for each of {len(self.inputs)} inputs."
            )

    @checks_arguments
    def measure(
        self, u: Floats, settle_s: float = 0.0, averages: int = 1
    ) -> tuple[Floats, dict[str, float]]:
        """Set the inputs, wait, and read.

        Parameters
        ----------
        u
            The inputs, (inputs,).
        settle_s
            How long to wait before reading, in seconds.
        averages
            The number of readings.

        Returns
        -------
        readouts, extra
            The mean of the readings, (channels,), and the extra values after the last of them.
        """
        u = require_numbers("u", u, "inputs")
        if len(u) != len(self.inputs):
            raise ParameterError(f"`u` has {len(u)} values for {len(self.inputs)} inputs.")
        seconds = require_number("settle_s", settle_s, minimum=0.0)
        require_whole_number("averages", averages, minimum=1)
        self._set(u)
        time.sleep(seconds)
        readings = []
        for _ in range(averages):
            readings.append(np.concatenate([np.ravel(read()) for read in self.readouts]))
        readers = self.extra or {}
        extra = {name: float(read()) for name, read in readers.items()}
        return np.mean(readings, axis=0), extra

    def safe(self) -> None:
        """Set the inputs to where they may rest, and shut down what can be shut down."""
        if self.rest is not None:
            self._set(self.rest)
        for shut_down in self.shutdown:
            shut_down()

    def _set(self, values: Sequence[float] | Floats) -> None:
        for set_input, value in zip(self.inputs, values, strict=True):
            set_input(float(value))


@checks_arguments
def qcodes(
    station: Any,
    inputs: Sequence[Any],
    readouts: Sequence[Any],
    extra: Sequence[Any] = (),
    **settings: Any,
) -> SetAndRead:
    """Return parameters of a QCoDeS station as one instrument.

    Parameters
    ----------
    station
        A QCoDeS `Station`.
    inputs, readouts, extra
        Parameters of QCoDeS, each given as itself or by its full name, such as ``"dac_ch1"``. Extra
        values are named by label and unit.
    **settings
        Further settings of `SetAndRead`, such as ``rest=[0, 0]``.

    Examples
    --------
    >>> class Parameter:  # in place of one of QCoDeS
    ...     label = "Bias"
    ...     unit = "V"
    ...     value = 0.0
    ...     def __call__(self, *values):
    ...         self.value = values[0] if values else self.value
    ...         return self.value
    >>> bias = Parameter()
    >>> station = SimpleNamespace(components={"source": None})
    >>> qcodes(station, [bias], [bias], extra=[bias]).measure([0.5])
    (array([0.5]), {'Bias [V]': 0.5})
    """

    def find(parameter: Any) -> Any:
        return station.get_component(parameter) if isinstance(parameter, str) else parameter

    if not hasattr(station, "components"):
        raise ParameterError(f"`station={shown(station)}` must be a Station of QCoDeS.")
    extra_by_name = {}
    for parameter in map(find, extra):
        unit = f" [{parameter.unit}]" if parameter.unit else ""
        extra_by_name[f"{parameter.label}{unit}"] = parameter
    defaults: dict[str, Any] = {
        "identity": f"QCoDeS station of {', '.join(station.components)}",
        "extra": extra_by_name,
    }
    return SetAndRead(list(map(find, inputs)), list(map(find, readouts)), **defaults | settings)


@checks_arguments
def pymeasure(
    instruments: Mapping[str, Any],
    inputs: Sequence[str],
    readouts: Sequence[str],
    extra: Sequence[str] = (),
    **settings: Any,
) -> SetAndRead:
    """Return properties of PyMeasure instruments as one instrument.

    At the end of an acquisition `shutdown()` of each instrument is called, which switches its
    outputs off.

    Parameters
    ----------
    instruments
        Instruments of PyMeasure by a name of your own.
    inputs, readouts, extra
        Names of properties, such as ``"source.source_voltage"``.
    **settings
        Further settings of `SetAndRead`, such as ``rest=[0, 0]``.

    Raises
    ------
    ParameterError
        If an instrument has no such property: to set it would send nothing, and raise nothing.

    Examples
    --------
    >>> class Source:  # in place of an instrument of PyMeasure
    ...     name = "source"
    ...     voltage = 0.0
    ...     def shutdown(self):
    ...         print("off")
    >>> device = pymeasure({"source": Source()}, ["source.voltage"], ["source.voltage"])
    >>> device.measure([0.5])
    (array([0.5]), {})
    >>> device.safe()
    off
    """

    def find(name: str) -> tuple[Any, str]:
        """Return the object that has the property, and the last part of its name."""
        path, _, attribute = name.rpartition(".")
        try:
            owner = attrgetter(path)(SimpleNamespace(**instruments))
        except AttributeError:
            owner = None
        if not hasattr(type(owner), attribute):
            raise ParameterError(
                f"{name!r} is no property of the instruments {', '.join(instruments)}."
            )
        return owner, attribute

    setters = [partial(setattr, *find(name)) for name in inputs]
    getters = [partial(getattr, *find(name)) for name in readouts]
    defaults: dict[str, Any] = {
        "identity": ", ".join(str(instrument.name) for instrument in instruments.values()),
        "shutdown": [instrument.shutdown for instrument in instruments.values()],
        "extra": {name: partial(getattr, *find(name)) for name in extra},
    }
    return SetAndRead(setters, getters, **defaults | settings)
