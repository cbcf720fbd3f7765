"""What users call: estimate, evidence, conclude, analyse, probe, sweep, explore, convergence, compare."""

from ._analyse import analyse
from ._compare import Comparison, compare
from ._convergence import Convergence, convergence
from ._estimate import conclude, estimate, evidence, probe
from ._explore import Exploration, Round, explore
from ._sweep import Sweep, sweep

__all__ = [
    "Comparison", "Convergence", "Exploration", "Round", "Sweep", "analyse", "compare", "conclude", "convergence",
    "estimate", "evidence", "explore", "probe", "sweep",
]  # fmt: skip
