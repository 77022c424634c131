"""
A problem of the bilevel literature
===================================

Bard's first example of 1988: the leader has (x - 5)^2 + (2 y + 1)^2, the follower chooses y next to 1 + 0.75 x between
lines that depend on x. The best value in the literature is 17, at x = 1. Thirteen more with a unique answer are in the
suite (``pzos bench --suite real --families bilevel-scalar bilevel-several``).
"""

import matplotlib.pyplot as plt
import numpy as np

import pzos


def answer(x):
    """Return the follower's y, a line cut off at two others: continuous, with kinks."""
    return np.clip(1.0 + 0.75 * x, np.maximum(0.0, 2.0 * x - 8.0), np.minimum(3.0 * x - 3.0, 7.0 - x))


leader = pzos.leader_from_functions(
    lambda x, y: float((x[0] - 5.0) ** 2 + (2.0 * y[0] + 1.0) ** 2),
    lambda x, y: 2.0 * (x - 5.0),
    lambda x, y: 4.0 * (2.0 * y + 1.0),
)
problem = pzos.Problem(leader, answer, [4.0], pzos.Box(1.0, 5.0), name="Bard 1988")
result = pzos.solve(problem, queries=20, seed=0, progress=False, certificate=False)
print(f"F = {result.best_value:.6g} at x = {result.best_x[0]:.4g}; 17 in the literature")

# %%
# F has a local optimum at the other end, where the follower is cut off by another line.

grid = np.linspace(1.0, 5.0, 400)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(grid, answer(grid), color="#0072b2")
left.set(xlabel="x", ylabel="y, the follower's answer")
right.plot(grid, (grid - 5.0) ** 2 + (2.0 * answer(grid) + 1.0) ** 2, color="0.4")
right.plot(result.best_x, result.best_value, "o", color="#d55e00")
right.set(xlabel="x", ylabel="F, with what was found")
plt.show()
