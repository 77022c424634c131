"""Typed stand-in for numba's decorator, and array views that compiled code need not count references to."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a helper of a kernel; it is cached as part of the kernel that uses it."""
    return cast(Function, numba.njit(error_model="numpy")(function))


def _pointer_at(typing_context: Any, array: Any, offset: Any) -> Any:
    """Pointer to entry `offset` of a one-dimensional array, for `numba.carray`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.gep(data, [arguments[1]])

    return types.CPointer(array.dtype)(array, types.intp), generate


pointer_at = cast(Callable[..., Any], intrinsic(_pointer_at))
