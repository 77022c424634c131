"""Pictures of a front: as a figure (extra ``plot``), and as a page with the decision of each point on hover."""

from __future__ import annotations

from html import escape
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pzos.base.figures import BLUE, COLOURS, ORANGE, new_figure
from pzos.base.frames import spare_study
from pzos.problem.problem import NAMELESS
from pzos.report.charts import new_chart

if TYPE_CHECKING:
    from pzos.study.front import Front

#: Of more decisions the page shows the first ones.
_SHOWN = 12


def plot_front(front: Front, path: str | Path | None = None) -> Any:
    """Draw the costs of the front against each other, one panel for each pair, with the knees marked."""
    pairs = list(combinations(range(len(front.names)), 2))
    figure, axes = new_figure(max(6.4, 4.2 * len(pairs)), 4.2, ncols=len(pairs), squeeze=False)
    for panel, (i, j) in zip(axes[0], pairs, strict=True):
        line = "-" if len(pairs) == 1 else ""
        panel.plot(front.points[:, i], front.points[:, j], "o", linestyle=line, color=BLUE, markersize=4, linewidth=0.8)
        chosen = front.points[front.knees]
        panel.plot(chosen[:, i], chosen[:, j], "D", color=ORANGE, markersize=9, linestyle="", label="knee")
        panel.set(xlabel=_axis(front, i), ylabel=_axis(front, j))
    if front.knees.size:
        axes[0][0].legend(frameon=False)
    figure.suptitle(f"{len(front)} points from {front.result.queries} queries", fontsize=10)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def write_page(front: Front, path: str | Path) -> Path:
    """Write the front as one page that opens without a network."""
    place = spare_study(path)
    figure = chart(front)
    title = escape(f"front of {' and '.join(front.names)}")
    text: str = figure.to_html(include_plotlyjs=True, full_html=True, default_height="90vh")
    place.write_text(text.replace("<head>", f"<head><title>{title}</title>", 1), encoding="utf-8")
    return place


def chart(front: Front) -> Any:
    """Return the front as a chart of plotly, in space for three costs."""
    figure = new_chart(_axis(front, 0), _axis(front, 1), height=520)
    chosen = set(front.knees.tolist())
    groups = (
        ("front", [row for row in range(len(front)) if row not in chosen], COLOURS[0], "circle", 8),
        ("knee", sorted(chosen), COLOURS[1], "diamond", 13),
    )
    for name, rows, colour, symbol, size in groups:
        if not rows:
            continue
        costs = front.points[rows]
        looks = {"color": colour, "symbol": symbol, "size": size if len(front.names) == 2 else size // 2}
        words = {"name": name, "mode": "markers", "marker": looks, "text": [_hover(front, row) for row in rows],
                 "hovertemplate": "%{text}<extra></extra>"}  # fmt: skip
        if len(front.names) == 2:
            figure.add_scatter(x=costs[:, 0], y=costs[:, 1], **words)
        else:
            figure.add_scatter3d(x=costs[:, 0], y=costs[:, 1], z=costs[:, 2], **words)
    if len(front.names) == 3:
        axes = {f"{letter}axis": {"title": {"text": _axis(front, k)}} for k, letter in enumerate("xyz")}
        figure.update_layout(scene=axes, xaxis={"visible": False}, yaxis={"visible": False})
    return figure


def _axis(front: Front, k: int) -> str:
    return f"{front.names[k]} ({'lower' if front.senses[k] == 'min' else 'higher'} is better)"


def _hover(front: Front, row: int) -> str:
    costs = [f"{escape(name)} {cost:.6g}" for name, cost in zip(front.names, front.points[row], strict=True)]
    entries = front.decisions[row][:_SHOWN]
    named = NAMELESS if front.result.known is None else front.result.known.decisions
    decision = [
        f"{escape(column.label('x', k))} = {column.shown(entry)}"
        for k, (column, entry) in enumerate(zip(named.of(entries.size), entries, strict=True))
    ]
    more = front.decisions.shape[1] - len(decision)
    return "<br>".join([*costs, "", *decision, *([f"and {more} more"] if more else [])])
