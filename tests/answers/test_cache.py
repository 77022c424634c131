"""No query is paid twice: in one study, in the next, in another thread, in another process."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from durable_problem import Counted, bits, problem
from pzos.answers import cache
from pzos.answers.cache import Cached
from unreliable import Noting, double, kinked


def solved(follower: Any, **given: Any) -> pzos.Result:
    return pzos.solve(problem(follower=follower), pzos.PZOS(batch=2), **{"seed": 7, "steps": 4, **given})


def test_studies_of_the_same_follower_share_their_answers(tmp_path: Path) -> None:
    counted = Counted()
    cached = Cached(counted, tmp_path / "answers.cache", name="counted")
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
    for cached in (Cached(counted, path, name="a network"), Cached(counted, path, name="another network")):
        cached.respond(x, None)
        cached.respond(np.nextafter(x, 1.0), None)
        cached.respond(x.copy(), None)
    assert counted.calls == 4


def test_gaps_are_kept(tmp_path: Path) -> None:
    cached = Cached(lambda x: pzos.Answer(x, gap=1e-7), tmp_path / "answers.cache", name="gaps")
    assert [cached.respond(np.ones(2), None).gap for _ in range(2)] == [1e-7, 1e-7]


def test_noise_has_an_address_and_so_has_its_answer(tmp_path: Path) -> None:
    calls: list[int] = []

    def noisy(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        calls.append(1)
        return np.abs(x) + generator.normal(size=x.size)

    cached = Cached(pzos.seeded(noisy), tmp_path / "answers.cache", name="noisy")
    first = solved(cached)
    assert bits(first) == bits(solved(pzos.seeded(noisy)))
    before = len(calls)
    assert bits(solved(cached)) == bits(first)
    assert len(calls) == before


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.Philox, np.random.SFC64, np.random.MT19937])
def test_every_draw_of_any_generator_is_told_apart(tmp_path: Path, kind: Any) -> None:
    """The state of PCG64, NumPy's default, is two numbers of 128 bits, which no array of NumPy's holds."""
    cached = Cached(pzos.seeded(lambda x, draw: x + draw.random()), tmp_path / "answers.cache", name="draws")
    for seed in range(30):
        made = cached.respond(np.zeros(1), np.random.Generator(kind(seed)))
        assert made == np.random.Generator(kind(seed)).random()
        assert cached.respond(np.zeros(1), np.random.Generator(kind(seed))).y == made  # out of the file


def test_batched_followers_are_looked_up_by_the_batch(tmp_path: Path) -> None:
    shapes: list[int] = []

    def rows(X: np.ndarray) -> np.ndarray:
        shapes.append(len(X))
        return np.abs(X)

    cached = Cached(pzos.batched(rows), tmp_path / "answers.cache", name="rows")
    first = solved(cached)
    asked = len(shapes)
    assert bits(solved(cached)) == bits(first)
    assert len(shapes) == asked


@pytest.mark.parametrize("bad", [np.array([1.0, np.nan]), np.ones((2, 2)), "nothing"], ids=["nan", "matrix", "text"])
def test_only_answers_are_kept(tmp_path: Path, bad: Any) -> None:
    returned = [bad, np.ones(2)]
    cached = Cached(lambda x: returned.pop(0), tmp_path / "answers.cache", name="popped")
    cached.respond(np.ones(2), None)
    np.testing.assert_array_equal(cached.respond(np.ones(2), None), np.ones(2))
    np.testing.assert_array_equal(cached.respond(np.ones(2), None).y, np.ones(2))


def test_failures_are_not_kept(tmp_path: Path) -> None:
    follower = Noting(tmp_path, "raise", times=1)
    cached = Cached(follower, tmp_path / "answers.cache", name="noting")
    with pytest.raises(ValueError, match="crashed"):
        cached.respond(np.ones(2), None)
    cached.respond(np.ones(2), None)
    cached.respond(np.ones(2), None)
    assert follower.calls() == 2


def test_threads_and_processes_share_the_file(tmp_path: Path) -> None:
    follower = Noting(tmp_path)
    cached = Cached(follower, tmp_path / "answers.cache", name="noting")
    with ThreadPoolExecutor(3) as threads:
        first = solved(cached, executor=threads)
    paid = follower.calls()
    with pzos.Workers(2) as workers:
        assert bits(solved(cached, executor=workers)) == bits(first)
    assert follower.calls() == paid


def test_a_damaged_entry_is_no_entry(tmp_path: Path) -> None:
    counted = Counted()
    cached = Cached(counted, tmp_path / "answers.cache", name="counted")
    expected = cached.respond(np.ones(2), None)
    data = bytearray((tmp_path / "answers.cache").read_bytes())
    data[-1] ^= 1
    (tmp_path / "answers.cache").write_bytes(bytes(data))
    np.testing.assert_array_equal(cached.respond(np.ones(2), None), expected)
    assert counted.calls == 2


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "answers.cache"
    path.write_bytes(b"not a database, and long enough to be taken for one" * 100)
    with pytest.raises(pzos.DamagedStudy, match=r"answers\.cache: the cache is damaged"):
        Cached(Counted(), path, name="counted").respond(np.ones(2), None)


def test_a_file_that_was_moved_away_is_made_again(tmp_path: Path) -> None:
    counted = Counted()
    cached = Cached(counted, tmp_path / "answers.cache", name="counted")
    cached.respond(np.ones(2), None)
    (tmp_path / "answers.cache").rename(tmp_path / "old.cache")
    cached.respond(np.ones(2), None)
    assert counted.calls == 2
    assert (tmp_path / "answers.cache").exists()


def test_a_killed_process_keeps_what_it_paid_for(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; sys.path[:0] = sys.argv[2:]\n"
        "import numpy as np, pzos, durable_problem as d\n"
        "cached = pzos.Cached(d.Counted(), sys.argv[1], name='counted')\n"
        "cached.respond(np.ones(3), None)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    path = tmp_path / "answers.cache"
    command = [sys.executable, "-c", program, str(path), str(Path(__file__).parents[1]), *sys.path]
    subprocess.run(command, check=False, timeout=300)
    counted = Counted()
    Cached(counted, path, name="counted").respond(np.ones(3), None)
    assert counted.calls == 0


@pytest.mark.parametrize("path", [3, "no/such/folder/answers.cache"])
def test_paths_that_cannot_be(path: Any) -> None:
    with pytest.raises(pzos.InvalidInput, match="path"):
        Cached(Counted(), path, name="counted")


@dataclass(frozen=True)
class Network:
    """A follower that is told apart by what it is made of."""

    capacity: np.ndarray
    law: Any = kinked

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(self.law(x), self.capacity)

    def flows(self, x: np.ndarray) -> np.ndarray:
        return self(x)


def test_names_are_derived_where_they_tell_followers_apart(tmp_path: Path) -> None:
    path = tmp_path / "answers.cache"
    narrow, wide = Network(np.ones(2)), Network(np.full(2, 9.0))
    derived = [Cached(f, path).name for f in (kinked, double, np.abs, narrow, wide, narrow.flows, pzos.batched(np.abs))]
    assert derived[:3] == ["unreliable:kinked", "unreliable:double", "numpy:absolute"]
    assert len(set(derived)) == 6  # the batched one is the same function
    assert Cached(Network(np.ones(2)), path).name == derived[3]
    for follower in (narrow, wide):
        np.testing.assert_array_equal(Cached(follower, path).respond(np.full(2, 5.0), None), follower(np.full(2, 5.0)))


def closing_over(factor: float) -> Any:
    def scaled(x: np.ndarray) -> np.ndarray:
        return factor * x

    return scaled


UNNAMED = [
    lambda x: x,
    closing_over(2.0),
    functools.partial(np.multiply, 2.0),
    Counted(),
    Counted().__call__,
    Network(np.ones(2), lambda x: x),
    pzos.seeded(lambda x, generator: x),
]


@pytest.mark.parametrize("follower", UNNAMED, ids=lambda f: type(f).__name__)
def test_a_name_is_demanded_where_none_can_be_derived(tmp_path: Path, follower: Any) -> None:
    with pytest.raises(pzos.InvalidInput, match="name = '': expected one, because none can be derived"):
        Cached(follower, tmp_path / "answers.cache")


def test_a_torn_answer_is_passed_over_and_written_behind(tmp_path: Path) -> None:
    path, x = tmp_path / "answers.cache", np.ones(2)
    Cached(Counted(), path, name="first").respond(x, None)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    for name, paid in (("second", 1), ("first", 0), ("second", 0)):
        counted = Counted()
        cache._stores.clear()
        Cached(counted, path, name=name).respond(x, None)
        assert counted.calls == paid, name


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "answers.cache"
    program = (
        "import sys; sys.path[:0] = sys.argv[3:]\n"
        "import numpy as np, pzos\n"
        "cached = pzos.Cached(np.abs, sys.argv[1])\n"
        "for n in range(40): cached.respond(np.array([float(n), float(sys.argv[2])]), None)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    jobs = [subprocess.Popen([*command, str(number), *sys.path]) for number in range(3)]
    assert [job.wait(timeout=120) for job in jobs] == [0, 0, 0]
    known = Cached(np.abs, path)
    answers = [known.respond(np.array([float(n), float(k)]), None) for n in range(40) for k in range(3)]
    assert all(isinstance(answer, pzos.Answer) and answer.cached for answer in answers)


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    cached = Cached(np.abs, tmp_path / "folder" / "answers.cache")
    (tmp_path / "folder").rmdir()
    with pytest.raises(pzos.PzosError, match=r"answers\.cache: the cache cannot be used \(No such file"):
        cached.respond(np.ones(2), None)
