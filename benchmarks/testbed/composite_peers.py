"""Peers that are told more than F: DFO-LS sees the cost as a sum of squares, POUNDERS the answers and the known f."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

import numpy as np

from pzos.base.types import Matrix, Vector
from testbed.cases import Case, Counter, Spent, Unsuited
from testbed.methods import Method
from testbed.peers import bounds, package, size

_FAR = 1e20
_DIFFERENCE = 1e-6


def _bounds(case: Case, far: float) -> tuple[Vector, Vector]:
    n = case.problem.x0.size
    box = bounds(case)
    return (np.full(n, -far), np.full(n, far)) if box is None else (np.maximum(box[0], -far), np.minimum(box[1], far))


def dfo_ls(case: Case, queries: int, seed: int) -> list[float]:
    """Run DFO-LS on the residuals of the cost, where it is a sum of squares."""
    residuals = case.residuals
    if residuals is None:
        raise Unsuited(f"dfo-ls: {case.family}: expected a cost that is a sum of squares; leave this peer out")
    solver = package("dfols", "DFO-LS")
    counter = Counter(case, queries)

    def simulate(x: Vector) -> Vector:
        counter(x)
        return residuals(case.problem.domain.project(np.array(x)), counter.last)

    with contextlib.suppress(Spent), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver.solve(
            simulate, np.array(case.problem.x0), bounds=_bounds(case, _FAR), maxfun=queries,
            rhobeg=min(0.3 * size(case), 0.5), do_logging=False,
        )  # fmt: skip
    return counter.values


def pounders(case: Case, queries: int, seed: int) -> list[float]:
    """Run IBCDFO's POUNDERS on (x, y*(x)) with the known f as its smooth outer function.

    Its subproblems are solved by its own fallback (``spsolver`` 1): the one it prefers is on no package index.
    """
    package("ibcdfo.pounders", "ibcdfo")
    run = package("ibcdfo.pounders.pounders", "ibcdfo").pounders
    counter, start = Counter(case, queries), np.array(case.problem.x0)
    n = start.size
    outputs = n + int(np.size(case.problem.leader(start, _first(case)).grad_y))
    outer = _Outer(case, n)

    def simulate(x: Any) -> Vector:
        point = np.array(x, dtype=np.float64).ravel()
        counter(point)
        return np.concatenate([case.problem.domain.project(point), counter.last])

    far = 1e3 * size(case)
    lower, upper = _bounds(case, far)
    talk = contextlib.redirect_stdout(io.StringIO())  # it prints why it ends
    with contextlib.suppress(Spent), warnings.catch_warnings(), np.errstate(all="ignore"), talk:
        warnings.simplefilter("ignore")
        run(
            simulate, start, n, queries, 1e-13, 0.3 * size(case), outputs, lower, upper,
            Options={"printf": 0, "spsolver": 1, "hfun": outer.value, "combinemodels": outer.combine},
        )  # fmt: skip
    return counter.values


def _first(case: Case) -> Vector:
    from testbed.cases import answer

    return answer(case.clean, case.problem.x0)


class _Outer:
    """h(x, y) = sign f(x, y), and the quadratic model of h composed with quadratic models of x and y."""

    def __init__(self, case: Case, n: int) -> None:
        self.leader, self.sign, self.n = case.problem.leader, case.sign, n

    def value(self, z: Any) -> float:
        """Return sign f."""
        flat = np.asarray(z, dtype=np.float64).ravel()
        return self.sign * self.leader.value(flat[: self.n], flat[self.n :])

    def gradient(self, z: Vector) -> Vector:
        """Return its gradient in (x, y)."""
        at = self.leader(z[: self.n], z[self.n :])
        return self.sign * np.concatenate([at.grad_x, at.grad_y])

    def combine(self, centre: Any, slopes: Matrix, curvatures: Any) -> tuple[Vector, Matrix]:
        """Return gradient and Hessian of h(model); products with the Hessian of f by differences of its gradient."""
        z = np.asarray(centre, dtype=np.float64).ravel()
        slope = self.gradient(z)
        step = _DIFFERENCE * max(1.0, float(np.abs(z).max()))
        turned = np.empty((z.size, self.n))
        for j in range(self.n):
            length = max(float(np.abs(slopes[j]).max()), 1e-300)
            h = step / length
            turned[:, j] = (self.gradient(z + h * slopes[j]) - self.gradient(z - h * slopes[j])) / (2.0 * h)
        hessian: Matrix = slopes @ turned + np.tensordot(np.asarray(curvatures), slope, axes=([2], [0]))
        return slopes @ slope, 0.5 * (hessian + hessian.T)


#: The peers by name.
COMPOSITE: dict[str, Method] = {"dfo-ls": dfo_ls, "pounders": pounders}
