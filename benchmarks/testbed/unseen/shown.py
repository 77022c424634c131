"""Families written by an examiner who did not know the method; these may be looked at, those of ``apart`` not."""

from __future__ import annotations

from itertools import combinations

import numba
import numpy as np

import pzos
from testbed.unseen.instance import Cost, Draft, Vector, family
from testbed.unseen.parts import disturbed, logistic, normal, softplus, tracking

Rng = np.random.Generator
History = list[Vector]


def bill(
    price: Vector, worth: Vector, curve: Vector | float = 0.0, bend: Vector | float = 0.0, usual: Vector | float = 0.0
) -> Cost:
    """Return f = price.x + curve |x - usual|^2/2 + worth.y + bend |y|^2/2, each entry with weights of its own."""

    def value(x: Vector, y: Vector) -> float:
        away = x - usual
        return float(price @ x + 0.5 * (curve * away * away).sum() + worth @ y + 0.5 * (bend * y * y).sum())

    return Cost(value, lambda x, y: (price + curve * (x - usual), worth + bend * y))


# Simulators


@numba.njit
def _sent(when: Vector, place: Vector, care: Vector, district: Vector, stands: Vector) -> Vector:
    """Return minutes waited and calls answered late in nine districts, both per call in all."""
    calls, free = when.size, np.zeros(stands.shape[0])
    answers = np.zeros(18)
    for i in range(calls):
        pick, shortest, drive = 0, np.inf, 0.0
        for k in range(free.size):
            way = np.sqrt((place[i, 0] - stands[k, 0]) ** 2 + (place[i, 1] - stands[k, 1]) ** 2)
            wait = max(free[k] - when[i], 0.0) + way
            if wait < shortest:
                pick, shortest, drive = k, wait, way
        free[pick] = when[i] + shortest + care[i] + drive
        answers[district[i]] += shortest
        answers[9 + district[i]] += shortest > 12.0
    return answers / calls


@family("ambulances-10", "simulated", "shown")
def ambulances_10(rng: Rng) -> Draft:
    """Where five ambulances wait for 300 calls of a region of 30 by 30 km; the one that is there first is sent."""
    towns = 3.0 + 24.0 * rng.random((6, 2))
    place = np.clip(towns[rng.integers(0, 6, 300)] + 3.5 * rng.standard_normal((300, 2)), 0.0, 29.9)
    when, care = np.cumsum(rng.exponential(14.0 + 10.0 * rng.random(), 300)), 20.0 + rng.exponential(20.0, 300)
    district = 3 * (place[:, 0] // 10.0).astype(np.int64) + (place[:, 1] // 10.0).astype(np.int64)
    garages = np.clip(15.0 + 4.0 * rng.standard_normal((5, 2)), 0.0, 30.0).ravel()
    worth = np.concatenate([0.5 + rng.random(9), 10.0 + 20.0 * rng.random(9)])
    cost = bill(np.zeros(10), worth, 0.002 + 0.006 * rng.random(10), 0.0, garages)
    return Draft(cost, lambda x: _sent(when, place, care, district, x.reshape(5, 2)), garages, pzos.Box(0.0, 30.0),
                 search="jumps", unit=10.0, rows=False)  # fmt: skip


@numba.njit
def _passed(time: Vector, begin: float, green: float, cycle: float) -> tuple[Vector, float]:
    """Return when vehicles pass a light that is green from ``begin`` in every cycle, and their mean delay."""
    out, last, delay = np.empty(time.size), -10.0, 0.0
    for i in range(time.size):
        t = max(time[i], last + 2.0)
        phase = (t - begin) % cycle
        if phase >= green:
            t += cycle - phase
        out[i] = last = t
        delay += t - time[i]
    return out, delay / time.size


@numba.njit
def _street(east: Vector, west: Vector, cross: Vector, drive: Vector, x: Vector) -> Vector:
    """Return the mean delays to the east, to the west, and across at five lights."""
    cycle, answers = x[0], np.zeros(15)
    begin = np.zeros(5)
    begin[1:] = x[1:5]
    green = x[5:] * cycle
    time = east
    for j in range(5):
        time, answers[j] = _passed(time, begin[j], green[j], cycle)
        if j < 4:
            time = time + drive[j]
    time = west
    for j in range(4, -1, -1):
        time, answers[5 + j] = _passed(time, begin[j], green[j], cycle)
        if j > 0:
            time = time + drive[j - 1]
    for j in range(5):
        answers[10 + j] = _passed(cross[j], begin[j] + green[j] + 3.0, cycle - green[j] - 6.0, cycle)[1]
    return answers


@family("signals-10", "simulated", "shown")
def signals_10(rng: Rng) -> Draft:
    """Five traffic lights of a main street: cycle, offsets and shares of green, for some 800 vehicles one by one."""
    east, west = np.cumsum(rng.exponential(4.5 + 2.0 * rng.random(), 240)), np.cumsum(rng.exponential(8.0, 150))
    cross = np.cumsum(rng.exponential(1.0, (5, 80)) * (8.0 + 8.0 * rng.random((5, 1))), axis=1)
    drive = 20.0 + 30.0 * rng.random(4)
    worth = np.concatenate([np.full(5, 2.0), np.full(5, 1.2), 0.4 + 0.5 * rng.random(5)])
    curve = np.concatenate([[0.01], np.zeros(4), np.full(5, 20.0)])
    x0 = np.concatenate([[80.0], np.zeros(4), np.full(5, 0.55)])
    lower, upper = np.repeat([40.0, -140.0, 0.25], [1, 4, 5]), np.repeat([140.0, 140.0, 0.75], [1, 4, 5])
    return Draft(bill(np.zeros(10), worth, curve, 0.0, x0), lambda x: _street(east, west, cross, drive, x), x0,
                 pzos.Box(lower, upper), search="jumps", unit=np.repeat([20.0, 20.0, 0.15], [1, 4, 5]),
                 rows=False)  # fmt: skip


@numba.njit
def _island(sun: Vector, wind: Vector, load: Vector, x: Vector) -> Vector:
    """Return unserved energy, fuel, starts, spilled energy and discharge of three weeks each."""
    answers, level, runs = np.zeros(15), 0.5 * x[2], False
    for t in range(load.size):
        week = 5 * (t * 3 // load.size)
        if not runs and level < x[4] * x[2]:
            runs = True
            answers[week + 2] += 1.0
        elif runs and level > (x[4] + x[5]) * x[2]:
            runs = False
        engine = x[3] if runs else 0.0
        answers[week + 1] += 0.08 * engine + (0.05 * x[3] if runs else 0.0)
        net = x[0] * sun[t] + x[1] * wind[t] + engine - load[t]
        if net > 0.0:
            taken = min(net, 0.3 * x[2], (x[2] - level) / 0.93)
            level += 0.93 * taken
            answers[week + 3] += net - taken
        else:
            given = min(-net, 0.3 * x[2], level)
            level -= given
            answers[week + 4] += given
            answers[week] += -net - given
    return answers


@family("microgrid-6", "simulated", "shown")
def microgrid_6(rng: Rng) -> Draft:
    """Panels, windmills, a battery, an engine and when it starts and stops, over three weeks of hours on an island."""
    hour = np.arange(504) % 24
    cloud = np.repeat(0.3 + 0.7 * rng.random(21), 24)
    sun = cloud * np.maximum(np.sin((hour - 6.0) / 12.0 * np.pi), 0.0)
    gust = np.cumsum(rng.standard_normal(504)) / 8.0
    wind = np.clip(0.35 + 0.3 * np.sin(gust + 6.0 * rng.random()) + 0.1 * rng.standard_normal(504), 0.0, 1.0)
    load = (80.0 + 40.0 * np.sin((hour - 12.0) / 12.0 * np.pi)) * (0.8 + 0.4 * rng.random(504))
    price = np.array([20.0, 30.0, 8.0, 12.0, 0.0, 0.0]) * (0.7 + 0.6 * rng.random(6))
    worth = np.tile(np.array([6.0, 2.0, 40.0, 0.0, 0.05]) * (0.7 + 0.6 * rng.random(5)), 3)
    curve = np.array([0.0, 0.0, 0.0, 0.0, 1e3, 1e3])
    x0 = np.array([150.0, 100.0, 300.0, 120.0, 0.3, 0.3])
    upper = np.array([1200.0, 800.0, 2500.0, 400.0, 0.6, 0.4])
    return Draft(bill(price, worth, curve, 0.0, x0), lambda x: _island(sun, wind, load, x), x0,
                 pzos.Box(np.repeat([0.0, 10.0, 0.0], [2, 2, 2]), upper), search="jumps",
                 unit=np.array([150.0, 100.0, 300.0, 60.0, 0.15, 0.15]), rows=False)  # fmt: skip


@numba.njit
def _admitted(day: Vector, ward: Vector, stay: Vector, planned: Vector, beds: Vector) -> Vector:
    """Return patients lodged elsewhere and turned away and days in bed of six wards, and operations made and put off.

    Patients of a negative ward are due for an operation, as far as there are so many a day.
    """
    until, answers, done = np.zeros((6, 80)), np.zeros(20), 0.0
    for i in range(day.size):
        home = ward[i]
        if home < 0:
            if done + 1.0 > beds[6] * day[i]:
                continue
            home = -1 - home
            done += 1.0
        placed = False
        for turn in range(3):
            k = home if turn == 0 else (home + 2 * turn - 1) % 6
            for b in range(min(int(beds[k]), 80)):
                if until[k, b] <= day[i]:
                    length = stay[i] * (1.0 if turn == 0 else 1.3)
                    until[k, b] = day[i] + length
                    answers[12 + k] += length
                    placed = True
                    break
            if placed:
                answers[home] += turn > 0
                answers[18] += ward[i] < 0
                break
        if not placed:
            answers[19 if ward[i] < 0 else 6 + home] += 1.0
    return answers / planned


@family("wards-7", "simulated", "shown")
def wards_7(rng: Rng) -> Draft:
    """Beds in six wards and operations a day, for 900 patients; a full ward sends them to others, or away."""
    day = np.sort(60.0 * rng.random(900))
    ward = rng.choice(6, 900, p=rng.dirichlet(np.full(6, 6.0)))
    ward = np.where(rng.random(900) < 0.4, -1 - ward, ward)
    stay = rng.gamma(2.0, 1.0, 900) * (1.5 + 2.0 * rng.random(6))[np.where(ward < 0, -1 - ward, ward)]
    worth = np.concatenate([0.5 + rng.random(6), 3.0 + 4.0 * rng.random(6), np.zeros(6), [-3.0, 2.0]]) * 10.0
    price = np.append(0.5 + 0.4 * rng.random(6), 0.4)
    return Draft(bill(price, worth, 0.01), lambda x: _admitted(day, ward, stay, 60.0, x),
                 np.append(np.full(6, 9.5), 2.5), pzos.Box(np.zeros(7), np.append(np.full(6, 40.0), 12.0)),
                 search="jumps", unit=np.append(np.full(6, 5.0), 2.0), rows=False)  # fmt: skip


@numba.njit
def _driven(
    when: Vector, ways: Vector, offer: Vector, patience: Vector, far: Vector, start: Vector, fare: Vector
) -> Vector:
    """Return kilometres sold, riders lost for want of a taxi, and minutes waited, in each zone."""
    zones, at, free = fare.size, start.copy(), np.zeros(start.size)
    answers, heat = np.zeros(3 * zones), np.zeros(zones)
    for i in range(when.size):
        here, there = ways[i, 0], ways[i, 1]
        length = far[here, there] + 1.0
        heat *= 0.97
        heat[here] += 1.0
        if fare[here] > offer[i]:
            continue
        pick, soonest = -1, patience[i]
        for k in range(at.size):
            wait = max(free[k] - when[i], 0.0) + 2.0 * far[at[k], here]
            if wait < soonest:
                pick, soonest = k, wait
        if pick < 0:
            answers[zones + here] += 1.0
            continue
        answers[here] += length
        answers[2 * zones + here] += soonest
        free[pick] = when[i] + soonest + 2.0 * length
        best, most = there, -1.0
        for z in range(zones):  # where to wait for the next one
            hope = fare[z] * heat[z] / (1.0 + far[there, z])
            if hope > most:
                best, most = z, hope
        free[pick] += 2.0 * far[there, best]
        at[pick] = best
    return answers / when.size


@family("taxis-8", "simulated", "shown")
def taxis_8(rng: Rng) -> Draft:
    """Fares per kilometre in eight zones; 25 drivers go where fares and calls are, 600 riders have limits."""
    zone = 8.0 * rng.random((8, 2))
    far = np.linalg.norm(zone[:, None] - zone[None], axis=2)
    when = np.cumsum(rng.exponential(0.9, 600))
    ways = np.column_stack([rng.choice(8, 600, p=rng.dirichlet(np.full(8, 2.0))) for _ in range(2)])
    offer = rng.gamma(6.0, 1.0, 600) * (0.3 + 0.3 * rng.random(8))[ways[:, 0]]
    patience, start = 5.0 + rng.exponential(10.0, 600), rng.integers(0, 8, 25)
    lost = np.concatenate([np.zeros(8), 2.0 + 3.0 * rng.random(8), 0.1 + 0.2 * rng.random(8)])
    part, usual = 0.5 + 0.3 * rng.random(), np.full(8, 1.5)

    def value(x: Vector, y: Vector) -> float:
        return float(-part * (x - 0.3) @ y[:8] + lost @ y + 0.005 * ((x - usual) ** 2).sum())

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        grad_y = lost.copy()
        grad_y[:8] -= part * (x - 0.3)
        return -part * y[:8] + 0.01 * (x - usual), grad_y

    return Draft(Cost(value, gradients), lambda x: _driven(when, ways, offer, patience, far, start, x), usual,
                 pzos.Box(0.3, 8.0), search="jumps", rows=False)  # fmt: skip


# Kinks


@numba.njit
def _cleared(low: Vector, slope: Vector, limit: Vector, demand: float, elastic: float) -> float:
    """Return the price at which supplies clip((p - low)/slope, 0, limit) meet demand - elastic p."""
    points = np.sort(np.concatenate((low, low + slope * limit)))
    before, excess_before = points[0] - 1.0, elastic * (points[0] - 1.0) - demand
    if excess_before >= 0.0:
        return demand / elastic
    for p in points:
        excess = elastic * p - demand
        for i in range(low.size):
            excess += min(max((p - low[i]) / slope[i], 0.0), limit[i])
        if excess >= 0.0:
            return before + (p - before) * excess_before / (excess_before - excess)
        before, excess_before = p, excess
    return (demand - limit.sum()) / elastic


@family("dispatch-10", "kinked", "shown")
def dispatch_10(rng: Rng) -> Draft:
    """Levies on ten sorts of power plants; 24 plants with limits meet a low and a high demand at clearing prices."""
    sort = np.concatenate([np.arange(10), rng.integers(0, 10, 14)])
    low, slope = (10.0 + 40.0 * rng.random(10))[sort] + 5.0 * rng.random(24), 1.0 + 3.0 * rng.random(24)
    limit, dirt = 3.0 + 8.0 * rng.random(24), np.maximum(25.0 * rng.random(10) - 5.0, 0.0)[sort]
    share = 0.45 + 0.2 * rng.random()
    demand, elastic = limit.sum() * np.array([0.6 * share, 1.2 * share]), 0.2 + 0.2 * rng.random(2)
    one = np.zeros((24, 10))
    one[np.arange(24), sort] = 1.0
    back = 0.8

    def respond(x: Vector) -> Vector:
        ask, parts, prices = low + x[sort], [], []
        for t in range(2):
            price = _cleared(ask, slope, limit, demand[t], elastic[t])
            parts.append(np.clip((price - ask) / slope, 0.0, limit))
            prices.append(price)
        return np.concatenate([*parts, prices])

    def value(x: Vector, y: Vector) -> float:
        made, price = y[:24] + y[24:48], y[48:]
        return float((dirt - back * x[sort]) @ made + demand @ price - 0.5 * elastic @ price**2 + 0.1 * (x @ x))

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        made, price = y[:24] + y[24:48], y[48:]
        each = dirt - back * x[sort]
        return -back * made @ one + 0.2 * x, np.concatenate([each, each, demand - elastic * price])

    return Draft(Cost(value, gradients), respond, np.full(10, 3.0), pzos.Box(-40.0, 40.0), search="kinked", unit=10.0,
                 rows=False)  # fmt: skip


@numba.njit
def _resting(load: Vector, floor: Vector, stiff: float) -> Vector:
    """Return a string with both ends fixed at 0, under a load and above a floor: active sets, then a sweep each."""
    n = load.size
    lies, u = np.zeros(n, numba.boolean), np.zeros(n)
    upper, right = np.zeros(n), np.zeros(n)
    for _ in range(80):
        for i in range(n):
            side = 0.0 if lies[i] else -stiff
            middle, value = (1.0, floor[i]) if lies[i] else (2.0 * stiff, load[i])
            if i > 0:
                middle -= side * upper[i - 1]
                value -= side * right[i - 1]
            upper[i], right[i] = side / middle, value / middle
        u[n - 1] = right[n - 1]
        for i in range(n - 2, -1, -1):
            u[i] = right[i] - upper[i] * u[i + 1]
        changed = False
        for i in range(n):
            before = u[i - 1] if i > 0 else 0.0
            after = u[i + 1] if i < n - 1 else 0.0
            pushed = stiff * (2.0 * u[i] - before - after) - load[i]  # by the floor
            down = pushed > 1e-12 if lies[i] else u[i] < floor[i] - 1e-12
            if down != lies[i]:
                lies[i], changed = down, True
        if not changed:
            break
    return u


@family("string-8", "kinked", "shown")
def string_8(rng: Rng) -> Draft:
    """Eight magnets lift a heavy band off an uneven floor; its 40 heights are to follow a line."""
    where = (np.arange(40) + 1.0) / 41.0
    centre = (np.arange(8) + 0.5 + 0.3 * (rng.random(8) - 0.5)) / 8.0
    lift = 6.0 * np.exp(-0.5 * ((where[:, None] - centre) / (0.04 + 0.03 * rng.random(8))) ** 2)
    floor = -0.06 - 0.06 * rng.random() + 0.08 * np.sin(2.0 * np.pi * (2.0 + rng.random()) * where + 6.0 * rng.random())
    weight = -6.0 - 3.0 * rng.random(40)
    stiff = (0.8 + 0.4 * rng.random()) * 41.0**2

    def respond(x: Vector) -> Vector:
        return _resting(weight + lift @ x, floor, stiff)

    wish = respond(0.6 + 1.1 * rng.standard_normal(8)) + 0.015 * rng.standard_normal(40)
    return Draft(tracking(wish, np.zeros(8), 0.0005), respond, np.full(8, 1.2), search="kinked", rows=False)


@family("reservoirs-12", "kinked", "shown")
def reservoirs_12(rng: Rng) -> Draft:
    """Releases planned for two reservoirs, one above the other, in six seasons of two months: some water spills."""
    season = np.sin(2.0 * np.pi * (np.arange(12) / 12.0 + rng.random()))
    inflow = np.stack([(4.0 + 3.0 * season) * (0.6 + 0.8 * rng.random(12)), 1.0 + rng.random(12)])
    full, start = np.array([12.0, 8.0]) * (0.7 + 0.6 * rng.random(2)), np.array([6.0, 4.0])
    price = 3.0 + 2.0 * rng.random(12) - 1.5 * season

    def respond(x: Vector) -> Vector:
        stock, made, spilled = [np.full(x.shape[:-1], s) for s in start], [], []
        for t in range(12):
            above = 0.0
            for k in range(2):
                water = stock[k] + inflow[k, t] + above
                out = np.minimum(np.maximum(x[..., 6 * k + t // 2], 0.0), water)
                over = np.maximum(water - out - full[k], 0.0)
                stock[k], above = water - out - over, out + over
                made.append(out)
                spilled.append(over)
        return np.stack([*made, *spilled, *stock], axis=-1)

    earned = np.repeat(price, 2) * np.tile([0.6, 1.0], 12)
    worth = np.concatenate([-earned, np.full(24, 0.5), -price.mean() * np.array([1.3, 0.7])])
    bend = np.concatenate([np.repeat(0.25 + 0.2 * rng.random(2), 12), 0.6 + 0.8 * rng.random(24), [0.08, 0.1]])
    x0 = np.repeat([3.0, 4.5], 6)
    return Draft(bill(np.zeros(12), worth, 0.1, bend, x0), respond, x0, pzos.Nonnegative(), search="kinked",
                 unit=3.0)  # fmt: skip


@numba.njit
def _invested(wish: Vector, spread: Vector, money: Vector) -> Vector:
    """Return what each investor puts into each fund: shares max((wish - level)/spread, 0), the level free of risk 0."""
    answers = np.zeros(wish.shape)
    for k in range(money.size):
        order = np.argsort(-wish[k])
        above, below, level = 0.0, 0.0, 0.0
        for j in order:  # the level at which the shares of the best funds add up to 1
            if wish[k, j] <= level:
                break
            above += wish[k, j] / spread[k, j]
            below += 1.0 / spread[k, j]
            level = max((above - 1.0) / below, 0.0)
        for j in range(wish.shape[1]):
            answers[k, j] = money[k] * max((wish[k, j] - level) / spread[k, j], 0.0)
    return answers


@family("fees-9", "kinked", "shown")
def fees_9(rng: Rng) -> Draft:
    """Yearly fees of nine funds; six sorts of investors divide their money among them and what bears nothing."""
    gain, risk = 1.0 + 2.0 * rng.random(9), 1.0 + 2.0 * rng.random(9)
    view = gain + 0.6 * rng.standard_normal((6, 9))
    spread, money = (1.0 + 5.0 * rng.random((6, 1))) * risk, 0.5 + 2.0 * rng.random(6)
    handling = 0.1 + 0.3 * rng.random(9)

    def value(x: Vector, y: Vector) -> float:
        return float(-(x - handling) @ y.reshape(6, 9).sum(axis=0))

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        return -y.reshape(6, 9).sum(axis=0), np.tile(handling - x, 6)

    return Draft(Cost(value, gradients), lambda x: _invested(view - x, spread, money).ravel(), np.full(9, 0.5),
                 pzos.Box(0.0, 6.0), search="kinked", rows=False)  # fmt: skip


@family("milestones-11", "kinked", "shown")
def milestones_11(rng: Rng) -> Draft:
    """How sixteen teams are divided among eleven crews; 28 tasks wait for each other and for deliveries."""
    crew = np.concatenate([np.arange(11), rng.integers(0, 11, 17)])[rng.permutation(28)]
    work = 2.0 + 6.0 * rng.random(28)
    before = [rng.choice(j, min(j, 2), replace=False) for j in range(28)]
    delivery = np.where(rng.random(28) < 0.25, 25.0 * rng.random(28), 0.0)
    seen = np.array([12, 16, 20, 23, 25, 27])

    def respond(x: Vector) -> Vector:
        ends: list[Vector] = []
        for j in range(28):
            start = np.full(x.shape[:-1], delivery[j])
            for i in before[j]:
                start = np.maximum(start, ends[i])
            ends.append(start + work[j] / (0.2 + x[..., crew[j]]))
        return np.stack([ends[j] for j in seen], axis=-1)

    due = respond(np.full(11, 1.4)) * (0.7 + 0.4 * rng.random(6))
    price, fine = 0.5 + rng.random(11), 1.0 + 2.0 * rng.random(6)
    return Draft(
        Cost(
            lambda x, y: float(price @ x + 0.05 * (x @ x) + fine @ softplus(y - due)),
            lambda x, y: (price + 0.1 * x, fine * logistic(y - due)),
        ),
        respond, np.ones(11), pzos.Budget(16.0), search="kinked",
    )  # fmt: skip


# Jumps


def _corners(use: Vector, stock: Vector) -> Vector:
    """Return all corners of {z >= 0: use z <= stock}."""
    m, n = use.shape
    table, found = np.hstack([use, np.eye(m)]), []
    for basis in map(list, combinations(range(n + m), m)):
        part = table[:, basis]
        if abs(np.linalg.det(part)) > 1e-9:
            z = np.linalg.solve(part, stock)
            if z.min() >= -1e-9:
                corner = np.zeros(n + m)
                corner[basis] = np.maximum(z, 0.0)
                found.append(corner[:n])
    return np.array(found)


@family("plants-8", "jumps", "shown")
def plants_8(rng: Rng) -> Draft:
    """Bonuses, or levies, on eight products; five plants follow a linear program of three scarce means."""
    plants = [_corners(0.2 + rng.random((3, 8)) * (rng.random((3, 8)) < 0.8), 2.0 + 2.0 * rng.random(3))
              for _ in range(5)]  # fmt: skip
    margin = 1.0 + 0.5 * rng.random((5, 8))

    def respond(x: Vector) -> Vector:
        rows = np.atleast_2d(x)
        made = [corners[((rows + margin[k]) @ corners.T).argmax(axis=1)] for k, corners in enumerate(plants)]
        return np.concatenate(made, axis=1).reshape(*x.shape[:-1], 40)

    need = np.mean([respond(0.5 * rng.standard_normal(8)).reshape(5, 8).sum(axis=0) for _ in range(4)], axis=0)
    weight, strain = 0.6 + 0.6 * rng.random(8), 0.1  # of a bonus, what it costs to raise the money

    def value(x: Vector, y: Vector) -> float:
        made = y.reshape(5, 8).sum(axis=0)
        return float(strain * (x @ made) + 0.5 * weight @ (made - need) ** 2 + 0.5 * (x @ x))

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        made = y.reshape(5, 8).sum(axis=0)
        return strain * made + x, np.tile(strain * x + weight * (made - need), 5)

    return Draft(Cost(value, gradients), respond, np.zeros(8), pzos.Box(-1.0, 3.0), search="jumps", unit=0.5)


@numba.njit
def _adopted(doubt: Vector, region: Vector, friends: Vector, peer: float, grant: Vector) -> Vector:
    """Return how many of each region have adopted after two rounds, after five, and in the end, of a hundred."""
    people, regions = doubt.size, grant.size
    has, answers = np.zeros(people, numba.boolean), np.zeros(3 * regions)
    for t in range(40):
        after, changed = has.copy(), False
        for i in range(people):
            if not has[i]:
                near = 0.0
                for j in range(friends.shape[1]):
                    near += has[friends[i, j]]
                if grant[region[i]] + peer * near / friends.shape[1] > doubt[i]:
                    after[i], changed = True, True
        has = after
        if t == 1 or t == 4:
            for i in range(people):
                answers[(0 if t == 1 else regions) + region[i]] += has[i]
        if not changed and t > 4:
            break
    for i in range(people):
        answers[2 * regions + region[i]] += has[i]
    return 100.0 * answers / people


@family("cascade-6", "jumps", "shown")
def cascade_6(rng: Rng) -> Draft:
    """Grants for heat pumps in six regions; 240 owners adopt for money, and because neighbours have done so."""
    region = np.sort(rng.integers(0, 6, 240))
    doubt = 0.3 + rng.gamma(4.0, 0.35, 240) * (0.7 + 0.6 * rng.random(6))[region]
    friends = np.where(rng.random((240, 6)) < 0.8, (np.arange(240)[:, None] + rng.integers(-12, 13, (240, 6))) % 240,
                       rng.integers(0, 240, (240, 6)))  # fmt: skip
    peer = 0.8 + 0.8 * rng.random()
    worth = np.concatenate([np.full(6, 0.2), np.full(6, 0.3), 0.6 + 0.7 * rng.random(6)])

    def value(x: Vector, y: Vector) -> float:
        return float(x @ y[12:] - worth @ y + 0.5 * (x @ x))

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        grad_y = -worth
        grad_y[12:] += x
        return y[12:] + x, grad_y

    return Draft(Cost(value, gradients), lambda x: _adopted(doubt, region, friends, peer, x), np.full(6, 0.8),
                 pzos.Box(0.0, 3.0), search="jumps", unit=0.5, rows=False)  # fmt: skip


@family("cartons-5", "jumps", "shown")
def cartons_5(rng: Rng) -> Draft:
    """Prices of three goods, a fee per delivery and a discount from four cartons on; 40 shops order whole cartons."""
    need, limit = rng.gamma(3.0, 4.0, (40, 3)), 4.0 + 6.0 * rng.random(3) + rng.gamma(4.0, 1.0, (40, 3))
    holding, cartons = 1.0 + 3.0 * rng.random((40, 1, 1)), np.arange(1.0, 13.0)
    making, drive = 2.0 + 2.0 * rng.random(3), 6.0 + 6.0 * rng.random()

    def respond(x: Vector) -> Vector:
        price = x[:3, None] * (1.0 - x[4] * (cartons >= 4.0))
        yearly = need[..., None] * (price + x[3] / cartons) + holding * cartons
        best = yearly.argmin(axis=2)
        buys = np.take_along_axis(yearly, best[..., None], 2)[..., 0] < limit * need
        sold = np.where(buys, need, 0.0)
        much, trips = np.where(best >= 3, sold, 0.0), np.where(buys, np.ceil(need / cartons[best]), 0.0)
        return np.concatenate([sold.sum(axis=0), much.sum(axis=0), trips.sum(axis=0)]) / 40.0

    def value(x: Vector, y: Vector) -> float:
        return float(-(x[:3] - making) @ y[:3] + x[4] * (x[:3] @ y[3:6]) - (x[3] - drive) * y[6:].sum())

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        grad_x = np.concatenate([-y[:3] + x[4] * y[3:6], [-y[6:].sum(), x[:3] @ y[3:6]]])
        return grad_x, np.concatenate([making - x[:3], x[4] * x[:3], np.full(3, drive - x[3])])

    lower, upper = np.array([1.0, 1.0, 1.0, 0.0, 0.0]), np.array([20.0, 20.0, 20.0, 40.0, 0.5])
    return Draft(Cost(value, gradients), respond, np.array([5.0, 5.0, 5.0, 4.0, 0.02]), pzos.Box(lower, upper),
                 search="jumps", unit=np.array([3.0, 3.0, 3.0, 5.0, 0.05]), rows=False)  # fmt: skip


# Noise


@family("fields-8", "noise", "shown")
def fields_8(rng: Rng) -> Draft:
    """Eight means for twelve trial fields in kg per hectare, too much of which harms; weights are off by 4 %."""
    rich, need = 30.0 + 60.0 * rng.random((12, 8)), 0.012 + 0.02 * rng.random((12, 8))
    harm, most = 2e-6 * rng.random((12, 8)) + 5e-7, 6.0 + 6.0 * rng.random(12)

    def respond(x: Vector) -> Vector:
        at = x[..., None, :]
        return most * (1.0 - np.exp(-need * (at + rich))).prod(axis=-1) * np.exp(-(harm * at * at).sum(axis=-1))

    draft = Draft(bill(0.02 + 0.04 * rng.random(8), -0.5 - rng.random(12), 1e-4), respond, np.full(8, 20.0),
                  pzos.Box(0.0, 300.0), unit=50.0)  # fmt: skip
    return disturbed(draft, lambda y, x, draw, before: y * np.exp(0.04 * draw.standard_normal(y.size)))


@family("assay-6", "noise", "shown")
def assay_6(rng: Rng) -> Draft:
    """Doses of six reagents in powers of ten; fifteen markers of a cell, read with heavy-tailed errors."""
    into, first = 1.3 * normal(rng, 10, 6), 0.3 * rng.standard_normal(10)
    onward, second = 2.2 * normal(rng, 15, 10), 0.5 * rng.standard_normal(15)

    def respond(x: Vector) -> Vector:
        inner = logistic(2.3 * (x @ into.T + first))
        return 100.0 * logistic(2.0 * ((2.0 * inner - 1.0) @ onward.T) + second)

    wish = respond(rng.standard_normal(6)) + 4.0 * rng.standard_normal(15)
    draft = Draft(tracking(wish, np.zeros(6), 1.0, 0.02), respond, 0.8 * rng.standard_normal(6))
    return disturbed(draft, lambda y, x, draw, before: y + 0.8 * draw.standard_t(2.2, y.size))


@family("rooms-9", "noise", "shown")
def rooms_9(rng: Rng) -> Draft:
    """Heat for nine rooms, whose people open windows; 14 sensors, one of which reads 85 or 0 degrees now and then."""
    link = np.triu(rng.random((9, 9)) < 0.35, 1) * (0.1 + 0.3 * rng.random((9, 9)))
    link = link + link.T
    loss, outside = 0.08 + 0.1 * rng.random(9), 2.0 + 6.0 * rng.random()
    inverse = np.linalg.inv(np.diag(loss + link.sum(axis=1)) - link)
    likes, own = 20.5 + 2.0 * rng.random(9), 0.3 * rng.random(9)
    mix = np.vstack([np.eye(9), rng.dirichlet(np.full(9, 0.4), 5)])

    def respond(x: Vector) -> Vector:
        warm = np.full(x.shape, 20.0)
        for _ in range(80):  # windows: the warmer, the more heat goes out
            lost = 0.06 * softplus(1.5 * (warm - likes)) / 1.5
            warm = 0.5 * warm + 0.5 * (outside + (x + own - lost) @ inverse)
        return warm @ mix.T

    target = np.full(14, 21.0) + np.append(1.5 * rng.standard_normal(9), np.zeros(5))
    price = 3.0 + 3.0 * rng.random(9)
    draft = Draft(
        Cost(
            lambda x, y: float(price @ x + 0.5 * (x @ x) + ((y - target) ** 2).sum()),
            lambda x, y: (price + x, 2.0 * (y - target)),
        ),
        respond, np.full(9, 0.9), pzos.Box(0.0, 6.0),
    )  # fmt: skip

    def disturb(y: Vector, x: Vector, draw: Rng, before: History) -> Vector:
        read = y + 0.05 * draw.standard_normal(14)
        if draw.random() < 0.04:
            read[draw.integers(14)] = draw.choice([0.0, 85.0])
        return read

    return disturbed(draft, disturb)


# Smooth


@family("reactor-5", "smooth", "shown")
def reactor_5(rng: Rng) -> Draft:
    """Kelvin, pascal, mol per cubic metre, cubic metres per second, kilograms: a stirred tank with a side product."""
    speed, side = 4.0 + 3.0 * rng.random(), 0.25 + 0.3 * rng.random()
    decay, size = 0.3 + 0.3 * rng.random(), 0.4 + 0.4 * rng.random()
    hot = 55.0 + 30.0 * rng.random(3)

    def respond(x: Vector) -> Vector:
        heat, press, feed, flow, mass = np.moveaxis(x, -1, 0)
        warmth = 100.0 * (heat - 350.0) / heat  # 1/T by Arrhenius
        active = mass / 2e-2 * np.sqrt(press / 2e5)
        tau = size / flow  # seconds
        one = 1e-3 * speed * active / (1.0 + 0.3 * active) * np.exp(warmth * hot[0] / 4e2)
        two = 1e-3 * decay * np.exp(warmth * hot[1] / 3.5e2)
        pair = 1e-6 * side * np.exp(warmth * hot[2] / 3.5e2)
        lead = 1.0 + one * tau
        left = 2.0 * feed / (lead + np.sqrt(lead * lead + 8.0 * pair * tau * feed))
        good = one * tau * left / (1.0 + two * tau)
        bad, twin = two * tau * good, pair * tau * left * left
        duty = flow * (4e6 * (heat - 300.0) / 50.0 + 6e4 * feed)
        return np.stack([left, good, bad, twin, duty, 5e-8 * press * mass * np.exp(0.02 * (heat - 350.0))], axis=-1)

    gold, glut = 4.0 + 2.0 * rng.random(), 5.0 + 5.0 * rng.random()  # a price that falls with what is sold
    waste, steam, pump, metal = 1.0 + rng.random(), 2e-6 * (1.0 + rng.random()), 8e-7 * (1.0 + rng.random()), 6.0

    def value(x: Vector, y: Vector) -> float:
        sold = x[3] * y[1]
        spent = x[3] * (0.6 * x[2] + waste * (y[2] + 2.0 * y[3]) + 0.2 * y[0])
        return float(-gold * sold + 0.5 * glut * sold**2 + spent + steam * y[4] + pump * x[1] + metal * x[4] + y[5])

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        price = glut * x[3] * y[1] - gold
        flow = price * y[1] + 0.6 * x[2] + waste * (y[2] + 2.0 * y[3]) + 0.2 * y[0]
        grad_y = np.array([0.2 * x[3], price * x[3], waste * x[3], 2.0 * waste * x[3], steam, 1.0])
        return np.array([0.0, pump, 0.6 * x[3], flow, metal]), grad_y

    lower, upper = np.array([300.0, 5e4, 50.0, 1e-4, 1e-3]), np.array([450.0, 2e6, 5e3, 2e-2, 2e-1])
    return Draft(Cost(value, gradients), respond, np.array([340.0, 1.5e5, 600.0, 1e-3, 1e-2]), pzos.Box(lower, upper),
                 unit=np.array([20.0, 1e5, 300.0, 5e-4, 1e-2]))  # fmt: skip


@family("bonuses-9", "smooth", "shown")
def bonuses_9(rng: Rng) -> Draft:
    """Bonuses of nine teams; 24 people choose their efforts by what they are paid and what others do, to a rest."""
    team = np.concatenate([np.arange(9), rng.integers(0, 9, 15)])
    one = np.zeros((24, 9))
    one[np.arange(24), team] = 1.0
    keen, taste = 0.8 + rng.random(24), rng.standard_normal(24) - 0.8
    social = 0.55 * normal(rng, 24, 24)
    social /= max(1.0, float(np.abs(social).sum(axis=1).max()) / 0.8)
    goods = rng.random((5, 24)) * (rng.random((5, 24)) < 0.5)
    worth = 8.0 + 8.0 * rng.random(5)

    def respond(x: Vector) -> Vector:
        paid, effort = taste + keen * x[..., team], np.zeros((*x.shape[:-1], 24))
        for _ in range(120):
            effort = softplus(paid + effort @ social.T)
        return effort

    def value(x: Vector, y: Vector) -> float:
        return float(x[team] @ y - worth @ np.log1p(goods @ y) + 0.05 * (x @ x))

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        return y @ one + 0.1 * x, x[team] - (worth / (1.0 + goods @ y)) @ goods

    return Draft(Cost(value, gradients), respond, np.full(9, 0.3))
