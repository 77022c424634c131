"""The appendix's examples: our intervals against the published ones, and what is said where they differ."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.experiments import goldstein
from pzos.stationarity.piecewise import full_not_partial, partial_not_full

BOTH = [(full_not_partial, goldstein._published_first), (partial_not_full, goldstein._published_second)]


@pytest.mark.parametrize(("example", "published"), BOTH)
def test_the_intervals_are_the_published_ones(example, published) -> None:
    rows = example().intervals(goldstein._DELTAS)
    np.testing.assert_allclose(rows, [published(float(delta)) for delta in goldstein._DELTAS], atol=1e-12)
    assert goldstein._interval_claim(1, rows, published).holds


def test_an_interval_that_is_off_is_told_by_how_much() -> None:
    rows = full_not_partial().intervals(goldstein._DELTAS)
    rows[7, 2] += 0.25
    claim = goldstein._interval_claim(1, rows, goldstein._published_first)
    assert not claim.holds
    assert claim.found == "largest difference 2.5e-01 over 200 values of delta"


def test_stationarity_is_read_off_the_intervals() -> None:
    intervals = [example().intervals(goldstein._DELTAS) for example, _ in BOTH]
    first, second = goldstein._stationarity_claims(intervals)
    assert first.holds
    assert second.holds
    first, second = goldstein._stationarity_claims(intervals[::-1])  # each example is no example of the other
    assert not first.holds
    assert not second.holds
