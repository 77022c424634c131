"""
Declared structure: a few queries instead of hundreds
=====================================================

Two plain facts about the attacker: what is spent on a target depends first of all on its own defence (*own effect*),
and the attacker always spends the whole budget (*conserved*). Declared, they are used as priors, never as constraints:
a wrong declaration costs queries, but does not break the run. The default method also looks for such
structure by itself, so that here the declarations save a query or two; where answers are noisy or few, they save more.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import SymLogNorm
from scipy.optimize import minimize

import pzos
from pzos.games import SecurityGame
from pzos.games.derivatives import security_gradient, security_jacobian
from pzos.problem.structure import conserved, own_effect

game = SecurityGame.random(seed=3, targets=50)
problem = game.problem()
declared = game.problem(structure=[own_effect(), conserved()])
bounds = [(0, None)] * 50
best = minimize(lambda x: security_gradient(game, x), problem.x0, jac=True, bounds=bounds, method="L-BFGS-B").fun
start = security_gradient(game, problem.x0)[0]

runs = {
    "ZOS": (problem, pzos.ZOS(pzos.Diminishing(0.05), radius=0.1)),
    "PZOS": (problem, pzos.PZOS(pzos.Diminishing(0.05), radius=0.1)),
    "PZOS with memory": (problem, pzos.MemoryPZOS()),
    "default": (problem, None),
    "default, structure declared": (declared, None),
}
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
colours = ("0.55", "black", "#009E73", "#0072B2", "#D55E00")
for ((name, (given, solver)), colour), dash in zip(
    zip(runs.items(), colours, strict=True), (":", "-", "--", "-", "-"), strict=True
):
    result = pzos.solve(given, solver, queries=150, seed=0)
    values = np.fmin.accumulate(result.trace["value"])
    gap = np.maximum((values - best) / (start - best), 1e-7)
    below = np.flatnonzero(gap < 0.01)
    reached = f"after {result.trace['queries'][below[0]]:.0f} queries" if below.size else "not in 150 queries"
    print(f"{name:<28} gap below 1 %: {reached}")
    axes.semilogy(result.trace["queries"], gap, dash, color=colour, linewidth=1.8, label=name)
axes.set(xlabel="queries to the attacker", ylabel="gap to the optimum", ylim=(1e-6, 1.5))
axes.set_title("security game, 50 targets, the same budget for all")
axes.legend(frameon=False, loc="center right", fontsize=9)

# %%
# What was declared, as the attacker's model has it: each column is what one more unit of defence of a target does to
# the attack on all of them. It falls there (own effect), and what is saved goes elsewhere (conserved).

# sphinx_gallery_thumbnail_number = 2
jacobian = np.array([security_jacobian(game, result.best_x).transpose_times(row) for row in np.eye(50)])
own = jacobian.diagonal()
print(
    f"own effects from {own.min():.2f} to {own.max():.2f}; columns add up to {np.abs(jacobian.sum(axis=0)).max():.0e}"
)
figure, axes = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
size = np.abs(jacobian).max()
shown = axes.imshow(jacobian, cmap="RdBu", norm=SymLogNorm(1e-3 * size, vmin=-size, vmax=size))
figure.colorbar(shown, ax=axes, label="change of the attack")
axes.set(xlabel="target defended", ylabel="target attacked", title="how the attacker reacts")
plt.show()
