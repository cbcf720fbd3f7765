"""The rows of a data set (`Samples`), and the one way through them (`Engine.fold`).

`Samples.of` takes what users pass to `estimate`; `first_look` describes every column, and prepares
for `Samples.prepared`. Then `Engine.fold` computes anything that is a sum over rows. The other
names serve readers of files and checks of data: a `Table` reads one array from anywhere.
"""

from ._dask import is_client
from ._domain import domain_advice, refuse_outside
from ._engine import Engine
from ._executors import chosen_executor, n_slots, plain_executor
from ._rows import row_shares
from ._runs import Joined, has_runs
from ._samples import DEAD, Samples
from ._scan import Look, first_look, without_gaps
from ._sources import Hdf5Rows, Labelled
from ._table import Table
from ._values_per_row import density_ratios

__all__ = [
    "DEAD",
    "Engine",
    "Hdf5Rows",
    "Joined",
    "Labelled",
    "Look",
    "Samples",
    "Table",
    "chosen_executor",
    "density_ratios",
    "domain_advice",
    "first_look",
    "has_runs",
    "is_client",
    "n_slots",
    "plain_executor",
    "refuse_outside",
    "row_shares",
    "without_gaps",
]
