"""A leader from a cost written in JAX (extra ``jax``)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pzos.base.checks import shown
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.base.types import Vector
from pzos.problem.leader import Leader


def leader_from_jax(cost: Callable[[Any, Any], Any], *, name: str = "leader") -> Leader:
    """Build a leader from ``cost(x, y)`` written with JAX (or plain operators); gradients are exact.

    The cost is compiled in float64 whatever JAX's global setting is, and that setting is left alone.
    """
    if not callable(cost):
        raise InvalidInput(
            f"leader_from_jax: cost = {shown(cost)}: expected a function of (x, y); pass the function itself"
        )
    try:
        import jax
    except ImportError as error:
        raise MissingExtra("jax", "jax", "leader_from_jax") from error

    # Older releases keep the context manager in jax.experimental.
    home: Any = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")
    in_float64 = home.enable_x64
    compiled_value = jax.jit(cost)
    compiled_all = jax.jit(jax.value_and_grad(cost, argnums=(0, 1)))

    def value(x: Vector, y: Vector) -> Any:
        with in_float64(True):
            return np.asarray(compiled_value(x, y))

    def value_and_gradients(x: Vector, y: Vector) -> tuple[Any, Any, Any]:
        with in_float64(True):
            f, (grad_x, grad_y) = compiled_all(x, y)
            return np.asarray(f), np.asarray(grad_x), np.asarray(grad_y)

    return Leader(value, value_and_gradients, name)
