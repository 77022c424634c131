"""The generator standard: suggest and ingest give the bits of a solve, and keep to the standard's rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from durable_problem import grad_x, grad_y, value
from pzos.base.errors import InvalidInput
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
    with pytest.raises(ValueError, match="num_points = 2"):
        generator.suggest(2)


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
