"""The story of a result: what the page will say, checked against the result itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pzos
from instances import START, problem
from pzos.networks import generated_city
from pzos.report.story import EMPTY, Curve, Point, Story, asked_rows, ledger_of, road_map, story_of

SOLVER = pzos.PZOS(step=0.05, radius=0.1)


def test_a_result_tells_before_and_after(tmp_path: Path) -> None:
    result = pzos.solve(problem(), SOLVER, steps=8)
    story: Story = story_of(result)
    nothing, start, best = story.points
    assert [point.name for point in story.points] == ["doing nothing", "start", "best point seen"]
    assert nothing.x.tolist() == [0.0] * 5
    assert nothing.y.size == 0  # nobody asked there
    assert nothing.value != nothing.value
    np.testing.assert_array_equal(start.x, START)
    np.testing.assert_array_equal(start.y, problem().follower.respond(START, None))
    assert start.value == result.trace["value"][0]
    np.testing.assert_array_equal(best.x, result.best_x)
    assert best.value == result.best_value
    assert best.y.size == start.y.size
    assert story.ledger == {"at the iterate": 8, "probes": 16, "monitoring": 1}
    assert story.curve.best("min")[-1] == result.best_value


def test_certificates_are_put_into_words(tmp_path: Path) -> None:
    result = pzos.solve(problem(), SOLVER, steps=8)
    assert "No certificate" in story_of(result).certificate
    certificate = result.certify(problem(), delta=0.1, at="best")
    page = result.report(tmp_path / "page.html", problem(), certificate).read_text(encoding="utf-8")
    assert "with 95 % confidence" in page
    watched = pzos.solve(problem(), pzos.StopWhenStationary(SOLVER, delta=0.5, epsilon=5.0), queries=3000)
    assert watched.certificate is not None
    assert story_of(watched).certificate == str(watched.certificate)


def test_where_there_is_no_certificate_the_reason_is_told() -> None:
    result = pzos.solve(problem(), SOLVER, steps=2)
    assert story_of(replace(result, uncertified="the budget is too small")).certificate == "the budget is too small"


def test_the_cost_has_a_unit_wherever_it_is_told(tmp_path: Path) -> None:
    result = pzos.minimize(lambda x, y: y @ y, lambda x: np.abs(x - 1), [0.0, 0.0], queries=9, unit="EUR")
    assert result.table().startswith("F = 0 EUR, down from 2 EUR at the start")
    assert "0 EUR" in dict(result.rows())["lowest F seen"]
    assert "from 2 EUR to 0 EUR" in story_of(result).verdict
    page = result.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "cost [EUR]" in page  # in the table of the decision
    assert "cost above the best [EUR]" in page  # at the axis of the chart
    with pytest.raises(pzos.InvalidInput, match="unit = 5: expected a line of text"):
        pzos.minimize(lambda x, y: y @ y, abs, [0.0], unit=5)


@pytest.mark.parametrize(("sense", "best"), [("min", [3.0, 1.0, 1.0, 0.0]), ("max", [3.0, 3.0, 3.0, 3.0])])
def test_the_best_so_far_never_gets_worse(sense: str, best: list[float]) -> None:
    curve = Curve(np.arange(4.0), np.arange(4.0), np.array([3.0, 1.0, 2.0, 0.0]))
    assert curve.best(sense).tolist() == best  # type: ignore[arg-type]


def test_what_was_asked_names_goal_set_and_structure() -> None:
    assert asked_rows("", "max", 3, None) == (("problem", "unnamed"), ("goal", "maximise F(x)"), ("decisions", "3"))
    boxed = pzos.Problem(problem().leader, problem().follower, START, pzos.Box(0.0, 2.0))
    rows = dict(asked_rows("roads", "min", 5, boxed))
    assert rows["goal"] == "minimise F(x)"
    assert rows["allowed set"] == "Box"


def test_trial_points_are_told_apart_by_what_became_of_them() -> None:
    result = pzos.solve(problem(), pzos.CompositeTrustRegion(), steps=6)
    ledger = ledger_of(result)
    accepted = int(np.nansum(result.trace["accepted"] > 0))
    assert ledger["accepted"] == accepted
    assert ledger["start"] == 1
    assert sum(ledger.values()) == sum(result.ledger.values())


def test_the_method_is_told_with_its_costs_and_why_it_was_chosen() -> None:
    result = pzos.solve(problem(), queries=12)
    rows = dict(story_of(result).method)
    assert rows["solver"] == result.solver
    assert rows["queries"] == f"{result.queries} by the algorithm, {result.monitoring} to monitor it"
    assert rows["why this method"] == result.explanation
    assert "why this method" not in dict(story_of(pzos.solve(problem(), SOLVER, steps=1)).method)


def test_the_verdict_is_one_sentence_with_what_was_won_and_why_it_ended() -> None:
    story = story_of(pzos.solve(problem(), SOLVER, steps=8))
    first, best = story.curve.values[0], story.points[-1].value
    assert story.verdict == (
        f"The best decision found brings the cost down from {first:.6g} to {best:.6g}, after 25 queries; "
        "all steps were taken."
    )
    still = replace(story, curve=Curve(np.arange(2.0), np.arange(2.0), np.array([1.0, 2.0])))
    assert still.verdict.startswith("No decision asked about is better than the first, with a cost of 1, after")
    raised = replace(still, sense="max")
    assert "brings the value up from 1 to 2 (100 % higher)" in raised.verdict
    assert best < 0.0 < first  # no percentage of a change of sign
    assert replace(story, curve=Curve(EMPTY, EMPTY, EMPTY)).verdict.startswith("What was reached is not known here")


def test_doing_nothing_is_compared_where_it_is_allowed_and_another_than_the_start() -> None:
    def names(start: np.ndarray, domain: pzos.Box | None) -> list[str]:
        inside = pzos.Problem(problem().leader, problem().follower, start, domain)
        return [point.name for point in story_of(pzos.solve(inside, SOLVER, steps=1)).points]

    assert names(START, pzos.Box(0.1, 2.0)) == ["start", "best point seen"]
    assert names(np.zeros(5), None) == ["start (doing nothing)", "best point seen"]


def test_a_toll_problem_comes_with_its_map_and_the_names_of_its_links() -> None:
    city = generated_city(3, 3, zones=4, congestion=2.0, seed=1)
    tolls = city.toll_problem([0, 2], objective="travel_time", upper=5.0, x0=[1.0, 3.0])
    story = story_of(pzos.solve(tolls, queries=2), problem=tolls)
    nothing, *_, best = story.points
    free = city.assign().flow
    np.testing.assert_allclose(nothing.y, free, rtol=1e-6)  # by the network's own model, without a query
    assert nothing.value == tolls.leader.value(np.zeros(2), nothing.y)
    roads = story.roads
    assert roads is not None
    assert roads.before == "doing nothing"
    assert roads.toll.tolist() == [best.x[0], 0.0, best.x[1]] + [0.0] * (city.links - 3)
    np.testing.assert_allclose(roads.flow_before, free, rtol=1e-6)
    np.testing.assert_array_equal(roads.flow_after, best.y)
    np.testing.assert_array_equal(roads.start, np.asarray(city.coordinates)[city.tail])
    assert [" → " in column.name for column in story.decisions.each] == [True, True]
    assert len(story.responses.each) == city.links
    assert "doing nothing: " in story.verdict


def test_there_is_no_map_without_a_network_or_without_both_ends() -> None:
    points = (Point("start", START, EMPTY, 0.0),) * 2
    assert road_map(problem(), points) is None
    assert road_map(None, points) is None
    tolls = generated_city(3, 3, zones=4, seed=1).toll_problem([0], objective="travel_time", upper=5.0)
    assert road_map(tolls, points[:1]) is None


def test_a_durable_run_is_told_how_to_go_on_and_one_in_memory_that_it_cannot(tmp_path: Path) -> None:
    kept = pzos.solve(problem(), queries=5, path=tmp_path / "a.study", certificate=False, progress=False)
    assert 'Study.open("a.study"' in " ".join(story_of(kept).resume)
    in_memory = pzos.solve(problem(), queries=5, certificate=False, progress=False)
    assert "kept in memory" in " ".join(story_of(in_memory).resume)
