"""
Tolls in a routing game
=======================

The paper's routing game (Sec. 5.1): classes of drivers with different values of time on a small network. The leader
maximises revenue less a penalty on high tolls; revenue is known exactly, the drivers are only asked.
"""

import matplotlib.pyplot as plt
import numpy as np

import pzos
from pzos.games import RoutingGame

game = RoutingGame.random(seed=0)
problem = game.problem(regularisation=1.0)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
step = 0.7 / game.edges
# ZOS does not learn F at its iterates: a third of its queries only watch it, and are left out of the picture.
for solver, queries, colour in ((pzos.ZOS(step, 0.5), 450, "black"), (pzos.PZOS(step, 0.5), 300, "#0072B2")):
    result = pzos.solve(problem, solver, queries=queries, seed=0)
    left.plot(result.trace["queries"], result.trace["value"], color=colour, label=type(solver).__name__)
title = f"{game.edges} edges, {game.classes} classes"
left.set(xlabel="queries to the drivers", ylabel="revenue less penalty", title=title)
left.legend(frameon=False)

free, tolled = game.response(np.zeros(game.edges)), game.response(result.best_x)
right.axhline(0, color="0.8")
dots = right.scatter(free, tolled - free, c=result.best_x, cmap="cividis", s=26)
figure.colorbar(dots, ax=right, label="toll")
right.set(xlabel="flow on the edge without tolls", ylabel="change with tolls", title="where the drivers went")

# %%
# The network: wide where many drive, and coloured by the toll.

# sphinx_gallery_thumbnail_number = 2
angles = 2 * np.pi * np.arange(game.vertices) / game.vertices
places = np.stack([np.cos(angles), np.sin(angles)], axis=1)
colours = plt.get_cmap("cividis_r")(result.best_x.clip(0) / result.best_x.max())
figure, axes = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
for edge in range(game.edges):
    look = {"arrowstyle": "-|>", "color": colours[edge], "connectionstyle": "arc3,rad=0.15", "shrinkA": 8, "shrinkB": 8,
            "linewidth": 0.3 + 4.5 * tolled[edge] / tolled.max()}  # fmt: skip
    axes.annotate("", places[game.head[edge]], places[game.tail[edge]], arrowprops=look)
axes.plot(*places.T, "o", color="black", markersize=9)
axes.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", title="flow (width) and toll (dark: high)")
axes.axis("off")
plt.show()
