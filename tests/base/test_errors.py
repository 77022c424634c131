"""Errors say what is wrong, where, and what to do; they also travel between processes."""

from __future__ import annotations

import copy
import pickle

from pzos.base import errors
from pzos.base.errors import MissingExtra, PzosError


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


def test_faults_of_the_caller_are_value_errors_too() -> None:
    """Code that knows nothing of pzos catches what it would expect: ValueError, RuntimeError, ImportError."""
    assert issubclass(errors.InvalidInput, ValueError)
    assert issubclass(errors.InvalidAnswer, ValueError)
    assert issubclass(errors.InvalidLeader, ValueError)
    assert issubclass(errors.FollowerTimeout, errors.FollowerFailure)
    assert issubclass(errors.FollowerFailure, RuntimeError)
    assert issubclass(errors.MissingExtra, ImportError)


def test_faults_of_study_files_have_exit_codes_of_their_own() -> None:
    """Scripts that call the command line tell them apart by these numbers."""
    kinds = (errors.StudyFileError, errors.DifferentStudy, errors.DamagedStudy, errors.StudyBusy)
    assert [kind.exit_code for kind in kinds] == [2, 3, 4, 5]
