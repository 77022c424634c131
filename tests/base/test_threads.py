from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pzos.base.threads import one_blas_thread


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
