"""
Stationary by one notion only (Example 1)
=========================================

The appendix of the paper looks at ``F(x) = (x - 1)^2 + |x|`` in the point 0. The Goldstein subdifferential lets the
leader's gradient vary over the ball and contains 0 as soon as the radius reaches 1/2; the *partial* one keeps it at
the centre, and never does. Both are computed exactly, and again from queries alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from pzos.stationarity import certify_hull
from pzos.stationarity.piecewise import full_not_partial

example = full_not_partial()
deltas = np.linspace(0.01, 1.5, 150)
intervals = example.intervals(deltas)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
grid = np.linspace(-1, 2, 301)
left.plot(grid, [example.objective(x) for x in grid], color="#0072B2")
left.plot(0, example.objective(0.0), "o", color="#D55E00")
left.set(xlabel="x", ylabel="F(x)", title=example.name)
right.fill_between(deltas, intervals[:, 0], intervals[:, 1], color="#56B4E9", alpha=0.5, label="Goldstein")
right.fill_between(deltas, intervals[:, 2], intervals[:, 3], color="#E69F00", alpha=0.6, label="partial Goldstein")
right.axhline(0, color="black", linewidth=1)
right.axvline(0.5, color="black", linewidth=1, linestyle=":")
right.set(xlabel=r"radius $\delta$", ylabel="subdifferential at x = 0", title="contains 0 where x = 0 is stationary")
right.legend(frameon=False, loc="upper left")

# %%
# The same question asked with queries only: the smallest element of the hull of sampled gradients.
for delta in (0.25, 1.0):
    report = certify_hull(example.problem(), delta=delta)
    print(f"delta = {delta}: smallest norm {report.full.norm:.3f} (Goldstein), {report.partial.norm:.3f} (partial)")

plt.show()
