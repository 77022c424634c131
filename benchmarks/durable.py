"""What a durable ``tell`` costs against a bare SQLite commit of the same bytes on the same disk.

Run:  python benchmarks/durable.py          (in a directory on the disk to measure)
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

import pzos

TELLS, WIDTH, ROUNDS = 300, 1000, 5


def bare_commits(folder: Path, mode: str, size: int) -> float:
    """Median seconds of a commit of one blob of ``size`` bytes, synced, in this journal mode."""
    connection = sqlite3.connect(folder / f"bare-{mode}.db", isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (number INTEGER PRIMARY KEY, bytes BLOB)")
    data, seconds = os.urandom(size), []
    for _ in range(TELLS):
        start = time.perf_counter()
        connection.execute("INSERT INTO rows (bytes) VALUES (?)", (data,))
        seconds.append(time.perf_counter() - start)
    connection.close()
    return median(seconds)


def tells(folder: Path, number: int, path: bool) -> float:
    """Median seconds of an answer told to a study, durable or in memory, the solver's own work included."""
    leader = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0.0 * x, lambda x, y: np.ones_like(y))
    problem = pzos.Problem(leader, np.abs, x0=np.ones(WIDTH))
    file = folder / f"study-{number}.study"
    solver = pzos.PZOS(step=0.01)
    study = pzos.Study.open(file, problem.known(), solver) if path else pzos.Study(problem.known(), solver)
    answer, seconds = np.ones(WIDTH), list[float]()
    while len(seconds) < TELLS:
        for query in study.ask():
            start = time.perf_counter()
            study.tell(query, answer)
            seconds.append(time.perf_counter() - start)
    study.close()
    return median(seconds)


def main() -> int:
    print(f"pzos {pzos.__version__}  SQLite {sqlite3.sqlite_version}  python {sys.version.split()[0]}")
    size = 2 * 8 * WIDTH
    with tempfile.TemporaryDirectory(dir=".") as root:
        folder = Path(root)
        rounds = [
            (
                bare_commits(folder, "WAL", size),
                bare_commits(folder, "DELETE", size),
                tells(folder, number, path=True),
                tells(folder, number, path=False),
            )
            for number in range(ROUNDS)
        ]
    ahead, default, durable, memory = (median(column) for column in zip(*rounds, strict=True))
    print(f"d_x = d_y = {WIDTH}, {size} bytes per answer, medians of {ROUNDS} rounds of {TELLS}:")
    print(f"  bare commit, write-ahead log {ahead * 1e6:.0f} us, default rollback journal {default * 1e6:.0f} us")
    print(f"  tell on a durable study {durable * 1e6:.0f} us, in memory {memory * 1e6:.0f} us")
    ratios = [a / b for a, b in ((durable, ahead), (durable, default))]
    met = max(ratios) <= 3.0
    print(
        f"  ratio {ratios[0]:.2f} to the first, {ratios[1]:.2f} to the second (bar <= 3): {'met' if met else 'NOT MET'}"
    )
    return int(not met)


if __name__ == "__main__":
    raise SystemExit(main())
