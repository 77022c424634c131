"""Every word for down and up is understood; others are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pzos
from instances import LEADER, START, problem, response
from pzos.base.errors import InvalidInput


@pytest.mark.parametrize(("word", "sense"), [("min", "min"), ("minimise", "min"), ("maximize", "max"), ("max", "max")])
def test_words(word: Any, sense: str) -> None:
    assert pzos.Problem(LEADER, response, START, sense=word).sense == sense


@pytest.mark.parametrize("word", ["up", 1, None, np.ones(2)])
def test_others(word: Any) -> None:
    with pytest.raises(InvalidInput, match=r"sense = .*: expected 'min' or 'max'; say what to do with F"):
        pzos.Problem(LEADER, response, START, sense=word)


def test_what_if_understands_them_too_and_refuses_others() -> None:
    result = pzos.solve(problem(), queries=4, certificate=False)
    assert result.what_if(LEADER, sense="maximize").value == result.what_if(LEADER, sense="max").value
    with pytest.raises(InvalidInput, match="what_if: sense = 'up'"):
        result.what_if(LEADER, sense="up")  # type: ignore[arg-type]
