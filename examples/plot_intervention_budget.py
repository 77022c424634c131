"""
An intervention budget
======================

A town of 4000 people in which a disease spreads, simulated person by person with `starsim <https://starsim.org>`_
(``pip install "pzos[suite-starsim]"``). The health office has 100 thousand to spend on five measures: vaccine for
children, for adults and for elders, ventilation of schools, and treatment. Each has diminishing returns. An infection
costs 3 to 12 thousand, a death 100 to 300. The simulator counts infections and deaths, whole people, and every run has
its own luck.

With starsim 3.7 this page printed (thousands, mean of eight runs that no method had seen, and its standard error)::

    nothing        11,129  (291)   spent [0. 0. 0. 0. 0.]
    a fifth each    4,503  (294)   spent [20. 20. 20. 20. 20.]
    elders first    7,938  (105)   spent [  0.   0. 100.   0.   0.]
    found           3,811  (199)   spent [47.  6. 32. 16.  0.]
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import starsim as ss

import pzos

# %%
# The town
# --------
# Half a year, week by week. Who comes first for a dose is drawn once per run and does not depend on the budget, and
# starsim draws the same luck for the same person in runs of the same seed: budgets are compared on equal luck.

GROUPS = {"children": (0, 18), "adults": (18, 60), "elders": (60, None)}
MEASURES = ("vaccine for\nchildren", "vaccine for\nadults", "vaccine for\nelders", "ventilated\nschools", "treatment")
price = np.array([60.0, 150.0, 50.0, 40.0, 60.0])  # what buys 63 % of the effect of a measure
years = np.arange(90)
ages = pd.DataFrame({"age": years, "value": np.clip((90 - years) / 30, 0.02, 1.0)})  # fewer people from 60 on
contacts = np.array([[12.0, 3.0, 1.0], [3.0, 6.0, 1.5], [1.0, 1.5, 2.5]])  # a week, between age groups


def epidemic(x, seed, people=4000):
    """Simulate: infections by age group, then deaths by age group."""
    effect = 1.0 - np.exp(-x / price)
    meet = contacts.copy()
    meet[0, 0] *= 1.0 - 0.7 * effect[3]
    groups = {name: ss.AgeGroup(*ages) for name, ages in GROUPS.items()}
    disease = ss.SIR(beta=ss.perweek(0.12), init_prev=ss.bernoulli(p=0.02), dur_inf=ss.constant(ss.weeks(2)),
                     p_death=ss.bernoulli(p=0.0))  # fmt: skip
    pools = ss.MixingPools(src=groups, dst=groups, n_contacts=meet.tolist(), beta=1.0)
    sim = ss.Sim(people=ss.People(people, age_data=ages), diseases=disease, networks=pools, rand_seed=seed, verbose=0,
                 dt=ss.weeks(1), start="2020-01-01", dur=ss.weeks(26))  # fmt: skip
    sim.init()
    disease, age = sim.diseases.sir, np.array(sim.people.age)
    risk = np.select([age < 18, age < 60], [0.001, 0.004], 0.08) * (1.0 - 0.6 * effect[4])
    disease.pars.p_death.set(p=lambda self, sim, uids: risk[uids])
    inside = [(age >= low) & (age < (high or np.inf)) for low, high in GROUPS.values()]
    luck = np.random.default_rng(seed).random(people)
    for group, share in zip(inside, effect[:3], strict=True):
        members = np.flatnonzero(group)
        first = members[np.argsort(luck[members])][: round(share * members.size)]
        disease.rel_sus[ss.uids(first)] = 0.1
    sim.run()
    caught, dead = ~np.isnan(disease.ti_infected.raw[:people]), ~sim.people.alive.raw[:people]
    return np.array([(state & group).sum() for state in (caught, dead) for group in inside], dtype=float)


# %%
# The health office
# -----------------
# What an infection and a death cost is known, and so is the money spent. A query is the mean of three runs, always with
# the same three seeds.

worth = np.array([3.0, 4.0, 12.0, 300.0, 300.0, 100.0])
leader = pzos.leader_from_functions(
    lambda x, y: float(worth @ y + x.sum()), lambda x, y: np.ones(x.size), lambda x, y: worth.copy(), name="harm"
)


def town(x):
    """Answer a query: the mean of three runs."""
    return np.mean([epidemic(x, seed) for seed in range(3)], axis=0)


equal = np.full(5, 20.0)
problem = pzos.Problem(leader, town, equal, pzos.Budget(100.0), name="five measures")
result = pzos.solve(problem, queries=24, seed=0, progress=False, certificate=False)

# %%
# What it gives
# -------------
# Doing nothing, two obvious rules (a fifth for each measure; all for the elders, who die most), and the budget found,
# on eight runs that were not used to find it. People are counted: a certificate must look as far as counts change.

choices = {"nothing": 0.0 * equal, "a fifth each": equal, "elders first": 100.0 * np.eye(5)[2], "found": result.best_x}
answers = {name: np.array([epidemic(x, seed) for seed in range(1000, 1008)]) for name, x in choices.items()}
for name, y in answers.items():
    harm = y @ worth + choices[name].sum()
    print(f"{name:<13}{harm.mean():>8,.0f}  ({harm.std(ddof=1) / 8**0.5:,.0f})   spent {np.round(choices[name])}")
certificate = result.certify(problem, delta=10.0, at="best", queries=33)
print(
    f"with {certificate.confidence:.0%} confidence, averaged over all budgets within 10 thousand of this one, no shift "
    f"of a thousand promises more than {certificate.partial.upper:,.0f} thousand"
)

# %%
# Before and after
# ----------------
# Money goes to where the disease spreads, and to the elders, whom it hits hardest; treatment gets nothing.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
place = np.arange(5)
left.bar(place - 0.2, equal, 0.4, color="0.7", label="a fifth each")
left.bar(place + 0.2, result.best_x, 0.4, color="#0072b2", label="found")
left.set(xticks=place, ylabel="thousands", title="the budget")
left.set_xticklabels(MEASURES, fontsize=7)
left.legend(fontsize=8)
for shift, (name, colour) in enumerate((("nothing", "0.4"), ("a fifth each", "0.7"), ("found", "#0072b2"))):
    right.bar(np.arange(3) + 0.27 * (shift - 1), answers[name].mean(axis=0)[:3], 0.27, color=colour, label=name)
right.set(xticks=np.arange(3), xticklabels=list(GROUPS), ylabel="people", title="infections")
right.legend(fontsize=8)
plt.show()
