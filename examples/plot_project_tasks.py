"""
A project's tasks in SimOpt
===========================

Thirteen tasks with random durations, some waiting for others. Money shortens the mean of each; the project ends with
the last task. The durations are drawn by `SimOpt <https://github.com/simopt-admin/simopt>`_
(``pip install "pzos[suite-simopt]"``) with its own streams, the same ones for every decision: common random numbers.
"""

import matplotlib.pyplot as plt
import numpy as np
import simopt.models.san as san
from mrg32k3a.mrg32k3a import MRG32k3a

import pzos

# %%
# The follower answers with the mean time at which each of the nine milestones is reached, over thirty replications.


def project(means, draw=0):
    """Simulate the project thirty times."""
    model = san.SAN({"arc_means": tuple(means)})
    reached = []
    for replication in range(30):
        model.before_replicate([MRG32k3a(s_ss_sss_index=[draw, k, replication]) for k in range(model.n_rngs)])
        reached.append(model.replicate()[0]["longest_path_to_all_nodes"])
    return np.mean(reached, axis=0)


# %%
# The leader pays 1/mean for each task and one for each day until the end, which is the ninth milestone.

leader = pzos.leader_from_functions(
    lambda x, y: float((1.0 / x).sum() + y[8]), lambda x, y: -1.0 / x**2, lambda x, y: np.eye(9)[8]
)
start = np.full(13, 8.0)
problem = pzos.Problem(leader, project, start, pzos.Box(0.05, 20.0), name="tasks")
result = pzos.solve(problem, queries=40, seed=0, progress=False, certificate=False)
heuristic = min((np.full(13, mean) for mean in (0.25, 0.5, 1.0, 2.0)), key=lambda x: leader.value(x, project(x)))
for name, x in (("as it is", start), ("all alike, best of four", heuristic), ("pzos, 40 queries", result.best_x)):
    unseen = [leader.value(x, project(x, draw)) for draw in range(1, 9)]
    print(f"{name:<24} cost {np.mean(unseen):>6.2f} on draws that no method had seen")

# %%
# Tasks on the longest way are shortened most.

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.bar(np.arange(1, 14), result.best_x, color="#0072b2")
axes.set(xlabel="task", ylabel="mean days after", xticks=np.arange(1, 14))
plt.show()
