"""What users call: estimate, probe, sweep, explore, compare, calibrate, diagnose, cite, ..."""

from ._calibrate import Calibration, Minimum, calibrate
from ._channels import ChannelRanking, rank_channels
from ._cite import Citation, cite
from ._compare import Comparison, compare
from ._convergence import Convergence, convergence
from ._diagnose import Diagnosis, diagnose
from ._estimate import estimate, probe
from ._explore import Exploration, Round, explore
from ._sweep import Sweep, sweep

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._choose import choose_basis as choose_basis
from ._from_recording import arguments_of as arguments_of
from ._provenance import provenance as provenance
from ._repair import repair as repair

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
    "probe",
    "rank_channels",
    "sweep",
]  # fmt: skip
