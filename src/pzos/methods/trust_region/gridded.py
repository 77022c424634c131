"""Queries on a grid: the model's minimiser rounded and searched around, never a point that was told.

    round the minimiser of the model; as long as answers are few, that is the query
    later: while a step of one entry, or of two, lowers f on the model, take the best one
    told already: the best neighbour, on the model, of those that were not

Smooth models are good guides even where the decision is not: the search costs no query. The method ends where the
model promises nothing, every neighbour was told and many queries, near and far, have found nothing better; or where
every point of the grid was told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations

import numpy as np

from pzos.base.keys import Role
from pzos.base.types import Vector
from pzos.methods.solver import Task
from pzos.methods.trust_region.descent import Objective
from pzos.methods.trust_region.state import RegionState
from pzos.methods.trust_region.subproblem import Region, bounds_of, minimise
from pzos.problem.grid import Grid
from pzos.problem.intersections import Intersection
from pzos.problem.sets import Box

#: Moves on the model, how many entries are tried for each, and how many in pairs.
_MOVES, _ENTRIES, _PAIRED = 50, 60, 10
#: Up to so many answers per decision the model is no guide between neighbours, and rounding is as good as a search.
_FEW_ANSWERS = 1.5
#: The least trust radius, in steps of the grid: within one the search has nowhere to go.
_LEAST_STEPS = 2.0
#: Random steps tried, ever longer, where all neighbours of a point were told; a grid of so many points is searched.
_TRIES, _ALL_POINTS = 120, 4096


def grid_of(task: Task, resolution: float | None) -> Grid | None:
    """Return the grid of the problem, or else that of the solver's ``resolution``."""
    if task.known.grid is not None or resolution is None:
        return task.known.grid
    return Grid(np.full(task.known.dimension, resolution))


def smallest_radius(grid: Grid | None, sizes: Vector) -> float:
    """Return the radius within which every entry has room for two steps; 0 where some are free."""
    return 0.0 if grid is None or not grid.full else _LEAST_STEPS * float((grid.steps / sizes).max())


def trial_on_grid(
    task: Task, state: RegionState, grid: Grid, objective: Objective, region: Region, x: Vector, iterations: int
) -> Vector:
    """Return the minimiser x of the model as a point of the grid that was not told."""
    start = grid.nearest(x, region.domain)
    start = state.x if start is None else start
    if grid.full and state.past.count <= _FEW_ANSWERS * x.size + 1 and not state.knows(start):
        return start
    found = _searched(objective, grid, region, start)
    if not grid.full:
        found = _free_entries(objective, grid, region, found, iterations)
    if state.knows(found):
        found = _best_untold(task, state, grid, objective, region, found)
    return found


def _searched(objective: Objective, grid: Grid, region: Region, point: Vector) -> Vector:
    """Take the best step on the model until none lowers it: of one entry, and where none does, of two at once."""
    reach = np.maximum(region.radius * region.sizes, grid.steps) * (1.0 + 1e-9)
    value, slope = objective(point)

    def lower(moves: Iterable[Vector]) -> tuple[Vector, float, Vector] | None:
        best, lowest = None, value
        for moved in moves:
            if (np.abs(moved - region.centre) <= reach).all() and region.domain.contains(moved, 1e-9):
                there, gradient = objective(moved)
                if there < lowest:
                    best, lowest = (moved, there, gradient), there
        return best

    for _ in range(_MOVES):
        found = lower(_single(grid, point, slope)) or lower(_double(grid, point, slope))
        if found is None:
            break
        point, value, slope = found
    return point


def _single(grid: Grid, point: Vector, slope: Vector) -> Iterator[Vector]:
    """Yield the steps of one entry down the slope, the most promising entries first."""
    promises = np.abs(slope) * grid.steps
    for entry in np.argsort(-promises)[:_ENTRIES]:
        if promises[entry] > 0.0:
            yield _stepped(grid, point, entry, -np.sign(slope[entry]))


def _double(grid: Grid, point: Vector, slope: Vector) -> Iterator[Vector]:
    """Yield the steps of two entries, of those with the largest slopes: one down the slope, the other either way."""
    entries = np.argsort(-np.abs(slope) * grid.steps)[:_PAIRED]
    for one, other in permutations(entries[grid.steps[entries] > 0.0], 2):
        down = _stepped(grid, point, one, -np.sign(slope[one]))
        yield _stepped(grid, down, other, 1.0)
        yield _stepped(grid, down, other, -1.0)


def _stepped(grid: Grid, point: Vector, entry: int, sign: float) -> Vector:
    moved = point.copy()
    moved[entry] = grid.steps[entry] * (np.round(point[entry] / grid.steps[entry]) + sign)
    return moved


def _free_entries(objective: Objective, grid: Grid, region: Region, point: Vector, iterations: int) -> Vector:
    """Let the entries that are on no grid follow: the minimiser of the model with the others as they are."""
    held = grid.steps > 0.0
    low, high = np.where(held, point, -np.inf), np.where(held, point, np.inf)
    part = Intersection([region.domain, Box(low, high)])
    found = minimise(objective, Region(point, region.radius, region.sizes, part), iterations).x
    followed: Vector = np.where(held, point, found)
    return followed if region.domain.contains(followed, 1e-9) else point


def _best_untold(
    task: Task, state: RegionState, grid: Grid, objective: Objective, region: Region, point: Vector
) -> Vector:
    around = [x for x in grid.neighbours(point, region.domain) if not state.knows(x)]
    around = around or [x for x in grid.neighbours(state.x, region.domain) if not state.knows(x)]
    if not around:
        return untold_near(task, state, grid, point)
    return around[int(np.argmin([objective(x)[0] for x in around]))]


def untold_near(task: Task, state: RegionState, grid: Grid, x: Vector, others: Iterable[Vector] = ()) -> Vector:
    """Return a point of the grid near x that was not told: random steps lead away.

    If none is found, the nearest one, told as it is, or x where the grid has none in the set.
    """
    domain, draw = task.known.domain, task.keys.generator(Role.PROBE, state.step, 2)
    taken = {other.tobytes() for other in others}
    target = x
    for tries in range(_TRIES):
        point = grid.nearest(target, domain)
        if point is not None and not state.knows(point) and point.tobytes() not in taken:
            return point
        reach = max(1 + tries // 10, 1 << max(tries // 10 - 3, 0))  # in the end far beyond what is crowded
        target = x + grid.steps * draw.integers(-reach, reach + 1, x.size)
    left = [point for point in _untold(task, state, grid) if point.tobytes() not in taken]
    if left:
        return min(left, key=lambda point: float(np.abs(point - x).sum()))
    nearest = grid.nearest(x, domain)
    return x if nearest is None else nearest


def _untold(task: Task, state: RegionState, grid: Grid) -> list[Vector]:
    """Return the points of a small grid in a box that were not told; none of a larger one, or of one with free entries.

    A large grid is never told as a whole, so that nothing is lost by not looking.
    """
    bounds = bounds_of(task.known.domain, state.x.size)
    if bounds is None or not grid.full or not np.isfinite(bounds[1] - bounds[0]).all():
        return []
    low, high = (grid.rounded(bound, *bounds) for bound in bounds)
    counts = np.round((high - low) / grid.steps).astype(np.int64) + 1
    if float(np.prod(counts.astype(np.float64))) > _ALL_POINTS:
        return []
    points = low + grid.steps * np.indices(tuple(counts.tolist())).reshape(counts.size, -1).T
    return [point for point in grid.rounded(points, *bounds) if not state.knows(point)]


def surrounded(task: Task, state: RegionState, grid: Grid) -> bool:
    """Tell whether every neighbour of the centre was told, on a grid with no free entry."""
    return (
        grid.full
        and state.history is not None
        and all(state.knows(x) for x in grid.neighbours(state.x, task.known.domain))
    )


def exhausted(task: Task, state: RegionState, grid: Grid) -> bool:
    """Tell whether nothing is left to ask: no point is found that was not told."""
    return state.knows(untold_near(task, state, grid, state.x))
