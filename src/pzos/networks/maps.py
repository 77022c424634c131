"""Maps of a city without tolls, with them, and the difference: link width by flow, colour by toll (extra ``plot``).

One style for all maps, that of a street map: light paper, roads with a darker casing. Colours are safe for colour-blind
readers: grey for links without a toll, one sequential scale for tolls (a diverging one where some are subsidies), blue
and orange where there is less and more traffic.
"""

from __future__ import annotations

from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.figures import BLUE, ORANGE, new_figure
from pzos.base.types import Matrix, Vector
from pzos.networks.assignment import Assignment
from pzos.networks.gap import sparse_graph
from pzos.networks.network import Network

PAPER, ROAD, CASING = "#f6f3ec", "#b4b0a6", "#6f6a5f"
"""The colours of the ground, of roads without a toll, and of what lies around a road."""
LESS, MORE = BLUE, ORANGE
"""The colours of links with less and with more traffic than before."""

_WIDEST = 6.0
TOLLS = ("#8fd744", "#35b779", "#21918c", "#31688e", "#443983", "#440154")
"""The scale of tolls, from low to high: the dark part of viridis, which is seen on light paper."""
_SUBSIDY = "#b35806"
_LANDMARKS = 60
#: Where places are made up no link is shorter or longer than so many typical ones: a single one would hide the city.
_SHORTEST, _LONGEST = 0.1, 4.0
_FREE = 1e-9
FAINT = 0.01
"""Tolls and changes below this share of the highest are drawn as none."""


def draw_map(before: Assignment, after: Assignment, path: str | Path | None = None, *, title: str = "") -> Any:
    """Draw both equilibria and the difference side by side and return the figure; with ``path`` also save it.

    ``before`` is the equilibrium without tolls unless its own tolls say otherwise; :func:`pzos.networks.write_map`
    makes a page with labels of the same.
    """
    figure, panels = new_figure(14.0, 5.4, purpose="drawing a map", ncols=3, sharex=True, sharey=True)
    from matplotlib.cm import ScalarMappable

    network = after.network
    places, toll, roads = layout(network), after.largest_toll, network.roads
    scale, norm = _colours(toll[roads])
    change = after.flow - before.flow
    widest = max(float(before.flow[roads].max()), float(after.flow[roads].max()), 1e-12)
    furthest = max(float(np.abs(change[roads]).max()), 1e-12)
    for axes, state, shown, name in (
        (panels[0], before, before.largest_toll, untolled_name(before)), (panels[1], after, toll, "with tolls"),
    ):  # fmt: skip
        _draw_links(axes, places, network, _WIDEST * state.flow / widest, shown, scale(norm(shown)))
        axes.set_title(f"{name}: total travel time {fsum((state.flow * state.time)[roads]):,.0f}", fontsize=10)
    _draw_difference(panels[2], places, network, change / furthest)
    panels[2].set_title(f"difference of flow, up to {furthest:,.4g}: blue less, orange more", fontsize=10)
    for axes in panels:
        axes.set_aspect("auto" if network.coordinates is None else "equal")
        axes.set_facecolor(PAPER)
        axes.grid(visible=False)
        axes.tick_params(bottom=False, left=False, labelbottom=False, labelleft=False)
        axes.spines[:].set_visible(False)
    _width_legend(figure, widest)
    label = "toll (subsidies below 0)" if toll.min() < -_FREE else "toll"
    if np.any(np.abs(toll) > _FREE):
        figure.colorbar(ScalarMappable(norm, scale), ax=panels[1], label=label, shrink=0.75)
    figure.suptitle(" ".join([title or network.name, *(f"({how})" for how in drawn_how(network))]), fontsize=11)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def untolled_name(before: Assignment) -> str:
    """Return what the first of two equilibria is: that without tolls, unless it has some."""
    return "before" if np.any(before.tolls) else "no tolls"


def drawn_how(network: Network) -> list[str]:
    """Return what to say where places are not those of the city."""
    by = "length" if _has_lengths(network) else "travel time"
    return [] if network.coordinates is not None else [f"no coordinates: laid out by {by}"]


def _has_lengths(network: Network) -> bool:
    return bool(np.median(network.length) > 0.0)


def toll_colour(toll: float, highest: float) -> str:
    """Return the colour of a road with this toll, on the scale up to the highest one."""
    if abs(toll) <= max(_FREE, FAINT * highest):
        return ROAD
    if toll < 0.0:
        return _SUBSIDY
    return TOLLS[min(int(len(TOLLS) * toll / highest), len(TOLLS) - 1)]


def _colours(toll: Vector) -> tuple[Any, Any]:
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    most = max(float(np.abs(toll).max()), 1e-9)
    if toll.min() < -_FREE:
        return LinearSegmentedColormap.from_list("toll", [_SUBSIDY, "#f7f7f7", TOLLS[-1]]), Normalize(-most, most)
    return LinearSegmentedColormap.from_list("toll", TOLLS), Normalize(0.0, most)


def _draw_links(axes: Any, places: Matrix, network: Network, width: Vector, toll: Vector, colour: Any) -> None:
    paid = np.abs(toll) > max(_FREE, FAINT * float(np.abs(toll).max()))
    # The highest tolls on top; free roads lowest.
    order = np.lexsort((np.abs(toll), paid))
    order = order[network.roads[order]]
    shown = np.where(paid[:, None], colour, _rgba(ROAD))
    _draw_roads(axes, beside_each_other(places, network)[order], np.maximum(width[order], 0.6), shown[order])


def _draw_difference(axes: Any, places: Matrix, network: Network, change: Vector) -> None:
    order = np.argsort(np.abs(change), kind="stable")
    order = order[network.roads[order]]
    sides = np.where(change[:, None] > 0, _rgba(MORE), _rgba(LESS))
    shown = np.where(np.abs(change)[:, None] > FAINT, sides, _rgba(ROAD))
    width = np.maximum(_WIDEST * np.abs(change), 0.6)
    _draw_roads(axes, beside_each_other(places, network)[order], width[order], shown[order])


def _rgba(colour: str) -> Any:
    from matplotlib.colors import to_rgba

    return np.array(to_rgba(colour))


def _draw_roads(axes: Any, segments: npt.NDArray[np.float64], width: Vector, colour: Any) -> None:
    """Draw roads as a street map does: a casing, and the road on it."""
    from matplotlib.collections import LineCollection

    lines = list(segments)
    axes.add_collection(LineCollection(lines, colors=CASING, linewidths=width + 0.7, capstyle="round", zorder=1))
    axes.add_collection(LineCollection(lines, colors=colour, linewidths=width, capstyle="round", zorder=2))
    axes.autoscale()


def _width_legend(figure: Any, widest: float) -> None:
    from matplotlib.lines import Line2D

    unit = 10.0 ** np.floor(np.log10(widest))
    top = unit * np.floor(widest / unit)
    flows = {flow: f"{flow:,.0f}" if flow >= 10 else f"{flow:.3g}" for flow in (top, top / 2, top / 10)}
    marks = [Line2D([], [], color=ROAD, linewidth=_WIDEST * flow / widest, label=name) for flow, name in flows.items()]
    figure.legend(handles=marks, title="flow", loc="outside lower center", ncols=3, frameon=False, fontsize=8,
                  title_fontsize=8)  # fmt: skip


def beside_each_other(places: Matrix, network: Network, right: float = 1.0) -> npt.NDArray[np.float64]:
    """Return the ends of every link, moved a little to its right, so that both directions can be seen.

    Where the second coordinate grows downwards ``right`` is -1.
    """
    start, end = places[network.tail], places[network.head]
    along = end - start
    length = np.sqrt((along**2).sum(axis=1, keepdims=True))
    typical = float(np.median(length[length > 0])) if np.any(length > 0) else 1.0
    aside = right * np.stack([along[:, 1], -along[:, 0]], axis=1) / np.maximum(length, 1e-300)
    moved: npt.NDArray[np.float64] = np.stack([start, end], axis=1) + 0.045 * typical * aside[:, None, :]
    return moved


def layout(network: Network) -> Matrix:
    """Return a place for every node: its coordinates, the middle of its neighbours, or a layout by the roads.

    Nodes without coordinates get their place from their neighbours, spreading from those that are known.
    """
    places = network.coordinates
    if places is None or not np.isfinite(places).any():
        return _by_roads(network)
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


def _by_roads(network: Network) -> Matrix:
    """Place nodes so that distances on paper resemble those on the roads: classical scaling from landmarks."""
    from scipy.sparse.csgraph import dijkstra

    given = network.length if _has_lengths(network) else network.latency.base
    typical = float(np.median(given[given > 0])) if np.any(given > 0) else 1.0
    far_apart = np.clip(given, _SHORTEST * typical, _LONGEST * typical)
    graph = sparse_graph(network.tail, network.head, far_apart, network.nodes)
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
