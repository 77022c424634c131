"""Road networks: readers, exact tolled equilibria of several user classes, toll problems, simulators as followers.

>>> from pzos.networks import generated_city
>>> generated_city(seed=0).assign(gap=1e-8).gap <= 1e-8
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Public names by the module that holds them; nothing is imported (or compiled) until it is used.
_HOMES = {
    "assignment": ("Assignment", "PathFlow"),
    "city": ("generated_city",),
    "demand": ("Demand", "UserClass"),
    "errors": ("AboveGap", "NegativeCycle"),
    "gap": ("flow_imbalance", "independent_gap"),
    "gmns": ("read_gmns", "write_gmns"),
    "latency": ("Latency",),
    "maps": ("draw_map",),
    "network": ("Network",),
    "optimise": ("best_uniform", "optimise_tolls"),
    "tables": ("network_from_table",),
    "tntp": ("read_tntp", "read_tntp_flow", "read_tntp_nodes"),
    "tntp_write": ("write_tntp", "write_tntp_flow"),
    "tolls": ("TollFollower", "toll_problem"),
    "welfare": ("TollReport", "toll_report"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)

if TYPE_CHECKING:
    from pzos.networks.assignment import Assignment as Assignment
    from pzos.networks.assignment import PathFlow as PathFlow
    from pzos.networks.city import generated_city as generated_city
    from pzos.networks.demand import Demand as Demand
    from pzos.networks.demand import UserClass as UserClass
    from pzos.networks.errors import AboveGap as AboveGap
    from pzos.networks.errors import NegativeCycle as NegativeCycle
    from pzos.networks.gap import flow_imbalance as flow_imbalance
    from pzos.networks.gap import independent_gap as independent_gap
    from pzos.networks.gmns import read_gmns as read_gmns
    from pzos.networks.gmns import write_gmns as write_gmns
    from pzos.networks.latency import Latency as Latency
    from pzos.networks.maps import draw_map as draw_map
    from pzos.networks.network import Network as Network
    from pzos.networks.optimise import best_uniform as best_uniform
    from pzos.networks.optimise import optimise_tolls as optimise_tolls
    from pzos.networks.tables import network_from_table as network_from_table
    from pzos.networks.tntp import read_tntp as read_tntp
    from pzos.networks.tntp import read_tntp_flow as read_tntp_flow
    from pzos.networks.tntp import read_tntp_nodes as read_tntp_nodes
    from pzos.networks.tntp_write import write_tntp as write_tntp
    from pzos.networks.tntp_write import write_tntp_flow as write_tntp_flow
    from pzos.networks.tolls import TollFollower as TollFollower
    from pzos.networks.tolls import toll_problem as toll_problem
    from pzos.networks.welfare import TollReport as TollReport
    from pzos.networks.welfare import toll_report as toll_report


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'pzos.networks' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"pzos.networks.{home}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__doc__"]
