"""Leaders and outcome constraints written in JAX (extra ``jax``) or PyTorch (extra ``torch``), exact and in float64.

Either library is loaded where it is called for, and its global settings are left alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from pzos.base.errors import MissingExtra
from pzos.base.types import Matrix, Vector
from pzos.problem.leader import Leader, checked_parameters, cost_function, parametric
from pzos.problem.outcomes import Outcomes, made, two_sided


def leader_from_jax(
    cost: Callable[..., Any], *, name: str = "leader", parameters: Mapping[str, float] | None = None
) -> Leader:
    """Build a leader from ``cost(x, y)`` written with JAX (or plain operators); gradients are exact.

    The cost is compiled in float64 whatever JAX's global setting is, and that setting is left alone. With
    ``parameters`` it takes these by name as well: ``cost(x, y, price=...)``.
    """
    cost_function("pass the function itself").require("leader_from_jax", "cost", cost)
    if parameters is not None:
        given = checked_parameters("leader_from_jax", parameters)
        return parametric(lambda values: leader_from_jax(partial(cost, **values), name=name), given)
    try:
        import jax
    except ImportError as error:
        raise MissingExtra("jax", "jax", "leader_from_jax") from error

    in_float64 = _float64_setting(jax)
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


def _float64_setting(jax: Any) -> Any:
    # Older releases keep the context manager in jax.experimental.
    home: Any = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")
    return home.enable_x64


def outcomes_from_jax(
    g: Callable[[Any, Any], Any], *, names: str | Iterable[str], equal: Mapping[str, float] | None = None
) -> Outcomes:
    """Build constraints g(x, y) <= 0 from one function written with JAX; it returns one number per name.

    ``equal`` names the entries that must be zero, each with the tolerance that is allowed.
    """
    where = "outcomes_from_jax"
    cost_function("pass the function itself").require(where, "g", g)
    try:
        import jax
        import jax.numpy as jnp
    except ImportError as error:
        raise MissingExtra("jax", "jax", where) from error

    in_float64 = _float64_setting(jax)

    def flat(x: Any, y: Any) -> Any:
        return jnp.atleast_1d(g(x, y))

    def one(x: Any, y: Any, weights: Any) -> Any:
        return jax.vjp(flat, x, y)[1](weights)

    compiled = jax.jit(flat)
    compiled_one, compiled_many = jax.jit(one), jax.jit(jax.vmap(one, (None, None, 0)))

    def value(x: Vector, y: Vector) -> Any:
        with in_float64(True):
            return np.asarray(compiled(x, y))

    def pull(x: Vector, y: Vector, weights: Vector) -> tuple[Any, Any]:
        with in_float64(True):
            grad_x, grad_y = compiled_one(x, y, weights)
            return np.asarray(grad_x), np.asarray(grad_y)

    def pulls(x: Vector, y: Vector, weights: Matrix) -> tuple[Any, Any]:
        with in_float64(True):
            grad_x, grad_y = compiled_many(x, y, weights)
            return np.asarray(grad_x), np.asarray(grad_y)

    return two_sided(where, made(where, value, pull, names, pulls), equal)


def leader_from_torch(
    cost: Callable[..., Any], *, name: str = "leader", parameters: Mapping[str, float] | None = None
) -> Leader:
    """Build a leader from ``cost(x, y)`` written with PyTorch; x and y arrive as float64 tensors.

    With ``parameters`` it takes these by name as well: ``cost(x, y, price=...)``.
    """
    cost_function("pass the function itself").require("leader_from_torch", "cost", cost)
    if parameters is not None:
        given = checked_parameters("leader_from_torch", parameters)
        return parametric(lambda values: leader_from_torch(partial(cost, **values), name=name), given)
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


def outcomes_from_torch(
    g: Callable[[Any, Any], Any], *, names: str | Iterable[str], equal: Mapping[str, float] | None = None
) -> Outcomes:
    """Build constraints g(x, y) <= 0 from one function written with PyTorch; x and y arrive as float64 tensors.

    With ``parameters`` it takes these by name as well: ``cost(x, y, price=...)``.
    """
    where = "outcomes_from_torch"
    cost_function("pass the function itself").require(where, "g", g)
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("torch", "torch", where) from error

    def value(x: Vector, y: Vector) -> Any:
        with torch.no_grad():
            values = g(torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64))
            return torch.atleast_1d(values).numpy()

    def pull(x: Vector, y: Vector, weights: Vector) -> tuple[Any, Any]:
        at_x, at_y = (torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in (x, y))
        values = torch.atleast_1d(g(at_x, at_y))
        if not values.requires_grad:  # g does not depend on x and y
            return np.zeros_like(x), np.zeros_like(y)
        weighted = torch.tensor(weights, dtype=torch.float64)
        grad_x, grad_y = torch.autograd.grad(values, (at_x, at_y), weighted, materialize_grads=True)
        return grad_x.numpy(), grad_y.numpy()

    return two_sided(where, made(where, value, pull, names), equal)
