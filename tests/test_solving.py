"""One call: solve is the study by hand with a method, a certificate and its costs; minimize and maximize are solve."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from durable_problem import bits, problem as kinked
from instances import LEADER, START, problem, response
from pzos.base.errors import FollowerFailure, InvalidInput
from pzos.stationarity.certificate import FEWEST_QUERIES, kept_beside, place_beside

SOLVER = pzos.PZOS(step=0.02, radius=0.1)


def test_solve_and_a_study_by_hand_give_the_same_bits() -> None:
    result = pzos.solve(problem(), SOLVER, steps=20, seed=5)
    study = pzos.Study(problem().known(), SOLVER, seed=5, steps=20)
    while not study.done:
        for query in study.ask():
            study.tell(query, response(query.x))
    by_hand = study.result()
    for name in ("x", "best_x", "random_x"):
        np.testing.assert_array_equal(getattr(by_hand, name), getattr(result, name))
    for column in ("step", "queries", "monitoring", "value", "gradient_norm_squared", "step_size"):
        np.testing.assert_array_equal(by_hand.trace[column], result.trace[column])
    assert (by_hand.value, by_hand.best_value, by_hand.random_step) == (
        result.value,
        result.best_value,
        result.random_step,
    )


def test_seeds_matter_and_repeat() -> None:
    first, again, other = (pzos.solve(problem(), SOLVER, steps=5, seed=seed).x for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_minimize_and_maximize_are_solve() -> None:
    for sense, call in (("min", pzos.minimize), ("max", pzos.maximize)):
        domain = pzos.Nonnegative()
        direct = call(LEADER, response, START, SOLVER, domain=domain, steps=8, seed=3)
        through = pzos.solve(problem(domain=domain, sense=sense), SOLVER, steps=8, seed=3)
        np.testing.assert_array_equal(direct.x, through.x)
        assert direct.sense == sense


class Broken:
    """Kinked followers that fail from some query on."""

    def __init__(self, after: int, error: type[BaseException] = RuntimeError) -> None:
        self.after, self.calls, self.error = after, 0, error

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.calls += 1
        if self.calls > self.after:
            raise self.error("out of order")
        return np.concatenate([np.abs(x - 0.3), np.maximum(x, 0.1)])


def test_the_default_is_what_choose_says_with_a_certificate_of_its_last_point() -> None:
    from pzos.methods.default import choose

    solver, why = choose(kinked().known(), 12)
    named = pzos.solve(kinked(), solver, queries=12)
    result = pzos.solve(kinked(), queries=12)
    assert result.explanation == f"{why}. {named.explanation}"
    assert named.explanation.startswith("found out on the way: no structure shows in the answers; the followers repeat")
    assert named.certificate is None
    assert result.certificate is not None
    np.testing.assert_array_equal(result.x, named.x)
    np.testing.assert_array_equal(result.certificate.x, result.x)
    assert result.monitoring == named.monitoring + FEWEST_QUERIES
    assert result.ledger == {**named.ledger, "for the certificate": FEWEST_QUERIES}


@pytest.mark.parametrize(
    ("solver", "certificate", "message"),
    [
        (None, 5, "certificate = 5: expected a whole number, 33 or more; or True or False"),
        (None, 33.5, "certificate = 33.5: expected a whole number, 33 or more"),
        (SOLVER, True, "certificate = True: expected the default solver; call result.certify"),
        (SOLVER, 5, "2 faults"),
    ],
)
def test_a_certificate_that_cannot_be_is_refused_before_any_query(solver: Any, certificate: Any, message: str) -> None:
    follower = Broken(after=0)
    with pytest.raises(InvalidInput, match=message):
        pzos.solve(kinked(follower=follower), solver, steps=3, certificate=certificate)
    assert follower.calls == 0


def test_queries_of_a_certificate_that_failed_are_counted() -> None:
    follower = Broken(after=13)
    tolerance = pzos.Tolerance(attempts=1, policy="drop", failure_rate=1.0)
    result = pzos.solve(kinked(follower=follower), queries=12, tolerance=tolerance)
    assert result.certificate is None
    assert result.ledger["for the certificate"] == FEWEST_QUERIES
    assert follower.calls == result.queries + result.monitoring == 12 + FEWEST_QUERIES


@pytest.mark.parametrize("at", [1, 2, 20, FEWEST_QUERIES])
def test_ctrl_c_in_the_certificate_keeps_the_result_and_counts_what_was_answered(tmp_path: Path, at: int) -> None:
    quiet = pzos.solve(kinked(), queries=12)
    follower = Broken(after=quiet.queries + quiet.monitoring - FEWEST_QUERIES + at - 1, error=KeyboardInterrupt)
    named = {"follower_name": "kinks"}
    result = pzos.solve(kinked(follower=follower, **named), queries=12, path=tmp_path / "run.study")
    assert (result.stop, result.certificate) == (pzos.Stop.INTERRUPTED, None)
    np.testing.assert_array_equal(result.x, quiet.x)
    assert result.queries + result.monitoring == follower.calls - 1
    assert result.ledger.get("for the certificate", 0) == at - 1
    again = pzos.solve(
        kinked(**named), queries=12, path=tmp_path / "run.study"
    )  # and nothing that was answered is lost
    assert repr(again.certificate) == repr(quiet.certificate)


def test_ctrl_c_between_the_run_and_its_certificate_keeps_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    import pzos.stationarity.certificate as certificates

    def interrupted(study: pzos.Study, queries: int) -> Any:
        signal.raise_signal(signal.SIGINT)
        return ending_solver(study, queries)

    ending_solver = certificates.ending_solver
    monkeypatch.setattr(certificates, "ending_solver", interrupted)
    result = pzos.solve(kinked(), queries=12)
    assert (result.stop, result.queries, result.certificate) == (pzos.Stop.INTERRUPTED, 12, None)


def test_without_a_single_answer_there_is_a_result_and_no_certificate() -> None:
    tolerance = pzos.Tolerance(attempts=1, policy="drop", failure_rate=1.0)
    result = pzos.solve(kinked(follower=Broken(after=0)), queries=3, tolerance=tolerance)
    assert result.stop is pzos.Stop.QUERIES
    assert result.failures == 3 + result.monitoring == 4
    assert result.certificate is None


def test_a_failing_follower_is_an_error_unless_it_is_tolerated() -> None:
    with pytest.raises(FollowerFailure, match="out of order"):
        pzos.solve(kinked(follower=Broken(after=4)), SOLVER, steps=3)


def test_a_durable_run_keeps_its_certificate_and_finds_it_again(tmp_path: Path) -> None:
    path = tmp_path / "run.study"
    first = pzos.solve(kinked(follower_name="kinks"), queries=12, path=path)
    assert place_beside(path, 12).exists()
    silent = kinked(follower=Broken(after=0), follower_name="kinks")
    again = pzos.solve(silent, queries=12, path=path)
    assert bits(again) == bits(first)
    assert repr(again.certificate) == repr(first.certificate)
    from pzos.methods.default import choose

    with pzos.Study.open(path, silent.known(), choose(silent.known())[0], queries=12, read_only=True) as study:
        assert repr(kept_beside(path, study)) == repr(first.certificate)
        assert kept_beside(tmp_path / "another.study", study) is None


def test_noise_of_the_certificate_is_not_that_of_the_run() -> None:
    seen: list[float] = []

    def noisy(x: np.ndarray, generator: Any) -> np.ndarray:
        seen.append(float(generator.standard_normal()))
        return np.concatenate([np.abs(x - 0.3), np.maximum(x, 0.1)])

    result = pzos.solve(kinked(follower=pzos.seeded(noisy)), queries=12)
    assert len(seen) == result.queries + result.monitoring
    assert len(set(seen)) > len(seen) - 2


def test_what_is_no_problem_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"solve: problem = 3: expected a pzos\.Problem"):
        pzos.solve(3)  # type: ignore[arg-type]


def test_all_faults_of_the_limits_are_told_at_once_and_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        pzos.solve(problem(), SOLVER, steps=0, queries=1.5, seconds=-1, target=float("nan"), seed=-1)  # type: ignore[arg-type]
    text = str(caught.value)
    assert text.startswith("Study: 5 faults")
    for name in ("steps = 0", "queries = 1.5", "seconds = -1", "target = nan", "seed = -1"):
        assert text.count(name) == 1


def test_a_tolerance_that_is_none_is_refused_before_any_query() -> None:
    with pytest.raises(InvalidInput, match=r"solve: tolerance = 'x': expected a pzos\.Tolerance"):
        pzos.solve(problem(), SOLVER, steps=1, tolerance="x")  # type: ignore[arg-type]
