"""Road networks: readers, exact tolled equilibria of several user classes, toll problems, simulators as followers.

>>> from pzos.networks import generated_city
>>> generated_city(seed=0).assign(gap=1e-8).gap <= 1e-8
True
"""

from __future__ import annotations

from pzos.networks.demand import Demand, UserClass
from pzos.networks.errors import AboveGap, NegativeCycle
from pzos.networks.latency import Latency
from pzos.networks.network import Network
from pzos.networks.tntp import read_tntp, read_tntp_flow, read_tntp_nodes

__all__ = ["AboveGap", "Demand", "Latency", "NegativeCycle", "Network", "UserClass", "read_tntp", "read_tntp_flow", "read_tntp_nodes"]
