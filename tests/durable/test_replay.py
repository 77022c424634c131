"""A durable study has the bits of one in memory, through every interruption, and is no other study."""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
from durable_problem import Counted, bits, calls, finish, problem
from pzos.base.types import Purpose, Query
from pzos.durable import replay
from pzos.durable.log import create, read_study, recover
from pzos.durable.replay import summary

DATA = Path(__file__).parents[1] / "data"
SOLVERS = [
    pzos.PZOS(batch=2),
    pzos.ZOS(batch=2),
    pzos.PZOS(step=pzos.Diminishing(0.05)),
    pzos.MemoryPZOS(step=pzos.DoWG(), batch=2),
    pzos.MemoryPZOS(),
    pzos.SecantPZOS(),
    pzos.CompositeTrustRegion(),
]


def opened(path: Path, game: pzos.Problem, solver: Any = None, **given: Any) -> pzos.Study:
    return pzos.Study.open(path, game.known(), solver or pzos.PZOS(batch=2), **{"seed": 7, "steps": 6, **given})


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("told", [0, 1, 3, 5, 12, 26])
def test_resumes_with_the_same_bits_and_no_query_asked_twice(tmp_path: Path, solver: Any, told: int) -> None:
    game = problem()
    expected = pzos.solve(game, solver, seed=7, steps=6)
    needed = calls(game)
    game = problem()
    with opened(tmp_path / "s.study", game, solver) as study:
        oracle = pzos.Oracle(game.follower)
        for _ in range(told):
            if not study.done:
                study.receive(next(oracle.answer(study.ask())))
    with opened(tmp_path / "s.study", game, solver) as study:
        result = finish(study, game)
    assert bits(result) == bits(expected)
    assert calls(game) == needed


@settings(max_examples=20)
@given(seed=st.integers(0, 5), cuts=st.lists(st.integers(1, 6), max_size=4), order=st.randoms(use_true_random=False))
def test_any_order_and_any_number_of_sessions(tmp_path_factory: Any, seed: int, cuts: list[int], order: Any) -> None:
    path = tmp_path_factory.mktemp("any") / "s.study"
    game = problem()
    for cut in [*cuts, 10**6]:
        with opened(path, game, seed=seed, steps=4) as study:
            while cut and not study.done:
                query = order.choice(study.ask())
                study.tell(query, game.follower.respond(query.x, None))
                cut -= 1
            result = study.result()
    assert bits(result) == bits(pzos.solve(problem(), pzos.PZOS(batch=2), seed=seed, steps=4))


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_limits_may_grow_and_shrink(tmp_path: Path, solver: Any) -> None:
    game = problem()
    for steps in (2, 7, 4, 7):
        with opened(tmp_path / "s.study", game, solver, steps=steps) as study:
            result = finish(study, game)
        assert bits(result) == bits(pzos.solve(problem(), solver, seed=7, steps=steps))


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("noisy", [False, True])
def test_a_study_that_goes_on_pays_for_no_answer_twice(tmp_path: Path, solver: Any, noisy: bool) -> None:
    plain = Counted()
    follower = pzos.seeded(lambda x, generator: plain(x) + 0.01 * generator.normal(size=6)) if noisy else plain
    game = problem(follower=follower)
    expected = [pzos.solve(game, solver, seed=7, steps=steps) for steps in (10, 1, 3)]
    needed = expected[0].queries + expected[0].monitoring
    plain.calls = 0
    for steps in (1, 5, 10):
        with opened(tmp_path / "s.study", game, solver, steps=steps) as study:
            result = finish(study, game, seed=7)
    assert bits(result) == bits(expected[0])
    assert plain.calls == needed
    for steps, shorter in ((1, expected[1]), (3, expected[2])):
        with opened(tmp_path / "s.study", game, solver, steps=steps) as study:
            assert bits(finish(study, game, seed=7)) == bits(shorter)
    assert plain.calls == needed


def test_batched_and_seeded_followers_resume_with_the_same_bits(tmp_path: Path) -> None:
    mixing = np.cos(np.outer(np.arange(50), np.arange(1, 4)))
    followers = {
        "batched": pzos.batched(lambda X: np.abs(X @ mixing.T)),
        "noisy": pzos.seeded(lambda x, generator: np.abs(x) + generator.normal(size=3)),
        "common": pzos.seeded(lambda x, generator: np.abs(x) + generator.normal(size=3), common=True),
    }
    for name, follower in followers.items():
        game = problem(follower=follower)
        expected = pzos.solve(game, pzos.PZOS(batch=2), seed=7, steps=4)
        with opened(tmp_path / name, game, steps=4) as study:
            for response in list(pzos.Oracle(game.follower, seed=7).answer(study.batch()))[:3]:
                study.receive(response)
        with opened(tmp_path / name, game, steps=4) as study:
            assert bits(finish(study, game, seed=7)) == bits(expected), name


def test_failures_are_part_of_the_record(tmp_path: Path) -> None:
    game = problem()
    with opened(tmp_path / "s.study", game) as study:
        first, second, *_ = study.ask()
        study.tell(first, game.follower.respond(first.x, None), gap=1e-9)
        study.fail(second, "no traffic that day\0\ud800")
    with opened(tmp_path / "s.study", game) as study:
        rows = read_study(tmp_path / "s.study").answers
        assert study.failures == 1
        assert len(study.ask()) == 3
    assert rows[0].gap == 1e-9
    assert rows[1].failure == "no traffic that day\\0\\ud800"


def test_the_clock_goes_on(tmp_path: Path) -> None:
    game = problem()
    with opened(tmp_path / "s.study", game, steps=2) as study:
        study.set_clock(100.0)
        before = finish(study, game).trace["seconds"]
    with opened(tmp_path / "s.study", game, steps=3) as study:
        after = finish(study, game).trace["seconds"]
    assert before[0] >= 100.0
    assert np.allclose(after[:2], before[:2], atol=5.0)
    assert after[2] >= before[1] - 1.0
    with opened(tmp_path / "s.study", game, steps=None, seconds=50.0) as study:
        assert study.done or len(study.ask()) == 1
        assert study.stop is pzos.Stop.SECONDS


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("seed", {}, {"seed": 8}, "seed: the file has 7, you gave 8"),
    ("monitor", {}, {"monitor": False}, "monitor: the file has True, you gave False"),
    ("solver", {}, {"solver": pzos.PZOS(step=0.1, batch=2)}, "solver.step: the file has 0.05, you gave 0.1"),
    ("method", {}, {"solver": pzos.ZOS(batch=2)}, "solver: the file has pzos.PZOS, you gave pzos.ZOS"),
    ("x0", {"x0": np.array([1.0, 1.5, 2.5])}, {}, "problem.x0"),
    ("dimension", {"x0": np.ones(4)}, {}, "problem.dimension: the file has 3, you gave 4"),
    ("domain", {"domain": pzos.Nonnegative()}, {}, "problem.domain"),
    ("sense", {"sense": "max"}, {}, "problem.sense: the file has min, you gave max"),
    ("name", {"name": "other"}, {}, "problem.name: the file has kinks, you gave other"),
    (
        "leader",
        {"leader": pzos.leader_from_functions(lambda x, y: 0.0, lambda x, y: 0 * x, lambda x, y: 0 * y)},
        {},
        "problem.leader.name",
    ),
]


@pytest.mark.parametrize(("what", "game_change", "changed", "named"), CHANGES, ids=[row[0] for row in CHANGES])
def test_another_study_is_refused_by_name(
    tmp_path: Path, what: str, game_change: dict[str, Any], changed: dict[str, Any], named: str
) -> None:
    game = problem()
    with opened(tmp_path / "s.study", game) as study:
        finish(study, game)
    before = (tmp_path / "s.study").read_bytes()
    with pytest.raises(pzos.DifferentStudy) as caught:
        opened(tmp_path / "s.study", problem(**game_change), **changed)
    assert named in str(caught.value)
    assert (tmp_path / "s.study").read_bytes() == before
    with opened(tmp_path / "s.study", game) as study:
        assert study.done


def test_a_leader_that_computes_otherwise_is_found_by_the_replay(tmp_path: Path) -> None:
    sign = [1.0]
    leader = pzos.leader_from_functions(
        lambda x, y: float(0.5 * sign[0] * x @ x + y.sum()),
        lambda x, y: sign[0] * x,
        lambda x, y: np.ones_like(y),
        name="moody",
    )
    game = problem(leader=leader)
    with opened(tmp_path / "s.study", game) as study:
        finish(study, game)
    sign[0] = -1.0
    with pytest.raises(pzos.DifferentStudy, match=r"query 1\.0: the stored x is not the one asked now \(x\[0\] was"):
        opened(tmp_path / "s.study", game)


def test_other_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = problem()
    opened(tmp_path / "s.study", game).close()
    monkeypatch.setattr(pzos, "__version__", "9.9.0")
    with pytest.raises(pzos.DifferentStudy, match=r"written by pzos .*, this is 9\.9\.0"):
        opened(tmp_path / "s.study", game)
    opened(tmp_path / "s.study", game, any_version=True).close()
    monkeypatch.setattr("pzos.durable.log.FORMAT", 3)
    with pytest.raises(pzos.InvalidInput, match="has format 2: expected format 3"):
        opened(tmp_path / "s.study", game, any_version=True)


def test_a_study_of_format_1_is_read_and_turned_into_a_new_one(tmp_path: Path) -> None:
    path, new = tmp_path / "golden.study", tmp_path / "new.study"
    path.write_bytes((DATA / "format1.study").read_bytes())
    game = problem()
    with pytest.raises(pzos.InvalidInput, match=r"has format 1: .*pzos recover"):
        opened(path, game, any_version=True)
    with opened(path, game, any_version=True, read_only=True) as study:
        assert study.step == 3
    assert recover(path, new)[:2] == (17, True)
    with opened(new, game, any_version=True) as study:
        assert study.step == 3
        assert len(study.ask()) == 3
        result = finish(study, game)
    assert calls(game) == 14
    expected = pzos.solve(problem(), pzos.PZOS(batch=2), seed=7, steps=6)
    np.testing.assert_allclose(result.x, expected.x, rtol=1e-9)  # it was written on another machine
    assert result.queries == expected.queries


def on_another_machine(monkeypatch: pytest.MonkeyPatch, **changed: str) -> None:
    here = replay.machine()
    monkeypatch.setattr(replay, "machine", lambda: {**here, **changed})


def wobbling(size: float) -> tuple[pzos.Problem, list[float]]:
    """A problem whose leader computes its gradient a little differently once ``wobble`` is set."""
    wobble = [0.0]
    leader = pzos.leader_from_functions(
        lambda x, y: float(0.5 * x @ x + y.sum()),
        lambda x, y: x * (1.0 + wobble[0] * size),
        lambda x, y: np.ones_like(y),
        name="w",
    )
    return problem(leader=leader), wobble


def test_another_machine_takes_the_stored_points_and_notes_the_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, (game, wobble) = tmp_path / "s.study", wobbling(1e-11)
    with opened(path, game, steps=3) as study:
        finish(study, game)
    stored = [row.x for row in read_study(path).answers]
    wobble[0] = 1.0
    with pytest.raises(pzos.DifferentStudy, match="has changed since: use"):
        opened(path, game)
    on_another_machine(monkeypatch, blas="openblas Zen", numpy="1.26.4")
    asked = calls(game)
    with opened(path, game) as study:
        assert 0.0 < study.difference < 1e-10
        result = finish(study, game)
    assert result.steps == 6
    assert calls(game) == asked + 3 * 5  # the closing answer serves the step that follows
    again = [row.x for row in read_study(path).answers]
    assert [x.tobytes() for x in again[: len(stored)]] == [x.tobytes() for x in stored]
    assert 0.0 < summary(path).difference < 1e-10
    with opened(path, game) as study:  # and on from there, as often as one likes
        assert study.done
    saved = recover(path, tmp_path / "saved.study")
    assert saved[:2] == (31, True)  # which machines it was on is part of what is saved
    with opened(tmp_path / "saved.study", game) as study:
        assert study.done


def test_a_difference_beyond_rounding_is_refused_with_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, (game, wobble) = tmp_path / "s.study", wobbling(1e-3)
    with opened(path, game, steps=3) as study:
        finish(study, game)
    before, wobble[0] = path.read_bytes(), 1.0
    on_another_machine(monkeypatch, blas="openblas Zen")
    with pytest.raises(pzos.DifferentStudy, match=r"x\[0\] was .*blas: the file has .*, you gave openblas Zen"):
        opened(path, game)
    assert path.read_bytes() == before


def test_the_machine_is_described_whatever_numpy_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(_: str) -> Any:
        raise ImportError

    monkeypatch.setattr(replay, "import_module", hidden)
    assert set(replay.machine.__wrapped__()) == {"numpy", "scipy", "blas", "cpu"}


def test_looking_on_while_another_process_writes(tmp_path: Path) -> None:
    game = problem()
    with opened(tmp_path / "s.study", game) as writer:
        for step in range(3):
            while writer.step == step:
                query = writer.ask()[0]
                writer.tell(query, game.follower.respond(query.x, None))
            code = (
                "import sys; sys.path[:0] = sys.argv[2:]; import pzos, durable_problem as d\n"
                "given = dict(seed=7, steps=6, read_only=True)\n"
                "s = pzos.Study.open(sys.argv[1], d.problem().known(), pzos.PZOS(batch=2), **given)\n"
                "print(s.step); s.close()"
            )
            command = [sys.executable, "-c", code, str(tmp_path / "s.study"), str(Path(__file__).parents[1]), *sys.path]
            seen = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
            assert seen.stdout.split() == [str(writer.step)]
        looking = opened(tmp_path / "s.study", game, read_only=True)
        with pytest.raises(pzos.InvalidInput, match="read-only"):
            looking.tell(looking.ask()[0], np.ones(6))
        assert summary(tmp_path / "s.study").answers == 15
        looking.close()


def test_two_writers_are_refused(tmp_path: Path) -> None:
    game = problem()
    with opened(tmp_path / "s.study", game):
        with pytest.raises(pzos.StudyBusy, match=rf"this process \({os.getpid()}\)"):
            opened(tmp_path / "s.study", game)
        code = (
            "import sys; sys.path[:0] = sys.argv[2:]; import pzos, durable_problem as d\n"
            "try: pzos.Study.open(sys.argv[1], d.problem().known(), pzos.PZOS(batch=2), seed=7)\n"
            "except pzos.StudyBusy as error: print(error)"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "s.study"), str(Path(__file__).parents[1]), *sys.path]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
        assert f"is being written by process {os.getpid()} on " in said
    opened(tmp_path / "s.study", game).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.study"]


def test_a_dropped_study_lets_go_of_its_file(tmp_path: Path) -> None:
    game, path = problem(), tmp_path / "s.study"
    kept = opened(path, game)
    with pytest.raises(pzos.StudyBusy):
        opened(path, game)
    del kept
    with opened(path, game) as study:
        assert study.step == 0


class Moody(pzos.PZOS):
    """A solver that fails while ``broken`` is set."""

    __slots__ = ()
    broken: ClassVar[list[bool]] = [True]

    def tell(self, task: Any, state: Any, plan: Any, answers: Any) -> Any:
        if self.broken[0]:
            raise pzos.InvalidLeader("moody")
        return super().tell(task, state, plan, answers)


def test_an_answer_whose_step_fails_is_kept_until_it_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game, path = problem(), tmp_path / "s.study"
    with opened(path, game, Moody(), steps=1) as study:
        queries = study.ask()
        for query in queries[:-1]:
            study.tell(query, game.follower.respond(query.x, None))
        for _ in range(2):
            with pytest.raises(pzos.InvalidLeader):
                study.tell(queries[-1], game.follower.respond(queries[-1].x, None))
        with pytest.raises(pzos.InvalidAnswer, match=r"already answered differently: .*study\.withdraw"):
            study.tell(queries[-1], np.full(6, 9.0))
        study.withdraw(queries[-1], "told to the wrong study")
        assert [query[:2] for query in study.ask()] == [queries[-1][:2]]
        with pytest.raises(pzos.InvalidLeader):
            study.tell(queries[-1], np.full(6, 9.0))
    monkeypatch.setattr(Moody, "broken", [False])
    with opened(path, game, Moody(), steps=1) as study:
        assert study.step == 1


# ---- wrong answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [np.ones(2), np.full(4, 1e200)], ids=["length", "value"])
def test_an_answer_the_leader_cannot_take_is_not_stored(tmp_path: Path, wrong: np.ndarray) -> None:
    leader = pzos.leader_from_functions(
        lambda x, y: float(x @ x + y @ y), lambda x, y: 2 * x, lambda x, y: (np.eye(4) @ y) * 2.0, name="four"
    )
    game = problem(leader=leader, follower=lambda x: np.ones(4))
    path = tmp_path / "s.study"
    with opened(path, game) as study:
        first = study.ask()[0]
        with pytest.raises(pzos.InvalidAnswer, match=r"query 0\.0: y = .*that the leader can take"):
            study.tell(first, wrong)
    assert read_study(path).answers == []
    with opened(path, game) as study:
        assert finish(study, game).steps == 6


def test_a_probe_outside_the_leaders_domain_is_taken(tmp_path: Path) -> None:
    leader = pzos.leader_from_functions(
        lambda x, y: float(math.sqrt(x[0]) + y @ y),
        lambda x, y: np.array([0.5 / math.sqrt(x[0]), 0.0]),
        lambda x, y: 2 * y,
        name="root",
    )
    game = problem(leader=leader, follower=lambda x: np.ones(2), x0=np.array([0.01, 1.0]), domain=pzos.Box(0.01, 1.0))
    with opened(tmp_path / "s.study", game, pzos.PZOS(radius=0.5)) as study:
        assert min(query.x[0] for query in study.ask()) < 0
        assert finish(study, game).steps == 6


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_a_study_whose_wrong_answer_is_corrected_is_the_one_without_it(tmp_path: Path, solver: Any) -> None:
    """Nothing before it is asked again; a solver that learns from no other answers ends as if none was wrong."""
    game, path = problem(), tmp_path / "s.study"
    expected = pzos.solve(game, solver, seed=7, steps=6)
    with opened(path, game, solver) as study:
        while not study.done:
            for query in study.ask():
                y = game.follower.respond(query.x, None)
                if query[:2] == (2, 0):
                    y, wrong = 5.0 * y, query
                study.tell(query, y)
        assert bits(study.result()) != bits(expected)
        study.withdraw(wrong, "a zero too many")
        assert study.step == 2
        assert [query[:2] for query in study.ask()] == [(2, 0)]
        stood = [row[:2] for row in read_study(path).answers]
    with opened(path, game, solver) as study:
        assert study.ask()[0].x.tobytes() == wrong.x.tobytes()
        before = calls(game)
        result = finish(study, game)
        assert calls(game) - before <= expected.queries + expected.monitoring - len(stood)
    with opened(path, game, solver) as study:  # and what is in the file is that very run
        assert bits(study.result()) == bits(result)
    if not isinstance(solver, pzos.CompositeTrustRegion):
        assert bits(result) == bits(expected)
    assert summary(path).withdrawn == 1


def test_the_default_method_learns_from_the_answers_set_aside(tmp_path: Path) -> None:
    game, path = problem(), tmp_path / "s.study"
    solver = pzos.CompositeTrustRegion()
    with opened(path, game, solver, steps=12) as study:
        result = finish(study, game)
        study.withdraw(Query(1, 0, read_study(path).answers[1].x), "")
        query = study.ask()[0]
        study.tell(query, game.follower.respond(query.x, None))
        assert study.step == 2
        assert study.state.value <= result.best_value + 1e-12, "the lowest F that is known is where it goes on"


def test_two_answers_taken_back_one_after_the_other(tmp_path: Path) -> None:
    game, path = problem(), tmp_path / "s.study"
    expected = pzos.solve(game, pzos.PZOS(batch=2), seed=7, steps=6)
    with opened(path, game) as study:
        finish(study, game)
        told = {row[:2]: Query(*row[:2], row.x, Purpose(row.purpose)) for row in read_study(path).answers}
        for address in ((1, 2), (4, 1), (1, 0)):  # 4.1 was set aside already
            study.withdraw(told[address])
        with pytest.raises(pzos.InvalidInput, match=r"4\.1: has no answer"):
            study.withdraw(told[4, 1])
        asked = calls(game)
        assert [query[:2] for query in study.ask()] == [(1, 0), (1, 2)]
        assert bits(finish(study, game)) == bits(expected)
        assert calls(game) == asked + 3, "answers at points that are asked about again are known"


def test_looking_on_cannot_take_back(tmp_path: Path) -> None:
    game, path = problem(), tmp_path / "s.study"
    with opened(path, game) as study:
        query = study.ask()[0]
        study.tell(query, game.follower.respond(query.x, None))
    with opened(path, game, read_only=True) as study, pytest.raises(pzos.InvalidInput, match="read-only"):
        study.withdraw(query)


@pytest.mark.parametrize("path", [3, "", "no/such/folder/s.study"])
def test_paths_that_cannot_be(path: Any) -> None:
    with pytest.raises(pzos.InvalidInput, match="path"):
        pzos.Study.open(path, problem().known(), pzos.PZOS())


def test_solve_with_a_path_is_durable(tmp_path: Path) -> None:
    game = problem()
    first = pzos.solve(game, pzos.PZOS(), steps=3, path=tmp_path / "s.study")
    asked = calls(game)
    again = pzos.solve(game, pzos.PZOS(), steps=3, path=tmp_path / "s.study")
    assert bits(first) == bits(again)
    assert calls(game) == asked


# ---- another machine, and methods that make much of rounding ------------------------------------------------------


def doubling(change: float) -> tuple[pzos.Problem, list[float]]:
    """A problem on which PZOS doubles every difference in x at each step; its leader computes 2 x + ``change`` now."""
    now = [0.0]
    leader = pzos.leader_from_functions(
        lambda x, y: -0.5 * float(x @ x), lambda x, y: -x * (1.0 + now[0] * change), lambda x, y: 0 * y, name="doubling"
    )
    return problem(leader=leader, domain=pzos.Box(-1e30, 1e30)), now


def test_differences_do_not_add_up_because_every_step_starts_at_the_stored_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, (game, now) = tmp_path / "s.study", doubling(1e-14)
    solver = pzos.PZOS(step=1.0, batch=1)
    with opened(path, game, solver, steps=60) as study:
        finish(study, game)
    now[0] = 1.0
    on_another_machine(monkeypatch, blas="openblas Zen")
    with opened(path, game, solver, steps=61) as study:
        assert 0.0 < study.difference < 1e-13, "2^60 times 1e-14 would have been refused"
        assert study.step == 60


def trust_region_study(path: Path, factor: list[float]) -> tuple[pzos.Problem, pzos.CompositeTrustRegion]:
    """The default method, far past the point where rounding decides what it asks next."""
    mixing = np.cos(np.outer(np.arange(1, 7), np.arange(1, 4)))
    leader = pzos.leader_from_functions(
        lambda x, y: float(factor[0] * (y - 1) @ (y - 1) + 0.1 * x @ x),
        lambda x, y: 0.2 * x,
        lambda x, y: factor[0] * 2.0 * (y - 1),
        name="fragile",
    )
    game, solver = problem(leader=leader, follower=lambda x: np.abs(mixing @ x - 0.5)), pzos.CompositeTrustRegion()
    if not path.exists():
        with opened(path, game, solver, steps=40) as study:
            finish(study, game)
    return game, solver


def test_a_method_that_makes_much_of_rounding_goes_on_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, factor = tmp_path / "s.study", [1.0]
    game, solver = trust_region_study(path, factor)
    on_another_machine(monkeypatch, blas="openblas Zen")
    factor[0] = 1.0 + 2**-52
    monkeypatch.setattr(replay, "ROUNDING", 1e-9)
    with opened(path, game, solver, steps=50) as study:
        assert study.step == 40
        assert study.difference > replay.ROUNDING
        assert finish(study, game).steps == 50
    assert summary(path).difference == read_study(path).difference > 0.0
    assert "points moved by" in dict(summary(path).remarks)["other machine"]


def test_a_changed_leader_is_refused_elsewhere_also_for_the_default_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, factor = tmp_path / "s.study", [1.0]
    game, solver = trust_region_study(path, factor)
    before = path.read_bytes()
    on_another_machine(monkeypatch, blas="openblas Zen")
    factor[0] = 1.01
    with pytest.raises(pzos.DifferentStudy, match=r"query 0\.0: the leader gives f\(x, y\) = .*, and gave .* when"):
        opened(path, game, solver, steps=50)
    assert path.read_bytes() == before


# ---- other followers ----------------------------------------------------------------------------------------------


def shifted(by: float) -> Any:
    return lambda x: np.concatenate([np.abs(x - by), x])


def plain(x: np.ndarray, by: float = 0.3) -> np.ndarray:
    return np.concatenate([np.abs(x - by), x])


FOLLOWERS: dict[str, tuple[Any, Any]] = {
    "code": (lambda x: np.abs(x), lambda x: np.abs(x) + 0.0),
    "closure": (shifted(0.3), shifted(0.4)),
    "partial": (functools.partial(plain, by=0.3), functools.partial(plain, by=0.4)),
    "function": (plain, shifted(0.3)),
    "constant": (lambda x: x + 1.0, lambda x: x + 2.0),
    "kind": (pzos.batched(np.abs), np.abs),
    "named": (pzos.CommandFollower(["simulate", "--fast"]), pzos.CommandFollower(["simulate", "--slow"])),
}


@pytest.mark.parametrize("which", FOLLOWERS)
def test_other_followers_are_refused(tmp_path: Path, which: str) -> None:
    path, (before, after) = tmp_path / "s.study", FOLLOWERS[which]
    opened(path, problem(follower=before)).close()
    opened(path, problem(follower=before)).close()
    with pytest.raises(pzos.DifferentStudy, match=r"problem\.follower\.(code|name|kind): the file has"):
        opened(path, problem(follower=after))


def test_followers_of_one_name_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "s.study"
    opened(path, problem(follower=shifted(0.3), follower_name="demand of 2025")).close()
    opened(path, problem(follower=shifted(0.4), follower_name="demand of 2025")).close()
    with pytest.raises(
        pzos.DifferentStudy, match=r"follower\.name: the file has demand of 2025, you gave demand of 2026"
    ):
        opened(path, problem(follower=shifted(0.3), follower_name="demand of 2026"))
    with pytest.raises(pzos.InvalidInput, match="follower_name = 3: expected text"):
        problem(follower_name=3)


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    seen: list[int] = []
    follower = lambda x: [seen.append(1), np.abs(x)][1]  # noqa: E731
    path = tmp_path / "s.study"
    opened(path, problem(follower=follower)).close()
    seen.append(1)
    opened(path, problem(follower=follower)).close()
    assert "cannot be compared: seen (builtins.list)" in dict(summary(path).remarks)["followers"]
    opened(tmp_path / "t.study", problem()).close()
    assert "it (durable_problem.Counted)" in dict(summary(tmp_path / "t.study").remarks)["followers"]


def test_code_of_another_python_and_files_without_followers_are_not_compared(tmp_path: Path) -> None:
    path, game = tmp_path / "s.study", problem(follower=shifted(0.3))
    header = replay.header_of(pzos.Study(game.known(), pzos.PZOS(batch=2), seed=7))
    for number, changed in enumerate(({"python": "3.9", "code": "?"}, None)):
        kept = {**header["identity"]["problem"]}
        kept["follower"] = None if changed is None else {**kept["follower"], **changed}
        path = tmp_path / f"{number}.study"
        create(path, {**header, "identity": {**header["identity"], "problem": kept}}).close()
        with opened(path, game) as study:
            assert study.queries == 0
