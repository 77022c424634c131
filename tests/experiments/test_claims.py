"""Claims: each kind of verdict, from one seed and from several, and the statistics behind them done by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pzos.experiments.claims import (
    ALL,
    Bar,
    Claim,
    Size,
    counts,
    everywhere,
    judge,
    measured,
    rank_correlation,
    stays_ahead,
)

ENOUGH, FEW = Size(100, 30), Size(24, 30)
HALF = Bar(least=0.5)


def claim(number: float, bar: Bar | None = HALF, size: Size = ENOUGH) -> Claim:
    return Claim("above", "Fig. 1", f"{number}", number, bar, size)


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (claim(0.6), "holds"),
        (claim(0.5), "holds"),
        (claim(0.4), "does not hold"),
        (claim(0.9, size=FEW), "too small to judge"),
        (claim(0.1, size=FEW), "too small to judge"),
        (claim(np.nan), "does not hold"),  # what cannot be computed is not borne out
        (claim(0.4, Bar(most=0.5)), "holds"),
        (claim(0.6, Bar(most=0.5)), "does not hold"),
        (claim(0.6, None), "measured"),
    ],
)
def test_one_seed_is_judged_by_its_number_and_its_size(one: Claim, verdict: str) -> None:
    assert one.verdict == verdict


@pytest.mark.parametrize(
    ("numbers", "bar", "verdict", "reason"),
    [
        ([0.6, 0.7, 0.8], HALF, "holds", ""),
        ([0.1, 0.2, 0.3], HALF, "does not hold", "in 0 of 3 seeds"),
        ([0.4, 0.6, 0.8], HALF, "too small to judge", "in 2 of 3 seeds"),
        ([1.0, 1.0, 0.99], ALL, "does not hold", "in 2 of 3 seeds"),  # one seed refutes a claim about every case
        ([1.0, 1.0, 1.0], ALL, "holds", ""),
    ],
)
def test_seeds_that_agree_decide(numbers: list[float], bar: Bar, verdict: str, reason: str) -> None:
    found = judge([claim(number, bar) for number in numbers])
    assert (found.verdict, found.reason) == (verdict, reason)


def test_a_small_sample_says_what_it_needs() -> None:
    assert judge([claim(0.9, size=FEW)]).reason == "needs 30 instances, has 24"


def test_the_interval_over_seeds_is_students() -> None:
    found = judge([claim(number) for number in (0.6, 0.7, 0.8, 0.9, 1.0)])
    half = 2.7764451 * np.sqrt(0.025) / np.sqrt(5)  # t of 4 degrees of freedom; variance of the five by hand
    assert (found.number, found.low, found.high) == pytest.approx((0.8, 0.8 - half, 0.8 + half))
    assert found.report()["words"] == "0.8 [0.604, 0.996], 5 seeds from 0.6 to 1 (at least 0.5)"
    assert found.found == "0.6 (first seed)"


def test_one_seed_has_a_number_and_no_interval() -> None:
    report = judge([claim(0.6)]).report()
    assert (report["low"], report["high"], report["words"], report["found"]) == (
        None,
        None,
        "0.6 (at least 0.5)",
        "0.6",
    )
    assert judge([claim(0.6, None)]).report()["words"] == "0.6"


def test_what_could_not_be_computed_is_empty_and_still_json() -> None:
    report = judge([claim(np.nan), claim(0.6)]).report()
    assert (report["number"], report["numbers"], report["low"]) == (None, (None, 0.6), None)
    assert json.loads(json.dumps(report, allow_nan=False))["words"] == " (at least 0.5)"


def test_a_bar_says_what_it_asks_for() -> None:
    assert [str(bar) for bar in (ALL, Bar(most=3.0), Bar(0.1, 0.2))] == [
        "at least 1",
        "at most 3",
        "at least 0.1 and at most 0.2",
    ]


def test_the_paper_and_findings_are_counted_apart() -> None:
    claims = [claim(0.6), claim(0.4), claim(0.6, size=FEW), measured(claim(0.6)), claim(0.6)._replace(source="finding")]
    assert counts(judge([one]).report() for one in claims) == (
        "1 of 3 claims of the paper hold, 1 do not, 1 are too small to judge; 2 findings beside it"
    )


def test_a_claim_about_every_entry_holds_only_if_none_is_missing() -> None:
    one = everywhere("above", "Fig. 1", np.array([True, True]), ENOUGH, "in {} runs")
    assert (one.found, one.number, one.verdict) == ("in 2 of 2 runs", 1.0, "holds")
    one = everywhere("above", "Fig. 1", np.array([True, False, True]), ENOUGH)
    assert (one.found, one.number, one.verdict) == ("2 of 3", pytest.approx(2 / 3), "does not hold")
    assert measured(one).verdict == "measured"


def test_a_curve_that_falls_behind_is_told_with_when_and_by_how_much() -> None:
    ours = np.array([0.0, 0.2, 0.3, 0.4, 0.9])
    theirs = np.array([0.0, 0.1, 0.5, 0.4, 0.8])
    one = stays_ahead("above", "Fig. 1", ours, theirs, ENOUGH)
    assert one.found == "at 2 of 4 iterations; behind between t = 2 and 3 by at most 0.2"
    assert (one.number, one.verdict) == (0.5, "does not hold")
    one = stays_ahead("above", "Fig. 1", ours, theirs, ENOUGH, first=4)
    assert (one.found, one.verdict) == ("at 1 of 1 iterations", "holds")


def test_rank_correlation_by_hand() -> None:
    n = np.array([1.0, 2.0, 3.0, 4.0])
    assert rank_correlation(n, np.array([0.1, 5.0, 6.0, 100.0])) == pytest.approx(1.0)
    assert rank_correlation(n, np.array([9.0, 4.0, 1.0, 0.0])) == pytest.approx(-1.0)
    assert rank_correlation(n, np.array([2.0, 1.0, 4.0, 3.0])) == pytest.approx(1.0 - 6.0 * 4.0 / (4.0 * 15.0))
    assert np.isnan(rank_correlation(n[:2], n[:2]))
    assert np.isnan(rank_correlation(n, np.ones(4)))
