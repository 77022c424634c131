"""Damage study files in a thousand ways: flipped bits, torn blocks, cut ends, doubled, swapped and foreign frames.

Run:  python benchmarks/damage.py [MUTATIONS [SEED]]          (1000 by default)

Every damaged file is opened, or recovered and then opened, and run to its end. Counted are: outcomes that are not one
clear error of the package's own (a traceback), trajectories that differ from the undisturbed one, and answers asked
again although no byte of them was touched.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

import pzos
from pzos.base.errors import DamagedStudy, PzosError
from pzos.base.frames import scan
from pzos.durable.log import recover
from pzos.study.run import drive

STEPS = 8
ANSWER = b"a"
KINDS = (
    "flip",
    "flip",
    "flips",
    "zeros",
    "noise",
    "moved",
    "cut",
    "longer",
    "doubled",
    "swapped",
    "foreign",
    "dropped",
)


class Case(NamedTuple):
    """A pristine study: its bytes, its trajectory, the frames of its answers, and frames of another study."""

    name: str
    width: int
    data: bytes
    expected: bytes
    answers: list[bytes]
    foreign: list[bytes]


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


def frames_of(data: bytes) -> list[bytes]:
    return [data[frame.start : frame.end] for frame in scan(data)]


def pristine(folder: Path, name: str, width: int, *, killed: bool) -> Case:
    path, other = folder / "pristine.study", folder / "other.study"
    expected, asked = run(path, width)
    run(other, width)
    if killed:
        path.unlink()
        subprocess.run([sys.executable, __file__, "die", str(path), str(width)], check=False)
    data, foreign = path.read_bytes(), frames_of(other.read_bytes())
    answers = [data[frame.start : frame.end] for frame in scan(data) if frame.payload[:1] == ANSWER]
    if len(answers) != asked:
        raise SystemExit(f"{name}: {len(answers)} answers found in the pristine file, {asked} were asked")
    path.unlink()
    other.unlink()
    return Case(name, width, data, expected, answers, foreign)


def mutate(case: Case, chance: random.Random) -> tuple[bytes, str]:
    """Return the damaged bytes and what was done to them."""
    data, frames = bytearray(case.data), frames_of(case.data)
    kind, at = chance.choice(KINDS), chance.randrange(len(frames))
    if kind in ("flip", "flips"):
        for _ in range(1 if kind == "flip" else chance.randint(2, 40)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind in ("zeros", "noise", "moved"):
        length = min(chance.choice((16, 512, 4096, 8192)), len(data) // 2)
        start, other = chance.randrange(len(data) - length), chance.randrange(len(data) - length)
        block = {"zeros": bytes(length), "noise": chance.randbytes(length), "moved": data[other : other + length]}
        data[start : start + length] = block[kind]
    elif kind == "longer":
        data += chance.randbytes(chance.randint(1, 9000))
    elif kind == "cut":
        del data[chance.randrange(len(data) + 1) :]
    else:
        if kind == "doubled":
            frames.insert(chance.randrange(len(frames)), frames[at])
        elif kind == "swapped":
            other = chance.randrange(len(frames))
            frames[at], frames[other] = frames[other], frames[at]
        elif kind == "dropped":
            del frames[at]
        else:
            frames[at : at + chance.randrange(2)] = chance.sample(case.foreign, chance.randint(1, 5))
        data = bytearray(b"".join(frames))
    return bytes(data), kind


def judge(case: Case, data: bytes, folder: Path) -> tuple[str, list[str]]:
    """Open, or recover and open, a damaged study, and return how it went and what was wrong with that."""
    path, saved = folder / "damaged.study", folder / "saved.study"
    for old in folder.iterdir():
        old.unlink()
    path.write_bytes(data)
    safe, wrong = sum(answer in data for answer in case.answers), []
    try:
        outcome = "opened"
        try:
            trajectory, asked = run(path, case.width)
        except DamagedStudy as error:
            outcome = "recovered"
            if "Traceback" in str(error) or not str(error).strip() or path.read_bytes() != data:
                wrong.append("unclear message, or the file was touched")
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
    if asked > len(case.answers) - safe:
        wrong.append(f"lost intact answers: {asked} asked again, {len(case.answers) - safe} were touched")
    return outcome, wrong


def damage(mutations: int, seed: int = 0) -> list[str]:
    """Make and judge that many damaged files; returns what went wrong, one line each."""
    chance, outcomes, failures = random.Random(seed), Counter[str](), []
    with tempfile.TemporaryDirectory(dir=".") as root:
        folder = Path(root)
        cases = [
            pristine(folder, "small answers", 10, killed=False),
            pristine(folder, "long answers", 1500, killed=False),
            pristine(folder, "killed", 10, killed=True),
        ]
        for number in range(mutations):
            case = cases[number % len(cases)]
            data, what = mutate(case, chance)
            outcome, wrong = judge(case, data, folder)
            outcomes[outcome] += 1
            failures += [f"mutation {number} ({case.name}; {what}): {line}" for line in wrong]
    print(f"{mutations} mutations: " + ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items())))
    for line in failures[:20]:
        print("  " + line)
    return failures


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["die"]:
        run(Path(arguments[1]), int(arguments[2]), die=True)
    mutations, seed = (*map(int, arguments), *(1000, 0)[len(arguments) :])
    print(f"pzos {pzos.__version__}  numpy {np.__version__}  python {sys.version.split()[0]}")
    failures = damage(mutations, seed)
    print("met" if not failures else "NOT MET")
    return int(bool(failures))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
