"""Tolls on eight edges of a net and routes as SUMO's own tools make them (``pzos[sumo]``), read as they are.

The net is a grid of SUMO's netgenerate, every vehicle is simulated, and answers jump as vehicles change their way. The
leader wants the time of everybody, waiting included, to go down. A query is the mean of two seeds.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import pzos
from pzos.networks.simulators.sumo import SumoFiles, SumoSimulator
from pzos.networks.simulators.traffic import simulated_toll_problem, simulated_travellers
from suite.family import Family


@cache
def grid(seed: int) -> SumoFiles:
    """Return a grid of 4 by 4 crossings with twelve flows over ten minutes, tolls on the eight edges of most time."""
    import sumo

    folder = Path(tempfile.mkdtemp(prefix="pzos-suite-sumo-"))
    net, routes = folder / "grid.net.xml", folder / "grid.rou.xml"
    program = Path(sumo.SUMO_HOME) / "bin" / "netgenerate"
    subprocess.run([str(program), "--grid", "--grid.number=4", "--grid.length=250", "--output-file", str(net)],
                   check=True, capture_output=True)  # fmt: skip
    edges = SumoSimulator.from_files(net, _routes(routes, [("A0A1", "D2D3")]), ["A0A1"]).names
    draw = np.random.default_rng(seed)
    _routes(routes, [tuple(draw.choice(edges, 2, replace=False)) for _ in range(12)])
    free = SumoSimulator.from_files(net, routes, edges[:1], horizon=1800.0, mesoscopic=True)
    busiest = np.argsort(-free.run(np.zeros(len(edges)), 0).spent)[:8]
    return SumoSimulator.from_files(net, routes, [edges[k] for k in busiest], horizon=1800.0, mesoscopic=True)


def _routes(path: Path, pairs: list[tuple[str, str]]) -> Path:
    flows = (
        f'<flow id="{k}" begin="0" end="600" vehsPerHour="300" from="{a}" to="{b}"/>' for k, (a, b) in enumerate(pairs)
    )
    path.write_text(f"<routes>{''.join(flows)}</routes>", encoding="utf-8")
    return path


def tolls(seed: int) -> pzos.Problem:
    """Return tolls of up to three minutes; every draw has two seeds of its own."""
    problem = simulated_toll_problem(grid(seed), upper=3.0, seeds=range(2))
    follower = pzos.seeded(simulated_travellers(problem).fresh, common=True)
    return pzos.Problem(problem.leader, follower, problem.x0, problem.domain, name=problem.name)


FAMILIES = [
    Family("sumo-tolls", "libsumo", "sumo", tolls, "noise", "tolls on eight edges of a net and routes of SUMO's own",
           queries=50, judged_by=6,
           baselines={f"uniform-{60 * t:g}-s": lambda seed, t=t: np.full(8, t) for t in (0.25, 1.0)}),
]  # fmt: skip
