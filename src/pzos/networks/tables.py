"""Networks from tables: anything with named columns (a dict of lists, a data frame) for links, trips and nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults
from pzos.base.types import Matrix, Vector
from pzos.networks.demand import Demand, Indices
from pzos.networks.latency import Latency
from pzos.networks.network import Network

#: The columns of each table, with what stands in for a column that is left out (None: it may not be).
_LINKS = {"from": None, "to": None, "free_flow_time": None, "capacity": np.inf, "b": 0.15, "power": 4.0, "length": 0.0,
          "toll": 0.0, "link_type": 1.0}  # fmt: skip
_TRIPS = {"origin": None, "destination": None, "trips": None}
_NODES = ("from", "to", "origin", "destination")


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
    road, trip = _columns(faults, links, "links", _LINKS), _columns(faults, trips, "trips", _TRIPS)
    faults.raise_if_any()
    everywhere = np.unique(np.concatenate([road["from"], road["to"], trip["origin"], trip["destination"]]))
    shut = everywhere[np.isin(everywhere, list(closed)) | (everywhere < (first_thru or -np.inf))]
    zones = np.setdiff1d(np.concatenate([trip["origin"], trip["destination"]]), shut)
    others = np.setdiff1d(everywhere, np.concatenate([shut, zones]))
    names = np.concatenate([shut, zones, others]).astype(np.int64)  # closed nodes come first and count as zones
    place = {int(label): index for index, label in enumerate(names)}
    constant = np.isinf(road["capacity"])
    return Network.from_arrays(
        _places(place, road["from"]), _places(place, road["to"]),
        Latency.bpr(road["free_flow_time"], np.where(constant, 0.0, road["b"]),
                    np.where(constant, 1.0, road["capacity"]), road["power"]),
        Demand.from_list(_places(place, trip["origin"]), _places(place, trip["destination"]), trip["trips"]),
        nodes=names.size, zones=shut.size + zones.size, first_thru=shut.size, length=road["length"],
        toll=road["toll"], toll_factor=toll_factor, distance_factor=distance_factor, node_ids=names,
        coordinates=_coordinates(nodes, place), link_type=road["link_type"].astype(np.int64), name=name,
    )  # fmt: skip


def _columns(faults: Faults, table: Any, title: str, wanted: Mapping[str, float | None]) -> dict[str, Vector]:
    """Return the wanted columns of a table as numbers, or note what is wrong with them."""
    found: dict[str, Vector] = {}
    rows = 0
    for name, default in wanted.items():
        where = f"{title}[{name!r}]"
        if name not in table and default is not None:
            found[name] = np.full(rows, default)
        elif faults.check(name in table, where, "missing", "a column of this name", f"has {list(table)}"):
            found[name] = array = _numbers(faults, table[name], where)
            if name in _NODES:
                whole = np.isfinite(array) & (array == np.trunc(array))
                faults.check(bool(whole.all()), where, array, "whole numbers", "they name nodes")
            if default is None:
                faults.check(array.size > 0, where, array, "at least one row", "add rows")
                rows = rows or array.size
            else:
                faults.check(array.size == rows, where, array.size, f"{rows} rows", "one per link")
    return found


def _numbers(faults: Faults, values: Any, where: str) -> Vector:
    try:
        array = np.array(list(values), dtype=np.float64)
    except (TypeError, ValueError):
        faults.check(False, where, values, "a column of numbers", "convert it to numbers")
        return np.zeros(1)
    faults.check(not np.isnan(array).any(), where, array, "no missing values", "fill the gaps")
    return array


def _places(place: dict[int, int], names: Vector) -> Indices:
    return np.array([place[int(name)] for name in names], dtype=np.int64)


def _coordinates(nodes: Any, place: dict[int, int]) -> npt.NDArray[np.float64] | None:
    if nodes is None:
        return None
    where: Matrix = np.full((len(place), 2), np.nan)
    for node, x, y in zip(nodes["node"], nodes["x"], nodes["y"], strict=True):
        if int(node) in place:
            where[place[int(node)]] = float(x), float(y)
    return where


def note_what_no_file_holds(faults: Faults, network: Network, others: str, rise: str) -> None:
    """Note latencies that a file of BPR coefficients cannot hold; ``others`` and ``rise`` are the format's remedies."""
    latency = network.latency
    faults.check(latency.own is None, "network.latency", "own functions", "BPR or affine latencies", others)
    lost = (latency.base == 0) & (latency.rise > 0)
    faults.check(not lost.any(), "free-flow time", 0.0, "a positive time where time depends on flow",
                 f"{rise} times free-flow time: use a small positive time")  # fmt: skip
