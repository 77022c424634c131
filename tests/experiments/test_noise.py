"""The finding about noise at the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.experiments import noise
from pzos.experiments.noise import Noise
from pzos.games import SecurityGame
from pzos.games.derivatives import security_gradient


def test_the_white_box_optimum_is_one() -> None:
    game = SecurityGame.random(3, targets=20)
    x = noise.white_box_optimum(game, game.problem().x0)
    value, gradient = security_gradient(game, x)
    assert (x >= 0).all()
    inside = x > 1e-9
    np.testing.assert_allclose(gradient[inside], 0.0, atol=1e-4)
    assert (gradient[~inside] > -1e-4).all()
    assert value < security_gradient(game, game.problem().x0)[0]


def test_the_noise_of_pzos_does_not_vanish_at_the_optimum() -> None:
    found = noise.measure_noise(0, targets=30)
    assert found.pzos_at_start < found.zos_at_start
    assert found.pzos_at_optimum > found.zos_at_optimum
    assert found.zos_at_optimum < 0.01 * found.zos_at_start


def test_the_finding_can_be_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {100: Noise(100, 1.0, 2.0, 2.0, 1.0, 0.5, 0.25), 300: Noise(300, 1.0, 2.0, 0.5, 1.0, 0.1, 0.2)}
    monkeypatch.setattr(noise, "measure_noise", lambda seed, targets: rows[targets])
    table, (start, end, late) = noise.noise_claims(seed=0)
    assert [claim.verdict for claim in (start, end, late)] == ["holds", "does not hold", "does not hold"]
    assert (start.number, end.number, late.number) == pytest.approx((-1.0, -0.5, -0.1))  # the worst of both games
    assert start.found == "n = 100: 1 against 2; n = 300: 1 against 2"
    assert {(claim.where, claim.source) for claim in (start, end, late)} == {("not in the paper", "finding")}
    assert table["n"] == [100, 300]
