"""What all readers of files share: a look at the file before it is opened, and arrays named but not yet read."""

from ._before import blame, memory, readable, refuse_too_large
from ._contents import Contents, Variable, plain_numbers
from ._hdf5 import open_hdf5
from ._heaps import refuse_broken_heaps

__all__ = [
    "Contents",
    "Variable",
    "blame",
    "memory",
    "open_hdf5",
    "plain_numbers",
    "readable",
    "refuse_broken_heaps",
    "refuse_too_large",
]
