"""
A noisy follower
================

Answers from a simulator or from the street are noisy. A *seeded* follower is handed its own random numbers per query,
so that runs repeat; with ``common=True`` the queries of one step share them, and the noise cancels in differences. A
radius on which the response changes by more than its noise does the rest.
"""

import matplotlib.pyplot as plt
import numpy as np

import pzos

rng = np.random.default_rng(0)
mixing = rng.uniform(0.2, 1.0, (12, 12)) / 12
goal = rng.uniform(0.5, 1.5, 12)


def reaction(x):
    return np.maximum(mixing @ x - 0.2, 0.0)


def noisy(x, generator):
    return reaction(x) + 0.02 * generator.standard_normal(12)


leader = pzos.leader_from_functions(
    lambda x, y: float((x - goal) @ (x - goal) + y @ y), lambda x, y: 2 * (x - goal), lambda x, y: 2 * y
)
runs = {
    "radius 0.02": (pzos.seeded(noisy), 0.02),
    "radius 0.5": (pzos.seeded(noisy), 0.5),
    "radius 0.02, common random numbers": (pzos.seeded(noisy, common=True), 0.02),
    "no noise": (reaction, 0.02),
}
looks = dict(zip(runs, (("-", 1.2), ("-", 6), ("-", 3), (":", 1.5)), strict=True))  # three of them nearly coincide
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, (follower, radius)), colour in zip(runs.items(), ("#D55E00", "#56B4E9", "#E69F00", "black"), strict=True):
    problem = pzos.Problem(leader, follower, np.zeros(12))
    study = pzos.Study(problem.known(), pzos.PZOS(step=0.02, radius=radius), steps=150)
    points = [record.x for record in pzos.iterate(study, pzos.Oracle(follower))]
    true_values = [leader.value(x, reaction(x)) for x in points]  # F without noise, which no method sees
    print(f"{name:<36} true F at the end: {true_values[-1]:.3f}")
    dash, width = looks[name]
    axes.semilogy(true_values, dash, color=colour, linewidth=width, label=name)
axes.set(xlabel="step", ylabel="true F(x)", title="2 % noise on every answer")
axes.legend(frameon=False)

# %%
# The follower itself: one entry of its answer along a line, asked again and again, and what it would be without noise.

# sphinx_gallery_thumbnail_number = 2
line = np.linspace(0.0, 1.0, 200)
clean = np.array([reaction(t * goal)[0] for t in line])
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for _ in range(5):
    axes.plot(line, clean + 0.02 * rng.standard_normal(200), ".", color="#D55E00", markersize=2)
axes.plot(line, clean, color="black", linewidth=2, label="without noise")
axes.set(xlabel="from x = 0 to the goal", ylabel="y[0]", title="what the followers answer, asked five times")
axes.legend(frameon=False)
plt.show()
