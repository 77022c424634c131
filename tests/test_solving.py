"""One call: solve is the study by hand with a method, a certificate and its costs; minimize and maximize are solve."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from durable_problem import bits, problem as kinked
from instances import LEADER, START, problem, response
from pzos.answers.crew import size_of
from pzos.base.errors import FollowerFailure, InvalidInput
from pzos.methods.named import as_method
from pzos.stationarity.bounds import FEWEST_QUERIES
from pzos.stationarity.certificate import kept_beside, place_beside

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
    result = pzos.solve(kinked(), queries=12, certificate=True)
    assert result.explanation == f"{why}. {named.explanation}"
    assert named.explanation.startswith("Found out on the way: no structure shows in the answers; the followers repeat")
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
        (SOLVER, 5, "certificate = 5: expected a whole number, 33 or more"),
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
    result = pzos.solve(kinked(follower=follower), queries=12, tolerance=tolerance, certificate=True)
    assert result.certificate is None
    assert result.ledger["for the certificate"] == FEWEST_QUERIES
    assert follower.calls == result.queries + result.monitoring == 12 + FEWEST_QUERIES


@pytest.mark.parametrize("at", [1, 2, 20, FEWEST_QUERIES])
def test_ctrl_c_in_the_certificate_keeps_the_result_and_counts_what_was_answered(tmp_path: Path, at: int) -> None:
    quiet = pzos.solve(kinked(), queries=12, certificate=True)
    follower = Broken(after=quiet.queries + quiet.monitoring - FEWEST_QUERIES + at - 1, error=KeyboardInterrupt)
    named = {"follower_name": "kinks"}
    path = tmp_path / "run.study"
    result = pzos.solve(kinked(follower=follower, **named), queries=12, path=path, certificate=True)
    assert (result.stop, result.certificate) == (pzos.Stop.INTERRUPTED, None)
    np.testing.assert_array_equal(result.x, quiet.x)
    assert result.queries + result.monitoring == follower.calls - 1
    assert result.ledger.get("for the certificate", 0) == at - 1
    again = pzos.solve(kinked(**named), queries=12, path=path, certificate=True)  # and no answer is lost
    assert repr(again.certificate) == repr(quiet.certificate)


def test_ctrl_c_between_the_run_and_its_certificate_keeps_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    import pzos.stationarity.certificate as certificates

    def interrupted(study: pzos.Study, queries: int) -> Any:
        signal.raise_signal(signal.SIGINT)
        return ending_solver(study, queries)

    ending_solver = certificates.ending_solver
    monkeypatch.setattr(certificates, "ending_solver", interrupted)
    result = pzos.solve(kinked(), queries=12, certificate=True)
    assert (result.stop, result.queries, result.certificate) == (pzos.Stop.INTERRUPTED, 12, None)


def test_without_a_single_answer_there_is_a_result_and_no_certificate() -> None:
    tolerance = pzos.Tolerance(attempts=1, policy="drop", failure_rate=1.0)
    result = pzos.solve(kinked(follower=Broken(after=0)), queries=3, tolerance=tolerance)
    assert result.stop is pzos.Stop.QUERIES
    assert result.failures == result.nfev == 3
    assert result.certificate is None


def test_a_failing_follower_is_an_error_unless_it_is_tolerated() -> None:
    with pytest.raises(FollowerFailure, match="out of order"):
        pzos.solve(kinked(follower=Broken(after=4)), SOLVER, steps=3)


def test_a_durable_run_keeps_its_certificate_and_finds_it_again(tmp_path: Path) -> None:
    path = tmp_path / "run.study"
    first = pzos.solve(kinked(follower_name="kinks"), queries=12, path=path, certificate=True)
    assert place_beside(path, 12).exists()
    silent = kinked(follower=Broken(after=0), follower_name="kinks")
    again = pzos.solve(silent, queries=12, path=path, certificate=True)
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

    result = pzos.solve(kinked(follower=pzos.seeded(noisy)), queries=12, certificate=True)
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


# ---- every worker busy --------------------------------------------------------------------------------------------


def smooth(x: Any) -> Any:
    return np.tanh(x) + 0.3 * x[::-1]


def smooth_problem(follower: Any = smooth) -> pzos.Problem:
    leader = pzos.leader_from_functions(
        lambda x, y: float(((y - 1.0) ** 2).sum() + 0.1 * x @ x), lambda x, y: 0.2 * x, lambda x, y: 2 * (y - 1.0)
    )
    return pzos.Problem(leader, follower, np.full(4, 0.2))


def asked(**settings: Any) -> pzos.Result:
    return pzos.solve(smooth_problem(), queries=12, certificate=False, **settings)


def test_the_default_asks_as_many_at_a_time_as_there_are_workers_and_who_answers_changes_no_bit() -> None:
    with ThreadPoolExecutor(3) as three, ThreadPoolExecutor(2) as two:
        found_out, said = asked(executor=three), asked(executor=two, workers=3)
        assert asked(executor=three, workers=1).steps == 12
    processes = asked(workers=3)
    assert (found_out.steps, found_out.queries) == (4, 12)
    assert found_out.trace["value"].tobytes() == said.trace["value"].tobytes() == processes.trace["value"].tobytes()
    assert "3 queries per step" in found_out.explanation


def test_no_worker_waits_for_another() -> None:
    began = threading.Barrier(2)
    slow_first = threading.Event()
    answered: list[float] = []

    def uneven(x: Any) -> Any:
        if not slow_first.is_set() and np.all(x == 0.2):  # the first query: it ends when ten others have been answered
            began.wait(10)
            assert slow_first.wait(10)
        elif not answered:
            began.wait(10)
        answered.append(float(x.sum()))
        if len(answered) == 10:
            slow_first.set()
        return smooth(x)

    with ThreadPoolExecutor(2) as pool:
        result = pzos.solve(smooth_problem(uneven), queries=12, executor=pool, order="told", certificate=False)
    assert result.queries == 12
    assert answered.index(0.8) >= 10


def test_with_one_worker_both_orders_are_one() -> None:
    assert asked(order="told").trace["value"].tobytes() == asked().trace["value"].tobytes()


@pytest.mark.parametrize("order", ["asked", "told"])
def test_the_number_of_workers_may_change_between_runs_of_a_file(tmp_path: Path, order: Any) -> None:
    with ThreadPoolExecutor(4) as pool:
        first = pzos.solve(
            smooth_problem(), queries=8, workers=4, executor=pool, order=order, path=tmp_path / "a.study"
        )
        then = pzos.solve(
            smooth_problem(), queries=16, workers=2, executor=pool, order=order, path=tmp_path / "a.study"
        )
    assert (first.queries, then.queries) == (8, 16)
    assert then.trace["value"][: first.steps].tobytes() == first.trace["value"].tobytes()
    assert then.steps == (4 if order == "asked" else 16)


def test_a_target_that_is_reached_does_not_wait_for_the_slow() -> None:
    stop_waiting = threading.Event()
    calls: list[float] = []

    def sticky(x: Any) -> Any:
        calls.append(float(x.sum()))
        if len(calls) == 2:
            stop_waiting.wait(20)
        return smooth(x)

    with ThreadPoolExecutor(2) as pool:
        result = pzos.solve(
            smooth_problem(sticky), queries=50, target=3.0, executor=pool, order="told", certificate=False
        )
        assert not stop_waiting.is_set()
        stop_waiting.set()
    assert result.stop is pzos.Stop.TARGET


def test_failures_are_dropped_or_raised_while_no_worker_waits() -> None:
    def fails_sometimes(x: Any) -> Any:
        if x[0] > 0.5:
            raise ValueError("too much")
        return smooth(x)

    with ThreadPoolExecutor(3) as pool:
        settings = {"queries": 15, "executor": pool, "order": "told", "certificate": False}
        tolerance = pzos.Tolerance(attempts=1, policy="drop", failure_rate=1.0)
        result = pzos.solve(smooth_problem(fails_sometimes), tolerance=tolerance, **settings)
        assert result.failures > 0
        with pytest.raises(FollowerFailure, match="too much"):
            pzos.solve(smooth_problem(fails_sometimes), **settings)


def test_an_executor_of_unknown_size_has_to_be_told() -> None:
    with pytest.raises(InvalidInput, match="workers"):
        asked(workers=0)
    with pytest.raises(InvalidInput, match="order"):
        asked(order="first")
    assert size_of(ThreadPoolExecutor(5)) == 5
    assert size_of(pzos.Renewed(lambda: ThreadPoolExecutor(6))) == 6
    with pytest.raises(InvalidInput, match="add workers=8"):
        size_of(object())


# ---- one call on page one -------------------------------------------------------------------------------------------


def plain(x: Any, y: Any) -> Any:
    return ((y - 1.0) ** 2).sum() + 0.1 * (x * x).sum()


def test_one_call_with_a_plain_cost_finds_what_the_long_way_finds() -> None:
    result = pzos.minimize(plain, smooth, np.full(4, 0.2), bounds=[(0, 1)] * 3 + [(None, 1)], queries=30)
    long_way = pzos.solve(smooth_problem(), queries=30, certificate=False)
    assert result.fun <= long_way.fun + 1e-3
    assert result.success
    assert "The cost is differentiated by " in result.explanation
    upside_down = pzos.maximize(lambda x, y: -plain(x, y), smooth, np.full(4, 0.2), bounds=(0, 1), queries=30)
    assert upside_down.fun == pytest.approx(-result.fun, abs=1e-3)
    by_sense = pzos.minimize(
        lambda x, y: -plain(x, y), smooth, np.full(4, 0.2), bounds=(0, 1), queries=30, sense="maximize"
    )
    np.testing.assert_array_equal(by_sense.x, upside_down.x)


def test_bounds_hold_and_a_step_of_x_too() -> None:
    points: list[Any] = []

    def noted(x: Any) -> Any:
        points.append(x.copy())
        return smooth(x)

    result = pzos.minimize(plain, noted, np.full(4, 0.25), bounds=[(0.05, 0.5)] * 4, queries=20, step_of_x=0.05)
    asked_at = np.array(points)
    assert asked_at.min() >= 0.05 - 1e-12
    assert asked_at.max() <= 0.5 + 1e-12
    np.testing.assert_allclose(result.x / 0.05, np.round(result.x / 0.05), atol=1e-9)


@pytest.mark.parametrize("limits", [None, (None, None), [(0, 2)] * 4, (0, 2), np.array([[0.0, 2.0]] * 4)])
def test_bounds_are_pairs_or_one_pair_for_all(limits: Any) -> None:
    assert pzos.minimize(plain, smooth, np.full(4, 0.2), "PZOS", bounds=limits, steps=2).steps == 2


def test_scipys_bounds_will_do() -> None:
    from scipy.optimize import Bounds

    result = pzos.minimize(plain, smooth, np.full(4, 0.2), bounds=Bounds([0] * 4, [0.3] * 4), queries=12)
    assert result.x.max() <= 0.3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bounds": 3}, r"minimize: bounds = 3: expected pairs \(lower, upper\); try bounds=\[\(0, 8\), \(0, None\)\]"),
        ({"bounds": [(0, 1, 2)] * 4}, r"expected pairs \(lower, upper\)"),
        ({"bounds": [(0, "a")] * 4}, r"expected pairs \(lower, upper\)"),
        ({"bounds": []}, r"expected pairs \(lower, upper\)"),
        ({"bounds": [(1, 0)] * 4}, "expected upper >= lower in every entry"),
        ({"bounds": [(0, 1)] * 3}, "lower has 3 entries: expected 4"),
        ({"bounds": (0, 1), "domain": pzos.Box(0, 1)}, "expected no bounds beside a domain"),
        ({"bounds": (1, 2)}, "x0 = .* expected a point of the domain"),
        ({"sense": "up"}, "minimize: sense = 'up': expected 'min' or 'max'"),
        ({"method": "PZSO"}, "did you mean 'PZOS'?"),
        ({"method": "PZOS", "xtol": 0.1, "ftol": 1}, "2 faults.*|xtol = 0.1: expected none, which PZOS does not know"),
        ({"xtol": -1}, "xtol = -1: expected a positive number"),
        ({"callback": 3}, "callback = 3: expected a function of a record"),
        ({"step_of_x": -1}, "grid = -1: expected steps of zero or more"),
    ],
)
def test_what_one_call_refuses_before_any_query(settings: Any, message: str) -> None:
    follower = Broken(after=0)
    with pytest.raises(InvalidInput, match=message):
        pzos.minimize(plain, follower, np.full(4, 0.2), **settings)
    assert follower.calls == 0
    with pytest.raises(InvalidInput, match=r"maximize: cost = 3: expected a function cost\(x, y\)"):
        pzos.maximize(3, follower, [1.0])  # type: ignore[arg-type]


def test_tolerances_end_a_run_early_also_under_constraints() -> None:
    long = pzos.minimize(plain, smooth, np.full(4, 0.2), queries=60, certificate=False)
    for outcomes in (None, pzos.caps(5.0)):
        short = pzos.minimize(
            plain, smooth, np.full(4, 0.2), queries=60, certificate=False, ftol=1e-3, outcomes=outcomes
        )
        assert short.stop is pzos.Stop.CONVERGED
        assert short.queries < long.queries
        assert short.fun <= long.fun + 0.01


@pytest.mark.parametrize("order", ["asked", "told"])
def test_a_callback_hears_of_every_step_and_may_end_the_run(order: Any) -> None:
    heard: list[pzos.Record] = []
    whole = asked(callback=heard.append, order=order)
    assert [record.step for record in heard] == list(range(whole.steps))
    assert (heard[-1].queries, heard[0].value) == (12, whole.trace["value"][0])

    def stops(record: pzos.Record) -> None:
        if record.step == 4:
            raise StopIteration

    for callback in (stops, lambda record: record.step == 4):
        ended = asked(callback=callback, order=order)
        assert (ended.stop, ended.steps, ended.queries) == (pzos.Stop.CALLBACK, 5, 5)
        assert ended.success
        assert ended.trace["value"].tobytes() == whole.trace["value"][:5].tobytes()


def test_a_run_that_its_callback_ended_goes_on_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    ended = asked(callback=lambda record: record.step == 4, path=path)
    assert ended.certificate is None
    assert asked(path=path).trace["value"].tobytes() == asked().trace["value"].tobytes()


# ---- the budget is all that is paid ---------------------------------------------------------------------------------


@pytest.mark.parametrize("queries", [1, 5, 40, 132])
@pytest.mark.parametrize("method", ["default", "PZOS", "ZOS", "MemoryPZOS", pzos.PZOS(batch=3)])
def test_no_more_is_asked_than_the_budget_says(method: Any, queries: int) -> None:
    follower = Broken(after=10**6)
    start, calls = np.full(3, 0.2), [0]
    result = pzos.minimize(LEADER_OF_SIX, follower, start, method, queries=queries)
    assert follower.calls == result.nfev <= queries
    assert calls == [0]
    study = pzos.Study(result.known, as_method("test", method) or pzos.CompositeTrustRegion(), queries=queries)
    while not study.done:
        for query in study.ask():
            calls[0] += 1
            study.tell(query, follower(query.x))
    assert calls[0] == study.result().nfev <= queries


LEADER_OF_SIX = pzos.leader_from_functions(
    lambda x, y: float(x @ x + y @ y), lambda x, y: 2 * x, lambda x, y: 2 * y, name="six"
)


def test_a_tenth_of_a_large_budget_is_kept_for_the_certificate_and_a_small_one_says_why_there_is_none() -> None:
    def wild(x: Any) -> Any:  # so many decisions that the method does not end by itself
        return np.sin(10.0 * x)

    large = pzos.minimize(LEADER_OF_SIX, wild, np.full(12, 0.2), queries=140)
    assert large.certificate is not None
    assert (large.queries, large.nfev, large.uncertified) == (107, 140, "")
    small = pzos.minimize(LEADER_OF_SIX, wild, np.full(12, 0.2), queries=40)
    assert (small.certificate, small.nfev) == (None, 40)
    assert small.uncertified.startswith("none: it takes 33 queries, and of 40 there are 0 left; give 132 or more")
    assert small.uncertified in repr(small)
    assert small.uncertified in small.table()
    assert "no certificate" not in repr(pzos.minimize(LEADER_OF_SIX, wild, [0.2], "PZOS", queries=9))


def test_what_a_method_leaves_of_a_small_budget_makes_a_certificate() -> None:
    result = pzos.minimize(plain, smooth, np.full(4, 0.2), queries=100, ftol=1e-3)
    assert result.stop is pzos.Stop.CONVERGED
    assert result.certificate is not None
    assert result.nfev == result.queries + FEWEST_QUERIES <= 100


def test_followers_that_do_not_move_are_not_called_stationary() -> None:
    def stubborn(x: Any) -> Any:
        return np.maximum(np.round(x - 0.5), 0.0)

    certificate = pzos.certify(pzos.Problem(LEADER_OF_SIX, stubborn, [0.2, 0.2]), delta=0.1, queries=33)
    assert certificate.unmoved
    assert "stationary" not in repr(certificate) + certificate.sentence
    assert certificate.sentence.startswith("the followers did not move: all 33 fresh answers within 0.1 of x")


def test_a_certificate_speaks_plainly_first_and_in_the_theorems_words_after() -> None:
    certificate = pzos.certify(pzos.Problem(LEADER_OF_SIX, abs, np.zeros(2)), delta=0.1, queries=65)
    plainly, theorem = certificate.sentence.split(": ")
    slope = f"{certificate.full.upper:.3g}"
    assert plainly == (
        f"averaged over moves of size up to 0.1 around x, the cost has no slope steeper than {slope} in any direction, "
        "as far as 65 fresh queries can tell (95 % confidence)"
    )
    assert theorem == f"x is (0.1, {certificate.partial.upper:.3g})-partial-Goldstein stationary"
    assert repr(certificate).startswith(plainly)


def test_an_error_carries_the_answers_that_were_paid_for() -> None:
    calls: list[Any] = []

    def breaks(x: Any) -> Any:
        calls.append(x)
        if len(calls) == 7:
            raise RuntimeError("the licence has expired")
        return response(x)

    problem = pzos.Problem(LEADER, breaks, START, pzos.Box(-5.0, 5.0))
    with pytest.raises(FollowerFailure, match=r"licence has expired.*answers") as caught:
        pzos.solve(problem, queries=20, progress=False)
    assert len(caught.value.answers) == 6
    again = pzos.solve(problem, queries=10, progress=False, certificate=False, answers=caught.value.answers)
    assert not {x.tobytes() for x in calls[7:]} & {x.tobytes() for x in calls[:6]}
    assert again.queries == 10


def test_a_follower_that_wants_random_numbers_is_told_how() -> None:
    problem = pzos.Problem(LEADER, lambda x, rng: x, START)
    with pytest.raises(FollowerFailure, match=r"pzos.seeded\(follower\)") as caught:
        pzos.solve(problem, queries=5, progress=False)
    assert caught.value.answers is None
    assert ".answers" not in str(caught.value)


def test_answers_are_not_lost_with_a_certificate_that_fails() -> None:
    calls: list[Any] = []

    def breaks(x: Any) -> Any:
        calls.append(x)
        if len(calls) > 135:
            raise RuntimeError("the licence has expired")
        return response(x)

    with pytest.raises(FollowerFailure, match="licence has expired") as caught:
        pzos.solve(pzos.Problem(LEADER, breaks, START, pzos.Box(-5.0, 5.0)), queries=150, progress=False)
    assert len(caught.value.answers) > 100
