"""Instruments of other libraries as one instrument of infocap: functions that set and read, QCoDeS, PyMeasure.

None of these libraries is imported here: what they made is used as it is.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..typing import Floats


class SetAndRead:
    """An instrument made of functions: those that set the inputs, and those that read the outputs.

    Parameters
    ----------
    inputs
        One function per input, which is called with its value.
    readouts
        Functions that give a number or an array; what they give together is the row.
    extra
        Functions that give extra values of each row, by name, as ``{"Temperature [K]": thermometer.read}``.
    rest
        Values that the inputs are set to at the end of an acquisition, however it ends; by default they are left.
    shutdown
        Functions that are called after that.
    identity
        What tells this instrument from another, such as a serial number.

    Examples
    --------
    >>> voltage = []
    >>> device = SetAndRead([voltage.append], [lambda: voltage[-1] ** 2], extra={"T [K]": lambda: 293.0})
    >>> device.measure([0.5])
    (array([0.25]), {'T [K]': 293.0})
    """

    def __init__(
        self,
        inputs: Sequence[Callable[[float], Any]],
        readouts: Sequence[Callable[[], Any]],
        *,
        extra: Mapping[str, Callable[[], Any]] | None = None,
        rest: Sequence[float] | None = None,
        shutdown: Sequence[Callable[[], Any]] = (),
        identity: str = "",
    ) -> None:
        if rest is not None and len(rest) != len(inputs):
            raise ParameterError(f"`rest={rest!r}` must have a value for each of {len(inputs)} inputs.")
        self.inputs, self.readouts, self.extra = inputs, readouts, dict(extra or {})
        self.rest, self.shutdown, self.identity = rest, shutdown, identity

    def measure(self, u: Floats, settle_s: float = 0.0, averages: int = 1) -> tuple[Floats, dict[str, float]]:
        """Set the inputs, wait, and return the mean of so many readings, with the extra values of the last."""
        self._set(u)
        time.sleep(settle_s)
        rows = [np.concatenate([np.ravel(read()) for read in self.readouts]) for _ in range(averages)]
        return np.mean(rows, axis=0), {name: float(read()) for name, read in self.extra.items()}

    def safe(self) -> None:
        """Set the inputs to where they may rest, and shut down what can be."""
        if self.rest is not None:
            self._set(self.rest)
        for call in self.shutdown:
            call()

    def _set(self, u: Sequence[float] | Floats) -> None:
        for change, value in zip(self.inputs, u, strict=True):
            change(float(value))


def qcodes(
    station: Any, inputs: Sequence[Any], readouts: Sequence[Any], extra: Sequence[Any] = (), **settings: Any
) -> SetAndRead:
    """Parameters of a QCoDeS `Station` as one instrument.

    `inputs`, `readouts` and `extra` are parameters, or their full names in the station, as ``"dac_ch1"``; extra values
    are called by their label and unit. More `settings` are those of `SetAndRead`, as ``rest=[0, 0]``.
    """

    def parameters(names: Sequence[Any]) -> list[Any]:
        return [station.get_component(one) if isinstance(one, str) else one for one in names]

    named = {f"{one.label} [{one.unit}]" if one.unit else one.label: one for one in parameters(extra)}
    settings = {"identity": f"QCoDeS station of {', '.join(station.components)}"} | settings
    return SetAndRead(parameters(inputs), parameters(readouts), extra=named, **settings)


def pymeasure(
    instruments: Mapping[str, Any],
    inputs: Sequence[str],
    readouts: Sequence[str],
    extra: Sequence[str] = (),
    **settings: Any,
) -> SetAndRead:
    """Properties of PyMeasure instruments as one instrument.

    `instruments` are named, and `inputs`, `readouts` and `extra` are names of their properties, as
    ``"source.source_voltage"``. In the end the `shutdown()` of each instrument is called, which switches its outputs
    off. More `settings` are those of `SetAndRead`.
    """

    def owner(name: str) -> tuple[Any, str]:
        path, _, last = name.rpartition(".")
        first, _, more = path.partition(".")
        found = instruments.get(first)
        found = attrgetter(more)(found) if more and found is not None else found
        if not hasattr(type(found), last):  # to set it would send nothing, and raise nothing
            raise ParameterError(f"{name!r} is no property of the instruments {', '.join(instruments)}.")
        return found, last

    def setter(name: str) -> Callable[[float], None]:
        thing, last = owner(name)
        return lambda value: setattr(thing, last, value)

    def getter(name: str) -> Callable[[], Any]:
        thing, last = owner(name)
        return lambda: getattr(thing, last)

    names = {name: getter(name) for name in extra}
    known: dict[str, Any] = {"identity": ", ".join(str(one.name) for one in instruments.values())}
    known |= {"shutdown": [one.shutdown for one in instruments.values()]}
    return SetAndRead(
        [setter(one) for one in inputs], [getter(one) for one in readouts], extra=names, **known | settings
    )
