"""
Ask and tell by hand
====================

A study never sees the follower: it hands out questions and takes answers, from a laboratory, a cluster or a person,
in any order. Here the answers come back shuffled; the run has the same bits as one driven by ``solve``.
"""

import random

import matplotlib.pyplot as plt
import numpy as np

import pzos


def laboratory(x):
    return np.tanh(2 * x) + 0.1 * np.abs(x)


leader = pzos.leader_from_functions(
    lambda x, y: float((y - 0.5) @ (y - 0.5) + 0.1 * x @ x), lambda x, y: 0.2 * x, lambda x, y: 2 * (y - 0.5)
)
problem = pzos.Problem(leader, laboratory, np.array([-1.0, 1.5]))
solver = pzos.PZOS(step=0.1, radius=0.1, batch=3)

study = pzos.Study(problem.known(), solver, seed=0, steps=40)
asked, shuffle = [], random.Random(0)
while not study.done:
    queries = study.ask()
    shuffle.shuffle(queries)
    for query in queries:
        asked.append(query.x)
        study.tell(query, laboratory(query.x))
by_hand = study.result()
driven = pzos.solve(problem, solver, seed=0, steps=40)
print("the same bits as solve:", np.array_equal(by_hand.x, driven.x))

points = np.array(asked)
grid = np.linspace(-1.3, 1.8, 120)
surface = [[leader.value(np.array([a, b]), laboratory(np.array([a, b]))) for a in grid] for b in grid]
figure, axes = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
axes.contour(grid, grid, surface, 25, colors="0.8", linewidths=0.8)
axes.scatter(points[:, 0], points[:, 1], s=8, c=np.arange(len(points)), cmap="cividis")
axes.plot(*by_hand.x, "*", color="#D55E00", markersize=14)
axes.set(xlabel="x[0]", ylabel="x[1]", title=f"{len(points)} questions, early ones dark")
plt.show()
