"""The one place where functions are compiled: how, what is kept on disk, and what the user is told about it.

Rooms above (:mod:`pzos.networks`) compile by the same words. Numba keeps compiled kernels on disk, so that compilation
takes place once after an installation. With ``NUMBA_DISABLE_JIT=1`` every decorator here hands its function back
unchanged: kernels then run as plain Python, slowly, where a debugger and a measurement of coverage can see them.
No fast-math but where a decorator says so: a result has the same bits on every run.

Importing this module loads numba; games do so with their first answer.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count
from operator import itemgetter
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import event
from numba.extending import intrinsic, register_jitable
from numba.np.arrayobj import populate_array

Function = TypeVar("Function", bound=Callable[..., Any])
logger = logging.getLogger("pzos")

COMPILES = not numba.config.DISABLE_JIT
"""Whether functions are compiled at all."""

_INNER: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_ANY_ORDER = {"nnan", "nsz", "reassoc", "contract"}


def compiled(function: Function) -> Function:
    """Compile a kernel on first use: kept on disk, and other threads of Python go on meanwhile."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: Function) -> Function:
    """Merge a helper into its callers before compilation: handing arrays over costs more than many a helper does."""
    return cast(Function, numba.njit(inline="always", error_model="numpy")(function))


def shared(function: Function) -> Function:
    """Let compiled code take a function in that Python can also run as it is, for instance between threads."""
    return cast(Function, register_jitable(error_model="numpy")(function))


def inner(function: Function) -> Function:
    """Compile a helper that only kernels call; it is kept on disk as part of them."""
    return cast(Function, numba.njit(**_INNER)(function))


def embedded(function: Function) -> Function:
    """As `inner`, but merged into its callers after compilation: quicker to compile than `inlined` if used often."""
    return cast(Function, numba.njit(forceinline=True, **_INNER)(function))


def reordered(function: Function) -> Function:
    """As `embedded`, for sums whose last bits do not matter: the machine may add in any order."""
    return cast(Function, numba.njit(forceinline=True, fastmath=_ANY_ORDER, **_INNER)(function))


at = cast(Callable[[int], int], np.uintp if COMPILES else int)
"""Index of an entry: compiled code need not ask whether an unsigned one counts from the end."""

whole = cast(Callable[[int], int], np.int64 if COMPILES else int)
"""A number not known at compile time: helpers are compiled once more for every constant they are called with."""


def _fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """The machine's instruction for a b + c, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    number = numba.types.float64
    return number(number, number, number), generate


def _exactly_fused(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


fused = cast(Callable[[float, float, float], float], intrinsic(_fused) if COMPILES else _exactly_fused)
"""a b + c, rounded once."""


def table_of(arrays: tuple[Any, ...]) -> npt.NDArray[np.int64]:
    """Return where the contiguous arrays of a (nested) tuple lie and their shapes, as `openers` read them."""
    words: list[int] = []
    for part in arrays:
        words += table_of(part).tolist() if isinstance(part, tuple) else (part.ctypes.data, *part.shape)
    return np.array(words, dtype=np.int64)


def openers(example: tuple[Any, ...]) -> list[Callable[[Any], Any]]:
    """Return one function per part of a tuple like ``example``: it gives that part by the address of the table of all.

    Parts are arrays or (named) tuples of them. A compiled call pays for every array it is handed, more than a small
    answer costs: a kernel is handed one number instead. Whoever made the table keeps the arrays alive; they are used
    without counting references. Where nothing is compiled, the tuple itself is handed over.
    """
    if not COMPILES:
        return [itemgetter(k) for k in range(len(example))]
    sizes = [table_of((part,)).size for part in example]
    return [_opener(numba.typeof(part), sum(sizes[:k])) for k, part in enumerate(example)]


def _opener(part: Any, first: int) -> Callable[[Any], Any]:
    """Return compiled code's way to an array or a tuple of arrays, given where in the table it begins."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        table, places = builder.inttoptr(arguments[0], number.as_pointer()), count(first)

        def word() -> Any:
            return builder.load(builder.gep(table, [ir.Constant(number, next(places))]))

        def made(kind: Any) -> Any:
            if isinstance(kind, numba.types.BaseTuple):
                return context.make_tuple(builder, kind, [made(inner) for inner in kind])
            array = context.make_array(kind)(context, builder)
            data, shape = builder.inttoptr(word(), array.data.type), [word() for _ in range(kind.ndim)]
            strides = [ir.Constant(number, context.get_abi_sizeof(context.get_data_type(kind.dtype)))]
            for length in reversed(shape[1:]):
                strides.insert(0, builder.mul(strides[0], length))
            populate_array(array, data, shape, strides, strides[-1], None)
            return array._getvalue()

        return made(part)

    def typed(typing_context: Any, address: Any) -> Any:
        return part(numba.types.intp), generate

    return cast(Callable[[Any], Any], intrinsic(typed))


class _Announcer(event.Listener):  # type: ignore[misc]
    """Remembers when the first compilation of a block began, and says so."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.started: float | None = None

    def on_start(self, event: object) -> None:
        """Announce the first compilation; a kernel's helpers are compiled inside it."""
        if self.started is None:
            self.started = time.perf_counter()
            logger.warning("compiling the %s (up to half a minute, once after installation) ...", self.name)

    def on_end(self, event: object) -> None:
        """Nothing to say: helpers end before the kernel itself does."""


@contextlib.contextmanager
def announce_compilation(name: str) -> Iterator[None]:
    """Say that a kernel is being compiled inside the block, and log at INFO how long it took.

    Said at WARNING, which Python shows unless told otherwise: nobody should sit before a program that seems to hang.
    Numba raises ``numba:compile`` after its cache was missed and before the work begins: slow starts are announced,
    fast ones are not. Use it around the *first* call of a kernel, on a tiny input::

        with announce_compilation("security follower"):
            solve_rows(...)
    """
    listener = _Announcer(name)
    with event.install_listener("numba:compile", listener):
        yield
    if listener.started is not None:
        logger.info("compiled the %s in %.1f s", name, time.perf_counter() - listener.started)
