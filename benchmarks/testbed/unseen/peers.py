"""Peers from packages, each told the bounds, x0 and the budget. They work in units of the box or of x0, centred at x0.

Non-box domains are reached by projection at the door. ``DFO-LS`` sees residuals where the cost is a sum of squares;
``POUNDERS`` sees the answers and the known f. What a package raises ends its run and is kept with the run.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from testbed.unseen.instance import Door, Instance, Spent, Vector

Peer = Callable[[Door, int], None]
_FAR = 1e20
_DIFFERENCE = 1e-6
_POUNDERS_MOST = 60


class Unfit(Exception):
    """The peer does not apply to the instance, or is not installed: no run, and no failure."""


def unit_of(instance: Instance) -> Vector:
    """Return the scale of each decision that an engineer would read off the bounds, or else off x0."""
    x0, bounds = instance.draft.x0, instance.bounds
    mean = float(np.abs(x0).mean())
    common = np.full(x0.size, mean if mean > 0.0 else 1.0)
    if bounds is None:
        return common
    width = bounds[1] - bounds[0]
    return np.where(np.isfinite(width), 0.25 * width, common)


class Unit:
    """The instance in centred units: u = (x - x0)/unit, with its bounds."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.x0 = np.array(door.instance.draft.x0)
        self.unit = unit_of(door.instance)
        self.zero = np.zeros(self.x0.size)
        bounds = door.instance.bounds
        self.bounds = None if bounds is None else tuple((side - self.x0) / self.unit for side in bounds)

    def x(self, u: Any) -> Vector:
        """Return x."""
        return self.x0 + self.unit * np.asarray(u, dtype=np.float64).ravel()

    def __call__(self, u: Any) -> float:
        """Return F as seen."""
        return self.door.cost(self.x(u))

    def limits(self, far: float = _FAR) -> tuple[Vector, Vector]:
        """Return bounds for packages that want numbers."""
        if self.bounds is None:
            return np.full(self.zero.size, -far), np.full(self.zero.size, far)
        return np.maximum(self.bounds[0], -far), np.minimum(self.bounds[1], far)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """End at the budget without a word."""
    talk = contextlib.redirect_stdout(io.StringIO())
    with contextlib.suppress(Spent), warnings.catch_warnings(), np.errstate(all="ignore"), talk:
        warnings.simplefilter("ignore")
        yield


def package(module: str, extra: str = "peers") -> Any:
    """Import a peer."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Unfit(f"{module} is not installed: pip install 'pzos[{extra}]'") from error


def cobyqa(door: Door, seed: int) -> None:
    """Run scipy's COBYQA."""
    from scipy.optimize import Bounds, minimize

    F = Unit(door)
    limits = None if F.bounds is None else Bounds(*F.bounds)
    with quiet():
        minimize(F, F.zero, method="COBYQA", bounds=limits, options={"maxfev": door.budget, "initial_tr_radius": 0.5})


def bobyqa(door: Door, seed: int) -> None:
    """Run Py-BOBYQA."""
    solver, F = package("pybobyqa"), Unit(door)
    np.random.seed(seed)  # noqa: NPY002  # the package draws from there
    with quiet():
        solver.solve(F, F.zero, bounds=F.limits(), maxfun=door.budget, rhobeg=0.3, rhoend=1e-10,
                     objfun_has_noise=not door.instance.exact)  # fmt: skip


def dfo_ls(door: Door, seed: int) -> None:
    """Run DFO-LS on the residuals of the cost."""
    residuals = door.instance.draft.cost.residuals
    if residuals is None:
        raise Unfit("the cost is not a sum of squares")
    solver, F = package("dfols"), Unit(door)
    np.random.seed(seed)  # noqa: NPY002  # the package draws from there
    with quiet():
        solver.solve(lambda u: residuals(*door.at(F.x(u))), F.zero, bounds=F.limits(), maxfun=door.budget, rhobeg=0.3,
                     rhoend=1e-10, do_logging=False, objfun_has_noise=not door.instance.exact)  # fmt: skip


def pycma(door: Door, seed: int) -> None:
    """Run CMA-ES by pycma."""
    cma, F = package("cma"), Unit(door)
    options: dict[str, Any] = {"seed": seed + 1, "verbose": -9, "maxfevals": door.budget}
    if F.bounds is not None:
        options["bounds"] = [[b if np.isfinite(b) else None for b in side] for side in F.bounds]
    with quiet():
        F(F.zero)
        cma.fmin2(F, F.zero, 0.3, options)


def nevergrad(door: Door, seed: int) -> None:
    """Run nevergrad's NGOpt."""
    ng, F = package("nevergrad"), Unit(door)
    variable = ng.p.Array(init=F.zero)
    if F.bounds is not None:
        variable.set_bounds(*F.limits(1e3))
    variable.random_state.seed(seed)
    with quiet():
        F(F.zero)
        ng.optimizers.NGOpt(parametrization=variable, budget=door.budget).minimize(F)


def pounders(door: Door, seed: int) -> None:
    """Run IBCDFO's POUNDERS on (u, y) with the known f as its smooth outer function.

    The subproblem solver it prefers is on no package index and its own fallback is slow, so L-BFGS-B stands in for it.
    """
    F = Unit(door)
    n = F.zero.size
    if n > _POUNDERS_MOST:
        raise Unfit(f"its models of {n} decisions and more answers take minutes per run")
    package("ibcdfo.pounders")
    inner = package("ibcdfo.pounders.pounders")
    inner.bqmin = _bounded_quadratic
    outer = _Outer(F)
    m = np.size(door.instance.draft.respond(F.x0))

    def simulate(u: Any) -> Vector:
        x, y = door.at(F.x(u))
        return np.concatenate([(x - F.x0) / F.unit, y])

    with quiet():
        inner.pounders(simulate, F.zero, n, door.budget, 1e-13, 0.3, n + m, *F.limits(1e3),
            Options={"printf": 0, "spsolver": 1, "hfun": outer.value, "combinemodels": outer.combine})  # fmt: skip


def _bounded_quadratic(A: Vector, b: Vector, lower: Vector, upper: Vector) -> list[Any]:
    """Minimise x'Ax/2 + b'x within bounds around 0, from 0; return the point and the value."""
    from scipy.optimize import Bounds, minimize

    A, b = np.asarray(A), np.asarray(b).ravel()
    size = max(float(np.abs(b).max()), 1e-300)
    found = minimize(
        lambda x: (float(x @ (0.5 * (A @ x) + b)) / size, (A @ x + b) / size), np.zeros(b.size), jac=True,
        method="L-BFGS-B", bounds=Bounds(np.ravel(lower), np.ravel(upper)),
        options={"maxiter": 500, "ftol": 1e-16, "gtol": 1e-13},
    )  # fmt: skip
    return [found.x, size * float(found.fun)]


class _Outer:
    """h(u, y) = f(x(u), y), and the quadratic model of h composed with quadratic models of u and y."""

    def __init__(self, F: Unit) -> None:
        self.F, self.n, self.f = F, F.zero.size, F.door.instance.draft.cost

    def value(self, z: Any) -> float:
        flat = np.asarray(z, dtype=np.float64).ravel()
        return self.f.value(self.F.x(flat[: self.n]), flat[self.n :])

    def gradient(self, z: Vector) -> Vector:
        grad_x, grad_y = self.f.gradients(self.F.x(z[: self.n]), z[self.n :])
        return np.concatenate([self.F.unit * grad_x, grad_y])

    def combine(self, centre: Any, slopes: Vector, curvatures: Any) -> tuple[Vector, Vector]:
        """Return gradient and Hessian of h(model); products with the Hessian of f by differences of its gradient."""
        z = np.asarray(centre, dtype=np.float64).ravel()
        slope = self.gradient(z)
        size = np.maximum(np.abs(z), 1.0)
        turned = np.empty((z.size, self.n))
        for j in range(self.n):
            h = _DIFFERENCE / max(float((np.abs(slopes[j]) / size).max()), 1e-300)
            turned[:, j] = (self.gradient(z + h * slopes[j]) - self.gradient(z - h * slopes[j])) / (2.0 * h)
        hessian = slopes @ turned + np.tensordot(np.asarray(curvatures), slope, axes=([2], [0]))
        return slopes @ slope, 0.5 * (hessian + hessian.T)


#: The peers by name.
PACKAGES: dict[str, Peer] = {
    "dfo-ls": dfo_ls,
    "pounders": pounders,
    "nevergrad": nevergrad,
    "pycma": pycma,
    "cobyqa": cobyqa,
    "py-bobyqa": bobyqa,
}
#: Peers that use the budget in what they do: one run per budget.
BUDGET_AWARE = ("nevergrad",)
