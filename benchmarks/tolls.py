"""Tolls a planner would sign: three cases in which a plain search goes wrong, each with its bar, and six more.

    python benchmarks/tolls.py [--tntp FOLDER]

Networks are read from --tntp, PZOS_TNTP, or ../shared/data/tntp beside the repository.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from pzos.networks import Network, TollSearch, optimise_tolls, read_tntp, usual_cap

HERE = Path(__file__).resolve().parent
QUERIES = 200  # as pzos tolls has it
POSSIBLE = 1_118_558.0  # revenue on Anaheim's ten busiest links; a plain search stops at 1,085,357
GAIN = 9_458.0  # travel time saved on the same links, by a long search with exact derivatives

#: Network, links, objective, and the most that is known to be gained: by L-BFGS with exact derivatives from many starts
#: or by any of our own searches, whichever found more. The first four were looked at while the search was written.
MORE = [
    ("Eastern-Massachusetts", 20, "travel_time", 830.2),
    ("SiouxFalls", 20, "travel_time", 87_956.0),
    ("Eastern-Massachusetts", 20, "revenue", 6_779.7),
    ("Anaheim", 30, "travel_time", 13_943.0),
    ("Anaheim", 20, "revenue", 1_686_892.0),
    ("SiouxFalls", 10, "emissions", 7_148.0),
]


def verdict(ok: bool) -> str:
    return "PASS" if ok else "FAIL"


def searched(network: Network, count: int | None, objective: str) -> tuple[TollSearch, float]:
    """Search as ``pzos tolls`` does, on the links where most time is spent (all: None), up to the usual cap."""
    free = network.assign()
    busiest = np.argsort(-free.flow * free.time * network.roads, kind="stable")
    links = np.arange(network.links) if count is None else busiest[:count]
    cap = usual_cap(network, links, free=free)
    begin = time.process_time()
    found = optimise_tolls(network.toll_problem(links, objective, upper=cap), cap, queries=QUERIES, progress=False)
    print(f"  {found.queries} queries, {time.process_time() - begin:.1f} s of the processor, cap {cap:g}", end="")
    print(f" (binds for {len(found.capped)} tolls)" if found.capped else " (binds nowhere)")
    return found, cap


def dead_zones(anaheim: Network) -> None:
    print("\nAnaheim, busiest:10, revenue: links priced out of traffic look flat")
    found, _ = searched(anaheim, 10, "revenue")
    print(f"  {found.value:,.0f} of {POSSIBLE:,.0f} ({found.value / POSSIBLE - 1:+.3%}) "
          f"{verdict(found.value >= 0.999 * POSSIBLE)}; best uniform toll {found.uniform.value:,.0f}")  # fmt: skip


def caps(sioux_falls: Network) -> None:
    print("\nSioux Falls, all links, travel time: the default cap must not cost anything")
    found, cap = searched(sioux_falls, None, "travel_time")
    best = sioux_falls.system_optimum(1e-12)
    external = float(best.tolls.max())
    off = found.value / best.total_travel_time - 1
    print(f"  {off:.4%} above the system optimum {verdict(off <= 1e-4)}; "
          f"largest marginal-cost toll {external:.4g} {verdict(cap >= external)}")  # fmt: skip


def pointless(anaheim: Network) -> None:
    print("\nAnaheim, busiest:10, travel time: tolls that change nothing are taken off")
    found, _ = searched(anaheim, 10, "travel_time")
    kept = np.flatnonzero(found.x)
    gain = found.untolled - found.value
    print(f"  {len(found.taken_off)} taken off, {kept.size} kept ({found.x[kept].round(3).tolist()}), "
          f"{len(found.captive)} captive, {found.unchecked} unchecked; gain {gain:,.0f} "
          f"of {GAIN:,.0f} {verdict(kept.size <= 3 and not found.unchecked and gain >= 0.98 * GAIN)}")  # fmt: skip


def more(networks: dict[str, Network]) -> None:
    for name, count, objective, known in MORE:
        print(f"\n{name}, busiest:{count}, {objective}")
        found, _ = searched(networks[name], count, objective)
        share = abs(found.value - found.untolled) / known
        print(f"  {share:.2%} of the most that is known; {np.count_nonzero(found.x)} tolls {verdict(share > 0.9)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("PZOS_TNTP", str(HERE.parents[1] / "shared" / "data" / "tntp"))
    parser.add_argument("--tntp", type=Path, default=Path(default))
    folder = parser.parse_args().tntp
    files = {"Anaheim": "Anaheim", "SiouxFalls": "SiouxFalls", "Eastern-Massachusetts": "EMA"}
    networks = {
        name: read_tntp(folder / name / f"{file}_net.tntp", folder / name / f"{file}_trips.tntp")
        for name, file in files.items()
    }
    dead_zones(networks["Anaheim"])
    caps(networks["SiouxFalls"])
    pointless(networks["Anaheim"])
    more(networks)


if __name__ == "__main__":
    main()
