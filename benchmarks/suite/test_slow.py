"""The slow follower in small: milliseconds instead of seconds, and the same decisions wherever they are answered."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

import pzos
from slow import Slow, executor

FAMILY = "bilevel-scalar"


@dataclass(frozen=True, eq=False)
class Signed(Slow):
    """Answers late, and notes which process did."""

    folder: str = ""

    def __call__(self, x):
        (open(os.path.join(self.folder, str(os.getpid())), "w", encoding="utf-8")).close()
        return super().__call__(x)


def test_the_same_decisions_through_processes_dask_and_threads(tmp_path):
    slow = Signed(FAMILY, 0, 0.02, str(tmp_path))
    found = {}
    for kind in ("workers", "dask"):
        with executor(kind, 4) as place:
            found[kind] = pzos.solve(slow.problem(), queries=16, executor=place, seed=0, progress=False)
    assert len(list(tmp_path.iterdir())) > 2  # several processes, and not this one
    assert not (tmp_path / str(os.getpid())).exists()
    with ThreadPoolExecutor(4) as place:
        found["threads"] = pzos.solve(slow.problem(), queries=16, executor=place, seed=0, progress=False)
    assert found["threads"].queries >= 16
    for other in ("dask", "threads"):
        np.testing.assert_array_equal(found[other].x, found["workers"].x)


def test_a_slow_follower_answers_as_the_family_does():
    problem = Slow(FAMILY, 0, 0.001).problem()
    from suite.family import found

    stated = found()[FAMILY].stated(0)
    np.testing.assert_array_equal(problem.follower.respond(problem.x0, None), stated.answer(np.array(problem.x0)))
