"""What users declare about the followers: sorted out, checked, carried by a problem."""

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


def test_the_old_names_are_the_same_things():
    assert pzos.box is pzos.answers_between
    assert pzos.nonnegative is pzos.answers_nonnegative


def test_bounds_of_answers_are_kept_as_given():
    bounds = pzos.answers_between([0.0, -np.inf], 2.0)
    np.testing.assert_array_equal(bounds.lower, [0.0, -np.inf])
    assert float(bounds.upper) == 2.0
    assert float(pzos.answers_nonnegative().upper) == np.inf


def test_a_law_may_be_one_row_and_its_constant_one_number():
    law = pzos.conserved([1.0, 2.0, 0.0], b=5.0)
    np.testing.assert_array_equal(law.laws(3), [[1.0, 2.0, 0.0]])
    np.testing.assert_array_equal(law.b, [5.0])


def test_all_faults_of_a_declaration_at_once():
    with pytest.raises(
        InvalidInput, match=r"^conserved: 2 faults\n  - A = .*finite numbers.*\n  - b = .*2 numbers, one"
    ):
        pzos.conserved([[1.0, np.nan], [0.0, 1.0]], b=[1.0])
    with pytest.raises(InvalidInput, match=r"^conserved: 2 faults\n  - A = 'sum'.*\n  - b = 'much'"):
        pzos.conserved("sum", b="much")
    with pytest.raises(InvalidInput, match=r"^conserved: A = .*: expected a matrix, one law per row"):
        pzos.conserved(np.ones((1, 1, 1)))
    with pytest.raises(InvalidInput) as caught:
        declared([pzos.own_effect(), "conserved", pzos.own_effect(), 3])
    assert str(caught.value).splitlines() == [
        "structure: 3 faults",
        "  - structure = 'conserved': expected declarations; use pzos.own_effect(), conserved(), "
        "answers_nonnegative() or answers_between()",
        "  - structure: OwnEffect() is declared twice; give each kind once",
        "  - structure = 3: expected declarations; use pzos.own_effect(), conserved(), answers_nonnegative() or "
        "answers_between()",
    ]
