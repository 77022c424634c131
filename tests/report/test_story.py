"""The story of a result: what the page will say, checked against the result itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pzos
from instances import START, problem
from pzos.networks import generated_city
from pzos.report.story import EMPTY, Curve, Story, asked_rows, ledger_of, road_map, story_of, toll_labels

SOLVER = pzos.PZOS(step=0.05, radius=0.1)


def test_a_result_tells_before_and_after(tmp_path: Path) -> None:
    result = pzos.solve(problem(), SOLVER, steps=8)
    story: Story = story_of(result)
    np.testing.assert_array_equal(story.before, START)
    np.testing.assert_array_equal(story.after, result.best_x)
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


def test_decisions_have_names_where_the_problem_knows_them() -> None:
    story = story_of(pzos.solve(problem(), SOLVER, steps=1), name="mine")
    assert (story.name, story.label(3)) == ("mine", "x[3]")


def test_a_toll_problem_comes_with_its_map_and_the_names_of_its_links() -> None:
    city = generated_city(3, 3, zones=4, congestion=2.0, seed=1)
    tolls = city.toll_problem([0, 2], objective="travel_time", upper=5.0)
    before, after = np.zeros(2), np.array([1.0, 3.0])
    roads = road_map(tolls, before, after)
    assert roads is not None
    assert roads.toll.tolist() == [1.0, 0.0, 3.0] + [0.0] * (city.links - 3)
    np.testing.assert_allclose(roads.flow_before, city.assign().flow, rtol=1e-6)
    assert not np.allclose(roads.flow_before, roads.flow_after)
    np.testing.assert_array_equal(roads.start, np.asarray(city.coordinates)[city.tail])
    labels = toll_labels(tolls)
    assert len(labels) == 2
    assert all(" → " in label for label in labels)


def test_there_is_no_map_without_a_network_or_without_both_ends() -> None:
    assert road_map(problem(), START, START) is None
    assert road_map(None, START, START) is None
    assert toll_labels(problem()) == toll_labels(None) == ()
    tolls = generated_city(3, 3, zones=4, seed=1).toll_problem([0], objective="travel_time", upper=5.0)
    assert road_map(tolls, EMPTY, np.zeros(1)) is None
