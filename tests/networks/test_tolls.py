"""Toll problems: who pays, what is wanted, which tolls are allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.networks import (
    Demand,
    Latency,
    Network,
    TollFollower,
    UserClass,
    tariff,
)
from pzos.networks.assignment import AboveGap, Assignment
from pzos.networks.tolls import flow_caps, loss_caps, total_cap
from roads import pigou


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
    np.testing.assert_allclose(y, [0.5, 0.5, 0.0], atol=1e-9)  # two flows, and how many pay
    assert problem.leader.value(problem.x0, y) == pytest.approx(0.0, abs=1e-9)


def test_caps_and_other_sets_become_the_domain(city: Network) -> None:
    assert isinstance(city.toll_problem().domain, pzos.Nonnegative)
    assert isinstance(city.toll_problem(upper=2.0).domain, pzos.Box)
    assert isinstance(city.toll_problem(lower=-np.inf).domain, pzos.Whole)
    assert isinstance(city.toll_problem(domain=pzos.Budget(5.0)).domain, pzos.Budget)
    pairs = [(int(city.node_ids[city.tail[7]]), int(city.node_ids[city.head[7]]))]
    assert city.toll_problem(pairs).follower.function.tariff.tolled.tolist() == [7]


def test_the_answers_carry_their_gap_and_repeat(city: Network) -> None:
    problem = city.toll_problem(gap=1e-9)
    first, second = (problem.follower.function(problem.x0 + 0.5) for _ in range(2))
    assert 0 <= first.gap <= 1e-9
    assert np.array_equal(first.y, second.y)


def test_faults_of_a_toll_problem_are_told_together(city: Network) -> None:
    with pytest.raises(InvalidInput, match=r"(?s)3 faults.*x0.*lower.*upper"):
        city.toll_problem([0, 1], x0=[1, 2, 3], lower=[0], upper=[1, 2, 3])
    with pytest.raises(InvalidInput, match="a finite number"):
        city.toll_problem([0], {"revenue": "much"})
    with pytest.raises(InvalidInput, match="upper >= lower"):
        city.toll_problem([0], lower=2.0, upper=1.0)


def test_a_problem_tells_its_name_and_start(city: Network) -> None:
    problem = city.toll_problem([0, 1], {"revenue": 1.0, "travel_time": -0.2}, x0=[0.1, 0.2])
    assert problem.name == f"tolls on 2 links of {city.name} for 1 revenue + -0.2 travel_time"
    assert problem.sense == "max"
    assert problem.x0.tolist() == [0.1, 0.2]
    assert city.toll_problem([0], "travel_time", sense="max", x0=0.0).sense == "max"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"gap": 0.0}, "gap = 0.0: expected a number between 0 and 1; 1e-10 is usual"),
        ({"classes": []}, "classes = []: expected numbers out of [0]; see .classes"),
        ({"objective": {}}, "objective = {}: expected names out of ['emissions', 'largest_loss', 'revenue',"),
        ({"objective": 3}, "objective = 3: expected a name, a mix of names, or a function; see SENSES"),
        ({"objective": {"revenue": np.nan}}, "objective['revenue'] = nan: expected a finite number"),
        ({"links": []}, "links = []: expected at least one link; leave it out for all links"),
    ],
)
def test_messages_of_a_toll_problem(options: dict[str, object], expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        pigou().toll_problem(**options)
    assert expected in str(caught.value)


def test_tolls_fill_the_rows_of_those_who_pay() -> None:
    three = pigou().with_classes([1.0, 2.0, 3.0])
    table = TollFollower(three, tariff(three, [1], classes=[0, 2]), 1e-9).tolls(np.array([0.4]))
    assert table.tolist() == [[0.0, 0.4], [0.0, 0.0], [0.0, 0.4]]


def test_flows_and_totals_can_be_capped() -> None:
    # Pigou's roads: the second has time equal to its flow, so a toll of t leaves a flow of 1 - t on it
    network = pigou()
    problem = network.toll_problem([1], "revenue", x0=0.1, upper=1.0, outcomes=flow_caps(network, [1], 0.3))
    found = pzos.solve(problem, queries=15, certificate=False, progress=False)
    assert found.x[0] == pytest.approx(0.7, abs=1e-3)
    assert found.violation <= 1e-6
    late = total_cap(network, [1], "travel_time", 0.9)
    least = network.toll_problem([1], "toll_squares", x0=0.5, upper=1.0, outcomes=late)
    # 1 - t + t^2 <= 0.9
    root = 0.5 * (1.0 - np.sqrt(1.0 - 0.4))
    assert pzos.solve(least, queries=15, certificate=False, progress=False).x[0] == pytest.approx(root, abs=1e-3)
    with pytest.raises(InvalidInput, match="one of"):
        total_cap(network, [1], "happiness", 1.0)


# ---- who loses -------------------------------------------------------------------------------------------------------


def two_classes() -> Network:
    """Return Pigou's roads with half of the travellers in a hurry."""
    return pigou().with_classes([1.0, 3.0], names=["slow", "quick"])


@pytest.mark.parametrize("by", ["class", "zone"])
def test_the_response_tells_what_a_trip_costs(by: str) -> None:
    network = two_classes()
    problem = network.toll_problem([1], "largest_loss", losses=by, x0=0.4)
    y = problem.follower.function(problem.x0).y
    state = network.assign(network.tolls_on(np.array([1]), 0.4))
    cost = [3.0**kind * (state.cost[kind] @ state.class_flow[kind]) / 0.5 for kind in (0, 1)]
    expected = cost if by == "class" else [np.mean(cost)]
    np.testing.assert_allclose(y[2:], expected, rtol=1e-8)
    assert len(problem.responses.each) == y.size
    without = np.zeros(1)
    assert problem.leader.value(without, problem.follower.function(without).y) == pytest.approx(0.0, abs=1e-9)


def test_objectives_of_losses_and_surplus_have_exact_gradients() -> None:
    network = two_classes()
    for problem in (
        network.toll_problem([0, 1], {"largest_loss": 1.0, "revenue": 0.5}, x0=0.2),
        network.toll_problem([0, 1], {"revenue": 1.0, "travel_time": -1.0}, classes=[1], x0=0.2),
        network.toll_problem(tariff(network, [0, 1], by_class=True), "revenue", x0=[0.1, 0.2, 0.3, 0.4]),
        network.toll_problem({"both": [0, 1]}, "revenue", x0=0.3),
        pigou().toll_problem([1], "surplus", x0=0.3),
    ):
        x, y = problem.x0, problem.follower.function(problem.x0).y + 0.1
        at, step = problem.leader(x, y), 1e-6
        for grad, which in ((at.grad_x, 0), (at.grad_y, 1)):
            for entry in range(grad.size):
                ends = []
                for sign in (1.0, -1.0):
                    moved = [x.copy(), y.copy()]
                    moved[which][entry] += sign * step
                    ends.append(problem.leader.value(*moved))
                assert grad[entry] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)


def test_losses_can_be_capped() -> None:
    # everybody who takes the second road pays t; the mean trip costs 1 as before, whatever the toll: nobody loses
    network = pigou()
    free = network.toll_problem([1], "revenue", losses="class", upper=1.0, x0=0.1,
                                outcomes=loss_caps(network, [1], "class", 0.0))  # fmt: skip
    assert pzos.solve(free, queries=15, certificate=False, progress=False).x[0] == pytest.approx(0.5, abs=1e-3)
    # with both roads tolled by the same, the loss is the toll itself
    both = network.toll_problem({"all": [0, 1]}, "revenue", losses="zone", upper=1.0, x0=0.1,
                                outcomes=loss_caps(network, {"all": [0, 1]}, "zone", 0.25))  # fmt: skip
    found = pzos.solve(both, queries=15, certificate=False, progress=False)
    assert found.x[0] == pytest.approx(0.25, abs=1e-3)
    assert found.standing is not None
    assert found.standing.names == ("loss of zone 0 <= 0.25",)
    with pytest.raises(InvalidInput, match="by"):
        loss_caps(network, [1], "street", 1.0)
    with pytest.raises(InvalidInput, match="one value of time"):
        two_classes().toll_problem([1], "surplus")


@pytest.mark.parametrize(("warm", "cold"), [(1e-8, 1e-11), (1e-8, 1e-7), (1e-3, 1e-7), (1e-3, 1e-4)])
def test_one_hard_point_does_not_end_a_search(city: Network, monkeypatch, caplog, warm: float, cold: float) -> None:
    travellers = city.toll_problem([0, 5]).follower.function
    assert travellers.references is not None  # before equilibria stall
    real = Network.assign

    def stalls(self: Network, *given: Any, reference: Any = None, **settings: Any) -> Assignment:
        gap = cold if reference is None else warm
        return replace(real(self, *given, **settings), gap=gap, converged=gap <= 1e-10)

    monkeypatch.setattr(Network, "assign", stalls)
    if min(warm, cold) > 1e-6:
        with pytest.raises(AboveGap, match=r"relative gap 1.000e-04"):
            travellers(np.array([0.1, 0.2]))
        return
    assert travellers(np.array([0.1, 0.2])).gap == min(warm, cold)
    assert ("relative gap of" in caplog.text) is (min(warm, cold) > 1e-10)
