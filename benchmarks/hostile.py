"""Files made to harm: sizes that are lies, types that are others, nesting, control characters, markup, formulas, pipes.

Run:  python benchmarks/hostile.py [FILES [SEED]]          (200 by default; needs fork)

It fails where a file does harm; time and memory are measured, printed beside their bars, and fail nothing, because they
are the machine's as well.

Every file is looked at, exported, reported and recovered by the commands, each in a process of its own. Each must end
within 2 s of processor time (its imports left out) and 200 MB of memory, with one clear sentence or a result; nothing
that steers a terminal or a page may come out, and no cell of a table may begin a formula.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import random
import resource
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pzos
from pzos.base.frames import NOTHING_BEFORE, framed
from pzos.cli.main import main as command

SECONDS, MEGABYTES = 2.0, 200.0
WORST = [(0.0, ""), (0.0, "")]  # seconds and megabytes, and of what
STEERING = [chr(code) for code in (*range(9), *range(11, 32), 127, 0x9B, 0x202E, 0x2028)]
NASTY = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\u202e\x00=cmd()"
IDENTITY = {
    "problem": {"name": "p", "dimension": 1, "sense": "min"},
    "solver": {"type": "pzos.PZOS"},
    "seed": 0,
    "monitor": True,
}
HEADER: dict[str, Any] = {"format": 2, "versions": {"pzos": "0.1.0", "numpy": "2"}, "identity": IDENTITY}
EVENT = struct.Struct("<cqqddd5I")


def study(payloads: list[bytes], identity: bytes = b"\1" * 8) -> bytes:
    """A file whose frames are all intact, whatever they hold."""
    frames, last = [], NOTHING_BEFORE
    for number, payload in enumerate(payloads):
        frame, last = framed(identity, number, last, payload)
        frames.append(frame)
    return b"".join(frames)


def header(**changes: Any) -> bytes:
    return b"h" + json.dumps({**HEADER, **changes}).encode()


def answer(step: int = 0, index: int = 0, x: bytes = bytes(8), y: bytes = bytes(8), failure: bytes = b"",
           purpose: bytes = b"iterate", sizes: tuple[int, ...] | None = None) -> bytes:  # fmt: skip
    parts = purpose, x, y, failure, b""
    told = sizes or tuple(len(part) for part in parts)
    return EVENT.pack(b"a", step, index, 0.0, 0.0, 0.0, *told) + b"".join(parts)


def anything(chance: random.Random, depth: int = 0) -> Any:
    """A value of any type that JSON has."""
    leaves: list[Any] = [None, True, -1, 10**30, 1e308, float("nan"), "", NASTY, "x" * 5000, [], {}]
    if depth > 3 or chance.random() < 0.5:
        return chance.choice(leaves)
    if chance.random() < 0.5:
        return [anything(chance, depth + 1) for _ in range(chance.randint(0, 5))]
    return {chance.choice(["name", "type", NASTY, "step"]): anything(chance, depth + 1) for _ in range(3)}


def types(chance: random.Random) -> bytes:
    """A header in which one thing, at any depth, is of another type."""
    changed = json.loads(json.dumps({**HEADER, "created": "now", "platform": "here"}))
    place = chance.choice([changed, changed["identity"], changed["identity"]["problem"], changed["versions"]])
    place[chance.choice(list(place))] = anything(chance)
    return study([b"h" + json.dumps(changed).encode(), answer()])


def notes(chance: random.Random) -> bytes:
    kinds = ["opened", "closed", "withdrawn", "leader", "recovered", anything(chance)]
    told = [
        {"kind": chance.choice(kinds), **{name: anything(chance) for name in
         ("step", "index", "pid", "host", "since", "stop", "machine", "difference", "value")}}
        for _ in range(5)
    ]  # fmt: skip
    return study([header(), answer(), *(b"n" + json.dumps(note).encode() for note in told)])


def texts(chance: random.Random) -> bytes:
    problem = {**IDENTITY["problem"], "name": NASTY, "follower": {"name": NASTY, "unknown": NASTY}}  # type: ignore[dict-item]
    identity = {**IDENTITY, "problem": problem, "solver": {"type": NASTY, NASTY: NASTY}}
    failure = chance.choice([NASTY, "=1+1", "+1", "-1", "@x", "\x1b[0m"]).encode()
    return study([header(identity=identity, created=NASTY), answer(), answer(1, failure=failure, y=b"")])


def sizes(chance: random.Random) -> bytes:
    big = chance.choice([2**31 - 1, 2**32 - 1, 10**9])
    lie = tuple(big if chance.random() < 0.4 else chance.randint(0, 9) for _ in range(5))
    frame = bytearray(study([header(), answer(sizes=lie)]))
    if chance.random() < 0.5:
        frame[20:28] = struct.pack("<Q", chance.choice([2**63, 2**40, 2**31]))  # the length of the first frame
    return bytes(frame)


def events(chance: random.Random) -> bytes:
    odd = chance.choice([b"", bytes(7), bytes(8 * 40_000), struct.pack("<d", float("nan")), b"\xff" * 8])
    purpose = chance.choice([b"iterate", b"monitor", b"\xff\xfe", b"x" * 3000])
    step = chance.choice([0, -1, 2**62, 10**6])
    return study([header(), *(answer(step, number, x=odd, y=odd, purpose=purpose) for number in range(20))])


def nesting(chance: random.Random) -> bytes:
    depth = chance.choice([10**3, 10**5, 4 * 10**6])
    text = chance.choice([b"[" * depth, b'{"a":' * depth, b"[" * depth + b"]" * depth, b"[" + b"[]," * depth + b"0]"])
    return study([chance.choice([b"h", b"n"]) + text])


def junk(chance: random.Random) -> bytes:
    return chance.choice([b"", b"pzos", b"pzos" * 10**6, b"\0" * 10**7, chance.randbytes(10**6), b"SQLite format 3\0",
                          b"SQLite format 3\0" + chance.randbytes(5000), b"pzos" + b"\xff" * 10**6])  # fmt: skip


def taking_back(chance: random.Random) -> bytes:
    count = chance.choice([10, 5000])
    back = [b'n{"kind":"withdrawn","step":%d,"index":0}' % number for number in range(count)]
    told = [answer(number) for number in range(count)]
    pairs = [payload for pair in zip(told, reversed(back), strict=True) for payload in pair]
    return study([header(), *(told + back if chance.random() < 0.5 else pairs)])


KINDS: tuple[Callable[[random.Random], bytes], ...] = (
    types, types, types, notes, texts, sizes, events, nesting, junk, taking_back,
)  # fmt: skip


def files(count: int, seed: int, folder: Path) -> Iterator[tuple[str, Path]]:
    chance = random.Random(seed)
    for number in range(count):
        path = folder / f"{number}.study"
        if number == 0:
            os.mkfifo(path)
            yield "a pipe", path
        elif number == 1:
            path.symlink_to("/dev/zero")
            yield "a device", path
        elif number == 2:
            path.symlink_to(path)
            yield "a link to itself", path
        elif number == 3:
            with path.open("wb") as file:
                file.truncate(50 * 10**6)
            yield "a hole", path
        else:
            make = KINDS[number % len(KINDS)]
            path.write_bytes(make(chance))
            yield make.__name__, path


def commands(path: Path, out: Path) -> Iterator[list[str]]:
    yield ["status", str(path)]
    yield ["export", str(path), str(out / "table.csv")]
    yield ["watch", str(path), "--once"]
    yield ["recover", str(path), "--out", str(out / "saved.study")]
    yield ["report", str(path), "--out", str(out / "page.html")]


def looked_at(words: list[str], out: Path) -> list[str]:
    """Run one command in a process of its own; returns what was wrong with it."""
    said = out / "said"
    child = os.fork()
    if child == 0:
        code = 99
        with said.open("w", encoding="utf-8", errors="surrogatepass") as file:
            try:
                with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                    code = command(words)
            except BaseException:  # noqa: BLE001  # any error that gets here is what this benchmark looks for
                traceback.print_exc(file=file)
        (out / "peak").write_text(str(peak()))
        os._exit(code)
    _, status, used = os.wait4(child, 0)
    seconds, megabytes = used.ru_utime + used.ru_stime, float((out / "peak").read_text())
    text = said.read_text(encoding="utf-8", errors="surrogatepass")
    wrong = []
    if os.waitstatus_to_exitcode(status) not in (0, 2, 3, 4):
        wrong.append(f"exit {os.waitstatus_to_exitcode(status)}: {text.strip().splitlines()[-1:]}")
    if os.waitstatus_to_exitcode(status) and len(text) > 2000:
        wrong.append(f"{len(text)} characters instead of a sentence")
    if any(char in text for char in STEERING):
        wrong.append("characters that steer a terminal")
    what = f"{words[0]} {Path(words[1]).name}"
    WORST[:] = max(WORST[0], (seconds, what)), max(WORST[1], (megabytes, what))
    return wrong


def peak() -> float:
    """Megabytes this process held at most; Linux counts those of its parent in ru_maxrss, so it is asked by name."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    held = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(held.split()[1]) / 1024


def results(out: Path) -> list[str]:
    """Look into what was written."""
    wrong, page, table = [], out / "page.html", out / "table.csv"
    if page.exists():
        text = page.read_text(encoding="utf-8")
        if "<script>alert" in text or "\x1b" in text or "\u202e" in text:
            wrong.append("markup or control characters in the page")
    if table.exists():
        cells = (cell for row in csv.reader(io.StringIO(table.read_text(encoding="utf-8"))) for cell in row)
        wrong += [f"a formula in the table: {cell:.100}" for cell in cells if _is_formula(cell)]
    return wrong


def _is_formula(cell: str) -> bool:
    with contextlib.suppress(ValueError):
        float(cell)
        return False
    return cell[:1] in tuple("=+-@")


def warm_up(folder: Path) -> None:
    """Run every command once on a harmless file, so that what is measured is the file and not the start of Python."""
    path = folder / "harmless"
    path.write_bytes(study([header(), answer()]))
    with tempfile.TemporaryDirectory(dir=folder) as out:
        for words in commands(path, Path(out)):
            with contextlib.redirect_stdout(io.StringIO()):
                if command(words) != 0:
                    raise SystemExit(f"pzos {words[0]} fails on a harmless file")


def main(arguments: list[str]) -> int:
    count, seed = (*map(int, arguments), *(200, 0)[len(arguments) :])
    print(f"pzos {pzos.__version__}  numpy {np.__version__}  python {sys.version.split()[0]}")
    failures = []
    with tempfile.TemporaryDirectory(dir=".") as root:
        warm_up(Path(root))
        for what, path in files(count, seed, Path(root)):
            with tempfile.TemporaryDirectory(dir=root) as out:
                for words in commands(path, Path(out)):
                    failures += [f"{path.name} ({what}), {words[0]}: {line}" for line in looked_at(words, Path(out))]
                failures += [f"{path.name} ({what}): {line}" for line in results(Path(out))]
    for line in failures[:20]:
        print("  " + line)
    print(f"{count} files, {len(failures)} failures")
    for (most, what), bar, unit in zip(WORST, (SECONDS, MEGABYTES), ("s", "MB"), strict=True):
        print(f"at most {most:.2f} {unit} ({what}; bar {bar:.0f}): {'met' if most <= bar else 'NOT MET'}")
    return int(bool(failures))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
