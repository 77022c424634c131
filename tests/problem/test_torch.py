"""Leaders by PyTorch."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import pzos
from instances import GOAL, LEADER, START, WEIGHTS, response
from pzos.base.errors import InvalidInput, InvalidLeader, MissingExtra


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r'leader_from_torch needs the package .torch.*pip install "pzos\[torch\]"'):
        pzos.leader_from_torch(lambda x, y: x.sum())


def test_a_non_callable_is_named() -> None:
    with pytest.raises(InvalidInput, match="leader_from_torch: cost = 3: expected a function of"):
        pzos.leader_from_torch(3)  # type: ignore[arg-type]


def test_agrees_with_hand_written_gradients_in_float64() -> None:
    torch = pytest.importorskip("torch", reason="the extra 'torch' is not installed")
    goal, weights = torch.tensor(GOAL), torch.tensor(WEIGHTS)
    default = torch.get_default_dtype()
    leader = pzos.leader_from_torch(
        lambda x, y: 0.5 * ((x - goal) ** 2).sum() + (weights * y).sum() + 0.1 * (y**2).sum()
    )
    y = response(START)
    ours, theirs = leader(START, y), LEADER(START, y)
    assert ours.value == pytest.approx(theirs.value, rel=1e-14)
    np.testing.assert_allclose(ours.grad_x, theirs.grad_x, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(ours.grad_y, theirs.grad_y, rtol=1e-14, atol=1e-15)
    assert torch.get_default_dtype() == default
    assert pzos.check_leader(leader, START, y)
    with pytest.raises(InvalidLeader, match="float32"):
        pzos.leader_from_torch(lambda x, y: x.float().sum())(START, y)
    assert pzos.leader_from_torch(lambda x, y: x.sum())(START, y).grad_y.tolist() == [0.0] * y.size
