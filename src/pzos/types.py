"""The words every room of the package speaks: arrays, queries, responses and the leader's value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Sense = Literal["min", "max"]


class Purpose(Enum):
    """Why a query is asked. Only MONITOR queries are counted apart from the algorithm's own."""

    ITERATE = "iterate"
    PROBE = "probe"
    TRIAL = "trial"
    CERTIFICATE = "certificate"
    MONITOR = "monitor"


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """One question to the followers: what is y*(x)? Its identity is (step, index), never its coordinates."""

    step: int
    index: int
    x: Vector
    purpose: Purpose = Purpose.PROBE

    def __repr__(self) -> str:
        return f"Query({self.step}.{self.index}, {self.purpose.value}, x of length {self.x.size})"


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """The followers' answer to query (step, index).

    ``gap`` is the equilibrium gap the follower itself reports (NaN if it reports none), ``seconds`` what the
    answer took, and ``failure`` the reason why there is none (then ``y`` is empty).
    """

    step: int
    index: int
    y: Vector
    gap: float = float("nan")
    seconds: float = float("nan")
    failure: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class LeaderValue:
    """f(x, y) with both exact partial gradients, grad_x f(x, y) and grad_y f(x, y)."""

    value: float
    grad_x: Vector
    grad_y: Vector


def dot(a: Vector, b: Vector) -> float:
    """Return the inner product a . b with the same bits for any number of BLAS threads.

    ``numpy.dot`` hands long vectors to BLAS, whose result depends on the thread count; ``einsum`` does not.
    """
    return float(np.einsum("i,i->", a, b))
