"""The charts of a page, made by plotly: hover, zoom, log axes. Colours are colour-blind safe (Okabe and Ito)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.columns import Column
from pzos.base.errors import MissingExtra
from pzos.base.figures import COLOURS
from pzos.base.types import Vector
from pzos.report.story import RoadMap, Story

#: Different dashes as well, so that curves can be told apart without their colours.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_WIDTHS = 8
_CASING = 1.4
#: As many rows of a table are read at a glance; what is longer is folded, and drawn.
FEW = 12
_MARKED = 60
#: F closer to the best than this part of it is the best.
_ROUNDING = 1e-12
_AGAINST = {"queries": "queries by the algorithm", "seconds": "seconds since the start"}


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
    figures = {"progress": progress(stories)}
    for number, story in enumerate(stories):
        figures |= {f"decision-{number}": decision(story), f"motion-{number}": motion(story)}
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


def progress(stories: Sequence[Story]) -> Any | None:
    """Draw how far F is from the best that was found, against queries or seconds; None where F is not known.

    The best itself has no place on a log axis and is drawn at its foot. Where F never changed, F itself is drawn.
    """
    drawn = [(number, story) for number, story in enumerate(stories) if story.curve.values.size]
    if not drawn:
        return None
    bests = _bests([story for _, story in drawn])
    above = [np.abs(story.curve.values - best) for (_, story), best in zip(drawn, bests, strict=True)]
    positive = [
        float(gap) for gaps, best in zip(above, bests, strict=True) for gap in gaps if gap > _ROUNDING * abs(best)
    ]
    cost, units = drawn[0][1].cost, {story.unit for _, story in drawn}
    words = f"{cost} {'above' if cost == 'cost' else 'below'} the best" if positive else cost
    label = str(Column(words, units.pop() if len(units) == 1 else ""))
    figure = new_chart(_AGAINST["queries"], label, log_axis=bool(positive))
    foot = 0.5 * min(positive, default=0.0)
    axes: dict[str, list[Vector]] = {against: [] for against in _AGAINST}
    for (number, story), best in zip(drawn, bests, strict=True):
        line = {"color": COLOURS[number % len(COLOURS)], "dash": DASHES[number // len(COLOURS) % len(DASHES)]}
        name = story.name if len(stories) > 1 else ""
        for values, label, look, legend in (
            (story.curve.values, "at each point", {"width": 1.2}, not name),
            (story.curve.best(story.sense), name or "best so far", {"width": 2.6}, True),
        ):
            shown = np.maximum(np.abs(values - best), foot) if positive else values
            _line(
                figure, story.curve.queries, shown, label, line | look, 1.0 if legend and name else 0.8, legend, values
            )
            for against, x in (("queries", story.curve.queries), ("seconds", story.curve.seconds)):
                axes[against].append(x)
    if positive:
        _log_ticks(figure, foot, max(positive))
    rows = len(drawn) if len(stories) > 1 else 1  # of the legend, as a phone needs them
    figure.update_layout(height=340 + 20 * rows, margin={"b": 60 + 20 * rows, "t": 48}, updatemenus=[_against(axes)])
    return figure


def _bests(stories: Sequence[Story]) -> list[float]:
    """Return what each curve is measured from: the best F of all studies of the same problem."""
    found: dict[tuple[str, str], float] = {}
    keys = [(dict(story.asked).get("problem", ""), story.sense) for story in stories]
    for key, story in zip(keys, stories, strict=True):
        best = float(story.curve.best(story.sense)[-1])
        better = min if story.sense == "min" else max
        found[key] = better(best, found.get(key, best))
    return [found[key] for key in keys]


def _log_ticks(figure: Any, low: float, high: float) -> None:
    """Put ticks where their labels do not run into each other."""
    figure.update_yaxes(dtick=max(1, int(np.log10(high / low)) // 6) if high > 10.0 * low else "D2")


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
    _log_ticks(figure, min(sizes), max(sizes))
    return figure


def decision(story: Story) -> Any | None:
    """Draw the leader's decisions, where a table of them all would be long."""
    if not story.points or story.points[-1].x.size <= FEW:
        return None
    size = story.points[-1].x.size
    figure = new_chart("number of the decision", "value")
    columns = story.decisions.of(size)
    looks = (("circle-open", COLOURS[3]), ("diamond-open", COLOURS[1]), ("circle", COLOURS[0]))
    for point, (symbol, colour) in zip(story.points, looks[-len(story.points) :], strict=True):
        texts = [f"{column.label('x', at)}: {column.shown(point.x[at])}" for at, column in enumerate(columns)]
        figure.add_scatter(
            x=np.arange(size), y=point.x, mode="markers", name=point.name, text=texts,
            marker={"symbol": symbol, "color": colour, "size": 7}, hovertemplate="%{text}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(dtick=whole_ticks(size), tick0=0)
    return figure


def whole_ticks(size: int) -> int:
    """Return the distance of ticks on an axis of ``size`` numbered entries: whole, and about six of them."""
    rough = max(1, size // 6)
    magnitude = int(f"1{'0' * (len(str(rough)) - 1)}")
    return next(step * magnitude for step in (1, 2, 5, 10) if step * magnitude >= rough)


def road_map(roads: RoadMap, *, before: bool) -> Any:
    """Draw the network as all maps are drawn: width by flow, colour by toll."""
    from pzos.networks.maps import CASING, PAPER, TOLLS, toll_colour

    figure = new_chart("", "", height=460)
    flow = roads.flow_before if before else roads.flow_after
    top = max(float(roads.flow_before.max(initial=0.0)), float(roads.flow_after.max(initial=0.0)), 1e-300)
    toll = np.zeros_like(roads.toll) if before else roads.toll
    highest = max(float(np.abs(roads.toll).max(initial=0.0)), 1e-300)
    widths = np.ceil(_WIDTHS * flow / top).clip(1, _WIDTHS).astype(int)
    colours = np.array([toll_colour(each, highest) for each in toll.tolist()])

    def draw(chosen: npt.NDArray[np.bool_], colour: str, width: float) -> None:
        xs, ys = (_segments(roads.start[chosen, k], roads.end[chosen, k]) for k in (0, 1))
        line = {"color": colour, "width": width}
        figure.add_scatter(x=xs, y=ys, mode="lines", line=line, hoverinfo="skip", showlegend=False)

    for width in np.unique(widths).tolist():  # what lies around a road is drawn before all roads
        draw(widths == width, CASING, width + _CASING)
    for width, colour in sorted(set(zip(widths.tolist(), colours.tolist(), strict=True))):
        draw((widths == width) & (colours == colour), colour, width)
    middle, scale = (roads.start + roads.end) / 2.0, [[k / (len(TOLLS) - 1), each] for k, each in enumerate(TOLLS)]
    figure.add_scatter(
        x=middle[:, 0], y=middle[:, 1], mode="markers", showlegend=False,
        marker={"size": 9, "color": np.abs(toll), "cmin": 0.0, "cmax": highest, "colorscale": scale,
                "opacity": 0.0, "showscale": not before, "colorbar": {"title": {"text": "toll"}, "thickness": 12}},
        customdata=np.stack([flow, toll], axis=1),
        hovertemplate="flow %{customdata[0]:.5g}<br>toll %{customdata[1]:.5g}<extra></extra>",
    )  # fmt: skip
    figure.update_layout(plot_bgcolor=PAPER)
    figure.update_layout(margin_b=8)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, scaleanchor="x")
    return figure


def _segments(start: Vector, end: Vector) -> Vector:
    gaps = np.full(start.size, np.nan)
    return np.stack([start, end, gaps], axis=1).ravel()


def _line(
    figure: Any, x: Vector, y: Vector, name: str, line: dict[str, Any], opacity: float = 1.0, legend: bool = True,
    told: Vector | None = None,
) -> None:  # fmt: skip
    """Add a curve; ``told`` are the numbers it shows on hover. One of few points has a mark at each."""
    figure.add_scatter(
        x=x, y=y, mode="lines+markers" if x.size <= _MARKED else "lines", name=name, line=line, opacity=opacity,
        showlegend=legend, customdata=y if told is None else told,
        hovertemplate="%{x:.6g}: %{customdata:.8g}<extra></extra>",
    )  # fmt: skip


def new_chart(x: str, y: str, *, log_axis: bool = False, height: int = 380) -> Any:
    """Return an empty chart in house style."""
    axis = {"showgrid": True, "automargin": True}
    layout = {
        "template": {},  # plotly would copy a whole one into every figure; :func:`charts` puts the text of one there
        "height": height, "margin": {"l": 8, "r": 12, "t": 16, "b": 80},
        "font": {"family": "system-ui, sans-serif", "size": 14}, "hovermode": "closest",
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "yref": "container", "y": 0.0, "yanchor": "bottom", "x": 0.0},
        "xaxis": {**axis, "title": {"text": x}, "zeroline": False},
        "yaxis": {**axis, "title": {"text": y}, "type": "log" if log_axis else "linear", "exponentformat": "power"},
    }  # fmt: skip
    return plotly().graph_objects.Figure(layout=layout)


def _against(axes: dict[str, list[Vector]]) -> dict[str, Any]:
    """Return buttons that draw all curves against queries or seconds."""
    buttons = [
        {"label": name, "method": "update", "args": [{"x": axes[name]}, {"xaxis.title.text": _AGAINST[name]}]}
        for name in _AGAINST
    ]
    return {"type": "buttons", "direction": "right", "x": 0.0, "xanchor": "left", "y": 1.02, "yanchor": "bottom",
            "buttons": buttons, "pad": {"b": 4}, "font": {"size": 12}, "showactive": False}  # fmt: skip
