"""The numbers of the control-variate method in one place, each with what fixed it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Sizes, limits and rules of the fit, of the zeros and of the checks of the control-variate method."""

    penalties: tuple[float, ...] = (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
    full: float = 0.9
    dictionary_share: float = 0.4
    dictionary: int = 1500
    most_controls: int = 4000
    judges: int = 2048
    signs: int = 64
    rounds: int = 6
    enough_better: float = 0.97
    clearly_better: float = 0.98
    least_margin: float = 0.25
    clear: float = 2.0
    far_below: float = 0.05
    least_prior: float = 1e-8
    eigenvalues: tuple[float, float] = (0.1, 10.0)
    few_samples: float = 4.0
    smallest: float = 1e-7
    third_order: float = 0.5
    crowded: float = 0.12
    few_for_total: float = 60.0
    heavy: float = 0.1
    least_heavy: float = 100.0
    piece: int = 4_000_000


TUNING = Tuning()
