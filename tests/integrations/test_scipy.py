"""pzos as a method of SciPy: the follower is what SciPy calls, the cost is known, and its arguments are heeded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize

import pzos
from pzos.base.errors import InvalidInput


def follower(x: Any) -> Any:
    return np.maximum(4.0 - x, 0.0)


def cost(x: Any, y: Any) -> Any:
    return ((y - 3.0) ** 2).sum() + 0.1 * (x * x).sum()


def test_it_is_the_one_call() -> None:
    direct = pzos.minimize(cost, follower, np.zeros(2), bounds=(0, 8), queries=15)
    found = minimize(follower, np.zeros(2), method=pzos.scipy_method(cost, queries=15), bounds=[(0, 8)] * 2)
    np.testing.assert_array_equal(found.x, direct.x)
    assert (found.fun, found.nfev, found.success, found.message) == (direct.fun, 15, True, direct.message)
    assert (found.nit, found.status, found.pzos.queries) == (direct.steps, 0, 15)


def test_scipys_arguments_are_heeded() -> None:
    points: list[Any] = []
    method: Any = pzos.scipy_method(cost, certificate=False)

    def shifted(x: Any, by: float) -> Any:
        return follower(x + by)

    found = minimize(
        shifted, np.zeros(2), args=(1.0,), method=method, bounds=Bounds([0, 0], [8, 8]), callback=points.append,
        options={"maxfev": 10},
    )  # fmt: skip
    assert (found.nfev, len(points)) == (10, 10)
    np.testing.assert_array_equal(points[0], [0.0, 0.0])
    early = minimize(follower, np.zeros(2), method=method, tol=1e-2, options={"maxiter": 200})
    assert early.pzos.stop is pzos.Stop.CONVERGED

    def stop(intermediate_result: Any) -> None:
        if intermediate_result.fun < 2.0:
            raise StopIteration

    assert minimize(follower, np.zeros(2), method=method, callback=stop).pzos.stop is pzos.Stop.CALLBACK


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"constraints": [{"type": "ineq", "fun": sum}]}, "constraints = .*: expected none.*; give outcomes=..."),
        ({"options": {"maxfun": 3}}, "maxfun = 3: expected an option that pzos.solve has"),
    ],
)
def test_what_cannot_be_heeded_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        minimize(follower, np.zeros(2), method=pzos.scipy_method(cost), **given)
