"""No query is paid twice: in one study, in the next, in another thread, in another process."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from durable_problem import Counted, bits, problem
from pzos.answers.cache import Cached
from unreliable import Noting


def solved(follower: Any, **given: Any) -> pzos.Result:
    return pzos.solve(problem(follower=follower), pzos.PZOS(batch=2), **{"seed": 7, "steps": 4, **given})


def test_studies_of_the_same_follower_share_their_answers(tmp_path: Path) -> None:
    counted = Counted()
    cached = Cached(counted, tmp_path / "answers.cache")
    first = solved(cached)
    paid = counted.calls
    assert paid == first.queries + first.monitoring
    assert bits(solved(cached)) == bits(first) == bits(solved(Counted()))
    assert counted.calls == paid
    black_box = pzos.solve(problem(follower=cached), pzos.ZOS(batch=2), seed=7, steps=1)
    assert counted.calls < paid + black_box.queries + black_box.monitoring  # the same directions at the same start
    solved(cached, seed=8)
    assert counted.calls > paid


def test_the_key_is_the_exact_x_and_the_name(tmp_path: Path) -> None:
    counted = Counted()
    path = tmp_path / "answers.cache"
    x = np.array([0.1, 0.2])
    for cached in (Cached(counted, path), Cached(counted, path, name="another network")):
        cached.respond(x, None)
        cached.respond(np.nextafter(x, 1.0), None)
        cached.respond(x.copy(), None)
    assert counted.calls == 4


def test_gaps_are_kept(tmp_path: Path) -> None:
    cached = Cached(lambda x: pzos.Answer(x, gap=1e-7), tmp_path / "answers.cache")
    assert [cached.respond(np.ones(2), None).gap for _ in range(2)] == [1e-7, 1e-7]


def test_noise_has_an_address_and_so_has_its_answer(tmp_path: Path) -> None:
    calls: list[int] = []

    def noisy(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        calls.append(1)
        return np.abs(x) + generator.normal(size=x.size)

    cached = Cached(pzos.seeded(noisy), tmp_path / "answers.cache")
    first = solved(cached)
    assert bits(first) == bits(solved(pzos.seeded(noisy)))
    before = len(calls)
    assert bits(solved(cached)) == bits(first)
    assert len(calls) == before


def test_batched_followers_are_looked_up_by_the_batch(tmp_path: Path) -> None:
    shapes: list[int] = []

    def rows(X: np.ndarray) -> np.ndarray:
        shapes.append(len(X))
        return np.abs(X)

    cached = Cached(pzos.batched(rows), tmp_path / "answers.cache")
    first = solved(cached)
    asked = len(shapes)
    assert bits(solved(cached)) == bits(first)
    assert len(shapes) == asked


@pytest.mark.parametrize("bad", [np.array([1.0, np.nan]), np.ones((2, 2)), "nothing"], ids=["nan", "matrix", "text"])
def test_only_answers_are_kept(tmp_path: Path, bad: Any) -> None:
    returned = [bad, np.ones(2)]
    cached = Cached(lambda x: returned.pop(0), tmp_path / "answers.cache")
    cached.respond(np.ones(2), None)
    np.testing.assert_array_equal(cached.respond(np.ones(2), None), np.ones(2))
    np.testing.assert_array_equal(cached.respond(np.ones(2), None).y, np.ones(2))


def test_failures_are_not_kept(tmp_path: Path) -> None:
    follower = Noting(tmp_path, "raise", times=1)
    cached = Cached(follower, tmp_path / "answers.cache")
    with pytest.raises(ValueError, match="crashed"):
        cached.respond(np.ones(2), None)
    cached.respond(np.ones(2), None)
    cached.respond(np.ones(2), None)
    assert follower.calls() == 2


def test_threads_and_processes_share_the_file(tmp_path: Path) -> None:
    follower = Noting(tmp_path)
    cached = Cached(follower, tmp_path / "answers.cache")
    with ThreadPoolExecutor(3) as threads:
        first = solved(cached, executor=threads)
    paid = follower.calls()
    with pzos.Workers(2) as workers:
        assert bits(solved(cached, executor=workers)) == bits(first)
    assert follower.calls() == paid


def test_a_damaged_entry_is_no_entry(tmp_path: Path) -> None:
    counted = Counted()
    cached = Cached(counted, tmp_path / "answers.cache")
    expected = cached.respond(np.ones(2), None)
    with sqlite3.connect(tmp_path / "answers.cache") as database:
        database.execute("UPDATE cache SET y = zeroblob(32)")
    database.close()
    np.testing.assert_array_equal(cached.respond(np.ones(2), None), expected)
    assert counted.calls == 2


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "answers.cache"
    path.write_bytes(b"not a database, and long enough to be taken for one" * 100)
    with pytest.raises(pzos.DamagedStudy, match=r"answers\.cache: the cache is damaged"):
        Cached(Counted(), path).respond(np.ones(2), None)


def test_a_file_that_was_moved_away_is_made_again(tmp_path: Path) -> None:
    counted = Counted()
    cached = Cached(counted, tmp_path / "answers.cache")
    cached.respond(np.ones(2), None)
    (tmp_path / "answers.cache").rename(tmp_path / "old.cache")
    cached.respond(np.ones(2), None)
    assert counted.calls == 2
    assert (tmp_path / "answers.cache").exists()


def test_a_killed_process_keeps_what_it_paid_for(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; sys.path[:0] = sys.argv[2:]\n"
        "import numpy as np, pzos, durable_problem as d\n"
        "cached = pzos.Cached(d.Counted(), sys.argv[1])\n"
        "cached.respond(np.ones(3), None)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    path = tmp_path / "answers.cache"
    command = [sys.executable, "-c", program, str(path), str(Path(__file__).parents[1]), *sys.path]
    subprocess.run(command, check=False)
    counted = Counted()
    Cached(counted, path).respond(np.ones(3), None)
    assert counted.calls == 0


@pytest.mark.parametrize("path", [3, "no/such/folder/answers.cache"])
def test_paths_that_cannot_be(path: Any) -> None:
    with pytest.raises(pzos.InvalidInput, match="path"):
        Cached(Counted(), path)
