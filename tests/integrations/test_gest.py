"""The generator standard: suggest and ingest give the bits of a solve, and keep to the standard's rules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from durable_problem import grad_x, grad_y, value
from pzos.base.errors import InvalidInput
from pzos.integrations import gest
from pzos.integrations.gest import PzosGenerator

pytest.importorskip("gest_api", reason="needs the extra generator")

LEADER = pzos.leader_from_functions(value, grad_x, grad_y, name="kinks")
SOLVER = pzos.PZOS(batch=2)


def vocs(**changes: Any) -> Any:
    from gest_api.vocs import VOCS

    given = {"variables": {"a": [0.0, 2.0], "b": [0.0, 2.0]}, "observables": ["low", "high"], "constants": {"c": 3.0}}
    return VOCS(**{**given, **changes})


def made(**given: Any) -> PzosGenerator:
    return PzosGenerator(vocs(), LEADER, SOLVER, **{"x0": [1.0, 1.5], "steps": 4, "seed": 7, **given})


def evaluated(point: dict[str, Any]) -> dict[str, Any]:
    return {**point, "low": abs(point["a"] - 0.3), "high": abs(point["b"] - 0.3)}


def driven(generator: PzosGenerator) -> pzos.Result:
    while points := generator.suggest():
        generator.ingest([evaluated(point) for point in points])
    return generator.result()


def test_the_bits_of_a_solve() -> None:
    box = pzos.Box(np.zeros(2), np.full(2, 2.0))
    game = pzos.Problem(LEADER, lambda x: np.abs(x - 0.3), [1.0, 1.5], box)
    expected = pzos.solve(game, SOLVER, steps=4, seed=7)
    result = driven(made())
    assert result.x.tobytes() == expected.x.tobytes()
    assert result.trace["value"].tobytes() == expected.trace["value"].tobytes()


def test_no_query_leaves_linear_constraints_and_the_grid() -> None:
    half = pzos.Polyhedron(A=[[1.0, 2.0]], b=[2.0])
    solver = pzos.CompositeTrustRegion()
    generator = PzosGenerator(vocs(), LEADER, solver, domain=half, grid=0.25, queries=15)
    asked = []
    while points := generator.suggest():
        asked += [[point["a"], point["b"]] for point in points]
        generator.ingest([evaluated(point) for point in points])
    x = np.array(asked)
    assert len(x) > 5
    assert (x[0] @ [1.0, 2.0]) == pytest.approx(2.0)  # the middle of the bounds, brought into the set
    assert (x @ [1.0, 2.0] <= 2.0 + 1e-9).all()
    assert (x[1:] * 4 == np.round(x[1:] * 4)).all()  # every query after the start


def test_it_is_a_generator_of_the_standard() -> None:
    from gest_api.generator import Generator

    generator = made()
    assert isinstance(generator, Generator)
    assert generator.returns_id
    (first,) = generator.suggest(1)
    assert set(first) == {"a", "b", "c", "_id"}
    assert first["c"] == 3.0
    assert len(generator.suggest()) == 4  # the rest of the step, none twice
    assert generator.suggest() == []
    assert generator.suggest(0) == []


@pytest.mark.parametrize("wrong", [6, -1, 1.5, True, "all"])
def test_a_number_of_points_that_a_step_does_not_have(wrong: Any) -> None:
    generator = made()
    with pytest.raises(ValueError, match=r"^suggest: num_points = .*: expected at most 5, the queries this step still"):
        generator.suggest(wrong)
    assert len(generator.suggest()) == 5, "a refused call hands nothing out"


def test_points_from_elsewhere_and_unknown_identities() -> None:
    generator = made()
    generator.ingest([{"a": 0.1, "b": 0.2, "low": 1.0, "high": 2.0}])
    assert generator.ignored == 1
    with pytest.raises(ValueError, match="_id"):
        generator.ingest([{"a": 0.1, "b": 0.2, "low": 1.0, "high": 2.0, "_id": 99}])


def test_failed_evaluations_are_failures() -> None:
    generator = made()
    points = [evaluated(point) for point in generator.suggest()]
    points[1]["low"] = float("nan")
    del points[2]["high"]
    generator.ingest(points)
    assert generator.result().failures == 2
    assert generator.study.step == 1


def test_a_durable_generator_goes_on(tmp_path: Path) -> None:
    path = str(tmp_path / "s.study")
    generator = made(path=path)
    generator.ingest([evaluated(point) for point in generator.suggest(3)])
    generator.finalize()
    resumed = made(path=path)
    assert len(resumed.suggest()) == 2
    resumed.finalize()
    resumed = made(path=path)
    result = driven(resumed)
    resumed.finalize()
    assert result.x.tobytes() == driven(made()).x.tobytes()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"variables": {"a": {1.0, 2.0}}}, "continuous"),
        ({"observables": []}, "observables"),
        ({"objectives": {"f": "MINIMIZE", "g": "MINIMIZE"}}, "objectives"),
        ({"constraints": {"k": ["LESS_THAN", 0.0]}}, "constraints"),
    ],
    ids=["discrete", "no response", "two objectives", "constraints"],
)
def test_vocs_that_cannot_be_used(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        PzosGenerator(vocs(**changes), LEADER, SOLVER)


def test_the_sense_comes_from_the_objective() -> None:
    generator = PzosGenerator(vocs(objectives={"f": "MAXIMIZE"}), LEADER, SOLVER)
    assert generator.study.known.sense == "max"
    np.testing.assert_array_equal(generator.study.known.x0, [1.0, 1.0])


def test_without_an_objective_or_a_minimised_one_the_cost_goes_down() -> None:
    for given in ({}, {"objectives": {"f": "MINIMIZE"}}):
        assert PzosGenerator(vocs(**given), LEADER, SOLVER).study.known.sense == "min"


def test_the_bounds_are_the_set_and_defaults_the_start() -> None:
    from gest_api.vocs import ContinuousVariable

    a = ContinuousVariable(domain=[0.0, 2.0], default_value=0.25)
    generator = PzosGenerator(vocs(variables={"a": a, "b": [-1.0, 5.0]}), LEADER, SOLVER)
    known = generator.study.known
    np.testing.assert_array_equal(known.x0, [0.25, 2.0])
    assert isinstance(known.domain, pzos.Box)
    np.testing.assert_array_equal(known.domain.lower, [0.0, -1.0])
    np.testing.assert_array_equal(known.domain.upper, [2.0, 5.0])


def test_all_that_is_wrong_with_vocs_is_said_at_once() -> None:
    wrong = vocs(
        variables={"a": {1.0, 2.0}},
        observables=[],
        objectives={"f": "MINIMIZE", "g": "MINIMIZE"},
        constraints={"k": ["LESS_THAN", 0.0]},
    )
    with pytest.raises(InvalidInput) as caught:
        PzosGenerator(wrong, LEADER, SOLVER)
    assert str(caught.value).startswith("PzosGenerator: 4 faults\n  - vocs.variables = ['a (DiscreteVariable)']: ")


def test_a_start_outside_the_bounds_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"Problem: x0 = .*a point of the domain"):
        made(x0=[5.0, 5.0])


def test_observables_may_be_arrays() -> None:
    generator = PzosGenerator(vocs(observables=["both"]), LEADER, SOLVER, x0=[1.0, 1.5], steps=4, seed=7)
    while points := generator.suggest():
        generator.ingest([{**p, "both": np.abs(np.array([p["a"], p["b"]]) - 0.3)} for p in points])
    assert generator.result().x.tobytes() == driven(made()).x.tobytes()


def test_results_may_come_in_any_order_and_number() -> None:
    generator = made()
    while points := generator.suggest():
        for point in reversed(points):
            generator.ingest([evaluated(point)])
    assert generator.result().x.tobytes() == driven(made()).x.tobytes()
    assert generator.study.done
    assert generator.suggest() == []
    with pytest.raises(ValueError, match="num_points = 1: expected at most 0"):
        generator.suggest(1)


def test_an_unknown_identity_leaves_everything_as_it_was() -> None:
    generator = made()
    points = [evaluated(point) for point in generator.suggest()]
    with pytest.raises(InvalidInput, match=r"^ingest: _id = \[99\]: expected identities that suggest\(\) gave"):
        generator.ingest([*points, {"a": 0.1}, {**points[0], "_id": 99}])
    assert generator.ignored == 0
    assert generator.study.queries == 0
    generator.ingest(points)
    assert generator.study.step == 1


def test_a_result_told_twice_is_taken_once_and_one_that_changed_is_refused() -> None:
    generator = made()
    points = [evaluated(point) for point in generator.suggest()]
    generator.ingest([points[0], points[0]])
    with pytest.raises(pzos.InvalidAnswer):
        generator.ingest([{**points[0], "low": 7.0}])
    generator.ingest(points)
    assert (generator.study.step, generator.study.queries) == (1, 5)


@pytest.mark.parametrize("low", [None, "much", [[1.0], [1.0, 2.0]], np.inf, [0.5, np.nan]])
def test_what_is_no_response_is_a_failure(low: Any) -> None:
    generator = made()
    points = [evaluated(point) for point in generator.suggest()]
    generator.ingest([{**points[0], "low": low}, *points[1:]])
    assert generator.result().failures == 1


def test_the_program_that_drives_it_asks_the_followers() -> None:
    with pytest.raises(pzos.PzosError, match="asked by the program that drives it"):
        gest._ELSEWHERE.respond(np.zeros(2), None)


def test_without_the_standard_installed_it_works_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gest_api.generator", None)
    assert driven(made()).x.tobytes() == driven(made(seed=7)).x.tobytes()


def test_what_was_suggested_before_a_restart_is_ingested_after_it(tmp_path: Path) -> None:
    before = made(path=str(tmp_path / "s.study"))
    rows = before.suggest()
    before.finalize()
    after = made(path=str(tmp_path / "s.study"))
    after.ingest([evaluated(row) for row in rows])
    assert after.study.step == 1
    after.finalize()


def test_a_row_whose_x_was_changed_is_refused(tmp_path: Path) -> None:
    generator = made()
    first, *_ = generator.suggest()
    name = next(iter(generator.vocs.variable_names))
    for changed in (first[name] + 1e-6, "far", None):
        with pytest.raises(pzos.InvalidInput, match="the variables are not those that were suggested"):
            generator.ingest([{**evaluated(first), name: changed}])
    generator.ingest([{**evaluated(first), name: float(f"{first[name]:.14g}")}])


def test_several_points_at_once_come_back_in_any_order() -> None:
    generator = PzosGenerator(
        vocs(), LEADER, pzos.CompositeTrustRegion(), x0=[1.0, 1.5], queries=9, seed=7, order="told"
    )
    first = generator.suggest(4)
    assert len({point["_id"] for point in first}) == 4
    generator.ingest([evaluated(first[2])])
    second = generator.suggest(3)
    assert not {point["_id"] for point in second} & {point["_id"] for point in first}
    generator.ingest([evaluated(point) for point in (*second, first[3], first[0])])
    generator.ingest([evaluated(first[2])])  # the same once more changes nothing
    last = generator.suggest(2)
    with pytest.raises(ValueError, match="num_points = 1: expected at most 0"):
        generator.suggest(1)
    generator.ingest([evaluated(point) for point in (*last, first[1])])
    assert generator.suggest() == []
    assert generator.result().queries == 9


def test_constraints_bound_observables_by_name() -> None:
    bounded = vocs(constraints={"high": ["GREATER_THAN", 0.5], "low": ["BOUNDS", 0.1, 0.4]})
    generator = PzosGenerator(bounded, LEADER, pzos.CompositeTrustRegion(), x0=[1.0, 1.5], queries=15)
    result = driven(generator)
    assert result.standing is not None
    assert result.standing.names == ("high >= 0.5", "low <= 0.4", "low >= 0.1")
    assert result.violation <= 1e-6
    low, high = abs(result.x - 0.3)
    assert high >= 0.5 - 1e-5
    assert 0.1 - 1e-5 <= low <= 0.4 + 1e-5


def test_constraints_of_a_generator_need_observables_that_are_numbers() -> None:
    bounded = vocs(observables=["both"], constraints={"both": ["LESS_THAN", 0.5]})
    generator = PzosGenerator(bounded, LEADER, SOLVER, x0=[1.0, 1.5], steps=4)
    (point,) = generator.suggest(1)
    with pytest.raises(InvalidInput, match="an observable is an array"):
        generator.ingest([{**point, "both": [0.1, 0.2]}])
