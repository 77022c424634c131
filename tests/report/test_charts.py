"""The charts, read back from plotly's figures: every curve is the story's, every mark says what it stands for."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import pzos
from instances import problem
from pzos.base.errors import MissingExtra
from pzos.report import charts
from pzos.report.story import EMPTY, Curve, Motion, RoadMap, Story, story_of

pytest.importorskip("plotly", reason="needs the extra 'report'")


@pytest.fixture(scope="module")
def story() -> Story:
    return story_of(pzos.solve(problem(), pzos.PZOS(step=0.05, radius=0.1), steps=8), "small")


def traces(figure) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {trace.name: (np.asarray(trace.x), np.asarray(trace.y)) for trace in figure.data}


@pytest.mark.parametrize("against", ["queries", "seconds"])
def test_the_objective_is_drawn_against_what_it_cost(story: Story, against: str) -> None:
    drawn = traces(charts.objective([story], against))
    np.testing.assert_array_equal(drawn["at the iterate"][0], getattr(story.curve, against))
    np.testing.assert_array_equal(drawn["at the iterate"][1], story.curve.values)
    np.testing.assert_array_equal(drawn["best so far"][1], np.minimum.accumulate(story.curve.values))


def test_several_studies_are_told_apart_by_name_colour_and_dash(story: Story) -> None:
    many = [replace(story, name=f"study {number}") for number in range(9)]
    figure = charts.objective(many, "queries")
    named = [trace for trace in figure.data if trace.showlegend is not False]
    assert [trace.name for trace in named] == [one.name for one in many]
    assert len({(trace.line.color, trace.line.dash) for trace in named}) == 9
    assert figure.layout.height > charts.objective(many[:1], "queries").layout.height  # room for the legend


def test_what_is_not_known_is_not_drawn(story: Story) -> None:
    bare = replace(
        story, curve=Curve(EMPTY, EMPTY, EMPTY), motion=Motion(EMPTY, EMPTY, "step", EMPTY), ledger={}, before=EMPTY
    )
    assert charts.objective([bare], "queries") is None
    assert charts.motion(bare) is None
    assert charts.ledger(bare) is None
    assert charts.decision(bare) is None
    assert charts.charts([bare]) == {}
    assert set(traces(charts.objective([bare, story], "queries"))) == {"small", "at the iterate"}


def test_steps_and_radii_that_a_log_axis_cannot_show_are_left_out(story: Story) -> None:
    motion = Motion(np.arange(4.0), np.array([1.0, 0.0, np.nan, 0.5]), "step size", np.array([1e-3, 1e-2, 0.1, 1.0]))
    figure = charts.motion(replace(story, motion=motion))
    drawn = traces(figure)
    assert drawn["step size"][0].tolist() == [0.0, 3.0]
    assert drawn["radius"][1].tolist() == [1e-3, 1e-2, 0.1, 1.0]
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.yaxis.dtick == 1  # three decades: a label for each
    narrow = Motion(np.arange(2.0), np.array([0.2, 0.3]), "step size", EMPTY)
    assert charts.motion(replace(story, motion=narrow)).layout.yaxis.dtick == "D2"


def test_the_ledger_has_a_bar_with_its_count_for_everything_that_happened(story: Story) -> None:
    (bars,) = charts.ledger(replace(story, ledger={"probes": 1200, "failed": 0, "monitoring": 3})).data
    assert list(bars.y) == ["monitoring", "probes"]  # plotly draws upwards: the first comes out on top
    assert list(bars.text) == ["3", "1,200"]


def test_the_decision_is_drawn_before_and_after(story: Story) -> None:
    drawn = traces(charts.decision(story))
    np.testing.assert_array_equal(drawn["before"][1], story.before)
    np.testing.assert_array_equal(drawn["after"][1], story.after)


ROADS = RoadMap(
    np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]), np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]),
    np.array([8.0, 0.0, 4.0]), np.array([2.0, 6.0, 4.0]), np.array([0.0, 2.5, 0.0]),
)  # fmt: skip


def test_the_map_shows_flow_by_width_and_tolls_by_colour() -> None:
    before, after = charts.road_map(ROADS, before=True), charts.road_map(ROADS, before=False)
    widths = sorted(trace.line.width for trace in before.data if trace.mode == "lines")
    assert widths == [1, 4, 8]  # a road without flow is still a line
    assert {trace.line.color for trace in before.data if trace.mode == "lines"} == {"#8a8a8a"}
    tolled = [trace for trace in after.data if trace.mode == "lines" and trace.line.color == charts.COLOURS[1]]
    assert [trace.line.width for trace in tolled] == [6]
    dots = after.data[-1]
    assert np.asarray(dots.marker.opacity).tolist() == [0.0, 1.0, 0.0]
    np.testing.assert_array_equal(dots.customdata, np.stack([ROADS.flow_after, ROADS.toll], axis=1))


def test_every_chart_has_a_name_and_no_text_can_end_its_script(story: Story) -> None:
    nasty = replace(story, name="</script><b>", roads=ROADS, labels=("</script>",) * story.before.size)
    drawn = charts.charts([nasty, story])
    names = ["objective-queries", "objective-seconds", "motion-0", "ledger-0", "decision-0", "map-before-0"]
    assert list(drawn) == [*names, "map-after-0", "motion-1", "ledger-1", "decision-1"]
    for name, chart in drawn.items():
        assert chart.name == name
        assert "<" not in chart.json
        assert json.loads(chart.json)["layout"]["height"] == chart.height > 0
    assert json.loads(drawn["objective-queries"].json)["data"][1]["name"] == "</script><b>"


def test_without_plotly_the_extra_is_named(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(MissingExtra, match=r"pzos\[report\]"):
        charts.bundle()
