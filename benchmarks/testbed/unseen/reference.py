"""The best value known of an instance: a search that may ask the true followers as often as it likes, kept in a file.

Smooth instances: L-BFGS-B with central differences from many starts. Kinks: then a BFGS method with weak Wolfe steps,
which passes kinks (Lewis and Overton). Jumps: CMA-ES at length, then ever smaller random steps. What any run ever found
counts too (see the table), so that a reference that is beaten is seen and mended.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from testbed.unseen.instance import Instance, Vector

#: Raise this when families change: old references are then not read.
VERSION = 1
_STARTS = {"smooth": 10, "kinked": 6, "jumps": 12}


class Landscape:
    """F in units in which its scale is 1, extended beyond the domain by a slope; values and gradients in batches."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        draft = instance.draft
        self.unit = np.broadcast_to(np.asarray(draft.unit, dtype=np.float64), draft.x0.shape)
        self.start = draft.x0 / self.unit
        self.best, self.best_u = np.inf, self.start
        self._slope = 0.0
        first = self.values(self.start[None])[0]
        near = self.values(self.start + 0.1 * np.random.default_rng(0).standard_normal((20, self.start.size)))
        self._slope = 10.0 * float(np.nanmax(np.abs(near - first))) / (0.1 * np.sqrt(self.start.size))

    def values(self, U: Vector) -> Vector:
        """Return F at each row; what lies in the domain counts as found."""
        draft, domain = self.instance.draft, self.instance.domain
        raw = U * self.unit
        X = np.array([domain.project(x) for x in raw])
        Y = np.atleast_2d(draft.respond(X)) if draft.rows else np.array([draft.respond(x) for x in X])
        F = np.array([draft.cost.value(x, y) for x, y in zip(X, Y, strict=True)])
        F = np.where(np.isfinite(F), F, np.inf)
        k = int(np.argmin(F))
        if F[k] < self.best:
            self.best, self.best_u = float(F[k]), X[k] / self.unit
        return F + self._slope * np.linalg.norm((raw - X) / self.unit, axis=1)

    def value(self, u: Vector) -> float:
        """Return F at one point."""
        return float(self.values(np.asarray(u)[None])[0])

    def gradient(self, u: Vector, h: float = 1e-6) -> tuple[float, Vector]:
        """Return F and its gradient by central differences."""
        steps = h * np.eye(u.size)
        F = self.values(np.vstack([u[None], u + steps, u - steps]))
        n = u.size
        return float(F[0]), (F[1 : n + 1] - F[n + 1 :]) / (2.0 * h)

    def draw(self, rng: np.random.Generator) -> Vector:
        """Return a point to start from: in the box where there is one, else around x0."""
        bounds = self.instance.bounds
        if bounds is not None and np.isfinite(bounds).all():
            x = bounds[0] + rng.random(self.start.size) * (bounds[1] - bounds[0])
            return self.instance.domain.project(x) / self.unit
        around = self.start + rng.choice([0.3, 1.0, 3.0]) * rng.standard_normal(self.start.size)
        return self.instance.domain.project(around * self.unit) / self.unit


def best_value(instance: Instance, effort: float = 1.0) -> float:
    """Return the lowest F found by a long search; ``effort`` below 1 is for tests."""
    land = Landscape(instance)
    rng = np.random.default_rng([zlib.crc32(instance.family.encode()), instance.seed, 7])
    search = instance.draft.search
    count = max(2, int(effort * _STARTS[search]))
    if search != "jumps":
        for k in range(count):
            _descend(land, land.start if k == 0 else land.draw(rng))
            if land.start.size > 50 and k >= 2:
                break
    if search == "jumps" or (search == "kinked" and land.start.size <= 30):
        for k in range(count):
            _evolve(land, land.draw(rng), 0.5, int(effort * 2500), k)
        for k in range(2):
            _evolve(land, land.best_u, 0.1 / (1 + 4 * k), int(effort * 4000), count + k)
    if not instance.boxed:
        for k in range(count):
            _project(land, land.best_u if k == 0 else land.draw(rng), int(effort * 1000))
    if search == "kinked":
        for k in range(max(1, count // 3)):
            spread = 0.1 * k * rng.standard_normal(land.start.size)
            _pass_kinks(land.gradient, land.best_u + spread, int(effort * 400))
    _shake(land, rng, int(effort * (4000 if search != "smooth" else 400)))
    return land.best


def _descend(land: Landscape, start: Vector) -> None:
    """Run L-BFGS-B, again where it ended as long as that helps."""
    from scipy.optimize import Bounds, minimize

    bounds = land.instance.bounds if land.instance.boxed else None
    limits = None if bounds is None else Bounds(bounds[0] / land.unit, bounds[1] / land.unit)
    u, value = start, np.inf
    for _ in range(3):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = minimize(
                land.gradient, u, jac=True, method="L-BFGS-B", bounds=limits,
                options={"maxiter": 300, "maxfun": 400, "ftol": 1e-15, "gtol": 1e-11, "maxcor": 20},
            )  # fmt: skip
        u = found.x
        if not found.fun < value - 1e-12 * abs(value):
            break
        value = float(found.fun)


def _project(land: Landscape, u: Vector, iterations: int) -> None:
    """Spectral projected gradient, for sets that are no boxes; responses are smooth there, also beyond the set."""
    instance, unit = land.instance, land.unit

    def inside(v: Vector) -> Vector:
        return np.asarray(instance.domain.project(v * unit)) / unit

    def both(v: Vector) -> tuple[float, Vector]:
        h, x = 1e-6, v * unit
        steps = h * np.eye(v.size)
        Y = instance.draft.respond(np.vstack([v + steps, v - steps]) * unit)
        grad_x, grad_y = instance.draft.cost.gradients(x, instance.draft.respond(x))
        return land.value(v), unit * grad_x + (Y[: v.size] - Y[v.size :]) @ grad_y / (2.0 * h)

    u = inside(u)
    value, slope = both(u)
    recent, length = [value], 1.0 / max(float(np.linalg.norm(slope)), 1e-12)
    for _ in range(max(iterations, 200)):
        way = inside(u - length * slope) - u
        fall, t = float(slope @ way), 1.0
        if np.abs(way).max() < 1e-13:
            return
        new_value, new_slope = both(u + way)
        while new_value > max(recent[-8:]) + 1e-4 * t * fall and t > 1e-8:
            t *= 0.5
            new_value, new_slope = both(u + t * way)
        s, r = t * way, new_slope - slope
        u, value, slope = u + s, new_value, new_slope
        recent.append(value)
        length = float(np.clip(s @ s / max(float(s @ r), 1e-300), 1e-6, 1e6))


def _evolve(land: Landscape, start: Vector, spread: float, evaluations: int, seed: int) -> None:
    """Run CMA-ES; without the package the other searches must do."""
    with contextlib.suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cma

        options = {"seed": seed + 1, "verbose": -9, "tolfun": 1e-13, "tolx": 1e-10, "tolflatfitness": 40}
        strategy = cma.CMAEvolutionStrategy(start, spread, options)
        while not strategy.stop() and strategy.countevals < evaluations:
            points = strategy.ask()
            strategy.tell(points, list(land.values(np.array(points))))


def _pass_kinks(gradient: Callable[[Vector], tuple[float, Vector]], u: Vector, iterations: int) -> None:
    """BFGS with steps that satisfy the weak Wolfe conditions by bisection."""
    value, slope = gradient(u)
    H = np.eye(u.size)
    for _ in range(iterations):
        way = -H @ slope
        fall = float(slope @ way)
        if not np.isfinite(fall) or fall > -1e-18 * max(1.0, abs(value)):
            return
        low, high, step = 0.0, np.inf, 1.0
        for _ in range(40):
            new_value, new_slope = gradient(u + step * way)
            if not new_value <= value + 1e-4 * step * fall:
                high = step
            elif float(new_slope @ way) < 0.9 * fall:
                low = step
            else:
                break
            step = 2.0 * low if high == np.inf else 0.5 * (low + high)
        s, r = step * way, new_slope - slope
        if not new_value < value or not float(s @ r) > 0.0:
            return
        u, value, slope = u + s, new_value, new_slope
        rho = 1.0 / float(s @ r)
        V = np.eye(u.size) - rho * np.outer(s, r)
        H = V @ H @ V.T + rho * np.outer(s, s)


def _shake(land: Landscape, rng: np.random.Generator, count: int) -> None:
    """Try random steps of every size around the best point, in whole and in single entries."""
    for _ in range(max(1, count // 40)):
        n = land.start.size
        size = 10.0 ** rng.uniform(-6.0, 0.0, (40, 1))
        steps = size * rng.standard_normal((40, n))
        steps[::2] *= rng.random((20, n)) < 2.0 / n
        land.values(land.best_u + steps)


class Best:
    """The references in one JSON file, found when first needed; written whole, so that a killed run leaves no half."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, float] = {}
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            self.known = stored["best"] if stored["version"] == VERSION else {}

    def of(self, instance: Instance) -> float:
        """Return the best value of an instance."""
        key = f"{instance.family}/{instance.seed}"
        if key not in self.known:
            self.known[key] = best_value(instance)
            self.write()
        return self.known[key]

    def lower(self, family: str, seed: int, value: float) -> None:
        """Keep a lower value that some run has found."""
        self.known[f"{family}/{seed}"] = value

    def write(self) -> None:
        """Write the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps({"version": VERSION, "best": self.known}, indent=1), encoding="utf-8")
        beside.replace(self.path)
