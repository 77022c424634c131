"""Leaders by JAX and PyTorch: float64 whatever the global setting, which stays as it was."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

import pzos
from instances import GOAL, LEADER, START, WEIGHTS, iterates, problem, response
from pzos.base.errors import InvalidInput, InvalidLeader, MissingExtra

jax = pytest.importorskip("jax", reason="the extra 'jax' is not installed")


def cost(x, y):  # type: ignore[no-untyped-def]
    return 0.5 * ((x - GOAL) ** 2).sum() + (WEIGHTS * y).sum() + 0.1 * (y**2).sum()


def test_agrees_with_hand_written_gradients_in_float64() -> None:
    assert not jax.config.jax_enable_x64, "this test wants JAX's usual setting"
    leader = pzos.leader_from_jax(cost)
    y = response(START)
    ours, theirs = leader(START, y), LEADER(START, y)
    assert ours.grad_x.dtype == ours.grad_y.dtype == np.float64
    assert ours.value == pytest.approx(theirs.value, rel=1e-14)
    np.testing.assert_allclose(ours.grad_x, theirs.grad_x, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(ours.grad_y, theirs.grad_y, rtol=1e-14, atol=1e-15)
    assert leader.value(START, y) == pytest.approx(theirs.value, rel=1e-14)
    assert not jax.config.jax_enable_x64
    assert jax.numpy.zeros(1).dtype == np.float32, "the user's own arrays are as before"


def test_passes_check_leader() -> None:
    assert pzos.check_leader(pzos.leader_from_jax(cost), START, response(START))


def test_a_run_follows_the_hand_written_one() -> None:
    settings = {"seed": 1, "steps": 30}
    by_jax = pzos.Problem(pzos.leader_from_jax(cost), response, START)
    ours = iterates(pzos.Study(by_jax.known(), pzos.PZOS(), **settings), pzos.Oracle(response))  # type: ignore[arg-type]
    theirs = iterates(pzos.Study(problem().known(), pzos.PZOS(), **settings), pzos.Oracle(response))  # type: ignore[arg-type]
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_the_example_of_the_readme() -> None:
    def readme_cost(x, y):  # type: ignore[no-untyped-def]
        return ((x - 1) ** 2).sum() + y.sum()

    task = pzos.Problem(leader=pzos.leader_from_jax(readme_cost), follower=np.abs, x0=np.zeros(5))
    result = pzos.solve(task, pzos.PZOS(step=0.05, radius=0.1), steps=300, seed=0)
    assert result.best_value == pytest.approx(5 * 0.75, abs=0.2)  # F = sum (x-1)^2 + |x|, least at x = 1/2


def test_a_cost_that_computes_in_float32_is_an_error() -> None:
    leader = pzos.leader_from_jax(lambda x, y: (x.astype("float32") ** 2).sum())
    with pytest.raises(InvalidLeader, match="float32"):
        leader(START, START)


def test_an_unused_argument_has_a_zero_gradient() -> None:
    found = pzos.leader_from_jax(lambda x, y: (x**2).sum())(START, np.ones(3))
    assert found.grad_y.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("door", [pzos.leader_from_jax, pzos.leader_from_torch], ids=lambda door: door.__name__)
def test_a_non_callable_is_named(door: Any) -> None:
    with pytest.raises(InvalidInput, match=rf"^{door.__name__}: cost = 3: expected a function of \(x, y\); pass the"):
        door(3)


def test_older_releases_keep_the_switch_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax.experimental, "enable_x64", jax.enable_x64, raising=False)
    monkeypatch.delattr(jax, "enable_x64")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the module jax.experimental itself
        leader = pzos.leader_from_jax(cost)
        assert leader(START, response(START)).grad_x.dtype == np.float64


@pytest.mark.parametrize(
    ("library", "door"), [("jax", pzos.leader_from_jax), ("torch", pzos.leader_from_torch)], ids=["jax", "torch"]
)
def test_without_the_library_its_extra_is_named(monkeypatch: pytest.MonkeyPatch, library: str, door: Any) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    words = rf'{door.__name__} needs the package .{library}.*pip install "pzos\[{library}\]"'
    with pytest.raises(MissingExtra, match=words):
        door(cost)


def test_torch_agrees_with_hand_written_gradients_in_float64() -> None:
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
