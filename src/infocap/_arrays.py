"""Arrays of any library. Only here, and for files in `_sources`, libraries have names."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from .errors import ParameterError


def array_namespace(*arrays: Any) -> Any:
    """The functions of the arrays' library: NumPy's, or those of torch, CuPy and others by array-api-compat."""
    if all(isinstance(array, np.ndarray) for array in arrays):
        return np
    kinds = frozenset(map(type, arrays))
    if kinds not in _NAMESPACES:
        try:
            from array_api_compat import array_namespace as find
        except ImportError:
            said = f"arrays of {_library(arrays[0])} need the package array-api-compat: pip install infocap[gpu]."
            raise ParameterError(said) from None
        _NAMESPACES[kinds] = find(*arrays)
    return _NAMESPACES[kinds]


_NAMESPACES: dict[frozenset[type], Any] = {}  # looking one up takes as long as a small product


def contiguous(array: Any) -> Any:
    """The same numbers with neighbours of the last axis next to each other in the memory of a device."""
    if hasattr(array, "contiguous"):
        return array.contiguous()
    return array_namespace(array).asarray(array, copy=True)


def on_host(array: Any) -> bool:
    """Whether an array lives in the memory of the processor, as NumPy's do."""
    return isinstance(array, np.ndarray)


def _library(array: Any) -> str:
    return type(array).__module__.split(".")[0]


def on_device(array: Any) -> bool:
    """Whether an array belongs to a library that computes with it where it is: torch, CuPy, JAX."""
    known = ("torch", "cupy", "jax", "jaxlib", "array_api_strict")
    return _library(array) in known and hasattr(array, "shape")


def as_like(values: Any, like: Any) -> Any:
    """A NumPy array in the library, on the device and in the precision of another array; what is there, stays."""
    if not on_host(values):
        if on_device(values):
            return values
        values = np.asarray(values)
    if values.dtype.kind in "fc" and str(like.dtype).removeprefix("torch.") in (
        "float32",
        "complex64",
    ):
        values = values.astype(np.complex64 if values.dtype.kind == "c" else np.float32)
    if on_host(like):
        return values
    if _library(like) == "torch":  # small arrays go there without waiting for what is under way
        return array_namespace(like).asarray(values).to(like.device, non_blocking=True)
    return array_namespace(like).asarray(values, device=like.device)


def to_numpy(array: Any) -> Any:
    """A NumPy copy of any array."""
    if on_host(array):
        return array
    array = (
        array.get() if hasattr(array, "get") else array.cpu() if hasattr(array, "cpu") else array
    )
    if str(array.dtype) == "torch.bfloat16":  # NumPy has no such numbers
        array = array.float()
    if not hasattr(array, "__array__") and hasattr(array, "__dlpack__"):
        return np.from_dlpack(array)
    return np.asarray(array)


def take_rows(array: Any, rows: Any) -> Any:
    """Some rows of an array, by their numbers, which are not negative and in the array's own library."""
    if on_host(array):
        return array[rows]
    if _library(array) == "torch":
        return array.index_select(0, rows)  # the general way looks for negative numbers first
    return array_namespace(array).take(array, rows, axis=0)


def times(many: Any, few: Any) -> Any:
    """The product of many rows and few columns; on a device with the factors in the order that is fastest there."""
    return many @ few if on_host(many) else (contiguous(few.T) @ many.T).T


def multiplier(like: Any) -> Callable[..., Any] | None:
    """The function ``multiply(a, b, out=...)`` of an array's library, None where it cannot write into an array."""
    library = _library(like)
    return import_module(library).multiply if library in ("numpy", "cupy", "torch") else None


def cholesky(matrix: Any, plus: Any = 0.0) -> Any:
    """The lower triangle C with C C' = matrix + diag(plus); where that is not positive, no numbers (NaN)."""
    xp = array_namespace(matrix)
    try:
        if on_host(matrix):
            from scipy.linalg import cholesky as factored

            sums = matrix.copy()
            sums.flat[:: len(sums) + 1] += plus
            return factored(
                sums.T, lower=True, overwrite_a=True, check_finite=False
            )  # in the order of LAPACK
        if not np.isscalar(plus):
            matrix = matrix + xp.eye(
                matrix.shape[0], dtype=matrix.dtype, device=matrix.device
            ) * as_like(plus, matrix)
        if (
            _library(matrix) == "torch"
        ):  # which tells on the device whether it failed, and nobody has to wait for that
            factor, failed = xp.linalg.cholesky_ex(matrix)
            return xp.where(failed > 0, xp.nan, factor)
        return xp.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return xp.full_like(matrix, xp.nan)


def solve_triangle(lower: Any, right: Any, transposed: bool = False) -> Any:
    """C^-1 right for a lower triangle C, or C^-T right when `transposed`."""
    if on_host(lower):
        from scipy.linalg import solve_triangular

        return solve_triangular(lower, right, lower=True, trans=int(transposed), check_finite=False)
    xp, library = array_namespace(lower), _library(lower)
    if library == "torch":
        return xp.linalg.solve_triangular(lower.T if transposed else lower, right, upper=transposed)
    if library == "cupy":
        solve = import_module("cupyx.scipy.linalg").solve_triangular
        return solve(lower, right, lower=True, trans=int(transposed))
    return xp.linalg.solve(lower.T if transposed else lower, right)


def inverse_of_triangle(triangle: Any) -> Any:
    """The inverse of an upper triangle without zeros on its diagonal."""
    if on_host(triangle):
        from scipy.linalg.lapack import dtrtri

        return dtrtri(triangle)[0]
    one = array_namespace(triangle).eye(
        triangle.shape[0], dtype=triangle.dtype, device=triangle.device
    )
    return solve_triangle(triangle.T, one, transposed=True)


def transforms(array: Any) -> Any:
    """The Fourier transforms of an array's library, in the array's own precision: `fft`, `ifft`, `rfft`, `irfft`."""
    if on_host(array):
        import scipy.fft

        return scipy.fft  # in single precision too, as older versions of NumPy do not
    return array_namespace(array).fft


def rotation(phase: Any) -> Any:
    """exp(i phase), as complex numbers of the phase's precision."""
    if on_host(phase):
        out = np.empty(phase.shape, dtype=np.result_type(phase, np.complex64))
        np.cos(phase, out=out.real)
        np.sin(phase, out=out.imag)
        return out
    return array_namespace(phase).exp(1j * phase)
