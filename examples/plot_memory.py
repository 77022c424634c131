"""
Memory against no memory
========================

PZOS throws every answer away after one step, and pays for it with noise that does not die out at the optimum.
``MemoryPZOS`` keeps a running estimate of how the followers react and only estimates what that does not explain: still
unbiased, with the noise going to zero. ``SecantPZOS`` trusts the memory altogether: bolder, and biased.
"""

import matplotlib.pyplot as plt
import numpy as np

import pzos
from pzos.games import SecurityGame
from pzos.games.derivatives import security_gradient

game = SecurityGame.random(seed=2, targets=40)
problem = game.problem()

# The best value anyone could reach, from the model of the attacker that no solver may look into.
from scipy.optimize import minimize

white_box = minimize(
    lambda x: security_gradient(game, x), problem.x0, jac=True, bounds=[(0, None)] * 40, method="L-BFGS-B"
)
start, best = security_gradient(game, problem.x0)[0], white_box.fun

solvers = {
    "PZOS, step 0.05/sqrt(t)": pzos.PZOS(pzos.Diminishing(0.05), radius=0.1),
    "MemoryPZOS (unbiased)": pzos.MemoryPZOS(),
    "SecantPZOS (biased)": pzos.SecantPZOS(),
}
found = {}
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, solver), colour in zip(solvers.items(), ("black", "#0072B2", "#D55E00"), strict=True):
    result = pzos.solve(problem, solver, queries=600, seed=0)
    values = np.minimum.accumulate(result.trace["value"])
    gap = np.maximum((values - best) / (start - best), 1e-9)
    print(f"{name:<24} gap {gap[-1]:.1e}")
    axes.semilogy(result.trace["queries"], gap, color=colour, label=name)
    found[name] = result.best_x
axes.set(xlabel="queries", ylabel="gap to the white-box optimum", title=problem.name)
axes.legend(frameon=False)

# %%
# The defence itself, target by target, against that of the white box.

# sphinx_gallery_thumbnail_number = 2
figure, axes = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
for (name, defence), (colour, mark) in zip(
    found.items(), (("black", "."), ("#0072B2", "o"), ("#D55E00", "x")), strict=True
):
    axes.plot(white_box.x, defence, mark, color=colour, fillstyle="none", label=name)
axes.axline((0, 0), slope=1, color="0.8", zorder=0)
axes.set(xlabel="defence of a target by the white box", ylabel="by queries alone", title="40 targets, 600 queries")
axes.legend(frameon=False)
plt.show()
