"""A measured or simulated data set, with all that must not be separated from it."""

from ._recording import Recording

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._assemble import by_index as by_index
from ._assemble import whole_numbers as whole_numbers
from ._recording import DARK as DARK
from ._recording import DIMENSIONS as DIMENSIONS
from ._recording import NAMES as NAMES
from ._recording import NOISE as NOISE
from ._recording import REFERENCE as REFERENCE
from ._recording import input_columns as input_columns
from ._save import FORMAT as FORMAT
from ._save import PLAN as PLAN
from ._save import PLANNED as PLANNED
from ._save import UNITS as UNITS
from ._save import WRITERS as WRITERS
from ._save import to_json as to_json

__all__ = ["Recording"]
