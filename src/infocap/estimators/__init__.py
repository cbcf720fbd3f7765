"""Methods that estimate capacities: each is a function of the `Evidence`, in one table, `METHODS`.

The way from data to a result has two steps. `gather_evidence` goes through the rows once and keeps
what every method needs; `conclude` runs one method on it and puts everything into a result.
"""

from ..kernels import benjamini_hochberg
from ._evidence import Evidence
from ._method import Estimate, Estimator, Method
from ._methods import METHODS
from ._pipeline import conclude, gather_evidence

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._cost import byte_count as byte_count
from ._cost import cost as cost
from ._evidence import frame_for as frame_for
from ._evidence import gather as gather
from ._evidence import square_sums as square_sums
from ._evidence import summaries as summaries
from ._fit import inverse_root as inverse_root
from ._fit import pieces as pieces
from ._fit import products as products
from ._pipeline import evidence_of as evidence_of
from ._pipeline import find_method as find_method
from ._sequence import LEAST_SAMPLES as LEAST_SAMPLES
from ._sequence import fitted as fitted

__all__ = [
    "METHODS",
    "Estimate",
    "Estimator",
    "Evidence",
    "Method",
    "benjamini_hochberg",
    "conclude",
    "gather_evidence",
]
