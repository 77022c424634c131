"""
PZOS against ZOS on one game
============================

A defender protects 200 targets against an attacker who can only be queried (Sec. 5.2 of the paper). Both methods get
the same queries and the same random directions; only one of them uses what the leader knows about their own cost.

PZOS is ahead early, as the paper says. Its noise does not die out at the optimum while that of ZOS does, so that late,
as at the end of this run, ZOS catches up: see the next example for the cure.
"""

import matplotlib.pyplot as plt
import numpy as np

import pzos
from pzos.games import SecurityGame

game = SecurityGame.random(seed=1, targets=200)
problem = game.problem()
step = pzos.Diminishing(0.03)

figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
# ZOS does not learn F at its iterates: a third of its queries only watch it, and are left out of the picture.
for solver, queries, colour in (
    (pzos.ZOS(step, radius=0.1), 1350, "black"),
    (pzos.PZOS(step, radius=0.1), 900, "#0072B2"),
):
    result = pzos.solve(problem, solver, queries=queries, seed=0)
    name = type(solver).__name__
    print(f"{name:<5} F = {result.best_value:.4f} after {result.queries} queries")
    axes.plot(result.trace["queries"], result.trace["value"], color=colour, label=name)
axes.set(xlabel="queries to the attacker", ylabel="defender's cost F(x)", title=problem.name)
axes.legend(frameon=False)

# %%
# The game itself: what the attacker spends on each target, before anything is defended and against the defence found.

# sphinx_gallery_thumbnail_number = 2
undefended, against = game.response(np.zeros(200)), game.response(result.best_x)
order = np.argsort(-undefended)
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axes.bar(np.arange(200), undefended[order], 1.0, color="0.8", label="attack, nothing defended")
axes.bar(np.arange(200), against[order], 1.0, color="#D55E00", alpha=0.7, label="attack on the defence")
axes.step(np.arange(200), -result.best_x[order], color="#0072B2", where="mid", label="defence (downwards)")
axes.set(xlabel="targets, the most attacked first", ylabel="effort")
axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=9)
plt.show()
