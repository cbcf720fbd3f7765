"""What users call: estimate, analyse, probe, sweep, convergence, compare, summarise, combine."""

from ._analyse import analyse
from ._combine import combine, common_frame
from ._compare import Comparison, compare
from ._convergence import Convergence, convergence
from ._cost import Cost, cost
from ._estimate import estimate
from ._part import Frame, Part, load_frame, load_part
from ._probe import probe
from ._summarise import summarise
from ._sweep import Sweep, sweep

__all__ = [
    "Comparison",
    "Convergence",
    "Cost",
    "Frame",
    "Part",
    "Sweep",
    "analyse",
    "combine",
    "common_frame",
    "compare",
    "convergence",
    "cost",
    "estimate",
    "load_frame",
    "load_part",
    "probe",
    "summarise",
    "sweep",
]
