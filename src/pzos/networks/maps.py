"""Maps of a city before and after tolls: link width by flow, colour by toll (extra ``plot``).

Colours are safe for colour-blind readers: grey for links without a toll, one sequential scale for tolls, and a
diverging one (orange to purple) where some tolls are subsidies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.figures import new_figure, wrapped
from pzos.base.types import Matrix, Vector
from pzos.networks.assignment import Assignment
from pzos.networks.gap import sparse_graph
from pzos.networks.network import Network

_GREY, _DARK = "0.72", "0.25"
_WIDEST = 7.0
_LANDMARKS = 60
_FREE = 1e-9
_FAINT = 0.01  # tolls below this share of the highest are drawn as none


def draw_map(before: Assignment, after: Assignment, path: str | Path | None = None, *, title: str = "") -> Any:
    """Draw both equilibria side by side and return the figure; with ``path`` also save it (PNG, PDF, SVG)."""
    figure, panels = new_figure(11.0, 5.6, purpose="drawing a map", ncols=2, sharex=True, sharey=True)
    from matplotlib.cm import ScalarMappable

    network = after.network
    places = layout(network)
    toll = after.largest_toll
    scale, norm = _colours(toll)
    widest = max(float(before.flow.max()), float(after.flow.max()), 1e-12)
    for axes, state, shown, name in ((panels[0], before, 0 * toll, "before"), (panels[1], after, toll, "after")):
        _draw_links(axes, places, network, _WIDEST * state.flow / widest, shown, scale(norm(shown)))
        axes.set_title(f"{name}: total travel time {state.total_travel_time:,.0f}", fontsize=10)
        axes.set_aspect("auto" if network.coordinates is None else "equal")
        axes.axis("off")
    _width_legend(figure, widest)
    label = "toll (subsidies below 0)" if toll.min() < -_FREE else "toll"
    if np.any(np.abs(toll) > _FREE):
        figure.colorbar(ScalarMappable(norm, scale), ax=panels, label=label, shrink=0.75)
    drawn = "" if network.coordinates is not None else " (no coordinates: laid out by travel time)"
    figure.suptitle(wrapped((title or network.name) + drawn, 100), fontsize=11)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _colours(toll: Vector) -> tuple[Any, Any]:
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    most = max(float(np.abs(toll).max()), 1e-9)
    if toll.min() < -_FREE:
        return colormaps["PuOr"], Normalize(-most, most)
    # The lightest tenth of the scale would be lost on white paper.
    part = colormaps["viridis_r"](np.linspace(0.1, 1.0, 128))
    return LinearSegmentedColormap.from_list("toll", part), Normalize(0.0, most)


def _draw_links(axes: Any, places: Matrix, network: Network, width: Vector, toll: Vector, colour: Any) -> None:
    from matplotlib.collections import LineCollection

    segments = beside_each_other(places, network)
    paid = np.abs(toll) > max(_FREE, _FAINT * float(np.abs(toll).max()))
    # A hairline below each link: streets without traffic stay visible.
    axes.add_collection(LineCollection(list(segments), colors="0.85", linewidths=0.5, zorder=1))
    axes.add_collection(LineCollection(list(segments[~paid]), colors=_GREY, linewidths=width[~paid], zorder=2))
    order = np.flatnonzero(paid)[np.argsort(np.abs(toll[paid]), kind="stable")]  # the highest tolls on top
    if order.size:
        wide = np.maximum(width[order], 0.8)
        lines = list(segments[order])
        axes.add_collection(LineCollection(lines, colors=_DARK, linewidths=wide + 0.7, zorder=3))
        axes.add_collection(LineCollection(lines, colors=colour[order], linewidths=wide, zorder=4))
    axes.autoscale()


def _width_legend(figure: Any, widest: float) -> None:
    from matplotlib.lines import Line2D

    unit = 10.0 ** np.floor(np.log10(widest))
    top = unit * np.floor(widest / unit)
    flows = {flow: f"{flow:,.0f}" if flow >= 10 else f"{flow:.3g}" for flow in (top, top / 2, top / 10)}
    marks = [Line2D([], [], color=_GREY, linewidth=_WIDEST * flow / widest, label=name) for flow, name in flows.items()]
    figure.legend(handles=marks, title="flow", loc="outside lower center", ncols=3, frameon=False, fontsize=8,
                  title_fontsize=8)  # fmt: skip


def beside_each_other(places: Matrix, network: Network) -> npt.NDArray[np.float64]:
    """Return the ends of every link, moved a little to its right, so that both directions can be seen."""
    start, end = places[network.tail], places[network.head]
    along = end - start
    length = np.sqrt((along**2).sum(axis=1, keepdims=True))
    typical = float(np.median(length[length > 0])) if np.any(length > 0) else 1.0
    right = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.maximum(length, 1e-300)
    moved: npt.NDArray[np.float64] = np.stack([start, end], axis=1) + 0.045 * typical * right[:, None, :]
    return moved


def layout(network: Network) -> Matrix:
    """Return a place for every node: its coordinates, the middle of its neighbours, or a layout by travel time.

    Nodes without coordinates get their place from their neighbours, spreading from those that are known.
    """
    places = network.coordinates
    if places is None or not np.isfinite(places).any():
        return _by_travel_time(network)
    known: npt.NDArray[np.bool_] = np.asarray(np.isfinite(places).all(axis=1))
    ends = np.concatenate([network.tail, network.head]), np.concatenate([network.head, network.tail])
    filled = np.where(known[:, None], places, 0.0)
    while not known.all():
        total, count = np.zeros_like(filled), np.zeros(network.nodes)
        use = known[ends[1]]
        np.add.at(total, ends[0][use], filled[ends[1][use]])
        np.add.at(count, ends[0][use], 1.0)
        reached = ~known & (count > 0)
        if not reached.any():  # pieces that hang on nothing known
            filled[~known] = filled[known].mean(axis=0)
            break
        filled[reached] = total[reached] / count[reached, None]
        known = known | reached
    return filled


def _by_travel_time(network: Network) -> Matrix:
    """Place nodes so that distances on paper resemble free-flow times: classical scaling from landmarks."""
    from scipy.sparse.csgraph import dijkstra

    positive = network.latency.base[network.latency.base > 0]
    least = 0.1 * float(np.median(positive)) if positive.size else 1.0
    time = np.maximum(network.latency.base, least)
    graph = sparse_graph(network.tail, network.head, time, network.nodes)
    marks = np.unique(np.linspace(0, network.nodes - 1, min(_LANDMARKS, network.nodes)).astype(int))
    far = np.atleast_2d(dijkstra(graph, directed=False, indices=marks))
    far = np.where(np.isfinite(far), far, 1.5 * far[np.isfinite(far)].max())
    squares = far**2
    centred = squares[:, marks] - squares[:, marks].mean(axis=0) - squares[:, marks].mean(axis=1)[:, None]
    values, vectors = np.linalg.eigh(-0.5 * (centred + squares[:, marks].mean()))
    top = vectors[:, ::-1][:, :2] / np.sqrt(np.maximum(values[::-1][:2], 1e-9 * max(abs(values[-1]), 1.0)))
    top *= np.where(top[np.argmax(np.abs(top), axis=0), np.arange(top.shape[1])] < 0, -1.0, 1.0)  # one sign for all
    if top.shape[1] < 2:
        top = np.hstack([top, np.zeros((top.shape[0], 2 - top.shape[1]))])
    places: Matrix = -0.5 * np.einsum("mn,md->nd", squares - squares[:, marks].mean(axis=1)[:, None], top)
    return places
