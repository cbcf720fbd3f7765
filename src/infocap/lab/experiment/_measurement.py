"""One measurement: of which kind it is, what is sent, and what came back."""

from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum

from ...recording import DARK_CODE, NOISE_CODE, REFERENCE_CODE
from ...typing import ArrayLike, Floats


class Kind(StrEnum):
    """What a measurement is for.

    The value names the kind in stores and messages. The order of the members is part of the seeds
    that simulated noise gets, so a new member goes to the end.
    """

    SAMPLE = "sample"  # an input of the design
    REPEAT = "repeat"  # an input of the design a second time, which tells the noise
    NOISE = "noise"  # the noise input, before all others
    REFERENCE = "reference"  # a reference input, which shows whether the device is steady
    DARK = "dark"  # the source switched off

    def __repr__(self) -> str:
        return repr(self.value)

    @property
    def code(self) -> int | None:
        """The number that tables write in place of a design index; None where there is an index."""
        return _CODES.get(self)

    @property
    def position(self) -> int:
        """The place among the kinds, which is part of the seeds of simulated noise."""
        return list(Kind).index(self)


_CODES = {Kind.NOISE: NOISE_CODE, Kind.REFERENCE: REFERENCE_CODE, Kind.DARK: DARK_CODE}
KIND_OF_CODE = {code: kind for kind, code in _CODES.items()}


@dataclass(frozen=True, eq=False)
class Measurement:
    """One thing to measure and, once it is measured, what came back.

    Parameters
    ----------
    kind, number
        What it is for, and its number: the design index of a sample and of its repeat, a running
        number for the other kinds. No other measurement of the plan has the same two.
    u
        The inputs to send, (inputs,); of a sequence those of a whole run, (steps, inputs).
    readouts
        What came back, (channels,), or of a run (steps * channels,) once `Store.checked` has made
        a vector of it; None before it is measured.
    extra
        Further values of that moment by name, such as ``{"Temperature [K]": 293.1}``.
    time
        When it was stored, in seconds since 1970; None before.

    Examples
    --------
    >>> from infocap.lab import Plan
    >>> plan = Plan(n_inputs=1, max_degree=2, n_samples=4, seed=1, order="design")
    >>> first = next(iter(plan.schedule))
    >>> print(first.name, first.u.shape)
    sample 0 (1,)
    """

    kind: Kind
    number: int
    u: Floats
    _: KW_ONLY
    readouts: ArrayLike = None
    extra: dict[str, float] = field(default_factory=dict)
    time: float | None = None

    @property
    def key(self) -> tuple[Kind, int]:
        """Kind and number, which together identify the measurement."""
        return self.kind, self.number

    @property
    def n_values(self) -> int:
        """How many numbers came back; 0 before it is measured."""
        return 0 if self.readouts is None else len(self.readouts)

    @property
    def name(self) -> str:
        """Kind and number as text, for messages: ``sample 17``."""
        return f"{self.kind} {self.number}"
