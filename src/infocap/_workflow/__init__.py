"""What users call: estimate, probe, sweep, convergence."""

from ._convergence import Convergence, convergence
from ._estimate import estimate
from ._probe import probe
from ._sweep import Sweep, sweep

__all__ = ["Convergence", "Sweep", "convergence", "estimate", "probe", "sweep"]
