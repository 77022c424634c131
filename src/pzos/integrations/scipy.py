"""pzos as a method of ``scipy.optimize.minimize``: what SciPy calls the function is the follower, the cost is known."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pzos.base.checks import Faults, nearest
from pzos.problem.leader import Leader
from pzos.solving import minimize, solve
from pzos.study.result import Record

#: SciPy's names for what :func:`pzos.solve` has other names for.
_OPTIONS = {"maxfev": "queries", "maxiter": "steps", "tol": "xtol", "disp": "progress"}


def scipy_method(cost: Leader | Callable[[Any, Any], Any], **settings: Any) -> Callable[..., Any]:
    """Return a method for SciPy: ``scipy.optimize.minimize(follower, x0, method=pzos.scipy_method(cost))``.

    What is minimised is ``cost(x, follower(x))``. ``settings`` are those of :func:`pzos.minimize`; of SciPy's own
    arguments ``args``, ``bounds``, ``callback``, ``tol`` and the options ``maxfev`` (all queries) and ``maxiter`` are
    heeded. The result is an ``OptimizeResult``, with that of pzos as ``result.pzos``.

    >>> import numpy as np, pzos, scipy.optimize
    >>> method = pzos.scipy_method(lambda x, y: (y - 3) @ (y - 3), queries=20)
    >>> found = scipy.optimize.minimize(lambda x: 4 - np.minimum(x, 2), [0.0], method=method, bounds=[(0, 8)])
    >>> found.success, round(found.fun, 6), found.nfev <= 20
    (True, 0.0, True)
    """

    def method(follower: Callable[..., Any], x0: Any, args: Any = (), **given: Any) -> Any:
        faults = Faults("scipy_method")
        bounds, callback = given.pop("bounds", None), given.pop("callback", None)
        for name in ("constraints", "jac", "hess", "hessp"):
            value = given.pop(name, None)
            remedy = "give outcomes=... to scipy_method" if name == "constraints" else "leave it out"
            empty = value is None or value is False or (hasattr(value, "__len__") and len(value) == 0)
            faults.check(empty, name, value, "none: pzos knows of the cost alone", remedy)
        options = {_OPTIONS.get(name, name): value for name, value in given.items()}
        for name in options.keys() - _known():
            meant = nearest(name, _known())
            faults.check(False, name, options[name], "an option that pzos.solve has", f"did you mean {meant!r}?")
        faults.raise_if_any()
        settled = {**settings, **options}
        if bounds is not None:
            settled["bounds"] = bounds
        if callback is not None:
            settled["callback"] = _as_callback(callback)
        found = minimize(cost, (lambda x: follower(x, *args)) if args else follower, x0, **settled)
        fields = {name: getattr(found, name) for name in ("x", "fun", "nfev", "success", "message")}
        return _as_scipy(**fields, nit=found.steps, status=0 if found.success else 1, pzos=found)

    return method


def _as_scipy(**fields: Any) -> Any:
    from scipy.optimize import OptimizeResult

    result = OptimizeResult()
    result.update(fields)
    return result


def _known() -> set[str]:
    return set(inspect.signature(solve).parameters) | set(inspect.signature(minimize).parameters) - {"settings"}


def _as_callback(callback: Callable[..., Any]) -> Callable[[Record], Any]:
    """Return what hears of records for what hears of points, or of SciPy's intermediate results."""
    by_name = "intermediate_result" in inspect.signature(callback).parameters

    def heard(record: Record) -> Any:
        if by_name:
            return callback(intermediate_result=_as_scipy(x=record.x.copy(), fun=record.value))
        return callback(record.x.copy())

    return heard
