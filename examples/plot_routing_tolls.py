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
for solver, colour in ((pzos.ZOS(0.7 / game.edges, 0.5), "black"), (pzos.PZOS(0.7 / game.edges, 0.5), "#0072B2")):
    result = pzos.solve(problem, solver, queries=300, seed=0)
    left.plot(result.trace["queries"], result.trace["value"], color=colour, label=type(solver).__name__)
title = f"{game.edges} edges, {game.classes} classes"
left.set(xlabel="queries to the drivers", ylabel="revenue less penalty", title=title)
left.legend(frameon=False)

free, tolled = game.response(np.zeros(game.edges)), game.response(result.best_x)
right.axhline(0, color="0.8")
dots = right.scatter(free, tolled - free, c=result.best_x, cmap="cividis", s=26)
figure.colorbar(dots, ax=right, label="toll")
right.set(xlabel="flow on the edge without tolls", ylabel="change with tolls", title="where the drivers went")
plt.show()
