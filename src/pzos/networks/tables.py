"""Networks from tables: anything with named columns (a dict of lists, a data frame) for links, trips and nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults
from pzos.base.types import Vector
from pzos.networks.demand import Demand
from pzos.networks.latency import Latency
from pzos.networks.network import Network

Table = Mapping[str, Sequence[Any]]


def network_from_table(
    links: Any,
    trips: Any,
    nodes: Any = None,
    *,
    first_thru: int | None = None,
    closed: Collection[int] = (),
    toll_factor: float = 0.0,
    distance_factor: float = 0.0,
    name: str = "network",
) -> Network:
    """Build a network from tables with named columns (dict of lists, data frame); node names are whole numbers.

    ``links`` needs from, to, free_flow_time; capacity, b (0.15), power (4), length (0), toll (0) are optional,
    without capacity the time is constant. ``trips`` needs origin, destination, trips. ``nodes`` (optional) has
    node, x, y. Nodes named in ``closed``, and those named below ``first_thru``, may not be passed through.
    """
    faults = Faults("network_from_table")
    start, end = _column(faults, links, "links", "from"), _column(faults, links, "links", "to")
    free = _column(faults, links, "links", "free_flow_time")
    origin, destination = _column(faults, trips, "trips", "origin"), _column(faults, trips, "trips", "destination")
    amount = _column(faults, trips, "trips", "trips")
    faults.raise_if_any()
    count = start.size
    capacity = _optional(faults, links, "capacity", np.inf, count)
    b, power = _optional(faults, links, "b", 0.15, count), _optional(faults, links, "power", 4.0, count)
    length, toll = _optional(faults, links, "length", 0.0, count), _optional(faults, links, "toll", 0.0, count)
    kind = _optional(faults, links, "link_type", 1.0, count)
    faults.raise_if_any()
    everywhere = np.unique(np.concatenate([start, end, origin, destination]))
    shut = everywhere[np.isin(everywhere, list(closed)) | (everywhere < (first_thru or -np.inf))]
    zones = np.setdiff1d(np.concatenate([origin, destination]), shut)
    others = np.setdiff1d(everywhere, np.concatenate([shut, zones]))
    names = np.concatenate([shut, zones, others]).astype(np.int64)  # closed nodes come first and count as zones
    place = {int(label): index for index, label in enumerate(names)}
    latency = Latency.bpr(
        free, np.where(np.isinf(capacity), 0.0, b), np.where(np.isinf(capacity), 1.0, capacity), power
    )
    return Network.from_arrays(
        _places(place, start), _places(place, end), latency,
        Demand.from_list(_places(place, origin), _places(place, destination), amount),
        nodes=names.size, zones=shut.size + zones.size, first_thru=shut.size, length=length, toll=toll,
        toll_factor=toll_factor, distance_factor=distance_factor, node_ids=names,
        coordinates=_coordinates(nodes, place, names.size), link_type=kind.astype(np.int64), name=name,
    )  # fmt: skip


def _numbers(faults: Faults, values: Any, where: str) -> Vector:
    try:
        array = np.array(list(values), dtype=np.float64)
    except (TypeError, ValueError):
        faults.check(False, where, values, "a column of numbers", "convert it to numbers")
        return np.zeros(1)
    faults.check(not np.isnan(array).any(), where, array, "no missing values", "fill the gaps")
    return array


def _column(faults: Faults, table: Any, table_name: str, name: str) -> Vector:
    present = name in table
    if not faults.check(present, f"{table_name}[{name!r}]", "missing", "a column of this name", f"has {list(table)}"):
        return np.zeros(0)
    array = _numbers(faults, table[name], f"{table_name}[{name!r}]")
    faults.check(array.size > 0, f"{table_name}[{name!r}]", array, "at least one row", "add rows")
    return array


def _optional(faults: Faults, table: Any, name: str, default: float, count: int) -> Vector:
    if name not in table:
        return np.full(count, default)
    array = _numbers(faults, table[name], f"links[{name!r}]")
    faults.check(array.size == count, f"links[{name!r}]", array.size, f"{count} rows", "one per link")
    return array


def _places(place: dict[int, int], names: Vector) -> npt.NDArray[np.int64]:
    return np.array([place[int(name)] for name in names], dtype=np.int64)


def _coordinates(nodes: Any, place: dict[int, int], count: int) -> npt.NDArray[np.float64] | None:
    if nodes is None:
        return None
    where = np.full((count, 2), np.nan)
    for node, x, y in zip(nodes["node"], nodes["x"], nodes["y"], strict=True):
        if int(node) in place:
            where[place[int(node)]] = float(x), float(y)
    return where
