"""Typed stand-ins for numba's decorators, and pointers: arrays at an address need no reference counts."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])


INTEGER, FLOAT = np.int64, np.float64

at = cast(Callable[[int], int], np.uintp)
"""Index of an entry: compiled code need not ask whether an unsigned one counts from the end."""

whole = cast(Callable[[int], int], np.int64)
"""A number not known at compile time: helpers are compiled once more for every constant they are called with."""

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


def _pointer(typing_context: Any, address: Any, offset: Any, kind: Any) -> Any:
    """Pointer to entry `offset` of a buffer of the given kind of numbers at an address, for `numba.carray`."""
    target = numba.types.CPointer(kind.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = builder.inttoptr(arguments[0], context.get_value_type(target))
        return builder.gep(data, [arguments[1]])

    return target(numba.types.intp, numba.types.intp, kind), generate


pointer = cast(Callable[..., Any], intrinsic(_pointer))
