from __future__ import annotations

from pzos.methods.response_model.fit import Shape
from pzos.methods.trust_region.state import Contest

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


def test_a_wrong_declaration_is_left_after_a_few_answers():
    game = after(opened(Shape.CONSERVING), 3, FREE=0.05, OWN=0.9, CONSERVING=0.9)
    assert game.winner is Shape.FREE


def test_trailing_structures_are_dropped_to_save_time():
    game = after(opened(Shape.FREE), 8, FREE=0.9, OWN=0.9, CONSERVING=0.001)
    assert game.running == (Shape.CONSERVING,)


def test_one_prediction_is_no_contest():
    game = opened(Shape.FREE)
    assert game.observe({Shape.FREE: 0.1}) is game
