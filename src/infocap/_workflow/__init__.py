"""What users call: estimate, probe, convergence."""

from ._convergence import Convergence, convergence
from ._estimate import estimate
from ._probe import probe

__all__ = ["Convergence", "convergence", "estimate", "probe"]
