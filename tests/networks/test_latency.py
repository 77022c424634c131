"""Travel times: slopes, integrals and marginal costs that belong together, and the user's own functions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pzos.base.errors import InvalidInput
from pzos.networks import (
    Latency,
    Network,
)
from roads import parallel

POSITIVE = st.floats(0.1, 10.0)


@given(POSITIVE, st.floats(0.0, 3.0), POSITIVE, st.sampled_from([0.0, 0.5, 1.0, 1.5, 4.0, 4.9432, 16.8]), POSITIVE)
def test_slope_and_integral_belong_to_the_time(free: float, b: float, capacity: float, power: float, v: float) -> None:
    latency = Latency.bpr([free], [b], [capacity], [power])
    h = 1e-5 * v
    time = [float(latency.time(np.array([v + s * h]))[0]) for s in (-1, 0, 1)]
    area = [float(latency.integral(np.array([v + s * h]))[0]) for s in (-1, 1)]
    assert (time[2] - time[0]) / (2 * h) == pytest.approx(float(latency.slope(np.array([v]))[0]), rel=1e-4, abs=1e-6)
    assert (area[1] - area[0]) / (2 * h) == pytest.approx(time[1], rel=1e-6)
    assert float(latency.integral(np.zeros(1))[0]) == 0.0
    assert free <= float(latency.time(np.zeros(1))[0]) <= time[1]


@given(POSITIVE, st.floats(0.0, 3.0), st.sampled_from([0.0, 1.0, 1.5, 4.0]), st.floats(0.0, 10.0))
def test_marginal_cost_is_time_plus_flow_times_slope(free: float, b: float, power: float, v: float) -> None:
    latency, flow = Latency.bpr([free], [b], [2.0], [power]), np.array([v])
    expected = latency.time(flow) + flow * latency.slope(flow)
    np.testing.assert_allclose(latency.marginal().time(flow), expected, rtol=1e-12)


def test_the_compiled_latency_is_the_same_function() -> None:
    from pzos.networks.latency import FLOW, SLOPE, TIME, refresh

    powers = np.array([0.0, 0.5, 1.0, 1.5, 4.0, 5.1644, 4.0])
    rise_b = np.array([0.3, 1.0, 1.0, 0.2, 0.15, 1e-16, 0.0])
    latency = Latency.bpr(np.linspace(1, 2, 7), rise_b, [3, 3, 3, 3, 3, 1, 3], powers)
    state = np.zeros((7, 3))
    state[:, FLOW] = 5.0
    refresh(latency.law(np.arange(7)), state)
    np.testing.assert_allclose(state[:, TIME], latency.time(state[:, FLOW]), rtol=1e-14)
    np.testing.assert_allclose(state[:, SLOPE], latency.slope(state[:, FLOW]), rtol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([1.0, -1.0], 0.1, 1.0, 4.0), "free-flow time of link 1"),
        (([1.0], [0.1], [0.0], [4.0]), "capacity of link 0"),
        (([1.0], [0.1], [1.0], [-2.0]), "power of link 0"),
        (([1.0], [np.nan], [1.0], [4.0]), "rise"),
        (([1.0, 2.0, 3.0], [0.1, 0.2], 1.0, 4.0), "b = "),
    ],
)
def test_bad_latencies_are_named(arguments: tuple[object, ...], expected: str) -> None:
    with pytest.raises(InvalidInput, match=expected):
        Latency.bpr(*arguments)


def test_own_latencies_integrate_by_quadrature_or_as_given() -> None:
    base = Latency.affine([1.0, 1.0], [0.0, 0.0])
    own = base.with_own(lambda link, flow: flow**3, lambda link, flow: 3 * flow**2, links=[1])
    np.testing.assert_allclose(own.integral(np.array([2.0, 2.0])), [2.0, 4.0], rtol=1e-12)
    given_one = base.with_own(
        lambda link, flow: flow**3, lambda link, flow: 3 * flow**2, links=[1], integral=lambda link, flow: flow**4 / 4
    )
    np.testing.assert_allclose(given_one.integral(np.array([2.0, 2.0])), [2.0, 4.0], rtol=1e-15)
    with pytest.raises(InvalidInput, match="marginal"):
        own.marginal()
    with pytest.raises(InvalidInput, match=r"(?s)2 faults.*cost.*slope"):
        base.with_own(3.0, "x")  # type: ignore[arg-type]


def test_own_latencies_agree_with_the_built_in_ones(city: Network) -> None:
    base, capacity = city.latency.base, city.latency.capacity

    def cost(link: int, flow: float) -> float:
        return base[link] * (1.0 + 0.15 * (flow / capacity[link]) ** 4)

    def slope(link: int, flow: float) -> float:
        return 0.6 * base[link] / capacity[link] * (flow / capacity[link]) ** 3

    own = replace(city, latency=city.latency.with_own(cost, slope))
    expected, found = city.assign(gap=1e-12), own.assign(gap=1e-12)
    np.testing.assert_allclose(found.flow, expected.flow, rtol=1e-6, atol=1e-4)
    assert found.objective == pytest.approx(expected.objective, rel=1e-10)


def test_own_latencies_must_increase_and_compile() -> None:
    network = parallel(Latency.affine([1.0, 1.0], [1.0, 1.0]), 4.0)
    falling = network.latency.with_own(lambda link, flow: -flow, lambda link, flow: -1.0)
    with pytest.raises(InvalidInput, match=r"latency of link 0 at flow 0.*increasing"):
        replace(network, latency=falling).assign()
    words = network.latency.with_own(lambda link, flow: flow + "minutes", lambda link, flow: 1.0)
    with pytest.raises(InvalidInput, match="cannot be compiled"):
        replace(network, latency=words).assign()
    with pytest.raises(InvalidInput, match="links"):
        network.latency.with_own(lambda link, flow: flow, lambda link, flow: 1.0, links=[5])


@given(
    st.lists(st.floats(0.0, 50.0), min_size=2, max_size=2), POSITIVE, st.sampled_from([0.0, 0.5, 1.0, 2.5, 4.0, 9.0])
)
def test_times_never_fall_with_flow(flows: list[float], capacity: float, power: float) -> None:
    latency = Latency.bpr([1.0], [0.15], [capacity], [power])
    low, high = (float(latency.time(np.array([v]))[0]) for v in sorted(flows))
    assert 1.0 <= low <= high
    assert float(latency.slope(np.array([flows[0]]))[0]) >= 0.0


def test_the_rise_as_files_write_it() -> None:
    latency = Latency.bpr([2.0, 0.0, 1.0], [0.15, 3.0, 0.0], 1.0, 4.0)
    np.testing.assert_allclose(latency.b, [0.15, 0.0, 0.0])
    assert len(latency) == 3


def test_own_functions_are_tried_before_they_are_used() -> None:
    base = Latency.affine([1.0, 1.0], [1.0, 1.0])

    def check(cost, slope, expected: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            base.with_own(cost, slope, links=[1]).check_own(10.0)
        assert expected in str(caught.value)

    base.check_own(10.0)  # nothing to try
    base.with_own(lambda link, v: v + 1.0, lambda link, v: 1.0).check_own(10.0)
    check(lambda link, v: np.inf, lambda link, v: 1.0, "latency of link 1 at flow 0 = (inf, 1.0): expected finite")
    check(lambda link, v: v, lambda link, v: -1.0, "latency of link 1 at flow 0 = (0.0, -1.0)")
    check(lambda link, v: abs(v - 2.0), lambda link, v: 1.0, "latency of link 1 at flow 0.1 = (1.9, 1.0)")


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 1.5, 4.0, 7.0])
@pytest.mark.parametrize("flow", [0.0, 1e-9, 0.3, 2.0])
def test_one_link_in_the_compiled_code(power: float, flow: float) -> None:
    from pzos.networks.latency import FLOW, SLOPE, TIME, refresh

    latency = Latency.bpr([1.5], [0.4], [0.7], [power])
    state = np.array([[flow, 0.0, 0.0]])
    refresh(latency.law(np.arange(1)), state)
    assert state[0, FLOW] == flow
    assert state[0, TIME] == pytest.approx(float(latency.time(np.array([flow]))[0]), rel=1e-5)
    if power >= 1.0 or flow > 1e-6:  # the slope of lower powers is cut off near 0
        assert state[0, SLOPE] == pytest.approx(float(latency.slope(np.array([flow]))[0]), rel=1e-9, abs=1e-12)
    assert np.isfinite(state).all()
