"""The charts of a page, made by plotly: hover, zoom, log axes. Colours are colour-blind safe (Okabe and Ito)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from pzos.base.errors import MissingExtra
from pzos.base.figures import COLOURS
from pzos.base.types import Vector
from pzos.report.story import RoadMap, Story

#: Different dashes as well, so that curves can be told apart without their colours.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_TEXT, _GRID = "#1a1a1a", "#e3e3e3"
_WIDTHS = 8


class Chart(NamedTuple):
    """A figure as a page holds it: the place it is drawn in, and what plotly's script is given."""

    name: str
    height: int
    json: str


def plotly() -> Any:
    """Return plotly's modules, or say which extra is missing."""
    try:
        import plotly.graph_objects
        import plotly.offline
    except ImportError as error:
        raise MissingExtra("plotly", "report", "writing a report") from error
    return plotly


def bundle() -> str:
    """Return plotly's own script, to be put into the page once: it then opens without a network."""
    script: str = plotly().offline.get_plotlyjs()
    return script


def charts(stories: Sequence[Story]) -> dict[str, Chart]:
    """Return every chart of a page by its name; what cannot be drawn is not there."""
    figures = {f"objective-{against}": objective(stories, against) for against in ("queries", "seconds")}
    for number, story in enumerate(stories):
        figures |= {
            f"motion-{number}": motion(story),
            f"ledger-{number}": ledger(story),
            f"decision-{number}": decision(story),
        }
        if story.roads is not None:
            figures[f"map-before-{number}"] = road_map(story.roads, before=True)
            figures[f"map-after-{number}"] = road_map(story.roads, before=False)
    return {
        # "<" is escaped, so that no name in the data can end the script that holds it.
        name: Chart(name, figure.layout.height, _styled(figure.to_json(validate=False)).replace("<", "\\u003c"))
        for name, figure in figures.items()
        if figure is not None
    }


def _styled(figure: str) -> str:
    """Return the text of a figure with the template of all of them; a name inside it cannot look like its layout."""
    return figure.replace('"layout":{', f'"layout":{{"template":{_template()},', 1)


@cache
def _template() -> str:
    import plotly.io

    return json.dumps(plotly.io.templates["simple_white"].to_plotly_json(), separators=(",", ":"))


def objective(stories: Sequence[Story], against: str) -> Any | None:
    """Draw F at the iterates and the best so far against ``"queries"`` or ``"seconds"``; None where F is not known."""
    figure = new_chart(
        "queries by the algorithm" if against == "queries" else "seconds since the start", "F(x)", log_button=True
    )
    drawn = [(number, story) for number, story in enumerate(stories) if story.curve.values.size]
    for number, story in drawn:
        x = story.curve.queries if against == "queries" else story.curve.seconds
        line = {"color": COLOURS[number % len(COLOURS)], "dash": DASHES[number // len(COLOURS) % len(DASHES)]}
        name = story.name if len(stories) > 1 else ""
        _line(figure, x, story.curve.values, "at the iterate", line | {"width": 1.2}, opacity=0.55, legend=not name)
        _line(figure, x, story.curve.best(story.sense), name or "best so far", line | {"width": 2.6})
    rows = len(drawn) if len(stories) > 1 else 1  # of the legend, as a phone needs them
    figure.update_layout(height=360 + 20 * rows, margin_b=60 + 20 * rows)
    return figure if drawn else None


def motion(story: Story) -> Any | None:
    """Draw step and radius against queries."""
    figure = new_chart("queries by the algorithm", "length", log_axis=True)
    sizes: list[float] = []
    curves = ((story.motion.step_name, story.motion.step), ("radius", story.motion.radius))
    for number, (name, column) in enumerate(curves):
        shown = np.isfinite(column) & (column > 0)
        if column.size == story.motion.queries.size and shown.any():
            line = {"color": COLOURS[number], "dash": DASHES[number], "width": 2.0}
            _line(figure, story.motion.queries[shown], column[shown], name, line)
            sizes += [float(column[shown].min()), float(column[shown].max())]
    if not sizes:
        return None
    wide = max(sizes) > 10.0 * min(sizes)
    figure.update_yaxes(dtick=1 if wide else "D2")  # plotly's own choice of labels runs into itself
    return figure


def ledger(story: Story) -> Any | None:
    """Draw where the queries went, as bars with their counts."""
    entries = [(name, count) for name, count in story.ledger.items() if count]
    if not entries:
        return None
    names, counts = zip(*reversed(entries), strict=True)
    figure = new_chart("queries", "", height=90 + 42 * len(names))
    figure.add_bar(
        x=list(counts), y=list(names), orientation="h", marker_color=COLOURS[0],
        text=[f"{count:,}" for count in counts], textposition="outside",
        cliponaxis=False, hovertemplate="%{y}: %{x}<extra></extra>",
    )  # fmt: skip
    figure.update_layout(showlegend=False, margin={"l": 8, "r": 56, "t": 16, "b": 44})
    figure.update_yaxes(type="category", showgrid=False)
    return figure


def decision(story: Story) -> Any | None:
    """Draw the leader's decision before and after."""
    if not story.before.size or story.before.size != story.after.size:
        return None
    figure = new_chart("decision", "value")
    names = [story.label(entry) for entry in range(story.before.size)]
    for column, name, symbol, colour in (
        (story.before, "before", "circle-open", COLOURS[4]),
        (story.after, "after", "circle", COLOURS[0]),
    ):
        figure.add_scatter(
            x=np.arange(column.size), y=column, mode="markers", name=name, text=names,
            marker={"symbol": symbol, "color": colour, "size": 7}, hovertemplate="%{text}: %{y:.6g}<extra></extra>",
        )  # fmt: skip
    return figure


def road_map(roads: RoadMap, *, before: bool) -> Any:
    """Draw the network: width by flow, colour by toll."""
    figure = new_chart("", "", height=460)
    flow = roads.flow_before if before else roads.flow_after
    top = max(float(roads.flow_before.max(initial=0.0)), float(roads.flow_after.max(initial=0.0)), 1e-300)
    toll = np.zeros_like(roads.toll) if before else roads.toll
    highest = max(float(np.abs(roads.toll).max(initial=0.0)), 1e-300)
    widths = np.ceil(_WIDTHS * flow / top).clip(1, _WIDTHS).astype(int)
    tolled = np.abs(toll) > 1e-9 * highest
    for width in range(1, _WIDTHS + 1):
        for is_tolled, colour in ((False, "#8a8a8a"), (True, COLOURS[1])):
            chosen = (widths == width) & (tolled == is_tolled)
            if chosen.any():
                xs, ys = (_segments(roads.start[chosen, k], roads.end[chosen, k]) for k in (0, 1))
                line = {"color": colour, "width": width}
                figure.add_scatter(x=xs, y=ys, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    middle = (roads.start + roads.end) / 2.0
    figure.add_scatter(
        x=middle[:, 0], y=middle[:, 1], mode="markers", showlegend=False,
        marker={"size": 9, "color": np.abs(toll), "cmin": 0.0, "cmax": highest, "colorscale": "Cividis",
                "opacity": tolled.astype(float) if not before else 0.0, "showscale": not before,
                "colorbar": {"title": {"text": "toll"}, "thickness": 12}},
        customdata=np.stack([flow, toll], axis=1),
        hovertemplate="flow %{customdata[0]:.5g}<br>toll %{customdata[1]:.5g}<extra></extra>",
    )  # fmt: skip
    figure.update_layout(margin_b=8)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, scaleanchor="x")
    return figure


def _segments(start: Vector, end: Vector) -> Vector:
    gaps = np.full(start.size, np.nan)
    return np.stack([start, end, gaps], axis=1).ravel()


def _line(
    figure: Any, x: Vector, y: Vector, name: str, line: dict[str, Any], opacity: float = 1.0, *, legend: bool = True
) -> None:
    figure.add_scatter(
        x=x, y=y, mode="lines", name=name, line=line, opacity=opacity, showlegend=legend,
        hovertemplate="%{x:.6g}: %{y:.8g}<extra></extra>",
    )  # fmt: skip


def new_chart(x: str, y: str, *, log_axis: bool = False, log_button: bool = False, height: int = 380) -> Any:
    """Return an empty chart in house style."""
    axis = {"gridcolor": _GRID, "showgrid": True, "automargin": True}
    layout = {
        "template": {},  # plotly would copy a whole one into every figure; :func:`charts` puts the text of one there
        "height": height, "margin": {"l": 8, "r": 12, "t": 48 if log_button else 16, "b": 80},
        "font": {"family": "system-ui, sans-serif", "size": 14, "color": _TEXT}, "hovermode": "closest",
        "legend": {"orientation": "h", "yref": "container", "y": 0.0, "yanchor": "bottom", "x": 0.0},
        "xaxis": {**axis, "title": {"text": x}},
        "yaxis": {**axis, "title": {"text": y}, "type": "log" if log_axis else "linear"},
        "updatemenus": [_axis_buttons()] if log_button else [],
    }  # fmt: skip
    return plotly().graph_objects.Figure(layout=layout)


def _axis_buttons() -> dict[str, Any]:
    """Return buttons that switch both axes between plain and logarithmic."""
    views = {"plain": ("linear", "linear"), "log x": ("log", "linear"), "log y": ("linear", "log")}
    buttons = [
        {"label": name, "method": "relayout", "args": [{"xaxis.type": x, "yaxis.type": y}]}
        for name, (x, y) in views.items()
    ]
    return {"type": "buttons", "direction": "right", "x": 0.0, "xanchor": "left", "y": 1.02, "yanchor": "bottom",
            "buttons": buttons, "pad": {"b": 4}, "font": {"size": 12}}  # fmt: skip
