"""What a durable ``tell`` costs against a bare write and sync of the same bytes, and what opening a study costs.

Run:  python benchmarks/durable.py [ANSWERS]          (100,000 by default; in a directory on the disk to measure)

The sync is the one that studies use (fdatasync where there is one). Opening is measured on files of several sizes: the
time must grow in proportion to the bytes. Times of opening, of ``pzos status`` and of a report of 1000 studies are
seconds of processor time (start of Python included), because others may use this machine too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import pzos
from pzos.base.frames import sync
from pzos.base.types import Query, Response
from pzos.durable.contents import packed
from pzos.durable.log import create, read_study
from pzos.durable.replay import header_of, summary
from pzos.study.events import Event

TELLS, WIDTH, ROUNDS = 300, 1000, 5
LEADER = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0.0 * x, lambda x, y: np.ones_like(y))


def study_of(width: int, file: Path | None = None, **given: object) -> pzos.Study:
    known = pzos.Problem(LEADER, np.abs, x0=np.ones(width)).known()
    solver = pzos.PZOS(step=0.01)
    return pzos.Study.open(file, known, solver, **given) if file else pzos.Study(known, solver, **given)


def bare_and_append(folder: Path, number: int, size: int) -> tuple[float, float]:
    """Median seconds of a bare synced write of ``size`` bytes and of appending an answer to a log, in turns."""
    descriptor = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    log = create(folder / f"log-{number}.study", header_of(study_of(WIDTH)))
    data, x, bare, append = os.urandom(size), np.ones(WIDTH), list[float](), list[float]()
    for step in range(TELLS):
        query, response = Query(step, 0, x), Response(step, 0, x)
        start = time.perf_counter()
        os.write(descriptor, data)
        sync(descriptor)
        between = time.perf_counter()
        log.append(query, response, 0.0)
        bare.append(between - start)
        append.append(time.perf_counter() - between)
    os.close(descriptor)
    log.close()
    return median(bare), median(append)


def tells(study: pzos.Study) -> float:
    """Median seconds of an answer told to a study, the solver's own work included."""
    answer, seconds = np.ones(WIDTH), list[float]()
    while len(seconds) < TELLS:
        for query in study.ask():
            start = time.perf_counter()
            study.tell(query, answer)
            seconds.append(time.perf_counter() - start)
    study.close()
    return median(seconds)


def writing(folder: Path) -> bool:
    size = 2 * 8 * WIDTH
    rounds = [
        (
            *bare_and_append(folder, number, size),
            tells(study_of(WIDTH, folder / f"study-{number}.study")),
            tells(study_of(WIDTH)),
        )
        for number in range(ROUNDS)
    ]
    bare, append, durable, memory = (median(column) for column in zip(*rounds, strict=True))
    ratio = median(append / bare for bare, append, *_ in rounds)
    print(f"d_x = d_y = {WIDTH}, {size} bytes per answer, medians of {ROUNDS} rounds of {TELLS}:")
    print(f"  bare write and sync {bare * 1e6:.0f} us, append to a study {append * 1e6:.0f} us")
    print(f"  tell on a durable study {durable * 1e6:.0f} us, in memory {memory * 1e6:.0f} us")
    print(f"  append over bare {ratio:.2f} (bar <= 1.2): {'met' if ratio <= 1.2 else 'NOT MET'}")
    return ratio <= 1.2


def written(folder: Path, answers: int, width: int) -> Path:
    """Write a study with that many answers, as a run would, but with one sync in all."""
    study, known = study_of(width, steps=10**9), list[Event]()
    while len(known) < answers:
        for query in study.ask():
            response = Response(query.step, query.index, np.ones(width), seconds=0.1)
            known.append(Event(query, response, 0.0))
            study.receive(response)
    path = folder / f"{answers}-{width}.study"
    create(path, header_of(study), packed(known)).close()
    return path


def seconds_of(work: Callable[[], object]) -> float:
    """Seconds of processor time, of this process and those it started."""
    start = sum(os.times()[:4])
    work()
    return sum(os.times()[:4]) - start


def command(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pzos", *arguments], check=True, stdout=subprocess.DEVNULL)


def report(folder: Path, studies: int = 1000) -> bool:
    """A page about a thousand studies of twenty steps."""
    first = folder / "0.study"
    with study_of(5, first, steps=20) as study:
        while not study.done:
            for query in study.ask():
                study.tell(query, np.abs(query.x))
    copies = [folder / f"{number}.study" for number in range(1, studies)]
    for copy in copies:
        shutil.copyfile(first, copy)
    place = str(folder / "page.html")
    seconds = seconds_of(lambda: command("report", str(first), *map(str, copies), "--out", place))
    print(f"report of {studies} studies: {seconds:.1f} s (bar 60 s): {'met' if seconds <= 60 else 'NOT MET'}")
    return seconds <= 60


def opening(folder: Path, answers: int) -> bool:
    rows, met = [], True
    print("opening, in seconds of processor time:")
    for count, width, limit, look in (
        (answers // 4, 2, np.inf, np.inf),
        (answers // 2, 2, np.inf, np.inf),
        (answers, 2, 3.0, 2.0),
        (38, 100_000, 2.0, 2.0),
    ):
        path = written(folder, count, width)
        size = path.stat().st_size
        opened = min(seconds_of(lambda: study_of(width, path, read_only=True, steps=10**9).close()) for _ in range(2))  # noqa: B023
        looked = min(seconds_of(lambda: summary(path)) for _ in range(2))  # noqa: B023
        read = min(seconds_of(lambda: read_study(path)) for _ in range(2))  # noqa: B023
        rows.append((size, read) if width == 2 else None)
        met &= opened <= limit and looked <= look
        if width > 2:
            with path.open("ab") as file:  # as a kill in the middle of a write leaves it
                file.write(path.read_bytes()[-800_000:-1])
            torn = seconds_of(lambda: study_of(width, path, steps=10**9).close())  # noqa: B023
            met &= torn <= limit
            print(f"  the same after a kill: opened, its torn end recognised, and closed in {torn:.2f} s")
        elif limit < np.inf:
            shown = seconds_of(lambda: command("status", str(path)))  # noqa: B023
            met &= shown <= look
            print(f"  pzos status: {shown:.2f} s (bar {look:g} s)")
        print(
            f"  {count} answers, d = {width}, {size / 1e6:.1f} MB: read {read:.2f} s, summary {looked:.2f} s, "
            f"opened and replayed {opened:.2f} s" + (f" (bars {limit:g}, {look:g} s)" if limit < np.inf else "")
        )
    sizes, reads = np.array([row for row in rows if row]).T
    power = np.polyfit(np.log(sizes), np.log(reads), 1)[0]
    slope = float(np.polyfit(sizes, reads, 1)[0])
    print(f"  reading takes {slope * 1e6:.3f} s per MB, as bytes to the power {power:.2f} (bar 1.15)")
    return bool(met and power <= 1.15)


def main(arguments: list[str]) -> int:
    print(f"pzos {pzos.__version__}  python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory(dir=".") as root:
        met = [writing(Path(root)), opening(Path(root), int(arguments[0]) if arguments else 100_000)]
        met.append(report(Path(root)))
    print("met" if all(met) else "NOT MET")
    return int(not all(met))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
