"""What users call: estimate, probe, sweep, explore, compare, calibrate, diagnose, cite, ..."""

from ._calibrate import Calibration, Minimum, calibrate
from ._channels import ChannelRanking, rank_channels
from ._cite import Citation, cite
from ._compare import Comparison, compare
from ._convergence import Convergence, convergence
from ._diagnose import Diagnosis, diagnose
from ._estimate import estimate, probe
from ._explore import Exploration, Round, explore
from ._sweep import Sweep, load_sweep, sweep

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._choose import choose_basis as choose_basis
from ._from_recording import arguments_of as arguments_of
from ._grid import grid_of as grid_of
from ._grid import point_in_words as point_in_words
from ._grid import points_of as points_of
from ._provenance import provenance as provenance
from ._repair import repair as repair
from ._sweep_folder import file_of_point as file_of_point
from ._sweep_folder import is_sweep as is_sweep

__all__ = [
    "Calibration",
    "ChannelRanking",
    "Citation",
    "Comparison",
    "Convergence",
    "Diagnosis",
    "Exploration",
    "Minimum",
    "Round",
    "Sweep",
    "calibrate",
    "cite",
    "compare",
    "convergence",
    "diagnose",
    "estimate",
    "explore",
    "load_sweep",
    "probe",
    "rank_channels",
    "sweep",
]  # fmt: skip
