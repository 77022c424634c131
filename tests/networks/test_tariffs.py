"""Tariffs: groups, cordons, areas and classes as one linear map."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.networks import Network, area_links, cordon_links, generated_city, tariff
from pzos.networks.tariffs import Response


@pytest.fixture(scope="module")
def three() -> Network:
    """Return a city with three classes."""
    return generated_city(3, 3, zones=4, seed=2).with_classes([1.0, 2.0, 3.0], names=["cars", "vans", "lorries"])


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("classes", [None, [0, 2]])
@pytest.mark.parametrize("links", [[3, 1], {"north": [0, 4, 2], "south": [7]}])
def test_who_pays_is_the_transpose_of_the_tolls(three: Network, links, classes, by_class: bool) -> None:
    plan = tariff(three, links, classes=classes, by_class=by_class)
    draw = np.random.default_rng(1)
    x, flow = draw.uniform(size=len(plan)), draw.uniform(size=(3, three.links))
    assert (plan.tolls(x) * flow).sum() == pytest.approx(x @ plan.payers(flow))
    assert plan.alike == (classes is None and not by_class)
    assert plan.paying == ((0, 1, 2) if classes is None else (0, 2))
    y = flow.sum(axis=0) if plan.alike else np.concatenate([flow.sum(axis=0), plan.payers(flow)])
    np.testing.assert_allclose(Response(three, plan).payers(y), plan.payers(flow))
    assert Response(three, plan).paid(x, y) @ y == pytest.approx((plan.tolls(x) * flow).sum())


def test_names_say_whose_toll_it_is(three: Network) -> None:
    plan = tariff(three, {"bridge": [0], "ring": [1, 2]}, by_class=True)
    assert plan.names[:4] == ("bridge, cars", "bridge, vans", "bridge, lorries", "ring, cars")
    some = plan.only([3, 0])
    assert some.names == ("ring, cars", "bridge, cars")
    np.testing.assert_array_equal(some.tolls(np.array([5.0, 7.0]))[:, :3], [[7, 5, 5], [0, 0, 0], [0, 0, 0]])
    assert tariff(three, plan) is plan


def test_cordons_and_areas_are_found_by_nodes() -> None:
    city = generated_city(4, 4, zones=4, seed=1)
    inside = city.node_ids[:5].tolist()
    entering, within = cordon_links(city, inside), area_links(city, inside)
    for link in range(city.links):
        ends = city.node_ids[city.tail[link]] in inside, city.node_ids[city.head[link]] in inside
        assert (link in entering, link in within) == (ends == (False, True), ends == (True, True))
    with pytest.raises(InvalidInput, match="names of nodes"):
        cordon_links(city, [999])
    with pytest.raises(InvalidInput, match="that a link lies in"):
        area_links(city, inside[:1])
    with pytest.raises(InvalidInput, match="at least one group"):
        tariff(city, {})
