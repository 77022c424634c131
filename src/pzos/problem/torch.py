"""A leader from a cost written in PyTorch (extra ``torch``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pzos.base.checks import shown
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.base.types import Vector
from pzos.problem.leader import Leader


def leader_from_torch(cost: Callable[[Any, Any], Any], *, name: str = "leader") -> Leader:
    """Build a leader from ``cost(x, y)`` written with PyTorch; x and y arrive as float64 tensors."""
    if not callable(cost):
        raise InvalidInput(
            f"leader_from_torch: cost = {shown(cost)}: expected a function of (x, y); pass the function itself"
        )
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
