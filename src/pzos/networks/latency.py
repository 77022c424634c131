"""Travel time of the links as a function of their flow: BPR, affine, constant, or the user's own.

A link's travel time at flow v is  base + rise (v / capacity)^power,  which is BPR with base = free-flow time and
rise = b * base, affine with power 1, constant with rise 0. ``Law`` is the same for the compiled code, where powers 1
and 4 avoid the general power function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, frozen_array, frozen_indices, require
from pzos.base.errors import InvalidInput
from pzos.base.types import Matrix, Vector
from pzos.games._compile import compiled, inlined

LinkFunction = Callable[[int, float], float]


@dataclass(frozen=True, eq=False)
class OwnLatency:
    """A user's own latencies for some links: scalar functions (link, flow) -> float that numba can compile.

    ``cost`` must not decrease in the flow, ``slope`` is its derivative; ``integral`` (the Beckmann term) is found
    by quadrature if it is not given.
    """

    cost: LinkFunction
    slope: LinkFunction
    links: npt.NDArray[np.int64]
    integral: LinkFunction | None = None


@dataclass(frozen=True, eq=False)
class Latency:
    """Travel time  base + rise (flow / capacity)^power  of every link, or the user's own function on some.

    Build one with :meth:`bpr`, :meth:`affine` or :meth:`with_own`.
    """

    base: Vector
    rise: Vector
    capacity: Vector
    power: Vector
    own: OwnLatency | None = None

    @staticmethod
    def bpr(free_flow: npt.ArrayLike, b: npt.ArrayLike, capacity: npt.ArrayLike, power: npt.ArrayLike) -> Latency:
        """Return the BPR latency  free_flow (1 + b (flow / capacity)^power)."""
        base, b_array, capacities, powers = _same_length("Latency.bpr", free_flow=free_flow, b=b,
                                                         capacity=capacity, power=power)  # fmt: skip
        return _checked("Latency.bpr", base, base * b_array, capacities, powers)

    @staticmethod
    def affine(intercept: npt.ArrayLike, slope: npt.ArrayLike) -> Latency:
        """Return the affine latency  intercept + slope * flow."""
        base, rise = _same_length("Latency.affine", intercept=intercept, slope=slope)
        return _checked("Latency.affine", base, rise, np.ones(base.size), np.ones(base.size))

    def with_own(
        self,
        cost: LinkFunction,
        slope: LinkFunction,
        links: npt.ArrayLike | None = None,
        integral: LinkFunction | None = None,
    ) -> Latency:
        """Return the same latencies with the user's own functions on ``links`` (all links by default)."""
        faults = Faults("Latency.with_own")
        given = frozen_indices(faults, "links", np.arange(self.base.size) if links is None else links)
        if given is None:
            raise faults.error()
        chosen = np.unique(given)
        ok = chosen.size > 0 and int(chosen[0]) >= 0 and int(chosen[-1]) < self.base.size
        faults.check(ok, "links", chosen, f"link numbers from 0 to {self.base.size - 1}", "count links from 0")
        for name, function in (("cost", cost), ("slope", slope)):
            faults.check(callable(function), name, function, "a function (link, flow) -> float", "pass a function")
        faults.raise_if_any()
        return replace(self, own=OwnLatency(cost, slope, chosen, integral))

    def __len__(self) -> int:
        return int(self.base.size)

    def time(self, flow: Vector) -> Vector:
        """Return the travel time of every link at ``flow``."""
        times: Vector = self.base + self.rise * _power(flow / self.capacity, self.power)
        return self._overwritten(times, flow, "cost")

    def slope(self, flow: Vector) -> Vector:
        """Return the derivative of the travel time of every link at ``flow``."""
        lower = _power(flow / self.capacity, self.power - 1.0)
        slopes: Vector = np.where(self.rise > 0.0, self.power * self.rise / self.capacity * lower, 0.0)
        return self._overwritten(slopes, flow, "slope")

    def integral(self, flow: Vector) -> Vector:
        """Return the integral of the travel time from 0 to ``flow`` on every link (the Beckmann terms)."""
        share = _power(flow / self.capacity, self.power) / (self.power + 1.0)
        values: Vector = flow * (self.base + self.rise * share)
        return self._overwritten(values, flow, "integral")

    def _overwritten(self, values: Vector, flow: Vector, name: str) -> Vector:
        if self.own is not None:
            function = getattr(self.own, name) or partial(_quadrature, self.own.cost)
            for link in self.own.links:
                values[link] = function(int(link), float(flow[link]))
        return values

    @property
    def b(self) -> Vector:
        """Return the rise as a multiple of the free-flow time, as files write it (0 where that time is 0)."""
        return np.divide(self.rise, self.base, out=np.zeros(self.base.size), where=self.base > 0)

    def marginal(self) -> Latency:
        """Return the marginal social cost  t(v) + v t'(v): its equilibrium is the system optimum."""
        if self.own is not None:
            raise InvalidInput(
                "Latency.marginal: own latencies: expected BPR or affine latencies; "
                "for your own functions t give Latency.with_own(t + v t', its derivative)"
            )
        return replace(self, rise=self.rise * (1.0 + self.power))

    def check_range(self, most: float) -> None:
        """Say which travel time overflows at a flow of ``most``, the whole demand: nothing could be computed there."""
        with np.errstate(over="ignore", invalid="ignore"):
            flow = np.full(self.base.size, most)
            good = np.isfinite(self.time(flow) * most) & np.isfinite(self.slope(flow) * most)
        if not good.all():
            link = int(np.argmin(good))
            require(False, "Network", f"travel time of link {link} under the whole demand of {most:g}",
                    f"an overflow (capacity {self.capacity[link]:g}, power {self.power[link]:g})", "a finite number",
                    "check the units of capacity and demand, and the power")  # fmt: skip

    def check_own(self, most: float) -> None:
        """Try the user's own latencies at flows up to ``most``: finite, not falling, slope not negative."""
        if self.own is None:
            return
        before = np.full(self.own.links.size, -np.inf)
        for share in (0.0, 0.01, 0.1, 0.5, 1.0):
            flow = np.full(self.base.size, share * most)
            time, slope = self.time(flow)[self.own.links], self.slope(flow)[self.own.links]
            good = np.isfinite(time) & np.isfinite(slope) & (slope >= 0) & (time >= before)
            if not good.all():
                which = int(np.argmin(good))
                require(False, "Latency.with_own", f"latency of link {self.own.links[which]} at flow {share * most:g}",
                        (float(time[which]), float(slope[which])), "finite, increasing times and slopes >= 0",
                        "check cost and slope for flows from 0 to the whole demand")  # fmt: skip
            before = time * (1.0 - 1e-12)

    def law(self, order: npt.NDArray[np.int64]) -> Law:
        """Return the latencies as the compiled solver reads them, with the links in ``order``."""
        kind = np.select(
            [self.rise == 0.0, self.power == 0.0, self.power == 1.0, self.power == 4.0],
            [CONSTANT, CONSTANT, AFFINE, QUARTIC],
            POWER,
        ).astype(np.int64)
        base = np.where(self.power == 0.0, self.base + self.rise, self.base)
        own = self.own or OwnLatency(_nothing, _nothing, np.empty(0, np.int64))
        kind[own.links] = OWN + own.links
        table = np.stack([base, self.rise, 1.0 / self.capacity, self.power], axis=1)
        return Law(
            np.ascontiguousarray(kind[order]),
            np.ascontiguousarray(table[order]),
            _compiled_function(own.cost),
            _compiled_function(own.slope),
        )


def _nothing(link: int, flow: float) -> float:
    return 0.0


@lru_cache(maxsize=64)
def _compiled_function(function: LinkFunction) -> Any:
    signature = numba.float64(numba.int64, numba.float64)
    try:
        return numba.cfunc(signature)(getattr(function, "py_func", function))
    except numba.core.errors.NumbaError as error:
        raise InvalidInput(
            f"Latency.with_own: function {getattr(function, '__name__', function)!r} cannot be compiled: expected "
            f"plain arithmetic on (link, flow) that numba understands; numba says: {str(error).splitlines()[0]}"
        ) from error


def _power(base: Vector, exponent: Vector) -> Vector:
    """Return base ** exponent for base >= 0, with 0 ** negative taken as 0 (the rise there is irrelevant)."""
    result: Vector = np.where(base > 0.0, np.maximum(base, 1e-300) ** exponent, np.where(exponent == 0.0, 1.0, 0.0))
    return result


def _quadrature(cost: LinkFunction, link: int, flow: float, panels: int = 16) -> float:
    """Integrate by Gauss-Legendre rules of order 8 on equal panels: about 1e-14 for smooth latencies."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    width = flow / panels
    total = 0.0
    for panel in range(panels):
        for node, weight in zip(nodes, weights, strict=True):
            total += 0.5 * width * float(weight) * float(cost(link, width * (panel + 0.5 + 0.5 * float(node))))
    return total


def _same_length(where: str, **arrays: npt.ArrayLike) -> list[Vector]:
    faults = Faults(where)
    given = {name: frozen_array(faults, name, array) for name, array in arrays.items()}
    faults.raise_if_any()
    made = {name: np.atleast_1d(array) for name, array in given.items() if array is not None}
    size = max(array.size for array in made.values())
    for name, array in made.items():
        fits = array.ndim == 1 and array.size in (1, size)
        faults.check(fits, name, array, f"one number, or one per link ({size})", "give arrays of equal length")
    faults.raise_if_any()
    return [np.array(np.broadcast_to(array, (size,))) for array in made.values()]


def _checked(where: str, base: Vector, rise: Vector, capacity: Vector, power: Vector) -> Latency:
    faults = Faults(where)
    rules = (
        ("free-flow time", base, np.isfinite(base) & (base >= 0), "a finite number >= 0"),
        ("rise (b times free-flow time, or slope)", rise, np.isfinite(rise) & (rise >= 0), "a finite number >= 0"),
        ("power", power, np.isfinite(power) & (power >= 0), "a finite number >= 0"),
        ("capacity", capacity, (capacity > 0) | (rise == 0), "a number > 0 where time depends on flow"),
    )
    for name, array, good, expected in rules:
        if not good.all():
            link = int(np.argmin(good))
            faults.check(False, f"{name} of link {link}", float(array[link]), expected, "times must not fall with flow")
    faults.raise_if_any()
    return Latency(base, rise, np.where(capacity > 0, capacity, 1.0), power)


# ---- the same for the compiled code ----------------------------------------------------------------------------------


CONSTANT, AFFINE, QUARTIC, POWER, OWN = 0, 1, 2, 3, 4
"""The kinds of link in ``Law.kind``; OWN + i is a link with the user's own latency, number i."""

BASE, RISE, SCALE, EXPONENT = 0, 1, 2, 3
"""The columns of ``Law.coefficient``."""

FLOW, TIME, SLOPE = 0, 1, 2
"""The columns of the state of the links: flow, travel time, derivative of travel time."""

_SMALLEST = 1e-12


class Law(NamedTuple):
    """The latencies of all links; ``cost`` and ``slope`` are compiled functions (number, flow) -> float."""

    kind: npt.NDArray[np.int64]
    coefficient: Matrix
    cost: Any
    slope: Any


@inlined
def latency(
    link: int, flow: float, kinds: npt.NDArray[np.int64], coefficient: Matrix, cost: Any, slope: Any
) -> tuple[float, float]:
    """Return travel time and its derivative on one link."""
    kind = kinds[link]
    time, rate = coefficient[link, 0], 0.0
    if kind != CONSTANT:
        rise, scale = coefficient[link, 1], coefficient[link, 2]
        x = flow * scale
        if kind == QUARTIC:
            cube = x * x * x
            time += rise * cube * x
            rate = 4.0 * rise * scale * cube
        elif kind == AFFINE:
            time += rise * x
            rate = rise * scale
        elif kind >= OWN:
            time = cost(kind - OWN, flow)
            rate = slope(kind - OWN, flow)
        else:
            power = coefficient[link, 3]
            if power < 1.0:  # the slope is infinite at zero flow, and an infinite slope would stop every step
                x = max(x, _SMALLEST)
            lower = x ** (power - 1.0)
            time += rise * lower * x
            rate = power * rise * scale * lower
    return time, rate


@compiled
def refresh(law: Law, state: Matrix) -> None:
    """Write travel time and slope of every link at its flow into ``state``."""
    kind, coefficient, cost, slope = law
    for link in range(kind.size):
        time, rate = latency(link, state[link, FLOW], kind, coefficient, cost, slope)
        state[link, TIME] = time
        state[link, SLOPE] = rate
