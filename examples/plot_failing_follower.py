"""
A failing follower
==================

This follower crashes on every fifth query and returns NaN on every seventh. Failed queries are tried again; what still
fails is dropped with its direction, counted and kept, and never replaced by a penalty value.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

import pzos

calls = itertools.count(1)
fates = []  # of each call: 0 it answered, 1 it crashed, 2 it said NaN


def shaky(x):
    call = next(calls)
    fates.append(1 if call % 5 == 0 else 2 if call % 7 == 0 else 0)
    if call % 5 == 0:
        raise RuntimeError("the simulator crashed")
    return np.full_like(x, np.nan) if call % 7 == 0 else np.abs(x)


leader = pzos.leader_from_functions(
    lambda x, y: float(((x - 1) ** 2).sum() + y.sum()), lambda x, y: 2 * (x - 1), lambda x, y: np.ones_like(y)
)
problem = pzos.Problem(leader, shaky, np.zeros(8))
solver = pzos.PZOS(pzos.Diminishing(0.1), radius=0.05)

figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
clean = pzos.solve(pzos.Problem(leader, np.abs, np.zeros(8)), solver, steps=120)
axes.plot(clean.trace["queries"], clean.trace["value"], color="0.75", linewidth=6, label="a follower that never fails")
for attempts, colour in ((3, "#0072B2"), (1, "#D55E00")):
    tolerance = pzos.Tolerance(attempts=attempts, wait=0.0, policy="drop")
    oracle = pzos.TolerantOracle(shaky, tolerance)
    result = pzos.drive(pzos.Study(problem.known(), solver, steps=120), oracle, progress=False)
    print(f"attempts: {attempts}: F = {result.best_value:.4f}, {dict(oracle.counts)}")
    known = np.isfinite(result.trace["value"])
    axes.plot(result.trace["queries"][known], result.trace["value"][known], color=colour, label=f"attempts: {attempts}")
axes.set(xlabel="queries", ylabel="F(x)", title="with three attempts the trajectory is the same, bit for bit")
axes.legend(frameon=False)

# %%
# What the follower did, call by call.

# sphinx_gallery_thumbnail_number = 2
shown = np.array(fates[:240]).reshape(12, 20)
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axes.pcolormesh(shown, cmap=ListedColormap(["#d9ead3", "#D55E00", "#000000"]), edgecolors="white", linewidth=1.5)
axes.set(
    xlabel="call",
    ylabel="rows of twenty",
    title="the first 240 calls",
    aspect="equal",
    ylim=(12, 0),
    xticks=range(0, 21, 5),
)
axes.legend(handles=[Patch(color=colour, label=name) for colour, name in
                     (("#d9ead3", "answered"), ("#D55E00", "crashed"), ("#000000", "NaN"))],
            loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False)  # fmt: skip
plt.show()
