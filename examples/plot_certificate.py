"""
How sure are we?
================

A certificate asks fresh random directions around a point and gives an upper confidence bound on the stationarity norm.
Along a run the bound falls; a small number certifies, a large one says nothing. In a ball this small both notions
agree.
"""

import matplotlib.pyplot as plt
import numpy as np

import pzos
from pzos.games import SecurityGame
from pzos.stationarity import certify

game = SecurityGame.random(seed=5, targets=15)
problem = game.problem()
study = pzos.Study(problem.known(), pzos.SecantPZOS(), queries=200)
points = {record.queries: record.x for record in pzos.iterate(study, pzos.Oracle(problem.follower))}

figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
chosen = [count for count in points if count <= 200][::14]
bounds = [certify(problem, points[count], delta=0.05, queries=201) for count in chosen]
partial, full = ([bound.bound(notion).upper for bound in bounds] for notion in ("partial", "full"))
axes.semilogy(chosen, partial, "o-", color="#56B4E9", linewidth=5, label="95 % bound, partial Goldstein")
axes.semilogy(chosen, full, "s--", color="#D55E00", label="95 % bound, Goldstein")
axes.set(xlabel="queries of the run", ylabel=r"norm certified, $\delta$ = 0.05", title=problem.name)
axes.legend(frameon=False)
print(bounds[-1])

# %%
# Where the certificate looks: a ball around the last point, here in the plane of the two targets defended most.

# sphinx_gallery_thumbnail_number = 2
last = points[chosen[-1]]
first, second = np.argsort(-last)[:2]
away = np.linspace(-0.25, 0.25, 61)
plane = np.tile(last, (61, 61, 1))
plane[..., first] += away[None, :]
plane[..., second] += away[:, None]
flat = plane.reshape(-1, 15)
costs = [problem.leader.value(x, y) for x, y in zip(flat, game.response(flat), strict=True)]
figure, axes = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
axes.contour(last[first] + away, last[second] + away, np.reshape(costs, (61, 61)), 30, colors="0.75", linewidths=0.8)
path = np.array([points[count] for count in chosen])
axes.plot(path[:, first], path[:, second], "o-", color="#0072B2", markersize=4, label="the run")
axes.add_patch(
    plt.Circle((last[first], last[second]), 0.05, color="#D55E00", alpha=0.4, label=r"ball of radius $\delta$")
)
axes.set(xlabel=f"defence of target {first}", ylabel=f"defence of target {second}", title="lines of equal cost",
         xlim=last[first] + away[[0, -1]], ylim=last[second] + away[[0, -1]], aspect="equal")  # fmt: skip
axes.legend(frameon=False)
plt.show()
