"""The contest of structures: who leads, who is still compared, and who is out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pzos.methods.response_model.fit import Shape
from pzos.methods.trust_region.contest import Contest

ALL = (Shape.FREE, Shape.OWN, Shape.CONSERVING)


def opened(favourite):
    return Contest(ALL, favourite, (0.0,) * 3)


def after(game, rounds, **errors):
    named = {Shape[name]: error for name, error in errors.items()}
    for _ in range(rounds):
        game = game.observe({shape: error for shape, error in named.items() if shape in game.running})
    return game


def test_the_favourite_leads_until_a_rival_is_clearly_better():
    game = opened(Shape.FREE)
    assert game.winner is Shape.FREE
    assert after(game, 5, FREE=0.5, OWN=0.45, CONSERVING=0.5).winner is Shape.FREE
    assert after(game, 5, FREE=0.5, OWN=0.4, CONSERVING=0.01).winner is Shape.CONSERVING


@pytest.mark.parametrize(
    ("decisions", "rounds", "leads"), [(8, 4, True), (8, 9, False), (50, 4, False), (6, 4, False), (0, 4, False)]
)
def test_while_directions_of_a_few_decisions_are_unknown_a_structure_leads_that_is_somewhat_better(
    decisions, rounds, leads
):
    game = after(replace(opened(Shape.FREE), decisions=decisions), rounds, FREE=1.0, OWN=0.6, CONSERVING=0.9)
    assert game.winner is (Shape.OWN if leads else Shape.FREE)


def test_a_declared_structure_is_left_for_none_no_sooner_while_directions_are_unknown():
    game = replace(opened(Shape.OWN), decisions=8)
    assert after(game, 4, FREE=0.6, OWN=1.0, CONSERVING=1.0).winner is Shape.OWN


def test_a_wrong_declaration_is_left_after_a_few_answers():
    game = after(opened(Shape.CONSERVING), 3, FREE=0.05, OWN=0.9, CONSERVING=0.9)
    assert game.winner is Shape.FREE


def test_after_a_first_trial_that_failed_own_effects_lead_then_the_best_for_a_while():
    game = opened(Shape.FREE).opened()
    assert game.winner is Shape.OWN
    assert after(game, 1, FREE=0.5, OWN=0.6, CONSERVING=0.4).winner is Shape.CONSERVING
    assert after(game, 4, FREE=0.5, OWN=0.4, CONSERVING=0.6).winner is Shape.FREE
    assert opened(Shape.CONSERVING).opened().winner is Shape.CONSERVING


def test_trailing_structures_are_dropped_to_save_time():
    game = after(opened(Shape.FREE), 8, FREE=0.9, OWN=0.9, CONSERVING=0.001)
    assert game.running == (Shape.CONSERVING, Shape.FREE)


def test_one_prediction_is_no_contest():
    game = opened(Shape.FREE)
    assert game.observe({Shape.FREE: 0.1}) is game


def test_in_the_end_only_the_winner_and_no_structure_run():
    game = after(opened(Shape.OWN), 16, FREE=0.5, OWN=0.4, CONSERVING=0.5)
    assert game.rounds == 16
    assert game.running == (Shape.OWN, Shape.FREE)


def test_a_structure_left_out_of_a_round_is_out():
    game = opened(Shape.FREE).observe({Shape.FREE: 0.1, Shape.OWN: 0.1})
    assert game.scores[ALL.index(Shape.CONSERVING)] == np.inf
    assert Shape.CONSERVING not in after(game, 6, FREE=0.1, OWN=0.1).running
