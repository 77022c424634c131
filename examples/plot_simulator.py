"""
A simulator as follower
=======================

A bottleneck with 80 commuters, simulated second by second: everyone picks the departure slot that was best the day
before, with some noise, and the queue forms. The leader charges a toll per slot to keep the queue short. The response
is *piecewise constant* in the toll, so the radius has to be large; ``common=True`` gives both ends of a difference
the same luck. (For city-scale simulators see ``pzos.networks``.)
"""

import matplotlib.pyplot as plt
import numpy as np

import pzos

SLOTS, PEOPLE, CAPACITY, DAYS = 12, 80, 9, 25
wish = np.linspace(0, SLOTS - 1, PEOPLE)
wish = SLOTS / 2 + (wish - SLOTS / 2) * 0.35  # everybody wants to travel at about the same time


def queue(departures):
    """Return the waiting of each slot behind a bottleneck."""
    waiting = np.zeros(SLOTS)
    left = 0.0
    for slot in range(SLOTS):
        left = max(0.0, left + departures[slot] - CAPACITY)
        waiting[slot] = left / CAPACITY
    return waiting


def simulate(toll, generator):
    """Return how many depart in each slot after some weeks of trying, averaged over the last days."""
    luck = generator.gumbel(size=(DAYS, PEOPLE, SLOTS)) * 0.3
    habit = np.full(SLOTS, PEOPLE / SLOTS)
    seen = []
    for day in range(DAYS):
        cost = queue(habit)[None, :] + toll[None, :] + 0.8 * np.abs(np.arange(SLOTS)[None, :] - wish[:, None])
        choice = np.argmin(cost - luck[day], axis=1)
        departures = np.bincount(choice, minlength=SLOTS).astype(float)
        habit = 0.7 * habit + 0.3 * departures
        seen.append(departures)
    return np.mean(seen[-10:], axis=0)


def crowding(x, y):
    return float((np.maximum(y - CAPACITY, 0) ** 2).sum() + 0.1 * x @ x)


leader = pzos.leader_from_functions(crowding, lambda x, y: 0.2 * x, lambda x, y: 2 * np.maximum(y - CAPACITY, 0))
problem = pzos.Problem(leader, pzos.seeded(simulate, common=True), np.zeros(SLOTS), domain=pzos.Box(0, 5))
result = pzos.solve(problem, pzos.PZOS(step=0.002, radius=1.0, batch=2), queries=300, seed=0)
print(result)

fresh = np.random.default_rng(99)  # luck no query has seen
before, after = simulate(np.zeros(SLOTS), fresh), simulate(result.best_x, fresh)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.bar(np.arange(SLOTS) - 0.2, before, 0.4, color="0.7", label="no toll")
left.bar(np.arange(SLOTS) + 0.2, after, 0.4, color="#0072B2", label="with toll")
left.axhline(CAPACITY, color="black", linestyle=":", linewidth=1)
left.set(xlabel="departure slot", ylabel="departures", title="on days the optimiser never saw")
left.legend(frameon=False)
right.bar(np.arange(SLOTS), result.best_x, color="#D55E00")
right.set(xlabel="departure slot", ylabel="toll", title=f"{result.queries} simulations")
plt.show()
