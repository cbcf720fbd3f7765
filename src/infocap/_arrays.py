"""Arrays of any library: NumPy, PyTorch, CuPy, JAX.

The rest of the package names no array library but NumPy. With
``xp = array_namespace(array)`` it computes by the functions of the array API standard. What that
standard lacks, or what a library does faster in its own way, is a function here. "Host" is the
processor's memory, where NumPy arrays are; "device" is any other place, such as a graphics card.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from .errors import ParameterError

# Libraries whose arrays stay where they are, and are computed with there; arrays of all others are
# converted to NumPy.
DEVICE_LIBRARIES = ("torch", "cupy", "jax", "jaxlib", "array_api_strict")
# Libraries whose `multiply` writes into an array that the caller provides.
LIBRARIES_WITH_OUT = ("numpy", "cupy", "torch")
# Rows of the blocks in which triangles are factored, solved and inverted on the host. The steps are
# products of NumPy, because NumPy lets other threads run meanwhile; SciPy's own functions keep
# Python's lock and are hardly faster.
TRIANGLE_BLOCK = 64
# Rows of a triangle from which on products with it are cut into columns, of so many each, to leave
# out its zeros: nearly half of the product.
MIN_TRIANGLE_TO_CUT = 500
COLUMNS_OF_CUT_TRIANGLE = 200
# Rows and columns of a block of a matrix that is added to its transpose: two blocks stay in cache.
TRANSPOSE_BLOCK = 128
# Types of numbers of single precision. NumPy's doubles are converted to the type of an array that
# has one of these, so that results keep its precision.
SINGLE_PRECISION = ("float32", "complex64")

# Namespaces by types of arrays: looking a namespace up takes as long as a small matrix product.
_NAMESPACES: dict[frozenset[type], Any] = {}


def array_namespace(*arrays: Any) -> Any:
    """Return the functions of the arrays' library, as the array API standard names them."""
    if all(isinstance(array, np.ndarray) for array in arrays):
        return np
    types = frozenset(map(type, arrays))
    if types not in _NAMESPACES:
        try:
            from array_api_compat import array_namespace as find_namespace
        except ImportError:
            raise ParameterError(
                f"arrays of {_library(arrays[0])} need the package array-api-compat: "
                "pip install infocap[gpu]."
            ) from None
        _NAMESPACES[types] = find_namespace(*arrays)
    return _NAMESPACES[types]


def _library(array: Any) -> str:
    """Return the name of the library that an array's type comes from."""
    return type(array).__module__.split(".")[0]


def is_on_host(array: Any) -> bool:
    """Return whether an array is in the processor's memory, as NumPy arrays are."""
    return isinstance(array, np.ndarray)


def is_on_device(array: Any) -> bool:
    """Return whether an array belongs to a library that computes with it where it is."""
    return _library(array) in DEVICE_LIBRARIES and hasattr(array, "shape")


def contiguous(array: Any) -> Any:
    """Return the same numbers with the elements of the last axis next to each other in memory."""
    if hasattr(array, "contiguous"):
        return array.contiguous()
    return array_namespace(array).asarray(array, copy=True)


def to_library_of(values: Any, like: Any) -> Any:
    """Convert a NumPy array to the library, device and precision of the array `like`.

    An array that is on a device stays as it is.
    """
    if not is_on_host(values):
        if is_on_device(values):
            return values
        values = np.asarray(values)

    if values.dtype.kind in "fc" and _dtype_name(like) in SINGLE_PRECISION:
        is_complex = values.dtype.kind == "c"
        values = values.astype(np.complex64 if is_complex else np.float32)

    if is_on_host(like):
        return values
    xp = array_namespace(like)
    if _library(like) == "torch":
        # A copy that does not block lets the work that is queued on the card go on.
        return xp.asarray(values).to(like.device, non_blocking=True)
    return xp.asarray(values, device=like.device)


def _dtype_name(array: Any) -> str:
    """Return the name of an array's type of number, such as "float32"."""
    return str(array.dtype).removeprefix("torch.")


def to_numpy(array: Any) -> Any:
    """Convert any array to NumPy; a NumPy array is returned as it is."""
    if is_on_host(array):
        return array
    if hasattr(array, "detach"):  # a tensor of a model that could still be trained
        array = array.detach()
    if hasattr(array, "get"):  # CuPy
        array = array.get()
    elif hasattr(array, "cpu"):  # PyTorch
        array = array.cpu()
    if _dtype_name(array) == "bfloat16":
        array = array.float()  # NumPy has no bfloat16.
    if not hasattr(array, "__array__") and hasattr(array, "__dlpack__"):
        return np.from_dlpack(array)
    return np.asarray(array)


def take_rows(array: Any, rows: Any) -> Any:
    """Return chosen rows of an array.

    `rows` are indices that are not negative, in an array of the same library.
    """
    if is_on_host(array):
        return array[rows]
    if _library(array) == "torch":
        return array.index_select(0, rows)  # `take` would search for negative indices first.
    return array_namespace(array).take(array, rows, axis=0)


def multiply_tall(tall: Any, narrow: Any) -> Any:
    """Return the product of a tall matrix and a matrix of few columns, in the fastest order."""
    if is_on_host(tall):
        return tall @ narrow
    return (contiguous(narrow.T) @ tall.T).T


def multiply_by_triangle(rows: Any, upper: Any, out: Any = None) -> Any:
    """Return the product of rows and an upper triangle, in `out` if that is passed."""
    n = upper.shape[0]
    if not is_on_host(rows) or n < MIN_TRIANGLE_TO_CUT:
        if out is None:
            return rows @ upper
        return np.matmul(rows, upper, out=out)
    if out is None:
        out = np.empty((len(rows), n))
    for start in range(0, n, COLUMNS_OF_CUT_TRIANGLE):
        stop = min(start + COLUMNS_OF_CUT_TRIANGLE, n)
        # The rows below the diagonal are zero.
        np.matmul(rows[:, :stop], upper[:stop, start:stop], out=out[:, start:stop])
    return out


def subtract_into(left: Any, right: Any) -> Any:
    """Return left - right; on the host in the memory of `right`, which is overwritten."""
    if is_on_host(right):
        return np.subtract(left, right, out=right)
    return left - right


def plus_transpose(square: Any) -> Any:
    """Return a square matrix plus its transpose; on the host in its memory, if it may be written.

    It goes through the matrix in blocks that stay in cache: reading a whole large one by columns
    would take many times as long.
    """
    if not is_on_host(square) or not square.flags.writeable:
        return square + square.T
    n = len(square)
    for row in range(0, n, TRANSPOSE_BLOCK):
        rows = slice(row, row + TRANSPOSE_BLOCK)
        for column in range(row, n, TRANSPOSE_BLOCK):
            columns = slice(column, column + TRANSPOSE_BLOCK)
            block = square[rows, columns] + square[columns, rows].T
            square[rows, columns] = block
            square[columns, rows] = block.T
    return square


def multiply_function(like: Any) -> Callable[..., Any] | None:
    """Return the library's ``multiply(a, b, out=...)``, or None where it has no `out`."""
    library = _library(like)
    if library not in LIBRARIES_WITH_OUT:
        return None
    multiply: Callable[..., Any] = import_module(library).multiply
    return multiply


def cholesky(matrix: Any, penalty: Any = 0.0) -> Any:
    """Return the lower triangle C with C C' = matrix + diag(penalty).

    It consists of NaN where that matrix is not positive definite.
    """
    try:
        if is_on_host(matrix):
            return _cholesky_on_host(matrix, penalty)
        return _cholesky_on_device(matrix, penalty)
    except np.linalg.LinAlgError:
        xp = array_namespace(matrix)
        return xp.full_like(matrix, xp.nan)


def _cholesky_on_host(matrix: Any, penalty: Any) -> Any:
    """Return the lower triangle, a block of columns at a time."""
    n = len(matrix)
    lower = np.zeros_like(matrix)
    penalties = np.broadcast_to(penalty, n)
    for start in range(0, n, TRIANGLE_BLOCK):
        stop = min(start + TRIANGLE_BLOCK, n)
        # What the columns to the left leave of this block of columns.
        rest = matrix[start:, start:stop] - lower[start:, :start] @ lower[start:stop, :start].T
        on_diagonal = rest[: stop - start]
        on_diagonal.flat[:: stop - start + 1] += penalties[start:stop]
        factor = np.linalg.cholesky(on_diagonal)
        lower[start:stop, start:stop] = factor
        if stop < n:
            lower[stop:, start:stop] = rest[stop - start :] @ np.linalg.inv(factor.T)
    return lower


def _cholesky_on_device(matrix: Any, penalty: Any) -> Any:
    """Return the lower triangle, by the library of the matrix; a penalty of one number is zero."""
    xp = array_namespace(matrix)
    if not np.isscalar(penalty):
        identity = xp.eye(matrix.shape[0], dtype=matrix.dtype, device=matrix.device)
        matrix = matrix + identity * to_library_of(penalty, matrix)
    if _library(matrix) == "torch":
        # This variant reports failure on the device, so that the processor need not wait.
        factor, failed = xp.linalg.cholesky_ex(matrix)
        return xp.where(failed > 0, xp.nan, factor)
    return xp.linalg.cholesky(matrix)


def solve_triangle(lower: Any, right: Any, transposed: bool = False) -> Any:
    """Return C^-1 right for a lower triangle C, or C^-T right when `transposed`."""
    if is_on_host(lower):
        return _solve_triangle_on_host(lower, right, transposed)
    xp = array_namespace(lower)
    library = _library(lower)
    matrix = lower.T if transposed else lower
    if library == "torch":
        return xp.linalg.solve_triangular(matrix, right, upper=transposed)
    if library == "cupy":
        cupy_solve = import_module("cupyx.scipy.linalg").solve_triangular
        return cupy_solve(lower, right, lower=True, trans=int(transposed))
    return xp.linalg.solve(matrix, right)


def _solve_triangle_on_host(lower: Any, right: Any, transposed: bool) -> Any:
    """Return C^-1 right or C^-T right, a block of rows at a time."""
    solution = np.array(right)
    inverses = _inverses_on_diagonal(lower)
    blocks = [(number * TRIANGLE_BLOCK, inverse) for number, inverse in enumerate(inverses)]
    for start, inverse in reversed(blocks) if transposed else blocks:
        rows = slice(start, min(start + TRIANGLE_BLOCK, len(lower)))
        inverse = inverse[: rows.stop - start, : rows.stop - start]
        if transposed:
            rest = solution[rows] - lower[rows.stop :, rows].T @ solution[rows.stop :]
            solution[rows] = inverse @ rest
        else:
            rest = solution[rows] - lower[rows, :start] @ solution[:start]
            solution[rows] = inverse.T @ rest
    return solution


def _inverses_on_diagonal(lower: Any) -> Any:
    """Return the inverses of the transposed blocks on the diagonal of a lower triangle.

    NumPy solves upper triangles without exchanging rows, so these are as accurate as substitution.
    A last block that is smaller than the others is continued by ones on the diagonal. The inverses
    of a triangle of NaN, which stands for a factorisation that failed, are NaN as well.
    """
    starts = range(0, len(lower), TRIANGLE_BLOCK)
    size = min(len(lower), TRIANGLE_BLOCK)
    blocks = np.tile(np.eye(size, dtype=lower.dtype), (len(starts), 1, 1))
    for block, start in zip(blocks, starts, strict=True):
        part = lower[start : start + TRIANGLE_BLOCK, start : start + TRIANGLE_BLOCK]
        block[: len(part), : len(part)] = part.T
    if np.isnan(lower[-1, -1]):
        return np.full_like(blocks, np.nan)  # NumPy may call it singular.
    return np.linalg.inv(blocks)


def invert_triangle(triangle: Any) -> Any:
    """Return the inverse of an upper triangle without zeros on its diagonal."""
    if is_on_host(triangle):
        return _invert_triangle_on_host(triangle)
    xp = array_namespace(triangle)
    identity = xp.eye(triangle.shape[0], dtype=triangle.dtype, device=triangle.device)
    return solve_triangle(triangle.T, identity, transposed=True)


def _invert_triangle_on_host(triangle: Any) -> Any:
    """Return the inverse of an upper triangle from those of its two halves."""
    n = len(triangle)
    if n <= TRIANGLE_BLOCK:
        return np.linalg.inv(np.triu(triangle))
    middle = n // 2
    inverse = np.zeros_like(triangle)
    first = _invert_triangle_on_host(triangle[:middle, :middle])
    second = _invert_triangle_on_host(triangle[middle:, middle:])
    inverse[:middle, :middle] = first
    inverse[middle:, middle:] = second
    inverse[:middle, middle:] = -first @ (triangle[:middle, middle:] @ second)
    return inverse


def fourier_module(array: Any) -> Any:
    """Return a module with `fft`, `ifft`, `rfft` and `irfft`, which keep an array's precision."""
    if is_on_host(array):
        import scipy.fft

        return scipy.fft  # Older versions of NumPy turn single precision into double.
    return array_namespace(array).fft


def unit_phasors(phase: Any) -> Any:
    """Return exp(i phase) as complex numbers of the phase's precision."""
    if is_on_host(phase):
        out = np.empty(phase.shape, dtype=np.result_type(phase, np.complex64))
        np.cos(phase, out=out.real)
        np.sin(phase, out=out.imag)
        return out
    return array_namespace(phase).exp(1j * phase)


def axis_values(values: Sequence[Any]) -> np.ndarray:
    """Make an array of values along an axis: numbers and strings as they are, others as text."""
    all_numbers = all(isinstance(value, int | float) for value in values)
    all_strings = all(isinstance(value, str) for value in values)
    if all_numbers or all_strings:
        return np.array(values)
    return np.array([str(value) for value in values])
