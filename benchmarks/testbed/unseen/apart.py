"""Families written by an examiner who did not know the method, kept apart: to be looked at once, in the end."""

from __future__ import annotations

import numba
import numpy as np

import pzos
from testbed.unseen.instance import Cost, Draft, Vector, family
from testbed.unseen.parts import disturbed, logistic, softplus, tracking
from testbed.unseen.rough import Quadratic
from testbed.unseen.shown import bill

Rng = np.random.Generator
History = list[Vector]

# Simulators


@numba.njit
def _scheduled(
    machine: Vector, work: Vector, come: Vector, due: Vector, weight: Vector, buyer: Vector, x: Vector
) -> Vector:
    """Return the mean tardiness of ten buyers, and the mean time a job is in the shop."""
    jobs, steps = machine.shape
    ready, free, step = come.copy(), np.zeros(5), np.zeros(jobs, numba.int64)
    left = work.sum(axis=1)
    answers, number = np.zeros(11), np.zeros(10)
    for _ in range(jobs * steps):
        start = np.inf
        for j in range(jobs):
            if step[j] < steps:
                start = min(start, max(ready[j], free[machine[j, step[j]]]))
        pick, most = 0, -np.inf
        for j in range(jobs):
            if step[j] < steps and max(ready[j], free[machine[j, step[j]]]) <= start:
                slack = due[j] - start - left[j]
                index = (-x[0] * work[j, step[j]] - x[1] * 0.1 * slack - x[2] * 0.3 * left[j] + x[3] * weight[j]
                         + x[4] * 0.3 * (start - ready[j]) - x[5] * 0.05 * (due[j] - start))  # fmt: skip
                if index > most:
                    pick, most = j, index
        k = machine[pick, step[pick]]
        left[pick] -= work[pick, step[pick]]
        free[k] = ready[pick] = start + work[pick, step[pick]]
        step[pick] += 1
    for j in range(jobs):
        answers[buyer[j]] += max(ready[j] - due[j], 0.0)
        number[buyer[j]] += 1.0
        answers[10] += (ready[j] - come[j]) / jobs
    answers[:10] /= np.maximum(number, 1.0)
    return answers


@family("priorities-6", "simulated", "apart")
def priorities_6(rng: Rng) -> Draft:
    """Six weights of a rule by which five machines choose the next of 60 jobs; ten buyers wait for theirs."""
    machine = np.array([rng.permutation(5)[:4] for _ in range(60)])
    work = rng.gamma(2.0, 1.0, (60, 4))
    come = np.cumsum(rng.exponential(1.7 + 0.3 * rng.random(), 60))
    weight, buyer = np.exp(0.7 * rng.standard_normal(60)), rng.integers(0, 10, 60)
    due = come + work.sum(axis=1) * (1.0 + 2.0 * rng.random(60))
    worth = np.append(np.array([weight[buyer == k].sum() / 6.0 for k in range(10)]), 0.3)
    usual = np.array([0.2, 0.0, 0.0, 0.1, 0.5, 0.2])
    cost = bill(np.zeros(6), worth, 0.05, np.append(0.1 + 0.2 * rng.random(10), 0.0), usual)
    return Draft(cost, lambda x: _scheduled(machine, work, come, due, weight, buyer, x), usual, search="jumps",
                 rows=False)  # fmt: skip


@numba.njit
def _parked(come: Vector, stay: Vector, walk: Vector, offer: Vector, room: Vector, price: Vector) -> Vector:
    """Return hours sold and cars that found no place in each of several lots, cars that left, and time searched."""
    lots = room.size
    until, answers = np.zeros((lots, 40)), np.zeros(2 * lots + 2)
    for i in range(come.size):
        tried, parked = np.zeros(lots, numba.boolean), False
        for turn in range(3):
            pick, least = -1, offer[i] - 0.8 * turn
            for k in range(lots):
                spent = price[k] * stay[i] + walk[i, k]
                if not tried[k] and spent < least:
                    pick, least = k, spent
            if pick < 0:
                break
            tried[pick] = True
            for b in range(room[pick]):
                if until[pick, b] <= come[i]:
                    until[pick, b] = come[i] + stay[i]
                    answers[pick] += stay[i]
                    parked = True
                    break
            if parked:
                break
            answers[lots + pick] += 1.0
            answers[2 * lots + 1] += 0.1
        answers[2 * lots] += not parked
    return 100.0 * answers / come.size


@family("parking-7", "simulated", "apart")
def parking_7(rng: Rng) -> Draft:
    """Prices an hour of seven car parks; 600 drivers walk little, search on where it is full, or leave."""
    place, goal = 2.0 * rng.random((7, 2)), np.clip(1.0 + 0.45 * rng.standard_normal((600, 2)), 0.0, 2.0)
    walk = (3.0 + 4.0 * rng.random((600, 1))) * np.linalg.norm(goal[:, None] - place, axis=2)
    come, stay = np.sort(12.0 * rng.beta(2.0, 2.0, 600)), 0.3 + rng.gamma(2.0, 0.8, 600)
    offer, room = 2.0 + rng.gamma(3.0, 2.0, 600), rng.integers(8, 30, 7)
    own = 0.2 + 0.4 * rng.random(7)
    worth = np.concatenate([own, np.full(7, 0.5), [1.0 + rng.random(), 3.0]])

    def value(x: Vector, y: Vector) -> float:
        return float(-x @ y[:7] + worth @ y + 0.5 * ((x - 1.5) ** 2).sum())

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        grad_y = worth.copy()
        grad_y[:7] -= x
        return -y[:7] + (x - 1.5), grad_y

    return Draft(Cost(value, gradients), lambda x: _parked(come, stay, walk, offer, room, x), np.full(7, 1.5),
                 pzos.Box(0.0, 8.0), search="jumps", rows=False)  # fmt: skip


@numba.njit
def _kept_up(wear: Vector, shock: Vector, planned: float, broken: float, limit: Vector) -> Vector:
    """Return failures, planned repairs and hours out of use of each pump; one crew does one repair after the other."""
    hours, pumps = wear.shape
    level, back = np.zeros(pumps), np.zeros(pumps)
    busy, answers = 0.0, np.zeros(3 * pumps)
    for t in range(hours):
        for i in range(pumps):
            if back[i] > t:
                continue
            level[i] += wear[t, i] + shock[t, i]
            failed = level[i] >= 10.0
            if failed or level[i] >= limit[i]:
                start = max(busy, float(t))
                busy = start + (broken if failed else planned)
                answers[(0 if failed else pumps) + i] += 1.0
                answers[2 * pumps + i] += busy - t
                level[i], back[i] = 0.0, busy
    return 1000.0 * answers / hours


@family("upkeep-8", "simulated", "apart")
def upkeep_8(rng: Rng) -> Draft:
    """The wear at which eight pumps of a waterworks are overhauled, in mm/s; one crew, and a breakdown takes longer."""
    speed = 0.02 + 0.06 * rng.random(8)
    wear = rng.gamma(0.3, 1.0, (1500, 8)) * speed / 0.3
    shock = np.where(rng.random((1500, 8)) < 0.008, 4.0 * rng.random((1500, 8)), 0.0)
    worth = np.concatenate([4.0 + 8.0 * rng.random(8), 1.0 + rng.random(8), 0.05 + 0.15 * rng.random(8)])
    told = 5.0 + 4.5 * rng.random(8)
    return Draft(bill(np.zeros(8), worth, 0.5, 0.0, told), lambda x: _kept_up(wear, shock, 4.0, 18.0, x), told,
                 pzos.Box(1.0, 12.0), search="jumps", unit=1.5, rows=False)  # fmt: skip


@numba.njit
def _given(demand: Vector, turnout: Vector, called: Vector) -> Vector:
    """Return the shortage, the units thrown away and the mean age given, by day of the week, for two blood groups.

    Platelets keep for five days, the oldest are given first, and the first group may be given to the second.
    """
    stock, answers = np.zeros((2, 5)), np.zeros(28)
    for t in range(demand.shape[0]):
        day = t % 7
        for g in range(2):
            answers[14 + 7 * g + day] += stock[g, 4]
            for a in range(4, 0, -1):
                stock[g, a] = stock[g, a - 1]
            stock[g, 0] = np.floor(called[5 * g + day] * turnout[t, g]) if day < 5 else 0.0
        for g in range(2):
            want = demand[t, g]
            for source in range(g, -1, -1):
                for a in range(4, -1, -1):
                    taken = min(stock[source, a], want)
                    stock[source, a] -= taken
                    want -= taken
            answers[7 * g + day] += want
    return 7.0 * answers / demand.shape[0]


@family("platelets-10", "simulated", "apart")
def platelets_10(rng: Rng) -> Draft:
    """How many donors of two blood groups are called on each weekday; a year of days, most donors come."""
    mean = np.array([5.0, 12.0]) * (0.7 + 0.6 * rng.random(2))
    week = np.array([1.2, 1.1, 1.0, 1.1, 1.2, 0.7, 0.6]) * (0.8 + 0.4 * rng.random(7))
    demand = rng.poisson(np.tile(week, 52)[:, None] * mean).astype(np.float64)
    turnout = rng.beta(16.0, 4.0, (364, 2))
    worth = np.concatenate([np.repeat(8.0 + 6.0 * rng.random(2), 7), np.repeat(1.5 + rng.random(2), 7)])
    price = 0.3 + 0.4 * rng.random(10)
    return Draft(bill(price, worth, 0.01), lambda x: _given(demand, turnout, x), np.repeat(1.3 * mean, 5),
                 pzos.Box(0.0, 60.0), search="jumps", unit=6.0, rows=False)  # fmt: skip


@numba.njit
def _charged(come: Vector, go: Vector, need: Vector, offer: Vector, rate: Vector, line: float, price: Vector) -> Vector:
    """Return the load of 48 half-hours, and what of the need was charged elsewhere."""
    load, elsewhere = np.zeros(48), 0.0
    for i in range(come.size):
        left = need[i]
        used = np.zeros(48, numba.boolean)
        while left > 1e-9:
            pick, least = -1, offer[i]
            for h in range(come[i], go[i]):
                ask = price[(h % 48) // 8]
                if not used[h % 48] and ask < least and load[h % 48] + 0.5 < line:
                    pick, least = h % 48, ask
            if pick < 0:
                break
            used[pick] = True
            taken = min(left, rate[i], line - load[pick])
            load[pick] += taken
            left -= taken
        elsewhere += left
    answers = np.zeros(49)
    answers[:48] = load
    answers[48] = elsewhere
    return answers / 10.0


@family("charging-6", "simulated", "apart")
def charging_6(rng: Rng) -> Draft:
    """Prices of electricity in six parts of the day; 250 cars charge in their cheapest half-hours on a weak line."""
    come = np.clip(
        np.where(rng.random(250) < 0.6, 36.0 + 4.0 * rng.standard_normal(250), 47.0 * rng.random(250)), 0, 47
    )
    come = come.astype(np.int64)
    go = come + rng.integers(6, 30, 250)
    need, rate = rng.gamma(3.0, 4.0, 250), rng.choice([1.8, 3.7, 5.5], 250)
    offer = 0.15 + rng.gamma(6.0, 0.04, 250)
    hour = np.arange(48) / 2.0
    spot = 0.1 + 0.06 * rng.random() * np.sin((hour - 13.0) / 12.0 * np.pi) + 0.03 * rng.random(48)
    part, bend = np.arange(48) // 8, 0.008 + 0.012 * rng.random()
    calm = rng.permutation(250)
    come, go, need, rate, offer = come[calm], go[calm], need[calm], rate[calm], offer[calm]
    line = 70.0 + 60.0 * rng.random()
    lost = 0.02 + 0.04 * rng.random()

    def value(x: Vector, y: Vector) -> float:
        return float((spot - x[part]) @ y[:48] + 0.5 * bend * (y[:48] @ y[:48]) + lost * y[48])

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        return -y[:48].reshape(6, 8).sum(axis=1), np.append(spot - x[part] + bend * y[:48], lost)

    return Draft(Cost(value, gradients), lambda x: _charged(come, go, need, offer, rate, line, x),
                 np.array([0.22, 0.24, 0.26, 0.27, 0.28, 0.25]), pzos.Box(0.0, 0.8), search="jumps", unit=0.08,
                 rows=False)  # fmt: skip


# Kinks


@numba.njit
def _settled(owed: Vector, share: Vector, means: Vector) -> Vector:
    """Return the largest payments p = min(owed, max(means + share' p, 0)) among banks."""
    paid = owed.copy()
    for _ in range(2000):
        after = np.minimum(owed, np.maximum(means + paid @ share, 0.0))
        change = np.abs(after - paid).max()
        paid = after
        if change <= 1e-14:
            break
    return paid


@family("clearing-10", "kinked", "apart")
def clearing_10(rng: Rng) -> Draft:
    """Money for ten of 24 banks that owe each other; who cannot pay all of it pays what there is."""
    due = rng.gamma(1.0, 1.0, (24, 24)) * (rng.random((24, 24)) < 0.25)
    np.fill_diagonal(due, 0.0)
    due *= np.exp(0.5 * rng.standard_normal((24, 1)))
    outside = 0.4 + 0.4 * rng.random(24)
    owed = due.sum(axis=1) + outside
    share = due / owed[:, None]
    means = owed * (0.92 + 0.4 * rng.random(24)) - due.sum(axis=0)
    helped = rng.choice(24, 10, replace=False)
    into = np.zeros((24, 10))
    into[helped, np.arange(10)] = 1.0
    means[helped] -= 0.3 * rng.random(10) * owed[helped]
    worth, bend = 0.3 + 0.6 * rng.random(24), 0.1 + 0.3 * rng.random(24)

    def value(x: Vector, y: Vector) -> float:
        gone = owed - y
        return float(x.sum() + 0.15 * (x @ x) + worth @ gone + 0.5 * bend @ (gone * gone))

    return Draft(
        Cost(value, lambda x, y: (1.0 + 0.3 * x, -worth - bend * (owed - y))),
        lambda x: _settled(owed, share, means + into @ x), np.full(10, 0.3), pzos.Nonnegative(), search="kinked",
        rows=False,
    )  # fmt: skip


@numba.njit
def _hung(way: Vector, stiff: Vector, slack: Vector, soil: float, load: Vector) -> Vector:
    """Return displacements under cables that only pull: Newton steps, halved until the energy falls."""
    n = load.size
    u = np.zeros(n)
    for _ in range(60):
        pull = np.maximum(way @ u - slack, 0.0)
        force = soil * u - load + way.T @ (stiff * pull)
        if np.abs(force).max() < 1e-11:
            break
        energy = 0.5 * soil * (u @ u) - load @ u + 0.5 * (stiff * pull) @ pull
        taut = stiff * (pull > 0.0)
        step = np.linalg.solve(soil * np.eye(n) + way.T @ (way * taut.reshape(-1, 1)), -force)
        size, fall = 1.0, force @ step
        for _ in range(30):
            v = u + size * step
            pull = np.maximum(way @ v - slack, 0.0)
            if 0.5 * soil * (v @ v) - load @ v + 0.5 * (stiff * pull) @ pull <= energy + 1e-4 * size * fall:
                break
            size *= 0.5
        u = u + size * step
    return u


@family("cables-9", "kinked", "apart")
def cables_9(rng: Rng) -> Draft:
    """Nine winches shorten or slacken cables of a net of 32 that only pull; twelve knots have their places."""
    knots = np.column_stack([np.repeat([1.0, 2.0, 3.0, 4.0], 3), np.tile([1.0, 2.0, 3.0], 4)])
    knots = knots + 0.2 * rng.standard_normal((12, 2))
    posts = np.array([[0, 0], [0, 2], [0, 4], [5, 0], [5, 2], [5, 4], [2.5, 5], [2.5, -1], [1, 4.5]], dtype=float)
    way, slack = np.zeros((32, 24)), np.full(32, 0.1)
    for e in range(9):  # with winches, from posts
        k = int(np.argsort(np.linalg.norm(knots - posts[e], axis=1))[rng.integers(0, 2)])
        way[e, 2 * k : 2 * k + 2] = (knots[k] - posts[e]) / np.linalg.norm(knots[k] - posts[e])
    far = np.linalg.norm(knots[:, None] - knots[None], axis=2) + 9.0 * np.tri(12)
    for e, flat in enumerate(np.argsort(far.ravel())[:23]):
        i, j = divmod(int(flat), 12)
        along = (knots[j] - knots[i]) / far[i, j]
        way[9 + e, 2 * j : 2 * j + 2], way[9 + e, 2 * i : 2 * i + 2] = along, -along
    slack[9:] = 0.15 * rng.random(23) - 0.03
    stiff, load = 1.0 + 4.0 * rng.random(32), np.tile([0.0, -0.25], 12) + 0.08 * rng.standard_normal(24)
    hold = np.zeros((32, 9))
    hold[np.arange(9), np.arange(9)] = 1.0

    def respond(x: Vector) -> Vector:
        return _hung(way, stiff, slack - hold @ x, 0.25, load)

    wish = respond(0.3 + 0.6 * rng.standard_normal(9)) + 0.1 * rng.standard_normal(24)
    return Draft(tracking(wish, np.zeros(9), 0.02), respond, np.full(9, 0.3), search="kinked", unit=0.5, rows=False)


@family("ferries-12", "kinked", "apart")
def ferries_12(rng: Rng) -> Draft:
    """Tolls of twelve bridges and ferries; four sorts of travellers share their ways until all are alike."""
    uses = np.zeros((16, 12))
    for r in range(16):
        uses[r, rng.choice(12, rng.integers(1, 4), replace=False)] = 1.0
    uses[np.arange(12), np.arange(12)] = 1.0
    pair = np.zeros((16, 4))
    pair[np.arange(16), np.arange(16) % 4] = 1.0
    empty, jam = 1.0 + 2.0 * rng.random(16), 0.15 + 0.5 * rng.random(12)
    most, give = 9.0 + 5.0 * rng.random(4), 0.6 + 0.8 * rng.random(4)  # worth of the first trip, and its fall
    solve = Quadratic(
        (uses * jam) @ uses.T + (pair * give) @ pair.T + 0.02 * np.eye(16), -np.eye(16), np.zeros(16)
    )  # fmt: skip
    dirt, part = 0.3 + 1.2 * rng.random(12), 0.3 + 0.3 * rng.random()

    def respond(x: Vector) -> Vector:
        return np.maximum(solve(pair @ most - empty - uses @ x), 0.0)

    # what travellers gain, less time, dirt and part of the tolls, which others would have to pay
    def value(x: Vector, y: Vector) -> float:
        flow, trips = uses.T @ y, pair.T @ y
        gain = most @ trips - 0.5 * give @ trips**2 - empty @ y - jam @ flow**2
        return float(-gain + dirt @ flow - part * (x @ flow) + 0.02 * (x @ x))

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        flow, trips = uses.T @ y, pair.T @ y
        grad_y = -pair @ (most - give * trips) + empty + uses @ (2.0 * jam * flow + dirt - part * x)
        return -part * flow + 0.04 * x, grad_y

    return Draft(Cost(value, gradients), respond, np.full(12, 0.5), pzos.Box(-5.0, 15.0), search="kinked", rows=False)


@numba.njit
def _merged(demand: Vector, leave: Vector, limit: Vector, cars: Vector, rate: Vector) -> Vector:
    """Return vehicle hours on the road beyond free flow in twelve cells, in six ramps, and vehicles left behind.

    Cells of half a kilometre hand on what they hold, can pass, and the next one has room for, every 15 seconds.
    """
    held, queue, answers = np.full(12, 15.0), np.zeros(6), np.zeros(19)
    before = 0.0
    for t in range(demand.shape[0]):
        out = np.zeros(13)
        for c in range(12):
            room = 1e9 if c == 11 else min(limit[c + 1], 0.3 * (cars[c + 1] - held[c + 1]))
            wish = min(0.8 * held[c], limit[c])
            if held[c] > 0.45 * cars[c]:
                wish = min(wish, 0.85 * limit[c])  # a jam lets less through
            out[c] = min(wish, max(room, 0.0))
        before += demand[t, 6]
        first = min(before, limit[0], max(0.3 * (cars[0] - held[0]), 0.0))
        before -= first
        for c in range(12):
            k, come = c // 2, (first if c == 0 else out[c - 1] * (1.0 - leave[c - 1]))
            if c % 2 == 1:
                queue[k] += demand[t, k]
                merge = min(queue[k], rate[k], max(0.3 * (cars[c] - held[c] - come), 0.0))
                queue[k] -= merge
                come += merge
            answers[c] += max(held[c] - out[c] / 0.8, 0.0)
            held[c] += come - out[c]
        answers[12:18] += queue
        answers[18] += before
    return answers * 15.0 / 3600.0


@family("ramps-6", "kinked", "apart")
def ramps_6(rng: Rng) -> Draft:
    """How many vehicles an hour six ramps let onto a motorway in the rush hour: a cell model, 240 steps."""
    wave = 0.5 + 0.9 * np.exp(-(((np.arange(240) - 90.0) / 50.0) ** 2))
    base = np.append(1.2 + 1.6 * rng.random(6), 8.0 + 1.5 * rng.random())
    demand = wave[:, None] * base * (0.85 + 0.3 * rng.random((240, 7)))
    leave = np.where(np.arange(12) % 2 == 1, 0.05 + 0.1 * rng.random(12), 0.0)
    limit, cars = 16.0 + 2.0 * rng.random(12), np.full(12, 90.0)
    limit[rng.integers(7, 11)] *= 0.82
    worth = np.concatenate([1.0 + 0.3 * rng.random(12), 0.8 + 0.6 * rng.random(6), [1.0]])
    bend = np.concatenate([np.zeros(12), 0.05 + 0.1 * rng.random(6), [0.0]])

    def respond(x: Vector) -> Vector:
        return _merged(demand, leave, limit, cars, x / 240.0)

    usual = np.full(6, 600.0)
    return Draft(bill(np.zeros(6), worth, 1e-6, bend, usual), respond, usual, pzos.Box(60.0, 1500.0), search="kinked",
                 unit=150.0, rows=False)  # fmt: skip


@numba.njit
def _watered(
    into: Vector, above: Vector, most: Vector, need: Vector, leak: Vector, price: Vector, gate: Vector
) -> Vector:
    """Return the water of three farms at each of nine canals, and what runs out below: upstream takes first."""
    canals = above.size
    flow, taken = np.zeros(canals), np.zeros(3 * canals + 1)
    left = np.zeros(canals)
    for c in range(canals):
        have = into[0] if above[c] < 0 else left[above[c]]
        passed = have if c == 0 else min(have, max(gate[c - 1], 0.0), most[c])
        if above[c] >= 0:
            left[above[c]] -= passed
        flow[c] = passed * (1.0 - leak[c])
        left[c] = flow[c]
        for k in range(3):
            want = max(need[c, k] * (1.0 - 0.12 * price[c, k] * (1.0 + 0.2 * k)), 0.0)
            amount = min(left[c], want)
            taken[3 * c + k] = amount
            left[c] -= amount
    taken[3 * canals] = left.sum()
    return taken


@family("canals-8", "kinked", "apart")
def canals_8(rng: Rng) -> Draft:
    """Openings of eight gates in a tree of canals with 27 farms: who lies upstream takes first, the rest runs on."""
    above = np.array([-1, 0, 0, 1, 1, 2, 2, 3, 5])
    need, price = 1.0 + 2.0 * rng.random((9, 3)), 2.0 * rng.random((9, 3))
    into = np.array([0.65 * need.sum() * (0.8 + 0.3 * rng.random())])
    most, leak = into[0] * (0.4 + 0.5 * rng.random(9)), 0.02 + 0.1 * rng.random(9)
    crop = 1.0 + 4.0 * rng.random(27)
    crop[:3] *= 0.5  # the first ones have poor soil
    half = 0.2 + 0.5 * rng.random(27)
    x0 = into[0] * np.array([0.35, 0.35, 0.15, 0.15, 0.15, 0.15, 0.06, 0.06])
    out, effort = 0.3 * rng.random(), 0.01 + 0.02 * rng.random(8)

    def value(x: Vector, y: Vector) -> float:
        return float(-crop @ np.log1p(y[:27] / half) + out * y[27] + 0.03 * y[27] ** 2 + effort @ (x - x0) ** 2)

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        return 2.0 * effort * (x - x0), np.append(-crop / (half + y[:27]), out + 0.06 * y[27])

    return Draft(Cost(value, gradients), lambda x: _watered(into, above, most, need, leak, price, x), x0,
                 pzos.Box(0.0, 60.0), search="kinked", unit=4.0, rows=False)  # fmt: skip


# Jumps


@numba.njit
def _matched(order: Vector, gain: Vector, score: Vector, room: Vector) -> Vector:
    """Return how many doctors each hospital gets and how good they are together: the doctors propose."""
    doctors, hospitals = gain.shape
    place, asked, free = np.full(doctors, -1), np.zeros(doctors, numba.int64), np.ones(doctors, numba.boolean)
    count = np.zeros(hospitals)
    moved = True
    while moved:
        moved = False
        for i in range(doctors):
            if not free[i] or asked[i] >= hospitals or gain[i, order[i, asked[i]]] <= 0.0:
                continue
            h = order[i, asked[i]]
            asked[i] += 1
            moved = True
            place[i], free[i] = h, False
            count[h] += 1.0
            if count[h] > room[h]:
                worst = i
                for j in range(doctors):
                    if place[j] == h and score[j, h] < score[worst, h]:
                        worst = j
                place[worst], free[worst] = -1, True
                count[h] -= 1.0
    answers = np.zeros(2 * hospitals)
    for i in range(doctors):
        if place[i] >= 0:
            answers[place[i]] += 1.0
            answers[hospitals + place[i]] += score[i, place[i]]
    return answers


@family("residents-9", "jumps", "apart")
def residents_9(rng: Rng) -> Draft:
    """Pay at nine hospitals; 90 doctors propose to those they like, hospitals keep the best they have room for."""
    liking = rng.standard_normal(9) + 0.8 * rng.gumbel(size=(90, 9)) - 3.5
    thrift, skill = 0.6 + 0.8 * rng.random((90, 1)), rng.standard_normal((90, 1))
    score = 2.0 + 0.7 * skill + 0.5 * rng.standard_normal((90, 9))
    room = rng.integers(6, 14, 9).astype(np.float64)
    worth, gap = 0.8 + 0.6 * rng.random(9), 0.15 + 0.2 * rng.random(9)

    def respond(x: Vector) -> Vector:
        gain = liking + thrift * x
        return _matched(np.argsort(-gain, axis=1), gain, score, room)

    def value(x: Vector, y: Vector) -> float:
        return float(x @ y[:9] - worth @ y[9:] + 0.5 * gap @ (room - y[:9]) ** 2)

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        return y[:9].copy(), np.concatenate([x - gap * (room - y[:9]), -worth])

    return Draft(Cost(value, gradients), respond, np.full(9, 1.5), pzos.Box(0.0, 6.0), search="jumps", unit=0.5,
                 rows=False)  # fmt: skip


@family("brackets-6", "jumps", "apart")
def brackets_6(rng: Rng) -> Draft:
    """Tax rates of six brackets; 120 people of four classes work as much as pays, and jump where rates fall."""
    skill = np.sort(np.exp(0.6 * rng.standard_normal(120)))
    power = 0.15 + 0.5 * rng.random(120)
    edges = np.array([0.0, 0.4, 0.8, 1.2, 1.8, 2.6]) * (0.9 + 0.2 * rng.random())
    width = np.append(np.diff(edges), np.inf)
    group = np.arange(120) // 30
    weight = np.array([1.45, 1.1, 0.8, 0.45]) + 0.1 * rng.random(4)
    people = (np.arange(4)[:, None] == group).astype(np.float64)

    def respond(x: Vector) -> Vector:
        best = skill[:, None] * (1.0 - x) ** power[:, None]
        income = np.clip(best, edges, edges + width)  # the best income within each bracket
        parts = np.clip(income[..., None] - edges, 0.0, width)
        effort = skill[:, None] / (1.0 + 1.0 / power[:, None]) * (income / skill[:, None]) ** (1 + 1 / power[:, None])
        gain = income - parts @ x - effort
        pick = gain.argmax(axis=1)
        rows = np.arange(120)
        return np.concatenate([parts[rows, pick].sum(axis=0), people @ gain[rows, pick]])

    def value(x: Vector, y: Vector) -> float:
        return float(-x @ y[:6] - weight @ y[6:] + 2.0 * (x @ x))

    return Draft(
        Cost(value, lambda x, y: (-y[:6] + 4.0 * x, np.concatenate([-x, -weight]))), respond,
        np.array([0.1, 0.15, 0.2, 0.25, 0.3, 0.35]), pzos.Box(-0.5, 0.9), search="jumps", unit=0.15, rows=False,
    )  # fmt: skip


@numba.njit
def _shortest(
    weight: Vector, origin: Vector, target: Vector, size: Vector, rail: Vector, town: Vector, gate: Vector
) -> Vector:
    """Return lorries through ten gates and four towns and on rails, all on shortest ways of a street map."""
    n = weight.shape[0]
    far, step = weight.copy(), np.empty((n, n), numba.int64)
    for i in range(n):
        for j in range(n):
            step[i, j] = j
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if far[i, k] + far[k, j] < far[i, j]:
                    far[i, j] = far[i, k] + far[k, j]
                    step[i, j] = step[i, k]
    answers = np.zeros(15)
    for r in range(origin.size):
        if far[origin[r], target[r]] > rail[r]:
            answers[14] += size[r]
            continue
        at = origin[r]
        while at != target[r]:
            after = step[at, target[r]]
            if gate[at, after] >= 0:
                answers[gate[at, after]] += size[r]
            if town[after] >= 0:
                answers[10 + town[after]] += size[r]
            at = after
    return answers


@family("lorries-10", "jumps", "apart")
def lorries_10(rng: Rng) -> Draft:
    """Tolls at ten gates of a map of 25 places; 60 hauliers take the cheapest way, through towns, or go by rail."""
    base, gate = np.full((25, 25), 1e6), np.full((25, 25), -1)
    np.fill_diagonal(base, 0.0)
    edges = [(5 * i + j, 5 * i + j + 1) for i in range(5) for j in range(4)]
    edges += [(5 * i + j, 5 * i + j + 5) for i in range(4) for j in range(5)]
    for a, b in edges:
        base[a, b] = base[b, a] = 1.0 + rng.random()
    number = rng.permutation(len(edges))[:10]
    for g, e in enumerate(number):
        a, b = edges[e]
        gate[a, b] = gate[b, a] = g
        base[a, b] = base[b, a] = 0.5 * base[a, b]  # good roads
    town = np.full(25, -1)
    town[rng.choice(25, 4, replace=False)] = np.arange(4)
    ends = np.array([rng.choice(25, 2, replace=False) for _ in range(60)])
    size = rng.gamma(2.0, 0.5, 60)
    rail = 1.5 + 1.3 * np.abs(ends[:, 0] // 5 - ends[:, 1] // 5) + 1.3 * np.abs(ends[:, 0] % 5 - ends[:, 1] % 5)
    rail = rail * (0.9 + 0.6 * rng.random(60))
    own, noise, subsidy = 0.05 + 0.2 * rng.random(10), 0.3 + 0.5 * rng.random(4), 0.1 * rng.random()

    def respond(x: Vector) -> Vector:
        weight = base + np.where(gate >= 0, np.maximum(x, 0.0)[gate], 0.0)
        return _shortest(weight, ends[:, 0], ends[:, 1], size, rail, town, gate)

    def value(x: Vector, y: Vector) -> float:
        return float((own - x) @ y[:10] + noise @ y[10:14] + subsidy * y[14])

    return Draft(
        Cost(value, lambda x, y: (-y[:10], np.concatenate([own - x, noise, [subsidy]]))), respond, np.full(10, 0.3),
        pzos.Box(0.0, 4.0), search="jumps", unit=0.5, rows=False,
    )  # fmt: skip


# Noise


@family("drinks-7", "noise", "apart")
def drinks_7(rng: Rng) -> Draft:
    """Prices of seven drinks in three regions alike; panels of households tell what was sold, off by much the same."""
    much, own = 1.0 + 2.0 * rng.random((3, 7)), 1.9 + rng.random((3, 7))
    cross = 0.15 * rng.random((3, 7, 7)) * (1.0 - np.eye(7))
    bent, usual = 0.7 + 0.4 * rng.random(7), 0.8 + 0.8 * rng.random(7)

    def respond(x: Vector) -> Vector:
        z = np.log(np.maximum(x, 1e-3) / usual)
        parts = [much[r] * np.exp(-own[r] * z - bent * z * z + z @ cross[r].T) for r in range(3)]
        return np.concatenate(parts, axis=-1)

    making = usual * (0.35 + 0.3 * rng.random(7))
    draft = Draft(
        Cost(
            lambda x, y: float(-(x - making) @ y.reshape(3, 7).sum(axis=0)),
            lambda x, y: (-y.reshape(3, 7).sum(axis=0), -np.tile(x - making, 3)),
        ),
        respond, usual * (0.75 + 0.15 * rng.random(7)), pzos.Box(0.3 * usual, 4.0 * usual), unit=0.4,
    )  # fmt: skip
    return disturbed(draft, lambda y, x, draw, before: y + 0.06 * draw.standard_normal(y.size))


@family("paints-6", "noise", "apart")
def paints_6(rng: Rng) -> Draft:
    """Six pigments for a wanted colour, seen in 30 bands; now and then a band is dazzled, or the lamp is too bright."""
    band = np.linspace(0.0, 1.0, 30)
    place, wide = (np.arange(6) + 0.5 + 0.4 * rng.standard_normal(6)) / 6.0, 0.08 + 0.12 * rng.random(6)
    dark = (1.5 + 2.0 * rng.random(6)) * np.exp(-0.5 * ((band[:, None] - place) / wide) ** 2) + 0.1 * rng.random(6)
    ground = 0.03 + 0.05 * band
    scatter = 0.1 + 0.3 * rng.random(6)

    def respond(x: Vector) -> Vector:
        x = np.maximum(x, 0.0)
        a = (ground + x @ dark.T) / (1.0 + x @ scatter)[..., None]
        return 100.0 * (1.0 + a - np.sqrt(a * a + 2.0 * a))

    wish = respond(rng.gamma(2.0, 0.3, 6)) + 1.5 * rng.standard_normal(30)
    draft = Draft(tracking(wish, np.zeros(6), 4.0 + 4.0 * rng.random(), 0.1), respond, np.full(6, 0.25),
                  pzos.Box(0.0, 4.0), unit=0.3)  # fmt: skip

    def disturb(y: Vector, x: Vector, draw: Rng, before: History) -> Vector:
        seen = y + 0.1 * draw.standard_normal(30)
        kind = draw.random()
        if kind < 0.03:
            seen[draw.integers(30)] = 400.0
        elif kind < 0.05:
            seen *= 1.6
        return seen

    return disturbed(draft, disturb)


@family("wells-8", "noise", "apart")
def wells_8(rng: Rng) -> Draft:
    """Pumping rates of eight wells; water levels in 14 places, some of them read badly (heavy tails, by depth)."""
    well, gauge = 4.0 * rng.random((8, 2)), 4.0 * rng.random((6, 2))
    places = np.vstack([well, gauge])
    far = np.sqrt(((places[:, None] - well[None]) ** 2).sum(axis=2) + 0.01)
    reach = np.log(12.0 / far) * (6.0 + 4.0 * rng.random())
    full = 22.0 + 6.0 * rng.random(14)

    def respond(x: Vector) -> Vector:
        square = full**2 - x @ reach.T
        return np.sqrt(4.0 + 40.0 * softplus(square / 40.0))

    worth, lift = 9.0 + 4.0 * rng.random(8), 0.25 + 0.15 * rng.random(8)
    low, harm = full - 4.0 - 3.0 * rng.random(14), 1.0 + rng.random(14)

    # water sold, less what lifting it takes, and what low levels do to trees and houses
    def value(x: Vector, y: Vector) -> float:
        lifted = lift * (full[:8] + 8.0 - y[:8])
        return float(-worth @ x + lifted @ x + 0.5 * (x @ x) + harm @ softplus(low - y) + 0.1 * harm @ (full - y) ** 2)

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        grad_y = -harm * logistic(low - y) - 0.2 * harm * (full - y)
        grad_y[:8] -= lift * x
        return -worth + lift * (full[:8] + 8.0 - y[:8]) + 1.0 * x, grad_y

    draft = Draft(Cost(value, gradients), respond, np.full(8, 1.0), pzos.Box(0.0, 15.0))

    def disturb(y: Vector, x: Vector, draw: Rng, before: History) -> Vector:
        return y + 0.02 * (1.0 + 0.2 * (full - y)) * draw.standard_t(2.5, 14)

    return disturbed(draft, disturb)


# Smooth


@family("platform-10", "smooth", "apart")
def platform_10(rng: Rng) -> Draft:
    """Fees for sellers and for buyers in five countries; each side comes for the other, also abroad."""
    taste, pull = 0.3 + rng.standard_normal(10) * 0.6, 1.0 + 1.5 * rng.random(10)
    draws = np.zeros((10, 10))
    draws[:5, 5:] = (0.2 + 0.25 * rng.random((5, 5))) * (np.eye(5) + 0.25)
    draws[5:, :5] = (0.6 + 0.9 * rng.random((5, 5))) * (np.eye(5) + 0.25)
    size = np.concatenate([1.0 + rng.random(5), 4.0 + 4.0 * rng.random(5)])

    def respond(x: Vector) -> Vector:
        share = np.full(x.shape, 0.5)
        for _ in range(100):
            share = logistic(2.0 * (taste + share @ draws.T) - pull * x - 0.8)
        return size * share

    serve = np.concatenate([0.1 + 0.2 * rng.random(5), 0.05 + 0.1 * rng.random(5)])
    deal = 0.02 + 0.08 * rng.random(5)

    # each meeting of buyers and sellers of a country earns a little, too
    def value(x: Vector, y: Vector) -> float:
        return float(-(x - serve) @ y - deal @ (y[:5] * y[5:]) + 0.02 * (x @ x))

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        return -y + 0.04 * x, serve - x - np.concatenate([deal * y[5:], deal * y[:5]])

    return Draft(Cost(value, gradients), respond, np.full(10, 0.3))


@family("doses-9", "smooth", "apart")
def doses_9(rng: Rng) -> Draft:
    """How few doses of a vaccine go to nine groups; the answers are who falls ill in the end, and beds."""
    people = rng.dirichlet(np.full(9, 5.0))
    meet = np.exp(0.5 * rng.standard_normal((9, 9)))
    meet = (meet + meet.T) * (1.0 + 2.0 * np.eye(9))
    spread = meet * people[None]
    spread *= (1.6 + 0.8 * rng.random()) / float(np.abs(np.linalg.eigvals(spread)).max())
    works, severe = 0.7 + 0.25 * rng.random(9), rng.dirichlet(np.full(9, 1.0), 3) * 6.0

    def respond(x: Vector) -> Vector:
        open_to = np.exp(-works * x / people)  # who is reached by doses given at random
        ill = np.full(x.shape, 0.6)
        for _ in range(150):
            ill = open_to * (1.0 - np.exp(-0.02 - ill @ spread.T))
        sick = people * ill
        return np.concatenate([10.0 * sick, 10.0 * sick @ severe.T], axis=-1)

    worth = np.concatenate([0.3 + 0.5 * rng.random(9), 0.5 + 0.5 * rng.random(3)])
    bend = np.concatenate([np.zeros(9), 0.2 + 0.4 * rng.random(3)])
    return Draft(bill(0.3 + 0.8 * rng.random(9), worth, 0.5, bend), respond, np.full(9, 0.03), pzos.Budget(0.6),
                 unit=0.06)  # fmt: skip
