"""Kill a process that drives a durable study, and see that nothing a query cost is lost.

Run:  python benchmarks/kill.py [KILLS | --small]    (200 by default; needs fork; a C compiler for the write boundaries)

1. SIGKILL at random moments; every resume must end with the bytes of the undisturbed trajectory, and the follower may
   have been called at most once more per kill and query in flight. A query is in flight from when it is handed out
   until its answer is on the disk: one at a time without workers, the five of a batch with 4 threads.
2. The same study killed again and again until it ends by itself.
3. Death at every single call that changes a file, before it and half-way through it (benchmarks/kill_shim.c), and after
   every ``tell`` no byte written is left unsynced.
4. Runs of every kind (threads, workers, programs, noise, batches, the default with its certificate), each driver killed
   at random moments, also while it opens its file (benchmarks/kill_kinds.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import kill_kinds
import pzos
from pzos.durable.replay import machine

SHIM = Path(__file__).with_name("kill_shim.c")
NOTE = 16  # bytes per noted call
BATCH = 5  # queries of a step: two pairs and one to monitor


def problem(calls: Path, pause: float = 0.0) -> pzos.Problem:
    """A kinked follower that notes each call in a file before it answers."""

    def follower(x: np.ndarray) -> np.ndarray:
        descriptor = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, hashlib.blake2b(x.tobytes(), digest_size=NOTE).digest())
        os.close(descriptor)
        time.sleep(pause)
        return np.concatenate([np.abs(x - 0.3), np.maximum(x, 0.1)])

    start = np.linspace(1.0, 2.0, 5)
    return pzos.Problem(kill_kinds.LEADER, follower, start, name="kinks", follower_name="kinks, however long they take")


def drive(folder: Path, steps: int, workers: int, pause: float, checked: Any = None) -> str:
    """Run or resume the study in ``folder`` to its end; returns its trajectory in full digits."""
    game = problem(folder / "calls", pause)
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(workers)) if workers > 1 else None
        oracle = pzos.Oracle(game.follower, executor=executor)
        solver = pzos.PZOS(step=0.05, radius=0.1, batch=2)
        study = stack.enter_context(pzos.Study.open(folder / "kinks.study", game.known(), solver, steps=steps, seed=7))
        while not study.done:
            for response in oracle.answer(study.ask()):
                study.receive(response)
                if checked is not None and checked.shim_unsynced():
                    raise SystemExit("tell returned with bytes not synced")
        return trajectory(study.result())


def trajectory(result: pzos.Result) -> str:
    columns = {name: result.trace[name].tobytes().hex() for name in result.trace.columns if name != "seconds"}
    points = [point.tobytes().hex() for point in (result.x, result.best_x, result.random_x)]
    return json.dumps([columns, points, result.queries, result.monitoring, result.failures])


def noted(folder: Path) -> Counter[bytes]:
    """Return how often each query was paid."""
    calls = folder / "calls"
    notes = calls.read_bytes() if calls.exists() else b""
    return Counter(notes[at : at + NOTE] for at in range(0, len(notes), NOTE))


def forked(work: Any) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def wait_for(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def finish(folder: Path, steps: int, workers: int) -> str:
    """Resume in a process of its own, as a user would."""
    result = folder / "result"
    code = wait_for(forked(lambda: result.write_text(drive(folder, steps, workers, 0.0))))
    return result.read_text() if code == 0 else f"the resumed process failed ({code})"


def random_kills(kills: int, steps: int = 12, seed: int = 0) -> dict[str, int]:
    """Kill once at a random moment, resume, compare; half of the runs with 4 threads."""
    moments = random.Random(seed)
    counts = {"kills": 0, "ended before the kill": 0, "different": 0, "queries paid twice": 0, "too many calls": 0}
    with tempfile.TemporaryDirectory(dir=".") as root:
        undisturbed, needed, spans = {}, {}, {}
        for workers in (1, 4):
            folder = Path(root, f"undisturbed{workers}")
            folder.mkdir()
            start = time.perf_counter()
            wait_for(forked(lambda: (folder / "result").write_text(drive(folder, steps, workers, 0.0005))))  # noqa: B023
            spans[workers] = time.perf_counter() - start
            undisturbed[workers] = (folder / "result").read_text()
            needed[workers] = noted(folder)
        for number in itertools.count():
            if counts["kills"] == kills:
                break
            workers = (1, 4)[number % 2]
            folder = Path(root, f"{number}")
            folder.mkdir()
            child = forked(lambda: drive(folder, steps, workers, 0.0005))  # noqa: B023
            time.sleep(moments.uniform(0.0, spans[workers]))
            os.kill(child, signal.SIGKILL)
            killed = wait_for(child) == -signal.SIGKILL
            counts["kills" if killed else "ended before the kill"] += 1
            counts["different"] += finish(folder, steps, workers) != undisturbed[workers]
            again = noted(folder) - needed[workers]  # each query at most once more, and only if it was in flight
            in_flight = (1 if workers == 1 else BATCH) if killed else 0
            counts["queries paid twice"] += again.total()
            counts["too many calls"] += again.total() > in_flight or max(again.values(), default=0) > 1
            shutil.rmtree(folder)
    return counts


def chained_kills(steps: int = 20, seed: int = 1) -> dict[str, int]:
    """Kill one study again and again, always a little later, until a run survives."""
    moments = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=".") as root:
        folders = [Path(root, name) for name in ("plain", "killed")]
        for folder in folders:
            folder.mkdir()
        expected = finish(folders[0], steps, 1)
        kills = 0
        while True:
            child = forked(lambda: drive(folders[1], steps, 1, 0.0005))
            time.sleep(moments.uniform(0.0, 0.02) + 0.003 * kills)
            os.kill(child, signal.SIGKILL)
            if wait_for(child) == 0:
                break
            kills += 1
        again = (noted(folders[1]) - noted(folders[0])).total()
        different = finish(folders[1], steps, 1) != expected
    return {"kills": kills, "different": int(different), "queries paid twice": again, "too many calls": again > kills}


def write_boundaries(steps: int = 2, every: int = 1) -> dict[str, int]:
    """Die before, and half-way through, each call that changes a file (run with the shim preloaded)."""
    shim = ctypes.CDLL(None)
    counts = {"boundaries": 0, "deaths": 0, "different": 0, "too many calls": 0, "tells left unsynced": 0}
    with tempfile.TemporaryDirectory(dir=".") as root:
        plain = Path(root, "plain")
        plain.mkdir()

        def measured() -> None:
            shim.shim_arm(ctypes.c_long(10**9), 0)
            text = drive(plain, steps, 1, 0.0, shim)
            boundaries = shim.shim_count()
            shim.shim_arm(ctypes.c_long(-1), 0)
            (plain / "boundaries").write_text(str(boundaries))
            (plain / "result").write_text(text)

        counts["tells left unsynced"] = int(wait_for(forked(measured)) != 0)
        expected, needed = (plain / "result").read_text(), noted(plain).total()
        boundaries = int((plain / "boundaries").read_text())
        for at, mode in ((at, mode) for at in range(0, boundaries, every) for mode in (0, 1)):
            folder = Path(root, f"{at}-{mode}")
            folder.mkdir()

            def doomed(folder: Path = folder, at: int = at, mode: int = mode) -> None:
                shim.shim_arm(ctypes.c_long(at), mode)
                drive(folder, steps, 1, 0.0)

            counts["boundaries"] += mode == 0
            counts["deaths"] += wait_for(forked(doomed)) == -signal.SIGKILL
            counts["different"] += finish(folder, steps, 1) != expected
            counts["too many calls"] += (folder / "calls").stat().st_size // NOTE > needed + 1
            shutil.rmtree(folder)
    return counts


def apart(function: str, *arguments: str, preload: str = "") -> dict[str, int]:
    """Run one function of this file in a fresh process: one with threads of other libraries should not be forked."""
    where = str(Path(pzos.__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": where, **({"LD_PRELOAD": preload} if preload else {})}
    command = [sys.executable, __file__, function, *arguments]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def with_shim(function: str, *arguments: str) -> dict[str, int] | None:
    """Run one function of this file in a process that has the shim preloaded; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "shim.so")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"], check=True)
        return apart(function, *arguments, preload=str(library))


def main(arguments: list[str]) -> int:
    machine()  # looked up before the first fork, so that children spend their time on the study
    parts: dict[str, Any] = {"write_boundaries": write_boundaries, "random_kills": random_kills}
    if arguments and arguments[0] in parts:
        print(json.dumps(parts[arguments[0]](*map(int, arguments[1:]))))
        return 0
    small = arguments[:1] == ["--small"]
    kills = 20 if small else int(arguments[0]) if arguments else 200
    print(f"pzos {pzos.__version__}  numpy {np.__version__}  python {sys.version.split()[0]}")
    found = {"random moments": random_kills(kills, 8 if small else 12)}
    if not small:
        found["chained"] = chained_kills()
    found["write boundaries"] = with_shim("write_boundaries", "1" if small else "2") or {}
    bad = 0
    for name, counts in found.items():
        print(f"{name}: " + (", ".join(f"{label} {count}" for label, count in counts.items()) or "skipped (no cc)"))
        bad += sum(counts.get(label, 0) for label in ("different", "too many calls", "tells left unsynced"))
        bad += counts.get("boundaries", 0) * 2 != counts.get("deaths", 0)
    if not small:
        bad += kill_kinds.main([str(max(kills // 8, 1))])
    print("met" if bad == 0 else "NOT MET")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
