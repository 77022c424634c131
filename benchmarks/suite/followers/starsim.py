"""A budget for five measures against an epidemic simulated agent by agent with starsim (``pzos[suite-starsim]``).

Money buys vaccine for children, adults and elders, ventilation of schools, and treatment, with diminishing returns. The
answers of a run are whole numbers: infections and deaths in each age group. The leader adds up the known costs of both
and the money spent. Runs with the same seed draw the same luck for every agent, so that common random numbers reach
from one budget to another.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import pzos
from suite.family import Family
from testbed.unseen.instance import Vector

MEASURES = ("vaccine for children", "vaccine for adults", "vaccine for elders", "ventilated schools", "treatment")
GROUPS = {"children": (0, 18), "adults": (18, 60), "elders": (60, None)}
BUDGET = 100.0
_COST = np.array([3.0, 4.0, 12.0])  # of an infection, by age group, in thousands
_LOSS = np.array([300.0, 300.0, 100.0])  # of a death
_WEEKS = 26
_AGES = np.where(np.arange(90) < 60, 1.0, 1.0 - np.arange(-59, 31) / 30.0).clip(min=0.02)


@dataclass(frozen=True, eq=False)
class Epidemic:
    """One town: (budget by measure, generator) -> infections and deaths by age group, of one run.

    ``price`` is what buys 63 % of the effect of each measure.
    """

    price: Vector
    contacts: Any
    people: int = 4000

    def __call__(self, x: Vector, generator: np.random.Generator) -> Vector:
        """Simulate half a year, week by week."""
        return self.run(x, int(generator.integers(2**31)))

    def run(self, x: Vector, seed: int) -> Vector:
        """Simulate with this seed of starsim."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pandas as pd
            import starsim as ss
        effect = 1.0 - np.exp(-np.maximum(x, 0.0) / self.price)
        contacts = np.array(self.contacts)
        contacts[0, 0] *= 1.0 - 0.7 * effect[3]
        groups = {name: ss.AgeGroup(*ages) for name, ages in GROUPS.items()}
        ages = pd.DataFrame({"age": np.arange(90), "value": _AGES})
        sim = ss.Sim(
            people=ss.People(self.people, age_data=ages), rand_seed=seed, verbose=0,
            dt=ss.weeks(1), start="2020-01-01", dur=ss.weeks(_WEEKS),
            diseases=ss.SIR(beta=ss.perweek(0.12), init_prev=ss.bernoulli(p=0.02), dur_inf=ss.constant(ss.weeks(2)),
                            p_death=ss.bernoulli(p=0.0)),
            networks=ss.MixingPools(src=groups, dst=groups, n_contacts=contacts.tolist(), beta=1.0),
        )  # fmt: skip
        sim.init()
        disease, age = sim.diseases.sir, np.array(sim.people.age)
        risk = np.select([age < 18, age < 60], [0.001, 0.004], 0.08) * (1.0 - 0.6 * effect[4])
        disease.pars.p_death.set(p=lambda self, sim, uids: risk[uids])
        inside = [(age >= low) & (age < (high or np.inf)) for low, high in GROUPS.values()]
        luck = np.random.default_rng(seed).random(self.people)  # who comes first for a dose, whatever the budget
        for group, share in zip(inside, effect[:3], strict=True):
            members = np.flatnonzero(group)
            first = members[np.argsort(luck[members])][: round(share * members.size)]
            disease.rel_sus[ss.uids(first)] = 0.1
        sim.run()
        caught, dead = ~np.isnan(disease.ti_infected.raw[: age.size]), ~sim.people.alive.raw[: age.size]
        return np.array([(state & group).sum() for state in (caught, dead) for group in inside], dtype=np.float64)


def town(seed: int) -> Epidemic:
    """Return a town with prices and contacts of its own."""
    draw = np.random.default_rng(seed)
    contacts = np.array([[12.0, 3.0, 1.0], [3.0, 6.0, 1.5], [1.0, 1.5, 2.5]]) * draw.uniform(0.7, 1.3, (3, 3))
    return Epidemic(np.array([60.0, 150.0, 50.0, 40.0, 60.0]) * draw.uniform(0.6, 1.6, 5), (contacts + contacts.T) / 2)


def measures(seed: int) -> pzos.Problem:
    """Return the budget of a town: spend at most ``BUDGET``, starting with a fifth of it on each measure."""
    weights = np.concatenate([_COST, _LOSS])
    leader = pzos.leader_from_functions(
        lambda x, y: float(weights @ y + x.sum()), lambda x, y: np.ones(x.size), lambda x, y: weights.copy()
    )
    start = np.full(5, BUDGET / 5)
    return pzos.Problem(leader, pzos.seeded(town(seed), common=True), start, pzos.Budget(BUDGET), name="measures")


FAMILIES = [
    Family("starsim-measures", "starsim", "suite-starsim", measures, "noise",
           "a budget for five measures against an epidemic, counted in people", queries=50, judged_by=8,
           baselines={"nothing-spent": lambda seed: np.zeros(5), "elders-first": lambda seed: BUDGET * np.eye(5)[2]}),
]  # fmt: skip
