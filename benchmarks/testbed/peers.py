"""Peers of the test bed: scipy's methods, and others behind the extra ``peers``. They see F only, by one counter."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from typing import Any

import numpy as np

from pzos.base.errors import MissingExtra
from pzos.base.types import Vector
from pzos.methods.trust_region.subproblem import bounds_of
from testbed.cases import Case, Counter, Spent
from testbed.methods import Method


def bounds(case: Case) -> tuple[Vector, Vector] | None:
    """Return the bounds of x where there are any; points outside other sets are projected by the counter."""
    box = bounds_of(case.problem.domain, case.problem.x0.size)
    return None if box is None or not np.isfinite(box).any() else box


def size(case: Case) -> float:
    """Return the size of x0, the scale of x a peer is told."""
    return max(1.0, float(np.abs(case.problem.x0).mean()))


def package(module: str, name: str) -> Any:
    """Import a peer, or say which extra has it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(name, "peers", f"the peer {name}") from error


def lbfgs(case: Case, queries: int, seed: int) -> list[float]:
    """Run scipy's L-BFGS-B with finite differences."""
    return _scipy(case, queries, "L-BFGS-B", {"maxiter": 10_000, "maxfun": 10 * queries})


def cobyqa(case: Case, queries: int, seed: int) -> list[float]:
    """Run scipy's COBYQA."""
    return _scipy(case, queries, "COBYQA", {"maxfev": queries, "initial_tr_radius": 0.5 * size(case)})


def _scipy(case: Case, queries: int, name: str, options: dict[str, float]) -> list[float]:
    optimize: Any = importlib.import_module("scipy.optimize")
    counter, box = Counter(case, queries), bounds(case)
    limits = None if box is None else optimize.Bounds(*box)
    with contextlib.suppress(Spent):
        optimize.minimize(counter, case.problem.x0, method=name, bounds=limits, options=options)
    return counter.values


def pycma(case: Case, queries: int, seed: int) -> list[float]:
    """Run CMA-ES by pycma."""
    cma = package("cma", "cma")
    counter, box = Counter(case, queries), bounds(case)
    options: dict[str, Any] = {"seed": seed + 1, "verbose": -9, "maxfevals": queries}
    if box is not None:
        options["bounds"] = [box[0], [bound if np.isfinite(bound) else None for bound in box[1]]]
    with contextlib.suppress(Spent):
        cma.fmin2(counter, case.problem.x0, 0.3 * size(case), options)
    return counter.values


def nevergrad(case: Case, queries: int, seed: int) -> list[float]:
    """Run nevergrad's NgIohTuned."""
    ng = package("nevergrad", "nevergrad")
    counter, box = Counter(case, queries), bounds(case)
    variable = ng.p.Array(init=np.array(case.problem.x0))
    if box is not None:
        variable.set_bounds(lower=box[0], upper=np.where(np.isfinite(box[1]), box[1], 1e3 * size(case)))
    variable.random_state.seed(seed)
    with contextlib.suppress(Spent), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ng.optimizers.NgIohTuned(parametrization=variable, budget=queries).minimize(counter)
    return counter.values


def bobyqa(case: Case, queries: int, seed: int) -> list[float]:
    """Run Py-BOBYQA."""
    solver = package("pybobyqa", "Py-BOBYQA")
    counter, box = Counter(case, queries), bounds(case)
    limits = None if box is None else (np.maximum(box[0], -1e20), np.minimum(box[1], 1e20))
    with contextlib.suppress(Spent), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver.solve(counter, np.array(case.problem.x0), bounds=limits, maxfun=queries, rhobeg=0.3 * size(case))
    return counter.values


#: The peers by name.
PEERS: dict[str, Method] = {
    "lbfgsb-differences": lbfgs,
    "cobyqa": cobyqa,
    "py-bobyqa": bobyqa,
    "pycma": pycma,
    "nevergrad": nevergrad,
}
