"""A measured or simulated data set, with all that must not be separated from it."""

from ._recording import Recording

__all__ = ["Recording"]
