"""
A failing follower
==================

This follower crashes on every fifth query and returns NaN on every seventh. Failed queries are tried again; what still
fails is dropped with its direction, counted and kept, and never replaced by a penalty value.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np

import pzos

calls = itertools.count(1)


def shaky(x):
    call = next(calls)
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
plt.show()
