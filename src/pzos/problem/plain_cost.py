"""A leader from a plain function ``cost(x, y)``: differentiated by JAX or PyTorch if they can, else by differences."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from pzos.base.types import Vector
from pzos.problem.autodiff import leader_from_jax, leader_from_torch
from pzos.problem.differences import gradients
from pzos.problem.leader import Leader, cost_function

_LIBRARIES = (("JAX", "jax", leader_from_jax), ("PyTorch", "torch", leader_from_torch))

#: What the libraries raise about a function that is not written for them, and what such a function raises itself.
_REFUSALS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def leader_from_cost(cost: Callable[[Any, Any], Any], *, name: str = "") -> Leader:
    """Build a leader from ``cost(x, y)``, a plain function written with operators, NumPy, JAX or PyTorch.

    Its gradients come from JAX if that is installed and can follow the function, else from PyTorch, else from
    differences of the cost, which is known and cheap. Which it is, is found out at the first answer, and
    ``leader.remark()`` says it from then on.

    >>> import numpy as np
    >>> leader = leader_from_cost(lambda x, y: float(np.abs(x).sum() + y @ y))
    >>> leader(np.ones(1), np.array([1.0, 2.0])).grad_y.round(6)
    array([2., 4.])
    >>> leader.remark().startswith("The cost is differentiated by differences")
    True
    """
    cost_function("pass the function itself").require("leader_from_cost", "cost", cost)
    own = getattr(cost, "__name__", "")
    found = _Differentiated(cost, name or (own if own.isidentifier() else "leader"))
    return Leader(found.value, found.value_and_gradients, found.name, remark=found.remark)


class _Differentiated:
    """A cost, and from the first answer on the leader that differentiates it."""

    def __init__(self, cost: Callable[[Any, Any], Any], name: str) -> None:
        self.cost, self.name = cost, name
        self._leader: Leader | None = None
        self._remark = ""

    def remark(self) -> str:
        return self._remark

    def value(self, x: Vector, y: Vector) -> Any:
        return self._chosen(x, y).value_function(x, y)

    def value_and_gradients(self, x: Vector, y: Vector) -> tuple[Any, Any, Any]:
        return self._chosen(x, y).all_function(x, y)

    def _chosen(self, x: Vector, y: Vector) -> Leader:
        if self._leader is None:
            self._leader, how = self._choice(x, y)
            self._remark = f"The cost is differentiated by {how}"
        return self._leader

    def _choice(self, x: Vector, y: Vector) -> tuple[Leader, str]:
        refused = []
        for library, module, make in _LIBRARIES:
            if importlib.util.find_spec(module) is None:
                continue
            leader = make(self.cost, name=self.name)
            try:
                leader(x, y)
            except _REFUSALS as error:
                refused.append(f"{library} cannot follow it: {type(error).__name__}")
            else:
                return leader, library
        why = f" ({'; '.join(refused)})" if refused else " (neither JAX nor PyTorch is installed)"
        return self._by_differences(), f"differences{why}"

    def _by_differences(self) -> Leader:
        plain = Leader(self.cost, lambda x, y: (self.cost(x, y), 0 * x, 0 * y), self.name)

        def value_and_gradients(x: Vector, y: Vector) -> tuple[Any, Any, Any]:
            return plain.value(x, y), *gradients(plain.value, x, y)

        return Leader(self.cost, value_and_gradients, self.name)
