"""
How sure are we?
================

A certificate asks fresh random directions around a point and gives an upper confidence bound on the stationarity norm.
Along a run the bound falls; a small number certifies, a large one says nothing. In a ball this small both notions
agree.
"""

import matplotlib.pyplot as plt

import pzos
from pzos.games import SecurityGame
from pzos.stationarity import certify

problem = SecurityGame.random(seed=5, targets=15).problem()
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
plt.show()
