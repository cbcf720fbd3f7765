"""Instruments of other libraries as one instrument of infocap; none of these libraries is imported here."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..typing import Floats

__all__ = ["SetAndRead", "pymeasure", "qcodes"]


@dataclass(eq=False)
class SetAndRead:
    """An instrument made of functions: one per input that sets it, and functions that read.

    What the `readouts` give, numbers or arrays, together is the row; `extra` reads further values by name, as
    ``{"Temperature [K]": read_temperature}``. At the end of an acquisition, however it comes, the inputs are set to
    `rest`, if that is given, and the functions `shutdown` are called. `identity` tells one instrument from another.

    >>> voltage = []
    >>> device = SetAndRead([voltage.append], [lambda: voltage[-1] ** 2], extra={"T [K]": lambda: 293.0})
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
        if self.rest is not None and len(self.rest) != len(self.inputs):
            raise ParameterError(
                f"`rest={self.rest!r}` must have a value for each of {len(self.inputs)} inputs."
            )

    def measure(
        self, u: Floats, settle_s: float = 0.0, averages: int = 1
    ) -> tuple[Floats, dict[str, float]]:
        """Set the inputs, wait, and return the mean of so many readings, with the extra values of the last."""
        self._set(u)
        time.sleep(settle_s)
        rows = [
            np.concatenate([np.ravel(read()) for read in self.readouts]) for _ in range(averages)
        ]
        return np.mean(rows, axis=0), {
            name: float(read()) for name, read in (self.extra or {}).items()
        }

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
    station: Any,
    inputs: Sequence[Any],
    readouts: Sequence[Any],
    extra: Sequence[Any] = (),
    **settings: Any,
) -> SetAndRead:
    """Parameters of a QCoDeS `Station` as one instrument, each given as itself or by its full name, as ``"dac_ch1"``.

    Extra values are called by their label and unit. More `settings` are those of `SetAndRead`, as ``rest=[0, 0]``.

    >>> class Parameter:  # in place of one of QCoDeS
    ...     label, unit, value = "Bias", "V", 0.0
    ...     def __call__(self, *given):
    ...         self.value = given[0] if given else self.value
    ...         return self.value
    >>> bias, station = Parameter(), SimpleNamespace(components={"source": None})
    >>> qcodes(station, [bias], [bias], extra=[bias]).measure([0.5])
    (array([0.5]), {'Bias [V]': 0.5})
    """
    given = [
        [station.get_component(one) if isinstance(one, str) else one for one in names]
        for names in (inputs, readouts, extra)
    ]
    named = {f"{one.label} [{one.unit}]" if one.unit else one.label: one for one in given[2]}
    known: dict[str, Any] = {
        "identity": f"QCoDeS station of {', '.join(station.components)}",
        "extra": named,
    }
    return SetAndRead(*given[:2], **known | settings)


def pymeasure(
    instruments: Mapping[str, Any],
    inputs: Sequence[str],
    readouts: Sequence[str],
    extra: Sequence[str] = (),
    **settings: Any,
) -> SetAndRead:
    """Properties of PyMeasure instruments as one instrument, by their names, as ``"source.source_voltage"``.

    In the end `shutdown()` of each instrument is called, which switches its outputs off. More `settings` are those of
    `SetAndRead`, as ``rest=[0, 0]``.

    >>> class Source:  # in place of an instrument of PyMeasure
    ...     name, voltage = "source", 0.0
    ...     def shutdown(self):
    ...         print("off")
    >>> device = pymeasure({"source": Source()}, ["source.voltage"], ["source.voltage"])
    >>> device.measure([0.5])
    (array([0.5]), {})
    >>> device.safe()
    off
    """

    def owner(name: str) -> tuple[Any, str]:
        path, _, last = name.rpartition(".")
        try:
            found = attrgetter(path)(SimpleNamespace(**instruments))
        except AttributeError:
            found = None
        if not hasattr(type(found), last):  # to set it would send nothing, and raise nothing
            raise ParameterError(
                f"{name!r} is no property of the instruments {', '.join(instruments)}."
            )
        return found, last

    setters = [partial(setattr, *owner(name)) for name in inputs]
    getters = [[partial(getattr, *owner(name)) for name in names] for names in (readouts, extra)]
    known: dict[str, Any] = {
        "identity": ", ".join(str(one.name) for one in instruments.values()),
        "shutdown": [one.shutdown for one in instruments.values()],
        "extra": dict(zip(extra, getters[1], strict=True)),
    }
    return SetAndRead(setters, getters[0], **known | settings)
