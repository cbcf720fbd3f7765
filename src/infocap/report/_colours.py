"""The colours of capacities: those of `infocap.plot`, without matplotlib."""

from __future__ import annotations

VIRIDIS = bytes.fromhex(
    "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c "
    "1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725"
)
STEPS = len(VIRIDIS) // 3 - 1


def viridis(value: float) -> str:
    """The colour of a capacity between 0 and 1.

    >>> viridis(0.0), viridis(1.0)
    ('#440154', '#fde725')
    """
    place = min(max(value, 0.0), 1.0) * STEPS
    step = min(int(place), STEPS - 1)
    low, high = VIRIDIS[3 * step : 3 * step + 3], VIRIDIS[3 * step + 3 : 3 * step + 6]
    return "#" + bytes(round(a + (b - a) * (place - step)) for a, b in zip(low, high, strict=True)).hex()
