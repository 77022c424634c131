"""All bars of the followers in one run: routing, security, variational inequalities, compilation.

    pip install -e ".[qp]"
    python benchmarks/followers.py [--instances 12] [--queries 60] [--accuracy 20000]

Same instances and queries for everyone, one thread, one run, medians of wall-clock seconds per call of the public
`response`, ratios. Peers that are not installed are named, and a bar that needs them is not called met.
"""

import argparse
import gc
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import followers_routing as routing
import followers_security as security
import followers_vi as vi

PACKAGES = ("numpy", "scipy", "numba", "daqp", "piqp", "osqp", "proxsuite", "clarabel", "highspy", "cvxpy")
QP_SOLVERS = 6  # DAQP, PIQP, OSQP, ProxQP, Clarabel, HiGHS
FIRST_ANSWER = """
import time
begun, used = time.perf_counter(), time.process_time()
from pzos.games import RoutingGame, SecurityGame
import numpy as np
routing, security = RoutingGame.random(0), SecurityGame.random(0, targets=10)
loaded, used = time.perf_counter(), time.process_time()
routing.response(np.zeros(routing.edges))
security.response(security.start())
print(time.perf_counter() - loaded, time.process_time() - used)
"""


class Bars:
    """Prints one line per bar and remembers whether all were met."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def check(self, met: bool, name: str, measured: str) -> None:
        print(f"  {'PASS' if met else 'FAIL'}  {name}: {measured}")
        if not met:
            self.missed.append(name)


def installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def routing_speed(bars: Bars, instances: int, queries: int) -> None:
    print(f"\nrouting: {instances} instances of the paper's sizes, {queries} consecutive queries of PZOS on each")
    found = routing.speed(instances, queries)
    own = found.ours.median
    print(f"  {'pzos':13} {1e6 * own:10.2f} us")
    for name, times in found.peers.items():
        ratio = f"{times.median / own:8.1f}x slower"
        print(f"  {name:13} {1e6 * times.median:10.2f} us  {ratio}   flow error {times.error:.1e}")
    if found.missing:
        print("  not installed:", ", ".join(found.missing))
    solvers = {name: times.median / own for name, times in found.peers.items() if name != "cvxpy"}
    complete = len({name.split()[0] for name in solvers}) == QP_SOLVERS
    fastest = min(solvers, key=lambda name: solvers[name], default="no QP solver")
    ratio = solvers.get(fastest, 0.0)
    bars.check(complete and ratio >= 30.0, "30x the fastest QP solver", f"{ratio:.1f}x {fastest}")
    ratio = found.peers["cvxpy"].median / own if "cvxpy" in found.peers else 0.0
    bars.check(ratio >= 1000.0, "1000x cvxpy", f"{ratio:.0f}x")
    ratio = found.nine.median / found.one_of_nine.median
    measured = f"{ratio:.2f}x ({1e6 * found.nine.median:.2f} us to {1e6 * found.one_of_nine.median:.2f} us)"
    bars.check(ratio <= 6.0, "a batch of 9 at most 6x a single response", measured)


def routing_accuracy(bars: Bars, responses: int) -> None:
    found = routing.accuracy(responses)
    measured = (f"{found['worst']:.1e} on {found['responses']} responses of {found['instances']} instances, "
                f"{found['negative']} with negative tolls; fall-backs {found['fall_backs']}, none failed")  # fmt: skip
    met = found["worst"] <= 1e-10 and found["responses"] >= 20_000
    bars.check(met, "flow error at most 1e-10 on 20,000 responses", measured)


def security_bars(bars: Bars) -> None:
    print(f"\nsecurity: n = {security.TARGETS}, {security.SEEDS * security.QUERIES} queries of PZOS, "
          f"{security.TURNS} turns; largest error against long doubles")  # fmt: skip
    found = security.versus_peers()
    own, own_error = found["pzos"]
    for name, (seconds, error) in found.items():
        print(f"  {name:13} {1e6 * seconds:10.1f} us   error {error:.1e}")
    for name in ("scipy SLSQP", "cvxpy"):
        seconds, error = found.get(name, (0.0, 0.0))
        met = seconds >= 200.0 * own and own_error <= error
        bars.check(met, f"200x {name}, as accurate", f"{seconds / own:.0f}x")
    rows = security.scaling()
    for n, seconds, _, gap, steps in rows:
        cost = f"{1e6 * seconds:12.1f} us  {1e9 * seconds / n:9.1f} ns per target"
        print(f"  n = {n:>9,d}  {cost}  certificate {gap:.1e}  Newton steps {steps:.0f}")
    large = np.log(np.array([(n, cpu) for n, _, cpu, _, _ in rows if n >= 1000]))
    exponent = float(np.polyfit(*large.T, 1)[0])
    bars.check(rows[-1][1] < 1.0, "n = 10^6 in under 1 s", f"{rows[-1][1]:.3f} s")
    bars.check(abs(exponent - 1.0) <= 0.15, "cost linear in n", f"CPU seconds ~ n^{exponent:.3f} for n >= 1000")


def vi_bars(bars: Bars) -> None:
    print("\nvariational inequality: the same games given as G and a polyhedron")
    for name, difference in (("routing", vi.routing_difference(10)), ("security", vi.security_difference(9))):
        bars.check(difference <= 1e-8, f"agrees with {name} to 1e-8", f"{difference:.1e}")


def compilation_bars(bars: Bars) -> None:
    print("\ncompilation of both kernels, fresh processes, an empty cache, then a filled one")
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        for limit, name in ((30.0, "at most 30 s once"), (1.0, "at most 1 s at the next start")):
            done = subprocess.run([sys.executable, "-c", FIRST_ANSWER], env=environment, capture_output=True, text=True,
                                  check=True)  # fmt: skip
            wall, cpu = (float(part) for part in done.stdout.split())
            said = "; said: " + done.stderr.strip().splitlines()[0] if done.stderr.strip() else ""
            bars.check(cpu <= limit, name, f"{cpu:.2f} s CPU, {wall:.2f} s wall clock{said}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=12)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--accuracy", type=int, default=20_000, help="responses to check; 0 leaves it out")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("versions: " + ", ".join(f"{name} {installed(name)}" for name in PACKAGES))
    bars = Bars()
    gc.disable()
    routing_speed(bars, options.instances, options.queries)
    gc.enable()
    if options.accuracy:
        routing_accuracy(bars, options.accuracy)
    security_bars(bars)
    vi_bars(bars)
    compilation_bars(bars)
    print(f"\n{'all bars met' if not bars.missed else 'missed: ' + '; '.join(bars.missed)}")
    sys.exit(1 if bars.missed else 0)


if __name__ == "__main__":
    main()
