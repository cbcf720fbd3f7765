"""A measured or simulated data set, with all that must not be separated from it."""

from ._recording import Recording
from ._trace import find_steps, fold_trace

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._assemble import Measurements as Measurements
from ._assemble import assemble_recording as assemble_recording
from ._assemble import integer_index as integer_index
from ._overshoot import without_overshoot as without_overshoot
from ._recording import ARRAY_DIMENSIONS as ARRAY_DIMENSIONS
from ._recording import DARK_CODE as DARK_CODE
from ._recording import NAMED_COLUMNS as NAMED_COLUMNS
from ._recording import NOISE_CODE as NOISE_CODE
from ._recording import REFERENCE_CODE as REFERENCE_CODE
from ._recording import input_columns as input_columns
from ._save import PLAN_COMMENT as PLAN_COMMENT
from ._save import PLAN_COMMENT_ENTRIES as PLAN_COMMENT_ENTRIES
from ._save import RECORDING_FORMAT as RECORDING_FORMAT
from ._save import UNIT_FIELDS as UNIT_FIELDS
from ._save import WRITERS as WRITERS
from ._save import to_json as to_json
from ._trace import fold_recording as fold_recording
from ._trace import recording_of_trace as recording_of_trace

__all__ = ["Recording", "find_steps", "fold_trace"]
