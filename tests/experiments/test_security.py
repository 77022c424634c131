"""Claims about security games, the published numbers, and the finding about noise at the optimum."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from experiments.made import made_pair
from pzos.experiments import security
from pzos.experiments.security import PUBLISHED_MOMENTS, Moments, Noise
from pzos.games import SecurityGame
from pzos.games.derivatives import security_gradient

STEPS = np.arange(61.0)
#: Lower is better here: PZOS falls fast and evenly, ZOS slowly and unevenly.
FAST = np.stack([np.exp(-rate * STEPS) for rate in (0.30, 0.31, 0.32, 0.33)])
SLOW = np.stack([np.exp(-rate * STEPS) for rate in (0.05, 0.08, 0.11, 0.14)])


def moments(factor: float = 1.0) -> dict[str, np.ndarray]:
    columns = np.array(PUBLISHED_MOMENTS).T
    return dict(zip(Moments._fields, columns * np.array([1.0, factor, 1.0, factor, 1.0])[:, None], strict=True))


def test_the_published_numbers_bear_out_the_papers_own_claims() -> None:
    claims = security._moment_claims(moments(), moments(), 3500)
    assert [claim.holds for claim in claims] == [True, True, True, True]
    assert claims[0].found == "9 of 9"
    assert "n = 300: 1.00 / 1.00" in claims[3].found


@pytest.mark.parametrize(("factor", "holds"), [(1.2, True), (1.3, False), (0.7, False)])
def test_means_that_are_off_by_a_quarter_are_too_far(factor: float, holds: bool) -> None:
    claim = security._moment_claims(moments(factor), moments(), 3500)[3]
    assert claim.holds is holds
    assert claim.found.startswith("14 of 14" if holds else "0 of 14")


def test_moments_the_other_way_round_refute_both_claims_and_a_count_is_a_count() -> None:
    ours = moments()
    ours["pzos_mean"], ours["zos_mean"] = ours["zos_mean"], ours["pzos_mean"]
    below, grows, samples, _ = security._moment_claims(ours, moments(), 520)
    assert (below.holds, grows.holds, samples.holds) == (False, False, False)
    assert (below.found, samples.found) == ("0 of 9", "520")


def test_moments_are_means_over_steps_then_over_instances() -> None:
    pair = made_pair(FAST, SLOW, dimensions=np.array([5.0, 5.0, 10.0, 10.0]))
    pair.pzos.norms[:] = np.array([1.0, 3.0, 4.0, 4.0])[:, None]
    found = security._moments(pair)
    np.testing.assert_array_equal(found["n"], [5.0, 10.0])
    np.testing.assert_allclose(found["pzos_mean"], [2.0, 4.0])
    np.testing.assert_allclose(found["pzos_2sd"], [2.0 * np.sqrt(2.0), 0.0], atol=1e-15)
    np.testing.assert_allclose(found["zos_mean"], 1.0)


def test_all_claims_hold_where_pzos_is_faster_and_fail_where_it_is_slower() -> None:
    assert all(claim.holds for claim in security._security_claims(made_pair(FAST, SLOW)))
    swapped = security._security_claims(made_pair(SLOW, FAST))
    assert [claim.holds for claim in swapped] == [False, False, False, False, True, True]


def test_an_active_projection_and_unspent_budget_are_told() -> None:
    *_, projection, budget = security._security_claims(made_pair(FAST, SLOW, projected=2.0, slack=3.0))
    assert (projection.found, projection.holds) == ("active in 16 of 480 steps, in 8 runs", False)
    assert (budget.found, budget.holds) == ("24 answers left budget unspent", False)


def test_a_gap_that_widens_and_one_that_does_not() -> None:
    n = np.array([100.0, 150.0, 200.0, 250.0])
    widens = security._dimension_claims(50, n, np.array([0.9, 0.1, 0.2, 0.4]), np.full(4, 0.3))
    assert [claim.holds for claim in widens] == [False, True, True]  # n = 100, with its other step, spoils the first
    widens = security._dimension_claims(50, n, np.array([0.0, 0.1, 0.2, 0.4]), np.full(4, 0.3))
    assert [claim.holds for claim in widens] == [True, True, True]
    shrinks = security._dimension_claims(50, n, np.array([0.0, 0.4, 0.2, 0.1]), np.array([0.0, 0.1, 0.5, 0.2]))
    assert [claim.holds for claim in shrinks] == [False, False, False]
    assert shrinks[1].found == "rises in 0 of 2 steps for n > 100"
    assert shrinks[2].found == "varies by 0.400"


def test_the_white_box_optimum_is_one() -> None:
    game = SecurityGame.random(3, targets=20)
    x = security.white_box_optimum(game, game.problem().x0)
    value, gradient = security_gradient(game, x)
    assert (x >= 0).all()
    inside = x > 1e-9
    np.testing.assert_allclose(gradient[inside], 0.0, atol=1e-4)
    assert (gradient[~inside] > -1e-4).all()
    assert value < security_gradient(game, game.problem().x0)[0]


def test_the_noise_of_pzos_does_not_vanish_at_the_optimum() -> None:
    found = security.measure_noise(0, targets=30)
    assert found.pzos_at_start < found.zos_at_start
    assert found.pzos_at_optimum > found.zos_at_optimum
    assert found.zos_at_optimum < 0.01 * found.zos_at_start


def test_the_finding_is_written_and_can_be_refuted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {100: Noise(100, 1.0, 2.0, 2.0, 1.0, 0.5, 0.25), 300: Noise(300, 1.0, 2.0, 0.5, 1.0, 0.1, 0.2)}
    monkeypatch.setattr(security, "measure_noise", lambda seed, targets: rows[targets])
    start, end, late = security.noise_claims(tmp_path, seed=0)
    assert (start.holds, end.holds, late.holds) == (True, False, False)
    assert start.found == "n = 100: 1 against 2; n = 300: 1 against 2"
    assert {claim.where for claim in (start, end, late)} == {"not in the paper"}
    with (tmp_path / "noise.csv").open() as file:
        assert [row["n"] for row in csv.DictReader(file)] == ["100", "300"]
