"""One matrix product that adds to what is there, without holding up other threads."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from ..typing import Floats


def add_product(y: Floats, z: Floats, out: Floats) -> None:
    """out += y @ z, with `out` in Fortran's order and the others in C's, all possibly parts of larger arrays.

    NumPy's product would make a new array to be added afterwards, and that costs as much as a tenth of the product.
    SciPy's own wrapper of this routine holds Python's lock while it works, so threads would wait for each other;
    here it is called by its address, as compiled extensions do.
    """
    (m, n), k = y.shape, z.shape[1]
    if y.strides[1] != 8 or z.strides[1] != 8 or out.strides[0] != 8:
        out += y @ z
        return
    one = ctypes.c_double(1.0)
    sizes = [ctypes.c_int(size) for size in (m, k, n)]
    steps = [ctypes.c_int(array.strides[axis] // 8) for array, axis in ((y, 0), (z, 0), (out, 1))]
    _dgemm()(
        b"T",
        b"T",
        *map(ctypes.byref, sizes),
        ctypes.byref(one),
        y.ctypes.data,
        ctypes.byref(steps[0]),
        z.ctypes.data,
        ctypes.byref(steps[1]),
        ctypes.byref(one),
        out.ctypes.data,
        ctypes.byref(steps[2]),
    )


@cache
def _dgemm() -> Any:
    """BLAS's routine, from where SciPy keeps it for compiled extensions; ctypes lets other threads run meanwhile."""
    from scipy.linalg import cython_blas

    capsule, api = cython_blas.__pyx_capi__["dgemm"], ctypes.pythonapi
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))(capsule)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )(capsule, name)
    text, address = ctypes.c_char_p, ctypes.c_void_p
    return ctypes.CFUNCTYPE(None, text, text, *[address] * 11)(pointer)
