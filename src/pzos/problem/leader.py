"""The leader: a known, smooth cost f(x, y) with exact partial gradients in both arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from pzos.base.checks import Faults, shown
from pzos.base.errors import InvalidLeader
from pzos.base.types import FLOAT64, LeaderValue, Vector, all_finite

ValueFunction = Callable[[Vector, Vector], Any]
GradientFunction = Callable[[Vector, Vector], Any]
AllFunction = Callable[[Vector, Vector], tuple[Any, Any, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Leader:
    """f with its two partial gradients behind one door that checks what comes back.

    Build one with :func:`leader_from_functions`, :func:`pzos.leader_from_jax` or :func:`pzos.leader_from_torch`.
    Calling it gives a :class:`LeaderValue`; ``value`` gives f alone, for methods that need no gradient (ZOS).
    """

    value_function: ValueFunction
    all_function: AllFunction
    name: str = "leader"

    def __call__(self, x: Vector, y: Vector) -> LeaderValue:
        """Return f(x, y), grad_x f(x, y) and grad_y f(x, y)."""
        returned = self.all_function(x, y)
        try:
            value, grad_x, grad_y = returned
        except (TypeError, ValueError) as error:
            raise InvalidLeader(
                f"{self.name}: value_and_gradients returned {shown(returned)}: expected three things; "
                "return (value, grad_x, grad_y)"
            ) from error
        if type(value) is float and isfinite(value) and _is_like(grad_x, x) and _is_like(grad_y, y):
            return LeaderValue(value, grad_x, grad_y)  # the usual case, in short
        return LeaderValue(
            self._checked_value(value),
            self._checked_gradient(grad_x, "grad_x", x.size),
            self._checked_gradient(grad_y, "grad_y", y.size),
        )

    def value(self, x: Vector, y: Vector) -> float:
        """Return f(x, y) alone."""
        return self._checked_value(self.value_function(x, y))

    def _checked_value(self, value: Any) -> float:
        # A plain float is by far the commonest answer; everything else goes the long way round.
        if type(value) is not float:
            value = self._converted_value(value)
        if not isfinite(value):
            raise InvalidLeader(
                f"{self.name}: f(x, y) = {value}: expected a finite number; "
                "if x has run away take a smaller step or restrict it by a domain, else repair the cost there"
            )
        return float(value)

    def _converted_value(self, value: Any) -> float:
        array = np.asarray(value)
        if array.size != 1 or array.dtype not in (np.float64, np.int64):
            raise InvalidLeader(
                f"{self.name}: f(x, y) = {shown(value)} (dtype {array.dtype}): expected one float64 number; "
                "return a float, and compute in float64, not float32"
            )
        return float(array.reshape(()))

    def _checked_gradient(self, gradient: Any, which: str, size: int) -> Vector:
        array = gradient if type(gradient) is np.ndarray else np.asarray(gradient)
        if array.dtype != FLOAT64 or array.shape != (size,):
            raise InvalidLeader(
                f"{self.name}: {which} has shape {array.shape} and dtype {array.dtype}: "
                f"expected shape ({size},) and dtype float64; return one float64 entry per entry of "
                f"{which[-1]}"
            )
        if not all_finite(array):
            entry = int(np.nonzero(~np.isfinite(array))[0][0])
            raise InvalidLeader(
                f"{self.name}: {which}[{entry}] = {array[entry]}: expected finite numbers; "
                "check the gradient with pzos.check_leader"
            )
        return array


def _is_like(gradient: Any, argument: Vector) -> bool:
    """Tell in one pass whether a gradient is as it must be; what is doubtful goes the long way round."""
    return (
        type(gradient) is np.ndarray
        and gradient.dtype is FLOAT64
        and gradient.shape == argument.shape
        and isfinite(gradient.dot(gradient))
    )


def leader_from_functions(
    value: ValueFunction,
    grad_x: GradientFunction | None = None,
    grad_y: GradientFunction | None = None,
    *,
    value_and_gradients: AllFunction | None = None,
    name: str = "leader",
) -> Leader:
    """Build a leader from hand-written functions of (x, y).

    Give ``value`` with ``grad_x`` and ``grad_y``; or ``value`` with one ``value_and_gradients`` that returns all
    three at once, where they share work.

    >>> import numpy as np
    >>> f = leader_from_functions(lambda x, y: float(x @ y), lambda x, y: y, lambda x, y: x)
    >>> f(np.array([1.0, 2.0]), np.array([3.0, 4.0])).value
    11.0
    """
    faults = Faults("leader_from_functions")
    faults.check(callable(value), "value", value, "a function of (x, y)", "pass the function itself")
    if value_and_gradients is None:
        for argument, function in (("grad_x", grad_x), ("grad_y", grad_y)):
            faults.check(callable(function), argument, function, "a function of (x, y)", "give both partial gradients")
    else:
        faults.check(
            callable(value_and_gradients),
            "value_and_gradients",
            value_and_gradients,
            "a function of (x, y)",
            "let it return (value, grad_x, grad_y)",
        )
    faults.raise_if_any()
    if value_and_gradients is not None:
        return Leader(value, value_and_gradients, name)

    def all_at_once(x: Vector, y: Vector) -> tuple[Any, Any, Any]:
        return value(x, y), grad_x(x, y), grad_y(x, y)  # type: ignore[misc]  # checked above

    return Leader(value, all_at_once, name)
