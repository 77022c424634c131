"""Errors say what is wrong, where, and what to do; they also travel between processes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from pzos.base import errors
from pzos.base.checks import Faults, shown
from pzos.base.errors import InvalidInput, MissingExtra, PzosError


def test_faults_are_collected() -> None:
    faults = Faults("thing")
    assert faults.check(True, "a", 1, "x", "y")
    assert faults.check(np.True_, "a", 1, "x", "y")
    faults.raise_if_any()
    assert faults.check(False, "size", -1, "a positive number", "try 1") is False
    with pytest.raises(InvalidInput, match=r"^thing: size = -1: expected a positive number; try 1$"):
        faults.raise_if_any()
    faults.add("in words of its own")
    with pytest.raises(InvalidInput, match=r"^thing: 2 faults\n  - size = -1: .*\n  - in words of its own$"):
        faults.raise_if_any()


def test_values_are_shown_in_short() -> None:
    assert shown(np.zeros((100, 3))) == "array of shape (100, 3), dtype float64"
    assert shown([1, 2]) == "[1, 2]"
    assert len(shown("x" * 500)) == 60
    assert "\n" not in shown(np.zeros((2, 3)))


def test_a_missing_extra_survives_a_trip_between_processes() -> None:
    error = MissingExtra("jax", "jax", "leader_from_jax")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert isinstance(twin, MissingExtra)
        assert str(twin) == str(error)
    assert 'pip install "pzos[jax]"' in str(error)


def test_every_error_has_one_base() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 5
    assert all(issubclass(kind, PzosError) for kind in kinds)
    assert all(kind.__doc__ for kind in kinds)
