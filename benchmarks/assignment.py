"""City networks against AequilibraE: speed to the same true gap, exactness, memory, classes, toll optimisation.

    python benchmarks/assignment.py [--tntp FOLDER] [--skip-peer] [--skip-tolls] [--regional TRIPS.npy] [--tapb PROGRAM]

Networks are read from --tntp, PZOS_TNTP, or ../shared/data/tntp beside the repository. One thread each, both in
this process; wall times are the best of several runs for pzos and of one run for the peer, so judge the ratios.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from pzos.networks import (
    Demand,
    Network,
    TollFollower,
    UserClass,
    independent_gap,
    read_tntp,
    read_tntp_flow,
    tariff,
    write_tntp,
)
from pzos.networks.search import marginal_cost_trials, optimise_tolls
from pzos.solving import solve
from pzos.study.result import Result

HERE = Path(__file__).resolve().parent
CASES = {
    "SiouxFalls": ("SiouxFalls", {}, 42.31335287107440e5),
    "Eastern-Massachusetts": ("EMA", {}, None),
    "Anaheim": ("Anaheim", {}, 1286032.17109602),
    "Chicago-Sketch": ("ChicagoSketch", {"toll_factor": 0.02, "distance_factor": 0.04}, 17313018.7387477),
}
TAPB = {
    "SiouxFalls": ("SiouxFalls", {}),
    "Anaheim": ("Anaheim", {}),
    "Barcelona": ("Barcelona", {}),
    "Winnipeg": ("Winnipeg", {}),
    "Chicago-Sketch": ("ChicagoSketch", {"toll_factor": 0.02, "distance_factor": 0.04}),
}
HARD = {"Winnipeg": ("Winnipeg", 1e-12, 0.2), "Terrassa-Asymmetric": ("Terrassa-Asym", 1e-10, 10.0)}
LIMIT_MS = {"SiouxFalls": 20.0, "Anaheim": 100.0, "Chicago-Sketch": 15000.0}
RATIOS = (("SiouxFalls", 1e-4, 200), ("SiouxFalls", 1e-6, 1000), ("Anaheim", 1e-6, 30), ("Chicago-Sketch", 1e-4, 5))


def verdict(ok: bool) -> str:
    return "PASS" if ok else "FAIL"


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def read(folder: Path, name: str) -> Network:
    stem, options, _ = CASES[name]
    return read_tntp(folder / name / f"{stem}_net.tntp", folder / name / f"{stem}_trips.tntp", **options)


def quickest(network: Network, gap: float) -> tuple[float, float, float]:
    """Return wall and processor milliseconds, best of several, and the gap by independent computation."""
    walls, processor = [], []
    for _ in range(3 if network.links > 2000 else 15):
        before = time.thread_time()
        answer = network.assign(gap=gap)
        processor.append(time.thread_time() - before)
        walls.append(answer.seconds)
    return 1e3 * min(walls), 1e3 * min(processor), independent_gap(network, answer.class_flow)


def exactness(folder: Path, networks: dict[str, Network]) -> None:
    print("\nExactness and time (wall ms, processor ms in brackets; independent gap)")
    for name, network in networks.items():
        stem, _, known = CASES[name]
        line = [f"{name:22s}"]
        for gap in (1e-4, 1e-6, 1e-12):
            wall, cpu, true = quickest(network, gap)
            line.append(f"{gap:.0e}: {wall:9.2f} ({cpu:8.2f}) {true:8.1e}")
        print("  ".join(line), verdict(wall <= LIMIT_MS.get(name, np.inf)) if name in LIMIT_MS else "")
        answer = network.assign(gap=1e-12)
        if known is not None:
            off = abs(answer.objective / known - 1)
            volume, _ = read_tntp_flow(folder / name / f"{stem}_flow.tntp", network)
            unique = network.latency.rise > 0
            worst = np.abs(answer.flow - volume)[unique].max()
            print(f"{'':22s}  objective {answer.objective:.10g} off by {off:.1e} {verdict(off <= 1e-10)};"
                  f" largest flow difference on links with b > 0: {worst:.1e} {verdict(worst <= 1e-3)}")  # fmt: skip


def against_peer(networks: dict[str, Network]) -> None:
    from pzos.networks.simulators.aequilibrae import build, link_flow

    print("\nAgainst AequilibraE", importlib.metadata.version("aequilibrae"), "(bfw, 1 core)")
    for name, gap, wanted in RATIOS:
        network = networks[name]
        peer = build(network, gap=gap, iterations=5000)
        begin, cpu_begin = time.perf_counter(), time.process_time()
        peer.execute()
        theirs, their_cpu = time.perf_counter() - begin, time.process_time() - cpu_begin
        true = independent_gap(network, link_flow(peer, network))
        wall, cpu, ours = quickest(network, min(gap, max(true, 1e-14)))
        ratio, cpu_ratio = 1e3 * theirs / wall, 1e3 * their_cpu / cpu
        print(f"{name:16s} {gap:.0e}: AequilibraE {theirs:8.3f} s ({their_cpu:8.3f}), true gap {true:.1e}; "
              f"pzos {wall:9.2f} ms ({cpu:8.2f}), {ours:.1e}; ratio {ratio:8.0f} (processor {cpu_ratio:6.0f}), "
              f"wanted {wanted}: {verdict(min(ratio, cpu_ratio) >= wanted)}")  # fmt: skip


def against_tapb(folder: Path, program: Path) -> None:
    """TAP-B (bushes, built from its public repository) and pzos in turns, one thread, on the same files.

    Its clock counts what comes after reading; it is turned into processor time by the share of the run that it covers.
    Both stop at a relative gap; pzos is asked for the one that TAP-B has reached.
    """
    print(f"\nAgainst TAP-B ({program.name}), one thread: processor seconds, best of 3 in turns")
    for name, (stem, options) in TAPB.items():
        original = read_tntp(folder / name / f"{stem}_net.tntp", folder / name / f"{stem}_trips.tntp", **options)
        with tempfile.TemporaryDirectory() as place:
            net, trips = Path(place) / "net.tntp", Path(place) / "trips.tntp"
            write_tntp(original, net, trips)
            network = read_tntp(net, trips, **options)
            tags = "".join(f"<{key.replace('_', ' ').upper()}> {value}\n" for key, value in options.items())
            net.write_text(net.read_text().replace("<END OF METADATA>", tags + "<END OF METADATA>"))
            for gap in (1e-6, 1e-10):
                print(_with_tapb(name, network, Path(place), program, gap))


def _with_tapb(name: str, network: Network, place: Path, program: Path, gap: float) -> str:
    """Return one line of the comparison; the files are in ``place``."""
    (place / "run.txt").write_text(
        f"<NETWORK FILE> net.tntp\n<TRIPS FILE> trips.tntp\n<FILE PATH> {place}/\n<DATA PATH> {place}/\n"
        f"<CONVERGENCE GAP> {gap}\n<MAX RUN TIME> 300\n<NUMBER OF THREADS> 1\n"
    )
    theirs, ours, reached = [], [], gap
    for _ in range(3):
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        told = subprocess.run([program, "run.txt"], cwd=place, capture_output=True, text=True, check=True)
        wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found = re.findall(r"gap ([0-9.e+-]+), .*?time ([0-9.]+)", told.stdout)[-1]
        reached = float(found[0])
        theirs.append(cpu * float(found[1]) / wall)
        before_own = time.thread_time()
        answer = network.assign(gap=min(gap, max(reached, 1e-14)))
        ours.append(time.thread_time() - before_own)
    return (f"{name:16s} {gap:.0e}: TAP-B {min(theirs):8.3f} s (gap {reached:.1e}), pzos {min(ours):8.3f} s "
            f"({independent_gap(network, answer.class_flow):.1e}): {min(theirs) / min(ours):6.1f}x")  # fmt: skip


def classes(networks: dict[str, Network]) -> None:
    print("\nThree classes against one (wanted at most 4x)")
    for name in ("SiouxFalls", "Anaheim", "Chicago-Sketch"):
        network = networks[name]
        three = network.with_classes([0.5, 1.0, 2.0], [0.3, 0.4, 0.3])
        tolls = 0.2 * np.maximum(network.latency.base, 0.1)
        runs = 2 if network.links > 2000 else 10
        times = []
        for each in (network, three):
            each.assign(tolls)
            used = []
            for _ in range(runs):
                begin = time.thread_time()
                each.assign(tolls)
                used.append(time.thread_time() - begin)
            times.append(min(used))
        print(f"{name:16s} one {1e3 * times[0]:9.2f} ms, three {1e3 * times[1]:9.2f} ms: "
              f"{times[1] / times[0]:.2f}x {verdict(times[1] <= 4 * times[0])}")  # fmt: skip


def hard(folder: Path) -> dict[str, Network]:
    """Constant costs, many used paths per pair: to a tight gap, in seconds of the processor."""
    print("\nHard ones (processor seconds, independent gap)")
    networks = {}
    for name, (stem, gap, limit) in HARD.items():
        network = read_tntp(folder / name / f"{stem}_net.tntp", folder / name / f"{stem}_trips.tntp")
        begin = time.thread_time()
        answer = network.assign(gap=gap)
        used = time.thread_time() - begin
        true = independent_gap(network, answer.class_flow)
        print(f"{name:22s} {gap:.0e}: {used:8.3f} s, {true:.1e} {verdict(used <= limit)}")
        networks[name] = network
    return networks


def warm(networks: dict[str, Network]) -> None:
    """Queries of a toll search against cold ones, and products of the derivative against one equilibrium."""
    print("\nWarm queries and derivative products (processor time, share of a cold query; medians of 8 toll vectors)")
    for name in ("Anaheim", "Winnipeg", "Chicago-Sketch"):
        network = networks[name]
        free = network.assign()
        busiest = np.argsort(-free.flow)[:10]
        travellers = TollFollower(network, tariff(network, busiest), 1e-10)
        begin = time.thread_time()
        travellers(np.zeros(busiest.size))
        once = time.thread_time() - begin
        for size in (0.1, 1.0):
            rows = []
            for seed in range(8):
                share = np.random.default_rng(seed).uniform(0.0, size, busiest.size)
                x = share * np.maximum(free.time[busiest], 0.1)
                begin = time.thread_time()
                network.assign(travellers.tolls(x))
                cold = time.thread_time() - begin
                answer = travellers.assignment(x)
                query = time.thread_time() - begin - cold
                jacobian = answer.jacobian()
                begin = time.thread_time()
                jacobian.transpose(network.length + 1.0)
                rows.append((cold, query / cold, (time.thread_time() - begin) / cold, once / cold))
            cold, query, product, references = np.median(rows, axis=0)
            print(f"{name:16s} tolls up to {size:3g} times the time: cold {1e3 * cold:8.2f} ms, warm {query:.2f} "
                  f"{verdict(query <= 0.4)}, product {product:.2f} {verdict(product < 1.0)}; "
                  f"references, once: {references:.1f}")  # fmt: skip


def regional(folder: Path, trips: Path) -> None:
    """Chicago-Regional with the demand that shared/data/regional_demand.py makes: to 1e-4, seconds and memory."""
    stem = folder / "Chicago-Regional" / "ChicagoRegional"
    table = np.load(trips)
    demand = Demand.from_matrix(np.where(table > 0.01, table, 0.0))
    with tempfile.TemporaryDirectory() as place:
        one = Path(place) / "trips.tntp"
        one.write_text("<NUMBER OF ZONES> 1790\n<TOTAL OD FLOW> 1.0\n<END OF METADATA>\n\nOrigin 1\n 2 : 1.0;\n")
        network = replace(read_tntp(f"{stem}_net.tntp", one), classes=(UserClass(demand),))
    begin = time.thread_time()
    answer = network.assign(gap=1e-4)
    seconds, used = time.thread_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nChicago-Regional, {demand.trips.size} pairs: gap {answer.gap:.1e} in {seconds:.0f} s of the processor "
          f"{verdict(seconds <= 118)}, {used:.0f} MB {verdict(used <= 1024)}")  # fmt: skip


def threads(folder: Path) -> None:
    """Two threads against one on Berlin-Center, in turns: wall time, and the processor time of the caller's thread."""
    stem = folder / "Berlin-Center" / "berlin-center"
    network = read_tntp(f"{stem}_net.tntp", f"{stem}_trips.tntp")
    walls: dict[int, list[float]] = {1: [], 2: []}
    own: dict[int, list[float]] = {1: [], 2: []}
    flows = {}
    for _ in range(4):
        for count in walls:
            begin = time.thread_time()
            answer = network.assign(gap=1e-6, threads=count)
            own[count].append(time.thread_time() - begin)
            walls[count].append(answer.seconds)
            flows[count] = answer.flow
    wall, share = (min(times[1]) / min(times[2]) for times in (walls, own))
    same = np.array_equal(flows[1], flows[2])
    print(f"\nTwo threads on Berlin-Center: {wall:.2f}x in wall time {verdict(wall >= 1.6)}, {share:.2f}x in the "
          f"caller's processor time {verdict(share >= 1.6)}, same bits {verdict(same)}")  # fmt: skip


def memory(folder: Path) -> None:
    command = [sys.executable, str(Path(__file__).resolve()), "--tntp", str(folder), "--memory-only"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    used = float(answer.stdout.split()[-1])
    print(f"\nMemory for Chicago-Sketch (whole process): {used:.0f} MB {verdict(used < 600)}")


def tolls(network: Network) -> None:
    """Queries and seconds to within 1 % of the best known value, over all links."""
    print(f"\nSioux Falls tolls on all {network.links} links: from no tolls, and with the default starts")
    best = network.system_optimum(1e-12).total_travel_time
    free = network.assign(gap=1e-12).total_travel_time
    penalty = 200.0
    mix = {"revenue": 1.0, "toll_squares": -penalty}
    for title, problem, known in (
        ("total travel time", network.toll_problem(None, "travel_time", upper=100.0, x0=0.0), best),
        (f"revenue - {penalty:g} |x|^2", network.toll_problem(None, mix), None),
    ):
        sign = 1.0 if problem.sense == "min" else -1.0
        cold = solve(problem, queries=600, monitor=False, progress=False)
        warm = optimise_tolls(problem, 100.0, queries=600, progress=False)
        long = solve(problem, queries=2000, seed=1, monitor=False, progress=False)
        seen = [cold.best_value, warm.value, long.best_value]
        goal = known if known is not None else sign * min(sign * value for value in seen)
        trials = [trial.value for trial in marginal_cost_trials(problem, 6)]
        print(f"{title}: best known {goal:.8g}; uniform toll {warm.uniform.toll:g}: {warm.uniform.value:.8g}")
        told("from no tolls", cold.best_value, cold, 0, 0.0, goal, sign)
        first = [k for k, value in enumerate(trials) if abs(value / goal - 1) <= 0.01]
        if first and warm.start.what.startswith("marginal"):
            # 8 uniform tolls are tried first, then 1 untolled response and k marginal-cost steps
            print(f"  with starts: {warm.value:.8g} after {warm.queries} queries, {warm.seconds:.1f} s; within 1 % "
                  f"at query {8 + 2 + first[0]}, by {warm.start.what}")  # fmt: skip
        else:
            told("with starts", warm.value, warm.result, warm.queries - warm.result.queries, warm.seconds, goal, sign)
        if known is not None:
            off = warm.value / best - 1
            print(f"  untolled {free:.8g}, system optimum {best:.8g}: off by {off:.2e} {verdict(off <= 1e-3)}")


def told(name: str, value: float, result: Result, before: int, seconds: float, goal: float, sign: float) -> None:
    """Print where a run came within 1 % of the goal."""
    best = sign * np.minimum.accumulate(sign * np.asarray(result.trace["value"]))
    within = np.flatnonzero(np.abs(best / goal - 1) <= 0.01)
    at = "never" if not within.size else (
        f"{before + int(result.trace['queries'][within[0]])} queries, {float(result.trace['seconds'][within[0]]):.2f} s"
    )  # fmt: skip
    print(f"  {name}: {value:.8g} after {before + result.queries} queries, {max(seconds, result.seconds):.1f} s; "
          f"within 1 %: {at}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("PZOS_TNTP", str(HERE.parents[1] / "shared" / "data" / "tntp"))
    parser.add_argument("--tntp", type=Path, default=Path(default))
    parser.add_argument("--skip-peer", action="store_true")
    parser.add_argument("--skip-tolls", action="store_true")
    parser.add_argument("--regional", type=Path, metavar="TRIPS.npy", help="also Chicago-Regional, with this demand")
    parser.add_argument("--tapb", type=Path, metavar="PROGRAM", help="compare with this TAP-B, and nothing else")
    parser.add_argument("--memory-only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_only:
        read(arguments.tntp, "Chicago-Sketch").assign(gap=1e-12)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    names = ("numpy", "scipy", "numba", "aequilibrae")
    print(
        "versions:",
        ", ".join(f"{name} {version(name)}" for name in names),
        "| load",
        os.getloadavg(),
    )
    if arguments.tapb:
        against_tapb(arguments.tntp, arguments.tapb.resolve())
        return
    networks = {name: read(arguments.tntp, name) for name in CASES}
    networks["SiouxFalls"].assign()
    exactness(arguments.tntp, networks)
    classes(networks)
    warm(networks | hard(arguments.tntp))
    threads(arguments.tntp)
    if arguments.regional:
        regional(arguments.tntp, arguments.regional)
    memory(arguments.tntp)
    if not arguments.skip_tolls:
        tolls(networks["SiouxFalls"])
    if not arguments.skip_peer:
        against_peer(networks)


if __name__ == "__main__":
    main()
