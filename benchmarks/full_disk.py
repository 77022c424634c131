"""A disk that is full after any number of bytes: one clear error, no lock left behind, and nothing told before it lost.

Run:  python benchmarks/full_disk.py [EVERY]          (1, every byte, by default; needs limits on the size of files)

No file may grow beyond a limit, which is set to every number of bytes that the work writes: a run told answer by
answer, one whose follower answers batches as one, one that first sets a torn end aside, an answer taken back, and a
recovery. Then there is room again, and the same work must end as if nothing had happened.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import pzos
import pzos.base.frames
from kill_kinds import LEADER
from pzos.durable.log import open_log, read_study, recover, take_back

STEPS = 2


@contextlib.contextmanager
def room(size: int) -> Iterator[None]:
    """Let no file grow beyond ``size`` bytes; Python ignores the signal that comes with it, so a write just fails."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


class Drill:
    """Work on the study of one folder that can be done again until it is done."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "s.study"
        self.asked = 0
        self.kept = 0

    def respond(self, x: np.ndarray) -> np.ndarray:
        """Answer one query or, in rows, several, and count them."""
        self.asked += 1 if x.ndim == 1 else len(x)
        return np.abs(x - 0.3)

    def run(self, *, batched: bool = False) -> bytes:
        """Run the study to its end; returns its result, bit for bit."""
        follower = pzos.batched(self.respond) if batched else self.respond
        game = pzos.Problem(LEADER, follower, x0=np.ones(2), follower_name="kinks")
        with pzos.Study.open(self.path, game.known(), pzos.PZOS(), steps=STEPS) as study:
            for _ in pzos.iterate(study, pzos.Oracle(game.follower)):
                pass
            found = study.result()
        return b"".join(point.tobytes() for point in (found.x, found.best_x, found.random_x, found.trace["value"]))

    def run_batched(self) -> bytes:
        return self.run(batched=True)

    def standing(self) -> bytes:
        """Return what stands in the file, bit for bit, but for how long it took."""
        told = [
            (*query[:2], aside, query.x.tobytes(), response and response.y.tobytes())
            for query, response, _, aside in read_study(self.path).events
        ]
        return repr(told).encode()

    def torn(self) -> bytes:
        """Run on from a file that a kill left with half a frame at its end."""
        if not self.path.exists():
            with room(10**9):
                self.run()
                self.path.write_bytes(self.path.read_bytes()[:-150])
        return self.run()

    def take_back(self) -> bytes:
        if not self.path.exists():
            with room(10**9):
                self.run()
        if not read_study(self.path).withdrawn:
            take_back(self.path, STEPS - 1, 1, "a detour")
        return self.standing()

    def recover(self) -> bytes:
        damaged = self.path.with_name("damaged")
        if not damaged.exists():
            with room(10**9):
                self.run()
                data = bytearray(self.path.read_bytes())
                data[-200] ^= 1
                damaged.write_bytes(data)
                self.path.unlink()
        recover(damaged, self.path)
        return self.standing()


KINDS: tuple[Callable[[Drill], bytes], ...] = (
    Drill.run,
    Drill.run_batched,
    Drill.torn,
    Drill.take_back,
    Drill.recover,
)


def fault(work: Callable[[Drill], bytes], size: int, expected: bytes, needed: int, root: Path) -> str:
    """Do the work with room for ``size`` bytes, and once more with room for all; returns what was wrong."""
    folder = Path(tempfile.mkdtemp(dir=root))
    drill = Drill(folder)
    told = 0
    try:
        with room(size):
            done = work(drill)
    except pzos.PzosError as error:
        if "\n" in str(error) or "room" not in str(error):
            return f"no clear sentence: {error}"
        if drill.path.exists():
            open_log(drill.path).close()  # nobody holds it
            told = len(read_study(drill.path).answers)
        if list(folder.glob("*.new")):
            return "a draft was left behind"
        before = drill.asked
        done = work(drill)
        if told + drill.asked - before > needed and work in (Drill.run, Drill.run_batched):
            return "an answer on the disk was asked for again"
    shutil.rmtree(folder)
    return "" if done == expected else "another result"


def drilled(work: Callable[[Drill], bytes], every: int, root: Path) -> int:
    quiet = Drill(Path(tempfile.mkdtemp(dir=root)))
    expected = work(quiet)
    most = max(file.stat().st_size for file in quiet.path.parent.iterdir()) + 1
    faults = [(size, fault(work, size, expected, quiet.asked, root)) for size in range(0, most + 1, every)]
    bad = [(size, text) for size, text in faults if text]
    print(f"{work.__name__}: {len(faults)} limits up to {most} bytes, {len(bad)} faults", *bad[:5], sep="\n  ")
    return len(bad)


def main(arguments: list[str]) -> int:
    every = int(arguments[0]) if arguments else 1
    print(f"pzos {pzos.__version__}  numpy {np.__version__}  python {sys.version.split()[0]}")
    pzos.base.frames.sync = lambda descriptor: None  # the drill is about room; waiting for the disk would take hours
    with tempfile.TemporaryDirectory(dir=os.curdir) as root:
        bad = sum(drilled(work, every, Path(root)) for work in KINDS)
    print("met" if bad == 0 else "NOT MET")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
