"""Methods that estimate capacities: each is a function of the `Evidence`, in one table, `METHODS`.

The way from data to a result has two steps. `gather_evidence` goes through the rows twice, to scan
them and to add up what every method needs; `conclude` runs one method on these sums, which may go
through the rows again, and puts everything into a result.
"""

from ._evidence import Evidence
from ._method import Estimate, Estimator, Method
from ._methods import METHODS
from ._pipeline import conclude, gather_evidence

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._cost import forecast_cost as forecast_cost
from ._evidence import choose_preconditioner as choose_preconditioner
from ._evidence import gather as gather
from ._evidence import square_sums as square_sums
from ._evidence import summarise_between as summarise_between
from ._fit import control_sums as control_sums
from ._fit import iterate_pieces as iterate_pieces
from ._groups import N_STRETCHES as N_STRETCHES
from ._methods import DEFAULT_METHOD as DEFAULT_METHOD
from ._pipeline import find_method as find_method
from ._pipeline import find_mistakes as find_mistakes
from ._sequence import MAX_BYTES_OF_STRETCH_SUMS as MAX_BYTES_OF_STRETCH_SUMS
from ._sequence import MEMORY_FRACTION_OF_STRETCH_SUMS as MEMORY_FRACTION_OF_STRETCH_SUMS
from ._sequence import MIN_SAMPLES_PER_CONTROL as MIN_SAMPLES_PER_CONTROL
from ._sequence import fit_least_squares as fit_least_squares

__all__ = [
    "METHODS",
    "Estimate",
    "Estimator",
    "Evidence",
    "Method",
    "conclude",
    "gather_evidence",
]
