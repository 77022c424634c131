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
from pzos.networks.maps import CASING, PAPER, ROAD, TOLLS
from pzos.report import charts
from pzos.report.story import EMPTY, Curve, Motion, Point, RoadMap, Story, story_of

pytest.importorskip("plotly", reason="needs the extra 'report'")


@pytest.fixture(scope="module")
def story() -> Story:
    return story_of(pzos.solve(problem(), pzos.PZOS(step=0.05, radius=0.1), steps=8), "small")


def traces(figure) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {trace.name: (np.asarray(trace.x), np.asarray(trace.y)) for trace in figure.data}


def test_progress_is_how_far_F_is_from_the_best_on_a_log_axis(story: Story) -> None:
    figure = charts.progress([story])
    drawn = traces(figure)
    above = story.curve.values - story.curve.values.min()
    assert figure.layout.yaxis.type == "log"
    np.testing.assert_array_equal(drawn["at each point"][0], story.curve.queries)
    np.testing.assert_array_equal(drawn["at each point"][1], np.maximum(above, 0.5 * above[above > 0].min()))
    np.testing.assert_array_equal(figure.data[1].customdata, np.minimum.accumulate(story.curve.values))  # F on hover
    buttons = figure.layout.updatemenus[0].buttons
    assert [button.label for button in buttons] == ["queries", "seconds"]
    np.testing.assert_array_equal(buttons[1].args[0]["x"][0], story.curve.seconds)


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0], [2.0, 2.0 + 1e-15]])
def test_progress_is_never_an_empty_log_axis(story: Story, values: list[float]) -> None:
    many = np.arange(float(len(values)))
    figure = charts.progress([replace(story, curve=Curve(many, many, np.array(values)))])
    assert figure.layout.yaxis.type == "linear"
    assert figure.data[1].mode == "lines+markers"  # a single point is seen as well
    np.testing.assert_array_equal(figure.data[0].y, values)


def test_progress_of_a_maximum_is_below_the_best(story: Story) -> None:
    figure = charts.progress([replace(story, sense="max", curve=Curve(np.arange(3.0), np.arange(3.0), np.arange(3.0)))])
    assert figure.layout.yaxis.title.text == "value below the best"
    assert figure.data[1].y.tolist() == [2.0, 1.0, 0.5]  # the best itself stands at the foot of the axis


def test_studies_of_one_problem_are_measured_from_the_best_of_all(story: Story) -> None:
    worse = replace(story, name="worse", curve=story.curve._replace(values=story.curve.values + 1.0))
    figure = charts.progress([story, worse])
    assert figure.data[3].y.min() == pytest.approx(1.0)
    other = replace(worse, asked=(("problem", "another"),))
    assert charts.progress([story, other]).data[3].y.min() < 0.1


def test_several_studies_are_told_apart_by_name_colour_and_dash(story: Story) -> None:
    many = [replace(story, name=f"study {number}") for number in range(9)]
    figure = charts.progress(many)
    named = [trace for trace in figure.data if trace.showlegend is not False]
    assert [trace.name for trace in named] == [one.name for one in many]
    assert len({(trace.line.color, trace.line.dash) for trace in named}) == 9
    assert figure.layout.height > charts.progress(many[:1]).layout.height  # room for the legend


def test_what_is_not_known_is_not_drawn(story: Story) -> None:
    bare = replace(
        story, curve=Curve(EMPTY, EMPTY, EMPTY), motion=Motion(EMPTY, EMPTY, "step", EMPTY), ledger={}, points=()
    )
    assert charts.progress([bare]) is None
    assert charts.motion(bare) is None
    assert charts.decision(bare) is None
    assert charts.charts([bare]) == {}
    assert set(traces(charts.progress([bare, story]))) == {"small", "at each point"}


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


def test_many_decisions_are_drawn_with_whole_ticks(story: Story) -> None:
    assert charts.decision(story) is None  # the table shows all five
    start, best = (Point(name, np.arange(30.0) + k, EMPTY, 0.0) for k, name in enumerate(("start", "best")))
    figure = charts.decision(replace(story, points=(start, best), decisions=pzos.Columns(units="EUR", digits=1)))
    np.testing.assert_array_equal(traces(figure)["best"][1], best.x)
    assert figure.data[1].text[3] == "x[3] [EUR]: 4.0"
    assert figure.layout.xaxis.dtick == 5


def test_ticks_of_numbered_entries_are_whole() -> None:
    assert [charts.whole_ticks(size) for size in (1, 3, 13, 30, 61, 300, 39018)] == [1, 1, 2, 5, 10, 50, 10000]


ROADS = RoadMap(
    np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]), np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]),
    np.array([8.0, 0.0, 4.0]), np.array([2.0, 6.0, 4.0]), np.array([0.0, 2.5, 0.0]),
)  # fmt: skip


def test_the_map_shows_flow_by_width_and_tolls_by_colour() -> None:
    before, after = charts.road_map(ROADS, before=True), charts.road_map(ROADS, before=False)
    lines = [trace for trace in before.data if trace.mode == "lines"]
    assert sorted(trace.line.width for trace in lines if trace.line.color == ROAD) == [1, 4, 8]  # none is left out
    assert {trace.line.color for trace in lines} == {CASING, ROAD}
    tolled = [trace for trace in after.data if trace.mode == "lines" and trace.line.color == TOLLS[-1]]
    assert [trace.line.width for trace in tolled] == [6]
    assert before.layout.plot_bgcolor == PAPER
    dots = after.data[-1]
    np.testing.assert_array_equal(dots.customdata, np.stack([ROADS.flow_after, ROADS.toll], axis=1))


def test_every_chart_has_a_name_and_no_text_can_end_its_script(story: Story) -> None:
    points = tuple(point._replace(x=np.arange(20.0)) for point in story.points)
    named = pzos.Columns([f"</script>{at}" for at in range(20)])
    nasty = replace(story, name="</script><b>", roads=ROADS, points=points, decisions=named)
    drawn = charts.charts([nasty, story])
    assert list(drawn) == ["progress", "decision-0", "motion-0", "map-before-0", "map-after-0", "motion-1"]
    for name, chart in drawn.items():
        assert chart.name == name
        assert "<" not in chart.json
        assert json.loads(chart.json)["layout"]["height"] == chart.height > 0
    assert json.loads(drawn["progress"].json)["data"][1]["name"] == "</script><b>"


def test_without_plotly_the_extra_is_named(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(MissingExtra, match=r"pzos\[report\]"):
        charts.bundle()
