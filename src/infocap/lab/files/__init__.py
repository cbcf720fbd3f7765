"""Files of measured data, of any kind, read as recordings."""

from ._read import read

__all__ = ["read"]
