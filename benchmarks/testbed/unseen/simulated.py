"""Simulators with a fixed seed: the answer repeats itself, and has small jumps or kinks at every scale."""

from __future__ import annotations

import numba
import numpy as np

import pzos
from testbed.unseen.instance import Cost, Draft, Vector, family
from testbed.unseen.parts import revenue

Rng = np.random.Generator


def paid(price: Vector, worth: Vector) -> Cost:
    """Return f = price.x + worth.y: what decisions cost, and what answers do."""
    return Cost(lambda x, y: float(price @ x + worth @ y), lambda x, y: (price, worth))


@numba.njit
def _in_a_row(arrivals: Vector, work: Vector, speed: Vector) -> Vector:
    """Return the mean wait at each of several stations in a row."""
    count, stations = work.shape
    wait, time = np.zeros(stations), arrivals.copy()
    for j in range(stations):
        free = 0.0
        for i in range(count):
            start = max(time[i], free)
            wait[j] += start - time[i]
            free = start + work[i, j] / speed[j]
            time[i] = free
    return wait / count


@family("tandem-6", "simulated", "tune")
def tandem_6(rng: Rng) -> Draft:
    """150 jobs through six stations in a row; the leader pays for speed and for waiting."""
    arrivals = np.cumsum(rng.exponential(1.0, 150))
    work = rng.exponential(1.0, (150, 6)) * (0.5 + rng.random(6))
    return Draft(paid(0.5 + rng.random(6), np.full(6, 2.0)), lambda x: _in_a_row(arrivals, work, x), np.full(6, 2.0),
                 pzos.Box(0.3, 8.0), search="jumps", rows=False)  # fmt: skip


@numba.njit
def _shared_out(arrivals: Vector, draw: Vector, work: Vector, shares: Vector) -> Vector:
    """Return the time spent in each of several queues, to which jobs are sent by their shares."""
    free, spent = np.zeros(shares.size), np.zeros(shares.size)
    for i in range(arrivals.size):
        k, below = 0, shares[0]
        while draw[i] >= below and k < shares.size - 1:
            k += 1
            below += shares[k]
        free[k] = max(arrivals[i], free[k]) + work[i, k]
        spent[k] += free[k] - arrivals[i]
    return spent / arrivals.size


@family("routes-8", "simulated", "tune")
def routes_8(rng: Rng) -> Draft:
    """400 messages, shared out among eight networks with prices of their own: a jump for each that changes sides."""
    arrivals, draw = np.cumsum(rng.exponential(1.0, 400)), rng.random(400)
    work = rng.exponential(1.0, (400, 8)) * (2.0 + 4.0 * rng.random(8))

    def respond(x: Vector) -> Vector:
        rows = [_shared_out(arrivals, draw, work, each) for each in np.atleast_2d(np.maximum(x, 0.0))]
        return np.array(rows).reshape(x.shape)

    return Draft(paid(15.0 * rng.random(8), 0.3 + 0.4 * rng.random(8)), respond, np.full(8, 1.0 / 8.0), pzos.Simplex(),
                 search="jumps", rows=False)  # fmt: skip


@numba.njit
def _stocked(order_at: float, up_to: float, demand: Vector, lead: Vector) -> Vector:
    """Return the mean backlog, the mean stock and the orders per period of an (s, S) policy."""
    periods = demand.size
    stock, ordered, coming = up_to, 0.0, np.zeros(periods + 40)
    backlog, held, orders = 0.0, 0.0, 0.0
    for t in range(periods):
        stock += coming[t] - demand[t]
        ordered -= coming[t]
        held += max(stock, 0.0)
        backlog += max(-stock, 0.0)
        if stock + ordered < order_at:
            amount = up_to - stock - ordered
            ordered += amount
            coming[t + 1 + lead[t]] += amount
            orders += 1.0
    return np.array([backlog, held, orders]) / periods


@family("stock-4", "simulated", "tune")
def stock_4(rng: Rng) -> Draft:
    """Two goods: when to order, and how much; late deliveries, backlogs, stock and orders cost."""
    demand = rng.exponential(1.0, (2, 300)) * (50.0 + 100.0 * rng.random((2, 1)))
    lead = np.minimum(rng.poisson(2.0 + 4.0 * rng.random((2, 1)), (2, 300)), 30)
    worth = np.column_stack([2.0 + 6.0 * rng.random(2), np.ones(2), 50.0 + 400.0 * rng.random(2)]).ravel()

    def respond(x: Vector) -> Vector:
        return np.concatenate([_stocked(x[2 * i], x[2 * i] + x[2 * i + 1], demand[i], lead[i]) for i in range(2)])

    return Draft(paid(np.zeros(4), worth), respond, np.full(4, 500.0), pzos.Box(1.0, 4000.0), search="jumps",
                 unit=1000.0, rows=False)  # fmt: skip


@numba.njit
def _answered(arrivals: Vector, kind: Vector, work: Vector, patience: Vector, staff: Vector) -> Vector:
    """Return the wait and the share of callers who gave up, for each kind of call."""
    free, wait, lost = np.zeros(staff.size), np.zeros(staff.size), np.zeros(staff.size)
    for i in range(arrivals.size):
        k = kind[i]
        waited = max(free[k] - arrivals[i], 0.0)
        if waited > patience[i]:
            lost[k] += 1.0
        else:
            wait[k] += waited
            free[k] = arrivals[i] + waited + work[i] / staff[k]
    return np.concatenate((wait, lost)) / arrivals.size


@family("calls-8", "simulated", "tune")
def calls_8(rng: Rng) -> Draft:
    """600 calls of eight kinds; who waits too long gives up. The leader pays for staff, waits and lost calls."""
    arrivals, kind = np.cumsum(rng.exponential(0.2, 600)), rng.choice(8, 600, p=rng.dirichlet(np.full(8, 3.0)))
    work, patience = rng.exponential(1.0, 600), rng.exponential(3.0, 600)
    worth = np.concatenate([np.full(8, 0.5), np.full(8, 5.0)])
    return Draft(paid(0.05 + 0.05 * rng.random(8), worth), lambda x: _answered(arrivals, kind, work, patience, x),
                 np.ones(8), pzos.Box(0.1, 6.0), search="jumps", rows=False)  # fmt: skip


@family("choices-6", "simulated", "tune")
def choices_6(rng: Rng) -> Draft:
    """400 people, each with tastes of their own, buy the one of six goods that is best for them, or none."""
    taste, worth, thrift = rng.gumbel(size=(400, 7)), 1.0 + 1.5 * rng.random(6), 0.6 + 0.8 * rng.random((400, 1))

    def respond(x: Vector) -> Vector:
        gain = taste + np.column_stack([worth - thrift * x, np.zeros(400)])
        return np.bincount(gain.argmax(axis=1), minlength=7)[:6] / 400.0

    return Draft(revenue(0.3 * rng.random(6)), respond, np.full(6, 0.6), pzos.Box(0.0, 5.0), search="jumps",
                 rows=False)  # fmt: skip


@numba.njit
def _infected(contacts: Vector, draw: Vector, luck: Vector, vaccinated: Vector, exposed: Vector) -> Vector:
    """Return how many of each of five groups fall ill, of ten for each person."""
    people, groups = luck.size, vaccinated.size
    state, total = np.zeros(people, numba.int64), np.zeros(groups)
    state[:28:7] = 1
    for t in range(draw.shape[0]):
        after = state.copy()
        for i in range(people):
            g, ill = i % groups, 0
            if state[i] == 0 and luck[i] > vaccinated[g]:
                for j in range(contacts.shape[1]):
                    ill += state[contacts[i, j]] == 1
                if draw[t, i] < 1.0 - (1.0 - 0.12 * exposed[g]) ** ill:
                    after[i] = 1
                    total[g] += 1.0
            elif state[i] == 1 and draw[t, i] < 0.25:
                after[i] = 2
        state = after
    return 10.0 * total / people


@family("outbreak-10", "simulated", "tune")
def outbreak_10(rng: Rng) -> Draft:
    """400 people in five groups who meet each other; vaccines and distance for each group cost money, illness more."""
    contacts, draw, luck = rng.integers(0, 400, (400, 8)), rng.random((30, 400)), rng.random(400)
    price = 0.3 + 0.5 * rng.random(10)
    cost = Cost(lambda x, y: float(price @ (x * x) + y.sum()), lambda x, y: (2.0 * price * x, np.ones(5)))
    return Draft(cost, lambda x: _infected(contacts, draw, luck, x[:5], 1.0 - 0.9 * x[5:]), np.full(10, 0.2),
                 pzos.Box(0.0, 1.0), search="jumps", rows=False)  # fmt: skip


@numba.njit
def _made(work: Vector, places: Vector, speed: Vector) -> float:
    """Return the time per piece of a line of machines with so many places between them; who finds none waits."""
    pieces, machines = work.shape
    done = np.zeros((pieces, machines))
    for i in range(pieces):
        for j in range(machines):
            start = done[i, j - 1] if j > 0 else 0.0
            if i > 0:
                start = max(start, done[i - 1, j])
            done[i, j] = start + work[i, j] / speed[j]
            if j < machines - 1 and i > int(places[j]):
                done[i, j] = max(done[i, j], done[i - 1 - int(places[j]), j + 1])
    return done[-1, -1] / pieces


@family("line-9", "simulated", "tune")
def line_9(rng: Rng) -> Draft:
    """Five machines and four buffers of whole places: one answer, the time per piece."""
    work = rng.exponential(1.0, (120, 5))
    price = np.concatenate([0.02 + 0.02 * rng.random(4), 0.3 + 0.3 * rng.random(5)])
    lower, upper = np.repeat([0.0, 0.3], [4, 5]), np.repeat([20.0, 5.0], [4, 5])
    return Draft(paid(price, np.array([6.0])), lambda x: np.array([_made(work, x[:4], x[4:])]),
                 np.repeat([2.5, 1.0], [4, 5]), pzos.Box(lower, upper), search="jumps", rows=False)  # fmt: skip


@numba.njit
def _rides(start: Vector, origin: Vector, target: Vector, end: Vector, bicycles: Vector) -> Vector:
    """Return the rides lost and the racks found full at each station."""
    stock, room = bicycles.copy(), 1.5 * bicycles + 5.0
    lost, full, riding = np.zeros(stock.size), np.zeros(stock.size), np.zeros(start.size, numba.boolean)
    for i in range(start.size):
        for k in range(max(0, i - 60), i):
            if riding[k] and end[k] <= start[i]:
                riding[k] = False
                if stock[target[k]] + 1.0 <= room[target[k]]:
                    stock[target[k]] += 1.0
                else:
                    full[target[k]] += 1.0
        if stock[origin[i]] >= 1.0:
            stock[origin[i]] -= 1.0
            riding[i] = True
        else:
            lost[origin[i]] += 1.0
    return np.concatenate((lost, full))


@family("bicycles-7", "simulated", "tune")
def bicycles_7(rng: Rng) -> Draft:
    """How many bicycles seven stations have in the morning, for 500 rides."""
    start = np.sort(rng.random(500))
    origin, target = (rng.choice(7, 500, p=rng.dirichlet(np.full(7, 2.0))) for _ in range(2))
    end = start + 0.02 + 0.05 * rng.random(500)
    worth = np.concatenate([np.full(7, 0.05), np.full(7, 0.035)])
    return Draft(paid((0.01 + 0.01 * rng.random(7)) / 3.0, worth), lambda x: _rides(start, origin, target, end, x),
                 np.full(7, 5.0), pzos.Box(0.0, 60.0), search="jumps", rows=False)  # fmt: skip
