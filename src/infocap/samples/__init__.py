"""The rows of a data set and the one way through them: Samples, Engine.fold, and the first look at all rows."""

from ._engine import Engine
from ._look import first_look
from ._samples import Samples
from ._sources import FileRows
from ._table import Table

__all__ = ["Engine", "FileRows", "Samples", "Table", "first_look"]
