"""The few types that appear in signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
ArrayLike: TypeAlias = Any  # anything with .shape and row slicing: NumPy, memmap, h5py, zarr, xarray, dask
System: TypeAlias = Callable[..., Any]  # (samples, inputs) -> (samples, readouts)
Target: TypeAlias = Callable[[Floats], Any]  # (samples, inputs) -> (samples,)
