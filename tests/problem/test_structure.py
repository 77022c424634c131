from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.games.routing import RoutingGame
from pzos.games.security import SecurityGame
from pzos.problem.structure import declared


def test_declarations_are_sorted_out():
    found = declared([pzos.own_effect(), pzos.conserved(), pzos.answers_nonnegative()])
    assert found.own_effect
    assert found.conserved is not None
    np.testing.assert_array_equal(found.conserved.laws(3), np.ones((1, 3)))
    assert float(found.bounds.lower) == 0.0
    assert not declared([]).own_effect


def test_a_problem_carries_its_structure_however_it_is_given():
    facts = [pzos.own_effect(), pzos.conserved()]
    game = SecurityGame.random(0, 5)
    direct = game.problem(structure=facts)
    later = replace(game.problem(), structure=facts)
    rebuilt = pzos.Problem(direct.leader, direct.follower, direct.x0, direct.domain, structure=facts)
    for problem in (direct, later, rebuilt):
        assert problem.structure == tuple(facts)
        assert problem.known().structure == tuple(facts)
    same = [pzos.solve(problem, queries=6, progress=False).x for problem in (direct, later, rebuilt)]
    np.testing.assert_array_equal(same[0], same[1])
    np.testing.assert_array_equal(same[0], same[2])
    tolls = RoutingGame.random(1).problem(regularisation=0.1, structure=[pzos.answers_nonnegative()])
    assert len(tolls.structure) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pzos.conserved([[1.0, np.nan]]), "finite"),
        (lambda: pzos.conserved([[1.0, 1.0], [2.0, 2.0]]), "independent"),
        (lambda: pzos.conserved(np.ones((1, 3)), b=[1.0, 2.0]), "one per law"),
        (lambda: pzos.answers_between(1.0, 0.0), "upper >= lower"),
        (lambda: pzos.answers_between(np.nan, 1.0), "lower = .*nan.*: expected numbers"),
        (lambda: pzos.answers_between([0.0, 0.0], [1.0, 1.0, 1.0]), "entries"),
        (lambda: declared([pzos.own_effect(), pzos.own_effect()]), "twice"),
        (lambda: declared(["conserved"]), "declarations"),
    ],
)
def test_bad_declarations_are_explained(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_constants_of_a_law_are_kept():
    law = pzos.conserved(np.ones((1, 3)), b=[2.0])
    np.testing.assert_array_equal(law.b, [2.0])
