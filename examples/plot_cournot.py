"""
Cournot: a leader among firms
=============================

The classic MPEC. The leader chooses how much to sell in one market; five firms with capacities answer with their
Nash equilibrium. Each capacity that starts or stops to bind is a kink of the leader's profit.
"""

import matplotlib.pyplot as plt
import numpy as np

import pzos
from pzos.games import CournotGame

game = CournotGame.random(seed=4, firms=5, markets=1)
problem = game.problem()
result = pzos.solve(problem, pzos.PZOS(step=0.05, radius=0.05), steps=120)
print(game)
print(f"best profit {result.best_value:.5f} at x = {result.best_x[0]:.4f}, {result.queries} queries")

top = 1.6 * max(float(result.best_x[0]), 1.0)
grid = np.linspace(0, top, 400)
answers = game.response(grid[:, None])
profit = [game.profit(np.array([x]), y) for x, y in zip(grid, answers, strict=True)]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(grid, profit, color="#0072B2")
left.plot(result.best_x[0], result.best_value, "o", color="#D55E00")
left.set(xlabel="leader's quantity x", ylabel="leader's profit F(x)", title="found with queries alone")
for firm, colour in enumerate(("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")):
    right.plot(grid, answers[:, firm], color=colour, label=f"firm {firm + 1}")
right.set(xlabel="leader's quantity x", ylabel="quantity", title="the firms' answers have kinks")
right.legend(frameon=False)
plt.show()
