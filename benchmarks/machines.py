"""Continue studies on other machines: other kernels of OpenBLAS, and other environments with older libraries.

Run:  python benchmarks/machines.py [PYTHON...]      (each PYTHON: an interpreter of another environment, with pzos)

Each study is begun here and then taken up in turn by a process per machine, which replays all there is, goes on for a
few steps and closes it. Counted are studies that were refused; printed is the largest difference between a point as it
was stored and as it came out there, relative to its largest entry.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import pzos
from pzos.base.errors import PzosError
from pzos.durable.replay import summary
from pzos.study.run import drive

KERNELS = ("Haswell", "Sandybridge", "Nehalem", "Prescott", "Barcelona")
FIRST, MORE = 40, 8


def mixing(dimension: int, width: int) -> pzos.Problem:
    """A kinked follower behind matrix products, in leader and follower alike."""
    inner = np.cos(np.outer(np.arange(1, width + 1), np.arange(1, dimension + 1))) / np.sqrt(dimension)
    outer = np.sin(np.outer(np.arange(1, width + 1), np.arange(2, width + 2))) / np.sqrt(width)
    leader = pzos.leader_from_functions(
        lambda x, y: float(x @ x + (outer @ y) @ (outer @ y) + y.sum()),
        lambda x, y: 2.0 * x,
        lambda x, y: 2.0 * outer.T @ (outer @ y) + 1.0,
        name="mixing",
    )
    return pzos.Problem(leader, Kinked(inner), np.linspace(1.0, 2.0, dimension), name=f"mixing {dimension}")


class Kinked:
    def __init__(self, inner: np.ndarray) -> None:
        self.inner = inner

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(self.inner @ x - 0.3, 0.1 * np.abs(x).sum() / x.size)


def fragile() -> pzos.Problem:
    """Kinks through the optimum: rounding decides between points that are equally good."""
    matrix = np.cos(np.outer(np.arange(1, 7), np.arange(1, 7)))
    leader = pzos.leader_from_functions(
        lambda x, y: float((y - 1) @ (y - 1) + 0.1 * x @ x), lambda x, y: 0.2 * x, lambda x, y: 2 * (y - 1), name="one"
    )
    return pzos.Problem(leader, lambda x: np.abs(matrix @ x - 0.5), np.zeros(6), name="fragile")


SOLVERS: dict[str, Any] = {
    "PZOS": pzos.PZOS(batch=2),
    "ZOS": pzos.ZOS(batch=2),
    "MemoryPZOS": pzos.MemoryPZOS(),
    "SecantPZOS": pzos.SecantPZOS(),
    "default": pzos.CompositeTrustRegion(),
}
PROBLEMS: dict[str, Any] = {"d = 3": lambda: mixing(3, 40), "d = 30": lambda: mixing(30, 150), "fragile": fragile}


def go_on(path: str, which: str, problem: str, steps: int) -> dict[str, Any]:
    """Replay the study at ``path`` and take it to ``steps`` steps."""
    game = PROBLEMS[problem]()
    try:
        with pzos.Study.open(path, game.known(), SOLVERS[which], seed=5, steps=steps) as study:
            moved = study.difference
            result = drive(study, pzos.Oracle(game.follower, seed=5), progress=False)
    except PzosError as error:
        return {"refused": str(error)}
    return {"difference": moved, "steps": result.steps, "value": result.value}


def elsewhere(python: str, kernel: str, *arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(Path(pzos.__file__).resolve().parent.parent)}
    if kernel:
        environment["OPENBLAS_CORETYPE"] = kernel
    command = [python, __file__, "go-on", *arguments]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["go-on"]:
        print(json.dumps(go_on(*arguments[1:4], int(arguments[4]))))  # type: ignore[arg-type]
        return 0
    places = [(sys.executable, kernel) for kernel in KERNELS] + [(python, "") for python in arguments]
    print(f"pzos {pzos.__version__}  numpy {np.__version__}  python {sys.version.split()[0]}")
    refused = 0
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for problem in PROBLEMS:
            for which in SOLVERS:
                path, said = str(Path(folder, f"{problem} {which}.study")), []
                go_on(path, which, problem, FIRST)
                for number, (python, kernel) in enumerate(places, 1):
                    found = elsewhere(python, kernel, path, which, problem, str(FIRST + MORE * number))
                    refused += "refused" in found
                    said.append(found.get("refused") or f"{found['difference']:.1e}")
                back = go_on(path, which, problem, FIRST + MORE * (len(places) + 1))
                refused += "refused" in back
                said.append(back.get("refused") or f"{back['difference']:.1e}")
                print(f"{problem}, {which}: {', '.join(said)}; noted {summary(path).difference:.1e}", flush=True)
    print(f"{refused} refused of {len(PROBLEMS) * len(SOLVERS) * (len(places) + 1)} continued (bar 0)")
    print("met" if not refused else "NOT MET")
    return int(refused > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
