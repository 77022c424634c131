"""What a routing game is made of: checks of its data, reachability, and random instances."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults
from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Vector

Integers = npt.NDArray[np.int64]
Edges = tuple[Integers, Integers, Vector, Vector]
Travellers = tuple[Integers, Integers, Vector, Vector]


def checked_edges(faults: Faults, tail: Any, head: Any, slope: Any, intercept: Any) -> Edges:
    """Return read-only copies of the edge data; every fault is noted (then the arrays are of no use)."""
    tails, heads = _vertices(faults, "tail", tail), _vertices(faults, "head", head)
    slopes, intercepts = _numbers(faults, "slope", slope), _numbers(faults, "intercept", intercept)
    _same_length(faults, "edge", {"tail": tails, "head": heads, "slope": slopes, "intercept": intercepts})
    _entries(faults, "slope", slopes, slopes > 0.0, "a slope > 0", "the equilibrium is unique only if latency rises")
    return tails, heads, slopes, intercepts


def checked_travellers(
    faults: Faults, origin: Any, destination: Any, demand: Any, sensitivity: Any, edges: Edges
) -> Travellers:
    """Return read-only copies of the class data; every fault is noted, unreachable destinations by class."""
    starts, ends = _vertices(faults, "origin", origin), _vertices(faults, "destination", destination)
    demands, sensitivities = _numbers(faults, "demand", demand), _numbers(faults, "sensitivity", sensitivity)
    given = {"origin": starts, "destination": ends, "demand": demands, "sensitivity": sensitivities}
    fits = _same_length(faults, "class", given)
    _entries(faults, "demand", demands, demands >= 0.0, "a demand >= 0", "travellers cannot be negative")
    _entries(faults, "sensitivity", sensitivities, sensitivities > 0.0, "a sensitivity > 0", "tolls are divided by it")
    if fits and not faults.messages:
        _check_reachable(faults, edges[0], edges[1], starts, ends)
    return starts, ends, demands, sensitivities


def _array(faults: Faults, name: str, value: Any, what: str) -> Vector:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        faults.check(False, name, value, f"a vector of {what}", "give one number per entry")
        return np.empty(0)
    if not faults.check(array.ndim == 1 and array.size > 0, name, array, f"a vector of {what}", "give at least one"):
        return np.empty(0)
    return array


def _numbers(faults: Faults, name: str, value: Any) -> Vector:
    array = _array(faults, name, value, "numbers")
    _entries(faults, name, array, np.isfinite(array), "a finite number", "correct it")
    array.flags.writeable = False
    return array


def _vertices(faults: Faults, name: str, value: Any) -> Integers:
    array = _array(faults, name, value, "vertices")
    whole = np.isfinite(array) & (array >= 0.0) & (array < 2.0**31) & (array == np.floor(array))
    _entries(faults, name, array, whole, "a vertex, a whole number >= 0", "number vertices 0, 1, ...")
    vertices = np.where(whole, array, 0.0).astype(np.int64)
    vertices.flags.writeable = False
    return vertices


def _entries(faults: Faults, name: str, array: Vector, good: npt.NDArray[np.bool_], expected: str, remedy: str) -> None:
    bad = np.flatnonzero(~good & ~np.isnan(array) if expected != "a finite number" else ~good)
    if bad.size:
        others = f" ({bad.size} entries are wrong)" if bad.size > 1 else ""
        faults.check(False, f"{name}[{bad[0]}]", float(array[bad[0]]), expected, remedy + others)


def _same_length(faults: Faults, unit: str, given: dict[str, npt.NDArray[Any]]) -> bool:
    sizes = {name: array.size for name, array in given.items() if array.size}
    listing = ", ".join(f"{name} {size}" for name, size in sizes.items())
    same = len(set(sizes.values())) <= 1
    if not same:
        faults.add(f"lengths differ: {listing}: expected one entry per {unit} in each; make them equally long")
    return same and len(sizes) == len(given)


def _check_reachable(faults: Faults, tail: Integers, head: Integers, starts: Integers, ends: Integers) -> None:
    size = 1 + max(int(array.max()) for array in (tail, head, starts, ends))
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        if not faults.check(start != end, f"destination[{i}]", end, "another vertex than the origin",
                            "drop the class, it does not travel"):  # fmt: skip
            continue
        reached = bool(reachable_from(size, tail, head, start)[end])
        faults.check(reached, f"destination[{i}]", end, f"a vertex that a path from origin[{i}] = {start} reaches",
                     "add edges or drop the class")  # fmt: skip


def reachable_from(vertices: int, tail: Integers, head: Integers, start: int) -> npt.NDArray[np.bool_]:
    """Tell for every vertex whether a directed path leads there from ``start``."""
    reached = np.zeros(vertices, dtype=np.bool_)
    reached[start] = True
    while True:
        fresh = head[reached[tail] & ~reached[head]]
        if fresh.size == 0:
            return reached
        reached[fresh] = True


def checked_tolls(where: str, tolls: Any, edges: int) -> tuple[Matrix, bool]:
    """Return tolls as a stack of rows, and whether they were one vector; refuses other shapes and NaN."""
    faults = Faults(where)
    try:
        array = np.asarray(tolls, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{where}: tolls: expected numbers, one per edge; got {type(tolls).__name__}") from None
    rows = np.atleast_2d(array)
    shaped = faults.check(array.ndim in (1, 2) and rows.shape[1] == edges, "tolls", array,
                          f"{edges} numbers, one per edge, or a stack of such rows, not shape {array.shape}",
                          "give every edge a toll, 0 where there is none")  # fmt: skip
    if shaped and not np.isfinite(array).all():
        entry = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        faults.check(False, f"tolls[{', '.join(map(str, entry))}]", float(array[entry]), "a finite number",
                     "correct it; infinite tolls cannot close an edge, leave the edge out instead")  # fmt: skip
    faults.raise_if_any()
    return rows, array.ndim == 1


def draw_instance(seed: int, vertices: int | None, edges: int | None, classes: int | None) -> tuple[Any, ...]:
    """Draw the data of :meth:`RoutingGame.random`."""
    draw = Keys(seed).generator(Role.INSTANCE)
    drawn = int(draw.integers(6, 26)), draw.random(), int(draw.integers(2, 6))
    faults = Faults("RoutingGame.random")
    n = _chosen(faults, "vertices", drawn[0] if vertices is None else vertices, 2, 10**6)
    low, high = min(2 * n, n * (n - 1)), min(max(5 * n - 6, 2 * n), n * (n - 1))
    m = _chosen(faults, "edges", low + int(drawn[1] * (high - low + 1)) if edges is None else edges, n - 1, n * (n - 1))
    k = _chosen(faults, "classes", drawn[2] if classes is None else classes, 1, 10**6)
    faults.raise_if_any()
    tail, head = _draw_graph(draw, n, m)
    sources = np.unique(tail)
    joined = [
        (int(u), int(v)) for u in sources for v in np.flatnonzero(reachable_from(n, tail, head, int(u))) if u != v
    ]
    pairs = np.array([joined[i] for i in draw.integers(0, len(joined), k)])
    return (
        tail,
        head,
        draw.uniform(1.0, 5.0, m),
        draw.uniform(1.0, 10.0, m),
        pairs[:, 0],
        pairs[:, 1],
        draw.integers(3, 13, k).astype(np.float64),
        draw.uniform(0.1, 2.0, k),
    )


def _chosen(faults: Faults, name: str, value: Any, least: int, most: int) -> int:
    ok = isinstance(value, int | np.integer) and least <= int(value) <= most
    faults.check(ok, name, value, f"a whole number from {least} to {most}", "or leave it out")
    return int(value) if ok else least


def _draw_graph(draw: np.random.Generator, vertices: int, edges: int) -> tuple[Integers, Integers]:
    """Join all vertices by a random recursive tree with random directions, then add uniform further edges."""
    names = draw.permutation(vertices)
    joined: dict[tuple[int, int], None] = {}
    for k in range(1, vertices):
        ends = int(names[k]), int(names[draw.integers(0, k)])
        joined[ends if draw.random() < 0.5 else ends[::-1]] = None
    while len(joined) < edges:
        tail, head = (int(v) for v in draw.integers(0, vertices, 2))
        if tail != head:
            joined.setdefault((tail, head))
    both = np.array(list(joined), dtype=np.int64)
    order = draw.permutation(edges)
    return both[order, 0], both[order, 1]
