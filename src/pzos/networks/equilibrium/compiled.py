"""The one way this room compiles a function: cached on disk, releasing the interpreter lock, strict floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile ``function`` on first use; no fast-math, so that a result is the same bits on every run."""
    made: Function = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return made


def inlined(function: Function) -> Function:
    """Compile ``function`` into its callers: passing the arrays' descriptors would cost more than the work."""
    made: Function = numba.njit(inline="always", error_model="numpy")(function)
    return made
