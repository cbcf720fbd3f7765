"""What users call: estimate, probe, sweep, explore, convergence, compare, calibrate, diagnose."""

from ._calibrate import Calibration, calibrate
from ._compare import Comparison, compare
from ._convergence import Convergence, convergence
from ._diagnose import Diagnosis, diagnose
from ._estimate import estimate, probe
from ._explore import Exploration, Round, explore
from ._sweep import Sweep, sweep

__all__ = [
    "Calibration",
    "Comparison",
    "Convergence",
    "Diagnosis",
    "Exploration",
    "Round",
    "Sweep",
    "calibrate",
    "compare",
    "convergence",
    "diagnose",
    "estimate",
    "explore",
    "probe",
    "sweep",
]  # fmt: skip
