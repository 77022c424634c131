"""The words every room of the package speaks: arrays, queries, responses and the leader's value."""

from __future__ import annotations

from enum import Enum
from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
FLOAT64 = np.dtype(np.float64)
Sense = Literal["min", "max"]
#: What an answer from a cache took: no follower was asked. One that was asked took longer.
CACHED_SECONDS = 0.0


class Purpose(Enum):
    """Why a query is asked. Only MONITOR queries are counted apart from the algorithm's own."""

    ITERATE = "iterate"
    PROBE = "probe"
    TRIAL = "trial"
    CERTIFICATE = "certificate"
    MONITOR = "monitor"

    __hash__ = object.__hash__  # there is one of each; that of Enum is written in Python, and all are counted by it


# Named tuples, not frozen dataclasses: several are made per query, and a frozen dataclass costs twice as much.


class Query(NamedTuple):
    """One question to the followers: what is y*(x)? Its identity is (step, index), never its coordinates."""

    step: int
    index: int  # type: ignore[assignment]  # tuple.index is of no use here
    x: Vector
    purpose: Purpose = Purpose.PROBE

    def __repr__(self) -> str:
        return f"Query({self.step}.{self.index}, {self.purpose.value}, x of length {self.x.size})"


class Response(NamedTuple):
    """The followers' answer to query (step, index).

    ``gap`` is the equilibrium gap the follower itself reports (NaN if it reports none), ``seconds`` what the
    answer took (0 where a cache knew it), ``failure`` the reason why there is none (then ``y`` is empty), and
    ``retried`` what went wrong in the attempts before the one that gave the answer.
    """

    step: int
    index: int  # type: ignore[assignment]  # tuple.index is of no use here
    y: Vector
    gap: float = float("nan")
    seconds: float = float("nan")
    failure: str = ""
    retried: str = ""


class LeaderValue(NamedTuple):
    """f(x, y) with both exact partial gradients, grad_x f(x, y) and grad_y f(x, y)."""

    value: float
    grad_x: Vector
    grad_y: Vector


def float_array(value: Any) -> npt.NDArray[np.float64]:
    """Return a float64 copy of numbers given as anything (list, int, float32, array).

    Raises TypeError or ValueError for text, complex numbers, None and ragged lists, which numpy would partly
    convert in silence.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "biufO":
        raise TypeError(f"not real numbers but {array.dtype}")
    if array.dtype.kind == "O" and any(entry is None for entry in array.flat):
        raise TypeError("None is not a number")
    return np.array(array, dtype=FLOAT64)


def as_number(value: Any) -> float | None:
    """Return ``value`` as a float, or None if it is not a single real number (text and truth values are none)."""
    try:
        array = np.asarray(value)
        return float(value) if array.ndim == 0 and array.dtype.kind in "iufO" else None
    except (TypeError, ValueError, OverflowError):  # None, other objects, ragged lists, 10**400
        return None


#: Up to this length every BLAS works on one thread; beyond it the bits of a BLAS product depend on their number.
_ONE_THREAD = 4096


def dot(a: Vector, b: Vector) -> float:
    """Return the inner product a . b with the same bits for any number of BLAS threads.

    Two stacks of rows give a column: for every row the bits it has alone.
    """
    if a.ndim > 1:
        return _dots(a, b)  # type: ignore[return-value]  # it computes like a number
    return float(a.dot(b)) if a.size <= _ONE_THREAD else float(np.einsum("i,i->", a, b))


def _dots(a: Matrix, b: Matrix) -> Matrix:
    products: Vector = np.vecdot(a, b) if a.shape[-1] <= _ONE_THREAD else np.einsum("...i,...i->...", a, b)
    return products[..., None]


def all_finite(a: Vector) -> bool:
    """Tell whether no entry is NaN or infinite.

    The sum of squares of finite numbers is finite unless it overflows, so the usual case costs one pass.
    """
    squares = a.dot(a) if a.size <= _ONE_THREAD else np.einsum("i,i->", a, a)
    return isfinite(squares) or bool(np.isfinite(a).all())
