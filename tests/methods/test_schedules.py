"""Schedules: positive numbers for t = 0, 1, 2, ..., with the paper's t counted from 1."""

from __future__ import annotations

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.methods.schedules import Schedule, plain, value_at
from pzos.study.study import DEFAULT_STEPS, Limits


def test_diminishing_is_scale_over_root_t_from_one() -> None:
    schedule = pzos.Diminishing(0.05)
    assert schedule(0) == 0.05
    assert schedule(3) == 0.025
    assert schedule(99) == pytest.approx(0.005, rel=1e-15)


def test_constant() -> None:
    assert [pzos.Constant(np.float32(0.5))(t) for t in (0, 7)] == [0.5, 0.5]  # type: ignore[arg-type]
    assert type(pzos.Constant(1).value) is float


def test_schedules_are_frozen_values() -> None:
    assert pzos.Diminishing(1) == pzos.Diminishing(1.0)
    assert hash(pzos.Constant(2.0)) == hash(pzos.Constant(2))
    assert isinstance(pzos.Diminishing(1), Schedule)
    assert repr(pzos.PZOS(step=pzos.Diminishing(0.05))) == "PZOS(step=Diminishing(scale=0.05), radius=0.1, batch=1)"


def test_a_number_or_any_function_of_t() -> None:
    assert value_at(0.5, 3) == 0.5
    assert value_at(lambda t: np.float32(2**-t), 3) == 0.125
    assert type(value_at(lambda t: np.float32(1.0), 0)) is float
    assert plain(np.float32(0.5)) == 0.5  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), None, "0.1", np.ones(2)])
def test_what_a_schedule_says_is_checked(bad: object) -> None:
    with pytest.raises(InvalidInput, match=r"at t = 4: expected a positive finite number; a schedule is called with t"):
        value_at(lambda t: bad, 4)  # type: ignore[arg-type,return-value]


def test_limits() -> None:
    assert Limits().steps == Limits(target=1.0).steps == DEFAULT_STEPS
    assert Limits(queries=5).steps is None
    assert Limits(seconds=5).steps is None
    assert Limits(steps=np.int64(3)).steps == 3  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="Limits: 4 faults"):
        Limits(steps=-1, queries=0, seconds=0, target=float("nan"))
