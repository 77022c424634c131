"""The map of a toll problem: any follower that holds a network with coordinates is drawn as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pzos.base.types import Vector
from pzos.report.story import RoadMap

if TYPE_CHECKING:
    from pzos.problem.problem import Problem


def road_map(problem: Problem | None, before: Vector, after: Vector) -> RoadMap | None:
    """Return the map of both equilibria, or None where there is no network to draw.

    The two assignments are computed by the network's own model, not asked of the study's follower.
    """
    travellers = _travellers(problem)
    if travellers is None or before.size != after.size:
        return None
    network = travellers.network
    where = np.asarray(network.coordinates, dtype=np.float64)
    toll = np.zeros(network.links)
    toll[travellers.links] = after
    return RoadMap(
        where[network.tail],
        where[network.head],
        np.asarray(travellers.assignment(before).flow, dtype=np.float64),
        np.asarray(travellers.assignment(after).flow, dtype=np.float64),
        toll,
    )


def toll_labels(problem: Problem | None) -> tuple[str, ...]:
    """Return the tolled links by the names of their ends."""
    travellers = _travellers(problem)
    if travellers is None:
        return ()
    network = travellers.network
    ids = network.node_ids
    return tuple(f"{ids[network.tail[link]]} → {ids[network.head[link]]}" for link in travellers.links)


def _travellers(problem: Problem | None) -> Any:
    """Return the toll follower of a problem, also from inside a wrapper (plain function, cache), or None."""
    inner: Any = None if problem is None else problem.follower
    for _ in range(4):
        if hasattr(inner, "network") and hasattr(inner, "assignment") and inner.network.coordinates is not None:
            return inner
        inner = getattr(inner, "function", None) or getattr(inner, "inner", None)
    return None
