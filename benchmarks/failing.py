"""A follower that fails 20 % of the time, returns NaN 5 % and hangs 2 %: the run must end, and the counts add up.

Run:  python benchmarks/failing.py [STEPS]          (500 by default)
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import pzos

TIMEOUT = 0.5


class Unreliable:
    """Fails by chance; notes what it did on each call in a file before it does it (it may be killed while at it)."""

    def __init__(self, notes: str) -> None:
        self.notes = notes

    def __call__(self, x: np.ndarray) -> np.ndarray:
        draw = random.SystemRandom().random()
        kind = "x" if draw < 0.20 else "n" if draw < 0.25 else "h" if draw < 0.27 else "."
        descriptor = os.open(self.notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, kind.encode())
        os.close(descriptor)
        if kind == "x":
            raise RuntimeError("the simulator crashed")
        if kind == "n":
            return np.full(x.size, np.nan)
        if kind == "h":
            time.sleep(3600.0)
        return np.abs(x - 0.3)


def run(steps: int, attempts: int = 2) -> tuple[pzos.Result, dict[str, tuple[int, int]]]:
    """Return the result, and each count as the oracle has it and as it really was."""
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0.0 * x, lambda x, y: 2.0 * y)
    tolerance = pzos.Tolerance(attempts=attempts, wait=0.0, timeout=TIMEOUT, policy="drop")
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        problem = pzos.Problem(leader, Unreliable(str(notes)), x0=np.ones(4), name="unreliable")
        study = pzos.Study.open(Path(folder, "s.study"), problem.known(), pzos.PZOS(batch=2), steps=steps)
        with study, pzos.TolerantOracle(problem.follower, tolerance) as oracle:
            for _ in pzos.iterate(study, oracle):
                pass
        result, counts = study.result(), oracle.counts
        real = Counter(notes.read_text())
        stored = pzos.Study.open(Path(folder, "s.study"), problem.known(), pzos.PZOS(batch=2), steps=steps)
        replayed = stored.result()
        stored.close()
    answered = oracle.asked - result.failures
    return result, {
        "exceptions": (counts["exception"], real["x"]),
        "not finite": (counts["not finite"], real["n"]),
        "timeouts": (counts["timeout"], real["h"]),
        "answered": (answered, real["."]),
        "calls": (answered + len(oracle.failed_attempts), sum(real.values())),
        "given up": (counts["given up"], result.failures),
        "queries": (result.queries + result.monitoring, oracle.asked),
        "failures in the file": (replayed.failures, result.failures),
    }


def main(arguments: list[str]) -> int:
    steps = int(arguments[0]) if arguments else 500
    start = time.perf_counter()
    result, counts = run(steps)
    print(f"pzos {pzos.__version__}: {result.steps} of {steps} steps in {time.perf_counter() - start:.0f} s")
    for name, (ours, real) in counts.items():
        print(f"  {name}: {ours} counted, {real} happened{'' if ours == real else '   WRONG'}")
    met = result.steps == steps and all(ours == real for ours, real in counts.values())
    print("met" if met else "NOT MET")
    return int(not met)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
