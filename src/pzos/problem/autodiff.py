"""Leaders from a cost written in JAX (extra ``jax``) or PyTorch (extra ``torch``), with exact gradients in float64.

Either library is loaded where it is called for, and its global settings are left alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pzos.base.errors import MissingExtra
from pzos.base.types import Vector
from pzos.problem.leader import Leader, cost_function


def leader_from_jax(cost: Callable[[Any, Any], Any], *, name: str = "leader") -> Leader:
    """Build a leader from ``cost(x, y)`` written with JAX (or plain operators); gradients are exact.

    The cost is compiled in float64 whatever JAX's global setting is, and that setting is left alone.
    """
    cost_function("pass the function itself").require("leader_from_jax", "cost", cost)
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


def leader_from_torch(cost: Callable[[Any, Any], Any], *, name: str = "leader") -> Leader:
    """Build a leader from ``cost(x, y)`` written with PyTorch; x and y arrive as float64 tensors."""
    cost_function("pass the function itself").require("leader_from_torch", "cost", cost)
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("torch", "torch", "leader_from_torch") from error

    def tensor(array: Vector, *, track: bool) -> Any:
        # A copy, because torch warns about (and could write into) read-only memory.
        return torch.tensor(array, dtype=torch.float64, requires_grad=track)

    def value(x: Vector, y: Vector) -> Any:
        with torch.no_grad():
            return cost(tensor(x, track=False), tensor(y, track=False)).numpy()

    def value_and_gradients(x: Vector, y: Vector) -> tuple[Any, Any, Any]:
        at_x, at_y = tensor(x, track=True), tensor(y, track=True)
        f = cost(at_x, at_y)
        grad_x, grad_y = torch.autograd.grad(f, (at_x, at_y), materialize_grads=True)
        return f.detach().numpy(), grad_x.numpy(), grad_y.numpy()

    return Leader(value, value_and_gradients, name)
