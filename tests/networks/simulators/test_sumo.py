"""SUMO, where its extra is installed, and its files everywhere."""

from __future__ import annotations

from pzos.networks.simulators import sumo
from roads import check_simulator, needs, two_roads


@needs("libsumo", "sumo")
def test_sumo_keeps_the_laws() -> None:
    check_simulator(sumo.SumoSimulator(two_roads(1800.0), loading=1200.0, horizon=3600.0), 600.0, toll=2.0)
