"""
Two bridges and a ring road in UNsim
====================================

Everybody drives from the suburb to the centre: over the old bridge, over the new bridge, or round the town by the ring
road, which takes 280 seconds more than the one and 180 more than the other while nobody queues. Each bridge ends in a
narrow street. `UNsim <https://github.com/toruseo/UNsim>`_ (``pip install "pzos[suite-unsim]"``) simulates the flows and
the queues minute by minute; most drivers take what looks shortest as they reach the fork. The town may toll the two
bridges and wants all trips together to take less time.

With UNsim 0.13 this page printed (vehicle hours)::

    no tolls                                 690
    one toll, the best of 100 to 500 s       524
    pzos, 60 queries: 279 and 180 s          461
    the same, for the half hour of the peak  432
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import unsim
from unsim.unsim_diff import simulate_duo, world_to_jax

import pzos

# %%
# The town
# --------
# A hundred minutes; in the half hour from minute 20 on, half as many again set out as the narrow streets let through.

world = unsim.World(tmax=6000.0, route_choice="duo_logit", logit_temperature=60.0, print_mode=0, save_mode=0)
for node in ("suburb", "fork", "old end", "new end", "join", "centre"):
    world.addNode(node)
for name, start, end, metres, speed, capacity in (
    ("approach", "suburb", "fork", 1800, 20, 1.8),  # metres a second, vehicles a second
    ("old bridge", "fork", "old end", 2700, 15, 1.0),
    ("old street", "old end", "join", 900, 15, 0.4),
    ("new bridge", "fork", "new end", 4200, 15, 1.0),
    ("new street", "new end", "join", 900, 15, 0.4),
    ("ring road", "fork", "join", 13000, 25, 1.8),
    ("avenue", "join", "centre", 900, 15, 2.0),
):
    density = 0.2 if "street" in name else 0.4 if "bridge" in name else 0.6
    world.addLink(name, start, end, metres, free_flow_speed=speed, jam_density=density, capacity=capacity)
for begin, end, flow in ((0, 1200, 0.35), (1200, 3000, 1.2), (3000, 4800, 0.35)):
    world.adddemand("suburb", "centre", begin, end, flow=flow)
world.finalize_scenario()
params, config = world_to_jax(world)  # tolls may change every five minutes
names = [link.name for link in world.LINKS]
BRIDGES = jnp.array([names.index("old bridge"), names.index("new bridge")])
PERIODS = config.n_toll_steps


@jax.jit
def vehicles(tolls):
    """Simulate tolls per bridge and period: vehicles on each road, minute by minute, and those who wait to set out."""
    state = simulate_duo(params._replace(toll=params.toll.at[BRIDGES].set(tolls)), config)
    inside = (state.cum_arrival - state.cum_departure)[:, : config.tsize]
    return jnp.vstack([inside, state.demand_queue_history.sum(axis=0)[: config.tsize]])


def drivers(x):
    """Answer a query: the vehicle hours on each road in each period, with these two tolls all the time."""
    found = np.asarray(vehicles(jnp.tile(jnp.asarray(x)[:, None], (1, PERIODS))), dtype=float)
    return found.reshape(len(found), PERIODS, -1).sum(axis=2).ravel() * config.deltat / 3600.0


# %%
# The decision
# ------------
# Two tolls, in seconds. One toll for both bridges is the obvious heuristic, and the search begins at the best of five:
# at x0 = 0 the queue is so long that a small toll changes little.

leader = pzos.leader_from_functions(
    lambda x, y: float(y.sum()), lambda x, y: np.zeros(2), lambda x, y: np.ones(y.size), name="vehicle hours"
)
single = min((np.full(2, toll) for toll in (100.0, 200.0, 300.0, 400.0, 500.0)), key=lambda x: drivers(x).sum())
problem = pzos.Problem(leader, drivers, single, pzos.Box(0.0, 600.0), name="two bridges")
result = pzos.solve(problem, queries=60, seed=0, progress=False, certificate=False)

# %%
# What it gives
# -------------
# The tolls found are what the way round takes longer: they replace the queue that would have kept drivers off the
# bridges. Outside the peak there is no queue to replace, so the last line lifts them there, by hand.

period = 5 * np.arange(PERIODS)  # minutes
in_peak = np.where((period >= 20) & (period < 50), result.best_x[:, None], 0.0)
for name, value in (
    ("no tolls", drivers(np.zeros(2)).sum()),
    ("one toll, the best of 100 to 500 s", drivers(single).sum()),
    (f"pzos, 60 queries: {result.best_x[0]:.0f} and {result.best_x[1]:.0f} s", drivers(result.best_x).sum()),
    ("the same, for the half hour of the peak", float(vehicles(in_peak).sum()) * config.deltat / 3600.0),
):
    print(f"{name:<40}{value:>4.0f}")
certificate = result.certify(problem, delta=10.0, at="best", queries=33)
print(
    f"with {certificate.confidence:.0%} confidence, averaged over all tolls within 10 s of these, no direction "
    f"promises more than {10.0 * certificate.partial.upper:.1f} vehicle hours for tolls moved by 10 s"
)

# %%
# Before and after
# ----------------
# Without tolls both bridges fill up before anybody takes the ring road; with tolls drivers take it as the peak begins.

figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
minutes = np.arange(config.tsize) * config.deltat / 60.0
before = np.asarray(vehicles(jnp.zeros((2, PERIODS))))
after = np.asarray(vehicles(in_peak))
for axes, found, title in zip(panels, (before, after), ("no tolls", "tolls in the peak"), strict=True):
    axes.axvspan(20, 50, color="0.93")
    for road, colour, style in (
        ("old bridge", "#d55e00", "-"),
        ("new bridge", "#0072b2", "--"),
        ("ring road", "#009e73", ":"),
    ):
        axes.plot(minutes, found[names.index(road)], style, color=colour, linewidth=2, label=road)
    axes.set(xlabel="minute (grey: the peak)", title=f"{title}: {found.sum() * config.deltat / 3600:.0f} vehicle hours")
panels[0].set_ylabel("vehicles on the road")
panels[0].legend(fontsize=8)
plt.show()
