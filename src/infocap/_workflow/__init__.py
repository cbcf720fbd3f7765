"""What users call: estimate, analyse, probe, sweep, convergence."""

from ._analyse import analyse
from ._convergence import Convergence, convergence
from ._estimate import estimate
from ._probe import probe
from ._sweep import Sweep, sweep

__all__ = ["Convergence", "Sweep", "analyse", "convergence", "estimate", "probe", "sweep"]
