"""One run is a pure function of its spec; the store gives it back bit for bit; nothing is computed twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pzos.answers.workers import Workers
from pzos.base.errors import FollowerFailure, InvalidInput, NotConverged
from pzos.experiments import runs as experiment
from pzos.experiments.descriptions import RunSpec, Variant
from pzos.experiments.runs import CountingDomain, RunOutcome, RunStore, compute_missing, execute
from pzos.games import SecurityGame
from pzos.problem.follower import batched
from pzos.problem.sets import Nonnegative, Whole
from reading_edition import pzos


def test_a_run_is_a_pure_function_of_its_spec() -> None:
    spec = RunSpec("routing", 0, 500_000, 0, 0.7, 20, Variant("ZOS", 2))
    first, second = execute(spec), execute(spec)
    assert first.values.tobytes() == second.values.tobytes()
    assert first.values.shape == (21,)
    assert first.gradient_norms_squared.shape == (20,)


def test_a_run_agrees_with_the_reading_edition() -> None:
    spec = RunSpec("security", 0, 7, 10, 0.05, 30, Variant("PZOS", radius=0.1))
    game = SecurityGame.random(7, targets=10)
    problem = game.problem()
    points = pzos(
        lambda x, y: game.damage_and_gradients(x, y)[1], lambda x, y: game.damage_and_gradients(x, y)[2], game.response,
        problem.x0, step=lambda t: 0.05 / (t + 1) ** 0.5, mu=0.1, T=30, seed=7, project=problem.domain.project,
    )  # fmt: skip
    values = [game.damage(x, game.response(x)) for x in points]
    np.testing.assert_allclose(execute(spec).values, values, rtol=1e-12)


def test_projections_that_move_are_counted() -> None:
    domain = CountingDomain(Nonnegative())
    domain.project(np.array([1.0, 2.0]))
    domain.project(np.array([1.0, -2.0]))
    assert domain.projected == 1
    assert CountingDomain(Whole()).project(np.array([-1.0]))[0] == -1.0
    assert domain.contains(np.array([1.0, 0.0]))
    assert not domain.contains(np.array([1.0, -1.0]))
    assert domain.faults(2) == Nonnegative().faults(2)


@pytest.mark.parametrize(("share", "slack"), [(0.5, 0), (50.0, 9)])
def test_answers_that_leave_budget_are_counted(share: float, slack: int, monkeypatch: pytest.MonkeyPatch) -> None:
    game = SecurityGame.random(0, targets=5, budget_share=share)
    monkeypatch.setattr(experiment.SecurityGame, "random", lambda *_, **__: game)
    outcome = execute(RunSpec("security", 0, 0, 5, 0.05, 3, Variant("ZOS", radius=0.1)))
    assert outcome.slack_answers == slack + (slack > 0)  # two probes and the iterate a step, and the last iterate


DIVERGING = RunSpec("routing", 33, 4_500_033, 0, 1.05, 150, Variant("ZOS", bold=True))


def test_a_run_that_diverges_is_a_result_and_the_worst() -> None:
    """Its tolls grow to millions, where no equilibrium can be certified: that ends the run, not the reproduction."""
    outcome = execute(DIVERGING)
    reached = np.isfinite(outcome.values)
    last = int(reached.sum())
    assert 1 < last < 150
    assert reached[:last].all()
    assert (outcome.values[last:] == -np.inf).all()  # revenue is maximised
    assert outcome.values.shape == (151,)
    assert np.isfinite(outcome.gradient_norms_squared).sum() == last
    assert np.isnan(outcome.gradient_norms_squared[last:]).all()


@pytest.mark.parametrize("error", [ValueError("a bug"), NotConverged("at x0 already")])
def test_a_follower_that_fails_otherwise_is_an_error(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: np.ndarray) -> np.ndarray:
        raise error

    problem = replace(SecurityGame.random(0, targets=5).problem(), follower=batched(fails))
    monkeypatch.setattr(experiment, "_problem", lambda spec: (problem, np.inf))
    with pytest.raises(FollowerFailure, match=str(error)):
        execute(RunSpec("security", 0, 0, 5, 0.05, 3, Variant("ZOS", radius=0.1)))


OUTCOME = RunOutcome(np.array([1.0, np.pi, -0.0]), np.array([1e-300, 2.0]), 3, 4, 5)


def test_what_is_stored_comes_back_bit_for_bit(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.sqlite")
    store.add("a", OUTCOME)
    store.close()
    again = RunStore(tmp_path / "runs.sqlite")
    assert again.finished() == {"a"}
    (outcome,) = again.load(["a"])
    assert outcome.values.tobytes() == OUTCOME.values.tobytes()
    assert outcome[2:] == OUTCOME[2:]
    again.close()


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.sqlite").write_bytes(b"not a database, but long enough to look at" * 40)
    with pytest.raises(InvalidInput, match="expected a store of finished runs"):
        RunStore(tmp_path / "runs.sqlite")


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RunStore(tmp_path / "runs.sqlite").close()
    monkeypatch.setattr("pzos.__version__", "999")
    with pytest.raises(InvalidInput, match="choose another --out"):
        RunStore(tmp_path / "runs.sqlite")


SPECS = [RunSpec("security", at, at, 5, 0.05, steps, Variant("PZOS", radius=0.1)) for at, steps in ((0, 3), (1, 6))]


@pytest.fixture
def store(tmp_path: Path):
    opened = RunStore(tmp_path / "runs.sqlite")
    yield opened
    opened.close()


def test_only_what_is_missing_is_computed_the_longest_first(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[RunSpec] = []
    monkeypatch.setattr(experiment, "execute", lambda spec: done.append(spec) or OUTCOME)
    assert compute_missing([*SPECS, *SPECS], store) == 2
    assert done == SPECS[::-1]
    assert compute_missing(SPECS, store) == 0
    more = RunSpec("routing", 0, 0, 0, 0.7, 2, Variant("ZOS"))
    assert compute_missing([*SPECS, more], store) == 1
    assert done[2:] == [more]


@pytest.mark.parametrize("where", ["executor", "processes"])
def test_where_a_run_is_computed_changes_no_bit(where: str, store: RunStore) -> None:
    expected = [execute(spec) for spec in SPECS]
    if where == "executor":
        with ThreadPoolExecutor(2) as executor:
            compute_missing(SPECS, store, executor)
    else:
        with Workers(2) as workers:
            compute_missing(SPECS, store, workers)
    for found, own in zip(store.load(spec.key for spec in SPECS), expected, strict=True):
        assert found.values.tobytes() == own.values.tobytes()
        assert found.gradient_norms_squared.tobytes() == own.gradient_norms_squared.tobytes()
        assert found[2:] == own[2:]


def test_a_run_that_fails_ends_the_others_and_keeps_what_is_done(store: RunStore, monkeypatch) -> None:
    def fails(spec: RunSpec) -> RunOutcome:
        if spec is SPECS[0]:
            raise RuntimeError("out of order")
        return OUTCOME

    monkeypatch.setattr(experiment, "execute", fails)
    with pytest.raises(RuntimeError, match="out of order"):
        compute_missing(SPECS, store)
    assert store.finished() == {SPECS[1].key}


def test_a_bar_is_shown_on_a_terminal_only(store: RunStore, monkeypatch, capsys) -> None:
    pytest.importorskip("rich", reason="needs the extra 'cli'")
    monkeypatch.setattr(experiment, "execute", lambda spec: OUTCOME)
    compute_missing(SPECS[:1], store)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(experiment.sys.stderr, "isatty", lambda: True, raising=False)
    compute_missing(SPECS, store)
    assert "1/1" in capsys.readouterr().err
