"""Claims about security games: each holds on runs made so, and fails on runs made otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.made import made_pair
from pzos.experiments import security
from pzos.experiments.claims import Claim
from pzos.experiments.tables import Pair

STEPS = np.arange(61.0)
#: Lower is better here: PZOS falls fast and evenly, ZOS slowly and unevenly.
FAST = np.tile([np.exp(-rate * STEPS) for rate in (0.30, 0.31, 0.32, 0.33)], (30, 1))
SLOW = np.tile([np.exp(-rate * STEPS) for rate in (0.05, 0.08, 0.11, 0.14)], (30, 1))


def verdicts(claims: tuple[Claim, ...] | list[Claim], source: str = "paper") -> list[str]:
    return [claim.verdict for claim in claims if claim.source == source]


def test_all_claims_hold_where_pzos_is_faster_and_fail_where_it_is_slower() -> None:
    assert verdicts(security._speed_claims(made_pair(FAST, SLOW))) == ["holds"] * 3
    assert verdicts(security._speed_claims(made_pair(SLOW, FAST))) == ["does not hold"] * 3


def test_runs_that_lose_are_counted_as_a_finding_with_their_dimensions() -> None:
    ours = FAST.copy()
    ours[:2] = SLOW[0]
    theirs = SLOW.copy()
    theirs[:2] = FAST[0]
    claims = security._speed_claims(made_pair(ours, theirs))
    assert verdicts(claims) == ["holds"] * 3  # the medians do not see two runs
    runs = next(claim for claim in claims if claim.claim.startswith("Runs on which"))
    assert runs.found == "118 of 120, exceptions at n <= 20; exceptions (seeds): [100, 101]"
    assert runs.number == pytest.approx(118 / 120)


def test_few_runs_are_too_small_to_judge() -> None:
    assert verdicts(security._speed_claims(made_pair(FAST[:4], SLOW[:4]))) == ["too small to judge"] * 3


@pytest.mark.parametrize(("projected", "verdict"), [(0.0, "holds"), (0.05, "holds"), (2.0, "does not hold")])
def test_a_projection_that_is_rarely_active_is_not_in_practice(projected: float, verdict: str) -> None:
    practice, steps, _ = security._constraint_claims(made_pair(FAST, SLOW, projected=projected))
    assert practice.verdict == verdict
    assert steps.found == f"PZOS {int(120 * projected)}, ZOS {int(120 * projected)}"


def test_unspent_budget_is_told() -> None:
    *_, budget = security._constraint_claims(made_pair(FAST, SLOW, slack=3.0))
    assert (budget.found, budget.verdict) == ("720", "does not hold")
    *_, budget = security._constraint_claims(made_pair(FAST, SLOW))
    assert budget.verdict == "holds"


def bold(ours: float, theirs: float) -> Pair:
    """Return ten large games of which F first rises by these shares of its start."""
    shape = np.array([1.0, 1.0, 0.5])
    rise = np.array([0.0, 1.0, 0.0])
    rows = [np.tile(shape + share * rise, (10, 1)) for share in (ours, theirs)]
    return made_pair(*rows, dimensions=np.repeat([200.0, 300.0], 5))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (0.0, 0.04, ["holds", "holds"]),
        (0.0, 0.0, ["does not hold", "holds"]),
        (0.04, 0.04, ["holds", "does not hold"]),
    ],
)
def test_the_footnote_on_the_step_is_about_how_far_the_objective_rises(
    ours: float, theirs: float, expected: list[str]
) -> None:
    claims = security._step_claims(bold(ours, theirs))
    assert verdicts(claims) == expected
    assert claims[0].found == f"rises to {1.0 + theirs:.3f} of its start at n = 300"


N = np.arange(105.0, 301.0, 5.0)


def test_a_gap_that_widens_as_a_trend_and_one_that_does_not() -> None:
    rough = N / 300.0 + 0.02 * (-1.0) ** np.arange(N.size)  # rises, but up and down from step to step
    claims = security.dimension_claims(50, N, np.full(N.size, 0.1), 0.1 + rough)
    assert verdicts(claims) == ["holds"] * 3
    (steps,) = [claim for claim in claims if claim.source == "finding"]
    assert steps.found == "19 of 39; between bins of 25 7 of 7"
    falls = security.dimension_claims(50, N, 0.1 + rough, np.full(N.size, 0.1))
    assert verdicts(falls) == ["does not hold"] * 3


def test_few_dimensions_say_nothing() -> None:
    claims = security.dimension_claims(50, N[:2], np.array([0.1, 0.1]), np.array([0.2, 0.3]))
    assert verdicts(claims) == ["too small to judge"] * 3
