"""What users call: estimate, evidence, conclude, analyse, probe, sweep, explore, convergence, compare, calibrate."""

from ._analyse import analyse
from ._calibrate import Calibration, calibrate
from ._compare import Comparison, compare
from ._convergence import Convergence, convergence
from ._estimate import conclude, estimate, evidence, probe
from ._explore import Exploration, Round, explore
from ._sweep import Sweep, sweep

__all__ = [
    "Calibration", "Comparison", "Convergence", "Exploration", "Round", "Sweep", "analyse", "calibrate", "compare",
    "conclude", "convergence", "estimate", "evidence", "explore", "probe", "sweep",
]  # fmt: skip
