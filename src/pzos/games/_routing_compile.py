"""Typed stand-in for numba's decorator, and array views that compiled code need not count references to."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])


at = np.uintp
"""Index of an entry: compiled code need not ask whether an unsigned one counts from the end."""

_INNER = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_REORDERED = {"nnan", "nsz", "reassoc", "contract"}


def compiled(function: Function) -> Function:
    """Compile a helper of a kernel; it is cached as part of the kernel that uses it."""
    return cast(Function, numba.njit(**_INNER)(function))


def inlined(function: Function) -> Function:
    """Compile a helper into its callers: handing over a dozen arrays costs more than many a helper does."""
    return cast(Function, numba.njit(forceinline=True, **_INNER)(function))


def reordered(function: Function) -> Function:
    """As `inlined`, for sums whose last bits do not matter: the machine may add in any order."""
    return cast(Function, numba.njit(forceinline=True, fastmath=_REORDERED, **_INNER)(function))


def merged(function: Function) -> Function:
    """Merge a helper into its only caller before compilation: each level of calls is optimised again by numba."""
    return cast(Function, numba.njit(error_model="numpy", inline="always")(function))


def _pointer_at(typing_context: Any, array: Any, offset: Any) -> Any:
    """Pointer to entry `offset` of a one-dimensional array, for `numba.carray`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.gep(data, [arguments[1]])

    return numba.types.CPointer(array.dtype)(array, numba.types.intp), generate


pointer_at = cast(Callable[..., Any], intrinsic(_pointer_at))
