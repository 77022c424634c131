"""Claims about routing games: each holds on runs made so, and fails on runs made otherwise."""

from __future__ import annotations

import csv
from collections.abc import Callable

import numpy as np
import pytest

from experiments.made import made_pair, made_runs
from pzos.experiments import routing
from pzos.experiments.claims import Claim, Size
from pzos.experiments.tables import Context, bands

STEPS = np.arange(61.0)
#: PZOS rises twice as fast as ZOS on every instance; both end at about one.
FAST = np.tile([1.0 - np.exp(-rate * STEPS) for rate in (0.30, 0.31, 0.32, 0.33)], (30, 1))
SLOW = np.tile([1.0 - np.exp(-rate * STEPS) for rate in (0.05, 0.08, 0.11, 0.14)], (30, 1))
ENOUGH = Size(100, 30)


def verdicts(claims: tuple[Claim, ...] | list[Claim], source: str = "paper") -> list[str]:
    return [claim.verdict for claim in claims if claim.source == source]


def test_all_claims_hold_where_pzos_is_faster_and_none_where_it_is_slower() -> None:
    assert verdicts(routing._routing_claims(made_pair(FAST, SLOW))) == ["holds"] * 6
    assert verdicts(routing._routing_claims(made_pair(SLOW, FAST))) == ["does not hold"] * 6
    assert verdicts(routing._routing_claims(made_pair(FAST[:4], SLOW[:4]))) == ["too small to judge"] * 6


def test_one_instance_that_loses_is_named() -> None:
    mixed = FAST.copy()
    mixed[3] = SLOW[0]
    claim = routing._routing_claims(made_pair(mixed, SLOW))[0]
    assert (claim.found, claim.verdict) == ("119 of 120; exceptions (seeds): [103]", "does not hold")


def test_the_step_is_conservative_if_a_larger_one_helps_pzos_and_upsets_zos() -> None:
    base = made_runs("PZOS", SLOW)
    assert verdicts(routing._step_claims(base, made_pair(FAST[:40], -SLOW[:40]))) == ["holds", "holds"]
    assert verdicts(routing._step_claims(base, made_pair(0.9 * SLOW[:40], SLOW[:40]))) == ["does not hold"] * 2
    gain = routing._step_claims(base, made_pair(1.5 * SLOW[:40], SLOW[:40]))[0]
    assert gain.number == pytest.approx(1.5)


def test_runs_that_diverge_are_counted_as_the_worst_and_named() -> None:
    base, theirs = made_runs("PZOS", SLOW), -SLOW[:40]
    theirs[3, -1] = -np.inf
    pair = made_pair(FAST[:40], theirs)
    assert (pair.theirs[3, -1], pair.ours[3].max()) == (0.0, 1.0)
    assert np.isfinite([pair.ours, pair.theirs]).all()
    unstable = routing._step_claims(base, pair)[1]
    assert unstable.found == "40 of 40, 1 of them to where no equilibrium can be computed"
    assert unstable.number == 1.0
    larger = FAST[:40].copy()
    larger[:25, -1] = -np.inf  # more than half of the runs: the median is as bad as can be
    gain = routing._step_claims(base, made_pair(larger, SLOW[:40]))[0]
    assert (gain.number, gain.verdict) == (-np.inf, "does not hold")


def test_the_gap_of_the_scatter_is_read_as_a_ratio() -> None:
    """High dimensions are low for both: the difference shrinks while the ratio grows."""
    runs = made_runs("PZOS", np.zeros((120, 2)))
    theirs = 0.5 * np.exp(-np.arange(120.0) / 20.0)
    ours = theirs * (1.0 + np.arange(1.0, 121.0) / 120.0)
    claims = routing._scatter_claims(10, runs, ours, theirs)
    assert verdicts(claims) == ["holds"] * 3
    (difference,) = [claim for claim in claims if claim.source == "finding"]
    assert difference.number < 0
    lowest = np.append(theirs[:-1], 0.0)  # an instance on which ZOS is at its lowest has the largest ratio
    assert routing._scatter_claims(10, runs, ours, lowest)[1].number == pytest.approx(1.0)
    rising = theirs[::-1]
    falling_share = rising * (0.9 - np.arange(120.0) / 240.0)
    assert verdicts(routing._scatter_claims(10, runs, falling_share, rising)) == ["does not hold"] * 3


@pytest.mark.parametrize(("ours", "theirs", "verdict"), [(FAST, SLOW, "holds"), (SLOW, FAST, "does not hold")])
def test_per_oracle_call_a_batch_costs_what_it_costs(ours: np.ndarray, theirs: np.ndarray, verdict: str) -> None:
    claim = routing._per_call_claim("ahead", 3.0 * STEPS, ours[0], 4.0 * STEPS, theirs[0], ENOUGH)
    assert claim.verdict == verdict
    assert "of 29 counts from 12 to 180" in claim.found  # both curves end where the first of them does


def test_an_equal_curve_per_step_is_behind_per_call() -> None:
    claim = routing._per_call_claim("ahead", 3.0 * STEPS, FAST[0], 2.0 * STEPS, FAST[0], ENOUGH)
    assert claim.verdict == "does not hold"  # PZOS pays three calls where ZOS pays two
    assert claim.found.startswith("at 0 of 19 counts from 12 to 120; behind from 12 calls by at most 0.")


def test_calls_to_a_level_are_the_first_that_reach_it() -> None:
    curve = np.array([0.0, 0.5, 0.8, 0.7, 0.9])
    assert routing.calls_to(0.8, 3.0 * np.arange(5.0), curve) == 6.0
    assert routing.calls_to(0.95, 3.0 * np.arange(5.0), curve) == np.inf


@pytest.mark.parametrize(("theirs", "verdict"), [(168.0, "holds"), (100.0, "does not hold"), (np.inf, "holds")])
def test_fewer_calls_is_a_ratio_to_the_best_zos(theirs: float, verdict: str) -> None:
    claim = routing._fewer_calls_claim(84.0, {1: np.inf, 2: theirs}, ENOUGH)
    assert claim.verdict == verdict
    assert claim.number == theirs / 84.0


def test_batches_are_judged_by_means_and_lower_quartiles_and_medians_are_a_finding() -> None:
    ours, theirs = FAST.copy(), FAST - 1e-3
    ours[:70, 40:] = theirs[:70, 40:] - 1e-6  # a hair behind on most instances late, far ahead on some
    ours[70:, 40:] += 0.01
    all_bands = bands(ours), bands(theirs)
    claims = routing._batch_claims(2, ours, theirs, *all_bands, largest=False)
    assert claims[0].verdict == "holds"
    medians = next(claim for claim in claims if "(medians)" in claim.claim)
    assert (medians.source, medians.number < 1.0) == ("finding", True)
    (alone,) = routing._batch_claims(1, ours, theirs, *all_bands, largest=False)
    assert alone.claim.endswith("(means)")


@pytest.mark.parametrize(("ahead", "verdict"), [(0.1, "holds"), (-0.1, "does not hold")])
def test_the_largest_batch_is_judged_over_the_run_and_every_iteration_is_a_finding(ahead: float, verdict: str) -> None:
    """Other seeds have ZOS with Q = 4 ahead by 1e-4 in the means of the last iteration."""
    ours, theirs = FAST.copy(), FAST - ahead
    ours[:, -1] = theirs[:, -1] - 1e-4
    claim, *strict = routing._batch_claims(4, ours, theirs, bands(ours), bands(theirs), largest=True)
    assert (claim.source, claim.verdict) == ("paper", verdict)
    assert {one.source for one in strict} == {"finding"}
    assert len(strict) == 4
    assert all(one.number < 1.0 for one in strict)


def test_with_tolls_of_at_least_zero_the_first_steps_are_a_finding() -> None:
    ours, theirs = FAST.copy(), SLOW.copy()
    ours[:, 3] = 0.0
    claims = routing._constrained_claims(made_pair(ours, theirs))
    assert verdicts(claims) == ["holds", "holds"]
    assert "behind between t = 3 and 3" in next(claim for claim in claims if claim.source == "finding").found
    assert verdicts(routing._constrained_claims(made_pair(-SLOW, -FAST))) == ["holds", "does not hold"]


def test_sensitivity_is_the_median_change_of_the_last_value() -> None:
    pairs = {mu: made_pair(FAST * (1.0 + change), SLOW) for mu, change in ((0.5, 0.0), (0.1, 0.04), (2.0, 0.2))}
    pzos, zos = routing._sensitivity_claims(pairs, 0.5)
    assert pzos.found == "mu = 0.5: 0.0%, mu = 0.1: 4.0%, mu = 2: 20.0%"
    assert (pzos.verdict, zos.verdict) == ("does not hold", "holds")
    assert pzos.number == pytest.approx(0.2)


def test_the_table_of_all_runs_has_each_once(computed: Callable[[], Context]) -> None:
    context = computed()
    routing._write_all(context)
    with (context.folder / "routing.csv").open() as file:
        rows = list(csv.DictReader(file))
    addresses = {(row["instance"], row["algorithm"], row["batch"], row["radius"], row["step"]) for row in rows}
    variants = {(row["algorithm"], row["batch"], row["radius"]) for row in rows}
    assert len(addresses) == len(rows) == len(variants) * 4 * 61
    assert variants == {(name, "1", mu) for name in ("PZOS", "ZOS") for mu in ("0.1", "0.5", "0.9", "2")} | {
        ("ZOS", "2", "0.5"), ("ZOS", "4", "0.5"),
    }  # fmt: skip


def test_runs_that_are_not_there_are_left_out_of_the_table(computed: Callable[[], Context], tmp_path) -> None:
    context = computed()
    base = {spec.key for spec in context.specs("routing", *context.scale.routing.base())}

    class Partial:
        """A store that was asked for the first figure only."""

        @staticmethod
        def finished() -> set[str]:
            return base

        load = staticmethod(context.store.load)

    routing._write_all(Context(context.scale, 0, tmp_path, Partial()))  # type: ignore[arg-type]
    with (tmp_path / "routing.csv").open() as file:
        assert {(row["algorithm"], row["radius"]) for row in csv.DictReader(file)} == {("PZOS", "0.5"), ("ZOS", "0.5")}


def test_normalisation_over_more_algorithms_is_another(computed: Callable[[], Context]) -> None:
    """The batch figure is normalised over all of its curves, so some curve touches 0 and some touches 1."""
    found = routing._batch_runs(computed())
    assert [runs.variant.label for runs, _ in found] == ["PZOS", "ZOS", "ZOS (Q=2)", "ZOS (Q=4)"]
    every = np.concatenate([values for _, values in found], axis=1)
    np.testing.assert_array_equal(every.min(axis=1), 0.0)
    np.testing.assert_array_equal(every.max(axis=1), 1.0)
