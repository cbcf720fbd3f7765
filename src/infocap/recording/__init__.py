"""A measured or simulated data set, and the files it comes from and goes to."""

from ._read import read
from ._recording import Recording

__all__ = ["Recording", "read"]
