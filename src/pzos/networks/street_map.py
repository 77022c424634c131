"""A street map to look around in: one page without other files, with labels on hover, before, after and difference.

The colours are those of :func:`pzos.networks.draw_map`. Nothing is needed to make it, and a browser to see it.
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from pzos.base.types import Vector
from pzos.networks.assignment import Assignment
from pzos.networks.maps import (
    CASING,
    FAINT,
    LESS,
    MORE,
    PAPER,
    ROAD,
    beside_each_other,
    drawn_how,
    layout,
    toll_colour,
    untolled_name,
)
from pzos.networks.tariffs import link_names

_WIDTH = 1000.0  # of the drawing; the browser makes it fit
_WIDEST, _THINNEST = 0.15, 0.02  # of a typical link, which counts as this share of the drawing where it is shorter
_TYPICAL = 0.05
_HINT = "wheel: nearer or further; drag: move; double click: the whole map"


def write_map(before: Assignment, after: Assignment, path: str | Path, *, title: str = "") -> None:
    """Write the page; ``before`` is the equilibrium without tolls unless its own tolls say otherwise."""
    network, roads = after.network, np.flatnonzero(after.network.roads)
    places = layout(network) * [1.0, -1.0]  # north is up
    low, high = places.min(axis=0), places.max(axis=0)
    scale = _WIDTH / max(float((high - low).max()), 1e-300)
    places = (places - low) * scale
    lines = beside_each_other(places, network, right=-1.0)[roads].reshape(-1, 4)
    spans = np.hypot(lines[:, 2] - lines[:, 0], lines[:, 3] - lines[:, 1])
    typical = float(np.median(spans[spans > 0])) if np.any(spans > 0) else _WIDTH
    wide = max(typical, _TYPICAL * _WIDTH)
    flows = np.stack([before.flow[roads], after.flow[roads]])
    change, toll = flows[1] - flows[0], after.largest_toll[roads]
    most, furthest = max(float(flows.max()), 1e-300), max(float(np.abs(change).max()), 1e-300)
    highest = float(np.abs(toll).max(initial=0.0))
    names, times = link_names(network), (before.time[roads], after.time[roads])
    links = [
        {
            "name": names[link], "line": lines[i].round(2).tolist(), "before": flows[0, i], "after": flows[1, i],
            "toll": toll[i], "times": [times[0][i], times[1][i]],
            "widths": _widths(flows[:, i] / most, abs(change[i]) / furthest, wide),
            "colours": {"before": ROAD, "after": toll_colour(float(toll[i]), highest),
                        "difference": _change_colour(float(change[i] / furthest))},
        }
        for i, link in enumerate(roads.tolist())
    ]  # fmt: skip
    used = np.unique(np.concatenate([network.tail[roads], network.head[roads]]))
    nodes = [
        {"name": int(network.node_ids[node]), "place": places[node].round(2).tolist(), "zone": node < network.zones}
        for node in used.tolist()
    ]
    data = {"links": links, "nodes": nodes, "dot": round(0.06 * typical, 3), "highest": highest, "change": furthest}
    margin, box = 0.5 * typical, (high - low) * scale
    page = Template(files("pzos.networks").joinpath("map.html").read_text(encoding="utf-8")).substitute(
        title=escape(title or network.name), hint="; ".join([*drawn_how(network), _HINT]),
        before=escape(untolled_name(before)), paper=PAPER, casing=CASING,
        box=f"{-margin:.1f} {-margin:.1f} {box[0] + 2 * margin:.1f} {box[1] + 2 * margin:.1f}", data=_as_script(data),
    )  # fmt: skip
    Path(path).write_text(page, encoding="utf-8")


def _widths(flow: Vector, change: float, typical: float) -> dict[str, float]:
    shares = {"before": float(flow[0]), "after": float(flow[1]), "difference": change}
    return {view: round(typical * (_THINNEST + _WIDEST * share), 3) for view, share in shares.items()}


def _change_colour(change: float) -> str:
    return ROAD if abs(change) < FAINT else MORE if change > 0 else LESS


def _as_script(data: dict[str, Any]) -> str:
    """Return JSON that may stand in a page: no name can end the script."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
