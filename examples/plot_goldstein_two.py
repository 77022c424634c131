"""
Partially stationary first (Example 2)
======================================

For ``F(x) = |x| - (x - 1)^2`` it is the other way round: at x = 0 the partial Goldstein subdifferential contains 0
from radius 1 on, the Goldstein subdifferential only from 3/2. Neither notion is stronger than the other.
"""

import matplotlib.pyplot as plt
import numpy as np

from pzos.stationarity import threshold
from pzos.stationarity.piecewise import partial_not_full

example = partial_not_full()
for notion in ("partial", "full"):
    first = threshold(example.leader, example.response, 0.0, notion=notion)
    print(f"{notion:<7}: contains 0 from delta = {first:.6f} on")

deltas = np.linspace(0.01, 2.2, 220)
intervals = example.intervals(deltas)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
grid = np.linspace(-1.5, 2.5, 401)
left.plot(grid, [example.objective(x) for x in grid], color="#0072B2")
left.plot(0, example.objective(0.0), "o", color="#D55E00")
left.set(xlabel="x", ylabel="F(x)", title=example.name)
right.fill_between(deltas, intervals[:, 0], intervals[:, 1], color="#56B4E9", alpha=0.5, label="Goldstein")
right.fill_between(deltas, intervals[:, 2], intervals[:, 3], color="#E69F00", alpha=0.6, label="partial Goldstein")
right.axhline(0, color="black", linewidth=1)
for delta in (1.0, 1.5):
    right.axvline(delta, color="black", linewidth=1, linestyle=":")
right.set(xlabel=r"radius $\delta$", ylabel="subdifferential at x = 0", title="0 enters at 1 and at 3/2")
right.legend(frameon=False, loc="lower left")
plt.show()
