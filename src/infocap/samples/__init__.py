"""The rows of a data set and the one way through them: Samples, Engine.fold, and the first look at all rows."""

from ._engine import CHUNK_BYTES, Engine, as_executor, chosen_executor, in_this_process, n_slots
from ._look import Look, first_look, fitting_domain, without_gaps
from ._samples import EPOCHS, Samples, row_shares
from ._sources import FileRows, Hdf5Rows, Labelled
from ._table import Table

__all__ = [
    "CHUNK_BYTES",
    "EPOCHS",
    "Engine",
    "FileRows",
    "Hdf5Rows",
    "Labelled",
    "Look",
    "Samples",
    "Table",
    "as_executor",
    "chosen_executor",
    "first_look",
    "fitting_domain",
    "in_this_process",
    "n_slots",
    "row_shares",
    "without_gaps",
]
