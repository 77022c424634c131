"""One BLAS thread while a solver thinks, and in worker processes for good."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import threadpoolctl
from threadpoolctl import threadpool_info

from pzos.base.threads import ONE_THREAD, one_blas_thread, pin_threads


def threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_runs_on_one_thread_inside_and_as_before_after() -> None:
    np.ones((2, 2)) @ np.ones((2, 2))
    before = threads()
    inside = one_blas_thread()(threads)()
    assert inside
    assert set(inside) == {1}
    assert threads()[: len(before)] == before


def test_an_error_inside_gives_the_threads_back() -> None:
    one_blas_thread()(threads)()
    before = threads()

    @one_blas_thread()
    def failing() -> None:
        raise ValueError("as asked")

    with pytest.raises(ValueError, match="as asked"):
        failing()
    assert threads() == before


def test_a_worker_pins_what_is_loaded_and_what_will_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tried with stand-ins, so that the process of the tests keeps its threads."""
    limits: list[int] = []
    counts: list[int] = []
    for name in ONE_THREAD:
        monkeypatch.setenv(name, "4")
    monkeypatch.setattr(threadpoolctl, "threadpool_limits", lambda *, limits: counts.append(limits))
    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace(set_num_threads=limits.append))
    pin_threads.__wrapped__()
    assert {name: os.environ[name] for name in ONE_THREAD} == ONE_THREAD
    assert counts == limits == [1]


def test_without_numba_there_is_nothing_to_pin(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ONE_THREAD:
        monkeypatch.setenv(name, "4")
    monkeypatch.setattr(threadpoolctl, "threadpool_limits", lambda *, limits: None)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    pin_threads.__wrapped__()
    assert "numba" not in sys.modules


def test_a_decorated_function_keeps_its_name_and_answer() -> None:
    @one_blas_thread()
    def doubled(x: float, *, plus: float = 0.0) -> float:
        """Return twice x."""
        return 2.0 * x + plus

    assert doubled(3.0, plus=1.0) == 7.0
    assert doubled.__name__ == "doubled"
    assert doubled.__doc__ == "Return twice x."
