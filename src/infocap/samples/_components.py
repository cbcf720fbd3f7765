"""The record of components: a few combinations of many channels that take the channels' place."""

from __future__ import annotations

from dataclasses import dataclass

from .._formatting import counted
from .._validation import require_one_of

# How components were found: as those that vary most, or as those in which the signal exceeds most
# the noise that repeats show.
PRINCIPAL = "principal"
SIGNAL_OVER_NOISE = "signal over noise"


@dataclass(frozen=True)
class Components:
    """A few combinations of many channels, found without the inputs, that stand for the channels.

    What they hold the channels hold, too, so that a capacity of theirs is a lower bound of the
    channels' own.

    Attributes
    ----------
    n_channels
        The number of channels that were measured.
    n_components
        The number of their combinations whose capacities were estimated.
    kind
        ``"principal"`` for the principal components of the centred channels, or
        ``"signal over noise"`` for the directions that repeats tell.

    Examples
    --------
    >>> Components(n_channels=1601, n_components=16).in_words
    '16 principal components'
    """

    n_channels: int
    n_components: int
    kind: str = PRINCIPAL

    def __post_init__(self) -> None:
        require_one_of("kind", self.kind, (PRINCIPAL, SIGNAL_OVER_NOISE))

    @property
    def in_words(self) -> str:
        """How many components there are, and of which kind."""
        if self.kind == PRINCIPAL:
            return counted(self.n_components, "principal component")
        return f"{counted(self.n_components, 'direction')} of signal over noise"
