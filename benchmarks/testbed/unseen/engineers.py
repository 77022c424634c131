"""What an engineer would write who knows f: differences of the answers, the chain rule, and a trust region.

All of them work in the units of :class:`testbed.unseen.peers.Unit`. The step lengths of the differences come in two
sizes: short (exact answers) and wide (answers with noise, kinks or steps); both are peers.
"""

from __future__ import annotations

import numpy as np

from testbed.unseen.instance import Door, Vector
from testbed.unseen.peers import Peer, Unfit, Unit, package, quiet

_SHORT, _WIDE = 1e-6, 0.1
_WORST = 1e30
_BOTORCH = "suite-botorch"


class Known:
    """f in centred units, finite everywhere; the domain as bounds, or by projection."""

    def __init__(self, door: Door) -> None:
        self.F, self.door, self.cost = Unit(door), door, door.instance.draft.cost
        self.n = self.F.zero.size

    def ask(self, u: Vector) -> tuple[Vector, Vector, float]:
        """Query at u, moved into the domain: return u, the answer and F as seen."""
        x, y = self.door.at(self.F.x(u))
        return (x - self.F.x0) / self.F.unit, y, self.cost.value(x, y)

    def both(self, u: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        """Return f, its gradient in u and in y; where f is not finite a large number and no slope."""
        x = self.F.x(u)
        value = self.cost.value(x, y)
        if not np.isfinite(value):
            return _WORST, np.zeros(u.size), np.zeros(y.size)
        gx, gy = self.cost.gradients(x, y)
        return value, self.F.unit * gx, gy

    def inside(self, u: Vector) -> Vector:
        """Return the nearest point of the domain."""
        x = np.asarray(self.door.instance.domain.project(self.F.x(u)))
        return (x - self.F.x0) / self.F.unit

    def jacobian(self, u: Vector, y: Vector, h: float) -> tuple[Vector, list[tuple[Vector, Vector, float]]]:
        """Return dy/du by forward differences, backwards at an upper bound, and the points asked."""
        J, told = np.zeros((y.size, self.n)), []
        upper = None if self.F.bounds is None else self.F.bounds[1]
        x = np.abs(self.F.x(u)) / self.F.unit
        for j in range(self.n):
            v = u.copy()
            h_j = h * min(1.0, max(x[j], 1e-4)) if h <= _SHORT else h  # short ones relative to the entry
            v[j] += -h_j if upper is not None and u[j] + h_j > upper[j] else h_j
            point = self.ask(v)
            told.append(point)
            moved = point[0][j] - u[j]
            J[:, j] = (point[1] - y) / (moved if moved else h_j)
        return J, told

    def step(self, u: Vector, y: Vector, J: Vector, radius: float) -> tuple[Vector, float]:
        """Minimise f(x, y + J s) over |s|_inf <= radius within the domain; return the point and f there."""

        def model(v: Vector) -> tuple[float, Vector]:
            value, gu, gy = self.both(v, y + J @ (v - u))
            return value, gu + J.T @ gy

        if self.door.instance.boxed:
            return self._bounded(model, u, radius)
        return self._projected(model, u, radius)

    def _bounded(self, model: object, u: Vector, radius: float) -> tuple[Vector, float]:
        from scipy.optimize import Bounds, minimize

        low, high = u - radius, u + radius
        if self.F.bounds is not None:
            low, high = np.maximum(low, self.F.bounds[0]), np.minimum(high, self.F.bounds[1])
        high = np.maximum(low, high)
        found = minimize(model, np.clip(u, low, high), jac=True, method="L-BFGS-B", bounds=Bounds(low, high),
                         options={"maxiter": 100, "ftol": 1e-14, "gtol": 1e-12})  # fmt: skip
        return found.x, float(found.fun)

    def _projected(self, model: object, u: Vector, radius: float) -> tuple[Vector, float]:
        """Spectral projected gradient; a point beyond the radius is drawn back along the line to u."""

        def feasible(v: Vector) -> Vector:
            s = self.inside(v) - u
            return u + s * min(1.0, radius / max(float(np.abs(s).max()), 1e-300))

        v = u
        value, slope = model(v)  # type: ignore[operator]
        length = 1.0 / max(float(np.linalg.norm(slope)), 1e-12)
        for _ in range(150):
            way = feasible(v - length * slope) - v
            fall = float(slope @ way)
            if fall > -1e-14 * max(1.0, abs(value)):
                break
            t = 1.0
            while t > 1e-10:
                new_value, new_slope = model(v + t * way)  # type: ignore[operator]
                if new_value <= value + 1e-4 * t * fall:
                    break
                t *= 0.5
            else:
                break
            s, r = t * way, new_slope - slope
            v, value, slope = v + s, new_value, new_slope
            length = float(s @ s) / max(float(s @ r), 1e-10 * float(s @ s), 1e-300)
        return v, value


def lbfgs(door: Door, seed: int) -> None:
    """L-BFGS-B on F with the gradient by the chain rule: forward differences of y, exact partial gradients of f."""
    from scipy.optimize import Bounds, minimize

    known = Known(door)
    limits = None if known.F.bounds is None else Bounds(*known.F.bounds)

    def objective(u: Vector) -> tuple[float, Vector]:
        at, y, value = known.ask(u)
        J, _ = known.jacobian(at, y, _SHORT)
        _, gu, gy = known.both(at, y)
        return value, gu + J.T @ gy

    with quiet():
        u = known.F.zero
        while True:  # a run that ends early starts again where it was
            found = minimize(objective, u, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": 10_000})
            if np.array_equal(found.x, u):
                return
            u = found.x


def _prox_linear(door: Door, width: float) -> None:
    """A full finite-difference Jacobian at every accepted point, and f minimised on the linear model."""
    known, wide = Known(door), width > _SHORT
    with quiet():
        u, y, value = known.ask(known.F.zero)
        radius = 1.0
        while radius > 1e-9:
            J, told = known.jacobian(u, y, width * radius if wide else width)
            best = min(told, key=lambda point: point[2])
            if wide and best[2] < value:
                u, y, value = best
            while radius > 1e-9:
                v, foreseen = known.step(u, y, J, radius)
                size = float(np.abs(v - u).max())
                if value - foreseen <= 1e-13 * max(abs(value), 1e-300) or size < 1e-12:
                    if not wide:
                        return
                    radius *= 0.25
                    break
                point = known.ask(v)
                ratio = (value - point[2]) / (value - foreseen)
                if ratio > 0.7 and size > 0.9 * radius:
                    radius *= 2.0
                elif ratio < 0.1:
                    radius = 0.4 * min(radius, size)
                if point[2] < value:
                    u, y, value = point
                    break
                if wide and radius < 0.1 * size:
                    break


def prox_linear(door: Door, seed: int) -> None:
    """Proximal-linear with short differences."""
    _prox_linear(door, _SHORT)


def prox_linear_wide(door: Door, seed: int) -> None:
    """Proximal-linear with differences a tenth of the trust region wide."""
    _prox_linear(door, _WIDE)


def _broyden(door: Door, seed: int, h: float) -> None:
    """Differences at x0 once, then Broyden's update after every query; probes when the model is used up."""
    known = Known(door)
    rng = np.random.default_rng(seed)
    with quiet():
        u, y, value = known.ask(known.F.zero)
        J, told = known.jacobian(u, y, h)
        for point in told:
            if point[2] < value:
                u, y, value = point
        radius, idle = 1.0, 0
        while idle < 3 * known.n:
            v, foreseen = known.step(u, y, J, radius)
            size = float(np.abs(v - u).max())
            blind = value - foreseen <= 1e-13 * max(abs(value), 1e-300) or size < 1e-12
            if blind:
                idle += 1
                way = rng.standard_normal(known.n)
                v = known.inside(u + max(radius, 1e-4) * way / np.linalg.norm(way))
            point = known.ask(v)
            s = point[0] - u
            J = J + np.outer(point[1] - y - J @ s, s) / max(float(s @ s), 1e-300)
            if not blind:
                ratio = (value - point[2]) / (value - foreseen)
                if ratio > 0.7 and size > 0.9 * radius:
                    radius *= 2.0
                elif ratio < 0.1:
                    radius = max(0.5 * min(radius, size), 1e-7)
            if point[2] < value:
                idle = 0 if not blind else idle
                u, y, value = point


def broyden(door: Door, seed: int) -> None:
    """Broyden trust region with short differences at x0."""
    _broyden(door, seed, _SHORT)


def broyden_wide(door: Door, seed: int) -> None:
    """Broyden trust region with wide differences at x0."""
    _broyden(door, seed, _WIDE)


def composite_ei(door: Door, seed: int) -> None:
    """Composite expected improvement: BoTorch's processes of the answers, f of their draws, at most ten decisions."""
    known = Known(door)
    if known.n > 10:
        raise Unfit("more than ten decisions")
    torch, models = package("torch", _BOTORCH), package("botorch.models", _BOTORCH)
    fit, likelihoods = package("botorch.fit", _BOTORCH), package("gpytorch.mlls", _BOTORCH)
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    with quiet():
        told = [known.ask(known.F.zero)]
        told += [known.ask(known.inside(rng.uniform(-1.0, 1.0, known.n))) for _ in range(2 * known.n)]
        while True:
            U, Y = np.array([p[0] for p in told]), np.array([p[1] for p in told])
            best = min(told, key=lambda p: p[2])
            mean, spread = Y.mean(axis=0), np.maximum(Y.std(axis=0), 1e-12)
            model = models.SingleTaskGP(torch.tensor(U), torch.tensor((Y - mean) / spread))
            fit.fit_gpytorch_mll(likelihoods.ExactMarginalLogLikelihood(model.likelihood, model))
            size = 10.0 ** rng.uniform(-3.0, 0.5, (400, 1))
            seen = np.array([known.inside(v) for v in best[0] + size * rng.standard_normal((400, known.n))])
            with torch.no_grad():
                draws = model.posterior(torch.tensor(seen).unsqueeze(1)).rsample(torch.Size([32])).squeeze(2).numpy()
            costs = np.array(
                [[known.both(v, mean + spread * z)[0] for v, z in zip(seen, row, strict=True)] for row in draws]
            )
            gain = np.maximum(best[2] - costs, 0.0).mean(axis=0)
            told.append(known.ask(seen[int(np.argmax(gain))]))


#: The engineers' methods by name.
ENGINEERS: dict[str, Peer] = {
    "broyden-wide": broyden_wide,
    "broyden": broyden,
    "prox-linear": prox_linear,
    "prox-linear-wide": prox_linear_wide,
    "lbfgs-chain": lbfgs,
    "botorch-composite": composite_ei,
}
