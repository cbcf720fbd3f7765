"""The few types that appear in signatures."""

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from numpy.typing import NDArray

Floats: TypeAlias = NDArray[Any]  # float64
Integers: TypeAlias = NDArray[Any]  # of any width
Booleans: TypeAlias = NDArray[Any]
# Anything with .shape and slices of rows: NumPy, memmap, h5py, zarr, xarray, dask.
ArrayLike: TypeAlias = Annotated[Any, "an array of numbers"]
# (low, high), of which either may be infinite.
Limits: TypeAlias = Any
System: TypeAlias = Callable[..., Any]  # (samples, inputs) -> (samples, readouts)
Target: TypeAlias = Callable[[Floats], Any]  # (samples, inputs) -> (samples,)
