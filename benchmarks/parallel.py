"""Every worker busy: rounds and simulated time to a gap of .01, kills of runs that never wait, and own cost.

    python benchmarks/parallel.py [rounds order kills sigkills cost ...] [--best FILE] [--instances 3] [--first-seed 0]

Durations are simulated: constant for rounds, lognormal with sigma 1 (mean 1) for the two orders. Unstructured families
are those of benchmarks/unseen.py that are held back: proposals were tuned on the other half. Games were looked at with
seeds 0 to 2; others are reported. The best F known of an instance is found when first needed and kept in ``--best``.
"""

from __future__ import annotations

import argparse
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import heapq
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np

import pzos
from pzos.base.frames import scan
from pzos.durable.log import read_study
from testbed.unseen.families import make
from testbed.unseen.instance import Instance
from testbed.unseen.reference import Best

UNSTRUCTURED = (
    "quadratic-20", "softmax-12", "segments-8", "ball-15", "qp-coupled-15", "lasso-10", "sine-5", "all-scales-12",
    "tanh-40",
)  # fmt: skip
GAMES = ("security-50", "routing-0.1")
GAP = 0.01
SOLVER = pzos.CompositeTrustRegion()
MOST = {1: 150, 8: 50, 32: 40}


class Race:
    """One instance, run by simulated workers until its gap is small."""

    def __init__(self, instance: Instance, best: float) -> None:
        self.draft = instance.draft
        leader = self.draft.cost.leader(instance.family)
        self.known = pzos.Problem(leader, self.draft.respond, self.draft.x0, instance.domain).known()
        self.seed = instance.seed
        start = instance.true_value(self.draft.x0)
        self.goal = best + GAP * (start - best)

    def study(self, workers: int, order: str) -> pzos.Study:
        solver = pzos.CompositeTrustRegion(batch=1 if order == "told" else workers)
        return pzos.Study(self.known, solver, seed=self.seed, queries=MOST[workers] * workers, order=order)

    def answered(self, study: pzos.Study, query: pzos.Query) -> bool:
        """Tell the answer, and whether it reaches the goal."""
        y = np.asarray(self.draft.respond(query.x))
        study.tell(query, y)
        return bool(self.draft.cost.value(query.x, y) <= self.goal)

    def batches(self, workers: int, sigma: float = 0.0) -> float:
        """Return the time that batches take: each as long as its slowest answer."""
        study, rng, now = self.study(workers, "asked"), np.random.default_rng([self.seed, workers]), 0.0
        while not study.done:
            queries = study.ask()
            now += float(durations(rng, sigma, len(queries)).max())
            if any(self.answered(study, query) for query in queries):
                return now
        return float("inf")

    def as_told(self, workers: int, sigma: float) -> float:
        """Return the time that workers take who never wait."""
        study, rng, now = self.study(workers, "told"), np.random.default_rng([self.seed, workers]), 0.0
        out: list[tuple[float, int, pzos.Query]] = []
        while True:
            while len(out) < workers and (query := study.ask_one()) is not None:
                heapq.heappush(out, (now + float(durations(rng, sigma, 1)[0]), query.step, query))
            if not out:
                return float("inf")
            now, _, query = heapq.heappop(out)
            if self.answered(study, query):
                return now


def durations(rng: np.random.Generator, sigma: float, count: int) -> Any:
    """Return lognormal durations of mean 1; constant ones for sigma 0."""
    return np.exp(sigma * rng.standard_normal(count) - 0.5 * sigma**2)


def races(names: tuple[str, ...], seeds: range, best: Best) -> dict[str, list[Race]]:
    """Return the instances of each family."""
    return {name: [Race(item, best.of(item)) for item in (make(name, seed) for seed in seeds)] for name in names}


def shown(times: list[float]) -> str:
    """Return the times of the instances."""
    return "/".join("-" if t == float("inf") else f"{t:g}" if t == int(t) else f"{t:.1f}" for t in times)


def ratio(slow: list[float], fast: list[float]) -> float:
    """Return the ratio of medians; NaN where the median run of either does not end."""
    above, below = float(np.median(slow)), float(np.median(fast))
    return above / below if max(above, below) < float("inf") else float("nan")


def rounds(seeds: range, best: Best) -> None:
    """Print rounds to the gap: one at a time, 8 and 32 workers, constant durations."""
    gained: list[tuple[float, float]] = []
    for name, items in races(UNSTRUCTURED, seeds, best).items():
        one, eight, many = ([item.batches(workers) for item in items] for workers in (1, 8, 32))
        gained.append((ratio(one, eight), ratio(eight, many)))
        print(f"{name:<14} rounds 1: {shown(one)}  8: {shown(eight)}  32: {shown(many)}  "
              f"1/8 {gained[-1][0]:.1f}  8/32 {gained[-1][1]:.1f}", flush=True)  # fmt: skip
    table = np.array(gained)
    for column, what, bar in ((0, "8 workers over one", 3.0), (1, "32 workers over 8", 1.4)):
        found = table[np.isfinite(table[:, column]), column]
        print(f"{what}: median of families {np.median(found):.2f}, least {found.min():.2f}, {(found >= bar).sum()} of "
              f"{found.size} at least {bar:g}  {verdict(np.median(found) >= bar)}", flush=True)  # fmt: skip
    for name, items in races(GAMES, range(seeds.start + 3, seeds.stop + 3), best).items():
        one, eight = ([item.batches(workers) for item in items] for workers in (1, 8))
        behind = max(b - a for a, b in zip(one, eight, strict=True))
        print(f"{name:<14} rounds 1: {shown(one)}  8: {shown(eight)}  {verdict(behind <= 1)}", flush=True)


def order(seeds: range, best: Best) -> None:
    """Print simulated times to the gap, lognormal durations: batches against workers that never wait."""
    gained = []
    for name, items in races(UNSTRUCTURED, seeds, best).items():
        waiting, told = [item.batches(8, 1.0) for item in items], [item.as_told(8, 1.0) for item in items]
        gained.append(ratio(waiting, told))
        print(f"{name:<14} time, batches: {shown(waiting)}  told: {shown(told)}  ratio {gained[-1]:.2f}", flush=True)
    found = np.array(gained)[np.isfinite(gained)]
    print(f"told over batches: median of families {np.median(found):.2f}, least {found.min():.2f}  "
          f"{verdict(np.median(found) >= 2.0)}", flush=True)  # fmt: skip


def verdict(passed: bool) -> str:
    """Return it in one word."""
    return "PASS" if passed else "FAIL"


# ---- kills --------------------------------------------------------------------------------------------------------


def kills(runs: range) -> None:
    """Cut the file of each run, which never waits, at a random frame, or inside one, and go on."""
    race = Race(make("sine-5", 0), 0.0)
    wrong = again = lost = 0
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            rng, path = np.random.default_rng([7, run]), Path(folder) / f"{run}.study"
            with pzos.Study.open(path, race.known, SOLVER, seed=run, queries=12, order="told") as study:
                stages = driven(race, study, rng, int(rng.integers(2, 9)))
            data = path.read_bytes()
            ends = [frame.end for frame in scan(data)][2:]
            end = int(rng.choice(ends))
            path.write_bytes(data[: end + int(rng.integers(0, 40)) * int(rng.integers(0, 2))])
            kept = [row.x.tobytes() for row in read_study(path).answers]
            with pzos.Study.open(path, race.known, SOLVER, seed=run, queries=12, order="told") as study:
                wrong += study.queries != len(kept) or study.state.x.tobytes() != stages[len(kept)]
                lost += study.queries - len(kept)
                told: list[bytes] = []
                driven(race, study, rng, int(rng.integers(2, 9)), told)
                again += len(set(told) & set(kept))
                end_bits = study.state.x.tobytes()
                wrong += study.result().queries != 12
            with pzos.Study.open(path, race.known, SOLVER, seed=run, queries=12, order="told", read_only=True) as study:
                wrong += study.state.x.tobytes() != end_bits
            path.unlink()
    print(f"{len(runs)} runs cut at random: {wrong} with other bits, {again} answers asked again, {lost} answers lost  "
          f"{verdict(wrong == again == lost == 0)}", flush=True)  # fmt: skip


def driven(
    race: Race, study: pzos.Study, rng: np.random.Generator, workers: int, told: list[bytes] | None = None
) -> list[bytes]:
    """Answer in a random order to the end; returns the bits of the centre after each answer."""
    out, stages = study.ask(), [study.state.x.tobytes()]
    while not study.finished:
        while len(out) < workers and (query := study.ask_one()) is not None:
            out.append(query)
        if not out:
            break
        query = out.pop(int(rng.integers(len(out))))
        study.tell(query, np.asarray(race.draft.respond(query.x)))
        stages.append(study.state.x.tobytes())
        if told is not None:
            told.append(query.x.tobytes())
    return stages


class Noted:
    """A follower that notes each call in a file, and takes some milliseconds."""

    def __init__(self, respond: Any, notes: Path) -> None:
        self.respond, self.notes = respond, notes

    def __call__(self, x: np.ndarray) -> np.ndarray:
        with self.notes.open("ab", buffering=0) as file:
            file.write(x.tobytes())
        time.sleep(0.001 + 0.009 * (int.from_bytes(x.tobytes()[:2], "little") % 100) / 100)
        return np.asarray(self.respond(x))

    def calls(self) -> list[bytes]:
        data, size = self.notes.read_bytes() if self.notes.exists() else b"", 8 * 5
        return [data[at : at + size] for at in range(0, len(data), size)]


def sigkills(first: int, count: int, workers: int = 4, queries: int = 24) -> None:
    """Kill ``count`` processes with SIGKILL, each driving a run that never waits, then let each run end."""
    race, rng = Race(make("sine-5", 0), 0.0), np.random.default_rng([11, first])
    wrong = again = lost = most = done = runs = 0
    leader, draft = race.known.leader, race.draft
    with tempfile.TemporaryDirectory() as folder:
        while done < count:
            path, runs = Path(folder) / f"{runs}.study", runs + 1
            follower = Noted(draft.respond, path.with_suffix(".calls"))
            problem = pzos.Problem(leader, follower, draft.x0, race.known.domain, follower_name="noted")
            settings = {"solver": SOLVER, "seed": first + runs, "queries": queries, "order": "told"}
            kept: set[bytes] = set()
            for kill in (True, True, False):
                before = len(follower.calls())
                killed = _driver(problem, settings, path, workers, float(rng.uniform(0.0, 0.25)) if kill else None)
                done += killed
                calls = follower.calls()[before:]
                again += len(kept & set(calls))
                if not path.exists():  # killed before there was a file
                    lost, most = lost + len(calls), max(most, len(calls))
                    continue
                kept |= set(calls) & (told := {row.x.tobytes() for row in read_study(path).answers})
                lost, most = lost + len(set(calls) - told), max(most, len(set(calls) - told))
                with pzos.Study.open(path, problem.known(), **settings, read_only=True) as study:
                    wrong += study.queries != len(told)
            wrong += study.queries != queries or path.with_suffix(".end").read_bytes() != study.state.x.tobytes()
    print(f"{done} drivers killed by SIGKILL in {runs} runs with {workers} threads: {wrong} with other bits, {again} "
          f"answers asked again, {lost} answers lost, at most {most} at a time  "
          f"{verdict(wrong == again == 0 and most <= workers)}", flush=True)  # fmt: skip


def _driver(problem: pzos.Problem, settings: dict[str, Any], path: Path, workers: int, after: float | None) -> bool:
    """Drive the run in a process of its own, and kill that after some seconds; returns whether it was killed."""
    child = os.fork()
    if child == 0:
        with ThreadPoolExecutor(workers) as threads:
            result = pzos.solve(problem, **settings, path=path, executor=threads, progress=False, certificate=False)
            path.with_suffix(".end").write_bytes(result.x.tobytes())
        os._exit(0)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


# ---- own cost -----------------------------------------------------------------------------------------------------


def cost() -> None:
    """Print the CPU time of a proposal with 8 pending, and of taking an answer, at d = 100."""
    for name in ("network-100", "security-100"):
        race = Race(make(name, 0), 0.0)
        study = pzos.Study(race.known, pzos.CompositeTrustRegion(), queries=200, order="told")
        rng, out, asking, taking = np.random.default_rng(0), list[pzos.Query](), list[float](), list[float]()
        for _ in range(150):
            while len(out) < 9:
                start = time.process_time()
                query = study.ask_one()
                asking.append(time.process_time() - start)
                if query is None:
                    return
                out.append(query)
            query = out.pop(int(rng.integers(len(out))))
            y = np.asarray(race.draft.respond(query.x))
            start = time.process_time()
            study.tell(query, y)
            taking.append(time.process_time() - start)
        median, high = 1e3 * np.median(asking[9:]), 1e3 * np.quantile(asking[9:], 0.9)
        print(f"{name:<14} proposal {median:.1f} ms in the median, {high:.1f} in one of ten; taking "
              f"{1e3 * np.median(taking):.1f} ms  {verdict(median <= 20.0)}", flush=True)  # fmt: skip


def main() -> None:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="rounds, order, kills, sigkills, cost (all)")
    parser.add_argument("--best", type=Path, default=Path("parallel_best.json"), help="file of references")
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=1000, help="files cut at random; a fifth as many processes killed")
    args = parser.parse_args()
    seeds, best = range(args.first_seed, args.first_seed + args.instances), Best(args.best)
    parts = args.parts or ["rounds", "order", "kills", "sigkills", "cost"]
    for part in parts:
        if part in ("rounds", "order"):
            (rounds if part == "rounds" else order)(seeds, best)
        elif part == "kills":
            kills(range(args.first_seed, args.first_seed + args.kills))
        elif part == "sigkills":
            sigkills(args.first_seed, max(args.kills // 5, 1))
        else:
            cost()


if __name__ == "__main__":
    main()
