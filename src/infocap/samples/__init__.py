"""The rows of a data set (`Samples`), and the one way through them (`Engine.fold`).

`Samples.of` takes what users pass to `estimate`. `scan_columns` describes every column, so that
`Samples.choose_preparation` can choose how readouts are scaled. Then `Engine.fold` computes
anything that is a sum over rows. The other names serve readers of files and checks of data: a
`Table` reads one array from anywhere.
"""

from ._components import PRINCIPAL, SIGNAL_OVER_NOISE, Components
from ._domain import check_domain, suggest_domain
from ._engine import Engine
from ._executors import choose_executor, count_task_slots, plain_executor
from ._first_response import find_first_response
from ._holds import MAX_ROWS_FOR_HOLDS, Hold, find_hold
from ._rows import cut_into_blocks, rows_per_block
from ._runs import JoinedRows, is_of_several_runs
from ._samples import MAX_RELATIVE_RANGE_OF_CONSTANT, Samples
from ._scan import ColumnStatistics, omit_missing_rows, scan_columns
from ._sources import Hdf5Rows, LabelledRows
from ._table import Table, as_array
from ._trace import FoldedTrace, as_columns, fold, is_of_several_traces
from ._trace_inputs import hold_of_rows
from ._trace_steps import TraceSteps
from ._values_per_row import density_ratios

__all__ = [
    "MAX_RELATIVE_RANGE_OF_CONSTANT",
    "MAX_ROWS_FOR_HOLDS",
    "PRINCIPAL",
    "SIGNAL_OVER_NOISE",
    "ColumnStatistics",
    "Components",
    "Engine",
    "FoldedTrace",
    "Hdf5Rows",
    "Hold",
    "JoinedRows",
    "LabelledRows",
    "Samples",
    "Table",
    "TraceSteps",
    "as_array",
    "as_columns",
    "check_domain",
    "choose_executor",
    "count_task_slots",
    "cut_into_blocks",
    "density_ratios",
    "find_first_response",
    "find_hold",
    "fold",
    "hold_of_rows",
    "is_of_several_runs",
    "is_of_several_traces",
    "omit_missing_rows",
    "plain_executor",
    "rows_per_block",
    "scan_columns",
    "suggest_domain",
]
