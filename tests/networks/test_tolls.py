from __future__ import annotations

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.networks import Demand, Latency, Network, TollFollower, UserClass, toll_report


def pigou(trips: float = 1.0) -> Network:
    """Return a constant road of time 1 beside one of time v."""
    return Network.from_arrays(
        [0, 0], [1, 1], Latency.affine([1.0, 0.0], [0.0, 1.0]), Demand.from_list([0], [1], [trips])
    )


@pytest.mark.parametrize("objective", ["revenue", "travel_time", "emissions", "toll_squares",
                                       {"revenue": 1.0, "travel_time": -0.3, "toll_squares": -0.1}])  # fmt: skip
@pytest.mark.parametrize("classes", [None, [1]])
def test_gradients_of_every_objective_are_exact(city: Network, objective, classes) -> None:
    two = city.with_classes([1.0, 2.0])
    problem = two.toll_problem([0, 5, 9], objective, classes=classes, x0=[0.3, 0.7, 0.2])
    y = problem.follower.function(problem.x0).y
    value = problem.leader(problem.x0, y)
    rng = np.random.default_rng(0)
    for part, point in (("x", problem.x0), ("y", y)):
        direction = rng.standard_normal(point.size)
        h = 1e-4 * (1.0 + np.abs(point).max())
        ends = [
            (problem.x0 + s * h * direction, y) if part == "x" else (problem.x0, y + s * h * direction) for s in (1, -1)
        ]
        slope = (problem.leader.value(*ends[0]) - problem.leader.value(*ends[1])) / (2 * h)
        expected = float((value.grad_x if part == "x" else value.grad_y) @ direction)
        assert slope == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_pigou_toll_of_a_half_halves_the_congestion() -> None:
    network = pigou()
    problem = network.toll_problem([1], "travel_time", upper=1.0)
    result = pzos.solve(problem, pzos.PZOS(step=0.2, radius=1e-3), steps=60)
    assert result.x[0] == pytest.approx(0.5, abs=0.02)
    assert network.system_optimum().total_travel_time == pytest.approx(0.75)
    assert network.assign([0.0, 0.5]).total_travel_time == pytest.approx(0.75)


def test_pigou_revenue_is_largest_at_a_half() -> None:
    problem = pigou().toll_problem([1], "revenue", x0=0.1)
    assert problem.sense == "max"
    result = pzos.solve(problem, pzos.PZOS(step=0.2, radius=1e-3), steps=60)
    assert result.x[0] == pytest.approx(0.5, abs=0.02)


def test_only_chosen_classes_pay() -> None:
    demand = Demand.from_list([0], [1], [0.5])
    network = Network.from_arrays(
        [0, 0],
        [1, 1],
        Latency.affine([1.0, 0.0], [0.0, 1.0]),
        [UserClass(demand, 1.0, "cars"), UserClass(demand, 1.0, "buses")],
    )
    problem = network.toll_problem([1], classes=[0], x0=0.7)
    assert isinstance(problem.follower.function, TollFollower)
    y = problem.follower.function(problem.x0).y
    np.testing.assert_allclose(y, [0.5, 0.5, 0.5, 0.0], atol=1e-9)
    assert problem.leader.value(problem.x0, y) == pytest.approx(0.0, abs=1e-9)


def test_own_objectives_and_their_faults(city: Network) -> None:
    problem = city.toll_problem([3], lambda x, v: (float(v[3]), np.zeros(1), np.eye(city.links)[3]))
    assert problem.sense == "min"
    y = problem.follower.function(problem.x0).y
    assert problem.leader.value(problem.x0, y) == y[3]
    with pytest.raises(InvalidInput, match="grad_flow"):
        city.toll_problem([3], lambda x, v: 1.0)
    with pytest.raises(InvalidInput, match=r"(?s)2 faults.*classes.*objective"):
        city.toll_problem([3], "profit", classes=[4])
    with pytest.raises(InvalidInput, match="each link once"):
        city.toll_problem([3, 3])
    with pytest.raises(InvalidInput, match="exactly one link"):
        city.toll_problem([(1, 1)])


def test_caps_and_other_sets_become_the_domain(city: Network) -> None:
    assert isinstance(city.toll_problem().domain, pzos.Nonnegative)
    assert isinstance(city.toll_problem(upper=2.0).domain, pzos.Box)
    assert isinstance(city.toll_problem(lower=-np.inf).domain, pzos.Whole)
    assert isinstance(city.toll_problem(domain=pzos.Budget(5.0)).domain, pzos.Budget)
    pairs = [(int(city.node_ids[city.tail[7]]), int(city.node_ids[city.head[7]]))]
    assert city.toll_problem(pairs).follower.function.links.tolist() == [7]


def test_the_answers_carry_their_gap_and_repeat(city: Network) -> None:
    problem = city.toll_problem(gap=1e-9)
    first, second = (problem.follower.function(problem.x0 + 0.5) for _ in range(2))
    assert 0 <= first.gap <= 1e-9
    assert np.array_equal(first.y, second.y)


def test_report_adds_up(city: Network) -> None:
    network = city.with_classes([0.5, 2.0])
    best = network.assign(np.full(network.links, 0.4))
    report = toll_report(network.assign(), best, np.arange(network.links))
    rows = {name: (before, after) for name, before, after in report.rows()}
    assert rows["revenue"][1] == pytest.approx(0.4 * best.flow.sum())
    worth = [0.5, 2.0]
    times = [[float(a.time @ a.class_flow[k]) for k in (0, 1)] for a in (report.before, report.after)]
    saved = sum(w * (times[0][k] - times[1][k]) for k, w in enumerate(worth))
    assert report.net_benefit == pytest.approx(saved, rel=1e-6, abs=1e-3)
    assert len(report.link_rows(5)) == 5
