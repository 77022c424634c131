"""Damage study files in a thousand ways: flipped bits, torn blocks, cut ends, also in the log of a killed process.

Run:  python benchmarks/damage.py [MUTATIONS]          (1000 by default)

Every damaged file is opened, or recovered and then opened, and run to its end. Counted are: outcomes that are not one
clear error of the package's own (a traceback), trajectories that differ from the undisturbed one, and answers asked
again although no byte of them was touched.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

import pzos
import pzos.durable.salvage as format_reader
from pzos.base.errors import DamagedStudy, PzosError
from pzos.durable.journal import recover
from pzos.study.run import drive

STEPS = 8
Span = tuple[str, int, int]


class Case(NamedTuple):
    """A pristine study: its files, its trajectory, and where each answer lies (each copy a list of byte spans)."""

    name: str
    width: int
    files: dict[str, bytes]
    expected: bytes
    copies: dict[object, list[list[Span]]]


def problem(width: int, calls: list[int]) -> pzos.Problem:
    mixing = np.cos(np.outer(np.arange(width), np.arange(1, 5)))

    def follower(x: np.ndarray) -> np.ndarray:
        calls.append(1)
        return np.abs(mixing @ x - 0.3) / width

    leader = pzos.leader_from_functions(
        lambda x, y: float(x @ x + y.sum()), lambda x, y: 2.0 * x, lambda x, y: np.ones_like(y), name="mixing"
    )
    return pzos.Problem(leader, follower, x0=np.linspace(1.0, 2.0, 4), name=f"mixing {width}")


def run(path: Path, width: int, *, die: bool = False) -> tuple[bytes, int]:
    """Run to the end; returns the trajectory and how many queries were asked."""
    calls: list[int] = []
    game = problem(width, calls)
    study = pzos.Study.open(path, game.known(), pzos.PZOS(step=0.05, radius=0.1), steps=STEPS, seed=3)
    result = drive(study, pzos.Oracle(game.follower), progress=False)
    if die:
        os.kill(os.getpid(), signal.SIGKILL)
    study.close()
    columns = [result.trace[name].tobytes() for name in result.trace.columns if name != "seconds"]
    return b"".join([*columns, result.x.tobytes(), result.random_x.tobytes(), result.best_x.tobytes()]), len(calls)


def pristine(folder: Path, name: str, width: int, *, killed: bool) -> Case:
    path = folder / "pristine.study"
    expected, asked = run(path, width)
    if killed:
        path.unlink()
        subprocess.run([sys.executable, __file__, "die", str(path), str(width)], check=False)
    files = {
        suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal") if Path(f"{path}{suffix}").exists()
    }
    for suffix in ("", "-wal", "-shm", ".lock"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    copies = spans_of_answers(files)
    if len(copies) != asked:
        raise SystemExit(f"{name}: {len(copies)} answers found in the pristine file, {asked} were asked")
    return Case(name, width, files, expected, copies)


def spans_of_answers(files: dict[str, bytes]) -> dict[object, list[list[Span]]]:
    """Say for each answer which bytes hold it, copy by copy (page links are not counted as bytes of an answer)."""
    main, log = files[""], files.get("-wal", b"")
    size = format_reader.PAGE_SIZE
    pages = [("", start) for start in range(0, len(main), size)]
    pages += [("-wal", start + 24) for start in range(32, len(log), 24 + size)]
    columns = len(format_reader.ANSWER_COLUMNS) + 1
    copies: dict[object, list[list[Span]]] = {}
    for suffix, start in pages:
        page = files[suffix][start : start + size]
        at = page.find(format_reader.ANSWER_MARK.encode())
        while at >= 0:
            for begin, types in format_reader._record_headers(page, at, columns):
                total = at - begin + sum(map(format_reader._size, types))
                spans = cell_spans(files, suffix, start, begin, total)
                payload = b"".join(files[part][a:b] for part, a, b in spans)
                values = format_reader._values(payload[at - begin :], types)
                row = format_reader.from_columns(values[1:]) if values else None
                if row is not None:
                    copies.setdefault(row.key, []).append(spans)
            at = page.find(format_reader.ANSWER_MARK.encode(), at + 1)
    return copies


def cell_spans(files: dict[str, bytes], suffix: str, start: int, begin: int, total: int) -> list[Span]:
    if total <= 4061:
        return [(suffix, start + begin, start + begin + total)]
    local = 489 + (total - 489) % 4092
    local = local if local <= 4061 else 489
    spans: list[Span] = [(suffix, start + begin, start + begin + local)]
    link, missing = start + begin + local, total - local
    while missing > 0:
        number = int.from_bytes(files[""][link : link + 4], "big")
        link = (number - 1) * 4096
        spans.append(("", link + 4, link + 4 + min(missing, 4092)))
        missing -= 4092
    return spans


def mutate(case: Case, chance: random.Random) -> tuple[dict[str, bytes], str]:
    """Return the damaged files and what was done to them."""
    files = dict(case.files)
    suffix = chance.choice(list(files))
    data = bytearray(files[suffix])
    kind = chance.choice(("flip", "flip", "flips", "zeros", "noise", "moved", "cut", "cut page", "longer"))
    if kind in ("flip", "flips"):
        for _ in range(1 if kind == "flip" else chance.randint(2, 40)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind in ("zeros", "noise", "moved"):
        length = min(chance.choice((16, 512, 4096, 8192)), len(data) // 2)
        start = chance.randrange(len(data) - length)
        other = chance.randrange(len(data) - length)
        block = {
            "zeros": bytes(length),
            "noise": chance.randbytes(length),
            "moved": bytes(data[other : other + length]),
        }
        data[start : start + length] = block[kind]
    elif kind == "longer":
        data += chance.randbytes(chance.randint(1, 9000))
    else:
        end = chance.randrange(len(data) + 1)
        del data[end if kind == "cut" else end - end % 4096 :]
    files[suffix] = bytes(data)
    return files, f"{kind} in {'the log' if suffix else 'the file'}"


def intact(case: Case, files: dict[str, bytes]) -> int:
    """Count the answers of which one copy at least is as it was."""

    def same(span: Span) -> bool:
        suffix, start, end = span
        return files[suffix][start:end] == case.files[suffix][start:end]

    return sum(any(all(map(same, copy)) for copy in copies) for copies in case.copies.values())


def judge(case: Case, files: dict[str, bytes], folder: Path) -> tuple[str, list[str]]:
    """Open, or recover and open, a damaged study, and return how it went and what was wrong with that."""
    path, saved = folder / "damaged.study", folder / "saved.study"
    for old in folder.iterdir():
        old.unlink()
    for suffix, data in files.items():
        Path(f"{path}{suffix}").write_bytes(data)
    safe, wrong = intact(case, files), []
    try:
        outcome = "opened"
        try:
            trajectory, asked = run(path, case.width)
        except DamagedStudy as error:
            outcome = "recovered"
            if "Traceback" in str(error) or not str(error).strip():
                wrong.append("unclear message")
            try:
                recover(path, saved)
                trajectory, asked = run(saved, case.width)
            except DamagedStudy:
                return "beyond repair", ["lost intact answers"] if safe else []
    except PzosError as error:
        return "refused", [f"refused: {error}"]
    except Exception as error:  # noqa: BLE001  # any other error is what this benchmark looks for
        return "traceback", [f"traceback: {type(error).__name__}: {error}"]
    if trajectory != case.expected:
        wrong.append("wrong trajectory")
    if asked > len(case.copies) - safe:
        wrong.append(f"lost intact answers: {asked} asked again, {len(case.copies) - safe} were touched")
    return outcome, wrong


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["die"]:
        run(Path(arguments[1]), int(arguments[2]), die=True)
    mutations = int(arguments[0]) if arguments else 1000
    print(f"pzos {pzos.__version__}  numpy {np.__version__}  python {sys.version.split()[0]}")
    failures = damage(mutations)
    print("met" if not failures else "NOT MET")
    return int(bool(failures))


def damage(mutations: int, seed: int = 0) -> list[str]:
    """Make and judge that many damaged files; returns what went wrong, one line each."""
    chance, outcomes, failures = random.Random(seed), Counter[str](), []
    with tempfile.TemporaryDirectory(dir=".") as root:
        folder = Path(root)
        cases = [
            pristine(folder, "small answers", 10, killed=False),
            pristine(folder, "answers over several pages", 1500, killed=False),
            pristine(folder, "killed, log left", 10, killed=True),
        ]
        for number in range(mutations):
            case = cases[number % len(cases)]
            files, what = mutate(case, chance)
            outcome, wrong = judge(case, files, folder)
            outcomes[outcome] += 1
            failures += [f"mutation {number} ({case.name}; {what}): {line}" for line in wrong]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    print(f"{mutations} mutations: " + ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items())))
    for line in failures[:20]:
        print("  " + line)
    return failures


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
