"""
Any variational inequality
==========================

Followers of your own: give ``G(x, y)`` and a set, and get a follower that solves the inequality to a stated
residual. Here 6 users share a resource of total 1 (a simplex); the leader charges prices x and wants an even split.
"""

import matplotlib.pyplot as plt
import numpy as np

import pzos
from pzos.games import VariationalInequality

value = np.array([3.0, 2.7, 2.5, 2.3, 2.1, 1.9])
game = VariationalInequality(
    lambda x, y: x - value / (1.0 + y),  # each user's marginal loss: price minus decreasing benefit
    pzos.Simplex(1.0),
    dimension=6,
    jacobian=lambda x, y: np.diag(value / (1.0 + y) ** 2),
)
leader = pzos.leader_from_functions(
    lambda x, y: float(((y - 1 / 6) ** 2).sum() + 1e-3 * x @ x),
    lambda x, y: 2e-3 * x,
    lambda x, y: 2 * (y - 1 / 6),
)
problem = game.problem(leader, np.zeros(6), domain=pzos.Nonnegative(), name="an even split")
result = pzos.solve(problem, pzos.SecantPZOS(radius=0.05), queries=300)
print(result)

before, after = game.response(np.zeros(6)), game.response(result.best_x)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
places = np.arange(6)
left.bar(places - 0.2, before, 0.4, color="0.7", label="without prices")
left.bar(places + 0.2, after, 0.4, color="#0072B2", label="with prices")
left.axhline(1 / 6, color="black", linestyle=":", linewidth=1)
left.set(xlabel="user", ylabel="share y*(x)")
left.legend(frameon=False)
right.semilogy(result.trace["queries"], result.trace["value"], color="#0072B2")
right.set(xlabel="queries", ylabel="F(x)")
plt.show()
