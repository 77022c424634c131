"""Kill the driver of every kind of run (threads, workers, programs, noise, batches, the default with its certificate).

Run:  python benchmarks/kill_kinds.py [KILLS [KIND ...]]          (20 kills for each kind by default)

Each run is a process of its own, killed with SIGKILL at a random moment from the making of its study file on, and some
are killed again while they open it. After each kill

* nothing the driver had started may be running a few seconds later (workers, programs);
* no query whose answer is on the disk may be asked again;
* the run that is left alone must end with the bits of one that was never killed, certificate included.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import psutil

import pzos
from pzos.durable.log import read_study

NOTE = 16  # bytes per noted call
PAUSE = 0.005  # seconds of a query
AGAIN = 0.3  # how likely a run that was killed is killed again
PATIENCE = 20.0  # seconds for what a killed driver has left behind to end
SOURCE = str(Path(pzos.__file__).resolve().parent.parent)

#: The follower as a program.
PROGRAM = """
import hashlib, json, os, struct, sys, time
x = json.load(sys.stdin)["x"]
note = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(note, hashlib.blake2b(struct.pack(f"<{len(x)}d", *x), digest_size=16).digest())
time.sleep(float(sys.argv[2]))
print(json.dumps({"y": [abs(v - 0.3) for v in x] + [max(v, 0.1) for v in x]}))
"""


def noted(x: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(x).tobytes(), digest_size=NOTE).digest()


class Follower:
    """Kinked answers; each call is noted in a file before it is answered. Worker processes can import it."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def note(self, *points: np.ndarray) -> None:
        descriptor = os.open(self.notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, b"".join(map(noted, points)))
        os.close(descriptor)
        time.sleep(PAUSE)

    def plain(self, x: np.ndarray) -> np.ndarray:
        self.note(x)
        return np.concatenate([np.abs(x - 0.3), np.maximum(x, 0.1)])

    def noisy(self, x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        return self.plain(x) + 1e-3 * generator.standard_normal(2 * x.size)

    def rows(self, points: np.ndarray) -> np.ndarray:
        self.note(*points)
        return np.hstack([np.abs(points - 0.3), np.maximum(points, 0.1)])


LEADER = pzos.leader_from_functions(
    lambda x, y: float(x @ x + y @ y), lambda x, y: 2.0 * x, lambda x, y: 2.0 * y, name="kinks"
)
#: For each kind its follower, where queries are answered, and what solves: PZOS with batches, or the default.
KINDS: dict[str, tuple[str, str, str]] = {
    "here": ("plain", "here", "PZOS"),
    "threads": ("plain", "threads", "PZOS"),
    "workers": ("plain", "workers", "PZOS"),
    "command": ("command", "here", "PZOS"),
    "command on workers": ("command", "workers", "PZOS"),
    "noisy": ("noisy", "here", "PZOS"),
    "noisy on workers": ("noisy", "workers", "PZOS"),
    "batched": ("rows", "here", "PZOS"),
    "batched on workers": ("rows", "workers", "PZOS"),
    "default": ("plain", "here", "default"),
    "default on workers": ("plain", "workers", "default"),
    **({"dask": ("plain", "dask", "PZOS")} if importlib.util.find_spec("distributed") else {}),
}


def drive(kind: str, folder: Path) -> None:
    """Run or resume the study in ``folder`` to its end, and write down its result in full digits."""
    how, where, solver = KINDS[kind]
    notes = folder / "notes"
    follower: Any = Follower(notes)
    words = [sys.executable, "-I", "-S", "-c", PROGRAM, str(notes), str(PAUSE)]
    made = {
        "plain": lambda: follower.plain,
        "noisy": lambda: pzos.seeded(follower.noisy),
        "rows": lambda: pzos.batched(follower.rows),
        "command": lambda: pzos.CommandFollower(words, directory=folder, keep="nothing"),
    }[how]()
    problem = pzos.Problem(LEADER, made, x0=np.linspace(1.0, 2.0, 5), name="kinks")
    chosen: dict[str, Any] = {"steps": 6, "solver": pzos.PZOS(step=0.05, radius=0.1, batch=2)}
    with contextlib.ExitStack() as stack:
        executor: Any = None
        if where == "threads":
            executor = stack.enter_context(ThreadPoolExecutor(4))
        elif where == "workers":
            executor = stack.enter_context(pzos.Workers(2))
        elif where == "dask":
            executor = stack.enter_context(pzos.as_executor("local:2"))
        given = chosen if solver == "PZOS" else {"queries": 15}
        result = pzos.solve(problem, **given, seed=7, path=folder / "kinks.study", executor=executor, progress=False)
    columns = {name: result.trace[name].tobytes().hex() for name in result.trace.columns if name != "seconds"}
    points = [point.tobytes().hex() for point in (result.x, result.best_x, result.random_x)]
    counts = [result.queries, result.monitoring, result.failures, result.stop.value, result.ledger]
    (folder / "result").write_text(json.dumps([columns, points, counts, repr(result.certificate)]))


# ---- the drill ------------------------------------------------------------------------------------------------


def started(kind: str, folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.Popen([sys.executable, __file__, "drive", kind, str(folder)], env=environment)


def calls(folder: Path, since: int = 0) -> Counter[bytes]:
    notes = (folder / "notes").read_bytes()[since * NOTE :] if (folder / "notes").exists() else b""
    return Counter(notes[at : at + NOTE] for at in range(0, len(notes), NOTE))


def answered(folder: Path) -> Counter[bytes]:
    """Return the points whose answers are on the disk, in the study and in its certificate."""
    files = [file for file in folder.glob("kinks.study*") if not file.name.endswith((".torn", ".new"))]
    events = [event for file in files for event in read_study(file).events]
    return Counter(noted(event.query.x) for event in events if event.response is not None)


def until(holds: Any, patience: float) -> bool:
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def killed(process: subprocess.Popen[bytes], wait: float) -> tuple[bool, int]:
    """Kill after ``wait`` seconds; tell whether it was still running, and how many of those it started outlived it."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(wait)
        return False, 0
    family = []
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    gone = until(lambda: not any(map(is_running, family)), PATIENCE)
    return True, 0 if gone else sum(map(is_running, family))


def is_running(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def begun(process: subprocess.Popen[bytes], folder: Path) -> None:
    until(lambda: (folder / "kinks.study").exists() or process.poll() is not None, PATIENCE)


def drill(kind: str, kills: int, root: Path) -> Counter[str]:
    """Kill ``kills`` runs of one kind."""
    moments = random.Random(kind)
    quiet = root / "quiet"
    quiet.mkdir()
    process = started(kind, quiet)
    begun(process, quiet)
    start = time.perf_counter()
    process.wait()
    span = time.perf_counter() - start
    expected, needed = (quiet / "result").read_text(), calls(quiet)
    counts = Counter(dict.fromkeys(("kills", "different", "asked again", "left running"), 0))
    number = 0
    while counts["kills"] < kills:
        number += 1
        folder = root / str(number)
        folder.mkdir()
        process = started(kind, folder)
        begun(process, folder)
        wait = moments.uniform(0.0, span)
        at_kills: list[tuple[int, Counter[bytes]]] = []  # calls so far, and answers on the disk
        while True:
            was_killed, left = killed(process, wait)
            counts["left running"] += left
            if not was_killed:
                break
            counts["kills"] += 1
            at_kills.append((calls(folder).total(), answered(folder)))
            process = started(kind, folder)
            # much of a short wait is spent on starting and on opening the file
            wait = moments.uniform(0.2, 1.5) if moments.random() < AGAIN else 600.0
        for before, on_disk in at_kills:
            later = calls(folder, before)
            counts["asked again"] += sum(max(0, later[x] - needed[x] + on_disk[x]) for x in on_disk)
        result = folder / "result"
        counts["different"] += not result.exists() or result.read_text() != expected
    return counts


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["drive"]:
        drive(arguments[1], Path(arguments[2]))
        return 0
    kills = int(arguments[0]) if arguments else 20
    print(f"pzos {pzos.__version__}  numpy {np.__version__}  python {sys.version.split()[0]}", flush=True)
    total: Counter[str] = Counter()
    for kind in arguments[1:] or KINDS:
        with tempfile.TemporaryDirectory(dir=".") as root:
            counts = drill(kind, kills, Path(root).resolve())
        print(f"{kind}: " + ", ".join(f"{label} {count}" for label, count in counts.items()), flush=True)
        total.update(counts)
    print("all: " + ", ".join(f"{label} {count}" for label, count in total.items()))
    bad = total["different"] + total["asked again"] + total["left running"]
    print("met" if bad == 0 else "NOT MET")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
