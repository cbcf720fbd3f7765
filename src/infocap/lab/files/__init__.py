"""Files of measured data, of any kind, read as recordings."""

from ._folder import is_folder
from ._read import STORES, read
from ._readers import READERS

__all__ = ["READERS", "STORES", "is_folder", "read"]
