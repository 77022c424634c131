"""Claims about routing games: each holds on runs made so, and fails on runs made otherwise."""

from __future__ import annotations

import csv
from collections.abc import Callable

import numpy as np
import pytest

from experiments.made import made_pair
from pzos.experiments import routing
from pzos.experiments.descriptions import Variant
from pzos.experiments.tables import Claim, Context

STEPS = np.arange(61.0)
#: PZOS rises twice as fast as ZOS on every instance; both end at about one.
FAST = np.stack([1.0 - np.exp(-rate * STEPS) for rate in (0.30, 0.31, 0.32, 0.33)])
SLOW = np.stack([1.0 - np.exp(-rate * STEPS) for rate in (0.05, 0.08, 0.11, 0.14)])


def by_word(claims: tuple[Claim, ...] | list[Claim], word: str) -> Claim:
    (found,) = [claim for claim in claims if word in claim.claim]
    return found


def test_all_claims_hold_where_pzos_is_faster_and_none_but_the_count_of_calls_where_it_is_slower() -> None:
    assert all(claim.holds for claim in routing._routing_claims(made_pair(FAST, SLOW)))
    swapped = routing._routing_claims(made_pair(SLOW, FAST))
    assert [claim.holds for claim in swapped] == [False, False, False, False, False, True]
    assert by_word(swapped, "all runs").found == "0 of 4; exceptions (seeds): [100, 101, 102, 103]"
    assert by_word(swapped, "one oracle call").found == "3 against 2"


def test_one_instance_that_loses_is_named() -> None:
    mixed = np.concatenate([FAST[:3], SLOW[:1]])
    claim = by_word(routing._routing_claims(made_pair(mixed, SLOW[[0, 1, 2, 3]])), "all runs")
    assert (claim.found, claim.holds) == ("3 of 4; exceptions (seeds): [103]", False)


@pytest.mark.parametrize(("ours", "theirs", "holds"), [(FAST, SLOW, True), (SLOW, FAST, False)])
def test_per_oracle_call_a_batch_costs_what_it_costs(ours: np.ndarray, theirs: np.ndarray, holds: bool) -> None:
    variant = Variant("ZOS", 2)
    claim = routing._per_call_claim(variant, 3.0 * STEPS, ours[0], variant.queries_per_step * STEPS, theirs[0])
    assert claim.holds is holds
    assert claim.found.endswith("of 29 counts from 12 to 180")  # both curves end where the first of them does


def test_an_equal_curve_per_step_is_behind_per_call() -> None:
    claim = routing._per_call_claim(Variant("ZOS"), 3.0 * STEPS, FAST[0], 2.0 * STEPS, FAST[0])
    assert not claim.holds  # PZOS pays three calls where ZOS pays two


def test_sensitivity_is_the_median_change_of_the_last_value() -> None:
    pairs = {mu: made_pair(FAST * (1.0 + change), SLOW) for mu, change in ((0.5, 0.0), (0.1, 0.04), (2.0, 0.2))}
    pzos, zos = routing._sensitivity_claims(pairs, 0.5)
    assert pzos.found == "mu = 0.5: 0.0%, mu = 0.1: 4.0%, mu = 2: 20.0%"
    assert (pzos.holds, zos.holds) == (False, True)


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
    found = routing._batch_bands(computed())
    assert [variant.label for variant, _, _ in found] == ["PZOS", "ZOS", "ZOS (Q=2)", "ZOS (Q=4)"]
    highest = max(float(band.upper_decile.max()) for _, _, band in found)
    assert 0.9 < highest <= 1.0
