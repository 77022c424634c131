"""The appendix's examples: our intervals against the published ones, and what is said where they differ."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.experiments import goldstein
from pzos.experiments.descriptions import FULL
from pzos.experiments.tables import Context
from pzos.stationarity.piecewise import full_not_partial, partial_not_full

BOTH = [(full_not_partial, goldstein._published_first), (partial_not_full, goldstein._published_second)]


@pytest.mark.parametrize(("example", "published"), BOTH)
def test_the_intervals_are_the_published_ones(example, published) -> None:
    rows = example().intervals(goldstein._DELTAS)
    np.testing.assert_allclose(rows, [published(float(delta)) for delta in goldstein._DELTAS], atol=1e-12)
    assert goldstein._interval_claim(1, rows, published).verdict == "holds"


def test_an_interval_that_is_off_is_told_by_how_much() -> None:
    rows = full_not_partial().intervals(goldstein._DELTAS)
    rows[7, 2] += 0.25
    claim = goldstein._interval_claim(1, rows, goldstein._published_first)
    assert claim.verdict == "does not hold"
    assert claim.found == "2.5e-01 over 200 values of delta"


def test_stationarity_is_read_off_the_intervals() -> None:
    intervals = [example().intervals(goldstein._DELTAS) for example, _ in BOTH]
    assert [claim.verdict for claim in goldstein._stationarity_claims(intervals)] == ["holds", "holds"]
    swapped = goldstein._stationarity_claims(intervals[::-1])  # each example is no example of the other
    assert [claim.verdict for claim in swapped] == ["does not hold", "does not hold"]


def test_the_figure_has_the_papers_markers_titles_and_ranges(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="figures need the extra plot")
    shown = []
    monkeypatch.setattr(goldstein, "save", lambda figure, folder, name: shown.append(figure))
    examples = [full_not_partial(), partial_not_full()]
    intervals = [example.intervals(goldstein._DELTAS) for example in examples]
    goldstein._draw(Context(FULL, 0, tmp_path, None), examples, intervals)  # type: ignore[arg-type]
    left, right = shown[0].axes[:2]
    assert (left.get_xlim(), left.get_ylim()) == ((-1.5, 2.0), (0.0, 4.5))
    assert (right.get_xlim(), right.get_ylim()) == ((-1.5, 2.5), (-3.0, 2.5))
    points = {
        axes: [
            (*map(float, line.get_xydata()[0]), line.get_marker(), line.get_color()) for line in axes.get_lines()[1:]
        ]
        for axes in (left, right)
    }
    assert points[left] == [(0.0, 1.0, "o", "red"), (0.5, 0.75, "D", "green")]
    assert points[right] == [(0.0, -1.0, "o", "red"), (1.0, 1.0, "s", "orange"), (1.5, 1.25, "^", "green")]
